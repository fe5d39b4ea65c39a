"""A mechanism whose numbers are SymPy's: exact, or symbols of their own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy

from ..mechanism import Friction, Inertial, Joint, Link, Mechanism, Pose, Rotor
from ..scalar import Array, array, is_zero

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TIDY = {
    round(float(value), 12): value for k in range(13) for value in (sympy.cos(k * sympy.pi / 12),)
}
"""Cosines of the multiples of 15°: the exact numbers behind most rotation matrices"""


@dataclass
class Parameters:
    """Hands out symbols and remembers the values they stand for; numbers stay exact otherwise."""

    symbols: bool
    values: dict[sympy.Symbol, float] = field(default_factory=dict)

    def __call__(self, name: str, value: Any) -> Any:
        if is_zero(value):
            return sympy.Integer(0)
        if isinstance(value, sympy.Basic):
            return value
        if not self.symbols:
            return exact_number(float(value))
        symbol = sympy.Symbol(name, real=True)
        self.values[symbol] = float(value)
        return symbol


def exact_number(value: float) -> sympy.Expr:
    """The decimal fraction that a description's number is, or the multiple of pi."""
    turns = value / math.pi * 24
    if value and abs(turns - round(turns)) < 1e-13 * abs(turns):
        return sympy.Rational(round(turns), 24) * sympy.pi
    return sympy.Rational(repr(value))


def exact_rotation(rotation: Array) -> Array:
    """Entries that are cosines of multiples of 15° made exactly that."""

    def entry(x: Any) -> Any:
        if isinstance(x, sympy.Basic):
            return x
        tidy = _TIDY.get(round(float(x), 12))
        return tidy if tidy is not None else sympy.Rational(repr(float(x)))

    return array([[entry(x) for x in row] for row in rotation])


def plain_names(names: Sequence[str], prefix: str) -> list[str]:
    """Names fit for a formula: a description's own where it is an identifier, else prefix_i."""
    return [
        name if _PLAIN.fullmatch(name) else f"{prefix}{i}" for i, name in enumerate(names, start=1)
    ]


FRICTION = {
    "viscous": "bv",
    "coulomb": "bc",
    "coulomb_negative": "bn",
    "offset": "bo",
    "stribeck_torque": "bs",
    "stribeck_rate": "ws",
}
"""The symbols of a law of friction, without the joint's number"""

Naming = Callable[[str, Any], Any]
"""(name, value) to what stands for it in the equations"""


def symbolic_mechanism(
    mechanism: Mechanism, parameters: Naming, *, exact: bool = True
) -> Mechanism:
    """The same mechanism with masses m, lengths, inertias, ratios and gravity from `parameters`.

    Symbols count the moving links from 1: m1, centre of mass c_x1 c_y1 c_z1, inertia I_xx1 …,
    a1, b1 and d1 along x, y and z after the joint (DH's a and d), ox1 oy1 oz1 before it,
    viscous friction bv1, Coulomb friction bc1 (its other numbers: FRICTION); rotors likewise with
    an r: mr1 …, ratio Gamma1.
    Rotations and axes become exact numbers, or stay floats if not `exact`.
    """
    tidy = exact_rotation if exact else np.asarray
    links = tuple(
        _link(link, str(i), parameters, tidy) for i, link in enumerate(mechanism.links, 1)
    )
    rotors = tuple(
        _rotor(rotor, str(i), parameters, tidy) for i, rotor in enumerate(mechanism.rotors, 1)
    )
    gravity = _gravity(mechanism.gravity, parameters)
    return replace(mechanism, links=links, rotors=rotors, gravity=gravity)


def _gravity(gravity: Array, parameters: Naming) -> Array:
    """One symbol g where gravity is along an axis of the base, else one a component."""
    components = [value for value in gravity if not is_zero(value)]
    if len(components) == 1 and not isinstance(components[0], sympy.Basic):
        g = parameters("g", abs(components[0]))
        return array([0 if is_zero(x) else g * int(math.copysign(1, x)) for x in gravity])
    return array([parameters(f"g{axis}0", x) for axis, x in zip("xyz", gravity, strict=True)])


def _link(link: Link, i: str, parameters: Naming, tidy: Callable[[Array], Array]) -> Link:
    joint: Joint = link.joint
    return replace(
        link,
        joint=replace(
            joint,
            origin=_pose(joint.origin, ("ox", "oy", "oz"), i, parameters, tidy),
            # a joint axis is a direction: exact numbers, never symbols
            axis=tidy(joint.axis.reshape(1, 3)).reshape(3),
            tail=_pose(joint.tail, ("a", "b", "d"), i, parameters, tidy),
            friction=Friction(
                **{
                    field: parameters(FRICTION[field] + i, value)
                    for field, value in joint.friction.numbers.items()
                }
            ),
        ),
        inertial=_inertial(link.inertial, "", i, parameters),
    )


def _rotor(rotor: Rotor, i: str, parameters: Naming, tidy: Callable[[Array], Array]) -> Rotor:
    several = len(rotor.ratios) > 1
    ratios = tuple(
        (name, parameters(f"Gamma{i}" + (f"_{k}" if several else ""), ratio))
        for k, (name, ratio) in enumerate(rotor.ratios, 1)
    )
    return replace(
        rotor,
        origin=_pose(rotor.origin, ("px", "py", "pz"), i, parameters, tidy),
        ratios=ratios,
        inertial=_inertial(rotor.inertial, "r", i, parameters),
    )


def _pose(
    pose: Pose,
    names: tuple[str, str, str],
    i: str,
    parameters: Naming,
    tidy: Callable[[Array], Array],
) -> Pose:
    translation = [
        parameters(f"{name}{i}", x) for name, x in zip(names, pose.translation, strict=True)
    ]
    return Pose(tidy(pose.rotation), array(translation))


def _inertial(body: Inertial, kind: str, i: str, parameters: Naming) -> Inertial:
    tensor = np.empty((3, 3), dtype=object)
    for r, row in enumerate("xyz"):
        for c, column in enumerate("xyz"):
            if r <= c:
                name = f"I_{row}{column}{kind}{i}"
                tensor[r, c] = tensor[c, r] = parameters(name, body.inertia[r, c])
    if kind and body.inertia[0, 0] == body.inertia[1, 1]:
        tensor[1, 1] = tensor[0, 0]  # a rotor of revolution stays one in symbols
    center = [
        parameters(f"c_{axis}{kind}{i}", x)
        for axis, x in zip("xyz", body.center_of_mass, strict=True)
    ]
    return Inertial(parameters(f"m{kind}{i}", body.mass), array(center), tensor)
