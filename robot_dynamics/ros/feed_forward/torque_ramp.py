# SPDX-License-Identifier: Apache-2.0
"""Limits how fast published torques change: a ramp at the start, and slew limits at all times."""

from __future__ import annotations

import numpy as np

from ...scalar import Floats
from .stamps import SECOND

LONGEST = 0.1
"""s: the longest time that counts for the slew limit, however long no torques were published"""


class TorqueRamp:
    """Turns computed torques (m,) into published ones.

    At the start and after every interruption, the output blends linearly within `ramp_time` from
    the last published torques (zero at the start) to the computed ones. It never changes faster
    than `slew_limits`, and after a pause by no more than these allow in `LONGEST`.
    """

    def __init__(self) -> None:
        self._last: Floats | None = None
        self._time = 0
        self._from: Floats | None = None
        self._since: int | None = None
        self._is_on = False

    def interrupted(self, last: Floats) -> None:
        """Record the last torques before an interruption, from which the next ramp starts.

        Args:
            last: (m,) N·m or N.
        """
        self._last, self._from, self._since = last, last, None

    def shaped(self, torques: Floats, now: int, ramp_time: float, slew: Floats | None) -> Floats:
        """The torques to publish (m,), N·m or N.

        Args:
            torques: (m,) the computed torques, N·m or N.
            now: the clock, ns.
            ramp_time: s; 0: none.
            slew: (m,) N·m/s or N/s; None: no limit.
        """
        if self._since is None or self._since > now:
            self._since, self._is_on = now, False
        share = (now - self._since) / SECOND / ramp_time if ramp_time else 1.0
        # a ramp time set while torques are published applies to the next start
        self._is_on = self._is_on or share >= 1.0
        if not self._is_on:
            start = 0.0 if self._from is None else self._from
            torques = start + share * (torques - start)
        if slew is not None:
            last = np.zeros_like(torques) if self._last is None else self._last
            passed = max(now - self._time, 0) / SECOND if self._time else 0.0
            step = slew * min(passed, LONGEST)
            torques = np.clip(torques, last - step, last + step)
        self._last, self._time = torques, now
        return torques
