# SPDX-License-Identifier: Apache-2.0
"""A mechanism as it is computed with: home closed, loose joints held."""

from __future__ import annotations

import warnings

from ...errors import ClosureWarning, callers_level, said_of
from ...mechanism import Mechanism
from .closer import Closer
from .loop_geometry import LoopGeometry
from .mend import Mend
from .near import Near

ELSEWHERE = 0.5
"""rad, or shares of the size: how far home may be from what `near` says, unsaid"""


def prepared(mechanism: Mechanism) -> tuple[Mechanism, Closer]:
    """The same mechanism with home closed and without loose spins, and its position problem.

    Raises:
        DescriptionError, ClosureError: see `mobility.explore`.

    Warns:
        ClosureWarning: a rough home was closed by a search; a joint is held that spins freely.
    """
    label = mechanism.label
    mechanism, solver, mends = mended(mechanism)
    said = [f"{label}: {mend.message}" for mend in mends]
    off = Near(solver.geometry, solver.scale, solver.size).miss(solver.mobility.home)
    if off > ELSEWHERE:
        said.append(
            f"{mechanism.label}: home: it is {off:.3g} (rad, or shares of the robot's size) away "
            "from what `near` says, as if another assembly mode were meant: `robot_dynamics close "
            "FILE` lists them"
        )
    for words in said:
        warnings.warn(words, ClosureWarning, stacklevel=callers_level())
    return mechanism, solver


def mended(mechanism: Mechanism) -> tuple[Mechanism, Closer, list[Mend]]:
    """The same, returning what was mended instead of warning of it."""
    mends: list[Mend] = []
    while True:
        with said_of(mechanism.label):
            found = Closer.of(LoopGeometry.of(mechanism))
        if isinstance(found, Closer):
            return mechanism, found, mends
        mends.append(found)
        # what is left may still be wrong, and is then said
        mechanism = found.mended(mechanism)
