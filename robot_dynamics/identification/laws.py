"""The laws of friction that the data may choose from.

Each joint has raw columns, of which the torque of every law is a sum:

    qd,   1 where qd > 0,   -1 where qd < 0,   1,   exp(-(qd/r)²)·sign(qd) for some rates r

A law is a matrix from its own numbers to those of the raw columns (see `mechanism.Friction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ..mechanism import Friction
from .recording import Floats

RATES = (0.01, 0.02, 0.035, 0.06, 0.1, 0.18, 0.35, 0.7)
"""rad/s, of Stribeck's hump: what is tried"""
SLIDING = 0.1
"""m/s of a sliding joint for one rad/s of a turning one"""
VISCOUS, FORWARDS, BACKWARDS, OFFSET = range(4)
RAW = 4 + len(RATES)
"""Columns of a joint"""


def raw_columns(qd: Floats, turns: bool) -> Floats:
    """(k, RAW) of one joint's rates (k,)."""
    ahead, back = (qd > 0).astype(float), -(qd < 0).astype(float)
    columns = [qd, ahead, back, np.ones_like(qd)]
    for rate in rates(turns):
        columns.append(np.exp(-((qd / rate) ** 2)) * (ahead + back))
    return np.column_stack(columns)


def rates(turns: bool) -> tuple[float, ...]:
    """Stribeck's rates that are tried at a turning or a sliding joint."""
    return tuple(rate * (1.0 if turns else SLIDING) for rate in RATES)


@dataclass(frozen=True, eq=False)
class Law:
    """One shape of friction."""

    names: tuple[str, ...]
    """Its numbers: fields of `mechanism.Friction`"""
    matrix: Floats
    """(RAW, len(names))"""
    rate: int | None = None
    """Which of the rates its hump has"""
    tied: bool = False
    """Does the hump take away all Coulomb friction at rest, so that the law has no step there?"""

    def friction(self, values: Floats, turns: bool) -> Friction:
        """The law with these numbers."""
        fields = dict(zip(self.names, map(float, values), strict=True))
        if self.rate is not None:
            fields["stribeck_rate"] = rates(turns)[self.rate]
            if self.tied:
                fields["stribeck_torque"] = -fields["coulomb"]
        return Friction(**fields)

    def is_sound(self, values: Floats) -> bool:
        """Does it slow the joint down at every rate, whichever way it turns?"""
        fields = dict(zip(self.names, values, strict=True))
        dry = fields.get("coulomb", 0.0)
        back = fields.get("coulomb_negative", dry)
        hump = 0.0 if self.tied else fields.get("stribeck_torque", 0.0)
        return bool(
            fields.get("viscous", 0.0) >= 0 and min(dry, back) >= 0 and min(dry, back) + hump >= 0
        )


@cache
def laws() -> tuple[Law, ...]:
    """Every law that is tried, the simplest first."""
    found = [
        _law(()),
        _law(("viscous",)),
        _law(("coulomb",)),
        _law(("viscous", "coulomb")),
        _law(("viscous", "coulomb", "offset")),
    ]
    for k in range(len(RATES)):
        found += [
            _law(("viscous", "coulomb"), k, tied=True),
            _law(("viscous", "coulomb", "offset"), k, tied=True),
            _law(("viscous", "coulomb", "stribeck_torque"), k),
            _law(("viscous", "coulomb", "offset", "stribeck_torque"), k),
            _law(("viscous", "coulomb", "coulomb_negative", "offset", "stribeck_torque"), k),
        ]
    return tuple(found)


def _law(names: tuple[str, ...], rate: int | None = None, tied: bool = False) -> Law:
    matrix = np.zeros((RAW, len(names)))
    for column, name in zip(matrix.T, names, strict=True):
        match name:
            case "viscous":
                column[VISCOUS] = 1.0
            case "coulomb":
                column[FORWARDS] = 1.0
                column[BACKWARDS] = 0.0 if "coulomb_negative" in names else 1.0
                if tied and rate is not None:
                    column[4 + rate] = -1.0
            case "coulomb_negative":
                column[BACKWARDS] = 1.0
            case "offset":
                column[OFFSET] = 1.0
            case "stribeck_torque" if rate is not None:
                column[4 + rate] = 1.0
    return Law(names, matrix, rate, tied)
