# SPDX-License-Identifier: Apache-2.0
"""An equivalent tree with fewer numbers: sparse frames and the base inertial parameters.

Source: Khalil, Kleinfinger, "Minimum operations and minimum parameters of the dynamic models
of tree structure robots", IEEE J. Robotics and Automation 3(6), 1987; Gautier, Khalil (1990).
It is for formulations that use only `mass`, `first_moment` and `inertia_about_origin` of a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..scalar import Array, Scalar, array, exact, rotation_x, rotation_z, zeros
from .bodies import Inertial, Pose
from .mechanism import Link, Mechanism
from .transform import reframed, with_parts

FARTHEST = 32.0
"""How far a frame may be shifted along its axis, in units of its origin's distance from the
previous axis. Products of lengths are then at most 1e3 times those of the robot itself, for a
rounding error of 2e-13. Axes more than 1.8° apart never need more"""


@dataclass(frozen=True, eq=False)
class Moments:
    """The parameters in which the torques are linear. After regrouping they need not be physically
    consistent."""

    mass: Scalar
    """kg"""
    first_moment: Array
    """(3,), kg m"""
    inertia_about_origin: Array
    """(3, 3), kg m², about the link frame's origin"""


def compact(mechanism: Mechanism) -> Mechanism:
    """A mechanism in standard form with sparse frames and regrouped inertial parameters.

    Its torques are the same functions of the tree coordinates. It has `Moments` in place of
    bodies, and gravity is given in the new base frame.

    Args:
        mechanism: in standard form (see `transform.standard_form`).
    """
    return regrouped(sparse_frames(mechanism))


def sparse_frames(mechanism: Mechanism) -> Mechanism:
    """Turn each frame about its z axis and shift it along z, to make the next one's pose sparse.

    x points along the common normal to the next axis, and the next origin is where that normal
    meets that axis: origin = Tx(a) Tz(c) Rx(alpha) Rz(beta). If the axes are so nearly parallel
    that this point is far away, the next origin is in the plane z = 0: Tx(a) Ty(b) Rx(alpha)
    Rz(beta). If a link carries several links, this holds for the child that carries most. The base
    takes the frame of its first joint.

    This is exact for all angles: any turn about z and any shift along z give the same robot, as
    they commute with the joint's own motion. Rounding errors are bounded, as turns preserve lengths
    and FARTHEST bounds the shifts. An entry is set to zero only if it is zero except for rounding:
    x · z' = 0 by the choice of the turn, whatever the tilt, and p_y = 0 or p_z = 0 by the choice of
    the shift. Axes count as parallel if their tilt is below the rounding of a pose itself
    (`exact`), 1e-15 rad.

    Source: Khalil and Kleinfinger (1987).
    """
    main_child = _main_children(mechanism)
    turn = dict.fromkeys(mechanism.index(), 0.0)
    shift = dict(turn)
    zero: dict[str, list[int]] = {}  # which coordinates of the next origin vanish
    for link in mechanism.links:
        if main_child.get(link.parent) != link.name or link.parent == mechanism.base:
            continue
        d, p = link.joint.origin.rotation[:, 2], link.joint.origin.translation
        tilt = np.hypot(d[0], d[1])
        # x along z × z', or along p if that is zero
        turn[link.parent] = np.arctan2(d[0], -d[1]) if tilt else np.arctan2(p[1], p[0])
        # the foot of the common normal, p + s z', is across the tilt: (p + s z')·(d_x, d_y) = 0
        along = p[0] * d[0] + p[1] * d[1]
        if tilt and abs(along) <= FARTHEST * tilt**2 * np.hypot(p[0], p[1]):
            shift[link.name], zero[link.name] = -along / tilt**2, [1]
        else:
            shift[link.name] = (shift[link.parent] - p[2]) / d[2]
            zero[link.name] = [2] if tilt else [1, 2]
    frames = {name: Pose(rotation_z(turn[name]), array([0.0, 0.0, shift[name]])) for name in turn}
    first = main_child.get(mechanism.base)
    if first is not None:
        frames[mechanism.base] = mechanism.link(first).joint.origin
    tree = reframed(mechanism, frames)

    def without_tail(link: Link) -> Link:
        # a motion commutes with a turn about its own axis: motion · tail = tail · motion
        origin = link.joint.origin @ link.joint.tail
        if main_child[link.parent] == link.name:
            origin = _without_rounding(origin, zero.get(link.name, []))
        return replace(link, joint=replace(link.joint, origin=origin, tail=Pose()))

    gravity = frames[mechanism.base].rotation.T @ mechanism.gravity
    return replace(tree, links=tuple(map(without_tail, tree.links)), gravity=gravity)


def _without_rounding(pose: Pose, zero: list[int]) -> Pose:
    """T(p) Rx(alpha) Rz(beta) with entries that should vanish set exactly to zero."""
    R, p = pose.rotation, pose.translation.copy()
    alpha, beta = np.arctan2(-R[1, 2], R[2, 2]), np.arctan2(-R[0, 1], R[0, 0])
    p[zero] = 0.0
    return Pose(exact(rotation_x(alpha)) @ exact(rotation_z(beta)), p)


def _main_children(mechanism: Mechanism) -> Mapping[str, str]:
    """The child that carries the most links, by link.

    Links whose joints follow others are not counted, so the choice at the base is the same with and
    without rotors.
    """
    size = {link.name: int(link.joint.coupling is None) for link in mechanism.links}
    size[mechanism.base] = 1
    main_child: dict[str, str] = {}
    for link in reversed(mechanism.links):
        size[link.parent] += size[link.name]
        best = main_child.get(link.parent)
        if best is None or size[link.name] >= size[best]:
            main_child[link.parent] = link.name
    return main_child


def regrouped(mechanism: Mechanism) -> Mechanism:
    """Move the inertia that does not affect a joint's torque to its parent link.

    Mass on a revolute joint's axis does not affect its torque. So the whole mass is moved, the
    first moment along the axis, and the inertia of a rod on the axis, I_xx = I_yy; mass, h_z and
    I_yy become zero. A prismatic joint does not turn its link, so the whole inertia is moved.

    Bodies are represented by pseudo-inertias J = ∫ x xᵀ dm (4, 4) over homogeneous points x, with
    J' = T J Tᵀ in another frame. In this form distances along the axis never mix with those across
    it, on which alone the joint's torque depends: I_zz = J_xx + J_yy and I_xx - I_yy = J_yy - J_xx
    lose no digits to m z², however far along the axis the frame or the mass may be.

    Args:
        mechanism: in standard form.

    Source: Gautier and Khalil (1990).
    """
    bodies = {link.name: _pseudo_inertia(link.inertial) for link in mechanism.links}
    kept: dict[str, Moments] = {}
    for link in reversed(mechanism.links):
        kept[link.name], moved = _split(link, bodies[link.name])
        if link.parent != mechanism.base:
            T = link.joint.pose(0.0).homogeneous()
            bodies[link.parent] = bodies[link.parent] + T @ moved @ T.T
    return with_parts(mechanism, cast(Mapping[str, Inertial], kept))


def _pseudo_inertia(body: Inertial) -> Array:
    """∫ x xᵀ dm (4, 4) about the link frame's origin."""
    I, x = body.inertia, array([*body.center_of_mass, 1.0])
    # ½ tr(I) 1 - I about the centre of mass, plus m x xᵀ for the shift to the origin
    central = zeros(4, 4).astype(I.dtype)
    central[:3, :3] = (I[0, 0] + I[1, 1] + I[2, 2]) / 2 * np.eye(3) - I
    P: Array = central + body.mass * np.outer(x, x)
    return P


def _split(link: Link, J: Array) -> tuple[Moments, Array]:
    """(the moments that stay, the pseudo-inertia that is moved to the parent)"""
    m, h = J[3, 3], J[:3, 3]
    moved = np.zeros_like(J)
    if link.joint.turns:
        moved[2:, 2:] = J[2:, 2:]
        moved[2, 2] = J[2, 2] + J[0, 0]  # I_yy = J_zz + J_xx
        # I - diag(I_yy, I_yy, 0)
        kept = array(
            [
                [J[1, 1] - J[0, 0], -J[0, 1], -J[0, 2]],
                [-J[0, 1], 0.0, -J[1, 2]],
                [-J[0, 2], -J[1, 2], J[0, 0] + J[1, 1]],
            ]
        )
        return Moments(0.0, array([h[0], h[1], 0.0]), kept), moved
    moved[:3, :3] = J[:3, :3]
    return Moments(m, h, zeros(3, 3)), moved
