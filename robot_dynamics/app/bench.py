# SPDX-License-Identifier: Apache-2.0
"""How long one robot takes on this machine: getting ready, one call, batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..description import load
from ..dynamics import InverseDynamics

ROWS = 20_000
PATIENCE = 0.3
"""s for each measurement"""


def bench(file: str) -> dict[str, Any]:
    """{"robot", "joints", "backend", "ready_s", "call_us": {…}, "batch_us_a_state", "rows", "text"}

    Raises:
        RobotDynamicsError: the description is invalid.
    """
    mechanism = load(file)
    start = time.perf_counter()
    dynamics = InverseDynamics(mechanism)
    ready = time.perf_counter() - start
    n = len(dynamics.joint_names)
    rng = np.random.default_rng(0)
    home = np.array([float(mechanism.home.get(name, 0.0)) for name in dynamics.joint_names])
    spread = 0.01 if mechanism.loops else 1.0
    q = home + spread * rng.uniform(-1, 1, n)
    qd, qdd = rng.uniform(-1, 1, (2, n))
    calls: dict[str, Callable[[], Any]] = {
        "torques": lambda: dynamics(q, qd, qdd),
        "mass matrix": lambda: dynamics.mass_matrix(q),
        "Coriolis matrix": lambda: dynamics.coriolis_matrix(q, qd),
        "gravity": lambda: dynamics.gravity(q),
    }
    times = {name: _median(call) * 1e6 for name, call in calls.items()}
    lines = [
        f"{mechanism.name}: {n} joints; {dynamics.backend}",
        f"ready in {ready:.3f} s",
        *(f"{name}: {each:.2f} µs a call" for name, each in times.items()),
    ]
    result: dict[str, Any] = {
        "robot": mechanism.name,
        "joints": list(dynamics.joint_names),
        "backend": dynamics.backend,
        "ready_s": ready,
        "call_us": times,
    }
    if not mechanism.loops:
        batch = home + rng.uniform(-1, 1, (ROWS, n))
        each = _median(lambda: dynamics(batch, batch, batch)) / ROWS * 1e6
        result |= {"rows": ROWS, "batch_us_a_state": each}
        lines.append(f"torques of {ROWS} states in one call: {each:.3f} µs a state")
    return {**result, "text": "\n".join(lines)}


def _median(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
