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
        "export robot.urdf --out generated/ --terms inertia coriolis gravity",
    ],
)
@model()
@click.option("--lang", type=click.Choice(["c"]), default="c", show_default=True)
@click.option("--out", required=True, type=click.Path(), metavar="DIR", help="Output folder.")
def command(
    file: str, formulation: str, rotors: str, terms: Sequence[str], lang: str, out: str
) -> Result:
    """Export the dynamics as C source for a controller."""
    from ...dynamics.export import export

    return export(file, out, formulation=formulation, rotors=rotors, terms=terms, lang=lang)
