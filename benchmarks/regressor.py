# SPDX-License-Identifier: Apache-2.0
"""Batches of the regressor of a 7-joint arm on one thread, and Pinocchio's in a Python loop.

    python benchmarks/regressor.py [--json OUT]

Both write into an existing array: 20,000 states in one call, or block after block into the memory
of one block, as in the summation of an identification's normal equations. Times are processor time,
which excludes other processes. The last lines are the time to derive and compile the regressor of
48 joints, and its time per state.
"""

from __future__ import annotations

import os
import tempfile
import time
from unittest.mock import patch

import numpy as np
import pinocchio as pin
from libraries import revolute
from robots import chain, chain_urdf, states
from timing import keep, parser, per_call

import robot_dynamics as rd

JOINTS, STATES, BLOCK = 7, 20_000, 500
ROUNDS = 15
MANY = 48
AGREEMENT = 1e-9


def main() -> None:
    options = parser(__doc__).parse_args()
    dynamics = rd.InverseDynamics(
        chain(JOINTS), threads=1, terms=["inertia", "coriolis", "gravity", "rotors"]
    )
    q, qd, qdd = states(JOINTS, STATES)
    p = len(dynamics.parameter_names)
    ours, theirs = np.ones((STATES, JOINTS, p)), np.ones((STATES, JOINTS, p))
    block = np.ones((BLOCK, JOINTS, p))
    model = pin.buildModelFromXML(revolute(chain_urdf(JOINTS)))
    data = model.createData()
    starts = range(0, STATES, BLOCK)
    parts = [[np.ascontiguousarray(x[k : k + BLOCK]) for x in (q, qd, qdd)] for k in starts]

    def kept() -> None:
        for k in range(STATES):
            theirs[k] = pin.computeJointTorqueRegressor(model, data, q[k], qd[k], qdd[k])

    def dropped() -> None:
        for k in range(STATES):
            pin.computeJointTorqueRegressor(model, data, q[k], qd[k], qdd[k])

    def whole() -> None:
        dynamics.regressor(q, qd, qdd, out=ours)

    def blocks() -> None:
        for part in parts:
            dynamics.regressor(*part, out=block)

    ways = {
        "pinocchio, each kept in an array": kept,
        "pinocchio, each dropped": dropped,
        "robot_dynamics, one call": whole,
        "robot_dynamics, by blocks": blocks,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for function in ways.values():
        function()
    assert abs(ours - theirs).max() < AGREEMENT * abs(theirs).max()
    for _ in range(ROUNDS):  # in turns: what else runs on the machine meets all of them
        for name, function in ways.items():
            start = time.thread_time()
            function()
            times[name].append(time.thread_time() - start)
    found = {name: float(np.median(each)) / STATES for name, each in times.items()}
    for name, seconds in found.items():
        print(f"{name:35} {seconds * 1e6:8.3f} µs per state")
    a, b, c, d = ways
    pairs = {"kept / one call": (a, c), "kept / by blocks": (a, d), "dropped / by blocks": (b, d)}
    ratios = {name: found[a] / found[b] for name, (a, b) in pairs.items()}
    for name, ratio in ratios.items():
        print(f"{name:35} {ratio:8.1f}")
    large = {"single states": prepared(None), "batches": prepared(BLOCK)}
    keep(options.json, {"seconds a state": found, "ratios": ratios, f"{MANY} joints": large})


def prepared(count: int | None) -> dict[str, float]:
    """Seconds of processor time to derive and compile the regressor of MANY joints, without a
    cache, and seconds a state.

    Args:
        count: the number of states in a batch; None: single states.
    """
    dynamics = rd.InverseDynamics(chain(MANY), threads=1)
    state = states(MANY, count)
    with (
        tempfile.TemporaryDirectory() as place,
        patch.dict(os.environ, {"ROBOT_DYNAMICS_CACHE": place}),
    ):
        start = spent()
        dynamics.regressor(*state)
        seconds = spent() - start
    out = dynamics.regressor(*state)
    typical = per_call(lambda: dynamics.regressor(*state, out=out))["typical"] / (count or 1)
    kind = "single states" if count is None else "batches"
    print(f"{MANY} joints, {kind}: {seconds:.1f} s to prepare, {typical * 1e6:.1f} µs per state")
    return {"preparation": seconds, "state": typical}


def spent() -> float:
    """Processor time of this process and the compilers that it has started, s."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


if __name__ == "__main__":
    main()
