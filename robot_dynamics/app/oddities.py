# SPDX-License-Identifier: Apache-2.0
"""Likely mistakes in a description: hints in addition to the warnings of `rd.load`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import listed
from ..mechanism import Link, Mechanism
from ..mechanism.transform import lumped

LONGEST = 50.0
"""m: the description of a longer robot is probably in millimetres"""
STEEL = 7850.0
"""The density of steel, kg/m³"""
FAR = 3.0
"""Robot lengths: the largest plausible distance of a centre of mass from its frame, and the largest
plausible radius of gyration"""
DEGREES = 30.0, 360.0
"""Limits of turning joints between these are more plausible in degrees than in rad"""
LIMBS = 2
"""The smallest number of legs or wheels with which a robot may walk or roll"""
LIMB = 3
"""The smallest number of joints of a leg"""


def oddities(mechanism: Mechanism, where: str) -> Iterator[str]:
    """Likely mistakes, one line each.

    Args:
        mechanism: the robot.
        where: the description's name, which begins each line.
    """
    name = f"{where}: robot {mechanism.name!r}"
    if weightless := [link for link in lumped(mechanism).links if _weighs_nothing(mechanism, link)]:
        links = listed(link.name for link in weightless)
        joints = listed(link.joint.name for link in weightless)
        yield f"{name}: no mass and no inertia in {links} (moved by {joints}): is it missing?"
    for joint in (link.joint for link in mechanism.links if link.joint.turns):
        ends = (joint.ends.lower or 0.0, joint.ends.upper or 0.0)
        if far := [end for end in ends if DEGREES[0] < abs(end) <= DEGREES[1]]:
            yield (
                f"{name}: joint {joint.name!r}: a limit of {far[0]:g} rad, "
                f"{abs(far[0]) / (2 * np.pi):.3g} turns: is it in degrees?"
            )
    yield from _units(mechanism, name)


def _weighs_nothing(mechanism: Mechanism, link: Link) -> bool:
    """Whether the link lacks mass and inertia, without being merely one of several joints at the
    same point, as in a universal joint or a wrist."""
    if not link.inertial.is_nothing:
        return False
    for rotor in mechanism.rotors:
        if rotor.mount == link.name or link.joint.name in dict(rotor.ratios):
            return False
    after = [each for each in lumped(mechanism).links if each.parent == link.name]
    here = link.joint.tail.inverse()
    places = [here.translation - each.joint.origin.translation for each in after]
    return not after or any(float(np.linalg.norm(place)) > 1e-9 for place in places)


def size(mechanism: Mechanism) -> float:
    """The longest way from the base to a tip, including the travel of prismatic joints, m."""
    found = {mechanism.base: 0.0}
    for link in mechanism.links:
        joint = link.joint
        step = sum(float(np.linalg.norm(x.translation)) for x in (joint.origin, joint.tail))
        if joint.slides:
            ends = joint.ends
            step += max(abs(ends.lower or 0.0), abs(ends.upper or 0.0))
        found[link.name] = found[link.parent] + step
    return max(found.values())


def _units(mechanism: Mechanism, name: str) -> Iterator[str]:
    length = size(mechanism)
    mass = sum(float(link.inertial.mass) for link in mechanism.links)
    if length > LONGEST:
        yield f"{name}: {length:.4g} m from the base to a tip: are lengths in millimetres?"
        return
    if length == 0:
        return
    # the mass of a steel ball whose diameter is the robot's length
    ball = STEEL * np.pi / 6 * length**3
    if mass > ball:
        yield (
            f"{name}: {mass:.4g} kg, more than a solid steel ball with the robot's length as its "
            f"diameter ({length:.3g} m, {ball:.3g} kg): are masses in grams?"
        )
    for link in mechanism.links:
        body = link.inertial
        away = float(np.linalg.norm(body.center_of_mass))
        if away > FAR * length:
            yield (
                f"{_of(name, link)}: centre of mass {away:.4g} m from its frame, but the robot is "
                f"{length:.3g} m long: is it in millimetres?"
            )
        if body.mass > 0:
            # radius of gyration: I = m r²
            radius = float(np.sqrt(np.abs(body.inertia).max() / body.mass))
            if radius > FAR * length:
                yield (
                    f"{_of(name, link)}: inertia of {body.mass:.3g} kg at a radius of gyration of "
                    f"{radius:.4g} m, but the robot is {length:.3g} m long: is it in kg mm² or "
                    "g mm²?"
                )


def _of(name: str, link: Link) -> str:
    return f"{name}: link {link.name!r}"


def notes(mechanism: Mechanism) -> Iterator[str]:
    """Remarks on what may well be intended, one line each: legs or wheels on a base that is taken
    as fixed."""
    tree = lumped(mechanism)
    if tree.loops:
        return
    joints = {
        link.name: sum(link.name in tree.path(each.name) for each in tree.links)
        for link in tree.links
        if link.parent == tree.base
    }
    legs = [name for name, count in joints.items() if count >= LIMB]
    wheels = [name for name in joints if tree.link(name).joint.type == "continuous"]
    limbs = max(legs, wheels, key=len)
    if len(limbs) >= LIMBS:
        yield (
            f"the base {mechanism.base} is assumed to be fixed and carries {listed(limbs)}: if the "
            "robot walks, rolls or flies, its torques are valid only while the base is at rest"
        )
