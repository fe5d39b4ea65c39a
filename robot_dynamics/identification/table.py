# SPDX-License-Identifier: Apache-2.0
"""Reads recordings from CSV files as written by PlotJuggler and pandas."""

from __future__ import annotations

import csv
import itertools
import math
import re
import warnings
from pathlib import Path
from types import GenericAlias
from typing import TextIO
from urllib.parse import quote, unquote

import numpy as np

from ..description.files import column_name
from ..errors import RecordingError, counted, listed, wrong
from .recording import Floats, Recording, Stream

TIMES = ("time", "__time", "timestamp")
PERHAPS = ("t", "stamp", "secs", "seconds")
"""A column of one of these names is the time if none of `TIMES` is there, and it increases"""
UNITS = {"": 1.0, "_s": 1.0, "_ms": 1e-3, "_us": 1e-6, "_ns": 1e-9}
"""s, by the end of the time column's name"""
UNIT = re.compile(r"(.*?) *[(\[]([^()\[\]]*[^()\[\]\d][^()\[\]]*)[)\]]")
"""A column's name and its unit in brackets, which is not an index"""
ANGLES = {"rad": 1.0, "deg": math.pi / 180, "°": math.pi / 180}
LENGTHS = {"m": 1.0, "mm": 1e-3}
FACTORS = {
    "time": {end[1:]: unit for end, unit in UNITS.items() if end},
    "position": {**ANGLES, **LENGTHS},
    "velocity": {f"{unit}/s": factor for unit, factor in {**ANGLES, **LENGTHS}.items()},
    "effort": dict.fromkeys(("n·m", "n*m", "n m", "nm", "n"), 1.0),
}
"""By the end of a column's name: the factor to SI units of each unit in lower case"""
LONGEST_LINE = 2**24
"""Bytes; a line of 200,000 columns takes a third of this"""
SLOWEST = 1.0
"""s between messages; slower recordings have stamps in another unit, or do not show the motion"""
FIELDS = ("position", "velocity", "effort")
SEPARATOR = "sep="
"""The beginning of a first line that tells a spreadsheet what separates the columns"""


def column(joint: str, field: str) -> str:
    """The name of a joint's column, which `read` understands whatever the joint is called.

    Args:
        joint: its name; characters that separate columns, or parts of column names, are
            percent-encoded as in URLs.
        field: position, velocity or effort, or another name, which `read` ignores.
    """
    name = re.sub(r'[%/,;"\t\r\n]', lambda found: quote(found[0], safe=""), joint)
    return f"{name}/{field}"


def read(path: Path) -> Recording:
    """Read a table with a header.

    It must have a column for the time in s (or in the unit of its name: `time_ms`, `time_us`,
    `time_ns`), and columns whose names end in JOINT/position, JOINT/velocity and JOINT/effort (rad
    or m, rad/s or m/s, N·m or N), after any prefix. JOINT is percent-encoded as in URLs (%2F is /).
    Names may be followed by a unit in brackets, such as `elbow/position [deg]`.
    Empty cells are missing values. A row with only some of the joints is a message of these joints.
    If the columns are separated by semicolons or tabs, numbers may have decimal commas.

    Raises:
        RecordingError: the file is not such a table.
    """
    try:
        _check_lines(path)
        with path.open(newline="", encoding="utf-8-sig") as file:
            while (first := file.readline()).startswith(("#", SEPARATOR)):
                pass
            delimiter = max(",;\t", key=first.count)
            cells = next(csv.reader([first], delimiter=delimiter), [])
            header = [column_name(cell.strip()) for cell in cells]
            time, columns = _columns(header, path.name)
            begin = file.tell()
            values = _plain_numbers(file, delimiter, len(header))
            if values is None:
                file.seek(begin)
                rows = [
                    row for row in csv.reader(file, delimiter=delimiter) if any(map(str.strip, row))
                ]
                if len(rows) > 1 and len(rows[-1]) < len(header) == len(rows[-2]):
                    rows.pop()  # incomplete: the writer was stopped
                used = [time[0], *(k for k, _ in columns.values())]
                values = _numbers(rows, header, used, path, "," if delimiter != "," else ".")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(f"{path.name}: not readable as CSV: {error}", name=str(path)) from None
    stamps = values[:, time[0]] * time[1]
    _check_stamps(stamps, header[time[0]], path.name, sure=time[2])
    joints = tuple(dict.fromkeys(joint for joint, _ in columns))
    place = {joint: k for k, joint in enumerate(joints)}
    shape = (len(values), len(joints))
    fields = {field: np.full(shape, np.nan) for field in FIELDS}
    for (joint, field), (column, factor) in columns.items():
        fields[field][:, place[joint]] = factor * values[:, column]
    whole = Stream(joints, stamps, *(fields[field] for field in FIELDS)).rows(np.isfinite(stamps))
    # PlotJuggler leaves cells empty in rows that come from another publisher's message
    given = np.isfinite(whole.position) | np.isfinite(whole.effort)
    patterns, which = given[:1], np.zeros(len(given), dtype=int)
    if not (given == patterns).all():
        patterns, which = np.unique(given, axis=0, return_inverse=True)
    streams = []
    for k, pattern in enumerate(patterns):
        names = [name for name, has in zip(joints, pattern, strict=True) if has]
        if names:
            streams.append(whole.of(names).rows(which.ravel() == k))
    if not streams:
        raise RecordingError(f"{path.name}: no row has a position or an effort", name=str(path))
    return Recording(path.name, _joined(whole, streams), _untimed(stamps))


def _check_lines(path: Path) -> None:
    """Check that the lines are text and not endless, since each is read as a whole.

    Raises:
        csv.Error: they are not.
    """
    with path.open("rb") as file:
        while block := file.read(LONGEST_LINE):
            if b"\0" in block:
                raise csv.Error("found a zero byte, expected text in UTF-8")
            if len(block) == LONGEST_LINE and b"\n" not in block and b"\r" not in block:
                raise csv.Error(f"found a line of over {LONGEST_LINE} bytes")


def _untimed(stamps: Floats) -> tuple[str, ...]:
    """A note if rows have no time."""
    untimed = np.flatnonzero(~np.isfinite(stamps))
    if not len(untimed):
        return ()
    return (f"rows without a time were dropped: {len(untimed)}, such as row {untimed[0] + 2}",)


def _joined(whole: Stream, streams: list[Stream]) -> tuple[Stream, ...]:
    """The streams if their joints are disjoint; otherwise, as single cells are missing, all in
    one."""
    names = [name for stream in streams for name in stream.names]
    if len(set(names)) == len(names):
        return tuple(streams)
    found = set(names)
    return (whole.of(name for name in whole.names if name in found),)


def _check_stamps(stamps: Floats, name: str, source: str, *, sure: bool) -> None:
    """Check that stamps can be seconds, have enough digits to tell rows apart and, unless it is
    sure that they are seconds, increase.

    Raises:
        RecordingError: they cannot.
    """
    steps = np.diff(stamps[np.isfinite(stamps)])
    if not sure and not (steps > 0).all():
        raise RecordingError(
            f"{source}: no time column: {name!r} does not increase from row to row; if it is the "
            "time nevertheless, call it time",
            name=source,
        )
    # rows may be out of order
    fresh = np.diff(np.unique(stamps[np.isfinite(stamps)]))
    step = float(np.median(fresh)) if len(fresh) else np.inf
    repeats = int((steps == 0).sum())
    if 2 * repeats > len(steps) and step > SLOWEST:
        raise RecordingError(
            f"{source}: {name}: repeats the previous row's in {repeats} of "
            f"{counted(len(steps) + 1, 'row')}: was it written with too few digits? Seconds since "
            "the start need fewer",
            name=source,
        )
    if len(fresh) and step > SLOWEST:
        raise RecordingError(
            f"{source}: {name}: increases by {step:.3g} per row, expected at most {SLOWEST:g} s; "
            "name a column in ms, µs or ns time_ms, time_us or time_ns",
            name=source,
        )


def _columns(
    header: list[str], source: str
) -> tuple[tuple[int, float, bool], dict[tuple[str, str], tuple[int, float]]]:
    """((the index of the time column, its unit in s, whether its name is sure to mean time), the
    index of each joint's and field's column and its factor to SI units)."""
    if _is_numbers(header):
        raise RecordingError(
            f"{source}: no header: its first row contains numbers; expected column names: time, "
            "and JOINT/position, JOINT/velocity and JOINT/effort of each joint",
            name=source,
        )
    known = {
        name + end: (unit, name in TIMES)
        for name in (*TIMES, *PERHAPS)
        for end, unit in UNITS.items()
    }
    times: list[tuple[int, float, bool]] = []
    columns: dict[tuple[str, str], tuple[int, float]] = {}
    odd: dict[tuple[str, str], RecordingError] = {}
    for k, whole in enumerate(header):
        found = UNIT.fullmatch(whole)
        name, unit = found.groups() if found else (whole, None)
        parts = [part for part in map(str.strip, name.split("/")) if part]
        if name.lower() in known:
            key = ("", "time")
        elif len(parts) >= 2 and parts[-1].lower() in FIELDS:
            key = (unquote(parts[-2]), parts[-1].lower())
        else:
            continue
        factor = 1.0 if unit is None else FACTORS[key[1]].get(unit.strip().lower())
        if factor is None:
            odd[key] = _unknown_unit(str(unit), key[1], f"{source}: {whole}")
        elif key[1] == "time":
            by_name, sure = known[name.lower()]
            times.append((k, by_name if unit is None else factor, sure))
        elif key in columns:
            raise RecordingError(
                f"{source}: two columns for {'/'.join(key)}: {header[columns[key][0]]!r} and "
                f"{whole!r}; keep one",
                name=source,
            )
        else:
            columns[key] = k, factor
    for key, error in odd.items():
        if not (times if key[1] == "time" else key in columns):
            raise error
    if not times:
        apart = "; columns are separated by commas, semicolons or tabs" if len(header) == 1 else ""
        raise RecordingError(
            f"{source}: no time column: found {listed(header)}; expected one called "
            f"{', '.join(TIMES)}, in s (or time_ms, time_us, time_ns){apart}",
            name=source,
        )
    if not any(field == "position" for _, field in columns):
        alone = f" but some in JOINT/{next(iter(columns))[1]}" if columns else ""
        raise RecordingError(
            f"{source}: no column ends in JOINT/position{alone}; found {listed(header)}; expected "
            "positions and efforts in one file, with names such as elbow/position and elbow/effort",
            name=source,
        )
    return next((each for each in times if each[2]), times[0]), columns


def _unknown_unit(unit: str, field: str, column: str) -> RecordingError:
    more = "; --effort-scale converts others" if field == "effort" else ""
    expected = ", ".join(FACTORS[field])
    return wrong(RecordingError, f"{column}: unit", unit, f"{expected}{more}")


def _is_numbers(cells: list[str]) -> bool:
    """Whether all cells are numbers, or several numbers separated by blanks."""
    words = [word for cell in cells for word in cell.split()]
    try:
        return bool([float(word.replace(",", ".")) for word in words])
    except ValueError:
        return False


def _plain_numbers(file: TextIO, delimiter: str, width: int) -> np.ndarray | None:
    """The rest of a table if every cell is a number; otherwise None."""
    begin = file.tell()
    values = _json_numbers(file, width) if delimiter == "," else None
    if values is not None:
        return values
    file.seek(begin)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a table without rows is only a warning
            values = np.loadtxt(file, delimiter=delimiter, comments=None, ndmin=2)
    except (ValueError, UserWarning):
        return None
    return values if values.shape[1] == width else None


def _json_numbers(file: TextIO, width: int) -> np.ndarray | None:
    """The rest of a table if every cell is a number as in JSON, which is several times as fast to
    read; otherwise None."""
    try:
        import msgspec
    except ImportError:
        return None
    row = msgspec.json.Decoder(GenericAlias(tuple, (float,) * width))
    rows = (row.decode(f"[{line}]") for line in file)
    try:
        values = np.fromiter(itertools.chain.from_iterable(rows), dtype=float)
    except msgspec.DecodeError:
        return None
    return values.reshape(-1, width) if len(values) else None


def _numbers(
    rows: list[list[str]], header: list[str], used: list[int], path: Path, point: str
) -> np.ndarray:
    """The numbers in the columns that are used; NaN in the others, which may contain words."""
    if not rows:
        raise RecordingError(f"{path.name}: a header but no rows", name=str(path))
    source, width = path.name, len(header)
    for number, row in enumerate(rows, start=2):
        if len(row) != width:
            hint = ""
            if point == "." and len(row) > width:
                hint = "; if numbers have decimal commas, separate them by semicolons or tabs"
            raise RecordingError(
                f"{source}: row {number}: {len(row)} cells where the header has {width}{hint}",
                name=source,
            )
    values = np.full((len(rows), width), np.nan)
    for k, row in enumerate(rows):
        for j in used:
            try:
                values[k, j] = float(row[j].strip().replace(point, ".") or "nan")
            except ValueError:
                raise RecordingError(
                    f"{source}: row {k + 2}: {header[j]}: found {row[j][:40]!r}, expected a number",
                    name=source,
                ) from None
    return values
