# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics derive`: the equations of motion in symbols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...errors import InputError, listed, wrong
from ...formulations import FORMULATIONS
from ...formulations.equations import TERMS
from ...outputs import ACTUATED, JOINTS, NOTES, NULLABLE, TEXT, Output, record
from ..command import Command, Progress
from ..shared_options import flag, model

FORMATS = {"text": ".txt", "latex": ".tex", "markdown": ".md", "html": ".html"}
"""Format: the ending of its files"""
ENERGIES = "energies"


_MATRIX = TEXT.listed().listed("row by row").or_null()
OUTPUT = record(
    joints=JOINTS.of("joint_names"),
    actuated=ACTUATED.of(lambda found: getattr(found, "actuated_names", found.joint_names)),
    torques=TEXT.listed("expressions in SymPy syntax").of(lambda found: [*found.torques]),
    intermediates=TEXT.by_name("symbol: expression, in an order to compute them in").of(
        lambda found: dict(found.intermediates)
    ),
    latex=TEXT.of(lambda found: found.latex()),
    parameters=NULLABLE.by_name("symbol: the description's value"),
    D=_MATRIX.of(lambda found: getattr(found, "D", None)),
    C=_MATRIX.of(lambda found: getattr(found, "C", None)),
    g=TEXT.listed().or_null().of(lambda found: [*found.g] if hasattr(found, "g") else None),
    notes=NOTES.of(lambda found: getattr(found, "notes", ())),
)


@click.command(
    "derive",
    cls=Command,
    examples=[
        "derive config/polar.yaml",
        "derive config/polar.yaml --steps",
        "derive config/three_axis.yaml --formulation gibbs_appell --steps --format markdown",
        "derive config/cartesian.yaml --document --out cartesian.tex",
        "derive config/cartesian.yaml --formulation energies --steps",
    ],
)
@model(
    "lagrange_euler",
    (*FORMULATIONS, ENERGIES),
    "energies: Euler–Lagrange equations from K and P, of a robot or from a file.",
)
@flag("--steps", "Show every step: definition, formula, value.")
@click.option(
    "--format",
    "style",
    type=click.Choice([*FORMATS]),
    help="Format of the equations.  [default: by the ending of --out, else text]",
)
@flag("--latex", "The same as --format latex.")
@flag("--document", "Write a complete LaTeX file, with the parameters and their values.")
@click.option("--out", metavar="FILE", help="Write to this file instead of printing.")
@click.option(
    "--parameters",
    type=click.Choice(["symbols", "numbers"]),
    default="symbols",
    show_default=True,
    help="Write masses and lengths as symbols, or use the numerical values from the description.",
)
@flag("--no-simplify", "Skip simplification: faster, with longer expressions.")
def command(
    file: str,
    model: dict[str, Any],
    steps: bool,
    style: str | None,
    latex: bool,
    document: bool,
    out: str | None,
    parameters: str,
    no_simplify: bool,
) -> Output:
    """Derive the equations of motion in symbols.

    FILE is a robot; with --formulation energies also a YAML of `coordinates`, `kinetic` and
    `potential` (J), such as `coordinates: [q1]`, `kinetic: m1*q1_d**2/2`, `potential: m1*g*q1`.
    """
    from ...description import load
    from ...description.files import check_writable, write_text
    from ...symbolic import derive
    from ...symbolic.energies import derive_energies, from_file, is_energies

    if latex or document:
        if style not in (None, "latex"):
            raise wrong(InputError, "--format", style, "latex, or no --latex and no --document")
        style = "latex"
    if out is not None:
        check_writable(Path(out).parent)
        style = style or _format(out)
    progress, formulation = Progress(), model["formulation"]
    if (is_energies(file) or formulation == ENERGIES) and set(model["terms"]) != set(TERMS):
        raise wrong(InputError, "--terms", listed(model["terms"]), "all, with energies")
    if is_energies(file):
        if formulation not in (ENERGIES, "lagrange_euler"):
            raise InputError(
                f"{file} contains energies, not a robot: expected --formulation {ENERGIES}, "
                f"found {formulation}"
            )
        found: Any = from_file(file, simplify=not no_simplify)
    elif formulation == ENERGIES:
        rotors = model["rotors"]
        found = derive_energies(load(file), parameters=parameters, rotors=rotors, progress=progress)
    else:
        found = derive(
            load(file),
            **model,
            parameters=parameters,
            simplify=not no_simplify,
            progress=progress,
        )
    progress("writing")
    printed = found.document(steps=steps)
    text = printed.latex(whole=True) if document else getattr(printed, style or "text")()
    if out is not None:
        write_text(out, text if text.endswith("\n") else text + "\n")
        text = f"written: {out}"
    return Output(OUTPUT.read(found), text)


def _format(out: str) -> str:
    """The format that the file's ending means."""
    ending = Path(out).suffix.lower()
    named = {suffix: name for name, suffix in FORMATS.items()}
    if ending and ending not in named:
        expected = f"a name that ends in {', '.join(named)}, or --format"
        raise wrong(InputError, "--out", out, expected)
    return named.get(ending, "text")
