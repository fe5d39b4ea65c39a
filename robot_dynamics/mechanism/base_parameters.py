"""The same tree with fewer numbers in it: sparse frames and the base inertial parameters.

Source: Khalil, Kleinfinger, "Minimum operations and minimum parameters of the dynamic models
of tree structure robots", IEEE J. Robotics and Automation 3(6), 1987; Gautier, Khalil (1990).
For formulations that read `mass`, `first_moment` and `inertia_about_origin` of a link alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..scalar import Array, Scalar, array, exact, rotation_x, rotation_z, skew, zeros
from .model import Inertial, Link, Mechanism, Pose
from .transform import reframed

_PARALLEL = 1e-12
"""sin² of the angle between two axes below which they count as parallel: any frames will do"""


@dataclass(frozen=True, eq=False)
class Moments:
    """What the torques are linear in. After regrouping it need not be a body that can exist."""

    mass: Scalar
    """kg"""
    first_moment: Array
    """(3,), kg m"""
    inertia_about_origin: Array
    """(3, 3), kg m², about the link frame's origin"""

    @classmethod
    def of(cls, body: Inertial) -> Moments:
        return cls(body.mass, body.first_moment, body.inertia_about_origin)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.mass + other.mass,
            self.first_moment + other.first_moment,
            self.inertia_about_origin + other.inertia_about_origin,
        )

    def seen_from(self, pose: Pose) -> Moments:
        """The same in the frame in which its own frame has this pose."""
        R, p, m = pose.rotation, pose.translation, self.mass
        h = R @ self.first_moment
        # I' = R I Rᵀ - [p]×[h]× - [h]×[p]× - m [p]×²
        P, H = skew(p), skew(h)
        I = R @ self.inertia_about_origin @ R.T - P @ H - H @ P - m * P @ P
        return Moments(m, h + m * p, I)


def compact(mechanism: Mechanism) -> Mechanism:
    """A mechanism in standard form with sparse frames and regrouped inertial parameters.

    Its torques are the same functions of the tree coordinates. Its `Moments` stand in for
    bodies; gravity is given in the new base frame.
    """
    return regrouped(sparse_frames(mechanism))


def sparse_frames(mechanism: Mechanism) -> Mechanism:
    """Turn each frame about its z axis, and shift it along, so that the next is easy to reach.

    x points along the common normal to the next axis, and the next origin is where that normal
    meets that axis: origin = Tx(a) Tz(c) Rx(alpha) Rz(beta). Where a link carries several, this
    holds for the one that carries most. The base takes the frame of its first joint.
    """
    heirs = _heirs(mechanism)
    turn = dict.fromkeys(mechanism.index(), 0.0)
    shift = dict(turn)
    for link in mechanism.links:
        if heirs.get(link.parent) != link.name or link.parent == mechanism.base:
            continue
        d, p = link.joint.origin.rotation[:, 2], link.joint.origin.translation
        across = d[0] ** 2 + d[1] ** 2
        if across > _PARALLEL:
            turn[link.parent] = np.arctan2(d[0], -d[1])
            shift[link.name] = -(p[0] * d[0] + p[1] * d[1]) / across
        else:
            turn[link.parent] = np.arctan2(p[1], p[0])
            shift[link.name] = (shift[link.parent] - p[2]) * d[2]
    frames = {name: Pose(rotation_z(turn[name]), array([0.0, 0.0, shift[name]])) for name in turn}
    first = heirs.get(mechanism.base)
    if first is not None:
        frames[mechanism.base] = mechanism.link(first).joint.origin
    tree = reframed(mechanism, frames)

    def without_tail(link: Link) -> Link:
        # motion commutes with a turn about its own axis: motion · tail = tail · motion
        origin = link.joint.origin @ link.joint.tail
        if heirs[link.parent] == link.name:
            origin = _without_rounding(origin)
        return replace(link, joint=replace(link.joint, origin=origin, tail=Pose()))

    gravity = frames[mechanism.base].rotation.T @ mechanism.gravity
    return replace(tree, links=tuple(map(without_tail, tree.links)), gravity=gravity)


def _without_rounding(pose: Pose) -> Pose:
    """Tx(a) Tz(c) Rx(alpha) Rz(beta) with its zeros exactly zero."""
    R, p = pose.rotation, pose.translation
    alpha, beta = np.arctan2(-R[1, 2], R[2, 2]), np.arctan2(-R[0, 1], R[0, 0])
    return Pose(exact(rotation_x(alpha)) @ exact(rotation_z(beta)), array([p[0], 0.0, p[2]]))


def _heirs(mechanism: Mechanism) -> Mapping[str, str]:
    """Of the links that each link carries the one with most links behind it."""
    size = dict.fromkeys(mechanism.index(), 1)
    heirs: dict[str, str] = {}
    for link in reversed(mechanism.links):
        size[link.parent] += size[link.name]
        heir = heirs.get(link.parent)
        if heir is None or size[link.name] >= size[heir]:
            heirs[link.parent] = link.name
    return heirs


def regrouped(mechanism: Mechanism) -> Mechanism:
    """Move to the parents whatever does not feel that a joint moves.

    Mass on a turning joint's axis does not feel it turn: the mass, the first moment along the
    axis and equal I_xx and I_yy go; they leave mass, h_z and I_yy at zero. A sliding joint does
    not turn its link: the whole inertia goes.
    """
    moments = {link.name: Moments.of(link.inertial) for link in mechanism.links}
    for link in reversed(mechanism.links):
        body = moments[link.name]
        stays, goes = _parted(link, body)
        moments[link.name] = stays
        if link.parent != mechanism.base:
            moments[link.parent] += goes.seen_from(link.joint.pose(0.0))
    links = tuple(
        replace(link, inertial=cast(Inertial, moments[link.name])) for link in mechanism.links
    )
    return replace(mechanism, links=links)


def _parted(link: Link, body: Moments) -> tuple[Moments, Moments]:
    """(what stays, what goes to the parent)"""
    m, h, I = body.mass, body.first_moment, body.inertia_about_origin
    if link.joint.turns:
        goes = Moments(m, np.array([0.0, 0.0, h[2]]), np.diag([I[1, 1], I[1, 1], 0.0]))
        # written out, so that what leaves nothing leaves exactly nothing
        kept = I.copy()
        kept[0, 0], kept[1, 1] = I[0, 0] - I[1, 1], 0.0
        return Moments(0.0, np.array([h[0], h[1], 0.0]), kept), goes
    return Moments(m, h, zeros(3, 3)), Moments(0.0, zeros(3), I)
