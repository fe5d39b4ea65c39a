# SPDX-License-Identifier: Apache-2.0
"""Converts ros2_control messages with a controller's current reference to commands of one point.

- `~/controller_state`, control_msgs/JointTrajectoryControllerState: its `reference`;
- `~/reference`, control_msgs/MultiDOFCommand: positions and rates.

Import this module only if control_msgs is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from control_msgs.msg import JointTrajectoryControllerState, MultiDOFCommand
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


def subscribe(node: Node, command: Callable[[Any], None], group: Any) -> None:
    """Subscribe to both topics.

    Args:
        node: the node that subscribes.
        command: called with each resulting JointTrajectory of one point.
        group: the callback group of the subscriptions.
    """

    def listen(kind: Any, topic: str, converted: Callable[[Any], JointTrajectory]) -> None:
        node.create_subscription(
            kind,
            topic,
            lambda message: command(converted(message)),
            qos_profile_sensor_data,
            callback_group=group,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
        )

    listen(JointTrajectoryControllerState, "~/controller_state", from_state)
    listen(MultiDOFCommand, "~/reference", from_dofs)


def from_state(message: Any) -> JointTrajectory:
    """The reference of a JointTrajectoryControllerState, with its stamp."""
    reference = message.reference
    point = JointTrajectoryPoint(
        positions=reference.positions,
        velocities=reference.velocities,
        accelerations=reference.accelerations,
    )
    return JointTrajectory(header=message.header, joint_names=message.joint_names, points=[point])


def from_dofs(message: Any) -> JointTrajectory:
    """The values and rates of a MultiDOFCommand."""
    point = JointTrajectoryPoint(positions=message.values, velocities=message.values_dot)
    return JointTrajectory(joint_names=message.dof_names, points=[point])
