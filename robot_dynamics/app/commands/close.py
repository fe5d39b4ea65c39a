"""`robot_dynamics close`: a home in which the loops are closed."""

from __future__ import annotations

import click

from ..command import Command, Result
from ..options import description


@click.command(
    "close",
    cls=Command,
    examples=["close robot.yaml", "close robot.yaml --mode 2 --out robot.yaml"],
)
@description
@click.option("--out", type=click.Path(), metavar="FILE", help="The description with that home.")
@click.option("--mode", type=int, default=1, metavar="N", help="Which assembly mode (default: 1).")
def command(file: str, out: str | None, mode: int) -> Result:
    """Find a home in which the loops are closed.

    However rough the home in the description is: the motors stay where it puts them, as long as
    that can be closed, and the other joints are searched for. The ways to put the robot together
    with the motors there are listed.
    """
    from ..closing_home import close

    return close(file, out=out, mode=mode)
