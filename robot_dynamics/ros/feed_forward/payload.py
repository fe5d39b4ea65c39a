# SPDX-License-Identifier: Apache-2.0
"""A payload on a link, from an InertiaStamped message, and all payloads as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...description.check import inertia
from ...description.fields import LARGEST
from ...errors import listed, shown
from ...inputs import finite
from ...mechanism import Inertial, Mechanism
from ...mechanism.dynamic_parameters import BODY, body_of, numbers_of
from ...mechanism.mechanism import inertia_matrix
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
    mass, center = i.m, np.array([i.com.x, i.com.y, i.com.z])
    tensor = inertia_matrix(i.ixx, i.iyy, i.izz, i.ixy, i.ixz, i.iyz)
    where = f"payload of {shown(link)}"
    if not np.isfinite([mass, *center, *tensor.flat]).all():
        raise RefusedError("not finite", f"{where}: found NaN or infinity, expected finite numbers")
    largest = float(np.abs([mass, *center, *tensor.flat]).max())
    if largest > LARGEST:
        raise RefusedError(
            "impossible body",
            f"{where}: found {largest:g}, expected at most {LARGEST:g}, as in a description",
        )
    if mass == 0:
        return link, Inertial()
    payload = Inertial(mass, center, tensor)
    if mass < 0:
        raise RefusedError("impossible body", f"{where}: mass: found {mass:g}, expected 0 or more")
    for complaint in inertia(payload, where):
        raise RefusedError("impossible body", str(complaint))
    return link, payload


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
    """Payloads by link as JSON, each with its ten parameters, about its link's origin."""
    found = {
        link: dict(zip(BODY, numbers_of(body).tolist(), strict=True))
        for link, body in payloads.items()
    }
    return json.dumps(found)


def parsed(text: str) -> dict[str, Inertial]:
    """The payloads by link in such a text.

    Raises:
        RefusedError: it is none.
    """
    try:
        found = json.loads(text)
        return {
            link: body_of(finite(link, [each[name] for name in BODY], len(BODY)))
            for link, each in found.items()
        }
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RefusedError("not readable", f"no payloads: {error!r}") from None
