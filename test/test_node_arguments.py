# SPDX-License-Identifier: Apache-2.0
"""How the executable answers a command line that is not in ROS's format."""

from __future__ import annotations

import subprocess
import sys

import pytest

from robot_dynamics.ros import executables
from robot_dynamics.ros.executable import answered


@pytest.mark.parametrize(
    "line", ["", "--ros-args -p description:=a.urdf", "--ros-args -p rate:=5.0 --", "--ros-args"]
)
def test_arguments_of_ros_are_left_to_ros(line):
    assert answered("feed_forward", line.split()) is None


@pytest.mark.parametrize("line", ["--help", "-h", "--ros-args -p rate:=5.0 -- --help"])
def test_help_is_given(line, capsys):
    assert answered("feed_forward", line.split()) == 0
    assert "--ros-args -p description:=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-p description:=a.urdf", "feed_forward --ros-args -p description:=a.urdf"),
        ("description:=a.urdf", "feed_forward --ros-args -p description:=a.urdf"),
        ("~/commands:=/arm/commands", "feed_forward --ros-args -r ~/commands:=/arm/commands"),
        ("--params-file a.yaml", "feed_forward --ros-args --params-file a.yaml"),
        ("robots/a.urdf", "feed_forward --ros-args -p description:=robots/a.urdf"),
        ("--ros-args -p rate:=5.0 -- b.yaml", "-p description:=b.yaml"),
    ],
)
def test_what_is_no_argument_is_answered_in_one_line_with_what_was_meant(line, words, capsys):
    assert answered("feed_forward", line.split()) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert words in told


@pytest.mark.parametrize("name", ["simulated_robot", "trajectory_source", "watch"])
@pytest.mark.parametrize(("line", "code"), [("--help", 0), ("a.yaml", 2), ("-p rate:=5.0", 2)])
def test_the_other_executables_answer_likewise(name, line, code, capsys):
    assert getattr(executables, name)(line.split()) == code
    found = capsys.readouterr()
    assert f"{name} --ros-args -p" in found.out + found.err
    assert "Traceback" not in found.err


@pytest.mark.parametrize("name", ["", "sys", "pilot\n"])
def test_an_executable_that_there_is_not_is_answered_in_one_line_with_those_there_are(name):
    command = [sys.executable, "-m", "robot_dynamics.ros.executables", *([name] if name else [])]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    (told,) = found.stderr.splitlines()
    assert "expected one of feed_forward, simulated_robot, trajectory_source, watch" in told
