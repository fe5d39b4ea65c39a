# SPDX-License-Identifier: Apache-2.0
"""The free platform of the paper: not carried by any leg, with all legs joined to it by closures.

In a description's tree one of the legs carries the platform. Here that leg ends where the others
do, and the platform has joints of its own, the paper's coordinates x: two prismatic joints and a
rotation in the robot's plane, or three of each in space. All legs are then equivalent, and no
result depends on which leg carries the platform in the description.

The passive joints that carried the platform remain on their leg, but carry nothing: they follow
the platform's orientation, and keep their friction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...formulations.kinematics import poses
from ...mechanism import Attachment, Joint, Link, Loop, Mechanism, Pose
from ...mechanism.mechanism import new_name
from ...scalar import Array, Floats, Scalar, array, atan, cross, rotation_to, sqrt
from .constraints import Constraints

_ROUNDED = 1e-4
"""rad: tolerance for axes that would be parallel or normal but for rounded angles such as 1.5708
(the tolerance for ranks is as generous)"""
_APART = 1e-5
"""Tolerance on the distance between nominally intersecting axes, relative to the robot's size"""


@dataclass(frozen=True, eq=False)
class FreePlatform:
    """A mechanism with a free platform."""

    mechanism: Mechanism
    """The mechanism with its platform on `coordinates`, joined to all legs by loops"""
    axes: Array
    """(3, 3): the fixed axes along which closures are measured; z is normal to the robot's plane
    if the robot is planar"""
    reference: Pose
    """The pose of the platform's link at which its coordinates are zero"""
    coordinates: tuple[str, ...]
    """Joint names: x, y and a turn in a plane, otherwise x, y, z and successive turns about x, y
    and z"""
    added: frozenset[str]
    """Links that the description does not have"""

    @property
    def is_planar(self) -> bool:
        """Whether the coordinates are x, y and a turn."""
        return len(self.coordinates) == 3

    def at(self, pose: Floats) -> Floats:
        """The coordinates (…, 3 or 6) of the platform's link at poses (…, 4, 4)."""
        A = self.axes
        place = (pose[..., :3, 3] - self.reference.translation) @ A
        # the rotation from the reference, along the axes: Rx(α) Ry(β) Rz(γ)
        R = A.T @ pose[..., :3, :3] @ self.reference.rotation.T @ A
        if self.is_planar:
            turns = [np.arctan2(R[..., 1, 0], R[..., 0, 0])]
        else:
            turns = [
                np.arctan2(-R[..., 1, 2], R[..., 2, 2]),
                np.arctan2(R[..., 0, 2], np.hypot(R[..., 0, 0], R[..., 0, 1])),
                np.arctan2(-R[..., 0, 1], R[..., 0, 0]),
            ]
        slides = place[..., : len(self.coordinates) - len(turns)]
        return np.concatenate([slides, np.stack(turns, axis=-1)], axis=-1)


def free_platform(mechanism: Mechanism) -> FreePlatform | None:
    """The mechanism with a free platform.

    None if nothing can be freed: there is no platform, or it belongs to a leg because the joint
    that carries it is actuated, has a sensor or is geared to others.
    """
    if mechanism.platform is None or not set(mechanism.joint_names) <= set(mechanism.home):
        return None  # joints missing from home are reported where home is read
    carrier, _ = mechanism.carriers()[mechanism.platform]
    if carrier == mechanism.base:
        return None
    top = mechanism.link(carrier)
    hinge = top.joint
    if not _is_free(mechanism, hinge):
        return None
    places = _Places(mechanism)
    kind, carriers = _joint_of(mechanism, top, places)
    links_taken = set(mechanism.index())
    joints_taken = {link.joint.name for link in mechanism.links}
    loops_taken = {loop.name for loop in mechanism.loops}
    axes, planar = plane_of(mechanism, places)

    # the leg ends in a link without a body, which follows the platform's orientation
    at_leg, at_platform = places.frames(kind, carriers)
    ghost = Link(new_name(f"{top.name} of its leg", links_taken), top.parent, hinge)
    leg_end = carriers[-1].parent
    position = Loop(
        new_name(hinge.name, loops_taken),
        kind,
        Attachment(leg_end, places.of(leg_end).inverse() @ at_leg),
        Attachment(top.name, places.of(top.name).inverse() @ at_platform),
    )
    here = places.of(top.name).inverse() @ at_platform
    orientation = Loop(
        new_name(f"{hinge.name}'", loops_taken),
        f"not {kind}",
        Attachment(ghost.name, here),
        Attachment(top.name, here),
    )

    reference = places.of(mechanism.platform)
    upright = Pose(axes, reference.translation)
    carriages, coordinates, parent, origin = [], [], mechanism.base, upright
    for name, kind_, axis in _carriages(planar):
        joint = new_name(f"{mechanism.platform} {name}", joints_taken)
        coordinates.append(joint)
        carriage = Joint(joint, kind_, origin=origin, axis=axis)
        carriages.append(Link(new_name(joint, links_taken), parent, carriage))
        parent, origin = carriages[-1].name, Pose()
    tail = upright.inverse() @ places.of(top.name)
    last = replace(carriages.pop().joint, tail=tail)
    carried = replace(top, parent=carriages[-1].name, joint=last)

    links = []
    for link in mechanism.links:
        links += [ghost, *carriages, carried] if link is top else [link]
    free = replace(
        mechanism,
        links=tuple(links),
        loops=(
            position,
            *(_from_leg(mechanism, top, loop) for loop in mechanism.loops),
            orientation,
        ),
        home={**mechanism.home, **dict.fromkeys(coordinates, 0.0)},
    )
    added = {ghost.name, *(link.name for link in carriages)}
    return FreePlatform(free, axes, reference, tuple(coordinates), frozenset(added))


def _carriages(planar: bool) -> Iterator[tuple[str, str, Array]]:
    X, Y, Z = np.eye(3)
    slides = [("x", X), ("y", Y)] if planar else [("x", X), ("y", Y), ("z", Z)]
    turns = [("turn", Z)] if planar else [("turn x", X), ("turn y", Y), ("turn z", Z)]
    for name, axis in slides:
        yield name, "prismatic", axis
    for name, axis in turns:
        yield name, "continuous", axis


def _is_free(mechanism: Mechanism, joint: Joint) -> bool:
    """Whether the joint is passive, without a sensor, and not geared to others."""
    read = (*mechanism.actuated_names, *mechanism.sensed)
    couplings = [link.joint.coupling for link in mechanism.links if link.joint.coupling]
    geared = [each.ratios for each in couplings]
    geared += [rotor.ratios for rotor in mechanism.rotors]
    geared += [armature.ratios for armature in mechanism.armatures]
    masters = [name for ratios in geared for name, _ in ratios]
    return joint.coupling is None and joint.name not in (*read, *masters)


def _joint_of(mechanism: Mechanism, top: Link, places: _Places) -> tuple[str, list[Link]]:
    """(type of the joint formed by the last passive joints, their links from the platform inwards).

    Links between these joints must carry nothing else. Whether they have bodies makes no
    difference, as a payload must not change the geometry.
    """
    carriers = [top]
    while len(carriers) < 3 and carriers[-1].parent != mechanism.base:
        before = mechanism.link(carriers[-1].parent)
        children = [link for link in mechanism.links if link.parent == before.name]
        ends = [end.link for loop in mechanism.loops for end in (loop.predecessor, loop.successor)]
        holds = {*ends, *(rotor.mount for rotor in mechanism.rotors), mechanism.platform}
        alone = len(children) == 1 and before.name not in holds
        if not (alone and before.joint.turns and _is_free(mechanism, before.joint)):
            break
        carriers.append(before)
    if not top.joint.turns:
        return "prismatic", carriers[:1]
    axes = [places.axis(link) for link in carriers]
    if len(carriers) == 3 and places.meet(axes):
        crossed = [np.linalg.norm(np.cross(axes[i][1], axes[i + 1][1])) for i in (0, 1)]
        if min(crossed) > 0.1:
            return "spherical", carriers
    if len(carriers) >= 2 and places.meet(axes[:2]) and abs(axes[0][1] @ axes[1][1]) < _ROUNDED:
        return "universal", carriers[:2]
    return "revolute", carriers[:1]


def _common_point(axes: list[tuple[Floats, Floats]]) -> Floats:
    """The point nearest to all of the lines (point, direction)."""
    across = [np.eye(3) - np.outer(z, z) for _, z in axes]
    right = sum(A @ p for A, (p, _) in zip(across, axes, strict=True))
    near = np.mean([p for p, _ in axes], axis=0)
    # if there are several, the one nearest to the joints
    return np.asarray(near + np.linalg.pinv(sum(across)) @ (right - sum(across) @ near))


class _Places:
    """Positions of links and axes at home."""

    def __init__(self, mechanism: Mechanism):
        home = array([float(mechanism.home[name]) for name in mechanism.joint_names])
        self._poses = poses(mechanism, home)
        self._origins = {
            link.name: self._poses[link.parent] @ link.joint.origin for link in mechanism.links
        }

    def of(self, link: str) -> Pose:
        """The pose of the link's frame in the base frame."""
        return self._poses[link]

    def meet(self, axes: list[tuple[Floats, Floats]]) -> bool:
        """Whether lines (point, direction) pass through a common point."""
        points = array([pose.translation for pose in self._origins.values()])
        size = np.linalg.norm(np.ptp(points, axis=0))
        c = _common_point(axes)
        return all(np.linalg.norm(np.cross(z, c - p)) <= _APART * size for p, z in axes)

    def axis(self, link: Link) -> tuple[Floats, Floats]:
        """(a point on it, the direction) of the axis of the joint that carries the link."""
        origin = self._origins[link.name]
        return origin.translation, origin.rotation @ link.joint.axis

    def frames(self, kind: str, carriers: list[Link]) -> tuple[Pose, Pose]:
        """The frames (on the leg, on the platform) of a loop of this type that replaces these
        joints, which are given from the platform inwards."""
        axes = [self.axis(link) for link in carriers]
        if kind == "universal":
            # about the leg's x, then the platform's y, which is normal to it except for rounding
            x, y, point = axes[1][1], axes[0][1], _common_point(axes)
            z = cross(x, y) / np.linalg.norm(cross(x, y))
            leg, platform = (x, cross(z, x), z), (cross(y, z), y, z)
            return Pose(np.column_stack(leg), point), Pose(np.column_stack(platform), point)
        point, z = axes[0]
        if kind == "spherical":
            frame = Pose(np.eye(3), _common_point(axes))
        else:
            frame = Pose(rotation_to(z), point)
        return frame, frame


def plane_of(mechanism: Mechanism, places: _Places | None = None) -> tuple[Floats, bool]:
    """(axes (3, 3), whether the whole robot moves in the plane of the first two)."""
    places = places or _Places(mechanism)
    turning: list[Floats] = []
    sliding: list[Floats] = []
    for link in mechanism.moving:
        (turning if link.joint.turns else sliding).append(places.axis(link)[1])
    for loop in mechanism.loops:
        end = loop.predecessor
        z = (places.of(end.link) @ end.pose).rotation[:, 2]
        if loop.type in ("revolute", "prismatic"):
            (turning if loop.type == "revolute" else sliding).append(z)
        elif loop.type != "fixed":
            return np.eye(3), False
    if not turning:
        return np.eye(3), False
    normal = turning[0] * np.sign(turning[0][int(np.argmax(abs(turning[0])))])
    # the mean of all axes, as each may be rounded
    normal = sum(z * np.sign(z @ normal) for z in turning)
    normal = normal / np.linalg.norm(normal)
    parallel = all(np.linalg.norm(np.cross(normal, z)) < _ROUNDED for z in turning)
    if parallel and all(abs(normal @ z) < _ROUNDED for z in sliding):
        return rotation_to(normal), True
    return np.eye(3), False


def _from_leg(mechanism: Mechanism, top: Link, loop: Loop) -> Loop:
    """The loop with the leg as its predecessor and the platform as its successor."""
    if top.name not in mechanism.path(loop.predecessor.link):
        return loop
    if top.name in mechanism.path(loop.successor.link):
        return loop
    flip = Pose()
    if loop.type == "universal":
        # the x axis of one frame and the y axis of the other are exchanged
        flip = Pose(array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]))

    def turned(end: Attachment) -> Attachment:
        return Attachment(end.link, end.pose @ flip)

    return replace(loop, predecessor=turned(loop.successor), successor=turned(loop.predecessor))


@dataclass(frozen=True, eq=False)
class HingedPlatform:
    """The platform's x, y and turn, and the position of the joint that carried it.

    With the legs' ends c_i and the platform's hinges b_i, Σ |c_i - b_i|² is least if their means
    coincide and the platform is turned by an additional angle δ,

        tan δ = Σ (b_i - b̄) × (c_i - c̄) / Σ (b_i - b̄) · (c_i - c̄)
    """

    constraints: Constraints
    free: FreePlatform

    @classmethod
    def of(
        cls, constraints: Constraints, free: FreePlatform, unread: Sequence[str]
    ) -> HingedPlatform | None:
        """The closed form for a mechanism; None if it does not apply, as the platform is not on
        hinges in a plane, or the legs have joints that are not read.

        Args:
            constraints: of the mechanism with the free platform.
            free: its free platform.
            unread: the joints that are neither actuated nor sensed, except those of the platform.
        """
        tree, (*hinges, orientation) = constraints.tree, constraints.loops
        ghost, body = orientation.predecessor.link, orientation.successor.link
        fits = all(
            loop.type == "revolute"
            and loop.successor.link == body
            and body not in tree.path(loop.predecessor.link)
            and ghost not in tree.path(loop.predecessor.link)
            for loop in hinges
        )
        own = [tree.link(ghost).joint.name]
        return cls(constraints, free) if free.is_planar and fits and own == [*unread] else None

    def solved(self, q: Array, u: Array) -> Array:
        """[angle of the joint that carried it; x; y; turn] at the readings q (k,).

        u (4,) are any earlier values of these; angles continue from them without jumps.
        """
        A = self.free.axes
        *hinges, (ghost, body) = self.constraints.frames(array([*q, *u]))
        c = [(A.T @ leg.point)[:2] for leg, _ in hinges]
        b = [(A.T @ own.point)[:2] for _, own in hinges]
        c_mean, b_mean = sum(c) / len(c), sum(b) / len(b)
        ways = [(x - b_mean, y - c_mean) for x, y in zip(b, c, strict=True)]
        along = sum(x @ y for x, y in ways)
        across = sum(x[0] * y[1] - x[1] * y[0] for x, y in ways)
        size = sqrt(along * along + across * across)
        cosine, sine = along / size, across / size
        # P moves so that the means coincide: p' = c̄ + Rot(δ) (p - b̄)
        p = (A.T @ self.free.reference.translation)[:2] + u[1:3]
        arm = p - b_mean
        turned = array([cosine * arm[0] - sine * arm[1], sine * arm[0] + cosine * arm[1]])
        x, y = u[1:3] + c_mean + turned - p
        # the joint turns by the angle from the leg's x to the platform's
        x_axis = body.rotation[:, 0] * cosine + cross(A[:, 2], body.rotation[:, 0]) * sine
        joint = u[0] + _angle(x_axis @ ghost.rotation[:, 1], x_axis @ ghost.rotation[:, 0])
        return array([joint, x, y, u[3] + _angle(sine, cosine)])


def _angle(sine: Scalar, cosine: Scalar) -> Scalar:
    """The angle with this sine and cosine, from -π to π, rad."""
    # tan ½α = sin α / (1 + cos α)
    return 2.0 * atan(sine / (1.0 + cosine))
