# SPDX-License-Identifier: Apache-2.0
"""A cache of recordings on disk, so that later passes do not read or prepare them again."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

from .recording import Recording

ROOM = 1 << 30
"""Size of the cache in bytes; recordings that do not fit are not kept"""

Key = tuple[str | os.PathLike[str] | Recording, tuple[str, ...], tuple[tuple[str, float], ...]]
"""A recording, the joints that are taken from it (none: it is not yet prepared), and the factors
applied to their efforts (0: they are left out)"""


class PreparedCache:
    """Recordings in a temporary folder that is deleted on exit.

    A pickled copy, in another process on this machine, uses the same folder. It keeps only
    recordings that are files, since a recording in memory has no name that all processes know.

    Args:
        room: size in bytes.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="robot_dynamics_")
        self._path, self._room, self._is_copy = Path(self._folder.name), room, False

    def __enter__(self) -> PreparedCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def __getstate__(self) -> dict[str, object]:
        return {"_path": self._path, "_room": self._room, "_is_copy": True}

    def put(self, key: Key, recording: Any) -> None:
        """Keep a recording, prepared or not, under this key if there is room."""
        path = self._file(key)
        if path is None or path.exists():
            return
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            with unfinished.open("wb") as file:
                pickle.dump(recording, file)  # in memory it would be there twice
            with os.scandir(self._path) as files:
                taken = sum(each.stat().st_size for each in files)
            if taken <= self._room:
                # another process sees the whole file or none
                unfinished.replace(path)
        except OSError:  # the disk is full, or another process has just moved a file
            pass
        unfinished.unlink(missing_ok=True)

    def get(self, key: Key) -> Any:
        """The recording under this key, or None."""
        path = self._file(key)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                return pickle.load(file)  # noqa: S301  what `put` wrote
        except FileNotFoundError:
            return None

    def pop(self, key: Key) -> Any:
        """The recording under this key, which is no longer kept, or None."""
        found = self.get(key)
        if found is not None and (path := self._file(key)) is not None:
            path.unlink(missing_ok=True)
        return found

    def _file(self, key: Key) -> Path | None:
        source, *rest = key
        if not isinstance(source, Recording):
            name = os.path.abspath(os.path.expanduser(source))
        elif self._is_copy:
            return None
        else:
            name = f"{source.source} {id(source)}"
        return self._path / hashlib.sha256(repr((name, rest)).encode()).hexdigest()
