# SPDX-License-Identifier: Apache-2.0
"""More motors than degrees of freedom: how they share the work.

The rates of all motors are A q̇, where q are the positions of the driving motors. Torques τ do the
same work as the generalised forces Q if Aᵀ τ = Q. Of all such torques those of least norm are
taken, so no motor works against another:

    Σ (τ_i / w_i)² least:   τ = S Q,   S = W A (Aᵀ W A)⁻¹,   W = diag(w²)

Here w are the efforts of equal weight: the effort limits, if all are known (`Mechanism.shares`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism import Mechanism
from ...scalar import Array, array
from ..geometry.linear import Orthogonalised
from ..geometry.loop_geometry import LoopGeometry


@dataclass(frozen=True)
class Sharing:
    """How the motors of a closed robot share the work, over any scalar."""

    motors: tuple[int, ...]
    """The motors' indices in q_r"""
    alike: tuple[float, ...]
    """w (n_m,), N·m or N"""

    @classmethod
    def of(cls, mechanism: Mechanism, geometry: LoopGeometry) -> Sharing | None:
        """How a mechanism's motors share the work; None if all motors are driving ones."""
        if not mechanism.driving:
            return None
        names = mechanism.actuated_names
        return cls(
            tuple(geometry.names.index(name) for name in names),
            tuple(float(mechanism.shares.get(name, 1.0)) for name in names),
        )

    def of_state(self, T: Array) -> Shares:
        """The distribution at a configuration, given its T (n_r, n_a)."""
        return Shares(array(self.alike), T[list(self.motors)])


class Shares:
    """The matrix S at one configuration."""

    def __init__(self, alike: Array, A: Array):
        self._alike = alike
        self._weighted = alike[:, None] * A
        self._solver = Orthogonalised(self._weighted)

    def torques(self, Q: Array) -> Array:
        """τ (n_m,) from Q (n_a,)."""
        # τ = W A (Aᵀ W A)⁻¹ Q
        return array(self._alike * (self._weighted @ self._solver.solve_normal(Q)))
