# SPDX-License-Identifier: Apache-2.0
"""Laws of the recorder and the printers: a program computes what the function computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from robots import python_functions

from robot_dynamics.codegen.guard import guarded
from robot_dynamics.codegen.recorder import ProgramTooLarge, record
from robot_dynamics.scalar import array, cos, cross, exp, sign, sin, tanh

ROUNDING = 1e-14
"""A few roundings of 1e-16 on values of about one"""
AMPLIFIED = 1e-11
"""The same after forty operations, products among them, each on results of the ones before"""


def operations(function, *sizes):
    return [step for step in record(function, sizes).instructions if step[0] != "input"]


def run(program, *entries):
    over_floats, _ = python_functions(program)
    return over_floats(*entries)


def random_function(rng):
    """A function of two vectors (3,) by seed, over any scalar."""
    picks = rng.integers(0, 10, 40).tolist()
    spots = rng.integers(0, 1000, (40, 2)).tolist()
    numbers = rng.choice([0.0, 1.0, -1.0, 2.0, -0.7, 0.3], 40).tolist()

    def function(x, y):
        values = [*x, *y]
        for pick, (i, j), number in zip(picks, spots, numbers, strict=True):
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(
                [
                    lambda a, b, c: a + b,
                    lambda a, b, c: a - b,
                    lambda a, b, c: a * b,
                    lambda a, b, c: c * a,
                    lambda a, b, c: a - c,
                    lambda a, b, c: c - a,
                    lambda a, b, c: -a,
                    lambda a, b, c: sin(a) + tanh(b),
                    lambda a, b, c: cos(a) * sign(b),
                    lambda a, b, c: exp(-(a * a)) - b,
                ][pick](a, b, number)
            )
        return values[-12:]

    return function


@pytest.mark.parametrize("seed", range(40))
def test_a_program_computes_what_the_function_computes(seed):
    rng = np.random.default_rng(seed)
    picks = random_function(rng)
    x, y = rng.uniform(-1, 1, (2, 3)).tolist()
    expected = np.array(picks(x, y), dtype=float)
    found = run(record(picks, (3, 3)), *x, *y)
    assert np.allclose(found, expected, rtol=AMPLIFIED, atol=AMPLIFIED)


def test_zeros_and_ones_leave_no_operations():
    assert operations(lambda x: [0.0 * x[0] + 1.0 * x[1] + 0.0, x[0] - 0.0, x[1] / 1.0], 2) == []


def test_constants_are_folded():
    steps = operations(lambda x: [(2.0 * 3.0) * x[0]], 1)
    assert [step[:2] for step in steps] == [("mul", 6.0)]


def test_equal_subexpressions_are_computed_once():
    steps = operations(lambda x: [x[0] * x[1] + sin(x[0]), x[1] * x[0] - sin(x[0])], 2)
    assert [step[0] for step in steps].count("mul") == 1
    assert [step[0] for step in steps].count("sin") == 1


def test_what_nobody_reads_is_not_computed():
    def function(x):
        sin(x[0])  # dead
        return [x[1] + 1.0]

    assert [step[0] for step in operations(function, 2)] == ["add"]


def test_signs_are_taken_in_by_sums():
    steps = operations(lambda x: [-(x[0] * x[1]) - x[2], x[2] - (-x[0]), -(3.0 * x[0])], 3)
    assert [step[0] for step in steps].count("neg") == 1  # -(a b + c)
    steps = operations(lambda x: [x[1] - x[0] * -x[2], -x[0] * -x[1]], 3)
    assert sorted(step[0] for step in steps) == ["add", "mul", "mul"]


def test_a_number_like_a_place_is_no_place():
    # 2.0 == 2 in Python, but one is a constant and the other an instruction
    program = record(lambda x: [2.0 * x[0], x[2] * x[0]], (3,))
    assert run(program, 5.0, 7.0, 11.0) == (10.0, 55.0)


def test_a_program_stops_growing_where_it_is_told_to():
    def grows(x):
        value = x[0]
        for _ in range(100):
            value = value * value + 1.0
        return [value]

    assert record(grows, (1,), most=300).operations == 200
    with pytest.raises(ProgramTooLarge):
        record(grows, (1,), most=150)


def test_a_branch_on_a_recorded_value_is_refused():
    with pytest.raises(TypeError, match="cannot decide a branch"):
        record(lambda x: [1.0 if x[0] else 0.0], (1,))


def test_vectors_and_matrices_are_recorded_as_they_are_computed():
    def function(x, y):
        return array([*cross(x, y), *(np.outer(x, y) @ x)])

    x, y = np.array([0.1, 0.2, 0.3]), np.array([-0.4, 0.5, 0.6])
    found = run(record(function, (3, 3)), *x, *y)
    assert np.allclose(found, [*np.cross(x, y), *(np.outer(x, y) @ x)], rtol=0, atol=ROUNDING)


def test_one_nan_makes_the_whole_result_nan():
    program = guarded(record(lambda x, p: [x[0] + p[0], 3.0, x[1] * x[0]], (3, 1)), 1)
    assert run(program, 1.0, 2.0, 5.0, 10.0) == (11.0, 3.0, 2.0)
    for place in range(3):
        entries = [1.0, 2.0, 5.0, 10.0]
        entries[place] = math.nan
        assert all(math.isnan(value) for value in run(program, *entries))


def test_nothing_is_added_where_every_result_depends_on_everything():
    program = record(lambda x: [x[0] * x[1], x[0] - x[1]], (2,))
    assert guarded(program, 1) is program
