# SPDX-License-Identifier: Apache-2.0
"""Reduces recordings to normal equations, which add up over any number of recordings.

Each recording is weighted according to its own residuals: as a whole by their correlation time, by
joint by the noise variance, and by sample by Tukey's biweight, which makes the fit robust against
outliers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .friction_laws import stands_still
from .recording import Floats, thinned
from .samples import Prepared, Samples
from .solve import Prior, inverted, solved
from .unknowns import Columns

FOLDS = 6
"""Parts of each recording for cross-validation"""
CHUNK = 2048
"""Samples that are processed at a time"""
BLOCK = 256
"""Number of samples whose regressor fits into a core's cache"""
PASSES = 5
"""Largest number of iterations of reweighting; three are usual"""
SETTLED = 0.01
"""Relative change of the noise below which they end"""
ENOUGH = 2400
"""Largest number of samples from which the weights are determined"""
BIWEIGHT = 4.685
"""Residual in standard deviations beyond which a sample has weight 0: 95 % efficient for Gaussian
noise"""
SIGMA_OF_MAD = 1.4826
"""Ratio of the standard deviation to the median absolute deviation of Gaussian noise"""
ASSUMED = 0.1
"""Fraction of a joint's RMS torque that is assumed as noise where residuals do not determine it"""
TAKEN = 0.1
"""Degrees of freedom of the fit over a joint's number of samples, beyond which residuals do not
fully determine the noise"""
FLOOR = 1e-4
"""Lower bound of the noise's standard deviation, as a fraction of a joint's RMS torque. With less,
the data outweigh the description by more than double precision can resolve, and the fit does not
converge"""
ROUNDING = 1e-11
"""Fraction of a joint's squared torque; smaller squared errors are lost to rounding in the sums"""
UNCORRELATED = 0.05
"""Autocorrelation of residuals below which samples count as independent"""
STRETCHES = 10
"""Largest number of fits in the search for stretched references; two to five are usual"""
PULLED = 3.0
"""Ratio of a joint's residuals without springs to those with springs, beyond which the joint has a
spring; efforts in a wrong unit give two"""
LOOSE = 1e-8
"""Weight of the description in the fit from which the search begins"""
SAME = 0.2
"""Change of a reference's log det below which the search ends: 5 % in every direction"""
RIDGE = 1e-10
"""Ridge relative to each scalar's own information; keeps the parameters of nearly collinear columns
bounded"""


Indices = Sequence[int] | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SummedEquations:
    """Normal equations of all joints together, by fold."""

    gram: Floats
    """(FOLDS, p, p): Σ w y yᵀ"""
    moment: Floats
    """(FOLDS, p): Σ w y τ"""
    square: Floats
    """(FOLDS,): Σ w τ²"""
    count: Floats
    """(n,): sum of the samples' weights by joint, divided by a correlation length"""
    sigma: Floats
    """(n,), N·m or N: the residual's standard deviation, NaN where there are no efforts"""


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Sums over weighted samples, by fold and joint; those of several recordings add up.

    The sums are kept by joint, over the k columns of its rows (`Unknowns.places`), so that joints
    can be reweighted later.
    """

    gram: Floats
    """(FOLDS, n, k, k): Σ w y yᵀ"""
    moment: Floats
    """(FOLDS, n, k): Σ w y τ"""
    square: Floats
    """(FOLDS, n): Σ w τ²"""
    count: Floats
    """(n,): sum of the samples' weights by joint, divided by a correlation length that is the same
    for all joints"""
    noise: Floats
    """(n,): Σ count σ² by joint"""
    independent: Floats
    """(n,): effective number of independent samples by joint: the same, divided by the joint's own
    correlation length"""
    pulled: Floats
    """(n,): number of recordings in which a spring explains most of the joint's torque that is
    otherwise unexplained"""

    def __getstate__(self) -> dict[str, Any]:
        # most columns are 0 in the rows of most joints, and each matrix is symmetric
        packed = []
        for j in range(len(self.count)):
            used = np.flatnonzero(self.gram[:, j].any(axis=(0, 1)))
            a, b = np.triu_indices(len(used))
            packed.append((used, self.gram[:, j, used[a], used[b]]))
        return {**self.__dict__, "gram": (self.gram.shape, packed)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        shape, packed = state["gram"]
        gram = np.zeros(shape)
        for j, (used, values) in enumerate(packed):
            a, b = np.triu_indices(len(used))
            gram[:, j, used[a], used[b]] = gram[:, j, used[b], used[a]] = values
        self.__dict__.update(state | {"gram": gram})

    def without(self, joints: list[int]) -> NormalEquations:
        """The equations without these joints' efforts.

        Args:
            joints: the joints' indices.
        """
        kept = np.ones(len(self.count))
        kept[joints] = 0.0
        return self._times(
            kept,
            count=self.count * kept,
            noise=self.noise * kept,
            independent=self.independent * kept,
            pulled=self.pulled * kept,
        )

    @property
    def sigma(self) -> Floats:
        """(n,), N·m or N: the noise's standard deviation, NaN where there are no efforts"""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(self.noise / self.count))

    def at_least(self, sigma: Floats) -> NormalEquations:
        """The equations with each joint's noise increased to this value if it is smaller.

        Args:
            sigma: (n,), N·m or N: the smallest standard deviation.
        """
        more = np.fmax(self.sigma, sigma)
        share = np.where(self.count > 0, (self.sigma / np.maximum(more, 1e-300)) ** 2, 1.0)
        return self._times(share, noise=self.noise / share)

    def worked(self, unknowns: Columns) -> Floats:
        """(n,): √(Σ q̇² Σ τ²) of each joint's samples, an upper bound of its work; 0 if it stands
        still or is not driven.

        Args:
            unknowns: the parameters' columns.
        """
        rates = []
        for gram, joint, places in zip(
            self.gram.sum(axis=0), unknowns.joints, unknowns.places, strict=True
        ):
            viscous = np.flatnonzero(places == unknowns.viscous(joint))
            rates.append(float(gram[viscous, viscous].sum()))
        squares = np.array(rates) * self.square.sum(axis=0)
        return np.asarray(np.sqrt(squares) * np.nan_to_num(self.sigma) ** 2)

    def honest(self) -> NormalEquations:
        """The equations from whose information standard deviations are computed: each joint's
        samples count as its effective number of independent ones."""
        share = np.where(self.count > 0, self.independent / np.maximum(self.count, 1e-300), 0.0)
        return self._times(share, count=self.independent, noise=self.noise * share)

    def _times(self, share: Floats, **others: Floats) -> NormalEquations:
        """The equations with each joint's weights multiplied by its share (n,), and other fields
        replaced."""
        gram, moment = self.gram * share[:, None, None], self.moment * share[:, None]
        return replace(self, gram=gram, moment=moment, square=self.square * share, **others)

    def together(self, unknowns: Columns, wider: Floats | float = 1.0) -> SummedEquations:
        """The normal equations of all joints together.

        Args:
            unknowns: the parameters' columns.
            wider: (n,), factors by which to increase the joints' noise variances.
        """
        n, p = len(unknowns.joints), unknowns.size
        share = 1.0 / np.broadcast_to(np.asarray(wider, dtype=float), n)
        gram, moment = np.zeros((FOLDS, p, p)), np.zeros((FOLDS, p))
        for j, places in enumerate(unknowns.places):
            gram[:, places[:, None], places] += share[j] * self.gram[:, j]
            moment[:, places] += share[j] * self.moment[:, j]
        sigma = self.sigma / np.sqrt(share)
        return SummedEquations(gram, moment, self.square @ share, self.count, sigma)

    def bent(self, unknowns: Columns, covariance: Floats) -> Floats:
        """The degrees of freedom (n,) that the fit takes from each joint's samples.

        Args:
            unknowns: the parameters' columns.
            covariance: (p, p), of a fit to these equations with their noise.
        """
        G = self.gram.sum(axis=0)
        return np.array(
            [
                # tr C G_j
                float((covariance[places[:, None], places] * G[j]).sum())
                for j, places in enumerate(unknowns.places)
            ]
        )

    def misfit(self, unknowns: Columns, x: Floats, bent: Floats | float = 0.0) -> Floats:
        """The squared error (n,) of x (p,) over that expected from the assumed noise variance; at
        least 1.

        An error that may be due to rounding counts as 1.

        Args:
            unknowns: the parameters' columns.
            x: (p,), the parameters.
            bent: (n,), the degrees of freedom that the fit takes from each joint; they are
                subtracted from its number of samples, but at most half of that.
        """
        out = np.ones(len(self.count))
        G, g, square = self.gram.sum(axis=0), self.moment.sum(axis=0), self.square.sum(axis=0)
        left = np.maximum(self.count - bent, self.count / 2)
        for j, places in enumerate(unknowns.places):
            own = x[places]
            # Σ w (τ - y x)²
            missed = float(square[j] + own @ (G[j] @ own - 2 * g[j]))
            if missed > ROUNDING * square[j]:
                out[j] = max(1.0, missed / left[j])
        return out


@dataclass(frozen=True, eq=False)
class _Weighting:
    """The weighting that follows from one recording's residuals."""

    sigma: Floats
    """(n,)"""
    x: Floats
    """(p,): the fit to which the residuals belong"""
    pulled: Floats
    """(n,): 1 for joints whose springs are part of the fit, else 0"""


def reduce(unknowns: Columns, prepared: Prepared) -> NormalEquations:
    """The normal equations of one recording.

    Args:
        unknowns: the parameters' columns.
        prepared: the recording.
    """
    weighting = _weighting(unknowns, prepared)
    n, k = unknowns.places.shape
    gram, moment = np.zeros((FOLDS, n, k, k)), np.zeros((FOLDS, n, k))
    square, count, missed = np.zeros((FOLDS, n)), np.zeros(n), []
    sums = Sums(unknowns, FOLDS)
    for fold, samples in _folded(prepared):
        for chunk in _chunks(samples):
            rows = Rows(unknowns, chunk)
            residual = rows.residual(weighting.x)
            weights = _weights(residual, weighting.sigma, chunk.usable)
            missed.append(np.where(weights > 0, residual, 0.0))
            sums.add(rows, weights, fold=fold)
            square[fold] += (weights * rows.tau**2).sum(axis=0)
            count += (weights * weighting.sigma**2).sum(axis=0)
    for j, nonzero, G, g in sums.by_joint():
        gram[:, j, nonzero[:, None], nonzero], moment[:, j, nonzero] = G, g
    # correlated residuals: all samples within the correlation time count as one. The correlation is
    # mostly due to the model's error, which says nothing about how well a joint was measured, so
    # the fit uses the same correlation length for all joints
    lengths = np.array([max(1.0, correlation_length(each)) for each in np.concatenate(missed).T])
    used = count > 0
    share = 1.0 / float(np.exp(np.log(lengths[used]).mean())) if used.any() else 1.0
    return NormalEquations(
        gram * share, moment * share, square * share, count * share,
        count * share * weighting.sigma**2, count / lengths, weighting.pulled,
    )  # fmt: skip


def quietest(unknowns: Columns, recordings: Sequence[NormalEquations]) -> Floats:
    """The smallest noise (n,) that is assumed in a recording, N·m or N.

    If a joint is not driven, a recording's own fit says little about its noise: without bodies and
    friction the joint needs no torque either, and all residuals vanish. The noise is therefore at
    least its median over the recordings, weighted by the joint's work in them; of two medians it is
    the smaller one.

    Args:
        unknowns: the parameters' columns.
        recordings: their equations.
    """
    sigma = np.array([each.sigma for each in recordings])
    worked = np.array([each.worked(unknowns) for each in recordings])
    order = np.argsort(sigma, axis=0)
    until = np.take_along_axis(worked, order, axis=0).cumsum(axis=0)
    middle = (until >= until[-1] / 2).argmax(axis=0)
    medians = np.take_along_axis(np.take_along_axis(sigma, order, axis=0), middle[None], axis=0)
    return np.asarray(np.nan_to_num(medians[0]))


def robust_sum(parts: Floats) -> Floats:
    """Their number times their median: a sum that a single part cannot decide.

    Args:
        parts: (parts, …).
    """
    return np.asarray(len(parts) * np.median(parts, axis=0))


class Rows:
    """The equations of some samples. A joint's friction appears only in that joint's rows, a
    shaft's in those of all joints coupled to it."""

    def __init__(self, unknowns: Columns, samples: Samples):
        self.unknowns = unknowns
        self.nonzero = unknowns.nonzero
        self.places = [
            places[nonzero] for places, nonzero in zip(unknowns.places, self.nonzero, strict=True)
        ]
        """By joint, the columns that can be nonzero in its rows"""
        self.tau: Floats = samples.tau.copy()
        # [Y_j own τ]ᵀ, with the independent columns Y_j of bodies and rotors; all such columns that
        # affect joint j are Y_j T_j
        bodies, self._spread = zip(*unknowns.independent, strict=True)
        ends = np.cumsum([0, *map(len, bodies)]).tolist()
        self._equations = [
            np.empty((len(T) + unknowns.width + 1, len(samples))) for T in self._spread
        ]
        for k in range(0, len(samples), BLOCK):
            block = slice(k, k + BLOCK)
            Y, known = unknowns.rigid(samples.rows(block))
            self.tau[block] -= known
            chosen = np.concatenate([j * Y.shape[2] + own for j, own in enumerate(bodies)])
            columns = Y.reshape(len(Y), -1).take(chosen, axis=1).T
            for rows, (begin, end) in zip(self._equations, itertools.pairwise(ends), strict=True):
                rows[: end - begin, block] = columns[begin:end]
        np.nan_to_num(self.tau, copy=False)
        for j, (rows, friction) in enumerate(
            zip(self._equations, unknowns.friction(samples), strict=True)
        ):
            rows[len(self._spread[j]) : -1] = friction.T
            rows[-1] = self.tau[:, j]

    @property
    def matrices(self) -> list[Floats]:
        """By joint, its design matrix (k, …), with the columns in `places`."""
        return [
            np.hstack([rows[: len(T)].T @ T, rows[len(T) : -1].T])
            for rows, T in zip(self._equations, self._spread, strict=True)
        ]

    def model(self, j: int, x: Floats, part: slice = slice(None)) -> Floats:
        """The torque (k,) or (k, c) of joint j for parameters x (p,) or (p, c)."""
        rows, T, own = self._equations[j], self._spread[j], x[self.places[j]]
        width = T.shape[1]
        torque: Floats = rows[:-1, part].T @ np.concatenate([T @ own[:width], own[width:]])
        return torque

    def residual(self, x: Floats) -> Floats:
        """The residuals (k, n): measured minus modelled torque, N·m or N."""
        model = [self.model(j, x) for j in range(len(self.places))]
        residual: Floats = self.tau - np.column_stack(model)
        return residual

    def squares(self, j: int, weights: Floats, part: slice) -> Floats:
        """[Y own τ]ᵀ W [Y own τ] of joint j."""
        root = np.sqrt(weights[part, j])
        # without the ends that have no weight, such as the halves of a recording
        first, last = np.flatnonzero(root)[[0, -1]]
        rows = self._equations[j][:, part][:, first : last + 1] * root[first : last + 1]
        return np.asarray(rows @ rows.T)


class Sums:
    """Aᵀ W A and Aᵀ W τ by fold and joint, accumulated in the independent columns and expanded on
    demand."""

    def __init__(self, unknowns: Columns, folds: int = 1):
        self._unknowns = unknowns
        self._folds = folds
        self._squares: dict[int, Floats] = {}

    def add(self, rows: Rows, weights: Floats, part: slice = slice(None), *, fold: int = 0) -> None:
        """Add rows with weights (k, n) to a fold."""
        for j in np.flatnonzero(weights[part].any(axis=0)).tolist():
            squares = rows.squares(j, weights, part)
            if j not in self._squares:
                self._squares[j] = np.zeros((self._folds, *squares.shape))
            self._squares[j][fold] += squares

    def by_joint(self) -> Iterator[tuple[int, NDArray[np.intp], Floats, Floats]]:
        """(j, columns, Aᵀ W A (folds, …), Aᵀ W τ (folds, …)) of each joint; the columns are indices
        into its `places`, of those that can be nonzero."""
        width = self._unknowns.width
        for j, squares in self._squares.items():
            # all columns that affect the joint are [independent ones, friction] times S
            _, T = self._unknowns.independent[j]
            few, many = T.shape
            S = np.eye(few + width, many + width, many - few)
            S[:few, :many] = T
            G = S.T @ squares[:, :-1, :-1] @ S
            yield j, self._unknowns.nonzero[j], (G + G.swapaxes(1, 2)) / 2, squares[:, -1, :-1] @ S

    def together(self) -> tuple[Floats, Floats]:
        """(Aᵀ W A (p, p), Aᵀ W τ (p,)) of all folds and joints."""
        p = self._unknowns.size
        gram, moment = np.zeros((p, p)), np.zeros(p)
        for j, nonzero, G, g in self.by_joint():
            places = self._unknowns.places[j][nonzero]
            gram[places[:, None], places] += G.sum(axis=0)
            moment[places] += g.sum(axis=0)
        return gram, moment


def _weighting(unknowns: Columns, prepared: Prepared) -> _Weighting:
    """Noise and outliers, from a robust fit to this recording alone, with a subset of its samples
    if it is long.

    Springs are left out, as they would explain efforts in a wrong unit. The exception is a joint at
    which a spring fitted to the first halves of the stretches reduces the residuals in the second
    halves by more than `PULLED`.
    """
    total = sum(map(len, prepared.stretches))
    thin = [each.rows(thinned(len(each), ENOUGH, total)) for each in prepared.stretches]
    rows = [Rows(unknowns, chunk) for each in thin for chunk in _chunks(each)]
    usable = np.concatenate([chunk.usable for each in thin for chunk in _chunks(each)])
    first = np.concatenate([np.arange(len(each)) < len(each) / 2 for each in thin])[:, None]

    springs = np.array(unknowns.springs, dtype=int)
    held = np.array([*springs, *unknowns.held], dtype=int)
    x, sigma, weights = robust(rows, usable, held)

    def unseen(held: Indices) -> Floats:
        """The median absolute residuals (n,) in the second halves."""
        x, _ = approached(gram, moment, unknowns.prior, held)
        residual = np.abs(np.concatenate([each.residual(x) for each in rows]))
        others = zip(residual.T, (usable & ~first).T, strict=True)
        return np.array([np.median(own[good]) if good.any() else 0.0 for own, good in others])

    pulled = np.zeros(usable.shape[1], dtype=bool)
    if len(springs):
        gram, moment = _summed(rows, weights * first).together()
        pulled = unseen(held) > PULLED * unseen(unknowns.held)
    if pulled.any():
        held = np.array([*springs[~pulled[: len(springs)]], *unknowns.held], dtype=int)
        x, sigma, weights = robust(rows, usable, held)
    level = _level(rows, usable)
    # the more degrees of freedom the fit takes, the less its residuals say about the noise
    count = np.maximum((weights * sigma**2).sum(axis=0), 1.0)
    most = np.array([len(bodies) + unknowns.width for bodies, _ in unknowns.independent])
    if (most > TAKEN * count).any():
        taken = _degrees(rows, weights, held) / count
        sigma = np.hypot(sigma, ASSUMED * level * np.sqrt(np.maximum(taken - TAKEN, 0.0)))
    # static friction may carry any part of the torque of a joint that stands still
    squares = sum((each.qd**2).sum(axis=0) for each in thin)
    for j, name in enumerate(unknowns.joints):
        if stands_still(unknowns.mechanism, name, squares[j], len(usable)):
            sigma[j] = max(sigma[j], level[j])
    return _Weighting(sigma, x, pulled.astype(float))


def _degrees(rows: list[Rows], weights: Floats, held: Indices) -> Floats:
    """The degrees of freedom (n,) that a fit takes from each joint's residuals: tr(Yᵀ W Y C), with
    the joint's equations and the covariance C of all parameters.

    Args:
        rows, held: as for `robust`.
        weights: (k, n), in units of 1/sigma².
    """
    sums, prior = _summed(rows, weights), rows[0].unknowns.prior
    gram, moment = sums.together()
    H = gram + RIDGE * np.diag(np.diag(gram) + 1e-12 * float(np.diag(gram).max()))
    block = 10 * len(prior.bodies)
    H[:block, :block] += approached(gram, moment, prior, held)[1].curvature(1.0)[:block, :block]
    free = np.delete(np.arange(len(H)), held)
    C = np.zeros_like(H)
    C[np.ix_(free, free)] = inverted(H[np.ix_(free, free)])
    degrees = np.zeros(len(rows[0].places))
    for j, nonzero, G, _ in sums.by_joint():
        places = rows[0].unknowns.places[j][nonzero]
        degrees[j] = (G.sum(axis=0) * C[np.ix_(places, places)]).sum()
    return degrees


def _summed(rows: list[Rows], weights: Floats) -> Sums:
    """The sums of all rows with weights (k, n)."""
    sums, k = Sums(rows[0].unknowns), 0
    for each in rows:
        sums.add(each, weights[k : k + len(each.tau)])
        k += len(each.tau)
    return sums


def _level(rows: list[Rows], usable: NDArray[np.bool_]) -> Floats:
    """The RMS torque (n,) of each joint; 1 where no effort is usable."""
    tau = np.concatenate([each.tau for each in rows])
    level = np.array(
        [
            np.sqrt(np.mean(own[good] ** 2)) if good.any() else 1.0
            for own, good in zip(tau.T, usable.T, strict=True)
        ]
    )
    least: float = 1e-9 * max(level.max(), np.finfo(float).tiny)
    return np.asarray(np.maximum(level, least))


def robust(
    rows: list[Rows], usable: NDArray[np.bool_], held: Indices, start: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Robust fit by iterative reweighting.

    Args:
        rows: the equations.
        usable: (k, n), which efforts to use.
        held: as for `approached`.
        start: (k, n), initial weights in units of 1/sigma², from which only one iteration is made;
            None: start from equal weights, with several iterations.

    Returns: x (p,), sigma (n,), weights (k, n) in units of 1/sigma².
    """
    level = _level(rows, usable)
    sigma, weights = ASSUMED * level, usable.astype(float) / (ASSUMED * level) ** 2
    if start is not None:
        weights = start
    for _ in range(PASSES if start is None else 1):
        before = sigma.copy()
        x, _ = approached(*_summed(rows, weights).together(), rows[0].unknowns.prior, held)
        residual = np.concatenate([each.residual(x) for each in rows])
        for j, (own, good) in enumerate(zip(residual.T, usable.T, strict=True)):
            if good.any():
                own = own if good.all() else own[good]
                sigma[j] = max(robust_deviation(own), FLOOR * level[j])
        weights = _weights(residual, sigma, usable)
        if np.abs(sigma / before - 1.0).max() < SETTLED:
            break
    return x, sigma, weights


def _weights(residual: Floats, sigma: Floats, usable: NDArray[np.bool_]) -> Floats:
    """The weights (k, n) in units of 1/sigma² of residuals (k, n)."""
    return np.asarray(np.where(usable, biweight(residual, sigma), 0.0) / sigma**2)


def biweight(residual: Floats, sigma: Floats) -> Floats:
    """Tukey's biweight (k, n) of residuals (k, n) with standard deviations sigma (n,)."""
    u = residual / (BIWEIGHT * sigma)
    return np.where(np.abs(u) < 1, (1 - u**2) ** 2, 0.0)


def approached(
    gram: Floats, moment: Floats, prior: Prior, held: Indices = ()
) -> tuple[Floats, Prior]:
    """The regularised fit x (p,) without constraints of physical consistency, and the prior scaled
    and stretched to its bodies.

    Args:
        gram: (p, p), the normal matrix.
        moment: (p,), its right-hand side.
        prior: the described bodies.
        held: columns, after those of the bodies, whose parameters are kept at 0: springs, which
            would take over the bodies' weight, and explain efforts in a wrong unit.
    """
    block, free = 10 * len(prior.bodies), np.delete(np.arange(len(gram)), held)
    x, gram, moment = np.zeros(len(gram)), gram[np.ix_(free, free)], moment[free]
    tightness = RIDGE * np.diag(gram)[block:]
    tightness = np.maximum(tightness, RIDGE * max(float(tightness.max(initial=0.0)), 1e-12))
    # eliminate the scalars s: (A - Bᵀ D⁻¹ B) φ = a - Bᵀ D⁻¹ b
    B = gram[block:, :block]
    Z = solved(gram[block:, block:] + np.diag(tightness), np.column_stack([moment[block:], B]))
    A, right = gram[:block, :block] - B.T @ Z[:, 1:], moment[:block] - B.T @ Z[:, 0]
    A = (A + A.T) / 2
    prior = prior.scaled(A, right)
    mean = prior.mean[:block]

    def bodies(near: Prior, weight: float) -> Floats:
        # with a Gaussian prior, so that they need not be physically consistent; its mean is the
        # description, to which bodies return where the recording does not determine them
        H = near.curvature(weight)[:block, :block]
        return solved(A + H, right + H @ mean)

    near = prior.stretched(bodies(prior, LOOSE))
    for _ in range(STRETCHES):
        phi = bodies(near, 1.0)
        before, near = near, prior.stretched(phi)
        if np.abs(near.volumes - before.volumes).max(initial=0.0) < SAME:
            break
    x[free] = np.concatenate([phi, Z[:, 0] - Z[:, 1:] @ phi])
    return x, near


def robust_deviation(residual: Floats) -> float:
    """The standard deviation of normal residuals (k,), however large some outliers are."""
    return SIGMA_OF_MAD * float(np.median(np.abs(residual)))


def correlation_length(residual: Floats) -> float:
    """The residual's correlation length in samples: 1 + 2 Σ ρ_k over the lags k before ρ first
    falls below 0.05, but less than a quarter of the samples."""
    n = len(residual)
    energy = float(residual @ residual)
    if n < 8 or energy == 0:
        return 1.0
    # padded so that no lag wraps around
    padded = 1 << (n + n // 4).bit_length()
    rho = np.fft.irfft(np.abs(np.fft.rfft(residual, padded)) ** 2)[1 : n // 4] / energy
    end = int(np.argmax(np.append(rho, 0.0) < UNCORRELATED))
    return 1.0 + float(2 * rho[:end].sum())


def _folded(prepared: Prepared) -> Iterator[tuple[int, Samples]]:
    """(fold, samples): each fold is one contiguous part of the time."""
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
