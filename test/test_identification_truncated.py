# SPDX-License-Identifier: Apache-2.0
"""An MCAP file whose writer was killed is read up to its end, and a large one with little
memory."""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pytest

from robot_dynamics.errors import RecordingError
from robot_dynamics.identification.bags import JOINT_STATE
from robot_dynamics.identification.read import read
from robot_dynamics.identification.truncated import CHUNK, MAGIC, MESSAGE, is_truncated

pytest.importorskip("rosbags")

COUNT = 4000
"""Number of messages, in several chunks"""


@pytest.fixture(scope="module", params=["zstd", "none"])
def whole(tmp_path_factory, request):
    """A recording as rosbags writes it."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    header, time = store.types["std_msgs/msg/Header"], store.types["builtin_interfaces/msg/Time"]
    state, text = store.types[JOINT_STATE], store.types["std_msgs/msg/String"]
    folder = tmp_path_factory.mktemp("bags") / "bag"
    writer = Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP)
    if request.param == "zstd":
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        states = writer.add_connection("/joint_states", JOINT_STATE, typestore=store)
        others = writer.add_connection("/noise", text.__msgtype__, typestore=store)
        noise = np.random.default_rng(0).bytes(400).hex()
        for k in range(COUNT):
            at = 10_000_000 * (k + 100)
            stamp = time(sec=at // 10**9, nanosec=at % 10**9)
            values = np.array([np.sin(0.01 * k), np.cos(0.01 * k)])
            message = state(
                header=header(stamp=stamp, frame_id=""), name=["a", "b"],
                position=values, velocity=2 * values, effort=3 * values,
            )  # fmt: skip
            writer.write(states, at, store.serialize_cdr(message, JOINT_STATE))
            writer.write(others, at, store.serialize_cdr(text(data=noise), text.__msgtype__))
    return next(folder.glob("*.mcap"))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.999])
def test_what_is_whole_of_a_truncated_file_is_read_with_a_note(whole, tmp_path, share):
    data = whole.read_bytes()
    part = tmp_path / "killed.mcap"
    part.write_bytes(data[: int(share * len(data))])
    assert is_truncated(part)
    assert not is_truncated(whole)
    full, got = read(whole), read(part)
    assert full.notes == ()
    (all_of_it,), (some,) = full.streams, got.streams
    count = len(some.time)
    assert share * COUNT - 2500 < count <= COUNT
    assert count > COUNT / 5
    assert some.names == all_of_it.names
    for field in ("time", "position", "velocity", "effort"):
        assert np.array_equal(getattr(some, field), getattr(all_of_it, field)[:count])
    (note,) = got.notes
    assert note == f"the file is truncated: {count} complete messages on /joint_states were read"


def test_what_follows_a_broken_chunk_or_zeros_is_left_out(whole, tmp_path):
    data = whole.read_bytes()
    part = tmp_path / "killed.mcap"
    part.write_bytes(data[: len(data) // 2] + bytes(1000))
    count = len(read(part).streams[0].time)
    assert 0 < count < COUNT
    # the last chunk without a checksum, and with one that is not that of its content
    changed = bytearray(data[: -len(MAGIC)])
    for checksum, fewer in ((0, False), (1, True)):
        changed[_chunks(data)[-1] + 9 + 24] = checksum
        part.write_bytes(changed)
        assert (len(read(part).streams[0].time) < COUNT) is fewer


def test_records_of_unknown_channels_and_of_impossible_lengths_do_no_harm(whole, tmp_path):
    data = whole.read_bytes()
    part = tmp_path / "killed.mcap"
    good = data[: _chunks(data)[1]]
    part.write_bytes(good)
    count = len(read(part).streams[0].time)
    stray = struct.pack("<HIQQ", 999, 0, 0, 0) + bytes(8)
    for more in (
        struct.pack("<BQ", MESSAGE, len(stray)) + stray,
        struct.pack("<BQ", CHUNK, 2**62) + bytes(100),
    ):
        part.write_bytes(good + more)
        assert len(read(part).streams[0].time) == count > 0


def _chunks(data: bytes) -> list[int]:
    """The offsets of an MCAP file's chunks."""
    at, found = len(MAGIC), []
    while at < len(data) - len(MAGIC):
        kind, length = struct.unpack_from("<BQ", data, at)
        found += [at] if kind == CHUNK else []
        at += 9 + length
    return found


def test_a_file_without_a_whole_message_is_refused(whole, tmp_path):
    part = tmp_path / "killed.mcap"
    part.write_bytes(whole.read_bytes()[:100])
    with pytest.raises(RecordingError, match=r"^killed\.mcap: .*it has none"):
        read(part)


def test_a_large_file_takes_little_memory(whole, tmp_path):
    """A record of 1 GB that is not a message, and takes no space on the disk."""
    size = 2**30
    large = tmp_path / "large.mcap"
    data = whole.read_bytes()
    with large.open("wb") as file:
        file.write(data[: len(data) // 2])
    good = read(large).streams[0]
    begin = len(MAGIC) + 9 + struct.unpack_from("<Q", data, len(MAGIC) + 1)[0]
    with large.open("wb") as file:
        file.write(data[:begin] + b"\x09" + struct.pack("<Q", size))
        file.seek(begin + 9 + size)
        file.write(data[begin : len(data) // 2])
    code = (
        "import resource; from robot_dynamics.identification.read import read; "
        f"read({str(whole)!r}); a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        f"n = len(read({str(large)!r}).streams[0].time); "
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - a)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, more = map(int, run.stdout.split())
    assert count == len(good.time)
    assert more < 100_000, "kB"
