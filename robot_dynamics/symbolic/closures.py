# SPDX-License-Identifier: Apache-2.0
"""The closures of a robot with loops in symbols: the legs, the platform and what joins them.

If several loops end at the platform, it is free as in [ZCPOM], with coordinates x of its own: each
of its joints is a closure Γ(x, q_r) = 0 in vector form (19), and the legs are short. Otherwise it
is one of the links of the tree, and the closures are Γ(q_r) = 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..closure.dynamics.platform import platform_links
from ..closure.geometry.constraints import Closure
from ..closure.geometry.free_platform import FreePlatform, free_platform, plane_of
from ..closure.geometry.tree_motion import FrameMotion, TreeMotion
from ..mechanism import Attachment, Inertial, Loop, Mechanism, Pose
from ..mechanism.transform import reframed, standard_form, without_bodies
from ..scalar import (
    Array,
    Floats,
    Note,
    array,
    cross,
    is_zero,
    roll_pitch_yaw,
    rotation_to,
    rotation_x,
    rotation_y,
    rotation_z,
    skew,
)
from .symbolic_parameters import Letters, point, symbolic_loop, symbolic_mechanism

POSE = ("x", "y", "z", "theta_x", "theta_y", "theta_z")
"""The coordinates of a free platform: the position of P, and R = Rz(θ_z) Ry(θ_y) Rx(θ_x)"""
TWIST = ("x_d", "y_d", "z_d", "omega_x", "omega_y", "omega_z")
"""Its velocity v = [ṗ; ω]"""
PLANE = (0, 1, 5)
"""Those of a platform in a plane, whose velocity is ẋ"""


@dataclass(frozen=True, eq=False)
class Legs:
    """A robot with loops, cut into its legs and the platform."""

    mechanism: Mechanism
    """The robot, with its base along `axes`"""
    axes: Floats
    """(3, 3): of the base; z is normal to the plane if the robot is planar"""
    tree: Mechanism
    """The legs without loops, with all links of the robot, so that these keep their numbers; those
    of a free platform have no bodies"""
    free: FreePlatform | None
    """The free platform"""
    wrist: tuple[str, ...] = ()
    """The links of the joints that carry it in the description, from the platform inwards"""

    @classmethod
    def of(cls, mechanism: Mechanism) -> Legs:
        """The legs of a robot at whose home the loops are closed."""
        axes, _ = plane_of(mechanism)
        gravity = axes.T @ mechanism.gravity
        mechanism = replace(reframed(mechanism, {mechanism.base: Pose(axes)}), gravity=gravity)
        free, body = free_platform(mechanism), platform_links(mechanism)
        ends = [{loop.predecessor.link, loop.successor.link} for loop in mechanism.loops]
        above = (mechanism.path(link.name)[1:] for link in mechanism.moving)
        held = any(body.keys() & path for path in above)
        held |= any(rotor.mount in body for rotor in mechanism.rotors)
        if not free or held or sum(bool(body.keys() & each) for each in ends) < 2:
            return cls(mechanism, axes, replace(mechanism, loops=()), None)
        position = free.mechanism.loops[0]
        path = mechanism.path(position.successor.link)
        wrist = path[: path.index(position.predecessor.link)]
        links = [mechanism.link(name) for name in wrist]
        works = any(not link.inertial.is_nothing for link in links if link.name not in body)
        works |= any(not is_zero(x) for link in links for x in link.joint.friction.numbers.values())
        # joints that do no work follow the platform, and are left out
        gone = body.keys() if works else {*body, *wrist}
        fixed = set() if works else gone
        tree = replace(
            mechanism,
            links=tuple(
                replace(
                    link,
                    joint=replace(link.joint, type="fixed") if link.name in fixed else link.joint,
                    inertial=Inertial() if link.name in gone else link.inertial,
                )
                for link in mechanism.links
            ),
            platform=None,
            loops=(),
        )
        return cls(mechanism, axes, tree, free, wrist)

    @property
    def names(self) -> tuple[str, ...]:
        """The order of q_r: actuated, sensed and other passive joints."""
        first = (*self.mechanism.driving_names, *self.mechanism.sensed)
        return first + tuple(name for name in self.tree.joint_names if name not in first)

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The indices in `POSE` of the platform's coordinates x."""
        return () if not self.free else PLANE if self.free.is_planar else (0, 1, 2, 3, 4, 5)

    @cached_property
    def tilt(self) -> Floats:
        """R_0 in R = Rz(θ_z) R_0 of a platform in a plane; otherwise 1."""
        if not self.free or not self.free.is_planar:
            return np.eye(3)
        home = self.free.reference.rotation
        return np.asarray(rotation_z(math.atan2(home[1, 0], home[0, 0])).T @ home)

    def place(self, pose: Floats) -> list[float]:
        """The platform's coordinates x for the pose (4, 4) of its link in the base frame."""
        R, p = self.axes.T @ pose[:3, :3], self.axes.T @ pose[:3, 3]
        every = [*p, *roll_pitch_yaw(R)]
        return [float(every[k]) for k in self.coordinates]


@dataclass(frozen=True, eq=False)
class Platform:
    """The motion of the free platform's frame, in symbols."""

    rotation: Array
    """R (3, 3)"""
    point: Array
    """P (3,)"""
    basis: Array
    """(6, n_x): [ṗ; ω] = basis v"""
    velocity: Array
    """v (n_x,): ẋ in a plane, [ṗ; ω] in space"""

    @property
    def omega(self) -> Array:
        """ω (3,)"""
        return np.asarray(self.basis[3:] @ self.velocity)


class _PlatformFrame(FrameMotion):
    """A frame on the free platform; its Jacobians have columns for q̇_r (n_r,) and v."""

    def __init__(self, platform: Platform, pose: Pose, joints: int):
        R, p, w = platform.rotation, platform.point, platform.omega
        arm = R @ pose.translation
        still = np.zeros((3, joints))
        turn = np.hstack([still, platform.basis[3:]])
        self.rotation, self.point, self.omega = R @ pose.rotation, p + arm, w
        # ṗ + ω × r
        self.velocity = platform.basis[:3] @ platform.velocity + cross(w, arm)
        self.V = np.hstack([still, platform.basis[:3]]) - skew(arm) @ turn
        self.V_rate = -skew(cross(w, arm)) @ turn
        self.W, self.W_rate = turn, 0.0 * turn


def closures(
    legs: Legs,
    letters: Letters,
    q: Array,
    qd: Array,
    platform: Platform | None,
    note: Note,
    axes: Array | None,
) -> Iterator[Closure]:
    """The closures of all loops over polynomials in symbols, with columns for q̇_r, then v.

    Args:
        legs: the robot.
        letters: give the parameters.
        q, qd: (n_r,) the joints in the order of `legs.names`, and their rates.
        platform: the motion of the free platform; None: no platform is free.
        note: see `TreeMotion`.
        axes: see `Constraints.axes`.
    """
    tree, robot = (
        symbolic_mechanism(each, letters, letters.rotation) for each in (legs.tree, legs.mechanism)
    )
    body = platform_links(robot) if platform else {}
    loops = list(_loops(legs, robot, letters))
    ground = Attachment(tree.base)
    inner = tuple(replace(x, successor=ground) if x.successor.link in body else x for x in loops)
    bare = standard_form(replace(without_bodies(tree), rotors=(), loops=inner))
    number = legs.mechanism.index()
    names = [number[link.name] for link in bare.links]
    S, s = bare.coordinates()
    none = np.zeros((len(S), platform.basis.shape[1] if platform else 0))
    order = [bare.joint_names.index(name) for name in legs.names]
    still = none[0] if len(S) else none
    motion = TreeMotion(
        bare,
        (np.hstack([S[:, order], none]), s),
        array([*q, *still]),
        array([*qd, *still]),
        lambda quantity, i, value: note(quantity, names[i], value),
    )
    # 1 is the joint that carries the platform in the description
    for k, (loop, held) in enumerate(zip(loops, bare.loops, strict=True), 1 if legs.free else 2):
        if platform and loop.successor.link in body:
            end = body[loop.successor.link] @ loop.successor.pose
            after: FrameMotion = _PlatformFrame(platform, end, len(q))
        else:
            after = motion.frame(held.successor)
        before = motion.frame(held.predecessor)
        for frame, mark in ((before, "f"), (after, "e")):
            frame.rotation = note(f"R_{mark}", k - 1, frame.rotation)
            frame.point = note(f"p_{mark}", k - 1, frame.point)
        yield Closure(loop.type, before, after, axes)


def _loops(legs: Legs, robot: Mechanism, letters: Letters) -> Iterator[Loop]:
    """The loops in symbols: e on the successor, f on the predecessor, numbered from 2, as 1 is the
    joint that carries the platform in the description."""
    if legs.free is None:
        yield from (symbolic_loop(x, i, letters) for i, x in enumerate(legs.mechanism.loops, 2))
        return
    position, *others, orientation = legs.free.mechanism.loops
    outer, inner = (robot.link(name).joint for name in (legs.wrist[0], legs.wrist[-1]))
    x, y = np.eye(3), np.eye(3)
    if position.type == "universal":
        # its closure is between the x axis on the leg and the y axis on the platform
        x, y = rotation_y(math.pi / 2), rotation_x(math.pi / 2)
    before = inner.origin @ Pose(rotation_to(inner.axis) @ x)
    after = outer.tail.inverse() @ Pose(rotation_to(outer.axis) @ y)
    top, turned = legs.wrist[0], after.rotation
    here, end = position.predecessor, Attachment(top, after)
    if len(legs.wrist) > 1:
        # where several axes meet has letters of its own
        before = Pose(before.rotation, point(here.pose.translation, "f", 1, letters))
        met = platform_links(legs.mechanism)[top] @ position.successor.pose
        across = platform_links(robot)[top].rotation @ after.rotation
        pose = Pose(across, point(met.translation, "e", 1, letters))
        end = Attachment(str(legs.mechanism.platform), pose)
        turned = letters.rotation(orientation.successor.pose.rotation, "e0")
    yield replace(position, predecessor=Attachment(here.link, before), successor=end)
    yield from (symbolic_loop(loop, i, letters) for i, loop in enumerate(others, 2))
    if legs.wrist[0] in {link.name for link in legs.tree.moving}:
        end = Attachment(top, Pose(turned))
        yield replace(orientation, predecessor=end, successor=end)
