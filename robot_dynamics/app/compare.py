# SPDX-License-Identifier: Apache-2.0
"""Differences between all formulations and rotor models along one motion.

Source: Table 3 of Provenzano, Vergara, Mata (2005), for any robot.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics import InverseDynamics
from ..errors import ClosureError, ClosureWarning
from ..formulations import FORMULATIONS
from ..mechanism import Mechanism
from ..mechanism.transform import ROTOR_MODELS
from ..outputs import ACTUATED, FILES, JOINTS, NULLABLE, NUMBER, ROBOT, record
from ..scalar import Floats
from . import gears, tables

LARGEST_LAGRANGE_EULER = 10
"""Number of bodies above which Lagrange–Euler, O(n⁴), is left out of a comparison"""
LAGRANGE_EULER_IS_SLOW = f"O(n⁴), too slow above {LARGEST_LAGRANGE_EULER} bodies"
SMALLEST_SHARE = 1e-3
"""Fraction of the default motion below which a motion is too small for a comparison"""

_SHARES = NULLABLE.listed().by_name()
OUTPUT = record(
    robot=ROBOT,
    joints=JOINTS,
    actuated=ACTUATED,
    share_of_motion=NUMBER("fraction of the default motion that keeps the loops closed"),
    disagreement=_SHARES("of each formulation from Newton–Euler, one per torque"),
    model_error=_SHARES("of each rotor model from the full one, one per torque"),
    gears=gears.OUTPUT.or_null(),
    files=FILES,
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The torques along one motion by all formulations and rotor models."""

    actuated_names: tuple[str, ...]
    time: Floats
    """(k,), s"""
    formulations: dict[str, Floats]
    """(k, m), N·m or N, with full rotors"""
    rotor_models: dict[str, Floats]
    """(k, m), N·m or N, by Newton–Euler"""

    def disagreement(self) -> dict[str, Floats]:
        """By formulation, (m,) the largest difference from Newton–Euler over the largest torque."""
        return _worst(self.formulations, "newton_euler")

    def model_error(self) -> dict[str, Floats]:
        """By simplified rotor model, (m,) the largest difference from the full one over the largest
        torque."""
        return _worst(self.rotor_models, "full")


def table(compared: Comparison) -> str:
    """Table 3 of the source for this robot: per joint, in per cent of the largest torque."""
    rows = [["largest difference [%] from", *compared.actuated_names]]
    for title, found in (
        ("Newton–Euler, full rotors", compared.disagreement()),
        ("full rotors, Newton–Euler", compared.model_error()),
    ):
        rows.append([title, *[""] * len(compared.actuated_names)])
        rows += [[f"  {name}", *(f"{100 * x:.2g}" for x in row)] for name, row in found.items()]
    lines = tables.table(rows)
    if "lagrange_euler" not in compared.formulations:
        lines.append(f"lagrange_euler left out: {LAGRANGE_EULER_IS_SLOW}")
    return "\n".join(lines)


def _worst(torques: dict[str, Floats], reference: str) -> dict[str, Floats]:
    scale = np.abs(torques[reference]).max(axis=0)
    return {
        name: np.abs(tau - torques[reference]).max(axis=0) / np.where(scale > 0, scale, 1.0)
        for name, tau in torques.items()
        if name != reference
    }


def constant_acceleration(
    q: Sequence[float], qd: Sequence[float], qdd: Sequence[float], time: Floats
) -> tuple[Floats, Floats, Floats]:
    """The states of a motion with constant accelerations.

    Args:
        q: (n,) positions at time 0, rad or m.
        qd: (n,) rates at time 0, rad/s or m/s.
        qdd: (n,) accelerations, rad/s² or m/s².
        time: (k,) s.

    Returns:
        q, qd, qdd (k, n).
    """
    t = time[:, None]
    start, rate, acceleration = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
    return (
        start + rate * t + acceleration * t**2 / 2,
        rate + acceleration * t,
        np.broadcast_to(acceleration, (len(time), len(acceleration))),
    )


def within_reach(
    mechanism: Mechanism, q: Floats, qd: Floats, qdd: Floats, backend: str = "auto"
) -> tuple[float, tuple[Floats, Floats, Floats]]:
    """Halve a motion until its loops can be closed in all states.

    q - q[0], qd and qdd are all multiplied by the same factor, and the duration stays the same.

    Args:
        mechanism: the robot.
        q: (k, n) positions, rad or m.
        qd: (k, n) rates, rad/s or m/s.
        qdd: (k, n) accelerations, rad/s² or m/s².
        backend: as in `InverseDynamics`.

    Returns:
        the factor, and the states (q, qd, qdd).

    Raises:
        ClosureError: not even a small fraction of the motion can be closed.
    """
    dynamics = InverseDynamics(mechanism, backend=backend)
    share = 1.0
    while True:
        states = q[0] + share * (q - q[0]), share * qd, share * qdd
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ClosureWarning)
            is_reached = np.isfinite(dynamics(*states)).all()
        if is_reached:
            return share, states
        if share < SMALLEST_SHARE:
            raise ClosureError(
                f"{mechanism.name}: loop closure fails even on the first {share:.1g} of the "
                "default motion; set another motion with --q, --qd and --qdd"
            )
        share /= 2


def compare(
    mechanism: Mechanism,
    time: Floats,
    q: Floats,
    qd: Floats,
    qdd: Floats,
    backend: str = "auto",
) -> Comparison:
    """The torques along a motion by all formulations and rotor models.

    Args:
        mechanism: the robot.
        time: (k,) s.
        q: (k, n) positions, rad or m.
        qd: (k, n) rates, rad/s or m/s.
        qdd: (k, n) accelerations, rad/s² or m/s².
        backend: as in `InverseDynamics`.
    """
    bodies = len(mechanism.links) + len(mechanism.rotors)
    names = [
        name
        for name in FORMULATIONS
        if name != "lagrange_euler" or bodies <= LARGEST_LAGRANGE_EULER
    ]

    def torques(**options: Any) -> Floats:
        return InverseDynamics(mechanism, backend=backend, **options)(q, qd, qdd)

    return Comparison(
        mechanism.actuated_names,
        time,
        {name: torques(formulation=name) for name in names},
        {model: torques(rotors=model) for model in ROTOR_MODELS},
    )


def coordinates(mechanism: Mechanism) -> tuple[str, ...]:
    """The joints whose motion is given: all of an open chain, the driving ones of a closed one."""
    return mechanism.driving_names if mechanism.loops else mechanism.joint_names
