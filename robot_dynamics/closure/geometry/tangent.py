# SPDX-License-Identifier: Apache-2.0
"""T and T_q, which give the rates of all joints of a closed mechanism from the known ones.

With ∂φ/∂q_r = [B A], where B belongs to the known joints (the motors, or motors and sensors),

    A X = -B in the least-squares sense,   T = [1; X],   q̇_r = T q̇        (8), (9)

The same code works over any scalar, and can then be recorded, and over batches of floats.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...scalar import Array
from .linear import LeastSquares, Solver, transposed


class Tangent:
    """T = [1; X] and its rate at one configuration, or at a batch of them.

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
        if isinstance(self.solver, LeastSquares):
            missed = transposed(J_rate[..., self.known :]) @ (self.J @ way)
            bent = bent - self.solver.solve_normal(missed)
        return bent

    def rate(self, J_rate: Array) -> Array:
        """Ṫ (…, n_r, k)"""
        lower = self.lower_rate(J_rate, self.matrix)
        still = np.zeros((*lower.shape[:-2], self.known, self.known))
        return np.concatenate([still, lower], axis=-2)
