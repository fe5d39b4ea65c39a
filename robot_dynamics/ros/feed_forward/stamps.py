"""Is a stamp believable? It rises, and it is near the clock."""

from __future__ import annotations

from typing import Any

from .refusal import RefusedError

SECOND = 1_000_000_000

FORGET_AFTER = SECOND
"""ns without an accepted message after which an earlier stamp is a new beginning (a recording
that starts over, a simulator that was reset), not a message that came late"""


def nanoseconds(stamp: Any) -> int:
    """A builtin_interfaces Time or Duration as one integer."""
    return int(stamp.sec) * SECOND + int(stamp.nanosec)


class Stamps:
    """The newest stamp of one stream of messages."""

    def __init__(self) -> None:
        self._newest = 0
        self._received: int | None = None

    def checked(self, stamp: int, now: int, max_age: float) -> int:
        """The time of a message, ns: its stamp, or now where it has none (zero).

        Args:
            stamp: ns.
            now: the clock, ns; 0 while simulated time has not begun.
            max_age: s; 0: the clock is not asked.

        Raises:
            RefusedError: the stamp is older than the newest one, or too far from the clock.
        """
        if stamp == 0:
            return now
        if max_age > 0 and now > 0:
            behind = (now - stamp) / SECOND
            if behind > max_age:
                raise RefusedError(
                    "old stamp",
                    f"header.stamp is {behind:.3f} s old, expected at most max_age = {max_age:g} s "
                    "(are both sides on the same clock?)",
                )
            if -behind > max_age:
                raise RefusedError(
                    "future stamp",
                    f"header.stamp is {-behind:.3f} s ahead of the clock, expected at most "
                    f"max_age = {max_age:g} s (are both sides on the same clock?)",
                )
        recent = self._received is not None and now - self._received < FORGET_AFTER
        if recent and stamp < self._newest:
            raise RefusedError(
                "old stamp",
                f"header.stamp is {(self._newest - stamp) / SECOND:.6f} s before the newest one",
            )
        return stamp

    def accept(self, stamp: int, now: int) -> None:
        """The message with this time is used: later ones have to follow it."""
        self._newest, self._received = stamp, now

    def forget(self) -> None:
        """The clock jumped: what came before says nothing any more."""
        self._received = None
