# SPDX-License-Identifier: Apache-2.0
"""Chooses one filter for several recordings of a robot.

Several recordings show much more clearly than a single one which cut-off is good, and the choice
takes longer than all other steps. A few recordings of the same joints and sampling rate are
therefore cross-validated as if they were one. The others use the resulting cut-off if they are
alike: in the octaves about the cut-off and above it, they contain about as much motion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .cutoff import choose
from .preparation import Even
from .recording import Floats
from .samples import Choice
from .unknowns import Columns

Named = tuple[str, Even]
"""A recording's name and its motion"""

FEW = 12
"""Largest number of recordings from which filters are chosen, evenly spread over all"""
SAME_RATE = 0.1
"""Relative difference up to which sampling rates are the same"""
ALIKE = 4.0
"""Factor by which a recording's power in an octave may exceed the largest, or fall below the
smallest, of the recordings from which the filter was chosen; beyond it, they are not alike"""
OCTAVES = 12
"""Number of octaves below the Nyquist frequency; the last one includes everything below it"""
NOTHING = 1e-12
"""Fraction of the power of a joint's rate; less is rounding"""


def alike(rate: float, other: float) -> bool:
    """Whether two sampling rates, in Hz, are about the same."""
    return abs(rate / other - 1) <= SAME_RATE


def octaves(raw: Even) -> Floats:
    """(OCTAVES, n): each octave's fraction of the power of each joint's rate, from the highest
    octave down.

    Args:
        raw: a recording.
    """
    power = np.zeros((OCTAVES, len(raw.joints)))
    for stream in raw.pieces:
        k = len(stream.velocity)
        window = np.hanning(k)[:, None]
        rates = np.nan_to_num(stream.velocity) * window
        spectrum = np.abs(np.fft.rfft(rates, axis=0)) ** 2
        # the bin k/2, of the Nyquist frequency, is in the first octave
        edges = [*(math.ceil(k / 2 ** (j + 2)) for j in range(OCTAVES - 1)), 0]
        end = len(spectrum)
        for j, begin in enumerate(edges):
            power[j] += spectrum[begin:end].sum(axis=0)
            end = min(begin, end)
    return np.asarray(power / np.maximum(power.sum(axis=0), np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class SharedFilter:
    """A cut-off that was chosen from several recordings, and what these are like."""

    joints: tuple[str, ...]
    rate: float
    """Hz, the sampling rate"""
    choice: Choice
    members: frozenset[str]
    """The recordings from which it was chosen"""
    lowest: Floats
    """(OCTAVES, n): the smallest fractions of power in these recordings, as in `octaves`"""
    highest: Floats

    @classmethod
    def of(cls, unknowns: Columns, few: Sequence[Named]) -> SharedFilter:
        """Choose the filter from recordings of the same joints and sampling rate.

        Args:
            unknowns: the parameters to identify.
            few: the recordings' names and the motion that may be used.
        """
        _, first = few[0]
        pieces = tuple(piece for _, each in few for piece in each.pieces)
        shares = [octaves(each) for _, each in few]
        return cls(
            first.joints, first.rate, choose(unknowns, replace(first, pieces=pieces)),
            frozenset(name for name, _ in few), np.min(shares, axis=0), np.max(shares, axis=0),
        )  # fmt: skip

    def suits(self, raw: Even) -> bool:
        """Whether a recording is like those from which the filter was chosen."""
        if raw.joints != self.joints or not alike(raw.rate, self.rate):
            return False
        # octave k ends at rate / 2^(k+1); the last one below the cut-off counts, too
        cutoff = self.rate if self.choice.cutoff is None else self.choice.cutoff
        above = self.rate / 2.0 ** np.arange(1, OCTAVES + 1) > cutoff / 2
        above[0] = True
        found = octaves(raw)
        low = found + NOTHING >= self.lowest / ALIKE
        high = found <= ALIKE * self.highest + NOTHING
        return bool((low & high)[above].all())


def groups(few: Sequence[Named]) -> list[list[Named]]:
    """Groups of recordings with the same joints and about the same sampling rate, which do not
    depend on the order of the recordings.

    Args:
        few: the recordings and their names.
    """
    found: list[list[Named]] = []
    for name, raw in sorted(few, key=lambda each: (each[1].joints, each[1].rate)):
        _, slowest = found[-1][0] if found else (name, raw)
        if not found or slowest.joints != raw.joints or raw.rate > (1 + SAME_RATE) * slowest.rate:
            found.append([])
        found[-1].append((name, raw))
    return [sorted(group, key=lambda each: each[0]) for group in found]
