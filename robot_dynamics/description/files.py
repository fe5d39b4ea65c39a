# SPDX-License-Identifier: Apache-2.0
"""Finds a description's file (by a path, or by package://name/path and the ament index), and writes
whole files."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import secrets
import shlex
from collections.abc import Iterable
from pathlib import Path, PosixPath
from typing import Any, Protocol, TextIO

from ..errors import DescriptionError, InputError, wrong
from ..scalar import Floats
from .known import known_robot
from .packages import share
from .yaml_text import plain

BLANKS = "\ufeff \t\r\n"
"""What may precede the first tag of XML"""

MOST_BYTES = 10_000_000
"""Largest size of a description; a larger file is refused without reading it"""

LONGEST_PATH = 4096
"""Largest number of characters of a path"""

LONGEST = 120
"""Largest number of characters of a reference that a message repeats"""

_WITH_ARGUMENTS = re.compile(r"(?P<file>.*?\.xacro)\s+(?P<arguments>.*:=.*)", re.DOTALL | re.I)


class XacroFile(PosixPath):
    """The path of a xacro file, with arguments for its expansion."""

    arguments: tuple[str, ...] = ()
    """NAME:=VALUE of each"""


def arguments_of(file: Path) -> tuple[str, ...]:
    """NAME:=VALUE of each argument for the expansion of a file; only xacro files have any."""
    return file.arguments if isinstance(file, XacroFile) else ()


def is_yaml(file: str | Path) -> bool:
    """Whether a file is YAML by the ending of its name."""
    return Path(file).suffix.lower() in (".yaml", ".yml")


def is_text(source: str) -> bool:
    """Whether this is the text of a description rather than the name of a file."""
    return source.lstrip(BLANKS).startswith("<")


def find(reference: str, beside: Path | None = None) -> Path:
    """The existing file that a path or a package:// URL refers to.

    Args:
        reference: a path, `package://name/path/in/share` or `file://path`. A .xacro file may be
            followed by its arguments, as in `ur.urdf.xacro name:=left ur_type:=ur5e`. Without
            `beside`, this may also be the name of a known robot, if there is no file of that name.
        beside: the folder to which a path is relative, and around which packages that are not
            installed are searched for; None: the working directory, and no such search.

    Raises:
        DescriptionError: there is no such package or file, or an argument is not NAME:=VALUE.
    """
    if given := _WITH_ARGUMENTS.fullmatch(reference):
        file = XacroFile(find(given["file"], beside))
        file.arguments = _arguments(given["arguments"], file.name)
        return file
    if reference.startswith("package://"):
        package, _, inner = reference.removeprefix("package://").partition("/")
        path = share(package, reference, beside) / inner
    else:
        path = _home_expanded(Path(reference.removeprefix("file://")), reference)
        if beside is not None and not path.is_absolute():
            path = beside / path
    try:
        if path.is_file():
            return path
        kind = ""
        if reference and path.exists():
            kind = " (it is a folder)" if path.is_dir() else " (it is a pipe or a device)"
    except (OSError, ValueError):  # too long for a name, or a character that no name may contain
        kind = " (it is not a path)"
    if beside is None and not kind:
        try:
            robot = known_robot(reference)
        except DescriptionError:
            if not (shipped := _shipped(reference)):
                raise
            kind, robot = f"; the shipped file of this name is {shipped}", None
        if robot is not None:
            return robot
    raise DescriptionError(
        f"{shortened(reference) or 'an empty name'}: no such file{kind}",
        name=reference,
        value=str(path),
        expected="an existing file",
    )


def _arguments(text: str, where: str) -> tuple[str, ...]:
    """NAME:=VALUE of each argument; quotes may enclose a value with blanks, as in a shell."""
    if len(text) > LONGEST_PATH:
        expected = f"at most {LONGEST_PATH}"
        raise wrong(DescriptionError, f"{where}: arguments", f"{len(text)} characters", expected)
    try:
        words = shlex.split(text)
    except ValueError as error:  # an unterminated quotation
        raise DescriptionError(f"{where}: arguments: {error}", name=where) from None
    for word in words:
        if not (re.match(r"[^\W\d]\w*:=", word) and word.isprintable()):
            expected = "NAME:=VALUE, in printable characters"
            raise wrong(DescriptionError, f"{where}: argument", shortened(word), expected)
    return tuple(words)


def _shipped(name: str) -> Path | None:
    """The file of this name that comes with the package; None: there is none."""
    try:
        own = share("robot_dynamics", name)
    except DescriptionError:
        return None
    files = own / "config" / f"{name}.yaml", own / "urdf" / f"{name}.urdf"
    return next((file for file in files if file.is_file()), None)


def _home_expanded(path: Path, reference: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:  # ~user of an unknown user
        raise DescriptionError(
            f"{shortened(reference)}: no such file ({error})", name=reference
        ) from None


def shortened(reference: str) -> str:
    """The reference in one line of at most LONGEST characters."""
    line = " ".join(reference.split())
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        DescriptionError: it cannot be read, is too large, or is not text.
    """
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise wrong(DescriptionError, f"{path.name}: bytes", size, f"at most {MOST_BYTES}")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        words = f"not a text file in UTF-8 ({error.reason}): save text in another encoding as UTF-8"
    except OSError as error:
        words = f"cannot be read ({error.strerror})"
    raise DescriptionError(f"{path.name}: {words}", name=str(path))


def urdf_of(file: Path) -> Path | None:
    """The file that a YAML refers to as its `urdf`; None if it refers to none, or is no YAML.

    Raises:
        DescriptionError: the YAML is not readable, or there is no such file.
    """
    if not is_yaml(file):
        return None
    content = plain(read_text(file), file.name)
    reference = content.get("urdf") if isinstance(content, dict) else None
    return find(reference, beside=file.parent) if isinstance(reference, str) else None


def write_text(path: str | Path, text: str) -> None:
    """Write a whole file in UTF-8; see `write_bytes`. What UTF-8 cannot encode (parts of file names
    in another encoding) is escaped."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a whole file atomically: after an error the old one is unchanged.

    Args:
        path: of the file; a symbolic link is followed.
        content: of the file.

    Raises:
        InputError: it cannot be written.
    """
    try:
        _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        name = shortened(str(path)) or "an empty name"
        words = f"{name}: cannot be written ({error.strerror or error})"
        raise InputError(words, name=str(path)) from None


class CsvWriter(Protocol):
    """What `csv.writer` returns"""

    def writerow(self, row: Iterable[Any], /) -> object:
        """Write one row."""


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets execute a cell that begins with one of these"""


def csv_writer(file: TextIO, names: Iterable[str]) -> CsvWriter:
    """A writer of rows of numbers, below a row of names that spreadsheets do not execute.

    Args:
        file: the CSV file, open for writing with `newline=""`.
        names: of the columns; an apostrophe is put before one that looks like a formula.
    """
    writer = csv.writer(file)
    writer.writerow([f"'{name}" if name.startswith(FORMULA) else name for name in names])
    return writer


def column_name(cell: str) -> str:
    """The name of a column, without the apostrophe that `csv_writer` puts before a formula."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def write_table(path: str | Path, columns: Iterable[tuple[str, Floats]]) -> None:
    """Write a CSV file: a row of names, then rows of numbers, with empty cells for nan and inf.

    Args:
        path: of the file.
        columns: (name, numbers (m,)) of each column.

    Raises:
        InputError: it cannot be written.
    """
    with io.StringIO(newline="") as file:
        names, values = zip(*columns, strict=True)
        writer = csv_writer(file, names)
        for row in zip(*(each.tolist() for each in values), strict=True):
            writer.writerow([x if math.isfinite(x) else "" for x in row])
        write_text(path, file.getvalue())


def check_writable(folder: Path) -> None:
    """Check, before a long computation, that a folder can be written to, or created.

    Raises:
        InputError: it cannot.
    """
    there = next(each for each in (folder, *folder.absolute().parents) if os.path.lexists(each))
    if not there.is_dir():
        raise wrong(InputError, "output", str(folder), f"a folder ({there} is not one)")
    if not os.access(there, os.W_OK | os.X_OK):
        raise wrong(InputError, "output", str(folder), "a writable folder")


def writable(folder: Path) -> None:
    """Create a folder if it is missing.

    Raises:
        InputError: it cannot be created or written to.
    """
    check_writable(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise wrong(InputError, "output", str(folder), f"a folder ({error.strerror})") from None


def _replace(target: Path, content: bytes) -> None:
    if target.exists() and not target.is_file():  # a terminal, a pipe
        target.write_bytes(content)
        return
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        file = beside.open("xb")
    except PermissionError:  # the folder may be read-only while the file is not
        target.write_bytes(content)
        return
    try:
        with file:
            if target.exists():
                os.chmod(beside, target.stat().st_mode)
            file.write(content)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
