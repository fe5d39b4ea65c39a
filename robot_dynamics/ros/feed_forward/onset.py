# SPDX-License-Identifier: Apache-2.0
"""How quickly torques may come on and change."""

from __future__ import annotations

import numpy as np

from ...scalar import Floats
from .stamps import SECOND

LONGEST = 0.1
"""s of slew that may pass between two torques, whatever the silence between them"""


class Onset:
    """Between the torques that the robot needs and those that go out (m,).

    After an interruption, and at the beginning, they go over from the last ones (zero, at the
    beginning) in `ramp_time`; and at all times they change by no more than `slew_limits`, after a
    silence by no more than in `LONGEST`.
    """

    def __init__(self) -> None:
        self._last: Floats | None = None
        self._time = 0
        self._from: Floats | None = None
        self._since: int | None = None
        self._is_on = False

    def interrupted(self, last: Floats) -> None:
        """These were the last torques before silence: the next ones are a new beginning."""
        self._last, self._from, self._since = last, last, None

    def shaped(self, torques: Floats, now: int, ramp_time: float, slew: Floats | None) -> Floats:
        """The torques to put out.

        Args:
            now: the clock, ns.
            ramp_time: s; 0: none.
            slew: (m,) N·m/s or N/s; None: no limit.
        """
        if self._since is None or self._since > now:
            self._since, self._is_on = now, False
        share = (now - self._since) / SECOND / ramp_time if ramp_time else 1.0
        # a ramp that is set while torques go out is for the next beginning
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
