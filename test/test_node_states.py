"""States that come in parts, or without what others have: merged by name, and derived."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from node_bench import Bench as AnyBench
from node_bench import at, close, point, stamp
from robots import CONFIG
from sensor_msgs.msg import JointState
from test_node_behaviour import PENDULUM, torque

import robot_dynamics as rd
from robot_dynamics.ros.feed_forward.derivative import Derivative
from robot_dynamics.ros.feed_forward.diagnostics import Diagnosis

NAMES = ("theta1", "d2")


@pytest.fixture(scope="module")
def polar() -> rd.InverseDynamics:
    return rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"))


class Polar(AnyBench):
    def __init__(self, **values):
        super().__init__(str(CONFIG / "polar.yaml"), **values)
        self.command(0.0, point(qdd=[2.0, 1.0]), names=NAMES)


# In parts


def test_parts_make_one_state_each_with_its_own_stamps(polar):
    bench = Polar(merge_states=True)
    assert bench.state(0.10, 0.7, 0.1, names=["d2"]) is None
    close(
        bench.state(0.11, 0.3, 0.2, names=["theta1"], stamped=0.05),
        *polar([0.3, 0.7], [0.2, 0.1], [2.0, 1.0]),
    )
    # the other publisher's next one, stamped before the newest of all
    close(
        bench.state(0.13, 0.8, 0.0, names=["finger", "d2"][1:], stamped=0.12),
        *polar([0.3, 0.8], [0.2, 0.0], [2.0, 1.0]),
    )
    close(
        bench.state(0.14, 0.4, 0.0, names=["theta1"], stamped=0.06),
        *polar([0.4, 0.8], [0.0, 0.0], [2.0, 1.0]),
    )
    # and the same one is not taken twice out of order
    assert bench.state(0.15, 9.9, 0.0, names=["theta1"], stamped=0.04) is None
    assert bench.rejected() == {
        "joint_states: missing joint": 1,
        "joint_states: old stamp": 1,
    }


def test_a_joint_that_was_told_of_too_long_ago_is_missing_and_named(polar):
    bench = Polar(merge_states=True, max_age=0.5, command_timeout=0.0)
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.55, 0.3, 0.2, names=["theta1"]) is not None
    assert bench.state(0.65, 0.3, 0.2, names=["theta1"]) is None
    assert bench.rejected() == {"joint_states: joint too old": 1}
    assert "'d2' was told of 0.550 s ago" in bench.log[-1]
    ages = Diagnosis(0.0).report(bench.controller, False, at(0.7), 1.0).values
    assert ages["age of d2 (s)"] == "0.600"
    bench.state(0.7, 0.9, 0.0, names=["d2"])
    close(bench.state(0.71, 0.3, 0.2, names=["theta1"]), *polar([0.3, 0.9], [0.2, 0.0], [2.0, 1.0]))


def test_a_part_that_is_refused_leaves_nothing_behind(polar):
    bench = Polar(merge_states=True)
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.2, math.nan, 0.1, names=["d2"]) is None
    assert bench.state(0.2, [1.0, 2.0], 0.1, names=["d2", "theta1"]) is None
    assert bench.state(0.2, [1.0, 2.0], [0.0, 0.0], names=["d2", "d2"]) is None
    close(bench.state(0.21, 0.3, 0.2, names=["theta1"]), *polar([0.3, 0.7], [0.2, 0.1], [2.0, 1.0]))


def test_a_part_without_a_driven_joint_makes_no_torque_of_its_own():
    bench = AnyBench(str(CONFIG / "polar.yaml"), joints=["theta1"], merge_states=True)
    bench.command(0.0, point(qdd=2.0), names=["theta1"])
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.11, 0.9, 0.0, names=["d2"]) is None
    assert not bench.rejected()


def test_after_a_clock_that_was_set_back_every_joint_has_to_be_told_of_again():
    bench = Polar(merge_states=True, max_age=0.0)
    bench.state(10.0, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    bench.controller.clock_jumped_back(at(0.0))
    assert bench.state(0.1, 0.3, 0.2, names=["theta1"]) is None
    assert bench.rejected() == {"joint_states: missing joint": 1}


def test_an_empty_message_is_no_part():
    bench = Polar(merge_states=True)
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.2, [], [], names=[]) is None
    assert bench.rejected() == {"joint_states: missing joint": 1}


def test_without_merging_a_part_is_refused():
    bench = Polar()
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.2, 0.3, 0.2, names=["theta1"]) is None


# Derived


def test_a_derivative_is_exact_on_a_straight_line_and_late_by_its_filter_on_others():
    constant, step = 0.05, 0.001
    found = Derivative(np.zeros(2), 0)
    times = np.arange(step, 1.0, step)
    for t in times:
        x = np.array([3.0 * t, math.sin(2 * t)])
        found = found.next(x, round(t * 1e9), constant)
    t = times[-1] - constant - step / 2
    np.testing.assert_allclose(found.value, [3.0, 2 * math.cos(2 * t)], atol=0.01)


def test_a_derivative_begins_anew_after_a_gap_and_when_time_goes_back():
    first = Derivative(np.zeros(1), 10**9).next(np.ones(1), 10**9 + 10**7, 0.0)
    np.testing.assert_allclose(first.value, [100.0])
    assert first.next(np.ones(1), 3 * 10**9, 0.0).value is None
    assert first.next(np.ones(1), 10**9, 0.0).value is None
    # the same moment twice says nothing new
    assert first.next(np.full(1, 9.0), first.time, 0.0) is first


@pytest.mark.parametrize("velocity", [[], [math.nan]])
def test_rates_that_nobody_tells_are_refused_by_the_cause_or_derived(velocity):
    def message(now: float, q: float) -> JointState:
        found = JointState(name=["swing"], position=[q], velocity=velocity)
        found.header.stamp = stamp(now)
        return found

    bench = AnyBench(PENDULUM)
    bench.accelerate(0.0, 3.0)
    assert bench.controller.state(message(0.01, 0.4), at(0.01)) is None
    assert "missing_velocities" in bench.log[-1]

    bench = AnyBench(PENDULUM, missing_velocities="derive", derivative_filter=0.0)
    bench.accelerate(0.0, 3.0)
    assert bench.controller.state(message(0.01, 0.4), at(0.01)) is None
    assert bench.rejected() == {"joint_states: no velocities yet": 1}
    found = bench.controller.state(message(0.02, 0.41), at(0.02))
    np.testing.assert_allclose(found.values, [torque(0.41, 1.0, 3.0)], rtol=1e-9)
    # by the short way over the seam: this joint turns forever
    found = bench.controller.state(message(0.03, 0.42 - 2 * math.pi), at(0.03))
    np.testing.assert_allclose(found.values, [torque(0.42, 1.0, 3.0)], rtol=1e-9)
    told = Diagnosis(0.0).report(bench.controller, False, at(0.03), 1.0).values
    assert told["derived velocities are late by (s)"] == "0.0050"


def test_rates_that_are_told_are_not_derived_and_a_position_that_is_none_is_refused():
    bench = AnyBench(PENDULUM, missing_velocities="derive")
    bench.accelerate(0.0, 3.0)
    close(bench.state(0.01, 0.4, 0.2), torque(0.4, 0.2, 3.0))
    close(bench.state(0.02, 0.9, 0.2), torque(0.9, 0.2, 3.0))
    assert bench.state(0.03, math.nan, 0.2) is None
    assert bench.state(0.04, 0.9, math.inf) is None


def test_accelerations_of_a_stream_of_points_are_the_derivative_of_its_rates():
    bench = AnyBench(PENDULUM, missing_accelerations="derive", derivative_filter=0.0)
    for now, rate, expected in ((0.00, 0.0, 0.0), (0.01, 0.03, 3.0), (0.02, 0.01, -2.0)):
        bench.command(now, point(q=0.0, qd=rate))
        close(bench.state(now, 0.4, 0.2), torque(0.4, 0.2, expected))
    # one that is refused counts for nothing
    bench.command(0.03, point(q=0.0, qd=1e3))
    bench.command(0.04, point(q=0.0, qd=0.03))
    np.testing.assert_allclose(bench.state(0.04, 0.4, 0.2), [torque(0.4, 0.2, 1.0)], rtol=1e-9)
    bench.command(0.05, point(q=0.0))
    assert bench.rejected() == {"command: too quick": 1, "command: no velocities": 1}
