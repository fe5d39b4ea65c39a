# SPDX-License-Identifier: Apache-2.0
"""The robot's state: incoming joint states, checked and, if they come in parts, merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...scalar import Floats
from .joint_states import Fill, JointStateReader
from .merging import Merging
from .parameters import Settings
from .rates import Rates
from .refusal import RefusedError
from .stamps import SECOND, Stamps, sampled, stamped
from .torque_model import Model


class States:
    """The newest state of a model's joints, from JointState messages.

    Times are ns of the node's clock. A refused message changes nothing; an incomplete one is kept.

    Attributes:
        q, qd: (k,) of the joints that the model reads, rad or m and rad/s or m/s; with feedback
            commanded, only of those that are not driven.
        whole: the newest message that was used; with `merge_states`, all readings known.
        at: when it arrived; with `merge_states`, the time of the oldest required reading; None:
            there is no state since the clock's last jump.
        time: the time of the newest message.
        sampled: the time base of its derivatives; see `sampled`.
        count: number of messages that were used.
        foreign: number of messages that were ignored because they named only other joints.
        missing: the optional sensors that the newest state lacks.
        stamped: does the newest message have a stamp?
        merging: the newest reading of each joint, with `merge_states`.
        rates: derives missing rates from positions.
    """

    def __init__(self) -> None:
        self.count = self.foreign = 0
        self._stamps = Stamps()
        self.set_model(None)

    def set_model(self, model: Model | None) -> None:
        """Read the joints of this model from now on, and discard earlier states.

        Args:
            model: the robot's model; None: there is no robot.
        """
        read, n = ((), 0) if model is None else (model.read, len(model.joints))
        optional = () if model is None else model.optional
        continuous = []
        if model is not None:
            joint = model.spec.mechanism.joint
            continuous = [name for name in read if joint(name).type == "continuous"]
        self._known, self._driven = frozenset(read), read[:n]
        self._besides = read[n:]
        # with commanded feedback, the driven joints are only needed where a motion begins
        measured = model is not None and model.spec.settings.measured
        used = read if measured else self._besides
        self._reader = JointStateReader(used, optional)
        self._used = slice(len(read) - len(used), len(read))
        self.merging = Merging(read, frozenset(used) - frozenset(optional), optional)
        self.rates = Rates(continuous, optional)
        self.q = self.qd = np.zeros(0)
        self.missing: tuple[str, ...] = ()
        self.whole: Any = None
        self.stamped = True
        self._names: list[str] = []
        self.time = self.sampled = 0
        self.at: int | None = None
        self._stamps.forget()

    def take(
        self, message: Any, now: int, settings: Settings, sent: int | None = None
    ) -> int | None:
        """Take q and qd from a JointState.

        Args:
            message: the JointState.
            now: the clock, ns.
            sent: see `sampled`.
            settings: the current settings.

        Returns:
            its time, ns; None: it names only other joints.

        Raises:
            RefusedError: it does not fit this robot, or its stamp is wrong.
            IncompleteError: it is kept, but the state is not complete yet.
        """
        names = message.name
        # the names of the previous message need no check
        if names and names != self._names and self._known.isdisjoint(names):
            self.foreign += 1
            return None
        stamp, max_age = stamped(message.header), settings.max_age
        fill, base = None, sampled(stamp, sent, now)
        if settings.missing_velocities == "derive":
            fill = self.rates.at(
                base,
                settings.derivative_filter,
                settings.max_acceleration,
                stamped=stamp != 0,
            )
        if settings.merge_states:
            time = self.merging.take(message, stamp, now, max_age, fill)
            self._keep_rates(fill)
            whole = self.merging.whole(time, now, max_age)
            self.q, self.qd = whole.position[self._used], whole.velocity[self._used]
            self.missing = self._reader.gaps(self.q)
            self.at = min(self.merging.oldest, now) if len(self.q) else now
        else:
            if self.merging.began:
                self.merging.forget()
            time = self._stamps.checked(stamp, now, max_age)
            whole = message
            if self._reader.joints:
                self.q, self.qd = self._reader.read(whole, fill)
                self._keep_rates(fill)
            self._stamps.accept(time, now)
            self.missing, self.at = self._reader.missing, now
        self.whole, self._names, self.time, self.stamped = whole, names, time, stamp != 0
        self.sampled = base
        self.count += 1
        return time

    def _keep_rates(self, fill: Fill | None) -> None:
        if fill is not None:
            self.rates.keep()

    @property
    def reported(self) -> list[str]:
        """The driven joints that the newest message contains, in the model's order."""
        return [name for name in self._driven if name in self._names]

    def undriven(self, now: int, max_age: float) -> tuple[Floats, Floats]:
        """q, qd (k - n,) of the joints that are read but not driven.

        Args:
            now: the clock, ns.
            max_age: s; 0: no check.

        Raises:
            RefusedError: their state is unknown or too old.
        """
        if self._besides and self.is_old(now, max_age):
            raise RefusedError(
                "no joint states",
                f"no recent joint_states with {', '.join(self._besides)}; publish them, or name "
                "them in locked_joints",
            )
        first = len(self.q) - len(self._besides)
        return self.q[first:], self.qd[first:]

    def is_old(self, now: int, max_age: float) -> bool:
        """Is the state unknown or too old?

        Args:
            now: the clock, ns.
            max_age: s; 0: no check.
        """
        return self.at is None or 0 < max_age < (now - self.at) / SECOND

    def forget_times(self) -> None:
        """Discard earlier times, which are invalid after a jump of the clock."""
        self.at = None
        self._stamps.forget()
        self.rates.forget()
        self.merging.forget()
