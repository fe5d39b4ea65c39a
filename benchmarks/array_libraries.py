# SPDX-License-Identifier: Apache-2.0
"""Single-state calls over CasADi: our dynamics and ADAM's, CasADi's C code and our own kernel.

    python benchmarks/array_libraries.py [--json OUT]   (pip install casadi adam-robotics liecasadi)

ADAM's robots have a floating base: its torques are computed from D (n + 6, n + 6) and the bias
force C q̇ + g. Both libraries' functions run in CasADi's virtual machine, through its buffers.
CasADi's C code is compiled for this processor with -O3, as our kernels are.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from adam.casadi import KinDynComputations
from libraries import revolute
from robots import chain, chain_urdf, states
from timing import keep, parser, per_call

import robot_dynamics as rd

JOINTS = (7, 24)
AGREEMENT = 1e-9


def main() -> None:
    options = parser(__doc__).parse_args()
    keep(options.json, {str(n): measured(n) for n in JOINTS})


def measured(n: int) -> dict[str, Any]:
    mechanism = chain(n)
    q, qd, qdd = states(n)
    dynamics, f = rd.InverseDynamics(mechanism), rd.functions(mechanism, "casadi")
    expected = dynamics(q, qd, qdd)
    close = AGREEMENT * np.abs(expected).max()
    calls: dict[str, Callable[[], Any]] = {"our kernel": lambda: dynamics(q, qd, qdd)}
    for name, function in (
        ("over CasADi", f.torques),
        ("over CasADi, its C", compiled(f.torques)),
        ("ADAM over CasADi", adams(n, mechanism)),
    ):
        evaluate, result = buffered(function, q, qd, qdd)
        evaluate()
        np.testing.assert_allclose(result.ravel(order="F"), expected, rtol=0, atol=close)
        calls[name] = evaluate
    times = {name: per_call(call)["typical"] * 1e6 for name, call in calls.items()}
    for name, time in times.items():
        print(f"{n:3d} joints  {name:20s} {time:8.2f} µs")
    by_adam = times["over CasADi"] / times["ADAM over CasADi"]
    by_kernel = times["over CasADi, its C"] / times["our kernel"]
    print(
        f"{n:3d} joints  over CasADi / ADAM {by_adam:.2f}, CasADi's C / our kernel {by_kernel:.2f}"
    )
    return times


def adams(n: int, mechanism: rd.Mechanism) -> Any:
    """tau(q, qd, qdd) of the joints on a base that stands still."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.urdf"
        path.write_text(revolute(chain_urdf(n)))
        theirs = KinDynComputations(str(path), list(mechanism.joint_names), mechanism.base)
    theirs.g = casadi.DM([*mechanism.gravity, 0, 0, 0])
    q, qd, qdd = (casadi.SX.sym(name, n) for name in ("q", "qd", "qdd"))
    H, still = casadi.SX.eye(4), casadi.SX.zeros(6)
    D = theirs.mass_matrix_fun()(H, q)
    bias = theirs.bias_force_fun()(H, q, still, qd)
    return casadi.Function("adam", [q, qd, qdd], [(D @ casadi.vertcat(still, qdd) + bias)[6:]])


def compiled(function: Any) -> Any:
    """The same by the C that CasADi prints."""
    folder = Path(tempfile.mkdtemp())
    function.generate("torques.c", {"with_header": False})
    Path("torques.c").rename(folder / "torques.c")
    flags = ["-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run(["cc", *flags, "torques.c", "-o", "torques.so", "-lm"], cwd=folder, check=True)
    return casadi.external(function.name(), str(folder / "torques.so"))


def buffered(function: Any, *vectors: np.ndarray) -> tuple[Callable[[], Any], np.ndarray]:
    """(a call with nothing in between, where its result is)"""
    buffer, evaluate = function.buffer()
    result = np.zeros(function.size_out(0), order="F")
    for k, vector in enumerate(vectors):
        buffer.set_arg(k, memoryview(np.ascontiguousarray(vector)))
    buffer.set_res(0, memoryview(result))
    kept = buffer, vectors  # as long as the call
    return lambda: evaluate() if kept else None, result


if __name__ == "__main__":
    main()
