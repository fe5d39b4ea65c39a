# SPDX-License-Identifier: Apache-2.0
"""The command line: `robot_dynamics torque|derive|check|compare|demo|identify|replay|excite|…`.

Exit codes: 0 success, 1 failure (one line says why), 2 wrong usage, 130 stopped.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from ..errors import one_line
from ..ros.executable import EXAMPLES as NODES
from ..ros.executable import print_error
from ..version import version
from .command import STOPPED, print_nothing_more, terminable
from .commands import COMMANDS


class Commands(click.Group):
    """The commands; the module of each is imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of the commands, in the order of `robot_dynamics --help`."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """The `command` of the module with this name; None: there is no such module.

        Raises:
            UsageError: it is the name of a node.
        """
        if cmd_name in NODES:
            raise click.UsageError(
                f"{cmd_name} is a node: run `ros2 run robot_dynamics {cmd_name} --help`, or "
                "without a ROS installation "
                f"`python -m robot_dynamics.ros.executables {cmd_name} --help`"
            )
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"{__package__}.commands.{cmd_name}").command
        return found


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        print(f"robot_dynamics {version()}")
        ctx.exit()


@click.group(
    cls=Commands,
    no_args_is_help=False,  # wrong usage in every release of Click
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def cli() -> None:
    """Feed-forward joint torques from a robot's description."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code.

    Args:
        arguments: the command line's arguments; None: those of the process.
    """
    _open_standard_streams()
    try:
        with terminable():
            code = cli.main(
                None if arguments is None else list(arguments),
                prog_name="robot_dynamics",
                standalone_mode=False,
            )
            sys.stdout.flush()
    except click.ClickException as error:
        print_error(f"robot_dynamics: {_words(error)}")
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        print_error("robot_dynamics: stopped")
        return STOPPED
    except OSError as error:  # the output: a pipe that nobody reads any longer, a full disk
        print_nothing_more()
        if isinstance(error, BrokenPipeError):
            return 0
        words = f"the output: {error.strerror}" if error.filename is None else error
        print_error(f"robot_dynamics: {words}")
        return 1
    return int(code or 0)


def _words(error: click.ClickException) -> str:
    """What is wrong with a command line, and where to read about correct usage."""
    if isinstance(error, click.BadParameter) and isinstance(error.param, click.Argument):
        error.param_hint = error.param.human_readable_name  # its name, not all its choices
    words = one_line(error.format_message())
    names_the_expected = isinstance(error, click.BadParameter) and not isinstance(
        error, click.MissingParameter
    )
    context = getattr(error, "ctx", None)
    if names_the_expected or context is None:
        return words
    return f"{words.rstrip('.?')}; see {context.command_path} --help"


def _open_standard_streams() -> None:
    """Replace closed standard streams by /dev/null, and let streams escape characters that they
    cannot encode."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
