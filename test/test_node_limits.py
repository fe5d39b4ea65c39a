# SPDX-License-Identifier: Apache-2.0
"""What a command may require: no torque beyond what the robot and the trajectory justify."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from hypothesis import given, seed, settings
from hypothesis import strategies as st
from node_bench import ROUNDING, Bench, close, point
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd
from robot_dynamics.ros.feed_forward import motion
from robot_dynamics.ros.feed_forward.limits import unlimited
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.feed_forward.torque_model import ENDLESS

POLAR = str(Path(__file__).resolve().parents[1] / "config" / "polar.yaml")
NAMES = ("theta1", "d2")
HERE = [0.3, 0.3]
STILL = [0.0, 0.0]
DYNAMICS = rd.InverseDynamics(rd.load(POLAR))

DESCRIPTION = """
<robot name="slide"><link name="world"/><link name="box"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="x" type="prismatic"><parent link="world"/><child link="box"/><axis xyz="1 0 0"/>
<limit lower="-9" upper="9" effort="1000" velocity="{velocity}"/></joint></robot>"""


def polar(**values) -> Bench:
    return Bench(POLAR, **values)


def state(bench: Bench, now: float, q=HERE, qd=STILL):
    return bench.state(now, q, qd, names=NAMES)


# The way to the first point


@pytest.mark.parametrize("ahead", [2e-3, 1e-4, 1e-9, 0.05])
@pytest.mark.parametrize("qdd", [None, STILL])
def test_a_first_point_a_moment_ahead_and_a_little_off_makes_no_torque(ahead, qdd):
    bench = polar()
    target = [0.305, 0.305]
    bench.command(
        0.0,
        point(ahead, target, STILL, qdd),
        point(ahead + 1.0, [0.4, 0.4], STILL, qdd),
        names=NAMES,
    )
    close(state(bench, 0.0), *DYNAMICS(HERE, STILL, STILL))
    assert dict(bench.controller.tally.events) == {"command: no lead-in": 1}
    assert "theta1, d2" in bench.log[0]
    # from the first point on it is the trajectory
    bench.state(ahead, HERE, STILL, names=NAMES)
    half = bench.controller.commands.motion.at(
        bench.controller.commands.motion.start + round((ahead + 0.5) * 1e9)
    )
    np.testing.assert_allclose(half.q, 0.3525, atol=1e-9)


@pytest.mark.parametrize("off", [1e-6, 1e-3, 1.0, 1e3, 1e300])
@pytest.mark.parametrize("feedback", ["measured", "commanded"])
def test_a_lead_in_never_asks_for_more_than_its_limit_or_the_trajectory(off, feedback):
    for ahead in (1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0):
        for carries in (2, 3):
            bench = polar(feedback=feedback)
            rest = (STILL, STILL)[: carries - 1]
            goal = [off, HERE[1]]
            points = [point(t, goal, *rest) for t in (ahead, ahead + 1.0)]
            bench.command(0.0, *points, names=NAMES)
            if state(bench, 0.0) is None:
                assert feedback == "commanded" or off > 1e9
                continue
            course = bench.controller.commands.motion
            for share in np.linspace(0.0, 0.999, 30):
                qdd = course.at(course.start + int(share * ahead * 1e9)).qdd
                assert (np.abs(qdd) <= bench.settings.lead_in_acceleration * (1 + 1e-9)).all()


def test_a_lead_in_may_be_as_quick_as_the_trajectory_itself():
    bench = polar()
    # 6 Δ/h²: 67 rad/s² after 73
    swing = [point(0.3, [1.3, 0.3], STILL), point(0.6, [2.4, 0.3], STILL)]
    bench.command(0.0, *swing, names=NAMES)
    qdd = [6 * 1.0 / 0.3**2, 0.0]
    close(state(bench, 0.0), *DYNAMICS(HERE, STILL, qdd))
    assert not bench.log


def test_a_lead_in_is_made_where_its_limit_allows_it():
    points = [point(0.5, [1.3, 0.3], STILL), point(1.0, [1.3, 0.3], STILL)]
    for limit, expected in ((25.0, 24.0), (23.0, 0.0)):
        bench = polar(lead_in_acceleration=limit)
        bench.command(0.0, *points, names=NAMES)
        close(state(bench, 0.0), *DYNAMICS(HERE, STILL, [expected, 0.0]))


def test_a_motion_under_way_is_replaced_without_a_jerk_of_the_new_ones_first_moment():
    bench = polar()
    first = [point(0.0, HERE, STILL), point(2.0, [1.3, 0.3], STILL)]
    bench.command(0.0, *first, names=NAMES)
    state(bench, 0.0)
    bench.command(
        1.0, point(0.001, [0.9, 0.3], [0.7, 0.0]), point(1.0, [1.3, 0.3], STILL), names=NAMES
    )
    here, rate = [0.8, 0.3], [0.75, 0.0]
    close(state(bench, 1.0, here, rate), *DYNAMICS(here, rate, STILL))


# What is refused


def cubic(span: float, way: float) -> list[JointTrajectoryPoint]:
    return [point(0.0, HERE, STILL), point(span, [0.3 + way, 0.3], STILL)]


@pytest.mark.parametrize(
    ("points", "allowed"),
    [
        ([point(qdd=[1000.0, -1000.0])], True),
        ([point(qdd=[0.0, -1000.1])], False),
        ([point(qdd=[1e9, 0.0])], False),
        # 6 Δ/h²
        (cubic(1e-3, 1.6e-4), True),
        (cubic(1e-3, -1.7e-4), False),
        (cubic(1e-9, 1.0), False),
        # a quintic's peak between its ends: 10/√3 Δ/h²
        ([point(0.0, HERE, STILL, STILL), point(0.1, [2.02, 0.3], STILL, STILL)], True),
        ([point(0.0, HERE, STILL, STILL), point(0.1, [2.04, 0.3], STILL, STILL)], False),
        # rates that jump by 1 rad/s within 1 ms
        ([point(0.0, HERE, STILL), point(1e-3, [0.301, 0.3], [1.0, 0.0])], False),
        # an acceleration at the last point alone
        ([point(0.0, HERE, STILL, STILL), point(1.0, HERE, STILL, [1e4, 0.0])], False),
        # straight lines have none, however quick
        ([point(0.0, HERE), point(1e-3, [1.3, 0.3])], True),
    ],
)
def test_no_command_asks_for_more_than_max_acceleration(points, allowed):
    bench = polar()
    bench.command(0.0, *points, names=NAMES)
    assert bench.rejected() == ({} if allowed else {"command: acceleration too high": 1})
    assert (state(bench, 0.0) is not None) == allowed
    if not allowed:
        assert "max_acceleration = 1000" in bench.log[0]
        unlimited = polar(max_acceleration=0.0)
        unlimited.command(0.0, *points, names=NAMES)
        assert state(unlimited, 0.0) is not None


def test_the_limit_follows_the_parameter():
    bench = polar(max_acceleration=5.0)
    bench.command(0.0, point(qdd=[5.1, 0.0]), names=NAMES)
    assert bench.rejected() == {"command: acceleration too high": 1}
    # and so does the lead-in, whatever its own limit
    bench.command(0.0, point(1.0, [1.4, 0.3], STILL), point(2.0, [1.4, 0.3], STILL), names=NAMES)
    close(state(bench, 0.0), 0.0, 0.0)


@pytest.mark.parametrize("velocity", [2.0, 0.0])
@pytest.mark.parametrize("rate", [2.2, -2.3])
def test_no_command_moves_faster_than_the_description_allows(velocity, rate):
    bench = Bench(DESCRIPTION.format(velocity=velocity))
    for points in (
        [point(0.0, 0.0), point(1.0, rate)],
        # 1.5 Δ/h in the midst
        [point(0.0, 0.0, 0.0), point(1.0, rate / 1.5, 0.0)],
        [point(0.0, 0.0, 0.0, 0.0), point(1.0, rate / 1.875, 0.0, 0.0)],
        [point(q=0.0, qd=rate, qdd=0.0)],
    ):
        before = bench.controller.commands.count
        bench.command(0.0, *points, names=("x",))
        assert bench.controller.commands.count - before == (velocity == 0.0 or abs(rate) <= 2.2)
    if velocity and abs(rate) > 2.2:
        assert bench.rejected() == {"command: too fast": 4}
        assert "'x' would move at 2.3" in bench.log[0]


# What sensors tell


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        (1e3, "torques: implausible torque"),
        (-1e6, "torques: implausible torque"),
        (1e100, "joint_states: impossible"),
    ],
)
def test_a_rate_that_no_robot_has_makes_no_torque_and_the_next_state_does(rate, reason):
    bench = polar()
    bench.command(0.0, point(qdd=[1.0, 1.0]), names=NAMES)
    assert state(bench, 0.0) is not None
    assert state(bench, 0.01, HERE, [rate, 1.0]) is None
    assert bench.rejected() == {reason: 1}
    assert "theta1" in bench.log[0]
    close(state(bench, 0.02), *DYNAMICS(HERE, STILL, [1.0, 1.0]))


def test_a_commanded_rate_whose_square_is_too_large_for_a_float_ends_nothing():
    bench = Bench(DESCRIPTION.format(velocity=0), feedback="commanded")
    bench.command(0.0, point(q=0.0, qd=1e200, qdd=1.0), names=("x",))
    # a box that slides freely has no torque of its rate
    close(bench.state(0.0, names=("x",)), 2.0)


def test_a_motion_does_not_begin_from_a_state_that_is_worth_nothing():
    bench = polar()
    swing = [point(1.0, [0.4, 0.4], STILL), point(2.0, [0.4, 0.4], STILL)]
    bench.command(0.0, *swing, names=NAMES)
    assert state(bench, 0.0, HERE, [1e6, 1.0]) is None
    # 6 Δ/h² from the next one
    close(state(bench, 0.01), *DYNAMICS(HERE, STILL, [0.6, 0.6]))


@settings(max_examples=60, deadline=None)
@seed(1)
@given(
    st.lists(st.floats(-31.0, 31.0), min_size=2, max_size=2),
    st.lists(st.floats(-1000.0, 1000.0), min_size=2, max_size=2),
    st.lists(st.floats(-2.0, 2.0), min_size=2, max_size=2),
)
def test_within_the_limits_torques_are_those_of_the_dynamics(qd, qdd, q):
    bench = polar()
    bench.command(0.0, point(qdd=qdd), names=NAMES)
    np.testing.assert_allclose(
        state(bench, 0.0, q, qd), DYNAMICS(q, qd, qdd), rtol=ROUNDING, atol=1e-9
    )


def test_a_joint_that_spins_fast_on_its_own_is_no_reason():
    flywheel = """
<robot name="wheel"><link name="world"/><link name="rim"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="x" type="continuous"><parent link="world"/><child link="rim"/><axis xyz="0 0 1"/>
<dynamics damping="0.5"/></joint></robot>"""
    bench = Bench(flywheel)
    bench.command(0.0, point(qdd=2.0), names=("x",))
    close(bench.state(0.0, 0.0, 300.0, names=("x",)), 152.0)


CONFIG = Path(POLAR).parent
GYRO = """
<robot name="gyro"><link name="world"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="rim"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="roll" type="continuous"><parent link="world"/><child link="arm"/><axis xyz="1 0 0"/>
</joint>
<joint name="yaw" type="continuous"><parent link="arm"/><child link="fork"/><axis xyz="0 1 0"/>
</joint><link name="fork"/>
<joint name="spin" type="continuous"><parent link="fork"/><child link="rim"/><axis xyz="0 0 1"/>
{limit}</joint></robot>"""
GYRO_NAMES = ("roll", "yaw", "spin")


def test_a_robot_that_runs_away_gets_no_torques_that_its_rates_alone_explain():
    names, here = ("q1", "q2", "q3"), [0.3, 0.5, -0.7]
    bench = Bench(str(CONFIG / "three_axis.yaml"))
    bench.command(0.0, point(qdd=[1.0, 1.0, 1.0]), names=names)
    assert bench.state(0.0, here, [3.0, -3.0, 3.0], names=names) is not None
    for k, rate in enumerate((40.0, 100.0, 311.0), start=1):
        qd = [rate, -rate / 2, rate]
        assert bench.state(0.01 * k, here, qd, names=names) is None
        assert bench.rejected() == {"torques: implausible torque": k}
    assert "set velocity_limits" in bench.log[0]


@pytest.mark.parametrize(
    ("limit", "values", "rate", "taken"),
    [
        ("", {}, 30.0, True),
        ("", {}, 300.0, False),
        ("", {"velocity_limits": [5.0, 5.0, 400.0]}, 300.0, True),
        ("", {"velocity_limits": [math.inf] * 3}, 300.0, True),
        ("", {"max_acceleration": 0.0}, 300.0, True),
        ('<limit effort="0" velocity="400"/>', {}, 300.0, True),
        ('<limit effort="0" velocity="400"/>', {}, 2000.0, False),
        ('<limit effort="0" velocity="4"/>', {}, 7.9, True),
        ('<limit effort="0" velocity="4"/>', {}, 20.0, False),
        ('<limit effort="0" velocity="4"/>', {"velocity_limits": [5.0, 5.0, 400.0]}, 300.0, True),
    ],
)
def test_rates_are_believed_as_far_as_limits_say_or_what_a_lever_can_do(limit, values, rate, taken):
    bench = Bench(GYRO.format(limit=limit), terms=["inertia", "coriolis"], **values)
    bench.command(0.0, point(qdd=[0.0, 0.0, 0.0]), names=GYRO_NAMES)
    found = bench.state(0.0, [0.0, 0.3, 0.0], [2.0, 1.0, rate], names=GYRO_NAMES)
    assert (found is not None) == taken
    assert bench.rejected() == ({} if taken else {"torques: implausible torque": 1})


def test_the_fastest_rates_follow_from_both_numbers():
    model = Bench(GYRO.format(limit='<limit effort="0" velocity="4"/>')).controller.model
    for acceleration in (900.0, 400.0, 900.0):
        lever = math.sqrt(acceleration)
        assert model.fastest(acceleration).tolist() == [lever, lever, 8.0]
        assert model.is_slow(np.array([7.9, 0.0, 0.0]), acceleration)
        assert not model.is_slow(np.array([8.1, 0.0, 0.0]), acceleration)


@pytest.mark.parametrize(("asked", "taken"), [(4.3, True), (4.5, False)])
def test_stated_velocity_limits_are_those_of_commands(asked, taken):
    bench = Bench(DESCRIPTION.format(velocity=2.0), velocity_limits=[4.0])
    bench.command(0.0, point(q=0.0, qd=asked, qdd=0.0), names=("x",))
    assert bench.rejected() == ({} if taken else {"command: too fast": 1})


@pytest.mark.parametrize("robot", ["polar", "three_axis", "rrr", "five_bar"])
@pytest.mark.parametrize("terms", [("inertia", "gravity", "rotors"), ("gravity", "rotors")])
def test_the_reach_is_the_most_that_any_signs_of_the_accelerations_take(robot, terms):
    dynamics = rd.InverseDynamics(rd.load(CONFIG / f"{robot}.yaml"))
    bench = Bench(str(CONFIG / f"{robot}.yaml"), terms=list(terms))
    model = bench.controller.model
    q = model.home + 0.05
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * len(q))).reshape(len(q), -1).T
    # friction is none of it
    still = np.zeros_like(q)
    torques = [dynamics(q, still, 50.0 * each) for each in signs]
    np.testing.assert_allclose(
        model.required_torques(q, 50.0), np.abs(torques).max(axis=0), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("robot", ["polar", "rrr"])
def test_what_the_loop_may_need_later_is_built_with_the_model(robot, nothing_is_built):
    model = Bench(str(CONFIG / f"{robot}.yaml")).controller.model
    nothing_is_built()
    model.required_torques(model.home, 50.0)
    model.at_rest(model.home)
    one = model.home[None]
    model.along(one, np.zeros_like(one), np.zeros((1, len(model.joints))))


def test_a_gain_on_an_error_that_no_robot_has_makes_no_torque_unless_a_limit_cuts_it():
    gains = {"p_gains": [1e3, 1e3], "d_gains": [0.0, 0.0]}
    for values, expected in (({}, None), ({"effort_limits": [100.0, 100.0]}, [100.0, 0.0])):
        bench = polar(**gains, **values)
        bench.command(0.0, point(q=[1e3, 0.3], qd=STILL, qdd=STILL), names=NAMES)
        found = state(bench, 0.0)
        if expected is None:
            assert found is None
            assert bench.rejected() == {"torques: implausible torque": 1}
            assert "p_gains" in bench.log[0]
        else:
            close(found, *expected)


def test_feedback_on_terms_without_inertia_is_bounded_by_the_robot_all_the_same():
    bench = polar(terms=["gravity"], p_gains=[10.0, 10.0], d_gains=[0.0, 0.0])
    bench.command(0.0, point(q=[0.4, 0.3], qd=STILL, qdd=STILL), names=NAMES)
    close(state(bench, 0.0), 10.0 * 0.1, 0.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "no effort limit is known for theta1, d2: only max_acceleration"),
        ({"max_acceleration": 0.0}, "nothing bounds their torques"),
        ({"effort_limits": [math.inf, 1.0]}, ""),
        ({"effort_limits": [2.0, 1.0]}, ""),
    ],
)
def test_a_robot_without_effort_limits_is_warned_of(values, words):
    found = unlimited(polar(**values).controller.model)
    assert (words in found) if words else not found


# Reading


def test_points_that_carry_different_things_are_read_each_for_itself():
    bench = polar(feedback="commanded")
    points = [
        point(0.0, [0.0, 0.1], STILL, STILL),
        point(1.0, [1.0, 0.2], STILL, STILL),
        point(2.0, [2.0, 0.3], [0.5, 0.0]),
        point(3.0, [3.0, 0.4]),
        point(4.0, [4.0, 0.5], STILL),
    ]
    bench.command(0.0, *points, names=NAMES)
    bench.tick(0.0)
    course = bench.controller.commands.motion

    def qdd(seconds: float) -> float:
        return float(course.at(course.start + round(seconds * 1e9)).qdd[0])

    # quintic from rest to rest 60u - 180u² + 120u³; cubic; straight; straight
    assert math.isclose(qdd(0.25), 60 * 0.25 - 180 * 0.25**2 + 120 * 0.25**3)
    assert math.isclose(qdd(1.25), (6 * 1.0 - 2 * 0.5) + (6 * 0.5 - 12 * 1.0) * 0.25)
    assert qdd(2.5) == qdd(3.5) == 0.0


def test_times_of_points_that_are_none_are_refused():
    bench = polar()
    message = JointTrajectory(joint_names=list(NAMES), points=[point(0.0, HERE), point(1.0, HERE)])
    message.points[1].time_from_start.nanosec = 10**9
    bench.controller.command(message, 10**9)
    message.points[1].time_from_start.nanosec = 0
    message.points[0].time_from_start.sec = -1
    bench.controller.command(message, 10**9)
    assert bench.rejected() == {"command: wrong times": 2}
    assert "point 1 has 1000000000 ns" in bench.log[0]


def test_a_single_place_to_be_reached_in_the_past_is_refused():
    bench = polar()
    message = JointTrajectory(joint_names=list(NAMES), points=[point(-0.5, HERE, STILL, HERE)])
    bench.controller.command(message, 10**9)
    assert bench.rejected() == {"command: wrong times": 1}
    assert "time_from_start of point 0 is -0.5 s" in bench.log[0]


def long_command(rng: np.random.Generator) -> tuple[JointTrajectory, np.ndarray]:
    count = 2 * motion._BLOCK + 3
    states = rng.normal(size=(count, 3, 2))
    points = [point(0.5 * k, *map(list, states[k])) for k in range(count)]
    return JointTrajectory(joint_names=list(NAMES[::-1]), points=points), states[:, :, ::-1]


def read(message: JointTrajectory) -> motion.Motion:
    return motion.read(message, NAMES, np.zeros(2, dtype=bool), now=1, whole_state=False,
                       missing=None)  # fmt: skip


def test_every_point_of_a_long_message_is_where_it_was_in_it():
    rng = np.random.default_rng(4)
    message, states = long_command(rng)
    course = read(message).begun(1, *np.zeros((2, 2)))
    for place in range(0, len(states) - 1, 7):
        found = course.at(course.start + place * 500_000_000)
        np.testing.assert_allclose([found.q, found.qd, found.qdd], states[place], atol=1e-12)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda point: setattr(point, "velocities", [1.0]),
            "point {}: the number of velocities is 1, expected 2",
        ),
        (lambda point: setattr(point, "positions", [1.0, math.nan]), "point {} has nan in pos"),
        (lambda point: setattr(point.time_from_start, "nanosec", 10**9), "of point {} has 10000"),
    ],
)
def test_what_is_wrong_in_a_long_message_is_named_by_its_place(spoil, words):
    message, _ = long_command(np.random.default_rng(5))
    place = motion._BLOCK + 7
    spoil(message.points[place])
    with pytest.raises(RefusedError, match=words.format(place)):
        read(message)


@pytest.mark.parametrize("limits", [[1.0, 2.0], [0.0, 2.0], [0.0, float("inf")]])
def test_a_norm_of_torques_takes_none_beyond_its_limit_and_no_number_through(limits):
    model = polar().controller.model
    model.limits = np.array(limits)
    model._shares = 1.0 / np.clip(model.limits, 1.0 / ENDLESS, ENDLESS)
    edge = np.maximum(np.nextafter(model.limits, np.inf), 1e-100)
    for torques in ([np.nan, 0.0], [0.0, np.inf], [edge[0], 0.0], [0.0, edge[1]], [-edge[0], 0.0]):
        if np.all(np.abs(torques) <= model.limits):
            continue
        assert not model.is_allowed(np.array(torques))
    assert model.is_allowed(np.zeros(2))
    assert model.is_allowed(np.array([0.6 * limits[0], 0.0]))
