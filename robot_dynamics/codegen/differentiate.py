# SPDX-License-Identifier: Apache-2.0
"""Derivatives of recorded programs, exact to rounding, in forward or reverse mode.

    forward (pushforward): ẏ = J ẋ        reverse (pullback): x̄ = Jᵀ ȳ

Both run over any scalar: with a `Recorder`, they give a new program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ..scalar import Array, Scalar, atan, cos, exp, is_zero, sign, sin, sqrt, tanh
from .recorder import Operand, Program, record

_FUNCTIONS: dict[str, Callable[[Scalar], Scalar]] = {
    "neg": lambda x: -x,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "exp": exp,
    "sqrt": sqrt,
    "atan": atan,
    "sign": sign,
}
_OPERATORS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}
_SLOPES: dict[str, Callable[..., tuple[Scalar, ...]]] = {
    # derivatives of y = f(operands) with respect to each operand, from (y, *operands)
    "neg": lambda *_: (-1.0,),
    "sin": lambda _, x: (cos(x),),
    "cos": lambda _, x: (-sin(x),),
    "tanh": lambda y, _: (1.0 - y * y,),
    "exp": lambda y, _: (y,),
    "sqrt": lambda y, _: (0.5 / y,),
    "atan": lambda _, x: (1.0 / (1.0 + x * x),),
    "sign": lambda *_: (0.0,),  # except at the step
    "add": lambda *_: (1.0, 1.0),
    "sub": lambda *_: (1.0, -1.0),
    "mul": lambda _, a, b: (b, a),
    "div": lambda y, _, b: (1.0 / b, -(y / b)),
}


def pushforward(
    program: Program, vectors: Sequence[Array], directions: Sequence[Array]
) -> tuple[list[Scalar], list[Scalar]]:
    """(the results, their derivatives along a direction), by forward mode.

    Args:
        program: the program.
        vectors: the values of its vectors.
        directions: the direction, one part for each vector.
    """
    values = _values(program, vectors)
    into = [x for vector in directions for x in vector]
    rates: list[Scalar] = []
    for place, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            rates.append(into[operands[0]])
            continue
        rate: Scalar = 0.0
        known = [_at(values, x) for x in operands]
        moving = [0.0 if not isinstance(x, int) else rates[x] for x in operands]
        if not all(is_zero(x) for x in moving):
            for slope, each in zip(_SLOPES[operation](values[place], *known), moving, strict=True):
                if not is_zero(each):
                    rate = rate + slope * each
        rates.append(rate)
    ends = [_at(values, x) for x in program.outputs]
    return ends, [rates[x] if isinstance(x, int) else 0.0 for x in program.outputs]


def pullback(
    program: Program, vectors: Sequence[Array], weights: Sequence[Scalar]
) -> list[list[Scalar]]:
    """The derivatives of Σ weight·result with respect to each vector's entries, by reverse mode.

    Args:
        program: the program.
        vectors: the values of its vectors.
        weights: one for each result.
    """
    values = _values(program, vectors)
    share: list[Scalar] = [0.0] * len(values)
    for end, weight in zip(program.outputs, weights, strict=True):
        if isinstance(end, int):
            share[end] = share[end] + weight
    entries: list[Scalar] = [0.0] * program.inputs
    for place in reversed(range(len(values))):
        operation, *operands = program.instructions[place]
        if is_zero(share[place]):
            continue
        if operation == "input":
            entries[operands[0]] = entries[operands[0]] + share[place]
            continue
        known = [_at(values, x) for x in operands]
        for x, slope in zip(operands, _SLOPES[operation](values[place], *known), strict=True):
            if isinstance(x, int):
                share[x] = share[x] + slope * share[place]
    ends = np.cumsum((0, *program.sizes))
    return [entries[a:b] for a, b in pairwise(ends)]


def tangent(program: Program, most: int | None = None) -> Program:
    """The program that computes the derivatives of the results along a direction.

    Its vectors are those of the program, then the direction for each of them.

    Args:
        program: the program to differentiate.
        most: the largest number of operations; None: no limit.

    Raises:
        ProgramTooLarge: it would have more than `most` operations.
    """
    k = len(program.sizes)
    return record(
        lambda *vectors: pushforward(program, vectors[:k], vectors[k:])[1], program.sizes * 2, most
    )


def _values(program: Program, vectors: Sequence[Array]) -> list[Scalar]:
    """The value of each instruction."""
    into = [x for vector in vectors for x in vector]
    values: list[Scalar] = []
    for operation, *operands in program.instructions:
        if operation == "input":
            values.append(into[operands[0]])
        else:
            function = _FUNCTIONS.get(operation) or _OPERATORS[operation]
            values.append(function(*(_at(values, x) for x in operands)))
    return values


def _at(values: list[Scalar], operand: Operand) -> Scalar:
    return values[operand] if isinstance(operand, int) else operand
