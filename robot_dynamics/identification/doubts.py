# SPDX-License-Identifier: Apache-2.0
"""Efforts of another sign or unit than the other joints', told before anything is fitted to them.

A body is felt by every joint that carries it, so that the other joints tell what one joint's torque
must be, up to what it alone feels. Each joint's efforts, taken for e = k τ, are tried with every k:

    Q_j(k) = min_x (x - x₀)ᵀ H (x - x₀) + Σ w (e_j - k Y_j x)²

where x₀ and H are those of the fit to the other joints' efforts, and joint j's own friction takes
power away, its rotor's inertia is not negative. Where another factor than 1 explains by far more,
it is named.

A description of another robot, or one that is mounted otherwise, makes good efforts look wrong as
well. The doubt is sure where the factor leaves a fifth of the error, or where no robot at all
explains the efforts as they are: bodies need not be possible, friction may drive, and yet on every
part of the time, kept aside, the joints together are missed by more than with the factor.
Nothing is fitted to efforts that are in doubt for sure; others are fitted as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from .friction_laws import PLAIN, law
from .normal_equations import NormalEquations
from .recording import Floats
from .selection import Drive, embedding
from .solve import Prior, minimise, solved
from .unknowns import Unknowns

OPPOSITE = "have the opposite sign"
FREE = PLAIN.index("offset")
"""Which of its numbers may have any sign"""
FINEST = 0.01
"""Of the RMS effort: no model is taken to be nearer than this, however little noise there is"""
WEIGHT = 0.3
"""γ of the description: the least that a fit has"""
BLIND = 0.9
"""Of the RMS effort: a factor with which more is missed explains nothing"""
FACTORS = np.logspace(-4, 4, 33)
"""Of either sign: what is tried"""
TWICE = 2.0
"""Times the RMS error that the best factor leaves: with a larger one, 1 is not the factor"""
LITTLE = 0.2
"""Of the RMS effort: what less is missed needs no factor"""
NEAR = 2.0
"""Factors nearer to 1 than this are a torque constant's own error"""
ROUNDING = 1e-6
"""Of the squared efforts"""
CLEAR = 5.0
"""Times the RMS error that the factor leaves: with so large a one as they are, efforts are wrong"""
SURE = 1.5
"""Times the errors of all joints, multiplied, on a part kept aside: the geometric mean of these"""
ALIKE = 1.3
"""Times the least error: a factor that is known by name is taken where it leaves no more"""


@dataclass(frozen=True)
class Doubt:
    """A joint whose efforts are torques but for a factor."""

    joint: str
    factor: float
    """By which they must be multiplied"""
    why: str
    """What the factor is"""
    before: float
    """RMS of what the best possible robot misses of the efforts as they are, over theirs"""
    after: float
    """The same with the factor"""
    sure: bool = True
    """Is there no robot that explains the efforts as they are? Else they are fitted as they are"""

    def words(self, given: float = 1.0) -> str:
        """One line; `given` is the factor that the efforts have already."""
        scale = self.factor * given
        if not self.sure:
            return (
                f"{self.joint}: its efforts may {self.why.replace('are', 'be', 1)}: with the other "
                f"joints' bodies the best model misses {100 * self.before:.3g} % of them, times "
                f"{self.factor:.4g} {100 * self.after:.2g} %; other bodies explain them as they "
                f"are, so they were fitted as they are (--effort-scale {self.joint}:{scale:.4g} "
                f"takes them otherwise); check sign, unit, and how the base is mounted"
            )
        sure = "" if math.isclose(scale, 1.0) else f", {self.joint}:1 as they are"
        return (
            f"{self.joint}: its efforts {self.why}: times {self.factor:.4g} the best model misses "
            f"{100 * self.after:.2g} % of them, as they are {100 * self.before:.3g} %; nothing was "
            f"fitted to them, and its errors are those with the factor "
            f"(--effort-scale {self.joint}:{scale:.4g} takes them so{sure})"
        )


def doubts(
    unknowns: Unknowns, normal: NormalEquations, sure: Mapping[str, float]
) -> tuple[Doubt, ...]:
    """Joints whose efforts need a factor, the clearest first.

    Args:
        sure: factors that were given; a joint with 1 is believed.
    """
    if unknowns.payload is not None:
        return ()
    trial = _Trial(unknowns, normal)
    believed = {name for name, factor in sure.items() if factor == 1}
    whole = () if believed else trial.all_turned()
    if whole:
        return whole
    found: list[Doubt] = []
    while True:
        next_one = trial.clearest(believed)
        if next_one is None:
            return tuple(found)
        if trial.explained(next_one):
            next_one = replace(next_one, sure=False)
            believed.add(next_one.joint)
        else:
            trial.leave_out(next_one.joint)
        found.append(next_one)


def turned(before: Floats, after: Floats, drives: Floats, brakes: Floats) -> bool:
    """Have all efforts the opposite sign?

    Args:
        before, after: (n,), of each joint, what is missed of its efforts as they are, and turned.
        drives, brakes: (n,), friction against the motion, likewise: below 0 where it drives.
    """
    driven = len(before) > 1 and (drives < -FINEST).all() and (brakes > FINEST).all()
    return bool(driven and (after <= np.minimum(before, BLIND)).all())


def surely_worse(more: Floats) -> bool:
    """On every part that was kept aside, and by far in the mean?

    Args:
        more: (parts,), logarithms of how many times more is missed.
    """
    return bool(len(more) > 1 and (more > 0).all() and more.mean() > math.log(SURE))


@dataclass(frozen=True)
class _Tried:
    """What factors leave of one joint's efforts."""

    before: float
    doubt: Doubt | None
    rest: float
    """Σ log of the RMS errors of all joints, were this one left out"""


class _Trial:
    """Sums over all samples, by joint, in the columns of one plain law for every joint."""

    def __init__(self, unknowns: Unknowns, normal: NormalEquations):
        self.unknowns, self.joints = unknowns, unknowns.joints
        drives = {joint: _plain(unknowns, joint) for joint in self.joints}
        E = embedding(unknowns, drives)
        self._bodies = 10 * len(unknowns.bodies)
        parts, n, p = len(normal.square), len(self.joints), E.shape[1]
        self._grams, self._moments = np.empty((parts, n, p, p)), np.empty((parts, n, p))
        square = normal.square.sum(axis=0)
        weights = np.minimum(1.0, normal.count / (FINEST**2 * np.maximum(square, 1e-300)))
        self._squares = weights * normal.square
        for j, places in enumerate(unknowns.places):
            own = E[places]
            self._grams[:, j] = weights[j] * (own.T @ normal.gram[:, j] @ own)
            self._moments[:, j] = weights[j] * (normal.moment[:, j] @ own)
        self.gram, self.moment = self._grams.sum(axis=0), self._moments.sum(axis=0)
        self.square = self._squares.sum(axis=0)
        self.used = [j for j in range(len(self.joints)) if normal.count[j] > 0]
        self._limits = np.array([r for joint in self.joints for r in drives[joint].limits])
        edges = np.cumsum([self._bodies, *(drives[joint].size for joint in self.joints)])
        self.own = [np.arange(a, b) for a, b in itertools.pairwise(edges)]

    def leave_out(self, joint: str) -> None:
        """Its efforts say nothing any more."""
        self.used.remove(self.joints.index(joint))

    def all_turned(self) -> tuple[Doubt, ...]:
        """All joints, if friction would drive every one of them by efforts as they are, and turning
        these explains none of them worse."""
        before, drives = self._errors(1.0)
        after, brakes = self._errors(-1.0)
        if not turned(before, after, drives, brakes):
            return ()
        return tuple(
            Doubt(self.joints[j], -1.0, OPPOSITE, float(a), float(b))
            for j, a, b in zip(self.used, before, after, strict=True)
        )

    def _errors(self, k: float) -> tuple[Floats, Floats]:
        """(RMS of what a fit to k times all efforts misses, friction against the motion) of each
        joint, over its RMS effort."""
        gram, moment = self.gram[self.used], k * self.moment[self.used]
        x, _ = self._fit(gram.sum(axis=0), moment.sum(axis=0))
        missed = 1 + (gram @ x @ x - 2 * moment @ x) / self.square[self.used]
        braking = []
        for j in self.used:
            size = np.sqrt(np.diag(self.gram[j]) / self.square[j])
            braking.append(sum(x[k] * size[k] for k in self.own[j][:FREE]))
        return np.sqrt(np.maximum(missed, ROUNDING)), np.array(braking)

    def explained(self, doubt: Doubt) -> bool:
        """Does some robot, possible or not, explain all efforts as they are nearly as well?"""
        if doubt.before > CLEAR * doubt.after:
            return False
        j = self.joints.index(doubt.joint)
        missed = np.array([self._aside(j, factor) for factor in (1.0, doubt.factor)])
        # Σ log of the RMS errors: of all joints multiplied
        as_is, with_factor = np.log(np.maximum(missed, ROUNDING)).sum(axis=2) / 2
        return not surely_worse(as_is - with_factor)

    def _aside(self, j: int, factor: float) -> Floats:
        """(parts, joints): squared errors over squared efforts on each part that was kept aside,
        where joint j's efforts are multiplied."""
        used = self.used
        factors = np.where(np.arange(len(self.joints)) == j, factor, 1.0)
        grams, moments = self._grams[:, used], self._moments[:, used] * factors[used, None]
        squares = self._squares[:, used] * factors[used] ** 2
        prior, out = self._prior(np.diag(self.gram[used].sum(axis=0))), []
        H = prior.curvature(WEIGHT)
        for part in np.flatnonzero((squares > 0).all(axis=1)):
            G, g = grams.sum(axis=0) - grams[part], moments.sum(axis=0) - moments[part]
            # of a prior that is normal: any body may come out
            x = solved(G.sum(axis=0) + H, g.sum(axis=0) + H @ prior.mean)
            left = squares[part] + grams[part] @ x @ x - 2 * moments[part] @ x
            out.append(left / squares[part])
        return np.array(out).reshape(-1, len(used))

    def clearest(self, sure: Collection[str]) -> Doubt | None:
        """Of the joints in doubt that without which all the others agree best."""
        tried = [self._tried(j) for j in self.used if self.joints[j] not in sure]
        doubtful = [each for each in tried if each.doubt is not None]
        return min(doubtful, key=lambda each: each.rest).doubt if doubtful else None

    def _tried(self, j: int) -> _Tried:
        others = [i for i in self.used if i != j]
        x, H = self._fit(self.gram[others].sum(axis=0), self.moment[others].sum(axis=0))
        missed = [
            max(self.square[i] + x @ (self.gram[i] @ x - 2 * self.moment[i]), 0.0) / self.square[i]
            for i in others
        ]
        left = _Left(self, j, x, H)
        factors = np.concatenate([FACTORS, -FACTORS])
        errors = left(factors)
        before = float(left(np.ones(1))[0])
        doubt = None
        if before > max(LITTLE, TWICE * errors.min()):
            doubt = self._named(j, left, before, factors, errors)
        after = before if doubt is None else doubt.after
        rest = sum(math.log(max(each, 1e-6)) for each in (*missed, after**2)) / 2
        return _Tried(before, doubt, rest)

    def _named(
        self, j: int, left: _Left, before: float, factors: Floats, errors: Floats
    ) -> Doubt | None:
        joint, least = self.joints[j], float(errors.min())
        names = {-1.0: OPPOSITE}
        units = [(180 / math.pi, "are in another unit (degrees for radians)")]
        described = joint in self.unknowns.rotors and joint not in self.unknowns.added
        gear = abs(self.unknowns.gear_ratio(joint)) if described else 1.0
        if max(gear, 1 / gear) > NEAR:
            units.append((gear, "are the motor's, before its gear"))
        for value, what in units:
            for k in (value, 1 / value):
                names |= {k: what, -k: f"{what}, with the opposite sign"}
        for (k, what), error in zip(names.items(), left(np.array([*names])), strict=True):
            # a sign is by far the likeliest
            alike = TWICE if k == -1 else ALIKE
            if error <= max(alike * least, least + 0.01) and TWICE * error < before:
                return Doubt(joint, 1 / k, what, before, float(error))
        best = int(np.argmin(errors))
        k = float(factors[best])
        if abs(k) in (FACTORS[0], FACTORS[-1]):
            return None
        fine = k * np.logspace(-0.25, 0.25, 41)
        tried = left(fine)
        k, least = float(fine[int(np.argmin(tried))]), float(tried.min())
        if 1 / NEAR < k < NEAR:
            return None
        what = "are in another unit, such as currents"
        return Doubt(
            joint, 1 / k, what if k > 0 else f"{what}, with the opposite sign", before, least
        )

    def _fit(self, G: Floats, g: Floats) -> tuple[Floats, Floats]:
        """Over possible bodies and rotors; nothing runs away."""
        return minimise(G, g, self._prior(np.diag(G)), WEIGHT)

    def _prior(self, information: Floats) -> Prior:
        own = information[self._bodies :]
        tightness = np.where(own > 0, 1e-9 * own, 1.0)
        return Prior(self.unknowns.references(), np.zeros(len(own)), tightness, self._limits)


class _Left:
    """√(Q_j(k) / Σ w e_j²) of one joint, for many k at once."""

    def __init__(self, trial: _Trial, j: int, x: Floats, H: Floats):
        own = trial.own[j]
        shared = np.setdiff1d(np.arange(len(x)), own)
        self.square = trial.square[j]
        self.H, self.x = H[np.ix_(shared, shared)], x[shared]
        A, a = trial.gram[j], trial.moment[j]
        self.A, self.a = A[np.ix_(shared, shared)], a[shared]
        self.B, self.own, self.own_moment = A[np.ix_(shared, own)], A[np.ix_(own, own)], a[own]
        told = [k for k in range(len(own)) if self.own[k, k] > 0]
        bound = [k for k in told if k != FREE]
        self.patterns = [
            [k for k in told if k not in fixed]
            for r in range(len(bound) + 1)
            for fixed in itertools.combinations(bound, r)
        ]
        """Which of joint j's own numbers are not 0"""

    def __call__(self, factors: Floats) -> Floats:
        k = np.asarray(factors, dtype=float)[:, None]
        # of the shared numbers: (H + k² A) x = H x₀ + k a - k B f
        M = self.H + (k**2)[..., None] * self.A
        right = self.H @ self.x + k * self.a
        B = k[..., None] * self.B
        Z = solved(M, np.concatenate([right[..., None], B], axis=2))
        left = self.square + self.x @ self.H @ self.x - (right * Z[..., 0]).sum(axis=1)
        S = self.own - np.swapaxes(B, 1, 2) @ Z[..., 1:]
        s = self.own_moment - (np.swapaxes(B, 1, 2) @ Z[..., :1])[..., 0]
        S = (S + np.swapaxes(S, 1, 2)) / 2
        diagonal = np.arange(S.shape[1])
        least = 1e-12 * np.diag(self.own)
        S[:, diagonal, diagonal] = np.maximum(S[:, diagonal, diagonal] + least, least)
        # then of f, in units of the recorded effort: the least of fᵀ S f - 2 sᵀ f with k f ≥ 0
        best = np.zeros(len(k))
        for some in filter(None, self.patterns):
            f = solved(S[:, some][:, :, some], s[:, some])
            allowed = ((k * f >= 0) | (np.array(some) == FREE)).all(axis=1)
            best = np.where(allowed, np.minimum(best, -(s[:, some] * f).sum(axis=1)), best)
        missed = (left + best) / self.square
        # a square that comes out negative was lost to rounding
        return np.sqrt(np.where(missed < -ROUNDING, np.inf, np.maximum(missed, 0.0)))


def _plain(unknowns: Unknowns, joint: str) -> Drive:
    rotor = joint in unknowns.rotors
    return Drive(law(PLAIN), rotor, unknowns.rotor_inertia(joint) if rotor else 0.0)
