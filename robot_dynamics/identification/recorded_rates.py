# SPDX-License-Identifier: Apache-2.0
"""Rates as recorded or, where these do not agree with the positions, the differences of those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from .recording import Floats, Stream
from .zero_phase import both_ways, butterworth, differences

NOISIER = 2.0
"""Ratio of the noise of recorded rates to that of position differences, beyond which the latter are
used"""
MOSTLY = 0.9
"""Fraction of the samples that must have a recorded rate"""
MATCH = 0.1
"""Relative deviation of recorded rates from position differences, beyond which the latter are
used"""
LATEST = 0.1
"""s: the longest delay of recorded rates after the positions that is looked for"""
LESS = 0.5
"""Ratio of the deviation of recorded rates from delayed position differences to that without the
delay, up to which they are late"""
LOW = 10
"""Ratio of the Nyquist frequency to that up to which recorded and derived rates are compared"""
FEWEST = 30
"""Smallest number of samples of a stretch whose rates are compared"""


def with_rates(
    streams: Sequence[Stream], notes: list[str], late: bool
) -> tuple[list[Stream], float]:
    """(the streams with rates for every joint, s by which recorded ones come after the positions).

    A joint's recorded rates are kept if, in all streams together, they agree with the positions (if
    `late`, but for a delay) and are not much noisier than the differences of these. Otherwise, and
    where single rates are missing, the differences are used.
    """
    names = streams[0].names
    own = [differences(each.position, each.duration / (len(each) - 1)) for each in streams]
    there = [np.isfinite(each.velocity) for each in streams]
    rates = [
        np.where(some, each.velocity, other)
        for some, each, other in zip(there, streams, own, strict=True)
    ]
    moved = np.any([each.any(axis=0) for each in own], axis=0)
    told = np.any([each.any(axis=0) for each in rates], axis=0)
    given = (np.concatenate(there).mean(axis=0) > MOSTLY) & (told | ~moved)
    recorded = [np.where(given, each, other) for each, other in zip(rates, own, strict=True)]
    wrong = given & (_rate_deviation(recorded, own) > MATCH)
    delay = 0.0
    if wrong.any():
        differing, derived = ([each[:, wrong] for each in kind] for kind in (recorded, own))
        delay = _delay(differing, derived, streams[0].duration / (len(streams[0]) - 1))
    if late and delay:
        slow = ", ".join(name for name, each in zip(names, wrong, strict=True) if each)
        notes.append(
            f"recorded velocities of {slow} come {1000 * delay:.0f} ms after the positions, and so "
            "do the efforts, which they explain better than differentiated positions"
        )
        wrong[:] = False
    noise, least = _noise(recorded, own)
    worse = noise > NOISIER * least
    missing, odd, noisy = [], [], []
    for j, name in enumerate(names):
        if not given[j]:
            missing.append(name)
        elif wrong[j]:
            odd.append(name)
        elif worse[j]:
            noisy.append(name)
        else:
            continue
        for each, other in zip(rates, own, strict=True):
            each[:, j] = other[:, j]
    if missing:
        notes.append(f"no velocities of {', '.join(missing)}; using differentiated positions")
    if odd:
        notes.append(
            f"recorded velocities of {', '.join(odd)} do not match the positions; using "
            "differentiated positions"
        )
    if noisy:
        notes.append(
            f"recorded velocities of {', '.join(noisy)} are noisier than differentiated positions, "
            "which are used instead"
        )
    return [replace(each, velocity=new) for each, new in zip(streams, rates, strict=True)], delay


def _delay(recorded: Sequence[Floats], derived: Sequence[Floats], period: float) -> float:
    """s: how late recorded rates (k, n) come after derived ones; 0 if with no delay they agree much
    better than without."""
    most = round(LATEST / period)
    pairs = [each for each in _slow(recorded, derived) if each[0].shape[1] > 2 * most]
    off = [
        sum(((other[:, k::LOW] - y[:, : y.shape[1] - k : LOW]) ** 2).sum() for y, other in pairs)
        for k in range(most + 1)
    ]
    best = int(np.argmin(off))
    return best * period if off[best] < LESS**2 * off[0] else 0.0


def _rate_deviation(recorded: Sequence[Floats], derived: Sequence[Floats]) -> Floats:
    """(n,): relative deviation of recorded from derived rates, (k, n) each, below a tenth of the
    Nyquist frequency, where the motion is."""
    n = derived[0].shape[1]
    off, size = np.zeros((2, n))
    for y, other in _slow(recorded, derived):
        off += ((other - y) ** 2).sum(axis=1)
        size += (y**2).sum(axis=1)
    return np.asarray(np.sqrt(np.divide(off, size, out=np.zeros(n), where=size > 0)))


def _slow(recorded: Sequence[Floats], derived: Sequence[Floats]) -> Iterator[tuple[Floats, Floats]]:
    """(derived, recorded) rates (n, k) at the low frequencies, where the motion is."""
    for some, own in zip(recorded, derived, strict=True):
        if len(own) >= FEWEST:
            y, other = np.split(both_ways(*butterworth(2, 1 / LOW), 9, np.hstack([own, some]).T), 2)
            yield y, other


def _noise(*rates: Sequence[Floats]) -> list[Floats]:
    """For each of several kinds of rates, with stretches (k, n), (n,): their RMS between a tenth
    and a quarter of the sampling rate, where numerical differences are still fairly accurate."""
    square, count = np.zeros(len(rates) * rates[0][0].shape[1]), 0
    for each in zip(*rates, strict=True):
        k = len(each[0])
        if k >= FEWEST:
            high = both_ways(*butterworth(2, (0.2, 0.5), "band"), 15, np.hstack(each).T)
            square += k * np.var(high, axis=1)
            count += k
    return np.split(np.sqrt(square / max(count, 1)), len(rates))
