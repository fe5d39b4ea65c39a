# SPDX-License-Identifier: Apache-2.0
"""The simulated robot's time, in whole periods: its own, or that of a clock it follows. No ROS."""

from __future__ import annotations

from collections.abc import Callable

from .feed_forward.stamps import SECOND

BEHIND = SECOND // 4
"""ns: a robot further from the clock than this jumps to it instead of catching up"""

MOST_AT_ONCE = 2
"""Periods at a time while catching up, so that the torques that answer each state still arrive"""


class SimulationClock:
    """Simulated time in whole periods, and how many of them are due.

    Args:
        period: ns.
        clock: what is followed, ns, 0 while it has not begun; None: nothing, time begins at zero.
        ahead: ns, that the robot may be ahead of the clock, which is coarser than its periods.
    """

    def __init__(self, period: int, clock: Callable[[], int] | None = None, ahead: int = 0):
        self.period = period
        self._clock, self._ahead = clock, ahead
        self._origin, self._ticks = 0, 0

    @property
    def now(self) -> int:
        """ns, at the beginning of the period."""
        return self._origin + self._ticks * self.period

    def tick(self) -> None:
        """A period is over."""
        self._ticks += 1

    def due(self) -> tuple[int, int]:
        """(how many periods are due, ns that were left out to be with the clock again)"""
        if self._clock is None:
            return 1, 0
        clock = self._clock()
        if clock == 0:
            return 0, 0
        behind = clock - self.now
        if -self._ahead - BEHIND <= behind <= BEHIND:
            due = (behind + self._ahead) // self.period
            return min(max(0, due), MOST_AT_ONCE), 0
        self._origin += behind
        return 1, behind if self._ticks else 0
