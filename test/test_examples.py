# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say, on a small scale."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import robot_dynamics as rd

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str, library: str) -> ModuleType:
    pytest.importorskip(library, reason=f"{library} is not installed")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_least_effort_is_a_motion_of_the_robot_within_its_limits():
    module = example("casadi_least_effort", "casadi")
    motion = module.solve(intervals=12)
    mechanism = rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    dynamics = rd.InverseDynamics(mechanism, friction_smoothing=0.05)
    tau = dynamics(*(motion[name].T for name in ("q", "qd", "qdd")))
    np.testing.assert_allclose(motion["tau"].T, tau, atol=1e-6)
    assert (np.abs(tau) <= motion["limits"] * (1 + 1e-6)).all()
    np.testing.assert_allclose(motion["q"][:, 0], module.START, atol=1e-8)
    np.testing.assert_allclose(motion["q"][:, -1], module.END, atol=1e-8)
    # no straight motion with the same boundary conditions takes less
    t = np.linspace(0, 1, 13)[:, None]
    path = (
        10 * t**3 - 15 * t**4 + 6 * t**5,
        30 * t**2 * (1 - t) ** 2,
        60 * t - 180 * t**2 + 120 * t**3,
    )
    step = module.END - module.START
    q, qd, qdd = (x * step / module.DURATION**k for k, x in enumerate(path))
    straight = (dynamics(module.START + q, qd, qdd) / motion["limits"]) ** 2
    assert motion["cost"] < straight.sum() * module.DURATION / 12


def test_the_gradient_through_rollouts_is_that_of_finite_differences():
    module = example("jax_gains", "jax")
    import jax

    cost = jax.jit(module.cost_of_gains(rollouts=4, steps=20))
    gains = np.array([[50.0, 60.0], [5.0, 7.0]])
    slope = jax.grad(cost)(gains)
    for i in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[i] = 1e-3
        by_difference = (cost(gains + step) - cost(gains - step)) / 2e-3
        np.testing.assert_allclose(slope[i], by_difference, rtol=1e-5)


def test_the_network_explains_what_the_model_does_not():
    before, after = example("torch_residual", "torch").train(samples=400, epochs=60)
    assert after < 0.8 * before
