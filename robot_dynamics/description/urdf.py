# SPDX-License-Identifier: Apache-2.0
"""Conversion of URDF and xacro to a mechanism, by urdf_parser_py.

Everything except links, inertials, joints and transmissions is removed before parsing: visuals and
meshes are never read, and the parser, which prints unknown elements, finds none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from lxml import etree

from ..errors import DescriptionError, Place, choices, one_line, wrong
from ..mechanism import (
    Coupling,
    Friction,
    Inertial,
    Joint,
    Limits,
    Link,
    Mechanism,
    Pose,
    Rotor,
)
from ..mechanism.mechanism import inertia_matrix
from ..scalar import array, rotation_to
from .compound import PARTS, left_out, split
from .fields import number, numbers, tolerate
from .fields import text as text_of
from .mimics import mimicking
from .order import no_name_twice, parents_first
from .records import LIMITS, limits
from .transmissions import gear_ratios
from .xacro_process import read_urdf
from .xml_text import parsed

# limits are read separately, as they are often incomplete, which the parser refuses
KEPT = {
    "link": ("inertial",),
    "joint": ("parent", "child", "origin", "axis", "mimic", "dynamics"),
}
NAMING = {"link": ("name",), "joint": ("name", "type")}
BODY = ("origin", "mass", "inertia")
NEEDED = {"link": (), "joint": ("parent", "child"), "inertial": ("mass",)}
NAMES = {"parent": ("link",), "child": ("link",), "mimic": ("joint",)}
"""The attributes with a name, by element"""
NUMBERS: Mapping[str, Mapping[str, int]] = {
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), 1),
    "dynamics": {"damping": 1, "friction": 1},
    "mimic": {"multiplier": 1, "offset": 1},
}
"""How many numbers each attribute has, by element"""
MAY_LACK = ("origin", "dynamics", "mimic")
"""Elements whose numbers each have a default"""
SUPPORTED = ("revolute", "continuous", "prismatic", "fixed")
COMPOUND = ("planar", "floating")
WITHOUT_AXIS = ("fixed", "floating")


def read(source: Path | str, where: str, *, strict: bool = False) -> Mechanism:
    """The mechanism of a .urdf or .xacro file, or of a URDF text.

    Links are in the file's order, but parents first. `<mimic>` joints follow others, and gear
    ratios of transmissions become rotors without mass.

    Args:
        source: the path, or the text.
        where: how messages refer to it.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: an invalid description; the message names `where`, the link or joint, and
            what was expected.

    Warns:
        DescriptionWarning: a joint that mimics a missing one; it becomes independent.
    """
    where = Place(where)
    root = parsed(read_urdf(source) if isinstance(source, Path) else source, where)
    bounds = _limits(root, where)
    ratios = gear_ratios(root, where)
    robot = _parsed(_kept(root, where), where)

    inertials = {link.name: _inertial(link) for link in robot.links}
    no_name_twice((link.name for link in robot.links), where + ": link")
    no_name_twice((joint.name for joint in robot.joints), where + ": joint")
    _check_ends(robot.joints, inertials, where)
    links = [
        link
        for joint in robot.joints
        for link in _links(joint, bounds.get(joint.name), inertials[joint.child], where, strict)
    ]
    base = _base(inertials, robot.joints, where)
    joints = mimicking({link.joint.name: link.joint for link in links}, where, strict)
    links = [Link(link.name, link.parent, joints[link.joint.name], link.inertial) for link in links]
    return Mechanism(
        text_of(robot.name or "robot", where + ": robot name"),
        parents_first(links, base, where),
        base=base,
        base_inertial=inertials[base],
        rotors=_rotors(ratios, links),
    )


def _check_ends(joints: list[Any], links: Collection[str], where: Place) -> None:
    """Check that every joint connects two links, and that at most one joint carries each link."""
    carried: dict[str, str] = {}
    for joint in joints:
        at = where.named("joint", joint.name)
        for side, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                raise wrong(DescriptionError, at / side + " link", name, "a link of this robot")
        if joint.child in carried:
            raise wrong(
                DescriptionError,
                at / "child" + " link",
                joint.child,
                f"a link with no parent yet (it is joint {carried[joint.child]!r}'s child); "
                "close chains with `loops` in a YAML file next to the URDF",
            )
        carried[joint.child] = joint.name


def _links(
    joint: Any, bounds: Limits | None, body: Inertial, where: Place, strict: bool
) -> list[Link]:
    """The joint's link, after massless links if the joint has several degrees of freedom."""
    at = where.named("joint", joint.name)
    made = _joint(joint, bounds, at)
    if joint.type not in COMPOUND:
        return [Link(joint.child, joint.parent, made, body)]
    if made.coupling is not None:
        raise wrong(DescriptionError, at / "mimic", joint.type, "a joint of one degree of freedom")
    parts = PARTS[joint.type]
    for complaint in left_out(made, parts, at):
        tolerate(complaint, strict)
    # the axis of a planar joint is the plane's normal
    frame = rotation_to(made.axis) if joint.type == "planar" else None
    return split(joint.child, joint.parent, made, body, parts, frame=frame)


def _base(inertials: Mapping[str, Inertial], joints: list[Any], where: Place) -> str:
    """The link that no joint carries. It is the mechanism's base, not one of its `links`."""
    if not inertials:
        expected = "at least one (a file of xacro macros has none: pass the file that calls them)"
        raise wrong(DescriptionError, where + ": links", "none", expected)
    roots = set(inertials) - {joint.child for joint in joints}
    if len(roots) != 1:
        found = ", ".join(repr(name) for name in sorted(roots)) or "none"
        raise wrong(DescriptionError, where + ": root link", found, "one link without a parent")
    return roots.pop()


def _rotors(
    ratios: Mapping[str, tuple[tuple[str, float], ...]], links: list[Link]
) -> tuple[Rotor, ...]:
    """Rotors with the transmissions' gear ratios, massless, on the parent of the first joint."""
    parents = {
        link.joint.name: link.parent
        for link in links
        if link.joint.moves and link.joint.coupling is None
    }
    return tuple(
        Rotor(name, parents[shaft[0][0]], Pose(), shaft, Inertial())
        for name, shaft in ratios.items()
        if all(joint in parents for joint, _ in shaft)
    )


def _limits(root: etree._Element, where: Place) -> dict[str, Limits | None]:
    """The joints' limits from their <limit> elements; continuous joints have no position limits."""
    found = {}
    for joint in root.iterfind("joint"):
        for element in joint.iterfind("limit"):
            said = {key: element.get(key) for key in LIMITS.keys if element.get(key) is not None}
            if joint.get("type") == "continuous":
                said.pop("lower", None), said.pop("upper", None)
            elif "lower" in said or "upper" in said:
                said = {"lower": "0", "upper": "0"} | said
            name = joint.get("name")
            found[name] = limits(said, where.named("joint", str(name)) / "limit")
    return found


def _kept(root: etree._Element, where: Place) -> etree._Element:
    """A copy with only the elements that dynamics needs."""
    copy = etree.Element("robot", name=root.get("name") or "robot")
    for element in root:
        if element.tag not in KEPT:
            continue
        # only the robot's own joints are visited, not the <joint> elements of transmissions
        at = _named(element, where)
        _once(element, where)
        _check_axis(element, where)
        kept = etree.SubElement(
            copy,
            element.tag,
            {key: element.get(key) for key in NAMING[element.tag]},
        )
        for child in element:
            unused = child.tag == "axis" and element.get("type") in WITHOUT_AXIS
            if child.tag in KEPT[element.tag] and not unused:
                kept.append(_plain(child, at))
        _complete(kept, at)
    return copy


def _named(element: etree._Element, where: Place) -> Place:
    """The place of a link or joint, which must have a name, and a joint a known type."""
    at = where.named(element.tag, text_of(element.get("name"), where + f": {element.tag} name"))
    types = (*SUPPORTED, *COMPOUND)
    if element.tag == "joint" and element.get("type") not in types:
        raise wrong(DescriptionError, at / "type", element.get("type"), choices(types))
    return at


def _complete(element: etree._Element, at: Place) -> None:
    """Refuse an element that lacks a required child."""
    for tag in NEEDED[element.tag]:
        if element.find(tag) is None:
            raise wrong(DescriptionError, at / tag, None, f"a <{tag}>")


def _once(element: etree._Element, where: Place) -> None:
    """Refuse an element that appears twice, as it is ambiguous which one applies."""
    for part in (element, *element.iterfind("inertial")):
        tags = Counter(child.tag for child in part if isinstance(child.tag, str))
        for tag in (*KEPT[element.tag], "limit", *BODY):
            if tags[tag] > 1:
                at = where.named(element.tag, str(element.get("name"))) + f": <{tag}>"
                raise wrong(DescriptionError, at.at(tag), f"{tags[tag]} of them", "one")


def _check_axis(joint: etree._Element, where: Place) -> None:
    """Refuse an <axis> without `xyz` of a moving joint."""
    axis = joint.find("axis")
    if axis is not None and axis.get("xyz") is None and joint.get("type") not in WITHOUT_AXIS:
        at = where.named("joint", str(joint.get("name"))) + ": <axis>"
        raise wrong(DescriptionError, at.at("axis"), "no xyz", "three numbers, such as xyz='0 0 1'")


def _plain(element: etree._Element, at: Place) -> etree._Element:
    """The element with only the attributes that URDF defines, as the parser would print the others;
    their numbers are read here, where their places are known."""
    at /= element.tag
    copy = etree.Element(element.tag)
    for key in NAMES.get(element.tag, ()):
        copy.set(key, text_of(element.get(key), at / key))
    for key, count in NUMBERS.get(element.tag, {}).items():
        found = element.get(key)
        if found is None and element.tag in MAY_LACK:
            continue
        read = numbers(found, 3, at / key) if count == 3 else [number(found, at / key)]
        copy.set(key, " ".join(repr(float(x)) for x in read))
    if element.tag == "inertial":
        copy.extend(_plain(child, at) for child in element if child.tag in BODY)
        _complete(copy, at)
    return copy


def _parsed(root: etree._Element, where: Place) -> Any:
    from urdf_parser_py.urdf import URDF

    try:
        return URDF.from_xml_string(etree.tostring(root))
    except Exception as error:  # noqa: BLE001  the parser raises many kinds
        told = one_line(error, 300)
        raise DescriptionError(f"{where}: not a valid URDF: {told}", name=where) from None


def _inertial(link: Any) -> Inertial:
    if link.inertial is None:
        return Inertial()
    moments = link.inertial.inertia
    keys = NUMBERS["inertia"]
    tensor = inertia_matrix(*(getattr(moments, key) if moments else 0.0 for key in keys))
    body = Inertial(link.inertial.mass, array([0.0, 0.0, 0.0]), tensor)
    return body.seen_from(_pose(link.inertial.origin))


def _pose(origin: Any) -> Pose:
    if origin is None:
        return Pose()
    return Pose.from_xyz_rpy(array(origin.xyz or [0.0] * 3), array(origin.rpy or [0.0] * 3))


def _joint(joint: Any, bounds: Limits | None, at: Place) -> Joint:
    axis = array(joint.axis or [1.0, 0.0, 0.0])
    length = float((axis @ axis) ** 0.5)
    if joint.type != "fixed" and length == 0:
        raise wrong(DescriptionError, at / "axis", axis.tolist(), "a vector other than 0")
    law, mimic = joint.dynamics, joint.mimic
    coupling = None
    if mimic is not None and joint.type != "fixed":
        ratio = 1.0 if mimic.multiplier is None else mimic.multiplier
        coupling = Coupling(((mimic.joint, ratio),), mimic.offset or 0.0)
    return Joint(
        joint.name,
        joint.type,
        limits=bounds,
        origin=_pose(joint.origin),
        axis=axis / length if length else axis,
        friction=Friction(law.damping or 0.0, law.friction or 0.0) if law else Friction(),
        coupling=coupling,
    )
