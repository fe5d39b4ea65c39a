# SPDX-License-Identifier: Apache-2.0
"""A program as a JavaScript function, with local variables for its values.

Names in the source consist of fixed letters and numbers: nothing from a description enters it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .c_code import FORMS as SPACED
from .recorder import Operand, Program

FORMS = {operation: form.replace(" ", "") for operation, form in SPACED.items()}
"""Other operations are functions of the same name in Math"""


def source(program: Program) -> str:
    """The source `(x0, x1, …) => {…; return [results]}`, which takes an array for each vector.

    A value that is used once is written where it is used, up to a depth that parsers handle well.
    """
    return _Printer(program).text()


DEEPEST = 12
"""Largest depth of values nested in one expression"""


class _Printer:
    def __init__(self, program: Program):
        self._program = program
        self._places = program.places
        uses = Counter(
            x
            for operation, *operands in program.instructions
            if operation != "input"
            for x in operands
            if isinstance(x, int)
        )
        uses.update(end for end in program.outputs if isinstance(end, int))
        self._uses = uses
        self._inline: dict[int, tuple[str, int, bool]] = {}
        """For each instruction: its text, its depth, and whether it needs brackets"""

    def text(self) -> str:
        """The source of the whole function."""
        names = ",".join(f"x{i}" for i in range(len(self._program.sizes)))
        statements = []
        for place, (operation, *operands) in enumerate(self._program.instructions):
            if operation == "input":
                vector, entry = self._places[operands[0]]
                self._inline[place] = (f"x{vector}[{entry}]", 0, False)
                continue
            form = FORMS.get(operation, f"Math.{operation}({{}})")
            texts, depth = self._operands(operation, operands)
            made = form.format(*texts)
            if self._uses[place] == 1 and depth < DEEPEST:
                self._inline[place] = (made, depth + 1, operation in FORMS)
            else:
                statements.append(f"v{place}={made}")
                self._inline[place] = (f"v{place}", 0, False)
        ends = ",".join(self._operand(end)[0] for end in self._program.outputs)
        declared = f"const {','.join(statements)};" if statements else ""
        return f"({names})=>{{{declared}return[{ends}]}}"

    def _operands(self, operation: str, operands: list[Operand]) -> tuple[list[str], int]:
        texts, deepest = [], 0
        for k, operand in enumerate(operands):
            text, depth, is_loose = self._operand(operand)
            # the first operand of a sum or difference needs no brackets
            first = k == 0 and operation in ("add", "sub") and not text.startswith("-")
            bare = operation not in FORMS or first
            texts.append(f"({text})" if is_loose and not bare else text)
            deepest = max(deepest, depth)
        return texts, deepest

    def _operand(self, operand: Operand) -> tuple[str, int, bool]:
        if isinstance(operand, int):
            return self._inline[operand]
        return _number(operand), 0, operand < 0


def _number(value: Any) -> str:
    text = repr(float(value))
    return text.removesuffix(".0")
