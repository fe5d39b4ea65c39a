# SPDX-License-Identifier: Apache-2.0
"""An example to copy: a robot in Gazebo under ros2_control, with feed-forward torques.

    ros2 launch robot_dynamics gazebo.launch.py robot:=six_axis

Gazebo adds no gravity compensation or damping of its own, so the node computes all terms. Needs
ros_gz_sim, ros_gz_bridge, gz_ros2_control, ros2_controllers and robot_state_publisher.

If feed_forward crashes, Gazebo and the controllers continue: the launch publishes zero torques in
its place and restarts it. The node then publishes nothing until it receives a new command.
"""

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
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
                "gz_args", default_value="-r empty.sdf", description="of Gazebo: world, -s, -v …"
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=PathJoinSubstitution([share, "config", "feed_forward.yaml"]),
                description="parameters of feed_forward",
            ),
            DeclareLaunchArgument("rviz", default_value="false", choices=["true", "false"]),
            OpaqueFunction(function=bring_up),
        ]
    )


def bring_up(context: LaunchContext) -> list:
    share = get_package_share_directory("robot_dynamics")
    robot = LaunchConfiguration("robot").perform(context)
    controllers = f"{share}/controllers/{robot}.yaml"
    xacro = f"{share}/urdf/{robot}.urdf.xacro hardware:=gz_ros2_control/GazeboSimSystem"
    urdf = Command([FindExecutable(name="xacro"), " ", xacro, f" controllers:={controllers}"])
    description = ParameterValue(urdf.perform(context), value_type=str)
    use_sim_time = {"use_sim_time": True}
    # spawns the robot in Gazebo's world, as soon as Gazebo is running
    robot_in_world = Node(
        package="ros_gz_sim",
        executable="create",
        arguments=["-topic", "robot_description", "-name", robot],
        output="screen",
    )
    spawner = Node(
        package="controller_manager",
        executable="spawner",
        arguments=["joint_state_broadcaster", "effort_controller", "--param-file", controllers],
    )
    return nodes(
        context,
        IncludeLaunchDescription(
            PathJoinSubstitution([FindPackageShare("ros_gz_sim"), "launch", "gz_sim.launch.py"]),
            launch_arguments={"gz_args": LaunchConfiguration("gz_args")}.items(),
        ),
        Node(
            package="ros_gz_bridge",
            executable="parameter_bridge",
            arguments=["/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock"],
        ),
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            parameters=[use_sim_time, {"robot_description": description}],
        ),
        robot_in_world,
        # the controller manager starts with the robot
        RegisterEventHandler(OnProcessExit(target_action=robot_in_world, on_exit=[spawner])),
        Node(
            package="rviz2",
            executable="rviz2",
            arguments=["--display-config", f"{share}/rviz/robot.rviz", "--fixed-frame", "world"],
            parameters=[use_sim_time],
            condition=IfCondition(LaunchConfiguration("rviz")),
        ),
        # the last two are plugins, in controllers/*.yaml
        packages=[
            "ros_gz_sim",
            "gz_ros2_control",
            "controller_manager",
            "joint_state_broadcaster",
            "forward_command_controller",
        ],
        # feed_forward itself
        description="",
        rviz="false",
        controller="effort_controller",
        use_sim_time="true",
        respawn="true",
    )
