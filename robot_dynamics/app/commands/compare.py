# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics compare`: torques along one motion by every formulation and rotor model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...errors import InputError
from ...outputs import Output
from ...scalar import Floats
from ..command import Command
from ..shared_options import description, home, number, path, several, vector

LONGEST = 100_000
"""Number of steps above which a motion probably has a wrong unit"""


def _start(name: str, unit: str, default: str, when: str = " at the start") -> Callable[..., Any]:
    what = f"One number per joint ({unit}){when}; default: {default}."
    return several(f"--{name}", "X...", what)


@click.command(
    "compare",
    cls=Command,
    output="compare.OUTPUT",
    examples=[
        "compare config/three_axis.yaml",
        "compare config/five_bar.yaml --duration 0.05 --picture torques.png --page motion.html",
    ],
)
@description
@_start("q", "rad or m", "the description's home, or 0")
@_start("qd", "rad/s or m/s", "1")
@_start("qdd", "rad/s² or m/s²", "5", ", constant")
@number("--duration", "S", "Duration of the motion.", default=0.2)
@number("--step", "S", "Time between two states of the motion.", default=0.01)
@path("--picture", "FILE", "Also draw the torques into this file.")
@path("--page", "PAGE.html", "Write a page that animates the robot along the motion.")
def command(
    file: str,
    q: Sequence[str],
    qd: Sequence[str],
    qdd: Sequence[str],
    duration: float,
    step: float,
    picture: str | None,
    page: str | None,
) -> Output:
    """Compare formulations and rotor models along one motion.

    The page that --page writes animates the robot along the motion, and plots the torques by term,
    by formulation and by rotor model.
    """
    from ...closure.geometry.closer import prepared
    from ...description import load
    from .. import gears as by_gear
    from ..compare import OUTPUT, compare, constant_acceleration, coordinates, table, within_reach

    if picture:
        from .. import plots

        plots.check(Path(picture))
    described = load(file)
    mechanism = prepared(described)[0] if described.loops else described
    names = coordinates(mechanism)
    start = (
        vector(q, "--q", names, home(described, names)),
        vector(qd, "--qd", names, 1.0),
        vector(qdd, "--qdd", names, 5.0),
    )
    if not (step > 0 and 0.5 < duration / step < LONGEST):
        raise InputError(
            f"--duration {duration:g} --step {step:g}: expected two positive "
            f"times with at least one and fewer than {LONGEST} steps"
        )
    time: Floats = step * np.arange(round(duration / step) + 1, dtype=np.float64)
    motion = constant_acceleration(*start, time)
    share = 1.0
    if mechanism.loops and not (q or qd or qdd):
        share, motion = within_reach(mechanism, *motion)
    compared = compare(mechanism, time, *motion)
    text = table(compared)
    if share < 1:
        text += f"\nnote: default motion scaled by {share:g}; in full it would leave the workspace"
    geared = by_gear.gear_errors(mechanism, *motion)
    if geared:
        text = "\n".join([text, *by_gear.text(geared)])
    drawn = {}
    if picture:
        place = Path(picture)
        drawn["torques"] = str(plots.comparison(place, mechanism.name, compared))
        if geared:
            place = place.with_name(f"{place.stem}_gears{place.suffix}")
            drawn["gears"] = str(plots.gears(place, mechanism.name, geared))
        text = "\n".join([text, *(f"picture: {path}" for path in drawn.values())])
    if page:
        from ...motion.trajectory import States
        from ..show.playing import played

        name = f"the motion compared, {duration:g} s"
        drawn["page"] = str(played(file, mechanism, Path(page), States(name, time, *motion)))
        text += f"\npage: {page}"
    result = OUTPUT.read(
        robot=mechanism.name,
        joints=names,
        actuated=mechanism.actuated_names,
        share_of_motion=share,
        disagreement=compared.disagreement(),
        model_error=compared.model_error(),
        gears=geared,
        files=drawn,
    )
    return Output(result, text)
