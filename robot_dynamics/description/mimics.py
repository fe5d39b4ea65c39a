# SPDX-License-Identifier: Apache-2.0
"""The `<mimic>` elements of URDF and SDF: each follows one independent joint."""

from __future__ import annotations

from dataclasses import replace

from ..errors import DescriptionError, Place, wrong
from ..mechanism import Coupling, Joint
from .fields import tolerate


def mimicking(joints: dict[str, Joint], where: Place, strict: bool) -> dict[str, Joint]:
    """The joints, coupled only to independent ones; those that mimic a missing one are freed.

    Args:
        joints: by name; each `coupling` has one ratio, of any joint.
        where: the file's name, for messages.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: joints that follow one another in a circle.

    Warns:
        DescriptionWarning: a joint that mimics a missing or fixed one; it becomes independent.
    """
    found = dict(joints)
    for joint in joints.values():
        if joint.coupling is None:
            continue
        master = joint.coupling.ratios[0][0]
        if master not in joints or not joints[master].moves:
            at = where.named("joint", joint.name) / "mimic"
            tolerate(wrong(DescriptionError, at, master, "a moving joint of this robot"), strict)
            found[joint.name] = replace(joint, coupling=None)
    return _resolved(found, where)


def _resolved(joints: dict[str, Joint], where: Place) -> dict[str, Joint]:
    """The joints, with each chain of <mimic> reduced to an independent joint."""
    found = {}
    for name, joint in joints.items():
        last, ratio, offset = name, 1.0, 0.0
        chain = {name: joint}
        while (coupling := joints[last].coupling) is not None:
            # q = r (r' q'' + o') + o
            ((last, inner),) = coupling.ratios
            ratio, offset = ratio * inner, ratio * coupling.offset + offset
            if last in chain:
                raise wrong(
                    DescriptionError,
                    where.named("joint", name) / "mimic",
                    " → ".join([*chain, last]),
                    "a chain that ends at an independent joint",
                )
            chain[last] = joints[last]
        coupled = last != name
        found[name] = (
            replace(joint, coupling=Coupling(((last, ratio),), offset)) if coupled else joint
        )
    return found
