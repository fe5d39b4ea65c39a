# SPDX-License-Identifier: Apache-2.0
"""Reports as one self-contained HTML file: cards, tables, and charts for light and dark themes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanism.shown import html_table
from ..scalar import Floats
from . import plots

COLOURS = {
    "ink": ("#1d1d1f", "#ececee"), "faint": ("#6b6b70", "#a0a0a8"), "line": ("#e4e4e7", "#36363b"),
    "wash": ("#f3f0e6", "#2a2820"), "paper": ("#ffffff", "#151517"), "card": ("#fafafa", "#1c1c1f"),
    "a": ("#d55e00", "#ff8a3d"), "b": ("#0072b2", "#5ab4f0"), "c": ("#00805d", "#35c795"),
    "d": ("#b2488a", "#e58cc4"), "e": ("#a87400", "#e6b33c"),
}  # fmt: skip
"""Colours on a light and on a dark background. The letters are Okabe and Ito's colours, which are
safe for the colour-blind, darkened or lightened until thin lines are visible"""
LINES = ("a", "b", "c", "d", "e", "faint")
"""The colours of successive lines"""


def _variables(ground: int) -> str:
    return "; ".join(f"--{name}: {both[ground]}" for name, both in COLOURS.items())


THEME = (
    f":root {{ color-scheme: light dark; {_variables(0)}; }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(1)}; }} }}\n"
)
"""CSS: the colours as variables"""
CHART_STYLE = """
.chart { display: block; width: 100%; max-width: 1100px; height: auto; }
.chart * { stroke-linejoin: round; stroke-linecap: round; } .chart.map { max-width: 640px; }
.chart text { font-family: system-ui, sans-serif !important; }
@media (max-width: 600px) { .chart text { font-size: 20px !important; } }
@media (min-width: 900px) { main > figure .chart:not(.map) text { font-size: 8px !important; } }
"""
PAGE_STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 20px 16px 60px; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4em 0 .2em; }
h2 { font-size: 1.2rem; margin: 2em 0 .4em; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1em 0 .2em; }
p { max-width: 72ch; } .faint, figcaption { color: var(--faint); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 14px; }
.card b { display: block; font-size: 1.35rem; font-weight: 600; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr));
  gap: 6px 20px; }
figure { margin: .4em 0; } figcaption { font-size: .88rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: 4px 12px 4px 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; } th:first-child, td:first-child { text-align: left; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: .2em 0; font-size: .88rem;
  max-width: none; } .legend span { display: inline-flex; align-items: center; gap: 6px; }
.warning { border-left: 4px solid var(--a); background: var(--card); padding: 8px 14px;
  margin: 8px 0; } summary { cursor: pointer; font-weight: 600; margin: 1em 0 .3em; }
.bar { height: .62em; border-radius: 2px; min-width: 1px; margin: 2px 0; }
.bar.before { background: var(--faint); } .bar.after { background: var(--b); }
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body><main>
{body}
</main></body></html>
"""

WIDTH, HEIGHT = 640.0, 250.0
"""The size of a chart, in its own units"""
LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 12.0, 46.0
"""The margins around its axes"""
PAD = 7.0
"""The distance of the ticks' labels from the axes"""
MOST_POINTS, MOST_DOTS = 700, 1200
"""Largest number of points and dots of a line: two per column of pixels show as much as all"""


def page(title: str, body: Iterable[str]) -> str:
    """The HTML of a whole file.

    Args:
        title: text.
        body: parts of HTML.
    """
    style = THEME + CHART_STYLE + PAGE_STYLE
    return PAGE.format(title=escape(title), style=style, body="\n".join(body))


def prose(text: str) -> str:
    """A sentence as HTML; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def cards(entries: Iterable[tuple[str, str]]) -> str:
    """Cards side by side, each with a large value above its meaning.

    Args:
        entries: (value, meaning) of each card.
    """
    each = (f'<div class="card"><b>{escape(a)}</b>{escape(b)}</div>' for a, b in entries)
    return f'<div class="cards">{"".join(each)}</div>'


def page_table(rows: Iterable[Sequence[str]]) -> str:
    """An HTML table that scrolls if the page is too narrow; the first row is its head."""
    return f'<div class="scroll">{html_table(rows)}</div>'


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, or dots."""

    x: Floats
    y: Floats
    colour: str
    """One of COLOURS"""
    label: str = ""
    dots: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves on common axes."""

    title: str
    """The text alternative"""
    lines: Sequence[Line]
    across: str
    up: str
    unseen: Sequence[tuple[float, float]] = ()
    """Intervals of x to be shaded"""
    logarithmic: bool = False
    """Whether the y axis is logarithmic"""
    bounds: tuple[float, float] | None = None
    """The limits of the y axis; None: those of the curves"""
    band: tuple[Line, Line] | None = None
    """The area between these lines is shaded in the colour of the first one"""

    @cached_property
    @plots.style()
    def svg(self) -> str:
        """The chart as an SVG element."""
        drawing, axis = axes(HEIGHT, self.across, self.up)
        for line in self.lines:
            if line.dots:
                step = max(1, len(line.x) // MOST_DOTS)
                x, y = (np.repeat(each[::step], 3) for each in (line.x, line.y))
                x[2::3] = np.nan  # a dot is a line from a point to itself
                axis.plot(x, y, color=light(line.colour), lw=2.6, alpha=0.55, clip_on=False)
            else:
                x, y = _thinned(line.x, self._shown(line.y))
                axis.plot(x, y, color=light(line.colour), lw=1.6, clip_on=False)
        if self.band:
            low, high = self.band
            x, below, above = _enclosed(low.x, low.y, high.y)
            shade = light(low.colour)
            axis.fill_between(x, below, above, color=shade, alpha=0.22, lw=0, clip_on=False)
        axis.margins(x=0.0, y=0.06)
        if self.logarithmic:
            axis.set_yscale("log")
        if self.bounds:
            axis.set_ylim(*self.bounds)
        if self.logarithmic:
            few = np.ptp(np.log10(axis.get_ylim())) < 3
            axis.yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0) if few else (1.0,))
        elif np.prod(axis.get_ylim()) < 0:
            axis.axhline(0.0, color=light("faint"), lw=1.0, zorder=0.5, clip_on=False)
        for height, _ in _ticks(axis.yaxis):
            axis.axhline(height, color=light("line"), lw=1.0, zorder=0.4, clip_on=False)
        low, high = axis.get_xlim()
        for a, b in self.unseen:
            if (b := min(b, high)) > (a := max(a, low)):
                axis.axvspan(a, b, color=light("wash"), lw=0, zorder=0, clip_on=False)
        axis.set_xlim(low, high)
        return themed(drawing, "chart", self.title)

    def figure(self, caption: str = "") -> str:
        """Caption, legend and chart as HTML."""
        words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        entries = [(line, "2.5") for line in self.lines]
        if self.band:
            entries.append((self.band[0], '8" stroke-opacity="0.22'))
        legend = "".join(
            '<span><svg width="22" height="10" aria-hidden="true"><path d="M1 5H21" fill="none" '
            f'stroke="var(--{line.colour})" stroke-width="{width}"/></svg>'
            f"{escape(line.label)}</span>"
            for line, width in entries
            if line.label
        )
        return f'<figure>{words}<p class="legend">{legend}</p>{self.svg}</figure>'

    def _shown(self, y: Floats) -> Floats:
        """y with NaN for values without a logarithm or beyond the bounds."""
        low, high = self.bounds or (-np.inf, np.inf)
        kept = np.isfinite(y) & (y >= low) & (y <= high) & ((y > 0) | (not self.logarithmic))
        return np.where(kept, y, np.nan)


def axes(height: float, across: str, up: str) -> tuple[Any, Any]:
    """The figure and axes of a chart.

    Args:
        height: the height of the chart, in its own units.
        across, up: the labels of the x and y axes.
    """
    drawing, ((axis,),) = plots.figure(1, 1, width=WIDTH / 72, height=height / 72, layout="none")
    drawing.subplots_adjust(LEFT / WIDTH, BOTTOM / height, 1 - RIGHT / WIDTH, 1 - TOP / height)
    faint = light("faint")
    for x, label, side in ((4.0, up, "left"), (WIDTH - RIGHT, across, "right")):
        drawing.text(x / WIDTH, 7 / height, plots.words(label), fontsize=13, color=faint, ha=side)
    axis.tick_params(labelsize=13)  # which leaves room for fewer of them
    axis.set_axis_off()
    return drawing, axis


def _ticks(own: Any) -> list[tuple[float, str]]:
    """(place, label) of each tick of matplotlib's x or y axis."""
    own.set_major_formatter("{x:.6g}")
    places = own.get_majorticklocs()
    low, high = own.get_view_interval()
    labels = zip(places.tolist(), own.major.formatter.format_ticks(places), strict=True)
    return [(place, label) for place, label in labels if low <= place <= high]


def _label(axis: Any) -> None:
    """Draw the labels of both axes' ticks. What matplotlib draws by itself, with invisible marks
    and labels on all sides, takes as long as the rest of a chart."""
    for own, where in (
        (axis.xaxis, axis.get_xaxis_text1_transform(PAD)),
        (axis.yaxis, axis.get_yaxis_text1_transform(PAD)),
    ):
        transform, va, ha = where
        for place, label in _ticks(own):
            x, y = (place, 0.0) if own is axis.xaxis else (0.0, place)
            axis.text(
                x, y, label, transform=transform, va=va, ha=ha, fontsize=13, color=light("faint")
            )


def themed(drawing: Any, classes: str, title: str) -> str:
    """A figure as SVG whose colours are the theme's variables.

    Args:
        drawing: the figure.
        classes: the element's CSS classes.
        title: the text alternative.
    """
    for axis in drawing.axes:
        _label(axis)
    with io.StringIO() as file:
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        drawing.savefig(file, format="svg", metadata=nothing, transparent=True)
        text = file.getvalue()
    _, width, height, inner = re.split(
        r'<svg [^>]*viewBox="0 0 (\S+) (\S+)"[^>]*>', text, maxsplit=1
    )
    inner = re.sub(r"<metadata>.*?</metadata>|<defs>.*?</defs>", "", inner, flags=re.DOTALL)
    inner = re.sub(r"<!--.*?-->|\s*\n\s*", " ", inner, flags=re.DOTALL)
    # ids would clash between the figures of a page; fonts are the page's own
    inner = re.sub(r' id="[^"]*"|font-family: [^;"]*;? ?', "", inner)
    # a hundredth of a pixel is enough; what a tag follows is a label
    inner = re.sub(r"(?<=\d\.\d\d)\d+(?![\d<])", "", inner)
    for name, (light, _) in COLOURS.items():
        inner = inner.replace(light, f"var(--{name})")
    return (
        f'<svg class="{classes}" viewBox="0 0 {width} {height}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" aria-label="{escape(title)}">{inner}'
    )


def standalone(svg: str) -> str:
    """An SVG element as a file that contains its own colours."""
    style = f"<style>{THEME}{CHART_STYLE}.chart {{ background: var(--paper); }}</style>"
    return svg.replace(">", f">{style}", 1)


def light(colour: str) -> str:
    """One of COLOURS on a light background, which `themed` replaces by a variable."""
    return COLOURS[colour][0]


def _enclosed(x: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """The lowest and the highest values in each interval; gaps (NaN) are kept."""
    parts = _parts(len(x), min(len(x), MOST_POINTS))
    middle = parts[:, parts.shape[1] // 2]
    return x[middle], low[parts].min(axis=1), high[parts].max(axis=1)


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The lowest and the highest value in each interval, in their order; gaps (NaN) are kept."""
    if len(x) <= MOST_POINTS:
        return x, y
    parts = _parts(len(x), MOST_POINTS // 2)
    missing = np.isnan(y[parts])
    gap = missing.any(axis=1)
    whole, values = parts[~gap], y[parts[~gap]]
    kept = np.zeros(len(x), dtype=bool)
    for k in (values.argmin(axis=1), values.argmax(axis=1)):
        kept[whole[np.arange(len(whole)), k]] = True
    if parts.shape[1] > 4:
        kept[parts[gap, 0]] = kept[parts[gap, missing[gap].argmax(axis=1)]] = True
    else:
        kept[parts[gap]] = True
    return x[kept], y[kept]


def _parts(count: int, parts: int) -> NDArray[np.intp]:
    """(parts, k): the indices of about equal parts; shorter ones repeat their last index."""
    k = np.arange(parts + 1)
    edges = count // parts * k + np.minimum(count % parts, k)
    width = np.arange(np.diff(edges).max())
    return np.minimum(edges[:-1, None] + width, edges[1:, None] - 1)
