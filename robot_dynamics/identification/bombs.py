# SPDX-License-Identifier: Apache-2.0
"""Detects decompression bombs: small files that decompress to very much data.

Whatever a reader decompresses with zstd is a frame somewhere in the file or, if messages are
compressed individually, a message, which may be stored in pieces. A frame is a sequence of blocks,
each of which states its length and decompresses to at most 128 kB (RFC 8878, 3.1.1). This bounds
the decompressed size without decompressing anything. LZ4 expands data to at most 255 times its
size. A database is treated as a bomb if it computes its content: a view or a generated column may
be of any size.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import RecordingError

MAGIC = (0xFD2FB528).to_bytes(4, "little")
"""The magic number at the beginning of a zstd frame"""
BLOCK = 128 * 1024
"""Largest decompressed size of a block, in bytes"""
LEAST = 1024
"""Smallest size, in bytes, that is assumed for a block; it also bounds the scan's duration"""
TIMES, MORE = 300, 64 * 2**20
"""A file may decompress to TIMES its size plus MORE bytes; recordings decompress to about ten times
their size"""
ENDINGS = (".mcap", ".zstd")
WINDOW = 2**20
"""Number of bytes that are searched at a time"""

_COMPUTED = """SELECT master.name FROM sqlite_master AS master, pragma_table_xinfo(master.name) AS x
WHERE master.type = 'view' OR (master.type = 'table' AND x.hidden <> 0) LIMIT 1"""
"""Views, and tables with a column that is not stored"""


class _Content:
    """The bytes of an open file, of which only a window is in memory."""

    def __init__(self, file: BinaryIO, size: int):
        self._file, self._size = file, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        self._file.seek(part.start)
        return self._file.read(part.stop - part.start)

    def find(self, what: bytes, begin: int = 0) -> int:
        """The first offset, from `begin` on, at which these bytes are found; -1: there is none."""
        for at in range(begin, self._size, WINDOW):
            found = self[at : at + WINDOW + len(what) - 1].find(what)
            if found >= 0:
                return at + found
        return -1


class Unpacker:
    """Decompresses the messages of a recording that are compressed individually.

    Args:
        path: the file or folder, whose size limits the decompressed size of all messages together.
    """

    def __init__(self, path: Path):
        files = path.iterdir() if path.is_dir() else [path]
        self._path, self._size = path, sum(file.stat().st_size for file in files if file.is_file())
        self._left = TIMES * self._size + MORE

    def __call__(self, message: bytes) -> bytes:
        """The message, decompressed if it is a zstd frame; no serialised message begins like one.

        Raises:
            RecordingError: the messages decompress to far more than recordings do.
        """
        if not message.startswith(MAGIC):
            return message
        self._left -= _decompressed_bound(message, self._left)
        if self._left < 0:
            raise _is_bomb(self._path, self._size)
        return bytes(zstd().decompress(message))


def zstd() -> Any:
    """The zstd module, which is the one that rosbags uses."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _is_bomb(file: Path, size: int) -> RecordingError:
    return RecordingError(
        f"{file.name}: decompresses to more than {TIMES} times its size of {size} bytes; refused "
        "as a possible decompression bomb (decompress it yourself if you trust it)",
        name=str(file),
    )


def refuse_bomb(path: Path) -> None:
    """Checks that a file, or every file in a folder, decompresses to a plausible size.

    Args:
        path: the file or folder; .mcap and .zstd files are scanned, and the schemas of .db3 files
            queried.

    Raises:
        RecordingError: a file decompresses to far more than recordings do, or computes its content.
    """
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        size = file.stat().st_size
        if file.suffix.lower() == ".db3" and (name := _computed(file)):
            raise RecordingError(
                f"{file.name}: {name!r} is computed, not stored, which no recording needs",
                name=str(file),
            )
        if file.suffix.lower() not in ENDINGS or not size:
            continue
        most = TIMES * size + MORE
        with file.open("rb") as opened:
            if _decompressed_bound(_Content(opened, size), most) > most:
                raise _is_bomb(file, size)


def _computed(file: Path) -> str:
    """The name of a view, or of a table with a generated column; empty: none, or no database."""
    with (
        contextlib.suppress(sqlite3.Error),  # the reader reports what cannot be read
        contextlib.closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        ) as database,
    ):
        found = database.execute(_COMPUTED).fetchone()
        return found[0] if found else ""
    return ""


def _decompressed_bound(data: _Content | bytes, most: int) -> int:
    """Upper bound, in bytes, of what all frames decompress to; the scan stops once it exceeds
    `most`."""
    total, at = 0, data.find(MAGIC)
    while at >= 0 and total <= most:
        total += _frame(data, at + len(MAGIC), most - total)
        at = data.find(MAGIC, at + 1)
    return total


def _frame(data: _Content | bytes, at: int, most: int) -> int:
    """Upper bound, in bytes, of what a frame's blocks decompress to.

    Args:
        data: the file.
        at: the offset of the frame's header.
        most: the scan stops beyond this many bytes.
    """
    if at + 2 > len(data):
        return 0
    descriptor, window = data[at : at + 2]
    single = bool(descriptor & 0x20)
    size_length = (int(single), 2, 4, 8)[descriptor >> 6]
    at += 1 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    if single:
        largest = int.from_bytes(data[at : at + size_length], "little")
        largest += 256 if size_length == 2 else 0
    else:
        base = 1 << (10 + (window >> 3))
        largest = base + base // 8 * (window & 7)
    at += size_length
    total = 0
    while at + 3 <= len(data) and total <= most:
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 3:  # reserved block type: the frame is invalid
            break
        # block types: raw, run-length encoded, compressed
        total += max(LEAST, min(BLOCK, largest) if kind == 2 else min(size, BLOCK))
        at += 3 + (1 if kind == 1 else size)
        if last:
            break
    return total
