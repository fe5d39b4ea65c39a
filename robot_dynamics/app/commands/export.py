"""`robot_dynamics export`: the dynamics as C source for a controller."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..command import Command, Result
from ..options import model


@click.command(
    "export",
    cls=Command,
    examples=[
        "export config/polar.yaml --out generated/",
        "export robot.urdf --out generated/ --prefix arm --terms inertia coriolis gravity --force",
    ],
)
@model()
@click.option("--lang", type=click.Choice(["c"]), default="c", show_default=True)
@click.option("--out", required=True, type=click.Path(), metavar="DIR", help="Output folder.")
@click.option("--prefix", metavar="NAME", help="What names begin with (default: the robot's name).")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
def command(
    file: str,
    formulation: str,
    rotors: str,
    terms: Sequence[str],
    lang: str,
    out: str,
    prefix: str | None,
    force: bool,
) -> Result:
    """Export the dynamics as C source for a controller."""
    from ...dynamics.export import export

    return export(
        file,
        out,
        formulation=formulation,
        rotors=rotors,
        terms=terms,
        prefix=prefix,
        lang=lang,
        force=force,
    )
