# SPDX-License-Identifier: Apache-2.0
"""Shared by the launch files: the node for any robot, and a simulated robot that receives its
torques.

For launch files only, as it needs ROS's `launch`.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import rclpy
from launch import Action, LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, TimerAction
from launch.events.process import ProcessExited
from launch.logging import get_logger
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch.substitutions.substitution_failure import SubstitutionFailure
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import ExecutableInPackage, FindPackagePrefix, FindPackageShare
from launch_ros.utilities import make_namespace_absolute, prefix_namespace
from std_msgs.msg import Float64MultiArray

from ..description import load
from ..description.fields import DescriptionWarning
from ..description.urdf_writer import urdf
from ..errors import listed
from .torque_topics import NEWEST, REPETITION

PARAMETERS = PathJoinSubstitution(
    [FindPackageShare("robot_dynamics"), "config", "feed_forward.yaml"]
)

RVIZ = PathJoinSubstitution([FindPackageShare("robot_dynamics"), "rviz", "robot.rviz"])

RESPAWN_DELAY = 1.0
"""s from the exit of a node to its restart"""

LAST_LINES = 0.5
"""s from the exit of a node to the end of the launch, which may show the node's last lines later
than its exit: they give the reason"""

RELEASE = 0.5
"""s for which zeros are published in place of a node that has crashed"""


def launch_description(file: str = "", *, loops: bool = False) -> LaunchDescription:
    """The return value of a launch file's `generate_launch_description`.

    Args:
        file: the description of a shipped robot, such as `config/polar.yaml`; empty: the launch
            argument `description` selects the robot.
        loops: does it have loops? Then `sensed` is a launch argument.
    """

    def argument(name: str, default: Any, description: str, **more: Any) -> DeclareLaunchArgument:
        return DeclareLaunchArgument(name, default_value=default, description=description, **more)

    yes_or_no = {"choices": ["true", "false", "True", "False"]}
    maybe = {"choices": ["", *yes_or_no["choices"]]}
    levels = {"choices": ["debug", "info", "warn", "error", "fatal"]}
    arguments = [
        argument(
            "description",
            f"package://robot_dynamics/{file}" if file else "",
            "path or package:// URL; empty: topic robot_description",
        ),
        argument(
            "formulation",
            "",
            "formulation of the inverse dynamics; empty: the value in params_file",
        ),
        argument(
            "controller",
            "effort_controller",
            "ros2_control's effort controller: torques go to <controller>/commands",
        ),
        argument("namespace", "", "namespace of the nodes and of the controller"),
        argument(
            "base_imu",
            "",
            "topic of an IMU on a moving base; empty: <node>/base_imu",
        ),
        argument("params_file", PARAMETERS, "parameters of the nodes"),
        argument("sim", "false", "start a simulated robot in place of a real one", **yes_or_no),
        argument(
            "use_sim_time",
            LaunchConfiguration("sim"),
            "use the time on /clock; default: the value of sim",
            **yes_or_no,
        ),
        argument(
            "publish_clock",
            "",
            "with sim: publish /clock (only one robot may); empty: the value in params_file, "
            "otherwise use_sim_time",
            **maybe,
        ),
        argument("rviz", "false", "show the robot in RViz", **yes_or_no),
        argument("log_level", "info", "log level of the nodes", **levels),
        argument(
            "respawn",
            "false",
            "restart a node whenever it exits, instead of ending the launch if it fails",
            **yes_or_no,
        ),
    ]
    if loops or not file:
        arguments.append(
            argument(
                "sensed",
                "",
                "read and monitor the sensors on passive joints; empty: the value in params_file",
                **maybe,
            )
        )
    return LaunchDescription([*arguments, OpaqueFunction(function=nodes)])


def nodes(
    context: LaunchContext, *others: Action, packages: Iterable[str] = (), **chosen_here: str
) -> list[Action]:
    """The nodes for the values of the launch arguments, and other actions to start with them.

    Args:
        context: has the values of the launch arguments.
        others: started after the nodes.
        packages: what else has to be installed: plugins, and what is started later.
        chosen_here: values of arguments of `launch_description` that replace the command line's.

    Raises:
        RuntimeError: something is missing; nothing has been started.
    """
    ours, release = composed(context, chosen_here)
    check_installed(context, [*ours, *others], packages)
    release.watch()
    return [*ours, *others]


def composed(
    context: LaunchContext, chosen_here: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[Node], Release]:
    """The nodes, and the object that removes their torques after a crash; see `nodes`.

    Args:
        context: has the values of the launch arguments.
        chosen_here: as in `nodes`.

    Raises:
        RuntimeError: the parameter file does not exist.
    """

    def value(name: str) -> str:
        if name in chosen_here:
            return chosen_here[name]
        return str(LaunchConfiguration(name, default="").perform(context))

    def is_true(name: str) -> bool:
        return value(name).lower() == "true"

    # an empty argument leaves the parameter file's value in effect
    chosen: dict[str, Any] = {
        name: ParameterValue(value(name), value_type=str)
        for name in ("description", "formulation")
        if value(name)
    }
    simulated = {key: chosen[key] for key in chosen if key == "description"}
    for name, parameters in (("sensed", chosen), ("publish_clock", simulated)):
        if value(name):
            parameters[name] = is_true(name)
    use_sim_time = {"use_sim_time": is_true("use_sim_time")}
    efforts = f"{value('controller')}/commands"
    remapped = [("~/commands", efforts)]
    if value("base_imu"):
        remapped.append(("~/base_imu", value("base_imu")))
    level = value("log_level") or "info"
    # as the node resolves it, which may also be in a namespace that was pushed around the launch
    pushed = context.launch_configurations.get("ros_namespace")
    there = prefix_namespace(prefix_namespace(pushed, value("namespace")), efforts)
    release = Release(make_namespace_absolute(there))
    common = {"namespace": value("namespace"), "output": "screen"}
    ours = {
        **common,
        "package": "robot_dynamics",
        "ros_arguments": [] if level == "info" else ["--log-level", level],
        "respawn": is_true("respawn"),
        "respawn_delay": RESPAWN_DELAY,
    }
    last = release.after_a_crash if is_true("respawn") else release.then_end
    from_file = [value("params_file")] if value("params_file") else []
    for file in from_file:
        # launch would only warn and start the nodes with their defaults, with which gravity might
        # be compensated twice
        if not Path(file).is_file():
            raise RuntimeError(f"params_file: {file}: no such file")
    started = [
        Node(
            executable="feed_forward",
            name="feed_forward",
            parameters=[*from_file, use_sim_time, chosen],
            remappings=remapped,
            on_exit=last,
            **ours,
        )
    ]
    if is_true("sim"):
        # a trajectory on feed_forward/command is for both the robot and its feed-forward
        clock = {"publish_clock": use_sim_time["use_sim_time"]}
        started.append(
            Node(
                executable="simulated_robot",
                name="simulated_robot",
                parameters=[clock, *from_file, use_sim_time, simulated],
                remappings=[
                    ("~/commands", efforts),
                    ("~/joint_trajectory", "feed_forward/command"),
                ],
                on_exit=None if is_true("respawn") else _ended,
                **ours,
            )
        )
    if is_true("rviz"):
        started += _seen(value("description"), use_sim_time, common)
    return started, release


def check_installed(
    context: LaunchContext, actions: Iterable[Action], packages: Iterable[str] = ()
) -> None:
    """Check that everything is installed that these actions and packages need.

    Processes that a launch has started survive if it ends by an error, so this check is made before
    the first start.

    Args:
        context: has the values of the launch arguments.
        actions: the actions whose executables are needed.
        packages: packages that are needed for anything else.

    Raises:
        RuntimeError: something is missing.
    """
    needed: list[FindPackagePrefix] = [FindPackagePrefix(name) for name in packages]
    for each in actions:
        if isinstance(each, Node) and (each.condition is None or each.condition.evaluate(context)):
            needed.append(ExecutableInPackage(each.node_executable, each.node_package))
    missing = []
    for one in needed:
        try:
            one.perform(context)
        except (LookupError, SubstitutionFailure) as error:  # no such package or executable
            missing.append(str(error.args[0]).partition(", searching")[0])
    if missing:
        raise RuntimeError(f"{listed(dict.fromkeys(missing))}; install it (nothing was started)")


@cache
def _ros_node() -> Any:
    """The launch's node, which works until the launch's process exits and needs no thread.

    launch_ros has one with a thread that a second Ctrl-C may leave behind: then the launch does not
    end, or aborts. And it ends before the nodes that it would have to replace.
    """
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    atexit.register(context.try_shutdown)
    # torque_topics.LAUNCH: its name says that it is no controller
    return rclpy.create_node(
        f"launch_ros_{os.getpid()}_torques",
        context=context,
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
    )


class Release:
    """Publishes zero torques in place of a node that has crashed, or reports that it cannot.

    ros2_control's effort controllers hold the last torques indefinitely. A node that ends or fails
    leaves the torques at rest; one that is killed or crashes leaves those of its motion.

    Args:
        topic: the topic of the torques.
    """

    def __init__(self, topic: str):
        self.topic = topic
        self._publisher: Any = None
        self._newest: Any = None

    def watch(self) -> None:
        """Start to listen, to know later whether torques were published, and how many values they
        have."""
        node = _ros_node()
        self._publisher = node.create_publisher(Float64MultiArray, self.topic, NEWEST)
        # the middleware keeps the newest message, which is only taken when it is needed
        self._newest = node.create_subscription(Float64MultiArray, self.topic, print, NEWEST)

    def after_a_crash(self, event: ProcessExited, _context: LaunchContext) -> None:
        """Handle the exit of a node that is restarted."""
        if event.returncode < 0:
            threading.Thread(target=self._publish_zeros).start()

    def then_end(self, event: ProcessExited, context: LaunchContext) -> list[Action]:
        """Handle the exit of a node whose failure ends the launch."""
        if event.returncode < 0:
            self._publish_zeros()
        return _ended(event, context)

    def _publish_zeros(self) -> None:
        with self._newest.handle:
            taken = self._newest.handle.take_message(Float64MultiArray, False)
        if taken is None:
            get_logger("robot_dynamics").warning(
                f"{self.topic}: the launch received no torques and cannot know their number, so "
                "it publishes no zeros; if any were sent, the controller still holds the last ones"
            )
            return
        end = time.monotonic() + RELEASE
        while time.monotonic() < end:
            self._publisher.publish(Float64MultiArray(data=[0.0] * len(taken[0].data)))
            time.sleep(REPETITION)


def _seen(description: str, use_sim_time: dict[str, bool], common: dict[str, Any]) -> list[Node]:
    """RViz, and a publisher of the description if it is not on the topic already."""
    publishers, frame = [], []
    if description:
        with warnings.catch_warnings():
            # what URDF cannot express is not visible anyway
            warnings.simplefilter("ignore", DescriptionWarning)
            robot = load(description)
            text = ParameterValue(urdf(robot), value_type=str)
        publishers = [
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                name="robot_state_publisher",
                parameters=[use_sim_time, {"robot_description": text}],
                **common,
            )
        ]
        frame = ["--fixed-frame", robot.base]
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        name="rviz2",
        arguments=["--display-config", RVIZ, *frame],
        parameters=[use_sim_time],
        **common,
    )
    return [*publishers, rviz]


def _ended(event: ProcessExited, _context: LaunchContext) -> list[Action]:
    """End the launch if a node fails; the launch then exits with 1."""
    if not event.returncode:
        return []

    def fail(_context: LaunchContext) -> None:
        # launch has no other way to set an exit code other than 0
        raise RuntimeError(f"{event.process_name} ended with exit code {event.returncode}")

    return [TimerAction(period=LAST_LINES, actions=[OpaqueFunction(function=fail)])]
