"""rosbag2 recordings through `rosbags`: folders, .db3 and .mcap, without ROS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import BackendError, RecordingError, choices, wrong
from .recording import Collector, Recording

JOINT_STATE = "sensor_msgs/msg/JointState"
USUAL_TOPIC = "/joint_states"


def read(path: Path, topic: str | None = None) -> Recording:
    """The joint states of a rosbag2 folder or one of its files.

    Args:
        path: the folder with a metadata.yaml, or a .db3 or .mcap file.
        topic: one of type sensor_msgs/JointState; None: `/joint_states`, or the only one there is.

    Raises:
        RecordingError: it is broken, or has no such topic, or no message on it.
        BackendError: `rosbags` is not installed.
    """
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise BackendError(
            "rosbags is missing, which reads bags: pip install 'robot_dynamics[identify]'",
            name="rosbags",
            expected="an installed rosbags",
        ) from None
    collector = Collector()
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            chosen = _topic(reader.connections, topic, path.name)
            connections = [each for each in reader.connections if each.topic == chosen]
            for connection, logged, raw in reader.messages(connections=connections):
                message: Any = reader.deserialize(raw, connection.msgtype)
                stamp = message.header.stamp
                time = stamp.sec + 1e-9 * stamp.nanosec
                collector.add(
                    tuple(message.name),
                    time if time else 1e-9 * logged,
                    (message.position, message.velocity, message.effort),
                )
    except RecordingError:
        raise
    except Exception as error:  # rosbags, sqlite, zstd and struct each raise their own
        words = " ".join(str(error).split()) or type(error).__name__
        raise RecordingError(f"{path.name}: a broken bag: {words[:200]}", name=str(path)) from error
    recording = collector.recording(path.name)
    if not any(len(stream.time) for stream in recording.streams):
        raise RecordingError(f"{path.name}: no message on {chosen}", name=str(path))
    return recording


def _topic(connections: Any, wanted: str | None, source: str) -> str:
    found = sorted({each.topic for each in connections if each.msgtype == JOINT_STATE})
    if wanted is not None:
        if wanted not in found:
            raise wrong(
                RecordingError,
                f"{source}: topic",
                wanted,
                choices(found) if found else "a topic of type sensor_msgs/JointState; it has none",
            )
        return wanted
    if USUAL_TOPIC in found:
        return USUAL_TOPIC
    if len(found) != 1:
        said = f"say which by --topic: {', '.join(found)}" if found else "it has none"
        raise RecordingError(
            f"{source}: expected one topic of type sensor_msgs/JointState; {said}", name=source
        )
    return found[0]
