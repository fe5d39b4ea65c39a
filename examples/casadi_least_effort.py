# SPDX-License-Identifier: Apache-2.0
"""The motion of a six-axis arm between two poses with the least effort, within torque limits.

Direct collocation by the trapezoidal rule; IPOPT is part of CasADi's wheel.
Run it: python examples/casadi_least_effort.py
"""

from __future__ import annotations

import casadi
import numpy as np

import robot_dynamics as rd

DURATION = 1.2  # s
INTERVALS = 30
START = np.array([0.0, -0.8, 1.2, 0.0, 0.6, 0.0])
END = np.array([1.2, -1.3, 1.6, 0.5, 0.2, 0.3])


def solve(intervals: int = INTERVALS) -> dict[str, np.ndarray]:
    """q, qd, qdd, tau (n, intervals + 1) and the limits of the torques (n,)."""
    mechanism = rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    torques = rd.functions(mechanism, "casadi", friction_smoothing=0.05).torques
    limits = np.array([link.joint.limits.effort for link in mechanism.moving])
    n, h = len(limits), DURATION / intervals

    problem = casadi.Opti()
    q, qd, qdd = (problem.variable(n, intervals + 1) for _ in range(3))
    tau = torques.map(intervals + 1)(q, qd, qdd)
    # q_{k+1} = q_k + h (q̇_k + q̇_{k+1}) / 2, and the same for the rates
    for x, rate in ((q, qd), (qd, qdd)):
        problem.subject_to(x[:, 1:] == x[:, :-1] + h / 2 * (rate[:, :-1] + rate[:, 1:]))
    for k, pose in ((0, START), (-1, END)):
        problem.subject_to(q[:, k] == pose)
        problem.subject_to(qd[:, k] == 0)
    scaled = tau / casadi.repmat(casadi.DM(limits), 1, intervals + 1)
    problem.subject_to(problem.bounded(-1, casadi.vec(scaled), 1))
    problem.minimize(casadi.sumsqr(scaled) * h)
    problem.set_initial(q, np.linspace(START, END, intervals + 1).T)
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    solution = problem.solve()
    found = {name: solution.value(x) for name, x in
             {"q": q, "qd": qd, "qdd": qdd, "tau": tau}.items()}  # fmt: skip
    return found | {"limits": limits, "cost": np.array(solution.value(problem.f))}


if __name__ == "__main__":
    motion = solve()
    print("largest share of each joint's torque limit:")
    print(np.round(np.abs(motion["tau"]).max(axis=1) / motion["limits"], 3))
