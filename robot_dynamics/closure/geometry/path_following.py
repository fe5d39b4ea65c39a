# SPDX-License-Identifier: Apache-2.0
"""Predictor–corrector continuation along a path of motors, readings or a platform's pose, in steps
that cannot leave the assembly mode.

A step is accepted only if it is certain, or at least very likely, that the Jacobian stays regular
between its ends and that exactly one solution lies nearby:

- `Path.stride` bounds the step and the distance of the solution from its guess;
- each of Newton's increments is at most a quarter of the one before, as holds within a quarter of
  the radius in the affine-invariant Newton–Kantorovich theorem (Deuflhard, "Newton Methods for
  Nonlinear Problems", 2004, ch. 2 and 5);
- the Jacobian at the end of the step differs from that at its start by less than half of it.

If one of these fails, the step is halved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...mechanism import Pose
from ...scalar import Floats, rotation_about, rotation_vector
from .curvature import Curvature
from .independent_rows import CONTRACTION
from .mobility import Mobility

Indices = NDArray[np.intp]
BOUND = 0.1
"""rad, or fractions of the mechanism's size: the longest step without a certificate"""
CHANGE = 0.5
"""The largest relative change of a Jacobian in one step"""
ACCURACY = 1e-13
"""rad, or fractions of the mechanism's size: the error left after the last increment"""
MAX_ITERATIONS = 30
SMALLEST_STEP = 2.0**-13
"""Fraction of the way: the path is given up if shorter steps are needed"""
MAX_STEPS = 2000
"""Steps after which the path is given up, unless the caller allows fewer"""
ROUNDING = 1e-11
"""Increments this small need not shrink any further"""
CONTRACTING = 0.5
"""The largest contraction factor of the simplified Newton map within a certified step"""
SHRINKING = (0.3, 0.8)
"""The least and the largest factor by which a refused step is shortened before it is retried"""
LONGEST = 0.3
"""rad, or fractions of the mechanism's size: the longest step tried"""
ROOM = 2.5
"""Ratio of the ball's radius to the error of the guess; must exceed 1 / (1 - κ)"""
SMALLEST_RADIUS = 1e-9
"""rad, or fractions of the size: the smallest radius, far above rounding errors"""


@dataclass(frozen=True)
class Stride:
    """A step to try, with the start of Newton's method and how far from it the result may be."""

    step: float
    """Length of the step, as a fraction of the way"""
    guess: Floats
    """(n,): start of Newton's method, unscaled"""
    radius: float
    """Largest distance of the result from it, rad or fractions of the mechanism's size"""


class Path(ABC):
    """A path: the unknowns u (n,) solve equations at each fraction (share) of the way."""

    certified = False
    """Whether `stride` proves that no singularity lies between the ends of a step"""

    def __init__(self, scale: Floats):
        self.scale = scale
        """(n,): an increment d moves u by scale·d"""

    @abstractmethod
    def error(self, u: Floats, share: float) -> Floats:
        """(m,): zero, or of least norm, at the solution u"""

    @abstractmethod
    def jacobian(self, u: Floats, share: float) -> Floats:
        """(m, n): ∂error/∂u·scale"""

    def increment(self, u: Floats, share: float) -> Floats:
        """The increment of Newton's method, or Gauss–Newton's if there are more rows than
        unknowns."""
        return -np.asarray(
            np.linalg.lstsq(self.jacobian(u, share), self.error(u, share), rcond=None)[0]
        )

    def stride(self, u: Floats, share: float, step: float) -> Stride:  # noqa: ARG002
        """The longest step to try from here, at most `step`."""
        return Stride(step, u, BOUND)

    def is_sound(self, before: tuple[Floats, float], after: tuple[Floats, float]) -> bool:
        """Whether it is likely that no singularity lies between the ends of a step."""
        first = self.jacobian(*before)
        change = np.linalg.pinv(first) @ (self.jacobian(*after) - first)
        return bool(np.linalg.norm(change) <= CHANGE)


def newton(path: Path, stride: Stride, share: float) -> Floats | None:
    """The solution at a fraction of the way; None: convergence is too slow to be trusted.

    Args:
        path: the path.
        stride: gives the initial guess and the largest distance from it.
        share: the fraction of the way.
    """
    u, before, ratio = stride.guess, np.inf, 1.0
    for _ in range(MAX_ITERATIONS):
        try:
            d = path.increment(u, share)
        except np.linalg.LinAlgError:
            return None
        size = float(max(abs(d), default=0.0))
        if not (size <= CONTRACTION * before or size <= ROUNDING):  # also true for nan
            return None
        u = u + path.scale * d
        if not max(abs(u - stride.guess) / path.scale, default=0.0) <= stride.radius:
            return None
        if before < np.inf:
            ratio = size / before if before else 0.0
        if size * ratio <= ACCURACY or size <= ACCURACY:
            return u
        before = size
    return None


def march(
    advance: Callable[[float, float], tuple[bool, float]],
    longest: float = 1.0,
    least: float = SMALLEST_STEP,
    most: int = MAX_STEPS,
) -> tuple[float, bool]:
    """Advance along a path in steps that are halved when refused, and grow again when accepted.

    Args:
        advance: (fraction reached, step) → (whether it was accepted, its length).
        longest, least: step lengths as fractions of the way; below `least` the path is given up.
        most: number of steps to try.

    Returns:
        (the fraction of the way reached, 1 at its end; whether any steps were left).
    """
    reached, step = 0.0, longest
    for _ in range(most):
        taken, length = advance(reached, min(step, 1.0 - reached))
        if not taken:
            step = length / 2
            if step < least:
                return reached, True
            continue
        reached = beyond(reached, length)
        if reached >= 1.0:
            return reached, True
        step = min(2 * length, longest)
    return reached, False


def beyond(reached: float, step: float) -> float:
    """The fraction of the way after a step, exactly 1 at its end."""
    return 1.0 if step >= 1.0 - reached else reached + step


def follow(path: Path, u: Floats, most: int = MAX_STEPS) -> tuple[Floats, float, bool]:
    """(the unknowns, the fraction of the way reached, 1 at its end, whether any steps were left).

    Args:
        path: the path to follow.
        u: (n,) the solution at its start.
        most: number of steps to try.
    """

    def advance(reached: float, step: float) -> tuple[bool, float]:
        nonlocal u
        stride = path.stride(u, reached, step)
        ahead = beyond(reached, stride.step)
        there = newton(path, stride, ahead)
        if there is None or not (path.certified or path.is_sound((u, reached), (there, ahead))):
            return False, stride.step
        u = there
        return True, stride.step

    reached, steps_left = march(advance, most=most)
    return u, reached, steps_left


class ReadingsPath(Path):
    """The path of other joints, by least squares, while the actuated and sensed ones move.

    Args:
        mobility: of the loops.
        start: (n_r,) the configuration from which all joints move.
        way: (k,) the displacement of the first ones.
        unknown: the indices in q_r of those that are solved for.
    """

    def __init__(self, mobility: Mobility, start: Floats, way: Floats, unknown: Indices):
        super().__init__(mobility.closure.column_scale[unknown])
        self.mobility, self._start, self._unknown = mobility, start, unknown
        self._way = np.zeros_like(start)
        self._way[: len(way)] = way

    def whole(self, u: Floats, share: float) -> Floats:
        """q_r (n_r,)"""
        q_r = self._start + share * self._way
        q_r[self._unknown] = u
        return q_r

    def error(self, u: Floats, share: float) -> Floats:
        return self.mobility.residual(self.whole(u, share))

    def jacobian(self, u: Floats, share: float) -> Floats:
        J = self.mobility.jacobian(self.whole(u, share))
        return np.asarray(J[:, self._unknown] * self.scale)


class MotorPath(ReadingsPath):
    """The path of the passive joints of some loops while the actuated ones move, with every step
    certified.

    The loops may be open by φ_0 at the start, due to inconsistent readings: at the fraction σ of
    the way ψ = φ - (1 - σ) φ_0 vanishes, so the loops are closed at the end.

    Let A = J_u⁻¹ at (q_0, u_0), take a step w = (δq, -A (J_q δq + δσ φ_0)) and, at the fraction s
    of this step, the guess u_0 + s w_u. The simplified Newton map
    y ↦ y - A ψ(q_0 + s δq, u_0 + s w_u + y) maps the ball |y| ≤ r into itself and is a contraction
    for every s from 0 to 1, if

        c = |A ψ(guess)| ≤ |A ψ| + ½ |A φ''[w,w]| + ⅙ |A| |φ'''|[w,w,w]
        κ = |A (J_u(x) - J_u)| ≤ |A φ''_u[w]| + |A| (|φ''_u|[r] + ½ |φ'''_u|[w + r, w + r])
        c + κ r ≤ r,  κ < 1

    By Banach's theorem there is then exactly one solution in this ball at every s. It is continuous
    in s, and J_u is regular along it, so the solution at s = 1 is on the assembly mode of u_0.
    |φ''| and |φ'''| are bounds over the whole ball (`curvature`); norms are the largest entries of
    scaled joints.
    """

    certified = True

    def __init__(
        self,
        mobility: Mobility,
        curvature: Curvature,
        start: Floats,
        way: Floats,
        unknown: Indices,
    ):
        super().__init__(mobility, start, way, unknown)
        self._curvature = curvature
        self._spread = abs(mobility.geometry.spread)
        self._open = mobility.residual(start)

    def error(self, u: Floats, share: float) -> Floats:
        # ψ = φ - (1 - σ) φ_0
        return np.asarray(super().error(u, share) - (1.0 - share) * self._open)

    def increment(self, u: Floats, share: float) -> Floats:
        return -np.asarray(np.linalg.solve(self.jacobian(u, share), self.error(u, share)))

    def stride(self, u: Floats, share: float, step: float) -> Stride:
        mobility, unknown, scale = self.mobility, self._unknown, self.scale
        q_r = self.whole(u, share)
        J = mobility.jacobian(q_r)
        try:
            A = np.linalg.inv(J[:, unknown] * scale)
        except np.linalg.LinAlgError:
            return Stride(0.0, u, 0.0)
        # the direction w of the whole way, and φ''[w]; both are linear in the step
        w = self._way.copy()
        w[unknown] = -scale * (A @ (J @ self._way + self._open))
        J_rate = mobility.jacobian_rate(q_r, w)
        turning = A @ (J_rate[:, unknown] * scale)
        bending = float(max(abs(A @ (J_rate @ w)), default=0.0)) / 2
        twist = float(np.linalg.norm(turning, np.inf))
        weights = abs(A) * mobility.closure.row_scale
        off = float(max(abs(A @ self.error(u, share)), default=0.0))
        levers = self._curvature.levers(q_r)
        along = self._spread @ abs(w)
        across = self._spread[:, unknown] @ scale
        ways = abs(w)
        step = min(step, LONGEST / max(*(ways / mobility.closure.column_scale), 1e-9))

        def guess_error(step: float, r: float) -> float:
            longest = self._curvature.longest(levers, step * along + r * across)
            third = weights @ self._rows(self._curvature.bound(longest, step * along, 2))
            return off + bending * step**2 + float(max(third @ (step * ways), default=0.0)) / 6

        while step > SMALLEST_STEP / 2:
            r = max(ROOM * guess_error(step, 0.0), SMALLEST_RADIUS)
            box = step * along + r * across
            longest = self._curvature.longest(levers, box)
            bounds = self._curvature.bound(longest, r * across, 1)
            bounds = bounds + self._curvature.bound(longest, box, 2) / 2
            more = weights @ self._rows(bounds)[:, unknown] * scale
            kappa = step * twist + float(np.linalg.norm(more, np.inf))
            if kappa <= CONTRACTING and guess_error(step, r) + kappa * r <= r:
                return Stride(step, u + step * w[unknown], r)
            step *= float(np.clip(0.9 * CONTRACTING / kappa, *SHRINKING))
        return Stride(0.0, u, 0.0)  # a singularity is too near

    def _rows(self, bounds: Floats) -> Floats:
        """Bounds for the rows in use, by joints of q_r."""
        return np.asarray(bounds[list(self.mobility.closure.kept)] @ self._spread)


class PosePath(Path):
    """The path of all joints, including the motors, while the platform moves to a target pose."""

    def __init__(self, mobility: Mobility, start: Floats, target: Pose, size: float):
        super().__init__(mobility.closure.column_scale)
        self._mobility, geometry = mobility, mobility.geometry
        self._pose_of, self._J_C = (geometry.of_platform(x) for x in ("platform_pose", "J_C"))
        pose = self._pose_of(start)
        self._R, self._p = pose[:3, :3], pose[:3, 3]
        turn = rotation_vector(target.rotation @ self._R.T)
        self._angle = float(np.linalg.norm(turn))
        self._axis = turn / (self._angle or 1.0)
        self._way = target.translation - self._p
        self._weights = np.array([1 / size] * 3 + [1.0] * 3)
        self._mode = self._orientation(start)

    def miss(self, q_r: Floats, share: float) -> Floats:
        """(6,): the platform's deviation from its pose on the path, fractions of the size, rad."""
        now = self._pose_of(q_r)
        here = rotation_about(self._axis, share * self._angle) @ self._R
        off = rotation_vector(now[:3, :3] @ here.T)
        residual: Floats = self._weights * np.array(
            [*(now[:3, 3] - self._p - share * self._way), *off]
        )
        return residual

    def error(self, u: Floats, share: float) -> Floats:
        return np.concatenate([self._mobility.residual(u), self.miss(u, share)])

    def jacobian(self, u: Floats, share: float) -> Floats:  # noqa: ARG002
        rows = [self._mobility.jacobian(u), self._weights[:, None] * self._J_C(u)]
        return np.asarray(np.vstack(rows) * self.scale)

    def is_sound(self, before: tuple[Floats, float], after: tuple[Floats, float]) -> bool:
        # the motors could not drive the mechanism through a singularity of the passive Jacobian
        return self._orientation(after[0]) == self._mode and super().is_sound(before, after)

    def _orientation(self, q_r: Floats) -> float:
        return float(self._mobility.closure.mode(self._mobility.jacobian(q_r)))
