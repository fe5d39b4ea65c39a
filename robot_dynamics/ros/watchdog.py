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
stopped, the loop can continue first"""


class Watchdog:
    """Calls `bark` once, from a thread, when `beat` has not been called for a while.

    Args:
        patience: returns the longest time between two beats, s; 0: unlimited.
        bark: called by the thread when the loop hangs.
    """

    def __init__(self, patience: Callable[[], float], bark: Callable[[], None]):
        self._patience, self._bark = patience, bark
        self._beat = time.monotonic()
        self._barked = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def beat(self) -> bool:
        """Report that the loop is alive.

        Returns:
            whether `bark` was called since the last beat.
        """
        self._beat = time.monotonic()
        barked, self._barked = self._barked, False
        return barked

    def close(self) -> None:
        """Stop the thread."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        late = 0
        while not self._end.wait(LOOK):
            patience = self._patience()
            hangs = 0 < patience < time.monotonic() - self._beat
            late = late + 1 if hangs else 0
            if late == IN_A_ROW:
                self._barked = True
                self._bark()
