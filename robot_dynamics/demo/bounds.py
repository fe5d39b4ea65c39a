"""What keeps feed-forward from being perfect: the same loop in one process, one thing changed.

No ROS here: torques come straight from `InverseDynamics`, so that what is left is the hold
between two torques, their delay, and the integrator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..inverse_dynamics import InverseDynamics
from ..mechanism import Mechanism
from ..tracking import TrackedRobot
from .record import Track
from .robots import Demo

TIMESTEP = 2e-4


@dataclass(frozen=True)
class Case:
    """One way to run the loop."""

    label: str
    update_rate: float
    """Hz"""
    delay: int
    """periods"""
    lookahead: float = 0.0
    """periods that the desired acceleration is sampled ahead of the state"""
    timestep: float = TIMESTEP
    """s"""


    @property
    def age(self) -> float:
        """s: how old the torques are on average while they are held"""
        return (self.delay + 0.5 - self.lookahead) / self.update_rate


def cases(demo: Demo) -> tuple[Case, ...]:
    rate, delay = demo.update_rate, demo.delay
    return (
        Case("as shown", rate, delay),
        Case("four periods later", rate, delay + 4),
        Case("half the rate", rate / 2, delay),
        Case("without the delay", rate, 0),
        Case("without the delay, four times the rate", 4 * rate, 0, timestep=TIMESTEP / 4),
        Case("integrated four times finer", rate, delay, timestep=TIMESTEP / 4),
        Case("acceleration sampled ahead by that age", rate, delay, lookahead=delay + 0.5),
    )


def track(mechanism: Mechanism, demo: Demo, gains: tuple[list[float], list[float]], case: Case,
          torques: Callable[..., np.ndarray] | None) -> Track:  # fmt: skip
    """The demo's motion under PD, and torques(q, qd, qdd) where given."""
    motion = demo.motion
    robot = TrackedRobot(
        mechanism,
        period=1 / case.update_rate,
        timestep=case.timestep,
        p_gains=gains[0],
        d_gains=gains[1],
        delay=case.delay,
        start=motion.start,
    )
    ahead = case.lookahead * robot.period
    nothing = np.zeros(len(motion.start))
    times = np.arange(round((motion.duration + demo.settle) / robot.period)) * robot.period
    desired, rates, _ = motion(times)
    samples = []
    for k, time in enumerate(times):
        q, qd = robot.simulation.q, robot.simulation.qd
        efforts = nothing if torques is None else torques(q, qd, motion(time + ahead)[2])
        samples.append(robot.advance((desired[k], rates[k]), efforts))
    q = np.array([sample.q for sample in samples])
    return Track(
        case.label,
        times,
        q,
        q - desired,
        np.array([sample.feedback for sample in samples]),
        np.array([sample.efforts for sample in samples]),
    )


def bounds(
    mechanism: Mechanism, demo: Demo, gains: tuple[list[float], list[float]]
) -> list[dict[str, object]]:
    """For each case: by how much the RMS error of the worst joint falls."""
    dynamics = InverseDynamics(mechanism)
    alone = track(mechanism, demo, gains, cases(demo)[0], None)
    rows: list[dict[str, object]] = []
    for case in cases(demo):
        helped = track(mechanism, demo, gains, case, dynamics)
        rows.append({"case": case.label, "age": case.age, "ratio": float(np.min(alone.rms / helped.rms))})
    return rows
