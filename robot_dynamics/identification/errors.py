# SPDX-License-Identifier: Apache-2.0
"""Errors of modelled torques with respect to measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..dynamics import InverseDynamics
from .preparation import Prepared, Samples, at_any_place
from .recording import Floats


@dataclass(frozen=True, eq=False)
class Errors:
    """Torque errors by joint: root mean squares in N·m or N over `duration` seconds of motion."""

    joints: tuple[str, ...]
    duration: float
    torque: Floats
    """(n,): number of samples"""
    described: Floats
    """(n,): RMS error of the described model"""
    identified: Floats
    """(n,): RMS error of the identified model"""
    unfiltered: Floats
    """(n,): RMS error of the identified model with respect to the unfiltered torque"""

    @property
    def relative(self) -> Floats:
        """(n,): the identified model's error over the RMS torque; NaN where none was measured"""
        return _over(self.identified, self.torque)

    @property
    def relative_described(self) -> Floats:
        """(n,): the described model's error over the RMS torque; NaN where none was measured"""
        return _over(self.described, self.torque)


def _over(error: Floats, torque: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(torque > 0, error / torque, np.nan)


@dataclass(frozen=True, eq=False)
class Misses:
    """Sums of squared errors; those of several recordings add up."""

    squares: Floats
    """(4, n): of the torque, the described model's error, the identified model's, and the latter
    with respect to the unfiltered torque"""
    count: Floats
    """(n,)"""
    duration: float
    """s"""

    def errors(self, joints: tuple[str, ...]) -> Errors:
        """Root mean squares; NaN where nothing was measured."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return Errors(joints, float(self.duration), *np.sqrt(self.squares / self.count))


@dataclass(frozen=True, eq=False)
class Compared:
    """The residuals of both models on a stretch; (k, n) each, N·m or N."""

    samples: Samples
    described: Floats
    identified: Floats
    unfiltered: Floats
    """The identified model's residual with respect to the unfiltered torque"""


def compared(part: Prepared, models: tuple[InverseDynamics, InverseDynamics]) -> Iterator[Compared]:
    """The residuals of the described and the identified model, stretch by stretch.

    Args:
        part: the prepared motion.
        models: the described and the identified model.
    """
    rubbed = [
        InverseDynamics(model.mechanism, terms={"friction"}, backend="python") for model in models
    ]
    for each in part.stretches:
        before, after = (model(each.q, each.qd, each.qdd) for model in models)
        # a filtered effort must be compared with filtered friction
        shown, modelled = (
            sharp + each.blurred(at_any_place(rub))
            for sharp, rub in zip((before, after), rubbed, strict=True)
        )
        yield Compared(each, each.tau - shown, each.tau - modelled, each.unfiltered - after)


def misses(part: Prepared, stretches: Iterable[Compared]) -> Misses:
    """The sums of squared errors of both models over these stretches."""
    n = len(part.joints)
    squares, count = np.zeros((4, n)), np.zeros(n)
    for each in stretches:
        usable = each.samples.usable
        differences = (each.samples.tau, each.described, each.identified, each.unfiltered)
        for k, miss in enumerate(differences):
            squares[k] += (np.where(usable, miss, 0.0) ** 2).sum(axis=0)
        count += usable.sum(axis=0)
    return Misses(squares, count, part.duration)
