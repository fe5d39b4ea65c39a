# SPDX-License-Identifier: Apache-2.0
"""The output of commands: a record of kinds defines both how values are read and their JSON Schema.

`joints` are always the names in the order of q, qd and qdd, and `actuated` those in the order of
the torques. A number that is not finite is null in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any

Schema = dict[str, Any]
Source = str | Callable[[Any], Any]
"""A path of attributes such as `inertial.mass`, or a function of the object"""


def plain(value: Any) -> Any:
    """The value itself; lists for arrays, and Python's numbers for NumPy's."""
    return value.tolist() if hasattr(value, "tolist") else value


@dataclass(frozen=True)
class Kind:
    """One kind of value. Called with words, it returns the same kind with that description.

    A record reads each of its values from the attribute of the same name (or the source given by
    `of`) of an object, or from the key of the same name in a mapping or the keywords of `read`.
    """

    schema: Schema
    read: Callable[..., Any] = plain
    source: Source | None = None
    may_miss: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """The kinds of a record's values"""

    def __call__(self, words: str = "") -> Kind:
        return replace(self, schema=self.schema | ({"description": words} if words else {}))

    def of(self, source: Source) -> Kind:
        """The same kind, whose value an object has at this source."""
        return replace(self, source=source)

    def listed(self, words: str = "", **more: int) -> Kind:
        """A list of such values; `more` are further keywords of its schema."""
        schema = {"type": "array", "items": self.schema, **more}
        return Kind(schema, lambda values: [self.read(each) for each in plain(values)])(words)

    def by_name(self, words: str = "") -> Kind:
        """An object of such values by name, from a mapping or from a list of things with names."""

        def read(values: Any) -> dict[str, Any]:
            if not isinstance(values, Mapping):
                values = {each.name: each for each in values}
            return {str(name): self.read(each) for name, each in values.items()}

        return Kind({"type": "object", "additionalProperties": self.schema}, read)(words)

    def or_null(self) -> Kind:
        """Such a value, or null."""
        return replace(self, schema={"anyOf": [{"type": "null"}, self.schema]})

    def maybe(self) -> Kind:
        """Such a value, which may be missing: None."""
        return replace(self, may_miss=True)

    def found(self, owner: Any, name: str) -> Any:
        """The value of this name in an object or a mapping."""
        if isinstance(owner, Mapping):
            return owner.get(name) if self.may_miss else owner[name]
        source = self.source or name
        return source(owner) if callable(source) else attrgetter(source)(owner)


def record(**kinds: Kind) -> Kind:
    """An object with these values and no others."""
    schema = {
        "type": "object",
        "properties": {name: each.schema for name, each in kinds.items()},
        "required": [name for name, each in kinds.items() if not each.may_miss],
        "additionalProperties": False,
    }

    def read(owner: Any = None, **more: Any) -> dict[str, Any]:
        found = {}
        for name, kind in kinds.items():
            value = more[name] if name in more else kind.found(owner, name)
            if value is not None or not kind.may_miss:
                found[name] = None if value is None else kind.read(value)
        return found

    return Kind(schema, read, kinds=kinds)


TEXT = Kind({"type": "string"}, str)
COUNT = Kind({"type": "integer", "minimum": 0})
NUMBER = Kind({"type": "number"})
NULLABLE = Kind({"type": ["number", "null"]})
FLAG = Kind({"type": "boolean"})
ANYTHING = Kind({})
ROBOT = TEXT("its name")
JOINTS = TEXT.listed("names, in the order of q, qd and qdd")
ACTUATED = TEXT.listed("names, in the order of the torques")
MODEL = {
    "robot": ROBOT.of("mechanism.name"),
    "joints": JOINTS.of("joint_names"),
    "actuated": ACTUATED.of("actuated_names"),
}
"""The attributes of `InverseDynamics` that several outputs have"""
NOTES = TEXT.listed("remarks for the user")
FILES = TEXT.by_name("files written, by kind")
MATRIX = NUMBER.listed().listed()
TENSOR = record(
    **{
        f"i{a}{b}": NUMBER.of(itemgetter(("xyz".index(a), "xyz".index(b))))
        for a, b in ("xx", "yy", "zz", "xy", "xz", "yz")
    }
)
EACH = NULLABLE.listed("one for each joint")


@dataclass(frozen=True)
class Output:
    """What a command returns: `text` is printed, or with --json the result."""

    result: dict[str, Any]
    text: str
    exit_code: int = 0


def finite(value: Any) -> Any:
    """Plain values for JSON: lists for arrays, null for the numbers that JSON lacks (nan, inf)."""
    if isinstance(value, Mapping):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    if hasattr(value, "tolist"):  # an array, or a NumPy number
        return finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
