# SPDX-License-Identifier: Apache-2.0
"""Programs as kernels that compute many states in one launch, on arrays of a library like NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from numpy import broadcast_shapes

from ..codegen.cuda_code import source
from ..errors import InputError, wrong
from . import arrays
from .library import Closure, Definition

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
    width = len(program.outputs)

    def call(*vectors: Any) -> Any:
        if len(vectors) != len(program.sizes):
            expected = f"{len(program.sizes)}: {', '.join(definition.arguments)}"
            raise wrong(InputError, f"{definition.name}: arguments", len(vectors), expected)
        states = []
        for name, size, x in zip(definition.arguments, program.sizes, vectors, strict=True):
            state = _taken(x, numpy)
            if state.ndim == 0 or state.shape[-1] != size:
                raise wrong(InputError, name, tuple(state.shape), f"shape (…, {size})")
            states.append(state.astype(numpy.float64, copy=False))
        batch = broadcast_shapes(*(state.shape[:-1] for state in states))
        count = prod(batch)
        flat = [
            numpy.ascontiguousarray(numpy.broadcast_to(state, (*batch, state.shape[-1])))
            for state in states
        ]
        out = numpy.empty((count, width))
        if count:
            launch(flat, out, count)
        parts = []
        first = 0
        for _, shape in definition.results:
            last = first + prod(shape)
            parts.append(out[:, first:last].reshape(*batch, *shape))
            first = last
        return parts[0] if len(parts) == 1 else tuple(parts)

    call.__name__ = definition.name
    shapes = ", ".join(f"{name} {('…', *shape)}" for name, shape in definition.results)
    call.__doc__ = f"{definition.name}({', '.join(definition.arguments)}): (…, n) → {shapes}."
    return call


def closing(
    definition: Definition, closure: Closure, numpy: Any, kernel_of: Callable[[str], Launch]
) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of arrays q (…, k) that closes the
    loops itself, with one launch for each stride and three more.

    Args:
        definition: the program.
        closure: how the other joints follow q.
        numpy: the library, with NumPy's interface.
        kernel_of: as in `function`.
    """
    of_arrays = arrays.closing(
        definition,
        closure,
        lambda each: function(each, numpy, kernel_of),
        like=lambda numbers, q: numpy.asarray(numbers, dtype=q.dtype),
        still=lambda x: x,
        floor=numpy.floor,
        where=numpy.where,
        joined=partial(_joined, numpy),
        repeated=arrays.repeated,
    )

    def call(q: Any, *state: Any) -> Any:
        return of_arrays(_taken(q, numpy).astype(numpy.float64, copy=False), *state)

    call.__name__, call.__doc__ = of_arrays.__name__, of_arrays.__doc__
    return call


def _taken(x: Any, numpy: Any) -> Any:
    """x as an array of this library; an array of another library on the same kind of device is not
    copied."""
    if hasattr(x, "__dlpack__") and not isinstance(x, numpy.ndarray):
        kind, _ = numpy.empty(0).__dlpack_device__()
        if x.__dlpack_device__()[0] == kind:
            return numpy.from_dlpack(x)
    return numpy.asarray(x)


def _joined(numpy: Any, parts: list[Any]) -> Any:
    batch = broadcast_shapes(*(part.shape[:-1] for part in parts))
    wide = [numpy.broadcast_to(part, (*batch, part.shape[-1])) for part in parts]
    return numpy.concatenate(wide, axis=-1)
