# SPDX-License-Identifier: Apache-2.0
"""A payload on a link, from an InertiaStamped message, and all payloads as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...description.check import inertia
from ...description.fields import LARGEST
from ...errors import listed, one_line, shown
from ...inputs import finite
from ...mechanism import Inertial, Mechanism
from ...mechanism.bodies import inertia_matrix
from ...scalar import Floats
from .refusal import RefusedError


def read(message: Any) -> tuple[str, Inertial]:
    """The link's name (frame_id) and its payload.

    Units and frames are as in a URDF: the mass in kg, the centre of mass in m in the link's frame,
    the inertia in kg·m² about the centre of mass on the link's axes. A mass of zero removes the
    payload, whatever the other fields are.

    Args:
        message: an InertiaStamped.

    Raises:
        RefusedError: the body is impossible.
    """
    link, i = message.header.frame_id, message.inertia
    tensor = inertia_matrix(i.ixx, i.iyy, i.izz, i.ixy, i.ixz, i.iyz)
    return link, _possible(link, i.m, np.array([i.com.x, i.com.y, i.com.z]), tensor)


def _possible(link: str, mass: float, center: Floats, tensor: Floats) -> Inertial:
    """The payload of a link, if it is possible.

    Raises:
        RefusedError: it is not.
    """
    where = f"payload of {shown(link)}"
    if mass == 0:
        return Inertial()
    if not np.isfinite([mass, *center, *tensor.flat]).all():
        raise RefusedError("not finite", f"{where}: found NaN or infinity, expected finite numbers")
    largest = float(np.abs([mass, *center, *tensor.flat]).max())
    if largest > LARGEST:
        raise RefusedError(
            "impossible body",
            f"{where}: found {largest:g}, expected at most {LARGEST:g}, as in a description",
        )
    payload = Inertial(mass, center, tensor)
    if mass < 0:
        raise RefusedError("impossible body", f"{where}: mass: found {mass:g}, expected 0 or more")
    for complaint in inertia(payload, where):
        raise RefusedError("impossible body", str(complaint))
    return payload


def check_link(link: str, mechanism: Mechanism) -> None:
    """Check that the robot has a link.

    Raises:
        RefusedError: it has no such link.
    """
    links = [each.name for each in mechanism.links]
    if link not in links:
        raise RefusedError(
            "unknown link",
            f"header.frame_id {shown(link)} is not a moving link, expected one of {listed(links)}",
        )


def written(payloads: Mapping[str, Inertial]) -> str:
    """Payloads by link as JSON, each with its mass in kg, its centre of mass in m in the link's
    frame, and its inertia in kg·m² about that on the link's axes."""
    return json.dumps({link: _fields(body) for link, body in payloads.items()})


def _fields(body: Inertial) -> dict[str, Any]:
    return {
        "mass": float(body.mass),
        "center_of_mass": body.center_of_mass.tolist(),
        "inertia": body.inertia.tolist(),
    }


def parsed(text: str) -> dict[str, Inertial]:
    """The payloads by link in such a text.

    Raises:
        RefusedError: it is none, or contains an impossible body.
    """
    try:
        found = {
            link: (
                float(finite("mass", each["mass"])),
                finite("center_of_mass", each["center_of_mass"], 3),
                finite("inertia", each["inertia"], 3, 3),
            )
            for link, each in json.loads(text).items()
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RefusedError("not readable", f"no payloads: {one_line(error)}") from None
    return {link: _possible(link, *each) for link, each in found.items()}
