# SPDX-License-Identifier: Apache-2.0
"""The parameters of a closed chain's kernels: gravity, friction, bodies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...formulations.layout import Layout, law_values, rubbing
from ...mechanism import Friction
from ...mechanism.base_parameters import Moments
from ...scalar import Array, Floats, array
from .platform import platform_links
from .subsystems import Subsystems


class ParameterVector:
    """The vector of gravity (3,), the platform's moments (10,), the friction of its joints, and
    the parameters of the legs.

    In the model of the legs the platform's link has no body and thus no parameters; nor have the
    links added for a free platform.
    """

    def __init__(self, parts: Subsystems):
        self._parts = parts
        mechanism, tree = parts.geometry.mechanism, parts.legs.mechanism
        free = parts.geometry.free
        # links that never have a body and carry none, as regrouping moves bodies towards the base
        bare = {*platform_links(mechanism), *(free.added if free else ())}
        carrying = {
            each for link in tree.links if link.name not in bare for each in tree.path(link.name)
        }
        ends = [link for link in tree.links if link.name in bare - carrying]
        self._ends = {link.name: rubbing(link) for link in ends}
        self._legs = Layout(tree, {link.name for link in mechanism.links} - set(self._ends))
        self._before = 13 + sum(map(len, self._ends.values()))
        self.size = self._before + self._legs.size

    @property
    def content(self) -> Any:
        """Everything that is compiled into the kernels."""
        legs = self._parts.legs
        choices = (legs.method.name, legs.terms, legs.friction_smoothing, legs.rotors)
        return self._parts.geometry.content, choices, self._legs.content, self._ends

    def values(self, parts: Subsystems) -> Floats:
        """The parameter vector of a mechanism of the same geometry."""
        I = parts.body.inertia_about_origin
        body = [parts.body.mass, *parts.body.first_moment, *(I[i, j] for i, j in _ENTRIES)]
        tree = parts.legs.mechanism
        laws = [
            x
            for name, fields in self._ends.items()
            for x in law_values(tree.link(name).joint.friction, fields)
        ]
        legs = self._legs.values(tree)
        return np.array([*parts.gravity_vector, *body, *laws, *legs], dtype=float)

    def filled(self, p: Array) -> Subsystems:
        """The subsystems with these parameters (size,), of any scalar."""
        m, hx, hy, hz, xx, yy, zz, xy, xz, yz = p[3:13]
        inertia = array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        tree = self._legs.filled(p[self._before :])
        rest = iter(p[13 : self._before])
        laws = {
            name: Friction(**{field: next(rest) for field in fields})
            for name, fields in self._ends.items()
        }
        links = tuple(
            replace(link, joint=replace(link.joint, friction=laws[link.name]))
            if link.name in laws
            else link
            for link in tree.links
        )
        return replace(
            self._parts,
            gravity_vector=p[:3],
            body=Moments(m, array([hx, hy, hz]), inertia),
            legs=replace(self._parts.legs, mechanism=replace(tree, links=links)),
        )


_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
