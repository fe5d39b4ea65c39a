# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics export`: the dynamics as C source, or as a ros2_control controller."""

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
        "export robot.urdf --as controller --out ~/ws/src",
    ],
)
@model()
@click.option(
    "--as",
    "kind",
    type=click.Choice(["header", "controller"]),
    default="header",
    show_default=True,
    help="A C header and source, or an ament_cmake package with a ros2_control controller.",
)
@click.option("--lang", type=click.Choice(["c"]), default="c", show_default=True)
@click.option("--out", required=True, type=click.Path(), metavar="DIR", help="Output folder.")
@click.option("--prefix", metavar="NAME", help="What names begin with (default: the robot's name).")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
def command(
    file: str,
    formulation: str,
    rotors: str,
    terms: Sequence[str],
    kind: str,
    lang: str,
    out: str,
    prefix: str | None,
    force: bool,
) -> Result:
    """Export the dynamics as C source, or as a ros2_control controller."""
    if kind == "controller":
        return _controller(file, out, terms, formulation, rotors, prefix, force)
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


def _controller(
    file: str,
    out: str,
    terms: Sequence[str],
    formulation: str,
    rotors: str,
    prefix: str | None,
    force: bool,
) -> Result:
    from ...controller import write_package
    from ...errors import InputError, wrong
    from ...formulations.equations import TERMS

    if set(terms) != set(TERMS):
        raise wrong(
            InputError, "terms", list(terms), "all: the controller has a parameter of this name"
        )
    return write_package(
        file, out, formulation=formulation, rotors=rotors, prefix=prefix, force=force
    )
