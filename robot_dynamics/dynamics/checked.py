# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of `InverseDynamics`: mechanisms, vectors, bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, wrong
from ..inputs import finite, number, vectors
from ..mechanism import Inertial, Mechanism
from ..mechanism.mechanism import check_usable
from ..scalar import Floats

ROUNDING = 1e-9
"""Fraction of the largest entry by which an inertia may be asymmetric, or a principal moment below
zero"""


def payload(name: str, body: Any) -> Inertial:
    """A body of finite numbers whose mass and principal moments of inertia are not negative.

    Raises:
        InputError: the value is anything else.
    """
    if not isinstance(body, Inertial):
        raise wrong(InputError, name, type(body).__name__, "an Inertial, or None")
    mass = number(f"{name}: mass", body.mass, least=0.0)
    center = finite(f"{name}: center_of_mass", body.center_of_mass, 3)
    inertia = finite(f"{name}: inertia", body.inertia, 3, 3)
    largest = abs(inertia).max()
    if abs(inertia - inertia.T).max() > ROUNDING * largest:
        raise wrong(InputError, f"{name}: inertia", inertia.tolist(), "a symmetric matrix")
    if np.linalg.eigvalsh(inertia).min() < -ROUNDING * largest:
        expected = "no negative principal moment"
        raise wrong(InputError, f"{name}: inertia", inertia.tolist(), expected)
    return Inertial(mass, center, inertia)


def wrenches(given: Mapping[str, ArrayLike] | None) -> dict[str, Floats]:
    """Wrenches (…, 6) by link.

    Raises:
        InputError: not a mapping, or one is not six numbers.
    """
    if not isinstance(given or {}, Mapping):
        raise wrong(InputError, "wrenches", type(given).__name__, "wrenches by link name")
    named = (given or {}).items()
    what = ("force and moment",)
    return {link: vectors(f"wrench on {link}", value, 6, what) for link, value in named}


def robot(value: Any) -> Mechanism:
    """The value, if it is a mechanism that can move and that can be computed.

    Raises:
        InputError: not a `Mechanism`, or one without moving joints, or one that has numbers
            that are not finite, or names of joints and links that it lacks.
    """
    if not isinstance(value, Mechanism):
        raise wrong(InputError, "mechanism", type(value).__name__, "a Mechanism, as from rd.load")
    if not value.joint_names:
        raise wrong(InputError, value.label or "mechanism", "no joint that moves", "at least one")
    check_usable(value)
    return value
