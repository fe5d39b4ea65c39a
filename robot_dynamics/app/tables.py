# SPDX-License-Identifier: Apache-2.0
"""Numbers and tables for a terminal."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap

from ..mechanism.shown import text_table


def percent(value: float) -> str:
    """A fraction as text, in per cent; NaN means not measured."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "not measured"


def digits(value: float, beside: float = 0.0) -> str:
    """A number with four digits, or with all digits before the decimal point if there are more.

    Args:
        value: the number.
        beside: the size of other numbers; a value that is only rounding next to them becomes 0.
    """
    if abs(value) <= 1e-12 * max(beside, 1e-6) or not math.isfinite(value):
        return f"{value:g}" if not math.isfinite(value) else "0"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}"


def table(rows: list[list[str]], left: int = 1) -> list[str]:
    """The aligned lines of a table.

    On a terminal that is too narrow, each row becomes a paragraph: its first cell, and below it the
    others with their headings.

    Args:
        rows: the cells; the first row is the head.
        left: number of left-aligned columns; the others are right-aligned.
    """
    lines, room = text_table(rows, left), _room()
    if room is not None and max(map(len, lines)) > room:
        return [line for row in rows[1:] for line in _paragraph(rows[0], row, room)]
    return lines


def _room() -> int | None:
    """The terminal's width in characters; None: the output is not a terminal."""
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


def ratio(value: float) -> str:
    """A ratio in whole numbers from 10 on, and in two digits below."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
