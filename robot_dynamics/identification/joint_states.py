# SPDX-License-Identifier: Apache-2.0
"""Many serialised sensor_msgs/JointState at once.

Messages of one publisher differ in their stamps and numbers alone. One of them is read word by
word; those that equal it in every other byte are read together, as columns of one array of bytes.
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
"""(names of n joints, which messages (k,), stamps (k,) in s, (k, 3, n) of position, velocity and
effort)"""

LITTLE_ENDIAN = b"\x00\x01"
"""How plain CDR of almost every machine begins"""
LAYOUTS = 16
"""Of one length: a publisher with more is read message by message"""


def decoded(raws: Sequence[bytes], deserialize: Callable[[bytes], Any]) -> Iterator[Block]:
    """Every message once, those of one layout together; NaN where a field is not given.

    Args:
        raws: messages in CDR.
        deserialize: reads a message of any layout.
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
class Layout:
    """Where the numbers of a message are."""

    joints: int
    places: tuple[int | None, ...]
    """Of the first position, velocity and effort; None: not one for each joint"""
    fixed: NDArray[np.bool_]
    """(bytes,): is neither stamp nor number"""

    def stamps(self, data: NDArray[np.uint8]) -> Floats:
        """(k,), s"""
        sec = np.ascontiguousarray(data[:, 4:8]).view("<i4")[:, 0]
        nanosec = np.ascontiguousarray(data[:, 8:12]).view("<u4")[:, 0]
        return sec + 1e-9 * nanosec

    def values(self, data: NDArray[np.uint8]) -> Floats:
        """(k, 3, n)"""
        out = np.full((len(data), 3, self.joints), np.nan)
        for k, place in enumerate(self.places):
            if place is not None and self.joints:
                field = data[:, place : place + 8 * self.joints]
                out[:, k] = np.ascontiguousarray(field).view("<f8")
        return out


def layout_of(raw: bytes) -> Layout | None:
    """The layout of one message in plain little-endian CDR; None: it is no such message.

    header: stamp (int32, uint32), frame (string); names (strings); three sequences of float64.
    Every word is aligned to its size, counted from behind the four bytes of encapsulation.
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
    return Layout(n, tuple(places), fixed) if at <= len(raw) else None


def _count(raw: bytes, at: int) -> tuple[int, int]:
    """(a length, where it ends)"""
    at += -at % 4
    return struct.unpack_from("<I", raw, at)[0], at + 4


def _after_string(raw: bytes, at: int) -> int:
    length, at = _count(raw, at)
    return at + length
