"""Bounds on commands and torques: what robot and trajectory do not justify is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...scalar import Floats
from .model import Model
from .parameters import Settings
from .refusal import RefusedError

OVERSHOOT = 1.1
"""Splines through points at the limit of the rates go a little beyond it"""


@dataclass(frozen=True, eq=False)
class CommandLimits:
    """The largest magnitudes that a command may have; infinite: no limit."""

    accelerations: float = math.inf
    """rad/s² or m/s²"""
    lead_in: float = math.inf
    """rad/s² or m/s², of the way to a first point, unless the trajectory itself has more"""
    rates: Floats | float = math.inf
    """(n,) rad/s or m/s"""

    @classmethod
    def of(cls, settings: Settings, model: Model) -> CommandLimits:
        """Those of the parameters, and of the description where it has some."""
        mechanism = model.wish.mechanism
        rates = np.full(len(model.joints), math.inf)
        for k, name in enumerate(model.joints):
            said = mechanism.joint(name).limits
            if said is not None and said.velocity:
                rates[k] = said.velocity
        largest = settings.max_acceleration or math.inf
        return cls(largest, min(settings.lead_in_acceleration, largest), OVERSHOOT * rates)

    def check(self, joints: Sequence[str], rates: Floats, accelerations: Floats) -> None:
        """Are these magnitudes (n,) within the limits?

        Raises:
            RefusedError: one of them is not.
        """
        if (rates > self.rates).any():
            k = int(np.argmax(rates > self.rates))
            limit = np.broadcast_to(self.rates, rates.shape)[k]
            raise RefusedError(
                "too fast",
                f"{joints[k]!r} would move at {rates[k]:.6g} rad/s (or m/s), expected at most "
                f"{limit:.6g}: the velocity limit of the description and a tenth; ask for less, "
                "or mend the description",
            )
        if (accelerations > self.accelerations).any():
            k = int(np.argmax(accelerations > self.accelerations))
            raise RefusedError(
                "too quick",
                f"{joints[k]!r} would accelerate by {accelerations[k]:.6g} rad/s² (or m/s²), "
                f"expected at most max_acceleration = {self.accelerations:g}",
            )


NO_LIMITS = CommandLimits()


def check_torques(model: Model, largest: float, q: Floats, qd: Floats, torques: Floats) -> None:
    """Are torques (m,) at q, qd (k,) such as the robot takes within its accelerations' limit?

    Rates are not commanded where they are measured, and a sensor may tell anything. No torque is
    beyond what the robot takes at rest, at accelerations of a = `largest` rad/s² or m/s², and at
    rates of √a: at these a lever's end accelerates as much.

    Raises:
        RefusedError: they are beyond that.
    """
    fastest = math.sqrt(largest)
    # at such rates, and with accelerations that were checked, they are
    if not (np.abs(qd) > fastest).any():
        return
    n, still = len(model.joints), np.zeros_like(qd)
    rest = model(q, still, np.zeros(n))
    bound = np.abs(model(q, np.clip(qd, -fastest, fastest), np.zeros(n)))
    for unit in np.eye(n):
        bound = bound + np.abs(model(q, still, largest * unit) - rest)
    if not (np.abs(torques) <= bound).all():
        k = int(np.argmax(~(np.abs(torques) <= bound)))
        j = int(np.argmax(np.abs(qd)))
        raise RefusedError(
            "beyond the robot",
            f"torque of {model.outputs[k]!r} would be {torques[k]:.6g} with {model.read[j]!r} at "
            f"{qd[j]:.6g} rad/s (or m/s), expected at most {bound[k]:.6g}, which the robot takes "
            f"at max_acceleration = {largest:g} and at rates of {fastest:.3g}",
        )
