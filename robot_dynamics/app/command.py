# SPDX-License-Identifier: Apache-2.0
"""Shared by all commands: options with several values, errors in one line, JSON, progress.

Click is used instead of Typer because `--q 0.3 0.7` needs access to the parser, which Typer hides.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import click

from ..errors import RobotDynamicsError

Result = dict[str, Any]
"""A command's result: either `text` is printed, or the rest as JSON; `exit_code` is 0 if omitted"""

STOPPED = 130
"""The exit code after SIGINT, as in shells"""

QUIET = 1.0
"""s before `Progress` prints anything"""


class Several(click.Option):
    """An option with one or more values, as a tuple: `--q 0.3 0.7`, or `--q 0.3 --q 0.7`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "multiple": True})


class Command(click.Command):
    """A command whose function returns a `Result`; it always has the option `--json`.

    Args:
        args, options: those of `click.Command`.
        examples: command lines for `--help`, without `robot_dynamics`.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = tuple(examples)
        """Command lines for `--help`, without `robot_dynamics`"""
        self.params.append(click.Option(["--json"], is_flag=True, help="Print JSON."))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as Click does, with `--q 0.3 -0.7` as `--q 0.3 --q -0.7`."""
        return super().parse_args(ctx, self._one_value_each(ctx, args))

    def _one_value_each(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {
            name: each
            for each in self.params
            if isinstance(each, click.Option) and not each.is_flag
            for name in each.opts
        }

        def is_value(word: str) -> bool:
            # -1 and -pi/2 are numbers, not options
            return not word.startswith("--") and word not in ctx.help_option_names

        found: list[str] = []
        rest = list(args)
        while rest:
            name = rest.pop(0)
            if name == "--":
                return [*found, name, *rest]
            option = options.get(name)
            if option is None:
                found.append(name)
                continue
            values = list(takewhile(is_value, rest))
            if not values and not ctx.resilient_parsing:
                raise click.BadOptionUsage(name, f"Option {name!r} requires an argument.", ctx)
            if not isinstance(option, Several):
                values = values[:1]
            del rest[: len(values)]
            found += [part for value in values for part in (name, value)] or [name]
        return found

    def format_epilog(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}robot_dynamics {example}\n")

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, print its result, and return the exit code."""
        as_json = ctx.params.pop("json")
        ctx.meta["json"] = as_json
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result: Result = super().invoke(ctx)
        except RobotDynamicsError as error:
            self._print_error(str(error), as_json)
            return 1
        except KeyboardInterrupt:
            self._print_error("stopped", as_json)
            return STOPPED
        for words in dict.fromkeys(str(each.message) for each in caught):
            print(f"warning: {words}", file=sys.stderr)
        code = int(result.pop("exit_code", 0))
        try:
            text = result.pop("text", None)
            if as_json:
                print(self.as_json(result))
            elif text:
                print(text)
            sys.stdout.flush()
        except BrokenPipeError:  # `| head` has seen enough
            _print_nothing_more()
        except OSError as error:  # a full disk
            _print_nothing_more()
            print(f"robot_dynamics: the output: {error.strerror}", file=sys.stderr)
            return 1
        return code

    def as_json(self, result: Result) -> str:
        """The result as JSON, in the form that `robot_dynamics schema COMMAND` describes."""
        return json.dumps(finite(result), allow_nan=False)

    def _print_error(self, message: str, as_json: bool) -> None:
        if as_json:
            print(self.as_json({"error": message}))
        else:
            print(f"robot_dynamics: {message}", file=sys.stderr)


def _print_nothing_more() -> None:
    """Redirect stdout to /dev/null, to avoid another error when it is flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Progress:
    """Prints a line on stderr for each step after `QUIET`."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    def __call__(self, words: str) -> None:
        passed = time.monotonic() - self._begin
        if passed > QUIET:
            print(f"{passed:4.0f} s: {words}", file=sys.stderr, flush=True)


def finite(value: Any) -> Any:
    """Plain values for JSON: lists for arrays, null for the numbers that JSON lacks (nan, inf)."""
    if isinstance(value, Mapping):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    if hasattr(value, "tolist"):  # an array, or a number of one
        return finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
