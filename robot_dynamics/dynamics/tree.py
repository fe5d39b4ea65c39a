# SPDX-License-Identifier: Apache-2.0
"""Further compiled functions of a robot: derivatives, forward dynamics, energies, link poses. For a
closed robot they are those of its spanning tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Function, Kernel
from ..errors import InputError, choices, wrong
from ..mechanism import Inertial, Mechanism
from ..mechanism.transform import lumped, rotors_as_links, with_rotor_model
from ..scalar import Array, Floats, array
from .inputs import Options
from .open_chain import FloatingChain, OpenChain


class Tree:
    """A tree of links over floats. It never changes, so any thread may use it.

    Args:
        mechanism: the robot; its loops are left open.
        options: those of `InverseDynamics`, except that the formulation is always newton_euler.
    """

    chains: ClassVar[type[OpenChain]] = OpenChain

    def __init__(self, mechanism: Mechanism, options: Options):
        self.chain = self.chains.by(replace(options, formulation="newton_euler"), mechanism)
        self._terms = frozenset(options.terms)
        self._rotors = options.rotors
        self._options = (options.backend, options.threads)
        self._mechanism = mechanism
        self._built: dict[Any, Kernel] = {}  # shared with every tree that `over` returns
        self._bound: dict[str, Kernel] = {}

    def over(self, mechanism: Mechanism) -> Tree:
        """The same tree with the gravity, friction and inertias of another mechanism.

        Args:
            mechanism: of the same geometry.
        """
        other = copy(self)
        other.chain = self.chain.over(mechanism)
        other._mechanism, other._bound = mechanism, {}
        return other

    # --- dynamics ---------------------------------------------------------------------------

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n, n)"""
        return self.chain.kernel("derivatives").call(q, qd, qdd)

    def forward(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """q̈ (…, n)"""
        if "inertia" not in self._terms:
            raise wrong(InputError, "terms", sorted(self._terms), "inertia among them")
        call = self.chain.kernel("forward").call
        return call(q, qd, tau) if out is None else call(q, qd, tau, out=out)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """½ q̇ᵀ D q̇ (…,), J"""
        return self.chain.kernel("kinetic_energy").call(q, qd)

    def potential_energy(self, q: ArrayLike) -> Floats:
        """-Σ m g·p (…,), J"""
        if "potential_energy" not in self._bound:
            self._bound["potential_energy"] = self._potential_energy()
        return self._bound["potential_energy"].call(q)

    def _potential_energy(self) -> Kernel:
        tree = rotors_as_links(with_rotor_model(self._mechanism, self._rotors))
        bodies = lumped(tree)
        numbers = [x for b in bodies.links for x in (b.inertial.mass, *b.inertial.first_moment)]

        def equations(q: Array, p: Array) -> Iterable[Any]:
            links = tuple(
                replace(link, inertial=_Mass(m, array(h)))  # type: ignore[arg-type]
                for link, (m, *h) in zip(bodies.links, p[3:].reshape(-1, 4), strict=True)
            )
            bound = replace(bodies, links=links, gravity=p[:3])
            return [self.chains.form.places.potential_energy(bound, q)]

        values = [*tree.gravity, *numbers]
        if "potential_energy" not in self._built:
            function = Function(
                "potential_energy", ("q",), (self.chain.positions,), (), len(values),
                equations, (_geometry(bodies), type(self)), tree.name,
            )  # fmt: skip
            self._built["potential_energy"] = Kernel(function, values, *self._options)
        return self._built["potential_energy"].at(values)

    # --- kinematics -------------------------------------------------------------------------

    def pose(self, q: ArrayLike, link: str) -> Floats:
        """(…, 4, 4): the link's frame in the base frame."""
        return self._of_link("pose", None, (4, 4), link).call(q)

    def jacobian(self, q: ArrayLike, link: str) -> Floats:
        """J (…, 6, n) of the link: [ṗ; ω] = J q̇."""
        n = len(self.chain.joint_names)
        return self._of_link("jacobian", None, (6, n), link).call(q)

    def wrench_torques(self, q: ArrayLike, link: str, wrench: ArrayLike) -> Floats:
        """Jᵀ w (…, n) of a wrench w (…, 6) on a link."""

        n = len(self.chain.joint_names)

        def joint_torques(mechanism: Mechanism, link: str, q: Array, wrench: Array) -> Array:
            return array(self.chains.form.places.jacobian(mechanism, link, q).T @ wrench)

        sizes = (self.chain.positions, 6)
        kernel = self._of_link("wrench", joint_torques, (n,), link, ("q", "wrench"), sizes)
        return kernel.call(q, wrench)

    def _of_link(
        self,
        name: str,
        function: Callable[..., Array] | None,
        shape: tuple[int, ...],
        link: str,
        arguments: tuple[str, ...] = ("q",),
        sizes: tuple[int, ...] | None = None,
    ) -> Kernel:
        """The kernel of a function of one link; if `function` is None, the form's of this name."""
        kernel = self._built.get((name, link))
        if kernel is not None:
            return kernel
        mechanism = self._mechanism
        if link not in mechanism.index():
            raise wrong(InputError, "link", link, choices(mechanism.index()))
        function = function or getattr(self.chains.form.places, name)
        made = Function(
            name, arguments, sizes or (self.chain.positions,), shape, 0,
            lambda *vectors: np.ravel(function(mechanism, link, *vectors[:-1])),
            (_geometry(mechanism), link, type(self)), mechanism.name,
        )  # fmt: skip
        # two threads may both get here: they build the same kernel
        self._built[name, link] = Kernel(made, (), *self._options)
        return self._built[name, link]


class FloatingTree(Tree):
    """The same functions for a tree on six joints: q is (…, n + 1), axes are the world's."""

    chains = FloatingChain


class _Mass:
    """The part of a body that determines its potential energy."""

    def __init__(self, mass: Any, first_moment: Array):
        self.mass, self.first_moment = mass, first_moment


def _geometry(mechanism: Mechanism) -> Any:
    """The links and the base without bodies, friction and limits."""
    links = (replace(x, inertial=Inertial(), joint=x.joint.geometry) for x in mechanism.links)
    return (tuple(links), mechanism.base)
