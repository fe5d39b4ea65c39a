# SPDX-License-Identifier: Apache-2.0
"""The node in its own process, over DDS: descriptions from anybody, parameters and builds."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from geometry_msgs.msg import InertiaStamped
from node_process import DIAGNOSED_OFTEN, PATIENCE, ROOT, Partner
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String

G = 9.81
ROUNDING = 1e-12
"""Relative: a torque is a few sums and products"""
HOSTILE = "a\x9b31m\u202e\x1b]0;x\x07"
"""What a terminal would obey; XML takes the first two as they are"""


def lift(mass: float = 3.0, joint: str = "slide", effort: float = 1e6) -> str:
    return (
        f'<robot name="lift"><link name="world"/><link name="box"><inertial><mass value="{mass}"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="{joint}" type="prismatic"><parent link="world"/><child link="box"/>'
        f'<axis xyz="0 0 1"/><limit lower="0" upper="1" effort="{effort}" velocity="0"/>'
        "</joint></robot>"
    )


def moving(partner: Partner, joint: str = "slide") -> None:
    partner.accelerate({joint: 2.0})
    partner.state({joint: (0.1, 0.0)})


def torques_become(partner: Partner, torque: float, joint: str = "slide") -> None:
    partner.commands.clear()
    partner.until(
        lambda: any(np.allclose(each, [torque], ROUNDING) for each in partner.commands[-5:]),
        f"a torque of {torque}",
        meanwhile=lambda: moving(partner, joint),
    )


def children(pid: int) -> list[int]:
    """Processes that this one has started and not yet buried."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for task in tasks for each in task.read_text().split()]


def build_process(partner: Partner) -> int:
    """Of the build that is going on."""
    return partner.until(lambda: children(partner.process.pid), "a process that builds")[0]


def settled(partner: Partner) -> None:
    """Until nothing is being built, and nothing is refused."""
    partner.diagnostics.clear()

    def is_settled() -> bool:
        counts = partner.counts()
        return counts.get("building a new model") == "no" and "newest description" not in counts

    partner.until(is_settled, "diagnostics that tell of no build")


@pytest.fixture(scope="module")
def node():
    with Partner(program=DIAGNOSED_OFTEN, command_timeout=0.0, max_age=20.0) as partner:
        yield partner


def test_what_was_confirmed_before_the_first_robot_is_what_computes(node):
    assert node.set_parameters(terms=["inertia"], effort_limits=[5.0]).successful
    node.description_out.publish(String(data=lift()))
    node.until(lambda: node.commands, "torques", meanwhile=lambda: moving(node))
    # 3 (2 + g) = 35.4, of which the inertia takes 6
    assert all(each == [5.0] for each in node.commands)
    assert node.set_parameters(effort_limits=[]).successful
    torques_become(node, 6.0)
    assert node.set_parameters(terms=["inertia", "gravity"]).successful
    torques_become(node, 3.0 * (2.0 + G))


def test_after_the_answer_no_torque_is_by_the_values_of_before(node):
    torques_become(node, 3.0 * (2.0 + G))
    for terms, torque in (["gravity"], 3.0 * G), (["inertia", "gravity"], 3.0 * (2.0 + G)):
        assert node.set_parameters(terms=terms).successful
        # those that were on their way
        sent = node.node.get_clock().now().nanoseconds
        node.effort.clear()

        def later(sent=sent):
            stamps = ((e.header.stamp.sec * 10**9 + e.header.stamp.nanosec, e) for e in node.effort)
            return [each for stamp, each in stamps if stamp > sent]

        node.until(
            lambda: len(later()) > 5, "torques of later states", meanwhile=lambda: moving(node)
        )
        assert all(np.allclose(each.effort, [torque], ROUNDING) for each in later())


def test_a_description_by_topic_is_urdf_text_or_nothing(node, tmp_path):
    torques_become(node, 3.0 * (2.0 + G))
    marker = tmp_path / "ran"
    script = tmp_path / "robot.xacro"
    code = f"().__class__.__base__.__subclasses__() and open('{marker}', 'w')"
    script.write_text(
        '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="x">'
        f'<link name="${{{code}}}"/><link name="${{9**9**9}}"/></robot>'
    )
    sources = [
        str(script),
        f"robot: x\nurdf: {ROOT}/urdf/six_axis.urdf\n",
        script.read_text(),
        '<!DOCTYPE robot [<!ENTITY e SYSTEM "file:///etc/hostname">]><robot>&e;</robot>',
        "<a>" * 5000,
    ]
    key = "rejected: description: impossible"
    for source in sources:
        before = int(node.counts().get(key, 0))
        node.description_out.publish(String(data=source))
        node.until(
            lambda n=before: int(node.counts().get(key, 0)) > n,
            f"a refusal of {source!r:.60}",
            meanwhile=lambda: moving(node),
        )
        assert "refused" in node.diagnostics[-1].status[0].message
    assert not marker.exists()
    torques_become(node, 3.0 * (2.0 + G))
    node.description_out.publish(String(data=lift(4.0)))
    torques_become(node, 4.0 * (2.0 + G))
    # the torques of a motion do not remain where a robot with other joints follows
    node.description_out.publish(String(data=lift(joint="other")))
    node.until(lambda: np.allclose(node.commands[-1], [4.0 * G], ROUNDING), "torques at rest")
    node.description_out.publish(String(data=lift(3.0)))
    torques_become(node, 3.0 * (2.0 + G))


def test_a_description_of_150_000_links_is_refused_and_the_torques_go_on(node):
    links = "".join(f'<link name="l{k}"/>' for k in range(150_000))
    node.commands.clear()
    node.description_out.publish(String(data=lift().replace("</robot>", links + "</robot>")))
    key = "rejected: description: impossible"
    before = int(node.counts().get(key, 0))
    node.until(
        lambda: int(node.counts().get(key, 0)) > before,
        "a refusal",
        meanwhile=lambda: moving(node),
    )
    assert "150002, expected at most" in node.log
    assert all(np.allclose(each, [3.0 * (2.0 + G)], ROUNDING) for each in node.commands)
    node.description_out.publish(String(data=lift()))
    settled(node)


def test_a_build_that_is_killed_is_answered_and_the_next_one_works(node):
    torques_become(node, 3.0 * (2.0 + G))
    settled(node)
    request = SetParameters.Request(
        parameters=[Parameter("friction_smoothing", value=0.25).to_parameter_msg()]
    )
    client = node.node.create_client(SetParameters, "/feed_forward/set_parameters")
    node.until(client.service_is_ready, "the service")
    future = client.call_async(request)
    os.kill(build_process(node), signal.SIGKILL)
    node.until(future.done, "an answer", meanwhile=lambda: moving(node))
    (result,) = future.result().results
    assert not result.successful
    assert "signal 9" in result.reason
    assert node.get_parameter("friction_smoothing").double_value == 0.0
    future = client.call_async(request)
    node.until(future.done, "an answer", meanwhile=lambda: moving(node))
    assert future.result().results[0].successful
    assert node.get_parameter("friction_smoothing").double_value == 0.25
    assert node.until(lambda: not children(node.process.pid), "the end of the build's process")
    node.node.destroy_client(client)


def test_each_of_several_parameters_has_an_answer_of_its_own(node):
    torques_become(node, 3.0 * (2.0 + G))
    values = {
        "formulation": "murphy",
        "nothing": 1,
        "on_timeout": "stop",
        "locked_joints": ["thumb:1"],
        "description": "x",
        "terms": [],
    }
    wanted = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
    wanted.append(Parameter("max_age", value=10.0).to_parameter_msg())
    wanted[-1].value.type = 99
    service = "/feed_forward/set_parameters"
    results = node.ask(SetParameters, service, parameters=wanted).results
    assert [each.successful for each in results] == [True, False, True] + [False] * 4
    for result, word in zip(results[3:6], ("thumb", "read-only", "at least one"), strict=True):
        assert word in result.reason
    assert list(node.ask(SetParameters, service).results) == []
    assert node.set_parameters(formulation="newton_euler", on_timeout="gravity").successful


def test_arrays_that_are_not_set_have_their_type(node):
    for name, kind in (
        ("joints", ParameterType.PARAMETER_STRING_ARRAY),
        ("locked_joints", ParameterType.PARAMETER_STRING_ARRAY),
        ("effort_limits", ParameterType.PARAMETER_DOUBLE_ARRAY),
    ):
        assert node.get_parameter(name).type == kind
        assert node.describe_parameters([name])[0].type == kind
    assert node.set_parameters(effort_limits=[4]).successful
    assert list(node.get_parameter("effort_limits").double_array_value) == [4.0]
    assert node.set_parameters(effort_limits=[]).successful
    assert node.get_parameter("effort_limits").type == ParameterType.PARAMETER_DOUBLE_ARRAY


def test_names_from_elsewhere_reach_log_and_diagnostics_printable_and_short(node):
    torques_become(node, 3.0 * (2.0 + G))
    joint = HOSTILE.translate({0x1B: None, 0x07: None})
    node.description_out.publish(String(data=lift(joint=joint).replace("box", "b&#10;ox" + joint)))
    torques_become(node, 3.0 * (2.0 + G), joint)
    names = [f"{HOSTILE}\n{k}" for k in range(100_000)]
    payload = InertiaStamped()
    payload.header.frame_id = HOSTILE * 1000
    payload.inertia.m = 1.0
    node.payload_out.publish(payload)
    many = JointState(name=[*names, joint, joint], position=[0.0] * 100_002)
    many.velocity = many.position
    node.states_out.publish(many)
    node.until(
        lambda: "rejected: payload: unknown link" in node.counts(),
        "a refusal of the payload",
        meanwhile=lambda: moving(node, joint),
    )
    assert not node.set_parameters(locked_joints=[f"{HOSTILE}:1"]).successful
    node.description_out.publish(
        String(data=lift(joint=joint).replace('type="prismatic"', f'type="{joint}\x85x"'))
    )
    key = "rejected: description: impossible"
    node.until(lambda: key in node.counts(), "a refusal", meanwhile=lambda: moving(node, joint))
    lines = node.log.splitlines()
    assert "x9b31m" in node.log
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 700
    for status in (each for message in node.diagnostics for each in message.status):
        texts = [status.message, status.hardware_id]
        texts += [text for pair in status.values for text in (pair.key, pair.value)]
        assert all(text.isprintable() and len(text) <= 500 for text in texts)
    node.description_out.publish(String(data=lift()))
    torques_become(node, 3.0 * (2.0 + G))


def test_the_efforts_of_the_description_are_the_limits_where_no_others_are_set(node):
    node.description_out.publish(String(data=lift(effort=5.0)))
    torques_become(node, 5.0)
    assert node.set_parameters(effort_limits=[float("inf")]).successful
    torques_become(node, 3.0 * (2.0 + G))
    assert node.set_parameters(effort_limits=[]).successful
    torques_become(node, 5.0)


def test_a_wrong_parameter_before_the_description_is_mended_without_the_description_again():
    with Partner(locked_joints=["thumb:1"], command_timeout=0.0, max_age=20.0) as partner:
        partner.description_out.publish(String(data=lift()))
        partner.until(
            lambda: "rejected: description: impossible" in partner.counts(),
            "a refusal of the description",
        )
        partner.until(lambda: "thumb" in partner.log, "a line in the log")
        assert partner.diagnostics[-1].status[0].level == partner.diagnostics[-1].status[0].ERROR
        assert partner.set_parameters(locked_joints=[]).successful
        torques_become(partner, 3.0 * (2.0 + G))


def test_a_locked_description_stays_and_gravity_is_a_parameter():
    with Partner(lock_description=True, command_timeout=0.0, max_age=20.0) as partner:
        partner.description_out.publish(String(data=lift()))
        torques_become(partner, 3.0 * (2.0 + G))
        partner.description_out.publish(String(data=lift(mass=4.0)))
        partner.until(
            lambda: "rejected: description: locked" in partner.counts(), "a refusal of another one"
        )
        torques_become(partner, 3.0 * (2.0 + G))
        assert partner.set_parameters(gravity=[0.0, 0.0, -1.6]).successful
        torques_become(partner, 3.0 * (2.0 + 1.6))
        assert "three numbers" in partner.set_parameters(gravity=[1.0]).reason
        assert partner.set_parameters(gravity=[]).successful
        torques_become(partner, 3.0 * (2.0 + G))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_node_ends_while_it_builds_and_leaves_no_process_behind(number):
    with Partner() as partner:
        joints = "".join(
            f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
            f'ixy="0.1" ixz="0" iyz="0"/></inertial></link><joint name="j{k}" type="continuous">'
            f'<parent link="{f"l{k - 1}" if k else "world"}"/><child link="l{k}"/>'
            '<origin xyz="1 2 3" rpy="1 2 3"/></joint>'
            for k in range(60)
        )
        text = f'<robot name="long"><link name="world"/>{joints}</robot>'
        partner.description_out.publish(String(data=text))
        group = build_process(partner)
        assert partner.stop(number) == (-number if number == signal.SIGKILL else 0)
        deadline = time.monotonic() + PATIENCE
        while Path(f"/proc/{group}").exists():
            assert time.monotonic() < deadline, "the build goes on"
            time.sleep(0.02)
        assert "Traceback" not in partner.log
