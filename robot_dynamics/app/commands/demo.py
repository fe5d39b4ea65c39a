# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics demo`: a simulated robot tracked with and without feed-forward."""

from __future__ import annotations

import click

from ..command import Command, Result
from ..demo import DEMOS, run


@click.command("demo", cls=Command, examples=["demo polar", "demo rrr --output pictures/"])
@click.argument("robot", type=click.Choice(DEMOS))
@click.option(
    "--output", type=click.Path(), metavar="DIR", help="Where the picture goes (default: here)."
)
@click.pass_context
def command(ctx: click.Context, robot: str, output: str | None) -> Result:
    """A simulated robot tracked with and without feed-forward."""
    return run(robot, output=output, as_json=ctx.meta["json"])
