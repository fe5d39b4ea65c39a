# SPDX-License-Identifier: Apache-2.0
"""The fit of `identify` by three solvers: Newton's method (ours), a conic program (cvxpy with
Clarabel), and log-Cholesky coordinates with SciPy's BFGS.

All three minimise the same convex function over physically consistent bodies. The table compares
the minima that they reach, the differences of the parameters, and the times. The second needs `pip
install cvxpy clarabel`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from identification import LINKS, description, record
from scipy.optimize import minimize

from robot_dynamics.identification import fit as fits
from robot_dynamics.identification import identify, solve
from robot_dynamics.identification.bodies import BASIS, numbers, pseudo_inertia
from robot_dynamics.identification.solve import Prior

Problem = tuple[np.ndarray, np.ndarray, Prior, float]


def problem(duration: float) -> Problem:
    """G, g, prior and γ of the last fit that `identify` makes of a recording of a 7-joint arm."""
    found: list[Problem] = []
    ours = solve.minimise

    def noted(G: Any, g: Any, prior: Prior, gamma: float, start: Any = None) -> Any:
        found.append((G, g, prior, gamma))
        return ours(G, g, prior, gamma, start)

    fits.minimise = noted
    try:
        with tempfile.TemporaryDirectory() as folder:
            bag = Path(folder) / "bag"
            record(bag, description(LINKS), duration, 500.0)
            identify(description(LINKS), bag)
    finally:
        fits.minimise = ours
    return found[-1]


def objective(case: Problem, x: np.ndarray) -> float:
    """½ xᵀ G x - gᵀ x + γ Σ (tr P₀⁻¹ P - log det P) + ½ Σ λ (s - s₀)²"""
    G, g, prior, gamma = case
    block = 10 * len(prior.bodies)
    value = x @ (G @ x / 2 - g) + prior.tightness @ (x[block:] - prior.scalars) ** 2 / 2
    for i, P0 in enumerate(prior.bodies):
        P = pseudo_inertia(x[10 * i : 10 * i + 10])
        value += gamma * (np.trace(np.linalg.solve(P0, P)) - np.linalg.slogdet(P)[1])
    return float(value)


def newton(case: Problem) -> np.ndarray:
    return solve.minimise(*case)[0]


def conic(case: Problem) -> np.ndarray:
    import cvxpy

    G, g, prior, gamma = case
    # of a size that a conic solver likes
    scale = 1.0 / np.sqrt(np.diag(G) + np.diag(prior.curvature(gamma)))
    y = cvxpy.Variable(len(g))
    x = cvxpy.multiply(scale, y)
    root = np.linalg.cholesky(G * scale * scale[:, None] + 1e-13 * np.eye(len(g)))
    cost = cvxpy.sum_squares(root.T @ y) / 2 - (g * scale) @ y
    block = 10 * len(prior.bodies)
    cost += prior.tightness @ cvxpy.square(x[block:] - prior.scalars) / 2
    for i, P0 in enumerate(prior.bodies):
        P = sum(x[10 * i + k] * BASIS[k] for k in range(10))
        L = np.linalg.cholesky(P0)
        M = np.linalg.solve(L, np.eye(4))
        # tr P₀⁻¹ P - log det P, in coordinates in which the description's body is the unit matrix
        cost += gamma * (cvxpy.trace(M @ P @ M.T) - cvxpy.log_det(M @ P @ M.T))
    cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    return np.asarray(x.value)


def log_cholesky(case: Problem) -> np.ndarray:
    """P = U Uᵀ with eᵅ on U's diagonal (Rucker and Wensing, RA-L 2022): no constraint is left."""
    G, g, prior, gamma = case
    b = len(prior.bodies)
    rows, columns = np.tril_indices(4)
    diagonal = rows == columns
    adjoint = _adjoint()
    units = [np.linalg.cholesky(P) for P in prior.bodies]

    def parts(z: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        factors = []
        for i in range(b):
            U = np.zeros((4, 4))
            entries = z[10 * i : 10 * i + 10]
            U[rows, columns] = np.where(diagonal, np.exp(entries), entries)
            factors.append(U)
        bodies = [numbers(L @ U @ U.T @ L.T) for L, U in zip(units, factors, strict=True)]
        x = np.concatenate([*bodies, z[10 * b :] * scalar])
        return factors, x

    scalar = 1.0 / np.sqrt(np.diag(G)[10 * b :])

    def value(z: np.ndarray) -> tuple[float, np.ndarray]:
        factors, x = parts(z)
        slope = G @ x - g
        slope[10 * b :] += prior.tightness * (x[10 * b :] - prior.scalars)
        f = x @ (G @ x / 2 - g)
        f += prior.tightness @ (x[10 * b :] - prior.scalars) ** 2 / 2
        out = np.concatenate([np.zeros(10 * b), slope[10 * b :] * scalar])
        for i, (L, U) in enumerate(zip(units, factors, strict=True)):
            # numbers(P) is linear
            dP = np.tensordot(slope[10 * i : 10 * i + 10], adjoint, 1)
            S = L.T @ dP @ L + gamma * np.eye(4)
            dU = 2 * S @ U
            f += gamma * (np.sum(U * U) - 2 * np.log(np.diag(U)).sum())
            entry = dU[rows, columns]
            entry = np.where(diagonal, entry * U[rows, columns] - 2 * gamma, entry)
            out[10 * i : 10 * i + 10] = entry
        return float(f), out

    start = np.zeros(len(g))
    done = minimize(value, start, jac=True, method="BFGS", options={"maxiter": 5000, "gtol": 1e-6})
    return parts(done.x)[1]


def _adjoint() -> np.ndarray:
    """(10, 4, 4): slope · numbers(dP) = tr(Σ slope_k adjoint_k dP) for symmetric dP."""
    out = np.zeros((10, 4, 4))
    for i in range(4):
        for j in range(4):
            E = np.zeros((4, 4))
            E[i, j] = E[j, i] = 0.5 if i != j else 1.0
            out[:, i, j] = numbers(E)
    return out


SOLVERS: dict[str, Callable[[Problem], np.ndarray]] = {
    "Newton (ours)": newton,
    "Clarabel by cvxpy": conic,
    "log-Cholesky, BFGS": log_cholesky,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=20.0, metavar="S")
    options = parser.parse_args()
    case = problem(options.duration)
    G, _, prior, _ = case
    print(f"{len(G)} parameters, {len(prior.bodies)} bodies, {options.duration:g} s of motion\n")
    print(
        f"{'':20} {'time':>9} {'above the lowest':>17} {'off, in σ':>10} {'impossible bodies':>18}"
    )
    found = {}
    for name, solver in SOLVERS.items():
        before = time.perf_counter()
        try:
            x = solver(case)
        except ImportError as error:
            print(f"{name:20} {error}")
            continue
        found[name] = (x, time.perf_counter() - before, objective(case, x))
    lowest = min(value for _, _, value in found.values())
    best = next(x for x, _, value in found.values() if value == lowest)
    H = G + prior.curvature(case[3])
    for name, (x, taken, value) in found.items():
        off = np.sqrt((x - best) @ H @ (x - best))
        bodies = [pseudo_inertia(x[10 * i : 10 * i + 10]) for i in range(len(prior.bodies))]
        bad = sum(float(np.linalg.eigvalsh(P)[0]) <= 0 for P in bodies)
        print(f"{name:20} {taken * 1e3:6.0f} ms {value - lowest:17.1e} {off:10.1e} {bad:18d}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
