# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics export`: the dynamics as C source, a ros2_control controller, or an FMU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ...outputs import COUNT, JOINTS, ROBOT, TEXT, Output, record
from ..command import Command
from ..shared_options import flag, model, number, path, several

_SIZE = record(compiler=TEXT, code=COUNT("bytes"), stack=COUNT("bytes"))
OUTPUT = record(
    robot=ROBOT,
    prefix=TEXT,
    joints=JOINTS,
    files=TEXT.listed(),
    operations=COUNT.by_name("by function"),
    size=_SIZE.or_null(),
    package=TEXT("name of the ROS package of a controller").maybe(),
)


@click.command(
    "export",
    cls=Command,
    examples=[
        "export config/polar.yaml --out generated/",
        "export robot.urdf --out generated/ --prefix arm --terms inertia coriolis gravity --force",
        "export robot.urdf --out generated/ --functions torques linearize --precision single",
        "export config/rrr.yaml --out generated/",
        "export robot.urdf --as controller --out ~/ws/src",
        "export robot.urdf --as fmu --out generated/",
    ],
)
@model()
@click.option(
    "--as",
    "kind",
    type=click.Choice(["header", "controller", "fmu"]),
    default="header",
    show_default=True,
    help="A C header and source, an ament_cmake package with a ros2_control controller, or an FMU "
    "(FMI 3.0; needs FMPy, the extra fmu).",
)
@click.option(
    "--lang",
    type=click.Choice(["c"]),
    default="c",
    show_default=True,
    help="Language of the code.",
)
@path("--out", "DIR", "Output folder.", required=True)
@click.option("--prefix", metavar="NAME", help="Prefix of all names (default: the robot's name).")
@several(
    "--functions",
    "NAME...",
    "Functions in the header of an open chain: torques, mass_matrix, coriolis_matrix, gravity "
    "(the default), forward, derivatives, linearize, pose, jacobian.",
)
@click.option(
    "--precision",
    type=click.Choice(["double", "single"]),
    default="double",
    show_default=True,
    help="Precision of the header of an open chain.",
)
@number(
    "--friction-smoothing",
    "RATE",
    "Velocity (rad/s or m/s) below which Coulomb friction fades to zero (open chains).",
    default=0.0,
    show_default=False,
)
@click.option("--link", help="Link whose pose and jacobian are exported (default: the last one).")
@flag("--force", "Overwrite existing files.")
def command(
    file: str,
    model: dict[str, Any],
    kind: str,
    lang: str,
    out: str,
    prefix: str | None,
    functions: Sequence[str],
    precision: str,
    friction_smoothing: float,
    link: str | None,
    force: bool,
) -> Output:
    """Export the dynamics as C, a ros2_control controller or an FMU.

    For a robot with loops, and in an FMU, the C code is that of the controller: terms, gravity,
    payloads and the smoothing of friction are arguments of its functions.
    """
    from ...description import load
    from ...dynamics.export import USUAL, export
    from ...errors import InputError, wrong
    from ...formulations.equations import TERMS

    chosen = {
        "functions": bool(functions),
        "precision": precision != "double",
        "friction_smoothing": friction_smoothing != 0.0,
        "link": link is not None,
    }
    if kind != "header" or load(file).loops:
        what = {"controller": "the controller", "fmu": "the FMU"}.get(
            kind, "C code for a robot with loops"
        )
        if set(model["terms"]) != set(TERMS):
            raise wrong(
                InputError,
                "terms",
                list(model["terms"]),
                f"all: {what} selects them by its parameter terms",
            )
        if given := [name for name, is_given in chosen.items() if is_given]:
            option = "--" + given[0].replace("_", "-")
            raise wrong(InputError, given[0], option, f"none: {what} computes torques only")
        from ...controller import write_fmu, write_package, write_source

        write = {"controller": write_package, "fmu": write_fmu, "header": write_source}[kind]
        del model["terms"]
        found = write(file, out, **model, prefix=prefix, force=force)
    else:
        found = export(
            file,
            out,
            **model,
            prefix=prefix,
            lang=lang,
            force=force,
            functions=functions or USUAL,
            precision=precision,
            friction_smoothing=friction_smoothing,
            link=link,
        )
    return Output(OUTPUT.read(found), found["text"])
