# SPDX-License-Identifier: Apache-2.0
"""The watch in its own process: it reports, and changes nothing until a person asks for it."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
pytest.importorskip("std_srvs", reason="std_srvs is not installed: extra `ros`")
pytest.importorskip("scipy", reason="SciPy filters the recordings")

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped
from node_process import Conversation, command_line, refusal
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from test_watch import ARM, BLOCKS, CHANGE, LINK, blocks, working

import robot_dynamics as rd
from robot_dynamics.description import load_urdf_text
from robot_dynamics.identification import Recording
from robot_dynamics.identification.watch import Watch
from robot_dynamics.mechanism import Inertial
from robot_dynamics.mechanism.dynamic_parameters import BODY, body_of
from robot_dynamics.ros.feed_forward.parameter_table import markdown, rows
from robot_dynamics.ros.feed_forward.payload import parsed, written
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.watch_node import WatchSettings

PROGRAM = (sys.executable, "-m", "robot_dynamics.ros.executables", "watch")
URDF = (Path(__file__).parents[1] / "urdf" / "six_axis.urdf").read_text()
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Watched(Conversation):
    """The node, and what it reports."""

    def __init__(self, **parameters) -> None:
        super().__init__(
            PROGRAM,
            {"link": LINK, "block": 4.5, **parameters},
            ("-r", "~/payloads:=/feed_forward/payloads"),
        )
        self.reports: list[DiagnosticArray] = []
        self.models: list[str] = []
        node = self.node
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_report, 100)
        node.create_subscription(
            String, "/watch/robot_description", lambda m: self.models.append(m.data), LATCHED
        )
        self.description = node.create_publisher(String, "robot_description", LATCHED)
        self.states = node.create_publisher(JointState, "joint_states", 1000)

    def _meet(self) -> None:
        self.until(self.states.get_subscription_count, "the node")

    def _on_report(self, message: DiagnosticArray) -> None:
        if message.status[0].name == "watch: model":
            self.reports.append(message)

    def carry(self, message: InertiaStamped) -> None:
        """Tell the node feed_forward of a payload, and wait until it has taken it over."""
        told: list[String] = []
        sub = self.node.create_subscription(String, "/feed_forward/payloads", told.append, LATCHED)
        out = self.node.create_publisher(InertiaStamped, "/feed_forward/payload", 10)
        self.until(lambda: told and out.get_subscription_count(), "the node feed_forward")
        mass = f'"mass": {message.inertia.m!r}'
        self.until(
            lambda: mass in told[-1].data,
            "its payload",
            meanwhile=lambda: (out.publish(message), self.spin(0.2)),
        )
        self.node.destroy_publisher(out)
        self.node.destroy_subscription(sub)

    def adopt(self) -> Trigger.Response:
        return self.ask(Trigger, "/watch/adopt")

    def work(self, recording, start: float, reported: bool = True) -> None:
        """Report a block of motion to the node, and wait until it has processed it."""
        (stream,) = recording.streams
        before = len(self.reports)
        for k, t in enumerate(stream.time):
            message = JointState(name=list(stream.names))
            ns = round(1e9 * (start + t))
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(ns, 10**9)
            message.position, message.velocity, message.effort = (
                field[k].tolist() for field in (stream.position, stream.velocity, stream.effort)
            )
            self.states.publish(message)
            if k % 20 == 19:
                self.spin(0.01)
        self.until(lambda: not reported or len(self.reports) > before, "a report")

    def work_until_proven(self, truth: rd.Mechanism, seed: int) -> None:
        """Let this robot work until a better model is proven. The first states of a node that has
        just been started get lost, and a block with them."""
        for k, block in enumerate(blocks(truth, BLOCKS + 4, seed)):
            self.work(block, 100.0 * (1 + k))
            if "better model was found" in self.reports[-1].status[0].message:
                return
        raise AssertionError(self.reports[-1].status[0].message)


def test_a_person_adopts_what_is_proven_and_nothing_else_is_published():
    truth = working(CHANGE)
    with Watched() as watched:
        answer = watched.adopt()
        assert not answer.success
        assert "no robot_description" in answer.message
        watched.description.publish(String(data=URDF))
        watched.until(lambda: "watching" in watched.log, "the robot")
        watched.work(*blocks(truth, 1, seed=8), 0.0)
        answer = watched.adopt()
        assert not answer.success
        assert "not proven" in answer.message
        watched.work_until_proven(truth, seed=7)
        status = watched.reports[-1].status[0]
        values = {each.key: each.value for each in status.values}
        assert "±" in values[f"{LINK}.mass"]
        assert watched.models == []
        answer = watched.adopt()
        assert answer.success, answer.message
        (text,) = watched.until(lambda: watched.models, "the model")
        assert not watched.adopt().success  # the next one has to be proven first
        assert watched.stop() == 0
        for words in ("keeping the current model", "a better model was found"):
            assert watched.log.count(words) == 1  # not again with each block
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (3, 50, len(ARM.joint_names)))
    right = rd.InverseDynamics(truth)(q, qd, qdd)
    before, after = (
        np.abs(rd.InverseDynamics(each)(q, qd, qdd) - right).max() for each in (ARM, rd.load(text))
    )
    assert after < 0.1 * before


def test_states_that_cannot_be_used_are_reported():
    with Watched(block=2.0) as watched:
        watched.description.publish(String(data=URDF))
        watched.until(lambda: "watching" in watched.log, "the robot")

        names = list(ARM.joint_names)
        full = JointState(name=names, position=[0.0] * 6, effort=[0.0] * 6)
        partial = JointState(name=names[:-1], position=[0.0] * 5, effort=[0.0] * 5)
        silent = JointState(name=names, position=[0.0] * 6)
        partial.header.stamp.sec = silent.header.stamp.sec = 1
        wanted = {"no joint_states": None, "stamps": full, names[-1]: partial, "efforts": silent}
        for word, message in wanted.items():
            watched.until(
                lambda word=word: any(word in r.status[0].message for r in watched.reports),
                word,
                meanwhile=lambda m=message: m and watched.states.publish(m),
            )
        assert watched.stop() == 0


def test_a_clock_that_is_set_back_ends_a_block():
    with Watched() as watched:
        watched.description.publish(String(data=URDF))
        watched.until(lambda: "watching" in watched.log, "the robot")
        first, second = blocks(ARM, 2, seed=11)
        (stream,) = first.streams
        # less than a block, then two days earlier
        part = replace(first, streams=(stream.rows(stream.time < 3.0),))
        watched.work(part, 200_000.0, reported=False)
        watched.work(second, 100.0)
        assert watched.stop() == 0


def test_a_payload_that_the_controller_knows_is_not_adopted_once_more():
    truth = working(CHANGE | {f"{joint}.viscous": 1.0 for joint in ARM.joint_names})
    carried = body_of(np.array([CHANGE.get(f"{LINK}.{name}", 0.0) for name in BODY]))
    message = InertiaStamped()
    message.header.frame_id = LINK
    message.inertia.m = float(carried.mass)
    message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = carried.center_of_mass
    for (i, j), name in {(0, 0): "ixx", (1, 1): "iyy", (2, 2): "izz", (0, 2): "ixz"}.items():
        setattr(message.inertia, name, float(carried.inertia[i, j]))
    with Watched() as watched:
        watched.beside(*command_line())
        watched.description.publish(String(data=URDF))
        watched.carry(message)
        # whoever starts later knows it as well
        watched.kill_and_restart()
        watched.until(lambda: "beside payloads of 2 kg" in watched.log.splitlines()[-1], "both")
        watched.work_until_proven(truth, seed=12)
        answer = watched.adopt()  # friction has changed, too
        assert answer.success, answer.message
        (text,) = watched.until(lambda: watched.models, "the model")
        assert watched.stop() == 0
    # what is fitted is the sum, but the link alone is possible, too
    link = rd.load(text, strict=True).link(LINK).inertial
    assert link.mass == pytest.approx(ARM.link(LINK).inertial.mass, abs=0.05)


def test_a_payload_leaves_with_the_node_or_the_link_that_carries_it():
    without = URDF.replace(f'"{LINK}"', '"other"')
    message = InertiaStamped()
    message.header.frame_id, message.inertia.m = LINK, 3.0
    with Watched(link="") as watched:

        def last(*words: str) -> None:
            line = f"watching six_axis and the load on {' '.join(words)}"
            watched.until(lambda: watched.log.splitlines()[-1].endswith(line), line)

        node = watched.beside(*command_line())
        for _ in range(2):
            watched.description.publish(String(data=URDF))
            watched.carry(message)
            last(LINK, "beside payloads of 3 kg")
            watched.description.publish(String(data=without))
            last("other")
            watched.description.publish(String(data=URDF))
            last(LINK)
        watched.carry(message)
        last(LINK, "beside payloads of 3 kg")
        node.kill()
        node.wait()
        watched.beside(*command_line())
        last(LINK)
        assert watched.stop() == 0


NONE = "[[0, 0, 0], [0, 0, 0], [0, 0, 0]]"


def heavy(mass: str, inertia: str = NONE) -> str:
    return f'{{"a": {{"mass": {mass}, "center_of_mass": [0, 0, 0], "inertia": {inertia}}}}}'


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "[]", "7", "null", '{"a": 1}', '{"a": {"mass": 1}}', "[" * 10**5,
        heavy("-1"), heavy("NaN"), heavy("1e300"), heavy('"1"'), heavy("[1]"), heavy("9" * 5000),
        heavy("1", "[[1, 0, 0], [0, 9, 0], [0, 0, 1]]"), heavy("1", "[1, 2]"),
    ],
)  # fmt: skip
def test_texts_that_are_no_payloads_are_one_clear_line(text):
    with pytest.raises(RefusedError) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_payloads_are_read_as_they_were_written():
    bodies = {
        "a": Inertial(2.0, np.array([0.1, -0.2, 0.3]), np.diag([0.02, 0.03, 0.04])),
        'b "\n': Inertial(1e-9, np.array([1.0, 1.0, 1.0]), np.zeros((3, 3))),
    }
    found = parsed(written(bodies))
    assert [*found] == [*bodies]
    for link, body in bodies.items():
        assert found[link].mass == body.mass
        np.testing.assert_array_equal(found[link].center_of_mass, body.center_of_mass)
        np.testing.assert_array_equal(found[link].inertia, body.inertia)


def test_a_robot_that_cannot_be_watched_is_not_taken_for_the_one_before():
    other = URDF.replace(f'"{LINK}"', '"other"')
    with Watched() as watched:
        for text, words in (
            (URDF, "no motion has been recorded"),
            ("<robot", "no motion has been recorded"),  # no robot: the one before is kept
            (other, f"not watched: watched link: found '{LINK}', expected one of"),
            (URDF, "no motion has been recorded"),
        ):
            watched.description.publish(String(data=text))
            watched.until(lambda words=words: words in watched.adopt().message, words)
        assert watched.stop() == 0


def test_a_robot_on_a_wall_is_not_told_another_load():
    wall = replace(ARM, gravity=np.array([9.81, 0.0, 0.0]))
    missed = []
    for gravity in ([], [9.81, 0.0, 0.0]):
        with Watched(gravity=gravity) as watched:
            watched.description.publish(String(data=URDF))
            watched.until(lambda w=watched: "watching" in w.log, "the robot")
            for k, block in enumerate(blocks(wall, BLOCKS + 1, seed=13)):
                watched.work(block, 100.0 * k)
            values = {each.key: each.value for each in watched.reports[-1].status[0].values}
            missed.append(float(values[f"{ARM.joint_names[1]}: missed"].split()[0]))
            assert watched.stop() == 0
    assert missed[1] < 0.05 * missed[0]
    assert re.fullmatch(
        r"\S+ ± \S+ predicted, \S+ measured; \d+% of the block inside",
        values[f"{ARM.joint_names[1]}: torque"],
    )


def test_of_two_nodes_of_one_name_neither_adopts():
    with Watched() as watched:
        watched.description.publish(String(data=URDF))
        watched.until(lambda: "watching" in watched.log, "the robot")
        double = watched.beside(*PROGRAM)
        watched.until(
            lambda: "same name" in watched.adopt().message, "the refusal because of the double"
        )
        double.terminate()
        double.wait()
        watched.until(lambda: "no motion" in watched.adopt().message, "its end")
        assert watched.stop() == 0


def test_the_manual_has_all_parameters():
    manual = (Path(__file__).parents[1] / "docs" / "node.md").read_text()
    assert markdown(rows(WatchSettings)) in manual


def test_efforts_of_motors_that_turn_with_several_joints_are_taken_as_such():
    """A differential's actuators are named after the joints with which their efforts are
    recorded."""
    one, other = ARM.joint_names[4:]
    urdf = URDF.replace(
        "</robot>",
        f"""<transmission name="wrist">
          <plugin>transmission_interface/DifferentialTransmission</plugin>
          <actuator name="{one}" role="actuator1"/><actuator name="{other}" role="actuator2"/>
          <joint name="{one}" role="joint1"/><joint name="{other}" role="joint2"/>
        </transmission></robot>""",
    )
    (block,) = blocks(working(CHANGE), 1, seed=3)
    (stream,) = block.streams
    # motor 1 turns at q̇_1 + q̇_2, motor 2 at q̇_1 - q̇_2, and its effort is given at -q̇_2's side
    N = np.eye(6)
    N[4:, 4:] = [[1.0, 1.0], [-1.0, 1.0]]
    efforts = stream.effort @ np.linalg.inv(N)
    for motor_efforts in (True, False):
        with Watched(motor_efforts=motor_efforts) as watched:
            watched.description.publish(String(data=urdf))
            watched.until(lambda w=watched: "watching" in w.log, "the robot")
            watched.work(Recording("log", (replace(stream, effort=efforts),)), 0.0)
            values = {each.key: each.value for each in watched.reports[-1].status[0].values}
            assert watched.stop() == 0
        by_hand = Watch(load_urdf_text(urdf), LINK).add(block).numbers
        far = [
            name
            for name in (f"{one}.viscous", f"{other}.viscous", f"{LINK}.mass")
            if abs(float(values[name].split()[0]) - by_hand[name].value)
            > 0.05 + 0.02 * abs(by_hand[name].value)
        ]
        assert bool(far) != motor_efforts


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("block", 0.1),
        ("block", float("nan")),
        ("memory", -3.0),
        ("memory", "long"),
        ("motor_efforts", 2),
        ("gravity", [0.0, -9.81]),
    ],
)
def test_a_parameter_that_is_not_allowed_is_refused_at_the_start(name, value):
    assert name in refusal({name: value}, PROGRAM)
