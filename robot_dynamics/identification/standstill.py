# SPDX-License-Identifier: Apache-2.0
"""Decides whether a joint's dry friction acts at standstill.

Coulomb friction has a step at rest, where a measured rate is little more than noise: the model's
torque jumps by twice the friction, while static friction may carry any part of it. Where rests in
the recordings contradict the step, the joint's law is

    coulomb·(1 - exp(-(qd/r)²))·z

with a rate r far below those of its motion, in which the two laws agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import listed
from ..mechanism import Mechanism
from .errors import SplitDynamics
from .fit import Fit
from .friction_laws import distances, reversal
from .preparation import STANDSTILL, Prepared
from .recording import Floats

SHORTEST = 1.0
"""s at rest that are needed"""


@dataclass(frozen=True, eq=False)
class AtRest:
    """Sums of squared errors at rest, (N·m)² or N²; those of several recordings add up."""

    duration: Floats
    """(n,), s at rest"""
    stepped: Floats
    """(n,): of the law with a step at rest"""
    smooth: Floats
    """(n,): of the law without it"""


@dataclass(frozen=True, eq=False)
class Stepped:
    """The joints whose law has a step at rest, which can be replaced."""

    coulomb: Floats
    """(n,), N·m or N: the Coulomb friction; 0: the law has no such step"""
    fastest: Floats
    """(n,), rad/s or m/s: the largest rates in the recordings"""
    presliding: Floats
    """(n,), rad or m: its distance; 0: none"""

    @classmethod
    def of(cls, fit: Fit, fastest: Floats) -> Stepped:
        """The joints of a fit.

        Args:
            fit: the fit.
            fastest: (n,), rad/s or m/s: the largest rates in the recordings.
        """
        coulomb, presliding = np.zeros((2, len(fit.unknowns.joints)))
        for j, name in enumerate(fit.unknowns.joints):
            drive = fit.drives[name]
            names = drive.law.names
            # a law with a Stribeck effect says what it is at rest
            if drive.law.rate is not None or drive.driving or not np.isfinite(fit.sigma[j]):
                continue
            if "coulomb" in names:
                coulomb[j] = fit.drive(name)[names.index("coulomb")]
            if drive.law.distance is not None:
                turns = fit.unknowns.mechanism.joint(name).turns
                presliding[j] = distances(turns)[drive.law.distance]
        return cls(coulomb, fastest, presliding)

    @property
    def rates(self) -> Floats:
        """r (n,), rad/s or m/s"""
        return STANDSTILL * np.maximum(self.fastest, 1e-3)

    def errors(self, identified: Mechanism, prepared: Prepared) -> AtRest:
        """The errors at rest in a recording.

        Args:
            identified: the identified robot, with the steps.
            prepared: the motion.
        """
        found = AtRest(*np.zeros((3, len(self.coulomb))))
        if not prepared.resting:
            return found
        model = SplitDynamics(identified)
        for part in prepared.resting:
            # efforts are filtered, and thus friction too
            stepped = part.tau - model(part.q, part.qd, part.qdd) - model.blurred(part)
            smooth = stepped + self._step(part.qd, part.qdd) + part.blurred(self._step)
            found.duration[:] += part.period * part.usable.sum(axis=0)
            for total, missed in ((found.stepped, stepped), (found.smooth, smooth)):
                total += (np.where(part.usable, missed, 0.0) ** 2).sum(axis=0)
        return found

    def _step(self, qd: Floats, qdd: Floats) -> Floats:
        """(k, n): the difference between the two laws."""
        z = np.sign(qd) - reversal(qd, qdd, self.presliding)
        return np.asarray(self.coulomb * np.exp(-((qd / self.rates) ** 2)) * z)

    def without_step(self, joints: tuple[str, ...], errors: AtRest) -> Mapping[str, float]:
        """By name, the joints that have no dry friction at standstill, and their r.

        Args:
            joints: the joints' names.
            errors: those of all recordings.
        """
        better = (errors.smooth < errors.stepped) & (errors.duration >= SHORTEST)
        better &= self.coulomb > 0
        return {joints[j]: float(self.rates[j]) for j in np.flatnonzero(better).tolist()}


def standstill_words(fit: Fit) -> Iterator[str]:
    """The note about joints without dry friction at standstill, if there are any."""
    if fit.standstill:
        yield (
            f"the efforts show no dry friction at standstill at {listed(fit.standstill)}: in the "
            "model it vanishes there, too"
        )
