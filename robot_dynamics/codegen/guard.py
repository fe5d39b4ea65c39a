# SPDX-License-Identifier: Apache-2.0
"""Propagates nan from any input to all results, even those that do not depend on that input."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from .recorder import Operand, Program


def guarded(program: Program, vectors: int) -> Program:
    """The program with a guard: one nan in the state makes all results nan.

    0·x is added to every result that does not depend on an entry x of the state. For most robots
    all results depend on all entries, and nothing is added.

    Args:
        program: the program.
        vectors: the number of vectors at the beginning that form the state.
    """
    missing = _missing(program, vectors)
    doubtful = reduce(or_, missing, 0)
    if not doubtful:
        return program

    instructions = list(program.instructions)
    place_of = {i[1]: place for place, i in enumerate(instructions) if i[0] == "input"}

    def append(*instruction: Any) -> int:
        instructions.append(instruction)
        return len(instructions) - 1

    doubt: Operand = None
    for entry in range(doubtful.bit_length()):
        if doubtful >> entry & 1:
            place = place_of[entry] if entry in place_of else append("input", entry)
            zero = append("mul", 0.0, place)
            doubt = zero if doubt is None else append("add", doubt, zero)
    outputs = tuple(
        append("add", end, doubt) if lacks else end
        for end, lacks in zip(program.outputs, missing, strict=True)
    )
    return Program(program.sizes, tuple(instructions), outputs)


def lacking(program: Program, vectors: int) -> list[tuple[int, int]]:
    """The state's entries, as (vector, entry), on which at least one result does not depend.

    Args:
        program: the program.
        vectors: the number of vectors at the beginning that form the state.
    """
    doubtful = reduce(or_, _missing(program, vectors), 0)
    places = [(i, j) for i, size in enumerate(program.sizes[:vectors]) for j in range(size)]
    return [place for k, place in enumerate(places) if doubtful >> k & 1]


def _missing(program: Program, vectors: int) -> list[int]:
    """For each result, the entries of the state on which it does not depend, as a bit mask."""
    states = (1 << sum(program.sizes[:vectors])) - 1
    depends: list[int] = []
    for operation, *operands in program.instructions:
        if operation == "input":
            depends.append(1 << operands[0])
        else:
            depends.append(_union(depends, operands))
    return [states & ~_union(depends, [end]) for end in program.outputs]


def _union(depends: list[int], operands: list[Operand]) -> int:
    found = 0
    for operand in operands:
        if isinstance(operand, int):
            found |= depends[operand]
    return found
