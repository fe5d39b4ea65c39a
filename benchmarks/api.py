# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics, derivatives, matrices, energies and Jacobians of single states, compared with
Pinocchio's.

python benchmarks/api.py [--json OUT]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from libraries import revolute
from limits import operations_a_second
from robots import chain, chain_urdf, states
from timing import keep, parser, per_call

import robot_dynamics as rd
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.formulations.options import Options

JOINTS = (7, 24)
STATES = 500
"""Of a batch that stays in the cache"""
AGREEMENT = 1e-9


def main() -> None:
    options = parser(__doc__).parse_args()
    results: dict[str, Any] = {}
    for n in JOINTS:
        results[str(n)] = measured(n)
    keep(options.json, results)


def measured(n: int) -> dict[str, Any]:
    dynamics = rd.InverseDynamics(chain(n))
    model = pin.buildModelFromXML(revolute(chain_urdf(n)))
    data = model.createData()
    q, qd, qdd = states(n)
    tau, link = dynamics(q, qd, qdd), f"link{n - 1}"
    frame = model.getFrameId(link)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "torques / rnea": (
            lambda: dynamics(q, qd, qdd),
            lambda: pin.rnea(model, data, q, qd, qdd),
        ),
        "forward / aba": (
            lambda: dynamics.forward(q, qd, tau),
            lambda: pin.aba(model, data, q, qd, tau),
        ),
        "derivatives / computeRNEADerivatives": (
            lambda: dynamics.derivatives(q, qd, qdd),
            lambda: pin.computeRNEADerivatives(model, data, q, qd, qdd),
        ),
        "mass_matrix / crba": (
            lambda: dynamics.mass_matrix(q),
            lambda: pin.crba(model, data, q),
        ),
        "coriolis_matrix / computeCoriolisMatrix": (
            lambda: dynamics.coriolis_matrix(q, qd),
            lambda: pin.computeCoriolisMatrix(model, data, q, qd),
        ),
        "kinetic_energy / computeKineticEnergy": (
            lambda: dynamics.kinetic_energy(q, qd),
            lambda: pin.computeKineticEnergy(model, data, q, qd),
        ),
        "jacobian / computeFrameJacobian": (
            lambda: dynamics.jacobian(q, link),
            lambda: pin.computeFrameJacobian(model, data, q, frame, aligned),
        ),
    }
    found = {}
    print(f"\n{n} joints, µs per call")
    for name, (ours, theirs) in pairs.items():
        mine, other = (np.ravel(x()[0] if isinstance(x(), tuple) else x()) for x in (ours, theirs))
        assert abs(mine - other).max() < AGREEMENT * abs(other).max(), name
        # in turns: what else runs on the machine meets both
        times = [
            (per_call(ours, 0.1)["typical"], per_call(theirs, 0.1)["typical"]) for _ in "1234567"
        ]
        a, b = (float(np.median(each)) for each in zip(*times, strict=True))
        found[name] = {"robot_dynamics": a, "pinocchio": b, "ratio": a / b}
        print(f"  {name:40} {a * 1e6:8.3f} {b * 1e6:8.3f}   {a / b:.2f} of it")
    found["batches"] = batches(dynamics, n)
    return found


def batches(dynamics: rd.InverseDynamics, n: int) -> dict[str, float]:
    """Times of a state in a batch, as multiples of its additions at the processor's peak."""
    q, qd, qdd = states(n, STATES)
    single = rd.InverseDynamics(dynamics.mechanism, threads=1)
    tree = OpenChain(dynamics.mechanism, Options())
    found = {}
    for name, call in (("derivatives", single.derivatives), ("forward", single.forward)):
        operations = tree.function(name).record(guard=False).operations
        seconds = per_call(lambda c=call: c(q, qd, qdd), 0.2)["typical"] / STATES
        found[name] = seconds * operations_a_second() / operations
        print(
            f"  {name + ', batch, one thread':40} {seconds * 1e6:8.3f} µs a state, "
            f"{found[name]:.1f} x {operations} additions at their peak"
        )
    return found


if __name__ == "__main__":
    main()
