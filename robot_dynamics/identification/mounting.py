# SPDX-License-Identifier: Apache-2.0
"""Estimates the direction of gravity in the base frame: a robot may be mounted on a wall or a
ceiling although its description stands on the floor.

The described bodies' torques depend linearly on gravity g, which is the least-squares solution of

    τ = τ₀ + Σ g_k τ_k + friction

where τ₀ are the torques without gravity and τ_k those of unit gravity along each axis. Only the
direction is used, so it hardly matters if all described masses are off by a factor. As this
estimate is only as good as the described bodies, the axes of the base are candidates, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..dynamics import InverseDynamics
from ..formulations.terms import RIGID
from ..mechanism import Mechanism
from .preparation import Samples
from .recording import Floats

STANDARD = 9.81
"""m/s²: the magnitude if no gravity is described"""


@dataclass(frozen=True)
class Mounting:
    """A base that appears to be mounted differently from the description."""

    gravity: tuple[float, ...]
    """(3,), m/s², in the base frame"""
    before: float
    """Relative error of the best model with gravity as described, as a geometric mean over the
    joints"""
    after: float
    """The same with this gravity"""

    def words(self) -> str:
        """One line for the user."""
        gravity = ", ".join(f"{each:.3g}" for each in self.gravity)
        return (
            "the base appears to be mounted differently from the description: with `gravity: "
            f"[{gravity}]` in the base frame the best model leaves {100 * self.after:.2g} % of the "
            "torques unexplained (mean over the joints); as described, "
            f"{100 * self.before:.2g} %. The description was used as it is, so the result is not a "
            "model of the robot. Set its `gravity` (for a URDF, in a YAML file next to it)"
        )


def gravities(mechanism: Mechanism, samples: Samples, measured: Floats) -> Floats:
    """(k, 3): candidates for gravity in the base frame, m/s².

    Args:
        mechanism: the described robot.
        samples: motion in which all measured efforts are usable.
        measured: (n,), whether each joint's effort was measured.
    """
    q, qd, qdd = samples.q, samples.qd, samples.qdd
    bare, *along = (
        InverseDynamics(replace(mechanism, gravity=each), terms=RIGID)(q, qd, qdd)
        for each in (np.zeros(3), *np.eye(3))
    )
    A, b = [], []
    for j in np.flatnonzero(measured):
        tau = samples.tau[:, j]
        own = np.column_stack([np.ones(len(q)), qd[:, j], np.sign(qd[:, j]), qdd[:, j]])
        columns = np.column_stack([*(each[:, j] - bare[:, j] for each in along), tau - bare[:, j]])
        # minus what the joint's own friction and rotor explain
        columns -= own @ np.linalg.lstsq(own, columns, rcond=None)[0]
        columns /= max(float(np.linalg.norm(tau)), np.finfo(float).tiny)
        A.append(columns[:, :3])
        b.append(columns[:, 3])
    found = np.linalg.lstsq(np.concatenate(A), np.concatenate(b), rcond=None)[0]
    size = float(np.linalg.norm(mechanism.gravity)) or STANDARD
    candidates = np.vstack([np.eye(3), -np.eye(3), found])
    lengths = np.linalg.norm(candidates, axis=1)
    return np.asarray(size * candidates[lengths > 0] / lengths[lengths > 0, None] + 0.0)
