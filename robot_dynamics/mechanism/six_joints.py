# SPDX-License-Identifier: Apache-2.0
"""A robot whose base is carried by six joints: three prismatic, then three revolute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputError, wrong
from ..scalar import Array, is_zero
from .bodies import Inertial
from .mechanism import Joint, Link, Mechanism, new_name

BASE = 6
"""Number of joints that carry the base"""
SLIDES, TURNS = "xyz", "zyx"
"""Axes of the six joints in order from the ground; at zero, ω = (q̇_x, q̇_y, q̇_z)"""
TURNED = [0, 1, 2, 5, 4, 3]
"""The permutation between ω in the order x, y, z and the revolute joints z, y, x; it is its own
inverse"""


def on_six_joints(mechanism: Mechanism) -> Mechanism:
    """The same tree with its base carried by three prismatic and three revolute joints.

    Loops, motors, sensors, platform and home are dropped, and gravity is zero.
    """
    taken = {mechanism.base, *(link.name for link in mechanism.links)}
    taken |= {link.joint.name for link in mechanism.links}

    ground, links = new_name("ground", taken), []
    parts = [(f"base_{axis}", axis, "prismatic") for axis in SLIDES]
    parts += [(f"base_r{axis}", axis, "revolute") for axis in TURNS]
    parent = ground
    for name, axis, kind in parts:
        joint = Joint(new_name(name, taken), kind, axis=np.eye(3)["xyz".index(axis)])
        last = name == parts[-1][0]
        links.append(Link(mechanism.base if last else joint.name, parent, joint))
        parent = joint.name
    return replace(
        mechanism,
        links=(*links, *mechanism.links),
        base=ground,
        gravity=np.zeros(3),
        loops=(),
        actuated=(),
        driving=(),
        shares={},
        sensed=(),
        platform=None,
        home={},
    )


def turns(omega: Array, alpha: Array) -> Array:
    """q̈ (…, 3) of the revolute joints, z, y, x, at zero, for the base's ω and α = dω/dt (…, 3)."""
    x, y, z = (omega[..., k] for k in range(3))
    # z ẑ × y ŷ + (z ẑ + y ŷ) × x x̂
    crossed = np.stack([-z * y, z * x, -y * x], axis=-1)
    accelerations: Array = (alpha - crossed)[..., ::-1]
    return accelerations


def floating(mechanism: Mechanism, order: Sequence[str] | None = None) -> Mechanism:
    """The same robot with its base carried by six joints, the first six of the tree.

    Args:
        mechanism: the robot.
        order: the order of the other joints; None: unchanged.

    Raises:
        InputError: see `FloatingBase`.
    """
    if mechanism.loops:
        expected = "a mechanism without loops"
        raise wrong(InputError, "floating base", f"loops ({mechanism.name})", expected)
    if not is_floating(mechanism):
        gravity, body = mechanism.gravity, mechanism.base_inertial
        base = mechanism.base
        mechanism = replace(
            on_six_joints(mechanism), gravity=gravity, base_inertial=Inertial(), home=mechanism.home
        )
        links = tuple(
            replace(link, inertial=body) if link.name == base else link for link in mechanism.links
        )
        mechanism = replace(mechanism, links=links)
    carrier = mechanism.moving[BASE - 1].name
    for link in mechanism.moving[:BASE]:
        acting = [name for name, x in link.joint.friction.numbers.items() if not is_zero(x)]
        if acting:
            at = f"floating base: friction of {link.joint.name}"
            raise wrong(InputError, at, acting[0], "none: a floating base has no friction")
    for link in mechanism.moving[BASE:]:
        if carrier not in mechanism.path(link.name):
            expected = f"every joint on {carrier!r}"
            raise wrong(InputError, "floating base: joint elsewhere", link.joint.name, expected)
    return mechanism if order is None else _ordered(mechanism, order)


def names_on_axes(mechanism: Mechanism) -> tuple[str, ...]:
    """The joints in the order of a floating base's twist: x, y, z, rx, ry, rz, then the others."""
    names = mechanism.joint_names
    return (*(names[k] for k in TURNED), *names[BASE:])


def is_floating(mechanism: Mechanism) -> bool:
    """Whether the first six joints are those of a floating joint."""
    first = mechanism.moving[:BASE]
    kinds = [("prismatic", axis) for axis in SLIDES] + [("revolute", axis) for axis in TURNS]
    return len(first) == BASE and all(
        link.joint.type == kind
        and link.joint.coupling is None
        and np.array_equal(link.joint.axis, np.eye(3)["xyz".index(axis)])
        and (k == 0 or (link.parent == first[k - 1].name and link.joint.origin.is_identity))
        and (k == BASE - 1 or (link.inertial.is_nothing and link.joint.tail.is_identity))
        for k, (link, (kind, axis)) in enumerate(zip(first, kinds, strict=True))
    )


def _ordered(mechanism: Mechanism, order: Sequence[str]) -> Mechanism:
    """The same tree with its joints in the given order after those of the base."""
    names, wanted = mechanism.joint_names, [*order]
    if sorted(wanted) != sorted(names[BASE:]):
        off = set(map(str, wanted)) ^ set(names[BASE:])
        found = sorted(off)[0] if off else "one twice"
        raise wrong(InputError, "joints", found, f"each of {', '.join(names[BASE:])} once")
    by_joint: Mapping[str, Any] = {link.joint.name: link for link in mechanism.links}
    links: dict[str, Any] = {}
    for name in [*names[:BASE], *wanted, *by_joint]:
        for each in reversed(mechanism.path(by_joint[name].name)[:-1]):
            links.setdefault(each, mechanism.link(each))
    made = replace(mechanism, links=tuple(links.values()))
    for found, expected in zip(made.joint_names[BASE:], wanted, strict=True):
        if found != expected:
            raise wrong(InputError, "joints", expected, f"after {found!r}, which carries it")
    return made
