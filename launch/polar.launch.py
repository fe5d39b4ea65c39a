"""The polar robot: robot.launch.py, whose arguments it takes, with this robot's description."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription

DESCRIPTION = "package://robot_dynamics/config/polar.yaml"


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "description",
                default_value=DESCRIPTION,
                description="path or package:// URL of the robot",
            ),
            IncludeLaunchDescription(str(Path(__file__).with_name("robot.launch.py"))),
        ]
    )
