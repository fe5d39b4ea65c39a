# SPDX-License-Identifier: Apache-2.0
"""Chooses the low-pass filter: the cut-off whose fit best predicts the torque of held-out motion.

Noise in the positions is noise in the design matrix, which biases every inertia towards zero in
least squares (errors in variables), while a cut-off that is too low removes motion and torque. A
spectrum shows neither, but the torques show both. For each candidate cut-off c, a model x(c) is
therefore fitted to parts of the recording and predicts the torque of the held-out part,

    E_j(c) = min_e mean [ tau_j - Y_j(q, qd, qdd filtered at e) x(c) ]²,

where the measured torque is the same for all candidates: its noise contributes equally to each
error and does not favour stronger filtering. The evaluation cut-off e is free because the quality
of a fit does not depend on the noise of the motion on which it is evaluated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .low_pass import filtered
from .normal_equations import BIWEIGHT, SIGMA_OF_MAD, Rows, Sums, approached, robust
from .preparation import WHOLE, Even
from .recording import Floats, thinned
from .samples import Choice, Samples, joined
from .torque_errors import relative
from .unknowns import Columns

LOWEST = 0.5
"""Hz: the lowest candidate; its period, 2 s, is that of the slowest motions"""
FIRST = 8.0
"""Hz: the candidate with which outliers are detected; the motion of most arms is slower"""
FOLDS = 6
"""Parts of the time for cross-validation"""
BLOCKS = 24
"""Parts of the time from which the significance of differences is estimated"""
INSTANTS = 3600
"""Largest number of samples at which torques are compared: 150 per block"""
LEFT = 0.5
"""Fraction of the samples that a candidate's transients must leave"""
ENDS = 0.5
"""s that are ignored at both ends of a stretch: transients of the slowest filters"""
UPPER = 0.75
"""Position of the chosen cut-off, on a logarithmic scale, between the lowest (0) and the highest
(1) of the equally good candidates"""
TRUE = 0.1
"""Fraction of the sampling rate up to which numerical differentiation is accurate to 0.5 %,
(0.2 pi)^4 / 30"""
NOTHING = 0.97
"""Fraction of the torque's mean square; if all errors are larger, no filter is better than
another"""
CERTAIN = 3.0
"""A candidate is significantly worse if its error is larger by this many standard deviations"""
ALIKE = 0.2
"""Relative difference of mean squares (a tenth in RMS) from which on a candidate is worse, even if
the difference is not significant"""
TWICE = 2.0
"""Ratio of the error with a filter to that with a slower one, beyond which the filter is at
fault"""
SLOWEST = 4.0
"""Hz: the lowest cut-off of the slower filters; below it little more than gravity is left"""


def choose(unknowns: Columns, raw: Even, wanted: float | None = None) -> Choice:
    """Choose the cut-off.

    Args:
        unknowns: the parameters to identify.
        raw: the unfiltered motion that may be used.
        wanted: Hz, used if it is among the equally good cut-offs; infinite: not filtered.
    """
    raw = raw.excerpt()
    validation = CrossValidation(unknowns, raw)
    none = Choice(None, np.zeros(0), np.zeros((0, len(raw.joints))))
    if not validation.count:
        return none
    top = WHOLE * raw.rate
    candidates = [LOWEST * 2**k for k in range(max(0, math.ceil(math.log2(top / LOWEST))))]
    candidates = [each for each in candidates if raw.left(each) >= LEFT]
    candidates.append(math.inf)
    target = math.inf
    while True:
        errors = validation.errors(candidates, target)
        if math.isinf(target) and validation.explain_nothing(errors):
            return none
        low, best, high = _plateau(errors)
        # without the torque above the plateau, smaller differences become visible
        less = min(len(candidates) - 1, max(best + 1, high))
        if candidates[less] >= target:
            break
        target = candidates[less]
    known = np.isfinite(errors).any(axis=(0, 1))
    means = errors.mean(axis=1)
    relative = np.sqrt(means / np.where(known, means.min(axis=0), np.nan))
    cutoff = None
    if math.isfinite(candidates[low]):
        # between the ends of the plateau, beyond which errors grow, but nearer to the upper one,
        # which removes less motion
        cutoff = candidates[low] ** (1 - UPPER) * min(candidates[high], top) ** UPPER
        cutoff = min(cutoff, max(TRUE * raw.rate, candidates[low]))
    if wanted is not None and candidates[low] <= wanted <= candidates[high]:
        cutoff = wanted if math.isfinite(wanted) else None
    return Choice(cutoff, np.array(candidates), relative)


@dataclass(frozen=True)
class FilterFault:
    """A joint whose torque is predicted far better with a slower filter."""

    joint: str
    used: float | None
    """Hz, the cut-off that was used; None: not filtered"""
    missed: float
    """Relative torque error with the filter that was used"""
    slower: float
    """Hz, the cut-off of the better, slower filter"""
    less: float
    """Relative torque error with the slower filter"""

    def words(self, given: bool) -> str:
        """One line for the user.

        Args:
            given: whether the user set the cut-off.
        """
        remedy = "leave out --cutoff" if given else f"set --cutoff {self.slower:.3g}"
        now = "unfiltered" if self.used is None else f"filtered at {self.used:.3g} Hz"
        return (
            f"{self.joint}: the best model leaves {100 * self.missed:.0f} % of the torque "
            f"unexplained {now}, and {100 * self.less:.0f} % at {self.slower:.3g} Hz: the filter "
            f"causes this error, not the robot; {remedy}"
        )


def filter_faults(unknowns: Columns, raw: Even, used: float | None) -> Iterator[FilterFault]:
    """The joints whose prediction error is far smaller with a slower filter.

    Args:
        unknowns: the parameters to identify.
        raw: the unfiltered motion that may be used.
        used: Hz, the cut-off that was used; None: not filtered.
    """
    raw = raw.excerpt()
    validation = CrossValidation(unknowns, raw)
    if not validation.count:
        return
    top = WHOLE * raw.rate
    fastest = top if used is None else min(used, top)
    slower = [SLOWEST * 2**k for k in range(32) if SLOWEST * 2**k < fastest]
    missed = np.array([validation.missed(each) for each in (used or math.inf, *slower)])
    for joint, own in zip(raw.joints, missed.T, strict=True):
        if np.isfinite(own).all() and own[0] > TWICE * own.min():
            best = int(own.argmin())
            yield FilterFault(joint, used, float(own[0]), slower[best - 1], float(own[best]))


def _plateau(errors: Floats) -> tuple[int, int, int]:
    """(first, best, last) of the range of equally good candidates about the best."""
    known = np.isfinite(errors).any(axis=(0, 1))
    tried = np.array(np.isfinite(errors[:, :, known]).all(axis=(1, 2)), ndmin=1)
    with np.errstate(invalid="ignore"):
        means = errors[:, :, known].mean(axis=1)
        best = int(np.argmin(np.where(tried, np.log(means).mean(axis=1), np.inf)))
        worse = ((errors[:, :, known] - errors[best][:, known]) / means[best]).mean(axis=2)
        worse = np.where(tried[:, None], worse, np.inf)
        mean, spread = worse.mean(axis=1), worse.std(axis=1) / math.sqrt(BLOCKS)
        alike = tried & (mean < ALIKE) & (mean <= CERTAIN * spread)
    alike[best] = True
    low, high = best, best
    while low > 0 and alike[low - 1]:
        low -= 1
    while high + 1 < len(alike) and alike[high + 1]:
        high += 1
    return low, best, high


@dataclass(frozen=True, eq=False)
class _Candidate:
    samples: Samples
    rows: Rows
    found: list[Floats]
    """(p,) for each part of the time: the fit to the other parts"""


class CrossValidation:
    """Candidates, each evaluated by cross-validation over parts of the time."""

    def __init__(self, unknowns: Columns, raw: Even):
        self.unknowns, self.raw = unknowns, raw
        self._kept = _instants(raw)
        self.count = sum(map(len, self._kept))
        self._folds = _parts(self.count, FOLDS)
        self._known: dict[float, _Candidate] = {}
        self._torques: dict[tuple[float, float], Floats] = {}
        self._weights: Floats | None = None

    def errors(self, cutoffs: Sequence[float], target: float) -> Floats:
        """Mean squared prediction errors (candidates, BLOCKS, n) of the torque below `target` Hz.

        Errors are clipped at BIWEIGHT standard deviations; candidates above the target have
        infinite errors.
        """
        judge = self._candidate(target).samples
        used = [k for k, each in enumerate(cutoffs) if each <= target]
        n = judge.tau.shape[1]
        out = np.full((len(cutoffs), BLOCKS, n), np.inf)
        each = [self._candidate(cutoffs[k]) for k in used]
        predicted = [self._predicted(cutoffs[e], [cutoffs[k] for k in used]) for e in used]
        block = np.repeat(np.arange(BLOCKS), [b - a for a, b in _parts(self.count, BLOCKS)])
        for j in range(n):
            usable = judge.usable[:, j]
            if not usable.any():
                continue
            missed = np.empty((len(used), len(used), self.count))
            for e, one in enumerate(each):
                rest = judge.tau[:, j] - (one.samples.tau[:, j] - one.rows.tau[:, j])
                for k in range(len(used)):
                    missed[k, e] = rest - predicted[e][k][j]
            missed = missed[:, :, usable]
            sigma = SIGMA_OF_MAD * float(np.median(np.abs(missed), axis=2).min())
            squares = np.minimum(missed**2, (BIWEIGHT * sigma) ** 2)
            best = squares.mean(axis=2).argmin(axis=1)
            count = np.maximum(np.bincount(block[usable], minlength=BLOCKS), 1)
            for k, place in enumerate(used):
                out[place, :, j] = np.bincount(block[usable], squares[k, best[k]], BLOCKS) / count
        return out

    def _predicted(self, at: float, cutoffs: Sequence[float]) -> list[Floats]:
        """For each cut-off, the torques (n, count) on the motion filtered at `at` Hz, each part
        of the time predicted by the fit to the other parts."""
        rows = self._candidate(at).rows
        new = [each for each in cutoffs if (at, each) not in self._torques]
        torques = np.empty((len(new), rows.tau.shape[1], self.count))
        for fold, (a, b) in enumerate(self._folds):
            X = np.array([self._candidate(each).found[fold] for each in new]).T
            for j in range(torques.shape[1] if new else 0):
                torques[:, j, a:b] = rows.model(j, X, slice(a, b)).T
        self._torques |= {(at, each): t for each, t in zip(new, torques, strict=True)}
        return [self._torques[at, each] for each in cutoffs]

    def missed(self, cutoff: float) -> Floats:
        """(n,): relative torque error, with motion and torque filtered alike, median over the
        held-out parts (a motion unlike that of the other parts is no fault of the filter); NaN
        where no torque was measured."""
        each = self._candidate(cutoff)
        (predicted,) = self._predicted(cutoff, [cutoff])
        missed, samples = each.rows.tau - predicted.T, each.samples
        parts = [
            relative(missed[a:b], samples.tau[a:b], samples.usable[a:b]) for a, b in self._folds
        ]
        of_joint = [each[np.isfinite(each)] for each in np.transpose(parts)]
        return np.array([np.median(each) if len(each) else np.nan for each in of_joint])

    def explain_nothing(self, errors: Floats) -> bool:
        """Whether no candidate predicts any joint's torque notably better than zero torque does."""
        tau = self._candidate(math.inf).samples.tau
        known = np.isfinite(errors).any(axis=(0, 1))
        power = np.nanmean(tau[:, known] ** 2, axis=0)
        return bool((errors[:, :, known].mean(axis=1).min(axis=0) > NOTHING * power).all())

    def _candidate(self, cutoff: float) -> _Candidate:
        """A candidate: the filtered samples, and the fits with each part of the time held out."""
        if cutoff in self._known:
            return self._known[cutoff]
        if self._weights is None and cutoff != FIRST and WHOLE * self.raw.rate > FIRST:
            self._candidate(FIRST)
        samples = joined(
            [
                filtered(each, cutoff if math.isfinite(cutoff) else None, self.raw.turns, kept)
                for each, kept in zip(self.raw.pieces, self._kept, strict=True)
                if len(kept)
            ]
        )
        rows = Rows(self.unknowns, samples)
        prior, held = self.unknowns.prior, [*self.unknowns.springs, *self.unknowns.held]
        _, _, weights = robust([rows], samples.usable, held, self._weights)
        if self._weights is None:
            self._weights = weights
        parts = []
        for a, b in self._folds:
            sums = Sums(self.unknowns)
            sums.add(rows, weights, slice(a, b))
            parts.append(sums.together())
        G, g = (np.sum(each, axis=0) for each in zip(*parts, strict=True))
        found = [approached(G - gram, g - moment, prior, held)[0] for gram, moment in parts]
        self._known[cutoff] = _Candidate(samples, rows, found)
        return self._known[cutoff]


def _instants(raw: Even) -> list[NDArray[np.intp]]:
    """By piece, the indices of the samples that are used."""
    total, ends = sum(map(len, raw.pieces)), round(ENDS * raw.rate)
    inner = (max(0, len(each) - 2 * ends) for each in raw.pieces)
    return [ends + thinned(count, INSTANTS, total) for count in inner]


def _parts(count: int, parts: int) -> list[tuple[int, int]]:
    """(begin, end) of parts of equal length."""
    edges = [count * k // parts for k in range(parts + 1)]
    return list(itertools.pairwise(edges))
