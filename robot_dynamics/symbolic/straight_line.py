# SPDX-License-Identifier: Apache-2.0
"""Equations too long for one expression: a list of intermediates, each met once.

The formulation runs over the recorder's scalars instead of SymPy's, and what it leaves is
written as SymPy expressions. A value that is used once is put where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from ..codegen.recorder import Program, Recorder
from ..formulations.equations import Equations
from ..mechanism import Mechanism
from ..scalar import array
from .symbolic_parameters import Parameters, exact_number, symbolic_mechanism

Assignments = tuple[tuple[sympy.Symbol, sympy.Expr], ...]

FUNCTIONS = {
    name: getattr(sympy, name) for name in ("sin", "cos", "tanh", "exp", "sqrt", "atan", "sign")
}
LONGEST = 12
"""Operations up to which a value that is used once is written where it is used"""


def straight_line(
    mechanism: Mechanism,
    states: tuple[tuple[sympy.Symbol, ...], ...],
    known: Parameters,
    formulation: str,
    rotors: str,
    terms: Any,
) -> tuple[Assignments, dict[str, sympy.Matrix]]:
    """(intermediates, {torques, D, C, g, friction}) in the symbols of the states and `known`."""
    recorder = Recorder()
    inputs: list[sympy.Symbol | sympy.Expr] = []

    def recorded(symbol: Any) -> Any:
        inputs.append(symbol)
        return recorder.inputs(1)[0]

    # parameters become inputs of the program; exact numbers stay constants
    q, qd, qdd = (array([recorded(symbol) for symbol in state]) for state in states)
    named: dict[tuple[str, float], Any] = {}

    def parameter(name: str, value: Any, place: str = "") -> Any:
        if not known.symbols or value == 0:
            return value
        if (name, value) not in named:
            named[name, value] = recorded(known(name, value, place))
        return named[name, value]

    model = symbolic_mechanism(mechanism, parameter)
    equations = Equations.of(model, formulation, rotors, terms)
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
    assignments, outputs = written(recorder.program(flat), inputs)
    matrices = {}
    for name, part in parts.items():
        columns = n if part.ndim == 2 else 1
        matrices[name] = sympy.Matrix(n, columns, [outputs.pop(0) for _ in range(n * columns)])
    return assignments, matrices


def inlined(assignments: Assignments, parts: dict[str, sympy.Matrix]) -> dict[str, sympy.Matrix]:
    """The matrices with each intermediate's expression in its place."""
    known: dict[sympy.Basic, sympy.Expr] = {}
    for symbol, expression in assignments:
        known[symbol] = expression.xreplace(known)
    return {name: values.xreplace(known) for name, values in parts.items()}


def written(
    program: Program, inputs: list[Any], names: Sequence[str] = ()
) -> tuple[Assignments, list[sympy.Expr]]:
    """The program's instructions as assignments, and its outputs.

    names: of the outputs; a value that is one is assigned under its name. Others that are met
    several times are v0, v1 …
    """
    taken = {str(symbol) for symbol in inputs}
    called = {
        place: name
        for place, name in zip(program.outputs, names, strict=False)
        if type(place) is int and name not in taken  # a float is a constant
    }
    uses = Counter(
        operand
        for operands in (*(each[1:] for each in program.instructions), program.outputs)
        for operand in operands
        if type(operand) is int
    )
    values: list[sympy.Expr] = []
    assignments: list[tuple[sympy.Symbol, sympy.Expr]] = []

    def value(operand: Any) -> sympy.Expr:
        return values[operand] if type(operand) is int else exact_number(operand)

    for place, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            values.append(inputs[operands[0]])
            continue
        expression = _expression(operation, [value(operand) for operand in operands])
        if uses[place] > 1 or expression.count_ops() > LONGEST:
            name = called.get(place, f"v{len(assignments)}")
            symbol = sympy.Symbol(name, real=True)
            assignments.append((symbol, expression))
            expression = symbol
        values.append(expression)
    return tuple(assignments), [value(operand) for operand in program.outputs]


def _expression(operation: str, operands: list[sympy.Expr]) -> sympy.Expr:
    match operation:
        case "neg":
            return -operands[0]
        case "add":
            return operands[0] + operands[1]
        case "sub":
            return operands[0] - operands[1]
        case "mul":
            return operands[0] * operands[1]
        case "div":
            return operands[0] / operands[1]
        case _:
            return FUNCTIONS[operation](*operands)
