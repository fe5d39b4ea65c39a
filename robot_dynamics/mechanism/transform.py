# SPDX-License-Identifier: Apache-2.0
"""Transformations of a mechanism, most of them to an equivalent one that a formulation requires."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from ..scalar import Scalar, array, rotation_to, rotation_z
from .bodies import Inertial, Pose
from .friction import Friction
from .mechanism import Armature, Attachment, Coupling, Joint, Link, Mechanism, Rotor, new_name

ROTOR_MODELS = ("full", "reflected", "none")

Ratios = tuple[tuple[str, Scalar], ...]

Z_AXIS = array([0.0, 0.0, 1.0])


def reframed(mechanism: Mechanism, frames: Mapping[str, Pose]) -> Mechanism:
    """The same robot with other link frames.

    Everything that was given in a link's old frame is expressed in the new one. Joints keep their
    axes and motions; `origin` and `tail` account for the difference.

    Args:
        mechanism: the robot.
        frames: by link, the new frame's pose in the old one; links left out keep their frames.
    """
    identity = Pose()
    new = {name: frames.get(name, identity) for name in mechanism.index()}
    old = {name: pose.inverse() for name, pose in new.items()}

    def moved(attachment: Attachment) -> Attachment:
        return Attachment(attachment.link, old[attachment.link] @ attachment.pose)

    return replace(
        mechanism,
        links=tuple(
            replace(
                link,
                joint=replace(
                    link.joint,
                    origin=old[link.parent] @ link.joint.origin,
                    tail=link.joint.tail @ new[link.name],
                ),
                inertial=link.inertial.seen_from(old[link.name]),
            )
            for link in mechanism.links
        ),
        rotors=tuple(
            replace(rotor, origin=old[rotor.mount] @ rotor.origin) for rotor in mechanism.rotors
        ),
        loops=tuple(loop.mapped(moved) for loop in mechanism.loops),
    )


def lumped(mechanism: Mechanism) -> Mechanism:
    """The same robot with links on fixed joints merged into the moving link that carries them."""
    carriers = mechanism.carriers()
    inertials: dict[str, Inertial] = {mechanism.base: Inertial()}
    for link in mechanism.links:
        name, pose = carriers[link.name]
        if link.joint.moves:
            inertials[name] = link.inertial
        else:
            inertials[name] = inertials[name] + link.inertial.seen_from(pose)

    def moved(attachment: Attachment) -> Attachment:
        name, pose = carriers[attachment.link]
        return Attachment(name, pose @ attachment.pose)

    def relinked(link: Link) -> Link:
        parent = moved(Attachment(link.parent, link.joint.origin))
        return Link(
            link.name,
            parent.link,
            replace(link.joint, origin=parent.pose),
            inertials[link.name],
        )

    def remounted(rotor: Rotor) -> Rotor:
        motor = moved(Attachment(rotor.mount, rotor.origin))
        return replace(rotor, mount=motor.link, origin=motor.pose)

    return replace(
        mechanism,
        links=tuple(relinked(link) for link in mechanism.moving),
        rotors=tuple(remounted(rotor) for rotor in mechanism.rotors),
        loops=tuple(loop.mapped(moved) for loop in mechanism.loops),
        platform=carriers[mechanism.platform][0] if mechanism.platform else None,
    )


def standard_form(mechanism: Mechanism) -> Mechanism:
    """The same robot with one body per moving joint, whose frame is at the joint, z on its axis.

    link pose = origin · Rz(q) or Tz(q), without a tail, as recursive formulations require.
    """
    tree = lumped(mechanism)
    frames = {
        link.name: link.joint.tail.inverse() @ Pose(rotation_to(link.joint.axis))
        for link in tree.links
    }
    tree = reframed(tree, frames)

    def about_z(joint: Joint) -> Joint:
        # origin · motion(axis, q) · axis = origin · axis · motion(z, q)
        origin = joint.origin @ Pose(rotation_to(joint.axis))
        return replace(joint, origin=origin, axis=Z_AXIS, tail=Pose())

    return with_joints(tree, about_z)


def with_joints(mechanism: Mechanism, change: Callable[[Joint], Joint]) -> Mechanism:
    """The same robot with each link's joint changed."""
    links = tuple(replace(link, joint=change(link.joint)) for link in mechanism.links)
    return replace(mechanism, links=links)


def with_parts(
    mechanism: Mechanism,
    bodies: Mapping[str, Inertial],
    frictions: Mapping[str, Friction] = MappingProxyType({}),
) -> Mechanism:
    """The same robot with these bodies, by link, and friction laws, by joint; the others remain."""

    def changed(link: Link) -> Link:
        friction = frictions.get(link.joint.name, link.joint.friction)
        body = bodies.get(link.name, link.inertial)
        return replace(link, inertial=body, joint=replace(link.joint, friction=friction))

    return replace(mechanism, links=tuple(map(changed, mechanism.links)))


def with_payload(mechanism: Mechanism, link: str, payload: Inertial) -> Mechanism:
    """The same robot with a payload welded to a link.

    Args:
        mechanism: the robot.
        link: name of the link.
        payload: the body, in the link's frame.
    """
    links = tuple(
        replace(each, inertial=each.inertial + payload) if each.name == link else each
        for each in mechanism.links
    )
    return replace(mechanism, links=links)


def with_locked_joints(mechanism: Mechanism, held: Mapping[str, Scalar]) -> Mechanism:
    """The same robot with independent joints locked at given positions.

    Joints that follow only these are locked as well. A rotor that no joint turns any longer is
    fixed to its mount and has no ratios.

    Args:
        mechanism: the robot.
        held: positions of the joints to lock, rad or m.
    """
    if not held:
        return mechanism

    def split(ratios: Ratios) -> tuple[Ratios, Scalar]:
        """(the ratios of joints that still move, the contribution of the locked ones)."""
        free = tuple((name, ratio) for name, ratio in ratios if name not in held)
        return free, sum(ratio * held[name] for name, ratio in ratios if name in held)

    def joint(old: Joint) -> Joint:
        if not old.moves:
            return old
        coupling = old.coupling or Coupling(((old.name, 1.0),))
        free, place = split(coupling.ratios)
        place = place + coupling.offset
        if not free:
            return Joint(old.name, "fixed", origin=old.pose(place))
        return replace(old, coupling=Coupling(free, place)) if old.coupling else old

    def rotor(old: Rotor) -> Rotor:
        free, angle = split(old.ratios)
        if len(free) == len(old.ratios):
            return old
        friction = old.friction if free else None
        origin = old.origin @ Pose(rotation_z(angle))
        return replace(old, ratios=free, origin=origin, friction=friction)

    armatures = (replace(each, ratios=split(each.ratios)[0]) for each in mechanism.armatures)
    return replace(
        with_joints(mechanism, joint),
        near={name: place for name, place in mechanism.near.items() if name not in held},
        rotors=tuple(map(rotor, mechanism.rotors)),
        armatures=tuple(each for each in armatures if each.ratios),
    )


def without_bodies(mechanism: Mechanism) -> Mechanism:
    """The same robot with massless links, without armatures and without friction of rotors, which
    are kept."""
    links = tuple(replace(link, inertial=Inertial()) for link in mechanism.links)
    rotors = tuple(replace(rotor, friction=None) for rotor in mechanism.rotors)
    return replace(mechanism, links=links, armatures=(), rotors=rotors)


def with_rotor_model(mechanism: Mechanism, model: str) -> Mechanism:
    """The same robot with a rotor model.

    Args:
        mechanism: the robot.
        model: full: the rotors as they are; reflected: Γ²·I_zz at the joint, and the rotor's mass
            as a point mass on its mount; none: no rotors, not even their mass. In every model their
            friction, which depends on rates alone, becomes that of armatures.
    """
    tree, rotors = mechanism, []
    armatures = []
    for rotor in mechanism.rotors:
        inertia: Scalar = 0.0
        if model == "full":
            rotors.append(replace(rotor, friction=None))
        elif model == "reflected":
            point = Inertial(rotor.inertial.mass, rotor.inertial.center_of_mass)
            if rotor.mount != mechanism.base:
                tree = with_payload(tree, rotor.mount, point.seen_from(rotor.origin))
            inertia = rotor.inertial.inertia[2, 2]
        if rotor.ratios and (model == "reflected" or rotor.friction is not None):
            armatures.append(Armature(rotor.ratios, inertia, rotor.friction))
    return replace(tree, rotors=tuple(rotors), armatures=mechanism.armatures + tuple(armatures))


Shaft = TypeVar("Shaft", Rotor, Armature)


def friction_at_joints(mechanism: Mechanism) -> Mechanism:
    """The same robot with the friction of each rotor and armature that turns with one joint moved
    to the joint.

    This is exact, except for a joint whose laws differ in the rate of their Stribeck terms, in
    presliding or in smoothing, which are then those of one of them (see `Friction.__add__`).
    """
    added: dict[str, list[Friction]] = {}

    def without(shaft: Shaft) -> Shaft:
        if shaft.friction is None or len(shaft.ratios) != 1:
            return shaft
        ((joint, ratio),) = shaft.ratios
        added.setdefault(joint, []).append(shaft.friction.at_joint(float(ratio)))
        return replace(shaft, friction=None)

    rotors = tuple(map(without, mechanism.rotors))
    armatures = tuple(map(without, mechanism.armatures))

    def with_friction(joint: Joint) -> Joint:
        return replace(joint, friction=sum(added.get(joint.name, ()), joint.friction))

    robot = with_joints(mechanism, with_friction) if added else mechanism
    return replace(robot, rotors=rotors, armatures=armatures)


def rotors_as_links(mechanism: Mechanism) -> Mechanism:
    """The same robot with each rotor as a link, on a joint of its own that follows the joints that
    the rotor drives."""
    taken = set(mechanism.index()) | {link.joint.name for link in mechanism.links}
    rotors = []
    for rotor in mechanism.rotors:
        if rotor.inertial.is_nothing:  # only its gear ratio is known
            continue
        name = new_name(rotor.name, taken)
        # a rotor without ratios does not turn
        joint = Joint(
            name,
            "continuous",
            origin=rotor.origin,
            coupling=Coupling(rotor.ratios),
            carries_frame=not rotor.is_symmetric,
        )
        rotors.append(Link(name, rotor.mount, joint, rotor.inertial))
    return replace(mechanism, links=mechanism.links + tuple(rotors), rotors=())
