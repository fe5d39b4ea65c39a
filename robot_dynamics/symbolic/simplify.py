# SPDX-License-Identifier: Apache-2.0
"""Simplification in bounded time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

LARGEST = 150
"""Expressions with more operations are only brought to normal form: SymPy's search for shorter ones
would take minutes"""


def simplified(expression: Any) -> sympy.Expr:
    """An equal expression in the normal form sin² = 1 - cos², factored if that is shorter."""
    expression = rational(expression)
    if expression.count_ops() > 20 * LARGEST:
        return expression
    normal = _normal_form(expression)
    candidates = [normal]
    if normal.count_ops() <= LARGEST:
        candidates.append(sympy.trigsimp(normal))
        candidates += [sympy.factor_terms(each) for each in list(candidates)]
    return min(candidates, key=lambda each: each.count_ops())


def rational(expression: Any) -> sympy.Expr:
    """The expression with exact fractions for floats, which are the 0.5 and 2.0 of the formulas."""
    expression = sympy.sympify(expression)
    floats = expression.atoms(sympy.Float)
    return expression.xreplace({x: sympy.Rational(repr(float(x))) for x in floats})


def _normal_form(expression: sympy.Expr) -> sympy.Expr:
    """The expanded expression, with no power of a sine above the first."""
    expanded = sympy.expand(expression)
    sines = sorted(expanded.atoms(sympy.sin), key=str)
    for sine in sines:
        cosine = sympy.cos(sine.args[0])
        expanded = sympy.expand(
            expanded.replace(
                lambda e, sine=sine: e.is_Pow and e.base == sine and e.exp.is_Integer and e.exp > 1,
                lambda e, sine=sine, cosine=cosine: (
                    (1 - cosine**2) ** (e.exp // 2) * sine ** (e.exp % 2)
                ),
            )
        )
    return expanded


def matrix(values: Any, write: Callable[[Any], sympy.Expr]) -> sympy.Matrix:
    """A SymPy matrix with the entries of an array, a vector as a column.

    Args:
        values: (m, n) or (m,).
        write: converts an entry to an expression.
    """
    rows = np.asarray(values, dtype=object)
    rows = rows[:, None] if rows.ndim == 1 else rows
    return sympy.Matrix(*rows.shape, [write(x) for x in rows.flat])
