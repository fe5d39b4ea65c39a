"""What may change while a closed chain's kernels run: gravity, friction, bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...formulations.layout import Layout
from ...mechanism import Friction
from ...mechanism.base_parameters import Moments
from ...scalar import Array, array
from ..geometry.functions import Floats
from .platform import platform_links
from .subsystems import Subsystems


class ParameterVector:
    """A vector: gravity (3,), the platform's moments (10,), its joint's friction (2,), the legs'.

    In the legs the platform's link has no body, so that it needs no numbers there.
    """

    def __init__(self, parts: Subsystems):
        self._parts = parts
        mechanism, tree = parts.geometry.mechanism, parts.legs.mechanism
        self._ends = [link.name for link in tree.links if link.name in platform_links(mechanism)]
        self._legs = Layout(tree, {link.name for link in mechanism.links} - set(self._ends))
        self._before = 13 + 2 * len(self._ends)
        self.size = self._before + self._legs.size

    @property
    def content(self) -> Any:
        """What is compiled in."""
        shape, legs = self._parts.geometry, self._parts.legs
        tree = shape.constraints.tree
        joints = [(link.name, link.parent, link.joint) for link in tree.links]
        target = shape.pose_constraints.loops if shape.pose_constraints else ()
        loops = (shape.constraints.loops, target, shape.constraints.coordinates)
        coordinates = (shape.names, shape.actuated, shape.sensed, shape.order)
        choices = (legs.method.name, legs.terms, legs.friction_smoothing, self._legs.content)
        return (coordinates, tree.base, joints, loops, choices)

    def values(self, parts: Subsystems) -> Floats:
        """The vector of a mechanism of the same geometry."""
        I = parts.body.inertia_about_origin
        body = [parts.body.mass, *parts.body.first_moment, *(I[i, j] for i, j in _ENTRIES)]
        tree = parts.legs.mechanism
        laws = [tree.link(name).joint.friction for name in self._ends]
        rubbing = [x for law in laws for x in (law.viscous, law.coulomb)]
        legs = self._legs.values(tree)
        return np.array([*parts.gravity_vector, *body, *rubbing, *legs], dtype=float)

    def filled(self, p: Array) -> Subsystems:
        """The subsystems with these parameters (size,), of any scalar."""
        m, hx, hy, hz, xx, yy, zz, xy, xz, yz = p[3:13]
        inertia = array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        tree = self._legs.filled(p[self._before :])
        laws = dict(zip(self._ends, p[13 : self._before].reshape(-1, 2), strict=True))
        links = tuple(
            replace(link, joint=_rubbing(link, *laws[link.name])) if link.name in laws else link
            for link in tree.links
        )
        return replace(
            self._parts,
            gravity_vector=p[:3],
            body=Moments(m, array([hx, hy, hz]), inertia),
            legs=replace(self._parts.legs, mechanism=replace(tree, links=links)),
        )


_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def _rubbing(link: Any, viscous: Any, coulomb: Any) -> Any:
    """The link's joint with other friction."""
    return replace(link.joint, friction=Friction(viscous, coulomb))
