# SPDX-License-Identifier: Apache-2.0
"""What a motion has to keep to: the joints' limits, and where links may not be."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..description.files import find, read_text
from ..description.yaml_text import plain
from ..errors import DescriptionError, InputError, choices, wrong
from ..mechanism import Limits, Mechanism
from ..scalar import is_number
from .recording import Floats

TURN = math.pi
"""rad to either side of home: how far a joint turns of which no position limit is known"""
RATE = {True: 1.0, False: 0.25}
"""rad/s or m/s, by whether it turns: the rate of a joint of which no limit is known"""
RISE = 0.5
"""s from rest to the largest rate: the acceleration where no limit of it is known"""


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """The largest magnitudes, of all moving joints (those that follow others too)."""

    joints: tuple[str, ...]
    """(m,), the mechanism's `tree_names`"""
    lower: Floats
    """(m,), rad or m"""
    upper: Floats
    """(m,), rad or m"""
    rate: Floats
    """(m,), rad/s or m/s"""
    acceleration: Floats
    """(m,), rad/s² or m/s²"""
    effort: Floats
    """(n,), N·m or N, of the independent joints; inf: not known"""
    notes: tuple[str, ...] = ()
    """What was assumed"""

    def within(self, margin: float) -> MotionLimits:
        """The same with this share left free: of the positions' range, and of each magnitude."""
        span = self.upper - self.lower
        room = np.where(np.isfinite(span), margin * span / 2, 0.0)
        keep = 1.0 - margin
        return replace(
            self,
            lower=self.lower + room,
            upper=self.upper - room,
            rate=keep * self.rate,
            acceleration=keep * self.acceleration,
            effort=keep * self.effort,
        )


@dataclass(frozen=True)
class Above:
    """A link's origin stays above the plane z = height of the base frame."""

    link: str
    height: float
    """m"""

    def room(self, points: NDArray[Any]) -> Floats:
        """(…,), m: how far points (…, 3) are on the right side."""
        return np.asarray(points[..., 2] - self.height)

    def __str__(self) -> str:
        return f"{self.link} above {self.height:g} m"


@dataclass(frozen=True)
class Outside:
    """A link's origin stays out of a sphere in the base frame."""

    link: str
    center: tuple[float, float, float]
    """m"""
    radius: float
    """m"""

    def room(self, points: NDArray[Any]) -> Floats:
        """(…,), m: how far points (…, 3) are on the right side."""
        return np.asarray(np.linalg.norm(points - np.array(self.center), axis=-1) - self.radius)

    def __str__(self) -> str:
        return f"{self.link} out of {self.radius:g} m around {self.center}"


Region = Above | Outside


def motion_limits(mechanism: Mechanism, file: str | os.PathLike[str] | None = None) -> MotionLimits:
    """The limits of the description, and over them those of a joint_limits.yaml as MoveIt has it.

    Where neither says anything: half a turn to either side of home, 1 rad/s (0.25 m/s), and the
    acceleration that reaches the largest rate in 0.5 s. A limit of 0 says nothing.

    Raises:
        InputError: a broken file, an unknown joint, an impossible limit, or a sliding joint of
            which no position limit is known.
    """
    given = _moveit(mechanism, file) if file is not None else {}
    notes = []
    rows = []
    for link in mechanism.moving:
        joint = link.joint
        known, mine = joint.limits or Limits(), given.get(joint.name, {})
        home = float(mechanism.home.get(joint.name, 0.0))
        lower = mine.get("min_position", known.lower)
        upper = mine.get("max_position", known.upper)
        if lower is None or upper is None or lower == upper == 0:
            if joint.coupling is not None:  # where its masters may go, it goes
                lower, upper = -np.inf, np.inf
            elif joint.turns:
                lower, upper = home - TURN, home + TURN
                notes.append(f"{joint.name}: no position limits, half a turn about home taken")
            else:
                raise InputError(
                    f"{joint.name}: it slides and has no position limits; give them by --limits",
                    name=joint.name,
                    expected="position limits",
                )
        if not lower < upper:
            raise wrong(InputError, f"{joint.name}: limits", [lower, upper], "lower below upper")
        rate = mine.get("max_velocity", known.velocity)
        unit = "rad/s" if joint.turns else "m/s"
        if not rate:
            rate = np.inf if joint.coupling is not None else RATE[joint.turns]
            if joint.coupling is None:
                notes.append(f"{joint.name}: no rate limit, {rate:g} {unit} taken")
        acceleration = mine.get("max_acceleration")
        if not acceleration:
            acceleration = rate / RISE
            if joint.coupling is None:
                notes.append(f"{joint.name}: no acceleration limit, {acceleration:g} {unit}² taken")
        effort = mine.get("max_effort", known.effort) or np.inf
        rows.append((lower, upper, rate, acceleration, effort))
    lower, upper, rate, acceleration, effort = np.array(rows, dtype=float).T
    own = [mechanism.tree_names.index(name) for name in mechanism.joint_names]
    return MotionLimits(
        mechanism.tree_names, lower, upper, rate, acceleration, effort[own], tuple(notes)
    )


_KEYS = {
    "has_position_limits": ("min_position", "max_position"),
    "has_velocity_limits": ("max_velocity",),
    "has_acceleration_limits": ("max_acceleration",),
    "has_effort_limits": ("max_effort",),
}


def _moveit(mechanism: Mechanism, file: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """By joint what the file gives. What it has not (`has_…: false`) the description may have."""
    name = Path(file).name
    try:
        content = plain(read_text(find(os.fspath(file))), name)
    except DescriptionError as error:
        raise InputError(f"--limits {error}", name=name) from None
    joints = content.get("joint_limits") if isinstance(content, dict) else None
    if not isinstance(joints, dict):
        raise InputError(
            f"--limits {name}: expected a key `joint_limits` with the joints' limits by name",
            name=name,
        )
    found: dict[str, dict[str, float]] = {}
    for joint, entry in joints.items():
        if joint not in mechanism.tree_names:
            raise wrong(InputError, f"--limits {name}: joint", joint, choices(mechanism.tree_names))
        if not isinstance(entry, dict):
            raise wrong(InputError, f"--limits {name}: {joint}", entry, "max_velocity: … and such")
        found[joint] = {}
        for flag, keys in _KEYS.items():
            if not entry.get(flag, False):
                continue
            for key in keys:
                found[joint][key] = _number(entry, key, f"--limits {name}: {joint}")
    return found


def _number(entry: dict[str, Any], key: str, where: str) -> float:
    value = entry.get(key)
    signed = key in ("min_position", "max_position")
    if is_number(value) and (signed or value > 0):
        return float(value)
    raise wrong(
        InputError, f"{where}: {key}", value, "a finite number" if signed else "a number above 0"
    )


def regions(above: Sequence[str], outside: Sequence[str]) -> tuple[Region, ...]:
    """From LINK:Z and LINK:X,Y,Z,R.

    Raises:
        InputError: a text that is not so.
    """
    found: list[Region] = []
    for text in above:
        link, numbers = _split(text, 1, "--above", "LINK:Z")
        found.append(Above(link, numbers[0]))
    for text in outside:
        link, numbers = _split(text, 4, "--outside", "LINK:X,Y,Z,R with R above 0")
        if not numbers[3] > 0:
            raise wrong(InputError, "--outside", text, "LINK:X,Y,Z,R with R above 0")
        found.append(Outside(link, (numbers[0], numbers[1], numbers[2]), numbers[3]))
    return tuple(found)


def _split(text: str, count: int, option: str, expected: str) -> tuple[str, list[float]]:
    link, _, rest = text.strip().rpartition(":")
    try:
        numbers = [float(x) for x in rest.split(",")]
    except ValueError:
        numbers = []
    if not link or len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise wrong(InputError, option, text, expected)
    return link, numbers
