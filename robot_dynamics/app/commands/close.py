# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics close`: a home in which the loops are closed."""

from __future__ import annotations

import click

from ..command import Command, Result
from ..options import description


@click.command(
    "close",
    cls=Command,
    examples=[
        "close robot.yaml --picture modes.png",
        "close robot.yaml --mode 2 --out robot.yaml",
    ],
)
@description
@click.option("--out", type=click.Path(), metavar="FILE", help="The description with that home.")
@click.option(
    "--mode", type=int, metavar="N",
    help="Which assembly mode (default: what `near` says, or the nearest to home).",
)  # fmt: skip
@click.option("--picture", type=click.Path(), metavar="FILE", help="Draw the assembly modes.")
def command(file: str, out: str | None, mode: int | None, picture: str | None) -> Result:
    """Find a home in which the loops are closed.

    However rough the home in the description is: the motors stay where it puts them, as long as
    that can be closed, and the other joints are searched for. The ways to put the robot together
    with the motors there (its assembly modes) are listed and drawn. Which of them was built is
    something that only you can see: choose it, or let the description say it by `near`.
    """
    from ..closing_home import close

    return close(file, out=out, mode=mode, picture=picture)
