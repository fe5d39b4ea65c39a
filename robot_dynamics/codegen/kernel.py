# SPDX-License-Identifier: Apache-2.0
"""A compiled function: in C if there is a compiler, otherwise in generated Python.

All backends compute the same program and agree to rounding.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import BackendError, InputError, choices, wrong
from ..inputs import as_floats
from ..scalar import Floats
from .function import Function
from .native import BackendWarning, NativeCode, cores
from .python_kernel import DirectCode, PythonCode
from .recorder import ProgramTooLarge

BACKENDS = ("auto", "c", "python")
VARIABLE = "ROBOT_DYNAMICS_BACKEND"
"""The environment variable that sets the backend for `auto`"""
WORTH_A_THREAD = 2_000_000
"""Operations per thread: with fewer, starting another thread costs more time than it saves"""
MOST_THREADS = 8192
"""The largest number of cores that Linux supports"""

log = logging.getLogger("robot_dynamics")


class Kernel:
    """A `Function` compiled for float64 arrays: (size,) each, or batches (…, size).

    A kernel is immutable and may run on any thread; `at` gives another kernel with the same code.

    Args:
        function: the function to compute.
        parameters: (function.parameters,), the values that are the same for all states.
        backend: auto, c or python. auto uses C if possible; otherwise it warns once.
        threads: number of threads for batches; None: one for each core available to this process.
        batches: build code for batches first; code for single states is then built at the first
            call with one. By default it is the other way round.

    Raises:
        BackendError: `c` was requested but is not available.
        InputError: an unknown backend, or an invalid number of threads.
    """

    def __init__(
        self,
        function: Function,
        parameters: Floats | Sequence[float] = (),
        backend: str = "auto",
        threads: int | None = None,
        batches: bool = False,
    ):
        if backend not in BACKENDS:
            raise wrong(InputError, "backend", backend, choices(BACKENDS))
        if backend == "auto":
            backend = os.environ.get(VARIABLE) or "auto"
            if backend not in BACKENDS:
                raise wrong(InputError, VARIABLE, backend, choices(BACKENDS))
        self.function = function
        self.threads = checked_threads(threads)
        self._code = _code(function, backend, batches)
        self._bind(parameters)
        log.info("%s", self.description)

    def at(self, parameters: Floats | Sequence[float]) -> Kernel:
        """The same kernel with other parameters; nothing is built.

        Args:
            parameters: (function.parameters,), the new values.
        """
        other = copy(self)
        other._bind(parameters)
        return other

    def _bind(self, parameters: Floats | Sequence[float]) -> None:
        values = np.array(parameters, dtype=float).reshape(self.function.parameters)
        values.flags.writeable = False
        self._machine: Any = self._code.bound(values, self._any)
        self.call: Callable[..., Floats] = self._machine.call
        """The fastest entry point: the same as calling the kernel"""

    def __call__(self, *states: ArrayLike, out: Floats | None = None) -> Floats:
        """The result, of shape `function.shape` for states (size,). States (…, size) give a batch
        of results with the same leading axes.

        Args:
            states: the vectors in the order of `function.arguments`.
            out: float64 array of the result's shape to write to, which is returned. None: a new
                array.

        Raises:
            InputError: a wrong shape or type; the message says which, and what was expected.
        """
        return self.call(*states) if out is None else self.call(*states, out=out)

    @property
    def backend(self) -> str:
        """c, python, or formulation (neither compiled nor generated)."""
        return str(self._code.name)

    @property
    def description(self) -> str:
        """The backend that runs, and the reason if it is not the first choice."""
        reason = f" ({self._code.reason})" if self._code.reason else ""
        return f"{self.function.name}: {_NAMES[self.backend]}{reason}"

    def _any(self, *states: ArrayLike, out: Floats | None = None) -> Floats:
        """A call with any arguments: also lists, other types, batches and invalid ones."""
        names, sizes = self.function.arguments, self.function.sizes
        if len(states) != len(sizes):
            raise InputError(
                f"{self.function.name}: found {len(states)} arguments, expected {', '.join(names)}",
                name=self.function.name,
            )
        arrays = [as_floats(name, x) for name, x in zip(names, states, strict=True)]
        if all(array.shape == (size,) for array, size in zip(arrays, sizes, strict=True)):
            result: Floats = self._machine.one(arrays)
            return put(out, result)
        shape = batch_shape(names, sizes, arrays)
        count = int(np.prod(shape))
        rows = [
            # broadcasting would take longer than a short batch
            np.ascontiguousarray(
                a if a.shape == (*shape, size) else np.broadcast_to(a, (*shape, size))
            ).reshape(count, size)
            for a, size in zip(arrays, sizes, strict=True)
        ]
        work = count * self._code.operations
        threads = min(self.threads or cores(), work // WORTH_A_THREAD + 1)
        if isinstance(self._code, NativeCode):
            self._machine.allow(WORTH_A_THREAD // max(self._code.operations, 1))
        whole = (*shape, *self.function.shape)
        if out is None:
            return np.asarray(self._machine.many(rows, threads).reshape(whole))
        receiver(out, whole)
        free = out.flags.carray and not any(np.may_share_memory(out, x) for x in rows)
        if free and isinstance(self._code, NativeCode):
            result = self._machine.many(rows, threads, out).reshape(whole)
            return out if np.may_share_memory(out, result) else put(out, result)
        return put(out, self._machine.many(rows, threads).reshape(whole))


def receiver(out: Any, shape: tuple[int, ...]) -> None:
    """Check that results of this shape can be written to `out`.

    Raises:
        InputError: they cannot.
    """
    if np.ma.isMaskedArray(out):
        raise wrong(InputError, "out", "a masked array", "a plain array of float64")
    if not isinstance(out, np.ndarray) or out.dtype != float:
        found = getattr(out, "dtype", type(out).__name__)
        raise wrong(InputError, "out", str(found), "an array of float64")
    if out.shape != shape:
        raise wrong(InputError, "out", out.shape, f"shape {shape}")
    if not out.flags.writeable:
        raise wrong(InputError, "out", "a read-only array", "one that can be written to")


def put(out: Any, result: Floats) -> Floats:
    """Write the result to `out` and return `out`; None: return the result itself.

    Raises:
        InputError: `out` has a wrong type or shape, or is read-only.
    """
    if out is None:
        return result
    receiver(out, result.shape)
    written: Floats = out
    written[...] = result
    return written


def _code(
    function: Function, backend: str, batches: bool = False
) -> NativeCode | PythonCode | DirectCode:
    """The first backend that is available."""
    why = ""
    if backend != "python":
        try:
            return NativeCode(function, batches)
        except ProgramTooLarge:
            why = "it has too many operations to compile"
        except BackendError as error:
            if backend == "c":
                raise
            why = str(error)
            _warn_once(why)
        if backend == "c":
            raise BackendError(f"{function.name}: {why}", name="backend", value="c")
    try:
        return PythonCode(function, why)
    except ProgramTooLarge:
        # those who choose Python expect it to be slow
        log.log(
            logging.INFO if backend == "python" else logging.WARNING,
            "%s of %s has too many operations for straight-line code: "
            "the formulation itself is evaluated at each call, which is slow",
            function.name,
            function.robot or "the robot",
        )
        return DirectCode(function, "too many operations for straight-line code")


_NAMES = {
    "c": "a kernel in C",
    "python": "generated Python",
    "formulation": "the formulation itself",
}


@lru_cache
def _warn_once(why: str) -> None:
    warnings.warn(
        f"no C kernel; using generated Python instead: {why}", BackendWarning, stacklevel=6
    )


def checked_threads(threads: int | None) -> int | None:
    """The number of threads as an int; None stays None.

    Raises:
        InputError: it is not an integer from 1 to `MOST_THREADS`.
    """
    try:
        found = 1 if threads is None else 0 if isinstance(threads, bool) else index(threads)
    except TypeError:
        found = 0
    if not 1 <= found <= MOST_THREADS:
        expected = f"a whole number from 1 to {MOST_THREADS}, or None"
        raise wrong(InputError, "threads", threads, expected)
    return None if threads is None else found


def batch_shape(
    names: tuple[str, ...], sizes: tuple[int, ...], arrays: list[Floats]
) -> tuple[int, ...]:
    """The leading axes to which arrays broadcast.

    Args:
        names: the arrays' names, for messages.
        sizes: the sizes of their last axes.
        arrays: the arrays.

    Raises:
        InputError: an array with another last axis, or leading axes that do not broadcast.
    """
    for name, size, array in zip(names, sizes, arrays, strict=True):
        if array.ndim == 0 or array.shape[-1] != size:
            # if there is a quaternion or a wrench, not every entry belongs to a joint
            each = ": one entry per joint" if len(set(sizes)) == 1 else ""
            raise InputError(
                f"{name}: found shape {array.shape}, expected ({size},) or (…, {size}){each}",
                name=name,
                value=array.shape,
                expected=f"(…, {size})",
            )
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    except ValueError:
        shapes = ", ".join(f"{k} {a.shape}" for k, a in zip(names, arrays, strict=True))
        raise InputError(
            f"{shapes}: the batches do not broadcast", name=names[0], value=shapes
        ) from None
