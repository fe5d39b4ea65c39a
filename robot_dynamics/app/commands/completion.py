# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics completion`: a script with which a shell completes commands, options and
files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ...outputs import TEXT, Output, record
from ..command import Command

SHELLS = ("bash", "zsh", "fish")

OUTPUT = record(shell=TEXT, script=TEXT)


@click.command("completion", cls=Command, examples=[f"completion {shell}" for shell in SHELLS])
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> Output:
    """Print a shell's completion script.

    \b
    bash:  source <(robot_dynamics completion bash)   in ~/.bashrc
    zsh:   source <(robot_dynamics completion zsh)    in ~/.zshrc
    fish:  robot_dynamics completion fish | source    in ~/.config/fish/config.fish
    """
    from ..cli import cli

    found = get_completion_class(shell)
    assert found is not None
    script = found(cli, {}, "robot_dynamics", "_ROBOT_DYNAMICS_COMPLETE").source()
    return Output({"shell": shell, "script": script}, script)
