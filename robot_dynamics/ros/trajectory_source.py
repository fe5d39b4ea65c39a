"""The executable `trajectory_source`: asks once for a smooth motion, as a planner would.

It publishes one JointTrajectory on `joint_trajectory` as soon as joint states come and as many
subscribers are there as `subscribers` says; it rests for `lead` seconds from the newest state on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..errors import InputError, wrong
from ..motion.swing import Motion
from .executable import run
from .feed_forward.refusal import RefusedError
from .feed_forward.stamps import SECOND, stamped

PERIOD = 0.05
"""s between two looks whether all are there"""


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
        self._newest: int | None = None
        self._states = self.create_subscription(JointState, "joint_states", self._on_state, 10)
        # by the wall: simulated time may wait for the motion
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(PERIOD, self._on_timer, clock=steady)
        self._said = False

    def _on_state(self, state: JointState) -> None:
        with suppress(RefusedError):
            self._newest = stamped(state.header)

    def _on_timer(self) -> None:
        ready = self._publisher.get_subscription_count() >= self._subscribers
        if self._said or self._newest is None or not ready:
            return
        message = JointTrajectory(joint_names=self._joints)
        stamp = self._newest
        message.header.stamp = Time(sec=stamp // SECOND, nanosec=stamp % SECOND)
        count = max(2, round(self._motion.duration / self._spacing) + 1)
        times = np.linspace(0.0, self._motion.duration, count)
        # at rest from the stamp on: who hears of it late finds a motion that has begun
        if self._lead:
            message.points.append(self._point(0.0, 0))
        message.points += [self._point(time, self._lead + round(time * SECOND)) for time in times]
        self._publisher.publish(message)
        self._said = True
        self.destroy_subscription(self._states)
        self.get_logger().info(f"a motion of {self._motion.duration:g} s is on its way")

    def _point(self, time: float, after: int) -> JointTrajectoryPoint:
        """The motion at a time (s), to be passed `after` ns from the stamp."""
        q, qd, qdd = self._motion(time)
        return JointTrajectoryPoint(
            positions=q.tolist(),
            velocities=qd.tolist(),
            accelerations=qdd.tolist(),
            time_from_start=Duration(sec=after // SECOND, nanosec=after % SECOND),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until it is told to stop; returns the exit code."""
    return run("trajectory_source", lambda: TrajectorySource, arguments)


if __name__ == "__main__":
    sys.exit(main())
