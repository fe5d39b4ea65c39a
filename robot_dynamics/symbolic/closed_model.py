# SPDX-License-Identifier: Apache-2.0
"""The symbolic model of a robot with loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy

from ..errors import ClosureError
from ..scalar import Floats
from . import closed_show
from .closures import Legs
from .document import Document, Documented
from .listing import Assignments
from .simplify import simplified
from .symbolic_parameters import Symbols


def _matrix(name: str) -> Any:
    return property(lambda model: model._named(name))


@dataclass(frozen=True, eq=False)
class ClosedSymbolicModel(Documented):
    """The equations of a robot with loops as in section 4 of [ZCPOM], τ = D q̈ + C q̇ + G + Tᵀ F_q.

    Numbers in parentheses are its equations, valid if the loops are closed: Γ(x, q_r) = 0.
    If several loops end at the platform, it has coordinates x of its own, and the joints that carry
    it in the description are left out, if they do no work. Its velocity v is ẋ in a plane, and
    [ṗ; ω] in space. Matrices are written in terms of `intermediates`; of a platform in a plane,
    those that have no accelerations (K, J_R, T …) are complete expressions in q_r, x and rates.
    """

    title: str
    joint_names: tuple[str, ...]
    """The control coordinates q: the actuated joints or, with redundant motors, the driving ones"""
    legs: Legs = field(repr=False)
    q: Symbols
    """q_r = [q_a; q_s; q_p]: actuated, sensed and other passive joints"""
    x: Symbols
    """The platform's coordinates, of P, the origin of its link's frame: x, y, theta_z in a plane;
    x, y, z, theta_x, theta_y, theta_z in space, with R = Rz(θ_z) Ry(θ_y) Rx(θ_x); or none"""
    qd: Symbols
    """q̇_r; those of passive joints are intermediates"""
    xd: Symbols
    """v; intermediates"""
    qdd: Symbols
    """q̈_a"""
    matrices: Mapping[str, sympy.Matrix] = field(repr=False)
    """All matrices by name, in the order of their computation"""
    torques: sympy.Matrix
    intermediates: Assignments
    """(symbol, expression) pairs in the order of their computation; entries of matrices are named
    after them: T_4_1"""
    actuated_names: tuple[str, ...]
    """The order of the torques"""
    parameters: Mapping[sympy.Symbol, float] = field(default_factory=dict)
    """The value that the description gives for each parameter's symbol"""
    notes: tuple[str, ...] = ()
    """What was rounded in the description"""
    entries: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict, repr=False)
    """(matrix, indices from 1) of each symbol that is an entry of a matrix"""
    others: Mapping[str, Sequence[tuple[sympy.Symbol, sympy.Expr]]] = field(
        default_factory=dict, repr=False
    )
    """By section, the intermediates that are no entries"""

    closure = _matrix("Gamma")
    """Γ(x, q_r) (19): independent rows"""
    J_x = _matrix("J_x")
    """Γ̇ = J_x v + J_q q̇_r (25)"""
    J_q = _matrix("J_q")
    """(m, n_r): ∂Γ/∂q_r (25)"""
    D_x = _matrix("D_x")
    """(n_x, n_x): the platform's inertia matrix (32)"""
    C_x = _matrix("C_x")
    """(n_x, n_x): the platform's Coriolis matrix; zero in a plane if P is its centre of mass"""
    G_x = _matrix("G_x")
    """(n_x, 1): the platform's gravity"""
    D_q = _matrix("D_q")
    """(n_r, n_r): the legs' inertia matrix (38)"""
    C_q = _matrix("C_q")
    """(n_r, n_r): the legs' Coriolis matrix"""
    G_q = _matrix("G_q")
    """(n_r, 1): the legs' gravity torques"""
    friction = _matrix("F_q")
    """(n_r, 1): the friction torques at the legs' joints"""
    K = _matrix("K")
    """(n_r, n_x): K = -J_q⁻¹ J_x, with q̇_r = K v"""
    J_R = _matrix("J_R")
    """(n_x, n_a): v = J_R q̇_a (24)"""
    T = _matrix("T")
    """(n_r, n_a): q̇_r = T q̇_a (27)"""
    J_R_rate = _matrix("dJ_R")
    """(n_x, n_a): dJ_R/dt (28)"""
    T_rate = _matrix("dT")
    """(n_r, n_a): dT/dt (31)"""
    D = _matrix("D")
    """(n_m, n_a): the inertia matrix of all motors"""
    C = _matrix("C")
    """(n_m, n_a)"""
    g = _matrix("G")
    """(n_m, 1)"""

    def _named(self, name: str) -> sympy.Matrix:
        if name not in self.matrices:
            raise ClosureError(f"{name}: the robot has no free platform", name=name)
        values = self.matrices[name]
        return values if name in ("D", "C", "G") else values.xreplace(self._whole)

    @cached_property
    def _whole(self) -> dict[sympy.Symbol, sympy.Expr]:
        """The intermediates of a platform in a plane, except rates, as whole expressions."""
        known: dict[sympy.Symbol, sympy.Expr] = {}
        for symbol, value in self.intermediates if len(self.x) == 3 else ():
            if symbol not in (*self.qd, *self.xd):
                known[symbol] = value.xreplace(known)
        return known

    @property
    def S(self) -> sympy.Matrix | None:
        """(n_m, n_a), with redundant motors: the motor torques of least norm are S times those that
        the driving motors alone would need."""
        return self.matrices.get("S")

    @property
    def J(self) -> sympy.Matrix:
        """∂Γ/∂q_r, and J_x beside it."""
        return self.J_q.row_join(self.J_x) if self.x else self.J_q

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """The names of q_r."""
        return self.legs.names

    @property
    def q_a(self) -> Symbols:
        """The actuated joints."""
        return self.q[: len(self.qdd)]

    @property
    def q_s(self) -> Symbols:
        """The passive joints with a sensor."""
        a = len(self.qdd)
        return self.q[a : a + len(self.legs.mechanism.sensed)]

    @property
    def q_p(self) -> Symbols:
        """The passive joints without a sensor."""
        return self.q[len(self.qdd) + len(self.q_s) :]

    @property
    def rates(self) -> Symbols:
        """The rates that are intermediates: those of passive joints, and v."""
        return (*self.qd[len(self.qdd) :], *self.xd)

    def place(self, pose: Floats) -> list[float]:
        """The platform's coordinates x (n_x,), m and rad.

        Args:
            pose: (4, 4), the pose of the platform's link in the base frame.
        """
        return self.legs.place(pose)

    @cached_property
    def J_C(self) -> sympy.Matrix:
        """(3, n_r), in a plane: ẋ = J_C q̇_r (25), by least squares, as Γ has more rows than x."""
        if len(self.x) != 3:
            raise ClosureError("J_C: the robot has no free platform in a plane", name="J_C")
        normal = (self.J_x.T * self.J_x).applyfunc(simplified)
        return -(normal.adjugate() / normal.det(method="berkowitz")) * self.J_x.T * self.J_q

    @cached_property
    def J_C_rate(self) -> sympy.Matrix:
        """(3, n_r): dJ_C/dt (29)."""
        return self.rate(self.J_C)

    def rate(self, values: sympy.Matrix) -> sympy.Matrix:
        """The total derivative with respect to time, in terms of qd and xd.

        Args:
            values: a matrix of expressions in q_r and, in a plane, x.
        """
        result = sympy.zeros(*values.shape)
        for symbol, speed in zip((*self.q, *self.x), (*self.qd, *self.xd), strict=True):
            result += values.diff(symbol) * speed
        return result

    def sensed(self) -> dict[str, sympy.Matrix]:
        """D, C, G and F_ext of (39), in q_r, for legs whose passive joints all have a sensor.

        F_ext is the factor of Q_x.

        Raises:
            ClosureError: a passive joint of the legs has no sensor, or no platform is free in a
                plane.
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
        parts = {name: getattr(self, name).xreplace(self._whole) for name in ("D", "C", "g")}
        return {"D": parts["D"], "C": parts["C"], "G": parts["g"], "F_ext": self.J_R.T}

    def document(self, *, steps: bool = False) -> Document:
        """The matrices in the order of their computation, then the torques.

        Args:
            steps: also show each matrix's definition.
        """
        return closed_show.document(self, steps=steps)
