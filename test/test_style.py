# SPDX-License-Identifier: Apache-2.0
"""Linting and types are laws like any other."""

from __future__ import annotations

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
