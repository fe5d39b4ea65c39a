# SPDX-License-Identifier: Apache-2.0
"""The parts of a robot, as immutable values in SI units.

Every number may be a float, a SymPy expression or a recorder's scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError, choices, wrong
from ..inputs import as_floats, finite
from ..scalar import (
    Array,
    Scalar,
    array,
    direction,
    exact,
    exp,
    is_number,
    is_zero,
    rotation_about,
    rotation_rpy,
    sign,
    zeros,
)
from .shown import as_html, in_one_line

T = TypeVar("T")

BASE = "base"
"""The default name of the link that does not move."""

TURNING = ("revolute", "continuous")
SLIDING = ("prismatic",)

TINY = 1e-18
"""m or rad, added to a distance that is divided by: nothing at rest, and its square is a number in
single precision, too"""
LEAST_SMOOTHING = 1e-9
"""rad/s or m/s: the slope of dry friction at rest, coulomb / smoothing, must be a finite number"""
LONGEST_PRESLIDING = 0.1
"""rad or m, far above that of any gear (some mrad). While a motion speeds up from a reversal, dry
friction drives its joint over 0.7 times this distance"""
JOINT_TYPES = (*TURNING, *SLIDING, "fixed")
LOOP_TYPES = ("revolute", "spherical", "universal", "prismatic", "fixed")


def new_name(name: str, taken: set[str], mark: str = "'") -> str:
    """The name, with marks added until it is new; it is then added to `taken`."""
    while name in taken:
        name += mark
    taken.add(name)
    return name


def _frozen(name: str, values: Array, cleaned: Callable[[Array], Array] = np.asarray) -> Array:
    try:
        copy = cleaned(array(values))
    except TypeError:  # nothing to iterate over
        raise wrong(InputError, name, values, "an array of numbers") from None
    copy.flags.writeable = False
    return copy


_NO_TURN = _frozen("rotation", np.eye(3))
_NO_SHIFT = _frozen("translation", zeros(3))


class _Kept:
    """Keeps arrays read-only in copies and after unpickling."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Pose(_Kept):
    """The pose of a frame in another one: x_outer = rotation @ x_inner + translation."""

    rotation: Array = field(default_factory=lambda: _NO_TURN)
    """(3, 3)"""
    translation: Array = field(default_factory=lambda: _NO_SHIFT)
    """(3,), m"""

    def __post_init__(self) -> None:
        if self.rotation is not _NO_TURN:
            object.__setattr__(self, "rotation", _frozen("rotation", self.rotation, exact))
        if self.translation is not _NO_SHIFT:
            object.__setattr__(self, "translation", _frozen("translation", self.translation))

    @property
    def is_default(self) -> bool:
        """Is this `Pose()`, the identity, which needs no multiplication? Most frames are."""
        return self.rotation is _NO_TURN and self.translation is _NO_SHIFT

    @property
    def is_identity(self) -> bool:
        """Is every number that of the identity?"""
        return np.array_equal(self.rotation, np.eye(3)) and not np.any(self.translation)

    @classmethod
    def from_xyz_rpy(cls, xyz: Array, rpy: Array) -> Pose:
        """The pose by translation and then rotation Rz(yaw) Ry(pitch) Rx(roll), as in URDF.

        Args:
            xyz: (3,) translation, m.
            rpy: (3,) roll, pitch and yaw, rad.
        """
        return cls(rotation_rpy(*rpy), array(xyz))

    def __matmul__(self, inner: Pose) -> Pose:
        if inner.is_default:
            return self
        if self.is_default:
            return inner
        return Pose(self.rotation @ inner.rotation, self.apply(inner.translation))

    def apply(self, point: Array) -> Array:
        """The coordinates (3,) in the outer frame of a point (3,) given in the inner frame, m."""
        return self.rotation @ point + self.translation

    def inverse(self) -> Pose:
        """The pose of the outer frame in the inner one."""
        if self.is_default:
            return self
        return Pose(self.rotation.T, -(self.rotation.T @ self.translation))

    def homogeneous(self) -> Array:
        """The pose as a homogeneous matrix (4, 4)."""
        upper = np.column_stack([self.rotation, self.translation])
        return np.vstack([upper, array([0.0, 0.0, 0.0, 1.0])])


@dataclass(frozen=True, eq=False)
class Inertial(_Kept):
    """The mass, centre of mass and inertia of a rigid body, in the frame of its link.

    Raises:
        InputError: a centre of mass or an inertia that is not an array.
    """

    mass: Scalar = 0.0
    """kg"""
    center_of_mass: Array = field(default_factory=lambda: zeros(3))
    """c (3,), m, in the link's frame"""
    inertia: Array = field(default_factory=lambda: zeros(3, 3))
    """I_C (3, 3), kg m², symmetric, about the centre of mass, on the link's axes"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "center_of_mass", _frozen("center_of_mass", self.center_of_mass))
        object.__setattr__(self, "inertia", _frozen("inertia", self.inertia))

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
        """Whether this body has neither mass nor inertia."""
        return is_zero(self.mass) and all(is_zero(x) for x in self.inertia.flat)

    def seen_from(self, pose: Pose) -> Inertial:
        """The same body expressed in another frame.

        Args:
            pose: of the body's present frame in the other one.

        Returns:
            Mass (kg), centre of mass (3,) (m) and inertia about it (3, 3) (kg·m²), on the axes of
            the other frame.
        """
        if pose.is_default:
            return self
        r = pose.rotation
        return Inertial(self.mass, pose.apply(self.center_of_mass), r @ self.inertia @ r.T)

    def __add__(self, other: Inertial) -> Inertial:
        """Both bodies, given in the same frame, welded into one."""
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


def inertia_matrix(
    ixx: Scalar, iyy: Scalar, izz: Scalar, ixy: Scalar, ixz: Scalar, iyz: Scalar
) -> Array:
    """The inertia tensor (3, 3), with off-diagonal entries as in URDF: ixy is -∫ x y dm."""
    return array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def body_numbers(mass: Scalar, point: Array, I: Array) -> list[Scalar]:
    """[mass, *point, Ixx, Iyy, Izz, Ixy, Ixz, Iyz], the ten numbers of a body; the point is its
    centre of mass or its first moment."""
    return [mass, *point, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def body_from(kind: Callable[[Scalar, Array, Array], T], numbers: Iterable[Scalar]) -> T:
    """The body `kind(mass, point, inertia)` with these `body_numbers` (10,)."""
    m, x, y, z, *moments = numbers
    return kind(m, array([x, y, z]), inertia_matrix(*moments))


def point_inertia(mass: Scalar, arm: Array) -> Array:
    """Inertia (3, 3), kg m², of a point mass about another point: m (r·r 1 - r rᵀ).

    Args:
        mass: kg.
        arm: r (3,), m, from that point to the mass, or back.
    """
    I: Array = mass * (np.dot(arm, arm) * np.eye(3) - np.outer(arm, arm))
    return I


@dataclass(frozen=True)
class Friction:
    """viscous·qd + (coulomb + stribeck_torque·exp(-(qd/stribeck_rate)²))·z + offset + stiffness·q.

    z, the direction of dry friction, is sign(qd), or tanh(qd/smoothing), or with presliding only
    tends to it after a reversal; see `heading`.

    It acts at a joint or, without stiffness and with the rotor's rate in place of qd, on a motor's
    rotor, in N·m·s/rad, N·m and rad/s (N·s/m, N and m/s). The offset is a constant bias; the
    stiffness is that of a spring whose torque at q = 0 is the offset. Both also act at rest. All
    other parts are zero at rest.
    """

    viscous: Scalar = 0.0
    """N·m·s/rad or N·s/m"""
    coulomb: Scalar = 0.0
    """N·m or N"""
    offset: Scalar = 0.0
    """N·m or N"""
    coulomb_negative: Scalar | None = None
    """Replaces `coulomb` at negative rates; None: `coulomb`"""
    stribeck_torque: Scalar = 0.0
    """N·m or N, added near rest; it vanishes within a few times `stribeck_rate`"""
    stribeck_rate: Scalar = 1.0
    """rad/s or m/s, above 0"""
    stiffness: Scalar = 0.0
    """N·m/rad or N/m; negative if the spring pushes the joint away"""
    presliding: Scalar = 0.0
    """rad or m: the distance over which dry friction turns round after a reversal; 0: at once"""
    smoothing: Scalar = 0.0
    """rad/s or m/s: the rate below which dry friction fades to zero; 0: it is a step at rest"""

    @property
    def coulomb_backwards(self) -> Scalar:
        """The Coulomb torque at negative rates."""
        return self.coulomb if self.coulomb_negative is None else self.coulomb_negative

    @property
    def numbers(self) -> dict[str, Scalar]:
        """The law's numbers by field: viscous and coulomb, and others only if they are set."""
        found = {"viscous": self.viscous, "coulomb": self.coulomb}
        if not is_zero(self.offset):
            found["offset"] = self.offset
        if self.coulomb_negative is not None:
            found["coulomb_negative"] = self.coulomb_negative
        if not is_zero(self.stribeck_torque):
            found["stribeck_torque"] = self.stribeck_torque
            found["stribeck_rate"] = self.stribeck_rate
        if not is_zero(self.stiffness):
            found["stiffness"] = self.stiffness
        if not is_zero(self.presliding):
            found["presliding"] = self.presliding
        if not is_zero(self.smoothing):
            found["smoothing"] = self.smoothing
        return found

    def faults(self, of_rotor: bool = False) -> Iterator[tuple[str, str, Any, str]]:
        """(field, its name in messages, value, what was expected) of each invalid coefficient.

        Args:
            of_rotor: is it the law of a rotor?
        """
        for key, value in self.numbers.items():
            says_so = "stribeck" in key or key in ("stiffness", "presliding", "smoothing")
            name = key.replace("_", " ") + ("" if says_so else " friction")
            if not is_number(value):
                yield key, name, value, "a finite number"
                return
            if key == "stribeck_rate" and not value > 0:
                yield key, name, value, "above 0"
            elif key == "stiffness" and of_rotor:
                yield key, name, value, "0: springs are at joints"
            elif key == "presliding" and of_rotor:
                yield key, name, value, "0: only the friction of joints has it"
            elif key == "presliding" and value > LONGEST_PRESLIDING:
                expected = f"at most {LONGEST_PRESLIDING:g} rad or m (some mrad are usual)"
                yield key, name, value, expected
            elif key == "smoothing" and 0 < value < LEAST_SMOOTHING:
                yield key, name, value, f"0, or at least {LEAST_SMOOTHING:g} rad/s or m/s"
            elif value < 0 and key not in ("offset", "stribeck_torque", "stiffness"):
                yield key, name, value, "at least 0"
        least = max(0.0, min(self.coulomb, self.coulomb_backwards))
        if self.stribeck_torque < -least:
            yield (
                "stribeck_torque",
                "stribeck torque",
                self.stribeck_torque,
                f"at least {0.0 - least:g}, so that no friction drives the joint",
            )

    def __add__(self, other: Friction) -> Friction:
        """The sum of two laws at the same rate; the Stribeck rate is that of the larger Stribeck
        torque, presliding and smoothing are those of the larger Coulomb torque."""
        negative = self.coulomb_negative, other.coulomb_negative
        both = self.coulomb_backwards + other.coulomb_backwards
        steeper = max(self, other, key=lambda law: abs(float(law.stribeck_torque)))
        turning = [law for law in (self, other) if not is_zero(law.presliding)]
        fading = [law for law in (self, other) if not is_zero(law.smoothing)]
        return Friction(
            self.viscous + other.viscous,
            self.coulomb + other.coulomb,
            self.offset + other.offset,
            None if negative == (None, None) else both,
            self.stribeck_torque + other.stribeck_torque,
            steeper.stribeck_rate,
            self.stiffness + other.stiffness,
            max(turning, key=lambda law: float(law.coulomb)).presliding if turning else 0.0,
            max(fading, key=lambda law: float(law.coulomb)).smoothing if fading else 0.0,
        )

    def at_joint(self, ratio: float) -> Friction:
        """A rotor's friction as friction at the joint: ratio·law(ratio·qd).

        Args:
            ratio: the gear ratio, rotor rate / joint rate; not 0.
        """
        size, other = abs(ratio), self.coulomb_negative
        ahead, back = self.coulomb, None if other is None else size * other
        if other is not None and ratio < 0:
            ahead, back = other, size * self.coulomb
        return Friction(
            size * size * self.viscous,
            size * ahead,
            ratio * self.offset,
            back,
            size * self.stribeck_torque,
            self.stribeck_rate / size,
            smoothing=self.smoothing / size,
        )

    def heading(self, rate: Scalar, acceleration: Scalar, smoothing: Scalar = 0.0) -> Scalar:
        """The direction z of dry friction, from -1 to 1: sign(rate), or with smoothing
        tanh(rate / smoothing), where the motion slows down.

        While it speeds up, z follows Dahl's law dz/dx = (sign(rate) - z) / presliding from the last
        reversal, which was rate² / 2|acceleration| ago if the acceleration is constant. So dry
        friction has no jump at a reversal.

        Args:
            rate: rad/s or m/s.
            acceleration: rad/s² or m/s²; 0: dry friction is fully developed.
            smoothing: rad/s or m/s, added to that of this law.

        Source: [Dahl76].
        """
        ahead = direction(rate, self.smoothing + smoothing)
        if is_zero(self.presliding) or is_zero(acceleration):
            return ahead
        # z = sign(q̇) (1 - 2 e^(-d/σ)),   d = q̇²/2|q̈|,   where q̇ q̈ > 0: s² + s is 2 there, else 0
        s = sign(rate * acceleration)
        distance = rate * rate / (2.0 * acceleration * sign(acceleration) * self.presliding + TINY)
        return ahead * (1.0 - (s * s + s) * exp(-distance))

    def torque(self, rate: Scalar, direction: Scalar, position: Scalar = 0.0) -> Scalar:
        """The friction torque or force at a joint's or rotor's rate, N·m or N.

        Args:
            rate: rad/s or m/s.
            direction: that of dry friction: `heading`, or sign(rate) where it is developed; 0 at
                rest.
            position: rad or m, for the spring.
        """
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
        if not is_zero(self.stiffness):
            torque = torque + self.stiffness * position
        return torque if is_zero(self.offset) else torque + self.offset


@dataclass(frozen=True)
class Limits:
    """The limits of a joint; None for those that are not known."""

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
    """(joint, ratio) of each joint that it follows"""
    offset: Scalar = 0.0
    """rad or m"""


@dataclass(frozen=True, eq=False)
class Joint(_Kept):
    """The motion of a link relative to its parent: link pose = origin · motion(axis, q) · tail."""

    name: str
    type: str
    """One of JOINT_TYPES"""
    origin: Pose = field(default_factory=Pose)
    """The joint's frame in the parent link's frame"""
    axis: Array = field(default_factory=lambda: array([0.0, 0.0, 1.0]))
    """(3,), a unit vector in the joint's frame"""
    tail: Pose = field(default_factory=Pose)
    """The link's frame in the joint's moving frame (a and alpha of standard DH parameters)"""
    friction: Friction = field(default_factory=Friction)
    limits: Limits | None = None
    """None: not known. They do not affect any torque"""
    coupling: Coupling | None = None
    """Set if the joint follows others (mimic joints, geared rotors)"""
    carries_frame: bool = True
    """False for a body of revolution, whose frame need not turn with it, as its tensor is
    constant"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", _frozen("axis", self.axis))

    @property
    def turns(self) -> bool:
        """Whether it is revolute or continuous (q in rad)."""
        return self.type in TURNING

    @property
    def slides(self) -> bool:
        """Whether it is prismatic (q in m)."""
        return self.type in SLIDING

    @property
    def moves(self) -> bool:
        """Whether it is not fixed."""
        return self.type != "fixed"

    @property
    def unit(self) -> str:
        """The unit of its position: rad or m."""
        return "m" if self.slides else "rad"

    @property
    def effort_unit(self) -> str:
        """The unit of its torque or force: N·m or N."""
        return "N" if self.slides else "N·m"

    @property
    def ends(self) -> Limits:
        """Its limits; all None if none are known."""
        return self.limits or Limits()

    @property
    def geometry(self) -> Joint:
        """The same joint without friction and limits."""
        return replace(self, friction=Friction(), limits=None)

    def pose(self, q: Scalar) -> Pose:
        """The pose of the link's frame in its parent's at joint position q, rad or m."""
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
    """The link that the joint is on"""
    joint: Joint
    inertial: Inertial = field(default_factory=Inertial)
    """In the link's frame"""
    intermediate: bool = False
    """Whether it only connects the parts of a joint with several degrees of freedom: it has no
    mass, and descriptions cannot name it"""


@dataclass(frozen=True, eq=False)
class Rotor:
    """The rotor of a motor, which turns about its frame's z axis by Σ ratio·q_j (rad)."""

    name: str
    mount: str
    """The link that carries the motor"""
    origin: Pose
    """The motor's frame in the mount link's frame"""
    ratios: tuple[tuple[str, Scalar], ...]
    """(joint, gear ratio): rotor rate / joint rate, rad/rad or rad/m; empty: it does not turn"""
    inertial: Inertial
    """In the rotor's own frame, which spins with it"""
    friction: Friction | None = None
    """On the motor's side of the gear, N·m·s/rad, N·m and rad/s; None: only the joints have
    friction"""

    @property
    def is_symmetric(self) -> bool:
        """Whether it is a balanced body of revolution, for which its angle does not matter."""
        c, i = self.inertial.center_of_mass, self.inertial.inertia
        off_axis = (c[0], c[1], i[0, 1], i[0, 2], i[1, 2], i[0, 0] - i[1, 1])
        return all(is_zero(x) for x in off_axis)


@dataclass(frozen=True)
class Armature:
    """Inertia (kg m²) and friction of a shaft that turns at the rate w = Σ ratio·qd_j:
    tau_j += ratio_j·(inertia·dw/dt + friction(w))."""

    ratios: tuple[tuple[str, Scalar], ...]
    """(joint, ratio): shaft rate / joint rate"""
    inertia: Scalar
    """kg m²"""
    friction: Friction | None = None
    """On the shaft; None: there is none"""


@dataclass(frozen=True, eq=False)
class Attachment:
    """A frame on a link."""

    link: str
    pose: Pose = field(default_factory=Pose)
    """The frame's pose in the link's frame"""


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a chain and is not part of the tree.

    A revolute joint turns about the z axes of its frames, a prismatic one slides along z, and a
    universal one turns about the predecessor's x and then the successor's y.
    """

    name: str
    type: str
    """One of LOOP_TYPES"""
    predecessor: Attachment
    """The joint's frame on one of the two links"""
    successor: Attachment
    """The joint's frame on the other link"""

    def mapped(self, change: Callable[[Attachment], Attachment]) -> Loop:
        """The same loop with both of its frames changed."""
        return replace(self, predecessor=change(self.predecessor), successor=change(self.successor))


@dataclass(frozen=True, eq=False)
class Mechanism(_Kept):
    """A robot. In `links` parents come before their children; joints have the same order.

    Tree coordinates are the positions of all moving joints. The independent coordinates
    (`joint_names`) are those of the joints that do not follow others.
    """

    name: str
    """The robot's name"""
    links: tuple[Link, ...]
    """All links but the base, parents before their children, each with the joint that carries it"""
    base: str = BASE
    """The name of the base link, whose frame is that of poses and gravity"""
    gravity: Array = field(default_factory=lambda: array([0.0, 0.0, -9.81]))
    """(3,), m/s², in the base frame"""
    rotors: tuple[Rotor, ...] = ()
    """The motors' rotors, as bodies that turn with their joints"""
    armatures: tuple[Armature, ...] = ()
    """Inertias and friction of shafts without a body of their own"""
    loops: tuple[Loop, ...] = ()
    """The joints that close kinematic loops; empty: an open chain or tree"""
    actuated: tuple[str, ...] = ()
    """Joints with a motor; empty: every independent joint"""
    driving: tuple[str, ...] = ()
    """If there are more motors than degrees of freedom: the motors whose positions are q"""
    shares: Mapping[str, float] = field(default_factory=dict)
    """In this case, for all motors: efforts of equal weight when sharing the torque, N·m or N"""
    sensed: tuple[str, ...] = ()
    """Passive joints with a sensor"""
    platform: str | None = None
    """The link that is the moving platform; None: there is none"""
    home: Mapping[str, float] = field(default_factory=dict)
    """Positions of joints, rad or m, with closed loops; they select the assembly mode"""
    near: Mapping[str, float | Array | Pose] = field(default_factory=dict)
    """The intended assembly mode, roughly: positions of joints, rad or m, and points (3,), m, or
    poses of links in the base frame"""
    spins: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """Links whose free spin was locked, as it does no work: the axis as a point (3,), m, and a
    direction (3,), in the link's frame"""
    base_motion: str | None = None
    """The floating joint, removed from `links`, by which something else moves the base; None: a
    fixed base"""
    source: str = ""
    """The file of the description, for messages"""
    symbols: Mapping[str, float] = field(default_factory=dict)
    """Values of the symbols that the description defines; no torque depends on them"""
    notation: Mapping[str, str] = field(default_factory=dict)
    """By place in the description (`link1.mass`), the expression in `symbols` that stands there"""
    base_inertial: Inertial = field(default_factory=Inertial, kw_only=True)
    """The base's own body, if it is known; it only matters for a floating base"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", _frozen("gravity", self.gravity))

    def __repr__(self) -> str:
        return in_one_line(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def label(self) -> str:
        """The file of the description, and the robot's name if it differs, for messages."""
        stem = self.source.rpartition("/")[2].split(".")[0]
        if not self.source or not self.name or stem == self.name:
            return self.source or self.name
        return f"{self.source} ({self.name})"

    @property
    def moving(self) -> tuple[Link, ...]:
        """The links whose joints move, with one tree coordinate each."""
        return tuple(link for link in self.links if link.joint.moves)

    @property
    def tree_names(self) -> tuple[str, ...]:
        """The moving joints: the order of the tree coordinates."""
        return tuple(link.joint.name for link in self.moving)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The independent joints: the order of q, qd, qdd."""
        return tuple(link.joint.name for link in self.moving if link.joint.coupling is None)

    @property
    def actuated_names(self) -> tuple[str, ...]:
        """The joints with a motor: the order of the torques. By default all; of a robot with loops,
        all without a sensor."""
        passive = self.sensed if self.loops else ()
        return self.actuated or tuple(name for name in self.joint_names if name not in passive)

    @property
    def driving_names(self) -> tuple[str, ...]:
        """The motors whose positions are q: of a robot with loops, as many as it has degrees of
        freedom."""
        return self.driving or self.actuated_names

    def link(self, name: str) -> Link:
        """The link of this name; the base is not among them.

        Args:
            name: the link's name.

        Raises:
            InputError: there is none; the message lists the names.
        """
        if name in self._by_name:
            return self._by_name[name]
        raise wrong(InputError, "link", name, choices(link.name for link in self.links))

    @cached_property
    def _by_name(self) -> dict[str, Link]:
        return {link.name: link for link in reversed(self.links)}

    def joint(self, name: str) -> Joint:
        """The joint of this name, moving or fixed.

        Args:
            name: the joint's name.

        Raises:
            InputError: there is none; the message lists the names.
        """
        for link in self.links:
            if link.joint.name == name:
                return link.joint
        raise wrong(InputError, "joint", name, choices(link.joint.name for link in self.links))

    def home_of(self, joint: str) -> float:
        """The home position of a joint, rad or m; 0 if the description does not give it.

        Args:
            joint: the joint's name.
        """
        return float(self.home.get(joint, 0.0))

    def index(self) -> dict[str, int]:
        """The index in `links` by name; that of the base is -1."""
        return {self.base: -1} | {link.name: i for i, link in enumerate(self.links)}

    def path(self, name: str) -> tuple[str, ...]:
        """The names of the links from this one to the base, including both.

        Args:
            name: of the base or any link.

        Raises:
            InputError: there is no such link.
        """
        names = [name]
        while names[-1] != self.base:
            names.append(self.link(names[-1]).parent)
        return tuple(names)

    def carriers(self) -> dict[str, tuple[str, Pose]]:
        """By link, (the moving link or base to which it is fixed, its pose in that one's frame);
        moving links and the base carry themselves."""
        found = {self.base: (self.base, Pose())}
        for link in self.links:
            if link.joint.moves:
                found[link.name] = (link.name, Pose())
            else:
                name, pose = found[link.parent]
                found[link.name] = (name, pose @ link.joint.pose(0.0))
        return found

    def coordinates(self) -> tuple[Array, Array]:
        """The map from the independent joints to the tree: q_tree = S q + s.

        Returns:
            (S, s): S (n_tree, n), rad or m per rad or m, with rows in the order of `tree_names` and
            columns in that of `joint_names`; s (n_tree,), rad or m.
        """
        column = {name: j for j, name in enumerate(self.joint_names)}
        couplings = [
            link.joint.coupling or Coupling(((link.joint.name, 1.0),)) for link in self.moving
        ]
        ratios = array([ratio for each in couplings for _, ratio in each.ratios])
        S = np.full((len(couplings), len(column)), 0.0, dtype=ratios.dtype)
        for i, coupling in enumerate(couplings):
            for master, ratio in coupling.ratios:
                S[i, column[master]] = S[i, column[master]] + ratio
        return S, array([coupling.offset for coupling in couplings])

    def row(self, ratios: tuple[tuple[str, Scalar], ...]) -> Array:
        """The row n (n,) of a shaft whose velocity is n·qd; qd (n,) are the rates of the
        independent joints, in the order of `joint_names`.

        Args:
            ratios: (joint, shaft velocity / joint velocity) of each independent joint that turns
                it, rad/rad or rad/m.

        Raises:
            ValueError: a joint that is not independent.
        """
        names, row = self.joint_names, [0.0] * len(self.joint_names)
        for name, ratio in ratios:
            j = names.index(name)
            row[j] = row[j] + ratio
        return array(row)

    def friction_rows(self) -> tuple[tuple[Array, Scalar, Friction], ...]:
        """(n, s, law) of everything that has friction: its position is n·q + s, its velocity n·qd,
        and tau += n·law(n·q + s, n·qd).

        First come the moving joints, whose rows n (n,) and s are those of S and s in `coordinates`,
        then rotors and armatures with friction, whose rows are those of `row`. The laws are in N·m
        or N.
        """
        joints = [
            (row, shift, link.joint.friction)
            for row, shift, link in zip(*self.coordinates(), self.moving, strict=True)
        ]
        shafts = [(self.row(ratios), 0.0, law) for ratios, law in self.shafts_with_friction()]
        return (*joints, *shafts)

    def shafts_with_friction(self) -> tuple[tuple[tuple[tuple[str, Scalar], ...], Friction], ...]:
        """(ratios, law) of the rotors and then the armatures that have friction."""
        shafts: tuple[Rotor | Armature, ...] = (*self.rotors, *self.armatures)
        laws = ((shaft.ratios, shaft.friction) for shaft in shafts)
        return tuple((ratios, law) for ratios, law in laws if law is not None)


def check_usable(mechanism: Mechanism) -> None:
    """Check that gravity, bodies, frames and friction are finite (limits alone may be infinite),
    that all shafts and coupled joints follow independent joints, and that all links named exist.

    Raises:
        InputError: a number that is not finite, a gravity that has not three, or another name.
    """
    _all_finite("", mechanism)
    finite("gravity", mechanism.gravity, 3)
    joints, links = mechanism.joint_names, [mechanism.base]
    for link in mechanism.links:
        _named(f"{link.name}: parent link", link.parent, links)
        links.append(link.name)
        for master, _ in link.joint.coupling.ratios if link.joint.coupling else ():
            _named(f"{link.joint.name}: joint that it follows", master, joints)
    for rotor in mechanism.rotors:
        _named(f"rotor {rotor.name}: mount", rotor.mount, links)
    shafts = [(f"rotor {rotor.name}", rotor.ratios) for rotor in mechanism.rotors]
    shafts += [("armature", armature.ratios) for armature in mechanism.armatures]
    for what, ratios in shafts:
        for joint, _ in ratios:
            _named(f"{what}: joint", joint, joints)


def _named(what: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise wrong(InputError, what, name, choices(names))


def _all_finite(name: str, value: Any) -> None:
    if isinstance(value, (str, bool, Limits)) or value is None:
        return
    if isinstance(value, tuple):
        value = {getattr(each, "name", i): each for i, each in enumerate(value)}
    elif is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        for key, each in value.items():
            _all_finite(f"{name}: {key}" if name else str(key), each)
        return
    found = as_floats(name, value)
    if not np.isfinite(found).all():
        raise wrong(InputError, name, found.tolist(), "finite numbers")
