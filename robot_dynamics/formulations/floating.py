# SPDX-License-Identifier: Apache-2.0
"""A robot on a floating base, for any scalar type and without singular orientations.

    q = [p; quaternion x y z w; joints]   pose of the floating joint's frame in the world
    v = [ṗ; ω; q̇]                        its twist, on its own axes, and the joints' rates
    a = v̇                                 component by component
    τ = [force; moment; torques]           on those axes, about that frame's origin

as for Pinocchio's free flyer (n = 6 + joints; q has one more entry). The mechanism carries its
base on six joints, three prismatic and three revolute. They are kept at zero, where they are not
singular: the pose of the base has no effect except on gravity, which is rotated instead.

    slides: q̇ = 0,  q̈ = a_p + ω × ṗ      turns (z, y, x): q̇ = ω,  q̈ = α - Σ_{i<j} z_i q̇_i × z_j q̇_j
    g → Rᵀ g
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..mechanism import Mechanism, Pose
from ..mechanism.six_joints import BASE, TURNED, turns
from ..scalar import Array, Note, Scalar, array, cross, exact, is_zero, skew, unnoticed, zeros
from . import derivatives, kinematics
from . import forward as open_forward
from .equations import Equations
from .regressor import Regressor


class Floating(Equations):
    """`Equations` of a tree whose first six joints carry its base."""

    def coriolis_matrix(self, q: Array, qd: Array) -> Array:
        """The Coriolis matrix C (n, n): C v is the bias, and dD/dt - 2C is skew.

        Polarisation gives the part of C that is symmetric in v and w. The rest is due to the
        rotation of the base's axes: ∇_v w - ∇_w v = ad_v w.
        """
        return on_turning_axes(super().coriolis_matrix(q, qd), self.mass_matrix(q), qd)

    def friction(self, q: Array, qd: Array, qdd: Array | None = None) -> Array:
        """The friction torques (n,) at q (n + 1,), qd, qdd (n,); the base has none."""
        return super().friction(_still(q), qd, qdd)

    def _rigid(self, tree: Mechanism, *state: Array, note: Note = unnoticed) -> Array:
        tau: Array = super()._rigid(tree, *at_zero(tree, *state), note=note)
        return array(tau[_order(len(tau))])


class FloatingRegressor(Regressor):
    """`Regressor` of a tree whose first six joints carry its base."""

    def _bodies(self, q: Array, qd: Array, qdd: Array, gravity: Array) -> list[Array]:
        order = _order(len(qd))
        found = super()._bodies(*at_zero(self.tree, q, qd, qdd, gravity))
        return [rows[:, order] for rows in found]

    def _friction(self, q: Array, qd: Array, qdd: Array, shapes: Array) -> list[Array]:
        return super()._friction(_still(q), qd, qdd, shapes)


def of_bodies(tree: Mechanism, q: Array, qd: Array, qdd: Array) -> tuple[Array, ...]:
    """∂τ/∂q, ∂τ/∂v and ∂τ/∂a = D (n, n) at q (n + 1,), qd and qdd (n,). A change of position is
    a twist δ on the base's axes, R exp([δ]×), as in Pinocchio."""
    gravity, v = tree.gravity, array(qd)
    q6, qd6, qdd6, turned = at_zero(tree, q, v, qdd, gravity)
    by_q, by_qd, D = derivatives.of_bodies(replace(tree, gravity=turned), q6, qd6, qdd6)
    order = _order(len(v))
    by_q, by_qd, D = (each[np.ix_(order, order)] for each in (by_q, by_qd, D))
    slides, turns = D[:, :3], D[:, 3:BASE]
    x, y, z = v[3:BASE]
    # δ(Rᵀ g) = Rᵀ g × δ; the base accelerates upwards in place of gravity
    pulled = skew(_axes(tree).T @ turned)
    by_q[:, :3], by_q[:, 3:BASE] = zeros(len(v), 3), -(slides @ pulled)
    # q̈ of the slides: a + ω × v;  of the turns: α - (-z y, z x, -y x)
    by_qd[:, :3] = slides @ skew(v[3:BASE])
    crossed = array([[0.0, -z, -y], [z, 0.0, x], [-y, -x, 0.0]])
    by_qd[:, 3:BASE] = by_qd[:, 3:BASE] - slides @ skew(v[:3]) - turns @ crossed
    return by_q, by_qd, D


def forward(equations: Equations, q: Array, qd: Array, tau: Array) -> Array:
    """The accelerations a (n,) at q (n + 1,), qd and tau (n,); `equations` of newton_euler."""
    return open_forward.forward(equations, q, qd, tau, _articulated)


def _articulated(tree: Mechanism, q: Array, qd: Array, tau: Array) -> Array:
    v, order = array(qd), _order(len(qd))
    # `shift` contains the six joints' q̈ at a = 0
    q6, qd6, shift, turned = at_zero(tree, q, v, zeros(len(v)), tree.gravity)
    found = open_forward.articulated(replace(tree, gravity=turned), q6, qd6, array(tau)[order])
    return array(found - shift)[order]


def pose(mechanism: Mechanism, link: str, q: Array) -> Array:
    """The link's frame in the world (4, 4) at q (n + 1,)."""
    at = kinematics.pose(mechanism, link, _still(q))
    return _moved(mechanism, q).homogeneous() @ at if _floats(mechanism, link) else at


def jacobian(mechanism: Mechanism, link: str, q: Array) -> Array:
    """The Jacobian J (6, n) of the origin of the link's frame on the world's axes, [ṗ; ω] = J v."""
    J = kinematics.jacobian(mechanism, link, _still(q))[:, _order(len(q) - 1)]
    R = _moved(mechanism, q).rotation
    return np.concatenate([R @ J[:3], R @ J[3:]])


def potential_energy(mechanism: Mechanism, q: Array) -> Scalar:
    """The potential energy -Σ m g·p of all moving bodies, J; zero at the world's origin."""
    moved, g = _moved(mechanism, q), mechanism.gravity
    mass = sum(link.inertial.mass for link in mechanism.links if _floats(mechanism, link.name))
    # p = R p_0 + t
    turned = replace(mechanism, gravity=moved.rotation.T @ g)
    return kinematics.potential_energy(turned, _still(q)) - mass * (g @ moved.translation)


def rotation(quaternion: Array) -> Array:
    """The rotation matrix (3, 3) of a quaternion x, y, z, w of any nonzero length."""
    x, y, z, w = quaternion
    twice = 2.0 / (x * x + y * y + z * z + w * w)
    a, b, c = twice * x, twice * y, twice * z
    return array(
        [
            [1.0 - (b * y + c * z), a * y - c * w, a * z + b * w],
            [a * y + c * w, 1.0 - (a * x + c * z), b * z - a * w],
            [a * z - b * w, b * z + a * w, 1.0 - (a * x + b * y)],
        ]
    )


def on_turning_axes(C: Array, D: Array, v: Array) -> Array:
    """The Coriolis matrix (n, n) from its part C by polarisation, D (n, n) and v (n,)."""
    # C w = ¼ [b(v + w) - b(v - w)] + ½ D ad_v w
    columns = [*(C[:, :BASE] + D[:, :BASE] @ (adjoint(v) / 2)).T, *C[:, BASE:].T]
    return np.column_stack(columns)


def adjoint(v: Array) -> Array:
    """(6, 6): ad_v w = [ω_v × w_p - ω_w × v_p; ω_v × ω_w], of twists."""
    linear, angular = skew(v[:3]), skew(v[3:BASE])
    return np.block([[angular, linear], [zeros(3, 3), angular]])


def at_zero(
    tree: Mechanism, q: Array, v: Array, a: Array, gravity: Array
) -> tuple[Array, Array, Array, Array]:
    """(q, q̇, q̈) (n,) of the tree's joints, and gravity (3,), with the six joints at zero."""
    q, v, a = array(q), array(v), array(a)
    turning = turns(v[3:BASE], a[3:BASE])
    qd = array([*zeros(3), *v[3:BASE][::-1], *v[BASE:]])
    qdd = array([*(a[:3] + cross(v[3:BASE], v[:3])), *turning, *a[BASE:]])
    if all(is_zero(g) for g in gravity):
        return _still(q), qd, qdd, gravity
    E = _axes(tree)
    return _still(q), qd, qdd, array(E @ (rotation(q[3:7]).T @ (E.T @ gravity)))


def _order(n: int) -> list[int]:
    return [*TURNED, *range(BASE, n)]


def _still(q: Array) -> Array:
    """Positions (n,) of the tree's joints, with the six at zero."""
    return array([*zeros(BASE), *array(q)[BASE + 1 :]])


def _joint_frame(tree: Mechanism) -> Pose:
    """The floating joint's frame in the frame of the tree's base, with the six joints at zero."""
    first = tree.moving[0]
    before = Pose()
    for name in reversed(tree.path(first.name)[1:-1]):
        before = before @ tree.link(name).joint.pose(0.0)
    return before @ first.joint.origin


def _axes(tree: Mechanism) -> Array:
    """(3, 3): the floating joint's axes in the tree's base frame; the tree may have any form."""
    at = Pose()
    columns: list[Array] = []
    for link in tree.moving[:3]:
        # only the first may come after links on fixed joints
        at = _joint_frame(tree) if not columns else at @ link.joint.origin
        columns.append(at.rotation @ link.joint.axis)
        at = at @ link.joint.tail
    return exact(array(columns).T)


def _floats(mechanism: Mechanism, link: str) -> bool:
    """Is the link carried by the floating base, rather than by the ground?"""
    return mechanism.moving[BASE - 1].name in mechanism.path(link)


def _moved(mechanism: Mechanism, q: Array) -> Pose:
    """The transform from poses with the six joints at zero to poses at q."""
    at = _joint_frame(mechanism)
    here = Pose(rotation(array(q)[3:7]), array(q)[:3])
    return at @ here @ at.inverse()
