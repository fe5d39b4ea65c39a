# SPDX-License-Identifier: Apache-2.0
"""Which filter: the cut-off whose fit foretells best the torque of motion that it has not seen.

Noise in positions is noise in the columns of the model, and least squares then makes every inertia
too small; a filter that is too slow takes motion and torque away. A spectrum shows neither, torques
show both. So each candidate c is fitted to parts of the recording, and foretells the torque of the
part that was kept aside,

    E_j(c) = min_e mean [ tau_j - Y_j(q, qd, qdd filtered at e) x(c) ]²,

where the measured torque is the same for all: its noise adds as much to one as to the other and is
no reason to filter more. e is free, for what a fit is worth does not depend on what is noisy where
it is tried.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .normal_equations import BIWEIGHT, Rows, Sums, fitted, robust
from .preparation import WHOLE, Choice, Even, Samples, filtered, joined
from .recording import Floats
from .solve import Prior
from .unknowns import Unknowns

LOWEST = 0.5
"""Hz: the slowest filter that is tried; its memory, 2 s, is that of the slowest motions"""
FIRST = 8.0
"""Hz: the candidate by which outliers are first known: most arms' motion ends below it"""
FOLDS = 6
"""Parts of the time, each kept aside once"""
BLOCKS = 24
"""Parts of the time, by which it is seen whether a difference is one"""
INSTANTS = 2400
"""Samples at which torques are compared: a hundred a block"""
ENDS = 0.5
"""s at both ends of a stretch that are not looked at: transients of the slow filters"""
UPPER = 0.75
"""Of the way (of logarithms) from the slowest to the fastest of the filters that are as good"""
TRUE = 0.1
"""Of the sampling rate: up to here differences are true to 0.5 %, (0.2 pi)^4 / 30"""
NOTHING = 0.97
"""Of the torque's mean square: where more is missed, no filter is better than another"""
CERTAIN = 3.0
"""Standard deviations by which a candidate is worse for certain"""
ALIKE = 0.2
"""Of the mean square, a tenth of the error: what is worse by more is not as good, however few the
blocks that show it"""
TWICE = 2.0
"""What is missed with one filter over what is missed with a slower one: with a larger ratio it is
the filter that is wrong"""
SLOWEST = 4.0
"""Hz, of these slower ones: below it little but gravity is left"""


def choose(unknowns: Unknowns, raw: Even, seen: float = 1.0) -> Choice:
    """The cut-off of one recording.

    Args:
        unknowns: what is looked for in it.
        seen: the first part of its time, which alone may be looked at.
    """
    trial = _Trial(unknowns, raw, seen)
    if not trial.count:
        return Choice(None, np.zeros(0), np.zeros((0, len(raw.joints))))
    top = WHOLE * raw.rate
    candidates = [LOWEST * 2**k for k in range(max(0, math.ceil(math.log2(top / LOWEST))))]
    candidates.append(math.inf)
    target = math.inf
    while True:
        errors = trial.errors(candidates, target)
        if math.isinf(target) and trial.in_vain(errors):
            return Choice(None, np.zeros(0), np.zeros((0, len(raw.joints))))
        low, best, high = _plateau(errors)
        # the torque without what lies above shows smaller differences
        less = min(len(candidates) - 1, max(best + 1, high))
        if candidates[less] >= target:
            break
        target = candidates[less]
    known = np.isfinite(errors).any(axis=(0, 1))
    means = errors.mean(axis=1)
    relative = np.sqrt(means / np.where(known, means.min(axis=0), np.nan))
    cutoff = None
    if math.isfinite(candidates[low]):
        # within both ends, where errors begin, nearer to that which takes less motion away
        cutoff = candidates[low] ** (1 - UPPER) * min(candidates[high], top) ** UPPER
        cutoff = min(cutoff, max(TRUE * raw.rate, candidates[low]))
    return Choice(cutoff, np.array(candidates), relative)


@dataclass(frozen=True)
class Swayed:
    """A joint whose torque is foretold far better with a slower filter."""

    joint: str
    used: float | None
    """Hz; None: nothing was filtered"""
    missed: float
    """Of the torque, with the filter that was used"""
    slower: float
    """Hz"""
    less: float
    """Of the torque, with the slower one"""

    def words(self, given: bool) -> str:
        """One line.

        Args:
            given: was the filter given, or chosen?
        """
        mend = "leave out --cutoff" if given else f"set --cutoff {self.slower:.3g}"
        now = "unfiltered" if self.used is None else f"filtered at {self.used:.3g} Hz"
        return (
            f"{self.joint}: the best model misses {100 * self.missed:.0f} % of the torque {now}, "
            f"and {100 * self.less:.0f} % at {self.slower:.3g} Hz: the filter is wrong, not the "
            f"robot; {mend}"
        )


def swayed(
    unknowns: Unknowns, raw: Even, used: float | None, seen: float = 1.0
) -> Iterator[Swayed]:
    """The joints of which a fit misses less by a factor with a slower filter.

    Args:
        used: Hz; None: nothing was filtered.
        seen: the first part of the time, which alone is looked at.
    """
    trial = _Trial(unknowns, raw, seen)
    if not trial.count:
        return
    top = WHOLE * raw.rate
    fastest = top if used is None else min(used, top)
    slower = [SLOWEST * 2**k for k in range(32) if SLOWEST * 2**k < fastest]
    missed = np.array([trial.missed(each) for each in (used or math.inf, *slower)])
    for joint, own in zip(raw.joints, missed.T, strict=True):
        if np.isfinite(own).all() and own[0] > TWICE * own.min():
            best = int(own.argmin())
            yield Swayed(joint, used, float(own[0]), slower[best - 1], float(own[best]))


def _plateau(errors: Floats) -> tuple[int, int, int]:
    """(the first, the best, the last) of the candidates about the best that are as good."""
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
    """(p,) without each part"""


class _Trial:
    """Candidates, each judged on the parts of the time that its fit was not made from."""

    def __init__(self, unknowns: Unknowns, raw: Even, seen: float):
        self.unknowns, self.raw = unknowns, raw
        self._kept = _instants(raw, seen)
        self.count = sum(map(len, self._kept))
        self._folds = _parts(self.count, FOLDS)
        self._prior = Prior(unknowns.references(), np.zeros(0), np.zeros(0))
        self._known: dict[float, _Candidate] = {}
        self._torques: dict[tuple[float, float], Floats] = {}
        self._weights: Floats | None = None

    def errors(self, cutoffs: Sequence[float], target: float) -> Floats:
        """(candidates, BLOCKS, n): mean squares of what is missed of the torque below `target`,
        an outlier counted as BIWEIGHT standard deviations; infinite above the target."""
        judge = self._candidate(target).samples
        used = [k for k, each in enumerate(cutoffs) if each <= target]
        n = judge.tau.shape[1]
        out = np.full((len(cutoffs), BLOCKS, n), np.inf)
        each = [self._candidate(cutoffs[k]) for k in used]
        foretold = [self._foretold(cutoffs[e], [cutoffs[k] for k in used]) for e in used]
        block = np.repeat(np.arange(BLOCKS), [b - a for a, b in _parts(self.count, BLOCKS)])
        for j in range(n):
            usable = judge.usable[:, j]
            if not usable.any():
                continue
            missed = np.empty((len(used), len(used), self.count))
            for e, trial in enumerate(each):
                rest = judge.tau[:, j] - (trial.samples.tau[:, j] - trial.rows.tau[:, j])
                for k in range(len(used)):
                    missed[k, e] = rest - foretold[e][k][j]
            missed = missed[:, :, usable]
            sigma = 1.4826 * float(np.median(np.abs(missed), axis=2).min())
            squares = np.minimum(missed**2, (BIWEIGHT * sigma) ** 2)
            best = squares.mean(axis=2).argmin(axis=1)
            count = np.maximum(np.bincount(block[usable], minlength=BLOCKS), 1)
            for k, place in enumerate(used):
                out[place, :, j] = np.bincount(block[usable], squares[k, best[k]], BLOCKS) / count
        return out

    def _foretold(self, trial: float, cutoffs: Sequence[float]) -> list[Floats]:
        """By cut-off, (n, count): torques with the fit to the other parts, in the motion that went
        through the filter `trial`."""
        rows = self._candidate(trial).rows
        new = [each for each in cutoffs if (trial, each) not in self._torques]
        torques = np.empty((len(new), rows.tau.shape[1], self.count))
        for fold, (a, b) in enumerate(self._folds):
            X = np.array([self._candidate(each).found[fold] for each in new]).T
            for j in range(torques.shape[1] if new else 0):
                torques[:, j, a:b] = rows.model(j, X, slice(a, b)).T
        self._torques |= {(trial, each): t for each, t in zip(new, torques, strict=True)}
        return [self._torques[trial, each] for each in cutoffs]

    def missed(self, cutoff: float) -> Floats:
        """(n,): of the torque, motion and torque filtered alike; NaN where none was measured."""
        each = self._candidate(cutoff)
        (foretold,) = self._foretold(cutoff, [cutoff])
        usable = each.samples.usable
        with np.errstate(invalid="ignore", divide="ignore"):
            left, whole = (
                (np.where(usable, torque, 0.0) ** 2).sum(axis=0)
                for torque in (each.rows.tau - foretold.T, each.samples.tau)
            )
            return np.asarray(np.sqrt(left / whole))

    def in_vain(self, errors: Floats) -> bool:
        """Does no candidate predict any joint's torque better than nothing at all does?"""
        tau = self._candidate(math.inf).samples.tau
        known = np.isfinite(errors).any(axis=(0, 1))
        power = np.nanmean(tau[:, known] ** 2, axis=0)
        return bool((errors[:, :, known].mean(axis=1).min(axis=0) > NOTHING * power).all())

    def _candidate(self, cutoff: float) -> _Candidate:
        """Filtered, and fitted without each part of the time."""
        if cutoff in self._known:
            return self._known[cutoff]
        if self._weights is None and cutoff != FIRST and WHOLE * self.raw.rate > FIRST:
            self._candidate(FIRST)
        samples = joined(
            [
                filtered(
                    time, each, cutoff if math.isfinite(cutoff) else None, self.raw.turns, kept
                )
                for (time, each), kept in zip(self.raw.pieces, self._kept, strict=True)
                if len(kept)
            ]
        )
        rows = Rows(self.unknowns, samples)
        _, _, weights, _ = robust(self._prior, [rows], samples.usable, self._weights)
        if self._weights is None:
            self._weights = weights
        parts = []
        for a, b in self._folds:
            sums = Sums(self.unknowns)
            sums.add(rows, weights, slice(a, b))
            parts.append(sums.together())
        G, g = (np.sum(each, axis=0) for each in zip(*parts, strict=True))
        found = [fitted(G - gram, g - moment, self._prior) for gram, moment in parts]
        self._known[cutoff] = _Candidate(samples, rows, found)
        return self._known[cutoff]


def _instants(raw: Even, seen: float) -> list[NDArray[np.intp]]:
    """By piece, the samples that are looked at."""
    left = round(seen * sum(len(time) for time, _ in raw.pieces))
    step = max(1, left // INSTANTS)
    ends = round(ENDS * raw.rate)
    found = []
    for time, _ in raw.pieces:
        found.append(np.arange(ends, min(len(time), left) - ends, step))
        left = max(0, left - len(time))
    return found


def _parts(count: int, parts: int) -> list[tuple[int, int]]:
    """(begin, end) of equal parts."""
    edges = [count * k // parts for k in range(parts + 1)]
    return list(itertools.pairwise(edges))
