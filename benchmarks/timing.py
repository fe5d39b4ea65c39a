# SPDX-License-Identifier: Apache-2.0
"""Shared by all benchmarks: timing, the machine, JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM_UP = 0.05
"""s of calls before any is timed"""


def per_call(function: Callable[[], Any], seconds: float = 0.5) -> dict[str, float]:
    """Seconds a call: `typical` (the median of loops), `p50` and `p99` of calls timed one by one,
    the clock's own 0.05 µs included."""
    end = time.perf_counter() + WARM_UP
    calls = 0
    while time.perf_counter() < end or calls < 2:
        function()
        calls += 1
    many = max(1, calls // 10)
    loops, singles = [], []
    clock = time.perf_counter
    end = clock() + seconds
    while clock() < end or len(loops) < 3:
        start = clock()
        for _ in range(many):
            function()
        loops.append((clock() - start) / many)
        for _ in range(min(many, 200)):
            start = clock()
            function()
            singles.append(clock() - start)
    p50, p99 = np.percentile(singles, [50, 99])
    return {"typical": float(np.median(loops)), "p50": float(p50), "p99": float(p99)}


def once(function: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_new_process(code: str, **environment: str) -> float:
    """What a new Python process that runs this code prints last, as a number."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    model = ""
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    return {
        "processor": model or platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def parser(description: str | None, *, draws: bool = False) -> argparse.ArgumentParser:
    """--json, and for a benchmark that draws its numbers --picture: where the results go."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    name = Path(made.prog).stem
    made.add_argument("--json", type=Path, help=f"write the numbers, e.g. {name}.json")
    if draws:
        made.add_argument("--picture", type=Path, help=f"draw them, e.g. {name}.png")
    return made


def keep(path: Path | None, results: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps({"machine": machine(), **results}, indent=1) + "\n")
        print(f"written: {path}")
