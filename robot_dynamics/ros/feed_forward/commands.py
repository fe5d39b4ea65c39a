# SPDX-License-Identifier: Apache-2.0
"""Commands are checked when received, and followed from the next state on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...scalar import Floats
from .derivative import Derivative, following
from .limits import CommandLimits
from .motion import Course, Desired, Missing, Motion, Setpoint, is_course, read
from .parameters import Settings
from .refusal import IncompleteError, RefusedError, Tally
from .stamps import SECOND, Stamps, sampled, stamped
from .torque_model import Model


class Commands:
    """The newest command from a JointTrajectory message, from its arrival to its end.

        pending ──next state──→ following ──→ finished, timeout, or interrupted

    A command that is over is replaced by rest at the point where it ended; no change of parameters
    can resume it. Times are ns of the node's clock. A refused message changes nothing.

    Args:
        tally: logs the beginnings and ends that are worth a message.

    Attributes:
        pending: the motion that takes over with the next state; None: there is none.
        motion: the motion that is being followed or has ended; None: there was none.
        phase: waiting (for a first command), following, finished (a trajectory has ended),
            timeout, or interrupted.
        over_since: when the command ended.
        at: when the newest command arrived; None: there was none.
        count: number of accepted commands.
    """

    def __init__(self, tally: Tally) -> None:
        self.pending: Motion | None = None
        self.motion: Motion | None = None
        self.phase = "waiting"
        self.over_since = 0
        self.at: int | None = None
        self.count = 0
        self._tally = tally
        self._stamps = Stamps()
        self._rates: Derivative | None = None

    def take(
        self, message: Any, now: int, model: Model, settings: Settings, sent: int | None = None
    ) -> None:
        """Read a JointTrajectory.

        Args:
            message: the JointTrajectory.
            now: the clock, ns.
            model: the robot's model.
            settings: the current settings.
            sent: see `sampled`.

        Raises:
            RefusedError: it is not a motion of this robot, or its stamp is wrong.
            IncompleteError: too few points have arrived to derive the accelerations.
        """
        stamp = stamped(message.header)
        is_state = not is_course(message)
        if is_state:
            self._stamps.checked(stamp, now, settings.max_age)
        rates, are_known = self._rates, True

        def derived(qd: Floats | None) -> Floats:
            """The derivative of the velocities in a stream of points."""
            nonlocal rates, are_known
            if qd is None:
                raise RefusedError(
                    "no velocities",
                    "a single point carries no velocities to derive accelerations from",
                )
            rates = following(
                rates,
                qd,
                sampled(stamp, sent, now),
                settings.derivative_filter,
                stamped=stamp != 0,
            )
            are_known = rates.value is not None
            return np.zeros_like(qd) if rates.value is None else rates.value

        missing: dict[str, Missing | None] = {
            "refuse": None,
            "zero": lambda _: np.zeros(len(model.joints)),
            "derive": derived,
        }
        motion = read(
            message,
            model.joints,
            model.periodic,
            now=now,
            whole_state=not settings.measured or model.feedback is not None,
            missing=missing[settings.missing_accelerations],
            limits=CommandLimits.of(settings, model),
            followers=model.followers,
        )
        self._rates = rates
        if is_state and stamp:
            self._stamps.accept(stamp, now)
        if not are_known:
            raise IncompleteError(
                "no accelerations yet",
                "they are derived from the velocities of a stream of points "
                "(missing_accelerations: derive), and there are not enough samples yet",
            )
        self.pending = motion
        self.at = now
        self.count += 1

    def begin(
        self,
        time: int,
        now: int,
        max_age: float,
        start: Callable[[], tuple[Floats | None, Floats | None]],
    ) -> None:
        """Follow the pending motion from now on, or refuse it if it cannot begin.

        Args:
            time: the time of the state, ns.
            now: the clock, ns.
            max_age: how long the motion may have waited, s; 0: no check.
            start: returns q, qd (n,) at which the motion begins, or None if unknown.
        """
        pending, self.pending = self.pending, None
        assert pending is not None
        self._count_from_beginning(now)
        if self._is_late(now, max_age):
            return
        try:
            self.motion = pending.begun(time, *start())
        except RefusedError as error:
            self._tally.refuse("command", error)
            return
        self.phase = "following"
        if self.motion.remark:
            self._tally.note("command", "no lead-in", self.motion.remark)

    def _is_late(self, now: int, max_age: float) -> bool:
        """Has the pending motion waited longer than max_age (s; 0: no check)? If so, it is
        counted as dropped."""
        assert self.at is not None
        waited = (now - self.at) / SECOND
        if not 0 < max_age < waited:
            return False
        error = RefusedError(
            "waited too long",
            f"it waited {waited:.3f} s for joint_states, expected at most max_age = "
            f"{max_age:g} s; send it again",
        )
        self._tally.refuse("command", error)
        return True

    def _count_from_beginning(self, now: int) -> None:
        """Count the ages of what happened before simulated time began from its beginning."""
        if self.at == 0:
            self.at = now
        if self.is_over and self.over_since <= 0:
            self.over_since = now

    @property
    def is_over(self) -> bool:
        """Has the command ended? Then `on_timeout` determines what is published until a new
        command arrives."""
        return self.phase in ("finished", "timeout", "interrupted")

    def lapse(self, time: int, now: int, settings: Settings) -> None:
        """End commands that have waited too long or ended more than `command_timeout` ago.

        Args:
            time: the time of the newest state, ns.
            now: the clock, ns.
            settings: the current settings.
        """
        self._count_from_beginning(now)
        if self.pending is not None and self._is_late(now, settings.max_age):
            self.pending = None
        motion, timeout = self.motion, settings.command_timeout
        if motion is None or self.is_over or timeout == 0:
            return
        over = motion.over_for(time, now)
        if over <= timeout:
            return
        self.phase = "finished" if isinstance(motion, Course) else "timeout"
        self._rest(motion.at(time).q, now - round(over * SECOND))
        if self.phase == "timeout":
            self._tally.note(
                "command",
                "timeout",
                f"no command for {over:.3g} s (command_timeout is {timeout:g} s): applying "
                f"on_timeout: {settings.on_timeout}",
                anew=True,
            )

    def interrupt(self, q: Floats | None, now: int) -> None:
        """End the command now.

        Args:
            q: (n,) rad or m, where the robot is to rest; None: no position is held.
            now: the clock, ns.
        """
        self.pending = None
        if self.motion is not None and not self.is_over:
            self.phase = "interrupted"
            self._rest(q, now)
        elif self.motion is not None:
            self.let_go(q)

    def let_go(self, q: Floats | None = None) -> None:
        """Stop holding the position at which a command ended.

        Args:
            q: (n,) rad or m, another position to hold; None: no position is held.
        """
        assert self.motion is not None
        if q is not None or self.motion.at(self.over_since).q is not None:
            self._rest(q, self.over_since)

    def _rest(self, q: Floats | None, since: int) -> None:
        """Rest at q (n,) from `since` (ns) on."""
        assert self.motion is not None
        n = len(self.motion.at(since).qdd)
        self.over_since = since
        self.motion = Setpoint(Desired(q, np.zeros(n), np.zeros(n)), since)

    def drop(self) -> None:
        """Discard the command."""
        self.pending = self.motion = None
        self.phase = "waiting"

    def forget(self) -> None:
        """Discard all commands, which were for another robot."""
        self.drop()
        self._rates = None

    def forget_times(self) -> None:
        """Discard earlier stamps, which are invalid after a jump of the clock."""
        self._stamps.forget()
        self._rates = None
