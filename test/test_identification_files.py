# SPDX-License-Identifier: Apache-2.0
"""Recordings read from files; descriptions and a report written to files."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import sqlite3
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from recorded import changed, motion, recording
from test_identification import ARM
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.app.identification_report import filtered
from robot_dynamics.app.shared_options import pairs
from robot_dynamics.description.urdf_text import replaced
from robot_dynamics.errors import InputError, RecordingError, RobotDynamicsError, counted
from robot_dynamics.identification import Recording, Stream, jumps, read, table
from robot_dynamics.identification.bombs import BLOCK, MAGIC, _decompressed_bound, refuse_bomb
from robot_dynamics.identification.preparation import prepare
from robot_dynamics.identification.read import adapted, as_list
from robot_dynamics.identification.replay import replay
from robot_dynamics.identification.resampling import _spread, even_stretches
from robot_dynamics.identification.result_files import roll_pitch_yaw, save
from robot_dynamics.identification.unknowns import match
from robot_dynamics.mechanism import Friction, Inertial, Joint, Link, Mechanism
from robot_dynamics.scalar import rotation_rpy


def csv_of(recorded: Recording, path: Path, prefix: str = "/joint_states/", time="__time") -> Path:
    (stream,) = recorded.streams
    names = [
        f"{prefix}{joint}/{field}"
        for field in ("position", "velocity", "effort")
        for joint in stream.names
    ]
    table = np.column_stack([stream.time, stream.position, stream.velocity, stream.effort])
    rows = [",".join([time, *names]), *(",".join(map(repr, row)) for row in table.tolist())]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def truth():
    return changed(rd.load(ARM), seed=3)


@pytest.mark.parametrize(
    ("prefix", "time"),
    [("/joint_states/", "__time"), ("", "time"), ("robot/x/", "timestamp"), ("x / ", "time")],
)
def test_a_table_is_read_back(tmp_path, truth, prefix, time):
    recorded = recording(truth, 2.0, 50.0)
    found = read(csv_of(recorded, tmp_path / "a.csv", prefix, time))
    (stream,) = found.streams
    for field in ("time", "position", "velocity", "effort"):
        np.testing.assert_array_equal(
            getattr(stream.of("abc"), field), getattr(recorded.streams[0], field)
        )


def test_a_table_without_rates_and_with_another_publishers_rows(tmp_path):
    lines = ["time,a/position,a/effort,gripper/position,gripper/effort"]
    for k in range(6):
        lines += [f"{k},{k},{-k},,", f"{k + 0.5},,,{2 * k},1"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    arm, gripper = sorted(read(tmp_path / "a.csv").streams, key=lambda s: s.names)
    assert (arm.names, gripper.names) == (("a",), ("gripper",))
    assert arm.time.tolist() == [0, 1, 2, 3, 4, 5]
    assert gripper.position[:, 0].tolist() == [0, 2, 4, 6, 8, 10]
    assert np.isnan(arm.velocity).all()


def test_a_cell_is_read_as_the_same_number_however_the_table_is_written(tmp_path, truth):
    plain = csv_of(recording(truth, 1.0, 50.0, noise=0.1), tmp_path / "plain.csv")
    header, *rows = plain.read_text().splitlines()
    cells = [row.split(",") for row in rows]
    for row in cells:
        row[0] = f'"{row[0]}"'  # what only the csv module can read
    quoted = tmp_path / "quoted.csv"
    quoted.write_text("\n\n".join([header, *map(",".join, cells)]))
    one, other = (read(path).streams[0] for path in (plain, quoted))
    for field in ("time", "position", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


WRITTEN = [f"%.{k}{kind}" for k in (3, 6, 9, 15, 17, 20) for kind in "gef"]
ODD = [
    "nan",
    "inf",
    "-inf",
    "1.",
    ".5",
    "+1",
    "007",
    "1e400",
    "1e-400",
    "-0",
    " 2 ",
    "1\t",
    "9" * 400,
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_numbers_are_the_same_with_and_without_msgspec(tmp_path, monkeypatch, end):
    rng = np.random.default_rng(4)
    values = rng.normal(size=300) * 10.0 ** rng.integers(-300, 300, 300)
    cells = [way % value for way in WRITTEN for value in values.tolist()]
    plain = [f"{k / 1000},{cell}" for k, cell in enumerate(cells)]
    (tmp_path / "plain.csv").write_text(end.join(["time,a/position", *plain]), newline="")
    for k, cell in enumerate(ODD):
        rows = [*plain[:5], f"0.005,{cell}", *plain[6:9]]
        (tmp_path / f"{k}.csv").write_text(end.join(["time,a/position", *rows]), newline="")
    paths = sorted(tmp_path.iterdir())
    fast = [read(path).streams[0] for path in paths]
    with (tmp_path / "plain.csv").open(newline="") as file:
        file.readline()
        numbers = table._json_numbers(file, 2)
    assert numbers is not None
    np.testing.assert_array_equal(numbers[:, 1], [float(cell) for cell in cells])
    monkeypatch.setitem(sys.modules, "msgspec", None)
    for path, stream in zip(paths, fast, strict=True):
        slow = read(path).streams[0]
        np.testing.assert_array_equal(stream.position, slow.position, err_msg=path.name)
        np.testing.assert_array_equal(stream.time, slow.time)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("# by a logger\n# rad\ntime,a/position\n0.5,2\n0.6,3\n", [0.5, 0.6]),
        ("time;a/position\n0,5;2,25\n0,6;3\n", [0.5, 0.6]),
        ("time\ta/position\n0,5\t2,25\n0.6\t3\n", [0.5, 0.6]),
        ("time_ms,a/position\n500,2\n600,3\n", [0.5, 0.6]),
        ("Timestamp_us,a/position\n500000,2\n600000,3\n", [0.5, 0.6]),
        ("__time_ns,a/position\n500000000,2\n600000000,3\n", [0.5, 0.6]),
        ("time_s,a/position\n0.5,2\n0.6,3\n", [0.5, 0.6]),
        ("sep=;\ntime;a/position\n0,5;2,25\n0,6;3\n", [0.5, 0.6]),  # for a spreadsheet
        ("Time (ms),a/Position (rad)\n500,2\n600,3\n", [0.5, 0.6]),
        ("time_ms [ms],a/position[m],a/position [old]\n500,2,1\n600,3,1\n", [0.5, 0.6]),
        ("time,a/position\n0.5,2\n0.6,3\n0.7", [0.5, 0.6]),  # the writer was stopped
        ("t,a/position\n0.5,2\n0.6,3\n", [0.5, 0.6]),
        ("Stamp [ms],a/position\n500,2\n600,3\n", [0.5, 0.6]),
        ("t,a/position,time\n0.1,2,0.5\n0.2,3,0.6\n", [0.5, 0.6]),
        ("mode,time,a/position,at\nslow,0.5,2,10:31\nfast,0.6,3,10:32\n", [0.5, 0.6]),
    ],
)
def test_tables_as_loggers_write_them(tmp_path, text, time):
    path = tmp_path / "log.csv"
    path.write_text(text)
    (stream,) = read(path).streams
    assert stream.time == pytest.approx(time)
    assert stream.position[1, 0] == 3.0
    if "2,25" in text:
        assert stream.position[0, 0] == 2.25


def test_units_in_the_names_of_columns_are_converted(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "time,a/position [°],a/velocity (deg/s),a/effort [Nm],b/position [mm]\n0,180,90,2,5"
    )
    (stream,) = read(path).streams
    assert stream.position == pytest.approx(np.array([[math.pi, 0.005]]))
    assert stream.velocity[0, 0] == pytest.approx(math.pi / 2)
    assert stream.effort[0, 0] == 2.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no time column"),
        ("time,a/position,a/effort [A]\n1,2,3", r"a/effort \[A\]: unit: found 'A', expected n·m"),
        ("time (UTC),a/position\n1,2", r"time \(UTC\): unit: found 'UTC', expected s, ms"),
        ("time,a/position[0]\n1,2", r"no column ends in .*; found time, a/position\[0\]"),
        ("time,a/position\n0,2\n10,2\n20,3", "time: increases by 10 per row, expected"),
        ("time_ms,a/position\n0,2\n1e7,2\n2e7,3", "time_ms: increases by 1e.04"),
        ("time,a/position" + 5 * "\n1.46004e9,2", "previous row's in 4 of 5 rows.*few digits"),
        ("time,a/position" + 3 * "\n0,2" + 3 * "\n128,2", "previous row's in 4 of 6 rows"),
        ("time;a/position\n1;2\n1;1.000,5", "row 3: a/position: found '1.000,5'"),
        ("x,a/position\n1,2", "no time column: found x, a/position; expected one called time"),
        ("t,a/position\n20.5,2\n20.6,2\n20.6,3", "no time column: 't' does not increase"),
        ("time|a/position\n1|2", "found time|a/position; .* by commas, semicolons or tabs"),
        ("time,b\n1,2", "no column ends in .*; found time, b; expected"),
        ("time,a/effort\n1,2", "in JOINT/position but some in JOINT/effort; .* in one file"),
        ("1,2.5\n1,2", "no header"),
        ("-0.1 1e-3\t2\n1 2", "no header"),
        ("time,a/position\n", "no rows"),
        ("time,a/position,x/a/position\n1,2,3", "two columns"),
        ("time,a/position\n1,2\n1,2,3", "row 3: 3 cells"),
        ("time,a/position\n0,5,2,25", "row 2: 4 cells .*decimal commas, separate .*semicolons"),
        ("time;a/position\n0,5;2;25", "row 2: 3 cells where the header has 2$"),
        ("time,a/position\n1\n2", "row 2: 1 cells"),
        ("time;a/position\n1,2\n1,3", "row 2: 1 cells"),
        ("time,a/position\n1,2\n# 1,2", "row 3: time: found '# 1'"),
        ("time,a/position\n1,0x10", "row 2: a/position: found '0x10'"),
        ("time,a/position\n1,two", "row 2: a/position: found 'two'"),
    ],
)
def test_a_broken_table_is_one_clear_line(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(RecordingError, match=words) as caught:
        read(tmp_path / "a.csv")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("recorded", "described", "option"),
    [
        (("left_arm_1", "left_arm_2", "right_arm_1"), ("arm_1", "arm_2"), "left_arm_:arm_"),
        (("pan", "elbow"), ("ur/elbow", "ur/pan"), "elbow:ur/elbow pan:ur/pan"),
        (("a b1", "a b2"), ("b1", "b2"), "'a b:b'"),
        (("left_arm_1",), ("arm_1", "arm_2"), "OLD:NEW"),
        (("x",), ("y",), "OLD:NEW"),
    ],
)
def test_names_that_differ_by_a_prefix_are_told_with_the_option_that_renames_them(
    recorded, described, option
):
    links = tuple(Link(f"link {name}", "base", Joint(name, "revolute")) for name in described)
    with pytest.raises(InputError, match="of a different robot") as told:
        match(Mechanism("arm", links), recorded)
    assert str(told.value).endswith(f"use --rename {option}")
    if option != "OLD:NEW":
        n = len(recorded)
        stream = Stream(recorded, np.arange(1.0), *np.zeros((3, 1, n)))
        renamed = Recording("log", (stream,)).renamed(pairs(shlex.split(option)))
        assert set(renamed.names) >= set(described)


def test_a_table_of_very_many_columns_is_one_clear_line(tmp_path, truth):
    names = [f"j{k}" for k in range(5_000)]
    header = ",".join(["time", *(f"{name}/{x}" for name in names for x in ("position", "effort"))])
    rows = "\n".join(",".join([f"{0.1 * k}", *["0.1"] * (2 * len(names))]) for k in range(4))
    path = tmp_path / "wide.csv"
    path.write_text(f"{header}\n{rows}\n")
    found = read(path)
    with pytest.raises(
        InputError, match="the recording is of a different robot: its joints are j0"
    ) as caught:
        match(truth, found.names)
    assert len(str(caught.value)) < 2000
    assert "\n" not in str(caught.value)
    assert found.names == tuple(names)


def test_what_is_no_recording_is_one_clear_line(tmp_path):
    (tmp_path / "broken.mcap").write_bytes(b"\x89MCAP0\r\n" + bytes(100))
    (tmp_path / "broken.db3").write_bytes(b"not a database")
    (tmp_path / "a.bin").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "pipe.mcap")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    (tmp_path / "wide.csv").write_text("time,a/position," + "x" * 2**24)
    (tmp_path / "sparse.csv").write_text("time,a/position\n0,1\n")
    os.truncate(tmp_path / "sparse.csv", 2**30)
    (tmp_path / "utf16.csv").write_text("time,a/position\n0,1\n", encoding="utf-16")
    endless = ("pipe.csv", "pipe.mcap", "device.csv", "wide.csv", "sparse.csv", "utf16.csv")
    names = (
        *endless,
        "nowhere",
        "broken.mcap",
        "broken.db3",
        "a.bin",
        ".",
        "n" * 300,
        "~nobody.here/a.csv",
    )
    for name in names:
        with pytest.raises(RobotDynamicsError) as caught:
            read(name if name.startswith("~") else tmp_path / name)
        assert "\n" not in str(caught.value)


def test_what_a_recording_is_is_told_from_its_name_and_place(tmp_path, truth, monkeypatch):
    table_of = csv_of(recording(truth, 2.0, 50.0), tmp_path / "a.csv")
    for name in ("B.CSV", "b.tsv", "b.txt"):
        (tmp_path / name).write_text(table_of.read_text())
        assert read(tmp_path / name).streams[0].names == truth.joint_names
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read("~/a.csv").streams[0].names == truth.joint_names
    for name, words in (
        ("none", "no such recording"),
        (".", "not a rosbag2 folder: it has no metadata.yaml"),
        ("a.bin", "a.bin: the file's ending: found '.bin', expected .db3, .mcap or .csv"),
        ("a.csv.gz", "rosbag2 folder; unpack it first"),
        ("a.bag", f"rosbag2 folder; rosbags-convert --src {tmp_path}/a.bag --dst {tmp_path}/a"),
        # the line may be copied to a shell
        ("a.;rm b.bag", f"--src '{tmp_path}/a.;rm b.bag' --dst '{tmp_path}/a.;rm b' makes one"),
    ):
        if name.startswith("a."):
            (tmp_path / name).touch()
        with pytest.raises(RecordingError, match=re.escape(words)):
            read(tmp_path / name)


def test_one_source_is_a_list_of_one(tmp_path, truth):
    recorded = recording(truth, 1.0, 20.0)
    for source in (recorded, tmp_path, str(tmp_path)):
        assert as_list(source) == as_list([source]) == as_list((source,)) == [source]


def test_factors_and_offsets_go_by_the_names_of_the_description(truth):
    recorded = recording(truth, 1.0, 20.0)
    old = truth.joint_names[0]
    (before,) = recorded.streams
    (after,) = adapted(recorded, None, {old: "new"}, {"new": -2.0}, {"new": 0.5}).streams
    assert after.names == ("new", *truth.joint_names[1:])
    np.testing.assert_array_equal(after.effort[:, 0], -2 * before.effort[:, 0])
    np.testing.assert_array_equal(after.position[:, 0], before.position[:, 0] + 0.5)
    np.testing.assert_array_equal(after.effort[:, 1:], before.effort[:, 1:])


def test_a_bag_has_the_topic_that_is_asked_for():
    folder = Path(__file__).parent / "data" / "recordings"
    inside = read(folder / "panda" / "panda.mcap").streams[0]
    whole = read(folder / "panda", "/joint_states").streams[0]
    np.testing.assert_array_equal(inside.effort, whole.effort)
    assert whole.position.shape == (727, 7)
    assert read(folder / "ur10" / "ur10.db3").streams[0].position.shape == (3441, 6)
    for bag in (folder / "panda", folder / "panda" / "panda.mcap"):
        with pytest.raises(RecordingError, match="/joint_states"):
            read(bag, "/nothing")
        with pytest.raises(RecordingError, match="/joint_states"):
            adapted(bag, "/nothing", None, None, None)


def test_a_bag_of_messages_of_all_layouts_is_read_as_one_by_one(tmp_path):
    writing = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    State = store.types["sensor_msgs/msg/JointState"]
    Header = store.types["std_msgs/msg/Header"]
    Time = store.types["builtin_interfaces/msg/Time"]
    rng = np.random.default_rng(0)
    # (frame, joints, with rates?): three frames of one length, an empty one, missing fields, and
    # the same joints in another order
    kinds = [
        ("", "ab", True), ("x", "ab", True), ("y", "ab", True), ("", "ab", False), ("", "b", True),
        ("world", ("a_longer_name", "c"), True), *((f"f{k}", "ab", True) for k in range(30)),
        ("x", "ba", True), ("z", ("c", "a_longer_name"), False),
    ]  # fmt: skip
    sent: dict[tuple[str, ...], list] = {}
    with writing.Writer(
        tmp_path / "bag", version=9, storage_plugin=writing.StoragePlugin.MCAP
    ) as bag:
        topic = bag.add_connection("/joint_states", State.__msgtype__, typestore=store)
        for k in range(300):
            frame, names, rates = kinds[rng.integers(len(kinds))]
            position, velocity, effort = rng.normal(size=(3, len(names)))
            stamp = 1_700_000_000.0 + k / 64 if k % 50 else 0.0
            header = Header(Time(int(stamp), round(stamp % 1 * 1e9)), frame)
            state = State(header, list(names), position, velocity if rates else np.zeros(0), effort)
            bag.write(topic, 10**9 * (k + 1), store.serialize_cdr(state, State.__msgtype__))
            row = [position, velocity if rates else np.full(len(names), np.nan), effort]
            known = next((some for some in sent if set(some) == set(names)), tuple(names))
            row = [[values[list(names).index(name)] for name in known] for values in row]
            sent.setdefault(known, []).append((stamp or k + 1.0, row))
    found = read(tmp_path / "bag").streams
    assert [stream.names for stream in found] == [*sent]
    for stream in found:
        np.testing.assert_allclose(
            stream.time, [time for time, _ in sent[stream.names]], rtol=1e-15
        )
        rows = np.array([row for _, row in sent[stream.names]])
        for k, field in enumerate((stream.position, stream.velocity, stream.effort)):
            np.testing.assert_array_equal(field, rows[:, k])


def bag_of(folder: Path, mode: str, plugin: str = "MCAP", seconds: range = range(1, 5001)) -> Path:
    """A recording of a robot that stands still, which compresses well."""
    writing = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.LATEST)
    State, Header, Time = (
        store.types[name]
        for name in (
            "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"
        )
    )  # fmt: skip
    plugin = writing.StoragePlugin[plugin]
    writer = writing.Writer(folder, version=9, storage_plugin=plugin)
    if mode != "NONE":
        writer.set_compression(writing.CompressionMode[mode], writing.CompressionFormat.ZSTD)
    with writer as bag:
        topic = bag.add_connection("/joint_states", State.__msgtype__, typestore=store)
        for k in seconds:
            still = State(Header(Time(k, 0), ""), list("abcdef"), *np.zeros((3, 6)))
            bag.write(topic, 10**9 * k, store.serialize_cdr(still, State.__msgtype__))
    return folder


@pytest.mark.parametrize("mode", ["STORAGE", "FILE"])
def test_a_bag_that_compresses_well_is_read_and_a_bomb_is_not(tmp_path, mode):
    folder = bag_of(tmp_path / "bag", mode)
    (stream,) = read(folder).streams
    np.testing.assert_array_equal(stream.time, np.arange(1, 5001))
    (file,) = (path for path in folder.iterdir() if path.suffix != ".yaml")
    whole = file.read_bytes()
    # where no record is, but an index may point
    file.write_bytes(whole + zstd_of(bytes(2**28)))
    with pytest.raises(RecordingError, match=f"{file.name}: decompresses to more than"):
        read(folder)
    file.write_bytes(zstd_of(bytes(2**25)))  # of a small file more times its size
    refuse_bomb(folder)


@pytest.mark.parametrize("plugin", ["SQLITE3", "MCAP"])
@pytest.mark.parametrize("alone", [False, True])
def test_messages_that_are_compressed_one_by_one_are_read(tmp_path, plugin, alone):
    """Also for a file without metadata.yaml, which would say that they are compressed."""
    folder = bag_of(tmp_path / "bag", "MESSAGE", plugin)
    (file,) = (path for path in folder.iterdir() if path.suffix != ".yaml")
    assert MAGIC in file.read_bytes()
    assert "MESSAGE" in (folder / "metadata.yaml").read_text(encoding="utf-8").upper()
    (stream,) = read(file if alone else folder).streams
    np.testing.assert_array_equal(stream.time, np.arange(1, 5001))
    assert stream.names == tuple("abcdef")
    assert stream.position.shape == (5000, 6)


@pytest.mark.parametrize("plugin", ["SQLITE3", "MCAP"])
@pytest.mark.parametrize("mode", ["NONE", "MESSAGE", "FILE"])
def test_a_bag_that_was_split_is_read_as_one(tmp_path, plugin, mode):
    """As `ros2 bag record --max-bag-size` writes it: one metadata.yaml, and files by number."""
    halves = [bag_of(tmp_path / f"bag_{k}", mode, plugin, range(a, b))
              for k, (a, b) in enumerate(((1, 3001), (3001, 5001)))]  # fmt: skip
    whole = tmp_path / "bag"
    whole.mkdir()
    about, *others = (yaml.safe_load((half / "metadata.yaml").read_text()) for half in halves)
    about, *others = (each["rosbag2_bagfile_information"] for each in (about, *others))
    for each in others:
        about["relative_file_paths"] += each["relative_file_paths"]
        about["message_count"] += each["message_count"]
        about["duration"]["nanoseconds"] += each["duration"]["nanoseconds"] + 10**9
        about["topics_with_message_count"][0]["message_count"] += each["message_count"]
    about["files"] = []
    text = yaml.safe_dump({"rosbag2_bagfile_information": about})
    (whole / "metadata.yaml").write_text(text, encoding="utf-8")
    for half in halves:
        (file,) = (path for path in half.iterdir() if path.suffix != ".yaml")
        file.rename(whole / file.name)
    (stream,) = read(whole).streams
    np.testing.assert_array_equal(stream.time, np.arange(1, 5001))
    missing = whole / about["relative_file_paths"][1]
    missing.unlink()
    with pytest.raises(RecordingError, match=missing.name):
        read(whole)


def sqlite_bag(folder: Path, messages: list[bytes]) -> Path:
    """As rosbag2 stores messages that it compresses one by one."""
    folder.mkdir()
    with sqlite3.connect(folder / "bag_0.db3") as data:
        data.executescript(
            "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);"
            "CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL,"
            " metadata TEXT NOT NULL);"
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
            " serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL,"
            " type_description_hash TEXT NOT NULL);"
            "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL,"
            " encoding TEXT NOT NULL, encoded_message_definition TEXT NOT NULL,"
            " type_description_hash TEXT NOT NULL);"
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
            " timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
            "CREATE INDEX timestamp_idx ON messages (timestamp ASC);"
            "INSERT INTO schema VALUES (4, 'rolling');"
            "INSERT INTO topics VALUES"
            " (1, '/joint_states', 'sensor_msgs/msg/JointState', 'cdr', '', '');"
        )
        rows = [(1, 10**9 * k, each) for k, each in enumerate(messages, start=1)]
        data.executemany("INSERT INTO messages (topic_id, timestamp, data) VALUES (?, ?, ?)", rows)
    data.close()
    topic = {
        "name": "/joint_states", "type": "sensor_msgs/msg/JointState",
        "serialization_format": "cdr", "offered_qos_profiles": [], "type_description_hash": "",
    }  # fmt: skip
    about = {
        "version": 9, "storage_identifier": "sqlite3", "message_count": len(messages),
        "duration": {"nanoseconds": 10**9 * (len(messages) - 1)},
        "starting_time": {"nanoseconds_since_epoch": 10**9},
        "topics_with_message_count": [{"topic_metadata": topic, "message_count": len(messages)}],
        "compression_format": "zstd", "compression_mode": "MESSAGE",
        "relative_file_paths": ["bag_0.db3"], "files": [], "custom_data": None,
        "ros_distro": "rolling",
    }  # fmt: skip
    text = yaml.safe_dump({"rosbag2_bagfile_information": about})
    (folder / "metadata.yaml").write_text(text, encoding="utf-8")
    return folder


def test_a_message_that_is_a_bomb_is_not_decompressed(tmp_path):
    """Wherever it lies in the database: in pages that are not next to each other."""
    store = pytest.importorskip("rosbags.typesys")
    types = store.get_typestore(store.Stores.LATEST)
    State, Header, Time = (
        types.types[name]
        for name in (
            "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"
        )
    )  # fmt: skip
    state = State(Header(Time(7, 0), ""), ["a"], np.ones(1), np.ones(1), np.full(1, 3.0))
    whole = bytes(types.serialize_cdr(state, State.__msgtype__))
    good = [zstd_of(whole, sized=True), zstd_of(whole), whole]
    (stream,) = read(sqlite_bag(tmp_path / "good", good)).streams
    np.testing.assert_array_equal(stream.time, [7, 7, 7])
    np.testing.assert_array_equal(stream.effort, np.full((3, 1), 3.0))
    for k, bomb in enumerate(([zstd_of(bytes(2**28))], [zstd_of(bytes(2**25))] * 8)):
        bad = sqlite_bag(tmp_path / f"bad{k}", [*good, *bomb])
        for path in (bad, bad / "bag_0.db3"):
            with pytest.raises(RecordingError, match="decompresses to more than 300 times"):
                read(path)
    cut = sqlite_bag(tmp_path / "cut", [good[0], good[0][:-3]])
    with pytest.raises(RecordingError, match="cut: a broken bag"):
        read(cut)


def test_an_mcap_of_another_program_is_not_called_broken(tmp_path):
    def record(kind: int, content: bytes) -> bytes:
        return struct.pack("<BQ", kind, len(content)) + content

    def text(words: bytes) -> bytes:
        return struct.pack("<I", len(words)) + words

    magic = b"\x89MCAP0\r\n"
    content = (
        record(1, text(b"json") + text(b"other")) + record(15, bytes(4)) + record(2, bytes(20))
    )
    (tmp_path / "log.mcap").write_bytes(magic + content + magic)
    with pytest.raises(RecordingError, match="not recorded by ROS 2"):
        read(tmp_path / "log.mcap")


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("messages", "ALTER TABLE messages RENAME COLUMN data TO stored;"
         "ALTER TABLE messages ADD COLUMN data BLOB AS (zeroblob(500000000)) VIRTUAL;"),
        ("message_definitions", "DROP TABLE message_definitions; CREATE VIEW message_definitions AS"
         " WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r)"
         " SELECT id, 'a' AS topic_type, 'b' AS encoding, 'c' AS encoded_message_definition,"
         " 'd' AS type_description_hash FROM r;"),
    ],
    ids=["generated column", "endless view"],
)  # fmt: skip
def test_a_database_that_computes_its_content_is_refused(tmp_path, name, script):
    bag = sqlite_bag(tmp_path / "bag #1?", [b"message"])
    with sqlite3.connect(bag / "bag_0.db3") as data:
        data.executescript(script)
    data.close()
    for path in (bag, bag / "bag_0.db3"):
        with pytest.raises(RecordingError, match=f"bag_0.db3: '{name}' is computed, not stored"):
            read(path)


@pytest.mark.parametrize("seed", range(12))
def test_no_zstd_frame_gives_more_than_its_blocks_say(seed):
    rng = np.random.default_rng(seed)
    size = int(2 ** rng.uniform(0, 22))
    data = bytes(rng.integers(0, 2 ** int(rng.integers(0, 9)), size, dtype=np.uint8))
    packed = b"before" + zstd_of(data, sized=bool(seed % 2)) + b"after"
    found = _decompressed_bound(packed, 2**30)
    assert size <= found <= size + 2 * BLOCK
    assert _decompressed_bound(packed[: len(packed) // 2], 2**30) <= found
    assert _decompressed_bound(packed * 3, 2**30) == 3 * found
    assert (
        found < _decompressed_bound(packed * 3, found) <= 2 * found
    )  # no further than it has to look


def test_a_block_gives_no_more_than_the_window_and_counts_even_if_empty():
    """RFC 8878, 3.1.1.1.2: windowBase + windowBase / 8 * mantissa; 3.1.1.1.3: the dictionary's
    number, which may be 0."""
    compressed = (5 << 3 | 2 << 1 | 1).to_bytes(3, "little") + bytes(5)
    for flag, size in enumerate((0, 1, 2, 4)):
        frame = MAGIC + bytes([flag, 4]) + bytes(size) + compressed
        assert _decompressed_bound(frame, 2**30) == 1024 + 512
    assert _decompressed_bound(MAGIC + bytes([0, 80]) + bytes(3 * 1000), 2**30) == 1000 * 1024


def test_looking_for_bombs_takes_no_longer_than_the_file_is_long():
    """Frames within frames: each would be scanned again from the start of each."""
    nested = (MAGIC + bytes([0, 80]) + b"\0" * 3 * 20) * 20000
    assert _decompressed_bound(nested, 10**6) > 10**6


def zstd_of(data: bytes, sized: bool = False) -> bytes:
    """Its size in the header, or not."""
    zstd = pytest.importorskip(
        "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    )
    if sized:
        return zstd.compress(data)
    packer, half = zstd.ZstdCompressor(), len(data) // 2
    return packer.compress(data[:half]) + packer.compress(data[half:]) + packer.flush()


def stream_of(time, position, effort=None) -> Stream:
    position = np.asarray(position, dtype=float).reshape(len(time), -1)
    effort = np.ones_like(position) * np.arange(len(time))[:, None] if effort is None else effort
    names = tuple("abcdefg"[: position.shape[1]])
    return Stream(
        names, np.asarray(time, dtype=float), position, np.full_like(position, np.nan), effort
    )


T = np.arange(200) / 100.0
SINE = np.sin(2 * np.pi * T)


def test_order_repeats_gaps_and_resets():
    time = T.copy()
    notes: list[str] = []
    swapped = np.r_[0:50, 51, 50, 52:200]
    (stream,) = even_stretches(stream_of(time[swapped], SINE[swapped]), notes)
    np.testing.assert_allclose(stream.position[:, 0], SINE, atol=1e-12)
    assert "1 out-of-order messages were sorted" in notes[0]

    notes = []
    twice = np.r_[0:100, 99, 100:200]
    (stream,) = even_stretches(stream_of(time[twice], SINE[twice]), notes)
    assert len(stream) == 200
    assert "with a repeated stamp" in notes[0]

    notes = []
    gap = np.r_[0:80, 120:200]
    stretches = even_stretches(stream_of(time[gap], SINE[gap]), notes)
    assert [*map(len, stretches)] == [80, 80]
    assert notes[0] == "1 gap of 0.41 s is not bridged"

    notes = []
    reset = np.r_[time[:100], time[:100]]
    stretches = even_stretches(stream_of(reset, SINE), notes)
    assert [*map(len, stretches)] == [100, 100]
    assert "the clock jumped back 1 time;" in notes[0]


def test_missing_messages_are_bridged_and_stay_in_their_places():
    there = np.delete(np.arange(200), [50, 51, 120])
    (stream,) = even_stretches(stream_of(T[there], SINE[there]), [])
    assert len(stream) == 200
    np.testing.assert_allclose(stream.position[:, 0], SINE, atol=1e-4)


def test_even_samples_behind_jittering_stamps():
    jitter = np.random.default_rng(0).uniform(-0.004, 0.004, 200)
    notes: list[str] = []
    (stream,) = even_stretches(stream_of(T + jitter, SINE), notes)
    np.testing.assert_array_equal(stream.position[:, 0], SINE)
    assert "smoother if evenly sampled" in notes[-1]
    # and stamps that tell the truth are believed
    notes = []
    late = np.sin(2 * np.pi * (T + jitter))
    (stream,) = even_stretches(stream_of(T + jitter, late), notes)
    even = stream.time
    np.testing.assert_allclose(stream.position[:, 0], np.sin(2 * np.pi * even), atol=1e-4)
    assert not notes


def test_stamps_are_right_about_seconds():
    """Jittering stamps of messages that come a fifth more or less often at some times: spread
    evenly they would be smoother, but time would pass at the wrong rate."""
    even = np.arange(0, 10, 0.01)
    sampled = even + 0.13 * np.sin(1.5 * even)
    jitter = np.random.default_rng(0).uniform(-0.003, 0.003, len(even))
    notes: list[str] = []
    position = np.sin(2 * np.pi * sampled)
    (stream,) = even_stretches(stream_of(sampled + jitter, position), notes)
    np.testing.assert_allclose(stream.position[:, 0], np.sin(2 * np.pi * stream.time), atol=0.04)
    assert not notes
    # messages that were held back and then sent at once do not change the rate
    held = even + np.maximum(0, 0.03 - 0.008 * (np.arange(25, len(even) + 25) % 50))
    (stream,) = even_stretches(stream_of(held, np.sin(2 * np.pi * even)), notes)
    np.testing.assert_allclose(stream.position[:, 0], np.sin(2 * np.pi * stream.time), atol=0.01)
    assert "smoother if evenly sampled" in notes[-1]


def test_jittering_stamps_of_several_stretches_share_a_line():
    """With the largest deviation."""
    jitter = np.random.default_rng(0).uniform(-0.004, 0.004, 200)
    time, position = np.r_[T + jitter, T + jitter / 2 + 10], np.r_[SINE, SINE]
    notes: list[str] = []
    assert len(even_stretches(stream_of(time, position), notes)) == 2
    (said,) = [note for note in notes if "evenly sampled" in note]
    most, rest = said.removeprefix("stamps are off by up to ").split(" ms in 2 stretches: ")
    assert 3 < float(most) < 6
    assert rest.startswith("the positions are smoother")


def test_stamps_that_drift_apart_end_on_an_even_grid():
    """By far more than their median period."""
    count = 3000
    stamps = 1.01 ** np.arange(count) * 1e-3
    position = np.sin(np.outer(np.linspace(0, 20, count), [1.0, 1.3]))
    along = np.outer(stamps / stamps[-1], [1.0, 1.3])  # smooth by the stamps alone
    for values in (position, along):
        for each in even_stretches(stream_of(stamps, values), []):
            grid = each.time
            np.testing.assert_allclose(np.diff(grid), grid[1] - grid[0], rtol=1e-6)
            assert len(each.position) == len(grid) <= count


def test_held_states_are_left_out_and_a_rest_is_not():
    held = SINE.copy()
    effort = np.arange(200.0)[:, None]
    held[50], effort[50] = held[49], effort[49]
    notes: list[str] = []
    (stream,) = even_stretches(stream_of(T, held, effort), notes)
    assert "left out: 1 message with the values" in notes[0]
    still = np.r_[np.zeros(100), SINE[:100]]
    still_effort = np.r_[np.zeros(100), np.arange(1.0, 101)][:, None]
    notes = []
    (stream,) = even_stretches(stream_of(T, still, still_effort), notes)
    assert len(stream) == 200
    assert not notes


@pytest.mark.parametrize("step", [0.02, 0.05, 0.1, 0.2])
def test_a_coarse_encoder_at_a_reversal_leaves_no_gap(step):
    coarse = step * np.round(SINE / step)
    notes: list[str] = []
    (stream,) = even_stretches(stream_of(T, coarse, np.sign(SINE)), notes)
    assert stream.time[-1] == pytest.approx(T[-1], abs=0.1)
    assert not any("gap" in note for note in notes)


def glitched(position: np.ndarray, at: dict[int, float], **options) -> tuple[Stream, list[str]]:
    """One even stretch after these values were added to the positions at these samples."""
    changed = np.array(position, dtype=float)
    for k, value in at.items():
        changed[k] += value
    notes: list[str] = []
    (stream,) = even_stretches(stream_of(T, changed), notes, **options)
    return stream, notes


@pytest.mark.parametrize(
    "at",
    [
        {50: 2.0},
        {50: 0.3, 120: -0.3, 150: 0.3},
        {50: 2.0, 51: -1.0},
        {50: 2.0, 51: 2.0, 52: 2.0},
        {50: -1e4},
        {50: 40 * np.pi},
        {50: 2.0, 54: 2.0},
    ],
)
def test_a_position_that_jumps_and_returns_is_left_out(at):
    """At full speed, too, and where the joint reverses."""
    for position in (SINE, np.roll(SINE, 25), 0.2 * SINE):
        stream, notes = glitched(position, at)
        assert len(stream.time) == 200
        np.testing.assert_allclose(stream.position[:, 0], position, atol=1e-3)
        assert notes == [
            f"left out: {counted(len(at), 'message')} in which a position jumps and returns, such "
            "as a at 0.500 s"
        ]


def test_jumps_are_searched_for_where_steps_differ_from_those_nearby_alone(monkeypatch):
    """At 1 kHz the steps of a fast motion change little."""
    time = np.arange(1000) / 1000.0
    fast = 3.0 * np.sin(10.0 * time)  # up to 30 rad/s
    searched = []
    usual = jumps._usual
    monkeypatch.setattr(jumps, "_usual", lambda steps: searched.append(1) or usual(steps))
    assert even_stretches(stream_of(time, fast), [])
    assert not searched
    for off in (0.2, -2.0):
        notes: list[str] = []
        changed = fast.copy()
        changed[500] += off
        even_stretches(stream_of(time, changed), notes)
        assert searched
        assert "left out: 1 message in which a position jumps and returns" in notes[0]


def test_a_joint_that_stands_still_may_jump_and_return_too():
    position = np.column_stack([SINE, np.full(200, 0.7)])
    stream, notes = glitched(position, {70: np.array([0.0, -0.7])})
    np.testing.assert_allclose(stream.position, position, atol=1e-4)
    assert "such as b at 0.700 s" in notes[0]


def test_of_rare_samples_three_may_be_off():
    """There is hardly one message in 0.1 s."""
    time = np.arange(100) / 10.0
    position = np.sin(0.5 * time)
    changed = position.copy()
    changed[40:43] += 3.0
    (stream,) = even_stretches(stream_of(time, changed), [])
    np.testing.assert_allclose(stream.position[:, 0], position, atol=1e-3)


def test_values_lost_for_a_while_leave_a_gap_and_no_jump():
    time = np.arange(2000) / 1000.0
    position = 1.0 + np.sin(2 * np.pi * time)
    position[200:240] = 0.0
    notes: list[str] = []
    pieces = even_stretches(stream_of(time, position), notes)
    assert [*map(len, pieces)] == [200, 1760]
    assert "40 messages in which a position jumps" in notes[0]


def test_a_joint_moves_on_while_its_encoder_is_off():
    """Farther than it is off."""
    position = 20.0 * T
    stream, notes = glitched(position, {50: 0.6, 51: 0.6, 52: 0.6})
    np.testing.assert_allclose(stream.position[:, 0], position, atol=1e-9)
    assert notes[0].startswith("left out: 3 messages")


@pytest.mark.parametrize(("rate", "jump", "back"), [(1.0, 2.0, -1.2), (25.0, 0.6, -1.1)])
def test_jumps_of_another_size_are_no_return(rate, jump, back):
    """Of a slow joint, less is left; of a fast one, most of the jump is."""
    position = rate * T
    position[60:] += jump
    position[64:] += back
    stream, notes = glitched(position, {})
    np.testing.assert_array_equal(stream.position[:, 0], position)
    assert not notes


def test_jumps_of_real_motion_are_kept():
    """A motion that starts or stops abruptly, a shaking joint, a coarse encoder, a permanent step,
    and one sample that is off by less than a step of the motion."""
    ramp = np.clip(T - 0.5, 0.0, 1.0)
    kick = np.zeros(200)
    kick[60:] = 0.5
    shaking = 0.1 * (-1.0) ** np.arange(200)
    coarse = np.zeros(200)
    coarse[50], coarse[120:122] = 0.005, 0.005
    burst = np.where(abs(np.arange(200) - 100) < 4, shaking, 0.0)
    off = 5 * SINE
    off[50] += 0.4
    noise = 1e-3 * np.random.default_rng(0).standard_t(2, 200)
    every = (ramp, 5 * ramp, kick, shaking, burst, off, coarse, np.round(SINE, 1), SINE + noise)
    for position in every:
        stream, notes = glitched(position, {})
        np.testing.assert_array_equal(stream.position[:, 0], position)
        assert not notes


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.5])
def test_positions_within_a_turn_are_joined(shift):
    position = np.column_stack([4 * SINE, np.pi + 0.001 * SINE, SINE, np.roll(7 * SINE, 30)])
    wrapped = (position + np.pi + shift) % (2 * np.pi) - np.pi - shift
    stream, notes = glitched(wrapped, {})
    turns = (stream.position - position) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.tile(np.round(turns[0]), (200, 1)), atol=1e-12)
    assert notes[0].startswith("whole turns were added to the positions of a, ")
    # for a sliding joint these are no turns
    stream, notes = glitched(wrapped, {}, turns=[False] * 4)
    np.testing.assert_array_equal(stream.position, wrapped)


@pytest.mark.parametrize("span", [25.0, 8 * np.pi, 191.0])
def test_positions_within_a_range_of_several_turns_are_joined(span):
    """As drives publish them that code positions in 16 bits."""
    position = 0.8 * span * SINE
    wrapped = (position + span / 2) % span - span / 2
    stream, notes = glitched(wrapped, {})
    np.testing.assert_allclose(stream.position[:, 0], position, atol=1e-3 * span)
    expected = f"multiples of {span:.4g} rad, their range, were added to the positions of a"
    assert notes == [expected]
    stream, notes = glitched(wrapped, {80: -0.45 * span})
    assert notes[0] == expected
    assert "such as a at 0.800 s" in notes[1]
    stream, notes = glitched(wrapped, {}, turns=[False])
    np.testing.assert_array_equal(stream.position[:, 0], wrapped)
    # a jump from and to somewhere within the range is none of a range
    stepped = 5 * SINE + np.where(np.arange(200) < 100, 0.0, 8.0)
    stream, notes = glitched(stepped, {})
    np.testing.assert_array_equal(stream.position[:, 0], stepped)
    assert not notes


RISING = np.linspace(0.0, 6.0, 200)
ELSEWHERE = np.interp(np.arange(200), [0, 80, 119], [10.0, -10.0, 0.0])
ELSEWHERE[120:] = np.linspace(-7.0, 7.0, 80)


@pytest.mark.parametrize("position", [RISING % 4.0, ELSEWHERE], ids=["less_than_a_turn", "inside"])
def test_jumps_that_no_encoder_makes_are_none_of_its_range(position):
    stream, notes = glitched(position, {})
    np.testing.assert_array_equal(stream.position[:, 0], position)
    assert not notes


def test_a_glitch_from_one_end_to_the_other_is_none_of_a_range():
    position = np.interp(np.arange(200), [0, 150, 199], [-6.0, 6.0, 2.08])
    _, notes = glitched(position, {148: -11.84})
    assert notes == [
        "left out: 1 message in which a position jumps and returns, such as a at 1.480 s"
    ]


@pytest.mark.parametrize("count", range(4, 14))
def test_a_jump_among_few_messages_is_no_trouble(count):
    """Such as those between two resets of the clock."""
    jumping = np.where(np.arange(count) < count - 2, 0.0, -2.0)
    (stream,) = even_stretches(stream_of(T[:count], jumping), [])
    np.testing.assert_array_equal(stream.position[:, 0], jumping)


def test_degrees_are_not_taken_for_turns():
    degrees = np.rad2deg(2 * np.sin(2 * np.pi * T))[::5]
    notes: list[str] = []
    (stream,) = even_stretches(stream_of(T[::5], degrees), notes)
    np.testing.assert_array_equal(stream.position[:, 0], degrees)
    assert not notes


def test_renaming_takes_beginnings_and_refuses_what_is_not_there():
    recorded = Recording("r", (stream_of(T, np.column_stack([SINE, SINE])),))
    stream = replace(recorded.streams[0], names=("fer_joint1", "fer_joint2"))
    recorded = Recording("r", (stream,))
    assert recorded.renamed({"fer_": "panda_"}).names == ("panda_joint1", "panda_joint2")
    assert recorded.renamed({"fer_joint1": "x"}).names == ("x", "fer_joint2")
    with pytest.raises(RobotDynamicsError, match="fer_joint1, fer_joint2"):
        recorded.renamed({"nothing": "x"})


URDF = b"""<?xml version="1.0"?>
<!-- <link name="arm"> in a comment -->
<robot name="r" xmlns:xacro="x">
  <link name="base"/><link  name='arm' >
    <visual><origin xyz="0 0 1"/></visual>
    <inertial>\r\n<mass value="1"/> <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
  </link>
  <link name="hand"/>
  <joint name="j" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 1"/><dynamics damping="1" spring="a &gt; b"/><limit effort="1"
    velocity="1"/></joint>
  <joint name="k" type="continuous"><parent link="arm"/><child link="hand"/></joint>
  <gazebo><link name="arm"/></gazebo>
</robot>
"""


def test_only_bodies_and_friction_change_in_a_urdf():
    body = Inertial(2.5, np.array([0.1, -0.2, 0.3]), np.diag([0.1, 0.11, 0.12]))
    law = Friction(0.5, 1.0, coulomb_negative=2.0)
    text = replaced(URDF, {"arm": body, "hand": body}, {"j": law, "k": law})
    found = rd.load(text.decode())
    for name in ("arm", "hand"):
        inertial = found.link(name).inertial
        assert inertial.mass == 2.5
        np.testing.assert_array_equal(inertial.center_of_mass, body.center_of_mass)
        np.testing.assert_array_equal(inertial.inertia, body.inertia)
    for name in ("j", "k"):
        friction = found.joint(name).friction
        assert (friction.viscous, friction.coulomb) == (0.5, 1.5)
    assert b'spring="a &gt; b"' in text

    def bare(text: bytes) -> bytes:
        text = re.sub(rb"<inertial>.*?</inertial>|<dynamics[^>]*/>", b"", text, flags=re.S)
        return text.replace(b'<link name="hand"></link>', b'<link name="hand"/>')

    assert bare(text) == bare(URDF)


def test_any_rotation_is_three_angles():
    rng = np.random.default_rng(0)
    for angles in [*rng.uniform(-3, 3, (50, 3)), (0.3, np.pi / 2, 0.2), (0.3, -np.pi / 2, 0.2)]:
        R = rotation_rpy(*angles)
        np.testing.assert_allclose(rotation_rpy(*roll_pitch_yaw(R)), R, atol=1e-12)


@pytest.mark.parametrize(
    ("cutoffs", "words"),
    [
        ([None], "not filtered"),
        ([8.0, 8.0], "filtered at 8 Hz"),
        ([13.46, 3.364, 8.0], "filtered at 3.36 to 13.5 Hz"),
        ([8.0, None], "filtered at 8 Hz or not at all"),
    ],
)
def test_the_filters_in_words(cutoffs, words):
    assert filtered(cutoffs) == words


@pytest.mark.parametrize("chosen", [[], ["--cutoff", "7"]])
def test_the_errors_are_printed_with_the_filter(identified, tmp_path, capsys, chosen):
    robot, table = str(identified.parent / "arm.urdf"), str(identified.parent / "a.csv")
    assert main(["identify", robot, table, "--out", str(tmp_path), *chosen]) == 0
    (cutoff,) = json.loads((tmp_path / "report.json").read_text())["cutoff"].values()
    words = filtered([cutoff])
    assert f"RMS relative to that of the torque, both {words}:" in capsys.readouterr().out
    assert f"on motion held out of the fit; both {words}." in (tmp_path / "report.html").read_text()
    command = ["replay", str(tmp_path / "identified.yaml"), table, "--out", str(tmp_path), *chosen]
    assert main(command) == 0
    assert f"of the measured torque, {words}:" in capsys.readouterr().out
    assert f"and measured torque {words}.<" in (tmp_path / "replay.html").read_text()
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cutoff"] == cutoff


@pytest.fixture(scope="module")
def identified(tmp_path_factory, truth):
    folder = tmp_path_factory.mktemp("identified")
    (folder / "arm.urdf").write_text(ARM)
    table = csv_of(recording(truth, 12.0, 100.0, noise=0.02), folder / "a.csv")
    out = folder / "out"
    assert main(["identify", str(folder / "arm.urdf"), str(table), "--out", str(out)]) == 0
    return out


def test_everything_is_written_and_loads(identified, truth):
    report = json.loads((identified / "report.json").read_text())
    loaded = InverseDynamics(rd.load(identified / "identified.yaml", strict=True))
    assert loaded.joint_names == ("a", "b", "c")
    assert (identified / "description.urdf").read_text() == ARM
    assert max(report["errors"]["held_out"]["identified"]) < 0.1
    missed = report["errors"]["held_out"]["identified_unfiltered_rms"]
    np.testing.assert_allclose(report["unexplained"], missed, rtol=0.2)
    assert (identified / "report.html").read_text().count("95 % band of unfiltered efforts") == 3
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (3, 50, 3))
    right = InverseDynamics(truth)(q, qd, qdd)
    np.testing.assert_allclose(loaded(q, qd, qdd), right, atol=0.1 * np.abs(right).max())
    assert report["parameters"]["fore.mass"]["described"] == 2.5


def test_a_joint_without_efforts_has_no_empty_charts(truth, tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    log = recording(truth, 12.0, 100.0, noise=0.02).without_efforts(["b"])
    table = csv_of(log, tmp_path / "a.csv")
    assert main(["identify", str(tmp_path / "arm.urdf"), str(table), "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    for joint, shown in (("a", True), ("b", False)):
        for chart in ("measured and modelled torque", "measured minus identified", "spectrum"):
            assert (f"{joint}: {chart}" in page) is shown
        assert f"{joint}: torque by term" in page
    assert "b: modelled torque over time" in page


def test_the_identified_urdf_is_one_robot_everywhere(identified):
    pinocchio = pytest.importorskip("pinocchio", reason="Pinocchio is the yardstick")
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the yardstick")
    path = identified / "identified.urdf"
    rigid = InverseDynamics(rd.load(path), terms=("inertia", "coriolis", "gravity"))
    model = pinocchio.buildModelFromUrdf(str(path))
    physics = mujoco.MjModel.from_xml_path(str(path))
    physics.dof_damping[:] = physics.dof_frictionloss[:] = 0.0
    data = mujoco.MjData(physics)
    rng = np.random.default_rng(1)
    for q, qd, qdd in rng.uniform(-2, 2, (20, 3, 3)):
        ours = rigid(q, qd, qdd)
        theirs = pinocchio.rnea(model, model.createData(), q, qd, qdd)
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(physics, data)
        np.testing.assert_allclose(ours, data.qfrc_inverse, atol=1e-8)


def test_a_tree_in_yaml_is_written_as_one(tmp_path, capsys):
    from robot_dynamics.description.files import find

    source = find("package://robot_dynamics/config/three_axis.yaml")
    robot = rd.load(source)
    table = csv_of(recording(changed(robot, 1), 10.0, 100.0, noise=0.02), tmp_path / "a.csv")
    command = ["identify", str(source), str(table), "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    loaded = rd.load(tmp_path / "out" / "identified.yaml")
    assert loaded.joint_names == robot.joint_names
    # URDF cannot express the rotors' inertia
    q, still = np.random.default_rng(0).uniform(-2, 2, (5, 3)), np.zeros((5, 3))
    weights = rd.InverseDynamics(rd.load(tmp_path / "out" / "identified.urdf"), terms=["gravity"])
    loaded = rd.InverseDynamics(loaded, terms=["gravity"], rotors="reflected")
    right = loaded(q, still, still)
    assert weights(q, still, still) == pytest.approx(right, rel=1e-9, abs=1e-9)
    compare = ["replay", str(source), str(tmp_path / "out" / "identified.yaml"), str(table)]
    assert main([*compare, "--out", str(tmp_path), "--json"]) == 0
    before, after = json.loads(capsys.readouterr().out)["errors"]
    assert np.mean(after) < 0.5 * np.mean(before)
    assert 'href="robot.html"' in (tmp_path / "replay.html").read_text()
    assert '"motion":{"name":"a.csv"' in (tmp_path / "robot.html").read_text()
    assert np.mean(said["errors"]["held_out"]["identified"]) < 0.1


def _ticking(seed=0, rate=500.0, lost=0.02, tick=0.0035):
    """(true times, stream) of a smooth motion whose stamps are a clock's last tick, as a
    simulator's is: several states have one stamp, and lost messages leave no trace in it."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, 12, 1 / rate)
    w = 2 * np.pi * np.array([0.3, 0.5])
    q, qd = np.sin(w * t[:, None]), w * np.cos(w * t[:, None])
    # at rest for a second
    q[2000:2500], qd[2000:2500] = q[2000], 0.0
    q[2500:] += q[2000] - np.sin(w * t[2500])
    tau = np.cos(3 * t)[:, None] + 0.1 * rng.normal(size=q.shape)
    kept = rng.uniform(size=len(t)) >= lost
    ticks = np.cumsum(tick * rng.uniform(0.3, 1.7, int(14 / tick)))
    stamps = ticks[np.searchsorted(ticks, t + 1.0, side="right") - 1]
    return t[kept], Stream(("a", "b"), stamps[kept], q[kept], qd[kept], tau[kept])


@pytest.mark.parametrize("rates", [True, False])
def test_states_of_a_coarse_clock_are_kept_and_timed_by_their_velocities(rates):
    times, stream = _ticking(lost=0.02 if rates else 0.0)
    # velocities in another unit tell the same
    stream = replace(stream, velocity=stream.velocity * (57.3 if rates else np.nan))
    assert (np.diff(stream.time) == 0).mean() > 0.2
    notes = []
    (even,) = even_stretches(stream, notes)
    time = even.time
    assert any("a different state (coarse clock)" in note for note in notes)
    # clocks agree up to a shift
    right = np.interp(time - time[0], times - times[0], stream.position[:, 0])
    assert np.abs(even.position[:, 0] - right).max() < 0.02
    assert np.diff(time) == pytest.approx(2e-3, rel=0.005)
    assert len(time) == pytest.approx(6000, abs=3)


@pytest.mark.parametrize(
    ("stamps", "spread"),
    [
        ((0, 2, 2, 6, 8, 8, 10), (0, 2, 4, 6, 8, 9, 10)),
        ((0, 2, 4, 6, 8, 10, 10), (0, 2, 4, 6, 8, 10, 12)),
        # hundreds of states of a clock that stood still, or two of one that did not
        ((*([0] * 300), *range(1, 400)), range(400)),
        ((*range(99), 99, 99, 200, *range(201, 250)), (*range(100), *range(200, 250))),
    ],
)
def test_states_of_one_tick_are_spread_until_the_next(stamps, spread):
    stream = stream_of(np.array(stamps, dtype=float), np.arange(len(stamps)))
    found, left = _spread(stream, [])
    assert found.time == pytest.approx(np.array(spread, dtype=float))
    assert left == len(stamps) - len(spread)


@pytest.mark.parametrize("unit", [1.0, 57.3])
@pytest.mark.parametrize(
    ("shaken", "holes"),
    [(0.0, "a fifth, anywhere"), (0.0, "20 of every 170"), (4e-4, "20 of every 170")],
)
def test_velocities_tell_of_missing_messages_that_the_stamps_do_not_show(shaken, holes, unit):
    """The stamps of a logger that counts messages instead of reading a clock."""
    rng = np.random.default_rng(0)
    times = np.arange(7000) * 2e-3
    kept = times[rng.random(7000) > 0.2 if holes.startswith("a") else np.arange(7000) % 170 < 150]
    rate = np.array([2.0, 5.0])
    q, qd = np.sin(np.outer(kept, rate)), unit * rate * np.cos(np.outer(kept, rate))
    stamps = 2e-3 * np.arange(len(kept)) + rng.uniform(-shaken, shaken, len(kept))
    notes: list[str] = []
    (even,) = even_stretches(Stream(("a", "b"), stamps, q, qd, q), notes)
    time = even.time
    right = np.sin(np.outer(time - time[0], rate))
    # velocities in another unit tell how many are missing, but the stamps how much time
    if not shaken or unit == 1.0:
        np.testing.assert_allclose(even.position, right, atol=2e-3)
        assert f"as if {np.ptp(kept) - np.ptp(stamps):.2g}"[:-1] in notes[-1]
        # they are not said to be wrong by as much as is missing
        assert not any("stamps are off" in each for each in notes)


@pytest.mark.parametrize(("lost", "told"), [(40, True), (80, False)])
def test_of_a_long_gap_velocities_tell_nothing(lost, told):
    """What the robot did in 80 and in 160 ms: only the former is interpolated."""
    place = np.delete(np.arange(4000), np.arange(2000, 2000 + lost))
    q, rates = np.sin(np.outer(2e-3 * place, [2.0, 5.0])), np.array([2.0, 5.0])
    qd = rates * np.cos(np.outer(2e-3 * place, rates))
    notes: list[str] = []
    even_stretches(Stream(("a", "b"), 2e-3 * np.arange(len(place)), q, qd, q), notes)
    assert any("as if 0.08" in each for each in notes) == told
    assert any("as if" in each for each in notes) == told


def test_missing_messages_that_shaken_stamps_show_are_no_missing_time():
    rng, rates = np.random.default_rng(1), np.array([2.0, 5.0])
    time = 2e-3 * np.flatnonzero(rng.random(4000) > 0.1)
    q, qd = np.sin(np.outer(time, rates)), rates * np.cos(np.outer(time, rates))
    notes: list[str] = []
    stamps = time + rng.uniform(-8e-4, 8e-4, len(time))
    even_stretches(Stream(("a", "b"), stamps, q, qd, q), notes)
    assert any("stamps are off by up to 0.8" in each for each in notes)
    assert not any("as if" in each for each in notes)


def test_a_jump_of_one_joint_is_no_missing_time():
    """The other joint's position does not move on."""
    time = np.arange(1000) * 2e-3
    q = np.sin(np.outer(time, [2.0, 5.0]))
    q[500:, 0] += 0.05
    qd = np.cos(np.outer(time, [2.0, 5.0])) * [2.0, 5.0]
    notes: list[str] = []
    (even,) = even_stretches(Stream(("a", "b"), time, q, qd, q), notes)
    np.testing.assert_allclose(even.time, time, atol=1e-9)
    np.testing.assert_allclose(even.position, q, atol=1e-9)
    assert not notes


def test_steps_of_a_coarse_encoder_are_no_missing_time():
    """Of 2 mrad, where the joint moves by 3 mrad in a period at most."""
    time = np.arange(8000) * 1e-3
    q, qd = 0.6 * np.sin(5 * time)[:, None], 3.0 * np.cos(5 * time)[:, None]
    coarse, notes = np.round(q / 2e-3) * 2e-3, list[str]()
    (stream,) = even_stretches(Stream(("a",), time, coarse, qd, np.sin(9 * q)), notes)
    np.testing.assert_allclose(stream.time, time, atol=1e-9)
    assert not notes


@pytest.mark.parametrize(("way", "jump"), [(0.0, 0.0), (-1e-4, 0.0), (1e-18, 1e-3)])
def test_noisy_velocities_at_rest_tell_no_time(way, jump):
    """Positions that do not change, or against the velocities, or next to nothing but once."""
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.8e-3, 1.2e-3, 40))
    stream = stream_of(time, way * np.arange(40) + jump * (np.arange(40) > 30))
    noise = rng.uniform(1e-4, 2e-4, stream.velocity.shape)
    noise[:20] = 0.0
    stream = replace(stream, velocity=noise)
    (stream,) = even_stretches(stream, [])
    even = stream.time
    assert 35 < len(even) < 60


def test_a_few_repeated_stamps_are_no_coarse_clock():
    place = np.r_[0:100, 99, 100:200]
    notes: list[str] = []
    moved = SINE[place] + 1e-3 * np.arange(201)
    (stream,) = even_stretches(stream_of(T[place], moved), notes)
    assert len(stream) == 200
    assert "left out: 1 message with a repeated stamp" in notes[0]


@pytest.mark.filterwarnings("error")
def test_a_few_messages_of_one_state_are_no_stretch():
    assert even_stretches(stream_of(np.arange(5) / 1000, np.ones(5), np.ones((5, 1))), []) == []


def test_only_states_that_a_clock_ticked_over_are_spread():
    _, stream = _ticking(lost=0.0)
    once = stream.rows(np.r_[True, np.diff(stream.time) > 0])
    # the same state again is left out
    twice = once.rows(np.repeat(np.arange(len(once.time)), 2))
    notes = []
    even_stretches(twice, notes)
    assert any(f"left out: {len(once.time)} messages with a repeated stamp" in n for n in notes)
    assert not any("coarse clock" in note for note in notes)
    # a clock that stood still while hundreds of states came
    stood = np.r_[np.zeros(400), np.arange(4000) / 500 + 20]
    stream = stream.rows(slice(0, 4400))
    notes = []
    pieces = even_stretches(replace(stream, time=stood), notes)
    assert any("left out: 399 messages with a repeated stamp" in note for note in notes)
    assert sum(map(len, pieces)) == pytest.approx(4000, abs=5)


BALL = """
robot: reacher
links:
  - {name: upper, joint: {name: shoulder, type: universal, axes: zy}, mass: 2.0,
     center_of_mass: [0.02, 0.01, 0.2], inertia: {ixx: 0.02, iyy: 0.02, izz: 0.004},
     friction: {rz: {viscous: 9.0}}}
  - {name: hand, origin: {xyz: [0, 0, 0.4]}, joint: {name: wrist, type: spherical, axes: xzy},
     mass: 0.6, center_of_mass: [0.01, 0.06, 0.02], inertia: {ixx: 0.003, iyy: 0.001, izz: 0.003}}
"""
HINGED = """
<mujoco model="hinged"><asset><mesh name="shell" file="shell.obj"/></asset><worldbody>
  <body name="upper" pos="0 0 0.1"><joint name="j1" axis="0 0 1"/><joint name="j2" axis="0 1 0"/>
    <geom type="mesh" mesh="shell"/>
    <inertial pos="0 0.01 0.2" mass="2" diaginertia="0.02 0.02 0.004"/>
    <body name="fore" pos="0 0 0.4"><joint name="j3" axis="0 1 0" pos="0 0 0.02"/>
      <inertial pos="0.02 0.01 0.15" mass="1.2" diaginertia="0.012 0.012 0.002"/></body></body>
</worldbody></mujoco>
"""
SHELL = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
CARDAN = """
<sdf version="1.9"><model name="cardan">
<link name="base"><inertial><mass>1</mass></inertial></link>
<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>
<link name="upper"><pose relative_to="j"/><inertial><pose>0 .01 .2 0 0 0</pose><mass>2</mass>
  <inertia><ixx>.02</ixx><iyy>.02</iyy><izz>.004</izz></inertia></inertial></link>
<joint name="j" type="universal"><pose relative_to="base">0 0 .1 0 0 0</pose>
  <parent>base</parent><child>upper</child>
  <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
</model></sdf>
"""
TABLE = """
<robot name="table"><link name="ground"/>
<joint name="j" type="planar"><parent link="ground"/><child link="plate"/><axis xyz="1 0 0"/>
  </joint>
<link name="plate"><inertial><origin xyz="0.02 0.1 0.03"/><mass value="2"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>
"""


@pytest.mark.parametrize(
    ("name", "text", "beside"),
    [
        ("ball.yaml", BALL, ()),
        ("hinged.xml", HINGED, ("shell.obj",)),
        ("cardan.sdf", CARDAN, ()),
        ("table.urdf", TABLE, ()),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_written_is_what_was_found_whatever_the_description(tmp_path, name, text, beside):
    """Links between the parts of a joint have no bodies, and the friction of the parts is written
    with its joint. Files beside an MJCF are not copied: their places are kept."""
    if name.endswith(".xml"):
        pytest.importorskip("mujoco", reason="MuJoCo reads MJCF")
    (tmp_path / name).write_text(text)
    for each in beside:
        (tmp_path / each).write_text(SHELL)
    robot = rd.load(tmp_path / name)
    truth = changed(robot, 1, smooth=False)
    truth = replace(truth, rotors=())
    found = rd.identify(
        tmp_path / name, recording(truth, 12.0, 100.0, noise=0.01),
        validate=recording(truth, 8.0, 100.0, seed=5, noise=0.01),
    )  # fmt: skip
    assert found.errors.relative.max() < 0.02
    between = [link for link in found.mechanism.links if link.intermediate]
    assert between
    assert all(link.inertial.is_nothing for link in between)
    assert not {f"{link.name}.mass" for link in between} & {*found.parameters}
    save(found, tmp_path / "out")
    states = np.random.default_rng(0).uniform(-1, 1, (3, 5, len(robot.joint_names)))
    right = rd.InverseDynamics(found.mechanism)(*states)
    again = rd.InverseDynamics(rd.load(tmp_path / "out" / "identified.yaml"))
    assert again(*states) == pytest.approx(right, rel=1e-12)
    # URDF cannot express the rotors' inertia, nor gravity, which is 9.8 in SDF
    urdf = rd.load(tmp_path / "out" / "identified.urdf")
    urdf = replace(urdf, gravity=found.mechanism.gravity)
    weights = rd.InverseDynamics(urdf, terms=["gravity"])(*states)
    right = rd.InverseDynamics(found.mechanism, terms=["gravity"])(*states)
    assert weights == pytest.approx(right, rel=1e-9, abs=1e-9)
    copies = {path.name for path in (tmp_path / "out").iterdir()}
    assert ("description" + Path(name).suffix in copies) == (not beside)


def test_recordings_of_one_file_name_are_told_apart(tmp_path, truth):
    logs = []
    for seed, day in enumerate(("monday", "tuesday", "friday")):
        (tmp_path / day).mkdir()
        logs.append(csv_of(recording(truth, 8.0, 100.0, seed=seed), tmp_path / day / "log.csv"))
    logs[2].write_text("time,a\n0,1\n")
    lines = []
    found = rd.identify(ARM, logs, progress=lines.append)
    first, second = (f"{day}{os.sep}log.csv" for day in ("monday", "tuesday"))
    assert {*found.cutoffs} == {first, second}
    (left_out,) = (each for each in found.warnings if each.startswith("left out: "))
    assert left_out.startswith(f"left out: friday{os.sep}log.csv: no column")
    assert f"judging {first} and 1 more" in lines
    assert {*rd.identify(ARM, logs[0], validate=logs[0]).cutoffs} == {"log.csv"}


def test_rows_out_of_order_are_sorted_and_states_in_random_order_are_refused(tmp_path, truth):
    recorded = recording(truth, 8.0, 100.0)
    header, *rows = csv_of(recorded, tmp_path / "log.csv").read_text().splitlines()
    order = np.random.default_rng(0).permutation(len(rows))
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("\n".join([header, *(rows[k] for k in order)]) + "\n")
    states = [prepare(read(path), "abc", 10.0).stretches for path in (tmp_path / "log.csv", mixed)]
    np.testing.assert_array_equal(states[0][0].q, states[1][0].q)
    (stream,) = recorded.streams
    for wrong in (
        replace(stream, time=stream.time[order]),
        replace(stream.rows(order), time=stream.time),
    ):
        with pytest.raises(RecordingError, match="in the order of their times"):
            prepare(Recording("log", (wrong,)), "abc", 10.0)


def test_results_are_written_whole_or_not_at_all(tmp_path, truth, monkeypatch):
    """On a full disk, the results of an earlier run stay as they are."""
    found = rd.identify(ARM, recording(truth, 8.0, 100.0))
    files = save(found, tmp_path)
    before = {path: path.read_bytes() for path in files.values()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="cannot be written"):
        save(found, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_opens_in_a_browser(identified, tmp_path, scheme, width):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("NOT TESTED: chromium is not installed (apt-get install chromium)")
    page = (identified / "report.html").read_text()
    # it loads nothing from elsewhere, and links to the robot's page next to it
    assert not re.search(r'(src|href)="(?!robot\.html")|url\(|@import', page)
    assert page.count('href="robot.html"') == 1
    assert '"motion":{"name":"' in (identified / "robot.html").read_text()
    probe = (
        "<script>document.title = JSON.stringify({wide: document.documentElement.scrollWidth, "
        "ground: getComputedStyle(document.body).backgroundColor, "
        "charts: [...document.querySelectorAll('svg.chart')].filter(s => "
        "s.getBoundingClientRect().height > 60).length})</script></body>"
    )
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", probe))
    preferred = {"light": 1, "dark": 0}[scheme]
    done = subprocess.run(
        [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},2000",
            f"--blink-settings=preferredColorScheme={preferred}", file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title, done.stderr[-500:]
    found = json.loads(title[1].replace("&quot;", '"'))
    assert found["charts"] == 3 * 5 + 1  # one per joint, and one for the choice of the filter
    assert found["ground"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 21, 23)"}[scheme]
    assert found["wide"] <= max(width, 500)  # headless windows cannot be narrower than 500


def test_strict_tells_a_fit_that_lost_to_the_description(tmp_path, capsys):
    (stream,) = recording(rd.load(ARM), 24.0, 100.0, noise=0.01).streams
    seen = (np.arange(len(stream.time)) < 1610)[:, None]
    other = replace(stream, effort=stream.effort * np.where(seen, 1.6, 1.0))
    (tmp_path / "arm.urdf").write_text(ARM)
    table = csv_of(Recording("other", (other,)), tmp_path / "a.csv")
    command = ["identify", str(tmp_path / "arm.urdf"), str(table), "--out", str(tmp_path / "out")]
    assert main([*command, "--strict", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["kept"] != "nothing"
    assert (tmp_path / "out" / "identified.yaml").exists()


def test_rows_without_a_time_are_counted_and_the_first_is_named(truth, tmp_path):
    path = csv_of(recording(truth, 12.0, 100.0, noise=0.02), tmp_path / "a.csv")
    lines = path.read_text().splitlines()
    for k, word in ((40, "1e999"), (41, "nan"), (90, "")):
        lines[k] = ",".join([word, *lines[k].split(",")[1:]])
    path.write_text("\n".join(lines))
    found = read(path)
    (note,) = found.notes
    assert note == "rows without a time were dropped: 3, such as row 41"
    assert note in prepare(found, found.names, 10.0).notes
    # if too little is left, the error says where the rest went
    path.write_text("\n".join([*lines[:100], *("," + x.split(",", 1)[1] for x in lines[100:])]))
    with pytest.raises(
        RecordingError, match=r"too short: .*rows without a time were dropped: 1[01]"
    ):
        prepare(read(path), found.names, 10.0)


def test_milliseconds_are_not_taken_for_seconds(truth):
    (stream,) = recording(truth, 12.0, 1000.0, noise=0.02).streams
    for factor, doubted in ((1.0, False), (250.0, True)):
        log = Recording("log", (replace(stream, time=factor * stream.time),))
        notes = prepare(log, stream.names, None).notes
        assert ("one sample every 0.25 s: are the times in seconds?" in notes) == doubted
    log = Recording("log", (replace(stream, time=1000.0 * stream.time),))
    with pytest.raises(RecordingError, match="count samples or milliseconds"):
        prepare(log, stream.names, None)
    # a logger of 8 Hz is slow, but no more
    slow = replace(stream.rows(slice(None, None, 125)), time=stream.time[::125])
    notes = prepare(Recording("log", (slow,)), stream.names, None).notes
    assert not any("in seconds?" in note for note in notes)


def taking_turns(streams, lag):
    """The messages of several robots under the same names, one of each in turn."""
    time = np.concatenate([each.time + k * lag for k, each in enumerate(streams)])
    order = np.argsort(time, kind="stable")
    fields = (
        np.vstack([getattr(each, name) for each in streams])[order]
        for name in ("position", "velocity", "effort")
    )
    return Recording("bag", (Stream(streams[0].names, time[order], *fields),))


@pytest.mark.parametrize("lag", [0.0, 0.001, 0.003])
@pytest.mark.parametrize("robots", [2, 3])
def test_robots_under_the_same_names_are_told(truth, robots, lag):
    each = [recording(truth, 12.0, 100.0, seed=k).streams[0] for k in range(robots)]
    with pytest.raises(RecordingError, match=f"between {robots} states that are far apart") as told:
        prepare(taking_turns(each, lag), truth.joint_names, 10.0)
    assert f"do {robots} robots, or {robots} nodes, publish the same joints?" in str(told.value)


@pytest.mark.parametrize("block", [50, 120])
def test_robots_whose_messages_were_written_in_blocks_are_told(truth, block):
    log = taking_turns([recording(truth, 12.0, 100.0, seed=k).streams[0] for k in (0, 1)], 0.004)
    (stream,) = log.streams
    blocks = np.arange(len(stream)).reshape(-1, 2 * block)
    order = np.concatenate([rows[k::2] for rows in blocks for k in (0, 1)])
    with pytest.raises(RecordingError, match="between 2 states that are far apart"):
        prepare(Recording("log", (stream.rows(order),)), stream.names, 10.0)


def test_takes_whose_clock_starts_anew_are_no_second_robot(truth):
    (stream,) = recording(truth, 12.0, 100.0).streams
    again = replace(stream, time=np.concatenate(3 * [stream.time[:400]]))
    assert "clock jumped back 2 times" in str(
        prepare(Recording("log", (again,)), stream.names, 10.0).notes
    )


def test_noise_is_no_second_robot(truth):
    (stream,) = recording(truth, 12.0, 100.0).streams
    noise = 0.05 * np.random.default_rng(0).normal(size=stream.position.shape)
    log = Recording("log", (replace(stream, position=stream.position + noise),))
    prepare(log, stream.names, 10.0)


def test_replay_asks_what_identify_asks(truth, tmp_path):
    (stream,) = recording(truth, 12.0, 100.0, noise=0.02).streams
    turned = np.degrees(stream.position)
    degrees = Recording(
        "log", (replace(stream, position=turned, velocity=np.full_like(turned, np.nan)),)
    )
    notes = replay([truth], degrees, cutoff=10.0).notes
    assert any(
        "are they in degrees" in each or "are the positions in rad" in each for each in notes
    )
    free = tuple(replace(each, joint=replace(each.joint, limits=None)) for each in truth.links)
    notes = replay([replace(truth, links=free)], degrees, cutoff=10.0).notes
    assert sum("are they in degrees" in each for each in notes) == 3
    # a joint that turns far is no sign of degrees if radians explain the torques as well
    t, q, qd, qdd = motion(3, 12.0, 100.0)
    q[:, 2], qd[:, 2] = q[:, 2] + 5 * t, qd[:, 2] + 5.0
    turning = Stream(stream.names, t, q, qd, InverseDynamics(truth)(q, qd, qdd))
    notes = replay([replace(rd.load(ARM), links=free)], Recording("log", (turning,))).notes
    assert not any("degrees" in each for each in notes)
    small = Recording("log", (replace(stream, effort=1000 * stream.effort),))
    notes = replay([truth], small, cutoff=10.0).notes
    assert sum("joint torques in N·m" in each for each in notes) == 3
    assert not any(
        "?" in each for each in replay([truth], Recording("log", (stream,)), cutoff=10.0).notes
    )


@pytest.mark.parametrize("command", ["identify", "replay"])
def test_what_cannot_be_written_is_told_before_anything_is_computed(
    command, tmp_path, capsys, monkeypatch
):
    (tmp_path / "file").write_text("")
    robot = str(Path(__file__).parents[1] / "urdf" / "six_axis.urdf")
    for place in ("file", "file/below"):
        # the recording does not exist, which would otherwise be the error
        assert main([command, robot, str(tmp_path / "no.csv"), "--out", str(tmp_path / place)]) == 1
        assert "expected a folder" in capsys.readouterr().err


def test_a_file_name_that_is_not_utf_8_is_escaped(truth, tmp_path):
    robot = Path(__file__).parents[1] / "urdf" / "six_axis.urdf"
    mechanism = rd.load(robot)
    log = csv_of(recording(mechanism, 10.0, 100.0, noise=0.02), tmp_path / "a.csv")
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/x\xff.csv")
    log.rename(odd)
    out = tmp_path / "out"
    assert main(["replay", str(robot), odd, "--cutoff", "10", "--out", str(out)]) == 0
    assert any("x\\udcff.csv" in page.read_text() for page in out.glob("*.html"))


def test_single_missing_velocities_do_not_cost_the_others(truth):
    (stream,) = recording(truth, 12.0, 100.0, noise=0.02).streams
    velocity = stream.velocity.copy()
    velocity[[300, 301, 700], 1] = np.nan
    whole, gaps = (
        prepare(Recording("log", (replace(stream, velocity=each),)), stream.names, None)
        for each in (stream.velocity, velocity)
    )
    assert not any("velocities" in note for note in gaps.notes)
    (before,), (after,) = whole.stretches, gaps.stretches
    np.testing.assert_allclose(after.qd, before.qd, atol=1e-3)
    # if there are too few, none of them is used
    velocity[200:, 1] = np.nan
    log = Recording("log", (replace(stream, velocity=velocity),))
    notes = prepare(log, stream.names, None).notes
    assert f"no velocities of {stream.names[1]}; using differentiated positions" in notes
