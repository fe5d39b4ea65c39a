# SPDX-License-Identifier: Apache-2.0
"""What the robot does: joint states as they come, checked, and whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...scalar import Floats
from .joint_states import Fill, JointStateReader
from .merging import Merging
from .parameters import Settings
from .rates import Rates
from .refusal import RefusedError
from .stamps import SECOND, Stamps, stamped
from .torque_model import Model


class States:
    """The newest state of a model's joints, out of JointState messages.

    Times are ns of the node's clock. A message that is refused leaves nothing behind; one that is
    incomplete is kept.

    Attributes:
        q, qd: (k,) of what the model reads; with feedback commanded of the joints besides alone.
        whole: the newest message that was used; of states in parts all that is known.
        at: when it came; of states in parts the time of the oldest one; None: there is none.
        count: how many were used.
        foreign: how many named other joints alone, and were ignored.
        missing: what the newest state lacks of the sensors that may be missing.
        stamped: has the newest message a stamp?
        merging: what was said last of each joint, where states come in parts.
        rates: derived from positions, where they are missing.
    """

    def __init__(self) -> None:
        self.count = self.foreign = 0
        self._stamps = Stamps()
        self.fit(None)

    def fit(self, model: Model | None) -> None:
        """From now on those of this model's joints; what came before is forgotten."""
        read, n = ((), 0) if model is None else (model.read, len(model.joints))
        optional = () if model is None else model.optional
        continuous = []
        if model is not None:
            joint = model.spec.mechanism.joint
            continuous = [name for name in read if joint(name).type == "continuous"]
        self._known, self._driven = frozenset(read), read[:n]
        self._besides = read[n:]
        # what is not measured is of use where a motion begins
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
        self._time = 0
        self.at: int | None = None
        self._stamps.forget()

    def take(self, message: Any, now: int, settings: Settings) -> int | None:
        """Take q and qd from a JointState.

        Returns:
            its time; None: it names other joints alone.

        Raises:
            RefusedError: it does not fit this robot, or comes at a wrong time.
            IncompleteError: it is kept, but it makes no state yet.
        """
        names = message.name
        # those of the message before are known
        if names and names != self._names and self._known.isdisjoint(names):
            self.foreign += 1
            return None
        stamp, max_age = stamped(message.header), settings.max_age
        fill = None
        if settings.missing_velocities == "derive":
            fill = self.rates.at(
                stamp or now,
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
        self.whole, self._names, self._time, self.stamped = whole, names, time, stamp != 0
        self.count += 1
        return time

    def _keep_rates(self, fill: Fill | None) -> None:
        if fill is not None:
            self.rates.keep()

    @property
    def told(self) -> list[str]:
        """Those of the driven joints that are in the newest message, in the model's order."""
        return [name for name in self._driven if name in self._names]

    @property
    def moves(self) -> bool:
        """Does the newest message tell of a joint that is driven?"""
        return any(name in self._names for name in self._driven)

    @property
    def time(self) -> int:
        """ns, of the newest message."""
        return self._time

    def besides(self, now: int, max_age: float) -> tuple[Floats, Floats]:
        """q, qd (k - n,) of the joints that are read but not driven.

        Raises:
            RefusedError: there is no state of them, or none that is recent enough.
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
        """Is there no state that may still be used? max_age in s; 0: no check."""
        return self.at is None or 0 < max_age < (now - self.at) / SECOND

    def forget_times(self) -> None:
        """The clock jumped: earlier stamps are void."""
        self._stamps.forget()
        self.rates.forget()
        self.merging.forget()
