# SPDX-License-Identifier: Apache-2.0
"""Sections 2.2 to 2.4 by name: a closed configuration, how it moves, and the rates of all that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import ClosureError
from ...scalar import Floats
from .linear import Dense
from .loop_geometry import AllRows, LoopGeometry
from .mobility import Mobility
from .tangent import Tangent


class ClosureFunctions:
    """A mechanism's closure over floats, (…, n_r) in; rows kept and scaled (see `mobility`)."""

    def __init__(self, geometry: LoopGeometry, mobility: Mobility, all_rows: AllRows | None = None):
        """all_rows: of this geometry, where they are compiled already"""
        self.geometry, self.mobility = geometry, mobility
        self.all_rows = all_rows or AllRows(geometry)
        self.kept = list(mobility.kept)
        """The closure's rows that are kept"""
        self.kept_scale: Floats = mobility.row_scale[self.kept]
        """(rank,)"""
        self.column_scale = mobility.column_scale
        """(n_r,)"""
        self.actuated = geometry.actuated
        """n_a"""
        self.known = geometry.actuated + geometry.sensed
        """n_a + n_s"""
        closure, n, fast = geometry.constraints, len(geometry.names), geometry.compiled
        kept, weights = self.kept, self.kept_scale
        r, rows = len(kept), (mobility.kept, weights)
        self.residual = fast("residual", lambda q: weights * closure.residual(q)[kept], (r,), rows)
        """q_r -> (…, rank)"""
        self.jacobian = fast(
            "jacobian", lambda q: weights[:, None] * closure.jacobian(q)[kept], (r, n), rows
        )
        """q_r -> (…, rank, n_r)"""
        self.jacobian_rate = fast(
            "jacobian_rate",
            lambda q, qd: weights[:, None] * closure.jacobian_rate(q, qd)[kept],
            (r, n),
            rows,
            rates=True,
        )
        """q_r, q̇_r -> (…, rank, n_r)"""
        self.J_C: Callable[[Floats], Floats] | None = None
        """q_r -> (…, 6, n_r); None: no platform"""
        self.J_C_rate: Callable[[Floats, Floats], Floats] | None = None
        self.platform_pose: Callable[[Floats], Floats] | None = None
        if geometry.pose_constraints is not None:
            self.J_C = fast("J_C", geometry.constraint_jacobian, (6, n))
            self.J_C_rate = fast("J_C_rate", geometry.constraint_jacobian_rate, (6, n), rates=True)
            self.platform_pose = fast("platform_pose", geometry.platform_pose, (4, 4))

    def __reduce__(self) -> tuple[type[ClosureFunctions], tuple[Any, ...]]:
        # generated code is not sent: it is generated again
        return ClosureFunctions, (self.geometry, self.mobility)

    @property
    def spread(self) -> Floats:
        """S (n_tree, n_r): the tree's joints of q_r"""
        return np.asarray(self.geometry.constraints.coordinates[0], dtype=float)


@dataclass(frozen=True, eq=False)
class KinematicState:
    """A mechanism at q_r and q̇_r, or a batch of them. A matrix is computed when first asked for.

    q_r = [q_a; q_s; q_p] and q = [q_a; q_s]; `ClosedChain.coordinate_names` has the names.
    v = [ṗ; ω] is of P, the origin of the platform link's frame, in the base frame.
    Numbers in brackets are the paper's equations; leading axes of a batch are left out.
    """

    functions: ClosureFunctions
    q_r: Floats
    """(n_r,), rad or m"""
    qd_r: Floats
    """(n_r,), rad/s or m/s"""

    # --- position ---------------------------------------------------------------------------

    @property
    def q_a(self) -> Floats:
        """(n_a,): the actuated joints."""
        return self.q_r[..., : self.functions.actuated]

    @cached_property
    def residual(self) -> Floats:
        """How far the loops are from closed: the worst row, m or the cosine of a right angle."""
        rows = self.functions.all_rows.residual(self.q_r)
        return np.asarray(np.max(abs(rows), axis=-1, initial=0.0))

    @cached_property
    def platform_pose(self) -> Floats:
        """(4, 4): the platform link's frame in the base frame."""
        return self._of_platform(self.functions.platform_pose)(self.q_r)

    # --- velocity ---------------------------------------------------------------------------

    @cached_property
    def J(self) -> Floats:
        """(n_s + n_p, n_r): ∂φ/∂q_r of the independent closure rows."""
        return self.functions.jacobian(self.q_r)

    @cached_property
    def condition(self) -> Floats:
        """Condition number of the passive Jacobian, lengths in units of the mechanism's size."""
        a = self.functions.actuated
        J = self.J[..., a:] * self.functions.column_scale[a:]
        if not J.shape[-1]:
            return np.ones(J.shape[:-2])
        values = np.linalg.svd(J, compute_uv=False)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(values[..., 0] / values[..., -1])

    @property
    def assembly_mode(self) -> Floats:
        """1 or -1: the passive Jacobian's determinant changes sign in singularities alone."""
        return np.asarray(np.linalg.slogdet(self.J[..., self.functions.actuated :])[0])

    @cached_property
    def T(self) -> Floats:
        """(n_r, n_a): q̇_r = T q̇_a (8). A stack of 1, J_s and J_p."""
        return self._of_motors.matrix

    @cached_property
    def T_q(self) -> Floats:
        """(n_r, n_a + n_s): q̇_r = T_q q̇ (9), by least squares where the sensors say too much."""
        return self._of_readings.matrix

    @cached_property
    def J_C(self) -> Floats:
        """(6, n_r): v = J_C q̇_r (7)."""
        return self._of_platform(self.functions.J_C)(self.q_r)

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
        return self.functions.jacobian_rate(self.q_r, self.qd_r)

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
        return self._of_platform(self.functions.J_C_rate)(self.q_r, self.qd_r)

    @cached_property
    def J_R_rate(self) -> Floats:
        """(6, n_a): J̇_R in a = J_R q̈_a + J̇_R q̇_a (10)."""
        return self.J_C_rate @ self.T + self.J_C @ self.T_rate

    def accelerations(self, qdd_a: Floats) -> Floats:
        """(n_r,): q̈_r of q̈_a (n_a,), at the rates q̇_r = T q̇_a."""
        qd_a = self.qd_r[..., : self.functions.actuated, None]
        # q̈_r = T q̈_a + Ṫ q̇_a (11)
        return (self.T @ qdd_a[..., None] + self.T_rate @ qd_a)[..., 0]

    def moving(self, qd_r: Floats) -> KinematicState:
        """The same configuration at other rates (n_r,)."""
        return KinematicState(self.functions, self.q_r, qd_r)

    # --- helpers ----------------------------------------------------------------------------

    @cached_property
    def _of_motors(self) -> Tangent:
        a = self.functions.actuated
        try:
            return Tangent(self.J, a, Dense(np.linalg.inv(self.J[..., a:])))
        except np.linalg.LinAlgError:
            raise ClosureError(
                f"{self._label}: closure: singular: the motors don't hold the passive joints here",
                name="closure",
                value=self.q_r.tolist(),
                expected="a configuration away from singularities",
            ) from None

    @cached_property
    def _of_readings(self) -> Tangent:
        k = self.functions.known
        return Tangent(self.J, k, Dense(np.linalg.pinv(self.J[..., k:])))

    @property
    def _label(self) -> str:
        return self.functions.geometry.described.label

    def _of_platform(self, function: Callable[..., Floats] | None) -> Callable[..., Floats]:
        if function is None:
            raise ClosureError(
                f"{self._label}: platform: the description names none; add `platform: <link>`",
                name="platform",
                expected="a link's name",
            )
        return function
