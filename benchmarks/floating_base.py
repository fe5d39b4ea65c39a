# SPDX-License-Identifier: Apache-2.0
"""Floating-base dynamics compared with Pinocchio's free flyer: single calls, and 1,000 states.

    python benchmarks/floating_base.py [ROBOT...] [--json OUT]

Robots are given by names that `rd.load` knows (default: some with files of their own). Pinocchio is
called from Python; 1,000 states are one call on one thread for us, and a loop for Pinocchio.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pinocchio as pin
from timing import keep, parser, per_call

import robot_dynamics as rd
from robot_dynamics.description.known import known_robot

ROBOTS = ("solo12", "go2", "icub_reduced", "talos_reduced")
RIGID = ("inertia", "coriolis", "gravity", "rotors")
STATES = 1000


def main() -> None:
    reader = parser(__doc__)
    reader.add_argument("robots", nargs="*", default=ROBOTS)
    options = reader.parse_args()
    results: dict[str, Any] = {}
    print(f"{'':42s}{'ours':>10s}{'Pinocchio':>12s}{'ratio':>8s}{'differ by':>12s}")
    for name in options.robots:
        results[name] = measured(name)
    keep(options.json, results)


def measured(name: str) -> dict[str, Any]:
    """Of each function (ours, Pinocchio's, ratio), s a call, and how far they differ."""
    path = known_robot(name)
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data, joints = model.createData(), list(model.names)[2:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = rd.FloatingBase(rd.load(name), joints=joints, terms=RIGID, threads=1)
    rng = np.random.default_rng(0)
    n = model.nv
    q = np.array(
        [pin.integrate(model, pin.neutral(model), x) for x in rng.normal(size=(STATES, n))]
    )
    v, a, tau = rng.uniform(-2, 2, (3, STATES, n))
    one = q[0], v[0], a[0]
    found: dict[str, Any] = {}

    def beside(what: str, ours: Any, theirs: Any) -> None:
        off = 0.0
        for x, y in zip(_several(ours()), _several(theirs()), strict=True):
            off = max(off, float(abs(x - y).max() / abs(y).max()))
        times = [per_call(call)["typical"] for call in (ours, theirs)]
        found[what] = {"ours": times[0], "pinocchio": times[1], "differ": off}
        print(
            f"{name + ' (' + str(n) + '): ' + what:42s}{times[0] * 1e6:8.2f} µs"
            f"{times[1] * 1e6:10.2f} µs{times[0] / times[1]:8.2f}{off:12.1e}"
        )

    def derivatives() -> Any:
        pin.computeRNEADerivatives(model, data, *one)
        return data.dtau_dq, data.dtau_dv

    beside("rnea", lambda: robot(*one), lambda: pin.rnea(model, data, *one))
    beside("aba", lambda: robot.forward(q[0], v[0], tau[0]),
           lambda: pin.aba(model, data, q[0], v[0], tau[0]))  # fmt: skip
    beside("derivatives", lambda: robot.derivatives(*one)[:2], derivatives)
    beside(
        f"rnea of {STATES} states",
        lambda: robot(q, v, a),
        lambda: np.array([pin.rnea(model, data, *x) for x in zip(q, v, a, strict=True)]),
    )
    return found


def _several(x: Any) -> Any:
    return x if isinstance(x, tuple) else (x,)


if __name__ == "__main__":
    main()
