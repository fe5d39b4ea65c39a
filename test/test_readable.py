# SPDX-License-Identifier: Apache-2.0
"""Text for people: numbers without noise, lines that fit, no markup from outside."""

from __future__ import annotations

import csv
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
import sympy
from robots import CONFIG, random_urdf

import robot_dynamics as rd
from robot_dynamics.app import tables
from robot_dynamics.app.cli import main
from robot_dynamics.app.report_page import MOST_POINTS, Chart, Line, _thinned, standalone
from robot_dynamics.app.shared_options import vector
from robot_dynamics.app.tables import digits
from robot_dynamics.description.files import FORMULA, column_name, writable, write_table
from robot_dynamics.errors import InputError
from robot_dynamics.mechanism import Inertial, Joint, Limits
from robot_dynamics.outputs import finite


@pytest.mark.parametrize(
    ("value", "beside", "said"),
    [
        (-120.801371031, 200.0, "-120.8"),
        (-2.2e-12, 10.0, "0"),
        (-2.2e-12, 0.0, "-2.2e-12"),
        (1951.3, 0.0, "1951"),
        (0.00012345, 1.0, "0.0001234"),
        (2.5e8, 0.0, "2.5e+08"),
        (0.0, 0.0, "0"),
        (float("nan"), 1.0, "nan"),
        (float("inf"), 1.0, "inf"),
    ],
)
def test_numbers_have_four_digits_and_rounding_is_nothing(value, beside, said):
    assert digits(value, beside) == said


def test_a_mechanism_fits_a_screen_and_shows_no_markup():
    mechanism = rd.load(random_urdf(1, 40))
    assert len(repr(mechanism)) < 400
    assert "\n" not in repr(mechanism)
    assert "and 26 more" in repr(mechanism)
    bad = "<script>x</script>"
    text = random_urdf(2, 2).replace("link1", bad.replace("<", "&lt;"))
    mechanism = rd.load(text)
    assert bad in [link.name for link in mechanism.links]
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    for each in (mechanism, dynamics):
        assert "<script>" not in each._repr_html_()
        assert each._repr_html_().count("<tr>") == len(mechanism.links) + 1
    assert len(repr(dynamics)) < 400


def test_a_mechanism_of_symbols_has_a_repr_too():
    mechanism = rd.load(CONFIG / "polar.yaml")
    mass = sympy.Symbol("m")
    links = tuple(replace(link, inertial=Inertial(mass)) for link in mechanism.links)
    shown = replace(mechanism, links=links)
    assert "2*m kg" in repr(shown)
    assert "<td>m</td>" in shown._repr_html_()


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_tables_fit_the_terminal(monkeypatch, capsys, columns):
    monkeypatch.setattr(tables, "_room", lambda: columns)
    assert main(["check", str(CONFIG / "three_axis.yaml")]) == 0
    lines = capsys.readouterr().out.split("\n")
    rows = [line for line in lines if line.startswith("  ")]
    assert max(map(len, rows)) <= columns
    whole = " ".join(" ".join(lines).split())
    for words in ("q1", "revolute", "kg", "principal moments"):
        assert words in whole


def test_what_goes_elsewhere_stays_a_table(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert tables.table([["a" * 300, "b"], ["c", "d"]])[0].endswith("b")


def test_a_table_as_a_file_has_a_head_rows_and_empty_cells(tmp_path):
    path = tmp_path / "table.csv"
    columns = [("time", np.array([0.0, 0.1])), ("a,b", np.array([np.nan, 1 / 3]))]
    write_table(path, columns)
    assert path.read_bytes() == b'time,"a,b"\r\n0.0,\r\n0.1,0.3333333333333333\r\n'
    with pytest.raises(ValueError, match=r"shorter|longer"):
        write_table(path, [("time", np.zeros(2)), ("a", np.zeros(3))])


@pytest.mark.parametrize("sign", FORMULA)
def test_names_in_a_table_are_no_formulas_and_are_read_as_they_were(tmp_path, sign):
    path, name = tmp_path / "table.csv", f"{sign}cmd|' /C calc'!A0/effort"
    write_table(path, [("time", np.zeros(1)), (name, np.zeros(1)), ("elbow/effort", np.zeros(1))])
    with path.open(newline="") as file:
        time, cell, plain = next(csv.reader(file))
    assert (time, cell, plain) == ("time", f"'{name}", "elbow/effort")
    assert column_name(cell) == name
    assert column_name("'a'") == "'a'"


@pytest.mark.parametrize("place", ["no/table.csv", "folder"])
def test_a_file_that_cannot_be_written_is_named_with_the_reason(tmp_path, place):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError) as found:
        write_table(tmp_path / place, [("time", np.zeros(1))])
    reason = "No such file or directory" if "no/" in place else "Is a directory"
    assert str(found.value) == f"{tmp_path / place}: cannot be written ({reason})"


def test_a_folder_is_made_or_named(tmp_path):
    writable(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.*expected a folder"):
        writable(tmp_path / "file" / "c")


def test_json_has_lists_for_arrays_and_null_for_what_it_lacks():
    values = {"a": np.array([1.0, np.nan]), 2: (np.float64(3.0), -np.inf), "n": np.int64(4)}
    assert finite(values) == {"a": [1.0, None], "2": [3.0, None], "n": 4}


def test_a_joint_has_the_units_of_its_kind_and_ends_where_it_has_none():
    turning, sliding = Joint("q", "revolute"), Joint("q", "prismatic")
    assert (turning.unit, turning.effort_unit) == ("rad", "N·m")
    assert (sliding.unit, sliding.effort_unit) == ("m", "N")
    assert turning.ends == Limits()
    assert Joint("q", "revolute", limits=Limits(upper=1.0)).ends.upper == 1.0


def test_charts_are_files_with_colours_of_their_own():
    chart = Chart("title", [Line(np.arange(3.0), np.arange(3.0), "a")], "s", "m")
    assert chart.svg.startswith('<svg class="chart"')
    assert "--a: #d55e00" not in chart.svg
    text = standalone(chart.svg)
    assert text.count("<style>") == 1
    assert "--a: #d55e00" in text
    assert ET.fromstring(text).tag.endswith("svg")


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_chart_has_a_line_for_each_label_of_its_height_and_draws_nothing_unseen(logarithmic):
    x = np.linspace(0.0, 3.0, 50)
    chart = Chart("title", [Line(x, 10.0**x, "a")], "s", "m", logarithmic=logarithmic)
    drawn = ET.fromstring(chart.svg)
    texts = [each for each in drawn.iter() if each.tag.endswith("text")]
    labels = [each for each in texts if each.text.strip() not in ("s", "m")]
    assert len(labels) == len(texts) - 2
    up = [float(each.text) for each in labels if "text-anchor: end" in each.get("style")]
    across = [float(each.text) for each in labels if "text-anchor: middle" in each.get("style")]
    assert across == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert up == (
        [1.0, 10.0, 100.0, 1000.0] if logarithmic else [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]
    )
    assert len(labels) == len(up) + len(across)
    paths = [each.get("style") for each in drawn.iter() if each.tag.endswith("path")]
    assert sum("var(--line)" in style for style in paths) == len(up)
    # besides: the curve, the figure's frame, and a line at 0
    assert len(paths) == len(up) + 2 + (not logarithmic)


def test_dots_are_joined_by_no_line():
    x = np.arange(5.0)
    drawn = ET.fromstring(Chart("title", [Line(x, x**2, "a", dots=True)], "s", "m").svg)
    (dots,) = (each.get("d") for each in drawn.iter() if "var(--a)" in each.get("style", ""))
    strokes = [stroke.split("L") for stroke in re.split("M", dots)[1:]]
    assert len(strokes) == len(x)
    assert all(len({place.strip() for place in stroke}) == 1 for stroke in strokes)


def test_labels_of_charts_keep_their_digits():
    chart = Chart("title", [Line(np.linspace(0.0, 1e-3, 9), np.linspace(0.0, 0.3, 9), "a")], "", "")
    labels = [each.text for each in ET.fromstring(chart.svg).iter() if each.tag.endswith("text")]
    assert {"0.0002", "0.001", "0.05", "0.3"} <= set(labels)
    assert not re.search(r'[ "]\d+\.\d{3}', chart.svg)  # coordinates


@pytest.mark.parametrize("count", [701, 1049, 1050, 1400, 6001])
def test_a_thinned_line_has_the_extremes_of_each_part_and_its_gaps(count):
    x = np.arange(count)
    y = np.random.default_rng(0).normal(size=count)
    y[count // 3] = np.nan
    places, values = _thinned(x, y)
    assert (y[places] == values).sum() == len(values) - np.isnan(values).sum()
    assert np.isnan(values).sum() == 1
    assert (np.diff(places) > 0).all()
    for part in np.array_split(x, MOST_POINTS // 2):
        own = y[places[np.isin(places, part)]]
        if not np.isnan(y[part]).any():
            assert {y[part].min(), y[part].max()} == set(own)


def test_an_option_that_is_left_out_has_its_default():
    assert vector((), "--q", ("a", "b"), 2.0) == [2.0, 2.0]
    assert vector((), "--q", ("a", "b"), [1.0, 2.0]) == [1.0, 2.0]
    assert vector(("1,2",), "--q", ("a", "b"), 5.0) == [1.0, 2.0]
