# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics motion`: the requirements of a motion on joints and motors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...formulations.equations import TERMS
from ...outputs import COUNT, FILES, MATRIX, MODEL, NOTES, NULLABLE, NUMBER, TEXT, Output, record
from ..command import Command, Progress
from ..shared_options import description, motions, path, rotors_option, terms_option

_DRIVE = record(
    peak_torque=NULLABLE("N·m or N").of(lambda drive: drive.peak(drive.torque)),
    rms_torque=NULLABLE("N·m or N").of("rms"),
    peak_rate=NULLABLE("rad/s or m/s").of(lambda drive: drive.peak(drive.rate)),
    peak_power=NULLABLE("W").of(lambda drive: drive.peak(drive.power)),
    driven=NULLABLE("J delivered"),
    braked=NULLABLE("J absorbed"),
    torque_share=NULLABLE("fraction of the limit"),
    rate_share=NULLABLE("fraction of the limit"),
)
_RANGE = record(
    lower=NUMBER("rad or m"),
    upper=NUMBER("rad or m"),
    home=NUMBER("rad or m"),
    ends=TEXT.listed("what limits it at each end"),
    conditions=NULLABLE.listed("of the passive Jacobian at each end"),
    without_torque=MATRIX("intervals too near a singularity"),
    share=NULLABLE("fraction of the motor's travel with torques"),
    places=NUMBER.listed("rad or m, from lower to upper"),
    passive_conditions=NULLABLE.listed("condition numbers at those places"),
)
OUTPUT = record(
    **MODEL,
    duration=NUMBER("s"),
    states=COUNT,
    lost=COUNT("states that the robot cannot reach"),
    energy=NULLABLE("J, delivered minus absorbed"),
    drives=record(joints=_DRIVE.by_name(), motors=_DRIVE.by_name()),
    beyond=TEXT.listed("limits that are exceeded"),
    ranges=_RANGE.by_name("range of each motor, the others at home"),
    notes=NOTES,
    files=FILES,
)


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
) -> Output:
    """Compute the motors' torques, power and energy along a motion.

    MOTION is a JointTrajectory as YAML, a CSV with a time and JOINT/position (and JOINT/velocity),
    or a bag. With --out, a page shows them over time and in the torque-speed plane, and another
    animates the robot. For a robot with loops, the range of each motor, the singularities on
    its way, and maps of the range of two motors together are added.
    """
    from ...description import load
    from ...description.files import check_writable
    from ...dynamics import InverseDynamics
    from ..drives.drives import drives
    from ..drives.motion_report import Reach, text, write
    from ..drives.ranges import ranges, reach_maps
    from ..drives.sampled_motion import states

    if out is not None:
        check_writable(Path(out))
    progress = Progress()
    mechanism = load(file)
    dynamics = InverseDynamics(mechanism, rotors=rotors, terms=terms or TERMS)
    progress("reading the motion")
    moving = states(motion, dynamics.joint_names, **reading)
    progress("computing")
    found = drives(dynamics, moving)
    reach = Reach()
    if dynamics.closed is not None:
        progress("finding the ranges of the motors")
        maps = [] if out is None else reach_maps(dynamics.closed)
        reach = Reach(ranges(dynamics.closed), maps)
    written: dict[str, Path] = {}
    if out is not None:
        progress("drawing")
        written = write(Path(out), mechanism.name, found, moving, reach, "robot.html")
        from ..show.playing import played

        written["robot"] = played(file, mechanism, Path(out) / "robot.html", moving, rotors)
    words = text(found, moving, reach)
    result = OUTPUT.read(
        dynamics,
        duration=moving.time[-1] - moving.time[0],
        states=len(moving.time),
        lost=found.lost,
        energy=found.energy,
        drives=found,
        beyond=[words for each in (*found.joints, *found.motors) for words in each.beyond],
        ranges=reach.ranges,
        notes=moving.notes,
        files=written,
    )
    return Output(result, "\n".join([words, *(f"wrote {path}" for path in written.values())]))
