# SPDX-License-Identifier: Apache-2.0
"""How far from a model's torque the measured one may lie.

    deviation² = y C yᵀ + s²

C is the covariance of what was fitted and y its row in a state: far where the motion told little.
s is all that no parameter explains: noise, ripple, what the model leaves out. What a fit leaves of
its own motion tells too little of it, and residuals are neither normal nor independent. So s is the
least with which as many efforts, measured on motion kept from the fit, lie within two deviations as
of a normal distribution: nothing is assumed but that other motion is like this ("split conformal
prediction", [LGRTW18]).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .fit import Fit
from .normal_equations import CHUNK, ENOUGH, Rows, _correlation
from .preparation import Samples
from .recording import Floats
from .solve import inverted
from .unknowns import Unknowns

WITHIN = 0.9545
"""Of a normal distribution, within two standard deviations"""
FINENESS = 64
"""Steps of s², each decade"""
DECADES = (-8, 12)
"""Of s² over the noise's variance"""


@dataclass(frozen=True, eq=False)
class Spread:
    """What a fit does not know of its parameters."""

    root: Floats
    """(all columns, c): C = root rootᵀ"""
    sigma: Floats
    """(n,), N·m or N: the fit's noise, in which s is told; NaN where nothing was fitted"""

    def variance(self, rows: Rows) -> Floats:
        """(k, n): y C yᵀ."""
        each = [(rows.model(j, self.root) ** 2).sum(axis=1) for j in range(len(rows.places))]
        return np.column_stack(each)


def spread(fit: Fit, bodies: bool = True, drives: bool = True) -> Spread:
    """Of those parameters that are not as described.

    Args:
        bodies, drives: were they fitted?
    """
    p, block = len(fit.x), 10 * len(fit.prior.bodies)
    fitted = np.r_[np.full(block, bodies), np.full(p - block, drives)]
    own = np.flatnonzero(fitted)
    C = inverted(fit.curvature[np.ix_(own, own)])
    scale = np.sqrt(np.maximum(np.diag(C), np.finfo(float).tiny))
    values, axes = np.linalg.eigh(C / scale / scale[:, None])
    root = scale[:, None] * axes * np.sqrt(np.maximum(values, 0.0))
    return Spread(fit.columns[:, own] @ root, fit.sigma)


@dataclass(frozen=True, eq=False)
class Needed:
    """How large s² has to be for each measured effort to lie within two deviations; those of
    several recordings add up."""

    counts: Floats
    """(n, bins): efforts that need s² up to the bin's upper edge, the last any"""
    independent: Floats
    """(n,): so many efforts that are independent of one another"""

    def residual(self, sigma: Floats) -> Floats:
        """s (n,), N·m or N; NaN where nothing was measured."""
        total = self.counts.sum(axis=1)
        # of k that may come in any order, with the new one, the most
        share = np.minimum(WITHIN * (1 + 1 / np.maximum(self.independent, 1e-9)), 1.0)
        enough = np.cumsum(self.counts, axis=1) >= (share * total)[:, None] - 1e-6
        s = sigma * np.sqrt(_edges()[np.argmax(enough, axis=1)])
        return np.where(total > 0, s, np.nan)


def needed(spread: Spread, unknowns: Unknowns, missed: Iterable[tuple[Samples, Floats]]) -> Needed:
    """Of one recording.

    Args:
        missed: stretches, and (k, n) of each: measured less modelled torque, unfiltered.
    """
    stretches = list(missed)
    n, edges = len(unknowns.joints), _edges()
    counts, few, usable = np.zeros((n, len(edges))), [np.zeros((0, n))], [np.zeros((0, n), bool)]
    step = max(1, -(-sum(len(samples) for samples, _ in stretches) // ENOUGH))
    for samples, residual in stretches:
        part = samples.rows(slice(None, None, step)).sharp
        few.append(residual[::step])
        usable.append(part.usable)
        # |e| < 2 √(y C yᵀ + s²)
        lacking = few[-1] ** 2 / 4 - spread.variance(Rows(unknowns, part))
        with np.errstate(invalid="ignore"):
            bins = np.searchsorted(edges, lacking / spread.sigma**2)
        for j in range(n):
            if np.isfinite(spread.sigma[j]):
                told = bins[part.usable[:, j], j]
                counts[j] += np.bincount(told, minlength=len(edges))
    whole, believed = np.concatenate(few), np.concatenate(usable)
    alike = [max(1.0, _correlation(each)) for each in np.where(believed, whole, 0.0).T]
    return Needed(counts, counts.sum(axis=1) / alike)


@dataclass(frozen=True, eq=False)
class Band:
    """The deviation of measured torques from a model's."""

    unknowns: Unknowns
    spread: Spread
    residual: Floats
    """s (n,), N·m or N"""

    def deviation(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """(k, n), N·m or N: in states (k, n), rad or m; NaN for a joint to whose efforts nothing
        was fitted."""
        zero, usable = np.zeros_like(q), np.ones(q.shape, dtype=bool)
        samples = Samples(np.arange(len(q)), q, qd, qdd, zero, zero, usable)
        chunks = [samples.rows(slice(k, k + CHUNK)) for k in range(0, len(q), CHUNK)]
        variance = [self.spread.variance(Rows(self.unknowns, chunk)) for chunk in chunks]
        return np.asarray(np.sqrt(np.concatenate([zero[:0], *variance]) + self.residual**2))


def _edges() -> Floats:
    low, high = DECADES
    steps = np.logspace(low, high, FINENESS * (high - low) + 1)
    return np.concatenate([steps, [np.inf]])
