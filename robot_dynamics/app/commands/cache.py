# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics cache`: the compiled kernels in the cache."""

from __future__ import annotations

import click

from ..command import Command, Result


@click.command("cache", cls=Command, examples=["cache", "cache clear"])
@click.argument("action", type=click.Choice(["list", "clear"]), default="list")
def command(action: str) -> Result:
    """List or clear the compiled kernels in the cache."""
    from ...codegen import cache

    return cache.clear() if action == "clear" else cache.listing()
