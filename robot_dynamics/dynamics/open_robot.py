# SPDX-License-Identifier: Apache-2.0
"""The `Chain` of a robot without loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..closure import ConstraintForces
from ..errors import InputError, wrong
from ..formulations.layout import Recompile
from ..formulations.options import Options
from ..inputs import as_floats
from ..mechanism import Mechanism
from ..scalar import Floats
from .chain import Chain
from .open_chain import OpenChain


class OpenRobot(Chain):
    """A robot without loops. It never changes, so it needs no lock."""

    closed = None

    def __init__(self, mechanism: Mechanism, options: Options):
        super().__init__(mechanism, options)
        if options.sensed:
            raise wrong(InputError, "sensed", True, "False: the mechanism has no loops")
        self.lock = nullcontext()
        self._adopt(OpenChain(mechanism, options, self.form))

    def _adopt(self, chain: OpenChain) -> None:
        self._chain = chain
        self.joint_names, self.actuated_names = chain.joint_names, chain.actuated_names
        self.torques = chain.torques

    @property
    def tree(self) -> Mechanism:
        """The robot itself."""
        return self.mechanism

    @property
    def home(self) -> Floats:
        return np.array([self.mechanism.home_of(name) for name in self.joint_names])

    @property
    def backend(self) -> str:
        return self._chain.backend

    def over(self, mechanism: Mechanism) -> OpenRobot:
        """As `Chain.over`; friction of another kind requires compiling."""
        other = copy(self)
        other._bind(self, mechanism)
        try:
            other._adopt(self._chain.over(mechanism))
        except Recompile:
            other._adopt(OpenChain(mechanism, self.options, self.form))
        return other

    def copy(self) -> OpenRobot:
        """Itself."""
        return self

    def at(self, q: ArrayLike, regular: bool = False) -> OpenPlace:  # noqa: ARG002
        return OpenPlace(self._chain, as_floats("q", q))

    def solved(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, OpenPlace]:
        return self.torques(q, qd, qdd), self.at(q)

    def mass_matrix(self, q: ArrayLike) -> Floats:
        return self._chain.kernel("mass_matrix").call(q)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        return self._chain.kernel("coriolis_matrix").call(q, qd)

    def gravity(self, q: ArrayLike) -> Floats:
        return self._chain.kernel("gravity").call(q)

    def forward(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: Floats | None = None
    ) -> Floats:
        call = self._chain.kernel("forward").call
        return call(q, qd, tau) if out is None else call(q, qd, tau, out=out)

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        return self._chain.kernel("derivatives").call(q, qd, qdd)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Floats | None = None
    ) -> Floats:
        return self._regressor.of(self).matrix(q, qd, qdd, out)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        return self._chain.kernel("kinetic_energy").call(q, qd)

    def potential_energy(self, q: ArrayLike) -> Floats:
        return self._chain.kernel("potential_energy").call(q)

    def pose(self, q: ArrayLike, link: str) -> Floats:
        return self._chain.kernel("pose", link).call(q)

    def jacobian(self, q: ArrayLike, link: str) -> Floats:
        return self._chain.kernel("jacobian", link).call(q)

    def constraint_forces(
        self,
        q: ArrayLike,  # noqa: ARG002
        qd: ArrayLike,  # noqa: ARG002
        qdd: ArrayLike,  # noqa: ARG002
        wrenches: Mapping[str, Floats],  # noqa: ARG002
    ) -> ConstraintForces:
        """An error, as there are no loops.

        Raises:
            InputError: always.
        """
        raise wrong(InputError, "constraint_forces", "no loops", "a robot with loops")


class OpenPlace(NamedTuple):
    """A robot without loops at q (…, n): a `Placed`."""

    chain: OpenChain
    q: Floats

    def pose(self, link: str) -> Floats:
        """(…, 4, 4)"""
        return self.chain.kernel("pose", link).call(self.q)

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """Jᵀ w (…, n)"""
        return self.chain.kernel("wrench_torques", link).call(self.q, wrench)

    def state(
        self,
        qd: ArrayLike,
        qdd: ArrayLike,
        names: Sequence[str],  # noqa: ARG002
    ) -> tuple[Floats, Floats, Floats]:
        """The state unchanged."""
        return self.q, as_floats("qd", qd), as_floats("qdd", qdd)

    def on_motors(self, tau: Floats, names: Sequence[str]) -> Floats:  # noqa: ARG002
        """The torques unchanged."""
        return tau
