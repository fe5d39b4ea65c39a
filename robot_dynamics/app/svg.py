# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG text, coloured by style sheets: one chart for light and dark, page and file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 640.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 12.0, 46.0
POINTS = 700
"""Of a line: two for each column of pixels say as much as all"""

STYLE = """
.chart { display: block; width: 100%; max-width: 1100px; height: auto;
  font: 13px system-ui, sans-serif; color: var(--ink); }
.chart.map { max-width: 640px; }
@media (max-width: 600px) { .chart { font-size: 20px; } }
.chart text { fill: var(--faint); }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .zero { stroke: var(--faint); stroke-width: 1; }
.chart .unseen { fill: var(--wash); }
.chart path { fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
.chart .dots { stroke-width: 2.6; opacity: .55; }
.ink { stroke: var(--ink); } .grey { stroke: var(--faint); } .a { stroke: var(--a); }
.b { stroke: var(--b); } .c { stroke: var(--c); } .d { stroke: var(--d); } .e { stroke: var(--e); }
"""
"""What charts need; colours are variables"""

COLOURS = """
:root { color-scheme: light dark; --ink: #1d1d1f; --faint: #6b6b70; --line: #e4e4e7;
  --wash: #f3f0e6; --paper: #ffffff; --card: #fafafa;
  --a: #d55e00; --b: #0072b2; --c: #00805d; --d: #b2488a; --e: #a87400; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececee; --faint: #a0a0a8; --line: #36363b;
  --wash: #2a2820; --paper: #151517; --card: #1c1c1f;
  --a: #ff8a3d; --b: #5ab4f0; --c: #35c795; --d: #e58cc4; --e: #e6b33c; } }
"""
"""Okabe and Ito's colours, safe for the colour-blind, for either background"""


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, or dots."""

    x: Floats
    y: Floats
    style: str
    """A class of `STYLE`"""
    label: str = ""
    dots: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves over one another."""

    title: str
    """The text alternative"""
    lines: Sequence[Line]
    across: str
    up: str
    unseen: Sequence[tuple[float, float]] = ()
    """Stretches of x to be shaded"""
    logarithmic: bool = False
    """Of y"""
    bounds: tuple[float, float] | None = field(default=None)
    """Of y; None: of the curves"""

    def svg(self, standalone: bool = False) -> str:
        """The chart as an element; standalone: as a file that brings its own colours."""
        (x0, x1), (y0, y1) = self._ranges()
        sx = (WIDTH - LEFT - RIGHT) / ((x1 - x0) or 1.0)
        sy = (HEIGHT - TOP - BOTTOM) / ((y1 - y0) or 1.0)

        def px(x: Floats | float) -> Floats | float:
            return LEFT + (x - x0) * sx

        def py(y: Floats | float) -> Floats | float:
            return HEIGHT - BOTTOM - (y - y0) * sy

        parts = [
            f'<svg class="chart" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
            f'xmlns="http://www.w3.org/2000/svg" aria-label="{escape(self.title)}">'
        ]
        if standalone:
            parts.append(f"<style>{COLOURS}{STYLE}.chart {{ background: var(--paper); }}</style>")
        for a, b in self.unseen:
            left, right = float(px(max(a, x0))), float(px(min(b, x1)))
            if right > left:
                parts.append(
                    f'<rect class="unseen" x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" '
                    f'height="{HEIGHT - TOP - BOTTOM:.1f}"/>'
                )
        for y in ticks(y0, y1):
            at = float(py(y))
            style = "zero" if y == 0 and not self.logarithmic else "grid"
            text = plain(10**y) if self.logarithmic else plain(y)
            parts.append(
                f'<line class="{style}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" '
                f'y2="{at:.1f}"/><text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}'
                "</text>"
            )
        for x in ticks(x0, x1, 7):
            parts.append(
                f'<text x="{float(px(x)):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                f"{plain(x)}</text>"
            )
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{escape(self.across)}'
            f'</text><text x="4" y="{HEIGHT - 5}">{escape(self.up)}</text>'
        )
        for line in self.lines:
            path = _dots(line, px, py) if line.dots else self._curve(line, px, py)
            style = line.style + (" dots" if line.dots else "")
            parts.append(f'<path class="{style}" d="{path}"/>')
        return "".join(parts) + "</svg>"

    def figure(self, caption: str = "") -> str:
        """Caption, legend and chart, as HTML."""
        words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return f"<figure>{words}{self.legend()}{self.svg()}</figure>"

    def legend(self) -> str:
        """What the colours mean, as HTML."""
        entries = "".join(
            f'<span><svg width="22" height="10" aria-hidden="true"><path class="{line.style}" '
            f'd="M1 5H21" fill="none" stroke-width="2.5"/></svg>{escape(line.label)}</span>'
            for line in self.lines
            if line.label
        )
        return f'<p class="legend">{entries}</p>'

    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        x = np.concatenate([line.x for line in self.lines])
        y = np.concatenate([self._scaled(line.y) for line in self.lines])
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        across = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
        if self.bounds is not None:
            return across, self.bounds
        if not len(y):
            return across, (0.0, 1.0)
        low, high = float(y.min()), float(y.max())
        room = 0.06 * (high - low) or abs(high) or 1.0
        return across, (low - room, high + room)

    def _scaled(self, y: Floats) -> Floats:
        if not self.logarithmic:
            return y
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(y > 0, np.log10(y), np.nan)

    def _curve(self, line: Line, px, py) -> str:  # type: ignore[no-untyped-def]
        x, y = _thinned(line.x, self._scaled(line.y))
        pieces, down = [], False
        for a, b in zip(px(x), py(y), strict=True):
            if not math.isfinite(b):
                down = False
                continue
            pieces.append(f"{'L' if down else 'M'}{a:.1f} {b:.1f}")
            down = True
        return "".join(pieces)


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The lowest and the highest of each stretch, in their order; gaps (NaN) stay."""
    if len(x) <= POINTS:
        return x, y
    kept: list[int] = []
    for part in np.array_split(np.arange(len(x)), POINTS // 2):
        values = y[part]
        if np.isnan(values).any():
            kept += part.tolist() if len(part) < 4 else [part[0], *part[np.isnan(values)][:1]]
            continue
        kept += sorted({int(part[values.argmin()]), int(part[values.argmax()])})
    return x[kept], y[kept]


def _dots(line: Line, px, py) -> str:  # type: ignore[no-untyped-def]
    step = max(1, len(line.x) // 1200)
    points = zip(px(line.x[::step]), py(line.y[::step]), strict=True)
    return "".join(f"M{a:.1f} {b:.1f}h0" for a, b in points if math.isfinite(b))


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between the two."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low]
    step = 10 ** math.floor(math.log10(span / count))
    for times in (1, 2, 5, 10):
        if span / (step * times) <= count:
            step *= times
            break
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]


def plain(value: float) -> str:
    """As text at an axis."""
    return f"{round(value, 12):.6g}"
