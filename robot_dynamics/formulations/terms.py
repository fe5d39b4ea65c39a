# SPDX-License-Identifier: Apache-2.0
"""The terms of the torques: their bodies, and whether they use rates, accelerations or gravity.
All code that selects terms uses this table.

The torques of a set of terms are the sum of the torques of each. The weight of rotors belongs to
gravity, so gravity alone holds the robot at rest, and no weight remains if another part of the
system compensates gravity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, wrong
from ..scalar import Array, array, zeros


@dataclass(frozen=True)
class Term:
    """One part of the torques."""

    bodies: frozenset[str]
    """What contributes to it: links, rotors, joints or (the motors') shafts"""
    rates: bool = False
    """Whether it depends on q̇ (gravity and inertia do not)"""
    accelerations: bool = False
    gravity: bool = False


_LINKS, _ROTORS = frozenset({"links"}), frozenset({"rotors"})
TABLE = {
    "inertia": Term(_LINKS, accelerations=True),
    "coriolis": Term(_LINKS, rates=True),
    "gravity": Term(_LINKS | _ROTORS, gravity=True),
    "friction": Term(frozenset({"joints", "shafts"}), rates=True),
    "rotors": Term(_ROTORS, rates=True, accelerations=True),
}
TERMS = tuple(TABLE)
"""inertia: D q̈ of the links; coriolis: C q̇ of the links; gravity: g of links and rotors; friction:
that of joints and motors; rotors: D q̈ + C q̇ of the rotors"""

RIGID = tuple(name for name, term in TABLE.items() if term.bodies & (_LINKS | _ROTORS))
"""The terms of rigid bodies: all but friction"""
MOTION = tuple(name for name in RIGID if not TABLE[name].gravity)
"""The terms that make up D and C"""
ACCELERATED = frozenset(name for name in MOTION if TABLE[name].accelerations)
"""The terms that make up D"""
TURNING = frozenset(name for name in MOTION if TABLE[name].rates)
"""The terms that make up C"""
OF_LINKS = tuple(name for name in RIGID if "links" in TABLE[name].bodies)


def motion_of(bodies: str, terms: Collection[str], qd: Array, qdd: Array) -> tuple[Array, Array]:
    """(qd, qdd) (n,) as the chosen terms of `links` or `rotors` use them: zero if none does."""
    chosen = [TABLE[name] for name in terms if bodies in TABLE[name].bodies]
    still = zeros(*np.shape(array(qd)))
    return (
        qd if any(term.rates for term in chosen) else still,
        qdd if any(term.accelerations for term in chosen) else still,
    )


def move(bodies: str, terms: Collection[str]) -> bool:
    """Do the chosen terms depend on the motion of `links` or `rotors`?"""
    return any(name in terms and bodies in TABLE[name].bodies for name in MOTION)


def effective_rotors(rotors: str, terms: Collection[str]) -> str:
    """The rotor model if the chosen terms include the rotors' motion or weight, otherwise none."""
    turning = any(name in terms and term.bodies & _ROTORS for name, term in TABLE.items())
    return rotors if turning else "none"


def gravity_of(terms: Collection[str], gravity: Array) -> Array:
    """Gravity (3,), m/s², as the chosen terms use it."""
    return gravity if any(TABLE[name].gravity for name in terms) else zeros(3)


def moves_as_one(terms: Collection[str]) -> bool:
    """Do the chosen terms include all terms of motion, or none?"""
    return len({name in terms for name in MOTION}) == 1


def names_of_terms(chosen: Any) -> tuple[Any, ...]:
    """Names of terms as a tuple; `Equations` checks whether these terms exist.

    Raises:
        InputError: they are not names.
    """
    names = (chosen,) if isinstance(chosen, str) else chosen
    if isinstance(names, Iterable):
        names = tuple(names)
        if all(isinstance(name, str) for name in names):
            return names
    raise wrong(InputError, "terms", chosen, "names of terms")
