"""A program as Python: one function, one local variable a value.

The same text runs over floats (functions of `math`) and over arrays of states (NumPy's).
Names in it are made of numbers alone; nothing from a description ever gets into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .recorder import Operand, Program

FORMS = {
    "neg": "-{}",
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "sin": "sin({})",
    "cos": "cos({})",
    "tanh": "tanh({})",
    "sign": "sign({})",
}


def source(program: Program) -> str:
    """`def function(x0, x1, …): …; return (…)`"""
    inputs = ", ".join(f"x{i}" for i in range(program.inputs))
    lines = [f"def function({inputs}):"]
    for place, (operation, *arguments) in enumerate(program.instructions):
        if operation != "input":
            lines.append(f"    v{place} = " + FORMS[operation].format(*_named(program, arguments)))
    lines.append(f"    return ({', '.join(_named(program, program.outputs))},)")
    return "\n".join(lines).replace("(,)", "()") + "\n"


def compile_program(program: Program) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(over floats, over arrays)"""
    code = compile(source(program), "<robot_dynamics>", "exec")
    functions = []
    for names in (
        {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "sign": _sign},
        {"sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sign": np.sign},
    ):
        space: dict[str, Any] = {"__builtins__": {}, **names}
        exec(code, space)  # noqa: S102  text made from numbers alone
        functions.append(space["function"])
    return functions[0], functions[1]


def _named(program: Program, operands: Any) -> list[str]:
    def name(operand: Operand) -> str:
        if isinstance(operand, int):
            instruction = program.instructions[operand]
            return f"x{instruction[1]}" if instruction[0] == "input" else f"v{operand}"
        return repr(operand) if operand >= 0 else f"({operand!r})"

    return [name(operand) for operand in operands]


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0)) if x == x else x
