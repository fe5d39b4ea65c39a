# SPDX-License-Identifier: Apache-2.0
"""The system's C compiler."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import BackendError

PATIENCE = 600.0
"""s: a compiler that takes longer is stopped"""

FLAGS = ("-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
"""Without -ffast-math: nan stays nan, and backends agree to rounding."""

NATIVE = (("-march=native",), ("-mcpu=native",))
"""Flags that optimise for this processor; not every compiler supports both"""

LEAN = ("-fno-tree-fre", "-fno-tree-dse", "-fno-dse", "-fno-rerun-cse-after-loop")
"""GCC flags that turn off common-subexpression and dead-store elimination, which are slow: recorded
programs need neither"""

ALONE = ("-nostdlib", "-lm", "-lgcc") if sys.platform == "linux" else ()
"""Flags that leave out the standard libraries: searching the C library is slow, and every process
that loads a kernel has it already"""

LINKED_LATE = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()
"""Flags for a Python extension module: the interpreter provides the functions that it calls"""


class CompileError(BackendError):
    """The compiler failed; the message is what it printed."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler: its command and its identity."""

    command: tuple[str, ...]
    identity: str
    """Changes if the compiler or the processor changes; part of the hash of compiled kernels"""

    def shared_library(
        self,
        files: list[str],
        flags: Sequence[str] = (),
        libraries: Sequence[str] = ("-lm",),
        native: bool = True,
    ) -> bytes:
        """Compile C files to a shared library, all at once.

        Args:
            files: the contents of the C files.
            flags: further flags for compiling.
            libraries: flags for linking.
            native: optimise for this processor.

        Returns:
            The content of the library file.

        Raises:
            CompileError: the compiler failed, with what it printed.
        """
        own = accepted(self, *NATIVE) if native else ()
        # a library for another machine must name its dependencies, and flags in $CC may require
        # those that ALONE leaves out
        alone = ALONE if native and len(self.command) == 1 else ()
        return self._built(files, (*FLAGS, *own, *flags), libraries, alone)

    def _built(
        self,
        files: list[str],
        flags: Sequence[str],
        libraries: Sequence[str],
        alone: Sequence[str] = (),
    ) -> bytes:
        # an interrupted compiler may still be writing
        with tempfile.TemporaryDirectory(
            prefix="robot_dynamics-", ignore_cleanup_errors=True
        ) as place:
            names = [f"kernel{k}" for k in range(len(files))]
            for name, text in zip(names, files, strict=True):
                Path(place, f"{name}.c").write_text(text, encoding="utf-8")
            parts = [*flags, "kernel0.c"]
            if len(files) > 1:
                self._run(place, *([*flags, "-c", f"{name}.c"] for name in names))
                parts = [f"{name}.o" for name in names]
            link = ["-shared", *parts, "-o", "kernel.so", *libraries]
            try:
                self._run(place, [*link, *alone])
            except CompileError as error:
                if not (alone and error.value):
                    raise
                self._run(place, link)
            try:
                return Path(place, "kernel.so").read_bytes()
            except OSError:
                raise CompileError(
                    f"{shlex.join(self.command)}: it wrote no library", name="compiler"
                ) from None

    def _run(self, place: str, *each: list[str]) -> None:
        """Run the compiler once with each of these arguments, all at the same time."""
        running: list[subprocess.Popen[str]] = []
        try:
            for arguments in each:
                running.append(
                    subprocess.Popen(  # noqa: S603  no shell, fixed file names
                        [*self.command, *arguments],
                        cwd=place,
                        env={**os.environ, "LC_ALL": "C", "TMPDIR": place},
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        errors="replace",
                    )
                )
            for process, arguments in zip(running, each, strict=True):
                words = process.communicate(timeout=PATIENCE)[0].strip()
                if process.returncode:
                    command = shlex.join([*self.command, *arguments])
                    words = words or f"exit code {process.returncode}"
                    raise CompileError(
                        f"{command}\n{words}", name="compiler", value=process.returncode
                    )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"{self.command[0]}: {error}", name="compiler") from None
        finally:
            for process in running:
                with process:  # does not wait for its children, which also hold the pipe
                    process.kill()


@lru_cache
def accepted(compiler: Compiler, *choices: tuple[str, ...]) -> tuple[str, ...]:
    """The first of these groups of flags that the compiler accepts, found by trial; () if none."""
    for flags in choices:
        try:
            # with the vector types of every kernel, as an old assembler may lack their instructions
            compiler._built([prelude()], (*FLAGS, "-O2", *flags), (), ALONE)
        except CompileError:
            continue
        return flags
    return ()


def prelude() -> str:
    """The C source that every kernel starts with: vector types, sine and cosine."""
    return (Path(__file__).parent / "c" / "lanes.h").read_text(encoding="utf-8")


def find() -> Compiler:
    """The C compiler: $CC if it is set, otherwise cc, gcc or clang.

    Raises:
        BackendError: no compiler was found.
    """
    return _find(os.environ.get("CC", ""), os.environ.get("PATH", ""))


@lru_cache
def _find(chosen: str, path: str) -> Compiler:
    try:
        commands = [shlex.split(chosen)] if chosen else [["cc"], ["gcc"], ["clang"]]
    except ValueError as error:
        raise BackendError(f"CC={chosen}: {error}", name="CC", value=chosen) from None
    for words in commands:
        program = shutil.which(words[0], path=path) if words else None
        if program:
            status = os.stat(program)
            real = os.path.realpath(program)
            identity = f"{real} {status.st_size} {status.st_mtime_ns} {words[1:]} {_processor()}"
            return Compiler((program, *words[1:]), identity)
    raise BackendError(
        f"no C compiler: {chosen or 'cc, gcc and clang'} not found", name="compiler", value=chosen
    )


def _processor() -> str:
    """The processor's properties that determine what `native` means."""
    parts = [platform.machine()]
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            start = file.read(1 << 14)
    except OSError:
        return " ".join([*parts, platform.processor()])
    for word in ("model name", "flags", "Features", "CPU part"):
        parts += [line for line in start.splitlines() if line.startswith(word)][:1]
    return " ".join(parts)
