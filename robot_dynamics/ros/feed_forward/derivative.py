# SPDX-License-Identifier: Apache-2.0
"""Rates from positions, and accelerations from rates, where nobody publishes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...scalar import Floats
from .stamps import SECOND

GAP = SECOND // 2
"""ns between two samples beyond which the later one is a new beginning"""

RECENT = 21
"""Steps whose median is a source's period: more than twice as many as messages wait in a queue of
ten, which are read within microseconds after a stall"""

SHORTEST = SECOND // 10_000
"""ns: samples that are closer together have no slope worth the name"""


@dataclass(frozen=True, eq=False)
class Derivative:
    """A sampled signal and its derivative, behind a low-pass of the first order.

    It is late by the filter's time constant and half a sampling period. A slope needs a baseline
    in time, which is the period of the source:

    - Stamps say when a sample was taken. A sample less than half a period after the one before
      adds nothing, and the next slope is taken from the earlier one.
    - The time of arrival says that only on average: after a stall, messages that have waited
      arrive within microseconds. A step of less than three quarters of a period has no slope of
      its own, any other counts for one period at least, and as long as too few steps are known to
      tell the period, there is no derivative. The period is then the mean or the median, whichever
      is longer: after a long pause nothing is derived until RECENT samples have come.
    """

    x: Floats
    """(n,) the sample that the next slope is taken from; NaN: not known"""
    time: int
    """ns"""
    value: Floats | None = None
    """(n,) dx/dt; NaN: not known; None: of none of them"""
    steepest: Floats | None = None
    """(n,) change of the newest sample over one period, without the filter: does it jump?"""
    newest: int = 0
    """ns, the newest sample, which `x` need not be"""
    steps: tuple[int, ...] = ()
    """ns between the last samples"""

    @classmethod
    def begun(cls, x: Floats, time: int, steps: tuple[int, ...] = ()) -> Derivative:
        """After one sample (n,)."""
        return cls(x, time, newest=time, steps=steps)

    @property
    def period(self) -> int:
        """ns, the usual time between two samples; 0: not known yet."""
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
        """With one more sample.

        Args:
            x: (n,)
            time: ns.
            constant: time constant of the filter, s.
            turns: (n,) which entries are angles that may jump by whole turns.
            stamped: is `time` that of the sample, not that of its arrival?
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
            # where the node is held up again and again, most steps are those of bursts, and the
            # pauses before are a part of their time
            period = max(period, sum(steps) // len(steps))
        # what is beyond all numbers is no slope
        with np.errstate(over="ignore", invalid="ignore"):
            change = x - self.x
            if turns is not None:
                change = change - np.where(turns, 2 * np.pi * np.round(change / (2 * np.pi)), 0.0)
            # samples that were lost, or refused, in between make no jump flatter
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


MOST_SOURCES = 100
"""that are remembered: a message may have any of the joints"""


class Derivatives:
    """Of each source its own derivative; it is known by the names in its messages."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, ...], Derivative] = {}

    def next(
        self,
        names: tuple[str, ...],
        x: Floats,
        time: int,
        constant: float,
        turns: NDArray[np.bool_] | None = None,
        *,
        stamped: bool = True,
    ) -> Derivative:
        """With one more sample (n,) of these names, which is to be kept; see `Derivative.next`."""
        before = self._of.get(names)
        if before is None:
            return Derivative.begun(x, time)
        return before.next(x, time, constant, turns, stamped=stamped)

    def keep(self, names: tuple[str, ...], new: Derivative) -> bool:
        """The sample was good; is there anything new in it?"""
        before = self._of.pop(names, None)
        self._of[names] = new
        if len(self._of) > MOST_SOURCES:
            del self._of[next(iter(self._of))]
        return new is not before

    def forget(self) -> None:
        """Earlier times are void."""
        self._of.clear()
