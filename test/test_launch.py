# SPDX-License-Identifier: Apache-2.0
"""What is launched does what the node promises: the launch tests in launch_tests/, and exit codes.

Each of launch_tests/ runs by launch_testing's own command, in a process and a domain of its own:
its pytest plugin does not know pytest 9.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

import rclpy
from node_process import ENVIRONMENT, domain_of_ones_own
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

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


def run(*command: str, seconds: float, **variables: str) -> subprocess.CompletedProcess:
    with domain_of_ones_own() as domain:
        return subprocess.run(
            command,
            env=environment(domain) | variables,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def environment(domain: int) -> dict[str, str]:
    """The environment of a process that finds the launch tests."""
    return {
        **ENVIRONMENT,
        "PYTHONPATH": os.pathsep.join([str(TEST), ENVIRONMENT["PYTHONPATH"]]),
        "ROS_DOMAIN_ID": str(domain),
    }


@needs_launch
@needs_simulator
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", [name for name in FILES if name != "watcher.py"])
def test_what_is_launched_does_what_is_promised(file):
    path = str(TEST / "launch_tests" / file)
    result = run(sys.executable, "-m", "launch_testing.launch_test", path, seconds=1700)
    assert result.returncode == 0, result.stdout + result.stderr


@needs_launch
def test_a_launch_test_is_alone_in_its_domain_whatever_the_shells_is(monkeypatch):
    script = "import launch_tests.watcher, os; print(os.environ['ROS_DOMAIN_ID']); input()"
    with domain_of_ones_own() as shells:
        with subprocess.Popen(
            [sys.executable, "-u", "-c", script],
            env=environment(shells),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            found = int(process.stdout.readline())
            # the claims begin with the process's number: this one would be the first to be tried
            monkeypatch.setattr(os, "getpid", lambda: found - 1)
            with domain_of_ones_own() as another:
                assert len({shells, found, another}) == 3
            process.communicate("\n")
        assert process.returncode == 0


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

        until.domain = domain
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


@contextmanager
def torques_in_motion(domain: int) -> Iterator[list[list[float]]]:
    """What goes out to the controller of a polar robot that is in motion when this is entered."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("partner", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    found: list[list[float]] = []
    node.create_subscription(
        Float64MultiArray,
        "/effort_controller/commands",
        lambda message: found.append(list(message.data)),
        100,
    )
    states = node.create_publisher(JointState, "joint_states", 10)
    commands = node.create_publisher(JointTrajectory, "/feed_forward/command", 10)
    names = ["theta1", "d2"]
    # effort_controller has the node's joints
    controller = rclpy.create_node("effort_controller", context=context)
    controller.declare_parameter("joints", names)
    controller.declare_parameter("interface_name", "effort")
    executor.add_node(controller)
    deadline = time.monotonic() + PATIENCE
    # the launch listens, too: that it has had some takes a moment from when it is seen
    seen = math.inf
    while time.monotonic() < seen + 3.0:
        if found and node.count_subscribers("/effort_controller/commands") >= 2:
            seen = min(seen, time.monotonic())
        assert time.monotonic() < deadline, "no torques"
        point = JointTrajectoryPoint(accelerations=[2.0, 1.0])
        commands.publish(JointTrajectory(joint_names=names, points=[point]))
        state = JointState(name=names, position=[0.3, 0.7], velocity=[0.2, 0.1])
        state.header.stamp = node.get_clock().now().to_msg()
        states.publish(state)
        executor.spin_once(0.02)
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            executor.spin_once(0.05)

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()
        executor.shutdown()
        node.destroy_node()
        controller.destroy_node()
        rclpy.shutdown(context=context)


@needs_launch
@pytest.mark.parametrize("respawn", ["true", "false"])
@pytest.mark.parametrize(("number", "zeros"), [(signal.SIGKILL, True), (signal.SIGTERM, False)])
def test_a_crash_leaves_zeros_on_the_controller_and_an_end_the_torques_at_rest(
    respawn, number, zeros
):
    with launching("polar.launch.py", f"respawn:={respawn}") as (launch, until):
        told = until("torques for theta1, d2", 1)
        with torques_in_motion(until.domain) as found:
            before = len(found)
            os.kill(int(STARTED.findall(told)[-1]), number)
            if zeros and respawn == "false":
                assert launch.wait(PATIENCE) == 1
            elif zeros:
                until("torques for theta1, d2", 2)
            else:
                until("process has finished cleanly", 1)
            deadline = time.monotonic() + 10.0
            while len(found) == before and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(0.5)
            after = found[before:]
        # without gravity the torques at rest are zeros here as well, but one message of them
        assert after, until("", 0)
        assert after[-1] == [0.0, 0.0]
        assert (sum(each == [0.0, 0.0] for each in after) > 3) == zeros


@needs_launch
@pytest.mark.parametrize("respawn", ["true", "false"])
def test_a_node_that_is_killed_after_ctrl_c_leaves_zeros_as_well(respawn):
    with launching("polar.launch.py", f"respawn:={respawn}") as (launch, until):
        pid = int(STARTED.findall(until("torques for theta1, d2", 1))[-1])
        with torques_in_motion(until.domain) as found:
            os.kill(pid, signal.SIGSTOP)
            launch.send_signal(signal.SIGINT)
            until("sending signal 'SIGINT' to process[feed_forward-1]", 1)
            before = len(found)
            os.kill(pid, signal.SIGKILL)
            launch.wait(PATIENCE)
            deadline = time.monotonic() + 10.0
            while len(found) < before + 4 and time.monotonic() < deadline:
                time.sleep(0.1)
            assert sum(each == [0.0, 0.0] for each in found[before:]) > 3


@needs_launch
@pytest.mark.parametrize("pause", [0.01, 0.05, 0.2, 0.4])
def test_a_second_ctrl_c_does_not_keep_the_launch_from_ending(pause):
    with launching("polar.launch.py") as (launch, until):
        until("torques for theta1, d2", 1)
        launch.send_signal(signal.SIGINT)
        time.sleep(pause)
        launch.send_signal(signal.SIGINT)
        # the second one may come after the launch's last line
        assert launch.wait(PATIENCE) in (0, -signal.SIGINT)


@needs_launch
@pytest.mark.parametrize(
    ("file", "missing"),
    [
        ("polar", "robot_state_publisher"),
        ("ros2_control", "controller_manager"),
        ("gazebo", "ros_gz_sim"),
    ],
)
def test_nothing_is_started_where_something_is_missing(file, missing, tmp_path):
    """Only this package, and what launch itself needs, is in the index."""
    ros2 = shutil.which("ros2")
    if ros2 is None:
        pytest.skip("SKIPPED LOUDLY: ros2 is not on the PATH")
    index = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    (index / "robot_dynamics").touch()
    share = tmp_path / "share" / "robot_dynamics"
    for folder in ("launch", "config", "urdf", "controllers", "rviz"):
        shutil.copytree(TEST.parent / folder, share / folder)
    result = run(
        ros2,
        "launch",
        "robot_dynamics",
        f"{file}.launch.py",
        "rviz:=true",
        seconds=120,
        AMENT_PREFIX_PATH=str(tmp_path),
    )
    told = result.stdout + result.stderr
    assert result.returncode == 1, told
    assert f"package '{missing}' not found" in told
    assert "nothing was started" in told
    assert "process started" not in told


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
