# SPDX-License-Identifier: Apache-2.0
"""Writes an exciting motion to files: YAML to execute, a table, a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..description.files import writable, write_table

if TYPE_CHECKING:
    from ..identification.excitation import ExcitingMotion

SPACING = 0.05
"""s between waypoints: quintics between them match the Fourier series to 1e-4 rad/s²"""
ROWS = 100.0
"""Rows of the table per second, Hz"""


def save(found: ExcitingMotion, out: Path) -> dict[str, Path]:
    """Write the motion as YAML, and next to it as a table and a picture.

    Args:
        found: the motion.
        out: the YAML file; the others have the same name with other extensions.

    Returns:
        the files by their kind: motion, table and picture.

    Raises:
        InputError: a file cannot be written.
    """
    from ..description.motion_file import write_motion
    from .plots import excitation

    motion = found.motion
    count = math.ceil(max(motion.duration / SPACING, 25 * motion.series.harmonics)) + 1
    time = np.linspace(0.0, motion.duration, count)
    writable(out.parent)
    write_motion(out, found.joints, time, *motion(time))
    rows = out.with_suffix(".csv")
    _write_rows(found, rows)
    drawn = excitation(out.with_suffix(".png"), found)
    return {"motion": out, "table": rows, "picture": drawn}


def _write_rows(found: ExcitingMotion, path: Path) -> None:
    """Write a table in the format of recordings: each joint's position, rate, acceleration and the
    effort according to the description."""
    from ..identification.table import column

    time = np.linspace(0.0, found.motion.duration, round(ROWS * found.motion.duration) + 1)
    q, qd, qdd = found.motion(time)
    fields = {
        "position": q, "velocity": qd, "acceleration": qdd, "effort": found.efforts(time),
    }  # fmt: skip
    columns = [
        (column(joint, kind), values[:, j])
        for kind, values in fields.items()
        for j, joint in enumerate(found.joints)
    ]
    write_table(path, [("time", time), *columns])
