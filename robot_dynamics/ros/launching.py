"""What the launch files share: the node for any robot, and a simulated robot to take its torques.

For launch files only: needs ROS's `launch`.
"""

from __future__ import annotations

from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

PARAMETERS = PathJoinSubstitution(
    [FindPackageShare("robot_dynamics"), "config", "feed_forward.yaml"]
)


def launch_description(robot: str = "", *, loops: bool = False) -> LaunchDescription:
    """What a launch file's `generate_launch_description` returns.

    Args:
        robot: the name of a shipped robot's file in config/; none: an argument says which.
        loops: does it have loops? Then `sensed` is an argument.
    """

    def argument(name: str, default: Any, description: str, **more: Any) -> DeclareLaunchArgument:
        return DeclareLaunchArgument(name, default_value=default, description=description, **more)

    yes_or_no = {"choices": ["true", "false", "True", "False"]}
    arguments = [
        argument(
            "description",
            f"package://robot_dynamics/config/{robot}.yaml" if robot else "",
            "path or package:// URL; empty: topic robot_description",
        ),
        argument("formulation", "", "of the inverse dynamics; empty: as in params_file"),
        argument(
            "controller",
            "effort_controller",
            "ros2_control's effort controller: torques go to <controller>/commands",
        ),
        argument("namespace", "", "of the nodes and of the controller"),
        argument("params_file", PARAMETERS, "parameters of the nodes"),
        argument("sim", "false", "start a simulated robot in place of a real one", **yes_or_no),
        argument(
            "use_sim_time",
            LaunchConfiguration("sim"),
            "take the time from /clock; default: as sim",
            **yes_or_no,
        ),
    ]
    if loops or not robot:
        arguments.append(
            argument(
                "sensed",
                "",
                "read and watch the sensors on passive joints; empty: as in params_file",
                choices=["", *yes_or_no["choices"]],
            )
        )
    return LaunchDescription([*arguments, OpaqueFunction(function=_nodes)])


def _nodes(context: LaunchContext) -> list[Node]:
    """The nodes, once the arguments have their values."""

    def value(name: str) -> str:
        return str(LaunchConfiguration(name, default="").perform(context))

    def is_true(name: str) -> bool:
        return value(name).lower() == "true"

    # an empty argument leaves to the parameter file what is said there
    chosen: dict[str, Any] = {
        name: ParameterValue(value(name), value_type=str)
        for name in ("description", "formulation")
        if value(name)
    }
    description = {key: chosen[key] for key in chosen if key == "description"}
    if value("sensed"):
        chosen["sensed"] = is_true("sensed")
    use_sim_time = {"use_sim_time": is_true("use_sim_time")}
    efforts = f"{value('controller')}/commands"
    common = {
        "package": "robot_dynamics",
        "namespace": value("namespace"),
        "output": "screen",
    }
    from_file = [value("params_file")] if value("params_file") else []
    started = [
        Node(
            executable="feed_forward",
            name="feed_forward",
            parameters=[*from_file, use_sim_time, chosen],
            remappings=[("~/commands", efforts)],
            **common,
        )
    ]
    if is_true("sim"):
        # one trajectory on feed_forward/command moves the robot and its feed-forward alike
        started.append(
            Node(
                executable="simulated_robot",
                name="simulated_robot",
                parameters=[*from_file, {"publish_clock": True}, description],
                remappings=[
                    ("~/commands", efforts),
                    ("~/joint_trajectory", "feed_forward/command"),
                ],
                **common,
            )
        )
    return started
