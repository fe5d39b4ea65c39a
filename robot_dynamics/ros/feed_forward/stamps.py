# SPDX-License-Identifier: Apache-2.0
"""Checks of message stamps: they must increase and be near the clock."""

from __future__ import annotations

from typing import Any

from .refusal import RefusedError

SECOND = 1_000_000_000

FORGET_AFTER = SECOND
"""ns without an accepted message after which an earlier stamp means a restart (a recording played
again, or a simulator that was reset), not a late message"""

NO_CLOCK = "use_sim_time is set, but nothing has been received on /clock"

FAR_AHEAD = 60 * SECOND
"""ns: a motion whose stamp is further ahead than this comes from another clock"""


def nanoseconds(stamp: Any) -> int:
    """A builtin_interfaces Time or Duration in ns."""
    return int(stamp.sec) * SECOND + int(stamp.nanosec)


def stamped(header: Any) -> int:
    """The stamp of a message, ns.

    Raises:
        RefusedError: it is invalid: negative seconds, or nanoseconds of a second or more.
    """
    stamp = header.stamp
    sec, nanosec = stamp.sec, stamp.nanosec
    if sec < 0 or nanosec >= SECOND:
        raise RefusedError(
            "invalid stamp",
            f"header.stamp is {sec} s and {nanosec} ns, expected 0 s or more and less than "
            "1000000000 ns",
        )
    return int(sec) * SECOND + int(nanosec)


def sampled(stamp: int, sent: int | None, now: int) -> int:
    """The time base of derivatives of a message, ns; 0: there is none.

    Args:
        stamp: its stamp, ns; 0: none.
        sent: when it was sent, ns of any clock; 0: not known by a clock that passes as time does
            here; None: as it arrives.
        now: the clock, ns.
    """
    return stamp or (now if sent is None else sent)


def check_begin(start: int, now: int) -> None:
    """Check that a motion may begin at `start`.

    Args:
        start: ns.
        now: the clock, ns; 0 while simulated time has not begun.

    Raises:
        RefusedError: `start` is so far ahead that it must come from another clock.
    """
    if 0 < now < start - FAR_AHEAD:
        raise RefusedError(
            "future stamp",
            f"it starts at {_seconds(start)} by the sender's clock, but this node's clock reads "
            f"{_seconds(now)}, expected at most {FAR_AHEAD // SECOND} s between them (does only "
            "one of them use simulated time? Set use_sim_time on both sides)",
        )


def _clocks(stamp: int, now: int) -> str:
    return (
        f"the sender's clock reads {_seconds(stamp)} and this node's {_seconds(now)}: do both use "
        "the same time source?"
    )


def _seconds(time: int) -> str:
    return f"{time / SECOND:.3f} s"


def check_age(stamp: int, now: int, max_age: float) -> None:
    """Check that a stamp is near the clock.

    Args:
        stamp: ns.
        now: the clock, ns; 0 while simulated time has not begun.
        max_age: s, the largest difference; 0: no check.

    Raises:
        RefusedError: the stamp is too far from the clock.
    """
    if max_age > 0 and now > 0:
        behind = (now - stamp) / SECOND
        if behind > max_age:
            raise RefusedError(
                "old stamp",
                f"header.stamp is {behind:.3f} s old, expected at most max_age = {max_age:g} s "
                f"({_clocks(stamp, now)})",
            )
        if -behind > max_age:
            raise RefusedError(
                "future stamp",
                f"header.stamp is {-behind:.3f} s ahead of the clock, expected at most "
                f"max_age = {max_age:g} s ({_clocks(stamp, now)})",
            )


def out_of_order(stamp: int, newest: int) -> RefusedError:
    """The error for a stamp (ns) before the newest one (ns)."""
    return RefusedError(
        "old stamp",
        f"header.stamp is {(newest - stamp) / SECOND:.6f} s before the newest one: "
        "it arrived late, or from another publisher (of some joints only: set merge_states)",
    )


class Stamps:
    """The newest stamp of one stream of messages."""

    def __init__(self) -> None:
        self._newest = 0
        self._received: int | None = None

    def checked(self, stamp: int, now: int, max_age: float) -> int:
        """The time of a message, ns: its stamp, or `now` if it has none.

        Args:
            stamp: ns; 0: none.
            now, max_age: see `check_age`.

        Raises:
            RefusedError: the stamp is older than the newest one, or too far from the clock.
        """
        if stamp == 0:
            return now
        check_age(stamp, now, max_age)
        recent = self._received is not None and now - self._received < FORGET_AFTER
        if recent and stamp < self._newest:
            raise out_of_order(stamp, self._newest)
        return stamp

    def accept(self, stamp: int, now: int) -> None:
        """Record a message that is used: later messages must not have earlier stamps.

        Args:
            stamp: the time of the message, ns.
            now: the clock, ns.
        """
        recent = self._received is not None and now - self._received < FORGET_AFTER
        self._newest, self._received = max(stamp, self._newest) if recent else stamp, now

    def forget(self) -> None:
        """Discard earlier stamps, which are invalid after a jump of the clock."""
        self._received = None
