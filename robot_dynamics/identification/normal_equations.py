# SPDX-License-Identifier: Apache-2.0
"""Recordings reduced to normal equations, which add up: however many, wherever they lie.

Each recording is weighted by what its own residuals say: by joint, with the noise and the time over
which it is correlated, and by sample, with Tukey's biweight, which an outlier does not pull.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .preparation import Prepared, Samples
from .recording import Floats
from .solve import Prior
from .unknowns import Unknowns

FOLDS = 6
"""Parts of each recording, for cross-validation"""
CHUNK = 2048
"""Samples at a time"""
PASSES = 5
"""Of reweighting"""
ENOUGH = 4000
"""Samples from which weights are found"""
BIWEIGHT = 4.685
"""Standard deviations at which a sample counts no more: 95 % efficient on normal noise"""
FLOOR = 1e-7
"""Of a joint's RMS torque: the least noise that is believed"""
ROUNDING = 1e-11
"""Of a joint's squared torque: what less is missed is not known from sums"""
RIDGE = 1e-10
"""Of each scalar's own information: what keeps columns that are nearly one from running away"""


@dataclass(frozen=True, eq=False)
class Equations:
    """Normal equations of all joints together, by fold."""

    gram: Floats
    """(FOLDS, p, p): Σ w y yᵀ"""
    moment: Floats
    """(FOLDS, p): Σ w y τ"""
    square: Floats
    """(FOLDS,): Σ w τ²"""
    count: Floats
    """(n,): by joint, samples that are independent of one another"""
    sigma: Floats
    """(n,), N·m or N: the residual's standard deviation, NaN where there is none"""


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Sums over weighted samples, by fold and joint; `a + b` are those of both.

    A joint's are in the k columns that its rows have (`Unknowns.places`), so that joints can be
    weighted anew.
    """

    gram: Floats
    """(FOLDS, n, k, k): Σ w y yᵀ"""
    moment: Floats
    """(FOLDS, n, k): Σ w y τ"""
    square: Floats
    """(FOLDS, n): Σ w τ²"""
    count: Floats
    """(n,): by joint, samples that are independent of one another"""
    noise: Floats
    """(n,): by joint, Σ count σ²"""

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.gram + other.gram,
            self.moment + other.moment,
            self.square + other.square,
            self.count + other.count,
            self.noise + other.noise,
        )

    def without(self, joints: list[int]) -> NormalEquations:
        """As if these joints' efforts had not been measured."""
        kept = np.ones(len(self.count))
        kept[joints] = 0.0
        return NormalEquations(
            self.gram * kept[:, None, None], self.moment * kept[:, None], self.square * kept,
            self.count * kept, self.noise * kept,
        )  # fmt: skip

    def together(self, unknowns: Unknowns, wider: Floats | float = 1.0) -> Equations:
        """Of all joints.

        Args:
            wider: (n,), by which each joint's noise variance is larger than it was taken for.
        """
        n, p = len(unknowns.joints), unknowns.size
        share = 1.0 / np.broadcast_to(np.asarray(wider, dtype=float), n)
        gram, moment = np.zeros((FOLDS, p, p)), np.zeros((FOLDS, p))
        for j, places in enumerate(unknowns.places):
            gram[:, places[:, None], places] += share[j] * self.gram[:, j]
            moment[:, places] += share[j] * self.moment[:, j]
        with np.errstate(invalid="ignore", divide="ignore"):
            sigma = np.sqrt(self.noise / self.count / share)
        return Equations(gram, moment, self.square @ share, self.count, sigma)

    def misfit(self, unknowns: Unknowns, x: Floats) -> Floats:
        """(n,), at least 1: what x (p,) misses, squared, over the noise variance it was taken for.

        What rounding may be is nothing.
        """
        out = np.ones(len(self.count))
        G, g, square = self.gram.sum(axis=0), self.moment.sum(axis=0), self.square.sum(axis=0)
        for j, places in enumerate(unknowns.places):
            own = x[places]
            # Σ w (τ - y x)²
            missed = float(square[j] + own @ (G[j] @ own - 2 * g[j]))
            if missed > ROUNDING * square[j]:
                out[j] = max(1.0, missed / self.count[j])
        return out


@dataclass(frozen=True, eq=False)
class _Weighting:
    """What one recording's residuals say."""

    sigma: Floats
    """(n,)"""
    correlated: Floats
    """(n,): samples over which a residual is one and the same"""
    x: Floats
    """(p,): the fit that they are the residuals of"""

    def weights(self, residual: Floats, usable: NDArray[np.bool_]) -> Floats:
        """(k, n)"""
        u = residual / (BIWEIGHT * self.sigma)
        tukey = np.where(np.abs(u) < 1, (1 - u**2) ** 2, 0.0)
        weights: Floats = np.where(usable, tukey, 0.0) / (self.sigma**2 * self.correlated)
        return weights


def reduce(unknowns: Unknowns, prior: Prior, prepared: Prepared) -> NormalEquations:
    """The normal equations of one recording."""
    weighting = _weighting(unknowns, prior, prepared)
    n, k = unknowns.places.shape
    gram, moment = np.zeros((FOLDS, n, k, k)), np.zeros((FOLDS, n, k))
    square, count = np.zeros((FOLDS, n)), np.zeros(n)
    for fold, samples in _folded(prepared):
        for chunk in _chunks(samples):
            rows = Rows(unknowns, chunk)
            weights = weighting.weights(rows.residual(weighting.x), chunk.usable)
            for j, G, g in rows.sums(weights):
                felt = rows.felt[j]
                gram[fold, j, felt[:, None], felt] += G
                moment[fold, j, felt] += g
            square[fold] += (weights * rows.tau**2).sum(axis=0)
            count += (weights * weighting.sigma**2).sum(axis=0)
    gram = (gram + np.swapaxes(gram, 2, 3)) / 2
    return NormalEquations(gram, moment, square, count, count * weighting.sigma**2)


class Rows:
    """The equations of some samples; a joint's friction stands in that joint's rows alone."""

    def __init__(self, unknowns: Unknowns, samples: Samples):
        Y, known = unknowns.rigid(samples)
        self.unknowns = unknowns
        self.tau: Floats = np.nan_to_num(samples.tau - known)
        self.felt = unknowns.felt
        self.places = [
            places[felt] for places, felt in zip(unknowns.places, self.felt, strict=True)
        ]
        """By joint, the columns that are not 0 in its rows"""
        width = Y.shape[2]
        self._equations = []
        for j, felt in enumerate(self.felt):
            bodies = felt[felt < width]
            rows = np.empty((len(self.tau), len(felt) + 1))
            rows[:, : len(bodies)] = Y[:, j, bodies]
            rows[:, len(bodies) : -1] = unknowns.own(samples, j)
            rows[:, -1] = self.tau[:, j]
            self._equations.append(rows)

    @property
    def matrices(self) -> list[Floats]:
        """(k, …) by joint: its rows, the columns in `places`."""
        return [rows[:, :-1] for rows in self._equations]

    def residual(self, x: Floats) -> Floats:
        """(k, n): measured less modelled."""
        model = [A @ x[places] for A, places in zip(self.matrices, self.places, strict=True)]
        residual: Floats = self.tau - np.column_stack(model)
        return residual

    def sums(
        self, weights: Floats, part: slice = slice(None)
    ) -> Iterator[tuple[int, Floats, Floats]]:
        """(j, Aᵀ W A, Aᵀ W τ): of each joint's rows in the columns of its `places`."""
        from scipy.linalg.blas import dsyrk

        for j, rows in enumerate(self._equations):
            w = weights[part, j]
            if w.any():
                # one triangle of [A τ]ᵀ W [A τ]
                half = dsyrk(1.0, (rows[part] * np.sqrt(w)[:, None]).T)
                whole = half + np.triu(half, 1).T
                yield j, whole[:-1, :-1], whole[:-1, -1]

    def add(self, weights: Floats, gram: Floats, moment: Floats, part: slice = slice(None)) -> None:
        """Adds the sums of all joints to a Gram matrix (p, p) and a moment (p,), in place."""
        for j, G, g in self.sums(weights, part):
            places = self.places[j]
            gram[np.ix_(places, places)] += G
            moment[places] += g


def _weighting(unknowns: Unknowns, prior: Prior, prepared: Prepared) -> _Weighting:
    """Noise and outliers by refitting this recording alone, on few samples where it has many."""
    total = sum(map(len, prepared.stretches))
    step = max(1, total // ENOUGH)
    thin = [each.rows(slice(None, None, step)) for each in prepared.stretches]
    rows = [Rows(unknowns, chunk) for each in thin for chunk in _chunks(each)]
    usable = np.concatenate([chunk.usable for each in thin for chunk in _chunks(each)])
    x, sigma, weights, residual = robust(prior, rows, usable)
    n = len(sigma)
    correlated = np.array(
        [step * _correlation(np.where(weights[:, j] > 0, residual[:, j], 0.0)) for j in range(n)]
    )
    correlated = np.maximum(correlated, 1.0)
    return _Weighting(sigma, correlated, x)


def robust(
    prior: Prior, rows: list[Rows], usable: NDArray[np.bool_], start: Floats | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """(x (p,), sigma (n,), weights (k, n) in units of 1/sigma², residual (k, n)) by reweighting.

    Args:
        start: (k, n), weights to begin with, in units of 1/sigma²: one pass does; None: several.
    """
    tau = np.concatenate([each.tau for each in rows])
    p, n = rows[0].unknowns.size, tau.shape[1]
    level = np.array(
        [
            np.sqrt(np.mean(tau[usable[:, j], j] ** 2)) if usable[:, j].any() else 1.0
            for j in range(n)
        ]
    )
    level = np.maximum(level, 1e-9 * max(level.max(), np.finfo(float).tiny))
    sigma, weights = 0.1 * level, usable.astype(float) / (0.1 * level) ** 2
    if start is not None:
        weights = start
    edges = np.cumsum([0, *(len(each.tau) for each in rows)])
    for _ in range(PASSES if start is None else 1):
        gram, moment = np.zeros((p, p)), np.zeros(p)
        for a, b, each in zip(edges[:-1], edges[1:], rows, strict=True):
            each.add(weights[a:b], gram, moment)
        x = fitted(gram, moment, prior)
        residual = np.concatenate([each.residual(x) for each in rows])
        for j in range(n):
            if usable[:, j].any():
                spread = 1.4826 * float(np.median(np.abs(residual[usable[:, j], j])))
                sigma[j] = max(spread, FLOOR * level[j])
        u = residual / (BIWEIGHT * sigma)
        weights = np.where(usable & (np.abs(u) < 1), (1 - u**2) ** 2, 0.0) / sigma**2
    return x, sigma, weights, residual


def fitted(gram: Floats, moment: Floats, prior: Prior) -> Floats:
    """x of this recording alone: nothing runs away, nothing is asked to be possible."""
    block = 10 * len(prior.bodies)
    tightness = RIDGE * np.diag(gram)[block:]
    tightness = np.maximum(tightness, RIDGE * max(float(tightness.max(initial=0.0)), 1e-12))
    own = Prior(prior.bodies, np.zeros(len(gram) - block), tightness)
    return own.gaussian(gram, moment)


def _correlation(residual: Floats) -> float:
    """Samples over which it is correlated: 1 + 2 Σ ρ_k up to where ρ is nothing any more."""
    n = len(residual)
    energy = float(residual @ residual)
    if n < 8 or energy == 0:
        return 1.0
    power = np.abs(np.fft.rfft(residual, 2 * n)) ** 2
    rho = np.fft.irfft(power)[: n // 4] / energy
    end = int(np.argmax(rho < 0.05)) if (rho < 0.05).any() else len(rho)
    return float(1 + 2 * rho[1:end].sum())


def _folded(prepared: Prepared) -> Iterator[tuple[int, Samples]]:
    """(fold, samples): each fold one part of the time."""
    total = sum(map(len, prepared.stretches))
    bounds = np.linspace(0, total, FOLDS + 1).round().astype(int)
    done = 0
    for each in prepared.stretches:
        for fold, (a, b) in enumerate(itertools.pairwise(bounds)):
            begin, end = max(a - done, 0), min(b - done, len(each))
            if begin < end:
                yield fold, each.rows(slice(begin, end))
        done += len(each)


def _chunks(samples: Samples) -> Iterator[Samples]:
    for k in range(0, len(samples), CHUNK):
        yield samples.rows(slice(k, k + CHUNK))
