# SPDX-License-Identifier: Apache-2.0
"""Functions that differ between a fixed and a floating base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..mechanism import Mechanism
from ..scalar import Array
from . import floating, kinematics
from .derivatives import derivatives
from .equations import Equations
from .forward import forward
from .regressor import Regressor

State = tuple[Array, Array, Array, Array]


class Form(NamedTuple):
    """The functions for one kind of base, for any scalar type."""

    extra: int
    """By how much q is longer than v"""
    equations: type[Equations]
    regressor: type[Regressor]
    derivatives: Callable[..., Array]
    forward: Callable[..., Array]
    places: Any
    """What has pose, jacobian and potential_energy"""
    on_joints: Callable[[Mechanism, Array, Array, Array, Array], State]
    """(tree, q, v, a, gravity) → (q, q̇, q̈) (n,) of the tree's joints, and gravity (3,) there"""
    turned: Callable[[Array, Array, Array], Array]
    """(what polarisation gives of C (n, n), D, v) → C"""


def _symmetric(C: Array, D: Array, qd: Array) -> Array:
    del D, qd
    return C


def _as_it_is(tree: Mechanism, q: Array, qd: Array, qdd: Array, gravity: Array) -> State:
    del tree
    return q, qd, qdd, gravity


STANDING = Form(0, Equations, Regressor, derivatives, forward, kinematics, _as_it_is, _symmetric)
FLOATING = Form(
    1,
    floating.Floating,
    floating.FloatingRegressor,
    floating.derivatives,
    floating.forward,
    floating,
    floating.at_zero,
    floating.on_turning_axes,
)
"""Of a tree on six joints, whose q is (n + 1,)"""
