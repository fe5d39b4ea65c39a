# SPDX-License-Identifier: Apache-2.0
"""How the node reacts to states, commands and time: its logic, driven by our own clock."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from builtin_interfaces.msg import Time
from node_bench import Bench as AnyBench
from node_bench import at, close, point, stamp
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_dynamics.ros.feed_forward.motion import MOST_POINTS
from robot_dynamics.ros.feed_forward.refusal import RefusedError

CONFIG = Path(__file__).resolve().parents[1] / "config"
G, MASS, ARM = 9.81, 2.0, 0.5
INERTIA = MASS * ARM**2
VISCOUS = 0.3

PENDULUM = f"""
<robot name="pendulum">
  <link name="world"/>
  <link name="arm">
    <inertial><origin xyz="0 0 -{ARM}"/><mass value="{MASS}"/>
      <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="swing" type="continuous">
    <parent link="world"/><child link="arm"/><axis xyz="0 1 0"/>
    <dynamics damping="{VISCOUS}"/>
  </joint>
</robot>"""

ARM_WITH_FINGER = PENDULUM.replace(
    "</robot>",
    """<link name="tip"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
      <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="finger" type="continuous"><parent link="arm"/><child link="tip"/>
      <axis xyz="0 1 0"/></joint></robot>""",
)


def torque(q: float, qd: float, qdd: float) -> float:
    """I qdd + m g l sin q + d qd, for a mass that hangs down at q = 0."""
    return INERTIA * qdd + MASS * G * ARM * math.sin(q) + VISCOUS * qd


class Bench(AnyBench):
    def __init__(self, description: str = PENDULUM, **values):
        super().__init__(description, **values)


# Following


def test_nothing_is_published_before_the_first_command():
    assert Bench().state(0.0, 0.4, 0.1) is None


def test_measured_feedback_takes_the_state_from_the_sensors_and_the_acceleration_as_wanted():
    bench = Bench()
    bench.command(0.0, point(q=9.0, qd=9.0, qdd=3.0))
    close(bench.state(0.1, 0.4, 0.2), torque(0.4, 0.2, 3.0))


def test_commanded_feedback_takes_all_from_the_command():
    bench = Bench(feedback="commanded")
    bench.command(0.0, point(q=0.4, qd=0.2, qdd=3.0))
    close(bench.state(0.1, 9.0, 9.0), torque(0.4, 0.2, 3.0))


def test_commanded_feedback_goes_on_without_joint_states_and_leaves_the_lead_to_them():
    bench = Bench(feedback="commanded")
    assert bench.tick(0.0) is None
    bench.command(0.0, point(q=0.4, qd=0.2, qdd=3.0))
    close(bench.tick(0.01), torque(0.4, 0.2, 3.0))
    close(bench.tick(0.02), torque(0.4, 0.2, 3.0))
    assert bench.state(0.025) is not None
    assert bench.tick(0.03) is None, "a state came since the last tick"
    assert bench.tick(0.04) is not None
    model = bench.controller.model
    bench.controller.release()
    assert bench.tick(0.05) is None, "there is no robot"
    bench.controller.adopt(model)
    assert bench.watch(9.0) is None, "and none that has moved"


def test_states_and_commands_are_read_by_name_in_any_order():
    bench = Bench(f"{CONFIG}/cartesian.yaml")
    bench.command(0.0, point(qdd=[2.0, 3.0, 1.0]), names=("d2", "d3", "d1"))
    names = ("camera", "d3", "d1", "d2")
    found = bench.state(0.1, [math.nan, 0.3, 0.1, 0.2], np.zeros(4), names=names)
    # f1 = (m1+m2+m3) q̈1, f2 = (m2+m3)(q̈2+g), f3 = m3 q̈3
    close(found, 12.0 * 1.0, 6.0 * (2.0 + G), 2.0 * 3.0)


def test_joints_gives_the_order_of_the_torques_and_the_others_stand_still():
    bench = Bench(f"{CONFIG}/cartesian.yaml", joints=["d3", "d2"])
    bench.command(0.0, point(qdd=[2.0, 3.0]), names=("d2", "d3"))
    found = bench.state(0.1, np.zeros(3), np.zeros(3), names=("d1", "d2", "d3"))
    close(found, 2.0 * 3.0, 6.0 * (2.0 + G))
    assert bench.state(0.2, np.zeros(2), np.zeros(2), names=("d2", "d3")) is None
    assert bench.rejected() == {"joint_states: missing joint": 1}


def test_a_locked_joint_is_held_at_its_value_and_need_not_be_published():
    bench = Bench(f"{CONFIG}/polar.yaml", locked_joints=["d2:0.7"])
    bench.command(0.0, point(qdd=2.0), names=("theta1",))
    found = bench.state(0.1, 0.3, 0.2, names=("theta1",))
    # (m1 L1² + m2 d2²) θ̈, the arm does not slide
    close(found, (10.0 * 0.5**2 + 5.0 * 0.7**2) * 2.0)


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("max_age", [0.5, 0.0])
def test_commanded_feedback_reads_the_joints_besides_from_joint_states(merge, max_age):
    bench = Bench(
        f"{CONFIG}/polar.yaml",
        feedback="commanded",
        joints=["theta1"],
        merge_states=merge,
        max_age=max_age,
        command_timeout=0.0,
    )
    bench.command(0.0, point(q=0.0, qd=0.2, qdd=2.0), names=("theta1",))
    assert bench.tick(0.0) is None
    assert bench.rejected() == {"torques: no joint states": 1}
    bench.state(0.1, 0.7, 0.1, names=("d2",))
    # + 2 m2 d2 ḋ2 θ̇
    expected = (10.0 * 0.5**2 + 5.0 * 0.7**2) * 2.0 + 2 * 5.0 * 0.7 * 0.1 * 0.2
    for now in (0.11, 0.12):
        found = bench.tick(now)
    close(found, expected)
    # as long as they are known, or may be as old as they will
    assert bench.tick(0.59) is not None
    assert (bench.tick(0.61) is None) == (max_age > 0)


def test_commanded_feedback_of_all_joints_needs_no_parts_of_a_state():
    bench = Bench(f"{CONFIG}/polar.yaml", feedback="commanded", merge_states=True)
    bench.command(0.0, point(q=[0, 0.7], qd=[0, 0], qdd=[2, 0]), names=("theta1", "d2"))
    close(bench.state(0.1, 9.0, names=("theta1",)), 2.0 * (10.0 * 0.5**2 + 5.0 * 0.7**2), 0.0)


def test_gravity_is_what_the_parameter_says_on_a_base_that_is_tilted():
    bench = Bench(gravity=[G, 0.0, 0.0])
    bench.accelerate(0.0, 0.0)
    # gravity along x: V = m g l sin q
    close(bench.state(0.1, 0.4, 0.0), MASS * G * ARM * math.cos(0.4))


def test_terms_left_out_are_not_in_the_torque():
    bench = Bench(terms=["inertia", "coriolis", "friction", "rotors"])
    bench.accelerate(0.0, 3.0)
    close(bench.state(0.1, 0.4, 0.2), torque(0.4, 0.2, 3.0) - MASS * G * ARM * math.sin(0.4))


# Trajectories


def test_a_trajectory_is_sampled_in_time_from_its_stamp():
    bench = Bench()
    bench.command(0.0, point(0.0, q=0.0, qd=0.0), point(2.0, q=1.0, qd=0.0), stamped=0.5)
    for time in (0.5, 1.0, 2.4):
        u = (time - 0.5) / 2.0
        # cubic 3u² - 2u³ over h = 2: q̈ = (6 - 12u) / h²
        close(bench.state(time, 0.1), torque(0.1, 0.0, (6 - 12 * u) / 4))


def test_a_zero_stamp_starts_a_trajectory_with_the_next_state():
    bench = Bench()
    bench.command(0.0, point(0.0, q=0.0, qd=0.0), point(2.0, q=1.0, qd=0.0))
    close(bench.state(0.3), torque(0.0, 0.0, 6 / 4))
    close(bench.state(1.3), torque(0.0, 0.0, 0.0))


def test_a_trajectory_is_led_in_from_the_measured_state():
    bench = Bench(terms=["inertia"])
    bench.command(0.0, point(2.0, q=1.0, qd=0.0), point(3.0, q=1.0, qd=0.0))
    # from q0 = 0.5, q̇0 = 0.2 within h = 2: q̈(0) = (6 (q1 - q0) - 4 q̇0 h) / h²
    close(bench.state(0.1, 0.5, 0.2), INERTIA * (6 * 0.5 - 4 * 0.2 * 2) / 4)


def test_positions_alone_give_straight_lines_without_acceleration():
    bench = Bench(feedback="commanded")
    bench.command(0.0, point(0.0, q=0.0), point(2.0, q=1.0))
    bench.tick(0.0)
    close(bench.tick(0.5), torque(0.25, 0.5, 0.0))


def test_accelerations_without_velocities_are_ignored():
    bench = Bench(feedback="commanded")
    bench.command(0.0, point(0.0, q=0.0, qdd=3.0), point(2.0, q=1.0, qdd=3.0))
    bench.tick(0.0)
    close(bench.tick(0.5), torque(0.25, 0.5, 0.0))


def test_accelerations_that_points_leave_out_follow_from_the_spline():
    bench = Bench(feedback="commanded")
    bench.command(0.0, point(0.0, q=0.0, qd=0.0), point(2.0, q=1.0, qd=0.0))
    bench.tick(0.0)
    close(bench.tick(0.5), torque(3 / 16 - 2 / 64, 6 * 0.25 * 0.75 / 2, (6 - 12 * 0.25) / 4))


def test_lookahead_samples_a_trajectory_ahead_of_the_state():
    bench = Bench(lookahead=0.1)
    bench.command(0.0, point(0.0, q=0.0, qd=0.0), point(2.0, q=1.0, qd=0.0), stamped=0.0)
    close(bench.state(0.4), torque(0.0, 0.0, (6 - 12 * 0.25) / 4))


def test_one_point_with_a_time_is_to_be_reached_then_from_where_the_robot_is():
    bench = Bench()
    bench.command(0.0, point(3.0, q=0.9, qd=0.0, qdd=0.0))
    bench.state(0.0, 0.0, 0.0)
    # a quintic from rest to rest: q̈ = Δ (60 u - 180 u² + 120 u³) / T²
    for u in (0.25, 0.5, 0.9):
        qdd = 0.9 * (60 * u - 180 * u**2 + 120 * u**3) / 9
        close(bench.state(3 * u, 0.4, 0.2), torque(0.4, 0.2, qdd))
    close(bench.state(3.1, 0.9, 0.0), torque(0.9, 0.0, 0.0))
    assert bench.controller.commands.phase == "following"
    bench.state(3.6, 0.9, 0.0)
    assert bench.controller.commands.phase == "finished"


def test_one_point_with_a_time_needs_no_accelerations():
    bench = Bench()
    bench.command(0.0, point(0.9, q=0.5))
    close(bench.state(0.5, 0.4, 0.2), torque(0.4, 0.2, 0.0))
    assert not bench.rejected()


def test_after_its_end_a_trajectory_leaves_no_acceleration_and_then_times_out():
    bench = Bench(on_timeout="hold", command_timeout=0.5)
    bench.command(0.0, point(0.0, q=0.0, qd=0.0, qdd=0.0), point(1.0, q=1.0, qd=0.0, qdd=5.0))
    bench.state(0.0)
    close(bench.state(1.2, 0.9, 0.1), torque(0.9, 0.1, 0.0))
    assert bench.controller.commands.phase == "following"
    bench.state(1.6, 0.9)
    assert bench.controller.commands.phase == "finished"


def test_a_trajectory_that_needs_a_start_and_has_none_is_dropped():
    bench = Bench(feedback="commanded")
    bench.command(0.0, point(1.0, q=1.0), point(2.0, q=0.0))
    assert bench.tick(0.0) is None
    assert bench.rejected() == {"command: no start state": 1}


@pytest.mark.parametrize("merge", [False, True])
def test_commanded_feedback_leads_in_from_joint_states_first_and_then_from_what_was_wanted(merge):
    bench = Bench(feedback="commanded", terms=["gravity"], merge_states=merge)
    bench.command(0.0, point(1.0, q=1.0), point(2.0, q=1.0))
    close(bench.state(0.0, 0.5), torque(0.5, 0.0, 0.0))
    bench.tick(0.0)
    bench.command(0.5, point(1.0, q=0.0), point(2.0, q=0.0))
    # half way from 0.5 to 1
    close(bench.tick(0.5), torque(0.75, 0.0, 0.0))


def test_after_an_interruption_commanded_feedback_is_led_in_from_where_it_rests():
    bench = Bench(feedback="commanded", terms=["gravity"])
    bench.command(5.0, point(q=0.5, qd=0.0, qdd=0.0))
    bench.tick(5.0)
    bench.controller.clock_jumped_back(at(0.0))
    bench.command(0.0, point(1.0, q=1.0), point(2.0, q=1.0))
    assert bench.tick(0.0) is None, "the torques at rest have just gone out"
    close(bench.tick(0.01), torque(0.5, 0.0, 0.0))
    close(bench.tick(0.51), torque(0.75, 0.0, 0.0))


@pytest.mark.parametrize(("age", "taken"), [(0.5, True), (0.6, False)])
def test_commanded_feedback_is_not_led_in_from_a_state_that_is_too_old(age, taken):
    bench = Bench(feedback="commanded", terms=["gravity"], max_age=0.5)
    assert bench.state(0.0, 0.5) is None
    bench.command(age, point(1.0, q=1.0), point(2.0, q=1.0))
    found = bench.tick(age)
    assert bench.rejected() == ({} if taken else {"command: no start state": 1})
    if taken:
        close(found, torque(0.5, 0.0, 0.0))


def test_without_a_largest_age_feedback_is_never_lost():
    bench = Bench(max_age=0.0)
    bench.accelerate(0.0, 3.0)
    bench.state(0.0, 0.4)
    bench.wall = 1e6
    assert bench.watch(1e6) is None


def test_without_a_largest_age_a_command_waits_for_states_as_long_as_it_takes():
    bench = Bench(max_age=0.0, command_timeout=0.0)
    bench.accelerate(0.0, 3.0)
    assert bench.state(1e4, 0.4) is not None
    assert not bench.rejected()


def test_what_came_and_went_is_counted_one_by_one():
    bench = Bench()
    bench.accelerate(0.0, 3.0)
    for k in range(3):
        bench.state(0.1 + 0.01 * k)
    bench.accelerate(0.2, 2.0)
    found = bench.controller
    assert (found.states.count, found.commands.count, found.outlet.count) == (3, 2, 3)
    assert (found.states.at, found.commands.at) == (at(0.12), at(0.2))


def test_a_command_that_waits_too_long_for_states_does_not_start_late():
    bench = Bench(max_age=0.5)
    bench.command(0.0, point(0.0, q=0.0, qd=0.0), point(2.0, q=1.0, qd=0.0))
    assert bench.state(3.0) is None
    assert bench.rejected() == {"command: waited too long": 1}


# Timeouts and silence


def test_gravity_follows_a_timeout_at_the_measured_position_without_friction():
    bench = Bench(command_timeout=0.5, on_timeout="gravity")
    bench.accelerate(0.0, 3.0)
    close(bench.state(0.4, 0.4, 0.2), torque(0.4, 0.2, 3.0))
    close(bench.state(0.6, 0.3, 0.2), torque(0.3, 0.0, 0.0))
    close(bench.state(0.7, 0.2, 0.2), torque(0.2, 0.0, 0.0))
    # it may be left so, and nothing is lost with the states
    assert bench.watch(9.0) is None
    assert set(bench.controller.tally.events) == {"command: timeout"}


def test_the_end_of_a_trajectory_is_no_complaint_and_that_of_a_stream_says_since_when():
    bench = Bench(command_timeout=0.5)
    bench.command(0.0, point(0.0, q=0.0), point(1.0, q=0.5))
    for now in (0.0, 0.9, 2.0):
        bench.state(now)
    assert bench.controller.commands.phase == "finished"
    assert not bench.log
    assert not bench.controller.tally.events
    bench.accelerate(3.0, 1.0)
    bench.state(3.0)
    bench.state(4.25)
    assert bench.log == [
        "no command for 1.25 s (command_timeout is 0.5 s): applying on_timeout: gravity"
    ]
    assert bench.controller.commands.over_since == at(3.0)


def test_what_interrupts_a_motion_is_told_every_time_and_without_a_word_about_commands():
    bench = Bench(command_timeout=600.0)
    for now in (0.0, 2.0):
        bench.accelerate(now, 1.0)
        bench.state(now)
        assert bench.watch(now + 1.0) is not None
        bench.state(now + 1.1)
        assert bench.controller.commands.phase == "interrupted"
        bench.wall += 1.0
    assert len(bench.log) == 2, "within five seconds, but another one"
    assert all("no usable state for 0.5 s" in line for line in bench.log)
    bench.accelerate(3.5, 1.0)
    bench.state(3.5)
    assert bench.controller.commands.phase == "following"


def test_another_error_of_the_same_kind_has_a_line_of_its_own_and_a_flood_has_not():
    bench = Bench()
    for name in ("left", "right", "left"):
        for k in range(50):
            bench.state(0.1, [k, k], [0.0, 0.0], names=("swing", name, name)[:1] * 2)
            bench.command(0.1, point(qdd=1.0), names=("swing", name))
    told = [line for line in bench.log if "command dropped" in line]
    assert len(told) == 2, "one for each name"
    for k in range(100):
        bench.command(0.1, point(qdd=1.0), names=("swing", f"x{'y' * k}"))
    told = [line for line in bench.log if "command dropped" in line]
    assert len(told) == 10, "and no more, whatever else they say"


def test_hold_follows_a_timeout_with_zero_acceleration():
    bench = Bench(command_timeout=0.5, on_timeout="hold")
    bench.accelerate(0.0, 3.0)
    bench.state(0.4, 0.4, 0.2)
    close(bench.state(0.6, 0.3, 0.2), torque(0.3, 0.2, 0.0))


def test_hold_with_commanded_feedback_rests_at_the_last_wanted_position():
    bench = Bench(command_timeout=0.5, on_timeout="hold", feedback="commanded")
    bench.command(0.0, point(q=0.4, qd=0.2, qdd=3.0))
    bench.tick(0.1)
    close(bench.tick(0.6), torque(0.4, 0.0, 0.0))


def test_stop_puts_out_zero_once_and_then_nothing():
    bench = Bench(command_timeout=0.5, on_timeout="stop")
    bench.accelerate(0.0, 3.0)
    bench.state(0.4, 0.4)
    close(bench.state(0.6, 0.4), 0.0)
    assert bench.state(0.7, 0.4) is None
    bench.accelerate(0.8, 3.0)
    close(bench.state(0.8, 0.4), torque(0.4, 0.0, 3.0))


def test_a_command_that_is_over_with_its_first_state_has_nothing_to_stop():
    bench = Bench(command_timeout=0.1, on_timeout="stop")
    bench.accelerate(0.0, 3.0)
    assert bench.state(0.2, 0.4) is None
    assert bench.controller.commands.phase == "timeout"


@pytest.mark.parametrize(("choice", "expected"), [("stop", 0.0), ("hold", MASS * G * ARM)])
def test_what_another_thread_says_for_a_loop_that_hangs_is_what_would_follow(choice, expected):
    bench = Bench(command_timeout=0.5, on_timeout=choice)
    assert bench.controller.torques_if_hung() is None, "nothing went out yet that would have to end"
    bench.accelerate(0.0, 3.0)
    bench.state(0.4, math.pi / 2, 0.2)
    close(bench.controller.torques_if_hung(), expected)
    close(bench.farewell(0.5), expected)
    assert bench.controller.torques_if_hung() is None


def test_values_that_no_joint_can_have_are_no_state():
    bench = AnyBench(str(CONFIG / "polar.yaml"))
    names = ["theta1", "d2"]
    bench.command(0.0, point(qdd=[1.0, 1.0]), names=names)
    assert bench.state(0.1, [1.7e308, 1.7e308], [0.0, 0.0], names=names) is None
    assert bench.state(0.1, [0.3, 0.7], [0.0, -1e9], names=names) is None
    assert bench.rejected() == {"joint_states: impossible": 2}
    assert "velocity of 'd2' is -1e+09, expected less than 1e+09" in bench.log[-1]
    assert bench.state(0.1, [9e8, 0.7], [0.0, 0.0], names=names) is not None
    assert bench.state(0.2, [0.3, 0.7], [0.0, 0.0], names=names) is not None


def test_a_timeout_of_zero_is_never():
    bench = Bench(command_timeout=0.0)
    bench.accelerate(0.0, 3.0)
    bench.state(0.1)
    close(bench.state(1000.0, 0.4), torque(0.4, 0.0, 3.0))


@pytest.mark.parametrize(
    ("on_timeout", "expected"), [("hold", torque(0.4, 0.0, 0.0)), ("stop", 0.0)]
)
@pytest.mark.parametrize("values", [{}, {"slew_limits": [1e9]}])
def test_lost_feedback_leaves_no_moving_torque_behind_and_no_motion_to_resume(
    on_timeout, expected, values
):
    bench = Bench(max_age=0.5, on_timeout=on_timeout, **values)
    bench.command(0.0, point(0.0, q=0.0, qd=0.0), point(9.0, q=1.0, qd=0.0))
    for now in (0.0, 0.01):
        bench.state(now, 0.4, 0.2)
    assert bench.watch(0.4) is None
    bench.accelerate(0.5, 3.0)  # waits for a state, and is over as well
    close(bench.watch(0.6), expected)
    assert bench.watch(0.7) is None, "said once"
    bench.state(0.75, 0.4)
    assert bench.controller.commands.phase == "interrupted"


def test_the_last_torque_before_silence_is_one_at_rest():
    bench = Bench()
    assert bench.farewell(0.0) is None, "nothing was published, so there is nothing to take back"
    bench.accelerate(0.0, 3.0)
    bench.state(0.1, 0.4, 0.2)
    close(bench.farewell(0.2), torque(0.4, 0.0, 0.0))


@pytest.mark.parametrize("how", ["clock_jumped_back", "watch"])
def test_a_clock_that_jumps_back_ends_the_command_and_the_next_states_are_taken(how):
    bench = Bench(on_timeout="gravity")
    bench.accelerate(100.0, 3.0)
    bench.state(100.0, 0.4)
    assert bench.watch(100.0) is None
    output = getattr(bench.controller, how)(at(0.0))
    close(output.values, torque(0.4, 0.0, 0.0))
    assert bench.watch(0.0) is None, "said once"
    close(bench.state(0.01, 0.3, 0.2), torque(0.3, 0.0, 0.0))
    bench.accelerate(0.02, 3.0)
    assert bench.watch(0.025) is None
    close(bench.state(0.03, 0.3), torque(0.3, 0.0, 3.0))


@pytest.mark.parametrize("stamped", [0.0, -1000.0])  # -1000: a stamp of zero
def test_states_whose_time_stands_still_do_not_keep_a_motion_alive(stamped):
    bench = Bench(max_age=0.5)
    bench.accelerate(0.0, 3.0)
    close(bench.state(0.0, 0.3, 0.2, stamped=stamped), torque(0.3, 0.2, 3.0))
    bench.wall = 0.4  # a clock may be coarse
    close(bench.state(0.0, 0.4, 0.2, stamped=stamped), torque(0.4, 0.2, 3.0))
    bench.wall = 0.6
    assert bench.state(0.0, 0.5, 0.3, stamped=stamped) is None
    assert bench.rejected() == {"torques: no clock": 1}
    assert bench.watch(0.0) is None
    bench.wall = 1.0
    close(bench.watch(0.0), torque(0.4, 0.0, 0.0))
    bench.accelerate(0.0, 3.0)
    assert bench.state(0.0, 0.6, 0.3, stamped=stamped) is None
    # it begins when there is time again
    close(bench.state(0.01, 0.6, 0.2, stamped=stamped or 0.01), torque(0.6, 0.2, 3.0))


def test_feedback_is_lost_by_the_wall_where_simulated_time_stands_still():
    bench = Bench(max_age=0.5, on_timeout="hold")
    bench.accelerate(0.0, 3.0)
    bench.wall = 10.0
    bench.state(0.0, 0.4, 0.2)
    bench.wall = 10.4
    assert bench.watch(0.0) is None
    bench.wall = 10.6
    close(bench.watch(0.0), torque(0.4, 0.0, 0.0))
    assert bench.watch(0.0) is None, "said once"
    bench.state(0.0, 0.4)
    assert bench.controller.commands.phase == "interrupted"


@pytest.mark.parametrize(("before", "after"), [(1.7e9, -900.0), (-900.0, 1.7e9)])
def test_a_clock_that_changes_leaves_the_torques_at_rest_and_ends_the_command(before, after):
    bench = Bench(command_timeout=0.5, on_timeout="hold")
    bench.accelerate(before, 3.0)
    bench.state(before, 0.4, 0.2)
    output = bench.controller.clock_changed(at(after))
    close(output.values, torque(0.4, 0.0, 0.0))
    assert output.time == at(after)
    close(bench.state(after + 0.01, 0.3, 0.2), torque(0.3, 0.2, 0.0))
    assert bench.controller.commands.phase == "interrupted"
    assert bench.log[0] == "the clock changed: the command has ended; send a new one"
    bench.accelerate(after + 0.02, 3.0)
    close(bench.state(after + 0.03, 0.3), torque(0.3, 0.0, 3.0))


@pytest.mark.parametrize("jump", ["clock_jumped_back", "clock_changed"])
def test_where_undriven_joints_were_before_a_jump_of_the_clock_is_not_known_after_it(jump):
    bench = Bench(ARM_WITH_FINGER, feedback="commanded", joints=["swing"])
    bench.command(1000.0, point(q=0.1, qd=0.0, qdd=1.0))
    assert bench.state(1000.0, [0.1, 0.5], [0.0, 0.0], names=("swing", "finger")) is not None
    getattr(bench.controller, jump)(at(0.0))
    bench.command(0.1, point(q=0.1, qd=0.0, qdd=1.0))
    for now in (0.1, 0.11):
        assert bench.tick(now) is None
    assert bench.rejected() == {"torques: no joint states": 1}
    with pytest.raises(RefusedError, match="no recent joint_states with finger"):
        bench.controller.filler(at(0.1))
    assert bench.state(0.2, [0.1, 0.5], [0.0, 0.0], names=("swing", "finger")) is not None


def test_a_clock_that_breaks_before_any_command_changes_nothing():
    bench = Bench()
    bench.state(100.0)
    assert bench.controller.clock_jumped_back(at(0.0)) is None
    assert bench.state(0.01) is None
    assert bench.watch(5.0) is None


def test_a_single_point_stamped_ahead_does_not_live_longer():
    bench = Bench(max_age=0.0, command_timeout=0.5, on_timeout="hold")
    bench.command(0.0, point(qdd=3.0), stamped=1e6)
    close(bench.state(0.5), torque(0.0, 0.0, 3.0))
    close(bench.state(0.6), torque(0.0, 0.0, 0.0))


SHORT = (point(0.0, q=0.4), point(1.0, q=0.4))


@pytest.mark.parametrize(
    ("points", "stamped"), [([point(qdd=3.0)], None), ([point(qdd=3.0)], 0.0), (SHORT, None)]
)
def test_before_simulated_time_begins_no_command_is_taken_that_could_not_end(points, stamped):
    bench = Bench()
    message = JointTrajectory(joint_names=["swing"], points=points)
    if stamped is not None:
        message.header.stamp = stamp(stamped)
    state = JointState(name=["swing"], position=[0.4], velocity=[0.0])
    state.header.stamp = stamp(0.1)
    bench.controller.command(message, 0)
    assert bench.controller.state(state, 0) is None
    assert bench.rejected() == {"command: no clock": 1}
    assert "nothing has been received on /clock" in bench.log[-1]
    bench.command(0.1, point(qdd=3.0))
    close(bench.state(0.1, 0.4), torque(0.4, 0.0, 3.0))


def test_before_simulated_time_begins_a_stamped_trajectory_ends_by_the_stamps_of_the_states():
    """A source publishes it once, perhaps just before this node hears of /clock."""
    bench = Bench(command_timeout=0.5)
    message = JointTrajectory(joint_names=["swing"], points=[*SHORT])
    message.header.stamp = stamp(0.0)
    bench.controller.command(message, 0)
    for time, over in ((0.1, False), (0.9, False), (1.4, False), (1.6, True)):
        state = JointState(name=["swing"], position=[0.4], velocity=[0.0])
        state.header.stamp = stamp(time)
        output = bench.controller.state(state, 0)
        close(output.values, torque(0.4, 0.0, 0.0))
        assert (bench.controller.commands.phase == "finished") is over
    assert not bench.rejected()


def test_a_trajectory_has_not_waited_before_simulated_time_began():
    bench = Bench(max_age=0.1)
    message = JointTrajectory(joint_names=["swing"], points=[*SHORT])
    message.header.stamp = stamp(0.0)
    bench.controller.command(message, 0)
    bench.watch(0.3)
    close(bench.state(0.35, 0.4), torque(0.4, 0.0, 0.0))
    bench = Bench(max_age=0.1)
    bench.controller.command(message, 0)
    bench.watch(0.5)
    bench.watch(0.65)  # no state came
    assert bench.rejected() == {"command: waited too long": 1}


def before_the_clock(bench: Bench, time: float):
    """A state before simulated time begins, and its torques."""
    state = JointState(name=["swing"], position=[0.4], velocity=[0.0])
    state.header.stamp = stamp(time)
    output = bench.controller.state(state, 0)
    return None if output is None else output.values.tolist()


def test_a_motion_goes_on_when_simulated_time_begins():
    bench = Bench()
    message = JointTrajectory(joint_names=["swing"], points=[*SHORT])
    message.header.stamp = stamp(0.0)
    bench.controller.command(message, 0)
    close(before_the_clock(bench, 0.3), torque(0.4, 0.0, 0.0))
    assert bench.watch(0.31) is None  # no torques for 1000.31 s by the clock, but it was not there
    assert bench.controller.commands.phase == "following"
    bench.wall = 0.6
    close(bench.watch(0.32), torque(0.4, 0.0, 0.0))
    assert bench.controller.commands.phase == "interrupted"


def test_a_ramp_begins_with_simulated_time():
    bench = Bench(ramp_time=1.0)
    message = JointTrajectory(joint_names=["swing"], points=[*SHORT])
    message.header.stamp = stamp(0.0)
    bench.controller.command(message, 0)
    close(before_the_clock(bench, 0.1), 0.0)
    close(before_the_clock(bench, 0.2), 0.0)
    close(bench.state(0.3, 0.4), 0.0)
    close(bench.state(0.7, 0.4), 0.4 * torque(0.4, 0.0, 0.0))


def test_a_trajectory_of_another_clock_is_found_out_when_the_clock_begins():
    bench = Bench(max_age=0.0)
    message = JointTrajectory(joint_names=["swing"], points=[*SHORT])
    message.header.stamp = stamp(0.0)
    bench.controller.command(message, 0)
    state = JointState(name=["swing"], position=[0.4], velocity=[0.0])
    state.header.stamp = Time(nanosec=10**8)
    assert bench.controller.state(state, 10**8) is None
    assert bench.rejected() == {"command: future stamp": 1}


# Over stays over


def changed(bench: Bench, **values) -> None:
    """Parameters are set while the node runs."""
    bench.settings = bench.controller.settings = bench.settings.changed(values)


def ended(how: str, **values) -> Bench:
    """A bench whose command (q̈ = 3, to be at q = 0.4) is over since a while, at 2 s; the arm has
    moved to 0.1 since."""
    bench = Bench(**{"command_timeout": 0.5, "p_gains": [50.0], "d_gains": [5.0], **values})
    if how == "trajectory":
        points = [point(0.0, q=0.3, qd=0.0, qdd=3.0), point(0.4, q=0.4, qd=0.0, qdd=3.0)]
        bench.command(0.0, *points)
    else:
        bench.command(0.0, point(q=0.4, qd=0.2, qdd=3.0))
    bench.state(0.0, 0.4, 0.2)
    if how == "lost feedback":
        assert bench.watch(0.51) is not None
    elif how == "clock":
        bench.controller.clock_changed(at(0.45))
    for now in (0.6, 1.0, 1.4, 1.8, 2.0):
        bench.state(now, 0.1)
        bench.watch(now)
    assert bench.controller.commands.phase in ("timeout", "finished", "interrupted")
    return bench


@pytest.mark.parametrize("how", ["timeout", "trajectory", "lost feedback", "clock"])
@pytest.mark.parametrize(
    "values",
    [
        {"command_timeout": 10.0},
        {"command_timeout": 0.0},
        {"max_age": 0.0},
        {"max_age": 3600.0, "command_timeout": 3600.0},
        {"lookahead": 1.0},
        {"on_timeout": "hold"},
        {"on_timeout": "hold", "command_timeout": 0.0},
        {"ramp_time": 1e-3},
    ],
)
def test_what_is_over_stays_over_whatever_is_set(how, values):
    bench = ended(how)
    changed(bench, **values)
    damped = 5.0 * 0.3 if "on_timeout" in values else 0.0
    friction = VISCOUS * 0.3 if "on_timeout" in values else 0.0
    for now in (2.1, 2.2):
        # floating, or damped where it is: neither the acceleration nor the position is wanted
        close(bench.state(now, 0.2, 0.3), torque(0.2, 0.0, 0.0) + friction - damped)
    assert bench.controller.commands.phase in ("timeout", "finished", "interrupted")
    bench.command(2.3, point(q=0.2, qd=0.3, qdd=3.0))
    close(bench.state(2.3, 0.2, 0.3), torque(0.2, 0.3, 3.0))


def test_what_ended_while_no_state_came_is_over_whatever_is_set_then():
    bench = Bench(command_timeout=0.5, max_age=0.0)
    bench.accelerate(0.0, 3.0)
    bench.state(0.0, 0.4)
    bench.watch(1.0)
    changed(bench, command_timeout=10.0)
    close(bench.state(1.1, 0.4), torque(0.4, 0.0, 0.0))


def test_a_command_that_waited_too_long_is_gone_before_max_age_is_set():
    bench = Bench(max_age=0.5)
    bench.accelerate(0.0, 3.0)
    bench.watch(0.6)
    changed(bench, max_age=0.0)
    assert bench.state(0.7) is None
    assert bench.rejected() == {"command: waited too long": 1}


def test_hold_that_was_set_before_the_end_holds_the_last_position_whatever_follows():
    bench = ended("timeout", on_timeout="hold")
    held = torque(0.1, 0.0, 0.0) + 50.0 * (0.4 - 0.1)
    close(bench.state(2.1, 0.1), held)
    changed(bench, command_timeout=0.0)
    close(bench.state(2.2, 0.1), held)
    changed(bench, on_timeout="gravity")
    close(bench.state(2.3, 0.1), torque(0.1, 0.0, 0.0))
    changed(bench, on_timeout="hold")
    close(bench.state(2.4, 0.1), torque(0.1, 0.0, 0.0))


def test_stop_that_is_set_while_the_arm_floats_takes_its_torques_away():
    bench = ended("timeout")
    changed(bench, on_timeout="stop")
    close(bench.state(2.1, 0.1), 0.0)
    assert bench.state(2.2, 0.1) is None


def test_an_interruption_is_over_although_commands_last_for_ever():
    bench = Bench(command_timeout=0.0, max_age=0.5, on_timeout="stop")
    bench.accelerate(0.0, 3.0)
    bench.state(0.0, 0.4)
    close(bench.watch(0.6), 0.0)
    assert bench.state(0.7, 0.4) is None


# Limits


def test_torques_are_cut_at_the_limits_and_it_is_said():
    bench = Bench(effort_limits=[5.0])
    bench.accelerate(0.0, 100.0)
    close(bench.state(0.1), 5.0)
    bench.accelerate(0.2, -100.0)
    close(bench.state(0.2), -5.0)
    assert len(bench.log) == 1
    assert "'swing' clipped from 50 to ±5" in bench.log[0]


def test_a_torque_that_is_no_number_is_not_published():
    bench = Bench(f"{CONFIG}/polar.yaml", p_gains=[1e12, 1.0], max_acceleration=0.0)
    names = ("theta1", "d2")
    bench.command(0.0, point(q=[1e300, 1.0], qd=[0.0, 0.0], qdd=[1.0, 1.0]), names=names)
    # K_p (q_d - q) is beyond the largest number
    assert bench.state(0.1, [0.0, 1.0], [0.1, 0.1], names=names) is None
    assert bench.rejected() == {"torques: not finite": 1}
    assert "theta1" in bench.log[-1]
    bench.command(0.15, point(q=[10.0, 1.0], qd=[0.0, 0.0], qdd=[1.0, 1.0]), names=names)
    assert bench.state(0.2, [10.0, 1.0], [0.1, 0.1], names=names) is not None


# Refusals

BAD_STATES = {
    "duplicate names": JointState(name=["swing"] * 2, position=[0.0] * 2, velocity=[0.0] * 2),
    "wrong length": JointState(name=["swing"], position=[0.0, 1.0], velocity=[0.0]),
    "no velocities": JointState(name=["swing"], position=[0.0]),
    "not finite": JointState(name=["swing"], position=[math.nan], velocity=[0.0]),
}


@pytest.mark.parametrize("reason", BAD_STATES)
def test_a_bad_state_is_dropped_counted_and_told_and_the_next_good_one_works(reason):
    bench = Bench()
    bench.accelerate(0.0, 3.0)
    message = BAD_STATES[reason]
    message.header.stamp = stamp(0.1)
    for _ in range(3):
        assert bench.controller.state(message, at(0.1)) is None
    assert bench.rejected() == {f"joint_states: {reason}": 3}
    assert len(bench.log) == 1, "one line, not three"
    assert bench.log[0].startswith("joint_states dropped: ")
    assert "\n" not in bench.log[0]
    close(bench.state(0.2, 0.4), torque(0.4, 0.0, 3.0))


def test_infinity_in_either_half_of_a_state_is_found():
    bench = Bench()
    for q, qd in ((math.inf, 0.0), (0.0, -math.inf), (math.inf, -math.inf)):
        assert bench.state(0.1, q, qd) is None
    assert bench.rejected() == {"joint_states: not finite": 3}


def test_fewer_or_more_rates_than_names_are_refused():
    bench = Bench(f"{CONFIG}/polar.yaml")
    for count in (1, 3):
        message = JointState(name=["theta1", "d2"], position=[0.0] * 2, velocity=[0.0] * count)
        message.header.stamp = stamp(0.1)
        assert bench.controller.state(message, at(0.1)) is None
    assert bench.rejected() == {"joint_states: wrong length": 2}
    assert "the number of velocities is 1, expected that of names, 2" in bench.log[0]


def test_the_name_and_the_number_that_are_not_finite_are_told():
    bench = Bench(f"{CONFIG}/polar.yaml")
    assert bench.state(0.1, [0.0, 1.0], [0.0, -math.inf], names=("d2", "theta1")) is None
    assert "velocity of 'theta1' is -inf" in bench.log[0]


@pytest.mark.parametrize("turns", [-3, 0, 1])
def test_a_joint_that_turns_forever_is_led_in_by_the_short_way(turns):
    bench = Bench(terms=["inertia"])
    bench.command(0.0, point(2.0, q=0.6, qd=0.0), point(3.0, q=0.6, qd=0.0))
    # 6 Δ/h²
    close(bench.state(0.1, 0.4 + 2 * math.pi * turns), INERTIA * 6 * 0.2 / 4)


@pytest.mark.parametrize("what", ["positions", "velocities", "accelerations"])
@pytest.mark.parametrize("numbers", [[0.0], [0.0] * 3, [0.0, math.nan]])
def test_every_field_of_every_point_is_checked(what, numbers):
    bench = Bench(f"{CONFIG}/polar.yaml")
    good = [point(t, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]) for t in (0.0, 1.0, 2.0)]
    setattr(good[1], what, numbers)
    bench.command(0.0, *good, names=("theta1", "d2"))
    reason = "not finite" if len(numbers) == 2 else "wrong length"
    assert bench.rejected() == {f"command: {reason}": 1}
    assert "point 1" in bench.log[0]
    assert what in bench.log[0]


@pytest.mark.parametrize(
    ("stamped", "reason"), [(-0.6, "old stamp"), (0.7, "future stamp"), (-500.0, "old stamp")]
)
def test_a_state_far_from_the_clock_is_dropped(stamped, reason):
    bench = Bench(max_age=0.5)
    bench.accelerate(0.0, 3.0)
    assert bench.state(0.1, stamped=stamped) is None
    assert bench.rejected() == {f"joint_states: {reason}": 1}
    assert bench.state(0.2) is not None


def test_a_state_older_than_the_newest_is_dropped():
    bench = Bench()
    bench.accelerate(0.0, 3.0)
    assert bench.state(0.10) is not None
    assert bench.state(0.11, stamped=0.09) is None
    assert bench.rejected() == {"joint_states: old stamp": 1}
    assert bench.state(0.12, stamped=0.10) is not None, "the same state again is no older one"


def test_without_a_check_against_the_clock_a_recording_may_start_over():
    bench = Bench(max_age=0.0)
    bench.accelerate(0.0, 3.0)
    assert bench.state(0.1, stamped=50.0) is not None
    assert bench.state(0.2, stamped=1.0) is None
    assert bench.state(1.2, stamped=1.1) is not None


def test_a_state_without_a_stamp_is_of_now():
    bench = Bench()
    bench.accelerate(0.0, 3.0)
    message = JointState(name=["swing"], position=[0.4], velocity=[0.0])
    output = bench.controller.state(message, at(0.1))
    assert output.time == at(0.1)
    close(output.values, torque(0.4, 0.0, 3.0))


@pytest.mark.parametrize(
    "wrong", [Time(sec=-1), Time(nanosec=10**9), Time(sec=2**31 - 1, nanosec=2**32 - 1)]
)
def test_a_stamp_that_is_none_is_refused_on_states_and_commands(wrong):
    bench = Bench(max_age=0.0)
    bench.accelerate(0.0, 3.0)
    state = JointState(name=["swing"], position=[0.4], velocity=[0.0])
    state.header.stamp = wrong
    assert bench.controller.state(state, at(0.0)) is None
    command = JointTrajectory(joint_names=["swing"], points=[point(qdd=9.0)])
    command.header.stamp = wrong
    bench.controller.command(command, at(0.0))
    assert bench.rejected() == {"joint_states: invalid stamp": 1, "command: invalid stamp": 1}
    close(bench.state(0.1, 0.4), torque(0.4, 0.0, 3.0))


def test_the_latest_stamp_there_is_can_be_published():
    bench = Bench(max_age=0.0)
    bench.accelerate(0.0, 3.0)
    state = JointState(name=["swing"], position=[0.4], velocity=[0.0])
    state.header.stamp = latest = Time(sec=2**31 - 1, nanosec=10**9 - 1)
    output = bench.controller.state(state, at(0.0))
    assert divmod(output.time, 10**9) == (latest.sec, latest.nanosec)


def test_states_of_other_joints_are_ignored_and_no_complaint():
    bench = Bench()
    bench.accelerate(0.0, 3.0)
    gripper = JointState(name=["finger"], position=[math.nan] * 3)
    gripper.header.stamp = Time(sec=1)
    assert bench.controller.state(gripper, at(0.1)) is None
    assert bench.controller.states.foreign == 1
    assert not bench.rejected()
    assert not bench.log
    assert bench.controller.states.count == 0
    nameless = JointState(position=[0.0])
    assert bench.controller.state(nameless, at(0.1)) is None
    assert bench.rejected() == {"joint_states: missing joint": 1}


def test_a_message_with_some_of_the_joints_is_refused():
    bench = Bench(f"{CONFIG}/polar.yaml")
    assert bench.state(0.1, 0.3, 0.2, names=("theta1",)) is None
    assert bench.rejected() == {"joint_states: missing joint": 1}
    assert bench.controller.states.foreign == 0


@pytest.mark.parametrize("ahead", [61.0, 3600.0, 1.7e9])
def test_a_trajectory_of_another_clock_is_refused_and_both_are_told(ahead):
    bench = Bench(max_age=0.0)
    bench.accelerate(0.0, 3.0)
    bench.command(0.0, point(0.0, q=0.0), point(1.0, q=0.0), stamped=ahead)
    assert bench.rejected() == {"command: future stamp": 1}
    for time in (at(0.0), at(ahead)):
        assert f"{time / 1e9:.3f} s" in bench.log[0]
    close(bench.state(0.0), torque(0.0, 0.0, 3.0))


def test_a_trajectory_may_begin_within_a_minute():
    bench = Bench(command_timeout=0.0)
    bench.command(0.0, point(0.0, q=0.0, qd=0.0), point(2.0, q=1.0, qd=0.0), stamped=59.0)
    bench.state(0.0)
    close(bench.state(59.0), torque(0.0, 0.0, 6 / 4))


def test_a_trajectory_by_the_clock_is_not_led_into_from_states_of_a_recording():
    bench = Bench(max_age=0.0)
    bench.command(100.0, point(0.0, q=0.0), point(1.0, q=0.0), stamped=100.0)
    assert bench.state(100.0, 0.4, stamped=0.0) is None
    assert bench.rejected() == {"command: future stamp": 1}


def trajectory(**fields):
    return {"names": ("swing",), "points": [point(qdd=1.0)], **fields}


BAD_COMMANDS = {
    "unknown joint": trajectory(names=("swing", "tail"), points=[point(qdd=[1.0, 1.0])]),
    "missing joint": trajectory(names=(), points=[point()]),
    "duplicate names": trajectory(names=("swing", "swing"), points=[point(qdd=[1.0, 1.0])]),
    "no points": trajectory(points=[]),
    "no accelerations": trajectory(points=[point(q=0.0, qd=0.0)]),
    "wrong length": trajectory(points=[point(qdd=[1.0, 2.0])]),
    "not finite": trajectory(points=[point(qdd=math.nan)]),
    "no positions": trajectory(points=[point(0.0, qd=1.0), point(1.0, qd=1.0)]),
    "wrong times": trajectory(points=[point(1.0, q=0.0), point(1.0, q=1.0)]),
    "old stamp": trajectory(points=[point(0.0, q=0.0), point(1.0, q=1.0)], stamped=-2.0),
    "future stamp": trajectory(stamped=9.0),
    "acceleration too high": trajectory(points=[point(qdd=1e9)]),
    "too many points": trajectory(points=[point(q=0.0)] * (MOST_POINTS + 1)),
}


@pytest.mark.parametrize("reason", BAD_COMMANDS)
def test_a_bad_command_changes_nothing_and_the_next_good_one_works(reason):
    bench = Bench()
    bench.accelerate(0.0, 3.0)
    bench.state(0.0)
    fields = dict(BAD_COMMANDS[reason])
    bench.command(0.1, *fields.pop("points"), **fields)
    assert bench.rejected() == {f"command: {reason}": 1}
    assert bench.log[0].startswith("command dropped: ")
    close(bench.state(0.1, 0.4), torque(0.4, 0.0, 3.0))
    bench.accelerate(0.2, -1.0)
    close(bench.state(0.2, 0.4), torque(0.4, 0.0, -1.0))


def test_a_trajectory_that_begins_later_makes_no_setpoint_an_old_one():
    bench = Bench()
    bench.command(0.0, point(0.0, q=0.0), point(1.0, q=1.0), stamped=5.0)
    bench.command(0.1, point(qdd=3.0), stamped=0.1)
    close(bench.state(0.1, 0.4), torque(0.4, 0.0, 3.0))


def test_an_old_setpoint_is_dropped():
    bench = Bench()
    bench.command(1.0, point(qdd=3.0), stamped=1.0)
    bench.command(1.1, point(qdd=9.0), stamped=0.9)
    close(bench.state(1.1), torque(0.0, 0.0, 3.0))
    assert bench.rejected() == {"command: old stamp": 1}


def test_a_single_point_without_accelerations_is_taken_where_zero_is_allowed():
    bench = Bench(missing_accelerations="zero")
    bench.command(0.0, point(q=0.0, qd=0.0))
    close(bench.state(0.1, 0.4, 0.2), torque(0.4, 0.2, 0.0))


@pytest.mark.parametrize(("missing", "fields"), [("velocities", {"q": 0.0}), ("positions", {})])
def test_commanded_feedback_needs_the_whole_state_in_a_single_point(missing, fields):
    bench = Bench(feedback="commanded")
    bench.command(0.0, point(qdd=1.0, **fields))
    assert bench.tick(0.1) is None
    assert bench.rejected() == {f"command: no {missing}": 1}


def test_last_words_and_farewells_are_within_the_limits():
    bench = Bench(effort_limits=[5.0], command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    close(bench.state(0.1, -math.pi / 2, 0.0), -5.0)
    bench.accelerate(0.1, 1e-3)
    assert torque(-math.pi / 2, 0.0, 0.0) < -9.0
    bench.controller.outlet.at_rest = False
    close(bench.controller.torques_if_hung(), -5.0)
    close(bench.farewell(0.2), -5.0)


def test_what_the_robot_weighs_is_a_part_of_the_bound_on_its_torques():
    bench = Bench(max_acceleration=1.0, command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    # faster than √max_acceleration, and heavy: what it weighs, and no more, makes this torque
    assert torque(math.pi / 2, 1.5, 0.0) > 10 * (INERTIA * 1.0 + VISCOUS * 1.5)
    close(bench.state(0.1, math.pi / 2, 1.5), torque(math.pi / 2, 1.5, 0.0))
