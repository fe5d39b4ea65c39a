"""What is launched does what the node promises: the launch tests in launch_tests/, and exit codes.

Each of launch_tests/ runs by launch_testing's own command, in a process and a domain of its own:
its pytest plugin does not know pytest 9.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

from node_process import ENVIRONMENT, domain_of_ones_own

TEST = Path(__file__).parent
PATIENCE = 120.0
"""s until a test gives up: far beyond what a loaded machine needs"""
FILES = sorted(path.name for path in (TEST / "launch_tests").glob("*.py"))

needs_launch = pytest.mark.skipif(
    find_spec("launch_testing") is None or find_spec("launch_ros") is None,
    reason="SKIPPED LOUDLY: launch_testing is part of ROS 2 and not on PyPI: on a ROS 2 machine "
    "`colcon test` runs this test",
)
needs_simulator = pytest.mark.skipif(
    find_spec("mujoco") is None,
    reason="SKIPPED LOUDLY: mujoco is not installed (extra `sim`), so that nothing is simulated",
)


def run(*command: str, seconds: float) -> subprocess.CompletedProcess:
    with domain_of_ones_own() as domain:
        environment = {
            **ENVIRONMENT,
            "PYTHONPATH": os.pathsep.join([str(TEST), ENVIRONMENT["PYTHONPATH"]]),
            "ROS_DOMAIN_ID": str(domain),
        }
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )


@needs_launch
@needs_simulator
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", [name for name in FILES if name != "watcher.py"])
def test_what_is_launched_does_what_is_promised(file):
    path = str(TEST / "launch_tests" / file)
    result = run(sys.executable, "-m", "launch_testing.launch_test", path, seconds=1700)
    assert result.returncode == 0, result.stdout + result.stderr


@contextmanager
def launching(*arguments: str) -> Iterator[tuple[subprocess.Popen, Callable[[str, int], str]]]:
    """(`ros2 launch`, a function that waits until a word was printed so often: all that was)"""
    ros2 = shutil.which("ros2")
    if ros2 is None:
        pytest.skip("SKIPPED LOUDLY: ros2 is not on the PATH")
    with domain_of_ones_own() as domain, tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [ros2, "launch", "robot_dynamics", *arguments],
            env={**ENVIRONMENT, "ROS_DOMAIN_ID": str(domain)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )

        def until(word: str, count: int) -> str:
            deadline = time.monotonic() + PATIENCE
            while True:
                told = os.pread(out.fileno(), 10**6, 0).decode(errors="replace")
                if told.count(word) >= count:
                    return told
                ended = process.poll() is not None
                assert not ended, f"it ended before {word!r}; there was {told}"
                assert time.monotonic() < deadline, f"waited for {word!r}; there was {told}"
                time.sleep(0.1)

        try:
            yield process, until
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(PATIENCE)


STARTED = re.compile(r"\[feed_forward-1\]: process started with pid \[(\d+)\]")


@needs_launch
def test_a_node_that_is_killed_ends_the_launch_or_is_started_again():
    with launching("polar.launch.py") as (launch, until):
        told = until("torques for theta1, d2", 1)
        os.kill(int(STARTED.findall(told)[-1]), signal.SIGKILL)
        assert launch.wait(PATIENCE) == 1
        assert "feed_forward-1 ended with exit code -9" in until("", 1)
    with launching("polar.launch.py", "respawn:=true") as (launch, until):
        told = until("torques for theta1, d2", 1)
        os.kill(int(STARTED.findall(told)[-1]), signal.SIGKILL)
        told = until("torques for theta1, d2", 2)
        assert len(set(STARTED.findall(told))) == 2
        launch.send_signal(signal.SIGINT)
        assert launch.wait(PATIENCE) == 0


@needs_launch
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["robot", "description:=nowhere.urdf"], "feed_forward: nowhere.urdf: no such file"),
        (["polar", "params_file:=nowhere.yaml"], "params_file: nowhere.yaml: no such file"),
        (["polar", "formulation:=newton"], "formulation"),
    ],
)
def test_a_node_that_dies_at_its_start_ends_the_launch_with_its_code(arguments, words):
    ros2 = shutil.which("ros2")
    if ros2 is None:
        pytest.skip("SKIPPED LOUDLY: ros2 is not on the PATH")
    robot, *rest = arguments
    file = f"{robot}.launch.py"
    result = run(ros2, "launch", "robot_dynamics", file, *rest, seconds=120)
    told = result.stdout + result.stderr
    assert result.returncode == 1, told
    assert words in told
    assert "Traceback" not in told
