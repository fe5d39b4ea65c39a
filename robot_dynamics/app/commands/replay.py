# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics replay`: a comparison of models' torques with measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...outputs import FILES, JOINTS, NOTES, NULLABLE, NUMBER, TEXT, Output, record
from ..command import Command, Progress
from ..shared_options import motor_efforts, path, recordings
from ..tables import table

OUTPUT = record(
    joints=JOINTS,
    descriptions=TEXT.listed().of("labels"),
    errors=NULLABLE.listed()
    .listed("by description, one for each joint: fraction of the torque")
    .of("relative"),
    duration=NUMBER("s"),
    cutoff=NULLABLE("Hz, of the filter of motion and measured torque; null: not filtered"),
    notes=NOTES,
    files=FILES,
)


@click.command(
    "replay",
    cls=Command,
    examples=["replay robot.urdf identified/identified.yaml recording/ --out pictures/"],
)
@click.argument("files", metavar="DESCRIPTION...", type=click.Path(), nargs=-1, required=True)
@click.argument("recording", metavar="RECORDING", type=click.Path())
@recordings
@motor_efforts
@path("--out", "DIR", "Output folder (default: the current one).", default=".")
def command(
    files: Sequence[str],
    recording: str,
    out: str,
    motor_efforts: bool,
    reading: dict[str, Any],
) -> Output:
    """Compare models' torques with measured ones.

    RECORDING is a rosbag2 folder, a .db3, .mcap or .csv file.
    """
    from ...description import load
    from ...description.files import check_writable
    from ...identification.replay import replay
    from ...identification.unknowns import match
    from ..identification_report import filtered, replay_rows, write_replay

    check_writable(Path(out))
    progress = Progress()
    result = replay(files, recording, **reading, motor_efforts=motor_efforts, progress=progress)
    progress("drawing")
    robot = load(files[-1])
    if not robot.loops:
        robot, _ = match(robot, result.joints)
    written = write_replay(result, Path(out), robot)
    lines = [
        f"torque errors over {result.duration:.3g} s, RMS relative to that of the measured torque, "
        f"{filtered([result.cutoff])}:",
        *table(replay_rows(result)),
        *(f"note: {note}" for note in result.notes),
        *(f"wrote {path}" for path in written.values()),
    ]
    return Output(OUTPUT.read(result, files=written), "\n".join(lines))
