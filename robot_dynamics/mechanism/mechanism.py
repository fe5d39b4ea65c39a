# SPDX-License-Identifier: Apache-2.0
"""What a robot is made of. Frozen values; SI units; every pose is given in the frame it names.

Every number may be a float, a SymPy expression or a recorder's scalar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import InputError, choices, wrong
from ..scalar import (
    Array,
    Scalar,
    array,
    exact,
    exp,
    is_number,
    is_zero,
    rotation_about,
    rotation_rpy,
    zeros,
)
from .shown import as_html, in_one_line

BASE = "base"
"""The default name of the link that does not move."""

TURNING = ("revolute", "continuous")
SLIDING = ("prismatic",)
JOINT_TYPES = (*TURNING, *SLIDING, "fixed")
LOOP_TYPES = ("revolute", "spherical", "universal", "prismatic", "fixed")


def _frozen(values: Array) -> Array:
    copy = array(values)
    copy.flags.writeable = False
    return copy


class _Kept:
    """Read-only arrays that stay so in copies and when they are unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Pose(_Kept):
    """A frame in another one: x_outer = rotation @ x_inner + translation."""

    rotation: Array = field(default_factory=lambda: np.eye(3))
    """(3, 3)"""
    translation: Array = field(default_factory=lambda: zeros(3))
    """(3,), m"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rotation", _frozen(exact(array(self.rotation))))
        object.__setattr__(self, "translation", _frozen(self.translation))

    @classmethod
    def from_xyz_rpy(cls, xyz: Array, rpy: Array) -> Pose:
        """Translation xyz (m), then rotation Rz(yaw) Ry(pitch) Rx(roll) (rad), as in URDF."""
        return cls(rotation_rpy(*rpy), array(xyz))

    def __matmul__(self, inner: Pose) -> Pose:
        return Pose(self.rotation @ inner.rotation, self.apply(inner.translation))

    def apply(self, point: Array) -> Array:
        """A point (3,) of the inner frame, in the outer frame."""
        return self.rotation @ point + self.translation

    def inverse(self) -> Pose:
        """The outer frame's pose in the inner one."""
        return Pose(self.rotation.T, -(self.rotation.T @ self.translation))

    def homogeneous(self) -> Array:
        """The same as a (4, 4) matrix."""
        upper = np.column_stack([self.rotation, self.translation])
        return np.vstack([upper, array([0.0, 0.0, 0.0, 1.0])])


@dataclass(frozen=True, eq=False)
class Inertial(_Kept):
    """Mass (kg), centre of mass (3,) (m, link frame), inertia (3, 3) (kg m², about the centre
    of mass, link axes)."""

    mass: Scalar = 0.0
    center_of_mass: Array = field(default_factory=lambda: zeros(3))
    inertia: Array = field(default_factory=lambda: zeros(3, 3))

    def __post_init__(self) -> None:
        object.__setattr__(self, "center_of_mass", _frozen(self.center_of_mass))
        object.__setattr__(self, "inertia", _frozen(self.inertia))

    @property
    def first_moment(self) -> Array:
        """m c (3,), kg m."""
        h: Array = self.mass * self.center_of_mass
        return h

    @property
    def inertia_about_origin(self) -> Array:
        """(3, 3), kg m², about the link frame's origin (Steiner)."""
        # I_O = I_C + m (c·c 1 - c cᵀ)
        return self.inertia + point_inertia(self.mass, self.center_of_mass)

    @property
    def is_nothing(self) -> bool:
        """Has this body neither mass nor inertia?"""
        return is_zero(self.mass) and all(is_zero(x) for x in self.inertia.flat)

    def seen_from(self, pose: Pose) -> Inertial:
        """The same body in the frame in which its own frame has this pose."""
        r = pose.rotation
        return Inertial(self.mass, pose.apply(self.center_of_mass), r @ self.inertia @ r.T)

    def __add__(self, other: Inertial) -> Inertial:
        """Both bodies, in the same frame, welded into one."""
        if other.is_nothing:
            return self
        if self.is_nothing:
            return other
        mass = self.mass + other.mass
        if is_zero(mass):
            return Inertial(mass, self.center_of_mass, self.inertia + other.inertia)
        center = (self.first_moment + other.first_moment) / mass
        inertia = (
            self.inertia
            + point_inertia(self.mass, self.center_of_mass - center)
            + other.inertia
            + point_inertia(other.mass, other.center_of_mass - center)
        )
        return Inertial(mass, center, inertia)


def point_inertia(mass: Scalar, arm: Array) -> Array:
    """Inertia (3, 3) of a point mass about the far end of the arm: m (r·r 1 - r rᵀ)."""
    I: Array = mass * (np.dot(arm, arm) * np.eye(3) - np.outer(arm, arm))
    return I


@dataclass(frozen=True)
class Friction:
    """viscous·qd + (coulomb + stribeck_torque·exp(-(qd/stribeck_rate)²))·sign(qd) + offset.

    At the joint, in N·m·s/rad, N·m and rad/s (N·s/m, N and m/s). The offset is a constant bias and
    acts at every rate, at rest too; everything else is nothing at rest.
    """

    viscous: Scalar = 0.0
    coulomb: Scalar = 0.0
    offset: Scalar = 0.0
    coulomb_negative: Scalar | None = None
    """Takes the place of `coulomb` at negative rates; None: it is the same"""
    stribeck_torque: Scalar = 0.0
    """What is added near rest, and gone a few stribeck_rate away from it"""
    stribeck_rate: Scalar = 1.0

    @property
    def coulomb_backwards(self) -> Scalar:
        """The Coulomb torque at negative rates."""
        return self.coulomb if self.coulomb_negative is None else self.coulomb_negative

    @property
    def numbers(self) -> dict[str, Scalar]:
        """The law's numbers by field; viscous and coulomb for a plain one."""
        found = {"viscous": self.viscous, "coulomb": self.coulomb}
        if not is_zero(self.offset):
            found["offset"] = self.offset
        if self.coulomb_negative is not None:
            found["coulomb_negative"] = self.coulomb_negative
        if not is_zero(self.stribeck_torque):
            found["stribeck_torque"] = self.stribeck_torque
            found["stribeck_rate"] = self.stribeck_rate
        return found

    def faults(self) -> Iterator[tuple[str, Any, str]]:
        """(name, value, what was expected) of each invalid number."""
        for key, value in self.numbers.items():
            name = key.replace("_", " ") + ("" if "stribeck" in key else " friction")
            if not is_number(value):
                yield name, value, "a finite number"
                return
            if key == "stribeck_rate" and not value > 0:
                yield name, value, "above 0"
            elif value < 0 and key not in ("offset", "stribeck_torque"):
                yield name, value, "at least 0"
        least = max(0.0, min(self.coulomb, self.coulomb_backwards))
        if self.stribeck_torque < -least:
            yield (
                "stribeck torque",
                self.stribeck_torque,
                f"at least {0.0 - least:g}, so that no friction drives the joint",
            )

    def torque(self, rate: Scalar, direction: Scalar) -> Scalar:
        """At this joint rate; direction is sign(rate) or what stands in for it, 0 at rest."""
        if self.coulomb_negative is None:
            # coulomb·sign(qd)
            dry = self.coulomb * direction
        else:
            # sign² + sign is 2 forwards, sign² - sign is 2 backwards, both are 0 at rest
            forwards = (direction * direction + direction) / 2
            backwards = (direction * direction - direction) / 2
            dry = self.coulomb * forwards - self.coulomb_negative * backwards
        if not is_zero(self.stribeck_torque):
            # stribeck_torque·exp(-(qd/stribeck_rate)²)·sign(qd)
            slow = rate / self.stribeck_rate
            dry = dry + self.stribeck_torque * exp(-(slow * slow)) * direction
        torque = self.viscous * rate + dry
        return torque if is_zero(self.offset) else torque + self.offset


@dataclass(frozen=True)
class Limits:
    """What a joint can do; None where nothing is known."""

    lower: float | None = None
    """rad or m"""
    upper: float | None = None
    """rad or m"""
    velocity: float | None = None
    """Largest rate in both directions, rad/s or m/s"""
    effort: float | None = None
    """Largest torque or force in both directions, N·m or N"""


@dataclass(frozen=True)
class Coupling:
    """A joint that follows others: q = Σ ratio·q_master + offset."""

    ratios: tuple[tuple[str, Scalar], ...]
    offset: Scalar = 0.0


@dataclass(frozen=True, eq=False)
class Joint(_Kept):
    """How a link moves in its parent: link pose = origin · motion(axis, q) · tail."""

    name: str
    type: str
    """One of JOINT_TYPES"""
    origin: Pose = field(default_factory=Pose)
    """The joint's frame in the parent link's frame"""
    axis: Array = field(default_factory=lambda: array([0.0, 0.0, 1.0]))
    """(3,), a unit vector in the joint's frame"""
    tail: Pose = field(default_factory=Pose)
    """The link's frame in the joint's moved frame (standard DH puts a and alpha here)"""
    friction: Friction = field(default_factory=Friction)
    limits: Limits | None = None
    """None: nothing is known. No torque depends on them"""
    coupling: Coupling | None = None
    """Set where the joint follows others (mimic, or a geared rotor)"""
    carries_frame: bool = True
    """False for a body of revolution whose frame need not turn with it: its tensor is the same"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", _frozen(self.axis))

    @property
    def turns(self) -> bool:
        """Is it revolute or continuous (q in rad)?"""
        return self.type in TURNING

    @property
    def slides(self) -> bool:
        """Is it prismatic (q in m)?"""
        return self.type in SLIDING

    @property
    def moves(self) -> bool:
        """Is it not fixed?"""
        return self.type != "fixed"

    @property
    def unit(self) -> str:
        """Of its position: rad or m."""
        return "m" if self.slides else "rad"

    @property
    def effort_unit(self) -> str:
        """N·m or N"""
        return "N" if self.slides else "N·m"

    @property
    def ends(self) -> Limits:
        """Its limits, empty where none are known."""
        return self.limits or Limits()

    @property
    def geometry(self) -> Joint:
        """The same joint without friction and limits."""
        return replace(self, friction=Friction(), limits=None)

    def pose(self, q: Scalar) -> Pose:
        """The link's frame in its parent's at joint position q (rad or m)."""
        if self.turns and self.carries_frame:
            motion = Pose(rotation_about(self.axis, q))
        elif self.slides:
            motion = Pose(translation=self.axis * q)
        else:
            motion = Pose()
        return self.origin @ motion @ self.tail


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body and the joint that carries it."""

    name: str
    parent: str
    joint: Joint
    inertial: Inertial = field(default_factory=Inertial)


@dataclass(frozen=True, eq=False)
class Rotor:
    """A motor's rotor: it turns about its frame's z axis by Σ ratio·q_j (rad)."""

    name: str
    mount: str
    """The link that carries the motor"""
    origin: Pose
    """The motor's frame in the mount link's frame"""
    ratios: tuple[tuple[str, Scalar], ...]
    """(joint, gear ratio): rotor rate / joint rate, rad/rad or rad/m; none: it stands still"""
    inertial: Inertial
    """In the rotor's own, spinning frame"""

    @property
    def is_symmetric(self) -> bool:
        """Is it balanced and of revolution about its axis, so that its angle does not matter?"""
        c, i = self.inertial.center_of_mass, self.inertial.inertia
        off_axis = (c[0], c[1], i[0, 1], i[0, 2], i[1, 2], i[0, 0] - i[1, 1])
        return all(is_zero(x) for x in off_axis)


@dataclass(frozen=True)
class Armature:
    """Inertia (kg m²) about one shaft at the rate Σ ratio·qd_j: tau_j += ratio_j·inertia·rate'."""

    ratios: tuple[tuple[str, Scalar], ...]
    inertia: Scalar


@dataclass(frozen=True, eq=False)
class Attachment:
    """A frame on a link."""

    link: str
    pose: Pose = field(default_factory=Pose)


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a chain: it is not in the tree.

    revolute turns about z of its frames, prismatic slides along z, universal turns about the
    predecessor's x and then the successor's y.
    """

    name: str
    type: str
    """One of LOOP_TYPES"""
    predecessor: Attachment
    successor: Attachment


@dataclass(frozen=True, eq=False)
class Mechanism(_Kept):
    """A robot. `links` come parents first; joints move in that order.

    Tree coordinates are those of all moving joints; the independent ones (`joint_names`) leave
    out those that follow others.
    """

    name: str
    links: tuple[Link, ...]
    base: str = BASE
    gravity: Array = field(default_factory=lambda: array([0.0, 0.0, -9.81]))
    """(3,), m/s², in the base frame"""
    rotors: tuple[Rotor, ...] = ()
    armatures: tuple[Armature, ...] = ()
    loops: tuple[Loop, ...] = ()
    actuated: tuple[str, ...] = ()
    """Joints with a motor; empty: every independent joint"""
    driving: tuple[str, ...] = ()
    """Where there are more motors than degrees of freedom: those whose positions are q"""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Of these motors, all of them: torques that count alike, N·m or N"""
    sensed: tuple[str, ...] = ()
    platform: str | None = None
    home: Mapping[str, float] = field(default_factory=dict)
    near: Mapping[str, float | Array | Pose] = field(default_factory=dict)
    """Which assembly mode is meant, roughly: positions of joints, rad or m; points (3,), m, or
    poses of links in the base frame"""
    spins: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """Links that spin freely about themselves and are held, as that does no work: the axis, a point
    (3,) in m and a direction (3,), in the link's frame"""
    base_motion: str | None = None
    """The floating joint, taken out, by which something else moves the base; None: it stands"""
    source: str = ""
    """The file that it was described in, for messages"""
    symbols: Mapping[str, float] = field(default_factory=dict)
    """Names that the description gives to numbers of its own; no torque depends on them"""
    notation: Mapping[str, str] = field(default_factory=dict)
    """Where the description has them (`link1.mass`) to its expressions in `symbols`"""
    base_inertial: Inertial = field(default_factory=Inertial, kw_only=True)
    """Of the base's own body, where it is known: it counts on a floating base alone"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", _frozen(self.gravity))

    def __repr__(self) -> str:
        return in_one_line(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def label(self) -> str:
        """For messages: the file that it was described in and its name, where that is another."""
        stem = self.source.rpartition("/")[2].split(".")[0]
        if not self.source or not self.name or stem == self.name:
            return self.source or self.name
        return f"{self.source} ({self.name})"

    @property
    def moving(self) -> tuple[Link, ...]:
        """The links whose joints move: one tree coordinate each."""
        return tuple(link for link in self.links if link.joint.moves)

    @property
    def tree_names(self) -> tuple[str, ...]:
        """Every moving joint."""
        return tuple(link.joint.name for link in self.moving)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The independent joints: the order of q, qd, qdd."""
        return tuple(link.joint.name for link in self.moving if link.joint.coupling is None)

    @property
    def actuated_names(self) -> tuple[str, ...]:
        """The joints with a motor: the order of the torques."""
        return self.actuated or self.joint_names

    @property
    def driving_names(self) -> tuple[str, ...]:
        """The motors whose positions are q of a robot with loops: as many as it needs."""
        return self.driving or self.actuated_names

    def link(self, name: str) -> Link:
        """The link of this name.

        Raises:
            InputError: there is none; the message has the names that there are.
        """
        for link in self.links:
            if link.name == name:
                return link
        raise wrong(InputError, "link", name, choices(link.name for link in self.links))

    def joint(self, name: str) -> Joint:
        """The joint of this name.

        Raises:
            InputError: there is none; the message has the names that there are.
        """
        for link in self.links:
            if link.joint.name == name:
                return link.joint
        raise wrong(InputError, "joint", name, choices(link.joint.name for link in self.links))

    def index(self) -> dict[str, int]:
        """Link name to place in `links`; the base is -1."""
        return {self.base: -1} | {link.name: i for i, link in enumerate(self.links)}

    def path(self, name: str) -> tuple[str, ...]:
        """The links from this one up to the base, both included."""
        names = [name]
        while names[-1] != self.base:
            names.append(self.link(names[-1]).parent)
        return tuple(names)

    def coordinates(self) -> tuple[Array, Array]:
        """(S, s) with q_tree = S q + s; S is (n_tree, n), s is (n_tree,)."""
        column = {name: j for j, name in enumerate(self.joint_names)}
        rows, offsets = [], []
        for link in self.moving:
            coupling = link.joint.coupling or Coupling(((link.joint.name, 1.0),))
            row = [0.0] * len(column)
            for master, ratio in coupling.ratios:
                row[column[master]] = row[column[master]] + ratio
            rows.append(row)
            offsets.append(coupling.offset)
        return array(rows).reshape(len(rows), len(column)), array(offsets)
