# SPDX-License-Identifier: Apache-2.0
"""More motors than degrees of freedom: which torques of the many that make the same motion.

All motors' rates are A q̇, with q of the driving ones. Torques τ do the work of the generalised
forces Q where Aᵀ τ = Q. Of those the least are taken, so that no motor works against another:

    Σ (τ_i / w_i)² least:   τ = S Q,   S = W A (Aᵀ W A)⁻¹,   W = diag(w²)

with w the efforts that count alike: the limits, where all are known (`Mechanism.shares`).
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
    """Where they are in q_r"""
    alike: tuple[float, ...]
    """w (n_m,), N·m or N"""

    @classmethod
    def of(cls, mechanism: Mechanism, geometry: LoopGeometry) -> Sharing | None:
        """None: there are no more motors than driving ones."""
        if not mechanism.driving:
            return None
        names = mechanism.actuated_names
        return cls(
            tuple(geometry.names.index(name) for name in names),
            tuple(float(mechanism.shares.get(name, 1.0)) for name in names),
        )

    def of_state(self, T: Array) -> Shares:
        """At the T (n_r, n_a) of a configuration."""
        return Shares(array(self.alike), T[list(self.motors)])


class Shares:
    """S at one configuration."""

    def __init__(self, alike: Array, A: Array):
        self._alike = alike
        self._weighted = alike[:, None] * A
        self._solver = Orthogonalised(self._weighted)

    def torques(self, Q: Array) -> Array:
        """τ (n_m,) of Q (n_a,)."""
        # τ = W A (Aᵀ W A)⁻¹ Q
        return array(self._alike * (self._weighted @ self._solver.solve_normal(Q)))
