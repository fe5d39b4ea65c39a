# SPDX-License-Identifier: Apache-2.0
"""Predictor–corrector continuation along a path of motors, readings or a platform's pose, in steps
that cannot leave the assembly mode.

A step is accepted only if it is certain, or at least very likely, that the Jacobian stays regular
between its ends and that one solution lies nearby:

- `Path.stride` bounds the step and the distance of the solution from its guess;
- Newton's increments shrink by four or more from one to the next, as they do within a quarter of
  the radius of the affine-invariant theorem of Newton and Kantorovich (Deuflhard, "Newton Methods
  for Nonlinear Problems", 2004, ch. 2 and 5);
- the Jacobian at the end differs by less than half of itself from that at the beginning.

Where one of them fails, the step is halved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...mechanism import Pose
from ...scalar import Floats
from .curvature import Curvature
from .independent_rows import CONTRACTION
from .mobility import Mobility
from .rotation import rotation_vector, turned

BOUND = 0.1
"""rad, or shares of the mechanism's size: the longest step without a certificate"""
CHANGE = 0.5
"""The largest relative change of a Jacobian in one step"""
ACCURACY = 1e-13
"""rad, or fractions of the mechanism's size: the error left after the last increment"""
MAX_ITERATIONS = 30
SMALLEST_STEP = 2.0**-13
"""Fraction of the way: if shorter steps are needed, the path is given up"""
MAX_STEPS = 2000
"""Steps after which the path is given up, unless the caller allows fewer"""
ROUNDING = 1e-11
"""Increments this small need not shrink any further"""
CONTRACTING = 0.5
"""The largest contraction factor of the simplified Newton map within a certified step"""
SHRINKING = (0.3, 0.8)
"""The least and the largest factor by which a refused step is shortened before it is retried"""
LONGEST = 0.3
"""rad, or fractions of the mechanism's size: no longer step is tried"""
ROOM = 2.5
"""The ball's radius over the error of the guess: above 1 / (1 - κ)"""
SMALLEST_RADIUS = 1e-9
"""rad, or shares of the size: where rounding is far below"""


@dataclass(frozen=True)
class Stride:
    """A step to try: where Newton's method starts, and how far from there it may end."""

    step: float
    """Share of the way"""
    guess: Floats
    """(n,), unscaled"""
    radius: float
    """rad, or shares of the mechanism's size"""


class Path(ABC):
    """A path, along which unknowns u (n,) solve equations at each fraction (share) of the way."""

    def __init__(self, scale: Floats):
        self.scale = scale
        """(n,): an increment d moves u by scale·d"""

    @abstractmethod
    def error(self, u: Floats, share: float) -> Floats:
        """(m,): zero, or least in norm, at the solution u"""

    @abstractmethod
    def jacobian(self, u: Floats, share: float) -> Floats:
        """(m, n): ∂error/∂u·scale"""

    def increment(self, u: Floats, share: float) -> Floats:
        """Newton's, or Gauss–Newton's if there are more rows than unknowns."""
        return -np.asarray(
            np.linalg.lstsq(self.jacobian(u, share), self.error(u, share), rcond=None)[0]
        )

    def stride(self, u: Floats, share: float, step: float) -> Stride:  # noqa: ARG002
        """The longest step to try from here, at most `step`."""
        return Stride(step, u, BOUND)

    def is_sound(self, before: tuple[Floats, float], after: tuple[Floats, float]) -> bool:
        """Is it likely that no singularity lies between the ends of a step?"""
        first = self.jacobian(*before)
        change = np.linalg.pinv(first) @ (self.jacobian(*after) - first)
        return bool(np.linalg.norm(change) <= CHANGE)


def newton(path: Path, stride: Stride, share: float) -> Floats | None:
    """The solution at this share of the way; None: convergence is too slow to be trusted."""
    u, before, ratio = stride.guess, np.inf, 1.0
    for _ in range(MAX_ITERATIONS):
        try:
            d = path.increment(u, share)
        except np.linalg.LinAlgError:
            return None
        size = float(max(abs(d), default=0.0))
        if not (size <= CONTRACTION * before or size <= ROUNDING):  # nan comes here too
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
    """Advance along a path in steps that are halved when refused, and then grow again.

    Args:
        advance: given the share reached and a step: (was it accepted, its length).
        longest, least: fractions of the way; below `least` the path is given up.
        most: how many steps to try.

    Returns:
        (the share reached: 1 at the end of the way; were any steps left).
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
    """The share after a step: exactly 1 at the end of the way."""
    return 1.0 if step >= 1.0 - reached else reached + step


def follow(path: Path, u: Floats, most: int = MAX_STEPS) -> tuple[Floats, float, bool]:
    """(unknowns, share of the way reached: 1 at the target, were any steps left)."""

    def advance(reached: float, step: float) -> tuple[bool, float]:
        nonlocal u
        stride = path.stride(u, reached, step)
        ahead = beyond(reached, stride.step)
        closed = newton(path, stride, ahead)
        if closed is None or not path.is_sound((u, reached), (closed, ahead)):
            return False, stride.step
        u = closed
        return True, stride.step

    reached, steps_left = march(advance, most=most)
    return u, reached, steps_left


class ReadingsPath(Path):
    """The other joints, by least squares, from all known ones: actuated and sensed."""

    def __init__(self, mobility: Mobility, start: Floats, way: Floats):
        k = len(way)
        super().__init__(mobility.closure.column_scale[k:])
        self.mobility, self._origin, self._way, self._k = mobility, start[:k], way, k

    def whole(self, u: Floats, share: float) -> Floats:
        """q_r (n_r,)"""
        return np.concatenate([self._origin + share * self._way, u])

    def error(self, u: Floats, share: float) -> Floats:
        return self.mobility.residual(self.whole(u, share))

    def jacobian(self, u: Floats, share: float) -> Floats:
        return np.asarray(self.mobility.jacobian(self.whole(u, share))[:, self._k :] * self.scale)


class MotorPath(ReadingsPath):
    """The passive joints from the actuated ones, each step certified.

    The start may be open by φ_0, as readings that disagree leave it: at the share σ of the way
    ψ = φ - (1 - σ) φ_0 vanishes, so that the loops are closed at its end.

    With A = J_u⁻¹ at (q_0, u_0), a step w = (δq, -A (J_q δq + δσ φ_0)) and the guess u_0 + s w_u at
    the share s of it, the simplified Newton map y ↦ y - A ψ(q_0 + s δq, u_0 + s w_u + y) takes the
    ball |y| ≤ r into itself and shrinks distances, for every s from 0 to 1, where

        c = |A ψ(guess)| ≤ |A ψ| + ½ |A φ''[w,w]| + ⅙ |A| |φ'''|[w,w,w]
        κ = |A (J_u(x) - J_u)| ≤ |A φ''_u[w]| + |A| (|φ''_u|[r] + ½ |φ'''_u|[w + r, w + r])
        c + κ r ≤ r,  κ < 1

    So (Banach) one solution is in that ball at every s, it is continuous in s, and J_u is regular
    all the way: the solution at s = 1 is on the assembly mode of u_0. |φ''|, |φ'''| are bounds
    over the whole ball (`curvature`); norms are largest entries of scaled joints.
    """

    def __init__(self, mobility: Mobility, curvature: Curvature, start: Floats, way: Floats):
        super().__init__(mobility, start, way)
        self._curvature = curvature
        self._spread = abs(mobility.geometry.spread)
        self._open = mobility.residual(start)

    def error(self, u: Floats, share: float) -> Floats:
        # ψ = φ - (1 - σ) φ_0
        return np.asarray(super().error(u, share) - (1.0 - share) * self._open)

    def increment(self, u: Floats, share: float) -> Floats:
        return -np.asarray(np.linalg.solve(self.jacobian(u, share), self.error(u, share)))

    def is_sound(self, before: tuple[Floats, float], after: tuple[Floats, float]) -> bool:  # noqa: ARG002
        return True  # proved

    def stride(self, u: Floats, share: float, step: float) -> Stride:
        mobility, k, scale = self.mobility, self._k, self.scale
        q_r = self.whole(u, share)
        J = mobility.jacobian(q_r)
        try:
            A = np.linalg.inv(J[:, k:] * scale)
        except np.linalg.LinAlgError:
            return Stride(0.0, u, 0.0)
        # the direction w of the whole way, and φ''[w]: both are linear in the step
        w = np.concatenate([self._way, -scale * (A @ (J[:, :k] @ self._way + self._open))])
        J_rate = mobility.jacobian_rate(q_r, w)
        turning = A @ (J_rate[:, k:] * scale)
        bending = float(max(abs(A @ (J_rate @ w)), default=0.0)) / 2
        twist = float(np.linalg.norm(turning, np.inf))
        weights = abs(A) * mobility.closure.row_scale
        off = float(max(abs(A @ self.error(u, share)), default=0.0))
        levers = self._curvature.levers(q_r)
        along = self._spread @ abs(w)
        across = self._spread[:, k:] @ scale
        ways = abs(w)
        step = min(step, LONGEST / max(*(ways / mobility.closure.column_scale), 1e-9))

        def guess_error(step: float, r: float) -> float:
            longest = self._curvature.longest(levers, step * along + r * across)
            third = weights @ self._rows(self._curvature.third(longest, step * along))
            return off + bending * step**2 + float(max(third @ (step * ways), default=0.0)) / 6

        while step > SMALLEST_STEP / 2:
            r = max(ROOM * guess_error(step, 0.0), SMALLEST_RADIUS)
            box = step * along + r * across
            longest = self._curvature.longest(levers, box)
            bounds = self._curvature.second(longest, r * across)
            bounds = bounds + self._curvature.third(longest, box) / 2
            more = weights @ self._rows(bounds)[:, k:] * scale
            kappa = step * twist + float(np.linalg.norm(more, np.inf))
            if kappa <= CONTRACTING and guess_error(step, r) + kappa * r <= r:
                return Stride(step, u + step * w[k:], r)
            step *= float(np.clip(0.9 * CONTRACTING / kappa, *SHRINKING))
        return Stride(0.0, u, 0.0)  # a singularity is too near

    def _rows(self, bounds: Floats) -> Floats:
        """Of the kept rows, by q_r."""
        return np.asarray(bounds[list(self.mobility.closure.kept)] @ self._spread)


class PosePath(Path):
    """All joints from the platform's pose, the motors among them."""

    def __init__(self, mobility: Mobility, start: Floats, target: Pose, size: float):
        super().__init__(mobility.closure.column_scale)
        self._mobility, geometry = mobility, mobility.geometry
        self._pose_of, self._J_C = (geometry.of_platform(x) for x in ("platform_pose", "J_C"))
        pose = self._pose_of(start)
        self._R, self._p = pose[:3, :3], pose[:3, 3]
        self._turn = rotation_vector(target.rotation @ self._R.T)
        self._way = target.translation - self._p
        self._weights = np.array([1 / size] * 3 + [1.0] * 3)
        self._mode = self._orientation(start)

    def miss(self, q_r: Floats, share: float) -> Floats:
        """(6,): how far the platform is from where it should be, shares of the size and rad."""
        now = self._pose_of(q_r)
        off = rotation_vector(now[:3, :3] @ (turned(share * self._turn) @ self._R).T)
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
        # the motors could not follow through a singularity of theirs
        return self._orientation(after[0]) == self._mode and super().is_sound(before, after)

    def _orientation(self, q_r: Floats) -> float:
        passive = self._mobility.jacobian(q_r)[:, self._mobility.geometry.actuated :]
        return float(np.linalg.slogdet(passive)[0])
