# SPDX-License-Identifier: Apache-2.0
"""Trajectories on their way to a controller with feedback of its own: their points get torques.

planner  ──→  ~/trajectory_in   ──→  ~/trajectory_out  ──→  joint_trajectory_controller
         ──→  ~/follow_joint_trajectory (an action)  ──→  that of the controller

A long one takes its time. All of it (a message out of bytes, the torques, bytes out of the message)
is done beside the control loop; the answer goes out at the node's next look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory

from ..errors import RobotDynamicsError
from .feed_forward.background import Beside
from .feed_forward.process import unexpected
from .feed_forward.refusal import RefusedError

DEPTH = 10

MOST_WAITING = 10
"""Trajectories that may wait for their torques"""

CLOSING = 1.0
"""s that the end waits for the trajectory that is being filled"""

Fill = Callable[[Any], str]
"""Gives the points of a JointTrajectory their effort; a remark, or empty"""


class TrajectoryEffort:
    """The topics `~/trajectory_in` and `~/trajectory_out`, and what fills all trajectories.

    Args:
        node: theirs.
        filler: gives what fills a trajectory that comes now, in any thread.
        robot: whose torques they are; those of another one than now are not passed on.
        note: called with remarks.
        refuse: called with the reason if one is not forwarded.
        group: of the subscription.
    """

    def __init__(
        self,
        node: Node,
        filler: Callable[[], Fill],
        robot: Callable[[], object],
        note: Callable[[str], None],
        refuse: Callable[[str, RobotDynamicsError], None],
        group: Any,
    ):
        self._filler, self._robot, self._note, self._refuse = filler, robot, note, refuse
        self._beside = Beside()
        node.create_subscription(
            JointTrajectory,
            "~/trajectory_in",
            self._on_trajectory,
            DEPTH,
            callback_group=group,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            raw=True,
        )
        self._out = node.create_publisher(
            JointTrajectory,
            "~/trajectory_out",
            DEPTH,
            event_callbacks=PublisherEventCallbacks(use_default_callbacks=False),
        )

    def poll(self) -> None:
        """To be called again and again: sends on what was filled."""
        self._beside.poll()

    def close(self) -> None:
        """Fill no more."""
        self._beside.close(CLOSING)

    def fill(self, trajectory: JointTrajectory) -> None:
        """Fill one at once, in the loop: a goal is answered before anything else happens.

        Raises:
            RobotDynamicsError: it is no motion of this robot.
        """
        if remark := self._filler()(trajectory):
            self._note(remark)

    def _on_trajectory(self, data: bytes) -> None:
        def filled(fill: Fill) -> tuple[bytes, str]:
            message = deserialize_message(data, JointTrajectory)
            remark = fill(message)
            return serialize_message(message), remark

        def send(result: Any) -> None:
            try:
                message, remark = _unless_error(result)
            except RobotDynamicsError as error:
                self._refuse("trajectory_in", error)
                return
            if remark:
                self._note(remark)
            self._out.publish(message)

        try:
            self._begin(filled, send)
        except RobotDynamicsError as error:
            self._refuse("trajectory_in", error)

    def _begin(self, work: Callable[[Fill], Any], then: Callable[[Any], None]) -> None:
        """`then` gets the result of `work`, or the error that it has raised.

        Raises:
            RobotDynamicsError: there is no robot, or too many wait.
        """
        if self._beside.waiting >= MOST_WAITING:
            raise RefusedError(
                "too many", f"{MOST_WAITING} trajectories are already waiting; send it again"
            )
        fill, robot = self._filler(), self._robot()

        def unless_overtaken(result: Any) -> None:
            if self._robot() != robot:
                result = RefusedError(
                    "overtaken",
                    "the robot, its payload or the node's state changed while it was filled; send "
                    "it again",
                )
            then(result)

        def safely() -> Any:
            try:
                return work(fill)
            except RobotDynamicsError as error:
                return error.with_traceback(None)
            # whatever it is: the others have their turn
            except Exception as error:  # noqa: BLE001
                return unexpected(error)

        self._beside.add(safely, unless_overtaken)


def _unless_error(result: Any) -> Any:
    if isinstance(result, RobotDynamicsError):
        raise result
    return result
