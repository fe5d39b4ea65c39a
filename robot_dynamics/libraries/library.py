# SPDX-License-Identifier: Apache-2.0
"""The interface that a library of arrays must provide to run recorded programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Protocol

from ..codegen.recorder import Program, value_of
from ..scalar import Floats


@dataclass(frozen=True)
class Definition:
    """One function of vectors as a straight-line program."""

    name: str
    arguments: tuple[str, ...]
    """The names of the vectors"""
    results: tuple[tuple[str, tuple[int, ...]], ...]
    """The results' names and shapes; the program's outputs are their entries in row-major order,
    one result after the other"""
    program: Program

    def evaluated(
        self, entries: list[Any], functions: Mapping[str, Callable[[Any], Any]]
    ) -> list[Any]:
        """The entries of all results, as in `Program.values`."""
        values = self.program.values(entries, functions)
        return [value_of(end, values) for end in self.program.outputs]

    def parts(self, entries: Any) -> list[Any]:
        """The entries of all results, split by result; what follows them is left out."""
        ends = [0, *accumulate(prod(shape) for _, shape in self.results)]
        return [entries[a:b] for a, b in pairwise(ends)]


@dataclass(frozen=True)
class PassiveJoints:
    """Programs by which the other joints u follow the motors' coordinates q (k,).

    u is followed from home to q in strides that become shorter, and each stride reports whether it
    certainly kept the assembly mode. This path is not differentiated. Instead, two Newton steps
    follow, which change only the derivatives: those of first order are exact after one step, those
    of second and third order after two (at a root, a step does not depend on its initial guess).
    """

    followed: Definition
    """(q, memory) → memory at q"""
    improved: Definition
    """(q, u) → u after one Newton step"""
    start: Floats
    """The memory at home"""
    doubt: int
    """The index, in a memory, of its doubt, which is at most 1 if the assembly mode was certainly
    kept; q and u follow it"""
    wraps: tuple[bool, ...]
    """(k,): True for joints whose position is the same after a full turn"""
    strides: int
    """The number of strides from home to q"""

    @property
    def known(self) -> int:
        """k, the number of motors' coordinates."""
        return len(self.wraps)

    @property
    def q_home(self) -> Floats:
        """q (k,) at home, rad or m."""
        return self.start[self.doubt + 1 :][: self.known]

    def share(self, stride: Any) -> Any:
        """The fraction of the path from home to q that this number of strides covers. The last
        strides are short, as q may be near a singularity."""
        left = 1 - stride / self.strides
        return 1 - left * left

    @property
    def others(self) -> slice:
        """The slice of a memory that is u."""
        first = self.doubt + 1 + self.known
        return slice(first, first + self.improved.program.sizes[1])


class Library(Protocol):
    """A module that provides programs as functions of one library's arrays."""

    def closing(self, definition: Definition, closure: PassiveJoints) -> Callable[..., Any]:
        """A program whose first vector is all joints [q; u], as a function of q (k,)."""

    def function(self, definition: Definition) -> Callable[..., Any]:
        """A program as a function of the library's arrays."""
