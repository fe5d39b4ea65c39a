# SPDX-License-Identifier: Apache-2.0
"""Numbers and tables for people to read on a terminal."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap

from ..mechanism.shown import text_table


def percent(value: float) -> str:
    """A share; NaN where there was none to measure."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "not measured"


def digits(value: float, beside: float = 0.0) -> str:
    """Four digits and whole hundreds; 0 for what is rounding beside a number of that size."""
    if abs(value) <= 1e-12 * max(beside, 1e-6) or not math.isfinite(value):
        return f"{value:g}" if not math.isfinite(value) else "0"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}"


def table(rows: list[list[str]], left: int = 1) -> list[str]:
    """Aligned lines: the first column, or so many, to the left, the others to the right.

    On a terminal that is too narrow for them each row is a paragraph: its first cell, and below it
    the others with their heads.
    """
    lines, room = text_table(rows, left), _room()
    if room is not None and max(map(len, lines)) > room:
        return [line for row in rows[1:] for line in _paragraph(rows[0], row, room)]
    return lines


def _room() -> int | None:
    """Characters of a line on the terminal; None: what is printed goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _paragraph(head: list[str], row: list[str], room: int) -> list[str]:
    said = [
        f"{name}: {cell}" if name else cell
        for name, cell in zip(head[1:], row[1:], strict=True)
        if cell
    ]
    folded = textwrap.wrap(
        "; ".join(said),
        max(room, 20),
        initial_indent="      ",
        subsequent_indent="      ",
        break_on_hyphens=False,
    )
    return [f"  {row[0]}", *folded]
