# SPDX-License-Identifier: Apache-2.0
"""Recordings of a moving robot: timestamped positions, rates and efforts by joint."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, RecordingError, choices, listed, wrong

Floats = NDArray[Any]
"""An array of float64"""


def runs(true: NDArray[np.bool_]) -> NDArray[np.intp]:
    """(m, 2): (first, last + 1) of each run of true values in (k,)."""
    return np.flatnonzero(np.diff(np.r_[False, true, False])).reshape(-1, 2)


GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Its multiples, modulo 1, never come close to a repetition"""


def thinned(count: int, most: int, total: int | None = None) -> NDArray[np.intp]:
    """Which of `count` samples to take so that of all together at most `most` are left.

    They are one of each `step` successive samples, at distances that never repeat: at even
    distances, a motion whose period is a multiple of `step` would show a few of its states only.

    Args:
        count: number of samples.
        most: number of samples that are left, at most.
        total: number of all samples, if these are only some of them.
    """
    step = max(1, -(-(count if total is None else total) // most))
    begin = np.arange(0, count, step)
    within = np.arange(len(begin)) * GOLDEN % 1.0
    return begin + (within * np.minimum(step, count - begin)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Stream:
    """Messages that name the same joints, in order of arrival. NaN: no value."""

    names: tuple[str, ...]
    time: Floats
    """(k,), s, as stamped: stamps may jitter, jump, repeat or go backwards"""
    position: Floats
    """(k, n), rad or m"""
    velocity: Floats
    """(k, n), rad/s or m/s"""
    effort: Floats
    """(k, n), N·m or N"""

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """s from the first stamp to the last."""
        return float(self.time[-1] - self.time[0])

    def of(self, names: Iterable[str]) -> Stream:
        """The stream with only these joints, in this order."""
        place = {name: k for k, name in enumerate(self.names)}
        columns = [place[name] for name in names]
        return Stream(
            tuple(self.names[k] for k in columns),
            self.time,
            self.position[:, columns],
            self.velocity[:, columns],
            self.effort[:, columns],
        )

    def rows(self, chosen: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Stream:
        """The stream with only these messages, in this order."""
        return replace(
            self,
            time=self.time[chosen],
            position=self.position[chosen],
            velocity=self.velocity[chosen],
            effort=self.effort[chosen],
        )

    def parts(self, most: int) -> list[Stream]:
        """The stream in as few parts of equal length as have at most this many messages each."""
        edges = np.linspace(0, len(self), -(-len(self) // most) + 1).astype(int)
        return [self.rows(slice(a, b)) for a, b in itertools.pairwise(edges.tolist())]


@dataclass(frozen=True, eq=False)
class Recording:
    """One recording, with a stream for each set of joints that messages name."""

    source: str
    """The name used for it in messages to the user"""
    streams: tuple[Stream, ...]
    notes: tuple[str, ...] = ()
    """What was noticed when it was read"""

    @property
    def names(self) -> tuple[str, ...]:
        """The joints in any of the streams, without duplicates."""
        return tuple(dict.fromkeys(name for stream in self.streams for name in stream.names))

    def renamed(self, names: Mapping[str, str]) -> Recording:
        """The recording with joints renamed as in the description.

        Args:
            names: from joint names in the recording to new names. A key may also be a prefix shared
                by several names: `fer_joint` → `panda_joint` renames `fer_joint1` … `fer_joint7`.

        Raises:
            InputError: no joint has that name or prefix, or two joints would have the same name.
        """
        renaming = {name: name for name in self.names}
        for old, new in names.items():
            if old in renaming:
                renaming[old] = new
                continue
            found = [name for name in self.names if name.startswith(old)] if old else []
            if not found:
                raise wrong(
                    InputError,
                    f"{self.source}: joint to rename",
                    old,
                    f"{choices(self.names)}, or a prefix of several",
                )
            renaming |= {name: new + name.removeprefix(old) for name in found}
        if len(set(renaming.values())) < len(renaming):
            twice = sorted(x for x in renaming.values() if [*renaming.values()].count(x) > 1)
            raise wrong(InputError, f"{self.source}: renamed joint", twice[0], "each name once")
        streams = tuple(
            replace(stream, names=tuple(renaming[name] for name in stream.names))
            for stream in self.streams
        )
        return replace(self, streams=streams)

    def scaled(self, factors: Mapping[str, float]) -> Recording:
        """The recording with each joint's effort multiplied by its factor.

        Args:
            factors: by joint, for instance a sign, or a torque per current; 1 for joints that are
                not in it.

        Raises:
            InputError: there is no such joint, or a factor is 0 or not finite.
        """
        self._check("effort scale", factors)
        for name, factor in factors.items():
            if not np.isfinite(factor) or factor == 0:
                raise wrong(InputError, f"effort scale of {name}", factor, "a number other than 0")
        return self._with_efforts_times(factors)

    def _check(self, what: str, names: Iterable[str]) -> None:
        """Check that there are these joints."""
        for name in names:
            if name not in self.names:
                raise wrong(
                    InputError, f"{self.source}: {what} of joint", name, choices(self.names)
                )

    def check_names(self, names: Iterable[str], what: str = "joints", more: str = "") -> None:
        """Check that it has all of these joints.

        Args:
            names: the joints.
            what: what they are, for the error.
            more: the error's end.

        Raises:
            RecordingError: it lacks one.
        """
        if lacking := [name for name in names if name not in self.names]:
            words = f"{self.source}: missing {what}: {listed(lacking)}{more}"
            raise RecordingError(words, name=self.source)

    def without_efforts(self, names: Collection[str]) -> Recording:
        """The recording without the efforts of these joints."""
        return self._with_efforts_times(dict.fromkeys(names, math.nan))

    def _with_efforts_times(self, factors: Mapping[str, float]) -> Recording:
        streams = tuple(
            replace(
                stream, effort=stream.effort * [factors.get(name, 1.0) for name in stream.names]
            )
            for stream in self.streams
        )
        return replace(self, streams=streams)

    def shifted(self, offsets: Mapping[str, float]) -> Recording:
        """The recording with each joint's offset added to its positions.

        Args:
            offsets: by joint, rad or m; 0 for joints that are not in it.

        Raises:
            InputError: there is no such joint, or an offset is not finite or exceeds one turn (2π,
                also in m).
        """
        self._check("position offset", offsets)
        for name, offset in offsets.items():
            if not abs(offset) <= 2 * np.pi:
                expected = "a finite offset of at most 2π rad (2π m for a prismatic joint)"
                raise wrong(InputError, f"position offset of {name}", offset, expected)
        streams = tuple(
            replace(
                stream, position=stream.position + [offsets.get(name, 0.0) for name in stream.names]
            )
            for stream in self.streams
        )
        return replace(self, streams=streams)
