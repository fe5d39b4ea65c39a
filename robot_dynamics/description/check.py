# SPDX-License-Identifier: Apache-2.0
"""Checks of a description: errors if it cannot be computed, warnings if it is unphysical."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ..errors import DescriptionError, Named, Place, choices, listed, wrong
from ..mechanism import LOOP_TYPES, Friction, Inertial, Joint, Loop, Mechanism, Rotor
from .fields import unknown
from .order import no_name_twice

_SLACK = 1e-9
"""Relative tolerance of the conditions on inertias, as descriptions contain rounded decimals"""
_NOTHING = 1e-15
"""kg m²: smaller moments are rounding errors, however large the others are"""

Origins = Mapping[tuple[str, str], str]
"""("link" | "joint" | "rotor", its name) → the file it comes from, if that is another file"""


def things(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """The keys of `Origins` for all parts of a mechanism."""
    yield "link", mechanism.base
    for link in mechanism.links:
        yield "link", link.name
        yield "joint", link.joint.name
    for rotor in mechanism.rotors:
        yield "rotor", rotor.name


def check(mechanism: Mechanism, where: str, origins: Origins) -> Iterator[DescriptionError]:
    """Warnings about a description that is questionable but can be computed.

    Args:
        mechanism: the robot.
        where: the file's name, for messages.
        origins: the parts that come from other files.

    Raises:
        DescriptionError: a duplicate or unknown name, a joint that cannot move, a negative mass, or
            friction that drives a joint.
    """
    where = Place(where)
    structure(mechanism, where)

    def at(kind: str, name: str) -> Place:
        return Place(origins.get((kind, name), where)).named(kind, name)

    bodies = {mechanism.base: mechanism.base_inertial}
    bodies |= {link.name: link.inertial for link in mechanism.links}
    for name, each in bodies.items():
        for complaint in mass(each, at("link", name)):
            raise complaint
    for link in mechanism.links:
        # in a YAML `friction`, in a URDF <dynamics>
        for complaint in friction(link.joint.friction, at("joint", link.joint.name), "dynamics"):
            raise complaint
    for rotor in mechanism.rotors:
        place = at("rotor", rotor.name)
        for complaint in mass(rotor.inertial, place):
            raise complaint
        for complaint in friction(rotor.friction or Friction(), place, of_rotor=True):
            raise complaint
    for name, each in bodies.items():
        yield from body(each, at("link", name))
    for rotor in mechanism.rotors:
        if not _is_axial(rotor.inertial):
            yield from inertia(rotor.inertial, at("rotor", rotor.name))
    yield from robot(mechanism, where)


def robot(mechanism: Mechanism, where: str) -> Iterator[DescriptionError]:
    """Warnings about a robot without moving links or mass."""
    carried: set[str] = set()
    for link in mechanism.links:
        if link.joint.moves or link.parent in carried:
            carried.add(link.name)
    bodies = [link.inertial for link in mechanism.links if link.name in carried]
    bodies += [each.inertial for each in mechanism.rotors if each.ratios or each.mount in carried]
    found = ""
    if not mechanism.links:
        found = "no links: there is nothing to compute"
    elif not carried:
        found = "no joint that moves: there is nothing to compute"
    elif all(each.is_nothing for each in bodies):
        found = "no moving mass or inertia: all torques of motion and gravity are 0"
    if found:
        name = Place(where).named("robot", mechanism.name)
        yield DescriptionError(f"{name} has {found}", name=name)


def structure(mechanism: Mechanism, where: Place) -> None:
    """Check that names, parents, rotors, loops and lists of joints are consistent.

    Args:
        mechanism: the robot.
        where: the file's name, for messages.

    Raises:
        DescriptionError: they are not.
    """
    no_name_twice((link.joint.name for link in mechanism.links), where + ": joint")
    no_name_twice((rotor.name for rotor in mechanism.rotors), where + ": rotor")
    no_name_twice((loop.name for loop in mechanism.loops), where + ": loop")
    links = mechanism.index()
    joints = mechanism.joint_names
    independent = (link for link in mechanism.moving if link.joint.coupling is None)
    carried = {link.joint.name: link.name for link in independent}
    for rotor in mechanism.rotors:
        _known(rotor.mount, links, where.named("rotor", rotor.name) / "mount")
        _check_ratios(mechanism, rotor, carried, where.named("rotor", rotor.name))
    for i, loop in enumerate(mechanism.loops):
        _check_loop(loop, links, (where + f": loop {loop.name!r}").at("loops", i))
    near_joints = [name for name, at in mechanism.near.items() if isinstance(at, float)]
    for key, names in (
        ("actuated", mechanism.actuated),
        ("sensed", mechanism.sensed),
        ("home", tuple(mechanism.home)),
        ("near", near_joints),
    ):
        no_name_twice(names, where / key + ": joint")
        for i, name in enumerate(names):
            step = i if key in ("actuated", "sensed") else name
            _check_independent(mechanism, name, (where / key).at(step))
    for name in mechanism.near:
        if name not in near_joints:
            _known(name, links, (where / "near" + ": link").at(name))
    if both := set(mechanism.actuated) & set(mechanism.sensed):
        raise _bad(where / "sensed", sorted(both)[0], "a passive joint (this one is actuated)")
    if mechanism.platform is not None:
        _known(mechanism.platform, links, where / "platform")
    if mechanism.actuated and not mechanism.loops and len(mechanism.actuated) < len(joints):
        missing = [name for name in joints if name not in mechanism.actuated]
        raise _bad(
            where / "actuated" + f": under-actuated with {len(joints)} degrees of freedom",
            list(mechanism.actuated),
            f"motors at {', '.join(missing)} as well, or loops that close the chain",
        )
    if mechanism.sensed and not mechanism.loops:
        raise _bad(
            where / "sensed",
            list(mechanism.sensed),
            "none, as every joint of an open chain has a motor, or loops that close the chain",
        )
    if mechanism.near and not mechanism.loops:
        raise _bad(
            where / "near",
            list(mechanism.near),
            "none, as an open chain has one assembly mode, or loops that close the chain",
        )


def body(inertial: Inertial, where: str) -> Iterator[DescriptionError]:
    """Errors in the inertial parameters of a link or a payload.

    Args:
        inertial: the body.
        where: its file and name, for messages.
    """
    yield from mass(inertial, where)
    if inertial.mass == 0 and np.any(inertial.inertia):
        largest = float(np.abs(inertial.inertia).max())
        yield DescriptionError(
            f"{where}: an inertia of up to {largest:g} kg m², but no mass", name=where
        )
    yield from inertia(inertial, where)


def inertia(inertial: Inertial, where: str) -> Iterator[DescriptionError]:
    """Errors in a rigid body's inertia.

    Args:
        inertial: the body.
        where: its file and name, for messages.
    """
    moments = np.linalg.eigvalsh(np.asarray(inertial.inertia, dtype=float))
    slack = max(_SLACK * max(abs(moments)), _NOTHING)
    if moments[0] < -slack:
        yield _bad(
            Place(where) / "inertia" + ": a principal moment",
            float(moments[0]),
            "a positive semidefinite tensor (no principal moment below 0)",
        )
    # ∫ (y² + z²) + ∫ (x² + z²) ≥ ∫ (x² + y²)
    elif moments[2] > moments[0] + moments[1] + slack:
        found = " + ".join(f"{moment:.6g}" for moment in moments[:2])
        yield _bad(
            Place(where) / "inertia" + ": triangle inequality of the principal moments",
            f"{found} < {moments[2]:.6g}",
            "the largest at most the sum of the other two",
        )


def nearest_possible(inertial: Inertial) -> Inertial:
    """The physically possible body of the same mass with the nearest second moments.

    A body is possible if its matrix of second moments Σ = ½ tr(I) 1 - I is positive semidefinite.
    The nearest such matrix in the Frobenius norm has the negative eigenvalues replaced by 0.

    Args:
        inertial: a body that may be impossible.
    """
    I = np.asarray(inertial.inertia, dtype=float)
    values, axes = np.linalg.eigh(np.trace(I) / 2 * np.eye(3) - I)
    second = (axes * np.maximum(values, 0.0)) @ axes.T if inertial.mass else np.zeros((3, 3))
    # I = tr(Σ) 1 - Σ
    nearest = np.trace(second) * np.eye(3) - second
    return Inertial(inertial.mass, inertial.center_of_mass, nearest)


def mass(inertial: Inertial, where: str) -> Iterator[DescriptionError]:
    """An error for a mass below 0."""
    if inertial.mass < 0:
        yield _bad(Place(where) / "mass", inertial.mass, "at least 0 kg")


def friction(
    law: Friction, where: Place, *steps: str, of_rotor: bool = False
) -> Iterator[DescriptionError]:
    """Errors for friction that drives, or for invalid coefficients.

    Args:
        law: the friction.
        where: the place of the joint or rotor.
        steps: other places in the file where the friction may be given.
        of_rotor: whether it is the friction of a rotor.
    """
    for key, what, value, expected in law.faults(of_rotor):
        keys = key.split("_") if key.startswith("stribeck") else [key]
        yield _bad((where + f": {what}").at(*steps, "friction", *keys), value, expected)


def position(joint: Joint, q: float, where: str) -> Iterator[DescriptionError]:
    """An error for a position (rad or m) outside the joint's limits."""
    ends = joint.ends
    lower = -math.inf if ends.lower is None else ends.lower
    upper = math.inf if ends.upper is None else ends.upper
    if not lower <= q <= upper:
        expected = f"a position within the limits of joint {joint.name!r}, {lower:g} to {upper:g}"
        yield _bad(where, q, expected)


def _is_axial(inertial: Inertial) -> bool:
    """Whether the only inertia is that about the axis, as given in a motor's data sheet."""
    others = inertial.inertia.copy()
    others[2, 2] = 0.0
    return bool(inertial.inertia[2, 2] >= 0 and not others.any())


def _check_ratios(
    mechanism: Mechanism, rotor: Rotor, carried: Mapping[str, str], where: Place
) -> None:
    """Check what turns a rotor; `carried` has the link of each independent joint."""
    beneath = set(mechanism.path(rotor.mount))
    for name, ratio in rotor.ratios:
        _known(name, carried, (where + ": joint").at("gear_ratio", name))
        if ratio == 0 or not math.isfinite(ratio):
            raise _bad(
                (where / "gear_ratio" + f" of {name!r}").at(name),
                ratio,
                "a finite number other than 0",
            )
        if carried[name] in beneath:
            raise _bad(
                where / "mount",
                rotor.mount,
                f"a link that joint {name!r} does not move: a motor cannot move its own mount",
            )


def _check_loop(loop: Loop, links: Iterable[str], where: Place) -> None:
    at = where.at(Named("loop", loop.name))
    if loop.type not in LOOP_TYPES:
        raise _bad(at / "type", loop.type, choices(LOOP_TYPES))
    for side, attachment in (("predecessor", loop.predecessor), ("successor", loop.successor)):
        _known(attachment.link, links, at / side + " link")
    if loop.predecessor.link == loop.successor.link:
        expected = "a link other than the predecessor's"
        raise _bad(at / "successor" + " link", loop.successor.link, expected)


def _check_independent(mechanism: Mechanism, name: str, what: Place) -> None:
    joint = next((link.joint for link in mechanism.links if link.joint.name == name), None)
    if joint is None or name in mechanism.joint_names:
        _known(name, mechanism.joint_names, what)
    elif joint.moves:
        ratios = joint.coupling.ratios if joint.coupling is not None else ()
        masters = listed(repr(master) for master, _ in ratios)
        raise _bad(what, name, f"an independent joint (this one follows {masters}): leave it out")
    else:
        raise _bad(what, name, "a joint that moves (this one is fixed or locked): leave it out")


def _known(name: str, names: Iterable[str], what: Place) -> None:
    if name not in names:
        raise unknown(what, name, names)


def _bad(name: str, value: object, expected: str) -> DescriptionError:
    return wrong(DescriptionError, name, value, expected)
