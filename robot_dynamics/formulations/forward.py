# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics, for any scalar type: by articulated bodies or by factorising D.

    q̈ = D⁻¹ (τ - C q̇ - g - friction)

The articulated-body algorithm (Featherstone, "Rigid Body Dynamics Algorithms", 2008, ch. 7) is O(n)
but handles independent joints only. D = Lᵀ Δ L, factorised from the tips to keep the sparsity of
branches (ibid., ch. 6), is O(n³) with a small factor and handles followers, rotors and shared
shafts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..mechanism import Mechanism
from ..scalar import Array, Scalar, array, cross, is_zero, mirrored, skew, zeros
from .equations import Equations
from .newton_euler import Turn, placed
from .terms import ACCELERATED, gravity_of, motion_of

SOLVED = 7
"""Largest number of joints for which factorising D takes fewer operations than articulated
bodies"""


def forward(
    equations: Equations,
    q: Array,
    qd: Array,
    tau: Array,
    of_tree: Callable[..., Array] | None = None,
) -> Array:
    """The accelerations q̈ (n,), rad/s² or m/s².

    They are not finite if D is singular because a joint moves no mass.

    Args:
        equations: those of newton_euler.
        q: (n,) positions, rad or m.
        qd: (n,) rates, rad/s or m/s.
        tau: (n,) torques, N·m or N.
        of_tree: the function to use instead of `articulated`.
    """
    terms, tree = equations.terms, equations.mechanism
    n = len(tree.joint_names)
    q, qd, tau = array(q), array(qd), array(tau)
    if n > SOLVED and stands_alone(equations):
        if "friction" in terms:
            tau = tau - equations.friction(q, qd)
        rates, _ = motion_of("links", terms, qd, zeros(n))
        heavy = replace(tree, gravity=gravity_of(terms, tree.gravity))
        return (of_tree or articulated)(heavy, q, rates, tau)
    accelerated = replace(equations, terms=terms & ACCELERATED)
    columns = [accelerated.torques(q, zeros(n), unit) for unit in np.eye(n)]
    D = array(columns).reshape(n, n).T
    # τ - C q̇ - g - friction
    return solved(D, tau - equations.torques(q, qd, zeros(n)))


def stands_alone(equations: Equations) -> bool:
    """Is every joint independent, every shaft driven by one joint, and are all terms chosen?"""
    tree = equations.mechanism
    return (
        equations.rotors is None
        and all(link.joint.coupling is None for link in tree.links)
        and all(len(each.ratios) == 1 or is_zero(each.inertia) for each in tree.armatures)
    )


def solved(D: Array, b: Array) -> Array:
    """The solution x of D x = b, for D (n, n) symmetric positive definite, by D = Lᵀ Δ L.

    Zeros of D between branches are zeros of L.
    """
    n = len(b)
    A = [list(row) for row in D]
    L: list[dict[int, Scalar]] = [{} for _ in range(n)]
    inverses: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        inverses[k] = 1.0 / A[k][k]
        L[k] = {i: A[k][i] * inverses[k] for i in range(k) if not is_zero(A[k][i])}
        for i, share in L[k].items():
            for j in L[k]:
                if j <= i:
                    A[i][j] = A[i][j] - share * A[k][j]
    x = list(b)
    # Lᵀ y = b, tips to base; then L x = Δ⁻¹ y, base to tips
    for k in reversed(range(n)):
        for i, share in L[k].items():
            x[i] = x[i] - share * x[k]
    for k in range(n):
        x[k] = x[k] * inverses[k]
        for i, share in L[k].items():
            x[k] = x[k] - share * x[i]
    return array(x)


def articulated(tree: Mechanism, q: Array, qd: Array, tau: Array) -> Array:
    """q̈ (n,) of a tree in standard form with independent joints, at q, qd, tau (n,), without
    friction."""
    index = tree.index()
    links, n = tree.links, len(tree.links)
    parents = [index[link.parent] for link in links]
    armature: list[Scalar] = [0.0] * n
    for each in tree.armatures:
        if is_zero(each.inertia):
            continue
        (name, ratio), *_ = each.ratios
        j = tree.joint_names.index(name)
        armature[j] = armature[j] + ratio * ratio * each.inertia

    omega = {-1: zeros(3)}
    turns: list[Turn] = []
    arms: list[Array] = []
    free: list[tuple[Array, Array]] = []  # accelerations at q̈ = 0 of a parent at rest
    inertias: list[list[Array]] = []
    biases: list[list[Array]] = []
    for i, link in enumerate(links):
        joint, body, w_p = link.joint, link.inertial, omega[parents[i]]
        turn, arm = placed(joint, q[i])
        w = turn.inward(w_p)
        spin = array([w[1] * qd[i], -w[0] * qd[i], 0.0])  # ω × z q̇
        a = turn.inward(cross(w_p, cross(w_p, arm)))
        if joint.turns:
            w = w + array([0.0, 0.0, qd[i]])
            free.append((spin, a))
        else:
            free.append((zeros(3), a + 2.0 * spin))
        omega[i] = w
        turns.append(turn)
        arms.append(arm)
        # n = J α + G a + …, f = Gᵀ α + M a + …
        m, h, I = body.mass, body.first_moment, body.inertia_about_origin
        inertias.append([I, skew(h), m * np.eye(3)])
        biases.append([cross(w, I @ w), cross(w, cross(w, h))])

    axes: list[tuple[Array, Array]] = []
    pivots: list[Scalar] = []
    left: list[Scalar] = [0.0] * n
    for i in reversed(range(n)):
        (J, G, M), (n_b, f_b) = inertias[i], biases[i]
        rotary = links[i].joint.turns
        # U = I^A S,  D = S·U,  u = τ - S·p^A
        U_n, U_f = (J[:, 2], G[2]) if rotary else (G[:, 2], M[:, 2])
        pivot = 1.0 / ((J if rotary else M)[2, 2] + armature[i])
        left[i] = tau[i] - (n_b if rotary else f_b)[2]
        axes.insert(0, (U_n, U_f))
        pivots.insert(0, pivot)
        p = parents[i]
        if p < 0:
            continue
        # I^a = I^A - U Uᵀ / D,  p^a = p^A + I^a c + U u / D
        V_n, V_f = U_n * pivot, U_f * pivot
        J = mirrored(J - np.outer(U_n, V_n))
        G = G - np.outer(U_n, V_f)
        M = mirrored(M - np.outer(U_f, V_f))
        c_w, c_v = free[i]
        n_b = n_b + J @ c_w + G @ c_v + V_n * left[i]
        f_b = f_b + G.T @ c_w + M @ c_v + V_f * left[i]
        turn, P = turns[i], skew(arms[i])
        J, G, M = mirrored(_outward(turn, J)), _outward(turn, G), mirrored(_outward(turn, M))
        force = turn.outward(f_b)
        # the same about the parent's origin: a there is a_p + α_p × p
        G_p = G + P @ M
        J_p = mirrored(J - G_p @ P + P @ G.T)
        above, bias = inertias[p], biases[p]
        inertias[p] = [above[0] + J_p, above[1] + G_p, above[2] + M]
        biases[p] = [bias[0] + turn.outward(n_b) + cross(arms[i], force), bias[1] + force]

    # the base accelerates upwards in place of gravity
    motion = {-1: (zeros(3), -tree.gravity)}
    qdd: list[Any] = []
    for i, link in enumerate(links):
        alpha_p, a_p = motion[parents[i]]
        c_w, c_v = free[i]
        alpha = turns[i].inward(alpha_p) + c_w
        a = turns[i].inward(a_p + cross(alpha_p, arms[i])) + c_v
        # q̈ = (u - U·a') / D
        qdd.append((left[i] - axes[i][0] @ alpha - axes[i][1] @ a) * pivots[i])
        own = array([0.0, 0.0, qdd[i]])
        motion[i] = (alpha + own, a) if link.joint.turns else (alpha, a + own)
    return array(qdd)


def _outward(turn: Turn, matrix: Array) -> Array:
    """R A Rᵀ"""
    half = array([turn.outward(column) for column in matrix.T]).T
    return array([turn.outward(row) for row in half])
