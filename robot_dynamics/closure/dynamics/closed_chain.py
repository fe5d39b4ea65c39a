# SPDX-License-Identifier: Apache-2.0
"""The model of a closed mechanism over floats: torques and matrices from q, q̇, q̈."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...chains.companion import Companion
from ...chains.open_chain import OpenChain, by_newton
from ...chains.regressor_kernel import RegressorKernel
from ...codegen.kernel import put
from ...errors import DescriptionError, InputError, said_of, wrong
from ...formulations.equations import TERMS
from ...formulations.form import STANDING, Form
from ...formulations.options import CONDITION_LIMIT as CONDITION_LIMIT
from ...formulations.options import Options
from ...formulations.terms import names_of_terms
from ...inputs import as_floats, vectors
from ...mechanism import Mechanism, Pose
from ...mechanism.mechanism import check_usable
from ...scalar import Floats, Mask
from ..geometry.closer import Closer, prepared
from ..geometry.corrections import check_spins
from ..geometry.home_search import LEFT_OUT_TOLERANCE
from ..geometry.kinematic_state import KinematicState
from ..geometry.linear import transposed
from ..geometry.loop_geometry import LoopGeometry
from .configuration import ClosedConfiguration
from .constraint_forces import ConstraintForces, loop_forces
from .continuation import Continuation
from .control_model import ClosedModel, Sharing
from .kernels import ModelKernels
from .platform import platform_links
from .subsystems import Subsystems

NEAR = 0.5
"""rad, or fractions of the size: how far the state given to `reset` may be from a closed one"""
STRAIGHT_LINE = 50
"""Number of entries of T_q up to which the Coriolis matrix is one program"""


class ClosedChain:
    """tau = D(q) q̈ + C(q, q̇) q̇ + G(q) + friction - F_ext of a mechanism with loops (18, 39, 40):
    a `Chain`.

    q are the control coordinates: the actuated joints or, with `sensed`, the actuated joints and
    the passive joints that have a sensor. The other joints are solved for, starting from the
    previous state (at first from home). Arrays are float64 in SI units, of shape (…, k) with
    k = len(joint_names). A NaN in q gives NaN. If a state can't be closed or is too near a
    singularity, it raises an error when called alone; in a batch it gives NaN and a
    `ClosureWarning`.

    Only gravity, friction and bodies of an instance can change (`update`); a call uses either the
    old ones or the new ones. It may be called from several threads: each continues from its own
    last state, at first from home or from the state given to `reset`. Batches always start from
    there, so they do not depend on earlier calls. Instances can be copied and pickled.

    Args:
        mechanism: a mechanism with loops and a `home`.
        formulation, rotors, terms, friction_smoothing, backend, threads, batches: as in
            `InverseDynamics`; the formulation is applied to the legs.
        sensed: take q = [q_a, q_s] instead of q_a.
        free_platform: model the platform as carried by no leg and joined to all of them by
            closures, as is always done with `sensed`. The torques do not depend on this choice.
        condition_limit: largest condition number of the passive Jacobian; beyond it a state is
            refused.

    Raises:
        DescriptionError: home does not give all joints or is not closed; too few or too many
            motors.
        ClosureError: home is singular.
        InputError: an unknown formulation, rotor model or term.
        BackendError: see `InverseDynamics`.
    """

    form: ClassVar[Form] = STANDING

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
        batches: bool = False,
    ):
        check_usable(mechanism)
        self._options = Options(
            formulation,
            rotors,
            names_of_terms(terms),
            friction_smoothing,
            sensed,
            condition_limit,
            backend,
            threads,
            batches,
        )
        self._free_platform = sensed or free_platform
        with said_of(mechanism.label):
            self._start(*prepared(mechanism))

    def _start(self, mechanism: Mechanism, described: Closer, closer: Closer | None = None) -> None:
        """Build the model, reusing the closers of a mechanism of the same geometry, if given."""
        options = self._options
        sensed = options.sensed
        if sensed and not mechanism.sensed:
            raise DescriptionError(
                "sensed: the description lists no sensed joints; add `sensed: [<passive joints>]`",
                name="sensed",
                expected="names of passive joints",
            )
        geometry = LoopGeometry.of(mechanism, self._free_platform)
        parts = Subsystems.of(geometry, *options.of_equations)
        self.sensed = sensed
        self.condition_limit = options.condition_limit
        self.described_closer = described
        """The closer with the platform on the leg that carries it in the description"""
        # with sensors, the closer is that of the mechanism with a free platform
        is_its = (described.geometry.free is None) == (parts.geometry.free is None)
        self.closer = closer or (described if is_its else Closer(parts.geometry))
        sharing = Sharing.of(mechanism, parts.geometry)
        closure = self.closer.mobility.closure
        model = ClosedModel(closure, parts, sensed, options.condition_limit, sharing)
        kernels = ModelKernels(model, options.backend, options.threads, options.batches)
        self._continuation = Continuation(self.closer, kernels)
        self._k = model.known
        names = parts.geometry.names
        self.coordinate_names: tuple[str, ...] = names
        """The order of q_r: actuated, sensed, other passive joints"""
        self.tree_columns = [names.index(name) for name in parts.geometry.mechanism.joint_names]
        """The indices in q_r of the joints of `tree`"""
        self.driving_names: tuple[str, ...] = names[: parts.geometry.actuated]
        """The order of q_a: all motors, or the driving ones if there are more than needed"""
        self.actuated_names: tuple[str, ...] = (
            mechanism.actuated_names if model.sharing else self.driving_names
        )
        """The order of the torques"""
        self.joint_names: tuple[str, ...] = names[: model.known]
        self.lock: AbstractContextManager[Any] = threading.RLock()
        """Held while the robot is changed, and during successive calls that belong together"""
        self._tree: Companion[ClosedChain, OpenChain] = Companion(
            lambda chain: OpenChain(chain.tree, by_newton(options)),
            lambda tree, chain: tree.over(chain.tree),
        )
        self._regressor: Companion[ClosedChain, RegressorKernel] = Companion(
            lambda chain: RegressorKernel(chain.tree, chain.mechanism, options),
            lambda kernel, chain: kernel.over(chain.tree),
        )
        self._freed: Companion[ClosedChain, ClosedChain] = Companion(
            ClosedChain._with_free_platform, lambda freed, chain: freed.over(chain.mechanism)
        )

    # --- pickling and copying: kernels are rebuilt, or shared if they never change -----------

    def __getstate__(self) -> dict[str, Any]:
        continuation = self._continuation
        return {
            "options": (self._options, self._free_platform),
            "start": (self.mechanism, self.described_closer, self.closer),
            "states": (continuation.origin.q_r, continuation.last),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._options, self._free_platform = state["options"]
        self._start(*state["start"])
        origin, last = state["states"]
        self._continuation.go_on(self.closer.state(origin), last)

    def __deepcopy__(self, memo: dict[int, Any]) -> ClosedChain:
        return copy(self)

    def copy(self) -> ClosedChain:
        """A copy that continues from this one's last state."""
        other = copy(self)
        other._tree, other._regressor = self._tree.after(), self._regressor.after()
        return other

    def share_lock(self, lock: AbstractContextManager[Any]) -> None:
        """Use another reentrant lock than its own."""
        self.lock = lock

    # --- properties -------------------------------------------------------------------------

    @property
    def solver(self) -> Closer:
        """The same as `closer`, its former name."""
        return self.closer

    @property
    def mechanism(self) -> Mechanism:
        """The robot as it is now."""
        return self.subsystems.geometry.described

    @property
    def tree(self) -> Mechanism:
        """The robot as it is now, with the joints in `coordinate_names`. With sensors the platform
        is free, on joints of its own, and all legs are treated alike."""
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
        """The legs and the platform, as they are now."""
        return self.model.parts

    @property
    def degrees_of_freedom(self) -> int:
        """n_r minus the rank of the closure's Jacobian."""
        return self.closer.mobility.degrees_of_freedom

    @property
    def redundant_rows(self) -> tuple[str, ...]:
        """The names of the closure's redundant rows, which are left out."""
        rows = self.model.geometry.rows
        return tuple(str(rows[i]) for i in self.closer.mobility.left_out)

    @property
    def home(self) -> KinematicState:
        """The home configuration at rest, corrected so that all loops are closed."""
        return self.closer.home

    @property
    def q_home(self) -> Floats:
        """q (k,) at home, rad or m, with the loops closed."""
        return np.array(self.home.q_r[: self._k])

    @property
    def last(self) -> KinematicState:
        """The configuration solved last, by any thread, at rest; for diagnostics and `reset`."""
        return self.closer.state(self._continuation.last)

    @property
    def backend(self) -> str:
        """The backend that computes the torques, and the reason if it is not the first choice."""
        found = self._kernels["torques" if self._options.batches else "at_once"].description
        return found.replace("at_once: ", "torques: ", 1)  # its own name means nothing to others

    # --- position ---------------------------------------------------------------------------

    def forward_kinematics(self, q: ArrayLike, qd: ArrayLike | None = None) -> KinematicState:
        """The state of all joints, and of the platform, from the control coordinates.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) rates, rad/s or m/s; None: at rest.

        Raises:
            ClosureError: the loops can't be closed there on this assembly mode.
            InputError: a wrong shape.
        """
        arrays = self._arrays(q=q) if qd is None else self._arrays(q=q, qd=qd)
        q_r, valid, _ = self._continuation.close(arrays[0])
        state = self.closer.state(q_r)
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
        """The state of all joints from the platform's pose; see `Closer.inverse_kinematics`.

        Args:
            pose: of the platform link's frame in the base frame, a `Pose` or (4, 4).
            start: a closed state whose working mode is kept; None: home.

        Raises:
            ClosureError: the platform can't get there from start, or there is no platform.
            InputError: not a pose.
        """
        return self.closer.inverse_kinematics(pose, start)

    def reset(self, start: KinematicState | None = None) -> None:
        """Let every thread solve its next state starting from `start`.

        Args:
            start: one state of this mechanism, with or without sensors; None: home.

        Raises:
            ClosureError: the loops can't be closed near start.
            InputError: not a state, a batch, or a number that is not finite.
        """
        start = self.home if start is None else self._own(start)
        if start.q_r.shape != self.home.q_r.shape or not np.isfinite(start.q_r).all():
            raise wrong(InputError, "start", start.q_r.shape, "one closed state")
        if not start.residual <= LEFT_OUT_TOLERANCE:
            # the loops may be open if it comes from sensor readings: close them with motors held
            q_r = self.closer.forward_kinematics(start.q_r[: len(self.driving_names)], start.q_r)
            off = float(np.max(abs(q_r - start.q_r) / self.closer.scale))
            if off > NEAR:
                raise self.closer.geometry.refusal(
                    "start: its loops are open, and the closed state nearest to it is "
                    f"{off:.3g} away (rad, or fractions of the robot's size)",
                    off,
                    f"at most {NEAR:g}",
                )
            start = self.closer.state(q_r)
        self._continuation.restart(start)

    def _own(self, start: KinematicState) -> KinematicState:
        """A state of this mechanism, converted to the coordinates of this model."""
        if not isinstance(start, KinematicState):
            raise wrong(InputError, "start", type(start).__name__, "a state of this chain, or None")
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
        return self.closer.state(np.stack([known[name] for name in self.coordinate_names], axis=-1))

    # --- dynamics ---------------------------------------------------------------------------

    def torques(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        wrench: ArrayLike | None = None,
        *,
        out: Floats | None = None,
    ) -> Floats:
        """The torques (…, n_m), N·m or N, in the order of `actuated_names`.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) rates, rad/s or m/s.
            qdd: (…, k) accelerations, rad/s² or m/s².
            wrench: (…, 6) external force (N) and moment about P (N·m) on the platform, in the
                base frame; a wrench that assists the motion reduces the torques.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            ClosureError: a state that can't be closed or is too near a singularity.
            InputError: a wrong shape.

        Source: (18), (39) and (40) of [ZCPOM].
        """
        if wrench is None:
            # the common case: one state, near the previous one
            tau = self._continuation.torques(q, qd, qdd)
            if tau is not None:
                return tau if out is None else put(out, tau)
        tau, q_r = self._carefully(q, qd, qdd)
        return put(out, tau if wrench is None else tau - self._wrench_torques(q_r, wrench))

    __call__ = torques

    def solved(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats]:
        """(the torques (…, n_m), all joints q_r (…, n_r)), with the loops closed only once.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) rates, rad/s or m/s.
            qdd: (…, k) accelerations, rad/s² or m/s².

        Raises:
            ClosureError, InputError: see `torques`.
        """
        return self._continuation.solved(q, qd, qdd) or self._carefully(q, qd, qdd)

    def torques_and_configuration(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> tuple[Floats, ClosedConfiguration]:
        """`solved`, with the robot at that configuration."""
        tau, q_r = self.solved(q, qd, qdd)
        return tau, self.at_configuration(q_r)

    def at(self, q: ArrayLike, regular: bool = False) -> ClosedConfiguration:
        """The robot at a position.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            regular: whether to refuse a state too near a singularity, as `torques` does.

        Raises:
            ClosureError: the loops can't be closed there, or as for `torques`.
            InputError: a wrong shape.
        """
        return self.at_configuration(
            self.configuration(q) if regular else self.forward_kinematics(q).q_r
        )

    def at_configuration(self, q_r: Floats) -> ClosedConfiguration:
        """The robot at a closed configuration.

        Args:
            q_r: (…, n_r) positions of all joints, rad or m, in the order of `coordinate_names`.
        """
        return ClosedConfiguration(self, self._tree.of(self), q_r)

    def configuration(self, q: ArrayLike) -> Floats:
        """All joints q_r (…, n_r), rad or m, in the order of `coordinate_names`.

        It is NaN for the same states as `torques`.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        return _finished(*self._close_regular(q))

    def motion(self, q_r: Floats, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats]:
        """The velocities q̇_r and accelerations q̈_r (…, n_r) of all joints.

        They are in rad/s or m/s, and rad/s² or m/s², in the order of `coordinate_names`.

        Args:
            q_r: (…, n_r) a closed configuration, rad or m, in this order.
            qd: (…, k) velocities of the control coordinates, rad/s or m/s.
            qdd: (…, k) their accelerations, rad/s² or m/s².

        Source: (8), (9), (11) and (12) of [ZCPOM].
        """
        moving = self._kernels["motion"].call(q_r, qd, qdd)
        return moving[..., 0, :], moving[..., 1, :]

    def on_motors(self, q_r: Floats) -> Floats:
        """The matrix (…, n_m, n_r) that maps joint forces τ_r to motor torques: τ = on_motors τ_r.

        It is Tᵀ if there are no more motors than needed; otherwise it gives the torques of least
        norm, weighted by the mechanism's `shares`. Rows are in the order of `actuated_names`,
        columns in that of `coordinate_names`.

        Args:
            q_r: (…, n_r) a closed configuration, rad or m.
        """
        return self._kernels["on_motors"].call(q_r)

    def motor_rates(self, state: KinematicState) -> Floats:
        """The matrix A (…, n_m, n_a): the velocities of all motors are A q̇_a.

        Rows are in the order of `actuated_names`, columns in that of `driving_names`.

        Args:
            state: a closed state of this model.

        Raises:
            ClosureError: the state is singular.
        """
        rows = [self.coordinate_names.index(name) for name in self.actuated_names]
        return state.T[..., rows, :]

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """The inertia matrix D (…, n_m, k), kg·m² (kg·m or kg for prismatic joints).

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        q_r, valid = self._close_regular(q)
        return _finished(self._kernels["mass_matrix"].call(q_r), valid)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """The Coriolis matrix C (…, n_m, k).

        If there are as many motors and control coordinates as degrees of freedom, it consists of
        Christoffel symbols: dD/dt - 2C is skew-symmetric. C qd is in N·m or N.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) velocities, rad/s or m/s.

        Raises:
            ClosureError, InputError: see `torques`.

        Source: (18) and (39) of [ZCPOM]; [EW21] for Christoffel symbols.
        """
        q, qd = self._arrays(q=q, qd=qd)
        q_r, valid = self._close_regular(q)
        if self._k * len(self.coordinate_names) <= STRAIGHT_LINE:
            return _finished(self._kernels["coriolis_matrix"].call(q_r, qd), valid)
        columns = self._by_direction("coriolis_column", q_r, qd)
        return _finished(np.ascontiguousarray(transposed(columns)), valid)

    def gravity(self, q: ArrayLike) -> Floats:
        """The gravity torques G (…, n_m), N·m or N.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        q_r, valid = self._close_regular(q)
        return _finished(self._kernels["gravity"].call(q_r), valid)

    def forward(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """The accelerations qdd (…, k), rad/s² or m/s², of the forward dynamics: D q̈ = τ - b.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) rates, rad/s or m/s.
            tau: (…, n_m) torques in the order of `actuated_names`, N·m or N.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            ClosureError, InputError: see `torques`.
            InputError: the model reads sensors on passive joints.
        """
        if self.sensed:
            expected = "False: torques determine the motion of the actuated joints"
            raise wrong(InputError, "sensed", True, expected)
        q, qd = self._arrays(q=q, qd=qd)
        torques = vectors("tau", tau, len(self.actuated_names))
        q_r, valid = self._close_regular(q)
        return put(out, _finished(self._kernels["forward"].call(q_r, qd, torques), valid))

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n_m, k), with the loops kept closed.

        With `sensed` they are exact if the sensors agree with the motors.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) rates, rad/s or m/s.
            qdd: (…, k) accelerations, rad/s² or m/s².

        Raises:
            ClosureError, InputError: see `torques`.
        """
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        q_r, valid = self._close_regular(q)
        columns = self._by_direction("slopes", q_r, qd, qdd)
        return _finished(np.ascontiguousarray(np.moveaxis(columns, -3, -1)), valid)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """As `InverseDynamics.regressor`: S Tᵀ Y_tree (…, n_m, p)."""
        with self.lock:
            kernel = self._regressor.of(self)
            return put(out, kernel.projected(self.at(q, regular=True), qd, qdd))

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """As `InverseDynamics.kinetic_energy`: (…,), J."""
        with self.lock:
            return self.at(q).kinetic_energy(qd)

    def potential_energy(self, q: ArrayLike) -> Floats:
        """As `InverseDynamics.potential_energy`: (…,), J."""
        with self.lock:
            return self.at(q).potential_energy()

    def pose(self, q: ArrayLike, link: str) -> Floats:
        """As `InverseDynamics.pose`: (…, 4, 4)."""
        with self.lock:
            return self.at(q).pose(link)

    def jacobian(self, q: ArrayLike, link: str) -> Floats:
        """As `InverseDynamics.jacobian`: J T (…, 6, k)."""
        with self.lock:
            return self.at(q).jacobian(link)

    def _by_direction(self, name: str, *states: Floats) -> Floats:
        """(…, k, …): a kernel's results for each direction w of the control coordinates."""
        kernel, ways = self._kernels[name], np.eye(self._k)
        if all(x.ndim == 1 for x in states):
            # a batch of a few rows would take longer, and would have to be compiled
            return np.array([kernel.call(*states, way) for way in ways])
        return kernel(*(x[..., None, :] for x in states), ways)

    def external_force(self, q: ArrayLike, wrench: ArrayLike) -> Floats:
        """The part F_ext (…, n_m) of the torques that a wrench on the platform provides.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            wrench: (…, 6) force (N) and moment about P (N·m), in the base frame.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        return self._wrench_torques(self.configuration(q), wrench)

    def _wrench_torques(self, q_r: Floats, wrench: ArrayLike) -> Floats:
        force = as_floats("wrench", wrench)
        if force.ndim == 0 or force.shape[-1] != 6:
            raise wrong(InputError, "wrench", force.shape, "(…, 6): force and moment about P")
        try:
            np.broadcast_shapes(force.shape[:-1], q_r.shape[:-1])
        except ValueError:
            shapes = f"{force.shape} at states {q_r.shape[:-1]}"
            raise wrong(InputError, "wrench", shapes, "batches that broadcast together") from None
        # F_ext = S Tᵀ J_Cᵀ Q_x
        J_C = self.closer.state(q_r).J_C
        torque = self.on_motors(q_r) @ (transposed(J_C) @ force[..., None])
        return np.asarray(torque[..., 0])

    def disagreement(self, readings: ArrayLike, most: float) -> tuple[Floats, float] | None:
        """How much sensor readings disagree; see `Continuation.disagreement`.

        Args:
            readings: (k,) in the order of `joint_names`, rad or m.
            most: largest disagreement to accept, rad or fractions of the mechanism's size.
        """
        return self._continuation.disagreement(readings, most)

    def consistent_torques(self, q: ArrayLike, qd: ArrayLike, qdd_a: ArrayLike) -> Floats:
        """The torques (n_m,) of one state with sensors, given only the motors' accelerations.

        Args:
            q: (k,) positions in the order of `joint_names`, rad or m.
            qd: (k,) rates, rad/s or m/s.
            qdd_a: (n_a,), rad/s² or m/s²; the accelerations of the sensed joints follow from it.

        Raises:
            ClosureError, InputError: see `torques`.
        """
        tau = self._continuation.consistent_torques(q, qd, qdd_a)
        if tau is None:
            # this state was not the last one closed, or it is near a singularity
            return self.torques(
                q, qd, np.concatenate([qdd_a, self.sensed_accelerations(q, qd, qdd_a)])
            )
        return tau

    def at_motors(self, q_a: Floats, start: Floats) -> Floats:
        """The closed configuration q_r (n_r,) at given motor positions.

        Args:
            q_a: (n_a,) positions of the motors, rad or m.
            start: (n_r,) a configuration nearby, whose loops may be open.

        Raises:
            ClosureError: the loops can't be closed there.
        """
        return self._continuation.at_motors(q_a, start)

    def sensed_accelerations(self, q: ArrayLike, qd: ArrayLike, qdd_a: ArrayLike) -> Floats:
        """The sensed joints' accelerations q̈_s (…, n_s) that are consistent with q̇_a and q̈_a.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) rates, rad/s or m/s.
            qdd_a: (…, n_a) accelerations of the motors, rad/s² or m/s².

        Raises:
            ClosureError, InputError: see `torques`.
        """
        q, qd = self._arrays(q=q, qd=qd)
        return self._kernels["sensed_accelerations"].call(self._close_regular(q)[0], qd, qdd_a)

    def go_to(self, state: KinematicState) -> None:
        """Let this thread continue from another state.

        Args:
            state: a closed state of this mechanism, with or without sensors.

        Raises:
            ClosureError: it is on another assembly mode.
        """
        self._continuation.go_to(self._own(state).q_r)

    def constraint_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        wrenches: Mapping[str, Floats] | None = None,
    ) -> ConstraintForces:
        """The multipliers of (36) and (38), and the forces that they represent.

        Args:
            q: (…, k) positions in the order of `joint_names`, rad or m.
            qd: (…, k) rates, rad/s or m/s.
            qdd: (…, k) accelerations, rad/s² or m/s².
            wrenches: external wrenches by link name, (…, 6): the force (N) and the moment about the
                origin of the link's frame (N·m), on base axes. None: there are none.

        Raises:
            ClosureError: a state that can't be closed or is too near a singularity.
            InputError: a wrong shape.
        """
        q, qd, qdd = self._arrays(q=q, qd=qd, qdd=qdd)
        with self.lock:
            state = self.closer.state(self.configuration(q))
            freed = self if self._free_platform else self._freed.of(self)
            return freed._forces(state, qd, qdd, wrenches or {})

    def _with_free_platform(self) -> ClosedChain:
        """The same robot with a free platform, so that all joints of the platform are closures."""
        freed = ClosedChain.__new__(ClosedChain)
        freed._options, freed._free_platform = self._options, True
        freed._start(self.mechanism, self.described_closer)
        return freed

    def _forces(
        self, state: KinematicState, qd: Floats, qdd: Floats, wrenches: Mapping[str, Floats]
    ) -> ConstraintForces:
        """`constraint_forces` of this model, whose platform is free, at a state of any model."""
        state, free = self._own(state), self.model.geometry.free
        out, n = self._kernels["generalised_forces"](state.q_r, qd, qdd), len(self.coordinate_names)
        tau_r, f_c = out[..., :n], -out[..., n:]
        if wrenches:
            tau, at_P = self._pushed(state.q_r, wrenches)
            tau_r = tau_r - tau
            f_c = f_c + at_P if f_c.shape[-1] else f_c
        if self.model.sharing is not None:
            # the loops do not carry the torques of motors at passive joints
            tau = (self.on_motors(state.q_r) @ tau_r[..., None])[..., 0]
            tau_r = np.array(tau_r)
            tau_r[..., list(self.model.sharing.motors)] -= tau
        return loop_forces(state, tau_r, f_c if free else None)

    def _pushed(self, q_r: Floats, wrenches: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """(Σ Jᵀ w (…, n_r), the total wrench (…, 6) at P of those on the platform)"""
        here, names = self.at_configuration(q_r), self.tree.joint_names
        tau, at_P = np.zeros(len(names)), np.zeros(6)
        on_platform = platform_links(self.tree)
        for link, wrench in wrenches.items():
            tau = tau + here.joint_torques(link, wrench)
            if link in on_platform:
                P = here.pose(str(self.tree.platform))[..., :3, 3]
                arm = here.pose(link)[..., :3, 3] - P
                moment = wrench[..., 3:] + np.cross(arm, wrench[..., :3])
                force = np.broadcast_to(wrench[..., :3], moment.shape)
                at_P = at_P + np.concatenate([force, moment], axis=-1)
        return tau[..., [names.index(name) for name in self.coordinate_names]], at_P

    def update(self, mechanism: Mechanism) -> None:
        """Adopt the gravity, friction and inertias of a mechanism of the same geometry.

        Nothing is compiled, unless friction gets a term that it did not have.

        Args:
            mechanism: with the same links, joints, loops and motors as this one's.

        Raises:
            InputError: a body whose centre of mass is off the axis of a link that spins freely.
        """
        check_spins(mechanism, self.closer.size)
        geometry = self.model.geometry.over(mechanism)
        kernels = self._kernels.over(Subsystems.of(geometry, *self._options.of_equations))
        with self.lock:
            # in one assignment, as other threads may be computing torques
            self._continuation.kernels = kernels
            self._tree, self._regressor = self._tree.after(), self._regressor.after()
            self._freed = self._freed.after()

    def over(self, mechanism: Mechanism) -> ClosedChain:
        """Itself after `update`."""
        self.update(mechanism)
        return self

    # --- helpers ----------------------------------------------------------------------------

    def _carefully(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, Floats]:
        """`solved` for anything but a single regular state near the last: batches, and distant,
        singular or invalid states."""
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
        """The states as float arrays, broadcast to one shape (…, k)."""
        arrays = [vectors(name, x, self._k, self.joint_names) for name, x in states.items()]
        if len({array.shape for array in arrays}) == 1:
            return arrays
        try:
            return list(np.broadcast_arrays(*arrays))
        except ValueError:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise wrong(
                InputError, ", ".join(states), shapes, "batches that broadcast together"
            ) from None


def _finished(values: Floats, valid: Mask) -> Floats:
    """The values, with NaN for the states that are not valid."""
    if np.all(valid):
        return values
    spread = valid.reshape(valid.shape + (1,) * (values.ndim - valid.ndim))
    return np.where(spread, values, np.nan)
