# SPDX-License-Identifier: Apache-2.0
"""Cleans timestamps: converts raw messages to evenly sampled stretches.

Clocks are set back, publishers stall, and some messages repeat the previous state. Each finding
gives one line in the notes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import counted
from .jumps import without_jumps
from .recording import Floats, Stream, runs

GAP = 4.5
"""Longest gap, in sampling periods, that is interpolated"""
REST = 0.25
"""s: identical messages for longer than this mean that the robot is at rest, not that a state was
repeated"""
EVEN = 1e-3
"""Fraction of a period; stamps this close to an even grid are taken to be on it"""
COARSE = 0.01
"""Fraction of the messages that have the previous message's stamp but different positions, beyond
which the clock is coarse"""
SLOW = 0.05
"""Fraction of the largest speed, below which velocities do not tell the time between messages"""
HOLE = 0.1
"""s: longest gap that only the velocities tell and that is interpolated: positions and velocities
are known at both of its ends"""
ASTRAY = 0.5
"""Part of a step that may be in another direction than the velocities, if it tells the time"""
OFF = 0.1
"""Relative difference of two periods that contradict each other"""
CLEAR = 0.2
"""Median relative deviation of steps from their median, up to which velocities tell the period"""
TELLING = 0.6
"""Ratio of the positions' roughness with even timing to that with the stamps, below which even
timing is used"""
BLOCK = 0.5
"""s: over so long, late and early messages balance; a block"""
BLOCK_MESSAGES = 32
"""What a block has at least"""
WANDER = 0.02
"""Rate at which an even timing gains or loses on the stamps, beyond which it is not used: a clock
is right about seconds, so the messages came more often at some times than at others"""


def even_stretches(
    stream: Stream, notes: list[str], turns: Sequence[bool] | None = None
) -> list[Stream]:
    """The evenly sampled stretches without a gap, earliest first.

    Messages with a NaN, or with a position that jumps and returns, are left out; they leave a gap,
    or are interpolated.

    Args:
        stream: raw messages.
        notes: findings are appended to it.
        turns: whether each joint turns; the others slide. None: all turn.
    """
    turning = np.ones(len(stream.names), dtype=bool) if turns is None else np.array(turns)
    stream = _without_nan(stream, notes)
    if len(stream) < 4:
        return []
    pieces = []
    for piece in _between_resets(stream, notes):
        in_order = _in_order(piece, notes)
        if len(in_order) > 3:
            smooth = without_jumps(_without_held(in_order, notes), turning, notes)
            pieces += _between_gaps(smooth, notes) if len(smooth) > 3 else []
    found = [_evened(piece) for piece in pieces if len(piece) > 3]
    if off := [jitter for _, jitter, longer in found if jitter > 0 and not longer]:
        where = f" in {len(off)} stretches" if len(off) > 1 else ""
        notes.append(
            f"stamps are off by up to {1e3 * max(off):.3g} ms{where}: the positions are smoother "
            "if evenly sampled, so even timing was assumed"
        )
    if (missing := sum(longer for *_, longer in found)) > 0:
        notes.append(
            f"the positions move on as if {missing:.3g} s were missing between messages whose "
            "stamps do not show it, and the velocities agree: this time was added"
        )
    return [stream for stream, *_ in found]


def _without_nan(stream: Stream, notes: list[str]) -> Stream:
    """The messages with a stamp, all positions, and the efforts of all joints that have any."""
    measured = np.isfinite(stream.effort).any(axis=0)
    given = np.column_stack([stream.time, stream.position, stream.effort[:, measured]])
    whole = np.isfinite(given).all(axis=1)
    if whole.all():
        return stream
    notes.append(f"left out: {counted((~whole).sum(), 'message')} with NaN or without a value")
    return stream.rows(whole)


def _between_resets(stream: Stream, notes: list[str]) -> list[Stream]:
    """Split the stream where the clock was set back, but not at messages that merely arrive
    late."""
    steps = np.diff(stream.time)
    forwards = steps[steps > 0]
    period = float(np.median(forwards)) if len(forwards) else 0.0
    # after a late message, the next one steps forwards again
    back = np.flatnonzero(steps < -GAP * period)
    cuts = [k + 1 for k in back if (stream.time[k + 1 :] < stream.time[k]).sum() > GAP]
    if cuts:
        notes.append(
            f"the clock jumped back {counted(len(cuts), 'time')}; the recording was split there"
        )
    return _parts(stream, cuts)


def _parts(stream: Stream, cuts: Iterable[int]) -> list[Stream]:
    """The stream, split before these messages."""
    edges = [0, *cuts, len(stream)]
    return [stream.rows(slice(a, b)) for a, b in itertools.pairwise(edges)]


def _in_order(stream: Stream, notes: list[str]) -> Stream:
    """The messages sorted by stamps, and spread evenly where several states have one stamp."""
    if (np.diff(stream.time) > 0).all():
        return stream
    order = np.argsort(stream.time, kind="stable")
    late = int((np.diff(stream.time) < 0).sum())
    if late:
        notes.append(f"{late} out-of-order messages were sorted")
    stream = stream.rows(order)
    again = np.r_[False, np.diff(stream.time) == 0]
    moved = np.r_[False, ~_equal(stream.position[1:], stream.position[:-1])]
    crowded = 0
    if (again & moved).sum() > COARSE * len(again):
        values = np.column_stack([stream.position, stream.effort])
        again[1:] &= _equal(values[1:], values[:-1])
        stream, crowded = _spread(stream.rows(~again), notes)
    else:
        stream = stream.rows(~again)
    if left := int(again.sum()) + crowded:
        notes.append(f"left out: {counted(left, 'message')} with a repeated stamp")
    return stream


def _spread(stream: Stream, notes: list[str]) -> tuple[Stream, int]:
    """(the messages, the number of those that were left out) with different stamps.

    Stamps of a clock that ticks more slowly than the robot is sampled say when it last ticked. The
    messages of each tick are spread evenly until the next one; where these would be much closer
    together or farther apart than usual (the clock stood still), only the first is kept.
    """
    begin = np.flatnonzero(np.r_[True, np.diff(stream.time) > 0])
    count = np.diff(np.r_[begin, len(stream)])
    if (count == 1).all():
        return stream, 0
    ticks = stream.time[begin]
    step = np.r_[np.diff(ticks), np.nan] / count
    usual = float(np.nanmedian(np.repeat(step, count))) if len(begin) > 1 else 0.0
    step[-1] = usual
    usable = (count == 1) | ((step > usual / GAP) & (step < GAP * usual))
    place = np.arange(len(stream)) - np.repeat(begin, count)
    time = stream.time + place * np.repeat(step, count)
    kept = (place == 0) | np.repeat(usable, count)
    if spread := int((kept & (place > 0)).sum()):
        notes.append(
            f"{counted(spread, 'message')} with the previous message's stamp but a different state "
            "(coarse clock): spread evenly up to the next stamp"
        )
    return replace(stream, time=time).rows(kept), int((~kept).sum())


def _without_held(stream: Stream, notes: list[str]) -> Stream:
    """Leave out messages that repeat the previous state although the robot moves."""
    values = np.column_stack([stream.position, stream.effort])
    same = np.r_[False, _equal(values[1:], values[:-1])]
    if not same.any() or same.all():
        return stream
    # runs of equal messages; during long ones the robot is at rest
    begin = np.flatnonzero(~same)
    end = np.r_[begin[1:], len(same)]
    lasts = stream.time[end - 1] - stream.time[begin]
    steps = np.diff(stream.time[begin])
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else REST
    # those that would leave a gap, as of a coarse encoder at a reversal, keep one at each step
    beat = np.floor((stream.time - np.repeat(stream.time[begin], end - begin)) / usual)
    bridged = np.repeat(lasts > (GAP - 1) * usual, end - begin) & (np.diff(beat, prepend=0) > 0)
    held = same & ~np.repeat(lasts > REST, end - begin) & ~bridged
    if not held.any():
        return stream
    notes.append(
        f"left out: {counted(held.sum(), 'message')} with the values of the previous one "
        "(republished states)"
    )
    return stream.rows(~held)


def _equal(a: Floats, b: Floats) -> NDArray[np.bool_]:
    equal: NDArray[np.bool_] = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return equal


def _between_gaps(stream: Stream, notes: list[str]) -> list[Stream]:
    steps = np.diff(stream.time)
    cuts = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    if len(cuts):
        one = len(cuts) == 1
        longest = f"of {steps.max():.3g} s is" if one else f"up to {steps.max():.3g} s long are"
        notes.append(f"{counted(len(cuts), 'gap')} {longest} not bridged")
    return _parts(stream, cuts)


def _evened(stream: Stream) -> tuple[Stream, float, float]:
    """(the stretch on an even grid at its own rate, by how much (s) its stamps were off (0: they
    were used), how much longer (s) it is than they say).

    A stamp says when a message was sent, but the values may nevertheless have been sampled evenly.
    Of the stamps and up to three even timings that fit them, with and without gaps for lost
    messages, the one with the smoothest positions is used; the stamps, unless an even timing is
    clearly smoother and does not wander away from them. Stamps that only count the messages are
    even, whether or not some were lost.
    """
    time = stream.time
    period = float(np.median(np.diff(time)))
    even = [np.linspace(time[0], time[-1], len(time))]
    exact = bool(np.abs(even[0] - time).max() < EVEN * period)
    told, usual = _periods_by_rates(stream)
    # leave gaps for missing messages
    if not exact:
        for steps in (np.maximum(1, np.round(np.diff(time) / period)), told):
            if (steps > 1).any():
                even.append(_timed(steps, time, usual))
    elif (told > 1).any() and np.isfinite(usual):
        even.append(time[0] + period * np.r_[0.0, np.cumsum(told)])
    else:
        return replace(stream, time=even[0]), 0.0, 0.0
    roughness = [_roughness(each, stream.position) for each in (time, *even)]
    best, jitter, longer = int(np.argmin(roughness)), 0.0, 0.0
    if best and roughness[best] < TELLING * roughness[0]:
        chosen = even[best - 1]
        longer = float(np.ptp(chosen) - np.ptp(time))
        longer = longer if longer > GAP * period else 0.0
        if longer or _wander(chosen, time) < WANDER:
            jitter = float(np.abs(chosen - time).max())
            time = chosen
    steps = np.diff(time)
    usual = steps[steps < 1.5 * np.median(steps)].mean()
    count = (time[-1] - time[0]) / usual
    if count > GAP * len(steps):  # stamps that drift apart have no usual step, only a mean one
        count = len(steps)
    grid = np.linspace(time[0], time[-1], 1 + round(count))
    if len(grid) == len(time) and np.abs(grid - time).max() < EVEN * period:
        return replace(stream, time=grid), jitter, longer
    return _resampled(stream, time, grid), jitter, longer


def _timed(steps: Floats, time: Floats, usual: float) -> Floats:
    """(k,): even times with these numbers of periods (k - 1,) between messages.

    They fit the stamps, unless the velocities contradict the period of the fit but not the mean
    time between stamps: these count the messages, whether or not some were lost.

    Args:
        steps: the numbers of periods.
        time: (k,) the stamps.
        usual: s, the period by the velocities; NaN: they do not tell.
    """
    places = np.r_[0.0, np.cumsum(steps)]
    slope, begin = np.polyfit(places, time, 1)
    mean = (time[-1] - time[0]) / len(steps)
    if abs(slope - usual) > OFF * usual > abs(mean - usual):
        return np.asarray(time[0] + mean * places)
    return np.asarray(begin + slope * places)


def _wander(even: Floats, time: Floats) -> float:
    """Median rate at which an even timing gains or loses on the stamps from block to block.

    Args:
        even: (k,), s, ascending.
        time: (k,), s, the stamps.
    """
    count = min(int(np.ptp(time) / BLOCK), len(time) // BLOCK_MESSAGES)
    if count < 3:
        return 0.0
    blocks = np.array_split(np.arange(len(time)), count)
    # the median: a few late messages are no wandering
    behind = np.array([np.median((time - even)[block]) for block in blocks])
    middle = np.array([even[block].mean() for block in blocks])
    return float(np.median(np.abs(np.diff(behind) / np.diff(middle))))


def _periods_by_rates(stream: Stream) -> tuple[Floats, float]:
    """(k - 1,): the numbers of periods between messages by the velocities, Δq · q̇ / q̇², and the
    period (s) by the velocities; NaN: they do not tell.

    Where the robot is too slow for that, as many messages are missing as the stamps say in total.
    """
    stamps = np.diff(stream.time)
    given = np.isfinite(stream.velocity).all(axis=0)
    rates = (stream.velocity[1:, given] + stream.velocity[:-1, given]) / 2
    square = (rates**2).sum(axis=1)
    moving = square > SLOW**2 * square.max(initial=0.0)
    steps = np.ones(len(stamps))
    if not moving.any():
        return steps, np.nan
    moved = np.diff(stream.position[:, given], axis=0)
    way = (moved * rates).sum(axis=1)
    passed = way[moving] / square[moving]
    usual = float(np.median(passed))
    if usual <= 0:  # coarse positions, which the velocities do not explain
        return steps, np.nan
    # a step that the velocities do not explain is none through time
    astray = ((moved[moving] - passed[:, None] * rates[moving]) ** 2).sum(axis=1)
    along = astray < ASTRAY**2 * (moved[moving] ** 2).sum(axis=1)
    most = max(np.ceil(GAP), np.floor(HOLE / np.median(stamps)))
    periods = np.round(passed / usual)
    clear = bool(np.median(np.abs(passed / usual - 1)) < CLEAR)
    steps[moving] = np.where(along & (periods <= most), np.maximum(1, periods), 1)
    period = stamps[moving].sum() / steps[moving].sum()
    for begin, end in runs(~moving):
        missing = max(0, round(stamps[begin:end].sum() / period) - (end - begin))
        steps[begin + np.argmax(stamps[begin:end])] += missing
    return steps, usual if clear else np.nan


def _roughness(time: Floats, position: Floats) -> float:
    """RMS error of interpolating each position from its four neighbours by a cubic, over the RMS
    step of the positions; mean over the moving joints."""
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
    """Resample by cubic splines, whose error is of fourth order in the period."""
    fields = (
        np.column_stack([splined(time, column, grid) for column in field.T])
        for field in (stream.position, stream.velocity, stream.effort)
    )
    return Stream(stream.names, grid, *fields)


def splined(time: Floats, values: Floats, at: Floats) -> Floats:
    """Values (k,) at other times (m,) by a cubic spline; NaN if there are fewer than four.

    Args:
        time: (k,), s, ascending.
        values: (k,), NaN where there is none.
        at: (m,), s.
    """
    from scipy.interpolate import CubicSpline

    given = np.isfinite(values)
    if given.sum() < 4:
        return np.full(len(at), np.nan)
    return np.asarray(CubicSpline(time[given], values[given])(at))
