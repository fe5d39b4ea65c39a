# SPDX-License-Identifier: Apache-2.0
"""The residual: measured torques minus the model's, against a pendulum in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from node_bench import Bench, at, point, stamp
from robots import CONFIG
from sensor_msgs.msg import JointState
from test_node_behaviour import PENDULUM, torque

import robot_dynamics as rd
from robot_dynamics.errors import InputError
from robot_dynamics.ros.feed_forward.diagnostics import OK, WARN, Diagnosis
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

STEP = 0.002


class Swinging(Bench):
    """A pendulum that swings as it is pushed."""

    def __init__(self, **values):
        super().__init__(PENDULUM, residual=True, residual_filter=0.05, **values)

    def swing(self, begin: float, end: float, push: float = 0.0) -> list[float]:
        found = []
        for t in np.arange(begin, end, STEP):
            q, qd, qdd = math.sin(3 * t), 3 * math.cos(3 * t), -9 * math.sin(3 * t)
            message = JointState(name=["camera", "swing"], position=[0.0, q], velocity=[0.0, qd])
            message.effort = [9.9, torque(q, qd, qdd) + push]
            message.header.stamp = stamp(t)
            self.controller.state(message, at(t))
            if self.controller.residual.at is not None:
                assert self.controller.residual.at == at(t)
                found.append(float(self.controller.residual.value[0]))
        return found


def test_a_right_model_leaves_nothing_and_a_push_is_what_is_left():
    bench = Swinging()
    free = bench.swing(0.0, 1.0)
    assert len(free) == 499, "every state but the first"
    # INERTIA · qddd · STEP / 2 is what half a period's delay leaves
    np.testing.assert_allclose(free, 0.0, atol=0.02)
    pushed = bench.swing(1.0, 2.0, push=2.0)
    assert pushed[0] < 0.2, "behind its filter"
    np.testing.assert_allclose(pushed[25] / 2.0, 1 - math.exp(-1), atol=0.03)
    np.testing.assert_allclose(pushed[-100:], 2.0, atol=0.02)


def test_it_is_there_without_a_command_and_its_threshold_is_a_warning():
    bench = Swinging(residual_threshold=1.0)
    bench.swing(0.0, 0.5)
    report = Diagnosis(0.0).report(bench.controller, False, at(0.5), 0.5)
    assert (report.level, bench.controller.commands.phase) == (OK, "waiting")
    assert float(report.values["residual (N·m or N)"]) < 0.05
    bench.swing(0.5, 1.5, push=-3.0)
    report = Diagnosis(0.0).report(bench.controller, False, at(1.5), 1.5)
    assert report.level == WARN
    assert "mostly at 'swing', above 1" in report.message
    assert float(report.values["residual (N·m or N)"]) == pytest.approx(3.0, abs=0.02)


def test_a_state_without_measured_torques_has_no_residual_and_its_torques_all_the_same():
    bench = Swinging()
    bench.swing(0.0, 0.1)
    bench.command(0.1, point(qdd=1.0))
    assert bench.state(0.1, 0.4, 0.2) is not None
    assert bench.controller.residual.at is None
    assert "the residual needs the measured torque of every joint" in bench.log[-1]
    assert bench.swing(0.102, 0.2)


class Parts(Bench):
    """A polar robot in motion, whose joints are told of by two publishers."""

    def __init__(self, **values):
        file = str(CONFIG / "polar.yaml")
        super().__init__(file, merge_states=True, **values)
        self.dynamics = rd.InverseDynamics(rd.load(file))
        # when, what was found, and what it has to be
        self.found: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.torques: list[tuple[float, np.ndarray, np.ndarray]] = []

    acceleration = np.array([1.5, -0.8])

    def motion(self, t: float) -> np.ndarray:
        """q, qd, qdd: parabolas, so that a difference of rates is the acceleration."""
        rate, qdd = np.array([0.4, 0.1]), self.acceleration
        return np.array([[0.1, 0.7] + rate * t + qdd * t**2 / 2, rate + qdd * t, qdd])

    def play(self, end: float, push: np.ndarray, *, velocities: bool = True) -> None:
        # theta1 every 10 ms, d2 every 4 ms, often a moment before
        times = [(round(t, 4), 0) for t in np.arange(0.01, end, 0.010)]
        times += [(round(t, 4), 1) for t in np.arange(0.0099, end, 0.004)]
        known, heard = np.full((3, 2), np.nan), [0, 0]
        for t, joint in sorted(times):
            q, qd, qdd = self.motion(t)
            effort = self.dynamics(q, qd, qdd) + push
            known[:, joint] = q[joint], qd[joint], effort[joint]
            heard[joint] += 1
            message = JointState(name=[("theta1", "d2")[joint]], position=[q[joint]])
            message.velocity = [qd[joint]] if velocities else []
            message.effort = [effort[joint]]
            message.header.stamp = stamp(t)
            if (out := self.controller.state(message, at(t))) is not None:
                self.torques.append((t, out.values, self.dynamics(*known[:2], np.zeros(2))))
            residual = self.controller.residual
            if residual is not None and residual.at is not None:
                assert min(heard) >= 2
                left = known[2] - self.dynamics(*known[:2], self.acceleration)
                self.found.append((t, residual.value, left))


EXACT = 1e-9
"""N·m and N: stamps are whole nanoseconds, 4 ms apart"""


def test_states_in_parts_leave_what_is_left_with_accelerations_of_each_joints_own_times():
    bench = Parts(residual=True, residual_filter=0.0)
    bench.play(1.0, np.array([0.5, -2.0]))
    assert len(bench.found) > 300, "with every part that is new"
    for t, value, left in bench.found:
        np.testing.assert_allclose(value, left, atol=EXACT, err_msg=str(t))
        # each joint's reading is of its own time
        assert np.abs(left - [0.5, -2.0]).max() < 0.2


def test_rates_of_states_in_parts_are_derived_by_each_publishers_own_times():
    bench = Parts(missing_velocities="derive", derivative_filter=0.0, command_timeout=0.0)
    bench.acceleration = np.zeros(2)
    bench.command(0.0, point(qdd=[0.0, 0.0]), names=("theta1", "d2"))
    bench.play(0.5, np.zeros(2), velocities=False)
    assert len(bench.torques) > 150
    for t, values, expected in bench.torques:
        np.testing.assert_allclose(values, expected, atol=EXACT, err_msg=str(t))


def parabola(bench: Bench, t: float, push: float):
    """The residual after a state of a motion of one acceleration; None: there is none of it."""
    q, qd, qdd = 0.1 + 0.4 * t + t * t, 0.4 + 2 * t, 2.0
    message = JointState(name=["swing"], position=[q], velocity=[qd])
    message.effort = [torque(q, qd, qdd) + push]
    message.header.stamp = stamp(t)
    bench.controller.state(message, at(t))
    found = bench.controller.residual
    return None if found.at is None else float(found.value[0])


def test_after_a_pause_the_residual_begins_anew():
    bench = Bench(PENDULUM, residual=True, residual_filter=1.0)
    for k in range(10):
        found = parabola(bench, 0.01 * k, 3.0)
    np.testing.assert_allclose(found, 3.0, rtol=1e-9)
    # the rate of before the pause says nothing about the acceleration after it
    assert parabola(bench, 0.7, -4.0) is None
    np.testing.assert_allclose(parabola(bench, 0.71, -4.0), -4.0, rtol=1e-9)


def test_of_a_recording_that_starts_over_the_residual_begins_anew():
    bench = Bench(PENDULUM, residual=True, residual_filter=0.05, max_age=0.0)
    for begin, effort in ((0.0, 1.0), (9.0, 5.0)):
        for t in np.arange(0.0, 1.0, 0.01):
            message = JointState(name=["swing"], position=[0.0], velocity=[0.0])
            message.effort = [effort if t > 0.5 else 0.0]
            message.header.stamp = stamp(t)
            bench.controller.state(message, at(begin + t))
        np.testing.assert_allclose(bench.controller.residual.value, effort, rtol=1e-3)


def test_after_a_clock_that_was_set_back_the_residual_begins_anew():
    bench = Bench(PENDULUM, residual=True, residual_filter=0.0)
    for k in range(10):
        parabola(bench, 50.0 + 0.01 * k, 3.0)
    bench.controller.clock_jumped_back(at(0.0))
    assert parabola(bench, 0.01, -4.0) is None
    for k in range(2, 5):
        np.testing.assert_allclose(parabola(bench, 0.01 * k, -4.0 * k), -4.0 * k, rtol=1e-9)


def test_a_burst_of_states_makes_no_residual_of_its_own():
    bench = Bench(PENDULUM, residual=True, residual_filter=0.0)
    for k in range(30):
        parabola(bench, 0.01 * k, 3.0)
    # measured 50 µs later; the rate has a count's noise
    t = 0.29 + 5e-5
    q, qd = 0.1 + 0.4 * t + t * t, 0.4 + 2 * t + 0.01
    message = JointState(name=["swing"], position=[q], velocity=[qd])
    message.effort = [torque(q, qd, 2.0) + 3.0]
    message.header.stamp = stamp(t)
    bench.controller.state(message, at(t))
    np.testing.assert_allclose(bench.controller.residual.value, 3.0, rtol=1e-6)


def test_states_without_stamps_are_by_the_times_of_sending_however_late_they_are_read():
    bench = Bench(PENDULUM, residual=True, residual_filter=0.0)
    found, step = [], 0.01
    for k in range(80):
        t = step * k
        q, qd, qdd = 0.1 + 0.4 * t + t * t, 0.4 + 2 * t, 2.0
        message = JointState(name=["swing"], position=[q], velocity=[qd])
        message.effort = [torque(q, qd, qdd) + 3.0]
        # four at a time
        bench.controller.state(message, at(4 * step * (k // 4) + 1e-5 * (k % 4)), at(5000.0 + t))
        if bench.controller.residual.at is not None:
            found.append(float(bench.controller.residual.value[0]))
    assert len(found) > 50
    np.testing.assert_allclose(found, 3.0, rtol=1e-6)


def test_a_part_without_measured_torques_is_named():
    bench = Parts(residual=True)
    for k in range(3):
        bench.state(0.01 * k, 0.3, 0.2, names=["theta1"])
        bench.state(0.01 * k, 0.7, 0.1, names=["d2"])
    assert bench.controller.residual.at is None
    assert "effort of 'theta1' is nan" in bench.log[-1]


@pytest.mark.parametrize("values", [{"feedback": "commanded"}, {"side": "drive"}])
def test_it_needs_measured_joints(values):
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    with pytest.raises(InputError, match=r"^residual: "):
        Model(ModelSpec(mechanism, Settings.of({"residual": True} | values)))


def test_over_topics_it_comes_named_and_stamped_and_without_a_command():
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    from node_process import Partner
    from rclpy.qos import qos_profile_sensor_data

    file = str(CONFIG / "polar.yaml")
    dynamics = rd.InverseDynamics(rd.load(file))
    q, still = [0.3, 0.7], np.zeros(2)
    effort = dynamics(q, still, still) + np.array([0.5, -2.0])
    with Partner(description=file, residual=True, max_age=20.0) as partner:
        out: list[JointState] = []
        partner.node.create_subscription(
            JointState, "/feed_forward/residual", out.append, qos_profile_sensor_data
        )

        def publish():
            message = JointState(name=["d2", "theta1"], position=q[::-1], velocity=[0.0, 0.0])
            message.effort = effort[::-1].tolist()
            message.header.stamp = partner.node.get_clock().now().to_msg()
            partner.states_out.publish(message)

        partner.until(lambda: len(out) > 3, "the residual", meanwhile=publish)
        assert list(out[-1].name) == ["theta1", "d2"]
        np.testing.assert_allclose(out[-1].effort, [0.5, -2.0], rtol=1e-9)
        assert out[-1].header.stamp.sec > 0
        partner.until(lambda: "residual is largest at" in partner.counts(), "diagnostics of it")
        assert partner.counts()["residual is largest at"] == "d2"
