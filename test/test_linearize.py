# SPDX-License-Identifier: Apache-2.0
"""A and B are the derivatives of forward dynamics, by oracles that know nothing about them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from robots import CONFIG, random_urdf

import robot_dynamics as rd
from robot_dynamics.app.cli import main

STEP = 1e-6


def slopes(f, x):
    """∂f/∂x by central differences, (rows, columns)."""
    return np.stack([(f(x + e) - f(x - e)) / (2 * STEP) for e in STEP * np.eye(len(x))], axis=-1)


@pytest.mark.parametrize("name", ["polar", "cartesian", "three_axis", "five_bar", "rrr", "delta"])
def test_a_and_b_are_the_slopes_of_forward_dynamics(name):
    dynamics = rd.InverseDynamics(
        rd.load(CONFIG / f"{name}.yaml"), friction_smoothing=0.1, backend="python"
    )
    n = len(dynamics.joint_names)
    rng = np.random.default_rng(3)
    q = rng.uniform(0.2, 0.6, n) if dynamics.closed is None else dynamics.closed.home.q_a + 0.01
    qd = rng.uniform(-0.5, 0.5, n)
    tau = dynamics(q, qd, rng.uniform(-1, 1, n))
    found = dynamics.linearize(q, qd, tau)

    def rate(x):
        return np.concatenate([x[n : 2 * n], dynamics.forward(x[:n], x[n : 2 * n], x[2 * n :])])

    expected = slopes(rate, np.concatenate([q, qd, tau]))
    both = np.concatenate([found.A, found.B], axis=1)
    assert np.abs(both - expected).max() <= 1e-6 * max(1.0, np.abs(expected).max())
    assert np.allclose(found.qdd, rate(np.concatenate([q, qd, tau]))[n:])
    assert found.state_names[n:] == tuple(f"d/dt {each}" for each in dynamics.joint_names)


def test_a_and_b_are_pinocchios(tmp_path: Path):
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed: extra `dev`")
    for seed in range(4):
        file = tmp_path / "robot.urdf"
        file.write_text(random_urdf(seed, 5))
        dynamics = rd.InverseDynamics(rd.load(file), terms=("inertia", "coriolis", "gravity"))
        model = pin.buildModelFromUrdf(str(file))
        data = model.createData()
        order = [model.joints[model.getJointId(name)].idx_v for name in dynamics.joint_names]
        n = model.nv
        rng = np.random.default_rng(seed)
        q, qd, tau = rng.uniform(-1, 1, (3, n))
        theirs = [x[order] for x in (q, qd, tau)]
        neutral = pin.neutral(model)
        where = pin.integrate(model, neutral, q)
        pin.computeABADerivatives(model, data, where, qd, tau)
        grid = np.ix_(order, order)
        expected = np.hstack([x[grid] for x in (data.ddq_dq, data.ddq_dv, data.Minv)])
        found = dynamics.linearize(*theirs)
        lower = np.hstack([found.A[n:], found.B[n:]])
        # Pinocchio gives the upper triangle of the inverse alone
        upper = np.triu(data.Minv)
        expected[:, 2 * n :] = (upper + np.triu(upper, 1).T)[grid]
        assert np.abs(lower - expected).max() <= 1e-9 * np.abs(expected).max()


def test_about_a_motion_each_row_is_that_of_its_state():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "three_axis.yaml"), backend="python")
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 7, 3))
    whole = dynamics.linearize(q, qd, dynamics(q, qd, qdd))
    assert whole.A.shape == (7, 6, 6)
    assert whole.B.shape == (7, 6, 3)
    assert np.allclose(whole.qdd, qdd)
    for k in range(7):
        one = dynamics.linearize(q[k], qd[k], dynamics(q[k], qd[k], qdd[k]))
        assert np.allclose(one.A, whole.A[k], rtol=1e-11, atol=1e-11)
        assert np.allclose(one.B, whole.B[k], rtol=1e-11, atol=1e-11)


def test_the_state_of_a_linearization_stays_though_the_callers_arrays_change():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), backend="python")
    q, qd, tau = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    found = dynamics.linearize(q, qd, tau)
    for each in (q, qd, tau):
        each[:] = 7.0
    assert (found.q.tolist(), found.qd.tolist()) == ([0.1, 0.2], [0.3, 0.4])
    assert found.tau.tolist() == [0.5, 0.6]


@pytest.mark.filterwarnings("ignore::robot_dynamics.errors.ClosureWarning")
def test_states_that_cannot_be_reached_have_no_poles_and_the_others_theirs():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "five_bar.yaml"), backend="python")
    home = dynamics.home
    q = np.array([home, home + np.array([3.0, -3.0]), home + 0.1])
    assert np.isnan(dynamics(q, 0 * q, 0 * q)).any(axis=1).tolist() == [False, True, False]
    poles = dynamics.linearize(q, 0 * q, 0 * q).poles
    assert np.isnan(poles).all(axis=1).tolist() == [False, True, False]
    for k in (0, 2):
        alone = dynamics.linearize(q[k], 0 * home, 0 * home).poles
        np.testing.assert_allclose(np.sort_complex(poles[k]), np.sort_complex(alone), atol=1e-9)


def test_a_pendulum_that_hangs_swings_at_the_known_frequency(tmp_path):
    file = tmp_path / "pendulum.yaml"
    file.write_text(
        "robot: pendulum\nlinks:\n  - {name: rod, joint: {name: q, type: revolute}, alpha: 0, "
        "origin: {rpy: [pi/2, 0, 0]}, mass: 2.0, center_of_mass: [0, -0.5, 0]}\n"
    )
    found = rd.InverseDynamics(rd.load(file), backend="python").linearize([0.0])
    # ω² = g/l
    assert sorted(found.poles.imag) == pytest.approx([-((9.81 / 0.5) ** 0.5), (9.81 / 0.5) ** 0.5])
    assert found.B[1, 0] == pytest.approx(1 / (2.0 * 0.25))
    assert (found.state_units, found.input_units) == (("rad", "rad/s"), ("N·m",))
    assert found.tau == pytest.approx([0.0])


def test_motors_that_work_against_each_other_are_refused_and_those_that_share_are_not(tmp_path):
    text = (CONFIG / "five_bar.yaml").read_text()
    assert "actuated: [qa1, qa2]" in text
    file = tmp_path / "three_motors.yaml"
    text = text.replace("actuated: [qa1, qa2]", "actuated: [qa1, qa2, qp1]")
    file.write_text("\n".join(line for line in text.split("\n") if not line.startswith("sensed")))
    dynamics = rd.InverseDynamics(rd.load(file), backend="python", friction_smoothing=0.1)
    assert len(dynamics.actuated_names) == 3
    q = dynamics.closed.home.q_a
    qd = np.array([0.2, -0.1])
    tau = dynamics(q, qd, [0.5, 0.3])
    found = dynamics.linearize(q, qd, tau)

    def forces(q_, x):
        A = dynamics.closed.motor_rates(dynamics.closed.forward_kinematics(q_))
        return A.T @ x

    def acceleration(x):
        return dynamics.forward(x[:2], x[2:4], tau)

    expected = slopes(acceleration, np.concatenate([q, qd]))
    assert np.abs(found.A[2:] - expected).max() <= 1e-6 * np.abs(expected).max()
    # what does no work: in the kernel of Aᵀ
    idle = np.linalg.svd(dynamics.closed.motor_rates(dynamics.closed.forward_kinematics(q)).T)[2][
        -1
    ]
    assert np.allclose(forces(q, idle), 0, atol=1e-12)
    with pytest.raises(rd.InputError, match="internal forces"):
        dynamics.linearize(q, qd, tau + 5 * idle)


def test_with_sensors_torques_do_not_fix_the_motion():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "rrr.yaml"), sensed=True, backend="python")
    with pytest.raises(rd.InputError, match="sensed"):
        dynamics.linearize(dynamics.closed.home.q_r[:6])


def test_the_command_prints_names_units_and_poles(capsys):
    file = str(CONFIG / "polar.yaml")
    assert main(["linearize", file, "--q", "0.3", "0.7", "--qd", "1", "0"]) == 0
    out = capsys.readouterr().out
    assert "theta1" in out
    assert "rad/s" in out
    assert main(["linearize", file, "--q", "0.3", "0.7", "--qd", "1", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = rd.InverseDynamics(rd.load(file)).linearize([0.3, 0.7], [1.0, 0.0])
    assert np.array(found["A"]) == pytest.approx(expected.A)
    assert np.array(found["B"]) == pytest.approx(expected.B)
    assert found["states"] == list(expected.state_names)


def test_the_command_linearizes_about_a_motion(tmp_path, capsys):
    motion, out = tmp_path / "motion.csv", tmp_path / "ab.npz"
    time = np.linspace(0, 1, 21)
    rows = np.column_stack([time, np.sin(time), 0.5 + 0.1 * time, np.cos(time), 0.1 + 0 * time])
    head = "time,theta1/position,d2/position,theta1/velocity,d2/velocity"
    np.savetxt(motion, rows, delimiter=",", header=head, comments="")
    arguments = ["linearize", str(CONFIG / "polar.yaml"), "--motion", str(motion)]
    assert main([*arguments, "--out", str(out)]) == 0
    assert "ab.npz" in capsys.readouterr().out
    with np.load(out) as found:
        assert found["A"].shape == (21, 4, 4)
        assert found["B"].shape == (21, 4, 2)
        assert list(found["states"]) == ["theta1", "d2", "d/dt theta1", "d/dt d2"]
        assert np.allclose(found["q"], rows[:, 1:3])


def test_a_motion_is_read_as_the_options_say(tmp_path, capsys):
    """A trajectory is sampled at --step, and without a motion the option is refused."""
    plan, out = tmp_path / "plan.yaml", tmp_path / "ab.npz"
    plan.write_text(
        "joint_names: [a, d2]\npoints:\n"
        "  - {positions: [0, 0.5], velocities: [0, 0], time_from_start: {sec: 0, nanosec: 0}}\n"
        "  - {positions: [1, 0.6], velocities: [0, 0], time_from_start: {sec: 1, nanosec: 0}}\n"
    )
    polar = str(CONFIG / "polar.yaml")
    arguments = ["linearize", polar, "--motion", str(plan), "--out", str(out)]
    assert main([*arguments, "--rename", "a:theta1"]) == 1
    assert "missing joints: theta1" in capsys.readouterr().err
    plan.write_text(plan.read_text().replace("[a, d2]", "[theta1, d2]"))
    assert main([*arguments, "--step", "0.25"]) == 0
    with np.load(out) as found:
        assert found["time"] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    capsys.readouterr()
    assert main(["linearize", polar, "--step", "0.25", "--topic", "x"]) == 1
    assert "--step, --topic: expected only with --motion" in capsys.readouterr().err
    assert main(["linearize", polar, "--rename", "a:b"]) == 1


def test_a_motion_whose_states_the_robot_cannot_have_is_refused(tmp_path, capsys):
    plan, out, time = tmp_path / "plan.csv", tmp_path / "out.npz", np.linspace(0, 1, 20)
    columns = np.column_stack([time, 100 + time, 100 - time])
    np.savetxt(plan, columns, delimiter=",", header="time,qa1/position,qa2/position", comments="")
    arguments = ["linearize", str(CONFIG / "five_bar.yaml"), "--motion", str(plan)]
    assert main([*arguments, "--out", str(out)]) == 1
    assert "the robot cannot reach any of its states" in capsys.readouterr().err
    assert not out.exists()
