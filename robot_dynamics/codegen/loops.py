# SPDX-License-Identifier: Apache-2.0
"""Instructions of a program that repeat with other operands, and can run as a loop.

A loop takes less time to compile than its rounds one after the other, and if there are many, less
to run: the processor reads its instructions once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .recorder import Program

SHORTEST = 32
"""Instructions in a round, at least: enough to tell two rounds from similar parts of one round"""
FEWEST = 10
"""Rounds of a loop, at least: with fewer, their end, which the processor cannot predict, costs more
than they save"""
PER_OPERAND = 5
"""Instructions in a round for each operand that varies, at least: it is read from memory"""


@dataclass(frozen=True, eq=False)
class Block:
    """Instructions that run once, or a loop.

    Round r of a loop consists of the instructions from start + r length on. They have the
    operations and constants of the first round. Their other operands are values of the same round,
    values from before the loop that are the same in all rounds, or vary.
    """

    start: int
    length: int
    rounds: int = 1
    varying: frozenset[tuple[int, int]] = frozenset()
    """(instruction of the first round, position in it) of each operand that varies: a value from
    before the loop or from an earlier round"""

    @property
    def stop(self) -> int:
        """The end of the last round."""
        return self.start + self.length * self.rounds

    @property
    def all(self) -> range:
        """The instructions of all rounds."""
        return range(self.start, self.stop)

    @property
    def first(self) -> range:
        """The instructions of the first round."""
        return range(self.start, self.start + self.length)

    def each(self, place: int) -> range:
        """The instruction of each round that corresponds to this one."""
        return range(self.start + (place - self.start) % self.length, self.stop, self.length)


def blocks(program: Program, fixed: Collection[int]) -> list[Block]:
    """The blocks of a program, in order: loops, and what is between them.

    Args:
        program: the program.
        fixed: instructions that are in no loop, and do not vary in one.
    """
    loops = _loops(program, fixed)
    borders = [border for loop in loops for border in (loop.start, loop.stop)]
    outside = [*pairwise([0, *borders, len(program.instructions)])][::2]
    between = [Block(start, stop - start) for start, stop in outside if start < stop]
    return sorted([*loops, *between], key=lambda block: block.start)


def _loops(program: Program, fixed: Collection[int]) -> list[Block]:
    instructions, kinds = program.instructions, _kinds(program, fixed)
    found: list[Block] = []
    seen: dict[tuple[int, ...], int] = {}
    """The last place of each sequence of kinds"""
    place = end = 0
    refused = 0, 0
    """The length of a round, and the first instruction that does not repeat any more"""
    while place + SHORTEST <= len(instructions):
        key = tuple(kinds[place : place + SHORTEST])
        start = seen.get(key, -1)
        length = place - start
        is_new = length != refused[0] or place >= refused[1]
        if start >= end and length >= SHORTEST and is_new:
            loop, stop = _loop(instructions, kinds, fixed, start, length)
            if loop.rounds >= FEWEST and _is_worthwhile(instructions, loop):
                found.append(loop)
                place = end = loop.stop
                continue
            refused = length, stop
        seen[key] = place
        place += 1
    return found


def _kinds(program: Program, fixed: Collection[int]) -> list[int]:
    """A number for each instruction: equal for the same operation, the same constants, and the same
    number of results that have its value, and different for those that are in no loop."""
    results = [0] * len(program.instructions)
    for end in program.outputs:
        if isinstance(end, int):
            results[end] += 1
    known: dict[Any, int] = {}
    kinds = []
    for place, (operation, *operands) in enumerate(program.instructions):
        key = (operation, results[place], *[None if isinstance(x, int) else x for x in operands])
        kinds.append(~place if place in fixed else known.setdefault(key, len(known)))
    return kinds


def _loop(
    instructions: Sequence[tuple[Any, ...]],
    kinds: list[int],
    fixed: Collection[int],
    start: int,
    length: int,
) -> tuple[Block, int]:
    """(the loop whose first round is start … start + length, with as many rounds as repeat it; the
    first instruction that does not)"""
    is_shared: dict[tuple[int, int], bool] = {}
    """For each operand that is not of the same round: is it the same in all rounds?"""
    place = start + length
    while place < len(instructions) and kinds[place] == kinds[place - length]:
        first = start + (place - start) % length
        begin = place - first + start  # of this round
        fits = True
        pairs = zip(instructions[place - length], instructions[place], strict=True)
        for position, (before, now) in enumerate(pairs):
            if not isinstance(now, int) or (now - before == length and now >= begin):
                continue  # a constant, or of the same round
            if is_shared.setdefault((first, position), before == now < start):
                fits = fits and before == now
            else:
                fits = fits and before not in fixed and now not in fixed
        if not fits:
            break
        place += 1
    varying = frozenset(operand for operand, shared in is_shared.items() if not shared)
    return Block(start, length, (place - start) // length, varying), place


def _is_worthwhile(instructions: Sequence[tuple[Any, ...]], loop: Block) -> bool:
    read = {instructions[place][position] for place, position in loop.varying}
    return len(read) * PER_OPERAND <= loop.length
