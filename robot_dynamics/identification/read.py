# SPDX-License-Identifier: Apache-2.0
"""Reads any recording."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import RecordingError, wrong
from . import bags, table
from .recording import Recording


def read(source: str | os.PathLike[str], topic: str | None = None) -> Recording:
    """A recording from a rosbag2 folder, a .db3 or .mcap file, or a CSV with a header.

    Raises:
        RecordingError: there is none, or it is broken; one line says what and where.
        BackendError: `rosbags` is not installed.
    """
    path = Path(source).expanduser()
    if not path.exists():
        raise RecordingError(f"{path}: no such recording", name=str(path))
    if path.is_dir():
        if not (path / "metadata.yaml").is_file():
            raise RecordingError(
                f"{path}: no rosbag2 folder: it has no metadata.yaml; name the file in it",
                name=str(path),
            )
        return bags.read(path, topic)
    match path.suffix.lower():
        case ".db3" | ".mcap":
            return bags.read(path, topic)
        case ".csv" | ".tsv" | ".txt":
            return table.read(path)
        case suffix:
            raise wrong(
                RecordingError,
                f"{path.name}: the file's ending",
                suffix,
                ".db3, .mcap or .csv, or a rosbag2 folder",
            )
