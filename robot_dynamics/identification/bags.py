# SPDX-License-Identifier: Apache-2.0
"""Reads rosbag2 recordings (folders, .db3 and .mcap files) with `rosbags`, without ROS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecordingError, choices, not_installed, wrong
from . import truncated
from .bombs import Unpacker, refuse_bomb
from .decoding import Block, decoded
from .recording import Recording, Stream

JOINT_STATE = "sensor_msgs/msg/JointState"
USUAL_TOPIC = "/joint_states"
OTHER_PROFILE = "Profile is not ros2."
"""The message of rosbags for an MCAP file that was not written by ROS 2"""


def read(path: Path, topic: str | None = None) -> Recording:
    """The joint states in a rosbag2 folder or in one of its files.

    Args:
        path: the folder that contains metadata.yaml, or a .db3 or .mcap file.
        topic: a topic of type sensor_msgs/JointState; None: `/joint_states`, or the only such
            topic.

    Raises:
        RecordingError: the bag is broken, does not have this topic, or has no message on it. From
            an .mcap file whose writer was killed, the complete messages are read.
        BackendError: `rosbags` is not installed.
    """
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise not_installed("rosbags", "reads bags", "'robot_dynamics[identify]'") from None
    refuse_bomb(path)
    raws: list[bytes] = []
    received: list[int] = []
    try:
        if path.suffix.lower() == ".mcap" and path.is_file() and truncated.is_truncated(path):
            return _salvaged(path, topic, get_typestore(Stores.LATEST).deserialize_cdr)
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            chosen = _topic(reader.connections, topic, path.name)
            connections = [each for each in reader.connections if each.topic == chosen]
            unpacked = Unpacker(path)
            _leave_packed(reader)
            for _, nanoseconds, raw in reader.messages(connections=connections):
                raws.append(unpacked(bytes(raw)))
                received.append(nanoseconds)
            recording = _recording(
                path.name, raws, received, lambda raw: reader.deserialize(raw, JOINT_STATE)
            )
    except RecordingError:
        raise
    except Exception as error:  # rosbags, sqlite, zstd and struct raise their own exceptions
        words = " ".join(str(error).split()) or type(error).__name__
        said = f"a broken bag: {words[:200]}"
        if words == OTHER_PROFILE:
            said = "not recorded by ROS 2: its messages are not in ROS 2's format"
        raise RecordingError(f"{path.name}: {said}", name=str(path)) from error
    if not any(map(len, recording.streams)):
        raise RecordingError(f"{path.name}: no message on {chosen}", name=str(path))
    return recording


def _salvaged(path: Path, topic: str | None, deserialize: Callable[..., Any]) -> Recording:
    """The joint states before the end of a truncated file."""
    states: dict[str, list[truncated.Message]] = {}
    for each in truncated.messages(path):
        if each.msgtype == JOINT_STATE:
            states.setdefault(each.topic, []).append(each)
    found = states[_topic([some[0] for some in states.values()], topic, path.name)]
    recording = _recording(
        path.name, [each.raw for each in found], [each.nanoseconds for each in found],
        lambda raw: deserialize(raw, JOINT_STATE),
    )  # fmt: skip
    note = f"the file is truncated: {len(found)} complete messages on {found[0].topic} were read"
    return replace(recording, notes=(note,))


def _leave_packed(reader: Any) -> None:
    """Make an open `AnyReader` return messages as they are stored.

    It would decompress them without a limit, and only if metadata.yaml says that they are
    compressed.
    """
    for each in reader.readers:
        metadata = each.storage.metadata
        each.storage.metadata = metadata._replace(compression_mode=None)


def _recording(
    source: str, raws: list[bytes], received: list[int], deserialize: Callable[[bytes], Any]
) -> Recording:
    """The recording, with one stream for all messages that name the same joints, in whatever order,
    in order of arrival."""
    blocks: dict[tuple[str, ...], list[Block]] = {}
    for names, which, time, values in decoded(raws, deserialize):
        alike = blocks.setdefault(tuple(sorted(names)), [])
        if alike and alike[0][0] != names:
            values = values[..., [names.index(name) for name in alike[0][0]]]
        alike.append((names, which, time, values))
    streams = []
    for parts in blocks.values():
        names = parts[0][0]
        which, time, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2, 3))
        order = np.argsort(which)
        which, time, values = which[order], time[order], values[order]
        unstamped = time == 0
        time[unstamped] = 1e-9 * np.array(received)[which[unstamped]]
        streams.append((which[0], Stream(names, time, *(values[:, k] for k in range(3)))))
    return Recording(source, tuple(stream for _, stream in sorted(streams, key=lambda x: x[0])))


def _topic(connections: Any, wanted: str | None, source: str) -> str:
    found = sorted({each.topic for each in connections if each.msgtype == JOINT_STATE})
    if wanted is not None:
        if wanted not in found:
            raise wrong(
                RecordingError,
                f"{source}: topic",
                wanted,
                choices(found) if found else "a topic of type sensor_msgs/JointState: it has none",
            )
        return wanted
    if USUAL_TOPIC in found:
        return USUAL_TOPIC
    if len(found) != 1:
        said = f"select one with --topic: {', '.join(found)}" if found else "it has none"
        raise RecordingError(
            f"{source}: expected one topic of type sensor_msgs/JointState; {said}", name=source
        )
    topic: str = found[0]
    return topic
