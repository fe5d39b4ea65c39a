# SPDX-License-Identifier: Apache-2.0
"""The table of parameters: what it refuses, and that the manual and the example agree with it."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import pytest
import yaml

from robot_dynamics.errors import InputError
from robot_dynamics.ros.feed_forward.parameter_table import markdown
from robot_dynamics.ros.feed_forward.parameters import BY_NAME, PARAMETERS, Settings

ROOT = Path(__file__).resolve().parents[1]


def test_the_manual_has_the_table():
    manual = (ROOT / "docs" / "node.md").read_text(encoding="utf-8")
    found = manual.partition("<!-- parameters -->\n")[2].partition("\n<!-- end -->")[0]
    assert found == markdown(PARAMETERS)


def test_the_example_file_has_parameters_and_values_that_the_table_allows():
    content = yaml.safe_load((ROOT / "config" / "feed_forward.yaml").read_text(encoding="utf-8"))
    values = content["/**/feed_forward"]["ros__parameters"]
    assert set(values) <= set(BY_NAME)
    Settings.of(values)


def test_every_default_is_allowed():
    assert Settings.of({}) == Settings.of({each.name: each.default for each in PARAMETERS})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("formulation", "Newton"),
        ("formulation", 1),
        ("description", 1),
        ("rate", 0.0),
        ("rate", math.inf),
        ("rate", True),
        ("command_timeout", math.nan),
        ("command_timeout", "1"),
        ("terms", "inertia"),
        ("terms", ["inertia", 1]),
        ("joints", [1]),
        ("effort_limits", ["1"]),
        ("effort_limits", [-1.0]),
        ("effort_limits", [math.nan]),
        ("effort_limits", 5.0),
        ("p_gains", [math.inf]),
        ("d_gains", [1.0, math.inf]),
        ("velocity_limits", [0.0]),
    ],
)
def test_a_value_outside_the_table_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"^{name}: found"):
        Settings.of({name: value})


def test_lists_come_as_ros_gives_them():
    settings = Settings.of({"effort_limits": array("d", [1.0, math.inf]), "joints": []})
    assert settings.effort_limits == (1.0, math.inf)
    assert settings.joints == ()


def test_locked_joints_are_names_with_numbers():
    assert Settings.of({"locked_joints": ["a:1", "ns:b:-0.5"]}).locked == {"a": 1.0, "ns:b": -0.5}


@pytest.mark.parametrize("entry", ["a", "a:", ":1", "a:b", "a:nan", "a:inf"])
def test_a_locked_joint_without_a_finite_number_is_refused(entry):
    with pytest.raises(InputError, match="locked_joints"):
        _ = Settings.of({"locked_joints": [entry]}).locked


def test_a_joint_is_locked_once():
    with pytest.raises(InputError, match="each joint once"):
        _ = Settings.of({"locked_joints": ["a:1", "a:2"]}).locked
