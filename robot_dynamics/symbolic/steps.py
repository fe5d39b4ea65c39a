# SPDX-License-Identifier: Apache-2.0
"""The steps of Lagrange–Euler in order, each with its definition, formula and value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from ..formulations.lagrange_euler import Steps
from ..mechanism import Mechanism
from ..scalar import Array, array
from .document import Equation, Formula, Section, step
from .symbolic_parameters import Parameters, dh_row


def dh_table(mechanism: Mechanism, q: Sequence[sympy.Symbol], known: Parameters) -> Section:
    """The frames, as a DH table where the joints have DH parameters.

    Args:
        mechanism: the robot.
        q: the coordinates' symbols.
        known: the parameters' symbols or exact numbers.
    """
    rows, conventions = [["link", "joint", "theta", "d", "a", "alpha"]], set()
    variables = iter(q)
    for i, link in enumerate(mechanism.links, 1):
        joint = link.joint
        found = dh_row(joint)
        variable = next(variables) if joint.moves and joint.coupling is None else None
        if found is None:
            conventions.add("other")
            rows.append([link.name, joint.name, *("as described",) * 4])
            continue
        convention, row = found
        if not joint.tail.is_identity:
            conventions.add(convention)
        elif convention == "modified" or (row["a"], row["alpha"]) != (0.0, 0.0):
            conventions.add("modified")
        values = {
            key: _angle(value) if key in ("theta", "alpha") else known(f"{key}{i}", value, place)
            for key, value in row.items()
            for place in (f"{link.name}.{key}",)
        }
        if variable is not None:
            moved = "theta" if joint.turns else "d"
            values[moved] = variable + values[moved]
        rows.append([link.name, joint.name, *(str(values[key]) for key in rows[0][2:])])
    named = ", ".join(sorted(conventions - {"other"})) or "standard"
    words = f"Denavit–Hartenberg frames, {named} convention"
    if "other" in conventions:
        words = "Frames as described"
    return Section("Reference frames", words=words, table=rows)


def _angle(value: float) -> sympy.Expr:
    turns = value / np.pi * 12
    if abs(turns - round(turns)) < 1e-9:
        return sympy.Rational(round(turns), 12) * sympy.pi
    return sympy.Float(value, 10)


def lagrange_euler(
    steps: Steps,
    local: Sequence[tuple[int, Array]],
    qd: Sequence[sympy.Symbol],
    torques: sympy.Matrix,
    frames: Section,
) -> Iterator[Section]:
    """Steps L-E 1 to L-E 10 of the book; links and joints are counted from 1.

    Args:
        steps: the results of the steps, as SymPy expressions.
        local: (j, ʲA_i) of each link i: the index of its parent (-1: the base), and the pose (4, 4)
            of its frame in the parent's.
        qd: the rates' symbols.
        torques: (n, 1), the torques.
        frames: the section of the frames, which is L-E 1.
    """
    n = len(steps.names)
    count = range(n)
    yield replace(frames, title="L-E 1: reference frames")
    yield Section(
        "L-E 2: transformations",
        Formula("0A_i = 0A_1 1A_2 ... (i-1)A_i", r"{}^0A_i = {}^0A_1\,{}^1A_2 \cdots {}^{i-1}A_i"),
        [
            *(
                _entry(f"{p + 1}A_{i + 1}", rf"{{}}^{{{p + 1}}}A_{{{i + 1}}}", matrix)
                for i, (p, matrix) in enumerate(local)
                if p >= 0
            ),
            *(_entry(f"0A_{i + 1}", rf"{{}}^0A_{{{i + 1}}}", steps.A[i]) for i in count),
        ],
        words=f"links, named by their joints: {', '.join(steps.names)}",
    )
    yield Section(
        "Note 1: derivative operators",
        Formula("d(j-1)A_j/dq_j = Q_j (j-1)A_j",
                r"\frac{\partial\,{}^{j-1}A_j}{\partial q_j} = Q_j\,{}^{j-1}A_j"),
        [*_entries("Q", steps.Q, 1)],
    )  # fmt: skip
    yield step(
        "L-E 3: U_ij",
        "U_ij = d0A_i/dq_j = 0A_(j-1) Q_j (j-1)A_i, 0 where joint j does not carry link i",
        r"U_{ij} = \frac{\partial\,{}^0A_i}{\partial q_j} = "
        r"{}^0A_{j-1} Q_j\,{}^{j-1}A_i",
        _entries("U", steps.U, 2),
    )
    yield step(
        "L-E 4: U_ijk",
        "U_ijk = dU_ij/dq_k = 0A_(j-1) Q_j (j-1)A_(k-1) Q_k (k-1)A_i for k >= j",
        r"U_{ijk} = \frac{\partial U_{ij}}{\partial q_k} = "
        r"{}^0A_{j-1} Q_j\,{}^{j-1}A_{k-1} Q_k\,{}^{k-1}A_i \quad (k \ge j)",
        _entries("U", steps.dU, 3),
    )
    yield step(
        "L-E 5: pseudo-inertias",
        "J_i = integral of r r^T dm, r = (x, y, z, 1) in the link's frame",
        r"J_i = \int r\, r^T \mathrm{d}m, \quad r = (x, y, z, 1)^T",
        _entries("J", steps.J, 1),
    )
    yield step(
        "L-E 6: inertia matrix",
        "d_ij = sum over k >= max(i, j) of Tr(U_kj J_k U_ki^T)",
        r"d_{ij} = \sum_{k=\max(i,j)}^{n} \mathrm{Tr}(U_{kj} J_k U_{ki}^T)",
        _entries("d", steps.D, 2),
    )
    yield step(
        "L-E 7: h_ikm",
        "h_ikm = sum over j >= max(i, k, m) of Tr(U_jkm J_j U_ji^T)",
        r"h_{ikm} = \sum_{j=\max(i,k,m)}^{n} \mathrm{Tr}(U_{jkm} J_j U_{ji}^T)",
        _entries("h", steps.h, 3),
    )
    rates = array(qd)
    if len(rates) == n:
        yield step(
            "L-E 8: Coriolis and centripetal torques H",
            "h_i = sum over k, m of h_ikm qd_k qd_m: H = C qd",
            r"h_i = \sum_k \sum_m h_{ikm} \dot{q}_k \dot{q}_m, \quad H = C \dot{q}",
            _entries("H", array([_collected(h, rates) for h in steps.h]), 1),
        )
    yield step(
        "L-E 9: gravity torques g (the book's C)",
        "g_i = sum over j of -m_j g0 U_ji r_j",
        r"g_i = \sum_j -m_j\, \mathbf{g}_0\, U_{ji}\, {}^j r_j",
        _entries("g", steps.C, 1),
    )
    yield step(
        "L-E 10: the equation of motion",
        "tau = D qdd + H + g",
        r"\tau = D \ddot{q} + H + g",
        _entries("tau", array(list(torques)), 1),
    )


def _collected(h: Array, rates: Array) -> sympy.Expr:
    """Σ h_km q̇_k q̇_m, with equal products of rates combined."""
    n = len(rates)
    return sympy.Add(
        *(h[k, k] * rates[k] ** 2 for k in range(n)),
        *(2 * h[k, m] * rates[k] * rates[m] for k in range(n) for m in range(k)),
    )


def _entry(text: str, tex: str, value: Any) -> Equation:
    return Equation(Formula(text, tex), sympy.Matrix(value))


def _indexed(letter: str, places: Sequence[int], value: Any) -> Equation:
    """The equation of a matrix or expression with indices, such as U_12; `places` count from 0."""
    parts = [str(place + 1) for place in places]
    below = "".join(parts) if all(len(x) == 1 for x in parts) else ",".join(parts)
    tex = rf"\{letter}" if letter == "tau" else letter
    name = Formula(f"{letter}_{below}", f"{tex}_{{{below}}}")
    return Equation(name, sympy.Matrix(value) if np.ndim(value) == 2 else sympy.sympify(value))


def _entries(letter: str, values: Array, indices: int) -> Iterator[Equation]:
    """One equation for each scalar or matrix in `values`, which has this number of indices."""
    for place in np.ndindex(values.shape[:indices]):
        yield _indexed(letter, place, values[place])
