# SPDX-License-Identifier: Apache-2.0
"""Tracking errors of generated controllers under a real controller manager, MuJoCo as the robot.

    python benchmarks/controller.py polar urdf/six_axis.urdf [--picture docs/controller.png]

Each robot performs the same motion at 1 kHz under each of these, with gains of the same bandwidth:

    PD              joint_trajectory_controller with its own PID on effort interfaces
    node            the node `feed_forward` over topics, through forward_command_controller
    gravity, feed_forward, computed_torque
                    joint_trajectory_controller chained onto the generated controller, by its law

The table has the root mean square and the largest position error after the first second of the
motion, the delay of the whole motion, which is not part of these errors, and the age of the
torques: that of the state from which they were computed, over all periods of the motion (the
generated controller uses the state of the same period).

It needs a sourced ROS 2 with ros2_control and ros2_controllers, and says what is missing. Missing
generated packages and robot_dynamics/controller/mujoco_hardware are built once.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import robot_dynamics as rd
from robot_dynamics.app.demo.controlled import RUN
from robot_dynamics.app.demo.controller_manager import WAYS, ManagedRobot, Run, built, check_sourced
from robot_dynamics.app.plots import errors_over_time

ROOT = Path(__file__).resolve().parents[1]


class Motion:
    """Sines of different frequencies about the start, which begin at rest."""

    def __init__(self, start: np.ndarray, size: float):
        j = np.arange(len(start))
        self.start = start
        self.amplitude = size * (1.0 - 0.08 * j)
        self.omega = 2.0 * np.pi * (0.35 + 0.07 * j)

    def __call__(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # q = q_0 + w(t) a sin(ω t), w from 0 to 1 in the first second: 10 s³ - 15 s⁴ + 6 s⁵
        t = np.asarray(time, dtype=float)[..., None]
        s = np.clip(t, 0.0, 1.0)
        w = 10 * s**3 - 15 * s**4 + 6 * s**5
        wd = 30 * s**2 - 60 * s**3 + 30 * s**4
        wdd = 60 * s - 180 * s**2 + 120 * s**3
        f = self.amplitude * np.sin(self.omega * t)
        fd = self.amplitude * self.omega * np.cos(self.omega * t)
        fdd = -(self.omega**2) * f
        return self.start + w * f, w * fd + wd * f, w * fdd + 2 * wd * fd + wdd * f


def managed(reference: str, folder: Path) -> ManagedRobot:
    path = ROOT / "config" / f"{reference}.yaml"
    file = str(path if path.exists() else Path(reference))
    mechanism = rd.load(file)
    joints = rd.InverseDynamics(mechanism).joint_names
    start = np.array([float(mechanism.home.get(name, 0.0)) for name in joints])
    folder.mkdir(parents=True, exist_ok=True)
    return ManagedRobot(file, mechanism, start, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--size", type=float, default=0.3, help="amplitude, rad or m")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--keep", type=Path, help="folder for logs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    try:
        check_sourced()
        folder = Path(options.keep or tempfile.mkdtemp())
        robots = [managed(each, folder / Path(each).stem) for each in options.robots]
        built(robots, lambda words: print(words, file=sys.stderr))
        measured(robots, options)
    except rd.RobotDynamicsError as error:
        sys.exit(str(error))


def after(begin: float, run: Run) -> Run:
    """The run from a time on, s since the beginning of the motion."""
    rows = run.time >= begin
    names = ("time", "q", "efforts", "error", "ages")
    parts = {name: x[rows] for name in names if (x := getattr(run, name)) is not None}
    return replace(run, **parts)


def measured(robots: list[ManagedRobot], options: argparse.Namespace) -> None:
    results: dict = {}
    panels = []
    ages = "".join(f"{x:>10}" for x in ("age p50", "p99", "max, ms"))
    print(f"{'robot':12} {'way':16} {'RMS mrad or mm':>15} {'largest':>10} {'late ms':>8} {ages}")
    for robot in robots:
        motion, lines = Motion(robot.start, options.size), []
        name = robot.mechanism.name
        for way in options.ways:
            found = after(1.0, robot.run(way, motion, options.seconds))
            row = results.setdefault(name, {})[way] = RUN.read(found)
            old = "".join(f"{1e3 * x:10.2f}" for x in row["age"]) if way == "node" else ""
            print(
                f"{name:12} {way:16} {1e3 * found.rms:15.4f} {1e3 * found.largest:10.4f} "
                f"{1e3 * found.late:8.1f} {old}",
                flush=True,
            )
            lines.append((way, found.time, abs(found.error).max(axis=1)))
        panels.append((f"{name}: largest |error|\n(rad or m)", lines))
    if options.json:
        options.json.write_text(json.dumps(results))
    if options.picture:
        title = "One motion under a controller manager at 1 kHz, MuJoCo as the robot"
        errors_over_time(options.picture, title, panels)


if __name__ == "__main__":
    main()
