# SPDX-License-Identifier: Apache-2.0
"""What stands outside the axes of a picture has room of its own, in every version of matplotlib."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from robot_dynamics.app import plots
from robot_dynamics.app.compare import Comparison
from robot_dynamics.app.demo.record import Track
from robot_dynamics.app.gears import RATIOS, GearErrors

TIME = np.linspace(0.0, 3.0, 50)
WAVES = np.sin(TIME[:, None] + np.arange(2.0))
NAMES = ("newton_euler", "lagrange_euler", "gibbs_appell", "murphy")


def errors_over_time(path: Path) -> Path:
    lines = [(f"the run number {k}", TIME, np.abs(WAVES[:, 0]) + k) for k in range(5)]
    return plots.errors_over_time(path, "title", [("joints (rad)", lines), ("platform (m)", lines)])


def tracking(path: Path) -> Path:
    tracks = [
        Track(f"PD and another term {k}", TIME, WAVES, WAVES / 10**k, WAVES, WAVES)
        for k in range(4)
    ]
    units = ["rad", "m"]
    return plots.tracking(path, "title", "conditions", ["q1", "d2"], units, WAVES, tracks)


def comparison(path: Path) -> Path:
    models = {name: WAVES * (1.0 + 0.1 * k) for k, name in enumerate(("full", "reflected", "none"))}
    compared = Comparison(("q1", "d2"), TIME, dict.fromkeys(NAMES, WAVES), models)
    return plots.comparison(path, "title", compared)


def gears(path: Path) -> Path:
    errors = np.outer([1e-4, 1e-3], RATIOS)
    found = GearErrors(np.array([0.5, 4.0]), {"as described": errors, "balanced": errors / 10})
    return plots.gears(path, "title", found)


@pytest.mark.parametrize("draw", [errors_over_time, tracking, comparison, gears])
def test_the_legend_stands_below_all_axes(draw, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save", lambda drawing, path: drawn.append(drawing) or path)
    draw(tmp_path / "picture.png")
    (drawing,) = drawn
    drawing.draw_without_rendering()
    renderer = drawing.canvas.get_renderer()
    (legend,) = drawing.legends
    place = legend.get_window_extent(renderer)
    lowest = min(axes.get_tightbbox(renderer).y0 for axes in drawing.axes)
    highest = max(axes.get_tightbbox(renderer).y1 for axes in drawing.axes)
    assert 0 <= place.y0 < place.y1 <= lowest + 1
    assert lowest - place.y1 < 0.3 * drawing.dpi
    assert highest <= drawing._suptitle.get_window_extent(renderer).y0 + 1


def test_names_in_the_picture_of_an_exciting_motion_are_no_formulas(tmp_path):
    name = "$\\q$"
    ones, quality = np.ones(1), SimpleNamespace(condition=10.0, excited=4, parameters=5)
    limits = SimpleNamespace(
        joints=(name,), lower=-ones, upper=ones, rate=ones, acceleration=ones, effort=ones
    )

    def motion(time):
        return (np.sin(time)[:, None],) * 3

    motion.duration = 3.0
    found = SimpleNamespace(
        mechanism=SimpleNamespace(name=name), joints=(name,), motion=motion, limits=limits,
        efforts=lambda time: np.cos(time)[:, None], before=quality, after=quality,
    )  # fmt: skip
    path = plots.excitation(tmp_path / "motion.png", found)
    assert path.read_bytes().startswith(b"\x89PNG")
