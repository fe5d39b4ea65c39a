# SPDX-License-Identifier: Apache-2.0
"""A base that is moved by something else: the motion that an IMU or a topic reports is part of the
torques, or there are none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

import moving_base
from garbled import garbled
from hypothesis import strategies as st
from moving_base import FreeFlyer, Motion, imu, motion, told
from node_bench import Bench, at, point, stamp
from robots import relative
from sensor_msgs.msg import JointState

import robot_dynamics as rd
from robot_dynamics.ros.feed_forward.diagnostics import Diagnosis
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

CONFIG = Path(__file__).resolve().parents[1] / "config"
ROUNDING = 1e-12
"""Relative: Pinocchio adds up the same numbers in another order"""
DERIVED = 1e-10
"""The same with an angular acceleration from a difference of rates over 10 ms"""
REST = np.zeros(3)


class Ship(Bench):
    """The robot of `moving_base` on a bench, beside Pinocchio's."""

    def __init__(self, folder, **values):
        path = moving_base.described(folder)
        self.names = rd.load(path).joint_names
        n = len(self.names)
        terms = ("inertia", "coriolis", "gravity", "rotors")
        limits = (np.inf,) * n
        defaults = {"terms": terms, "effort_limits": limits, "command_timeout": 0.0}
        super().__init__(str(path), **(defaults | values))
        self.oracle = FreeFlyer(self.names)
        self.q, self.qd, self.qdd = np.random.default_rng(0).uniform(-1, 1, (3, n))
        self.command(0.0, point(qdd=self.qdd), names=self.names)

    def imu(self, now: float, base: Motion, **options):
        self.controller.imu(imu(base, stamp(now), **options), at(now))

    def told(self, now: float, base: Motion, **options):
        self.controller.base_motion(told(base, stamp(now), **options), at(now))

    def here(self, now: float):
        return self.state(now, self.q, self.qd, names=self.names)

    def expected(self, base: Motion, *, resting: bool = False) -> np.ndarray:
        still = 0 * self.q
        moves = (still, still) if resting else (self.qd, self.qdd)
        return self.oracle(self.q, *moves, base)

    def told_by_diagnostics(self, now: float):
        return Diagnosis(0.0).report(self.controller, False, at(now), 1.0)


def test_an_imu_anywhere_on_the_base_gives_pinocchios_torques(tmp_path):
    ship = Ship(tmp_path)
    for k in range(4):
        base = motion(k, spins=False)
        ship.imu(0.01 * k, base)
        assert relative(ship.here(0.01 * k), ship.expected(base)) < ROUNDING
    assert not ship.log


def test_angular_acceleration_is_derived_where_it_is_asked_for(tmp_path):
    ship = Ship(tmp_path, base_angular_acceleration="derive", derivative_filter=0.0)
    base, h = motion(5), 0.01
    before = base._replace(turning=base.turning - h * base.spinning)
    ship.imu(0.0, before)
    # a first one says nothing about it
    assert ship.here(0.0) is None
    assert ship.rejected() == {
        "base_imu: no angular acceleration yet": 1,
        "torques: no base motion": 1,
    }
    assert (
        "derived angular acceleration is delayed by (s)" not in ship.told_by_diagnostics(0).values
    )
    ship.imu(h, base)
    assert relative(ship.here(h), ship.expected(base)) < DERIVED
    values = ship.told_by_diagnostics(h).values
    assert values["derived angular acceleration is delayed by (s)"] == "0.0050"
    assert values["base motion from"] == "~/base_imu"


def test_angular_acceleration_without_stamps_is_by_the_times_of_sending(tmp_path):
    ship = Ship(tmp_path, base_angular_acceleration="derive", derivative_filter=0.0)
    base, h = motion(5), 0.01
    for k in range(40):
        now = 2 * h * (k // 2)  # two at a time
        turning = base._replace(turning=base.turning + (k - 39) * h * base.spinning)
        message = imu(turning, stamp(0.0))
        message.header.stamp.sec = message.header.stamp.nanosec = 0
        ship.controller.imu(message, at(now), 10**12 + round(1e9 * h) * k)
    assert relative(ship.here(now), ship.expected(base)) < DERIVED


def test_pose_twist_and_acceleration_give_pinocchios_torques(tmp_path):
    ship = Ship(tmp_path)
    for k in range(3):
        base = motion(k)
        ship.told(0.01 * k, base)
        assert relative(ship.here(0.01 * k), ship.expected(base)) < ROUNDING
    assert not ship.log


def test_a_pose_of_the_imu_may_be_given_where_no_link_has_its_name(tmp_path):
    pose = (*moving_base.PLACE, *moving_base.TURN)
    ship = Ship(tmp_path, base_imu_pose=pose)
    base = motion(3, spins=False)
    ship.imu(0.0, base, frame="phidget")
    assert relative(ship.here(0.0), ship.expected(base)) < ROUNDING
    # another one on the same topic is somewhere else
    ship.imu(0.01, motion(4), frame="spare")
    assert ship.rejected() == {"base_imu: wrong frame": 1}
    assert "'spare'" in ship.log[0]
    assert relative(ship.here(0.01), ship.expected(base)) < ROUNDING
    ship.imu(0.5, base, frame="spare")
    assert ship.rejected() == {"base_imu: wrong frame": 1}, "after a silence it is another one's"


def test_an_orientation_may_tell_gravity_alone(tmp_path):
    ship = Ship(tmp_path, base_gravity="orientation")
    base = motion(6, spins=False)._replace(pushing=REST)
    message = imu(base, stamp(0.0))
    message.linear_acceleration.x = np.nan
    message.linear_acceleration_covariance[0] = -1.0
    ship.controller.imu(message, at(0.0))
    assert relative(ship.here(0.0), ship.expected(base)) < ROUNDING
    message.orientation_covariance[0] = -1.0
    ship.controller.imu(message, at(0.0))
    assert ship.rejected() == {"base_imu: no orientation": 1}


def test_without_the_term_gravity_the_base_accelerates_all_the_same(tmp_path):
    ship = Ship(tmp_path, terms=("inertia", "coriolis", "rotors"))
    ship.oracle.model.gravity.linear = np.zeros(3)
    base = motion(7, spins=False)
    ship.imu(0.0, base)
    assert relative(ship.here(0.0), ship.expected(base)) < ROUNDING
    message = imu(base, stamp(0.01))
    message.orientation_covariance[0] = -1.0
    ship.controller.imu(message, at(0.01))
    assert ship.rejected() == {"base_imu: no orientation": 1}
    # the newest was made for other terms
    settings = ship.settings.changed({"terms": ("inertia", "coriolis", "gravity", "rotors")})
    bare = ship.controller.model
    ship.controller.settings = settings
    ship.controller.adopt(Model(ModelSpec(bare.spec.mechanism, settings)))
    assert ship.here(0.02) is None
    assert ship.rejected()["torques: no base motion"] == 1
    ship.imu(0.03, base)
    assert ship.here(0.03) is not None
    # nor do the last torques have gravity where the terms have none any more
    ship.controller.adopt(bare)
    assert ship.farewell(0.04) == pytest.approx([0.0] * len(ship.names), abs=1e-12)


def test_a_motion_with_its_attitude_is_used_whatever_the_terms_become(tmp_path):
    """Unlike an IMU's, it does not depend on them."""
    ship = Ship(tmp_path, terms=("inertia", "coriolis", "rotors"), base_timeout=60.0)
    base = motion(7)
    ship.told(0.0, base)
    settings = ship.settings.changed({"terms": ("inertia", "coriolis", "gravity", "rotors")})
    ship.controller.settings = settings
    ship.controller.adopt(Model(ModelSpec(ship.controller.model.spec.mechanism, settings)))
    assert relative(ship.here(0.01), ship.expected(base)) < ROUNDING


@pytest.mark.parametrize(
    "changed",
    [
        {"base_imu_pose": (0.0,) * 6},
        {"base_gravity": "orientation"},
        {"base_angular_acceleration": "derive"},
    ],
)
def test_what_an_imu_told_under_other_parameters_is_not_used(tmp_path, changed):
    ship = Ship(tmp_path, base_timeout=60.0)
    base = motion(3, spins=False)
    ship.imu(0.0, base)
    assert ship.here(0.0) is not None
    ship.controller.settings = ship.settings.changed(changed)
    assert ship.here(0.01) is None
    assert ship.rejected() == {"torques: no base motion": 1}
    assert "older than the change of a parameter" in ship.log[-1]
    # pose, twist and acceleration are used alike
    ship.told(61.0, base)
    ship.controller.settings = ship.settings
    assert relative(ship.here(61.0), ship.expected(base)) < ROUNDING


def test_what_an_imu_told_under_the_gravity_of_another_description_is_not_used(tmp_path):
    ship = Ship(tmp_path, base_gravity="orientation", base_timeout=60.0)
    ship.imu(0.0, motion(3, spins=False))
    assert ship.here(0.0) is not None
    model = ship.controller.model
    moon = replace(model.spec.mechanism, gravity=np.array([0.0, 0.0, -1.62]))
    ship.controller.adopt(Model(replace(model.spec, mechanism=moon)))
    assert ship.here(0.01) is None
    assert ship.rejected() == {"torques: no base motion": 1}


def test_torques_come_with_a_recent_motion_of_the_base_and_not_without(tmp_path):
    ship = Ship(tmp_path, base_timeout=0.05, max_age=0.5, command_timeout=5.0)
    report = ship.told_by_diagnostics(0.0)
    assert (report.level, report.values["base motion age (s)"]) == (1, "never")
    assert "no base motion has been received on ~/base_imu or ~/base_motion" in report.message
    assert ship.here(0.0) is None
    assert ship.rejected() == {"torques: no base motion": 1}
    base = motion(8, spins=False)
    ship.imu(0.01, base)
    assert relative(ship.here(0.06), ship.expected(base)) < ROUNDING
    assert ship.here(0.0601) is None
    assert "is 0.050 s old, expected at most base_timeout = 0.05 s" in ship.log[-1]
    # a stamp that is ahead of the clock makes it no younger
    ship.controller.imu(imu(base, stamp(0.4)), at(0.061))
    assert ship.here(0.1) is not None
    assert ship.here(0.112) is None
    # as with states that are lost: the last torques carry the robot at rest, as the base was
    # tilted last, and the command is over
    assert ship.watch(0.59) is None
    length = 9.81 / np.linalg.norm(base.pushing - base.R.T @ moving_base.G)
    g = (base.pushing - base.R.T @ moving_base.G) * length
    level = Motion(np.eye(3), REST, REST, g + moving_base.G)
    assert relative(ship.watch(0.61), ship.expected(level, resting=True)) < ROUNDING
    ship.imu(0.62, base)
    # on_timeout is gravity: at rest on a base that moves
    assert relative(ship.here(0.62), ship.expected(base, resting=True)) < ROUNDING


def test_the_last_words_are_those_of_a_base_at_rest(tmp_path):
    ship = Ship(tmp_path)
    base = motion(9)
    ship.told(0.0, base)
    ship.here(0.0)
    still = Motion(base.R, REST, REST, REST)
    expected = ship.expected(still, resting=True)
    assert relative(ship.controller.torques_if_hung(), expected) < ROUNDING
    assert relative(ship.farewell(0.01), expected) < ROUNDING
    assert ship.farewell(0.02) is None


def test_the_residual_is_that_on_the_moving_base(tmp_path):
    ship = Ship(tmp_path, residual=True, residual_filter=0.0)
    ship.controller.commands.drop()
    base = motion(16, spins=False)

    def measure(now: float) -> None:
        message = JointState(name=list(ship.names), position=ship.q.tolist())
        message.velocity, message.header.stamp = ship.qd.tolist(), stamp(now)
        message.effort = ship.oracle(ship.q, ship.qd, 0 * ship.q, base).tolist()
        ship.controller.state(message, at(now))

    for now in (0.0, 0.01, 0.02):
        ship.imu(now, base)
        measure(now)
    assert np.abs(ship.controller.residual.value).max() < 1e-11
    measure(0.2)
    assert ship.controller.tally.events["residual: no base motion"] == 1


def test_another_robots_base_is_another(tmp_path):
    ship = Ship(tmp_path)
    ship.imu(0.0, motion(1))
    settings = Settings.of({"moving_base": "always"})
    ship.controller.adopt(Model(ModelSpec(rd.load(CONFIG / "polar.yaml"), settings)))
    assert ship.told_by_diagnostics(0.0).values["base motion age (s)"] == "never"


def test_a_clock_that_jumps_takes_the_bases_motion_with_it(tmp_path):
    ship = Ship(tmp_path)
    ship.imu(5.0, motion(1))
    ship.controller.clock_jumped_back(at(0.0))
    ship.command(0.0, point(qdd=ship.qdd), names=ship.names)
    assert ship.here(0.0) is None
    ship.imu(0.0, motion(1))
    assert ship.here(0.01) is not None


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("not finite", lambda m: setattr(m.angular_velocity, "y", np.nan)),
        ("not finite", lambda m: setattr(m.linear_acceleration, "z", np.inf)),
        ("no angular velocity", lambda m: m.angular_velocity_covariance.__setitem__(0, -1)),
        ("no acceleration", lambda m: m.linear_acceleration_covariance.__setitem__(0, -1)),
        ("impossible", lambda m: setattr(m.angular_velocity, "y", 40.1)),
        ("impossible", lambda m: setattr(m.linear_acceleration, "z", 160.0)),
        # 1 rad/s within 10 ms
        ("impossible", lambda m: setattr(m.angular_velocity, "y", m.angular_velocity.y + 1.0)),
        ("no gravity", lambda m: moving_base._set(m.linear_acceleration, [0, 0, 1.0])),
        ("wrong frame", lambda m: setattr(m.header, "frame_id", "")),
        ("wrong frame", lambda m: setattr(m.header, "frame_id", "link1")),
        ("wrong frame", lambda m: setattr(m.header, "frame_id", "map")),
        ("old stamp", lambda m: setattr(m.header, "stamp", stamp(-0.6))),
        ("old stamp", lambda m: setattr(m.header, "stamp", stamp(-0.01))),
        ("future stamp", lambda m: setattr(m.header, "stamp", stamp(0.6))),
        ("invalid stamp", lambda m: setattr(m.header.stamp, "sec", -1)),
    ],
)
def test_an_imu_message_that_can_not_be_is_dropped_and_leaves_no_trace(tmp_path, reason, change):
    ship = Ship(tmp_path, base_angular_acceleration="derive", max_acceleration=50.0)
    base = motion(2, spins=False)
    ship.imu(-0.01, base)
    ship.imu(0.0, base)
    ship.controller.tally.rejected.clear()
    bad = imu(base, stamp(0.01))
    change(bad)
    ship.controller.imu(bad, at(0.01))
    assert ship.rejected() == {f"base_imu: {reason}": 1}
    assert relative(ship.here(0.02), ship.expected(base)) < ROUNDING
    ship.imu(0.03, base)
    assert relative(ship.here(0.03), ship.expected(base)) < ROUNDING


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("wrong joint", lambda m: m.joint_names.append("more")),
        ("wrong joint", lambda m: setattr(m, "joint_names", ["sea"])),
        ("wrong frame", lambda m: setattr(m.header, "frame_id", "link0")),
        ("no state", lambda m: m.points.append(m.points[0])),
        ("no state", lambda m: m.points.clear()),
        ("no state", lambda m: setattr(m.points[0].time_from_start, "nanosec", 1)),
        ("wrong length", lambda m: m.points[0].accelerations.clear()),
        ("invalid rotation", lambda m: setattr(m.points[0].transforms[0].rotation, "w", 1.5)),
        ("invalid rotation", lambda m: setattr(m.points[0].transforms[0].rotation, "w", np.nan)),
        ("not finite", lambda m: setattr(m.points[0].velocities[0].angular, "x", np.nan)),
        ("not finite", lambda m: setattr(m.points[0].accelerations[0].linear, "x", -np.inf)),
        ("impossible", lambda m: setattr(m.points[0].velocities[0].angular, "x", 41.0)),
        ("impossible", lambda m: setattr(m.points[0].accelerations[0].linear, "x", 157.0)),
        ("impossible", lambda m: setattr(m.points[0].accelerations[0].angular, "x", 1001.0)),
        ("old stamp", lambda m: setattr(m.header, "stamp", stamp(-0.01))),
    ],
)
def test_a_told_motion_that_can_not_be_is_dropped_and_leaves_no_trace(tmp_path, reason, change):
    ship = Ship(tmp_path)
    base = motion(2)
    ship.told(0.0, base)
    bad = told(base, stamp(0.01))
    change(bad)
    ship.controller.base_motion(bad, at(0.01))
    assert ship.rejected() == {f"base_motion: {reason}": 1}
    assert relative(ship.here(0.02), ship.expected(base)) < ROUNDING


def test_whatever_an_imu_says_torques_are_those_of_what_was_accepted(tmp_path, examples):
    ship, good = Ship(tmp_path), motion(12, spins=False)
    last, outcomes, count = None, Counter(), 0

    def check(rng) -> None:
        nonlocal last, count
        count += 1
        now, before = 0.06 * count, sum(ship.rejected().values())
        message = garbled(rng, imu(good, stamp(now)))
        ship.controller.imu(message, at(now))
        if accepted := sum(ship.rejected().values()) == before:
            t, w, f = message.header.stamp, message.angular_velocity, message.linear_acceleration
            sent = at(now) if t.sec == t.nanosec == 0 else t.sec * 10**9 + t.nanosec
            turning = moving_base.MOUNT @ [w.x, w.y, w.z]
            lever = np.cross(turning, np.cross(turning, moving_base.PLACE))
            felt = moving_base.MOUNT @ [f.x, f.y, f.z] - lever
            last = min(sent, at(now)), Motion(np.eye(3), turning, REST, felt + moving_base.G)
        found = ship.here(now)
        fresh = last is not None and at(now) - last[0] <= 10**8
        outcomes[accepted, fresh] += 1
        assert (found is not None) == fresh, (ship.log[-1], message, outcomes)
        if found is not None:
            assert relative(found, ship.expected(last[1])) < ROUNDING

    examples(check, 300, rng=st.integers(0, 2**62).map(Random))
    assert min(outcomes[key] for key in ((True, True), (False, True), (False, False))) > 10


def test_one_source_at_a_time(tmp_path):
    ship = Ship(tmp_path)
    one, other = motion(1), motion(2, spins=False)
    ship.told(0.0, one)
    ship.imu(0.05, other)
    assert ship.rejected() == {"base_imu: two sources": 1}
    assert relative(ship.here(0.05), ship.expected(one)) < ROUNDING
    ship.imu(0.2, other)
    assert relative(ship.here(0.2), ship.expected(other)) < ROUNDING


def test_the_parameter_may_say_that_the_base_moves_or_does_not(tmp_path):
    ship = Ship(tmp_path, moving_base="never")
    ship.imu(0.0, motion(1))
    assert ship.rejected() == {"base_imu: fixed base": 1}
    still = Motion(np.eye(3), REST, REST, REST)
    assert relative(ship.here(0.0), ship.expected(still)) < ROUNDING
    assert "base motion from" not in ship.told_by_diagnostics(0.0).values

    bench = Bench(f"{CONFIG}/polar.yaml", moving_base="always", base_gravity="orientation")
    assert bench.controller.model.moved
    names = bench.controller.model.joints
    bench.command(0.0, point(qdd=[0.3, 0.2]), names=names)
    base = motion(3, spins=False)
    bench.controller.imu(imu(base, stamp(0.0), frame="base", mount=np.eye(3)), at(0.0))
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"))
    found = bench.state(0.0, [0.1, 0.4], [0.2, 0.3], names=names)
    expected = dynamics(
        [0.1, 0.4], [0.2, 0.3], [0.3, 0.2],
        base_motion=rd.BaseMotion(base.turning, rotation=base.R),
    )  # fmt: skip
    assert relative(np.array(found), expected) < ROUNDING
    with pytest.raises(RefusedError, match="need a fixed base"):
        bench.fill(None, 0.0)


@pytest.mark.parametrize(
    ("robot", "values"),
    [
        ("three_axis", {"side": "drive"}),
        ("three_axis", {"side": "gear"}),
        ("five_bar", {"sensed": True}),
    ],
)
def test_motors_loops_and_sensors_have_the_dynamics_torques(robot, values):
    bench = Bench(f"{CONFIG}/{robot}.yaml", moving_base="always", **values)
    mechanism = rd.load(CONFIG / f"{robot}.yaml")
    dynamics = rd.InverseDynamics(mechanism, sensed=values.get("sensed", False))
    names, model = dynamics.joint_names, bench.controller.model
    a, k = len(dynamics.actuated_names), len(names)
    q = np.linspace(0.3, 0.9, k) if dynamics.closed is None else dynamics.closed.home.q_r[:k]
    still, qdd = np.zeros(k), np.full(k, 0.2)
    bench.command(0.0, point(qdd=qdd[:a]), names=model.joints)
    base = motion(11, spins=False)
    frame = mechanism.base
    bench.controller.imu(imu(base, stamp(0.0), frame=frame, mount=np.eye(3), place=REST), at(0.0))
    found = bench.state(0.0, q, still, names=names)
    if values.get("sensed"):
        qdd = dynamics.closed.forward_kinematics(q).accelerations(qdd[:a])[:k]
    moving = rd.BaseMotion(
        base.turning, base.spinning, specific_force=base.pushing - base.R.T @ moving_base.G
    )
    if "side" in values:
        both = dynamics.motor_torques(q, still, qdd, base_motion=moving)
        expected = getattr(both, values["side"])
    else:
        expected = dynamics(q, still, qdd, base_motion=moving)
    assert relative(np.array(found), expected) < 1e-10


def test_over_dds_the_torques_are_pinocchios_on_the_base_that_the_imu_feels(tmp_path):
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    from node_process import Partner
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import Imu

    path = moving_base.described(tmp_path)
    names = rd.load(path).joint_names
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, len(names)))
    oracle = FreeFlyer(names)
    parameters = {
        "description": str(path),
        "terms": ["inertia", "coriolis", "gravity"],
        "effort_limits": [1e6] * len(names),
        "command_timeout": 0.0,
        "base_timeout": 30.0,
        # nothing but the base's motion gets lost, however busy the machine is
        "max_age": 60.0,
    }
    with Partner(**parameters) as ship:
        out = ship.node.create_publisher(Imu, "/feed_forward/base_imu", qos_profile_sensor_data)
        ship.until(out.get_subscription_count, "a subscription of base_imu")
        joints = dict(zip(names, zip(q.tolist(), qd.tolist(), strict=True), strict=True))

        def feel(base: Motion) -> None:
            out.publish(imu(base, ship.node.get_clock().now().to_msg()))

        def move() -> None:
            ship.accelerate(dict(zip(names, qdd.tolist(), strict=True)))
            ship.state(joints)

        lost = "rejected: torques: no base motion"
        ship.until(lambda: lost in ship.counts(), "torques that are missing", meanwhile=move)
        assert not ship.commands
        assert "no base motion has been received" in ship.diagnostics[-1].status[0].message
        for k in (20, 21):
            base = motion(k, spins=False)
            expected = oracle(q, qd, qdd, base)

            def there(base=base, expected=expected) -> bool:
                return bool(ship.commands) and relative(ship.commands[-1], expected) < ROUNDING

            ship.until(there, f"{expected}", meanwhile=lambda base=base: (feel(base), move()))
        ship.until(lambda: ship.counts()["base motion from"] == "~/base_imu", "where it comes from")
        # a motion that is told no more is used no more
        assert ship.set_parameters(base_timeout=0.001, max_age=0.5).successful
        ship.until(
            lambda: "event: torques: feedback lost" in ship.counts(), "an end", meanwhile=move
        )
        level = base.pushing - base.R.T @ moving_base.G
        level = level * 9.81 / np.linalg.norm(level) + moving_base.G
        expected = oracle(q, 0 * q, 0 * q, Motion(np.eye(3), REST, REST, level))
        ship.until(lambda: relative(ship.commands[-1], expected) < ROUNDING, f"{expected}")
        assert ship.stop() == 0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"base_imu_pose": (0.0, 1.0)}, r"base_imu_pose: .*six finite numbers"),
        ({"base_imu_pose": (0.0,) * 5 + (np.inf,)}, r"base_imu_pose: .*six finite numbers"),
        ({"base_timeout": 0.0}, r"base_timeout"),
        ({"moving_base": "yes"}, r"moving_base: .*described"),
    ],
)
def test_settings_of_a_base_that_can_not_be_are_refused(values, words):
    with pytest.raises(rd.InputError, match=words):
        Settings.of(values)


def test_terms_that_a_moving_base_needs_are_named(tmp_path):
    with pytest.raises(rd.InputError, match=r"terms: .*coriolis too, for base_motion"):
        Ship(tmp_path, terms=("gravity", "inertia"))
    # gravity alone follows what is felt
    ship = Ship(tmp_path, terms=("gravity",))
    base = motion(15, spins=False)
    ship.imu(0.0, base, place=REST, frame="link0", mount=np.eye(3))
    felt = base.pushing - base.R.T @ moving_base.G
    level = Motion(np.eye(3), REST, REST, felt + moving_base.G)
    assert relative(ship.here(0.0), ship.expected(level, resting=True)) < ROUNDING
    # a base that stands is another model
    settings, mechanism = ship.settings, ship.controller.model.spec.mechanism
    keys = {ModelSpec(mechanism, settings.changed({"moving_base": how})).dynamics_key for how in
            ("always", "never", "described")}  # fmt: skip
    assert len(keys) == 2
