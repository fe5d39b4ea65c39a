# SPDX-License-Identifier: Apache-2.0
"""Robots by name: a file comes first, nothing is guessed, and no text from outside is a name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.description import known
from robot_dynamics.description.load import load_urdf_text

LINK = (
    '<robot name="{}"><link name="a"/><link name="b">{}</link><joint name="j" type="continuous">'
    '<parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>'
)
BODY = (
    '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    "</inertial>"
)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel of our own, and no robot_descriptions."""
    folder = tmp_path / "site" / known.WHEEL / "arm_description/urdf"
    folder.mkdir(parents=True)
    (folder / "arm9.urdf").write_text("no robot")
    (folder / "arm9_robot.urdf").write_text(LINK.format("nine", BODY))
    (folder / "weightless.urdf").write_text(LINK.format("weightless", ""))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.setitem(sys.modules, "robot_descriptions._descriptions", None)
    known._carried.cache_clear()
    known._fetched.cache_clear()
    monkeypatch.chdir(tmp_path)
    yield folder
    known._carried.cache_clear()
    known._fetched.cache_clear()


def test_a_name_is_the_robot_of_that_name(wheel):
    assert rd.load("arm9").name == "nine"
    assert rd.load("arm9_robot").name == "nine"
    assert rd.load("arm").name == "nine"


def test_a_file_of_that_name_comes_first(wheel, tmp_path):
    (tmp_path / "arm9").write_text("anything")
    with pytest.raises(rd.DescriptionError, match="extension"):
        rd.load("arm9")


def test_what_is_no_name_is_a_path(wheel):
    for source in ("./arm9", "arm9.urdf", "../arm9", "arm9/", "arm 9", "", "a", "os.path", "-arm9"):
        with pytest.raises(rd.DescriptionError) as caught:
            rd.load(source)
        assert "similar" not in str(caught.value)


def test_an_unknown_name_says_what_is_like_it(wheel):
    (wheel / "arm9-v2.urdf").write_text(LINK.format("two", BODY))  # can be loaded by its path alone
    with pytest.raises(rd.DescriptionError, match="similar ones: arm9") as caught:
        rd.load("arm99")
    assert "-v2" not in str(caught.value)


def test_without_the_extra_the_message_says_what_to_install(wheel, monkeypatch):
    monkeypatch.setattr(sys, "path", [each for each in sys.path if "site" not in each])
    known._carried.cache_clear()
    with pytest.raises(rd.DescriptionError, match=r"robot_dynamics\[robots\]"):
        rd.load("panda")


@pytest.mark.parametrize("file", ["config/polar.yaml", "urdf/six_axis.urdf"])
def test_a_shipped_robot_s_name_leads_to_its_file(wheel, file):
    name = Path(file).stem
    with pytest.raises(rd.DescriptionError, match=rf"^{name}: no such file; .*/{file}$"):
        rd.load(name)


def test_a_robot_without_inertias_says_so(wheel):
    with pytest.warns(UserWarning, match="mass"):
        rd.load("weightless")


def test_neither_a_topic_nor_another_description_takes_a_name(wheel, tmp_path):
    with pytest.raises(rd.DescriptionError, match="XML"):
        load_urdf_text("arm9")
    beside = tmp_path / "beside.yaml"
    beside.write_text("urdf: arm9\n")
    with pytest.raises(rd.DescriptionError, match="no such file"):
        rd.load(beside)


def test_what_cannot_be_fetched_is_one_line_and_prints_nothing(wheel, monkeypatch, capsys):
    package = wheel / "fake"
    (package / "robot_descriptions").mkdir(parents=True)
    (package / "robot_descriptions/__init__.py").write_text("")
    (package / "robot_descriptions/_descriptions.py").write_text(
        "DESCRIPTIONS = {'far_description': 1}"
    )
    (package / "robot_descriptions/far_description.py").write_text(
        "print('Cloning')\nraise OSError('no route\\nto host')"
    )
    for name in [each for each in sys.modules if each.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(package), *sys.path])
    known._fetched.cache_clear()
    with pytest.raises(rd.DescriptionError, match=r"far: .* cannot fetch it: no route"):
        rd.load("far")
    assert capsys.readouterr().out == ""
    assert main(["check", "far"]) == 1
    assert len(capsys.readouterr().err.strip().split("\n")) <= 2


def test_the_panda_and_the_ur10_come_without_a_network(tmp_path, monkeypatch):
    pytest.importorskip("pinocchio", reason="example-robot-data is not installed: extra `robots`")
    monkeypatch.chdir(tmp_path)
    assert len(rd.load("panda").joint_names) >= 7
    assert len(rd.load("ur10").joint_names) == 6
    assert Path(rd.load("ur3").source).name == "ur3_robot.urdf"
    out = tmp_path / "panda.html"
    assert main(["show", "panda", "--out", str(out)]) == 0
    assert out.stat().st_size > 50_000
