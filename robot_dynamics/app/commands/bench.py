# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics bench`: the time of a call on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from ...errors import counted
from ...outputs import COUNT, JOINTS, NUMBER, ROBOT, TEXT, Output, record
from ..command import Command

SIX_AXIS = "package://robot_dynamics/urdf/six_axis.urdf"
ROWS = 20_000
PATIENCE = 0.3
"""The duration of each measurement, s"""

OUTPUT = record(
    robot=ROBOT,
    joints=JOINTS,
    backend=TEXT,
    ready_s=NUMBER("s"),
    call_us=NUMBER.by_name("µs per call"),
    rows=COUNT.maybe(),
    batch_us_a_state=NUMBER("µs").maybe(),
)


@click.command("bench", cls=Command, examples=["bench", "bench robot.urdf"])
@click.argument("file", metavar="[FILE]", type=click.Path(), default=SIX_AXIS)
def command(file: str) -> Output:
    """Time calls and batches on this machine.

    Without FILE, it times the six-axis arm.
    """
    from ...description import load
    from ...dynamics import InverseDynamics

    mechanism = load(file)
    start = time.perf_counter()
    dynamics = InverseDynamics(mechanism)
    ready = time.perf_counter() - start
    n = len(dynamics.joint_names)
    rng = np.random.default_rng(0)
    home = dynamics.home
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
        f"{mechanism.name}: {counted(n, 'joint')}; {dynamics.backend}",
        f"ready in {ready:.3f} s",
        *(f"{name}: {each:.2f} µs per call" for name, each in times.items()),
    ]
    result: dict[str, Any] = {
        "robot": mechanism.name,
        "joints": dynamics.joint_names,
        "backend": dynamics.backend,
        "ready_s": ready,
        "call_us": times,
    }
    if not mechanism.loops:
        batch = home + rng.uniform(-1, 1, (ROWS, n))
        each = _median(lambda: dynamics(batch, batch, batch)) / ROWS * 1e6
        result |= {"rows": ROWS, "batch_us_a_state": each}
        lines.append(f"torques of {ROWS} states in one call: {each:.3f} µs per state")
    return Output(OUTPUT.read(result), "\n".join(lines))


def _median(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
