# SPDX-License-Identifier: Apache-2.0
"""The package's own description: a Denavit–Hartenberg tree, or extras beside a URDF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DescriptionError, choices, wrong
from ..mechanism import (
    BASE,
    JOINT_TYPES,
    Attachment,
    Friction,
    Inertial,
    Joint,
    Link,
    Loop,
    Mechanism,
    Pose,
    Rotor,
)
from ..mechanism.transform import with_locked_joints
from ..scalar import Array, array, exact, rotation_x, rotation_z
from . import formats
from .check import Origins, position, things
from .compound import PARTS, left_out, moved_from_outside, parts_of, split
from .fields import (
    friction,
    inertial,
    limits,
    mapping,
    number,
    numbers,
    pose,
    sequence,
    text,
    tolerate,
    unknown,
)
from .files import LONGEST_PATH, find, read_text
from .notation import in_numbers
from .order import parents_first
from .yaml_text import plain

COMMON_KEYS = (
    "robot", "gravity", "rotors", "loops", "actuated", "sensed", "platform", "home", "near",
    "locked", "base_motion",
)  # fmt: skip
TREE_KEYS = (*COMMON_KEYS, "dh_convention", "links", "symbols")
URDF_KEYS = (*COMMON_KEYS, "urdf", "joints", "friction", "inertials")
BODY_KEYS = ("mass", "center_of_mass", "inertia")
DH_KEYS = ("theta", "d", "a", "alpha")
LINK_KEYS = ("name", "parent", "origin", "joint", *DH_KEYS, *BODY_KEYS, "friction", "rotor")
JOINT_KEYS = ("name", "type", "axes", "limits")
ROTOR_KEYS = ("mount", "origin", "gear_ratio", *BODY_KEYS)
DH_CONVENTIONS = ("standard", "modified")
SAME_PLACE = 1e-5
"""rad or m: how far `home` of a joint may be from where it is `locked`"""


def read(path: Path, *, strict: bool = False) -> tuple[Mechanism, Origins]:
    """The mechanism of a YAML file, and what in it comes from another file.

    Raises:
        DescriptionError: naming the file, the key and the value.
    """
    where = path.name
    content = plain(read_text(path), where)
    if not isinstance(content, dict):
        raise wrong(DescriptionError, where, content, "a mapping with `links` or `urdf`")
    if "urdf" not in content:
        entries = mapping(content, TREE_KEYS, where)
        entries, symbols, notation = in_numbers(entries, where)
        tree = replace(_tree(entries, where, path.stem), symbols=symbols, notation=notation)
        return _extras(tree, entries, where, strict), {}
    entries = mapping(content, URDF_KEYS, where)
    at = f"{where}: urdf"
    reference = text(entries["urdf"], at, LONGEST_PATH)
    try:
        file = find(reference, beside=path.parent)
    except DescriptionError as error:
        words = f"{at}: {error}"
        raise DescriptionError(words, name=at, value=reference, expected=error.expected) from None
    mechanism = _retyped(formats.read(file, strict=strict), entries.get("joints"), where, strict)
    mechanism = _measured(mechanism, entries, where)
    found = _extras(mechanism, entries, where, strict)
    own = {
        *(("link", name) for name in entries.get("inertials") or ()),
        *(("joint", name) for name in entries.get("friction") or ()),
        *(("rotor", name) for name in entries.get("rotors") or ()),
    }
    origins = {key: file.name for key in things(mechanism) if key not in own}
    return found, origins


def _retyped(mechanism: Mechanism, listed: Any, where: str, strict: bool) -> Mechanism:
    """A URDF's joints of which the YAML beside it says that they have more degrees of freedom."""
    said = mapping(listed, listed or (), f"{where}: joints")
    links = {link.joint.name: link for link in mechanism.links}
    for name in said:
        if name not in links:
            raise unknown(f"{where}: joints: joint", name, links)
        followed = [
            other.joint.name
            for other in mechanism.links
            if other.joint.coupling and name in dict(other.joint.coupling.ratios)
        ]
        if links[name].joint.coupling or followed:
            with_whom = ", ".join(followed) or "it mimics another"
            raise wrong(
                DescriptionError, f"{where}: joints.{name}", f"a <mimic> ({with_whom})", "none"
            )

    def retyped(link: Link) -> list[Link]:
        if link.joint.name not in said:
            return [link]
        at = f"{where}: joints.{link.joint.name}"
        item = said[link.joint.name]
        entries = {"type": item} if isinstance(item, str) else mapping(item, ("type", "axes"), at)
        kind = entries.get("type")
        if kind == "fixed":
            return [replace(link, joint=replace(link.joint, type="fixed", limits=None))]
        if not isinstance(kind, str) or kind not in PARTS:
            raise wrong(DescriptionError, f"{at}: type", kind, choices((*PARTS, "fixed")))
        parts = parts_of(kind, entries.get("axes"), at)
        for complaint in left_out(link.joint, parts, at):
            tolerate(complaint, strict)
        return split(link.name, link.parent, link.joint, link.inertial, parts)

    links_now = [each for link in mechanism.links for each in retyped(link)]
    moving = {link.joint.name for link in links_now if link.joint.moves}
    rotors = tuple(
        rotor for rotor in mechanism.rotors if all(name in moving for name, _ in rotor.ratios)
    )
    base = mechanism.base
    return replace(mechanism, links=parents_first(links_now, base, where), rotors=rotors)


def _measured(mechanism: Mechanism, entries: Mapping[str, Any], where: str) -> Mechanism:
    """Bodies and friction of a URDF's links and joints, replaced by those beside it."""
    inertials, laws = (
        mapping(entries.get(key), entries.get(key) or (), f"{where}: {key}")
        for key in ("inertials", "friction")
    )
    names = [link.name for link in mechanism.links]
    for name in inertials:
        if name not in names:
            raise unknown(f"{where}: inertials: link", name, names)
    for name in laws:
        if name not in mechanism.tree_names:
            raise unknown(f"{where}: friction: joint", name, mechanism.tree_names)

    def replaced(link: Link) -> Link:
        if link.name in inertials:
            at = f"{where}: inertials.{link.name}"
            body = inertial(mapping(inertials[link.name], BODY_KEYS, at), at)
            link = replace(link, inertial=body)
        if link.joint.name in laws:
            law = friction(laws[link.joint.name], f"{where}: friction.{link.joint.name}")
            link = replace(link, joint=replace(link.joint, friction=law))
        return link

    return replace(mechanism, links=tuple(replaced(link) for link in mechanism.links))


def _tree(entries: Mapping[str, Any], where: str, fallback: str) -> Mechanism:
    convention = entries.get("dh_convention", "standard")
    if convention not in DH_CONVENTIONS:
        raise wrong(
            DescriptionError, f"{where}: dh_convention", convention, choices(DH_CONVENTIONS)
        )
    links: list[Link] = []
    rotors: list[Rotor] = []
    before = BASE
    for i, item in enumerate(sequence(entries.get("links"), f"{where}: links")):
        at = f"{where}: links[{i}]"
        link_entries = mapping(item, LINK_KEYS, at)
        name = text(link_entries.get("name"), f"{at}.name")
        at = f"{where}: link {name!r}"
        parent = text(link_entries.get("parent", before), f"{at}: parent")
        joint = _joint(link_entries, convention, at)
        body = inertial(link_entries, at)
        if joint.type in PARTS:
            links += _split(name, parent, joint, body, link_entries, at)
        else:
            links.append(Link(name, parent, joint, body))
        if link_entries.get("rotor") is not None:
            rotors.append(_rotor(link_entries["rotor"], joint.name, parent, f"{at}: rotor"))
        before = name
    name = text(entries.get("robot", fallback), f"{where}: robot")
    return Mechanism(name, parents_first(links, BASE, where), rotors=tuple(rotors))


def _split(
    link: str, parent: str, joint: Joint, body: Inertial, entries: Mapping[str, Any], at: str
) -> list[Link]:
    """A joint of several degrees of freedom, its limits and friction given by part."""
    said = mapping(entries["joint"], JOINT_KEYS, f"{at}: joint")
    parts = parts_of(joint.type, said.get("axes"), f"{at}: joint")
    if entries.get("rotor") is not None:
        names = ", ".join(f"{joint.name}_{part}" for part in parts)
        raise wrong(
            DescriptionError,
            f"{at}: rotor",
            f"one motor on a {joint.type} joint",
            f"motors of its parts, under `rotors` at the top, by the names {names}",
        )
    laws = mapping(entries.get("friction"), parts, f"{at}: friction")
    ends = mapping(said.get("limits"), parts, f"{at}: joint.limits")
    return split(
        link,
        parent,
        joint,
        body,
        parts,
        friction={part: friction(law, f"{at}: friction.{part}") for part, law in laws.items()},
        limits={part: limits(end, f"{at}: joint.limits.{part}") for part, end in ends.items()},
    )


def _joint(entries: Mapping[str, Any], convention: str, at: str) -> Joint:
    joint = mapping(entries.get("joint"), JOINT_KEYS, f"{at}: joint")
    kind = joint.get("type")
    if kind not in (*JOINT_TYPES, *PARTS):
        raise wrong(DescriptionError, f"{at}: joint.type", kind, choices((*JOINT_TYPES, *PARTS)))
    whole = kind not in PARTS
    if whole and "axes" in joint:
        raise wrong(
            DescriptionError, f"{at}: joint.axes", joint["axes"], "none: the joint has one, z"
        )
    # a fixed joint moves nothing, so that nobody need name it
    unnamed = f"{entries['name']}_fixed" if kind == "fixed" else None
    name = text(joint.get("name", unnamed), f"{at}: joint.name")
    theta, d, a, alpha = (number(entries.get(key, 0.0), f"{at}: {key}") for key in DH_KEYS)
    # Rz(theta) Tz(d) commute with the joint's own motion about or along z
    about_z = Pose(exact(rotation_z(theta)), array([0.0, 0.0, d]))
    about_x = Pose(exact(rotation_x(alpha)), array([a, 0.0, 0.0]))
    before = pose(entries.get("origin"), f"{at}: origin")
    if convention == "standard":
        before, tail = before @ about_z, about_x
    else:
        before, tail = before @ about_x @ about_z, Pose()
    return Joint(
        name,
        kind,
        origin=before,
        tail=tail,
        friction=friction(entries.get("friction"), f"{at}: friction") if whole else Friction(),
        limits=limits(joint.get("limits"), f"{at}: joint.limits") if whole else None,
    )


def _rotor(item: Any, name: str, mount: str, at: str, joint: str | None = None) -> Rotor:
    entries = mapping(item, ROTOR_KEYS, at)
    body = inertial(entries, at)
    if body.mass != 0 and "origin" not in entries:
        raise DescriptionError(
            f"{at}: it has a mass of {body.mass:g} kg but no place; give its `origin` in the "
            f"frame of its mount ({{xyz: [0, 0, 0]}} for the frame's own origin)",
            name=at,
            expected="origin",
        )
    ratio = entries.get("gear_ratio")
    if isinstance(ratio, dict):
        ratios = tuple(
            (text(key, f"{at}: gear_ratio"), number(value, f"{at}: gear_ratio.{key}"))
            for key, value in ratio.items()
        )
    elif ratio is None:
        ratios = ()
    else:
        ratios = ((joint or name, number(ratio, f"{at}: gear_ratio")),)
    return Rotor(
        name,
        text(entries.get("mount", mount), f"{at}: mount"),
        pose(entries.get("origin"), f"{at}: origin"),
        ratios,
        body,
    )


def _extras(
    mechanism: Mechanism, entries: Mapping[str, Any], where: str, strict: bool
) -> Mechanism:
    """What both kinds of file may say beside the bodies."""
    if entries.get("base_motion") is not None:
        joint = text(entries["base_motion"], f"{where}: base_motion")
        mechanism = moved_from_outside(mechanism, joint, where)
    # what is not said here stays as the file beside has it
    changes: dict[str, Any] = {
        key: tuple(
            text(name, f"{where}: {key}") for name in sequence(entries[key], f"{where}: {key}")
        )
        for key in ("actuated", "sensed")
        if entries.get(key) is not None
    }
    if "robot" in entries:
        changes["name"] = text(entries["robot"], f"{where}: robot")
    if "gravity" in entries:
        changes["gravity"] = numbers(entries["gravity"], 3, f"{where}: gravity")
    if entries.get("platform") is not None:
        changes["platform"] = text(entries["platform"], f"{where}: platform")
    for key, read_one in (("home", number), ("near", _near)):
        if (given := entries.get(key)) is not None:
            changes[key] = {
                name: read_one(value, f"{where}: {key}.{name}")
                for name, value in mapping(given, given, f"{where}: {key}").items()
            }
    if entries.get("loops") is not None:
        changes["loops"] = tuple(
            _loop(item, i, where)
            for i, item in enumerate(sequence(entries["loops"], f"{where}: loops"))
        )
    changes["rotors"] = _rotors(mechanism, entries.get("rotors"), where)
    return _locked(replace(mechanism, **changes), entries.get("locked"), where, strict)


def _near(value: Any, where: str) -> float | Array | Pose:
    """A joint's position, or a link's place or pose."""
    if not isinstance(value, Mapping):
        return number(value, where)
    place = pose(mapping(value, ("xyz", "rpy"), where), where)
    if "xyz" not in value:
        raise wrong(DescriptionError, where, dict(value), "xyz, or xyz and rpy")
    return place if "rpy" in value else place.translation


def _locked(mechanism: Mechanism, listed: Any, where: str, strict: bool) -> Mechanism:
    """Joints held fixed, as described."""
    held = {
        name: number(value, f"{where}: locked.{name}")
        for name, value in mapping(listed, listed or (), f"{where}: locked").items()
    }
    for name, value in held.items():
        if name not in mechanism.joint_names:
            raise unknown(f"{where}: locked: joint", name, mechanism.joint_names)
        for complaint in position(mechanism.joint(name), value, f"{where}: locked.{name}"):
            tolerate(complaint, strict)
        there = float(mechanism.home.get(name, value))
        if abs(there - value) > SAME_PLACE:
            raise wrong(
                DescriptionError, f"{where}: home.{name}", there, f"{value:g}, where it is locked"
            )
    home = {name: value for name, value in mechanism.home.items() if name not in held}
    return with_locked_joints(replace(mechanism, home=home), held)


def _rotors(mechanism: Mechanism, listed: Any, where: str) -> tuple[Rotor, ...]:
    """Rotors by the name of their joint, or by a name of their own with a mapping of ratios."""
    rotors = {rotor.name: rotor for rotor in mechanism.rotors}
    joints = {link.joint.name: link for link in mechanism.links}
    for name, item in mapping(listed, listed or (), f"{where}: rotors").items():
        at = f"{where}: rotor {name!r}"
        known = rotors.get(name)
        driven = joints.get(name)
        mount = known.mount if known else driven.parent if driven else None
        if mount is None and not (isinstance(item, dict) and "mount" in item):
            raise wrong(
                DescriptionError,
                f"{at}: mount",
                None,
                "the link that carries the motor (it is not the name of a joint, whose parent "
                "would be taken)",
            )
        rotor = _rotor(item, name, mount or BASE, at)
        if not rotor.ratios and known:  # the description's transmission knows it
            rotor = replace(rotor, ratios=known.ratios)
        rotors[name] = rotor
    for name, rotor in rotors.items():
        if not rotor.ratios:
            at = f"{where}: rotor {name!r}: gear_ratio"
            raise wrong(DescriptionError, at, rotor.ratios, "the ratio of at least one joint")
    return tuple(rotors.values())


def _loop(item: Any, i: int, where: str) -> Loop:
    at = f"{where}: loops[{i}]"
    entries = mapping(item, ("name", "type", "predecessor", "successor"), at)
    name = text(entries.get("name", f"loop{i + 1}"), f"{at}.name")
    sides = []
    for side in ("predecessor", "successor"):
        frame = mapping(entries.get(side), ("link", "xyz", "rpy"), f"{at}.{side}")
        link = text(frame.get("link"), f"{at}.{side}.link")
        placed = {key: frame[key] for key in ("xyz", "rpy") if key in frame}
        sides.append(Attachment(link, pose(placed, f"{at}.{side}")))
    return Loop(name, text(entries.get("type"), f"{at}.type"), *sides)
