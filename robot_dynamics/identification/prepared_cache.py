# SPDX-License-Identifier: Apache-2.0
"""A cache on disk of prepared recordings, so that a second pass need not prepare them again."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Hashable
from pathlib import Path

from .preparation import Prepared

ROOM = 1 << 30
"""Bytes: what is prepared beyond this is not kept, however many recordings there are"""


class PreparedCache:
    """Prepared recordings by key, kept while it is open, up to so many bytes."""

    def __init__(self, room: int = ROOM) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="robot_dynamics_")
        self._paths: dict[Hashable, Path] = {}
        self._room = room

    def __enter__(self) -> PreparedCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def put(self, key: Hashable, prepared: Prepared) -> None:
        """Kept if there is room."""
        content = pickle.dumps(prepared)
        if key in self._paths or len(content) > self._room:
            return
        self._room -= len(content)
        path = Path(self._folder.name) / str(len(self._paths))
        path.write_bytes(content)
        self._paths[key] = path

    def get(self, key: Hashable) -> Prepared | None:
        """What is kept under this key, or None."""
        path = self._paths.get(key)
        return pickle.loads(path.read_bytes()) if path else None  # noqa: S301  what `put` wrote
