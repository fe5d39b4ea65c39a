# SPDX-License-Identifier: Apache-2.0
"""Equations that are too long for one expression, as a list of intermediates without repetition.

The formulation runs over the recorder's scalars instead of SymPy's, and the recorded program is
converted to SymPy expressions. A value that is used only once is written where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import sympy

from ..codegen.recorder import FUNCTIONS, OPERATORS, Program, Recorder
from ..formulations.equations import Equations
from ..scalar import Array, array
from .symbolic_parameters import Parameters, Task, angles, exact_number, right, symbolic_mechanism

Assignments = tuple[tuple[sympy.Symbol, sympy.Expr], ...]

_FUNCTIONS = {name: getattr(sympy, name) for name in FUNCTIONS}
LONGEST = 12
"""Most operations of a value that is used only once and written where it is used"""
DIGITS = 12
"""Most decimals of a constant that is taken as exact; a longer one is rounded"""
SHORT, ROUNDING = 8, 1e-13
"""Significant digits, and the relative distance within which a constant is replaced by the nearest
number with so many digits"""


class Recording:
    """A recorder whose inputs are coordinates and parameters; exact numbers stay constants."""

    def __init__(self, known: Parameters):
        self._known = known
        self._recorder = Recorder()
        self._inputs: list[sympy.Symbol | sympy.Expr] = []
        self._named: dict[tuple[str, float], Any] = {}

    def coordinates(self, symbols: Sequence[sympy.Symbol]) -> Array:
        """The recorder's scalars for these symbols."""
        return array([self._recorded(symbol) for symbol in symbols])

    def __call__(self, name: str, value: Any, place: str = "") -> Any:
        """The recorder's scalar for a parameter, or its exact number; see `Naming`."""
        if not self._known.symbols or value == 0:
            return value
        if (name, value) not in self._named:
            self._named[name, value] = self._recorded(self._known(name, value, place))
        return self._named[name, value]

    def rotation(self, matrix: Array, i: str, place: str = "") -> Array:
        """A rotation matrix in symbols of its angles, except right angles, which stay exact.

        Args:
            matrix: (3, 3), the rotation.
            i: the number of the link, which the symbols' names end with.
            place: where the description gives the rotation; see `Naming`.
        """
        result: Array = np.eye(3)
        for name, angle, about in angles(matrix) if self._known.symbols else ():
            turn = right(about, angle)
            if turn is None:
                turn = about(self(f"{name}{i}", angle, f"{place}.{name}"))
            result = result @ turn
        return result if self._known.symbols else np.asarray(matrix)

    def written(
        self,
        values: Sequence[Any],
        names: Sequence[str] = (),
        met: Mapping[str, Any] | None = None,
    ) -> tuple[Assignments, list[sympy.Expr]]:
        """The recorded values as (assignments, expressions); see the function `written`.

        Args:
            values: the recorded values that are wanted.
            names: the names of these values.
            met: intermediates by name; those that occur in the values are assigned to this name.
        """
        met = met or {}
        program = self._recorder.program([*values, *met.values()])
        assignments, outputs = written(program, self._inputs, (*names, *met), len(values))
        return assignments, outputs

    def _recorded(self, symbol: sympy.Symbol | sympy.Expr) -> Any:
        self._inputs.append(symbol)
        return self._recorder.inputs(1)[0]


def straight_line(task: Task) -> tuple[Assignments, dict[str, sympy.Matrix]]:
    """(intermediates, {torques, D, C, g, friction}) by the recorder, in the symbols of the task."""
    recording = Recording(task.known)
    q, qd, qdd = (recording.coordinates(state) for state in (task.q, task.qd, task.qdd))
    model = symbolic_mechanism(task.mechanism, recording)
    equations = Equations.of(model, task.formulation, task.rotors, task.terms)
    n = len(q)
    nothing = np.zeros(n)
    parts = {
        "torques": equations.torques(q, qd, qdd),
        "D": equations.mass_matrix(q),
        "C": equations.coriolis_matrix(q, qd),
        "g": equations.gravity(q) if "gravity" in equations.terms else nothing,
        "friction": equations.friction(qd) if "friction" in equations.terms else nothing,
    }
    flat = [entry for part in parts.values() for entry in np.ravel(part)]
    assignments, outputs = recording.written(flat)
    matrices = {}
    for name, part in parts.items():
        columns = n if part.ndim == 2 else 1
        matrices[name] = sympy.Matrix(n, columns, [outputs.pop(0) for _ in range(n * columns)])
    return assignments, matrices


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


def written(
    program: Program, inputs: list[Any], names: Sequence[str] = (), wanted: int | None = None
) -> tuple[Assignments, list[sympy.Expr]]:
    """(the program's instructions as assignments, its outputs as expressions).

    Args:
        program: the recorded program.
        inputs: a symbol or expression for each input.
        names: the names of the outputs, to which these values are assigned. Other values that are
            used several times are v1, v2 …
        wanted: the number of outputs that are returned; the others only give a name to values that
            these need. None: all.
    """
    taken = {str(symbol) for symbol in inputs}
    called: dict[int, str] = {}
    for place, name in zip(program.outputs, names, strict=False):
        if type(place) is int and name not in taken:  # a float is a constant
            called.setdefault(place, name)
    outputs = program.outputs[:wanted]
    uses = Counter(place for place in outputs if type(place) is int)
    for place in reversed(range(len(program.instructions))):
        operation, *operands = program.instructions[place]
        if uses[place] and operation != "input":
            uses.update(operand for operand in operands if type(operand) is int)
    values: list[sympy.Expr] = []
    free = (name for name in map("v{}".format, count(1)) if name not in taken)
    assignments: list[tuple[sympy.Symbol, sympy.Expr]] = []

    def value(operand: Any) -> sympy.Expr:
        return values[operand] if type(operand) is int else _number(operand)

    for place, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            values.append(inputs[operands[0]])
            continue
        if not uses[place]:
            values.append(sympy.nan)  # never used
            continue
        expression = (OPERATORS.get(operation) or _FUNCTIONS[operation])(*map(value, operands))
        turned = operation == "neg" and place not in called
        short = (turned or operation in ("sin", "cos")) and expression.args[-1].is_Symbol
        many = uses[place] > 1 or (place in called and expression.is_Add)
        if (many and not short) or expression.count_ops() > LONGEST:
            name = called.get(place) or next(free)
            symbol = sympy.Symbol(name, real=True)
            assignments.append((symbol, expression))
            expression = symbol
        values.append(expression)
    return tuple(assignments), [value(operand) for operand in outputs]


def _number(value: float) -> sympy.Expr:
    """An exact number for a short decimal of a description, a rounded one for a computed value."""
    # a difference of short decimals: 0.0222 - 0.02215 is 5.000000000000143e-05
    near = float(f"{value:.{SHORT}g}")
    rounded = near if abs(near - value) <= ROUNDING * abs(value) else value
    exact = exact_number(rounded)
    return exact if exact.q < 10**DIGITS else sympy.Float(repr(value), 17)
