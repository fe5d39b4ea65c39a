# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of the package's YAML, for editors and `check`, generated from the readers'
tables.

It follows draft 7, which YAML language servers support. `rd.load` refuses whatever the schema
refuses; checks that need the robot (names, loops that close) are left to `rd.load`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import shown
from .records import (
    BESIDE,
    BODY,
    FRICTION,
    INERTIA,
    LIMITS,
    NUMBER,
    POSE,
    QUANTITY,
    ROTOR,
    TREE,
    Schema,
    three,
)

FILE = Path(__file__).with_name("description.schema.json")
"""The schema as a file, which `python -m robot_dynamics.description.schema` regenerates"""


_SHARED: dict[str, Schema] = {
    "rotor": ROTOR.schema(),
    "friction": FRICTION.schema(),
    "limits": LIMITS.schema(),
    "body": BODY.schema(),
    "inertia": INERTIA.schema(),
    "pose": POSE.schema(),
    "three_numbers": three(NUMBER, "").schema,
    "three_quantities": three(QUANTITY, "").schema,
    "number": NUMBER.schema,
    "quantity": QUANTITY.schema,
}
"""Schemas that stand in many places; later ones are parts of earlier ones"""


def schema() -> Schema:
    """The schema of a Denavit–Hartenberg tree, or of additions to a URDF."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A robot of robot_dynamics",
        "description": "Angles in rad, lengths in m, kg, kg m²",
        "type": "object",
        "if": {"required": ["urdf"]},
        "then": _referring(BESIDE.schema()),
        "else": _referring(TREE.schema()),
        "definitions": {
            name: _parts_referring(_undescribed(each)) for name, each in _SHARED.items()
        },
    }


def _referring(part: Any) -> Any:
    """The same schema, which refers to `definitions` instead of repeating them."""
    if not isinstance(part, dict):
        return part
    words = {"description": part["description"]} if isinstance(part.get("description"), str) else {}
    for name, shared in _SHARED.items():
        if _undescribed(part) == _undescribed(shared):
            reference = {"$ref": f"#/definitions/{name}"}
            # draft 7 ignores what stands beside a reference
            return {"allOf": [reference], **words} if words else reference
    return _parts_referring(part)


def _parts_referring(part: Schema) -> Schema:
    return {
        key: [_referring(each) for each in value] if isinstance(value, list) else _referring(value)
        for key, value in part.items()
    }


def _undescribed(part: Schema) -> Schema:
    return {key: value for key, value in part.items() if key != "description"}


def text() -> str:
    """The contents of `FILE`."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def mistakes(content: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """(path, message) of everything in a description that the schema refuses.

    Args:
        content: the description as plain values.
    """
    from jsonschema import Draft7Validator

    found = []
    for error in Draft7Validator(schema()).iter_errors(content):
        path = tuple(error.absolute_path)
        key = _unknown_key(error)
        words = f"unknown key {shown(key)}" if key else f"found {shown(error.instance)}"
        found.append(((*path, key) if key else path, words))
    return sorted(set(found), key=str)


def _unknown_key(error: Any) -> str | None:
    if error.validator != "additionalProperties":
        return None
    return next((key for key in error.instance if key not in error.schema["properties"]), None)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
