# SPDX-License-Identifier: Apache-2.0
"""A mechanism as URDF with simple shapes for its links, for RViz, Gazebo, Pinocchio and MuJoCo.

In URDF the frame of a link is that of its joint. With standard DH parameters, a and alpha come
after the joint: such a link is written as two, `NAME_axis` on the joint and, fixed to it, `NAME`
with the described frame.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lxml import etree

from ..errors import DescriptionError, listed, wrong
from ..mechanism import Armature, Friction, Inertial, Limits, Link, Mechanism, Pose, Rotor
from ..mechanism.mechanism import new_name
from ..mechanism.transform import friction_at_joints, lumped, with_rotor_model
from ..scalar import Floats, is_zero, roll_pitch_yaw
from .fields import WORLD, tolerate
from .shapes import Shape, Shapes
from .urdf_text import dynamics_text, inertial_text

ON_THE_GROUND = Inertial(1.0, np.zeros(3), 0.01 * np.eye(3))
"""The body of a base that is fixed to the ground, if it has none"""
UNKNOWN = 1e6
"""Written for unknown limits that URDF requires, far beyond what a robot reaches"""

MATERIALS = {part: f"robot_dynamics_{part}" for part in ("body", "joint", "end")}
COLOURS = {"body": "0.80 0.82 0.85 1", "joint": "0.84 0.37 0 1", "end": "0 0.45 0.70 1"}
DOWN = np.array([0.0, 0.0, -1.0])


def urdf(mechanism: Mechanism, *, world: bool = False) -> str:
    """The mechanism as URDF text.

    Links, joints and their names, bodies, limits, viscous and Coulomb friction, mimic joints and
    gear ratios are those of the mechanism. The mass of a rotor is a point mass on its mount, as in
    the rotor model `reflected`; the friction of a rotor that turns with one joint is added to the
    joint's.

    Args:
        mechanism: the robot.
        world: whether to fix the base to a link `world`, as Gazebo requires. A base without mass
            gets one, which affects no torque: Gazebo drops links without mass, and all that they
            carry.

    Raises:
        DescriptionError: a name that XML cannot contain, or a joint that follows several others.

    Warns:
        DescriptionWarning: what URDF cannot express and is left out: loops, rotors' inertia,
            armatures, friction other than viscous and Coulomb, friction of rotors and armatures
            that several joints turn, gravity that does not point down. Also moving links with
            which simulators cannot compute, as they have no mass or no inertia.
    """
    for complaint in _left_out(mechanism):
        tolerate(complaint, strict=False)
    robot = with_rotor_model(friction_at_joints(mechanism), "reflected")
    taken = set(robot.index()) | {link.joint.name for link in robot.links}
    root = etree.Element("robot")
    _set(root, "name", robot.name)
    shapes = Shapes(robot)
    for part, colour in COLOURS.items():
        material = etree.SubElement(root, "material", name=MATERIALS[part])
        etree.SubElement(material, "color", rgba=colour)
    base = robot.base_inertial
    if world and robot.base != WORLD:
        around = new_name(WORLD, taken, "_")
        _link(root, around, None, [])
        _fixed(root, new_name(f"{WORLD}_joint", taken, "_"), around, robot.base, Pose())
        base = ON_THE_GROUND if is_zero(base.mass) else base
    _link(root, robot.base, base, _visuals(shapes.of(robot.base)))
    for link in robot.links:
        joint, body = link.joint, link.inertial
        if not joint.moves:
            _link(root, link.name, body, _visuals(shapes.of(link.name)))
            _fixed(root, joint.name, link.parent, link.name, joint.pose(0.0))
            continue
        child = link.name
        if not joint.tail.is_identity:
            child = new_name(f"{link.name}_axis", taken, "_")
            _link(root, child, None, [])
        _joint(root, link, child)
        _link(root, link.name, body, _visuals(shapes.of(link.name)))
        if child != link.name:
            _fixed(root, new_name(f"{link.name}_frame", taken, "_"), child, link.name, joint.tail)
    for rotor in mechanism.rotors:
        _transmission(root, rotor)
    etree.indent(root)
    text: str = etree.tostring(root, encoding="unicode") + "\n"
    return text


def _left_out(mechanism: Mechanism) -> Iterator[DescriptionError]:
    def left(what: str, why: str) -> DescriptionError:
        return DescriptionError(f"{mechanism.name}: left out of the URDF: {what}; {why}")

    if mechanism.loops:
        names = listed(loop.name for loop in mechanism.loops)
        yield left(f"loops {names}", "URDF can only describe trees: these joints stay open")
    if mechanism.base_motion:
        yield left(
            f"the floating joint {mechanism.base_motion!r} under {mechanism.base!r}",
            "something else moves the base, which is fixed here",
        )
    turning = [rotor.name for rotor in mechanism.rotors if np.any(rotor.inertial.inertia)]
    if turning:
        yield left(
            f"the inertia of rotors {listed(turning)}",
            "Γ²·I about its axis is what simulators call armature",
        )
    bodies = [link.name for link in lumped(mechanism).links if _is_degenerate(link.inertial)]
    if bodies:
        yield DescriptionError(
            f"{mechanism.name}: links {listed(bodies)} have no mass, or no moment of inertia about "
            "some axis: simulators refuse such links, or drop them with all that they carry"
        )
    several = [each.name for each in mechanism.rotors if each.friction and not _joint_of(each)]
    if several:
        yield left(f"the friction of rotors {listed(several)}", "each is coupled to several joints")
    inert = [each for each in mechanism.armatures if not is_zero(each.inertia)]
    rubbing = [each for each in mechanism.armatures if each.friction and not _joint_of(each)]
    for what, shafts in (("armature", inert), ("friction", rubbing)):
        if shafts:
            joints = dict.fromkeys(name for each in shafts for name, _ in each.ratios)
            yield left(
                f"the {what} of shafts on joints {listed(joints)}", "set it in the simulator"
            )
    laws = {link.joint.name: [link.joint.friction] for link in mechanism.links}
    both: tuple[Rotor | Armature, ...] = (*mechanism.rotors, *mechanism.armatures)
    for shaft in both:
        laws.get(_joint_of(shaft), []).append(shaft.friction or Friction())
    complex_laws = [name for name, some in laws.items() if any(map(_exceeds_urdf, some))]
    if complex_laws:
        yield left(
            f"friction of joints {listed(complex_laws)} beyond viscous and Coulomb",
            "<dynamics> cannot express it; for two directions the mean is written",
        )
    size = float(np.linalg.norm(mechanism.gravity))
    if size and not np.allclose(mechanism.gravity, size * DOWN, atol=1e-9 * size):
        found = ", ".join(f"{x:g}" for x in mechanism.gravity)
        yield left(f"gravity [{found}] m/s²", "set its direction in the simulator")


def _is_degenerate(body: Inertial) -> bool:
    """Whether a body has no mass, or no moment of inertia about some axis."""
    moments = np.linalg.eigvalsh(np.asarray(body.inertia, dtype=float))
    return is_zero(body.mass) or bool(moments[0] <= 1e-12 * max(moments[-1], 1e-300))


def _exceeds_urdf(law: Friction) -> bool:
    return set(law.numbers) > {"viscous", "coulomb"}


def _joint_of(shaft: Rotor | Armature) -> str:
    """The only joint that turns the rotor or armature; '' if several or none do."""
    return shaft.ratios[0][0] if len(shaft.ratios) == 1 else ""


def _set(element: etree._Element, key: str, value: str) -> None:
    try:
        element.set(key, value)
    except ValueError:
        raise wrong(
            DescriptionError, f"{element.tag} {key}", value, "text that XML allows"
        ) from None


def _numbers(values: Floats | list[float]) -> str:
    return " ".join(repr(float(x) + 0.0) for x in values)


def _origin(element: etree._Element, pose: Pose) -> None:
    if not pose.is_identity:
        xyz, rpy = _numbers(pose.translation), _numbers(roll_pitch_yaw(pose.rotation))
        etree.SubElement(element, "origin", xyz=xyz, rpy=rpy)


def _link(
    root: etree._Element, name: str, body: Inertial | None, shapes: list[etree._Element]
) -> None:
    element = etree.SubElement(root, "link")
    _set(element, "name", name)
    if body is not None and not body.is_nothing:
        element.append(etree.fromstring(inertial_text(body)))
    element.extend(shapes)


def _connected(
    root: etree._Element, name: str, kind: str, parent: str, child: str
) -> etree._Element:
    element = etree.SubElement(root, "joint")
    _set(element, "name", name)
    element.set("type", kind)
    etree.SubElement(element, "parent", link=parent)
    etree.SubElement(element, "child", link=child)
    return element


def _fixed(root: etree._Element, name: str, parent: str, child: str, pose: Pose) -> None:
    _origin(_connected(root, name, "fixed", parent, child), pose)


def _joint(root: etree._Element, link: Link, child: str) -> None:
    joint = link.joint
    ends = joint.ends
    kind = joint.type
    if joint.turns:  # without known limits it is continuous
        kind = "continuous" if (ends.lower, ends.upper) == (None, None) else "revolute"
    element = _connected(root, joint.name, kind, link.parent, child)
    _origin(element, joint.origin)
    etree.SubElement(element, "axis", xyz=_numbers(joint.axis))
    if kind != "continuous" or ends != Limits():
        said = {"lower": ends.lower, "upper": ends.upper} if kind != "continuous" else {}
        said |= {"effort": ends.effort, "velocity": ends.velocity}
        known = {
            key: (-UNKNOWN if key == "lower" else UNKNOWN) if value is None else value
            for key, value in said.items()
        }
        etree.SubElement(element, "limit", {key: repr(float(x)) for key, x in known.items()})
    if any(not is_zero(x) for x in joint.friction.numbers.values()):
        element.append(etree.fromstring(dynamics_text(joint.friction, {})))
    if joint.coupling is not None:
        if len(joint.coupling.ratios) != 1:
            followed = [name for name, _ in joint.coupling.ratios]
            raise wrong(DescriptionError, f"joint {joint.name!r} follows", followed, "one joint")
        ((master, ratio),) = joint.coupling.ratios
        mimic = etree.SubElement(element, "mimic")
        _set(mimic, "joint", master)
        mimic.set("multiplier", repr(float(ratio)))
        mimic.set("offset", repr(float(joint.coupling.offset)))


def _transmission(root: etree._Element, rotor: Rotor) -> None:
    """A gear as ros2_control's simple transmission; others cannot be written and read back."""
    if len(rotor.ratios) != 1:
        return
    ((joint, ratio),) = rotor.ratios
    element = etree.SubElement(root, "transmission")
    _set(element, "name", f"{rotor.name}_transmission")
    etree.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
    driven = etree.SubElement(element, "joint")
    _set(driven, "name", joint)
    etree.SubElement(driven, "hardwareInterface").text = "hardware_interface/EffortJointInterface"
    actuator = etree.SubElement(element, "actuator")
    _set(actuator, "name", f"{rotor.name}_motor")
    etree.SubElement(actuator, "mechanicalReduction").text = repr(float(ratio))


def _visuals(shapes: list[Shape]) -> list[etree._Element]:
    found = []
    for shape in shapes:
        match shape.kind:
            case "cylinder":
                radius, length = map(repr, shape.size)
                element = etree.Element("cylinder", radius=radius, length=length)
            case "box":
                element = etree.Element("box", size=_numbers([*shape.size]))
            case _:
                element = etree.Element("sphere", radius=repr(shape.size[0]))
        found.append(_visual(element, shape.pose, MATERIALS[shape.part]))
    return found


def _visual(shape: etree._Element, pose: Pose, colour: str) -> etree._Element:
    visual = etree.Element("visual")
    _origin(visual, pose)
    etree.SubElement(visual, "geometry").append(shape)
    etree.SubElement(visual, "material", name=colour)
    return visual
