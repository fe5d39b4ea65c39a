"""What the robot does: joint states as they come, checked, and whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...scalar import Floats
from .joint_states import JointStateReader
from .merging import Merging, Reading
from .model import Model
from .parameters import Settings
from .rates import Rates
from .refusal import RefusedError
from .stamps import SECOND, Stamps, stamped


class States:
    """The newest state of a model's joints, out of JointState messages.

    Times are ns of the node's clock. A message that is refused leaves nothing behind.

    Attributes:
        q, qd: (k,) of what the model reads; with feedback commanded of the joints besides alone.
        whole: the newest message that was used; of states in parts all that is known.
        at: when it came; None: there is none.
        count: how many were used.
        foreign: how many told of other joints alone, and were ignored.
        merging: what was said last of each joint, where states come in parts.
        rates: derived from positions, where they are not told.
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
            joint = model.wish.mechanism.joint
            continuous = [name for name in read if joint(name).type == "continuous"]
        self._known, self._driven = frozenset(read), frozenset(read[:n])
        self._besides = read[n:]
        measured = model is not None and model.wish.settings.measured
        self._reader = JointStateReader(read if measured else self._besides, optional)
        # what is not measured is of use where a motion begins
        unused = frozenset(read) - frozenset(self._reader.joints)
        self.merging = Merging(read, unused | frozenset(optional))
        self.rates = Rates(continuous)
        self.q = self.qd = np.zeros(0)
        self.whole: Any = None
        self._message: Any = None
        self._time = 0
        self.at: int | None = None

    def take(self, message: Any, now: int, settings: Settings) -> int | None:
        """Take q and qd from a JointState.

        Returns:
            its time; None: it tells of other joints alone.

        Raises:
            RefusedError: it is none of this robot, or comes at a wrong time.
        """
        if message.name and self._known.isdisjoint(message.name):
            self.foreign += 1
            return None
        stamps, told = self._stamps, dict[str, Reading]()
        stamp = stamped(message.header)
        if settings.merge_states:
            stamps = self.merging.stamps(message.name)
        time = stamps.checked(stamp, now, settings.max_age)
        whole, fill = message, None
        if settings.missing_velocities == "derive":
            fill = self.rates.at(time, settings.derivative_filter)
        if settings.merge_states:
            whole, told = self.merging.merged(message, time, settings.max_age, fill)
            fill = None
        if self._reader.joints:
            self.q, self.qd = self._reader.read(whole, fill)
        stamps.accept(time, now)
        self.merging.keep(told)
        self._message, self.whole, self._time, self.at = message, whole, time, now
        self.count += 1
        return time

    @property
    def missing(self) -> tuple[str, ...]:
        """What the newest state lacks of the sensors that may be missing."""
        return self._reader.missing

    @property
    def moves(self) -> bool:
        """Does the newest message tell of a joint that is driven?"""
        return not self._driven.isdisjoint(self._message.name)

    def times(self, names: Sequence[str]) -> NDArray[np.int64]:
        """ns, of what is known of each of these joints."""
        parts = getattr(self.whole, "times", None)
        if parts is None:
            return np.full(len(names), self._time)
        return parts[[self.whole.name.index(name) for name in names]]

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
        self.merging.forget()
