# SPDX-License-Identifier: Apache-2.0
"""The symbolic models of mechanisms with loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import sympy

from ..errors import ClosureError
from . import closed_show
from .document import Document, Documented
from .simplify import simplified
from .symbolic_parameters import Symbols


@dataclass(frozen=True, eq=False)
class PaperModel(Documented):
    """The equations of a planar closed mechanism as in section 4 of [ZCPOM].

    Numbers in parentheses are its equations. The platform's velocity is v = ẋ, with 3 components
    instead of the 6 of the general case.
    """

    title: str
    q_a: Symbols
    q_s: Symbols
    q_p: Symbols
    """Passive joints of the legs without a sensor"""
    x: Symbols
    """x, y, theta_z of P, the origin of the platform link's frame"""
    qd: Symbols
    """Rates of q_r = [q_a; q_s; q_p]"""
    xd: Symbols
    closure: sympy.Matrix
    """Γ(x, q_r) (19): two rows for each hinge of the platform"""
    J_x: sympy.Matrix
    """∂Γ/∂x (25)"""
    J_q: sympy.Matrix
    """∂Γ/∂q_r (25)"""
    D_x: sympy.Matrix
    """(3, 3): the platform's inertia matrix (32)"""
    C_x: sympy.Matrix
    """(3, 3): the platform's Coriolis matrix; zero if P is its centre of mass"""
    G_x: sympy.Matrix
    """(3, 1): the platform's gravity"""
    D_q: sympy.Matrix
    """(n_r, n_r): the legs' inertia matrix (38)"""
    C_q: sympy.Matrix
    """(n_r, n_r): the legs' Coriolis matrix"""
    G_q: sympy.Matrix
    """(n_r, 1): the legs' gravity torques"""
    friction: sympy.Matrix
    """(n_r, 1): the friction torques at the legs' joints"""
    K: sympy.Matrix
    """(n_r, 3): K = -J_q⁻¹ J_x, with q̇_r = K ẋ"""
    parameters: Mapping[sympy.Symbol, float] = field(default_factory=dict)
    """The value that the description gives for each parameter's symbol"""
    notes: tuple[str, ...] = ()
    """What was rounded in the description"""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The names of q_r = [q_a; q_s; q_p]."""
        return tuple(str(symbol) for symbol in (*self.q_a, *self.q_s, *self.q_p))

    @property
    def actuated_names(self) -> tuple[str, ...]:
        """The order of the torques."""
        return tuple(map(str, self.q_a))

    @cached_property
    def J_R(self) -> sympy.Matrix:
        """(3, n_a): ẋ = J_R q̇_a (24)."""
        K_a = self.K[: len(self.q_a), :]
        return K_a.adjugate() / K_a.det(method="berkowitz")

    @cached_property
    def T(self) -> sympy.Matrix:
        """(n_r, n_a): q̇_r = T q̇_a (27)."""
        rest = self.K[len(self.q_a) :, :] * self.J_R
        return sympy.eye(len(self.q_a)).col_join(rest)

    @cached_property
    def J_C(self) -> sympy.Matrix:
        """(3, n_r): ẋ = J_C q̇_r (25), by least squares, as Γ has more rows than x."""
        normal = (self.J_x.T * self.J_x).applyfunc(simplified)
        return -(normal.adjugate() / normal.det(method="berkowitz")) * self.J_x.T * self.J_q

    def rate(self, values: sympy.Matrix) -> sympy.Matrix:
        """The total derivative with respect to time, in terms of qd and xd.

        Args:
            values: a matrix of expressions in q_r and x.
        """
        moving = zip((*self.q_a, *self.q_s, *self.q_p, *self.x), (*self.qd, *self.xd), strict=True)
        result = sympy.zeros(*values.shape)
        for symbol, speed in moving:
            result += values.diff(symbol) * speed
        return result

    @cached_property
    def J_R_rate(self) -> sympy.Matrix:
        """(3, n_a): dJ_R/dt (28), from K_a J_R = 1."""
        return -self.J_R * self.rate(self.K[: len(self.q_a), :]) * self.J_R

    @cached_property
    def T_rate(self) -> sympy.Matrix:
        """(n_r, n_a): dT/dt (31), from T = K J_R."""
        return self.rate(self.K) * self.J_R + self.K * self.J_R_rate

    @cached_property
    def J_C_rate(self) -> sympy.Matrix:
        """(3, n_r): dJ_C/dt (29)."""
        return self.rate(self.J_C)

    def sensed(self) -> dict[str, sympy.Matrix]:
        """D, C, G and F_ext of (39), in q_r, for legs whose passive joints all have a sensor.

        F_ext is the factor of Q_x.

        Raises:
            ClosureError: a passive joint of the legs has no sensor.
        """
        if self.q_p:
            raise ClosureError(
                f"sensed: {', '.join(map(str, self.q_p))} carry no sensor; (39) needs them all",
                name="sensed",
                value=[str(symbol) for symbol in self.q_p],
            )
        T, J = self.T, self.J_C
        return {
            "D": T.T * (self.D_q + J.T * self.D_x * J),
            "C": T.T * (self.C_q + J.T * (self.D_x * self.J_C_rate + self.C_x * J)),
            "G": T.T * (self.G_q + J.T * self.G_x),
            "F_ext": T.T * J.T,
        }

    def active(self) -> dict[str, sympy.Matrix]:
        """D, C, G and F_ext of (40), in q_a alone; F_ext is the factor of Q_x."""
        T, J = self.T, self.J_R
        # J_C T = J_R
        return {
            "D": T.T * self.D_q * T + J.T * self.D_x * J,
            "C": T.T * (self.C_q * T + self.D_q * self.T_rate)
            + J.T * (self.D_x * self.J_R_rate + self.C_x * J),
            "G": T.T * self.G_q + J.T * self.G_x,
            "F_ext": J.T,
        }

    @property
    def torques(self) -> list[sympy.MatrixExpr]:
        """τ by (40), as one matrix equation for all motors in the names of the matrices."""
        a, n = len(self.q_a), len(self.joint_names)
        shapes = {
            "D_q": (n, n),
            "C_q": (n, n),
            "G_q": (n, 1),
            "D_x": (3, 3),
            "C_x": (3, 3),
            "G_x": (3, 1),
            "Q_x": (3, 1),
            "T": (n, a),
            "dT": (n, a),
            "J_R": (3, a),
            "dJ_R": (3, a),
            "J_C": (3, n),
            "qd_a": (a, 1),
            "qdd_a": (a, 1),
        }
        s = {name: sympy.MatrixSymbol(name, *shape) for name, shape in shapes.items()}
        legs = s["D_q"] * (s["T"] * s["qdd_a"] + s["dT"] * s["qd_a"])
        legs += s["C_q"] * s["T"] * s["qd_a"] + s["G_q"]
        on_platform = s["D_x"] * (s["J_R"] * s["qdd_a"] + s["dJ_R"] * s["qd_a"])
        on_platform += s["C_x"] * s["J_R"] * s["qd_a"] + s["G_x"] - s["Q_x"]
        return [s["T"].T * (legs + s["J_C"].T * on_platform)]

    @property
    def intermediates(self) -> tuple[tuple[sympy.Symbol, sympy.Expr], ...]:
        """Empty: the matrices are complete expressions."""
        return ()

    def document(self, *, steps: bool = False) -> Document:
        """The matrices in closed form and the equations of the model.

        Args:
            steps: also show each matrix's definition, and J_R, T and T_q in terms of K.
        """
        return closed_show.paper(self, steps=steps)


@dataclass(frozen=True, eq=False)
class ListedModel(Documented):
    """The equations of any mechanism with loops, written in terms of intermediates.

    τ = D q̈ + C q̇ + g + friction, valid at configurations in which the loops are closed.
    """

    title: str
    joint_names: tuple[str, ...]
    """The control coordinates q: the actuated joints or, with redundant motors, the driving ones"""
    coordinate_names: tuple[str, ...]
    """The names of q_r"""
    q: Symbols
    """q_r, a closed configuration"""
    qd: Symbols
    qdd: Symbols
    intermediates: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
    closure: sympy.Matrix
    """The independent rows of φ(q_r), which is zero if the loops are closed"""
    J: sympy.Matrix
    """∂φ/∂q_r"""
    T: sympy.Matrix
    D: sympy.Matrix
    C: sympy.Matrix
    g: sympy.Matrix
    torques: sympy.Matrix
    actuated_names: tuple[str, ...]
    """The order of the torques"""
    S: sympy.Matrix | None = None
    """(n_m, n_a), with redundant motors: the motor torques of least norm are S times those that
    the driving motors alone would need"""
    parameters: Mapping[sympy.Symbol, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def rates(self) -> tuple[sympy.Symbol, ...]:
        """The rates of q_r: those that are intermediates."""
        names = {f"{symbol}_d" for symbol in self.q}
        return tuple(symbol for symbol, _ in self.intermediates if str(symbol) in names)

    def document(self, *, steps: bool = False) -> Document:
        """The intermediates, then the matrices.

        Args:
            steps: also show each matrix's definition.
        """
        return closed_show.listed(self, steps=steps)
