# SPDX-License-Identifier: Apache-2.0
"""The interface of open and closed chains, on which the public dynamics are built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from numpy.typing import ArrayLike

from ..formulations.form import Form
from ..mechanism import Mechanism
from ..scalar import Floats


class Chain(Protocol):
    """A robot with its present gravity, friction and bodies: an `OpenChain` or a `ClosedChain`.

    States are (…, k), torques (…, n_m), in SI units. The functions of the same name of
    `InverseDynamics` document the arguments and errors. Kernels are built on first use and reused
    after a change of the robot, without compiling if possible.
    """

    @property
    def form(self) -> Form:
        """Whether the base is fixed or floats."""

    @property
    def mechanism(self) -> Mechanism:
        """The robot as it is now; a closed chain's home is closed, and its loose spins locked."""

    @property
    def tree(self) -> Mechanism:
        """The tree whose joints determine the complete state of the robot."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """(k,)"""

    @property
    def actuated_names(self) -> tuple[str, ...]:
        """(n_m,)"""

    @property
    def q_home(self) -> Floats:
        """q (k,) at home, rad or m."""

    @property
    def backend(self) -> str:
        """The backend of the torques, and the reason if it is not the first choice."""

    @property
    def torques(self) -> Callable[..., Floats]:
        """(q, qd, qdd, out=…) -> tau, with the least possible overhead."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """To be held during successive calls to a chain that is changed in place."""

    def share_lock(self, lock: AbstractContextManager[Any]) -> None:
        """Use this lock, if the chain is changed in place."""

    def over(self, mechanism: Mechanism) -> Chain:
        """The same robot with other gravity, friction and bodies; a chain that is changed in place
        returns itself."""

    def copy(self) -> Chain:
        """A copy without shared mutable state."""

    def at(self, q: ArrayLike, regular: bool = False) -> Configuration:
        """The robot at q (…, k).

        Args:
            q: (…, k) positions, rad or m.
            regular: whether to refuse a state too near a singularity, as for forces.
        """

    def torques_and_configuration(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
    ) -> tuple[Floats, Configuration]:
        """(the torques, the robot at this position)"""

    def mass_matrix(self, q: ArrayLike) -> Floats:
        """D (…, n_m, k)"""

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """C (…, n_m, k)"""

    def gravity(self, q: ArrayLike) -> Floats:
        """g (…, n_m)"""

    def forward(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """q̈ (…, k)"""

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ (…, 3, n_m, k)"""

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """Y (…, n_m, p)"""

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        """½ q̇ᵀ D q̇ (…,), J"""

    def potential_energy(self, q: ArrayLike) -> Floats:
        """-Σ m g·p (…,), J"""

    def pose(self, q: ArrayLike, link: str) -> Floats:
        """(…, 4, 4)"""

    def jacobian(self, q: ArrayLike, link: str) -> Floats:
        """(…, 6, k)"""


class Configuration(Protocol):
    """An open or a closed chain at one position; links are given by name."""

    @property
    def q(self) -> Floats:
        """q (…, n) of the tree's joints."""

    def pose(self, link: str) -> Floats:
        """(…, 4, 4): the link's frame in the base frame."""

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """The torques (…, n_m) that a wrench (…, 6) on the link, on base axes, provides."""

    def state(
        self, qd: ArrayLike, qdd: ArrayLike, names: Sequence[str]
    ) -> tuple[Floats, Floats, Floats]:
        """(q, qd, qdd) (…, n) of the tree's joints of these names, at rates and accelerations
        (…, k)."""

    def on_motors(self, tau: Floats, names: Sequence[str]) -> Floats:
        """The motors' torques (…, n_m, p) equivalent to torques (…, n, p) at these joints."""
