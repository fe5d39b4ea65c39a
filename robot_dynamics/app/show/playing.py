# SPDX-License-Identifier: Apache-2.0
"""The page that animates a robot along a motion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...description.files import write_text
from ...mechanism import Mechanism
from ...motion.trajectory import States
from . import meshes
from .facts import LETTERS, Facts, gathered
from .page import page

MOST = 400
"""States that a page carries"""


def played(
    file: str | None, mechanism: Mechanism, path: Path, motion: States, rotors: str = "full"
) -> Path:
    """Write the page; returns its path.

    Args:
        file: the description, for its checks; None: nothing is said of them.

    Raises:
        InputError: it cannot be written.
    """
    facts = Facts() if file is None else gathered(file, mechanism, derived=LETTERS)
    drawn = {} if file is None else meshes.found(file)[0]
    text = page(mechanism, facts, rotors=rotors, motion=carried(motion), meshes=drawn)
    write_text(path, text)
    return path


def recorded(
    mechanism: Mechanism, joints: Sequence[str], stretches: Sequence[Any], source: str, path: Path
) -> Path:
    """Write the page on which a robot plays the longest stretch of a recording; returns its path.

    Args:
        joints: the order of the stretches' columns.
        stretches: with `time`, `q`, `qd` and `qdd`.

    Raises:
        InputError: it cannot be written.
    """
    longest = max(stretches, key=lambda each: len(each.time))
    order = [list(joints).index(name) for name in mechanism.joint_names]
    states = (x[:, order] for x in (longest.q, longest.qd, longest.qdd))
    return played(None, mechanism, path, States(source, longest.time, *states))


def carried(motion: States) -> dict[str, Any]:
    """At most so many states, for the page."""
    rows = np.unique(np.linspace(0, len(motion.time) - 1, MOST).astype(int))
    return {
        "name": motion.source,
        "t": motion.time[rows] - motion.time[0],
        "q": motion.q[rows],
        "qd": motion.qd[rows],
        "qdd": motion.qdd[rows],
    }
