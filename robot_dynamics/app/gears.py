# SPDX-License-Identifier: Apache-2.0
"""The error of the rotor model `reflected` by gear ratio, speed, and balance of the rotors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..codegen import Function, Kernel
from ..formulations.equations import Equations
from ..mechanism import Inertial, Mechanism, Rotor
from ..outputs import MATRIX, NULLABLE, NUMBER, record
from ..scalar import Array, Floats, Scalar, array
from .tables import table

RATIOS: Floats = np.geomspace(1.0, 200.0, 47)
"""|Γ| of every rotor on a revolute joint"""
SPEEDS = (0.25, 0.5, 1.0, 2.0)
"""Factors on the speed of the motion along the same path"""
WORTH = 0.01
"""Error, as a fraction of the largest torque, above which the full model is worthwhile"""
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200)
"""The gear ratios in the table"""


@dataclass(frozen=True, eq=False)
class GearErrors:
    """The error of `reflected` at the worst joint, relative to that joint's largest torque, by kind
    of rotor."""

    rates: Floats
    """(s,) the largest rate of a joint with a rotor, for each speed, rad/s"""
    errors: dict[str, Floats]
    """(s, r) for SPEEDS and RATIOS; "as described", and "balanced" if some rotors are unbalanced"""

    def worth(self) -> dict[str, list[float | None]]:
        """By kind of rotor and speed, the ratio above which the error exceeds WORTH; None: none."""
        return {name: [_first(row) for row in rows] for name, rows in self.errors.items()}


OUTPUT = record(
    ratios=NUMBER.listed("|Γ| of every rotor").of(lambda _: RATIOS),
    rates=NUMBER.listed("rad/s, the largest joint rate, for each speed of the motion"),
    errors=MATRIX.by_name("by rotor model: error / largest torque, by rate and ratio"),
    worth_from=NULLABLE.listed()
    .by_name("by rotor model: ratio above which the full model is worthwhile, by rate")
    .of(GearErrors.worth),
)


def gear_errors(mechanism: Mechanism, q: Floats, qd: Floats, qdd: Floats) -> GearErrors | None:
    """The error of `reflected` along a motion.

    Args:
        mechanism: the robot.
        q: (k, n) positions, rad or m.
        qd: (k, n) rates, rad/s or m/s.
        qdd: (k, n) accelerations, rad/s² or m/s².

    Returns:
        the errors, or None if the robot has loops or no rotors on revolute joints.
    """
    geared = [rotor for rotor in mechanism.rotors if _is_geared(rotor, mechanism)]
    if mechanism.loops or not geared:
        return None
    kinds = {"as described": mechanism}
    if any(not rotor.is_symmetric for rotor in geared):
        kinds["balanced"] = balanced(mechanism)
    driven = [mechanism.joint_names.index(name) for rotor in geared for name, _ in rotor.ratios]
    peak = float(np.abs(qd[:, driven]).max())
    return GearErrors(
        peak * np.array(SPEEDS), {name: _errors(each, q, qd, qdd) for name, each in kinds.items()}
    )


def _is_geared(rotor: Rotor, mechanism: Mechanism) -> bool:
    turning = rotor.ratios and all(mechanism.joint(name).turns for name, _ in rotor.ratios)
    return bool(turning) and not rotor.inertial.is_nothing


def with_gear(mechanism: Mechanism, ratio: Scalar) -> Mechanism:
    """The mechanism with another |Γ| for every rotor on revolute joints.

    If a rotor drives several joints, this is its largest ratio; signs and proportions stay the
    same.

    Args:
        mechanism: the robot.
        ratio: the new |Γ|.
    """

    def geared(rotor: Rotor) -> Rotor:
        if not _is_geared(rotor, mechanism):
            return rotor
        largest = max(abs(each) for _, each in rotor.ratios)
        return replace(
            rotor, ratios=tuple((name, ratio * (each / largest)) for name, each in rotor.ratios)
        )

    return replace(mechanism, rotors=tuple(map(geared, mechanism.rotors)))


def balanced(mechanism: Mechanism) -> Mechanism:
    """The mechanism with every rotor balanced: centred on its axis and symmetric about it."""

    def true(rotor: Rotor) -> Rotor:
        body = rotor.inertial
        across = (body.inertia[0, 0] + body.inertia[1, 1]) / 2
        inertia = np.diag([across, across, body.inertia[2, 2]])
        center = array([0.0, 0.0, body.center_of_mass[2]])
        return replace(rotor, inertial=Inertial(body.mass, center, inertia))

    return replace(mechanism, rotors=tuple(map(true, mechanism.rotors)))


def _errors(mechanism: Mechanism, q: Floats, qd: Floats, qdd: Floats) -> Floats:
    """The errors (s, r) for SPEEDS and RATIOS."""
    n = len(mechanism.joint_names)

    def both(q: Array, qd: Array, qdd: Array, gear: Array, _: Array) -> list[Any]:
        robot = with_gear(mechanism, gear[0])
        return [
            *Equations.of(robot, rotors="full").torques(q, qd, qdd),
            *Equations.of(robot, rotors="reflected").torques(q, qd, qdd),
        ]

    arguments = ("q", "qd", "qdd", "gear")
    kernel = Kernel(
        Function(
            "torques by gear",
            arguments,
            (n, n, n, 1),
            (2, n),
            0,
            both,
            mechanism,
            mechanism.name,
        ),
        (),
    )
    found = np.empty((len(SPEEDS), len(RATIOS)))
    for i, speed in enumerate(SPEEDS):
        # t' = t / speed: the same path, q' = speed q̇, q'' = speed² q̈
        states = [x[None] for x in (q, speed * qd, speed**2 * qdd)]
        tau = kernel(*states, RATIOS[:, None, None])
        full, reflected = tau[..., 0, :], tau[..., 1, :]
        largest = np.abs(full).max(axis=1)
        off = np.abs(reflected - full).max(axis=1) / np.where(largest > 0, largest, 1.0)
        found[i] = off.max(axis=-1)
    return found


def _first(errors: Floats) -> float | None:
    """The smallest ratio from which on the error always exceeds WORTH; None: none."""
    below = np.flatnonzero(errors <= WORTH)
    first = int(below[-1]) + 1 if len(below) else 0
    return float(RATIOS[first]) if first < len(RATIOS) else None


def text(found: GearErrors) -> list[str]:
    """A table by gear ratio, and the ratio from which the full model is worthwhile."""
    lines = ["error of reflected rotors [% of the largest torque], by gear ratio and largest rate"]
    for name, rows in found.errors.items():
        cells = [[f"rotors {name}", *(f"Γ = {ratio}" for ratio in SHOWN)]]
        for rate, row in zip(found.rates, rows, strict=True):
            shown = np.interp(SHOWN, RATIOS, row)
            cells.append([f"{rate:.3g} rad/s", *(f"{100 * x:.2g}" for x in shown)])
        lines += table(cells)
    for name, ratios in found.worth().items():
        words = [
            f"{rate:.3g} rad/s " + ("nowhere" if first is None else f"from Γ = {first:.2g} on")
            for rate, first in zip(found.rates, ratios, strict=True)
        ]
        lines.append(
            f"error of reflected rotors above {100 * WORTH:g} %, rotors {name}: " + ", ".join(words)
        )
    return lines
