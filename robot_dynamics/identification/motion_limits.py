# SPDX-License-Identifier: Apache-2.0
"""The limits of a motion: those of the joints, and regions that links must not enter."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..description.files import find, read_text
from ..description.yaml_text import plain
from ..errors import DescriptionError, InputError, choices, wrong
from ..mechanism import Limits, Mechanism
from ..scalar import is_number
from .recording import Floats

TURN = math.pi
"""rad to either side of home: the position limits assumed for a turning joint without any"""
RATE = {True: 1.0, False: 0.25}
"""The rate limit assumed where there is none: rad/s for turning joints (True), m/s for sliding
ones"""
RISE = 0.5
"""s from rest to the largest rate, from which the acceleration limit is computed where there is
none"""


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """The limits of all moving joints, including those coupled to others."""

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
    """The assumptions made where limits are missing"""

    def within(self, margin: float) -> MotionLimits:
        """Tighter limits.

        Args:
            margin: the fraction by which to reduce the position ranges and every other limit.
        """
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


def motion_limits(mechanism: Mechanism, file: str | os.PathLike[str] | None = None) -> MotionLimits:
    """The description's limits, overridden by those of a joint_limits.yaml as in MoveIt.

    Where neither has a limit, the following are assumed: half a turn to either side of home, 1
    rad/s (0.25 m/s), and the acceleration that reaches the largest rate in 0.5 s. A limit of 0
    counts as missing.

    Args:
        mechanism: the robot.
        file: the joint_limits.yaml; None: the description's limits alone.

    Raises:
        InputError: the file is broken or names an unknown joint, a limit is impossible, or a
            sliding joint has no position limits.
    """
    given = _moveit(mechanism, file) if file is not None else {}
    notes = []
    rows = []
    for link in mechanism.moving:
        joint = link.joint
        known, mine = joint.limits or Limits(), given.get(joint.name, {})
        home = mechanism.home_of(joint.name)
        lower = mine.get("min_position", known.lower)
        upper = mine.get("max_position", known.upper)
        if lower is None or upper is None or lower == upper == 0:
            if joint.coupling is not None:  # it follows its master joints
                lower, upper = -np.inf, np.inf
            elif joint.turns:
                lower, upper = home - TURN, home + TURN
                notes.append(f"{joint.name}: no position limits; half a turn about home assumed")
            else:
                raise InputError(
                    f"{joint.name}: prismatic joint without position limits; provide them with "
                    "--limits",
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
                notes.append(f"{joint.name}: no velocity limit; {rate:g} {unit} assumed")
        acceleration = mine.get("max_acceleration")
        if not acceleration:
            acceleration = rate / RISE
            if joint.coupling is None:
                notes.append(
                    f"{joint.name}: no acceleration limit; {acceleration:g} {unit}² assumed"
                )
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
    """By joint, the limits in the file, without those that it does not enable (`has_…: true`), for
    which the description counts."""
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
            raise wrong(
                InputError, f"--limits {name}: {joint}", entry, "a mapping such as max_velocity: …"
            )
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
