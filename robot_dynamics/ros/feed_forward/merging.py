# SPDX-License-Identifier: Apache-2.0
"""Merges the messages of several publishers, such as an arm and its gripper, into one state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import listed
from .derivative import MOST_SOURCES
from .joint_states import Fill, JointStateReader, places
from .refusal import IncompleteError, RefusedError
from .stamps import FORGET_AFTER, SECOND, check_age, out_of_order


class Merging:
    """The newest reading of each joint, each with its own age.

    Each message is judged on its own: it is either refused or its readings are kept, whatever the
    readings of other joints are. `whole` then checks whether the readings form a complete state.

    Args:
        joints: (k) names, in the order of q and qd.
        needed: those of `joints` whose positions and rates must be known and recent.
        optional: those whose readings may be missing, which are then NaN in q and qd. Readings of
            joints that are neither needed nor optional are kept unchecked.
    """

    def __init__(
        self,
        joints: Sequence[str] = (),
        needed: Collection[str] = (),
        optional: Collection[str] = (),
    ):
        self.joints = list(joints)
        self._place = {name: k for k, name in enumerate(self.joints)}
        self._optional = frozenset(optional)
        self._checked = frozenset(needed) | self._optional
        self._needed = np.array([name in needed for name in self.joints], dtype=bool)
        self.forget()

    def forget(self) -> None:
        """Discard all readings."""
        k = len(self.joints)
        self._values = np.full((3, k), np.nan)
        self._times, self._received = np.zeros((2, k), dtype=np.int64)
        self._known = np.zeros(k, dtype=bool)
        self._sources: dict[tuple[str, ...], _Source] = {}

    def take(self, message: Any, stamp: int, now: int, max_age: float, fill: Fill | None) -> int:
        """Keep a message's readings of some of the joints.

        Args:
            message: a JointState.
            stamp: its stamp, ns; 0: none.
            now: the clock, ns; 0 while simulated time has not begun.
            max_age: largest difference between stamp and clock, s; 0: no check.
            fill: supplies rates that are missing or NaN; None: such a message is refused.

        Returns:
            the message's time, ns.

        Raises:
            RefusedError: a value is not finite, a name appears twice, lengths differ, or the stamp
                is too far from the clock or before the newest one of one of these joints.
        """
        source = self._source(message)
        columns, time = source.columns, stamp
        if stamp:
            check_age(stamp, now, max_age)
            recent = self._known[columns] & (now - self._received[columns] < FORGET_AFTER)
            newest = int(self._times[columns][recent].max(initial=0))
            if stamp < newest:
                raise out_of_order(stamp, newest)
        else:
            time = now
        q, qd = source.reader.read(message, fill)
        # the reader has checked everything: nothing below is refused
        for row, field in enumerate((message.position, message.velocity, message.effort)):
            said = len(field) == len(message.name)
            self._values[row, columns] = np.frombuffer(field)[source.places] if said else np.nan
        self._values[:2, source.checked] = q, qd
        self._times[columns], self._received[columns], self._known[columns] = time, now, True
        self._sources[tuple(message.name)] = source
        if len(self._sources) > MOST_SOURCES:
            del self._sources[next(iter(self._sources))]
        return time

    def _source(self, message: Any) -> _Source:
        """The positions of a message's names."""
        names = message.name
        known = self._sources.get(tuple(names))
        if known is not None:
            return known
        there = set(names)
        told = [name for name in self.joints if name in there]
        if not told:
            raise RefusedError("missing joint", "it names no joints, expected at least one")
        checked = [name for name in told if name in self._checked]
        return _Source(
            JointStateReader(checked, [name for name in checked if name in self._optional]),
            places(names, told, "name"),
            np.array([self._place[name] for name in told], dtype=np.intp),
            np.array([self._place[name] for name in checked], dtype=np.intp),
        )

    def whole(self, time: int, now: int, max_age: float) -> Any:
        """A JointState of all joints.

        Positions, velocities and efforts are NaN where they are unknown or too old.

        Args:
            time: the time of the newest message, ns.
            now: the clock, ns; 0 while simulated time has not begun.
            max_age: the largest age of a reading, s; 0: no check.

        Raises:
            IncompleteError: a needed joint is unknown, or its reading is too old.
        """
        usable = self._known
        if not self._known[self._needed].all():
            missing = [
                name
                for name, known, needed in zip(self.joints, self._known, self._needed, strict=True)
                if needed and not known
            ]
            which = listed(map(repr, missing))
            raise IncompleteError(
                "missing joint",
                f"no message has contained joint {which} yet: start its publisher, or name it "
                "in locked_joints",
            )
        if max_age > 0:
            ages = ((now or time) - self._times) / SECOND
            usable = usable & (ages <= max_age)
            if not usable[self._needed].all():
                k = int(np.argmax(np.where(self._needed, ages, -np.inf)))
                raise IncompleteError(
                    "joint too old",
                    f"the newest reading of {self.joints[k]!r} is {ages[k]:.3f} s old, expected at "
                    f"most max_age = {max_age:g} s",
                )
        q, qd, effort = np.where(usable, self._values, np.nan)
        return SimpleNamespace(name=self.joints, position=q, velocity=qd, effort=effort)

    @property
    def began(self) -> bool:
        """Is there a reading of any joint?"""
        return bool(self._sources)

    @property
    def oldest(self) -> int:
        """The time of the oldest reading of a needed joint, ns."""
        return int(self._times[self._needed].min())

    def ages(self, time: int) -> dict[str, float]:
        """The age of each known joint's newest reading, s, by name.

        Args:
            time: the clock, ns.
        """
        return {
            name: float(time - then) / SECOND
            for name, then, known in zip(self.joints, self._times, self._known, strict=True)
            if known
        }


class _Source(NamedTuple):
    """How messages with certain names are read."""

    reader: JointStateReader
    """Reads the joints that are checked"""
    places: NDArray[np.intp]
    """Indices in the message of the names of `columns`"""
    columns: NDArray[np.intp]
    """Indices of the message's joints among all joints"""
    checked: NDArray[np.intp]
    """Indices of the joints that the reader reads among all joints"""
