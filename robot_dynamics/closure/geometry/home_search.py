# SPDX-License-Identifier: Apache-2.0
"""Closing the loops from a rough pose that may be near a closed one or far from it.

The Levenberg–Marquardt method is applied to the closure's rows. Near a closure all loops are
closed at once, at first without damping. Far from one, loops that share no joint are closed
separately, and differences in orientation are measured by rotation vectors, as the rows' cosines
vanish after half a turn, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...scalar import Array, Floats, Mask, array, rotation_vector, shortest_turn
from .constraints import Constraints, Row
from .loop_geometry import LoopGeometry

RANK_TOLERANCE = 1e-3
"""Singular values below this fraction of the largest are not counted in the rank. It is generous,
so that an angle written as 1.571 does not make a redundant row independent; a robot whose rank
depended on smaller ones would be as near a singularity as the limit of condition numbers allows"""
LEFT_OUT_TOLERANCE = 1e-3
"""rad, or fractions of the mechanism's size: how far a row that was left out as redundant may be
from zero"""
WELDED = ("fixed", "prismatic")
"""Types of loops whose two frames have the same orientation"""
LONGEST = 0.5
"""rad, or fractions of the mechanism's size: the longest step"""
MOST_STEPS = 200
TRIES = 40
"""Number of other poses of the passive joints to start from, if the given one leads to no
closure"""
FEW_TRIES = 8
MANY_JOINTS = 30
"""With more joints than this in a part, a try takes long, and only `FEW_TRIES` are made"""
MOST_FOUND = 64
"""How many combinations of the parts' closures are kept, the nearest ones"""
STIR = 0.3
"""rad, or fractions of the size: how far a pose is perturbed to find the rank nearby"""
SAME = 1e-5
"""m, cosines and fractions of an inertia: poses that differ by less are the same"""
CLOSED = 1e-8
"""rad, or fractions of the size: errors below this count as closed; the descent goes on to rounding
error"""
ROUNDING = 1e-15
SHORTEST = 1e-13
"""rad, or fractions of the size: steps this short only change rounding errors"""
DAMPING, LEAST_DAMPING = 1e-3, 1e-14
"""The initial damping far from a closure, and the least damping after a step has been refused"""
STUCK = 1e8
"""Damping beyond which no step reduces the error"""


Discriminator = Callable[[Floats], Floats]
"""From q_r (n,) to numbers, cosines or m, that distinguish poses"""


@dataclass(frozen=True, eq=False)
class Part:
    """Loops that share joints with each other but with no others; rows and columns are scaled.

    q (n_r,) are the positions of all joints, rad or m; free (n_r,) says which may move.
    """

    rows: tuple[Row, ...]
    row_scale: Floats
    columns: NDArray[np.intp]
    """Indices in q_r of the joints that move in these loops"""
    error: Callable[[Floats], Floats]
    """q_r (n,) -> (m,)"""
    jacobian: Callable[[Floats], Floats]
    """q_r (n,) -> (m, columns); the product eᵀJ is exact everywhere"""
    column_scale: Floats
    """(n,)"""
    turns: Mask
    """(n,): which joints are revolute"""

    @classmethod
    def of(
        cls,
        geometry: LoopGeometry,
        closure: Constraints,
        columns: NDArray[np.intp],
        row_scale: Floats,
        whole: Part,
    ) -> Part:
        """The part that consists of a closure's loops.

        Args:
            geometry: of the mechanism.
            closure: the loops of the part.
            columns: indices in q_r of the joints that move in them.
            row_scale: (m,), scales of the closure's rows.
            whole: all loops, whose scales of joints are used.
        """
        column_scale = whole.column_scale
        m = len(closure.rows)
        welds = [i for i, loop in enumerate(closure.loops) if loop.type in WELDED]
        are_cosines = [not row.is_length for row in closure.rows]
        rows, w = np.flatnonzero(np.isin(closure.owners, welds) & are_cosines), len(welds)

        def everywhere(q: Array) -> Array:
            return np.concatenate([closure.residual(q), np.ravel(_relative(closure, welds, q))])

        def slopes(q: Array) -> Array:
            J = closure.jacobian(q)
            if welds:
                J[rows] = _turning(closure, welds, q)
            return np.asarray(J[:, columns])

        which = (tuple(loop.name for loop in closure.loops), columns)
        compiled = geometry.compiled("part", everywhere, (m + 9 * w,), which)
        slope = geometry.compiled("part_slopes", slopes, (m, len(columns)), which)

        def error(q: Floats) -> Floats:
            found = compiled(q)
            e = found[:m]
            # for a small rotation vector ρ the cosines are -ρ
            e[rows] = [-x for R in found[m:].reshape(w, 3, 3) for x in rotation_vector(R)]
            return np.asarray(row_scale * e)

        def jacobian(q: Floats) -> Floats:
            return np.asarray(row_scale[:, None] * slope(q) * column_scale[columns])

        return cls(closure.rows, row_scale, columns, error, jacobian, column_scale, whole.turns)

    def descend(self, q: Floats, free: Mask, near: bool = False) -> tuple[Floats, Floats]:
        """(q_r, its error): the local minimum of the error over this part's free joints, from q.

        Motions that no row resists, or resists only through rounded lengths and angles, are not
        made. With `near` there is no damping at first.
        """
        q, damping = q.copy(), 0.0 if near else DAMPING
        mine = free[self.columns]
        moved = self.columns[mine]
        e = self.error(q)
        for _ in range(MOST_STEPS):
            if np.max(abs(e), initial=0.0) <= ROUNDING or not len(moved):
                break
            U, s, V_T = np.linalg.svd(self.jacobian(q)[:, mine], full_matrices=False)
            # (JᵀJ + λ 1) d = -Jᵀ e,  d = -V s / (s² + λ) Uᵀ e
            resisted = s > RANK_TOLERANCE * np.max(s, initial=0.0)
            gains = np.divide(s, s**2 + damping, out=np.zeros_like(s), where=resisted)
            d = -V_T.T @ (gains * (U.T @ e))
            size = float(np.max(abs(d), initial=0.0))
            d *= LONGEST / max(size, LONGEST)
            ahead = q.copy()
            ahead[moved] += self.column_scale[moved] * d
            e_ahead = self.error(ahead)
            if e_ahead @ e_ahead < e @ e:
                q, e, damping = ahead, e_ahead, damping / 5
            elif np.max(abs(e), initial=0.0) <= CLOSED or damping > STUCK:
                break
            else:
                damping = max(4 * damping, LEAST_DAMPING)
            if size <= SHORTEST:
                break
        return q, e

    def from_pose(self, q: Floats, free: Mask) -> Floats | None:
        """A closure found by descent from q (n_r,) over this part's free joints; None: none."""
        q, e = self.descend(q, free)
        return q if np.max(abs(e), initial=0.0) < LEFT_OUT_TOLERANCE else None

    def from_anywhere(
        self,
        q: Floats,
        free: Mask,
        tries: int | None = None,
        discriminator: Discriminator | None = None,
    ) -> list[Floats]:
        """Closures (n_r,) found from q and from seeded poses of its free joints, nearest first."""
        if tries is None:
            tries = TRIES if len(self.columns) <= MANY_JOINTS else FEW_TRIES
        moved = self.columns[free[self.columns]]
        generator = np.random.default_rng(0)
        reach = np.where(self.turns, np.pi, 1.0)[moved] * self.column_scale[moved]
        distinguish = discriminator or self._joints_at
        found: list[Floats] = []
        seen: list[Floats] = []
        for attempt in range(tries + 1):
            # first near q, then everywhere
            share = min(1.0, attempt / (tries / 2))
            start = q.copy()
            start[moved] += share * reach * generator.uniform(-1, 1, len(moved))
            q_r = self.from_pose(start, free)
            if q_r is None:
                continue
            q_r = self.unwound(q_r, q)
            here = distinguish(q_r)
            if not any(np.max(abs(here - other), initial=0.0) <= SAME for other in seen):
                found.append(q_r)
                seen.append(here)
        return sorted(found, key=lambda each: self.distance(each, q))

    def rank(self, q: Floats, free: Mask) -> int:
        """The rank of the columns of its free joints."""
        return rank(self.jacobian(q)[:, free[self.columns]])

    def is_caught(self, q: Floats, free: Mask) -> bool:
        """Whether the rank is lower at q than nearby, as at gimbal lock: a ball joint made of three
        hinges, two of them in line, can be closed there but cannot move as it should."""
        stirred = np.random.default_rng(0).uniform(-STIR, STIR, len(q)) * self.column_scale
        return self.rank(q, free) < self.rank(q + np.where(free, stirred, 0.0), free)

    def unwound(self, q: Floats, near: Floats) -> Floats:
        """The same configuration, with revolute joints within half a turn of `near`."""
        return np.asarray(np.where(self.turns, near + shortest_turn(q - near), q))

    def distance(self, one: Floats, other: Floats) -> float:
        """Distance between two configurations: root mean square, rad and fractions of the size."""
        way = (self.unwound(one, other) - other) / self.column_scale
        return float(np.sqrt(np.mean(way**2))) if len(way) else 0.0

    def _joints_at(self, q: Floats) -> Floats:
        angles = q[self.turns]
        lengths = (q / self.column_scale)[~self.turns]
        return np.concatenate([np.cos(angles), np.sin(angles), lengths])


class HomeSearch:
    """A search for closed configurations, near a given one or far from it.

    q (n_r,) are the positions of all joints, rad or m; free (n_r,) says which may move.

    Args:
        geometry: of the mechanism.
        row_scale: (m,), scales of the closure's rows.
        column_scale: (n_r,), scales of the joints.
    """

    def __init__(self, geometry: LoopGeometry, row_scale: Floats, column_scale: Floats):
        joints = [geometry.constraints.tree.joint(name) for name in geometry.names]
        turns: Mask = np.array([joint.turns for joint in joints], dtype=bool)

        def error(q: Floats) -> Floats:
            return np.asarray(row_scale * geometry.residual(q))

        def jacobian(q: Floats) -> Floats:
            return np.asarray(row_scale[:, None] * geometry.jacobian(q) * column_scale)

        self._geometry, columns = geometry, np.arange(len(joints))
        self.whole = Part(geometry.rows, row_scale, columns, error, jacobian, column_scale, turns)
        """All loops at once, with orientations compared by cosines"""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The sets of loops that share joints."""
        closure, parts = self._geometry.constraints, []
        for each in closure.parts:
            row_scale = self.whole.row_scale[each.rows]
            mine = closure.restricted(each)
            parts.append(Part.of(self._geometry, mine, each.columns, row_scale, self.whole))
        return tuple(parts)

    def from_near(self, q: Floats, free: Mask) -> Floats | None:
        """A closure near q (n_r,), with all loops closed at once by the free joints; None: none."""
        found, e = self.whole.descend(q, free, near=True)
        is_near = np.max(abs(found - q) / self.whole.column_scale, initial=0.0) <= LONGEST
        return found if is_near and np.max(abs(e), initial=0.0) < LEFT_OUT_TOLERANCE else None

    def from_pose(self, q: Floats, free: Mask) -> Floats | None:
        """A closure found by descent from q (n_r,) over the free joints; None: none.

        If a part has too low a rank there (see `Part.is_caught`), this is the nearest of the
        closures with the highest rank.
        """
        for part in self.parts:
            found = part.from_pose(q, free)
            if found is None:
                return None
            if part.is_caught(found, free):
                others = part.from_anywhere(q, free)
                found = max([found, *others], key=lambda each: part.rank(each, free))
            q = found
        return q

    def from_anywhere(
        self,
        q: Floats,
        free: Mask,
        tries: int | None = None,
        discriminator: Discriminator | None = None,
    ) -> list[Floats]:
        """Closures (n_r,) found from q and from seeded poses of the free joints, nearest first.

        Args:
            q: (n_r,) the configuration to start from.
            free: (n_r,) which joints may move.
            tries: number of poses to start from, for each part; None: see `TRIES`.
            discriminator: closures for which it gives equal values are the same; None: joints are
                compared.
        """
        found = [q]
        for part in self.parts:
            its = part.from_anywhere(q, free, tries, discriminator)
            both = [_with(one, part.columns, other) for one in found for other in its]
            # squared distances add up, so combinations that are far now remain far
            found = sorted(both, key=lambda each: self.whole.distance(each, q))[:MOST_FOUND]
        return found

    def stuck(self, q: Floats, free: Mask) -> tuple[Part, Row, float, float]:
        """(the part with the largest error after descent from q, its worst row, the error of this
        row, m or rad, and as a fraction of the size or in rad)."""
        ends = [(part, part.descend(q, free)[1]) for part in self.parts]
        part, e = max(ends, key=lambda end: float(np.max(abs(end[1]), initial=0.0)))
        worst = int(np.argmax(abs(e)))
        return part, part.rows[worst], float((e / part.row_scale)[worst]), float(abs(e[worst]))


def rank(J: Floats) -> int:
    """The numerical rank of a scaled Jacobian."""
    values = np.linalg.svd(J, compute_uv=False)
    return int(np.sum(values > RANK_TOLERANCE * max(values, default=0.0)))


def _with(q: Floats, columns: NDArray[np.intp], other: Floats) -> Floats:
    q = q.copy()
    q[columns] = other[columns]
    return q


def _relative(closure: Constraints, welds: list[int], q: Array) -> Array:
    frames = closure.frames(q)
    pairs = (frames[i] for i in welds)
    return array([p.rotation.T @ s.rotation for p, s in pairs])


def _turning(closure: Constraints, welds: list[int], q: Array) -> Array:
    """-R_pᵀ (W_s - W_p): with e = -ρ it makes eᵀJ exact, as ρ is along the rotation's axis."""
    frames = closure.frames(q)
    rows = [
        row for i in welds for row in -(frames[i][0].rotation.T @ (frames[i][1].W - frames[i][0].W))
    ]
    return array(rows)
