# SPDX-License-Identifier: Apache-2.0
"""What is added to the feed-forward torques, and how it is switched on: gains, ramps and slew
limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from node_bench import Bench as AnyBench
from node_bench import at, close, point
from robots import CONFIG
from test_node_behaviour import PENDULUM, torque

import robot_dynamics as rd
from robot_dynamics.errors import InputError
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

P, D = 7.0, 2.0
AT_90 = torque(math.pi / 2, 0.0, 0.0)


class Bench(AnyBench):
    def __init__(self, **values):
        super().__init__(PENDULUM, **values)


# The loop


def test_gains_add_torques_for_the_errors_of_position_and_rate():
    bench = Bench(p_gains=[P], d_gains=[D])
    bench.command(0.0, point(q=0.5, qd=0.3, qdd=1.0))
    close(
        bench.state(0.01, 0.4, 0.1),
        torque(0.4, 0.1, 1.0) + P * (0.5 - 0.4) + D * (0.3 - 0.1),
    )


@pytest.mark.parametrize("gains", [{"p_gains": [P]}, {"d_gains": [D]}])
def test_each_of_the_gains_works_without_the_other(gains):
    bench = Bench(**gains)
    bench.command(0.0, point(q=0.5, qd=0.3, qdd=1.0))
    added = P * 0.1 if "p_gains" in gains else D * 0.2
    close(bench.state(0.01, 0.4, 0.1), torque(0.4, 0.1, 1.0) + added)


def test_a_joint_that_turns_forever_goes_the_short_way():
    bench = Bench(p_gains=[P])
    bench.command(0.0, point(q=math.pi - 0.1, qd=0.0, qdd=0.0))
    # 0.2 rad on, beyond the seam, and some turns away
    q = -math.pi + 0.1 + 4 * math.pi
    close(bench.state(0.01, q, 0.0), torque(q, 0.0, 0.0) - P * 0.2)


def test_a_joint_with_limits_goes_back_all_the_way_that_it_came():
    limited = PENDULUM.replace("continuous", "revolute")
    limited = limited.replace(
        "<axis", '<limit lower="-7" upper="7" effort="500" velocity="50"/><axis'
    )
    bench = AnyBench(limited, p_gains=[P], effort_limits=[500.0])
    bench.command(0.0, point(q=-3.0, qd=0.0, qdd=0.0))
    close(bench.state(0.01, 3.0, 0.0), torque(3.0, 0.0, 0.0) - P * 6.0)


def test_with_gains_a_point_carries_the_whole_state():
    bench = Bench(p_gains=[P])
    bench.command(0.0, point(qdd=1.0))
    bench.command(0.0, point(q=1.0, qdd=1.0))
    assert bench.rejected() == {"command: no positions": 1, "command: no velocities": 1}


def test_hold_holds_the_last_position_and_gravity_lets_the_arm_float():
    for on_timeout, added in (("hold", P * 0.3 - D * 0.2), ("gravity", None)):
        bench = Bench(p_gains=[P], d_gains=[D], on_timeout=on_timeout)
        bench.command(0.0, point(q=0.5, qd=0.9, qdd=1.0))
        bench.state(0.01, 0.4, 0.1)
        expected = torque(0.2, 0.0, 0.0) if added is None else torque(0.2, 0.2, 0.0) + added
        close(bench.state(2.0, 0.2, 0.2), expected)


def test_after_feedback_was_lost_nothing_pulls_the_robot_back_to_where_it_was():
    bench = Bench(p_gains=[P], d_gains=[D], on_timeout="hold")
    bench.command(0.0, point(q=0.5, qd=0.0, qdd=1.0))
    bench.state(0.01, 0.4, 0.1)
    close(bench.watch(1.0), torque(0.4, 0.0, 0.0))
    # somebody has moved it; only its rate is damped
    close(bench.state(1.1, 2.0, 0.2), torque(2.0, 0.2, 0.0) - D * 0.2)


@pytest.mark.parametrize(
    ("robot", "values", "words"),
    [
        ("polar", {"p_gains": [1.0]}, "2 numbers, one for each of theta1, d2"),
        ("polar", {"d_gains": [1.0, 2.0, 3.0]}, "2 numbers"),
        ("polar", {"slew_limits": [1.0]}, "2 numbers"),
        ("polar", {"p_gains": [1.0, 1.0], "feedback": "commanded"}, "measures no error"),
        ("three_axis", {"d_gains": [1.0] * 3, "side": "drive"}, "set side to joint"),
    ],
)
def test_gains_and_limits_that_do_not_fit_are_refused(robot, values, words):
    with pytest.raises(InputError, match=words):
        Model(ModelSpec(rd.load(CONFIG / f"{robot}.yaml"), Settings.of(values)))


# Coming on


def test_torques_come_on_from_zero_in_the_time_of_the_ramp():
    bench = Bench(ramp_time=2.0)
    bench.accelerate(0.0, 0.0)
    for now, share in ((0.5, 0.0), (1.0, 0.25), (1.5, 0.5), (2.5, 1.0), (3.5, 1.0), (9.0, 1.0)):
        bench.accelerate(now, 0.0)
        close(bench.state(now, math.pi / 2), share * AT_90)


def test_torques_of_another_robot_come_on_from_zero():
    bench = Bench(slew_limits=[10.0], command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    for now in (0.0, 0.1):
        bench.state(now, math.pi / 2)
    other = rd.load(PENDULUM.replace('xyz="0 1 0"', 'xyz="0 -1 0"'))
    bench.controller.adopt(Model(ModelSpec(other, bench.settings)))
    close(bench.farewell(0.15), 0.0)  # where it would rest is not known yet
    bench.accelerate(0.2, 0.0)
    close(bench.state(0.2, math.pi / 2), 0.0)
    close(bench.state(0.25, math.pi / 2), 0.5)


def test_after_an_interruption_torques_go_over_from_the_last_ones():
    bench = Bench(ramp_time=1.0)
    for now in (0.0, 1.0):
        bench.accelerate(now, 0.0)
        bench.state(now, math.pi / 2)
    close(bench.watch(3.0), AT_90)
    for now, share in ((6.0, 0.0), (6.5, 0.5), (7.0, 1.0)):
        bench.accelerate(now, 4.0)
        close(bench.state(now, 0.0), AT_90 + share * (torque(0.0, 0.0, 4.0) - AT_90))


def test_torques_change_no_faster_than_their_limit_and_arrive():
    bench = Bench(slew_limits=[10.0])
    found = []
    for now in np.arange(0.0, 2.0, 0.1):
        bench.accelerate(now, 0.0)
        found += bench.state(now, math.pi / 2)
    np.testing.assert_allclose(found, np.minimum(10.0 * np.arange(0.0, 2.0, 0.1), AT_90))


@pytest.mark.filterwarnings("error")
def test_an_infinite_limit_of_the_slew_is_none():
    bench = Bench(slew_limits=[math.inf])
    for now, qdd in ((0.0, 0.0), (0.0, 4.0), (0.01, -4.0)):
        bench.accelerate(now, qdd)
        close(bench.state(now, math.pi / 2), torque(math.pi / 2, 0.0, qdd))


@pytest.mark.parametrize("silence", [0.2, 3.0, 1e4])
def test_a_silence_is_no_time_in_which_torques_may_change(silence):
    bench = Bench(slew_limits=[10.0], max_age=0.0, command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    bench.state(0.0, math.pi / 2)
    close(bench.state(0.1, math.pi / 2), 1.0)
    close(bench.state(0.1 + silence, math.pi / 2), 2.0)
    close(bench.state(0.15 + silence, math.pi / 2), 2.5)


@pytest.mark.parametrize("values", [{"slew_limits": [10.0]}, {"ramp_time": 2.0}])
def test_what_is_set_while_torques_go_out_begins_from_these(values):
    bench = Bench()
    for now in (0.0, 0.1):
        bench.accelerate(now, 0.0)
        close(bench.state(now, math.pi / 2), AT_90)
    settings = bench.controller.settings.changed(values)
    bench.controller.settings = settings
    bench.controller.adopt(Model(ModelSpec(bench.controller.model.spec.mechanism, settings)))
    bench.accelerate(0.2, 0.0)
    close(bench.state(0.2, math.pi / 2), AT_90)
    if "slew_limits" in values:
        # and from the next torque on they change no faster
        bench.accelerate(0.3, 4.0)
        close(bench.state(0.3, math.pi / 2), AT_90 + 10.0 * 0.1)


def test_another_time_of_the_ramp_applies_to_the_rest_of_the_way():
    bench = Bench(ramp_time=1.0, command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    for now, set_to, share in (
        (0.0, 1.0, 0.0),
        (0.8, 1.0, 0.8),
        (0.9, 20.0, 0.8),
        (10.9, 20.0, 0.9),
    ):
        bench.controller.settings = bench.controller.settings.changed({"ramp_time": set_to})
        close(bench.state(now, math.pi / 2), share * AT_90)
    bench.controller.settings = bench.controller.settings.changed({"ramp_time": 0.0})
    close(bench.state(11.0, math.pi / 2), AT_90)


def test_the_last_word_before_silence_is_said_at_once():
    bench = Bench(slew_limits=[10.0], ramp_time=5.0)
    bench.accelerate(0.0, 0.0)
    assert bench.state(0.0, math.pi / 2) == [0.0]
    # not a hundredth of what carries the arm has come on
    close(bench.farewell(0.01), AT_90)


def test_a_torque_at_rest_that_is_still_on_its_way_is_not_the_last_word():
    bench = Bench(slew_limits=[1.0], command_timeout=0.1)
    bench.accelerate(0.0, 9.0)
    bench.state(0.0, math.pi / 2)
    bench.state(1.0, math.pi / 2)
    assert bench.controller.commands.phase == "timeout"
    close(bench.watch(3.0), AT_90)


def test_a_clock_that_is_set_back_neither_holds_a_ramp_nor_makes_a_jump():
    bench = Bench(ramp_time=1.0, slew_limits=[10.0], max_age=0.0)
    bench.accelerate(100.0, 0.0)
    bench.state(100.0, math.pi / 2)
    bench.controller.clock_jumped_back(at(0.0))
    for now, expected in (*((0.1 * k, None) for k in range(20)), (2.0, AT_90)):
        bench.accelerate(now, 0.0)
        found = bench.state(now, math.pi / 2)
        if expected is not None:
            close(found, expected)


def test_a_ramp_from_a_rest_without_torque_begins_anew_when_the_clock_is_set_back():
    bench = Bench(ramp_time=1.0, command_timeout=0.1, max_age=0.0)
    bench.accelerate(100.0, 0.0)
    for now in (100.0, 100.2):  # hanging down, it needs none
        close(bench.state(now, 0.0), 0.0)
    assert bench.controller.clock_jumped_back(at(0.0)) is None, "it is at rest"
    for now, share in ((0.1, 0.0), (0.6, 0.5), (1.1, 1.0)):
        close(bench.state(now, math.pi / 2), share * AT_90)


def test_an_arm_at_rest_is_held_when_the_clock_is_set_back():
    bench = Bench(ramp_time=1.0, command_timeout=0.1, max_age=0.0)
    bench.accelerate(100.0, 0.0)
    for now in (100.0, 100.2, 101.3):
        held = bench.state(now, math.pi / 2)
    close(held, AT_90)
    assert bench.controller.clock_jumped_back(at(0.0)) is None, "it is at rest"
    for now in (0.1, 0.6, 1.1):
        close(bench.state(now, math.pi / 2), AT_90)
