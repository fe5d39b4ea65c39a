# SPDX-License-Identifier: Apache-2.0
"""The range of each motor of a robot with loops while the others are at home, and of pairs of
motors."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...closure import ClosedChain
from ...closure.geometry.path_following import beyond, march
from ...errors import ClosureError
from ...identification.recording import runs
from ...scalar import Floats

STRIDES = 120
"""Number of steps on each side of home"""
FINER = 16
"""Factor on the number of steps around a peak of the condition number"""
CELLS, CELLS_OF_MANY = 32, 20
"""Number of cells of a map along each motor: for a single map, and for each of several maps, which
take longer"""
EXACT = 1e-4
"""rad, or fractions of the robot's size: the accuracy of the ends of a range"""


@dataclass(frozen=True)
class Range:
    """The range of one motor."""

    name: str
    unit: str
    home: float
    """Its home position, rad or m"""
    lower: float
    """The lower end, rad or m"""
    upper: float
    """The upper end, rad or m"""
    ends: tuple[str, str]
    """The cause of each end: a limit, a singularity, a whole turn, or the end of the search"""
    conditions: tuple[float, float]
    """Condition numbers of the passive Jacobian at the ends"""
    without_torque: tuple[tuple[float, float], ...]
    """Intervals too near a singularity: the loops can be closed, but torques are refused"""
    places: Floats
    """(m,) positions, rad or m, increasing from `lower` to `upper`"""
    passive_conditions: Floats
    """(m,) condition numbers of the passive Jacobian at `places`"""
    limit: float
    """The condition number beyond which torques are refused"""
    travel: float | None
    """The motor's own travel: a turn, or from limit to limit; None: not known"""

    @property
    def share(self) -> float | None:
        """The fraction of its travel in which there are torques; None: the travel is not known."""
        if not self.travel:
            return None
        gone = sum(b - a for a, b in self.without_torque)
        whole = self.upper - self.lower  # a turn to either side is twice the travel
        return (whole - gone) / max(whole, self.travel)

    @property
    def span(self) -> tuple[float, float]:
        """The interval that is drawn: its travel, and a little beyond its ends."""
        turned = self.travel or 0.0
        middle = (self.lower + self.upper) / 2
        half = max(1.06 * (self.upper - self.lower), turned) / 2
        return middle - half, middle + half


@dataclass(frozen=True, eq=False)
class Map:
    """The condition number over the positions of two motors, with the others at home."""

    names: tuple[str, str]
    units: tuple[str, str]
    x: Floats
    """(k,) positions of the first motor, rad or m"""
    y: Floats
    """(k,) positions of the second motor, rad or m"""
    passive_conditions: Floats
    """(k, k) condition numbers, with a row for each y; NaN: out of reach"""
    limit: float


def ranges(closed: ClosedChain) -> list[Range]:
    """The range of every motor in q."""
    return [_range(closed, k) for k in range(len(closed.driving_names))]


def _range(closed: ClosedChain, k: int) -> Range:
    name = closed.driving_names[k]
    joint = closed.mechanism.joint(name)
    limits = joint.ends
    below, lower_end = _one_way(closed, k, -1.0, limits.lower)
    above, upper_end = _one_way(closed, k, 1.0, limits.upper)
    for side in (below, above):
        _refine(closed, k, side)
    points = [*reversed(below[1:]), *above]
    places = np.array([point.place for point in points])
    conditions = np.array([point.condition for point in points])
    travel = 2 * np.pi if joint.turns else None
    if limits.lower is not None and limits.upper is not None:
        travel = limits.upper - limits.lower
    return Range(
        name,
        joint.unit,
        float(closed.home.q_a[k]),
        float(places[0]),
        float(places[-1]),
        (lower_end, upper_end),
        (points[0].condition, points[-1].condition),
        tuple(_stretches(places, conditions, closed.condition_limit)),
        places,
        conditions,
        closed.condition_limit,
        travel,
    )


class _Point(NamedTuple):
    place: float
    q_r: Floats
    condition: float


def _one_way(
    closed: ClosedChain, k: int, sign: float, limit: float | None
) -> tuple[list[_Point], str]:
    """The positions from home on, and the cause of the end."""
    closer, home = closed.closer, closed.home
    joint = closed.mechanism.joint(closed.driving_names[k])
    scale = float(closer.scale[k])
    start = float(home.q_a[k])
    whole = 2 * np.pi if joint.turns else 4.0 * scale
    far = start + sign * whole if limit is None else limit
    points = [_Point(start, home.q_r, float(home.condition))]
    if sign * (far - start) <= 0:
        return points, "limit"

    def advance(reached: float, share: float) -> tuple[bool, float]:
        gone = beyond(reached, share)
        place = start * (1.0 - gone) + far * gone
        found = _at(closed, k, place, points[-1].q_r)
        if found is not None:
            points.append(found)
        return found is not None, share

    way = abs(far - start)
    reached, _ = march(
        advance, min(1.0, whole / STRIDES / way), EXACT * scale / way / 2, sys.maxsize
    )
    if reached < 1.0:
        # a dead point: the passive Jacobian loses rank
        return points, "singularity"
    if limit is not None:
        return points, "limit"
    return points, "a whole turn" if joint.turns else "end of the search"


def _refine(closed: ClosedChain, k: int, points: list[_Point]) -> None:
    """Add positions around peaks of the condition number, where a singularity may lie."""
    for i in range(len(points) - 2, 0, -1):
        beside = max(points[i - 1].condition, points[i + 1].condition)
        if points[i].condition < max(beside, closed.condition_limit / 100):
            continue
        for j in (i, i - 1):
            between = np.linspace(points[j].place, points[j + 1].place, FINER + 1)[1:-1]
            found = [_at(closed, k, float(place), points[j].q_r) for place in between]
            points[j + 1 : j + 1] = [each for each in found if each is not None]


def reach_maps(closed: ClosedChain) -> list[Map]:
    """A map of each motor with the next one, and of the last one with the first."""
    n = len(closed.driving_names)
    if n < 3:
        return [_map(closed, (0, 1), CELLS)] if n == 2 else []
    return [_map(closed, (k, (k + 1) % n), CELLS_OF_MANY) for k in range(n)]


def _map(closed: ClosedChain, pair: tuple[int, int], cells: int) -> Map:
    q_a = closed.home.q_a
    names = closed.driving_names[pair[0]], closed.driving_names[pair[1]]
    joints = closed.mechanism.joint(names[0]), closed.mechanism.joint(names[1])
    axes = []
    for k, joint in zip(pair, joints, strict=True):
        start = float(q_a[k])
        half = np.pi if joint.turns else 2.0 * float(closed.closer.scale[k])
        ends = joint.ends
        low = start - half if ends.lower is None else max(ends.lower, start - half)
        high = start + half if ends.upper is None else min(ends.upper, start + half)
        # home is the centre of a cell
        step = (high - low) / cells
        axes.append(np.unique(np.r_[np.arange(start, low, -step), np.arange(start, high, step)]))
    x, y = axes
    home = int(np.argmin(abs(y - q_a[pair[1]]))), int(np.argmin(abs(x - q_a[pair[0]])))
    conditions = np.full((len(y), len(x)), np.nan)
    conditions[home] = float(closed.home.condition)
    # from cell to cell by breadth-first search
    reached, waiting = {home: closed.home.q_r}, deque([home])
    while waiting:
        i, j = waiting.popleft()
        for cell in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            row, column = cell
            if cell in reached or not (0 <= row < len(y) and 0 <= column < len(x)):
                continue
            known = q_a.copy()
            known[list(pair)] = x[column], y[row]
            found = _to(closed, known, reached[i, j])
            if found is not None:
                reached[cell], conditions[cell] = found
                waiting.append(cell)
    units = joints[0].unit, joints[1].unit
    return Map(names, units, x, y, conditions, closed.condition_limit)


def _at(closed: ClosedChain, k: int, place: float, q_r: Floats) -> _Point | None:
    known = q_r[: len(closed.driving_names)].copy()
    known[k] = place
    found = _to(closed, known, q_r)
    return None if found is None else _Point(place, *found)


def _to(closed: ClosedChain, known: Floats, q_r: Floats) -> tuple[Floats, float] | None:
    try:
        found = closed.closer.forward_kinematics(known, q_r, 40)
    except ClosureError:
        return None
    state = closed.closer.state(found)
    if float(state.assembly_mode) != float(closed.home.assembly_mode):
        return None
    return found, float(state.condition)


def _stretches(places: Floats, conditions: Floats, most: float) -> list[tuple[float, float]]:
    """Intervals without torques, each from the last position with torques to the next one."""
    last = len(places) - 1
    return [
        (float(places[max(a - 1, 0)]), float(places[min(b, last)]))
        for a, b in runs(conditions > most)
    ]
