# SPDX-License-Identifier: Apache-2.0
"""The `<mimic>` elements of URDF and SDF: each follows one independent joint."""

from __future__ import annotations

from dataclasses import replace

from ..errors import DescriptionError, Place, wrong
from ..mechanism import Coupling, Joint
from .fields import tolerate


def mimicking(joints: dict[str, Joint], where: Place, strict: bool) -> dict[str, Joint]:
    """The joints, coupled to independent ones only; a joint that mimics a missing one is freed.

    Args:
        joints: by name; each `coupling` has one ratio, of any joint.
        where: the file's name, for messages.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: joints that follow one another in a cycle.

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
    resolved: dict[str, Coupling] = {}
    for name in joints:
        chain: dict[str, Coupling] = {}
        last = name
        while last not in resolved and (coupling := joints[last].coupling) is not None:
            chain[last] = coupling
            last = coupling.ratios[0][0]
            if last in chain:
                raise wrong(
                    DescriptionError,
                    where.named("joint", name) / "mimic",
                    " → ".join([*chain, last]),
                    "a chain that ends at an independent joint",
                )
        end = resolved.get(last, Coupling(((last, 1.0),)))
        for follower, coupling in reversed(chain.items()):
            # q = r (r' q'' + o') + o
            ((master, inner),), ((_, ratio),) = end.ratios, coupling.ratios
            end = Coupling(((master, ratio * inner),), ratio * end.offset + coupling.offset)
            resolved[follower] = end
    return {
        name: replace(joint, coupling=resolved[name]) if name in resolved else joint
        for name, joint in joints.items()
    }
