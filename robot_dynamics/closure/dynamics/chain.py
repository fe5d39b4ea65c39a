# SPDX-License-Identifier: Apache-2.0
"""The model of a closed mechanism over floats: torques and matrices from q, q̇, q̈."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...codegen.kernel import as_floats
from ...errors import ClosureError, DescriptionError, InputError, said_of, wrong
from ...formulations.equations import TERMS
from ...mechanism import Mechanism, Pose
from ...scalar import Floats, Mask, is_number
from ..geometry.closer import Closer, prepared
from ..geometry.home_search import LEFT_OUT_TOLERANCE
from ..geometry.kinematic_state import KinematicState
from ..geometry.linear import transposed
from ..geometry.loose import check_spins
from .constraint_forces import ConstraintForces, LoopForces
from .continuation import Continuation
from .control_model import ClosedModel
from .kernels import ModelKernels
from .sharing import Sharing
from .subsystems import Subsystems

CONDITION_LIMIT = 1e3
"""Of the passive Jacobian; beyond it torques may be a hundred times their usual size"""
NEAR = 0.5
"""rad, or relative to the size: how far the state given to `reset` may be from a closed one"""
STRAIGHT_LINE = 50
"""Entries of T_q up to which the Coriolis matrix is one program"""


class ClosedChain:
    """tau = D(q) q̈ + C(q, q̇) q̇ + G(q) + friction - F_ext of a mechanism with loops (18, 39, 40).

    q are the control coordinates: the actuated joints, or, with `sensed`, those and the passive
    joints that carry a sensor. The other joints are solved, from the state before (at first from
    home) on. Arrays are float64 in SI units, (…, k) in, k = len(joint_names); a state with a NaN
    in q gives NaN. So does a state of a batch that can't be closed or is too near a singularity,
    with a `ClosureWarning`; a single one is an error.

    An instance is immutable but for gravity, friction and bodies (`update`); a call sees either the
    old ones or the new ones. It may be called from several threads: each continues from its own
    last state, at first from home or from where `reset` put it. Batches start from there as well,
    so they do not depend on earlier calls. Instances can be copied and pickled.

    Args:
        mechanism: with loops and `home`.
        formulation, rotors, terms, friction_smoothing, backend, threads: as in `InverseDynamics`;
            the formulation is that of the legs.
        sensed: take q = [q_a, q_s] instead of q_a.
        free_platform: let the platform stand on no leg, joined to all of them by closures; it
            always does with `sensed`. Without, no torque depends on it.
        condition_limit: of the passive Jacobian; beyond it a state is refused.

    Raises:
        DescriptionError: home leaves joints out or is not closed; too few or too many motors.
        ClosureError: home is singular.
        InputError: an unknown formulation, rotor model or term.
        BackendError: see `InverseDynamics`.
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
        free_platform: bool = False,
        condition_limit: float = CONDITION_LIMIT,
        backend: str = "auto",
        threads: int | None = None,
    ):
        terms = (terms,) if isinstance(terms, str) else tuple(terms)
        _check_number("condition_limit", condition_limit, least=1.0)
        _check_number("friction_smoothing", friction_smoothing, least=0.0)
        self._choices: dict[str, Any] = {
            "formulation": formulation,
            "rotors": rotors,
            "terms": terms,
            "friction_smoothing": friction_smoothing,
            "sensed": sensed,
            "free_platform": sensed or free_platform,
            "condition_limit": condition_limit,
            "backend": backend,
            "threads": threads,
        }
        with said_of(mechanism.label):
            self._start(*prepared(mechanism))

    def _start(self, mechanism: Mechanism, solver: Closer) -> None:
        """Build all of it, with the solver of a mechanism of the same geometry."""
        choices = self._choices
        sensed, condition_limit = choices["sensed"], choices["condition_limit"]
        if sensed and not mechanism.sensed:
            raise DescriptionError(
                "sensed: the description lists no sensed joints; add `sensed: [<passive joints>]`",
                name="sensed",
                expected="names of passive joints",
            )
        parts = self.taken_apart(mechanism)
        self.sensed = sensed
        self._freed: ClosedChain | None = None
        self.condition_limit = condition_limit
        self.described_solver = solver
        """With the platform where the description has it"""
        # with sensors that of the same mechanism with its platform on no leg
        is_its = (solver.geometry.free is None) == (parts.geometry.free is None)
        self.solver = solver if is_its else Closer(parts.geometry)
        sharing = Sharing.of(mechanism, parts.geometry)
        closure = self.solver.mobility.closure
        model = ClosedModel(closure, parts, sensed, float(condition_limit), sharing)
        kernels = ModelKernels(model, choices["backend"], choices["threads"])
        self._continuation = Continuation(self.solver, kernels)
        self._k = model.known
        names = parts.geometry.names
        self.coordinate_names: tuple[str, ...] = names
        """The order of q_r: actuated, sensed, other passive joints"""
        self.driving_names: tuple[str, ...] = names[: parts.geometry.actuated]
        """The order of q_a: all motors, or, of more than are needed, those that q is of"""
        self.actuated_names: tuple[str, ...] = (
            mechanism.actuated_names if model.sharing else self.driving_names
        )
        """The order of the torques"""
        self.joint_names: tuple[str, ...] = names[: model.known]

    def taken_apart(self, mechanism: Mechanism, terms: Iterable[str] | None = None) -> Subsystems:
        """Legs and platform of a mechanism with this model's options; `terms` may differ."""
        names = ("formulation", "rotors", "terms", "friction_smoothing")
        choices = {name: self._choices[name] for name in names}
        if terms is not None:
            choices["terms"] = tuple(terms)
        return Subsystems.of(mechanism, free=self._choices["free_platform"], **choices)

    # --- pickling and copying: kernels are built again, or shared where they never change -----

    def __getstate__(self) -> dict[str, Any]:
        continuation = self._continuation
        return {
            "mechanism": self.mechanism,
            "choices": self._choices,
            "origin": continuation.origin.q_r,
            "last": continuation.last,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._choices = state["choices"]
        self._start(*prepared(state["mechanism"]))
        self._continuation.go_on(self.solver.state(state["origin"]), state["last"])

    def __copy__(self) -> ClosedChain:
        other = type(self).__new__(type(self))
        other._choices = self._choices
        other._start(self.mechanism, self.described_solver)
        continuation = self._continuation
        other._continuation.go_on(continuation.origin, continuation.last)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> ClosedChain:
        return self.__copy__()

    # --- properties -------------------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """The robot as it is now."""
        return self.subsystems.geometry.described

    @property
    def tree(self) -> Mechanism:
        """The robot as it is now, by the joints of `coordinate_names`: with sensors the platform
        stands free, on joints of its own, and all its legs are alike."""
        return self.subsystems.geometry.mechanism

    @property
    def _kernels(self) -> ModelKernels:
        return self._continuation.kernels

    @property
    def model(self) -> ClosedModel:
        """The equations over any scalar, with bodies, friction and gravity as they are now."""
        return self._kernels.model

    @property
    def subsystems(self) -> Subsystems:
        """Legs and platform, as they are now."""
        return self.model.parts

    @property
    def degrees_of_freedom(self) -> int:
        """n_r less the rank of the closure's Jacobian."""
        return self.solver.mobility.degrees_of_freedom

    @property
    def redundant_rows(self) -> tuple[str, ...]:
        """The closure's redundant rows, by name; they are left out."""
        rows = self.model.geometry.rows
        return tuple(str(rows[i]) for i in self.solver.mobility.left_out)

    @property
    def home(self) -> KinematicState:
        """The home configuration, at rest, brought onto the closure."""
        return self.solver.home

    @property
    def last(self) -> KinematicState:
        """What was solved last, at rest, by whichever thread; for diagnostics, and for `reset`."""
        return self.solver.state(self._continuation.last)

    @property
    def backend(self) -> str:
        """Which backend runs the torques, and why where it is not the first choice."""
        return self._kernels["at_once"].description

    # --- position ---------------------------------------------------------------------------

    def forward_kinematics(self, q: ArrayLike, qd: ArrayLike | None = None) -> KinematicState:
        """Passive joints and platform (…) from the control coordinates (…, k).

        Raises:
            ClosureError: the loops can't be closed there on this assembly mode.
            InputError: a wrong shape.
        """
        arrays = self._arrays(q=q) if qd is None else self._arrays(q=q, qd=qd)
        q_r, valid, _ = self._continuation.close(arrays[0])
        state = self.solver.state(q_r)
        if qd is not None:
            # q̇_r = T_q q̇
            T = state.T_q if self.sensed else state.T
            state = state.moving((T @ arrays[1][..., None])[..., 0])
        if not np.all(valid):
            q_r = np.where(valid[..., None], q_r, np.nan)
            state = KinematicState(state.mobility, q_r, state.qd_r)
        return state

    def inverse_kinematics(
        self, pose: Pose | ArrayLike, start: KinematicState | None = None
    ) -> KinematicState:
        """All joints from the platform's pose; see `Closer.inverse_kinematics`."""
        return self.solver.inverse_kinematics(pose, start)

    forward, inverse = forward_kinematics, inverse_kinematics
    """Their former names; elsewhere `forward` is forward dynamics"""

    def reset(self, start: KinematicState | None = None) -> None:
        """Solve the next state from start (home if None) on, in every thread.

        Args:
            start: of this mechanism, with sensors or without.

        Raises:
            ClosureError: the loops can't be closed near start.
            InputError: a batch, or not a number.
        """
        start = self.home if start is None else self._own(start)
        if start.q_r.shape != self.home.q_r.shape or not np.isfinite(start.q_r).all():
            raise wrong(InputError, "start", start.q_r.shape, "one closed state")
        if not start.residual <= LEFT_OUT_TOLERANCE:
            # readings may leave the loops open: they are closed where the motors are
            q_r = self.solver.forward_kinematics(start.q_r[: len(self.driving_names)], start.q_r)
            off = float(np.max(abs(q_r - start.q_r) / self.solver.scale))
            if off > NEAR:
                raise ClosureError(
                    f"{self.mechanism.label}: start: its loops are open, and the closed state "
                    f"nearest to it is {off:.3g} away (rad, or shares of the robot's size)",
                    name="start",
                    value=off,
                    expected=f"at most {NEAR:g}",
                )
            start = self.solver.state(q_r)
        self._continuation.restart(start)

    def _own(self, start: KinematicState) -> KinematicState:
        """A state of this mechanism in the coordinates of this model."""
        names = start.mobility.geometry.names
        if names == self.coordinate_names or start.q_r.shape[-1:] != (len(names),):
            return start
        known = dict(zip(names, np.moveaxis(start.q_r, -1, 0), strict=True))
        free = self.model.geometry.free
        if free and not known.keys() >= set(free.coordinates):
            places = np.moveaxis(free.at(start.platform_pose), -1, 0)
            known |= dict(zip(free.coordinates, places, strict=True))
        if not known.keys() >= set(self.coordinate_names):
            return start
        return self.solver.state(np.stack([known[name] for name in self.coordinate_names], axis=-1))

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
        if wrench is None:
            # the common case: one state, near the one before
            tau = self._continuation.torques(q, qd, qdd)
            if tau is not None:
                return tau
        tau, q_r = self._carefully(q, qd, qdd)
        return tau if wrench is None else tau - self._pushed(q_r, wrench)

    def solved(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats]:
        """(the torques (…, n_m), all joints q_r (…, n_r)) at q, qd, qdd (…, k), closed once.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        return self._continuation.solved(q, qd, qdd) or self._carefully(q, qd, qdd)

    def configuration(self, q: ArrayLike) -> Floats:
        """q_r (…, n_r) at q (…, k), NaN where `torques` are.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        return _finished(*self._close_regular(q))

    def motion(self, q_r: Floats, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats]:
        """(q̇_r, q̈_r) (…, n_r) of q̇, q̈ (…, k) at a closed configuration (…, n_r)."""
        moving = self._kernels["motion"].call(q_r, qd, qdd)
        return moving[..., 0, :], moving[..., 1, :]

    def on_motors(self, q_r: Floats) -> Floats:
        """(…, n_m, n_r) at a closed configuration (…, n_r): τ = on_motors τ_r, Tᵀ where there are
        no more motors than needed."""
        return self._kernels["on_motors"].call(q_r)

    def motor_rates(self, state: KinematicState) -> Floats:
        """A (…, n_m, n_a): q̇ of all motors is A q̇_a."""
        rows = [self.coordinate_names.index(name) for name in self.actuated_names]
        return state.T[..., rows, :]

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n_m, k) at q (…, k)."""
        q_r, valid = self._close_regular(q)
        return _finished(self._kernels["mass_matrix"].call(q_r), valid)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n_m, k) at q, qd (…, k).

        For as many motors as degrees of freedom it consists of Christoffel symbols: dD/dt - 2C is
        skew.
        """
        q, qd = self._arrays(q=q, qd=qd)
        q_r, valid = self._close_regular(q)
        if self._k * len(self.coordinate_names) <= STRAIGHT_LINE:
            return _finished(self._kernels["coriolis_matrix"].call(q_r, qd), valid)
        columns = self._kernels["coriolis_column"](
            q_r[..., None, :], qd[..., None, :], np.eye(self._k)
        )
        return _finished(np.ascontiguousarray(transposed(columns)), valid)

    def gravity(self, q: ArrayLike) -> Floats:
        """G (…, n_m) at q (…, k)."""
        q_r, valid = self._close_regular(q)
        return _finished(self._kernels["gravity"].call(q_r), valid)

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n_m, k) at q, qd, qdd (…, k), loops closed throughout.

        With `sensed`, exact where the sensors agree with the motors.
        """
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        q_r, valid = self._close_regular(q)
        states = (x[..., None, :] for x in (q_r, qd, qdd))
        columns = self._kernels["slopes"](*states, np.eye(self._k))
        return _finished(np.ascontiguousarray(np.moveaxis(columns, -3, -1)), valid)

    def external_force(self, q: ArrayLike, wrench: ArrayLike) -> Floats:
        """F_ext (…, n_m) of a wrench (…, 6) on the platform, at q (…, k)."""
        return self._pushed(self.configuration(q), wrench)

    def _pushed(self, q_r: Floats, wrench: ArrayLike) -> Floats:
        force = as_floats("wrench", wrench)
        if force.ndim == 0 or force.shape[-1] != 6:
            raise wrong(InputError, "wrench", force.shape, "(…, 6): force and moment about P")
        try:
            np.broadcast_shapes(force.shape[:-1], q_r.shape[:-1])
        except ValueError:
            shapes = f"{force.shape} at states {q_r.shape[:-1]}"
            raise wrong(InputError, "wrench", shapes, "batches that fit") from None
        # F_ext = S Tᵀ J_Cᵀ Q_x
        J_C = self.solver.state(q_r).J_C
        pushed = self.on_motors(q_r) @ (transposed(J_C) @ force[..., None])
        return np.asarray(pushed[..., 0])

    def disagreement(self, readings: ArrayLike, most: float) -> tuple[Floats, float] | None:
        """See `Continuation.disagreement`."""
        return self._continuation.disagreement(readings, most)

    def consistent_torques(self, q: ArrayLike, qd: ArrayLike, qdd_a: ArrayLike) -> Floats:
        """Torques (n_m,) of one state with sensors, whose accelerations are the motors', qdd_a.

        Args:
            q, qd: (k,)
            qdd_a: (n_a,), rad/s² or m/s²; the sensed joints' follow from it.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        tau = self._continuation.consistent_torques(q, qd, qdd_a)
        if tau is None:
            # it was not closed there yet, or is near a singularity
            return self.torques(
                q, qd, np.concatenate([qdd_a, self.sensed_accelerations(q, qd, qdd_a)])
            )
        return tau

    def at_motors(self, q_a: Floats, start: Floats) -> Floats:
        """q_r (n_r,) closed where the motors are (n_a,), from a start (n_r,) that may be open.

        Raises:
            ClosureError: the loops can't be closed there.
        """
        return self._continuation.at_motors(q_a, start)

    def sensed_accelerations(self, q: ArrayLike, qd: ArrayLike, qdd_a: ArrayLike) -> Floats:
        """q̈_s (…, n_s) of the sensed joints that go with q̇_a and q̈_a at q, qd (…, k)."""
        q, qd = self._arrays(q=q, qd=qd)
        return self._kernels["sensed_accelerations"].call(self._close_regular(q)[0], qd, qdd_a)

    def go_to(self, state: KinematicState) -> None:
        """Go on from a closed state of this mechanism, with sensors or without, in this thread.

        Raises:
            ClosureError: it is on another assembly mode.
        """
        self._continuation.go_to(self._own(state).q_r)

    def constraint_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        pushes: Callable[[Mechanism, Floats], tuple[Floats, Floats]] | None = None,
    ) -> ConstraintForces:
        """The multipliers of (36) and (38) at q, qd, qdd (…, k), and their forces.

        Args:
            pushes: from the tree (see `tree`) and its q (…, n), in the order of its joints, what
                wrenches from outside do: (Σ Jᵀ w (…, n), the wrench at P (…, 6) of those on the
                platform).

        Raises:
            ClosureError: a state that can't be closed or is too near a singularity.
            InputError: a wrong shape.
        """
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        with_all = self._with_all_closures()
        state = with_all._own(self.solver.state(self.configuration(q)))
        out = with_all._kernels["generalised_forces"](state.q_r, qd, qdd)
        n, geometry = len(with_all.coordinate_names), with_all.model.geometry
        tau_r, f_c = out[..., :n], -out[..., n:]
        if pushes is not None:
            names = with_all.tree.joint_names
            order = [with_all.coordinate_names.index(name) for name in names]
            back = [names.index(name) for name in with_all.coordinate_names]
            outside, on_platform = pushes(with_all.tree, state.q_r[..., order])
            tau_r = tau_r - outside[..., back]
            f_c = f_c + on_platform if f_c.shape[-1] else f_c
        if with_all.model.sharing is not None:
            # what motors at passive joints exert is not held by the loops
            tau = (with_all.on_motors(state.q_r) @ tau_r[..., None])[..., 0]
            tau_r = np.array(tau_r)
            tau_r[..., list(with_all.model.sharing.motors)] -= tau
        return with_all._loop_forces(state, tau_r, f_c if geometry.free else None)

    @cached_property
    def _loop_forces(self) -> LoopForces:
        return LoopForces(self.model.geometry)

    def _with_all_closures(self) -> ClosedChain:
        """The same robot with its platform on no leg: all of its joints are closures."""
        if self._choices["free_platform"]:
            return self
        if self._freed is None:
            choices = {**self._choices, "free_platform": True}
            self._freed = ClosedChain(self.mechanism, **choices)
        elif self._freed.mechanism is not self.mechanism:
            self._freed.update(self.mechanism)
        return self._freed

    def update(self, mechanism: Mechanism) -> None:
        """Take over gravity, friction and inertias of a mechanism of the same geometry.

        Raises:
            InputError: a body beside the axis of a link that spins freely.
        """
        check_spins(mechanism, self.solver.size)
        kernels = self._kernels.over(self.taken_apart(mechanism))
        # in one assignment: other threads may be computing
        self._continuation.kernels = kernels

    # --- helpers ----------------------------------------------------------------------------

    def _carefully(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats]:
        """`solved` for what is not one state near the last: far, singular, a batch, or invalid."""
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        q_r, valid = self._continuation.close_regular(q)
        if q.ndim == 1:
            tau = self._continuation.torques_at(q_r, qd, qdd)
        else:
            tau = self._kernels["torques"](q_r, qd, qdd)
        return _finished(tau, valid), _finished(q_r, valid)

    def _close_regular(self, q: ArrayLike) -> tuple[Floats, Mask]:
        return self._continuation.close_regular(*self._arrays(q=q))

    def _arrays(self, **states: ArrayLike) -> list[Floats]:
        """Floats of one shape (…, k)."""
        k, arrays = self._k, []
        for name, state in states.items():
            array = as_floats(name, state)
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


def _check_number(name: str, value: float, least: float) -> None:
    if not is_number(value) or value < least:
        raise wrong(InputError, name, value, f"a number, at least {least:g}")


def _finished(values: Floats, valid: Mask) -> Floats:
    """NaN where the state had one."""
    if np.all(valid):
        return values
    spread = valid.reshape(valid.shape + (1,) * (values.ndim - valid.ndim))
    return np.where(spread, values, np.nan)
