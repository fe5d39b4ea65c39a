# SPDX-License-Identifier: Apache-2.0
"""Kernels in C: built by the system's compiler, cached, and called with little overhead."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import sysconfig
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BackendError
from ..scalar import Floats
from . import c_kernels, cache, compiler
from .c_code import CCode
from .compiler import CompileError
from .function import Function, digest

MOST = 200_000
"""Largest number of operations of a program that is compiled"""
QUICK = 10_000
"""Largest number of statements of a program that is compiled without a message"""
PER_SECOND = 10_000
"""Statements that one core compiles in a second, approximately"""
WORTH_A_FILE = 5_000
"""Statements per C file: with fewer, starting another compiler costs more time than it saves"""
LINE = 8
"""Numbers per cache line of the processor"""
LARGE = 32 << 20
"""Size of results (bytes) above which they are written past the processor's caches"""

_BUILT: dict[str, str] = {}
"""By the hash of its C files, flags and compiler, the key of a library that this process has built:
programs of different robots may be equal"""

_CALLER = Path(__file__).parent / "c" / "caller.c"

log = logging.getLogger("robot_dynamics")


class BackendWarning(UserWarning):
    """A slower backend runs because a faster one is not available."""


class NativeCode:
    """One function's machine code, for single states and for batches. One of the two is built
    immediately, the other when it is first needed.

    Args:
        function: the function to compute.
        batches: build the code for batches first.

    Raises:
        BackendError: there is no compiler, or it failed (with what it printed).
        ProgramTooLarge: the program has more than MOST operations.
    """

    name = "c"

    def __init__(self, function: Function, batches: bool = False):
        self.function = function
        self._loaded: list[Any] = []
        self.operations = 0
        self._single: Any = None
        self._batch: Any = None
        if batches:
            with suppress(BackendError):
                self._batch = self._library("batch")
        if self._batch is None:
            self._single = self._library("single")
        self.host, self.reason = _host()

    def bound(self, parameters: Floats, otherwise: Callable[..., Floats]) -> NativeKernel:
        """A kernel with these parameters.

        Args:
            parameters: the values that are the same for all states.
            otherwise: called for arguments that the fast entry point does not accept.
        """
        return NativeKernel(self, parameters, otherwise)

    @property
    def single(self) -> Any:
        """The library for one state."""
        if self._single is None:
            # two threads may both build it, with the same result
            self._single = self._library("single")
        return self._single

    @property
    def has_single(self) -> bool:
        """Has the library for one state been built already?"""
        return self._single is not None

    @property
    def batch(self) -> Any:
        """The library for rows of states; False if it cannot be built."""
        if self._batch is None:
            # two threads may both build it, with the same result
            try:
                self._batch = self._library("batch")
            except BackendError as error:
                warnings.warn(f"batches run state by state: {error}", BackendWarning, stacklevel=6)
                self._batch = False
        return self._batch

    def _library(self, kind: str) -> ctypes.CDLL:
        """Load a library. It is unloaded with the last object that can call it: a Caller refers to
        its kernel, and the kernel to this object."""
        library, self.operations = _library(self.function, kind)
        host, _ = _host()
        if host:
            self._loaded.append(host.closing(library._handle))
        return library


class NativeKernel:
    """Machine code with its parameters; see `NativeCode.bound`."""

    def __init__(self, code: NativeCode, parameters: Floats, otherwise: Callable[..., Floats]):
        self._code, self._parameters = code, parameters
        self.call: Any = otherwise
        """The fastest entry point available"""
        if code.host:
            function = code.function
            self.call = code.host.Caller(function.sizes, function.shape, parameters, otherwise)
            if code.has_single:
                self.call.single = _address(code.single)

    def one(self, states: list[Floats]) -> Floats:
        """The result at one state, which consists of C-contiguous vectors."""
        if self._code.host:
            self.call.single = _address(self._code.single)
            found: Floats = self.call(*states)
            return found
        out = np.empty(self._code.function.shape)
        vectors = _pointers([*states, self._parameters])
        self._code.single.kernel(vectors, ctypes.c_void_p(out.ctypes.data))
        return out

    def allow(self, few: int) -> None:
        """Let `call` itself compute batches of at most `few` rows, without `otherwise`."""
        if self._code.host and self._code.batch:
            self.call.rows = _address(self._code.batch), few

    def many(self, states: list[Floats], threads: int, out: Floats | None = None) -> Floats:
        """The results (count, …) at rows of states.

        Args:
            states: C-contiguous arrays (count, size).
            threads: number of threads.
            out: C-contiguous array to write to, with as many entries as the results; None: a new
                array.
        """
        batch, shape = self._code.batch, self._code.function.shape
        count = len(states[0])
        if not batch:
            rows = [self.one(list(row)) for row in zip(*states, strict=True)]
            return np.array(rows).reshape(count, *shape)
        size = int(np.prod(shape))
        # new memory is cleared, and thus in the caches, as it is first written to
        past = out is not None and out.nbytes > LARGE
        out = _room(count, size) if out is None else np.asarray(out).reshape(count, size)
        run = self._code.host.rows if self._code.host else _rows_by_ctypes
        run(_address(batch), tuple(states), self._parameters, out, threads, past)
        return out.reshape(count, *shape)


def _library(function: Function, kind: str) -> tuple[ctypes.CDLL, int]:
    """(the library, its number of operations), from the cache or built."""
    cc = compiler.find()
    key = function.key("c", kind, cc.identity)
    found = cache.fetch(key, ".so")
    if found is None:
        program = function.record(MOST, guard=False)
        dialect, files = c_kernels.KINDS[kind]
        code = CCode(program, dialect)
        count = code.statements
        jobs = min(cores(), count // WORTH_A_FILE + 1)
        if count > QUICK:
            log.warning(
                "%s of %s, for %s: compiling %d statements takes about %.0f s, once",
                function.name,
                function.robot or "the robot",
                "single states" if kind == "single" else "batches",
                count,
                count / PER_SECOND / jobs,
            )
        # values that belong side by side are in vectors already, so no superword vectorisation is
        # needed
        flags = ["-O3" if kind == "batch" else "-O2", "-fno-tree-slp-vectorize"]
        if count > QUICK:
            flags += compiler.accepted(cc, compiler.LEAN)
        texts = files(code, jobs)
        same = digest((cc.identity, flags, texts))
        first = _BUILT.get(same, key)
        twin = cache.fetch(first, ".so") if first != key else None
        built = cache.payload(twin[0]) if twin else cc.shared_library(texts, flags)
        _BUILT[same] = key
        about: dict[str, Any] = {
            "what": f"{function.name}, {kind}",
            "robot": function.robot,
            "operations": program.operations,
            "compiler": cc.command[0],
        }
        found = cache.store(key, ".so", built, about), about
    path, told = found
    try:
        library = ctypes.CDLL(str(path))
        library.kernel.restype = None
    except (OSError, AttributeError) as error:  # it cannot be loaded, or lacks the function
        raise BackendError(f"{path}: {error}", name="kernel") from None
    return library, int(told["operations"])


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _room(count: int, size: int) -> Floats:
    """An array (count, size). If its rows are whole cache lines, they are aligned with cache lines,
    as a store across two lines takes twice as long."""
    spare = LINE if size % LINE == 0 else 0
    room = np.empty(count * size + spare)
    start = -room.ctypes.data // room.itemsize % LINE if spare else 0
    return room[start : start + count * size].reshape(count, size)


def _pointers(arrays: list[Floats]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def _address(library: ctypes.CDLL) -> int:
    return ctypes.cast(library.kernel, ctypes.c_void_p).value or 0


@lru_cache
def _host() -> tuple[Any, str]:
    """(the extension module that calls kernels, ""), or (None, why there is none)."""
    try:
        return _built_host(), ""
    except CompileError as error:
        log.info("%s", error)
        return None, "called through ctypes: Python's or NumPy's headers are missing"
    except ImportError as error:
        return None, f"called through ctypes: {error}"


def _shipped_host(source: bytes) -> Any:
    """The extension module that was built with the package from exactly this source; None: none."""
    shipped, fits = _shipped(source)
    return shipped if fits else None


def _shipped(source: bytes) -> tuple[Any, bool]:
    """(the extension module that was built with the package, or None; whether it was built from
    exactly this source)."""
    try:
        shipped = import_module("._caller", __package__)
    except ImportError:
        return None, False
    return shipped, getattr(shipped, "built_from", "") == hashlib.sha256(source).hexdigest()


class _Forwarding:
    """Replaces the extension module's `Forwarding` if there is none: calls go to `__call__`."""

    _target: Any = None


def _forwarding() -> tuple[type, Callable[[type], type]]:
    """(Forwarding, shortened) of the extension module if it was built with the package, otherwise
    their replacements; with a warning if it was built with another version."""
    shipped, fits = _shipped(_CALLER.read_bytes())
    if fits:
        return shipped.Forwarding, shipped.shortened
    if shipped is not None:
        warnings.warn(
            f"{shipped.__file__} was built with another version of robot_dynamics and is not used, "
            "so single calls are slower: install the package again (pip install, colcon build)",
            BackendWarning,
            stacklevel=2,
        )
    return _Forwarding, lambda kind: kind


Forwarding, shortened = _forwarding()


def _built_host() -> Any:
    text = _CALLER.read_bytes()
    shipped = _shipped_host(text)
    if shipped:
        return shipped
    versions = (platform.python_version(), sysconfig.get_config_var("SOABI"), np.__version__)
    includes = [sysconfig.get_paths()["include"], sysconfig.get_paths()["platinclude"]]
    flags = ["-O2", *(f"-I{place}" for place in [*dict.fromkeys(includes), np.get_include()])]
    late = ["-lpthread", *compiler.LINKED_LATE]
    path = _built("caller", versions, text.decode(), flags, late, native=False)
    loader = ExtensionFileLoader("_caller", str(path))
    spec = spec_from_loader("_caller", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def library(name: str) -> ctypes.CDLL:
    """The library of a file in `c`, which follows lanes.h; from the cache or built.

    Args:
        name: the file's name, without its ending.

    Raises:
        BackendError: there is no compiler, or it failed.
    """
    source = compiler.prelude() + (_CALLER.parent / f"{name}.c").read_text(encoding="utf-8")
    path = _built(name, (), source, ["-O2", "-fno-tree-slp-vectorize"])
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BackendError(f"{path}: {error}", name="kernel") from None


def _built(
    name: str, content: Any, source: str, flags: list[str], *libraries: Any, **options: Any
) -> Path:
    """The library of one C file, from the cache or built."""
    cc = compiler.find()
    key = Function(name, (), (), (), 0, tuple, (source, content)).key(cc.identity)
    found = cache.fetch(key, ".so")
    if found is not None:
        return found[0]
    built = cc.shared_library([source], flags, *libraries, **options)
    return cache.store(key, ".so", built, {"what": name, "compiler": cc.command[0]})


def _rows_by_ctypes(
    address: int,
    states: tuple[Floats, ...],
    parameters: Floats,
    out: Floats,
    threads: int,
    past: bool,  # noqa: ARG001
) -> None:
    """Replaces the extension module's `rows` if there is none."""
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)(address)

    def run(share: slice) -> None:
        vectors = _pointers([*(x[share] for x in states), parameters])
        kernel(vectors, out[share].ctypes.data, len(out[share]))

    bounds = np.linspace(0, len(out), threads + 1).astype(int)
    shares = [slice(a, b) for a, b in pairwise(bounds) if b > a]
    if len(shares) < 2:
        for share in shares:
            run(share)
        return
    with ThreadPoolExecutor(len(shares)) as pool:
        list(pool.map(run, shares))
