# SPDX-License-Identifier: Apache-2.0
"""Monitors the sensors on passive joints of a mechanism with loops, and ignores faulty ones."""

from __future__ import annotations

from ...closure import ClosedChain, SensorMonitor, Verdict
from ...mechanism import Mechanism
from ...scalar import Floats


class Sensors:
    """Decides which readings of a mechanism's encoders are trusted.

    q and qd (n_a + n_s,) are those of the actuated joints, followed by the sensed ones.

    Args:
        mechanism: the robot.
        tolerance: the closure residual beyond which a reading is not trusted, rad, or fractions of
            the robot's size.
        model: solves the configuration.

    Attributes:
        verdict: the result for the last readings; None: there were none yet.
    """

    def __init__(self, mechanism: Mechanism, tolerance: float, model: ClosedChain):
        self._monitor = SensorMonitor(mechanism, threshold=tolerance, model=model)
        self.verdict: Verdict | None = None
        self._logged: tuple[str, ...] = ()

    @property
    def tolerance(self) -> float:
        """The closure residual beyond which a reading is not trusted, rad, or fractions of the
        robot's size. May be assigned."""
        return self._monitor.threshold

    @tolerance.setter
    def tolerance(self, value: float) -> None:
        self._monitor.threshold = value

    def use_model(self, model: ClosedChain) -> None:
        """Use another model of the same mechanism from now on."""
        self._monitor.model = model

    @property
    def distrusted(self) -> tuple[str, ...]:
        """The joints whose readings are ignored."""
        return self._monitor.distrusted

    def reset(self) -> None:
        """Trust all sensors again, and assume the robot near its home."""
        self._monitor.reset()
        self.verdict = None

    def corrected(self, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """q, qd with readings that are missing or not trusted replaced by solved values.

        Args:
            q: (n_a + n_s,) positions, rad or m; NaN: missing.
            qd: (n_a + n_s,) rates, rad/s or m/s; NaN: missing.

        Raises:
            ClosureError: the readings belong to no configuration of the mechanism.
        """
        self.verdict = self._monitor.update(q, qd)
        return self.verdict.q, self.verdict.qd

    def news(self) -> list[tuple[str, str]]:
        """(event, line for the log) for every change since the last call."""
        before, self._logged = self._logged, self.distrusted
        if self._logged == before:
            return []
        lines = []
        verdict = self.verdict
        if lost := [name for name in self._logged if name not in before]:
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
        if back := [name for name in before if name not in self._logged]:
            lines.append(
                ("trusted again", f"the readings of {', '.join(back)} are consistent again")
            )
        return lines
