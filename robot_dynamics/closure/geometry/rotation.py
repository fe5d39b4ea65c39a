# SPDX-License-Identifier: Apache-2.0
"""Rotation matrices and rotation vectors, over floats."""

from __future__ import annotations

import numpy as np

from ...scalar import Floats


def rotation_vector(R: Floats) -> Floats:
    """Axis times angle (3,), rad, of a rotation matrix; the angle is at most π."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine, cosine = float(np.linalg.norm(axis)), (np.trace(R) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if sine > 1e-8:
        along: Floats = axis * (angle / sine)
        return along
    if cosine > 0:
        return axis
    # half a turn: R = 2 a aᵀ - 1
    column = (R + np.eye(3))[:, int(np.argmax(np.diag(R)))]
    turn: Floats = angle * column / np.linalg.norm(column)
    return turn


def turned(vector: Floats) -> Floats:
    """The rotation matrix of a rotation vector (3,)."""
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return np.eye(3)
    x, y, z = vector / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # Rodrigues: 1 + sin K + (1 - cos) K²
    R: Floats = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
    return R
