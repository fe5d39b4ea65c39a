# SPDX-License-Identifier: Apache-2.0
"""What is asked of a library of arrays: to run a recorded program over its scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Protocol

from ..codegen.recorder import Operand, Program

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


@dataclass(frozen=True)
class Definition:
    """One function of vectors as a straight-line program."""

    name: str
    arguments: tuple[str, ...]
    """The vectors' names"""
    results: tuple[tuple[str, tuple[int, ...]], ...]
    """The results' names and shapes; their entries come in row-major order, one after the other"""
    program: Program

    def parts(self, entries: list[Any]) -> list[list[Any]]:
        """The results' entries, by result."""
        ends = [0, *accumulate(prod(shape) for _, shape in self.results)]
        return [entries[a:b] for a, b in pairwise(ends)]


class Library(Protocol):
    """A library of arrays."""

    def function(self, definition: Definition) -> Callable[..., Any]:
        """A function of that library's own arrays."""


def run(
    program: Program, entries: list[Any], unary: Mapping[str, Callable[[Any], Any]]
) -> list[Any]:
    """The results of a program over any values that have + - * /.

    Args:
        entries: the vectors' entries, one after the other.
        unary: neg, sin, cos, tanh, exp, sqrt, atan and sign of one value.
    """
    values: list[Any] = []

    def at(operand: Operand) -> Any:
        return values[operand] if isinstance(operand, int) else operand

    for operation, *operands in program.instructions:
        if operation == "input":
            values.append(entries[operands[0]])
        elif operation in OPERATORS:
            values.append(OPERATORS[operation](at(operands[0]), at(operands[1])))
        else:
            values.append(unary[operation](at(operands[0])))
    return [at(operand) for operand in program.outputs]
