# SPDX-License-Identifier: Apache-2.0
"""The node's diagnostics, published once a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...errors import listed
from .controller import FeedForward
from .stamps import NO_CLOCK, SECOND
from .torque_model import Model

OK, WARN, ERROR = range(3)
"""The levels of diagnostic_msgs/DiagnosticStatus"""

MOST_KINDS = 3
"""Number of kinds of complaints listed in the message; the values list all of them"""

OUTCOME = {
    "gravity": "torques at rest",
    "hold": "torques without acceleration",
    "stop": "silence",
}
"""What is published after a command, by `on_timeout`"""

ELSEWHERE = "if the robot has been moved since, deactivate and activate the node"
"""What to do if a robot with loops cannot be followed from its last known configuration"""

NEAR = 0.1
"""Fraction of the limit on the condition number beyond which the diagnostics warn"""


class Report(NamedTuple):
    """A DiagnosticStatus: its level, message and values."""

    level: int
    message: str
    values: dict[str, str]


class Diagnosis:
    """Creates reports, with rates and new complaints since the previous one.

    Args:
        steady: s, the current time of a clock that never jumps.
    """

    def __init__(self, steady: float) -> None:
        self._before = (0, 0, 0)
        self._complaints: Counter[str] = Counter()
        self._at = steady

    def report(
        self,
        controller: FeedForward,
        busy: bool,
        now: int,
        steady: float,
        *,
        description_refused: bool = False,
        state: str = "active",
        blocked: str = "",
        topic: str = "~/commands",
        subscribers: int = 1,
        rivals: Sequence[str] = (),
    ) -> Report:
        """A report on the node's current state.

        Args:
            controller: the subject of the report.
            busy: is a new model being built?
            now: the clock, ns.
            steady: s, of a clock that never jumps.
            description_refused: was the newest description refused?
            state: the state of the managed node.
            blocked: why no torques are sent to the controller; empty: they are.
            topic: the topic of the torques.
            subscribers: how many it has; they may not apply the torques.
            rivals: other nodes that publish on it.
        """
        states, commands, outlet = controller.states, controller.commands, controller.outlet
        counts = (states.count, commands.count, outlet.count)
        elapsed = max(steady - self._at, 1e-9)
        rates = [
            (count - before) / elapsed for count, before in zip(counts, self._before, strict=True)
        ]
        tally = controller.tally
        new = tally.all - self._complaints
        self._before, self._at, self._complaints = counts, steady, tally.all

        values = {
            "state": state,
            "phase": controller.commands.phase,
            "state rate (Hz)": f"{rates[0]:.1f}",
            "command rate (Hz)": f"{rates[1]:.1f}",
            "torque rate (Hz)": f"{rates[2]:.1f}",
            "state age (s)": _age(states.at, now),
            "command age (s)": _age(commands.at, now),
            "states": str(counts[0]),
            "commands": str(counts[1]),
            "torques": str(counts[2]),
            "states of other joints": str(states.foreign),
            "rejected": str(sum(tally.rejected.values())),
        }
        values |= {f"rejected: {key}": str(n) for key, n in sorted(tally.rejected.items())}
        values |= {f"event: {key}": str(n) for key, n in sorted(tally.events.items())}
        if controller.model is not None:
            spec = controller.model.spec
            values |= {
                "robot": spec.mechanism.name,
                "joints": listed(controller.model.joints),
                "side": spec.settings.side,
                "formulation": spec.settings.formulation,
                "rotors": spec.settings.rotors,
                "terms": ", ".join(spec.settings.terms),
                "payload (kg)": f"{float(sum(p.mass for p in spec.payloads.values())):g}",
                "backend": controller.model.dynamics.backend,
                "building a new model": "yes" if busy else "no",
            }
            if controller.model.followers is not None:
                values["motors"] = (
                    f"{listed(controller.model.outputs)} share the torque (least norm); "
                    f"dependent motors: {listed(controller.model.followers.names)}"
                )
        if controller.wrenches.on:
            values["wrenches on"] = ", ".join(sorted(controller.wrenches.on))
        values |= readings(controller, now)
        level, message = OK, f"{state}: no torques until it is activated"
        if state == "finalized":
            level, message = WARN, "shut down: no more torques; restart the node"
        if state == "active":
            level, message = self._verdict(controller, rates, new, now)
            if level == OK and rates[2] > 0:
                level, told = received(topic, subscribers, rivals)
                message = told if level else f"{message}; {told}"
            if blocked:
                level, message = ERROR, f"no torques: {blocked}"
        if description_refused:
            values["newest description"] = "refused"
            told = "the newest robot description was refused"
            level, message = max(level, WARN), "; ".join([told, *([message] if level else [])])
        if controller.model is not None:
            found, warnings = closure(controller.model)
            rest, unexplained = residual(controller)
            moved, unknown = base(controller, now)
            values |= found | rest | moved
            warnings = warnings + unexplained + unknown
            if warnings and level < ERROR:
                level, message = WARN, "; ".join([*warnings, *([message] if level else [])])
        return Report(level, message, values)

    @staticmethod
    def _verdict(
        controller: FeedForward, rates: list[float], new: Counter[str], now: int
    ) -> tuple[int, str]:
        phase, action = controller.commands.phase, controller.settings.on_timeout
        if controller.model is None:
            return ERROR, "no robot: waiting for robot_description"
        if now == 0:
            return WARN, NO_CLOCK
        silent = controller.commands.is_over and action == "stop"
        if phase != "waiting" and rates[2] == 0 and controller.settings.measured and not silent:
            why = (
                "no joint_states are received"
                if rates[0] == 0 and not new
                else controller.tally.newest
            )
            if new["torques: closure"]:
                why += "; " + ELSEWHERE
            return ERROR, f"no torques for {controller.outlet.silence(now):.3f} s: {why}"
        if new:
            which = ", ".join(f"{key} ({count})" for key, count in new.most_common(MOST_KINDS))
            more = sum(new.values()) - sum(n for _, n in new.most_common(MOST_KINDS))
            return WARN, f"in the last second: {which}" + (f" and {more} others" if more else "")
        since = _age(controller.commands.over_since, now)
        what = f"{OUTCOME[action]} for {since} s (on_timeout is {action})"
        if phase == "timeout":
            return WARN, f"commands have stopped: {what}"
        if phase == "interrupted":
            return WARN, f"the command was interrupted: {what}; send a new one"
        words = {
            "waiting": "waiting for a command",
            "finished": f"the trajectory has ended: {what}",
        }
        return OK, words.get(phase, "publishing torques")


def received(topic: str, subscribers: int, rivals: Sequence[str]) -> tuple[int, str]:
    """(level, message) about who receives the torques; see `Diagnosis.report`."""
    if not subscribers:
        return WARN, f"nobody receives the torques: {topic} has no subscriber"
    if rivals:
        return WARN, mixed(topic, rivals)
    # only the controller manager knows which of them apply the torques
    return OK, f"subscribers of {topic}: {subscribers}"


def mixed(topic: str, rivals: Sequence[str]) -> str:
    """What is wrong if other nodes publish on the topic of the torques."""
    return (
        f"{topic} has torques of {listed(rivals)} as well, and the controller applies those that "
        "come last: end one of the nodes, or remap its topic"
    )


def readings(controller: FeedForward, now: int) -> dict[str, str]:
    """Values about states that come in parts or without velocities.

    Args:
        controller: the subject of the report.
        now: the clock, ns.
    """
    settings, period, values = controller.settings, controller.states.rates.period, {}
    if settings.missing_velocities == "derive" and period is not None:
        values["derived velocities are delayed by (s)"] = (
            f"{settings.derivative_filter + period / 2:.4f}"
        )
    if settings.merge_states:
        ages = controller.states.merging.ages(now)
        values |= {f"age of {name} (s)": f"{age:.3f}" for name, age in sorted(ages.items())}
    return values


def residual(controller: FeedForward) -> tuple[dict[str, str], list[str]]:
    """(values, warnings) about the part of the measured torques that the model does not explain."""
    found, model = controller.residual, controller.model
    if found is None or found.value is None or model is None:
        return {}, []
    norm, threshold = found.norm, controller.settings.residual_threshold
    most = model.joints[int(np.argmax(np.abs(found.value)))]
    values = {
        "residual (N·m or N)": f"{norm:.4g}",
        "residual threshold (N·m or N)": f"{threshold:g}",
        "residual is largest at": most,
    }
    if not 0 < threshold < norm:
        return values, []
    return values, [
        f"residual of {norm:.4g}, mostly at {most!r}, above {threshold:g}: a collision, a "
        "payload, or a wrong model"
    ]


def base(controller: FeedForward, now: int) -> tuple[dict[str, str], list[str]]:
    """(values, warnings) about a base that something else moves.

    Args:
        controller: the subject of the report.
        now: the clock, ns.
    """
    if controller.model is None or not controller.model.moved:
        return {}, []
    known = controller.base
    values = {
        "base motion from": f"~/{known.source}" if known.source else "",
        "base motion age (s)": _age(known.time if known.source else None, now),
    }
    if known.late is not None:
        values["derived angular acceleration is delayed by (s)"] = f"{known.late:.4f}"
    problem = known.problem(controller.settings, now)
    return values, [f"no torques: {problem}"] if problem else []


def closure(model: Model) -> tuple[dict[str, str], list[str]]:
    """(values, warnings) about the mechanism's loops, if it has any."""
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
