# SPDX-License-Identifier: Apache-2.0
"""Whoever plays a recorded motion is first moved to its start, more slowly than the motion
itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from builtin_interfaces.msg import Time
from node_process import Conversation, refusal
from scipy.interpolate import BPoly
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_dynamics.description.motion_file import write_motion

PROGRAM = (sys.executable, "-m", "robot_dynamics.ros.executables", "trajectory_source")
TIMES = np.array([0.0, 1.0, 2.0])
Q = np.array([[0.5, -1.0], [0.7, -1.4], [0.5, -1.0]])
LEAD = 0.5


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "motion.yaml"
    write_motion(path, ("a", "b"), TIMES, Q, np.zeros((3, 2)), np.zeros((3, 2)))
    return str(path)


class Source(Conversation):
    """The node, and what it publishes."""

    def __init__(self, file: str, **parameters):
        super().__init__(PROGRAM, {"file": file, "lead": LEAD, **parameters})
        self.found: list[JointTrajectory] = []
        self.node.create_subscription(JointTrajectory, "joint_trajectory", self.found.append, 10)
        self.states = self.node.create_publisher(JointState, "joint_states", 10)
        self.stamps: list[tuple[int, int]] = []

    def state(self, *, time: Time | None = None, **position: float) -> None:
        message = JointState(name=list(position), position=list(position.values()))
        message.header.stamp = time or self.node.get_clock().now().to_msg()
        self.stamps.append((message.header.stamp.sec, message.header.stamp.nanosec))
        self.states.publish(message)

    def motion(self, **position: float) -> tuple[np.ndarray, np.ndarray]:
        """(times, states (k, 3, n)) of what it asks for when joints are there."""
        message = self.until(
            lambda: self.found, "a motion", meanwhile=lambda: self.state(**position)
        )[0]
        assert message.joint_names == ["a", "b"]
        stamp = message.header.stamp
        assert (stamp.sec, stamp.nanosec) in self.stamps
        times = [p.time_from_start.sec + p.time_from_start.nanosec / 1e9 for p in message.points]
        states = [[p.positions, p.velocities, p.accelerations] for p in message.points]
        return np.array(times), np.array(states)


def peak_rates(times: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Of quintics through states (k, 3, n)."""
    rate = BPoly.from_derivatives(times, states).derivative()
    return np.abs(rate(np.linspace(times[0], times[-1], 20_001))).max(axis=0)


def test_the_way_to_the_beginning_is_slower_than_the_motion(file):
    with Source(file) as source:
        # as many as there are subscribers and states, but one joint was never heard of
        source.until(
            lambda: source.states.get_subscription_count() and len(source.stamps) > 50,
            "states that go out",
            meanwhile=lambda: source.state(b=-1.0),
        )
        assert not source.found
        times, states = source.motion(c=9.0, b=-1.0, a=0.1)
        rest = np.zeros(2)
        np.testing.assert_array_equal(states[:2], [[[0.1, -1.0], rest, rest]] * 2)
        np.testing.assert_allclose(times[:2], [0.0, LEAD], atol=1e-9)
        np.testing.assert_allclose(states[2:, 0], Q, atol=1e-12)
        np.testing.assert_array_equal(states[2:, 1:], 0.0)
        np.testing.assert_allclose(times[2:] - times[2], TIMES, atol=1e-8)
        ratio = peak_rates(times[1:3], states[1:3])[0] / peak_rates(times[2:], states[2:])[0]
        np.testing.assert_allclose(ratio, 0.3, rtol=1e-6)
        assert source.stop() == 0


def test_a_robot_that_is_there_rests_for_the_lead_and_begins(file):
    with Source(file) as source:
        times, states = source.motion(a=0.5, b=-1.0)
        np.testing.assert_allclose(times, [0.0, *(LEAD + TIMES)], atol=1e-8)
        np.testing.assert_allclose(states[:, 0], [Q[0], *Q], atol=1e-12)


def test_the_first_moment_of_simulated_time_stamps_no_motion(file):
    """A stamp of zero would be another time for each who hears it."""
    with Source(file) as source:
        source.until(source.states.get_subscription_count, "the source")
        source.state(time=Time(), a=0.5, b=-1.0)
        source.spin(1.0)
        assert not source.found
        source.state(time=Time(nanosec=1_000_000), a=0.5, b=-1.0)
        message = source.until(lambda: source.found, "a motion")[0]
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 1_000_000)


def test_states_without_stamps_get_a_motion_without_one(file):
    with Source(file) as source:
        message = source.until(
            lambda: source.found,
            "a motion",
            meanwhile=lambda: source.state(time=Time(), a=0.5, b=-1.0),
        )[0]
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)


def test_a_swing_has_rested_at_its_start_since_the_first_state():
    """To a subscriber that is some states behind, it has begun; it needs no state to begin from."""
    swing = {"joints": ["a", "b"], "start": [0.5, -1.0], "swing": [1.0, 1.0], "cycles": [1.0, 1.0]}
    with Source("", **swing, subscribers=2) as source:
        source.until(source.states.get_subscription_count, "the source")
        for k in (1, 2, 3):
            source.state(time=Time(sec=k), a=0.5, b=-1.0)
        source.spin(0.5)
        assert not source.found  # a second subscriber is not there yet
        other: list[JointTrajectory] = []
        source.node.create_subscription(JointTrajectory, "joint_trajectory", other.append, 10)
        message = source.until(lambda: source.found, "a motion")[0]
        assert message.header.stamp == Time(sec=1)
        after = [p.time_from_start.sec + p.time_from_start.nanosec / 1e9 for p in message.points]
        assert after[:2] == [0.0, 2.0 + LEAD]
        assert all(list(p.positions) == [0.5, -1.0] for p in message.points[:2])
        assert after[-1] == pytest.approx(2.0 + LEAD + 4.0)


def test_a_file_and_a_swing_are_one_motion_too_many(file):
    line = refusal({"file": file, "start": [0.0, 0.0]}, PROGRAM)
    assert "defines which joints move (a, b) and how; leave" in line
