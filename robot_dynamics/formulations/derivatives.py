# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the torques by position, rate and acceleration, O(n²), for any scalar type.

Source: Singh, Russo, Wensing, "Efficient analytical derivatives of rigid-body dynamics using
spatial vector algebra", IEEE Robotics and Automation Letters 7(2), 2022. Everything is in one fixed
frame, that of the first joint of the branch from the base, and moments and velocities are those at
its origin. With joint j's twist S_j, the velocity v_p and the acceleration a_p of its parent link,
and the composite body of all bodies from i on:

    Ψ̇_j = v_p × S_j,   Ψ̈_j = a_p × S_j + v_p × Ψ̇_j
    ∂τ_i/∂q_j = S_i·(B_i Ψ̇_j + I_i Ψ̈_j),       ∂τ_j/∂q_i = S_j·(B_i Ψ̇_i + I_i Ψ̈_i + S_i ×* f_i)
    ∂τ_i/∂q̇_j = S_i·(B_i S_j + 2 I_i Ψ̇_j),      ∂τ_j/∂q̇_i = S_j·(B_i S_i + 2 I_i Ψ̇_i)
    D_ij = S_j·I_i S_i                            for each j that carries i

B u is the Coriolis force due to a second velocity u: for particles of velocity v it is 2 m ω_u × v,
which depends on the bodies only through P = 2 Σ m v and K = 2 Σ m v rᵀ:

    B u = [(tr K 1 - K) ω_u;  ω_u × P]

The bias C q̇ is a quadratic form in q̇, so the Coriolis matrix of Christoffel symbols is half its
derivative. [EW21] compares ways to compute it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..codegen.differentiate import pushforward
from ..codegen.recorder import record
from ..mechanism import Friction, Mechanism, Pose
from ..scalar import Array, Scalar, array, cross, is_zero, mirrored, skew, zeros
from .equations import Equations
from .newton_euler import Turn, acceleration_matrix
from .terms import gravity_of, motion_of


def derivatives(
    equations: Equations,
    q: Array,
    qd: Array,
    qdd: Array,
    of_tree: Callable[..., tuple[Array, ...]],
) -> Array:
    """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ = D (3, n, n) of the chosen terms.

    Coulomb friction without smoothing contributes nothing: its jump at rest is left out, as is
    presliding.

    Args:
        equations: those of newton_euler.
        q: (n,) positions, rad or m.
        qd: (n,) rates, rad/s or m/s.
        qdd: (n,) accelerations, rad/s² or m/s².
        of_tree: `of_bodies`, or its counterpart for another kind of base.
    """
    terms, tree = equations.terms, equations.mechanism
    n = len(tree.joint_names)
    if not n:
        return zeros(3, 0, 0)
    q, qd, qdd = array(q), array(qd), array(qdd)
    gravity = gravity_of(terms, tree.gravity)
    nothing = zeros(n, n).astype(object)
    total: Any = np.stack([nothing] * 3)
    for bodies, each in (("links", tree), ("rotors", equations.rotors)):
        if each is None:
            continue
        state = motion_of(bodies, terms, qd, qdd)
        moves, accelerates = motion_of(bodies, terms, *np.ones((2, n)))
        found = of_tree(replace(each, gravity=gravity), q, *state)
        total[0] = total[0] + found[0]
        if moves.all():
            total[1] = total[1] + found[1]
        if accelerates.all():
            total[2] = total[2] + found[2]
    if "friction" in terms:
        elements = tree.friction_rows()
        N = array([row for row, _, _ in elements]).reshape(len(elements), n)
        slopes = [
            _slope(law, rate, equations.friction_smoothing)
            for (_, _, law), rate in zip(elements, N @ qd, strict=True)
        ]
        # ∂(Nᵀ f(N q + s, N q̇))/∂q = Nᵀ K N; the derivative by q̇ likewise, with the slopes of f
        if any(not is_zero(law.stiffness) for _, _, law in elements):
            total[0] = total[0] + N.T @ (array(law.stiffness for *_, law in elements)[:, None] * N)
        total[1] = total[1] + N.T @ (array(slopes)[:, None] * N)
    return np.asarray(total)


def of_motion(
    equations: Equations, q: Array, qd: Array, of_tree: Callable[..., tuple[Array, ...]]
) -> tuple[Array, Array]:
    """½ ∂b/∂q̇ and D (n, n) of the bias b = C q̇ and of `Equations.motion`.

    Args:
        equations: those of newton_euler.
        q: (n,) positions, rad or m.
        qd: (n,) rates, rad/s or m/s.
        of_tree: as in `derivatives`.
    """
    trees = [equations.mechanism]
    if equations.rotors is not None and "rotors" in equations.terms:
        trees.append(equations.rotors)
    still = zeros(len(qd))
    found = [of_tree(replace(each, gravity=zeros(3)), q, array(qd), still) for each in trees]
    _, slopes, inertias = zip(*found, strict=True)
    return sum(slopes) / 2, sum(inertias)


def of_bodies(tree: Mechanism, q: Array, qd: Array, qdd: Array) -> tuple[Array, ...]:
    """The three derivatives (n, n) for a tree's bodies and shafts, with its gravity."""
    S, s = tree.coordinates()
    by_q, by_qd, D = _tree(tree, S @ q + s, S @ qd, S @ qdd)
    by_q, by_qd, D = (_congruent(S, each) for each in (by_q, by_qd, D))
    for armature in tree.armatures:
        if not is_zero(armature.inertia):
            ratios = tree.row(armature.ratios)
            D = D + armature.inertia * np.outer(ratios, ratios)
    return by_q, by_qd, D


@dataclass
class _Bodies:
    """Sums over the particles of one or several bodies at one state, in the base frame."""

    m: Scalar
    H: Array
    """Σ m r"""
    E: Array
    """Σ m r rᵀ"""
    P: Array
    """2 Σ m v"""
    K: Array
    """2 Σ m v rᵀ"""
    force: Array
    moment: Array

    def __add__(self, other: _Bodies) -> _Bodies:
        return _Bodies(*(a + b for a, b in zip(vars(self).values(), vars(other).values())))  # noqa: B905

    def momentum(self, w: Array, v: Array) -> tuple[Array, Array]:
        """I u = [angular, linear] of a twist u = [w, v]."""
        inertia = _trace(self.E) * np.eye(3) - self.E
        return inertia @ w + cross(self.H, v), self.m * v + cross(w, self.H)


def _tree(tree: Mechanism, q: Array, qd: Array, qdd: Array) -> tuple[Array, ...]:
    """The three matrices of the tree coordinates; `tree` in standard form."""
    index, n = tree.index(), len(tree.links)
    parents = [index[link.parent] for link in tree.links]
    R, o = {-1: np.eye(3)}, {-1: zeros(3)}
    w, v = {-1: zeros(3)}, {-1: zeros(3)}
    alpha, a = {-1: zeros(3)}, {-1: zeros(3)}
    U, r = {-1: zeros(3, 3)}, {-1: zeros(3)}
    """U = [ω̇]× + [ω]×², and the acceleration of the link's point at the origin"""
    twist: list[Any] = []
    psi: list[Any] = []
    twice: list[Any] = []
    """2 Ψ̇"""
    psi_rate: list[Any] = []
    bodies = []
    for i, link in enumerate(tree.links):
        joint, p = link.joint, parents[i]
        if p < 0:
            # the base accelerates upwards in place of gravity
            a[p] = r[p] = -(joint.origin.rotation.T @ tree.gravity)
            joint = replace(joint, origin=Pose())
        turn = Turn(joint, q[i])
        x, y, z = (R[p] @ turn.origin).T
        R[i] = array([turn.c * x + turn.s * y, turn.c * y - turn.s * x, z]).T
        o[i] = o[p] + R[p] @ joint.origin.translation
        if joint.slides:
            o[i] = o[i] + z * q[i]
        S_w, S_v = (z, cross(o[i], z)) if joint.turns else (zeros(3), z)
        # Ψ̇ = v_p × S = [ω × S_w; ω × S_v + v × S_w]
        P_w, P_v = cross(w[p], S_w), cross(w[p], S_v) + cross(v[p], S_w)
        # Ψ̈ = a_p × S + v_p × Ψ̇ = [U S_w; U S_v + r̈ × S_w + 2 v × (ω × S_w)],   r̈ = a + ω × v
        w_2, v_2 = 2.0 * P_w, 2.0 * P_v
        rate = U[p] @ S_w, U[p] @ S_v + cross(r[p], S_w) + cross(v[p], w_2)
        twist.append((S_w, S_v))
        twice.append((w_2, v_2))
        psi.append((P_w, P_v))
        psi_rate.append(rate)
        # v = v_p + S q̇,   a = a_p + S q̈ + Ψ̇ q̇
        w[i], v[i] = w[p] + S_w * qd[i], v[p] + S_v * qd[i]
        alpha[i] = alpha[p] + S_w * qdd[i] + P_w * qd[i]
        a[i] = a[p] + S_v * qdd[i] + P_v * qd[i]
        U[i], r[i] = acceleration_matrix(w[i], alpha[i]), a[i] + cross(w[i], v[i])
        bodies.append(_body(link.inertial, R[i], o[i], w[i], v[i], U[i], r[i]))

    by_q, by_qd, D = (np.zeros((n, n), dtype=object) for _ in range(3))
    for i in reversed(range(n)):
        b, p = bodies[i], parents[i]
        (S_w, S_v), (P_w, P_v), (Q_w, Q_v) = twist[i], psi[i], psi_rate[i]
        N = _trace(b.K) * np.eye(3) - b.K
        F = b.momentum(S_w, S_v)
        # B is not symmetric: S·B u = ω_u · (Nᵀ S_w + P × S_v)
        row = N.T @ S_w + cross(b.P, S_v)
        turning, tilted = b.momentum(*twice[i]), b.momentum(Q_w, Q_v)
        by_rate = (N @ S_w + turning[0], cross(S_w, b.P) + turning[1])
        by_place = (
            N @ P_w + tilted[0] + cross(S_w, b.moment) + cross(S_v, b.force),
            cross(P_w, b.P) + tilted[1] + cross(S_w, b.force),
        )
        by_q[i, i], by_qd[i, i] = _dot(twist[i], by_place), _dot(twist[i], by_rate)
        D[i, i] = _dot(twist[i], F)
        j = p
        while j >= 0:
            by_q[i, j] = row @ psi[j][0] + _dot(F, psi_rate[j])
            by_q[j, i] = _dot(twist[j], by_place)
            by_qd[i, j] = row @ twist[j][0] + _dot(F, twice[j])
            by_qd[j, i] = _dot(twist[j], by_rate)
            D[i, j] = D[j, i] = _dot(twist[j], F)
            j = parents[j]
        if p >= 0:
            bodies[p] = bodies[p] + b
    return by_q, by_qd, D


def _body(body: Any, R: Array, o: Array, w: Array, v: Array, U: Array, a: Array) -> _Bodies:
    m, h, I = body.mass, R @ body.first_moment, body.inertia_about_origin
    second = _trace(I) / 2.0 * np.eye(3) - I
    # moved from the link's origin: Σ m (o + r)(o + r)ᵀ = Σ m r rᵀ + o gᵀ + g oᵀ,  g = h + ½ m o
    H = h + m * o
    shift = np.outer(o, h + m / 2.0 * o)
    E = mirrored(R @ second @ R.T + shift + shift.T)
    # ṙ = v + ω × r,   r̈ = a + U r
    v_2, w_2 = 2.0 * v, 2.0 * w
    P, K = m * v_2 + cross(w_2, H), np.outer(v_2, H) + skew(w_2) @ E
    A = U @ E
    # Σ m r × U r
    turned = array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])
    return _Bodies(m, H, E, P, K, m * a + U @ H, turned + cross(H, a))


def _dot(a: Any, b: Any) -> Scalar:
    return a[0] @ b[0] + a[1] @ b[1]


def _congruent(S: Array, A: Array) -> Array:
    """Sᵀ A S (n, n), for an S (m, n) of which most entries are zero."""
    columns = [[(i, s) for i, s in enumerate(column) if not is_zero(s)] for column in S.T]
    out = np.zeros((len(columns), len(columns)), dtype=object)
    for j, left in enumerate(columns):
        for k, right in enumerate(columns):
            out[j, k] = sum(a * A[i, l] * b for i, a in left for l, b in right)
    return out


def _trace(A: Array) -> Scalar:
    return A[0, 0] + A[1, 1] + A[2, 2]


def _slope(law: Friction, rate: Scalar, smoothing: Scalar) -> Scalar:
    """∂friction/∂rate"""
    names = tuple(law.numbers)

    def torque(x: Array, numbers: Array) -> list[Scalar]:
        law = Friction(**dict(zip(names, numbers, strict=True)))
        return [law.torque(x[0], law.heading(x[0], 0.0, smoothing))]

    program = record(torque, (1, len(names)))
    vectors = [array([rate]), array(law.numbers.values())]
    return pushforward(program, vectors, [array([1.0]), zeros(len(names))])[0]
