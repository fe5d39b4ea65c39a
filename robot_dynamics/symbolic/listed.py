# SPDX-License-Identifier: Apache-2.0
"""Equations that are too long for one expression, with a list of named intermediates.

The recursion runs over polynomials. Each of its quantities has a name, under which later ones use
it: alpha_x3 is the x component of link 3's angular acceleration. The columns of D have their own
intermediates (D2_alpha_x3: with q̈ = e_2 alone).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from ..scalar import Array, array
from .listing import Assignments, needed
from .polynomial import Polynomial, Ring
from .polynomial_model import PolynomialModel
from .show import PRODUCT
from .straight_line import straight_line
from .sweeps import Notes
from .symbolic_parameters import Task


class Intermediates(Notes):
    """`Notes` that also collect the assignments of the letters."""

    def __init__(self, ring: Ring, prefix: str, write: Callable[[Any], sympy.Expr]):
        super().__init__(ring)
        self.prefix, self.write = prefix, write
        self.assignments: list[tuple[sympy.Symbol, sympy.Expr]] = []

    def symbol(self, name: str, value: Polynomial) -> sympy.Symbol:
        """A new symbol, to which the value is assigned."""
        taken = {symbol for symbol, _ in self.assignments}
        symbol = sympy.Symbol(self.prefix + name, real=True)
        while symbol in taken:
            symbol = sympy.Symbol(f"{symbol}_", real=True)
        self.assignments.append((symbol, self.write(value)))
        return symbol


def listed(
    task: Task, progress: Callable[[str], None]
) -> tuple[Assignments, dict[str, sympy.Matrix]]:
    """(intermediates, {torques, D, C, g}) by a recursion, in the symbols of the task.

    Raises:
        TooManyTerms: the expressions are too long even with intermediates.
    """
    model = PolynomialModel(task)
    n, still = len(model.q), np.zeros(len(model.q))
    assignments: list[tuple[sympy.Symbol, sympy.Expr]] = []
    short, plain = model.writer.short, model.writer.plain

    def total(
        run: Callable[[Any, Intermediates], Array], prefix: str, write: Any
    ) -> list[sympy.Expr]:
        progress(f"recursion {prefix.rstrip('_') or 'of the torques'}")
        sums = np.zeros(n, dtype=object) + sympy.S.Zero
        for k, equations in enumerate(model.equations, 1):
            naming = Intermediates(model.ring, f"b{k}_{prefix}" if k > 1 else prefix, write)
            values = run(equations, naming)
            assignments.extend(naming.assignments)
            sums = sums + np.array([write(x) for x in values], dtype=object)
        return list(sums)

    q, qd, qdd = model.q, model.qd, model.qdd
    torques = total(lambda each, note: each.torques(q, qd, qdd, note), "", short)
    D = sympy.zeros(n, n)
    for j, unit in enumerate(np.eye(n)):

        def column(each: Any, note: Intermediates, unit: Array = unit) -> Array:
            return array(each.motion(q, still, unit, note))

        D[:, j] = sympy.Matrix(total(column, f"D{j + 1}_", plain))
    progress("Coriolis matrix")
    # many intermediates without natural names
    products, others = straight_line(task, PRODUCT)
    g = [sympy.S.Zero] * n
    if "gravity" in task.terms:
        g = total(lambda each, _: each.gravity(q), "g_", plain)
    parts = {"torques": sympy.Matrix(torques), "D": D, "g": sympy.Matrix(g)}
    parts["C"] = others["C"]
    return needed([*products, *assignments], parts.values()), parts
