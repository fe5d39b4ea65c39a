# SPDX-License-Identifier: Apache-2.0
"""The executables, one per node. They import quickly; each is a console script, and
`python -m robot_dynamics.ros.executables NAME --ros-args …` starts the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any

from ..errors import shown
from .executable import EXAMPLES, run


def _executable(
    name: str, node: str, finish: Callable[[Any], None] = lambda _: None
) -> Callable[..., int]:
    """The main function of an executable: its arguments (None: those of the process) → exit code.

    Args:
        name: the executable's name.
        node: module:class of the node.
        finish: as in `run`.
    """

    def main(arguments: Sequence[str] | None = None) -> int:
        return run(name, partial(resolve_name, f"{__package__}.{node}"), arguments, finish)

    return main


feed_forward = _executable(
    "feed_forward", "feed_forward_node:FeedForwardNode", lambda node: node.farewell()
)
simulated_robot = _executable(
    "simulated_robot", "simulated_robot_node:SimulatedRobot", lambda node: node.close()
)
trajectory_source = _executable("trajectory_source", "trajectory_source_node:TrajectorySource")
watch = _executable("watch", "watch_node:WatchNode")

if __name__ == "__main__":
    _name = "".join(sys.argv[1:2])
    if _name not in EXAMPLES:
        print(f"found {shown(_name)}, expected one of {', '.join(EXAMPLES)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(globals()[_name](sys.argv[2:]))
