# SPDX-License-Identifier: Apache-2.0
"""The node's controller with loops and sensors as a state machine: every event in any order.

The oracle is Pinocchio's cut tree, closed by Newton's method along the way that the robot really
goes. It knows what was sent, and nothing of the code. After each event: no torque is wrong, what
was refused leaves no trace (a twin that never hears it gives the same torques); and good input is
answered again, and rightly.
"""

from __future__ import annotations

import copy
import math
import os
import time
from functools import cache, lru_cache

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")
pytest.importorskip("pinocchio", reason="the oracle is not installed: extra `dev`")

from closed_robots import Oracle, shipped
from node_bench import START, point, stamp
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

import robot_dynamics as rd
from robot_dynamics.mechanism import Inertial
from robot_dynamics.ros.feed_forward.controller import FeedForward
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

SEQUENCES = int(os.environ.get("ROBOT_DYNAMICS_EXAMPLES", 20))
LENGTH = 30
SAME = 1e-7
"""Relative: of a closed state where the condition number may be a hundred"""
RATE = 1.0
"""rad/s at most"""

CARRIERS = {"rrr": "load", "five_bar": "tool"}
"""The link of each robot that a payload is carried by"""

REACHLESS = {"rrr": np.radians([210.0, 330.0, 90.0]), "five_bar": np.array([math.pi, 0.0])}
"""All arms outwards: no platform holds them together"""


class WrongError(AssertionError):
    """A promise that was not kept."""


@cache
def mechanism(name: str) -> rd.Mechanism:
    return rd.load(f"package://robot_dynamics/config/{name}.yaml")


@cache
def names(name: str) -> tuple[tuple[str, ...], int]:
    """All joints, the motors first, and how many motors there are."""
    closed = rd.InverseDynamics(mechanism(name)).closed
    return closed.coordinate_names, len(closed.actuated_names)


@lru_cache
def oracle(name: str, mass: float) -> Oracle:
    robot = copy.deepcopy(shipped(name))
    carrier = next(link for link in robot["links"] if link["name"] == CARRIERS[name])
    carrier["mass"] = carrier.get("mass", 0.0) + mass
    return Oracle(robot, *names(name))


class World:
    """The controller, its twin, the robot as it really is, and what was sent."""

    def __init__(self, seed: int):
        self.rng = rng = np.random.default_rng(seed)
        self.name = str(rng.choice(list(CARRIERS)))
        self.sensed = bool(rng.random() < 0.7)
        self.mass = 0.0
        values = {
            "sensed": self.sensed,
            "command_timeout": 0.0,
            "max_age": 1.0,
            "effort_limits": [1e9] * names(self.name)[1],
            "max_acceleration": 0.0,
        }
        self.settings = Settings.of(values)
        self.log: list[str] = []
        self.history: list[str] = []
        self.ours = FeedForward(self.settings, self.log.append, lambda: 0.0)
        self.twin = FeedForward(self.settings, lambda _: None, lambda: 0.0)
        self.all, self.count = names(self.name)
        self.q = np.array([mechanism(self.name).home[joint] for joint in self.all])
        self.centre = self.q[: self.count].copy()
        self.goal, self.t = self.centre.copy(), 0.0
        self.qdd: np.ndarray | None = None
        self.pending: np.ndarray | None = None
        self.stopped = False
        self.torques = 0
        self.last = self.q
        self._close()
        self._adopt()

    @property
    def oracle(self) -> Oracle:
        return oracle(self.name, self.mass)

    @property
    def both(self) -> tuple[FeedForward, FeedForward]:
        return self.ours, self.twin

    @property
    def now(self) -> int:
        """ns"""
        return START + round(self.t * 1e9)

    def _adopt(self) -> None:
        at = CARRIERS[self.name]
        payloads = {at: Inertial(self.mass, np.zeros(3))} if self.mass else {}
        for each in (self.ours, self.twin):
            model = Model(ModelSpec(mechanism(self.name), self.settings, payloads))
            if each.model is not None:
                model.continue_from(each.model)
            each.adopt(model)

    def _close(self) -> None:
        """q ← q - J⁺ c of the passive joints."""
        a = self.count
        for _ in range(20):
            miss, J, _ = self.oracle.closure(self.q, 0 * self.q)
            if np.abs(miss).max() < 1e-14:
                return
            self.q[a:] -= np.linalg.pinv(J[:, a:], rcond=1e-9) @ miss

    # The robot moves, in small steps: it cannot jump to another assembly mode

    def wait(self) -> None:
        dt = float(self.rng.choice([0.001, 0.005, 0.02]))
        if self.rng.random() < 0.2:
            self.goal = self.centre + self.rng.uniform(-0.25, 0.25, self.count)
        before = self.q.copy()
        away = self.goal - self.q[: self.count]
        self.q[: self.count] += np.clip(away, -RATE * dt, RATE * dt)
        self._close()
        self.qd_a = (self.q - before)[: self.count] / dt
        self.t += dt

    # What comes

    def message(self) -> JointState:
        qd = self.oracle.T(self.q) @ self.qd_a
        order = self.rng.permutation(len(self.all))
        if not self.sensed and self.rng.random() < 0.5:
            order = order[order < self.count]
        found = JointState(name=[self.all[i] for i in order])
        found.position, found.velocity = self.q[order].tolist(), qd[order].tolist()
        found.header.stamp = stamp(self.t)
        return found

    def _hear(self, message: JointState, why: str) -> bool:
        """Is a state answered? The twin hears only what was not refused."""
        rejected = sum(self.ours.tally.rejected.values())
        out = self.ours.state(message, self.now)
        refused = sum(self.ours.tally.rejected.values()) > rejected
        self.history.append(
            f"{self.t:.3f} {why or 'state'} {'refused' * refused} {self.ours.tally.newest}"
        )
        if out is None and refused:
            return False
        other = self.twin.state(message, self.now)
        if (out is None) != (other is None):
            raise WrongError(f"{why}: what was refused before left a trace")
        if out is None:
            return False
        self.torques += 1
        if not self._is(other.values, out.values):
            raise WrongError(f"{why}: {out.values}, but {other.values} without what was refused")
        self._judge(out.values, why)
        return True

    def _judge(self, tau: np.ndarray, why: str) -> None:
        if self.pending is not None:
            self.qdd, self.pending, self.stopped = self.pending, None, False
        if self.qdd is None:
            raise WrongError(f"{why}: torques without a command")
        zero = np.zeros(self.count)
        wanted = (zero, zero) if self.stopped else (self.qd_a, self.qdd)
        expected = self.oracle.torques(self.q, *wanted)
        if not self._is(tau, expected):
            raise WrongError(f"{why}: {tau}, expected {expected}, stopped {self.stopped}")
        self.last = self.q.copy()

    @staticmethod
    def _is(found: np.ndarray, expected: np.ndarray) -> bool:
        return bool(np.abs(found - expected).max() < SAME * (1 + np.abs(expected).max()))

    def good(self) -> None:
        ready = self.qdd is not None or self.pending is not None
        if self._hear(self.message(), "") != ready:
            raise WrongError(f"a good state was not answered: {self.ours.tally.newest}")

    def lie(self) -> None:
        """A passive joint's encoder reads something else: solved values go on, or silence."""
        message = self.message()
        passive = [i for i, name in enumerate(message.name) if name in self.all[self.count :]]
        if passive:
            i = int(self.rng.choice(passive))
            message.position[i] += float(self.rng.choice([0.2, -0.5, 3.0, 1e3]))
            self._hear(message, f"{message.name[i]} lies")

    def lose(self) -> None:
        """A joint is missing, or its reading is no number."""
        message = self.message()
        i = int(self.rng.integers(len(message.name)))
        motor = message.name[i] in self.all[: self.count]
        why = f"without {message.name[i]}"
        if self.rng.random() < 0.5:
            message.position[i], why = math.nan, f"{message.name[i]} is NaN"
        else:
            for values in (message.name, message.position, message.velocity):
                del values[i]
        if self._hear(message, why) and motor:
            raise WrongError(f"{why}: torques")

    def old(self) -> None:
        message = self.message()
        message.header.stamp = stamp(self.t - 5.0)
        if self._hear(message, "old"):
            raise WrongError("an old state was answered")

    def beyond(self) -> None:
        """Motors where no platform holds them together: torques at rest of before, or silence."""
        message = self.message()
        for name, value in zip(self.all, REACHLESS[self.name], strict=False):
            message.position[message.name.index(name)] = float(value)
        self.history.append(f"{self.t:.3f} beyond reach")
        self._last_words([each.state(message, self.now) for each in self.both], "beyond reach")
        if self.sensed and self.qdd is None:
            # it never began
            self.pending = None
        self._over()

    def silence(self) -> None:
        """No state for longer than max_age."""
        self.t += 1.5
        self.history.append(f"{self.t:.3f} silence")
        moved = self.qdd is not None and not self.stopped
        outs = [each.watch(self.now) for each in self.both]
        if moved and outs[0] is None and not self.ours.outlet.at_rest:
            raise WrongError("a motion's torques stay for good")
        self._last_words(outs, "silence")
        # a command has waited too long by now
        self.pending = None
        if outs[0] is not None:
            self._over()

    def _last_words(self, outs: list, why: str) -> None:
        """At rest where the robot was answered last, or nothing."""
        for out in outs:
            if out is not None:
                at_rest = self.oracle.torques(self.last, *np.zeros((2, self.count)))
                if not self._is(out.values, at_rest):
                    raise WrongError(f"{why}: {out.values}, expected {at_rest}")

    def _over(self) -> None:
        """The command is over, also one that would have begun."""
        if self.qdd is None:
            self.qdd = self.pending
        self.pending = None
        self.stopped = self.qdd is not None

    def command(self) -> None:
        qdd = self.rng.uniform(-5, 5, self.count)
        self.history.append(f"{self.t:.3f} command {qdd}")
        for each in self.both:
            each.command(self._order(qdd), self.now)
        self.pending = qdd

    def bad_command(self) -> None:
        qdd = self.rng.uniform(-5, 5, self.count)
        qdd[0] = math.nan
        self.ours.command(self._order(qdd), self.now)

    def _order(self, qdd: np.ndarray) -> JointTrajectory:
        motors = list(self.all[: self.count])
        return JointTrajectory(joint_names=motors, points=[point(qdd=qdd)])

    def carry(self) -> None:
        self.mass = float(self.rng.choice([0.0, 0.7, 2.0]))
        self.history.append(f"{self.t:.3f} payload {self.mass}")
        self._adopt()

    def live(self) -> None:
        """Deactivated, perhaps cleaned up, and active again."""
        self.history.append(f"{self.t:.3f} off and on")
        self._last_words([each.deactivate(self.now) for each in self.both], "off")
        self.qdd = self.pending = None
        self.stopped = False
        if self.rng.random() < 0.5:
            for each in self.both:
                each.release()
            self._adopt()


EVENTS = (
    ("good", 10),
    ("lie", 4),
    ("lose", 3),
    ("old", 1),
    ("beyond", 1),
    ("silence", 1),
    ("command", 4),
    ("bad_command", 1),
    ("carry", 1),
    ("live", 1),
)
"""What happens, and how often"""


def played(seed: int) -> World:
    world = World(seed)
    events, weights = zip(*EVENTS, strict=True)
    share = np.array(weights) / sum(weights)
    try:
        for name in (*world.rng.choice(events, LENGTH, p=share), "command", "good"):
            world.wait()
            getattr(world, str(name))()
    except WrongError as error:
        raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(world.history[-30:])) from None
    return world


def test_no_sequence_makes_a_wrong_torque_leaves_a_trace_or_silences_it_for_good(request):
    seconds = request.config.getoption("--fuzz-seconds")
    if not seconds:
        torques = sum(played(seed).torques for seed in range(SEQUENCES))
        assert torques > 5 * SEQUENCES
        return
    seed, end = int(time.time()), time.monotonic() + seconds
    while time.monotonic() < end:
        seed += 1
        played(seed)
