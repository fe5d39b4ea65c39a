# SPDX-License-Identifier: Apache-2.0
"""A mechanism with symbols of a ring in place of numbers, and its equations as polynomials."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from ..formulations import lagrange_euler
from ..formulations.equations import Equations
from ..formulations.lagrange_euler import Steps
from ..mechanism import Inertial, Link, Mechanism
from ..mechanism.transform import standard_form
from ..scalar import Array, array, from_columns
from .polynomial import BITS, Polynomial, Ring
from .short import Writer
from .symbolic_parameters import Letters, Task, symbolic_mechanism


class PolynomialModel:
    """The equations of a tree as polynomials, which `writer` converts to SymPy expressions."""

    def __init__(self, task: Task):
        self.ring = ring = Ring()
        self.q = array(ring.letter("coordinate", x) for x in task.q)
        self.qd, self.qdd = (array(ring.letter("rate", x) for x in s) for s in (task.qd, task.qdd))
        letters = Letters(ring, task.known)
        self.mechanism = symbolic_mechanism(task.mechanism, letters, letters.rotation)
        self.writer = Writer(ring, absolute(task.mechanism, ring, self.q))
        # friction is not a polynomial
        self.terms = task.terms - {"friction"}
        lumped = _lumped(self.mechanism, self.writer) if task.known.symbols else self.mechanism
        self.equations = [
            Equations.of(layer, task.formulation, task.rotors, self.terms)
            for layer in layers(lumped, task.rotors)
        ]

    def torques(self) -> Array:
        """The torques (n,) of the chosen terms except friction."""
        return self._torques

    @cached_property
    def _torques(self) -> Array:
        return self._sum(lambda each: each.torques(self.q, self.qd, self.qdd))

    def mass_matrix(self) -> Array:
        """The inertia matrix D (n, n)."""
        if not self.terms >= {"inertia", "rotors"}:
            return self._sum(lambda each: each.mass_matrix(self.q))
        # d_ij is the factor of q̈_j
        columns = [[_before(tau, x) for tau in self._torques] for x in self.qdd]
        return from_columns(columns, len(self.q))

    def gravity(self) -> Array:
        """The gravity torques g (n,)."""
        if "gravity" not in self.terms:
            return self._sum(lambda each: each.gravity(self.q))
        rates = {self.ring.slot(x) for x in (*self.qd, *self.qdd)}
        return array(_without(tau, rates) for tau in self._torques)

    def _sum(self, function: Callable[[Equations], Array]) -> Array:
        return reduce(add, map(function, self.equations))

    def local(self, model: str) -> list[tuple[int, Array]]:
        """(index of the parent, pose (4, 4) of the link's frame in its parent's) of each link of
        Lagrange–Euler's tree; the parent's index is -1 for the base.

        Args:
            model: the rotor model: full, reflected or none.
        """
        tree = Equations.of(layers(self.mechanism, model)[0], "lagrange_euler", model).mechanism
        S, s = tree.coordinates()
        q, index = S @ self.q + s, tree.index()
        return [
            (index[link.parent], link.joint.pose(q[i]).homogeneous())
            for i, link in enumerate(tree.links)
        ]

    def steps(self, model: str) -> Steps:
        """Steps L-E 2 to L-E 9 for the whole robot.

        Args:
            model: the rotor model: full, reflected or none.
        """
        found: Steps | None = None
        for layer in layers(self.mechanism, model):
            tree = Equations.of(layer, "lagrange_euler", model).mechanism
            S, s = tree.coordinates()
            here = lagrange_euler.steps(tree, S @ self.q + s)
            found = here if found is None else _both(found, here)
        assert found is not None
        return found


def _before(polynomial: Any, letter: Polynomial) -> Any:
    """The factor of a letter in a polynomial that is linear in this letter."""
    if not isinstance(polynomial, Polynomial):
        return 0.0
    ring, slot = polynomial.ring, letter.ring.slot(letter)
    one = 1 << (BITS * slot)
    terms = polynomial.terms.items()
    return Polynomial(ring, {k - one: v for k, v in terms if ring.exponent(k, slot)})


def _without(polynomial: Any, slots: set[int]) -> Any:
    """The terms without any of these letters."""
    if not isinstance(polynomial, Polynomial):
        return polynomial
    ring, terms = polynomial.ring, polynomial.terms.items()
    return Polynomial(
        ring, {k: v for k, v in terms if not any(s in slots for s, _ in ring.exponents(k))}
    )


def _both(a: Steps, b: Steps) -> Steps:
    """The steps of two layers together: their bodies are on the same links, so J, D, h and C add
    up."""
    place = [a.names.index(name) for name in b.names]
    J, D, h, C = (np.array(each, dtype=object) for each in (a.J, a.D, a.h, a.C))
    for i, row in enumerate(place):
        J[row] = J[row] + b.J[i]
        C[row] = C[row] + b.C[i]
        for j, column in enumerate(place):
            D[row, column] = D[row, column] + b.D[i, j]
            for k, other in enumerate(place):
                h[row, column, other] = h[row, column, other] + b.h[i, j, k]
    return replace(a, J=J, D=D, h=h, C=C)


def layers(mechanism: Mechanism, rotors: str = "full") -> list[Mechanism]:
    """The robot as several mechanisms with one body for each moving link, whose torques add up.

    They are kept apart because the common centre of mass of two bodies is not a polynomial.

    Args:
        mechanism: the whole robot.
        rotors: the rotor model: full, reflected or none.
    """
    carriers = mechanism.carriers()
    bodies: dict[str, list[str]] = {}
    for link in mechanism.links:
        if not link.inertial.is_nothing:
            bodies.setdefault(carriers[link.name][0], []).append(link.name)

    def only(names: Iterable[str]) -> tuple[Link, ...]:
        kept = set(names)
        return tuple(
            link if link.name in kept else replace(link, inertial=Inertial())
            for link in mechanism.links
        )

    count = max([len(names) for names in bodies.values()], default=0)
    found = [
        replace(
            mechanism,
            links=only(names[k] for names in bodies.values() if k < len(names)),
            rotors=mechanism.rotors if k == 0 and rotors == "full" else (),
            armatures=mechanism.armatures if k == 0 else (),
        )
        for k in range(max(count, 1))
    ]
    if rotors == "reflected":
        found += [
            replace(mechanism, links=only(()), rotors=(rotor,), armatures=())
            for rotor in mechanism.rotors
        ]
    return found


def _lumped(mechanism: Mechanism, writer: Writer) -> Mechanism:
    """The mechanism with centres of mass measured from the joint, with one letter for a1 + c_x1 if
    the link's DH frame is at its far end: squares of this sum then stay squares."""

    def link(old: Link) -> Link:
        tail = old.joint.tail
        a, c = tail.translation[0], old.inertial.center_of_mass[0]
        both = isinstance(a, Polynomial) and isinstance(c, Polynomial)
        along = not isinstance(tail.rotation[0, 0], Polynomial) and tail.rotation[0, 0] == 1
        if not both or not along:
            return old
        total = writer.plain(a + c)
        if not total.is_Add or not {*total.args} >= {writer.plain(a), writer.plain(c)}:
            return old  # the sum is shorter in the description's own symbols
        letter = writer.ring.letter("parameter", total)
        center = array([letter - a, *old.inertial.center_of_mass[1:]])
        return replace(old, inertial=replace(old.inertial, center_of_mass=center))

    return replace(mechanism, links=tuple(link(each) for each in mechanism.links))


def absolute(
    mechanism: Mechanism, ring: Ring, q: Iterable[Polynomial]
) -> dict[int, dict[int, int]]:
    """The absolute angle of each revolute joint's link, as {slot: multiple}: the joint's own angle
    plus those of the joints before it with parallel axes."""
    tree = standard_form(mechanism)
    slot = {}
    for name, letter in zip(tree.joint_names, q, strict=True):
        ((key, _),) = letter.terms.items()
        ((slot[name], _),) = ring.exponents(ring.unit(key, 1 + 0j)[0])
    found: dict[str, dict[int, int]] = {}
    for link in tree.links:
        joint = link.joint
        if not joint.turns or joint.coupling is not None:
            continue
        own = {slot[joint.name]: 1}
        facing = joint.origin.rotation[2, 2]
        if link.parent in found and abs(abs(facing) - 1) < 1e-12:
            own |= {s: k * round(facing) for s, k in found[link.parent].items()}
        found[link.name] = own
    return {max(own): own for own in found.values()}
