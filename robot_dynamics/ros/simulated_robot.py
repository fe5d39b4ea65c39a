# SPDX-License-Identifier: Apache-2.0
"""The entry point of the executable `simulated_robot`, which imports quickly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pkgutil import resolve_name

from .executable import run

NODE = "robot_dynamics.ros.simulated_robot_node:SimulatedRobot"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node until it is stopped, and return the exit code."""
    return run("simulated_robot", partial(resolve_name, NODE), arguments, lambda node: node.close())


if __name__ == "__main__":
    sys.exit(main())
