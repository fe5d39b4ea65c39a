# SPDX-License-Identifier: Apache-2.0
"""Conversion of URDF and xacro to a mechanism.

Only links, inertials, joints and transmissions are read: no visual, and no mesh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from lxml import etree

from ..errors import DescriptionError, Place, choices, wrong
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
from ..mechanism.bodies import inertia_matrix
from ..scalar import Array, array, rotation_to, zeros
from .compound import PARTS, left_out, split
from .extensions import report_left_out
from .fields import WORLD, in_radians, number, numbers, tolerate
from .fields import text as text_of
from .mimics import mimicking
from .order import no_name_twice, parents_first
from .records import LIMITS, limits
from .transmissions import gear_ratios
from .xacro_process import read_urdf
from .xml_text import parsed

READ = {
    "link": ("inertial",),
    "joint": ("parent", "child", "origin", "axis", "mimic", "dynamics", "limit"),
}
"""The elements that are read, and which of their children"""
BODY = ("origin", "mass", "inertia")
MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
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
        DescriptionWarning: a joint that mimics a missing one; it becomes independent. Or an angle
            that is probably in degrees, or limits out of order or an element of Gazebo or Drake,
            which are left out.
    """
    where = Place(where)
    root = parsed(read_urdf(source) if isinstance(source, Path) else source, where)
    report_left_out(root, where, strict)
    ratios = gear_ratios(root, where, strict)
    bodies: list[tuple[str, Inertial]] = []
    carried: list[Link] = []
    for element in root:
        if element.tag not in READ:
            continue
        # only the robot's own joints are visited, not the <joint> elements of transmissions
        name = text_of(element.get("name"), where + f": {element.tag} name")
        at = where.named(element.tag, name)
        _once(element, at)
        if element.tag == "link":
            bodies.append((name, _inertial(element, at, strict)))
        else:
            carried.append(_carried(element, name, at, strict))
    no_name_twice((name for name, _ in bodies), where + ": link")
    no_name_twice((link.joint.name for link in carried), where + ": joint")
    inertials = dict(bodies)
    _check_ends(carried, inertials, where)
    links = [
        each
        for link in carried
        for each in _links(replace(link, inertial=inertials[link.name]), where, strict)
    ]
    base = _base(inertials, carried, where)
    joints = mimicking({link.joint.name: link.joint for link in links}, where, strict)
    links = [replace(link, joint=joints[link.joint.name]) for link in links]
    return Mechanism(
        text_of(root.get("name") or "robot", where + ": robot name"),
        parents_first(links, base, where),
        base=base,
        base_inertial=inertials[base],
        rotors=_rotors(ratios, links),
    )


def _check_ends(carried: list[Link], links: Collection[str], where: Place) -> None:
    """Check that every joint connects two links, and that at most one joint carries each link."""
    carriers: dict[str, str] = {}
    for link in carried:
        at = where.named("joint", link.joint.name)
        for side, name in (("parent", link.parent), ("child", link.name)):
            if name not in links:
                expected = "a link of this robot"
                if name == WORLD:  # some programs need no such element
                    expected += f'; declare it: <link name="{WORLD}"/>'
                raise wrong(DescriptionError, at / side + " link", name, expected)
        if link.name in carriers:
            raise wrong(
                DescriptionError,
                at / "child" + " link",
                link.name,
                f"a link with no parent yet (it is joint {carriers[link.name]!r}'s child); "
                "close chains with `loops` in a YAML file next to the URDF",
            )
        carriers[link.name] = link.joint.name


def _links(link: Link, where: Place, strict: bool) -> list[Link]:
    """The link, after massless ones if its joint has several degrees of freedom."""
    joint = link.joint
    if joint.type not in COMPOUND:
        return [link]
    at = where.named("joint", joint.name)
    if joint.coupling is not None:
        raise wrong(DescriptionError, at / "mimic", joint.type, "a joint of one degree of freedom")
    parts = PARTS[joint.type]
    for complaint in left_out(joint, parts, at):
        tolerate(complaint, strict)
    # the axis of a planar joint is the plane's normal
    frame = rotation_to(joint.axis) if joint.type == "planar" else None
    return split(link, parts, frame=frame)


def _base(inertials: Mapping[str, Inertial], carried: list[Link], where: Place) -> str:
    """The link that no joint carries. It is the mechanism's base, not one of its `links`."""
    if not inertials:
        expected = "at least one (a file of xacro macros has none: pass the file that calls them)"
        raise wrong(DescriptionError, where + ": links", "none", expected)
    roots = set(inertials) - {link.name for link in carried}
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


def _once(element: etree._Element, at: Place) -> None:
    """Refuse an element that appears twice, as it is ambiguous which one applies."""
    for part in (element, *element.iterfind("inertial")):
        tags = Counter(child.tag for child in part if isinstance(child.tag, str))
        for tag in (*READ[element.tag], "limit", *BODY):
            if tags[tag] > 1:
                place = (at + f": <{tag}>").at(tag)
                raise wrong(DescriptionError, place, f"{tags[tag]} of them", "one")


def _inertial(link: etree._Element, at: Place, strict: bool) -> Inertial:
    element = link.find("inertial")
    if element is None:
        return Inertial()
    at /= "inertial"
    mass = number(_needed(element, "mass", at).get("value"), at / "mass" / "value")
    moments = element.find("inertia")
    tensor = (
        inertia_matrix(*(number(moments.get(key), at / "inertia" / key) for key in MOMENTS))
        if moments is not None
        else zeros(3, 3)
    )
    return Inertial(mass, zeros(3), tensor).seen_from(_origin(element, at, strict))


def _carried(element: etree._Element, name: str, at: Place, strict: bool) -> Link:
    """The link that a joint carries, still without its body."""
    kind = element.get("type")
    types = (*SUPPORTED, *COMPOUND)
    if kind not in types:
        raise wrong(DescriptionError, at / "type", kind, choices(types))
    parent, child = (
        text_of(_needed(element, side, at).get("link"), at / side / "link")
        for side in ("parent", "child")
    )
    viscous, coulomb = (
        _number(element, "dynamics", key, 0.0, at) for key in ("damping", "friction")
    )
    joint = Joint(
        name,
        kind,
        limits=_limits(element, at, strict),
        origin=_origin(element, at, strict),
        axis=_axis(element, at),
        friction=Friction(viscous, coulomb),
        coupling=_coupling(element, at),
    )
    return Link(child, parent, joint)


def _limits(joint: etree._Element, at: Place, strict: bool) -> Limits | None:
    """The limits from a <limit> element; continuous joints have no position limits."""
    element = joint.find("limit")
    if element is None:
        return None
    said = {key: element.get(key) for key in LIMITS.keys if element.get(key) is not None}
    if joint.get("type") == "continuous":
        said.pop("lower", None), said.pop("upper", None)
    elif "lower" in said or "upper" in said:
        said = {"lower": "0", "upper": "0"} | said
    return limits(said, at / "limit", strict)


def _axis(joint: etree._Element, at: Place) -> Array:
    """The axis (3,) of length 1; that of a joint without an axis of its own does not matter."""
    element = joint.find("axis")
    if element is None or joint.get("type") in WITHOUT_AXIS:
        return array([1.0, 0.0, 0.0])
    xyz = element.get("xyz")
    if xyz is None:
        place = (at + ": <axis>").at("axis")
        raise wrong(DescriptionError, place, "no xyz", "three numbers, such as xyz='0 0 1'")
    axis = numbers(xyz, 3, at / "axis" / "xyz")
    length = float((axis @ axis) ** 0.5)
    if length == 0:
        raise wrong(DescriptionError, at / "axis", axis.tolist(), "a vector other than 0")
    return axis / length


def _coupling(joint: etree._Element, at: Place) -> Coupling | None:
    mimic = joint.find("mimic")
    if mimic is None:
        return None
    master = text_of(mimic.get("joint"), at / "mimic" / "joint")
    ratio, offset = (
        _number(joint, "mimic", key, usual, at)
        for key, usual in (("multiplier", 1.0), ("offset", 0.0))
    )
    return None if joint.get("type") == "fixed" else Coupling(((master, ratio),), offset)


def _origin(element: etree._Element, at: Place, strict: bool) -> Pose:
    origin = element.find("origin")
    if origin is None:
        return Pose()
    xyz, rpy = (numbers(origin.get(key, "0 0 0"), 3, at / "origin" / key) for key in ("xyz", "rpy"))
    in_radians(rpy, at / "origin" / "rpy", strict)
    return Pose.from_xyz_rpy(xyz, rpy)


def _number(element: etree._Element, tag: str, key: str, usual: float, at: Place) -> float:
    """The number in an attribute of a child element; `usual` if there is none."""
    child = element.find(tag)
    found = None if child is None else child.get(key)
    return usual if found is None else number(found, at / tag / key)


def _needed(element: etree._Element, tag: str, at: Place) -> etree._Element:
    """The child element, which must not be missing."""
    found = element.find(tag)
    if found is None:
        raise wrong(DescriptionError, at / tag, None, f"a <{tag}>")
    return found
