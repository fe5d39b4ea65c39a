# SPDX-License-Identifier: Apache-2.0
"""The moving platform's own Newton–Euler equations, with v = [ṗ; ω] ≠ ẋ, over any scalar.

P is the origin of the platform link's frame in the description. Forces act at P; v, a and every
wrench [force; moment about P] are in the base frame. The body is the platform link with all links
that fixed joints attach to it.

Common arguments: body, the platform's, in its link's frame; R (3, 3), the rotation of this frame in
the base frame; omega (3,), its angular velocity, rad/s.
"""

from __future__ import annotations

import numpy as np

from ...mechanism import Inertial, Mechanism, Pose
from ...mechanism.base_parameters import Moments
from ...mechanism.transform import with_parts
from ...scalar import Array, array, cross, skew, zeros


def platform_body(mechanism: Mechanism) -> tuple[Moments, Mechanism]:
    """(the platform's body in its own link frame, the mechanism without this body)."""
    poses = platform_links(mechanism)
    bodies = [mechanism.link(name).inertial.seen_from(pose) for name, pose in poses.items()]
    body = Moments(
        sum(each.mass for each in bodies),
        sum((each.first_moment for each in bodies), zeros(3)),
        sum((each.inertia_about_origin for each in bodies), zeros(3, 3)),
    )
    return body, with_parts(mechanism, dict.fromkeys(poses, Inertial()))


def platform_links(mechanism: Mechanism) -> dict[str, Pose]:
    """The links that form the platform, with their poses in its frame; empty if there is none.

    They are the platform link and all links that fixed joints weld to it, above or below it.
    """
    if mechanism.platform is None:
        return {}
    poses = {mechanism.platform: Pose()}
    link = mechanism.link(mechanism.platform)
    while not link.joint.moves and link.parent != mechanism.base:
        poses[link.parent] = poses[link.name] @ link.joint.pose(0.0).inverse()
        link = mechanism.link(link.parent)
    for link in mechanism.links:
        if link.parent in poses and not link.joint.moves:
            poses[link.name] = poses[link.parent] @ link.joint.pose(0.0)
    return poses


def inertia_matrix(body: Inertial | Moments, R: Array) -> Array:
    """D_x (6, 6), kg, kg·m, kg·m², about P."""
    m, mc, I = _turned(body, R)
    # [[m 1, -m [c]×], [m [c]×, I_P]]
    return _blocks(m * np.eye(3), -skew(mc), skew(mc), I)


def coriolis_matrix(body: Inertial | Moments, R: Array, omega: Array) -> Array:
    """C_x (6, 6): C_x v is the wrench due to the rotation alone.

    Of the many matrices with this product it is the one whose projection J_Cᵀ (D_x J̇_C + C_x J_C)
    consists of Christoffel symbols; dD_x/dt - 2 C_x is skew-symmetric.
    """
    _, mc, I = _turned(body, R)
    # [[0, -m [ω × c]×], [0, ½ ([ω]× I - I [ω]× - [I ω]×)]]
    w = skew(omega)
    turning = (w @ I - I @ w - skew(I @ omega)) / 2
    return _blocks(zeros(3, 3), -skew(cross(omega, mc)), zeros(3, 3), turning)


def gravity_wrench(body: Inertial | Moments, R: Array, gravity: Array) -> Array:
    """G_x (6,): the wrench that holds the platform against gravity (3,), m/s²."""
    m, mc, _ = _turned(body, R)
    # [-m g; -m c × g]
    return array([*(-m * gravity), *-cross(mc, gravity)])


def motion_wrench(body: Inertial | Moments, R: Array, omega: Array, a: Array) -> Array:
    """D_x a + C_x v (6,) at a = [p̈; ω̇]; it does not depend on ṗ."""
    m, mc, I = _turned(body, R)
    p_acceleration, alpha = a[:3], a[3:]
    # F = m (p̈ + ω̇ × c + ω × (ω × c)),  N = I ω̇ + ω × I ω + m c × p̈
    force = m * p_acceleration + cross(alpha, mc) + cross(omega, cross(omega, mc))
    moment = I @ alpha + cross(omega, I @ omega) + cross(mc, p_acceleration)
    return array([*force, *moment])


def _turned(body: Inertial | Moments, R: Array) -> tuple[Array, Array, Array]:
    """(m, m c, I_P) on base axes."""
    return body.mass, R @ body.first_moment, R @ body.inertia_about_origin @ R.T


def _blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    return np.vstack([np.hstack([a, b]), np.hstack([c, d])])
