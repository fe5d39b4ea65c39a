# SPDX-License-Identifier: Apache-2.0
"""A closed chain at one position; some of its functions are those of its spanning tree.

With q̇_r = T q̇ the energies are those of the tree, Jacobians are J T, and a wrench on a link
provides the torques Tᵀ Jᵀ w.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...chains.open_chain import OpenChain
from ...scalar import Floats


class ClosedConfiguration:
    """A closed chain at a configuration q_r (…, n_r) that closes its loops: a `Configuration`.

    Args:
        chain: the `ClosedChain`.
        tree: its tree.
        q_r: (…, n_r) positions of all joints, rad or m.
    """

    def __init__(self, chain: Any, tree: OpenChain, q_r: Floats):
        self._chain, self._tree, self._q_r = chain, tree, q_r
        self._names = tree.joint_names
        self._order: list[int] = chain.tree_columns

    @property
    def q(self) -> Floats:
        """q (…, n) of the tree's joints."""
        return self._q_r[..., self._order]

    def _columns(self, names: Sequence[str]) -> list[int]:
        """The indices of joints in q_r."""
        if names == self._names:
            return self._order
        return [self._chain.coordinate_names.index(name) for name in names]

    def kinetic_energy(self, qd: ArrayLike) -> Floats:
        """The kinetic energy (…,), J, of links, rotors and platform."""
        rates, _ = self._chain.motion(self._q_r, qd, np.zeros(len(self._chain.joint_names)))
        return self._tree.kinetic_energy(self.q, rates[..., self._order])

    def potential_energy(self) -> Floats:
        """The potential energy (…,), J, relative to all centres of mass at the base's origin."""
        return self._tree.potential_energy(self.q)

    def pose(self, link: str) -> Floats:
        """(…, 4, 4): the link's frame in the base frame."""
        return self._tree.pose(self.q, link)

    def jacobian(self, link: str) -> Floats:
        """J T (…, 6, k)"""
        state = self._chain.closer.state(self._q_r)
        T = state.T_q if self._chain.sensed else state.T
        return np.asarray(self._tree.jacobian(self.q, link) @ T[..., self._order, :])

    def joint_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """Jᵀ w (…, n) of the tree's joints."""
        return self._tree.kernel("wrench_torques", link).call(self.q, wrench)

    def wrench_torques(self, link: str, wrench: ArrayLike) -> Floats:
        """S Tᵀ Jᵀ w (…, n_m)"""
        tau = self.joint_torques(link, wrench)
        return self.on_motors(tau[..., None], self._names)[..., 0]

    def state(
        self, qd: ArrayLike, qdd: ArrayLike, names: Sequence[str]
    ) -> tuple[Floats, Floats, Floats]:
        """(q, qd, qdd) (…, n) of joints of the tree, rad or m.

        Args:
            qd: (…, k) rates of the control coordinates, rad/s or m/s.
            qdd: (…, k) their accelerations, rad/s² or m/s².
            names: of the joints (n,).
        """
        order = self._columns(names)
        moving = self._chain.motion(self._q_r, qd, qdd)
        q, rates, accelerations = np.broadcast_arrays(self._q_r, *moving)
        return q[..., order], rates[..., order], accelerations[..., order]

    def on_motors(self, tau: Floats, names: Sequence[str]) -> Floats:
        """S Tᵀ τ (…, n_m, p)"""
        return np.asarray(self._on_motors[..., self._columns(names)] @ tau)

    @cached_property
    def _on_motors(self) -> Floats:
        return np.asarray(self._chain.on_motors(self._q_r))
