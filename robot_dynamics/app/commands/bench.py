# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics bench`: the time of a call on this machine."""

from __future__ import annotations

import click

from ..command import Command, Result

SIX_AXIS = "package://robot_dynamics/urdf/six_axis.urdf"


@click.command("bench", cls=Command, examples=["bench", "bench robot.urdf"])
@click.argument("file", metavar="[FILE]", type=click.Path(), default=SIX_AXIS)
def command(file: str) -> Result:
    """Time calls and batches on this machine.

    Without FILE, it times the six-axis arm.
    """
    from ..bench import bench

    return bench(file)
