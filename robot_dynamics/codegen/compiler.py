"""The system's C compiler."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import BackendError

PATIENCE = 600.0
"""s: a compiler that takes longer is stopped"""

FLAGS = ("-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math")
"""No -ffast-math: nan stays nan, and backends agree to rounding."""

_NATIVE = {"x86_64": "-march=native", "AMD64": "-march=native", "aarch64": "-mcpu=native"}


class CompileError(BackendError):
    """The compiler refused; the message is in its own words."""


@dataclass(frozen=True)
class Compiler:
    command: tuple[str, ...]
    identity: str
    """Changes when the compiler or the processor does"""

    def shared_library(
        self,
        source: str,
        flags: Sequence[str] = (),
        libraries: Sequence[str] = ("-lm",),
        native: bool = True,
    ) -> bytes:
        """The library that this C text is compiled to.

        Raises:
            CompileError: the compiler's own words.
        """
        own = _NATIVE.get(platform.machine()) if native else None
        if own:
            try:
                return self._run(source, (*FLAGS, own, *flags), libraries)
            except CompileError:  # an old compiler on a new processor
                pass
        return self._run(source, (*FLAGS, *flags), libraries)

    def _run(self, source: str, flags: Sequence[str], libraries: Sequence[str]) -> bytes:
        with tempfile.TemporaryDirectory(prefix="robot_dynamics-") as place:
            Path(place, "kernel.c").write_text(source, encoding="utf-8")
            command = [*self.command, *flags, "kernel.c", "-o", "kernel.so", *libraries]
            try:
                done = subprocess.run(  # noqa: S603  no shell, our own names
                    command,
                    cwd=place,
                    env={**os.environ, "LC_ALL": "C"},
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=PATIENCE,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise CompileError(f"{self.command[0]}: {error}", name="compiler") from None
            if done.returncode:
                words = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
                raise CompileError(f"{shlex.join(command)}\n{words}", name="compiler")
            return Path(place, "kernel.so").read_bytes()


def find() -> Compiler:
    """$CC, else cc, gcc or clang.

    Raises:
        BackendError: there is none.
    """
    wish = os.environ.get("CC")
    return _find(wish or "", os.environ.get("PATH", ""))


@lru_cache
def _find(wish: str, path: str) -> Compiler:
    for words in [shlex.split(wish)] if wish else [["cc"], ["gcc"], ["clang"]]:
        program = shutil.which(words[0], path=path) if words else None
        if program:
            status = os.stat(program)
            real = os.path.realpath(program)
            identity = f"{real} {status.st_size} {status.st_mtime_ns} {words[1:]} {_processor()}"
            return Compiler((program, *words[1:]), identity)
    raise BackendError(
        f"no C compiler: {wish or 'cc, gcc and clang'} not found", name="compiler", value=wish
    )


def _processor() -> str:
    """What decides what `native` means."""
    parts = [platform.machine()]
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            start = file.read(1 << 14)
    except OSError:
        return " ".join([*parts, platform.processor()])
    for word in ("model name", "flags", "Features", "CPU part"):
        parts += [line for line in start.splitlines() if line.startswith(word)][:1]
    return " ".join(parts)
