# SPDX-License-Identifier: Apache-2.0
"""Conversion of SDF to a mechanism: a file's single model with frames, loops and mimic joints.

The poses of links are those with all joints at 0. A joint's frame is on its child unless its pose
specifies otherwise (http://sdformat.org/spec and the proposal "Pose frame semantics"). If two
joints carry a link, they close a loop: the later joint becomes one of `loops`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from lxml import etree

from ..errors import DescriptionError, Named, Place, choices, listed, wrong
from ..mechanism import (
    Attachment,
    Coupling,
    Friction,
    Inertial,
    Joint,
    Limits,
    Link,
    Loop,
    Mechanism,
    Pose,
)
from ..mechanism.bodies import inertia_matrix
from ..scalar import Array, array, rotation_quaternion, rotation_to
from .compound import PARTS, split
from .extensions import report_left_out
from .fields import WORLD, in_radians, number, numbers, unknown
from .fields import text as name_of
from .files import read_text
from .mimics import mimicking
from .order import no_name_twice, parents_first
from .records import LIMITS, limits
from .xml_text import parsed, plain_text

MODEL = "__model__"
AXES_IN_MODEL = ("1.0", "1.1", "1.2", "1.3", "1.4")
"""The versions in which axes are in the model's frame; 1.5 and 1.6 say it with
`use_parent_model_frame`, later ones with `expressed_in`"""
NAMES_BY_KIND = (*AXES_IN_MODEL, "1.5", "1.6")
"""The versions in which a joint may have the name of a link"""
GRAVITY = (0.0, 0.0, -9.8)
"""m/s²: the default of SDF, not standard gravity"""
UNLIMITED = 1e16
"""rad or m: positions beyond it mean no limit in SDF"""
BELOW_NONE = ("velocity", "effort")
"""The limits for which a value below 0 means none in SDF"""
READ = (
    "pose", "inertial", "mass", "inertia", "ixx", "iyy", "izz", "ixy", "ixz", "iyz",
    "parent", "child", "axis", "axis2", "xyz", "use_parent_model_frame",
    "dynamics", "damping", "friction",
    "spring_stiffness", "spring_reference",
    "limit", "lower", "upper", "velocity", "effort", "mimic", "multiplier", "offset", "reference",
)  # fmt: skip
"""The child elements of a link, joint or frame that are read, each at most once"""
SIMPLE = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic",
          "fixed": "fixed"}  # fmt: skip
LOOPS = {"revolute": "revolute", "continuous": "revolute", "ball": "spherical",
         "prismatic": "prismatic", "fixed": "fixed"}  # fmt: skip


def read(source: Path | str, where: str, *, strict: bool = False) -> Mechanism:
    """The mechanism of an SDF file or text.

    Args:
        source: the path, or the text.
        where: how messages refer to it.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: an invalid description, or an unsupported element of SDF (nested models,
            includes, screw joints); the message names `where`, the link or joint, and what was
            expected.

    Warns:
        DescriptionWarning: a joint that mimics a missing one; it becomes independent. Or an angle
            that is probably in degrees, or limits out of order or an element, which are left out.
    """
    where = Place(where)
    text = read_text(source) if isinstance(source, Path) else source
    root = parsed(text, where, "sdf")
    models = [*root.iterfind("model"), *root.iterfind("world/model")]
    included = [f"<include> of {each.findtext('uri')}" for each in root.iter("include")]
    if len(models) != 1 or included:
        found = listed([*(each.get("name") for each in models), *included])
        expected = "one model without <include>: write the robot's to a file of its own"
        raise wrong(DescriptionError, where + ": models", found, expected)
    report_left_out(models[0], where, strict)
    return _Reader(models[0], where, strict).mechanism(_gravity(root, where))


def _gravity(root: etree._Element, where: Place) -> Array:
    element = root.find("world/gravity")
    if element is None:
        return array(GRAVITY)
    return numbers(plain_text(element, where / "gravity"), 3, where / "gravity")


@dataclass
class _Frame:
    """A frame as written in the file."""

    pose: Pose
    relative_to: str
    attached_to: str
    at: Place


@dataclass
class _Reader:
    """Converts one model to a mechanism."""

    model: etree._Element
    where: Place
    strict: bool
    frames: dict[str, _Frame] = field(default_factory=dict)
    poses: dict[str, Pose] = field(default_factory=lambda: {MODEL: Pose(), WORLD: Pose()})
    """The poses known so far, of frames in the model's frame"""
    link_names: set[str | None] = field(default_factory=set)

    def mechanism(self, gravity: Array) -> Mechanism:
        """The complete mechanism, with the world's gravity (3,), m/s²."""
        model, where = self.model, self.where
        if next(model.iterfind("model"), None) is not None:
            raise wrong(DescriptionError, where / "model", "a nested model", "links and joints")
        links, joints = list(model.iterfind("link")), list(model.iterfind("joint"))
        _once(model, where)
        self.link_names = {link.get("name") for link in links}
        for element in (*links, *joints, *model.iterfind("frame")):
            name = name_of(element.get("name"), where + f": <{element.tag}> name")
            key = self._key(element)
            if key in self.frames:
                raise wrong(
                    DescriptionError,
                    where.at(Named(element.tag, name)) + f": {element.tag}",
                    name,
                    "a unique name",
                )
            if name == WORLD:
                expected = "another name: it is SDF's for what stands still"
                raise wrong(DescriptionError, where + f": <{element.tag}> name", name, expected)
            _once(element, where.named(element.tag, name))
            self.frames[key] = self._frame(element, name)
        bodies = {link.get("name"): self._inertial(link) for link in links}
        carried: dict[str, Link] = {}
        made: list[Link] = []
        loops: list[Loop] = []
        for joint in joints:
            at = where.named("joint", str(joint.get("name")))
            parent, child = (self._side(joint, side, bodies, at) for side in ("parent", "child"))
            kind = joint.get("type")
            if kind not in (*SIMPLE, "ball", "universal"):
                raise wrong(
                    DescriptionError, at / "type", kind, choices([*SIMPLE, "ball", "universal"])
                )
            if child in carried:
                loops.append(self._loop(joint, parent, child, at))
                continue
            new = self._joint(joint, parent, child, bodies[child], at)
            carried[child] = new[-1]
            made += new
        roots = [name for name in bodies if name not in carried]
        fixed = any(link.parent == WORLD for link in made)
        if (len(roots) != 1) if not fixed else roots:
            expected = (
                "one link that no joint carries" if not fixed else "a joint that carries each"
            )
            raise wrong(
                DescriptionError, where + ": root link", ", ".join(roots) or "none", expected
            )
        base = WORLD if fixed else roots[0]
        own = Inertial() if fixed else bodies[base]
        no_name_twice((link.joint.name for link in made), where + ": joint")
        followers = mimicking({link.joint.name: link.joint for link in made}, where, self.strict)
        made = [replace(link, joint=followers[link.joint.name]) for link in made]
        stands = self._in_model(MODEL) if fixed else self._in_model(base)
        # the world's gravity on the base's axes
        turned = (self._pose(self.model, where) @ stands).rotation.T @ gravity
        return Mechanism(
            name_of(model.get("name"), where + ": model name"),
            parents_first(made, base, where),
            base=base,
            base_inertial=own,
            gravity=turned,
            loops=tuple(loops),
            home=dict.fromkeys(self._moving(made), 0.0) if loops else {},
        )

    def _moving(self, links: list[Link]) -> Iterator[str]:
        for link in links:
            if link.joint.moves and link.joint.coupling is None:
                yield link.joint.name

    # Frames

    def _key(self, element: etree._Element) -> str:
        """The name of an element's frame; poses refer to the link where a joint has its name."""
        name = str(element.get("name"))
        may_share = element.tag == "joint" and self._version() in NAMES_BY_KIND
        return f"{name} (joint)" if may_share and name in self.link_names else name

    def _version(self) -> str:
        return str(self.model.getroottree().getroot().get("version"))

    def _frame(self, element: etree._Element, name: str) -> _Frame:
        at = self.where.named(element.tag, name)
        usual, attached = MODEL, name
        if element.tag == "joint":
            usual = attached = (element.findtext("child") or "").strip()
        elif element.tag == "frame":
            attached = element.get("attached_to") or MODEL
            usual = attached if element.get("attached_to") else MODEL
        pose = element.find("pose")
        # `frame` is what SDF 1.5 and 1.6 call `relative_to`
        given = None if pose is None else pose.get("relative_to") or pose.get("frame")
        relative = given or usual
        return _Frame(self._pose(element, at), relative, attached, at / "pose" / "relative_to")

    def _pose(self, element: etree._Element, at: Place) -> Pose:
        pose = element.find("pose")
        if pose is None:
            return Pose()
        text = plain_text(pose, at / "pose") or "0 0 0 0 0 0"
        if pose.get("rotation_format") == "quat_xyzw":
            x, y, z, i, j, k, w = numbers(text, 7, at / "pose")
            return Pose(rotation_quaternion(w, i, j, k), array([x, y, z]))
        x, y, z, *rpy = numbers(text, 6, at / "pose")
        if pose.get("degrees") in ("true", "1"):
            rpy = [math.radians(angle) for angle in rpy]
        else:
            in_radians(rpy, at / "pose", self.strict)
        return Pose.from_xyz_rpy(array([x, y, z]), array(rpy))

    def _in_model(self, name: str) -> Pose:
        """The pose of a frame in the model's frame, with all joints at 0."""
        chain: dict[str, _Frame] = {}
        at = self.where + ": expressed_in"
        while name not in self.poses:
            if name not in self.frames:
                raise unknown(at, name, [*self.frames, MODEL])
            chain[name] = self.frames[name]
            name, at = chain[name].relative_to, chain[name].at
            if name in chain:
                found = " → ".join([*chain, name])
                raise wrong(DescriptionError, at, found, "a chain that ends at the model's frame")
        pose = self.poses[name]
        for inner, frame in reversed(chain.items()):
            pose = self.poses[inner] = pose @ frame.pose
        return pose

    def _body_of(self, name: str, bodies: Mapping[str, Inertial], at: Place) -> str:
        """The link that a frame is attached to."""
        seen: set[str] = set()
        while name not in bodies and name != WORLD:
            if name not in self.frames or name in seen:
                raise wrong(DescriptionError, at, name, "a link of this model, or world")
            seen.add(name)
            name = self.frames[name].attached_to
        return name

    # Links and joints

    def _side(
        self, joint: etree._Element, side: str, bodies: Mapping[str, Inertial], at: Place
    ) -> str:
        element = joint.find(side)
        name = "" if element is None else plain_text(element, at / side)
        found = self._body_of(name, bodies, at / side)
        if side == "child" and found == WORLD:
            raise wrong(DescriptionError, at / "child", name, "a link of this model")
        return found

    def _inertial(self, link: etree._Element) -> Inertial:
        element, at = link.find("inertial"), self.where.named("link", str(link.get("name")))
        if element is None:
            # SDF's default is 1 kg, but a missing element most likely means an unknown mass
            raise wrong(
                DescriptionError,
                at / "inertial",
                "none",
                "an <inertial> (without one SDF assumes 1 kg)",
            )
        if element.get("auto") in ("true", "1"):
            raise wrong(DescriptionError, at / "inertial", "auto", "numbers")
        mass = _number(element, at, "mass", 1.0)
        usual = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "ixy": 0.0, "ixz": 0.0, "iyz": 0.0}
        values = [_number(element, at, f"inertia/{key}", value) for key, value in usual.items()]
        body = Inertial(mass, np.zeros(3), inertia_matrix(*values))
        return body.seen_from(self._pose(element, at / "inertial"))

    def _joint(
        self, joint: etree._Element, parent: str, child: str, body: Inertial, at: Place
    ) -> list[Link]:
        name, kind = str(joint.get("name")), str(joint.get("type"))
        before = Pose() if parent == WORLD else self._in_model(parent)
        here = self._in_model(self._key(joint))
        # link = origin · motion · tail; with the joint at 0 this is the link's pose in the model
        origin, tail = before.inverse() @ here, here.inverse() @ self._in_model(child)
        whole = Joint(name, "revolute", origin=origin, tail=tail)
        if kind == "ball":
            return split(Link(child, parent, whole, body), PARTS["spherical"])
        if kind == "fixed":
            return [Link(child, parent, replace(whole, type="fixed"), body)]
        first = self._axis(joint, "axis", at)
        if kind == "universal":
            second = self._axis(joint, "axis2", at)
            middle = Link(
                f"{name}_1", parent,
                replace(first, name=f"{name}_1", type="revolute", origin=origin),
                intermediate=True,
            )  # fmt: skip
            end = replace(second, name=f"{name}_2", type="revolute", tail=tail)
            return [middle, Link(child, middle.name, end, body)]
        made = replace(first, name=name, type=SIMPLE[kind], origin=origin, tail=tail)
        if kind == "revolute" and made.ends.lower is None and made.ends.upper is None:
            made = replace(made, type="continuous")
        return [Link(child, parent, made, body)]

    def _axis(self, joint: etree._Element, tag: str, at: Place) -> Joint:
        """A joint with the axis, friction, limits and mimic of an <axis>."""
        element = joint.find(tag)
        xyz = None if element is None else element.find("xyz")
        axis = array([0.0, 0.0, 1.0])
        if xyz is not None:
            axis = numbers(plain_text(xyz, at / tag), 3, at / tag)
            usual = "1" if self._version() in AXES_IN_MODEL else "0"
            in_model = joint.findtext(f"{tag}/use_parent_model_frame", usual).strip()
            other = xyz.get("expressed_in") or (MODEL if in_model in ("true", "1") else None)
            if other is not None:
                here = self._in_model(self._key(joint)).rotation
                axis = here.T @ self._in_model(other).rotation @ axis
        length = float(np.linalg.norm(axis))
        if not length:
            raise wrong(DescriptionError, at / tag, axis.tolist(), "a vector other than 0")
        if element is None:
            return Joint("", "revolute", axis=axis / length)

        viscous, coulomb, stiffness, rest = (
            _number(element, at / tag, f"dynamics/{name}", 0.0)
            for name in ("damping", "friction", "spring_stiffness", "spring_reference")
        )
        # tau = stiffness (q - rest)
        law = Friction(viscous, coulomb, offset=-stiffness * rest, stiffness=stiffness)
        return Joint(
            "",
            "revolute",
            axis=axis / length,
            friction=law,
            limits=_limits(element, at / tag, self.strict),
            coupling=self._mimic(element, at),
        )

    def _mimic(self, axis: etree._Element, at: Place) -> Coupling | None:
        element = axis.find("mimic")
        if element is None:
            return None
        master = name_of(element.get("joint"), at / "mimic" + " joint")
        ratio, offset, reference = (
            _number(element, at / "mimic", key, usual)
            for key, usual in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        # q = multiplier · (q_master - reference) + offset
        return Coupling(((master, ratio),), offset - ratio * reference)

    def _loop(self, joint: etree._Element, parent: str, child: str, at: Place) -> Loop:
        kind = str(joint.get("type"))
        if kind not in LOOPS:
            raise wrong(
                DescriptionError,
                at / "type" + " of a joint that closes a loop",
                kind,
                choices(LOOPS),
            )
        here = self._in_model(self._key(joint))
        if kind in ("revolute", "continuous", "prismatic"):
            # joints of loops turn about z, or slide along it
            here = here @ Pose(rotation_to(self._axis(joint, "axis", at).axis))
        before = Pose() if parent == WORLD else self._in_model(parent)
        return Loop(
            str(joint.get("name")),
            LOOPS[kind],
            Attachment(parent, before.inverse() @ here),
            Attachment(child, self._in_model(child).inverse() @ here),
        )


def _once(element: etree._Element, at: Place) -> None:
    """Refuse an element that appears twice, as it is ambiguous which one applies."""
    tags = Counter(child.tag for child in element)
    for child in element:
        if child.tag in READ:
            if tags[child.tag] > 1:
                raise wrong(DescriptionError, at / child.tag, f"{tags[child.tag]} of them", "one")
            _once(child, at / child.tag)


def _number(element: etree._Element, at: Place, path: str, usual: float) -> float:
    """The number in an inner element; `usual` if there is none, but not if it is empty."""
    for key in path.split("/"):
        at /= key
    found = element.find(path)
    return usual if found is None else number(plain_text(found, at), at)


def _limits(axis: etree._Element, at: Place, strict: bool) -> Limits | None:
    """The limits of an <axis>, without the values that mean none in SDF."""
    place = at / "limit"
    said = {
        key: plain_text(element, place / key)
        for key in LIMITS.keys
        for element in axis.iterfind(f"limit/{key}")
    }
    given = {
        key: value
        for key, value in LIMITS.read(said, place).items()
        if value is not None and (value >= 0 if key in BELOW_NONE else abs(value) < UNLIMITED)
    }
    return limits(given, place, strict)
