# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics excite`: an exciting motion to record for identification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import InputError, wrong
from ...outputs import COUNT, FILES, JOINTS, NOTES, NULLABLE, NUMBER, ROBOT, Kind, Output, record
from ..command import Command, Progress
from ..shared_options import number, path, several
from ..tables import percent
from ..tables import table as aligned

if TYPE_CHECKING:
    from ...identification.excitation import ExcitingMotion, Score


SHOWN = 5
"""Number of distances to print; --json has all"""

_SCORE = record(log_det=NULLABLE, condition=NULLABLE, excited=COUNT)


def _by_joint(name: str, joints: str = "joints") -> Kind:
    return NULLABLE.by_name("by joint").of(
        lambda margins: dict(zip(getattr(margins, joints), getattr(margins, name), strict=True))
    )


OUTPUT = record(
    robot=ROBOT.of("mechanism.name"),
    joints=JOINTS,
    duration=NUMBER("s").of("motion.duration"),
    harmonics=COUNT.of("motion.series.harmonics"),
    start=NUMBER.by_name("rad or m").of(
        lambda found: dict(zip(found.joints, found.motion.start, strict=True))
    ),
    parameters=COUNT.of("after.parameters"),
    before=_SCORE("of a simple swing of each joint"),
    after=_SCORE,
    shares_of_limits=record(
        position=_by_joint("position"),
        rate=_by_joint("rate"),
        acceleration=_by_joint("acceleration"),
        effort=_by_joint("effort", "independent"),
    ).of("margins"),
    clearances=NUMBER.by_name("m, clearance to obstacles").of("margins.rooms"),
    notes=NOTES,
    files=FILES,
)


@click.command(
    "excite",
    cls=Command,
    examples=[
        "excite robot.urdf --out motion.yaml",
        "excite robot.urdf --limits joint_limits.yaml --above tool0:0.1 --out motion.yaml",
        "excite robot.urdf --table -0.02 --srdf robot.srdf --out motion.yaml",
    ],
)
@click.argument("file", metavar="DESCRIPTION", type=click.Path())
@path("--out", "FILE", "File to write the motion to (.yaml).", required=True)
@number("--duration", "S", "Duration of the motion.", default=20.0)
@path(
    "--limits",
    "FILE",
    "A joint_limits.yaml in MoveIt's format, which overrides the description's limits.",
)
@several(
    "--above", "LINK:Z...", "Keep the origin of a link above a height Z (m) in the base frame."
)
@several(
    "--outside",
    "LINK:X,Y,Z,R...",
    "Keep the origin of a link outside a sphere, given by its centre and radius (m) in the "
    "base frame.",
)
@number(
    "--table",
    "Z",
    "Keep all bodies above a height Z (m) in the base frame, by their collision shapes.",
)
@click.option(
    "--collisions/--no-collisions",
    default=True,
    show_default=True,
    help="Keep bodies apart, by their collision shapes.",
)
@path("--srdf", "FILE", "MoveIt SRDF; its disable_collisions pairs are not checked.")
@number("--margin", "SHARE", "Fraction of every limit that is left unused.", default=0.1)
@number(
    "--harmonics", "N", "Number of harmonics (default: as many as fit below 0.75 Hz).", type=int
)
@number("--seed", "N", "Seed of the search.", type=int, default=0)
def command(
    file: str,
    out: str,
    duration: float,
    limits: str | None,
    above: Sequence[str],
    outside: Sequence[str],
    table: float | None,
    collisions: bool,
    srdf: str | None,
    margin: float,
    harmonics: int | None,
    seed: int,
) -> Output:
    """Find an exciting motion to record for identification."""
    from ...description.files import check_writable, is_yaml
    from ...identification.clearance import regions
    from ...identification.excitation import excite
    from ..excitation_files import save

    place = Path(out)
    if not is_yaml(place):
        raise wrong(InputError, "--out", out, "a file that ends in .yaml")
    if seed < 0:
        raise wrong(InputError, "--seed", seed, "0 or more")
    check_writable(place.parent)
    progress = Progress()
    found = excite(
        file,
        duration,
        limits=limits,
        regions=regions(above, outside),
        collisions=collisions,
        table=table,
        srdf=srdf,
        harmonics=harmonics,
        margin=margin,
        seed=seed,
        progress=progress,
    )
    progress("drawing")
    files = save(found, place)
    return Output(OUTPUT.read(found, files=files), _text(found, files))


def _text(found: ExcitingMotion, files: dict[str, Path]) -> str:
    motion, margins = found.motion, found.margins
    efforts = dict(zip(found.joints, margins.effort, strict=True))
    rows = [["", "start", "position", "rate", "acceleration", "effort"]]
    starts = dict(zip(found.joints, motion.start, strict=True))
    units = {joint: found.mechanism.joint(joint).unit for joint in margins.joints}
    for j, joint in enumerate(margins.joints):
        begin, effort = starts.get(joint), efforts.get(joint, 0.0)
        rows.append(
            [
                joint,
                "follows" if begin is None else f"{begin:.4f} {units[joint]}",
                percent(margins.position[j]),
                percent(margins.rate[j]),
                percent(margins.acceleration[j]),
                percent(effort) if effort else "no limit",
            ]
        )
    lines = [
        f"{found.mechanism.name}: {motion.duration:g} s from rest to rest, "
        f"{motion.series.harmonics} harmonics",
        "fraction of each limit that is used, checked between the waypoints as well:",
        *aligned(rows),
        *_rooms(margins.rooms),
        "",
        *aligned(
            [
                ["", "log det", "condition number", "parameters excited"],
                ["each joint swinging", *_cells(found.before)],
                ["this motion", *_cells(found.after)],
            ]
        ),
        *(f"note: {note}" for note in found.notes),
        "note: run it slowly first",
        *(f"wrote {path}" for path in files.values()),
    ]
    return "\n".join(lines)


def _rooms(rooms: dict[str, float]) -> list[str]:
    """The smallest distances, and the number of all of them."""
    nearest = sorted(rooms.items(), key=lambda each: each[1])[:SHOWN]
    lines = [f"{name}: at least {room:.3f} m away" for name, room in nearest]
    more = len(rooms) - len(lines)
    return [*lines, *([f"{more} more are farther apart"] if more else [])]


def _cells(score: Score) -> list[str]:
    return [
        f"{score.log_det:.1f}", f"{score.condition:.3g}", f"{score.excited} of {score.parameters}",
    ]  # fmt: skip
