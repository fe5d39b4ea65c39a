# SPDX-License-Identifier: Apache-2.0
"""Lagrange–Euler by homogeneous matrices, O(n⁴), step by step.

Source: Barrientos, Peñín, Balaguer, Aracil, "Fundamentos de Robótica", ch. 5 (after Uicker and
Fu, González, Lee), steps L-E 1 to L-E 10. On a tree, "j ≤ i" means "joint j carries link i".
Rotors are separate links with their own pseudo-inertias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..mechanism import Inertial, Joint, Mechanism, Pose
from ..mechanism.transform import lumped, rotors_as_links
from ..scalar import Array, Note, array, skew, unnoticed, zeros


def prepare(mechanism: Mechanism) -> Mechanism:
    """The form that this formulation needs: no fixed joints, rotors as rotating links."""
    tree = lumped(rotors_as_links(mechanism))
    links = tuple(
        replace(link, joint=replace(link.joint, carries_frame=True)) for link in tree.links
    )
    return replace(tree, links=links)


def torques(
    mechanism: Mechanism,
    q: Array,
    qd: Array,
    qdd: Array,
    note: Note = unnoticed,  # noqa: ARG001  `steps` has all of it
) -> Array:
    """The torques (n_tree,) of the tree coordinates, N·m or N, without friction and loops.

    Args:
        mechanism: in the form of `prepare`.
        q: (n_tree,) positions, rad or m.
        qd: (n_tree,) rates, rad/s or m/s.
        qdd: (n_tree,) accelerations, rad/s² or m/s².
        note: called with intermediate values; see `scalar.Note`.
    """
    return steps(mechanism, q).torques(qd, qdd)


@dataclass(frozen=True, eq=False)
class Steps:
    """The results of L-E 2 to L-E 9 at one q; indices count from 0.

    `i`, `j`, `k`, `m` below are those of the book minus one.
    """

    names: tuple[str, ...]
    """Joint names in the order of the indices"""
    A: Array
    """(n, 4, 4): A[i] = ⁰A_i, the link's frame in the base frame (L-E 2)"""
    Q: Array
    """(n, 4, 4): Q[j], the derivative operator of joint j in the frame before it (note 1)"""
    U: Array
    """(n, n, 4, 4): U[i, j] = ∂⁰A_i/∂q_j (L-E 3)"""
    dU: Array
    """(n, n, n, 4, 4): dU[i, j, k] = U_ijk = ∂U_ij/∂q_k (L-E 4)"""
    J: Array
    """(n, 4, 4): J[i], the pseudo-inertia of link i in its own frame, kg m² (L-E 5)"""
    D: Array
    """(n, n): the inertia matrix (L-E 6)"""
    h: Array
    """(n, n, n): h[i, k, m], Christoffel symbols of the first kind (L-E 7)"""
    C: Array
    """(n,): the gravity torques, N·m or N (L-E 9)"""

    def H(self, qd: Array) -> Array:
        """The Coriolis and centripetal torques (n,), h_i = Σ_k Σ_m h_ikm q̇_k q̇_m (L-E 8)."""
        return self.coriolis_matrix(qd) @ array(qd)

    def coriolis_matrix(self, qd: Array) -> Array:
        """The Coriolis matrix (n, n), Σ_k h_ikm q̇_k: dD/dt - 2C is skew and C q̇ = H."""
        return array([[np.dot(row[:, m], qd) for m in range(len(qd))] for row in self.h]).reshape(
            self.D.shape
        )

    def torques(self, qd: Array, qdd: Array) -> Array:
        """The torques (n,), τ = D q̈ + H + C (L-E 10)."""
        return self.D @ array(qdd) + self.H(qd) + self.C


def steps(mechanism: Mechanism, q: Array) -> Steps:
    """L-E 2 to L-E 9.

    Args:
        mechanism: in the form of `prepare`.
        q: (n_tree,) positions, rad or m; numbers or symbols.
    """
    links = mechanism.links
    n = len(links)
    index = mechanism.index()
    parents = [index[link.parent] for link in links]
    local = [link.joint.pose(q[i]).homogeneous() for i, link in enumerate(links)]
    dtype = object if any(a.dtype == object for a in local) or _symbolic(mechanism) else float

    ways = _ways(parents)
    # L-E 2: ^pA_i, link i seen from the frame before joint j (p = parent of j)
    before = np.full((n, n), None, dtype=object)
    for i, parent in enumerate(parents):
        for j in ways[i]:
            before[j, i] = local[i] if j == i else before[j, parent] @ local[i]
    A = [before[ways[i][0], i] for i in range(n)]
    Q = [derivative_operator(link.joint) for link in links]
    U, dU = _derivatives(parents, ways, A, before, Q, dtype)
    # L-E 5
    J = [pseudo_inertia(link.inertial) for link in links]
    D, h, C = _coefficients(ways, U, dU, J, array([*mechanism.gravity, 0.0]), dtype)

    names = tuple(link.joint.name for link in links)
    A_all, Q_all, J_all = (array(parts).reshape(n, 4, 4) for parts in (A, Q, J))
    return Steps(names, A_all, Q_all, U, dU, J_all, D, h, C)


def _ways(parents: Sequence[int]) -> list[list[int]]:
    """For each link the joints on the path from the base to it, its own last."""
    ways: list[list[int]] = []
    for i, parent in enumerate(parents):
        ways.append([*(ways[parent] if parent >= 0 else []), i])
    return ways


def _derivatives(
    parents: Sequence[int],
    ways: Sequence[Sequence[int]],
    A: Sequence[Array],
    before: Array,
    Q: Sequence[Array],
    dtype: type,
) -> tuple[Array, Array]:
    """U (n, n, 4, 4) and dU (n, n, n, 4, 4) of `Steps`; 0 where a joint does not carry the link."""
    n = len(parents)
    A_before = [A[parent] if parent >= 0 else np.eye(4) for parent in parents]
    # L-E 3: U_ij = ⁰A_{j-1} Q_j ^{j-1}A_i
    U: Array = np.zeros((n, n, 4, 4), dtype=dtype)
    # L-E 4: U_ijk = ⁰A_{j-1} Q_j ^{j-1}A_{k-1} Q_k ^{k-1}A_i  for k at or after j
    dU: Array = np.zeros((n, n, n, 4, 4), dtype=dtype)
    for i in range(n):
        for k in ways[i]:
            QA = Q[k] @ before[k, i]
            U[i, k] = A_before[k] @ QA
            for j in ways[k]:
                before_k = U[parents[k], j] if j != k else A_before[k] @ Q[k]
                dU[i, j, k] = dU[i, k, j] = before_k @ QA
    return U, dU


def _coefficients(
    ways: Sequence[Sequence[int]], U: Array, dU: Array, J: Sequence[Array], g: Array, dtype: type
) -> tuple[Array, Array, Array]:
    """D (n, n), h (n, n, n) and C (n,) of `Steps`; g (4,) is gravity, m/s²."""
    n = len(ways)
    # L-E 6: d_ij = Σ_k Tr(U_kj J_k U_kiᵀ),  L-E 7: h_ikm = Σ_j Tr(U_jkm J_j U_jiᵀ)
    D: Array = np.zeros((n, n), dtype=dtype)
    h: Array = np.zeros((n, n, n), dtype=dtype)
    # L-E 9: c_i = Σ_j -m_j g U_ji r_j
    C: Array = np.zeros(n, dtype=dtype)
    for b, on in enumerate(ways):
        for i in on:
            JUt = J[b] @ U[b, i].T
            C[i] = C[i] - np.dot(g, U[b, i] @ J[b][:, 3])
            for k in on:
                if k <= i:
                    D[i, k] = D[i, k] + _trace(U[b, k], JUt)
                for m in (m for m in on if m <= k):
                    h[i, k, m] = h[i, k, m] + _trace(dU[b, k, m], JUt)
    # both are symmetric: d_ki = d_ik, h_imk = h_ikm
    for later, earlier in zip(*np.tril_indices(n, -1), strict=True):
        D[earlier, later] = D[later, earlier]
        h[:, earlier, later] = h[:, later, earlier]
    return D, h, C


def derivative_operator(joint: Joint) -> Array:
    """Q (4, 4) with ∂A/∂q = Q A for A = origin · motion · tail, in the frame before the joint.

    For a z axis and an identity origin it is that of the book: [[0, -1], [1, 0]] in the upper left
    corner for a revolute joint, a one at (3, 4) for a prismatic one.
    """
    generator = zeros(4, 4)
    if joint.turns:
        generator[:3, :3] = skew(joint.axis)
    else:
        generator[:3, 3] = joint.axis
    origin: Pose = joint.origin
    return origin.homogeneous() @ generator @ origin.inverse().homogeneous()


def pseudo_inertia(inertial: Inertial) -> Array:
    """J (4, 4) of [5.11]: ∫ x xᵀ dm over homogeneous points x of the link's frame."""
    I, h = inertial.inertia_about_origin, inertial.first_moment
    # ∫ r rᵀ dm = ½ tr(I) 1 - I
    half_trace = (I[0, 0] + I[1, 1] + I[2, 2]) / 2
    second = array(half_trace * np.eye(3) - I)
    return np.vstack([np.column_stack([second, h]), array([*h, inertial.mass])])


def _trace(a: Array, b: Array) -> object:
    """Tr(a b), where only the first three rows of a are not zero."""
    return sum(np.dot(a[r], b[:, r]) for r in range(3))


def _symbolic(mechanism: Mechanism) -> bool:
    bodies = [link.inertial for link in mechanism.links]
    return mechanism.gravity.dtype == object or any(
        pseudo_inertia(body).dtype == object for body in bodies
    )
