# SPDX-License-Identifier: Apache-2.0
"""Writes an identification to files: loadable descriptions, and the numbers as JSON."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..description import load, urdf_text, urdf_writer
from ..description.compound import PARTS, parts_of
from ..description.files import (
    find,
    is_text,
    is_yaml,
    read_text,
    urdf_of,
    write_bytes,
    write_text,
)
from ..description.formats import form_of
from ..description.xacro_process import expanded
from ..errors import InputError, Place, RobotDynamicsError
from ..mechanism import Friction, Inertial, Rotor
from ..outputs import (
    ANYTHING,
    COUNT,
    EACH,
    FLAG,
    JOINTS,
    NOTES,
    NULLABLE,
    NUMBER,
    ROBOT,
    TENSOR,
    TEXT,
    finite,
    record,
)
from ..scalar import roll_pitch_yaw
from .closed import ClosedIdentification
from .identify import Identification

Result = Identification | ClosedIdentification

COPY = "description"
"""File name of the copy of the original description"""
ENDING_OF = {"urdf": ".urdf", "mujoco": ".xml", "sdf": ".sdf"}


def save(result: Result, folder: Path) -> dict[str, Path]:
    """Write an identification's result to a folder.

    The files are identified.yaml, the description that it refers to, identified.urdf unless the
    robot has loops and its description is no URDF, and report.json.

    Args:
        result: an identification of a robot whose description came from a file or a text.
        folder: created if it does not exist.

    Returns: the files' paths by kind.

    Raises:
        InputError: the robot was given as a mechanism, or the folder cannot be written to.
    """
    if result.source is None:
        raise InputError(
            "the robot was given as a mechanism, but results refer to a description: pass its file "
            "or text",
            name="robot",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = _descriptions(result, folder)
        written["report"] = folder / "report.json"
        write_text(written["report"], json.dumps(finite(summary(result)), indent=1) + "\n")
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written to ({error.strerror})", name=str(folder)
        ) from None
    return written


def _descriptions(result: Result, folder: Path) -> dict[str, Path]:
    assert result.source is not None
    written = {"identified": folder / "identified.yaml"}
    text, content, path = _description_of(result.source)
    form = "yaml" if text is None else form_of(text.decode(errors="replace"))
    if text is None:
        written["description"] = folder / f"{COPY}.yaml"
        write_text(written["description"], read_text(find(result.source)))
        whole = _tree(result, content)
    else:
        copy = folder / f"{COPY}{ENDING_OF[form]}"
        write_bytes(copy, text)
        refers_to = copy.name
        if path is None or form == "urdf" or _is_whole(copy):
            written["description"] = copy
        else:
            copy.unlink()
            refers_to = str(path.resolve())
        whole = content | {"urdf": refers_to} | _extras(result, content)
    if form == "urdf" or not result.mechanism.loops:
        written["urdf"] = folder / "identified.urdf"
        write_bytes(written["urdf"], _urdf(result, text if form == "urdf" else None))
    heading = "# Identified from recordings; report.json gives the accuracy.\n"
    body = yaml.safe_dump(whole, sort_keys=False, default_flow_style=None, width=100)
    write_text(written["identified"], heading + body)
    return written


def _is_whole(copy: Path) -> bool:
    """Whether a copied description can be read without the files beside the original."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load(copy)
    except RobotDynamicsError:
        return False
    return True


def _urdf(result: Result, text: bytes | None) -> bytes:
    """The identified robot as URDF: the original text with new bodies and friction, or if that is
    None a new one. What URDF cannot express is left out."""
    if text is not None:
        return urdf_text.replaced(text, _changed_bodies(result), _changed_friction(result))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return urdf_writer.urdf(result.mechanism).encode()


def _description_of(source: str) -> tuple[bytes | None, dict[str, Any], Path | None]:
    """(the text of the URDF, SDF or MJCF, the content of the YAML that refers to it, its path);
    without one: (None, the YAML's content, None)."""
    if is_text(source):
        return source.encode(), {}, None
    path = find(source)
    content: dict[str, Any] = {}
    if is_yaml(path):
        content = yaml.safe_load(read_text(path))
        inner = urdf_of(path)
        if inner is None:
            return None, content, None
        path = inner
    if path.suffix.lower() == ".xacro":
        return expanded(path).encode(), content, path
    return path.read_bytes(), content, path


def _extras(result: Result, content: dict[str, Any]) -> dict[str, Any]:
    """The sections of a YAML that refers to a URDF: the existing content, overridden by what was
    identified."""
    found: dict[str, dict[str, Any]] = {
        "inertials": {name: inertial_entry(body) for name, body in _changed_bodies(result).items()},
        "friction": {name: _friction(law) for name, law in _changed_friction(result).items()},
        "rotors": {rotor.name: _rotor(rotor) for rotor in _changed_rotors(result)},
        "locked": dict(result.locked),
    }
    return {
        key: (content.get(key) or {}) | new for key, new in found.items() if new or content.get(key)
    }


def _tree(result: Result, content: dict[str, Any]) -> dict[str, Any]:
    """A YAML description with links, with the identified values in place of the existing ones."""
    bodies, laws = _changed_bodies(result), _changed_friction(result)
    links = []
    for item in content["links"]:
        link = dict(item)
        said = link.get("joint") or {}
        joint, kind = said.get("name"), str(said.get("type"))
        if link["name"] in bodies:
            link |= inertial_entry(bodies[link["name"]])
        if kind in PARTS:
            parts = parts_of(kind, said.get("axes"), Place(link["name"]))
            names = {part: f"{joint}_{part}" for part in parts}
            own = {part: _friction(laws[name]) for part, name in names.items() if name in laws}
            link["friction"] = (link.get("friction") or {}) | own
        elif joint in laws:
            link["friction"] = _friction(laws[joint])
        links.append(link)
    rotors = {rotor.name: _rotor(rotor) for rotor in _changed_rotors(result)}
    for link in links:
        if (link.get("joint") or {}).get("name") in rotors:
            link.pop("rotor", None)
    whole = content | {"links": links}
    if rotors:
        whole["rotors"] = (content.get("rotors") or {}) | rotors
    if result.locked:
        whole["locked"] = (content.get("locked") or {}) | dict(result.locked)
    return whole


def _changed_bodies(result: Result) -> dict[str, Inertial]:
    before = {link.name: link.inertial for link in result.described.links}
    return {
        link.name: link.inertial
        for link in result.mechanism.links
        if not _same(link.inertial, before[link.name])
    }


def _same(a: Inertial, b: Inertial) -> bool:
    return bool(
        a.mass == b.mass
        and np.array_equal(a.center_of_mass, b.center_of_mass)
        and np.array_equal(a.inertia, b.inertia)
    )


def _changed_friction(result: Result) -> dict[str, Friction]:
    before = {link.joint.name: link.joint.friction for link in result.described.links}
    return {
        link.joint.name: link.joint.friction
        for link in result.mechanism.moving
        if link.joint.friction != before[link.joint.name]
    }


def _changed_rotors(result: Result) -> list[Rotor]:
    before = {rotor.name: rotor for rotor in result.described.rotors}
    return [
        rotor
        for rotor in result.mechanism.rotors
        if rotor.name not in before
        or not _same(rotor.inertial, before[rotor.name].inertial)
        or rotor.friction != before[rotor.name].friction
    ]


def inertial_entry(body: Inertial) -> dict[str, Any]:
    """A body as a YAML description has it."""
    return {
        "mass": float(body.mass),
        "center_of_mass": [float(c) for c in body.center_of_mass],
        "inertia": TENSOR.read(body.inertia),
    }


def _friction(law: Friction) -> dict[str, Any]:
    values = {key: float(value) for key, value in law.numbers.items()}
    hump = {key: values.pop(f"stribeck_{key}", None) for key in ("torque", "rate")}
    return values | ({"stribeck": hump} if hump["torque"] is not None else {})


def _rotor(rotor: Rotor) -> dict[str, Any]:
    ratios = {name: float(ratio) for name, ratio in rotor.ratios}
    alone = list(ratios) == [rotor.name]
    return {
        "mount": rotor.mount,
        "origin": {
            "xyz": [float(x) for x in rotor.origin.translation],
            "rpy": roll_pitch_yaw(rotor.origin.rotation),
        },
        "gear_ratio": ratios[rotor.name] if alone else ratios,
        **inertial_entry(rotor.inertial),
        **({"friction": _friction(rotor.friction)} if rotor.friction else {}),
    }


_ERRORS = record(
    duration=NULLABLE("s"),
    torque_rms=EACH.of("torque"),
    identified_rms=EACH.of("identified"),
    described_rms=EACH.of("described"),
    identified=EACH.of("relative"),
    described=EACH.of("relative_described"),
    identified_unfiltered_rms=EACH.of("unfiltered"),
)
_PARAMETER = record(identified=NULLABLE, described=NULLABLE, standard_deviation=NULLABLE)
_DOUBT = record(
    joint=TEXT,
    factor=NUMBER("from its efforts to torques"),
    why=TEXT,
    error=NUMBER("of the best possible robot, relative to the efforts").of("before"),
    error_with_factor=NUMBER.of("after"),
    sure=FLAG("its efforts were excluded from the fit"),
)
_ZERO = record(
    joint=TEXT,
    offset=NULLABLE("rad or m, to be added to its positions; null: not determined").of(
        lambda zero: zero.offset if zero.determined else None
    ),
    deviation=NULLABLE.of(lambda zero: zero.deviation if zero.determined else None),
    error_reduction=NUMBER("fraction by which it reduces held-out errors").of("less"),
    doubtful=FLAG("its encoder zero may be wrong"),
)
_CONTACT = record(
    recording=TEXT.of("source"),
    joint=TEXT,
    begin=NUMBER("s since the recording's first stamp"),
    end=NUMBER,
    most=NUMBER("N·m or N, largest unexplained torque"),
    times=NUMBER("ratio of that to the usual residual"),
)
_EXCITATION = record(
    condition_number=NULLABLE.of("condition"),
    identifiable=COUNT,
    determined=NULLABLE,
)


def _parameters(result: Result) -> dict[str, dict[str, float]]:
    deviations = np.sqrt(np.diag(result.covariance))
    return {
        name: {
            "identified": value,
            "described": result.described_parameters[name],
            "standard_deviation": deviation,
        }
        for (name, value), deviation in zip(result.parameters.items(), deviations, strict=True)
    }


SUMMARY = record(
    robot=ROBOT.of("mechanism.name"),
    joints=JOINTS.of("errors.joints"),
    errors=record(held_out=_ERRORS.of("errors"), fitted=_ERRORS).of(lambda result: result),
    parameters=_PARAMETER.by_name().of(_parameters),
    kept=TEXT("from the description, as it predicts better: nothing, bodies, everything"),
    unexplained=NULLABLE.listed(
        "N·m or N, by joint: deviation of the efforts that the parameters do not explain"
    ).of("band.residual"),
    cutoff=NULLABLE.by_name("Hz, by recording").of("cutoffs"),
    doubts=_DOUBT.listed(),
    contacts=_CONTACT.listed(),
    notes=NOTES,
    warnings=TEXT.listed(),
)
"""The content of report.json for a robot with loops"""
OPEN_CHAIN_SUMMARY = record(
    **SUMMARY.kinds,
    friction=ANYTHING.by_name()
    .by_name()
    .of(lambda result: {x: _friction(result.mechanism.joint(x).friction) for x in result.joints}),
    excitation=_EXCITATION,
    zeros=_ZERO.listed(),
    weight_of_the_description=NULLABLE.of("fit.gamma"),
    duration=NUMBER("s"),
    locked=NUMBER.by_name("rad or m"),
)
"""The same for an open chain"""


def summary(result: Result) -> dict[str, Any]:
    """The content of report.json."""
    is_closed = isinstance(result, ClosedIdentification)
    found: dict[str, Any] = (SUMMARY if is_closed else OPEN_CHAIN_SUMMARY).read(result)
    return found
