# SPDX-License-Identifier: Apache-2.0
"""The node's logic on a bench: messages and a clock of our own in, torques and lines out."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Duration, Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynamics.description import load
from robot_dynamics.ros.feed_forward.controller import FeedForward
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

ROUNDING = 1e-12
"""Relative: a torque is a few sums and products"""

START = 1_000 * 10**9
"""ns"""


def at(seconds: float) -> int:
    return START + round(seconds * 1e9)


def stamp(seconds: float) -> Time:
    return Time(sec=at(seconds) // 10**9, nanosec=at(seconds) % 10**9)


class Bench:
    """A controller, what it logged, and messages for it. Times in s since START.

    `wall` is what a clock that never jumps says, in s.
    """

    def __init__(self, description: str, **values):
        self.log: list[str] = []
        self.settings = Settings.of(values)
        self.wall = 0.0
        self.controller = FeedForward(self.settings, self.log.append, lambda: self.wall)
        self.controller.adopt(Model(ModelSpec(load(description), self.settings)))

    def state(self, now: float, q=0.0, qd=0.0, *, names=("swing",), stamped=None):
        message = JointState(name=list(names), position=np.atleast_1d(q).astype(float).tolist())
        message.velocity = np.atleast_1d(qd).astype(float).tolist()
        message.header.stamp = stamp(now if stamped is None else stamped)
        return self._values(self.controller.state(message, at(now)))

    def command(self, now: float, *points: JointTrajectoryPoint, names=("swing",), stamped=None):
        message = JointTrajectory(joint_names=list(names), points=list(points))
        if stamped is not None:
            message.header.stamp = stamp(stamped)
        self.controller.command(message, at(now))

    def fill(self, message: JointTrajectory, now: float) -> None:
        """As the node does it, in one thread."""
        if remark := self.controller.filler(at(now))(message):
            self.log.append(remark)

    def accelerate(self, now: float, qdd: float) -> None:
        self.command(now, point(qdd=qdd))

    def tick(self, now: float):
        return self._values(self.controller.tick(at(now)))

    def watch(self, now: float):
        return self._values(self.controller.watch(at(now)))

    def farewell(self, now: float):
        return self._values(self.controller.farewell(at(now)))

    @staticmethod
    def _values(output):
        return None if output is None else output.values.tolist()

    def rejected(self) -> dict[str, int]:
        return dict(self.controller.tally.rejected)


def point(time: float = 0.0, q=None, qd=None, qdd=None) -> JointTrajectoryPoint:
    def numbers(value):
        return [] if value is None else np.atleast_1d(value).astype(float).tolist()

    ns = round(time * 1e9)
    return JointTrajectoryPoint(
        positions=numbers(q),
        velocities=numbers(qd),
        accelerations=numbers(qdd),
        time_from_start=Duration(sec=ns // 10**9, nanosec=ns % 10**9),
    )


def close(values, *expected) -> None:
    np.testing.assert_allclose(values, expected, rtol=ROUNDING, atol=ROUNDING)
