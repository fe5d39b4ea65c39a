# SPDX-License-Identifier: Apache-2.0
"""Selects each joint's friction law, and whether its rotor is identified, by cross-validation.

All computations use normal equations. While the laws of one joint are compared, the parameters of
the bodies and of the other joints are eliminated (Schur complement), so each law costs only the
solution of a system of its own size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from .friction_laws import (
    OFFSET,
    PLAIN,
    VISCOUS,
    FrictionLaw,
    law,
    laws,
    shaft_laws,
    stands_still,
)
from .normal_equations import Equations
from .recording import Floats
from .solve import solved
from .unknowns import Unknowns

PENALTY = 10.0
"""Decrease of the squared error, in noise variances, that each additional parameter must achieve: a
parameter less than about three standard deviations from 0 is left out"""
HUMP = 0.1
"""Fraction of a joint's squared error that a Stribeck effect must explain, since some Stribeck rate
always explains a little where a noisy rate changes sign. So must a spring that pushes, which
explains a little where efforts and bodies do not match"""
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
        humps = (self.law.rate is not None) + self.law.pushes(values)
        return PENALTY * self.size + HUMP * count * humps

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
    return Drive(law(()), False)


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
    normal: Equations,
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
    if unknowns.payload is not None:
        return drives
    for _ in range(SWEEPS):
        before = dict(drives)
        for owner in unknowns.owners:
            counted = _counted(unknowns, normal, owner)
            drives[owner] = (
                _best(unknowns, normal, drives, owner, bend, right, springs)
                if counted > 0
                else nothing()
            )
        if before == drives:
            break
    return drives


def usual(unknowns: Unknowns) -> dict[str, Drive]:
    """The drives from which the selection starts, which most joints and shafts have."""
    if unknowns.payload is not None:
        return {owner: nothing() for owner in unknowns.owners}
    drives = {joint: Drive(law(PLAIN), False) for joint in unknowns.joints}
    for shaft in unknowns.shafts:
        drives[shaft] = Drive(law(WITHOUT_OFFSET), True, unknowns.rotor_inertia(shaft))
    return drives


def price(unknowns: Unknowns, normal: Equations, drives: dict[str, Drive], x: Floats) -> float:
    """The sum of the prices of all drives, with the parameters x (p,) of a fit."""
    return sum(
        drives[owner].price(_counted(unknowns, normal, owner), x[place])
        for owner, place in places_of(drives, unknowns).items()
    )


def _counted(unknowns: Unknowns, normal: Equations, owner: str) -> float:
    """The effective number of samples in which the joint's or shaft's friction acts."""
    return float(normal.count[unknowns.turning(owner) != 0].sum())


def _best(
    unknowns: Unknowns,
    normal: Equations,
    drives: dict[str, Drive],
    joint: str,
    bend: Floats,
    right: Floats,
    springs: bool,
) -> Drive:
    others = drives | {joint: nothing()}
    E = embedding(unknowns, others)
    group = unknowns.group(joint)
    folds = len(normal.gram)
    rest = E.shape[1] - len(bend)
    H0, right0 = np.pad(bend, (0, rest)), np.pad(right, (0, rest))
    # blocks of the normal equations: other parameters (o), this joint's columns (d)
    oo, od, dd = E.T @ normal.gram @ E, E.T @ normal.gram[:, :, group], normal.gram[:, group, group]
    o, d = normal.moment @ E, normal.moment[:, group]
    ridge = 1e-9 * np.diag(np.diag(dd.sum(axis=0)))

    def eliminated(train: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        A, B = np.tensordot(train, oo, 1) + H0, np.tensordot(train, od, 1)
        A = A + 1e-12 * np.diag(np.diag(A))
        Z = solved(A, np.column_stack([train @ o + right0, B]))
        S = np.tensordot(train, dd, 1) - B.T @ Z[:, 1:]
        return Z[:, 0], Z[:, 1:], S + ridge, train @ d - B.T @ Z[:, 0]

    _, _, S, s = eliminated(np.ones(folds))
    schur, sides, errors = [S], [s], []
    for f in np.flatnonzero(np.trace(dd, axis1=1, axis2=2) > 0):
        z, Z, S, s = eliminated(np.where(np.arange(folds) == f, 0.0, 1.0))
        schur.append(S)
        sides.append(s)
        # the held-out error Σ w (τ - y x)², where the other parameters are z - Z own, as a
        # quadratic form: ownᵀ Q own + 2 rᵀ own + c
        cross = Z.T @ od[f]
        Q = Z.T @ oo[f] @ Z - cross - cross.T + dd[f]
        r = Z.T @ (o[f] - oo[f] @ z) + od[f].T @ z - d[f]
        errors.append((Q, r, normal.square[f] + z @ (oo[f] @ z - 2 * o[f])))
    width, whole = group.stop - group.start, dd.sum(axis=0)
    drives_of: dict[int, list[tuple[Drive, Floats]]] = {}
    for drive in _candidates(unknowns, joint, whole, drives[joint], springs):
        C = drive.columns(width)
        if (np.diag(C.T @ whole @ C) > 0).all():  # every column is excited
            drives_of.setdefault(drive.size, []).append((drive, C))
    count = _counted(unknowns, normal, joint)
    none = _Scored(nothing(), np.full(len(errors), np.inf), np.inf)
    best, driving, score = none, none, attrgetter("score")
    for some in drives_of.values():
        found, error = _tried(np.array([C for _, C in some]), schur, sides, errors)
        for (drive, _), values, each in zip(some, found, error, strict=True):
            scored = _Scored(drive, each, float(each.sum() + drive.price(count, values)))
            turned = replace(drive, driving=True)
            if drive.law is law(PLAIN) and turned.sound(values) is turned:
                driving = min(driving, replace(scored, drive=turned), key=score)
            if drive.sound(values) is drive:
                best = min(best, scored, key=score)
    return driving.drive if driving.explains(best, DRIVES * count) else best.drive


def _candidates(
    unknowns: Unknowns, owner: str, gram: Floats, present: Drive, springs: bool
) -> Iterator[Drive]:
    """The drives that a joint or shaft may have.

    A joint that stands still has at most an offset. A continuous joint has no spring unless one is
    described.

    Args:
        unknowns: the parameters' columns.
        owner: the joint or shaft.
        gram: (width, width), the normal matrix of its own columns.
        present: its drive.
        springs: whether joints may have springs; a rotor of the present drive then stays.
    """
    squares, count = gram[VISCOUS, VISCOUS], gram[OFFSET, OFFSET]
    if owner not in unknowns.shafts and stands_still(unknowns.mechanism, owner, squares, count):
        yield from (Drive(law(names), False) for names in ((), ("offset",)))
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
    missed: Floats
    """(parts,): squared error on each held-out part"""
    score: float
    """Their sum plus the drive's price"""

    def explains(self, other: _Scored, more: float) -> bool:
        """Whether this drive's score is better than the other's by more than `more`, and its error
        is smaller on every part."""
        return self.score + more < other.score and bool((self.missed < other.missed).all())


def _tried(
    C: Floats, schur: list[Floats], right: list[Floats], errors: list[tuple[Floats, Floats, float]]
) -> tuple[Floats, Floats]:
    """(parameters (k, size) fitted to all data, squared errors (k, parts) on each held-out part) of
    k drives.

    Args:
        C: (k, width, size), each drive's columns.
        schur: (width, width) each: the Schur complement of all data, then without each part.
        right: (width,) each: its right-hand side, likewise.
        errors: for each part, the error as a quadratic form of the coefficients of the joint's
            columns.
    """
    Ct = np.swapaxes(C, 1, 2)
    found = [solved(Ct @ S @ C, Ct @ s) for S, s in zip(schur, right, strict=True)]
    missed = np.zeros((len(C), len(errors)))
    for part, (x, (Q, r, c)) in enumerate(zip(found[1:], errors, strict=True)):
        own = (C @ x[..., None])[..., 0]
        missed[:, part] = ((own @ Q) * own).sum(axis=1) + 2 * own @ r + c
    return found[0], missed
