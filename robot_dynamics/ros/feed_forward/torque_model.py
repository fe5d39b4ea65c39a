# SPDX-License-Identifier: Apache-2.0
"""A robot, a formulation and a list of joints: what turns states into torques."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import mul

import numpy as np

from ...closure import ClosedChain
from ...dynamics import BaseMotion, InverseDynamics
from ...dynamics.motors import gear_matrix
from ...errors import InputError, choices, listed, wrong
from ...mechanism import Inertial, Link, Loop, Mechanism, Pose
from ...scalar import Floats
from .feedback import Feedback
from .followers import Followers
from .parameters import Settings
from .refusal import RefusedError
from .sensors import Sensors

ENDLESS = 1e150
"""N·m or N: no torque gets there"""

WITHIN = 1.0 - 1e-9
"""Of a norm of shares: rounding takes none beyond a limit"""


@dataclass(frozen=True)
class ModelSpec:
    """What a `Model` is built from: the robot, the settings, and what it carries."""

    mechanism: Mechanism
    settings: Settings
    payloads: Mapping[str, Inertial] = field(default_factory=dict)
    """By link"""
    pushed: frozenset[str] = frozenset()
    """Links that wrenches may act on"""

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        settings: Settings,
        payloads: Mapping[str, Inertial],
        pushed: frozenset[str],
    ) -> ModelSpec:
        """With those of the payloads and pushed links whose links are there."""
        links = {link.name for link in mechanism.links}
        carried = {k: each for k, each in payloads.items() if k in links}
        return cls(mechanism, settings, carried, pushed & links)

    @property
    def moved(self) -> bool:
        """Does something else move the base?"""
        chosen = self.settings.moving_base
        return chosen == "always" or (
            chosen == "described" and self.mechanism.base_motion is not None
        )

    @property
    def dynamics_key(self) -> tuple[object, ...]:
        """What kernels are compiled for: payloads are parameters of theirs, the rest is wiring."""
        s = self.settings
        mechanism, terms = id(self.mechanism), frozenset(s.terms)
        around = s.sensed, s.condition_limit, self.moved, self.pushed
        return mechanism, s.formulation, s.rotors, terms, s.friction_smoothing, around


class Model:
    """Torques of the joints that are driven, from the joints that are read.

    Attributes:
        joints: (n) names in the order of qdd.
        outputs: (m) names in the order of the torques: `joints`, or the motors; where there are
            more motors than degrees of freedom also those that follow.
        followers: these; None: there are none.
        read: (k) names in the order of q and qd: `joints` first, then those that move besides,
            the sensed ones last.
        optional: the sensed ones.
        sensors: what is read of these; None where they are solved.
        periodic: (n,) which of the joints may turn forever.
        slew: (m,) largest changes of the torques, N·m/s or N/s; None: no limit.
        feedback: the PD loop; None: there is none.
        moved: does something else move the base?
        base: how it moves now, where it moves; None: unknown.
        limits: (m,) largest magnitudes of the torques: `effort_limits`, else the description's;
            infinity where nothing is known.
        unlimited: (m,) where nothing is known.
        rates: (k,) largest magnitudes of the rates of `read`: `velocity_limits`, else the
            description's; infinity where nothing is known.

    Raises:
        InputError: the settings name joints that the robot does not have, or not in this way.
        RobotDynamicsError: see `InverseDynamics`.
    """

    def __init__(self, spec: ModelSpec):
        self.spec = spec
        mechanism, settings = spec.mechanism, spec.settings
        self.dynamics = InverseDynamics(
            mechanism,
            settings.formulation,
            rotors=settings.rotors,
            terms=settings.terms,
            friction_smoothing=settings.friction_smoothing,
            sensed=settings.sensed,
            condition_limit=settings.condition_limit,
        )
        if settings.gravity:
            self.dynamics.gravity_vector = settings.gravity
        for link, payload in spec.payloads.items():
            self.dynamics.set_payload(link, payload)
        names, locked = self.dynamics.joint_names, settings.locked
        closed = self.dynamics.closed
        self._driving = names if closed is None else closed.driving_names
        self.joints, self.outputs, self.limits = self._fitted(settings)
        besides = (name for name in names if name not in self.joints and name not in locked)
        self.read = (*self.joints, *besides)
        self.unlimited = np.isinf(self.limits)
        # neither zero nor infinite: of a limit of zero any torque is too much, and none is not
        self._shares = (1.0 / np.clip(self.limits, 1.0 / ENDLESS, ENDLESS)).tolist()
        self._rates = self._rate_limits(settings)
        self.rates = np.where(np.isnan(self._rates), math.inf, self._rates)
        self._fastest = (0.0, self.rates, 0.0)
        self.periodic = np.array(
            [mechanism.joint(name).type == "continuous" for name in self.joints], dtype=bool
        )

        self.followers: Followers | None = None
        if closed is not None and len(closed.actuated_names) > len(self._driving):
            self.followers = Followers(closed.mechanism, self.joints)
        self.slew = _one_each("slew_limits", settings.slew_limits, self.outputs)
        self.feedback = self._feedback(settings)

        column = {name: k for k, name in enumerate(names)}
        self._read = np.array([column[name] for name in self.read], dtype=np.intp)
        self._in_order = self.read == names
        self._driven = np.array([column[name] for name in self.joints], dtype=np.intp)
        actuated = self.dynamics.actuated_names
        driving = len(self._driving)
        self.optional = names[driving:]
        self._actuated = slice(driving)
        self._passive = slice(driving, len(names))
        named = self.outputs if settings.side == "joint" else ()
        self._out = np.array([actuated.index(name) for name in named], dtype=np.intp)
        self._q, self._qd, self._qdd = np.zeros((3, len(names)))
        self.sensors: Sensors | None = None
        if settings.sensed:
            tolerance = settings.sensor_tolerance
            self.sensors = Sensors(self.dynamics.mechanism, tolerance, self._closed)
        self.moved = spec.moved
        # all joints are read, driven and published, in the kernel's own order
        self._is_plain = (
            closed is None
            and settings.side == "joint"
            and not self.moved
            and self.read == self.joints == self.outputs == names
        )
        self.base: BaseMotion | None = BaseMotion()
        self._to_motors: Floats | None = None
        if settings.side != "joint":
            columns = [mechanism.joint_names.index(name) for name in actuated]
            # τ = Γᵀ τ_drive; what a rotor itself takes is the same with a wrench and without
            gears = gear_matrix(mechanism)[:, columns]
            self._to_motors = np.asarray(np.linalg.pinv(gears, rcond=1e-12), dtype=float)
        self._warm_up()
        self.base = None
        for name, position in locked.items():
            self._q[column[name]] = position

    def go_on_from(self, previous: Model) -> None:
        """Take over where the robot is from a model that ran until now, of the same mechanism.

        Call it between two states: the one before knows the way that the robot has gone.
        """
        if previous.spec.mechanism is not self.spec.mechanism:
            return
        if self.dynamics.closed and previous.dynamics.closed:
            self.dynamics.closed.reset(previous.dynamics.closed.last)
        if self.sensors is not None and previous.sensors is not None:
            self.sensors = previous.sensors
            self.sensors.go_on_with(self._closed)
            self.sensors.tolerance = self.spec.settings.sensor_tolerance

    def start_anew(self) -> None:
        """A robot with loops is on the assembly mode of its home, wherever it was seen last."""
        if self.dynamics.closed is not None:
            self.dynamics.closed.reset()
        if self.sensors is not None:
            self.sensors.reset()

    def _warm_up(self) -> None:
        """Build all that is built with the first call, and see that there are torques at home."""
        closed = self.dynamics.closed
        q = np.zeros(len(self._q)) if closed is None else closed.home.q_r[: len(self._q)]
        self._torques(q, np.zeros_like(q), np.zeros_like(q), self._base())
        if self.sensors is not None:
            self.believed(q[self._read], np.zeros_like(q))
            self.at_rest(q[self._read])
            self.sensors.reset()
        self._taken(q, dict.fromkeys(self.spec.pushed, np.zeros(6)))
        self.shared(q[self._read], np.zeros(len(self.joints)))
        # of trajectories, and of last words
        two = np.tile(q[self._read], (2, 1))
        still = np.zeros((2, len(self.joints)))
        self.along(two, np.zeros_like(two), still, self._base())

    def _fitted(self, settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
        """The joints to drive, the names of their torques and the limits of these.

        Raises:
            InputError: the settings do not fit this robot.
        """
        actuated = self.dynamics.actuated_names
        locked = settings.locked
        if settings.sensed and not settings.measured:
            raise wrong(InputError, "sensed", True, "false: feedback commanded reads no sensors")
        if settings.residual and not (settings.measured and settings.side == "joint"):
            raise wrong(
                InputError, "residual", True, "false: it needs feedback measured and side joint"
            )
        for name in locked:
            if name not in actuated:
                raise wrong(InputError, "locked_joints", name, choices(actuated))
        if len(actuated) > len(self._driving):
            self._check_shared(settings)
        joints = settings.joints or tuple(name for name in actuated if name not in locked)
        if not joints:
            raise wrong(InputError, "joints", joints, "at least one joint that is not locked")
        for k, name in enumerate(joints):
            if name not in actuated:
                raise wrong(InputError, "joints", name, choices(actuated))
            if name in joints[:k]:
                raise wrong(InputError, "joints", name, "each joint once")
            if name in locked:
                raise wrong(InputError, "joints", name, "a joint that is not in locked_joints")
        outputs = joints if settings.side == "joint" else self._motors(settings.side, joints)
        limits = _one_each("effort_limits", settings.effort_limits, outputs)
        if limits is None:
            limits = self._described_limits(joints)
        return tuple(name for name in joints if name in self._driving), outputs, limits

    def _check_shared(self, settings: Settings) -> None:
        """Of more motors than degrees of freedom: each one's torque counts on the others'.

        Raises:
            InputError: not all of them are driven, or what only one motor a joint can have.
        """
        actuated = self.dynamics.actuated_names
        if settings.locked:
            name = next(iter(settings.locked))
            raise wrong(InputError, "locked_joints", name, "none: redundant motors share the work")
        if missing := [name for name in actuated if name not in (settings.joints or actuated)]:
            raise wrong(
                InputError,
                "joints",
                list(settings.joints),
                f"{listed(missing)} as well: redundant motors share the work",
            )
        if settings.residual:
            raise wrong(
                InputError,
                "residual",
                True,
                "false: redundant motors may also work against each other",
            )

    def _feedback(self, settings: Settings) -> Feedback | None:
        """The PD loop, where gains are set.

        Raises:
            InputError: too few or too many gains, or no place for them.
        """
        p = _one_each("p_gains", settings.p_gains, self.joints)
        d = _one_each("d_gains", settings.d_gains, self.joints)
        if p is None and d is None:
            return None
        gains = "p_gains" if settings.p_gains else "d_gains"
        value = list(settings.p_gains or settings.d_gains)
        if not settings.measured:
            raise wrong(InputError, gains, value, "none: feedback commanded measures no error")
        if settings.side != "joint":
            raise wrong(InputError, gains, value, "none: they are of joints; set side to joint")
        none = np.zeros(len(self.joints))
        return Feedback(none if p is None else p, none if d is None else d, self.periodic)

    def _rate_limits(self, settings: Settings) -> Floats:
        """(k,) rad/s or m/s; NaN where nothing is known."""
        rates = np.full(len(self.read), math.nan)
        for k, name in enumerate(self.read):
            said = self.spec.mechanism.joint(name).limits
            if said is not None and said.velocity:
                rates[k] = said.velocity
        stated = _one_each("velocity_limits", settings.velocity_limits, self.joints)
        if stated is not None:
            rates[: len(stated)] = stated
        return rates

    def _described_limits(self, joints: tuple[str, ...]) -> Floats:
        """(m,) largest magnitudes of the torques of `joints`, or of the motors, by the description.

        A motor that drives one joint alone, and alone, may give the joint's limit over the gear
        ratio. Where several motors share joints, the description's limits do not apply.
        """
        mechanism, actuated = self.spec.mechanism, self.dynamics.actuated_names
        efforts = {name: mechanism.joint(name).limits for name in actuated}
        known = {
            name: math.inf if limits is None or limits.effort is None else float(limits.effort)
            for name, limits in efforts.items()
        }
        if self.spec.settings.side == "joint":
            return np.array([known[name] for name in joints])
        gears = gear_matrix(mechanism)[:, [mechanism.joint_names.index(name) for name in actuated]]
        limits = np.full(len(gears), math.inf)
        for k, row in enumerate(gears):
            driven = np.flatnonzero(row)
            if len(driven) == 1 and np.count_nonzero(gears[:, driven[0]]) == 1:
                # τ = Γ τ_drive
                limits[k] = known[actuated[driven[0]]] / abs(row[driven[0]])
        return limits

    def _motors(self, side: str, joints: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the motors, which have to drive all of these joints."""
        actuated = self.dynamics.actuated_names
        if missing := [name for name in actuated if name not in joints]:
            raise wrong(
                InputError,
                "joints",
                list(joints),
                f"{listed(missing)} as well: with side {side} all joints are driven",
            )
        mechanism = self.spec.mechanism
        columns = [mechanism.joint_names.index(name) for name in actuated]
        gears = gear_matrix(mechanism)[:, columns]
        # τ = Γᵀ τ_drive has a solution for every τ
        if np.linalg.matrix_rank(gears) < len(actuated):
            idle = [name for name, column in zip(actuated, gears.T, strict=True) if not any(column)]
            raise wrong(
                InputError,
                "side",
                side,
                f"joint: the description has no motor (`rotor`) for {listed(idle or actuated)}",
            )
        return self.dynamics.motor_names

    @property
    def name(self) -> str:
        """The robot's name."""
        return self.spec.mechanism.name

    def is_the_robot_of(self, other: Model) -> bool:
        """Do commands, states and torques for one mean the same for the other?

        Masses, friction, payloads, gravity, the formulation and the gains may differ.
        """
        names = (self.joints, self.outputs, self.read), (other.joints, other.outputs, other.read)
        if names[0] != names[1] or self.spec.settings.side != other.spec.settings.side:
            return False
        ours, theirs = self.spec.mechanism, other.spec.mechanism
        return ours is theirs or _kinematics(ours) == _kinematics(theirs)

    def believed(self, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """q, qd (k,) of `read`, with solved values for what is missing (NaN) or not trusted.

        Raises:
            ClosureError: the readings belong to no configuration of the mechanism.
        """
        if self.sensors is None:
            return q, qd
        if self._in_order:
            return self.sensors.believed(q, qd)
        self._q[self._read], self._qd[self._read] = q, qd
        q, qd = self.sensors.believed(self._q, self._qd)
        return q[self._read], qd[self._read]

    def __call__(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Torques (m,) of `outputs` at q, qd (k,) of `read` and qdd (n,) of `joints`.

        Joints that are read but not driven are taken with zero acceleration; the sensed ones
        follow the motors.

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        if self._is_plain:
            return self.dynamics(q, qd, qdd)
        self._q[self._read] = q
        self._qd[self._read] = qd
        self._qdd[self._driven] = qdd
        base = self._base()
        if self.sensors is None:
            return self._torques(self._q, self._qd, self._qdd, base)
        qdd_a = self._qdd[self._actuated]
        if base is None and self.spec.settings.side == "joint":
            torques: Floats = self._closed.consistent_torques(self._q, self._qd, qdd_a)[self._out]
            return torques
        self._qdd[self._passive] = self._closed.sensed_accelerations(self._q, self._qd, qdd_a)
        return self._torques(self._q, self._qd, self._qdd, base)

    @property
    def _closed(self) -> ClosedChain:
        assert self.dynamics.closed is not None
        return self.dynamics.closed

    def _base(self) -> BaseMotion | None:
        if self.moved and self.base is None:
            raise RefusedError("no base motion", "the motion of the base is not known")
        return self.base if self.moved else None

    def _torques(
        self, q: Floats, qd: Floats, qdd: Floats, base: BaseMotion | None = None
    ) -> Floats:
        side = self.spec.settings.side
        if side == "joint":
            torques: Floats = self.dynamics(q, qd, qdd, base_motion=base)[self._out]
            return torques
        motors = self.dynamics.motor_torques(q, qd, qdd, base_motion=base)
        return motors.drive if side == "drive" else motors.gear

    def shared(self, q: Floats, forces: Floats) -> Floats:
        """Torques (m,) of `outputs` that do at q (k,) of `read` what forces (n,) at `joints` do.

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        closed = self.dynamics.closed
        if self.followers is None or closed is None:
            return forces
        self._q[self._read] = q
        by_driving = np.zeros(len(self._driving))
        by_driving[self._driven] = forces
        S = closed.on_motors(closed.configuration(self._q))[:, : len(by_driving)]
        return np.asarray((S @ by_driving)[self._out])

    def taken_by(self, wrenches: Mapping[str, Floats], q: Floats) -> Floats:
        """What wrenches from outside add to the torques (m,) of `outputs` at q (k,) of `read`.

        Args:
            wrenches: by link, (6,): the force (N) and the moment (N·m) about the origin of the
                link's frame that act on it, on the link's axes. Those on links that the model was
                not built for have to wait.

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        self._q[self._read] = q
        ready = {link: each for link, each in wrenches.items() if link in self.spec.pushed}
        return self._taken(self._q, ready)

    def _taken(self, q: Floats, wrenches: Mapping[str, Floats]) -> Floats:
        if not wrenches:
            return np.zeros(len(self.outputs))
        # -Σ Jᵀ w
        tau = -self.dynamics.wrench_torques(q, wrenches, axes="link")
        torques: Floats = tau[self._out] if self._to_motors is None else tau @ self._to_motors
        return torques

    def along(self, q: Floats, qd: Floats, qdd: Floats, base: BaseMotion | None = None) -> Floats:
        """Torques (s, m) of `outputs` at s states of a motion; NaN where there is no such state.

        Where the robot is (the way that a closed one has gone) does not change, and any thread may
        call it. Joints that are sensed have no accelerations.

        Args:
            base: how the base moves, where something else moves it.

        Raises:
            RobotDynamicsError: see `InverseDynamics`.
        """
        rest = np.zeros((len(q), len(self._q)))
        states = np.tile(self._q, (len(q), 1)), rest, rest.copy()
        states[0][:, self._read], states[1][:, self._read] = q, qd
        states[2][:, self._driven] = qdd
        if self.spec.settings.side != "joint":
            return self._torques(*states, base=base)
        torques: Floats = self.dynamics(*states, base_motion=base)[:, self._out]
        return torques

    def at_rest(self, q: Floats) -> Floats:
        """Torques (m,) that carry the robot where it is: of the chosen terms, gravity alone."""
        return self(q, np.zeros_like(q), np.zeros(len(self.joints)))

    def is_allowed(self, torques: Floats) -> bool:
        """Are torques (m,) finite and within the limits, as the norm of their shares of these tells
        in one pass? False: each has to be looked at."""
        return math.hypot(*map(mul, torques.tolist(), self._shares)) <= WITHIN

    def fastest(self, times: float, acceleration: float) -> Floats:
        """(k,) rates of `read` that are believed: so many times their limits, or √acceleration."""
        if self._fastest[0] != acceleration:
            unknown = np.isnan(self._rates)
            rates = np.where(unknown, math.sqrt(acceleration), times * self._rates)
            self._fastest = (acceleration, rates, float(rates.min(initial=math.inf)))
        return self._fastest[1]

    def is_slow(self, qd: Floats, times: float, acceleration: float) -> bool:
        """Are rates qd (k,) within `fastest`, as their norm tells at a fraction of the cost?"""
        self.fastest(times, acceleration)
        return math.hypot(*qd.tolist()) <= self._fastest[2]

    def reach(self, q: Floats, acceleration: float) -> Floats:
        """Torques (m,) that robot and payload take at most at q (k,), at rest and at accelerations
        of `acceleration` rad/s² or m/s², whatever the chosen terms (rotors where these have them);
        infinity where they take none.

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        self._q[self._read] = q
        # |g| + |D| q̈
        D = np.abs(self.dynamics.mass_matrix(self._q)[:, self._driven])
        forces = np.abs(self.dynamics.gravity(self._q)) + D.sum(axis=1) * acceleration
        if self._to_motors is not None:
            torques = forces @ np.abs(self._to_motors)
        elif self.followers is not None:
            S = self._closed.on_motors(self._closed.configuration(self._q))
            torques = (np.abs(S) @ forces)[self._out]
        else:
            torques = forces[self._out]
        return np.where(torques > 0, torques, math.inf)

    @property
    def home(self) -> Floats:
        """q (k,) of `read`: the description's home, or zero."""
        closed = self.dynamics.closed
        if closed is not None:
            return np.asarray(closed.home.q_r[: len(self._q)][self._read])
        return np.zeros(len(self.read))


def _kinematics(mechanism: Mechanism) -> tuple[object, ...]:
    """All that a position, a rate or an acceleration of a joint depends on, to be compared."""

    def pose(each: Pose) -> tuple[object, ...]:
        return tuple(each.rotation.flat), tuple(each.translation.flat)

    def joint(of: Link) -> tuple[object, ...]:
        each = of.joint
        places = pose(each.origin), pose(each.tail), tuple(each.axis.flat)
        return of.name, of.parent, each.name, each.type, places, each.limits, each.coupling

    def loop(each: Loop) -> tuple[object, ...]:
        ends = [(end.link, pose(end.pose)) for end in (each.predecessor, each.successor)]
        return each.name, each.type, *ends

    links, loops = tuple(map(joint, mechanism.links)), tuple(map(loop, mechanism.loops))
    # where there are loops, it picks one of several configurations with the same motors' positions
    home = tuple(sorted(mechanism.home.items())) if loops else ()
    chosen = mechanism.actuated, mechanism.driving, mechanism.sensed, mechanism.platform
    return links, loops, home, chosen, mechanism.base, mechanism.base_motion


def _one_each(name: str, values: tuple[float, ...], of: tuple[str, ...]) -> Floats | None:
    """The values as an array; None: not set.

    Raises:
        InputError: they are not as many as the things that they are of.
    """
    if values and len(values) != len(of):
        expected = f"{len(of)} numbers, one each for {listed(of)}"
        raise wrong(InputError, name, list(values), expected)
    return np.array(values) if values else None
