# SPDX-License-Identifier: Apache-2.0
"""Gibbs–Appell with the actuators' rotors, recursive, O(n).

Source: Provenzano, Vergara, Mata, "Efectos dinámicos de los elementos activos…", Información
Tecnológica 16(4), 2005; Mata, Provenzano, Cuadrado, Valero, Robotica 20, 2002. The paper's
six steps are kept; its equations are derived in docs/gibbs_appell.md. Vectors of link i are in
link i's frame, vectors of a rotor in the rotor's own frame.

    τ_j = Σ_i [ m_i (a_Gi - g)·∂a_Gi/∂q̈_j + (I_i α_i + ω_i × I_i ω_i)·∂α_i/∂q̈_j ]

over links and rotors. The partial derivatives depend on the body only through a lever arm, so the
sums over a subtree are accumulated once, from the tips to the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..mechanism import Inertial, Mechanism, Pose
from ..scalar import Array, Note, Scalar, array, cross, rotation_z, unnoticed, zeros

Z = array([0.0, 0.0, 1.0])


def torques(mechanism: Mechanism, q: Array, qd: Array, qdd: Array, note: Note = unnoticed) -> Array:
    """The torques (n_tree,) of the tree coordinates, N·m or N, without friction and loops.

    Args:
        mechanism: in standard form, z-axis joints and rotors on their mounts.
        q: (n_tree,) positions, rad or m.
        qd: (n_tree,) rates, rad/s or m/s.
        qdd: (n_tree,) accelerations, rad/s² or m/s².
        note: called with intermediate values; see `scalar.Note`.
    """
    links = mechanism.links
    index = mechanism.index()
    parents = [index[link.parent] for link in links]
    joint_index = {link.joint.name: i for i, link in enumerate(links)}
    rotors = mechanism.rotors
    shaft = [[(joint_index[name], ratio) for name, ratio in rotor.ratios] for rotor in rotors]

    def geared(rotor: int, x: Array) -> Scalar:
        """Σ Γ_j x_j"""
        return sum(ratio * x[j] for j, ratio in shaft[rotor])

    # Step 1: the pose of each link in its parent, and of each rotor in its mount
    poses = [link.joint.pose(q[i]) for i, link in enumerate(links)]
    turned = [
        rotor.origin.rotation
        if rotor.is_symmetric
        else rotor.origin.rotation @ rotation_z(geared(r, q))
        for r, rotor in enumerate(rotors)
    ]

    # Step 2: velocities and accelerations, links then rotors; the base accelerates with -g
    omega, alpha, a = {-1: zeros(3)}, {-1: zeros(3)}, {-1: -mechanism.gravity}
    for i, link in enumerate(links):
        p, Rt = parents[i], poses[i].rotation.T
        z_rate, z_acceleration = Z * qd[i], Z * qdd[i]
        carried = Rt @ omega[p]
        arm = poses[i].translation
        a_origin = Rt @ (a[p] + cross(alpha[p], arm) + cross(omega[p], cross(omega[p], arm)))
        if link.joint.turns:
            # ω_i = Rᵀ ω_p + q̇ z,  α_i = Rᵀ α_p + q̈ z + Rᵀ ω_p × q̇ z
            omega[i] = carried + z_rate
            alpha[i] = Rt @ alpha[p] + z_acceleration + cross(carried, z_rate)
            a[i] = a_origin
        else:
            # a_Oi = Rᵀ a_p(O_i) + q̈ z + 2 ω × q̇ z
            omega[i] = carried
            alpha[i] = Rt @ alpha[p]
            a[i] = a_origin + z_acceleration + 2 * cross(carried, z_rate)
        omega[i], alpha[i] = note("omega", i, omega[i]), note("alpha", i, alpha[i])
        a[i] = note("a", i, a[i])

    omega_r, alpha_r, a_r = [], [], []
    for r, rotor in enumerate(rotors):
        k, Rt = index[rotor.mount], turned[r].T
        spin, spin_rate = Z * geared(r, qd), Z * geared(r, qdd)
        carried = Rt @ omega[k]
        # ω_r = Rᵀ ω_k + Γ q̇ z,  α_r = Rᵀ α_k + Γ q̈ z + Rᵀ ω_k × Γ q̇ z
        omega_r.append(carried + spin)
        alpha_r.append(Rt @ alpha[k] + spin_rate + cross(carried, spin))
        arm = rotor.origin.translation
        a_r.append(Rt @ (a[k] + cross(alpha[k], arm) + cross(omega[k], cross(omega[k], arm))))
        omega_r[r], alpha_r[r] = note("omega_r", r, omega_r[r]), note("alpha_r", r, alpha_r[r])
        a_r[r] = note("a_r", r, a_r[r])

    # Step 3: the factors of the partial derivatives, η = m (a_G - g) and μ = I α + ω × I ω
    eta, mu = _factors([link.inertial for link in links], omega, alpha, a)
    eta_r, mu_r = _factors([rotor.inertial for rotor in rotors], omega_r, alpha_r, a_r)
    eta, mu = (
        [note(name, i, x) for i, x in enumerate(v)] for name, v in (("eta", eta), ("mu", mu))
    )
    eta_r = [note("eta_r", r, x) for r, x in enumerate(eta_r)]
    mu_r = [note("mu_r", r, x) for r, x in enumerate(mu_r)]

    # Step 4: the links' part: sums over each subtree, tips to base
    tau = _gathered(mechanism, parents, poses, eta, mu, note)

    # Step 5: the rotors' part. They move with their mounts …
    eta_mount, mu_mount = [zeros(3) for _ in links], [zeros(3) for _ in links]
    for r, rotor in enumerate(rotors):
        k = index[rotor.mount]
        if k >= 0:
            force = turned[r] @ eta_r[r]
            eta_mount[k] = eta_mount[k] + force
            mu_mount[k] = mu_mount[k] + turned[r] @ mu_r[r] + cross(rotor.origin.translation, force)
    tau_r = _gathered(mechanism, parents, poses, eta_mount, mu_mount)
    # … and spin with the joints they drive: ∂α_r/∂q̈_j = Γ_j z, ∂a_G/∂q̈_j = Γ_j z × c
    for r in range(len(rotors)):
        for j, ratio in shaft[r]:
            tau_r[j] = tau_r[j] + ratio * mu_r[r][2]

    # Step 6: τ = τ_links + τ_rotors
    return array(x + y for x, y in zip(tau, tau_r, strict=True))


_Each = Sequence[Array] | Mapping[int, Array]


def _factors(
    bodies: Sequence[Inertial],
    omega: _Each,
    alpha: _Each,
    a: _Each,
) -> tuple[list[Array], list[Array]]:
    """(η, μ) of each body, μ taken about its frame's origin: μ_O = μ_G + c × η."""
    eta, mu = [], []
    for i, body in enumerate(bodies):
        c, I = body.center_of_mass, body.inertia
        a_G = a[i] + cross(alpha[i], c) + cross(omega[i], cross(omega[i], c))
        eta.append(body.mass * a_G)
        mu.append(I @ alpha[i] + cross(omega[i], I @ omega[i]) + cross(c, eta[i]))
    return eta, mu


def _gathered(
    mechanism: Mechanism,
    parents: Sequence[int],
    poses: Sequence[Pose],
    eta: Iterable[Array],
    mu: Iterable[Array],
    note: Note = unnoticed,
) -> list[Scalar]:
    """Σ over each joint's subtree of η·∂a/∂q̈_j + μ·∂α/∂q̈_j.

    ∂a/∂q̈_j = z × r and ∂α/∂q̈_j = z for a revolute joint, z and 0 for a prismatic one.
    """
    eta, mu = list(eta), list(mu)
    tau: list[Scalar] = [0.0] * len(parents)
    for i in reversed(range(len(parents))):
        eta[i], mu[i] = note("f", i, eta[i]), note("n", i, mu[i])
        tau[i] = mu[i][2] if mechanism.links[i].joint.turns else eta[i][2]
        p = parents[i]
        if p >= 0:
            force = poses[i].rotation @ eta[i]
            eta[p] = eta[p] + force
            mu[p] = mu[p] + poses[i].rotation @ mu[i] + cross(poses[i].translation, force)
    return tau
