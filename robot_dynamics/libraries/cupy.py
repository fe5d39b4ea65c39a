# SPDX-License-Identifier: Apache-2.0
"""Programs as CUDA kernels over CuPy's arrays, compiled at their first call.

Arrays of other libraries on the same device (PyTorch, JAX) are read through DLPack without a copy.
Results are CuPy arrays, which those libraries can read in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupy

from ..codegen.cuda_code import NAME
from . import launched
from .library import Definition, PassiveJoints

THREADS = 128
"""Threads per block. A program keeps many values: larger blocks would not run more threads at
once"""


def function(definition: Definition) -> Callable[..., Any]:
    """A program as a function of arrays (…, n)."""
    return launched.function(definition, cupy, _kernel)


def closing(definition: Definition, closure: PassiveJoints) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of arrays q (…, k) that closes the
    loops itself."""
    return launched.closing(definition, closure, cupy, _kernel)


def _kernel(text: str) -> launched.Launch:
    kernel = cupy.RawKernel(text, NAME)

    def launch(vectors: Sequence[Any], out: Any, count: int) -> None:
        blocks = (count + THREADS - 1) // THREADS
        kernel((blocks,), (THREADS,), (*vectors, out, count))

    return launch
