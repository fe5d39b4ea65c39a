"""polar.launch.py with the simulated robot: a commanded motion gets the torques of [5.17]."""

from __future__ import annotations

import os
import time
import unittest
from importlib.util import find_spec

import pytest

pytest.importorskip(
    "launch_testing",
    reason="launch_testing is part of ROS 2 and not on PyPI: on a ROS 2 machine `colcon test` "
    "runs this test",
)

import launch_testing.actions
import launch_testing.asserts
import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# what is launched is alone in its domain
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

PATIENCE = 60.0
"""s until the test gives up: far beyond what a loaded machine needs"""
M1, L1, M2 = 10.0, 0.5, 5.0
SWING = np.array([0.8, 0.3])
DURATION = 2
"""s of the motion: a cubic from rest to rest"""
SECOND = 1_000_000_000
ROUNDING = 1e-9
"""Relative: the trajectory's time passes through floats of s"""


@pytest.mark.launch_test
def generate_test_description() -> LaunchDescription:
    polar = PathJoinSubstitution([FindPackageShare("robot_dynamics"), "launch", "polar.launch.py"])
    arguments = {"sim": "true", "controller": "arm_controller"}
    return LaunchDescription(
        [
            IncludeLaunchDescription(polar, launch_arguments=arguments.items()),
            launch_testing.actions.ReadyToTest(),
        ]
    )


def nanoseconds(stamp: Time) -> int:
    return stamp.sec * SECOND + stamp.nanosec


with_simulator = unittest.skipUnless(find_spec("mujoco"), "mujoco is not installed: extra `sim`")


@with_simulator
class TestWhileItRuns(unittest.TestCase):
    def setUp(self):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("watcher", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.states: dict[int, JointState] = {}
        self.efforts: dict[int, JointState] = {}
        self.commands: list[list[float]] = []
        subscribe = self.node.create_subscription
        subscribe(JointState, "joint_states", self.keep(self.states), 100)
        subscribe(JointState, "feed_forward/effort", self.keep(self.efforts), 100)
        subscribe(
            Float64MultiArray,
            "arm_controller/commands",
            lambda message: self.commands.append(list(message.data)),
            100,
        )
        self.command = self.node.create_publisher(JointTrajectory, "feed_forward/command", 10)

    def tearDown(self):
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    @staticmethod
    def keep(messages: dict[int, JointState]):
        return lambda message: messages.update({nanoseconds(message.header.stamp): message})

    def until(self, done, what: str):
        deadline = time.monotonic() + PATIENCE
        while not done():
            seen = f"{len(self.states)} states, {len(self.efforts)} efforts, {self.commands[-1:]}"
            assert time.monotonic() < deadline, f"waited for {what}; there were {seen}"
            self.executor.spin_once(timeout_sec=0.05)

    def test_every_state_of_a_motion_gets_its_torque(self):
        self.until(lambda: self.states, "joint states")
        # the simulated robot and the node
        self.until(lambda: self.command.get_subscription_count() >= 2, "both that follow")
        newest = self.states[max(self.states)]
        place = {name: k for k, name in enumerate(newest.name)}
        start = max(self.states) + SECOND // 2
        home = np.array([newest.position[place[name]] for name in ("theta1", "d2")])
        points = [
            JointTrajectoryPoint(
                positions=(home + part * SWING).tolist(),
                velocities=[0.0, 0.0],
                time_from_start=Duration(sec=part * DURATION),
            )
            for part in (0, 1)
        ]
        message = JointTrajectory(joint_names=["theta1", "d2"], points=points)
        message.header.stamp = Time(sec=start // SECOND, nanosec=start % SECOND)
        self.command.publish(message)
        self.until(
            lambda: self.states and max(self.states) > start + DURATION * SECOND,
            "the end of the motion",
        )
        compared = 0
        for stamp in sorted(self.efforts.keys() & self.states.keys()):
            u = (stamp - start) / SECOND / DURATION
            if not 0 <= u < 1:
                continue
            state, found = self.states[stamp], self.efforts[stamp]
            (_, d2), (theta1_rate, d2_rate) = (
                [values[place[name]] for name in ("theta1", "d2")]
                for values in (state.position, state.velocity)
            )
            qdd = (6 - 12 * u) / DURATION**2 * SWING
            expected = [
                (M1 * L1**2 + M2 * d2**2) * qdd[0] + 2 * M2 * d2 * d2_rate * theta1_rate,
                M2 * qdd[1] - M2 * d2 * theta1_rate**2,
            ]
            assert list(found.name) == ["theta1", "d2"]
            np.testing.assert_allclose(found.effort, expected, rtol=ROUNDING, atol=ROUNDING)
            assert list(found.effort) in self.commands
            compared += 1
        assert compared > 100
        moved = self.states[max(self.states)].position[place["d2"]] - home[1]
        assert abs(moved) > 0.01, "the simulated robot takes the torques"


@launch_testing.post_shutdown_test()
@with_simulator
class TestAfterItEnded(unittest.TestCase):
    def test_all_ended_well(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)

    def test_nothing_failed_on_the_way(self, proc_output):
        for process in proc_output.process_names():
            for line in proc_output[process]:
                assert b"Traceback" not in line.text
