"""One state out of the messages of several publishers, as of an arm and of its gripper."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .joint_states import Fill
from .refusal import RefusedError
from .stamps import SECOND, Stamps


class Reading(NamedTuple):
    """What was said last of a joint."""

    position: float
    velocity: float
    """NaN: not told"""
    effort: float
    """NaN: not told"""
    time: int
    """ns"""


class Merging:
    """What was said last of each joint, with its own age.

    Args:
        joints: names that are needed.
        optional: those of them that may be missing.
    """

    def __init__(self, joints: Sequence[str], optional: Collection[str] = ()):
        self._joints, self._optional = tuple(joints), frozenset(optional)
        self._readings: dict[str, Reading] = {}
        self._stamps: dict[frozenset[str], Stamps] = {}

    def stamps(self, names: Sequence[str]) -> Stamps:
        """Those of the publisher of these names: each has its own."""
        return self._stamps.setdefault(frozenset(names) & frozenset(self._joints), Stamps())

    def merged(
        self, message: Any, time: int, max_age: float, fill: Fill | None = None
    ) -> tuple[Any, dict[str, Reading]]:
        """(a message with all joints that are needed, what there is to `keep` if it is good).

        Velocities and efforts that nobody told are NaN.

        Args:
            message: a JointState; one that is none is left to its reader.
            time: of the message, ns.
            max_age: s that the other joints' readings may be old; 0: no check.
            fill: makes rates where there are none, or NaN.

        Raises:
            RefusedError: a joint was never heard of, or too long ago.
        """
        names, n = message.name, len(message.name)
        velocities = message.velocity or [math.nan] * n
        efforts = message.effort if len(message.effort) == n else [math.nan] * n
        if len(message.position) != n or len(velocities) != n or len(set(names)) != n:
            return message, {}
        new = {
            name: Reading(q, qd, effort, time)
            for name, q, qd, effort in zip(
                names, message.position, velocities, efforts, strict=True
            )
            if name in self._joints
        }
        if fill is not None and new:
            q, qd, _, _ = np.array(list(new.values())).T
            rates = fill(tuple(new), q, qd).tolist()
            new = {
                name: each._replace(velocity=rate)
                for (name, each), rate in zip(new.items(), rates, strict=True)
            }
        if not new:
            return message, {}
        found = {
            name: each for name, each in (self._readings | new).items() if name in self._joints
        }
        old = [name for name in found if max_age > 0 and time - found[name].time > max_age * SECOND]
        for name in old:
            if name in self._optional:
                del found[name]
        missing = [n for n in self._joints if n not in found and n not in self._optional]
        if missing:
            # the others may come yet
            if all(math.isfinite(each.position) for each in new.values()):
                self.keep(new)
            raise RefusedError(
                "missing joint",
                f"nobody has told of {', '.join(map(repr, missing))} yet: start what publishes it, "
                "or name it in locked_joints",
            )
        late = [name for name in old if name not in self._optional]
        if late:
            age = (time - found[late[0]].time) / SECOND
            raise RefusedError(
                "joint too old",
                f"{late[0]!r} was told of {age:.3f} s ago, expected at most "
                f"max_age = {max_age:g} s",
            )
        readings = found.values()
        whole = SimpleNamespace(
            name=list(found),
            position=np.array([each.position for each in readings]),
            velocity=np.array([each.velocity for each in readings]),
            effort=np.array([each.effort for each in readings]),
            times=np.array([each.time for each in readings]),
        )
        return whole, new

    def keep(self, new: dict[str, Reading]) -> None:
        """These were good."""
        self._readings |= new

    def ages(self, time: int) -> dict[str, float]:
        """s since each joint was told of."""
        return {name: (time - each.time) / SECOND for name, each in self._readings.items()}

    def forget(self) -> None:
        """The clock jumped."""
        self._readings.clear()
        self._stamps.clear()
