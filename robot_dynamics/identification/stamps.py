# SPDX-License-Identifier: Apache-2.0
"""Cleans stamps: from raw messages to stretches of evenly timed samples.

Clocks are set back, publishers stall, and republished states are held for a period now and then.
Each finding is one line.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .recording import Floats, Stream

GAP = 4.5
"""Periods without a message that are not bridged"""
REST = 0.25
"""s: equal messages for longer than this are a robot at rest, not a state that was held"""
EVEN = 1e-3
"""Of a period: stamps this near to an even grid are on it"""
TELLING = 0.6
"""Of the stamps' roughness: another timing must be as smooth as this to be believed"""


def even_stretches(stream: Stream, notes: list[str]) -> list[tuple[Floats, Stream]]:
    """(even time (k,), stream) for each stretch without a gap, earliest first.

    Rows with a NaN among them are left out: they make a gap, or are bridged like one.
    """
    stream = _without_nan(stream, notes)
    if len(stream.time) < 4:
        return []
    pieces = []
    for piece in _between_resets(stream, notes):
        in_order = _in_order(piece, notes)
        if len(in_order.time) > 3:
            pieces += _between_gaps(_without_held(in_order, notes), notes)
    return [_evened(piece, notes) for piece in pieces if len(piece.time) > 3]


def _without_nan(stream: Stream, notes: list[str]) -> Stream:
    """Rows that have a stamp and all values of the joints that have any."""
    measured = np.isfinite(stream.effort).any(axis=0)
    given = np.column_stack([stream.time, stream.position, stream.effort[:, measured]])
    whole = np.isfinite(given).all(axis=1)
    if not whole.all():
        notes.append(f"{(~whole).sum()} messages with NaN or without a value were left out")
    return stream.rows(whole)


def _between_resets(stream: Stream, notes: list[str]) -> list[Stream]:
    """Split where the clock was set back by more than messages change places."""
    steps = np.diff(stream.time)
    forwards = steps[steps > 0]
    period = float(np.median(forwards)) if len(forwards) else 0.0
    # a message that comes late steps back, and the next one forward again
    back = np.flatnonzero(steps < -GAP * period)
    cuts = [k + 1 for k in back if (stream.time[k + 1 :] < stream.time[k]).sum() > GAP]
    if cuts:
        notes.append(f"the clock went back {len(cuts)} times; what lies between counts by itself")
    edges = [0, *cuts, len(stream.time)]
    return [stream.rows(slice(a, b)) for a, b in itertools.pairwise(edges)]


def _in_order(stream: Stream, notes: list[str]) -> Stream:
    """Sorted by stamps, each once."""
    order = np.argsort(stream.time, kind="stable")
    late = int((np.diff(stream.time) < 0).sum())
    if late:
        notes.append(f"{late} messages came out of order and were put in their places")
    stream = stream.rows(order)
    new = np.r_[True, np.diff(stream.time) > 0]
    if not new.all():
        notes.append(f"{(~new).sum()} messages repeat a stamp and were left out")
    return stream.rows(new)


def _without_held(stream: Stream, notes: list[str]) -> Stream:
    """Without messages that repeat the one before although the robot moves."""
    values = np.column_stack([stream.position, stream.effort])
    same = np.r_[False, _equal(values[1:], values[:-1])]
    if not same.any() or same.all():
        return stream
    # runs of equal messages: long ones are a rest
    begin = np.flatnonzero(~same)
    end = np.r_[begin[1:], len(same)]
    long = stream.time[end - 1] - stream.time[begin] > REST
    held = same & ~np.repeat(long, end - begin)
    if held.any():
        notes.append(
            f"{held.sum()} messages repeat the values of the one before (a state republished) "
            "and were left out"
        )
    return stream.rows(~held)


def _equal(a: Floats, b: Floats) -> NDArray[np.bool_]:
    equal: NDArray[np.bool_] = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return equal


def _between_gaps(stream: Stream, notes: list[str]) -> list[Stream]:
    steps = np.diff(stream.time)
    cuts = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    if len(cuts):
        notes.append(f"{len(cuts)} gaps, the longest of {steps.max():.3g} s, are not bridged")
    edges = [0, *cuts.tolist(), len(stream.time)]
    return [stream.rows(slice(a, b)) for a, b in itertools.pairwise(edges)]


def _evened(stream: Stream, notes: list[str]) -> tuple[Floats, Stream]:
    """The stretch on an even grid of its own rate.

    A stamp says when a message was sent; its values may have been taken evenly all the same. Of
    the stamps and the two even timings that go with them, that is right in which the positions
    are smoothest.
    """
    time = stream.time
    period = float(np.median(np.diff(time)))
    steps = np.maximum(1, np.round(np.diff(time) / period))
    even = [np.linspace(time[0], time[-1], len(time))]
    if (steps > 1).any():  # messages that are missing leave their places
        places = np.r_[0.0, np.cumsum(steps)]
        even.append(np.polyval(np.polyfit(places, time, 1), places))
    roughness = [_roughness(each, stream.position) for each in (time, *even)]
    best = int(np.argmin(roughness))
    if best and roughness[best] < TELLING * roughness[0]:
        jitter = float(np.abs(even[best - 1] - time).max())
        notes.append(
            f"stamps are off by up to {1e3 * jitter:.3g} ms: the positions are smoother as even "
            "samples, and were taken as such"
        )
        time = even[best - 1]
    steps = np.diff(time)
    usual = steps[steps < 1.5 * np.median(steps)].mean()
    grid = np.linspace(time[0], time[-1], 1 + round((time[-1] - time[0]) / usual))
    if len(grid) == len(time) and np.abs(grid - time).max() < EVEN * period:
        return grid, replace(stream, time=grid)
    return grid, _resampled(stream, time, grid)


def _roughness(time: Floats, position: Floats) -> float:
    """How badly each position follows from its four neighbours (cubic), over its steps."""
    t = [time[k : len(time) - 4 + k] for k in (0, 1, 3, 4)]
    middle = time[2:-2]
    if len(middle) < 1:
        return np.inf
    guess = np.zeros_like(position[2:-2])
    for i, k in enumerate((0, 1, 3, 4)):
        weight = np.ones_like(middle)
        for j in range(4):
            if j != i:
                weight *= (middle - t[j]) / (t[i] - t[j])
        guess += weight[:, None] * position[k : len(time) - 4 + k]
    scale = np.sqrt(np.nanmean(np.diff(position, axis=0) ** 2, axis=0))
    moving = scale > 0
    miss = np.sqrt(np.nanmean((guess - position[2:-2]) ** 2, axis=0))
    return float(np.mean(miss[moving] / scale[moving])) if moving.any() else 0.0


def _resampled(stream: Stream, time: Floats, grid: Floats) -> Stream:
    """By cubic splines, whose error is of fourth order in the period."""
    from scipy.interpolate import CubicSpline

    def at_grid(field: Floats) -> Floats:
        out = np.full((len(grid), field.shape[1]), np.nan)
        for j, column in enumerate(field.T):
            given = np.isfinite(column)
            if given.sum() > 3:
                out[:, j] = CubicSpline(time[given], column[given])(grid)
        return out

    return Stream(
        stream.names, grid, at_grid(stream.position), at_grid(stream.velocity),
        at_grid(stream.effort),
    )  # fmt: skip
