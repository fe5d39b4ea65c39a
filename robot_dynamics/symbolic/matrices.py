# SPDX-License-Identifier: Apache-2.0
"""D, C, g and the friction torques of an open chain in symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from ..formulations.equations import Equations
from ..scalar import Array, array
from .listed import listed
from .listing import Assignments
from .polynomial import Polynomial, TooManyTerms
from .polynomial_model import PolynomialModel
from .short import rounded
from .simplify import matrix, rational
from .straight_line import straight_line
from .symbolic_parameters import Task, symbolic_mechanism

MOST_IN_ENTRY = 300
"""Largest number of terms of one expanded entry of these matrices"""


def matrices_of(
    task: Task, simplify: bool, progress: Callable[[str], None]
) -> tuple[Assignments, dict[str, sympy.Matrix]]:
    """(intermediates, {D, C, g}), without intermediates if whole expressions are short enough.

    Args:
        task: the robot.
        simplify: search for the shortest expressions.
        progress: called with a short text at each stage.
    """
    try:
        model = PolynomialModel(task)
        parts = whole(model)
        entries = (x for each in parts.values() for x in each.flat if isinstance(x, Polynomial))
        if max((len(x.terms) for x in entries), default=0) > MOST_IN_ENTRY:
            raise TooManyTerms
    except TooManyTerms:
        return as_list(task, progress)
    write = model.writer.short if simplify else model.writer.plain
    return (), {name: matrix(x, lambda each: rounded(write(each))) for name, x in parts.items()}


def whole(model: PolynomialModel) -> dict[str, Array]:
    """{D, C, g} as polynomials.

    Args:
        model: the robot.
    """
    D = model.mass_matrix()
    return {"D": D, "C": coriolis(model, D), "g": model.gravity()}


def as_list(
    task: Task, progress: Callable[[str], None]
) -> tuple[Assignments, dict[str, sympy.Matrix]]:
    """(intermediates, {torques, D, C, g, friction}) by a recursion, with named intermediates or, if
    these are too long, with numbered ones.

    Args:
        task: the robot; in place of Lagrange–Euler's formulation Newton–Euler's is used.
        progress: called with a short text at each stage.
    """
    by = "newton_euler" if task.formulation == "lagrange_euler" else task.formulation
    task = replace(task, formulation=by)
    try:
        assignments, parts = listed(task, progress)
    except TooManyTerms:
        return straight_line(task)
    parts["friction"] = friction_of(task)
    parts["torques"] += parts["friction"]
    return assignments, parts


def coriolis(model: PolynomialModel, inertia: Array) -> Array:
    """C (n, n) from D, as polynomials."""
    slots = [model.ring.slot(x) for x in model.q]

    def slope(entry: Any, k: int) -> Any:
        return entry.diff(slots[k]) if isinstance(entry, Polynomial) else 0.0

    return christoffel(inertia, slope, model.qd)


def christoffel(D: Array, slope: Callable[[Any, int], Any], qd: Any) -> Array:
    """C (n, n) from D by Christoffel symbols:
    c_ij = Σ_k ½ (∂d_ij/∂q_k + ∂d_ik/∂q_j - ∂d_jk/∂q_i) qd_k.

    Args:
        D: (n, n), the inertia matrix as a function of q.
        slope: (entry of D, k) → its derivative with respect to the coordinate k.
        qd: (n,) rates.
    """
    n = len(qd)
    d, C = np.empty((n, n, n), dtype=object), np.empty((n, n), dtype=object)
    for i, j, k in np.ndindex(n, n, n):
        d[i, j, k] = slope(D[i, j], k)
    for i, j in np.ndindex(n, n):
        C[i, j] = sum((d[i, j, k] + d[i, k, j] - d[j, k, i]) * qd[k] for k in range(n)) / 2
    return C


def friction_of(task: Task) -> sympy.Matrix:
    """The friction torques (n, 1); zero if friction is not among the terms."""
    if "friction" not in task.terms:
        return sympy.zeros(len(task.q), 1)
    law = Equations.of(symbolic_mechanism(task.mechanism, task.known), task.formulation)
    torques = law.friction(array(task.q), array(task.qd), array(task.qdd))
    return matrix(torques, rational)
