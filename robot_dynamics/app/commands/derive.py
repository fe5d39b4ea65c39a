"""`robot_dynamics derive`: the equations of motion in symbols."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from ..command import Command, Result
from ..options import model


@click.command(
    "derive",
    cls=Command,
    examples=[
        "derive config/polar.yaml",
        "derive config/polar.yaml --steps",
        "derive config/cartesian.yaml --latex --parameters numbers",
    ],
)
@model("lagrange_euler")
@click.option("--latex", is_flag=True, help="As LaTeX.")
@click.option("--steps", is_flag=True, help="Every step of Lagrange–Euler.")
@click.option(
    "--parameters",
    type=click.Choice(["symbols", "numbers"]),
    default="symbols",
    show_default=True,
    help="Masses and lengths as symbols or as the description's numbers.",
)
@click.option("--no-simplify", is_flag=True, help="Faster, with longer expressions.")
def command(
    file: str,
    formulation: str,
    rotors: str,
    terms: Sequence[str],
    latex: bool,
    steps: bool,
    parameters: str,
    no_simplify: bool,
) -> Result:
    """The equations of motion in symbols."""
    from ...description import load
    from ...symbolic import derive

    found = derive(
        load(file),
        formulation,
        parameters=parameters,
        rotors=rotors,
        terms=terms,
        simplify=not no_simplify,
        progress=_progress,
    )
    document = found.document(steps=steps)
    text = document.latex() if latex else document.text()
    return {
        "joints": list(found.joint_names),
        "torques": [str(entry) for entry in found.torques],
        "intermediates": {str(symbol): str(value) for symbol, value in found.intermediates},
        "latex": found.latex(),
        "parameters": {str(symbol): value for symbol, value in found.parameters.items()},
        "text": text,
    }


def _progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"… {words}", file=sys.stderr)
