# SPDX-License-Identifier: Apache-2.0
"""Programs as CUDA kernels over CuPy's arrays, compiled when they are first called.

Arrays of other libraries that are on the same device (PyTorch's, JAX's) are taken by DLPack without
a copy; what comes out is CuPy's, which they take in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupy

from ..codegen.cuda_code import NAME
from . import launched
from .library import Closure, Definition

THREADS = 128
"""A block's: programs keep many values, so that larger blocks would not be more at a time"""


def function(definition: Definition) -> Callable[..., Any]:
    """A function of arrays (…, n)."""
    return launched.function(definition, cupy, _kernel)


def closed(definition: Definition, closure: Closure) -> Callable[..., Any]:
    """A function of arrays q (…, k), where the definition's first vector is all joints."""
    return launched.closed(definition, closure, cupy, _kernel)


def _kernel(text: str) -> launched.Launch:
    kernel = cupy.RawKernel(text, NAME)

    def launch(vectors: Sequence[Any], out: Any, count: int) -> None:
        blocks = (count + THREADS - 1) // THREADS
        kernel((blocks,), (THREADS,), (*vectors, out, count))

    return launch
