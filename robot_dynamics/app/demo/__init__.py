# SPDX-License-Identifier: Apache-2.0
"""Demos in which a simulated robot tracks the same motion with and without feed-forward torques."""

from __future__ import annotations

from pathlib import Path

from ...outputs import Output
from .robots import ROBOTS

DEMOS = tuple(ROBOTS)
"""The robots that `run` accepts"""

CONTROLLER = "controller"
"""Also accepted: a robot under a real controller manager, with the node and the generated
controller"""


def run(robot: str, *, output: str | Path | None = None) -> Output:
    """Run a demo: processes over DDS, a table, a picture.

    Args:
        robot: one of DEMOS, or CONTROLLER.
        output: the folder for the picture; None: the working directory.

    Returns:
        the measurements, and the same as a table.

    Raises:
        InputError: the robot is unknown, or `output` is not a folder.
        BackendError: ROS, MuJoCo, matplotlib or, for CONTROLLER, ros2_control is missing, or a
            process of the demo failed.
    """
    folder = Path("." if output is None else output)
    if robot == CONTROLLER:
        from . import controlled

        return controlled.demonstrate(folder)
    from .demonstration import demonstrate

    return demonstrate(robot, folder)
