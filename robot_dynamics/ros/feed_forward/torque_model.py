# SPDX-License-Identifier: Apache-2.0
"""The model that turns states into torques: a robot, a formulation and a list of joints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from operator import mul

import numpy as np

from ...closure import ClosedChain
from ...dynamics import BaseMotion, InverseDynamics
from ...dynamics.motors import gear_matrix
from ...errors import InputError, choices, counted, listed, wrong
from ...mechanism import Inertial, Link, Loop, Mechanism, Pose
from ...scalar import Floats
from .feedback import Feedback
from .followers import Followers
from .parameters import Settings
from .refusal import RefusedError
from .sensors import Sensors

ENDLESS = 1e150
"""N·m or N: no torque reaches this"""

IMPLAUSIBLE = 2.0
"""Factor on the velocity limit: no real motion is so fast, so such a reading is not trusted"""

WITHIN = 1.0 - 1e-9
"""Bound on the norm of torques relative to their limits: below it, no torque exceeds its limit
despite rounding errors"""


@dataclass(frozen=True)
class ModelSpec:
    """The basis of a `Model`: the robot, the settings, payloads and links with wrenches."""

    mechanism: Mechanism
    settings: Settings
    payloads: Mapping[str, Inertial] = field(default_factory=dict)
    """By link"""
    wrench_links: frozenset[str] = frozenset()
    """Links on which wrenches may act"""

    @property
    def moved(self) -> bool:
        """Does something else move the base?"""
        chosen = self.settings.moving_base
        return chosen == "always" or (
            chosen == "described" and self.mechanism.base_motion is not None
        )

    @property
    def dynamics_key(self) -> tuple[object, ...]:
        """Everything the compiled kernels depend on.

        Payloads are run-time parameters of the kernels, and the other settings do not affect them.
        """
        s = self.settings
        mechanism, terms = id(self.mechanism), frozenset(s.terms)
        around = s.sensed, s.condition_limit, self.moved, self.wrench_links
        return mechanism, s.formulation, s.rotors, terms, s.friction_smoothing, around


class Model:
    """Computes torques of the driven joints from the state of the joints that are read.

    Args:
        spec: the robot, the settings, payloads and links with wrenches.

    Attributes:
        joints: (n) names in the order of qdd.
        outputs: (m) names in the order of the torques: `joints`, or the motors; with more motors
            than degrees of freedom, also the motors that follow.
        followers: the motors that follow; None: there are none.
        read: (k) names in the order of q and qd: first `joints`, then other moving joints, the
            sensed ones last.
        optional: the sensed joints.
        sensors: monitors the readings of the sensed joints; None: passive joints are solved.
        periodic: (n,) which of `joints` are continuous.
        slew: (m,) largest rates of change of the torques, N·m/s or N/s; None: no limit.
        feedback: the PD loop; None: there is none.
        moved: does something else move the base?
        base: the base's current motion, if it moves; None: unknown.
        limits: (m,) largest magnitudes of the torques, N·m or N: `effort_limits`, or the
            description's; infinity if neither is known.
        unlimited: (m,) which torques have no known limit.
        rates: (k,) largest magnitudes of the rates of `read`, rad/s or m/s: `velocity_limits`, or
            the description's; infinity if neither is known.

    Raises:
        InputError: the settings name unknown joints, or do not fit this robot.
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
        # q without the sensed joints
        self._driving = names if closed is None else closed.driving_names
        self.joints, self.outputs, self.limits = self._fitted(settings)
        undriven = (name for name in names if name not in self.joints and name not in locked)
        self.read = (*self.joints, *undriven)
        self.unlimited = np.isinf(self.limits)
        # shares must be finite and non-zero: with a limit of zero, only a torque of zero is allowed
        self._shares = (1.0 / np.clip(self.limits, 1.0 / ENDLESS, ENDLESS)).tolist()
        self._rates = self._rate_limits(settings)
        self.rates = np.where(np.isnan(self._rates), math.inf, self._rates)
        self._fastest = (math.nan, self.rates, 0.0)
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
        self._driven = np.array([column[name] for name in self.joints], dtype=np.intp)
        actuated = self.dynamics.actuated_names
        driving = len(self._driving)
        self.optional = names[driving:]
        self._actuated = slice(driving)
        self._passive = slice(driving, len(names))
        named = self.outputs if settings.side == "joint" else ()
        self._out = np.array([actuated.index(name) for name in named], dtype=np.intp)
        self._q = self.dynamics.home.copy()
        self._qd, self._qdd = np.zeros((2, len(names)))
        for name, position in locked.items():
            self._q[column[name]] = position
        self.sensors: Sensors | None = None
        if settings.sensed:
            self.sensors = Sensors(
                self.dynamics.mechanism, threshold=settings.sensor_tolerance, model=self._closed
            )
        self.moved = spec.moved
        # all joints are read, driven and published, in the kernel's own order
        self._is_plain = (
            settings.side == "joint" and not self.moved and self.joints == self.outputs == names
        )
        self.base: BaseMotion | None = BaseMotion()
        # a batch leaves a closed robot at its last state
        self._aside = self.dynamics if closed is None else copy(self.dynamics)
        self._to_motors: Floats | None = None
        if settings.side != "joint":
            # τ = Γᵀ τ_drive; a wrench does not change the torque that moves the rotor itself
            self._to_motors = np.asarray(np.linalg.pinv(self._gears, rcond=1e-12), dtype=float)
        self._warm_up()
        self.base = None

    def continue_from(self, previous: Model) -> None:
        """Take over the robot's configuration from the previous model of the same mechanism.

        Call this between two states: until now the previous model has followed the robot.

        Args:
            previous: the model that ran until now; ignored if its mechanism is another one.
        """
        if previous.spec.mechanism is not self.spec.mechanism:
            return
        if self.dynamics.closed and previous.dynamics.closed:
            self.dynamics.closed.reset(previous.dynamics.closed.last)
        if self.sensors is not None and previous.sensors is not None:
            self.sensors = previous.sensors
            self.sensors.model = self._closed
            self.sensors.threshold = self.spec.settings.sensor_tolerance

    def assume_home(self) -> None:
        """Assume that a robot with loops is in the assembly mode of its home, whatever its last
        known configuration."""
        if self.dynamics.closed is not None:
            self.dynamics.closed.reset()
        if self.sensors is not None:
            self.sensors.reset()

    def _warm_up(self) -> None:
        """Build everything that a first call builds, and check that there are torques at home,
        with locked joints at their positions."""
        q = self._q.copy()
        self._torques(q, np.zeros_like(q), np.zeros_like(q), self._base())
        if self.sensors is not None:
            self.corrected(q[self._read], np.zeros(len(self.read)))
            self.at_rest(q[self._read])
            self.sensors.reset()
        self._wrench_torques(q, dict.fromkeys(self.spec.wrench_links, np.zeros(6)))
        self.required_torques(q[self._read], 1.0)
        self.shared(q[self._read], np.zeros(len(self.joints)))
        # batches: for trajectories, and for the last torques from the watchdog's thread
        two = np.tile(q[self._read], (2, 1))
        still = np.zeros((2, len(self.joints)))
        self.along(two, np.zeros_like(two), still, self._base())

    def _fitted(self, settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
        """The driven joints, the names of the torques and their limits.

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
        """Check the settings of a robot with more motors than degrees of freedom, in which each
        motor's torque relies on the torques of the others.

        Raises:
            InputError: not all motors are driven, or a setting requires independent motors.
        """
        actuated = self.dynamics.actuated_names
        if settings.locked:
            name = next(iter(settings.locked))
            raise wrong(
                InputError, "locked_joints", name, "none: redundant motors share the torque"
            )
        if missing := [name for name in actuated if name not in (settings.joints or actuated)]:
            raise wrong(
                InputError,
                "joints",
                list(settings.joints),
                f"{listed(missing)} as well: redundant motors share the torque",
            )
        if settings.residual:
            raise wrong(
                InputError,
                "residual",
                True,
                "false: redundant motors may also work against each other",
            )

    def _feedback(self, settings: Settings) -> Feedback | None:
        """The PD loop, if gains are set.

        Raises:
            InputError: too few or too many gains, or settings with which gains cannot be used.
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
            raise wrong(InputError, gains, value, "none: gains are for joints; set side to joint")
        none = np.zeros(len(self.joints))
        return Feedback(none if p is None else p, none if d is None else d, self.periodic)

    def _rate_limits(self, settings: Settings) -> Floats:
        """Velocity limits (k,), rad/s or m/s; NaN if unknown."""
        joint = self.spec.mechanism.joint
        rates = np.array([float(joint(name).ends.velocity or math.nan) for name in self.read])
        stated = _one_each("velocity_limits", settings.velocity_limits, self.joints)
        if stated is not None:
            rates[: len(stated)] = stated
        return rates

    def _described_limits(self, joints: tuple[str, ...]) -> Floats:
        """The description's limits (m,) of the torques of `joints` or of the motors.

        If a motor and a joint are connected only with each other, the motor's limit is the joint's
        divided by the gear ratio. If several motors share joints, the description's limits do not
        apply.
        """
        mechanism, actuated = self.spec.mechanism, self.dynamics.actuated_names
        efforts = {name: mechanism.joint(name).ends.effort for name in actuated}
        known = {name: math.inf if x is None else float(x) for name, x in efforts.items()}
        if self.spec.settings.side == "joint":
            return np.array([known[name] for name in joints])
        gears = self._gears
        limits = np.full(len(gears), math.inf)
        for k, row in enumerate(gears):
            driven = np.flatnonzero(row)
            if len(driven) == 1 and np.count_nonzero(gears[:, driven[0]]) == 1:
                # τ = Γ τ_drive
                limits[k] = known[actuated[driven[0]]] / abs(row[driven[0]])
        return limits

    def _motors(self, side: str, joints: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the motors, which must drive all of these joints."""
        actuated = self.dynamics.actuated_names
        if missing := [name for name in actuated if name not in joints]:
            raise wrong(
                InputError,
                "joints",
                list(joints),
                f"{listed(missing)} as well: with side {side} all joints are driven",
            )
        gears = self._gears
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
    def _gears(self) -> Floats:
        """Γ (motors, actuated joints): the motors' rates from those of the actuated joints."""
        mechanism = self.spec.mechanism
        columns = [mechanism.joint_names.index(name) for name in self.dynamics.actuated_names]
        return gear_matrix(mechanism)[:, columns]

    def is_the_robot_of(self, other: Model) -> bool:
        """Do commands, states and torques have the same meaning for both models?

        Masses, friction, payloads, gravity, the formulation and the gains may differ.

        Args:
            other: the other model.
        """
        names = (self.joints, self.outputs, self.read), (other.joints, other.outputs, other.read)
        if names[0] != names[1] or self.spec.settings.side != other.spec.settings.side:
            return False
        ours, theirs = self.spec.mechanism, other.spec.mechanism
        return ours is theirs or _kinematics(ours) == _kinematics(theirs)

    def corrected(self, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """q, qd (k,) of `read`, with readings that are missing or not trusted replaced by solved
        values.

        Args:
            q: (k,) positions, rad or m; NaN: missing.
            qd: (k,) rates, rad/s or m/s; NaN: missing.

        Raises:
            ClosureError: the readings belong to no configuration of the mechanism.
        """
        assert self.sensors is not None
        self._q[self._read], self._qd[self._read] = q, qd
        q, qd = self.sensors.corrected(self._q, self._qd)
        return q[self._read], qd[self._read]

    def __call__(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Torques (m,) of `outputs`, N·m or N.

        Joints that are read but not driven have zero acceleration; the sensed ones follow the
        motors.

        Args:
            q: (k,) positions of `read`, rad or m.
            qd: (k,) rates of `read`, rad/s or m/s.
            qdd: (n,) accelerations of `joints`, rad/s² or m/s².

        Raises:
            RefusedError: the base moves, and its motion is unknown.
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
        self,
        q: Floats,
        qd: Floats,
        qdd: Floats,
        base: BaseMotion | None = None,
        dynamics: InverseDynamics | None = None,
    ) -> Floats:
        side, dynamics = self.spec.settings.side, dynamics or self.dynamics
        if side == "joint":
            torques: Floats = dynamics(q, qd, qdd, base_motion=base)[..., self._out]
            return torques
        motors = dynamics.motor_torques(q, qd, qdd, base_motion=base)
        return motors.drive if side == "drive" else motors.gear

    def shared(self, q: Floats, forces: Floats) -> Floats:
        """Torques (m,) of `outputs` that have the same effect as forces at `joints`, N·m or N.

        Args:
            q: (k,) positions of `read`, rad or m.
            forces: (n,) N·m or N.

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

    def wrench_torques(self, wrenches: Mapping[str, Floats], q: Floats) -> Floats:
        """The contribution (m,) of external wrenches to the torques of `outputs`, N·m or N.

        Args:
            wrenches: by link, (6,): the force (N) and the moment (N·m) about the origin of the
                link's frame that act on the link, on its axes. Those on links for which the model
                was not built are ignored; they wait for a model that is.
            q: (k,) positions of `read`, rad or m.

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        self._q[self._read] = q
        ready = {link: each for link, each in wrenches.items() if link in self.spec.wrench_links}
        return self._wrench_torques(self._q, ready)

    def _wrench_torques(self, q: Floats, wrenches: Mapping[str, Floats]) -> Floats:
        if not wrenches:
            return np.zeros(len(self.outputs))
        # -Σ Jᵀ w
        tau = -self.dynamics.wrench_torques(q, wrenches, axes="link")
        torques: Floats = tau[self._out] if self._to_motors is None else tau @ self._to_motors
        return torques

    def along(self, q: Floats, qd: Floats, qdd: Floats, base: BaseMotion | None = None) -> Floats:
        """Torques (s, m) of `outputs` at s states of a motion, N·m or N; NaN for impossible states.

        A closed robot starts from the configuration in which it is being followed, which does not
        change. May be called from any thread. Sensed joints have zero accelerations.

        Args:
            q: (s, k) positions of `read`, rad or m.
            qd: (s, k) rates of `read`, rad/s or m/s.
            qdd: (s, n) accelerations of `joints`, rad/s² or m/s².
            base: the motion of the base, if something else moves it.

        Raises:
            RobotDynamicsError: see `InverseDynamics`.
        """
        rest = np.zeros((len(q), len(self._q)))
        states = np.tile(self._q, (len(q), 1)), rest, rest.copy()
        states[0][:, self._read], states[1][:, self._read] = q, qd
        states[2][:, self._driven] = qdd
        if self._aside.closed is not None:
            self._aside.closed.reset(self._closed.last)
        return self._torques(*states, base, dynamics=self._aside)

    def at_rest(self, q: Floats) -> Floats:
        """Torques (m,) that hold the robot at rest, N·m or N: of the chosen terms, only gravity.

        Args:
            q: (k,) positions of `read`, rad or m.
        """
        return self(q, np.zeros_like(q), np.zeros(len(self.joints)))

    def is_allowed(self, torques: Floats) -> bool:
        """Are torques (m,) finite and surely within the limits?

        This checks the norm of torques relative to limits in one pass. False means that each
        torque must be checked.
        """
        return math.hypot(*map(mul, torques.tolist(), self._shares)) <= WITHIN

    def fastest(self, acceleration: float) -> Floats:
        """The largest plausible rates (k,) of `read`, rad/s or m/s.

        Args:
            acceleration: rad/s² or m/s²; the square root of its value is used if there is no
                velocity limit.
        """
        if self._fastest[0] != acceleration:
            unknown = np.isnan(self._rates)
            rates = np.where(unknown, math.sqrt(acceleration), IMPLAUSIBLE * self._rates)
            self._fastest = (acceleration, rates, float(rates.min(initial=math.inf)))
        return self._fastest[1]

    def is_slow(self, qd: Floats, acceleration: float) -> bool:
        """Are rates surely within `fastest`? Their norm shows this at a fraction of the cost.

        Args:
            qd: (k,) rates of `read`, rad/s or m/s.
            acceleration: as in `fastest`.
        """
        self.fastest(acceleration)
        return math.hypot(*qd.tolist()) <= self._fastest[2]

    def required_torques(self, q: Floats, acceleration: float) -> Floats:
        """The largest torques (m,) that the robot and its payload need, at rest and at
        accelerations up to `acceleration`, N·m or N; infinity for outputs that need none.

        They do not depend on the chosen terms, except that rotors only count if these include them.

        Args:
            q: (k,) positions of `read`, rad or m.
            acceleration: rad/s² or m/s².

        Raises:
            RobotDynamicsError: the mechanism cannot have this state.
        """
        self._q[self._read] = q
        # |g| + |D| q̈
        D = np.abs(self.dynamics.mass_matrix(self._q)[:, self._driven])
        forces = np.abs(self.dynamics.gravity(self._q)) + D.sum(axis=1) * acceleration
        if self._to_motors is not None:
            torques = forces @ np.abs(self._to_motors)
        else:
            torques = forces[self._out]
        return np.where(torques > 0, torques, math.inf)

    @property
    def home(self) -> Floats:
        """The home positions (k,) of `read`, rad or m."""
        return np.asarray(self.dynamics.home[self._read])


def _kinematics(mechanism: Mechanism) -> tuple[object, ...]:
    """Everything that the meaning of joint positions, rates and accelerations depends on, in a
    form that can be compared."""

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
    # with loops, home selects one of several configurations with the same motor positions
    home = tuple(sorted(mechanism.home.items())) if loops else ()
    chosen = mechanism.actuated, mechanism.driving, mechanism.sensed, mechanism.platform
    return links, loops, home, chosen, mechanism.base, mechanism.base_motion


def _one_each(name: str, values: tuple[float, ...], of: tuple[str, ...]) -> Floats | None:
    """The values as an array; None: not set.

    Raises:
        InputError: their number is not that of the names in `of`.
    """
    if values and len(values) != len(of):
        expected = f"{counted(len(of), 'number')}, one for each of {listed(of)}"
        raise wrong(InputError, name, list(values), expected)
    return np.array(values) if values else None
