# SPDX-License-Identifier: Apache-2.0
"""The result of a derivation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy

from ..formulations.equations import TERMS
from ..formulations.lagrange_euler import Steps
from ..scalar import Floats
from . import show
from .document import Document, Documented, Section


@dataclass(frozen=True, eq=False)
class SymbolicModel(Documented):
    """tau = D(q) qdd + C(q, qd) qd + g(q) + friction(qd), in SymPy expressions.

    C is made of Christoffel symbols, so that dD/dt - 2C is skew.
    """

    title: str
    joint_names: tuple[str, ...]
    q: tuple[sympy.Symbol, ...]
    qd: tuple[sympy.Symbol, ...]
    qdd: tuple[sympy.Symbol, ...]
    D: sympy.Matrix
    """(n, n)"""
    C: sympy.Matrix
    """(n, n)"""
    g: sympy.Matrix
    """(n, 1)"""
    friction: sympy.Matrix
    """(n, 1)"""
    torques: sympy.Matrix
    """(n, 1): as the formulation gives them"""
    parameters: Mapping[sympy.Symbol, float] = field(default_factory=dict)
    """The value that the description gives for each parameter's symbol"""
    intermediates: tuple[tuple[sympy.Symbol, sympy.Expr], ...] = ()
    """(symbol, expression) in an order in which they can be computed; the matrices above are
    written in these symbols too. Empty where they are whole expressions"""
    steps: Steps | None = None
    """The intermediates of L-E 2 to L-E 9, where Lagrange–Euler derived the model"""
    notes: tuple[str, ...] = ()
    """What was taken for what: rounded angles"""
    terms: frozenset[str] = frozenset(TERMS)
    """What the torques consist of"""
    described: Mapping[sympy.Symbol, float] = field(default_factory=dict, repr=False)
    """`parameters`, and those that the torques do not depend on: steps may have them"""
    derivation: Callable[[], list[Section]] = field(default=list, repr=False)
    """Makes the sections of `sections`"""

    def function(
        self, values: Mapping[sympy.Symbol, float] | None = None
    ) -> Callable[[Any, Any, Any], Floats]:
        """The torques as a function of numbers (q, qd, qdd), each (n,), giving (n,).

        values: of the parameters; those of the description where none are given.
        """
        known = {**self.parameters, **(values or {})}
        arguments = [*self.q, *self.qd, *self.qdd, *known]
        # lambdify takes common subexpressions from a function of the expressions
        common = (lambda torques: (self.intermediates, torques)) if self.intermediates else True
        compiled = sympy.lambdify(arguments, list(self.torques), modules="numpy", cse=common)
        return lambda q, qd, qdd: np.array(compiled(*q, *qd, *qdd, *known.values()), dtype=float)

    def document(self, *, steps: bool = False) -> Document:
        """What is printed: the torques and their parts, after every step if asked."""
        return show.document(self, self.sections() if steps else ())

    def sections(self) -> list[Section]:
        """The steps of the formulation that derived the model, in order."""
        return self.derivation()

    def _repr_latex_(self) -> str:
        """For Jupyter."""
        lines = [
            rf"\tau_{{{i}}} &= {show.names_of(self).latex(torque)}"
            for i, torque in enumerate(self.torques, start=1)
        ]
        return r"$$\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}$$"
