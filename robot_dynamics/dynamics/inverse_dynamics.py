"""The façade: joint torques of a mechanism, fast, from numbers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike

from ..closure import CONDITION_LIMIT, ClosedChain, ConstraintForces
from ..codegen.kernel import as_floats, checked_threads, put
from ..errors import InputError, choices, wrong
from ..formulations.equations import TERMS
from ..formulations.layout import Recompile
from ..mechanism import Friction, Inertial, Link, Mechanism
from ..mechanism.parameters import standard_parameters
from ..mechanism.transform import with_payload
from ..scalar import Array, Floats
from . import closed as closed_robots
from . import inputs
from .base_motion import BaseMotion, MovingBase
from .closed import OfTree
from .linearization import Linearization, linearized
from .motors import MotorSide, MotorTorques, motors, tree_state
from .open_chain import OpenChain
from .regressor import RegressorKernel
from .tree import AtPlace, Tree


@dataclass(frozen=True, slots=True)
class _Robot:
    """The robot at one instant. Every call takes one and computes with it throughout."""

    bare: Mechanism
    """Without payloads"""
    payloads: Mapping[str, Inertial]
    """By link"""
    mechanism: Mechanism
    """With them"""
    chain: OpenChain | ClosedChain
    torques: Callable[..., Floats]
    tree: list[Tree] = field(default_factory=list)
    """Everything beside the torques, built on first use"""
    moving: list[MovingBase] = field(default_factory=list)
    """The same robot on a base that moves, built on first use"""


class InverseDynamics:
    """tau = D(q) qdd + C(q, qd) qd + g(q) + friction(qd), by any of the formulations.

    The formulation is recorded once and compiled; the kernel is kept in the user's cache. Arrays
    are float64 in SI units: q in rad or m, tau in N·m or N, in the order of `joint_names`. All
    states may be batched: (…, n) in, (…, n) out, over all cores.

    Gravity, payloads and friction may change while it runs: nothing is compiled, and a call on
    another thread sees the old robot or the new one, never a mixture. It can be copied and
    pickled; a copy shares nothing that changes, and kernels come from the cache on the other side.

    Args:
        mechanism: what `rd.load` gives.
        formulation: lagrange_euler, newton_euler, gibbs_appell or murphy.
        rotors: full, reflected (Γ²·I_zz at the joint, the mass on the mount) or none.
        terms: any of inertia, coriolis, gravity, friction, rotors (all by default). They add up:
            inertia and coriolis are those of the links, rotors those of the rotors, and gravity
            the weight of both.
        friction_smoothing: rate (rad/s or m/s) within which Coulomb friction fades to zero as
            tanh(qd / rate); 0: the sign itself. At rest it is zero either way.
        sensed: of a mechanism with loops: take q = [q_a, q_s], the passive joints that carry a
            sensor too, instead of q_a alone. D and C are then (n_a, n_a + n_s).
        condition_limit: of the passive Jacobian of a mechanism with loops: beyond it a state is too
            near a singularity, and refused.
        backend: auto, c or python. auto takes C where there is a compiler, else it warns once.
        threads: for batches; None: one for each core that this process may use.

    Attributes:
        formulation: its name.
        joint_names: the order of q, qd, qdd.
        actuated_names: the order of the torques.

    Raises:
        InputError: an unknown formulation, rotor model, term or backend.
        DescriptionError, ClosureError: loops that home does not close, too few or many motors.
        BackendError: `c` was asked for and is not available; the compiler's own words.
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
        mechanism = inputs.robot(mechanism)
        options: dict[str, Any] = {
            "rotors": rotors,
            "terms": inputs.terms(terms),
            "friction_smoothing": inputs.number("friction_smoothing", friction_smoothing, 0.0),
            "backend": backend,
            "threads": checked_threads(threads),
        }
        sensed = inputs.flag("sensed", sensed)
        condition_limit = inputs.number("condition_limit", condition_limit, 1.0)
        if mechanism.loops:
            options |= {"sensed": sensed, "condition_limit": condition_limit}
        elif sensed:
            raise wrong(InputError, "sensed", sensed, "False: the mechanism has no loops")
        self.formulation, self._options = formulation, options
        chain = self._compiled(mechanism)
        self.joint_names: tuple[str, ...] = chain.joint_names
        self.actuated_names: tuple[str, ...] = chain.actuated_names
        self._motors: MotorSide | None = None
        self._regressor: RegressorKernel | None = None
        self._tree: Tree | None = None
        self._freed: Tree | None = None
        self._moving: MovingBase | None = None
        if isinstance(chain, ClosedChain):
            # home closed, joints held that do no work
            mechanism = chain.mechanism
        self._robot = _Robot(mechanism, {}, mechanism, chain, chain.torques)
        self._unlock()

    def _unlock(self) -> None:
        self._changing = threading.RLock()
        """Held while the robot is changed, and during several calls to a closed chain, which is
        changed in place"""
        _LIVING.add(self)

    def __repr__(self) -> str:
        return (
            f"InverseDynamics(robot={self.mechanism.name!r}, joints={self.joint_names}, "
            f"formulation={self.formulation!r}, backend={self.backend!r})"
        )

    def __reduce__(self) -> Any:
        robot = self._robot
        where = None if self.closed is None else np.array(self.closed.last.q_r)
        choices = (self.formulation, self._options)
        return _made, (type(self), robot.bare, *choices, robot.payloads, where)

    def __copy__(self) -> InverseDynamics:
        if self.closed is not None:
            return deepcopy(self)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._unlock()
        return other

    @property
    def mechanism(self) -> Mechanism:
        """The robot as it is now, payloads included."""
        return self._robot.mechanism

    @property
    def closed(self) -> ClosedChain | None:
        """Of a mechanism with loops its positions, Jacobians and state; None: no loops."""
        chain = self._robot.chain
        return chain if isinstance(chain, ClosedChain) else None

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
        """Torques (…, n) at q, qd, qdd (…, n).

        Args:
            base_motion: how the base moves, where something else moves it; gravity follows. The
                first call with one compiles. `terms` then have to have inertia, coriolis and, with
                rotors, rotors, or none of them: then gravity follows, and that is all.
            wrenches: what acts on links from outside, by the link's name, (6,) or (…, 6): the force
                (N) and the moment about the origin of the link's frame (N·m), on base axes. A push
                that helps makes the torques smaller: tau = … - Σ Jᵀ w.
            out: where to write them, float64 of the result's shape; it is what is returned. A call
                with plain float64 arrays and out allocates nothing.

        Raises:
            InputError: a wrong shape or type, or an unknown link; the message says which and what
                was expected.
            ClosureError: of a closed robot, a state that can't be closed or is too near a
                singularity.
        """
        if base_motion is not None:
            moving = self._moving_base()
            tau = moving.torques(q, qd, qdd, base_motion, self.closed)
            if moving.adds:
                tau = tau + self(q, qd, qdd)
            if wrenches:
                # it depends on where the links are alone
                tau = tau - self.wrench_torques(q, wrenches)
            return tau if out is None else put(out, tau)
        if wrenches is None:
            robot = self._robot
            if out is None:
                return robot.torques(q, qd, qdd)
            if isinstance(robot.chain, OpenChain):
                return robot.torques(q, qd, qdd, out=out)
            return put(out, robot.torques(q, qd, qdd))
        acting = {link: inputs.wrench(link, wrench) for link, wrench in wrenches.items()}
        robot = self._robot
        of_links: AtPlace | OfTree
        if isinstance(robot.chain, OpenChain):
            tau, of_links = robot.torques(q, qd, qdd), self._tree_of(robot).at(q)
        else:
            with self._changing:
                assert self.closed is not None
                tau, q_r = self.closed.solved(q, qd, qdd)
                of_links = self._opened(q_r)
        for link, wrench in acting.items():
            tau = tau - of_links.wrench_torques(link, wrench)
        return tau if out is None else put(out, tau)

    def wrench_torques(
        self, q: ArrayLike, wrenches: Mapping[str, ArrayLike], *, axes: str = "base"
    ) -> Floats:
        """Σ Jᵀ w (…, n): what wrenches from outside take of the torques at q (…, n).

        Args:
            wrenches: as in a call.
            axes: base, or link: those of each wrench's own link.

        Raises:
            InputError, ClosureError: as in a call.
        """
        acting = {link: inputs.wrench(link, wrench) for link, wrench in wrenches.items()}
        if axes not in ("base", "link"):
            raise wrong(InputError, "axes", axes, "base or link")
        robot = self._robot
        of_links: AtPlace | OfTree
        if isinstance(robot.chain, OpenChain):
            of_links, place = self._tree_of(robot).at(q), as_floats("q", q)
        else:
            with self._changing:
                assert self.closed is not None
                place = self.closed.configuration(q)
                of_links = self._opened(place)
        tau = np.zeros((*place.shape[:-1], len(self.actuated_names)))
        for link, wrench in acting.items():
            if axes == "link":
                R = of_links.pose(link)[..., :3, :3]
                both = np.stack([wrench[..., :3], wrench[..., 3:]], axis=-1)
                wrench = np.concatenate(np.moveaxis(R @ both, -1, 0), axis=-1)
            tau = tau + of_links.wrench_torques(link, wrench)
        return tau

    def constraint_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrenches: Mapping[str, ArrayLike] | None = None,
    ) -> ConstraintForces:
        """What holds a robot with loops together at q, qd, qdd (…, n), of the chosen terms: the
        multipliers λ, the wrench [force; moment] in each loop's joint (…, 6), and that between the
        platform and its legs.

        Args:
            wrenches: as in a call.

        Raises:
            InputError: a wrong shape, an unknown link, or a robot without loops.
            ClosureError: as in a call.
        """
        acting = {k: inputs.wrench(k, each) for k, each in (wrenches or {}).items()}
        with self._changing:
            if self.closed is None:
                raise wrong(InputError, "constraint_forces", "no loops", "a robot with loops")
            return closed_robots.constraint_forces(self.closed, self._tree_with, q, qd, qdd, acting)

    def forward(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        base_motion: BaseMotion | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """Accelerations qdd (…, n) at q, qd and torques tau (…, n): the inverse of a call.

        Not finite, or without meaning, where D is singular: where a joint has nothing to move.

        Args:
            base_motion: as in a call.
            out: where to write them.

        Raises:
            InputError: a wrong shape; `terms` without inertia; `sensed`, where torques don't fix
                all of q.
            ClosureError: of a closed robot, as in a call.
        """
        if base_motion is not None:
            still = np.zeros(len(self.joint_names))
            # what the base's motion takes of the torques does not depend on q̈
            moved = self(q, qd, still, base_motion=base_motion)
            tau = as_floats("tau", tau) - (moved - self(q, qd, still))
        robot = self._robot
        if isinstance(robot.chain, OpenChain):
            return self._tree_of(robot).forward(q, qd, tau, out)
        with self._changing:
            assert self.closed is not None
            qdd = closed_robots.forward(self.closed, q, qd, tau)
        return qdd if out is None else put(out, qdd)

    def derivatives(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> tuple[Floats, Floats, Floats]:
        """(∂tau/∂q, ∂tau/∂qd, ∂tau/∂qdd), (…, n, n) each, at q, qd, qdd (…, n).

        The last is D, as long as inertia is among the terms. Row i is the torque's, column j the
        coordinate's; of a closed robot all other joints follow, rows are the actuated joints', and
        with `sensed` they are exact where the sensors agree with the motors. Coulomb friction has
        no slope unless it is smoothed: its jump is left out.

        Raises:
            InputError: a wrong shape.
            ClosureError: of a closed robot, as in a call.
        """
        robot = self._robot
        if isinstance(robot.chain, ClosedChain):
            out = robot.chain.derivatives(q, qd, qdd)
        else:
            out = self._tree_of(robot).derivatives(q, qd, qdd)
        return out[..., 0, :, :], out[..., 1, :, :], out[..., 2, :, :]

    def linearize(
        self, q: ArrayLike, qd: ArrayLike | None = None, tau: ArrayLike | None = None
    ) -> Linearization:
        """δẋ = A δx + B δu with x = [q; qd], u = tau, about q, qd, tau (…, n): a state, or every
        state of a motion (with the torques that a call gives for it).

        Args:
            qd: None: at rest.
            tau: None: the torques that hold these rates, qdd = 0.

        Raises:
            InputError: a wrong shape; `sensed`, where torques don't fix all of q; more motors than
                degrees of freedom, and torques with which they work against each other.
            ClosureError: of a closed robot, as in a call.
        """
        with self._changing:
            return linearized(self, q, qd, tau)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """½ q̇ᵀ D q̇ (…,), J, of links and rotors at q, qd (…, n); zero-dimensional of one state.

        Raises:
            InputError: a wrong shape.
        """
        robot = self._robot
        if isinstance(robot.chain, OpenChain):
            return self._tree_of(robot).kinetic_energy(q, qd)
        with self._changing:
            return self._opened_at(q).kinetic_energy(qd)

    def potential_energy(self, q: ArrayLike) -> Floats:
        """-Σ m g·p (…,), J, of all that moves, at q (…, n): zero at the height of the base frame's
        origin. Its gradient is `gravity`.

        Raises:
            InputError: a wrong shape.
        """
        robot = self._robot
        if isinstance(robot.chain, OpenChain):
            return self._tree_of(robot).potential_energy(q)
        with self._changing:
            return self._opened_at(q).potential_energy()

    def pose(self, q: ArrayLike, link: str, *, out: Floats | None = None) -> Floats:
        """(…, 4, 4): the frame of a link, on a fixed joint or not, in the base frame, at q (…, n).

        Raises:
            InputError: a wrong shape, or an unknown link.
        """
        robot = self._robot
        if isinstance(robot.chain, OpenChain):
            result = self._tree_of(robot).pose(q, link)
        else:
            with self._changing:
                result = self._opened_at(q).pose(link)
        return result if out is None else put(out, result)

    def jacobian(self, q: ArrayLike, link: str, *, out: Floats | None = None) -> Floats:
        """J (…, 6, n) of a link at q (…, n): [ṗ; ω] = J qd, the velocity (m/s) of the origin of its
        frame and its rate (rad/s), both on base axes.

        Raises:
            InputError: a wrong shape, or an unknown link.
        """
        robot = self._robot
        if isinstance(robot.chain, OpenChain):
            result = self._tree_of(robot).jacobian(q, link)
        else:
            with self._changing:
                result = self._opened_at(q).jacobian(link)
        return result if out is None else put(out, result)

    def _moving_base(self) -> MovingBase:
        robot = self._robot
        if not robot.moving:
            with self._changing:
                self._moving = self._with_moving_base(robot)
                robot.moving.append(self._moving)
        return robot.moving[0]

    def _with_moving_base(self, robot: _Robot) -> MovingBase:
        tree = _tree(robot)
        if self._moving is not None:
            try:
                return self._moving.over(tree, robot.mechanism)
            except Recompile:
                pass
        names = ("rotors", "terms", "friction_smoothing", "backend", "threads")
        options = {name: self._options[name] for name in names}
        return MovingBase(tree, robot.mechanism, self.formulation, **options)

    def _tree_of(self, robot: _Robot) -> Tree:
        if not robot.tree:
            tree = self._tree
            mechanism = _tree(robot)
            try:
                made = tree.over(mechanism) if tree else None
            except Recompile:
                made = None
            robot.tree.append(made or self._new_tree(mechanism))
            self._tree = robot.tree[0]
        return robot.tree[0]

    def _tree_with(self, mechanism: Mechanism) -> Tree:
        """The tree of a closed robot with its platform on no leg; the caller holds `_changing`."""
        if self._freed is None:
            self._freed = self._new_tree(mechanism)
        return self._freed

    def _new_tree(self, mechanism: Mechanism) -> Tree:
        names = ("rotors", "terms", "friction_smoothing", "backend", "threads")
        return Tree(mechanism, **{name: self._options[name] for name in names})

    def _opened_at(self, q: ArrayLike) -> OfTree:
        """A closed robot's tree at a state (…, k); the caller holds `_changing`."""
        assert self.closed is not None
        return self._opened(self.closed.forward(q).q_r)

    def _opened(self, q_r: Floats) -> OfTree:
        """The same at all joints (…, n_r) of a state that was solved."""
        assert self.closed is not None
        return OfTree(self.closed, self._tree_of(self._robot), q_r)

    def mass_matrix(self, q: ArrayLike, *, out: Floats | None = None) -> Floats:
        """D (…, n, n), kg·m² (kg·m, kg), at q (…, n)."""
        result = self._robot.chain.mass_matrix(q)
        return result if out is None else put(out, result)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *, out: Floats | None = None) -> Floats:
        """C (…, n, n) of Christoffel symbols at q, qd (…, n): dD/dt - 2C is skew."""
        result = self._robot.chain.coriolis_matrix(q, qd)
        return result if out is None else put(out, result)

    def gravity(self, q: ArrayLike, *, out: Floats | None = None) -> Floats:
        """g (…, n), N·m or N, at q (…, n)."""
        result = self._robot.chain.gravity(q)
        return result if out is None else put(out, result)

    # --- the standard parameters -------------------------------------------------------------

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """(p,): the numbers that the torques are linear in, see `mechanism.parameters`."""
        return tuple(self._parameters())

    @property
    def parameters(self) -> Floats:
        """π (p,) in SI units, payloads and changed friction included: tau = Y π."""
        return np.array(list(self._parameters().values()))

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, out: Floats | None = None
    ) -> Floats:
        """Y (…, n, p) at q, qd, qdd (…, n): tau = Y π to rounding, whatever the formulation.

        Of a closed chain Y is Tᵀ Y_tree, (…, n_a, p). Columns are in the order of
        `parameter_names`; no inertia, friction or payload changes Y, gravity does. Into `out` it
        goes as in a call: for many states write block after block into one array, since fresh
        memory costs more than the numbers in it.

        Raises:
            InputError: a wrong shape.
            ClosureError: a state that can't be closed.
        """
        robot = self._robot
        if isinstance(robot.chain, OpenChain):
            return self._regressor_of(robot).matrix(robot.mechanism, q, qd, qdd, out)
        with self._changing:
            robot = self._robot
            assert self.closed is not None
            Y = self._regressor_of(robot).projected(self.closed, q, qd, qdd)
            return Y if out is None else put(out, Y)

    def _regressor_of(self, robot: _Robot) -> RegressorKernel:
        regressor, o = self._regressor, self._options
        tree = _tree(robot)
        if regressor is None or not regressor.fits(tree):
            regressor = self._regressor = RegressorKernel(
                tree,
                robot.mechanism,
                self._rotors,
                frozenset(o["terms"]),
                o["friction_smoothing"],
                o["backend"],
                o["threads"],
            )
        return regressor

    def _parameters(self) -> dict[str, float]:
        return standard_parameters(
            self.mechanism, self._rotors, "friction" in self._options["terms"]
        )

    @property
    def _rotors(self) -> str:
        """The model of the rotors whose motion or weight the torques have in them."""
        terms = self._options["terms"]
        return self._options["rotors"] if {"rotors", "gravity"} & set(terms) else "none"

    # --- the motors' side of the gears -------------------------------------------------------

    @property
    def motor_names(self) -> tuple[str, ...]:
        """The rotors that turn (not those of locked joints): the order of motor torques."""
        return tuple(rotor.name for rotor in motors(self.mechanism))

    def motor_torques(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        base_motion: BaseMotion | None = None,
    ) -> MotorTorques:
        """(drive, gear) (…, m), N·m, at q, qd, qdd (…, n).

        `drive` is what a motor's field must give: joint torque / gear ratio. `gear` is what
        enters the gear: the same less what the rotor itself takes.

        Args:
            base_motion: as in a call; what a rotor takes has the base's motion in it, too.

        Raises:
            InputError: a wrong shape.
        """
        if base_motion is not None:
            moving = self._moving_base()
            found = moving.motor_torques(q, qd, qdd, base_motion, self.closed, self.actuated_names)
            if not moving.adds:
                return found
            standing = self.motor_torques(q, qd, qdd)
            return MotorTorques(standing.drive + found.drive, standing.gear + found.gear)
        robot = self._robot
        if isinstance(robot.chain, OpenChain):
            tau = robot.torques(q, qd, qdd)
        else:
            with self._changing:
                robot = self._robot
                assert self.closed is not None
                tau, q_r = self.closed.solved(q, qd, qdd)
                q, qd, qdd = tree_state(self.closed, q_r, qd, qdd, robot.bare.joint_names)
        side, bare = self._motors, robot.bare
        if side is None:
            o = self._options
            side = self._motors = MotorSide(
                bare, self._rotors, o["terms"], o["backend"], o["threads"]
            )
        actuated = [bare.joint_names.index(name) for name in self.actuated_names]
        return side.torques(actuated, tau, q, qd, qdd, robot.mechanism.gravity)

    @property
    def backend(self) -> str:
        """What runs, and why where it is not the first choice."""
        return self._robot.chain.backend

    # --- what may change while it runs -----------------------------------------------------

    @property
    def gravity_vector(self) -> Array:
        """(3,), m/s², in the base frame. May be assigned."""
        return self.mechanism.gravity

    @gravity_vector.setter
    def gravity_vector(self, value: ArrayLike) -> None:
        vector = inputs.finite("gravity_vector", value, 3)
        with self._changing:
            robot = self._robot
            self._adopt(replace(robot.bare, gravity=vector), robot.payloads)

    def set_payload(self, link: str, payload: Inertial | None) -> None:
        """Weld a body to a link, in place of the one there was; None takes it off.

        Args:
            link: the name of any link.
            payload: mass, centre of mass and inertia in the link's frame.

        Raises:
            InputError: no such link, a wrong shape, numbers that are not finite, a negative mass,
                or an inertia that is not symmetric or has a negative principal moment.
        """
        names = [each.name for each in self._robot.bare.links]
        if link not in names:
            raise wrong(InputError, "payload: link", link, choices(names))
        body = None if payload is None else inputs.payload(f"payload of {link}", payload)
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
    ) -> None:
        """Another law of friction at a joint: see `mechanism.Friction` for its terms and units.

        The first law of its kind at a joint (with an offset, say, where there was none) compiles
        the kernels anew; any other compiles nothing.

        Raises:
            InputError: no such joint, a number that is not finite, or a law that drives the joint.
        """
        names = self._robot.bare.tree_names
        if joint not in names:
            raise wrong(InputError, "friction: joint", joint, choices(names))
        law = Friction(viscous, coulomb, offset, coulomb_negative, stribeck_torque, stribeck_rate)
        for what, value, expected in law.faults():
            raise wrong(InputError, f"{what} of {joint}", value, expected)

        def rubbing(link: Link) -> Link:
            if link.joint.name != joint:
                return link
            return replace(link, joint=replace(link.joint, friction=law))

        with self._changing:
            bare = self._robot.bare
            links = tuple(rubbing(link) for link in bare.links)
            self._adopt(replace(bare, links=links), self._robot.payloads)

    def _adopt(self, bare: Mechanism, payloads: Mapping[str, Inertial]) -> None:
        """Take over another robot of the same geometry, in one assignment, or raise and keep
        the one there is. Whoever calls holds `_changing`."""
        loaded = bare
        for link, body in payloads.items():
            loaded = with_payload(loaded, link, body)
        chain = self._robot.chain
        if isinstance(chain, ClosedChain):
            chain.update(loaded)
        else:
            try:
                chain = chain.over(loaded)
            except Recompile:
                chain = self._compiled(loaded)
        self._robot = _Robot(bare, payloads, loaded, chain, chain.torques)

    def _compiled(self, mechanism: Mechanism) -> OpenChain | ClosedChain:
        kind = ClosedChain if mechanism.loops else OpenChain
        return kind(mechanism, self.formulation, **self._options)


def _tree(robot: _Robot) -> Mechanism:
    """The tree whose joints a robot's whole state is given by."""
    return robot.chain.tree if isinstance(robot.chain, ClosedChain) else robot.mechanism


def _made(
    kind: type[InverseDynamics],
    bare: Mechanism,
    formulation: str,
    options: dict[str, Any],
    payloads: Mapping[str, Inertial],
    where: Floats | None,
) -> InverseDynamics:
    """What was pickled; a closed chain goes on from where (n_r,) it was."""
    dynamics = kind(bare, formulation, **options)
    if payloads:
        with dynamics._changing:
            dynamics._adopt(bare, payloads)
    if dynamics.closed is not None and where is not None:
        dynamics.closed.reset(dynamics.closed.solver.state(where))
    return dynamics


_LIVING: WeakSet[InverseDynamics] = WeakSet()


def _unlock_all() -> None:
    for each in list(_LIVING):
        each._unlock()


if hasattr(os, "register_at_fork"):
    # whoever held a lock is not there in the child
    os.register_at_fork(after_in_child=_unlock_all)
