# SPDX-License-Identifier: Apache-2.0
"""Poses of frames, and rigid bodies, as immutable values in SI units.

Every number may be a float, a SymPy expression or a recorder's scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError, wrong
from ..scalar import Array, Scalar, array, exact, is_zero, rotation_rpy, zeros

T = TypeVar("T")


def frozen(name: str, values: Array, cleaned: Callable[[Array], Array] = np.asarray) -> Array:
    """A read-only copy of an array.

    Args:
        name: what it is, for the message.
        values: the array.
        cleaned: applied to the copy.

    Raises:
        InputError: it is no array.
    """
    try:
        copy = cleaned(array(values))
    except TypeError:  # nothing to iterate over
        raise wrong(InputError, name, values, "an array of numbers") from None
    copy.flags.writeable = False
    return copy


_NO_TURN = frozen("rotation", np.eye(3))
_NO_SHIFT = frozen("translation", zeros(3))


class ReadOnly:
    """Keeps arrays read-only in copies and after unpickling."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Pose(ReadOnly):
    """The pose of a frame in another one: x_outer = rotation @ x_inner + translation."""

    rotation: Array = field(default_factory=lambda: _NO_TURN)
    """(3, 3)"""
    translation: Array = field(default_factory=lambda: _NO_SHIFT)
    """(3,), m"""

    def __post_init__(self) -> None:
        if self.rotation is not _NO_TURN:
            object.__setattr__(self, "rotation", frozen("rotation", self.rotation, exact))
        if self.translation is not _NO_SHIFT:
            object.__setattr__(self, "translation", frozen("translation", self.translation))

    @property
    def is_default(self) -> bool:
        """Is this `Pose()`, the identity, which needs no multiplication? Most frames are."""
        return self.rotation is _NO_TURN and self.translation is _NO_SHIFT

    @property
    def is_identity(self) -> bool:
        """Is every number that of the identity?"""
        return np.array_equal(self.rotation, np.eye(3)) and not np.any(self.translation)

    @classmethod
    def from_xyz_rpy(cls, xyz: Array, rpy: Array) -> Pose:
        """The pose by translation and then rotation Rz(yaw) Ry(pitch) Rx(roll), as in URDF.

        Args:
            xyz: (3,) translation, m.
            rpy: (3,) roll, pitch and yaw, rad.
        """
        return cls(rotation_rpy(*rpy), array(xyz))

    def __matmul__(self, inner: Pose) -> Pose:
        if inner.is_default:
            return self
        if self.is_default:
            return inner
        return Pose(self.rotation @ inner.rotation, self.apply(inner.translation))

    def apply(self, point: Array) -> Array:
        """The coordinates (3,) in the outer frame of a point (3,) given in the inner frame, m."""
        return self.rotation @ point + self.translation

    def inverse(self) -> Pose:
        """The pose of the outer frame in the inner one."""
        if self.is_default:
            return self
        return Pose(self.rotation.T, -(self.rotation.T @ self.translation))

    def homogeneous(self) -> Array:
        """The pose as a homogeneous matrix (4, 4)."""
        upper = np.column_stack([self.rotation, self.translation])
        return np.vstack([upper, array([0.0, 0.0, 0.0, 1.0])])


@dataclass(frozen=True, eq=False)
class Inertial(ReadOnly):
    """The mass, centre of mass and inertia of a rigid body, in the frame of its link.

    Raises:
        InputError: a centre of mass or an inertia that is not an array.
    """

    mass: Scalar = 0.0
    """kg"""
    center_of_mass: Array = field(default_factory=lambda: zeros(3))
    """c (3,), m, in the link's frame"""
    inertia: Array = field(default_factory=lambda: zeros(3, 3))
    """I_C (3, 3), kg m², symmetric, about the centre of mass, on the link's axes"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "center_of_mass", frozen("center_of_mass", self.center_of_mass))
        object.__setattr__(self, "inertia", frozen("inertia", self.inertia))

    @property
    def first_moment(self) -> Array:
        """m c (3,), kg m."""
        h: Array = self.mass * self.center_of_mass
        return h

    @property
    def inertia_about_origin(self) -> Array:
        """(3, 3), kg m², about the link frame's origin (Steiner)."""
        # I_O = I_C + m (c·c 1 - c cᵀ)
        return self.inertia + point_inertia(self.mass, self.center_of_mass)

    @property
    def is_nothing(self) -> bool:
        """Whether this body has neither mass nor inertia."""
        return is_zero(self.mass) and all(is_zero(x) for x in self.inertia.flat)

    def seen_from(self, pose: Pose) -> Inertial:
        """The same body expressed in another frame.

        Args:
            pose: of the body's present frame in the other one.

        Returns:
            Mass (kg), centre of mass (3,) (m) and inertia about it (3, 3) (kg·m²), on the axes of
            the other frame.
        """
        if pose.is_default:
            return self
        r = pose.rotation
        return Inertial(self.mass, pose.apply(self.center_of_mass), r @ self.inertia @ r.T)

    def __add__(self, other: Inertial) -> Inertial:
        """Both bodies, given in the same frame, welded into one."""
        if other.is_nothing:
            return self
        if self.is_nothing:
            return other
        mass = self.mass + other.mass
        if is_zero(mass):
            return Inertial(mass, self.center_of_mass, self.inertia + other.inertia)
        center = (self.first_moment + other.first_moment) / mass
        inertia = (
            self.inertia
            + point_inertia(self.mass, self.center_of_mass - center)
            + other.inertia
            + point_inertia(other.mass, other.center_of_mass - center)
        )
        return Inertial(mass, center, inertia)


def inertia_matrix(
    ixx: Scalar, iyy: Scalar, izz: Scalar, ixy: Scalar, ixz: Scalar, iyz: Scalar
) -> Array:
    """The inertia tensor (3, 3), with off-diagonal entries as in URDF: ixy is -∫ x y dm."""
    return array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def body_numbers(mass: Scalar, point: Array, I: Array) -> list[Scalar]:
    """[mass, *point, Ixx, Iyy, Izz, Ixy, Ixz, Iyz], the ten numbers of a body; the point is its
    centre of mass or its first moment."""
    return [mass, *point, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def body_from(kind: Callable[[Scalar, Array, Array], T], numbers: Iterable[Scalar]) -> T:
    """The body `kind(mass, point, inertia)` with these `body_numbers` (10,)."""
    m, x, y, z, *moments = numbers
    return kind(m, array([x, y, z]), inertia_matrix(*moments))


def point_inertia(mass: Scalar, arm: Array) -> Array:
    """Inertia (3, 3), kg m², of a point mass about another point: m (r·r 1 - r rᵀ).

    Args:
        mass: kg.
        arm: r (3,), m, from that point to the mass, or back.
    """
    I: Array = mass * (np.dot(arm, arm) * np.eye(3) - np.outer(arm, arm))
    return I
