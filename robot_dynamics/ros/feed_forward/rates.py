"""Rates of joints that no message tells, from their positions."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ...scalar import Floats
from .derivative import Derivative
from .joint_states import Fill, all_finite
from .refusal import RefusedError
from .stamps import SECOND


class Rates:
    """Positions over time, and what they say about rates; of each publisher its own.

    Args:
        periodic: names of joints whose position may jump by whole turns.

    Attributes:
        period: s between the last two states of one; None: there were none.
    """

    def __init__(self, periodic: Collection[str] = ()):
        self._periodic = frozenset(periodic)
        self._of: dict[tuple[str, ...], Derivative] = {}
        self.period: float | None = None

    def at(self, time: int, constant: float) -> Fill:
        """What fills up the rates of a state.

        Args:
            time: its stamp, ns.
            constant: of the filter, s.
        """

        def fill(names: tuple[str, ...], q: Floats, qd: Floats) -> Floats:
            if not all_finite(q):
                return qd
            before = self._of.get(names)
            if before is None:
                new = Derivative(q, time)
            else:
                turns = np.array([name in self._periodic for name in names])
                new = before.next(q, time, constant, turns)
                if time > before.time:
                    self.period = (time - before.time) / SECOND
            self._of[names] = new
            unknown = np.isnan(qd)
            if not unknown.any():
                return qd
            if new.value is None:
                raise RefusedError(
                    "no velocities yet",
                    "velocities come from positions (missing_velocities: derive), and this is the "
                    "first of them",
                )
            return np.where(unknown, new.value, qd)

        return fill
