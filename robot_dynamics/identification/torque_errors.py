# SPDX-License-Identifier: Apache-2.0
"""Errors of the models' torques with respect to the measured ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..dynamics import InverseDynamics
from ..errors import ClosureWarning
from ..formulations.terms import RIGID
from ..mechanism import Mechanism
from .friction_laws import stands_still
from .recording import Floats
from .samples import Prepared, Samples


@dataclass(frozen=True, eq=False)
class Errors:
    """Torque errors by joint: root mean squares in N·m or N over `duration` seconds of motion."""

    joints: tuple[str, ...]
    duration: float
    torque: Floats
    """(n,): RMS of the measured torque"""
    described: Floats
    """(n,): RMS error of the described model"""
    identified: Floats
    """(n,): RMS error of the identified model"""
    unfiltered: Floats
    """(n,): RMS error of the identified model with respect to the unfiltered torque"""
    still: NDArray[np.bool_]
    """(n,): whether the joint is known to stand still: static friction may then carry any part of
    its torque, which no model predicts"""

    @property
    def relative(self) -> Floats:
        """(n,): the identified model's error over the RMS torque; NaN where none was measured"""
        return over(self.identified, self.torque)

    @property
    def relative_described(self) -> Floats:
        """(n,): the described model's error over the RMS torque; NaN where none was measured"""
        return over(self.described, self.torque)

    @property
    def telling(self) -> NDArray[np.bool_]:
        """(n,): whether the joint's error says which model is better: its torque was measured, and
        it moves (or no measured joint does)"""
        known = np.isfinite(self.relative)
        moving = known & ~self.still
        return np.asarray(moving if moving.any() else known)

    @property
    def means(self) -> tuple[float, float]:
        """The mean relative errors (of the identified, of the described model) over the joints in
        `telling`"""
        some = self.telling
        return float(self.relative[some].mean()), float(self.relative_described[some].mean())

    @property
    def of_which(self) -> str:
        """The joints over which `means` are taken, in words"""
        return "the joints" if self.telling[np.isfinite(self.relative)].all() else "moving joints"


def relative(missed: Floats, torque: Floats, usable: NDArray[np.bool_]) -> Floats:
    """(n,): the RMS of errors (k, n) over that of torques (k, n), where usable; NaN where no torque
    was measured."""
    left, whole = ((np.where(usable, each, 0.0) ** 2).sum(axis=0) for each in (missed, torque))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(left / whole))


def over(error: Floats, torque: Floats) -> Floats:
    """(n,): errors (n,) over RMS torques (n,); NaN where none was measured."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(torque > 0, error / torque, np.nan)


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Sums of squared errors; those of several recordings add up."""

    squares: Floats
    """(5, n): of the torque, the described model's error, the identified model's error, the same
    with respect to the unfiltered torque, and of the rates"""
    count: Floats
    """(n,): number of samples"""
    duration: float
    """s"""

    def errors(self, mechanism: Mechanism, joints: tuple[str, ...]) -> Errors:
        """Root mean squares by joint; NaN where nothing was measured.

        Args:
            mechanism: the robot.
            joints: the joints of the columns.
        """
        each = zip(joints, self.squares[4], self.count, strict=True)
        still = [stands_still(mechanism, *own) for own in each]
        with np.errstate(invalid="ignore", divide="ignore"):
            torque, before, after, raw = np.sqrt(self.squares[:4] / self.count)
        return Errors(
            joints, self.duration, torque, before, after, raw, np.array(still, dtype=bool)
        )


@dataclass(frozen=True, eq=False)
class Compared:
    """The residuals of both models on a stretch; (k, n) each, N·m or N."""

    samples: Samples
    described: Floats
    identified: Floats
    unfiltered: Floats
    """The identified model's residual with respect to the unfiltered torque"""


def friction_of(mechanism: Mechanism) -> InverseDynamics:
    """A robot's friction alone."""
    backend = "auto" if mechanism.loops else "python"  # loops take long to close in Python
    return InverseDynamics(mechanism, terms={"friction"}, backend=backend, batches=True)


class SplitDynamics:
    """Inverse dynamics with friction apart, as filtered efforts contain filtered friction, and as
    compiled code for rigid bodies serves all friction laws. With loops, which take long to close,
    all torques are computed at once.

    Args:
        mechanism: the robot.
    """

    def __init__(self, mechanism: Mechanism):
        self._mechanism = mechanism

    @cached_property
    def rigid(self) -> InverseDynamics:
        """The terms of rigid bodies alone."""
        return InverseDynamics(self._mechanism, terms=RIGID, batches=True)

    @cached_property
    def friction(self) -> InverseDynamics:
        """Friction alone."""
        return friction_of(self._mechanism)

    @cached_property
    def _whole(self) -> InverseDynamics:
        return InverseDynamics(self._mechanism, batches=True)

    def __call__(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """The torques (k, n), N·m or N, of states (k, n) each; NaN where loops cannot be closed."""
        if self._mechanism.loops:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ClosureWarning)
                return np.asarray(self._whole(q, qd, qdd))
        return np.asarray(self.rigid(q, qd, qdd) + self.friction(q, qd, qdd))


def compared(part: Prepared, models: tuple[SplitDynamics, SplitDynamics]) -> Iterator[Compared]:
    """The residuals of the described and the identified model, stretch by stretch.

    Args:
        part: the prepared motion.
        models: the described and the identified model.
    """
    for each in part.stretches:
        before, after = (model(each.q, each.qd, each.qdd) for model in models)
        if not (closes := np.isfinite(before + after)).all():
            each = replace(each, usable=each.usable & closes)
        shown, modelled = (
            sharp + each.blurred(model.friction)
            for sharp, model in zip((before, after), models, strict=True)
        )
        yield Compared(each, each.tau - shown, each.tau - modelled, each.unfiltered - after)


def squared_errors(part: Prepared, stretches: Iterable[Compared]) -> SquaredErrors:
    """The sums of squared errors of both models over these stretches."""
    n = len(part.joints)
    squares, count = np.zeros((5, n)), np.zeros(n)
    for each in stretches:
        samples = each.samples
        values = samples.tau, each.described, each.identified, each.unfiltered, samples.qd
        squares += [(np.where(samples.usable, own, 0.0) ** 2).sum(axis=0) for own in values]
        count += samples.usable.sum(axis=0)
    return SquaredErrors(squares, count, part.duration)
