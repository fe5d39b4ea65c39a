# SPDX-License-Identifier: Apache-2.0
"""Arithmetic over any scalar.

A formulation is written once and runs over floats, SymPy expressions or the recorder's scalars.
Vectors and matrices are NumPy arrays (`dtype=float` or `dtype=object`), so `+`, `*` and `@` are the
same for all three. This module adds the few functions that NumPy does not forward to such scalars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

Scalar = Any  # float, sympy.Expr or a recorder's scalar
Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

Note = Callable[[str, int, Array], Array]
"""Called with (quantity, index of its body, value) for each value that a recursion computes; the
recursion continues with the returned value"""


def unnoticed(quantity: str, body: int, value: Array) -> Array:  # noqa: ARG001
    """The `Note` that does nothing: it returns the value unchanged."""
    return value


_ROUNDING = 1e-15
"""An entry of a rotation matrix that is nearer than this to 0 or ±1 is a rounded 0 or ±1."""


LEVEL = 1e-12
"""If the horizontal part of the x axis is shorter than this, it is only rounding error, and yaw is
undetermined"""

MOST_EXP = 709.782712893384
"""The largest x for which exp(x) is a finite float"""


def _function(name: str, x: Scalar) -> Scalar:
    if isinstance(x, (int, float, np.floating)):
        return getattr(math, name)(x)
    own = getattr(x, name, None)  # a recorder's scalar has the functions as methods
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
    """eˣ; inf instead of an error if it overflows."""
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
    """-1, 0 or 1; nan for nan."""
    if isinstance(x, (int, float, np.floating)):
        return float(np.sign(x))
    return _function("sign", x)


def direction(rate: Scalar, smoothing: Scalar) -> Scalar:
    """sign(rate), or tanh(rate / smoothing) if smoothing is not zero; 0 at rest either way."""
    return sign(rate) if is_zero(smoothing) else tanh(rate / smoothing)


def is_zero(x: Scalar) -> bool:
    """Is this exactly the constant zero?"""
    if isinstance(x, (int, float, np.floating)):
        return bool(x == 0)
    return getattr(x, "is_zero", False) is True


def is_number(value: object) -> TypeGuard[float]:
    """Is this a finite real number of Python or NumPy? A bool is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def is_whole(value: object) -> TypeGuard[int]:
    """Is this an integer of Python or NumPy? Neither a bool nor 2.0 is one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def array(values: Iterable[Any]) -> Array:
    """A new array of floats if all entries are numbers, otherwise of objects."""
    if type(values) is np.ndarray and values.dtype == float and values.ndim:
        copy: Array = values.copy()
        return copy
    each = list(values)
    if set(map(type, each)) == {float}:
        return np.array(each)
    entries = np.array(each, dtype=object)
    if not all(map(_is_real, set(map(type, entries.ravel().tolist())))):
        return entries
    try:
        return entries.astype(float)
    except OverflowError:
        return np.array([_nearest(x) for x in entries.flat]).reshape(entries.shape)


@cache
def _is_real(kind: type) -> bool:
    return issubclass(kind, (int, float, np.integer, np.floating))


def _nearest(x: float) -> float:
    """The float nearest to a number; ±inf for an int too large for a float."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def zeros(*shape: int) -> Array:
    """A float array of zeros with this shape."""
    return np.zeros(shape)


def cross(a: Sequence[Scalar] | Array, b: Sequence[Scalar] | Array) -> Array:
    """a × b."""
    return array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def mirrored(A: Array) -> Array:
    """A symmetric matrix (n, n) whose entries below the diagonal are those above it, so that they
    are computed once."""
    n = range(len(A))
    return array([[A[min(i, j), max(i, j)] for j in n] for i in n])


def skew(a: Sequence[Scalar] | Array) -> Array:
    """The skew-symmetric matrix [a]×, with [a]× b = a × b."""
    return array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def rotation_z(angle: Scalar) -> Array:
    """The rotation matrix Rz(angle); angle in rad."""
    c, s = cos(angle), sin(angle)
    return array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_x(angle: Scalar) -> Array:
    """The rotation matrix Rx(angle); angle in rad."""
    c, s = cos(angle), sin(angle)
    return array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def rotation_y(angle: Scalar) -> Array:
    """The rotation matrix Ry(angle); angle in rad."""
    c, s = cos(angle), sin(angle)
    return array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def rotation_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Rz(yaw) Ry(pitch) Rx(roll), angles in rad, as in URDF (fixed axes x, y, z)."""
    return exact(rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll))


def rotation_quaternion(w: float, x: float, y: float, z: float) -> Array:
    """The rotation matrix of a quaternion w + x i + y j + z k of any length except 0."""
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
    """[roll, pitch, yaw] in rad, with which `rotation_rpy` gives this rotation.

    They are exact even where only the sum or difference of roll and yaw is determined (pitch ±π/2):
    given any yaw, roll and pitch follow from well-conditioned entries of
    Rz(-yaw) R = Ry(pitch) Rx(roll).
    """
    R = np.asarray(rotation, dtype=float)
    level = math.hypot(R[0, 0], R[1, 0])
    yaw = math.atan2(R[1, 0], R[0, 0]) if level > LEVEL else 0.0
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return [roll, pitch, yaw]


def from_columns(columns: Sequence[Any], rows: int) -> Array:
    """The matrix (rows, n) made of n columns; n may be 0."""
    matrix: Array = array(columns).reshape(len(columns), rows).T
    return matrix


def rotation_about(axis: Array, angle: Scalar) -> Array:
    """The rotation by an angle (rad) about a unit axis a, by Rodrigues' formula:
    a aᵀ + cos (1 - a aᵀ) + sin [a]×."""
    along = np.outer(axis, axis)
    R: Array = along + cos(angle) * (np.eye(3) - along) + sin(angle) * skew(axis)
    return R


def shortest_turn(angle: Floats) -> Floats:
    """The angle (rad) without whole turns, from -π to π."""
    return np.asarray(angle - 2 * np.pi * np.round(angle / (2 * np.pi)))


def rotation_vector(R: Floats) -> Floats:
    """Axis times angle (3,), rad, of a rotation matrix; the angle is at most π."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine, cosine = float(np.linalg.norm(axis)), (np.trace(R) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if sine > 1e-8:
        along: Floats = axis * (angle / sine)
        return along
    if cosine > 0:
        return axis
    # half a turn: R = 2 a aᵀ - 1
    column = (R + np.eye(3))[:, int(np.argmax(np.diag(R)))]
    turn: Floats = angle * column / np.linalg.norm(column)
    return turn


def rotation_to(axis: Array) -> Array:
    """A rotation matrix R with R z = axis (a unit vector), well conditioned for every axis; the
    identity if the axis is z."""
    axis = np.asarray(axis, dtype=float)
    x, y, z = axis
    if x == 0 and y == 0:
        return np.eye(3) if z > 0 else np.diag([1.0, -1.0, -1.0])
    # the unit vector least aligned with the axis gives a well-conditioned cross product
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(helper, axis)
    first /= np.linalg.norm(first)
    return exact(np.column_stack([first, np.cross(axis, first), axis]))


def exact(rotation: Array) -> Array:
    """The rotation with entries that are 0 or ±1 up to rounding made exact; an array of objects is
    returned as it is."""
    if rotation.dtype == object:
        return rotation
    nearest = np.rint(rotation)
    return np.where(np.abs(rotation - nearest) < _ROUNDING, nearest, rotation) + 0.0
