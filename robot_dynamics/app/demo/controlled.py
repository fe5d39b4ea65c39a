# SPDX-License-Identifier: Apache-2.0
"""The demo `controller`: a robot under a real controller manager, with the node and with the
generated controller."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ...description import load
from ...description.files import check_writable, find, writable
from ...outputs import NULLABLE, NUMBER, ROBOT, TEXT, Kind, Output, record
from ..plots import errors_over_time
from ..tables import table
from .controller_manager import BANDWIDTH, RATE, ManagedRobot, Run, built, check_sourced
from .demonstration import Stages, check_extras
from .results import OUTPUT as DEMO
from .robots import ROBOTS

ROBOT_NAME = "six_axis"
SHOWN = {
    "PD": "PD alone",
    "node": "PD + the node, over topics",
    "feed_forward": "the generated controller, feed_forward",
    "computed_torque": "the generated controller, computed_torque",
}


def _ages(run: Run) -> list[float]:
    """The age of the torques; 0 if they belong to the same period as the state."""
    if run.way != "node" or run.ages is None:
        return [0.0, 0.0, 0.0]
    ages = run.ages[np.isfinite(run.ages)]
    found: list[float] = np.quantile(ages, [0.5, 0.99, 1.0]).tolist() if len(ages) else [np.nan] * 3
    return found


RUN = record(
    way=TEXT,
    rms=NULLABLE("rad or m"),
    largest=NULLABLE("rad or m"),
    late=NULLABLE("s, delay of the motion"),
    age=NULLABLE.listed("s, of the torques: median, 99 % quantile, maximum").of(_ages),
)
_CONTROLLED = record(
    robot=ROBOT,
    update_rate=NUMBER("Hz"),
    bandwidth=NUMBER("rad/s"),
    runs=RUN.listed(),
    picture=TEXT,
)
OUTPUT = Kind({"anyOf": [DEMO.schema, _CONTROLLED("of `demo controller`").schema]})


def demonstrate(folder: Path) -> Output:
    """Run the demo; see `robot_dynamics.app.demo.run`.

    Args:
        folder: the folder for the picture.
    """
    check_writable(folder)
    check_extras()
    check_sourced()
    writable(folder)
    show = Stages("demo controller")
    demo = ROBOTS[ROBOT_NAME]
    with tempfile.TemporaryDirectory(prefix="robot_dynamics_") as scratch:
        file = str(find(demo.description))
        robot = ManagedRobot(file, load(file), np.array(demo.motion.start), Path(scratch))
        built([robot], show)
        runs = []
        for way, words in SHOWN.items():
            show(words)
            runs.append(robot.run(way, demo.motion, demo.motion.duration))
        show("picture")
        title = (
            f"{robot.mechanism.name} under a controller manager at {RATE} Hz, MuJoCo as the robot"
        )
        lines = [(SHOWN[run.way], run.time, np.abs(run.error).max(axis=1)) for run in runs]
        panels = [("largest |error| of all joints (rad)", lines)]
        drawn = errors_over_time(folder / "controller_demo.png", title, panels)
        show.end()
    result = _CONTROLLED.read(
        robot=ROBOT_NAME, update_rate=RATE, bandwidth=BANDWIDTH, runs=runs, picture=drawn
    )
    return Output(result, text(result))


def text(result: dict[str, Any]) -> str:
    """The result as a table."""
    first = result["runs"][0]["rms"]
    rows = [["", "RMS error", "÷", "largest", "late", "age of torques: median", "99 %", "max"]]
    for run in result["runs"]:
        ages = [f"{1e3 * x:.2f} ms" for x in run["age"]]
        in_update = ["in the same period", "", ""]
        rows.append(
            [
                SHOWN.get(run["way"], run["way"]),
                f"{1e3 * run['rms']:.3f} mrad",
                f"{first / run['rms']:.3g}",
                f"{1e3 * run['largest']:.3f} mrad",
                f"{1e3 * run['late']:.1f} ms",
                *(ages if run["way"] == "node" else in_update),
            ]
        )
    head = (
        f"{result['robot']}: controller manager at {result['update_rate']} Hz, MuJoCo as the "
        f"hardware; PD bandwidth {result['bandwidth']:g} rad/s for all runs"
    )
    return "\n".join([head, "", *table(rows), "", f"picture: {result['picture']}"])
