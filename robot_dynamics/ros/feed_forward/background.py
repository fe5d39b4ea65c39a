# SPDX-License-Identifier: Apache-2.0
"""Work beside the control loop, in threads that leave it its turns."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

SWITCH_INTERVAL = 2e-4
"""s: how long a thread may keep Python's lock from the control loop (5 ms otherwise)"""

_lock = threading.Lock()
_working, _usual = 0, 0.0


@contextmanager
def giving_way() -> Iterator[None]:
    """Meanwhile the control loop waits for no more than `SWITCH_INTERVAL`."""
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


class Done(NamedTuple):
    """A piece of work, and what came of it."""

    then: Callable[[Any], None]
    result: Any


class Beside:
    """Works off one piece after the other in a thread, while there is some.

    A piece returns its result and raises nothing; what is to be done with the result is done by
    who calls `poll`.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._done: deque[Done] = deque()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Pieces that have not been begun."""
        return len(self._waiting)

    def add(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Call `work` in the thread; `then` gets its result."""
        self._waiting.append((work, then))
        self._begin()

    def poll(self) -> None:
        """What was done meanwhile."""
        while self._done:
            done = self._done.popleft()
            done.then(done.result)
        self._begin()

    def close(self, patience: float) -> None:
        """Begin nothing more, and wait for what is under way, at most so many s."""
        self._waiting.clear()
        if self._thread is not None:
            self._thread.join(patience)

    def _begin(self) -> None:
        if self._waiting and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name="beside", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with giving_way():
            while self._waiting:
                work, then = self._waiting.popleft()
                self._done.append(Done(then, work()))
