# SPDX-License-Identifier: Apache-2.0
"""Python code in a separate process, without input, which is killed if it takes too long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from ..errors import DescriptionError, wrong
from .files import MOST_BYTES


def output(code: str, arguments: Sequence[str], where: str, longest: float) -> tuple[bytes, str]:
    """(the code's standard output, at most MOST_BYTES + 1 bytes; its error message).

    The message is the last line of its standard error, or says how the process ended; it is empty
    if the process succeeded.

    Args:
        code: the program.
        arguments: its arguments.
        where: how messages refer to it.
        longest: how long it may take, s.

    Raises:
        DescriptionError: it takes longer; it is then killed with every process that it started.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as words:
        process = subprocess.Popen(  # noqa: S603  the code is ours, the rest are arguments
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=words,
            start_new_session=True,
        )
        try:
            ended = process.wait(longest)
        except subprocess.TimeoutExpired:
            found = f"no result within {longest:g} s"
            raise wrong(DescriptionError, where, found, "one") from None
        finally:
            if process.returncode is None:
                _end(process)
        out.seek(0)
        words.seek(0)
        lines = words.read(MOST_BYTES).decode(errors="replace").strip().splitlines()
        message = "" if not ended else lines[-1] if lines else f"it ended with {ended}"
        return out.read(MOST_BYTES + 1), message


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and everything that it started."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
