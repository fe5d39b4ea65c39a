# SPDX-License-Identifier: Apache-2.0
"""The format of the package's YAML: a table for each mapping defines its reader and JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import DescriptionError, Place, choices, wrong
from ..mechanism import JOINT_TYPES, LOOP_TYPES, Attachment, Friction, Inertial, Limits, Pose
from ..mechanism.bodies import inertia_matrix
from .compound import PARTS
from .fields import (
    LARGEST,
    LONGEST_NAME,
    mapping,
    number,
    numbers,
    sequence,
    text,
    tolerate,
)
from .files import LONGEST_PATH

Schema = dict[str, Any]
Reader = Callable[[Any, Place], Any]
"""(value, its place, for messages) → what it means; raises DescriptionError"""


@dataclass(frozen=True)
class Kind:
    """One kind of value."""

    read: Reader
    schema: Schema
    """The schema of values that `read` accepts, as far as a schema can express it"""

    def said(self, words: str) -> Kind:
        """The same kind with a description."""
        return replace(self, schema=self.schema | {"description": words})

    @property
    def is_nullable(self) -> bool:
        """Whether null is allowed, with the meaning of a missing value."""
        options = [self.schema, *self.schema.get("anyOf", ())]
        return any("null" in each.get("type", ()) for each in options)


@dataclass(frozen=True)
class Record:
    """A mapping with these keys and no others."""

    keys: Mapping[str, Kind]
    required: tuple[str, ...] = ()

    def read(self, value: Any, where: Place) -> dict[str, Any]:
        """The values of a mapping by key.

        Raises:
            DescriptionError: an unknown key or an invalid value.
        """
        return self.known(mapping(value, self.keys, where), where)

    def known(self, entries: Mapping[str, Any], where: Place) -> dict[str, Any]:
        """The values of these keys in a mapping that may also have others."""
        return {
            key: kind.read(entries.get(key), where / key)
            for key, kind in self.keys.items()
            if key in self.required
            or (key in entries and not (entries[key] is None and kind.is_nullable))
        }

    def schema(self, **more: Any) -> Schema:
        """The JSON Schema of such a mapping; `more` are further entries of the schema."""
        needed = {"required": list(self.required)} if self.required else {}
        return {
            "type": "object" if self.required else ["object", "null"],
            "properties": {key: kind.schema for key, kind in self.keys.items()},
            "additionalProperties": False,
            **needed,
            **more,
        }

    def kind(self, read: Reader | None = None) -> Kind:
        """This record as a value of another mapping; `read` converts the dictionary."""
        return Kind(read or self.read, self.schema())


def listed(item: Kind, words: str) -> Kind:
    """The kind of a list; null means an empty one."""

    def read(value: Any, where: Place) -> tuple[Any, ...]:
        entries = enumerate(sequence(value, where))
        return tuple(item.read(each, where / i) for i, each in entries)

    return Kind(read, {"type": ["array", "null"], "items": item.schema}).said(words)


def by_name(item: Kind, words: str) -> Kind:
    """The kind of a mapping from names to values of one kind; null means an empty one."""

    def read(value: Any, where: Place) -> dict[str, Any]:
        entries = mapping(value, value or (), where)
        return {name: item.read(each, where / name) for name, each in entries.items()}

    schema = {"type": ["object", "null"], "additionalProperties": item.schema}
    return Kind(read, schema).said(words)


def one_of(names: Sequence[str]) -> Kind:
    """The kind whose values are these words."""

    def read(value: Any, where: Place) -> str:
        if value not in names:
            raise wrong(DescriptionError, where, value, choices(names))
        return str(value)

    return Kind(read, {"enum": list(names)})


def three(item: Kind, words: str) -> Kind:
    """The kind of three numbers, in a list or a text."""
    entries = {"type": "array", "items": item.schema, "minItems": 3, "maxItems": 3}
    schema = {"anyOf": [entries, {"type": "string"}]}
    return Kind(lambda value, where: numbers(value, 3, where), schema).said(words)


_DECIMAL = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
_PI = r"[-+]?\s*([0-9.]+\s*\*\s*)?pi\s*(/\s*[0-9.]+)?"
_SIZE: Schema = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}

NUMBER = Kind(
    number, {"anyOf": [_SIZE, {"type": "string", "pattern": rf"^\s*({_DECIMAL}|{_PI})\s*$"}]}
)
"""A decimal number, or a multiple of pi"""
QUANTITY = Kind(number, {"anyOf": [_SIZE, {"type": "string", "minLength": 1}]})
"""A number, or an expression in the description's symbols, which `in_numbers` has replaced by
then"""
NAME = Kind(text, {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME})
NO_NAME = Kind(text, {"type": ["string", "null"]})
PATH = Kind(
    lambda value, where: text(value, where, LONGEST_PATH), {"type": "string", "minLength": 1}
)


def _as_written(value: Any, _where: Place) -> Any:
    """The value itself, to be read later when more is known."""
    return value


AXES = Kind(_as_written, {"type": "string", "pattern": "^[xyz]{2,3}$"}).said(
    "of a universal, spherical or floating joint, in order from the parent"
)
BY_PART = Kind(_as_written, {"type": ["object", "null"]})
"""For the whole joint, or by part if it has several; read once the joint's type is known"""


POSE = Record(
    {"xyz": three(NUMBER, "m"), "rpy": three(NUMBER, "rad: roll, pitch, yaw, as in URDF")}
)
INERTIA = Record({f"i{ab}": QUANTITY.said("kg m²") for ab in ("xx", "yy", "zz", "xy", "xz", "yz")})
BODY = Record(
    {
        "mass": QUANTITY.said("kg"),
        "center_of_mass": three(QUANTITY, "m, in the body's own frame"),
        "inertia": INERTIA.kind().said(
            "kg m², about the centre of mass; ixy is -∫ x y dm, as in URDF"
        ),
    }
)
_ORIGIN = (0.0, 0.0, 0.0)


def pose(value: Any, where: Place) -> Pose:
    """The pose from {xyz: [m], rpy: [rad]}, both optional."""
    return _posed(POSE.read(value, where))


def _posed(found: Mapping[str, Any]) -> Pose:
    return Pose.from_xyz_rpy(found.get("xyz", _ORIGIN), found.get("rpy", _ORIGIN))


def inertial(entries: Mapping[str, Any], where: Place) -> Inertial:
    """The inertial parameters from the keys mass, center_of_mass and inertia."""
    found = BODY.known(entries, where)
    tensor = dict.fromkeys(INERTIA.keys, 0.0) | found.get("inertia", {})
    return Inertial(
        found.get("mass", 0.0), found.get("center_of_mass", _ORIGIN), inertia_matrix(**tensor)
    )


_WHOLE_BODY = BODY.kind(lambda value, where: inertial(mapping(value, BODY.keys, where), where))
_HUMP = Record({"torque": NUMBER.said("N·m or N"), "rate": NUMBER.said("rad/s or m/s")})
FRICTION = Record(
    {
        "viscous": QUANTITY.said("N·m·s/rad or N·s/m"),
        "coulomb": QUANTITY.said("N·m or N"),
        "offset": QUANTITY.said("N·m or N, at every velocity and at rest"),
        "coulomb_negative": QUANTITY.said("N·m or N, in place of `coulomb` at negative velocities"),
        "stribeck": _HUMP.kind().said("torque·exp(-(qd/rate)²)·sign(qd), added near rest"),
        "stiffness": QUANTITY.said("N·m/rad or N/m, of a spring"),
        "presliding": QUANTITY.said(
            "rad or m, the displacement over which dry friction builds up again after a reversal"
        ),
        "smoothing": QUANTITY.said("rad/s or m/s, below which dry friction fades to zero"),
    }
)


def friction(value: Any, where: Place) -> Friction:
    """The friction law from {viscous, coulomb, offset, coulomb_negative,
    stribeck: {torque, rate}, stiffness, presliding, smoothing}, all optional.

    Raises:
        DescriptionError: it is not such a record, or drives its joint.
    """
    found = FRICTION.read(value, where)
    hump = found.pop("stribeck", {})
    if hump and "rate" not in hump:
        raise wrong(DescriptionError, where / "stribeck" / "rate", None, "a rate, rad/s or m/s")
    return Friction(**found, **{f"stribeck_{key}": each for key, each in hump.items()})


def _limit(value: Any, where: Place) -> float | None:
    try:
        is_infinite = abs(float(value)) > LARGEST
    except (TypeError, ValueError):
        is_infinite = False
    return None if is_infinite else number(value, where)


_LIMIT = Kind(_limit, {"type": ["number", "string"]})
"""Any number; an infinite one means that there is no limit"""
LIMITS = Record(
    {
        "lower": _LIMIT.said("rad or m"),
        "upper": _LIMIT.said("rad or m"),
        "velocity": _LIMIT.said("rad/s or m/s"),
        "effort": _LIMIT.said("N·m or N"),
    }
)


def limits(value: Any, where: Place, strict: bool = True) -> Limits | None:
    """The limits from {lower, upper, velocity, effort}, all optional; None if none is given.

    Values that many programs write for unknown limits count as not given: a velocity or an effort
    of 0, -1 or inf, positions from 0 to 0, and infinite positions.

    Raises:
        DescriptionError: it is not such a record, or a limit is negative or, if strict, out of
            order.

    Warns:
        DescriptionWarning: unless strict, positions out of order, which count as not given, as in
            Bullet and MuJoCo.
    """
    found = {key: each for key, each in LIMITS.read(value, where).items() if each is not None}
    for key in ("velocity", "effort"):
        if found.get(key) in (0, -1):
            del found[key]
        elif found.get(key, 1.0) < 0:
            raise wrong(DescriptionError, where / key, found[key], "at least 0")
    if "lower" in found and "upper" in found:
        lower, upper = found["lower"], found["upper"]
        if lower > upper:
            left_out = "" if strict else "; both are left out"
            expected = f"at most the upper limit, {upper:g}{left_out}"
            tolerate(wrong(DescriptionError, where / "lower", lower, expected), strict)
        if lower > upper or lower == upper == 0:
            del found["lower"], found["upper"]
    return Limits(**found) if found else None


JOINT = Record(
    {
        "name": NAME.said("required unless the joint is fixed"),
        "type": one_of((*JOINT_TYPES, *PARTS)),
        "axes": AXES,
        "limits": BY_PART,
    },
    required=("type",),
)
_RETYPED = Record(
    {"type": one_of((*PARTS, "fixed")), "axes": AXES},
    required=("type",),
)


def _retyped(value: Any, where: Place) -> dict[str, Any]:
    return _RETYPED.read({"type": value} if isinstance(value, str) else value, where)


def _ratio(value: Any, where: Place) -> float | dict[str, float]:
    if not isinstance(value, dict):
        return number(value, where)
    return {text(joint, where): number(ratio, where / joint) for joint, ratio in value.items()}


_RATIOS = {"type": "object", "additionalProperties": NUMBER.schema}
ROTOR = Record(
    {
        "mount": NAME.said("the link that carries the motor; default: the joint's parent"),
        "origin": POSE.kind(pose).said("the motor's frame in the mount's; it spins about z"),
        "gear_ratio": Kind(_ratio, {"anyOf": [QUANTITY.schema, _RATIOS, {"type": "null"}]}).said(
            "rotor velocity / joint velocity; for several joints by name"
        ),
        **BODY.keys,
        "friction": FRICTION.kind(friction).said(
            "on the motor's side, as a function of the rotor's velocity: N·m·s/rad, N·m"
        ),
    }
)
DH = Record(
    {
        "theta": QUANTITY.said("rad; the joint's variable is added to it, if it turns"),
        "d": QUANTITY.said("m; the joint's variable is added to it, if it slides"),
        "a": QUANTITY.said("m"),
        "alpha": QUANTITY.said("rad"),
    }
)
_ROTOR = ROTOR.kind().said("the motor's rotor; for its inertia {izz} is enough")
LINK = Record(
    {
        "name": NAME,
        "parent": NAME.said("default: the previous link; for the first: base"),
        "origin": POSE.kind(pose).said("before the link's DH transform"),
        "joint": JOINT.kind(),
        **DH.keys,
        **BODY.keys,
        "friction": BY_PART,
        "rotor": _ROTOR,
    },
    required=("name", "joint"),
)


def _by_part() -> Schema:
    """The schema of a link whose joint has several parts: friction and limits by part, no rotor."""
    parts = sorted({part for each in PARTS.values() for part in (*each, "rx", "ry", "rz")})

    def each_part(record: Record) -> Schema:
        return Record(dict.fromkeys(parts, record.kind())).schema(description="by part")

    def of(friction: Schema, limits: Schema, **more: Schema) -> Schema:
        return {
            "properties": {
                "friction": friction, "joint": {"properties": {"limits": limits}}, **more
            }
        }  # fmt: skip

    return {
        "if": {"properties": {"joint": {"properties": {"type": {"enum": list(PARTS)}}}}},
        "then": of(each_part(FRICTION), each_part(LIMITS), rotor={"type": "null"}),
        "else": of(FRICTION.schema(), LIMITS.schema()),
    }


_END = Record({"link": NAME, "xyz": three(NUMBER, "m"), "rpy": three(NUMBER, "rad")}, ("link",))


def _end(value: Any, where: Place) -> Attachment:
    found = _END.read(value, where)
    return Attachment(found["link"], _posed(found))


LOOP = Record(
    {
        "name": NAME,
        # the type is checked for loops from all sources (see `check`)
        "type": Kind(text, {"enum": list(LOOP_TYPES)}),
        "predecessor": _END.kind(_end).said("a frame on a link"),
        "successor": _END.kind(_end).said("a frame on another link"),
    },
    required=("type", "predecessor", "successor"),
)


def _near(value: Any, where: Place) -> Any:
    """A joint's position, or a link's position or pose."""
    if not isinstance(value, Mapping):
        return number(value, where)
    found = POSE.read(value, where)
    if "xyz" not in found:
        raise wrong(DescriptionError, where, dict(value), "xyz, or xyz and rpy")
    return _posed(found) if "rpy" in found else found["xyz"]


_NEAR = {
    "anyOf": [
        NUMBER.said("of a joint: rad or m").schema,
        POSE.kind().said("of a link, in the base frame").schema,
    ]
}
COMMON = Record(
    {
        "robot": NAME.said("default: the file's name"),
        "gravity": three(QUANTITY, "m/s², in the base frame; default: [0, 0, -9.81]"),
        "rotors": replace(
            by_name(_ROTOR, "motors by the name of their joint, or by one of their own"),
            read=_as_written,
        ),
        "loops": listed(LOOP.kind(), "joints that close the tree"),
        "actuated": listed(NAME, "joints with a motor; default: all"),
        "sensed": listed(NAME, "passive joints with a sensor"),
        "platform": NO_NAME.said("the link that is the moving platform"),
        "home": by_name(
            NUMBER.said("rad or m"),
            "a configuration in which the loops are closed; it selects the assembly mode",
        ),
        "near": by_name(
            Kind(_near, _NEAR), "roughly where joints or links are in the intended assembly mode"
        ),
        "locked": by_name(NUMBER.said("rad or m"), "joints held fixed at this position"),
        "base_motion": NO_NAME.said("the floating joint of a base whose motion is prescribed"),
    }
)
TREE = Record(
    {
        **COMMON.keys,
        "base_inertial": _WHOLE_BODY.said(
            "of the base's own body, in the base frame; only a floating base needs it"
        ),
        "dh_convention": one_of(("standard", "modified")).said(
            "standard: Rz(theta) Tz(d) Tx(a) Rx(alpha); modified: Rx(alpha) Tx(a) Rz(theta) Tz(d)"
        ),
        "links": listed(Kind(_as_written, LINK.schema(**_by_part())), "in any order"),
        "symbols": by_name(NUMBER, "names for numbers, for use in expressions"),
    }
)
_JOINT_TYPE = {"anyOf": [_RETYPED.keys["type"].schema, _RETYPED.schema()]}
BESIDE = Record(
    {
        **COMMON.keys,
        "urdf": PATH.said("relative to this file, or package://…"),
        "joints": by_name(
            Kind(_retyped, _JOINT_TYPE),
            "joints of several degrees of freedom that the URDF writes as one",
        ),
        "friction": by_name(FRICTION.kind(friction), "by joint: in place of <dynamics>"),
        "inertials": by_name(
            _WHOLE_BODY,
            "by link: in place of the URDF's <inertial>",
        ),
    }
)
