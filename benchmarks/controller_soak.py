# SPDX-License-Identifier: Apache-2.0
"""Soak test of the generated controller in motion: missed and late periods, growth of memory.

    python benchmarks/controller_soak.py urdf/six_axis.urdf [--seconds 3600] [--law gravity]

A real controller manager at 1 kHz, joint_trajectory_controller chained onto the generated
controller, MuJoCo as the robot: sines in all joints from beginning to end. The first second of
motion is not counted:

    update   time of all controllers in a period, us: median, 99 %, 99.9 %, largest
    late     periods that began more than half a period late; the longest period, us
    missed   periods that did not take place
    error    of positions, rad or m: root mean square in the first and the last tenth, largest
    cpu      processor time of the manager and MuJoCo together, as a fraction of one core
    memory   the manager's resident set, once a second, after the first sixth of the time
    followed whether the largest error stayed below half the sines' amplitude
    said     errors in the manager's log, and torques at rest

`thread` says whether the manager's loop has its real-time priority. Logs are kept in a file system
in memory, if there is one (300 bytes per period). The requirements are those of
benchmarks/controller.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from controller import Motion, managed
from node_latency import cpu_seconds, resident

import robot_dynamics as rd
from robot_dynamics.app.demo.controller_manager import (
    LAWS,
    RATE,
    ManagedRobot,
    built,
    check_sourced,
)

IN_MEMORY = Path("/dev/shm")
CHUNK = 100_000
"""rows of the log that are read at once"""
SPACING = 0.05
"""s between the trajectory's points; what is between them is a spline of the fifth order"""
BEGIN = 1.0
"""s after which the motion has its size"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each robot")
    parser.add_argument("--law", choices=LAWS, default="computed_torque")
    parser.add_argument("--size", type=float, default=0.2, help="amplitude, rad or m")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    results = []
    try:
        check_sourced()
        robots = [managed(each, folder / Path(each).stem) for each in options.robots]
        built(robots, lambda words: print(words, file=sys.stderr))
        for robot in robots:
            results.append(soak(robot, options))
            print(json.dumps(results[-1]), flush=True)
    except rd.RobotDynamicsError as error:
        sys.exit(str(error))
    finally:
        shutil.rmtree(folder)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return int(any(result["said"] or not result["followed"] for result in results))


def soak(robot: ManagedRobot, options: argparse.Namespace) -> dict[str, Any]:
    """What became of one robot's controller."""
    motion, memory, cpu = Motion(robot.start, options.size), [], []

    def look(pid: int) -> None:
        memory.append(resident(pid))
        cpu.append((time.monotonic(), cpu_seconds(pid)))

    log, told = robot.moved(
        options.law,
        motion,
        options.seconds,
        spacing=SPACING,
        each_second=look,
    )
    said = (robot.folder / "controller_manager.log").read_text(errors="replace").splitlines()
    found = Read(robot, motion, told["begin"], options.seconds, log)
    took, apart = np.concatenate(found.took), np.diff(np.concatenate(found.stamps))
    settled = memory[len(memory) // 6 :]
    followed = found.largest < 0.5 * options.size
    tenth = max(1, len(found.squares) // 10)
    squares = np.array(found.squares)
    return {
        "robot": robot.mechanism.name,
        "law": options.law,
        "rate_hz": RATE,
        "seconds": options.seconds,
        "thread": next((line.split("]: ")[-1] for line in said if "FIFO" in line), ""),
        "periods": len(took),
        "missed": round((options.seconds - BEGIN) * RATE) - len(took),
        "late": int((apart > 1.5 / RATE).sum()),
        "longest_period_us": float(1e6 * apart.max()),
        "update_us": dict(
            zip(
                ("p50", "p99", "p99.9", "max"),
                (1e6 * np.quantile(took, [0.5, 0.99, 0.999, 1.0])).tolist(),
                strict=True,
            )
        ),
        "error": {
            "rms_first": float(np.sqrt(squares[:tenth].mean())),
            "rms_last": float(np.sqrt(squares[-tenth:].mean())),
            "largest": found.largest,
        },
        "memory_bytes": {"start": settled[0], "end": settled[-1], "most": max(settled)},
        "cpu": (cpu[-1][1] - cpu[0][1]) / (cpu[-1][0] - cpu[0][0]),
        "followed": followed,
        "said": [line for line in said if "[ERROR]" in line or "at rest" in line],
    }


class Read:
    """A log of the motion, a chunk at a time: an hour has millions of rows."""

    def __init__(
        self, robot: ManagedRobot, motion: Motion, begin: float, seconds: float, log: Path
    ):
        self.took: list[np.ndarray] = []
        self.stamps: list[np.ndarray] = []
        self.squares: list[float] = []
        self.largest = 0.0
        n = len(robot.joints)
        with log.open() as file:
            # the last line may have been cut off at the end
            whole = (line for line in file if line.endswith("\n"))
            while lines := list(islice(whole, CHUNK)):
                rows = np.loadtxt(lines, delimiter=",", ndmin=2)
                t = rows[:, -2] - begin
                kept = (t >= BEGIN) & (t <= seconds)
                if not kept.any():
                    continue
                rows, t = rows[kept], t[kept]
                self.stamps.append(rows[:, -2])
                self.took.append(rows[:, -1])
                # joint_trajectory_controller is a period early
                error = rows[:, 1 : 3 * n : 3] - motion(t + 1.0 / RATE)[0]
                self.squares.append(float((error**2).mean()))
                self.largest = max(self.largest, float(abs(error).max()))


if __name__ == "__main__":
    sys.exit(main())
