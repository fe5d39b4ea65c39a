# SPDX-License-Identifier: Apache-2.0
"""The report of `robot_dynamics check`: the robot as it was read, and everything suspicious."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..closure import assembly_modes, prepared
from ..description import load
from ..description.check import body, nearest_possible
from ..description.files import find, is_yaml, read_text
from ..description.lines import yaml_line
from ..description.schema import mistakes
from ..description.yaml_text import plain
from ..errors import ClosureWarning, DescriptionError, counted, listed
from ..mechanism import Friction, Link, Mechanism, Rotor
from ..outputs import (
    ACTUATED,
    COUNT,
    FLAG,
    JOINTS,
    NOTES,
    NULLABLE,
    NUMBER,
    ROBOT,
    TENSOR,
    TEXT,
    Output,
    record,
)
from .agreement import KINDS as AGREEMENT
from .agreement import agreement
from .closing_home import MODES, listing, modes_table, tips
from .compare import coordinates
from .oddities import notes, oddities
from .tables import table


def _is_broken(link: Link) -> bool:
    return any(body(link.inertial, link.name))


def _is_bare(rotor: Rotor) -> bool:
    return rotor.inertial.is_nothing and rotor.friction is None


_VECTOR = NUMBER.listed(minItems=3, maxItems=3)
_RATIOS = NUMBER.by_name("rotor rate / joint rate, by joint").of(lambda rotor: dict(rotor.ratios))
_BODY = record(
    parent=TEXT,
    joint=TEXT.of("joint.name"),
    mass=NUMBER("kg").of("inertial.mass"),
    center_of_mass=_VECTOR("m, in the link's frame").of("inertial.center_of_mass"),
    inertia=TENSOR("kg m², about the centre of mass, link axes").of("inertial.inertia"),
    principal_moments=_VECTOR("kg m²").of(
        lambda link: np.linalg.eigvalsh(np.asarray(link.inertial.inertia, dtype=float))
    ),
    violated=TEXT.listed("physical conditions that it violates").of(
        lambda link: body(link.inertial, link.name)
    ),
    nearest_inertia=TENSOR("of the nearest physically consistent body")
    .of(lambda link: nearest_possible(link.inertial).inertia if _is_broken(link) else None)
    .maybe(),
)
_MOTION = record(
    type=TEXT.of("joint.type"),
    link=TEXT("its child link").of("name"),
    follows=NUMBER.by_name("ratio by master joint; empty: it is independent").of(
        lambda link: dict(link.joint.coupling.ratios) if link.joint.coupling else {}
    ),
    offset=NUMBER("rad or m, added to what it follows").of(
        lambda link: link.joint.coupling.offset if link.joint.coupling else 0.0
    ),
    lower=NULLABLE("rad or m").of("joint.ends.lower"),
    upper=NULLABLE("rad or m").of("joint.ends.upper"),
    velocity=NULLABLE("rad/s or m/s").of("joint.ends.velocity"),
    effort=NULLABLE("N·m or N").of("joint.ends.effort"),
    friction=NUMBER.by_name("at the joint").of("joint.friction.numbers"),
    gear_ratio=NULLABLE("rotor rate / joint rate"),
)
_ROTOR = record(
    mount=TEXT,
    gear_ratios=_RATIOS,
    mass=NUMBER("kg").of("inertial.mass"),
    axial_inertia=NUMBER("kg m²").of(lambda rotor: rotor.inertial.inertia[2, 2]),
    friction=NUMBER.by_name("on the motor's side").of(
        lambda rotor: (rotor.friction or Friction()).numbers
    ),
)
_CLOSURE = record(
    degrees_of_freedom=COUNT.of("mobility.degrees_of_freedom"),
    redundant_rows=TEXT.listed().of(
        lambda closer: [closer.geometry.rows[i] for i in closer.mobility.left_out]
    ),
    error_at_home=NULLABLE.of(lambda closer: np.abs(closer.mobility.miss).max(initial=0.0)),
    condition_at_home=NULLABLE.of("home.condition"),
)
_SURVEY = record(
    robot=ROBOT.of("name"),
    sound=FLAG("no warnings"),
    warnings=TEXT.listed(),
    notes=NOTES,
    joints=JOINTS.of(coordinates),
    actuated=ACTUATED.of("actuated_names"),
    passive=TEXT.listed("joints without a motor, moved by the loops").of(
        lambda robot: [name for name in robot.joint_names if name not in robot.actuated_names]
    ),
    sensed=TEXT.listed("passive joints with a sensor"),
    degrees_of_freedom=COUNT,
    base=TEXT,
    tips=TEXT.listed("tip links").of(tips),
    mass=NUMBER("kg, of everything that can move").of(
        lambda robot: sum(link.inertial.mass for link in robot.links)
    ),
    motion=_MOTION.by_name("every moving joint"),
    links=_BODY.by_name(),
    rotors=_ROTOR.by_name().of(lambda robot: [x for x in robot.rotors if not _is_bare(x)]),
    gears=_RATIOS.by_name("transmissions without a known rotor").of(
        lambda robot: {x.name: dict(x.ratios) for x in robot.rotors if _is_bare(x)}
    ),
    loops=TEXT.listed().of(lambda robot: [loop.name for loop in robot.loops]),
    closure=_CLOSURE("degrees of freedom, redundant rows, residual and condition at home").maybe(),
    assembly_modes=MODES.maybe(),
)
OUTPUT = record(**_SURVEY.kinds, **AGREEMENT)


def report(
    source: str, *, strict: bool = False, progress: Callable[[str], None] = lambda _: None
) -> Output:
    """The robot, its warnings, and how well the kernels agree; also as text for people.

    Args:
        source: the description's file.
        strict: whether to treat warnings as errors.
        progress: called with a short message at each step.

    Raises:
        DescriptionError: the description is invalid, or, with `strict`, gives a warning.
    """
    progress("examining the description")
    mechanism, found = survey(source, strict=strict)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClosureWarning)  # the survey includes them
        found |= agreement(mechanism, progress)
    return Output(found, text(found))


def survey(source: str, *, strict: bool = False) -> tuple[Mechanism, dict[str, Any]]:
    """The robot as it was understood, and everything suspicious about it.

    Args:
        source, strict: as in `report`.

    Raises:
        DescriptionError: as in `report`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mechanism = load(source, strict=strict)
        except DescriptionError as error:
            raise with_other_mistakes(error, source) from None
    complaints = [str(each.message) for each in caught]
    closing: list[str] = []
    if mechanism.loops:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mechanism, closer = prepared(mechanism)
        closing = [str(each.message) for each in caught]
    for complaint in (*closing, *oddities(mechanism, source)):
        if strict:
            raise DescriptionError(complaint, name=source)
        complaints.append(complaint)
    remarks = list(notes(mechanism))
    freedom, at_home, modes = len(mechanism.joint_names), None, None
    if mechanism.loops:
        at_home = _CLOSURE.read(closer)
        freedom = at_home["degrees_of_freedom"]
        found = assembly_modes(mechanism)
        modes = listing(mechanism, found)
        if len(found) > 1 and not mechanism.near:
            remarks.append(
                f"home is one of {len(found)} assembly modes for these motor positions: is it "
                "that of the real robot? `robot_dynamics close FILE --picture modes.png` draws "
                "them, and `near` in the description selects one"
            )
    ratios = {name: ratio for rotor in mechanism.rotors[::-1] for name, ratio in rotor.ratios}
    return mechanism, _SURVEY.read(
        mechanism,
        sound=not complaints,
        warnings=complaints,
        notes=remarks,
        degrees_of_freedom=freedom,
        motion={
            link.joint.name: _MOTION.read(link, gear_ratio=ratios.get(link.joint.name))
            for link in mechanism.moving
        },
        closure=at_home,
        assembly_modes=modes,
    )


def with_other_mistakes(error: DescriptionError, source: str) -> DescriptionError:
    """The same error, extended by all other mistakes that the schema finds in a YAML, with their
    lines."""
    if not is_yaml(source):
        return error
    try:
        text = read_text(find(source))
        others = mistakes(plain(text, source))
    except DescriptionError:  # no file, or no YAML: the error says so already
        return error
    lines = ((yaml_line(text, path), words) for path, words in others)
    told = [f"line {line}: {words}" for line, words in lines if line != error.line]
    if not told:
        return error
    return DescriptionError(
        f"{error}; {listed(told)}", name=error.name, value=error.value, line=error.line
    )


def text(result: dict[str, Any]) -> str:
    """The report as text for people."""
    motion, links = result["motion"], result["links"]
    count = result["degrees_of_freedom"]
    lines = [
        f"{result['robot']}: {counted(len(motion), 'joint')}, "
        f"{counted(len(links), 'link')}, {result['mass']:.6g} kg; "
        f"{counted(count, 'degree')} of freedom",
        f"base {result['base']}, tip{'' if len(result['tips']) == 1 else 's'} "
        f"{listed(result['tips'])}",
        "joints, in the order of q, qd and qdd:",
        *table(joint_rows(result["joints"], motion)),
    ]
    if result["joints"] != result["actuated"]:
        lines.append(f"torques, in this order: {listed(result['actuated'])}")
    if result["passive"]:
        lines += [
            "passive joints, solved from the loops:",
            *table(joint_rows(result["passive"], motion)),
        ]
    if result["sensed"]:
        lines.append(
            f"joints with a sensor, which follow the motors' in q: {listed(result['sensed'])}"
        )
    followers = [name for name, each in motion.items() if each["follows"]]
    if followers:
        lines += ["joints that follow others:", *table(joint_rows(followers, motion))]
        lines += [
            f"  {name} = "
            + " + ".join(f"{ratio:g} {master}" for master, ratio in motion[name]["follows"].items())
            + (f" + {motion[name]['offset']:g}" if motion[name]["offset"] else "")
            for name in followers
        ]
    if links:
        lines += ["links:", *_links(links)]
    for name, link in links.items():
        lines += [f"  impossible: {words}" for words in link["violated"]]
        if link["violated"]:
            nearest = ", ".join(f"{key}: {x:.6g}" for key, x in link["nearest_inertia"].items())
            lines.append(f"    nearest possible body of {name}: inertia: {{{nearest}}}")
    if result["rotors"]:
        lines += ["rotors:", *table(rotor_rows(result["rotors"]))]
    lines += [
        f"gear without rotor inertia: {name}: {_ratios(ratios)}"
        for name, ratios in result["gears"].items()
    ]
    if result["loops"]:
        at_home = result["closure"]
        lines += [
            f"loops: {listed(result['loops'])}",
            f"redundant constraint rows left out: {listed(at_home['redundant_rows'])}",
            f"closure error at home {at_home['error_at_home']:.2g}, condition number "
            f"{at_home['condition_at_home']:.3g}",
            f"assembly modes for these motor positions: {len(result['assembly_modes'])}",
            *modes_table(result["assembly_modes"]),
        ]
    for name, difference in result["disagreement"].items():
        by_joint = result["disagreement_by_joint"][name]
        worst = f" at {max(by_joint, key=by_joint.__getitem__)}" if difference else ""
        ran = result["backends"][name].removeprefix("torques: ")
        lines.append(f"{name} ({ran}) agrees to {difference:.1e} of each joint's own scale{worst}")
    lines += [f"{name} left out: {reason}" for name, reason in result["left_out"].items()]
    lines += [f"note: {words}" for words in result["notes"]]
    lines += [f"warning: {words}" for words in result["warnings"]]
    lines.append("sound" if result["sound"] else "usable, with warnings")
    return "\n".join(lines)


def joint_rows(names: list[str], motion: dict[str, Any]) -> list[list[str]]:
    """A table of joints: position limits in rad or m, rates per s, torques in N·m or N."""
    head = ["", "type", "from", "to", "velocity", "torque or force", "gear ratio", "friction"]
    rows = []
    for k, name in enumerate(names, start=1):
        each = motion[name]
        length = "m" if each["type"] == "prismatic" else "rad"
        force = "N" if each["type"] == "prismatic" else "N·m"
        rows.append(
            [
                f"{k}. {name}",
                each["type"],
                _quantity(each["lower"], length),
                _quantity(each["upper"], length),
                _quantity(each["velocity"], f"{length}/s"),
                _quantity(each["effort"], force),
                _quantity(each["gear_ratio"], "").rstrip(),
                _friction(each["friction"]),
            ]
        )
    return _with_friction([head, *rows])


def _friction(law: dict[str, float]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {x:.4g}" for key, x in law.items() if x)


def _with_friction(rows: list[list[str]]) -> list[list[str]]:
    """The table, without its last column if there is no friction."""
    return rows if any(row[-1] for row in rows[1:]) else [row[:-1] for row in rows]


def _quantity(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.4g} {unit}"


def _links(links: dict[str, Any]) -> list[str]:
    rows = [["", "on", "mass [kg]", "centre of mass [m]", "principal moments [kg m²]"]]
    for name, link in links.items():
        center = ", ".join(f"{x:.4g}" for x in link["center_of_mass"])
        moments = ", ".join(f"{x:.4g}" for x in link["principal_moments"])
        nothing = not link["mass"] and not any(link["principal_moments"])
        rows.append(
            [
                name,
                link["parent"],
                *(["–"] * 3 if nothing else [f"{link['mass']:.6g}", center, moments]),
            ]
        )
    return table(rows)


def rotor_rows(rotors: dict[str, Any]) -> list[list[str]]:
    """A table of rotors."""
    rows = [["", "on", "gear ratio", "mass [kg]", "inertia about its axis [kg m²]", "friction"]]
    for name, rotor in rotors.items():
        ratios = _ratios(rotor["gear_ratios"]) or "does not turn"
        numbers = f"{rotor['mass']:.4g}", f"{rotor['axial_inertia']:.4g}"
        rows.append([name, rotor["mount"], ratios, *numbers, _friction(rotor["friction"])])
    return _with_friction(rows)


def _ratios(ratios: dict[str, float]) -> str:
    return ", ".join(f"{ratio:g} of {name}" for name, ratio in ratios.items())
