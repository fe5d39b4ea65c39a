"""Messages that are not used: why, how many, and one line now and then."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from ...errors import RobotDynamicsError

REPORT_PERIOD = 5.0
"""s between two lines about the same reason: a stream of bad messages must not bury the log"""


MOST_LINES = 10
"""about the same reason in such a time, where what they say differs in more than numbers"""

_NUMBERS = re.compile(r"[-+]?\d[\d.e+-]*")


class RefusedError(RobotDynamicsError):
    """An input that is dropped whole, or a torque that is not published.

    Attributes:
        reason: a short name that is counted, as in `missing joint`.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message, name=reason)
        self.reason = reason


@dataclass
class _Told:
    """What was said about a reason lately."""

    since: float
    """s"""
    count: int = 0
    """when the last line was written"""
    words: set[str] = field(default_factory=set)
    """of the lines since then, without their numbers"""


class Tally:
    """Counts by source and reason, and which of them are worth a line now.

    Attributes:
        newest: what was said last.
        rejected: inputs that were dropped, and torques that were not published.
        events: what else is worth a line, as in a command that timed out.
    """

    def __init__(self) -> None:
        self.rejected: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.newest = ""
        self._told: dict[str, _Told] = {}

    def add(
        self, counter: Counter[str], key: str, text: str, now: float, *, anew: bool = False
    ) -> str | None:
        """Count one case.

        Args:
            counter: rejected or events.
            key: the topic or thing it is about, and the reason.
            now: s, of a clock that never jumps.
            anew: it is another one even if the words are the same.

        Returns:
            the line to log, or None where the same was said a moment ago.
        """
        counter[key] += 1
        self.newest = text
        told = self._told.setdefault(key, _Told(now))
        if now - told.since >= REPORT_PERIOD:
            told.since, told.words = now, set()
        if len(told.words) >= MOST_LINES:
            return None
        words = f"{counter[key]}" if anew else _NUMBERS.sub("0", text)
        if words in told.words:
            return None
        told.words.add(words)
        unsaid, told.count = counter[key] - told.count - 1, counter[key]
        return text + (f" (and {unsaid} more like it since the last line)" if unsaid else "")

    @property
    def all(self) -> Counter[str]:
        """All of them."""
        return self.rejected + self.events
