"""The equations of motion of a mechanism in symbols, by any formulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from ..errors import InputError, choices, wrong
from ..formulations import lagrange_euler
from ..formulations.equations import TERMS, Equations
from ..mechanism import Mechanism
from ..scalar import array
from .model import SymbolicModel
from .parameters import Parameters, plain_names, symbolic_mechanism
from .simplify import entries, matrix
from .straight_line import straight_line

PARAMETERS = ("symbols", "numbers")

LARGEST = 4
"""Bodies, rotors included, up to which a torque is one expression; it would fill pages beyond"""


def derive(
    mechanism: Mechanism,
    formulation: str = "lagrange_euler",
    *,
    parameters: str = "symbols",
    rotors: str = "full",
    terms: Iterable[str] = TERMS,
    simplify: bool = True,
    intermediates: bool | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Any:
    """tau = D qdd + C qd + g + friction as SymPy expressions.

    A `SymbolicModel`; of a mechanism with loops what `closure.symbolic` has for it.

    Args:
        mechanism: what `rd.load` gives.
        formulation: lagrange_euler (whose steps are kept), newton_euler, gibbs_appell, murphy.
        parameters: "symbols" for masses, lengths and inertias (m1, a1, I_xx1, …; zeros stay
            zeros), "numbers" for the description's own values, exactly.
        rotors, terms: as in `InverseDynamics`.
        simplify: look for short expressions; without it the derivation is faster.
        intermediates: True for a list of intermediate values in whose terms the torques are
            written (`model.intermediates`), False for one expression each, None to take the
            list from five moving bodies on, rotors included. `steps` come without it only.
        progress: called with a few words as the derivation goes on.

    Raises:
        InputError: an unknown formulation, rotor model, term or kind of parameters.
    """
    if parameters not in PARAMETERS:
        raise wrong(InputError, "parameters", parameters, choices(PARAMETERS))
    if mechanism.loops:
        from .closed_chain import derive as derive_closed

        return derive_closed(
            mechanism,
            formulation,
            parameters=parameters,
            rotors=rotors,
            terms=terms,
            simplify=simplify,
            progress=progress,
        )
    names = mechanism.joint_names
    q = _symbols(plain_names(names, "q"), "")
    qd, qdd = _symbols(plain_names(names, "q"), "_d"), _symbols(plain_names(names, "q"), "_dd")

    known = Parameters(parameters == "symbols")
    n = len(names)
    progress(f"{formulation}: deriving {n} joints")
    if intermediates is None:
        turning = [rotor for rotor in mechanism.rotors if not rotor.inertial.is_nothing]
        intermediates = len(mechanism.moving) + len(turning) > LARGEST
    if intermediates:
        listed, parts = straight_line(mechanism, (q, qd, qdd), known, formulation, rotors, terms)
        return SymbolicModel(
            mechanism.name,
            names,
            q,
            qd,
            qdd,
            parameters=known.values,
            intermediates=listed,
            **parts,
        )
    equations = Equations.of(symbolic_mechanism(mechanism, known), formulation, rotors, terms)
    q_, qd_, qdd_ = array(q), array(qd), array(qdd)

    steps = None
    if formulation == "lagrange_euler":
        # the book's steps know no terms: links and rotors in one
        model = rotors if "rotors" in equations.terms else "none"
        tree = Equations.of(symbolic_mechanism(mechanism, known), formulation, model).mechanism
        S, s = tree.coordinates()
        steps = _exact(lagrange_euler.steps(tree, S @ q_ + s), simplify)
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
        mechanism.name, names, q, qd, qdd, D, C, g, friction, torques, values, steps=steps
    )


def _exact(steps: lagrange_euler.Steps, simplify: bool) -> lagrange_euler.Steps:
    """The steps with exact numbers in place of floats; matrices are products, short as they are."""
    return replace(
        steps,
        A=entries(steps.A, False),
        Q=entries(steps.Q, False),
        U=entries(steps.U, False),
        dU=entries(steps.dU, False),
        J=entries(steps.J, False),
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
