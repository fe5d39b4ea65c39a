"""Closing the loops from a rough pose: a search that need not begin near.

Levenberg and Marquardt's method on the closure's rows, of which those that say that two frames
have one orientation are rotation vectors: their cosines vanish after half a turn, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...scalar import Array, Floats, array
from .constraints import LOCKED, Constraints
from .functions import Mask, fast
from .loop_geometry import LoopGeometry
from .position import rotation_vector

WELDED = ("fixed", "prismatic")
"""Loops whose frames have one orientation"""
LONGEST = 0.5
"""rad, or shares of the mechanism's size: of one step"""
MOST_STEPS = 200
TRIES = 40
"""Other poses of the passive joints to begin at, where the given one does not lead to a closure"""
FEW_TRIES = 8
MANY_JOINTS = 30
"""Joints above which a try takes long, and few are made"""
CLOSED = 1e-8
"""rad, or shares of the size: where the method has arrived; it goes on down to rounding"""
LEFT_OPEN = 1e-4
"""The same of what may stay open where nothing closes it better: rows that are redundant but for
how angles were written, as 1.5708"""
ROUNDING = 1e-15
STUCK = 1e8
"""Damping from which on nothing goes downhill any more"""


@dataclass(frozen=True, eq=False)
class Closing:
    """The closure of any configuration, however far. Rows and columns scaled."""

    error: Callable[[Floats], Floats]
    """q_r (n,) -> (m,)"""
    jacobian: Callable[[Floats], Floats]
    """q_r (n,) -> (m, n); exact in eᵀJ everywhere"""
    column_scale: Floats
    turns: Mask
    """(n,): which joints turn"""

    @classmethod
    def of(
        cls,
        geometry: LoopGeometry,
        residual: Callable[[Floats], Floats],
        jacobian: Callable[[Floats], Floats],
        row_scale: Floats,
        column_scale: Floats,
    ) -> Closing:
        """From the closure's unscaled residual and Jacobian."""
        closure, n = geometry.constraints, len(geometry.names)
        welds = [i for i, loop in enumerate(closure.loops) if loop.type in WELDED]
        rows = _direction_rows(closure, welds)
        relative = fast(lambda q: _relative(closure, welds, q), [n], (len(welds), 3, 3))
        turning = fast(lambda q: _turning(closure, welds, q), [n], (3 * len(welds), n))

        def error(q: Floats) -> Floats:
            e = np.array(residual(q))
            # of a small rotation vector ρ the cosines are -ρ
            e[rows] = [-x for R in relative(q) for x in rotation_vector(R)]
            return row_scale * e

        def slope(q: Floats) -> Floats:
            J = np.array(jacobian(q))
            J[rows] = turning(q)
            return np.asarray(row_scale[:, None] * J * column_scale)

        joints = [closure.tree.joint(name) for name in geometry.names]
        turns = np.array([joint.turns for joint in joints], dtype=bool)
        return cls(error, slope, column_scale, turns)

    def from_pose(self, q: Floats, free: Mask) -> Floats | None:
        """Where the free joints close the loops, downhill from q (n_r,); None: nowhere."""
        q, damping = q.copy(), 1e-3
        e = self.error(q)
        for _ in range(MOST_STEPS):
            if np.max(abs(e), initial=0.0) <= ROUNDING:
                break
            J = self.jacobian(q)[:, free]
            # (JᵀJ + λ 1) d = -Jᵀ e
            d = -np.linalg.solve(J.T @ J + damping * np.eye(J.shape[1]), J.T @ e)
            d *= min(1.0, LONGEST / max(float(np.max(abs(d), initial=0.0)), 1e-300))
            ahead = q.copy()
            ahead[free] += self.column_scale[free] * d
            e_ahead = self.error(ahead)
            if e_ahead @ e_ahead < e @ e:
                q, e, damping = ahead, e_ahead, max(damping / 5, 1e-14)
            elif np.max(abs(e), initial=0.0) <= CLOSED or damping > STUCK:
                break
            else:
                damping *= 4
        return q if np.max(abs(e), initial=0.0) <= LEFT_OPEN else None

    def from_anywhere(self, q: Floats, free: Mask, tries: int | None = None) -> list[Floats]:
        """Closures (n_r,) found from seeded poses of the free joints, the nearest to q first."""
        if tries is None:
            tries = TRIES if len(q) <= MANY_JOINTS else FEW_TRIES
        generator = np.random.default_rng(0)
        found: list[Floats] = []
        for attempt in range(tries):
            # at first around q, then everywhere
            reach = np.where(self.turns, np.pi, 1.0) * min(1.0, (attempt + 1) / (tries / 2))
            start = q.copy()
            stray = reach * generator.uniform(-1, 1, len(q)) * self.column_scale
            start[free] += stray[free]
            closed = self.from_pose(start, free)
            if closed is None:
                continue
            closed = self.unwound(closed, q)
            if all(self.distance(closed, other) > 1e-4 for other in found):
                found.append(closed)
        return sorted(found, key=lambda each: self.distance(each, q))

    def unwound(self, q: Floats, near: Floats) -> Floats:
        """The same place with joints that turn within half a turn of where they are near."""
        way = q - near
        return np.asarray(np.where(self.turns, near + (way + np.pi) % (2 * np.pi) - np.pi, q))

    def distance(self, one: Floats, other: Floats) -> float:
        """Between two configurations: the root mean square of rad and shares of the size."""
        way = (self.unwound(one, other) - other) / self.column_scale
        return float(np.sqrt(np.mean(way**2))) if len(way) else 0.0


def _direction_rows(closure: Constraints, welds: list[int]) -> list[int]:
    rows: list[int] = []
    at = 0
    for i, loop in enumerate(closure.loops):
        places, normals = LOCKED[loop.type]
        if i in welds:
            rows += range(at + len(places), at + len(places) + len(normals))
        at += len(places) + len(normals)
    return rows


def _relative(closure: Constraints, welds: list[int], q: Array) -> Array:
    frames = closure.frames(q)
    pairs = (frames[i] for i in welds)
    return array([p.rotation.T @ s.rotation for p, s in pairs])


def _turning(closure: Constraints, welds: list[int], q: Array) -> Array:
    """-R_pᵀ (W_s - W_p): with e = -ρ exact in eᵀJ, since ρ is its rotation's own axis."""
    frames = closure.frames(q)
    rows = [
        row for i in welds for row in -(frames[i][0].rotation.T @ (frames[i][1].W - frames[i][0].W))
    ]
    return array(rows)
