# SPDX-License-Identifier: Apache-2.0
"""The independent rows of a closure, scaled, Newton's method on them, and T, over any scalar.

The functions are straight-line, so they can be recorded. `Mobility` selects these rows and
provides them over floats; `ClosedModel` solves them within its kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...scalar import Array, Floats, Scalar, array
from .constraints import LoopSet
from .linear import Eliminated, Orthogonalised, Pivots, Solver, code, transposed
from .loop_geometry import LoopGeometry

CONTRACTION = 0.25
"""The largest ratio of the lengths of two successive steps of Newton's method"""
INCREMENT_ROUNDING = 1e-20
"""Squared length of an increment that consists only of rounding errors"""


@dataclass(frozen=True, eq=False)
class IndependentRows:
    """The equations φ = 0 without redundant rows. It keeps no state; q_r and qd_r are (n_r,)."""

    geometry: LoopGeometry
    kept: tuple[int, ...]
    """Indices of these rows in the closure, as many as there are passive joints"""
    row_scale: Floats
    """(rank,): factors that turn each row into a fraction of the mechanism's size, or an angle"""
    column_scale: Floats
    """(n_r,): 1 for revolute joints, the size for prismatic ones"""
    pivots: Pivots
    """(row, column) of the passive Jacobian, in the order of elimination"""

    @cached_property
    def parts(self) -> tuple[RowSet, ...]:
        """The rows of loops that share joints with each other but no others, with their joints;
        without those that no passive joint is in."""
        a, kept = self.geometry.actuated, np.array(self.kept, dtype=np.intp)
        parts = [
            RowSet(
                each,
                np.flatnonzero(np.isin(kept, each.rows)),
                each.columns[each.columns < a],
                each.columns[each.columns >= a],
            )
            for each in self.geometry.constraints.parts
        ]
        return tuple(part for part in parts if len(part.passive))

    def blocks(self, J: Floats) -> list[Floats]:
        """The scaled passive Jacobian (…, p, p) of each part, of J = ∂φ/∂q_r (…, rank, n_r)."""
        return [
            J[..., part.rows[:, None], part.passive] * self.column_scale[part.passive]
            for part in self.parts
        ]

    def mode(self, J: Floats) -> Floats:
        """The assembly mode (…,), see `KinematicState.assembly_mode`, from ∂φ/∂q_r."""
        signs = [np.linalg.slogdet(block)[0] for block in self.blocks(J)]
        return np.asarray(code(signs) if signs else np.ones(J.shape[:-2]))

    def residual(self, q_r: Array) -> Array:
        """φ (rank,)"""
        return self.row_scale * self.geometry.constraints.residual(q_r)[list(self.kept)]

    def jacobian(self, q_r: Array) -> Array:
        """∂φ/∂q_r (rank, n_r)"""
        J = self.geometry.constraints.jacobian(q_r)[list(self.kept)]
        return array(self.row_scale[:, None] * J)

    def jacobian_rate(self, q_r: Array, qd_r: Array) -> Array:
        """d/dt ∂φ/∂q_r (rank, n_r)"""
        J_rate = self.geometry.constraints.jacobian_rate(q_r, qd_r)[list(self.kept)]
        return array(self.row_scale[:, None] * J_rate)

    def scaled_jacobian(self, q_r: Array) -> Array:
        """∂φ/∂q_r with scaled columns as well; condition numbers refer to this matrix."""
        return array(self.jacobian(q_r) * self.column_scale)

    def is_overdetermined(self, known: int) -> bool:
        """Whether there are more rows than joints after the first `known`."""
        return len(self.kept) > len(self.geometry.names) - known

    def solver(self, J: Array, known: int) -> Eliminated | Orthogonalised:
        """The solver for A = J[:, known:]: elimination if A is square, otherwise least squares."""
        A, scale = J[:, known:], self.column_scale[known:]
        if A.shape != (len(self.pivots),) * 2:
            return Orthogonalised(A, scale)
        return Eliminated(A, self.pivots, scale, [(x.passive - known).tolist() for x in self.parts])

    def corrected(self, q_r: Array, known: int, steps: int, last: Solver | None = None) -> Newton:
        """`steps` steps of Newton's method from q_r, on the joints after the first `known`.

        If there are more rows than unknowns, the last step reuses the factors of the one before,
        which are accurate enough for the remaining error. If `last` is given, all steps use it.
        """
        squares: list[Scalar] = []
        solver: Solver | None = last
        for step in range(steps):
            off = self.residual(q_r)
            if last is None and not (isinstance(solver, Orthogonalised) and step == steps - 1):
                solver = self.solver(self.jacobian(q_r), known)
                # A d = -φ, by least squares if the sensors are redundant
                d = solver.solve(-off)
            elif isinstance(solver, Orthogonalised):
                # AᵀA d = -Aᵀφ
                d = -solver.solve_normal(self.jacobian(q_r)[:, known:].T @ off)
            else:
                assert solver is not None
                d = solver.solve(-off)
            q_r = array([*q_r[:known], *(q_r[known:] + d)])
            scaled = d / self.column_scale[known:]
            squares.append(np.dot(scaled, scaled))
        return Newton(q_r, tuple(squares))


@dataclass(frozen=True, eq=False)
class RowSet:
    """The rows of one set of loops among `IndependentRows`."""

    loops: LoopSet
    """The loops, with indices of all their rows"""
    rows: NDArray[np.intp]
    """Indices in `IndependentRows.kept`, as many as there are passive joints"""
    motors: NDArray[np.intp]
    """Indices in q_r of their actuated joints"""
    passive: NDArray[np.intp]
    """Indices in q_r of their passive joints"""


@dataclass(frozen=True)
class Newton:
    """The result of Newton's method."""

    q_r: Array
    """(n_r,)"""
    squares: tuple[Scalar, ...]
    """The squared lengths of its steps, scaled"""

    @property
    def shrinking(self) -> Scalar:
        """At most 1 if the second step is no longer than a quarter of the first."""
        return self.squares[1] / (CONTRACTION**2 * (self.squares[0] + INCREMENT_ROUNDING))


class Tangent:
    """T = [1; X] and its rate at one configuration, or at a batch of them.

    With ∂φ/∂q_r = [B A], where B belongs to the known joints (the motors, or motors and sensors),

        A X = -B in the least-squares sense,   T = [1; X],   q̇_r = T q̇        (8), (9)

    Args:
        J: (…, m, n_r), ∂φ/∂q_r.
        known: k, the number of known joints, the first ones of q_r.
        solver: for A = J[…, k:].
        lower: X (…, n_r - k, k), if it has been computed already.
    """

    def __init__(self, J: Array, known: int, solver: Solver, lower: Array | None = None):
        self.J, self.known, self.solver = J, known, solver
        self.lower = solver.solve(-J[..., :known]) if lower is None else lower
        """X (…, n_r - k, k)"""

    @cached_property
    def matrix(self) -> Array:
        """T (…, n_r, k)"""
        k = self.known
        one = np.broadcast_to(np.eye(k), (*self.lower.shape[:-2], k, k))
        return np.concatenate([one, self.lower], axis=-2)

    def lower_rate(self, J_rate: Array, way: Array) -> Array:
        """Ẋ w (…, n_r - k) for way = T w (…, n_r), or (…, n_r - k, j) for several ways."""
        # with AᵀA X = -AᵀB:  AᵀA Ẋ = -Aᵀ (Ḃ + Ȧ X) - Ȧᵀ (B + A X)
        bent = self.solver.solve(-(J_rate @ way))
        if not isinstance(self.solver, Eliminated):
            missed = transposed(J_rate[..., self.known :]) @ (self.J @ way)
            bent = bent - self.solver.solve_normal(missed)
        return bent

    def rate(self, J_rate: Array) -> Array:
        """Ṫ (…, n_r, k)"""
        lower = self.lower_rate(J_rate, self.matrix)
        still = np.zeros((*lower.shape[:-2], self.known, self.known))
        return np.concatenate([still, lower], axis=-2)
