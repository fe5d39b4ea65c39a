# SPDX-License-Identifier: Apache-2.0
"""Positions and rates of the required joints, read from a JointState message."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import listed
from ...scalar import Floats
from .refusal import RefusedError

Fill = Callable[[tuple[str, ...], Floats, Floats], Floats]
"""(names, q, qd with NaN for unknown rates) → qd"""

LARGEST = 1e9
"""rad, m, rad/s or m/s: no joint reaches this, and an angle of this size has lost its precision"""

DERIVE = "set missing_velocities to derive"


class JointStateReader:
    """Reads joints by name. The positions of the names in the message are cached until a message
    has other names.

    Args:
        joints: (k) names in the order of q and qd.
        optional: those of `joints` that may be missing; they come last in `joints`.

    Attributes:
        missing: the optional joints that the last message lacked; their values are NaN.
    """

    def __init__(self, joints: Sequence[str], optional: Collection[str] = ()):
        self.joints = tuple(joints)
        self.missing: tuple[str, ...] = ()
        self._optional = frozenset(optional)
        self._needed = len(self.joints) - len(self._optional)
        self._names: list[str] | None = None
        self._places: NDArray[np.intp] | None = None
        self._columns: tuple[str, ...] = ()

    def read(self, message: Any, fill: Fill | None = None) -> tuple[Floats, Floats]:
        """q, qd (k,) in the order of `joints`.

        Args:
            message: a JointState.
            fill: supplies rates that are missing or NaN; None: such a message is refused.

        Raises:
            RefusedError: a joint is missing or named twice, lengths differ, there are no rates,
                or a value is not finite or too large.
        """
        names = message.name
        known = names == self._names
        columns, at = (self._columns, self._places) if known else self._find(names)
        n = len(names)
        positions, velocities = message.position, message.velocity
        if len(positions) != n:
            raise RefusedError(
                "wrong length",
                f"the number of positions is {len(positions)}, expected that of names, {n}",
            )
        if len(velocities) != n:
            if len(velocities):
                raise RefusedError(
                    "wrong length",
                    f"the number of velocities is {len(velocities)}, expected that of names, {n}",
                )
            if fill is None and self.joints:
                raise RefusedError(
                    "no velocities",
                    "velocity is empty, expected a velocity for every joint; let the driver or "
                    f"joint_state_broadcaster publish it, {DERIVE}, or set feedback to commanded",
                )
            velocities = np.full(n, math.nan)
        q, qd = np.frombuffer(positions), np.frombuffer(velocities)
        q, qd = (q.copy(), qd.copy()) if at is None else (q[at], qd[at])
        if fill is not None:
            qd = fill(columns, q, qd)
        whole = columns == self.joints and are_possible(q, qd)
        if not whole:
            if self._optional:
                q, qd = self._with_gaps(q, qd, columns)
            needed = slice(self._needed)
            if not are_possible(q[needed], qd[needed]):
                self._refuse_impossible(q[needed], qd[needed])
        # a refused message changes nothing
        if not known:
            self._names, self._columns, self._places = list(names), columns, at
        self.missing = () if whole else self.gaps(q)
        return q, qd

    def gaps(self, q: Floats) -> tuple[str, ...]:
        """The joints whose positions (k,) are NaN."""
        gaps = np.isnan(q).tolist()
        return tuple(name for name, gap in zip(self.joints, gaps, strict=True) if gap)

    def _find(self, names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.intp] | None]:
        """The names among `joints` that a message has, and their positions in it.

        The positions are None if the message has exactly these names in this order.
        """
        there = set(names) | set(self.joints[: self._needed])
        columns = tuple(name for name in self.joints if name in there)
        at = places(names, columns, "name")
        return columns, None if columns == tuple(names) else at

    def _with_gaps(
        self, found_q: Floats, found_qd: Floats, columns: tuple[str, ...]
    ) -> tuple[Floats, Floats]:
        """q, qd of all `joints`, with NaN for optional joints without a position or a rate."""
        q, qd = np.full((2, len(self.joints)), np.nan)
        into = [self.joints.index(name) for name in columns]
        q[into], qd[into] = found_q, found_qd
        gaps = ~((np.abs(q) <= LARGEST) & (np.abs(qd) <= LARGEST))
        gaps[: self._needed] = False
        q[gaps] = qd[gaps] = np.nan
        return q, qd

    def _refuse_impossible(self, q: Floats, qd: Floats) -> None:
        for what, values in (("position", q), ("velocity", qd)):
            for name, value in zip(self.joints, values.tolist(), strict=False):
                if not math.isfinite(value):
                    hint = f" (it may not be known yet; {DERIVE})" if what == "velocity" else ""
                    raise RefusedError(
                        "not finite",
                        f"{what} of {name!r} is {value}, expected a finite number{hint}",
                    )
        k = int(np.argmax(np.abs(np.concatenate([q, qd]))))
        what, name = ("position", "velocity")[k // len(q)], self.joints[k % len(q)]
        raise RefusedError(
            "impossible",
            f"{what} of {name!r} is {(q, qd)[k // len(q)][k % len(q)]:.6g}, expected less than "
            f"{LARGEST:g}",
        )


def are_possible(q: Floats, qd: Floats) -> bool:
    """Are all positions and rates finite and not too large?

    Their norm shows this at a fraction of the cost of isfinite.

    Args:
        q: positions, rad or m.
        qd: rates, rad/s or m/s.
    """
    return math.hypot(*q.tolist(), *qd.tolist()) < LARGEST


def all_finite(values: Floats) -> bool:
    """Are all values finite? Their sum shows NaN and infinity at a fraction of isfinite's cost."""
    return math.isfinite(sum(values.tolist()))


def places(names: Sequence[str], wanted: Sequence[str], field: str) -> NDArray[np.intp]:
    """The index of each wanted name in `names`.

    Args:
        names: the names to search.
        wanted: the names to find.
        field: the field of the message, for errors.

    Raises:
        RefusedError: a name appears twice or is missing.
    """
    place = {name: k for k, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for k, name in enumerate(names) if place[name] != k)
        raise RefusedError(
            "duplicate names", f"{field} {twice!r} appears twice; each name must appear once"
        )
    missing = [name for name in wanted if name not in place]
    if missing:
        raise RefusedError(
            "missing joint",
            f"no joint {listed(map(repr, missing))} in {field}, found {listed(map(repr, names))}",
        )
    return np.array([place[name] for name in wanted], dtype=np.intp)
