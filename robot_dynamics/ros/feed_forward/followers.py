# SPDX-License-Identifier: Apache-2.0
"""Redundant motors, whose positions follow from those of the commanded motors.

A command may contain them, for example from a controller of all motors. Their values must then
agree with those that follow from the independent motors; only the latter are used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...closure import ClosedChain
from ...errors import listed
from ...mechanism import Mechanism
from ...scalar import Floats, shortest_turn
from .refusal import RefusedError

AGREEMENT = 0.01
"""rad, or fractions of the robot's size: how far a commanded position may be off; rates (per s)
and accelerations (per s²) may be off by this much plus this share of the largest"""

DERIVATIVES = ("positions", "velocities", "accelerations")
"""The fields of a point of a JointTrajectory"""


class Followers:
    """The motors that follow the independent ones.

    Args:
        mechanism: has more motors than degrees of freedom; its independent motors are known.
        joints: the independent motors, in the order of commands.

    Attributes:
        names: the motors that follow.
    """

    def __init__(self, mechanism: Mechanism, joints: Sequence[str]):
        # without terms: only the configuration and its motion are needed
        self._chain = ClosedChain(mechanism, terms=())
        self._joints = tuple(joints)
        self._order = [self._joints.index(name) for name in self._chain.joint_names]
        self.names = tuple(name for name in mechanism.actuated_names if name not in joints)
        # compile everything now
        home = self._chain.home.q_a[None]
        self._expected(self.names, home, 0 * home, 0 * home)

    def check(self, present: Sequence[str], values: Floats, has: NDArray[np.bool_]) -> None:
        """Check the values that a command gives for motors that follow.

        Args:
            present: (f,) the motors that follow and are in the command.
            values: (3, m, n + f) positions, velocities and accelerations at its points: of the
                independent motors, then of these; zero where there are none.
            has: (3, m) which of them each point has.

        Raises:
            RefusedError: the values disagree with those of the other motors, or are incomplete.
        """
        incomplete = ~has[0] | (has[2] & ~has[1])
        if incomplete.any():
            raise RefusedError(
                "inconsistent",
                f"point {int(np.argmax(incomplete))} names {listed(self.names)}, which depend on "
                "the other motors, but gives no positions, or accelerations without velocities; "
                f"give them, or name only {listed(self._joints)}",
            )
        n = len(self._joints)
        found, expected = values[..., n:], self._expected(present, *values[..., self._order])
        if not np.isfinite(expected).all():
            k = int(np.argmin(np.isfinite(expected).all(axis=(0, 2))))
            raise RefusedError(
                "closure",
                f"the loops cannot be closed at point {k}, or it is too near a singularity",
            )
        scale = self._chain.closer.scale[self._rows(present)]
        off = found - expected
        turning = [self._chain.mechanism.joint(name).type == "continuous" for name in present]
        # another whole turn is the same position
        off[0][:, turning] = shortest_turn(off[0][:, turning])
        largest = np.abs(found / scale).max(axis=2, keepdims=True)
        largest[0] = 0.0
        wrong = has[..., None] & (np.abs(off / scale) > AGREEMENT * (1 + largest))
        if wrong.any():
            k, d, j = np.argwhere(wrong.swapaxes(0, 1))[0]
            raise RefusedError(
                "inconsistent",
                f"point {k} has {found[d, k, j]:.6g} in {DERIVATIVES[d]} of {present[j]!r}, "
                f"expected {expected[d, k, j]:.6g}, as loop closure requires for "
                f"{listed(self._joints)}; you may omit this joint",
            )

    def _rows(self, names: Sequence[str]) -> list[int]:
        return [self._chain.coordinate_names.index(name) for name in names]

    def _expected(self, names: Sequence[str], q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """(3, m, f) of these motors from q, qd, qdd (m, n) in the order of the chain."""
        q_r = self._chain.configuration(q)
        qd_r, qdd_r = self._chain.motion(q_r, qd, qdd)
        return np.stack([q_r, qd_r, qdd_r])[..., self._rows(names)]
