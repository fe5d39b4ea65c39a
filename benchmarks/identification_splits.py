# SPDX-License-Identifier: Apache-2.0
"""Held-out torque errors of real recordings split in different places, by joint."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from robot_dynamics.identification import Recording, identify, read

RECORDINGS = Path(__file__).parent.parent / "test" / "data" / "recordings"
SPLITS = (
    ((0, 0.5), (0.5, 0.75)),
    ((0, 0.66), (0.66, 1)),
    ((0.33, 1), (0, 0.33)),
    ((0, 0.4), (0.6, 1)),
    ((0.5, 1), (0, 0.5)),
)
"""(fitted, judged), of the messages"""


def part(whole: Recording, begin: float, end: float) -> Recording:
    """The messages between these shares of a recording of one stream."""
    (stream,) = whole.streams
    n = len(stream.time)
    chosen = slice(round(begin * n), round(end * n))
    return Recording(f"{whole.source} {begin:g}-{end:g}", (stream.rows(chosen),))


def main() -> int:
    """Prints a line for each split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("description", help="the robot's URDF")
    parser.add_argument("recording", nargs="?", default=str(RECORDINGS / "ur10"))
    parser.add_argument("--rename", nargs=2, metavar=("OLD", "NEW"))
    options = parser.parse_args()
    recording = read(options.recording)
    recording = recording.renamed(dict([options.rename]) if options.rename else {})
    for fitted, judged in SPLITS:
        result = identify(
            options.description, part(recording, *fitted), validate=part(recording, *judged)
        )
        errors = 100 * result.errors.relative
        row = " ".join(f"{error:5.1f}" for error in errors)
        print(f"{fitted} -> {judged}: {row}  mean {np.nanmean(errors):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
