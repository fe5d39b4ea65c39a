"""Messages that are not used: why, how many, and one line now and then."""

from __future__ import annotations

from collections import Counter

from ...errors import RobotDynamicsError

REPORT_PERIOD = 5.0
"""s between two lines about the same reason: a stream of bad messages must not bury the log"""


class RefusedError(RobotDynamicsError):
    """An input that is dropped whole, or a torque that is not published.

    Attributes:
        reason: a short name that is counted, as in `missing joint`.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message, name=reason)
        self.reason = reason


class Tally:
    """Counts by source and reason, and which of them are worth a line now.

    Attributes:
        rejected: inputs that were dropped, and torques that were not published.
        events: what else is worth a line, as in a command that timed out.
    """

    def __init__(self) -> None:
        self.rejected: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self._told: dict[str, tuple[float, int]] = {}

    def add(self, counter: Counter[str], key: str, text: str, now: float) -> str | None:
        """Count one case.

        Args:
            counter: rejected or events.
            key: the topic or thing it is about, and the reason.
            now: s, of a clock that never jumps.

        Returns:
            the line to log, or None where the same reason had its line a moment ago.
        """
        counter[key] += 1
        told_at, told = self._told.get(key, (-REPORT_PERIOD, 0))
        if told and now - told_at < REPORT_PERIOD:
            return None
        unsaid = counter[key] - told - 1
        self._told[key] = (now, counter[key])
        return text + (f" (and {unsaid} more like it since the last line)" if unsaid else "")

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.rejected.values()) + sum(self.events.values())
