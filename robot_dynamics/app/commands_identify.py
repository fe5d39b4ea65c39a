"""`robot_dynamics identify` and `replay`: their options, and what they print."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, wrong
from .progress import Progress
from .tables import percent, table

if TYPE_CHECKING:
    from ..identification import Errors, Identification

Result = dict[str, Any]
Command = Callable[[str, Callable[[argparse.Namespace], Result], str], argparse.ArgumentParser]


def add(command: Command) -> None:
    """The commands' options."""
    identify = command(
        "identify", _identify, "Identify a model from recordings of the moving robot."
    )
    identify.add_argument("file", metavar="DESCRIPTION", help="a .yaml, .urdf or .xacro file")
    _add_recordings(identify, "+")
    identify.add_argument("--out", required=True, metavar="DIR", help="output folder")
    identify.add_argument(
        "--validate",
        nargs="+",
        metavar="RECORDING",
        help="recordings for validation, kept from the fit (default: the last third of each)",
    )
    identify.add_argument(
        "--payload",
        metavar="LINK",
        help="identify this link's body alone; the arm stays as described",
    )
    identify.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of Dask, whose workers read the recordings where they lie (tcp://host:8786)",
    )

    replay = command("replay", _replay, "Compare models' torques with measured ones.")
    replay.add_argument(
        "files", nargs="+", metavar="DESCRIPTION", help="one or several descriptions, to compare"
    )
    _add_recordings(replay, None)
    replay.add_argument("--out", default=".", metavar="DIR", help="output folder (default: here)")


def _add_recordings(parser: argparse.ArgumentParser, count: str | None) -> None:
    parser.add_argument(
        "recordings",
        nargs=count,
        metavar="RECORDING",
        help="a rosbag2 folder, a .db3, .mcap or .csv file",
    )
    parser.add_argument("--topic", help="of type sensor_msgs/JointState (default: /joint_states)")
    parser.add_argument(
        "--rename",
        nargs="+",
        action="extend",
        default=[],
        metavar="OLD:NEW",
        help="a joint's name, or a prefix of several, in the recording and in the description",
    )
    parser.add_argument(
        "--effort-scale",
        nargs="+",
        action="extend",
        default=[],
        metavar="JOINT:FACTOR",
        help="factor that turns a joint's efforts into N·m or N: a sign, a torque constant",
    )
    parser.add_argument(
        "--cutoff", type=float, metavar="HZ", help="of the filter (default: from the spectra)"
    )


def _identify(options: argparse.Namespace) -> Result:
    from ..identification import identify
    from ..identification.files import save, summary
    from .identification_report import write

    progress = Progress()
    result = identify(
        options.file,
        options.recordings,
        validate=options.validate,
        topic=options.topic,
        rename=pairs(options.rename, "--rename"),
        effort_scale=factors(options.effort_scale),
        payload=options.payload,
        cutoff=_cutoff(options.cutoff),
        scheduler=options.scheduler,
        progress=progress,
    )
    folder = Path(options.out)
    files = save(result, folder)
    progress("drawing")
    files |= write(result, folder)
    return {
        **summary(result),
        "files": {name: str(path) for name, path in files.items()},
        "text": _text(result, [*files.values()]),
    }


def _replay(options: argparse.Namespace) -> Result:
    from ..identification.replay import replay
    from .identification_report import write_replay

    progress = Progress()
    result = replay(
        options.files,
        options.recordings,
        topic=options.topic,
        rename=pairs(options.rename, "--rename"),
        effort_scale=factors(options.effort_scale),
        cutoff=_cutoff(options.cutoff),
        progress=progress,
    )
    progress("drawing")
    files = write_replay(result, Path(options.out))
    rows = [["", *result.labels]]
    for j, joint in enumerate(result.joints):
        rows.append([joint, *(percent(errors[j]) for errors in result.relative)])
    lines = [
        f"torque errors over {result.duration:.3g} s, root mean square over that of the torque:",
        *table(rows),
        *(f"note: {note}" for note in result.notes),
        *(f"wrote {path}" for path in files.values()),
    ]
    return {
        "joints": list(result.joints),
        "descriptions": list(result.labels),
        "errors": [
            [float(x) if math.isfinite(x) else None for x in errors] for errors in result.relative
        ],
        "duration": result.duration,
        "notes": list(result.notes),
        "files": {name: str(path) for name, path in files.items()},
        "text": "\n".join(lines),
    }


def pairs(entries: Sequence[str], option: str) -> dict[str, str]:
    """OLD:NEW, each old name once."""
    found: dict[str, str] = {}
    for entry in entries:
        old, colon, new = entry.strip().rpartition(":")
        if not (old and colon and new):
            raise wrong(InputError, option, entry, "OLD:NEW")
        if old in found:
            raise wrong(InputError, option, entry, f"{old} once")
        found[old] = new
    return found


def factors(entries: Sequence[str]) -> dict[str, float]:
    """JOINT:FACTOR"""
    found = {}
    for joint, text in pairs(entries, "--effort-scale").items():
        try:
            found[joint] = float(text)
        except ValueError:
            raise wrong(InputError, f"--effort-scale {joint}", text, "a number") from None
    return found


def _cutoff(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise wrong(InputError, "--cutoff", value, "a frequency in Hz")
    return value


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
