# SPDX-License-Identifier: Apache-2.0
"""Recognises efforts that come after the positions, together with the recorded rates.

Some drivers report filtered rates, which come some 10 ms after the positions, and filter efforts in
the same way. Differentiated positions are then right about the motion, but not about the time of
the efforts. Whether efforts are late, too, the efforts tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .cutoff import FIRST, CrossValidation
from .preparation import WHOLE, Even, even
from .recording import Recording
from .unknowns import Columns

BETTER = 0.9
"""Ratio of the held-out errors with late rates to those with differentiated positions (geometric
mean of the joints that move), below which the efforts are late, too"""
MOVES = 0.01
"""rad/s or m/s (RMS), from which on a joint moves"""


def even_with_efforts(
    recording: Recording,
    joints: Iterable[str],
    sliding: Iterable[str],
    unknowns: Columns,
    share: float = 1.0,
) -> Even:
    """A recording on even grids, with late rates if its efforts are late, too.

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
    return raw


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
