# SPDX-License-Identifier: Apache-2.0
"""Replaces rounded angles by exact ones: 1.5708 in a description is π/2."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..mechanism import Loop, Mechanism, Pose
from ..scalar import Array, exact, rotation_to
from .symbolic_parameters import angles

NEAR = 2e-5
"""rad: a right angle written with five digits differs from the exact one by less than this"""
_FIFTEEN = math.pi / 12


def tidied(mechanism: Mechanism) -> tuple[Mechanism, tuple[str, ...]]:
    """(the robot with exact angles in place of rounded ones, a note on each replacement).

    An angle is taken as rounded if it is a multiple of 90° rounded to two decimals or more (1.57,
    3.1416), or a multiple of 15° rounded to four or more. If a whole frame is right-angled to
    2e-5 rad, all its angles are taken as rounded. A joint axis that is not along one of its frame's
    axes becomes the z axis of a rotated frame.
    """
    said: list[str] = []

    def pose(old: Pose, what: str) -> Pose:
        rotation, changes = _tidied(old.rotation)
        said.extend(f"{what}: {change}" for change in changes)
        return Pose(rotation, old.translation)

    links = []
    for link in mechanism.links:
        joint = link.joint
        what = f"joint {joint.name!r}"
        origin, tail = pose(joint.origin, what), pose(joint.tail, what)
        axis = joint.axis
        if np.count_nonzero(axis) > 1:
            nearest = np.round(axis)
            if np.abs(axis - nearest).max() < NEAR:
                said.append(f"{what}: its axis {axis.tolist()} is taken as {nearest.tolist()}")
                axis = nearest + 0.0
            else:
                turn = Pose(rotation_to(axis))
                origin, tail = origin @ turn, turn.inverse() @ tail
                axis = np.array([0.0, 0.0, 1.0])
        joint = replace(joint, origin=origin, tail=tail, axis=axis)
        links.append(replace(link, joint=joint))
    rotors = tuple(
        replace(rotor, origin=pose(rotor.origin, f"rotor {rotor.name!r}"))
        for rotor in mechanism.rotors
    )

    def both_ends(loop: Loop) -> Loop:
        return loop.mapped(lambda end: replace(end, pose=pose(end.pose, f"loop {loop.name!r}")))

    loops = tuple(map(both_ends, mechanism.loops))
    return replace(mechanism, links=tuple(links), rotors=rotors, loops=loops), tuple(said)


def _tidied(rotation: Array) -> tuple[Array, list[str]]:
    nearest = np.round(np.asarray(rotation, dtype=float))
    right = bool(np.abs(rotation - nearest).max() < NEAR)
    said, result = [], np.eye(3)
    for name, angle, turn in angles(rotation):
        multiple = round(angle / (6 * _FIFTEEN)) * 6 if right else _rounded(angle)
        if multiple is None:
            result = result @ turn(angle)
            continue
        whole = multiple * _FIFTEEN
        if abs(angle - whole) > 1e-12:
            if abs(multiple) == 12:  # pi and -pi are equal: keep the sign of the description
                turn_back = min(angle, angle - math.copysign(2 * math.pi, angle), key=_digits)
                angle, multiple = turn_back, int(math.copysign(12, turn_back))
            said.append(f"{name} {angle:.10g} rad is taken as {_multiple(multiple)}")
        result = result @ turn(whole)
    if right:
        return nearest + 0.0, said
    return (exact(result), said) if said else (rotation, said)


def _rounded(angle: float) -> int | None:
    """k if this angle is k·15°, exact or rounded, with k not 0; otherwise None."""
    k = round(angle / _FIFTEEN)
    whole = k * _FIFTEEN
    if k == 0:
        return None
    if abs(angle - whole) < 1e-12:
        return k
    digits = range(2 if k % 6 == 0 else 4, 13)
    return k if any(abs(angle - round(whole, d)) < 1e-12 for d in digits) else None


def _digits(angle: float) -> int:
    return len(f"{angle:.10g}")


def _multiple(k: int) -> str:
    part = math.gcd(k, 12)
    over, times = 12 // part, k // part
    text = "pi" if abs(times) == 1 else f"{abs(times)}*pi"
    return ("-" if k < 0 else "") + text + (f"/{over}" if over > 1 else "")
