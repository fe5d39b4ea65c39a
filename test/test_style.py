# SPDX-License-Identifier: Apache-2.0
"""Linting and type checks are tests like any other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONGEST

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["ruff", "format", "mypy"],
)
def test_the_sources_are_clean(command):
    pytest.importorskip(command[0], reason=f"{command[0]} is not installed here")
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_files_that_begin_first_exist():
    assert all((ROOT / "test" / f"test_{name}.py").is_file() for name in LONGEST)


def test_every_source_file_says_its_licence():
    folders = (
        "robot_dynamics", "launch", "test", "benchmarks", "docs", "examples",
        "config", "controllers", "urdf", "rviz",
    )  # fmt: skip
    endings = {".py", ".c", ".h", ".cpp", ".js", ".css", ".j2"}
    endings |= {".yaml", ".xml", ".html", ".rviz", ".xacro", ".urdf"}
    files = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in endings
        and not {"golden", "recordings", "_build", "__pycache__"} & {*path.parts}
    ]
    assert len(files) > 400
    for path in files:
        beginning = path.read_text(encoding="utf-8").splitlines()[:3]
        assert any("SPDX-License-Identifier: Apache-2.0" in line for line in beginning), path


def test_the_places_of_mutations_that_may_live_exist():
    text = (ROOT / "test" / "mutation_survivors.md").read_text(encoding="utf-8")
    places = re.findall(r"^\| `([^`]+\.py)`(?:, `(\w+)`)?", text, re.MULTILINE)
    assert len(places) > 25
    for file, name in places:
        path = ROOT / "robot_dynamics" / file
        assert path.is_file(), file
        assert not name or re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")), (file, name)
