# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics show`: a robot on an interactive page."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path

import click

from ...outputs import FILES, FLAG, NOTES, ROBOT, Output, record
from ..command import Command, Progress
from ..shared_options import description, flag, path, rotors_option

OUTPUT = record(robot=ROBOT, files=FILES, opened=FLAG("whether a browser opened it"), notes=NOTES)


@click.command(
    "show",
    cls=Command,
    examples=[
        "show config/three_axis.yaml",
        "show config/rrr.yaml --out rrr.html",
        "show config/rrr.yaml --sensed --out rrr_sensed.html",
    ],
)
@description
@path("--out", "PAGE.html", "Write the page to this file and do not open a browser.")
@flag("--no-open", "Do not open a browser.")
@flag("--sensed", "For a robot with loops: use the readings of its sensed joints as well.")
@rotors_option
def command(file: str, out: str | None, no_open: bool, sensed: bool, rotors: str) -> Output:
    """Write an interactive HTML page of a robot in 3-D.

    It has sliders for the state, a payload and gravity; torques term by term, D, C and g, energies,
    the assembly modes of a robot with loops, the DH table, bodies and checks, the equations; and a
    motion with its torques by term, formulation and rotor model. It needs no network. In the
    browser's console, window.robot.torques(q, qd, qdd) returns what InverseDynamics does.
    """
    from ...description import load
    from ...description.files import write_text
    from ..show import meshes
    from ..show.facts import gathered
    from ..show.page import page

    progress = Progress()
    mechanism = load(file)
    progress("checks, tables and equations")
    facts = gathered(file, mechanism, sensed=sensed)
    progress("programs")
    drawn, left_out = meshes.found(file)
    text = page(mechanism, facts, rotors=rotors, sensed=sensed, meshes=drawn)
    path = out or str(Path(tempfile.mkdtemp(prefix="robot_dynamics_")) / "robot.html")
    write_text(path, text)
    is_opened = out is None and not no_open and _opened(Path(path))
    lines = [f"wrote {path} ({len(text.encode()) // 1000} kB)"]
    lines += [f"note: {each}" for each in left_out]
    if out is None and not no_open and not is_opened:
        lines.append("no browser was found: open the file manually")
    result = OUTPUT.read(
        robot=mechanism.name, files={"page": path}, opened=is_opened, notes=left_out
    )
    return Output(result, "\n".join(lines))


def _opened(path: Path) -> bool:
    try:
        return webbrowser.open(path.resolve().as_uri())
    except webbrowser.Error:
        return False
