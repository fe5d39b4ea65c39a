# SPDX-License-Identifier: Apache-2.0
"""Converts ros2_control messages with a controller's current reference to commands of one point.

- `~/controller_state`, control_msgs/JointTrajectoryControllerState: its `reference`;
- `~/reference`, control_msgs/MultiDOFCommand: positions and rates.

Import this module only if control_msgs is installed.
"""

from __future__ import annotations

from typing import Any

from control_msgs.msg import JointTrajectoryControllerState, MultiDOFCommand
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint


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


TOPICS = {
    "~/controller_state": (JointTrajectoryControllerState, from_state),
    "~/reference": (MultiDOFCommand, from_dofs),
}
"""By topic, the type of its messages and the function that converts one"""
