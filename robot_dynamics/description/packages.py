# SPDX-License-Identifier: Apache-2.0
"""Finding ROS packages: the installed ones, and those whose sources lie near a folder."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ..errors import DescriptionError

MANIFEST = "package.xml"
MOST_BYTES = 100_000
"""Largest number of bytes of a manifest that are searched for its package's name"""


def share(package: str, reference: str, near: Path | None = None) -> Path:
    """The folder of a package's files.

    It is share/NAME in the first prefix that has it, as ament_index finds it. A package that is not
    installed is searched for in the folder `near` and those above it, nearest first, and up to
    three levels below each: it is the folder whose package.xml has that name, or which has no
    package.xml and is called so.

    Args:
        package: its name.
        reference: how the error refers to it.
        near: a folder; None: only installed packages are found.

    Raises:
        DescriptionError: there is no such package.
    """
    if not package or package in (".", "..") or os.sep in package:
        raise DescriptionError(f"{reference}: it names no package", name=reference)
    # packages installed by pip are in the environment's own share folder
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    for prefix in filter(None, prefixes):
        folder = Path(prefix) / "share" / package
        if os.path.isdir(folder):  # also False for a path that is too long
            return folder
    # a checkout that has not been installed can at least find itself
    own = Path(__file__).resolve().parents[2]
    if package == "robot_dynamics" and (own / MANIFEST).is_file():
        return own
    for folder in _around(near) if near else ():
        # the usual places first: looking through all folders takes longer
        manifests = (each for k in range(4) for each in sorted(folder.glob(k * "*/" + MANIFEST)))
        for each in chain((folder, folder / package), (each.parent for each in manifests)):
            if os.path.isdir(each) and (_name(each) or each.name) == package:
                return each
    places = (
        f"AMENT_PREFIX_PATH or around the folder {near.resolve().name!r}"
        if near
        else "AMENT_PREFIX_PATH"
    )
    raise DescriptionError(
        f"{reference}: package {package!r} was not found in {places}; source the workspace's setup "
        "file",
        name=reference,
        value=package,
        expected="an installed ROS package",
    )


def _around(folder: Path) -> Iterator[Path]:
    """A folder and those above it, up to but excluding the file system's root or a world-writable
    folder, in which anybody could have left a package."""
    folder = folder.resolve()
    for each in (folder, *folder.parents)[:-1]:
        if each.stat().st_mode & stat.S_IWOTH:
            return
        yield each


def _name(folder: Path) -> str:
    """The name in a package's manifest; "" if there is none."""
    if not os.path.isfile(folder / MANIFEST):  # reading a pipe might block forever
        return ""
    try:
        with open(folder / MANIFEST, encoding="utf-8", errors="replace") as file:
            said = re.search(r"<name>\s*([^<>\s]+)\s*</name>", file.read(MOST_BYTES))
    except OSError:
        return ""
    return said[1] if said else ""
