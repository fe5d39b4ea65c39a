"""Is a description a robot? What can't be computed with is raised, what no body can be is told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from ..errors import DescriptionError, choices, wrong
from ..mechanism import LOOP_TYPES, Inertial, Mechanism
from .order import no_name_twice

_SLACK = 1e-9
"""Relative slack of the inertia conditions: descriptions are rounded decimals"""


def check(mechanism: Mechanism, where: str) -> Iterator[DescriptionError]:
    """Complaints about bodies that cannot be.

    Raises:
        DescriptionError: a name that stands twice or nowhere, a joint that cannot move.
    """
    structure(mechanism, where)
    for link in mechanism.links:
        yield from body(link.inertial, f"{where}: link {link.name!r}")
        for what, value, expected in link.joint.friction.faults():
            raise _bad(f"{where}: joint {link.joint.name!r}: {what}", value, expected)
    for rotor in mechanism.rotors:
        yield from body(rotor.inertial, f"{where}: rotor {rotor.name!r}")


def structure(mechanism: Mechanism, where: str) -> None:
    """Names, parents, rotors, loops and the lists of joints fit together."""
    no_name_twice((link.joint.name for link in mechanism.links), f"{where}: joint")
    no_name_twice((rotor.name for rotor in mechanism.rotors), f"{where}: rotor")
    no_name_twice((loop.name for loop in mechanism.loops), f"{where}: loop")
    links = mechanism.index()
    for rotor in mechanism.rotors:
        _check_rotor(mechanism, rotor, f"{where}: rotor {rotor.name!r}")
    for loop in mechanism.loops:
        if loop.type not in LOOP_TYPES:
            raise _bad(f"{where}: loop {loop.name!r}: type", loop.type, choices(LOOP_TYPES))
        for side, attachment in (("predecessor", loop.predecessor), ("successor", loop.successor)):
            _known(attachment.link, links, f"{where}: loop {loop.name!r}: {side} link")
    joints = mechanism.joint_names
    for key, names in (("actuated", mechanism.actuated), ("sensed", mechanism.sensed)):
        no_name_twice(names, f"{where}: {key}: joint")
        for name in names:
            _known(name, joints, f"{where}: {key}")
    for name in mechanism.home:
        _known(name, joints, f"{where}: home")
    if both := set(mechanism.actuated) & set(mechanism.sensed):
        raise _bad(f"{where}: sensed", sorted(both)[0], "passive joints (it is actuated)")
    if mechanism.platform is not None:
        _known(mechanism.platform, links, f"{where}: platform")
    if mechanism.actuated and not mechanism.loops and len(mechanism.actuated) < len(joints):
        missing = [name for name in joints if name not in mechanism.actuated]
        raise _bad(
            f"{where}: actuated: under-actuated with {len(joints)} degrees of freedom",
            list(mechanism.actuated),
            f"a motor at {', '.join(missing)} too, or loops that close the chain",
        )


def body(inertial: Inertial, where: str) -> Iterator[DescriptionError]:
    """What is impossible about a rigid body."""
    mass, I = float(inertial.mass), np.asarray(inertial.inertia, dtype=float)
    if mass < 0:
        yield _bad(f"{where}: mass", mass, "at least 0 kg")
        return
    if not I.any():
        return
    moments = np.linalg.eigvalsh(I)
    slack = _SLACK * max(abs(moments))
    if moments[0] < -slack:
        yield _bad(
            f"{where}: inertia: a principal moment",
            float(moments[0]),
            "a positive semidefinite tensor (no principal moment below 0)",
        )
    # ∫ (y² + z²) + ∫ (x² + z²) ≥ ∫ (x² + y²)
    elif moments[2] > moments[0] + moments[1] + slack:
        found = " + ".join(f"{moment:.6g}" for moment in moments[:2])
        yield _bad(
            f"{where}: inertia: triangle inequality of the principal moments",
            f"{found} < {moments[2]:.6g}",
            "the largest at most the sum of the other two",
        )


def _check_rotor(mechanism: Mechanism, rotor, where: str) -> None:  # type: ignore[no-untyped-def]
    _known(rotor.mount, mechanism.index(), f"{where}: mount")
    if not rotor.ratios:
        raise _bad(f"{where}: gear_ratio", rotor.ratios, "the ratio of at least one joint")
    for name, ratio in rotor.ratios:
        _known(name, mechanism.joint_names, f"{where}: joint")
        if ratio == 0 or not math.isfinite(ratio):
            raise _bad(f"{where}: gear_ratio of {name!r}", ratio, "a finite number other than 0")
        driven = next(link for link in mechanism.links if link.joint.name == name)
        if driven.name in mechanism.path(rotor.mount):
            raise _bad(
                f"{where}: mount",
                rotor.mount,
                f"a link that joint {name!r} does not move: the motor would carry itself around",
            )


def _known(name: str, names: Iterable[str], what: str) -> None:
    if name not in names:
        raise _bad(what, name, choices(names))


def _bad(name: str, value: object, expected: str) -> DescriptionError:
    return wrong(DescriptionError, name, value, expected)
