# SPDX-License-Identifier: Apache-2.0
"""A scalar that records the operations on it.

Running a formulation over the scalars of a `Recorder` gives a straight-line `Program`. While it is
recorded, constants are folded, operations with zeros and ones are dropped, and equal subexpressions
are combined.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, wrong

Operand = Any  # int: the place of an instruction; float: a constant

COMMUTATIVE = ("add", "mul")
OPERATORS: Mapping[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}
"""The operations that are operators of any scalar"""
FUNCTIONS = ("sin", "cos", "tanh", "exp", "sqrt", "atan", "sign")
"""The other operations, functions of one value, which a recorded value has as methods"""


@dataclass(frozen=True)
class Program:
    """A list of instructions in the order of execution, each of which computes one value.

    instructions[i] is ("input", k) or (operation, operand, …). An int operand is the index of an
    earlier instruction, a float operand is a constant. `sizes` are the lengths of the input
    vectors, and k is an index into their concatenation. `outputs` are operands too.
    """

    sizes: tuple[int, ...]
    instructions: tuple[tuple[Any, ...], ...]
    outputs: tuple[Operand, ...]

    @property
    def inputs(self) -> int:
        """The number of input scalars."""
        return sum(self.sizes)

    @property
    def places(self) -> list[tuple[int, int]]:
        """(vector, entry) of each input scalar."""
        return [(i, j) for i, size in enumerate(self.sizes) for j in range(size)]

    @property
    def operations(self) -> int:
        """The number of arithmetic operations and function calls, without inputs."""
        return sum(instruction[0] != "input" for instruction in self.instructions)

    def values(
        self, entries: Sequence[Any], functions: Mapping[str, Callable[..., Any]]
    ) -> list[Any]:
        """The value of each instruction, over any scalar or values that support + - * /.

        Args:
            entries: the entries of its vectors, one vector after the other.
            functions: the functions in `FUNCTIONS`, by name.
        """
        values: list[Any] = []
        for operation, *operands in self.instructions:
            if operation == "input":
                values.append(entries[operands[0]])
            else:
                function = OPERATORS.get(operation) or functions[operation]
                values.append(function(*(value_of(x, values) for x in operands)))
        return values


def value_of(operand: Operand, values: Sequence[Any]) -> Any:
    """An operand's value, given the values of the instructions."""
    return values[operand] if isinstance(operand, int) else operand


def needed(
    instructions: Sequence[tuple[Any, ...]], ends: Iterable[Operand], known: Collection[int] = ()
) -> set[int]:
    """The instructions that compute these operands, except those that only known values need."""
    found: set[int] = set()
    pending = [end for end in ends if isinstance(end, int)]
    while pending:
        place = pending.pop()
        if place not in found:
            found.add(place)
            operation, *operands = instructions[place]
            if operation != "input" and place not in known:
                pending += [x for x in operands if isinstance(x, int)]
    return found


class ProgramTooLarge(Exception):  # noqa: N818  not an error: a fallback is used
    """A program has more operations than allowed."""


class Recorder:
    """Collects the instructions of one program, at most `most` of them (None: no limit)."""

    def __init__(self, most: int | None = None) -> None:
        self._most = math.inf if most is None else most
        self._instructions: list[tuple[Any, ...]] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._sizes: list[int] = []

    def inputs(self, count: int) -> np.ndarray[Any, Any]:
        """An object array with `count` new input scalars."""
        before = sum(self._sizes)
        self._sizes.append(count)
        scalars = np.empty(count, dtype=object)
        for i in range(count):
            instruction = "input", before + i
            scalars[i] = Recorded(self, self._place(instruction, instruction))
        return scalars

    def program(self, outputs: Iterable[Any]) -> Program:
        """The program that computes these outputs and nothing else."""
        ends = [_operand(value) for value in outputs]
        self._absorb_signs()
        new = {place: i for i, place in enumerate(sorted(needed(self._instructions, ends)))}

        def moved(instruction: tuple[Any, ...]) -> tuple[Any, ...]:
            operation, *operands = instruction
            if operation == "input":
                return instruction
            return operation, *[new[x] if isinstance(x, int) else x for x in operands]

        instructions = tuple([moved(self._instructions[place]) for place in new])
        outputs = tuple([new[end] if isinstance(end, int) else end for end in ends])
        return Program(tuple(self._sizes), instructions, outputs)

    def _absorb_signs(self) -> None:
        """Replace -(c·x) by (-c)·x for constants c."""
        for place, (operation, *arguments) in enumerate(self._instructions):
            if operation == "neg":
                inner, *factors = self._instructions[arguments[0]]
                if inner == "mul" and isinstance(factors[0], float):
                    self._instructions[place] = ("mul", -factors[0], factors[1])

    def unary(self, operation: str, a: Recorded) -> Recorded:
        """The value operation(a); an equal value that was recorded before is reused."""
        instruction = operation, a.place
        return Recorded(self, self._place(instruction, instruction), operation == "neg")

    def binary(self, operation: str, a: Any, b: Any) -> Recorded:
        """The value operation(a, b); an equal value that was recorded before is reused."""
        # a·b and b·a become the same instruction: constants first, then by index
        commutes = operation in COMMUTATIVE
        if type(a) is Recorded and type(b) is Recorded:
            first, second = a.place, b.place
            if commutes and second < first:
                first, second = second, first
            instruction = operation, first, second
            return Recorded(self, self._place(instruction, instruction))
        if commutes and type(a) is Recorded:
            a, b = b, a
        first, second = _operand(a), _operand(b)
        # the constant 2.0 and the index 2 are equal as numbers and differ only in type
        key = operation, type(first), first, second
        return Recorded(self, self._place((operation, first, second), key))

    def operation(self, value: Recorded) -> tuple[Any, ...]:
        """The instruction (operation, operand, …) that computes a value."""
        return self._instructions[value.place]

    def _place(self, instruction: tuple[Any, ...], key: tuple[Any, ...]) -> int:
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(self._instructions)
            if place >= self._most:
                raise ProgramTooLarge
            self._instructions.append(instruction)
        return place


class Recorded:
    """One value of a program that is being recorded; it behaves like a number in arithmetic."""

    __slots__ = ("is_negative", "place", "recorder")

    def __init__(self, recorder: Recorder, place: int, is_negative: bool = False):
        self.recorder = recorder
        self.place = place
        self.is_negative = is_negative

    def __neg__(self) -> Any:
        # signs are moved outwards until a sum or a difference absorbs them
        instruction = self.recorder.operation(self)
        if instruction[0] == "neg":
            return self._back(instruction[1])
        if instruction[0] == "sub":
            _, first, second = instruction
            return self.recorder.binary("sub", self._back(second), self._back(first))
        return self.recorder.unary("neg", self)

    def __add__(self, other: Any) -> Any:
        if type(other) is Recorded:
            if other.is_negative:
                return self - (-other)
        elif isinstance(other, np.ndarray):
            return NotImplemented
        elif (type(other) is float or _constant(other)) and other == 0:
            return self
        if self.is_negative:
            return other - (-self)
        return self.recorder.binary("add", self, other)

    def __sub__(self, other: Any) -> Any:
        if type(other) is Recorded:
            if other.place == self.place:
                return 0.0
            if other.is_negative:
                return self + (-other)
        elif isinstance(other, np.ndarray):
            return NotImplemented
        elif (type(other) is float or _constant(other)) and other == 0:
            return self
        if self.is_negative:
            return -((-self) + other)
        return self.recorder.binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if other == 0:
            return -self
        if self.is_negative:
            return -self + other
        return self.recorder.binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        if type(other) is Recorded:
            if other.is_negative:
                return -(self * (-other))
        elif isinstance(other, np.ndarray):
            return NotImplemented
        elif type(other) is float or _constant(other):
            if other == 0:
                return 0.0
            if other == 1:
                return self
            if other == -1:
                return -self
            if other < 0:
                return -(self * -other)
        if self.is_negative:
            return -((-self) * other)
        return self.recorder.binary("mul", self, other)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if _constant(other):
            return self * (1.0 / other)
        return self.recorder.binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return 0.0 if other == 0 else self.recorder.binary("div", other, self)

    __radd__ = __add__
    __rmul__ = __mul__

    def _back(self, operand: Operand) -> Any:
        if not isinstance(operand, int):
            return operand
        is_negative = self.recorder._instructions[operand][0] == "neg"
        return Recorded(self.recorder, operand, is_negative)

    def __bool__(self) -> bool:
        raise TypeError("a recorded value is not known yet: it cannot decide a branch")


def _method(name: str) -> Callable[[Recorded], Recorded]:
    def function(self: Recorded) -> Recorded:
        return self.recorder.unary(name, self)

    return function


for _name in FUNCTIONS:
    # NumPy calls such methods for arrays of objects
    setattr(Recorded, _name, _method(_name))


def _constant(x: Any) -> bool:
    return isinstance(x, (int, float, np.floating, np.integer))


def _operand(x: Any) -> Operand:
    if isinstance(x, Recorded):
        return x.place
    constant = float(x)
    if not math.isfinite(constant):
        raise wrong(InputError, "a number of the robot", constant, "a finite number")
    return constant


def record(
    function: Callable[..., Iterable[Any]], sizes: Sequence[int], most: int | None = None
) -> Program:
    """Record the program of a function of vectors.

    Args:
        function: takes the vectors as arrays, and returns the results as one sequence.
        sizes: the lengths of the vectors.
        most: the largest number of instructions; None: no limit.

    Raises:
        ProgramTooLarge: it would have more than `most` instructions.
    """
    recorder = Recorder(most)
    return recorder.program(function(*(recorder.inputs(size) for size in sizes)))
