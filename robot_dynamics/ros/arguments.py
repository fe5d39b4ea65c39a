"""What a command line says beside ROS's arguments: nothing, or it is answered at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..errors import one_line, shown

USAGE = """usage: {name} --ros-args [-p PARAMETER:=VALUE ...] [--params-file FILE] [-r FROM:=TO ...]

  {name} --ros-args -p description:=/path/to/robot.urdf
  {name} --ros-args -r ~/commands:=/effort_controller/commands
                                     (the robot comes from robot_description)

Parameters and topics are in docs/node.md; `ros2 param list` and `ros2 param describe` tell them of
a node that runs."""


def answered(name: str, arguments: Sequence[str] | None) -> int | None:
    """Answer what are no arguments of ROS's.

    Args:
        name: of the executable.
        arguments: of the command line; None: those of the process.

    Returns:
        the exit code; None where there is nothing to answer.
    """
    own = _own(sys.argv[1:] if arguments is None else arguments)
    if not own:
        return None
    if {"--help", "-h"} & set(own):
        print(USAGE.format(name=name))
        return 0
    first = own[0]
    if first.startswith("-") or ":=" in first:
        hint = f"arguments of ROS's stand behind --ros-args: {name} --ros-args {' '.join(own)}"
    else:
        hint = f"a robot is a parameter: {name} --ros-args -p description:={first}"
    print(f"{name}: {shown(first)} is not understood; {one_line(hint)}", file=sys.stderr)
    return 2


def _own(arguments: Sequence[str]) -> list[str]:
    """Those that are not ROS's, which stand between --ros-args and --."""
    own, ros = [], False
    for each in arguments:
        if each == "--ros-args":
            ros = True
        elif each == "--":
            ros = False
        elif not ros:
            own.append(each)
    return own
