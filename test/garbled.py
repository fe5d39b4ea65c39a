# SPDX-License-Identifier: Apache-2.0
"""ROS messages of any kind with garbage in one to three of their fields."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from random import Random
from typing import Any

NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e-300, 1e4, -1e150, 1e308, math.nan, math.inf, -math.inf]
WORDS = ["", " ", "q1", "q2", "q4", "bar3", "base", "x" * 1000, "\x1b[2J\n", "ü\u202e", "%s{}\\"]
INTEGERS = [0, 1, -1, 999_999_999, 10**9, -(2**31), 2**31 - 1, 2**32 - 1]


def garbled(rng: Random, message: Any) -> Any:
    """A copy with garbage in it."""
    message = copy.deepcopy(message)
    for _ in range(rng.randint(1, 3)):
        owner, field, kind = rng.choice(list(_places(message)))
        setattr(owner, field, _garbage(rng, kind, getattr(owner, field)))
    return message


def _places(message: Any) -> Iterator[tuple[Any, str, str]]:
    """(message, field, its type) of every field, also of the messages within."""
    for field, kind in message.get_fields_and_field_types().items():
        yield message, field, kind
        value = getattr(message, field)
        for each in value if kind.startswith("sequence<") else [value]:
            if hasattr(each, "get_fields_and_field_types"):
                yield from _places(each)


def _garbage(rng: Random, kind: str, value: Any) -> Any:
    if kind.startswith("sequence<"):
        return _sequence(rng, kind[len("sequence<") : -1], list(value))
    if kind == "double":
        return rng.choice([*NUMBERS, rng.uniform(-3.0, 3.0), *[value * rng.uniform(0.0, 3.0)] * 4])
    if kind == "string":
        return rng.choice(WORDS)
    if kind in ("int32", "uint32"):
        least, most = (-(2**31), 2**31 - 1) if kind == "int32" else (0, 2**32 - 1)
        return rng.choice([each for each in INTEGERS if least <= each <= most])
    if kind.startswith("double["):
        numbers = list(value)
        numbers[rng.randrange(len(numbers))] = rng.choice(NUMBERS)
        return numbers
    return type(value)()  # a message: an empty one


def _sequence(rng: Random, kind: str, values: list[Any]) -> list[Any]:
    how = rng.choice(["empty", "shorter", "longer", "other", "other", "order", "huge"])
    if how == "empty" or not values:
        return [] if values or not kind.startswith(("double", "string")) else [_new(rng, kind)]
    place = rng.randrange(len(values))
    if how == "shorter":
        del values[place]
    elif how == "longer":
        values.insert(place, copy.deepcopy(values[place]))
    elif how == "other":
        values[place] = _garbage(rng, kind, values[place])
    elif how == "order":
        rng.shuffle(values)
    else:
        values *= 40
    return values


def _new(rng: Random, kind: str) -> Any:
    return rng.choice(NUMBERS if kind == "double" else WORDS)
