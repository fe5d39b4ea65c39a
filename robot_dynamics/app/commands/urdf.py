# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics urdf`: a robot as URDF, for viewing and simulation in other tools."""

from __future__ import annotations

import click

from ...outputs import FILES, ROBOT, TEXT, Output, record
from ..command import Command
from ..shared_options import description, flag, path

OUTPUT = record(robot=ROBOT, urdf=TEXT("the file's text"), files=FILES.maybe())


@click.command(
    "urdf",
    cls=Command,
    examples=[
        "urdf config/polar.yaml --out polar.urdf",
        "urdf config/three_axis.yaml --world --out three_axis.urdf",
    ],
)
@description
@path("--out", "FILE", "Output file (default: standard output).")
@flag("--world", "Fix the base to a link `world`, as Gazebo expects.")
def command(file: str, out: str | None, world: bool) -> Output:
    """Write a robot as URDF with simple shapes for its links.

    For RViz, Gazebo, Pinocchio and MuJoCo. What URDF cannot express is left out, with a warning.
    """
    from ...description import load
    from ...description.files import write_text
    from ...description.urdf_writer import urdf

    mechanism = load(file)
    text = urdf(mechanism, world=world)
    files = None
    if out is not None:
        write_text(out, text)
        files = {"urdf": out}
    result = OUTPUT.read(robot=mechanism.name, urdf=text, files=files)
    return Output(result, f"wrote {out}" if files else text.rstrip("\n"))
