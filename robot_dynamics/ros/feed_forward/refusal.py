# SPDX-License-Identifier: Apache-2.0
"""Refused messages: their reasons are counted, and logged at a limited rate."""

from __future__ import annotations

import re
import time as steady
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...errors import ClosureError, RobotDynamicsError

REPORT_PERIOD = 5.0
"""s between two lines for the same reason: a stream of bad messages must not flood the log"""


MOST_LINES = 10
"""Number of distinct messages for the same reason in this time; numbers do not count"""

_NUMBERS = re.compile(r"[-+]?\d[\d.e+-]*")


class RefusedError(RobotDynamicsError):
    """An input that is dropped entirely, or a torque that is not published.

    Args:
        reason: the short name under which it is counted.
        message: the text of the error.

    Attributes:
        reason: a short name under which it is counted, such as `missing joint`.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message, name=reason)
        self.reason = reason


class IncompleteError(RefusedError):
    """An input that is valid and is kept, but is not yet sufficient for a torque."""


def reason_of(error: RobotDynamicsError) -> str:
    """The short name under which an error is counted."""
    if isinstance(error, ClosureError):
        return "closure"
    return error.reason if isinstance(error, RefusedError) else "impossible"


def no_robot() -> RefusedError:
    """The error for every input until there is a robot."""
    return RefusedError(
        "no robot", "there is no robot yet: publish robot_description, or configure the node"
    )


@dataclass
class _Logged:
    """What was logged recently for a reason."""

    since: float
    """The start of the current period, s"""
    count: int = 0
    """The count when the last line was written"""
    words: set[str] = field(default_factory=set)
    """The lines of the current period, with their numbers replaced"""


class Tally:
    """Counts refusals and events by source and reason, and logs them at a limited rate.

    Args:
        log: called with lines for the log.
        steady: s, of a clock that never jumps.

    Attributes:
        newest: the newest message, logged or not.
        rejected: counts of dropped inputs and of torques that were not published.
        events: counts of other events, such as a command that timed out.
    """

    def __init__(self, log: Callable[[str], None], steady: Callable[[], float] = steady.monotonic):
        self.rejected: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.newest = ""
        self._log, self._steady = log, steady
        self._logged: dict[str, _Logged] = {}

    def refuse(self, source: str, error: RobotDynamicsError) -> None:
        """Count and report an input that was dropped or is incomplete, or an unpublished torque.

        Args:
            source: its topic or name.
            error: the reason.
        """
        what = "not published" if source == "torques" else "dropped"
        if isinstance(error, IncompleteError):
            what = "incomplete"
        self._add(self.rejected, f"{source}: {reason_of(error)}", f"{source} {what}: {error}")

    @contextmanager
    def refusing(self, source: str) -> Iterator[None]:
        """A context whose error, if it is one of this package, is refused: see `refuse`."""
        try:
            yield
        except RobotDynamicsError as error:
            self.refuse(source, error)

    def note(self, source: str, reason: str, text: str, *, anew: bool = False) -> None:
        """Count and report an event.

        Args:
            source: the topic or thing it is about.
            reason: a short name under which it is counted.
            text: the line for the log.
            anew: is it a new event even if its text is the same?
        """
        self._add(self.events, f"{source}: {reason}", text, anew)

    def _add(self, counter: Counter[str], key: str, text: str, anew: bool = False) -> None:
        counter[key] += 1
        self.newest = text
        now = self._steady()
        logged = self._logged.setdefault(key, _Logged(now))
        if now - logged.since >= REPORT_PERIOD:
            logged.since, logged.words = now, set()
        if len(logged.words) >= MOST_LINES:
            return
        words = f"{counter[key]}" if anew else _NUMBERS.sub("0", text)
        if words in logged.words:
            return
        logged.words.add(words)
        unsaid, logged.count = counter[key] - logged.count - 1, counter[key]
        self._log(text + (f" ({unsaid} similar messages suppressed)" if unsaid else ""))

    @property
    def all(self) -> Counter[str]:
        """The counts of refusals and events together."""
        return self.rejected + self.events
