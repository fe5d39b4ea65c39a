# SPDX-License-Identifier: Apache-2.0
"""The node under a steady load: every state is accounted for, and no memory is kept for any."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from node_process import ENVIRONMENT, domain_of_ones_own

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 3
FLAT = 2**20
"""Bytes that memory may grow by after the warm-up: less than 1 kB a state"""


@pytest.mark.parametrize(("robot", "rate"), [("polar", 1000), ("rrr", 500)])
def test_memory_stays_flat_and_every_state_has_torques_or_is_counted_as_lost(robot, rate, tmp_path):
    out = tmp_path / "soak.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "soak.py"), "--robot", robot]
    command += ["--rate", str(rate), "--seconds", str(SECONDS), "--warm-up", "2"]
    with domain_of_ones_own() as domain:
        told = subprocess.run(
            [*command, "--json", str(out)],
            env={**ENVIRONMENT, "ROS_DOMAIN_ID": str(domain)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert told.returncode == 0, told.stdout + told.stderr
    (result,) = json.loads(out.read_text())
    assert result["states_sent"] + result["states_not_sent"] == SECONDS * rate
    assert 0 < result["torques"] == result["states_sent"] - result["lost"]
    assert result["commands_sent"] > 0
    late = result["latency_us"]
    assert 0 < late["p50"] <= late["p99"] <= late["p99.9"] <= late["max"]
    memory = result["memory_bytes"]
    assert memory["most"] - memory["start"] < FLAT, memory
    assert result["exit_code"] == 0
