# SPDX-License-Identifier: Apache-2.0
"""Operations, times and fitted exponents of the four formulations, by number of joints.

    python benchmarks/formulations.py [--json OUT] [--picture OUT]

Operations are those of the recorded program, sines and cosines included, after the elimination of
common subexpressions, zeros and ones. For newton_euler they are also counted without base
parameters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from robots import chain, states
from timing import keep, parser, per_call

import robot_dynamics as rd
from robot_dynamics.app.plots import figure
from robot_dynamics.codegen.recorder import Program, record
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import Equations
from robot_dynamics.mechanism.base_parameters import compact, regrouped, sparse_frames

JOINTS = (2, 3, 4, 6, 7, 9, 12, 24, 48, 96)
MOST_JOINTS = {"lagrange_euler": 12}
"""Its programs grow with the fourth power"""
MOST_COMPILED = 30_000
"""Operations of the largest program that is timed"""
MICROSECONDS = (0.2, 0.5, 1, 2, 5)


def main() -> None:
    options = parser(__doc__, draws=True).parse_args()
    results: dict[str, Any] = {"operations": {}, "seconds": {}, "exponents": {}}
    for name in FORMULATIONS:
        counts, times = {}, {}
        for n in JOINTS:
            if n > MOST_JOINTS.get(name, n):
                continue
            mechanism = chain(n)
            counts[n] = recorded(name, n).operations
            if counts[n] <= MOST_COMPILED:
                dynamics = rd.InverseDynamics(mechanism, name)
                q, qd, qdd = states(n)
                times[n] = per_call(lambda d=dynamics, x=(q, qd, qdd): d(*x), 0.1)["typical"]
        results["operations"][name] = counts
        results["seconds"][name] = times
        results["exponents"][name] = exponent(counts)
        print(f"{name}: operations ~ n^{exponent(counts):.2f} at the upper end")
        for n, count in counts.items():
            time = f"{times[n] * 1e6:10.3f} µs a call" if n in times else ""
            print(f"  {n:3} joints {count:8} operations {time}")
    results["newton_euler in steps"] = customised()
    keep(options.json, results)
    if options.picture:
        draw(results, options.picture)


def recorded(name: str, n: int) -> Program:
    equations = Equations.of(chain(n), name)
    if name == "newton_euler":
        equations = replace(equations, mechanism=compact(equations.mechanism))
    return record(equations.torques, [n] * 3)


def exponent(counts: dict[int, int]) -> float:
    """k of the line log count = k log n + c through the upper half of the points."""
    n = sorted(counts)[len(counts) // 2 :]
    return float(np.polyfit(np.log(n), np.log([counts[each] for each in n]), 1)[0])


def customised() -> dict[str, Any]:
    """What each step towards fewer operations brings."""
    found: dict[str, Any] = {}
    forms = {
        "as described": lambda mechanism: mechanism,
        "sparse frames": sparse_frames,
        "base parameters": regrouped,
        "both": compact,
    }
    print("newton_euler, general revolute joints: multiplications + additions")
    for n in (6, 7, 48):
        found[str(n)] = {}
        equations = Equations.of(chain(n))
        for name, form in forms.items():
            changed = replace(equations, mechanism=form(equations.mechanism))
            kinds = Counter(step[0] for step in record(changed.torques, [n] * 3).instructions)
            sums = kinds["add"] + kinds["sub"] + kinds["neg"]
            found[str(n)][name] = {"multiplications": kinds["mul"], "additions": sums}
        for name, each in found[str(n)].items():
            print(f"  {n:3} joints, {name:16} {each['multiplications']:5} + {each['additions']}")
    return found


def draw(results: dict[str, Any], path: Any) -> None:
    drawing, (axes,) = figure(1, 2, width=11, height=4.5)
    for axis, what, label in zip(
        axes, ("operations", "seconds"), ("operations", "µs a call from Python"), strict=True
    ):
        for name, values in results[what].items():
            k = results["exponents"][name]
            text = f"{name}, n^{k:.2f} at the end" if what == "operations" else name
            scale = 1e6 if what == "seconds" else 1.0
            axis.loglog(list(values), [x * scale for x in values.values()], "o-", label=text)
        axis.set_xticks(JOINTS, [str(n) for n in JOINTS])
        axis.minorticks_off()
        if what == "seconds":
            axis.set_yticks(MICROSECONDS, [f"{x:g}" for x in MICROSECONDS])
        axis.set_xlabel("joints")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        axis.legend()
    drawing.savefig(path, dpi=120)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
