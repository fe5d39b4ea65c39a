"""A closed robot's other quantities (energies, Jacobians, …), from those of its spanning tree.

With q̇_r = T q̇ each follows from the tree's: energies are the same, Jacobians are
J T, and a wrench on a link makes the torques Tᵀ Jᵀ w.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..closure import ClosedChain, ConstraintForces
from ..closure.dynamics.platform import platform_links
from ..errors import InputError, wrong
from ..mechanism import Mechanism
from ..scalar import Floats
from .tree import Tree


def forward(closed: ClosedChain, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Floats:
    """q̈_a (…, n_a) at torques tau (…, n_a), by D solved."""
    if closed.sensed:
        raise wrong(InputError, "sensed", True, "False: torques fix the actuated joints' motion")
    if "inertia" not in closed.subsystems.legs.terms:
        raise wrong(InputError, "terms", sorted(closed.subsystems.legs.terms), "inertia among them")
    torques = np.asarray(tau, dtype=float)
    rest = closed.torques(q, qd, np.zeros(len(closed.joint_names)))
    left = np.asarray(_fitting(torques, rest) - rest)
    D = closed.mass_matrix(q)
    if len(closed.actuated_names) > len(closed.joint_names):
        # Aᵀ τ = Q: motors that work against each other move nothing
        A_T = np.swapaxes(closed.motor_rates(closed.forward(q)), -1, -2)
        left, D = (A_T @ left[..., None])[..., 0], A_T @ D
    return np.asarray(np.linalg.solve(D, left[..., None])[..., 0])


def _fitting(tau: Floats, rest: Floats) -> Floats:
    if tau.ndim == 0 or tau.shape[-1] != rest.shape[-1]:
        raise wrong(InputError, "tau", tau.shape, f"shape (…, {rest.shape[-1]})")
    return tau


def constraint_forces(
    closed: ClosedChain,
    tree_of: Callable[[Mechanism], Tree],
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: Mapping[str, Floats],
) -> ConstraintForces:
    """See `InverseDynamics.constraint_forces`."""
    if not wrenches:
        return closed.constraint_forces(q, qd, qdd)

    def pushes(mechanism: Mechanism, q_tree: Floats) -> tuple[Floats, Floats]:
        tree = tree_of(mechanism)
        tau, at_P = np.zeros(1), np.zeros(6)
        on_platform = platform_links(mechanism)
        for link, wrench in wrenches.items():
            tau = tau + tree.wrench_torques(q_tree, link, wrench)
            if link in on_platform:
                P = tree.pose(q_tree, str(mechanism.platform))[..., :3, 3]
                arm = tree.pose(q_tree, link)[..., :3, 3] - P
                moment = wrench[..., 3:] + np.cross(arm, wrench[..., :3])
                force = np.broadcast_to(wrench[..., :3], moment.shape)
                at_P = at_P + np.concatenate([force, moment], axis=-1)
        return tau, at_P

    return closed.constraint_forces(q, qd, qdd, pushes)


class OfTree:
    """A closed robot's tree at a closed configuration q_r (…, n_r)."""

    def __init__(self, closed: ClosedChain, tree: Tree, q_r: Floats):
        self._closed, self._tree, self._q_r = closed, tree, q_r
        self._order = [closed.coordinate_names.index(name) for name in tree.chain.joint_names]
        self.q = q_r[..., self._order]

    def kinetic_energy(self, qd: ArrayLike) -> Floats:
        """J (…) at the control coordinates' rates (…, k): links, rotors and platform."""
        rates, _ = self._closed.motion(self._q_r, qd, np.zeros(len(self._closed.joint_names)))
        return self._tree.kinetic_energy(self.q, rates[..., self._order])

    def potential_energy(self) -> Floats:
        """J (…): zero where every centre of mass is at the base's origin."""
        return self._tree.potential_energy(self.q)

    def pose(self, link: str) -> Floats:
        """(…, 4, 4): the link's frame in the base."""
        return self._tree.pose(self.q, link)

    def jacobian(self, link: str) -> Floats:
        """J T (…, 6, k)"""
        state = self._closed.solver.state(self._q_r)
        T = state.T_q if self._closed.sensed else state.T
        return np.asarray(self._tree.jacobian(self.q, link) @ T[..., self._order, :])

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """S Tᵀ Jᵀ w (…, n_m)"""
        tau = self._tree.wrench_torques(self.q, link, wrench)
        return np.asarray((self._on_motors @ tau[..., None])[..., 0])

    @cached_property
    def _on_motors(self) -> Floats:
        return self._closed.on_motors(self._q_r)[..., self._order]
