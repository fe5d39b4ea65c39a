# SPDX-License-Identifier: Apache-2.0
"""The candidate friction laws, from which one is selected for each joint by the data.

Each joint has raw columns, and the torque of every law is a linear combination of them:

    qd,   1 where qd > 0,   -1 where qd < 0,   1,   exp(-(qd/r)²)·sign(qd) for some rates r,
    sign(qd) - z for some distances of presliding (see `Friction.heading`),   q

A law is a matrix that maps its own parameters (see `mechanism.Friction`) to coefficients of the raw
columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from ..mechanism import Friction, Mechanism
from ..mechanism.friction import TINY
from .recording import Floats

RATES = (0.01, 0.02, 0.035, 0.06, 0.1, 0.18, 0.35, 0.7)
"""rad/s: the candidate rates of the Stribeck effect"""
DISTANCES = (1e-4, 3e-4, 1e-3, 3e-3)
"""rad: the candidate distances of presliding"""
SLIDING = 0.1
"""m (m/s) at a sliding (prismatic) joint that correspond to 1 rad (rad/s) at a turning (revolute)
one"""
SLOW = 0.01
"""RMS rate in rad/s (for sliding joints `SLIDING` times as many m/s) below which a joint counts as
standing still: its friction and its rotor's inertia would be extrapolated from noise"""
LEAST = -700.0
"""Of an exponent: what is less has a power of e that is practically 0, and takes twice as long"""
VISCOUS, FORWARDS, BACKWARDS, OFFSET = range(4)
STRIBECK = 4
"""Of the first rate"""
PRESLIDING = STRIBECK + len(RATES)
"""Of the first distance"""
STIFFNESS = PRESLIDING + len(DISTANCES)
RAW = STIFFNESS + 1
"""Number of raw columns of a joint"""
BREAKAWAY = 4.0
"""Largest ratio of the breakaway torque to Coulomb friction. Near rest, where rates are mostly
noise, a larger ratio would explain errors that have another cause"""
PLAIN = ("viscous", "coulomb", "offset")
"""The parameters of the law that suits most joints"""
SPRING = ("offset", "stiffness")
"""The parameters of a spring, or a cable, that pulls a joint towards some position"""


def raw_columns(qd: Floats, turns: bool, qdd: Floats | None = None) -> Floats:
    """The raw columns (k, RAW) of one joint, with 0 in the place of its positions.

    Args:
        qd: (k,) rates, rad/s or m/s.
        turns: whether the joint turns; otherwise it slides.
        qdd: (k,) accelerations, rad/s² or m/s²; None: dry friction is fully developed.
    """
    signals = np.empty((RAW, len(qd)))
    signals[VISCOUS], signals[OFFSET], signals[PRESLIDING:] = qd, 1.0, 0.0
    signals[FORWARDS], signals[BACKWARDS] = qd > 0, qd < 0
    signals[BACKWARDS] *= -1.0
    sign = signals[FORWARDS] + signals[BACKWARDS]
    for rate, effect in zip(rates(turns), signals[STRIBECK:PRESLIDING], strict=True):
        # exp(-(qd/r)²)·sign(qd)
        np.divide(qd, rate, out=effect)
        effect *= effect
        np.negative(effect, out=effect)
        np.maximum(effect, LEAST, out=effect)
        np.exp(effect, out=effect)
        effect *= sign
    if qdd is not None:
        signals[PRESLIDING:STIFFNESS] = reversal(qd, qdd, np.array(distances(turns))[:, None])
    columns: Floats = signals.T
    return columns


def reversal(qd: Floats, qdd: Floats, distance: Floats | float) -> Floats:
    """sign(qd) - z: what presliding takes from the direction of developed dry friction.

    Args:
        qd: rates, rad/s or m/s.
        qdd: accelerations, rad/s² or m/s².
        distance: of presliding, rad or m; 0: there is none.
    """
    # as in `Friction.heading`: 2 sign(q̇) e^(-d/σ), d = q̇²/2|q̈|, where q̇ q̈ > 0
    reach = 2.0 * np.abs(qdd) * distance + TINY
    square = qd * qd
    # mostly the joint is far from its last reversal
    near = (qd * qdd > 0) & (np.asarray(distance) > 0) & (square < -LEAST * reach)
    heading, way = np.broadcast_arrays(np.sign(qd), square / reach)
    found = np.zeros(near.shape)
    found[near] = 2.0 * heading[near] * np.exp(-way[near])
    return found


def heading(law: Friction, qd: Floats, qdd: Floats) -> Floats:
    """The direction z (k,) of a law's dry friction, as in `Friction.heading`.

    Args:
        law: the friction law.
        qd: (k,) rates, rad/s or m/s.
        qdd: (k,) accelerations, rad/s² or m/s².
    """
    smoothing = float(law.smoothing)
    ahead = np.tanh(qd / smoothing) if smoothing else np.sign(qd)
    return ahead * (1.0 - np.sign(qd) * reversal(qd, qdd, float(law.presliding)))


def rates(turns: bool) -> tuple[float, ...]:
    """The candidate Stribeck rates in rad/s of a turning joint or m/s of a sliding one."""
    return tuple(rate * (1.0 if turns else SLIDING) for rate in RATES)


def distances(turns: bool) -> tuple[float, ...]:
    """The candidate distances of presliding, rad or m."""
    return tuple(each * (1.0 if turns else SLIDING) for each in DISTANCES)


def stands_still(mechanism: Mechanism, joint: str, squares: float, count: float) -> bool:
    """Whether a joint counts as standing still.

    Args:
        mechanism: the robot.
        joint: its name.
        squares: the weighted sum of its squared rates.
        count: the sum of the weights.
    """
    slow = SLOW * (1.0 if mechanism.joint(joint).turns else SLIDING)
    return bool(squares < slow**2 * count)


@dataclass(frozen=True)
class FrictionLaw:
    """A friction law: its parameters, and the columns that it uses."""

    names: tuple[str, ...]
    """Its parameters, which are fields of `mechanism.Friction`"""
    rate: int | None = None
    """Index of its Stribeck rate; None: no Stribeck effect"""
    tied: bool = False
    """Whether the Stribeck torque cancels Coulomb friction at rest, so that the law has no step
    there"""
    distance: int | None = None
    """Index of its presliding displacement; None: dry friction reverses at once"""

    @cached_property
    def matrix(self) -> Floats:
        """(RAW, len(names)): maps its parameters to coefficients of the raw columns"""
        matrix = np.zeros((RAW, len(self.names)))
        for column, name in zip(matrix.T, self.names, strict=True):
            match name:
                case "viscous":
                    column[VISCOUS] = 1.0
                case "coulomb":
                    column[FORWARDS] = column[BACKWARDS] = 1.0
                    if self.tied and self.rate is not None:
                        column[STRIBECK + self.rate] = -1.0
                    if self.distance is not None:
                        column[PRESLIDING + self.distance] = -1.0
                case "offset":
                    column[OFFSET] = 1.0
                case "stiffness":
                    column[STIFFNESS] = 1.0
                case "stribeck_torque" if self.rate is not None:
                    column[STRIBECK + self.rate] = 1.0
        return matrix

    @property
    def springs(self) -> bool:
        """Whether it has a spring."""
        return "stiffness" in self.names

    def pushes(self, values: Floats) -> bool:
        """Whether it has a spring that pushes the joint away from a position.

        Args:
            values: the parameters, in the order of `names`.
        """
        return self.springs and bool(values[self.names.index("stiffness")] < 0)

    def friction(self, values: Floats, turns: bool, size: float = 1.0) -> Friction:
        """The friction with these parameters.

        Args:
            values: the parameters, in the order of `names`.
            turns: whether the joint turns; otherwise it slides.
            size: the factor by which the Stribeck rates of a shaft are larger than those of a
                joint.
        """
        fields = dict(zip(self.names, map(float, values), strict=True))
        if self.rate is not None:
            fields["stribeck_rate"] = size * rates(turns)[self.rate]
            if self.tied:
                fields["stribeck_torque"] = -fields["coulomb"]
        if self.distance is not None:
            fields["presliding"] = distances(turns)[self.distance]
        return Friction(**fields)

    def fault(self, values: Floats) -> str | None:
        """What is not physical: a parameter with which friction would drive the joint at some rate,
        or "breakaway", if the Stribeck torque is too large compared with Coulomb friction; None:
        the friction is physical.

        Args:
            values: the parameters, in the order of `names`.
        """
        fields = dict(zip(self.names, values, strict=True))
        dry = fields.get("coulomb", 0.0)
        if fields.get("viscous", 0.0) < 0:
            return "viscous"
        if dry < 0:
            return "coulomb"
        more = fields.get("stribeck_torque", 0.0)
        if dry + more < 0:
            return "stribeck_torque"
        return "breakaway" if more > (BREAKAWAY - 1) * dry else None

    def without(self, fault: str) -> FrictionLaw:
        """The most similar law that cannot have this fault.

        Args:
            fault: as `fault` returns it.
        """
        bias = tuple(name for name in self.names if name in SPRING)
        viscous = tuple(name for name in self.names if name == "viscous")
        match fault:
            case "viscous":
                return FrictionLaw(self.names[1:], self.rate, self.tied, self.distance)
            case "coulomb":
                return FrictionLaw((*viscous, *bias))
            case "breakaway":
                return FrictionLaw((*viscous, "coulomb", *bias))
            case _:  # the Stribeck torque cancels all Coulomb friction, but no more
                return FrictionLaw((*viscous, "coulomb", *bias), self.rate, tied=True)


@cache
def shaft_laws() -> tuple[FrictionLaw, ...]:
    """The candidates for a motor that is coupled to several joints: those without an offset, as the
    joints' offsets can always express it, and without presliding."""
    return tuple(law for law in laws() if "offset" not in law.names and law.distance is None)


@cache
def laws() -> tuple[FrictionLaw, ...]:
    """All candidate laws, the simplest first."""
    found = []
    for viscous in ((), ("viscous",)):
        for bias in ((), ("offset",), SPRING):
            found.append(FrictionLaw((*viscous, *bias)))
            found.append(FrictionLaw((*viscous, "coulomb", *bias)))
            for k in range(len(DISTANCES)):
                found.append(FrictionLaw((*viscous, "coulomb", *bias), distance=k))
            for k in range(len(RATES)):
                found.append(FrictionLaw((*viscous, "coulomb", *bias), k, tied=True))
                found.append(FrictionLaw((*viscous, "coulomb", *bias, "stribeck_torque"), k))
    return tuple(sorted(found, key=lambda law: len(law.names)))
