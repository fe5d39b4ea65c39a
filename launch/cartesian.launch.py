# SPDX-License-Identifier: Apache-2.0
"""The Cartesian robot: robot.launch.py with this robot's description."""

from launch import LaunchDescription

from robot_dynamics.ros.launching import launch_description


def generate_launch_description() -> LaunchDescription:
    return launch_description("config/cartesian.yaml")
