# SPDX-License-Identifier: Apache-2.0
"""Joints with several degrees of freedom as single joints with massless links between them.

| joint     | parts             | position                                                     |
|-----------|-------------------|--------------------------------------------------------------|
| universal | rx, ry            | rotation about x, then about the rotated y axis               |
| spherical | rz, ry, rx        | rx, ry, rz are roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll)  |
| planar    | x, y, rz          | translation in the plane, then rotation about its normal, z   |
| floating  | x, y, z, rz, ry, rx | translation, then rotation as for a spherical joint        |

The joint `hip` becomes `hip_rz`, `hip_ry`, `hip_rx`. The axes are those of the joint's frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..errors import DescriptionError, Place, wrong
from ..mechanism import Friction, Inertial, Joint, Limits, Link, Mechanism, Pose
from ..scalar import Array, is_zero
from .fields import unknown

PARTS: Mapping[str, tuple[str, ...]] = {
    "universal": ("rx", "ry"),
    "spherical": ("rz", "ry", "rx"),
    "planar": ("x", "y", "rz"),
    "floating": ("x", "y", "z", "rz", "ry", "rx"),
}
"""The parts of each joint, from the parent outwards: rx turns about x, x slides along x"""


def parts_of(kind: str, axes: object, where: Place) -> tuple[str, ...]:
    """The parts of a compound joint, whose rotation axes may be given in another order.

    Args:
        kind: a key of PARTS.
        axes: letters such as `zy`, from the parent outwards; None: the default ones.
        where: the joint, for messages.

    Raises:
        DescriptionError: axes that this joint cannot have.
    """
    usual = PARTS[kind]
    if axes is None:
        return usual
    turning = sum(part.startswith("r") for part in usual)
    if kind == "planar":
        raise wrong(
            DescriptionError,
            where / "axes",
            axes,
            "none: a planar joint rotates about its plane's normal",
        )
    sound = isinstance(axes, str) and not set(axes) - set("xyz") and len(set(axes)) == len(axes)
    # a repeated axis could not have a name of its own
    if not (isinstance(axes, str) and sound and len(axes) == turning):
        expected = f"{turning} different letters of x, y, z, in order from the parent"
        raise wrong(DescriptionError, where / "axes", axes, expected)
    return (*(part for part in usual if len(part) == 1), *(f"r{axis}" for axis in axes))


def left_out(joint: Joint, parts: tuple[str, ...], where: Place) -> Iterator[DescriptionError]:
    """A warning about friction given for a compound joint, which cannot be applied to its parts."""
    if any(not is_zero(value) for value in joint.friction.numbers.values()):
        names = ", ".join(f"{joint.name}_{part}" for part in parts)
        yield wrong(
            DescriptionError,
            where / "dynamics",
            "friction of the whole joint",
            f"`friction` in a YAML file next to the URDF, for {names} (this one is left out)",
        )


def split(
    link: Link,
    parts: tuple[str, ...],
    *,
    frame: Array | None = None,
    friction: Mapping[str, Friction] | None = None,
    limits: Mapping[str, Limits | None] | None = None,
) -> list[Link]:
    """The links of a compound joint; all but the last are massless.

    Args:
        link: the last link; its joint gives the name, the origin and the tail.
        parts: as from `parts_of`.
        frame: (3, 3), the axes x, y, z in the joint's frame; None: the frame's own axes.
        friction, limits: by part.
    """
    axes = np.eye(3) if frame is None else frame
    joint = link.joint
    made: list[Link] = []
    for part in parts:
        first, last = part == parts[0], part == parts[-1]
        name = f"{joint.name}_{part}"
        made.append(
            Link(
                link.name if last else name,
                link.parent if first else made[-1].name,
                replace(
                    joint,
                    name=name,
                    type="revolute" if part.startswith("r") else "prismatic",
                    origin=joint.origin if first else Pose(),
                    axis=axes[:, "xyz".index(part[-1])],
                    tail=joint.tail if last else Pose(),
                    friction=(friction or {}).get(part, Friction()),
                    limits=(limits or {}).get(part),
                    coupling=None,
                ),
                link.inertial if last else Inertial(),
                intermediate=not last,
            )
        )
    return made


def moved_from_outside(mechanism: Mechanism, joint: str, where: Place) -> Mechanism:
    """The robot carried by a floating joint, on a base with a prescribed motion.

    Args:
        mechanism: the robot with the floating joint.
        joint: name of the floating joint.
        where: the file's name, for messages.

    Raises:
        DescriptionError: no such joint, or one that does not carry the whole robot.
    """
    parts = [f"{joint}_{part}" for part in PARTS["floating"]]
    carried = {link.joint.name: link for link in mechanism.links}
    floating = [
        name.removesuffix("_x")
        for name in carried
        if all(f"{name.removesuffix('_x')}_{part}" in carried for part in PARTS["floating"])
    ]
    if any(name not in carried for name in parts):
        raise unknown(where / "base_motion" + ": floating joint", joint, floating)
    gone = [carried[name] for name in parts]
    base, body = gone[-1].name, gone[-1].inertial
    rest = tuple(link for link in mechanism.links if link not in gone)
    # links below the joint are dropped, as they are fixed to the ground
    kept = tuple(link for link in rest if base in mechanism.path(link.name))
    if beside := [link.joint.name for link in rest if link not in kept and link.joint.moves]:
        expected = f"a joint that carries the whole robot ({beside[0]} is not on it)"
        raise wrong(DescriptionError, where / "base_motion", joint, expected)
    names = {base, *(link.name for link in kept)}
    rotors = tuple(rotor for rotor in mechanism.rotors if rotor.mount in names)
    return replace(
        mechanism, links=kept, base=base, base_inertial=body, rotors=rotors, base_motion=joint
    )
