"""A robot under ros2_control with its feed-forward torques, to copy.

    ros2 launch robot_dynamics ros2_control.launch.py robot:=six_axis rviz:=true

The default hardware is ros2_control's own stand-in, which stands still whatever torques it gets: it
shows that everything is connected. Needs ros2_control, ros2_controllers and robot_state_publisher.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.conditions import IfCondition
from launch.substitutions import Command, FindExecutable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("robot_dynamics")
    robot = LaunchConfiguration("robot")
    controllers = [share, "/controllers/", robot, ".yaml"]
    xacro = [share, "/urdf/", robot, ".urdf.xacro"]
    hardware = LaunchConfiguration("hardware")
    urdf = Command([FindExecutable(name="xacro"), " ", *xacro, " hardware:=", hardware])
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
            # publishes robot_description, which the three others take
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                parameters=[{"robot_description": ParameterValue(urdf, value_type=str)}],
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
            IncludeLaunchDescription(
                PathJoinSubstitution([share, "launch", "robot.launch.py"]),
                launch_arguments={
                    "description": "",
                    "rviz": "false",
                    "controller": "effort_controller",
                    "params_file": LaunchConfiguration("params_file"),
                }.items(),
            ),
            Node(
                package="rviz2",
                executable="rviz2",
                arguments=[
                    "--display-config",
                    PathJoinSubstitution([share, "rviz", "robot.rviz"]),
                    "--fixed-frame",
                    "world",
                ],
                condition=IfCondition(LaunchConfiguration("rviz")),
            ),
        ]
    )
