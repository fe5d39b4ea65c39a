# SPDX-License-Identifier: Apache-2.0
"""The derivation for a robot with loops as a document.

Numbers in parentheses are equations of [ZCPOM].
"""

from __future__ import annotations

from typing import Any

import sympy

from .document import Document, Equation, Formula, Section
from .names import Names
from .show import entries

Row = tuple[str, str, str, str]
SECTIONS: tuple[Row, ...] = (
    ("frames", "Frames of the links", "", ""),
    ("R", "Rotation of the platform", "R = Rz(theta_z) Ry(theta_y) Rx(theta_x)",
     r"R = R_z(\theta_z) R_y(\theta_y) R_x(\theta_x)"),
    ("Gamma", "Closures", "Gamma(x, q_r) = 0  (19)", r"\Gamma(x, q_r) = 0 \quad (19)"),
    ("J_x", "Jacobian with respect to x", "dGamma/dt = J_x v + J_q qd_r  (25)",
     r"\dot{\Gamma} = J_x v + J_q \dot{q}_r \quad (25)"),
    ("J_q", "Jacobian with respect to q_r", "J_q = dGamma/dq_r  (25)",
     r"J_q = \partial\Gamma/\partial q_r \quad (25)"),
    ("L_q U_q Z_q B", "Inverse of J_q in independent rows", "B = J_q^-1", "B = J_q^{-1}"),
    ("K", "Joint rates from the platform velocity",
     "qd_r = K v,  K = -J_q^-1 J_x in independent rows",
     r"\dot{q}_r = K v, \quad K = -J_q^{-1} J_x \text{ in independent rows}"),
    ("E", "What the legs forbid the platform", "E v = 0,  E = J_x + J_q K in the other rows",
     r"E v = 0, \quad E = J_x + J_q K \text{ in the other rows}"),
    ("L_R U_R Z_J_R J_R Z_J_E J_E", "Platform velocity from the actuated joints",
     "v = J_R qd_a,  [J_R J_E] = [K_a; E]^-1,  K_a: the rows of q_a  (24)",
     r"v = J_R \dot{q}_a, \quad [J_R \; J_E] = [K_a; E]^{-1} \quad (24)"),
    ("T", "T: all joint rates from the actuated ones", "qd_r = T qd_a,  T = K J_R  (27)",
     r"\dot{q}_r = T \dot{q}_a, \quad T = K J_R \quad (27)"),
    ("L_V U_V Z_V V S", "How the motors share the load",
     "D = S D_a,  C = S C_a,  G = S G_a,  S = W A V,  V = (A^T W A)^-1,  "
     "A: the motors' rows of T,  W = diag(w^2),  w: torques of equal weight",
     r"D = S D_a, \quad C = S C_a, \quad G = S G_a, \quad S = W A V, \quad V = (A^T W A)^{-1}"),
    ("rates", "Rates of the passive joints and of the platform", "", ""),
    ("D_x", "Platform: inertia", "kinetic energy v^T D_x v / 2  (32)",
     r"\mathcal{K} = \tfrac12 v^T D_x v \quad (32)"),
    ("C_x", "Platform: Coriolis", "C_x v; zero in a plane where P is the centre of mass",
     r"C_x v: \text{ zero in a plane where } P \text{ is the centre of mass}"),
    ("G_x", "Platform: gravity", "D_x vd + C_x v + G_x - Q_x = 0",
     r"D_x \dot{v} + C_x v + G_x - Q_x = 0"),
    ("legs", "Legs: intermediates", "", ""),
    ("D_q", "Legs: inertia", "kinetic energy qd_r^T D_q qd_r / 2  (38)",
     r"\mathcal{K} = \tfrac12 \dot{q}_r^T D_q \dot{q}_r \quad (38)"),
    ("C_q", "Legs: Coriolis", "Christoffel's, of D_q",
     r"C_q: \text{ from Christoffel symbols of } D_q"),
    ("G_q", "Legs: gravity", "G_q: the slope of the potential energy",
     r"G_q = \partial\mathcal{P}/\partial q_r"),
    ("D_m", "Rotors: inertia", "", ""),
    ("C_m", "Rotors: Coriolis", "", ""),
    ("dJ_x dJ_q", "Rates of the Jacobians", "", ""),
    ("H dK", "Rate of K", "dK/dt = -J_q^-1 H,  H = dJ_x/dt + dJ_q/dt K",
     r"\dot{K} = -J_q^{-1} H, \quad H = \dot{J}_x + \dot{J}_q K"),
    ("dE", "Rate of E", "dE/dt = H + J_q dK/dt in the other rows", r"\dot{E} = H + J_q \dot{K}"),
    ("Y dJ_R", "Rate of J_R", "dJ_R/dt = -[J_R J_E] Y,  Y = [dK_a/dt; dE/dt] J_R  (28)",
     r"\dot{J}_R = -[J_R \; J_E] Y, \quad Y = [\dot{K}_a; \dot{E}] J_R \quad (28)"),
    ("dT", "Rate of T", "dT/dt = dK/dt J_R + K dJ_R/dt  (31)",
     r"\dot{T} = \dot{K} J_R + K \dot{J}_R \quad (31)"),
    ("F_q", "Legs: friction", "F_q(q_r, qd_r)", r"F_q(q_r, \dot{q}_r)"),
    ("M_q M_m M_x D_links D_rotors D_a D", "Inertia matrix D",
     "D = T^T M_q + J_R^T M_x,  M_q = D_q T,  M_x = D_x J_R  (40)",
     r"D = T^T M_q + J_R^T M_x, \quad M_q = D_q T, \quad M_x = D_x J_R \quad (40)"),
    ("N_q N_m N_x C_links C_rotors C_a C", "Coriolis matrix C",
     "C = T^T N_q + J_R^T N_x,  N_q = C_q T + D_q dT/dt,  N_x = D_x dJ_R/dt + C_x J_R  (40)",
     r"C = T^T N_q + J_R^T N_x, \quad N_q = C_q T + D_q \dot{T}, \quad "
     r"N_x = D_x \dot{J}_R + C_x J_R \quad (40)"),
    ("G_a G", "Gravity G", "G = T^T G_q + J_R^T G_x", r"G = T^T G_q + J_R^T G_x"),
)  # fmt: skip
"""(names of matrices, title, formula as text and in LaTeX)"""

OF_MOTORS = {
    "Closures": ("Gamma(q_r) = 0", r"\Gamma(q_r) = 0"),
    "Jacobian with respect to q_r": (
        "J_q = dGamma/dq_r", r"J_q = \partial\Gamma/\partial q_r"
    ),
    "T: all joint rates from the actuated ones": (
        "qd_r = T qd_a,  J_q T = 0  (27)", r"\dot{q}_r = T \dot{q}_a, \quad J_q T = 0 \quad (27)"
    ),
    "Rate of K": ("", ""),
    "Rate of T": ("J_q dT/dt = -H,  H = dJ_q/dt T", r"J_q \dot{T} = -H, \quad H = \dot{J}_q T"),
    "Inertia matrix D": ("D = T^T M_q,  M_q = D_q T", r"D = T^T M_q, \quad M_q = D_q T"),
    "Coriolis matrix C": (
        "C = T^T N_q,  N_q = C_q T + D_q dT/dt",
        r"C = T^T N_q, \quad N_q = C_q T + D_q \dot{T}",
    ),
    "Gravity G": ("G = T^T G_q", r"G = T^T G_q"),
}  # fmt: skip
"""The formulas without a free platform, by title"""
WITHOUT_E = {
    "[J_R J_E] = [K_a; E]^-1": "J_R = K_a^-1",
    "-[J_R J_E] Y": "-J_R Y",
    "[dK_a/dt; dE/dt] J_R": "dK_a/dt J_R",
    r"[J_R \; J_E] = [K_a; E]^{-1}": "J_R = K_a^{-1}",
    r"-[J_R \; J_E] Y": "-J_R Y",
    r"[\dot{K}_a; \dot{E}] J_R": r"\dot{K}_a J_R",
}
"""What replaces parts of formulas if there is no E"""

TORQUES = (
    "tau = D qdd_a + C qd_a + G + T^T F_q",
    r"\tau = D \ddot{q}_a + C \dot{q}_a + G + T^T F_q",
)
SENSED = (
    "D = T^T (D_q + J_C^T D_x J_C),  C = T^T (C_q + J_C^T (D_x dJ_C/dt + C_x J_C)),  "
    "G = T^T (G_q + J_C^T G_x),  F_ext = T^T J_C^T Q_x,  "
    "J_C = -(J_x^T J_x)^-1 J_x^T J_q,  T_q = 1  (39)",
    r"D = T^T (D_q + J_C^T D_x J_C), \quad C = T^T (C_q + J_C^T (D_x \dot{J}_C + C_x J_C)), \quad "
    r"G = T^T (G_q + J_C^T G_x), \quad F_{ext} = T^T J_C^T Q_x, \quad "
    r"J_C = -(J_x^T J_x)^{-1} J_x^T J_q, \quad T_q = 1 \quad (39)",
)
FROM_SENSED = (
    "qd_r = T_q [qd_a; qd_s],  T_q = [1, 0; 0, 1; T_p, 0],  T_p: the rows of q_p in T  (9)",
    r"\dot{q}_r = T_q \begin{bmatrix} \dot{q}_a \\ \dot{q}_s \end{bmatrix}, \quad "
    r"T_q = \begin{bmatrix} 1 & 0 \\ 0 & 1 \\ T_p & 0 \end{bmatrix}, \quad "
    r"T_p: \text{ the rows of } q_p \text{ in } T \quad (9)",
)

WRITTEN = {
    *("frames", "R", "Gamma", "J_x", "J_q", "K", "legs", "D_x", "C_x", "G_x"),
    *("D_q", "C_q", "G_q", "D_m", "C_m", "F_q"),
}
"""The matrices whose entries are always shown; those of the others are products of their entries"""


def document(model: Any, *, steps: bool) -> Document:
    """The matrices of the loops, the platform and the legs, and the equations that combine them.

    Args:
        model: a `ClosedSymbolicModel`.
        steps: also show each entry of the products, in terms of entries of their factors.
    """
    derived = (*model.qd, *model.xd, *model.qdd)
    names = Names(model.q, derived, model.parameters, model.entries)
    written = WRITTEN if model.x else {*WRITTEN, "T"}
    sections = [Section("Coordinates", words=_coordinates(model)), Section("Names", words=NAMES)]
    for keys, title, *formula in SECTIONS:
        every = {**model.others, **model.matrices}
        # there may be several L_q, one for each leg
        present = [key for key in every if key.rstrip("123456789") in keys.split(" ")]
        if not model.x:
            formula = [*OF_MOTORS.get(title, formula)]
        for part, other in WITHOUT_E.items() if "E" not in model.matrices else ():
            formula = [each.replace(part, other) for each in formula]
        equations: list[Equation] = []
        for key in present:
            if steps or key in written:
                letters = model.others.get(key, ())
                equations += (_letter(names, *each) for each in letters)
                equations += entries(key, model.matrices[key]) if key in model.matrices else ()
        if present and (formula[0] or equations):
            shown = Formula(*formula) if formula[0] else None
            sections.append(Section(title, shown, equations, zeros=True))
    if len(model.x) == 3:
        title = "Rates from sensed coordinates" if model.q_p else "Model of sensed coordinates"
        sections.append(Section(title, Formula(*(FROM_SENSED if model.q_p else SENSED))))
    torques = [
        Equation(Formula(f"tau[{name}]", rf"\tau_{{{i}}}"), value)
        for i, (name, value) in enumerate(zip(model.actuated_names, model.torques, strict=True), 1)
    ]
    law = Formula(*(x.replace("T^T", "S T^T") if model.S else x for x in TORQUES))
    sections.append(Section("Torques", law, torques if steps else (), zeros=True))
    return Document(model.title, sections, names, model.parameters, model.notes)


def _letter(names: Names, symbol: sympy.Symbol, value: sympy.Expr) -> Equation:
    return Equation(Formula(names.text(symbol), names.latex(symbol)), value)


NAMES = (
    "X[i][j] is an entry of the matrix X, X_i_j in Python. NAME_d is a joint's rate. A number with "
    "a decimal point is rounded to double precision; all others are exact"
)


def _coordinates(model: Any) -> str:
    words = f"q_r = ({', '.join(map(str, model.q))})"
    if model.x:
        words += f", x = ({', '.join(map(str, model.x))}) of the platform's P"
        words += f", v = ({', '.join(map(str, model.xd))})"
    if model.S is not None:
        words += f", torques of ({', '.join(model.actuated_names)})"
    return words
