# SPDX-License-Identifier: Apache-2.0
"""The equations of motion from kinetic and potential energy, by Euler–Lagrange.

d/dt ∂L/∂q̇ - ∂L/∂q = τ,   L = K - P
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from ..description.expression import evaluate, letters
from ..description.files import find, is_yaml, read_text
from ..description.records import NAME, NUMBER, Kind, Record, by_name, listed
from ..description.yaml_text import plain
from ..errors import DescriptionError, InputError, Place, wrong
from ..formulations.terms import RIGID
from ..mechanism import Mechanism
from ..scalar import is_zero
from .derive import derive
from .document import Equation, Formula, Section, step
from .matrices import christoffel
from .simplify import matrix, rational, simplified
from .symbolic_model import SymbolicModel
from .symbolic_parameters import symbols_of

MOST = 20
"""Largest number of coordinates that a file of energies may have"""


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

    `model.document(steps=True)` shows every derivative.

    Args:
        kinetic: K(q, qd) in J, a quadratic form in the rates; all other symbols are constants.
        potential: P(q) in J.
        q: the coordinates, as symbols or as functions of time.
        qd: the rates; None: the derivatives of `q`, which must then be functions of time.
        title: the name of the model.
        simplify: search for short expressions; False: a faster derivation.

    Returns:
        The model, with the coordinates, rates and accelerations as symbols `<name>`, `<name>_d` and
        `<name>_dd`.

    Raises:
        InputError: K is not a quadratic form in the rates or depends on time, P depends on the
            rates, the numbers of coordinates and rates differ, rates are missing, there are no
            coordinates, or two of these symbols would have the same name.

    Source: [FGL87], by Euler and Lagrange.
    """
    try:
        q, qd = list(q), None if qd is None else list(qd)
    except TypeError:
        raise wrong(InputError, "q, qd", (q, qd), "lists of symbols") from None
    if not q:
        raise wrong(InputError, "q", "none", "at least one coordinate")
    K, P = sympy.sympify(kinetic), sympy.sympify(potential)
    times = {x.args[0] for x in q if isinstance(x, sympy.Function) and len(x.args) == 1}
    if qd is None:
        if len(times) != 1:
            raise wrong(InputError, "qd", None, "the rates, as q is not a function of time")
        qd = [x.diff(*times) for x in q]
    if len(q) != len(qd):
        raise wrong(InputError, "qd", len(qd), f"{len(q)} rates, one per coordinate")
    names = [_name(x, i) for i, x in enumerate(q, start=1)]
    q_, qd_, qdd_ = (symbols_of(names, ending) for ending in ("", "_d", "_dd"))
    if len({*q_, *qd_, *qdd_}) < 3 * len(q):
        expected = "distinct names, none of them that of another's rate, such as q1_d"
        raise wrong(InputError, "q", names, expected)
    # rates first: if the coordinates are functions of time, the rates contain them
    rates_first = [*zip(qd, qd_, strict=True), *zip(q, q_, strict=True)]
    K, P = K.subs(rates_first), P.subs(rates_first)
    if K.has(*times):
        raise wrong(InputError, "kinetic", str(K), "a function of q and qd alone, not of time")

    # D = ∂²K/∂q̇∂q̇
    D = sympy.hessian(K, qd_) if qd_ else sympy.zeros(0, 0)
    rates = sympy.Matrix(qd_)
    if any(entry.has(*qd_) for entry in D) or sympy.simplify(K - (rates.T * D * rates)[0] / 2) != 0:
        raise wrong(InputError, "kinetic", str(K), "a quadratic form in the rates, ½ q̇ᵀ D(q) q̇")
    if P.has(*qd_):
        raise wrong(InputError, "potential", str(P), "a function of the coordinates alone")

    # τ = d/dt ∂L/∂q̇ - ∂L/∂q
    L = K - P
    coordinates = list(zip(q_, qd_, qdd_, strict=True))
    torques = [_rate(L.diff(v), coordinates) - L.diff(x) for x, v, _ in coordinates]
    write = simplified if simplify else rational
    D = matrix(D, write)
    C = christoffel(np.array(D), lambda entry, k: entry.diff(q_[k]), qd_)
    model = SymbolicModel(
        title,
        tuple(names),
        q_,
        qd_,
        qdd_,
        D,
        matrix(C, write),
        matrix([P.diff(x) for x in q_], write),
        sympy.zeros(len(q_), 1),
        matrix(torques, write),
    )
    return replace(model, derivation=lambda: derivatives(model, K, P))


def _rate(expression: sympy.Expr, coordinates: Sequence[Any]) -> sympy.Expr:
    """d/dt = Σ q̈ ∂/∂q̇ + Σ q̇ ∂/∂q; `coordinates` are (q, q̇, q̈)."""
    return sum(expression.diff(v) * a + expression.diff(x) * v for x, v, a in coordinates)


def derive_energies(
    mechanism: Mechanism,
    *,
    parameters: str = "symbols",
    rotors: str = "full",
    progress: Callable[[str], None] = lambda _: None,
) -> SymbolicModel:
    """The equations of motion of an open chain, derived from its energies K and P.

    K = ½ q̇ᵀ D q̇ with the D of the chain; P is such that ∂P/∂q = g and is zero at q = 0. Friction
    is left out, as it is not an energy; so are the springs of its laws. A note says so.

    Args:
        mechanism: the robot, as from `rd.load`.
        parameters: "symbols" or "numbers", as in `derive`.
        rotors: as in `InverseDynamics`.
        progress: called with a short text at each stage of the derivation.

    Raises:
        InputError: the mechanism has loops, or too many bodies for whole expressions.
    """
    if mechanism.loops:
        raise InputError(
            f"energies: {mechanism.name!r} has loops; expected an open chain (for loops, use "
            "another formulation)",
            name="energies",
        )
    model = derive(
        mechanism, "newton_euler", parameters=parameters, rotors=rotors, terms=RIGID,
        progress=progress,
    )  # fmt: skip
    assert isinstance(model, SymbolicModel)  # there are no loops
    if model.intermediates:
        raise InputError(
            f"energies: {mechanism.name!r} has too many bodies for energies in one piece; "
            "expected a smaller robot or another formulation",
            name="energies",
        )
    rates = sympy.Matrix(model.qd)
    n = len(rates)
    # K = ½ Σ d_ij q̇_i q̇_j
    K = sympy.Add(
        *(model.D[i, i] * rates[i] ** 2 / 2 for i in range(n)),
        *(model.D[i, j] * rates[i] * rates[j] for i in range(n) for j in range(i)),
    )
    P = _potential(model.g, model.q)
    laws = (law for *_, law in mechanism.friction_rows())
    if any(not is_zero(x) for law in laws for x in law.numbers.values()):
        model = replace(model, notes=(*model.notes, "friction is left out, including its springs"))
    return replace(model, derivation=lambda: derivatives(model, K, P))


def _potential(gradient: sympy.Matrix, q: Sequence[sympy.Symbol]) -> sympy.Expr:
    """P with this gradient, zero at q = 0:
    ∫ g_1 dq_1 at q_2 = q_3 = … = 0, plus ∫ g_2 dq_2 at q_3 = … = 0, and so on."""
    P = sympy.S.Zero
    for i, x in enumerate(q):
        along = sympy.expand(gradient[i]).subs(dict.fromkeys(q[i + 1 :], 0))
        integral = sympy.integrate(along, x)
        P += integral - integral.subs(x, 0)
    return simplified(P)


def derivatives(model: SymbolicModel, K: sympy.Expr, P: sympy.Expr) -> list[Section]:
    """The steps of Euler–Lagrange: K, P, L and all derivatives.

    Args:
        model: the model that was derived from the energies.
        K: kinetic energy in the symbols of the model, J.
        P: potential energy in the symbols of the model, J.
    """
    L = K - P
    sections = [
        Section("Kinetic energy", equations=[Equation(Formula("K", r"\mathcal{K}"), K)]),
        Section(
            "Potential energy", equations=[Equation(Formula("P", r"\mathcal{P}"), P)], zeros=True
        ),
        step(
            "Lagrangian",
            "L = K - P",
            r"\mathcal{L} = \mathcal{K} - \mathcal{P}",
            [Equation(Formula("L", r"\mathcal{L}"), L)],
        ),
    ]
    coordinates = list(zip(model.q, model.qd, model.qdd, strict=True))
    momenta = [simplified(L.diff(v)) for _, v, _ in coordinates]
    names = [(str(x), _tex(model, x), _tex(model, v)) for x, v, _ in coordinates]
    moved = [simplified(_rate(momentum, coordinates)) for momentum in momenta]
    slopes = [simplified(L.diff(x)) for x, _, _ in coordinates]

    def equations(text: str, tex: str, values: Sequence[sympy.Expr]) -> list[Equation]:
        return [
            Equation(Formula(text.format(x), tex.replace("Q", x_tex).replace("V", v_tex)), value)
            for (x, x_tex, v_tex), value in zip(names, values, strict=True)
        ]

    L_tex = r"\mathcal{L}"
    sections += [
        step(
            "Momenta",
            "dL/dqd_i",
            rf"\partial {L_tex} / \partial \dot{{q}}_i",
            equations("dL/d{}_d", rf"\frac{{\partial {L_tex}}}{{\partial V}}", momenta),
        ),
        step(
            "Their rates",
            "d/dt = sum of qdd_j d/dqd_j + qd_j d/dq_j",
            r"\frac{\mathrm{d}}{\mathrm{d}t} = \sum_j \ddot{q}_j "
            r"\frac{\partial}{\partial \dot{q}_j} + \dot{q}_j \frac{\partial}{\partial q_j}",
            equations(
                "d/dt dL/d{}_d",
                rf"\frac{{\mathrm{{d}}}}{{\mathrm{{d}}t}} \frac{{\partial {L_tex}}}{{\partial V}}",
                moved,
            ),
        ),
        step(
            "Slopes",
            "dL/dq_i",
            rf"\partial {L_tex} / \partial q_i",
            equations("dL/d{}", rf"\frac{{\partial {L_tex}}}{{\partial Q}}", slopes),
        ),
        step(
            "Euler–Lagrange",
            "tau_i = d/dt dL/dqd_i - dL/dq_i",
            rf"\tau_i = \frac{{\mathrm{{d}}}}{{\mathrm{{d}}t}} \frac{{\partial {L_tex}}}"
            rf"{{\partial \dot{{q}}_i}} - \frac{{\partial {L_tex}}}{{\partial q_i}}",
            (
                Equation(Formula(f"tau_{i}", rf"\tau_{{{i}}}"), torque)
                for i, torque in enumerate(model.torques, start=1)
            ),
        ),
    ]
    return sections


def _tex(model: SymbolicModel, symbol: sympy.Symbol) -> str:
    from .show import names_of

    return names_of(model).symbol(str(symbol))


def is_energies(path: str) -> bool:
    """Is this a YAML file of energies, rather than of a robot?"""
    if not is_yaml(path):
        return False
    try:
        file = find(path)
        content = plain(read_text(file), file.name)
    except DescriptionError:
        return False  # the loader then reports what is wrong
    return isinstance(content, dict) and "kinetic" in content


def from_file(path: str | Path, *, simplify: bool = True) -> SymbolicModel:
    """The model of a YAML file: `coordinates` (names), `kinetic` and `potential` (expressions, J).

    The rate of q1 is written q1_d. `symbols` may give values to parameters. Expressions are parsed,
    never executed: see `description.expression`.

    Args:
        path: the file.
        simplify: search for short expressions; False: a faster derivation.

    Raises:
        DescriptionError: an invalid file; the message names the file, the key and the value.
        InputError: see `from_energies`.
    """
    file = find(str(path))
    where = Place(file.name)
    said = FILE.read(plain(read_text(file), where), where)
    names = said["coordinates"]
    plain_names = all(letters(name) == (name,) for name in names)
    if not names or len(set(names)) < len(names) or len(names) > MOST or not plain_names:
        expected = f"1 to {MOST} names, each once"
        raise wrong(DescriptionError, where / "coordinates", list(names), expected)
    model = from_energies(
        said.get("kinetic", 0),
        said.get("potential", 0),
        symbols_of(names),
        symbols_of(names, "_d"),
        title=said.get("robot", file.stem),
        simplify=simplify,
    )
    given = said.get("symbols", {})
    return replace(model, parameters=dict(zip(symbols_of(given), given.values(), strict=True)))


def _energy(value: Any, where: Place) -> sympy.Expr:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong(DescriptionError, where, value, "an expression")
    known = dict(zip(letters(str(value)), symbols_of(letters(str(value))), strict=True))
    return sympy.nsimplify(evaluate(str(value), known, sympy.pi), rational=True)


ENERGY = Kind(_energy, {"type": ["number", "string"]}).said("J, in q1, q1_d, …")
FILE = Record(
    {
        "robot": NAME,
        "coordinates": listed(NAME, "their names"),
        "kinetic": ENERGY,
        "potential": ENERGY,
        "symbols": by_name(NUMBER, "values of parameters"),
    },
    required=("coordinates",),
)


def _name(coordinate: Any, i: int) -> str:
    if isinstance(coordinate, sympy.Symbol):
        return str(coordinate.name)
    return str(getattr(coordinate, "func", f"q{i}"))
