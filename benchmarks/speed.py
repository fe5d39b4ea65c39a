# SPDX-License-Identifier: Apache-2.0
"""Single-state calls and batches of ours and of other libraries, from Python, in one run.

    python benchmarks/speed.py [--json OUT] [--picture OUT]

Needs Pinocchio (`pin`); MuJoCo, Drake (`drake`) and robotics-toolbox-python
(`roboticstoolbox-python`) are measured if they are installed.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
from libraries import LIBRARIES, revolute
from limits import empty_call, operations_a_second
from robots import chain, chain_urdf, states
from timing import keep, parser, per_call

import robot_dynamics as rd
from robot_dynamics.app.plots import figure
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.formulations.options import Options

JOINTS = (7, 48)
BATCHES = ((7, 20_000), (7, 400_000), (48, 2_000))
"""(joints, states)"""
CLOSED = ("rrr", "five_bar", "delta", "gough_stewart")
CONFIG = Path(__file__).resolve().parents[1] / "config"
PATH = np.linspace(0, 2 * np.pi, 2048)
AGREEMENT = 1e-9
"""Relative to the largest torque"""


def main() -> None:
    options = parser(__doc__, draws=True).parse_args()
    results: dict[str, Any] = {"call": {}, "batch": {}}
    for n in JOINTS:
        results["call"][str(n)] = calls(n)
    for n, rows in BATCHES:
        results["batch"][f"{n} joints, {rows} states"] = batches(n, rows)
    results["closed"] = closed(results["call"][str(JOINTS[0])]["torques"]["typical"])
    keep(options.json, results)
    if options.picture:
        draw(results, options.picture)


def calls(n: int) -> dict[str, Any]:
    """Seconds a call at n joints, ours and others'."""
    urdf = chain_urdf(n)
    q, qd, qdd = states(n)
    dynamics = rd.InverseDynamics(chain(n))
    found: dict[str, Any] = {}
    expected = dynamics(q, qd, qdd)
    print(f"\n{n} joints, one call: {dynamics.backend}")
    functions = {
        "torques": lambda: dynamics(q, qd, qdd),
        "mass matrix": lambda: dynamics.mass_matrix(q),
        "Coriolis matrix": lambda: dynamics.coriolis_matrix(q, qd),
        "gravity": lambda: dynamics.gravity(q),
    }
    for name, function in functions.items():
        found[name] = per_call(function)
    python = rd.InverseDynamics(chain(n), backend="python")
    found["torques in Python alone"] = per_call(lambda: python(q, qd, qdd))
    for name, build in LIBRARIES.items():
        try:
            call = build(urdf, q, qd, qdd)
        except ImportError as error:
            print(f"  {name}: NOT MEASURED: {error}")
            continue
        error = abs(np.ravel(call()) - expected).max() / abs(expected).max()
        if error > AGREEMENT:
            print(f"  {name}: its torques differ by {error:.1e} (relative)")
        found[name] = per_call(call)
    empty = empty_call()
    found["an empty function in C"] = per_call(lambda: empty(q, qd, qdd))
    ours = found["torques"]["typical"]
    for name, time in found.items():
        print(
            f"  {name:25} {time['typical'] * 1e6:9.3f} µs   p50 {time['p50'] * 1e6:9.3f}   "
            f"p99 {time['p99'] * 1e6:9.3f}   torques are {ours / time['typical']:.2f} of it"
        )
    return found


def batches(n: int, rows: int) -> dict[str, Any]:
    """Seconds a state in batches of n joints, by threads."""
    q, qd, qdd = states(n, rows)
    found: dict[str, Any] = {}
    print(f"\n{n} joints, {rows} states in one call, µs per state")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    peak, operations = operations_a_second(), operations_of(n)
    for threads in sorted({1, 2, cores} & set(range(1, cores + 1))):
        dynamics = rd.InverseDynamics(chain(n), threads=threads)
        ours = per_call(lambda d=dynamics: d(q, qd, qdd))["typical"] / rows
        theirs = pinocchio_batch(n, threads, q, qd, qdd, dynamics(q, qd, qdd))
        found[str(threads)] = {"robot_dynamics": ours, "pinocchio": theirs}
        print(
            f"  threads {threads}: robot_dynamics {ours * 1e6:.4f}   "
            f"pin.rneaInParallel {theirs * 1e6:.4f}   ratio {ours / theirs:.3f}   "
            f"{ours * threads * peak / operations:.1f} x {operations} additions at their peak"
        )
    return found


def operations_of(n: int) -> int:
    """Of the torques at one state, a sine or a cosine as one."""
    robot = OpenChain(chain(n), Options())
    return robot.function("torques").record(guard=False).operations


def closed(seven_joints: float) -> dict[str, Any]:
    """Seconds a call along a smooth path, the closure solved at each state."""
    found: dict[str, Any] = {}
    print(f"\nclosed chains on a path of {len(PATH)} states, one call per state")
    for name in CLOSED:
        mechanism = rd.load(CONFIG / f"{name}.yaml")
        dynamics = rd.InverseDynamics(mechanism)
        home = np.array([mechanism.home[joint] for joint in dynamics.joint_names])
        path = home + 0.02 * np.sin(PATH)[:, None]
        rate = np.ones(len(home))
        place = itertools.cycle(range(len(path)))
        found[name] = per_call(lambda d=dynamics, p=path, k=place, r=rate: d(p[next(k)], r, r))
        time = found[name]["typical"]
        print(f"  {name:15} {time * 1e6:7.3f} µs, {time / seven_joints:.2f} of a 7-joint call")
    return found


def pinocchio_batch(
    n: int, threads: int, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, expected: np.ndarray
) -> float:
    try:
        import pinocchio as pin
    except ImportError as error:
        print(f"  pinocchio: NOT MEASURED: {error}")
        return float("nan")
    model = pin.buildModelFromXML(revolute(chain_urdf(n)))
    pool = pin.ModelPool(model, threads)
    q, qd, qdd = (np.asfortranarray(x.T) for x in (q, qd, qdd))
    tau = np.zeros(q.shape, order="F")
    call = lambda: pin.rneaInParallel(threads, pool, q, qd, qdd, tau)  # noqa: E731
    typical = per_call(call)["typical"]
    assert abs(tau.T - expected).max() < AGREEMENT * abs(expected).max()
    return typical / q.shape[1]


def draw(results: dict[str, Any], path: Any) -> None:
    drawing, (axes,) = figure(1, len(JOINTS), width=11, height=4)
    for axis, n in zip(axes, JOINTS, strict=True):
        times = results["call"][str(n)]
        names = sorted(times, key=lambda name: times[name]["typical"], reverse=True)
        values = [times[name]["typical"] * 1e6 for name in names]
        others = set(LIBRARIES)
        colours = ["tab:grey" if name in others else "tab:blue" for name in names]
        bars = axis.barh(names, values, color=colours)
        axis.bar_label(bars, [f"{x:.2f}" if x < 100 else f"{x:,.0f}" for x in values], padding=3)
        axis.set_xscale("log")
        axis.set_xlim(right=max(values) * 12)
        axis.set_xlabel("µs a call from Python")
        axis.set_title(f"{n} joints (blue: robot_dynamics)")
    drawing.savefig(path, dpi=120)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
