"""What the node says about itself once a second."""

from __future__ import annotations

from typing import NamedTuple

from .controller import FeedForward
from .stamps import SECOND

OK, WARN, ERROR = range(3)
"""The levels of diagnostic_msgs/DiagnosticStatus"""


class Report(NamedTuple):
    level: int
    message: str
    values: dict[str, str]


class Diagnosis:
    """Rates and new complaints between one report and the next."""

    def __init__(self, steady: float) -> None:
        self._before = (0, 0, 0)
        self._complaints = 0
        self._at = steady

    def report(self, controller: FeedForward, busy: bool, now: int, steady: float) -> Report:
        """The state of things.

        Args:
            busy: a new model is being built.
            now: the clock, ns.
            steady: s, of a clock that never jumps.
        """
        counts = (controller.states, controller.commands, controller.outputs)
        elapsed = max(steady - self._at, 1e-9)
        rates = [
            (count - before) / elapsed for count, before in zip(counts, self._before, strict=True)
        ]
        tally = controller.tally
        new = tally.total - self._complaints
        self._before, self._at, self._complaints = counts, steady, tally.total

        values = {
            "phase": controller.phase,
            "state rate (Hz)": f"{rates[0]:.1f}",
            "command rate (Hz)": f"{rates[1]:.1f}",
            "torque rate (Hz)": f"{rates[2]:.1f}",
            "state age (s)": _age(controller.state_at, now),
            "command age (s)": _age(controller.command_at, now),
            "states": str(counts[0]),
            "commands": str(counts[1]),
            "torques": str(counts[2]),
            "rejected": str(sum(tally.rejected.values())),
        }
        values |= {f"rejected: {key}": str(n) for key, n in sorted(tally.rejected.items())}
        values |= {f"event: {key}": str(n) for key, n in sorted(tally.events.items())}
        if controller.model is not None:
            wish = controller.model.wish
            values |= {
                "robot": wish.mechanism.name,
                "joints": ", ".join(controller.model.joints),
                "formulation": wish.settings.formulation,
                "rotors": wish.settings.rotors,
                "terms": ", ".join(wish.settings.terms),
                "payload (kg)": f"{float(sum(p.mass for p in wish.payloads.values())):g}",
                "backend": controller.model.dynamics.backend,
                "building a new model": "yes" if busy else "no",
            }
        return Report(*self._verdict(controller, rates, new), values)

    @staticmethod
    def _verdict(controller: FeedForward, rates: list[float], new: int) -> tuple[int, str]:
        if controller.model is None:
            return ERROR, "no robot description"
        if controller.phase != "waiting" and rates[2] == 0 and controller.settings.measured:
            return ERROR, "no torques"
        if new:
            return WARN, f"complaints in the last second: {new}"
        if controller.phase == "timeout":
            return WARN, f"no command: {controller.settings.on_timeout}"
        return OK, {"waiting": "waiting for a command"}.get(controller.phase, "publishing torques")


def _age(at: int | None, now: int) -> str:
    return "never" if at is None else f"{(now - at) / SECOND:.3f}"
