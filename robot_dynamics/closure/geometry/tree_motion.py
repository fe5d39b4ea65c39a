# SPDX-License-Identifier: Apache-2.0
"""Frames of a tree, their Jacobians and the Jacobians' rates, over any scalar.

All vectors are in the base frame. The Jacobians of a frame are V and W: the velocity of its origin
is v = V q̇, its angular velocity ω = W q̇.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ...mechanism import Attachment, Mechanism
from ...scalar import Array, Note, array, cross, rotation_z, unnoticed, zeros

Column = Callable[[int], Array]
"""The column (3,) of one joint"""
_NOTHING = zeros(3)


class FrameMotion:
    """One frame at one q; its rates are zero if no qd was given. Jacobians are computed on first
    use."""

    def __init__(self, tree: TreeMotion, attachment: Attachment):
        i, pose = tree.index[attachment.link], attachment.pose
        R, w = tree.R[i], tree.w[i]
        arm = R @ pose.translation
        self.rotation: Array = R @ pose.rotation
        """(3, 3)"""
        self.point: Array = tree.p[i] + arm
        """(3,), m"""
        self.velocity: Array = tree.v[i] + cross(w, arm)
        """(3,), m/s"""
        self.omega: Array = w
        """(3,), rad/s"""
        self._tree, self._link = tree, attachment.link

    @cached_property
    def V(self) -> Array:
        """(3, n)"""
        # ∂p/∂q_j = z × (p - p_j) for a revolute joint, z for a prismatic one
        return self._joined(
            lambda j: cross(self._tree.z[j], self._lever(j)), lambda j: self._tree.z[j]
        )

    @cached_property
    def W(self) -> Array:
        """(3, n)"""
        return self._joined(lambda j: self._tree.z[j], None)

    @cached_property
    def V_rate(self) -> Array:
        """(3, n)"""
        tree = self._tree
        # by the product rule
        return self._joined(
            lambda j: (
                cross(tree.z_rate[j], self._lever(j)) + cross(tree.z[j], self.velocity - tree.v[j])
            ),
            lambda j: tree.z_rate[j],
        )

    @cached_property
    def W_rate(self) -> Array:
        """(3, n)"""
        return self._joined(lambda j: self._tree.z_rate[j], None)

    def _lever(self, j: int) -> Array:
        return np.asarray(self.point - self._tree.p[j])

    def _joined(self, turning: Column, sliding: Column | None) -> Array:
        """Σ_j column_j S_j over the joints that carry the frame's link."""
        S = self._tree.S
        columns: dict[int, Array] = {}
        for j in carriers(self._tree.tree, self._link):
            column = turning if self._tree.tree.links[j].joint.turns else sliding
            if column is None:
                continue
            for k in map(int, np.flatnonzero(S[j])):
                part = column(j) * S[j, k]
                columns[k] = columns[k] + part if k in columns else part
        J: Array = array([columns.get(k, _NOTHING) for k in range(S.shape[1])]).reshape(-1, 3).T
        return J


class TreeMotion:
    """Poses and velocities of the links of a tree.

    Args:
        tree: in standard form (see `mechanism.transform.standard_form`).
        coordinates: (S, s) with q_tree = S q + s.
        q: (n,), rad or m.
        qd: (n,), rad/s or m/s; None: at rest.
        note: called with R, p, omega, v and zeta, the rate of its joint's axis, of each link.
    """

    def __init__(
        self,
        tree: Mechanism,
        coordinates: tuple[Array, Array],
        q: Array,
        qd: Array | None = None,
        note: Note = unnoticed,
    ):
        self.tree = tree
        self.index = tree.index()
        self.S, s = coordinates
        q_tree = self.S @ array(q) + s
        qd_tree = zeros(len(q_tree)) if qd is None else self.S @ array(qd)
        self.R, self.p = {-1: np.eye(3)}, {-1: zeros(3)}
        self.w, self.v = {-1: zeros(3)}, {-1: zeros(3)}
        self.z: list[Array] = []
        self.z_rate: list[Array] = []
        for i, link in enumerate(tree.links):
            joint, parent = link.joint, self.index[link.parent]
            R, p, w, v = self.R[parent], self.p[parent], self.w[parent], self.v[parent]
            turned = R @ joint.origin.rotation
            arm = R @ joint.origin.translation
            axis = turned[:, 2]
            if joint.turns:
                turned = turned @ rotation_z(q_tree[i])
                # ω_i = ω_p + z q̇,  v_i = v_p + ω_p × r
                w_i, v_i = w + axis * qd_tree[i], v + cross(w, arm)
            else:
                arm = arm + axis * q_tree[i]
                w_i, v_i = w, v + cross(w, arm) + axis * qd_tree[i]
            self.R[i], self.p[i] = note("R", i, turned), note("p", i, p + arm)
            self.w[i], self.v[i] = note("omega", i, w_i), note("v", i, v_i)
            self.z.append(axis)
            self.z_rate.append(note("zeta", i, cross(w, axis)))

    def frame(self, attachment: Attachment) -> FrameMotion:
        """The motion of a frame on a link."""
        return FrameMotion(self, attachment)


def carriers(tree: Mechanism, link: str) -> list[int]:
    """The joints that carry a link, from its own to the base."""
    index = tree.index()
    return [index[name] for name in tree.path(link)[:-1]]


def between(tree: Mechanism, start: str, end: str) -> list[int]:
    """The joints between two links, from the start outwards."""
    down, up = carriers(tree, start), carriers(tree, end)
    common = set(down) & set(up)
    return [i for i in down if i not in common] + [i for i in reversed(up) if i not in common]
