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
from .page import Facts, page

MOST = 400
"""Largest number of states on a page"""


def played(
    file: str | None, mechanism: Mechanism, path: Path, motion: States, rotors: str = "full"
) -> Path:
    """Write the page, and return its path.

    Args:
        file: the description, for its checks and meshes; None: the page has neither.
        mechanism: the robot.
        path: the file to write.
        motion: the motion to animate.
        rotors: the rotor model.

    Raises:
        InputError: the file cannot be written.
    """
    facts, drawn = Facts(), {}
    if file is not None:
        from .facts import LETTERS, gathered

        facts = gathered(file, mechanism, derived=LETTERS)
        drawn = meshes.found(file)[0]
    text = page(mechanism, facts, rotors=rotors, motion=carried(motion), meshes=drawn)
    write_text(path, text)
    return path


def recorded(
    mechanism: Mechanism, joints: Sequence[str], stretches: Sequence[Any], source: str, path: Path
) -> Path:
    """Write a page that animates the longest stretch of a recording, and return its path.

    Args:
        mechanism: the robot.
        joints: the names in the order of the stretches' columns.
        stretches: each with `time`, `q`, `qd` and `qdd`.
        source: the name of the recording.
        path: the file to write.

    Raises:
        InputError: the file cannot be written.
    """
    longest = max(stretches, key=lambda each: len(each.time))
    order = [list(joints).index(name) for name in mechanism.joint_names]
    states = (x[:, order] for x in (longest.q, longest.qd, longest.qdd))
    return played(None, mechanism, path, States(source, longest.time, *states))


def carried(motion: States) -> dict[str, Any]:
    """The motion for the page, with at most `MOST` states."""
    rows = np.unique(np.linspace(0, len(motion.time) - 1, MOST).astype(int))
    return {
        "name": motion.source,
        "t": motion.time[rows] - motion.time[0],
        "q": motion.q[rows],
        "qd": motion.qd[rows],
        "qdd": motion.qdd[rows],
    }
