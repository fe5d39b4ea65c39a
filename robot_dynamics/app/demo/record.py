# SPDX-License-Identifier: Apache-2.0
"""The simulated robot's record, and its tracking errors."""

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
    """One run: a row a period, from the motion's beginning on."""

    label: str
    time: Floats
    """(t,), s from the moment for which the motion was asked"""
    q: Floats
    """(t, n), rad or m, of the demo's joints"""
    error: Floats
    """(t, n), rad or m: q - q_d, with q_d from the closed form"""
    feedback: Floats
    """(t, n), N·m or N, of the PD loop"""
    efforts: Floats
    """(t, n), N·m or N, of the feed-forward node"""
    problem: str = ""
    """why the run is invalid; empty: it is valid"""
    platform_error: Floats | None = None
    """(t,), m: how far the platform is from where it should be; None: no platform"""

    @property
    def rms(self) -> Floats:
        """(n,), rad or m"""
        return np.asarray(np.sqrt(np.mean(self.error**2, axis=0)))

    @property
    def peak(self) -> Floats:
        """(n,), rad or m"""
        return np.asarray(np.max(np.abs(self.error), axis=0))


def progress(path: Path) -> tuple[float | None, int]:
    """By a record that is being written: how long the robot has moved (s; None: not yet), and how
    many periods of its motion had no torques of their own."""
    if not path.exists():
        return None, 0
    with path.open() as file:
        file.readline()
        first = next((line for line in file if line.split(",", 2)[1:2] == ["1"]), None)
        if first is None:
            return None, 0
        file.seek(max(0, path.stat().st_size - 10 * len(first)))
        lines = file.read().split("\n")
    # the last line may be half written, and the first one cut
    whole = [line.split(",", 3) for line in lines[1:-1] if line]
    if not whole:
        return 0.0, 0
    time, _, missed, _ = whole[-1]
    return float(time) - float(first.split(",", 1)[0]), int(missed)


def read(path: Path, label: str, subject: Subject) -> Track:
    """The motion from its beginning until the robot has settled."""
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
        problem = f"{missed} periods of the motion had no torques of their own"
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
