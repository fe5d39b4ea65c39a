"""Closing the loops: Newton's method along a path, so that the assembly mode is kept.

Newton's increments must shrink by four or more from one to the next. By the affine-invariant
theorem of Newton and Kantorovich (Deuflhard, "Newton Methods for Nonlinear Problems", 2004,
ch. 2 and 5) the solution then is the one connected with the starting point, with no singularity
in between. Where they don't, the way to the target is halved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...scalar import Floats

CONTRACTION = 0.25
ACCURACY = 1e-13
"""rad, or shares of the mechanism's size: what is left of the last increment"""
MAX_ITERATIONS = 30
SMALLEST_STEP = 2.0**-16
"""Share of the way to the target below which the path is given up"""
MAX_STEPS = 2000
ROUNDING = 1e-11
"""Increments this small need not shrink any more"""

Increment = Callable[[Floats, float], "Floats | None"]
"""(unknowns, share of the way) -> Newton's increment, scaled; None: singular"""


def newton(increment: Increment, u: Floats, share: float, scale: Floats) -> Floats | None:
    """The unknowns that close the loops at this share of the way; None: no sound convergence.

    An increment d moves the unknowns by scale·d.
    """
    before, ratio = np.inf, 1.0
    for _ in range(MAX_ITERATIONS):
        d = increment(u, share)
        if d is None:
            return None
        size = float(max(abs(d), default=0.0))
        if not (size <= CONTRACTION * before or size <= ROUNDING):  # nan comes here too
            return None
        u = u + scale * d
        if before < np.inf:
            ratio = size / before if before else 0.0
        if size * ratio <= ACCURACY or size <= ACCURACY:
            return u
        before = size
    return None


def follow(increment: Increment, u: Floats, scale: Floats) -> tuple[Floats, float]:
    """(unknowns, share of the way that was reached): 1 where the target was."""
    reached, step = 0.0, 1.0
    for _ in range(MAX_STEPS):
        ahead = min(reached + step, 1.0)
        closed = newton(increment, u, ahead, scale)
        if closed is None:
            step /= 2
            if step < SMALLEST_STEP:
                break
            continue
        u, reached = closed, ahead
        if reached >= 1.0:
            break
        step *= 2
    return u, reached


def rotation_vector(R: Floats) -> Floats:
    """Axis times angle (3,), rad, of a rotation matrix; the angle is at most π."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine, cosine = float(np.linalg.norm(axis)), (np.trace(R) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if sine > 1e-8:
        return axis * (angle / sine)
    if cosine > 0:
        return axis
    # half a turn: R = 2 a aᵀ - 1
    column = (R + np.eye(3))[:, int(np.argmax(np.diag(R)))]
    return angle * column / np.linalg.norm(column)


def turned(vector: Floats) -> Floats:
    """The rotation matrix of a rotation vector (3,)."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return np.eye(3)
    x, y, z = vector / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # Rodrigues: 1 + sin K + (1 - cos) K²
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
