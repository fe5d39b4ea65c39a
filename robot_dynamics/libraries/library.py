# SPDX-License-Identifier: Apache-2.0
"""What is asked of a library of arrays: to run a recorded program over its scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Protocol

from ..codegen.recorder import Operand, Program
from ..scalar import Floats

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


@dataclass(frozen=True)
class Closure:
    """How the joints without motors follow the others q (k,), as programs.

    They are followed from home to q in strides that become shorter, each of which says whether it
    certainly kept the assembly mode; a library leaves that out where it differentiates. Two of
    Newton's steps from there change nothing but the derivatives: those of the first order are right
    after one, of the second and third after two (at a root a step does not depend on its guess).
    """

    followed: Definition
    """(q, memory) → memory at q"""
    improved: Definition
    """(q, u) → u, one of Newton's steps"""
    start: Floats
    """The memory of home"""
    doubt: int
    """Where a memory has its doubt, at most 1 where the mode is certainly kept; behind it are q
    and u"""
    wraps: tuple[bool, ...]
    """(k,): the joints of which a whole turn more is the same place"""
    strides: int

    @property
    def known(self) -> int:
        """k"""
        return len(self.wraps)

    @property
    def home(self) -> Floats:
        """q (k,) of home."""
        return self.start[self.doubt + 1 :][: self.known]

    def share(self, stride: Any) -> Any:
        """Of the way from home to q, after so many strides: where q is near a singularity, the last
        ones are short."""
        left = 1 - stride / self.strides
        return 1 - left * left

    @property
    def others(self) -> slice:
        """Where a memory has u."""
        first = self.doubt + 1 + self.known
        return slice(first, first + self.improved.program.sizes[1])


class Library(Protocol):
    """A library of arrays."""

    def closed(self, definition: Definition, closure: Closure) -> Callable[..., Any]:
        """The same of q (k,), where the definition's first vector is all joints [q; u]."""

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
