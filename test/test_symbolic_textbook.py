# SPDX-License-Identifier: Apache-2.0
"""Textbook robots have textbook equations: short, in files to look at, and equal to the numbers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import sympy
import yaml
from robots import CONFIG, state

import robot_dynamics as rd
from robot_dynamics.formulations import FORMULATIONS

HERE = Path(__file__).parent
ROBOTS = {
    # name: the longest that a torque may be, characters
    "polar": 70,
    "cartesian": 30,
    "planar2": 200,
    "planar3": 560,
    "scara": 330,
    "elbow": 430,
    "stanford": 380,
}
SAME = 1e-12


def robot(name: str):
    shipped = CONFIG / f"{name}.yaml"
    return rd.load(shipped if shipped.exists() else HERE / "data" / "textbook" / f"{name}.yaml")


@pytest.mark.parametrize("name", ROBOTS)
def test_equations_are_those_in_the_file_and_those_of_the_numbers(name):
    """UPDATE_GOLDEN=1 in the environment writes the files anew: look at the difference."""
    mechanism = robot(name)
    model = rd.derive(mechanism, "newton_euler")
    text = model.text() + "\n"
    file = HERE / "golden" / f"derive_{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
    longest = max(len(line.split(" = ")[1]) for line in text.splitlines() if "tau[" in line)
    assert longest <= ROBOTS[name]
    dynamics = rd.InverseDynamics(mechanism)
    compute = model.function()
    for seed in range(3):
        q, qd, qdd = state(seed, len(model.q))
        expected = dynamics(q, qd, qdd)
        assert np.abs(compute(q, qd, qdd) - expected).max() <= SAME * max(1, abs(expected).max())
        at = {**model.parameters, **dict(zip((*model.q, *model.qd), (*q, *qd), strict=True))}
        numbers = sympy.lambdify(list(at), [model.D, model.C, model.g], cse=True)
        D, C, g = numbers(*map(float, at.values()))
        assert np.abs(D - dynamics.mass_matrix(q)).max() <= SAME * np.abs(D).max()
        scale = max(1, np.abs(C).max())
        assert np.abs(C - dynamics.coriolis_matrix(q, qd)).max() <= SAME * scale
        assert np.abs(np.ravel(g) - dynamics.gravity(q)).max() <= SAME * max(1, np.abs(g).max())


@pytest.mark.parametrize("name", ["planar2", "stanford"])
def test_every_formulation_gives_the_same_letters(name):
    models = [rd.derive(robot(name), formulation) for formulation in FORMULATIONS]
    for model in models[1:]:
        assert model.torques == models[0].torques
        assert model.D == models[0].D


def test_the_descriptions_own_symbols_are_the_equations():
    model = rd.derive(robot("planar2"), "newton_euler")
    names = "m1 m2 a1 l_c1 l_c2 I1 I2 g"
    m1, m2, a1, lc1, lc2, I1, I2, g = sympy.symbols(names, real=True)
    q1, q2 = model.q
    qd1, qd2 = model.qd
    d12 = I2 + m2 * (lc2**2 + a1 * lc2 * sympy.cos(q2))
    d11 = I1 + m1 * lc1**2 + I2 + m2 * (a1**2 + lc2**2 + 2 * a1 * lc2 * sympy.cos(q2))
    assert sympy.expand(
        model.D - sympy.Matrix([[d11, d12], [d12, I2 + m2 * lc2**2]])
    ).is_zero_matrix
    h = -m2 * a1 * lc2 * sympy.sin(q2)
    C = sympy.Matrix([[h * qd2, h * (qd1 + qd2)], [-h * qd1, 0]])
    assert sympy.expand(model.C - C).is_zero_matrix
    g2 = m2 * lc2 * g * sympy.cos(q1 + q2)
    g1 = (m1 * lc1 + m2 * a1) * g * sympy.cos(q1) + g2
    assert sympy.expand(model.g - sympy.Matrix([g1, g2])).is_zero_matrix
    assert model.parameters[lc2] == 0.15


def written(tmp_path, **link):
    path = tmp_path / "robot.yaml"
    base = {"name": "link1", "joint": {"name": "q1", "type": "revolute"}, "mass": 1.0}
    whole = {key: link.pop(key) for key in ("symbols", "gravity") if key in link}
    second = {"name": "link2", "joint": {"name": "q2", "type": "revolute"}, "mass": 1.0,
              "center_of_mass": [0.1, 0.2, 0.3]}  # fmt: skip
    robot = {**whole, "links": [{**base, **link}, second]}
    path.write_text(yaml.safe_dump(robot))
    return path


@pytest.mark.parametrize("alpha", [1.5708, 1.57, 1.5707963, -1.571, 3.1416, 0.7854])
def test_rounded_angles_are_taken_as_what_they_are_and_it_is_said(tmp_path, alpha):
    model = rd.derive(rd.load(written(tmp_path, alpha=alpha)), "newton_euler")
    assert f"alpha {alpha} rad is taken as" in model.notes[0]
    assert "note: joint 'q1'" in model.text()
    assert not any("alpha" in str(x) for x in model.torques.free_symbols)
    exact = rd.load(written(tmp_path, alpha=round(alpha / (np.pi / 12)) * np.pi / 12))
    q, qd, qdd = state(1, 2)
    expected = rd.InverseDynamics(exact)(q, qd, qdd)
    assert np.abs(model.function()(q, qd, qdd) - expected).max() < 1e-12


@pytest.mark.parametrize("alpha", [1.2, 1.6, 1.56, 0.001, 1.5712, 0.78])
def test_other_angles_stay_what_they_are(tmp_path, alpha):
    mechanism = rd.load(written(tmp_path, alpha=alpha))
    model = rd.derive(mechanism, "newton_euler")
    assert model.notes == ()
    assert model.parameters[sympy.Symbol("alpha1", real=True)] == pytest.approx(alpha)
    q, qd, qdd = state(1, 2)
    expected = rd.InverseDynamics(mechanism)(q, qd, qdd)
    assert np.abs(model.function()(q, qd, qdd) - expected).max() < 1e-12


@pytest.mark.parametrize("g", [9.81, 0.3, -0.3])
def test_gravity_has_the_letter_of_its_expression_whatever_its_sign_and_size(tmp_path, g):
    gravity, letter = [0, "g/2", 0], sympy.Symbol("g", real=True)
    model = rd.derive(rd.load(written(tmp_path, symbols={"g": g}, gravity=gravity)))
    assert model.parameters[letter] == g
    q1, q2 = sympy.symbols("q1 q2", real=True)
    found = float(model.g[1].subs({**model.parameters, q1: 0.3, q2: 0.4}))
    assert found == pytest.approx(-g / 2 * (0.1 * np.cos(0.7) - 0.2 * np.sin(0.7)))


@pytest.mark.parametrize(
    ("symbols", "mass", "words"),
    [
        ({"m1": 2.0}, "m1*m7", "m7"),
        ({"m1": 2.0}, "__import__('os')*m1", "expression"),
        ({"m1": 2.0}, "m1.real", "expression"),
        ({"m1": 2.0}, "m1**999999999", "exponent"),
        ({"m1": 2.0}, "m1/0", "zero"),
        ({"m 1": 2.0}, 1.0, "letters, digits and _"),
        ({"m1": "x"}, 1.0, "finite number"),
        ({}, "m1", "finite number"),
    ],
)
def test_expressions_that_are_none_are_refused(tmp_path, symbols, mass, words):
    with pytest.raises(rd.RobotDynamicsError, match=words):
        rd.load(written(tmp_path, mass=mass, symbols=symbols))


def test_a_parameter_and_a_joint_of_one_name_stay_two(tmp_path):
    path = tmp_path / "robot.yaml"
    turning = {"name": "q1", "type": "revolute"}
    first = {"name": "link1", "joint": turning, "alpha": "pi/2", "mass": 1.0}
    sliding = {"name": "d2", "type": "prismatic"}
    second = {"name": "link2", "joint": sliding, "d": 0.5, "mass": 1.0}
    path.write_text(yaml.safe_dump({"links": [first, second]}))
    mechanism = rd.load(path)
    model = rd.derive(mechanism)
    q, qd, qdd = state(3, 2)
    assert np.allclose(
        model.function()(q, qd, qdd), rd.InverseDynamics(mechanism)(q, qd, qdd), rtol=1e-12
    )


def test_every_step_of_the_polar_example_is_shown_zeros_said():
    text = rd.derive(robot("polar")).document(steps=True).text() + "\n"
    file = HERE / "golden" / "derive_polar_steps.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
    for number in range(1, 11):
        assert f"L-E {number}: " in text
    said = "U_12 = 0", "U_112 = U_121 = U_122 = U_222 = 0", "1A_2 = ", "g_1 = g_2 = 0"
    assert all(words in text for words in said)


@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
def test_two_bodies_on_one_link_and_rotors_of_each_kind(tmp_path, rotors):
    """A tool on a fixed joint, and a motor on the first link: their torques add up."""
    path = tmp_path / "robot.yaml"
    planar = yaml.safe_load((HERE / "data" / "textbook" / "planar2.yaml").read_text())
    planar["links"][1]["rotor"] = {
        "mount": "link1", "origin": {"xyz": [-0.1, 0, 0]}, "gear_ratio": 20.0, "mass": 0.4,
        "inertia": {"ixx": 1e-3, "iyy": 1e-3, "izz": 2e-3},
    }  # fmt: skip
    planar["links"].append(
        {"name": "tool", "joint": {"type": "fixed"}, "a": 0.2, "mass": 0.7,
         "center_of_mass": [0, 0.05, 0], "inertia": {"ixx": 0.01, "iyy": 0.01, "izz": 0.01}}
    )  # fmt: skip
    path.write_text(yaml.safe_dump(planar))
    mechanism = rd.load(path)
    q, qd, qdd = state(5, 2)
    expected = rd.InverseDynamics(mechanism, rotors=rotors)(q, qd, qdd)
    book = rd.derive(mechanism, rotors=rotors)
    for model in (book, rd.derive(mechanism, "murphy", rotors=rotors)):
        assert np.abs(model.function()(q, qd, qdd) - expected).max() < 1e-12
    if rotors != "none":
        return
    # without rotors the book's matrices are the model's
    at = {**book.parameters, **dict(zip((*book.q, *book.qd), (*q, *qd), strict=True))}
    m2, tool = (x for x in book.parameters if str(x) in ("m2", "m3"))
    assert book.steps.J[1][3, 3] == m2 + tool
    for shown, matrix in ((book.steps.D, book.D), (book.steps.C[:, None], book.g)):
        difference = sympy.Matrix(shown) - matrix
        assert np.abs(np.array(difference.subs(at), dtype=float)).max() < 1e-12
