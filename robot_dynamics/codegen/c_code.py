# SPDX-License-Identifier: Apache-2.0
"""A program as C functions of limited length, with one local constant for each value.

In a long program, instructions that repeat with other operands become a loop.
Names in the source consist of fixed letters and numbers: nothing from a description enters it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from .loops import Block, blocks
from .recorder import Operand, Program, needed

CHUNK = 1000
"""Instructions in one C function of a long program, those of a loop counted once: the time to
compile a longer function grows faster than its length"""

WHOLE = 3
"""A program of up to so many times that is one function without loops, which runs faster"""

GROUP = 8
"""Results that are stored together: a multiple of the number of lanes on every machine"""

MOST_ZEROS = 64
"""Largest number of results that are always 0 and are written one by one"""

FORMS = {
    "neg": "-{}",
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
}
"""Operators in C, Python and other languages; all other operations are functions of one value"""


def constant_or_name(operand: Operand, literal: str = "{}") -> str:
    """The name of an instruction's value, v<index>, or a constant, in brackets if negative."""
    if isinstance(operand, int):
        return f"v{operand}"
    text = literal.format(repr(operand))
    return text if operand >= 0 else f"({text})"


@dataclass(frozen=True)
class Dialect:
    """How a value is written in C: as one number, or as a vector with one number for each of
    several states."""

    type: str
    function: str = "{}"
    constant: str = "{}"
    function_head: str = '__attribute__((noinline, visibility("hidden")))'
    literal: str = "{}"
    """A number inside an expression"""
    apart: bool = False
    """Does the memory of the results overlap with nothing that is read? If so, each result is
    written as soon as it is known, as those of a loop always are."""


SCALAR = Dialect("double", apart=True)
LANES = Dialect("lanes", "{}_lanes", "all({})", apart=True)
C99 = Dialect("double", function_head="static")
C99_SINGLE = Dialect("float", "{}f", "{}", "static", "{}f")


class CCode:
    """The C functions of a program, and the statements that call them.

    `angles(x, angle)` fills a table with all angles. The caller computes their sines and cosines,
    many at once, into the tables sin_ and cos_, which a program without angles lacks. Then the
    parts run one after the other and pass values on in a table w. x[i] is the program's vector i.

    Args:
        program: the program.
        dialect: how values are written.
        prefix: the beginning of the functions' names.
    """

    def __init__(self, program: Program, dialect: Dialect, prefix: str = ""):
        self._program = program
        self._prefix = prefix
        self._dialect = dialect
        self._angle_of = _angles(program)
        self._places = program.places
        # every function can read these values from x, sin_ or cos_
        self._at_hand = {
            place
            for place, (operation, *operands) in enumerate(program.instructions)
            if operation == "input"
            or (operation in ("sin", "cos") and operands[0] in self._angle_of)
        }
        self._live = needed(program.instructions, program.outputs, self._at_hand)
        self._parts = self._divided()
        self._part_of = [k for k, part in enumerate(self._parts) for b in part for _ in b.all]
        self._block_of = [block for part in self._parts for block in part for _ in block.all]
        self._handed_on = self._crossing()
        self._ends: dict[int, list[int]] = {}  # by place
        for k, end in enumerate(program.outputs):
            if isinstance(end, int):
                self._ends.setdefault(end, []).append(k)

    @property
    def program(self) -> Program:
        """The program."""
        return self._program

    @property
    def statements(self) -> int:
        """The number of instructions, those of a loop counted once."""
        return sum(block.length for part in self._parts for block in part)

    @property
    def angles(self) -> int:
        """The number of angles whose sine or cosine is needed."""
        return len(self._angle_of)

    @property
    def handed_on(self) -> int:
        """The length of w: the largest number of values that are passed on at any time."""
        return 1 + max(self._handed_on.values(), default=-1)

    @property
    def calls(self) -> list[str]:
        """The statements that run the parts."""
        arguments = ", ".join(self._arguments)
        return [f"{self._prefix}part{k}({arguments});" for k in range(len(self._parts))]

    @property
    def _arguments(self) -> dict[str, str]:
        """The parameters of each part, with their types."""
        T = self._dialect.type
        tables = dict.fromkeys(("sin_", "cos_"), f"const {T}") if self._angle_of else {}
        return {"x": f"const {T} *const", **tables, "w": T, "out": T}

    @property
    def complete(self) -> list[list[range]]:
        """For each part, the results that are complete once it has run, as ranges of whole
        groups."""
        ends = self._program.outputs
        last = [self._part_of[end] if isinstance(end, int) else 0 for end in ends]
        found: list[list[range]] = [[] for _ in self._parts]
        for start in range(0, len(ends), GROUP):
            group = range(start, min(start + GROUP, len(ends)))
            runs = found[max(last[k] for k in group)]
            if runs and runs[-1].stop == start:
                group = range(runs.pop().start, group.stop)
            runs.append(group)
        return found

    @property
    def constants(self) -> list[str]:
        """The statements for results that do not depend on the state. They precede `calls`, and no
        part writes these results. Many zeros are written in a loop, as compilers take long for
        thousands of separate statements."""
        ends = self._program.outputs
        fixed = [(k, end) for k, end in enumerate(ends) if not isinstance(end, int)]
        lines = []
        if sum(end == 0.0 for _, end in fixed) > MOST_ZEROS:
            zero = self._dialect.constant.format("0.0")
            lines = [f"for (int k = 0; k < {len(ends)}; k++)", f"    out[k] = {zero};"]
            fixed = [(k, end) for k, end in fixed if end != 0.0]
        return [*lines, *(f"out[{k}] = {self._result(end)};" for k, end in fixed)]

    def functions(self) -> list[str]:
        """The source of each function."""
        T = self._dialect.type
        found = []
        if self._angle_of:
            lines = [self._head(f"angles(const {T} *const *x, {T} *angle)"), "{"]
            known: set[int] = set()
            for place in sorted(needed(self._program.instructions, self._angle_of)):
                lines += self._statement(place, known)
            for angle, k in self._angle_of.items():
                lines.append(f"    angle[{k}] = {self._result(angle)};")
            found.append("\n".join([*lines, "}", ""]))
        apart = "restrict " if self._dialect.apart else ""
        arguments = ", ".join(f"{kind} *{apart}{x}" for x, kind in self._arguments.items())
        used = ", ".join(f"(void){x}" for x in self._arguments)
        for k, part in enumerate(self._parts):
            lines = [self._head(f"part{k}({arguments})"), "{", *self._part(part)]
            lines.append(f"    {used};")
            found.append("\n".join([*lines, "}", ""]))
        return found

    def _head(self, function: str) -> str:
        return f"{self._dialect.function_head} void {self._prefix}{function}"

    def _part(self, part: list[Block]) -> list[str]:
        lines = []
        known: set[int] = set()
        straight = [block for block in part if block.rounds == 1]
        for k, block in enumerate(part):
            if block.rounds > 1:
                lines += self._loop(block, known, f"at{k}")
                continue
            for place in block.first:
                if place in self._live and place not in self._at_hand:
                    lines += self._statement(place, known)
                if place in self._handed_on:
                    lines.append(f"    w[{self._handed_on[place]}] = v{place};")
                if self._dialect.apart:
                    lines += self._results(place, known)
        if not self._dialect.apart:
            for block in straight:
                for place in block.first:
                    lines += self._results(place, known)
        return lines

    def _loop(self, loop: Block, known: set[int], table: str) -> list[str]:
        """The statements of a loop, preceded by those for the values that are the same in all
        rounds. Row k of a table has the indices in w and out of what round k reads and writes."""
        instructions = self._program.instructions
        before: list[str] = []
        lines: list[str] = []
        columns: dict[tuple[int, ...], str] = {}
        read: dict[str, str] = {}

        def entry(indices: Iterable[int]) -> str:
            return columns.setdefault(tuple(indices), f"{table}[k][{len(columns)}]")

        for place in loop.first:
            operation, *operands = instructions[place]
            each = loop.each(place)
            names = []
            for position, operand in enumerate(operands, 1):
                if (place, position) in loop.varying:
                    index = entry(self._handed_on[instructions[x][position]] for x in each)
                    if index not in read:
                        read[index] = f"r{len(read)}"
                        lines.append(self._constant(read[index], f"w[{index}]"))
                    names.append(read[index])
                    continue
                if isinstance(operand, int) and operand < loop.start:
                    before += self._fetched(operand, known)
                names.append(self._value(operand))
            lines.append(self._constant(f"v{place}", self._expression(operation, names)))
            if place in self._handed_on:
                lines.append(f"    w[{entry(self._handed_on[x] for x in each)}] = v{place};")
            for results in zip(*(self._ends.get(x, ()) for x in each), strict=True):
                lines.append(f"    out[{entry(results)}] = v{place};")
        rows = ", ".join(f"{{{', '.join(map(str, row))}}}" for row in zip(*columns, strict=True))
        return [
            *before,
            f"    static const int {table}[][{len(columns)}] = {{{rows}}};",
            f"    for (int k = 0; k < {loop.rounds}; k++) {{",
            *("    " + line for line in lines),
            "    }",
        ]

    def _results(self, place: int, known: set[int]) -> list[str]:
        """The statements that store this value in every result that is equal to it."""
        lines = []
        for k in self._ends.get(place, ()):
            lines += self._statement(place, known)
            lines.append(f"    out[{k}] = {self._result(place)};")
        return lines

    def _statement(self, place: int, known: set[int]) -> list[str]:
        """The statements that define v<place>, preceded by those for the operands that the function
        does not have yet."""
        if place in known:
            return []
        known.add(place)
        operation, *operands = self._program.instructions[place]
        if operation == "input":
            vector, entry = self._places[operands[0]]
            return [self._constant(f"v{place}", f"x[{vector}][{entry}]")]
        if place in self._at_hand:
            entry = self._angle_of[operands[0]]
            return [self._constant(f"v{place}", f"{operation}_[{entry}]")]
        lines = []
        for operand in operands:
            if isinstance(operand, int):
                lines += self._fetched(operand, known)
        expression = self._expression(operation, map(self._value, operands))
        return [*lines, self._constant(f"v{place}", expression)]

    def _fetched(self, place: int, known: set[int]) -> list[str]:
        """The statements that define v<place>, if the function does not have it yet, from where
        every function can read it."""
        if place in self._at_hand:
            return self._statement(place, known)
        if place in known:
            return []
        known.add(place)
        return [self._constant(f"v{place}", f"w[{self._handed_on[place]}]")]

    def _expression(self, operation: str, operands: Iterable[str]) -> str:
        form = FORMS.get(operation) or self._dialect.function.format(operation) + "({})"
        return form.format(*operands)

    def _constant(self, name: str, expression: str) -> str:
        return f"    const {self._dialect.type} {name} = {expression};"

    def _value(self, operand: Operand) -> str:
        return constant_or_name(operand, self._dialect.literal)

    def _result(self, operand: Operand) -> str:
        value = self._value(operand)
        return value if isinstance(operand, int) else self._dialect.constant.format(value)

    def _divided(self) -> list[list[Block]]:
        """The blocks of each part. A loop is in one part."""
        total = len(self._program.instructions)
        found = [Block(0, total)]
        if total > WHOLE * CHUNK:
            found = blocks(self._program, self._at_hand | (set(range(total)) - self._live))
        statements = sum(block.length for block in found)
        room = CHUNK if statements > WHOLE * CHUNK else statements
        parts: list[list[Block]] = [[]]
        left = room
        for block in found:
            start = block.start
            while start < block.stop:
                if left < 1:
                    parts.append([])
                    left = room
                piece = block
                if block.rounds == 1:
                    piece = Block(start, min(left, block.stop - start))
                parts[-1].append(piece)
                left -= piece.length
                start = piece.stop
        return parts

    def _crossing(self) -> dict[int, int]:
        """The values that a later part or another round of a loop reads, and their indices in w. An
        index is reused once its previous value is no longer needed."""
        last: dict[int, int] = {}  # the last part that reads the value
        for k, blocks_of_part in enumerate(self._parts):
            for block in blocks_of_part:
                last.update(dict.fromkeys(self._from_table(block, k), k))
        # a loop hands on the values of all rounds or of none
        for x in {self._block_of[x].each(x)[0] for x in last}:
            for each in self._block_of[x].each(x):
                last.setdefault(each, self._part_of[each])
        crossing: dict[int, int] = {}
        free: list[int] = []
        over: dict[int, list[int]] = {}  # indices in w by the last part that reads them
        room, part = count(), 0
        for place in sorted(last):
            while part < self._part_of[place]:
                free += over.pop(part, ())
                part += 1
            crossing[place] = free.pop() if free else next(room)
            over.setdefault(last[place], []).append(crossing[place])
        return crossing

    def _from_table(self, block: Block, part: int) -> Iterator[int]:
        """The values that a block of this part reads from w."""
        instructions = self._program.instructions
        for place in block.first:
            if place in self._at_hand or place not in self._live:
                continue
            for position, x in enumerate(instructions[place]):
                if (place, position) in block.varying:
                    yield from (instructions[each][position] for each in block.each(place))
                elif not isinstance(x, int) or x >= block.start or x in self._at_hand:
                    continue
                elif self._part_of[x] < part or self._block_of[x].rounds > 1:
                    yield x


def _angles(program: Program) -> dict[Operand, int]:
    """The angles that do not depend on any sine or cosine, and their indices in the table."""
    angles: dict[Operand, int] = {}
    late: set[Operand] = set()
    for place, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            continue
        if not late.isdisjoint([x for x in operands if isinstance(x, int)]):
            late.add(place)
        elif operation in ("sin", "cos"):
            late.add(place)
            angles.setdefault(operands[0], len(angles))
    return angles
