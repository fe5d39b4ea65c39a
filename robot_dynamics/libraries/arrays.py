# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of arrays (…, n): the last axis is the vector's, the others broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError, wrong
from .library import Definition, PassiveJoints


def function(
    definition: Definition,
    library: Any,
    functions: Mapping[str, Callable[[Any], Any]],
    broadcast: Callable[[list[Any]], list[Any]],
    taken: Callable[[Any], Any] = lambda x: x,
) -> Callable[..., Any]:
    """A program as a function of a library's arrays.

    Args:
        definition: the program.
        library: has `stack`, like NumPy.
        functions: see `Program.values`.
        broadcast: converts all values (arrays and numbers) to arrays of one shape and type.
        taken: converts an argument to an array.
    """

    def results(vectors: list[Any]) -> Iterable[Any]:
        entries = [x[..., k] for x in vectors for k in range(x.shape[-1])]
        # all results get the common shape and type of the arguments, even if they are constant
        values = broadcast([*definition.evaluated(entries, functions), *entries])
        for (_, shape), part in zip(definition.results, definition.parts(values), strict=True):
            flat = library.stack(part, -1)
            yield flat.reshape((*flat.shape[:-1], *shape))

    return checked(definition, results, taken)


def checked(
    definition: Definition,
    results: Callable[[list[Any]], Iterable[Any]],
    taken: Callable[[Any], Any],
) -> Callable[..., Any]:
    """A function of arrays whose arguments are checked.

    Args:
        definition: has the names and sizes of the arguments.
        results: computes the results from arrays of these sizes.
        taken: converts an argument to an array.
    """
    arguments, sizes = definition.arguments, definition.program.sizes

    def call(*vectors: Any) -> Any:
        if len(vectors) != len(sizes):
            expected = f"{len(sizes)}: {', '.join(arguments)}"
            raise wrong(InputError, f"{definition.name}: arguments", len(vectors), expected)
        named = zip(arguments, vectors, sizes, strict=True)
        found = tuple(results([_array(name, x, size, taken) for name, x, size in named]))
        return found[0] if len(found) == 1 else found

    call.__name__ = definition.name
    shapes = ", ".join(f"{name} {('…', *shape)}" for name, shape in definition.results)
    call.__doc__ = f"{definition.name}({', '.join(arguments)}): vectors (…, n) → {shapes}."
    return call


def _array(name: str, x: Any, size: int, taken: Callable[[Any], Any]) -> Any:
    """An argument as an array (…, size)."""
    shape = f"shape (…, {size})"
    try:
        array = taken(x)
    except (TypeError, ValueError):
        expected = f"this library's array, {shape}"
        raise wrong(InputError, name, type(x).__name__, expected) from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise wrong(InputError, name, tuple(array.shape), shape)
    return array


def repeated(n: int, f: Callable[[Any, Any], Any], x: Any) -> Any:
    """x after repeating x = f(i, x) for i from 0 to n - 1, in an ordinary loop."""
    for i in range(n):
        x = f(i, x)
    return x


def closing(
    definition: Definition,
    closure: PassiveJoints,
    of: Callable[[Definition], Callable[..., Any]],
    library: Any,
    *,
    like: Callable[[Any, Any], Any],
    taken: Callable[[Any], Any] = lambda x: x,
    still: Callable[[Any], Any] = lambda x: x,
    repeated: Callable[[int, Callable[[Any, Any], Any], Any], Any] = repeated,
) -> Callable[..., Any]:
    """A program whose first vector is all joints, as a function of arrays q (…, k) that closes the
    loops itself.

    Args:
        definition: the program.
        closure: how the other joints follow q.
        of: converts a definition to a function of arrays.
        library: has `broadcast_to`, `concatenate`, `floor` and `where`, like NumPy.
        like: (numbers, array) → the numbers as an array of the same type as the other.
        taken: converts q to an array.
        still: excludes an array from differentiation.
        repeated: (n, f, x) → x after repeating x = f(i, x) for i from 0 to n - 1.
    """
    k, size = closure.known, len(closure.start)
    followed, improved, whole = of(closure.followed), of(closure.improved), of(definition)

    def joined(*parts: Any) -> Any:
        batch = np.broadcast_shapes(*(tuple(part.shape[:-1]) for part in parts))
        wide = [library.broadcast_to(part, (*batch, part.shape[-1])) for part in parts]
        return library.concatenate(wide, -1)

    def call(q: Any, *state: Any) -> Any:
        q = _array("q", q, k, taken)
        fixed = still(q)
        home = like(closure.q_home, q)
        wraps = like([2 * math.pi * each for each in closure.wraps], q)
        way = fixed - home
        way = way - wraps * library.floor(way / (2 * math.pi) + 0.5)

        def stride(i: Any, before: Any) -> Any:
            memory = followed(home + way * closure.share(i + 1), before[..., :size])
            kept = memory[..., closure.doubt : closure.doubt + 1] <= 1.0
            return joined(memory, library.where(kept, before[..., size:], math.nan))

        zero = fixed[..., :1] * 0.0
        last = repeated(closure.strides, stride, like([*closure.start, 0.0], q) + zero)
        # nan if a stride was doubtful
        u = still(last[..., closure.others] + last[..., size:])
        u = improved(q, improved(q, u))
        return whole(joined(q, u), *state)

    call.__name__, call.__doc__ = whole.__name__, whole.__doc__
    return call
