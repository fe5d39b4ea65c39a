# SPDX-License-Identifier: Apache-2.0
"""Designs an exciting motion for identification within the robot's limits.

W is the regressor of the base parameters over the motion, with its rows divided by each joint's
effort limit, or typical torque if there is none, and its columns by their typical size. The motion
is the Fourier series from rest to rest that maximises log det Wᵀ W (a D-optimal design, whose
optimum does not depend on the columns' units). It is found by L-BFGS with quadratic penalties for
violated limits, from the best of some random starts, and finally shrunk about its offsets until no
limit is violated on a fine grid.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from ..description import load
from ..dynamics import InverseDynamics, base_parameters, checked
from ..errors import InputError, not_installed, wrong
from ..mechanism import Mechanism
from ..motion.fourier import FourierMotion, RestingSeries
from ..motion.swing import Motion
from ..scalar import is_number
from .clearance import CLEARANCE, Nearest, Region, bodies_apart
from .motion_limits import MotionLimits, motion_limits
from .recording import Floats
from .unknowns import with_rotors

TOP = 0.75
"""Hz: frequency of the fastest harmonic by default, far below the resonances of elastic gears"""
FEWEST, MOST = 5, 20
"""Smallest and largest default number of harmonics"""
STATES = 160
"""Number of states at which the search evaluates the motion: at least this many, and at least eight
per harmonic"""
STARTS = 24
"""Number of random starts"""
TRIES = 20
"""Number of random postures tried for the middle of a start; the first one that no region forbids
is used"""
MIDDLE = 0.9
"""Largest distance of a joint's offset from the middle of its range, as a fraction of its half"""
STAGES = ((3.0, 120), (100.0, 60), (1000.0, 60))
"""Weights of the penalty, and the largest number of iterations with each"""
RIDGE = 1e-12
"""Keeps the logarithm finite where a start does not excite every parameter"""
POSTURES = 200
"""Number of random postures from which bodies that always touch are found"""
STEP = 1e-6
"""Step of finite differences in rad, rad/s, rad/s² …; larger steps would be inaccurate near the
corners of the penalties"""
GRID = 200.0
"""Hz of the grid on which the limits are verified"""
SHRINK = 0.995
SMALLEST = 0.05
"""Smallest fraction of the intended motion that is accepted after shrinking"""
TOLD = 1e-3
"""Fraction of the largest singular value; combinations with smaller ones are lost in the noise"""
DRY = ("coulomb", "coulomb_negative", "stribeck", "offset")
"""Columns that depend on the sign of the rate; their derivatives are not used"""


M = TypeVar("M", FourierMotion, Motion)


@dataclass(frozen=True)
class Score:
    """A measure of how well a motion excites the robot's parameters."""

    log_det: float
    """log det (WᵀW / number of states); -inf: some combination of parameters is not excited"""
    condition: float
    """The condition number of W"""
    excited: int
    """Number of singular values of W of at least a thousandth of the largest"""
    parameters: int
    """Number of base parameters: of rigid bodies, friction and rotors"""


@dataclass(frozen=True, eq=False)
class Margins:
    """How close the motion comes to each limit; 1 is the limit itself."""

    joints: tuple[str, ...]
    """(m,), all moving joints, including those coupled to others"""
    independent: tuple[str, ...]
    """(n,), the independent joints"""
    position: Floats
    """(m,): distance from the middle of the range over half the range"""
    rate: Floats
    acceleration: Floats
    effort: Floats
    """(n,), of the independent joints, by the described model; 0 where no limit is known"""
    rooms: dict[str, float]
    """m, by region: the smallest distance to its boundary, minus the clearance; negative if
    violated"""
    close: Floats
    """s: for each violated region, the time at which it is violated most"""

    def faults(self) -> list[str]:
        """The names of the limits that are violated."""
        found = []
        for kind in ("position", "rate", "acceleration", "effort"):
            worst = getattr(self, kind)
            names = self.independent if kind == "effort" else self.joints
            found += [f"{names[j]}: {kind}" for j in np.flatnonzero(~(worst <= 1.0))]
        return found + [name for name, room in self.rooms.items() if not room >= 0.0]


@dataclass(frozen=True, eq=False)
class ExcitingMotion:
    """The exciting motion, its score and its margins."""

    mechanism: Mechanism
    joints: tuple[str, ...]
    motion: FourierMotion
    plain: Motion | None
    """For comparison: each joint swings back and forth at its own frequency; None: no such motion
    satisfies the limits"""
    before: Score
    """Score of the plain motion"""
    after: Score
    limits: MotionLimits
    margins: Margins
    """Evaluated on a fine grid, with respect to the limits as given"""
    names: tuple[str, ...]
    """Names of the base parameters"""
    notes: tuple[str, ...] = ()
    """The limits that were assumed, and the collisions that are not checked"""

    def efforts(self, time: Floats) -> Floats:
        """The torques (k, n), N·m or N, that the motion requires by the described model.

        Args:
            time: (k,), s since the motion's start.
        """
        return np.asarray(InverseDynamics(self.mechanism, batches=True)(*self.motion(time)))


def excite(
    robot: Mechanism | str | os.PathLike[str],
    duration: float = 20.0,
    *,
    limits: str | os.PathLike[str] | None = None,
    regions: Sequence[Region] = (),
    collisions: bool = True,
    table: float | None = None,
    srdf: str | os.PathLike[str] | None = None,
    harmonics: int | None = None,
    margin: float = 0.1,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> ExcitingMotion:
    """Find a motion from rest to rest that excites the robot's parameters within its limits.

    Args:
        robot: a mechanism, or what `rd.load` takes.
        duration: s.
        limits: a joint_limits.yaml as in MoveIt, which overrides the description's limits; see
            `motion_limits`.
        regions: regions that constrain the origins of links.
        collisions: whether to avoid collisions between bodies, given by the collision shapes in a
            URDF file.
        table: m, in the base frame: the height below which no body may reach; None: no table.
        srdf: an SRDF file as used by MoveIt, whose `disable_collisions` pairs are not checked.
        harmonics: number of harmonics of the series; None: up to about 0.75 Hz, from 5 to 20.
        margin: fraction of each limit that remains unused.
        seed: seed of the random starts.
        progress: called with a short message at each step.

    Raises:
        DescriptionError: the description is broken.
        InputError: an option is invalid, the robot has loops or no joint that moves, or no motion
            satisfies the limits.
        BackendError: SciPy is not installed, or with a table or an SRDF, Coal.
    """
    mechanism = robot if isinstance(robot, Mechanism) else load(robot)
    if mechanism.loops:
        raise InputError(
            f"{mechanism.name}: it has loops, expected an open chain", name=mechanism.name
        )
    checked.robot(mechanism)
    if not (np.isfinite(duration) and 1.0 <= duration <= 600.0):
        raise wrong(InputError, "duration", duration, "1 to 600 s")
    if not 0.0 <= margin < 0.9:
        raise wrong(InputError, "margin", margin, "a fraction from 0 to below 0.9")
    if harmonics is None:
        harmonics = int(np.clip(round(TOP * duration), FEWEST, MOST))
    elif not 2 <= harmonics <= 100:
        raise wrong(InputError, "harmonics", harmonics, "2 to 100")
    if table is not None and not (is_number(table) and math.isfinite(table)):
        raise wrong(InputError, "table", table, "a height in m")
    if not collisions and (table is not None or srdf is not None):
        raise wrong(InputError, "collisions", collisions, "True with a table or an SRDF")
    say = progress or (lambda _: None)
    say("finding the identifiable parameters")
    given = motion_limits(mechanism, limits)
    design = _Design(mechanism, given, given.within(margin), tuple(regions), seed)
    notes = given.notes
    if collisions:
        source = "" if isinstance(robot, Mechanism) else os.fspath(robot)
        notes += design.keep_apart(source, table, srdf)
    else:
        notes += ("collisions are not checked",)
    series = RestingSeries(harmonics, float(duration))
    found = _search(design, series, seed, say)
    say("verifying")
    motion = _within_limits(design, found)
    plain = _plain(design, motion)
    return ExcitingMotion(
        mechanism, mechanism.joint_names, motion, plain,
        _score(design, plain), _score(design, motion), given, design.margins(motion, given),
        design.names, notes,
    )  # fmt: skip


class _Design:
    """The design problem: the objective and the constraints.

    Args:
        mechanism: the robot.
        given: the limits as given.
        kept: the limits that the motion must satisfy.
        regions: regions that constrain the origins of links.
        seed: seed of the random states from which the columns' typical sizes are computed.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        given: MotionLimits,
        kept: MotionLimits,
        regions: tuple[Region, ...],
        seed: int,
    ):
        self.mechanism = mechanism
        complete = with_rotors(mechanism)
        base = base_parameters(complete, rest=False)
        self.names, self._columns = base.names, list(base.independent)
        self._dynamics = InverseDynamics(complete, batches=True)
        self._parameters = self._dynamics.parameters
        self.given, self.kept, self.regions = given, kept, regions
        S, s = mechanism.coordinates()
        self.S, self.s = np.asarray(S, dtype=float), np.asarray(s, dtype=float)
        self.own = mechanism.joint_names
        own = [mechanism.tree_names.index(name) for name in self.own]
        self.lower, self.upper = kept.lower[own], kept.upper[own]
        self.reach = (self.upper - self.lower) / 2
        self._dry = [
            k for k, name in enumerate(self._dynamics.parameter_names)
            if name.rpartition(".")[2] in DRY
        ]  # fmt: skip
        rng = np.random.default_rng(seed)
        q = rng.uniform(self.lower, self.upper, (1000, len(own)))
        qd = rng.uniform(-1, 1, q.shape) * kept.rate[own]
        qdd = rng.uniform(-1, 1, q.shape) * kept.acceleration[own]
        Y = self._dynamics.regressor(q, qd, qdd)
        typical = np.sqrt(np.mean((Y @ self._parameters) ** 2, axis=0))
        torque = np.where(np.isfinite(given.effort), given.effort, typical)
        self._rows = 1.0 / np.where(torque > 0, torque, 1.0)
        W = Y[..., self._columns] * self._rows[:, None]
        self._scale = 1.0 / np.sqrt(np.mean(np.sum(W**2, axis=1), axis=0))
        self._postures = q
        self._nearest(q[:1])  # an unknown link is reported here

    def keep_apart(
        self, source: str, table: float | None, srdf: str | os.PathLike[str] | None
    ) -> tuple[str, ...]:
        """Add a region for each pair of bodies that must not touch; see `bodies_apart`. Returns its
        notes."""
        apart, notes = bodies_apart(
            self.mechanism, source, self._dynamics.pose, self._postures[:POSTURES],
            table=table, srdf=srdf,
        )  # fmt: skip
        self.regions += apart
        return notes

    def torques(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats]:
        """(W (k, n, b), the scaled regressor; tau (k, n), the described model's torques)"""
        Y = self._dynamics.regressor(q, qd, qdd)
        return self._weighed(Y), np.asarray(Y @ self._parameters)

    def _weighed(self, Y: Floats) -> Floats:
        return np.asarray(Y[..., self._columns] * (self._rows[:, None] * self._scale))

    def _nearest(self, q: Floats) -> list[Nearest]:
        """By region, its distances at the postures q (k, n), with their slopes."""
        poses = cache(lambda link: np.asarray(self._dynamics.pose(q, link)))
        return [region.nearest(poses) for region in self.regions]

    def room(self, q: Floats) -> Floats:
        """(regions, k), m: the distances from the regions at the postures q (k, n)."""
        rooms = [near.room for near in self._nearest(q)]
        return np.array(rooms).reshape(len(rooms), len(q))

    def cost(
        self, q: Floats, qd: Floats, qdd: Floats, weight: float, sloped: bool = True
    ) -> tuple[float, list[Floats]]:
        """(-log det (WᵀW / k) / b + weight Σ violation², its gradients by q, qd, qdd (k, n)).

        Args:
            q: (k, n) positions, rad or m.
            qd: (k, n) rates, rad/s or m/s.
            qdd: (k, n) accelerations, rad/s² or m/s².
            weight: the penalty's weight.
            sloped: whether to compute the gradients; otherwise they are 0, which is faster.
        """
        Y = self._dynamics.regressor(q, qd, qdd)
        W, tau = self._weighed(Y), Y @ self._parameters
        k, n, b = W.shape
        flat = W.reshape(-1, b)
        M = flat.T @ flat / k + RIDGE * np.eye(b)
        value = -float(np.linalg.slogdet(M)[1]) / b
        limit = self.kept.effort
        over = np.maximum(np.abs(tau) / limit - 1.0, 0.0)
        value += weight * float(np.sum(over**2))
        slopes = [np.zeros_like(q) for _ in range(3)]
        if sloped:
            # d log det M = 2 tr(M⁻¹ Wᵀ dW) / k
            by_W = -2.0 / (b * k) * np.linalg.solve(M, flat.T).T.reshape(k, n, b)
            by_tau = 2.0 * weight * over * np.sign(tau) / limit
            slopes = self._gradients(q, qd, qdd, Y, by_W, by_tau)
        value += self._limit_penalty((q, qd, qdd), weight, slopes)
        value += self._region_penalty(q, weight, slopes[0])
        return value, slopes

    def _gradients(
        self, q: Floats, qd: Floats, qdd: Floats, Y: Floats, by_W: Floats, by_tau: Floats
    ) -> list[Floats]:
        """Gradients by q, qd and qdd, given those by W (k, n, b) and tau (k, n)."""
        k, n, p = Y.shape
        by_Y = by_tau[..., None] * self._parameters
        by_Y[..., self._columns] += by_W * (self._rows[:, None] * self._scale)
        by_Y[..., self._dry] = 0.0
        moved = np.broadcast_to(np.stack([q, qd, qdd]), (3 * n, 3, k, n)).copy()
        for order in range(3):
            for j in range(n):
                moved[order * n + j, order, :, j] += STEP
        Y1 = self._dynamics.regressor(moved[:, 0], moved[:, 1], moved[:, 2])
        there = (Y1.reshape(3 * n, k, 1, n * p) @ by_Y.reshape(k, n * p, 1))[..., 0, 0]
        change = (there - np.einsum("kip,kip->k", by_Y, Y)) / STEP
        return [np.ascontiguousarray(each.T) for each in change.reshape(3, n, k)]

    def _limit_penalty(self, state: Sequence[Floats], weight: float, slopes: list[Floats]) -> float:
        """Penalty for positions, rates and accelerations beyond their limits; its gradients are
        added to `slopes`."""
        value, kept = 0.0, self.kept
        for order, (x, low, high) in enumerate(
            zip(
                state,
                (kept.lower, -kept.rate, -kept.acceleration),
                (kept.upper, kept.rate, kept.acceleration),
                strict=True,
            )
        ):
            tree = x @ self.S.T + (self.s if order == 0 else 0.0)
            unit = np.where(np.isfinite(high - low), (high - low) / 2, 1.0)
            over = (np.maximum(tree - high, 0.0) - np.maximum(low - tree, 0.0)) / unit
            value += weight * float(np.sum(over**2))
            slopes[order] += (2.0 * weight * over / unit) @ self.S
        return value

    def _region_penalty(self, q: Floats, weight: float, slope: Floats) -> float:
        value = 0.0
        for near in self._nearest(q):
            under = np.maximum(2 * CLEARANCE - near.room, 0.0) / 0.1
            value += weight * float(np.sum(under**2))
            (at,) = np.nonzero(under)
            if not at.size:
                continue
            for link, (points, by) in near.points.items():
                J = self._dynamics.jacobian(q[at], link)
                arm = points[at] - self._dynamics.pose(q[at], link)[:, :3, 3]
                # of a point p: dp = dp_0 + w × (p - p_0), [dp_0; w] = J dq
                change = np.einsum("ki,kij->kj", by[at], J[:, :3])
                change += np.einsum("ki,kij->kj", np.cross(arm, by[at]), J[:, 3:])
                slope[at] -= 2.0 * weight / 0.1 * under[at, None] * change
        return value

    def kinematic(self, motion: Any, limits: MotionLimits) -> tuple[Floats, Floats, Floats]:
        """(m,) each: position, rate and acceleration over their limits, as in `Margins`.

        For a Fourier series these are rigorous bounds, which also hold between the states of the
        grid.
        """
        time, more = _grid(motion)
        q, qd, qdd = motion(time)
        tree = q @ self.S.T + self.s
        offset = (tree.max(axis=0) + tree.min(axis=0)) / 2
        swing = more * np.abs(tree - offset).max(axis=0)
        bounded = np.isfinite(limits.upper - limits.lower)
        low, high = (np.where(bounded, x, 0.0) for x in (limits.lower, limits.upper))
        half = np.where(bounded, (high - low) / 2, np.inf)
        return (
            (swing + np.abs(offset - (low + high) / 2)) / half,
            more * np.abs(qd @ self.S.T).max(axis=0) / limits.rate,
            more * np.abs(qdd @ self.S.T).max(axis=0) / limits.acceleration,
        )

    def units(self, basis: Sequence[Floats]) -> Floats:
        """(n, size): the coefficient of each function of the basis (values, rates, accelerations)
        at which it takes a joint to about its limits."""
        own = [self.kept.joints.index(name) for name in self.own]
        limits = (self.reach, self.kept.rate[own], self.kept.acceleration[own])
        shares = [
            np.sqrt(np.mean(each**2, axis=0)) / limit[:, None]
            for each, limit in zip(basis, limits, strict=True)
        ]
        return np.asarray(1.0 / np.sqrt(np.sum(np.square(shares), axis=0)))

    def effort(self, motion: Any, limits: MotionLimits) -> Floats:
        """(n,): effort over its limit, on a fine grid."""
        tau = self.torques(*motion(_grid(motion)[0]))[1]
        return np.asarray(np.abs(tau).max(axis=0) / limits.effort)

    def margins(self, motion: Any, limits: MotionLimits) -> Margins:
        """The margins with respect to these limits, on a fine grid."""
        time, _ = _grid(motion)
        room = self.room(motion(time)[0]) - CLEARANCE
        smallest = room.min(axis=1).tolist()
        rooms = {str(region): x for region, x in zip(self.regions, smallest, strict=True)}
        close = time[room.argmin(axis=1)[room.min(axis=1) < 0.0]]
        return Margins(
            limits.joints, self.own, *self.kinematic(motion, limits),
            self.effort(motion, limits), rooms, close,
        )  # fmt: skip


def _grid(motion: Any) -> tuple[Floats, float]:
    """(times, the factor by which a Fourier series can be larger between these than at them; 1 for
    other motions)."""
    count, more = max(round(GRID * motion.duration), 1000), 1.0
    if isinstance(motion, FourierMotion):
        count = max(count, 40 * motion.series.harmonics)
        more = motion.series.overshoot(count)
    return np.arange(count) / count * motion.duration, more


def _score(design: _Design, motion: Any) -> Score:
    """The score of a motion; None: there is no motion."""
    parameters = len(design.names)
    if motion is None:
        return Score(float("-inf"), float("inf"), 0, parameters)
    count = round(100 * motion.duration)
    W, _ = design.torques(*motion((np.arange(count) + 0.5) / count * motion.duration))
    values = np.linalg.svd(W.reshape(-1, W.shape[-1]) / np.sqrt(count), compute_uv=False)
    seen = values > np.finfo(float).eps * count * values[0]
    return Score(
        float(2 * np.log(values).sum()) if seen.all() else float("-inf"),
        float(values[0] / values[-1]) if seen.all() else float("inf"),
        int(np.sum(values >= TOLD * values[0])),
        parameters,
    )


def _search(
    design: _Design, series: RestingSeries, seed: int, say: Callable[[str], None]
) -> FourierMotion:
    try:
        from scipy.optimize import minimize
    except ImportError:
        role = "searches for the motion"
        raise not_installed("SciPy", role, "'robot_dynamics[identify]'") from None
    n = len(design.reach)
    count = max(STATES, 8 * series.harmonics)
    # without the ends, where all joints are at rest
    basis = series.basis((np.arange(count) + 0.5) / count * series.duration)
    units = np.column_stack([design.reach, design.units(basis)])

    def motion(x: Floats) -> FourierMotion:
        rows = x.reshape(n, -1) * units
        return FourierMotion(series, rows[:, 0], rows[:, 1:])

    def cost(x: Floats, weight: float, sloped: bool = True) -> tuple[float, Floats]:
        rows = x.reshape(n, -1) * units
        q, qd, qdd = (each @ rows[:, 1:].T for each in basis)
        value, slopes = design.cost(q + rows[:, 0], qd, qdd, weight, sloped)
        # chain rule: q = offset + Φ c
        by_offset = slopes[0].sum(axis=0)[:, None]
        by_rows = sum(slope.T @ each for slope, each in zip(slopes, basis, strict=True))
        slope = np.concatenate([by_offset, by_rows], axis=1)
        return value, (slope * units).ravel()

    rng = np.random.default_rng(seed)
    best, lowest = None, np.inf
    center = (design.lower + design.upper) / 2
    for k in range(STARTS):
        say(f"start {k + 1} of {STARTS}")
        # the middle of each joint's motion, and the share of the half range that remains around it
        aside = _free(design, (k > 0) * rng.uniform(-0.6, 0.6, (TRIES, n)))
        middle, room = center + aside * design.reach, 1.0 - np.abs(aside)
        rows = rng.normal(size=(n, series.size)) * design.reach[:, None]
        shares = design.kinematic(FourierMotion(series, center, rows), design.kept)
        rows *= (room / _largest(design, np.max(shares, axis=0)))[:, None]
        x = np.column_stack([middle, rows]) / units
        value = cost(x.ravel(), STAGES[-1][0], sloped=False)[0]
        if best is None or value < lowest:
            best, lowest = x.ravel(), value
    assert best is not None
    # an offset outside of its range, or at the end of it, leaves nothing to shrink
    ends = np.full((n, 1 + series.size, 2), [-np.inf, np.inf])
    ends[:, 0] = (center + np.outer([-MIDDLE, MIDDLE], design.reach)).T / units[:, :1]
    for stage, (weight, steps) in enumerate(STAGES, start=1):
        done = 0

        def report(_: Floats, stage: int = stage, steps: int = steps) -> None:
            nonlocal done
            done += 1
            if done % 10 == 0:
                say(f"stage {stage} of {len(STAGES)}: {done} of {steps} steps")

        result = minimize(
            cost, best, args=(weight,), jac=True, method="L-BFGS-B", callback=report,
            bounds=ends.reshape(-1, 2), options={"maxiter": steps, "maxcor": 30},
        )  # fmt: skip
        best = np.asarray(result.x)
    return motion(best)


def _free(design: _Design, aside: Floats) -> Floats:
    """The first of the postures, given as shares (k, n) of the half range, that no region forbids;
    if all are forbidden, the first one."""
    postures = (design.lower + design.upper) / 2 + aside * design.reach
    forbidden = (design.room(postures) < 2 * CLEARANCE).any(axis=0)
    return np.asarray(aside[int(np.argmin(forbidden))])


def _largest(design: _Design, shares: Floats) -> Floats:
    """(n,): the largest of the values (m,) of each independent joint and those coupled to it."""
    return np.array([shares[row].max() for row in design.S.T != 0])


def _within_limits(design: _Design, motion: FourierMotion) -> FourierMotion:
    """The motion, shrunk about its offsets until it satisfies the limits."""
    found = _largest_within_limits(design, motion.shrunk)
    if found is None:
        faults = design.margins(motion.shrunk(SMALLEST), design.kept).faults()
        raise InputError(
            "no motion was found within the limits; active constraints: " + ", ".join(faults[:5]),
            name="limits",
            expected="limits that leave more room, or another --seed",
        )
    return found


def _largest_within_limits(design: _Design, shrunk: Callable[[float], M]) -> M | None:
    """The largest motion within the limits; None: not even the smallest one is.

    Args:
        design: the limits.
        shrunk: share -> the motion with its amplitudes multiplied by this share.
    """
    share, close = 1.0, np.zeros(0)
    while share > SMALLEST:
        motion: M = shrunk(share)
        joints = (*design.kinematic(motion, design.kept), design.effort(motion, design.kept))
        # distances take longest: only of a motion that the joints can follow, and first at the
        # times at which it was too close before
        if all((each <= 1.0).all() for each in joints) and (
            not close.size or (design.room(motion(close)[0]) >= CLEARANCE).all()
        ):
            margins = design.margins(motion, design.kept)
            if not margins.faults():
                return motion
            close = np.union1d(close, margins.close)
        share *= SHRINK if share > 0.9 else 0.95
    return None


def _plain(design: _Design, motion: FourierMotion) -> Motion | None:
    """The plain motion: each joint swings through as much of its range as the limits allow, joint k
    in k cycles; None: the limits allow none."""
    for center in ((design.lower + design.upper) / 2, motion.offsets):
        reach = np.minimum(center - design.lower, design.upper - center)
        shares = design.kinematic(_swinging(center, reach, motion.duration), design.kept)
        reach = reach / np.maximum(_largest(design, np.max(shares, axis=0)), 1.0)
        plain = _largest_within_limits(design, partial(_swinging, center, reach, motion.duration))
        if plain is not None:
            return plain
    return None


def _swinging(center: Floats, reach: Floats, duration: float, share: float = 1.0) -> Motion:
    reach = share * reach
    cycles = range(1, len(center) + 1)
    return Motion(tuple(center - reach), tuple(2 * reach), tuple(map(float, cycles)), duration)
