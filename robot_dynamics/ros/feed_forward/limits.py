# SPDX-License-Identifier: Apache-2.0
"""Bounds on commands and torques: those that the robot and the trajectory do not justify are
refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import listed
from ...scalar import Floats
from .parameters import Settings
from .refusal import RefusedError
from .torque_model import Model

OVERSHOOT = 1.1
"""Factor on the velocity limit: splines through points at the limit slightly exceed it"""


@dataclass(frozen=True, eq=False)
class CommandLimits:
    """The largest magnitudes that a command may have; infinite: no limit."""

    accelerations: float = math.inf
    """rad/s² or m/s²"""
    lead_in: float = math.inf
    """rad/s² or m/s², for the lead-in to the first point, unless the trajectory itself has more"""
    rates: Floats | float = math.inf
    """(n,) rad/s or m/s"""

    @classmethod
    def of(cls, settings: Settings, model: Model) -> CommandLimits:
        """The limits from the parameters and, where it has some, from the description."""
        largest = settings.max_acceleration or math.inf
        rates = OVERSHOOT * model.rates[: len(model.joints)]
        return cls(largest, min(settings.lead_in_acceleration, largest), rates)

    def check(self, joints: Sequence[str], rates: Floats, accelerations: Floats) -> None:
        """Check that rates and accelerations are within the limits.

        Args:
            joints: (n) names, for errors.
            rates: (n,) magnitudes, rad/s or m/s.
            accelerations: (n,) magnitudes, rad/s² or m/s².

        Raises:
            RefusedError: one of them exceeds its limit.
        """
        if (rates > self.rates).any():
            k = int(np.argmax(rates > self.rates))
            limit = np.broadcast_to(self.rates, rates.shape)[k]
            raise RefusedError(
                "too fast",
                f"{joints[k]!r} would move at {rates[k]:.6g} rad/s (or m/s), expected at most "
                f"{limit:.6g}, which is 110 % of its velocity limit; slow the command down, or set "
                "velocity_limits",
            )
        if (accelerations > self.accelerations).any():
            k = int(np.argmax(accelerations > self.accelerations))
            raise RefusedError(
                "acceleration too high",
                f"{joints[k]!r} would accelerate at {accelerations[k]:.6g} rad/s² (or m/s²), "
                f"expected at most max_acceleration = {self.accelerations:g}",
            )


NO_LIMITS = CommandLimits()


def check_torques(
    model: Model, largest: float, q: Floats, qd: Floats, qdd: Floats, torques: Floats
) -> None:
    """Check that torques are no larger than the robot needs at plausible rates.

    Accelerations were checked when they were commanded, but measured rates may have any value. If
    one is s > 1 times the fastest plausible rate, the bound consists of the torques of gravity and
    inertia, g + D q̈, unchanged; those that are quadratic in the rates, at rates of q̇ / s; and
    friction at q̇ / s plus what the robot needs for accelerations of `largest`. The fastest
    plausible rate is twice the velocity limit, or √largest if there is none: at this rate the
    centripetal acceleration at the end of a lever of 1 m is `largest`.

    Args:
        model: the robot's model.
        largest: rad/s² or m/s², the largest acceleration.
        q: (k,) positions, rad or m.
        qd: (k,) rates, rad/s or m/s.
        qdd: (n,) accelerations, rad/s² or m/s².
        torques: (m,) N·m or N.

    Raises:
        RefusedError: the torques exceed this bound.
    """
    fastest = model.fastest(largest)
    if not (np.abs(qd) > fastest).any():
        return
    n, still = len(model.joints), np.zeros_like(qd)
    zero = np.zeros(n)
    with np.errstate(all="ignore"):
        s = float((np.abs(qd) / fastest).max())
        rest = model(q, still, zero)
        units = [np.abs(model(q, still, largest * unit) - rest) for unit in np.eye(n)]
        inertia = sum((unit * abs(a) / largest for unit, a in zip(units, qdd, strict=True)), 0.0)
        forth, back = model(q, qd, zero) - rest, model(q, -qd, zero) - rest
        quadratic, friction = np.abs(forth + back) / 2, np.abs(forth - back) / 2
        # s² may be too large for a float
        bound = np.abs(rest) + inertia + quadratic / s / s
        bound = bound + np.minimum(friction, friction / s + sum(units))
    if not (np.abs(torques) <= bound).all():
        k = int(np.argmax(~(np.abs(torques) <= bound)))
        j = int(np.argmax(np.abs(qd) / fastest))
        raise RefusedError(
            "implausible torque",
            f"torque of {model.outputs[k]!r} would be {torques[k]:.6g} with {model.read[j]!r} "
            f"measured at {qd[j]:.6g} rad/s (or m/s), expected at most {bound[k]:.6g}, with "
            f"velocities up to {fastest[j]:.3g}; check the sensor, or set velocity_limits",
        )


def check_added(model: Model, largest: float, q: Floats, added: Floats, what: str) -> None:
    """Check that torques added to the model's are no larger than the robot needs at rest and at
    accelerations of `largest`.

    Args:
        model: the robot's model.
        largest: rad/s² or m/s², the largest acceleration.
        q: (k,) positions, rad or m.
        added: (m,) N·m or N.
        what: the source of the added torques, for errors.

    Raises:
        RefusedError: they are larger.
    """
    bound = model.required_torques(q, largest)
    if not (np.abs(added) <= bound).all():
        k = int(np.argmax(~(np.abs(added) <= bound)))
        raise RefusedError(
            "implausible torque",
            f"{what} would add {added[k]:.6g} N·m (or N) to the torque of {model.outputs[k]!r}, "
            f"limit {bound[k]:.6g} (gravity plus max_acceleration = {largest:g})",
        )


def unlimited(model: Model) -> str:
    """A warning about torques without an effort limit; empty if every torque has one, or if
    `effort_limits` is set."""
    settings = model.spec.settings
    names = [name for name, free in zip(model.outputs, model.unlimited, strict=True) if free]
    if not names or settings.effort_limits:
        return ""
    largest = settings.max_acceleration
    bound = "nothing bounds their torques (max_acceleration is 0)"
    if largest:
        required = model.required_torques(model.home, largest)
        known = dict(zip(model.outputs, required, strict=True))
        bound = (
            f"only max_acceleration = {largest:g} bounds their torques (at home: "
            f"{listed(f'{known[name]:.4g}' for name in names)} N·m or N)"
        )
    return f"no effort limit is known for {listed(names)}: {bound}; set effort_limits"
