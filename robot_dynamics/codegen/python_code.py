# SPDX-License-Identifier: Apache-2.0
"""A program as Python: one local variable a value.

The same text runs over floats (functions of `math`) and over arrays of states (NumPy's).
Names in it are made of numbers alone; nothing from a description ever gets into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from ..scalar import exp
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
    "exp": "exp({})",
    "sqrt": "sqrt({})",
    "atan": "atan({})",
    "sign": "sign({})",
}


def source(program: Program, shared: int = 0) -> str:
    """`def bind(…): def function(…): …; return (…)`, the last `shared` vectors bound once.

    Both take the entries of their vectors one by one.
    """
    bound = sum(program.sizes[len(program.sizes) - shared :])
    names = [f"x{i}" for i in range(program.inputs)]
    free = program.inputs - bound
    lines = [
        f"def bind({', '.join(names[free:])}):",
        f"    def function({', '.join(names[:free])}):",
    ]
    for place, (operation, *arguments) in enumerate(program.instructions):
        if operation != "input":
            form = FORMS[operation].format(*_named(program, arguments))
            lines.append(f"        v{place} = {form}")
    ends = "".join(f"{end}, " for end in _named(program, program.outputs))
    lines += [f"        return ({ends.strip()})", "    return function"]
    return "\n".join(lines) + "\n"


def compile_program(program: Program) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(over floats, over arrays), all inputs one by one."""
    over_floats, over_arrays = (bind() for bind in compile_text(source(program)))
    return over_floats, over_arrays


def compile_text(text: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`bind` (over floats, over arrays) from what `source` gave."""
    code = _code(text)
    functions = []
    for names in (_OVER_FLOATS, _OVER_ARRAYS):
        space: dict[str, Any] = {"__builtins__": {}, **names}
        exec(code, space)  # noqa: S102  text made from numbers alone
        functions.append(space["bind"])
    return functions[0], functions[1]


@lru_cache(maxsize=64)
def _code(text: str) -> CodeType:
    """Compiling holds up every other thread: what was compiled before is kept, as the geometry of a
    robot with loops is the same with another formulation or payload."""
    return compile(text, "<robot_dynamics>", "exec")


def _named(program: Program, operands: Any) -> list[str]:
    def name(operand: Operand) -> str:
        if isinstance(operand, int):
            instruction = program.instructions[operand]
            return f"x{instruction[1]}" if instruction[0] == "input" else f"v{operand}"
        return repr(operand) if operand >= 0 else f"({operand!r})"

    return [name(operand) for operand in operands]


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else x


def _sin(x: float) -> float:
    return math.sin(x) if -math.inf < x < math.inf else math.nan


def _cos(x: float) -> float:
    return math.cos(x) if -math.inf < x < math.inf else math.nan


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


_OVER_FLOATS = {
    "sin": _sin,
    "cos": _cos,
    "tanh": math.tanh,
    "exp": exp,
    "sqrt": _sqrt,
    "atan": math.atan,
    "sign": _sign,
}
_OVER_ARRAYS = {
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "atan": np.arctan,
    "sign": np.sign,
}
