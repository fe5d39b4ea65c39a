# SPDX-License-Identifier: Apache-2.0
"""What `derive` shows: steps that lead to the torques, in formats that other programs can read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy
import yaml
from robots import CONFIG, state

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.symbolic import derive_energies, kinematics
from robot_dynamics.symbolic.document import broken
from robot_dynamics.symbolic.names import Names, entry_names, words

TEXTBOOK = Path(__file__).parent / "data" / "textbook"
SAME = 1e-12


def energies(tmp_path, **entries) -> Path:
    path = tmp_path / "energies.yaml"
    whole = {"coordinates": ["q1"], "kinetic": "m1*q1_d**2/2", "potential": "m1*g*q1", **entries}
    path.write_text(yaml.safe_dump(whole))
    return path


@pytest.mark.parametrize(
    ("name", "robot"),
    [
        ("newton_euler", TEXTBOOK / "stanford.yaml"),
        ("gibbs_appell", CONFIG / "three_axis.yaml"),
        ("murphy", CONFIG / "polar.yaml"),
    ],
)
def test_the_sweeps_shown_lead_to_the_torques(name, robot):
    """Each value from those before it, as a reader would put numbers in."""
    mechanism = rd.load(robot)
    model = rd.derive(mechanism, name)
    n = len(model.q)
    q, qd, qdd = state(2, n)
    at = {
        **model.document(steps=True).parameters,
        **dict(zip((*model.q, *model.qd, *model.qdd), [*q, *qd, *qdd], strict=True)),
    }
    found = {}
    shown = [equation for section in model.sections() for equation in section.equations]
    # the sweeps are shown by quantity; what a value stands on may come a section later
    waiting = list(shown)
    while waiting:
        later = []
        for equation in waiting:
            value = sympy.sympify(equation.value)
            if not value.free_symbols <= set(at):
                later.append(equation)
                continue
            numbers = np.array(sympy.Matrix([value]).subs(at).tolist(), dtype=float)
            label = equation.name.text
            if label.startswith("tau["):
                found[label] = numbers[0, 0]
                continue
            quantity, _, body = label.rstrip("'").rpartition("_")
            shape = numbers.shape if numbers.shape[1] == 3 else (3,)
            names = entry_names(quantity, int(body) - 1, shape)
            for letter, number in zip(names, numbers.ravel(), strict=True):
                at.setdefault(sympy.Symbol(letter, real=True), number)
        assert len(later) < len(waiting), [equation.name.text for equation in later]
        waiting = later
    expected = rd.InverseDynamics(mechanism)(q, qd, qdd)
    assert np.allclose(list(found.values()), expected, rtol=1e-11, atol=1e-11)


def test_intermediates_of_large_robots_are_named_by_what_they_are():
    mechanism = rd.load(CONFIG.parent / "urdf" / "six_axis.urdf")
    model = rd.derive(mechanism, "newton_euler")
    names = [str(symbol) for symbol, _ in model.intermediates]
    assert {"alpha_x3", "N_z6", "n_y4"} <= set(names)
    assert any(name.startswith("D2_") for name in names)
    assert len(set(names)) == len(names)
    quantities = r"(b\d_)?(D\d_)?(omega|alpha|a|U|F|N|f|n)_[xyz]{1,2}\d_*"
    read = [name for name in names if not name.startswith("C_")]
    assert all(re.fullmatch(quantities, name) for name in read)
    assert max(len(str(value)) for _, value in model.intermediates) < 700
    assert "C_0" not in model.text()
    q, qd, qdd = state(1, 6)
    expected = rd.InverseDynamics(mechanism)(q, qd, qdd)
    assert np.allclose(model.function()(q, qd, qdd), expected, rtol=1e-11, atol=1e-11)


TEX = shutil.which("pdflatex") or shutil.which("tectonic")


@pytest.mark.skipif(TEX is None, reason="no TeX: neither pdflatex nor tectonic is on PATH")
@pytest.mark.parametrize(
    ("file", "options"),
    [
        (CONFIG / "three_axis.yaml", ["--formulation", "gibbs_appell", "--steps"]),
        (CONFIG / "rrr.yaml", ["--steps"]),
        (CONFIG / "cartesian.yaml", ["--formulation", "energies", "--steps"]),
        (Path(__file__).parents[1] / "urdf" / "six_axis.urdf", []),
        (None, ["--steps"]),
    ],
    ids=["rotors", "loops", "energies", "words as letters", "names"],
)
def test_tex_compiles_the_document(tmp_path, file, options):
    if file is None:
        robot = {
            "robot": r"a_b & 100 % \of {it} ~ #1 ^ $ <é>",
            "links": [
                {"name": "l_1", "mass": 1.5, "center_of_mass": [0.1, 0, 0], "alpha": 1.5708,
                 "joint": {"name": "shoulder_pan_joint", "type": "revolute"},
                 "friction": {"viscous": 0.1, "coulomb": 0.2}},
                {"name": "l_2", "mass": 1.5, "center_of_mass": [0.1, 0, 0],
                 "joint": {"name": "Ellenbogen-Gelenk_2%", "type": "revolute"}},
            ],
        }  # fmt: skip
        file = tmp_path / "robot.yaml"
        file.write_text(yaml.safe_dump(robot))
    written = tmp_path / "document.tex"
    assert main(["derive", str(file), *options, "--document", "--out", str(written)]) == 0
    command = ["-interaction=nonstopmode", "-halt-on-error", "-draftmode"]
    command = command if TEX and "pdflatex" in TEX else []
    run = subprocess.run(
        [str(TEX), *command, written.name], cwd=tmp_path, capture_output=True, timeout=240
    )
    said = run.stdout.decode("latin-1")
    assert run.returncode == 0, said[-2000:]
    # wider than the page by a character, where a word that is a name cannot be broken
    wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", said)]
    assert max(wide, default=0.0) < 2.0, wide


def test_a_document_has_all_that_tex_needs(tmp_path, capsys):
    """What can be told without TeX: balanced braces and environments, no raw underscore."""
    assert main(["derive", str(CONFIG / "three_axis.yaml"), "--document", "--steps"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("\\documentclass")
    assert text.rstrip().endswith("\\end{document}")
    assert "\\Gamma_{1} = -2.5" in text
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    begun = re.findall(r"\\begin\{([\w*]+)\}", text)
    assert sorted(begun) == sorted(re.findall(r"\\end\{([\w*]+)\}", text))
    for block in re.findall(r"\\begin\{align\*\}(.*?)\\end\{align\*\}", text, re.DOTALL):
        assert len(block.strip().splitlines()) <= 40
        assert not block.strip().endswith("\\\\")
    assert not re.search(r"_(\w|\{[^{}]*\})_", re.sub(r"\\_", "", text))  # a double subscript


def test_an_offset_of_a_joint_is_set_as_mathematics(tmp_path, capsys):
    (tmp_path / "robot.yaml").write_text("""
robot: r
links:
  - {name: a + b_1, theta: pi/2, joint: {name: p, type: revolute}, mass: 1}
  - {name: c, theta: -0.25, joint: {name: q, type: revolute}, mass: 1}
""")
    assert main(["derive", str(tmp_path / "robot.yaml"), "--document", "--steps"]) == 0
    text = capsys.readouterr().out
    assert r"a + b\_1 & $p$ & $p + \pi/2$ & 0 &" in text
    assert r"$c$ & $q$ & $q - 0.25$ & 0 &" in text


def test_lines_are_broken_outside_of_braces_alone():
    long = " + ".join(r"\frac{a + b}{c - d} x_{" + str(i) + "}" for i in range(60))
    lines = broken(r"y &= ", long)
    assert len(lines) > 3
    assert all(line.count("{") == line.count("}") for line in lines)
    assert "".join(line.removeprefix(r"&\quad {}") for line in lines).replace(" ", "") == (
        r"y&=" + long
    ).replace(" ", "")


def test_a_fraction_wider_than_the_page_is_unfolded():
    long = " + ".join(f"x_{{{i}}}" for i in range(60))
    lines = broken("y &= ", rf"a + \frac{{{long}}}{{v_{{36}}}} z - \frac{{b + c}}{{d}}")
    assert len(lines) > 2
    assert lines[0].startswith(r"y &= a + \frac{1}{v_{36}} \bigl(x_{0} + x_{1}")
    assert lines[-1].endswith(r"x_{59}\bigr) z - \frac{b + c}{d}")
    # one that fits stays as it is
    assert broken("y &= ", r"\frac{a + b}{c}") == [r"y &= \frac{a + b}{c}"]


@pytest.mark.parametrize("factor", [1, -1, sympy.Symbol("m"), -sympy.Symbol("m")])
def test_a_sum_wider_than_the_page_is_broken_whatever_stands_before_it(factor):
    long = sympy.Mul(factor, sympy.Add(*sympy.symbols("x1:60")), evaluate=False)
    lines = broken("y &= ", Names([], [], []).latex(long))
    assert len(lines) > 2
    assert max(map(len, lines)) < len(" ".join(lines)) / 2


def test_names_are_one_for_one_thing():
    q, v = sympy.symbols("theta1 theta1_d", real=True)
    names = Names([q], [v], [])
    assert names.latex(sympy.cos(q) ** 2 * v) == r"\dot{\theta}_{1} c_{1}^{2}"
    assert names.text(sympy.cos(q) ** 2 * v) == "theta1_d*c1**2"
    for name, tex in (
        ("I_xx1", "I_{xx1}"),
        ("Gamma2", r"\Gamma_{2}"),
        ("l_c2", "l_{c2}"),
        ("m_L", "m_{L}"),
        ("l_cL", "l_{cL}"),
        ("shoulder_pan_joint", r"\mathit{shoulder\_pan\_joint}"),
        # Greek letters are none with an index, nor are words
        ("beta", r"\beta"),
        ("mu1", r"\mu_{1}"),
        ("rho_c", r"\rho_{c}"),
        ("psi", r"\psi"),
        ("mass", r"\mathit{mass}"),
        ("m_tool", "m_{tool}"),
        ("I_1zz", "I_{1zz}"),
        ("m_0", "m_{0}"),
        ("q1_0", "q_{1,0}"),
    ):
        assert names.symbol(name) == tex
    assert "<mi>μ</mi>" in names.mathml(sympy.Symbol("mu"))
    assert words("Contrôle Nº1 à Århus, Ξ") == r"Contrôle N\textsuperscript{o}1 à Århus, "
    assert words("50 % of a_b") == r"50 \% of a\_b"
    # a letter of the description that is called so keeps its name to itself
    taken = Names([q], [v], [sympy.Symbol("c1", real=True)])
    assert taken.text(sympy.cos(q)) == "cos(theta1)"


@pytest.mark.parametrize(("count", "short"), [(9, True), (10, False)])
def test_sines_and_cosines_are_all_abbreviated_or_none(count, short):
    """c110 could be cos(q1 + q10) or cos(q11), and cos(q10) beside c2 would be two notations."""
    q = sympy.symbols(f"q1:{count + 1}", real=True)
    whole = sympy.cos(q[1]) + sympy.sin(q[2] + q[3])
    assert Names(q).text(whole) == ("s34 + c2" if short else "sin(q3 + q4) + cos(q2)")


def test_every_format_has_every_section():
    model = rd.derive(rd.load(CONFIG / "polar.yaml"))
    document = model.document(steps=True)
    html = document.html()
    ElementTree.fromstring(html.split("\n", 1)[1].replace("&InvisibleTimes;", ""))
    for text in (document.text(), document.latex(), document.markdown(), html):
        for number in range(1, 11):
            assert f"L-E {number}" in text
    for text in (document.latex(), document.markdown()):
        assert not re.search(r"[⎡⎤⎣⎦⎢⎥₁₂θ]", text)
    assert model._repr_latex_().startswith("$$")
    assert "<math>" in model._repr_html_()
    # the numbers are those of Lagrange–Euler's steps in the book
    other = rd.derive(rd.load(CONFIG / "polar.yaml"), "murphy").document(steps=True).text()
    assert "Reference frames" in other
    assert "L-E" not in other


@pytest.mark.parametrize("formulation", ["newton_euler", "gibbs_appell", "murphy"])
@pytest.mark.parametrize("rotors", ["full", "none"])
def test_recursions_tell_their_symbols_and_what_slides_in_every_format(formulation, rotors):
    model = rd.derive(rd.load(CONFIG / "polar.yaml"), formulation, rotors=rotors)
    document = model.document(steps=True)
    first = next(each for each in document.sections if each.title.startswith(("Outward", "Steps")))
    formulas = [each.formula for each in document.sections if each.formula]
    for symbol in ("R_i", "a_i", "c_i", "m_i", "I_i"):
        assert symbol in first.words
    for text, tex in ((each.text, each.tex) for each in formulas):
        for word in ("sliding", "turning", "omega", "alpha", "Gamma", "mu"):
            assert (word in text) == (word in tex), word
    assert "sliding: " in first.formula.tex
    for text in (document.latex(), document.markdown(), document.html(), document.text()):
        assert "inertia about the " in text


def test_a_potential_energy_that_is_zero_is_said_to_be():
    q, qd = sympy.symbols("q1 q1_d")
    model = rd.from_energies(sympy.Symbol("m1") * qd**2 / 2, sympy.Integer(0), [q], [qd])
    lines = model.document(steps=True).text().splitlines()
    assert "P = 0" in map(str.strip, lines)


@pytest.mark.parametrize(
    ("terms", "present", "absent"),
    [
        (["gravity"], ["Gravity g"], ["Inertia", "Coriolis", "Friction"]),
        (["inertia"], ["Inertia"], ["Gravity", "Coriolis"]),
        (["coriolis", "gravity"], ["Coriolis", "Gravity"], ["Inertia"]),
    ],
)
def test_terms_cut_the_matrices_to_what_they_need(terms, present, absent):
    mechanism = rd.load(TEXTBOOK / "planar2.yaml")
    model = rd.derive(mechanism, "newton_euler", terms=terms)
    text = model.text()
    assert all(words in text for words in present)
    assert not any(words in text for words in absent)
    q, qd, qdd = state(0, 2)
    expected = rd.InverseDynamics(mechanism, terms=terms)(q, qd, qdd)
    assert np.allclose(model.function()(q, qd, qdd), expected, rtol=SAME, atol=SAME)


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (["rotors"], "only rotors"),
        (["coriolis", "rotors"], "only coriolis and rotors"),
        (["inertia", "coriolis"], None),
        (["inertia", "coriolis", "rotors"], None),
        (["gravity"], None),
    ],
)
def test_torques_with_a_part_of_the_motion_are_not_taken_for_those_of_d_and_c(terms, said):
    model = rd.derive(rd.load(CONFIG / "three_axis.yaml"), "newton_euler", terms=terms)
    assert any(said in note for note in model.notes) if said else not model.notes


def test_json_has_the_matrices(capsys):
    assert main(["derive", str(CONFIG / "polar.yaml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["D"] == [["c_z1**2*m1 + d2**2*m2", "0"], ["0", "m2"]]
    assert found["C"][0][1] == "d2*m2*theta1_d"
    assert found["g"] == ["0", "0"]
    assert main(["derive", str(CONFIG / "rrr.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["joints"]


def test_a_robots_energies_give_its_equations():
    """K and P by themselves: differentiated anew, they are the robot's torques."""
    mechanism = rd.load(TEXTBOOK / "planar2.yaml")
    model = derive_energies(mechanism)
    shown = {each.name.text: each.value for part in model.sections() for each in part.equations}
    again = rd.from_energies(shown["K"], shown["P"], model.q, model.qd, simplify=False)
    q, qd, qdd = state(1, 2)
    expected = rd.InverseDynamics(mechanism)(q, qd, qdd)
    assert np.allclose(again.function(model.parameters)(q, qd, qdd), expected, rtol=1e-11)
    at = {
        **model.parameters,
        **dict(zip((*model.q, *model.qd, *model.qdd), [*q, *qd, *qdd], strict=True)),
    }
    for i, name in enumerate(mechanism.joint_names):
        whole = shown[f"d/dt dL/d{name}_d"] - shown[f"dL/d{name}"]
        assert float(whole.subs(at)) == pytest.approx(expected[i], rel=1e-11)


@pytest.mark.parametrize("name", ["energies.yaml", "ENERGIES.YML"])
def test_energies_of_a_file_give_the_cartesian_pages_result(tmp_path, capsys, name):
    path = energies(
        tmp_path,
        coordinates=["q1", "q2", "q3"],
        kinetic="m1*q1_d**2/2 + m2*q2_d**2/2 + m3*q3_d**2/2",
        potential="m2*g*(beta2 + q2) + m3*g*(beta3 + q2)",
        symbols={"m1": 1.5},
    ).rename(tmp_path / name)
    assert main(["derive", str(path), "--formulation", "energies", "--steps"]) == 0
    text = capsys.readouterr().out
    for words_ in ("dL/dq2 = -g*(m2 + m3)", "d/dt dL/dq3_d = m3*q3_dd", "tau[q1] = m1*q1_dd",
                   "m1 = 1.5"):  # fmt: skip
        assert words_ in text


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"kinetic": "__import__('os').system('true')"}, "expression"),
        ({"kinetic": "q1_d.__class__"}, "expression"),
        ({"potential": "[1, 2]"}, "expression"),
        ({"potential": "q1**(10**9)"}, "exponent"),
        ({"kinetic": "q1_d"}, "quadratic"),
        ({"potential": True}, "expression"),
        ({"coordinates": []}, "coordinates"),
        ({"coordinates": ["q1", "q1"]}, "coordinates"),
        ({"coordinates": ["sin"]}, "coordinates"),
        ({"mass": 1}, "mass"),
        ({"symbols": {"m1": "x"}}, "finite number"),
    ],
)
def test_energies_that_are_none_are_refused_in_one_line(tmp_path, capsys, entries, said):
    assert main(["derive", str(energies(tmp_path, **entries))]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_energies_have_no_other_formulation(tmp_path, capsys):
    assert main(["derive", str(energies(tmp_path)), "--formulation", "murphy"]) == 1
    assert "contains energies, not a robot" in capsys.readouterr().err


@pytest.mark.parametrize("file", [TEXTBOOK / "scara.yaml", CONFIG / "three_axis.yaml"])
def test_kinematics_in_symbols_are_those_in_numbers(file):
    mechanism = rd.load(file)
    dynamics = rd.InverseDynamics(mechanism)
    link = mechanism.links[-1].name
    found = kinematics(mechanism, link)
    q, _, _ = state(3, len(found.q))
    at = {**found.parameters, **dict(zip(found.q, q, strict=True))}
    for symbols, numbers in (
        (found.pose, dynamics.pose(q, link)),
        (found.jacobian, dynamics.jacobian(q, link)),
    ):
        assert np.allclose(np.array(symbols.subs(at), dtype=float), numbers, atol=1e-12)
    with pytest.raises(rd.RobotDynamicsError, match="prismatic joints"):
        found.inverse()


def test_the_cartesian_robots_kinematics_are_its_pages():
    mechanism = rd.load(CONFIG / "cartesian.yaml")
    found = kinematics(mechanism, mechanism.links[-1].name)
    d1, d2, d3 = found.q
    x, y, z = sympy.symbols("x y z", real=True)
    assert found.inverse() == {d1: z, d2: y, d3: x}
    assert list(found.d) == [d3, d2, d1]
    # the page's n, s, a with the signs that it lost
    assert [list(v) for v in (found.n, found.s, found.a)] == [[0, 0, -1], [0, 1, 0], [1, 0, 0]]


def test_a_closed_robots_steps_are_its_numbers():
    """J_R and T in the letters of K."""
    model = rd.derive(rd.load(CONFIG / "rrr.yaml"))
    document = model.document(steps=True)
    text = document.text()
    for title in (
        "Closures",
        "Jacobian with respect to q_r",
        "T: all joint rates",
    ):
        assert title in text
    shown = {each.name.text: each.value for part in document.sections for each in part.equations}
    rng = np.random.default_rng(0)
    K = rng.uniform(-1, 1, (6, 3))
    at = {sympy.Symbol(f"K_{i + 1}_{j + 1}", real=True): K[i, j] for i, j in np.ndindex(6, 3)}
    delta = next(symbol for symbol, _ in model.intermediates if str(symbol) == "Delta")
    at[delta] = float(shown["Delta"].subs(at))
    J_R = np.array(
        [[float(shown[f"J_R[{i}][{j}]"].subs(at)) for j in (1, 2, 3)] for i in (1, 2, 3)]
    )
    assert np.allclose(J_R, np.linalg.inv(K[:3]))
    letters = np.ndenumerate(J_R)
    at |= {sympy.Symbol(f"J_R_{i + 1}_{j + 1}", real=True): value for (i, j), value in letters}
    T = [[float(shown[f"T[{i}][{j}]"].subs(at)) for j in (1, 2, 3)] for i in (4, 5, 6)]
    assert np.allclose(T, K[3:] @ J_R)
    # the paper's letters, and those in words, are set as mathematics
    written = document.latex()
    assert r"\mathit" not in written
    assert r"\paragraph{Jacobian with respect to $q_{r}$}" in written
    assert "$q_{r}$ = (qa1" in written
    assert r"v = ($\dot{x}$, $\dot{y}$, $\dot{\theta}_{z}$)" in written


def test_intermediates_have_letters_with_indices_and_superscripts():
    model = rd.derive(rd.load(CONFIG / "three_axis.yaml"), "gibbs_appell", intermediates=True)
    assert any("_r_" in str(symbol) for symbol, _ in model.intermediates)
    written = model.document(steps=True).latex()
    assert r"\mathit" not in written
    assert r"a^{r}_{y3}" in written
    assert r"\mu^{r(2)}_{z3}" in written
    names = Names()
    a, b = sympy.symbols("D2_a_r_y3 b2_g_F_xz1_", real=True)
    # TeX refuses a second superscript beside the first
    assert names.latex(a**2) == r"\bigl(a^{r(2)}_{y3}\bigr)^{2}"
    assert names.latex(b) == r"F^{g[2]'}_{xz1}"
    assert "<msubsup><mi>a</mi><mi>y3</mi><mi>r(2)</mi></msubsup>" in names.mathml(a)
    # a description's own words stay words, and a parameter's index stays below
    assert names.symbol("shoulder_pan_joint") == r"\mathit{shoulder\_pan\_joint}"
    assert names.symbol("I_xxr1") == "I_{xxr1}"
