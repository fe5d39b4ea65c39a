# SPDX-License-Identifier: Apache-2.0
"""Programs as kernels that compute many states in one launch, on arrays of a library like NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from numpy import broadcast_shapes

from ..codegen.cuda_code import source
from . import arrays
from .library import Definition, PassiveJoints

Launch = Callable[[Sequence[Any], Any, int], None]
"""(vectors, out, count) → out is filled"""


def function(
    definition: Definition, numpy: Any, kernel_of: Callable[[str], Launch]
) -> Callable[..., Any]:
    """A program as a function of arrays (…, n), computed by one launch of a kernel.

    Args:
        definition: the program.
        numpy: the library, with NumPy's interface.
        kernel_of: builds the function that launches a kernel, from the kernel's source text.
    """
    program = definition.program
    launch = kernel_of(source(program))

    def results(states: list[Any]) -> list[Any]:
        batch = broadcast_shapes(*(state.shape[:-1] for state in states))
        count = prod(batch)
        flat = [
            numpy.ascontiguousarray(numpy.broadcast_to(state, (*batch, state.shape[-1])))
            for state in states
        ]
        out = numpy.empty((count, len(program.outputs)))
        if count:
            launch(flat, out, count)
        parts = zip(definition.results, definition.parts(out.T), strict=True)
        return [part.T.reshape(*batch, *shape) for (_, shape), part in parts]

    return arrays.checked(definition, results, lambda x: _taken(x, numpy))


def closing(
    definition: Definition, closure: PassiveJoints, numpy: Any, kernel_of: Callable[[str], Launch]
) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of arrays q (…, k) that closes the
    loops itself, with one launch for each stride and three more.

    Args:
        definition: the program.
        closure: how the other joints follow q.
        numpy: the library, with NumPy's interface.
        kernel_of: as in `function`.
    """
    return arrays.closing(
        definition,
        closure,
        lambda each: function(each, numpy, kernel_of),
        numpy,
        like=lambda numbers, q: numpy.asarray(numbers, dtype=q.dtype),
        taken=lambda q: _taken(q, numpy),
    )


def _taken(x: Any, numpy: Any) -> Any:
    """x as an array of float64 of this library; one of another library on the same kind of device
    is not copied."""
    if hasattr(x, "__dlpack__") and not isinstance(x, numpy.ndarray):
        kind, _ = numpy.empty(0).__dlpack_device__()
        if x.__dlpack_device__()[0] == kind:
            x = numpy.from_dlpack(x)
    return numpy.asarray(x).astype(numpy.float64, copy=False)
