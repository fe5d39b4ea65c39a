"""Euler–Lagrange from energies: kinetic and potential energy in, equations of motion out.

d/dt ∂L/∂q̇ - ∂L/∂q = τ,   L = K - P
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from ..errors import InputError, wrong
from .derive import christoffel
from .model import SymbolicModel
from .simplify import matrix


def from_energies(
    kinetic: Any,
    potential: Any,
    q: Sequence[Any],
    qd: Sequence[Any] | None = None,
    *,
    title: str = "model from its energies",
    simplify: bool = True,
) -> SymbolicModel:
    """The equations of motion of a system whose energies are given in symbols.

    Args:
        kinetic: K(q, qd), J, a quadratic form in the rates.
        potential: P(q), J.
        q: the coordinates: symbols, or functions of time.
        qd: their rates; may be left out where `q` are functions of time: their derivatives.

    Raises:
        InputError: K is not a quadratic form in the rates, P depends on them, or the numbers of
            coordinates and rates differ.
    """
    K, P = sympy.sympify(kinetic), sympy.sympify(potential)
    if qd is None:
        times = {x.args[0] for x in q if isinstance(x, sympy.Function) and len(x.args) == 1}
        if len(times) != 1:
            raise wrong(InputError, "qd", None, "the rates, where q are not functions of time")
        qd = [x.diff(*times) for x in q]
    if len(q) != len(qd):
        raise wrong(InputError, "qd", len(qd), f"{len(q)} rates, one a coordinate")
    names = [_name(x, i) for i, x in enumerate(q, start=1)]
    q_, qd_, qdd_ = (
        tuple(sympy.Symbol(name + ending, real=True) for name in names)
        for ending in ("", "_d", "_dd")
    )
    # rates before coordinates: they are derivatives of these where these are functions
    rates_first = [*zip(qd, qd_, strict=True), *zip(q, q_, strict=True)]
    K, P = K.subs(rates_first), P.subs(rates_first)

    # D = ∂²K/∂q̇∂q̇
    D = sympy.hessian(K, qd_) if qd_ else sympy.zeros(0, 0)
    rates = sympy.Matrix(qd_)
    if any(entry.has(*qd_) for entry in D) or sympy.simplify(K - (rates.T * D * rates)[0] / 2) != 0:
        raise wrong(InputError, "kinetic", str(K), "a quadratic form in the rates, ½ q̇ᵀ D(q) q̇")
    if P.has(*qd_):
        raise wrong(InputError, "potential", str(P), "a function of the coordinates alone")

    # τ = d/dt ∂L/∂q̇ - ∂L/∂q, with d/dt = Σ q̈ ∂/∂q̇ + Σ q̇ ∂/∂q
    L = K - P
    torques = [
        sum(
            L.diff(v).diff(other_v) * a + L.diff(v).diff(other) * other_v
            for other, other_v, a in zip(q_, qd_, qdd_, strict=True)
        )
        - L.diff(x)
        for x, v in zip(q_, qd_, strict=True)
    ]
    D = matrix(D, simplify)
    return SymbolicModel(
        title,
        tuple(names),
        q_,
        qd_,
        qdd_,
        D,
        christoffel(D, q_, qd_, simplify),
        matrix([P.diff(x) for x in q_], simplify),
        sympy.zeros(len(q_), 1),
        matrix(torques, simplify),
    )


def _name(coordinate: Any, i: int) -> str:
    if isinstance(coordinate, sympy.Symbol):
        return str(coordinate.name)
    return str(getattr(coordinate, "func", f"q{i}"))
