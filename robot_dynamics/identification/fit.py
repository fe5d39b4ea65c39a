# SPDX-License-Identifier: Apache-2.0
"""Solves normal equations for parameters and their covariance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..mechanism.dynamic_parameters import BODY
from .normal_equations import NormalEquations, SummedEquations, approached
from .recording import Floats
from .selection import PENALTY, Drive, choose, embedding, places_of, price, usual
from .solve import Prior, inverted, minimise
from .unknowns import Columns, Unknowns

WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Candidates for γ, the weight of the description, of which cross-validation chooses one"""
RIDGE = 1e-9
"""Ridge relative to each parameter's own information; regularises nearly collinear friction
columns"""

PASSES = 5
"""Largest number of alternations between fit and noise estimate"""
SAME = 0.2
"""Relative change of a noise variance below which the weights have converged"""
SELECTIONS = 3
"""Largest number of selections of drives with bodies held by the fit's own barrier; two are
usual"""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fitted parameters."""

    x: Floats
    """(p,), in the order of `names`: ten parameters per body, then those of each joint and shaft"""
    names: tuple[str, ...]
    columns: Floats
    """(all columns, p): maps x to the columns of the design matrix"""
    curvature: Floats
    """(p, p): Hessian of half the squared error in standard deviations, including the prior's"""
    information: Floats
    """(p, p): the data's share of the curvature (Fisher information)"""
    moment: Floats
    """(p,): Σ w y τ of the data"""
    prior: Prior
    gamma: float
    sigma: Floats
    """(n,), N·m or N: residual standard deviation by joint, NaN where there are no efforts"""
    unknowns: Columns

    @property
    def known(self) -> NDArray[np.intp]:
        """The indices of the parameters of which something is known; of the others, such as the
        friction of a motor whose efforts are not fitted, nothing is."""
        return np.flatnonzero(np.diag(self.curvature) > 0)

    @property
    def covariance(self) -> Floats:
        """(p, p), of x; the variance of what is not known is infinite."""
        C = np.diag(np.where(np.diag(self.curvature) > 0, 0.0, np.inf))
        own = np.ix_(self.known, self.known)
        C[own] = inverted(self.curvature[own])
        return C


@dataclass(frozen=True, eq=False)
class Fit(Fitted):
    """The fitted parameters of an open chain."""

    unknowns: Unknowns
    drives: dict[str, Drive]
    score: float
    """The squared held-out error in noise variances, plus the price of the drives; infinite if
    nothing could be held out"""
    smoothing: Mapping[str, float] = field(default_factory=dict)
    """By name, the rate (rad/s or m/s) below which a joint's dry friction fades to zero (see
    `friction_smoothing`)"""

    def body(self, name: str) -> Floats:
        """The inertial parameters φ (10,) of a body."""
        k = 10 * self.unknowns.bodies.index(name)
        return self.x[k : k + 10]

    def drive(self, owner: str) -> Floats:
        """The parameters of a joint's or shaft's friction law, then its rotor's inertia (as the
        difference from the described one) if it was identified."""
        return self.x[places_of(self.drives, self.unknowns)[owner]]


F = TypeVar("F", bound=Fitted)


def fit(unknowns: Unknowns, normal: NormalEquations) -> Fit:
    """The physically consistent open chain that best fits these normal equations.

    Args:
        unknowns: the parameters to identify.
        normal: the normal equations of all recordings.
    """
    return with_noise(unknowns, normal, lambda equations: _fit(unknowns, equations))


def with_noise(
    unknowns: Columns, normal: NormalEquations, solve: Callable[[SummedEquations], F]
) -> F:
    """The fit to normal equations, and its noise.

    The noise is first estimated from fits without constraints. Where no physically consistent robot
    explains a joint's efforts that well, the additional residuals count as noise, so that they do
    not distort what the other joints determine. Fit and noise are therefore estimated in turn until
    they converge, or repeat, as other drives may be selected with less noise. Of those that repeat,
    the fit with the smallest residuals is taken.

    Args:
        unknowns: the parameters to identify.
        normal: the normal equations of all recordings.
        solve: the fit for a given noise.
    """
    wider, tried = np.ones(len(unknowns.joints)), []
    for _ in range(PASSES):
        found = solve(normal.together(unknowns, wider))
        missed = normal.misfit(unknowns, found.columns @ found.x)
        tried.append((found, wider, missed))
        again = [float(np.abs(np.log(missed / each)).max()) < SAME for _, each, _ in tried]
        if any(again):
            break
        wider = missed
    alike = tried[again.index(True) if any(again) else -1 :]
    found, taken, _ = min(alike, key=lambda each: float(np.log(each[2]).sum()))
    return _with_all_noise(found, normal, taken)


def _with_all_noise(found: F, normal: NormalEquations, taken: Floats) -> F:
    """The same parameters, with a noise, and thus a covariance, that accounts for the degrees of
    freedom used by the fit.

    Args:
        found: the fit.
        normal: the normal equations.
        taken: (n,), the factor by which each joint's noise variance was already increased.
    """
    unknowns, E, own = found.unknowns, found.columns, found.known
    known = E[:, own] @ inverted(found.curvature[np.ix_(own, own)]) @ E[:, own].T
    bent = normal.bent(unknowns, known) / taken
    honest = normal.honest()
    wider = honest.misfit(unknowns, E @ found.x, bent)
    equations = honest.together(unknowns, wider)
    gram = E.T @ equations.gram.sum(axis=0) @ E
    return replace(
        found,
        curvature=found.curvature - found.information + gram,
        information=gram,
        moment=equations.moment.sum(axis=0) @ E,
        sigma=equations.sigma,
    )


def _fit(unknowns: Unknowns, normal: SummedEquations) -> Fit:
    """The fit with the drives that suit it best.

    Drives without springs are first selected with bodies that need not be physically consistent.
    As such bodies explain much of what a spring does, all drives, springs included, are then
    selected again with the bodies held by the fit's own barrier. A later fit replaces an earlier
    one only if its score is clearly better.
    """
    gram, moment = normal.gram.sum(axis=0), normal.moment.sum(axis=0)
    _, prior = approached(gram, moment, unknowns.prior, unknowns.springs)
    described = prior.curvature(1.0)
    drives = choose(unknowns, usual(unknowns), normal, described, described @ prior.mean)
    best = found = _fit_with(drives, unknowns, prior, normal)
    for _ in range(SELECTIONS):
        b = 10 * len(prior.bodies)
        # near x the barrier is ½ (x' - x)ᵀ bend (x' - x) + slope·(x' - x)
        bend = (found.curvature - found.information)[:b, :b]
        slope = (found.moment - found.information @ found.x)[:b]
        right = bend @ found.x[:b] - slope
        drives = choose(unknowns, found.drives, normal, bend, right, springs=True)
        if drives == found.drives:
            break
        found = _fit_with(drives, unknowns, prior, normal)
        if found.score + PENALTY < best.score:
            best = found
    return best


def _fit_with(
    drives: dict[str, Drive], unknowns: Unknowns, prior: Prior, normal: SummedEquations
) -> Fit:
    """The fit with these drives, or with simpler ones where their values would not be physical."""
    while True:
        E = embedding(unknowns, drives)
        gram = np.array([E.T @ G @ E for G in normal.gram])
        moment = normal.moment @ E
        own = _with_scalars(prior, gram.sum(axis=0), unknowns, drives)
        gamma, missed = WEIGHTS[0], 0.0  # a payload has no description that could be weighted
        if unknowns.payload is None:
            gamma, missed = chosen_weight(gram, moment, normal.square, own)
        x, curvature = minimise(gram.sum(axis=0), moment.sum(axis=0), own, gamma)
        sound = _sound(unknowns, drives, x)
        if sound == drives:
            break
        drives = sound
    return Fit(
        x, _names(unknowns, drives), E, curvature, gram.sum(axis=0), moment.sum(axis=0), own, gamma,
        normal.sigma, unknowns, drives, missed + price(unknowns, normal, drives, x),
    )  # fmt: skip


def about_described_bodies(found: Fit) -> Fit | None:
    """The same friction laws and rotors, refitted with the bodies as described.

    None: there are no such parameters, or their fitted values are not physical.
    """
    bodies = 10 * len(found.prior.bodies)
    if bodies == len(found.x):
        return None
    # not the fit's own references, which may be stretched; a payload's does not depend on its link
    unknowns = found.unknowns
    described = unknowns.prior.mean if unknowns.payload is None else unknowns.described
    own = slice(bodies, None)
    G, g = found.information[own], found.moment[own]
    alone = replace(found.prior, bodies=())
    values, _ = minimise(G[:, own], g - G[:, :bodies] @ described, alone, found.gamma)
    x = np.concatenate([described, values])
    if _sound(unknowns, found.drives, x) != found.drives:
        return None
    return replace(found, x=x)


def _with_scalars(
    prior: Prior, gram: Floats, unknowns: Unknowns, drives: dict[str, Drive]
) -> Prior:
    """The prior with the drives' parameters added, centred on described rotors and no friction."""
    information = np.diag(gram)[10 * len(prior.bodies) :]
    rotors = [number for owner in unknowns.owners for number in drives[owner].limits]
    return Prior(prior.bodies, RIDGE * information, np.array(rotors, dtype=float))


def chosen_weight(
    gram: Floats, moment: Floats, square: Floats, prior: Prior
) -> tuple[float, float]:
    """The γ with the smallest cross-validation error, and that error; infinite if nothing can be
    held out."""
    used = [f for f in range(len(gram)) if square[f] > 0]
    if len(used) < 2 or not prior.bodies:
        return 1.0, np.inf
    errors = np.zeros(len(WEIGHTS))
    for f in used:
        G, g = gram.sum(axis=0) - gram[f], moment.sum(axis=0) - moment[f]
        x = None
        for k in reversed(range(len(WEIGHTS))):
            x, _ = minimise(G, g, prior, WEIGHTS[k], x)
            errors[k] += square[f] + x @ (gram[f] @ x - 2 * moment[f])
    k = int(np.argmin(errors))
    return WEIGHTS[k], float(errors[k])


def _sound(unknowns: Unknowns, drives: dict[str, Drive], x: Floats) -> dict[str, Drive]:
    """The drives, or simpler ones where the fitted values are not physical."""
    places = places_of(drives, unknowns)
    return {owner: drives[owner].sound(x[place]) for owner, place in places.items()}


def _names(unknowns: Unknowns, drives: dict[str, Drive]) -> tuple[str, ...]:
    names = [f"{body}.{name}" for body in unknowns.bodies for name in BODY]
    for owner in unknowns.owners:
        prefix = f"{unknowns.shafts[owner][0]}.rotor_" if owner in unknowns.shafts else f"{owner}."
        names += [prefix + name for name in drives[owner].law.names]
        names += [f"{unknowns.rotors[owner]}.inertia"] if drives[owner].rotor else []
    return tuple(names)
