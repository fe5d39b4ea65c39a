"""The page of a robot that plays a motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...mechanism import Mechanism
from ...scalar import Floats
from . import meshes
from .facts import Facts, gathered
from .page import page, write

MOST = 400
"""States that a page carries"""


class Moving(Protocol):
    """A motion of the joints that `InverseDynamics` has."""

    @property
    def source(self) -> str:
        """Its name"""

    @property
    def time(self) -> Floats:
        """(m,), s"""

    @property
    def q(self) -> Floats:
        """(m, n)"""

    @property
    def qd(self) -> Floats:
        """(m, n)"""

    @property
    def qdd(self) -> Floats:
        """(m, n)"""


def played(
    file: str | None, mechanism: Mechanism, path: Path, motion: Moving, rotors: str = "full"
) -> Path:
    """Write the page; returns its path.

    Args:
        file: the description, for its checks; None: nothing is said of them.

    Raises:
        InputError: it can't be written.
    """
    facts = Facts() if file is None else gathered(file, mechanism)
    drawn = {} if file is None else meshes.found(file)[0]
    text = page(mechanism, facts, rotors=rotors, motion=carried(motion), meshes=drawn)
    write(str(path), text)
    return path


def carried(motion: Moving) -> dict[str, Any]:
    """At most so many states, for the page."""
    rows = np.unique(np.linspace(0, len(motion.time) - 1, MOST).astype(int))
    return {
        "name": motion.source,
        "t": motion.time[rows] - motion.time[0],
        "q": motion.q[rows],
        "qd": motion.qd[rows],
        "qdd": motion.qdd[rows],
    }
