# SPDX-License-Identifier: Apache-2.0
"""Preparation time, step by step, by number of joints.

    python benchmarks/preparation.py [--json OUT] [--picture OUT]

The steps are: derive (forms of the mechanism), record, print, compile, load, and one call; then all
of them in a new process, with an empty cache and with a filled one.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from robots import chain_urdf, states
from timing import in_new_process, keep, parser, per_call

import robot_dynamics as rd
from robot_dynamics.app.plots import figure
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.codegen import c_kernels, compiler
from robot_dynamics.codegen.c_code import SCALAR, CCode
from robot_dynamics.formulations.options import Options

JOINTS = (2, 4, 7, 12, 24, 48, 96)
FRESH = (7, 48)
STEPS = ("load", "derive", "record", "print", "compile")

READY = """
import time
import robot_dynamics as rd
rd.InverseDynamics
mechanism = rd.load({file!r})
start = time.perf_counter()
dynamics = rd.InverseDynamics(mechanism)
dynamics({zeros}, {zeros}, {zeros})
print(time.perf_counter() - start)
"""
IMPORT = """
import time
start = time.perf_counter()
import robot_dynamics as rd
rd.load, rd.InverseDynamics
print(time.perf_counter() - start)
"""


def main() -> None:
    options = parser(__doc__, draws=True).parse_args()
    results: dict[str, Any] = {"steps": {}, "fresh": {}}
    print("joints  operations  " + "".join(f"{step:>9}" for step in STEPS) + "  ms;  call, µs")
    for n in JOINTS:
        results["steps"][str(n)] = found = steps(n)
        print(
            f"{n:6} {found['operations']:11}  "
            + "".join(f"{found[step] * 1e3:9.1f}" for step in STEPS)
            + f"   {found['call'] * 1e6:11.3f}"
        )
    results["import"] = min(in_new_process(IMPORT) for _ in range(3))
    print(f"import robot_dynamics, load and InverseDynamics: {results['import']:.3f} s")
    for n in FRESH:
        results["fresh"][str(n)] = found = fresh(n)
        print(
            f"{n} joints, ready in a new process: {found['empty']:.3f} s with an empty cache, "
            f"{found['full']:.3f} s from the cache"
        )
    keep(options.json, results)
    if options.picture:
        draw(results, options.picture)


def steps(n: int) -> dict[str, Any]:
    """Seconds of each step."""
    urdf = chain_urdf(n)
    times: dict[str, Any] = {}

    def timed(step: str, function: Any) -> Any:
        start = time.perf_counter()
        value = function()
        times[step] = time.perf_counter() - start
        return value

    mechanism = timed("load", lambda: rd.load(urdf))
    chain = timed("derive", lambda: OpenChain(mechanism, Options()))
    program = timed("record", lambda: chain.function("torques").record())
    source = timed("print", lambda: c_kernels.single_files(CCode(program, SCALAR)))
    cc = compiler.find()
    timed("compile", lambda: cc.shared_library(source, ("-O2",)))
    dynamics = rd.InverseDynamics(mechanism)
    q, qd, qdd = states(n)
    times["call"] = per_call(lambda: dynamics(q, qd, qdd))["typical"]
    times["operations"] = program.operations
    return times


def fresh(n: int) -> dict[str, float]:
    """Seconds until the first torque is there, after the import, in new processes."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "robot.urdf")
        file.write_text(chain_urdf(n))
        code = READY.format(file=str(file), zeros=[0.0] * n)
        cache = str(Path(place, "cache"))
        empty = in_new_process(code, ROBOT_DYNAMICS_CACHE=cache)
        full = min(in_new_process(code, ROBOT_DYNAMICS_CACHE=cache) for _ in range(3))
    return {"empty": empty, "full": full}


def draw(results: dict[str, Any], path: Any) -> None:
    drawing, ((axis,),) = figure(1, 1, width=7, height=4.5)
    for step in (*STEPS, "call"):
        axis.loglog(JOINTS, [results["steps"][str(n)][step] for n in JOINTS], "o-", label=step)
    axis.set_xticks(JOINTS, [str(n) for n in JOINTS])
    axis.minorticks_off()
    axis.set_xlabel("joints")
    axis.set_ylabel("s")
    axis.set_title("Getting ready, and one call")
    axis.grid(alpha=0.3)
    axis.legend()
    drawing.savefig(path, dpi=120)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
