# SPDX-License-Identifier: Apache-2.0
"""Gear ratios from a URDF's <transmission> and <ros2_control> elements."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lxml import etree

from ..errors import DescriptionError, Named, Place, wrong
from .fields import number
from .xml_text import plain_text

REDUCTION_TAGS = ("mechanicalReduction", "mechanical_reduction")


def gear_ratios(root: etree._Element, where: Place) -> dict[str, tuple[tuple[str, float], ...]]:
    """The gear ratios ((joint, rotor rate / joint rate), …) by rotor name.

    The rotor of a simple transmission is named after its joint, those of a differential after their
    actuators.

    Args:
        root: the URDF's root element.
        where: the file's name, for messages.

    Raises:
        DescriptionError: a reduction that is 0 or not a number.
    """
    ratios: dict[str, tuple[tuple[str, float], ...]] = {}
    for transmission in root.iter("transmission"):
        kind = _kind(transmission)
        joints = [element for element in transmission.iterfind("joint") if element.get("name")]
        at = where.named("transmission", str(transmission.get("name")))
        if "Differential" in kind and len(joints) == 2:
            ratios.update(_differential(transmission, joints, at))
        elif len(joints) == 1:
            found = [*_reductions(transmission, at)]
            if found:
                name = joints[0].get("name")
                ratios[name] = ((name, math.prod(found)),)
    # <ros2_control><joint name><param name="mechanicalReduction">50</param>
    for joint in root.iterfind("ros2_control/joint"):
        element = Named("joint", str(joint.get("name")))
        at = (where + f": ros2_control joint {element.name!r}").at("ros2_control", element)
        for parameter in joint.iterfind("param"):
            if parameter.get("name") in REDUCTION_TAGS:
                name = joint.get("name")
                ratios[name] = ((name, _ratio(parameter, at)),)
    return ratios


def _differential(
    transmission: etree._Element, joints: list[etree._Element], at: Place
) -> Iterator[tuple[str, tuple[tuple[str, float], ...]]]:
    """The ratios of transmission_interface's DifferentialTransmission:
    x_a = n_a (n_j1 x_j1 ± n_j2 x_j2)."""
    actuators = list(transmission.iterfind("actuator"))
    if len(actuators) != 2:
        raise wrong(DescriptionError, at / "actuators", len(actuators), "two, one per joint")
    joints.sort(key=lambda joint: joint.get("role") or "")
    actuators.sort(key=lambda actuator: actuator.get("role") or "")
    n_1, n_2 = (_own_reduction(joint, at) for joint in joints)
    for actuator, sign in zip(actuators, (1.0, -1.0), strict=True):
        n_a = _own_reduction(actuator, at)
        yield (
            actuator.get("name") or at,
            ((joints[0].get("name"), n_a * n_1), (joints[1].get("name"), sign * n_a * n_2)),
        )


def _kind(transmission: etree._Element) -> str:
    text = transmission.findtext("plugin") or transmission.findtext("type")
    return text or transmission.get("type") or ""


def _reductions(element: etree._Element, at: Place) -> Iterator[float]:
    for child in element.iter(*REDUCTION_TAGS):
        yield _ratio(child, at)


def _own_reduction(element: etree._Element, at: Place) -> float:
    return math.prod(_reductions(element, at), start=1.0)


def _ratio(element: etree._Element, at: Place) -> float:
    ratio = number(plain_text(element, at / REDUCTION_TAGS[0]), at / REDUCTION_TAGS[0])
    if ratio == 0:
        raise wrong(DescriptionError, at / REDUCTION_TAGS[0], ratio, "a number other than 0")
    return ratio
