"""Numbers for people to read."""

from __future__ import annotations

import math


def percent(value: float) -> str:
    """A share; NaN where there was none to measure."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "not measured"


def table(rows: list[list[str]]) -> list[str]:
    """Aligned lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
