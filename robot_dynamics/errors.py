"""The errors that a caller can cause, under one base class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar


class RobotDynamicsError(ValueError):
    """Base of every failure that a caller can cause.

    Attributes:
        name: what was wrong (a file, a key, a link, a joint, a parameter).
        value: the value found there.
        expected: what would have been right.
    """

    def __init__(self, message: str, *, name: str = "", value: object = None, expected: str = ""):
        super().__init__(message)
        self.name = name
        self.value = value
        self.expected = expected


class DescriptionError(RobotDynamicsError):
    """A robot description that is broken or describes an impossible robot."""


class InputError(RobotDynamicsError):
    """A joint vector, a parameter or an option that a function cannot take."""


class ClosureError(RobotDynamicsError):
    """A closed chain that cannot be closed, or a configuration too near a singularity."""


class BackendError(RobotDynamicsError):
    """A code generation backend that was asked for and cannot be had."""


class TrajectoryError(RobotDynamicsError):
    """A commanded trajectory that cannot be followed."""


_Error = TypeVar("_Error", bound=RobotDynamicsError)


def wrong(error: type[_Error], name: str, value: object, expected: str) -> _Error:
    """The one sentence every complaint is: what it is about, what was found, what is right."""
    return error(
        f"{name}: found {value!r}, expected {expected}", name=name, value=value, expected=expected
    )


def choices(names: Iterable[str]) -> str:
    """`one of a, b, c`, for the end of a message."""
    return "one of " + ", ".join(names)
