"""Kernels without a compiler: generated Python, and the formulation itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import cache, python_code
from .function import Function

Floats = NDArray[np.float64]

MOST = 60_000
"""Operations: a longer function would take Python too long to read"""


class PythonKernel:
    """The program as a Python function: over floats, or NumPy arrays for batches."""

    name = "python"

    def __init__(
        self,
        function: Function,
        parameters: Floats,
        reason: str,
        otherwise: Callable[..., Floats],
    ):
        """Raises: ProgramTooLarge: the program is longer than MOST."""
        self._function = function
        self.reason = reason
        self.call = otherwise
        text, self.operations = _text(function)
        self._bind = python_code.compile_text(text)
        self.set_parameters(parameters)

    def set_parameters(self, parameters: Floats) -> None:
        values = parameters.tolist()
        self._over_floats, self._over_arrays = (bind(*values) for bind in self._bind)

    def one(self, states: list[Floats]) -> Floats:
        entries = [x for vector in states for x in vector.tolist()]
        return np.array(self._over_floats(*entries)).reshape(self._function.shape)

    def many(self, states: list[Floats], threads: int) -> Floats:  # noqa: ARG002
        with np.errstate(all="ignore"):  # as in C
            out = self._over_arrays(*(column for vector in states for column in vector.T))
        count = len(states[0])
        rows = np.empty((count, len(out)))
        for j, column in enumerate(out):
            rows[:, j] = column
        return rows.reshape(count, *self._function.shape)


class DirectKernel:
    """The function as it was written, over floats, state by state."""

    name = "formulation"
    operations = MOST

    def __init__(
        self,
        function: Function,
        parameters: Floats,
        reason: str,
        otherwise: Callable[..., Floats],
    ):
        self._function = function
        self._parameters = parameters
        self.reason = reason
        self.call = otherwise

    def set_parameters(self, parameters: Floats) -> None:
        self._parameters = parameters

    def one(self, states: list[Floats]) -> Floats:
        entries: list[Any] = list(self._function.equations(*states, self._parameters))
        doubt = sum(float(np.sum(0.0 * state)) for state in states)  # nan if there is one
        return np.array(entries, dtype=float).reshape(self._function.shape) + doubt

    def many(self, states: list[Floats], threads: int) -> Floats:  # noqa: ARG002
        rows = [self.one(list(row)) for row in zip(*states, strict=True)]
        return np.array(rows).reshape(len(states[0]), *self._function.shape)


def _text(function: Function) -> tuple[str, int]:
    """(the program's text, its number of operations), from the cache or recorded."""
    key = function.key("python")
    found = cache.fetch(key, ".py")
    if found is not None:
        path, about = found
        return cache.payload(path).decode(), int(about["operations"])
    program = function.record(MOST)
    text = python_code.source(program, shared=1)
    about = {
        "what": f"{function.name}, python",
        "robot": function.robot,
        "operations": program.operations,
    }
    cache.store(key, ".py", text.encode(), about)
    return text, program.operations
