# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics close`: a home in which the loops are closed."""

from __future__ import annotations

import click

from ...outputs import Output
from ..command import Command, Progress
from ..shared_options import description, number, path


@click.command(
    "close",
    cls=Command,
    output="closing_home.OUTPUT",
    examples=[
        "close robot.yaml --picture modes.png",
        "close robot.yaml --mode 2 --out robot.yaml",
    ],
)
@description
@path("--out", "FILE", "Write the description, with that home, to this file.")
@number(
    "--mode",
    "N",
    "Assembly mode to use (default: the one that `near` selects, or the nearest to home).",
    type=int,
)
@path("--picture", "FILE", "Draw the assembly modes into this file.")
def command(file: str, out: str | None, mode: int | None, picture: str | None) -> Output:
    """Find a home in which the loops are closed.

    The home in the description may be an estimate: its motor positions are kept, as long as the
    loops can be closed there, and a search finds the other joints. The assembly modes (the
    ways in which the robot can be assembled for these motor positions) are listed, and drawn with
    --picture. Only you know which of them was built: choose it with --mode, or describe it with
    `near`.
    """
    from ..closing_home import close

    Progress()("searching for assembly modes")
    return close(file, out=out, mode=mode, picture=picture)
