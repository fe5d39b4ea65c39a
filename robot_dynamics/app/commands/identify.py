# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics identify`: a model from recordings of the moving robot."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...errors import InputError, listed, wrong
from ...mechanism import Inertial
from ...mechanism.bodies import body_from
from ...outputs import Output
from ..command import Command, Progress
from ..shared_options import flag, motor_efforts, number, path, recordings, several
from ..tables import percent, table

if TYPE_CHECKING:
    from ...identification import Errors, Identification
    from ...identification.closed import ClosedIdentification
    from ...identification.drive_gains import DriveGains

NOT_BETTER = 3
"""The exit code of --strict"""


@click.command(
    "identify",
    cls=Command,
    output="identification_report.OUTPUT",
    examples=[
        "identify robot.urdf recording/ --out identified/",
        "identify robot.urdf day1.mcap day2.mcap --validate day3.mcap --out identified/",
        "identify robot.urdf a.csv --drive-gains loaded.csv --load tool0:2.5,0,0,0.08 --out arm/",
        "identify robot.urdf gripper.csv --payload tool0 --effort-scale elbow:-1 --out tool/",
    ],
)
@click.argument("file", metavar="DESCRIPTION", type=click.Path())
@click.argument("recording", metavar="RECORDING...", type=click.Path(), nargs=-1, required=True)
@recordings
@path("--out", "DIR", "Output folder.", required=True)
@several(
    "--validate",
    "RECORDING...",
    "Recordings for validation, held out of the fit (default: the last third of each).",
    type=click.Path(),
)
@click.option(
    "--payload",
    metavar="LINK",
    help="Identify only this link's body; the rest of the robot stays as described.",
)
@several(
    "--drive-gains",
    "RECORDING...",
    "Recordings of the same robot with a known load (--load). Efforts are then treated as motor "
    "currents, and the factors that convert them to torques are identified first.",
    type=click.Path(),
)
@click.option(
    "--load",
    metavar="LINK:M,X,Y,Z",
    help="The known load: the link that carries it, its mass (kg) and its centre of mass in that "
    "link's frame (m); then, if known, its inertia about that centre: ,IXX,IYY,IZZ,IXY,IXZ,IYZ.",
)
@motor_efforts
@flag(
    "--strict",
    f"Exit with code {NOT_BETTER} if the original description predicts held-out motion better; "
    "its inertial parameters are then kept.",
)
@number(
    "--workers",
    "N",
    "Number of processes on this machine that share the recordings (default: one).",
    type=int,
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Address of a Dask scheduler (tcp://host:8786), whose workers read the recordings "
    "where they are stored.",
)
def command(
    file: str,
    recording: Sequence[str],
    out: str,
    validate: Sequence[str],
    payload: str | None,
    drive_gains: Sequence[str],
    load: str | None,
    strict: bool,
    motor_efforts: bool,
    workers: int | None,
    scheduler: str | None,
    reading: dict[str, Any],
) -> Output:
    """Identify a model from recordings of the moving robot.

    A RECORDING is a rosbag2 folder, a .db3, .mcap or .csv file. For a robot with loops, it
    contains the positions and efforts of every motor.
    """
    from ...description.files import check_writable
    from ...identification import identify
    from ...identification.drive_gains import drive_gains as found_gains
    from ...identification.result_files import save, summary
    from ..identification_report import write

    folder = Path(out)
    check_writable(folder)
    progress = Progress()
    gains = None
    if drive_gains or load is not None:
        if scales := reading.pop("effort_scale"):
            raise wrong(InputError, "--effort-scale", listed(scales), "none with --drive-gains")
        link, body = _load(load, drive_gains)
        # without --cutoff not unfiltered, but with the filter that gains have by default
        given = {name: value for name, value in reading.items() if value is not None}
        gains = found_gains(file, recording, drive_gains, link, body, **given, progress=progress)
        reading["effort_scale"] = gains.gains
        motor_efforts = motor_efforts or gains.coupled
    result = identify(
        file,
        recording,
        validate=validate or None,
        payload=payload,
        **reading,
        motor_efforts=motor_efforts,
        scheduler=scheduler,
        workers=workers,
        progress=progress,
    )
    files = save(result, folder)
    progress("drawing")
    files |= write(result, folder)
    told = summary(result) | {"files": {name: str(path) for name, path in files.items()}}
    if gains is not None:
        told["drive_gains"] = {
            name: {"gain": gain, "standard_deviation": gains.deviations[name]}
            for name, gain in gains.gains.items()
        }
    return Output(
        told,
        "\n".join([*_lines(gains), _text(result, [*files.values()])]),
        NOT_BETTER if strict and result.kept != "nothing" else 0,
    )


def _load(text: str | None, recordings: Sequence[str]) -> tuple[str, Inertial]:
    """The link and the body of --load.

    Raises:
        InputError: it is missing, or has another form.
    """
    from ...identification.clearance import link_numbers

    form = "LINK:M,X,Y,Z or LINK:M,X,Y,Z,IXX,IYY,IZZ,IXY,IXZ,IYZ, in kg, m and kg m²"
    if text is None or not recordings:
        raise wrong(InputError, "--load and --drive-gains", text or "one of them", "both, or none")
    link, values = link_numbers(text, (4, 7, 10), "--load", form)
    return link, body_from(Inertial, [*values, *[0.0] * (10 - len(values))])


def _lines(gains: DriveGains | None) -> list[str]:
    if gains is None:
        return []
    rows = [["", "N·m or N per unit", "±"]]
    for name, gain in gains.gains.items():
        rows.append([name, f"{gain:.5g}", f"{gains.deviations[name]:.2g}"])
    again = shlex.join(f"{name}:{gain:.6g}" for name, gain in gains.gains.items())
    return [
        "drive gains, from the known load:",
        *table(rows),
        f"to use them again: --effort-scale {again}" + " --motor-efforts" * gains.coupled,
        *(f"warning: {words}" for words in gains.warnings),
    ]


def _text(result: Identification | ClosedIdentification, files: Sequence[Path]) -> str:
    from ..identification_report import filtered

    lines = [
        f"{result.mechanism.name}: {len(result.parameters)} parameters from "
        f"{result.fitted.duration:.3g} s of motion",
        f"torque errors on {result.errors.duration:.3g} s held out of the fit, RMS relative to "
        f"that of the torque, both {filtered(result.cutoffs.values())}:",
        *table(_rows(result.errors)),
        *_excitation(result),
        *(f"note: {note}" for note in result.notes),
        *(f"warning: {words}" for words in result.warnings),
        *(f"wrote {path}" for path in files),
    ]
    return "\n".join(lines)


def _excitation(result: Identification | ClosedIdentification) -> list[str]:
    excitation = getattr(result, "excitation", None)
    if excitation is None:
        return []
    return [
        f"the motion determined {excitation.determined:.0f} of {excitation.identifiable} "
        f"identifiable parameters (condition number {excitation.condition:.3g})"
    ]


def _rows(errors: Errors) -> list[list[str]]:
    rows = [["", "as described", "identified"]]
    for joint, before, after in zip(
        errors.joints, errors.relative_described, errors.relative, strict=True
    ):
        rows.append([joint, percent(before), percent(after)])
    return rows
