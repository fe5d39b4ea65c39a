"""Trajectories on their way to a controller with feedback of its own: their points get torques.

planner  ──→  ~/trajectory_in   ──→  ~/trajectory_out  ──→  joint_trajectory_controller
         ──→  ~/follow_joint_trajectory (an action)  ──→  that of the controller
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from ..errors import RobotDynamicsError

DEPTH = 10


class TrajectoryEffort:
    """The topics `~/trajectory_in` and `~/trajectory_out`.

    Args:
        node: theirs.
        fill: gives the points of a JointTrajectory their effort.
        refuse: is told why one is not passed on.
        group: of the subscription.
    """

    def __init__(
        self,
        node: Node,
        fill: Callable[[Any], None],
        refuse: Callable[[str, RobotDynamicsError], None],
        group: Any,
    ):
        self._fill, self._refuse = fill, refuse
        node.create_subscription(
            JointTrajectory,
            "~/trajectory_in",
            self._on_trajectory,
            DEPTH,
            callback_group=group,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
        )
        self._out = node.create_publisher(
            JointTrajectory,
            "~/trajectory_out",
            DEPTH,
            event_callbacks=PublisherEventCallbacks(use_default_callbacks=False),
        )

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            self._fill(message)
        except RobotDynamicsError as error:
            self._refuse("trajectory_in", error)
            return
        self._out.publish(message)
