# SPDX-License-Identifier: Apache-2.0
"""The equations of motion of a mechanism, for any scalar type, by any formulation.

This module has what all formulations share: joints that follow others, rotor models,
selected terms, friction. Closed chains are in `closure`.

    tau = D(q) qdd + C(q, qd) qd + g(q) + friction(q, qd, qdd)

`terms` defines which part of it each term is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..errors import InputError, choices, wrong
from ..mechanism import Joint, Mechanism
from ..mechanism.transform import ROTOR_MODELS, with_joints, with_rotor_model, without_bodies
from ..scalar import (
    Array,
    Note,
    Scalar,
    array,
    from_columns,
    is_zero,
    unnoticed,
    zeros,
)
from . import Formulation, formulation
from .terms import MOTION, gravity_of, motion_of, names_of_terms
from .terms import TERMS as TERMS


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations of motion of one mechanism by one formulation. No state, no caches."""

    mechanism: Mechanism
    """In the formulation's form: links and rotors, or only the links if `rotors` has the rotors"""
    method: Formulation
    terms: frozenset[str]
    friction_smoothing: Scalar = 0.0
    """ε in tanh(qd / ε), which replaces sign(qd), rad/s or m/s; 0: sign(qd) itself"""
    rotors: Mechanism | None = None
    """The rotors, on massless links, if the terms treat them differently from the links, else None;
    the base frame is that of `mechanism`, which has the gravity of both"""

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        formulation_name: str = "newton_euler",
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: Scalar = 0.0,
    ) -> Equations:
        """Check the options and convert the mechanism to the formulation's form.

        Args:
            mechanism: a tree; loops are ignored.
            formulation_name: lagrange_euler, newton_euler, gibbs_appell or murphy.
            rotors: full, reflected or none.
            terms: any of inertia, coriolis, gravity, friction, rotors.
            friction_smoothing: rate below which Coulomb friction fades to zero, rad/s or m/s.

        Raises:
            InputError: an option has none of its values.
        """
        method = formulation(formulation_name)
        if rotors not in ROTOR_MODELS:
            raise wrong(InputError, "rotors", rotors, choices(ROTOR_MODELS))
        chosen = frozenset(names_of_terms(terms))
        for term in chosen - set(TERMS):
            raise wrong(InputError, "terms", term, "any of " + ", ".join(TERMS))
        heavy = rotors != "none" and any(not r.inertial.is_nothing for r in mechanism.rotors)
        if not heavy or chosen.issuperset(MOTION):
            tree = method.prepare(with_rotor_model(mechanism, rotors))
            return cls(tree, method, chosen, friction_smoothing)
        links = method.prepare(with_rotor_model(mechanism, "none"))
        alone = method.prepare(with_rotor_model(without_bodies(mechanism), rotors))
        alone = replace(alone, gravity=zeros(3))
        return cls(links, method, chosen, friction_smoothing, alone)

    def torques(self, q: Array, qd: Array, qdd: Array, note: Note = unnoticed) -> Array:
        """The torques tau (n,) of the chosen terms, N·m or N.

        Args:
            q: (n,) positions, rad or m.
            qd: (n,) rates, rad/s or m/s.
            qdd: (n,) accelerations, rad/s² or m/s².
            note: called with the intermediate values of links and rotors; see `scalar.Note`.
        """
        terms, g = self.terms, gravity_of(self.terms, self.mechanism.gravity)
        tau = self._rigid(self.mechanism, q, *motion_of("links", terms, qd, qdd), g, note=note)
        if self.rotors is not None:
            tau = tau + self._rigid(self.rotors, q, *motion_of("rotors", terms, qd, qdd), g)
        return tau + self.friction(q, qd, qdd) if "friction" in terms else tau

    def of_links(self, q: Array, qd: Array, qdd: Array, note: Note = unnoticed) -> Array:
        """D qdd + C qd (n,) of the links, and of the rotors unless they are separate."""
        return self._rigid(self.mechanism, q, qd, qdd, zeros(3), note=note)

    def of_rotors(self, q: Array, qd: Array, qdd: Array) -> Array:
        """D qdd + C qd (n,) of separate rotors, if `terms` includes them."""
        if self.rotors is None or "rotors" not in self.terms:
            return zeros(len(self.mechanism.joint_names))
        return self._rigid(self.rotors, q, qd, qdd, zeros(3))

    def motion(self, q: Array, qd: Array, qdd: Array, note: Note = unnoticed) -> Array:
        """D qdd + C qd (n,) of the links, and of the rotors if `terms` includes them."""
        return self.of_links(q, qd, qdd, note) + self.of_rotors(q, qd, qdd)

    def mass_matrix(self, q: Array) -> Array:
        """The inertia matrix D (n, n) at q (n,), column by column from unit accelerations."""
        n = len(self.mechanism.joint_names)
        columns = [self.motion(q, zeros(n), unit) for unit in np.eye(n)]
        return from_columns(columns, n)

    def bias(self, q: Array, qd: Array) -> Array:
        """The bias torques C qd (n,) at q, qd (n,), without gravity and friction."""
        return self.motion(q, qd, zeros(len(self.mechanism.joint_names)))

    def coriolis_matrix(self, q: Array, qd: Array) -> Array:
        """The Coriolis matrix C (n, n) of Christoffel symbols at q, qd (n,): dD/dt - 2C is skew."""
        return polarised(partial(self.bias, q), array(qd))

    def gravity(self, q: Array) -> Array:
        """The gravity torques g (n,) of links and rotors at q (n,), N·m or N."""
        still = zeros(len(self.mechanism.joint_names))
        return replace(self, terms=frozenset({"gravity"})).torques(q, still, still)

    def friction(self, q: Array, qd: Array, qdd: Array | None = None) -> Array:
        """The friction torques (n,) at q, qd, qdd (n,): the friction of a follower acts on the
        joints that it follows, that of a rotor on all joints that turn it.

        Without qdd dry friction is fully developed: no joint has recently changed direction.
        """
        elements = self.mechanism.friction_rows()
        # tau = Nᵀ f(N q + s, N qd, N qdd), with a row of N for each joint and each rotor that has
        # friction
        N = array([row for row, _, _ in elements]).reshape(len(elements), len(qd))
        accelerations = zeros(len(elements)) if qdd is None else N @ array(qdd)
        forces = [
            law.torque(rate, law.heading(rate, faster, self.friction_smoothing), place + shift)
            for (_, shift, law), place, rate, faster in zip(
                elements, N @ array(q), N @ array(qd), accelerations, strict=True
            )
        ]
        tau: Array = N.T @ array(forces)
        return tau

    def smoothed(self, rate: Scalar) -> Equations:
        """The same equations with another `friction_smoothing`, rad/s or m/s."""
        return replace(self, friction_smoothing=rate)

    @property
    def developed(self) -> Equations:
        """The same equations without presliding: dry friction is always fully developed."""

        def without_presliding(joint: Joint) -> Joint:
            return replace(joint, friction=replace(joint.friction, presliding=0.0))

        return replace(self, mechanism=with_joints(self.mechanism, without_presliding))

    def _rigid(
        self,
        tree: Mechanism,
        q: Array,
        qd: Array,
        qdd: Array,
        gravity: Array,
        *,
        note: Note = unnoticed,
    ) -> Array:
        """Inertia, Coriolis and gravity of a tree and its rotors, on the independent joints."""
        tree = replace(tree, gravity=gravity)
        # q_tree = S q + s,  tau = Sᵀ tau_tree
        S, s = tree.coordinates()
        if not len(S):
            return zeros(0)
        q, qd, qdd = array(q), array(qd), array(qdd)
        tau = list(S.T @ self.method.torques(tree, S @ q + s, S @ qd, S @ qdd, note))
        names = tree.joint_names
        for armature in tree.armatures:
            if is_zero(armature.inertia):
                continue
            driven = [(names.index(name), ratio) for name, ratio in armature.ratios]
            rate = sum(ratio * qdd[j] for j, ratio in driven)
            for j, ratio in driven:
                tau[j] = tau[j] + ratio * armature.inertia * rate
        return array(tau)


def polarised(bias: Callable[[Array], Array], qd: Array) -> Array:
    """The Coriolis matrix C (n, n) of a bias b(qd) (n,) by any formulation, without derivatives.

    The bias is the quadratic form Σ c_ijk qd_j qd_k of the Christoffel symbols, so its polarisation
    C e_j = ¼ [b(qd + e_j) - b(qd - e_j)] is their matrix.
    """
    columns = [(bias(qd + unit) - bias(qd - unit)) / 4 for unit in np.eye(len(qd))]
    return from_columns(columns, len(qd))
