"""What the node says about itself once a second."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import listed
from .controller import FeedForward
from .model import Model
from .stamps import SECOND

OK, WARN, ERROR = range(3)
"""The levels of diagnostic_msgs/DiagnosticStatus"""

NEAR = 0.1
"""Share of the limit of the condition number from which on it is worth a warning"""


class Report(NamedTuple):
    """A DiagnosticStatus: its level, message and values."""

    level: int
    message: str
    values: dict[str, str]


class Diagnosis:
    """Rates and new complaints between one report and the next."""

    def __init__(self, steady: float) -> None:
        self._before = (0, 0, 0)
        self._complaints = 0
        self._at = steady

    def report(
        self,
        controller: FeedForward,
        busy: bool,
        now: int,
        steady: float,
        *,
        description_refused: bool = False,
    ) -> Report:
        """The state of things.

        Args:
            busy: a new model is being built.
            now: the clock, ns.
            steady: s, of a clock that never jumps.
            description_refused: the newest description made no robot.
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
            "states of other joints": str(controller.foreign),
            "rejected": str(sum(tally.rejected.values())),
        }
        values |= {f"rejected: {key}": str(n) for key, n in sorted(tally.rejected.items())}
        values |= {f"event: {key}": str(n) for key, n in sorted(tally.events.items())}
        if controller.model is not None:
            wish = controller.model.wish
            values |= {
                "robot": wish.mechanism.name,
                "joints": listed(controller.model.joints),
                "side": wish.settings.side,
                "formulation": wish.settings.formulation,
                "rotors": wish.settings.rotors,
                "terms": ", ".join(wish.settings.terms),
                "payload (kg)": f"{float(sum(p.mass for p in wish.payloads.values())):g}",
                "backend": controller.model.dynamics.backend,
                "building a new model": "yes" if busy else "no",
            }
        values |= readings(controller, now)
        level, message = self._verdict(controller, rates, new)
        if description_refused:
            values["newest description"] = "refused"
            told = "the newest robot description was refused"
            level, message = max(level, WARN), "; ".join([told, *([message] if level else [])])
        if controller.model is not None:
            found, warnings = closure(controller.model)
            values |= found
            if warnings and level < ERROR:
                level, message = WARN, "; ".join([*warnings, *([message] if level else [])])
        return Report(level, message, values)

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


def readings(controller: FeedForward, now: int) -> dict[str, str]:
    """What is known of the states' parts, where they come in parts or incomplete."""
    settings, period, values = controller.settings, controller.rates.period, {}
    if settings.missing_velocities == "derive" and period is not None:
        values["derived velocities are late by (s)"] = (
            f"{settings.derivative_filter + period / 2:.4f}"
        )
    if settings.merge_states:
        ages = controller.merging.ages(now)
        values |= {f"age of {name} (s)": f"{age:.3f}" for name, age in sorted(ages.items())}
    return values


def closure(model: Model) -> tuple[dict[str, str], list[str]]:
    """(values, warnings) about the loops of the mechanism, where it has some."""
    closed, sensors = model.dynamics.closed, model.sensors
    if closed is None:
        return {}, []
    state = closed.last if sensors is None or sensors.verdict is None else sensors.verdict.state
    condition, limit = float(state.condition), closed.condition_limit
    residual = float(state.residual)
    values = {
        "condition number": f"{condition:.3g}",
        "condition limit": f"{limit:.3g}",
    }
    warnings = []
    if condition > NEAR * limit:
        warnings.append(f"near a singularity: condition number {condition:.3g}")
    if sensors is not None:
        if sensors.verdict is not None:
            residual = sensors.verdict.closure_residual
        distrusted = sensors.distrusted
        values["sensors trusted"] = ", ".join(n for n in model.optional if n not in distrusted)
        values["sensors not trusted"] = ", ".join(distrusted)
        if distrusted:
            warnings.append(
                f"not trusted: {', '.join(distrusted)} (closure residual {residual:.3g})"
            )
    return values | {"closure residual": f"{residual:.3g}"}, warnings


def _age(at: int | None, now: int) -> str:
    return "never" if at is None else f"{(now - at) / SECOND:.3f}"
