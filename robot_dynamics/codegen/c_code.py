# SPDX-License-Identifier: Apache-2.0
"""A program as C functions: one local constant a value, in pieces that compilers can take.

Names in the text are made of numbers alone; nothing from a description ever gets into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .recorder import Operand, Program

CHUNK = 1500
"""Instructions in one C function: compilers take more than linear time over longer ones"""
LONG, SHORT_CHUNK = 20_000, 200
"""Instructions of a program that is cut into shorter functions, and theirs: it is ready sooner, and
what the functions hand on no longer matters"""

MOST_ZEROS = 64
"""Results that are always 0 and are written one by one"""

FORMS = {
    "neg": "-{}",
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
}


@dataclass(frozen=True)
class Dialect:
    """What a value is: one number, or one of each of several states side by side."""

    type: str
    function: str = "{}"
    constant: str = "{}"
    function_head: str = "static __attribute__((noinline))"
    literal: str = "{}"
    """A number in the midst of an expression"""


SCALAR = Dialect("double")
LANES = Dialect("lanes", "{}_lanes", "all({})")
C99 = Dialect("double", function_head="static")
C99_SINGLE = Dialect("float", "{}f", "{}", "static", "{}f")


class CCode:
    """The C functions of a program, and what it takes to call them.

    `angles(x, angle)` fills a table of all angles; the caller takes their sines and cosines
    into tables sin_ and cos_, many at once; then the parts run one after the other, handing values
    on in a table w. x[i] is the program's vector i.
    """

    def __init__(self, program: Program, dialect: Dialect, prefix: str = ""):
        self._program = program
        self._prefix = prefix
        self._dialect = dialect
        self._angle_of = _angles(program)
        self._places = [(i, j) for i, size in enumerate(program.sizes) for j in range(size)]
        total = len(program.instructions)
        self._chunk = CHUNK if total <= LONG else SHORT_CHUNK
        self._live = self._needed(program.outputs, through_angles=False)
        self._parts = self._divided()
        self._handed_on = self._crossing()
        self._ends: dict[int, list[int]] = {}  # by the first place of the part that writes them
        for k, end in enumerate(program.outputs):
            if isinstance(end, int):
                self._ends.setdefault(self._part_of(end).start, []).append(k)

    @property
    def angles(self) -> int:
        """The number of angles whose sine or cosine is wanted."""
        return len(self._angle_of)

    @property
    def handed_on(self) -> int:
        """The number of values that one part leaves for another."""
        return len(self._handed_on)

    @property
    def calls(self) -> list[str]:
        """The statements that run the parts."""
        return [f"{self._prefix}part{k}(x, sin_, cos_, w, out);" for k in range(len(self._parts))]

    @property
    def constants(self) -> list[str]:
        """The statements for the results that no state changes; they stand before `calls`, and no
        part writes them. Compilers take long over thousands of zeros one by one."""
        ends = self._program.outputs
        fixed = [(k, end) for k, end in enumerate(ends) if not isinstance(end, int)]
        lines = []
        if sum(end == 0.0 for _, end in fixed) > MOST_ZEROS:
            zero = self._dialect.constant.format("0.0")
            lines = [f"for (int k = 0; k < {len(ends)}; k++)", f"    out[k] = {zero};"]
            fixed = [(k, end) for k, end in fixed if end != 0.0]
        return [*lines, *(f"out[{k}] = {self._result(end)};" for k, end in fixed)]

    def functions(self) -> list[str]:
        """The text of all functions, line by line."""
        T = self._dialect.type
        lines = []
        if self._angle_of:
            lines += [self._head(f"angles(const {T} *const *x, {T} *angle)"), "{"]
            known: set[int] = set()
            for place in sorted(self._needed(self._angle_of)):
                lines += self._statement(place, known)
            for angle, k in self._angle_of.items():
                lines.append(f"    angle[{k}] = {self._result(angle)};")
            lines += ["}", ""]
        names = (f"const {T} *const *x", f"const {T} *sin_", f"const {T} *cos_")
        arguments = ", ".join([*names, f"{T} *w", f"{T} *out"])
        for k, part in enumerate(self._parts):
            lines += [self._head(f"part{k}({arguments})"), "{", *self._part(part)]
            lines += ["    (void)x, (void)sin_, (void)cos_, (void)w, (void)out;", "}", ""]
        return lines

    def _head(self, function: str) -> str:
        return f"{self._dialect.function_head} void {self._prefix}{function}"

    def _part(self, part: range) -> list[str]:
        lines = []
        known: set[int] = set()
        for place in part:
            if place in self._live and not self._is_at_hand(place):
                lines += self._statement(place, known)
            if place in self._handed_on:
                lines.append(f"    w[{self._handed_on[place]}] = v{place};")
        for k in self._ends.get(part.start, ()):
            end = self._program.outputs[k]
            assert isinstance(end, int)
            lines += self._statement(end, known)
            lines.append(f"    out[{k}] = {self._result(end)};")
        return lines

    def _statement(self, place: int, known: set[int]) -> list[str]:
        """What makes v<place>, its operands first where this function has not got them yet."""
        if place in known:
            return []
        known.add(place)
        operation, *operands = self._program.instructions[place]
        if operation == "input":
            vector, entry = self._places[operands[0]]
            return [self._constant(place, f"x[{vector}][{entry}]")]
        if self._is_at_hand(place):
            entry = self._angle_of[operands[0]]
            return [self._constant(place, f"{operation}_[{entry}]")]
        lines = []
        for operand in operands:
            if isinstance(operand, int) and operand not in known:
                if self._is_at_hand(operand):
                    lines += self._statement(operand, known)
                else:
                    known.add(operand)
                    lines.append(self._constant(operand, f"w[{self._handed_on[operand]}]"))
        form = FORMS.get(operation) or self._dialect.function.format(operation) + "({})"
        return [*lines, self._constant(place, form.format(*map(self._value, operands)))]

    def _constant(self, place: int, expression: str) -> str:
        return f"    const {self._dialect.type} v{place} = {expression};"

    def _value(self, operand: Operand) -> str:
        if isinstance(operand, int):
            return f"v{operand}"
        text = self._dialect.literal.format(repr(operand))
        return text if operand >= 0 else f"({text})"

    def _result(self, operand: Operand) -> str:
        value = self._value(operand)
        return value if isinstance(operand, int) else self._dialect.constant.format(value)

    def _is_at_hand(self, place: int) -> bool:
        """Can any function read this value, from x, sin_ or cos_?"""
        operation, *operands = self._program.instructions[place]
        return operation == "input" or (
            operation in ("sin", "cos") and operands[0] in self._angle_of
        )

    def _needed(self, ends: Iterable[Operand], through_angles: bool = True) -> set[int]:
        """These values and all that they are made of; or only what the parts make them of."""
        needed: set[int] = set()
        pending = [end for end in ends if isinstance(end, int)]
        while pending:
            place = pending.pop()
            if place not in needed:
                needed.add(place)
                operation, *operands = self._program.instructions[place]
                if operation != "input" and (through_angles or not self._is_at_hand(place)):
                    pending += [x for x in operands if isinstance(x, int)]
        return needed

    def _divided(self) -> list[range]:
        total, chunk = len(self._program.instructions), self._chunk
        return [range(k, min(k + chunk, total)) for k in range(0, total, chunk)] or [range(0)]

    def _part_of(self, place: int) -> range:
        return self._parts[place // self._chunk]

    def _crossing(self) -> dict[int, int]:
        """The values that a later part reads, and where in w they are handed on."""
        crossing: dict[int, int] = {}
        chunk = self._chunk
        for place, (_, *operands) in enumerate(self._program.instructions):
            if self._is_at_hand(place) or place not in self._live:
                continue
            for x in operands:
                if isinstance(x, int) and x // chunk != place // chunk and not self._is_at_hand(x):
                    crossing.setdefault(x, len(crossing))
        return crossing


def _angles(program: Program) -> dict[Operand, int]:
    """The angles that are known before any sine or cosine is, and their places in the table."""
    angles: dict[Operand, int] = {}
    late: set[int] = set()
    for place, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            continue
        if any(isinstance(x, int) and x in late for x in operands):
            late.add(place)
        elif operation in ("sin", "cos"):
            late.add(place)
            angles.setdefault(operands[0], len(angles))
    return angles
