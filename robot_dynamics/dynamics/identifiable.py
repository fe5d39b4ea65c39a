# SPDX-License-Identifier: Apache-2.0
"""The identifiable combinations of standard parameters: the base parameters.

Source: Gautier, "Numerical calculation of the base inertial parameters of robots", J. Robotic
Systems 8(4), 1991. The columns of a regressor over random states are examined one by one, starting
at the base. A column that depends linearly on earlier ones is not a base parameter, and its
parameter is added to theirs. A link's mass is thus regrouped with the moments of the link that
carries it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..formulations.terms import TERMS
from ..mechanism import Mechanism
from ..scalar import Floats
from .inverse_dynamics import InverseDynamics

DEPENDENT = 1e-9
"""Largest remainder of a unit column that counts as linearly dependent on the columns before it"""
ROUNDING = 1e-12
"""Columns shorter than this fraction of the longest count as zero"""
_NOTHING = 1e-9
"""Coefficients below this count as zero"""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The identifiable combinations β = B π of the standard parameters π.

    tau = Y π = Y[:, independent] β in every state (but see `rest` in `base_parameters`).
    """

    parameter_names: tuple[str, ...]
    """(p,): the standard parameters, as `InverseDynamics.parameter_names`"""
    independent: tuple[int, ...]
    """(b,): indices of the standard parameters that lead a combination, with coefficient 1"""
    matrix: Floats
    """B (b, p), in the units of the leading parameter per unit of each parameter"""

    @property
    def names(self) -> tuple[str, ...]:
        """(b,): each combination as text, such as `link2.mx + 0.4*link3.mass`."""
        return tuple(
            self._text(row, k) for row, k in zip(self.matrix, self.independent, strict=True)
        )

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """The names of the standard parameters that no torque depends on."""
        seen = [bool(column.any()) for column in self.matrix.T]
        return tuple(name for name, s in zip(self.parameter_names, seen, strict=True) if not s)

    def _text(self, row: Floats, own: int) -> str:
        text = self.parameter_names[own]
        for j in np.flatnonzero(row):
            if j != own:
                size = f"{abs(row[j]):.6g}*".removeprefix("1*")
                text += f" {'-' if row[j] < 0 else '+'} {size}{self.parameter_names[j]}"
        return text

    def __len__(self) -> int:
        return len(self.independent)


def base_parameters(
    mechanism: Mechanism,
    rotors: str = "full",
    friction: bool = True,
    *,
    gravity: bool = True,
    rest: bool = True,
    seed: int = 0,
) -> BaseParameters:
    """The identifiable combinations of a robot's parameters, whatever their values.

    Args:
        mechanism: the robot, as from `rd.load`. Only its geometry and the kinds of its friction
            laws matter, not its inertial parameters and friction coefficients.
        rotors: full, reflected or none, as in `InverseDynamics`.
        friction: whether to include the joints' friction.
        gravity: if false, parameters that only affect the weight are left out.
        rest: whether the states include joints at rest. Only at rest can a friction offset be
            distinguished from Coulomb torques that differ between the directions. If false, these
            three parameters form two combinations, which give the torques of moving joints only.
        seed: of the random states: any angle of revolute joints, up to ±1 m for prismatic ones;
            for a mechanism with loops, positions near home.

    Raises:
        InputError: an unknown rotor model, or not a mechanism.

    Source: [G91].
    """
    left_out = {"gravity": not gravity, "friction": not friction}
    terms = [name for name in TERMS if not left_out.get(name)]
    # one batch of a few hundred states is not worth compiling
    dynamics = InverseDynamics(mechanism, rotors=rotors, terms=terms, backend="python")
    n, p = len(dynamics.joint_names), len(dynamics.parameter_names)
    rng = np.random.default_rng(seed)
    count = 4 * p // max(len(dynamics.actuated_names), 1) + 20
    if mechanism.loops:
        q = dynamics.home + 0.05 * rng.uniform(-1, 1, (count, n))
    else:
        turns = np.array([mechanism.joint(name).turns for name in dynamics.joint_names])
        q = rng.uniform(-1, 1, (count, n)) * np.where(turns, np.pi, 1.0)
    qd, qdd = rng.uniform(-3, 3, (count, n)), rng.uniform(-5, 5, (count, n))
    if rest:
        qd[::4] = 0.0  # all joints at rest, then some of them
        qd[1::4] *= rng.integers(0, 2, qd[1::4].shape)
    W = dynamics.regressor(q, qd, qdd).reshape(-1, p)
    return BaseParameters(dynamics.parameter_names, *_regrouped(W))


def _regrouped(W: Floats) -> tuple[tuple[int, ...], Floats]:
    """(independent columns, B) with W = W[:, independent] B."""
    p = W.shape[1]
    length = np.linalg.norm(W, axis=0)
    seen = length > ROUNDING * length.max(initial=0.0)
    scale = np.where(seen, length, 1.0)
    R: Floats = np.asarray(np.linalg.qr(np.where(seen, W / scale, 0.0), mode="r"))
    basis = np.zeros((len(R), 0))
    independent: list[int] = []
    for j in range(p):
        left = R[:, j]
        for _ in range(2):  # orthogonalising twice is enough
            left = left - basis @ (basis.T @ left)
        size = np.linalg.norm(left)
        if size > DEPENDENT:
            independent.append(j)
            basis = np.column_stack([basis, left / size])
    rest = [j for j in range(p) if j not in independent]
    T: Floats = basis.T @ R
    shares = np.linalg.solve(T[:, independent], T[:, rest])
    shares = shares * scale[rest] / scale[independent][:, None]
    largest = abs(shares).max(axis=0, initial=0.0)
    shares[abs(shares) <= _NOTHING * np.maximum(largest, 1.0)] = 0.0
    B = np.zeros((len(independent), p))
    B[:, independent] = np.eye(len(independent))
    B[:, rest] = shares
    return tuple(independent), B
