# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics schema`: JSON Schemas of the commands' output and of descriptions."""

from __future__ import annotations

import json

import click

from ...outputs import Kind, Output
from ..command import Command
from . import COMMANDS

DESCRIPTION = "description"

OUTPUT = Kind({"type": "object"})


@click.command("schema", cls=Command, examples=["schema description", "schema torque --json"])
@click.argument("what", type=click.Choice([DESCRIPTION, *COMMANDS]), metavar="description|COMMAND")
@click.pass_context
def command(ctx: click.Context, what: str) -> Output:
    """Print the JSON Schema of descriptions or a command's output.

    `description` prints the schema of descriptions, the name of a command that of its --json
    output.

    An editor with the YAML language server checks and completes a robot.yaml that begins with

    \b
    # yaml-language-server: $schema=robot.schema.json

    where robot.schema.json is the output of `robot_dynamics schema description`.
    """
    if what == DESCRIPTION:
        from ...description.schema import schema as of_descriptions

        schema = of_descriptions()
    else:
        from ..cli import cli

        found = cli.get_command(ctx, what)
        assert isinstance(found, Command)
        schema = found.schema()
    return Output(schema, json.dumps(schema, indent=2, ensure_ascii=False))
