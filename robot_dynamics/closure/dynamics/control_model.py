# SPDX-License-Identifier: Apache-2.0
"""The model of a closed mechanism in its control coordinates, over any scalar.

    τ = D q̈ + C q̇ + G + friction,   D = Tᵀ D' T_q,  C = Tᵀ (C' T_q + D' Ṫ_q),  G = Tᵀ G'    (18)

with D', C', G' from `subsystems`. The control coordinates q are q_a, or [q_a; q_s] with sensors;
without sensors T_q is T. All functions are straight-line, so they can be recorded: Newton's method
takes a fixed number of steps, and `guard` shows whether they sufficed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...formulations.forward import solved
from ...mechanism import Mechanism
from ...scalar import Array, Scalar, array, from_columns, zeros
from ..geometry.free_platform import HingedPlatform
from ..geometry.independent_rows import INCREMENT_ROUNDING, IndependentRows, Tangent
from ..geometry.linear import Eliminated, Orthogonalised
from ..geometry.loop_geometry import LoopGeometry
from ..geometry.path_following import BOUND
from .subsystems import Subsystems


@dataclass(frozen=True)
class Sharing:
    """How redundant motors share the load, over any scalar.

    The rates of all motors are A q̇, where q are the positions of the driving motors. Torques τ do
    the same work as the generalised forces Q if Aᵀ τ = Q. Of all such torques, those of least
    weighted norm are used, so that no motor works against another:

        Σ (τ_i / w_i)² least:   τ = S Q,   S = W A (Aᵀ W A)⁻¹,   W = diag(w²)

    Here w are the efforts of equal weight: the effort limits, if all are known
    (`Mechanism.shares`).
    """

    motors: tuple[int, ...]
    """The motors' indices in q_r"""
    alike: tuple[float, ...]
    """w (n_m,), N·m or N"""

    @classmethod
    def of(cls, mechanism: Mechanism, geometry: LoopGeometry) -> Sharing | None:
        """How a mechanism's motors share the load; None if none are redundant."""
        if not mechanism.driving:
            return None
        names = mechanism.actuated_names
        return cls(
            tuple(geometry.names.index(name) for name in names),
            tuple(float(mechanism.shares.get(name, 1.0)) for name in names),
        )

    def of_state(self, T: Array) -> Shares:
        """The load sharing at a configuration, given its T (n_r, n_a)."""
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

    @property
    def matrix(self) -> Array:
        """S (n_m, n_a)."""
        return np.column_stack([self.torques(unit) for unit in np.eye(self._weighted.shape[1])])


STEPS = 2
"""Steps of Newton's method from a good guess: the second is shorter than 1e-7 and leaves an error
of 1e-14"""
STEPS_OF_READINGS = 3
"""The same with redundant sensors, whose disagreement makes convergence linear"""
REST = 1e-10
"""rad, or fractions of the mechanism's size: the largest error that such steps may leave"""
FAR_STEPS = 5
"""Steps of Newton's method from a guess that is off by a few tenths"""
LAST_STEP = 1e-7
"""rad, or fractions of the mechanism's size: the longest last step"""
BEND = 0.125
"""The longest first step, as a fraction of the distance from the last state: a larger prediction
error indicates a singularity nearby"""
FAR_BOUND = 0.3
"""rad, or fractions of the size: the longest first step from a guess without prediction"""
MARGIN = 3.0
"""Factor by which the condition number may exceed the estimate from the pivots"""


@dataclass(frozen=True, eq=False)
class ClosedModel:
    """The equations of a closed mechanism, without state or caches.

    q, qd, qdd (k,) are the control coordinates, their rates and accelerations, q_r (n_r,) all
    coordinates at a closed configuration, w (k,) a direction of q, u the coordinates of q_r that
    are not in q, and memory the result of `at_once` for the previous state.
    """

    closure: IndependentRows
    parts: Subsystems
    """The legs and the platform, of the same geometry"""
    sensed: bool
    condition_limit: float
    sharing: Sharing | None = None
    """If there are redundant motors; D, C, G and τ are then S times those above"""

    @property
    def geometry(self) -> LoopGeometry:
        """The loops' geometry: constraints, joint order, platform."""
        return self.parts.geometry

    @property
    def known(self) -> int:
        """k: the number of control coordinates, the first ones of q_r."""
        return self.geometry.actuated + (self.geometry.sensed if self.sensed else 0)

    @property
    def motors(self) -> int:
        """n_m: the number of torques."""
        return self.geometry.actuated if self.sharing is None else len(self.sharing.motors)

    @property
    def memory_size(self) -> int:
        """The length of the vector that `at_once` returns, and takes as its memory."""
        n, k = len(self.geometry.names), self.known
        return self.motors + 1 + n + (n - k) * k + 1

    def over(self, parts: Subsystems) -> ClosedModel:
        """The same model with other bodies, friction or gravity."""
        return replace(self, parts=parts)

    def smoothed(self, rate: Scalar) -> ClosedModel:
        """As `Equations.smoothed`."""
        return self.over(self.parts.smoothed(rate))

    @property
    def developed(self) -> ClosedModel:
        """As `Equations.developed`."""
        return self.over(self.parts.developed)

    # --- position ---------------------------------------------------------------------------

    def close(self, q: Array, u: Array, steps: int, bound: Scalar) -> tuple[Array, Scalar]:
        """(q_r, guard) from q, the motors or all control coordinates, and a guess u of the others.

        guard is at most 1 if the square of the length of Newton's first step was at most `bound`,
        the second step at most a quarter of the first, and the last one small.
        """
        k = len(q)
        if not len(u):
            return array([*q, *u]), 0.0
        if self.hinged is not None and k == self.known:
            return array([*q, *self.hinged.solved(q, u)]), 0.0
        newton = self.closure.corrected(array([*q, *u]), k, steps)
        squares = newton.squares
        guard = squares[0] / bound + newton.shrinking + squares[-1] / LAST_STEP**2
        if self.closure.is_overdetermined(k):
            # the error left is the last step, shortened once more by the last ratio of steps
            last, before = squares[-1], squares[-2]
            guard = guard + last * last / (REST**2 * (before + INCREMENT_ROUNDING))
        return newton.q_r, guard

    @property
    def hinged(self) -> HingedPlatform | None:
        """The closed-form solution for the platform, if the readings determine it."""
        return self.geometry.hinged if self.sensed else None

    def closing(self, q: Array, u: Array) -> Array:
        """[guard; nearness; orientation; q_r], from q (k,) and a guess u of the other joints.

        nearness is at most 1 if the state is certainly far enough from singularities; orientation
        is that of the assembly mode (see `KinematicState.assembly_mode`).
        """
        q_r, guard = self.close(q, u, FAR_STEPS, FAR_BOUND**2)
        projection = _Projection(self, q_r)
        return array([guard, projection.nearness, projection.orientation, *q_r])

    def motors_closing(self, q_a: Array, u: Array) -> Array:
        """`closing` from the motors alone (n_a,), as sensor readings may disagree with them."""
        return self.closing(q_a, u)

    # --- dynamics ---------------------------------------------------------------------------

    def torques(self, q_r: Array, qd: Array, qdd: Array) -> Array:
        """τ (n_m,) of the chosen terms."""
        return _Projection(self, q_r).torques(qd, qdd)

    def generalised_forces(self, q_r: Array, qd: Array, qdd: Array) -> Array:
        """[τ_r (n_r,); D_x a + C_x v + G_x (6,), if there is a platform] of the chosen terms."""
        projection = _Projection(self, q_r)
        rates = projection.rates(qd)
        moving = (q_r, rates, projection.rates(qdd), projection.bending(rates, rates))
        wrench = (
            () if self.geometry.pose_constraints is None else self.parts.platform_wrench(*moving)
        )
        return array([*self.parts.torques(*moving), *wrench])

    def gravity(self, q_r: Array) -> Array:
        """G (n_m,)."""
        # G = Tᵀ G'
        return _Projection(self, q_r).on_motors(self.parts.gravity(q_r))

    def mass_matrix(self, q_r: Array) -> Array:
        """D (n_m, k)."""
        projection, still = _Projection(self, q_r), zeros(len(self.geometry.names))
        # D = Tᵀ D' T_q, column by column
        columns = [
            projection.on_motors(self.parts.rigid(q_r, still, projection.rates(unit)))
            for unit in np.eye(self.known)
        ]
        return from_columns(columns, len(columns[0]))

    def forward(self, q_r: Array, qd: Array, tau: Array) -> Array:
        """q̈ (k,) from the torques (n_m,) of the chosen terms."""
        bias = self.developed.torques(q_r, qd, zeros(self.known))
        D, rest = self.mass_matrix(q_r), tau - bias
        if self.sharing is not None:
            # Aᵀ τ = Q: motors working against each other cause no motion
            A = self.T(q_r)[list(self.sharing.motors)]
            D, rest = A.T @ D, A.T @ rest
        # D q̈ = τ - C q̇ - G - friction
        return solved(D, rest)

    def T(self, q_r: Array) -> Array:
        """(n_r, n_a): q̇_r = T q̇_a (8)."""
        return array(_Projection(self, q_r).of_motors.matrix)

    def S(self, q_r: Array) -> Array:
        """(n_m, n_a): how redundant motors share the load; see `Sharing`."""
        shares = _Projection(self, q_r).shares
        assert shares is not None
        return shares.matrix

    def on_motors(self, q_r: Array) -> Array:
        """(n_m, n_r): τ = on_motors τ_r; it is Tᵀ if no motors are redundant."""
        projection = _Projection(self, q_r)
        return np.column_stack([projection.on_motors(unit) for unit in np.eye(len(q_r))])

    def rates(self, q_r: Array, qd: Array) -> Array:
        """T_q q̇ (n_r,)."""
        return _Projection(self, q_r).rates(qd)

    def motion(self, q_r: Array, qd: Array, qdd: Array) -> Array:
        """[q̇_r = T_q q̇; q̈_r = T_q q̈ + Ṫ_q q̇] (2, n_r)."""
        projection = _Projection(self, q_r)
        rates = projection.rates(qd)
        return array([rates, projection.rates(qdd) + projection.bending(rates, rates)])

    def coriolis_column(self, q_r: Array, qd: Array, w: Array) -> Array:
        """C w (n_m,).

        If q are the actuated joints alone, C consists of Christoffel symbols: dD/dt - 2C is
        skew-symmetric.
        """
        projection, still = _Projection(self, q_r), zeros(len(self.geometry.names))
        rates, way = projection.rates(qd), projection.rates(w)
        # C = Tᵀ (C' T_q + D' Ṫ_q); the bias b is a quadratic form whose Christoffel matrix is
        # C', hence C' w = ¼ [b(q̇ + w) - b(q̇ - w)]
        ahead = self.parts.rigid(q_r, rates + way, still)
        behind = self.parts.rigid(q_r, rates - way, projection.bending(rates, way) * -4.0)
        return projection.on_motors((ahead - behind) / 4)

    def coriolis_matrix(self, q_r: Array, qd: Array) -> Array:
        """C (n_m, k), column by column."""
        columns = [self.coriolis_column(q_r, qd, unit) for unit in np.eye(self.known)]
        return from_columns(columns, len(columns[0]))

    # --- several results at once ------------------------------------------------------------

    def at_once(self, q: Array, qd: Array, qdd: Array, memory: Array) -> Array:
        """One complete call; its result is the memory for the next call.

        [τ (n_m,); guard; q (k,); u (n_r - k,), the other joints; the rows of T_q that give u̇;
        the orientation of the assembly mode]

        guard is at most 1 if this is certainly the assembly mode of the previous state: the way is
        short, the prediction error is a small fraction of it, the steps shrink, no singularity is
        near, and the orientation stays the same.
        """
        here, guard = self._next(q, memory)
        return self._remembered(here.torques(qd, qdd), guard, here, memory)

    def disagreement(self, q: Array, memory: Array) -> Array:
        """Whether the readings q (n_a + n_s,) are consistent, and the closed configuration.

        [the result of `at_once` without torques; reading - fit (n_a + n_s,), scaled; q_r (n_r,),
        closed at the motors' positions]

        The fit is the closed configuration nearest to all readings, to first order.
        """
        a, k, scale = self.geometry.actuated, self.known, self.closure.column_scale
        here, guard = self._next(q, memory)
        # trust the motors' readings: J_passive d = -φ, then once more for the remaining φ
        newton = self.closure.corrected(here.q_r, a, 2, here.of_motors.solver)
        q_r = newton.q_r
        # the least |reading - (q_r + T δq_a)|
        off = (q - q_r[:k]) / scale[:k]
        T = here.of_motors.matrix[:k] * scale[:a] / scale[:k, None]
        left = off - T @ Orthogonalised(T).solve(off)
        memory = self._remembered(zeros(self.motors), guard + newton.shrinking, here, memory)
        return array([*memory, *left, *q_r])

    def consistent_torques(self, q: Array, qd: Array, qdd_a: Array, memory: Array) -> Array:
        """[τ (n_m,); guard] with the sensed joints' q̈_s that follow from q̈_a.

        The memory must be that of q: guard is at most 1 if it is, and no singularity is near.
        """
        k, n, at = self.known, len(self.geometry.names), self.motors + 1
        here = _Projection(self, memory[at : at + n], memory[at + n : -1].reshape(n - k, k))
        off = q - here.q_r[:k]
        tau = here.torques(qd, array([*qdd_a, *here.sensed_accelerations(qd[: len(qdd_a)], qdd_a)]))
        return array([*tau, np.dot(off, off) / INCREMENT_ROUNDING + here.nearness])

    def sensed_accelerations(self, q_r: Array, qd: Array, qdd_a: Array) -> Array:
        """The sensed joints' q̈_s (n_s,) that follow from q̇_a, the first of qd (k,), and q̈_a."""
        return _Projection(self, q_r).sensed_accelerations(qd[: self.geometry.actuated], qdd_a)

    def followed(self, q: Array, memory: Array) -> Array:
        """The memory at q (k,), near the previous one: the result of `at_once` without torques."""
        here, guard = self._next(q, memory)
        return self._remembered(zeros(self.motors), guard, here, memory)

    def improved(self, q: Array, u: Array) -> Array:
        """The other joints u (n_r - k,) at q (k,), improved by one step of Newton's method."""
        return self.closure.corrected(array([*q, *u]), self.known, 1).q_r[self.known :]

    def begun(self, q_r: Array) -> Array:
        """The memory of a closed configuration."""
        here = _Projection(self, q_r)
        return self.memory(q_r, here.tangent.lower, here.orientation)

    def _next(self, q: Array, memory: Array) -> tuple[_Projection, Scalar]:
        """(the projection at the closed configuration of q (k,), guard), from the last state."""
        k, n, at = self.known, len(self.geometry.names), self.motors + 1
        before, lower = memory[at : at + n], memory[at + n : -1].reshape(n - k, k)
        # the guess is the extrapolation by the last T_q
        way = q - before[:k]
        ahead = lower @ way
        scaled = array([*way, *ahead]) / self.closure.column_scale
        length = np.dot(scaled, scaled)
        steps = STEPS_OF_READINGS if self.closure.is_overdetermined(k) else STEPS
        q_r, guard = self.close(q, before[k:] + ahead, steps, BEND**2 * length + INCREMENT_ROUNDING)
        here = _Projection(self, q_r)
        flip = memory[-1] - here.orientation
        return here, length / BOUND**2 + guard + here.nearness + flip * flip

    @staticmethod
    def _remembered(tau: Array, guard: Scalar, here: _Projection, memory: Array) -> Array:
        return array([*tau, guard, *here.q_r, *here.tangent.lower.ravel(), memory[-1]])

    def memory(self, q_r: Array, lower: Array, mode: float) -> Array:
        """The memory for the first call of `at_once`, from a closed q_r, the rows of its T_q that
        give u̇, and its orientation."""
        return array([*zeros(self.motors + 1), *q_r, *np.ravel(lower), mode])


class _Projection:
    """T and T_q at one configuration, which map rates to all joints and forces to the motors."""

    def __init__(self, model: ClosedModel, q_r: Array, lower: Array | None = None):
        """`lower`: with sensors, the rows (n_r - k, k) of T_q for the joints that are not read, if
        they are known already."""
        self.model, self.q_r = model, q_r
        self.a, k = model.geometry.actuated, model.known
        J = model.closure.jacobian(q_r)
        passive = model.closure.solver(J, self.a)
        assert isinstance(passive, Eliminated)
        self.orientation = passive.orientation
        self.nearness = passive.spread * (MARGIN / model.condition_limit) ** 2
        self.of_motors = self.tangent = Tangent(J, self.a, passive)
        if k > self.a:
            self.tangent = Tangent(J, k, model.closure.solver(J, k), lower)

    @cached_property
    def shares(self) -> Shares | None:
        """How the motors share the load; None if none are redundant."""
        sharing = self.model.sharing
        return None if sharing is None else sharing.of_state(self.of_motors.matrix)

    def rates(self, qd: Array) -> Array:
        """T_q q̇ (n_r,)."""
        return array([*qd, *(self.tangent.lower @ array(qd))])

    def bending(self, rates: Array, way: Array) -> Array:
        """Ṫ_q w (n_r,) at q̇_r = rates, for way = T_q w."""
        J_rate = self.model.closure.jacobian_rate(self.q_r, rates)
        return array([*zeros(self.model.known), *self.tangent.lower_rate(J_rate, way)])

    def sensed_accelerations(self, qd_a: Array, qdd_a: Array) -> Array:
        """q̈_s (n_s,), the sensed joints' part of q̈_r = T q̈_a + Ṫ q̇_a."""
        X = self.of_motors.lower
        rates = array([*qd_a, *(X @ qd_a)])
        bent = self.of_motors.lower_rate(self.model.closure.jacobian_rate(self.q_r, rates), rates)
        return array((X @ qdd_a + bent)[: self.model.known - self.a])

    def torques(self, qd: Array, qdd: Array) -> Array:
        """τ (n_m,)"""
        # q̇_r = T_q q̇,  q̈_r = T_q q̈ + Ṫ_q q̇
        rates = self.rates(qd)
        free = self.bending(rates, rates)
        return self.on_motors(self.model.parts.torques(self.q_r, rates, self.rates(qdd), free))

    def on_motors(self, tau_r: Array) -> Array:
        """S Tᵀ τ_r (n_m,)."""
        Q = array(tau_r[: self.a] + self.of_motors.lower.T @ tau_r[self.a :])
        return Q if self.shares is None else self.shares.torques(Q)
