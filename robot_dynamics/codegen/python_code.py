# SPDX-License-Identifier: Apache-2.0
"""A program as Python, with one local variable for each value.

The same source runs over floats (with functions of `math`) and over arrays of states (NumPy's).
Names in it consist of fixed letters and numbers: nothing from a description enters it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from ..scalar import exp
from .c_code import FORMS, constant_or_name
from .recorder import Operand, Program


def source(program: Program, shared: int = 0) -> str:
    """The source `def bind(…): def function(…): …; return (…)`.

    Both functions take the entries of their vectors as separate arguments.

    Args:
        program: the program.
        shared: the number of vectors at the end that are arguments of `bind`; the others are those
            of `function`.
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
            form = FORMS.get(operation, f"{operation}({{}})")
            lines.append(f"        v{place} = {form.format(*_named(program, arguments))}")
    ends = "".join(f"{end}, " for end in _named(program, program.outputs))
    lines += [f"        return ({ends.strip()})", "    return function"]
    return "\n".join(lines) + "\n"


def compile_text(text: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(`bind` over floats, `bind` over arrays), from the text that `source` returned."""
    code = _code(text)
    functions = []
    for names in (_OVER_FLOATS, _OVER_ARRAYS):
        space: dict[str, Any] = {"__builtins__": {}, **names}
        exec(code, space)  # noqa: S102  only numbers in the text come from outside
        functions.append(space["bind"])
    return functions[0], functions[1]


@lru_cache(maxsize=64)
def _code(text: str) -> CodeType:
    """The compiled text. It is cached because compiling blocks all other threads, and the same text
    recurs: the geometry of a robot with loops does not depend on its formulation or payload."""
    return compile(text, "<robot_dynamics>", "exec")


def _named(program: Program, operands: Any) -> list[str]:
    def name(operand: Operand) -> str:
        if isinstance(operand, int) and program.instructions[operand][0] == "input":
            return f"x{program.instructions[operand][1]}"
        return constant_or_name(operand)

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
