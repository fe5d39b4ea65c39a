# SPDX-License-Identifier: Apache-2.0
"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import pytest
from robots import CONFIG, random_urdf

import robot_dynamics as rd
from robot_dynamics.app import plots
from robot_dynamics.app.check_report import report
from robot_dynamics.app.cli import cli, main
from robot_dynamics.app.command import Progress
from robot_dynamics.app.commands import COMMANDS
from robot_dynamics.app.compare import (
    LARGEST_LAGRANGE_EULER,
    Comparison,
    constant_acceleration,
    within_reach,
)
from robot_dynamics.app.demo import CONTROLLER, DEMOS
from robot_dynamics.app.report_page import Chart, Line
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.mechanism.transform import ROTOR_MODELS

POLAR = str(CONFIG / "polar.yaml")
STATE = ["--q", "0.3", "0.7", "--qd", "1", "-2e0", "--qdd", "-1e-1", "2"]


def test_torque_prints_what_the_library_says(capsys):
    assert main(["torque", POLAR, *STATE]) == 0
    printed = capsys.readouterr().out.split()
    expected = rd.InverseDynamics(rd.load(POLAR))([0.3, 0.7], [1, -2], [-0.1, 2])
    assert printed[0::3] == ["theta1:", "d2:"]
    assert printed[2::3] == ["N·m", "N"]
    # four digits for people, all of them for programs
    assert printed[1::3] == [f"{x:.4g}" for x in expected]
    main(["torque", POLAR, *STATE, "--json"])
    found = json.loads(capsys.readouterr().out)["torques"]
    assert found == pytest.approx(expected.tolist(), rel=1e-15)


def test_torque_as_json_is_one_object(capsys):
    assert main(["torque", POLAR, "--json", "--formulation", "gibbs_appell", *STATE]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["joints"] == ["theta1", "d2"]
    assert result["formulation"] == "gibbs_appell"
    assert len(result["torques"]) == 2


def test_rates_and_accelerations_are_zero_where_they_are_left_out(capsys):
    main(["torque", str(CONFIG / "cartesian.yaml"), "--q", "0", "0", "0", "--json"])
    assert json.loads(capsys.readouterr().out)["torques"] == pytest.approx([0, 6 * 9.81, 0])


def test_positions_may_be_multiples_of_pi_and_are_never_evaluated(capsys):
    expected = rd.InverseDynamics(rd.load(POLAR))([np.pi / 2, 0.7], [-3 * np.pi / 4, 0], [0, 0])
    arguments = ["--q", "pi/2", "0.7", "--qd", "-3*pi/4", "0"]
    assert main(["torque", POLAR, "--json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["torques"] == pytest.approx(expected.tolist(), rel=1e-12)
    assert found["qd"][0] == -3 * np.pi / 4
    for text in ("__import__('os')", "1e999", "nan", "2**2", "pi.real"):
        assert main(["torque", POLAR, "--q", text, "0"]) == 1
        assert "expected numbers" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rrr", "polar"])
def test_the_state_is_home_at_rest_where_none_is_given(capsys, name):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism)
    home = [float(mechanism.home.get(joint, 0.0)) for joint in dynamics.joint_names]
    zero = [0.0] * len(home)
    assert main(["torque", str(CONFIG / f"{name}.yaml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["q"], found["qd"], found["qdd"]) == (home, zero, zero)
    assert found["torques"] == pytest.approx(dynamics(home, zero, zero).tolist(), rel=1e-12)
    assert found["joints"] == list(dynamics.joint_names)
    assert found["actuated"] == list(dynamics.actuated_names)


def test_a_closed_robot_takes_its_sensed_joints_where_asked(capsys):
    mechanism = rd.load(CONFIG / "rrr.yaml")
    sensed = rd.InverseDynamics(mechanism, sensed=True)
    assert main(["torque", str(CONFIG / "rrr.yaml"), "--sensed", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["joints"] == list(sensed.joint_names)
    assert len(found["torques"]) == 3


def test_what_is_beyond_a_limit_is_noted(capsys):
    six = ["torque", "package://robot_dynamics/urdf/six_axis.urdf", "--json"]
    assert main([*six, "--q", "0", "0", "0", "0", "0", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []
    state = ["--q", "-3", "0", "2.7", "0", "0", "0", "--qd", "0", "-3.1", "0", "0", "0", "0"]
    assert main([*six, *state, "--qdd", "0", "0", "0", "0", "0", "1e4"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    words = ["joint1: -3 rad is below", "joint3: 2.7 rad is above", "joint2: -3.1 rad/s is beyond"]
    for each in words:
        assert sum(note.startswith(each) for note in notes) == 1
    assert any(note.startswith("joint6: ") and "N·m is beyond" in note for note in notes)


def test_derive_prints_text_latex_and_steps(capsys):
    assert main(["derive", POLAR]) == 0
    assert "tau[theta1] = c_z1**2*m1*theta1_dd" in capsys.readouterr().out
    assert main(["derive", POLAR, "--latex"]) == 0
    assert "\\begin{align*}" in capsys.readouterr().out
    assert main(["derive", POLAR, "--steps"]) == 0
    steps = capsys.readouterr().out
    for number in range(2, 10):
        assert f"L-E {number}" in steps


def test_derive_writes_the_format_that_the_file_s_ending_means(tmp_path, capsys):
    def written(name, *options):
        file = tmp_path / name
        assert main(["derive", POLAR, "--out", str(file), *options]) == 0
        return file.read_text()

    text, latex = written("equations"), written("equations.TEX")
    assert text == written("equations.txt")
    assert "tau[theta1] =" in text
    assert "\\begin{gather*}" in latex
    assert written("equations.md").startswith("# ")
    assert written("equations.html").startswith("<!DOCTYPE html>")
    assert written("equations.docx", "--latex") == latex
    assert written("equations.md", "--format", "text") == text
    capsys.readouterr()
    assert main(["derive", POLAR, "--out", str(tmp_path / "equations.docx2")]) != 0
    assert "a name that ends in .txt, .tex, .md, .html, or --format" in capsys.readouterr().err
    assert not (tmp_path / "equations.docx2").exists()


def test_what_bench_timed_took_no_longer_than_the_command(monkeypatch, capsys):
    monkeypatch.setattr("robot_dynamics.app.commands.bench.PATIENCE", 0.0)
    monkeypatch.setenv("ROBOT_DYNAMICS_BACKEND", "python")
    start = time.perf_counter()
    assert main(["bench", POLAR, "--json"]) == 0
    most = time.perf_counter() - start
    found = json.loads(capsys.readouterr().out)
    calls = [*found["call_us"].values(), found["rows"] * found["batch_us_a_state"]]
    assert min(found["ready_s"], *calls) > 0
    # two of three calls are not shorter than the median
    assert found["ready_s"] + 2e-6 * sum(calls) < most


def test_check_says_that_what_runs_agrees_joint_by_joint(capsys):
    assert main(["check", str(CONFIG / "three_axis.yaml"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["disagreement"]) == set(FORMULATIONS)
    assert max(result["disagreement"].values()) < 1e-12
    for name, row in result["disagreement_by_joint"].items():
        assert list(row) == ["q1", "q2", "q3"]
        assert max(row.values()) == result["disagreement"][name]
    assert result["left_out"] == {}


def test_check_compares_closed_chains_with_the_cut_tree():
    result = report(str(CONFIG / "five_bar.yaml")).result
    assert set(result["disagreement"]) | set(result["left_out"]) == set(FORMULATIONS)
    assert max(result["disagreement"].values()) < 1e-11


def test_check_builds_no_kernels_for_batches_of_a_large_closed_chain(monkeypatch):
    monkeypatch.setattr("robot_dynamics.app.agreement.LARGEST_COMPILED", 0)
    call, shapes = rd.InverseDynamics.__call__, []

    def counted(self, q, qd, qdd):
        shapes.append(np.ndim(q))
        return call(self, q, qd, qdd)

    monkeypatch.setattr(rd.InverseDynamics, "__call__", counted)
    result = report(str(CONFIG / "five_bar.yaml")).result
    assert result["disagreement"]["newton_euler"] < 1e-11
    assert set(shapes) == {1}


@pytest.mark.parametrize("loops", [False, True])
def test_check_looks_at_what_runs_and_at_every_joint_by_itself(monkeypatch, loops):
    """A wrong kernel is told, also where only a joint with small torques is wrong."""
    file = str(CONFIG / ("five_bar.yaml" if loops else "three_axis.yaml"))
    right = rd.InverseDynamics.__call__

    def wrong(self, q, qd, qdd):
        tau = np.array(right(self, q, qd, qdd))
        if "C" in self.backend:
            tau[..., -1] *= 1 + 1e-4
        return tau

    monkeypatch.setattr(rd.InverseDynamics, "__call__", wrong)
    result = report(file).result
    for name, row in result["disagreement_by_joint"].items():
        *others, last = row.values()
        assert max(others) < 1e-11
        assert (last > 1e-6) == ("C" in result["backends"][name])
    assert result["disagreement"]["newton_euler"] > 1e-6


def test_check_says_what_it_left_out_of_a_large_robot():
    output = report(str(CONFIG / "gough_stewart.yaml"))
    result = output.result
    assert set(result["left_out"]) == {"lagrange_euler", "gibbs_appell", "murphy"}
    assert "murphy left out" in output.text
    assert result["disagreement"]["newton_euler"] < 1e-11


def test_check_reports_oddities_and_strict_refuses_them(tmp_path, capsys):
    file = tmp_path / "odd.urdf"
    text = random_urdf(1)
    file.write_text(re.sub(r'izz="[^"]*"', 'izz="40"', text, count=1))
    assert main(["check", str(file)]) == 0
    assert "triangle" in capsys.readouterr().out
    assert main(["check", str(file), "--strict"]) == 1
    assert "triangle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["torque", "nowhere.urdf", "--q", "1"], "no such file"),
        (["torque", POLAR, "--q", "1"], "found 1 number, expected 2"),
        (["torque", POLAR, "--q", "1", "two"], "expected numbers"),
        (["urdf", POLAR, "--out", ""], "an empty name: cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_1(capsys, arguments, words):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert main([*arguments, "--json"]) == 1
    assert words in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Missing command; see robot_dynamics --help"),
        (["fly"], "No such command 'fly'; see robot_dynamics --help"),
        (["watch"], "`python -m robot_dynamics.ros.executables watch --help`"),
        (["torque"], "Missing argument FILE; see robot_dynamics torque --help"),
        (["torque", POLAR, "--q"], "'--q' requires an argument; see robot_dynamics torque --help"),
        (["torque", POLAR, "x", "y"], "extra arguments (x y); see robot_dynamics torque --help"),
        (["torque", POLAR, "--fly"], "; see robot_dynamics torque --help"),
        (["torque", POLAR, "--rotors", "x"], "is not one of 'full', 'reflected', 'none'."),
    ],
)
def test_a_wrong_command_line_is_exit_code_2_and_one_line(capsys, arguments, told):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("robot_dynamics: ")
    assert line.endswith(told)


@pytest.mark.parametrize(
    "state",
    [
        ["--q=0.3,0.7", "--qd", "1,-2e0", "--qdd", "-0.1,2"],
        ["--q", "0.3", "--qd", "1", "--qdd", "-.1", "--q", "0.7", "--qd", "-2", "--qdd", "2"],
        ["--qdd", "-1e-1 2", "--json", "--qd", "1", "-2", "--q", "0.3", "0.7"],
    ],
)
def test_several_values_follow_an_option_in_every_way_people_write_them(capsys, state):
    assert main(["torque", POLAR, "--json", *STATE]) == 0
    expected = capsys.readouterr().out
    assert main(["torque", POLAR, "--json", *state]) == 0
    assert capsys.readouterr().out == expected


def test_an_option_of_one_value_leaves_what_follows_to_the_arguments(capsys):
    assert main(["torque", "--formulation", "murphy", POLAR, "--json", *STATE]) == 0
    assert json.loads(capsys.readouterr().out)["formulation"] == "murphy"


def test_an_option_without_its_value_does_not_take_the_next_options_name(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["export", POLAR, "--out", "--json"])
    assert stop.value.code == 2
    assert "'--out' requires an argument" in capsys.readouterr().err


def test_every_option_has_a_help_text():
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        options = [each for each in command.params if isinstance(each, click.Option)]
        assert options
        assert [each.opts for each in options if not each.help] == [], name


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_is_one_line_and_exit_code_130(monkeypatch, capsys, as_json):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("robot_dynamics.app.check_report.report", interrupt)
    assert main(["check", POLAR, *["--json"] * as_json]) == 130
    out, err = capsys.readouterr()
    if as_json:
        assert json.loads(out) == {"error": "stopped"}
    else:
        assert err == "robot_dynamics: stopped\n"


def test_the_version_is_the_packages(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"robot_dynamics {rd.__version__}\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("robot_dynamics to", "torque"),
        ("robot_dynamics torque robot.urdf --form", "--formulation"),
        ("robot_dynamics torque robot.urdf --formulation mu", "murphy"),
        ("robot_dynamics torque robot.urdf --q 1 2 --terms iner", "inertia"),
    ],
)
def test_shells_complete_commands_options_and_choices(monkeypatch, capsys, words, completed):
    assert main(["completion", "bash"]) == 0
    assert "_ROBOT_DYNAMICS_COMPLETE=bash_complete" in capsys.readouterr().out
    monkeypatch.setenv("_ROBOT_DYNAMICS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert completed in capsys.readouterr().out.replace("\n", ",").split(",")


def test_a_commands_help_imports_nothing_heavy():
    code = (
        "import sys; from robot_dynamics.app.cli import main; main(['derive', '--help']);"
        "print([m for m in ('sympy', 'scipy', 'matplotlib', 'lxml', 'yaml') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "module", ["robot_dynamics.app.cli", "click", "robot_dynamics.description"]
)
def test_ctrl_c_while_a_module_is_imported_ends_without_a_traceback(module):
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted)\n"
        "from robot_dynamics.__main__ import main\n"
        f"sys.argv[1:] = ['check', {str(POLAR)!r}]\n"
        "sys.exit(main())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 130
    assert "Traceback" not in found.stderr


def test_an_interrupt_within_a_string_that_is_executed_has_the_same_exit_code(tmp_path):
    # as dataclasses execute strings: `python -m` remembers an interrupt of one, and ends by SIGINT
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "from robot_dynamics.app import check_report\n"
        "from robot_dynamics.__main__ import main\n"
        "check_report.report = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        f"sys.argv[1:] = ['check', {str(POLAR)!r}]\n"
        "sys.exit(main())"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(rd.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (130, "robot_dynamics: stopped\n")


def test_the_console_script_runs():
    result = subprocess.run(
        [sys.executable, "-m", "robot_dynamics", "check", POLAR],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("polar: 2 joints")


def test_compare_prints_the_rotor_models_and_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    picture = tmp_path / "torques.png"
    arguments = ["compare", str(CONFIG / "three_axis.yaml"), "--json"]
    assert main([*arguments, "--picture", str(picture)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert max(max(row) for row in result["disagreement"].values()) < 1e-12
    # the reflected rotors miss something, no rotors at all miss more
    assert 1e-6 < max(result["model_error"]["reflected"]) < max(result["model_error"]["none"])
    assert result["files"]["torques"] == str(picture)
    for drawn in result["files"].values():
        assert Path(drawn).read_bytes().startswith(b"\x89PNG")
    assert set(result["gears"]["errors"]) == {"as described", "balanced"}


def test_a_picture_of_one_joint_has_its_whole_legend_and_name(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    t = np.linspace(0, 1, 5)
    tau = dict.fromkeys((*FORMULATIONS, *ROTOR_MODELS), 1 + t[:, None])
    compared = Comparison(("$\\q$",), t, {name: tau[name] for name in FORMULATIONS}, tau)
    kept = []
    monkeypatch.setattr(plots, "save", lambda drawing, path: kept.append(drawing) or path)
    plots.comparison(tmp_path / "torques.png", "$\\q$", compared)
    drawing = kept[0]
    drawing.savefig(tmp_path / "torques.png")  # the name is no formula
    (legend,) = drawing.legends
    assert legend.get_window_extent().x0 >= 0
    assert legend.get_window_extent().x1 <= drawing.bbox.width
    assert "$" in Chart("", [Line(t, t, "b")], "$\\q$, rad", "N·m").svg


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", POLAR, "--picture", "x.xyz"],
        ["compare", POLAR, "--picture", f"{POLAR}/x.png"],
        ["demo", "polar", "--output", f"{POLAR}/x"],
    ],
)
def test_a_place_that_cannot_be_written_is_one_line_before_the_work(arguments, capsys):
    for module in ("matplotlib", "mujoco", "rclpy"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    assert main(arguments) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert arguments[-1].removesuffix("/x.png") in lines[0]


def test_a_picture_with_a_folder_s_name_is_refused_before_the_work(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    folder = tmp_path / "pictures.png"
    folder.mkdir()
    assert main(["compare", POLAR, "--picture", str(folder), "--json"]) == 1
    printed = capsys.readouterr()
    assert "picture: found" in json.loads(printed.out or printed.err)["error"]


def test_a_motion_of_a_single_state_is_no_motion_to_compare(capsys):
    assert main(["compare", POLAR, "--duration", "0.004"]) == 1
    assert "at least one" in capsys.readouterr().err


@pytest.mark.parametrize("ends", [">&-", "| cat"])
def test_a_closed_or_ascii_output_is_no_traceback(ends):
    command = f"{sys.executable} -m robot_dynamics torque {POLAR} --q 0 1 {ends}"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        ["sh", "-c", command], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_default_motion_of_a_closed_chain_stays_in_its_workspace():
    """Of the 3RRR it is a share, whose states are that share of the whole's away from the start."""
    mechanism = rd.load(CONFIG / "rrr.yaml")
    home = [mechanism.home[name] for name in mechanism.actuated_names]
    time = np.linspace(0, 0.2, 21)
    whole = constant_acceleration(home, [1.0] * 3, [5.0] * 3, time)
    share, motion = within_reach(mechanism, *whole)
    assert share == 0.5
    expected = constant_acceleration(home, [0.5] * 3, [2.5] * 3, time)
    for found, each in zip(motion, expected, strict=True):
        np.testing.assert_allclose(found, each, atol=1e-12)
    assert np.isfinite(rd.InverseDynamics(mechanism)(*motion)).all()


def test_compare_leads_to_a_page_that_plays_the_motion(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["compare", POLAR, "--duration", "0.1", "--page", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == {"page": str(page)}
    text = page.read_text()
    assert "the motion compared, 0.1 s" in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    # from 0 at 1 rad/s (m/s) with 5 rad/s² (m/s²)
    assert data["motion"]["t"][-1] == pytest.approx(0.1)
    assert data["motion"]["q"][-1] == pytest.approx([0.125, 0.125])
    assert main(["compare", POLAR, "--page", str(tmp_path / "no/p.html")]) == 1
    assert "no/p.html" in capsys.readouterr().err


def test_compare_moves_the_motors_of_a_closed_chain(capsys):
    assert main(["compare", str(CONFIG / "five_bar.yaml"), "--duration", "0.05", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["joints"]) == 2
    assert max(max(row) for row in result["disagreement"].values()) < 1e-12


def test_compare_and_show_take_more_motors_than_degrees_of_freedom(capsys, tmp_path):
    file = tmp_path / "five_bar.yaml"
    text = (CONFIG / "five_bar.yaml").read_text()
    file.write_text(text.replace("sensed: [qp1,", "sensed: [").replace("[qa1,", "[qp1, qa1,"))
    motors = rd.load(file).actuated
    assert main(["compare", str(file), "--duration", "0.05", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["actuated"] == list(motors)
    assert len(result["joints"]) == 2
    assert max(max(row) for row in result["disagreement"].values()) < 1e-12
    assert {len(row) for row in result["disagreement"].values()} == {3}
    assert main(["show", str(file), "--out", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().err.count("3 motors for 2 degrees of freedom") == 1
    assert "Formulations and rotor models" in (tmp_path / "page.html").read_text()


def test_compare_says_that_lagrange_euler_is_left_out(capsys, tmp_path):
    links = "\n".join(f"- {{name: l{k}, joint: {{name: j{k}, type: revolute}}, mass: 1}}"
                      for k in range(LARGEST_LAGRANGE_EULER + 1))  # fmt: skip
    file = tmp_path / "snake.yaml"
    file.write_text(f"links:\n{links}\n")
    assert main(["compare", str(file)]) == 0
    assert "lagrange_euler left out: O(n⁴)" in capsys.readouterr().out
    assert main(["compare", POLAR]) == 0
    assert "left out" not in capsys.readouterr().out


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path, monkeypatch):
    """Without changing the mask, which would be that of files from other threads, too."""
    from robot_dynamics.description import files

    mask = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")
            files.write_text(tmp_path / "robot.urdf", "new")
    finally:
        os.umask(mask)
    assert (tmp_path / "robot.urdf").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("times", [["--step", "0"], ["--duration", "-1"], ["--step", "1e-9"]])
def test_compare_refuses_times_that_are_none(capsys, times):
    assert main(["compare", POLAR, *times]) == 1
    assert "--step" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_an_output_that_is_full_is_one_line(options):
    command = [sys.executable, "-m", "robot_dynamics", "check", "config/polar.yaml", *options]
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            command, cwd=CONFIG.parent, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 1
    assert "No space left on device" in found.stderr
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("line", "code", "result"),
    [
        ("nonsense", 2, ""),
        ("check nowhere.yaml", 1, ""),
        # its inertia is that of no body: a warning
        ("torque odd.yaml --qdd 1", 0, "q: 9 N·m"),
    ],
)
def test_lines_that_nobody_can_read_change_neither_result_nor_exit_code(
    line, code, result, tmp_path
):
    (tmp_path / "odd.yaml").write_text(
        "robot: odd\nlinks: [{name: a, joint: {name: q, type: revolute}, mass: 1.0,\n"
        "  inertia: {ixx: 1.0, iyy: 1.0, izz: 9.0}}]\n"
    )
    command = [sys.executable, "-m", "robot_dynamics", *line.split()]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.stderr
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert (told.returncode, found.returncode) == (code, code)
    assert found.stdout == told.stdout
    assert result in found.stdout


def test_a_file_is_written_whole_or_left_as_it_is(tmp_path, monkeypatch):
    """On a full disk, as it is said in the middle of a write."""
    from robot_dynamics.description import files

    place = tmp_path / "robot.urdf"
    place.write_text("old")
    place.chmod(0o640)
    files.write_text(place, "new ü")
    assert place.read_text(encoding="utf-8") == "new ü"
    assert place.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link.urdf"
    link.symlink_to(place)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    exports = tmp_path / "exports"
    kinds = [kind for kind in ("header", "fmu") if kind != "fmu" or find_spec("fmpy")]
    export = ["export", "config/polar.yaml", "--out", str(exports), "--force", "--as"]
    for kind in kinds:
        assert main([*export, kind]) == 0
    before = {path: path.read_bytes() for path in exports.iterdir()}
    monkeypatch.setattr(files.os, "replace", full)
    for kind in kinds:
        assert main([*export, kind]) == 1
    assert {path: path.read_bytes() for path in exports.iterdir()} == before
    assert main(["urdf", "config/polar.yaml", "--out", str(link)]) == 1
    assert place.read_text(encoding="utf-8") == "new ü"
    names = ["exports", "link.urdf", "robot.urdf"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_count_is_printed_once_a_second_and_every_other_step(monkeypatch, capsys):
    monkeypatch.setattr("robot_dynamics.app.command.QUIET", 1.0)
    now = iter([0.0, 0.5, *(1.2 + 0.1 * k for k in range(20)), 3.2, 3.3])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    progress = Progress()
    progress("reading")  # within the first second
    for k in range(20):
        progress(f"start {k} of 20")
    progress("fitting")
    progress("writing")
    said = [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()]
    assert said == ["start 0 of 20", "start 10 of 20", "fitting", "writing"]


def test_a_step_that_began_at_once_is_printed_while_it_lasts(monkeypatch, capsys):
    monkeypatch.setattr("robot_dynamics.app.command.QUIET", 0.05)
    with click.Context(click.Command("check")):
        progress, said, end = Progress(), "", time.monotonic() + 10.0
        progress("reading")
        while not said and time.monotonic() < end:
            said = capsys.readouterr().err
        progress("comparing")
    assert said + capsys.readouterr().err == "   0 s: reading\n   0 s: comparing\n"


def test_a_step_of_a_command_that_has_ended_is_not_printed(monkeypatch, capsys):
    monkeypatch.setattr("robot_dynamics.app.command.QUIET", 0.2)
    with click.Context(click.Command("check")):
        Progress()("reading")
    for timer in threading.enumerate():
        if isinstance(timer, threading.Timer):
            timer.join()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        (["check", POLAR], ["examining the description", "comparing murphy"]),
        (["close", str(CONFIG / "five_bar.yaml")], ["searching for assembly modes"]),
    ],
)
def test_what_may_take_long_tells_its_steps(monkeypatch, capsys, arguments, steps):
    monkeypatch.setattr("robot_dynamics.app.command.QUIET", 0.0)
    assert main(arguments) == 0
    told = capsys.readouterr().err
    assert [step for step in steps if f" s: {step}\n" not in told] == []


def test_the_list_of_commands_cuts_no_sentence(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.split("Commands:")[1].strip().splitlines()
    assert [line.split()[0] for line in listed] == list(COMMANDS)
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


def test_the_help_of_demo_names_every_robot(capsys):
    assert main(["demo", "--help"]) == 0
    printed = capsys.readouterr().out
    assert [name for name in (*DEMOS, CONTROLLER) if name not in printed] == []


def test_the_help_of_completion_has_a_line_for_each_shell(capsys):
    assert main(["completion", "--help"]) == 0
    said = capsys.readouterr().out
    assert r"\b" not in said
    for shell in ("bash", "zsh", "fish"):
        assert any(line.strip().startswith(f"{shell}:") for line in said.splitlines())


@pytest.mark.parametrize(
    ("command", "shown", "not_shown"),
    [
        ("excite", r"--seed N +Seed of the search\. +\[default: 0\]", "harmonics N.*default: None"),
        ("excite", r"--duration S +Duration.* +\[default: 20\.0\]", "duration S +The"),
        ("linearize", r"--friction-smoothing RATE", r"\[default: 0\.0\]"),
        ("identify", r"--validate RECORDING\.\.\.", "--strict +TEXT"),
        ("demo", r"--output DIR", "--output PATH"),
    ],
)
def test_help_tells_metavars_and_defaults(command, shown, not_shown, capsys):
    with contextlib.suppress(SystemExit):
        main([command, "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(shown, out)
    assert not re.search(not_shown, out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["demo", "nobody"],
            r"robot_dynamics: Invalid value for ROBOT: 'nobody' is not one of 'pol.*",
        ),
        (
            ["bench", POLAR, "--rotors"],
            r"robot_dynamics: No such option:? '?--rotors.*; see robot_dynamics bench --help",
        ),
        (
            ["torque", POLAR, "--rotors", "no"],
            r"robot_dynamics: Invalid value for '--rotors': 'no' .*",
        ),
    ],
)
def test_a_value_that_is_none_of_the_choices_is_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(words, line)


def test_whole_numbers_are_whole_and_several_values_are_taken(tmp_path, capsys):
    out = str(tmp_path / "motion.yaml")
    for option, value in (("--seed", "1.5"), ("--harmonics", "x"), ("--margin", "x")):
        with pytest.raises(SystemExit):
            main(["excite", POLAR, "--out", out, option, value])
        assert f"Invalid value for '{option}'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["excite", POLAR])
    assert "Missing option '--out'" in capsys.readouterr().err
    # the second value is not taken for another argument
    assert main(["excite", POLAR, "--out", out, "--above", "link2:0.1", "nobody:0.2"]) == 1
    assert capsys.readouterr().err.startswith("robot_dynamics: d2: ")
