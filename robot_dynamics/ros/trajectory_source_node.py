# SPDX-License-Identifier: Apache-2.0
"""The node `trajectory_source`, which commands a smooth motion once, as a planner would.

It publishes one JointTrajectory on `joint_trajectory` as soon as joint states arrive and there are
as many subscribers as the parameter `subscribers`. The motion begins `lead` seconds after the
newest state; until then the trajectory rests. The motion is a swing of each joint, or comes from a
`file` (a JointTrajectory as YAML, as written by `robot_dynamics excite`). With a file, the robot
first moves to the beginning of the file's motion, more slowly than in that motion.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Duration, Time
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..description.motion_file import read_motion
from ..errors import InputError, wrong
from ..motion.swing import Motion
from ..motion.trajectory import Trajectory, Waypoints
from ..scalar import Floats
from .declared_parameters import declare
from .feed_forward.parameter_table import names, number, numbers, text, whole
from .feed_forward.refusal import RefusedError
from .feed_forward.stamps import SECOND, stamped
from .publishing import publish

PERIOD = 0.05
"""s between checks for states and subscribers"""

APPROACH = 0.3
"""The largest rates on the way to the beginning of the motion, as a fraction of the motion's own;
rad/s or m/s if the motion has none"""


@dataclass(frozen=True)
class SourceSettings:
    """The values of the parameters, checked: each field is a row of the table."""

    joints: tuple[str, ...] = names((), "joints that swing, in the order of the other arrays")
    start: tuple[float, ...] = numbers((), "positions at which they begin", unit="rad or m")
    swing: tuple[float, ...] = numbers(
        (), "distance from one end of each swing to the other", unit="rad or m"
    )
    cycles: tuple[float, ...] = numbers((), "number of swings there and back within the duration")
    duration: float = number(
        4.0, "time that the swing takes", unit="s", minimum=0.0, maximum=3600.0
    )
    file: str = text("", "JointTrajectory in YAML, in place of a swing")
    spacing: float = number(0.01, "time between two points", unit="s", minimum=1e-4, maximum=10.0)
    lead: float = number(
        0.2, "rest between the newest state and the motion", unit="s", minimum=0.0, maximum=60.0
    )
    subscribers: int = whole(1, "number of subscribers to wait for", minimum=0, maximum=1000)


class TrajectorySource(Node):  # type: ignore[misc]
    """Publishes, once, the motion that its parameters define.

    Raises:
        RobotDynamicsError: an invalid parameter or file.
    """

    def __init__(self) -> None:
        super().__init__("trajectory_source")
        settings = declare(self, SourceSettings, self.get_logger().warning, fixed=True)
        self._motion, self._joints = self._asked_for(settings)
        self._spacing, self._subscribers = settings.spacing, settings.subscribers
        self._lead = round(settings.lead * SECOND)
        self._publisher = self.create_publisher(JointTrajectory, "joint_trajectory", 10)
        self._first: int | None = None
        self._newest: int | None = None
        self._before: int | None = None
        """The stamp of the previous state, ns; None: there was none"""
        self._position: dict[str, float] = {}
        self._states = self.create_subscription(JointState, "joint_states", self._on_state, 10)
        # wall time: simulated time may wait for the motion
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(PERIOD, self._on_timer, clock=steady)
        self._said = False

    @staticmethod
    def _asked_for(settings: SourceSettings) -> tuple[Motion | Waypoints, list[str]]:
        """The requested motion, and its joints."""
        joints, file = list(settings.joints), settings.file
        swing = {"start": settings.start, "swing": settings.swing, "cycles": settings.cycles}
        if file:
            known, waypoints = read_motion(file)
            if any(swing.values()) or (joints and set(joints) != set(known)):
                raise InputError(
                    f"file: {file} already defines which joints move ({', '.join(known)}) and how; "
                    "leave out joints, start, swing and cycles",
                    name="file",
                )
            return waypoints, list(known)
        motion = Motion(**swing, duration=settings.duration)
        if not joints or len(joints) != len(motion.start):
            raise wrong(InputError, "joints", joints, "a name for each number of `start`")
        return motion, joints

    def _on_state(self, state: JointState) -> None:
        with suppress(RefusedError):
            stamp = stamped(state.header)
            # a stamp of zero means "now", which differs between subscribers: skip the first state
            # of simulated time, but not states that never have stamps
            if stamp or self._before == 0:
                # earlier than the first: the clock was reset
                self._first = stamp if self._first is None else min(stamp, self._first)
                self._newest = stamp
            self._before = stamp
            self._position |= dict(zip(state.name, state.position, strict=False))

    def _on_timer(self) -> None:
        ready = self._publisher.get_subscription_count() >= self._subscribers
        if self._said or self._newest is None or self._first is None or not ready:
            return
        if isinstance(self._motion, Waypoints) and not set(self._joints) <= set(self._position):
            return  # the position of some joint is still unknown
        message = JointTrajectory(joint_names=self._joints)
        stamp = self._newest
        if isinstance(self._motion, Waypoints):
            message.points += self._waypoints(self._motion)
        else:
            # the motion rests at its start from the first state on: even for a subscriber whose
            # clock is a little behind the newest state, it has begun, and needs no lead-in
            stamp = self._first
            message.points += self._swing(self._motion, self._newest - stamp + self._lead)
        message.header.stamp = Time(sec=stamp // SECOND, nanosec=stamp % SECOND)
        publish(self._publisher, message)
        self._said = True
        self.destroy_subscription(self._states)
        last = message.points[-1].time_from_start
        self.get_logger().info(f"published a motion of {last.sec + last.nanosec / SECOND:g} s")

    def _swing(self, motion: Motion, rest: int) -> Iterator[JointTrajectoryPoint]:
        """The motion after a rest of `rest` ns at its start."""
        count = max(2, round(motion.duration / self._spacing) + 1)
        if rest:
            yield _point(motion(0.0), 0)
        for time in np.linspace(0.0, motion.duration, count):
            yield _point(motion(time), rest + round(time * SECOND))

    def _waypoints(self, motion: Waypoints) -> Iterator[JointTrajectoryPoint]:
        """The way to the first waypoint, then all waypoints."""
        here = np.array([self._position[joint] for joint in self._joints])
        rest = np.zeros_like(here)
        yield _point((here, rest, rest), 0)
        # 15/8 Δ / T is a quintic's largest rate from rest to rest
        peak = Trajectory(motion).peak_rates
        away = np.abs(motion.q[0] - here)
        needed = 1.875 * away / np.where(peak > 0, APPROACH * peak, APPROACH)
        if (begin := self._lead + round(float(needed.max()) * SECOND)) > self._lead:
            yield _point((here, rest, rest), self._lead)
        for k, time in enumerate(motion.times - motion.times[0]):
            after = begin + round(float(time) * SECOND)
            if after:
                carried = motion.carries[k]
                yield _point((motion.q[k], motion.qd[k], motion.qdd[k]), after, carried)


def _point(
    state: tuple[Floats, Floats, Floats], after: int, carries: int = 3
) -> JointTrajectoryPoint:
    """A point with q and possibly qd and qdd, to be passed `after` ns from the stamp.

    `carries` is the number of these fields that the point has.
    """
    q, qd, qdd = state
    return JointTrajectoryPoint(
        positions=q.tolist(),
        velocities=qd.tolist() if carries > 1 else [],
        accelerations=qdd.tolist() if carries > 2 else [],
        time_from_start=Duration(sec=after // SECOND, nanosec=after % SECOND),
    )
