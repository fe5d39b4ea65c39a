# SPDX-License-Identifier: Apache-2.0
"""Applies functions to the recordings, some of which may be unusable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from ..errors import RobotDynamicsError
from .fleet import Fleet, Sum, key_of
from .read import Source, name_of

SINGLE = 3
"""Largest number of recordings of which alike lines are not put together"""
NUMBER = re.compile(r"(?<![\w.])\d[\d.]*(e[-+]?\d+)?")
"""A number, but none in a name"""
R = TypeVar("R")


class Passes:
    """Applies functions to the recordings, some of which may be unusable."""

    def __init__(
        self, fleet: Fleet, progress: Callable[[str], None], names: Mapping[str, str] | None = None
    ):
        self._fleet, self.progress, self._names = fleet, progress, names or {}
        self._left_out: list[tuple[str, str]] = []
        """The names of recordings that could not be used, and their errors"""

    def over(
        self,
        doing: str,
        function: Callable[[Source], R],
        sources: Mapping[int, Source],
        needed: bool = True,
    ) -> Iterator[tuple[int, R]]:
        """The results of the usable recordings with the recordings' indices, in any order.

        Raises:
            RobotDynamicsError: the error of the first recording, if one is needed and none is
                usable.
        """
        indices, faults = [*sources], {}
        if indices:
            more = f" and {len(indices) - 1} more" if len(indices) > 1 else ""
            self.progress(f"{doing} {self._name(sources[indices[0]])}{more}")
        for done, (k, outcome) in enumerate(self._fleet.map(function, [*sources.values()]), 1):
            index = indices[k]
            if isinstance(outcome, RobotDynamicsError):
                faults[index] = outcome
            else:
                yield index, outcome
            if len(indices) > 1:
                self.progress(f"{doing}: {done} of {len(indices)}, {self._name(sources[index])}")
        if needed and faults and len(faults) == len(indices):
            raise faults[min(faults)]
        for k in sorted(faults):
            file, name = name_of(sources[k]), self._name(sources[k])
            words = str(faults[k])
            line = name + words.removeprefix(file) if words.startswith(f"{file}:") else words
            self._left_out.append((name, line))

    def _name(self, source: Source) -> str:
        return self._names.get(key_of(source), name_of(source))

    def summed(
        self,
        doing: str,
        function: Callable[[Source], R],
        sources: Mapping[int, Source],
        needed: bool = True,
    ) -> R | None:
        """The sum of these results; None: no recording is usable. Otherwise as `over`."""
        total: Sum[R] = Sum()
        for _, each in self.over(doing, function, sources, needed):
            total.add(each)
        return total.value() if total else None

    def left_out(self) -> Iterator[str]:
        """What is said of the recordings that could not be used."""
        return (f"left out: {line}" for line in together(self._left_out))


def together(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What is said of recordings: of more than `SINGLE` lines that differ in numbers alone, the
    first one and the names of the others.

    Args:
        said: the recordings' names, and lines that begin with them.
    """
    alike: dict[str, dict[str, str]] = {}
    for name, line in said:
        words = NUMBER.sub("", line.removeprefix(name).split(" (")[0])
        alike.setdefault(words, {}).setdefault(line, name)
    for lines in alike.values():
        (first, *_), (_, *names) = lines, lines.values()
        if len(lines) > SINGLE:
            yield f"{first}; likewise {len(names)} more: {', '.join(names)}"
        else:
            yield from lines
