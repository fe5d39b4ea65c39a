# SPDX-License-Identifier: Apache-2.0
"""The dynamics over any scalar, with the described parameters or with parameters as arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..chains.open_chain import OpenChain
from ..closure import ClosedChain
from ..codegen.differentiate import slopes
from ..codegen.recorder import record
from ..errors import InputError, wrong
from ..formulations import kinematics
from ..formulations.equations import polarised
from ..formulations.form import Form
from ..formulations.forward import solved
from ..formulations.options import Options
from ..formulations.regressor import check_linear
from ..formulations.terms import MOTION, OF_LINKS
from ..mechanism import Mechanism
from ..mechanism.dynamic_parameters import friction_shapes, standard_parameters
from ..mechanism.transform import without_bodies
from ..scalar import Array, Scalar, array, from_columns, zeros


@dataclass(frozen=True)
class Choices:
    """The options of `functions`."""

    options: Options
    form: Form

    def chain(self, mechanism: Mechanism) -> OpenChain:
        """The functions of a tree."""
        return OpenChain(mechanism, self.options, self.form)

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
        options = self.options
        chosen, rotors = (
            frozenset(options.terms if terms is None else terms),
            options.effective_rotors,
        )
        check_linear(mechanism, rotors, chosen)
        shapes = array(friction_shapes(mechanism))
        model = self.form.regressor.of(mechanism, rotors, chosen, options.friction_smoothing)
        names = tuple(standard_parameters(mechanism, rotors, "friction" in chosen))
        return names, model.matrix(q, qd, qdd, mechanism.gravity, shapes)


class Described:
    """The dynamics with the mechanism's own parameters; vectors are (n,), of any scalar."""

    def __init__(self, mechanism: Mechanism, choices: Choices):
        self._mechanism, self._choices = mechanism, choices
        self._chain = choices.chain(mechanism)

    def of(self, name: str, link: str = "") -> Callable[..., Any]:
        """One of the functions, by its name in `Functions`."""
        if name == "regressor":
            return lambda *state: self._choices.regressor(self._mechanism, *state)[1]
        if name != "energies":
            return self._chain.equations(name, link)
        kinetic, potential = map(self._chain.equations, ("kinetic_energy", "potential_energy"))
        # [K, P], J
        return lambda q, qd: [kinetic(q, qd).item(), potential(q).item()]


class Linear:
    """The dynamics as tau = Y π, with the standard parameters π (p,) of any scalar. A mass may be
    zero, as nothing is divided by it. Rotors without effect on the torques are as described."""

    def __init__(self, mechanism: Mechanism, choices: Choices, parameters: Array):
        self._mechanism, self._choices = mechanism, choices
        self._n = len(mechanism.joint_names)
        self._pi = dict(zip(choices.options.parameters(mechanism), parameters, strict=True))
        # as in `Equations`: the links always move, and the weight is that of everything
        self._motion = {*OF_LINKS, *choices.options.terms} & {*MOTION}
        present = choices.options.effective_rotors != "none"
        self._bodiless = None if present else choices.chain(without_bodies(mechanism))

    def of(self, name: str, _link: str = "") -> Callable[..., Any]:
        """One of the functions, by its name in `Functions`."""
        function: Callable[..., Any] = getattr(self, name)
        return function

    def torques(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The torques tau (n,)."""
        return self._of(self._choices.options.terms, q, qd, qdd)

    def gravity(self, q: Array) -> Array:
        """The gravity torques g (n,)."""
        still = zeros(self._n)
        g = self._of({"gravity"}, q, still, still)
        return g if self._bodiless is None else g + self._bodiless.equations("gravity")(q)

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
        self._choices, self._model = choices, chain.model
        self._names, self._tree = tuple(choices.options.parameters(chain.mechanism)), chain.tree
        self._order = [chain.coordinate_names.index(name) for name in self._tree.joint_names]

    def of(self, name: str, link: str = "") -> Callable[..., Any]:
        """One of the functions, by its name in `Functions`: of this class, or of `ClosedModel`."""
        function = getattr(self if hasattr(self, name) else self._model, name)
        return partial(function, link) if link else function

    def derivatives(self, q_r: Array, qd: Array, qdd: Array) -> Array:
        """The derivatives of tau with respect to q, qd and qdd, with the loops kept closed:
        (3, n_m, k)."""
        state = q_r, qd, qdd
        program = record(self._model.developed.torques, [len(x) for x in state])
        # the other joints follow: dq_r = T dq
        columns = [
            slopes(program, state, (self._model.rates(q_r, unit), unit, unit))
            for unit in np.eye(len(qd))
        ]
        return np.moveaxis(np.array(columns, dtype=object), 0, -1)

    def energies(self, q_r: Array, qd: Array) -> list[Scalar]:
        """[K, P], J."""
        rates = self._model.rates(q_r, qd)
        of_tree = Described(self._tree, self._choices).of("energies")
        found: list[Scalar] = of_tree(q_r[self._order], rates[self._order])
        return found

    def regressor(self, q_r: Array, qd: Array, qdd: Array) -> Array:
        """Y (n_m, p) of the described standard parameters, as the tree may have more.

        Raises:
            InputError: some but not all of the terms of motion are chosen.
        """
        terms = self._choices.options.terms
        parts = {name in terms for name in MOTION if self._tree.rotors or name in OF_LINKS}
        if len(parts) > 1:
            expected = f"all of {', '.join(MOTION)}, or none of them"
            raise wrong(InputError, "regressor: terms", sorted(terms), expected)
        rates, accelerations = self._model.motion(q_r, qd, qdd)
        state = (each[self._order] for each in (q_r, rates, accelerations))
        names, Y = self._choices.regressor(self._tree, *state)
        # τ = Tᵀ τ_tree
        wanted = [names.index(name) for name in self._names]
        return array(self._model.on_motors(q_r)[:, self._order] @ Y[:, wanted])

    def pose(self, link: str, q_r: Array) -> Array:
        """The pose (4, 4) of a link's frame in the base frame."""
        return kinematics.pose(self._tree, link, q_r[self._order])

    def jacobian(self, link: str, q_r: Array) -> Array:
        """The Jacobian J T (6, k) of the origin of a link's frame, on base axes."""
        J = kinematics.jacobian(self._tree, link, q_r[self._order])
        return array(J @ self._model.T(q_r)[self._order])
