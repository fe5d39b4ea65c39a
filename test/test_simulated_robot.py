# SPDX-License-Identifier: Apache-2.0
"""The simulated robot among other nodes: whose time it keeps, where it gets its robot from."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
pytest.importorskip("mujoco", reason="mujoco is not installed: extra `sim`")

from builtin_interfaces.msg import Duration
from node_process import Conversation
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynamics.ros.feed_forward.stamps import SECOND, nanoseconds
from robot_dynamics.ros.simulation_clock import BEHIND, MOST_AT_ONCE, SimulationClock

ROOT = Path(__file__).resolve().parents[1]
POLAR = "package://robot_dynamics/config/polar.yaml"
PERIOD = SECOND // 500


class Simulated(Conversation):
    """The simulated robot, and all that it has told."""

    def __init__(self, **parameters):
        program = (sys.executable, "-m", "robot_dynamics.ros.executables", "simulated_robot")
        super().__init__(program, parameters)
        self.states: list[JointState] = []
        self.node.create_subscription(JointState, "joint_states", self._on_state, 5000)
        self.clock = self.node.create_publisher(Clock, "/clock", 10)
        self.trajectory = self.node.create_publisher(
            JointTrajectory, "/simulated_robot/joint_trajectory", 10
        )
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.description = self.node.create_publisher(String, "robot_description", latched)

    def _on_state(self, message: JointState) -> None:
        self.states.append(message)

    def tell(self, ns: int) -> None:
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(ns, SECOND)
        self.clock.publish(message)

    @property
    def times(self) -> list[int]:
        return [nanoseconds(state.header.stamp) for state in self.states]


def test_a_pace_of_its_own_begins_at_zero_and_goes_on_by_one():
    clocked = SimulationClock(PERIOD)
    for k in range(5):
        assert clocked.now == k * PERIOD
        assert clocked.due() == (1, 0)
        clocked.tick()


def test_a_pace_follows_its_clock_through_haste_delay_pauses_and_resets():
    clock = 0
    clocked = SimulationClock(PERIOD, lambda: clock, ahead=5 * PERIOD)
    assert clocked.due() == (0, 0), "no clock yet"

    def go_on() -> int:
        due, skipped = clocked.due()
        assert due <= MOST_AT_ONCE
        for _ in range(due):
            clocked.tick()
        return skipped

    clock = 7 * SECOND
    assert clocked.due() == (1, 0)
    assert clocked.now == clock, "its first period begins with the clock"
    for _ in range(50):
        assert go_on() == 0
    assert clocked.now == clock + 5 * PERIOD, "a clock that stands still stops it"
    clock -= BEHIND - PERIOD
    assert clocked.due() == (0, 0), "it waits for a clock that was set back a little"
    clock += 2 * BEHIND - PERIOD
    for _ in range(BEHIND // PERIOD):
        assert go_on() == 0
    assert clocked.now == clock + 5 * PERIOD, "it catches up"
    for jump in (BEHIND + 6 * PERIOD, 3600 * SECOND, -BEHIND - 6 * PERIOD, -3600 * SECOND):
        before = clocked.now
        clock += jump
        assert go_on() == clock - before, "too far to catch up"
        assert 0 <= clocked.now - clock <= MOST_AT_ONCE * PERIOD
        for _ in range(20):
            assert go_on() == 0


def test_without_a_clock_of_its_own_a_robot_is_stamped_by_the_walls():
    with Simulated(description=POLAR) as robot:
        robot.until(lambda: len(robot.states) > 100, "joint states")
        assert abs(time.time() - robot.times[-1] / SECOND) < 30
        assert {b - a for a, b in zip(robot.times, robot.times[1:], strict=False)} >= {PERIOD}
        assert robot.stop() == 0


def test_signals_are_handled_before_anything_heavy_is_imported():
    """Else one that comes meanwhile leaves a traceback."""
    code = (
        "import sys, robot_dynamics.node, robot_dynamics.ros.executables;"
        "heavy = {'rclpy', 'mujoco', 'numpy', 'yaml', 'lxml'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr


def test_on_the_topic_it_finds_its_robot_and_on_the_clock_of_another_its_time():
    with Simulated(use_sim_time=True, bandwidth=10.0) as robot:
        robot.until(lambda: "waiting for the robot" in robot.log, "that it waits")
        robot.description.publish(String(data="<robot"))
        robot.until(
            lambda: "robot_description dropped:" in robot.log, "that it refuses half a robot"
        )
        robot.description.publish(String(data=(ROOT / "urdf" / "six_axis.urdf").read_text()))
        robot.until(lambda: "takes torques for" in robot.log, "the robot")
        assert not robot.states, "there is no /clock yet"
        now = 100 * SECOND

        def tick() -> None:
            nonlocal now
            now += SECOND // 100
            robot.tell(now)
            time.sleep(0.002)

        robot.until(lambda: len(robot.states) > 300, "joint states", meanwhile=tick)
        assert len(robot.states[-1].name) == 6
        # no time passes for it that did not pass for the others
        robot.until(lambda: robot.times[-1] >= now, "that it has caught up")
        robot.spin(0.5)
        assert robot.times[-1] <= now + SECOND // 50
        # a motion belongs to the time that it was commanded in
        names = robot.states[-1].name
        point = JointTrajectoryPoint(positions=[0.5] * 6, time_from_start=Duration(sec=5))
        robot.trajectory.publish(JointTrajectory(joint_names=names, points=[point]))
        robot.until(lambda: robot.states[-1].position[0] > 0.15, "motion", meanwhile=tick)
        now -= 3 * SECOND
        robot.until(lambda: "its motion aborted" in robot.log, "its end", meanwhile=tick)
        end = now + 8 * SECOND  # by when it would be over, had it gone on
        robot.until(lambda: now > end, "much later", meanwhile=tick)
        robot.until(lambda: robot.times[-1] > end - SECOND, "a state of then", meanwhile=tick)
        times = robot.times
        again = max(k for k in range(1, len(times)) if times[k] < times[k - 1])
        q = [state.position[0] for state in robot.states[again:]]
        assert max(q) - min(q) < 0.05
        assert robot.stop() == 0


def test_one_point_with_a_time_is_reached_then_and_not_at_once():
    """As joint_trajectory_controller takes it."""
    away, seconds = 0.8, 2
    with Simulated(description=POLAR, publish_clock=True, bandwidth=20.0) as robot:
        robot.until(robot.trajectory.get_subscription_count, "who follows")
        robot.until(lambda: robot.states, "joint states")
        point = JointTrajectoryPoint(positions=[away, 0.0], time_from_start=Duration(sec=seconds))
        robot.trajectory.publish(JointTrajectory(joint_names=["theta1", "d2"], points=[point]))
        robot.until(lambda: robot.states[-1].position[0] > 0.98 * away, "its arrival")
        moving = [state for state in robot.states if abs(state.velocity[0]) > 0.01]
        first, last = (nanoseconds(state.header.stamp) for state in (moving[0], moving[-1]))
        assert (last - first) / SECOND > 0.8 * seconds
        # this test has a publisher on /clock, too
        robot.until(lambda: "another node publishes /clock" in robot.log, "a word of two clocks")
        # 15/8 is a quintic's largest rate from rest to rest, in units of the mean; at once, at
        # 20 rad/s, it would be 20/e away = 7.4 away
        assert max(abs(state.velocity[0]) for state in robot.states) < 2.2 * away / seconds
        assert robot.stop() == 0


def test_a_hundred_wrong_trajectories_make_a_few_lines():
    with Simulated(description=POLAR) as talk:
        talk.until(lambda: talk.trajectory.get_subscription_count(), "the robot")
        for k in range(100):
            point = JointTrajectoryPoint(positions=[0.1 * k])
            talk.trajectory.publish(JointTrajectory(joint_names=["theta1"], points=[point]))
            talk.spin(0.01)
        names, point = ["theta1", "d2"], JointTrajectoryPoint(positions=[0.1])
        talk.until(
            lambda: ": the number of positions is 1, expected 2" in talk.log,
            "the last of them",
            meanwhile=lambda: talk.trajectory.publish(
                JointTrajectory(joint_names=names, points=[point])
            ),
        )
        assert 1 <= talk.log.count("joint_trajectory dropped") <= 10


@pytest.mark.parametrize(
    ("bandwidth", "rate", "unstable", "curable"),
    [(10.0, 100.0, True, True), (10.0, 1000.0, False, False), (10_000.0, 100.0, True, False)],
)
def test_a_loop_that_is_sampled_too_slowly_is_said_at_the_start(bandwidth, rate, unstable, curable):
    robot = "package://robot_dynamics/config/three_axis.yaml"
    with Simulated(description=robot, update_rate=rate, bandwidth=bandwidth) as talk:
        talk.until(lambda: talk.states, "joint states")
        assert ("the PD loop is unstable at update_rate = 100 Hz" in talk.log) == unstable, talk.log
        assert ("raise update_rate" in talk.log) == curable, talk.log
        assert ("lower bandwidth" in talk.log) == unstable
        assert talk.stop() == 0
