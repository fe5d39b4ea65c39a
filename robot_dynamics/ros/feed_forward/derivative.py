"""Rates from positions, and accelerations from rates, where nobody tells them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...scalar import Floats
from .stamps import SECOND

GAP = SECOND // 2
"""ns between two samples beyond which the later one is a new beginning"""


@dataclass(frozen=True, eq=False)
class Derivative:
    """A sampled signal and its derivative, behind a low-pass of the first order.

    It is late by the filter's time constant and half a sampling period.
    """

    x: Floats
    """(n,) the newest sample"""
    time: int
    """ns"""
    value: Floats | None = None
    """(n,) dx/dt; None after one sample"""

    def next(
        self, x: Floats, time: int, constant: float, turns: NDArray[np.bool_] | None = None
    ) -> Derivative:
        """With one more sample.

        Args:
            x: (n,)
            time: ns.
            constant: time constant of the filter, s.
            turns: (n,) which entries are angles that may jump by whole turns.
        """
        step = time - self.time
        if step == 0 and len(x) == len(self.x):
            return self
        if not 0 < step <= GAP or len(x) != len(self.x):
            return Derivative(x, time)
        h, change = step / SECOND, x - self.x
        if turns is not None:
            change = change - np.where(turns, 2 * np.pi * np.round(change / (2 * np.pi)), 0.0)
        slope = change / h
        if self.value is None:
            return Derivative(x, time, slope)
        # T dv/dt + v = dx/dt, by the backward Euler rule
        return Derivative(x, time, self.value + h / (constant + h) * (slope - self.value))
