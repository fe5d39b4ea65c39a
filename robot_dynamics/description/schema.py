# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of our YAML, for editors and `check`, made from the readers' own tables.

Draft 7, which the YAML servers of editors know. What it refuses is refused by `rd.load`; what needs
to know the robot (names, loops that close) is left to that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import shown
from ..mechanism import JOINT_TYPES, LOOP_TYPES
from .compound import PARTS
from .fields import FRICTION_KEYS, INERTIA_KEYS, LARGEST, LIMIT_KEYS, LONGEST_NAME
from .yaml_file import (
    BODY_KEYS,
    COMMON_KEYS,
    DH_CONVENTIONS,
    JOINT_KEYS,
    LINK_KEYS,
    ROTOR_KEYS,
    TREE_KEYS,
    URDF_KEYS,
)

Schema = dict[str, Any]

FILE = Path(__file__).with_name("description.schema.json")
"""The same as a file: `python -m robot_dynamics.description.schema` writes it anew"""

_DECIMAL = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
_PI = r"[-+]?\s*([0-9.]+\s*\*\s*)?pi\s*(/\s*[0-9.]+)?"


def _text(words: str = "") -> Schema:
    return _said({"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}, words)


def _number(words: str = "", *, least: float | None = None) -> Schema:
    """Decimal, or a multiple of pi."""
    size: Schema = {"type": "number", "minimum": -LARGEST if least is None else least}
    text: Schema = {"type": "string", "pattern": rf"^\s*({_DECIMAL}|{_PI})\s*$"}
    return _said({"anyOf": [size | {"maximum": LARGEST}, text]}, words)


def _quantity(words: str = "") -> Schema:
    """A number, or an expression in the description's symbols."""
    number: Schema = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
    return _said({"anyOf": [number, {"type": "string", "minLength": 1}]}, words)


def _limit(words: str) -> Schema:
    """Any number, infinite ones too: they are none."""
    return _said({"type": ["number", "string"]}, words)


def _three(words: str, entry: Callable[[], Schema] = _number) -> Schema:
    numbers = {"type": "array", "items": entry(), "minItems": 3, "maxItems": 3}
    return _said({"anyOf": [numbers, {"type": "string"}]}, words)


def _list(item: Schema, words: str) -> Schema:
    return _said({"type": ["array", "null"], "items": item}, words)


def _by_name(value: Schema, words: str) -> Schema:
    return _said({"type": ["object", "null"], "additionalProperties": value}, words)


def _object(
    keys: Iterable[str], known: Mapping[str, Schema], words: str = "", **more: Any
) -> Schema:
    """These keys and no others, nothing for none of them."""
    properties = {key: known[key] for key in keys}
    found = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
    return _said(found | more, words)


def _said(schema: Schema, words: str) -> Schema:
    return schema | ({"description": words} if words else {})


def schema() -> Schema:
    """Of a Denavit–Hartenberg tree, or of extras beside a URDF."""
    pose = _object(
        ("xyz", "rpy"),
        {"xyz": _three("m"), "rpy": _three("rad: roll, pitch, yaw, as in URDF")},
    )
    inertia = _object(
        INERTIA_KEYS,
        {key: _quantity("kg m²") for key in INERTIA_KEYS},
        "kg m², about the centre of mass; ixy is -∫ x y dm, as in URDF",
    )
    body = {
        "mass": _quantity("kg"),
        "center_of_mass": _three("m, in the body's own frame", _quantity),
        "inertia": inertia,
    }
    hump = _object(
        ("torque", "rate"),
        {"torque": _number("N·m or N"), "rate": _number("rad/s or m/s")},
        "torque·exp(-(qd/rate)²)·sign(qd), added near rest",
    )
    friction = _object(
        FRICTION_KEYS,
        {
            "viscous": _quantity("N·m·s/rad or N·s/m"),
            "coulomb": _quantity("N·m or N"),
            "offset": _quantity("N·m or N, at every rate and at rest"),
            "coulomb_negative": _quantity("N·m or N, takes its place at negative rates"),
            "stribeck": hump,
        },
    )
    limits = _object(
        LIMIT_KEYS,
        {
            "lower": _limit("rad or m"),
            "upper": _limit("rad or m"),
            "velocity": _limit("rad/s or m/s"),
            "effort": _limit("N·m or N"),
        },
    )
    parts = sorted({part for each in PARTS.values() for part in (*each, "rx", "ry", "rz")})
    ratio = {
        "anyOf": [
            _quantity(),
            {"type": "object", "additionalProperties": _number()},
            {"type": "null"},
        ]
    }
    rotor = _object(
        ROTOR_KEYS,
        body
        | {
            "mount": _text("the link that carries the motor; default: the joint's parent"),
            "origin": _said(pose, "the motor's frame in the mount's; it spins about z"),
            "gear_ratio": _said(ratio, "rotor rate / joint rate; of several joints by name"),
        },
        "the motor's rotor; inertia {izz} alone is fine",
    )
    types = (*JOINT_TYPES, *PARTS)
    axes = {"type": "string", "pattern": "^[xyz]{2,3}$"}
    joint = _object(
        JOINT_KEYS,
        {
            "name": _text("needed, unless it is fixed"),
            "type": {"enum": list(types)},
            "axes": _said(axes, "of a universal, spherical or floating joint, from the parent on"),
            "limits": {"type": ["object", "null"]},
        },
        required=["type"],
        type="object",
    )
    link = _object(
        LINK_KEYS,
        body
        | {
            "name": _text(),
            "parent": _text("default: the link before; the first: base"),
            "origin": _said(pose, "before the link's DH transform"),
            "joint": joint,
            "theta": _quantity("rad; the joint's variable is added to it, if it turns"),
            "d": _quantity("m; the joint's variable is added to it, if it slides"),
            "a": _quantity("m"),
            "alpha": _quantity("rad"),
            "friction": {"type": ["object", "null"]},
            "rotor": rotor,
        },
        required=["name", "joint"],
        type="object",
        **_when(
            {"joint": {"properties": {"type": {"enum": list(PARTS)}}}},
            then={
                "friction": _object(parts, dict.fromkeys(parts, friction), "by part"),
                "joint": {
                    "properties": {
                        "limits": _object(parts, dict.fromkeys(parts, limits), "by part")
                    }
                },
                "rotor": {"type": "null"},
            },
            otherwise={"friction": friction, "joint": {"properties": {"limits": limits}}},
        ),
    )
    end = _object(
        ("link", "xyz", "rpy"),
        {"link": _text(), "xyz": _three("m"), "rpy": _three("rad")},
        required=["link"],
        type="object",
    )
    loop = _object(
        ("name", "type", "predecessor", "successor"),
        {
            "name": _text(),
            "type": {"enum": list(LOOP_TYPES)},
            "predecessor": _said(end, "a frame on a link"),
            "successor": _said(end, "a frame on another link"),
        },
        required=["type", "predecessor", "successor"],
        type="object",
    )
    common = {
        "robot": _text("default: the file's name"),
        "gravity": _three("m/s², in the base frame; default: [0, 0, -9.81]", _quantity),
        "rotors": _by_name(rotor, "motors by the name of their joint, or by one of their own"),
        "loops": _list(loop, "joints that close the tree"),
        "actuated": _list(_text(), "joints with a motor; default: all"),
        "sensed": _list(_text(), "passive joints with a sensor"),
        "platform": _said({"type": ["string", "null"]}, "the link that is the moving platform"),
        "home": _by_name(_number("rad or m"), "a configuration in which the loops are closed"),
        "near": _by_name(
            {
                "anyOf": [
                    _number("of a joint: rad or m"),
                    _said(pose, "of a link, in the base frame"),
                ]
            },
            "about where joints or links are in the assembly mode that is meant",
        ),
        "locked": _by_name(_number("rad or m"), "joints held fixed at this position"),
    }
    common["base_motion"] = _said(
        {"type": ["string", "null"]}, "the floating joint that something else moves"
    )
    assert set(common) == set(COMMON_KEYS)
    several = {"enum": [*PARTS, "fixed"]}
    retyped = _object(("type", "axes"), {"type": several, "axes": axes}, type="object")
    tree = common | {
        "dh_convention": _said(
            {"enum": list(DH_CONVENTIONS)},
            "standard: Rz(theta) Tz(d) Tx(a) Rx(alpha); modified: Rx(alpha) Tx(a) Rz(theta) Tz(d)",
        ),
        "links": _list(link, "parents first or not"),
        "symbols": _by_name(_number(), "names for numbers, to be used in expressions"),
    }
    beside = common | {
        "urdf": _said({"type": "string", "minLength": 1}, "beside this file, or package://…"),
        "joints": _by_name({"anyOf": [several, retyped]}, "what the URDF writes as one joint"),
        "friction": _by_name(friction, "by joint: in place of <dynamics>"),
        "inertials": _by_name(
            _object(BODY_KEYS, body), "by link: in place of the URDF's <inertial>"
        ),
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A robot of robot_dynamics",
        "description": "Angles in rad, lengths in m, kg, kg m²",
        "type": "object",
        "if": {"required": ["urdf"]},
        "then": _object(URDF_KEYS, beside),
        "else": _object(TREE_KEYS, tree),
    }


def _when(condition: Schema, then: Schema, otherwise: Schema) -> Schema:
    return {
        "if": {"properties": condition},
        "then": {"properties": then},
        "else": {"properties": otherwise},
    }


def text() -> str:
    """What stands in `FILE`."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def mistakes(content: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """(path, words) of everything in a description's values that the schema refuses.

    Empty also where jsonschema is not installed: `rd.load` refuses the same, one by one.
    """
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        return []
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
