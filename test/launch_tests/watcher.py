# SPDX-License-Identifier: Apache-2.0
"""Who listens to what was launched, and commands it. Waits for conditions, with a long deadline."""

from __future__ import annotations

import atexit
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare
from launch_testing.actions import ReadyToTest
from node_process import domain_of_ones_own
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

# What is launched is alone in its domain, whatever the shell's is: a robot may be in that one.
# The claim is held until the process ends.
_CLAIM = ExitStack()
os.environ["ROS_DOMAIN_ID"] = str(_CLAIM.enter_context(domain_of_ones_own()))

PATIENCE = 120.0
"""s until a test gives up: far beyond what a loaded machine needs"""

SHIPPED = Path(__file__).resolve().parents[2] / "config" / "feed_forward.yaml"


def patient_parameters() -> str:
    """A file of the shipped parameters, but a simulator that a busy machine holds up is no lost
    feedback."""
    text = SHIPPED.read_text()
    line = "    command_timeout: 0.5 "
    assert line in text
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        file.write(text.replace(line, f"    max_age: {PATIENCE}\n{line}"))
    atexit.register(Path(file.name).unlink)
    return file.name


SECOND = 1_000_000_000

LEAD = 2 * SECOND
"""ns from a command to the begin of its motion: time to hear of it"""


def nanoseconds(stamp: Time) -> int:
    return stamp.sec * SECOND + stamp.nanosec


def launched(robot: str, **arguments: str) -> GroupAction:
    """A launch file of this package; its arguments are no others'."""
    share = FindPackageShare("robot_dynamics")
    file = PathJoinSubstitution([share, "launch", f"{robot}.launch.py"])
    return GroupAction([IncludeLaunchDescription(file, launch_arguments=arguments.items())])


def ready(*actions: Any) -> LaunchDescription:
    return LaunchDescription([*actions, ReadyToTest()])


def check_output(proc_info: Any, proc_output: Any) -> None:
    """All ended with 0, and nothing failed on the way."""
    names = proc_info.process_names()
    assert {info: proc_info[info].returncode for info in names} == dict.fromkeys(names, 0)
    for process in proc_output.process_names():
        text = b"".join(line.text for line in proc_output[process]).decode(errors="replace")
        assert "Traceback" not in text, text


class Watcher:
    """Keeps what is heard of a robot's nodes. A context manager."""

    def __init__(self, namespace: str = "", controller: str = "effort_controller"):
        self.namespace = f"/{namespace}" if namespace else ""
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.node = rclpy.create_node("watcher", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.heard = 0
        self.states: dict[int, JointState] = {}
        self.efforts: dict[int, JointState] = {}
        self.commands: list[list[float]] = []
        self.diagnoses: list[tuple[int, str]] = []
        self.clock: list[int] = []
        subscribe, here = self.node.create_subscription, self.namespace
        subscribe(JointState, f"{here}/joint_states", self._keep(self.states), 1000)
        subscribe(JointState, f"{here}/feed_forward/effort", self._keep(self.efforts), 1000)
        subscribe(
            Float64MultiArray,
            f"{here}/{controller}/commands",
            lambda message: self.commands.append(list(message.data)),
            1000,
        )
        subscribe(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        subscribe(Clock, "/clock", lambda m: self.clock.append(nanoseconds(m.clock)), 1000)
        publish = self.node.create_publisher
        self.trajectory = publish(JointTrajectory, f"{here}/feed_forward/command", 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.description = publish(String, f"{here}/robot_description", latched)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _keep(self, messages: dict[int, JointState]) -> Callable[[JointState], None]:
        def keep(message: JointState) -> None:
            self.heard += 1
            messages[nanoseconds(message.header.stamp)] = message

        return keep

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if f"/{status.name}".startswith(f"{self.namespace}/feed_forward"):
                self.diagnoses.append((ord(status.level), status.message))

    def until(self, done: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, (
                f"waited {PATIENCE:g} s for {what}; there were {len(self.states)} states, "
                f"{len(self.efforts)} efforts, commands {self.commands[-2:]}, "
                f"diagnostics {self.diagnoses[-3:]}, clock {self.clock[-1:]}"
            )
            self._executor.spin_once(timeout_sec=0.05)

    def parameters(self, *names: str) -> list[Any]:
        """Of the node, by its service."""
        name = f"{self.namespace}/feed_forward/get_parameters"
        client = self.node.create_client(GetParameters, name)
        self.until(client.service_is_ready, name)
        answers: list[Any] = []
        sent = 0.0

        def answered() -> list[Any]:
            nonlocal sent
            # a response is given up where the server has not discovered the client's reader yet
            if not answers or time.monotonic() > sent + 5.0:
                answers.append(client.call_async(GetParameters.Request(names=list(names))))
                sent = time.monotonic()
            return [answer for answer in answers if answer.done()]

        self.until(answered, "the values of parameters")
        (first, *_) = answered()
        return [parameter_value_to_python(value) for value in first.result().values]

    def home(self, joints: list[str]) -> np.ndarray:
        """Where these joints stand, once both who follow a command are there."""
        self.until(lambda: self.states, "joint states")
        self.until(lambda: 0 in dict(self.diagnoses), "a node that is well")
        self.until(lambda: self.trajectory.get_subscription_count() >= 2, "both that follow")
        return of(self.states[max(self.states)], joints, "position")

    def arrives(self, joints: list[str], there: np.ndarray) -> None:
        """It takes the torques, and its own loop the rest."""

        def near() -> bool:
            q = of(self.states[max(self.states)], joints, "position")
            return bool(np.abs(q - there).max() < 0.01)

        self.until(near, f"{joints} at {there}")

    def _catch_up(self) -> None:
        """Take in what waits, so that the newest state is of now."""
        for _ in range(10_000):
            heard = self.heard
            self._executor.spin_once(timeout_sec=0.0)
            if self.heard == heard:
                return

    def swing(self, joints: list[str], home: np.ndarray, away: np.ndarray, seconds: int) -> int:
        """Command a cubic from rest at home to rest away from there; ns, when it begins."""
        self._catch_up()
        start = max(self.states) + LEAD
        points = [
            JointTrajectoryPoint(
                positions=(home + part * away).tolist(),
                velocities=[0.0] * len(joints),
                time_from_start=Duration(sec=part * seconds),
            )
            for part in (0, 1)
        ]
        message = JointTrajectory(joint_names=joints, points=points)
        message.header.stamp = Time(sec=start // SECOND, nanosec=start % SECOND)
        self.trajectory.publish(message)
        return start

    def answered(self, start: int, seconds: int) -> list[tuple[float, JointState, JointState]]:
        """(share of a motion that is over, state, its torques) of the whole motion."""
        end = start + seconds * SECOND
        self.until(lambda: max(self.states) > end, "the end of the motion")
        shares = ((stamp - start) / (end - start) for stamp in sorted(self.states))
        both = zip(sorted(self.states), shares, strict=True)
        return [
            (u, self.states[stamp], self.efforts[stamp])
            for stamp, u in both
            if 0 <= u < 1 and stamp in self.efforts
        ]


def of(message: JointState, names: Any, values: str) -> np.ndarray:
    """Values of a state by name."""
    found: Mapping[str, float] = dict(zip(message.name, getattr(message, values), strict=True))
    return np.array([found[name] for name in names])
