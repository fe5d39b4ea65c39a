# SPDX-License-Identifier: Apache-2.0
"""The quantities of sections 2.2 to 2.4 of the paper: positions, Jacobians and their rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...scalar import Floats
from .independent_rows import Tangent
from .linear import Dense
from .mobility import Mobility


@dataclass(frozen=True, eq=False)
class KinematicState:
    """A mechanism at q_r and q̇_r, or a batch of such states. Matrices are computed on first use.

    q_r = [q_a; q_s; q_p] and q = [q_a; q_s]; their order is `ClosedChain.coordinate_names`.
    v = [ṗ; ω] is the velocity of P, the origin of the platform link's frame, and the platform's
    angular velocity, in the base frame. Numbers in parentheses are the paper's equations. The
    shapes given here omit the leading axes of a batch.
    """

    mobility: Mobility
    """The mechanism's geometry, its independent closure rows, and home"""
    q_r: Floats
    """(n_r,): positions of all joints, rad or m"""
    qd_r: Floats
    """(n_r,): velocities of all joints, rad/s or m/s"""

    # --- position ---------------------------------------------------------------------------

    @property
    def q_a(self) -> Floats:
        """(n_a,): the actuated joints."""
        return self.q_r[..., : self.mobility.geometry.actuated]

    @cached_property
    def residual(self) -> Floats:
        """The largest closure residual: m, or the cosine of an angle that should be right."""
        rows = self.mobility.geometry.residual(self.q_r)
        return np.asarray(np.max(abs(rows), axis=-1, initial=0.0))

    @cached_property
    def platform_pose(self) -> Floats:
        """(4, 4): the platform link's frame in the base frame."""
        return self.mobility.geometry.of_platform("platform_pose")(self.q_r)

    # --- velocity ---------------------------------------------------------------------------

    @cached_property
    def J(self) -> Floats:
        """(n_s + n_p, n_r): ∂φ/∂q_r of the independent closure rows."""
        return self.mobility.jacobian(self.q_r)

    @cached_property
    def condition(self) -> Floats:
        """Condition number of the passive Jacobian, with lengths in units of the size: the largest
        one of the sets of loops that share joints."""
        worst = np.ones(self.J.shape[:-2])
        for block in self.mobility.closure.blocks(self.J):
            values = np.linalg.svd(block, compute_uv=False)
            with np.errstate(divide="ignore", invalid="ignore"):
                worst = np.maximum(worst, values[..., 0] / values[..., -1])
        return worst

    @property
    def assembly_mode(self) -> Floats:
        """The sign of the passive Jacobian's determinant, 1 or -1, which changes only at
        singularities; for several sets of loops that share no joint, Σ 2ᵏ sign_k of the signs of
        each."""
        return self.mobility.closure.mode(self.J)

    @cached_property
    def T(self) -> Floats:
        """(n_r, n_a): q̇_r = T q̇_a (8), stacked from 1, J_s and J_p."""
        return self._of_motors.matrix

    @cached_property
    def T_q(self) -> Floats:
        """(n_r, n_a + n_s): q̇_r = T_q q̇ (9), by least squares if the sensors are redundant."""
        return self._of_readings.matrix

    @cached_property
    def J_C(self) -> Floats:
        """(6, n_r): v = J_C q̇_r (7)."""
        return self.mobility.geometry.of_platform("J_C")(self.q_r)

    @cached_property
    def J_R(self) -> Floats:
        """(6, n_a): v = J_R q̇_a (6)."""
        return self.J_C @ self.T

    @cached_property
    def v(self) -> Floats:
        """(6,): [ṗ; ω], m/s and rad/s."""
        return (self.J_C @ self.qd_r[..., None])[..., 0]

    # --- acceleration -----------------------------------------------------------------------

    @cached_property
    def J_rate(self) -> Floats:
        """(n_s + n_p, n_r): dJ/dt."""
        return self.mobility.jacobian_rate(self.q_r, self.qd_r)

    @cached_property
    def T_rate(self) -> Floats:
        """(n_r, n_a): Ṫ in q̈_r = T q̈_a + Ṫ q̇_a (11)."""
        return self._of_motors.rate(self.J_rate)

    @cached_property
    def T_q_rate(self) -> Floats:
        """(n_r, n_a + n_s): Ṫ_q in q̈_r = T_q q̈ + Ṫ_q q̇ (12)."""
        return self._of_readings.rate(self.J_rate)

    @cached_property
    def J_C_rate(self) -> Floats:
        """(6, n_r): J̇_C in a = J_C q̈_r + J̇_C q̇_r."""
        return self.mobility.geometry.of_platform("J_C_rate")(self.q_r, self.qd_r)

    @cached_property
    def J_R_rate(self) -> Floats:
        """(6, n_a): J̇_R in a = J_R q̈_a + J̇_R q̇_a (10)."""
        return self.J_C_rate @ self.T + self.J_C @ self.T_rate

    def accelerations(self, qdd_a: Floats) -> Floats:
        """All accelerations q̈_r (…, n_r), rad/s² or m/s², at the velocities q̇_r = T q̇_a.

        Args:
            qdd_a: (…, n_a) accelerations of the actuated joints, rad/s² or m/s².

        Raises:
            ClosureError: the state is singular.

        Source: (11) of [ZCPOM].
        """
        qd_a = self.qd_r[..., : self.mobility.geometry.actuated, None]
        # q̈_r = T q̈_a + Ṫ q̇_a (11)
        return (self.T @ qdd_a[..., None] + self.T_rate @ qd_a)[..., 0]

    def moving(self, qd_r: Floats) -> KinematicState:
        """The same configuration at other velocities.

        Args:
            qd_r: (…, n_r), rad/s or m/s.
        """
        return KinematicState(self.mobility, self.q_r, qd_r)

    # --- helpers ----------------------------------------------------------------------------

    @cached_property
    def _of_motors(self) -> Tangent:
        a = self.mobility.geometry.actuated
        try:
            return Tangent(self.J, a, Dense(np.linalg.inv(self.J[..., a:])))
        except np.linalg.LinAlgError:
            raise self.mobility.geometry.refusal(
                "closure: singular: the passive joints are not determined by the motors in this "
                "configuration",
                self.q_r,
                "a configuration away from singularities",
            ) from None

    @cached_property
    def _of_readings(self) -> Tangent:
        k = self.mobility.geometry.known
        return Tangent(self.J, k, Dense(np.linalg.pinv(self.J[..., k:])))
