# SPDX-License-Identifier: Apache-2.0
"""The simulated robot's record, and the tracking errors in it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...scalar import Floats
from .subject import Subject


@dataclass(frozen=True, eq=False)
class Track:
    """One run, with one row per period, starting with the motion."""

    label: str
    time: Floats
    """(t,) s since the commanded beginning of the motion"""
    q: Floats
    """(t, n) positions of the demo's joints, rad or m"""
    error: Floats
    """(t, n) q - q_d, with q_d in closed form, rad or m"""
    feedback: Floats
    """(t, n) torques of the PD loop, N·m or N"""
    efforts: Floats
    """(t, n) torques of the feed-forward node, N·m or N"""
    problem: str = ""
    """Why the run is invalid; empty: it is valid"""
    platform_error: Floats | None = None
    """(t,) distance of the platform from its desired position, m; None: no platform"""

    @property
    def rms(self) -> Floats:
        """The root mean square error (n,), rad or m."""
        return np.asarray(np.sqrt(np.mean(self.error**2, axis=0)))

    @property
    def peak(self) -> Floats:
        """The largest error (n,), rad or m."""
        return np.asarray(np.max(np.abs(self.error), axis=0))


def progress(path: Path) -> tuple[float | None, int]:
    """The progress of a run, from a record that is being written.

    Args:
        path: the record.

    Returns:
        how long the robot has moved (s; None: not yet), and the number of periods of the motion
        without torques of their own.
    """
    if not path.exists():
        return None, 0
    lines = path.read_text().split("\n")[1:-1]  # the last line may be incomplete
    rows = [line.split(",", 3) for line in lines]
    moved = [row for row in rows if row[1] == "1"]
    if not moved:
        return None, 0
    time, _, missed, _ = moved[-1]
    return float(time) - float(moved[0][0]), int(missed)


def read(path: Path, label: str, subject: Subject) -> Track:
    """Read the motion from its beginning until the robot has settled.

    Args:
        path: the record.
        label: the run's label.
        subject: the demo's robot.
    """
    with path.open(newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        moving = header.index("moving")
        numbers = np.array([row for row in rows if row[moving] == "1"], dtype=float)
    missed, begin = int(numbers[-1, header.index("missed")]), numbers[0, header.index("begin")]
    time = numbers[:, 0] - begin
    # whole periods, whatever the rounding
    seen = time < subject.demo.motion.duration + subject.demo.settle - 1e-6
    time, numbers = time[seen], numbers[seen]

    def columns(group: str, joints: Sequence[str] = subject.joints) -> Floats:
        chosen: Floats = numbers[:, [header.index(f"{group} {joint}") for joint in joints]]
        return chosen

    q = columns("q")
    problem = ""
    if missed:
        problem = f"no new torques arrived in {missed} periods of the motion"
    elif not abs(time[0]) < 1e-6:  # whole periods
        problem = f"the robot received the motion {time[0]:.3f} s after its start"
    return Track(
        label,
        time,
        q,
        q - subject.demo.motion(time)[0],
        columns("feedback"),
        columns("efforts"),
        problem,
        subject.platform_error(time, columns("q", subject.mechanism.joint_names)),
    )
