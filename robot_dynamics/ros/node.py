# SPDX-License-Identifier: Apache-2.0
"""The entry point of the executable `feed_forward`, which imports quickly."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .executable import run


def _load() -> Callable[[], Any]:
    from .feed_forward_node import FeedForwardNode

    return FeedForwardNode


def main(arguments: list[str] | None = None) -> int:
    """Run the node until it is stopped, and return the exit code."""
    return run("feed_forward", _load, arguments, lambda node: node.farewell())


if __name__ == "__main__":
    sys.exit(main())
