# SPDX-License-Identifier: Apache-2.0
"""Filters a stretch forwards and backwards, differentiates it, and decimates it to the filter's
bandwidth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .friction_laws import (
    BACKWARDS,
    FORWARDS,
    OFFSET,
    RATES,
    RAW,
    STIFFNESS,
    STRIBECK,
    VISCOUS,
    rates,
    raw_columns,
)
from .recording import Floats, Stream
from .samples import Samples, Smoothing
from .zero_phase import ZeroPhase, butterworth, differences

ORDER = 4
"""Order of the Butterworth filter"""
HIGHEST = 0.45
"""The highest cut-off, as a fraction of the sampling rate; from a half on, there is no filter"""
THINNING = 10.0
"""Samples kept per period of the cut-off frequency; more add no information"""
SATURATED = 5
"""Number of consecutive samples at the largest or smallest effort that indicates saturation, as a
multiple of the usual number at other values, which is 1 unless efforts are coarse or sampled faster
than measured"""
ROUGH = 0.01
"""Largest distance from an integer of a multiple of the step of coarse efforts"""
USUAL = 0.9
"""Quantile of the lengths of runs of equal efforts that counts as the usual length"""


def filtered(
    stream: Stream,
    cutoff: float | None,
    turns: tuple[bool, ...],
    kept: NDArray[np.intp] | None = None,
    sparse: int = 1,
) -> Samples:
    """Filter one stretch.

    Args:
        stream: k values, evenly sampled.
        cutoff: Hz; None: not filtered.
        turns: whether each joint turns; the others slide.
        kept: indices of the samples to keep; None: decimate to the filter's bandwidth, without the
            ends that its transients affect.
        sparse: keep at most every `sparse`-th sample unless `kept` is given.
    """
    time, q, qd, tau = stream.time, stream.position, stream.velocity, stream.effort
    period = float(time[1] - time[0])
    unfiltered = tau
    usable = _unsaturated(tau) & np.isfinite(tau)
    spoiled, step, friction, smoothing = 3, 1, None, None
    if cutoff is not None:
        # a stretch may be sampled far more slowly than the others
        cutoff = min(cutoff, HIGHEST / period)
        spoiled = transient_length(cutoff, period)
        if kept is None and len(time) <= 3 * spoiled:
            return Samples(time[:0], q[:0], qd[:0], q[:0], tau[:0], tau[:0], usable[:0])
        pad = min(len(time) - 1, 3 * spoiled)
        low_pass = ZeroPhase(*butterworth(ORDER, cutoff, fs=1.0 / period), pad, len(time))
        smooth = Smoothing((low_pass,), qd, qd)
        missing = ~np.isfinite(tau)
        q, qd, tau = np.split(smooth(np.nan_to_num(np.hstack([q, qd, tau]))), 3, axis=1)
        tau[missing] = np.nan
        smoothing = replace(smooth, qd=qd, qdd=differences(qd, period))
        usable = _eroded(usable, spoiled)
        step = int(1.0 / (THINNING * cutoff * period))
    step = max(1, step, sparse)
    qdd = differences(qd, period) if smoothing is None else smoothing.qdd
    chosen = slice(spoiled, len(time) - spoiled, step) if kept is None else kept
    if smoothing is not None:
        columns = _all_columns if kept is None else _few_columns
        friction = columns(smoothing, turns, chosen)
        friction[..., STIFFNESS] = q[chosen]
    return Samples(
        time[chosen], q[chosen], qd[chosen], qdd[chosen], tau[chosen], unfiltered[chosen],
        usable[chosen], friction, smoothing, np.arange(len(time))[chosen],
    )  # fmt: skip


def transient_length(cutoff: float, period: float) -> int:
    """The number of samples at either end that a filter's transients affect."""
    return max(3, math.ceil(1.0 / (cutoff * period)))


def _all_columns(
    smooth: Smoothing, turns: tuple[bool, ...], chosen: slice | NDArray[np.intp]
) -> Floats:
    """(k, n, RAW): the filtered friction columns at some samples, without positions."""
    out = np.empty((len(turns), RAW, len(smooth.qd[chosen])))
    for signals, rate, acceleration, turning in zip(
        out, smooth.qd.T, smooth.qdd.T, turns, strict=True
    ):
        columns = raw_columns(rate, turning, acceleration).T
        if not rate.all():
            signals[:] = smooth.signals(columns)[:, chosen]
            continue
        # F(1) = 1, and F(1 where qd > 0) + F(1 where qd < 0) = 1 if qd is never 0
        told = np.delete(np.arange(STIFFNESS), [BACKWARDS, OFFSET])
        signals[told] = smooth.signals(columns[told])[:, chosen]
        signals[OFFSET] = 1.0
        signals[BACKWARDS] = signals[FORWARDS] - 1.0
    found: Floats = out.transpose(2, 0, 1)
    return found


def _few_columns(
    smooth: Smoothing, turns: tuple[bool, ...], chosen: slice | NDArray[np.intp]
) -> Floats:
    """(k, n, RAW): the filtered friction columns at some samples, without positions and presliding,
    and with every third Stribeck rate only."""
    qd = smooth.qd.T
    out = np.zeros((RAW, len(qd), len(smooth.qd[chosen])))
    out[VISCOUS], out[OFFSET] = qd[:, chosen], 1.0
    ahead = qd > 0
    # F(1 where qd > 0) + F(1 where qd < 0) = 1
    out[FORWARDS] = smooth.signals(ahead.astype(float))[:, chosen]
    out[BACKWARDS] = out[FORWARDS] - 1.0
    sign = np.where(ahead, 1.0, -1.0)
    own = np.array([rates(turning) for turning in turns])[:, :, None]
    for k in range(1, len(RATES), 3):
        effect = sign * np.exp(-((qd / own[:, k]) ** 2))
        out[STRIBECK + k] = smooth.signals(effect)[:, chosen]
    found: Floats = out.transpose(2, 1, 0)
    return found


def _unsaturated(tau: Floats) -> NDArray[np.bool_]:
    """(k, n): False where an effort remains at its extreme far longer than at other values.

    At a peak, coarsely quantised efforts remain at their extreme, too, but at most five times as
    long as at the next value on either side, as on a parabola; at a limit they stop abruptly.
    """
    usable = np.ones(tau.shape, dtype=bool)
    for j, column in enumerate(tau.T):
        if not np.isfinite(column).any():
            continue
        for extreme in (np.nanmax(column), np.nanmin(column)):
            at = column == extreme
            if extreme != 0 and at.sum() >= SATURATED and _is_limit(column, extreme):
                usable[at, j] = False
    return usable


def _is_limit(efforts: Floats, extreme: float) -> bool:
    """Whether efforts (k,) remain at their extreme `SATURATED` times as long as at the values
    before and after, and as is usual at other values. The other extreme may be a limit, too, and
    tells nothing, unless efforts have few levels, as those of dry friction: -1, 0 and 1."""
    begin = np.flatnonzero(np.r_[True, np.diff(efforts) != 0])
    runs = np.diff(np.r_[begin, len(efforts)])
    values = efforts[begin]
    other = (values != np.nanmax(efforts)) & (values != np.nanmin(efforts))
    if _are_levels(values):
        other = values != extreme
    lengths = np.where(other, runs, 0)
    beside = np.maximum(np.r_[0, lengths[:-1]], np.r_[lengths[1:], 0])
    usual = float(np.quantile(runs[other], USUAL)) if other.any() else 1.0
    limit = runs >= SATURATED * np.maximum(beside, usual)
    return bool((limit & (values == extreme)).any())


def _are_levels(efforts: Floats) -> bool:
    """Whether efforts (k,) have few levels, all of them multiples of a step, and not only two."""
    steps = np.diff(np.unique(efforts[np.isfinite(efforts)]))
    if not 2 <= len(steps) <= SATURATED:
        return False
    counts = steps / steps.min()
    return bool(np.abs(counts - counts.round()).max() < ROUGH)


def _eroded(usable: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """`usable`, made False within `width` samples of every False."""
    if usable.all():
        return usable
    from scipy.ndimage import binary_erosion

    eroded: NDArray[np.bool_] = binary_erosion(
        usable, np.ones((2 * width + 1, 1), dtype=bool), border_value=1
    )
    return eroded
