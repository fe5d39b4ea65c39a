# SPDX-License-Identifier: Apache-2.0
"""The six-axis arm: robot.launch.py with this robot's description."""

from launch import LaunchDescription

from robot_dynamics.ros.launching import launch_description


def generate_launch_description() -> LaunchDescription:
    return launch_description("urdf/six_axis.urdf")
