# SPDX-License-Identifier: Apache-2.0
"""Monitors the sensors on passive joints of a mechanism with loops, and ignores faulty ones."""

from __future__ import annotations

from ...closure import SensorMonitor, Verdict
from ...scalar import Floats


class Sensors(SensorMonitor):
    """A `SensorMonitor` that keeps its last verdict, and reports what has changed."""

    verdict: Verdict | None = None
    """The result for the last readings; None: there were none yet"""
    _logged: tuple[str, ...] = ()

    def reset(self) -> None:
        """Trust all sensors again, and assume the robot near its home."""
        super().reset()
        self.verdict = None

    def corrected(self, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """q, qd with readings that are missing or not trusted replaced by solved values.

        Args:
            q: (n_a + n_s,) positions, rad or m; NaN: missing.
            qd: (n_a + n_s,) rates, rad/s or m/s; NaN: missing.

        Raises:
            ClosureError: the readings belong to no configuration of the mechanism.
        """
        self.verdict = self.update(q, qd)
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
