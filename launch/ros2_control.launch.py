# SPDX-License-Identifier: Apache-2.0
"""An example to copy: a robot under ros2_control with feed-forward torques.

    ros2 launch robot_dynamics ros2_control.launch.py robot:=six_axis rviz:=true

The default hardware is ros2_control's mock component, which does not move, whatever torques it
receives: it shows that everything is connected. Needs ros2_control, ros2_controllers and
robot_state_publisher.

If feed_forward crashes, the controllers and the driver continue: the launch publishes zero torques
in its place and restarts it. The node then publishes nothing until it receives a new command.
"""

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import Command, FindExecutable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from robot_dynamics.ros.launching import nodes


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("robot_dynamics")
    return LaunchDescription(
        [
            DeclareLaunchArgument("robot", default_value="six_axis", choices=["polar", "six_axis"]),
            DeclareLaunchArgument(
                "hardware",
                default_value="mock_components/GenericSystem",
                description="ros2_control plugin of the robot's driver",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=PathJoinSubstitution([share, "config", "feed_forward.yaml"]),
                description="parameters of feed_forward: leave out of `terms` what the drive adds",
            ),
            DeclareLaunchArgument("rviz", default_value="false", choices=["true", "false"]),
            OpaqueFunction(function=bring_up),
        ]
    )


def bring_up(context: LaunchContext) -> list:
    share = get_package_share_directory("robot_dynamics")
    robot = LaunchConfiguration("robot").perform(context)
    controllers = f"{share}/controllers/{robot}.yaml"
    xacro = f"{share}/urdf/{robot}.urdf.xacro hardware:="
    urdf = Command([FindExecutable(name="xacro"), " ", xacro, LaunchConfiguration("hardware")])
    description = ParameterValue(urdf.perform(context), value_type=str)
    return nodes(
        context,
        # publishes robot_description, which the other three nodes read
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            parameters=[{"robot_description": description}],
        ),
        Node(
            package="controller_manager",
            executable="ros2_control_node",
            parameters=[controllers],
            remappings=[("~/robot_description", "/robot_description")],
            output="screen",
        ),
        Node(
            package="controller_manager",
            executable="spawner",
            arguments=[
                "joint_state_broadcaster",
                "effort_controller",
                "--param-file",
                controllers,
            ],
        ),
        Node(
            package="rviz2",
            executable="rviz2",
            arguments=["--display-config", f"{share}/rviz/robot.rviz", "--fixed-frame", "world"],
            condition=IfCondition(LaunchConfiguration("rviz")),
        ),
        # plugins, in controllers/*.yaml
        packages=["joint_state_broadcaster", "forward_command_controller"],
        # feed_forward itself
        description="",
        rviz="false",
        controller="effort_controller",
        respawn="true",
    )
