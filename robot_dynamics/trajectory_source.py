"""The executable `trajectory_source`: asks once for a smooth motion, as a planner would.

It publishes one JointTrajectory on `joint_trajectory` as soon as joint states come and as many
subscribers are there as `subscribers` says; it begins `lead` seconds after the newest state.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from .demo.motion import Motion

SECOND = 1_000_000_000


class TrajectorySource(Node):  # type: ignore[misc]
    """Publishes the motion of its parameters, once."""

    def __init__(self) -> None:
        super().__init__("trajectory_source")
        numbers = rclpy.Parameter.Type.DOUBLE_ARRAY
        declare = self.declare_parameter
        self._joints = list(declare("joints", rclpy.Parameter.Type.STRING_ARRAY).value)
        self._motion = Motion(
            start=declare("start", numbers).value,
            swing=declare("swing", numbers).value,
            cycles=declare("cycles", numbers).value,
            duration=declare("duration", 4.0).value,
        )
        self._spacing = declare("spacing", 0.01).value
        self._lead = round(declare("lead", 0.2).value * SECOND)
        self._subscribers = declare("subscribers", 1).value
        self._publisher = self.create_publisher(JointTrajectory, "joint_trajectory", 10)
        self._states = self.create_subscription(JointState, "joint_states", self._on_state, 10)

    def _on_state(self, state: JointState) -> None:
        if self._publisher.get_subscription_count() < self._subscribers:
            return
        stamp = state.header.stamp
        begin = stamp.sec * SECOND + stamp.nanosec + self._lead
        message = JointTrajectory(joint_names=self._joints)
        message.header.stamp = Time(sec=begin // SECOND, nanosec=begin % SECOND)
        count = max(2, round(self._motion.duration / self._spacing) + 1)
        for time in np.linspace(0.0, self._motion.duration, count):
            q, qd, qdd = self._motion(time)
            after = round(time * SECOND)
            message.points.append(
                JointTrajectoryPoint(
                    positions=q.tolist(),
                    velocities=qd.tolist(),
                    accelerations=qdd.tolist(),
                    time_from_start=Duration(sec=after // SECOND, nanosec=after % SECOND),
                )
            )
        self._publisher.publish(message)
        self.destroy_subscription(self._states)
        self.get_logger().info(f"a motion of {self._motion.duration:g} s is on its way")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until told to stop; returns the exit code."""
    rclpy.init(args=arguments)
    node = TrajectorySource()
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
