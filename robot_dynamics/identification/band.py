# SPDX-License-Identifier: Apache-2.0
"""Prediction band: how far measured torques may deviate from the model's.

    deviation² = y C yᵀ + s²

C is the covariance of the fitted parameters and y the regressor's row in a state, so the first term
is large where the recorded motion carried little information. s stands for everything that no
parameter explains: noise, torque ripple, unmodelled effects. The residuals of the fit's own data
underestimate it, and residuals are neither normal nor independent. s is therefore the smallest
value with which at least as many held-out efforts lie within two deviations as in a normal
distribution. The only assumption is that other motion resembles the held-out motion ("split
conformal prediction", [LGRTW18]).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .fit import Fitted
from .normal_equations import CHUNK, ENOUGH, SIGMA_OF_MAD, Rows, correlation_length
from .recording import Floats, thinned
from .samples import Samples
from .solve import inverted
from .unknowns import Columns

WITHIN = 0.9545
"""Probability of being within two standard deviations of a normal distribution's mean"""
FINENESS = 64
"""Grid steps of s² per decade"""
DECADES = (-8, 12)
"""Range of the grid: powers of ten of s² over the noise variance"""


@dataclass(frozen=True, eq=False)
class Spread:
    """The uncertainty of a fit's parameters."""

    root: Floats
    """(all columns, c): C = root rootᵀ"""
    sigma: Floats
    """(n,), N·m or N: the standard deviation of the fit's noise, which serves as the unit of s; NaN
    for a joint whose efforts were not fitted"""

    def variance(self, rows: Rows) -> Floats:
        """(k, n), (N·m)² or N²: y C yᵀ."""
        each = [(rows.model(j, self.root) ** 2).sum(axis=1) for j in range(len(rows.places))]
        return np.column_stack(each)


def spread(fit: Fitted, bodies: bool = True, drives: bool = True) -> Spread:
    """The uncertainty of the parameters that were fitted rather than kept as described.

    Args:
        fit: the fit.
        bodies: whether the bodies were fitted.
        drives: whether friction and rotors were fitted.
    """
    p, block = len(fit.x), 10 * len(fit.prior.bodies)
    fitted = np.r_[np.full(block, bodies), np.full(p - block, drives)]
    own = fit.known[fitted[fit.known]]
    root = root_of(inverted(fit.curvature[np.ix_(own, own)]))
    return Spread(fit.columns[:, own] @ root, fit.sigma)


def root_of(C: Floats) -> Floats:
    """A root (p, p) of a positive semidefinite C = root rootᵀ."""
    scale = np.sqrt(np.maximum(np.diag(C), np.finfo(float).tiny))
    values, axes = np.linalg.eigh(C / scale / scale[:, None])
    return np.asarray(scale[:, None] * axes * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True, eq=False)
class Needed:
    """Histograms of the s² with which each measured effort would lie just within two deviations.

    Those of several recordings add up.
    """

    counts: Floats
    """(n, bins): number of efforts whose required s² is in the bin; the last bin has no upper
    edge"""
    sizes: Floats
    """(n, bins): the same if the parameters were certain"""
    independent: Floats
    """(n,): effective number of independent efforts"""

    def residual(self, sigma: Floats) -> Floats:
        """s (n,), N·m or N; NaN where nothing was measured.

        Args:
            sigma: (n,), N·m or N, the fit's noise, as in `Spread`.
        """
        # the quantile of k exchangeable efforts that holds for one more
        share = np.minimum(WITHIN * (1 + 1 / np.maximum(self.independent, 1e-9)), 1.0)
        return sigma * np.sqrt(_quantile(self.counts, share))

    def usual(self, sigma: Floats) -> Floats:
        """(n,), N·m or N: the standard deviation that half of the residuals suggest, however large
        the others are; NaN where nothing was measured.

        Args:
            sigma: (n,), N·m or N, the fit's noise, as in `Spread`.
        """
        half = _quantile(self.sizes, np.full(len(self.sizes), 0.5))
        return 2 * SIGMA_OF_MAD * sigma * np.sqrt(half)


def needed(spread: Spread, unknowns: Columns, missed: Iterable[tuple[Samples, Floats]]) -> Needed:
    """The histograms of one recording.

    Args:
        spread: the uncertainty of the fitted parameters.
        unknowns: the parameters' columns.
        missed: for each stretch, its samples and (k, n) measured minus modelled torque, unfiltered.
    """
    stretches, n = list(missed), len(unknowns.joints)
    few, usable = [np.zeros((0, n))], [np.zeros((0, n), bool)]
    variance = [np.zeros((0, n))]
    total = sum(len(samples) for samples, _ in stretches)
    for samples, residual in stretches:
        some = thinned(len(samples), ENOUGH, total)
        part = samples.rows(some).sharp
        few.append(residual[some])
        usable.append(part.usable)
        variance.append(spread.variance(Rows(unknowns, part)))
    missing, told, believed = map(np.concatenate, (few, variance, usable))
    return counted(missing, told, believed, spread.sigma)


def counted(residual: Floats, variance: Floats, usable: NDArray[np.bool_], sigma: Floats) -> Needed:
    """The histograms of held-out efforts.

    Args:
        residual: (k, n), N·m or N: measured minus modelled efforts, unfiltered.
        variance: (k, n), (N·m)² or N²: y C yᵀ.
        usable: (k, n): which efforts to count.
        sigma: (n,), N·m or N: the unit of s, as in `Spread`.
    """
    edges = _edges()

    def histogram(squares: Floats) -> Floats:
        counts = np.zeros((len(sigma), len(edges)))
        with np.errstate(invalid="ignore"):
            # what is far beyond the last edge is counted in the last bin
            bins = np.minimum(np.searchsorted(edges, squares / sigma**2), len(edges) - 1)
        for j in np.flatnonzero(np.isfinite(sigma)):
            counts[j] = np.bincount(bins[usable[:, j], j], minlength=len(edges))
        return counts

    # |e| < 2 √(y C yᵀ + s²)
    size = residual**2 / 4
    counts = histogram(size - variance)
    alike = [max(1.0, correlation_length(each)) for each in np.where(usable, residual, 0.0).T]
    return Needed(counts, histogram(size), counts.sum(axis=1) / alike)


@dataclass(frozen=True, eq=False)
class Band:
    """The standard deviation of measured torques about the model's; n is the number of joints, or
    of the motors of a robot with loops."""

    unknowns: Columns
    spread: Spread
    residual: Floats
    """s (n,), N·m or N"""

    def deviation(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """The deviation (k, n), N·m or N; NaN for a joint whose efforts were not fitted.

        Args:
            q: (k, n) positions of the independent joints, rad or m.
            qd: (k, n) rates, rad/s or m/s.
            qdd: (k, n) accelerations, rad/s² or m/s².
        """
        found = [np.zeros((0, len(self.residual)))]
        for k in range(0, len(q), CHUNK):
            chunk = slice(k, k + CHUNK)
            states = Samples.without_efforts(q[chunk], qd[chunk], qdd[chunk])
            found.append(self.spread.variance(Rows(self.unknowns, states)))
        return np.asarray(np.sqrt(np.concatenate(found) + self.residual**2))


def _quantile(counts: Floats, share: Floats) -> Floats:
    """(n,): the edges below which these shares (n,) of the counts (n, bins) lie; NaN where nothing
    was counted."""
    total = counts.sum(axis=1)
    enough = np.cumsum(counts, axis=1) >= (share * total)[:, None] - 1e-6
    return np.where(total > 0, _edges()[np.argmax(enough, axis=1)], np.nan)


def _edges() -> Floats:
    low, high = DECADES
    steps = np.logspace(low, high, FINENESS * (high - low) + 1)
    return np.concatenate([steps, [np.inf]])
