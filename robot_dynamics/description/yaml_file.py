# SPDX-License-Identifier: Apache-2.0
"""The package's own description format: a Denavit–Hartenberg tree, or additions to a URDF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DescriptionError, Place, wrong
from ..mechanism import (
    BASE,
    Friction,
    Inertial,
    Joint,
    Link,
    Loop,
    Mechanism,
    Pose,
    Rotor,
)
from ..mechanism.transform import with_locked_joints, with_parts
from ..scalar import array, exact, rotation_x, rotation_z
from . import formats
from .check import Origins, position, things
from .compound import PARTS, left_out, moved_from_outside, parts_of, split
from .expression import in_numbers
from .fields import in_radians, mapping, text, tolerate, unknown
from .files import find, is_yaml, read_text
from .order import parents_first
from .records import BESIDE, DH, LINK, ROTOR, TREE, friction, inertial, limits
from .yaml_text import plain

SAME_PLACE = 1e-5
"""rad or m: largest difference between a joint's positions in `home` and in `locked`"""


def read(path: Path, *, strict: bool = False) -> tuple[Mechanism, Origins]:
    """The mechanism of a YAML file, and which of its parts come from another file.

    Args:
        path: of the file.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: an invalid description; the message names the file, the key and the value.
    """
    where = Place(path.name)
    content = plain(read_text(path), where)
    if not isinstance(content, dict):
        raise wrong(DescriptionError, where, content, "a mapping with `links` or `urdf`")
    if "urdf" not in content:
        entries = mapping(content, TREE.keys, where)
        entries, symbols, notation = in_numbers(entries, where)
        said = TREE.known(entries, where)
        tree = _tree(said, where, path.stem, strict)
        tree = replace(tree, symbols=symbols, notation=notation)
        return _extras(tree, said, where, strict), {}
    entries = mapping(content, BESIDE.keys, where)
    found = BESIDE.known(entries, where)
    at, reference = where / "urdf", found["urdf"]
    try:
        file = find(reference, beside=path.parent)
    except DescriptionError as error:
        words = f"{at}: {error}"
        raise DescriptionError(words, name=at, value=reference, expected=error.expected) from None
    if is_yaml(file):
        raise wrong(DescriptionError, at, reference, "a URDF, xacro, SDF or MJCF, not another YAML")
    mechanism = _retyped(
        formats.read(file, file.name, strict=strict), found.get("joints", {}), where, strict
    )
    mechanism = _measured(mechanism, found.get("inertials", {}), found.get("friction", {}), where)
    mechanism = _extras(mechanism, found, where, strict)
    own = {
        *(("link", name) for name in entries.get("inertials") or ()),
        *(("joint", name) for name in entries.get("friction") or ()),
        *(("rotor", name) for name in entries.get("rotors") or ()),
    }
    origins = {key: file.name for key in things(mechanism) if key not in own}
    return mechanism, origins


def _retyped(
    mechanism: Mechanism, said: Mapping[str, Mapping[str, Any]], where: Place, strict: bool
) -> Mechanism:
    """The mechanism of a URDF with the types of joints that the YAML gives under `joints`."""
    links = {link.joint.name: link for link in mechanism.links}
    for name in said:
        if name not in links:
            raise unknown((where / "joints" + ": joint").at(name), name, links)
        followed = [
            other.joint.name
            for other in mechanism.links
            if other.joint.coupling and name in dict(other.joint.coupling.ratios)
        ]
        if links[name].joint.coupling or followed:
            with_whom = ", ".join(followed) or "it mimics another"
            raise wrong(
                DescriptionError, where / "joints" / name, f"a <mimic> ({with_whom})", "none"
            )

    def retyped(link: Link) -> list[Link]:
        if link.joint.name not in said:
            return [link]
        at = where / "joints" / link.joint.name
        item = said[link.joint.name]
        if item["type"] == "fixed":
            return [replace(link, joint=replace(link.joint, type="fixed", limits=None))]
        parts = parts_of(item["type"], item.get("axes"), at)
        for complaint in left_out(link.joint, parts, at):
            tolerate(complaint, strict)
        return split(link, parts)

    links_now = [each for link in mechanism.links for each in retyped(link)]
    moving = {link.joint.name for link in links_now if link.joint.moves}
    rotors = tuple(
        rotor for rotor in mechanism.rotors if all(name in moving for name, _ in rotor.ratios)
    )
    base = mechanism.base
    return replace(mechanism, links=parents_first(links_now, base, where), rotors=rotors)


def _measured(
    mechanism: Mechanism,
    inertials: Mapping[str, Inertial],
    laws: Mapping[str, Friction],
    where: Place,
) -> Mechanism:
    """The mechanism of a URDF with the bodies and friction that the YAML gives."""
    base = mechanism.base
    names = [base, *(link.name for link in mechanism.links)]
    for name in inertials:
        if name not in names:
            raise unknown((where / "inertials" + ": link").at(name), name, names)
    for name in laws:
        if name not in mechanism.tree_names:
            raise unknown((where / "friction" + ": joint").at(name), name, mechanism.tree_names)
    body = inertials.get(base, mechanism.base_inertial)
    return replace(with_parts(mechanism, inertials, laws), base_inertial=body)


def _tree(said: Mapping[str, Any], where: Place, fallback: str, strict: bool) -> Mechanism:
    convention = said.get("dh_convention", "standard")
    links: list[Link] = []
    rotors: list[Rotor] = []
    before = BASE
    for i, item in enumerate(said.get("links", ())):
        at = where / "links" / i
        entries = mapping(item, LINK.keys, at)
        name = text(entries.get("name"), at / "name")
        at = where.named("link", name)
        link = LINK.known(entries, at)
        for key in ("theta", "alpha"):
            in_radians([float(link.get(key, 0.0))], at / key, strict)
        parent = link.get("parent", before)
        joint = _joint(link, convention, at)
        body = inertial(entries, at)
        made = Link(name, parent, joint, body)
        links += _split(made, link, at) if joint.type in PARTS else [made]
        if "rotor" in link:
            rotors.append(_rotor(entries["rotor"], joint.name, parent, at / "rotor"))
        before = name
    name = text(said.get("robot", fallback), where / "robot")
    body = said.get("base_inertial", Inertial())
    if not body.is_nothing and "base_motion" in said:
        expected = "none: with base_motion the base is a link, which has its own"
        raise wrong(DescriptionError, where / "base_inertial", "a body", expected)
    return Mechanism(
        name, parents_first(links, BASE, where), rotors=tuple(rotors), base_inertial=body
    )


def _split(link: Link, said: Mapping[str, Any], at: Place) -> list[Link]:
    """The links of a joint with several degrees of freedom, with limits and friction by part."""
    joint = link.joint
    parts = parts_of(joint.type, said["joint"].get("axes"), at / "joint")
    if "rotor" in said:
        names = ", ".join(f"{joint.name}_{part}" for part in parts)
        raise wrong(
            DescriptionError,
            at / "rotor",
            f"one motor on a {joint.type} joint",
            f"motors of its parts, under `rotors` at the top level, for {names}",
        )
    laws = mapping(said.get("friction"), parts, at / "friction")
    ends = mapping(said["joint"].get("limits"), parts, at / "joint" / "limits")
    return split(
        link,
        parts,
        friction={part: friction(law, at / "friction" / part) for part, law in laws.items()},
        limits={part: limits(end, at / "joint" / "limits" / part) for part, end in ends.items()},
    )


def _joint(link: Mapping[str, Any], convention: str, at: Place) -> Joint:
    joint = link["joint"]
    kind = joint["type"]
    whole = kind not in PARTS
    if whole and "axes" in joint:
        raise wrong(
            DescriptionError, at / "joint" / "axes", joint["axes"], "none: the joint has one, z"
        )
    # a fixed joint needs no name
    unnamed = f"{link['name']}_fixed" if kind == "fixed" else None
    name = text(joint.get("name", unnamed), at / "joint" / "name")
    theta, d, a, alpha = (link.get(key, 0.0) for key in DH.keys)
    # Rz(theta) Tz(d) commute with the joint's own motion about or along z
    about_z = Pose(exact(rotation_z(theta)), array([0.0, 0.0, d]))
    about_x = Pose(exact(rotation_x(alpha)), array([a, 0.0, 0.0]))
    before = link.get("origin", Pose())
    if convention == "standard":
        before, tail = before @ about_z, about_x
    else:
        before, tail = before @ about_x @ about_z, Pose()
    return Joint(
        name,
        kind,
        origin=before,
        tail=tail,
        friction=friction(link.get("friction"), at / "friction") if whole else Friction(),
        limits=limits(joint.get("limits"), at / "joint" / "limits") if whole else None,
    )


def _rotor(item: Any, name: str, mount: str, at: Place) -> Rotor:
    entries = mapping(item, ROTOR.keys, at)
    said = ROTOR.known(entries, at)
    body = inertial(entries, at)
    if body.mass != 0 and "origin" not in entries:
        raise DescriptionError(
            f"{at}: it has a mass of {body.mass:g} kg but no position; give its `origin` in the "
            f"frame of its mount ({{xyz: [0, 0, 0]}} for the frame's own origin)",
            name=at,
            expected="origin",
        )
    ratios = said.get("gear_ratio", {})
    if not isinstance(ratios, dict):
        ratios = {name: ratios}
    return Rotor(
        name,
        said.get("mount", mount),
        said.get("origin", Pose()),
        tuple(ratios.items()),
        body,
        said.get("friction"),
    )


def _extras(mechanism: Mechanism, said: Mapping[str, Any], where: Place, strict: bool) -> Mechanism:
    """The mechanism with the entries that both kinds of file may have."""
    if "base_motion" in said:
        mechanism = moved_from_outside(mechanism, said["base_motion"], where)
    # entries that are not given here keep the values of the URDF
    kept = ("actuated", "sensed", "gravity", "platform", "home", "near")
    changes = {key: said[key] for key in kept if key in said}
    if "robot" in said:
        changes["name"] = said["robot"]
    if "loops" in said:
        loops = enumerate(said["loops"], 1)
        changes["loops"] = tuple(Loop(**{"name": f"loop{i}", **each}) for i, each in loops)
    changes["rotors"] = _rotors(mechanism, said.get("rotors"), where)
    return _locked(replace(mechanism, **changes), said.get("locked", {}), where, strict)


def _locked(
    mechanism: Mechanism, held: Mapping[str, float], where: Place, strict: bool
) -> Mechanism:
    """The mechanism with the joints under `locked` fixed."""
    for name, value in held.items():
        if name not in mechanism.joint_names:
            raise unknown((where / "locked" + ": joint").at(name), name, mechanism.joint_names)
        for complaint in position(mechanism.joint(name), value, where / "locked" / name):
            tolerate(complaint, strict)
        there = float(mechanism.home.get(name, value))
        if abs(there - value) > SAME_PLACE:
            raise wrong(
                DescriptionError,
                where / "home" / name,
                there,
                f"{value:g}, at which it is locked",
            )
    home = {name: value for name, value in mechanism.home.items() if name not in held}
    return with_locked_joints(replace(mechanism, home=home), held)


def _rotors(mechanism: Mechanism, listed: Any, where: Place) -> tuple[Rotor, ...]:
    """Rotors named after their joint, or with a name of their own and a mapping of ratios."""
    rotors = {rotor.name: rotor for rotor in mechanism.rotors}
    joints = {link.joint.name: link for link in mechanism.links}
    for name, item in mapping(listed, listed or (), where / "rotors").items():
        at = where.named("rotor", name)
        known = rotors.get(name)
        driven = joints.get(name)
        mount = known.mount if known else driven.parent if driven else None
        if mount is None and not (isinstance(item, dict) and "mount" in item):
            raise wrong(
                DescriptionError,
                at / "mount",
                None,
                "the link that carries the motor (the rotor is not named after a joint, so there "
                "is no default)",
            )
        rotor = _rotor(item, name, mount or BASE, at)
        if not rotor.ratios and known:  # the ratio is given by the URDF's transmission
            rotor = replace(rotor, ratios=known.ratios)
        rotors[name] = rotor
    for name, rotor in rotors.items():
        if not rotor.ratios:
            at = where.named("rotor", name) / "gear_ratio"
            raise wrong(DescriptionError, at, rotor.ratios, "the ratio of at least one joint")
    return tuple(rotors.values())
