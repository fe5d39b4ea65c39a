# SPDX-License-Identifier: Apache-2.0
"""The node in its own process, over DDS: topics, a new robot, payload, parameters, its end."""

from __future__ import annotations

import math
import signal

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from node_process import (
    DIAGNOSED_OFTEN,
    PATIENCE,
    ROOT,
    Partner,
    refusal,
)
from rcl_interfaces.msg import ParameterType
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd

G = 9.81
M1, L1, M2 = 10.0, 0.5, 5.0
ROUNDING = 1e-12
"""Relative: a torque is a few sums and products"""

POLAR, CARTESIAN = str(ROOT / "config/polar.yaml"), str(ROOT / "config/cartesian.yaml")
AT = {"camera": (math.nan, math.nan), "d2": (0.7, 0.1), "theta1": (0.3, 0.2)}
WANTED = {"d2": 1.0, "theta1": 2.0}


def polar_torque(qdd=(2.0, 1.0), q=(0.3, 0.7), qd=(0.2, 0.1), m2=M2) -> list[float]:
    """Equation [5.17] where gravity pulls along the turning joint's axis."""
    turning = (M1 * L1**2 + m2 * q[1] ** 2) * qdd[0] + 2 * m2 * q[1] * qd[1] * qd[0]
    return [turning, m2 * qdd[1] - m2 * q[1] * qd[0] ** 2]


def is_close(values, expected) -> bool:
    return len(values) == len(expected) and np.allclose(values, expected, ROUNDING, ROUNDING)


def torques_become(partner: Partner, expected, joints=AT, wanted=WANTED) -> None:
    """Publish state and command until these torques come."""

    def publish():
        partner.accelerate(wanted)
        partner.state(joints)

    partner.commands.clear()
    partner.until(
        lambda: any(is_close(values, expected) for values in partner.commands[-5:]),
        f"torques {expected}",
        meanwhile=publish,
    )


def torques_stay(partner: Partner, expected, joints=AT, wanted=WANTED, count=20) -> None:
    """All of the next torques are these."""
    partner.commands.clear()

    def publish():
        partner.accelerate(wanted)
        partner.state(joints)

    partner.until(lambda: len(partner.commands) >= count, f"{count} torques", meanwhile=publish)
    assert all(is_close(values, expected) for values in partner.commands), partner.commands


@pytest.fixture(scope="module")
def polar():
    # who sends on a loaded machine may pause: this robot does not time out
    values = {"description": POLAR, "command_timeout": 0.0, "max_age": 20.0}
    with Partner(program=DIAGNOSED_OFTEN, **values) as partner:
        yield partner


def test_torques_come_by_name_in_the_order_of_the_joints_with_the_stamp_of_the_state(polar):
    torques_become(polar, polar_torque())
    polar.effort.clear()
    sent = polar.state(AT)
    found = polar.until(
        lambda: [each for each in polar.effort if each.header.stamp == sent.header.stamp],
        "the effort of the state that was sent",
    )[0]
    assert list(found.name) == ["theta1", "d2"]
    assert is_close(found.effort, polar_torque())
    assert not found.position
    assert not found.velocity


def bad_states() -> dict[str, JointState]:
    good = {"name": list(AT), "position": [0.0] * 3, "velocity": [0.0] * 3}
    return {
        "missing joint": JointState(name=["d2"], position=[0.0], velocity=[0.0]),
        "duplicate names": JointState(**{**good, "name": ["d2", "theta1", "d2"]}),
        "wrong length": JointState(**{**good, "position": [0.0] * 2}),
        "no velocities": JointState(**{**good, "velocity": []}),
        "not finite": JointState(**{**good, "velocity": [0.0, math.inf, 0.0]}),
        "old stamp": JointState(**good),
    }


@pytest.mark.parametrize("reason", bad_states())
def test_a_bad_state_is_dropped_counted_and_told_once_and_the_next_good_one_works(polar, reason):
    torques_become(polar, polar_torque())
    bad = bad_states()[reason]
    stamp = polar.node.get_clock().now().to_msg()
    bad.header.stamp = Time(sec=1) if reason == "old stamp" else stamp
    key = f"rejected: joint_states: {reason}"
    polar.until(
        lambda: int(polar.counts().get(key, 0)) >= 2,
        f"two counts of {key!r}",
        meanwhile=lambda: polar.states_out.publish(bad),
    )
    assert all(each.header.stamp != bad.header.stamp for each in polar.effort)
    lines = [line for line in polar.log.splitlines() if "joint_states dropped" in line]
    assert lines
    torques_become(polar, polar_torque())


def bad_commands() -> dict[str, JointTrajectory]:
    def command(names, **fields):
        return JointTrajectory(joint_names=names, points=[JointTrajectoryPoint(**fields)])

    return {
        "unknown joint": command(["theta1", "d2", "tail"], accelerations=[9.0] * 3),
        "missing joint": command(["theta1"], accelerations=[9.0]),
        "duplicate names": command(["theta1", "d2", "d2"], accelerations=[9.0] * 3),
        "no accelerations": command(["theta1", "d2"], positions=[9.0] * 2),
        "wrong length": command(["theta1", "d2"], accelerations=[9.0]),
        "not finite": command(["theta1", "d2"], accelerations=[9.0, math.nan]),
        "no points": JointTrajectory(joint_names=["theta1", "d2"]),
    }


@pytest.mark.parametrize("reason", bad_commands())
def test_a_bad_command_is_dropped_counted_and_told_and_the_last_good_one_stays(polar, reason):
    torques_become(polar, polar_torque())
    polar.command_out.publish(bad_commands()[reason])
    key = f"rejected: command: {reason}"
    polar.until(lambda: polar.counts().get(key) == "1", f"a count of {key!r}")
    assert "command dropped" in polar.log
    polar.commands.clear()
    polar.until(lambda: len(polar.commands) > 2, "torques", meanwhile=lambda: polar.state(AT))
    assert all(is_close(values, polar_torque()) for values in polar.commands)


def test_a_trajectory_is_sampled_in_time(polar):
    start = polar.node.get_clock().now()
    points = [
        JointTrajectoryPoint(positions=[0.0, 0.7], velocities=[0.0, 0.0]),
        JointTrajectoryPoint(
            positions=[1.0, 0.7], velocities=[0.0, 0.0], time_from_start=Duration(sec=1000)
        ),
    ]
    message = JointTrajectory(joint_names=["theta1", "d2"], points=points)
    message.header.stamp = Time(sec=start.to_msg().sec - 250, nanosec=start.to_msg().nanosec)
    polar.command_out.publish(message)
    # a quarter of the way: q̈ = (6 - 12 u) / h², and u moves by 1e-3 a second
    expected = polar_torque(qdd=((6 - 12 * 0.25) / 1000**2, 0.0))

    def arrived():
        return any(np.allclose(values, expected, atol=1e-6) for values in polar.commands[-3:])

    polar.until(arrived, f"torques {expected}", meanwhile=lambda: polar.state(AT))


def test_the_formulation_changes_while_it_runs_and_no_torque_is_wrong_on_the_way(polar):
    torques_become(polar, polar_torque())
    for formulation in ("lagrange_euler", "gibbs_appell", "murphy", "newton_euler"):
        result = polar.set_parameters(formulation=formulation)
        assert result.successful, result.reason

        def changed(name=formulation):
            counts = polar.counts()
            return (counts["formulation"], counts["building a new model"]) == (name, "no")

        def publish():
            polar.accelerate(WANTED)
            polar.state(AT)

        polar.commands.clear()
        polar.until(
            lambda: changed() and polar.commands,
            f"torques, and diagnostics that say {formulation}",
            meanwhile=publish,
        )
        for values in polar.commands:
            assert is_close(values, polar_torque())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("formulation", "newton", "one of lagrange_euler"),
        ("rotors", "some", "one of full"),
        ("terms", ["inertia", "luck"], "luck"),
        ("effort_limits", [1.0], "2 numbers"),
        ("effort_limits", [1.0, -1.0], "0 or more"),
        ("locked_joints", ["tail:1"], "tail"),
        ("locked_joints", "d2:1", "a list of strings"),
        ("locked_joints", ["d2"], "joint:position"),
        ("locked_joints", ["d2:nan"], "joint:position"),
        ("on_timeout", "panic", "one of hold, gravity, stop"),
        ("command_timeout", -1.0, "out of range"),
        ("command_timeout", math.nan, "command_timeout"),
        ("joints", ["d2"], "read-only"),
        ("feedback", "commanded", "read-only"),
    ],
)
def test_a_wrong_parameter_is_refused_with_the_reason_and_the_old_one_stays(
    polar, name, value, words
):
    before = polar.get_parameter(name)
    result = polar.set_parameters(**{name: value})
    assert not result.successful
    assert words in result.reason
    assert polar.get_parameter(name) == before
    torques_become(polar, polar_torque())


def test_limits_may_come_in_whole_numbers_and_go_again(polar):
    assert polar.set_parameters(effort_limits=[4, 100]).successful
    torques_become(polar, [4.0, polar_torque()[1]])
    assert polar.set_parameters(effort_limits=[]).successful
    torques_become(polar, polar_torque())
    assert polar.get_parameter("effort_limits").type != ParameterType.PARAMETER_NOT_SET


def test_every_parameter_tells_what_it_is_and_what_it_may_be(polar):
    from robot_dynamics.ros.feed_forward.parameters import PARAMETERS

    found = polar.describe_parameters([row.name for row in PARAMETERS])
    for row, descriptor in zip(PARAMETERS, found, strict=True):
        assert row.meaning in descriptor.description
        assert descriptor.read_only == row.read_only
        if row.type == "double":
            assert descriptor.floating_point_range[0].from_value == row.minimum


def test_a_payload_is_carried_until_it_is_put_down(polar):
    def payload(link: str, mass: float, ixx: float = 0.0) -> InertiaStamped:
        message = InertiaStamped()
        message.header.frame_id = link
        message.inertia.m, message.inertia.ixx = mass, ixx
        return message

    torques_become(polar, polar_torque())
    polar.payload_out.publish(payload("link2", 3.0))
    torques_become(polar, polar_torque(m2=M2 + 3.0))
    # without effect: no such link; a body that cannot be
    for bad, reason in (
        (payload("tool", 1.0), "unknown link"),
        (payload("link2", -1.0), "impossible body"),
        (payload("link2", math.nan), "not finite"),
        (payload("link2", 1.0, ixx=1.0), "impossible body"),
    ):
        before = int(polar.counts().get(f"rejected: payload: {reason}", 0))
        polar.payload_out.publish(bad)
        polar.until(
            lambda key=f"rejected: payload: {reason}", n=before: (
                int(polar.counts().get(key, 0)) > n
            ),
            f"a count of {reason!r}",
        )
    torques_stay(polar, polar_torque(m2=M2 + 3.0))
    polar.payload_out.publish(payload("link2", 0.0))
    torques_become(polar, polar_torque())


def test_a_wrench_is_in_the_torques_as_long_as_it_is_renewed(polar):
    wrench = WrenchStamped()
    wrench.header.frame_id = "link2"

    def publish():
        wrench.header.stamp = polar.node.get_clock().now().to_msg()
        polar.wrench_out.publish(wrench)
        polar.accelerate(WANTED)
        polar.state(AT)

    def become(expected):
        polar.commands.clear()
        polar.until(
            lambda: any(is_close(values, expected) for values in polar.commands[-5:]),
            f"torques {expected}",
            meanwhile=publish,
        )

    assert polar.set_parameters(max_age=2.0).successful
    torques_become(polar, polar_torque())
    dynamics, q, qd = rd.InverseDynamics(rd.load(POLAR)), [0.3, 0.7], [0.2, 0.1]
    R = dynamics.pose(q, "link2")[:3, :3]
    force, torque = wrench.wrench.force, wrench.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = 5.0, -3.0, 2.0, 0.5, 0.6, -0.7
    on_base = [*(R @ [5.0, -3.0, 2.0]), *(R @ [0.5, 0.6, -0.7])]
    become(dynamics(q, qd, [2.0, 1.0], wrenches={"link2": on_base}))
    # nobody says it any more
    torques_become(polar, polar_torque())
    polar.until(lambda: "event: wrench: over" in polar.counts(), "a line about its end")
    assert "wrench on 'link2' dropped" in polar.log
    # again, at once, and then taken away
    become(dynamics(q, qd, [2.0, 1.0], wrenches={"link2": on_base}))
    for vector in (force, torque):
        vector.x = vector.y = vector.z = 0.0
    become(polar_torque())
    assert polar.set_parameters(max_age=20.0).successful


def test_diagnostics_tell_rates_ages_and_counts(polar):
    torques_become(polar, polar_torque())
    polar.diagnostics.clear()
    polar.until(
        lambda: polar.diagnostics and float(polar.counts()["torque rate (Hz)"]) > 0,
        "a torque rate",
        meanwhile=lambda: (polar.accelerate(WANTED), polar.state(AT)),
    )
    status, counts = polar.diagnostics[-1].status[0], polar.counts()
    assert status.hardware_id == "polar"
    assert status.name.startswith("feed_forward")
    for key in ("state rate (Hz)", "command rate (Hz)", "state age (s)", "command age (s)"):
        assert float(counts[key]) >= 0.0
    assert counts["joints"] == "theta1, d2"


def test_a_robot_comes_by_topic_and_a_new_one_takes_over():
    def urdf(mass: float, joint: str = "slide", kind: str = "prismatic") -> String:
        return String(
            data=f'<robot name="lift"><link name="world"/><link name="box"><inertial>'
            f'<mass value="{mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
            f'</inertial></link><joint name="{joint}" type="{kind}"><parent link="world"/>'
            f'<child link="box"/><axis xyz="0 0 1"/>'
            f'<limit lower="0" upper="1" effort="900" velocity="1"/></joint></robot>'
        )

    with Partner(command_timeout=0.0, max_age=20.0) as partner:
        key = "rejected: joint_states: no robot"
        partner.until(
            lambda: key in partner.counts(),
            "a state that finds no robot",
            meanwhile=lambda: partner.state({"slide": (0.0, 0.0)}),
        )
        assert partner.commands == []
        slide, up = {"slide": (0.1, 0.0)}, {"slide": 2.0}
        partner.description_out.publish(urdf(3.0))
        torques_become(partner, [3.0 * (2.0 + G)], slide, up)
        partner.description_out.publish(urdf(4.0))
        torques_become(partner, [4.0 * (2.0 + G)], slide, up)
        for broken in (urdf(5.0, kind="floaty"), String(data="<robot"), String(data="")):
            before = int(partner.counts().get("rejected: description: impossible", 0))
            partner.description_out.publish(broken)
            partner.until(
                lambda n=before: (
                    int(partner.counts().get("rejected: description: impossible", 0)) > n
                ),
                "a count of the broken description",
            )
        torques_stay(partner, [4.0 * (2.0 + G)], slide, up)
        partner.description_out.publish(urdf(5.0, joint="lift"))
        torques_become(partner, [5.0 * (2.0 + G)], {"lift": (0.1, 0.0)}, {"lift": 2.0})
        assert "Traceback" not in partner.log


def test_simulated_time_rules_and_may_jump_back():
    with Partner(description=POLAR, use_sim_time=True, on_timeout="hold") as partner:
        clock = partner.node.create_publisher(Clock, "/clock", 10)

        def at(seconds: int):
            now = Time(sec=seconds)

            def publish():
                clock.publish(Clock(clock=now))
                partner.accelerate(WANTED)
                partner.state(AT, stamp=now)

            return publish

        for seconds in (1000, 1001, 5):
            partner.until(
                lambda s=seconds: any(
                    each.header.stamp.sec == s and is_close(each.effort, polar_torque())
                    for each in partner.effort
                ),
                f"torques at {seconds} s",
                meanwhile=at(seconds),
            )
        assert "jumped back" in partner.log


def test_a_silent_commander_is_followed_by_gravity():
    with Partner(description=CARTESIAN, command_timeout=0.2, on_timeout="gravity") as partner:
        joints = dict.fromkeys(("d1", "d2", "d3"), (0.1, 0.0))
        wanted = dict.fromkeys(joints, 1.0)
        torques_become(partner, [12.0, 6.0 * (1.0 + G), 2.0], joints, wanted)
        partner.until(
            lambda: any(is_close(values, [0.0, 6.0 * G, 0.0]) for values in partner.commands[-3:]),
            "gravity alone",
            meanwhile=lambda: partner.state(joints),
        )


def test_lost_feedback_stops_the_robot():
    with Partner(description=POLAR, max_age=0.3, on_timeout="stop") as partner:
        torques_become(partner, polar_torque())
        partner.until(lambda: partner.commands[-1] == [0.0, 0.0], "zero, once")
        count = len(partner.commands)
        # a machine that is busy may have lost it once before
        partner.until(
            lambda: int(partner.counts().get("event: torques: feedback lost", 0)) >= 1,
            "the event in the diagnostics",
        )
        assert len(partner.commands) == count


def test_commanded_feedback_publishes_at_its_own_rate_without_joint_states():
    with Partner(description=POLAR, feedback="commanded", rate=200.0) as partner:
        point = JointTrajectoryPoint(
            positions=[0.7, 0.3], velocities=[0.1, 0.2], accelerations=[1.0, 2.0]
        )
        command = JointTrajectory(joint_names=["d2", "theta1"], points=[point])
        partner.until(
            lambda: any(is_close(values, polar_torque()) for values in partner.commands[-5:]),
            "torques of the commanded state",
            meanwhile=lambda: partner.command_out.publish(command),
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_on_a_signal_with_code_0_and_leaves_a_torque_at_rest(number):
    with Partner(description=CARTESIAN, command_timeout=0.0, max_age=20.0) as partner:
        joints = dict.fromkeys(("d1", "d2", "d3"), (0.1, 0.0))
        torques_become(partner, [12.0, 6.0 * (1.0 + G), 2.0], joints, dict.fromkeys(joints, 1.0))
        partner.process.send_signal(number)
        assert partner.process.wait(PATIENCE) == 0
        partner.until(
            lambda: is_close(partner.commands[-1], [0.0, 6.0 * G, 0.0]),
            "torques at rest, as the last word",
            ended=True,
        )
        assert "Traceback" not in partner.log


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"description": "/nowhere.yaml"}, "/nowhere.yaml"),
        ({"description": POLAR, "formulation": "newton"}, "formulation"),
        ({"description": POLAR, "joints": ["theta1", "tail"]}, "tail"),
        ({"description": POLAR, "joints": ["theta1", "theta1"]}, "each joint once"),
        ({"description": POLAR, "locked_joints": ["d2=1"]}, "joint:position"),
        ({"description": POLAR, "locked_joints": ["d2:1", "theta1:0"]}, "at least one joint"),
        ({"description": POLAR, "effort_limits": [1.0, 2.0, 3.0]}, "effort_limits"),
        ({"description": POLAR, "effort_limits": ["high", "low"]}, "effort_limits"),
        ({"description": POLAR, "joints": "theta1"}, "a list of strings"),
        ({"description": POLAR, "command_timeout": "soon"}, "command_timeout"),
        ({"description": POLAR, "max_age": -1.0}, "max_age"),
        ({"description": POLAR, "terms": ["inertia", "luck"]}, "luck"),
    ],
)
def test_a_wrong_start_is_one_line_and_a_code(parameters, words):
    line = refusal(parameters)
    assert line.startswith("feed_forward: ")
    assert words in line


def test_a_misspelt_parameter_is_told_with_the_right_spelling():
    with Partner(description=POLAR, effort_limit=[1.0, 2.0]) as partner:
        assert "did you mean 'effort_limits'" in partner.until(
            lambda: partner.log, "a line about the parameter"
        )
