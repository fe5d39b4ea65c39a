# SPDX-License-Identifier: Apache-2.0
"""Chooses the rate below which a joint's dry friction fades to zero.

Coulomb friction has a step at rest, where a measured rate is little more than noise: wherever a
joint stops or reverses, the model's torque may jump to and fro by twice the friction, while static
friction may carry any part of it. Where the recordings contradict the step, the joint's law gets
the `smoothing` that explains them best (see `mechanism.Friction`), far below the rates of its
motion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..errors import listed
from ..mechanism import Mechanism
from ..mechanism.transform import with_parts
from .fit import Fit
from .normal_equations import FOLDS, robust_sum
from .recording import Floats
from .samples import Prepared
from .torque_errors import SplitDynamics, friction_of

SHARES = (2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2)
"""The candidates, as fractions of a joint's largest rate"""
WORTH = 0.04
"""Fraction of a joint's squared error that smoothing must explain, since errors of the stamps also
smooth a step, by some percent"""


@dataclass(frozen=True, eq=False)
class NearRest:
    """Sums of squared errors, (N·m)² or N²; those of several recordings add up."""

    squares: Floats
    """(FOLDS, 1 + c, n): by part of the time, with steps at rest, then with each candidate"""


@dataclass(frozen=True, eq=False)
class FrictionSmoothing:
    """The joints whose dry friction may be smoothed, with the candidates."""

    identified: Mechanism
    """The identified robot, with steps"""
    rates: Floats
    """(c, n), rad/s or m/s: the candidates; 0: the joint's law has no step to be smoothed"""

    @classmethod
    def of(cls, fit: Fit, identified: Mechanism, fastest: Floats) -> FrictionSmoothing:
        """The candidates of a fit.

        Args:
            fit: the fit.
            identified: its robot.
            fastest: (n,), rad/s or m/s: the largest rates in the recordings.
        """
        drives = [fit.drives[name] for name in fit.unknowns.joints]
        steps = [
            np.isfinite(sigma) and not drive.driving and "coulomb" in drive.law.names
            for drive, sigma in zip(drives, fit.sigma, strict=True)
        ]
        return cls(identified, np.outer(SHARES, np.where(steps, fastest, 0.0)))

    def errors(self, prepared: Prepared) -> NearRest:
        """The errors in a recording, at rest and in motion.

        Args:
            prepared: the motion.
        """
        squares = np.zeros((FOLDS, 1 + len(self.rates), self.rates.shape[1]))
        stepped = SplitDynamics(self.identified)
        smoothed = [friction_of(self._smooth(rates)) for rates in self.rates]
        for part in (*prepared.resting, *prepared.stretches):
            state = part.q, part.qd, part.qdd
            left = part.tau - stepped.rigid(*state)
            for k, friction in enumerate((stepped.friction, *smoothed)):
                # efforts are filtered, and thus friction too
                missed = left - friction(*state) - part.blurred(friction)
                each = np.where(part.usable, missed, 0.0) ** 2
                squares[:, k] += [some.sum(axis=0) for some in np.array_split(each, FOLDS)]
        return NearRest(squares)

    def chosen(self, errors: NearRest) -> Mapping[str, float]:
        """The smoothing (rad/s or m/s) by name of each joint that gets one.

        Args:
            errors: those of all recordings.
        """
        step, *smoothed = errors.squares.sum(axis=0)
        best = np.argmin(smoothed, axis=0)
        found = {}
        for j, name in enumerate(self.identified.joint_names):
            gain = robust_sum(errors.squares[:, 0, j] - errors.squares[:, 1 + best[j], j])
            if self.rates[best[j], j] > 0 and gain > WORTH * step[j]:
                found[name] = float(self.rates[best[j], j])
        return found

    def _smooth(self, rates: Floats) -> Mechanism:
        """The robot with a smoothing (n,) of each joint."""
        laws = {
            name: replace(self.identified.joint(name).friction, smoothing=rate)
            for name, rate in zip(self.identified.joint_names, rates.tolist(), strict=True)
            if rate
        }
        return with_parts(self.identified, {}, laws)


def smoothing_words(fit: Fit) -> Iterator[str]:
    """The note about joints whose dry friction is smoothed, if there are any."""
    if fit.smoothing:
        yield (
            f"the efforts show no step of dry friction at rest at {listed(fit.smoothing)}: in the "
            "model it fades to zero there, too"
        )
