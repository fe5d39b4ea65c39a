# SPDX-License-Identifier: Apache-2.0
"""Derives rates from positions, and accelerations from rates, where they are not published."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...scalar import Floats, shortest_turn
from .refusal import RefusedError
from .stamps import SECOND

GAP = SECOND // 2
"""ns: after a longer gap between two samples, the derivative restarts"""

RECENT = 21
"""Number of steps whose median is a source's period: more than twice the ten messages that a queue
holds, which are read within microseconds after a stall"""

SHORTEST = SECOND // 10_000
"""ns: samples that are closer together give no meaningful slope"""


@dataclass(frozen=True, eq=False)
class Derivative:
    """A sampled signal and its derivative, smoothed by a first-order low-pass filter.

    The derivative is delayed by the filter's time constant and half a sampling period. A slope
    needs a time base, which is the period of the source:

    - A stamp says when a sample was taken. A sample less than half a period after the previous one
      is skipped, and the next slope starts from the earlier one.
    - A time of sending or arrival is right only on average: after a stall, messages that have
      waited in a queue come within microseconds. A step shorter than three quarters of a period
      gives no slope of its own, any other counts as at least one period, and there is no derivative
      until enough steps are known to estimate the period. The period is then the median step or the
      mean one, whichever is longer: after a long pause nothing is derived until RECENT samples have
      arrived.
    """

    x: Floats
    """(n,) the sample from which the next slope starts; NaN: not known"""
    time: int
    """The time of `x`, ns"""
    value: Floats | None = None
    """(n,) dx/dt; NaN: that entry is not known; None: none is known"""
    steepest: Floats | None = None
    """(n,) unfiltered change of the newest sample over one period, to detect jumps"""
    newest: int = 0
    """The time of the newest sample, which need not be `x`, ns"""
    steps: tuple[int, ...] = ()
    """The times between the last samples, ns"""

    @classmethod
    def begun(cls, x: Floats, time: int, steps: tuple[int, ...] = ()) -> Derivative:
        """The state after the first sample.

        Args:
            x: (n,) the sample.
            time: its time, ns.
            steps: the times between earlier samples, ns.
        """
        return cls(x, time, newest=time, steps=steps)

    @property
    def period(self) -> int:
        """The usual time between two samples, ns; 0: not known yet."""
        return sorted(self.steps)[len(self.steps) // 2] if self.steps else 0

    def next(
        self,
        x: Floats,
        time: int,
        constant: float,
        turns: NDArray[np.bool_] | None = None,
        *,
        stamped: bool = True,
    ) -> Derivative:
        """The state after one more sample.

        Args:
            x: (n,) the sample.
            time: its time, ns.
            constant: the filter's time constant, s.
            turns: (n,) which entries are angles that may jump by whole turns.
            stamped: is `time` the time of the sample, not of its sending or arrival?
        """
        since = time - self.newest
        if since == 0:
            return self
        if not 0 < since <= GAP:
            paused = (GAP,) if since > GAP else ()
            return Derivative.begun(x, time, (*self.steps, *paused)[-RECENT:])
        steps = (*self.steps[1 - RECENT :], since)
        if not stamped and len(steps) < RECENT:
            return Derivative.begun(x, time, steps)
        step, period = time - self.time, self.period
        if not stamped:
            # if the node stalls repeatedly, most steps are within bursts, and the pauses between
            # the bursts count towards their time
            period = max(period, sum(steps) // len(steps))
        # a difference that overflows is no slope
        with np.errstate(over="ignore", invalid="ignore"):
            change = x - self.x
            if turns is not None:
                change = np.where(turns, shortest_turn(change), change)
            # over one period, so that samples lost or refused in between do not make a jump look
            # smaller
            steepest = change / ((period or step) / SECOND)
            if step < max((0.5 if stamped else 0.75) * period, SHORTEST):
                held = self if stamped else replace(self, x=x, time=time)
                return replace(held, steepest=steepest, newest=time, steps=steps)
            h = (step if stamped else max(step, period)) / SECOND
            value = slope = change / h
            if self.value is not None:
                # T dv/dt + v = dx/dt, by the backward Euler rule
                value = self.value + h / (constant + h) * (slope - self.value)
                value = np.where(np.isnan(self.value), slope, value)
        return Derivative(x, time, value, steepest, time, steps)


def following(
    before: Derivative | None,
    x: Floats,
    time: int,
    constant: float,
    turns: NDArray[np.bool_] | None = None,
    *,
    stamped: bool = True,
) -> Derivative:
    """The derivative after one more sample.

    Args:
        before: the derivative until now; None: this is the first sample.
        x, time, constant, turns, stamped: as in `Derivative.next`; time 0: there is none.

    Raises:
        RefusedError: there is no time.
    """
    if not time:
        raise RefusedError(
            "no stamp",
            "header.stamp is 0, but a derivative needs the times of its samples, and in simulated "
            "time only stamps tell them: let the sender stamp its messages",
        )
    if before is None:
        return Derivative.begun(x, time)
    return before.next(x, time, constant, turns, stamped=stamped)


MOST_SOURCES = 100
"""Number of sources to remember: each may send any subset of the joints"""


class Derivatives:
    """One derivative per source; a source is identified by the names in its messages."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, ...], Derivative] = {}

    def get(self, names: tuple[str, ...]) -> Derivative | None:
        """The derivative of the source of messages with these names; None: there is none yet."""
        return self._of.get(names)

    def keep(self, names: tuple[str, ...], new: Derivative) -> bool:
        """Store the derivative after a sample that was accepted.

        Args:
            names: (n) the names in the source's messages.
            new: the derivative.

        Returns:
            whether it differs from the stored one.
        """
        before = self._of.pop(names, None)
        self._of[names] = new
        if len(self._of) > MOST_SOURCES:
            del self._of[next(iter(self._of))]
        return new is not before

    def forget(self) -> None:
        """Discard everything: earlier times are invalid."""
        self._of.clear()
