"""`robot_dynamics excite`: its options, what it writes, and what it prints."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, wrong
from .progress import Progress
from .tables import percent, table

if TYPE_CHECKING:
    from ..identification.excitation import Excitement, Score

Result = dict[str, Any]
Command = Callable[[str, Callable[[argparse.Namespace], Result], str], argparse.ArgumentParser]

SPACING = 0.05
"""s between two waypoints: quintics between them are the series to 1e-4 rad/s²"""
ROWS = 100.0
"""Hz of the table"""


def add(command: Command) -> None:
    """The command's options."""
    excite = command("excite", _excite, "An exciting motion to record for identification.")
    excite.add_argument("file", metavar="DESCRIPTION", help="a .yaml, .urdf or .xacro file")
    excite.add_argument("--out", required=True, metavar="FILE", help="the motion, a .yaml")
    excite.add_argument("--duration", type=float, default=20.0, metavar="S")
    excite.add_argument(
        "--limits", metavar="FILE", help="a joint_limits.yaml as MoveIt's, over the description's"
    )
    excite.add_argument(
        "--above",
        nargs="+",
        action="extend",
        default=[],
        metavar="LINK:Z",
        help="keep the origin of a link above this height (m) in the base frame",
    )
    excite.add_argument(
        "--outside",
        nargs="+",
        action="extend",
        default=[],
        metavar="LINK:X,Y,Z,R",
        help="keep the origin of a link out of a sphere (m) in the base frame",
    )
    excite.add_argument(
        "--margin",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of every limit to keep free (default: 0.1)",
    )
    excite.add_argument(
        "--harmonics", type=int, metavar="N", help="of the series (default: up to 0.75 Hz)"
    )
    excite.add_argument("--seed", type=int, default=0, metavar="N", help="of the search")


def _excite(options: argparse.Namespace) -> Result:
    from ..identification.excitation import excite
    from ..identification.motion_limits import regions

    out = Path(options.out)
    if out.suffix.lower() not in (".yaml", ".yml"):
        raise wrong(InputError, "--out", options.out, "a file that ends in .yaml")
    if options.seed < 0:
        raise wrong(InputError, "--seed", options.seed, "0 or more")
    progress = Progress()
    found = excite(
        options.file,
        options.duration,
        limits=options.limits,
        regions=regions(options.above, options.outside),
        harmonics=options.harmonics,
        margin=options.margin,
        seed=options.seed,
        progress=progress,
    )
    progress("drawing")
    files = save(found, out)
    return {
        **_numbers(found),
        "files": {name: str(path) for name, path in files.items()},
        "text": _text(found, files),
    }


def save(found: Excitement, out: Path) -> dict[str, Path]:
    """Write the motion as YAML, and beside it as a table and as a picture.

    Returns: the files by what they are.

    Raises:
        InputError: one of them cannot be written.
    """
    from ..description.motion_file import write_motion
    from .plots import excitation

    motion = found.motion
    count = math.ceil(max(motion.duration / SPACING, 25 * motion.series.harmonics)) + 1
    time = np.linspace(0.0, motion.duration, count)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_motion(out, found.joints, time, *motion(time))
        rows = out.with_suffix(".csv")
        _write_table(found, rows)
        drawn = excitation(out.with_suffix(".png"), found)
    except OSError as error:
        raise InputError(f"{out}: it can't be written ({error.strerror})", name=str(out)) from None
    return {"motion": out, "table": rows, "picture": drawn}


def _write_table(found: Excitement, path: Path) -> None:
    """As recordings are written: by joint position, rate and the described robot's effort."""
    time = np.linspace(0.0, found.motion.duration, round(ROWS * found.motion.duration) + 1)
    q, qd, qdd = found.motion(time)
    fields = {
        "position": q, "velocity": qd, "acceleration": qdd, "effort": found.efforts(time),
    }  # fmt: skip
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", *(f"{joint}/{kind}" for kind in fields for joint in found.joints)])
        writer.writerows(np.column_stack([time, *fields.values()]).tolist())


def _score(score: Score) -> dict[str, Any]:
    return {
        "log_det": score.log_det if math.isfinite(score.log_det) else None,
        "condition": score.condition if math.isfinite(score.condition) else None,
        "excited": score.excited,
    }


def _numbers(found: Excitement) -> Result:
    margins = found.margins
    return {
        "joints": list(found.joints),
        "duration": found.motion.duration,
        "harmonics": found.motion.series.harmonics,
        "start": dict(zip(found.joints, found.motion.start, strict=True)),
        "parameters": found.after.parameters,
        "before": _score(found.before),
        "after": _score(found.after),
        "shares_of_limits": {
            "joints": list(margins.joints),
            "position": margins.position.tolist(),
            "rate": margins.rate.tolist(),
            "acceleration": margins.acceleration.tolist(),
            "effort": dict(zip(found.joints, margins.effort.tolist(), strict=True)),
        },
        "rooms": margins.rooms,
        "notes": list(found.limits.notes),
    }


def _text(found: Excitement, files: dict[str, Path]) -> str:
    motion, margins = found.motion, found.margins
    efforts = dict(zip(found.joints, margins.effort, strict=True))
    rows = [
        ["", "begins at", "of the range", "of the rate", "of the acceleration", "of the effort"]
    ]
    starts = dict(zip(found.joints, motion.start, strict=True))
    for j, joint in enumerate(margins.joints):
        begin, effort = starts.get(joint), efforts.get(joint, 0.0)
        rows.append(
            [
                joint,
                "follows" if begin is None else f"{begin:.4f}",
                percent(margins.position[j]),
                percent(margins.rate[j]),
                percent(margins.acceleration[j]),
                percent(effort) if effort else "no limit",
            ]
        )
    lines = [
        f"{found.mechanism.name}: {motion.duration:g} s from rest to rest, "
        f"{motion.series.harmonics} harmonics",
        "what it takes of the limits, between the waypoints too:",
        *table(rows),
        *(f"{name}: at least {room:.3f} m away" for name, room in margins.rooms.items()),
        "",
        *table(
            [
                ["", "log det", "condition number", "parameters excited"],
                ["each joint swinging", *_cells(found.before)],
                ["this motion", *_cells(found.after)],
            ]
        ),
        *(f"note: {note}" for note in found.limits.notes),
        "note: bodies may meet: only links' origins are looked at; let it run slowly first",
        *(f"wrote {path}" for path in files.values()),
    ]
    return "\n".join(lines)


def _cells(score: Score) -> list[str]:
    return [
        f"{score.log_det:.1f}", f"{score.condition:.3g}", f"{score.excited} of {score.parameters}",
    ]  # fmt: skip
