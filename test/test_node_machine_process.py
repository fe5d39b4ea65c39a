# SPDX-License-Identifier: Apache-2.0
"""The node in a process of its own as a state machine: a seeded sequence of what can come, by DDS.

A torque names the state that it answers by its stamp. It has to be Pinocchio's at that state, with
the command, payload and limits that held then; where nothing may come there is silence; and after
each change the node is right within a stated time. A few sequences, always the same ones; with
`--fuzz-seconds S` others, for so long.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
pytest.importorskip("pinocchio", reason="the oracle is not installed: extra `dev`")

from geometry_msgs.msg import InertiaStamped, WrenchStamped
from node_process import Partner
from node_world import DAMPING, NAMES, ROBOTS, TIP, G, pinocchio
from robots import pin
from sensor_msgs.msg import JointState
from test_node_faults import stamp_of
from test_node_managed import take
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

ROBOT = ROBOTS[0]
CONTINUOUS = np.array([kind == "continuous" for kind in ROBOT.types])
SEEDS, MORE = 4, 6
AGAIN = 120.0
"""s, on a machine that is busy, until torques are those of what was said last"""
CLOSE = 1e-9
"""Relative, of torques whose inputs are told exactly"""
WIDE, NARROW = (1e9, 1e9), (4.0, 3.0)
"""N·m"""
GAINS = (30.0, 20.0), (3.0, 2.0)
"""N·m/rad and N·m·s/rad"""
NONE = (0.0, 0.0)


class Said(NamedTuple):
    """What torques depend on, besides the state."""

    want: tuple[tuple[float, ...], ...] | None = None
    """(q, qd, qdd); None: the command is over, it holds itself up"""
    mass: float = 0.0
    limit: tuple[float, ...] = WIDE
    gains: tuple[tuple[float, ...], ...] = (NONE, NONE)
    wrench: tuple[float, ...] | None = None
    """On the tip, N and N·m, on its axes"""

    def torques(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        found, data = pinocchio(ROBOT, self.mass)
        found.gravity.linear = np.array([0.0, 0.0, -G])
        if self.want is None:
            return self._limited(pin.rnea(found, data, q, np.zeros(2), np.zeros(2)))
        (q_d, qd_d, qdd_d), (P, D) = np.array(self.want), np.array(self.gains)
        tau = pin.rnea(found, data, q, qd, qdd_d) + DAMPING * qd
        turns = 2 * np.pi * np.round((q_d - q) / (2 * np.pi))
        tau += P * (q_d - q - turns * CONTINUOUS) + D * (qd_d - qd)
        if self.wrench is not None:
            J = pin.computeFrameJacobian(found, data, q, found.getFrameId(TIP), pin.LOCAL)
            tau -= J.T @ np.array(self.wrench)
        return self._limited(tau)

    def _limited(self, tau: np.ndarray) -> np.ndarray:
        return np.clip(tau, -np.array(self.limit), self.limit)


def is_near(tau: np.ndarray, target: np.ndarray) -> bool:
    return bool((np.abs(tau - target) <= CLOSE * (1 + np.abs(target))).all())


class Machine(Partner):
    """What was sent to the node, and what that allows."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.sent: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        """By stamp: (q, qd) of states that may be answered"""
        self.silent: set[int] = set()
        """Stamps that nothing may answer"""
        self.now = Said()
        self.over: dict[Said, int] = {}
        """What no longer holds, and the stamp since when"""
        self.before: Said | None = None
        """What was said before a wrench that nothing has answered yet"""
        self.history: list[str] = []
        self.judged = self.answers = self.stamp = 0
        self.commanded = False

    # What comes out

    def judge(self) -> list[int]:
        """Hold what has come against the oracle; the stamps that only what was said last
        explains."""
        new, found = self.effort[self.judged :], []
        self.judged += len(new)
        for each in new:
            stamp, tau = stamp_of(each), np.array(each.effort)
            assert list(each.name) == list(NAMES)
            assert stamp not in self.silent, f"an answer to {stamp}: {tau}; {self.told()}"
            if stamp not in self.sent:
                # last words before silence have no state's stamp
                assert self.is_at_rest(tau), f"{tau} is no torque at rest; {self.told()}"
                continue
            self.answers += 1
            state = self.sent[stamp]
            allowed = [self.now, *(said for said, end in self.over.items() if stamp < end)]
            right = [said for said in allowed if is_near(tau, said.torques(*state))]
            expected = [(said, said.torques(*state)) for said in allowed]
            assert right, f"{tau} at {state}, expected {expected}; {self.told()}"
            if right == [self.now]:
                found.append(stamp)
        return found

    def is_at_rest(self, tau: np.ndarray) -> bool:
        """Are these the torques of the robot at rest, at a state that was sent?"""
        return self.is_some(tau, [said._replace(want=None) for said in (self.now, *self.over)])

    def is_some(self, tau: np.ndarray, which: Iterable[Said]) -> bool:
        """Are these the torques of a state that was sent, and of one of these?"""
        some = dict.fromkeys(which)
        newest_first = reversed(self.sent.values())
        return any(is_near(tau, said.torques(*state)) for state in newest_first for said in some)

    def told(self) -> str:
        return "\n".join(self.history[-20:])

    def settled(self, what: str) -> None:
        """Until a state that is sent from now on is answered as what was said last wants it."""
        since, deadline, found = self.stamp, time.monotonic() + AGAIN, []

        def right() -> bool:
            found.extend(stamp for stamp in self.judge() if stamp > since)
            assert time.monotonic() < deadline, (
                f"{what}: not right after {AGAIN} s; {self.told()}; {self.found()}"
            )
            return bool(found)

        self.until(right, f"torques after {what}", meanwhile=self.good)

        # the order of states is that of their stamps: none before this one is answered any more
        for said in self.over:
            self.over[said] = min(self.over[said], max(found))

    @contextmanager
    def change(self, what: str, **values: object) -> Iterator[None]:
        """Something else is said: until it is known to have arrived the former may hold as well."""
        self.history.append(f"{what} {values}")
        before = self.now
        self.now = before._replace(**values)
        self.over = {said: end for said, end in self.over.items() if said != self.now}
        if before != self.now:
            self.over.setdefault(before, 2**63)
        yield
        if self.commanded:
            self.noise()
            self.settled(what)

    # What goes in

    def next_stamp(self) -> int:
        self.stamp = max(self.node.get_clock().now().nanoseconds, self.stamp + 1000)
        return self.stamp

    def message(self, q: np.ndarray, qd: np.ndarray, stamp: int) -> JointState:
        found = JointState(name=list(NAMES), position=q.tolist(), velocity=qd.tolist())
        found.header.stamp.sec, found.header.stamp.nanosec = divmod(stamp, 10**9)
        return found

    def good(self, *, silent: bool = False) -> None:
        q, qd = self.motion.uniform(-2, 2, (2, 2))
        stamp = self.next_stamp()
        message = self.message(q, qd, stamp)
        if self.motion.random() < 0.5:
            message.name = [NAMES[1], "finger", NAMES[0]]
            message.position, message.velocity = [q[1], 7.0, q[0]], [qd[1], math.nan, qd[0]]
        if silent:
            self.silent.add(stamp)
        else:
            self.sent[stamp] = q, qd
        self.states_out.publish(message)

    def burst(self) -> None:
        self.history.append("burst")
        for _ in range(40):
            self.good(silent=not self.commanded)

    def bad(self) -> None:
        """A state with a fault, of other joints alone, or one that comes too late."""
        # a state that is known to be older than one that came just before it may not be used
        self.good(silent=not self.commanded)
        rng, stamp = self.rng, self.next_stamp()
        faults = ["nan", "inf", "length", "rates", "twice", "unknown", "part", "foreign", "stamp"]
        fault = str(rng.choice([*faults, "late", "late"]))
        answered = [stamp_of(each) for each in self.effort if stamp_of(each) in self.sent]
        if fault == "late" and answered:
            stamp = max(answered) - 1
        message = self.message(*rng.uniform(-2, 2, (2, 2)), stamp)
        if fault in ("nan", "inf", "late") and (fault != "late" or not answered):
            message.position[int(rng.integers(2))] = -math.inf if fault == "inf" else math.nan
        if fault == "length":
            message.position.append(0.0)
        if fault == "rates":
            message.velocity = []
        if fault == "twice":
            message.name = [NAMES[0]] * 2
        if fault == "unknown":
            message.name = []
        if fault == "part":
            message.name, message.position, message.velocity = [NAMES[1]], [0.3], [0.2]
        if fault == "foreign":
            message.name = ["finger", "thumb"]
        if fault == "stamp":
            message.header.stamp.nanosec = 10**9 + 7
        self.history.append(f"bad state: {fault}")
        self.silent.add(stamp)
        self.states_out.publish(message)

    def bad_command(self) -> None:
        """A command with a fault: it changes nothing."""
        names, qdd = list(NAMES), self.rng.uniform(-5, 5, 2).tolist()
        fault = str(self.rng.choice(["nan", "names", "length", "empty", "unknown"]))
        if fault == "nan":
            qdd[0] = math.nan
        if fault == "names":
            del names[1]
        if fault == "unknown":
            names[1] = "finger"
        if fault == "length":
            qdd.append(1.0)
        points = [] if fault == "empty" else [JointTrajectoryPoint(accelerations=qdd)]
        self.history.append(f"bad command: {fault}")
        self.command_out.publish(JointTrajectory(joint_names=names, points=points))

    def noise(self) -> None:
        """What changes nothing, among good states."""
        for _ in range(int(self.rng.integers(1, 5))):
            getattr(self, str(self.rng.choice(["bad", "bad", "burst", "bad_command"])))()
            if self.commanded:
                self.good()
            self.spin(0.0)

    def command(self) -> None:
        q, qd, qdd = want = tuple(map(tuple, self.rng.uniform(-2, 2, (3, 2)).tolist()))
        self.commanded = True
        point = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd)
        with self.change("command", want=want):
            if self.before is not None:
                # a first wrench on a link acts once it has been compiled for
                self.over[self.now._replace(wrench=self.before.wrench)] = 2**63
                self.before = None
            self.command_out.publish(JointTrajectory(joint_names=list(NAMES), points=[point]))

    def carry(self) -> None:
        mass = 1.5 if self.now.mass == 0 else 0.0
        message = InertiaStamped()
        message.header.frame_id = TIP
        message.inertia.m = mass
        message.inertia.com.x, message.inertia.com.z = 0.2, 0.1
        with self.change("payload", mass=mass):
            self.payload_out.publish(message)

    def limit(self) -> None:
        limit = NARROW if self.now.limit == WIDE else WIDE
        with self.change("limits", limit=limit):
            assert self.set_parameters(effort_limits=list(limit)).successful

    def follow(self) -> None:
        """Feedback, with gains that were none, or none any more."""
        gains = GAINS if self.now.gains != GAINS else (NONE, NONE)
        with self.change("gains", gains=gains):
            p, d = map(list, gains)
            assert self.set_parameters(p_gains=p, d_gains=d).successful

    def push(self) -> None:
        """A wrench on the tip, or none any more."""
        value = None if self.now.wrench else tuple(self.rng.uniform(-9, 9, 6).tolist())
        message = WrenchStamped()
        message.header.frame_id = TIP
        f, m = message.wrench.force, message.wrench.torque
        f.x, f.y, f.z, m.x, m.y, m.z = value or (0.0,) * 6
        with self.change("wrench", wrench=value):
            self.wrench_out.publish(message)

    def refuse(self) -> None:
        """Values that no parameter has: none is set."""
        self.history.append("bad parameters")
        wrong = [{"on_timeout": "explode"}, {"max_age": -1.0}, {"effort_limits": [1.0, math.nan]}]
        values = wrong[int(self.rng.integers(len(wrong)))]
        assert not self.set_parameters(**values).successful
        self.settled("bad parameters")

    def time_out(self) -> None:
        """The command is over, and stays so when there is no timeout any more."""
        with self.change("timeout", want=None):
            assert self.set_parameters(command_timeout=0.05).successful
        self.history.append("no timeout")
        assert self.set_parameters(command_timeout=0.0).successful
        self.noise()
        self.settled("no timeout")
        self.command()

    def live(self) -> None:
        """Deactivated it is silent; activated again it is, until there is a new command."""
        with self.change("deactivate"):
            self.commanded = False
            assert take(self, "deactivate")
        self.over[self.now] = self.stamp + 1
        self.quiet("inactive")
        self.before = self.now
        self.push()  # what is measured goes on being so
        spoke = len(self.commands)
        self.history.append("activate")
        assert take(self, "activate")
        self.quiet("waiting")
        assert self.commands[spoke:] == [], f"{self.commands[-1]}; {self.told()}"
        self.command()

    def quiet(self, what: str) -> None:
        """No state makes a torque, until the diagnostics say that it has had time for some."""
        self.history.append(what)
        heard = len(self.diagnostics)
        self.noise()
        self.until(
            lambda: len(self.diagnostics) > heard + 1,
            "diagnostics",
            meanwhile=lambda: self.good(silent=True),
        )
        self.judge()

    def play(self, seed: int) -> None:
        # how many states are sent while something is waited for is nothing that a seed decides
        self.rng, self.motion = np.random.default_rng(seed).spawn(2)
        self.history.append(f"seed {seed}")
        events = ["command", "carry", "limit", "follow", "push", "refuse", "time_out", "live"]
        more = self.rng.choice(["noise", *events[:5]], MORE).tolist()
        self.command()
        for name in self.rng.permutation([*events, *more]):
            getattr(self, str(name))()
        self.settled("all of it")


@pytest.fixture
def machine(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ROBOT.text)
    with Machine(
        description=str(file),
        command_timeout=0.0,
        on_timeout="gravity",
        max_age=200.0,
        effort_limits=list(WIDE),
    ) as found:
        yield found


def test_whatever_comes_by_topics_and_services_every_torque_is_that_of_what_was_said(
    machine, request
):
    seconds = request.config.getoption("--fuzz-seconds")
    seed, end = int(time.time()) if seconds else 0, time.monotonic() + seconds
    for k in range(SEEDS):
        machine.play(seed + k)
    while time.monotonic() < end:
        seed += 1
        machine.play(SEEDS + seed)
        # what no torque answers any more
        machine.sent = dict(list(machine.sent.items())[-5000:])
    assert machine.answers > 20 * SEEDS
    # a controller hears nothing else; a last one may be here before its sister with name and stamp
    named = {tuple(each.effort) for each in machine.effort}
    for values in machine.commands:
        if tuple(values) not in named:
            tau, said = np.array(values), [machine.now, *machine.over]
            assert machine.is_some(tau, said) or machine.is_at_rest(tau), values
    assert machine.stop() == 0
    assert "Traceback" not in machine.log
