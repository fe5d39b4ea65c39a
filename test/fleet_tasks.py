# SPDX-License-Identifier: Apache-2.0
"""The tasks that `test_fleet.py` gives to processes, which need not import the tests for them."""

from __future__ import annotations

import os
import resource
import signal
import time

import numpy as np


def size(source) -> np.ndarray:
    return np.full(1 << 17, float(os.path.basename(source)[0]))


def slow(source) -> int:
    time.sleep(0.2)
    return 0


def endless(source) -> str:
    time.sleep(0 if source.endswith("0.csv") else 30)
    return source


def deadly(source) -> str:
    if source.endswith("3.csv"):
        os.kill(os.getpid(), signal.SIGKILL)
    return source


def flaky(source) -> str:
    mark = f"{source}.tried"
    if not os.path.exists(mark):
        open(mark, "w").close()
        raise OSError("the disk is away for a moment")
    os.remove(mark)
    return "read"


def unreadable(source) -> str:
    if source.endswith("0.csv"):
        raise OSError("the disk is away")
    return source


def faulty(source) -> float:
    return 1 / 0


def slow_to_send(source: str) -> bytes:
    return b"" if source.endswith("first") else bytes(40_000_000)


def touch(source: str) -> int:
    """Page faults while arrays of 3 MB come and go, smaller than those for which NumPy asks for
    huge pages. Holes in the heap that happen to be as large are filled before."""
    _held = [np.ones(3 << 17) for _ in range(8)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(3 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def length(source):
    from robot_dynamics.identification import read

    return len(read(source).streams[0].time)
