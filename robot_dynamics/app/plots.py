# SPDX-License-Identifier: Apache-2.0
"""The package's pictures. matplotlib is imported only to draw one; no display is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.files import writable
from ..errors import BackendError, InputError, not_installed, wrong
from ..scalar import Floats
from .tables import ratio

if TYPE_CHECKING:
    from ..identification.excitation import ExcitingMotion
    from .compare import Comparison
    from .demo.record import Track
    from .gears import GearErrors

BLACK = "#1a1a1a"
GREY = "#8a8a8a"
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's colours, safe for the colour-blind"""
ORANGE, BLUE = COLOURS[:2]
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (2, 1)))
"""Line styles, which distinguish runs without colours"""
LABEL = 0.23
"""inches: the distance of labels below one another"""

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "figure.dpi": 100.0,
    "savefig.dpi": 150.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "robot_dynamics",  # always the same file
    "path.simplify": False,
}


@contextmanager
def style() -> Iterator[None]:
    """A context with the package's style, in which a picture is drawn.

    Raises:
        BackendError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise not_installed("matplotlib", "draws the pictures", "matplotlib") from None
    except ValueError as error:  # MPLBACKEND, or a matplotlibrc
        raise BackendError(f"matplotlib does not start: {error}", name="matplotlib") from None
    with matplotlib.rc_context(STYLE):
        yield


def figure(
    rows: int,
    columns: int,
    *,
    width: float,
    height: float,
    layout: Any = "constrained",
    **options: Any,
) -> Any:
    """A figure with axes, which needs no display.

    Args:
        rows, columns: the numbers of rows and columns of axes.
        width, height: inches.
        layout: matplotlib's layout engine.
        options: further arguments of matplotlib's `Figure.subplots`.

    Returns:
        the figure, and its axes (rows, columns).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # a constrained layout leaves room for elements outside the axes
    drawing = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(drawing)
    return drawing, drawing.subplots(rows, columns, squeeze=False, **options)


def words(text: str) -> str:
    """Text with names from outside, in which matplotlib finds no formulas between dollar signs."""
    return text.replace("$", r"\$")


@style()
def check(path: Path) -> None:
    """Check, before any work, that a picture can be written; a missing folder is created.

    Raises:
        InputError: the file type is not supported, or the folder cannot be created or written to.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kinds = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in kinds:
        raise wrong(InputError, "picture", str(path), f"a name that ends in .{', .'.join(kinds)}")
    writable(path.parent)
    if path.is_dir():
        raise wrong(InputError, "picture", str(path), "a file (it is a folder)")


def save(drawing: Any, path: Path) -> Path:
    """Write the picture, and return its path.

    Args:
        drawing: the figure.
        path: the file.

    Raises:
        InputError: it cannot be written.
    """
    check(path)
    drawing.savefig(path, facecolor="white")
    return path


@style()
def errors_over_time(
    path: Path,
    title: str,
    panels: Sequence[tuple[str, Sequence[tuple[str, Floats, Floats]]]],
) -> Path:
    """Draw errors on a logarithmic scale, in panels one above another.

    Args:
        path: the PNG to write.
        title: the title.
        panels: for each panel, the label of its scale and its lines; for each line, its label,
            times (t,) in s, and errors (t,), 0 or more.
    """
    drawing, axes = figure(len(panels), 1, width=9.0, height=1.2 + 2.4 * len(panels), sharex=True)
    for (label, lines), axis in zip(panels, axes[:, 0], strict=True):
        for k, (name, time, error) in enumerate(lines):
            # zero has no logarithm: draw it at the bottom
            shown = error + np.finfo(float).tiny
            axis.semilogy(time, shown, color=COLOURS[k % len(COLOURS)], lw=1.1, label=name)
        worst = max(float(error.max()) for _, _, error in lines)
        least = min(float(np.quantile(error, 0.05)) for _, _, error in lines)
        axis.set_ylim(max(least, 1e-6 * worst) / 3, 3 * worst)
        axis.set_ylabel(label)
    _legend_below(drawing, *axes[0, 0].get_legend_handles_labels(), ncols=3)
    axes[-1, 0].set_xlabel("time (s)")
    drawing.suptitle(title)
    return save(drawing, path)


@style()
def tracking(
    path: Path,
    title: str,
    subtitle: str,
    joints: Sequence[str],
    units: Sequence[str],
    desired: np.ndarray[Any, Any],
    tracks: Sequence[Track],
) -> Path:
    """Draw position, error and torque of every joint, with one row per joint.

    Args:
        path: the PNG to write.
        title: the title.
        subtitle: the conditions.
        joints: (n,) names.
        units: (n,) "rad" or "m".
        desired: (t, n) positions at the first track's times.
        tracks: the runs; the first one is the reference.
    """
    n, row = len(joints), max(1.75, LABEL * (len(tracks) + 2))
    drawing, axes = figure(n, 3, width=12.0, height=1.3 + row * n, sharex=True)
    for j, (joint, unit) in enumerate(zip(joints, units, strict=True)):
        position, error, torque = axes[j]
        for k, track in enumerate(tracks):
            colour = COLOURS[k % len(COLOURS)]
            wide = max(0.8, 2.2 - 0.35 * k)  # a line under another one stays visible
            position.plot(track.time, track.q[:, j], color=colour, lw=wide)
            # zero has no logarithm: draw it at the bottom
            shown = np.abs(track.error[:, j]) + np.finfo(float).tiny
            dashes = DASHES[k % len(DASHES)]
            error.semilogy(track.time, shown, color=colour, lw=max(1.1, 0.8 * wide), ls=dashes)
            error.axhline(track.rms[j], color=colour, lw=3.0, alpha=0.25)
            torque.plot(track.time, (track.feedback + track.efforts)[:, j], color=colour, lw=wide)
            if k == len(tracks) - 1:
                torque.plot(track.time, track.efforts[:, j], color=BLACK, lw=1.0, ls=(0, (1, 1.5)))
        position.plot(tracks[0].time, desired[:, j], color=BLACK, lw=1.0, ls=(0, (1, 1.5)))
        best = min(track.rms[j] for track in tracks)
        error.set_ylim(best / 10, 2 * max(track.peak[j] for track in tracks))
        _label_rms(error, [track.rms[j] for track in tracks], LABEL / row)
        position.set_ylabel(f"{joint}  ({unit})", fontweight="bold")
        error.set_ylabel(unit)
        torque.set_ylabel("N·m" if unit == "rad" else "N")
    for column, name in enumerate(
        ("Position", "Tracking error |q − q_d| and its RMS", "Torque or force on the joint")
    ):
        axes[0, column].set_title(name, loc="left", fontweight="bold")
        axes[-1, column].set_xlabel("time from the motion's beginning  (s)")
        axes[-1, column].set_xlim(0.0, tracks[0].time[-1])
    _legend(drawing, tracks)
    drawing.align_ylabels(axes)
    _entitle(drawing, title, subtitle)
    return save(drawing, path)


def _entitle(drawing: Any, title: str, subtitle: str) -> None:
    """Write a title, and the conditions below it."""
    drawing.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=13.0, fontweight="bold")
    drawing.text(0.01, 1 - 0.36 / drawing.get_figheight(), subtitle, color=GREY, va="top")


def _label_rms(axes: Any, errors: Sequence[float], gap: float) -> None:
    """Label each RMS line, to its right, with its ratio to the first one, without overlaps, at
    least a gap, of the height of the axes, below one another."""
    low, high = np.log(axes.get_ylim())
    order = sorted(range(len(errors)), key=lambda k: -errors[k])
    heights, above = [], float("inf")
    for k in order:
        above = min((np.log(errors[k]) - low) / (high - low), above - gap)
        heights.append(above)
    for i in reversed(range(len(order))):  # not below the axes
        heights[i] = max(heights[i], 0.0 if i == len(order) - 1 else heights[i + 1] + gap)
    for k, height in zip(order, heights, strict=True):
        axes.annotate(
            f"÷ {ratio(errors[0] / errors[k])}" if k else "RMS",
            (1.01, height),
            xycoords="axes fraction",
            color=COLOURS[k % len(COLOURS)],
            va="center",
            fontweight="bold",
        )


def _legend(drawing: Any, tracks: Sequence[Track]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=COLOURS[k % len(COLOURS)],
            lw=2.0,
            ls=DASHES[k % len(DASHES)],
            label=track.label,
        )
        for k, track in enumerate(tracks)
    ]
    label = f"desired position; feed-forward part of “{tracks[-1].label}”"
    columns = 5 if sum(len(track.label) for track in tracks) < 60 else 3
    handles.append(Line2D([], [], color=BLACK, lw=1.2, ls=(0, (1, 1.5)), label=label))
    labels = [str(each.get_label()) for each in handles]
    _legend_below(drawing, handles, labels, ncols=columns)


def _legend_below(drawing: Any, handles: Any, labels: Sequence[str], **options: Any) -> None:
    """Add a legend below all axes, which make room for it: `loc="outside lower center"` of
    matplotlib 3.7, for 3.6 as well.

    Args:
        drawing: a figure with a constrained layout.
        handles, labels: of what is explained.
        options: further arguments of matplotlib's `Figure.legend`.
    """
    legend = drawing.legend(handles, labels, loc="lower center", **options)
    extent = legend.get_window_extent(drawing.canvas.get_renderer())
    height = extent.y1 / drawing.bbox.height
    drawing.get_layout_engine().set(rect=(0.0, height, 1.0, 1.0 - height))


@style()
def comparison(path: Path, title: str, compared: Comparison) -> Path:
    """Draw each joint's torque with full rotors, and the error of each simpler model.

    In the upper row, all formulations would be the same line; the lower row is logarithmic, to show
    both rounding and the models' errors.

    Args:
        path: the file to write.
        title: the title.
        compared: the torques.
    """
    n = len(compared.actuated_names)
    # the legend is as wide as two joints
    drawing, axes = figure(2, n, width=3.4 * max(n, 2) + 1.0, height=5.2, sharex=True)
    drawing.suptitle(words(title))
    full = compared.rotor_models["full"]
    models = (("reflected", "reflected rotors", BLUE), ("none", "no rotors", ORANGE))
    for j, name in enumerate(compared.actuated_names):
        top, bottom = axes[0, j], axes[1, j]
        top.set_title(words(name))
        top.plot(compared.time, full[:, j], color=BLACK, lw=2.6, label="full rotors")
        scale = np.abs(full[:, j]).max() or 1.0
        for (model, label, colour), dashes in zip(
            models, ((0, (4, 2)), (0, (1, 1.5))), strict=True
        ):
            tau = compared.rotor_models[model]
            top.plot(compared.time, tau[:, j], color=colour, lw=1.8, ls=dashes, label=label)
            off = 100 * np.abs(tau[:, j] - full[:, j]) / scale
            bottom.semilogy(compared.time, off, color=colour, lw=1.8, ls=dashes)
        others = [each for each in compared.formulations.items() if each[0] != "newton_euler"]
        for k, (method, tau) in enumerate(others, start=2):
            off = 100 * np.abs(tau[:, j] - full[:, j]) / scale
            shown = np.maximum(off, 1e-15)
            label = f"{method.replace('_', '–').title()}, full rotors"
            bottom.semilogy(
                compared.time, shown, color=COLOURS[k], lw=1.0, marker=".", ms=3, label=label
            )
        bottom.set_ylim(1e-15, 1e2)
        bottom.set_xlabel("time [s]")
    axes[0, 0].set_ylabel("torque [N·m] or force [N]")
    axes[1, 0].set_ylabel("error [% of the largest]")
    parts = (axes[0, 0].get_legend_handles_labels(), axes[1, 0].get_legend_handles_labels())
    handles, labels = ([*upper, *lower] for upper, lower in zip(*parts, strict=True))
    _legend_below(drawing, handles, labels, ncols=3)
    return save(drawing, path)


@style()
def gears(path: Path, title: str, found: GearErrors) -> Path:
    """Draw the error of reflected rotors over the gear ratio, on logarithmic axes.

    There is one line per speed, and one panel each for rotors as described and balanced rotors.

    Args:
        path: the file to write.
        title: the title.
        found: the errors.
    """
    from .gears import RATIOS, SHOWN, WORTH

    kinds = len(found.errors)
    drawing, axes = figure(1, kinds, width=4.6 * kinds + 0.8, height=4.2, sharex=True, sharey=True)
    drawing.suptitle(words(title))
    largest = max(float(rows.max()) for rows in found.errors.values())
    for panel, (name, rows) in zip(axes[0], found.errors.items(), strict=True):
        panel.set_title(f"rotors {name}")
        panel.axhline(100 * WORTH, color=GREY, lw=0.8, ls="--")
        for k, (rate, row) in enumerate(zip(found.rates, rows, strict=True)):
            # rounding errors are left out of the logarithmic axis
            shown = np.where(row > 1e-12, 100 * row, np.nan)
            panel.loglog(RATIOS, shown, color=COLOURS[k], label=f"{rate:.3g} rad/s")
        panel.set_xlabel("gear ratio |Γ|")
        panel.set_xticks(SHOWN, SHOWN)
        panel.minorticks_off()
    axes[0, 0].set_ylim(1e-4, max(200 * largest, 2.0))
    axes[0, 0].set_ylabel("error of reflected rotors\n[% of the largest torque]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    _legend_below(drawing, handles, labels, ncols=len(labels), title="largest joint velocity")
    return save(drawing, path)


@style()
def excitation(path: Path, found: ExcitingMotion) -> Path:
    """Draw position, rate, acceleration and effort of every joint as fractions of their limits.

    Positions are measured from the middle of the range, so that ±1 is the limit everywhere;
    efforts without a known limit are shown as fractions of their largest value.

    Args:
        path: the file to write.
        found: the exciting motion.
    """
    motion, limits = found.motion, found.limits
    time = np.linspace(0.0, motion.duration, 2000)
    q, qd, qdd = motion(time)
    own = [limits.joints.index(name) for name in found.joints]
    low, high = limits.lower[own], limits.upper[own]
    tau = found.efforts(time)
    peak = np.abs(tau).max(axis=0)
    limit = np.where(np.isfinite(limits.effort), limits.effort, np.where(peak > 0, peak, 1.0))
    shares = (
        (2 * q - low - high) / (high - low),
        qd / limits.rate[own],
        qdd / limits.acceleration[own],
        tau / limit,
    )
    n = len(found.joints)
    drawing, axes = figure(n, 4, width=13.0, height=1.2 + 1.15 * n, sharex=True, sharey=True)
    for column, (name, values) in enumerate(
        zip(("Position", "Rate", "Acceleration", "Effort as described"), shares, strict=True)
    ):
        axes[0, column].set_title(name, loc="left", fontweight="bold")
        axes[-1, column].set_xlabel("time  (s)")
        for j, joint in enumerate(found.joints):
            panel = axes[j, column]
            panel.axhspan(-1.0, 1.0, color="#f1f1f1", lw=0, zorder=0)
            panel.plot(time, values[:, j], color=COLOURS[column], lw=1.1)
            if column == 0:
                panel.set_ylabel(
                    words(joint), fontweight="bold", rotation=0, ha="right", va="center"
                )
    axes[0, 0].set_ylim(-1.15, 1.15)
    axes[0, 0].set_xlim(0.0, motion.duration)
    before, after = found.before, found.after
    title = f"{found.mechanism.name}: exciting motion, as fractions of the limits (grey)"
    conditions = (
        f"condition number {after.condition:.3g}, {after.excited} of {after.parameters} "
        f"parameters excited; baseline (one sine per joint): {before.condition:.3g}, "
        f"{before.excited}"
    )
    _entitle(drawing, words(title), conditions)
    return save(drawing, path)
