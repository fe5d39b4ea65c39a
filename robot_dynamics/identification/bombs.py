# SPDX-License-Identifier: Apache-2.0
"""Refuses small files that decompress to very much, before anything decompresses them.

Whatever a reader decompresses with zstd is a frame that stands in the file, wherever an index
points to. A frame is a row of blocks, each of which says how long it is and gives at most 128 kB
(RFC 8878, 3.1.1), so that what all of them can give is known without decompressing them. LZ4 gives
at most 255 times its size.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from ..errors import RecordingError

MAGIC = (0xFD2FB528).to_bytes(4, "little")
"""How a zstd frame begins"""
BLOCK = 128 * 1024
"""Bytes that a block gives at most"""
LEAST = 1024
"""Bytes that each block counts for, so that looking at them is bounded, too"""
TIMES, MORE = 300, 64 * 2**20
"""A file may give so many times its size, and so many bytes more; recordings give ten times it"""
ENDINGS = (".mcap", ".zstd")


def refuse_bomb(path: Path) -> None:
    """Do nothing to a file, or a folder's files, that decompress to what recordings do.

    Raises:
        RecordingError: one gives far more.
    """
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        size = file.stat().st_size
        if file.suffix.lower() not in ENDINGS or not size:
            continue
        most = TIMES * size + MORE
        with (
            file.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            if _gives(data, most) > most:
                raise RecordingError(
                    f"{file.name}: its {size} bytes decompress to more than {TIMES} times as much, "
                    "as no recording does; decompress it yourself if you trust it",
                    name=str(file),
                )


def _gives(data: mmap.mmap | bytes, most: int) -> int:
    """Bytes that all frames give at most; where it is more than `most`, only that."""
    total, at = 0, data.find(MAGIC)
    while at >= 0 and total <= most:
        total += _frame(data, at + len(MAGIC), most - total)
        at = data.find(MAGIC, at + 1)
    return total


def _frame(data: mmap.mmap | bytes, at: int, most: int) -> int:
    """Bytes that the blocks of a frame give at most, whose header begins here."""
    if at + 2 > len(data):
        return 0
    descriptor, window = data[at], data[at + 1]
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
        if kind == 3:  # no such block
            break
        # stored as they are, one byte many times, compressed
        total += max(LEAST, min(BLOCK, largest) if kind == 2 else min(size, BLOCK))
        at += 3 + (1 if kind == 1 else size)
        if last:
            break
    return total
