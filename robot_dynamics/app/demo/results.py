# SPDX-License-Identifier: Apache-2.0
"""The results of a demo as numbers, as a table, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...outputs import COUNT, EACH, JOINTS, NOTES, NULLABLE, NUMBER, ROBOT, TEXT, record
from .. import gears
from ..tables import ratio, table
from .record import Track
from .subject import Subject

GEARED_STATES = 400
"""Number of states along the motion at which torques are compared by gear ratio"""

_RUN = record(
    label=TEXT,
    rms=EACH,
    peak=EACH,
    rms_ratio=EACH,
    peak_ratio=EACH,
    platform=NULLABLE.by_name().or_null(),
)
_AGAINST = record(first=TEXT, second=TEXT, joints=NULLABLE.listed(), platform=NULLABLE.listed())
OUTPUT = record(
    robot=ROBOT,
    joints=JOINTS,
    units=TEXT.listed("of q"),
    update_rate=NUMBER("Hz").of("demo.update_rate"),
    delay=COUNT("periods").of("demo.delay"),
    bandwidth=NUMBER("rad/s").of("demo.bandwidth"),
    notes=NOTES.of("demo.notes"),
    p_gains=NUMBER.listed(),
    d_gains=NUMBER.listed(),
    runs=_RUN.listed(),
    against=_AGAINST(
        "ratio of RMS errors, second kind of run to the first, per random sample"
    ).or_null(),
    bounds=record(case=TEXT, age=NUMBER("s"), ratio=NULLABLE).listed(),
    picture=TEXT,
    page=TEXT("that animates the last run"),
    gears=gears.OUTPUT.maybe(),
)


def picture(robot: str, subject: Subject, tracks: Sequence[Track], folder: Path) -> Path:
    """Draw the runs, and return the picture's path."""
    from .. import plots

    demo = subject.demo
    return plots.tracking(
        folder / f"{robot}_demo.png",
        demo.title,
        _conditions(demo.update_rate, demo.delay),
        subject.joints,
        subject.units,
        demo.motion(tracks[0].time)[0],
        tracks,
    )


def played_page(subject: Subject, track: Track, path: Path) -> Path:
    """Write a page that animates the robot as in a run, with the desired rates and accelerations.

    Args:
        subject: the demo's robot.
        track: the run.
        path: the file to write.
    """
    from ...motion.trajectory import States
    from ..show.playing import played

    _, qd, qdd = subject.demo.motion(track.time)
    name = f"{subject.demo.title}: the run “{track.label}”"
    run = States(name, track.time, track.q, qd, qdd)
    return played(subject.demo.description, subject.mechanism, path, run)


def _conditions(rate: float, delay: int) -> str:
    period = "period" if delay == 1 else "periods"
    return (
        f"MuJoCo robot over ROS 2 topics, controller at {rate:g} Hz, feed-forward torques used "
        f"{delay} {period} after the state that they are computed for"
    )


def numbers(subject: Subject, tracks: Sequence[Track], **more: Any) -> dict[str, Any]:
    """The result; `more` are values that do not belong to a single run."""
    alone = tracks[0]
    runs = [
        _RUN.read(
            track,
            rms_ratio=alone.rms / track.rms,
            peak_ratio=alone.peak / track.peak,
            platform=_platform(track, alone),
        )
        for track in tracks
    ]
    against = _against(subject.demo.against, tracks)
    found: dict[str, Any] = OUTPUT.read(
        subject, runs=runs, against=against, **subject.gains, **more
    )
    return found


def _against(ends: tuple[str, str] | None, tracks: Sequence[Track]) -> dict[str, Any] | None:
    """The ratio, for each pair of runs, of the second run's RMS errors to the first run's: the
    geometric mean over the joints, and that of the platform."""
    if ends is None:
        return None
    named = {track.label: track for track in tracks}
    pairs = [
        (named[label], named[label.removesuffix(ends[0]) + ends[1]])
        for label in named
        if label.endswith(ends[0]) and label.removesuffix(ends[0]) + ends[1] in named
    ]
    joints = [float(np.exp(np.mean(np.log(b.rms / a.rms)))) for a, b in pairs]
    platform = [
        float(np.sqrt(np.mean(b.platform_error**2) / np.mean(a.platform_error**2)))
        for a, b in pairs
        if a.platform_error is not None and b.platform_error is not None
    ]
    return {"first": ends[0], "second": ends[1], "joints": joints, "platform": platform}


def gear_table(subject: Subject, path: Path) -> tuple[gears.GearErrors | None, list[str]]:
    """The error of reflected rotors on the demo's path, by gear ratio.

    Args:
        subject: the demo's robot.
        path: the picture to write.

    Returns:
        the errors, None if the robot has no such rotors, and the lines.
    """
    from .. import plots

    motion = subject.demo.motion
    time = np.linspace(0.0, motion.duration, GEARED_STATES)
    found = gears.gear_errors(subject.mechanism, *motion(time))
    if found is None:
        return None, []
    drawn = plots.gears(path, f"{subject.mechanism.name}: the demo's motion", found)
    return found, ["", *gears.text(found), f"picture: {drawn}"]


def _platform(track: Track, alone: Track) -> dict[str, float] | None:
    if track.platform_error is None or alone.platform_error is None:
        return None
    found, first = (
        {"rms": float(np.sqrt(np.mean(each**2))), "peak": float(np.max(each))}
        for each in (track.platform_error, alone.platform_error)
    )
    return {**found, **{f"{key}_ratio": first[key] / found[key] for key in found}}


def text(result: dict[str, Any]) -> str:
    """The results as a table."""
    lines = [
        _conditions(result["update_rate"], result["delay"]),
        f"PD: Kp = w² D_jj, Kd = 2 w D_jj at the start, w = {result['bandwidth']:g} rad/s",
        *result["notes"],
        "",
    ]
    rows = [["joint", "controller", "RMS error", "÷", "peak error", "÷"]]
    for name, unit, errors in _rows(result):
        for k, (run, error) in enumerate(zip(result["runs"], errors, strict=True)):
            cells = []
            for key in ("rms", "peak"):
                divided = ratio(error[f"{key}_ratio"]) if k else ""
                cells += [f"{error[key]:.3e} {unit:>3}", divided]
            rows.append(["" if k else name, run["label"], *cells])
    lines += table(rows, left=2)
    if result["against"]:
        pairs = result["against"]
        lines += [
            "",
            f"RMS errors {pairs['second']} relative to {pairs['first']}, by random sample:",
        ]
        kinds = [what for what in ("joints", "platform") if pairs[what]]
        lines += table([[what, *(f"{x:.2f}" for x in pairs[what])] for what in kinds])
        lines.append("  this depends on the robot; benchmarks/passive_sensors.py compares 200")
    if result["bounds"]:
        lines += [
            "",
            "What limits the error: the worst joint's RMS error, in one process without ROS",
        ]
        rows = [["loop", "mean age of the torques", "error divided by"]]
        rows += [
            [row["case"], f"{row['age'] * 1e3:.1f} ms", f"{row['ratio']:,.0f}"]
            for row in result["bounds"]
        ]
        lines += table(rows)
    return "\n".join([*lines, "", f"picture: {result['picture']}", f"page: {result['page']}"])


def _rows(result: dict[str, Any]) -> list[tuple[str, str, list[dict[str, float]]]]:
    """The rows of the table: (name, unit, the errors of each run)."""
    keys = ("rms", "peak", "rms_ratio", "peak_ratio")
    rows = [
        (joint, unit, [{key: run[key][j] for key in keys} for run in result["runs"]])
        for j, (joint, unit) in enumerate(zip(result["joints"], result["units"], strict=True))
    ]
    platform = [run["platform"] for run in result["runs"]]
    return [*rows, ("platform", "m", platform)] if platform[0] else rows
