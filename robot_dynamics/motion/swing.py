# SPDX-License-Identifier: Apache-2.0
"""The motion of the demos: a smooth swing from rest to rest, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, wrong
from ..scalar import Floats


@dataclass(frozen=True)
class Motion:
    """Every joint swings from its start by `swing` and back, `cycles` times in `duration`.

    q(t) = start + swing (1 - cos φ) / 2 with φ = 2π cycles s(t / duration), where
    s(x) = 10 x³ - 15 x⁴ + 6 x⁵ starts and stops with zero velocity and acceleration.

    Raises:
        InputError: counts that differ, a number that is not finite, or a duration that is not
            positive.
    """

    start: Sequence[float]
    """(n,), rad or m: the initial positions"""
    swing: Sequence[float]
    """(n,), rad or m: the distance from one end of the swing to the other"""
    cycles: Sequence[float]
    """(n,): number of swings back and forth; with a half-integer it ends at the other end"""
    duration: float
    """s"""

    def __post_init__(self) -> None:
        counts = {len(self.start), len(self.swing), len(self.cycles)}
        numbers = [*self.start, *self.swing, *self.cycles, self.duration]
        if len(counts) > 1 or not np.all(np.isfinite(numbers)) or self.duration <= 0:
            raise wrong(
                InputError,
                "motion",
                self,
                "start, swing and cycles of equal length, and a duration above 0",
            )

    def __call__(self, time: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """q, qd, qdd (…, n) at times (…), s; at rest before the start and after the end."""
        x = np.clip(np.asarray(time, dtype=float)[..., None] / self.duration, 0.0, 1.0)
        s = x**3 * (10 - 15 * x + 6 * x**2)
        ds = 30 * x**2 * (1 - x) ** 2 / self.duration
        dds = 60 * x * (1 - x) * (1 - 2 * x) / self.duration**2
        rate = 2 * np.pi * np.asarray(self.cycles)
        half = np.asarray(self.swing) / 2
        # φ = rate s,  φ' = rate s',  φ'' = rate s''
        sine, cosine = np.sin(rate * s), np.cos(rate * s)
        return (
            np.asarray(self.start) + half * (1 - cosine),
            half * sine * rate * ds,
            half * (cosine * (rate * ds) ** 2 + sine * rate * dds),
        )
