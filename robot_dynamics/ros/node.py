# SPDX-License-Identifier: Apache-2.0
"""The entry point of the executable `feed_forward`, which imports quickly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pkgutil import resolve_name

from .executable import run

NODE = "robot_dynamics.ros.feed_forward_node:FeedForwardNode"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node until it is stopped, and return the exit code."""
    return run("feed_forward", partial(resolve_name, NODE), arguments, lambda node: node.farewell())


if __name__ == "__main__":
    sys.exit(main())
