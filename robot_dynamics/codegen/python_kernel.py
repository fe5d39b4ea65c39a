# SPDX-License-Identifier: Apache-2.0
"""Kernels without a compiler: generated Python, or the formulation itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..scalar import Floats
from . import cache, python_code
from .function import Function

MOST = 60_000
"""Largest number of operations of a generated function; Python would take too long to compile a
longer one"""
_FLOAT = np.dtype(float)


class PythonCode:
    """A function as generated Python.

    Raises:
        ProgramTooLarge: the program has more than MOST operations.
    """

    name = "python"

    def __init__(self, function: Function, reason: str):
        self.shape, self.sizes, self.reason = function.shape, function.sizes, reason
        text, self.operations = _text(function)
        self.bind = python_code.compile_text(text)

    def bound(self, parameters: Floats, otherwise: Callable[..., Floats]) -> PythonKernel:
        """A kernel with these parameters; `otherwise` is called for arguments it doesn't accept."""
        return PythonKernel(self, parameters, otherwise)


class PythonKernel:
    """A generated function with its parameters, over floats, or over NumPy arrays for batches."""

    def __init__(self, code: PythonCode, parameters: Floats, otherwise: Callable[..., Floats]):
        self._otherwise, self._shape = otherwise, code.shape
        self._sizes = [(size,) for size in code.sizes]
        over_floats, over_arrays = code.bind
        self._over_floats = over_floats(*parameters.tolist())
        self._over_arrays = over_arrays(*parameters)  # NumPy's numbers can be divided by zero

    def call(self, *states: Any, out: Floats | None = None) -> Floats:
        """The result at one state of plain arrays; other arguments are passed to `otherwise`."""
        shapes = [x.shape for x in states if type(x) is np.ndarray and x.dtype is _FLOAT]
        if out is None and shapes == self._sizes:
            return self.one(states)
        return self._otherwise(*states) if out is None else self._otherwise(*states, out=out)

    def one(self, states: Sequence[Floats]) -> Floats:
        """The result at one state."""
        entries = [x for vector in states for x in vector.tolist()]
        try:
            out = self._over_floats(*entries)
        except (ZeroDivisionError, OverflowError):
            with np.errstate(all="ignore"):  # inf and nan, as in C
                out = self._over_arrays(*map(np.float64, entries))
        return np.array(out).reshape(self._shape)

    def many(self, states: list[Floats], threads: int) -> Floats:  # noqa: ARG002
        """The results (count, …) at rows of states (count, size); threads do not help Python."""
        with np.errstate(all="ignore"):  # as in C
            out = self._over_arrays(*(column for vector in states for column in vector.T))
        count = len(states[0])
        rows = np.empty((count, len(out)))
        for j, column in enumerate(out):
            rows[:, j] = column
        return rows.reshape(count, *self._shape)


class DirectCode:
    """A function that is neither compiled nor generated."""

    name = "formulation"
    operations = MOST

    def __init__(self, function: Function, reason: str):
        self.function, self.reason = function, reason

    def bound(self, parameters: Floats, otherwise: Callable[..., Floats]) -> DirectKernel:
        """A kernel with these parameters, all of whose calls go to `otherwise`."""
        return DirectKernel(self.function, parameters, otherwise)


class DirectKernel:
    """The function itself with its parameters, run over floats for one state after the other."""

    def __init__(self, function: Function, parameters: Floats, otherwise: Callable[..., Floats]):
        self._function, self._parameters, self.call = function, parameters, otherwise

    def one(self, states: list[Floats]) -> Floats:
        """The result at one state; nan if the state contains nan."""
        entries: list[Any] = list(self._function.equations(*states, self._parameters))
        doubt = sum(float(np.sum(0.0 * state)) for state in states)  # nan if a state has one
        return np.array(entries, dtype=float).reshape(self._function.shape) + doubt

    def many(self, states: list[Floats], threads: int) -> Floats:  # noqa: ARG002
        """The results (count, …) at rows of states (count, size), computed one by one."""
        rows = [self.one(list(row)) for row in zip(*states, strict=True)]
        return np.array(rows).reshape(len(states[0]), *self._function.shape)


def _text(function: Function) -> tuple[str, int]:
    """(the program's source, its number of operations), from the cache or recorded now."""
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
