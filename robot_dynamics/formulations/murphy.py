# SPDX-License-Identifier: Apache-2.0
"""Newton–Euler with the rotors' wrenches acting on their mounts, in the base frame, O(n).

Source: Murphy, "Modelling and simulation of multiple cooperating manipulators on a mobile
platform", RPI, 1990; as in Murphy, Wen, Saridis (1990). Each body's rate of momentum is a
wrench about its centre of mass. A rotor's wrench acts on the link that carries the motor, and
its component about the spin axis, times the gear ratio, on the joint that it drives.
"""

from __future__ import annotations

import numpy as np

from ..mechanism import Inertial, Mechanism
from ..scalar import Array, Note, Scalar, array, cross, rotation_z, unnoticed, zeros


def torques(mechanism: Mechanism, q: Array, qd: Array, qdd: Array, note: Note = unnoticed) -> Array:
    """The torques (n_tree,) of the tree coordinates, N·m or N, without friction and loops.

    Args:
        mechanism: in standard form, z-axis joints and rotors on their mounts.
        q: (n_tree,) positions, rad or m.
        qd: (n_tree,) rates, rad/s or m/s.
        qdd: (n_tree,) accelerations, rad/s² or m/s².
        note: called with intermediate values; see `scalar.Note`.
    """
    index = mechanism.index()
    n = len(mechanism.links)
    # rotation, origin, ω, α and a of each link's frame; the base last, at index -1
    R: list[Array] = [np.eye(3) for _ in range(n + 1)]
    o, w, alpha, a = ([zeros(3) for _ in range(n + 1)] for _ in range(4))
    force: list[Array] = [zeros(3) for _ in range(n + 1)]
    moment: list[Array] = [zeros(3) for _ in range(n + 1)]  # about the link frame's origin

    for i, link in enumerate(mechanism.links):
        p, pose = index[link.parent], link.joint.pose(q[i])
        R[i] = R[p] @ pose.rotation
        arm = R[p] @ pose.translation
        o[i] = o[p] + arm
        z = R[i][:, 2]
        if link.joint.turns:
            w[i] = w[p] + z * qd[i]
            alpha[i] = alpha[p] + z * qdd[i] + cross(w[p], z) * qd[i]
            a[i] = _acceleration(a[p], w[p], alpha[p], arm)
        else:
            w[i], alpha[i] = w[p], alpha[p]
            a[i] = (
                _acceleration(a[p], w[p], alpha[p], arm) + z * qdd[i] + 2 * cross(w[p], z) * qd[i]
            )
        R[i] = note("R", i, R[i])
        w[i], alpha[i], a[i] = (
            note("omega", i, w[i]),
            note("alpha", i, alpha[i]),
            note("a", i, a[i]),
        )
        force[i], moment[i] = _wrench(mechanism, link.inertial, R[i], w[i], alpha[i], a[i])
        force[i], moment[i] = note("F", i, force[i]), note("N", i, moment[i])

    tau: list[Scalar] = [0.0] * n
    joint_index = {link.joint.name: i for i, link in enumerate(mechanism.links)}
    for r, rotor in enumerate(mechanism.rotors):
        k = index[rotor.mount]
        driven = [(joint_index[name], ratio) for name, ratio in rotor.ratios]
        R_m = R[k] @ rotor.origin.rotation
        arm = R[k] @ rotor.origin.translation
        z = R_m[:, 2]
        if not rotor.is_symmetric:
            R_m = R_m @ rotation_z(sum(ratio * q[j] for j, ratio in driven))
        rate = sum(ratio * qd[j] for j, ratio in driven)
        rate_dot = sum(ratio * qdd[j] for j, ratio in driven)
        # ω_r = ω_k + Γ q̇ z,  α_r = α_k + Γ q̈ z + ω_k × Γ q̇ z
        w_r = w[k] + z * rate
        alpha_r = alpha[k] + z * rate_dot + cross(w[k], z) * rate
        a_r = _acceleration(a[k], w[k], alpha[k], arm)
        w_r, alpha_r = note("omega_r", r, w_r), note("alpha_r", r, alpha_r)
        a_r = note("a_r", r, a_r)
        f_r, n_r = _wrench(mechanism, rotor.inertial, R_m, w_r, alpha_r, a_r)
        f_r, n_r = note("F_r", r, f_r), note("N_r", r, n_r)
        force[k] = force[k] + f_r
        moment[k] = moment[k] + n_r + cross(arm, f_r)
        for j, ratio in driven:
            tau[j] = tau[j] + ratio * np.dot(z, n_r)

    for i in reversed(range(n)):
        link = mechanism.links[i]
        z = R[i][:, 2]
        force[i], moment[i] = note("f", i, force[i]), note("n", i, moment[i])
        tau[i] = tau[i] + np.dot(z, moment[i] if link.joint.turns else force[i])
        p = index[link.parent]
        force[p] = force[p] + force[i]
        moment[p] = moment[p] + moment[i] + cross(o[i] - o[p], force[i])
    return array(tau)


def _acceleration(a: Array, w: Array, alpha: Array, arm: Array) -> Array:
    """The acceleration of a point at the end of an arm fixed in a body: a + α × r + ω × (ω × r)."""
    return a + cross(alpha, arm) + cross(w, cross(w, arm))


def _wrench(
    mechanism: Mechanism, body: Inertial, R: Array, w: Array, alpha: Array, a: Array
) -> tuple[Array, Array]:
    """The force and the moment about the frame's origin that the body's motion needs."""
    c = R @ body.center_of_mass
    I = R @ body.inertia @ R.T
    # F = m (a_G - g),  N_O = I α + ω × I ω + c × F
    force = body.mass * (_acceleration(a, w, alpha, c) - mechanism.gravity)
    return force, I @ alpha + cross(w, I @ w) + cross(c, force)
