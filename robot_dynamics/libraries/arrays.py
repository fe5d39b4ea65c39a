# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of arrays (…, n): the last axis is the vector's, leading axes broadcast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError, wrong
from .library import Definition, run


def function(
    definition: Definition,
    unary: Mapping[str, Callable[[Any], Any]],
    broadcast: Callable[[list[Any]], list[Any]],
    stack: Callable[[list[Any]], Any],
) -> Callable[..., Any]:
    """A function of arrays of a library.

    Args:
        unary: see `run`.
        broadcast: all values (arrays and numbers) as arrays of one shape and kind.
        stack: arrays of one shape, one behind the other along a new last axis.
    """
    program = definition.program

    def call(*vectors: Any) -> Any:
        if len(vectors) != len(program.sizes):
            expected = f"{len(program.sizes)}: {', '.join(definition.arguments)}"
            raise wrong(InputError, f"{definition.name}: arguments", len(vectors), expected)
        entries: list[Any] = []
        for name, size, x in zip(definition.arguments, program.sizes, vectors, strict=True):
            if x.ndim == 0 or x.shape[-1] != size:
                raise wrong(InputError, name, tuple(x.shape), f"shape (…, {size})")
            entries += [x[..., k] for k in range(size)]
        # what is computed from them is of their common shape and type, constants too
        values = broadcast([*run(program, entries, unary), *entries])[: len(program.outputs)]
        results = []
        for (_, shape), part in zip(definition.results, definition.parts(values), strict=True):
            flat = stack(part)
            results.append(flat.reshape((*flat.shape[:-1], *shape)))
        return results[0] if len(results) == 1 else tuple(results)

    call.__name__ = definition.name
    shapes = ", ".join(f"{name} {('…', *shape)}" for name, shape in definition.results)
    call.__doc__ = (
        f"{definition.name}({', '.join(definition.arguments)}): vectors (…, n) → {shapes}."
    )
    return call
