# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics cache`: the compiled kernels in the cache."""

from __future__ import annotations

import click

from ...outputs import COUNT, TEXT, Kind, Output, record
from ..command import Command

_ENTRY = Kind(
    {
        "type": "object",
        "properties": {"file": TEXT.schema, "bytes": COUNT.schema},
        "required": ["file"],
    }
)
OUTPUT = record(directory=TEXT, entries=_ENTRY.listed().maybe(), removed=COUNT.maybe())


@click.command("cache", cls=Command, examples=["cache", "cache clear"])
@click.argument("action", type=click.Choice(["list", "clear"]), default="list")
def command(action: str) -> Output:
    """List or clear the compiled kernels in the cache."""
    from ...codegen import cache

    found = cache.clear() if action == "clear" else cache.listing()
    return Output(OUTPUT.read(found), found["text"])
