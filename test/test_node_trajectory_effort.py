# SPDX-License-Identifier: Apache-2.0
"""Trajectories that pass through the node get the torques of their points, for a controller with
feedback of its own."""

from __future__ import annotations

import copy
import math
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from node_bench import Bench, point, stamp
from rclpy.serialization import deserialize_message, serialize_message
from robots import CONFIG, example_robots, pin
from trajectory_msgs.msg import JointTrajectory

import robot_dynamics as rd
from robot_dynamics.errors import ClosureWarning
from robot_dynamics.ros.feed_forward.refusal import RefusedError, Tally

TO_PINOCCHIO = 1e-9
SECONDS = 2.0


def ur5() -> str:
    return str(next(path for path in example_robots() if path.name == "ur5_robot.urdf"))


class Arm:
    """A six-axis arm, a motion of it in closed form, and the torques of that by Pinocchio."""

    def __init__(self) -> None:
        self.file = ur5()
        self.model = pin.buildModelFromUrdf(self.file)
        self.names = list(self.model.names)[1:]
        self.data = self.model.createData()
        # else the description's limits cut: they are small at the wrist
        self.bench = Bench(
            self.file, effort_limits=[math.inf] * 6, terms=["inertia", "coriolis", "gravity"]
        )
        self.amplitude = np.linspace(0.2, 0.7, 6)

    def state(self, t: float):
        w = math.pi / SECONDS
        s, c = math.sin(w * t), math.cos(w * t)
        a = self.amplitude
        return a * (1 - c), a * w * s, a * w**2 * c

    def torques(self, q, qd, qdd) -> np.ndarray:
        return pin.rnea(self.model, self.data, q, qd, qdd)

    def trajectory(self, count: int, derivatives: int = 3, order=None) -> JointTrajectory:
        order = range(6) if order is None else order
        points = []
        for t in np.linspace(0.0, SECONDS, count):
            values = [x[list(order)] for x in self.state(t)[:derivatives]]
            points.append(point(t, *values))
        return JointTrajectory(joint_names=[self.names[k] for k in order], points=points)


@pytest.fixture(scope="module")
def arm() -> Arm:
    return Arm()


def filled(bench: Bench, message: JointTrajectory, now: float = 0.0) -> np.ndarray:
    bench.fill(message, now)
    return np.array([each.effort for each in message.points])


def test_every_point_has_its_torques_in_the_messages_order_and_the_last_those_at_rest(arm):
    order = [3, 1, 5, 0, 2, 4]
    message = arm.trajectory(9, order=order)
    before = copy.deepcopy(message)
    effort = filled(arm.bench, message)
    for k, t in enumerate(np.linspace(0.0, SECONDS, 9)):
        q, qd, qdd = arm.state(t)
        if k == 8:
            qd, qdd = np.zeros((2, 6))
        np.testing.assert_allclose(
            effort[k], arm.torques(q, qd, qdd)[order], rtol=TO_PINOCCHIO, atol=TO_PINOCCHIO
        )
    for each in message.points:
        each.effort = []
    assert message == before, "nothing else has changed"


def test_between_points_effort_in_a_straight_line_is_nearly_that_of_the_motion(arm):
    """joint_trajectory_controller interpolates it linearly."""
    times = np.linspace(0.0, SECONDS, 101)
    effort = filled(arm.bench, arm.trajectory(101))
    for k in range(0, 98, 7):
        t = (times[k] + times[k + 1]) / 2
        expected = arm.torques(*arm.state(t))
        np.testing.assert_allclose((effort[k] + effort[k + 1]) / 2, expected, atol=0.01)


def test_points_without_accelerations_have_those_of_the_cubics_that_meet_there(arm):
    """A planner that leaves accelerations out: the mean of both sides is right to second order."""
    effort = filled(arm.bench, arm.trajectory(41, derivatives=2))
    for k, t in list(enumerate(np.linspace(0.0, SECONDS, 41)))[1:-1]:
        np.testing.assert_allclose(effort[k], arm.torques(*arm.state(t)), atol=0.05)


def test_one_point_is_a_place_to_be_at_rest_at(arm):
    q = arm.state(1.3)[0]
    message = JointTrajectory(joint_names=arm.names, points=[point(3.0, q, np.ones(6))])
    expected = arm.torques(q, np.zeros(6), np.zeros(6))
    np.testing.assert_allclose(filled(arm.bench, message)[0], expected, TO_PINOCCHIO, TO_PINOCCHIO)


def test_torques_beyond_a_limit_are_cut_and_it_is_said():
    bench = Bench(ur5(), effort_limits=[10.0] * 6)
    effort = filled(bench, Arm().trajectory(5))
    assert np.abs(effort).max() == 10.0
    assert any("clipped from" in line and "at point" in line for line in bench.log)


def refused_messages(arm: Arm) -> dict[str, JointTrajectory]:
    def changed(**fields) -> JointTrajectory:
        message = arm.trajectory(3)
        for name, value in fields.items():
            setattr(message, name, value)
        return message

    with_effort = arm.trajectory(3)
    with_effort.points[1].effort = [1.0] * 6
    without = arm.trajectory(3)
    without.points[1].positions = []
    quick = arm.trajectory(3)
    quick.points[1].time_from_start.sec, quick.points[1].time_from_start.nanosec = 0, 1_000_000
    late = arm.trajectory(3)
    late.header.stamp = stamp(-10.0)
    return {
        "effort": with_effort,
        "no positions": without,
        "no points": changed(points=[]),
        "unknown joint": changed(joint_names=[*arm.names[:5], "finger"]),
        "missing joint": JointTrajectory(
            joint_names=arm.names[:5], points=[point(1.0, np.zeros(5))]
        ),
        "too fast": quick,
        "old stamp": late,
    }


@pytest.mark.parametrize(
    "reason",
    [
        "effort",
        "no positions",
        "no points",
        "unknown joint",
        "missing joint",
        "too fast",
        "old stamp",
    ],
)
def test_what_is_no_motion_of_the_robot_is_refused_whole(arm, reason):
    message = refused_messages(arm)[reason]
    before = copy.deepcopy(message)
    with pytest.raises(RefusedError) as caught:
        arm.bench.fill(message, 0.0)
    # the joint that is missing beside the one that is unknown comes first
    assert caught.value.reason in (reason, "missing joint")
    assert message == before


def test_joints_besides_stand_where_they_were_seen_and_have_to_be_seen():
    names = ["theta1", "d2"]
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"))
    bench = Bench(str(CONFIG / "polar.yaml"), joints=["theta1"])

    def message() -> JointTrajectory:
        points = [point(0.0, 0.0, 0.0, 0.0), point(1.0, 0.5, 0.5, 2.0), point(2.0, 1.0, 0.0, 0.0)]
        return JointTrajectory(joint_names=["theta1"], points=points)

    with pytest.raises(RefusedError, match="no recent joint_states with d2"):
        bench.fill(message(), 0.0)
    bench.state(0.0, [0.0, 0.8], [0.0, 3.0], names=names)
    expected = dynamics([0.5, 0.8], [0.5, 0.0], [2.0, 0.0])[0]
    np.testing.assert_allclose(filled(bench, message())[1], [expected], rtol=1e-12)
    with pytest.raises(RefusedError, match="no recent"):
        bench.fill(message(), 60.0)


def test_a_closed_robot_is_where_it_was_after_a_trajectory_was_looked_at():
    file = str(CONFIG / "rrr.yaml")
    bench, dynamics = Bench(file), rd.InverseDynamics(rd.load(file))
    home = dynamics.closed.home.q_r[:3]
    names = dynamics.actuated_names
    bench.command(0.0, point(qdd=np.ones(3)), names=names)
    first = bench.state(0.01, home, np.zeros(3), names=names)
    message = JointTrajectory(
        joint_names=list(names),
        points=[point(t, home + 0.02 * t, np.full(3, 0.02), np.zeros(3)) for t in (0.0, 1.0, 2.0)],
    )
    effort = filled(bench, message, 0.02)
    expected = dynamics(home + 0.02, np.full(3, 0.02), np.zeros(3))
    np.testing.assert_allclose(effort[1], expected, rtol=1e-9)
    assert bench.state(0.03, home, np.zeros(3), names=names) == first
    message.points[1].positions = (home + 3.0).tolist()
    for each in message.points:
        each.effort, each.velocities, each.accelerations = [], [], []
    with pytest.raises(RefusedError, match="point 1"), pytest.warns(ClosureWarning):
        bench.fill(message, 0.04)


@pytest.mark.parametrize("values", [{"sensed": True}, {"side": "drive"}])
def test_sensors_and_motors_are_no_business_of_a_trajectory(values):
    bench = (
        Bench(str(CONFIG / "rrr.yaml"), **values)
        if "sensed" in values
        else Bench(str(CONFIG / "three_axis.yaml"), **values)
    )
    with pytest.raises(RefusedError, match="trajectories with effort need"):
        bench.fill(JointTrajectory(), 0.0)


def test_over_topics_a_trajectory_goes_in_and_comes_out_with_its_effort():
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    from node_process import Partner

    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"))
    names = list(dynamics.joint_names)
    points = [
        point(0.0, [0.0, 0.5], [0.0, 0.0], [1.0, 0.0]),
        point(1.0, [0.4, 0.6], [0.0, 0.0], [0.0, 0.0]),
    ]
    with Partner(description=str(CONFIG / "polar.yaml")) as partner:
        out: list[JointTrajectory] = []
        partner.node.create_subscription(
            JointTrajectory, "/feed_forward/trajectory_out", out.append, 10
        )
        send = partner.node.create_publisher(JointTrajectory, "/feed_forward/trajectory_in", 10)
        partner.until(
            lambda: (
                send.get_subscription_count()
                and partner.node.count_publishers("/feed_forward/trajectory_out")
            ),
            "both topics",
        )
        send.publish(JointTrajectory(joint_names=[*names, "finger"], points=points))
        send.publish(JointTrajectory(joint_names=names, points=points))
        partner.until(lambda: out, "the trajectory")
        assert [each.effort.tolist() for each in out[0].points] == [
            pytest.approx(dynamics([0.0, 0.5], [0.0, 0.0], [1.0, 0.0]).tolist()),
            pytest.approx(dynamics([0.4, 0.6], [0.0, 0.0], [0.0, 0.0]).tolist()),
        ]
        partner.until(
            lambda: partner.counts().get("rejected: trajectory_in: unknown joint") == "1",
            "the one that was refused",
        )
        assert len(out) == 1


def test_a_long_trajectory_of_a_closed_robot_is_filled_while_torques_go_on():
    """One that holds the loop would leave every state of that time without its torque."""
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    from node_process import Partner

    file, count = str(CONFIG / "rrr.yaml"), 5000
    dynamics = rd.InverseDynamics(rd.load(file))
    names, home = list(dynamics.actuated_names), dynamics.closed.home.q_r[:3]
    points = [
        point(t, home + 0.02 * math.sin(t), 0.02 * math.cos(t) * np.ones(3), np.zeros(3))
        for t in np.arange(count) * 0.002
    ]
    joints = {name: (float(q), 0.0) for name, q in zip(names, home, strict=True)}
    with Partner(description=file, command_timeout=0.0, max_age=20.0) as partner:
        out: list[JointTrajectory] = []
        send = partner.node.create_publisher(JointTrajectory, "/feed_forward/trajectory_in", 10)
        partner.node.create_subscription(
            JointTrajectory, "/feed_forward/trajectory_out", out.append, 10, raw=True
        )

        def move() -> None:
            partner.accelerate(dict.fromkeys(names, 1.0))
            partner.state(joints)

        partner.until(lambda: partner.commands, "torques", meanwhile=move)
        partner.until(
            lambda: (
                send.get_subscription_count()
                and partner.node.count_publishers("/feed_forward/trajectory_out")
            ),
            "both topics",
        )
        send.publish(JointTrajectory(joint_names=names, points=points))
        partner.commands.clear()
        # states one by one, each with its torque, until the answer is there
        for _ in range(10_000):
            before = len(partner.commands)
            partner.state(joints)
            partner.until(
                lambda before=before: len(partner.commands) > before,
                "a torque",
                meanwhile=lambda: None,
            )
            if out:
                break
        # a loop that is held answers once, when all is filled
        assert len(partner.commands) >= 5, "torques went out while it was filled"
        filled = deserialize_message(out[0], JointTrajectory)
        some = slice(0, count, 500)
        q, qd, qdd = (
            np.array([getattr(each, what) for each in filled.points[some]])
            for what in ("positions", "velocities", "accelerations")
        )
        np.testing.assert_allclose(
            [each.effort for each in filled.points[some]], dynamics(q, qd, qdd), rtol=1e-9
        )


@pytest.mark.parametrize("changes", [False, True])
def test_a_trajectory_of_another_robot_than_now_is_not_passed_on(changes):
    rclpy = pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    from node_process import PATIENCE, domain_of_ones_own
    from rclpy.callback_groups import MutuallyExclusiveCallbackGroup

    from robot_dynamics.ros.trajectory_effort import TrajectoryEffort

    with domain_of_ones_own() as domain:
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        try:
            node = rclpy.create_node("fills", context=context)
            robot, began, go_on = ["first"], threading.Event(), threading.Event()

            def fill(message: JointTrajectory) -> str:
                began.set()
                assert go_on.wait(PATIENCE)
                return "a remark"

            lines: list[str] = []
            tally = Tally(lines.append)
            door = TrajectoryEffort(
                node,
                lambda: fill,
                lambda: robot[0],
                tally,
                MutuallyExclusiveCallbackGroup(),
            )
            door._on_trajectory(serialize_message(JointTrajectory()))
            assert began.wait(PATIENCE)
            if changes:
                robot[0] = "second"
            go_on.set()
            deadline = time.monotonic() + PATIENCE
            while not lines and time.monotonic() < deadline:
                door.poll()
            assert dict(tally.rejected) == ({"trajectory_in: overtaken": 1} if changes else {})
            assert changes or lines == ["a remark"]
            door.close()
            node.destroy_node()
        finally:
            rclpy.shutdown(context=context)


WAITING = """
import sys, time
from pathlib import Path
from robot_dynamics.ros.executable import run
def load():
    from robot_dynamics.ros.feed_forward_node import FeedForwardNode
    class Waiting(FeedForwardNode):
        def __init__(self):
            super().__init__()
            filler = self.controller.filler
            def late(now):
                fill = filler(now)
                def filled(message):
                    (Path(FOLDER) / "begun").touch()
                    while not (Path(FOLDER) / "released").exists():
                        time.sleep(0.01)
                    return fill(message)
                return filled
            self.controller.filler = late
    return Waiting
sys.exit(run("feed_forward", load, None, lambda node: node.farewell()))
"""


@pytest.mark.parametrize("toggles", [False, True])
def test_a_trajectory_does_not_outlive_a_deactivation(toggles, tmp_path):
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from node_process import Partner

    program = (sys.executable, "-c", WAITING.replace("FOLDER", repr(str(tmp_path))))
    with Partner(program=program, description=str(CONFIG / "polar.yaml")) as partner:
        out: list[JointTrajectory] = []
        node = partner.node
        node.create_subscription(JointTrajectory, "/feed_forward/trajectory_out", out.append, 10)
        send = node.create_publisher(JointTrajectory, "/feed_forward/trajectory_in", 10)
        partner.until(
            lambda: (
                send.get_subscription_count()
                and node.count_publishers("/feed_forward/trajectory_out")
            ),
            "both topics",
        )
        points = [point(1.0, [0.4, 0.6], [0.0, 0.0])]
        send.publish(JointTrajectory(joint_names=["theta1", "d2"], points=points))
        partner.until((tmp_path / "begun").exists, "the trajectory")
        for step in ("DEACTIVATE", "ACTIVATE") if toggles else ():
            wanted = Transition(id=getattr(Transition, f"TRANSITION_{step}"))
            assert partner.ask(ChangeState, "/feed_forward/change_state", transition=wanted).success
        (tmp_path / "released").touch()
        overtaken = "rejected: trajectory_in: overtaken"
        partner.until(lambda: out or overtaken in partner.counts(), "its end")
        assert bool(out) != toggles
