# SPDX-License-Identifier: Apache-2.0
"""How far motors of a robot with loops go, drawn: strips, charts, and a map of two motors."""

from __future__ import annotations

import math
from html import escape
from itertools import pairwise

import numpy as np

from ...scalar import Floats
from ..svg import BOTTOM, COLOURS, LEFT, RIGHT, STYLE, TOP, Chart, Line, plain, ticks
from .ranges import Map, Range

WIDE = 48
"""Characters of a strip"""
MARKS = {"torques": "█", "singular": "▒", "beyond": "·"}
SAID = "█ torques  ▒ too near a singularity  · beyond it, or out of reach"
WIDTH = 640.0


def strip(each: Range) -> str:
    """One line: what there is from end to end of the span."""
    low, high = each.span
    edges = np.linspace(low, high, WIDE + 1)
    cells = []
    for a, b in pairwise(edges):
        gap = any(start <= b and end >= a for start, end in each.without_torque)
        cells.append(MARKS["singular" if gap else each.state((a + b) / 2)])
    return f"{each.name}: {low:.4g} {''.join(cells)} {high:.4g} {each.unit}"


def chart(each: Range, motion: Floats | None = None) -> Chart:
    """The condition number over the motor's place; beyond its ends is shaded.

    Args:
        motion: (m,), places of the motor along a motion.
    """
    low, high = each.span
    ends = np.array([low, high])
    lines = [
        Line(each.places, each.passive_conditions, "b", "condition number of the loops"),
        Line(ends, np.full(2, each.limit), "a", f"refused beyond {each.limit:g}"),
    ]
    if motion is not None and np.isfinite(motion).any():
        reached = np.array([np.nanmin(motion), np.nanmax(motion)])
        lines.append(Line(reached, np.full(2, 0.8), "d", "this motion"))
    beyond = ((low, each.lower), (each.upper, high))
    shaded = [(a, b) for a, b in (*beyond, *each.without_torque) if b > a]
    title = f"condition number over {each.name}"
    top = max(each.limit, float(np.max(each.passive_conditions)))
    return Chart(
        title,
        lines,
        f"{each.name}, {each.unit}",
        "condition number",
        shaded,
        logarithmic=True,
        bounds=(math.log10(0.6), min(6.0, math.log10(2 * top))),
    )


def drawn_map(found: Map, motion: Floats | None = None, *, standalone: bool = False) -> str:
    """Where both motors can be: darker towards a singularity, shaded beyond reach.

    Args:
        motion: (m, 2), places of both along a motion.
    """
    x, y = found.x, found.y
    dx, dy = float(x[1] - x[0]), float(y[1] - y[0])
    x0, x1 = float(x[0]) - dx / 2, float(x[-1]) + dx / 2
    y0, y1 = float(y[0]) - dy / 2, float(y[-1]) + dy / 2
    room = WIDTH - LEFT - RIGHT
    height = min(560.0, max(180.0, room * (y1 - y0) / (x1 - x0)))
    if found.units[0] != found.units[1]:
        height = 420.0
    whole = height + TOP + BOTTOM
    sx, sy = room / (x1 - x0), height / (y1 - y0)

    def px(value: float) -> float:
        return LEFT + (value - x0) * sx

    def py(value: float) -> float:
        return TOP + height - (value - y0) * sy

    title = f"where {found.names[0]} and {found.names[1]} can be"
    parts = [
        f'<svg class="chart map" viewBox="0 0 {WIDTH:.0f} {whole:.0f}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" aria-label="{escape(title)}">'
    ]
    if standalone:
        parts.append(f"<style>{COLOURS}{STYLE}.chart {{ background: var(--paper); }}</style>")
    parts.append(
        f'<rect class="unseen" x="{LEFT}" y="{TOP}" width="{room:.1f}" height="{height:.1f}"/>'
    )
    for i, row in enumerate(found.passive_conditions):
        for j, condition in enumerate(row):
            if not np.isfinite(condition):
                continue
            near = math.log(max(condition, 1.0)) / math.log(found.limit)
            colour = "a" if condition > found.limit else "b"
            strength = 1.0 if condition > found.limit else 0.12 + 0.88 * min(near, 1.0)
            parts.append(
                f'<rect x="{px(x[j] - dx / 2):.1f}" y="{py(y[i] + dy / 2):.1f}" '
                f'width="{dx * sx:.1f}" height="{dy * sy:.1f}" shape-rendering="crispEdges" '
                f'style="fill: var(--{colour}); fill-opacity: {strength:.2f}"/>'
            )
    for value in ticks(y0, y1):
        parts.append(
            f'<text x="{LEFT - 6}" y="{py(value) + 4:.1f}" text-anchor="end">{plain(value)}</text>'
        )
    for value in ticks(x0, x1, 7):
        parts.append(
            f'<text x="{px(value):.1f}" y="{whole - BOTTOM + 18:.1f}" '
            f'text-anchor="middle">{plain(value)}</text>'
        )
    if motion is not None:
        known = motion[np.isfinite(motion).all(axis=1)]
        path = "L".join(f"{px(float(a)):.1f} {py(float(b)):.1f}" for a, b in known)
        if path:
            parts.append(f'<path class="ink" d="M{path}"/>')
    across, up = (f"{n}, {u}" for n, u in zip(found.names, found.units, strict=True))
    parts.append(
        f'<text x="{WIDTH - RIGHT}" y="{whole - 5:.1f}" text-anchor="end">{escape(across)}</text>'
        f'<text x="4" y="{whole - 5:.1f}">{escape(up)}</text></svg>'
    )
    return "".join(parts)
