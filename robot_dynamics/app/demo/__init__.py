# SPDX-License-Identifier: Apache-2.0
"""Demos: a simulated robot tracks the same motion with and without feed-forward torques."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .robots import ROBOTS

DEMOS = tuple(ROBOTS)
"""The robots that `run` knows"""


def run(robot: str, *, output: str | Path | None = None, as_json: bool = False) -> dict[str, Any]:
    """Run a demo: processes over DDS, a table, a picture.

    Args:
        robot: one of DEMOS.
        output: the folder for the picture; None: the working directory.
        as_json: no progress on stderr.

    Returns:
        what was measured, and `text`: the same as a table.

    Raises:
        InputError: an unknown robot, or an output that is not a folder.
        BackendError: ROS, MuJoCo or matplotlib is missing, or a process of the demo failed.
    """
    from .demonstration import demonstrate

    return demonstrate(robot, Path("." if output is None else output), quiet=as_json)
