# SPDX-License-Identifier: Apache-2.0
"""Equations that are too long for one expression, as a list of intermediates without repetition.

The formulation runs over the recorder's scalars, and the recorded program over polynomials, whose
normal form cancels terms. A value that occurs several times or grows too long gets a letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from ..codegen.recorder import OPERATORS, Program, Recorded, Recorder
from ..formulations.equations import Equations
from ..mechanism.mechanism import new_name
from ..scalar import array
from .listing import Assignments, needed
from .polynomial import Polynomial, Ring
from .short import Writer, rounded
from .simplify import matrix
from .symbolic_parameters import Letters, Task, near, symbolic_mechanism

FEW = 12
"""Largest number of terms of a value without a letter"""


def straight_line(task: Task, prefix: str = "v") -> tuple[Assignments, dict[str, sympy.Matrix]]:
    """(intermediates, {torques, D, C, g, friction}) by the recorder, in the symbols of the task.

    Args:
        task: the robot.
        prefix: what the intermediates are called, before their numbers.
    """
    sheet, recorder = _Sheet(prefix), Recorder()
    letters, inputs, entered = Letters(sheet.ring, task.known), [], {}

    def recorded(value: Any) -> Any:
        value = sheet.ring.normal(value) if isinstance(value, Polynomial) else value
        if not isinstance(value, Polynomial) or set(value.terms) <= {0}:
            return value.terms.get(0, 0j).real if isinstance(value, Polynomial) else value
        key = frozenset(value.terms.items())
        if key not in entered:
            inputs.append(value)
            entered[key] = recorder.inputs(1)[0]
        return entered[key]

    def parameter(name: str, value: Any, place: str = "") -> Any:
        if not task.known.symbols or isinstance(value, Recorded):
            return value
        return recorded(letters(name, value, place))

    states = (task.q, task.qd, task.qdd)
    q, qd, qdd = (array(recorded(sheet.ring.letter("coordinate", x)) for x in s) for s in states)
    model = symbolic_mechanism(task.mechanism, parameter)
    equations = Equations.of(model, task.formulation, task.rotors, task.terms)
    nothing = np.zeros(len(q))
    parts = {
        "torques": equations.torques(q, qd, qdd),
        "D": equations.mass_matrix(q),
        "C": equations.coriolis_matrix(q, qd),
        "g": equations.gravity(q) if "gravity" in equations.terms else nothing,
        "friction": equations.friction(q, qd, qdd) if "friction" in equations.terms else nothing,
    }
    program = recorder.program([entry for part in parts.values() for entry in np.ravel(part)])
    outputs = iter(sheet.outputs(program, inputs))  # the entries of one array after the other
    found = {name: matrix(part, lambda _: next(outputs)) for name, part in parts.items()}
    return needed(sheet.assignments, found.values()), found


class _Sheet:
    """A program's values over polynomials of one ring, with letters for some of them."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.ring = Ring()
        self.writer = Writer(self.ring)
        self.taken: set[str] = set()
        self.assignments: list[tuple[sympy.Symbol, sympy.Expr]] = []
        self._known: dict[frozenset[tuple[int, complex]], Polynomial] = {}

    def outputs(self, program: Program, inputs: Sequence[Polynomial]) -> list[sympy.Expr]:
        """The program's outputs."""
        uses = Counter(place for place in program.outputs if isinstance(place, int))
        for place in reversed(range(len(program.instructions))):
            operation, *operands = program.instructions[place]
            if uses[place] and operation != "input":
                uses.update(operand for operand in operands if isinstance(operand, int))
        values: list[Any] = []
        self.taken |= {str(x.expression) for x in self.ring.generators}
        for place, (operation, *operands) in enumerate(program.instructions):
            if operation == "input":
                values.append(inputs[operands[0]])
            elif uses[place]:
                value = self._applied(operation, [self._value(x, values) for x in operands])
                terms = len(value.terms)
                long = terms > FEW or uses[place] > 1 < terms
                values.append(self._letter(value) if long else value)
            else:
                values.append(None)
        return [self._written(self._value(x, values)) for x in program.outputs]

    def _value(self, operand: Any, values: list[Any]) -> Polynomial:
        if isinstance(operand, int):
            value: Polynomial = values[operand]
            return value
        return self.ring.constant(near(operand))

    def _written(self, value: Polynomial) -> sympy.Expr:
        return rounded(self.writer.plain(value))

    def _applied(self, operation: str, operands: list[Polynomial]) -> Polynomial:
        self.ring.products = 0
        if operation == "div":
            inverse = self._function(lambda x: 1 / x, operands[1])
            return self._applied("mul", [operands[0], inverse])
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
            return self.ring.constant(near(float(function(value.terms.get(0, 0j).real))))
        if len(value.terms) > 1 or abs(*value.terms.values()) != 1:
            value = self._letter(value)
        return self.ring.letter("parameter", function(self.writer.plain(value)))

    def _letter(self, value: Polynomial) -> Polynomial:
        """A letter for this value, or its negative; equal values have the same letter."""
        for sign in (1, -1):
            key = frozenset((k, sign * c) for k, c in value.terms.items())
            if key in self._known:
                return self._known[key] if sign == 1 else -self._known[key]
        symbol = sympy.Symbol(
            new_name(f"{self.prefix}{len(self.assignments) + 1}", self.taken, "_"), real=True
        )
        self.assignments.append((symbol, self._written(value)))
        letter = self.ring.letter("parameter", symbol)
        self._known[frozenset(value.terms.items())] = letter
        return letter


def inlined(assignments: Assignments, parts: dict[str, sympy.Matrix]) -> dict[str, sympy.Matrix]:
    """The matrices with every intermediate replaced by its expression.

    Args:
        assignments: the intermediates.
        parts: the matrices by name.
    """
    known: dict[sympy.Basic, sympy.Expr] = {}
    for symbol, expression in assignments:
        known[symbol] = expression.xreplace(known)
    return {name: values.xreplace(known) for name, values in parts.items()}
