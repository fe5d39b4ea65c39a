# SPDX-License-Identifier: Apache-2.0
"""JointState messages from their serialized form, without rclpy's conversion where one looks like
another before it.

A driver's states differ in their stamp and numbers alone. Once one has been deserialized, its
layout is known: where the numbers lie, and what every other byte is. A message of the same layout
is read in place; all others are deserialized.

Layout: OMG, DDS-XTypes 1.3, section 7.4.1 (plain CDR, version 1), as ROS 2's middlewares send it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from struct import unpack_from
from typing import Any, NamedTuple

from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from ..errors import one_line
from .feed_forward.refusal import RefusedError

ENCAPSULATION = bytes([0, int(sys.byteorder == "little")])
"""The representation identifier of plain CDR in this machine's byte order"""

BODY = 4
"""Bytes before the body; alignments are relative to it"""

STAMP = slice(BODY, BODY + 8)

MOST_LAYOUTS = 16
"""Publishers whose layouts are kept"""


class Stamp(NamedTuple):
    """As builtin_interfaces/Time."""

    sec: int
    nanosec: int


class Header(NamedTuple):
    """As std_msgs/Header."""

    stamp: Stamp
    frame_id: str


class State(NamedTuple):
    """As sensor_msgs/JointState."""

    header: Header
    name: list[str]
    position: array[float]
    velocity: array[float]
    effort: array[float]


@dataclass(frozen=True)
class Layout:
    """Where a message has what.

    Attributes:
        frame_id, name: the strings, the same in all messages of this layout.
        numbers: bytes of positions, velocities and efforts.
        mask: of the bytes as one integer, those that are neither stamp, number nor padding.
        fixed: these bytes.
    """

    frame_id: str
    name: list[str]
    numbers: tuple[slice, slice, slice]
    mask: int
    fixed: int

    @classmethod
    def of(cls, data: bytes, message: Any) -> Layout | None:
        """Of a message that was deserialized from `data`; None: it is none that is known here."""
        if data[:2] != ENCAPSULATION:
            return None
        end, is_fixed = STAMP.stop, bytearray(b"\xff" * len(data))
        is_fixed[STAMP] = bytes(8)

        def aligned(size: int) -> None:
            nonlocal end
            padding = -(end - BODY) % size
            is_fixed[end : end + padding] = bytes(padding)
            end += padding

        def count() -> None:
            nonlocal end
            aligned(4)
            end += 4

        def string(text: str) -> None:
            nonlocal end
            count()
            end += len(text.encode()) + 1

        def doubles(values: Sequence[float]) -> slice:
            nonlocal end
            count()
            if len(values):
                aligned(8)
            place = slice(end, end + 8 * len(values))
            is_fixed[place] = bytes(8 * len(values))
            end = place.stop
            return place

        string(message.header.frame_id)
        count()
        for name in message.name:
            string(name)
        fields = message.position, message.velocity, message.effort
        position, velocity, effort = map(doubles, fields)
        # room for padding may follow, which no reader looks at
        spare = len(data) - end
        is_fixed[end:] = bytes(max(0, spare))
        mask = int.from_bytes(is_fixed, "little")
        found = cls(
            message.header.frame_id,
            list(message.name),
            (position, velocity, effort),
            mask,
            int.from_bytes(data, "little") & mask,
        )
        return found if spare >= 0 and found._gives(data, message) else None

    def _gives(self, data: bytes, message: Any) -> bool:
        """Does it read from `data` what the message has, bit by bit?"""
        state, stamp = self.read(data), message.header.stamp
        pairs = zip(state[2:], (message.position, message.velocity, message.effort), strict=True)
        same = all(mine.tobytes() == its.tobytes() for mine, its in pairs)
        return same and state.header.stamp == (stamp.sec, stamp.nanosec)

    def read(self, data: bytes) -> State:
        """The message of this layout in `data`."""
        position, velocity, effort = self.numbers
        return State(
            Header(Stamp(*unpack_from("=iI", data, BODY)), self.frame_id),
            self.name,
            array("d", data[position]),
            array("d", data[velocity]),
            array("d", data[effort]),
        )


class StateReader:
    """Reads serialized JointState messages."""

    def __init__(self) -> None:
        self._layouts: dict[int, Layout] = {}

    def read(self, data: bytes) -> Any:
        """The message: a JointState, or a State with the same fields.

        Raises:
            RefusedError: it can't be deserialized.
        """
        layout = self._layouts.get(len(data))
        if layout is not None and int.from_bytes(data, "little") & layout.mask == layout.fixed:
            return layout.read(data)
        try:
            message = deserialize_message(data, JointState)
        except RuntimeError as error:
            raise RefusedError("not readable", f"no JointState: {one_line(error)}") from None
        layout = Layout.of(data, message)
        if layout is not None:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[len(data)] = layout
        return message
