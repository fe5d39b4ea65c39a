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


def test_the_model_for_acados_is_zero_along_the_robots_motion():
    module = example("acados_reach", "casadi")
    import casadi

    mechanism = rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    found = module.expressions(mechanism)
    state = [found[name] for name in ("x", "xdot", "u")]
    implicit = casadi.Function("implicit", state, [found["implicit"]])
    explicit = casadi.Function("explicit", [state[0], state[2]], [found["explicit"]])
    dynamics = rd.InverseDynamics(mechanism, friction_smoothing=0.05)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    tau = dynamics(q, qd, qdd)
    x, xdot = np.concatenate([q, qd]), np.concatenate([qd, qdd])
    size = abs(tau).max()
    np.testing.assert_allclose(implicit(x, xdot, tau).full().ravel(), 0.0, atol=1e-12 * size)
    np.testing.assert_allclose(implicit(x, xdot + 1, 0 * tau).full().ravel()[:6], -1.0, atol=1e-15)
    np.testing.assert_allclose(explicit(x, tau).full().ravel(), xdot, rtol=1e-9, atol=1e-9)


def test_acados_solves_with_the_model(tmp_path):
    pytest.importorskip("acados_template", reason="acados is not installed")
    from scipy.integrate import solve_ivp

    module = example("acados_reach", "casadi")
    x, tau = module.solve(tmp_path)
    mechanism = rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    dynamics = rd.InverseDynamics(mechanism, friction_smoothing=0.05)
    limits = [link.joint.limits.effort for link in mechanism.moving]
    assert (abs(tau) <= np.array(limits) * (1 + 1e-6)).all()
    np.testing.assert_allclose(x[-1, :6], module.END, atol=1e-2)
    # its stages are the robot's motion under these torques
    for k in range(module.STAGES):
        slope = lambda t, y, u=tau[k]: [*y[6:], *dynamics.forward(y[:6], y[6:], u)]  # noqa: E731
        step = module.HORIZON / module.STAGES
        end = solve_ivp(slope, (0, step), x[k], rtol=1e-9, atol=1e-9).y[:, -1]
        np.testing.assert_allclose(x[k + 1], end, atol=2e-3)
