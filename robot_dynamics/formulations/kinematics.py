# SPDX-License-Identifier: Apache-2.0
"""Kinematics of the links of a tree in the base frame, for any scalar type; links may be on fixed
joints. Loops are ignored."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..mechanism import Link, Mechanism, Pose
from ..mechanism.transform import lumped
from ..scalar import Array, Scalar, array, cross, zeros


def pose(mechanism: Mechanism, link: str, q: Array) -> Array:
    """The link's frame in the base frame (4, 4) at q (n,)."""
    return _frames(mechanism, _way(mechanism, link), q)[link].homogeneous()


def poses(mechanism: Mechanism, q: Array) -> dict[str, Pose]:
    """The frames of all links, and of the base, in the base frame at q (n,)."""
    return _frames(mechanism, mechanism.links, q)


def jacobian(mechanism: Mechanism, link: str, q: Array) -> Array:
    """The Jacobian J (6, n) of the origin of the link's frame on base axes, [ṗ; ω] = J q̇."""
    S, _ = mechanism.coordinates()
    row = {name: j for j, name in enumerate(mechanism.tree_names)}
    way = _way(mechanism, link)
    frames = _frames(mechanism, way, q)
    end = frames[link].translation
    columns = np.zeros((len(row), 6), dtype=object)
    for each in way:
        joint = each.joint
        if not joint.moves:
            continue
        frame = frames[each.parent] @ joint.origin
        axis = frame.rotation @ joint.axis
        # ∂p/∂q_j = z × (p - p_j), ω = z; a sliding joint: z, 0
        lever = end - frame.translation
        parts = (cross(axis, lever), axis) if joint.turns else (axis, zeros(3))
        columns[row[joint.name]] = [*parts[0], *parts[1]]
    J: Array = columns.T @ S
    return J


def potential_energy(mechanism: Mechanism, q: Array) -> Scalar:
    """The potential energy -Σ m g·p of all moving bodies at q (n,), J; zero at the base frame's
    origin. `mechanism` has its rotors as links."""
    tree = lumped(mechanism)
    frames = poses(tree, q)
    moment = zeros(3)
    for link in tree.links:
        here, body = frames[link.name], link.inertial
        # m p = m o + R h
        moment = moment + body.mass * here.translation + here.rotation @ body.first_moment
    return -(tree.gravity @ moment)


def _way(mechanism: Mechanism, link: str) -> list[Link]:
    """The links from the base, which is not among them, to this one."""
    return [mechanism.link(name) for name in reversed(mechanism.path(link)[:-1])]


def _frames(mechanism: Mechanism, links: Iterable[Link], q: Array) -> dict[str, Pose]:
    """The frames of the base and of these links, each after its parent, in the base frame."""
    S, s = mechanism.coordinates()
    position = dict(zip(mechanism.tree_names, S @ array(q) + s, strict=True))
    frames = {mechanism.base: Pose()}
    for link in links:
        at = position.get(link.joint.name, 0.0)
        frames[link.name] = frames[link.parent] @ link.joint.pose(at)
    return frames
