# SPDX-License-Identifier: Apache-2.0
"""Duration of `update` of ours and other controllers in a real controller manager at 1 kHz.

    python benchmarks/controller_jitter.py urdf/six_axis.urdf --minutes 10 [--beside PLUGIN …]

One controller at a time is active, on a robot that stands still: ros2_controllers'
forward_command_controller, which computes nothing; the generated one with the law `gravity` (the
whole inverse dynamics, at rest); and any others that are named (PACKAGE/Class). Those get the
parameters `joints` and `description`, and must claim the joints' effort interfaces. They alternate
every half minute, so that other load on the machine affects all of them equally.

The table has the time that all controllers of a period take (median, 99.9 % quantile, maximum), the
ratio to that of the empty controller, and the number of periods that began more than half a period
late.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from controller import managed

import robot_dynamics as rd
from robot_dynamics.app.demo.controller_manager import LEAD, RATE, built, check_sourced

EMPTY = "forward_command_controller/ForwardCommandController"
TURN = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("robot")
    parser.add_argument("--minutes", type=float, default=1.0, help="of each controller")
    parser.add_argument("--beside", nargs="*", default=[], metavar="PLUGIN")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        check_sourced()
        robot = managed(options.robot, Path(tempfile.mkdtemp()))
        built([robot], lambda words: print(words, file=sys.stderr))
        measured(robot, options)
    except rd.RobotDynamicsError as error:
        sys.exit(str(error))


def idle(robot, plugin: str, parameters: dict, seconds: float) -> tuple:
    """One controller without a motion: how long its updates take, and the time between them, s."""
    log = robot.folder / "idle.csv"
    manager = {"update_rate": RATE, "enforce_command_limits": False, "law": {"type": plugin}}
    plan = {
        "description": robot.description(log, held=1),
        "controllers": ["law"],
        "points": None,
        "lead": LEAD,
        "seconds": seconds,
        "efforts": "",
        "out": str(robot.folder / "idle_seen.json"),
    }
    own = {"controller_manager": manager, "law": parameters}
    robot.attempt("idle", {name: {"ros__parameters": own[name]} for name in own}, plan)
    # the rows before are from the start-up
    rows = np.loadtxt(log, delimiter=",")[-round(seconds * RATE) :]
    return rows[1:, -1], np.diff(rows[:, -2])


def measured(robot, options: argparse.Namespace) -> None:
    own = {"joints": robot.joints, "description": robot.file}
    law = f"{robot.package}/FeedForwardController"
    plugins = {
        "empty": (EMPTY, {"joints": robot.joints, "interface_name": "effort"}),
        "generated": (law, {"law": "gravity"}),
        **{name: (name, own) for name in options.beside},
    }
    turns = max(1, round(60.0 * options.minutes / TURN))
    seconds = 60.0 * options.minutes / turns
    found: dict[str, list] = {name: [] for name in plugins}
    for turn in range(turns):
        for name, (plugin, parameters) in plugins.items():
            print(f"turn {turn + 1} of {turns}: {name}", file=sys.stderr)
            found[name].append(idle(robot, plugin, parameters, seconds))
    print(f"{robot.mechanism.name}: {options.minutes:g} min each at {RATE} Hz, in {turns} turns")
    heads = ("p50 us", "p99.9 us", "max us", "÷ empty: p50", "p99.9", "late periods")
    print(f"{'controller':36}" + "".join(f"{head:>14}" for head in heads))
    results: dict = {}
    for name, runs in found.items():
        took, apart = (np.concatenate(each) for each in zip(*runs, strict=True))
        p50, p999, most = (float(x) for x in 1e6 * np.quantile(took, [0.5, 0.999, 1.0]))
        late = int((apart > 1.5 / RATE).sum())
        row = {"p50": p50, "p99.9": p999, "max": most, "late": late, "periods": len(took)}
        results[name] = row
        first = results["empty"]
        cells = [f"{p50:.2f}", f"{p999:.2f}", f"{most:.1f}", f"{p50 / first['p50']:.3f}"]
        cells += [f"{p999 / first['p99.9']:.3f}", f"{late} of {len(took)}"]
        print(f"{name:36}" + "".join(f"{cell:>14}" for cell in cells), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
