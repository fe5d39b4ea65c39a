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
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from .demo.motion import Motion
from .errors import InputError, RobotDynamicsError, wrong
from .feed_forward.stamps import SECOND, nanoseconds


class TrajectorySource(Node):  # type: ignore[misc]
    """Publishes the motion of its parameters, once."""

    def __init__(self) -> None:
        super().__init__("trajectory_source")
        names, numbers = rclpy.Parameter.Type.STRING_ARRAY, rclpy.Parameter.Type.DOUBLE_ARRAY
        declare = self.declare_parameter
        self._joints = list(declare("joints", names).value or ())
        self._motion = Motion(
            start=declare("start", numbers).value or (),
            swing=declare("swing", numbers).value or (),
            cycles=declare("cycles", numbers).value or (),
            duration=declare("duration", 4.0).value,
        )
        if not self._joints or len(self._joints) != len(self._motion.start):
            raise wrong(InputError, "joints", self._joints, "a name for each number of `start`")
        self._spacing = declare("spacing", 0.01).value
        self._lead = round(declare("lead", 0.2).value * SECOND)
        self._subscribers = declare("subscribers", 1).value
        self._publisher = self.create_publisher(JointTrajectory, "joint_trajectory", 10)
        self._states = self.create_subscription(JointState, "joint_states", self._on_state, 10)

    def _on_state(self, state: JointState) -> None:
        if self._publisher.get_subscription_count() < self._subscribers:
            return
        begin = nanoseconds(state.header.stamp) + self._lead
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
    """Run until SIGINT or SIGTERM; returns the exit code."""
    try:
        rclpy.init(args=arguments)
        node = TrajectorySource()
    except KeyboardInterrupt:
        rclpy.try_shutdown()
        return 0
    except (RobotDynamicsError, ParameterException, RuntimeError) as error:
        print(f"trajectory_source: {' '.join(str(error).split())}", file=sys.stderr)
        rclpy.try_shutdown()
        return 1
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
