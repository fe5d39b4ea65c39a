# SPDX-License-Identifier: Apache-2.0
"""Background work in threads that do not hold up the control loop."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SWITCH_INTERVAL = 2e-4
"""s: how long a thread may keep the GIL from the control loop (Python's default: 5 ms)"""

_lock = threading.Lock()
_working, _usual = 0, 0.0


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """A context in which the control loop waits no longer than `SWITCH_INTERVAL` for the GIL."""
    global _working, _usual
    with _lock:
        if not _working:
            _usual = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_INTERVAL)
        _working += 1
    try:
        yield
    finally:
        with _lock:
            _working -= 1
            if not _working:
                sys.setswitchinterval(_usual)


class BackgroundTasks:
    """Runs tasks one after another in a thread, which exists only while there are tasks.

    A task returns its result and raises nothing; the result is handled in the thread that calls
    `poll`.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._done: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """The number of tasks that have not been started."""
        return len(self._waiting)

    def add(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Add a task.

        Args:
            work: called in the background thread.
            then: called by `poll` with the result.
        """
        self._waiting.append((work, then))
        self._begin()

    def poll(self) -> None:
        """Handle the results of tasks that have finished."""
        while self._done:
            then, result = self._done.popleft()
            then(result)
        self._begin()

    def close(self, timeout: float) -> None:
        """Drop the waiting tasks, and wait at most `timeout` s for the running one."""
        self._waiting.clear()
        if self._thread is not None:
            self._thread.join(timeout)

    def _begin(self) -> None:
        if self._waiting and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name="background", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with short_switch_interval():
            while self._waiting:
                work, then = self._waiting.popleft()
                self._done.append((then, work()))
