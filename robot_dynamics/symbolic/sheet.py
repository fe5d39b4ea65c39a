# SPDX-License-Identifier: Apache-2.0
"""A recorded program as a short list of named values, each a polynomial in those before it.

The program runs over polynomials, whose normal form cancels terms and combines sums of angles. A
named value becomes a letter in later values; so does one that occurs several times or grows too
long, as v1, v2 … Finally, letters are substituted back wherever this does not lengthen the list.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import sympy

from ..codegen.recorder import OPERATORS, Program
from ..mechanism.mechanism import new_name
from .polynomial import BITS, Polynomial
from .short import Writer

Assignments = tuple[tuple[sympy.Symbol, sympy.Expr], ...]

FEW = 12
"""Largest number of terms of an unnamed value in a rough list"""
MOST = 150
"""Largest number of terms of a value without a name; a longer one gets one"""
BRIEF = 150
"""Largest `Writer.size` of a value that may be written in coordinates and parameters alone even
though it is shorter in terms of other values"""
LONGEST = 24
"""Largest number of terms of a value into which another one is substituted"""
MOST_COPIED = 24
"""Largest `Writer.size` of a value that is substituted in several places"""
MOST_SEARCHED, FEW_SEARCHED = 12, 3
"""Largest number of terms of a value whose shortest form is searched for: in coordinates and
parameters alone, and in other values"""
NAME = 4
"""The cost of a name and its line, in the units of `Writer.size`"""
DIGITS = 12
"""Largest number of decimals of a constant that is taken as exact; a longer one is rounded"""
SHORT, ROUNDING = 8, 1e-13
"""Significant digits, and the relative distance within which a constant is replaced by the nearest
number with that many digits"""


class Sheet:
    """The values of one program.

    Args:
        writer: of the ring's polynomials.
        taken: names that are in use.
    """

    def __init__(self, writer: Writer, taken: Iterable[str], rough: bool = False):
        self.writer, self.ring, self.rough = writer, writer.ring, rough
        self._taken = set(taken)
        self._called: dict[int, str] = {}
        """The names of slots"""
        self.values: dict[int, Polynomial] = {}
        """The value of each letter's slot, in order"""
        self._sizes: dict[int, int] = {}
        self._places: dict[int, tuple[int, str, int]] = {}
        """By instruction: (index, name, sign) of the output that names it"""
        self._fixed: set[int] = set()
        """The slots of values that keep their names"""
        self.functions: set[int] = set()
        """The slots of letters that are functions of others"""
        self._known: dict[frozenset[tuple[int, complex]], Polynomial] = {}

    def written(
        self,
        program: Program,
        inputs: Sequence[Polynomial],
        names: Sequence[str],
        wanted: int,
        kept: int,
    ) -> tuple[Assignments, list[sympy.Expr]]:
        """(intermediates, the first outputs) of a program.

        Args:
            program: the recorded program.
            inputs: the values of its inputs.
            names: the names of its outputs; outputs that are not wanted only name what occurs in
                the others.
            wanted: the number of outputs to return.
            kept: the number of outputs that keep their names, whatever their length, if others need
                them.
        """
        self._wanted(program, names)
        uses = _uses(program, wanted)
        values: list[Any] = []
        for place, (operation, *operands) in enumerate(program.instructions):
            if operation == "input":
                values.append((inputs[operands[0]],) * 2)
                continue
            if not uses[place]:
                values.append(None)
                continue
            pairs = [values[x] if isinstance(x, int) else (self.number(x),) * 2 for x in operands]
            short = self._applied(operation, [each[1] for each in pairs])
            if self.rough:
                many = uses[place] > 1 < len(short.terms) or len(short.terms) > FEW
                values.append((self._letter(short) if many else short,) * 2)
                continue
            wholes = [each[0] for each in pairs]
            long = math.prod(len(each.terms) for each in wholes) > 8 * MOST
            whole = short if operation == "mul" and long else self._applied(operation, wholes)
            values.append(self._cut(place, whole, short, uses[place] > 1, kept))
        outputs = [
            values[x][1] if isinstance(x, int) else self.number(x) for x in program.outputs[:wanted]
        ]
        return self._settled(outputs)

    def _wanted(self, program: Program, names: Sequence[str]) -> None:
        """Note the names of the instructions; a value whose negative has a name gets it, too."""
        for i, (place, name) in enumerate(zip(program.outputs, names, strict=False)):
            if isinstance(place, int):
                operation, *operands = program.instructions[place]
                if operation == "neg":
                    self._places.setdefault(operands[0], (i, name, -1))
                self._places.setdefault(place, (i, name, 1))

    def _cut(
        self, place: int, whole: Polynomial, short: Polynomial, again: bool, kept: int
    ) -> tuple[Polynomial, Polynomial]:
        """(the value in coordinates and parameters, unless that is too long; the value in terms of
        named values)."""
        if len(whole.terms) > MOST:
            whole = short
        if place in self._places and not self.is_short(short):
            i, name, sign = self._places[place]
            short = self._shorter(whole, short)
            if not self.is_short(short):
                short = self._letter(short * sign, name) * sign
            if i < kept:
                self._fixed |= self._letters(short)
                whole = whole if self._is_plain(whole) else short
        elif len(short.terms) > MOST or (
            again and not self._is_plain(short) and not self.is_short(short)
        ):
            short = self._letter(self._shorter(whole, short))
        return whole, short

    def _shorter(self, whole: Polynomial, short: Polynomial) -> Polynomial:
        """The value in coordinates and parameters, or in terms of other values if that is shorter,
        counting the lines of these."""
        others = self._letters(short) - self._letters(whole)
        size = self.writer.size(whole)
        lines = sum(NAME if slot in self._fixed else self._sizes[slot] for slot in others)
        return whole if size <= self.writer.size(short) + lines * (size <= BRIEF) else short

    # --- values ------------------------------------------------------------------------------

    def number(self, value: float) -> Polynomial:
        """The number as a constant, rounded if it is a short decimal up to rounding errors."""
        return self.ring.constant(near(value))

    def _applied(self, operation: str, operands: list[Polynomial]) -> Polynomial:
        self.ring.products = 0
        if operation == "div":
            return self._applied("mul", [operands[0], self._function(lambda x: 1 / x, operands[1])])
        if operation in OPERATORS:
            result: Polynomial = OPERATORS[operation](*operands)
            return self.ring.normal(result) if operation == "mul" else result
        if operation in ("sin", "cos"):
            turned: Polynomial = getattr(operands[0], operation)()
            return turned
        return self._function(getattr(sympy, operation), operands[0])

    def _function(self, function: Any, value: Polynomial) -> Polynomial:
        """A function of a value as a letter."""
        if set(value.terms) <= {0}:
            return self.number(float(function(value.terms.get(0, 0j).real)))
        if len(value.terms) > 1 or abs(*value.terms.values()) != 1:
            value = self._letter(value)
        letter = self.ring.letter("parameter", function(self.writer.plain(value)))
        self.functions.add(self.ring.slot(letter))
        return letter

    def _letter(self, value: Polynomial, name: str = "") -> Polynomial:
        """A letter for this value, or its negative; equal values have the same letter."""
        for sign in (1, -1):
            key = frozenset((k, sign * c) for k, c in value.terms.items())
            if key in self._known:
                known = self._known[key]
                slot = self.ring.slot(known)
                if name and sign == 1 and slot not in self._called:
                    self._called[slot] = new_name(name, self._taken, "_")
                return known if sign == 1 else -known
        kind = "rate" if name.endswith("_d") else "parameter"
        letter = self.ring.letter(kind, sympy.Dummy(real=True))
        slot = self.ring.slot(letter)
        if name:
            self._called[slot] = new_name(name, self._taken, "_")
        self._known[frozenset(value.terms.items())] = letter
        self.values[slot], self._sizes[slot] = value, self.writer.size(value) + NAME
        return letter

    def slots(self, value: Polynomial) -> set[int]:
        """The slots of all letters in a polynomial."""
        return {slot for key in value.terms for slot, _ in self.ring.exponents(key)}

    def _letters(self, value: Polynomial) -> set[int]:
        """The slots of values in a polynomial."""
        return {slot for slot in self.slots(value) if slot in self.values}

    def _is_plain(self, value: Polynomial) -> bool:
        """Does it consist of coordinates and parameters alone?"""
        return not self.slots(value) & (self.values.keys() | self.functions)

    def is_short(self, value: Polynomial) -> bool:
        """Is it a letter, a number or a product of two of a description's letters?"""
        if len(value.terms) > 2:
            return False
        real = self.writer.real(value)
        return len(real) < 2 and self.writer.size(value) - 1 <= (2 if self._is_plain(value) else 1)

    # --- the list ----------------------------------------------------------------------------

    def _settled(self, outputs: list[Polynomial]) -> tuple[Assignments, list[sympy.Expr]]:
        """The values that the outputs need; those that need no name are substituted."""
        pages = _Pages(self, outputs)
        if not self.rough:
            pages.settle(self._fixed)
        slots = [slot for slot in self.values if slot in pages.values]
        numbered, final = count(1), {}
        for slot in slots:
            name = self._called.get(slot) or new_name(f"v{next(numbered)}", self._taken, "_")
            final[self.ring.generators[slot].expression] = sympy.Symbol(name, real=True)
        written = {slot: self._expression(x).xreplace(final) for slot, x in pages.values.items()}
        symbols = (final[self.ring.generators[slot].expression] for slot in slots)
        return tuple(zip(symbols, (written[slot] for slot in slots), strict=True)), [
            written[-1 - i] for i in range(len(outputs))
        ]

    def replaced(self, value: Polynomial, slot: int, by: Polynomial) -> Polynomial | None:
        """The value with a polynomial in place of this letter; None if the result would be long."""
        powers: dict[int, dict[int, complex]] = {}
        for key, factor in value.terms.items():
            power = self.ring.exponent(key, slot)
            powers.setdefault(power, {})[key - (power << (BITS * slot))] = factor
        if len(by.terms) ** max(powers) * len(value.terms) > 8 * MOST:
            return None
        self.ring.products = 0
        result, product = Polynomial(self.ring, {}), self.ring.constant(1.0)
        for power in range(max(powers) + 1):
            if power in powers:
                result = result + Polynomial(self.ring, powers[power]) * product
            product = product * by
        return self.ring.normal(result)

    def _expression(self, value: Polynomial) -> sympy.Expr:
        expression = (
            self.writer.plain(value)
            if self.rough
            else self.writer.brief(value, MOST_SEARCHED if self._is_plain(value) else FEW_SEARCHED)
        )
        return expression.xreplace({n: shown(n) for n in expression.atoms(sympy.Rational)})


class _Pages:
    """The values, by slot, that some outputs need, and the outputs, by -1, -2 …"""

    def __init__(self, sheet: Sheet, outputs: list[Polynomial]):
        self.sheet = sheet
        of = {sheet.ring.generators[slot].expression: slot for slot in sheet.values}
        self._inner = {
            slot: {of[x] for x in each.expression.free_symbols if x in of}
            for slot, each in enumerate(sheet.ring.generators)
            if slot in sheet.functions or each.kind == "angle"
        }
        every = {-1 - i: value for i, value in enumerate(outputs)} | sheet.values
        self.values: dict[int, Polynomial] = {}
        self.size: dict[int, int] = {}
        self.users: dict[int, set[int]] = defaultdict(set)
        self.held: Counter[int] = Counter()
        """How often a value occurs inside functions"""
        pending = [-1 - i for i in range(len(outputs))]
        while pending:
            page = pending.pop()
            if page not in self.values:
                self._write(page, every[page])
                pending += self._parts(every[page])[0]

    def settle(self, fixed: set[int]) -> None:
        """Substitute each value whose removal does not lengthen the list, except those with fixed
        names."""
        tried: dict[int, list[int]] = {}
        changed = True
        while changed:
            changed = False
            for slot in reversed(self.sheet.values):
                if slot not in self.values or self.held[slot]:
                    continue
                users = sorted(self.users[slot])
                state = [id(self.values[page]) for page in (slot, *users)]
                shown = len(users) == 1 and users[0] < 0
                keeps = slot in fixed and not shown and not self.sheet.is_short(self.values[slot])
                if not keeps and tried.get(slot) != state:
                    tried[slot] = state
                    changed |= self._inlined(slot, users, shown)

    def _inlined(self, slot: int, users: list[int], shown: bool) -> bool:
        if len(users) > 1 and self.size[slot] > MOST_COPIED:
            return False
        new = {}
        for user in users:
            value = self.sheet.replaced(self.values[user], slot, self.values[slot])
            long = value is None or len(value.terms) > max(LONGEST, len(self.values[user].terms))
            if value is None or (long and not shown):
                return False
            new[user] = value
        longer = sum(self.sheet.writer.size(value) - self.size[user] for user, value in new.items())
        if longer > self.size[slot] + NAME and not shown:
            return False
        for user, value in new.items():
            self._erase(user)
            self._write(user, value)
        self._drop(slot)
        return True

    def _parts(self, value: Polynomial) -> tuple[set[int], set[int]]:
        """(slots of values in it, those inside a function in it)"""
        slots = self.sheet.slots(value)
        within = set().union(*(self._inner[slot] for slot in slots & self._inner.keys()))
        return (slots & self.sheet.values.keys()) | within, within

    def _write(self, page: int, value: Polynomial) -> None:
        self.values[page], self.size[page] = value, self.sheet.writer.size(value)
        parts, within = self._parts(value)
        self.held.update(within)
        for slot in parts:
            self.users[slot].add(page)

    def _erase(self, page: int) -> None:
        parts, within = self._parts(self.values.pop(page))
        self.held.subtract(within)
        for slot in parts:
            self.users[slot].discard(page)

    def _drop(self, slot: int) -> None:
        """Remove this value, and those that only it needed."""
        parts = self._parts(self.values[slot])[0]
        self._erase(slot)
        for other in parts:
            if other in self.values and not self.users[other]:
                self._drop(other)


def _uses(program: Program, wanted: int) -> Counter[int]:
    """How often each instruction is used for the first outputs."""
    uses = Counter(place for place in program.outputs[:wanted] if isinstance(place, int))
    for place in reversed(range(len(program.instructions))):
        operation, *operands = program.instructions[place]
        if uses[place] and operation != "input":
            uses.update(operand for operand in operands if isinstance(operand, int))
    return uses


def near(value: float) -> float:
    """The short decimal that a computed value equals up to rounding, otherwise the value itself."""
    # a difference of short decimals: 0.0222 - 0.02215 is 5.000000000000143e-05
    short = float(f"{value:.{SHORT}g}")
    return short if abs(short - value) <= ROUNDING * abs(value) else value


def shown(number: sympy.Rational) -> sympy.Expr:
    """The number, rounded to double precision if it has too many decimals."""
    return number if number.q < 10**DIGITS else sympy.Float(repr(float(number)), 17)
