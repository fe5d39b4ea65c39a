# SPDX-License-Identifier: Apache-2.0
"""A mechanism with symbols in place of its numbers: the parameters of its equations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy

from ..description.expression import evaluate, letters
from ..mechanism import (
    Attachment,
    Friction,
    Inertial,
    Joint,
    Link,
    Loop,
    Mechanism,
    Pose,
    Rotor,
)
from ..scalar import Array, Floats, array, is_zero, rotation_x, rotation_y, rotation_z
from .polynomial import Polynomial, Ring

SHORT, ROUNDING = 8, 1e-13
"""Significant digits, and the relative distance within which a computed number is replaced by the
nearest one with that many digits"""
NOTHING = 1e-12
"""m: a computed coordinate below it is zero"""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RATIO = "Gamma"
"""The letter of gear ratios, unless `Parameters.ratio` is another one"""
_BODY = re.compile(r"(m|I_[xyz][xyz])r?\d+")
"""Names of masses and of entries of inertias"""

Naming = Callable[..., Any]
"""A function (name, value, place) → what represents the parameter in the equations; place is where
the description gives it, such as `link1.mass`"""


@dataclass
class Parameters:
    """Creates the parameters' symbols and records their values, or gives exact numbers instead."""

    symbols: bool
    values: dict[sympy.Symbol, float] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    """Names of the coordinates, which no parameter may have"""
    notation: Mapping[str, str] = field(default_factory=dict)
    """The description's own expressions, by place"""
    own: Mapping[str, float] = field(default_factory=dict)
    """The description's own symbols and their values"""
    ratio: str = RATIO
    """The letter of gear ratios"""

    @classmethod
    def of(
        cls, mechanism: Mechanism, symbols: bool, taken: Sequence[str], ratio: str = RATIO
    ) -> Parameters:
        """The parameters of a mechanism, in its own notation if it has one.

        Args:
            mechanism: the robot.
            symbols: True: symbols; False: exact numbers.
            taken: names that are in use.
            ratio: the letter of gear ratios.
        """
        names = frozenset(taken)
        return cls(symbols, {}, names, mechanism.notation, mechanism.symbols, ratio)

    def __call__(self, name: str, value: Any, place: str = "") -> Any:
        if is_zero(value):
            return sympy.Integer(0)
        if isinstance(value, sympy.Basic):
            return value
        if not self.symbols:
            return exact_number(float(value))
        text = self.notation.get(place)
        if text is not None:
            numbers = {each: self.own[each] for each in letters(text)}
            if math.isclose(evaluate(text, numbers), float(value), rel_tol=1e-12):
                return evaluate(text, {each: self._symbol(each, x) for each, x in numbers.items()})
        name = name.replace(RATIO, self.ratio)
        # each name stands for one number only
        while (
            name in self.taken
            or name in self.own
            or self.values.get(sympy.Symbol(name, real=True), value) != value
        ):
            name += "_0"
        return self._symbol(name, float(value))

    def _symbol(self, name: str, value: float) -> sympy.Symbol:
        symbol = sympy.Symbol(name, real=True)
        self.values[symbol] = value
        return symbol


Symbols = tuple[sympy.Symbol, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """The input of a derivation for an open chain."""

    mechanism: Mechanism
    q: Symbols
    qd: Symbols
    qdd: Symbols
    known: Parameters
    formulation: str
    rotors: str
    terms: frozenset[str]


@dataclass
class Letters:
    """The parameters as polynomials of one ring; see `Parameters`."""

    ring: Ring
    parameters: Parameters

    def __call__(self, name: str, value: Any, place: str = "") -> Any:
        if isinstance(value, Polynomial):
            return value
        expression = sympy.sympify(self.parameters(name, value, place))
        if expression == 0:
            return 0.0
        kind = "body" if _BODY.fullmatch(name) else "parameter"
        return polynomial(self.ring, expression, kind)

    def rotation(self, matrix: Array, i: str, place: str = "") -> Array:
        """A rotation matrix, exact for angles that are multiples of 15°, otherwise in symbols.

        Args:
            matrix: (3, 3), the rotation.
            i: the number of the link, with which the symbols' names end.
            place: where the description gives the rotation; see `Naming`.
        """
        result: Array | None = None
        for name, angle, about in angles(matrix):
            turns, turn = angle / (math.pi / 12), right(about, angle)
            if turn is None and abs(turns - round(turns)) < 1e-9:
                turn = about(Polynomial(self.ring, {0: complex(angle)}))
            elif turn is None:
                turn = about(self(f"{name}{i}", angle, f"{place}.{name}"))
            result = turn if result is None else result @ turn
        return np.eye(3) if result is None else result


def right(about: Callable[[Any], Array], angle: float) -> Array | None:
    """The exact rotation by a multiple of 90°; None for any other angle.

    Args:
        about: the rotation as a function of its angle, such as `rotation_x`.
        angle: rad.
    """
    turns = angle / (math.pi / 2)
    if abs(turns - round(turns)) > 1e-9:
        return None
    return np.asarray(np.round(about(round(turns) * math.pi / 2)) + 0.0)


def polynomial(ring: Ring, expression: sympy.Expr, kind: str) -> Polynomial:
    """A sum of products of symbols as a polynomial in the ring's letters.

    Args:
        ring: the ring.
        expression: the sum.
        kind: the kind of its symbols; see `Generator.kind`.
    """
    if expression.is_Number:
        constant: Polynomial = ring.constant(1.0) * _number(ring, expression)
        return constant
    if expression.is_Add:
        parts = [polynomial(ring, each, kind) for each in expression.args]
        return sum(parts[1:], parts[0])
    if expression.is_Mul:
        factors = [polynomial(ring, each, kind) for each in expression.args]
        return math.prod(factors, start=ring.constant(1.0))
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        factors = [polynomial(ring, expression.base, kind)] * int(expression.exp)
        return math.prod(factors, start=ring.constant(1.0))
    return ring.letter(kind, expression)


def _number(ring: Ring, number: sympy.Number) -> Any:
    value = float(number)
    scaled = value * 2**20
    whole = sympy.Rational(value) == number and scaled == int(scaled)
    return value if whole else ring.letter("number", number)


def angles(rotation: Array) -> list[tuple[str, float, Callable[[Any], Array]]]:
    """The elementary rotations that compose a rotation matrix, except those by zero, as
    (name, angle in rad, function from the angle to the matrix).

    They are Rx(alpha) Rz(phi) if the rotation has this form, as in a DH table, and otherwise
    Rz(yaw) Ry(pitch) Rx(roll).
    """
    R = np.asarray(rotation, dtype=float)
    if abs(R[0, 2]) < 1e-12:
        found = [
            ("alpha", math.atan2(-R[1, 2], R[2, 2]), rotation_x),
            ("phi", math.atan2(-R[0, 1], R[0, 0]), rotation_z),
        ]
    else:
        level = math.hypot(R[0, 0], R[1, 0])
        upright = level < 1e-9
        found = [
            ("yaw", 0.0 if upright else math.atan2(R[1, 0], R[0, 0]), rotation_z),
            ("pitch", math.atan2(-R[2, 0], level), rotation_y),
            (
                "roll",
                math.atan2(-R[1, 2], R[1, 1]) if upright else math.atan2(R[2, 1], R[2, 2]),
                rotation_x,
            ),
        ]
    return [(name, angle, turn) for name, angle, turn in found if abs(angle) > 1e-12]


def exact_number(value: float) -> sympy.Expr:
    """A number of a description as an exact decimal fraction or multiple of pi/24."""
    turns = value / math.pi * 24
    if value and abs(turns - round(turns)) < 1e-13 * abs(turns):
        return sympy.Rational(round(turns), 24) * sympy.pi
    return sympy.Rational(repr(value))


def plain_names(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Names that can be used in formulas: each name itself if it is an identifier and neither taken
    nor the name of another's rate, such as q1_d; otherwise q and its number, counted from 1, such
    as q1, or a similar name that is free.

    Args:
        names: distinct names.
        taken: names that are in use.
    """
    rates = {f"{name}{dots}" for name in names for dots in ("_d", "_dd")}
    rates |= {f"{name}{dots}" for name in taken for dots in ("", "_d", "_dd")}
    used = {*names, *rates}
    found = []
    for i, name in enumerate(names, start=1):
        plain = name
        if not _PLAIN.fullmatch(name) or name in rates:
            plain = f"q{i}"
            while used & {plain, f"{plain}_d", f"{plain}_dd"}:
                plain += "_"
        found.append(plain)
    return found


def symbols_of(names: Iterable[str], ending: str = "") -> Symbols:
    """Real symbols of these names with an ending, such as _d."""
    return tuple(sympy.Symbol(name + ending, real=True) for name in names)


FRICTION = {
    "viscous": "bv",
    "coulomb": "bc",
    "coulomb_negative": "bn",
    "offset": "bo",
    "stribeck_torque": "bs",
    "stribeck_rate": "ws",
    "stiffness": "bk",
    "presliding": "bd",
    "smoothing": "wd",
}
"""The symbols of a friction law, without the joint's number"""


def unnamed(matrix: Array, *_: str) -> Array:
    """The rotation matrix unchanged, as an array."""
    return np.asarray(matrix)


def symbolic_mechanism(
    mechanism: Mechanism, parameters: Naming, rotation: Callable[..., Array] = unnamed
) -> Mechanism:
    """The mechanism with `parameters` for its masses, lengths, inertias, ratios and gravity.

    Symbols count the links from 1: mass m1; centre of mass c_x1, c_y1, c_z1; inertia I_xx1 …;
    lengths a1 and d1 of a DH table, otherwise ox1, oy1, oz1 before the joint and a1, b1, d1 after
    it; angles alpha1, phi1 (or yaw1, pitch1, roll1); viscous friction bv1 and Coulomb friction bc1
    (other numbers of the law: FRICTION). Symbols of rotors have an r (mr1, bvr1 …), and the ratio
    Gamma1.

    Args:
        mechanism: the robot.
        parameters: gives the symbol or number for each parameter; see `Naming`.
        rotation: gives the rotation matrix to use in place of a numerical one.
    """
    links = tuple(
        _link(link, str(i), parameters, rotation) for i, link in enumerate(mechanism.links, 1)
    )
    rotors = tuple(
        _rotor(rotor, str(i), parameters, rotation) for i, rotor in enumerate(mechanism.rotors, 1)
    )
    gravity = _gravity(mechanism.gravity, parameters)
    return replace(mechanism, links=links, rotors=rotors, gravity=gravity)


def _gravity(gravity: Array, parameters: Naming) -> Array:
    """Gravity with one symbol g if it is along an axis of the base, otherwise one per component."""
    components = [value for value in gravity if not is_zero(value)]
    if len(components) == 1 and isinstance(components[0], (int, float, np.floating)):
        g = parameters("g", abs(components[0]), "gravity")
        return array([0 if is_zero(x) else g * int(math.copysign(1, x)) for x in gravity])
    return array([parameters(f"g{axis}0", x) for axis, x in zip("xyz", gravity, strict=True)])


def _link(link: Link, i: str, parameters: Naming, rotation: Callable[..., Array]) -> Link:
    joint: Joint = link.joint
    origin, tail = _geometry(joint, i, link.name, parameters, rotation)
    return replace(
        link,
        joint=replace(
            joint,
            origin=origin,
            # a joint axis is a direction and always consists of numbers
            axis=np.asarray(joint.axis),
            tail=tail,
            friction=_friction(joint.friction, i, link.name, parameters),
        ),
        inertial=_inertial(link.inertial, "", i, link.name, parameters),
    )


def dh_row(joint: Joint) -> tuple[str, dict[str, float]] | None:
    """("standard" or "modified", {theta, d, a, alpha} in rad and m), if a row of a DH table
    describes the joint; otherwise None."""
    if joint.axis.tolist() != [0.0, 0.0, 1.0]:
        return None
    before, after = joint.origin, joint.tail
    R, p = before.rotation, before.translation
    T, t = after.rotation, after.translation
    close = 1e-12
    if (
        abs(R[2, 2] - 1) < close
        and not p[:2].any()
        and abs(T[0, 0] - 1) < close
        and not t[1:].any()
    ):
        row = {
            "theta": math.atan2(R[1, 0], R[0, 0]),
            "d": float(p[2]),
            "a": float(t[0]),
            "alpha": math.atan2(T[2, 1], T[2, 2]),
        }
        return "standard", row
    if after.is_identity and abs(R[0, 2]) < close:
        alpha = math.atan2(-R[1, 2], R[2, 2])
        # origin = Rx(alpha) Tx(a) Rz(theta) Tz(d): p = (a, -d sin alpha, d cos alpha)
        if abs(p[1] * math.cos(alpha) + p[2] * math.sin(alpha)) < close:
            row = {
                "theta": math.atan2(-R[0, 1], R[0, 0]),
                "d": float(p[2] * math.cos(alpha) - p[1] * math.sin(alpha)),
                "a": float(p[0]),
                "alpha": alpha,
            }
            return "modified", row
    return None


def _geometry(
    joint: Joint, i: str, place: str, parameters: Naming, rotation: Callable[..., Array]
) -> tuple[Pose, Pose]:
    """(origin, tail), in terms of a and d if a row of a DH table describes the joint."""
    before, after = (
        rotation(joint.origin.rotation, i, place),
        rotation(joint.tail.rotation, i, place),
    )
    found = dh_row(joint)
    if found is None:
        origin = _translation(joint.origin, ("ox", "oy", "oz"), i, parameters)
        tail = _translation(joint.tail, ("a", "b", "d"), i, parameters, place)
        return Pose(before, origin), Pose(after, tail)
    convention, row = found
    a, d = (parameters(f"{name}{i}", _tidy(row[name]), f"{place}.{name}") for name in ("a", "d"))
    if convention == "standard":
        return Pose(before, array([0.0, 0.0, d])), Pose(after, array([a, 0.0, 0.0]))
    # z after the rotation about x: the third column of Rx(alpha) Rz(theta)
    return Pose(before, array([a, 0.0, 0.0]) + before[:, 2] * d), Pose()


def _tidy(value: float) -> float:
    """The value without the rounding error of a product with a cosine."""
    return round(value, 15) if abs(value) > 1e-15 else 0.0


def _rotor(rotor: Rotor, i: str, parameters: Naming, rotation: Callable[..., Array]) -> Rotor:
    several = len(rotor.ratios) > 1
    ratios = tuple(
        (
            name,
            parameters(
                f"{RATIO}{i}" + (f"_{k}" if several else ""),
                ratio,
                f"{rotor.name}.rotor.gear_ratio",
            ),
        )
        for k, (name, ratio) in enumerate(rotor.ratios, 1)
    )
    origin = _translation(rotor.origin, ("px", "py", "pz"), i, parameters)
    return replace(
        rotor,
        origin=Pose(rotation(rotor.origin.rotation, f"r{i}", f"{rotor.name}.rotor"), origin),
        ratios=ratios,
        inertial=_inertial(rotor.inertial, "r", i, f"{rotor.name}.rotor", parameters),
        friction=rotor.friction
        and _friction(rotor.friction, f"r{i}", f"{rotor.name}.rotor", parameters),
    )


def _friction(law: Friction, i: str, place: str, parameters: Naming) -> Friction:
    return Friction(
        **{
            field: parameters(FRICTION[field] + i, value, f"{place}.friction.{field}")
            for field, value in law.numbers.items()
        }
    )


def _translation(
    pose: Pose, names: tuple[str, str, str], i: str, parameters: Naming, place: str = ""
) -> Array:
    """The translation in symbols; `place` is the link if they are its own a, b and d."""
    return array(
        parameters(f"{name}{i}", x, f"{place}.{name}")
        for name, x in zip(names, pose.translation, strict=True)
    )


def _inertial(body: Inertial, kind: str, i: str, place: str, parameters: Naming) -> Inertial:
    tensor = np.empty((3, 3), dtype=object)
    for r, row in enumerate("xyz"):
        for c, column in enumerate("xyz"):
            if r <= c:
                name = f"I_{row}{column}{kind}{i}"
                where = f"{place}.inertia.i{row}{column}"
                tensor[r, c] = tensor[c, r] = parameters(name, body.inertia[r, c], where)
    if kind and body.inertia[0, 0] == body.inertia[1, 1]:
        tensor[1, 1] = tensor[0, 0]  # a rotationally symmetric rotor stays one in symbols
    center = [
        parameters(f"c_{axis}{kind}{i}", x, f"{place}.center_of_mass[{k}]")
        for k, (axis, x) in enumerate(zip("xyz", body.center_of_mass, strict=True))
    ]
    mass = parameters(f"m{kind}{i}", body.mass, f"{place}.mass")
    return Inertial(mass, array(center), tensor)


def symbolic_loop(loop: Loop, i: int, letters: Letters) -> Loop:
    """The loop of number i with symbols for the positions of its frames: e_xi, e_yi … on the
    successor, f_xi, f_yi … on the predecessor."""

    def placed(end: Attachment, kind: str) -> Attachment:
        turned = letters.rotation(end.pose.rotation, f"{kind}{i}")
        return Attachment(end.link, Pose(turned, point(end.pose.translation, kind, i, letters)))

    return replace(
        loop, predecessor=placed(loop.predecessor, "f"), successor=placed(loop.successor, "e")
    )


def point(position: Floats, kind: str, i: int, letters: Letters) -> Array:
    """A position (3,), m, in the letters e_xi, e_yi … of its kind and number."""
    values = (0.0 if abs(x) < NOTHING else near(x) for x in position)
    return array(letters(f"{kind}_{c}{i}", x) for c, x in zip("xyz", values, strict=True))


def near(value: float) -> float:
    """The short decimal that a computed value equals up to rounding, otherwise the value itself."""
    # a difference of short decimals: 0.0222 - 0.02215 is 5.000000000000143e-05
    short = float(f"{value:.{SHORT}g}")
    return short if abs(short - value) <= ROUNDING * abs(value) else value
