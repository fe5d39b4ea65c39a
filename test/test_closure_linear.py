# SPDX-License-Identifier: Apache-2.0
"""Linear equations without a search for pivots, and T by them: NumPy's own are the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.closure import ClosedChain
from robot_dynamics.closure.geometry.independent_rows import Tangent
from robot_dynamics.closure.geometry.linear import Dense, Eliminated, Orthogonalised, pivots

SAME = 1e-12
RNG = np.random.default_rng(0)
TALL, SQUARE = RNG.normal(size=(7, 4)), RNG.normal(size=(4, 4))
SCALE = np.array([1.0, 0.2, 3.0, 1.0])


def solver_of(kind: str, A: np.ndarray):
    if kind == "dense":
        return Dense(np.linalg.pinv(A))
    if kind == "orthogonalised":
        return Orthogonalised(A, SCALE)
    return Eliminated(A, pivots([A * SCALE]), SCALE)


@pytest.mark.parametrize(
    ("kind", "A"), [("dense", TALL), ("orthogonalised", TALL), ("eliminated", SQUARE)]
)
def test_solutions_are_least_squares_in_any_scale(kind, A):
    b = np.random.default_rng(1).normal(size=(len(A), 3))
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    solver = solver_of(kind, A)
    np.testing.assert_allclose(solver.solve(b), expected, rtol=SAME, atol=SAME)
    np.testing.assert_allclose(solver.solve(b[:, 1]), expected[:, 1], rtol=SAME, atol=SAME)
    assert solver.solve(b[:, :0]).shape == (4, 0)


@pytest.mark.parametrize("kind", ["dense", "orthogonalised"])
def test_normal_equations_are_solved_in_any_scale(kind):
    c = np.random.default_rng(2).normal(size=4)
    expected = np.linalg.inv(TALL.T @ TALL) @ c
    found = solver_of(kind, TALL).solve_normal(c)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=SAME)


@pytest.mark.parametrize("kind", ["dense", "orthogonalised"])
def test_the_rate_of_T_is_its_slope_where_the_closures_say_too_much(kind):
    rng = np.random.default_rng(3)
    J, J_rate, step = rng.normal(size=(7, 6)), rng.normal(size=(7, 6)), 1e-6

    def at(t: float) -> Tangent:
        now = J + t * J_rate
        return Tangent(now, 2, solver_of(kind, now[:, 2:]))

    slope = (at(step).matrix - at(-step).matrix) / (2 * step)
    np.testing.assert_allclose(at(0.0).rate(J_rate), slope, atol=1e-8)
    # T q̇ keeps the motors' rates, and leaves the least of J T q̇
    T = at(0.0).matrix
    assert np.array_equal(T[:2], np.eye(2))
    np.testing.assert_allclose(J[:, 2:].T @ (J @ T), 0.0, atol=SAME)


def test_newtons_steps_are_measured_by_each_joints_scale():
    chain = ClosedChain(rd.load(CONFIG / "delta.yaml"), terms=(), sensed=True, backend="python")
    model, k = chain.model, chain.model.known
    scale = np.asarray(model.closure.column_scale, dtype=float)[k:]
    assert scale.min() != scale.max()  # the free platform slides
    q_r = np.array(chain.home.q_r)
    q_r[k:] += 1e-3 * scale * np.random.default_rng(4).uniform(-1, 1, len(scale))
    off = np.asarray(model.closure.residual(q_r), dtype=float)
    A = np.asarray(model.closure.jacobian(q_r), dtype=float)[:, k:] * scale
    step = np.linalg.lstsq(A, -off, rcond=None)[0]
    newton = model.closure.corrected(q_r, k, 1)
    np.testing.assert_allclose(newton.q_r[k:], q_r[k:] + scale * step, rtol=SAME, atol=1e-13)
    assert newton.squares[0] == pytest.approx(step @ step, rel=1e-9)
