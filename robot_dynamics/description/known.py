# SPDX-License-Identifier: Apache-2.0
"""Known robots by name, from the packages of the extra `robots`.

The wheel of example-robot-data contains its files; robot_descriptions fetches a robot's
repository on first use. The wheel takes precedence: a name means the same robot with and without a
network, and nothing is downloaded unnecessarily.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from ..errors import DescriptionError, listed, one_line

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{1,63}")
"""The form of a robot's name, which excludes paths, file extensions and dotted module names"""
WHEEL = "cmeel.prefix/share/example-robot-data/robots"
OTHER_NAMES = {
    "anymal_b": "anymal",
    "anymal_c": "anymal_c_simple",
    "so_arm100": "so100",
    "so_arm101": "so101",
    "talos": "talos_full_v2",
}
"""Names in robot_descriptions of robots that are in the wheel → their names in the wheel"""
PATHS = ("URDF_PATH", "XACRO_PATH", "MJCF_PATH")
"""Attributes of a module of robot_descriptions, of which the first one found is used"""


def known_robot(name: str) -> Path | None:
    """The file of a known robot; None if `name` cannot be a robot's name.

    Raises:
        DescriptionError: the robot is not known, or its files cannot be fetched.
    """
    if not NAME.fullmatch(name):
        return None
    carried, fetched = _carried(), _fetched()
    if found := carried.get(name):
        return found
    if name in fetched:
        return _fetch(name, fetched[name])
    if not carried and not fetched:
        words = "to load robots by name: pip install 'robot_dynamics[robots]'"
    else:
        near = get_close_matches(name, {*carried, *fetched}, n=5, cutoff=0.6)
        words = "and no known robot has that name"
        words += f"; similar ones: {listed(near)}" if near else ""
    raise DescriptionError(
        f"{name}: no such file; {words}", name=name, value=name, expected="a file, or a known robot"
    )


@lru_cache(maxsize=1)
def _carried() -> Mapping[str, Path]:
    """The files in the wheel of example-robot-data, by file name (`NAME_robot` before `NAME`) and
    by folder name."""
    roots = [root for root in (Path(entry) / WHEEL for entry in sys.path) if root.is_dir()]
    files = [file for root in roots[:1] for file in root.rglob("*.urdf")]
    files.sort(key=lambda file: (not file.stem.endswith("_robot"), file))
    found: dict[str, Path] = {}
    names = [
        (
            file.stem.removesuffix("_robot"),
            file.stem,
            file.relative_to(roots[0]).parts[0].removesuffix("_description"),
        )
        for file in files
    ]
    for of_one_kind in zip(*names, strict=True):
        for name, file in zip(of_one_kind, files, strict=True):
            found.setdefault(name, file)
    found |= {name: found[own] for name, own in OTHER_NAMES.items() if own in found}
    return {name: file for name, file in found.items() if NAME.fullmatch(name)}


@lru_cache(maxsize=1)
def _fetched() -> Mapping[str, str]:
    """The modules of robot_descriptions by robot."""
    try:
        names = importlib.import_module("robot_descriptions._descriptions").DESCRIPTIONS
    except (ImportError, AttributeError):  # not installed, or another version
        return {}
    return {module.removesuffix("_description"): module for module in names}


def _fetch(name: str, module: str) -> Path:
    try:
        # its output must not mix with ours
        with warnings.catch_warnings(), redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            found = importlib.import_module(f"robot_descriptions.{module}")
    except Exception as error:  # noqa: BLE001  git, sockets and files each raise their own
        words = one_line(error, 200) or type(error).__name__
        raise DescriptionError(
            f"{name}: robot_descriptions cannot fetch it: {words}", name=name
        ) from None
    for each in PATHS:
        path = getattr(found, each, None)
        if path is not None and Path(path).is_file():
            return Path(path)
    raise DescriptionError(f"{name}: robot_descriptions has no description file for it", name=name)
