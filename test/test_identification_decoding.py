# SPDX-License-Identifier: Apache-2.0
"""Joint states decoded many at once equal those read one by one by rosbags' own deserialiser."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("rosbags.typesys", reason="rosbags is not installed: extra `identify`")

from rosbags.typesys import Stores, get_typestore

from robot_dynamics.identification.decoding import LAYOUTS, decoded, layout_of

STORE = get_typestore(Stores.LATEST)
KIND = "sensor_msgs/msg/JointState"
Time, Header, JointState = (
    STORE.types[f"{package}/msg/{name}"]
    for package, name in (
        ("builtin_interfaces", "Time"), ("std_msgs", "Header"), ("sensor_msgs", "JointState"))
)  # fmt: skip


def some_layout(rng: np.random.Generator) -> tuple[str, list[str], list[int]]:
    """(frame, names, numbers of positions, velocities and efforts)"""
    n = int(rng.integers(0, 5))
    names = ["".join(rng.choice(list("abc_é"), rng.integers(0, 9))) for _ in range(n)]
    lengths = [int(rng.choice([n, n, n, 0, n + 1])) for _ in range(3)]
    return "f" * int(rng.integers(0, 9)), names, lengths


def message(rng: np.random.Generator, layout: tuple[str, list[str], list[int]]):
    frame, names, lengths = layout
    stamp = Time(int(rng.integers(-(2**31), 2**31)), int(rng.integers(0, 2**32)))
    return JointState(Header(stamp, frame), names, *map(rng.normal, [0] * 3, [1] * 3, lengths))


def raw_of(message, little_endian: bool = True) -> bytes:
    return bytes(STORE.serialize_cdr(message, KIND, little_endian=little_endian))


class Reader:
    """rosbags' deserialiser, and how often it was given each message."""

    def __init__(self) -> None:
        self.read: Counter[bytes] = Counter()

    def __call__(self, raw: bytes):
        self.read[raw] += 1
        return STORE.deserialize_cdr(raw, KIND)


def check(raws: list[bytes]) -> Reader:
    """Check that every message is decoded once, and as rosbags decodes it; returns the reader."""
    reader, seen = Reader(), []
    for names, which, stamps, values in decoded(raws, reader):
        assert values.shape == (len(which), 3, len(names))
        for k, stamp, rows in zip(which, stamps, values, strict=True):
            seen.append(k)
            expected = STORE.deserialize_cdr(raws[k], KIND)
            assert list(names) == expected.name
            assert stamp == expected.header.stamp.sec + 1e-9 * expected.header.stamp.nanosec
            fields = (expected.position, expected.velocity, expected.effort)
            for row, field in zip(rows, fields, strict=True):
                given = field if len(field) == len(names) else np.full(len(names), np.nan)
                np.testing.assert_array_equal(row, given)
    assert sorted(seen) == list(range(len(raws)))
    return reader


def test_messages_of_any_layouts_are_read_as_one_by_one():
    rng = np.random.default_rng(0)
    for _ in range(60):
        layouts = [some_layout(rng) for _ in range(4)]
        raws = [raw_of(message(rng, layouts[k])) for k in rng.integers(0, 4, 12)]
        # one message of each layout is deserialised by itself, and no more
        assert check(raws).read.total() <= 4


def test_names_of_one_length_together_are_told_apart():
    rng = np.random.default_rng(1)
    layouts = [("", names, [2, 2, 2]) for names in (["ab", "c"], ["a", "bc"], ["c", "ab"])]
    raws = [raw_of(message(rng, layouts[k % 3])) for k in range(30)]
    assert len({len(raw) for raw in raws}) == 1
    assert check(raws).read.total() == 3


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_layouts_of_one_length_are_read_together_and_the_others_one_by_one(more):
    rng = np.random.default_rng(2)
    frames = [chr(ord("a") + k) for k in range(LAYOUTS + more)]
    raws = [raw_of(message(rng, (f, ["x"], [1, 0, 0]))) for f in frames for _ in range(5)]
    assert check(raws).read.total() == LAYOUTS + 5 * more


def test_the_other_byte_order_is_read_one_by_one():
    rng = np.random.default_rng(3)
    big = [raw_of(message(rng, ("", ["x", "y"], [2, 2, 2])), False) for _ in range(5)]
    assert layout_of(big[0]) is None
    assert len(check(big).read) == 5


def test_a_message_that_is_cut_has_no_layout():
    rng = np.random.default_rng(4)
    for _ in range(20):
        raw = raw_of(message(rng, some_layout(rng)))
        assert layout_of(raw) is not None
        for end in range(2, len(raw)):
            assert layout_of(raw[:end]) is None


def test_numbers_that_are_none_are_kept_as_they_are():
    rng = np.random.default_rng(5)
    raws = []
    for _ in range(4):
        made = message(rng, ("", ["x"], [1, 1, 1]))
        made.position[0], made.effort[0] = np.nan, np.inf
        raws.append(raw_of(made))
    assert check(raws).read.total() == 1
