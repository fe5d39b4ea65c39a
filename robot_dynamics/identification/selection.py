# SPDX-License-Identifier: Apache-2.0
"""Selects each joint's friction law, and whether its rotor is identified, by cross-validation.

All computations use normal equations. While the laws of one joint are compared, the parameters of
the bodies and of the other joints are eliminated (Schur complement), so each law costs only the
solution of a system of its own size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress
from operator import attrgetter

import numpy as np

from .friction_laws import (
    OFFSET,
    PLAIN,
    VISCOUS,
    FrictionLaw,
    laws,
    shaft_laws,
    stands_still,
)
from .normal_equations import SummedEquations, robust_sum
from .recording import Floats
from .solve import solved
from .unknowns import Unknowns

PENALTY = 10.0
"""Decrease of the squared error, in noise variances, that each additional parameter must achieve: a
parameter less than about three standard deviations from 0 is left out"""
HUMP = 0.1
"""Fraction of a joint's squared error that a Stribeck effect must explain, since some Stribeck rate
always explains a little where a noisy rate changes sign. So must presliding, for the same reason,
and a spring that pushes, which explains a little where efforts and bodies do not match"""
DRIVES = 3.0
"""Decrease of the squared held-out error, per sample and in noise variances, that justifies
friction that drives its joint (a halved RMS error); the error must also decrease on every held-out
part"""
WITHOUT_OFFSET = ("viscous", "coulomb")
SWEEPS = 3
"""Largest number of sweeps over the joints, since the choice at one affects the others"""


@dataclass(frozen=True)
class Drive:
    """The friction law and the rotor of a joint or shaft."""

    law: FrictionLaw
    rotor: bool
    """Whether the rotor's inertia is identified, as the difference from the described one"""
    described: float = 0.0
    """kg m²: the rotor's inertia as described"""
    driving: bool = False
    """Whether its friction may drive the joint, as efforts with the wrong sign require"""

    @property
    def size(self) -> int:
        """Number of parameters: the friction law's, and the rotor's inertia."""
        return len(self.law.names) + self.rotor

    @property
    def limits(self) -> list[float]:
        """(size,): how far below 0 each parameter may be: for a described rotor its inertia,
        otherwise infinitely far."""
        rotor = [self.described if self.described > 0 else np.inf]
        return [np.inf] * len(self.law.names) + rotor * self.rotor

    def price(self, count: float, values: Floats) -> float:
        """The penalty, in noise variances, that is added to the squared held-out error.

        Args:
            count: the effective number of samples in which the drive acts.
            values: its parameters.
        """
        return PENALTY * self.size + HUMP * count * self.humps(values)

    def humps(self, values: Floats) -> int:
        """Number of its parts that always explain a little, whatever the robot.

        Args:
            values: its parameters.
        """
        law = self.law
        return (law.rate is not None) + (law.distance is not None) + law.pushes(values)

    def columns(self, width: int) -> Floats:
        """(width, size): maps its parameters to coefficients of its joint's columns."""
        out = np.zeros((width, self.size))
        k, m = self.law.matrix.shape
        if width >= k:
            out[:k, :m] = self.law.matrix
        if self.rotor:
            out[-1, -1] = 1.0
        return out

    def sound(self, values: Floats) -> Drive:
        """This drive if it is physical with these values, otherwise the most similar simpler
        one."""
        own = len(self.law.names)
        fault = None if self.driving else self.law.fault(values[:own])
        law = self.law if fault is None else self.law.without(fault)
        # the fit itself keeps the inertia of a described rotor positive
        rotor = self.rotor and (self.described > 0 or bool((values[own:] >= 0).all()))
        same = (law, rotor) == (self.law, self.rotor)
        return self if same else replace(self, law=law, rotor=rotor)


def nothing() -> Drive:
    """No friction, and the rotor as described."""
    return Drive(FrictionLaw(()), False)


def places_of(drives: Mapping[str, Drive], unknowns: Unknowns) -> dict[str, slice]:
    """By joint and shaft, the places of its drive's parameters, which follow those of the
    bodies."""
    places, at = {}, 10 * len(unknowns.bodies)
    for owner in unknowns.owners:
        places[owner] = slice(at, at := at + drives[owner].size)
    return places


def embedding(unknowns: Unknowns, drives: dict[str, Drive]) -> Floats:
    """(p, 10 b + m): maps the parameters of bodies and drives to coefficients of all columns."""
    block = 10 * len(unknowns.bodies)
    width = block + sum(drive.size for drive in drives.values())
    out = np.zeros((unknowns.size, width))
    out[:block, :block] = np.eye(block)
    for owner, place in places_of(drives, unknowns).items():
        group = unknowns.group(owner)
        out[group, place] = drives[owner].columns(group.stop - group.start)
    return out


def choose(
    unknowns: Unknowns,
    start: dict[str, Drive],
    normal: SummedEquations,
    bend: Floats,
    right: Floats,
    *,
    springs: bool = False,
) -> dict[str, Drive]:
    """Select the drive of each joint and shaft.

    Args:
        unknowns: the parameters' columns.
        start: the drives to start from.
        normal: the normal equations.
        bend: (10 b, 10 b), the Hessian of the term that regularises the bodies, and
        right: (10 b,), its right-hand side.
        springs: whether a joint may have a spring.
    """
    drives = dict(start)
    whole, parts = _without_bodies(normal, bend, right)
    selected: dict[str, dict[str, Drive]] = {}
    for _ in range(SWEEPS):
        before = dict(drives)
        for owner in unknowns.owners:
            if selected.get(owner) == drives:  # no other drive has changed since
                continue
            counted = _counted(unknowns, normal, owner)
            drives[owner] = (
                _best(unknowns, normal, whole, parts, drives, owner, counted, springs)
                if counted > 0
                else nothing()
            )
            selected[owner] = dict(drives)
        if before == drives:
            break
    return drives


def usual(unknowns: Unknowns) -> dict[str, Drive]:
    """The drives from which the selection starts, which most joints and shafts have."""
    if unknowns.payload is not None:
        return {owner: nothing() for owner in unknowns.owners}
    drives = {joint: Drive(FrictionLaw(PLAIN), False) for joint in unknowns.joints}
    for shaft in unknowns.shafts:
        drives[shaft] = Drive(FrictionLaw(WITHOUT_OFFSET), True, unknowns.rotor_inertia(shaft))
    return drives


def price(
    unknowns: Unknowns, normal: SummedEquations, drives: dict[str, Drive], x: Floats
) -> float:
    """The sum of the prices of all drives, with the parameters x (p,) of a fit."""
    return sum(
        drives[owner].price(_counted(unknowns, normal, owner), x[place])
        for owner, place in places_of(drives, unknowns).items()
    )


def _counted(unknowns: Unknowns, normal: SummedEquations, owner: str) -> float:
    """The effective number of samples in which the joint's or shaft's friction acts."""
    return float(normal.count[unknowns.turning(owner) != 0].sum())


@dataclass(frozen=True, eq=False)
class _Quadratics:
    """Two quadratics in coefficients y of columns: what is minimised, and the error on one part of
    the data, which is held out of it.

        ½ yᵀ H y - gᵀ y          yᵀ Q y - 2 rᵀ y + c
    """

    H: Floats
    g: Floats
    Q: Floats
    r: Floats
    c: float

    def eliminated(self, E: Floats, own: slice) -> _Quadratics:
        """Both as functions of some coefficients y_own, where the others are E o and o minimises
        the first.

        Args:
            E: (p, k), whose rows of `own` are 0.
            own: the coefficients that stay.
        """
        A, B = E.T @ self.H @ E, E.T @ self.H[:, own]
        A = A + 1e-12 * np.diag(np.diag(A))
        # o = z - Z y_own
        solution = solved(A, np.column_stack([E.T @ self.g, B]))
        z, Z = solution[:, 0], solution[:, 1:]
        # y = y₀ + W y_own
        y0, W = E @ z, -E @ Z
        W[own] += np.eye(Z.shape[1])
        missed = self.Q @ y0 - self.r
        return _Quadratics(
            self.H[own, own] - B.T @ Z, self.g[own] - B.T @ z,
            W.T @ self.Q @ W, -W.T @ missed, self.c + y0 @ (missed - self.r),
        )  # fmt: skip


def _without_bodies(
    normal: SummedEquations, bend: Floats, right: Floats
) -> tuple[_Quadratics, list[_Quadratics]]:
    """All data, then all data without each part, as quadratics in the coefficients of friction and
    rotors alone."""
    bodies, p = len(bend), normal.gram.shape[-1]
    own = slice(bodies, p)
    H = normal.gram.sum(axis=0) + np.pad(bend, (0, p - bodies))
    # what only one part excites is not left over from rounding without it
    H += 1e-12 * np.diag(np.diag(H))
    g = normal.moment.sum(axis=0) + np.pad(right, (0, p - bodies))
    E = np.eye(p)[:, :bodies]
    parts = [
        _Quadratics(H - Q, g - r, Q, r, float(c)).eliminated(E, own)
        for Q, r, c in zip(normal.gram, normal.moment, normal.square, strict=True)
    ]
    nothing_held = np.zeros_like(H), np.zeros_like(g), 0.0
    return _Quadratics(H, g, *nothing_held).eliminated(E, own), parts


def _best(
    unknowns: Unknowns,
    normal: SummedEquations,
    whole: _Quadratics,
    parts: list[_Quadratics],
    drives: dict[str, Drive],
    joint: str,
    count: float,
    springs: bool,
) -> Drive:
    group, bodies = unknowns.group(joint), 10 * len(unknowns.bodies)
    gram = normal.gram[:, group, group]
    excited = np.trace(gram, axis1=1, axis2=2) > 0
    others = embedding(unknowns, drives | {joint: nothing()})[bodies:, bodies:]
    own = slice(group.start - bodies, group.stop - bodies)
    quadratics = [
        each.eliminated(others, own)
        for each in (whole, *(part for part, has in zip(parts, excited, strict=True) if has))
    ]
    total = gram.sum(axis=0)
    ridge = 1e-9 * np.diag(np.diag(total))
    by_size: dict[int, list[Drive]] = {}
    for drive in _candidates(unknowns, joint, total, drives[joint], springs):
        by_size.setdefault(drive.size, []).append(drive)
    tried = []
    for some in by_size.values():
        C = _columns(tuple((drive.law, drive.rotor) for drive in some), len(total))
        # every column is excited
        told = ((total @ C * C).sum(axis=1) > 0).all(axis=1)
        found, errors = _tried(C[told], quadratics, ridge)
        sums = errors.sum(axis=1).tolist()
        for drive, x, missed, error in zip(compress(some, told), found, errors, sums, strict=True):
            tried.append(_Scored(drive, x, missed, error + drive.price(count, x)))
    tried.sort(key=attrgetter("score"))
    sound = []
    for each in filter(_Scored.is_sound, tried):
        sound.append(each)
        if not each.humps:
            break
    simple = sound[-1] if sound and not sound[-1].humps else None
    best = next(
        (each for each in sound if simple is None or each is simple or each.beats(simple)), None
    )
    plain = FrictionLaw(PLAIN)
    driven = (replace(each, drive=replace(each.drive, driving=True))
              for each in tried if each.drive.law == plain)  # fmt: skip
    driving = next(filter(_Scored.is_sound, driven), None)
    if driving is not None and (best is None or driving.explains(best, DRIVES * count)):
        return driving.drive
    return nothing() if best is None else best.drive


@cache
def _columns(kinds: tuple[tuple[FrictionLaw, bool], ...], width: int) -> Floats:
    """(k, width, size): the columns of drives of the same size, by law and rotor."""
    return np.array([Drive(law, rotor).columns(width) for law, rotor in kinds])


def _candidates(
    unknowns: Unknowns, owner: str, gram: Floats, present: Drive, springs: bool
) -> Iterator[Drive]:
    """The drives that a joint or shaft may have.

    A joint that stands still has at most an offset, as do all joints if a payload is sought. A
    continuous joint has no spring unless one is described.

    Args:
        unknowns: the parameters' columns.
        owner: the joint or shaft.
        gram: (width, width), the normal matrix of its own columns.
        present: its drive.
        springs: whether joints may have springs; a rotor of the present drive then stays.
    """
    squares, count = gram[VISCOUS, VISCOUS], gram[OFFSET, OFFSET]
    if unknowns.payload is not None or (
        owner not in unknowns.shafts and stands_still(unknowns.mechanism, owner, squares, count)
    ):
        yield from (Drive(FrictionLaw(names), False) for names in ((), ("offset",)))
        return
    described = unknowns.rotor_inertia(owner) if owner in unknowns.rotors else 0.0
    rotors = sorted({springs and present.rotor, owner in unknowns.rotors})
    for each in shaft_laws() if owner in unknowns.shafts else laws():
        if not each.springs or (springs and not _is_endless(unknowns, owner)):
            yield from (Drive(each, rotor, described) for rotor in rotors)


def _is_endless(unknowns: Unknowns, name: str) -> bool:
    """Whether a joint is continuous, and no spring is described at it."""
    joint = unknowns.mechanism.joint(name)
    return joint.type == "continuous" and not joint.friction.stiffness


@dataclass(frozen=True, eq=False)
class _Scored:
    """A drive and its held-out error."""

    drive: Drive
    values: Floats
    """(size,): its parameters"""
    missed: Floats
    """(parts,): squared error on each held-out part"""
    score: float
    """Their sum plus the drive's price"""

    @property
    def humps(self) -> int:
        """As `Drive.humps`."""
        return self.drive.humps(self.values)

    def is_sound(self) -> bool:
        """Whether the drive is physical with these values."""
        return self.drive.sound(self.values) is self.drive

    def beats(self, other: _Scored) -> bool:
        """Whether its score is better than the other's, and not because of a single part, as in one
        reversal a noisy rate may cost as much as in all others."""
        price, lower = (each.score - each.missed.sum() for each in (self, other))
        return bool(robust_sum(other.missed - self.missed) > price - lower)

    def explains(self, other: _Scored, more: float) -> bool:
        """Whether this drive's score is better than the other's by more than `more`, and its error
        is smaller on every part."""
        return self.score + more < other.score and bool((self.missed < other.missed).all())


def _tried(C: Floats, quadratics: list[_Quadratics], ridge: Floats) -> tuple[Floats, Floats]:
    """(parameters (k, size) fitted to all data, squared errors (k, parts) on each held-out part) of
    k drives.

    Args:
        C: (k, width, size), each drive's columns.
        quadratics: of all data, then of those without each part, in the coefficients of the
            joint's own columns.
        ridge: (width, width), added to what is minimised.
    """
    H, g, Q, r, c = (
        np.array([getattr(each, name) for each in quadratics]) for name in ("H", "g", "Q", "r", "c")
    )
    Ct = np.swapaxes(C, 1, 2)
    A, b = Ct @ (H + ridge)[:, None] @ C, (Ct @ g[:, None, :, None])[..., 0]
    parts, k, size = b.shape
    x = solved(A.reshape(parts * k, size, size), b.reshape(parts * k, size)).reshape(b.shape)
    y = (C @ x[..., None])[1:, :, :, 0]
    missed = ((y @ Q[1:]) * y).sum(axis=2) - 2 * (y @ r[1:, :, None])[..., 0] + c[1:, None]
    return x[0], missed.T
