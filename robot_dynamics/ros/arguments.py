# SPDX-License-Identifier: Apache-2.0
"""Responds to command-line arguments that are not ROS arguments, with help or an error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..errors import one_line, shown

USAGE = """usage: {name} --ros-args [-p PARAMETER:=VALUE ...] [--params-file FILE] [-r FROM:=TO ...]

{examples}

`ros2 param list` and `ros2 param describe` show the parameters of a running node; they and the
topics of feed_forward are in docs/node.md."""

EXAMPLES = {
    "feed_forward": (
        "-p description:=/path/to/robot.urdf",
        "-r ~/commands:=/effort_controller/commands   # the robot comes from robot_description",
    ),
    "simulated_robot": (
        "-p description:=/path/to/robot.urdf -r ~/commands:=/effort_controller/commands",
    ),
    "trajectory_source": (
        "-p file:=/path/to/motion.yaml -r joint_trajectory:=/feed_forward/command",
    ),
    "watch": ("-p link:=tool0 -r ~/robot_description:=/robot_description",),
}

_PATHS = {"trajectory_source": ("a motion", "file")}


def answered(name: str, arguments: Sequence[str] | None) -> int | None:
    """Respond to arguments that are not ROS arguments.

    Args:
        name: the executable's name, one of `EXAMPLES`.
        arguments: the command line's arguments; None: those of the process.

    Returns:
        the exit code, or None if there are no such arguments.
    """
    own = _own(sys.argv[1:] if arguments is None else arguments)
    if not own:
        return None
    if {"--help", "-h"} & set(own):
        lines = (f"  {name} --ros-args {example}" for example in EXAMPLES[name])
        print(USAGE.format(name=name, examples="\n".join(lines)))
        return 0
    first = own[0]
    if first[0] == "-":
        hint = f"put ROS arguments after --ros-args: {name} --ros-args {' '.join(own)}"
    elif ":=" in first:
        # this form is valid in ROS 1 and for `ros2 launch`
        flag = "-r" if first[0] in "/~_" else "-p"
        hint = f"set a parameter with -p, remap a name with -r: {name} --ros-args {flag} {first}"
    else:
        what, parameter = _PATHS.get(name, ("a robot", "description"))
        hint = f"{what} is a parameter: {name} --ros-args -p {parameter}:={first}"
    print(f"{name}: {shown(first)} is not understood; {one_line(hint)}", file=sys.stderr)
    return 2


def _own(arguments: Sequence[str]) -> list[str]:
    """The arguments outside the ROS arguments, which stand between --ros-args and --."""
    own, ros = [], False
    for each in arguments:
        if each == "--ros-args":
            ros = True
        elif each == "--":
            ros = False
        elif not ros:
            own.append(each)
    return own
