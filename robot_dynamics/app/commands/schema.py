"""`robot_dynamics schema`: what a command prints as JSON, what a description may contain."""

from __future__ import annotations

import json

import click

from ..command import Command, Result
from ..schemas import SCHEMAS, output


@click.command("schema", cls=Command, examples=["schema torque", "schema check --json"])
@click.argument("what", type=click.Choice(list(SCHEMAS)))
def command(what: str) -> Result:
    """The JSON Schema of what a command prints with --json."""
    schema = output(what)
    return {**schema, "text": json.dumps(schema, indent=2, ensure_ascii=False)}
