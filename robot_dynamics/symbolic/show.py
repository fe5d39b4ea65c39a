# SPDX-License-Identifier: Apache-2.0
"""The document that is printed for a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sympy

from ..formulations.terms import ACCELERATED, TURNING
from .document import Document, Equation, Formula, Section, is_nothing, step
from .names import Names, entry, matrix_in_tex

PRODUCT = "C_"
"""The prefix of intermediates that only C needs"""


def names_of(model: Any) -> Names:
    """The names of a model's symbols."""
    return Names(model.q, (*model.qd, *model.qdd), model.parameters)


def document(model: Any, steps: Sequence[Section] = ()) -> Document:
    """The torques, then the parts D, C, g and friction that belong to the chosen terms.

    Args:
        model: a `SymbolicModel`.
        steps: sections that are shown first.
    """
    sections, names = [*steps], names_of(model)
    if model.intermediates:
        sections.append(
            Section(
                "Intermediates",
                equations=[
                    Equation(Formula(str(symbol), names.symbol(str(symbol))), value)
                    for symbol, value in model.intermediates
                    if not str(symbol).startswith(PRODUCT)
                ],
                words="names that begin with D2_ belong to D's second column, qdd = (0, 1, 0, …)",
            )
        )
    torques = zip(model.joint_names, model.torques, strict=True)
    sections += [
        step(
            "Torques",
            *_law(model),
            (
                Equation(Formula(f"tau[{name}]", rf"\tau_{{{i}}}"), torque)
                for i, (name, torque) in enumerate(torques, start=1)
            ),
        ),
        *(
            Section(title, equations=list(entries(name, values)), zeros=is_nothing(values))
            for title, name, values in parts(model)
        ),
    ]
    shown: set[sympy.Basic] = set(model.parameters)
    for section in steps:
        for equation in section.equations:
            shown |= sympy.sympify(equation.value).free_symbols
    parameters = {
        symbol: value
        for symbol, value in {**model.described, **model.parameters}.items()
        if symbol in shown
    }
    return Document(model.title, sections, names, parameters, model.notes)


def _law(model: Any) -> tuple[str, str]:
    """The equation tau = D qdd + C qd + g + F with the parts that the model has, (text, LaTeX)."""
    found = [name for _, name, _ in parts(model)]
    if model.intermediates and model.terms & TURNING:
        found = ["D", "C", *(name for name in found if name != "D")]
    text = {"D": "D qdd", "C": "C qd", "g": "g", "F": "F"}
    tex = {"D": r"D \ddot{q}", "C": r"C \dot{q}", "g": "g", "F": "F"}
    return (
        "tau = " + (" + ".join(text[name] for name in found) or "0"),
        r"\tau = " + (" + ".join(tex[name] for name in found) or "0"),
    )


def parts(model: Any) -> list[tuple[str, str, sympy.Matrix]]:
    """(title, name, matrix) of each part that belongs to the chosen terms."""
    found = []
    if model.terms & ACCELERATED:
        found.append(("Inertia matrix D", "D", model.D))
    # with intermediates the torques contain C qd, and C itself would not be readable
    if model.terms & TURNING and not model.intermediates:
        found.append(("Coriolis matrix C", "C", model.C))
    if "gravity" in model.terms:
        found.append(("Gravity g", "g", model.g))
    if "friction" in model.terms and not is_nothing(model.friction):
        found.append(("Friction F", "F", model.friction))
    return found


def entries(name: str, values: sympy.Matrix) -> Iterator[Equation]:
    """One equation for each entry that is not zero, or one for the matrix if all are zero.

    Args:
        name: the name of the matrix.
        values: the matrix.
    """
    if is_nothing(values):
        yield Equation(Formula(name, matrix_in_tex(name)), values)
        return
    for i, j in np.ndindex(*values.shape):
        if values[i, j] != 0:
            places = (i + 1, j + 1)[: 1 if values.cols == 1 else 2]
            yield Equation(Formula(*entry(name, places)), values[i, j])
