# SPDX-License-Identifier: Apache-2.0
"""The constraints of a loop closure: residual, Jacobian and the Jacobian's rate, over any scalar.

A loop's joint locks some coordinates of the successor's frame relative to the predecessor's:
positions (the offset e = R_pᵀ (p_s - p_p) along an axis) and directions (an axis a of the
predecessor stays normal to an axis b of the successor: a · b = 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...mechanism import Loop, Mechanism
from ...scalar import Array, array, cross, skew, zeros
from .tree_motion import FrameMotion, TreeMotion, between

X, Y, Z = 0, 1, 2

LOCKED: dict[str, tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = {
    # axes of positions, then pairs (predecessor's axis, successor's axis) that stay normal
    "revolute": ((X, Y, Z), ((X, Z), (Y, Z))),
    "spherical": ((X, Y, Z), ()),
    "universal": ((X, Y, Z), ((X, Y),)),
    "prismatic": ((X, Y), ((Y, Z), (Z, X), (X, Y))),
    "fixed": ((X, Y, Z), ((Y, Z), (Z, X), (X, Y))),
    # the complements: each locks what the joint leaves free (see `free_platform`)
    "not revolute": ((), ((X, Y),)),
    "not universal": ((), ((Y, Z), (Z, X))),
    "not spherical": ((), ((Y, Z), (Z, X), (X, Y))),
    "not prismatic": ((Z,), ()),
}


def locked_by(kind: str) -> int:
    """The number of rows of a loop of this type."""
    return sum(map(len, LOCKED[kind]))


@dataclass(frozen=True)
class Row:
    """One scalar constraint, for messages."""

    loop: str
    what: str
    """The constraint, such as `y` or `x ⟂ z`"""
    is_length: bool
    """Whether it is in m; otherwise it is the cosine of an angle that should be right"""

    def __str__(self) -> str:
        return f"{self.loop}: {self.what}"


@dataclass(frozen=True, eq=False)
class Constraints:
    """The closures of a mechanism in standard form, with the rows of all loops in order.

    q (n,) and qd (n,) are in the order that `coordinates` defines, rad or m, rad/s or m/s.
    """

    tree: Mechanism
    loops: tuple[Loop, ...]
    coordinates: tuple[Array, Array]
    """(S, s) with q_tree = S q + s, which defines the order of q"""
    axes: Array | None = None
    """(3, 3): fixed axes, in the base frame, along which the three offsets of a point are measured;
    None: the predecessor's axes. It makes no difference if the loops are closed"""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Descriptions of the rows, in order."""
        rows = []
        for loop in self.loops:
            places, normals = LOCKED[loop.type]
            rows += [Row(loop.name, "xyz"[axis], True) for axis in places]
            rows += [Row(loop.name, f"{'xyz'[a]} ⟂ {'xyz'[b]}", False) for a, b in normals]
        return tuple(rows)

    @property
    def owners(self) -> NDArray[np.intp]:
        """(m,): the index in `loops` of each row's loop."""
        return np.repeat(np.arange(len(self.loops)), [locked_by(loop.type) for loop in self.loops])

    @cached_property
    def parts(self) -> tuple[LoopSet, ...]:
        """The sets of loops that share joints with each other but no others.

        Whether a loop is closed depends only on the joints within it, not on those that carry it.
        """
        S, owners = self.coordinates[0], self.owners
        found: list[tuple[set[int], set[int]]] = []
        for i, loop in enumerate(self.loops):
            ends = loop.predecessor.link, loop.successor.link
            around = between(self.tree, *ends)
            if self.has_fixed_axes(loop):
                around = [j for end in ends for j in between(self.tree, self.tree.base, end)]
            columns = set(np.flatnonzero((S[around] != 0).any(axis=0)).tolist())
            loops = {i}
            for mine in [each for each in found if each[1] & columns]:
                found.remove(mine)
                loops |= mine[0]
                columns |= mine[1]
            found.append((loops, columns))
        return tuple(
            LoopSet(
                tuple(sorted(loops)),
                np.flatnonzero(np.isin(owners, [*loops])),
                np.array(sorted(columns), dtype=np.intp),
            )
            for loops, columns in found
        )

    def restricted(self, part: LoopSet) -> Constraints:
        """The constraints of one of `parts`, with its `rows`."""
        return replace(self, loops=tuple(self.loops[i] for i in part.loops))

    def frames(self, q: Array, qd: Array | None = None) -> list[tuple[FrameMotion, FrameMotion]]:
        """The frames (predecessor's, successor's) of each loop."""
        motion = TreeMotion(self.tree, self.coordinates, q, qd)
        return [
            (motion.frame(loop.predecessor), motion.frame(loop.successor)) for loop in self.loops
        ]

    def residual(self, q: Array) -> Array:
        """φ(q) (m,), zero if all loops are closed: lengths in m, and cosines."""
        return array(self._each(Closure.residual, q))

    def jacobian(self, q: Array) -> Array:
        """∂φ/∂q (m, n)."""
        return self._stacked(self._each(Closure.jacobian, q))

    def jacobian_rate(self, q: Array, qd: Array) -> Array:
        """d/dt ∂φ/∂q (m, n)."""
        return self._stacked(self._each(Closure.jacobian_rate, q, qd))

    def directions(self, q: Array) -> Array:
        """(m, 6): the wrench [force; moment] on the successor for a unit multiplier of each row."""
        return array(self._each(Closure.directions, q)).reshape(-1, 6)

    def _each(
        self,
        rows_of: Callable[[Closure], list[Array]],
        q: Array,
        qd: Array | None = None,
    ) -> list[Array]:
        pairs = zip(self.loops, self.frames(q, qd), strict=True)
        return [
            row for loop, (p, s) in pairs for row in rows_of(Closure(loop.type, p, s, self.axes))
        ]

    def has_fixed_axes(self, loop: Loop) -> bool:
        """Whether this loop's offsets are measured along fixed axes."""
        return self.axes is not None and LOCKED[loop.type][0] == (X, Y, Z)

    def _stacked(self, rows: list[Array]) -> Array:
        return array(rows).reshape(len(rows), self.coordinates[0].shape[1])


@dataclass(frozen=True, eq=False)
class LoopSet:
    """Loops that share joints with each other but with no others."""

    loops: tuple[int, ...]
    """Indices in `Constraints.loops`"""
    rows: NDArray[np.intp]
    """Indices of their rows"""
    columns: NDArray[np.intp]
    """Indices in q of the joints that move in them"""


class Closure:
    """One loop at one q, given its frames, and the axes along which offsets are measured."""

    def __init__(self, kind: str, p: FrameMotion, s: FrameMotion, axes: Array | None):
        self.p, self.s = p, s
        self.places, self.normals = LOCKED[kind]
        self.is_fixed = axes is not None and self.places == (X, Y, Z)
        self.axes = axes if axes is not None and self.is_fixed else p.rotation

    def residual(self) -> list[Array]:
        """The rows of φ."""
        p, s = self.p, self.s
        # e = Aᵀ (p_s - p_p)
        offset = self.axes.T @ (s.point - p.point)
        return [offset[axis] for axis in self.places] + [
            np.dot(p.rotation[:, a], s.rotation[:, b]) for a, b in self.normals
        ]

    def directions(self) -> list[Array]:
        """See `Constraints.directions`."""
        p, s = self.p, self.s
        return [array([*self.axes[:, axis], *zeros(3)]) for axis in self.places] + [
            array([*zeros(3), *cross(s.rotation[:, b], p.rotation[:, a])]) for a, b in self.normals
        ]

    def jacobian(self) -> list[Array]:
        """The rows of ∂φ/∂q."""
        p, s = self.p, self.s
        # ė = R_pᵀ (v_s - v_p + d × ω_p),  d = p_s - p_p; along fixed axes Aᵀ (v_s - v_p)
        inner = s.V - p.V
        if not self.is_fixed:
            inner = inner + skew(s.point - p.point) @ p.W
        offsets = self.axes.T @ inner
        # d(a·b)/dt = (b × a)·(ω_s - ω_p)
        turn = s.W - p.W
        return [offsets[axis] for axis in self.places] + [
            cross(s.rotation[:, b], p.rotation[:, a]) @ turn for a, b in self.normals
        ]

    def jacobian_rate(self) -> list[Array]:
        """The rows of d/dt ∂φ/∂q."""
        p, s = self.p, self.s
        inner_rate = s.V_rate - p.V_rate
        if not self.is_fixed:
            d, d_rate = s.point - p.point, s.velocity - p.velocity
            # d/dt of R_pᵀ (…), with dR_pᵀ/dt = -R_pᵀ [ω_p]×
            inner = s.V - p.V + skew(d) @ p.W
            inner_rate = inner_rate + skew(d_rate) @ p.W + skew(d) @ p.W_rate
            inner_rate = inner_rate - skew(p.omega) @ inner
        offsets = self.axes.T @ inner_rate
        turn, turn_rate = s.W - p.W, s.W_rate - p.W_rate
        rows = [offsets[axis] for axis in self.places]
        for i, j in self.normals:
            a, b = p.rotation[:, i], s.rotation[:, j]
            normal_rate = cross(cross(s.omega, b), a) + cross(b, cross(p.omega, a))
            # d/dt of (b × a)·(W_s - W_p)
            rows.append(normal_rate @ turn + cross(b, a) @ turn_rate)
        return rows
