# SPDX-License-Identifier: Apache-2.0
"""The independent rows of a closure, scaled, and Newton's method on them, over any scalar.

The functions are straight-line, so they can be recorded. `Mobility` selects these rows and
provides them over floats; `ClosedModel` solves them within its kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...scalar import Array, Floats, Scalar, array
from .linear import Eliminated, Orthogonalised, Pivots, Solver
from .loop_geometry import LoopGeometry

CONTRACTION = 0.25
"""The largest ratio of the lengths of two successive steps of Newton's method"""
INCREMENT_ROUNDING = 1e-20
"""The square of an increment that consists only of rounding errors"""


@dataclass(frozen=True, eq=False)
class IndependentRows:
    """The equations φ = 0 without redundant rows. It keeps no state; q_r and qd_r are (n_r,)."""

    geometry: LoopGeometry
    kept: tuple[int, ...]
    """Indices of these rows in the closure, as many as there are passive joints"""
    row_scale: Floats
    """(rank,): factors that make every row a fraction of the mechanism's size, or an angle"""
    column_scale: Floats
    """(n_r,): 1 for revolute joints, the size for prismatic ones"""
    pivots: Pivots
    """(row, column) of the passive Jacobian, in the order of elimination"""

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
        """Whether there are more rows than joints beyond the first `known`."""
        return len(self.kept) > len(self.geometry.names) - known

    def solver(self, J: Array, known: int) -> Eliminated | Orthogonalised:
        """The solver for A = J[:, known:]: elimination if A is square, otherwise least squares."""
        A, scale = J[:, known:], self.column_scale[known:]
        square = A.shape == (len(self.pivots),) * 2
        return Eliminated(A, self.pivots, scale) if square else Orthogonalised(A, scale)

    def corrected(self, q_r: Array, known: int, steps: int, last: Solver | None = None) -> Newton:
        """`steps` steps of Newton's method from q_r, on the joints beyond the first `known`.

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
