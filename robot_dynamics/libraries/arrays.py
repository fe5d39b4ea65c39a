# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of arrays (…, n): the last axis is the vector's, the others broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError, wrong
from .library import Closure, Definition


def function(
    definition: Definition,
    functions: Mapping[str, Callable[[Any], Any]],
    broadcast: Callable[[list[Any]], list[Any]],
    stack: Callable[[list[Any]], Any],
) -> Callable[..., Any]:
    """A program as a function of a library's arrays.

    Args:
        definition: the program.
        functions: see `Program.values`.
        broadcast: converts all values (arrays and numbers) to arrays of one shape and type.
        stack: stacks arrays of one shape along a new last axis.
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
        # all results get the common shape and type of the arguments, even if they are constant
        values = broadcast([*definition.evaluated(entries, functions), *entries])[
            : len(program.outputs)
        ]
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


def closing(
    definition: Definition,
    closure: Closure,
    of: Callable[[Definition], Callable[..., Any]],
    *,
    like: Callable[[Any, Any], Any],
    still: Callable[[Any], Any],
    floor: Callable[[Any], Any],
    where: Callable[..., Any],
    joined: Callable[[list[Any]], Any],
    repeated: Callable[[int, Callable[[Any, Any], Any], Any], Any],
) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of arrays q (…, k) that closes the
    loops itself.

    Args:
        definition: the program.
        closure: how the other joints follow q.
        of: converts a definition to a function of arrays.
        like: (numbers, array) → the numbers as an array of the same type as the other.
        still: excludes an array from differentiation.
        floor: rounds down.
        where: (condition, array, number) → the array where the condition holds, else the number.
        joined: concatenates arrays along the last axis; the other axes broadcast.
        repeated: (n, f, x) → x after x = f(i, x) for i from 0 to n - 1.
    """
    k, size = closure.known, len(closure.start)
    followed, improved, whole = of(closure.followed), of(closure.improved), of(definition)

    def call(q: Any, *state: Any) -> Any:
        if q.ndim == 0 or q.shape[-1] != k:
            raise wrong(InputError, "q", tuple(q.shape), f"shape (…, {k})")
        fixed = still(q)
        home = like(closure.home, q)
        wraps = like([2 * math.pi * each for each in closure.wraps], q)
        way = fixed - home
        way = way - wraps * floor(way / (2 * math.pi) + 0.5)

        def stride(i: Any, before: Any) -> Any:
            memory = followed(home + way * closure.share(i + 1), before[..., :size])
            sure = where(memory[..., closure.doubt : closure.doubt + 1] <= 1.0, before[..., size:],
                         math.nan)  # fmt: skip
            return joined([memory, sure])

        zero = fixed[..., :1] * 0.0
        last = repeated(closure.strides, stride, like([*closure.start, 0.0], q) + zero)
        # nan if a stride was doubtful
        u = still(last[..., closure.others] + last[..., size:])
        u = improved(q, improved(q, u))
        return whole(joined([q, u]), *state)

    call.__name__, call.__doc__ = whole.__name__, whole.__doc__
    return call


def repeated(n: int, f: Callable[[Any, Any], Any], x: Any) -> Any:
    """x after x = f(i, x) for i from 0 to n - 1, in an ordinary loop."""
    for i in range(n):
        x = f(i, x)
    return x
