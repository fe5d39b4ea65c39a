# SPDX-License-Identifier: Apache-2.0
"""Reads JointTrajectory messages in serialized form, without rclpy's conversion of every point.

Planners give all points the same fields. Such points follow one another at equal distances in the
message, and are read together; other messages are deserialized.

Layout: as in `serialized_states`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from ..errors import one_line
from .feed_forward.motion import Points, check_count, in_seconds
from .feed_forward.refusal import RefusedError
from .feed_forward.stamps import SECOND
from .serialized_states import BODY, ENCAPSULATION, Header, Stamp

SHORT = 4096
"""Bytes: a shorter message is always deserialized, which takes less than a millisecond"""

LEAST = 24
"""Bytes of a point without numbers: four counts and its time"""


class Course(NamedTuple):
    """A message with the fields of trajectory_msgs/JointTrajectory."""

    header: Header
    joint_names: list[str]
    points: Points


def read(data: bytes) -> Any:
    """Read a JointTrajectory.

    Args:
        data: the serialized message.

    Returns:
        a JointTrajectory, or a Course with the same fields.

    Raises:
        RefusedError: the message cannot be deserialized, or has too many points.
    """
    check_size(data)
    if len(data) >= SHORT and data[:2] == ENCAPSULATION:
        try:
            return _Body(data).course()
        except (ValueError, struct.error):
            pass
    try:
        return deserialize_message(data, JointTrajectory)
    except RuntimeError as error:
        raise RefusedError("not readable", f"no JointTrajectory: {one_line(error)}") from None


def check_size(data: bytes) -> None:
    """Check the number of points of a message without reading them, which would take long.

    Args:
        data: the serialized message.

    Raises:
        RefusedError: there are too many.
    """
    if len(data) < SHORT or data[:2] != ENCAPSULATION:
        return
    try:
        _, _, m = _Body(data).beginning()
    except (ValueError, struct.error):
        return
    check_count(m)


class _Body:
    """The body of a message, read from its beginning; alignment is relative to that."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = memoryview(data)[BODY:], 0

    def course(self) -> Course:
        """The message.

        Raises:
            ValueError, struct.error: it is not complete, has fewer than two points, or points that
                differ in their fields or are not valid.
        """
        header, names, m = self.beginning()
        if m < 2:
            raise ValueError("one point, or none")
        # the first point may contain more or less padding than the others
        first, rest = (self._alike(k, len(names)) for k in (1, m - 1))
        points = Points(
            np.concatenate([first.times, rest.times]),
            np.concatenate([first.values, rest.values], axis=1),
            np.concatenate([first.has, rest.has], axis=1),
        )
        return Course(header, names, points)

    def beginning(self) -> tuple[Header, list[str], int]:
        """The header, the names, and the number of points.

        Raises:
            ValueError, struct.error: it is not complete.
        """
        stamp = Stamp(*struct.unpack_from("=iI", self._data))
        self._at = 8
        header = Header(stamp, self._string())
        names, m = [self._string() for _ in range(self._count())], self._count()
        if LEAST * m > len(self._data) - self._at:
            raise ValueError("fewer bytes than points")
        return header, names, m

    def _count(self) -> int:
        self._at += -self._at % 4
        (found,) = struct.unpack_from("=I", self._data, self._at)
        self._at += 4
        return int(found)

    def _string(self) -> str:
        length = self._count()
        text = bytes(self._data[self._at : self._at + length])
        if len(text) != length or text.find(b"\0") != length - 1:
            raise ValueError("not terminated by its only zero")
        self._at += length
        return text[:-1].decode()

    def _alike(self, k: int, n: int) -> Points:
        """k points that have the fields of the first one, n numbers each."""
        start, counts, numbers = self._at, {}, {}
        for field in range(4):  # positions, velocities, accelerations, effort
            length = self._count()
            if length not in (0, n):
                raise ValueError("of another length")
            counts[self._at - 4] = length
            if length:
                self._at += -self._at % 8
                numbers[field] = self._at
            self._at += 8 * length
        time, stride = self._at, self._at + 8 - start
        self._at = start + k * stride
        if self._at > len(self._data) or (k > 1 and stride % 8):
            raise ValueError("not complete, or not at equal distances")
        if not numbers:  # then there might be many more joints and points than bytes
            raise ValueError("no numbers")

        def column(at: int, kind: str, width: int) -> NDArray[Any]:
            size = np.dtype(kind).itemsize
            found: NDArray[Any] = np.ndarray((k, width), kind, self._data, at, (stride, size))
            return found

        values = np.zeros((3, k, n))
        for field in numbers.keys() & {0, 1, 2}:
            values[field] = column(numbers[field], "f8", n)
        seconds, nanoseconds = column(time, "i4", 1)[:, 0], column(time + 4, "u4", 1)[:, 0]
        if (
            any((column(at, "u4", 1) != length).any() for at, length in counts.items())
            or nanoseconds.max() >= SECOND
            or not np.isfinite(values).all()
        ):
            raise ValueError("not alike, or not valid")
        has = np.array([[field in numbers] * k for field in range(3)])
        return Points(in_seconds(seconds, nanoseconds), values, has)
