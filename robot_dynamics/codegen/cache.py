# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels on disk, in the user's own cache directory.

A file's name contains the hash of everything that the kernel depends on. The file ends with a line
of metadata and the hash of its content: a damaged file is detected and built again. Files are
created by one atomic rename, and two processes may build at once. Nothing is read from a place
where another user can write, and a file is removed only if its name and last lines identify it as
part of this cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import InputError, counted, wrong

VARIABLE = "ROBOT_DYNAMICS_CACHE"
"""The environment variable that sets another directory"""

MOST_BYTES = 500_000_000
"""Largest size of the cache in bytes, which it may exceed by a hundredth; the least recently used
files are removed first"""

LINKS = 40
"""Largest number of symbolic links on the path to the cache; more are taken as a cycle"""

_PREFIX = "robot_dynamics-"
_NAME = re.compile(_PREFIX + r"[0-9a-f]{64}\.(so|py)")
_NEW = re.compile(r"\." + _NAME.pattern + r"\.\w+")
_HEX = hashlib.sha256().digest_size * 2


class CacheWarning(UserWarning):
    """The cache cannot be used, or a file in it was damaged."""


@dataclass(frozen=True)
class Entry:
    """A file of the cache."""

    path: Path
    about: dict[str, Any]
    """Its metadata: what, robot, operations, compiler, made (seconds since 1970)"""
    size: int
    """bytes"""


def directory() -> Path:
    """The directory of the cache: $ROBOT_DYNAMICS_CACHE, or `robot_dynamics` in the system's cache
    directory ($XDG_CACHE_HOME, ~/.cache, ~/Library/Caches, %LOCALAPPDATA%). It need not exist.

    Raises:
        InputError: the variable refers to the home of an unknown user.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        place = os.path.expanduser(chosen)
        if place.startswith("~"):
            raise wrong(InputError, VARIABLE, chosen, "a directory")
        return Path(place).absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("robot_dynamics", appauthor=False)).absolute()


SHOWN = 20
"""Largest number of kernels in the text of `listing`"""


def entries() -> list[Entry]:
    """All files of the cache, newest first; damaged files have an empty `about`."""
    found = []
    for path, status in _files():
        content = _read(path)
        about = _about(content) if content is not None else None
        found.append(Entry(path, about or {}, status.st_size))
    return sorted(found, key=lambda entry: -entry.about.get("made", 0.0))


def listing() -> dict[str, Any]:
    """The cache's content: {"directory", "entries": [{"file", "bytes", "what", …}, …], "text"}."""
    found = entries()
    lines = [f"{directory()}: {len(found)} kernels, {sum(e.size for e in found) / 1e6:.1f} MB"]
    for entry in found[:SHOWN]:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.about.get("made", 0)))
        what = json.dumps(entry.about.get("what", "damaged"))[1:-1]
        robot = json.dumps(entry.about.get("robot", ""))[1:-1]
        count = entry.about.get("operations", "")
        lines.append(f"{made}  {entry.size / 1e3:8.1f} kB  {count:>8}  {what}  {robot}".rstrip())
    if len(found) > SHOWN:
        lines.append(f"… and {len(found) - SHOWN} older ones (all of them with --json)")
    return {
        "directory": str(directory()),
        "entries": [{"file": e.path.name, "bytes": e.size, **e.about} for e in found],
        "text": "\n".join(lines),
    }


def clear() -> dict[str, Any]:
    """Remove all kernels, and temporary files that killed processes left behind.

    Other files remain, and so do damaged ones, as it is unknown who made them.

    Returns:
        {"directory", "removed" (number of files), "text"}

    Raises:
        InputError: a file cannot be removed.
    """
    files = [path for path, _ in _files() if _is_ours(path)]
    files += [path for path, _ in _files(_NEW)]
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", name="cache", value=str(path)) from None
    words = f"{directory()}: {counted(len(files), 'file')} removed"
    return {"directory": str(directory()), "removed": len(files), "text": words}


def fetch(key: str, suffix: str) -> tuple[Path, dict[str, Any]] | None:
    """(the file for a key, its metadata); None if there is no intact file.

    Args:
        key: the hash of everything that the kernel depends on.
        suffix: .so or .py.
    """
    place = _usable(create=False)
    if place is None:
        return None
    path = place / (_PREFIX + key + suffix)
    content = _read(path)
    if content is None:
        return None
    about = _about(content)
    if about is None:
        warnings.warn(f"{path}: damaged; rebuilding it", CacheWarning, stacklevel=2)
        return None
    with suppress(OSError):
        os.utime(path)  # records the last use, which not every file system does
    return path, about


def store(key: str, suffix: str, payload: bytes, about: dict[str, Any]) -> Path:
    """Write a file for a key and return its path. If the cache cannot be used, the file goes to a
    directory that lasts as long as the process, with a warning.

    Args:
        key: the hash of everything that the kernel depends on.
        suffix: .so or .py.
        payload: the kernel.
        about: its metadata.
    """
    about = {**about, "made": time.time()}
    content = payload + b"\n#" + json.dumps(about).encode()
    content += b"\n#" + hashlib.sha256(content).hexdigest().encode()
    place = _usable(create=True)
    if place is not None:
        try:
            path = _written(place, _PREFIX + key + suffix, content)
            _growth.add(path, len(content))
            return path
        except OSError as error:
            _warn_once(f"the cache {place} cannot be written ({error}): nothing is cached")
    return _written(Path(_scratch().name), _PREFIX + key + suffix, content)


def payload(path: Path) -> bytes:
    """The kernel in a file, without the lines of metadata."""
    return path.read_bytes().rsplit(b"\n#", 2)[0]


def _written(place: Path, name: str, content: bytes) -> Path:
    handle, temporary = tempfile.mkstemp(dir=place, prefix=f".{name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, place / name)
    except BaseException:
        os.unlink(temporary)
        raise
    return place / name


class _Growth:
    """The size of what this process has stored since it last scanned the cache, as scanning
    thousands of files takes time."""

    def __init__(self) -> None:
        self.size = MOST_BYTES
        """bytes; large at first, to scan the cache after the first file"""

    def add(self, path: Path, size: int) -> None:
        """Count a new file, and remove old ones if enough has been stored."""
        self.size += size
        if self.size > MOST_BYTES // 100:
            self.size = 0
            _make_room(path)


_growth = _Growth()


def _make_room(newest: Path) -> None:
    """Remove the least recently used files until the rest is at most MOST_BYTES."""
    files = [(status.st_mtime_ns, status.st_size, path) for path, status in _files()]
    excess = sum(size for _, size, _ in files) - MOST_BYTES
    for _, size, path in sorted(files):
        if excess <= 0:
            return
        if path != newest and _is_ours(path):
            path.unlink(missing_ok=True)  # processes that have loaded it are not affected
            excess -= size


def _read(path: Path) -> bytes | None:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or not _is_own(status):
            return None
        return path.read_bytes()
    except OSError:
        return None


def _about(content: bytes) -> dict[str, Any] | None:
    """A file's metadata; None if the file is damaged."""
    body, mark, digest = content[: -_HEX - 2], content[-_HEX - 2 : -_HEX], content[-_HEX:]
    if mark != b"\n#" or hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    try:
        about = json.loads(body.rsplit(b"\n#", 1)[1])
    except (IndexError, ValueError):
        return None
    return about if isinstance(about, dict) else None


def _is_ours(path: Path) -> bool:
    """Does the file end with valid metadata, as this module writes it?"""
    content = _read(path)
    return content is not None and _about(content) is not None


def _files(name: re.Pattern[str] = _NAME) -> list[tuple[Path, os.stat_result]]:
    """The regular files in the cache's directory whose names match this pattern."""
    found = []
    try:
        with os.scandir(directory()) as inside:
            for each in inside:
                if name.fullmatch(each.name) and each.is_file(follow_symlinks=False):
                    found.append((Path(each.path), each.stat(follow_symlinks=False)))
    except OSError:  # the directory does not exist
        return []
    return found


def _usable(create: bool) -> Path | None:
    """The directory of the cache if it can be trusted; otherwise None, with one warning that says
    why."""
    try:
        place = directory()
    except InputError as error:
        _warn_once(f"the cache is not used: {error}")
        return None
    try:
        is_folder = place.is_dir() or not place.exists()
        complaint = _complaint(place) if is_folder else "it is not a folder"
        if create and not complaint:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            complaint = _complaint(place)
        if not complaint and not place.is_dir():
            return None
    except OSError as error:
        if not create:
            return None
        complaint = str(error)
    if complaint:
        _warn_once(f"the cache {place} is not used: {complaint}")
        return None
    return place


def _complaint(place: Path) -> str | None:
    """Why another user could write there; None if no other user can."""
    if not hasattr(os, "geteuid"):
        return None
    way = _way(place)
    for path, status in way:
        trusted = status.st_uid in (0, os.geteuid())
        if stat.S_ISLNK(status.st_mode):
            safe = trusted
        elif path == way[-1][0] and place.exists():
            if not _is_own(status):
                return "it belongs to another user or others can write to it (chmod 700 it)"
            continue
        else:
            sticky = bool(status.st_mode & stat.S_ISVTX)
            safe = trusted and (sticky or not _others_write(status))
        if not safe:
            return f"others can replace it through {path}"
    return None


def _way(place: Path) -> list[tuple[Path, os.stat_result]]:
    """Every directory and symbolic link on the path to this place, from the root on, as far as it
    exists. A user who can write to one of them can put another directory in its place."""
    here, rest, links = Path(place.anchor), list(place.parts[1:]), 0
    way = [(here, here.lstat())]
    while rest:
        name = rest.pop(0)
        if name == "..":
            here = here.parent
            way.append((here, here.lstat()))
            continue
        path = here / name
        try:
            status = path.lstat()
        except FileNotFoundError:
            return way
        way.append((path, status))
        if not stat.S_ISLNK(status.st_mode):
            here = path
            continue
        links += 1
        if links > LINKS:
            raise OSError(f"too many symbolic links in the path {place}")
        target = Path(os.readlink(path))
        rest = [*target.parts[1:], *rest] if target.is_absolute() else [*target.parts, *rest]
        here = Path(target.anchor) if target.is_absolute() else here
    return way


def _is_own(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not _others_write(status)


def _others_write(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private_group(status.st_gid)


@lru_cache
def _is_private_group(group: int) -> bool:
    """Is this the private group that many systems create for each user?"""
    try:
        import grp
        import pwd

        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except (ImportError, KeyError):
        return False
    return members.gr_name == user.pw_name and set(members.gr_mem) <= {user.pw_name}


@lru_cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    # on some systems a loaded library cannot be removed
    return tempfile.TemporaryDirectory(prefix="robot_dynamics-", ignore_cleanup_errors=True)


@lru_cache
def _warn_once(message: str) -> None:
    warnings.warn(message, CacheWarning, stacklevel=4)
