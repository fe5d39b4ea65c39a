"""More motors than degrees of freedom: which torques of the many that make the same motion.

All motors' rates are A q̇, with q of the driving ones. Torques τ do the work of the generalised
forces Q where Aᵀ τ = Q. Of those the least are taken, so that no motor works against another:

    Σ (τ_i / limit_i)² least:   τ = S Q,   S = W⁻¹ A (Aᵀ W⁻¹ A)⁻¹,   W = diag(1 / limit²)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanism import Mechanism
from ...scalar import Floats
from ..geometry.mobility import effort_limits


@dataclass(frozen=True, eq=False)
class Sharing:
    """How the motors of a closed robot share the work."""

    strength: Floats
    """(n_m,): limit², or ones where one of the limits is not known"""

    @classmethod
    def of(cls, mechanism: Mechanism) -> Sharing | None:
        """None: there are no more motors than driving ones."""
        if not mechanism.driving:
            return None
        motors = mechanism.actuated_names
        limits = effort_limits(mechanism, motors)
        return cls(np.ones(len(motors)) if limits is None else np.array(limits) ** 2)

    def matrix(self, A: Floats) -> Floats:
        """S (…, n_m, n_a) of A (…, n_m, n_a)."""
        strong = self.strength[:, None] * A
        return np.asarray(strong @ np.linalg.inv(np.swapaxes(A, -1, -2) @ strong))
