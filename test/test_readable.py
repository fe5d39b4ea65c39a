# SPDX-License-Identifier: Apache-2.0
"""What people read: numbers without noise, lines that fit, no markup from outside."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import sympy
from robots import CONFIG, random_urdf

import robot_dynamics as rd
from robot_dynamics.app import tables
from robot_dynamics.app.cli import main
from robot_dynamics.app.tables import digits
from robot_dynamics.mechanism import Inertial


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
