"""The equations of motion of a mechanism in symbols, by any formulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import sympy

from ..equations import TERMS, Equations
from ..errors import InputError, choices, wrong
from ..formulations import lagrange_euler
from ..mechanism import Mechanism
from ..scalar import array
from .model import SymbolicModel
from .parameters import Parameters, plain_names, symbolic_mechanism
from .simplify import entries, matrix

PARAMETERS = ("symbols", "numbers")

SMALL = 4
"""Joints up to which each of the n³ matrices of L-E 4 is shortened too"""


def derive(
    mechanism: Mechanism,
    formulation: str = "lagrange_euler",
    *,
    parameters: str = "symbols",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    simplify: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> SymbolicModel:
    """tau = D qdd + C qd + g + friction as SymPy expressions.

    Args:
        mechanism: what `rd.load` gives.
        formulation: lagrange_euler (whose steps are kept), newton_euler, gibbs_appell, murphy.
        parameters: "symbols" for masses, lengths and inertias (m1, a1, I_xx1, …; zeros stay
            zeros), "numbers" for the description's own values, exactly.
        rotors, terms: as in `InverseDynamics`.
        simplify: look for short expressions; without it large robots are derived sooner.
        progress: called with a few words as the derivation goes on.

    Raises:
        InputError: an unknown formulation, rotor model, term or kind of parameters.
    """
    if parameters not in PARAMETERS:
        raise wrong(InputError, "parameters", parameters, choices(PARAMETERS))
    names = mechanism.joint_names
    q = _symbols(plain_names(names, "q"), "")
    qd, qdd = _symbols(plain_names(names, "q"), "_d"), _symbols(plain_names(names, "q"), "_dd")

    known = Parameters(parameters == "symbols")
    equations = Equations.of(symbolic_mechanism(mechanism, known), formulation, rotors, terms)
    n = len(names)
    q_, qd_, qdd_ = array(q), array(qd), array(qdd)

    steps = None
    progress(f"{formulation}: deriving {n} joints")
    if formulation == "lagrange_euler":
        tree = equations.mechanism
        S, s = tree.coordinates()
        steps = _exact(lagrange_euler.steps(tree, S @ q_ + s), simplify and n <= SMALL)
    torques = matrix(equations.torques(q_, qd_, qdd_), simplify)
    progress("inertia matrix")
    D = matrix(equations.mass_matrix(q_).reshape(n, n).tolist(), simplify)
    progress("gravity and friction")
    gravity = "gravity" in equations.terms
    g = matrix(equations.gravity(q_) if gravity else np.zeros(n), simplify)
    rubbed = "friction" in equations.terms
    friction = matrix(equations.friction(qd_) if rubbed else np.zeros(n), simplify)
    progress("Coriolis matrix")
    C = christoffel(D, q, qd, simplify)
    used = torques.free_symbols
    values = {symbol: value for symbol, value in known.values.items() if symbol in used}
    return SymbolicModel(
        mechanism.name, names, q, qd, qdd, D, C, g, friction, torques, values, steps
    )


def _exact(steps: lagrange_euler.Steps, simplify: bool) -> lagrange_euler.Steps:
    """The steps with exact numbers in place of floats."""
    return replace(
        steps,
        A=entries(steps.A, simplify),
        Q=entries(steps.Q, simplify),
        U=entries(steps.U, simplify),
        dU=entries(steps.dU, simplify),
        J=entries(steps.J, simplify),
        D=entries(steps.D, simplify),
        h=entries(steps.h, simplify),
        C=entries(steps.C, simplify),
    )


def christoffel(
    D: sympy.Matrix,
    q: tuple[sympy.Symbol, ...],
    qd: tuple[sympy.Symbol, ...],
    simplify: bool = True,
) -> sympy.Matrix:
    """C (n, n) of D: c_ij = Σ_k ½ (∂d_ij/∂q_k + ∂d_ik/∂q_j - ∂d_jk/∂q_i) qd_k."""
    n = len(q)
    entries = [
        [
            sum(
                (D[i, j].diff(q[k]) + D[i, k].diff(q[j]) - D[j, k].diff(q[i])) * qd[k]
                for k in range(n)
            )
            / 2
            for j in range(n)
        ]
        for i in range(n)
    ]
    return matrix(entries, simplify) if n else sympy.zeros(0, 0)


def _symbols(names: list[str], ending: str) -> tuple[sympy.Symbol, ...]:
    return tuple(sympy.Symbol(name + ending, real=True) for name in names)
