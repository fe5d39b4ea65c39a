# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: numbers, arrays of numbers, flags."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError, wrong
from .scalar import Floats


def as_floats(name: str, x: ArrayLike) -> Floats:
    """The argument x as a plain float64 array.

    Args:
        name: the argument's name, for messages.
        x: the argument.

    Raises:
        InputError: x does not consist of real numbers, or has masked entries.
    """
    if type(x) is not np.ndarray and _has_mask(x):
        expected = "plain numbers: fill masked entries, or leave their rows out"
        raise wrong(InputError, name, "masked entries", expected)
    try:
        array = np.asarray(x)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu" or (array is not x and _has_truth(x)):
        found: Any = x.tolist() if isinstance(x, np.ndarray) else x
        if array.dtype.kind in "fiu":
            found = "True or False among numbers"
        raise wrong(InputError, name, found, "real numbers")
    if array.ndim == 0:
        return array.astype(float)
    array = np.ascontiguousarray(array, dtype=float)
    return array if array.flags.aligned else array.copy()


def _has_truth(x: Any) -> bool:
    """Does x contain a bool? NumPy would convert a bool among numbers to a number."""
    if isinstance(x, (list, tuple)):
        return not _PLAIN.issuperset(map(type, x)) and any(map(_has_truth, x))
    return x.dtype.kind == "b" if isinstance(x, np.ndarray) else isinstance(x, (bool, np.bool_))


def _has_mask(x: Any) -> bool:
    """Is an entry of x masked? NumPy would use the number under the mask."""
    if isinstance(x, (list, tuple)):
        return not _PLAIN.issuperset(map(type, x)) and any(map(_has_mask, x))
    # only who has imported numpy.ma, which takes a while, can have masked it
    return "numpy.ma" in sys.modules and bool(np.ma.is_masked(x))


_PLAIN = {float, int, np.float64}


def vectors(name: str, x: ArrayLike, size: int, what: Iterable[str] = ()) -> Floats:
    """The argument x as vectors (…, size).

    Args:
        name: the argument's name, for messages.
        x: the argument.
        size: the length of each vector.
        what: names of its entries, for messages.

    Raises:
        InputError: x does not consist of real numbers, or has another last axis.
    """
    found = as_floats(name, x)
    if found.ndim == 0 or found.shape[-1] != size:
        entries = f": {', '.join(what)}" if what else ""
        raise wrong(InputError, name, found.shape, f"shape (…, {size}){entries}")
    return found


def number(name: str, value: Any, least: float = -np.inf) -> float:
    """A finite number, at least `least`.

    Raises:
        InputError: the value is anything else.
    """
    try:
        found = as_floats(name, value)
    except InputError:
        found = np.asarray(np.nan)
    if found.ndim or not np.isfinite(found) or found < least:
        expected = "a finite number" + (f", at least {least:g}" if np.isfinite(least) else "")
        raise wrong(InputError, name, value, expected)
    return float(found)


def frequency(name: str, value: float | None) -> float | None:
    """A positive, finite frequency in Hz, or None.

    Raises:
        InputError: the value is anything else.
    """
    if value is not None and not (np.isfinite(value) and value > 0):
        raise wrong(InputError, name, np.asarray(value).tolist(), "a frequency in Hz")
    return value


def finite(name: str, value: ArrayLike, *shape: int) -> Floats:
    """An array of finite numbers of the given shape.

    Raises:
        InputError: the value is anything else.
    """
    found = as_floats(name, value)
    if found.shape != shape:
        raise wrong(InputError, name, found.shape, f"shape {shape}")
    if not np.isfinite(found).all():
        raise wrong(InputError, name, found.tolist(), "finite numbers")
    return found


def flag(name: str, value: Any) -> bool:
    """The value as a bool.

    Raises:
        InputError: neither True nor False.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise wrong(InputError, name, value, "True or False")
    return bool(value)
