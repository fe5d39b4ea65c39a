# SPDX-License-Identifier: Apache-2.0
"""A node's parameters as a table, in which each field of a dataclass is one row.

Declarations, checks, defaults and the manual are all made from the rows. generate_parameter_library
is not used because it has no units and needs a node to check a value.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ...errors import InputError, choices, wrong

T = TypeVar("T")


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    type: str
    """string, bool, integer, double, string_array or double_array"""
    default: Any
    """An empty array means: not set"""
    unit: str
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: float = -math.inf
    maximum: float = math.inf
    read_only: bool = False
    at_once: bool = False
    """Does a new value take effect without a new model?"""
    needed: bool = False
    """Must the array have at least one entry?"""

    @property
    def range(self) -> str:
        """The allowed values as text."""
        if self.choices:
            return ("any of " if self.type.endswith("array") else "one of ") + ", ".join(
                self.choices
            )
        if self.minimum > -math.inf:
            upper = f" to {self.maximum:g}" if self.maximum < math.inf else " or more"
            return f"{self.minimum:g}{upper}"
        return ""

    def checked(self, value: Any) -> Any:
        """The value as the settings keep it.

        Raises:
            InputError: it has another type, is not one of the choices, or is outside the range.
        """
        if not self.type.endswith("array"):
            return self._checked_one(value)
        if isinstance(value, str) or not isinstance(value, (Sequence, array)):
            kind = "strings" if self.type.startswith("string") else "numbers"
            raise wrong(InputError, self.name, value, f"a list of {kind}")
        if self.needed and not len(value):
            raise wrong(InputError, self.name, list(value), f"at least one, {self.range}")
        return tuple(self._checked_one(each) for each in value)

    def _checked_one(self, value: Any) -> Any:
        if self.choices and value not in self.choices:
            raise wrong(InputError, self.name, value, choices(self.choices))
        if self.type.startswith("string"):
            if not isinstance(value, str):
                raise wrong(InputError, self.name, value, "a string")
            return value
        if self.type == "bool":
            if not isinstance(value, bool):
                raise wrong(InputError, self.name, value, "true or false")
            return value
        whole = self.type == "integer"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise wrong(InputError, self.name, value, "a whole number" if whole else "a number")
        if not self.minimum <= value <= self.maximum:
            raise wrong(InputError, self.name, value, f"a number, {self.range}")
        return value if whole else float(value)


def _row(kind: str) -> Callable[..., Any]:
    def row(default: Any, meaning: str, *, unit: str = "", **more: Any) -> Any:
        facts = {"type": kind, "default": default, "unit": unit, "meaning": meaning, **more}
        return field(default=default, metadata=facts)

    return row


text, flag, whole = _row("string"), _row("bool"), _row("integer")
number, names, numbers = _row("double"), _row("string_array"), _row("double_array")


def rows(table: type) -> tuple[Parameter, ...]:
    """The rows of a dataclass."""
    return tuple(Parameter(each.name, **each.metadata) for each in fields(table))


def checked(table: type[T], values: Mapping[str, Any]) -> T:
    """An instance of a table with checked values.

    Args:
        table: the dataclass.
        values: by name; others have their defaults.

    Raises:
        InputError: a value that the table does not allow.
    """
    return table(
        **{row.name: row.checked(values.get(row.name, row.default)) for row in rows(table)}
    )


def markdown(parameters: Sequence[Parameter]) -> str:
    """The parameters as a Markdown table, for the manual."""
    rows = [
        "| parameter | type | default | unit | meaning | allowed |",
        "|---|---|---|---|---|---|",
    ]
    for each in parameters:
        if each.type.endswith("array"):
            default = ", ".join(map(str, each.default)) or "not set"
        elif each.type == "bool":
            default = str(each.default).lower()
        else:
            default = str(each.default) if each.default != "" else "empty"
        allowed = "; ".join(filter(None, (each.range, "set at start" if each.read_only else "")))
        cells = (f"`{each.name}`", each.type, default, each.unit, each.meaning, allowed)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
