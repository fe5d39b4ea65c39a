# SPDX-License-Identifier: Apache-2.0
"""Sensors on the passive joints of a closed mechanism: monitored, and left out where faulty."""

from __future__ import annotations

from ...closure import ClosedChain, SensorMonitor, Verdict
from ...mechanism import Mechanism
from ...scalar import Floats


class Sensors:
    """Which readings of a mechanism's encoders are believed.

    q and qd (n_a + n_s,) are those of the actuated joints, then of the sensed ones.

    Attributes:
        verdict: on the last readings; None: there were none yet.
    """

    def __init__(self, mechanism: Mechanism, tolerance: float, model: ClosedChain):
        self._monitor = SensorMonitor(mechanism, threshold=tolerance, model=model)
        self.verdict: Verdict | None = None
        self._told: tuple[str, ...] = ()

    @property
    def tolerance(self) -> float:
        """rad, or fractions of the robot's size. May be assigned."""
        return self._monitor.threshold

    @tolerance.setter
    def tolerance(self, value: float) -> None:
        self._monitor.threshold = value

    def go_on_with(self, model: ClosedChain) -> None:
        """Another model of the same mechanism asks for torques from now on."""
        self._monitor.model = model

    @property
    def distrusted(self) -> tuple[str, ...]:
        """The joints whose readings are left out."""
        return self._monitor.distrusted

    def reset(self) -> None:
        """Trust all of them again, near home."""
        self._monitor.reset()
        self.verdict = None

    def believed(self, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """q, qd with solved values where a reading is missing (NaN) or not trusted.

        Raises:
            ClosureError: the readings belong to no configuration of the mechanism.
        """
        self.verdict = self._monitor.update(q, qd)
        return self.verdict.q, self.verdict.qd

    def news(self) -> list[tuple[str, str]]:
        """(event, line) of every change since the last time."""
        before, self._told = self._told, self.distrusted
        if self._told == before:
            return []
        lines = []
        verdict = self.verdict
        if lost := [name for name in self._told if name not in before]:
            assert verdict is not None
            why = (
                f"the reading of {lost[0]!r} is inconsistent with the others"
                if verdict.suspect
                else "the readings are inconsistent, and the faulty one cannot be isolated"
            )
            lines.append(
                (
                    "not trusted",
                    f"{why} (closure residual {verdict.closure_residual:.3g}): continuing with "
                    f"solved values of {', '.join(lost)}",
                )
            )
        if back := [name for name in before if name not in self._told]:
            lines.append(
                ("trusted again", f"the readings of {', '.join(back)} are consistent again")
            )
        return lines
