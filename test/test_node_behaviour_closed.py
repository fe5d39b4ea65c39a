# SPDX-License-Identifier: Apache-2.0
"""The node's logic for robots with loops: sensors that are read, wrong or missing; singularities;
torques on the motors' side."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from node_bench import Bench, point
from trajectory_msgs.msg import JointTrajectory

import robot_dynamics as rd
from robot_dynamics.closure.sensing import PATIENCE
from robot_dynamics.errors import InputError
from robot_dynamics.ros.feed_forward.diagnostics import OK, WARN, Diagnosis
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

CONFIG = Path(__file__).resolve().parents[1] / "config"
TO_SOLVED = 1e-9
"""Relative: solved and read passive joints agree to 1e-12, times the closure's condition"""
STEPS = np.linspace(0.0, 1.0, 40)
RRR_START = np.array([math.pi / 2, 7 * math.pi / 6, -math.pi / 6])
RRR_WAY, RRR_RATE = np.array([0.2, -0.15, 0.1]), np.array([0.4, -0.3, 0.2])
RRR_WANTED = np.array([2.0, -1.0, 0.5])


@cache
def mechanism(robot: str) -> rd.Mechanism:
    return rd.load(CONFIG / f"{robot}.yaml")


class Robot:
    """What a closed robot's encoders say, and its torques: passive joints solved."""

    def __init__(self, name: str, **options):
        self.dynamics = rd.InverseDynamics(mechanism(name), backend="python", **options)

    def readings(self, q, qd) -> dict[str, tuple[float, float]]:
        state = self.dynamics.closed.forward_kinematics(q, qd)
        values = zip(state.q_r.tolist(), state.qd_r.tolist(), strict=True)
        return dict(zip(self.dynamics.closed.coordinate_names, values, strict=True))


class ClosedBench(Bench):
    """A node for a shipped robot with loops, and that robot."""

    def __init__(self, robot: str = "rrr", **values):
        super().__init__(str(CONFIG / f"{robot}.yaml"), **values)
        self.robot = Robot(robot)
        self.now = 0.0

    def desire(self, qdd) -> None:
        self.command(self.now, point(qdd=qdd), names=self.robot.dynamics.actuated_names)

    def read(self, q, qd, *, without=(), **changed):
        """The torques for a state, some of its positions changed and some joints left out."""
        self.now += 0.01
        readings = self.robot.readings(q, qd)
        readings |= {
            name: (readings[name][0] + by, readings[name][1]) for name, by in changed.items()
        }
        names = [name for name in reversed(readings) if name not in without]
        values = np.array([readings[name] for name in names])
        return self.state(self.now, values[:, 0], values[:, 1], names=names)

    def agrees(self, found, q, qd, qdd) -> None:
        expected = self.robot.dynamics(q, qd, qdd)
        np.testing.assert_allclose(found, expected, rtol=TO_SOLVED, atol=TO_SOLVED)

    def report(self):
        return Diagnosis(0.0).report(self.controller, False, 10**9, 1.0)

    def events(self) -> dict[str, int]:
        return dict(self.controller.tally.events)


@pytest.fixture
def rrr():
    bench = ClosedBench(sensed=True, command_timeout=0.0)
    bench.desire(RRR_WANTED)
    return bench


# Torques


@pytest.mark.parametrize("sensed", [False, True])
def test_torques_of_a_closed_robot_are_those_of_its_dynamics_however_much_is_read(sensed):
    bench = ClosedBench(sensed=sensed, command_timeout=0.0)
    bench.desire(RRR_WANTED)
    for s in STEPS:
        q, qd = RRR_START + s * RRR_WAY, math.cos(s) * RRR_RATE
        bench.agrees(bench.read(q, qd), q, qd, RRR_WANTED)
    assert not bench.log


@pytest.mark.parametrize("sensed", [False, True])
@pytest.mark.parametrize("held", [float(RRR_START[2]), -0.4])
def test_a_locked_motor_of_a_closed_robot_is_where_it_is_held(held, sensed):
    bench = ClosedBench(sensed=sensed, command_timeout=0.0, locked_joints=[f"qa3:{held!r}"])
    bench.command(0.0, point(qdd=RRR_WANTED[:2]), names=["qa1", "qa2"])
    for s in STEPS:
        q, qd = np.append((RRR_START + s * RRR_WAY)[:2], held), np.append(RRR_RATE[:2], 0.0)
        found = bench.read(q, qd, without=["qa3"])
        expected = bench.robot.dynamics(q, qd, np.append(RRR_WANTED[:2], 0.0))
        np.testing.assert_allclose(found, expected[:2], rtol=TO_SOLVED, atol=TO_SOLVED)
    assert not bench.log


@pytest.mark.parametrize("event", ["hang", "trajectory", "payload"])
def test_a_robot_that_went_to_another_assembly_stays_in_it_whatever_is_computed_beside(event):
    bench = ClosedBench(command_timeout=0.0, on_timeout="hold")
    bench.desire(np.zeros(3))
    # straight back home, the platform would turn the other way
    corners = np.array([RRR_START, (1.4, 4.2, -1.6), (1.2, 2.2, -1.8)])
    for k in np.linspace(0.0, 2.0, 401)[1:]:
        q = [np.interp(k, range(3), column) for column in corners.T]
        bench.agrees(bench.read(q, np.zeros(3)), q, np.zeros(3), np.zeros(3))
    found = bench.controller.torques_if_hung()
    if event != "hang":
        names = bench.robot.dynamics.actuated_names
        points = [point(time, place) for time, place in enumerate(corners[::-1])]
        bench.fill(JointTrajectory(joint_names=names, points=points), bench.now)
        if event == "payload":
            old = bench.controller.model
            new = Model(ModelSpec(old.spec.mechanism, bench.settings))
            new.continue_from(old)
            bench.controller.adopt(new)
        found = bench.read(q, np.zeros(3))
    bench.agrees(found, q, np.zeros(3), np.zeros(3))


def test_joints_in_another_order_give_torques_in_that_order():
    bench = ClosedBench(sensed=True, joints=["qa3", "qa1", "qa2"])
    bench.command(0.0, point(qdd=RRR_WANTED[[2, 0, 1]]), names=("qa3", "qa1", "qa2"))
    found = bench.read(RRR_START, RRR_RATE)
    bench.agrees(np.array(found)[[1, 2, 0]], RRR_START, RRR_RATE, RRR_WANTED)


def test_a_new_formulation_goes_on_from_where_the_robot_is():
    bench = ClosedBench("five_bar", command_timeout=0.0)
    wanted, qd = np.array([1.0, 2.0]), np.array([0.1, -0.2])
    bench.desire(wanted)
    for q2 in np.linspace(0.9416, 0.3, 20):
        bench.read([math.pi - q2, q2], qd)
    old = bench.controller.model
    settings = bench.settings.changed({"formulation": "gibbs_appell"})
    new = Model(ModelSpec(old.spec.mechanism, settings))
    new.continue_from(old)
    before, after = old.dynamics.closed, new.dynamics.closed
    assert after is not before
    np.testing.assert_array_equal(after.last.q_r, before.last.q_r)


def test_other_parameters_keep_what_is_known_of_the_sensors():
    bench = ClosedBench(sensed=True, command_timeout=0.0)
    bench.desire(RRR_WANTED)
    bench.read(RRR_START, RRR_RATE, qp2=0.3)
    old = bench.controller.model
    new = Model(ModelSpec(old.spec.mechanism, bench.settings.changed({"sensor_tolerance": 0.05})))
    assert new.sensors.distrusted == ()
    new.continue_from(old)
    assert new.sensors.distrusted == ("qp2",)
    assert new.sensors.threshold == 0.05
    # of another mechanism, even one that is alike, nothing is known
    other = Model(ModelSpec(rd.load(CONFIG / "rrr.yaml"), bench.settings))
    other.continue_from(old)
    assert other.sensors.distrusted == ()


def test_who_reads_no_sensors_cannot_have_them_watched():
    settings = Settings.of({"sensed": True, "feedback": "commanded"})
    with pytest.raises(InputError, match="sensed"):
        Model(ModelSpec(mechanism("rrr"), settings))


# Sensors


def test_a_sensor_that_lies_is_named_and_done_without_until_it_is_sane(rrr):
    q, qd = RRR_START + RRR_WAY, RRR_RATE
    rrr.agrees(rrr.read(q, qd), q, qd, RRR_WANTED)
    assert rrr.report().values["sensors trusted"] == "qp1, qp2, qp3"
    for lie in (0.3, 0.5):
        # its rate, too, is not believed: the torques are the same
        rrr.agrees(rrr.read(q, qd, qp2=lie), q, qd, RRR_WANTED)
    report = rrr.report()
    assert report.level == WARN
    assert "not trusted: qp2" in report.message
    assert report.values["sensors trusted"] == "qp1, qp3"
    assert report.values["sensors not trusted"] == "qp2"
    assert float(report.values["closure residual"]) > 0.01
    assert [line for line in rrr.log if "'qp2' is inconsistent" in line]
    for _ in range(PATIENCE):
        rrr.agrees(rrr.read(q, qd), q, qd, RRR_WANTED)
    assert rrr.report().values["sensors trusted"] == "qp1, qp2, qp3"
    assert rrr.events() == {"sensors: not trusted": 1, "sensors: trusted again": 1}


def test_where_it_cannot_be_told_which_one_lies_the_motors_are_believed(rrr):
    q, qd = RRR_START, RRR_RATE
    rrr.agrees(rrr.read(q, qd, qp1=0.3, qp2=-0.4, qp3=0.2), q, qd, RRR_WANTED)
    assert rrr.report().values["sensors trusted"] == ""
    assert "the faulty one cannot be isolated" in rrr.log[0]


def test_a_motors_encoder_that_lies_is_done_without_by_the_sensors(rrr):
    q, qd = RRR_START, RRR_RATE
    rrr.read(q, qd)
    rrr.agrees(rrr.read(q, qd, qa1=0.3), q, qd, RRR_WANTED)
    assert rrr.report().values["sensors not trusted"] == "qa1"


def test_what_a_sensor_may_be_off_by_is_a_parameter():
    bench = ClosedBench(sensed=True, sensor_tolerance=0.5)
    bench.desire(RRR_WANTED)
    bench.read(RRR_START, RRR_RATE, qp2=0.3)
    assert bench.report().values["sensors trusted"] == "qp1, qp2, qp3"


@pytest.mark.parametrize("without", [["qp2"], ["qp1", "qp2", "qp3"]])
def test_without_a_reading_of_a_passive_joint_the_torques_are_those_of_solved_values(rrr, without):
    q, qd = RRR_START + RRR_WAY, RRR_RATE
    for _ in range(3):
        rrr.agrees(rrr.read(q, qd, without=without), q, qd, RRR_WANTED)
    assert rrr.events() == {"joint_states: missing sensor": 3}
    assert len(rrr.log) == 1, "one line, not three"
    assert f"no reading of {', '.join(map(repr, without))}" in rrr.log[0]
    rrr.agrees(rrr.read(q, qd), q, qd, RRR_WANTED)
    assert rrr.report().values["sensors not trusted"] == ""


@pytest.mark.parametrize("off", [math.nan, math.inf, -1e12])
def test_a_reading_that_is_none_is_missing(rrr, off):
    rrr.agrees(rrr.read(RRR_START, RRR_RATE, qp3=off), RRR_START, RRR_RATE, RRR_WANTED)
    assert rrr.events() == {"joint_states: missing sensor": 1}
    assert rrr.read(RRR_START, RRR_RATE, qa3=off) is None
    (reason,) = rrr.rejected()
    assert reason == f"joint_states: {'not finite' if abs(off) != 1e12 else 'impossible'}"


def test_without_a_motors_joint_a_state_is_dropped(rrr):
    assert rrr.read(RRR_START, RRR_RATE, without=["qa2"]) is None
    assert rrr.rejected() == {"joint_states: missing joint": 1}


# Singularities: a five-bar with both distal links in line, where the motors hold nothing


SINGULAR = 5e-5
"""rad: there the condition number is beyond the limit"""


def stretched(q2: float) -> list[float]:
    """Mirror-symmetric: qa1 = π - qa2; at qa2 = 0 the tip's links lie in line."""
    return [math.pi - q2, q2]


def test_near_a_singularity_it_leaves_the_robot_at_rest_once_and_is_silent():
    bench = ClosedBench("five_bar", command_timeout=0.0)
    still, wanted = np.zeros(2), np.array([1.0, 2.0])
    bench.desire(wanted)
    good = np.geomspace(0.9416, 2e-3, 30)
    for q2 in good:
        bench.agrees(bench.read(stretched(q2), still), stretched(q2), still, wanted)
    report = bench.report()
    assert report.level == WARN
    assert "near a singularity" in report.message
    assert float(report.values["condition number"]) > 100
    robot = Robot("five_bar", terms=["gravity"])
    motors = ("qa1", "qa2")
    rest = bench.state(bench.now + 0.01, stretched(SINGULAR), still, names=motors)
    np.testing.assert_allclose(rest, robot.dynamics.gravity(stretched(good[-1])), rtol=TO_SOLVED)
    assert bench.state(bench.now + 0.02, stretched(SINGULAR), still, names=motors) is None
    bench.now += 0.02
    assert bench.rejected() == {"torques: closure": 2}
    assert "singularity" in bench.log[0]
    # away from it nothing moves by itself, and a command works again
    found = bench.read(stretched(0.5), still)
    bench.agrees(found, stretched(0.5), still, still)
    bench.desire(wanted)
    bench.agrees(bench.read(stretched(0.5), still), stretched(0.5), still, wanted)


def test_a_state_out_of_reach_is_treated_alike():
    bench = ClosedBench(on_timeout="stop", command_timeout=0.0)
    bench.desire(RRR_WANTED)
    bench.read(RRR_START, RRR_RATE)
    # all arms point outwards: the feet are 0.5 m from the middle, the legs' rests 0.3 m long
    out = [7 * math.pi / 6, 11 * math.pi / 6, math.pi / 2]
    assert bench.state(0.5, out, np.zeros(3), names=("qa1", "qa2", "qa3")) == [0.0] * 3
    assert bench.rejected() == {"torques: closure": 1}
    bench.now = 0.5
    bench.desire(RRR_WANTED)
    bench.agrees(bench.read(RRR_START, RRR_RATE), RRR_START, RRR_RATE, RRR_WANTED)


def test_a_sensor_that_fell_silent_is_solved_for_and_not_read_any_more():
    bench = ClosedBench(sensed=True, merge_states=True, max_age=0.5, command_timeout=0.0)
    bench.desire(RRR_WANTED)
    # so slowly that what it said last stays plausible
    rate = RRR_RATE / 50
    bench.read(RRR_START, rate)
    for bench.now in np.arange(0.1, 1.0, 0.1):
        there = RRR_START + bench.now * rate
        found = bench.read(there, rate, without=["qp1"])
        if bench.now > 0.51:
            bench.agrees(found, there, rate, RRR_WANTED)
    assert set(bench.events()) == {"joint_states: missing sensor"}


def test_a_limit_that_home_is_beyond_is_no_model():
    with pytest.raises(rd.RobotDynamicsError, match="condition number"):
        ClosedBench(condition_limit=2.0)


# Torques on the motors' side


@pytest.mark.parametrize("side", ["drive", "gear"])
@pytest.mark.parametrize("robot", ["five_bar", "three_axis"])
def test_torques_of_the_motors_have_their_names_and_limits(robot, side):
    dynamics = rd.InverseDynamics(mechanism(robot), backend="python")
    n = len(dynamics.actuated_names)
    q = np.array([2.2, 0.9416] if n == 2 else [0.3, 0.2, 0.1])
    qd, qdd = np.linspace(0.1, 0.3, n), np.linspace(1.0, 2.0, n)
    expected = getattr(dynamics.motor_torques(q, qd, qdd), side)
    bench = Bench(str(CONFIG / f"{robot}.yaml"), side=side)
    assert bench.controller.model.outputs == dynamics.motor_names
    bench.command(0.0, point(qdd=qdd), names=dynamics.actuated_names)
    found = bench.state(0.1, q, qd, names=dynamics.actuated_names)
    np.testing.assert_allclose(found, expected, rtol=TO_SOLVED)
    half = (abs(expected) / 2).tolist()
    limited = Bench(str(CONFIG / f"{robot}.yaml"), side=side, effort_limits=half)
    limited.command(0.0, point(qdd=qdd), names=dynamics.actuated_names)
    found = limited.state(0.1, q, qd, names=dynamics.actuated_names)
    np.testing.assert_allclose(found, expected / 2, rtol=TO_SOLVED)


@pytest.mark.parametrize(
    ("robot", "values", "words"),
    [
        ("polar", {"side": "drive"}, "no motor .* for theta1, d2"),
        ("rrr", {"side": "gear"}, "no motor .* for qa1, qa2, qa3"),
        ("three_axis", {"side": "drive", "joints": ["q1", "q2"]}, "joints: .* q3 as well"),
        ("three_axis", {"side": "drive", "locked_joints": ["q3:0"]}, "q3 as well"),
        ("polar", {"sensed": True}, "sensed: .* no loops"),
        ("rrr", {"sensed": True, "feedback": "commanded"}, "sensed: .* feedback commanded"),
        ("rrr", {"sensed": True, "locked_joints": ["qp1:0"]}, "locked_joints: .* one of qa1"),
    ],
)
def test_settings_that_do_not_fit_the_robot_are_refused(robot, values, words):
    with pytest.raises(rd.RobotDynamicsError, match=words):
        Bench(str(CONFIG / f"{robot}.yaml"), **values)


def test_sensors_that_the_description_does_not_list_are_not_to_be_had(tmp_path):
    text = (CONFIG / "five_bar.yaml").read_text().replace("sensed: [qp1, qp2]", "")
    file = tmp_path / "blind.yaml"
    file.write_text(text)
    with pytest.raises(rd.RobotDynamicsError, match="lists no sensed joints"):
        Bench(str(file), sensed=True)


def test_open_chains_say_nothing_of_loops():
    bench = Bench(f"{CONFIG}/polar.yaml")
    report = Diagnosis(0.0).report(bench.controller, False, 10**9, 1.0)
    assert report.level == OK
    assert "condition number" not in report.values


@pytest.mark.parametrize("timeout", [0.0, 0.2])
def test_a_first_command_that_is_nowhere_leaves_no_motion_behind(timeout):
    bench = ClosedBench("five_bar", feedback="commanded", command_timeout=timeout)
    n = len(bench.robot.dynamics.actuated_names)
    home = bench.robot.dynamics.closed.home.q_a
    names = bench.robot.dynamics.actuated_names
    far = point(q=home + np.array([3.0, -3.0]), qd=np.zeros(n), qdd=np.zeros(n))
    bench.command(0.0, far, names=names)
    for now in (0.1, 0.2, 1.0):
        assert bench.tick(now) is None
    assert bench.rejected() == {"torques: closure": 1}
    bench.command(1.1, point(q=home, qd=np.zeros(n), qdd=np.zeros(n)), names=names)
    bench.agrees(bench.tick(1.11), home, np.zeros(n), np.zeros(n))
