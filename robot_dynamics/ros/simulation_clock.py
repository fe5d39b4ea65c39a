# SPDX-License-Identifier: Apache-2.0
"""The simulated robot's time in whole periods: its own, or that of a clock; without ROS."""

from __future__ import annotations

from collections.abc import Callable

from .feed_forward.stamps import SECOND

BEHIND = SECOND // 4
"""ns: a robot further from the clock than this jumps to it instead of catching up"""

MOST_AT_ONCE = 2
"""The most periods per tick while catching up, so that the torques for each state still arrive"""


class SimulationClock:
    """Simulated time in whole periods, and the number of periods that are due.

    Args:
        period: ns.
        clock: the clock to follow, ns, 0 while it has not begun; None: time begins at zero, and
            follows no clock.
        ahead: how far the robot may be ahead of the clock, which is coarser than the periods, ns.
    """

    def __init__(self, period: int, clock: Callable[[], int] | None = None, ahead: int = 0):
        self.period = period
        self._clock, self._ahead = clock, ahead
        self._origin, self._ticks = 0, 0

    @property
    def now(self) -> int:
        """The time at the beginning of the period, ns."""
        return self._origin + self._ticks * self.period

    def tick(self) -> None:
        """End a period."""
        self._ticks += 1

    def due(self) -> tuple[int, int]:
        """(number of periods that are due, ns that were skipped to be in step with the clock)"""
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
