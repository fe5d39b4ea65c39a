"""A derivation for people: as text and as LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import sympy

from ..formulations.lagrange_euler import Steps
from ..scalar import array
from .simplify import simplified


class Derivation(Protocol):
    """The parts of a model that are printed; see `SymbolicModel`."""

    @property
    def title(self) -> str:
        """The heading: robot and formulation."""
        ...

    @property
    def joint_names(self) -> tuple[str, ...]:
        """(n,): the order of q, qd, qdd."""
        ...

    @property
    def q(self) -> tuple[sympy.Symbol, ...]:
        """(n,): positions, rad or m."""
        ...

    @property
    def qd(self) -> tuple[sympy.Symbol, ...]:
        """(n,): rates."""
        ...

    @property
    def qdd(self) -> tuple[sympy.Symbol, ...]:
        """(n,): accelerations."""
        ...

    @property
    def D(self) -> sympy.Matrix:
        """(n, n): the inertia matrix."""
        ...

    @property
    def C(self) -> sympy.Matrix:
        """(n, n): the Coriolis matrix."""
        ...

    @property
    def g(self) -> sympy.Matrix:
        """(n, 1): gravity torques."""
        ...

    @property
    def friction(self) -> sympy.Matrix:
        """(n, 1): friction torques."""
        ...

    @property
    def torques(self) -> sympy.Matrix:
        """(n, 1): D q̈ + C q̇ + g + friction."""
        ...

    @property
    def parameters(self) -> Mapping[sympy.Symbol, float]:
        """Each symbol's number in the description."""
        ...

    @property
    def intermediates(self) -> tuple[tuple[sympy.Symbol, sympy.Expr], ...]:
        """(symbol, expression) pairs that the others refer to, in order."""
        ...

    @property
    def steps(self) -> Steps | None:
        """The Lagrange–Euler matrices by name; None for the other formulations."""
        ...


def text(model: Derivation) -> str:
    """tau_i = …, then D, C, g and friction, entry by entry where they are not zero."""
    lines = [model.title, ""]
    if model.intermediates:
        lines += [f"{symbol} = {expression}" for symbol, expression in model.intermediates]
        lines.append("")
    lines += [
        f"tau[{name}] = {torque}"
        for name, torque in zip(model.joint_names, model.torques, strict=True)
    ]
    for name, entries in _parts(model):
        lines += ["", *(_entries(name, entries) or [f"{name} = 0"])]
    if model.parameters:
        lines += ["", "with"]
        lines += [f"  {symbol} = {value:.12g}" for symbol, value in model.parameters.items()]
    return "\n".join(lines)


def steps_text(model: Derivation) -> str:
    """L-E 2 to L-E 9, every intermediate, counted from 1 as in the book."""
    steps = model.steps
    if steps is None:
        return ""
    n = len(steps.names)
    lines: list[str] = []

    def show(title: str, blocks: dict[str, Any]) -> None:
        lines.append(title)
        for name, block in blocks.items():
            value = sympy.Matrix(block).applyfunc(sympy.sympify)
            if not value.is_zero_matrix:
                rows = sympy.pretty(value, use_unicode=True, wrap_line=False).splitlines()
                head = f"  {name} = "
                middle = len(rows) // 2
                pads = [head if r == middle else " " * len(head) for r in range(len(rows))]
                lines.extend(pad + row for pad, row in zip(pads, rows, strict=True))
        lines.append("")

    count = range(n)
    show("L-E 2: transformations ⁰A_i", {f"A_{i + 1}": steps.A[i] for i in count})
    show("Note 1: operators Q_j", {f"Q_{j + 1}": steps.Q[j] for j in count})
    show("L-E 3: U_ij", {f"U_{i + 1}{j + 1}": steps.U[i, j] for i in count for j in count})
    show(
        "L-E 4: U_ijk",
        {
            f"U_{i + 1}{j + 1}{k + 1}": steps.dU[i, j, k]
            for i in count
            for j in count
            for k in count
        },
    )
    show("L-E 5: pseudo-inertias J_i", {f"J_{i + 1}": steps.J[i] for i in count})
    show("L-E 6: inertia matrix", {"D": steps.D})
    show(
        "L-E 7: h_ikm",
        {
            f"h_{i + 1}{k + 1}{m + 1}": [[steps.h[i, k, m]]]
            for i in count
            for k in count
            for m in count
        },
    )
    rates = array(model.qd)
    if len(rates) == n:
        show("L-E 8: Coriolis and centripetal", {"H": [[simplified(x)] for x in steps.H(rates)]})
    show("L-E 9: gravity", {"C": [[x] for x in steps.C]})
    return "\n".join(lines)


def latex(model: Derivation) -> str:
    """An align* environment: one torque a line, then the matrices."""
    names = _latex_names(model)

    def tex(expression: Any) -> str:
        return str(sympy.latex(expression, symbol_names=names))

    lines = [rf"{tex(symbol)} &= {tex(value)} \\" for symbol, value in model.intermediates]
    lines += [
        rf"\tau_{{{i}}} &= {tex(torque)} \\" for i, torque in enumerate(model.torques, start=1)
    ]
    lines += [rf"{name} &= {tex(value)} \\" for name, value in _parts(model)]
    body = "\n".join("  " + line for line in lines)
    return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"


def _parts(model: Derivation) -> list[tuple[str, sympy.Matrix]]:
    return [("D", model.D), ("C", model.C), ("g", model.g), ("F", model.friction)]


def _entries(name: str, values: sympy.Matrix) -> list[str]:
    single = values.shape[1] == 1
    return [
        f"{name}[{i + 1}]" + ("" if single else f"[{j + 1}]") + f" = {values[i, j]}"
        for i in range(values.shape[0])
        for j in range(values.shape[1])
        if values[i, j] != 0
    ]


def _latex_names(model: Derivation) -> dict[sympy.Symbol, str]:
    """Rates with dots."""
    names = {}
    for q, qd, qdd in zip(model.q, model.qd, model.qdd, strict=True):
        letter, _, index = sympy.latex(q).partition("_")
        below = f"_{index}" if index else ""
        names[qd] = rf"\dot{{{letter}}}{below}"
        names[qdd] = rf"\ddot{{{letter}}}{below}"
    return names
