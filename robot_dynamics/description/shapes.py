# SPDX-License-Identifier: Apache-2.0
"""Simple shapes for links: a marker at each joint, and sticks from joint to joint."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..mechanism import Joint, Mechanism, Pose
from ..scalar import Floats, is_zero, rotation_to

THICKNESS = 0.05
"""Thickness of drawn links, as a fraction of the robot's size"""
SMALLEST = 0.3
"""m: the smallest size assumed for a robot, even if all frames coincide"""


@dataclass(frozen=True, eq=False)
class Shape:
    """A cylinder along z, a box or a sphere, centred on its pose in the link's frame."""

    kind: str
    size: tuple[float, ...]
    """m: radius and length of a cylinder, three edges of a box, radius of a sphere"""
    pose: Pose = field(default_factory=Pose)
    part: str = "body"
    """body, joint or end: a link's stick, its joint's marker, or the end of a loop"""
    joint: str = ""
    """The joint of a marker"""


class Shapes:
    """The shapes of every link of a robot."""

    def __init__(self, robot: Mechanism):
        names = robot.index()
        self._sticks: dict[str, list[Floats]] = {name: [] for name in names}
        self._markers: dict[str, list[tuple[Joint, Pose]]] = {name: [] for name in names}
        self._balls: dict[str, list[Floats]] = {name: [] for name in names}
        for link in robot.links:
            joint = link.joint
            self._sticks[link.parent].append(joint.origin.translation)
            if joint.moves:
                back = joint.tail.inverse()
                self._sticks[link.name].append(back.translation)
                self._markers[link.name].append((joint, back))
            if not is_zero(link.inertial.mass):
                self._sticks[link.name].append(link.inertial.center_of_mass)
        for loop in robot.loops:
            for side in (loop.predecessor, loop.successor):
                self._sticks[side.link].append(side.pose.translation)
                self._balls[side.link].append(side.pose.translation)
        lengths = [float(np.linalg.norm(p)) for each in self._sticks.values() for p in each]
        self.width = THICKNESS * max([SMALLEST, *lengths])
        """About the diameter of a stick, m"""

    def of(self, name: str) -> list[Shape]:
        """The shapes of a link, in its frame."""
        width = self.width
        found = []
        for joint, pose in self._markers[name]:
            along = pose @ Pose(rotation_to(joint.axis))
            if joint.turns:
                size: tuple[float, ...] = (0.9 * width, 2.4 * width)
                found.append(Shape("cylinder", size, along, "joint", joint.name))
            else:
                size = (1.5 * width, 1.5 * width, 3 * width)
                found.append(Shape("box", size, along, "joint", joint.name))
        for point in self._sticks[name]:
            length = float(np.linalg.norm(point))
            if length > width / 10:
                pose = Pose(rotation_to(point / length), point / 2)
                found.append(Shape("cylinder", (0.5 * width, length), pose))
        for point in self._balls[name]:
            found.append(Shape("sphere", (0.8 * width,), Pose(translation=point), "end"))
        return found
