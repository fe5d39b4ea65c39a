# SPDX-License-Identifier: Apache-2.0
"""Everything that can happen to the node's controller, and what its torques must be.

The oracle is Pinocchio at the state and the command that a torque answers. It knows what was sent,
and nothing of the code. A second controller, the twin, never hears what the first one refused: the
two have to give the same torques.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import WrenchStamped
from robots import pin
from sensor_msgs.msg import Imu, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynamics.description import load_urdf_text
from robot_dynamics.errors import InputError
from robot_dynamics.mechanism import Inertial
from robot_dynamics.ros.feed_forward.controller import FeedForward
from robot_dynamics.ros.feed_forward.parameters import AT_ONCE, Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

NAMES = ("lift", "swing")
TIP = "l1"
DAMPING = 0.7
START = 1_000 * 10**9
"""ns"""
G = 9.81
CLOSE = 1e-7
"""Relative and N·m: torques from positions 10 ms apart, far from zero, have this rounding"""
RIGHT_AGAIN = 1.6
"""s of good states, commands and motions of the base after which torques are right, whatever was"""
PERIOD = 10_000_000
"""ns, of a stream of states"""


class Robot(NamedTuple):
    """What a description says."""

    types: tuple[str, str] = ("revolute", "continuous")
    mass: float = 2.0
    axis: int = 1

    @property
    def text(self) -> str:
        return self.described(self.types)

    def described(self, types: tuple[str, ...]) -> str:
        """As URDF, with joints of these types."""
        parts, parent = ['<robot name="arm"><link name="world"/>'], "world"
        for k, (name, kind) in enumerate(zip(NAMES, types, strict=True)):
            limit = '<limit lower="-1e9" upper="1e9" velocity="0" effort="0"/>'
            axis = "0 0.6 0.8" if k == 0 else f"0 {self.axis} 0"
            parts.append(
                f'<link name="l{k}"><inertial><origin xyz="0.3 0.1 0.1"/>'
                f'<mass value="{self.mass}"/><inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" '
                f'ixz="0" iyz="0"/></inertial></link><joint name="{name}" type="{kind}">'
                f'<parent link="{parent}"/><child link="l{k}"/><origin xyz="0.5 0 0.1"/>'
                f'<axis xyz="{axis}"/><dynamics damping="{DAMPING}"/>'
                f"{'' if kind == 'continuous' else limit}</joint>"
            )
            parent = f"l{k}"
        return "".join([*parts, "</robot>"])


ROBOTS = [
    Robot(),
    Robot(mass=5.0),
    Robot(types=("prismatic", "continuous")),
    Robot(types=("revolute", "revolute")),
    Robot(axis=-1),
]


@cache
def mechanism(robot: Robot) -> Any:
    return load_urdf_text(robot.text)


AS_THEY_ARE = {name: getattr(Settings(), name) for name in AT_ONCE}


def model(robot: Robot, settings: Settings, mass: float, pushed: bool) -> Model:
    """The same one whatever is set of the parameters for which the node builds none either."""
    return _model(robot, replace(settings, **AS_THEY_ARE), mass, pushed)


@cache
def _model(robot: Robot, settings: Settings, mass: float, pushed: bool) -> Model:
    payloads = {TIP: Inertial(mass, np.array([0.2, 0.0, 0.1]))} if mass else {}
    spec = ModelSpec(mechanism(robot), settings, payloads, frozenset({TIP} if pushed else ()))
    return Model(spec)


@cache
def pinocchio(robot: Robot, mass: float) -> Any:
    # a position of a continuous joint is an angle here as well
    types = tuple("revolute" if kind == "continuous" else kind for kind in robot.types)
    found = pin.buildModelFromXML(robot.described(types))
    if mass:
        body = pin.Inertia(mass, np.array([0.2, 0.0, 0.1]), np.zeros((3, 3)))
        joint = found.getJointId(NAMES[1])
        found.inertias[joint] = found.inertias[joint] + body
    return found, found.createData()


class Point(NamedTuple):
    """A desired state."""

    q: np.ndarray | None
    qd: np.ndarray | None
    qdd: np.ndarray


class Wanted:
    """A command as its sender means it."""

    def __init__(self, came: int, stamp: int, point: Point | None, ends: tuple[Any, ...] = ()):
        self.came, self.stamp, self.point = came, stamp, point
        self.ends = ends
        """T (s), q0, v0, q1, v1 of a cubic"""
        self.starts = [stamp] if stamp else []
        """ns, when it may have begun"""
        self.began = False

    def at(self, time: int, start: int) -> Point:
        if self.point is not None:
            return self.point
        T, q0, v0, q1, v1 = self.ends
        t = (time - start) / 1e9
        if t < 0:
            # a state of a moment before: too soon to be led there
            return Point(q0, 0 * v0, 0 * q0)
        if t >= T:
            # as every trajectory ends: where it is, with the rate that it ends with for now
            return Point(q1, v1 if t == T else 0 * v1, 0 * q1)
        a = 3 * (q1 - q0) / T**2 - (2 * v0 + v1) / T
        b = -2 * (q1 - q0) / T**3 + (v0 + v1) / T**2
        t = max(t, 0.0)
        q = q0 + v0 * t + a * t**2 + b * t**3
        return Point(q, v0 + 2 * a * t + 3 * b * t**2, 2 * a + 6 * b * t)

    def over_for(self, time: int, now: int, start: int) -> float:
        """s since its end."""
        if self.point is not None:
            since = min(self.stamp, now) if self.stamp else self.came
            return (now - min(since, self.came)) / 1e9
        return (time - start) / 1e9 - self.ends[0]


class WrongError(AssertionError):
    """A promise that was not kept."""


class World:
    """The controller, its twin, what was sent, and when.

    Args:
        seed: of all that is left to chance.
    """

    def __init__(self, seed: int):
        self.rng = rng = np.random.default_rng(seed)
        self.now = START
        self.history: list[str] = []
        self.robot, self.mass, self.pushed = ROBOTS[0], 0.0, False
        self.values: dict[str, Any] = {
            "effort_limits": [1e9, 1e9],
            "base_imu_pose": [0.0] * 6,
            "feedback": str(rng.choice(["measured", "measured", "measured", "commanded"])),
            "command_timeout": 0.3,
        }
        self.values["residual"] = self.measured
        for name, choices in (
            ("missing_velocities", ["derive", "refuse"]),
            ("missing_accelerations", ["derive", "zero", "refuse"]),
            ("merge_states", [True, False, False]),
            ("moving_base", ["always", "never", "never", "never"]),
            ("command_timeout", [0.0, 0.3]),
            ("max_acceleration", [0.0, 1000.0]),
            ("derivative_filter", [0.0, 0.02]),
        ):
            self.values[name] = choices[int(rng.integers(len(choices)))]
        self.settings = Settings.of(self.values)
        lines: list[str] = []
        self.ours = FeedForward(self.settings, lines.append, lambda: 0.0)
        self.twin = FeedForward(self.settings, lambda _: None, lambda: 0.0)
        self.active = True
        self.command: Wanted | None = None
        self.pending: Wanted | None = None
        self.over = self.maybe_over = False
        self.known: dict[str, tuple[float, float, int, int]] = {}
        self.newest_stamp, self.received = 0, -(10**12)
        self.force: tuple[np.ndarray, int] | None = None
        self.wrench: tuple[np.ndarray, int] | None = None
        self.last_q: np.ndarray | None = None
        self.last, self.start, self.last_at = np.zeros(2), np.zeros(2), 0
        self.resting = True
        self.shaped = False
        # what the joints do where their rates are derived
        self.offset, self.rate = rng.uniform(-1, 1, 2), rng.uniform(-0.3, 0.3, 2)
        self.slope = rng.uniform(-3, 3, 2)
        self.heard: JointState | None = None
        self.adopt()

    # Who is who

    @property
    def measured(self) -> bool:
        return self.values["feedback"] == "measured"

    @property
    def both(self) -> tuple[FeedForward, FeedForward]:
        return self.ours, self.twin

    def adopt(self) -> None:
        # of an open chain: a model of it remembers nothing
        for each in self.both:
            each.adopt(model(self.robot, self.settings, self.mass, self.pushed))

    def _same(self, mine: Any, other: Any, what: str) -> None:
        if (mine is None) != (other is None):
            raise WrongError(f"{what}: what was refused before left a trace: {mine} {other}")
        if mine is not None and not np.array_equal(mine.values, other.values):
            raise WrongError(f"{what}: what was refused left a trace: {mine} for {other}")

    def each(self, what: str, *arguments: Any) -> Any:
        """The same happens to both."""
        mine, other = (getattr(each, what)(*arguments) for each in self.both)
        self._same(mine, other, what)
        return mine

    def tell(self, topic: str, method: str, message: Any) -> tuple[Any, bool, Any]:
        """(what came of a message, was it refused?, of the twin: it hears what was not)"""
        key = f"{topic}: "
        before = _count(self.ours, key)
        mine = getattr(self.ours, method)(message, self.now)
        refused = _count(self.ours, key) > before and "incomplete:" not in self.ours.tally.newest
        other = None if refused else getattr(self.twin, method)(message, self.now)
        return mine, refused, other

    # What the torques have to be

    def dynamics(self, q: Any, qd: Any, qdd: Any, *, still: bool = False) -> np.ndarray:
        """Pinocchio's torques, with friction, on a base as it moves, or rests."""
        found, data = pinocchio(self.robot, self.mass)
        g = np.array([0.0, 0.0, -G])
        if self.values.get("moving_base") == "always":
            f = np.array([0.0, 0.0, G]) if self.force is None else self.force[0]
            g = -f * (G / np.linalg.norm(f)) if still else -f
        found.gravity.linear = g
        tau = pin.rnea(found, data, *(np.array(each, dtype=float) for each in (q, qd, qdd)))
        return np.asarray(tau + DAMPING * np.asarray(qd))

    def taken(self, q: Any) -> np.ndarray:
        """What the wrench adds."""
        if self.wrench is None or not self.pushed:
            return np.zeros(2)
        found, data = pinocchio(self.robot, self.mass)
        frame = found.getFrameId(TIP)
        J = pin.computeFrameJacobian(found, data, np.array(q), frame, pin.LOCAL)
        return np.asarray(-J.T @ self.wrench[0])

    def pulled(self, want: Point, q: Any, qd: Any) -> np.ndarray:
        """What the gains add."""
        p, d = self.values.get("p_gains"), self.values.get("d_gains")
        tau = np.zeros(2)
        if p is not None and want.q is not None:
            error = want.q - q
            turns = np.array([kind == "continuous" for kind in self.robot.types])
            tau = tau + p * (error - turns * 2 * np.pi * np.round(error / (2 * np.pi)))
        if d is not None:
            tau = tau + d * ((0.0 if want.qd is None else want.qd) - qd)
        return np.asarray(tau)

    def clipped(self, tau: np.ndarray) -> np.ndarray:
        limit = np.array(self.values["effort_limits"])
        return np.clip(tau, -limit, limit)

    def following(self, want: Point, q: Any, qd: Any) -> np.ndarray:
        return self.dynamics(q, qd, want.qdd) + self.taken(q) + self.pulled(want, q, qd)

    def at_rest(self, q: Any, *, still: bool = False) -> np.ndarray:
        return self.dynamics(q, np.zeros(2), np.zeros(2), still=still)

    def judge(self, out: Any, q: Any, qd: Any, what: str) -> None:
        """Is a torque that was published with a state one that it justifies?

        Args:
            q, qd: (2,) measured; None with feedback commanded.
        """
        tau, time = out.values, out.time
        stopped = self.settings.on_timeout == "stop" and not tau.any()
        if (
            self.values.get("moving_base") == "always"
            and not stopped
            and (
                self.force is None
                or (self.now - self.force[1]) / 1e9 > self.settings.base_timeout + 1e-9
            )
        ):
            raise WrongError(f"{what}: a torque, and the motion of the base is not known")
        if self.wrench is not None and 0 < self.settings.max_age < self.age(self.wrench[1]):
            self.wrench = None
        self._begin(time)
        targets: list[tuple[str, np.ndarray, Any, Any]] = []
        if self.command is None:
            raise WrongError(f"{what}: a torque without a command")
        then = time + round(self.settings.lookahead * 1e9)
        timeout = self.settings.command_timeout
        for start in self.command.starts or [time]:
            want = self.command.at(then, start)
            over = timeout > 0 and self.command.over_for(time, self.now, start) > timeout
            if self.over or self.maybe_over or over:
                targets += self._after(want, q, qd)
            if not (self.over or over):
                at = (want.q, want.qd) if q is None else (q, qd)
                targets.append(("motion", self.following(want, *at), start, at[0]))
        for kind, target, start, at in targets:
            if self._is(tau, self.clipped(target)):
                self._take(kind, start, at, tau, what)
                return
        raise WrongError(
            f"{what} at {(self.now - START) / 1e9:.3f} s: {tau} is none of "
            f"{[(kind, self.clipped(target)) for kind, target, _, _ in targets]} at {q}, {qd}"
        )

    def _after(self, want: Point, q: Any, qd: Any) -> list[tuple[str, np.ndarray, Any, Any]]:
        """What may go out after a command is over."""
        action, zero = self.settings.on_timeout, np.zeros(2)
        at = self.last_q if q is None else q
        found = []
        if at is not None:
            # where it was interrupted and there is no timeout, it is to rest where it is
            if action == "hold" or self.settings.command_timeout == 0:
                rates = zero if q is None else qd
                for place in (None, want.q):
                    still = Point(place, zero, zero)
                    found.append(("rest", self.following(still, at, rates), None, at))
            if action != "stop":
                found.append(("rest", self.at_rest(at), None, at))
                found.append(("rest", self.at_rest(at, still=True), None, at))
        if action == "stop":
            found.append(("rest", zero, None, at))
        return found

    def _begin(self, time: int) -> None:
        """A command takes over with the next state."""
        if self.pending is None:
            if self.command is not None and not self.command.began and not self.command.stamp:
                self.command.starts.append(time)
            return
        waited, limit = (self.now - self.pending.came) / 1e9, self.settings.max_age
        if not 0 < limit < waited:
            self.command, self.over, self.maybe_over = self.pending, False, False
            if not self.command.stamp:
                self.command.starts.append(time)
        self.pending = None

    def _is(self, tau: np.ndarray, target: np.ndarray) -> bool:
        slack = CLOSE * (1 + np.abs(target))
        if not self.shaped:
            return bool((np.abs(tau - target) <= slack).all())
        corners = np.array([self.start, self.last, target])
        low, high = corners.min(axis=0), corners.max(axis=0)
        return bool(((tau >= low - slack) & (tau <= high + slack)).all())

    def _take(self, kind: str, start: Any, at: Any, tau: np.ndarray, what: str) -> None:
        slew = self.values.get("slew_limits")
        if slew is not None and self.last_at:
            most = np.array(slew) * max(self.now - self.last_at, 0) / 1e9
            if (np.abs(tau - self.last) > most + CLOSE * (1 + np.abs(tau))).any():
                raise WrongError(f"{what}: {tau} after {self.last}: quicker than slew_limits")
        assert self.command is not None
        if kind == "motion":
            self.command.starts, self.command.began = [start] if start else [], True
            self.maybe_over = False
        else:
            self.over = True
        self.resting = kind == "rest"
        self.last, self.last_at, self.last_q = tau, self.now, at

    def judge_last(self, out: Any, what: str) -> None:
        """Torques that stay behind: at rest where the robot was seen last, or zero."""
        if out is None:
            return
        zero = [np.zeros(2)]
        allowed = zero if self.settings.on_timeout == "stop" or self.last_q is None else []
        if self.last_q is not None and not allowed:
            allowed = [self.at_rest(self.last_q, still=True)]
        if not any(np.abs(out.values - self.clipped(a)).max() < 1e-6 for a in allowed):
            raise WrongError(f"{what}: {out.values} stay behind, expected {allowed}")
        self.last = self.start = out.values
        self.last_at, self.resting = self.now, True

    def age(self, time: int) -> float:
        return (self.now - time) / 1e9

    def note_time(self) -> None:
        """Has the command ended by now, with the parameters of before?"""
        if self.command is None or not self.settings.command_timeout:
            return
        for start in self.command.starts:
            if self.command.over_for(self.now, self.now, start) > self.settings.command_timeout:
                self.maybe_over = True
        if self.command.point is not None and (
            self.command.over_for(self.now, self.now, 0) > self.settings.command_timeout
        ):
            self.maybe_over = True

    # What happens

    def wait(self) -> None:
        """Time passes."""
        steps = [1, 3, 10, 10, 10, 10, 30, 70, 130, 400, 700]
        self.now += int(self.rng.choice(steps)) * 1_000_000
        self.note_time()

    def line(self, time: int) -> np.ndarray:
        """Where the joints are, where nobody says how fast they are."""
        return self.offset + self.rate * ((time - START) / 1e9)

    def state_message(self, stamp: int, q: Any, qd: Any) -> JointState:
        message = JointState(name=list(NAMES), position=np.asarray(q, float).tolist())
        message.velocity = np.asarray(qd, float).tolist()
        message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
        return message

    @property
    def derives(self) -> bool:
        return self.values.get("missing_velocities") == "derive"

    def good_state(self) -> None:
        """A whole state, stamped or not, with rates or without where they are derived."""
        rng, stamp = self.rng, self.now
        if self.derives:
            q, qd = self.line(stamp), self.rate
            said = [] if rng.random() < 0.7 else qd
        else:
            q, qd = rng.uniform(-2, 2, (2, 2))
            said = qd
            stamp = 0 if rng.random() < 0.3 else self.now - int(rng.integers(0, 3)) * 1_000_000
        message = self.state_message(stamp, q, said)
        if rng.random() < 0.5:
            self._shuffle(message)
        self.hear(message, dict(zip(NAMES, np.transpose([q, qd]), strict=True)))

    @staticmethod
    def _shuffle(message: JointState) -> None:
        message.name = [message.name[1], "finger", message.name[0]]
        for field in ("position", "velocity", "effort"):
            said = getattr(message, field)
            if len(said):
                setattr(message, field, [said[1], 7.0, said[0]])

    def part(self) -> None:
        """A state of one joint."""
        k = int(self.rng.integers(2))
        if self.derives:
            q, qd = self.line(self.now)[k], self.rate[k]
        else:
            q, qd = self.rng.uniform(-2, 2, 2)
        message = self.state_message(self.now, [q, q], [qd, qd])
        message.name, message.position = [NAMES[k]], [float(q)]
        told = self.derives and self.rng.random() < 0.7
        message.velocity = [] if told else [float(qd)]
        self.hear(message, {NAMES[k]: (q, qd)})

    def hear(self, message: JointState, parts: dict[str, Any], *, bad: str = "") -> None:
        """A state comes.

        Args:
            parts: (q, qd) that it says, by joint.
            bad: why it must make no torque.
        """
        if not self.active:
            return
        what = f"state {bad or 'good'} {message.name} {list(message.position)}"
        self.history.append(f"{self.age(START):.4f} {what} {list(message.velocity)}")
        out, refused, other = self.tell("joint_states", "state", message)
        if refused:
            # whatever it was, it makes no torque
            if out is not None:
                raise WrongError(f"{what}: refused, and a torque of it")
            return
        self._same(out, other, what)
        newest = self.ours.tally.newest
        early = out is None and "incomplete:" in newest and "velocities are derived" in newest
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        if not bad and not early:
            self.known |= {
                name: (float(q), float(qd), stamp or self.now, self.now)
                for name, (q, qd) in parts.items()
            }
        if out is None:
            due = self.measured and self.settings.merge_states and not (bad or early)
            if due and "joint_states incomplete" in newest and self._recent():
                raise WrongError(f"{what}: unanswered, and all joints are recent: {newest}")
            return
        if not self.measured:
            self.judge(out, None, None, what)
            return
        if bad:
            raise WrongError(f"{what}: a torque {out.values}")
        stopped = self.settings.on_timeout == "stop" and not out.values.any()
        if out.time != (stamp or self.now) and not stopped:
            raise WrongError(f"{what}: of {out.time}, not {stamp}")
        if len(parts) < len(NAMES) and not self.settings.merge_states:
            raise WrongError(f"{what}: a torque of half a state")
        if not self._recent():
            raise WrongError(f"{what}: a torque of joints that are too old {self.known}")
        q, qd = np.array([self.known[name][:2] for name in NAMES]).T
        self.judge(out, q, qd, what)

    def _recent(self) -> bool:
        """Is every joint known, and lately?"""
        ages = [self.age(self.known[name][2]) for name in NAMES if name in self.known]
        return len(ages) == 2 and not 0 < self.settings.max_age < max(ages)

    def bad_state(self) -> None:
        """A state with one fault."""
        rng = self.rng
        q, qd = (self.line(self.now), self.rate) if self.derives else rng.uniform(-1, 1, (2, 2))
        q, qd = q.copy(), qd.copy()
        faults = ["nan", "inf", "infinite rate", "length", "twice", "stamp", "unknown"]
        if self.settings.max_age:
            faults += ["old", "ahead"]
        if self.derives:
            faults += ["jump", "jump", "huge", "jump with an infinite rate"]
        fault, stamp = str(rng.choice(faults)), self.now
        if fault == "old":
            stamp -= 5 * 10**9
        if fault == "ahead":
            stamp += 5 * 10**9
        k = int(rng.integers(2))
        q[k] = {"nan": math.nan, "inf": -math.inf, "huge": 1e308}.get(fault, q[k])
        if fault.startswith("jump"):
            # one that turns forever may be anywhere
            k = 0 if self.robot.types[k] == "continuous" else k
            q[k] += float(rng.choice([-1, 1])) * 10 ** float(rng.uniform(3.3, 9))
        if "infinite rate" in fault:
            qd[k] = math.inf
        message = self.state_message(stamp, q, [] if fault in ("jump", "huge") else qd)
        if fault == "length":
            message.position.append(0.0)
        if fault == "twice":
            message.name = [NAMES[k]] * 2
        if fault == "stamp":
            message.header.stamp.nanosec = 10**9
        if fault == "unknown":
            message.name, message.position, message.velocity = [], [], []
        self.hear(message, {}, bad=fault)

    def foreign(self) -> None:
        """A state of other joints."""
        message = self.state_message(self.now, [1e308, 1.0], [math.nan, 1.0])
        message.name = ["finger", "thumb"]
        self.hear(message, {}, bad="foreign")

    def stall(self) -> None:
        """A stream of states without stamps; some of them wait while the node stands still."""
        if not self.derives:
            return
        # after a gap, as what came before had other periods
        self.now += 6 * 10**8
        times = [self.now + k * PERIOD for k in range(1, 30)]
        for k, time in enumerate(times):
            # the stamps of the first ones tell the period
            self._arrives(time, time, stamped=k < 22)
        held = times[-1] + 3 * 10**9
        for k in range(5):
            self._arrives(held - (4 - k) * PERIOD, held + 50_000 * k)
        for k in range(1, 4):
            self._arrives(held + k * PERIOD, held + k * PERIOD)

    def _arrives(self, sent: int, now: int, *, stamped: bool = False) -> None:
        self.now = now
        self.note_time()
        q, none = self.line(sent), []
        parts = dict(zip(NAMES, np.transpose([q, self.rate]), strict=True))
        self.hear(self.state_message(sent if stamped else 0, q, none), parts)

    # Commands

    def trajectory(self, *points: Any, stamp: int = 0) -> JointTrajectory:
        message = JointTrajectory(joint_names=list(NAMES))
        for time, *rows in points:
            each = JointTrajectoryPoint()
            for field, values in zip(
                ("positions", "velocities", "accelerations"), rows, strict=True
            ):
                setattr(each, field, [] if values is None else np.asarray(values, float).tolist())
            ns = round(time * 1e9)
            each.time_from_start = Duration(sec=ns // 10**9, nanosec=ns % 10**9)
            message.points.append(each)
        message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
        return message

    def good_command(self) -> None:
        """A point, whole or without accelerations where that is allowed, or a trajectory."""
        rng = self.rng
        stamp = self.now if rng.random() < 0.5 else 0
        q, qd, qdd = rng.uniform(-1, 1, (3, 2))
        policy = self.values.get("missing_accelerations", "refuse")
        kind = rng.random()
        if kind < 0.3:
            T, q1, v1 = float(rng.choice([0.3, 0.5, 1.0])), *rng.uniform(-1, 1, (2, 2))
            want = Wanted(self.now, stamp, None, (T, q, qd, q1, v1))
            message = self.trajectory((0.0, q, qd, None), (T, q1, v1, None), stamp=stamp)
        elif kind < 0.6 and policy != "refuse":
            if policy == "derive":
                stamp = self.now
                qd, qdd = self.slope * self.age(START), self.slope
            else:
                qdd = np.zeros(2)
            want = Wanted(self.now, stamp, Point(q, qd, qdd))
            message = self.trajectory((0.0, q, qd, None), stamp=stamp)
        else:
            want = Wanted(self.now, stamp, Point(q, qd, 10 * qdd))
            message = self.trajectory((0.0, q, qd, 10 * qdd), stamp=stamp)
        self.order(message, want)

    def order(self, message: JointTrajectory, want: Wanted | None, *, bad: str = "") -> None:
        """A command comes; None: it must not be followed."""
        if not self.active:
            return
        count = self.ours.commands.count
        self.history.append(f"{self.age(START):.4f} command {bad or 'good'} {message.points}")
        _, refused, _ = self.tell("command", "command", message)
        if refused:
            return
        if want is None:
            raise WrongError(f"a command that is {bad} was accepted")
        # one without accelerations may be too early to have any
        if self.ours.commands.count > count:
            self.pending = want

    def bad_command(self) -> None:
        """A command with one fault."""
        rng = self.rng
        q, qd, qdd = rng.uniform(-1, 1, (3, 2))
        faults = ["nan", "names", "length", "empty", "backwards", "unknown"]
        faults += ["old"] * bool(self.settings.max_age)
        faults += ["quick"] * bool(self.settings.max_acceleration)
        fault = str(rng.choice(faults))
        stamp = self.now - (5 * 10**9 if fault == "old" else 0)
        if fault == "nan":
            qdd[0] = math.nan
        if fault == "quick":
            qdd[1] = 1e4
        message = self.trajectory((0.0, q, qd, qdd), stamp=stamp)
        if fault == "names":
            message.joint_names = [NAMES[0]]
        if fault == "unknown":
            message.joint_names = [NAMES[0], "finger"]
        if fault == "length":
            message.points[0].accelerations.append(1.0)
        if fault == "empty":
            message.points = []
        if fault == "backwards":
            message = self.trajectory((0.5, q, qd, None), (0.2, qd, q, None))
        self.order(message, None, bad=fault)

    # What else comes

    def push(self) -> None:
        """A wrench, good or not, or none any more."""
        message = WrenchStamped()
        message.header.frame_id = TIP
        value = self.rng.uniform(-9, 9, 6) * (self.rng.random() < 0.8)
        fault = str(self.rng.choice(["", "", "", "nan", "link", "stamp"]))
        value[2] = math.nan if fault == "nan" else value[2]
        if fault == "link":
            message.header.frame_id = "elsewhere"
        if fault == "stamp":
            message.header.stamp.nanosec = 10**9
        f, m = message.wrench.force, message.wrench.torque
        f.x, f.y, f.z, m.x, m.y, m.z = map(float, value)
        self.history.append(f"{self.age(START):.4f} wrench {fault} {value}")
        link, refused, _ = self.tell("wrench", "wrench", message)
        if refused:
            return
        if fault:
            raise WrongError(f"a wrench with a wrong {fault} was accepted")
        self.wrench = (value, self.now) if value.any() else None
        if link is not None:
            self.pushed = True
            self.adopt()

    def shake(self) -> None:
        """An Imu, good or not."""
        message = Imu()
        message.header.stamp = Time(sec=self.now // 10**9, nanosec=self.now % 10**9)
        f = self.rng.uniform(-3, 3, 3) + np.array([0.0, 0.0, G])
        fault = str(self.rng.choice(["", "", "", "nan", "free fall", "old"]))
        f = f * {"free fall": 0.01, "nan": math.nan}.get(fault, 1.0)
        if fault == "old":
            if not self.settings.max_age:
                return
            message.header.stamp.sec -= 5
        a = message.linear_acceleration
        a.x, a.y, a.z = map(float, f)
        self.history.append(f"{self.age(START):.4f} imu {fault} {f}")
        before = self.ours.base.time, self.ours.base.source
        _, refused, _ = self.tell("base_imu", "imu", message)
        if refused or before == (self.ours.base.time, self.ours.base.source):
            return
        if fault:
            raise WrongError(f"an imu with {fault} was accepted")
        self.force = f, self.now

    def carry(self) -> None:
        """Another payload, or none."""
        self.mass = float(self.rng.choice([0.0, 1.5]))
        self.history.append(f"{self.age(START):.4f} payload {self.mass}")
        self.adopt()

    def describe(self) -> None:
        """Another description with the same names."""
        before, self.robot = self.robot, ROBOTS[int(self.rng.integers(len(ROBOTS)))]
        self.history.append(f"{self.age(START):.4f} robot {self.robot}")
        if self.ours.model is None:
            return
        same = before._replace(mass=0.0) == self.robot._replace(mass=0.0)
        if not same:
            # as the node does it
            self.judge_last_of(before)
        self.adopt()
        if not same:
            self.forget()

    def judge_last_of(self, robot: Robot) -> None:
        new, self.robot = self.robot, robot
        self.judge_last(self.each("farewell", self.now), "another robot")
        self.robot = new

    def forget(self) -> None:
        """Nothing that was said before is of this robot."""
        self.command = self.pending = None
        self.over = self.maybe_over = False
        self.known, self.force, self.wrench, self.last_q = {}, None, None, None
        self.last, self.start, self.last_at = np.zeros(2), np.zeros(2), 0

    def set(self) -> None:
        """Another value of a parameter."""
        chosen: list[tuple[str, Any]] = [
            ("command_timeout", [0.0, 0.1, 0.3, 10.0]),
            ("on_timeout", ["hold", "gravity", "stop"]),
            ("max_age", [0.0, 0.2, 0.5]),
            ("lookahead", [0.0, 0.02]),
            ("max_acceleration", [1000.0, 0.0]),
            ("ramp_time", [0.0, 0.0, 0.2]),
            ("derivative_filter", [0.0, 0.02]),
            ("merge_states", [True, False]),
            ("missing_velocities", ["derive", "derive", "refuse"]),
            ("missing_accelerations", ["derive", "zero", "refuse"]),
            ("moving_base", ["never", "always"]),
            ("effort_limits", [[1e9, 1e9], [30.0, 20.0]]),
            ("slew_limits", [None, [900.0, 900.0]]),
        ]
        if self.measured:
            chosen += [("p_gains", [None, [30.0, 20.0]]), ("d_gains", [None, [3.0, 2.0]])]
        name, values = chosen[int(self.rng.integers(len(chosen)))]
        self.change(name, values[int(self.rng.integers(len(values)))])

    def change(self, name: str, value: Any) -> None:
        """A parameter is set, as the node does it."""
        if self.values.get(name) == value:
            return
        self.note_time()
        self.history.append(f"{self.age(START):.4f} {name} {value}")
        wanted = self.values | {name: value}
        values = {key: each for key, each in wanted.items() if each is not None}
        if name in ("ramp_time", "slew_limits"):
            self.shaped = True
        self.values = values
        self.settings = Settings.of(values)
        for each in self.both:
            each.settings = self.settings
        if name not in AT_ONCE and self.ours.model is not None:
            self.adopt()
        if name == "merge_states":
            # parts are kept from then on
            self.known = {}

    def set_badly(self) -> None:
        """A value that the table refuses."""
        name, value = [
            ("max_age", -1.0),
            ("on_timeout", "explode"),
            ("derivative_filter", math.nan),
            ("max_acceleration", -3.0),
        ][int(self.rng.integers(4))]
        try:
            self.settings.changed({name: value})
        except InputError:
            return
        raise WrongError(f"{name} {value} was accepted")

    # What ends

    def watch(self) -> None:
        """The node looks whether feedback was lost."""
        limit, before = self.settings.max_age, self.resting
        silent = self.age(self.last_at)
        out = self.each("watch", self.now)
        if self.wrench is not None and 0 < limit < self.age(self.wrench[1]):
            self.wrench = None
        if out is None:
            if limit and not before and silent > limit and self.ours.model and self.last_at:
                raise WrongError(f"a motion's torques {self.last} stay for {silent} s")
            return
        self.history.append(f"{self.age(START):.4f} feedback lost")
        self.judge_last(out, "feedback lost")
        self.end()

    def end(self) -> None:
        """The command is over."""
        self.pending, self.over = None, True

    def tick(self) -> None:
        """Time passes with feedback commanded."""
        if self.measured or not self.active:
            return
        out = self.each("tick", self.now)
        if out is not None:
            self.history.append(f"{self.age(START):.4f} tick")
            self.judge(out, None, None, "tick")

    def jump(self) -> None:
        """The clock is set back, or becomes another one."""
        back = self.rng.random() < 0.7
        event = "clock_jumped_back" if back else "clock_changed"
        if back and self.rng.random() < 0.5:  # a system's clock, of which ROS says nothing
            event = "watch"
            self.watch()
        step = float(self.rng.choice([0.001, 0.005, 0.4, 50.0]))
        self.now += -round(step * 1e9) if back else 50 * 10**9
        self.history.append(f"{self.age(START):.4f} {event}: clock jumped {back} {step}")
        out = self.each(event, self.now)
        self.wrench = None
        self.judge_last(out, "clock")
        self.force, self.known = None, {}
        self.last_at = self.now
        self.end()

    def live(self) -> None:
        """Another state of its life."""
        if self.active:
            self.history.append(f"{self.age(START):.4f} deactivate")
            self.judge_last(self.each("deactivate", self.now), "deactivate")
            self.command = self.pending = None
            self.over = self.maybe_over = False
            self.active = False
            if self.rng.random() < 0.5:
                self.history.append("cleanup")
                for each in self.both:
                    each.release()
                self.forget()
                self.wrench = None
            return
        self.history.append(f"{self.age(START):.4f} activate")
        if self.ours.model is None:
            self.adopt()
        self.active = True

    def recover(self) -> None:
        """Good input for a while: then torques are right, whatever was before."""
        if not self.active:
            self.live()
        out = q = qd = None
        qdd = self.rng.uniform(-3, 3, 2)
        push = self.rng.uniform(-5, 5, 2)
        self.wrench_over()
        for k in range(int(RIGHT_AGAIN * 1e9) // (2 * PERIOD)):
            self.now += 2 * PERIOD
            self.note_time()
            if self.values.get("moving_base") == "always":
                self.upright()
            if k % 4 == 0:
                want = Wanted(self.now, self.now, Point(np.zeros(2), np.zeros(2), qdd))
                self.order(self.trajectory((0.0, [0, 0], [0, 0], qdd), stamp=self.now), want)
            q, qd = self.line(self.now), self.rate
            message = self.state_message(self.now, q, [] if self.derives and k % 3 else qd)
            message.effort = (self.dynamics(q, qd, np.zeros(2)) + push).tolist()
            if self.settings.merge_states and k % 2:
                del message.name[1], message.position[1]
                message.velocity, message.effort = message.velocity[:1], message.effort[:1]
            counted = self.ours.outlet.count
            names = message.name
            self.hear(
                message,
                {name: (q[i], qd[i]) for i, name in enumerate(NAMES) if name in names},
            )
            out = self.ours.outlet.count > counted
        if not out:
            raise WrongError(f"silent after {RIGHT_AGAIN} s: {self.ours.tally.newest}")
        if self.command is None or self.over:
            raise WrongError(f"the newest command is not followed after {RIGHT_AGAIN} s")
        want = self.command.at(self.now, self.now)
        at = (want.q, want.qd) if not self.measured else self._merged()
        target = self.clipped(self.following(want, *at))
        if (np.abs(self.last - target) > CLOSE * (1 + np.abs(target))).any():
            raise WrongError(f"{self.last} after {RIGHT_AGAIN} s, expected {target}")
        self._residual(push)

    def _merged(self) -> Any:
        return np.array([self.known[name][:2] for name in NAMES]).T

    def _residual(self, push: np.ndarray) -> None:
        found = self.ours.residual
        if found is None or self.settings.merge_states or self.derives:
            return
        if found.value is None or np.abs(found.value - push).max() > 1e-3:
            raise WrongError(f"residual {found.value}, expected {push}")

    def wrench_over(self) -> None:
        """Take the wrench away."""
        message = WrenchStamped()
        message.header.frame_id = TIP
        self.tell("wrench", "wrench", message)
        self.wrench = None

    def upright(self) -> None:
        """An Imu that rests."""
        message = Imu()
        message.header.stamp = Time(sec=self.now // 10**9, nanosec=self.now % 10**9)
        message.linear_acceleration.z = G
        before = self.ours.base.time
        self.tell("base_imu", "imu", message)
        if self.ours.base.time != before:
            self.force = np.array([0.0, 0.0, G]), self.now


EVENTS = (
    ("good_state", 9),
    ("part", 3),
    ("bad_state", 4),
    ("foreign", 1),
    ("stall", 1),
    ("good_command", 4),
    ("bad_command", 2),
    ("push", 1),
    ("shake", 2),
    ("carry", 1),
    ("describe", 1),
    ("set", 4),
    ("set_badly", 1),
    ("watch", 2),
    ("tick", 2),
    ("jump", 1),
    ("live", 1),
    ("recover", 1),
)
"""What happens, and how often"""


def _count(controller: FeedForward, key: str) -> int:
    return sum(n for k, n in controller.tally.rejected.items() if k.startswith(key))
