# SPDX-License-Identifier: Apache-2.0
"""A cache of prepared recordings on disk, so that later passes need not prepare them again."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Hashable
from pathlib import Path

from .preparation import Prepared

ROOM = 1 << 30
"""Size of the cache in bytes; recordings that do not fit are not kept"""


class PreparedCache:
    """Prepared recordings by key, in a temporary folder that is deleted on exit.

    Args:
        room: size in bytes.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="robot_dynamics_")
        self._paths: dict[Hashable, Path] = {}
        self._room = room

    def __enter__(self) -> PreparedCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def put(self, key: Hashable, prepared: Prepared) -> None:
        """Keep a prepared recording if there is room."""
        content = pickle.dumps(prepared)
        if key in self._paths or len(content) > self._room:
            return
        self._room -= len(content)
        path = Path(self._folder.name) / str(len(self._paths))
        path.write_bytes(content)
        self._paths[key] = path

    def get(self, key: Hashable) -> Prepared | None:
        """The recording under this key, or None."""
        path = self._paths.get(key)
        return pickle.loads(path.read_bytes()) if path else None  # noqa: S301  what `put` wrote
