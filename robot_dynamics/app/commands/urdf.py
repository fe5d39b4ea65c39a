# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics urdf`: a robot as URDF, for viewing and simulation in other tools."""

from __future__ import annotations

import click

from ..command import Command, Result
from ..options import description, flag, path


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
def command(file: str, out: str | None, world: bool) -> Result:
    """Write a robot as URDF with simple shapes for its links.

    For RViz, Gazebo, Pinocchio and MuJoCo. What URDF cannot express is left out, with a warning.
    """
    from ...description import load
    from ...description.files import write_text
    from ...description.urdf_writer import urdf

    mechanism = load(file)
    text = urdf(mechanism, world=world)
    result: Result = {"robot": mechanism.name, "urdf": text}
    if out is None:
        return {**result, "text": text.rstrip("\n")}
    write_text(out, text)
    return {**result, "files": {"urdf": out}, "text": f"wrote {out}"}
