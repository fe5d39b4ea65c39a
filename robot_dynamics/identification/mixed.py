# SPDX-License-Identifier: Apache-2.0
"""Detects columns that are mixed up: exchanged between two joints, or of a joint that turns the
other way or has its zero a quarter or half turn off.

If no robot of the described kinematics explains a recording's efforts, the same samples are fitted
with the columns of two joints exchanged, with only their efforts exchanged, with one joint
reversed, and with one turned by 90° or 180°, as if the description lacked the offset of an angle,
which is too far for equations that are linearised about its zero. Each fit is plain least squares,
which does not depend on the described masses, and is evaluated on held-out parts of the time. A
change is reported if it explains the torques far better than the columns as recorded, and than
these with the efforts of any one joint negated or left out, or with the suspected factors.

A base that is mounted differently from the description, on a wall or a ceiling, is tried in the
same way, with other directions of gravity in the base frame. The described bodies' torques depend
linearly on gravity g, which is the least-squares solution of

    τ = τ₀ + Σ g_k τ_k + friction

where τ₀ are the torques without gravity and τ_k those of unit gravity along each axis. Only the
direction is used, so it hardly matters if all described masses are off by a factor. As this
estimate is only as good as the described bodies, the axes of the base are candidates, too.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..dynamics import InverseDynamics
from ..formulations.terms import RIGID
from ..mechanism import Mechanism
from .doubts import ROUNDING, plain_drives, surely_worse
from .normal_equations import Rows
from .recording import Floats, thinned
from .samples import Samples
from .selection import embedding
from .solve import solved
from .unknowns import Unknowns

SAMPLES = 600
"""Largest number of samples that are used"""
PARTS = 6
"""Parts of the time, each of which is held out once"""
TURNS = (-math.pi / 2, math.pi / 2, math.pi)
"""rad by which zeros may be off; the first joint's are those of the base"""
MOST = 16
"""Largest number of joints for which this is tried: there are about n² fits of n joints each"""
RIDGE = 0.01
"""Ridge relative to each parameter's own information"""
TIMES = 7.0
"""Ratio of the product of all joints' held-out errors as recorded to that with the change, as a
geometric mean over the parts, beyond which the change is reported"""
GOOD = 0.25
"""Largest relative error with the change, as a geometric mean over parts and joints"""

TILTED = 15.0
"""Degrees; a base that is turned by less is on the same floor, which is not level"""
STANDARD = 9.81
"""m/s²: the magnitude if no gravity is described"""


@dataclass(frozen=True)
class Mixed:
    """Columns that are mixed up."""

    joints: tuple[str, ...]
    """Two that are exchanged, or one that is reversed or turned"""
    positions: bool
    """Whether their positions and rates are"""
    efforts: bool
    """Whether their efforts are"""
    before: float
    """Relative error of the best model with the columns as recorded, geometric mean over the
    joints"""
    after: float
    """The same with the columns corrected"""
    offset: float | None = None
    """rad: what must be added to the recorded positions; None: nothing"""

    def words(self) -> str:
        """One line for the user."""
        names = " and ".join(self.joints)
        if len(self.joints) == 2:
            what = "columns" if self.positions else "efforts"
            said = f"the recording's {what} of {names} appear to be exchanged"
            mend = "the names in the recording (--rename)" if self.positions else "these columns"
        elif self.offset is not None:
            degrees = math.degrees(self.offset)
            said = f"the positions of {names} appear to need {degrees:.3g}° added to them"
            option = shlex.quote(f"{names}:{self.offset:.4g}")
            mend = f"its zero (--position-offset {option})"
        elif self.efforts:
            said = f"{names} appears to be reversed"
            mend = "the signs of its positions and efforts"
        else:
            said = f"the recording's positions of {names} appear to have the opposite sign"
            mend = "this sign"
        return (
            f"{said}: corrected, the best model leaves {100 * self.after:.2g} % of the torques "
            f"unexplained (mean over the joints); as recorded, {100 * self.before:.2g} %. They "
            "were used as recorded, so the result is not a model of the robot. Check "
            f"{mend}, the axes in the description, and how its base is mounted"
        )


@dataclass(frozen=True)
class Mounting:
    """A base that appears to be mounted differently from the description."""

    described: tuple[float, ...]
    """(3,), m/s²: gravity in the base frame as described"""
    gravity: tuple[float, ...]
    """(3,), m/s², in the base frame, that explains the torques best"""
    before: float
    """Relative error of the best model with gravity as described, as a geometric mean over the
    joints"""
    after: float
    """The same with this gravity"""

    @property
    def tilt(self) -> float:
        """The angle between this gravity and the described one, degrees; NaN if none is
        described."""
        a, b = np.asarray(self.gravity), np.asarray(self.described)
        if not b.any():
            return math.nan
        return math.degrees(math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b)))

    def words(self) -> str:
        """One line for the user."""
        gravity = ", ".join(f"{each:.3g}" for each in self.gravity)
        how = "mounted differently from the description"
        then = (
            "The description was used as it is, so the result is not a model of the robot. Set its "
        )
        if self.tilt < TILTED:
            how, then = f"tilted by {self.tilt:.2g}° from the description", "Level it, or set its "
        return (
            f"the base appears to be {how}: with `gravity: [{gravity}]` in the base frame the best "
            f"model leaves {100 * self.after:.2g} % of the torques unexplained (mean over the "
            f"joints); as described, {100 * self.before:.2g} %. {then}`gravity` (for a URDF, in a "
            "YAML file next to it)"
        )


def mixed(
    unknowns: Unknowns,
    samples: Samples,
    factors: Mapping[str, float],
    offsets: Mapping[str, float] = MappingProxyType({}),
) -> Mixed | Mounting | None:
    """The columns that are mixed up in a recording, or a base that is mounted differently from the
    description; None: neither is apparent, or there are more than `MOST` joints.

    Args:
        unknowns: the parameters to identify.
        samples: the recording.
        factors: by joint, the suspected factors, which may explain its efforts instead; NaN where
            none does.
        offsets: by joint, rad or m: the offset that was already added to its positions.
    """
    joints = unknowns.joints
    samples, measured = _used(samples)
    if len(joints) > MOST or len(samples) < PARTS or not measured.any():
        return None
    recorded = Fits(unknowns, samples, measured)
    as_is, ones, flips = np.arange(len(joints)), np.ones(len(joints)), 1 - 2 * np.eye(len(joints))
    given = np.array([factors.get(joint, 1.0) for joint in joints])
    # of two joints, one alone says too little
    without = np.where(flips < 0, np.nan, 1.0)[measured if measured.sum() > 2 else []]
    likely = (ones, given, *flips[measured], *without)
    rivals = [recorded.missed(as_is, signs) for signs in likely]

    def changed() -> Iterator[tuple[Callable[[float, float], Mixed | Mounting], Floats]]:
        for i, j in itertools.combinations(np.flatnonzero(measured).tolist(), 2):
            order = as_is.copy()
            order[[i, j]] = j, i
            both = joints[i], joints[j]
            yield partial(Mixed, both, False, True), recorded.missed(order, ones)
            swapped = Fits(unknowns, samples.columns(order.tolist()), measured)
            yield partial(Mixed, both, True, True), swapped.missed(as_is, ones)
        for j in np.flatnonzero(measured).tolist():
            reversed_one = Fits(unknowns, _multiplied(samples, flips[j]), measured)
            for efforts, signs in ((True, flips[j]), (False, ones)):
                missed = reversed_one.missed(as_is, signs)
                yield partial(Mixed, (joints[j],), True, efforts), missed
            for turn in TURNS if j and unknowns.mechanism.joint(joints[j]).turns else ():
                turned = replace(samples, q=samples.q + turn * (flips[j] < 0))
                missed = Fits(unknowns, turned, measured).missed(as_is, ones)
                offset = math.remainder(turn + offsets.get(joints[j], 0.0), 2 * math.pi)
                yield partial(Mixed, (joints[j],), True, False, offset=offset), missed
        for gravity in _gravities(unknowns.mechanism, samples, measured):
            mounted = replace(unknowns.mechanism, gravity=gravity)
            fits = Fits(replace(unknowns, mechanism=mounted), samples, measured)
            known = tuple(np.asarray(unknowns.mechanism.gravity, dtype=float).tolist())
            yield partial(Mounting, known, tuple(gravity.tolist())), fits.missed(as_is, ones)

    found, missed = min(changed(), key=lambda each: float(each[1].mean()))
    after = math.exp(missed.mean())
    if after > GOOD or not all(
        surely_worse(np.nansum(rival - missed, axis=1), TIMES) for rival in rivals
    ):
        return None
    return found(math.exp(rivals[0].mean()), after)


def _gravities(mechanism: Mechanism, samples: Samples, measured: Floats) -> Floats:
    """(k, 3): candidates for gravity in the base frame, m/s².

    Args:
        mechanism: the described robot.
        samples: motion in which all measured efforts are usable.
        measured: (n,), whether each joint's effort was measured.
    """
    q, qd, qdd = samples.q, samples.qd, samples.qdd
    bare, *along = (
        InverseDynamics(replace(mechanism, gravity=each), terms=RIGID, batches=True)(q, qd, qdd)
        for each in (np.zeros(3), *np.eye(3))
    )
    A, b = [], []
    for j in np.flatnonzero(measured):
        tau = samples.tau[:, j]
        own = np.column_stack([np.ones(len(q)), qd[:, j], np.sign(qd[:, j]), qdd[:, j]])
        columns = np.column_stack([*(each[:, j] - bare[:, j] for each in along), tau - bare[:, j]])
        # minus what the joint's own friction and rotor explain
        columns -= own @ np.linalg.lstsq(own, columns, rcond=None)[0]
        columns /= max(float(np.linalg.norm(tau)), np.finfo(float).tiny)
        A.append(columns[:, :3])
        b.append(columns[:, 3])
    found = np.linalg.lstsq(np.concatenate(A), np.concatenate(b), rcond=None)[0]
    size = float(np.linalg.norm(mechanism.gravity)) or STANDARD
    candidates = np.vstack([np.eye(3), -np.eye(3), found])
    lengths = np.linalg.norm(candidates, axis=1)
    return np.asarray(size * candidates[lengths > 0] / lengths[lengths > 0, None] + 0.0)


def in_degrees(unknowns: Unknowns, samples: Samples) -> bool:
    """Whether the torques are clearly better explained if the positions of the joints that turn
    are in degrees; False if too little was recorded to tell.

    Args:
        unknowns: the parameters to identify.
        samples: the recording.
    """
    samples, measured = _used(samples)
    if len(samples) < PARTS or not measured.any():
        return False
    turning = [unknowns.mechanism.joint(name).turns for name in unknowns.joints]
    unit = np.where(turning, math.pi / 180, 1.0)
    order, signs = np.arange(len(unit)), np.ones(len(unit))
    radians, degrees = (
        Fits(unknowns, each, measured).missed(order, signs)
        for each in (samples, _multiplied(samples, unit))
    )
    return surely_worse((radians - degrees).sum(axis=1))


def _used(samples: Samples) -> tuple[Samples, Floats]:
    """(some samples in which all measured efforts are usable, which joints' efforts (n,) were
    measured)."""
    measured: Floats = np.asarray(samples.usable.any(axis=0))
    samples = samples.rows(np.asarray(samples.usable[:, measured].all(axis=1)))
    return samples.rows(thinned(len(samples), SAMPLES)), measured


def _multiplied(samples: Samples, factors: Floats) -> Samples:
    """The samples with positions, rates and accelerations multiplied by factors (n,).

    The columns of each joint's own friction remain, since the plain law of other signs or units is
    the same law.
    """
    smooth = samples.smoothing
    return replace(
        samples, q=samples.q * factors, qd=samples.qd * factors, qdd=samples.qdd * factors,
        smoothing=smooth and replace(smooth, qd=smooth.qd * factors, qdd=smooth.qdd * factors),
    )  # fmt: skip


class Fits:
    """Least-squares fits to samples, for any order and signs of the efforts.

    Args:
        unknowns: the parameters to identify.
        samples: the motion.
        measured: (n,), whether each joint's effort was measured.
        choices: (k, n, c), the efforts among which those of each joint are chosen; None: those of
            all joints.
        columns: (all columns, p), which map the parameters to those of the rows; None: those of
            bodies and of the plain friction law.
    """

    def __init__(
        self,
        unknowns: Unknowns,
        samples: Samples,
        measured: Floats,
        choices: Floats | None = None,
        columns: Floats | None = None,
    ):
        E = embedding(unknowns, plain_drives(unknowns)) if columns is None else columns
        rows, tau = Rows(unknowns, samples), np.nan_to_num(samples.tau)
        self._measured, self._size = measured, E.shape[1]
        parts = np.array_split(np.arange(len(samples)), PARTS)
        if choices is None:
            choices = np.repeat(tau[:, None], len(measured), axis=1)
        self._choices = choices.shape[2]
        self._own: list[NDArray[np.intp]] = []
        """By measured joint, the parameters of its rows"""
        self._squares: list[Floats] = []
        """By measured joint, the squares (parts, k, k) of [A known tau], where A has the columns of
        these parameters; the efforts minus known torques are A x"""
        for j in np.flatnonzero(measured):
            some = E[rows.places[j]]
            own = np.flatnonzero(some.any(axis=0))
            known = tau[:, j] - rows.tau[:, j]
            table = np.column_stack([rows.matrices[j] @ some[:, own], known, choices[:, j]])
            self._own.append(own)
            self._squares.append(np.array([table[part].T @ table[part] for part in parts]))

    def missed(self, order: Floats, signs: Floats) -> Floats:
        """(parts, measured joints): logarithms of the relative errors on held-out parts.

        Args:
            order: (n,), the index of the efforts that each joint gets.
            signs: (n,), the factors of these efforts; NaN: not fitted, and the error is NaN.
        """
        p, used = self._size, self._measured
        fitted = np.isfinite(signs[used])
        signs = np.where(np.isfinite(signs), signs, 1.0)
        # errors are relative to the efforts, not to what known torques leave of them
        efforts = np.zeros((len(used), 1 + self._choices))
        efforts[np.arange(len(used)), 1 + order] = signs
        efforts = efforts[used]
        target = efforts - np.eye(1, efforts.shape[1])
        square, size = (
            np.array(
                [t @ S[:, -len(t) :, -len(t) :] @ t for S, t in zip(self._squares, ts, strict=True)]
            ).T
            for ts in (target, efforts)
        )
        kept = (size > 0).all(axis=1)
        square, size = square[kept], size[kept]
        weights = fitted / size.sum(axis=0)
        G, g, each = np.zeros((len(size), p, p)), np.zeros((len(size), p)), []
        for S, t, own, weight in zip(self._squares, target, self._own, weights, strict=True):
            A, a = S[kept, : len(own), : len(own)], S[kept, : len(own), len(own) :] @ t
            each.append((A, a))
            G[:, own[:, None], own] += weight * A
            g[:, own] += weight * a
        diagonal = np.diag(G.sum(axis=0))
        ridge = np.diag(np.where(diagonal > 0, RIDGE * diagonal, 1.0))
        x = solved(G.sum(axis=0) - G + ridge, g.sum(axis=0) - g)
        # Σ (τ - A x)²
        left = square + np.column_stack(
            [
                np.einsum("fp,fp->f", (A @ y[..., None])[..., 0] - 2 * a, y)
                for (A, a), y in zip(each, (x[:, own] for own in self._own), strict=True)
            ]
        )
        errors = np.log(np.maximum(left / size, ROUNDING)) / 2
        return np.where(fitted, errors, np.nan)
