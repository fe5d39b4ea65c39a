# SPDX-License-Identifier: Apache-2.0
"""What commands print with --json is as `robot_dynamics schema` says (conftest.py holds every
command of every test to it)."""

from __future__ import annotations

import copy
import json

import pytest
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
