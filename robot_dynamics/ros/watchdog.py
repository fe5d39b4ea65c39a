# SPDX-License-Identifier: Apache-2.0
"""A thread that notices when a node's loop hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOOK = 0.1
"""s between checks"""
IN_A_ROW = 2
"""Number of consecutive checks that must find the loop hanging: after the whole process was
stopped, the loop is given a chance to continue first"""


class Watchdog:
    """Calls `on_timeout` once, from a thread, when `reset` has not been called for a while.

    Args:
        timeout: returns the longest time between two resets, s; 0: unlimited.
        on_timeout: called by the thread when the loop hangs; returns whether it had anything to do.
    """

    def __init__(self, timeout: Callable[[], float], on_timeout: Callable[[], bool]):
        self._timeout, self._on_timeout = timeout, on_timeout
        self._last_reset = time.monotonic()
        self._timed_out = False
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def reset(self) -> bool:
        """Report that the loop is alive.

        Returns:
            whether `on_timeout` had anything to do since the last reset.
        """
        self._last_reset = time.monotonic()
        # `on_timeout` that has begun is waited for: what it does must not follow what the loop does
        with self._lock:
            timed_out, self._timed_out = self._timed_out, False
        return timed_out

    def close(self) -> None:
        """Stop the thread."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        late = 0
        while not self._end.wait(LOOK):
            timeout = self._timeout()
            hangs = 0 < timeout < time.monotonic() - self._last_reset
            late = late + 1 if hangs else 0
            if late == IN_A_ROW:
                with self._lock:
                    self._timed_out = self._on_timeout()
