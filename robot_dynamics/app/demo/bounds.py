# SPDX-License-Identifier: Apache-2.0
"""What limits the tracking error: the same loop in one process, with one thing changed at a time.

There is no ROS here: torques come directly from `InverseDynamics`. The remaining causes of errors
are the hold between two torques, their delay, and the integrator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...scalar import Floats
from ...simulation.tracking import TrackedRobot
from .record import Track
from .robots import Demo
from .subject import Subject

Torques = Callable[[Floats, Floats, Floats], Floats]


@dataclass(frozen=True)
class Case:
    """One way to run the loop."""

    label: str
    update_rate: float
    """Hz"""
    delay: int
    """periods"""
    timestep: float
    """s"""
    lookahead: float = 0.0
    """periods by which the desired state is sampled ahead of the measured one"""
    commanded: bool = False
    """Whether torques are computed from the desired state, instead of the measured one with desired
    accelerations"""

    @property
    def age(self) -> float:
        """The mean age of the torques while they are held, s."""
        return (self.delay + 0.5 - self.lookahead) / self.update_rate


def cases(demo: Demo) -> tuple[Case, ...]:
    """The demo as shown, and variants that each change one limit of its tracking error."""
    rate, delay, step, ahead = demo.update_rate, demo.delay, demo.timestep, demo.delay + 0.5
    return (
        Case("as shown", rate, delay, step),
        Case("four periods later", rate, delay + 4, step),
        Case("half the rate", rate / 2, delay, step),
        Case("without the delay", rate, 0, step),
        Case("without the delay, four times the rate", 4 * rate, 0, step / 4),
        Case("integrated four times finer", rate, delay, step / 4),
        Case("accelerations sampled ahead", rate, delay, step, ahead),
        Case("all sampled ahead", rate, delay, step, ahead, True),
        Case("all sampled ahead, integrated finer", rate, delay, step / 4, ahead, True),
    )


def track(subject: Subject, case: Case, torques: Torques) -> Track:
    """Track the demo's motion with a PD loop and feed-forward torques.

    Args:
        subject: the demo's robot.
        case: how the loop runs.
        torques: (q, qd, qdd) → torques, N·m or N.
    """
    demo, motion, places = subject.demo, subject.demo.motion, subject.places
    robot = TrackedRobot(
        subject.mechanism,
        joints=subject.joints,
        period=1 / case.update_rate,
        timestep=case.timestep,
        delay=case.delay,
        start=subject.start,
        **subject.gains,
    )
    ahead = case.lookahead * robot.period
    periods = round((motion.duration + demo.settle) / robot.period)
    times = np.array([k * robot.period for k in range(periods)])
    desired, rates, _ = motion(times)
    samples = []
    for _ in range(case.delay):  # the brakes are on until torques have arrived
        robot.wait(torques(*motion(0.0)))
    for k, time in enumerate(times):
        q, qd, qdd = motion(time + ahead)
        if not case.commanded:
            q, qd = robot.simulation.q[places], robot.simulation.qd[places]
        samples.append(robot.advance((desired[k], rates[k]), torques(q, qd, qdd)))
    q = np.array([sample.q[places] for sample in samples])
    return Track(
        case.label,
        times,
        q,
        q - desired,
        np.array([sample.feedback for sample in samples]),
        np.array([sample.efforts for sample in samples]),
    )


def bounds(subject: Subject) -> list[dict[str, object]]:
    """For each case, the factor by which the worst joint's RMS error decreases."""
    first = cases(subject.demo)[0]
    alone = track(subject, first, lambda q, _qd, _qdd: np.zeros(len(q)))
    rows: list[dict[str, object]] = []
    for case in cases(subject.demo):
        helped = track(subject, case, subject.dynamics)
        ratio = float(np.min(alone.rms / helped.rms))
        rows.append({"case": case.label, "age": case.age, "ratio": ratio})
    return rows
