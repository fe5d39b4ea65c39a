"""What the simulated robot wrote, and what it says about tracking."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .motion import Motion

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Track:
    """One run: a row a period, from the motion's beginning on."""

    label: str
    time: Floats
    """(t,), s from the motion's beginning"""
    q: Floats
    """(t, n), rad or m, of the demo's joints"""
    error: Floats
    """(t, n), rad or m: q - q_d, with q_d from the closed form"""
    feedback: Floats
    """(t, n), N·m or N, of the PD loop"""
    efforts: Floats
    """(t, n), N·m or N, of the feed-forward node"""
    missed: int = 0
    """states that no torques answered in time"""

    @property
    def rms(self) -> Floats:
        """(n,), rad or m"""
        return np.asarray(np.sqrt(np.mean(self.error**2, axis=0)))

    @property
    def peak(self) -> Floats:
        """(n,), rad or m"""
        return np.asarray(np.max(np.abs(self.error), axis=0))


def progress(path: Path) -> float | None:
    """How long the robot has moved (s) by a record that is being written; None: not yet."""
    if not path.exists():
        return None
    with path.open() as file:
        header = file.readline()
        first = next((line for line in file if line.split(",", 2)[1] == "1"), None)
        if not header or first is None:
            return None
        file.seek(max(0, path.stat().st_size - 10 * len(first)))
        lines = file.read().split("\n")
    # the last line may be half written, and the first one cut
    whole = [line for line in lines[1:-1] if line]
    return float(whole[-1].split(",", 1)[0]) - float(first.split(",", 1)[0]) if whole else 0.0


def read(path: Path, label: str, motion: Motion, joints: Sequence[str], end: float) -> Track:
    """The motion's first `end` seconds."""
    with path.open(newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        moving = header.index("moving")
        numbers = np.array([row for row in rows if row[moving] == "1"], dtype=float)
    time = numbers[:, 0] - numbers[0, 0]
    seen = time < end - 1e-6  # whole periods, whatever the rounding
    time, numbers = time[seen], numbers[seen]

    def columns(group: str) -> Floats:
        return numbers[:, [header.index(f"{group} {joint}") for joint in joints]]

    q, missed = columns("q"), int(numbers[-1, header.index("missed")])
    desired, _, _ = motion(time)
    return Track(label, time, q, q - desired, columns("feedback"), columns("efforts"), missed)
