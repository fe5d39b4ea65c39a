# SPDX-License-Identifier: Apache-2.0
"""The node in its own process for a robot with loops: sensors, singularities, the motors' side."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from node_process import (
    DIAGNOSED_OFTEN,
    ROOT,
    Partner,
    refusal,
)

import robot_dynamics as rd

RRR, FIVE_BAR = str(ROOT / "config/rrr.yaml"), str(ROOT / "config/five_bar.yaml")
MOTORS = ("qa1", "qa2", "qa3")
Q = np.array([math.pi / 2 + 0.2, 7 * math.pi / 6 - 0.15, -math.pi / 6 + 0.1])
QD, QDD = np.array([0.4, -0.3, 0.2]), np.array([2.0, -1.0, 0.5])
WANTED = dict(zip(MOTORS, QDD.tolist(), strict=True))
OUT_OF_REACH = dict(zip(MOTORS, np.radians([[210, 0], [330, 0], [90, 0]]).tolist(), strict=True))
"""All arms outwards: the feet are 0.5 m from the middle, the legs' rests 0.3 m long"""
TO_SOLVED = 1e-9
"""Relative: solved and read passive joints agree to 1e-12, times the closure's condition"""


@pytest.fixture(scope="module")
def dynamics():
    return rd.InverseDynamics(rd.load(RRR), backend="python")


@pytest.fixture(scope="module")
def readings(dynamics) -> dict[str, tuple[float, float]]:
    state = dynamics.closed.forward_kinematics(Q, QD)
    values = zip(state.q_r.tolist(), state.qd_r.tolist(), strict=True)
    return dict(zip(dynamics.closed.coordinate_names, values, strict=True))


@pytest.fixture(scope="module")
def expected(dynamics) -> list[float]:
    return dynamics(Q, QD, QDD).tolist()


@pytest.fixture(scope="module")
def rrr():
    values = {"description": RRR, "sensed": True, "command_timeout": 0.0, "max_age": 300.0}
    with Partner(program=DIAGNOSED_OFTEN, **values) as partner:
        yield partner


def torques_become(partner: Partner, joints, expected, *, then=lambda: True) -> None:
    """Publish until these torques come, and something else is true as well."""
    partner.commands.clear()

    def publish():
        partner.accelerate(WANTED)
        partner.state(joints)

    def arrived():
        return any(np.allclose(tau, expected, TO_SOLVED, TO_SOLVED) for tau in partner.commands)

    partner.until(lambda: arrived() and then(), f"torques {expected}", meanwhile=publish)


def all_are(partner: Partner, expected) -> bool:
    return np.allclose(partner.commands, expected, TO_SOLVED, TO_SOLVED)


def test_torques_of_a_robot_whose_passive_joints_are_read_are_those_of_solved_ones(
    rrr, readings, expected
):
    torques_become(rrr, readings, expected, then=lambda: "sensors trusted" in rrr.counts())
    assert rrr.counts()["sensors trusted"] == "qp1, qp2, qp3"
    assert 1.0 < float(rrr.counts()["condition number"]) < float(rrr.counts()["condition limit"])


def test_a_lying_sensor_is_named_and_costs_nothing_and_is_taken_back_when_sane(
    rrr, readings, expected
):
    torques_become(rrr, readings, expected)
    q, qd = readings["qp2"]
    lying = {**readings, "qp2": (q + 0.3, qd)}
    torques_become(
        rrr, lying, expected, then=lambda: rrr.counts().get("sensors not trusted") == "qp2"
    )
    assert all_are(rrr, expected)
    status = rrr.diagnostics[-1].status[0]
    assert status.level == status.WARN
    assert "not trusted: qp2" in status.message
    assert float(rrr.counts()["closure residual"]) > 0.01
    assert "'qp2' is inconsistent" in rrr.log
    torques_become(
        rrr, readings, expected, then=lambda: rrr.counts()["sensors trusted"] == "qp1, qp2, qp3"
    )
    assert all_are(rrr, expected)
    assert "the readings of qp2 are consistent again" in rrr.log


def test_a_message_without_its_passive_joint_is_counted_and_costs_nothing(rrr, readings, expected):
    torques_become(rrr, readings, expected)
    without = {name: value for name, value in readings.items() if name != "qp3"}
    key = "event: joint_states: missing sensor"
    torques_become(rrr, without, expected, then=lambda: key in rrr.counts())
    assert all_are(rrr, expected)
    assert "no reading of 'qp3'" in rrr.log


def test_out_of_reach_it_rests_once_and_is_silent_until_states_and_command_are_good_again(
    rrr, readings, expected, dynamics
):
    torques_become(rrr, readings, expected)
    rrr.commands.clear()
    refused = "rejected: torques: closure"
    before = int(rrr.counts().get(refused, 0))

    def publish():
        rrr.accelerate(WANTED)
        rrr.state(OUT_OF_REACH)

    rrr.until(lambda: int(rrr.counts().get(refused, 0)) > before + 5, "refusals", meanwhile=publish)
    # those of good states still on their way, and then one at rest
    seen = rrr.commands
    np.testing.assert_allclose(seen[-1], dynamics.gravity(Q), rtol=TO_SOLVED)
    assert all(np.allclose(tau, expected, TO_SOLVED, TO_SOLVED) for tau in seen[:-1])
    assert "torques not published: rrr.yaml: closure" in rrr.log
    torques_become(rrr, readings, expected)


def test_a_condition_limit_that_leaves_no_model_is_refused_and_takes_nothing_with_it(
    rrr, readings, expected
):
    torques_become(rrr, readings, expected)
    limit = rrr.get_parameter("condition_limit").double_value
    result = rrr.set_parameters(condition_limit=1.5)
    assert not result.successful
    assert "singularity" in result.reason
    assert rrr.get_parameter("condition_limit").double_value == limit
    assert rrr.set_parameters(formulation="gibbs_appell").successful
    rrr.diagnostics.clear()
    torques_become(
        rrr, readings, expected, then=lambda: rrr.counts().get("formulation") == "gibbs_appell"
    )
    assert all_are(rrr, expected)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("sensed", False, "read-only"),
        ("side", "drive", "read-only"),
        ("condition_limit", 0.5, "out of range"),
        ("condition_limit", 1e13, "out of range"),
        ("sensor_tolerance", 2.0, "out of range"),
        ("effort_limits", [1.0] * 6, "3 numbers, one for each of qa1, qa2, qa3"),
        ("locked_joints", ["qp1:0"], "one of qa1, qa2, qa3"),
    ],
)
def test_a_wrong_parameter_is_refused_with_the_reason(rrr, name, value, words):
    result = rrr.set_parameters(**{name: value})
    assert not result.successful
    assert words in result.reason


def test_torques_of_the_motors_carry_the_motors_names():
    dynamics = rd.InverseDynamics(rd.load(FIVE_BAR), backend="python")
    q, qd, qdd = dynamics.closed.home.q_a, np.array([0.1, 0.2]), np.array([1.0, 2.0])
    drive = dynamics.motor_torques(q, qd, qdd).drive
    names = dynamics.actuated_names
    joints = {name: pair for name, *pair in zip(names, q.tolist(), qd.tolist(), strict=True)}
    with Partner(description=FIVE_BAR, side="drive", command_timeout=0.0, max_age=20.0) as partner:

        def publish():
            partner.accelerate(dict(zip(names, qdd.tolist(), strict=True)))
            partner.state(joints)

        found = partner.until(lambda: partner.effort, "efforts", meanwhile=publish)[-1]
        assert tuple(found.name) == dynamics.motor_names
        np.testing.assert_allclose(found.effort, drive, rtol=TO_SOLVED)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"description": str(ROOT / "config/polar.yaml"), "sensed": True}, "no loops"),
        ({"description": RRR, "sensed": True, "feedback": "commanded"}, "feedback commanded"),
        ({"description": RRR, "sensed": "yes"}, "sensed"),
        ({"description": RRR, "side": "drive"}, "no motor"),
        ({"description": RRR, "side": "motor"}, "one of joint, drive, gear"),
    ],
)
def test_a_wrong_start_is_one_line_and_a_code(parameters, words):
    assert words in refusal(parameters)
