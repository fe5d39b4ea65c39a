"""The equations of motion of a mechanism, over any scalar, by any formulation.

Everything that all formulations share is here once: joints that follow others, rotor models,
selected terms, friction. Closed chains are in `closure`.

    tau = D(q) qdd + C(q, qd) qd + g(q) + friction(qd)

| term       | what it is                                                        |
|------------|-------------------------------------------------------------------|
| inertia    | D(q) qdd                                                          |
| coriolis   | C(q, qd) qd                                                       |
| gravity    | g(q)                                                              |
| friction   | viscous·qd + coulomb·sign(qd), and more (see `Friction`)          |
| rotors     | the motors' rotors in the three terms above; without it: no rotor |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError, choices, wrong
from ..mechanism import Mechanism
from ..mechanism.transform import ROTOR_MODELS, with_rotor_model
from ..scalar import Array, Scalar, array, sign, tanh, zeros
from . import Formulation, formulation

TERMS = ("inertia", "coriolis", "gravity", "friction", "rotors")


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations of motion of one mechanism by one formulation. No state, no caches."""

    mechanism: Mechanism
    """In the formulation's form"""
    method: Formulation
    terms: frozenset[str]
    friction_smoothing: Scalar = 0.0
    """rad/s or m/s: sign(qd) becomes tanh(qd / it); 0: the sign itself"""

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        formulation_name: str = "newton_euler",
        rotors: str = "full",
        terms: Iterable[str] = TERMS,
        friction_smoothing: Scalar = 0.0,
    ) -> Equations:
        """Check the choices and bring the mechanism into the formulation's form."""
        method = formulation(formulation_name)
        if rotors not in ROTOR_MODELS:
            raise wrong(InputError, "rotors", rotors, choices(ROTOR_MODELS))
        chosen = frozenset([terms] if isinstance(terms, str) else terms)
        for term in chosen - set(TERMS):
            raise wrong(InputError, "terms", term, "any of " + ", ".join(TERMS))
        model = rotors if "rotors" in chosen else "none"
        tree = method.prepare(with_rotor_model(mechanism, model))
        return cls(tree, method, chosen, friction_smoothing)

    def torques(self, q: Array, qd: Array, qdd: Array) -> Array:
        """tau (n,): the chosen terms."""
        n = len(self.mechanism.joint_names)
        tau = self._rigid(
            q,
            qd if "coriolis" in self.terms else zeros(n),
            qdd if "inertia" in self.terms else zeros(n),
            gravity="gravity" in self.terms,
        )
        return tau + self.friction(qd) if "friction" in self.terms else tau

    def mass_matrix(self, q: Array) -> Array:
        """D (n, n), column by column: the torques of unit accelerations alone."""
        n = len(self.mechanism.joint_names)
        columns = [self._rigid(q, zeros(n), unit, gravity=False) for unit in np.eye(n)]
        return array(columns).reshape(n, n).T

    def bias(self, q: Array, qd: Array) -> Array:
        """C qd (n,)."""
        return self._rigid(q, qd, zeros(len(self.mechanism.joint_names)), gravity=False)

    def coriolis_matrix(self, q: Array, qd: Array) -> Array:
        """C (n, n) from Christoffel symbols, so that dD/dt - 2C is skew.

        The bias b(q, qd) is the quadratic form Σ c_ijk qd_j qd_k of the Christoffel symbols,
        so that polarisation gives the matrix from any formulation, without derivatives:
        C e_j = ¼ [b(qd + e_j) - b(qd - e_j)].
        """
        n = len(self.mechanism.joint_names)
        columns = [
            (self.bias(q, array(qd) + unit) - self.bias(q, array(qd) - unit)) / 4
            for unit in np.eye(n)
        ]
        return array(columns).reshape(n, n).T

    def gravity(self, q: Array) -> Array:
        """g (n,)."""
        n = len(self.mechanism.joint_names)
        return self._rigid(q, zeros(n), zeros(n), gravity=True)

    def friction(self, qd: Array) -> Array:
        """(n,): each joint's law at its rate; what a follower feels is its master's, by Sᵀ."""
        S, _ = self.mechanism.coordinates()
        rates = S @ array(qd)
        forces = []
        for link, rate in zip(self.mechanism.moving, rates, strict=True):
            law = link.joint.friction
            smooth = self.friction_smoothing
            direction = tanh(rate / smooth) if smooth else sign(rate)
            forces.append(law.torque(rate, direction))
        return S.T @ array(forces)

    def _rigid(self, q: Array, qd: Array, qdd: Array, *, gravity: bool) -> Array:
        """Inertia, Coriolis and gravity of tree and rotors, on the independent joints."""
        tree = self.mechanism if gravity else replace(self.mechanism, gravity=zeros(3))
        # q_tree = S q + s,  tau = Sᵀ tau_tree
        S, s = tree.coordinates()
        if not len(S):
            return zeros(0)
        q, qd, qdd = array(q), array(qd), array(qdd)
        tau = S.T @ self.method.torques(tree, S @ q + s, S @ qd, S @ qdd)
        names = tree.joint_names
        for armature in tree.armatures:
            driven = [(names.index(name), ratio) for name, ratio in armature.ratios]
            rate = sum(ratio * qdd[j] for j, ratio in driven)
            tau = array(tau)
            for j, ratio in driven:
                tau[j] = tau[j] + ratio * armature.inertia * rate
        return tau
