# SPDX-License-Identifier: Apache-2.0
"""Whatever fails around the node, or kills it: no wrong torque goes out, and the node recovers.

Every state is a function of its stamp (state_source.py), so each torque is held against the
dynamics at the state that it belongs to.
"""

from __future__ import annotations

import copy
import dataclasses
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from builtin_interfaces.msg import Duration
from garbled import garbled
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from hypothesis import strategies as st
from node_bench import Bench, at, stamp
from node_process import PATIENCE, ROOT, Partner
from rclpy.impl.implementation_singleton import rclpy_implementation
from rosgraph_msgs.msg import Clock
from scipy.spatial import cKDTree
from sensor_msgs.msg import JointState
from state_source import JOINTS, SECOND, message, state
from std_msgs.msg import String
from test_description_fuzz import mutated_urdf
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd
from robot_dynamics.description import load_urdf_text
from robot_dynamics.description.fields import LARGEST
from robot_dynamics.description.urdf_writer import urdf
from robot_dynamics.ros.feed_forward import payload
from robot_dynamics.ros.feed_forward.controller import FeedForward
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec
from robot_dynamics.ros.publishing import publish

THREE_AXIS = str(ROOT / "config/three_axis.yaml")
DYNAMICS = rd.InverseDynamics(rd.load(THREE_AXIS), formulation="lagrange_euler")
CLOSE = 1e-6
"""N·m: formulations agree on 1000 N·m to rounding; states 0.1 ms apart differ by some 0.1"""

FIRST, SECOND_WISH = [1.0, -2.0, 3.0], [-2.0, 1.5, 0.5]
"""Accelerations, rad/s²"""

DRIVER = (sys.executable, str(Path(__file__).with_name("state_source.py")))


def torques(stamps: Sequence[int], qdd: Sequence[float], dynamics: Any = DYNAMICS) -> np.ndarray:
    """(N, 3) of the states at these stamps."""
    q, qd = np.array([state(ns) for ns in stamps]).reshape(-1, 2, 3).transpose(1, 0, 2)
    return dynamics(q, qd, np.broadcast_to(qdd, q.shape))


def stamp_of(each: JointState) -> int:
    return each.header.stamp.sec * SECOND + each.header.stamp.nanosec


def following(partner: Watched, qdd: Sequence[float], since: int = 0) -> list[int]:
    """Stamps, from this one on, whose torques have this acceleration."""
    found = [each for each in partner.effort if stamp_of(each) > since]
    if not found:
        return []
    stamps = [stamp_of(each) for each in found]
    off = np.abs([each.effort for each in found] - torques(stamps, qdd, partner.dynamics)).max(
        axis=1
    )
    return [ns for ns, each in zip(stamps, off, strict=True) if each < CLOSE]


def all_belong(partner: Watched, stamps: Sequence[int], *wishes: Sequence[float]) -> None:
    """Every torque so far is that of one of these states and one of these wishes."""
    assert partner.commands
    right = np.vstack([torques(stamps, qdd, partner.dynamics) for qdd in wishes])
    off, _ = cKDTree(right).query(np.array(partner.commands))
    worst = int(np.argmax(off))
    assert off[worst] < CLOSE, (partner.commands[worst], off[worst])
    # those with a stamp: of the very state that has it
    theirs = [stamp_of(each) for each in partner.effort]
    assert set(theirs) <= set(stamps)
    found = np.array([each.effort for each in partner.effort])
    right = [torques(theirs, qdd, partner.dynamics) for qdd in wishes]
    off = np.min([np.abs(found - each).max(axis=1) for each in right], axis=0)
    assert off.max() < CLOSE, (found[np.argmax(off)], off.max())


class Watched(Partner):
    """The node with a robot of three axes.

    Attributes:
        told: stamps of the states that this process has published.
        dynamics: what its torques are held against.
    """

    dynamics = DYNAMICS

    def __init__(self, **parameters):
        values = {"description": THREE_AXIS, "command_timeout": 0.0, "max_age": 2 * PATIENCE}
        super().__init__(**{**values, **parameters})
        self.told: list[int] = []

    def now(self) -> int:
        return int(self.node.get_clock().now().nanoseconds)

    def tell(self) -> None:
        """Publish a state."""
        ns = self.now() // 2 * 2
        self.told.append(ns)
        self.states_out.publish(message(ns))

    def desire(self, qdd: Sequence[float]) -> None:
        self.accelerate(dict(zip(JOINTS, qdd, strict=True)))

    def follow(self, qdd: Sequence[float]) -> None:
        """Until torques of states from now on are as wished."""
        since = self.now()

        def ask() -> None:
            self.desire(qdd)
            self.tell()

        self.until(lambda: following(self, qdd, since), f"torques for {qdd}", meanwhile=ask)

    @contextmanager
    def driver(self, rate: int, kind: int, *more: str):
        """A driver in a process of its own; a list that has its stamps in the end."""
        stamps: list[int] = []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = self.beside(*DRIVER, str(rate), str(kind), *more, **pipes)
        yield stamps
        said, _ = process.communicate(timeout=PATIENCE)
        start, period, end = map(int, said.split())
        stamps.extend(range(start, end, period))

    def settle(self) -> None:
        """Until the states that were on their way are answered."""
        since = self.now()
        self.until(
            lambda: any(stamp_of(each) > since for each in self.effort[-5:]),
            "torques of a later state",
            meanwhile=self.tell,
        )


def test_killed_and_started_again_it_is_silent_until_a_new_command_and_right_then():
    with Watched() as partner:
        partner.follow(FIRST)
        before = partner.told
        partner.kill_and_restart()
        partner.told = []
        partner.until(
            lambda: (
                partner.counts().get("phase") == "waiting" and int(partner.counts()["states"]) > 20
            ),
            "a node that has states and waits for a command",
            meanwhile=partner.tell,
        )
        all_belong(partner, before, FIRST)
        partner.commands.clear()
        partner.effort.clear()
        partner.follow(SECOND_WISH)
        all_belong(partner, partner.told, SECOND_WISH)
        assert partner.stop() == 0
        assert "Traceback" not in partner.log


def test_two_drivers_and_two_commanders_that_contradict_make_no_torque_of_neither():
    with Watched() as partner:
        partner.follow(FIRST)
        wishes = (FIRST, SECOND_WISH)
        since = partner.now()
        with partner.driver(500, 0) as one, partner.driver(500, 1) as other:

            def all_four() -> bool:
                kinds = [
                    {ns % 2 for ns in following(partner, qdd, since) if ns not in told}
                    for qdd in wishes
                ]
                return kinds == [{0, 1}, {0, 1}]

            told = set(partner.told)
            partner.until(
                all_four,
                "torques of both drivers' states with both commands",
                meanwhile=lambda: [partner.desire(qdd) for qdd in wishes],
            )
        all_belong(partner, [*partner.told, *one, *other], *wishes)


KEY = "rejected: joint_states: missing joint"
MOST_GROWTH = 2**20
"""Bytes: less than half a kilobyte of each state in the flood that reaches the node"""


def memory(pid: int) -> int:
    """Bytes that are in use."""
    words = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()
    return 1024 * int(words[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_a_flood_of_states_half_of_them_garbage_leaves_it_right_alive_and_small():
    with Watched(fresh=True) as partner:
        partner.follow(FIRST)
        wishes, sizes = (SECOND_WISH, FIRST), []
        with partner.driver(10_000, 0, "garbage") as flood:
            # the first look is when all that floods bring about once is there
            for qdd in wishes * 2:
                since = partner.now()
                partner.until(
                    lambda qdd=qdd, since=since: following(partner, qdd, since),
                    "torques of a new command",
                    meanwhile=lambda qdd=qdd: partner.desire(qdd),
                )
                heard = len(partner.diagnostics)
                refused = int(partner.counts().get(KEY, 0))
                partner.until(
                    lambda n=heard, r=refused: (
                        len(partner.diagnostics) > n and int(partner.counts().get(KEY, 0)) > r
                    ),
                    "diagnostics that count on",
                )
                sizes.append(memory(partner.process.pid))
        all_belong(partner, [*partner.told, *flood[::2]], *wishes)
        assert sizes[-1] - sizes[0] < MOST_GROWTH, sizes
        partner.settle()
        partner.effort.clear()
        partner.commands.clear()
        partner.follow(SECOND_WISH)
        all_belong(partner, [*partner.told, *flood[::2]], *wishes)


SIMULATED = (
    sys.executable, "-m", "robot_dynamics.ros.executables", "simulated_robot", "--ros-args",
    "-p", f"description:={THREE_AXIS}", "-p", "update_rate:=200.0", "-p", "bandwidth:=4.0",
    "-r", "~/joint_trajectory:=/feed_forward/command", "-r", "~/commands:=/feed_forward/commands",
)  # fmt: skip


def test_a_simulated_robot_killed_under_way_is_followed_by_torques_at_rest():
    pytest.importorskip("mujoco", reason="mujoco is not installed: extra `sim`")
    seconds, away = 20, np.array([2.0, -1.5, 1.0])
    with Watched(max_age=5.0) as partner:
        states: dict[int, JointState] = {}

        def hear(state: JointState) -> None:
            states[stamp_of(state)] = state

        partner.node.create_subscription(JointState, "joint_states", hear, 1000)
        robot = partner.beside(*SIMULATED)  # its PD alone holds it, however late torques come
        partner.until(lambda: len(states) > 10, "the robot's states")
        partner.until(lambda: partner.command_out.get_subscription_count() == 2, "both listeners")
        start = partner.now()
        trajectory = JointTrajectory(joint_names=JOINTS)
        trajectory.header.stamp.sec, trajectory.header.stamp.nanosec = divmod(start, SECOND)
        for time, share in ((0, 0.0), (seconds, 1.0)):
            trajectory.points.append(
                JointTrajectoryPoint(positions=(share * away).tolist(), velocities=[0.0] * 3,
                                     time_from_start=Duration(sec=time))
            )  # fmt: skip
        partner.command_out.publish(trajectory)

        def right(stamp: int, *, moves: bool) -> np.ndarray:
            each = states[stamp]
            # it stands at the first point until the motion begins
            if not moves or stamp < start:
                return DYNAMICS(each.position, [0.0] * 3, [0.0] * 3)
            # a cubic from rest to rest: q̈ = (6 - 12 u) Δ / h²
            u = (stamp - start) / SECOND / seconds
            return DYNAMICS(each.position, each.velocity, (6 - 12 * u) * away / seconds**2)

        def checked(*, moves: bool) -> int:
            """How many torques there are; all are right."""
            answered = [each for each in partner.effort if stamp_of(each) in states]
            for each in answered:
                expected = right(stamp_of(each), moves=moves)
                np.testing.assert_allclose(each.effort, expected, rtol=0, atol=CLOSE)
            return len(answered)

        def is_under_way() -> bool:
            newest = states[max(states)]
            return len(partner.effort) > 50 and newest.velocity[0] > 0.02

        partner.until(is_under_way, "torques under way")
        assert checked(moves=True) > 20
        robot.kill()
        robot.wait()

        def rests() -> bool:
            last = [right(stamp, moves=False) for stamp in sorted(states)[-20:]]
            return np.abs(np.array(last) - partner.commands[-1]).max(axis=1).min() < CLOSE

        partner.until(rests, "torques at rest")
        partner.until(lambda: partner.counts().get("phase") == "interrupted", "the command's end")
        # it stands up again elsewhere: nothing moves it but a new command
        partner.effort.clear()
        partner.beside(*SIMULATED)
        partner.until(lambda: checked(moves=False) > 20, "torques at rest where it is")
        partner.follow(FIRST)


# Garbage in messages


def body(mass: float = 2.0) -> InertiaStamped:
    """What the last link carries."""
    found = InertiaStamped()
    found.header.frame_id = "bar3"
    found.inertia.m = mass
    if mass:
        found.inertia.com.x, found.inertia.com.z = 0.3, -0.1
        found.inertia.ixx, found.inertia.iyy, found.inertia.izz = 0.02, 0.03, 0.04
        found.inertia.ixy = found.inertia.iyz = 0.001
    return found


def push() -> WrenchStamped:
    """What pushes the last link."""
    found = WrenchStamped()
    found.header.frame_id = "bar3"
    found.wrench.force.x, found.wrench.torque.z = 10.0, 2.0
    return found


def desired(qdd: Sequence[float]) -> JointTrajectory:
    return JointTrajectory(joint_names=JOINTS, points=[JointTrajectoryPoint(accelerations=qdd)])


def course(ns: int) -> JointTrajectory:
    """Three points of a motion that begins at a stamp."""
    found = JointTrajectory(joint_names=JOINTS)
    found.header.stamp.sec, found.header.stamp.nanosec = divmod(ns, SECOND)
    for k in range(3):
        q, qd = state(ns + k * SECOND // 9)
        point = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=FIRST)
        point.time_from_start.sec = 2 * k
        found.points.append(point)
    return found


def bench() -> Bench:
    """The node's logic on a bench, under way."""
    found = Bench(THREE_AXIS, command_timeout=0.0)
    found.controller.command(desired(FIRST), at(0.0))
    answer(found, 0.0)
    return found


def table(rows: Any) -> np.ndarray:
    return np.array([list(row) for row in rows], dtype=float)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=CLOSE)


def course_points_are_right(message: JointTrajectory) -> None:
    """Each has the effort of what it says, and the last one that at rest."""
    order = [list(message.joint_names).index(joint) for joint in JOINTS]
    q = table(each.positions for each in message.points)[:, order]
    qd, qdd = np.zeros_like(q), np.zeros_like(q)
    qd[:-1] = table(each.velocities for each in message.points[:-1])[:, order]
    qdd[:-1] = table(each.accelerations for each in message.points[:-1])[:, order]
    near(table(each.effort for each in message.points)[:, order], DYNAMICS(q, qd, qdd))


def answer(bench: Bench, now: float, order: Sequence[int] = range(3)) -> np.ndarray:
    """To a good state."""
    found = bench.controller.state(message(at(now), order), at(now))
    assert found is not None, (bench.controller.tally.newest, bench.rejected())
    return found.values


SOON = 0.01
"""s"""

MANY = 600
"""messages of each kind"""

CHANCE = st.integers(0, 2**62).map(Random)


class Times:
    """Each far enough from the one before that no stamp before makes it a late one."""

    def __init__(self) -> None:
        self.now = 0.0

    def next(self) -> float:
        self.now += 2.0
        return self.now


@pytest.fixture
def outcomes():
    """Some of the garbage is refused, and some is none."""
    found: Counter[bool] = Counter()
    yield found
    assert min(found[True], found[False]) > MANY // 50, found


def test_a_state_with_garbage_has_its_own_torque_or_none_and_leaves_no_trace(examples, outcomes):
    node, times = bench(), Times()

    def check(rng: Random) -> None:
        # of a driver that has an order of its own
        order = rng.sample(range(3), 3)
        now = times.next()
        bad = garbled(rng, message(at(now), order))
        found = node.controller.state(copy.deepcopy(bad), at(now))
        outcomes[found is None] += 1
        if found is not None:
            assert len(bad.name) == len(bad.position) == len(bad.velocity)
            places = [list(bad.name).index(joint) for joint in JOINTS]
            q, qd = np.array(bad.position)[places], np.array(bad.velocity)[places]
            assert np.isfinite(found.values).all()
            if np.abs(q).max() < 1e6:  # beyond, the sum of two angles is none
                near(found.values, DYNAMICS(q, qd, FIRST))
        near(answer(node, times.next(), order), torques([at(times.now)], FIRST)[0])

    examples(check, MANY, rng=CHANCE)


def test_a_command_with_garbage_is_its_own_motion_or_none_and_the_next_one_counts(
    examples, outcomes
):
    node, times = bench(), Times()

    def check(rng: Random) -> None:
        now = times.next()
        good = rng.choice([desired(FIRST), course(at(now))])
        bad, before = garbled(rng, good), node.controller.commands.count
        node.controller.command(copy.deepcopy(bad), at(now))
        accepted = node.controller.commands.count > before
        outcomes[accepted] += 1
        q, qd = map(np.array, state(at(now + SOON)))
        found = answer(node, now + SOON)
        if not accepted:
            near(found, DYNAMICS(q, qd, SECOND_WISH))
        elif len(bad.points) == 1 and not len(bad.points[0].positions):
            order = [list(bad.joint_names).index(joint) for joint in JOINTS]
            near(found, DYNAMICS(q, qd, np.array(bad.points[0].accelerations)[order]))
        else:
            most = node.settings.max_acceleration
            assert np.abs(DYNAMICS.forward(q, qd, found)).max() <= most * (1 + CLOSE)
        node.controller.command(desired(SECOND_WISH), at(now + SOON))
        near(answer(node, now + 2 * SOON), torques([at(now + 2 * SOON)], SECOND_WISH)[0])

    node.controller.command(desired(SECOND_WISH), at(0.0))
    answer(node, SOON)
    examples(check, MANY, rng=CHANCE)


def test_a_trajectory_with_garbage_gets_its_own_torques_or_none(examples, outcomes):
    node, times = bench(), Times()

    def check(rng: Random) -> None:
        now = times.next()
        bad = garbled(rng, course(at(now)))
        before = [list(each.effort) for each in bad.points]
        try:
            node.controller.filler(at(now))(bad)
        except rd.RobotDynamicsError:
            outcomes[False] += 1
            after = [list(each.effort) for each in bad.points]
            np.testing.assert_array_equal(np.hstack([[], *after]), np.hstack([[], *before]))
        else:
            outcomes[True] += 1
            assert not np.hstack(before).size, "what has effort already is not for this node"
            effort = table(each.effort for each in bad.points)
            assert effort.shape == (len(bad.points), 3)
            assert np.isfinite(effort).all()
            # between points that differ in what they carry runs a spline of a lower degree
            if all(len(each.velocities) and len(each.accelerations) for each in bad.points):
                course_points_are_right(bad)
        good = course(at(times.next()))
        node.controller.filler(at(times.now))(good)
        course_points_are_right(good)

    examples(check, MANY, rng=CHANCE)


def test_a_payload_with_garbage_is_a_body_that_can_be_or_refused(examples, outcomes):
    def check(rng: Random) -> None:
        bad = garbled(rng, body())
        i = bad.inertia
        tensor = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
        numbers = [i.m, i.com.x, i.com.y, i.com.z, *tensor.flat]
        possible = i.m == 0 or bool(np.abs(numbers).max() <= LARGEST and i.m >= 0)
        if possible and i.m:
            # each moment, and no moment beyond the sum of the others
            moments = np.linalg.eigvalsh(tensor)
            slack = max(1e-6 * np.abs(moments).max(), 1e-15)
            possible = bool(moments[0] > -slack and moments[0] + moments[1] > moments[2] - slack)
        try:
            link, found = payload.read(bad)
        except rd.RobotDynamicsError:
            outcomes[False] += 1
            assert not possible
        else:
            outcomes[True] += 1
            assert possible
            assert link == bad.header.frame_id
            # without a mass there is no payload, whatever else is said of it
            body_found = tensor.tolist() if i.m else np.zeros((3, 3)).tolist()
            assert (found.mass, found.inertia.tolist()) == (i.m, body_found)

    examples(check, MANY, rng=CHANCE)


class Twin:
    """The same robot in this process: would the node refuse a message?"""

    def __init__(self, partner: Watched) -> None:
        self._settings = Settings.of({"command_timeout": 0.0, "max_age": 2 * PATIENCE})
        self._model = Model(ModelSpec(rd.load(THREE_AXIS), self._settings))
        self._now = partner.now

    def refuses(self, topic: str, bad: Any) -> bool:
        bad = copy.deepcopy(bad)
        # one without a past: what came before only makes a node refuse more
        node = FeedForward(self._settings, lambda _: None)
        node.adopt(self._model)
        if topic == "joint_states":
            node.command(desired(FIRST), self._now())
            return node.state(bad, self._now()) is None
        if topic == "command":
            node.command(bad, self._now())
            return not node.commands.count
        if topic == "wrench":
            node.wrench(bad, self._now())
            return bool(node.tally.rejected)
        try:
            if topic == "trajectory_in":
                node.filler(self._now())(bad)
            else:
                payload.check_link(payload.read(bad)[0], self._model.spec.mechanism)
        except rd.RobotDynamicsError:
            return True
        return False


def refused(partner: Watched, topic: str) -> int:
    counts = partner.counts().items()
    return sum(int(n) for key, n in counts if key.startswith(f"rejected: {topic}:"))


def test_hundreds_of_messages_with_garbage_make_no_torque_and_good_ones_count(examples):
    with Watched() as partner:
        node = partner.node
        wrench_out = node.create_publisher(WrenchStamped, "/feed_forward/wrench", 10)
        trajectory_out = node.create_publisher(JointTrajectory, "/feed_forward/trajectory_in", 10)
        filled: list[JointTrajectory] = []
        node.create_subscription(JointTrajectory, "/feed_forward/trajectory_out", filled.append, 10)
        out = {
            "joint_states": (partner.states_out, lambda: message(partner.now() // 2 * 2)),
            "command": (partner.command_out, lambda: desired(SECOND_WISH)),
            "trajectory_in": (trajectory_out, lambda: course(partner.now())),
            "payload": (partner.payload_out, body),
            "wrench": (wrench_out, push),
        }
        partner.until(lambda: all(p.get_subscription_count() for p, _ in out.values()), "topics")
        partner.follow(FIRST)
        twin, sent = Twin(partner), Counter[str]()

        def send(rng: Random) -> None:
            topic = rng.choice(list(out))
            publisher, good = out[topic]
            bad = garbled(rng, good())
            if twin.refuses(topic, bad):
                publisher.publish(bad)
                sent[topic] += 1
                partner.tell()
                partner.spin()
                if sum(sent.values()) % 5 == 0:  # no more than queues hold
                    partner.settle()

        examples(send, 500, rng=CHANCE)
        assert min(sent[topic] for topic in out) > 30, sent
        partner.until(
            lambda: all(refused(partner, topic) > sent[topic] // 2 for topic in out),
            f"diagnostics that count {sent}",
            meanwhile=partner.tell,
        )
        partner.settle()
        all_belong(partner, partner.told, FIRST)
        assert not filled
        assert all(line.isprintable() for line in partner.log.splitlines())
        # a good one of each kind
        good = course(0)
        partner.until(
            lambda: filled,
            "effort",
            meanwhile=lambda: (trajectory_out.publish(good), partner.tell()),
        )
        course_points_are_right(filled[0])
        for mass in (2.0, 0.0):
            partner.dynamics = carrying(mass)
            partner.payload_out.publish(body(mass))
            partner.follow(SECOND_WISH)


def carrying(mass: float) -> rd.InverseDynamics:
    dynamics = rd.InverseDynamics(rd.load(THREE_AXIS))
    dynamics.set_payload(*payload.read(body(mass)))
    return dynamics


# Wrong descriptions


def test_wrong_descriptions_in_a_row_change_nothing_and_a_good_one_takes_over():
    robot = dataclasses.replace(rd.load(THREE_AXIS), rotors=())
    first, second = (
        urdf(robot),
        urdf(dataclasses.replace(robot, name="lighter", links=lighter(robot))),
    )
    rng, wrong = Random(7), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(wrong) < 50:
            text = mutated_urdf(rng).replace("\0", "").encode(errors="ignore").decode()
            try:
                load_urdf_text(text)
            except rd.RobotDynamicsError:
                wrong.append(text)
    with Watched(description="") as partner:
        partner.dynamics = rd.InverseDynamics(rd.load(first))
        partner.description_out.publish(String(data=first))
        partner.follow(FIRST)
        for k, text in enumerate(wrong):
            partner.description_out.publish(String(data=text))
            partner.settle()
            if k % 25 == 24:
                before = refused(partner, "description")
                partner.until(
                    lambda n=before: refused(partner, "description") > n,
                    "a refusal",
                    meanwhile=partner.tell,
                )
        partner.settle()
        all_belong(partner, partner.told, FIRST)
        partner.dynamics = rd.InverseDynamics(rd.load(second))
        partner.description_out.publish(String(data=second))
        partner.follow(SECOND_WISH)
        assert "Traceback" not in partner.log


def lighter(robot: Any) -> tuple[Any, ...]:
    """Its links with half their mass."""
    return tuple(
        dataclasses.replace(
            link, inertial=dataclasses.replace(link.inertial, mass=link.inertial.mass / 2)
        )
        for link in robot.links
    )


@pytest.mark.parametrize("short", [False, True], ids=["once", "and once more, at once"])
def test_states_without_stamps_or_rates_make_no_jump_after_the_node_stood_still(short):
    """Of those that waited, most are lost in the queue, and the others are read whenever the node
    gets to them: one of the first, and then, if it stands still once more, one of the last."""
    file, names = str(ROOT / "config/polar.yaml"), ["theta1", "d2"]
    rate, step = 0.2, 0.002
    parameters = {
        "missing_velocities": "derive",
        "derivative_filter": 0.0,
        "command_timeout": 0.0,
        "max_age": 0.0,
        # m ḋ² has no part along a slide that does not turn: what is left is by rates alone
        "max_acceleration": 0.0,
    }
    dynamics = rd.InverseDynamics(rd.load(file))
    ended = threading.Event()
    with Partner(description=file, **parameters) as partner:

        def publish() -> None:
            for k in count():
                place = [rate * step * k, 0.5]
                partner.states_out.publish(JointState(name=names, position=place))
                if k % 10 == 0:
                    partner.accelerate({"theta1": 0.0, "d2": 0.0})
                if ended.wait(step):
                    return

        robot = threading.Thread(target=publish)
        robot.start()
        try:
            partner.until(lambda: len(partner.commands) > 50, "torques")
            for k in range(30 if short else 1):
                for stopped in (0.6, 0.06) if short else (3.0,):
                    partner.process.send_signal(signal.SIGSTOP)
                    time.sleep(stopped)
                    partner.process.send_signal(signal.SIGCONT)
                    time.sleep(1e-4 * (1 + k))
                partner.spin(0.1)
            before = len(partner.commands)
            partner.until(lambda: len(partner.commands) > before + 50, "torques again")
        finally:
            ended.set()
            robot.join()
    # - m d θ̇²: a step that took longer looks slow, and none looks quicker than it was
    most = np.abs(dynamics([0.0, 0.5], [1.01 * rate, 0.0], [0.0, 0.0])).max()
    found = np.abs(partner.commands).max()
    assert 0 < found <= most


def test_in_simulated_time_nothing_is_derived_from_states_without_stamps():
    """It does not pass as that of the wall does, by which they are sent, and several states may
    arrive at one time of the clock."""
    file, names = str(ROOT / "config/polar.yaml"), ["theta1", "d2"]
    with Partner(
        description=file, missing_velocities="derive", command_timeout=0.0, use_sim_time=True
    ) as partner:
        clock, ticks = partner.node.create_publisher(Clock, "/clock", 10), count(1)

        def publish(stamps: bool) -> None:
            now = stamp(0.02 * next(ticks))
            clock.publish(Clock(clock=now))
            message = JointState(name=names, position=[0.3, 0.5])
            if stamps:
                message.header.stamp = now
            partner.states_out.publish(message)
            partner.accelerate({"theta1": 0.0, "d2": 0.0})

        partner.until(
            lambda: int(partner.counts().get("rejected: joint_states: no stamp", 0)) > 50,
            "refusals",
            meanwhile=lambda: publish(False),
        )
        assert not partner.commands
        partner.until(lambda: partner.commands, "torques", meanwhile=lambda: publish(True))


@pytest.mark.parametrize("stalls", [0, 1, 2])
def test_a_publisher_that_fails_after_a_stall_is_tried_once_more(stalls):
    class Stalled:
        left, sent = stalls, 0

        def publish(self, _):
            if self.left:
                self.left -= 1
                raise rclpy_implementation.RCLError("Failed to publish: cannot publish data")
            self.sent += 1

    publisher = Stalled()
    if stalls > 1:
        with pytest.raises(rclpy_implementation.RCLError):
            publish(publisher, String())
    else:
        publish(publisher, String())
        assert publisher.sent == 1
