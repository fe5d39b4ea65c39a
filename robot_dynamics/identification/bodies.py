# SPDX-License-Identifier: Apache-2.0
"""Physically consistent rigid bodies: the pseudo-inertia, and the distance between two bodies.

Sources: Wensing, Kim, Slotine, "Linear matrix inequalities for physically consistent inertial
parameter identification", IEEE RA-L 3(1), 2018; Lee, Wensing, Park, "Geometric robot dynamic
identification: a convex programming approach", IEEE T-RO 36(2), 2020.

The ten inertial parameters φ = (m, h, I) of a body about its link's origin, in the order of
`dynamic_parameters.BODY`, form the symmetric 4×4 matrix

    P(φ) = | ½ tr(I) 1 - I   h |
           | hᵀ              m |

of the second moments of its mass distribution, which is positive definite if and only if the body
is physically consistent. The distance from another body is the Bregman divergence of -log det,

    d(P, P₀) = tr(P₀⁻¹ P) - log det(P₀⁻¹ P) - 4.

It does not depend on the choice of frame or units, and is infinite for inconsistent bodies.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from ..mechanism.dynamic_parameters import ENTRIES
from .recording import Floats

THINNEST = 1e-3
"""Smallest second moment of a reference body about its centre of mass in any direction, as a
fraction of the largest one"""


def _basis() -> Floats:
    """(10, 4, 4): P(φ) = Σ φ_k basis_k."""
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for k in range(3):
        basis[1 + k, k, 3] = basis[1 + k, 3, k] = 1.0
    for k, (i, j) in enumerate(ENTRIES, start=4):
        I = np.zeros((3, 3))
        I[i, j] = I[j, i] = 1.0
        basis[k, :3, :3] = np.trace(I) / 2 * np.eye(3) - I
    return basis


BASIS = _basis()
_FLAT = BASIS.reshape(10, 16)


def _units() -> Floats:
    """(10, 4, 4): an orthonormal basis of the symmetric matrices."""
    units = np.zeros((10, 4, 4))
    for k, (i, j) in enumerate(itertools.combinations_with_replacement(range(4), 2)):
        units[k, i, j] = units[k, j, i] = 1.0 if i == j else np.sqrt(0.5)
    return units


UNITS = _units()


def pseudo_inertia(phi: NDArray[np.float64]) -> Floats:
    """The pseudo-inertias P (…, 4, 4) of φ (…, 10)."""
    P: Floats = (phi @ _FLAT).reshape(*phi.shape[:-1], 4, 4)
    return P


def numbers(P: Floats) -> Floats:
    """The inertial parameters φ (10,) of a pseudo-inertia P (4, 4)."""
    second = P[:3, :3]
    # I = tr(Σ) 1 - Σ
    I = np.trace(second) * np.eye(3) - second
    return np.array([P[3, 3], *P[:3, 3], *(I[i, j] for i, j in ENTRIES)])


def hessian(Q: Floats) -> Floats:
    """The Hessians (…, 10, 10) of -log det P by φ, given Q = P⁻¹ (…, 4, 4):
    ∂²/∂φ_k ∂φ_l = tr(Q B_k Q B_l)."""
    # = Σ b_k,jm (q_ji q_mn) b_l,in, as the B are symmetric
    QQ = Q[..., :, None, :, None] * Q[..., None, :, None, :]
    H: Floats = _FLAT @ QQ.reshape(*Q.shape[:-2], 16, 16) @ _FLAT.T
    return H


def traces(Q: Floats) -> Floats:
    """The gradient (…, 10) of tr(Q P(φ)) by φ: tr(Q B_k) for symmetric Q (…, 4, 4)."""
    out: Floats = Q.reshape(*Q.shape[:-2], 16) @ _FLAT.T
    return out


def is_possible(phi: Floats) -> bool:
    """Whether the body is physically consistent and has some extent in every direction."""
    return bool(phi[0] > 0 and np.linalg.eigvalsh(_shape(pseudo_inertia(phi))[0])[0] > 0)


def reference(phi: Floats, mass: float, size: float) -> Floats:
    """The reference P₀: the described body, with some extent in every direction.

    Args:
        phi: (10,), which may be zero or physically inconsistent.
        mass: kg, used if the described body has no mass.
        size: m, from which an extent is assumed if it has none.
    """
    if phi[0] <= 0:
        return np.diag([mass * size**2] * 3 + [mass])
    P = pseudo_inertia(phi)
    center = P[:3, 3] / P[3, 3]
    spread, scale = _shape(P, size)
    values, axes = np.linalg.eigh(spread)
    spread = (axes * np.maximum(values, THINNEST)) @ axes.T * scale
    out = np.zeros((4, 4))
    # Σ = Σ_C + m c cᵀ
    out[:3, :3] = spread + phi[0] * np.outer(center, center)
    out[:3, 3] = out[3, :3] = phi[1:4]
    out[3, 3] = phi[0]
    return out


def _shape(P: Floats, size: float = 1.0) -> tuple[Floats, float]:
    """(the second moments about the centre of mass divided by their scale, the scale in kg m²)."""
    center = P[:3, 3] / P[3, 3]
    spread = P[:3, :3] - P[3, 3] * np.outer(center, center)
    scale = float(np.abs(np.linalg.eigvalsh(spread)).max())
    if scale <= 1e-9 * P[3, 3] * size**2:
        scale = float(P[3, 3]) * (0.1 * size) ** 2
    return spread / scale, scale
