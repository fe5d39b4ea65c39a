# SPDX-License-Identifier: Apache-2.0
"""Scalar-generic functions of vectors, made fast over floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...codegen import python_code
from ...codegen.recorder import record
from ...scalar import Array, Floats

Mask = NDArray[np.bool_]


def fast(
    function: Callable[..., Array], sizes: Sequence[int], shape: tuple[int, ...]
) -> Callable[..., Floats]:
    """The same function from float arrays (…, size) to (…, *shape); leading axes are a batch."""
    program = record(lambda *vectors: np.ravel(function(*vectors)), sizes)
    over_floats, over_arrays = python_code.compile_program(program)

    def call(*vectors: Floats) -> Floats:
        if all(vector.ndim == 1 for vector in vectors):
            return np.array(over_floats(*(x for v in vectors for x in v.tolist()))).reshape(shape)
        batch = np.broadcast_shapes(*(vector.shape[:-1] for vector in vectors))
        out = over_arrays(
            *(v[..., j] for v, size in zip(vectors, sizes, strict=True) for j in range(size))
        )
        entries = [np.broadcast_to(x, batch) for x in out]
        return (
            np.stack(entries, axis=-1).reshape(*batch, *shape)
            if out
            else np.zeros((*batch, *shape))
        )

    return call
