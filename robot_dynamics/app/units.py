# SPDX-License-Identifier: Apache-2.0
"""Units of what belongs to a joint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..mechanism import Joint, Limits, Mechanism


def position(joint: Joint) -> str:
    """rad or m"""
    return "m" if joint.slides else "rad"


def effort(joint: Joint) -> str:
    """N·m or N"""
    return "N" if joint.slides else "N·m"


def beyond(
    mechanism: Mechanism,
    joints: Sequence[str],
    q: Iterable[float],
    qd: Iterable[float],
    torques: Mapping[str, float],
) -> list[str]:
    """What a state and its torques take beyond the joints' limits, one line each."""
    found = []
    for name, place, rate in zip(joints, q, qd, strict=True):
        joint = mechanism.joint(name)
        ends, unit = joint.limits or Limits(), position(joint)
        if ends.lower is not None and place < ends.lower:
            found.append(f"{name}: {place:.4g} {unit} is below its limit of {ends.lower:g} {unit}")
        if ends.upper is not None and place > ends.upper:
            found.append(f"{name}: {place:.4g} {unit} is above its limit of {ends.upper:g} {unit}")
        if ends.velocity is not None and abs(rate) > ends.velocity:
            found.append(
                f"{name}: {rate:.4g} {unit}/s is beyond its limit of {ends.velocity:g} {unit}/s"
            )
    for name, tau in torques.items():
        joint = mechanism.joint(name)
        most = (joint.limits or Limits()).effort
        if most is not None and abs(tau) > most:
            unit = effort(joint)
            found.append(f"{name}: {tau:.4g} {unit} is beyond its limit of {most:g} {unit}")
    return found
