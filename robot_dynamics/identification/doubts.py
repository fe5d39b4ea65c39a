# SPDX-License-Identifier: Apache-2.0
"""Detects joints whose efforts have the wrong sign or unit, before anything is fitted to them.

A body acts on every joint that carries it, so the other joints' efforts determine what one joint's
torque must be, except for its own friction and rotor. For each joint, whose efforts may be
e = k τ, many factors k are tried:

    Q_j(k) = min_x (x - x₀)ᵀ H (x - x₀) + Σ w (e_j - k Y_j x)²

where x₀ and H are the solution and the Hessian of the fit to the other joints' efforts. Joint j's
own friction must be dissipative and its rotor's inertia must not be negative. If a factor other
than 1 explains the efforts far better, the joint is reported.

The description of a different robot, or of one that is mounted differently, also makes correct
efforts look wrong. Efforts therefore count as certainly wrong only if the factor reduces the error
to a fifth, or if no robot explains them as recorded. In the latter test, bodies may be physically
inconsistent and friction may drive its joint; nevertheless, on every held-out part of the time, the
errors of all joints together must be larger than with the factor; if they are far smaller, the
factor is dismissed. Efforts that no factor explains better than 0 does are certainly unrelated to
the torque if the errors of the other joints are far larger with them than without. Efforts that are
certainly wrong are excluded from the fit; others are fitted as they are. At a joint that stands
still or hardly moves, static friction may carry any part of the torque: efforts that are certainly
wrong are excluded there, too, but no factor is named.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .bodies import numbers
from .friction_laws import PLAIN, FrictionLaw, stands_still
from .normal_equations import NormalEquations, approached
from .recording import Floats
from .selection import WITHOUT_OFFSET, Drive, embedding, places_of
from .solve import Prior, minimise, solved
from .torque_errors import Errors
from .unknowns import Columns, Unknowns

OPPOSITE = "have the opposite sign"
STATIC = (
    "say nothing about its torque: the joint hardly moves, and static friction may carry any share"
)
SILENT = "are unrelated to its torque, as those of a drive that does not measure it"
VISCOUS = PLAIN.index("viscous")
FREE = PLAIN.index("offset")
"""Index of the one parameter of the plain law that may have either sign"""
FINEST = 0.01
"""Fraction of the RMS effort: the smallest model error that is assumed, however low the noise is"""
WEIGHT = 0.3
"""The weight γ of the description"""
BLIND = 0.9
"""Fraction of the RMS effort; negated efforts that leave a larger error explain nothing"""
FACTORS = np.logspace(-7, 7, 57)
"""Magnitudes of the factors that are tried, with either sign"""
AT_ONCE = 1 << 20
"""Numbers in the matrices of the factors that are tried together, few enough for the cache"""
LARGEST = 1e4
"""Units in use differ by a smaller factor; a larger one, or none at all, must be clearer"""
TWICE = 2.0
"""Ratio of the RMS error with factor 1 to the smallest one, beyond which the factor is not 1"""
LITTLE = 0.2
"""Fraction of the RMS effort; smaller errors need a factor only if it is clearer, and only held-out
motion tells whether it is certain"""
TINY, THRICE = 0.05, 3.0
"""For such errors, the fraction of the RMS effort below which they need no factor, and the ratio
beyond which the factor is not 1"""
NEAR = 2.0
"""Factors between the inverse of this and this are errors of a torque constant"""
ROUNDING = 1e-6
"""Fraction of the squared efforts below which a difference is a rounding error"""
CLEAR = 5.0
"""Ratio of the RMS error without the factor to that with it, beyond which the efforts are certainly
wrong, and that of all joints' held-out errors if the factor is no unit's or not determined, or
little unexplained"""
SURE = 1.5
"""Ratio of the product of all joints' held-out errors without the factor to that with it, as a
geometric mean over the parts, beyond which the efforts are certainly wrong"""
DISMISSED = 1000.0
"""The same ratio with the factor to that without it, beyond which the factor is dismissed"""
SAME = 1.1
"""Efforts are unrelated to a joint's torque if the factor 0 explains them up to this many times the
smallest error"""
ALIKE = 1.3
"""A well-known factor (degrees, gear ratio) is chosen if its error is at most this many times the
smallest one; a sign if it is at most `TWICE` that"""


@dataclass(frozen=True)
class Doubt:
    """A joint whose efforts are its torques divided by a factor."""

    joint: str
    factor: float
    """The factor by which the efforts must be multiplied"""
    why: str
    """What the factor means"""
    before: float
    """Relative RMS error of the best model with the efforts as they are"""
    after: float
    """Relative RMS error with the factor"""
    sure: bool = True
    """Whether no robot explains the efforts as they are; otherwise they are fitted as they are"""
    loose: bool = False
    """Whether any larger factor explains them as well: the other joints do not determine it"""

    @property
    def scale(self) -> float:
        """The factor to apply to whatever is read again; NaN excludes efforts that none explains"""
        return math.nan if self.why in (STATIC, SILENT) else self.factor

    @property
    def odd(self) -> bool:
        """Whether the factor is that of no unit in use"""
        return self.why == SILENT or not 1 / LARGEST < abs(self.factor) < LARGEST

    def words(self, given: float = 1.0) -> str:
        """One line for the user.

        Args:
            given: the factor that was already applied to the efforts.
        """
        scale = self.factor * given
        # options are quoted: a line may be copied to a shell
        apply, keep_all = (shlex.quote(f"{self.joint}:{x:.4g}") for x in (scale, 1.0))
        if self.why == STATIC:
            return (
                f"{self.joint}: its efforts {self.why}. The best model leaves "
                f"{100 * self.before:.3g} % of them unexplained. They were excluded from the fit"
            )
        if self.why == SILENT:
            return (
                f"{self.joint}: its efforts {self.why}: given the other joints, the best model "
                f"differs from them by {100 * self.before:.3g} %, and no factor explains them. "
                f"They were excluded from the fit (--effort-scale {keep_all} to keep them)"
            )
        if not self.sure:
            return (
                f"{self.joint}: its efforts may {self.why.replace('are', 'be', 1)}. Given the "
                f"other joints, scaling them by {self.factor:.4g} reduces the part that the best "
                f"model leaves unexplained from {100 * self.before:.3g} % to "
                f"{100 * self.after:.2g} %. Different bodies explain them unscaled, so they were "
                f"fitted unscaled (--effort-scale {apply} to scale them). Check "
                "their sign and unit, and how the base is mounted"
            )
        keep = "" if math.isclose(scale, 1.0) else f", {keep_all} to keep them as recorded"
        return (
            f"{self.joint}: its efforts {self.why}: scaling them by {self.factor:.4g} reduces the "
            f"part that the best model leaves unexplained from {100 * self.before:.3g} % to "
            f"{100 * self.after:.2g} %. They were excluded from the fit; this joint's "
            "errors are computed with the factor "
            f"(--effort-scale {apply} to apply it{keep})"
        )


@dataclass(frozen=True, eq=False)
class PlainModel:
    """Plain friction and a rotor at every joint: ten parameters of each body, then those of
    friction and rotors."""

    columns: Floats
    """(all columns, p): maps the parameters to the columns of the design matrix"""
    expected: Floats
    """(p,): the described rotors' inertias and known factors, otherwise 0"""
    limits: Floats
    """(p - 10 b,), r of the lower bounds -r about the expected values; infinite: unbounded"""
    own: Sequence[NDArray[np.intp]]
    """The parameters that only one joint's torque depends on, in the order of `PLAIN`, by joint"""
    known: int = 0
    """The number of parameters, at the end, that are as expected"""


def plain_model(unknowns: Unknowns) -> PlainModel:
    """That of an open chain."""
    drives = plain_drives(unknowns)
    E, places = embedding(unknowns, drives), places_of(drives, unknowns)
    expected = np.zeros(E.shape[1])
    for owner, place in places.items():
        if drives[owner].rotor:
            expected[place.stop - 1] = drives[owner].described
    limits = np.array([r for owner in unknowns.owners for r in drives[owner].limits])
    own = [np.arange(len(expected))[places[joint]] for joint in unknowns.joints]
    return PlainModel(E, expected, limits, own)


def doubts(
    unknowns: Columns,
    normal: NormalEquations,
    model: PlainModel,
    sure: Mapping[str, float],
    still: Collection[str] = (),
) -> tuple[tuple[Doubt, ...], float]:
    """(the joints whose efforts need a factor, the clearest first; the largest relative RMS error
    of any joint with all efforts as they are).

    Args:
        unknowns: the parameters to identify.
        normal: the normal equations of all recordings.
        model: what may explain the efforts.
        sure: by joint, the factors that the user gave; a joint whose factor is 1 is not doubted.
        still: joints that hardly move; those with small rates are found to stand still anyway.
    """
    tests = _FactorTests(unknowns, normal, model, still)
    trusted = {name for name, factor in sure.items() if factor == 1}
    whole, missed = tests.all_negated()
    if whole and not trusted:
        return whole, missed
    found: list[Doubt] = []
    while True:
        next_one = tests.clearest(trusted)
        if next_one is None:
            return tuple(found), missed
        gain = tests.gain(next_one)
        certain = surely_worse(gain, required(next_one))
        if (next_one.odd and not certain) or surely_worse(-gain, DISMISSED):
            trusted.add(next_one.joint)
            continue
        certain = certain or next_one.before > max(LITTLE, CLEAR * next_one.after)
        tests.leave_out(next_one.joint)
        if not tests.still[next_one.joint]:
            found.append(replace(next_one, sure=certain))
        elif certain:
            found.append(replace(next_one, factor=1.0, why=STATIC, after=next_one.before))


def required(doubt: Doubt) -> float:
    """The ratio of all joints' held-out errors beyond which a doubt is certain: larger if the
    efforts are mostly explained as they are, since they would be left out, or if nothing determines
    the factor: a joint's efforts agree with anything if the other joints' bodies do not count."""
    return CLEAR if doubt.odd or doubt.loose or doubt.before < LITTLE else SURE


def remaining(
    doubtful: Sequence[Doubt], errors: Errors, driven: Collection[str] = ()
) -> tuple[Doubt, ...]:
    """The doubts that remain after the fit. It dispels an uncertain one if it explains the efforts
    at least as well as the factor does, without friction that drives the joint.

    Args:
        doubtful: the doubts before it.
        errors: on held-out motion.
        driven: the joints whose fitted friction drives them.
    """
    relative = dict(zip(errors.joints, errors.relative.tolist(), strict=True))
    return tuple(
        each
        for each in doubtful
        if each.sure or each.joint in driven or relative[each.joint] > each.after
    )


def nothing_left(doubtful: Sequence[Doubt], given: Mapping[str, float]) -> str:
    """The error if the efforts of all joints are certainly wrong.

    Args:
        doubtful: the doubts.
        given: by joint, the factors that were already applied to the efforts.
    """
    scales = shlex.join(
        f"{each.joint}:{each.factor * given.get(each.joint, 1.0):.4g}" for each in doubtful
    )
    return (
        "the efforts do not match this robot's torques at any joint. Check that the recording "
        f"belongs to this description; if so, --effort-scale {scales} would explain them"
    )


def turned(before: Floats, after: Floats, drives: Floats, brakes: Floats) -> bool:
    """Whether all efforts have the opposite sign.

    With the efforts negated, no joint's error may exceed `ALIKE` times that before, nor `BLIND`. If
    the friction of every joint shows the wrong sign, it is then enough that the geometric mean of
    the errors does not grow. Otherwise it must become `TWICE` as small, no error may grow, and no
    friction may drive its joint.

    Args:
        before: (n,), relative error of each joint with the efforts as they are.
        after: (n,), the same with all efforts negated.
        drives: (n,), friction of each joint with the efforts as they are, over its RMS effort;
            negative where it drives the joint.
        brakes: (n,), the same with all efforts negated.
    """
    if len(before) < 2 or not (after <= np.minimum(ALIKE * before, BLIND)).all():
        return False
    less = np.log(before / after).mean()
    driven = less >= 0 and (drives < -FINEST).all() and (brakes > FINEST).all()
    clear = less > math.log(TWICE) and (after <= before).all() and (brakes > -FINEST).all()
    return bool(driven or clear)


def surely_worse(more: Floats, times: float = SURE) -> bool:
    """Whether the error is larger on every held-out part, and in the geometric mean by more than a
    factor.

    Args:
        more: (parts,), the logarithms of the error ratios.
        times: the factor.
    """
    return bool(len(more) > 1 and (more > 0).all() and more.mean() > math.log(times))


@dataclass(frozen=True)
class _Tried:
    """The result of trying factors on one joint's efforts."""

    before: float
    doubt: Doubt | None
    rest: float
    """Σ log of the RMS errors of all joints if this one is left out"""
    far: float
    """|log k|, if the other joints' efforts are about k times the described bodies' torques, to a
    factor of e"""


class _FactorTests:
    """Factors on the efforts of one joint after the other."""

    def __init__(
        self,
        unknowns: Columns,
        normal: NormalEquations,
        model: PlainModel,
        still: Collection[str],
    ):
        self.model, self.joints, self.own = model, unknowns.joints, model.own
        self.gears, self.bodies = unknowns.gear_ratios, unknowns.prior.bodies
        E = model.columns
        parts, n, p = len(normal.square), len(self.joints), E.shape[1]
        grams, moments = np.empty((parts, n, p, p)), np.empty((parts, n, p))
        whole, squares = _of_whole_efforts(unknowns, normal)
        weights = np.zeros(n)
        for j, columns in enumerate(unknowns.places):
            own = E[columns]
            grams[:, j] = own.T @ normal.gram[:, j] @ own
            moments[:, j] = whole[:, j] @ own
            # the noise of a fit to this joint's efforts alone has the same share with any factor
            square, g = float(squares[:, j].sum()), moments[:, j].sum(axis=0)
            alone = square - float(g @ _least_squares(grams[:, j].sum(axis=0), g))
            if square > 0:
                weights[j] = normal.count[j] / max(alone, FINEST**2 * square)
        diagonals = np.diagonal(grams.sum(axis=0), axis1=1, axis2=2)
        self.still = {
            joint: joint in still
            or stands_still(unknowns.mechanism, joint, each[own[VISCOUS]], each[own[FREE]])
            for joint, each, own in zip(self.joints, diagonals, model.own, strict=True)
        }
        """Whether each joint stands still or hardly moves"""
        self.grams, self.moments = weights[:, None, None] * grams, weights[:, None] * moments
        """(parts, n, p, p): Yᵀ W Y; (parts, n, p): Yᵀ W e of the efforts e as recorded"""
        self.squares = weights * squares
        """(parts, n): eᵀ W e; all 0 at a joint without efforts"""
        self.gram, self.moment = self.grams.sum(axis=0), self.moments.sum(axis=0)
        self.square = self.squares.sum(axis=0)
        self.used = [j for j in range(n) if self.square[j] > 0]
        self._bodies = 10 * len(self.bodies)

    def leave_out(self, joint: str) -> None:
        """Exclude this joint's efforts from now on."""
        self.used.remove(self.joints.index(joint))

    def all_negated(self) -> tuple[tuple[Doubt, ...], float]:
        """(a doubt of every joint if those that move show that all efforts have the opposite sign,
        otherwise none; the largest error with the efforts as they are)."""
        before, drives = self._errors(1.0)
        after, brakes = self._errors(-1.0)
        most = float(before.max(initial=0.0))
        moving = np.array([not self.still[self.joints[j]] for j in self.used], dtype=bool)
        if not turned(before[moving], after[moving], drives[moving], brakes[moving]):
            return (), most
        every = zip(self.used, before, after, strict=True)
        return tuple(
            Doubt(self.joints[j], -1.0, OPPOSITE, float(a), float(b)) for j, a, b in every
        ), most

    def _errors(self, k: float) -> tuple[Floats, Floats]:
        """(relative RMS error, friction over the RMS effort) of each joint, in a fit to k times all
        efforts."""
        gram, moment = self.gram[self.used], k * self.moment[self.used]
        x, _ = self._minimum(gram.sum(axis=0), moment.sum(axis=0))
        missed = 1 + (gram @ x @ x - 2 * moment @ x) / self.square[self.used]
        braking = []
        for j in self.used:
            size = np.sqrt(np.maximum(np.diag(self.gram[j]), 0.0) / self.square[j])
            braking.append(sum(x[k] * size[k] for k in self.own[j][:FREE]))
        return np.sqrt(np.maximum(missed, ROUNDING)), np.array(braking)

    def gain(self, doubt: Doubt) -> Floats:
        """(parts,): Σ log of all joints' RMS errors on each held-out part with the efforts as they
        are, less that with the factor, or that of the other joints without this one's efforts if
        no factor explains them; robots need not be physically consistent."""
        j = self.joints.index(doubt.joint)
        changed = np.ones(len(self.joints))
        changed[j] = doubt.factor if doubt.why != SILENT else 0.0
        counted = [i for i in self.used if changed[i] != 0]
        as_is, otherwise = (
            np.log(np.maximum(self._held_out_errors(factors)[:, counted], ROUNDING)).sum(axis=1) / 2
            for factors in (np.ones(len(self.joints)), changed)
        )
        return np.asarray(as_is - otherwise)

    def _held_out_errors(self, factors: Floats) -> Floats:
        """(parts, n): relative squared errors on each held-out part if the joints' efforts are
        multiplied by these factors; 0 excludes them, and their errors are NaN."""
        used = [j for j in self.used if factors[j] != 0]
        grams, moments = self.grams[:, used], self.moments[:, used]
        # the noise is multiplied as well
        grams = grams / (factors[used] ** 2)[:, None, None]
        moments = moments / factors[used, None]
        squares = self.squares
        prior, out = self._prior(grams.sum(axis=(0, 1)), moments.sum(axis=(0, 1))), []
        H = prior.curvature(WEIGHT)
        for part in np.flatnonzero((squares[:, self.used] > 0).all(axis=1)):
            G, g = grams.sum(axis=0) - grams[part], moments.sum(axis=0) - moments[part]
            # with a Gaussian prior, so that bodies need not be consistent
            mean = prior.mean + self.model.expected
            x = solved(G.sum(axis=0) + H, g.sum(axis=0) + H @ mean)
            left = squares[part, used] + grams[part] @ x @ x - 2 * moments[part] @ x
            missed = np.full(len(self.joints), np.nan)
            missed[used] = left / squares[part, used]
            out.append(missed)
        return np.array(out).reshape(-1, len(self.joints))

    def clearest(self, sure: Collection[str]) -> Doubt | None:
        """The doubt of the joint without which the other joints agree best; joints in `sure` are
        not doubted. If that says nothing about which of two it is (both scale the bodies), it is
        the one without which the bodies' torques are more like those of the described ones."""
        tried = [self._tried(j) for j in self.used if self.joints[j] not in sure]
        doubtful = [each for each in tried if each.doubt is not None]
        least = min((each.rest for each in doubtful), default=0.0) + math.log(ALIKE)
        alike = [each for each in doubtful if each.rest <= least]
        return min(alike, key=lambda each: (each.far, each.rest)).doubt if alike else None

    def _tried(self, j: int) -> _Tried:
        others = [i for i in self.used if i != j]
        G, g = self.gram[others].sum(axis=0), self.moment[others].sum(axis=0)
        x, H = self._minimum(G, g)
        missed = [
            max(self.square[i] + x @ (self.gram[i] @ x - 2 * self.moment[i]), 0.0) / self.square[i]
            for i in others
        ]
        left = _RelativeError(self, j, x, H)
        factors = np.concatenate([FACTORS, -FACTORS])
        errors = left(factors)
        before = float(left(np.ones(1))[0])
        doubt = None
        least = float(errors.min())
        if before > max(LITTLE, TWICE * least) or before > max(TINY, THRICE * least):
            doubt = self._named(j, left, before, factors, errors)
        if doubt is not None:
            largest = math.copysign(FACTORS[-1], doubt.factor)
            loose = float(left(np.array([largest]))[0]) <= SAME * doubt.after
            doubt = replace(doubt, loose=loose)
        after = before if doubt is None else doubt.after
        rest = sum(math.log(max(each, 1e-6)) for each in (*missed, after**2)) / 2
        return _Tried(before, doubt, rest, self._far(G, g))

    def _far(self, G: Floats, g: Floats) -> float:
        """|log k| of the factor k by which the described bodies' torques explain efforts best, to
        a factor of e; infinite if it is negative."""
        own = np.arange(self._bodies, len(G))
        E = np.zeros((len(G), 1 + len(own)))
        E[: self._bodies, 0] = np.concatenate([numbers(P) for P in self.bodies])
        E[own, 1 + np.arange(len(own))] = 1.0
        k = float(_least_squares(E.T @ G @ E, E.T @ g)[0])
        return round(abs(math.log(k))) if k > 0 else math.inf

    def _named(
        self, j: int, left: _RelativeError, before: float, factors: Floats, errors: Floats
    ) -> Doubt | None:
        joint, least = self.joints[j], float(errors.min())
        # positive, so that friction brakes
        silent = float(left(np.full(1, 1e-3 * FACTORS[0]))[0])
        best = int(np.argmin(errors))
        unrelated = silent <= SAME * least or abs(factors[best]) == FACTORS[0]
        if unrelated and before > max(LITTLE, CLEAR * silent):
            return Doubt(joint, 1.0, SILENT, before, silent)
        names = {-1.0: OPPOSITE}
        units = [(180 / math.pi, "are scaled as if degrees were used instead of radians")]
        gear = abs(self.gears.get(joint, 1.0))
        if max(gear, 1 / gear) > NEAR:
            units.append((gear, "are motor torques, not joint torques"))
        for value, what in units:
            for k in (value, 1 / value):
                names |= {k: what, -k: f"{what}, with the opposite sign"}
        for (k, what), error in zip(names.items(), left(np.array([*names])), strict=True):
            # a wrong sign is by far the likeliest error
            alike = TWICE if k == -1 else ALIKE
            if error <= max(alike * least, least + 0.01) and TWICE * error < before:
                return Doubt(joint, 1 / k, what, before, float(error))
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

    def _minimum(self, G: Floats, g: Floats) -> tuple[Floats, Floats]:
        """(x, H) of the fit over physically consistent bodies and rotors."""
        x, H = minimise(G, g - G @ self.model.expected, self._prior(G, g), WEIGHT)
        return x + self.model.expected, H

    def _prior(self, G: Floats, g: Floats) -> Prior:
        """The described bodies, scaled and stretched to these efforts; it regularises every
        direction."""
        own = np.diag(G)[self._bodies :]
        free = np.arange(len(own)) < len(own) - self.model.known
        tightness = np.where(own > 0, np.where(free, 1e-9, 1.0) * own, 1.0)
        near = approached(G, g, Prior(self.bodies))[1]
        return Prior(near.bodies, tightness, self.model.limits)


def _least_squares(G: Floats, g: Floats) -> Floats:
    """x (p,) at the minimum of xᵀ G x - 2 gᵀ x, regularised in every direction."""
    own = np.diag(G)
    return solved(G + np.diag(np.where(own > 0, 1e-9 * own, 1.0)), g)


def _of_whole_efforts(unknowns: Columns, normal: NormalEquations) -> tuple[Floats, Floats]:
    """(moments (parts, n, k), squares (parts, n)) of the whole efforts. The normal equations are
    those of the efforts minus the described rotors' and other known torques, but a factor applies
    to all."""
    known = unknowns.offsets
    moments, squares = normal.moment.copy(), normal.square.copy()
    for j, places in enumerate(unknowns.places):
        more = normal.gram[:, j] @ known[places]
        squares[:, j] += (2 * normal.moment[:, j] + more) @ known[places]
        moments[:, j] += more
    return moments, squares


class _RelativeError:
    """√(Q_j(k) / Σ w e_j²) of one joint, for many factors k at once."""

    def __init__(self, tests: _FactorTests, j: int, x: Floats, H: Floats):
        own = tests.own[j]
        shared = np.setdiff1d(np.arange(len(x)), own)
        self.H, self.x = H[np.ix_(shared, shared)], x[shared]
        # noise far below the predicted torque would outweigh the other joints to their last digit
        predicted = FINEST * float(self.x @ tests.gram[j][np.ix_(shared, shared)] @ self.x)
        share = min(1.0, float(tests.square.max()) / max(predicted, 1e-300))
        self.square = share * tests.square[j]
        A, a = share * tests.gram[j], share * tests.moment[j]
        self.A, self.a = A[np.ix_(shared, shared)], a[shared]
        self.B, self.own, self.own_moment = A[np.ix_(shared, own)], A[np.ix_(own, own)], a[own]
        told = [k for k in range(len(own)) if self.own[k, k] > 0]
        bound = [k for k in told if k != FREE]
        self.patterns = [
            [k for k in told if k not in fixed]
            for r in range(len(bound) + 1)
            for fixed in itertools.combinations(bound, r)
        ]
        """The active sets: which of joint j's own parameters are not 0"""

    def __call__(self, factors: Floats) -> Floats:
        if len(factors) * self.A.size > AT_ONCE and len(factors) > 1:
            return np.concatenate([self(each) for each in np.array_split(factors, 2)])
        k = np.asarray(factors, dtype=float)[:, None]
        # eliminate the shared parameters: (H + k² A) x = H x₀ + k a - k B f
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
        # then joint j's own parameters f, in units of the recorded effort: the minimum of
        # fᵀ S f - 2 sᵀ f with k f ≥ 0
        best = np.zeros(len(k))
        for some in filter(None, self.patterns):
            f = solved(S[:, some][:, :, some], s[:, some])
            allowed = ((k * f >= 0) | (np.array(some) == FREE)).all(axis=1)
            best = np.where(allowed, np.minimum(best, -(s[:, some] * f).sum(axis=1)), best)
        missed = (left + best) / self.square
        # a square that is clearly negative is due to cancellation
        return np.sqrt(np.where(missed < -ROUNDING, np.inf, np.maximum(missed, 0.0)))


def plain_drives(unknowns: Unknowns) -> dict[str, Drive]:
    """By joint and shaft, the plain friction law, with its rotor if it has one, and with a spring
    at the joints in `unknowns.sprung`."""

    def drive(owner: str) -> Drive:
        rotor = owner in unknowns.rotors
        names = WITHOUT_OFFSET if owner in unknowns.shafts else PLAIN
        names = (*names, "stiffness") if owner in unknowns.sprung else names
        return Drive(FrictionLaw(names), rotor, unknowns.rotor_inertia(owner) if rotor else 0.0)

    return {owner: drive(owner) for owner in unknowns.owners}
