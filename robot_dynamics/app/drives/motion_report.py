# SPDX-License-Identifier: Apache-2.0
"""The requirements of a motion on the motors: tables, a page, pictures, CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from ...description.files import writable, write_table, write_text
from ...identification.recording import runs
from ...motion.trajectory import States
from ...scalar import Floats
from ..identification_report import file_names
from ..report_page import Chart, Line, cards, page, page_table, prose, standalone
from ..tables import digits, table
from .drives import Drive, Drives
from .ranges import Map, Range
from .reach import SAID, chart, drawn_map, strip

MOST_STRETCHES = 8
"""Largest number of intervals of a motion that are listed one by one"""


def number(x: float | None) -> str:
    """A number with four digits; an empty string for None."""
    return "" if x is None else "-" if not np.isfinite(x) else digits(x, 1e3)


def rows(found: Sequence[Drive]) -> list[list[str]]:
    """A table with one row per drive."""
    head = ["", "peak torque", "RMS", "peak rate", "peak power", "driven", "braked", "of limits"]
    body = []
    for drive in found:
        tau, rate = drive.units
        shares = [
            f"{what} {100 * share:.0f} %"
            for what, share in (("τ", drive.torque_share), ("q̇", drive.rate_share))
            if share is not None
        ]
        body.append(
            [
                drive.name,
                f"{number(drive.peak(drive.torque))} {tau}",
                f"{number(drive.rms)} {tau}",
                f"{number(drive.peak(drive.rate))} {rate}",
                f"{number(drive.peak(drive.power))} W",
                f"{number(drive.driven)} J",
                f"{number(drive.braked)} J",
                ", ".join(shares),
            ]
        )
    return [head, *body]


def range_rows(found: Sequence[Range]) -> list[list[str]]:
    """A table with one row per motor."""
    head = ["motor", "from", "", "to", "", "torques in", "no torques, too near a singularity"]
    body = []
    for each in found:
        gaps = ", ".join(f"{a:.4g} … {b:.4g}" for a, b in each.without_torque)
        body.append(
            [
                f"{each.name}, {each.unit}",
                f"{each.lower:.4g}",
                each.ends[0],
                f"{each.upper:.4g}",
                each.ends[1],
                "" if each.share is None else f"{100 * each.share:.3g} % of its travel",
                gaps or "nowhere",
            ]
        )
    return [head, *body]


@dataclass(frozen=True)
class Reach:
    """Where the motors of a robot with loops can move from home."""

    ranges: Sequence[Range] = ()
    maps: Sequence[Map] = ()
    """Maps of two motors each"""


def lost_stretches(found: Drives, motion: States) -> list[str]:
    """The intervals without torques, one line each: their beginning and end, and the motors'
    positions.

    Args:
        found: the requirements of the motion.
        motion: the motion.
    """
    if not found.lost:
        return []
    bare = np.asarray(np.isnan([drive.torque for drive in found.joints]).any(axis=0))
    lines = []
    for a, b in runs(bare):
        where = ", ".join(
            f"{name} {motion.q[a:b, k].min():.4g} … {motion.q[a:b, k].max():.4g}"
            for k, name in enumerate(found.coordinates)
        )
        lines.append(f"{motion.time[a]:.4g} … {motion.time[b - 1]:.4g} s: {where}")
    if len(lines) > MOST_STRETCHES:
        rest = len(lines) - MOST_STRETCHES
        lines = [*lines[:MOST_STRETCHES], f"and {rest} more"]
    return lines


def _lost(found: Drives, motion: States) -> str:
    return f"no torques in {found.lost} of {len(motion.time)} states: {found.why}"


def text(found: Drives, motion: States, reach: Reach) -> str:
    """The report as text.

    Args:
        found: the requirements of the motion.
        motion: the motion.
        reach: the ranges of the motors of a robot with loops.
    """
    duration = float(motion.time[-1] - motion.time[0])
    lines = [f"{motion.source}: {len(motion.time)} states in {number(duration)} s"]
    lines += ["at the joints:", *table(rows(found.joints))]
    if found.motors:
        lines += ["at the motors' shafts:", *table(rows(found.motors))]
    lines.append(f"net energy (driving minus braking): {number(found.energy)} J")
    for drive in (*found.joints, *found.motors):
        lines += [f"beyond: {words}" for words in drive.beyond]
    if found.lost:
        lines.append(_lost(found, motion))
        lines += [f"  {line}" for line in lost_stretches(found, motion)]
    if reach.ranges:
        lines += ["range of each motor, with the others at home:", *table(range_rows(reach.ranges))]
        lines += [*map(strip, reach.ranges), SAID]
    return "\n".join([*lines, *(f"note: {note}" for note in motion.notes)])


def write(
    folder: Path,
    robot: str,
    found: Drives,
    motion: States,
    reach: Reach,
    link: str | None = None,
) -> dict[str, Path]:
    """Write motion.html, motion.csv, and a picture of each joint and motor.

    Args:
        folder: created if it does not exist.
        robot: the robot's name.
        found: the requirements of the motion.
        motion: the motion.
        reach: the ranges of the motors of a robot with loops.
        link: a page in the same folder that animates the motion; None: there is none.

    Returns:
        the files by their kind.

    Raises:
        InputError: the folder cannot be written to.
    """
    written: dict[str, Path] = {}

    def picture(what: str, kind: str, k: int, names: Sequence[str], svg: str) -> None:
        written[what] = folder / f"{kind}_{k}_{'_'.join(file_names(names))}.svg"
        write_text(written[what], standalone(svg))

    writable(folder)
    asked = dict(zip(found.coordinates, motion.q.T, strict=True))
    planes = {drive: _plane(drive) for drive in (*found.joints, *found.motors)}
    for kind, some in (("joint", found.joints), ("motor", found.motors)):
        for k, drive in enumerate(some, 1):
            what = f"picture of {kind} {drive.name}"
            picture(what, kind, k, [drive.name], planes[drive].svg)
    ranges = [chart(each, asked[each.name]) for each in reach.ranges]
    for k, (motor, own) in enumerate(zip(reach.ranges, ranges, strict=True), 1):
        picture(f"range of {motor.name}", "range", k, [motor.name], own.svg)
    maps = [
        drawn_map(each, np.column_stack([asked[name] for name in each.names]))
        for each in reach.maps
    ]
    for k, (each, both) in enumerate(zip(reach.maps, maps, strict=True), 1):
        picture(f"range of {' and '.join(each.names)}", "ranges", k, each.names, both)
    written["table"] = folder / "motion.csv"
    write_table(written["table"], _columns(found, motion))
    written["page"] = folder / "motion.html"
    write_text(written["page"], _page(robot, found, motion, reach, planes, ranges, maps, link))
    return written


def _columns(found: Drives, motion: States) -> Iterator[tuple[str, Floats]]:
    yield "time", motion.time
    for before, drives in (("", found.joints), ("motor ", found.motors)):
        for drive in drives:
            if drive.place is not None:
                yield f"{before}{drive.name}/position", drive.place
            yield f"{before}{drive.name}/velocity", drive.rate
            yield f"{before}{drive.name}/effort", drive.torque
            yield f"{before}{drive.name}/power", drive.power


def _limits(most: float | None, along: Floats, unit: str) -> list[Line]:
    if most is None:
        return []
    ends, label = np.array([along[0], along[-1]]), f"limit {number(most)} {unit}"
    return [Line(ends, np.full(2, sign * most), "d", label * (sign > 0)) for sign in (1, -1)]


def _over_time(drive: Drive) -> tuple[Chart, Chart, Chart]:
    tau, rate = drive.units
    near = drive.torque_share is not None and drive.torque_share > 0.5
    torque = Chart(
        f"torque of {drive.name}",
        [
            Line(drive.time, drive.torque, "b", f"torque, RMS {number(drive.rms)} {tau}"),
            *(_limits(drive.most_torque, drive.time, tau) if near else []),
        ],
        "s",
        tau,
    )
    power = Chart(f"power of {drive.name}", [Line(drive.time, drive.power, "a", "power")], "s", "W")
    speed = Chart(
        f"velocity of {drive.name}", [Line(drive.time, drive.rate, "c", "velocity")], "s", rate
    )
    return torque, speed, power


def _plane(drive: Drive) -> Chart:
    """A chart of torque over rate, with the limits as a box."""
    tau, rate = drive.units
    lines = [Line(drive.rate, drive.torque, "b", "motion")]
    t, v = drive.most_torque, drive.most_rate
    if t is not None and v is not None:
        lines.append(
            Line(np.array([-v, v, v, -v, -v]), np.array([-t, -t, t, t, -t]), "d", "limits")
        )
    lines.append(
        Line(
            np.array([np.nanmin(drive.rate), np.nanmax(drive.rate)]),
            np.full(2, np.copysign(drive.rms, np.nanmean(drive.torque))),
            "faint",
            f"RMS {number(drive.rms)} {tau}",
        )
    )
    return Chart(f"torque of {drive.name} over its velocity", lines, rate, tau)


def _page(
    robot: str,
    found: Drives,
    motion: States,
    reach: Reach,
    planes: Mapping[Drive, Chart],
    ranges: Sequence[Chart],
    maps: Sequence[str],
    link: str | None,
) -> str:
    duration = float(motion.time[-1] - motion.time[0])
    shown = [
        (f"{number(duration)} s", f"{len(motion.time)} states"),
        (f"{number(found.energy)} J", "net energy"),
        (f"{number(sum(d.driven for d in found.joints))} J", "driven by the motors"),
        (f"{number(max(d.peak(d.power) for d in found.joints))} W", "peak power of a joint"),
    ]
    body = [
        f"<h1>{escape(robot)}: {escape(motion.source)}</h1>",
        f'<p><a href="{escape(link)}">See it move</a></p>' if link else "",
        cards(shown),
    ]
    beyond = [words for drive in (*found.joints, *found.motors) for words in drive.beyond]
    if found.lost:
        beyond.append(_lost(found, motion))
        beyond += lost_stretches(found, motion)
    body += [f'<p class="warning">{prose(words)}</p>' for words in beyond]
    body += ["<h2>At the joints</h2>", page_table(rows(found.joints))]
    if found.motors:
        body += ["<h2>At the motors' shafts</h2>", page_table(rows(found.motors))]
    if reach.ranges:
        body += [
            "<h2>Range of each motor</h2>",
            '<p class="faint">Starting from home, with all other motors held there. Towards a '
            "singularity, the condition number of the loops grows without bound; positions out of "
            "reach are shaded.</p>",
            page_table(range_rows(reach.ranges)),
            f"<div class='pair'>{''.join(map(Chart.figure, ranges))}</div>",
        ]
    if reach.maps:
        others = ", with the other motors at home" if len(reach.ranges) > 2 else ""
        figures = "".join(f"<figure>{svg}</figure>" for svg in maps)
        body += [
            "<h2>Range of two motors together</h2>",
            f'<p class="faint">From home{others}. Darker: closer to a singularity; orange: too '
            "close for torques; shaded: out of reach. The line is this motion"
            f"{', regardless of the other motors' if others else ''}.</p>",
            f"<div class='pair'>{figures}</div>" if len(reach.maps) > 1 else figures,
        ]
    for title, some in (("joint", found.joints), ("motor", found.motors)):
        for drive in some:
            torque, rate, power = _over_time(drive)
            figures = "".join(map(Chart.figure, (torque, planes[drive], rate, power)))
            body.append(f"<h2>{title} {escape(drive.name)}</h2><div class='pair'>{figures}</div>")
    body += [f'<p class="faint">{prose(note)}</p>' for note in motion.notes]
    return page(f"{robot}: {motion.source}", body)
