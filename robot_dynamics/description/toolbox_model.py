# SPDX-License-Identifier: Apache-2.0
"""Conversion of a Robotics Toolbox DHRobot to a mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DescriptionError, wrong
from ..mechanism import Friction, Inertial, Joint, Limits, Link, Mechanism, Pose, Rotor
from ..scalar import array, exact, rotation_x, rotation_z


def made(robot: Any, where: str) -> Mechanism:
    """The mechanism of a `roboticstoolbox.DHRobot`, before `load.finished` checks it.

    q is that of the toolbox, as a link's `offset` becomes part of its frame. A motor's inertia Jm
    becomes a rotor. Friction B and Tc, which the toolbox gives at the motor, are converted to the
    joint: G² B and |G| Tc.

    Args:
        robot: the DHRobot.
        where: how messages refer to it.

    Raises:
        DescriptionError: a link that is not a DH link.
    """
    links: list[Link] = []
    rotors: list[Rotor] = []
    parent = "base"
    for k, each in enumerate(robot.links, start=1):
        if not hasattr(each, "alpha"):
            raise wrong(DescriptionError, f"{where}: link {k}", type(each).__name__, "a DHLink")
        name = each.name or f"link{k}"
        slides = bool(each.isprismatic)
        theta = 0.0 if not slides else float(each.theta)
        offset = float(each.offset or 0.0)
        # standard: Rz(θ) Tz(d) Tx(a) Rx(α); modified: Rx(α) Tx(a) Rz(θ) Tz(d)
        across = Pose(rotation_x(float(each.alpha)), array([float(each.a), 0.0, 0.0]))
        height = offset if slides else float(each.d)
        along = Pose(rotation_z(theta if slides else offset), array([0.0, 0.0, height]))
        modified = bool(each.mdh)
        origin = across if modified else Pose()
        if k == 1:
            base = np.asarray(robot.base.A, dtype=float)
            origin = Pose(exact(base[:3, :3]), array(base[:3, 3].tolist())) @ origin
        G = float(each.G or 0.0)
        direction = -1.0 if each.isflip else 1.0
        limits = None
        if each.qlim is not None:
            limits = Limits(*map(float, np.ravel(each.qlim)))
        joint = Joint(
            f"q{k}",
            "prismatic" if slides else "revolute",
            origin=origin,
            axis=array([0.0, 0.0, direction]),
            tail=along if modified else along @ across,
            friction=_friction(each, abs(G) or 1.0),
            limits=limits,
        )
        links.append(Link(name, parent, joint, _body(each)))
        if G:
            inertia = float(each.Jm or 0.0)
            body = Inertial(0.0, np.zeros(3), np.diag([0.0, 0.0, inertia]))
            rotors.append(Rotor(f"motor{k}", parent, Pose(), ((f"q{k}", G),), body))
        parent = name
    gravity = _sign_of_gravity() * np.asarray(robot.gravity, dtype=float)
    return Mechanism(
        robot.name or "robot", tuple(links), gravity=array(gravity.tolist()), rotors=tuple(rotors)
    )


def _friction(link: Any, gear: float) -> Friction:
    """The friction at the joint, in the joint's own direction."""
    forwards, backwards = float(link.Tc[0]), -float(link.Tc[1])
    negative = None if backwards == forwards else backwards
    return Friction(float(link.B), forwards, coulomb_negative=negative).at_joint(gear)


def _body(link: Any) -> Inertial:
    return Inertial(
        float(link.m or 0.0),
        array([0.0, 0.0, 0.0] if link.r is None else np.ravel(link.r).astype(float).tolist()),
        np.zeros((3, 3)) if link.I is None else np.array(link.I, dtype=float),
    )


def _sign_of_gravity() -> float:
    """1 if the toolbox's gravity vector points down, -1 if it is the opposite acceleration.

    This changed between releases, so it is determined from the force that holds a mass on a
    vertical prismatic joint.
    """
    import roboticstoolbox

    slide = roboticstoolbox.PrismaticDH(m=1.0, r=[0.0, 0.0, 0.0], I=np.zeros((3, 3)))
    held = roboticstoolbox.DHRobot([slide], gravity=[0.0, 0.0, 1.0]).rne([0.0], [0.0], [0.0])
    return -float(np.sign(np.ravel(held)[0]))
