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

import math
from dataclasses import dataclass, replace

import numpy as np

from ..dynamics import InverseDynamics
from ..formulations.terms import RIGID
from ..mechanism import Mechanism
from .preparation import Samples
from .recording import Floats

TILTED = 15.0
"""Degrees; a base that is turned by less is on the same floor, which is not level"""
STANDARD = 9.81
"""m/s²: the magnitude if no gravity is described"""


@dataclass(frozen=True)
class Mounting:
    """A base that appears to be mounted differently from the description."""

    described: tuple[float, ...]
    """(3,), m/s²: gravity in the base frame as described"""
    gravity: tuple[float, ...]
    """(3,), m/s², in the base frame, that explains the torques best"""
    before: float
    """Relative error of the best model with gravity as described, as a geometric mean over the
    joints"""
    after: float
    """The same with this gravity"""

    @property
    def tilt(self) -> float:
        """The angle between this gravity and the described one, degrees; NaN if none is
        described."""
        a, b = np.asarray(self.gravity), np.asarray(self.described)
        if not b.any():
            return math.nan
        return math.degrees(math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b)))

    def words(self) -> str:
        """One line for the user."""
        gravity = ", ".join(f"{each:.3g}" for each in self.gravity)
        how = "mounted differently from the description"
        then = (
            "The description was used as it is, so the result is not a model of the robot. Set its "
        )
        if self.tilt < TILTED:
            how, then = f"tilted by {self.tilt:.2g}° from the description", "Level it, or set its "
        return (
            f"the base appears to be {how}: with `gravity: [{gravity}]` in the base frame the best "
            f"model leaves {100 * self.after:.2g} % of the torques unexplained (mean over the "
            f"joints); as described, {100 * self.before:.2g} %. {then}`gravity` (for a URDF, in a "
            "YAML file next to it)"
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
        InverseDynamics(replace(mechanism, gravity=each), terms=RIGID, batches=True)(q, qd, qdd)
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
