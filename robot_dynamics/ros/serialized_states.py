# SPDX-License-Identifier: Apache-2.0
"""Reads JointState messages in serialized form, without rclpy's conversion if a message has the
same layout as an earlier one.

A driver's states differ only in their stamps and numbers. After one has been deserialized, its
layout is known: the positions of the numbers, and the value of every other byte. A message of the
same layout is read in place; all others are deserialized.

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
"""Bytes before the body; alignment is relative to the start of the body"""

STAMP = slice(BODY, BODY + 8)

LARGEST = 2**16
"""Bytes: a larger message is always deserialized, as its layout would take longer to find"""

MOST_LAYOUTS = 16
"""The number of layouts that are kept, usually one per publisher"""


class Stamp(NamedTuple):
    """A time with the fields of builtin_interfaces/Time."""

    sec: int
    nanosec: int


class Header(NamedTuple):
    """A header with the fields of std_msgs/Header."""

    stamp: Stamp
    frame_id: str


class State(NamedTuple):
    """A message with the fields of sensor_msgs/JointState."""

    header: Header
    name: list[str]
    position: array[float]
    velocity: array[float]
    effort: array[float]


@dataclass(frozen=True)
class Layout:
    """The layout of a serialized message.

    Attributes:
        frame_id, name: the strings, which are the same in all messages of this layout.
        numbers: the byte ranges of positions, velocities and efforts.
        size: of the message, bytes.
        mask: selects, with the message as one integer, the bytes that are neither stamp, number
            nor padding.
        fixed: the values of these bytes, also as one integer.
    """

    frame_id: str
    name: list[str]
    numbers: tuple[slice, slice, slice]
    size: int
    mask: int
    fixed: int

    @classmethod
    def of(cls, data: bytes, message: Any) -> Layout | None:
        """The layout of a message, or None if it cannot be read in place.

        Args:
            data: the serialized message.
            message: the JointState that was deserialized from it.
        """
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
        # padding may follow, which no reader looks at
        spare = len(data) - end
        is_fixed[end:] = bytes(max(0, spare))
        mask = int.from_bytes(is_fixed, "little")
        found = cls(
            message.header.frame_id,
            list(message.name),
            (position, velocity, effort),
            len(data),
            mask,
            int.from_bytes(data, "little") & mask,
        )
        return found if spare >= 0 and found._gives(data, message) else None

    def _gives(self, data: bytes, message: Any) -> bool:
        """Does reading `data` with this layout reproduce the message bit by bit?"""
        state, stamp = self.read(data), message.header.stamp
        pairs = zip(state[2:], (message.position, message.velocity, message.effort), strict=True)
        same = all(mine.tobytes() == its.tobytes() for mine, its in pairs)
        return same and state.header.stamp == (stamp.sec, stamp.nanosec)

    def fits(self, data: bytes) -> bool:
        """Whether a message has this layout."""
        return len(data) == self.size and int.from_bytes(data, "little") & self.mask == self.fixed

    def read(self, data: bytes) -> State:
        """Read the message in `data`, which must have this layout."""
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
        self._layouts: list[Layout] = []  # the newest first

    def read(self, data: bytes) -> Any:
        """Read a message.

        Args:
            data: the serialized message.

        Returns:
            a JointState, or a State with the same fields.

        Raises:
            RefusedError: the message cannot be deserialized.
        """
        for layout in self._layouts:
            if layout.fits(data):
                return layout.read(data)
        try:
            message = deserialize_message(data, JointState)
        except RuntimeError as error:
            raise RefusedError("not readable", f"no JointState: {one_line(error)}") from None
        if len(data) <= LARGEST and (new := Layout.of(data, message)) is not None:
            self._layouts = [new, *self._layouts[: MOST_LAYOUTS - 1]]
        return message
