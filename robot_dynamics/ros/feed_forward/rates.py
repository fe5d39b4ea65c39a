# SPDX-License-Identifier: Apache-2.0
"""Derives joint rates from positions if no message contains them."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ...scalar import Floats
from .derivative import GAP, RECENT, Derivative, Derivatives, following
from .joint_states import LARGEST, Fill, are_possible
from .refusal import IncompleteError, RefusedError
from .stamps import SECOND

FASTEST = 1_000.0
"""rad/s or m/s: beyond any joint's rate, used if `max_acceleration` gives no bound"""


class Rates:
    """Derives rates from the positions of each publisher separately.

    The derivative for a message is used for later messages only after `keep` is called.

    Args:
        periodic: names of joints whose position may jump by whole turns.
        optional: names of sensors that may fail: if one jumps, its rate is missing.

    Attributes:
        period: s, the usual time between two states of the publisher that sent the last message;
            None: not known.
    """

    def __init__(self, periodic: Collection[str] = (), optional: Collection[str] = ()):
        self._periodic, self._optional = frozenset(periodic), frozenset(optional)
        self._of = Derivatives()
        self._new: tuple[tuple[str, ...], Derivative] | None = None
        self.period: float | None = None

    def at(self, time: int, constant: float, largest: float, *, stamped: bool) -> Fill:
        """A function that supplies the missing rates of a state.

        Args:
            time: the stamp of the state, or the time of its sending or arrival, ns; 0: none.
            constant: the filter's time constant, s.
            largest: the largest acceleration of a joint, rad/s² or m/s²; 0: not known. At a rate of
                √a the end of a lever of 1 m accelerates by a; a position that jumps as if the joint
                were faster does not belong to the motion.
            stamped: is `time` the stamp?
        """
        fastest = math.sqrt(largest) if largest else FASTEST
        self._new = None

        def fill(names: tuple[str, ...], q: Floats, qd: Floats) -> Floats:
            needed = np.array([name not in self._optional for name in names], dtype=bool)
            if not are_possible(q[needed], np.nan_to_num(qd[needed], nan=0.0)):
                return qd  # the reader refuses it for that reason
            if not time and not np.isnan(qd[needed]).any():
                return qd
            q = np.where(np.abs(q) <= LARGEST, q, np.nan)
            turns = np.array([name in self._periodic for name in names], dtype=bool)
            new = following(self._of.get(names), q, time, constant, turns, stamped=stamped)
            unknown = np.isnan(qd)
            value = np.full(len(q), np.nan) if new.value is None else new.value
            if new.steepest is not None:
                jumps = unknown & (np.abs(new.steepest) > fastest)
                if (jumps & needed).any():
                    k = int(np.argmax(jumps & needed))
                    raise RefusedError(
                        "jump",
                        f"position of {names[k]!r} jumped to {q[k]:.6g}, at {new.steepest[k]:.3g} "
                        f"rad/s (or m/s), expected at most {fastest:.3g}; if it stays there, the "
                        f"state is used after {GAP / SECOND:g} s",
                    )
                value = np.where(jumps, np.nan, value)
            # a reported rate is better than a derived one, also as the basis for the next state
            rates = np.where(unknown, value, qd)
            self._new = names, replace(new, value=np.where(np.isfinite(rates), rates, np.nan))
            if np.isnan(rates[needed]).any():
                self.keep()
                raise IncompleteError("no velocities yet", _what_is_missing(new, stamped))
            return rates

        return fill

    def keep(self) -> None:
        """Keep the derivative of the last message, which was accepted."""
        if self._new is None:
            return
        names, new = self._new
        self._of.keep(names, new)
        self._new = None
        if new.period:
            self.period = new.period / SECOND

    def forget(self) -> None:
        """Discard everything: earlier times are invalid."""
        self._of.forget()
        self._new = None


def _what_is_missing(new: Derivative, stamped: bool) -> str:
    why = "velocities are derived from positions (missing_velocities: derive), and "
    if stamped or len(new.steps) >= RECENT:
        return why + "this is the first position"
    return why + (
        f"{RECENT - len(new.steps)} more positions are needed to estimate their rate: the states "
        "carry no stamps"
    )
