# SPDX-License-Identifier: Apache-2.0
"""The final check, which ensures that published torques are finite, within their limits, and
change no faster than allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...scalar import Floats
from .joint_states import all_finite
from .parameters import Settings
from .refusal import RefusedError, Tally
from .stamps import SECOND
from .torque_model import Model

LONGEST_PAUSE = 0.1
"""s: the longest pause that counts towards the slew limit"""


class Torques(NamedTuple):
    """The torques to publish."""

    values: Floats
    """(m,) in the order of the model's outputs, N·m or N"""
    time: int
    """The time of their state, ns"""
    at_rest: bool = False
    """Whether they hold the robot at rest, so that a controller may keep applying them"""


class TorqueRamp:
    """Turns computed torques (m,) into published ones.

    At the start and after every interruption, the output blends linearly within `ramp_time` from
    the last published torques (zero at the start) to the computed ones. It never changes faster
    than `slew_limits`, and after a pause by no more than these allow in `LONGEST_PAUSE`.
    """

    def __init__(self) -> None:
        self._last: Floats | None = None
        self._before: Floats | None = None
        self._time = 0
        self._from: Floats | None = None
        self._since: int | None = None
        self._ramp_time, self._is_on = 0.0, False

    def interrupted(self, last: Floats | None) -> None:
        """Record the last torques before an interruption, from which the next ramp starts.

        Args:
            last: (m,) N·m or N; None: there were none.
        """
        self._last, self._since = last, None

    def withheld(self) -> None:
        """Start from the torques before the last shaped ones, which were not published."""
        if self._since is not None:
            self.interrupted(self._before)

    def shaped(self, torques: Floats, now: int, ramp_time: float, slew: Floats | None) -> Floats:
        """The torques to publish (m,), N·m or N.

        Args:
            torques: (m,) the computed torques, N·m or N.
            now: the clock, ns; 0 while simulated time has not begun, and so no ramp either.
            ramp_time: s; 0: none.
            slew: (m,) N·m/s or N/s; None: no limit.
        """
        # another ramp time applies to the rest of the way
        is_another = ramp_time != self._ramp_time and not self._is_on
        if not self._since or self._since > now or is_another:
            self._since, self._from, self._is_on = now, self._last, False
        self._ramp_time = ramp_time
        share = (now - self._since) / SECOND / ramp_time if ramp_time else 1.0
        # a ramp time set while torques are published applies to the next start
        self._is_on = self._is_on or share >= 1.0
        if not self._is_on:
            start = 0.0 if self._from is None else self._from
            torques = start + share * (torques - start)
        if slew is not None:
            last = np.zeros_like(torques) if self._last is None else self._last
            passed = max(now - self._time, 0) / SECOND if self._time else 0.0
            # an infinite limit is none, not even in no time
            with np.errstate(invalid="ignore"):
                step = np.nan_to_num(slew * min(passed, LONGEST_PAUSE), nan=np.inf)
            torques = np.clip(torques, last - step, last + step)
        self._before, self._last, self._time = self._last, torques, now
        return torques


class Outlet:
    """Checks and shapes the torques to publish, and knows which ones the controllers downstream
    hold.

    Args:
        tally: counts clipped torques.
        steady: s, of a clock that never jumps.

    Attributes:
        count: number of torque messages.
        at: when the last torques were published, ns; None: there were none.
        at_rest: are the last torques those at rest, or were there none?
    """

    def __init__(self, tally: Tally, steady: Callable[[], float]):
        self.count = 0
        self.at: int | None = None
        self.at_rest = True
        self._last: Floats | None = None
        self._tally, self._steady = tally, steady
        self._on_the_wall = steady()

    def restart(self) -> None:
        """Let torques start from zero, for another robot."""
        self._ramp = TorqueRamp()

    def withheld(self) -> None:
        """Record that the last torques, those of a motion, reached nobody: the next ones are ramped
        in from those before."""
        self._ramp.withheld()

    def passed(
        self,
        torques: Floats,
        model: Model,
        settings: Settings,
        time: int,
        now: int,
        *,
        at_rest: bool,
        last: bool,
    ) -> Torques:
        """The torques (m,) to publish, within the limits.

        Args:
            torques: (m,) the computed torques, N·m or N.
            model: the robot's model.
            settings: the current settings.
            time: the time of their state, ns.
            now: the clock, ns.
            at_rest: whether they hold the robot at rest.
            last: do no torques follow for now? Then the ramp does not apply.

        Raises:
            RefusedError: one of them is not finite.
        """
        if not model.is_allowed(torques):
            torques = self._cut(torques, model)
        if last:
            self._ramp.interrupted(torques)
        else:
            # also without a ramp or slew limits: either may be set while torques are published
            shaped = self._ramp.shaped(torques, now, settings.ramp_time, model.slew)
            if shaped is not torques:
                at_rest = at_rest and bool((shaped == torques).all())
                torques = shaped
        self.count += 1
        self._last = torques
        self.at, self.at_rest = now, at_rest
        self._on_the_wall = self._steady()
        return Torques(torques, time, at_rest)

    def _cut(self, torques: Floats, model: Model) -> Floats:
        """Torques (m,) within the limits.

        Raises:
            RefusedError: one of them is not finite.
        """
        if not all_finite(torques):
            by_joint = dict(zip(model.outputs, torques.tolist(), strict=True))
            raise RefusedError(
                "not finite",
                f"the computed torques are {by_joint}; none are published, and the controller "
                "keeps the last ones: check the newest state and command",
            )
        limits = model.limits
        if (np.abs(torques) > limits).any():
            k = int(np.argmax(np.abs(torques) - limits))
            self._tally.note(
                "torques",
                "limited",
                f"torque of {model.outputs[k]!r} clipped from {torques[k]:.6g} to "
                f"±{limits[k]:.6g} (effort_limits)",
            )
            torques = np.clip(torques, -limits, limits)
        return torques

    @property
    def is_zero(self) -> bool:
        """Are the last torques zero, or were there none?"""
        return self._last is None or not self._last.any()

    def holds_a_motion_for(self, now: int, limit: float) -> bool:
        """Have the controllers held the torques of a motion for longer than `limit`?

        Args:
            now: the clock, ns.
            limit: s.
        """
        return not self.at_rest and self.silence(now) > limit

    def silence(self, now: int) -> float:
        """Time since the last torques, or else since the start, s: by the node's clock, or in wall
        time if that is longer, as simulated time may have stopped.

        Args:
            now: the clock, ns.
        """
        # also while simulated time has not begun (0) there is no time to compare with
        by_clock = (now - self.at) / SECOND if self.at else 0.0
        return max(by_clock, self._steady() - self._on_the_wall)
