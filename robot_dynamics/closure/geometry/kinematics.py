"""Frames of a tree, their Jacobians and the rates of these, over any scalar.

All vectors are in the base frame. A frame's Jacobians say v = V q̇ (of its origin) and ω = W q̇.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism import Attachment, Mechanism
from ...scalar import Array, array, cross, rotation_z, zeros


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """One frame at one q; the rates are zero where no qd was given."""

    rotation: Array
    """(3, 3)"""
    point: Array
    """(3,), m"""
    V: Array
    """(3, n)"""
    W: Array
    """(3, n)"""
    velocity: Array
    """(3,), m/s"""
    omega: Array
    """(3,), rad/s"""
    V_rate: Array
    """(3, n)"""
    W_rate: Array
    """(3, n)"""


class TreeMotion:
    """Where the links of a tree are, and how fast.

    Args:
        tree: in standard form (see `mechanism.transform.standard_form`).
        coordinates: (S, s) with q_tree = S q + s.
        q: (n,), rad or m.
        qd: (n,), rad/s or m/s; None: at rest.
    """

    def __init__(
        self, tree: Mechanism, coordinates: tuple[Array, Array], q: Array, qd: Array | None = None
    ):
        self.tree = tree
        self.index = tree.index()
        self.S, s = coordinates
        q_tree = self.S @ array(q) + s
        qd_tree = zeros(len(q_tree)) if qd is None else self.S @ array(qd)
        self.R, self.p = {-1: zeros(3, 3) + _IDENTITY}, {-1: zeros(3)}
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
            self.R[i], self.p[i], self.w[i], self.v[i] = turned, p + arm, w_i, v_i
            self.z.append(axis)
            self.z_rate.append(cross(w, axis))

    def frame(self, attachment: Attachment) -> FrameMotion:
        """The motion of a frame on a link."""
        i = self.index[attachment.link]
        R, w = self.R[i], self.w[i]
        arm = R @ attachment.pose.translation
        point, velocity = self.p[i] + arm, self.v[i] + cross(w, arm)
        n = len(self.tree.links)
        V, W, V_rate, W_rate = ([zeros(3)] * n for _ in range(4))
        for j in self._path(i):
            z, z_rate = self.z[j], self.z_rate[j]
            if self.tree.links[j].joint.turns:
                lever, lever_rate = point - self.p[j], velocity - self.v[j]
                # ∂p/∂q_j = z × (p - p_j) and its rate, by the product rule
                V[j], W[j] = cross(z, lever), z
                V_rate[j] = cross(z_rate, lever) + cross(z, lever_rate)
                W_rate[j] = z_rate
            else:
                V[j], V_rate[j] = z, z_rate

        def joined(columns: list[Array]) -> Array:
            return array(columns).reshape(n, 3).T @ self.S

        return FrameMotion(
            R @ attachment.pose.rotation,
            point,
            joined(V),
            joined(W),
            velocity,
            w,
            joined(V_rate),
            joined(W_rate),
        )

    def _path(self, i: int) -> list[int]:
        """The joints that carry link i."""
        path = []
        while i >= 0:
            path.append(i)
            i = self.index[self.tree.links[i].parent]
        return path


_IDENTITY = array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
