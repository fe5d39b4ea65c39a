# SPDX-License-Identifier: Apache-2.0
"""`InverseDynamics`, the public class for numerical dynamics."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from html import escape
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike

from ..chains.chain import Chain
from ..chains.open_chain import OpenChain
from ..closure import ClosedChain, ConstraintForces
from ..codegen.kernel import put
from ..codegen.native import Forwarding, shortened
from ..errors import InputError, choices, listed, one_line, wrong
from ..formulations.equations import TERMS
from ..formulations.options import CONDITION_LIMIT, Options
from ..formulations.terms import names_of_terms
from ..inputs import as_floats, finite
from ..mechanism import Friction, Inertial, Mechanism
from ..mechanism.shown import FEW, as_html
from ..mechanism.transform import with_parts
from ..scalar import Array, Floats
from . import checked
from .base_motion import BaseMotion
from .linearization import Linearization, linearized
from .motors import MotorTorques, motors
from .robot import Robot


@shortened
class InverseDynamics(Forwarding):  # type: ignore[misc]
    """tau = D(q) qdd + C(q, qd) qd + g(q) + friction, by any of the formulations.

    The formulation is recorded once and compiled; the kernel is kept in the user's cache. Arrays
    are float64 in SI units: q in rad or m, tau in N·m or N, in the order of `joint_names`. All
    states may be batched: (…, n) in, (…, n) out, over all cores.

    Gravity, payloads and friction may change at run time. Only a friction law of a new kind
    compiles anything; see `set_friction`. A call on another thread uses the old robot or the new
    one, never a mixture. An instance can be copied and pickled; a copy shares no mutable state, and
    unpickling loads the kernels from the cache.

    Args:
        mechanism: the robot, as from `rd.load`.
        formulation: lagrange_euler, newton_euler, gibbs_appell or murphy.
        rotors: full, reflected (Γ²·I_zz at the joint, the mass on the mount) or none.
        terms: any of inertia, coriolis, gravity, friction, rotors (all by default). They add up:
            inertia and coriolis are those of the links, rotors those of the rotors, and gravity
            the weight of both.
        friction_smoothing: rate (rad/s or m/s) below which Coulomb friction fades to zero as
            tanh(qd / rate); 0: sign(qd). At rest it is zero either way. The smoothing of a joint's
            own law is added.
        sensed: for a mechanism with loops: take q = [q_a, q_s], which includes the passive joints
            with a sensor, instead of q_a alone. D and C are then (n_a, n_a + n_s).
        condition_limit: for a mechanism with loops: largest condition number of the passive
            Jacobian; beyond it a state is refused as too near a singularity.
        backend: auto, c or python. auto uses C if there is a compiler; otherwise it warns once.
        threads: number of threads for batches; None: one for each core available to this process.
        batches: compile for batches first, and for single states only when the first one comes. By
            default it is the other way round.

    Attributes:
        formulation: its name.
        joint_names: the order of q, qd, qdd.
        actuated_names: the order of the torques.

    Raises:
        InputError: an unknown formulation, rotor model, term or backend.
        DescriptionError, ClosureError: the loops are not closed at home, or too few motors.
        BackendError: `c` was requested but is not available; with the compiler's message.
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
        batches: bool = False,
    ):
        mechanism = checked.robot(mechanism)
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
        if self._options.sensed and not mechanism.loops:
            raise wrong(InputError, "sensed", True, "False: the mechanism has no loops")
        self.formulation = formulation
        self._unlock()
        chain = self._chain_of(mechanism)
        self.joint_names, self.actuated_names = chain.joint_names, chain.actuated_names
        self._become(Robot(chain, self._options, self._changing))

    def _chain_of(self, mechanism: Mechanism) -> Chain:
        if mechanism.loops:
            return ClosedChain(mechanism, **asdict(self._options))
        return OpenChain(mechanism, self._options)

    def _become(self, robot: Robot) -> None:
        self._robot = robot
        self._target = robot.torques
        """A call with states only is forwarded to this directly"""

    def _unlock(self) -> None:
        self._changing = threading.RLock()
        """Held while the robot is changed, and by a chain that is modified in place"""
        _LIVING.add(self)

    def _unlock_child(self) -> None:
        """A new lock in a forked process, where the thread that held the old one does not exist."""
        self._unlock()
        self._robot.chain.share_lock(self._changing)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(robot={one_line(self.mechanism.name, 60)!r}, "
            f"joints: {listed(self.joint_names, FEW)}, "
            f"formulation={self.formulation!r}, backend={self.backend!r})"
        )

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(repr(self))}</b></p>{as_html(self.mechanism)}"

    def __reduce__(self) -> Any:
        robot = self._robot
        where = None if self.closed is None else np.array(self.closed.last.q_r)
        return _made, (type(self), robot.bare, self._options, robot.payloads, where)

    def __copy__(self) -> InverseDynamics:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._unlock()
        with self._changing:
            other._become(self._robot.copy(other._changing))
        return other

    @property
    def mechanism(self) -> Mechanism:
        """The robot as it is now, payloads included."""
        return self._robot.chain.mechanism

    @property
    def closed(self) -> ClosedChain | None:
        """Positions, Jacobians and state of a mechanism with loops; None without loops."""
        chain = self._robot.chain
        return chain if isinstance(chain, ClosedChain) else None

    @property
    def home(self) -> Floats:
        """The home positions (n,) in the order of `joint_names`, rad or m: those of the
        description, corrected so that all loops are closed; 0 where it gives none."""
        return self._robot.chain.q_home

    def tree_state(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """Positions, rates and accelerations (…, n_t) of all joints of the mechanism, in the order
        of `mechanism.joint_names`: with loops those of the passive joints, too.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².

        Raises:
            InputError: a wrong shape.
            ClosureError: as in a call.
        """
        return self._robot.tree_state(q, qd, qdd)

    def __call__(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
        base_motion: BaseMotion | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """The torques tau (…, n), N·m or N, in the order of `actuated_names`.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².
            base_motion: the motion of a moving base; its attitude also turns gravity. The first
                call with one compiles. `terms` must then include inertia, coriolis and, if there
                are rotors, the rotors' term, or none of these, in which case only gravity follows
                the base.
            wrenches: external wrenches by link name, (6,) or (…, 6): the force (N) and the moment
                about the origin of the link's frame (N·m), on base axes. A wrench that assists the
                motion reduces the torques: tau = … - Σ Jᵀ w.
            out: float64 array of the result's shape to write to, which is returned. A call with
                plain float64 arrays and `out` allocates nothing.

        Raises:
            InputError: a wrong shape or type, or an unknown link; the message says which, and what
                was expected.
            ClosureError: a state in which the loops cannot be closed, or which is too near a
                singularity.
        """
        robot, acting = self._robot, checked.wrenches(wrenches)
        if base_motion is not None:
            tau = robot.on_moving_base(q, qd, qdd, base_motion)
            if acting:
                # it depends only on the links' positions
                tau = tau - robot.wrench_torques(q, acting, "base")
        elif acting:
            tau = robot.under_wrenches(q, qd, qdd, acting)
        elif out is not None:
            return robot.torques(q, qd, qdd, out=out)
        else:
            return robot.torques(q, qd, qdd)
        return put(out, tau)

    def wrench_torques(
        self, q: ArrayLike, wrenches: Mapping[str, ArrayLike], *, axes: str = "base"
    ) -> Floats:
        """The part Σ Jᵀ w (…, n) of the torques that external wrenches provide, N·m or N.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            wrenches: as in a call.
            axes: base, or link for the axes of each wrench's own link.

        Raises:
            InputError: as in a call, or unknown axes.
            ClosureError: as in a call.
        """
        if axes not in ("base", "link"):
            raise wrong(InputError, "axes", axes, "base or link")
        return self._robot.wrench_torques(q, checked.wrenches(wrenches), axes)

    def constraint_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
    ) -> ConstraintForces:
        """The constraint forces of a robot with loops, due to the chosen terms: the multipliers λ,
        the wrench [force; moment] in each loop's joint (…, 6), and that between the platform and
        its legs, in N and N·m.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².
            wrenches: as in a call.

        Raises:
            InputError: a wrong shape, an unknown link, or a robot without loops.
            ClosureError: as in a call.

        Source: (36) and (38) of [ZCPOM].
        """
        closed = self.closed
        if closed is None:
            raise wrong(InputError, "constraint_forces", "no loops", "a robot with loops")
        return closed.constraint_forces(q, qd, qdd, checked.wrenches(wrenches))

    def forward(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        base_motion: BaseMotion | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """Forward dynamics: the accelerations qdd (…, n), rad/s² or m/s². It inverts
        `__call__`, with dry friction fully developed (no presliding).

        With more than seven independent joints, no coupled shafts and all terms, this is the
        articulated-body algorithm, O(n); otherwise D qdd = tau - C qd - g - friction is solved by
        factorising D. The accelerations are not finite, or meaningless, if D is singular because a
        joint moves no mass.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            tau: (…, n) torques in the order of `actuated_names`, N·m or N.
            base_motion: as in a call.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            InputError: a wrong shape; `terms` without inertia; `sensed`, as torques do not
                determine the accelerations of all of q.
            ClosureError: as in a call.

        Source: chapters 6 and 7 of [F08].
        """
        if "inertia" not in self._options.terms:
            raise wrong(InputError, "terms", sorted(self._options.terms), "inertia among them")
        if base_motion is not None:
            still = np.zeros(len(self.joint_names))
            # the torques due to the base's motion do not depend on q̈
            moved = self(q, qd, still, base_motion=base_motion)
            tau = as_floats("tau", tau) - (moved - self(q, qd, still))
        return self._robot.chain.forward(q, qd, tau, out)

    def derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        base_motion: BaseMotion | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """(∂tau/∂q, ∂tau/∂qd, ∂tau/∂qdd), (…, n, n) each.

        The last is D if inertia is among the terms. Row i belongs to torque i, column j to
        coordinate j. For a closed robot rows are those of the actuated joints, all other joints
        follow q, and with `sensed` the derivatives are exact for consistent readings. Coulomb
        friction without smoothing contributes nothing: its jump is left out, as is presliding.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².
            base_motion: as in a call; not for a closed robot.

        Raises:
            InputError: a wrong shape, or a `base_motion` of a closed robot.
            ClosureError: as in a call.

        Source: [SRW22].
        """
        robot = self._robot
        if base_motion is None:
            out = robot.chain.derivatives(q, qd, qdd)
        else:
            out = robot.derivatives_on_moving_base(q, qd, qdd, base_motion)
        if out.ndim == 3:  # one state: faster than with an ellipsis, or unpacked
            return out[0], out[1], out[2]
        return out[..., 0, :, :], out[..., 1, :, :], out[..., 2, :, :]

    def linearize(
        self, q: ArrayLike, qd: ArrayLike | None = None, tau: ArrayLike | None = None
    ) -> Linearization:
        """The linearised dynamics δẋ = A δx + B δu with x = [q; qd], u = tau, about one state or
        every state of a motion (with the torques that a call gives for it).

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s; None: at rest.
            tau: (…, n) torques, N·m or N; None: those at which qdd = 0.

        Raises:
            InputError: a wrong shape; `sensed`, as torques do not determine the accelerations of
                all of q; torques of redundant motors that work against each other; a singular D,
                as a joint moves no mass.
            ClosureError: as in a call.

        Returns:
            A (…, 2n, 2n) and B (…, 2n, m), with the names and units of their rows and columns, and
            the state itself; see `Linearization`.
        """
        with self._changing:
            return linearized(self, q, qd, tau)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """Kinetic energy ½ q̇ᵀ D q̇ of links and rotors, J: (…,), zero-dimensional for one state.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.

        Raises:
            InputError: a wrong shape.
            ClosureError: a state in which the loops cannot be closed.
        """
        return self._robot.chain.kinetic_energy(q, qd)

    def potential_energy(self, q: ArrayLike) -> Floats:
        """Potential energy -Σ m g·p of all moving bodies, J: (…,), zero-dimensional for one state.

        It is zero at the height of the base frame's origin; its gradient is `gravity`.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.

        Raises:
            InputError: a wrong shape.
            ClosureError: a state in which the loops cannot be closed.
        """
        return self._robot.chain.potential_energy(q)

    def pose(self, q: ArrayLike, link: str, *, out: Floats | None = None) -> Floats:
        """The homogeneous transform (…, 4, 4) of a link's frame in the base frame; lengths in m.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            link: name of any link, also on a fixed joint.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            InputError: a wrong shape, an unknown link, or an `out` that does not fit.
            ClosureError: a state in which the loops cannot be closed.
        """
        return put(out, self._robot.chain.pose(q, link))

    def jacobian(self, q: ArrayLike, link: str, *, out: Floats | None = None) -> Floats:
        """The geometric Jacobian J (…, 6, n) of a link: [ṗ; ω] = J qd.

        ṗ (m/s) is the velocity of the origin of the link's frame, ω (rad/s) its angular velocity,
        both expressed in the base frame.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            link: name of any link, also on a fixed joint.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            InputError: a wrong shape, an unknown link, or an `out` that does not fit.
            ClosureError: a state in which the loops cannot be closed.
        """
        return put(out, self._robot.chain.jacobian(q, link))

    def mass_matrix(self, q: ArrayLike, *, out: Floats | None = None) -> Floats:
        """The joint-space inertia matrix D (…, n, n), kg·m² (kg·m or kg for prismatic joints).

        For a closed chain with `sensed` it is (…, n_a, n): motors by control coordinates. For more
        than 16 joints, D and C are computed by Newton–Euler, whatever the formulation.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            InputError: a wrong shape, or an `out` that does not fit.
            ClosureError: a state in which the loops cannot be closed.
        """
        return put(out, self._robot.chain.mass_matrix(q))

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *, out: Floats | None = None) -> Floats:
        """The Coriolis matrix C (…, n, n) of Christoffel symbols: dD/dt - 2C is skew-symmetric.

        For a closed chain with `sensed` it is (…, n_a, n): motors by control coordinates.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            InputError: a wrong shape, or an `out` that does not fit.
            ClosureError: a state in which the loops cannot be closed.

        Source: [EW21] compares methods to compute it.
        """
        return put(out, self._robot.chain.coriolis_matrix(q, qd))

    def gravity(
        self,
        q: ArrayLike,
        *,
        base_motion: BaseMotion | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """The gravity torques g (…, n), N·m or N, which hold the robot at rest.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            base_motion: the tilt of the base as `rotation` or `specific_force`; its rates and
                accelerations are ignored.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            InputError: a wrong shape, or an `out` that does not fit.
            ClosureError: a state in which the loops cannot be closed.
        """
        if base_motion is None:
            return put(out, self._robot.chain.gravity(q))
        return put(out, self._robot.gravity_on_moving_base(q, base_motion))

    # --- the standard parameters -------------------------------------------------------------

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """(p,): names of the standard parameters; see `mechanism.dynamic_parameters`."""
        return tuple(self._options.parameters(self.mechanism))

    @property
    def parameters(self) -> Floats:
        """The standard parameters π (p,), SI units, with payloads and changed friction."""
        return np.array(list(self._options.parameters(self.mechanism).values()))

    def regressor(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        base_motion: BaseMotion | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """The regressor Y (…, n, p): tau = Y π to rounding, for every formulation.

        For a closed chain Y is Tᵀ Y_tree, (…, n_a, p). Columns are in the order of
        `parameter_names`. Y depends on gravity, but not on inertias, friction or payloads. For
        many states, evaluate blocks into the same `out`, as allocating new memory costs more than
        the computation.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².
            base_motion: as in a call; not for a closed robot.
            out: an array of the result's shape to write to; None: a new one.

        Raises:
            InputError: a wrong shape, an `out` that does not fit, or a `base_motion` of a closed
                robot.
            ClosureError: a state in which the loops cannot be closed.

        Source: [AAH86], [KK87].
        """
        if base_motion is not None:
            found = self._robot.regressor_on_moving_base(
                q, qd, qdd, base_motion, self.parameter_names
            )
            return put(out, found)
        return self._robot.chain.regressor(q, qd, qdd, out)

    # --- the motors' side of the gears -------------------------------------------------------

    @property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the rotors, except those of locked joints: the order of motor torques."""
        return tuple(rotor.name for rotor in motors(self.mechanism))

    def motor_torques(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        base_motion: BaseMotion | None = None,
    ) -> MotorTorques:
        """The torques (drive, gear) (…, m) at the motors' shafts, N·m, in the order of
        `motor_names`.

        `drive` is the motor's electromagnetic torque: joint torque / gear ratio. `gear` is the
        torque that enters the gear: `drive` minus the torque that accelerates the rotor itself and
        overcomes its own friction.

        Args:
            q: (…, n) positions in the order of `joint_names`, rad or m.
            qd: (…, n) rates, rad/s or m/s.
            qdd: (…, n) accelerations, rad/s² or m/s².
            base_motion: as in a call; it also affects the torques that move the rotors.

        Raises:
            InputError: a wrong shape.
            ClosureError: as in a call.

        Returns:
            `MotorTorques`: `drive` and `gear`. If several motors share a joint, they are those of
            least norm.
        """
        return self._robot.motor_torques(q, qd, qdd, base_motion)

    @property
    def backend(self) -> str:
        """The backend that runs, and the reason if it is not the first choice."""
        return self._robot.chain.backend

    # --- what may change at run time -------------------------------------------------------

    @property
    def gravity_vector(self) -> Array:
        """The gravity vector (3,), m/s², in the base frame. May be assigned."""
        return self.mechanism.gravity

    @gravity_vector.setter
    def gravity_vector(self, value: ArrayLike) -> None:
        vector = finite("gravity_vector", value, 3)
        with self._changing:
            robot = self._robot
            self._adopt(replace(robot.bare, gravity=vector), robot.payloads)

    def set_payload(self, link: str, payload: Inertial | None) -> None:
        """Attach a payload to a link, replacing an earlier one; None removes it.

        Args:
            link: the name of any link.
            payload: mass (kg), centre of mass (m) and inertia about it (kg·m²), in the link's
                frame; None: no payload.

        Raises:
            InputError: no such link, a wrong shape, numbers that are not finite, a negative mass,
                or an inertia that is not symmetric or has a negative principal moment.
        """
        names = [each.name for each in self._robot.bare.links]
        if link not in names:
            raise wrong(InputError, "payload: link", link, choices(names))
        body = None if payload is None else checked.payload(f"payload of {link}", payload)
        with self._changing:
            robot = self._robot
            payloads = {name: each for name, each in robot.payloads.items() if name != link}
            self._adopt(robot.bare, payloads if body is None else {**payloads, link: body})

    def set_friction(
        self,
        joint: str,
        viscous: float,
        coulomb: float,
        *,
        offset: float = 0.0,
        coulomb_negative: float | None = None,
        stribeck_torque: float = 0.0,
        stribeck_rate: float = 1.0,
        stiffness: float = 0.0,
        presliding: float = 0.0,
        smoothing: float = 0.0,
    ) -> None:
        """Replace the friction law of a joint or rotor; see `mechanism.Friction` for the equation.

        The first law of its kind at a joint (with an offset, say, where there was none, or without
        smoothing) recompiles the kernels; any other compiles nothing.

        Args:
            joint: name of any joint (one that follows others has its own friction), or of a rotor
                whose name no joint has; its friction is on the motor's side, in N·m·s/rad and N·m.
            viscous: N·m·s/rad, or N·s/m for a prismatic joint.
            coulomb: N·m or N.
            offset: N·m or N, at every rate and at rest.
            coulomb_negative: N·m or N, replaces `coulomb` at negative rates; None: `coulomb`.
            stribeck_torque: N·m or N, added near rest.
            stribeck_rate: rad/s or m/s, the rate at which it has decayed to 1/e.
            stiffness: N·m/rad or N/m, of a spring whose torque at q = 0 is the offset.
            presliding: rad or m, the displacement over which dry friction builds up again after the
                direction of motion reverses.
            smoothing: rad/s or m/s, below which dry friction fades to zero.

        Raises:
            InputError: no such joint, a number that is not finite, or a law that drives the joint.
        """
        joints = self._robot.bare.tree_names
        shafts = [each.name for each in self._robot.bare.rotors if each.name not in joints]
        names = [*joints, *shafts]
        if joint not in names:
            raise wrong(InputError, "friction: joint", joint, choices(names))
        law = Friction(
            viscous, coulomb, offset, coulomb_negative, stribeck_torque, stribeck_rate, stiffness,
            presliding, smoothing,
        )  # fmt: skip
        for _, what, value, expected in law.faults(joint in shafts):
            raise wrong(InputError, f"{what} of {joint}", value, expected)

        with self._changing:
            bare = with_parts(self._robot.bare, {}, {joint: law})
            rotors = tuple(
                replace(rotor, friction=law) if rotor.name == joint and joint in shafts else rotor
                for rotor in bare.rotors
            )
            self._adopt(replace(bare, rotors=rotors), self._robot.payloads)

    def _adopt(self, bare: Mechanism, payloads: Mapping[str, Inertial]) -> None:
        """Switch to another robot of the same geometry in one assignment, or raise and keep the
        current one. The caller holds `_changing`."""
        self._become(self._robot.over(bare, payloads))


def _made(
    kind: type[InverseDynamics],
    bare: Mechanism,
    options: Options,
    payloads: Mapping[str, Inertial],
    where: Floats | None,
) -> InverseDynamics:
    """The unpickled object; a closed chain continues from its last state `where` (n_r,)."""
    dynamics = kind(bare, **asdict(options))
    if payloads:
        with dynamics._changing:
            dynamics._adopt(bare, payloads)
    if dynamics.closed is not None and where is not None:
        dynamics.closed.reset(dynamics.closed.closer.state(where))
    return dynamics


_LIVING: WeakSet[InverseDynamics] = WeakSet()


def _unlock_all() -> None:
    for each in list(_LIVING):
        each._unlock_child()


if hasattr(os, "register_at_fork"):
    # threads that held a lock do not exist in the child
    os.register_at_fork(after_in_child=_unlock_all)
