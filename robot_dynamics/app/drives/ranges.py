# SPDX-License-Identifier: Apache-2.0
"""How far each motor of a robot with loops goes from home, the others where home has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...closure import ClosedChain
from ...errors import ClosureError
from ...mechanism import Limits
from ...scalar import Floats
from ..units import position

STRIDES = 180
"""On each side of home"""
EXACT = 1e-4
"""rad, or shares of the size: where a range ends"""


@dataclass(frozen=True)
class Range:
    """Of one motor."""

    name: str
    unit: str
    home: float
    lower: float
    """How far it goes, rad or m"""
    upper: float
    ends: tuple[str, str]
    """What is there: a limit, a singularity, out of reach, or a whole turn"""
    conditions: tuple[float, float]
    """Of the passive Jacobian there"""
    without_torque: tuple[tuple[float, float], ...]
    """Stretches too near a singularity: the loops close there, and torques are refused"""

    @property
    def numbers(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "home": self.home,
            "ends": list(self.ends),
            "conditions": list(self.conditions),
            "without_torque": [list(each) for each in self.without_torque],
        }


def ranges(closed: ClosedChain) -> list[Range]:
    """Of every motor that q is of."""
    return [_range(closed, k) for k in range(len(closed.driving_names))]


def _range(closed: ClosedChain, k: int) -> Range:
    name = closed.driving_names[k]
    joint = closed.mechanism.joint(name)
    limits = joint.limits or Limits()
    sides = [
        _one_way(closed, k, -1.0, limits.lower),
        _one_way(closed, k, 1.0, limits.upper),
    ]
    places = [*reversed(sides[0].places[1:]), *sides[1].places]
    conditions = [*reversed(sides[0].conditions[1:]), *sides[1].conditions]
    return Range(
        name,
        position(joint),
        float(closed.home.q_a[k]),
        sides[0].places[-1],
        sides[1].places[-1],
        (sides[0].end, sides[1].end),
        (sides[0].conditions[-1], sides[1].conditions[-1]),
        tuple(_stretches(places, conditions, closed.condition_limit)),
    )


@dataclass
class _Side:
    places: list[float]
    conditions: list[float]
    end: str = ""


def _one_way(closed: ClosedChain, k: int, sign: float, limit: float | None) -> _Side:
    solver, home = closed.solver, closed.home
    joint = closed.mechanism.joint(closed.driving_names[k])
    scale = float(solver.scale[k])
    start = float(home.q_a[k])
    whole = 2 * np.pi if joint.turns else 4.0 * scale
    far = start + sign * whole if limit is None else limit
    side = _Side([start], [float(home.condition)])
    if sign * (far - start) <= 0:
        side.end = "limit"
        return side
    q_r = home.q_r
    step = whole / STRIDES
    while True:
        ahead = side.places[-1] + sign * step
        is_last = sign * (ahead - far) >= 0
        found = _at(closed, k, far if is_last else ahead, q_r)
        if found is not None:
            q_r, condition = found
            side.places.append(far if is_last else ahead)
            side.conditions.append(condition)
            if is_last:
                side.end = "limit" if limit is not None else "a whole turn"
                side.end = side.end if joint.turns or limit is not None else "further"
                return side
            step = min(2 * step, whole / STRIDES)
        elif step > EXACT * scale:
            step /= 2
        else:
            # a dead point: the passive Jacobian loses rank
            side.end = "singularity"
            return side


def _at(closed: ClosedChain, k: int, place: float, q_r: Floats) -> tuple[Floats, float] | None:
    known = q_r[: len(closed.driving_names)].copy()
    known[k] = place
    try:
        found = closed.solver.forward(known, q_r, 40)
    except ClosureError:
        return None
    state = closed.solver.state(found)
    if float(state.assembly_mode) != float(closed.home.assembly_mode):
        return None
    return found, float(state.condition)


def _stretches(
    places: list[float], conditions: list[float], most: float
) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    begin: float | None = None
    for place, condition in zip(places, conditions, strict=True):
        if condition > most:
            begin = place if begin is None else begin
            last = place
        elif begin is not None:
            found.append((begin, last))
            begin = None
    if begin is not None:
        found.append((begin, last))
    return found
