# SPDX-License-Identifier: Apache-2.0
"""Applies a function to many recordings: in this process, in several processes of this machine, or
on a cluster of Dask workers.

Each recording is read and reduced where the function runs, and each result is consumed as it
arrives, so neither all recordings nor all results need to be in memory at once.
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from queue import SimpleQueue
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import numpy as np

from ..errors import (
    BackendError,
    InputError,
    RecordingError,
    RobotDynamicsError,
    not_installed,
    one_line,
    wrong,
)
from .read import Source, name_of
from .recording import Recording

CONNECT = 4.0
"""s to wait for a scheduler to answer"""
PATIENCE = 20.0
"""s to wait for a worker if there is none"""
LOOK = 2.0
"""s between checks whether any workers are left"""
AHEAD = 2
"""Batches submitted at a time per worker thread: one in progress, one waiting"""
BATCH = 8
"""Largest number of recordings per task; a task costs the scheduler and the worker as much time as
half a recording"""
SHARES = 2
"""Smallest number of batches per worker thread into which the remaining recordings are divided, so
that all workers finish at about the same time"""
MOST = 256
"""Largest number of processes on this machine"""
RETRIES = 2
"""Number of retries after failures that may not be the recording's own, but a disk's or a
network's"""
DIED = "every worker that took it died (too large for its memory?)"
DIFFERENCES = ("robot_dynamics", "python", "numpy", "scipy", "dask", "distributed")
"""Packages whose versions should be the same everywhere"""

TRIM = "MALLOC_TRIM_THRESHOLD_"
"""The environment variable by which Dask sets the trim threshold of its workers' allocators"""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt, from glibc's malloc.h"""

R = TypeVar("R")
Outcome = tuple[int, R | RobotDynamicsError]
"""The recording's index, and the function's result or the error it raised"""


class Fleet(Protocol):
    """An executor of functions on recordings."""

    notes: tuple[str, ...]
    """Notes for the user"""
    local: bool
    """Whether all its processes run on this machine"""

    def map(
        self, function: Callable[[Source], R], sources: Sequence[Source]
    ) -> Iterator[Outcome[R]]:
        """The outcomes in any order; an error in one recording is its outcome.

        Args:
            function: maps a recording to its result.
            sources: the recordings.
        """


class Here(Fleet):
    """Runs in this process, one recording after another."""

    notes: tuple[str, ...] = ()
    local = True

    def map(
        self, function: Callable[[Source], R], sources: Sequence[Source]
    ) -> Iterator[Outcome[R]]:
        for k, source in enumerate(sources):
            yield k, _attempt(function, source)


def fleet_at(
    scheduler: str | None, workers: int | None = None, recordings: int = MOST
) -> AbstractContextManager[Fleet]:
    """The executor that processes the recordings.

    Args:
        scheduler: the address of a Dask scheduler (`tcp://host:8786`); None: this machine.
        workers: number of new processes on this machine; None: this process.
        recordings: number of recordings; no more processes than this are started.

    Raises:
        BackendError: `distributed` is not installed; the scheduler or its workers are not
            available; or new processes exit at once, as those of a script without
            `if __name__ == "__main__":` do.
        InputError: the number of workers is not an integer from 1 to `MOST`, or both are given.
    """
    if workers is None:
        return nullcontext(Here()) if scheduler is None else Workers(scheduler)
    if scheduler is not None:
        raise wrong(InputError, "workers", workers, "none: a scheduler has its own workers")
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 < workers <= MOST:
        raise wrong(InputError, "workers", workers, f"a number of processes, 1 to {MOST}")
    return Processes(min(workers, max(recordings, 1)))


class Processes(Fleet, AbstractContextManager["Processes"]):
    """Runs in new processes on this machine.

    Args:
        workers: number of processes.

    Raises:
        BackendError: they exit at once.
    """

    notes: tuple[str, ...] = ()
    local = True

    def __init__(self, workers: int):
        self.workers = workers
        self._results = TemporaryDirectory(prefix="robot_dynamics_")
        self._pool = self._started()
        try:
            begun: SimpleQueue[Future[int]] = SimpleQueue()
            for _ in range(workers):
                self._submit(begun, os.getpid)
            for _ in range(workers):
                _result(begun.get())
        except BrokenProcessPool:
            self.__exit__()
            raise BackendError(
                "workers: worker processes exit at once; put the script's top-level code under "
                '`if __name__ == "__main__":`',
                name="workers",
                value=workers,
            ) from None

    def _started(self) -> ProcessPoolExecutor:
        # processes forked from one with threads may wait for locks forever
        return ProcessPoolExecutor(
            self.workers, multiprocessing.get_context("spawn"), _serves_its_parent
        )

    def _submit(self, done: SimpleQueue[Future[R]], work: Callable[..., R], *of: Any) -> Future[R]:
        """Submit a task, whose future will be put into `done`."""
        with signals_later(), _without_interrupts():
            future = self._pool.submit(work, *of)
            future.add_done_callback(done.put)
            return future

    def _restart(self) -> None:
        """Replace the processes after one of them has died, and all pending tasks with it."""
        self._pool.shutdown()
        self._pool = self._started()

    def __exit__(self, *_: object) -> None:
        # tasks that are still running are no longer needed
        for process in [*(getattr(self._pool, "_processes", None) or {}).values()]:
            process.terminate()
        self._pool.shutdown(cancel_futures=True)
        self._results.cleanup()

    def map(
        self, function: Callable[[Source], R], sources: Sequence[Source]
    ) -> Iterator[Outcome[R]]:
        places = [located(source) for source in sources]
        code = pickle.dumps(function)
        waiting = _Waiting([None] * len(places))
        pending: dict[Future[str], tuple[list[int], ProcessPoolExecutor]] = {}
        done: SimpleQueue[Future[str]] = SimpleQueue()
        while True:
            while len(pending) < AHEAD * self.workers:
                batch = waiting.batch(self.workers, alone=not pending)
                if not batch:
                    break
                task = done, _kept_in, self._results.name, code, [places[k] for k in batch]
                try:
                    future = self._submit(*task)
                except BrokenProcessPool:  # a process has died since the last task was submitted
                    self._restart()
                    future = self._submit(*task)
                pending[future] = batch, self._pool
            if not pending:
                return
            future = done.get()
            batch, pool = pending.pop(future)
            try:
                file = Path(_result(future))
                results = pickle.loads(file.read_bytes())  # noqa: S301  from our own process
                file.unlink()
                yield from zip(batch, results, strict=True)
            except BrokenProcessPool:
                if pool is self._pool:
                    self._restart()
                if not waiting.failed(batch, 0):
                    name = name_of(places[batch[0]])
                    yield batch[0], RecordingError(f"{name}: {DIED}", name=name)


@contextmanager
def signals_later() -> Iterator[None]:
    """Handle signals only at the end. Their exceptions would otherwise leave a lock of a future or
    a process of a pool behind, for which this process would wait forever when it exits."""
    came: list[int] = []
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in map(int, signal.valid_signals()):
                if callable(handler := signal.getsignal(number)):
                    before[number] = handler
                    signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """New processes get no SIGINT, at which they would print a traceback while they still import
    modules."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _result(future: Future[R]) -> R:
    """The result of a future that is done."""
    with signals_later():
        return future.result()


def _serves_its_parent() -> None:
    """Ignore SIGINT, which the parent process handles, and exit when the parent does, however it
    ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, name="follow", daemon=True).start()


class Workers(Fleet, AbstractContextManager["Workers"]):
    """Runs on the workers of a Dask scheduler: processes on this machine or others."""

    local = False

    def __init__(self, address: str):
        try:
            import distributed
        except ImportError:
            role = "--scheduler needs"
            raise not_installed("distributed", role, "'robot_dynamics[fleet]'") from None
        self._dask, self.address = distributed, address
        try:
            _check_address(distributed.comm, address)
            with warnings.catch_warnings():
                # `_checked` reports the mismatch in one line
                warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
                connect: Any = distributed.Client
                self._client: Any = connect(address, timeout=CONNECT, set_as_default=False)
        # each transport and each malformed address raises an exception of its own
        except Exception as error:  # noqa: BLE001
            raise BackendError(
                f"no scheduler answers at {one_line(address, 200)} ({_words(error)}): expected the "
                "address that `dask scheduler` prints, such as tcp://host:8786",
                name="scheduler",
                value=address,
            ) from None
        try:
            self.notes = self._checked()
        except BaseException:
            self._client.close()
            raise

    def __exit__(self, *_: object) -> None:
        # tasks that are still running are no longer needed
        self._client.close()

    def map(
        self, function: Callable[[Source], R], sources: Sequence[Source]
    ) -> Iterator[Outcome[R]]:
        distributed = self._dask
        places = [located(source) for source in sources]
        hosts = self._hosts(places)
        code = pickle.dumps(function)
        waiting = _Waiting(hosts)
        pending: dict[Any, list[int]] = {}
        alone_since: float | None = None
        for k in waiting.nowhere:
            words = f"{places[k]}: no worker of {self.address} has it"
            yield k, RecordingError(words, name=str(places[k]))
        try:
            while True:
                threads = self._threads(hosts[batch[0]] for batch in pending.values())
                while len(pending) < AHEAD * max(threads, 1):
                    batch = waiting.batch(max(threads, 1), alone=not pending)
                    if not batch:
                        break
                    future = self._client.submit(
                        _run, code, [places[k] for k in batch], workers=hosts[batch[0]],
                        pure=False, key=f"robot_dynamics-{os.urandom(8).hex()}",
                    )  # fmt: skip
                    pending[future] = batch
                if not pending:
                    return
                done = self._done(pending)
                for future in done:
                    settled = self._settled(future, pending[future], waiting, places)
                    if settled is not None:
                        del pending[future]
                        yield from settled
                    del settled, future
                if done or threads:
                    alone_since = None
                elif alone_since is None:
                    alone_since = time.monotonic()
                elif time.monotonic() - alone_since > PATIENCE:
                    raise BackendError(f"{self.address}: all workers are gone", name="scheduler")
        except (OSError, distributed.CancelledError, distributed.TimeoutError) as error:
            raise BackendError(
                f"{self.address}: the scheduler is gone ({_words(error)})", name="scheduler"
            ) from None

    def _done(self, pending: Iterable[Any]) -> Iterable[Any]:
        """The futures that are done, after waiting up to LOOK seconds for one."""
        distributed = self._dask
        with self._client.as_current():
            try:
                found: Iterable[Any] = distributed.wait(
                    [*pending], timeout=LOOK, return_when="FIRST_COMPLETED"
                ).done
                return found
            except distributed.TimeoutError:
                return ()

    def _settled(
        self, future: Any, batch: list[int], waiting: _Waiting, places: Sequence[Source]
    ) -> list[Outcome[Any]] | None:
        """The outcomes of a batch that is done; empty if its recordings will be tried again. None:
        its worker has died, and it was given to another one."""
        if future.status != "error":
            try:
                return [*zip(batch, future.result(timeout=PATIENCE), strict=True)]
            except self._dask.TimeoutError:
                return None
        error = future.exception(timeout=PATIENCE)
        killed = isinstance(error, self._dask.KilledWorker)
        if waiting.failed(batch, 0 if killed else RETRIES):
            return []
        name = name_of(places[batch[0]])
        if killed:
            why = DIED
        elif isinstance(error, OSError):
            why = f"no worker can read it ({_words(error)})"
        else:
            raise error
        return [(batch[0], RecordingError(f"{name}: {why}", name=name))]

    def _threads(self, hosts: Iterable[frozenset[str] | None]) -> int:
        """Number of threads of all workers that can process any of the pending recordings, given
        the hosts of each."""
        wanted = list(hosts)
        anybody = not wanted or None in wanted
        able = frozenset().union(*(each for each in wanted if each is not None))
        threads = self._client.nthreads()
        return sum(n for name, n in threads.items() if anybody or _host(name) in able)

    def _checked(self) -> tuple[str, ...]:
        """Check that there is a worker, and whether the packages' versions match; returns notes for
        the user."""
        distributed = self._dask
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except distributed.TimeoutError:
            raise BackendError(
                f"{self.address}: the scheduler has no worker: start some with `dask worker`",
                name="scheduler",
            ) from None
        found = self._client.get_versions(packages=["scipy", "robot_dynamics"])
        everybody = [found["client"], found["scheduler"], *found["workers"].values()]
        differences = _differences([(each or {}).get("packages", {}) for each in everybody])
        if not differences:
            return ()
        return (f"{self.address}: versions differ: {', '.join(differences)}",)

    def _hosts(self, places: Sequence[Source]) -> list[frozenset[str] | None]:
        """By recording, the hosts that have its file; None: all of them."""
        paths = [place for place in places if isinstance(place, str)]
        answers = self._client.run(_exist, paths, on_error="return")
        seen: dict[str, list[bool]] = {}
        for worker, answer in answers.items():
            if isinstance(answer, ImportError):
                raise BackendError(
                    f"{worker}: the worker lacks robot_dynamics ({_words(answer)}): pip install "
                    "'robot_dynamics[fleet,identify]' there",
                    name="scheduler",
                )
            if isinstance(answer, list):  # else it has just died
                host = _host(worker)
                known = seen.get(host, [False] * len(paths))
                seen[host] = [a or b for a, b in zip(known, answer, strict=True)]
        having = {
            path: frozenset(host for host, exists in seen.items() if exists[k])
            for k, path in enumerate(paths)
        }
        found = [having[place] if isinstance(place, str) else None for place in places]
        return [None if hosts == frozenset(seen) else hosts for hosts in found]


class _Waiting:
    """The recordings that are waiting to be submitted."""

    def __init__(self, hosts: Sequence[frozenset[str] | None]):
        self._hosts = hosts
        self.nowhere = [k for k, having in enumerate(hosts) if having == frozenset()]
        """Indices of those that no worker has"""
        self._left = deque(k for k, having in enumerate(hosts) if having != frozenset())
        self._suspects: deque[int] = deque()
        self._tries: dict[int, int] = {}
        """How often each has been tried while nothing else was pending"""

    def batch(self, threads: int, alone: bool) -> list[int]:
        """The next recordings for one task, all on the same hosts; fewer towards the end. Empty:
        those that are left, if any, must wait.

        Args:
            threads: the workers' number of threads.
            alone: whether nothing else is pending.
        """
        if not self._left:
            if not (alone and self._suspects):
                return []
            k = self._suspects.popleft()
            self._tries[k] = self._tries.get(k, 0) + 1
            return [k]
        size = min(BATCH, len(self._left) // (SHARES * threads))
        taken = [self._left.popleft()]
        while len(taken) < size and self._hosts[self._left[0]] == self._hosts[taken[0]]:
            taken.append(self._left.popleft())
        return taken

    def failed(self, batch: list[int], retries: int) -> bool:
        """Put back a batch that failed. Each of its recordings will be tried when nothing else is
        pending, since others that wait for the same worker are lost with it. False: this has been
        done, and they are not put back.

        Args:
            batch: as returned by `batch`.
            retries: how often to retry a recording after that.
        """
        if self._tries.get(batch[0], 0) > retries:
            return False
        self._suspects.extend(batch)
        return True


def _check_address(comm: Any, address: str) -> None:
    """Check that the address is of a known kind, and that something listens there.

    A client that cannot connect remains half initialised and does not shut down cleanly.
    """
    whole = comm.addressing.normalize_address(address)
    comm.registry.get_backend(whole.partition("://")[0])
    if whole.startswith(("tcp://", "tls://")):
        socket.create_connection(comm.addressing.get_address_host_port(whole), CONNECT).close()


def located(source: Source) -> Recording | str:
    """The recording in the form that workers take: a recording in memory, or an absolute path."""
    if isinstance(source, Recording):
        return source
    return os.path.abspath(os.path.expanduser(source))


def key_of(source: Source) -> str:
    """The name that identifies a recording in every process."""
    found = located(source)
    return found.source if isinstance(found, Recording) else found


def _exist(paths: list[str]) -> list[bool]:
    """Runs on a worker."""
    return [os.path.exists(path) for path in paths]


def _run(code: bytes, batch: Sequence[Source]) -> list[Any]:
    """Runs on a worker."""
    with _kept_memory():
        return [_attempt(_function(code), source) for source in batch]


def _kept_in(folder: str, code: bytes, batch: Sequence[Source]) -> str:
    """Runs in a process on this machine, and returns the name of the file with its results.

    A file name passes through a pipe at once. If a process died while it sent a result of
    megabytes, the receiver would wait for the rest forever.

    Raises:
        BackendError: the file cannot be written.
    """
    results = pickle.dumps(_run(code, batch))
    try:
        with NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(results)
    except OSError as error:
        raise BackendError(
            f"{folder}: {error.strerror}: intermediate results are stored there; free some space, "
            "or set TMPDIR to a folder that has more",
            name="workers",
        ) from None
    return file.name


@contextmanager
def _kept_memory() -> Iterator[None]:
    """Keep freed memory in the process for the next array; return it to the system at the end.

    Dask makes its workers' C library (glibc) return every 64 kB at once, so the pages of each new
    array must be mapped again, and a recording takes 1.5 times as long.
    """
    small = os.environ.get(TRIM, "")
    libc = ctypes.CDLL(None) if small.isdigit() and sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(M_MMAP_THRESHOLD, 1 << 25)
    libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    try:
        yield
    finally:
        libc.mallopt(M_TRIM_THRESHOLD, min(int(small), 1 << 30))
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 17)
        libc.malloc_trim(0)


@lru_cache(maxsize=4)
def _function(code: bytes) -> Callable[[Source], Any]:
    """The function, unpickled once for all of a worker's recordings, so that its caches persist."""
    # it comes from the client, as do all of a worker's tasks
    found: Callable[[Source], Any] = pickle.loads(code)  # noqa: S301
    return found


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, so that rounding does not depend on a process's number of cores."""
    pools = _thread_pools()
    # without threadpoolctl the results differ only by rounding
    with nullcontext() if pools is None else pools.limit(limits=1, user_api="blas"):
        yield


@cache
def _thread_pools() -> Any:
    """The controller of the process's BLAS threads, created once; None: threadpoolctl is not
    installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    importlib.import_module("scipy.linalg")  # it brings a BLAS of its own
    return ThreadpoolController()


@one_blas_thread()
def _attempt(function: Callable[[Source], R], source: Source) -> R | RobotDynamicsError:
    try:
        return function(source)
    except RobotDynamicsError as error:
        return error


def _differences(everybody: list[dict[str, Any]]) -> list[str]:
    """The versions of each package that is not the same everywhere."""
    found = []
    for package in DIFFERENCES:
        versions = {str(each.get(package) or "none") for each in everybody}
        if package in ("robot_dynamics", "numpy", "scipy"):  # the scheduler need not have these
            versions -= {"none"}
        if len(versions) > 1:
            found.append(f"{package} {' and '.join(sorted(versions))}")
    return found


def _host(worker: str) -> str:
    return urlsplit(worker).hostname or worker


def _words(error: BaseException) -> str:
    return one_line(error, 200) or type(error).__name__


T = TypeVar("T")


class Sum(Generic[T]):
    """A sum of dataclasses of arrays in double-double precision, so that their order does not
    matter."""

    def __init__(self) -> None:
        self._kind: type[T] | None = None
        self._high: list[Any] = []
        self._low: list[Any] = []

    def __bool__(self) -> bool:
        """Whether it has any term."""
        return self._kind is not None

    def add(self, term: T) -> None:
        """Add a term."""
        values = [
            np.asarray(getattr(term, each.name), dtype=float)
            for each in fields(term)  # type: ignore[arg-type]
        ]
        if self._kind is None:
            self._kind = type(term)
            self._high = [value.copy() for value in values]
            self._low = [np.zeros_like(value) for value in values]
            return
        for a, low, b in zip(self._high, self._low, values, strict=True):
            s = a + b
            t = s - a
            # a + b = s + e exactly, e = (a - (s - t)) + (b - t)   (Knuth, TAOCP 2, 4.2.2)
            low += (a - (s - t)) + (b - t)
            a[...] = s

    def value(self) -> T:
        """The sum of all terms; at least one must have been added."""
        assert self._kind is not None, "something was added"
        return self._kind(*(high + low for high, low in zip(self._high, self._low, strict=True)))
