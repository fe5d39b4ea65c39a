# SPDX-License-Identifier: Apache-2.0
"""Drawings of the motors' ranges: strips, charts, and maps of two motors."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ...scalar import Floats
from .. import plots
from ..report_page import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Chart, Line, axes, light, themed
from .ranges import Map, Range

WIDE = 48
"""The width of a strip in characters"""
TORQUES, SINGULAR, BEYOND = "█", "▒", "·"
SAID = f"{TORQUES} torques  {SINGULAR} too near a singularity  {BEYOND} beyond it, or out of reach"


def strip(each: Range) -> str:
    """A motor's range as one line of text, from end to end of its span."""
    low, high = each.span
    edges = np.linspace(low, high, WIDE + 1)
    cells = []
    for a, b in pairwise(edges):
        if any(start <= b and end >= a for start, end in each.without_torque):
            cells.append(SINGULAR)
        else:
            cells.append(TORQUES if each.lower <= (a + b) / 2 <= each.upper else BEYOND)
    return f"{each.name}: {low:.4g} {''.join(cells)} {high:.4g} {each.unit}"


def chart(each: Range, motion: Floats) -> Chart:
    """A chart of the condition number over the motor's position, shaded beyond its ends.

    Args:
        each: the range of the motor.
        motion: (m,) positions of the motor along a motion, rad or m.
    """
    low, high = each.span
    ends = np.array([low, high])
    lines = [
        Line(each.places, each.passive_conditions, "b", "condition number of the loops"),
        Line(ends, np.full(2, each.limit), "a", f"refused beyond {each.limit:g}"),
    ]
    if np.isfinite(motion).any():
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
        bounds=(0.6, min(1e6, 2 * top)),
    )


@plots.style()
def drawn_map(found: Map, motion: Floats) -> str:
    """A map of the reachable positions of two motors: darker near a singularity, shaded where out
    of reach.

    Args:
        found: the map.
        motion: (m, 2) positions of both motors along a motion, rad or m.

    Returns:
        SVG.
    """
    from matplotlib.patches import Rectangle

    edges = []
    for places in (found.x, found.y):
        step = float(places[1] - places[0])
        edges.append(np.append(places, places[-1] + step) - step / 2)
    x, y = edges
    room = WIDTH - LEFT - RIGHT
    height = min(560.0, max(180.0, room * float(np.ptp(y) / np.ptp(x))))
    if found.units[0] != found.units[1]:
        height = 420.0
    across, up = (f"{n}, {u}" for n, u in zip(found.names, found.units, strict=True))
    drawing, axis = axes(height + TOP + BOTTOM, across, up)
    axis.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    axis.axhspan(y[0], y[-1], color=light("wash"), lw=0, clip_on=False)
    for i, j in zip(*np.isfinite(found.passive_conditions).nonzero(), strict=True):
        condition = float(found.passive_conditions[i, j])
        singular = condition > found.limit
        near = math.log(max(condition, 1.0)) / math.log(found.limit)
        cell = (x[j], y[i]), x[j + 1] - x[j], y[i + 1] - y[i]
        strength = 1.0 if singular else 0.12 + 0.88 * min(near, 1.0)
        colour = light("a" if singular else "b")
        axis.add_patch(Rectangle(*cell, fc=colour, lw=0, alpha=strength, aa=False, clip_on=False))
    axis.plot(*motion.T, color=light("ink"), lw=1.6, clip_on=False, scalex=False, scaley=False)
    return themed(drawing, "chart map", f"where {' and '.join(found.names)} can be")
