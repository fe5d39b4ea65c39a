# SPDX-License-Identifier: Apache-2.0
"""Derivatives of recorded programs against central differences, forwards and backwards."""

from __future__ import annotations

import numpy as np
from robots import python_functions, relative

from robot_dynamics import scalar
from robot_dynamics.codegen.differentiate import pushforward
from robot_dynamics.codegen.recorder import record

STEP = 1e-6


def everything(x, p):
    """Each operation of the recorder, constants and shared values among them."""
    a, b, c = x
    shared = scalar.sin(a) * b
    return [
        shared + scalar.cos(b * c) - 2.0,
        scalar.tanh(shared) / (c + 3.0) - a,
        -scalar.exp(a * p[0]) + 1.5 / b,
        scalar.sign(a) * c + p[1] * shared * shared,
        4.0,
        c,
    ]


PROGRAM = record(everything, (3, 2))
AT = np.array([0.7, -1.2, 0.4]), np.array([0.3, -2.0])
DIRECTION = np.array([0.2, 1.1, -0.6]), np.array([0.9, 0.5])


def along(step):
    vectors = (x + step * d for x, d in zip(AT, DIRECTION, strict=True))
    return np.array(everything(*vectors))


def test_forwards_is_the_slope_along_the_direction():
    rates = pushforward(PROGRAM, AT, DIRECTION)
    expected = (along(STEP) - along(-STEP)) / (2 * STEP)
    assert relative(np.array(rates), expected) < 1e-9
    recorded = record(lambda x, p, d, e: pushforward(PROGRAM, (x, p), (d, e)), (3, 2, 3, 2))
    run, _ = python_functions(recorded)
    assert relative(np.array(run(*np.concatenate([*AT, *DIRECTION]))), rates) < 1e-14


def test_what_does_not_move_costs_nothing():
    still = record(lambda x, d: pushforward(PROGRAM, [x, np.zeros(2)], [np.zeros(3), d]), (3, 2))
    assert still.operations < PROGRAM.operations
