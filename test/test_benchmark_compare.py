# SPDX-License-Identifier: Apache-2.0
"""The comparison of two benchmark runs sees what became slower."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMPARE = Path(__file__).resolve().parents[1] / "benchmarks" / "compare.py"
OLD = {"machine": {"processor": "one"}, "call": {"7": {"typical": 1.0, "p99": 2.0}}, "import": 0.5}


@pytest.fixture
def compare(tmp_path):
    def run(new, *options, old=OLD):
        files = []
        for name, content in (("old", old), ("new", new)):
            files.append(tmp_path / f"{name}.json")
            files[-1].write_text(content if isinstance(content, str) else json.dumps(content))
        command = [sys.executable, str(COMPARE), *map(str, files), *options]
        return subprocess.run(command, capture_output=True, text=True)

    return run


def test_the_same_numbers_are_no_change(compare):
    done = compare(OLD)
    assert done.returncode == 0
    assert "nothing changed by more than 10%" in done.stdout


def test_what_became_slower_is_named_and_fails(compare):
    new = {**OLD, "call": {"7": {"typical": 1.3, "p99": 1.0}}}
    done = compare(new)
    assert done.returncode == 1
    assert "call / 7 / typical: 1 -> 1.3 (+30%)" in done.stdout
    assert "call / 7 / p99: 2 -> 1 (-50%)" in done.stdout
    assert compare(new, "--tolerance", "0.6").returncode == 0


@pytest.mark.parametrize("in_a_run", [lambda runs: runs, lambda runs: {**OLD, "runs": runs}])
def test_numbers_in_lists_are_compared_entry_by_entry(compare, in_a_run):
    """As benchmarks write them, alone or beside other numbers."""
    old = [{"rate": 500, "latency": [1.0, 2.0]}, {"rate": 1000, "latency": [1.0, 2.0]}]
    new = [old[0], {"rate": 1000, "latency": [1.0, 3.0]}, {"rate": 2000}]
    done = compare(in_a_run(new), old=in_a_run(old))
    assert done.returncode == 1
    assert "2 / latency / 2: 2 -> 3 (+50%)" in done.stdout
    assert "3 / rate" in done.stdout
    assert done.stdout.count("->") == 1
    same = compare(in_a_run(old), old=in_a_run(old))
    assert same.returncode == 0
    assert "nothing changed" in same.stdout


def test_another_machine_and_missing_numbers_are_said(compare):
    done = compare({"machine": {"processor": "two"}, "import": 0.5})
    assert "another processor: one before, two now" in done.stdout
    assert "only before: call / 7 / p99" in done.stdout
    assert done.returncode == 0


def test_no_json_is_refused_in_one_line(compare):
    done = compare("no json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
