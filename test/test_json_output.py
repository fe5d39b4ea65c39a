# SPDX-License-Identifier: Apache-2.0
"""What commands print with --json conforms to `robot_dynamics schema` (conftest.py checks this for
every command in every test)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import sympy
from robots import CONFIG

from robot_dynamics.app.cli import cli, main
from robot_dynamics.app.command import Command
from robot_dynamics.app.commands import COMMANDS
from robot_dynamics.outputs import Schema

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: extra `dev`")

POLAR = str(CONFIG / "polar.yaml")


def output(name: str) -> Schema:
    """The schema of a command's output."""
    return cli.get_command(None, name).schema()


def test_every_command_has_a_schema():
    for name in COMMANDS:
        jsonschema.Draft202012Validator.check_schema(output(name))


@pytest.mark.parametrize(
    "arguments",
    [
        ["torque", POLAR],
        ["torque", str(CONFIG / "three_axis.yaml"), "--motor"],
        ["derive", POLAR],
        ["check", POLAR],
        ["compare", POLAR, "--duration", "0.02"],
        ["bench", POLAR],
        ["cache"],
        ["urdf", POLAR],
        ["show", POLAR, "--out", "OUT.html"],
        ["completion", "zsh"],
        ["schema", "torque"],
        ["export", POLAR, "--out", "OUT"],
    ],
    ids=lambda arguments: " ".join(each for each in arguments if "/" not in each),
)
def test_a_command_prints_what_its_schema_says_and_nothing_more_or_less(
    arguments, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    schema = output(arguments[0])
    jsonschema.validate(found, schema)
    if arguments[0] == "schema":
        return
    for change in ({"another": 1}, *({key: ...} for key in schema["anyOf"][0]["required"])):
        wrong = copy.deepcopy(found) | change
        wrong = {key: value for key, value in wrong.items() if value is not ...}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def told(capsys, *arguments: str) -> dict[str, Any]:
    """The JSON of a command that ends well."""
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_expressions_are_sympys(capsys):
    found = told(capsys, "derive", POLAR)
    q, qd, qdd = (sympy.symbols(f"theta1{each} d2{each}") for each in ("", "_d", "_dd"))
    names = {str(each): each for each in (*q, *qd, *qdd)}
    tau, g = (sympy.Matrix(sympy.sympify(found[key], names)) for key in ("torques", "g"))
    D, C = (sympy.Matrix(sympy.sympify(found[key], names)) for key in ("D", "C"))
    rest = D * sympy.Matrix(qdd) + C * sympy.Matrix(qd) + g - tau
    assert sympy.simplify(rest) == sympy.zeros(2, 1)


def test_a_nearest_inertia_is_that_of_a_broken_body_alone(tmp_path, capsys):
    file = tmp_path / "two.yaml"
    file.write_text(
        """robot: two
links:
  - name: sound
    joint: {name: q1, type: revolute}
    inertia: {ixx: 1.0, iyy: 1.0, izz: 1.0}
    mass: 1.0
  - name: broken
    joint: {name: q2, type: revolute}
    inertia: {ixx: 1.0, iyy: 0.1, izz: 0.1}
    mass: 1.0
"""
    )
    links = told(capsys, "check", str(file))["links"]
    assert {name: bool(each["violated"]) for name, each in links.items()} == {
        name: "nearest_inertia" in each for name, each in links.items()
    }
    assert [name for name, each in links.items() if each["violated"]] == ["broken"]


def test_joints_are_names_in_every_command():
    for name in COMMANDS:
        joints = output(name)["anyOf"][0].get("properties", {}).get("joints")
        assert joints is None or joints["items"] == {"type": "string"}, name


def test_what_is_not_finite_is_null(capsys, monkeypatch):
    monkeypatch.setattr("robot_dynamics.app.commands.bench._median", lambda _: float("nan"))
    monkeypatch.setattr(Command, "schema", lambda _: {"type": "object"})
    assert main(["bench", POLAR, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["call_us"].values()) == {None}


def test_the_schema_is_printed_for_people(capsys):
    assert main(["schema", "torque"]) == 0
    assert json.loads(capsys.readouterr().out) == output("torque")
