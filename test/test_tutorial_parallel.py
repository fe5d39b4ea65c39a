# SPDX-License-Identifier: Apache-2.0
"""The tutorial on parallel robots, as printed: its files, its commands, its Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import yaml
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.app.closing_home import close

TUTORIAL = (CONFIG.parent / "docs" / "tutorial_parallel.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL, flags=re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the tutorial's files are, after its commands, with what they printed."""
    place = tmp_path_factory.mktemp("tutorial")
    (place / "linkage.urdf").write_text(blocks("xml")[0])
    (place / "linkage.yaml").write_text(blocks("yaml")[0])
    said = {}
    for block in blocks("console"):
        words = block.removeprefix("$ robot_dynamics ").split()
        ran = subprocess.run(
            [sys.executable, "-m", "robot_dynamics", *words],
            cwd=place,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert ran.returncode == 0, (block, ran.stderr)
        said[" ".join(words)] = ran.stdout + ran.stderr
    return place, said


def test_the_tutorials_commands_say_what_it_says(folder):
    place, said = folder
    # the rod turned about itself by half a turn is no other one
    assert "2 assembly modes found" in said["close linkage.yaml"]
    assert "e-" not in said["close linkage.yaml"]
    checked = said["check linkage.yaml"]
    assert "'rod' can spin freely about its own axis (ball_rx)" in checked
    assert "does not close" not in checked
    written = (place / "linkage.yaml").read_text()
    # nothing but home has changed
    assert "# becomes ball_rz, ball_ry, ball_rx" in written
    home = yaml.safe_load(written)["home"]
    assert set(home) == {"crank", "ball_rz", "ball_ry", "ball_rx", "rocker"}
    assert home["crank"] == 0.4


def test_what_is_held_can_be_locked_as_the_tutorial_says(folder, tmp_path):
    place, said = folder
    (line,) = set(re.findall(r"`(locked: \{.*?\})`", TUTORIAL))
    assert f"`{line.replace('0.0', '0')}`" in said["check linkage.yaml"]
    (tmp_path / "linkage.urdf").write_text(blocks("xml")[0])
    text = (place / "linkage.yaml").read_text() + line + "\n"
    (tmp_path / "linkage.yaml").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tau = rd.InverseDynamics(rd.load(tmp_path / "linkage.yaml"))([0.5], [1.0], [2.0])
    printed = said["torque linkage.yaml --q 0.5 --qd 1.0 --qdd 2.0"]
    assert re.search(r"crank: (\S+)", printed)[1] == f"{tau[0]:.4g}"
    # home and what is locked say one thing
    (tmp_path / "linkage.yaml").write_text(text.replace(line, "locked: {ball_rx: 0.5}"))
    with pytest.raises(rd.DescriptionError, match=r"linkage\.yaml: home\.ball_rx: found .*locked"):
        rd.load(tmp_path / "linkage.yaml")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_tutorials_torque_is_that_of_python_and_of_the_work_that_is_done(folder, monkeypatch):
    place, said = folder
    monkeypatch.chdir(place)
    scope: dict = {}
    exec(blocks("python")[0], scope)
    printed = said["torque linkage.yaml --q 0.5 --qd 1.0 --qdd 2.0"]
    assert re.search(r"crank: (\S+)", printed)[1] == f"{scope['tau'][0]:.4g}"
    # dV/dq of all that is lifted, by differences
    dynamics = rd.InverseDynamics(rd.load("linkage.yaml"))
    h = 1e-5
    lifted = (dynamics.potential_energy([0.5 + h]) - dynamics.potential_energy([0.5 - h])) / (2 * h)
    assert np.allclose(dynamics.gravity([0.5]), lifted, atol=1e-8)


def test_near_as_it_is_printed_means_the_mode_that_is_written(folder):
    place, _ = folder
    (near,) = (yaml.safe_load(block) for block in blocks("yaml")[1:] if "near" in block)
    for meant in (near["near"], {"cut_rocker": {"xyz": [0.6, 0, -0.1]}}):
        robot = {**yaml.safe_load(blocks("yaml")[0]), "near": meant}
        file = place / "near.yaml"
        file.write_text(yaml.safe_dump(robot))
        result = close(str(file)).result
        assert result["warnings"] == []
        written = yaml.safe_load((place / "linkage.yaml").read_text())["home"]
        assert result["home"] == pytest.approx(written, abs=1e-9)
