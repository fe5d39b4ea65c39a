# SPDX-License-Identifier: Apache-2.0
"""Feed-forward torques for any robot, and with sim:=true a simulated robot that receives them.

    ros2 launch robot_dynamics robot.launch.py description:=/path/to/robot.urdf

Without a description, the node takes the robot from the topic `robot_description`.
"""

from launch import LaunchDescription

from robot_dynamics.ros.launching import launch_description


def generate_launch_description() -> LaunchDescription:
    return launch_description()
