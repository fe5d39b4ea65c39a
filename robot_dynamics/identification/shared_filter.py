# SPDX-License-Identifier: Apache-2.0
"""Shares the choice of the filter among many recordings of one robot.

The choice takes longer than all other steps together. Where there are many recordings, some of them
choose, and the others take their choice if they are alike: the same joints and sampling rate, and
nothing more or less in the octaves that the cut-off separates than those have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .preparation import Even
from .recording import Floats

MANY = 24
"""Recordings from which on the choice is shared"""
FEW = 8
"""Recordings that choose, evenly spread over all"""
AGREE = 2.0
"""Ratio of the largest to the smallest of their cut-offs, beyond which every recording chooses"""
SAME_RATE = 0.01
"""Relative difference of sampling rates that are the same"""
ALIKE = 4.0
"""Ratio of the power in an octave to the largest or smallest of the recordings that chose, beyond
which a recording is not alike"""
OCTAVES = 12
"""Octaves below the Nyquist frequency, of which the lowest has all that is below it"""
NOTHING = 1e-12
"""Share of the power of a joint's rate; less is rounding"""


def octaves(raw: Even) -> Floats:
    """(OCTAVES, n): the shares of the power of each joint's rate, from the highest octave down.

    Args:
        raw: a recording.
    """
    power = np.zeros((OCTAVES, len(raw.joints)))
    for _, stream in raw.pieces:
        k = len(stream.velocity)
        window = np.hanning(k)[:, None]
        rates = np.nan_to_num(stream.velocity) * window
        spectrum = np.abs(np.fft.rfft(rates, axis=0)) ** 2
        # the bin of k/2, the Nyquist frequency, is in the first octave
        edges = [*(math.ceil(k / 2 ** (j + 2)) for j in range(OCTAVES - 1)), 0]
        end = len(spectrum)
        for j, begin in enumerate(edges):
            power[j] += spectrum[begin:end].sum(axis=0)
            end = min(begin, end)
    return np.asarray(power / np.maximum(power.sum(axis=0), np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class SharedFilter:
    """A cut-off that some recordings chose, and what these are like."""

    joints: tuple[str, ...]
    cutoff: float | None
    """Hz; None: not filtered"""
    rate: float
    """Hz, the sampling rate"""
    lowest: Floats
    """(OCTAVES, n): the smallest shares of power"""
    highest: Floats

    def suits(self, raw: Even) -> bool:
        """Whether a recording is like those that chose."""
        if raw.joints != self.joints or abs(raw.rate / self.rate - 1) > SAME_RATE:
            return False
        # octave k ends at rate / 2^(k+1); the one below the cut-off counts, too
        cutoff = self.rate if self.cutoff is None else self.cutoff
        above = self.rate / 2.0 ** np.arange(1, OCTAVES + 1) > cutoff / 2
        above[0] = True
        found = octaves(raw)
        low = found + NOTHING >= self.lowest / ALIKE
        high = found <= ALIKE * self.highest + NOTHING
        return bool((low & high)[above].all())


class Chosen(Protocol):
    """A recording that chose its filter."""

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints of its columns."""

    @property
    def cutoff(self) -> float | None:
        """Hz; None: not filtered."""

    @property
    def rate(self) -> float:
        """Hz, the sampling rate."""

    @property
    def octaves(self) -> Floats | None:
        """The shares of its rates' power, as `octaves` returns them; None: unknown."""


def shared_filter(few: Iterable[Chosen]) -> SharedFilter | None:
    """The filter to share; None: those that chose do not agree.

    Args:
        few: the recordings that chose.
    """
    few = list(few)
    shares = [each.octaves for each in few if each.octaves is not None]
    if len(shares) < len(few) or len(few) < 2:
        return None
    first = few[0]
    cutoffs = sorted(each.cutoff or math.inf for each in few)
    same = all(
        each.joints == first.joints and abs(each.rate / first.rate - 1) <= SAME_RATE for each in few
    )
    agree = cutoffs[0] == cutoffs[-1] or cutoffs[-1] <= AGREE * cutoffs[0]
    if not (same and agree):
        return None
    cutoff = cutoffs[(len(cutoffs) - 1) // 2]
    return SharedFilter(
        first.joints, cutoff if math.isfinite(cutoff) else None, first.rate,
        np.min(shares, axis=0), np.max(shares, axis=0),
    )  # fmt: skip
