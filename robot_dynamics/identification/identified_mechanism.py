# SPDX-License-Identifier: Apache-2.0
"""Builds the mechanism of the identified robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..mechanism import Friction, Inertial, Link, Mechanism, Pose, Rotor
from ..mechanism.dynamic_parameters import ENTRIES, body_of, numbers_of, rotor_names
from ..mechanism.transform import with_parts
from ..scalar import Array
from .bodies import is_possible
from .fit import Fit
from .unknowns import shaft_scale

SHARES = (1.0, 0.5, 0.25, 0.1, 0.01, 1e-3)
"""Fractions of the bodies fixed to a link that may remain as described; the largest with which the
link is physically consistent is used"""


def mechanism_of(fit: Fit) -> Mechanism:
    """The mechanism of `fit.unknowns` with identified bodies, friction and rotors."""
    unknowns = fit.unknowns
    mechanism = unknowns.mechanism
    if unknowns.payload is not None:
        laws = {joint: mechanism.joint(joint).friction for joint in unknowns.joints}
        offsets = {
            joint: replace(law, offset=law.offset + float(fit.drive(joint)[0]))
            for joint, law in laws.items()
            if fit.drives[joint].size
        }
        body = body_of(fit.body(unknowns.payload))
        return with_parts(mechanism, {unknowns.payload: body}, offsets)
    rotors = _rotors(fit)
    taken = _taken_from_mounts(mechanism, rotors)
    inertials: dict[str, Inertial] = {}
    for name in unknowns.bodies:
        phi = fit.body(name)
        less = phi - np.r_[np.zeros(4), taken[name]] if name in taken else phi
        inertials |= parted(mechanism, name, less if is_possible(less) else phi)
    frictions = {joint: friction_of(fit, joint) for joint in unknowns.joints}
    found = with_parts(mechanism, inertials, frictions)
    return replace(found, rotors=tuple(_possible_rotor(rotor) for rotor in rotors))


def friction_of(fit: Fit, joint: str) -> Friction:
    """The identified friction of a joint or shaft, or the described one if no efforts of the joints
    that turn it were fitted."""
    unknowns = fit.unknowns
    row = unknowns.turning(joint)
    if not np.isfinite(fit.sigma[row != 0]).any():
        return unknowns.described_friction(joint)
    law, values = fit.drives[joint].law, fit.drive(joint)
    if joint in unknowns.shafts:
        return law.friction(values[: len(law.names)], True, shaft_scale(row))
    friction = law.friction(values[: len(law.names)], unknowns.mechanism.joint(joint).turns)
    return replace(friction, smoothing=fit.smoothing.get(joint, 0.0))


def _rotors(fit: Fit) -> tuple[Rotor, ...]:
    """The rotors with their identified inertias, without those that were added but not
    identified."""
    unknowns = fit.unknowns
    driven = {name: joint for joint, name in unknowns.rotors.items()}
    found = []
    for name, rotor in rotor_names(unknowns.mechanism).items():
        joint = driven.get(name)
        if joint is not None and fit.drives[joint].rotor:
            tensor = np.array(rotor.inertial.inertia, dtype=float)
            tensor[2, 2] += fit.drive(joint)[-1]
            rotor = replace(rotor, inertial=replace(rotor.inertial, inertia=tensor))
        else:
            rotor = unknowns.doubted.get(rotor.name, rotor)
        if joint in unknowns.shafts:
            friction = friction_of(fit, str(joint))
            rotor = replace(rotor, friction=None if friction == Friction() else friction)
        if not (rotor.inertial.is_nothing and name in unknowns.added):
            found.append(rotor)
    return tuple(found)


def _across(rotor: Rotor) -> Array:
    """(3, 3), kg m²: the transverse inertia that a rotor with only an axial inertia needs to be
    physically consistent."""
    I = rotor.inertial.inertia
    half = I[2, 2] / 2
    return np.diag([max(half - I[0, 0], 0.0), max(half - I[1, 1], 0.0), 0.0])


def _possible_rotor(rotor: Rotor) -> Rotor:
    body = rotor.inertial
    return replace(rotor, inertial=replace(body, inertia=body.inertia + _across(rotor)))


def _taken_from_mounts(mechanism: Mechanism, rotors: tuple[Rotor, ...]) -> dict[str, Array]:
    """By moving link, the inertia (last six entries of φ) that was added to its rotors, to be
    subtracted from the link so that the sum remains the same."""
    taken: dict[str, Array] = {}
    carriers = mechanism.carriers()
    for rotor in rotors:
        name, pose = carriers[rotor.mount]
        R = pose.rotation @ rotor.origin.rotation
        I = R @ _across(rotor) @ R.T
        taken[name] = taken.get(name, 0.0) + np.array([I[i, j] for i, j in ENTRIES])
    return taken


def parted(mechanism: Mechanism, name: str, phi: np.ndarray) -> dict[str, Inertial]:
    """Split the whole body φ (10,) of a moving link into its own and those of links fixed to it, by
    name.

    The fixed bodies remain as described if the rest is then physically consistent, and are
    otherwise reduced by one of `SHARES`, or to nothing. The rest is the moving link's, or if that
    only connects the parts of a joint, that of the first link fixed to it.

    Args:
        mechanism: the robot as described.
        name: the moving link.
        phi: (10,), in the moving link's frame.
    """
    fixed = fixed_to(mechanism, name)
    owner, place = name, Pose()
    if mechanism.link(name).intermediate:
        owner, place = next((link.name, pose) for link, pose in fixed if not link.intermediate)
        fixed = [(link, pose) for link, pose in fixed if link.name != owner]
    to_owner = place.inverse()
    for share in SHARES:
        inertials = {
            link.name: Inertial(
                share * link.inertial.mass,
                link.inertial.center_of_mass,
                share * link.inertial.inertia,
            )
            for link, _ in fixed
        }
        rest = phi.copy()
        for link, pose in fixed:
            if not inertials[link.name].is_nothing:
                rest -= numbers_of(inertials[link.name].seen_from(pose))
        if is_possible(rest):
            return inertials | {owner: body_of(rest).seen_from(to_owner)}
    none = {link.name: Inertial() for link, _ in fixed}
    return none | {owner: body_of(phi).seen_from(to_owner)}


def fixed_to(mechanism: Mechanism, name: str) -> list[tuple[Link, Pose]]:
    """The links that are fixed to a moving link, and their poses in its frame."""
    carriers = mechanism.carriers()
    fixed = (link for link in mechanism.links if not link.joint.moves)
    return [(link, carriers[link.name][1]) for link in fixed if carriers[link.name][0] == name]
