# SPDX-License-Identifier: Apache-2.0
"""A six-axis arm's model for acados, and an optimal reach computed with it.

acados accepts models as implicit equations, so inverse dynamics can be used directly: no mass
matrix is inverted.

    0 = [q̇ - d/dt q;  D(q) d/dt q̇ + C(q, q̇) q̇ + g(q) + friction(q, q̇) - τ]      x = [q; q̇], u = τ

Run it: python examples/acados_reach.py. Without acados (docs.acados.org), only the model is made,
and the output says so; nothing is solved.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import casadi
import numpy as np

import robot_dynamics as rd

HORIZON, STAGES = 0.8, 40  # s
START = np.array([0.0, -0.8, 1.2, 0.0, 0.6, 0.0])
END = np.array([0.4, -1.1, 1.4, 0.3, 0.4, 0.2])
NAME = "six_axis"  # name of the C code that acados generates


def expressions(mechanism: rd.Mechanism) -> dict[str, casadi.SX]:
    """x (2n,), xdot (2n,), u (n,), implicit (2n,), which is zero, and explicit (2n,), equal to
    xdot."""
    functions = rd.functions(mechanism, "casadi", friction_smoothing=0.05)
    n = len(functions.joint_names)
    q, qd, rate, qdd, tau = (casadi.SX.sym(name, n) for name in ("q", "qd", "rate", "qdd", "tau"))
    return {
        "x": casadi.vertcat(q, qd),
        "xdot": casadi.vertcat(rate, qdd),
        "u": tau,
        "implicit": casadi.vertcat(qd - rate, functions.torques(q, qd, qdd) - tau),
        "explicit": casadi.vertcat(qd, functions.forward(q, qd, tau)),
    }


def acados_model(mechanism: rd.Mechanism) -> Any:
    """The `AcadosModel`.

    Raises:
        ImportError: acados's Python package is not installed.
    """
    from acados_template import AcadosModel

    found = expressions(mechanism)
    model = AcadosModel()
    model.name = NAME
    model.x, model.xdot, model.u = found["x"], found["xdot"], found["u"]
    model.f_impl_expr, model.f_expl_expr = found["implicit"], found["explicit"]
    return model


def solve(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """x (STAGES + 1, 2n) and tau (STAGES, n) of the reach; acados writes its C code to the
    folder."""
    from acados_template import AcadosOcp, AcadosOcpSolver

    mechanism = rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    limits = np.array([link.joint.limits.effort for link in mechanism.moving])
    n = len(limits)
    ocp = AcadosOcp()
    ocp.model = acados_model(mechanism)
    ocp.dims.N, ocp.solver_options.tf = STAGES, HORIZON
    ocp.solver_options.integrator_type = "IRK"
    ocp.solver_options.nlp_solver_type = "SQP"
    ocp.solver_options.nlp_solver_max_iter = 100
    # ∫ (x - x_end)ᵀ Q (x - x_end) + τᵀ R τ
    Q, R = np.diag([100.0] * n + [1.0] * n), np.diag(0.1 / limits**2)
    ocp.cost.cost_type = ocp.cost.cost_type_e = "LINEAR_LS"
    ocp.cost.W, ocp.cost.W_e = np.block([[Q, np.zeros((2 * n, n))], [np.zeros((n, 2 * n)), R]]), Q
    ocp.cost.Vx = np.vstack([np.eye(2 * n), np.zeros((n, 2 * n))])
    ocp.cost.Vu, ocp.cost.Vx_e = np.vstack([np.zeros((2 * n, n)), np.eye(n)]), np.eye(2 * n)
    end = np.concatenate([END, np.zeros(n)])
    ocp.cost.yref, ocp.cost.yref_e = np.concatenate([end, np.zeros(n)]), end
    ocp.constraints.x0 = np.concatenate([START, np.zeros(n)])
    ocp.constraints.lbu, ocp.constraints.ubu = -limits, limits
    ocp.constraints.idxbu = np.arange(n)
    ocp.code_export_directory = str(folder / "c")
    solver = AcadosOcpSolver(ocp, json_file=str(folder / "ocp.json"))
    status = solver.solve()
    if status:
        raise SystemExit(f"acados: found status {status}, expected 0 (solved)")
    x = np.array([solver.get(k, "x") for k in range(STAGES + 1)])
    return x, np.array([solver.get(k, "u") for k in range(STAGES)])


if __name__ == "__main__":
    try:
        with tempfile.TemporaryDirectory() as made:
            motion, torques = solve(Path(made))
    except ImportError as error:
        equations = expressions(rd.load("package://robot_dynamics/urdf/six_axis.urdf"))
        print(f"NOT SOLVED: acados is not installed ({error}); the model was made, with")
        print(", ".join(f"{name} {x.shape[0]}" for name, x in equations.items()))
    else:
        print("left of the way after", HORIZON, "s:", np.round(motion[-1, :6] - END, 4))
        print("largest torques, N·m:", np.round(np.abs(torques).max(axis=0), 1))
