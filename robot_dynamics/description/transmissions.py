# SPDX-License-Identifier: Apache-2.0
"""Gear ratios from a URDF's <transmission> and <ros2_control> elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from lxml import etree

from ..errors import DescriptionError, Named, Place, wrong
from .fields import number, tolerate
from .xml_text import plain_text

REDUCTION_TAGS = ("mechanicalReduction", "mechanical_reduction")

Shaft = tuple[tuple[str, float], ...]
"""((joint, rotor rate / joint rate), …)"""


def gear_ratios(root: etree._Element, where: Place, strict: bool = False) -> dict[str, Shaft]:
    """The gear ratios ((joint, rotor rate / joint rate), …) by rotor name.

    The rotor of a simple transmission is named after its joint, those of a differential and of a
    four-bar linkage after their actuators.

    Args:
        root: the URDF's root element.
        where: the file's name, for messages.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: a reduction that is 0 or not a number.

    Warns:
        DescriptionWarning: a transmission of several joints that is of no known type.
    """
    ratios: dict[str, Shaft] = {}
    for transmission in root.iter("transmission"):
        kind = _kind(transmission)
        joints = [element for element in transmission.iterfind("joint") if element.get("name")]
        at = where.named("transmission", str(transmission.get("name")))
        coupled = next((law for name, law in COUPLED.items() if name in kind), None)
        if coupled and len(joints) == 2:
            ratios.update(_coupled(coupled, transmission, joints, at))
        elif len(joints) > 1:
            expected = f"one joint, or two of {' or '.join(COUPLED)}: it is left out"
            tolerate(
                wrong(DescriptionError, at, f"{len(joints)} joints of {kind}", expected), strict
            )
        elif joints:
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


def _differential(n_1: float, n_2: float) -> tuple[tuple[float, ...], ...]:
    """x_a = n_a (n_j1 x_j1 ± n_j2 x_j2)"""
    return (n_1, n_2), (n_1, -n_2)


def _four_bar_linkage(n_1: float, n_2: float) -> tuple[tuple[float, ...], ...]:
    """x_a1 = n_a1 n_j1 x_j1; x_a2 = n_a2 (x_j1 + n_j2 x_j2)"""
    return (n_1,), (1.0, n_2)


COUPLED = {"Differential": _differential, "FourBarLinkage": _four_bar_linkage}
"""transmission_interface's transmissions of two joints: the ratios of each actuator, but for its
own reduction"""


def _coupled(
    law: Callable[[float, float], tuple[tuple[float, ...], ...]],
    transmission: etree._Element,
    joints: list[etree._Element],
    at: Place,
) -> Iterator[tuple[str, Shaft]]:
    """The shafts of a transmission of two joints, by actuator."""
    actuators = list(transmission.iterfind("actuator"))
    if len(actuators) != 2:
        raise wrong(DescriptionError, at / "actuators", len(actuators), "two, one per joint")
    joints.sort(key=lambda joint: joint.get("role") or "")
    actuators.sort(key=lambda actuator: actuator.get("role") or "")
    n_1, n_2 = (_own_reduction(joint, at) for joint in joints)
    names = [str(joint.get("name")) for joint in joints]
    motors = [each.get("name") or f"{at} {k}" for k, each in enumerate(actuators, start=1)]
    if len(set(motors)) < len(motors):
        raise wrong(DescriptionError, at / "actuators", motors, "two names")
    for motor, actuator, ratios in zip(motors, actuators, law(n_1, n_2), strict=True):
        n_a = _own_reduction(actuator, at)
        shaft = tuple((name, n_a * ratio) for name, ratio in zip(names, ratios, strict=False))
        yield motor, shaft


def _kind(transmission: etree._Element) -> str:
    text = transmission.findtext("plugin") or transmission.findtext("type")
    return text or transmission.get("type") or "no type"


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
