# SPDX-License-Identifier: Apache-2.0
"""The error of the model `reflected`, by gear ratio, speed, and balance of the rotors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..codegen import Function, Kernel
from ..formulations.equations import Equations
from ..mechanism import Inertial, Mechanism, Rotor
from ..scalar import Array, Floats, Scalar, array
from .tables import table

RATIOS: Floats = np.geomspace(1.0, 200.0, 47)
"""|Γ| of every rotor on a joint that turns"""
SPEEDS = (0.25, 0.5, 1.0, 2.0)
"""Of the motion: the same way in a share of the time"""
WORTH = 0.01
"""Of the largest torque: an error above it makes the full model worth having"""
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200)
"""Gear ratios that the table has"""


@dataclass(frozen=True, eq=False)
class GearErrors:
    """By kind of rotor: the worst joint's error of `reflected` over that joint's largest torque."""

    rates: Floats
    """(s,), rad/s: the largest rate of a joint with a rotor, by speed"""
    errors: dict[str, Floats]
    """(s, r) of SPEEDS and RATIOS; "as described", and "balanced" where they are not"""

    def worth(self) -> dict[str, list[float | None]]:
        """Kind of rotor to, by speed, the ratio from which on the error exceeds WORTH, or None."""
        return {name: [_first(row) for row in rows] for name, rows in self.errors.items()}


def gear_errors(mechanism: Mechanism, q: Floats, qd: Floats, qdd: Floats) -> GearErrors | None:
    """Along the motion q, qd, qdd (k, n); None: there is no rotor to gear, or there are loops."""
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
    """The same with this |Γ| at every rotor on joints that turn; of several the largest, and signs
    and proportions stay."""

    def geared(rotor: Rotor) -> Rotor:
        if not _is_geared(rotor, mechanism):
            return rotor
        largest = max(abs(each) for _, each in rotor.ratios)
        return replace(
            rotor, ratios=tuple((name, ratio * (each / largest)) for name, each in rotor.ratios)
        )

    return replace(mechanism, rotors=tuple(map(geared, mechanism.rotors)))


def balanced(mechanism: Mechanism) -> Mechanism:
    """The same with every rotor on its axis and of revolution about it."""

    def true(rotor: Rotor) -> Rotor:
        body = rotor.inertial
        across = (body.inertia[0, 0] + body.inertia[1, 1]) / 2
        inertia = np.diag([across, across, body.inertia[2, 2]])
        center = array([0.0, 0.0, body.center_of_mass[2]])
        return replace(rotor, inertial=Inertial(body.mass, center, inertia))

    return replace(mechanism, rotors=tuple(map(true, mechanism.rotors)))


def _errors(mechanism: Mechanism, q: Floats, qd: Floats, qdd: Floats) -> Floats:
    """(s, r)"""
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
        # t' = t / speed: the same way, q' = speed q̇, q'' = speed² q̈
        states = [x[None] for x in (q, speed * qd, speed**2 * qdd)]
        tau = kernel(*states, RATIOS[:, None, None])
        full, reflected = tau[..., 0, :], tau[..., 1, :]
        largest = np.abs(full).max(axis=1)
        off = np.abs(reflected - full).max(axis=1) / np.where(largest > 0, largest, 1.0)
        found[i] = off.max(axis=-1)
    return found


def _first(errors: Floats) -> float | None:
    """The ratio from which on, to the last, the error exceeds WORTH."""
    below = np.flatnonzero(errors <= WORTH)
    first = int(below[-1]) + 1 if len(below) else 0
    return float(RATIOS[first]) if first < len(RATIOS) else None


def text(found: GearErrors) -> list[str]:
    """A table by gear ratio, and from where on the full model is worth having."""
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


def numbers(found: GearErrors) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "ratios": RATIOS.tolist(),
        "rates": found.rates.tolist(),
        "errors": {name: rows.tolist() for name, rows in found.errors.items()},
        "worth_from": found.worth(),
    }
