# SPDX-License-Identifier: Apache-2.0
"""Filters without a phase shift, and numerical derivatives."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..codegen import native
from ..codegen.kernel import VARIABLE
from ..errors import BackendError
from .recording import Floats

UNCHANGED = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
"""A second-order section that does nothing"""
LANES = 8
"""The compiled filter needs widths that are multiples of this"""


@dataclass(frozen=True, eq=False)
class ZeroPhase:
    """A filter for signals of one length, applied forwards and backwards."""

    sections: Floats
    start: Floats
    """The sections' state after a long input of 1"""
    pad: int
    """Number of samples that are added at both ends"""
    length: int
    """Of the signals, in samples"""

    def __call__(self, x: Floats) -> Floats:
        """Filter signals (c, length), one in each row."""
        return both_ways(self.sections, self.start, self.pad, x)


@lru_cache(maxsize=64)
def butterworth(*arguments: Any, **options: Any) -> tuple[Floats, Floats]:
    """SciPy's Butterworth filter: its second-order sections, two at least, and their state after a
    long input of 1; designed only once."""
    from scipy.signal import butter, sosfilt_zi

    sections = butter(*arguments, **options, output="sos")
    if len(sections) == 1:
        sections = np.vstack([sections, UNCHANGED])
    return sections, sosfilt_zi(sections)[:, None, :]


@lru_cache
def _compiled() -> Any:
    """`both_ways` of codegen/c/filter.c, which is several times as fast as SciPy's filter; None:
    nothing is compiled."""
    if os.environ.get(VARIABLE) == "python":
        return None
    try:
        return native.library("filter").both_ways
    except BackendError:
        return None


def both_ways(sections: Floats, start: Floats, pad: int, x: Floats) -> Floats:
    """Signals (c, m), one in each row, filtered forwards and backwards (zero phase); `pad` samples
    are added at both ends, turned about the last one."""
    c, m = x.shape
    # the first value comes before everything, as often as makes the width one that C can filter
    begin = pad + (-m - 2 * pad) % LANES
    y = np.empty((c, begin + m + pad))
    y[:, begin : begin + m] = x
    y[:, begin - pad : begin] = 2 * x[:, :1] - x[:, pad:0:-1]
    y[:, : begin - pad] = y[:, begin - pad : begin - pad + 1]
    y[:, begin + m :] = 2 * x[:, -1:] - x[:, -2 : -pad - 2 : -1]
    # C has two sections: of more, it would leave some out
    if len(sections) != 2 or (compiled := _compiled()) is None:
        from scipy.signal import sosfilt

        # like SciPy's sosfiltfilt, which computes the initial state anew in every call
        for _ in range(2):
            y, _ = sosfilt(sections, y, zi=start * y[:, :1])
            y = y[:, ::-1]
    else:
        addresses = (ctypes.c_void_p(each.ctypes.data) for each in (sections, start, y))
        compiled(*addresses, *map(ctypes.c_long, y.shape))
    inner: Floats = y[:, begin : begin + m]
    return inner


def differences(values: Floats, period: float) -> Floats:
    """Fourth-order central differences d/dt (k, n); of lower order in the two rows at each end.

    Args:
        values: (k, n), evenly sampled.
        period: s between samples.
    """
    # ẋ_k = (x_{k-2} - 8 x_{k-1} + 8 x_{k+1} - x_{k+2}) / 12 h
    rates = np.gradient(values, period, axis=0)
    if len(values) > 4:
        x = values
        rates[2:-2] = (x[:-4] - 8 * x[1:-3] + 8 * x[3:-1] - x[4:]) / (12 * period)
    return rates
