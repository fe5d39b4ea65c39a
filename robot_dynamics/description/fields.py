# SPDX-License-Identifier: Apache-2.0
"""Readers of a description's values, whose errors name the file, the key and the value."""

from __future__ import annotations

import difflib
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import DescriptionError, Place, callers_level, choices, shown, wrong
from ..scalar import Array, array, is_number

MOST_TURN = 4 * math.pi
"""rad: larger angles are probably in degrees"""
WORLD = "world"
"""The ground's name in SDF, and of the link that simulators treat as the ground in a URDF"""


class DescriptionWarning(UserWarning):
    """Something in a description is questionable but can be computed."""


def tolerate(complaint: DescriptionError, strict: bool) -> None:
    """Raise the error if strict; otherwise warn, attributed to the caller's line.

    Raises:
        DescriptionError: `complaint`, if strict.
    """
    if strict:
        raise complaint
    warnings.warn(str(complaint), DescriptionWarning, stacklevel=callers_level())


def in_radians(angles: Iterable[float], where: Place, strict: bool) -> None:
    """Complain about an angle that is probably in degrees.

    Raises:
        DescriptionError: there is one, if strict.
    """
    for angle in angles:
        if abs(angle) > MOST_TURN:
            expected = "at most two turns, in rad (is it in degrees?)"
            tolerate(wrong(DescriptionError, where, float(angle), expected), strict)


def unknown(what: str, name: object, known: Iterable[str], noun: str = "") -> DescriptionError:
    """The error for an unknown name; it lists the known ones, the most similar first."""
    names = list(known)
    near = difflib.get_close_matches(str(name)[:LONGEST_NAME], names, n=3)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    expected = choices(names)
    return DescriptionError(
        f"{what}: {noun or 'found'} {shown(name)}, expected {expected}{hint}",
        name=what,
        value=name,
        expected=expected,
    )


LARGEST = 1e30
"""Larger numbers overflow when a few of them are multiplied; no robot has such numbers"""

LONGEST_NAME = 200
"""Largest number of characters of a name"""

_PI = re.compile(r"\s*([+-]?)\s*(?:([\d.]+)\s*\*\s*)?pi\s*(?:/\s*([\d.]+))?\s*")
"""Exact angles such as -pi/2 and 3*pi/4, instead of 1.5708"""


def number(value: Any, where: str) -> float:
    """A finite number; strings (such as YAML's 1e-3) and multiples of pi are accepted.

    Raises:
        DescriptionError: anything else, or a number larger than LARGEST.
    """
    result: float | None = None
    if is_number(value):
        result = float(value)
    elif isinstance(value, str):
        try:
            if match := _PI.fullmatch(value):
                sign, times, over = match.groups()
                result = float(sign + "1") * float(times or 1) * math.pi / float(over or 1)
            else:
                result = float(value)
        except (ValueError, ZeroDivisionError):
            result = None
    if result is None or not math.isfinite(result):
        raise wrong(DescriptionError, where, value, "a finite number")
    if abs(result) > LARGEST:
        raise wrong(DescriptionError, where, value, f"a number of at most {LARGEST:g}")
    return result


def numbers(value: Any, count: int, where: str) -> Array:
    """An array of `count` finite numbers, from a list or a blank-separated text.

    Raises:
        DescriptionError: anything else.
    """
    entries = value.split() if isinstance(value, str) else value
    if not isinstance(entries, (list, tuple)) or len(entries) != count:
        raise wrong(DescriptionError, where, value, f"{count} numbers")
    return array([number(entry, Place(where) / i) for i, entry in enumerate(entries)])


def text(value: Any, where: str, longest: int = LONGEST_NAME) -> str:
    """A nonblank name of at most `longest` characters.

    Raises:
        DescriptionError: anything else.
    """
    if not isinstance(value, str) or not value.strip():
        raise wrong(DescriptionError, where, value, "a name")
    if len(value) > longest:
        raise wrong(DescriptionError, where, value, f"a name of at most {longest} characters")
    return value


def mapping(value: Any, keys: Iterable[str], where: str) -> Mapping[str, Any]:
    """A mapping with only these keys; None gives an empty one.

    Raises:
        DescriptionError: not a mapping, or another key; the message names the most similar one.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(DescriptionError, where, value, "a mapping")
    keys = tuple(keys)
    for key in value:
        if key not in keys:
            raise unknown(Place(where).at(key), key, keys, "unknown key")
    return value


def sequence(value: Any, where: str) -> list[Any]:
    """A list; None gives an empty one.

    Raises:
        DescriptionError: not a list.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(DescriptionError, where, value, "a list")
    return value
