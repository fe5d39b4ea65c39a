"""`robot_dynamics identify`: a model from recordings of the moving robot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..command import Command, Result, Several
from ..options import factors, frequency, pairs, recordings
from ..progress import Progress
from ..tables import percent, table

if TYPE_CHECKING:
    from ...identification import Errors, Identification


@click.command(
    "identify",
    cls=Command,
    examples=[
        "identify robot.urdf recording/ --out identified/",
        "identify robot.urdf day1.mcap day2.mcap --validate day3.mcap --out identified/",
        "identify robot.urdf gripper.csv --payload tool0 --effort-scale elbow:-1 --out tool/",
    ],
)
@click.argument("file", metavar="DESCRIPTION", type=click.Path())
@click.argument("recording", metavar="RECORDING...", type=click.Path(), nargs=-1, required=True)
@recordings
@click.option("--out", required=True, type=click.Path(), metavar="DIR", help="Output folder.")
@click.option(
    "--validate",
    cls=Several,
    type=click.Path(),
    metavar="RECORDING...",
    help="Recordings for validation, kept from the fit (default: the last third of each).",
)
@click.option(
    "--payload",
    metavar="LINK",
    help="Identify this link's body alone; the arm stays as described.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Of Dask, whose workers read the recordings where they lie (tcp://host:8786).",
)
def command(
    file: str,
    recording: Sequence[str],
    topic: str | None,
    rename: Sequence[str],
    effort_scale: Sequence[str],
    cutoff: float | None,
    out: str,
    validate: Sequence[str],
    payload: str | None,
    scheduler: str | None,
) -> Result:
    """Identify a model from recordings of the moving robot.

    A RECORDING is a rosbag2 folder, a .db3, .mcap or .csv file.
    """
    from ...identification import identify
    from ...identification.files import save, summary
    from ..identification_report import write

    progress = Progress()
    result = identify(
        file,
        recording,
        validate=validate or None,
        topic=topic,
        rename=pairs(rename, "--rename"),
        effort_scale=factors(effort_scale),
        payload=payload,
        cutoff=frequency(cutoff),
        scheduler=scheduler,
        progress=progress,
    )
    folder = Path(out)
    files = save(result, folder)
    progress("drawing")
    files |= write(result, folder)
    return {
        **summary(result),
        "files": {name: str(path) for name, path in files.items()},
        "text": _text(result, [*files.values()]),
    }


def _text(result: Identification, files: Sequence[Path]) -> str:
    lines = [
        f"{result.mechanism.name}: {len(result.parameters)} parameters from "
        f"{result.duration:.3g} s of motion",
        f"torque errors on {result.errors.duration:.3g} s kept from the fit, RMS relative to "
        "that of the torque:",
        *table(_rows(result.errors)),
        f"the motion determined {result.excitation.told:.0f} of {result.excitation.identifiable} "
        f"identifiable parameters (condition number {result.excitation.condition:.3g})",
        *(f"note: {note}" for note in result.notes),
        *(f"warning: {words}" for words in result.warnings),
        *(f"wrote {path}" for path in files),
    ]
    return "\n".join(lines)


def _rows(errors: Errors) -> list[list[str]]:
    rows = [["", "as described", "identified"]]
    for joint, before, after in zip(
        errors.joints, errors.relative_described, errors.relative, strict=True
    ):
        rows.append([joint, percent(before), percent(after)])
    return rows
