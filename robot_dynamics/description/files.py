# SPDX-License-Identifier: Apache-2.0
"""Files: where a description is (a path, or package://name/path by the ament index), and writing
whole files."""

from __future__ import annotations

import csv
import io
import math
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..errors import DescriptionError, InputError, wrong
from ..scalar import Floats
from .known import known_robot

MOST_BYTES = 10_000_000
"""Of a description: what is larger is refused unread"""

LONGEST_PATH = 4096
"""Characters"""

LONGEST = 120
"""Characters of a reference that a message repeats"""


def find(reference: str, beside: Path | None = None) -> Path:
    """The existing file that a path or a package:// URL names.

    Args:
        reference: the path (relative to the working directory, or to the folder `beside`), or
            `package://name/path/in/share` or `file://path`; without `beside`, the name of a known
            robot, where there is no file of that name.

    Raises:
        DescriptionError: there is no such package or file.
    """
    if reference.startswith("package://"):
        package, _, inner = reference.removeprefix("package://").partition("/")
        path = _share(package, reference) / inner
    else:
        path = _home_expanded(Path(reference.removeprefix("file://")), reference)
        if beside is not None and not path.is_absolute():
            path = beside / path
    try:
        if path.is_file():
            return path
        kind = " (it is a folder)" if path.is_dir() else ""
    except (OSError, ValueError):  # too long for a name, or a byte that no name has
        kind = " (it is not a path)"
    if beside is None and not kind and (robot := known_robot(reference)) is not None:
        return robot
    raise DescriptionError(
        f"{shortened(reference) or 'an empty name'}: no such file{kind}",
        name=reference,
        value=str(path),
        expected="an existing file",
    )


def _home_expanded(path: Path, reference: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:  # ~somebody who is not known here
        raise DescriptionError(
            f"{shortened(reference)}: no such file ({error})", name=reference
        ) from None


def shortened(reference: str) -> str:
    """The reference in one line, shortened."""
    line = " ".join(reference.split())
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        DescriptionError: it cannot be read, or is not text.
    """
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise wrong(DescriptionError, f"{path.name}: bytes", size, f"at most {MOST_BYTES}")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        words = f"not a text file ({error.reason})"
    except OSError as error:
        words = f"it can't be read ({error.strerror})"
    raise DescriptionError(f"{path.name}: {words}", name=str(path))


def _share(package: str, reference: str) -> Path:
    """share/<package> of the first prefix that has it, as ament_index does it."""
    if not package or package in (".", "..") or os.sep in package:
        raise DescriptionError(f"{reference}: it names no package", name=reference)
    # what pip installs goes to the environment's own share
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    for prefix in filter(None, prefixes):
        share = Path(prefix) / "share" / package
        if share.is_dir():
            return share
    # a checkout that was never installed finds at least itself
    own = Path(__file__).resolve().parents[2]
    if package == "robot_dynamics" and (own / "package.xml").is_file():
        return own
    raise DescriptionError(
        f"{reference}: package {package!r} was not found in AMENT_PREFIX_PATH; "
        "source the workspace's setup file",
        name=reference,
        value=package,
        expected="an installed ROS package",
    )


def write_text(path: str | Path, text: str) -> None:
    """Write a whole file; see `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a whole file atomically: on an error the old one is unchanged.

    Raises:
        InputError: it cannot be written.
    """
    try:
        _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        words = f"{shortened(str(path))}: it can't be written ({error.strerror or error})"
        raise InputError(words, name=str(path)) from None


def write_table(path: str | Path, columns: Iterable[tuple[str, Floats]]) -> None:
    """Write a CSV: the columns' names, then their numbers (m,) row by row; nan is an empty cell.

    Raises:
        InputError: it cannot be written.
    """
    with io.StringIO(newline="") as file:
        writer = csv.writer(file)
        names, values = zip(*columns, strict=True)
        writer.writerow(names)
        for row in zip(*(each.tolist() for each in values), strict=True):
            writer.writerow([x if math.isfinite(x) else "" for x in row])
        write_text(path, file.getvalue())


def writable(folder: Path) -> None:
    """Create a folder if it is missing.

    Raises:
        InputError: it cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise wrong(InputError, "output", str(folder), f"a folder ({error.strerror})") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise wrong(InputError, "output", str(folder), "a folder that may be written")


def _replace(target: Path, content: bytes) -> None:
    if target.exists() and not target.is_file():  # a terminal, a pipe
        target.write_bytes(content)
        return
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except PermissionError:  # the folder is closed, the file may be open
        target.write_bytes(content)
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, target.stat().st_mode if target.exists() else 0o666 & ~mask)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
