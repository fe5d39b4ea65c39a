# SPDX-License-Identifier: Apache-2.0
"""The derivation for a mechanism with loops as a document.

Numbers in parentheses are equations of [ZCPOM].
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from .document import Document, Equation, Formula, Section
from .names import Names
from .show import entries

PARTS = (
    ("closure", "Closures", "Gamma", "Gamma(x, q_r) = 0  (19)", r"\Gamma(x, q_r) = 0 \quad (19)"),
    ("J_x", "Jacobian with respect to x", "J_x", "J_x = dGamma/dx  (25)",
     r"J_x = \partial\Gamma/\partial x \quad (25)"),
    ("J_q", "Jacobian with respect to q_r", "J_q", "J_q = dGamma/dq_r  (25)",
     r"J_q = \partial\Gamma/\partial q_r \quad (25)"),
    ("D_x", "Platform: inertia", "D_x", "of the platform, v = xd  (32)",
     r"\mathcal{K} = \tfrac12 \dot{x}^T D_x \dot{x} \quad (32)"),
    ("C_x", "Platform: Coriolis", "C_x", "zero where P is the centre of mass",
     r"C_x \dot{x}: \text{ zero where } P \text{ is the centre of mass}"),
    ("G_x", "Platform: gravity", "G_x", "G_x = dP/dx", r"G_x = \partial\mathcal{P}/\partial x"),
    ("D_q", "Legs: inertia", "D_q", "of the legs  (38)",
     r"\mathcal{K} = \tfrac12 \dot{q}_r^T D_q \dot{q}_r \quad (38)"),
    ("C_q", "Legs: Coriolis", "C_q", "Christoffel's, of D_q",
     r"C_q: \text{ from Christoffel symbols of } D_q"),
    ("G_q", "Legs: gravity", "G_q", "G_q = dP/dq_r", r"G_q = \partial\mathcal{P}/\partial q_r"),
    ("friction", "Legs: friction", "F_q", "at the legs' joints", r"F_q(q_r, \dot{q}_r)"),
    ("K", "Joint rates from the platform velocity", "K", "qd_r = K xd,  K = -J_q^-1 J_x",
     r"\dot{q}_r = K \dot{x}, \quad K = -J_q^{-1} J_x"),
)  # fmt: skip

HOW = (
    ("J_R = K_a^-1, K_a the rows of q_a;  T = K J_R;  J_C = -(J_x^T J_x)^-1 J_x^T J_q",
     r"J_R = K_a^{-1}, \quad T = K J_R, \quad J_C = -(J_x^T J_x)^{-1} J_x^T J_q"),
    ("(39)  D = T^T (D_q + J_C^T D_x J_C),  "
     "C = T^T (C_q + J_C^T (D_x dJ_C/dt + C_x J_C)),  "
     "G = T^T (G_q + J_C^T G_x),  F_ext = T^T J_C^T Q_x",
     r"\begin{aligned} D &= T^T (D_q + J_C^T D_x J_C), \quad "
     r"C = T^T (C_q + J_C^T (D_x \dot{J}_C + C_x J_C)), \\ "
     r"G &= T^T (G_q + J_C^T G_x), \quad F_{ext} = T^T J_C^T Q_x \end{aligned} \quad (39)"),
    ("(40)  D = T^T (D_q T + J_C^T D_x J_R),  "
     "C = T^T (C_q T + D_q dT/dt + J_C^T (D_x dJ_R/dt + C_x J_R)),  G and F_ext as in (39)",
     r"\begin{aligned} D &= T^T (D_q T + J_C^T D_x J_R), \\ "
     r"C &= T^T (C_q T + D_q \dot{T} + J_C^T (D_x \dot{J}_R + C_x J_R)) \end{aligned} \quad (40)"),
)  # fmt: skip


def paper(model: Any, *, steps: bool) -> Document:
    """The matrices in closed form, and the equations that compose the model from them.

    Args:
        model: a `PaperModel`.
        steps: also show each matrix's definition, and J_R, T and T_q in terms of K.
    """
    order = ", ".join(model.joint_names)
    sections = [
        Section("Coordinates", words=f"q_r = ({order}), x = (x, y, theta_z) of the platform's P")
    ]
    for attribute, title, name, text, tex in PARTS:
        values = getattr(model, attribute)
        tex_name = r"\Gamma" if name == "Gamma" else name
        sections.append(
            Section(
                title,
                Formula(text, tex) if steps else None,
                [Equation(Formula(each.name.text, each.name.tex.replace(name, tex_name, 1)),
                          each.value) for each in entries(name, values)],
                zeros=True,
            )
        )  # fmt: skip
    if steps:
        sections += _projections(model)
    titles = ("Projections", "Model of sensed coordinates", "Model of the actuated joints")
    sections += [
        Section(title, Formula(*formula)) for title, formula in zip(titles, HOW, strict=True)
    ]
    names = Names((*model.q_a, *model.q_s, *model.q_p), (*model.qd, *model.xd), model.parameters)
    return Document(model.title, sections, names, model.parameters, model.notes)


def _letters(name: str, values: Any) -> sympy.Matrix:
    """The matrix with a symbol for each entry that is not zero."""
    return sympy.Matrix(
        *values.shape,
        lambda i, j: 0 if values[i, j] == 0 else sympy.Symbol(f"{name}_{i + 1}{j + 1}"),
    )


def _projections(model: Any) -> list[Section]:
    """J_R, T and T_q in terms of the entries of K."""
    a, k = len(model.q_a), len(model.q_a) + len(model.q_s)
    K = _letters("K", model.K)
    K_a = K[:a, :]
    J_R = _letters("R", sympy.ones(K_a.cols, a))
    determinant, adjugate = K_a.det(method="berkowitz"), K_a.adjugate()
    T = sympy.eye(a).col_join(K[a:, :] * J_R)
    sections = [
        Section(
            "Platform velocity from the actuated joints",
            Formula("xd = J_R qd_a,  J_R = K_a^-1  (24)",
                    r"\dot{x} = J_R \dot{q}_a, \quad J_R = K_a^{-1} \quad (24)"),
            [
                Equation(Formula("Delta", r"\Delta"), determinant),
                *(
                    Equation(Formula(f"R_{i + 1}{j + 1}", f"R_{{{i + 1}{j + 1}}}"),
                             adjugate[i, j] / sympy.Symbol("Delta"))
                    for i in range(adjugate.rows) for j in range(adjugate.cols)
                ),
            ],
            words="R_ij are the entries of J_R, K_ij those of K, Delta is the determinant of K_a",
        ),
        Section(
            "T: all joint rates from the actuated ones",
            Formula("qd_r = T qd_a,  T = K J_R  (27)",
                    r"\dot{q}_r = T \dot{q}_a, \quad T = K J_R \quad (27)"),
            list(entries("T", T)),
        ),
    ]  # fmt: skip
    free = len(model.q_p)
    if free:
        words = (
            f"the last {free} rows of T_q equal those of T in the columns of q_a, zero elsewhere"
        )
        T_q = sympy.zeros(k + free, k)
        T_q[:k, :] = sympy.eye(k)
        T_q[k:, :a] = T[k:, :]
    else:
        words = "every passive joint is sensed: T_q = 1"
        T_q = sympy.eye(k)
    sections.append(
        Section(
            "T_q: all joint rates from the actuated and sensed ones",
            Formula("qd_r = T_q [qd_a; qd_s]", r"\dot{q}_r = T_q [\dot{q}_a; \dot{q}_s]"),
            [Equation(Formula("T_q", "T_q"), T_q)],
            words=words,
        )
    )
    return sections


LISTED: Sequence[tuple[str, str, str, str, str]] = (
    ("R p", "", "Frames of the links", "", ""),
    ("phi", "closure", "Closures", "phi(q_r) = 0: the independent rows", r"\varphi(q_r) = 0"),
    ("J", "J", "Jacobian of the closures", "J = dphi/dq_r = [B A], B of the actuated joints",
     r"J = \partial\varphi/\partial q_r = [B \; A]"),
    ("Delta T _d", "T", "All joint rates from the actuated ones",
     "qd_r = T qd_a,  T = [1; X],  A X = -B",
     r"\dot{q}_r = T \dot{q}_a, \quad T = [1; X], \quad A X = -B"),
    ("S", "S", "How the motors share the load",
     "S = W A (A^T W A)^-1, A: the motors' rows of T, W = diag(w^2), w: torques of equal weight",
     r"S = W A (A^T W A)^{-1}"),
    ("Dr Cr Dm Cm gr", "", "The tree: D_r, C_r, g_r", "tau_r = D_r qdd_r + C_r qd_r + g_r",
     r"\tau_r = D_r \ddot{q}_r + C_r \dot{q}_r + g_r"),
    ("omega v zeta dJ h dT", "", "Rates of J and T", "h = dJ/dt T,  A dX/dt = -h",
     r"h = \dot{J} T, \quad A \dot{X} = -h"),
    ("Dx Cx Gx JR dJR", "", "The platform", "v = J_R qd_a,  wrench D_x vd + C_x v + G_x",
     r"v = J_R \dot{q}_a, \quad D_x \dot{v} + C_x v + G_x"),
    ("Mr Mm Mx D", "D", "Inertia matrix D",
     "D = T^T M_r + J_R^T M_x,  M_r = D_r T,  M_x = D_x J_R",
     r"D = T^T M_r + J_R^T M_x, \quad M_r = D_r T, \quad M_x = D_x J_R"),
    ("Nr Nm Nx C", "C", "Coriolis matrix C",
     "C = T^T N_r + J_R^T N_x,  N_r = C_r T + D_r dT/dt,  N_x = D_x dJ_R/dt + C_x J_R",
     r"C = T^T N_r + J_R^T N_x, \quad N_r = C_r T + D_r \dot{T}, \quad "
     r"N_x = D_x \dot{J}_R + C_x J_R"),
    ("g", "g", "Gravity g", "g = T^T g_r + J_R^T G_x", r"g = T^T g_r + J_R^T G_x"),
    ("tau", "torques", "Torques", "tau = D qdd_a + C qd_a + g + T^T friction",
     r"\tau = D \ddot{q}_a + C \dot{q}_a + g + T^T F"),
)  # fmt: skip
"""(beginnings of the names of intermediates, attribute, title, formula as text and in LaTeX)"""

INTERMEDIATES = (
    "Subscripts are matrix indices (T_3_1) or axes followed by the link's number in the "
    "description: R_xy2 and p_x2 are the frame of link 2 in the base frame, omega_x2 and v_x2 its "
    "velocities, zeta_x2 the rate of its joint's axis. NAME_d is a joint's rate, Delta the "
    "determinant of A or of a block of it, and v… any other value that occurs more than once. A "
    "number with a decimal point is rounded to double precision; all others are exact"
)


def listed(model: Any, *, steps: bool) -> Document:
    """The intermediates and the matrices, step by step.

    Args:
        model: a `ListedModel`.
        steps: also show each step's definition.
    """
    names = Names(model.q, (*model.qd, *model.qdd, *model.rates), model.parameters)
    words = f"q_r = ({', '.join(model.coordinate_names)})"
    if model.S is not None:
        words += f", torques of ({', '.join(model.actuated_names)})"
    sections = [Section("Coordinates", words=words), Section("Names", words=INTERMEDIATES)]
    place = {name: i for i, row in enumerate(LISTED) for name in row[0].split(" ")}
    shown: list[list[Equation]] = [[] for _ in LISTED]
    here = 0
    for symbol, value in reversed(model.intermediates):
        # an intermediate without a name of its own belongs to the quantity that uses it
        begin = "_d" if symbol in model.rates else re.split(r"[_\d]", str(symbol))[0]
        here = here if re.fullmatch(r"v\d+", str(symbol)) else place.get(begin, here)
        equation = Equation(Formula(str(symbol), names.symbol(str(symbol))), value)
        shown[here].insert(0, equation)
    for (_, attribute, title, text, tex), equations in zip(LISTED, shown, strict=True):
        values = getattr(model, attribute) if attribute else None
        if model.S is not None:
            text, tex = text.replace("T^T", "S T^T"), tex.replace("T^T", "S T^T")
        if values is not None:
            letter = {"closure": "phi", "torques": "tau"}.get(attribute, attribute)
            for each, (i, j) in zip(values, np.ndindex(*values.shape), strict=True):
                vector = values.cols == 1 and attribute in ("closure", "g", "torques")
                name = f"{letter}_{i + 1}" if vector else f"{letter}_{i + 1}_{j + 1}"
                if each not in (0, sympy.Symbol(name, real=True)):
                    said = f"{letter}[{i + 1}]" if vector else name
                    equations.append(Equation(Formula(said, names.symbol(name)), each))
        if not any("JR_" in str(symbol) for symbol, _ in model.intermediates):
            # the platform's body is part of the tree
            text, tex = (
                re.sub(r" \+ J_R\^T [MNG]_[xr]|, +(\\quad )?[MN]_x = .*", "", x)
                for x in (text, tex)
            )
        if equations:
            sections.append(
                Section(title, Formula(text, tex) if steps and text else None, equations)
            )
    return Document(model.title, sections, names, model.parameters, model.notes)
