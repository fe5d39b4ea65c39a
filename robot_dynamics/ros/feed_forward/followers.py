# SPDX-License-Identifier: Apache-2.0
"""Redundant motors, whose positions follow from those of the commanded motors.

A command may contain them, for example from a controller of all motors. Their values must then
agree with those that follow from the independent motors; only the latter are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...closure import ClosedChain
from ...errors import listed
from ...mechanism import Mechanism
from ...scalar import Floats, shortest_turn
from .refusal import RefusedError

AGREEMENT = 0.01
"""rad, or fractions of the robot's size: how far a commanded position may be off; rates (per s)
and accelerations (per s²) may be off by this much plus this share of the largest"""

_DERIVATIVES = ("positions", "velocities", "accelerations")


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
        self.names = tuple(name for name in mechanism.actuated_names if name not in joints)
        self._rows = [self._chain.coordinate_names.index(name) for name in self.names]
        # compile everything now
        home = self._chain.home.q_a[None]
        self._expected(home, 0 * home, 0 * home)

    def left_out(self, message: Any) -> Any:
        """The JointTrajectory without the following motors, after a check of their values.

        Args:
            message: a JointTrajectory.

        Raises:
            RefusedError: the values disagree with those of the other motors, or are incomplete.
        """
        names = list(message.joint_names)
        if not set(names) & set(self.names) or not set(names) >= set(self._joints):
            return message
        told = [names.index(name) for name in self._chain.joint_names]
        present = [k for k, name in enumerate(self.names) if name in names]
        columns = [names.index(self.names[k]) for k in present]
        kept = [k for k in range(len(names)) if k not in columns]
        points = []
        for number, point in enumerate(message.points):
            rows = [np.array(getattr(point, what), dtype=float) for what in _DERIVATIVES]
            self._check_whole(number, rows, len(names))
            points.append(rows)
        states = np.array(
            [[x if len(x) else np.zeros(len(names)) for x in rows] for rows in points]
        ).reshape(len(points), 3, len(names))
        expected = self._expected(*np.moveaxis(states[..., told], 1, 0))[..., present]
        self._check_agreement(names, columns, points, states[..., columns], expected)
        return _with_columns(message, kept)

    def _check_whole(self, number: int, rows: list[Floats], count: int) -> None:
        for what, values in zip(_DERIVATIVES, rows, strict=True):
            if len(values) not in (0, count):
                raise RefusedError(
                    "wrong length",
                    f"point {number} has {len(values)} {what} for {count} joints, expected "
                    f"{count} or none",
                )
            if not np.isfinite(values).all():
                raise RefusedError("not finite", f"point {number} has {what} that are not finite")
        q, qd, qdd = map(len, rows)
        if not q or (qdd and not qd):
            raise RefusedError(
                "inconsistent",
                f"point {number} names {listed(self.names)}, which depend on the other motors, "
                "but gives no positions, or accelerations without velocities; give them, or name "
                f"only {listed(self._joints)}",
            )

    def _expected(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """(points, 3, followers) from the independent motors' q, qd, qdd (points, n)."""
        q_r = self._chain.configuration(q)
        qd_r, qdd_r = self._chain.motion(q_r, qd, qdd)
        return np.stack([q_r, qd_r, qdd_r], axis=1)[..., self._rows]

    def _check_agreement(
        self,
        names: list[str],
        columns: list[int],
        points: list[list[Floats]],
        found: Floats,
        expected: Floats,
    ) -> None:
        """Compare the given values (points, 3, present) with the expected ones."""
        if not np.isfinite(expected).all():
            k = int(np.argmin(np.isfinite(expected).all(axis=(1, 2))))
            raise RefusedError(
                "closure",
                f"the loops cannot be closed at point {k}, or it is too near a singularity",
            )
        joint, chain = self._chain.mechanism.joint, self._chain
        scale = chain.solver.scale[[chain.coordinate_names.index(names[c]) for c in columns]]
        off = found - expected
        turning = [joint(names[c]).type == "continuous" for c in columns]
        # another whole turn is the same position
        off[:, 0, turning] = shortest_turn(off[:, 0, turning])
        told = np.array([[bool(len(x)) for x in rows] for rows in points])[..., None]
        largest = np.abs(found / scale).max(axis=2, keepdims=True)
        largest[:, 0] = 0.0
        wrong = told & (np.abs(off / scale) > AGREEMENT * (1 + largest))
        if wrong.any():
            k, d, j = np.argwhere(wrong)[0]
            raise RefusedError(
                "inconsistent",
                f"point {k} has {found[k, d, j]:.6g} in {_DERIVATIVES[d]} of "
                f"{names[columns[j]]!r}, expected {expected[k, d, j]:.6g}, which the loops "
                f"require for {listed(self._joints)}; the joint may be left out",
            )


def _with_columns(message: Any, kept: list[int]) -> Any:
    """The same JointTrajectory with these joints only."""
    points = []
    for point in message.points:
        rows = {
            what: [getattr(point, what)[k] for k in kept] if len(getattr(point, what)) else []
            for what in (*_DERIVATIVES, "effort")
        }
        points.append(type(point)(time_from_start=point.time_from_start, **rows))
    names = [message.joint_names[k] for k in kept]
    return type(message)(header=message.header, joint_names=names, points=points)
