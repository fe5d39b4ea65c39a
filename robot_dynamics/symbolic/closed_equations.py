# SPDX-License-Identifier: Apache-2.0
"""The equations of motion of a robot with loops in symbols: the legs' and the platform's.

    D = Tᵀ D_q T + J_Rᵀ D_x J_R                                  (40)
    C = Tᵀ (C_q T + D_q Ṫ) + J_Rᵀ (D_x J̇_R + C_x J_R)
    G = Tᵀ G_q + J_Rᵀ G_x
    τ = D q̈_a + C q̇_a + G + Tᵀ F_q

The legs are an open chain, whose D_q, C_q, G_q and friction F_q are derived like those of any
other. `Projections` has T, J_R and their rates. Redundant motors share the load: τ = S (…).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import sympy

from ..closure import ClosedChain
from ..closure.dynamics import platform
from ..formulations.equations import TERMS
from ..formulations.terms import MOTION, RIGID, motion_of, names_of_terms
from ..mechanism import Mechanism
from ..mechanism.base_parameters import Moments
from ..mechanism.transform import without_bodies
from ..scalar import array
from .closed_model import ClosedSymbolicModel
from .listing import Listing, needed
from .matrices import friction_of, matrices_of
from .projections import Projections
from .symbolic_parameters import Task, exact_number, symbolic_mechanism
from .tidy import tidied


def derive(
    mechanism: Mechanism,
    formulation: str = "lagrange_euler",
    *,
    parameters: str = "symbols",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    simplify: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> ClosedSymbolicModel:
    """The equations of motion of a mechanism with loops; arguments as in `robot_dynamics.derive`.

    Raises:
        DescriptionError, ClosureError, InputError: see `ClosedChain`.
    """
    mechanism, notes = tidied(mechanism)
    terms = frozenset(names_of_terms(terms))
    chain = ClosedChain(mechanism, formulation, rotors=rotors, terms=terms, backend="python")
    progress("closures and Jacobians")
    loops = Projections(chain, parameters == "symbols", simplify)
    if loops.x:
        progress("platform")
        _add_platform(loops)
    progress(f"legs by {formulation}")
    marks, friction = _add_legs(loops, formulation, rotors, terms, progress)
    progress("rates")
    loops.rates()
    progress("torques")
    torques = _add_torques(loops, marks, friction, terms)
    matrices, letters = loops.list.matrices, loops.list.letters
    names = ("J_R", "dJ_R", "T", "dT", "D", "C", "G")
    public = [torques, *(letters[name] for name in names if name in letters), *matrices.values()]
    shown = [*public, *(value for _, value in loops.list.assignments)]
    used = {x for each in shown for x in each.free_symbols}
    return ClosedSymbolicModel(
        mechanism.name,
        chain.joint_names,
        loops.legs,
        loops.q,
        loops.x,
        loops.qd,
        loops.v,
        loops.qdd[: loops.a],
        matrices=matrices,
        torques=torques,
        intermediates=needed(loops.list.assignments, public),
        actuated_names=chain.actuated_names,
        parameters={x: value for x, value in loops.known.values.items() if x in used},
        notes=notes,
        entries=loops.list.entries,
        others=loops.list.others,
    )


def _add_platform(loops: Projections) -> None:
    """D_x, C_x and G_x of a free platform."""
    robot = symbolic_mechanism(loops.legs.mechanism, loops.letters, loops.letters.rotation)
    at, one = loops.platform, np.eye(3)
    assert at is not None
    D = platform.inertia_matrix(platform.platform_body(robot)[0], at.rotation)
    if len(loops.x) == len(D):
        D = loops.entered(loops.named("D_x", D))
    else:
        loops.named("D_x", at.basis.T @ D @ at.basis)
    # [[m 1, -m [c]×], [m [c]×, I_P]], on base axes
    body = Moments(D[0, 0], array([D[5, 1], D[3, 2], D[4, 0]]), D[3:, 3:])
    C = platform.coriolis_matrix(body, one, at.omega)
    loops.named("C_x", at.basis.T @ C @ at.basis)
    loops.named("G_x", at.basis.T @ platform.gravity_wrench(body, one, robot.gravity))


def _add_legs(
    loops: Projections,
    formulation: str,
    rotors: str,
    terms: frozenset[str],
    progress: Callable[[str], None],
) -> tuple[dict[str, str], sympy.Matrix]:
    """D_q, C_q and G_q of the legs, and D_m, C_m of the motors' rotors if the terms treat these
    differently; ({bodies: the mark of their matrices}, the friction)."""
    tree, listing = loops.legs.tree, loops.list
    order = [tree.joint_names.index(name) for name in loops.legs.names]
    back = np.argsort(order)
    q, qd, qdd = (tuple(each[i] for i in back) for each in (loops.q, loops.qd, loops.qdd))

    def task(bodies: Mechanism, model: str, which: Iterable[str]) -> Task:
        return Task(bodies, q, qd, qdd, loops.known, formulation, model, frozenset(which))

    whole = terms.issuperset(MOTION) or all(x.inertial.is_nothing for x in tree.rotors)
    tasks = {"links": ("q", task(tree, rotors if whole else "none", RIGID))}
    if not whole and rotors != "none" and "rotors" in terms:
        tasks["rotors"] = ("m", task(without_bodies(tree), rotors, MOTION))
    for mark, each in tasks.values():
        assignments, parts = matrices_of(each, loops.simplify, progress)
        for symbol, value in assignments:
            listing.define("legs", symbol, value)
        listing(f"D_{mark}", parts["D"].extract(order, order))
        listing(f"C_{mark}", parts["C"].extract(order, order))
        if mark == "q":
            listing("G_q", parts["g"].extract(order, [0]))
    friction = friction_of(task(tree, rotors, terms)).extract(order, [0])
    return {bodies: mark for bodies, (mark, _) in tasks.items()}, friction


def _add_torques(
    loops: Projections, marks: dict[str, str], friction: sympy.Matrix, terms: frozenset[str]
) -> sympy.Matrix:
    """D, C and G; the torques (n_m, 1)."""
    a, T, dT, listing = loops.a, loops.T, loops.dT, loops.list
    letters, sharing = listing.letters, loops.chain.model.sharing
    qd, qdd = (array(each[:a]) for each in (loops.qd, loops.qdd))
    for k in range(a, loops.n):
        if loops.qdd[k] in friction.free_symbols:
            # q̈_r = T q̈_a + Ṫ q̇_a
            moved = T[k, :] * sympy.Matrix(qdd) + dT[k, :] * sympy.Matrix(qd)
            listing.define("F_q", loops.qdd[k], moved[0])
    tau, G = T.T * listing("F_q", friction), T.T * letters["G_q"]
    total, end = {"D": sympy.zeros(a), "C": sympy.zeros(a)}, "_a" if sharing else ""
    for bodies, mark in marks.items():
        of_motors = [_projected(listing, mark, T, dT)]
        if loops.x and bodies == "links":
            J_R, dJ_R = (letters[name][: len(loops.x), :] for name in ("J_R", "dJ_R"))
            of_motors.append(_projected(listing, "x", J_R, dJ_R))
            G = G + J_R.T * letters["G_x"]
        own = end if len(marks) == 1 else f"_{bodies}"
        D, C = (
            listing(f"{name}{own}", sum(each, sympy.zeros(a)))
            for name, each in zip("DC", zip(*of_motors, strict=True), strict=True)
        )
        total = {"D": total["D"] + D, "C": total["C"] + C}
        qd_b, qdd_b = motion_of(bodies, terms, qd, qdd)
        tau = tau + D * sympy.Matrix(qdd_b) + C * sympy.Matrix(qd_b)
    if len(marks) > 1:
        total = {name: listing(f"{name}{end}", each) for name, each in total.items()}
    total["G"] = listing(f"G{end}", G)
    if "gravity" in terms:
        tau = tau + total["G"]
    if sharing:
        # S = W A (Aᵀ W A)⁻¹, with the rates A q̇_a of all motors
        A = T.extract([*sharing.motors], [*range(a)])
        weighted = sympy.diag(*(exact_number(w) ** 2 for w in sharing.alike)) * A
        loops.invert("V", "", A.T * weighted, a)
        S = listing("S", weighted * letters["V"])
        for name, each in total.items():
            listing(name, S * each)
        tau = S * tau
    return tau


def _projected(
    listing: Listing, mark: str, J: sympy.Matrix, dJ: sympy.Matrix
) -> tuple[sympy.Matrix, sympy.Matrix]:
    """(Jᵀ D J, Jᵀ (D J̇ + C J)) of the bodies with this mark."""
    D, C = (listing.letters[f"{name}_{mark}"] for name in "DC")
    M = listing(f"M_{mark}", D * J)
    N = listing(f"N_{mark}", D * dJ + C * J)
    upper = J.T * M
    return upper.upper_triangular() + upper.upper_triangular(1).T, J.T * N
