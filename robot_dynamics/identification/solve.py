# SPDX-License-Identifier: Apache-2.0
"""The fit: a convex problem over physically consistent bodies, by Newton's method.

    minimise ½ xᵀ G x - gᵀ x + γ Σ d(P(φ_i), P₀_i) + ½ Σ λ_k (s_k - s₀_k)²
             + γ Σ (s_k / r_k - log(1 + s_k / r_k)),   x = (φ_1 …, s)

G and g are normal equations in units of their noise, so that γ = 1 is one standard deviation for
a body that is about twice or half what it was taken for. -log det keeps every body possible, and
-log the inertia r_k + s_k of every rotor of which r_k was thought, a body of one number; both are
self-concordant, so that damped steps from any possible start reach the one minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import RecordingError
from .bodies import BASIS, hessian, numbers, pseudo_inertia
from .recording import Floats

STEPS = 60
"""Newton steps for one γ; ten are usual"""
FLAT = 1e-7
"""Of the roots of a pseudo-inertia's own entries: with less left in a direction it has no inverse
but for rounding"""
DONE = 1e-9
"""Newton decrement squared at which a minimum is reached, in units of γ"""
CLOSER = 10.0
"""From one γ to the next, on the way from the prior to data that know better"""
LONGEST_PATH = 40
"""Such γ: no numbers in double precision are further away"""


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior: bodies and scalars before any data."""

    bodies: tuple[Floats, ...]
    """P₀ (4, 4) of each body"""
    scalars: Floats
    """s₀ (m,)"""
    tightness: Floats
    """λ (m,)"""
    rotors: Floats | None = None
    """r (m,): s_k + r_k > 0; infinite: s_k may be anything; None: all are"""

    @property
    def per_rotor(self) -> Floats:
        """1 / r (m,)"""
        return np.zeros(len(self.scalars)) if self.rotors is None else 1.0 / self.rotors

    @property
    def mean(self) -> Floats:
        """x₀ (10 b + m,)"""
        return np.concatenate([*(numbers(P) for P in self.bodies), self.scalars])

    def curvature(self, gamma: float) -> Floats:
        """(p, p): what it adds to the normal equations near x₀."""
        block = 10 * len(self.bodies)
        p = block + len(self.scalars)
        out = np.zeros((p, p))
        out[:block, :block] = gamma * self._hessians
        k = np.arange(block, p)
        out[k, k] = self.tightness
        return out

    @cached_property
    def _hessians(self) -> Floats:
        """(10 b, 10 b): of the bodies, for γ = 1."""
        out = np.zeros((10 * len(self.bodies),) * 2)
        for i, P in enumerate(self.bodies):
            block = slice(10 * i, 10 * i + 10)
            out[block, block] = hessian(np.linalg.inv(P))
        return out


def minimise(
    G: Floats, g: Floats, prior: Prior, gamma: float, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """(x (p,), H (p, p) the curvature there) of the fit.

    Args:
        G: (p, p), g: (p,): normal equations, ten columns for each of the prior's bodies first.
        gamma: the weight of the description.
        start: x of a fit near by, with possible bodies; None: the prior's.

    Raises:
        RecordingError: numbers that no step brings nearer (it is not finite).
    """
    if not (np.isfinite(G).all() and np.isfinite(g).all()):
        raise RecordingError("the normal equations are not finite", name="identification")
    if start is not None:
        return _newton(G, g, prior, gamma, start)
    x, path = prior.mean, [gamma]
    slope = G @ x - g
    # from a weight at which Newton's step from the prior stays where the logarithm is a parabola
    while len(path) < LONGEST_PATH:
        H = G + prior.curvature(path[-1])
        if float(slope @ solved(H, slope)) <= path[-1]:
            break
        path.append(CLOSER * path[-1])
    for weight in reversed(path):
        x, H = _newton(G, g, prior, weight, x)
    return x, H


def _newton(G: Floats, g: Floats, prior: Prior, gamma: float, x: Floats) -> tuple[Floats, Floats]:
    inverses = [np.linalg.inv(P) for P in prior.bodies]
    traces = np.array([np.tensordot(BASIS, Q, 2) for Q in inverses]).ravel()
    block = 10 * len(inverses)
    scalar = np.arange(block, len(x))
    per = prior.per_rotor

    def logarithms(x: Floats) -> float:
        """Σ log det P, or -inf."""
        total = 0.0
        for i in range(len(inverses)):
            P = pseudo_inertia(x[10 * i : 10 * i + 10])
            try:
                L = np.linalg.cholesky(P)
            except np.linalg.LinAlgError:
                return -np.inf
            if (np.diag(L) < FLAT * np.sqrt(np.diag(P))).any():
                return -np.inf
            total += 2 * float(np.log(np.diag(L)).sum())
        left = 1.0 + per * x[block:]
        return total + float(np.log(left).sum()) if (left > 0).all() else -np.inf

    def gain(x: Floats, step: Floats, before: float) -> float:
        """f(x) - f(x + step), term by term: no difference of two large numbers."""
        after = logarithms(x + step)
        if after == -np.inf:
            return -np.inf
        off = prior.tightness * ((x[block:] - prior.scalars) + step[block:] / 2)
        change = (G @ (x + step / 2) - g) @ step + off @ step[block:]
        linear = traces @ step[:block] + per @ step[block:]
        return -float(change + gamma * (linear - (after - before)))

    H = G
    for _ in range(STEPS):
        slope = G @ x - g
        H = G.copy()
        slope[block:] += prior.tightness * (x[block:] - prior.scalars)
        H[scalar, scalar] += prior.tightness
        left = per / (1.0 + per * x[block:])
        slope[block:] += gamma * (per - left)
        H[scalar, scalar] += gamma * left**2
        for i in range(len(inverses)):
            s = slice(10 * i, 10 * i + 10)
            # P⁻¹ = L⁻ᵀ L⁻¹, which there is wherever the logarithm was taken
            half = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(x[s])))
            Q = half.T @ half
            slope[s] += gamma * (traces[s] - np.tensordot(BASIS, Q, 2))
            H[s, s] += gamma * hessian(Q)
        step = -solved(H, slope)
        decrement = -float(slope @ step)
        if not decrement >= DONE * gamma:  # or no number: as near as these numbers let it come
            break
        before = logarithms(x)
        length = 1.0
        while gain(x, length * step, before) < 0.1 * length * decrement and length > 1e-9:
            length /= 2
        if length <= 1e-9:  # as near as rounding lets it come
            break
        x = x + length * step
    return x, H


def solved(H: Floats, right: Floats) -> Floats:
    """H⁻¹ right of positive definite H whose rows are of very different size.

    Args:
        H: (n, n), right: (n,) or (n, k); or many at once, (m, n, n) and (m, n).
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
    """H⁻¹, symmetric."""
    out = solved(H, np.eye(len(H)))
    inverse: Floats = (out + out.T) / 2
    return inverse
