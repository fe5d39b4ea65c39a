# SPDX-License-Identifier: Apache-2.0
"""The equations of motion linearised about a state, or about every state of a motion.

With x = [q; q̇] and u = τ:  δẋ = A δx + B δu.  From τ = D q̈ + b(q, q̇),

    ∂q̈/∂q = -D⁻¹ ∂τ/∂q,   ∂q̈/∂q̇ = -D⁻¹ ∂τ/∂q̇,   ∂q̈/∂τ = D⁻¹
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, wrong
from ..inputs import as_floats
from ..scalar import Floats


@dataclass(frozen=True, eq=False)
class Linearization:
    """δẋ = A δx + B δu about (q, qd, tau); leading axes are those of a batch."""

    A: Floats
    """(…, 2n, 2n); an entry has the unit of its row's state per unit of its column's state and s"""
    B: Floats
    """(…, 2n, m): zero for the joints' positions, ∂q̈/∂τ for their velocities"""
    state_names: tuple[str, ...]
    """x: the joints, then `d/dt` of each"""
    state_units: tuple[str, ...]
    """rad, m, rad/s, m/s"""
    input_names: tuple[str, ...]
    """u: the joints with a motor"""
    input_units: tuple[str, ...]
    """N·m, N"""
    q: Floats
    """(…, n): positions, rad or m"""
    qd: Floats
    """(…, n): velocities, rad/s or m/s"""
    qdd: Floats
    """(…, n): the accelerations at this state and these torques, rad/s² or m/s²"""
    tau: Floats
    """(…, m): the torques, N·m or N"""

    @property
    def poles(self) -> NDArray[np.complex128]:
        """(…, 2n), complex, 1/s: the eigenvalues of A, NaN where A is."""
        sound = np.isfinite(self.A).all(axis=(-2, -1))
        found = np.full(self.A.shape[:-1], np.nan, dtype=np.complex128)
        found[sound] = np.linalg.eigvals(self.A[sound])
        return found


def linearized(
    dynamics: Any, q: ArrayLike, qd: ArrayLike | None, tau: ArrayLike | None
) -> Linearization:
    """The linearised dynamics of an `InverseDynamics`; see `InverseDynamics.linearize`.

    Args:
        dynamics: the `InverseDynamics`.
        q, qd, tau: as there.

    Raises:
        InputError, ClosureError: as there.
    """
    names, motors = dynamics.joint_names, dynamics.actuated_names
    n, m = len(names), len(motors)
    q = as_floats("q", q)
    qd = np.zeros(n) if qd is None else as_floats("qd", qd)
    closed = dynamics.closed
    if closed is not None and closed.sensed:
        raise wrong(
            InputError, "sensed", True, "False: torques determine the motion of the actuated joints"
        )
    if tau is None:
        # the torques that keep the rates constant
        qdd = np.zeros((*np.broadcast_shapes(q.shape[:-1], qd.shape[:-1]), n))
        tau = dynamics(q, qd, qdd)
    else:
        tau = as_floats("tau", tau)
        qdd = dynamics.forward(q, qd, tau)
        if m > n and not _alike(tau, dynamics(q, qd, qdd)):
            raise wrong(
                InputError,
                "tau",
                tau.tolist(),
                f"the least-norm torques of that motion, as a call returns: {m} motors move {n} "
                "degrees of freedom, and internal forces between them are not linearised",
            )
    of_q, of_qd, D = dynamics.derivatives(q, qd, qdd)
    if m > n:
        # the generalised forces on q are Aᵀ τ
        assert closed is not None
        A_T = np.swapaxes(closed.motor_rates(closed.forward_kinematics(q)), -1, -2)
        of_q, of_qd, D, B = A_T @ of_q, A_T @ of_qd, A_T @ D, A_T
    else:
        B = np.broadcast_to(np.eye(n), D.shape)
    try:
        lower = np.linalg.solve(D, np.concatenate([-of_q, -of_qd, B], axis=-1))
    except np.linalg.LinAlgError:
        raise InputError(
            f"{dynamics.mechanism.label}: D is singular: a joint moves no mass or inertia", name="D"
        ) from None
    shape = lower.shape[:-2]
    A = np.zeros((*shape, 2 * n, 2 * n))
    A[..., :n, n:] = np.eye(n)
    A[..., n:, :] = lower[..., : 2 * n]
    inputs = np.concatenate([np.zeros((*shape, n, m)), lower[..., 2 * n :]], axis=-2)
    joints = [dynamics.mechanism.joint(name) for name in names]
    units = [joint.unit for joint in joints]
    efforts = tuple(dynamics.mechanism.joint(name).effort_unit for name in motors)
    # copies, which share no memory with the arguments
    state = (np.broadcast_to(x, (*shape, np.shape(x)[-1])).copy() for x in (q, qd, qdd, tau))
    return Linearization(
        A,
        inputs,
        (*names, *(f"d/dt {name}" for name in names)),
        (*units, *(f"{unit}/s" for unit in units)),
        tuple(motors),
        efforts,
        *state,
    )


def _alike(tau: Floats, other: Floats) -> bool:
    return bool(np.allclose(tau, other, rtol=1e-9, atol=1e-9 * float(np.abs(other).max(initial=0))))
