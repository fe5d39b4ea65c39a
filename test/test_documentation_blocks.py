# SPDX-License-Identifier: Apache-2.0
"""Shell and YAML on the pages: run, or read by the reader that they are for, as they stand.

What needs a robot, a network or minutes is parsed: its programs, launch files, arguments,
parameters, types and fields exist.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import closed_robots
import numpy as np
import pytest
import yaml
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.ros.feed_forward.parameters import BY_NAME, Settings

ROOT = CONFIG.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL = re.compile(
    r"(?:sudo |source <\()?"
    r"(robot_dynamics|ros2|colcon|rosdep|pip|dask|nox|\.venv/bin/\S+|python3?|cd|export)\b"
)
MINUTES = ("demo", "identify")
"""Commands that have tests of their own: here they are parsed"""


def lines_of(page: Path) -> list[str]:
    """Shell commands on a page, fenced and indented; continued lines are joined, prompts
    removed."""
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"^```(?:bash|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    bare = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^ {4,6}(\S.*(?:\\\n.*)*)$", bare, re.MULTILINE)
    found = []
    whole = "\n".join([*fenced, *indented]).replace("\\\n", " ")
    # what is quoted goes on on the next line
    whole = re.sub(r'"[^"]*"', lambda quoted: quoted[0].replace("\n", " "), whole)
    for line in whole.split("\n"):
        line = line.strip().removeprefix("$ ")
        if SHELL.match(line):
            found += [each.strip() for each in re.split(r"&&", line)]
    return found


def words_of(line: str) -> list[str]:
    """The words of one command, without its comment and what it is piped into."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = list(lexer)
    return words[: words.index("|")] if "|" in words else words


SHELL_LINES = [(page.name, line) for page in PAGES for line in lines_of(page)]


def test_the_pages_have_shell_to_look_at():
    firsts = {words_of(line)[0] for _, line in SHELL_LINES}
    assert {"robot_dynamics", "ros2", "colcon", "pip", "dask"} <= firsts
    assert len(SHELL_LINES) > 40


OURS = sorted(
    {
        line
        for _, line in SHELL_LINES
        if words_of(line)[0] == "robot_dynamics"
        and words_of(line)[1] not in MINUTES
        and "linkage" not in line  # the tutorial's own, which is run from start to end
    }
)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A folder as readers have it: the repository's robots, a robot of their own, and a plan."""
    for name in ("config", "urdf"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "urdf/six_axis.urdf", tmp_path / "robot.urdf")
    time = np.linspace(0, 1, 51)
    columns = [time, *(0.1 * np.sin(np.pi * time + k) for k in range(3))]
    head = "time,q1/position,q2/position,q3/position"
    plan = tmp_path / "plan.csv"
    np.savetxt(plan, np.column_stack(columns), delimiter=",", header=head, comments="")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BROWSER", "true")
    return tmp_path


@pytest.mark.parametrize("line", OURS)
def test_commands_on_the_pages_run(line, bench, capsys):
    words = [re.sub(r"^~", str(bench), word) for word in words_of(line)[1:]]
    assert main(words) == 0, capsys.readouterr().err


def launch_arguments(name: str) -> set[str]:
    found: set[str] = set()
    for file in (ROOT / "launch" / name, ROOT / "robot_dynamics/ros/launching.py"):
        pattern = r"(?:argument|DeclareLaunchArgument)\(\s*\"(\w+)\""
        found |= set(re.findall(pattern, file.read_text(encoding="utf-8")))
    return found


def check_fields(kind, given) -> None:
    """Check that the message has these fields, and their messages theirs."""
    if not isinstance(given, dict):
        return
    fields = kind.get_fields_and_field_types()
    for name, value in given.items():
        assert name in fields, (kind, name)
        inner = re.sub(r"^sequence<(.*?)(?:, \d+)?>$|\[\d*\]$", r"\1", fields[name])
        if "/" in inner:
            package, message = inner.split("/")
            module = importlib.import_module(f"{package}.msg")
            for each in value if isinstance(value, list) else [value]:
                check_fields(getattr(module, message), each)


def ros2(words: list[str]) -> None:
    """Check that a ros2 command names things that exist."""
    verb, *rest = words
    if verb == "launch" and rest[0] == "robot_dynamics":
        assert (ROOT / "launch" / rest[1]).is_file()
        known = launch_arguments(rest[1])
        assert {word.split(":=")[0] for word in rest[2:]} <= known, rest
    elif verb == "run" and rest[0] == "robot_dynamics":
        scripts = re.findall(r"\"(\w+) = robot_dynamics", (ROOT / "setup.py").read_text())
        assert rest[1] in scripts
        own = {
            "feed_forward": set(BY_NAME),
            "trajectory_source": {"file", "joints", "speed"},
            "watch": {"link"},
        }[rest[1]]
        source = ROOT / "robot_dynamics/ros"
        text = "".join(file.read_text() for file in source.rglob("*.py"))
        for flag, value in pairwise(rest):
            if flag == "-p":
                name, _, content = value.partition(":=")
                assert name in own, value
                if rest[1] == "feed_forward":
                    Settings.of({name: yaml.safe_load(content)})
                else:
                    assert re.search(rf"\b{name}\b", text)
            elif flag == "-r":
                topic = value.partition(":=")[0]
                assert f'"{topic}"' in text, topic
    elif verb in ("topic", "service"):
        typed = next(word for word in rest if re.fullmatch(r"\w+/(msg|srv)/\w+", word))
        package, kind, name = typed.split("/")
        found = getattr(importlib.import_module(f"{package}.{kind}"), name)
        after = rest[rest.index(typed) + 1 :]
        if after and after[0].startswith("{"):
            check_fields(found if kind == "msg" else found.Request, yaml.safe_load(after[0]))
    else:
        # other packages' own commands
        assert verb in ("control", "security", "lifecycle", "bag", "param"), words


@pytest.mark.parametrize(
    "line", sorted({line for _, line in SHELL_LINES if line.startswith("ros2 ")})
)
def test_what_is_said_to_ros2_is_there(line):
    pytest.importorskip("rclpy", reason="rclpy is not installed: extra `ros`")
    ros2(words_of(line)[1:])


def test_other_commands_name_extras_scripts_and_folders_that_exist():
    setup = (ROOT / "setup.py").read_text()
    for page, line in SHELL_LINES:
        words = words_of(line)
        for extras in re.findall(r"(?:robot_dynamics|\.)\[([\w,]+)\]", line):
            for extra in extras.split(","):
                assert f'"{extra}": ' in setup, (page, extra)
        if words[0] == "nox":
            assert f"def {words[2]}(" in (ROOT / "noxfile.py").read_text(), line
        for word in words:
            if re.match(r"(benchmarks|docs|test)/", word):
                assert (ROOT / word).exists(), (page, line)


# --- YAML ---------------------------------------------------------------------------------------


def yaml_blocks() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        if page.name == "tutorial_parallel.md":  # run from start to end by its own test
            continue
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            found.append((page.name, block))
    return found


BLOCKS = yaml_blocks()
URDF = """<robot name="bench"><link name="base"/>{}</robot>"""
JOINT = """<link name="{link}"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"
ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="{joint}" type="{type}"><parent
link="{parent}"/><child link="{link}"/><axis xyz="0 0 1"/><limit effort="1" velocity="1"
lower="-1" upper="1"/></joint>"""


def bench_urdf() -> str:
    chain = [("ball_link", "ball", "revolute"), ("cardan_link", "cardan", "revolute"),
             ("forearm", "elbow", "revolute"), ("fingers", "finger", "prismatic")]  # fmt: skip
    parents = ["base", *(link for link, _, _ in chain)]
    parts = [
        JOINT.format(link=link, joint=joint, type=kind, parent=parent)
        for parent, (link, joint, kind) in zip(parents, chain, strict=False)
    ]
    return URDF.format("".join(parts))


def around(block: dict) -> dict:
    """A robot that a part of a description can be a part of."""
    if "gear_ratio" in str(block.get("rotors")) and "q4" in str(block["rotors"]):
        links = [{"name": f"l{k}", "joint": {"name": f"q{k}", "type": "revolute"}, "a": 0.2,
                  "mass": 1.0} for k in range(1, 6)]  # fmt: skip
        return {"robot": "bench", "links": links}
    if "elbow" in str(block.get("near")):
        return closed_robots.palletiser({"arm": 1.4, "crank": 2.9})
    return yaml.safe_load((CONFIG / "rrr.yaml").read_text(encoding="utf-8"))


def plain(value):
    """Without NumPy's types."""
    return json.loads(json.dumps(value, default=lambda x: x.tolist()))


def test_every_page_with_yaml_is_looked_at():
    assert {page for page, _ in BLOCKS} == {
        "descriptions.md",
        "formulations.md",
        "tutorial_urdf.md",
    }
    assert len(BLOCKS) >= 9


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=lambda each: each.split("\n")[0][:40])
def test_yaml_is_read_by_its_reader(page, block, tmp_path, capsys):
    content = yaml.safe_load(block)
    if content is None:  # a comment for editors: the file that it names is written by a command
        assert "robot.schema.json" in block
        assert "robot.schema.json" in (ROOT / "docs" / page).read_text().replace(block, "")
        return
    file = tmp_path / "block.yaml"
    file.write_text(block, encoding="utf-8")
    if "kinetic" in content:
        assert main(["derive", str(file)]) == 0
        assert "m1" in capsys.readouterr().out
        return
    if "urdf" in content:
        shutil.copy(ROOT / "urdf/six_axis.urdf", tmp_path)
        (tmp_path / "robot.urdf").write_text(bench_urdf())
    elif "links" not in content:
        file.write_text(yaml.safe_dump(plain(around(content)) | content), encoding="utf-8")
    mechanism = rd.load(file)
    assert mechanism.joint_names
    for name in content.get("locked", ()):
        assert name not in mechanism.joint_names
    assert {rotor.name for rotor in mechanism.rotors} >= set(content.get("rotors", ()))


def test_parameters_in_the_text_are_the_nodes():
    text = (ROOT / "docs/node.md").read_text(encoding="utf-8")
    found = re.findall(r"^ *feed_forward: (\{ros__parameters: .*\})$", text, re.MULTILINE)
    assert found
    for each in found:
        Settings.of(yaml.safe_load(each)["ros__parameters"])
