# SPDX-License-Identifier: Apache-2.0
"""The recursions step by step: the results of each sweep, in terms of named earlier results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from ..scalar import Array, array
from .document import Equation, Formula, Section, step
from .names import entry_names
from .polynomial import Polynomial, Ring
from .polynomial_model import PolynomialModel
from .simplify import matrix

WRITTEN_OUT = 2
"""Largest number of terms of an entry that is inserted in later results; a longer one is used by
name"""

MOTIONS = (
    "omega_i = R_i^T omega_p + z qd_i;  "
    "alpha_i = R_i^T alpha_p + z qdd_i + R_i^T omega_p x z qd_i;  "
    "a_i = R_i^T (a_p + alpha_p x p_i + omega_p x (omega_p x p_i)), a_0 = -g0;  "
    "sliding: omega_i = R_i^T omega_p, alpha_i = R_i^T alpha_p, "
    "a_i += z qdd_i + 2 omega_i x z qd_i"
)
TEX_MOTIONS = (
    r"@\omega_i = R_i^T @\omega_p + @z \dot{q}_i, \quad "
    r"@\alpha_i = R_i^T @\alpha_p + @z \ddot{q}_i + R_i^T @\omega_p \times @z \dot{q}_i, \quad "
    r"@a_i = R_i^T (@a_p + @\alpha_p \times @p_i + @\omega_p \times (@\omega_p \times @p_i)), "
    r"\; @a_0 = -@g_0, \quad "
    r"\text{sliding: } @\omega_i = R_i^T @\omega_p,\; @\alpha_i = R_i^T @\alpha_p,\; "
    r"@a_i \mathrel{+}= @z \ddot{q}_i + 2 @\omega_i \times @z \dot{q}_i"
)
"""Motions of the links, in their own frames"""
LINKS = (
    "Frame i moves with link i, and its z is the axis of joint i; link p carries link i, and link "
    "i the links j. R_i, p_i: rotation and origin of frame i in frame p; a_i: acceleration of "
    "that origin, less gravity; m_i, c_i: mass and centre of mass; I_i: inertia about "
)
ROTORS = "; a rotor r stands on link k, with the gear ratio Gamma_i"
WORDS = {
    "newton_euler": LINKS + "the origin; a_x2: the x of a_2",
    "gibbs_appell": LINKS + "the centre of mass; a_x2: the x of a_2",
    "murphy": (
        "Link p carries link i, and link i the links j. R_i: rotation of link i; z_i: axis of "
        "joint i; r_i: from the origin of frame p to that of frame i, at joint i; "
        "a_i: acceleration of that origin, and a_G of the centre of mass, which is at c_i from it; "
        "m_i: mass; I_i: inertia about the centre of mass; a_x2: the x of a_2"
    ),
}
"""The symbols of each recursion's formulas"""
TORQUES = {
    "newton_euler": ("z", "", ""),
    "gibbs_appell": ("z", "Gamma_i z . mu_r", r"\Gamma_i @z \cdot @\mu^r"),
    "murphy": ("z_i", "Gamma_i z_r . N_r", r"\Gamma_i @z_r \cdot @N^r"),
}
"""The axis of a joint, and the torque of its rotor, as text and in LaTeX"""
SWEEPS = {
    "newton_euler": (
        ("Outward: motions, in link frames", ("omega", "alpha", "a"),
         MOTIONS, TEX_MOTIONS),
        ("Each link: force and moment about its frame's origin", ("U", "F", "N"),
         "U_i = [alpha_i]x + [omega_i]x^2;  F_i = m_i a_i + U_i m_i c_i;  "
         "N_i = I_i alpha_i + omega_i x I_i omega_i + m_i c_i x a_i",
         r"U_i = [@\alpha_i]_\times + [@\omega_i]_\times^2, \quad "
         r"@F_i = m_i @a_i + U_i m_i @c_i, \quad "
         r"@N_i = I_i @\alpha_i + @\omega_i \times I_i @\omega_i + m_i @c_i \times @a_i"),
        ("Inward: forces and moments through the joints", ("f", "n"),
         "f_i = F_i + sum R_j f_j;  n_i = N_i + sum (R_j n_j + p_j x R_j f_j)",
         r"@f_i = @F_i + \sum_j R_j @f_j, \quad "
         r"@n_i = @N_i + \sum_j (R_j @n_j + @p_j \times R_j @f_j)"),
    ),
    "gibbs_appell": (
        ("Steps 1 and 2: motions of the links, in link frames", ("omega", "alpha", "a"),
         MOTIONS, TEX_MOTIONS),
        ("Step 2: motions of the rotors", ("omega_r", "alpha_r", "a_r"),
         "omega_r = R_r^T omega_k + Gamma_i qd_i z;  "
         "alpha_r = R_r^T alpha_k + Gamma_i qdd_i z + R_r^T omega_k x Gamma_i qd_i z",
         r"@\omega_r = R_r^T @\omega_k + \Gamma_i \dot{q}_i @z, \quad "
         r"@\alpha_r = R_r^T @\alpha_k + \Gamma_i \ddot{q}_i @z "
         r"+ R_r^T @\omega_k \times \Gamma_i \dot{q}_i @z"),
        ("Step 3: factors of the partial derivatives", ("eta", "mu", "eta_r", "mu_r"),
         "eta = m a_G, a_G at the centre of mass;  mu = I alpha + omega x I omega + c x eta",
         r"@\eta = m @a_G,\; @a_G \text{ at the centre of mass}, \quad "
         r"@\mu = I @\alpha + @\omega \times I @\omega + @c \times @\eta"),
        ("Steps 4 and 5: sums over what each joint carries, of links and of rotors", ("f", "n"),
         "f_i = eta_i + sum R_j f_j;  n_i = mu_i + sum (R_j n_j + p_j x R_j f_j)",
         r"@f_i = @\eta_i + \sum_j R_j @f_j, \quad "
         r"@n_i = @\mu_i + \sum_j (R_j @n_j + @p_j \times R_j @f_j)"),
    ),
    "murphy": (
        ("Outward: motions of the links, on base axes", ("R", "omega", "alpha", "a"),
         "z_i = R_i z;  omega_i = omega_p + z_i qd_i;  "
         "alpha_i = alpha_p + z_i qdd_i + omega_p x z_i qd_i;  "
         "a_i = a_p + alpha_p x r_i + omega_p x (omega_p x r_i);  sliding: omega_i = omega_p, "
         "alpha_i = alpha_p, a_i += z_i qdd_i + 2 omega_i x z_i qd_i",
         r"@z_i = R_i @z, \quad @\omega_i = @\omega_p + @z_i \dot{q}_i, \quad "
         r"@\alpha_i = @\alpha_p + @z_i \ddot{q}_i + "
         r"@\omega_p \times @z_i \dot{q}_i, \quad "
         r"@a_i = @a_p + @\alpha_p \times @r_i + @\omega_p \times (@\omega_p \times @r_i), \quad "
         r"\text{sliding: } @\omega_i = @\omega_p,\; @\alpha_i = @\alpha_p,\; "
         r"@a_i \mathrel{+}= @z_i \ddot{q}_i + 2 @\omega_i \times @z_i \dot{q}_i"),
        ("Links: rates of momentum", ("F", "N"),
         "F_i = m_i (a_G - g);  N_i = I_i alpha_i + omega_i x I_i omega_i + c_i x F_i",
         r"@F_i = m_i (@a_G - @g), \quad "
         r"@N_i = I_i @\alpha_i + @\omega_i \times I_i @\omega_i + @c_i \times @F_i"),
        ("Rotors: motions and wrenches on their mounts",
         ("omega_r", "alpha_r", "a_r", "F_r", "N_r"),
         "omega_r = omega_k + Gamma_i qd_i z_r;  "
         "alpha_r = alpha_k + Gamma_i qdd_i z_r + omega_k x Gamma_i qd_i z_r",
         r"@\omega_r = @\omega_k + \Gamma_i \dot{q}_i @z_r, \quad @\alpha_r = @\alpha_k + "
         r"\Gamma_i \ddot{q}_i @z_r + @\omega_k \times \Gamma_i \dot{q}_i @z_r"),
        ("Inward: wrenches through the joints", ("f", "n"),
         "f_i = F_i + sum f_j;  n_i = N_i + sum (n_j + r_j x f_j), rotors' with their mounts'",
         r"@f_i = @F_i + \sum_j @f_j, \quad @n_i = @N_i + \sum_j (@n_j + @r_j \times @f_j)"),
    ),
}  # fmt: skip

TEX = {
    "omega": r"@\omega", "alpha": r"@\alpha", "a": "@a", "eta": r"@\eta", "mu": r"@\mu",
    "F": "@F", "N": "@N", "f": "@f", "n": "@n",
    "omega_r": r"@\omega^r", "alpha_r": r"@\alpha^r", "a_r": "@a^r", "eta_r": r"@\eta^r",
    "mu_r": r"@\mu^r", "F_r": "@F^r", "N_r": "@N^r",
}  # fmt: skip
"""The vectors in LaTeX, as in the formulas: @a is bold, unlike the length a"""


class Notes:
    """A `scalar.Note` over polynomials that keeps all values, and replaces long ones by letters."""

    def __init__(self, ring: Ring):
        self.ring = ring
        self.seen: list[tuple[str, int, Array]] = []

    def __call__(self, quantity: str, body: int, value: Array) -> Array:
        """Keep a value, and return it with letters in place of long entries."""
        entries = np.asarray(value, dtype=object)
        self.seen.append((quantity, body, entries))
        names = entry_names(quantity, body, entries.shape)
        kept = [
            self.ring.letter("parameter", self.symbol(name, x))
            if isinstance(x, Polynomial) and len(x.terms) > WRITTEN_OUT
            else x
            for name, x in zip(names, entries.flat, strict=True)
        ]
        return array(kept).reshape(entries.shape)

    def symbol(self, name: str, value: Polynomial) -> sympy.Symbol:  # noqa: ARG002
        """The symbol for a long entry of this name."""
        return sympy.Symbol(name, real=True)


def sweeps(
    model: PolynomialModel,
    formulation: str,
    names: Sequence[str],
    write: Callable[[Any], sympy.Expr],
) -> list[Section]:
    """The sections of each sweep, then of the torques in terms of the sweeps' results.

    Args:
        model: the robot.
        formulation: newton_euler, gibbs_appell or murphy.
        names: the joints' names.
        write: converts a polynomial to a SymPy expression.
    """
    sections: list[Section] = []
    several = len(model.equations) > 1
    for k, equations in enumerate(model.equations, 1):
        notes = Notes(model.ring)
        torques = equations.torques(model.q, model.qd, model.qdd, notes)
        with_rotors = any(quantity.endswith("_r") for quantity, *_ in notes.seen)
        part = f" (bodies {k} of {len(model.equations)})" if several else ""
        for title, quantities, text, tex in SWEEPS[formulation]:
            shown = [
                Equation(_name(quantity, body, count), matrix(value, write))
                for quantity, body, value, count in _numbered(notes.seen)
                if quantity in quantities
            ]
            if shown:
                made = step(title + part, text, _bold(tex), shown)
                words = (WORDS[formulation] + ROTORS * with_rotors) if not sections else ""
                sections.append(replace(made, words=words))
        axis, *rotor = TORQUES[formulation]
        more, tex_more = (f" + {each}" * with_rotors for each in rotor)
        sections.append(
            step(
                "Torques of the sweeps" + part,
                f"tau_i = {axis} . n_i{more} (turning), {axis} . f_i{more} (sliding)",
                _bold(
                    rf"\tau_i = @{axis} \cdot @n_i{tex_more} \text{{ (turning)}}, \quad "
                    rf"\tau_i = @{axis} \cdot @f_i{tex_more} \text{{ (sliding)}}"
                ),
                (
                    Equation(Formula(f"tau[{name}]", rf"\tau_{{{i}}}"), write(torque))
                    for i, (name, torque) in enumerate(zip(names, torques, strict=True), 1)
                ),
            )
        )
    return sections


def _numbered(seen: list[tuple[str, int, Any]]) -> list[tuple[str, int, Any, int]]:
    """The values, each with the number of earlier values of the same quantity of the same body."""
    count: dict[tuple[str, int], int] = {}
    found = []
    for quantity, body, value in seen:
        found.append((quantity, body, value, count.get((quantity, body), 0)))
        count[quantity, body] = found[-1][3] + 1
    return found


def _name(quantity: str, body: int, count: int) -> Formula:
    dashes = "'" * count
    tex = _bold(TEX.get(quantity, quantity))
    return Formula(f"{quantity}_{body + 1}{dashes}", f"{tex}_{{{body + 1}}}{dashes}")


def _bold(tex: str) -> str:
    """The formula with its vectors in bold: @a becomes \\boldsymbol{a}."""
    return re.sub(r"@(\\?[A-Za-z]+)", r"\\boldsymbol{\1}", tex)
