# SPDX-License-Identifier: Apache-2.0
"""The report of `robot_dynamics check`: the robot as it was read, and everything suspicious."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

from ..closure import Closer, assembly_modes, prepared
from ..description import load
from ..description.check import body, nearest_possible
from ..description.files import find, read_text
from ..description.lines import yaml_line
from ..description.schema import mistakes
from ..description.yaml_text import plain
from ..errors import DescriptionError, listed
from ..mechanism import Friction, Inertial, Link, Mechanism
from .agreement import agreement
from .closing_home import listing, modes_table
from .compare import coordinates
from .oddities import notes, oddities
from .tables import table


def report(source: str, *, strict: bool = False) -> dict[str, Any]:
    """The robot, its warnings, and how well the kernels agree; also as `text` for people.

    Args:
        source: the description's file.
        strict: treat warnings as errors?

    Raises:
        DescriptionError: the description is invalid, or, with `strict`, gives a warning.
    """
    mechanism, found = survey(source, strict=strict)
    found |= agreement(mechanism)
    return {**found, "text": text(found)}


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
    mended: list[str] = []
    if mechanism.loops:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mechanism, solver = prepared(mechanism)
        mended = [str(each.message) for each in caught]
    for complaint in (*mended, *oddities(mechanism, source)):
        if strict:
            raise DescriptionError(complaint, name=source)
        complaints.append(complaint)
    result: dict[str, Any] = {
        "robot": mechanism.name,
        "sound": not complaints,
        "warnings": complaints,
        "notes": list(notes(mechanism)),
        "joints": list(coordinates(mechanism)),
        "actuated": list(mechanism.actuated_names),
        "passive": [x for x in mechanism.joint_names if x not in mechanism.actuated_names],
        "sensed": list(mechanism.sensed),
        "degrees_of_freedom": len(mechanism.joint_names),
        "base": mechanism.base,
        "tips": tips(mechanism),
        "mass": float(sum(link.inertial.mass for link in mechanism.links)),
        "motion": {link.joint.name: _motion(link, mechanism) for link in mechanism.moving},
        "links": {link.name: _body(link) for link in mechanism.links},
        "rotors": {
            rotor.name: {
                "mount": rotor.mount,
                "gear_ratios": {name: float(ratio) for name, ratio in rotor.ratios},
                "mass": float(rotor.inertial.mass),
                "axial_inertia": float(rotor.inertial.inertia[2, 2]),
                "friction": {
                    name: float(x) for name, x in (rotor.friction or Friction()).numbers.items()
                },
            }
            for rotor in mechanism.rotors
            if not (rotor.inertial.is_nothing and rotor.friction is None)
        },
        "gears": {
            rotor.name: {name: float(ratio) for name, ratio in rotor.ratios}
            for rotor in mechanism.rotors
            if rotor.inertial.is_nothing and rotor.friction is None
        },
        "loops": [loop.name for loop in mechanism.loops],
    }
    if mechanism.loops:
        result["closure"] = closure(solver)
        modes = assembly_modes(mechanism)
        result["assembly_modes"] = listing(mechanism, modes)
        if len(modes) > 1 and not mechanism.near:
            result["notes"].append(
                f"home is one of {len(modes)} assembly modes with the motors there: is it the one "
                "that was built? `robot_dynamics close FILE --picture modes.png` draws them, and "
                "`near` in the description selects one"
            )
        result["degrees_of_freedom"] = result["closure"]["degrees_of_freedom"]
    return mechanism, result


def with_other_mistakes(error: DescriptionError, source: str) -> DescriptionError:
    """The same error, extended by all other mistakes that the schema finds in a YAML, with their
    lines."""
    if not source.lower().endswith((".yaml", ".yml")):
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


def closure(solver: Closer) -> dict[str, Any]:
    """Degrees of freedom, redundant rows, closure residual and condition number of a closed
    mechanism at home."""
    found, rows = solver.mobility, solver.geometry.rows
    return {
        "degrees_of_freedom": found.degrees_of_freedom,
        "redundant_rows": [str(rows[i]) for i in found.left_out],
        "miss_at_home": float(np.abs(found.miss).max(initial=0.0)),
        "condition_at_home": float(solver.home.condition),
    }


def tips(mechanism: Mechanism) -> list[str]:
    """The tip links."""
    parents = {link.parent for link in mechanism.links}
    return [link.name for link in mechanism.links if link.name not in parents]


def _motion(link: Link, mechanism: Mechanism) -> dict[str, Any]:
    joint = link.joint
    follows = joint.coupling.ratios if joint.coupling is not None else ()
    return {
        "type": joint.type,
        "link": link.name,
        "follows": {name: float(ratio) for name, ratio in follows},
        **asdict(joint.ends),
        "gear_ratio": next(
            (
                float(dict(rotor.ratios)[joint.name])
                for rotor in mechanism.rotors
                if joint.name in dict(rotor.ratios)
            ),
            None,
        ),
    }


def _body(link: Link) -> dict[str, Any]:
    solid = link.inertial
    broken = [str(complaint) for complaint in body(solid, link.name)]
    found = {
        "parent": link.parent,
        "joint": link.joint.name,
        "mass": float(solid.mass),
        "center_of_mass": [float(x) for x in solid.center_of_mass],
        "inertia": _tensor(solid),
        "principal_moments": np.linalg.eigvalsh(np.asarray(solid.inertia, dtype=float)).tolist(),
        "broken": broken,
    }
    return found | ({"nearest_inertia": _tensor(nearest_possible(solid))} if broken else {})


def _tensor(solid: Inertial) -> dict[str, float]:
    return {
        f"i{a}{b}": float(solid.inertia["xyz".index(a), "xyz".index(b)])
        for a, b in ("xx", "yy", "zz", "xy", "xz", "yz")
    }


def text(result: dict[str, Any]) -> str:
    """The report as text for people."""
    motion, links = result["motion"], result["links"]
    count = result["degrees_of_freedom"]
    lines = [
        f"{result['robot']}: {len(motion)} joints, {len(links)} links, {result['mass']:.6g} kg; "
        f"{count} degree{'' if count == 1 else 's'} of freedom",
        f"base {result['base']}, tip{'' if len(result['tips']) == 1 else 's'} "
        f"{listed(result['tips'])}",
        "joints, in the order of q, qd and qdd:",
        *_joints(result["joints"], motion),
    ]
    if result["joints"] != result["actuated"]:
        lines.append(f"torques, in this order: {listed(result['actuated'])}")
    if result["passive"]:
        lines += ["passive joints, solved from the loops:", *_joints(result["passive"], motion)]
    if result["sensed"]:
        lines.append(
            f"joints with a sensor, which follow the motors' in q: {listed(result['sensed'])}"
        )
    followers = [name for name, each in motion.items() if each["follows"]]
    if followers:
        lines += ["joints that follow others:", *_joints(followers, motion)]
        lines += [
            f"  {name} = "
            + " + ".join(f"{ratio:g} {master}" for master, ratio in motion[name]["follows"].items())
            for name in followers
        ]
    if links:
        lines += ["links:", *_links(links)]
    for name, link in links.items():
        lines += [f"  impossible: {words}" for words in link["broken"]]
        if link["broken"]:
            nearest = ", ".join(f"{key}: {x:.6g}" for key, x in link["nearest_inertia"].items())
            lines.append(f"    nearest possible body of {name}: inertia: {{{nearest}}}")
    if result["rotors"]:
        lines += ["rotors:", *_rotors(result["rotors"])]
    lines += [
        f"gear without rotor inertia: {name}: {_ratios(ratios)}"
        for name, ratios in result["gears"].items()
    ]
    if result["loops"]:
        at_home = result["closure"]
        lines += [
            f"loops: {listed(result['loops'])}",
            f"redundant constraint rows left out: {listed(at_home['redundant_rows'])}",
            f"closure error at home {at_home['miss_at_home']:.2g}, condition number "
            f"{at_home['condition_at_home']:.3g}",
            f"assembly modes with the motors there: {len(result['assembly_modes'])}",
            *modes_table(result["assembly_modes"], "mode"),
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


def _joints(names: list[str], motion: dict[str, Any]) -> list[str]:
    """A table of joints: position limits in rad or m, rates per s, torques in N·m or N."""
    rows = [["", "type", "from", "to", "rate", "torque or force", "gear ratio"]]
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
            ]
        )
    return table(rows)


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


def _rotors(rotors: dict[str, Any]) -> list[str]:
    rows = [["", "on", "gear ratio", "mass [kg]", "inertia about its axis [kg m²]", "friction"]]
    for name, rotor in rotors.items():
        ratios = _ratios(rotor["gear_ratios"]) or "does not turn"
        rows.append(
            [name, rotor["mount"], ratios, f"{rotor['mass']:.4g}", f"{rotor['axial_inertia']:.4g}"]
        )
        rubs = {key.replace("_", " "): x for key, x in rotor["friction"].items() if x}
        rows[-1].append(", ".join(f"{key} {x:.4g}" for key, x in rubs.items()))
    if not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    return table(rows)


def _ratios(ratios: dict[str, float]) -> str:
    return ", ".join(f"{ratio:g} of {name}" for name, ratio in ratios.items())
