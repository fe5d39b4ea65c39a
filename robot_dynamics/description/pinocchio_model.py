# SPDX-License-Identifier: Apache-2.0
"""Conversion of Pinocchio's models to a mechanism.

Joints keep their names and their order, which is that of Pinocchio's v; `unbounded` joints become
continuous (with one angle for Pinocchio's cosine and sine). Bodies are those of `model.inertias`;
frames of type BODY become links on fixed joints. Torques are those of `pin.rnea`, including
armature; `friction` and `damping`, which `pin.rnea` ignores, become the joints' friction. Those of
joints with several degrees of freedom are left out with a warning.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DescriptionError, wrong
from ..mechanism import Armature, Friction, Inertial, Joint, Limits, Link, Mechanism, Pose
from ..mechanism.mechanism import new_name
from ..scalar import array, exact
from .compound import PARTS, split
from .fields import tolerate

AXES = {letter: np.eye(3)[k] for k, letter in enumerate("XYZ")}
COMPOUND = {
    "JointModelFreeFlyer": PARTS["floating"],
    "JointModelSpherical": PARTS["spherical"],
    "JointModelSphericalZYX": PARTS["spherical"],
    "JointModelPlanar": PARTS["planar"],
    "JointModelTranslation": ("x", "y", "z"),
}
"""Joints with several degrees of freedom, and the parts that they become"""
SIMPLE = {
    "JointModelR": "revolute",
    "JointModelRevoluteUnaligned": "revolute",
    "JointModelRUB": "continuous",
    "JointModelRevoluteUnboundedUnaligned": "continuous",
    "JointModelP": "prismatic",
    "JointModelPrismaticUnaligned": "prismatic",
}


def made(model: Any, where: str, strict: bool = False) -> Mechanism:
    """The mechanism of a `pinocchio.Model`, before `load.finished` checks it.

    Args:
        model: the model.
        where: how messages refer to it.
        strict: raise an error instead of warnings.

    Raises:
        DescriptionError: a joint of an unsupported kind, by name.

    Warns:
        DescriptionWarning: armature, friction or damping that is left out.
    """
    names = list(model.names)
    bodies = [frame for frame in model.frames if frame.type.name == "BODY"]
    # a joint's link gets the name of the first body on it whose frame is the joint's own
    links_of = ["universe", *(f"{name}_link" for name in names[1:])]
    own: dict[int, Any] = {}
    for frame in bodies:
        if frame.parentJoint not in own and frame.placement.isIdentity(0.0):
            own[frame.parentJoint] = frame
            links_of[frame.parentJoint] = frame.name
    links: list[Link] = []
    armatures: list[Armature] = []
    for k in range(1, model.njoints):
        origin, parent = _pose(model.jointPlacements[k]), links_of[model.parents[k]]
        body, joint = _body(model.inertias[k]), model.joints[k]
        kind = joint.shortname()
        if kind in COMPOUND:
            for field in ("armature", "friction", "damping"):
                values = getattr(model, field)[joint.idx_v : joint.idx_v + joint.nv]
                if np.any(values):
                    at = f"{where}: joint {names[k]!r}: {field}"
                    expected = "none: it is left out"
                    tolerate(wrong(DescriptionError, at, values.tolist(), expected), strict)
            whole = Joint(names[k], "revolute", origin=origin)
            links += split(Link(links_of[k], parent, whole, body), COMPOUND[kind])
            continue
        links.append(Link(links_of[k], parent, _joint(model, k, origin, where), body))
        inertia = float(model.armature[joint.idx_v])
        if inertia:
            armatures.append(Armature(((names[k], 1.0),), inertia))
    taken = {link.joint.name for link in links}
    for frame in bodies:
        if frame in own.values():
            continue
        name = new_name(f"{frame.name}_fixed", taken, "_")
        fixed = Joint(name, "fixed", origin=_pose(frame.placement))
        links.append(Link(frame.name, links_of[frame.parentJoint], fixed))
    gravity = array(np.asarray(model.gravity.linear, dtype=float).tolist())
    return Mechanism(
        model.name or "robot", tuple(links), base=links_of[0], gravity=gravity,
        armatures=tuple(armatures),
    )  # fmt: skip


def _joint(model: Any, k: int, origin: Pose, where: str) -> Joint:
    """A joint with one degree of freedom."""
    joint, name = model.joints[k], model.names[k]
    kind = joint.shortname()
    letter = kind[-1]
    if kind in SIMPLE:
        type_here, axis = SIMPLE[kind], np.asarray(joint.extract().axis, dtype=float)
    elif kind[:-1] in SIMPLE and letter in AXES:
        type_here, axis = SIMPLE[kind[:-1]], AXES[letter]
    else:
        known = [*(f"{each}X, …" for each in SIMPLE if each[-1] in "RBP"), *COMPOUND]
        raise wrong(DescriptionError, f"{where}: joint {name!r}: kind", kind, ", ".join(known))
    v, place = joint.idx_v, joint.idx_q

    def bound(values: Any, at: int) -> float | None:
        # an unknown limit is inf, or the largest double, in Pinocchio
        value = float(values[at])
        return value if abs(value) < np.finfo(float).max else None

    continuous = type_here == "continuous"
    limits = Limits(
        None if continuous else bound(model.lowerPositionLimit, place),
        None if continuous else bound(model.upperPositionLimit, place),
        bound(model.velocityLimit, v),
        bound(model.effortLimit, v),
    )
    friction = Friction(float(model.damping[v]), float(model.friction[v]))
    return Joint(name, type_here, origin=origin, axis=array(axis.tolist()), friction=friction,
                 limits=limits)  # fmt: skip


def _pose(placement: Any) -> Pose:
    return Pose(exact(np.array(placement.rotation)), array(placement.translation.tolist()))


def _body(inertia: Any) -> Inertial:
    if inertia.mass == 0 and not np.any(inertia.inertia):
        return Inertial()
    return Inertial(
        float(inertia.mass), array(inertia.lever.tolist()), np.array(inertia.inertia, dtype=float)
    )
