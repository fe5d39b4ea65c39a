# SPDX-License-Identifier: Apache-2.0
"""The `Chain` of a robot with loops; some of its functions are those of its spanning tree.

With q̇_r = T q̇ the energies are those of the tree, Jacobians are J T, and a wrench on a link
provides the torques Tᵀ Jᵀ w.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import asdict
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..closure import ClosedChain, ConstraintForces
from ..closure.dynamics.platform import platform_links
from ..codegen.kernel import put
from ..errors import InputError, wrong
from ..formulations.options import Options
from ..mechanism import Mechanism
from ..scalar import Floats
from .chain import Chain
from .companion import Companion
from .motors import tree_state
from .open_chain import OpenChain, by_newton


class ClosedRobot(Chain):
    """A robot with loops. It is changed in place, as is its `ClosedChain`, while holding `lock`."""

    closed: ClosedChain

    def __init__(
        self, mechanism: Mechanism, options: Options, lock: AbstractContextManager[object]
    ):
        self.lock = lock
        self.closed = ClosedChain(mechanism, **asdict(options))
        # with home closed and loose joints locked
        super().__init__(self.closed.mechanism, options)
        self._tree: Companion[ClosedRobot, OpenChain] = Companion(
            lambda robot: OpenChain(robot.tree, by_newton(options)),
            lambda tree, robot: tree.over(robot.tree),
        )
        self._freed: OpenChain | None = None
        self._adopt()

    def _adopt(self) -> None:
        closed = self.closed
        self.joint_names, self.actuated_names = closed.joint_names, closed.actuated_names
        self.torques = closed.torques

    @property
    def tree(self) -> Mechanism:
        """As `Chain.tree`; with sensors the platform is free."""
        return self.closed.tree

    @property
    def home(self) -> Floats:
        """As `Chain.home`, with the loops closed."""
        return np.array(self.closed.home.q_r[: len(self.joint_names)])

    @property
    def backend(self) -> str:
        return self.closed.backend

    def over(self, mechanism: Mechanism) -> ClosedRobot:
        """Itself, changed. The caller holds the lock."""
        self.closed.update(mechanism)
        self._bind(self, mechanism)
        self._tree = self._tree.after()
        return self

    def copy(self) -> ClosedRobot:
        """As `Chain.copy`; the copy continues from this one's last state."""
        other = copy(self)
        other.closed = copy(self.closed)
        other._adopt()
        return other

    def at(self, q: ArrayLike, regular: bool = False) -> ClosedPlace:
        return self._at(
            self.closed.configuration(q) if regular else self.closed.forward_kinematics(q).q_r
        )

    def _at(self, q_r: Floats) -> ClosedPlace:
        return ClosedPlace(self.closed, self._tree.of(self), q_r)

    def solved(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Floats, ClosedPlace]:
        """As `Chain.solved`; the loops are closed only once."""
        tau, q_r = self.closed.solved(q, qd, qdd)
        return tau, self._at(q_r)

    def mass_matrix(self, q: ArrayLike) -> Floats:
        return self.closed.mass_matrix(q)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        return self.closed.coriolis_matrix(q, qd)

    def gravity(self, q: ArrayLike) -> Floats:
        return self.closed.gravity(q)

    def forward(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """As `Chain.forward`, by solving D q̈ = τ - b.

        Raises:
            InputError: the model reads sensors on passive joints.
        """
        if self.options.sensed:
            expected = "False: torques determine the motion of the actuated joints"
            raise wrong(InputError, "sensed", True, expected)
        with self.lock:
            return put(out, self.closed.forward(q, qd, tau))

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Floats:
        return self.closed.derivatives(q, qd, qdd)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Floats | None = None
    ) -> Floats:
        """As `Chain.regressor`: S Tᵀ Y_tree."""
        with self.lock:
            return put(out, self._regressor.of(self).projected(self.closed, q, qd, qdd))

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> Floats:
        with self.lock:
            return self.at(q).kinetic_energy(qd)

    def potential_energy(self, q: ArrayLike) -> Floats:
        with self.lock:
            return self.at(q).potential_energy()

    def pose(self, q: ArrayLike, link: str) -> Floats:
        with self.lock:
            return self.at(q).pose(link)

    def jacobian(self, q: ArrayLike, link: str) -> Floats:
        with self.lock:
            return self.at(q).jacobian(link)

    def constraint_forces(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: Mapping[str, Floats]
    ) -> ConstraintForces:

        def pushes(mechanism: Mechanism, q_tree: Floats) -> tuple[Floats, Floats]:
            tree = self._with_platform_free(mechanism)

            def pose(link: str) -> Floats:
                return tree.kernel("pose", link).call(q_tree)

            tau, at_P = np.zeros(1), np.zeros(6)
            on_platform = platform_links(mechanism)
            for link, wrench in wrenches.items():
                tau = tau + tree.kernel("wrench_torques", link).call(q_tree, wrench)
                if link in on_platform:
                    P = pose(str(mechanism.platform))[..., :3, 3]
                    arm = pose(link)[..., :3, 3] - P
                    moment = wrench[..., 3:] + np.cross(arm, wrench[..., :3])
                    force = np.broadcast_to(wrench[..., :3], moment.shape)
                    at_P = at_P + np.concatenate([force, moment], axis=-1)
            return tau, at_P

        with self.lock:
            return self.closed.constraint_forces(q, qd, qdd, pushes if wrenches else None)

    def _with_platform_free(self, mechanism: Mechanism) -> OpenChain:
        """The tree with the free platform. Only its geometry is used, which never changes. The
        caller holds the lock."""
        if self._freed is None:
            self._freed = OpenChain(mechanism, by_newton(self.options))
        return self._freed


class ClosedPlace:
    """A robot with loops at a configuration q_r (…, n_r) that closes them: a `Placed`."""

    def __init__(self, closed: ClosedChain, tree: OpenChain, q_r: Floats):
        self._closed, self._tree, self._q_r = closed, tree, q_r
        self._order = [closed.coordinate_names.index(name) for name in tree.joint_names]
        self.q = q_r[..., self._order]

    def kinetic_energy(self, qd: ArrayLike) -> Floats:
        """The kinetic energy (…,), J, of links, rotors and platform."""
        rates, _ = self._closed.motion(self._q_r, qd, np.zeros(len(self._closed.joint_names)))
        return self._tree.kernel("kinetic_energy").call(self.q, rates[..., self._order])

    def potential_energy(self) -> Floats:
        """The potential energy (…,), J, relative to all centres of mass at the base's origin."""
        return self._tree.kernel("potential_energy").call(self.q)

    def pose(self, link: str) -> Floats:
        """(…, 4, 4): the link's frame in the base frame."""
        return self._tree.kernel("pose", link).call(self.q)

    def jacobian(self, link: str) -> Floats:
        """J T (…, 6, k)"""
        state = self._closed.solver.state(self._q_r)
        T = state.T_q if self._closed.sensed else state.T
        J = self._tree.kernel("jacobian", link).call(self.q)
        return np.asarray(J @ T[..., self._order, :])

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """S Tᵀ Jᵀ w (…, n_m)"""
        tau = self._tree.kernel("wrench_torques", link).call(self.q, wrench)
        return np.asarray((self._on_motors[..., self._order] @ tau[..., None])[..., 0])

    def state(
        self, qd: ArrayLike, qdd: ArrayLike, names: Sequence[str]
    ) -> tuple[Floats, Floats, Floats]:
        """As `Placed.state`."""
        return tree_state(self._closed, self._q_r, qd, qdd, names)

    def on_motors(self, tau: Floats, names: Sequence[str]) -> Floats:
        """S Tᵀ τ (…, n_m)"""
        order = [self._closed.coordinate_names.index(name) for name in names]
        return np.asarray((self._on_motors[..., order] @ tau[..., None])[..., 0])

    @cached_property
    def _on_motors(self) -> Floats:
        return self._closed.on_motors(self._q_r)
