# SPDX-License-Identifier: Apache-2.0
"""The entry point of the executable `watch`, which imports quickly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pkgutil import resolve_name

from .executable import run

NODE = "robot_dynamics.ros.watch_node:WatchNode"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node until it is stopped, and return the exit code."""
    return run("watch", partial(resolve_name, NODE), arguments)


if __name__ == "__main__":
    sys.exit(main())
