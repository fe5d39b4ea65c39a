# SPDX-License-Identifier: Apache-2.0
"""The layers that CONTRIBUTING.md lists are those of the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "robot_dynamics"
ENTRANCES = ("__init__", "__main__", "node")
"""Modules at the top that only hand on to others"""


def layers() -> dict[str, int]:
    """The height of each layer, 0 for the one on which everything stands."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("<!-- layers -->")[1]
    rows = re.findall(r"^\s*\| (`.*?) \|", table, flags=re.M)
    return {name: k for k, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"] = path
    return found


MODULES = modules()


@cache
def tree(name: str) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


@cache
def imports(name: str) -> set[str]:
    """The modules of this package that a module imports, wherever in its text."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = [] if name == "__init__" else package
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
            elif (node.module or "").split(".")[0] == "robot_dynamics":
                base = []
            else:
                continue
            inner = (node.module or "").split(".") if node.module else []
            target = [*base, *(inner if node.level else inner[1:])]
            for alias in node.names:
                whole = ".".join([*target, alias.name])
                found.add(whole if whole in MODULES else ".".join(target) or "__init__")
    return found - {name}


def part(module: str) -> str:
    return module.split(".")[0]


def test_every_part_stands_in_the_list() -> None:
    assert {part(name) for name in MODULES} - set(ENTRANCES) == set(layers())


@pytest.mark.parametrize("name", sorted(set(MODULES) - set(ENTRANCES)))
def test_no_import_runs_back_up(name: str) -> None:
    height = layers()
    upwards = {
        each for each in imports(name) if height.get(part(each), len(height)) > height[part(name)]
    }
    assert not upwards


def test_no_two_parts_of_a_layer_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for name in MODULES:
        if name not in ENTRANCES:
            graph.setdefault(part(name), set()).update(
                part(each) for each in imports(name) if part(each) != part(name)
            )
    assert list(TopologicalSorter(graph).static_order())


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        assert list(TopologicalSorter({name: imports(name) for name in MODULES}).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_only_the_ros_layer_imports_ros() -> None:
    ros = {"rclpy", "launch", "launch_ros", "sensor_msgs", "trajectory_msgs", "std_msgs"}
    for name in MODULES:
        tops = {
            (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
            for node in ast.walk(tree(name))
            if isinstance(node, (ast.Import, ast.ImportFrom)) and not getattr(node, "level", 0)
            for alias in node.names
        }
        assert part(name) == "ros" or not {top.split(".")[0] for top in tops} & ros, name
