# SPDX-License-Identifier: Apache-2.0
"""The equations of any mechanism with loops, as a list of named intermediates, step by step.

    φ(q_r) = 0,   J = ∂φ/∂q_r = [B A]                the loops
    A X = -B,   T = [1; X],   A Ẋ = -J̇ T             q̇_r = T q̇
    J_R = J_C T,   J̇_R = J̇_C T + J_C Ṫ               the platform: v = J_R q̇
    D = Tᵀ D_r T + J_Rᵀ D_x J_R
    C = Tᵀ (C_r T + D_r Ṫ) + J_Rᵀ (D_x J̇_R + C_x J_R)
    g = Tᵀ g_r + J_Rᵀ G_x
    τ = D q̈ + C q̇ + g + Tᵀ F

D_r, C_r and g_r are those of the legs, by the formulation; Ẋ, J̇ … are rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..closure import ClosedChain
from ..closure.dynamics import platform
from ..closure.dynamics.subsystems import Subsystems
from ..closure.geometry.independent_rows import IndependentRows
from ..closure.geometry.linear import Eliminated, chosen_rows, pivots
from ..closure.geometry.loop_geometry import LoopGeometry
from ..closure.geometry.tree_motion import TreeMotion, carriers
from ..formulations.equations import Equations
from ..formulations.terms import motion_of
from ..mechanism import Mechanism
from ..scalar import Array, array, from_columns, is_zero, mirrored, zeros
from .blocks import adjugate, blocks, determinant
from .closed_model import ListedModel
from .names import entry_names
from .polynomial_model import absolute, layers
from .straight_line import Recording
from .symbolic_parameters import (
    Parameters,
    plain_names,
    symbolic_loops,
    symbolic_mechanism,
    symbols_of,
)

LETTER = {"closure": "phi", "torques": "tau"}
"""The symbols for the entries of these matrices; entries of others are named after their matrix"""
CRAMER = 3
"""Largest number of joints of a leg whose rates are written with a determinant (Cramer's rule)
instead of by elimination"""
NEAR = 3
"""Largest number of joints carrying a platform whose body is counted as part of the leg"""
STEPS = 6
"""Steps of Newton's method from home to the other configuration (see BESIDE)"""
BESIDE = 0.05
"""rad or m: distance from home of another configuration at which rows must be independent, too"""


def listed_model(
    mechanism: Mechanism,
    formulation: str,
    known: Parameters,
    rotors: str,
    terms: Iterable[str],
    notes: tuple[str, ...] = (),
) -> ListedModel:
    """The model of a mechanism with loops, by the equations of this module.

    Args:
        mechanism: with loops.
        formulation, rotors, terms: as in `robot_dynamics.derive`.
        known: the parameters.
        notes: what was rounded in the description.
    """
    chain = ClosedChain(mechanism, formulation, rotors=rotors, terms=terms, backend="python")
    names, a = chain.coordinate_names, len(chain.driving_names)
    plain, n = plain_names(names), len(names)
    q_s = symbols_of(plain)
    qd_s, qdd_s = (symbols_of(plain[:a], dots) for dots in ("_d", "_dd"))
    recording = Recording(known)
    q = recording.coordinates(q_s)
    qd, qdd = (recording.coordinates(each, "rate") for each in (qd_s, qdd_s))
    robot = symbolic_mechanism(mechanism, recording, recording.rotation)
    robot = symbolic_loops(robot, recording, recording.rotation)
    parts = Subsystems.of(robot, formulation, rotors, terms, regroup=False)
    apart = _is_far_out(robot)
    rows = _rows(chain, parts)
    one, nothing = np.eye(a), np.zeros((a, a))

    phi = rows.residual(q)
    J = rows.jacobian(q)
    # A X = -B,  T = [1; X]
    A = J[:, a:]
    found: dict[str, Any] = {}
    X = _solved(A, -J[:, :a], rows.pivots, found)
    T = np.vstack([one, X])
    rates = array(T @ qd)
    # the legs
    body, tree = platform.platform_body(robot) if apart else (None, robot)
    geometry, moving = parts.geometry, parts.legs.terms - {"friction"}
    each = [Equations.of(x, formulation, rotors, moving) for x in layers(tree, rotors)]
    legs = _Legs(each, geometry, _branches(parts.legs.mechanism, geometry.order))
    motion = {"links": legs.matrices(Equations.of_links, q, rates)}
    if any(each.rotors is not None for each in legs.layers):
        motion["rotors"] = legs.matrices(Equations.of_rotors, q, rates)
    g_r = legs.of_all(Equations.gravity, q)
    # A Ẋ = -J̇ T
    dJ = rows.jacobian_rate(q, rates)
    h = dJ @ T
    dX = _solved(A, -h, rows.pivots)
    dT = np.vstack([nothing, dX])
    F = zeros(n)
    if "friction" in parts.legs.terms:
        F = parts.geometry.in_tree(parts.legs.friction, q, rates, T @ array(qdd) + dT @ array(qd))
    found |= {"dJ": dJ, "dT": dT, "gr": g_r, "h": h}

    D, C, g = nothing + 0.0, nothing + 0.0, T.T @ g_r
    tau = zeros(a)
    for bodies, (D_r, C_r) in motion.items():
        # D = Tᵀ D_r T,  C = Tᵀ (C_r T + D_r Ṫ)
        M, N = D_r @ T, C_r @ T + D_r @ dT
        D_b, C_b = T.T @ M, T.T @ N
        mark = "r" if bodies == "links" else "m"
        found |= {f"D{mark}": D_r, f"C{mark}": C_r, f"M{mark}": M, f"N{mark}": N}
        if bodies == "links" and body is not None:
            frame = parts.geometry.platform_frame(q, rates)
            D_x = platform.inertia_matrix(body, frame.rotation)
            C_x = platform.coriolis_matrix(body, frame.rotation, frame.omega)
            G_x = platform.gravity_wrench(body, frame.rotation, parts.gravity_vector)
            # v = J_R q̇,  J_R = J_C T
            J_C = np.vstack([frame.V, frame.W])
            J_R = J_C @ T
            dJ_R = np.vstack([frame.V_rate, frame.W_rate]) @ T + J_C @ dT
            M, N = D_x @ J_R, D_x @ dJ_R + C_x @ J_R
            D_b, C_b = D_b + J_R.T @ M, C_b + J_R.T @ N
            g = g + J_R.T @ G_x
            found |= {"JR": J_R, "dJR": dJ_R, "Dx": D_x, "Cx": C_x, "Gx": G_x, "Mx": M, "Nx": N}
        D_b = mirrored(D_b)
        if bodies == "links" or "rotors" in parts.legs.terms:
            D, C = D + D_b, C + C_b
        qd_b, qdd_b = motion_of(bodies, parts.legs.terms, qd, qdd)
        tau = tau + D_b @ array(qdd_b) + C_b @ array(qd_b)
    if "gravity" in parts.legs.terms:
        tau = tau + g
    tau = tau + T.T @ F
    wanted: dict[str, Any] = {"closure": phi, "J": J, "T": T}
    sharing = chain.model.sharing
    if sharing is not None:
        # S = W A (Aᵀ W A)⁻¹
        alike, motors = array(sharing.alike), T[list(sharing.motors)]
        weighted = alike[:, None] ** 2 * motors
        N = motors.T @ weighted
        S = wanted["S"] = weighted @ _solved(N, np.eye(a), tuple((i, i) for i in range(a)))
        D, C, g, tau = S @ D, S @ C, S @ g, S @ tau
    wanted |= {"D": D, "C": C, "g": g, "torques": tau}

    letters = dict(zip(names, (recording.ring.letter("coordinate", x) for x in q_s), strict=True))
    assignments, matrices = recording.written(
        wanted,
        [name for key, part in wanted.items() for name, _ in _entries(LETTER.get(key, key), part)],
        met=_frames(parts, mechanism, q, rates),
        kept={f"{name}_d": rate for name, rate in zip(plain, rates, strict=True)}
        | {name: x for key, part in found.items() for name, x in _entries(key, part)},
        basis=absolute(mechanism, recording.ring, [letters[x] for x in mechanism.joint_names]),
    )
    return ListedModel(
        mechanism.name,
        chain.joint_names,
        names,
        q_s,
        qd_s,
        qdd_s,
        assignments,
        actuated_names=chain.actuated_names,
        parameters=dict(known.values),
        notes=notes,
        **matrices,
    )


def _entries(name: str, values: Array) -> Iterable[tuple[str, Any]]:
    """The entries with their names: T_3_1, g_2 …"""
    for place in np.ndindex(np.shape(values)):
        yield "_".join([name, *(str(k + 1) for k in place)]), values[place] if place else values


def _frames(parts: Subsystems, mechanism: Mechanism, q: Array, rates: Array) -> dict[str, Any]:
    """The frame and the motion of each link, by name: R_xy2, p_x2, omega_z2, v_x2."""
    closure, number = parts.geometry.constraints, mechanism.index()
    motion = TreeMotion(closure.tree, closure.coordinates, q, rates)
    found: dict[str, Any] = {}
    for i, link in enumerate(closure.tree.links):
        k = number.get(link.name, -1)
        if k >= 0:
            for name, values in (
                ("R", motion.R[i]),
                ("p", motion.p[i]),
                ("omega", motion.w[i]),
                ("v", motion.v[i]),
                ("zeta", motion.z_rate[i]),
            ):
                found |= zip(entry_names(name, k, values.shape), values.flat, strict=True)
    return found


def _rows(chain: ClosedChain, parts: Subsystems) -> IndependentRows:
    """The closure's independent rows, with offsets along the base's axes if that is simpler."""
    a, n = len(chain.driving_names), len(chain.coordinate_names)
    rows = chain.model.closure
    closure, kept, order = parts.geometry.constraints, rows.kept, rows.pivots
    fixed = replace(rows.geometry.constraints, axes=np.eye(3))
    home = chain.home.q_r
    at = [home, rows.corrected(np.array([*(home[:a] + BESIDE), *home[a:]]), a, STEPS).q_r]
    jacobians = [fixed.jacobian(each) for each in at]
    chosen = sorted(chosen_rows([each[:, a:] for each in jacobians], n - a))
    filled = np.max(np.abs(jacobians), axis=(0, 2)) > 1e-9
    lengths = [row.is_length for row in fixed.rows]
    if all(i in chosen for i in range(len(filled)) if filled[i] and lengths[i]):
        closure, kept = replace(closure, axes=np.eye(3)), tuple(chosen)
        order = pivots([each[kept, a:] for each in jacobians])
    geometry = replace(parts.geometry, constraints=closure)
    # lengths in m, angles in rad: nothing is scaled
    return IndependentRows(geometry, kept, np.ones(len(kept)), np.ones(n), order)


def _is_far_out(mechanism: Mechanism) -> bool:
    """Does the platform have a body, and more than NEAR joints before it?"""
    on_platform = platform.platform_links(mechanism)
    heavy = any(not mechanism.link(name).inertial.is_nothing for name in on_platform)
    above = mechanism.path(str(mechanism.platform))[:-1] if heavy else ()
    return sum(mechanism.link(name).joint.moves for name in above) > NEAR


@dataclass(frozen=True)
class _Legs:
    """The equations of the tree, in the order of q_r."""

    layers: list[Equations]
    geometry: LoopGeometry
    branches: list[list[int]]

    def of_all(self, function: Callable[..., Array], *vectors: Array) -> Array:
        """The sum over the layers of a function of `Equations`."""
        return sum(
            (self.geometry.in_tree(partial(function, x), *vectors) for x in self.layers), zeros(1)
        )

    def matrices(self, function: Callable[..., Array], q: Array, qd: Array) -> tuple[Array, Array]:
        """(D, C) of `Equations.of_links` or `Equations.of_rotors`."""
        unit, still = np.eye(len(q)), zeros(len(q))
        D = mirrored(from_columns([self.of_all(function, q, still, e) for e in unit], len(q)))
        C = np.zeros(D.shape, dtype=object)
        for branch in self.branches:
            # C e_j = ¼ [b(q̇ + e_j) - b(q̇ - e_j)] with only the branch's rates
            own = array([qd[j] if j in branch else 0.0 for j in range(len(q))])
            for j in branch if any(not is_zero(x) for x in D[:, branch].flat) else ():
                ahead, behind = (
                    self.of_all(function, q, own + k * unit[j], still) for k in (1, -1)
                )
                C[:, j] = (ahead - behind) / 4
        return D, C


def _branches(tree: Mechanism, order: tuple[int, ...]) -> list[list[int]]:
    """The joints of each branch of the tree, as indices of q_r: no body is moved by two of them."""
    S = np.array([[0.0 if is_zero(x) else 1.0 for x in row] for row in tree.coordinates()[0]])
    S = S.reshape(-1, len(order))[:, list(order)]
    moved = {link.name: S[carriers(tree, link.name)].sum(axis=0) for link in tree.links}
    moved[tree.base] = np.zeros(len(order))
    names = tree.joint_names
    rows = list(moved.values())
    rotors = [(r.mount, r.ratios) for r in tree.rotors] + [
        (tree.base, r.ratios) for r in tree.armatures
    ]
    for mount, ratios in rotors:
        rows.append(moved[mount] + sum(S[names.index(name)] for name, _ in ratios))
    return blocks(np.array(rows))


def _solved(A: Array, B: Array, order: Any, found: dict[str, Any] | None = None) -> Array:
    """A⁻¹ B, by a determinant for each small block of A, otherwise by elimination."""
    X = np.zeros((A.shape[1], B.shape[1]), dtype=object)
    for columns in blocks(A):
        rows = [i for i in range(len(A)) if any(not is_zero(A[i, j]) for j in columns)]
        block, right = A[np.ix_(rows, columns)], B[rows]
        if len(columns) <= CRAMER and len(rows) == len(columns):
            Delta = determinant(block)
            if found is not None:
                found[f"Delta{len(found) + 1}"] = Delta
            X[columns] = (adjugate(block) @ right) / Delta
        else:
            own = [(rows.index(i), columns.index(j)) for i, j in order if j in columns]
            X[columns] = Eliminated(block, own, np.ones(len(columns))).solve(right)
    return X
