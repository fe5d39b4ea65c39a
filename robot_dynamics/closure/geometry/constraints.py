"""The constraints of a loop closure: residual, Jacobian and the Jacobian's rate, over any scalar.

A loop's joint locks some coordinates of the successor's frame, seen from the predecessor's:
places (the offset e = R_pᵀ (p_s - p_p) along an axis) and directions (an axis a of the
predecessor stays normal to an axis b of the successor: a · b = 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...mechanism import Loop, Mechanism
from ...scalar import Array, array, cross, skew
from .kinematics import FrameMotion, TreeMotion

X, Y, Z = 0, 1, 2

LOCKED: dict[str, tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = {
    # places, then pairs (axis of the predecessor, axis of the successor) that stay normal
    "revolute": ((X, Y, Z), ((X, Z), (Y, Z))),
    "spherical": ((X, Y, Z), ()),
    "universal": ((X, Y, Z), ((X, Y),)),
    "prismatic": ((X, Y), ((Y, Z), (Z, X), (X, Y))),
    "fixed": ((X, Y, Z), ((Y, Z), (Z, X), (X, Y))),
}


@dataclass(frozen=True)
class Row:
    """One scalar constraint, for messages."""

    loop: str
    what: str
    """Such as `y` or `x ⟂ z`"""
    is_length: bool
    """In m, else the cosine of an angle that should be right"""

    def __str__(self) -> str:
        return f"{self.loop}: {self.what}"


@dataclass(frozen=True, eq=False)
class Constraints:
    """The closures of a mechanism in standard form; every row of every loop in turn."""

    tree: Mechanism
    loops: tuple[Loop, ...]
    coordinates: tuple[Array, Array]
    """(S, s) with q_tree = S q + s: the order of q is decided here"""

    @property
    def rows(self) -> tuple[Row, ...]:
        """What each row is, in order."""
        rows = []
        for loop in self.loops:
            places, normals = LOCKED[loop.type]
            rows += [Row(loop.name, "xyz"[axis], True) for axis in places]
            rows += [Row(loop.name, f"{'xyz'[a]} ⟂ {'xyz'[b]}", False) for a, b in normals]
        return tuple(rows)

    def frames(self, q: Array, qd: Array | None = None) -> list[tuple[FrameMotion, FrameMotion]]:
        """(predecessor's, successor's) frame of each loop."""
        motion = TreeMotion(self.tree, self.coordinates, q, qd)
        return [
            (motion.frame(loop.predecessor), motion.frame(loop.successor)) for loop in self.loops
        ]

    def residual(self, q: Array) -> Array:
        """φ(q) (m,): zero where all loops are closed; m, and cosines."""
        return array(self._each(_residual, q))

    def jacobian(self, q: Array) -> Array:
        """∂φ/∂q (m, n)."""
        return self._stacked(self._each(_jacobian, q))

    def jacobian_rate(self, q: Array, qd: Array) -> Array:
        """d/dt ∂φ/∂q (m, n)."""
        return self._stacked(self._each(_rate, q, qd))

    def _each(
        self,
        rows_of: Callable[[str, FrameMotion, FrameMotion], list[Array]],
        q: Array,
        qd: Array | None = None,
    ) -> list[Array]:
        pairs = zip(self.loops, self.frames(q, qd), strict=True)
        return [row for loop, (p, s) in pairs for row in rows_of(loop.type, p, s)]

    def _stacked(self, rows: list[Array]) -> Array:
        return array(rows).reshape(len(rows), self.coordinates[0].shape[1])


def _residual(kind: str, p: FrameMotion, s: FrameMotion) -> list[Array]:
    places, normals = LOCKED[kind]
    # e = R_pᵀ (p_s - p_p)
    offset = p.rotation.T @ (s.point - p.point)
    return [offset[axis] for axis in places] + [
        np.dot(p.rotation[:, a], s.rotation[:, b]) for a, b in normals
    ]


def _jacobian(kind: str, p: FrameMotion, s: FrameMotion) -> list[Array]:
    places, normals = LOCKED[kind]
    # ė = R_pᵀ (v_s - v_p + d × ω_p),  d = p_s - p_p
    offsets = p.rotation.T @ (s.V - p.V + skew(s.point - p.point) @ p.W)
    # d(a·b)/dt = (b × a)·(ω_s - ω_p)
    turn = s.W - p.W
    return [offsets[axis] for axis in places] + [
        cross(s.rotation[:, b], p.rotation[:, a]) @ turn for a, b in normals
    ]


def _rate(kind: str, p: FrameMotion, s: FrameMotion) -> list[Array]:
    places, normals = LOCKED[kind]
    d, d_rate = s.point - p.point, s.velocity - p.velocity
    # d/dt of R_pᵀ (…), with dR_pᵀ/dt = -R_pᵀ [ω_p]×
    inner = s.V - p.V + skew(d) @ p.W
    inner_rate = s.V_rate - p.V_rate + skew(d_rate) @ p.W + skew(d) @ p.W_rate
    offsets = p.rotation.T @ (inner_rate - skew(p.omega) @ inner)
    turn, turn_rate = s.W - p.W, s.W_rate - p.W_rate
    rows = [offsets[axis] for axis in places]
    for i, j in normals:
        a, b = p.rotation[:, i], s.rotation[:, j]
        normal_rate = cross(cross(s.omega, b), a) + cross(b, cross(p.omega, a))
        # d/dt of (b × a)·(W_s - W_p)
        rows.append(normal_rate @ turn + cross(b, a) @ turn_rate)
    return rows
