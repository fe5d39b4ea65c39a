# SPDX-License-Identifier: Apache-2.0
"""Detects joints whose recorded positions are off by a constant: encoders with a wrong zero.

With recorded positions q and true ones q + δ, to first order about the fit x and offsets δ₀,

    tau_i = A_i(q + δ₀) x + k_i Y_i x₀ + Σ_j ∂tau_i/∂q_j (δ - δ₀)_j

All δ are fitted together with the parameters, so that nothing is attributed to a zero that bodies
or friction explain as well: an offset of the last joint turns its body, and one of a vertical first
axis has no effect. For the same reason the description has little weight. The gains k_i of the
drives are free because their errors, commonly some percent, distort the model as an offset does.
They apply only to the rigid-body torques Y x₀, as friction has its own scale at each joint. The
equations are linearised again about the result until it no longer changes.

Real robots have other faults, which some offset always explains a little. A zero is therefore in
doubt only if its offset is significant, large enough to matter, and improves the prediction of
parts of the time to which it was not fitted.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .fit import Fit
from .friction_laws import PLAIN, FrictionLaw
from .normal_equations import (
    FLOOR,
    FOLDS,
    RIDGE,
    Rows,
    biweight,
    correlation_length,
    robust_deviation,
)
from .recording import Floats, thinned
from .samples import Prepared, Samples, joined
from .solve import Prior, inverted, solved
from .unknowns import Unknowns

SAMPLES = 2400
"""Largest number of samples of a recording that are used"""
RECORDINGS = 8
"""Largest number of recordings that are used; a zero is the same in all of them"""
STEP = 1e-4
"""rad or m: step of central differences, whose relative error is 1e-9"""
WEIGHT = 0.01
"""The weight γ of the description"""
GAIN = 0.3
"""Prior standard deviation of a drive's relative gain error k"""
MEAN = 1e-3
"""Prior standard deviation of √n times the mean k of n drives"""
WIDEST = 0.5
"""rad or m: prior standard deviation of an offset"""
DETERMINED = math.radians(5.0)
"""rad or m: an offset with a larger standard deviation is not determined by the recordings"""
SIGNIFICANT = 5.0
"""Ratio of an offset to its standard deviation, beyond which a zero may be in doubt"""
LEAST = 0.01
"""rad or m: smaller offsets do not matter"""
AGAIN = 3.0
"""Ratio of an offset to its standard deviation, beyond which the equations are linearised again"""
SAME = 0.2
"""Change of an offset over its standard deviation below which the iteration has converged"""
PASSES = 6
"""Largest number of linearisations"""
BETTER = 2.0
"""Mean decrease of the squared error on held-out parts, in standard deviations of this mean, beyond
which the offset improves the prediction"""


@dataclass(frozen=True)
class Zero:
    """What the recordings say about the zero of a joint's encoder."""

    joint: str
    turns: bool
    """Whether the joint turns; otherwise it slides"""
    at_base: bool
    """Whether it is the first joint, where an offset cannot be distinguished from a base that is
    turned about the joint's axis"""
    offset: float
    """rad or m: what must be added to the recorded positions"""
    deviation: float
    """Its standard deviation"""
    less: float = 0.0
    """Fraction by which the offset reduces the RMS torque error of all joints on held-out parts"""
    doubtful: bool = False
    """Whether the zero is in doubt"""

    @property
    def determined(self) -> bool:
        """Whether the recordings determine the offset; otherwise it is mostly a guess."""
        return self.deviation < DETERMINED

    @property
    def shown(self) -> tuple[float, float, str]:
        """(offset, deviation, unit) for the user: in degrees or mm."""
        unit, scale = ("°", 180 / math.pi) if self.turns else (" mm", 1e3)
        return scale * self.offset, scale * self.deviation, unit

    def words(self, given: float = 0.0) -> str:
        """One line for the user.

        Args:
            given: rad or m, the offset that was already added to the positions.
        """
        offset, deviation, unit = self.shown
        option = shlex.quote(f"{self.joint}:{self.offset + given:.4g}")
        return (
            f"{self.joint}: its encoder zero may be wrong: with {offset:+.2f}{unit} "
            f"(± {deviation:.2f}{unit}) added to its positions, the torque errors on "
            f"held-out parts of the fitted motion are {100 * self.less:.2g} % smaller. Errors are "
            "relative to each joint's noise. "
            f"Check the zero{', and how the base is mounted' if self.at_base else ''} (the "
            f"positions were used as recorded; to correct them: --position-offset {option})"
        )


@dataclass(frozen=True, eq=False)
class Linearised:
    """The point about which the equations are linearised."""

    unknowns: Unknowns
    basis: Floats
    """(all columns, p): the parameters that are fitted together with the offsets"""
    x: Floats
    """(all columns,)"""
    gains: Floats
    """(n,): k of the drives"""
    offsets: Floats
    """(n,), rad or m"""
    fitted: Floats
    """(n,): 1 for joints whose efforts were fitted, else 0"""

    @classmethod
    def about(cls, found: Fit) -> Linearised:
        """The fit's model and the positions as recorded. The basis includes the plain friction law
        of every joint and shaft."""
        unknowns, E = found.unknowns, found.columns
        block = 10 * len(unknowns.bodies)
        plain = []
        for owner in unknowns.owners:
            columns = np.zeros((unknowns.size, len(PLAIN)))
            start = unknowns.group(owner).start
            columns[start : start + unknowns.raw] = FrictionLaw(PLAIN).matrix
            plain.append(columns)
        U, s, _ = np.linalg.svd(np.hstack([E[:, block:], *plain]), full_matrices=False)
        basis = np.hstack([E[:, :block], U[:, s > 1e-9 * s[0]]])
        fitted = np.isfinite(found.sigma).astype(float)
        nothing = np.zeros(len(unknowns.joints))
        return cls(unknowns, basis, E @ found.x, nothing, nothing, fitted)


@dataclass(frozen=True, eq=False)
class ZeroEquations:
    """Normal equations [A, gains, offsets, tau]ᵀ W [A, gains, offsets, tau] of some recordings."""

    square: Floats
    """(FOLDS, n, m, m), by fold and joint"""
    count: Floats
    """(n,): effective number of independent samples by joint"""


def equations(at: Linearised, prepared: Prepared) -> ZeroEquations:
    """The equations of one recording.

    Args:
        at: the point of linearisation.
        prepared: the recording.
    """
    whole = joined(prepared.stretches)
    samples = whole.rows(thinned(len(whole), SAMPLES))
    samples = replace(samples, q=samples.q + at.offsets)
    rows = Rows(at.unknowns, samples)
    rigid, D = _rigid(at, samples)
    residual = rows.residual(at.x) - at.gains * rigid
    weights, sigma = _weights(residual, samples, at.fitted)
    D *= (1.0 + at.gains)[:, None]
    n, p = len(at.unknowns.joints), at.basis.shape[1]
    m = p + 2 * n + 1
    square, count = np.zeros((FOLDS, n, m, m)), np.zeros(n)
    edges = np.linspace(0, len(samples), FOLDS + 1).round().astype(int)
    for j, A in enumerate(rows.matrices):
        if not weights[:, j].any():
            continue
        table = np.zeros((len(samples), m))
        table[:, :p] = A @ at.basis[rows.places[j]]
        table[:, p + j] = rigid[:, j]
        table[:, p + n : -1] = D[:, j]
        # tau = A x + k (Y x₀) + D (δ - δ₀)
        table[:, -1] = rows.tau[:, j] + D[:, j] @ at.offsets
        kept = np.where(weights[:, j] > 0, residual[:, j], 0.0)
        share = 1.0 / max(1.0, correlation_length(kept))
        table *= np.sqrt(share * weights[:, j])[:, None]
        for fold in range(FOLDS):
            part = table[edges[fold] : edges[fold + 1]]
            square[fold, j] = part.T @ part
        count[j] = share * weights[:, j].sum() * sigma[j] ** 2
    return ZeroEquations(square, count)


def _weights(residual: Floats, samples: Samples, fitted: Floats) -> tuple[Floats, Floats]:
    """(weights (k, n) in units of 1/sigma², sigma (n,)), without outliers."""
    n = residual.shape[1]
    weights, sigma = np.zeros_like(residual), np.ones(n)
    for j in np.flatnonzero(fitted):
        usable = samples.usable[:, j]
        level = float(np.sqrt(np.mean(samples.tau[usable, j] ** 2))) if usable.any() else 0.0
        if level == 0.0:
            continue
        sigma[j] = max(robust_deviation(residual[usable, j]), FLOOR * level)
        weights[:, j] = np.where(usable, biweight(residual[:, j], sigma[j]), 0.0) / sigma[j] ** 2
    return weights, sigma


def _rigid(at: Linearised, samples: Samples) -> tuple[Floats, Floats]:
    """(Y x₀ (k, n), its derivatives ∂/∂q_j (k, n, n)): the torques of bodies and rotors at x₀,
    including the known ones."""
    unknowns, n = at.unknowns, len(at.unknowns.joints)
    own = at.x[unknowns.places[0][: 10 * len(unknowns.bodies) + len(unknowns.rotors)]]

    def torque(step: Floats) -> Floats:
        Y, known = unknowns.rigid(replace(samples, q=samples.q + step))
        return np.asarray(Y @ own + known)

    steps = STEP * np.eye(n)
    slopes = [(torque(step) - torque(-step)) / (2 * STEP) for step in steps]
    return torque(np.zeros(n)), np.stack(slopes, axis=2)


def zeros(found: Fit, sums: Callable[[Linearised], ZeroEquations | None]) -> tuple[Zero, ...]:
    """What the recordings say about each joint's zero.

    Args:
        found: the fit.
        sums: computes the equations of all recordings, linearised about a point; None: there are
            none.
    """
    unknowns = found.unknowns
    if unknowns.payload is not None:
        return ()
    at = Linearised.about(found)
    prior = Prior(found.prior.bodies)
    before = np.zeros(len(unknowns.joints))
    for k in range(PASSES):
        total = sums(at)
        if total is None:
            return ()
        system = _System(at, prior, total)
        offset, deviation = system.offset, system.deviation
        determined = deviation < DETERMINED
        done = np.abs(offset - before) <= SAME * deviation
        far = determined & (system.times > AGAIN)
        if (done | ~determined).all() or (k == 0 and not far.any()):
            break
        before, at = offset, system.linearised(at, determined)
    return tuple(_judged(system, unknowns))


def _judged(system: _System, unknowns: Unknowns) -> Iterator[Zero]:
    for j, joint in enumerate(unknowns.joints):
        offset, deviation = float(system.offset[j]), float(system.deviation[j])
        turns = unknowns.mechanism.joint(joint).turns
        zero = Zero(joint, turns, joint == unknowns.joints[0], offset, deviation)
        if zero.determined and abs(offset) > max(LEAST, SIGNIFICANT * deviation):
            with_it, without = system.held_out(None), system.held_out(j)
            less = 1.0 - math.sqrt(with_it.sum() / without.sum())
            zero = replace(zero, less=less, doubtful=better(without - with_it))
        yield zero


def zero_words(found: Sequence[Zero], given: Mapping[str, float]) -> Iterator[str]:
    """One line for each zero in doubt.

    Args:
        found: the zeros.
        given: by joint, rad or m: the offset that was already added to its positions.
    """
    for each in found:
        if each.doubtful:
            yield each.words(given.get(each.joint, 0.0))


def better(gains: Floats) -> bool:
    """Whether the mean gain on held-out parts clearly exceeds its scatter.

    Args:
        gains: (parts,), the decrease of the squared error on each part.
    """
    if len(gains) < 2:
        return False
    return bool(gains.mean() > BETTER * gains.std(ddof=1) / math.sqrt(len(gains)))


class _System:
    """Parameters, gains and offsets, solved together."""

    def __init__(self, at: Linearised, prior: Prior, total: ZeroEquations):
        n, p = len(at.offsets), at.basis.shape[1]
        block = 10 * len(prior.bodies)
        self._H, self._right = np.zeros((p + 2 * n,) * 2), np.zeros(p + 2 * n)
        self._H[:block, :block] = prior.curvature(WEIGHT)
        self._right[:block] = self._H[:block, :block] @ prior.mean
        gains, self._offsets = np.arange(p, p + n), np.arange(p + n, p + 2 * n)
        self._H[self._offsets, self._offsets] = WIDEST**-2
        # a mean gain is the same as a scale of all bodies
        self._H[p : p + n, p : p + n] = MEAN**-2 / n
        self._H[gains, gains] += GAIN**-2
        self._all = np.arange(p + 2 * n)
        self._parts = total.square.sum(axis=1)
        # residuals beyond the noise estimate are noise, too
        y = np.r_[self._solved(self._parts.sum(axis=0), self._all), -1.0]
        missed = np.einsum("a,jab,b->j", y, total.square.sum(axis=0), y)
        wider = np.maximum(1.0, missed / np.maximum(total.count, 1.0))
        self._parts = (total.square / wider[:, None, None]).sum(axis=1)
        whole = self._parts.sum(axis=0)
        self.x = self._solved(whole, self._all)
        """(p + 2 n,)"""
        self.offset = self.x[self._offsets]
        """(n,), rad or m"""
        variance = np.diag(inverted(self._normal(whole)))[self._offsets]
        self.deviation = np.sqrt(np.maximum(variance, 0.0))

    def linearised(self, at: Linearised, determined: NDArray[np.bool_]) -> Linearised:
        """The solution without the offsets that are not determined, as the point of linearisation.

        Args:
            at: the present point.
            determined: (n,), whether each offset is determined.
        """
        n = len(determined)
        x = self._solved(self._parts.sum(axis=0), np.delete(self._all, self._offsets[~determined]))
        return replace(at, x=at.basis @ x[: -2 * n], gains=x[-2 * n : -n], offsets=x[-n:])

    @property
    def times(self) -> Floats:
        """(n,): offsets over their standard deviations"""
        return np.asarray(np.abs(self.offset) / np.maximum(self.deviation, 1e-300))

    def held_out(self, j: int | None) -> Floats:
        """(parts,): squared errors on held-out parts, without an offset at joint j; None: with all
        offsets."""
        kept = self._all if j is None else np.delete(self._all, self._offsets[j])
        whole, out = self._parts.sum(axis=0), []
        for part in self._parts:
            if part[-1, -1] > 0:
                y = np.r_[self._solved(whole - part, kept), -1.0]
                out.append(float(y @ part @ y))
        return np.array(out)

    def _normal(self, whole: Floats) -> Floats:
        H = whole[:-1, :-1] + self._H
        # a ridge; 1 for friction that nothing excites
        diagonal = np.diag(H)
        return np.asarray(H + np.diag(np.where(diagonal > 0, RIDGE * diagonal, 1.0)))

    def _solved(self, whole: Floats, kept: Floats) -> Floats:
        x = np.zeros(len(self._all))
        right = whole[:-1, -1] + self._right
        x[kept] = solved(self._normal(whole)[np.ix_(kept, kept)], right[kept])
        return x
