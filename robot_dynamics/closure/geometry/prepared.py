"""A mechanism as it is computed with: home closed, loose joints held."""

from __future__ import annotations

import warnings

from ...errors import ClosureWarning, callers_level
from ...mechanism import Mechanism
from .loop_geometry import LoopGeometry
from .mendable import Mendable
from .solver import ClosureSolver


def prepared(mechanism: Mechanism) -> tuple[Mechanism, ClosureSolver]:
    """The same mechanism without loose spins that do no work, and its position problem.

    Raises:
        DescriptionError, ClosureError: see `mobility.explore`.

    Warns:
        ClosureWarning: a rough home was closed by a search; a joint is held that spins freely.
    """
    try:
        return mechanism, ClosureSolver(LoopGeometry.of(mechanism))
    except Mendable as complaint:
        warnings.warn(str(complaint), ClosureWarning, stacklevel=callers_level())
        # what is left may still be wrong, and is then said
        return prepared(complaint.mended(mechanism))
