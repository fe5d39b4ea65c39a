# SPDX-License-Identifier: Apache-2.0
"""The symbolic model of an open chain."""

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
    """tau = D(q) qdd + C(q, qd) qd + g(q) + friction(q, qd), in SymPy expressions.

    C consists of Christoffel symbols; dD/dt - 2C is therefore skew-symmetric.
    """

    title: str
    joint_names: tuple[str, ...]
    q: tuple[sympy.Symbol, ...]
    qd: tuple[sympy.Symbol, ...]
    qdd: tuple[sympy.Symbol, ...]
    D: sympy.Matrix
    """(n, n): the inertia matrix"""
    C: sympy.Matrix
    """(n, n): the Coriolis matrix"""
    g: sympy.Matrix
    """(n, 1): the gravity torques"""
    friction: sympy.Matrix
    """(n, 1): the friction torques"""
    torques: sympy.Matrix
    """(n, 1): tau, as derived by the formulation"""
    parameters: Mapping[sympy.Symbol, float] = field(default_factory=dict)
    """The value that the description gives for each parameter's symbol"""
    intermediates: tuple[tuple[sympy.Symbol, sympy.Expr], ...] = ()
    """(symbol, expression) pairs in the order of their computation; the torques and matrices are
    written in terms of these symbols. Empty if they are whole expressions"""
    steps: Steps | None = None
    """The results of steps L-E 2 to L-E 9, if the model was derived by Lagrange–Euler"""
    notes: tuple[str, ...] = ()
    """Remarks, such as which rounded angles were taken as exact ones"""
    terms: frozenset[str] = frozenset(TERMS)
    """The terms of which the torques consist"""
    described: Mapping[sympy.Symbol, float] = field(default_factory=dict, repr=False)
    """`parameters`, and those that occur only in the steps"""
    derivation: Callable[[], list[Section]] = field(default=list, repr=False)
    """Computes the result of `sections`"""

    def function(
        self, values: Mapping[sympy.Symbol, float] | None = None
    ) -> Callable[[Any, Any, Any], Floats]:
        """A numerical function (q, qd, qdd) → tau, all (n,) in SI units.

        Args:
            values: values for some of the parameters, SI units; all others have those of the
                description.
        """
        known = {**self.parameters, **(values or {})}
        arguments = [*self.q, *self.qd, *self.qdd, *known]
        # lambdify takes common subexpressions from a function that is given as `cse`
        common = (lambda torques: (self.intermediates, torques)) if self.intermediates else True
        # a joint or parameter may have the name of a function or of pi: its symbol is replaced
        compiled = sympy.lambdify(
            arguments, list(self.torques), modules="numpy", cse=common, dummify=True
        )
        return lambda q, qd, qdd: np.array(compiled(*q, *qd, *qdd, *known.values()), dtype=float)

    def document(self, *, steps: bool = False) -> Document:
        """The torques and their parts D, C, g and friction as a document.

        Args:
            steps: show the steps of the derivation first.
        """
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
