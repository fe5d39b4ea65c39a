# SPDX-License-Identifier: Apache-2.0
"""The dynamics over any scalar, with the described parameters or with parameters as arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..closure import ClosedChain
from ..codegen.differentiate import pushforward
from ..codegen.recorder import record
from ..errors import InputError, wrong
from ..formulations import kinematics
from ..formulations.equations import Equations, polarised
from ..formulations.form import STANDING, Form
from ..formulations.forward import solved
from ..formulations.layout import shaped
from ..formulations.regressor import check_linear
from ..formulations.terms import MOTION, OF_LINKS, rotors_felt
from ..mechanism import Mechanism
from ..mechanism.dynamic_parameters import friction_shapes, standard_parameters
from ..mechanism.transform import rotors_as_links, with_rotor_model, without_bodies
from ..scalar import Array, Scalar, array, from_columns, zeros


@dataclass(frozen=True)
class Choices:
    """The options of `functions`."""

    formulation: str
    rotors: str
    terms: frozenset[str]
    friction_smoothing: float
    form: Form = STANDING

    def equations(self, mechanism: Mechanism, formulation: str | None = None) -> Equations:
        """The equations of motion in the form that is recorded.

        Args:
            mechanism: the robot.
            formulation: None: the chosen one.
        """
        name = formulation or self.formulation
        form = self.form.equations
        return shaped(form.of(mechanism, name, self.rotors, self.terms, self.friction_smoothing))

    def parameters(self, mechanism: Mechanism) -> dict[str, float]:
        """The standard parameters π by name."""
        rotors = rotors_felt(self.rotors, self.terms)
        return standard_parameters(mechanism, rotors, "friction" in self.terms)

    def regressor(
        self,
        mechanism: Mechanism,
        q: Array,
        qd: Array,
        qdd: Array,
        terms: Iterable[str] | None = None,
    ) -> tuple[tuple[str, ...], Array]:
        """(names (p,), Y (n, p)): the standard parameters' names and the regressor.

        Args:
            mechanism: the robot.
            q: (n,) positions, rad or m.
            qd: (n,) rates, rad/s or m/s.
            qdd: (n,) accelerations, rad/s² or m/s².
            terms: the terms to include; None: the chosen ones.

        Raises:
            InputError: see `check_linear`.
        """
        chosen = self.terms if terms is None else frozenset(terms)
        rotors = rotors_felt(self.rotors, self.terms)
        check_linear(mechanism, rotors, self.terms)
        shapes = array(friction_shapes(mechanism))
        model = self.form.regressor.of(mechanism, rotors, chosen, self.friction_smoothing)
        names = tuple(standard_parameters(mechanism, rotors, "friction" in chosen))
        return names, model.matrix(q, qd, qdd, mechanism.gravity, shapes)


class Described:
    """The dynamics with the mechanism's own parameters; vectors are (n,), of any scalar."""

    def __init__(self, mechanism: Mechanism, choices: Choices):
        self.mechanism, self._choices = mechanism, choices
        self._equations = equations = choices.equations(mechanism)
        self.torques = equations.torques
        self.mass_matrix = partial(choices.form.mass_matrix, equations)
        self.coriolis_matrix = partial(choices.form.coriolis_matrix, equations)
        self.gravity = equations.gravity

    def forward(self, q: Array, qd: Array, tau: Array) -> Array:
        """Forward dynamics: qdd (n,)."""
        return self._choices.form.forward(self._plain, q, qd, tau)

    def derivatives(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The derivatives of tau with respect to q, qd and qdd: (3, n, n)."""
        return self._choices.form.derivatives(self._plain, q, qd, qdd)

    @property
    def _plain(self) -> Equations:
        return self._choices.equations(self.mechanism, "newton_euler")

    def energies(self, q: Array, qd: Array) -> list[Scalar]:
        """[K, P], J."""
        # K = ½ q̇·(D q̇)
        kinetic = array(qd) @ self._equations.motion(q, zeros(len(qd)), qd) / 2
        tree = rotors_as_links(with_rotor_model(self.mechanism, self._choices.rotors))
        return [kinetic, self._choices.form.places.potential_energy(tree, q)]

    def regressor(self, q: Array, qd: Array, qdd: Array) -> tuple[tuple[str, ...], Array]:
        """(names (p,), Y (n, p)); see `Choices.regressor`."""
        return self._choices.regressor(self.mechanism, q, qd, qdd)

    def pose(self, link: str, q: Array) -> Array:
        """The pose (4, 4) of a link's frame in the base frame."""
        found: Array = self._choices.form.places.pose(self.mechanism, link, q)
        return found

    def jacobian(self, link: str, q: Array) -> Array:
        """The Jacobian J (6, n) of the origin of a link's frame, on base axes."""
        found: Array = self._choices.form.places.jacobian(self.mechanism, link, q)
        return found


class Linear:
    """The dynamics as tau = Y π, with the standard parameters π (p,) of any scalar. A mass may be
    zero, as nothing is divided by it. Rotors without effect on the torques are as described."""

    def __init__(self, mechanism: Mechanism, choices: Choices, parameters: Array):
        self._mechanism, self._choices = mechanism, choices
        self._n = len(mechanism.joint_names)
        self._pi = dict(zip(choices.parameters(mechanism), parameters, strict=True))
        # as in `Equations`: the links always move, and the weight is that of everything
        self._motion = {*OF_LINKS, *choices.terms} & {*MOTION}
        felt = rotors_felt(choices.rotors, choices.terms) != "none"
        self._unfelt = None if felt else choices.equations(without_bodies(mechanism))

    def torques(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The torques tau (n,)."""
        return self._of(self._choices.terms, q, qd, qdd)

    def gravity(self, q: Array) -> Array:
        """The gravity torques g (n,)."""
        still = zeros(self._n)
        g = self._of({"gravity"}, q, still, still)
        return g if self._unfelt is None else g + self._unfelt.gravity(q)

    def mass_matrix(self, q: Array) -> Array:
        """The inertia matrix D (n, n)."""
        n = self._n
        # D e_j: the torques for a unit acceleration alone
        columns = [self._of(self._motion, q, zeros(n), unit) for unit in np.eye(n)]
        return from_columns(columns, n)

    def coriolis_matrix(self, q: Array, qd: Array) -> Array:
        """The Coriolis matrix C (n, n)."""
        still = zeros(self._n)
        C = polarised(lambda v: self._of(self._motion, q, v, still), array(qd))
        return self._choices.form.turned(C, self.mass_matrix(q), array(qd))

    def forward(self, q: Array, qd: Array, tau: Array) -> Array:
        """Forward dynamics: qdd (n,)."""
        # D q̈ = τ - C q̇ - g - friction
        return solved(self.mass_matrix(q), array(tau) - self.torques(q, qd, zeros(self._n)))

    def _of(self, terms: Iterable[str], q: Array, qd: Array, qdd: Array) -> Array:
        names, Y = self._choices.regressor(self._mechanism, q, qd, qdd, terms)
        return array(Y @ array(self._pi[name] for name in names))


class Closed:
    """The dynamics of a mechanism with loops.

    q_r (n_r,) are the positions of all joints, with the loops closed; qd and qdd (k,) are those of
    the motors' coordinates.
    """

    def __init__(self, chain: ClosedChain, choices: Choices):
        self.chain, self._choices = chain, choices
        self._model = model = chain.model
        self.torques = model.torques
        self.mass_matrix = model.mass_matrix
        self.coriolis_matrix = model.coriolis_matrix
        self.gravity = model.gravity
        self.forward = model.forward
        self._tree = chain.tree
        self._order = [chain.coordinate_names.index(name) for name in self._tree.joint_names]

    def derivatives(self, q_r: Array, qd: Array, qdd: Array) -> Array:
        """The derivatives of tau with respect to q, qd and qdd, with the loops kept closed:
        (3, n_m, k)."""
        state = q_r, qd, qdd
        program = record(self.torques, [len(x) for x in state])
        still = [zeros(len(x)) for x in state]
        columns = []
        for unit in np.eye(len(qd)):
            # the other joints follow: dq_r = T dq
            ways = self._model.rates(q_r, unit), unit, unit
            columns += [
                pushforward(program, state, [*still[:i], way, *still[i + 1 :]])[1]
                for i, way in enumerate(ways)
            ]
        found = np.array(columns, dtype=object).reshape(len(qd), 3, -1)
        return np.moveaxis(found, 0, -1)

    def energies(self, q_r: Array, qd: Array) -> list[Scalar]:
        """[K, P], J."""
        rates = self._model.rates(q_r, qd)
        return Described(self._tree, self._choices).energies(q_r[self._order], rates[self._order])

    def regressor(self, q_r: Array, qd: Array, qdd: Array) -> tuple[tuple[str, ...], Array]:
        """(names (p,), Y (n_m, p)): the names of the tree's standard parameters and the regressor.

        Raises:
            InputError: some but not all of the terms of motion are chosen.
        """
        terms = self._choices.terms
        parts = {name in terms for name in MOTION if self._tree.rotors or name in OF_LINKS}
        if len(parts) > 1:
            expected = f"all of {', '.join(MOTION)}, or none of them"
            raise wrong(InputError, "regressor: terms", sorted(terms), expected)
        rates, accelerations = self._model.motion(q_r, qd, qdd)
        state = (each[self._order] for each in (q_r, rates, accelerations))
        names, Y = self._choices.regressor(self._tree, *state)
        # τ = Tᵀ τ_tree
        return names, self._model.on_motors(q_r)[:, self._order] @ Y

    def pose(self, link: str, q_r: Array) -> Array:
        """The pose (4, 4) of a link's frame in the base frame."""
        return kinematics.pose(self._tree, link, q_r[self._order])

    def jacobian(self, link: str, q_r: Array) -> Array:
        """The Jacobian J T (6, k) of the origin of a link's frame, on base axes."""
        J = kinematics.jacobian(self._tree, link, q_r[self._order])
        return array(J @ self._model.T(q_r)[self._order])
