# SPDX-License-Identifier: Apache-2.0
"""Trajectories read directly from their bytes equal those that the middleware deserialises."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from builtin_interfaces.msg import Duration
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynamics.errors import RobotDynamicsError
from robot_dynamics.ros import serialized_trajectories
from robot_dynamics.ros.feed_forward import motion
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.serialized_trajectories import Course, check_size, read

FIELDS = ("positions", "velocities", "accelerations", "effort")
text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
fields = st.sets(st.sampled_from(FIELDS)).map(sorted)


@pytest.fixture(autouse=True, scope="module")
def short_messages_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serialized_trajectories, "SHORT", 0)
        yield


def trajectory(names, frame, m, first, fields, sec=3, nanosec=7) -> JointTrajectory:
    """Of m points, the first and the others with the fields given, of numbers that all differ."""
    message = JointTrajectory(joint_names=names)
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
    for k in range(m):
        point = JointTrajectoryPoint(time_from_start=Duration(sec=k - 1, nanosec=k * 1_234_567))
        for i, name in enumerate(fields if k else first):
            setattr(point, name, [math.pi * (k + 10 * i + 100 * j) for j in range(len(names))])
        message.points.append(point)
    return message


trajectories = st.builds(
    trajectory,
    st.lists(text, min_size=1, max_size=4),
    text,
    st.integers(0, 7),
    fields,
    fields,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
)


def told(message):
    """What the node takes from a message, or how it refuses it."""
    header, names = message.header, list(message.joint_names)
    said = (header.stamp.sec, header.stamp.nanosec, header.frame_id, names, len(message.points))
    try:
        points = motion._points(message.points, np.arange(len(names))[::-1])
    except (RobotDynamicsError, ValueError) as error:
        return (*said, str(error))
    return (*said, points.times.tobytes(), points.values.tobytes(), points.has.tobytes())


@settings(max_examples=300, deadline=None)
@given(trajectories)
def test_whatever_a_trajectory_says_is_read(message):
    assert told(read(serialize_message(message))) == told(message)


@settings(max_examples=100, deadline=None)
@given(st.lists(text, min_size=1, max_size=4), text, st.integers(2, 7), fields.filter(bool))
def test_points_of_the_same_fields_are_read_where_they_lie(names, frame, m, given_fields):
    message = trajectory(names, frame, m, given_fields, given_fields)
    found = read(serialize_message(message))
    assert isinstance(found, Course)
    assert told(found) == told(message)


@settings(max_examples=300, deadline=None)
@given(
    known=trajectories,
    places=st.lists(st.integers(0, 900), min_size=1, max_size=3),
    values=st.lists(st.integers(0, 255), min_size=3, max_size=3),
    cut=st.integers(0, 12),
)
def test_bytes_that_were_changed_are_read_as_the_middleware_reads_them(known, places, values, cut):
    bad = bytearray(serialize_message(known))
    for place, value in zip(places, values, strict=False):
        bad[place % len(bad)] = value
    bad = bytes(bad[: len(bad) - cut] if cut > 6 else bad)
    try:
        expected = told(deserialize_message(bad, JointTrajectory))
    except RuntimeError:
        with pytest.raises(RefusedError, match="no JointTrajectory"):
            read(bad)
    else:
        assert told(read(bad)) == expected


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize(
    "change",
    [
        {"velocities": []},
        {"effort": [1.0]},
        {"effort": [1.0] * 3},
        {"positions": [0.0, math.nan]},
        {"accelerations": [1.0] * 5},
        {"time_from_start": Duration(sec=1, nanosec=10**9)},
    ],
)
def test_points_that_differ_or_are_not_valid_are_read_or_refused_as_ever(which, change):
    message = trajectory(["a", "b"], "", 3, FIELDS[:3], FIELDS[:3])
    for name, value in change.items():
        setattr(message.points[which], name, value)
    assert told(read(serialize_message(message))) == told(message)


def test_points_after_one_without_numbers_may_be_at_unequal_distances():
    message = trajectory(["a", "b"], "", 3, (), ("positions",))
    for k, point in enumerate(message.points):
        point.positions = [0.0, 0.0] if k else []
        point.time_from_start = Duration(sec=0, nanosec=k)
    data = serialize_message(message)[:152]
    assert told(deserialize_message(data, JointTrajectory)) == told(message)
    assert told(read(data + bytes(8))) == told(message)


def test_a_zero_ends_a_name_wherever_it_is():
    data = serialize_message(trajectory(["elbow"], "", 2, FIELDS, FIELDS))
    for changed in (b"el\0ow\0", b"elbows"):
        bad = data.replace(b"elbow\0", changed)
        assert told(read(bad)) == told(deserialize_message(bad, JointTrajectory))


def test_many_names_and_points_without_numbers_fill_no_memory():
    message = JointTrajectory(joint_names=["j"] * 3000, points=[JointTrajectoryPoint()] * 3000)
    data = serialize_message(message)
    tracemalloc.start()
    assert isinstance(read(data), JointTrajectory)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # by names and points it would be 216 MB


@pytest.mark.parametrize("fields", [(), FIELDS[:1]])
def test_too_many_points_are_refused_before_they_are_read(fields, monkeypatch):
    data = serialize_message(trajectory(["elbow"], "", motion.MOST_POINTS + 1, FIELDS, fields))
    monkeypatch.setattr(serialized_trajectories, "deserialize_message", None)
    for each in (read, check_size):
        with pytest.raises(RefusedError, match="50001 points, expected at most 50000"):
            each(data)
