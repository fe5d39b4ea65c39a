# SPDX-License-Identifier: Apache-2.0
"""Derivatives of recorded programs along a direction, ẏ = J ẋ, exact to rounding (forward mode).

They are over any scalar: with a `Recorder`, they give a new program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..scalar import Array, Scalar, atan, cos, exp, is_zero, sign, sin, sqrt, tanh
from .recorder import FUNCTIONS, Program, value_of

_FUNCTIONS = dict(zip(FUNCTIONS, (sin, cos, tanh, exp, sqrt, atan, sign), strict=True))
_SLOPES: dict[str, Callable[..., tuple[Scalar, ...]]] = {
    # derivatives of y = f(operands) with respect to each operand, from (y, *operands)
    "neg": lambda *_: (-1.0,),
    "sin": lambda _, x: (cos(x),),
    "cos": lambda _, x: (-sin(x),),
    "tanh": lambda y, _: (1.0 - y * y,),
    "exp": lambda y, _: (y,),
    "sqrt": lambda y, _: (0.5 / y,),
    "atan": lambda _, x: (1.0 / (1.0 + x * x),),
    "sign": lambda *_: (0.0,),  # except at the jump
    "add": lambda *_: (1.0, 1.0),
    "sub": lambda *_: (1.0, -1.0),
    "mul": lambda _, a, b: (b, a),
    "div": lambda y, _, b: (1.0 / b, -(y / b)),
}


def pushforward(
    program: Program, vectors: Sequence[Array], directions: Sequence[Array]
) -> list[Scalar]:
    """The derivatives of the results along a direction, by forward mode.

    Args:
        program: the program.
        vectors: the values of its vectors.
        directions: the direction, one part for each vector.
    """
    values = program.values([x for vector in vectors for x in vector], _FUNCTIONS)
    into = [x for vector in directions for x in vector]
    rates: list[Scalar] = []
    for place, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            rates.append(into[operands[0]])
            continue
        rate: Scalar = 0.0
        known = [value_of(x, values) for x in operands]
        moving = [0.0 if not isinstance(x, int) else rates[x] for x in operands]
        if not all(is_zero(x) for x in moving):
            for slope, each in zip(_SLOPES[operation](values[place], *known), moving, strict=True):
                if not is_zero(each):
                    rate = rate + slope * each
        rates.append(rate)
    return [rates[x] if isinstance(x, int) else 0.0 for x in program.outputs]


def slopes(program: Program, vectors: Sequence[Array], ways: Sequence[Array]) -> list[list[Scalar]]:
    """The derivatives of the results along each of the ways, on which one vector moves alone.

    Args:
        program: the program.
        vectors: the values of its vectors.
        ways: the direction of the first vector, of the second, …; the others do not move.
    """
    still = [np.zeros(len(vector)) for vector in vectors]
    return [
        pushforward(program, vectors, [*still[:k], way, *still[k + 1 :]])
        for k, way in enumerate(ways)
    ]
