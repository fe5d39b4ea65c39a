# SPDX-License-Identifier: Apache-2.0
"""The errors that a caller can cause, under one base class, and the wording of their messages.

Names and values in a message come from outside. They are repeated in one short, printable line: no
control character reaches a terminal or a log, and no list of 100,000 names fills it.
"""

from __future__ import annotations

import os
import reprlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

LONGEST = 1000
"""Largest number of characters in a message"""

MOST_NAMES = 20
"""Largest number of names of a list that a message repeats"""


def one_line(text: object, most: int = LONGEST) -> str:
    """The text in one line of at most `most` printable characters; other characters are escaped."""
    found = str(text)
    # what is cut off need not be processed
    line = " ".join(found[: 2 * most].split())
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    if len(line) <= most and len(found) <= 2 * most:
        return line
    more = f"… ({len(found)} characters)"
    return line[: most - len(more)] + more


def interrupt_handled() -> None:
    """Let the process end with its own exit code after a KeyboardInterrupt that it handled.

    `python -m` ends by SIGINT instead if the last string that was executed, as dataclasses do,
    raised KeyboardInterrupt, whether or not that was handled. Executing any other string prevents
    this.
    """
    exec("")  # noqa: S102


def listed(names: Iterable[object], most: int = MOST_NAMES) -> str:
    """`a, b, c and 5 more`, for messages; `none` if there are no names."""
    known = list(names)
    shown = ", ".join(one_line(name, 100) for name in islice(known, most))
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return shown + more or "none"


def counted(count: int, noun: str) -> str:
    """`1 joint` or `3 joints`, for messages."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = MOST_NAMES
_SHORT.maxlong = 60
_SHORT.maxlevel = 2
LONGEST_VALUE = 200
"""Largest number of characters of a value that a message repeats"""


def shown(value: object) -> str:
    """The value's `repr`, shortened."""
    try:
        return one_line(_SHORT.repr(value), LONGEST_VALUE)
    # a value's own repr may raise any error, like that of a number of 5,000 digits
    except Exception:  # noqa: BLE001
        return f"a {type(value).__name__} that can't be shown"


class Named(NamedTuple):
    """An element of a description that is identified by its name, such as a link or a joint."""

    kind: str
    name: str


Step = str | int | Named
"""One step into a document: a key, an index, or a named element"""


class Place(str):
    """A place in a document as messages write it, with the path that leads to it.

    `Place("arm.yaml").named("link", "upper") / "inertia" / "ixx"` reads
    `arm.yaml: link 'upper': inertia.ixx`.

    Attributes:
        document: how messages refer to the document, usually the name of its file.
        path: the steps from the document's root.
    """

    document: str
    path: tuple[Step, ...]

    def __new__(cls, words: str, document: str | None = None, path: Iterable[Step] = ()) -> Place:
        if isinstance(words, Place) and document is None:
            return words
        made = super().__new__(cls, words)
        made.document = words if document is None else document
        made.path = tuple(path)
        return made

    def __truediv__(self, step: Step) -> Place:
        """The place one step further inside."""
        if isinstance(step, Named):
            words = f": {step.kind} {step.name!r}"
        elif isinstance(step, int):
            words = f"[{step}]"
        else:
            inner = bool(self.path) and not isinstance(self.path[-1], Named)
            words = f".{step}" if inner else f": {step}"
        return Place(f"{self}{words}", self.document, (*self.path, step))

    def named(self, kind: str, name: str) -> Place:
        """The place of a named element."""
        return self / Named(kind, name)

    def __add__(self, words: str) -> Place:
        """The same place with these words appended."""
        return Place(f"{self}{words}", self.document, self.path)

    def at(self, *steps: Step) -> Place:
        """The place that further steps lead to, in the same words."""
        return Place(str(self), self.document, (*self.path, *steps))


class RobotDynamicsError(ValueError):
    """Base of all errors that a caller can cause. Its message is one line.

    Attributes:
        name: what was wrong: a parameter, or a `Place` in a description, such as
            `arm.yaml: link 'upper': inertia.ixx` or `arm.yaml: loops[2].type`.
        value: the value found there.
        expected: what would have been accepted.
    """

    def __init__(self, message: str, *, name: str = "", value: object = None, expected: str = ""):
        super().__init__(one_line(message))
        self.name = name
        self.value = value
        self.expected = expected


class DescriptionError(RobotDynamicsError):
    """A robot description that is broken or describes an impossible robot.

    Attributes:
        line: the line of the file, counted from 1; None if it is not known.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str = "",
        value: object = None,
        expected: str = "",
        line: int | None = None,
    ):
        super().__init__(message, name=name, value=value, expected=expected)
        self.line = line

    @property
    def place(self) -> Place:
        """The place in the description; its path is empty if it is not known."""
        return Place(self.name)


class InputError(RobotDynamicsError):
    """A joint vector, a parameter or an option that a function does not accept."""


class ClosureError(RobotDynamicsError):
    """Loops that cannot be closed, or a configuration too near a singularity."""


class BackendError(RobotDynamicsError):
    """A code generation backend that was requested but is not available."""


class RecordingError(RobotDynamicsError):
    """A recording that cannot be read, or that does not determine enough about the robot."""


class TrajectoryError(RobotDynamicsError):
    """A commanded trajectory that cannot be followed."""


@contextmanager
def said_of(label: str) -> Iterator[None]:
    """Prefix the messages of errors raised in this context with the robot's label (see
    `Mechanism.label`), if it has one."""
    try:
        yield
    except RobotDynamicsError as error:
        if label and not str(error).startswith(f"{label}: "):
            error.args = (one_line(f"{label}: {error}"),)
        raise


_PACKAGE = str(Path(__file__).resolve().parent) + os.sep


def callers_level() -> int:
    """The stack level of the first caller outside this package, for `warnings.warn`."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


class ClosureWarning(UserWarning):
    """A closed robot is used, but not exactly as described.

    An approximate home was closed by a search, a joint that does no work is held fixed, there are
    more motors than needed, or some states of a batch give nan because they cannot be closed or are
    too near a singularity.
    """


_Error = TypeVar("_Error", bound=RobotDynamicsError)


def wrong(error: type[_Error], name: str, value: object, expected: str) -> _Error:
    """An error in the common form: `name: found value, expected …`."""
    return error(
        f"{name}: found {shown(value)}, expected {expected}",
        name=name,
        value=value,
        expected=expected,
    )


def not_installed(name: str, role: str, install: str) -> BackendError:
    """The error for a library or program that is missing.

    Args:
        name: its name.
        role: what it does.
        install: what `pip install` gets.
    """
    module = name.lower()
    return BackendError(
        f"{name}, which {role}, is missing: pip install {install}",
        name=module,
        expected=f"an installed {module}",
    )


def choices(names: Iterable[str]) -> str:
    """`one of a, b, c`, for the end of a message."""
    return "one of " + listed(names)
