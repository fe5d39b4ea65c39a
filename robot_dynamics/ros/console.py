# SPDX-License-Identifier: Apache-2.0
"""The console to which ROS writes the log."""

from __future__ import annotations

import os
import select


def console_takes_a_line() -> bool:
    """Can a line be written without blocking on its reader?

    rclpy holds the GIL while it writes: a pipe that nobody reads, or a paused terminal, would stop
    the control loop, and the watchdog's thread with it.
    """
    descriptor = 1 if os.environ.get("RCUTILS_LOGGING_USE_STDOUT") == "1" else 2
    try:
        return bool(select.select([], [descriptor], [], 0.0)[1])
    except (OSError, ValueError):  # closed: the text is lost, and nothing blocks
        return True
