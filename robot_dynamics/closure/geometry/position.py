# SPDX-License-Identifier: Apache-2.0
"""Closing the loops along a path, in steps that can't leave the assembly mode.

A step is taken where it is certain, or at least very likely, that between its ends the Jacobian
stays regular and that there is one solution near by:

- `Path.stride` bounds the step, and says how far from its guess the solution may be;
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

from ...scalar import Floats

CONTRACTION = 0.25
BOUND = 0.1
"""rad, or shares of the mechanism's size: the longest step without a certificate"""
CHANGE = 0.5
"""By which share of itself a Jacobian may change in one step, at most"""
ACCURACY = 1e-13
"""rad, or shares of the mechanism's size: what is left of the last increment"""
MAX_ITERATIONS = 30
SMALLEST_STEP = 2.0**-13
"""Share of the way to the target below which the path is given up"""
MAX_STEPS = 2000
"""Tried steps of which the path is given up, unless the caller says fewer"""
ROUNDING = 1e-11
"""Increments this small need not shrink any more"""


@dataclass(frozen=True)
class Stride:
    """A step that may be tried: where Newton's method begins, and how far off it may end."""

    step: float
    """Share of the way"""
    guess: Floats
    """(n,), unscaled"""
    radius: float
    """rad, or shares of the mechanism's size"""


class Path(ABC):
    """Unknowns u (n,) that close something at every share of a way."""

    def __init__(self, scale: Floats):
        self.scale = scale
        """(n,): an increment d moves u by scale·d"""

    @abstractmethod
    def error(self, u: Floats, share: float) -> Floats:
        """(m,): zero, or least, where u closes it"""

    @abstractmethod
    def jacobian(self, u: Floats, share: float) -> Floats:
        """(m, n): ∂error/∂u·scale"""

    def increment(self, u: Floats, share: float) -> Floats:
        """Newton's, or Gauss and Newton's where there are more rows than unknowns."""
        return -np.asarray(
            np.linalg.lstsq(self.jacobian(u, share), self.error(u, share), rcond=None)[0]
        )

    def stride(self, u: Floats, share: float, step: float) -> Stride:  # noqa: ARG002
        """The longest step from here, `step` at most."""
        return Stride(step, u, BOUND)

    def is_sound(self, before: tuple[Floats, float], after: tuple[Floats, float]) -> bool:
        """Is it likely that no singularity lies between two ends of a step?"""
        first = self.jacobian(*before)
        change = np.linalg.pinv(first) @ (self.jacobian(*after) - first)
        return bool(np.linalg.norm(change) <= CHANGE)


def newton(path: Path, stride: Stride, share: float) -> Floats | None:
    """The unknowns that close it at this share of the way; None: no sound convergence."""
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
    """Go along a way in steps that are halved where they are refused, and then grow again.

    Args:
        advance: from the share that was reached and a step: (was it taken, how long it was).
        longest, least: shares of the way; a step below `least` gives up.
        most: tried steps.

    Returns:
        (the share that was reached: 1 at the end of the way; were steps left).
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
    """(unknowns, share of the way that was reached, were steps left): 1 where the target was."""

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


def rotation_vector(R: Floats) -> Floats:
    """Axis times angle (3,), rad, of a rotation matrix; the angle is at most π."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine, cosine = float(np.linalg.norm(axis)), (np.trace(R) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if sine > 1e-8:
        along: Floats = axis * (angle / sine)
        return along
    if cosine > 0:
        return axis
    # half a turn: R = 2 a aᵀ - 1
    column = (R + np.eye(3))[:, int(np.argmax(np.diag(R)))]
    turn: Floats = angle * column / np.linalg.norm(column)
    return turn


def turned(vector: Floats) -> Floats:
    """The rotation matrix of a rotation vector (3,)."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return np.eye(3)
    x, y, z = vector / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # Rodrigues: 1 + sin K + (1 - cos) K²
    R: Floats = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
    return R
