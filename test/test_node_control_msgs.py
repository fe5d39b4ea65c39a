# SPDX-License-Identifier: Apache-2.0
"""ros2_control's own messages and actions, with a controller's action server."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from node_bench import point
from node_process import (
    ROOT,
    Partner,
    refusal,
)
from trajectory_msgs.msg import JointTrajectory

import robot_dynamics as rd

POLAR = str(ROOT / "config/polar.yaml")
NAMES = ["theta1", "d2"]
ACTION = "/arm_controller/follow_joint_trajectory"


@pytest.mark.skipif(
    importlib.util.find_spec("control_msgs") is not None, reason="control_msgs is installed"
)
def test_without_control_msgs_forwarding_goals_is_refused_in_one_line():
    assert "control_msgs installed" in refusal({"follow_joint_trajectory": ACTION})


class Controller:
    """The action server of a trajectory controller: it keeps goals until a test says what becomes
    of them."""

    def __init__(self, partner: Partner):
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionServer, CancelResponse, GoalResponse

        self.action = FollowJointTrajectory
        self.accepts = True
        self.goals: list = []
        self.cancelled = 0
        self.server = ActionServer(
            partner.node,
            FollowJointTrajectory,
            ACTION,
            lambda _: None,
            goal_callback=lambda _: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
            handle_accepted_callback=self.goals.append,
            cancel_callback=self._on_cancel,
        )
        self._accept = CancelResponse.ACCEPT

    def _on_cancel(self, _goal):
        self.cancelled += 1
        return self._accept

    def finish(self, how: str, **result) -> None:
        def done(handle):
            getattr(handle, how)()
            return self.action.Result(**result)

        self.goals[-1].execute(done)


@pytest.fixture(scope="module")
def node():
    pytest.importorskip("control_msgs", reason="SKIPPED LOUDLY: control_msgs is not installed")
    from rclpy.action import ActionClient

    values = {"description": POLAR, "command_timeout": 0.0, "max_age": 20.0}
    with Partner(follow_joint_trajectory=ACTION, missing_accelerations="zero", **values) as partner:
        partner.controller = Controller(partner)
        partner.client = ActionClient(
            partner.node,
            partner.controller.action,
            "/feed_forward/follow_joint_trajectory",
        )
        partner.until(partner.client.server_is_ready, "the action")
        yield partner
        partner.client.destroy()


def trajectory() -> JointTrajectory:
    points = [point(0.0, [0.0, 0.5], [0.0, 0.0], [1.0, 0.0])]
    points += [point(1.0, [0.4, 0.6], [0.0, 0.0], [0.0, 0.0])]
    return JointTrajectory(joint_names=NAMES, points=points)


def sent(node, message=None):
    """(goal handle, future of the result, feedback that comes) of a goal, as accepted."""
    feedback: list = []
    before = len(node.controller.goals)
    goal = node.controller.action.Goal(trajectory=message or trajectory())
    handles: list = []

    def send():
        future = node.client.send_goal_async(goal, feedback_callback=feedback.append)
        node.until(future.done, "an answer to the goal")
        handles.append(future.result())
        return handles[-1].accepted

    # the node may not have found the controller yet
    node.until(send, "the goal to be accepted")
    result = handles[-1].get_result_async()
    node.until(lambda: len(node.controller.goals) > before, "the goal at the controller")
    return handles[-1], result, feedback


def test_a_goal_reaches_the_controller_with_effort_and_its_result_comes_back(node):
    from action_msgs.msg import GoalStatus

    _, result, feedback = sent(node)
    there = node.controller.goals[-1]
    dynamics = rd.InverseDynamics(rd.load(POLAR))
    effort = [each.effort.tolist() for each in there.request.trajectory.points]
    np.testing.assert_allclose(effort[0], dynamics([0.0, 0.5], [0.0, 0.0], [1.0, 0.0]))
    np.testing.assert_allclose(effort[1], dynamics([0.4, 0.6], [0.0, 0.0], [0.0, 0.0]), atol=1e-12)
    told = node.controller.action.Feedback(joint_names=["here"])
    node.until(lambda: feedback, "feedback", meanwhile=lambda: there.publish_feedback(told))
    assert feedback[0].feedback == told
    assert not result.done(), "it is over when the controller says so"
    node.controller.finish("succeed", error_string="there")
    node.until(result.done, "the result")
    assert result.result().status == GoalStatus.STATUS_SUCCEEDED
    assert result.result().result.error_string == "there"


def test_a_goal_that_fails_or_is_cancelled_there_ends_so_here(node):
    from action_msgs.msg import GoalStatus

    _, result, _ = sent(node)
    node.controller.finish("abort", error_code=-4, error_string="off the path")
    node.until(result.done, "the result")
    assert result.result().status == GoalStatus.STATUS_ABORTED
    assert result.result().result.error_code == -4

    handle, result, _ = sent(node)
    asked = handle.cancel_goal_async()
    node.until(lambda: asked.done() and node.controller.cancelled, "the cancelling")
    node.controller.finish("canceled")
    node.until(result.done, "the result")
    assert result.result().status == GoalStatus.STATUS_CANCELED


def test_a_goal_that_is_no_motion_or_that_the_controller_rejects_is_not_followed(node):
    from action_msgs.msg import GoalStatus

    before = len(node.controller.goals)
    goal = node.controller.action.Goal(trajectory=JointTrajectory(joint_names=NAMES))
    future = node.client.send_goal_async(goal)
    node.until(future.done, "an answer to the goal")
    assert not future.result().accepted
    node.until(lambda: "goal dropped: there are no points" in node.log, "a line about it")

    node.controller.accepts = False
    future = node.client.send_goal_async(node.controller.action.Goal(trajectory=trajectory()))
    node.until(future.done, "an answer to the goal")
    result = future.result().get_result_async()
    node.until(result.done, "the result")
    assert result.result().status == GoalStatus.STATUS_ABORTED
    assert "rejected" in result.result().result.error_string
    assert len(node.controller.goals) == before
    node.controller.accepts = True


@pytest.mark.parametrize("topic", ["controller_state", "reference"])
def test_what_a_controller_wants_is_a_command(node, topic):
    from control_msgs.msg import JointTrajectoryControllerState, MultiDOFCommand

    kind = JointTrajectoryControllerState if topic == "controller_state" else MultiDOFCommand
    wanted = [3.0, -1.0] if topic == "controller_state" else [0.0, 0.0]
    q, qd = [0.3, 0.7], [0.2, 0.1]
    expected = rd.InverseDynamics(rd.load(POLAR))(q, qd, wanted)
    out = node.node.create_publisher(kind, f"/feed_forward/{topic}", 10)

    def publish():
        if kind is MultiDOFCommand:
            message = MultiDOFCommand(dof_names=NAMES, values=[0.1, 0.2], values_dot=[0.0, 0.0])
        else:
            message = kind(joint_names=NAMES, reference=point(5.0, [0.1, 0.2], [0.0, 0.0], wanted))
            message.header.stamp = node.node.get_clock().now().to_msg()
        out.publish(message)
        node.state({name: (q[k], qd[k]) for k, name in enumerate(NAMES)})

    node.commands.clear()
    node.until(
        lambda: any(np.allclose(each, expected, 1e-12) for each in node.commands[-3:]),
        f"torques {expected}",
        meanwhile=publish,
    )
    node.node.destroy_publisher(out)


@pytest.mark.parametrize("comes_back", [True, False])
def test_goals_of_a_controller_that_has_gone_are_given_up(node, comes_back):
    _, result, _ = sent(node)
    node.controller.server.destroy()
    if comes_back:  # it knows nothing of the goal
        node.controller = Controller(node)
    node.until(result.done, "the result")
    assert "is no longer available" in result.result().result.error_string
