# SPDX-License-Identifier: Apache-2.0
"""Samples (q, qd, qdd, tau) of a recording, prepared for a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .recording import Floats
from .zero_phase import ZeroPhase


@dataclass(frozen=True, eq=False)
class Smoothing:
    """The zero-phase filters of successive stretches, and the filtered rates."""

    filters: tuple[ZeroPhase, ...]
    qd: Floats
    """(m, n), of all stretches: at the recording's sampling rate, before decimation"""
    qdd: Floats
    """(m, n): likewise"""

    def __call__(self, values: Floats) -> Floats:
        """Filter values (m, …) of the whole stretches."""
        signals = np.ascontiguousarray(values.reshape(len(values), -1).T, dtype=float)
        smooth: Floats = self.signals(signals).T.reshape(values.shape)
        return smooth

    def signals(self, x: Floats) -> Floats:
        """Filter signals (c, m), one in each row."""
        edges = np.cumsum([each.length for each in self.filters])[:-1]
        pairs = zip(self.filters, np.split(x, edges, axis=1), strict=True)
        parts = [smooth(part) for smooth, part in pairs]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


BY_JOINT = ("q", "qd", "qdd", "tau", "unfiltered", "usable", "friction")
"""The fields of `Samples` that have a column per joint"""


@dataclass(frozen=True, eq=False)
class Samples:
    """A stretch of evenly sampled motion; rows are samples, columns are joints."""

    time: Floats
    """(k,), s since the recording's first stamp"""
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    """Filtered in the same way as q, qd and qdd"""
    unfiltered: Floats
    """The effort as measured, unfiltered"""
    usable: NDArray[np.bool_]
    """(k, n): whether the effort may be used"""
    friction: Floats | None = None
    """(k, n, RAW): the friction columns, filtered like the effort, in which the filter smooths the
    step of dry friction where a joint reverses. None: not filtered"""
    smoothing: Smoothing | None = None
    place: NDArray[np.intp] | None = None
    """(k,): indices of these samples in the rows of `smoothing`"""

    @classmethod
    def without_efforts(cls, q: Floats, qd: Floats, qdd: Floats) -> Samples:
        """States (k, n) with efforts of 0, all usable."""
        zero = np.zeros(q.shape)
        return cls(np.arange(len(q)), q, qd, qdd, zero, zero, np.ones(q.shape, dtype=bool))

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, chosen: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Samples:
        """Only these samples."""
        given = {name: getattr(self, name) for name in ("time", *BY_JOINT, "place")}
        some = {name: each[chosen] for name, each in given.items() if each is not None}
        return replace(self, **some)

    def columns(self, chosen: list[int]) -> Samples:
        """Only these joints, in this order."""
        given = {name: getattr(self, name) for name in BY_JOINT}
        some = {name: each[:, chosen] for name, each in given.items() if each is not None}
        smooth = self.smoothing
        if smooth is not None:
            smooth = replace(smooth, qd=smooth.qd[:, chosen], qdd=smooth.qdd[:, chosen])
        return replace(self, smoothing=smooth, **some)

    @property
    def sharp(self) -> Samples:
        """The samples without filtered friction columns: friction has steps."""
        return replace(self, friction=None, smoothing=None, place=None)

    def filtered(self, columns: Callable[[Floats], Floats]) -> Floats:
        """(k, …): columns(qd), filtered like the effort.

        Args:
            columns: maps rates (m, n) to columns (m, …).
        """
        if self.smoothing is None:
            return columns(self.qd)
        return np.asarray(self.smoothing(columns(self.smoothing.qd))[self.place])

    def blurred(self, friction: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
        """(k, n): filtered friction minus friction, both at q = 0, as a filter changes its steps.

        Args:
            friction: maps positions, rates and accelerations (k, n) to torques (k, n).
        """
        if self.smoothing is None:
            return np.zeros_like(self.tau)
        qd = self.smoothing.qd
        sharp = friction(np.zeros_like(qd), qd, self.smoothing.qdd)
        return np.asarray((self.smoothing(sharp) - sharp)[self.place])

    @property
    def period(self) -> float:
        """s between consecutive samples"""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else 0.0


def joined(parts: Sequence[Samples]) -> Samples:
    """Concatenate stretches."""
    first = parts[0]
    whole = {
        name: np.concatenate([getattr(each, name) for each in parts])
        for name in ("time", *BY_JOINT)
        if getattr(first, name) is not None
    }
    own = [part.smoothing for part in parts if part.smoothing is not None]
    if len(own) < len(parts):
        return replace(first, **whole, smoothing=None, place=None)
    qd, qdd = (np.concatenate([getattr(each, name) for each in own]) for name in ("qd", "qdd"))
    filters = tuple(one for each in own for one in each.filters)
    before = np.cumsum([0, *(len(each.qd) for each in own)])
    places = [k + np.asarray(part.place) for k, part in zip(before, parts, strict=False)]
    smoothing = Smoothing(filters, qd, qdd)
    return replace(first, **whole, smoothing=smoothing, place=np.concatenate(places))


@dataclass(frozen=True, eq=False)
class Choice:
    """A cut-off, and how it was chosen."""

    cutoff: float | None
    """Hz; None: not filtered"""
    candidates: Floats
    """(c,), Hz, ascending; infinite: not filtered"""
    errors: Floats
    """(c, n): RMS prediction error with each candidate, relative to the smallest one; NaN: the
    joint has no usable effort; infinite: not compared"""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A recording, prepared for the fit."""

    source: str
    joints: tuple[str, ...]
    """The joints of the columns"""
    measured: tuple[str, ...]
    """The joints with efforts"""
    stretches: tuple[Samples, ...]
    rate: float
    """Hz, the recording's sampling rate"""
    cutoff: float | None
    """Hz; None: not filtered"""
    notes: tuple[str, ...]
    """What was found and how it was handled, one line each"""
    choice: Choice | None = None
    """How the cut-off was chosen; None: it was given, or chosen from other recordings"""
    resting: tuple[Samples, ...] = ()
    """Some samples of long standstills, which are not used for the fit; only efforts of joints that
    stand still are usable"""

    @property
    def duration(self) -> float:
        """s, the samples' total duration"""
        return sum(len(each) * each.period for each in self.stretches)

    def split(self, fraction: float) -> tuple[Prepared, Prepared]:
        """(the first part, the last part) of the samples; rests belong to the first one.

        Args:
            fraction: the last part, as a fraction of all samples.
        """
        total = sum(map(len, self.stretches))
        first: list[Samples] = []
        last: list[Samples] = []
        left = round(total * (1 - fraction))
        for each in self.stretches:
            head = min(left, len(each))
            left -= head
            first += [each.rows(slice(0, head))] if head else []
            last += [each.rows(slice(head, None))] if head < len(each) else []
        end = last[0].time[0] if last else np.inf
        resting = tuple(each.rows(each.time < end) for each in self.resting)
        return (
            replace(self, stretches=tuple(first), resting=resting),
            replace(self, stretches=tuple(last), resting=()),
        )
