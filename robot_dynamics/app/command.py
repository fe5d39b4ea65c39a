# SPDX-License-Identifier: Apache-2.0
"""Shared by all commands: options with several values, errors in one line, JSON, progress.

Click is used instead of Typer because `--q 0.3 0.7` needs access to the parser, which Typer hides.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import takewhile
from typing import Any

import click

from ..errors import RobotDynamicsError
from ..outputs import TEXT, Output, Schema, finite, record
from ..ros.executable import print_error

DIALECT = "https://json-schema.org/draft/2020-12/schema"

FAILURE = record(error=TEXT("one line"))
"""The output of any command with exit code 1 or 130"""

STOPPED = 130
"""The exit code after SIGINT, as in shells"""

QUIET = 2.0
"""s before `Progress` prints anything"""


class Several(click.Option):
    """An option with one or more values, as a tuple: `--q 0.3 0.7`, or `--q 0.3 --q 0.7`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "multiple": True})


class Command(click.Command):
    """A command whose function returns an `Output`; it always has the option `--json`.

    Args:
        args, options: those of `click.Command`.
        output: where in this package the kind of its result is; default: the OUTPUT of its own
            module. It is only imported for its schema.
        examples: command lines for `--help`, without `robot_dynamics`.
    """

    def __init__(
        self, *args: Any, output: str = "", examples: Sequence[str] = (), **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.output = output or f"commands.{self.name}.OUTPUT"
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
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found: Output = super().invoke(ctx)
        except RobotDynamicsError as error:
            self._print_error(str(error), as_json)
            return 1
        except KeyboardInterrupt:
            self._print_error("stopped", as_json)
            return STOPPED
        for words in dict.fromkeys(str(each.message) for each in caught):
            print_error(f"warning: {words}")
        try:
            if as_json:
                print(self.as_json(found.result))
            elif found.text:
                print(found.text)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as `head`, has exited
            print_nothing_more()
        return found.exit_code

    def schema(self) -> Schema:
        """The JSON Schema of what it prints with --json: a result or an error."""
        place, _, name = self.output.rpartition(".")
        result = getattr(import_module(f"{__package__}.{place}"), name)
        return {
            "$schema": DIALECT,
            "title": f"robot_dynamics {self.name} --json",
            "anyOf": [result.schema, FAILURE.schema],
        }

    def as_json(self, result: dict[str, Any]) -> str:
        """The result as JSON, in the form that `schema` describes."""
        return json.dumps(finite(result), allow_nan=False)

    def _print_error(self, message: str, as_json: bool) -> None:
        if as_json:
            print(self.as_json({"error": message}))
        else:
            print_error(f"robot_dynamics: {message}")


def print_nothing_more() -> None:
    """Redirect stdout to /dev/null, to avoid another error when it is flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def terminable() -> Iterator[None]:
    """A context in which SIGTERM and SIGHUP end a command, its processes and its temporary files as
    Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    # with nohup, SIGHUP stays ignored
    before = {each: signal.getsignal(each) for each in numbers}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Progress:
    """Prints a line on stderr for each step that takes place after `QUIET`.

    Lines that differ only in their numbers, as those of a count, are printed once a second.
    """

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._words, self._last = "", ("", 0.0)
        self._lock = threading.Lock()
        context = click.get_current_context(silent=True)
        if context is not None:  # of the command: at its end the timer ends, too
            timer = threading.Timer(QUIET, self._print_first)
            timer.daemon = True
            timer.start()
            context.call_on_close(timer.cancel)

    def __call__(self, words: str) -> None:
        passed = time.monotonic() - self._begin
        with self._lock:
            self._words = words
            if passed > QUIET:
                self._print(words, passed)

    def _print_first(self) -> None:
        """The step that began before `QUIET` and has not ended yet."""
        with self._lock:
            if self._words and not self._last[0]:
                self._print(self._words, QUIET)

    def _print(self, words: str, passed: float) -> None:
        kind = re.sub(r"\d+", "", words)
        before, at = self._last
        if kind != before or passed >= at + 1.0:
            self._last = kind, passed
            print(f"{passed:4.0f} s: {words}", file=sys.stderr, flush=True)
