# SPDX-License-Identifier: Apache-2.0
"""An exciting motion as files: YAML to play, a table, a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..description.files import writable, write_table

if TYPE_CHECKING:
    from ..identification.excitation import Excitement

SPACING = 0.05
"""s between two waypoints: quintics between them are the series to 1e-4 rad/s²"""
ROWS = 100.0
"""Hz of the table"""


def save(found: Excitement, out: Path) -> dict[str, Path]:
    """Write the motion as YAML, and beside it as a table and as a picture.

    Returns: the files by what they are.

    Raises:
        InputError: one of them cannot be written.
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


def _write_rows(found: Excitement, path: Path) -> None:
    """As recordings are written: by joint position, rate and the described robot's effort."""
    time = np.linspace(0.0, found.motion.duration, round(ROWS * found.motion.duration) + 1)
    q, qd, qdd = found.motion(time)
    fields = {
        "position": q, "velocity": qd, "acceleration": qdd, "effort": found.efforts(time),
    }  # fmt: skip
    columns = [
        (f"{joint}/{kind}", values[:, j])
        for kind, values in fields.items()
        for j, joint in enumerate(found.joints)
    ]
    write_table(path, [("time", time), *columns])
