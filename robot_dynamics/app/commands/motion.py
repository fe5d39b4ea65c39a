# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics motion`: the requirements of a motion on joints and motors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...formulations.equations import TERMS
from ..command import Command, Progress, Result
from ..options import description, motions, path, rotors_option, terms_option


@click.command(
    "motion",
    cls=Command,
    examples=[
        "motion robot.urdf motion.yaml",
        "motion config/three_axis.yaml plan.csv --out report/",
        "motion robot.yaml recording/ --rename fer_joint:panda_joint --out report/",
    ],
)
@description
@click.argument("motion", metavar="MOTION", type=click.Path())
@path("--out", "DIR", "Write a page, a CSV and pictures into this folder.")
@motions
@rotors_option
@terms_option
def command(
    file: str,
    motion: str,
    out: str | None,
    rotors: str,
    terms: Sequence[str],
    reading: dict[str, Any],
) -> Result:
    """Compute torque, rate, power and energy of joints and motors along a motion.

    MOTION is a JointTrajectory as YAML, a CSV with a time and JOINT/position (and JOINT/velocity),
    or a bag. With --out, a page shows them over time and in the torque-speed plane, and another
    animates the robot. For a robot with loops, the range of each motor, the singularities on
    its way, and maps of the range of two motors together are added.
    """
    from ...description import load
    from ...dynamics import InverseDynamics
    from ..drives.drives import drives
    from ..drives.ranges import ranges, reach_maps
    from ..drives.report import Reach, text, write
    from ..drives.states import states

    progress = Progress()
    mechanism = load(file)
    dynamics = InverseDynamics(mechanism, rotors=rotors, terms=terms or TERMS)
    progress("reading the motion")
    moving = states(motion, dynamics.joint_names, **reading)
    progress("computing")
    found = drives(dynamics, moving)
    reach = Reach()
    if dynamics.closed is not None:
        progress("how far the motors go")
        maps = [] if out is None else reach_maps(dynamics.closed)
        reach = Reach(ranges(dynamics.closed), maps)
    written: dict[str, Path] = {}
    if out is not None:
        progress("drawing")
        written = write(Path(out), mechanism.name, found, moving, reach, "robot.html")
        from ..show.playing import played

        written["robot"] = played(file, mechanism, Path(out) / "robot.html", moving, rotors)
    words = text(found, moving, reach)
    return {
        "robot": mechanism.name,
        "joints": list(dynamics.joint_names),
        "actuated": list(dynamics.actuated_names),
        "duration": float(moving.time[-1] - moving.time[0]),
        "states": len(moving.time),
        "lost": found.lost,
        "energy": found.energy,
        "drives": {
            kind: {
                drive.name: {
                    "peak_torque": drive.peak(drive.torque),
                    "rms_torque": drive.rms,
                    "peak_rate": drive.peak(drive.rate),
                    "peak_power": drive.peak(drive.power),
                    "driven": drive.driven,
                    "braked": drive.braked,
                    "torque_share": drive.torque_share,
                    "rate_share": drive.rate_share,
                }
                for drive in some
            }
            for kind, some in (("joints", found.joints), ("motors", found.motors))
        },
        "beyond": [words for each in (*found.joints, *found.motors) for words in each.beyond],
        "ranges": {each.name: each.numbers for each in reach.ranges},
        "notes": list(moving.notes),
        "files": {name: str(path) for name, path in written.items()},
        "text": "\n".join([words, *(f"wrote {path}" for path in written.values())]),
    }
