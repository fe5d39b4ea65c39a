# SPDX-License-Identifier: Apache-2.0
"""Solves the fit, a convex problem over physically consistent bodies, by Newton's method.

    minimise ½ xᵀ G x - gᵀ x + γ Σ d(P(φ_i), P₀_i) + ½ Σ λ_k (s_k - s₀_k)²
             + γ Σ (s_k / r_k - log(1 + s_k / r_k)),   x = (φ_1 …, s)

G and g are normal equations in units of their noise; with γ = 1, a body that differs from its
described one by about a factor of two is one standard deviation away. -log det is a barrier that
keeps every body physically consistent. Likewise, -log keeps the inertia r_k + s_k of every rotor
with described inertia r_k positive. Both are self-concordant, so damped Newton steps from any
feasible start converge to the unique minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import RecordingError
from .bodies import hessian, numbers, pseudo_inertia, traces
from .recording import Floats

STEPS = 60
"""Largest number of Newton steps for one γ; ten are usual"""
FLAT = 1e-7
"""Smallest diagonal entry of the Cholesky factor over the root of the pseudo-inertia's own; below
it the matrix is numerically singular"""
DONE = 1e-9
"""Squared Newton decrement, in units of γ, at which the iteration has converged"""
SHARE = 0.5
"""The largest share of the way to the edge of the feasible set in one step: from close to it
Newton's method comes back slowly, or not at all, as its matrix becomes singular"""
CLOSER = 10.0
"""Ratio of consecutive γ on the path from the prior to the required weight"""
LONGEST_PATH = 40
"""Largest number of γ on this path, enough for any numbers in double precision"""


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of bodies and scalars."""

    bodies: tuple[Floats, ...]
    """P₀ (4, 4) of each described body"""
    scalars: Floats
    """s₀ (m,): expected scalars"""
    tightness: Floats
    """λ (m,): their weights"""
    rotors: Floats | None = None
    """r (m,): lower bounds s_k > -r_k; infinite: s_k is unbounded; None: all are unbounded"""

    @property
    def per_rotor(self) -> Floats:
        """1 / r (m,)"""
        return np.zeros(len(self.scalars)) if self.rotors is None else 1.0 / self.rotors

    @cached_property
    def mean(self) -> Floats:
        """x₀ (10 b + m,): the expected parameters"""
        mean: Floats = np.concatenate([*(numbers(P) for P in self.bodies), self.scalars])
        mean.flags.writeable = False
        return mean

    def curvature(self, gamma: float) -> Floats:
        """(p, p): the prior's Hessian at x₀, apart from the rotors' barrier."""
        block = 10 * len(self.bodies)
        p = block + len(self.scalars)
        out = np.zeros((p, p))
        out[:block, :block] = gamma * self._hessians
        k = np.arange(block, p)
        out[k, k] = self.tightness
        return out

    @cached_property
    def _hessians(self) -> Floats:
        """(10 b, 10 b): the bodies' Hessian at x₀ with γ = 1."""
        out = np.zeros((10 * len(self.bodies),) * 2)
        _diagonal_blocks(out, len(self.bodies))[...] = hessian(self._inverses)
        return out

    @cached_property
    def _inverses(self) -> Floats:
        """(b, 4, 4): P₀⁻¹"""
        return np.linalg.inv(np.reshape(self.bodies, (-1, 4, 4)))


def minimise(
    G: Floats, g: Floats, prior: Prior, gamma: float, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """The fit: (x (p,), H (p, p), the Hessian at x).

    Args:
        G: (p, p), the normal matrix, with ten columns for each of the prior's bodies first.
        g: (p,), the right-hand side.
        prior: the prior.
        gamma: the weight of the description.
        start: x of a similar fit, with physically consistent bodies; None: the prior's.

    Raises:
        RecordingError: the normal equations are not finite.
    """
    if not (np.isfinite(G).all() and np.isfinite(g).all()):
        raise RecordingError("the normal equations are not finite", name="identification")
    if start is not None:
        return _newton(G, g, prior, gamma, start)
    x, path = prior.mean, [gamma]
    slope = G @ x - g
    # start with a weight at which Newton's step from the prior stays where the barrier is quadratic
    while len(path) < LONGEST_PATH:
        H = G + prior.curvature(path[-1])
        if float(slope @ solved(H, slope)) <= path[-1]:
            break
        path.append(CLOSER * path[-1])
    for weight in reversed(path):
        x, H = _newton(G, g, prior, weight, x)
    return x, H


def _newton(G: Floats, g: Floats, prior: Prior, gamma: float, x: Floats) -> tuple[Floats, Floats]:
    b = len(prior.bodies)
    block = 10 * b
    linear = traces(prior._inverses).ravel()
    scalar = np.arange(block, len(x))
    per = prior.per_rotor

    def bodies(x: Floats) -> Floats:
        """P (b, 4, 4)"""
        return pseudo_inertia(x[:block].reshape(b, 10))

    def logarithms(x: Floats) -> float:
        """Sum of all barriers' logarithms; -inf outside the feasible set."""
        P = bodies(x)
        try:
            L = np.linalg.cholesky(P)
        except np.linalg.LinAlgError:
            return -np.inf
        root = np.diagonal(L, 0, -2, -1)
        if (root < FLAT * np.sqrt(np.diagonal(P, 0, -2, -1))).any():
            return -np.inf
        left = 1.0 + per * x[block:]
        if not (left > 0).all():
            return -np.inf
        return 2 * float(np.log(root).sum()) + float(np.log(left).sum())

    def gain(x: Floats, step: Floats, before: float) -> float:
        """f(x) - f(x + step), term by term, which avoids cancellation."""
        after = logarithms(x + step)
        if after == -np.inf:
            return -np.inf
        off = prior.tightness * ((x[block:] - prior.scalars) + step[block:] / 2)
        change = (G @ (x + step / 2) - g) @ step + off @ step[block:]
        rise = linear @ step[:block] + per @ step[block:]
        return -float(change + gamma * (rise - (after - before)))

    H = G
    for _ in range(STEPS):
        slope = G @ x - g
        H = G.copy()
        slope[block:] += prior.tightness * (x[block:] - prior.scalars)
        H[scalar, scalar] += prior.tightness
        left = per / (1.0 + per * x[block:])
        slope[block:] += gamma * (per - left)
        H[scalar, scalar] += gamma * left**2
        # P⁻¹ = L⁻ᵀ L⁻¹; the factor exists because the barrier at x is finite
        half = np.linalg.inv(np.linalg.cholesky(bodies(x)))
        Q = np.swapaxes(half, -1, -2) @ half
        slope[:block] += gamma * (linear - traces(Q).ravel())
        _diagonal_blocks(H, b)[...] += gamma * hessian(Q)
        step = -solved(H, slope)
        decrement = -float(slope @ step)
        if not decrement >= DONE * gamma:  # or NaN: the numerical limit
            break
        # P + s ΔP = L (1 + s L⁻¹ ΔP L⁻ᵀ) Lᵀ
        inwards = half @ pseudo_inertia(step[:block].reshape(b, 10)) @ np.swapaxes(half, -1, -2)
        ahead = [*np.linalg.eigvalsh(inwards).ravel(), *(left * step[block:])]
        before = logarithms(x)
        length = 1.0 / max(1.0, -min(ahead, default=0.0) / SHARE)
        while gain(x, length * step, before) < 0.1 * length * decrement and length > 1e-9:
            length /= 2
        if length <= 1e-9:  # the limit of rounding
            break
        x = x + length * step
    return x, H


def _diagonal_blocks(H: Floats, count: int) -> Floats:
    """A view (count, 10, 10) of the first blocks on the diagonal of H (p, p)."""
    down, along = H.strides
    return np.lib.stride_tricks.as_strided(
        H, (count, 10, 10), (10 * (down + along), down, along), writeable=True
    )


def solved(H: Floats, right: Floats) -> Floats:
    """H⁻¹ right for a positive definite H with badly scaled rows.

    Args:
        H: (n, n), or (m, n, n) for many systems.
        right: (n,) or (n, k), or (m, n) or (m, n, k) for many systems.
    """
    columns = right[..., None] if right.ndim < H.ndim else right
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(H, 0, -2, -1), np.finfo(float).tiny))[..., None]
    scaled = H * scale * np.swapaxes(scale, -2, -1)
    try:
        out = np.linalg.solve(scaled, columns * scale) * scale
    except np.linalg.LinAlgError:
        if H.ndim > 2:
            return np.array([solved(A, b) for A, b in zip(H, right, strict=True)])
        jitter = 1e-14 * np.eye(len(H))
        out = np.linalg.lstsq(scaled + jitter, columns * scale, rcond=None)[0] * scale
    x: Floats = out.reshape(right.shape)
    return x


def inverted(H: Floats) -> Floats:
    """H⁻¹ of a positive definite H, exactly symmetric.

    It is positive semidefinite even where rounding leaves H singular: no variance is negative.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    values, axes = np.linalg.eigh(H * scale * scale[:, None])
    # smaller eigenvalues are rounding
    values = np.maximum(values, len(H) * np.finfo(float).eps * values.max(initial=0.0))
    half = scale[:, None] * axes / np.sqrt(values)
    inverse: Floats = half @ half.T
    return inverse
