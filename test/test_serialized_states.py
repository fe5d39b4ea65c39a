# SPDX-License-Identifier: Apache-2.0
"""States read directly from their bytes equal those that the middleware deserialises."""

from __future__ import annotations

import math
import struct
import sys

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from robot_dynamics.ros import serialized_states
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.serialized_states import Layout, State, StateReader

text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
doubles = st.lists(st.floats(allow_nan=True), max_size=5)
states = st.builds(
    lambda frame, sec, nanosec, name, position, velocity, effort: stamped(
        frame, sec, nanosec, name=name, position=position, velocity=velocity, effort=effort
    ),
    text,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
    st.lists(text, max_size=5),
    doubles,
    doubles,
    doubles,
)


def stamped(frame, sec, nanosec, **fields):
    message = JointState(**fields)
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
    return message


def told(message):
    """All that a message says, bit by bit."""
    header = message.header
    numbers = (message.position, message.velocity, message.effort)
    return (
        (header.stamp.sec, header.stamp.nanosec, header.frame_id, list(message.name)),
        [bytes(each) for each in numbers],
        [len(each) for each in numbers],
    )


def another(message, sec=12):
    """Of the same layout, with other numbers and another stamp."""
    fields = {
        key: [math.pi * k - sec for k, _ in enumerate(getattr(message, key))]
        for key in ("position", "velocity", "effort")
    }
    return stamped(message.header.frame_id, sec, 345 + sec, name=list(message.name), **fields)


@settings(max_examples=300, deadline=None)
@given(first=states, second=states)
def test_whatever_a_state_says_is_read_and_the_next_of_its_layout_where_it_lies(first, second):
    reader = StateReader()
    for message in (first, second, another(first), another(second)):
        assert told(reader.read(serialize_message(message))) == told(message)
    for message in (second, another(first, 13), another(second, 14)):
        read = reader.read(serialize_message(message))
        assert isinstance(read, State)
        assert told(read) == told(message)


@settings(max_examples=300, deadline=None)
@given(
    known=states,
    places=st.lists(st.integers(0, 500), min_size=1, max_size=3),
    values=st.lists(st.integers(0, 255), min_size=3, max_size=3),
    cut=st.integers(0, 12),
)
def test_bytes_that_were_changed_are_read_as_the_middleware_reads_them(known, places, values, cut):
    reader = StateReader()
    good = serialize_message(known)
    reader.read(good)
    bad = bytearray(good)
    for place, value in zip(places, values, strict=False):
        bad[place % len(bad)] = value
    bad = bytes(bad[: len(bad) - cut] if cut > 6 else bad)
    try:
        expected = told(deserialize_message(bad, JointState))
    except RuntimeError:
        with pytest.raises(RefusedError, match="no JointState"):
            reader.read(bad)
    else:
        assert told(reader.read(bad)) == expected
    assert told(reader.read(good)) == told(known)


def test_padding_is_no_part_of_a_layout():
    message = JointState(name=["a"], position=[1.0], velocity=[2.0])
    reader, data = StateReader(), serialize_message(message)
    reader.read(data)
    # after the name's terminating zero, before its count is aligned
    place = data.index(b"a\0") + 2
    for value in (1, 255):
        read = reader.read(data[:place] + bytes([value]) + data[place + 1 :])
        assert isinstance(read, State)
        assert told(read) == told(message)
    # after the last number, where some middlewares pad
    reader.read(data + bytes(4))
    read = reader.read(data + b"\xff" * 4)
    assert isinstance(read, State)
    assert told(read) == told(message)


def test_of_many_publishers_the_layouts_of_some_are_kept():
    reader = StateReader()
    for size in range(100):
        message = JointState(name=["joint"] * size, position=[1.0] * size)
        for _ in range(2):
            assert told(reader.read(serialize_message(message))) == told(message)
    assert len(reader._layouts) <= serialized_states.MOST_LAYOUTS


def test_two_arms_whose_messages_are_of_one_length_are_both_read_in_place():
    arms = [JointState(name=[f"{side}_1", f"{side}_2"], position=[1.0, 2.0], velocity=[3.0, 4.0])
            for side in ("left", "rear")]  # fmt: skip
    first, second = map(serialize_message, arms)
    assert len(first) == len(second)
    reader = StateReader()
    reader.read(first), reader.read(second)
    for message in (*arms, *arms):
        read = reader.read(serialize_message(message))
        assert isinstance(read, State)
        assert told(read) == told(message)


def test_of_a_message_of_absurd_size_no_layout_is_looked_for():
    count = serialized_states.LARGEST // 8
    message = JointState(name=[""], position=[0.5] * count)
    reader = StateReader()
    for _ in range(2):
        assert told(reader.read(serialize_message(message))) == told(message)
    assert not reader._layouts


def in_the_other_order(position):
    """A state of one joint, serialized by a machine of the other byte order."""
    order, kind = (">", 0) if sys.byteorder == "little" else ("<", 1)
    body = struct.pack(f"{order}iI I1s3x II2s2x I", 0, 0, 1, b"", 1, 2, b"a", 1)
    body += b"\0" * (-len(body) % 8) + struct.pack(f"{order}d I4x I4x", position, 0, 0)
    return bytes([0, kind, 0, 0]) + body


def test_bytes_of_a_machine_of_the_other_byte_order_are_deserialized():
    reader = StateReader()
    # zeros are the same in both
    for position in (0.0, 1.5, 0.0, -2.25):
        data = in_the_other_order(position)
        assert told(reader.read(data)) == told(deserialize_message(data, JointState))
        assert list(reader.read(data).position) == [position]


def test_bytes_that_are_no_state_are_refused_and_the_next_state_counts():
    from node_process import Partner
    from robots import CONFIG

    with Partner(description=str(CONFIG / "polar.yaml"), command_timeout=0.0) as partner:
        joints = {"theta1": (0.3, 0.1), "d2": (0.1, 0.2)}

        def ask():
            partner.accelerate(dict.fromkeys(joints, 1.0))
            partner.state(joints)

        partner.until(lambda: partner.commands, "torques", meanwhile=ask)
        good = serialize_message(partner.state(joints))
        partner.until(
            lambda: "rejected: joint_states: not readable" in partner.counts(),
            "bytes that were refused",
            meanwhile=lambda: [partner.states_out.publish(x) for x in (good[:40], b"", good[:-30])],
        )
        partner.commands.clear()
        partner.until(lambda: partner.commands, "torques again", meanwhile=ask)
        assert partner.stop() == 0
        assert "Traceback" not in partner.log


def test_a_layout_that_reads_something_else_is_not_used():
    message, other = (JointState(name=["a"], position=[q], velocity=[2.0]) for q in (1.0, 3.0))
    data = serialize_message(message)
    assert Layout.of(data, message).read(data).position.tolist() == [1.0]
    assert Layout.of(data, other) is None
    message.header.stamp.sec = 1
    assert Layout.of(data, message) is None
