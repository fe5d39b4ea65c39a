"""Prepared recordings on disk: however many there are, one at a time is in memory."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from .preparation import Prepared


class Shelf:
    """Recordings in the order in which they were put there, for as long as it is open."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="robot_dynamics_")
        self._count = 0

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def put(self, *recordings: Prepared) -> None:
        """Writes recordings to disk, after those that are there."""
        for each in recordings:
            self._path(self._count).write_bytes(pickle.dumps(each))
            self._count += 1

    def __iter__(self) -> Iterator[Prepared]:
        for k in range(self._count):
            yield pickle.loads(self._path(k).read_bytes())  # noqa: S301  what `put` wrote

    def _path(self, k: int) -> Path:
        return Path(self._folder.name) / str(k)
