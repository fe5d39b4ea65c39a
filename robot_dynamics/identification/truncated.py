# SPDX-License-Identifier: Apache-2.0
"""Reads the complete messages of an MCAP file whose writer was killed, so that it ends without an
index.

Records follow each other, each with its length (https://mcap.dev/spec); a chunk is a record that
contains others, mostly compressed. Only one record is in memory at a time.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from .bombs import zstd

MAGIC = b"\x89MCAP0\r\n"
"""The bytes with which a complete file begins and ends"""
HEAD = 9
"""Number of bytes before a record's content: its kind and its length"""
SCHEMA, CHANNEL, MESSAGE, CHUNK = 3, 4, 5, 6
"""Kinds of records"""


@dataclass(frozen=True)
class Message:
    """A message of a topic."""

    topic: str
    msgtype: str
    """Such as `sensor_msgs/msg/JointState`"""
    nanoseconds: int
    """When it was received"""
    raw: bytes


def is_truncated(path: Path) -> bool:
    """Whether a file begins like MCAP, but does not end like it."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return False
        file.seek(max(len(MAGIC), path.stat().st_size - len(MAGIC)))
        return file.read() != MAGIC


def messages(path: Path) -> Iterator[Message]:
    """The messages before the point at which the file ends or can no longer be read.

    Args:
        path: an MCAP file.
    """
    types: dict[int, str] = {}
    topics: dict[int, tuple[str, str]] = {}
    with path.open("rb") as file:
        file.seek(len(MAGIC))
        for kind, content in _all_records(file, path.stat().st_size):
            if kind == SCHEMA:
                (number,) = struct.unpack_from("<H", content)
                types[number], _ = _text(content, 2)
            elif kind == CHANNEL:
                number, schema = struct.unpack_from("<HH", content)
                topics[number] = _text(content, 4)[0], types.get(schema, "")
            else:
                number, _, nanoseconds, _ = struct.unpack_from("<HIQQ", content)
                if number in topics:
                    yield Message(*topics[number], nanoseconds, content[22:])


def _all_records(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """(kind, content) of schemas, channels and messages, including those in chunks."""
    for kind, content in _records(file, size):
        if kind != CHUNK:
            yield kind, content
            continue
        unpacked = _unpacked(content)
        if unpacked is None:
            return
        yield from _records(io.BytesIO(unpacked), len(unpacked))


def _records(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """(kind, content) of complete schemas, channels, messages and chunks; other kinds are
    skipped."""
    while len(head := file.read(HEAD)) == HEAD:
        kind, length = struct.unpack("<BQ", head)
        if kind == 0 or file.tell() + length > size:
            return
        if kind in (SCHEMA, CHANNEL, MESSAGE, CHUNK):
            yield kind, file.read(length)
        else:
            file.seek(length, io.SEEK_CUR)


def _unpacked(content: bytes) -> bytes | None:
    """The records in a chunk; None: they are broken."""
    from lz4.frame import decompress

    unpack: dict[str, Any] = {"": bytes, "zstd": zstd().decompress, "lz4": decompress}
    try:
        (checksum,) = struct.unpack_from("<I", content, 24)
        packing, at = _text(content, 28)
        (length,) = struct.unpack_from("<Q", content, at)
        records = bytes(unpack[packing](content[at + 8 : at + 8 + length]))
    except (struct.error, UnicodeDecodeError, KeyError, RuntimeError, zstd().ZstdError):
        return None
    return records if checksum in (0, crc32(records)) else None


def _text(content: bytes, at: int) -> tuple[str, int]:
    """(the text at an offset, the offset after it)"""
    (length,) = struct.unpack_from("<I", content, at)
    at += 4
    return content[at : at + length].decode(), at + length
