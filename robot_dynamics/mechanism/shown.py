# SPDX-License-Identifier: Apache-2.0
"""A mechanism as one line of text, or as a table for notebooks; tables as text, Markdown, HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ..errors import listed, one_line

FEW = 8
"""Number of names shown in one line"""
MOST = 60
"""Number of rows shown in a table"""


def in_one_line(mechanism: Any) -> str:
    """A summary of a mechanism in one line: name, joints, links, mass, loops and motors."""
    joints = mechanism.joint_names
    parts = [
        repr(one_line(mechanism.name, 60)),
        f"joints: {len(joints)} ({listed(joints, FEW)})",
        f"links: {len(mechanism.links)}",
        f"mass: {_number(_mass(mechanism))} kg",
    ]
    if mechanism.loops:
        parts.append(f"loops: {len(mechanism.loops)}")
        parts.append(f"actuated: {listed(mechanism.actuated_names, FEW)}")
    if mechanism.rotors:
        parts.append(f"rotors: {len(mechanism.rotors)}")
    return f"Mechanism({', '.join(parts)})"


def as_html(mechanism: Any) -> str:
    """A table with a row for each link: its joint, the joint's type and limits, and the mass."""
    rows = [["link", "on", "joint", "type", "from", "to", "mass, kg"]]
    for link in mechanism.links[:MOST]:
        joint, ends = link.joint, link.joint.limits
        unit = "" if not joint.moves else " m" if joint.slides else " rad"
        limits = (None, None) if ends is None else (ends.lower, ends.upper)
        mass = "" if link.inertial.is_nothing else _number(link.inertial.mass)
        span = ["" if x is None else f"{_number(x)}{unit}" for x in limits]
        rows.append([link.name, link.parent, joint.name, _role(mechanism, joint), *span, mass])
    more = len(mechanism.links) - MOST
    after = f"<p>… and {more} more links</p>" if more > 0 else ""
    return f"<p><b>{escape(in_one_line(mechanism))}</b></p>{html_table(rows)}{after}"


class Html(str):
    """A table cell that is already HTML."""


def html_table(rows: Iterable[Sequence[str]]) -> str:
    """A table in HTML; the first row is its head, and every cell is text or `Html`."""
    head, *body = rows

    def line(cells: Sequence[str], tag: str) -> str:
        written = (x if isinstance(x, Html) else escape(x) for x in cells)
        return "<tr>" + "".join(f"<{tag}>{x}</{tag}>" for x in written) + "</tr>"

    return "<table>" + line(head, "th") + "".join(line(row, "td") for row in body) + "</table>"


def text_table(rows: Sequence[Sequence[str]], left: int | None = None) -> list[str]:
    """The aligned lines of a table in plain text.

    Args:
        rows: of cells.
        left: number of columns to align left; the others are aligned right. None: all.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if left is None or k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown, followed by an empty one; none if there are no rows."""
    if not rows:
        return []
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|" + "---|" * len(rows[0]), *body, ""]


def _role(mechanism: Any, joint: Any) -> str:
    if not joint.moves:
        return "fixed"
    if joint.coupling is not None:
        return f"{joint.type}, follows {listed((name for name, _ in joint.coupling.ratios), 3)}"
    if joint.name in mechanism.actuated_names:
        return str(joint.type)
    return f"{joint.type}, passive" + (", sensed" if joint.name in mechanism.sensed else "")


def _mass(mechanism: Any) -> Any:
    return sum(link.inertial.mass for link in mechanism.links)


def _number(x: Any) -> str:
    try:
        return f"{float(x):.4g}"
    except (TypeError, ValueError):  # a symbol
        return one_line(x, 40)
