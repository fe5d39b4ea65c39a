"""A body that a link carries, out of an InertiaStamped message."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...description.check import body
from ...errors import listed
from ...mechanism import Inertial, Mechanism
from .refusal import RefusedError


def read(message: Any, mechanism: Mechanism) -> tuple[str, Inertial]:
    """The link (frame_id) and the body that it carries.

    Mass in kg, centre of mass in m in the link's frame, inertia in kg·m² about the centre of
    mass in the link's axes, as in a URDF. A mass of zero takes the payload away.

    Raises:
        RefusedError: an unknown link, or a body that cannot be.
    """
    link, inertia = message.header.frame_id, message.inertia
    links = [each.name for each in mechanism.links]
    if link not in links:
        raise RefusedError(
            "unknown link",
            f"header.frame_id {link!r} is no moving link, expected one of {listed(links)}",
        )
    i = inertia
    mass, center = i.m, np.array([i.com.x, i.com.y, i.com.z])
    tensor = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    if not np.isfinite([mass, *center, *tensor.flat]).all():
        raise RefusedError("not finite", f"payload of {link!r}: found NaN or infinity in it")
    payload = Inertial(mass, center, tensor)
    if mass == 0 and tensor.any():
        raise RefusedError("impossible body", f"payload of {link!r}: inertia without mass")
    for complaint in body(payload, f"payload of {link!r}"):
        raise RefusedError("impossible body", str(complaint))
    return link, payload
