# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics schema`: JSON Schemas of the commands' output and of descriptions."""

from __future__ import annotations

import json

import click

from ..command import Command, Result
from ..schemas import SCHEMAS, output

DESCRIPTION = "description"


@click.command("schema", cls=Command, examples=["schema description", "schema torque --json"])
@click.argument("what", type=click.Choice([DESCRIPTION, *SCHEMAS]))
def command(what: str) -> Result:
    """Print a JSON Schema: of descriptions, or of a command's --json output.

    An editor with YAML's language server checks and completes a robot.yaml that begins with

    \b
    # yaml-language-server: $schema=robot.schema.json

    where robot.schema.json is what `robot_dynamics schema description` printed.
    """
    if what == DESCRIPTION:
        from ...description.schema import schema as of_descriptions

        schema = of_descriptions()
    else:
        schema = output(what)
    return {**schema, "text": json.dumps(schema, indent=2, ensure_ascii=False)}
