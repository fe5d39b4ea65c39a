# SPDX-License-Identifier: Apache-2.0
"""Recognises efforts that come after the positions, alone or together with the recorded rates.

Some drivers report filtered rates, which come some 10 ms after the positions, and filter efforts in
the same way. Differentiated positions are then right about the motion, but not about the time of
the efforts. Whether efforts are late, too, the efforts tell. Where only they are late, or no rates
were recorded, the delay with which they are predicted best is searched for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .cutoff import FIRST, CrossValidation
from .doubts import surely_worse
from .low_pass import THINNING, filtered
from .mixed import PARTS, Fits
from .preparation import WHOLE, Even, even
from .quality import HARDLY
from .recorded_rates import LATEST
from .recording import Floats, Recording, thinned
from .samples import joined
from .unknowns import Columns, Unknowns

BETTER = 0.9
"""Ratio of the held-out errors with late rates to those with differentiated positions (geometric
mean of the joints that move), below which the efforts are late, too"""
MOVES = 0.01
"""rad/s or m/s (RMS), from which on a joint moves"""
SHARE = 1 / 8
"""Fraction of the motion from which a cut-off is chosen that suffices to find a delay"""
SAMPLES = 1200
"""Largest number of samples to which all friction laws are fitted, about"""
DELAYS = 9
"""Number of delays that are tried first, from one end to the other"""
HALF = 0.5
"""Ratio of the held-out errors with the efforts moved to those without, below which they are moved.
Elastic gears, too, make efforts look late, but explain less"""


def even_with_efforts(
    recording: Recording,
    joints: Iterable[str],
    sliding: Iterable[str],
    unknowns: Columns,
    share: float = 1.0,
) -> Even:
    """A recording on even grids, with late rates if its efforts are late, too, and with efforts
    moved to the positions that belong to them.

    Args:
        recording, joints, sliding: as for `even`.
        unknowns: the parameters to identify.
        share: the first part of the recording, which may be used for this.

    Raises:
        RecordingError: as for `even`.
    """
    joints, sliding = tuple(joints), tuple(sliding)
    raw = even(recording, joints, sliding)
    if raw.delay:
        late = even(recording, joints, sliding, late=True)
        if _better(unknowns, late.first(share), raw.first(share)):
            return late
    if isinstance(unknowns, Unknowns) and unknowns.payload is None:
        return raw.with_efforts_moved(effort_delay(unknowns, raw.first(share)))
    return raw


def effort_delay(unknowns: Unknowns, raw: Even) -> int:
    """By how many samples the efforts come after the positions; 0 unless they are then clearly
    better explained.

    Args:
        unknowns: the parameters to identify.
        raw: the motion that may be used.
    """
    most = round(LATEST * raw.rate)
    if WHOLE * raw.rate <= FIRST or not most:
        return 0
    raw = raw.excerpt(SHARE)
    if not raw.pieces:
        return 0
    moving = np.ptp(np.concatenate([each.position for each in raw.pieces]), axis=0) >= HARDLY
    total = math.ceil(min(THINNING * FIRST / raw.rate, 1.0) * sum(map(len, raw.pieces)))
    stretches, smooth = [], []
    for each in raw.pieces:
        one = filtered(each, FIRST, raw.turns)
        if one.smoothing is not None and one.place is not None:
            # the transients that were left out at both ends are longer than any delay
            some = thinned(len(one), SAMPLES, total)
            stretches.append(one.rows(some))
            tau = one.smoothing(np.nan_to_num(each.effort))
            smooth.append((tau, one.place[some], raw.pace(each)))
    if not stretches:
        return 0
    samples = joined(stretches)
    measured = np.asarray(samples.usable.any(axis=0))
    usable = np.asarray(samples.usable[:, measured].all(axis=1))
    told = moving[measured]
    if not told.any() or usable.sum() < PARTS:
        return 0

    # friction that builds up after each reversal resembles a delay, so every law is fitted
    every = np.eye(unknowns.size)

    def missed(delays: NDArray[np.intp]) -> Floats:
        """(delays, parts): mean logarithms of the errors of the joints that move."""
        efforts = np.concatenate(
            [
                np.stack([tau[k + round(pace * d)] for d in delays.tolist()], axis=2)
                for tau, k, pace in smooth
            ]
        )
        fits = Fits(unknowns, samples.rows(usable), measured, efforts[usable], every)
        n = len(measured)
        each = (fits.missed(np.full(n, k), np.ones(n)) for k in range(len(delays)))
        return np.array([own[:, told].mean(axis=1) for own in each])

    coarse = np.unique(np.r_[0, np.linspace(-most, most, DELAYS).round().astype(int)])
    best = _best(coarse, missed(coarse))
    if best == 0:
        return 0
    width = int(np.diff(coarse).max())
    fine = np.unique(np.r_[0, np.clip(np.arange(best - width, best + width + 1), -most, most)])
    errors = missed(fine)
    best = _best(fine, errors)
    # at an end, the delay is another one, or the model is wrong
    if abs(best) == most or not surely_worse(
        (errors[fine == 0] - errors[fine == best])[0], 1 / HALF
    ):
        return 0
    return best


def _best(delays: NDArray[np.intp], errors: Floats) -> int:
    """The delay (d,) with the smallest mean error (d, parts)."""
    return int(delays[np.argmin(errors.mean(axis=1))])


def _better(unknowns: Columns, late: Even, raw: Even) -> bool:
    """Whether late rates predict held-out efforts better."""
    cutoff = FIRST if WHOLE * raw.rate > FIRST else math.inf
    each = [CrossValidation(unknowns, one.excerpt()) for one in (late, raw)]
    if not all(one.count for one in each):
        return False
    missed, other = (one.missed(cutoff) for one in each)
    rates = np.concatenate([piece.velocity for piece in raw.pieces])
    told = (rates**2).mean(axis=0) > MOVES**2
    told &= (missed > 0) & (other > 0)  # not NaN: an effort was measured
    return bool(told.any() and np.log(missed[told] / other[told]).mean() < math.log(BETTER))
