# SPDX-License-Identifier: Apache-2.0
"""Arithmetic over any scalar.

A formulation is written once and runs over floats, SymPy expressions or the recorder's
scalars. Vectors and matrices are NumPy arrays (`dtype=float` or `dtype=object`), so `+`, `*`
and `@` are the same for all three; the few functions that NumPy does not hand through are here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

Scalar = Any  # float, sympy.Expr or a recorder's scalar
Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

Note = Callable[[str, int, Array], Array]
"""(quantity, place of its body, value) as a recursion computes them; it goes on with the result"""


def unnoticed(quantity: str, body: int, value: Array) -> Array:  # noqa: ARG001
    """Nobody looks on."""
    return value


_ROUNDING = 1e-15
"""Below this an entry of a rotation matrix is the rounding of an exact 0 or ±1."""


LEVEL = 1e-12
"""Below this the share of x that is not upright says nothing of yaw: it is rounding"""

MOST_EXP = 709.782712893384
"""The largest x whose exp(x) is a float"""


def _function(name: str, x: Scalar) -> Scalar:
    if isinstance(x, (int, float, np.floating)):
        return getattr(math, name)(x)
    own = getattr(x, name, None)  # a recorder's scalar knows its functions
    if own is not None:
        return own()
    import sympy

    return getattr(sympy, name)(x)


def cos(x: Scalar) -> Scalar:
    """cos x."""
    return _function("cos", x)


def sin(x: Scalar) -> Scalar:
    """sin x."""
    return _function("sin", x)


def tanh(x: Scalar) -> Scalar:
    """tanh x."""
    return _function("tanh", x)


def exp(x: Scalar) -> Scalar:
    """eˣ; inf, not an error, where it overflows."""
    if isinstance(x, (int, float, np.floating)) and x > MOST_EXP:
        return math.inf
    return _function("exp", x)


def sqrt(x: Scalar) -> Scalar:
    """√x."""
    return _function("sqrt", x)


def atan(x: Scalar) -> Scalar:
    """atan x."""
    return _function("atan", x)


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1; nan of nan."""
    if isinstance(x, (int, float, np.floating)):
        return float(np.sign(x))
    return _function("sign", x)


def is_zero(x: Scalar) -> bool:
    """Is this exactly the constant zero?"""
    if isinstance(x, (int, float, np.floating)):
        return bool(x == 0)
    return getattr(x, "is_zero", False) is True


def is_number(value: object) -> TypeGuard[float]:
    """A finite real number of Python or NumPy, which True is not."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond every float
        return False


def is_whole(value: object) -> TypeGuard[int]:
    """A whole number of Python or NumPy, which neither True nor 2.0 is."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def array(values: Iterable[Any]) -> Array:
    """An array of floats where all entries are numbers, of objects otherwise."""
    entries = np.array(list(values), dtype=object)
    kinds = set(map(type, entries.flat))
    numbers = all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds)
    if not numbers:
        return entries
    try:
        return entries.astype(float)
    except OverflowError:
        return np.array([_nearest(x) for x in entries.flat]).reshape(entries.shape)


def _nearest(x: float) -> float:
    """The float nearest to a number; infinite where that is an int beyond every float."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def zeros(*shape: int) -> Array:
    """An array of zeros (float)."""
    return np.zeros(shape)


def cross(a: Sequence[Scalar] | Array, b: Sequence[Scalar] | Array) -> Array:
    """a × b."""
    return array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a: Sequence[Scalar] | Array) -> Array:
    """[a]×, with [a]× b = a × b."""
    return array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def rotation_z(angle: Scalar) -> Array:
    """Rz(angle)."""
    c, s = cos(angle), sin(angle)
    return array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_x(angle: Scalar) -> Array:
    """Rx(angle)."""
    c, s = cos(angle), sin(angle)
    return array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: Scalar) -> Array:
    """Ry(angle)."""
    c, s = cos(angle), sin(angle)
    return array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Rz(yaw) Ry(pitch) Rx(roll), as in URDF (fixed axes x, y, z)."""
    return exact(rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll))


def rotation_quaternion(w: float, x: float, y: float, z: float) -> Array:
    """The rotation of a quaternion w + x i + y j + z k of any length but 0."""
    w, x, y, z = np.array([w, x, y, z]) / math.sqrt(w * w + x * x + y * y + z * z)
    return exact(
        np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
    )


def roll_pitch_yaw(rotation: Array) -> list[float]:
    """The angles of `rotation_rpy` that make this rotation; exact also where roll and yaw are one.

    Whatever yaw is, roll and pitch make up the rest: in Rz(-yaw) R = Ry(pitch) Rx(roll) they are
    told from well-conditioned entries.
    """
    R = np.asarray(rotation, dtype=float)
    level = math.hypot(R[0, 0], R[1, 0])
    yaw = math.atan2(R[1, 0], R[0, 0]) if level > LEVEL else 0.0
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return [roll, pitch, yaw]


def from_columns(columns: Sequence[Any], rows: int) -> Array:
    """The matrix (rows, n) of n columns, none at all among them."""
    matrix: Array = array(columns).reshape(len(columns), rows).T
    return matrix


def rotation_about(axis: Array, angle: Scalar) -> Array:
    """Rodrigues' formula about a unit axis: a aᵀ + cos (1 - a aᵀ) + sin [a]×."""
    along = np.outer(axis, axis)
    R: Array = along + cos(angle) * (np.eye(3) - along) + sin(angle) * skew(axis)
    return R


def rotation_to(axis: Array) -> Array:
    """A rotation R with R z = axis (unit); the identity for z itself, never nearly singular."""
    axis = np.asarray(axis, dtype=float)
    x, y, z = axis
    if x == 0 and y == 0:
        return np.eye(3) if z > 0 else np.diag([1.0, -1.0, -1.0])
    # the base vector least along the axis makes a sound cross product
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(helper, axis)
    first /= np.linalg.norm(first)
    return exact(np.column_stack([first, np.cross(axis, first), axis]))


def exact(rotation: Array) -> Array:
    """A float matrix whose entries within rounding of 0 and ±1 are made exactly that."""
    if rotation.dtype == object:
        return rotation
    nearest = np.round(rotation)
    return np.where(np.abs(rotation - nearest) < _ROUNDING, nearest, rotation) + 0.0
