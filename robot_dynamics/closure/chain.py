"""The model of a closed mechanism over floats: torques and matrices from q, q̇, q̈."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..equations import TERMS
from ..errors import ClosureError, DescriptionError, InputError, wrong
from ..mechanism import Mechanism, Pose
from .functions import Floats, Mask, fast
from .kinematic_state import KinematicState
from .solver import ClosureSolver
from .subsystems import Subsystems

CONDITION_LIMIT = 1e4
"""Condition number of the passive Jacobian beyond which torques may be blown up by as much"""


class ClosedChain:
    """tau = D(q) q̈ + C(q, q̇) q̇ + G(q) + friction - F_ext of a mechanism with loops (18, 39, 40).

    q are the control coordinates: the actuated joints, or, with `sensed`, those and the passive
    joints that carry a sensor. The other joints are solved, from the state before (at first from
    home) on. Arrays are float64 in SI units, (…, k) in, k = len(joint_names); a state with a NaN
    in q gives NaN.

    Args:
        mechanism: with loops and `home`.
        formulation, rotors, terms, friction_smoothing: as in `InverseDynamics`; of the legs, and
            as far as it applies of the platform.
        sensed: take q = [q_a, q_s] instead of q_a.
        condition_limit: of the passive Jacobian; beyond it a state is refused.

    Raises:
        DescriptionError: home leaves joints out or is not closed; too few or too many motors.
        ClosureError: home is singular.
        InputError: an unknown formulation, rotor model or term.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        formulation: str = "newton_euler",
        *,
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: float = 0.0,
        sensed: bool = False,
        condition_limit: float = CONDITION_LIMIT,
        backend: str = "auto",
        threads: int | None = None,
    ):
        if sensed and not mechanism.sensed:
            raise DescriptionError(
                "sensed: the description lists no sensed joints; add `sensed: [<passive joints>]`",
                name="sensed",
                expected="names of passive joints",
            )
        self.mechanism = mechanism
        self.sensed = sensed
        self.condition_limit = condition_limit
        self.subsystems = Subsystems.of(mechanism, formulation, rotors, terms, friction_smoothing)
        self.solver = ClosureSolver(self.subsystems)
        names, n = self.subsystems.names, len(self.subsystems.names)
        functions = self.solver.functions
        k = functions.known if sensed else functions.actuated
        self.coordinate_names: tuple[str, ...] = names
        """The order of q_r: actuated, sensed, other passive joints"""
        self.actuated_names: tuple[str, ...] = names[: functions.actuated]
        self.joint_names: tuple[str, ...] = names[:k]
        self._torques = fast(self.subsystems.torques, [n] * 4, (n,))
        self._rigid = fast(self.subsystems.rigid, [n] * 3, (n,))
        self._gravity = fast(self.subsystems.gravity, [n], (n,))
        self.last: KinematicState = self.solver.home
        """What was solved last: its `residual` and `condition` are for diagnostics"""

    # --- what was found out -----------------------------------------------------------------

    @property
    def degrees_of_freedom(self) -> int:
        return self.solver.mobility.degrees_of_freedom

    @property
    def redundant_rows(self) -> tuple[str, ...]:
        """The closure's rows that say nothing new, by name; they are left out."""
        rows = self.subsystems.constraints.rows
        return tuple(str(rows[i]) for i in self.solver.mobility.left_out)

    @property
    def home(self) -> KinematicState:
        """The home configuration, at rest, brought onto the closure."""
        return self.solver.home

    # --- position ---------------------------------------------------------------------------

    def forward(self, q: ArrayLike, qd: ArrayLike | None = None) -> KinematicState:
        """Passive joints and platform (…) from the control coordinates (…, k).

        Raises:
            ClosureError: the loops can't be closed there on this assembly mode.
            InputError: a wrong shape.
        """
        arrays = self._arrays(q=q) if qd is None else self._arrays(q=q, qd=qd)
        state, valid = self._closed(arrays[0])
        if qd is not None:
            T = self._T(state)
            state = self._moving(state, (T @ arrays[1][..., None])[..., 0])
        if not np.all(valid):
            q_r = np.where(valid[..., None], state.q_r, np.nan)
            state = KinematicState(state.functions, q_r, state.qd_r, state.residual)
        return state

    def inverse(
        self, pose: Pose | ArrayLike, start: KinematicState | None = None
    ) -> KinematicState:
        """All joints from the platform's pose; see `ClosureSolver.inverse`."""
        return self.solver.inverse(pose, start)

    def reset(self, start: KinematicState | None = None) -> None:
        """Solve the next state from start (home if None) on."""
        self.last = self.home if start is None else start

    # --- dynamics ---------------------------------------------------------------------------

    def __call__(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
    ) -> Floats:
        """The same as `torques`."""
        return self.torques(q, qd, qdd, wrench)

    def torques(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
    ) -> Floats:
        """Torques (…, n_a) at q, qd, qdd (…, k).

        Args:
            wrench: (…, 6), the force (N) and the moment about P (N·m) that act on the platform
                from outside, in the base frame; a push that helps makes the torques smaller.

        Raises:
            ClosureError: a state that can't be closed or is too near a singularity.
            InputError: a wrong shape.
        """
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        state, valid = self._closed(q)
        T = self._T(state)
        # q̇_r = T_q q̇,  q̈_r = T_q q̈ + Ṫ_q q̇
        rates = _times(T, qd)
        free = _times(self._T_rate(self._moving(state, rates)), qd)
        tau_r = self._torques(state.q_r, rates, _times(T, qdd), free)
        if wrench is not None:
            tau_r = tau_r - self._on_joints(state, wrench)
        # τ = Tᵀ τ_r
        return _finished(_times(_transposed(state.T), tau_r), valid)

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n_a, k) at q (…, k)."""
        (q,) = self._arrays(q=q)
        state, valid = self._closed(q)
        still = np.zeros_like(state.q_r[..., None, :])
        # D = Tᵀ D' T_q, column by column
        columns = self._rigid(state.q_r[..., None, :], still, _transposed(self._T(state)))
        return _finished(_transposed(columns @ state.T), valid)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n_a, k) at q, qd (…, k).

        For the actuated joints alone it consists of Christoffel symbols: dD/dt - 2C is skew.
        """
        q, qd = self._arrays(q=q, qd=qd)
        state, valid = self._closed(q)
        T = self._T(state)
        rates = _times(T, qd)
        T_rate = self._T_rate(self._moving(state, rates))
        # C = Tᵀ (C' T_q + D' Ṫ_q), column by column; the bias b is a quadratic form whose
        # Christoffel matrix is C', so that C' w = ¼ [b(q̇ + w) - b(q̇ - w)]
        here, ways = state.q_r[..., None, :], _transposed(T)
        still = np.zeros_like(here)
        ahead = self._rigid(here, rates[..., None, :] + ways, still)
        behind = self._rigid(here, rates[..., None, :] - ways, still)
        columns = (ahead - behind) / 4 + self._rigid(here, still, _transposed(T_rate))
        return _finished(_transposed(columns @ state.T), valid)

    def gravity(self, q: ArrayLike) -> Floats:
        """G (…, n_a) at q (…, k)."""
        (q,) = self._arrays(q=q)
        state, valid = self._closed(q)
        # G = Tᵀ G'
        return _finished(_times(_transposed(state.T), self._gravity(state.q_r)), valid)

    def external_force(self, q: ArrayLike, wrench: ArrayLike) -> Floats:
        """F_ext (…, n_a) of a wrench (…, 6) on the platform, at q (…, k)."""
        (q,) = self._arrays(q=q)
        state, valid = self._closed(q)
        # F_ext = Tᵀ J_Cᵀ Q_x
        return _finished(_times(_transposed(state.T), self._on_joints(state, wrench)), valid)

    def tree_state(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, names: Sequence[str]
    ) -> tuple[Floats, Floats, Floats]:
        """(q, q̇, q̈) (…, n) of the tree's joints of these names at q, qd, qdd (…, k)."""
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        state, valid = self._closed(q)
        T = self._T(state)
        rates = _times(T, qd)
        free = _times(self._T_rate(self._moving(state, rates)), qd)
        order = [self.coordinate_names.index(name) for name in names]
        q_r, qd_r, qdd_r = (
            _finished(each, valid)[..., order]
            for each in (state.q_r, rates, _times(T, qdd) + free)
        )
        return q_r, qd_r, qdd_r

    # --- what may change while it runs ------------------------------------------------------

    def update(self, mechanism: Mechanism) -> None:
        """Take over gravity, friction and inertias of a mechanism of the same geometry."""
        self.mechanism = mechanism
        self.subsystems = self._taken_apart(mechanism)

    @property
    def backend(self) -> str:
        return "generated Python"

    # --- helpers ----------------------------------------------------------------------------

    def _T(self, state: KinematicState) -> Floats:
        return state.T_q if self.sensed else state.T

    def _T_rate(self, state: KinematicState) -> Floats:
        return state.T_q_rate if self.sensed else state.T_rate

    def _moving(self, state: KinematicState, rates: Floats) -> KinematicState:
        """The same configuration at other rates; what is known of it is kept."""
        moving = KinematicState(state.functions, state.q_r, rates, state.residual)
        for name in ("J", "T", "T_q", "_inverse", "_A_inverse"):
            if name in state.__dict__:
                moving.__dict__[name] = state.__dict__[name]
        return moving

    def _on_joints(self, state: KinematicState, wrench: ArrayLike) -> Floats:
        force = np.asarray(wrench, dtype=float)
        if force.ndim == 0 or force.shape[-1] != 6:
            raise wrong(InputError, "wrench", force.shape, "(…, 6): force and moment about P")
        return _times(_transposed(state.J_C), force)

    def _closed(self, q: Floats) -> tuple[KinematicState, Mask]:
        """(the closed states, which of them are numbers)."""
        valid = np.asarray(np.isfinite(q).all(axis=-1))
        flat, states = q.reshape(-1, q.shape[-1]), []
        last = self.last.q_r
        for place, (known, is_valid) in enumerate(zip(flat, valid.ravel(), strict=True)):
            if is_valid:
                last = self._solved(known, last, place if q.ndim > 1 else None)
            states.append(last)
        q_r = np.array(states).reshape(*q.shape[:-1], len(self.coordinate_names))
        state = self.solver.state(q_r)
        self._refuse_singular(state)
        if states:
            self.last = state if q.ndim == 1 else self.solver.state(last)
        return state, valid

    def _solved(self, known: Floats, last: Floats, place: int | None) -> Floats:
        try:
            return self.solver.forward(known, last)
        except ClosureError as failure:
            if last is self.home.q_r:
                raise self._placed(failure, place) from None
        # where the last state was may be far off: home is where the assembly mode is known
        try:
            return self.solver.forward(known, self.home.q_r)
        except ClosureError as failure:
            raise self._placed(failure, place) from None

    @staticmethod
    def _placed(failure: ClosureError, place: int | None) -> ClosureError:
        if place is None:
            return failure
        return ClosureError(
            f"state {place} of the batch: {failure}",
            name=failure.name,
            value=failure.value,
            expected=failure.expected,
        )

    def _refuse_singular(self, state: KinematicState) -> None:
        condition = np.max(state.condition, initial=1.0)
        if not condition <= self.condition_limit:
            raise ClosureError(
                f"closure: too near a singularity: the passive Jacobian's condition number is "
                f"{condition:.3g}, the limit {self.condition_limit:.3g}",
                name="condition",
                value=float(condition),
                expected=f"at most {self.condition_limit:g}",
            )

    def _arrays(self, **states: ArrayLike) -> list[Floats]:
        """Floats of one shape (…, k)."""
        k, arrays = len(self.joint_names), []
        for name, state in states.items():
            array = np.asarray(state, dtype=float)
            if array.ndim == 0 or array.shape[-1] != k:
                raise wrong(
                    InputError, name, array.shape, f"shape (…, {k}): {', '.join(self.joint_names)}"
                )
            arrays.append(array)
        try:
            return list(np.broadcast_arrays(*arrays))
        except ValueError:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise wrong(InputError, ", ".join(states), shapes, "batches that fit") from None


def _times(matrix: Floats, vector: Floats) -> Floats:
    return (matrix @ vector[..., None])[..., 0]


def _transposed(matrix: Floats) -> Floats:
    return np.swapaxes(matrix, -1, -2)


def _finished(values: Floats, valid: Mask) -> Floats:
    """NaN where the state was none."""
    if np.all(valid):
        return values
    spread = valid.reshape(valid.shape + (1,) * (values.ndim - valid.ndim))
    return np.where(spread, values, np.nan)
