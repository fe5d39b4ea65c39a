# SPDX-License-Identifier: Apache-2.0
"""Demos: a simulated robot tracks the same motion with and without feed-forward torques."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .robots import ROBOTS

DEMOS = tuple(ROBOTS)
"""The robots that `run` knows"""

CONTROLLER = "controller"
"""What else it knows: a robot under a real controller manager, by node and generated controller"""


def run(robot: str, *, output: str | Path | None = None, as_json: bool = False) -> dict[str, Any]:
    """Run a demo: processes over DDS, a table, a picture.

    Args:
        robot: one of DEMOS, or CONTROLLER.
        output: the folder for the picture; None: the working directory.
        as_json: no progress on stderr.

    Returns:
        what was measured, and `text`: the same as a table.

    Raises:
        InputError: an unknown robot, or an output that is not a folder.
        BackendError: ROS, MuJoCo, matplotlib or, for CONTROLLER, ros2_control is missing, or a
            process of the demo failed.
    """
    if robot == CONTROLLER:
        from . import controlled

        return controlled.demonstrate(Path("." if output is None else output), quiet=as_json)
    from .demonstration import demonstrate

    return demonstrate(robot, Path("." if output is None else output), quiet=as_json)
