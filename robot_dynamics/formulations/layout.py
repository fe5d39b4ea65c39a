# SPDX-License-Identifier: Apache-2.0
"""The parameters of a kernel: gravity, friction and inertias as one vector of numbers."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from ..mechanism import Friction, Inertial, Link, Mechanism
from ..mechanism.base_parameters import Moments, compact
from ..mechanism.bodies import body_from, body_numbers
from ..scalar import Array, array, is_zero
from .equations import Equations

LINEAR = frozenset({"newton_euler"})
"""Formulations that use only a body's moments, which may then be regrouped"""


def shaped(equations: Equations) -> Equations:
    """The equations in the form that is compiled: regrouped if the formulation allows it."""
    if equations.method.name not in LINEAR:
        return equations
    apart = None if equations.rotors is None else compact(equations.rotors)
    return replace(equations, mechanism=compact(equations.mechanism), rotors=apart)


class Layout:
    """The positions of gravity, friction and inertias in the vector of parameters.

    gravity (3,); then, for each link that has them, its joint's friction coefficients and its
    inertial parameters in the form that the formulation uses; then the shafts' friction
    coefficients.

    Args:
        mechanism: in the form that the formulation uses.
        links: names of those that have parameters.
        bare: names of links that never have a body, and thus no inertial parameters.
    """

    def __init__(self, mechanism: Mechanism, links: Container[str], bare: Container[str] = ()):
        self._mechanism = mechanism
        self._links = [link for link in mechanism.links if link.name in links]
        # by link, the indices of its body's parameters
        self._entries = {x.name: () if x.name in bare else _entries(x) for x in self._links}
        self.size = 3 + sum(map(len, self._entries.values()))
        self.size += sum(len(friction_fields(link)) for link in self._links)
        self.size += sum(map(len, self._shafts))

    @cached_property
    def _shafts(self) -> tuple[tuple[str, ...], ...]:
        """The fields of each armature's friction."""
        laws = (armature.friction for armature in self._mechanism.armatures)
        return tuple(tuple(law.numbers) if law else () for law in laws)

    @cached_property
    def content(self) -> Any:
        """What is compiled in: the mechanism without the values of its parameters."""
        entries = self._entries
        links = [
            (x.name, x.parent, x.joint.coupling, friction_fields(x), entries[x.name])
            if x.name in entries
            else x
            for x in self._mechanism.links
        ]
        joints = [link.joint.geometry for link in self._mechanism.links]
        m = self._mechanism
        shafts = [replace(armature, friction=None) for armature in m.armatures]
        return (links, joints, m.base, m.rotors, shafts, self._shafts)

    def values(self, mechanism: Mechanism) -> Array:
        """The parameters of a mechanism of this geometry, of any scalar type.

        Raises:
            Recompile: the mechanism needs parameters that this layout does not have.
        """
        values = [*mechanism.gravity]
        for link in self._links:
            same = mechanism.link(link.name)
            values += law_values(same.joint.friction, friction_fields(link))
            values += [_numbers(same.inertial)[k] for k in self._entries[link.name]]
        shafts = [armature.friction for armature in mechanism.armatures]
        if len(shafts) != len(self._shafts):
            raise Recompile
        for law, names in zip(shafts, self._shafts, strict=True):
            if law is not None or names:
                values += law_values(law or Friction(), names)
        return array(values)

    def filled(self, p: Array) -> Mechanism:
        """The mechanism with these parameters (size,), of any scalar."""
        rest = iter(p)
        gravity = array([next(rest) for _ in range(3)])
        new: dict[str, Link] = {}
        for link in self._links:
            friction = Friction(**{name: next(rest) for name in friction_fields(link)})
            numbers: list[Any] = [0.0] * 10
            for k in self._entries[link.name]:
                numbers[k] = next(rest)
            new[link.name] = replace(
                link,
                joint=replace(link.joint, friction=friction),
                inertial=body_from(type(link.inertial), numbers),
            )
        links = tuple(new.get(link.name, link) for link in self._mechanism.links)
        armatures = tuple(
            replace(each, friction=Friction(**{name: next(rest) for name in names}))
            if names
            else each
            for each, names in zip(self._mechanism.armatures, self._shafts, strict=True)
        )
        return replace(self._mechanism, links=links, armatures=armatures, gravity=gravity)


def friction_fields(link: Link) -> tuple[str, ...]:
    """The fields of the joint's friction that are not compiled in as zero."""
    return tuple(link.joint.friction.numbers)


def law_values(law: Friction, names: Iterable[str]) -> list[Any]:
    """The coefficients of a friction law with these names.

    Raises:
        Recompile: another of its coefficients is not zero, or its smoothing, which is divided by,
            is.
    """
    names = tuple(names)
    if not set(law.numbers) <= set(names) or ("smoothing" in names and is_zero(law.smoothing)):
        raise Recompile
    own = {**asdict(law), "coulomb_negative": law.coulomb_backwards}
    return [own[name] for name in names]


class Recompile(Exception):  # noqa: N818  not an error: the caller compiles instead
    """The mechanism has a kind of friction that the kernel was not compiled for."""


def _entries(link: Link) -> tuple[int, ...]:
    """Which of a body's ten numbers may be non-zero.

    mass 0; first moment (or centre of mass) 1, 2, 3; inertia xx yy zz xy xz yz 4 … 9
    """
    if not isinstance(link.inertial, Moments):
        return tuple(range(10))
    # what regrouping leaves (see base_parameters)
    return (1, 2, 4, 6, 7, 8, 9) if link.joint.turns else (0, 1, 2, 3)


def is_bare(body: Inertial | Moments) -> bool:
    """Are all of a body's numbers zero?"""
    return all(map(is_zero, _numbers(body)))


def _numbers(body: Inertial | Moments) -> list[Any]:
    if isinstance(body, Moments):
        return body_numbers(body.mass, body.first_moment, body.inertia_about_origin)
    return body_numbers(body.mass, body.center_of_mass, body.inertia)
