# SPDX-License-Identifier: Apache-2.0
"""Functions that differ between a fixed and a floating base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..mechanism import Mechanism
from ..mechanism.six_joints import names_on_axes
from ..scalar import Array, zeros
from . import floating, kinematics
from .derivatives import derivatives, of_bodies, of_motion
from .equations import Equations
from .forward import forward
from .regressor import Regressor

State = tuple[Array, Array, Array, Array]

FEW = 16
"""Largest number of joints for which computing D column by column takes fewer operations than by
composite bodies"""
FEW_FOR_C = 2
"""The same for C"""


class Form(NamedTuple):
    """The functions for one kind of base, for any scalar type."""

    extra: int
    """By how many entries q is longer than v"""
    names: Callable[[Mechanism], tuple[tuple[str, ...], tuple[str, ...]]]
    """mechanism → the order of v, and of the torques"""
    equations: type[Equations]
    regressor: type[Regressor]
    of_bodies: Callable[..., tuple[Array, ...]]
    """(tree with its gravity, q, q̇, q̈) → ∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (n, n) of its bodies"""
    forward: Callable[..., Array]
    kinematics: Any
    """The module that has `pose`, `jacobian` and `potential_energy`"""
    on_joints: Callable[[Mechanism, Array, Array, Array, Array], State]
    """(tree, q, v, a, gravity) → (q, q̇, q̈) (n,) of the tree's joints, and gravity (3,) to use
    there"""
    turned: Callable[[Array, Array, Array], Array]
    """(½ ∂b/∂v (n, n) of the bias b, D, v) → C"""

    def derivatives(self, equations: Equations, q: Array, qd: Array, qdd: Array) -> Array:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (3, n, n); `equations` of newton_euler."""
        return derivatives(equations, q, qd, qdd, self.of_bodies)

    def mass_matrix(self, equations: Equations, q: Array) -> Array:
        """D (n, n), by the method that takes fewer operations."""
        n = len(equations.mechanism.joint_names)
        if not composite(equations, FEW):
            return equations.mass_matrix(q)
        return of_motion(equations, q, zeros(n), self.of_bodies)[1]

    def coriolis_matrix(self, equations: Equations, q: Array, qd: Array) -> Array:
        """C (n, n), by the method that takes fewer operations."""
        if not composite(equations, FEW_FOR_C):
            return equations.coriolis_matrix(q, qd)
        return self.turned(*of_motion(equations, q, qd, self.of_bodies), qd)


def _joints(tree: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tree.joint_names, tree.actuated_names


def _on_axes(tree: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return names_on_axes(tree), names_on_axes(tree)


def _symmetric(C: Array, D: Array, qd: Array) -> Array:
    del D, qd
    return C


def _as_it_is(tree: Mechanism, q: Array, qd: Array, qdd: Array, gravity: Array) -> State:
    del tree
    return q, qd, qdd, gravity


def composite(equations: Equations, few: int) -> bool:
    """Are D and C computed by composite bodies, as for more than `few` joints?"""
    return equations.method.name == "newton_euler" and len(equations.mechanism.joint_names) > few


STANDING = Form(
    0, _joints, Equations, Regressor, of_bodies, forward, kinematics, _as_it_is, _symmetric
)
FLOATING = Form(
    1,
    _on_axes,
    floating.Floating,
    floating.FloatingRegressor,
    floating.of_bodies,
    floating.forward,
    floating,
    floating.at_zero,
    floating.on_turning_axes,
)
"""For a tree carried by six joints, whose q is (n + 1,)"""
