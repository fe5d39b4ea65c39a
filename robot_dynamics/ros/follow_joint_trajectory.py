# SPDX-License-Identifier: Apache-2.0
"""The action `~/follow_joint_trajectory`, which forwards goals, with effort, to a controller.

    planner                    this node                   controller
    goal           ──→  effort filled in, or rejected  ──→  goal
    feedback       ←──            as it is             ←──  feedback
    cancel         ──→                                 ──→  cancel
    result, state  ←──            as they are          ←──  result, state

Import this module only if the action is used: it needs control_msgs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from ..errors import RobotDynamicsError
from .feed_forward.refusal import RefusedError, Tally

GONE = 20
"""Number of consecutive checks without the action server that a goal was sent to after which it is
aborted"""


class GoalForwarding:
    """An action server that forwards its goals to a controller's action server.

    Args:
        node: the node of this action server.
        action: the controller's action.
        fill: sets the effort of the points of a JointTrajectory.
        tally: counts and logs goals that are not forwarded.
    """

    def __init__(
        self,
        node: Node,
        action: str,
        fill: Callable[[Any], None],
        tally: Tally,
    ):
        self._node, self._action, self._fill, self._tally = node, action, fill, tally
        self._client = ActionClient(node, FollowJointTrajectory, action)
        self._goals: list[_Goal] = []
        self._server = ActionServer(
            node,
            FollowJointTrajectory,
            "~/follow_joint_trajectory",
            _never,
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )

    def watch(self) -> None:
        """Abort the goals of a controller that no longer exists, even if it was started again; to
        be called periodically."""
        self._goals = [goal for goal in self._goals if not goal.over]
        servers = self._servers() if self._goals else set()
        for goal in self._goals:
            goal.absent = 0 if goal.servers & servers else goal.absent + 1
            if goal.absent >= GONE:
                goal.give_up(f"the controller's action {self._action} is no longer available")

    def _servers(self) -> set[bytes]:
        """The action servers that exist now, by their publishers of the goals' status."""
        found = self._node.get_publishers_info_by_topic(f"{self._action}/_action/status")
        return {bytes(each.endpoint_gid) for each in found}

    def destroy(self) -> None:
        """Destroy the action server and the client."""
        self._server.destroy()
        self._client.destroy()

    def _on_goal(self, goal: Any) -> GoalResponse:
        try:
            if not self._client.server_is_ready():
                raise RefusedError(
                    "no controller",
                    f"there is no action {self._action}; start the controller, or correct the "
                    "parameter follow_joint_trajectory",
                )
            self._fill(goal.trajectory)
        except RobotDynamicsError as error:
            self._tally.refuse("goal", error)
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: Any) -> None:
        self._goals.append(_Goal(handle, self._client, self._servers()))

    def _on_cancel(self, handle: Any) -> CancelResponse:
        for goal in self._goals:
            if goal.handle == handle:
                goal.cancel()
        return CancelResponse.ACCEPT


def _never(_handle: Any) -> Any:
    # a goal ends when the controller's goal ends; nothing is executed here
    raise AssertionError


class _Goal:
    """A goal of this action server and the corresponding goal of the controller's.

    Args:
        handle: the goal here.
        client: sends the goal to the controller.
        servers: those that exist now, one of which gets it.
    """

    def __init__(self, handle: Any, client: ActionClient, servers: set[bytes]):
        self.handle, self.servers = handle, servers
        self.over = False
        self.absent = 0
        self._there: Any = None
        self._cancelled = False
        sent = client.send_goal_async(handle.request, feedback_callback=self._on_feedback)
        sent.add_done_callback(self._on_answer)

    def cancel(self) -> None:
        """Cancel the controller's goal; its result follows."""
        self._cancelled = True
        if self._there is not None:
            self._there.cancel_goal_async()

    def give_up(self, why: str) -> None:
        """Abort the goal, as no result will come."""
        code = FollowJointTrajectory.Result.INVALID_GOAL
        result = FollowJointTrajectory.Result(error_code=code, error_string=why)
        self._finish(GoalStatus.STATUS_ABORTED, result)

    def _on_answer(self, future: Any) -> None:
        self._there = future.result()
        if not self._there.accepted:
            self.give_up("the controller rejected the goal; its log says why")
            return
        self._there.get_result_async().add_done_callback(self._on_result)
        if self._cancelled:
            self._there.cancel_goal_async()

    def _on_feedback(self, message: Any) -> None:
        if not self.over:
            self.handle.publish_feedback(message.feedback)

    def _on_result(self, future: Any) -> None:
        answer = future.result()
        self._finish(answer.status, answer.result)

    def _finish(self, status: int, result: Any) -> None:
        if self.over:
            return
        self.over = True

        def finish(handle: Any) -> Any:
            if status == GoalStatus.STATUS_SUCCEEDED:
                handle.succeed()
            elif status == GoalStatus.STATUS_CANCELED and handle.is_cancel_requested:
                handle.canceled()
            else:
                handle.abort()
            return result

        self.handle.execute(finish)
