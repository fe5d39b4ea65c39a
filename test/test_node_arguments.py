# SPDX-License-Identifier: Apache-2.0
"""How the executable answers a command line that is not in ROS's format."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from robot_dynamics.errors import InputError
from robot_dynamics.ros import executables
from robot_dynamics.ros.executable import answered
from robot_dynamics.ros.parameter_files import check_parameter_files


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


SECTION = "ros__parameters: {terms: [inertia]}"


@pytest.mark.parametrize(
    ("text", "node", "applies"),
    [
        (f"feed_forward: {{{SECTION}}}", "/feed_forward", True),
        (f"/feed_forward: {{{SECTION}}}", "/feed_forward", True),
        (f"feed_forward: {{{SECTION}}}", "/left/feed_forward", False),
        (f"left: {{feed_forward: {{{SECTION}}}}}", "/left/feed_forward", True),
        (f"/left: {{feed_forward: {{{SECTION}}}}}", "/right/feed_forward", False),
        (f"/*/feed_forward: {{{SECTION}}}", "/left/feed_forward", True),
        (f"/*/feed_forward: {{{SECTION}}}", "/feed_forward", False),
        (f"/**/feed_forward: {{{SECTION}}}", "/feed_forward", True),
        (f"/**/feed_forward: {{{SECTION}}}", "/upper/left/feed_forward", True),
        # one of two robots has its parameters; a file for other nodes may be given to all
        (
            f"left/feed_forward: {{{SECTION}}}\nright/feed_forward: {{{SECTION}}}",
            "/left/feed_forward",
            True,
        ),
        (f"planner: {{{SECTION}}}", "/left/feed_forward", True),
        (f"/**: {{{SECTION}}}", "/left/feed_forward", True),
        (f"/**: {{{SECTION}}}\nfeed_forward: {{{SECTION}}}", "/left/feed_forward", False),
        ("", "/feed_forward", True),
    ],
)
def test_a_parameter_file_for_this_node_in_another_namespace_is_refused(
    text, node, applies, tmp_path
):
    file = tmp_path / "parameters.yaml"
    file.write_text(text)
    arguments = ["--ros-args", "-r", "__ns:=/left", "--params-file", str(file)]
    warned: list[str] = []
    if applies:
        check_parameter_files(node, arguments, warned.append)
    else:
        with pytest.raises(InputError, match=r"parameters.yaml: .* under /\*\*/feed_forward"):
            check_parameter_files(node, arguments, warned.append)
    assert not warned


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (["feed_foward"], "/feed_foward"),
        (["/**/feed_forwards", "planner"], r"/\*\*/feed_forwards"),
        (["feed_foward", "feed_forward"], None),
        (["feed_foward", "/**"], "/feed_foward"),  # such as use_sim_time for all nodes
        (["planner"], None),
    ],
)
def test_a_misspelt_section_of_a_parameter_file_is_told(sections, said, tmp_path):
    file = tmp_path / "parameters.yaml"
    file.write_text("\n".join(f"{each}: {{{SECTION}}}" for each in sections))
    warned: list[str] = []
    check_parameter_files("/feed_forward", ["--params-file", str(file)], warned.append)
    assert len(warned) == (said is not None)
    if said is not None:
        assert re.search(f"parameters.yaml: no parameters for feed_forward, but .*{said}", *warned)


def test_what_only_ros_can_judge_is_left_to_it(tmp_path):
    """A pipe that it has read to its end, a file that is gone, one that is no YAML."""
    pipe, broken = tmp_path / "pipe", tmp_path / "broken.yaml"
    os.mkfifo(pipe)
    broken.write_text("feed_forward: {\n\t*x")
    for file in (pipe, broken, tmp_path / "gone.yaml"):
        check_parameter_files("/left/feed_forward", ["--params-file", str(file)], pytest.fail)


@pytest.mark.parametrize(
    ("namespace", "words"),
    [("/", "found 'luck'"), ("/left", "do not apply to the node /left/feed_forward")],
)
def test_no_node_runs_without_the_parameters_of_its_file(namespace, words, tmp_path):
    """It is rcl that decides which parameters apply."""
    pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")
    file = tmp_path / "parameters.yaml"
    file.write_text("feed_forward: {ros__parameters: {terms: [luck]}}")
    command = [sys.executable, "-m", "robot_dynamics.node", "--ros-args", "--params-file", file]
    command += ["-r", f"__ns:={namespace}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 1
    (told,) = found.stderr.splitlines()
    assert words in told
