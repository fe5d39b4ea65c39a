# SPDX-License-Identifier: Apache-2.0
"""Elements that change the torques in Gazebo or Drake, and are left out of a URDF or an SDF."""

from __future__ import annotations

import re
from collections import defaultdict

from lxml import etree

from ..errors import DescriptionError, Place, listed, wrong
from .fields import tolerate

OTHER_WORDS = {
    "rotor_inertia": "none (describe it under `rotors` in a YAML)",
    "ball_constraint": "none (describe it under `loops` in a YAML)",
    "constraint": "none (describe it under `loops` in a YAML)",
    "linear_bushing_rpy": "none (describe a loop under `loops` in a YAML)",
    "fluid_added_mass": "none",
}
"""The elements that are left out wherever they stand, and what to write instead: Drake's motors,
loops and springs between links, and SDF's added mass in water"""


def report_left_out(root: etree._Element, where: Place, strict: bool) -> None:
    """Complain about elements that are left out although torques depend on them, once a kind.

    Args:
        root: the file's root element.
        where: the file's name, for messages.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: there is one, if strict.

    Warns:
        DescriptionWarning: for each kind of them; it names the links or joints.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for joint in root.iterfind("gazebo/joint"):
        key = ("<gazebo> <joint>", "none (describe a loop under `loops` in a YAML)")
        found[key].append(str(joint.get("name")))
    for gazebo in root.iterfind("gazebo"):
        if not _is_zero(gazebo.findtext("springStiffness", "0")):
            key = ("<gazebo> <springStiffness>", "none (describe it under `friction` in a YAML)")
            found[key].append(str(gazebo.get("reference")))
    for gravity in root.iter("gravity"):
        link = gravity.getparent()
        if link.tag in ("link", "gazebo") and (gravity.text or "").strip() in ("0", "false"):
            key = ("<gravity> of a link that is false", "gravity on each link")
            found[key].append(str(link.get("name") or link.get("reference")))
    for element in root.iter(etree.Element):
        # drake:NAME, with or without a namespace that is declared
        name = re.split("[}:]", element.tag)[-1]
        if name in OTHER_WORDS and not _is_zero(element.get("value", element.text)):
            found[f"<{name}>", OTHER_WORDS[name]].append(_owner(element))
    for (what, expected), names in found.items():
        complaint = f"{expected}: it is left out"
        tolerate(wrong(DescriptionError, where + f": {what}", listed(names), complaint), strict)


def _is_zero(value: str | None) -> bool:
    try:
        return float(value or "") == 0
    except ValueError:
        return False


def _owner(element: etree._Element) -> str:
    """The name of the nearest element around this one that has a name."""
    names = (each.get("name") for each in element.iterancestors())
    return str(next((name for name in names if name), element.tag))
