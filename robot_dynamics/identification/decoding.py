# SPDX-License-Identifier: Apache-2.0
"""Decodes many serialised sensor_msgs/JointState messages at once.

The messages of one publisher usually differ only in their stamps and numbers. One of them is parsed
field by field; all messages that equal it in every other byte are decoded together, from the
columns of one array of bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .recording import Floats

Indices = NDArray[np.intp]
Block = tuple[tuple[str, ...], Indices, Floats, Floats]
"""(names of n joints, indices of the messages (k,), stamps (k,) in s, values (k, 3, n) of position,
velocity and effort)"""

LITTLE_ENDIAN = b"\x00\x01"
"""First bytes of plain little-endian CDR, which almost every machine writes"""
LAYOUTS = 16
"""Largest number of layouts to try per message length; further messages are deserialised one by
one"""


def decoded(raws: Sequence[bytes], deserialize: Callable[[bytes], Any]) -> Iterator[Block]:
    """Decode every message once, those of one layout together; NaN where a field is missing.

    Args:
        raws: the messages in CDR.
        deserialize: deserialises a message of any layout.
    """
    lengths = np.array([len(raw) for raw in raws])
    for length in np.unique(lengths):
        left = np.flatnonzero(lengths == length)
        data = np.frombuffer(b"".join(raws[k] for k in left.tolist()), np.uint8).reshape(
            len(left), length
        )
        for _ in range(LAYOUTS):
            if not len(left):
                break
            first = raws[int(left[0])]
            block, layout = _one(int(left[0]), deserialize(first)), layout_of(first)
            if layout is None or layout.values(data[:1]).tobytes() != block[3].tobytes():
                break
            same = (data[:, layout.fixed] == data[0, layout.fixed]).all(axis=1)
            yield block[0], left[same], layout.stamps(data[same]), layout.values(data[same])
            left, data = left[~same], data[~same]
        for k in left.tolist():
            yield _one(k, deserialize(raws[k]))


def _one(k: int, message: Any) -> Block:
    stamp, n = message.header.stamp, len(message.name)
    values = np.full((1, 3, n), np.nan)
    for row, field in zip(
        values[0], (message.position, message.velocity, message.effort), strict=True
    ):
        if len(field) == n:
            row[:] = field
    time = np.array([stamp.sec + 1e-9 * stamp.nanosec])
    return tuple(message.name), np.array([k]), time, values


@dataclass(frozen=True, eq=False)
class MessageLayout:
    """The byte offsets of a message's numbers."""

    joints: int
    places: tuple[int | None, ...]
    """Offsets of the first position, velocity and effort; None: the field does not have one value
    per joint"""
    fixed: NDArray[np.bool_]
    """(bytes,): True for bytes that belong to neither the stamp nor a number"""

    def stamps(self, data: NDArray[np.uint8]) -> Floats:
        """The stamps (k,), s."""
        sec = np.ascontiguousarray(data[:, 4:8]).view("<i4")[:, 0]
        nanosec = np.ascontiguousarray(data[:, 8:12]).view("<u4")[:, 0]
        return sec + 1e-9 * nanosec

    def values(self, data: NDArray[np.uint8]) -> Floats:
        """The positions, velocities and efforts (k, 3, n)."""
        out = np.full((len(data), 3, self.joints), np.nan)
        for k, place in enumerate(self.places):
            if place is not None and self.joints:
                field = data[:, place : place + 8 * self.joints]
                out[:, k] = np.ascontiguousarray(field).view("<f8")
        return out


def layout_of(raw: bytes) -> MessageLayout | None:
    """The layout of one message in plain little-endian CDR; None: the message is not of this form.

    The fields are: header with stamp (int32, uint32) and frame (string); names (strings); three
    sequences of float64. Every word is aligned to its size, counted from the end of the four-byte
    encapsulation header.
    """
    if raw[:2] != LITTLE_ENDIAN:
        return None
    try:
        at = _after_string(raw, 12)
        n, at = _count(raw, at)
        for _ in range(n):
            at = _after_string(raw, at)
        fixed = np.ones(len(raw), dtype=bool)
        fixed[4:12] = False
        places: list[int | None] = []
        for _ in range(3):
            count, at = _count(raw, at)
            if count:
                at += -(at - 4) % 8
            places.append(at if count == n else None)
            fixed[at : at + 8 * count] = False
            at += 8 * count
    except struct.error:
        return None
    return MessageLayout(n, tuple(places), fixed) if at <= len(raw) else None


def _count(raw: bytes, at: int) -> tuple[int, int]:
    """(a length, the offset after it)"""
    at += -at % 4
    return struct.unpack_from("<I", raw, at)[0], at + 4


def _after_string(raw: bytes, at: int) -> int:
    length, at = _count(raw, at)
    return at + length
