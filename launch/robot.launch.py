"""Feed-forward torques for any robot, and with sim:=true a simulated robot to take them.

    ros2 launch robot_dynamics robot.launch.py description:=/path/to/robot.urdf

With no description the node takes the robot from the topic `robot_description`.
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

PARAMETERS = PathJoinSubstitution(
    [FindPackageShare("robot_dynamics"), "config", "feed_forward.yaml"]
)


def generate_launch_description() -> LaunchDescription:
    def argument(name, default, description, **more):
        return DeclareLaunchArgument(name, default_value=default, description=description, **more)

    yes_or_no = {"choices": ["true", "false", "True", "False"]}
    return LaunchDescription(
        [
            argument("description", "", "path or package:// URL; empty: topic robot_description"),
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
            OpaqueFunction(function=nodes),
        ]
    )


def nodes(context: LaunchContext) -> list[Node]:
    """The nodes, once the arguments have their values."""

    def value(name):
        return LaunchConfiguration(name).perform(context)

    # an empty argument leaves to the parameter file what is said there
    chosen = {
        name: ParameterValue(value(name), value_type=str)
        for name in ("description", "formulation")
        if value(name)
    }
    description = {key: chosen[key] for key in chosen if key == "description"}
    use_sim_time = {"use_sim_time": value("use_sim_time").lower() == "true"}
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
    if value("sim").lower() == "true":
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
