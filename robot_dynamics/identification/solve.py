# SPDX-License-Identifier: Apache-2.0
"""Solves the fit, a convex problem over physically consistent bodies, by Newton's method.

    minimise ½ xᵀ G x - gᵀ x + γ Σ d(P(φ_i), P₀_i) + ½ Σ λ_k s_k²
             + γ Σ (s_k / r_k - log(1 + s_k / r_k)),   x = (φ_1 …, s)

G and g are normal equations in units of their noise; with γ = 1, a body that differs from its
described one by about a factor of two is one standard deviation away. A body that is far heavier
than described is penalised less (see `Prior.stretched`). -log det is a barrier that keeps every
body physically consistent. Likewise, -log keeps the inertia r_k + s_k of every rotor with described
inertia r_k positive. Both are self-concordant, so damped Newton steps from any feasible start
converge to the unique minimum. Where this would take long, a primal-dual path leads close to the
minimum first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from ..errors import RecordingError
from .bodies import hessian, numbers, pseudo_inertia, traces
from .recording import Floats

STEPS = 30
"""Largest number of Newton steps; ten are usual"""
PATIENCE = 5
"""Newton steps from a similar fit after which steps must be longer than `CREEPING`"""
CREEPING = 0.1
"""Step length below which the path is faster"""
FLAT = 1e-7
"""Ratio of a diagonal entry of the Cholesky factor to the square root of the pseudo-inertia's,
below which the matrix is numerically singular"""
DONE = 1e-9
"""Squared Newton decrement, in units of γ, at which the iteration has converged"""
CLOSE = 1e-6
"""Squared Newton decrement, in units of γ, below which the iteration has converged, too, if a step
does not halve it: only rounding errors are left, as otherwise λ becomes at most (λ / (1 - λ))²"""
SHARE = 0.5
"""Largest fraction of the way to the edge of the feasible set that one step may go: from close to
the edge Newton's method returns slowly, or not at all, as its matrix becomes singular"""
FAR = 0.9
"""The same on the primal-dual path, whose dual variables lead away from the edge"""
CLOSER = 0.3
"""Ratio of consecutive weights of the barriers on the path"""
SHORT = 0.5
"""Step length on the path below which the weight stays, as the products are too unequal to go on"""
SMALL = 1e-4
"""Squared Newton decrement of the rest of the cost, in units of the barriers' weight, at which the
path begins"""
FAR_HEAVIER = 6.0
"""Ratio to the described body beyond which the penalty grows only with the logarithm of the ratio:
the description of a body that is so much heavier is a placeholder"""
SURELY = 5.0
"""Standard deviations by which the described torques must be too small or too large, in addition to
this ratio"""
TINY = float(np.finfo(float).tiny)
"""Smallest diagonal entry that a scale is taken from"""
LONGEST_PATH = 150
"""Largest number of steps on the path; 20 are usual, 50 were seen"""


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior of bodies and scalars (the parameters of friction and rotors)."""

    bodies: tuple[Floats, ...]
    """P₀ (4, 4) of each described body"""
    tightness: Floats = field(default_factory=partial(np.zeros, 0))
    """λ (m,): the weights of the scalars"""
    rotors: Floats | None = None
    """r (m,), of the lower bounds s_k > -r_k; infinite: s_k is unbounded; None: all are
    unbounded"""

    @cached_property
    def per_rotor(self) -> Floats:
        """1 / r (m,)"""
        return np.zeros(len(self.tightness)) if self.rotors is None else 1.0 / self.rotors

    @cached_property
    def mean(self) -> Floats:
        """x₀ (10 b + m,): the expected parameters"""
        mean: Floats = np.concatenate([*map(numbers, self.bodies), np.zeros(len(self.tightness))])
        mean.flags.writeable = False
        return mean

    def scaled(self, G: Floats, g: Floats) -> Prior:
        """The prior with all bodies multiplied by the same factor, if the torques of the described
        ones are certainly more than `FAR_HEAVIER` times too small or too large.

        Args:
            G: (10 b, 10 b), the normal matrix of the bodies alone.
            g: (10 b,), the right-hand side.
        """
        described = self.mean[: len(g)]
        # min_k ½ k² φ₀ᵀ G φ₀ - k φ₀ᵀ g; the standard deviation of k is (φ₀ᵀ G φ₀)^-½
        own, recorded = float(described @ G @ described), float(described @ g)
        unsure = SURELY * np.sqrt(own)
        small = recorded > FAR_HEAVIER * own + unsure
        large = unsure < recorded < own / FAR_HEAVIER - unsure
        if not (own > 0 and (small or large)):
            return self
        return replace(self, bodies=tuple(recorded / own * P for P in self.bodies))

    def stretched(self, x: Floats) -> Prior:
        """The prior for bodies that may be far heavier than described.

        In the directions in which the bodies of x are more than `FAR_HEAVIER` times the described
        ones, the references are stretched until the ratio is exactly `FAR_HEAVIER`. Repeated, this
        minimises a penalty that grows there with the logarithm of the ratio, not with the ratio.

        Args:
            x: (p,), the parameters of a similar fit; its bodies need not be physically consistent.
        """
        L, half = self._roots
        P = pseudo_inertia(x[: 10 * len(self.bodies)].reshape(-1, 10))
        # P = L U Λ Uᵀ Lᵀ, P₀ = L U Uᵀ Lᵀ
        ratios, axes = np.linalg.eigh(half @ P @ np.swapaxes(half, -1, -2))
        if (ratios <= FAR_HEAVIER).all():
            return self
        wide = L @ axes
        grown = np.maximum(1.0, ratios / FAR_HEAVIER)[:, None, :]
        return replace(self, bodies=tuple(wide * grown @ np.swapaxes(wide, -1, -2)))

    def curvature(self, gamma: float) -> Floats:
        """(p, p): the prior's Hessian at x₀, apart from the rotors' barrier."""
        block = 10 * len(self.bodies)
        p = block + len(self.tightness)
        out = np.zeros((p, p))
        out[:block, :block] = gamma * self._hessians
        k = np.arange(block, p)
        out[k, k] = self.tightness
        return out

    @cached_property
    def volumes(self) -> Floats:
        """(b,): log det P₀"""
        return np.asarray(np.linalg.slogdet(np.reshape(self.bodies, (-1, 4, 4)))[1])

    @cached_property
    def _hessians(self) -> Floats:
        """(10 b, 10 b): the bodies' Hessian at x₀ with γ = 1."""
        out = np.zeros((10 * len(self.bodies),) * 2)
        _diagonal_blocks(out, len(self.bodies))[...] = hessian(self._inverses)
        return out

    @cached_property
    def _roots(self) -> tuple[Floats, Floats]:
        """(L, L⁻¹), (b, 4, 4) each, with P₀ = L Lᵀ"""
        L = np.linalg.cholesky(np.reshape(self.bodies, (-1, 4, 4)))
        return L, np.linalg.inv(L)

    @cached_property
    def _inverses(self) -> Floats:
        """(b, 4, 4): P₀⁻¹"""
        return np.linalg.inv(np.reshape(self.bodies, (-1, 4, 4)))


def minimise(
    G: Floats, g: Floats, prior: Prior, gamma: float, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """The fit: (x (p,), H (p, p), the Hessian at x).

    Args:
        G: (p, p), the normal matrix; its first columns are ten for each of the prior's bodies.
        g: (p,), the right-hand side.
        prior: the prior.
        gamma: the weight of the description.
        start: x of a similar fit, with physically consistent bodies; None: start from the prior.

    Raises:
        RecordingError: the normal equations are not finite.
    """
    if not (np.isfinite(G).all() and np.isfinite(g).all()):
        raise RecordingError("the normal equations are not finite", name="identification")
    cost = _Cost(G, g, prior, gamma)
    if start is not None:
        x, H, settled = _newton(cost, start, CREEPING)
        if settled:
            return x, H
    near, bend, found = _newton(cost, _near_minimum(cost))
    # at the limit of rounding neither may converge: the better one is returned
    if start is not None and not found:
        before, after = cost.logarithms(near), cost.logarithms(x)
        if cost.gain(near, x - near, before, after) > 0:
            return x, H
    return near, bend


@dataclass(frozen=True, eq=False)
class _Cost:
    """What is minimised: a quadratic, and γ times the barriers -log det P_i and -log(1 + s / r)."""

    G: Floats
    g: Floats
    prior: Prior
    gamma: float

    @cached_property
    def block(self) -> int:
        """The index of the first scalar in x"""
        return 10 * len(self.prior.bodies)

    @cached_property
    def rise(self) -> Floats:
        """(p,): the gradient of the linear terms beside the barriers, tr(P₀⁻¹ P) and s / r"""
        rise: Floats = np.concatenate([traces(self.prior._inverses).ravel(), self.prior.per_rotor])
        return rise

    def bodies(self, x: Floats) -> Floats:
        """P (b, 4, 4)"""
        return pseudo_inertia(x[: self.block].reshape(-1, 10))

    def left(self, x: Floats) -> Floats:
        """(m,): 1 / (r + s)"""
        per = self.prior.per_rotor
        with np.errstate(divide="ignore"):  # at the edge: infinite
            left: Floats = per / (1.0 + per * x[self.block :])
        return left

    def slope(self, x: Floats) -> Floats:
        """(p,): the gradient without the barriers."""
        slope = self.G @ x - self.g + self.gamma * self.rise
        slope[self.block :] += self.prior.tightness * x[self.block :]
        return np.asarray(slope)

    def bend(self, blocks: Floats, scalars: Floats) -> Floats:
        """(p, p): the Hessian, given that of the barriers by the bodies, (b, 10, 10), and by the
        scalars, (m,)."""
        H: Floats = self.G.copy()
        k = np.arange(self.block, len(H))
        H[k, k] += self.prior.tightness + scalars
        _diagonal_blocks(H, len(self.prior.bodies))[...] += blocks
        return H

    def logarithms(self, x: Floats) -> float:
        """Sum of all barriers' logarithms; -inf outside the feasible set."""
        left = 1.0 + self.prior.per_rotor * x[self.block :]
        P = self.bodies(x)
        try:
            root = np.linalg.cholesky(P).diagonal(0, -2, -1)
        except np.linalg.LinAlgError:
            return -np.inf
        if not left.min(initial=1.0) > 0 or (root < FLAT * np.sqrt(P.diagonal(0, -2, -1))).any():
            return -np.inf
        return 2 * float(np.log(root).sum()) + float(np.log(left).sum())

    def gain(self, x: Floats, step: Floats, before: float, after: float) -> float:
        """f(x) - f(x + step), computed term by term to avoid cancellation.

        Args:
            x: (p,).
            step: (p,).
            before: the logarithms at x.
            after: those at x + step.
        """
        if after == -np.inf:
            return -np.inf
        change = self.slope(x + step / 2) @ step
        return -float(change - self.gamma * (after - before))


def _newton(cost: _Cost, x: Floats, shortest: float = 0.0) -> tuple[Floats, Floats, bool]:
    """(x (p,), H (p, p), whether x is the minimum) by damped Newton steps.

    Args:
        cost: what is minimised.
        x: (p,), where to start.
        shortest: smallest step length that is worth another step after `PATIENCE` of them.
    """
    gamma, last, before = cost.gamma, np.inf, cost.logarithms(x)
    close: tuple[Floats, Floats] | None = None
    for k in range(STEPS):
        left = cost.left(x)
        # P⁻¹ = L⁻ᵀ L⁻¹; the factor exists because the barrier at x is finite
        half = np.linalg.inv(np.linalg.cholesky(cost.bodies(x)))
        Q = half.swapaxes(-1, -2) @ half
        slope = cost.slope(x) - gamma * np.concatenate([traces(Q).ravel(), left])
        H = cost.bend(gamma * hessian(Q), gamma * left**2)
        step = -solved(H, slope)
        decrement = -float(slope @ step)
        if not decrement >= DONE * gamma:  # converged; negative or NaN: rounding errors prevail
            return x, H, abs(decrement) < DONE * gamma
        if close and decrement > last / 2:
            return *close, True
        close, last = (x, H) if decrement < CLOSE * gamma else None, decrement
        length = _step_length(SHARE, *_relative_changes(cost, half, left, step))
        if k >= PATIENCE - 1 and length < shortest:
            break
        while length > 1e-9:
            after = cost.logarithms(x + length * step)
            if cost.gain(x, length * step, before, after) >= 0.1 * length * decrement:
                break
            length /= 2
        else:  # the limit of rounding
            break
        x, before = x + length * step, after
    return x, H, False


def _near_minimum(cost: _Cost) -> Floats:
    """x close to the minimum, by a primal-dual path from the prior's bodies.

    On the path Z_i = μ P_i⁻¹, and the gradient without the barriers equals that of Σ tr(Z_i P_i).
    μ, the weight of the barriers, is at first so large that the data hardly matter, and falls to γ;
    after a short step it stays, and x returns to the path.
    Newton's method alone, on P, may creep along the edge of the feasible set. Steps are scaled by W
    with W Z W = P (Nesterov, Todd).
    """
    gamma, x = cost.gamma, cost.prior.mean
    count = 4 * len(cost.prior.bodies) + np.count_nonzero(cost.prior.per_rotor)
    Q = cost.prior._inverses
    left = cost.left(x)
    Z, z = (weight := _first_weight(cost, x, Q, left)) * Q, weight * left
    L, M = np.linalg.cholesky(cost.bodies(x)), np.linalg.cholesky(Z)
    length, last = 1.0, np.inf
    for _ in range(LONGEST_PATH if count else 0):
        half = np.linalg.inv(L)
        Q = half.swapaxes(-1, -2) @ half
        # the eigenvalues of P Z, all of which are μ on the path
        products, axes = np.linalg.eigh(L.swapaxes(-1, -2) @ Z @ L)
        own = z[left > 0] / left[left > 0]
        level = (products.sum() + own.sum()) / count
        aim = max(gamma, (CLOSER if length > SHORT else 1.0) * level)
        # W⁻¹ = L⁻ᵀ (Lᵀ Z L)^½ L⁻¹
        root = np.sqrt(np.maximum(products, 0.0))[..., None, :]
        W = half.swapaxes(-1, -2) @ (axes * root @ axes.swapaxes(-1, -2)) @ half
        slope = cost.slope(x) - aim * np.concatenate([traces(Q).ravel(), left])
        step = -solved(cost.bend(hessian(W), z * left), slope)
        decrement = -float(slope @ step)
        if not decrement > 0:  # rounding errors prevail: the path would go anywhere from here
            break
        on = max(np.ptp(np.append(products, level)), np.ptp(np.append(own, level))) < 0.1 * level
        # close enough for Newton's method, or as close as rounding errors allow
        if aim == gamma and on and (decrement < 0.1 * gamma or decrement > last / 2):
            break
        last = decrement if aim == gamma and on else np.inf
        # ΔZ = μ P⁻¹ - Z - W⁻¹ ΔP W⁻¹
        turned = aim * Q - Z - W @ pseudo_inertia(step[: cost.block].reshape(-1, 10)) @ W
        other = np.linalg.inv(M)
        dual = aim * left - z - z * left * step[cost.block :]
        ahead = [
            *_relative_changes(cost, half, left, step),
            *np.linalg.eigvalsh(other @ turned @ other.swapaxes(-1, -2)).ravel(),
            *(dual[left > 0] / z[left > 0]),
        ]
        length = _step_length(FAR, *ahead)
        further, z = x + length * step, z + length * dual
        Z = Z + length * turned
        Z = (Z + Z.swapaxes(-1, -2)) / 2  # otherwise rounding errors grow from step to step
        try:
            L, M = np.linalg.cholesky(cost.bodies(further)), np.linalg.cholesky(Z)
        except np.linalg.LinAlgError:  # the limit of rounding
            break
        left = cost.left(further)
        if not ((left >= 0) & (z >= 0) & np.isfinite(left + z)).all():  # the same for rotors
            break
        x = further
    return x


def _first_weight(cost: _Cost, x: Floats, Q: Floats, left: Floats) -> float:
    """A weight of the barriers, at least γ, compared with which the rest of the cost at x is
    small."""
    weight, slope = cost.gamma, cost.slope(x)
    for _ in range(LONGEST_PATH):
        H = cost.bend(weight * hessian(Q), weight * left**2)
        if float(slope @ solved(H, slope)) <= SMALL * weight:
            break
        weight *= 10.0
    return weight


def _relative_changes(cost: _Cost, half: Floats, left: Floats, step: Floats) -> Floats:
    """The relative changes in a full step of what must stay positive: the eigenvalues of
    L⁻¹ ΔP L⁻ᵀ, as P + s ΔP = L (1 + s L⁻¹ ΔP L⁻ᵀ) Lᵀ, and the changes of the rotors' inertias."""
    inwards = half @ pseudo_inertia(step[: cost.block].reshape(-1, 10))
    changes = np.linalg.eigvalsh(inwards @ half.swapaxes(-1, -2)).ravel()
    return np.concatenate([changes, left * step[cost.block :]])


def _step_length(most: float, *ahead: float) -> float:
    """The largest step length up to 1 that goes at most this fraction of the way to the edge."""
    return 1.0 / max(1.0, -min(ahead, default=0.0) / most)


def _diagonal_blocks(H: Floats, count: int) -> Floats:
    """A view (count, 10, 10) of the first `count` blocks on the diagonal of H (p, p)."""
    of_bodies = H[: 10 * count, : 10 * count].reshape(count, 10, count, 10)
    return np.asarray(np.einsum("kikj->kij", of_bodies))


def solved(H: Floats, right: Floats) -> Floats:
    """H⁻¹ right for a positive definite H with badly scaled rows.

    Args:
        H: (n, n), or (m, n, n) for many systems.
        right: (n,) or (n, k), or (m, n) or (m, n, k) for many systems.
    """
    columns = right[..., None] if right.ndim < H.ndim else right
    # differences of large numbers may have left an entry that is not positive
    least = np.maximum(np.finfo(float).eps * np.abs(H).max(axis=-1, initial=0.0), TINY)
    scale = 1.0 / np.sqrt(np.maximum(H.diagonal(0, -2, -1), least))[..., None]
    scaled = H * scale * scale.swapaxes(-2, -1)
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
    scale = 1.0 / np.sqrt(np.maximum(np.diag(H), TINY))
    values, axes = np.linalg.eigh(H * scale * scale[:, None])
    # smaller eigenvalues are rounding errors
    values = np.maximum(values, len(H) * np.finfo(float).eps * values.max(initial=0.0))
    half = scale[:, None] * axes / np.sqrt(values)
    inverse: Floats = half @ half.T
    return inverse
