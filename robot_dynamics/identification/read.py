# SPDX-License-Identifier: Apache-2.0
"""Reads a recording in any supported format."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..errors import InputError, RecordingError, wrong
from . import bags, table
from .recording import Recording

Source = str | os.PathLike[str] | Recording
"""A recording, or the path of one"""
PACKED = (".gz", ".zst", ".zstd", ".xz", ".bz2", ".zip", ".7z")
"""Endings of compressed files"""


def as_list(sources: Source | Sequence[Source]) -> list[Source]:
    """One recording, or several, as a list.

    Raises:
        InputError: they are something else.
    """
    if isinstance(sources, (str, os.PathLike, Recording)):
        return [sources]
    if not isinstance(sources, Iterable):
        raise wrong(InputError, "recordings", sources, "paths or Recording objects")
    return list(sources)


def name_of(source: Source) -> str:
    """A recording's name in messages."""
    return source.source if isinstance(source, Recording) else Path(source).name


def names_in_folders(sources: Iterable[Source]) -> dict[str, str]:
    """By absolute path, names of the recordings that share their file's name with others: with as
    many of the folders before it as tell them apart."""
    files = (each for each in sources if not isinstance(each, Recording))
    alike: dict[str, list[tuple[str, ...]]] = {}
    for path in {Path(os.path.abspath(os.path.expanduser(each))) for each in files}:
        alike.setdefault(path.name, []).append(path.parts)
    found: dict[str, str] = {}
    for some in alike.values():
        depth = 1
        while len({parts[-depth:] for parts in some}) < len(some):
            depth += 1
        if depth > 1:
            found |= {os.path.join(*parts): os.path.join(*parts[-depth:]) for parts in some}
    return found


def adapted(
    source: Source,
    topic: str | None,
    rename: Mapping[str, str] | None,
    effort_scale: Mapping[str, float] | None,
    position_offset: Mapping[str, float] | None,
) -> Recording:
    """The recording with the description's names, units and zeros; arguments as for `identify`.

    Raises:
        RecordingError, BackendError: see `read`.
        InputError: a name or a number does not fit the recording.
    """
    recording = source if isinstance(source, Recording) else read(source, topic)
    recording = recording.renamed(rename or {}).scaled(effort_scale or {})
    return recording.shifted(position_offset or {})


def read(source: str | os.PathLike[str], topic: str | None = None) -> Recording:
    """Read a recording from a rosbag2 folder, a .db3 or .mcap file, or a CSV file with a header.

    Args:
        source: the folder or file.
        topic: for bags, a topic of type sensor_msgs/JointState; None: `/joint_states`, or the only
            such topic.

    Raises:
        RecordingError: it does not exist or is broken; one line says what is wrong and where.
        BackendError: `rosbags` is not installed.
    """
    path = Path(os.path.expanduser(source))  # leaves the ~ of an unknown user as it is
    if not os.path.exists(path):  # also if the name is too long
        raise RecordingError(f"{path}: no such recording", name=str(path))
    if not path.is_dir() and not path.is_file():  # a pipe or a device may never end
        raise RecordingError(f"{path}: neither a file nor a folder", name=str(path))
    if path.is_dir():
        if not (path / "metadata.yaml").is_file():
            raise RecordingError(
                f"{path}: not a rosbag2 folder: it has no metadata.yaml; pass the file in it",
                name=str(path),
            )
        return bags.read(path, topic)
    match path.suffix.lower():
        case ".db3" | ".mcap":
            return bags.read(path, topic)
        case ".csv" | ".tsv" | ".txt":
            return table.read(path)
        case suffix:
            expected = ".db3, .mcap or .csv, or a rosbag2 folder"
            if suffix in PACKED:
                expected += "; unpack it first"
            elif suffix == ".bag":
                here, there = (shlex.quote(str(each)) for each in (path, path.with_suffix("")))
                expected += f"; rosbags-convert --src {here} --dst {there} makes one"
            raise wrong(RecordingError, f"{path.name}: the file's ending", suffix, expected)
