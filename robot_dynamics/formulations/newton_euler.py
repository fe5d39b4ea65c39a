# SPDX-License-Identifier: Apache-2.0
"""Recursive Newton–Euler, O(n), in link frames with inertias about the frames' origins.

Sources: Luh, Walker, Paul (1980) for the recursion; Khalil, Kleinfinger (1987) for the
moments about the origins, which make the torques linear in the inertial parameters.
Rotors are separate links whose joints follow the joints that they drive.
"""

from __future__ import annotations

import math

from ..mechanism import Joint, Mechanism
from ..mechanism.transform import rotors_as_links, standard_form
from ..scalar import (
    Array,
    Note,
    Scalar,
    array,
    cos,
    cross,
    exact,
    rotation_z,
    sin,
    skew,
    unnoticed,
    zeros,
)

Motion = tuple[Array, Array, Array, Array]
"""ω, ω̇, U = [ω̇]× + [ω]×² and a of a frame, on its own axes"""


def prepare(mechanism: Mechanism) -> Mechanism:
    """The form that this formulation needs: z-axis joints, rotors as links."""
    return standard_form(rotors_as_links(mechanism))


def torques(mechanism: Mechanism, q: Array, qd: Array, qdd: Array, note: Note = unnoticed) -> Array:
    """The torques (n_tree,) of the tree coordinates, N·m or N, without friction and loops.

    Args:
        mechanism: in the form of `prepare`.
        q: (n_tree,) positions, rad or m.
        qd: (n_tree,) rates, rad/s or m/s.
        qdd: (n_tree,) accelerations, rad/s² or m/s².
        note: called with intermediate values; see `scalar.Note`.
    """
    index = mechanism.index()
    # the base accelerates upwards in place of gravity
    motion = {-1: (zeros(3), zeros(3), zeros(3, 3), -mechanism.gravity)}
    frames, wrenches = [], []

    for i, link in enumerate(mechanism.links):
        joint, body = link.joint, link.inertial
        turn, p = placed(joint, q[i])
        w, alpha, a = moved(joint, turn, p, motion[index[link.parent]], qd[i], qdd[i])
        w, alpha, a = note("omega", i, w), note("alpha", i, alpha), note("a", i, a)
        U = note("U", i, acceleration_matrix(w, alpha))
        m, h, I = body.mass, body.first_moment, body.inertia_about_origin
        # F = m a + U h,   N = I ω̇ + ω × I ω + h × a
        force = m * a + U @ h
        moment = _gyration(I, w, alpha, U) + cross(h, a)

        force, moment = note("F", i, force), note("N", i, moment)
        motion[i] = (w, alpha, U, a)
        frames.append((turn, p))
        wrenches.append((force, moment))

    tau: list[Scalar] = []
    for i, link in reversed(list(enumerate(mechanism.links))):
        force, moment = note("f", i, wrenches[i][0]), note("n", i, wrenches[i][1])
        tau.append(moment[2] if link.joint.turns else force[2])
        parent = index[link.parent]
        if parent < 0:
            continue
        # f_p += R f,   n_p += R n + p × R f
        turn, p = frames[i]
        force = turn.outward(force)
        above = wrenches[parent]
        wrenches[parent] = (above[0] + force, above[1] + turn.outward(moment) + cross(p, force))
    return array(reversed(tau))


def placed(joint: Joint, q: Scalar) -> tuple[Turn, Array]:
    """The rotation of the link's frame in its parent's at joint position q, and its origin (3,)."""
    turn, p = Turn(joint, q), joint.origin.translation
    if joint.slides:
        p = p + joint.origin.rotation[:, 2] * q
    return turn, p


def moved(
    joint: Joint, turn: Turn, p: Array, parent: Motion, qd: Scalar, qdd: Scalar
) -> tuple[Array, Array, Array]:
    """ω, ω̇ and a (3,) of the link's frame, which is `placed` at turn and p in its parent's."""
    w_p, alpha_p, U_p, a_p = parent
    # ω_i = Rᵀ ω_p + z q̇,   ω̇_i = Rᵀ ω̇_p + z q̈ + Rᵀ ω_p × z q̇
    w, alpha = turn.inward(w_p), turn.inward(alpha_p)
    # a_i = Rᵀ (a_p + U_p p)
    a = turn.inward(a_p + U_p @ p)
    if joint.turns:
        alpha = alpha + array([w[1] * qd, -w[0] * qd, qdd])
        return w + array([0.0, 0.0, qd]), alpha, a
    # a_i += z q̈ + 2 ω_i × z q̇
    return w, alpha, a + array([2.0 * w[1] * qd, -2.0 * w[0] * qd, qdd])


class Turn:
    """R = R_origin Rz(q) of a joint, applied in two cheap steps."""

    def __init__(self, joint: Joint, q: Scalar):
        self.origin: Array = joint.origin.rotation
        self.c: Scalar = 1.0
        self.s: Scalar = 0.0
        if joint.turns and joint.carries_frame:
            beta = _last_turn(self.origin)
            if beta:
                # R_origin Rz(q) = [R_origin Rz(-β)] Rz(q + β): the bracket has a zero
                self.origin, q = exact(self.origin @ rotation_z(-beta)), q + beta
            self.c, self.s = cos(q), sin(q)

    def inward(self, v: Array) -> Array:
        """Rᵀ v"""
        x, y, z = self.origin.T @ v
        c, s = self.c, self.s
        return array([c * x + s * y, c * y - s * x, z])

    def outward(self, v: Array) -> Array:
        """R v"""
        c, s = self.c, self.s
        return self.origin @ array([c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]])


def _last_turn(rotation: Array) -> float:
    """β with R = Rz Rx Rz(β), or 0 if R has enough zeros without it."""
    if rotation.dtype == object:
        return 0.0
    s, c = rotation[2, :2] if rotation[2, :2].any() else rotation[1::-1, 0]
    return math.atan2(s, c) if s and c else 0.0


def _gyration(I: Array, w: Array, alpha: Array, U: Array) -> Array:
    """I ω̇ + ω × I ω, component by component, from products already contained in U."""
    x, y, z = w
    return array(
        [
            # I_xx ω̇_x + (I_zz - I_yy) ω_y ω_z + …, the products of inertia by entries of U
            I[0, 0] * alpha[0]
            + (I[2, 2] - I[1, 1]) * (y * z)
            - I[0, 1] * U[2, 0]
            + I[0, 2] * U[1, 0]
            + I[1, 2] * (U[1, 1] - U[2, 2]),
            I[1, 1] * alpha[1]
            + (I[0, 0] - I[2, 2]) * (x * z)
            + I[0, 1] * U[2, 1]
            - I[1, 2] * U[0, 1]
            + I[0, 2] * (U[2, 2] - U[0, 0]),
            I[2, 2] * alpha[2]
            + (I[1, 1] - I[0, 0]) * (x * y)
            - I[0, 2] * U[1, 2]
            + I[1, 2] * U[0, 2]
            + I[0, 1] * (U[0, 0] - U[1, 1]),
        ]
    )


def acceleration_matrix(w: Array, alpha: Array) -> Array:
    """U = [ω̇]× + [ω]×² (3, 3), with [ω]×² = ω ωᵀ - (ω·ω) 1 and its products formed once."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    square = array([[-(yy + zz), xy, xz], [xy, -(xx + zz), yz], [xz, yz, -(xx + yy)]])
    return skew(alpha) + square
