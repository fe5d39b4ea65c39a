# SPDX-License-Identifier: Apache-2.0
"""The parts of a robot, as immutable values in SI units.

Every number may be a float, a SymPy expression or a recorder's scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    is_zero,
    rotation_about,
)
from .bodies import Inertial, Pose, ReadOnly, frozen
from .friction import Friction
from .shown import as_html, in_one_line

T = TypeVar("T")

BASE = "base"
"""The default name of the link that does not move."""

TURNING = ("revolute", "continuous")
SLIDING = ("prismatic",)
JOINT_TYPES = (*TURNING, *SLIDING, "fixed")
LOOP_TYPES = ("revolute", "spherical", "universal", "prismatic", "fixed")


def new_name(name: str, taken: set[str], mark: str = "'") -> str:
    """The name, with marks added until it is new; it is then added to `taken`."""
    while name in taken:
        name += mark
    taken.add(name)
    return name


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
class Joint(ReadOnly):
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
        object.__setattr__(self, "axis", frozen("axis", self.axis))

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
class Mechanism(ReadOnly):
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
    """Joints with a motor; empty: every independent joint. Of an open chain it must name all, and
    its order has no meaning"""
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
        object.__setattr__(self, "gravity", frozen("gravity", self.gravity))

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
        """The joints with a motor: the order of the torques. Of an open chain these are all, in the
        order of q; of a robot with loops, by default all without a sensor."""
        if not self.loops:
            return self.joint_names
        return self.actuated or tuple(name for name in self.joint_names if name not in self.sensed)

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
    that all shafts and coupled joints follow independent joints, that all links named exist, and
    that no two links or moving joints have one name.

    Raises:
        InputError: a number that is not finite, a gravity that has not three, or another name.
    """
    _all_finite("", mechanism)
    finite("gravity", mechanism.gravity, 3)
    joints, links = mechanism.joint_names, [mechanism.base]
    names = [mechanism.base, *(link.name for link in mechanism.links)]
    for what, each in (("link", names), ("joint", mechanism.tree_names)):
        if len(set(each)) < len(each):
            name = next(name for name in each if each.count(name) > 1)
            raise wrong(InputError, what, name, "a name that no other one has")
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
