# SPDX-License-Identifier: Apache-2.0
"""Every formulation against Pinocchio on random robots, and against the other formulations."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    dh_to_pinocchio,
    example_robots,
    pin,
    pinocchio_torques,
    random_dh,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import Equations

EXAMPLES = example_robots()


def load_quietly(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.load(source)


def test_the_examples_are_all_there():
    if not EXAMPLES:
        pytest.skip("example-robot-data is not installed")
    assert len(EXAMPLES) >= 65, "example-robot-data is missing or has moved"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_robot_has_pinocchios_torques(file):
    mechanism = load_quietly(file)
    if not mechanism.joint_names:
        with pytest.raises(rd.InputError, match="no joint that moves"):
            rd.InverseDynamics(mechanism)
        return
    model = pin.buildModelFromUrdf(str(file))
    # mimic joints are independent in this Pinocchio model: they are geared by hand
    S, s = mechanism.coordinates()
    q, qd, qdd = state(1, len(mechanism.joint_names))
    tree = mechanism.tree_names
    tau_tree = pinocchio_torques(model, tree, S @ q + s, S @ qd, S @ qdd)
    tau = rd.InverseDynamics(mechanism, terms=["inertia", "coriolis", "gravity"])(q, qd, qdd)
    assert relative(tau, S.T @ tau_tree) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_a_random_urdf_tree_has_pinocchios_torques(name, seed):
    text = random_urdf(seed, joints=8 if name != "lagrange_euler" else 6)
    mechanism = rd.load(text)
    model = pin.buildModelFromXML(text)
    q, qd, qdd = state(seed, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd)
    tau = Equations.of(mechanism, name).torques(q, qd, qdd)
    assert relative(tau, expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("seed", range(4))
def test_a_random_dh_robot_has_pinocchios_torques(tmp_path, name, convention, seed):
    robot = random_dh(seed, convention=convention)
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot))
    mechanism = rd.load(path)
    model, _ = dh_to_pinocchio(robot)
    q, qd, qdd = state(seed, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd)
    tau = Equations.of(mechanism, name).torques(q, qd, qdd)
    assert relative(tau, expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("rotors", [False, True], ids=["bare", "rotors"])
def test_the_formulations_agree_to_rounding(tmp_path, seed, rotors):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(random_dh(seed, rotors=rotors)))
    mechanism = rd.load(path)
    q, qd, qdd = state(seed, len(mechanism.joint_names))
    torques = {name: Equations.of(mechanism, name).torques(q, qd, qdd) for name in FORMULATIONS}
    for name, tau in torques.items():
        assert relative(tau, torques["newton_euler"]) < RELATIVE_TO_SISTERS, name


@pytest.mark.parametrize("name", FORMULATIONS)
def test_what_is_recorded_is_what_the_formulation_says(name):
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    q, qd, qdd = state(3, 3)
    direct = Equations.of(mechanism, name).torques(q, qd, qdd)
    assert relative(rd.InverseDynamics(mechanism, name)(q, qd, qdd), direct) < RELATIVE_TO_SISTERS


def test_a_robot_without_joints_has_no_torques():
    mechanism = rd.load('<robot name="stone"><link name="a"/></robot>')
    for name in FORMULATIONS:
        assert Equations.of(mechanism, name).torques(*np.zeros((3, 0))).shape == (0,)


def test_mimic_joints_are_pinocchios_own_mimic_joints():
    text = random_urdf(11, joints=6, branching=False).replace('type="fixed"', 'type="revolute"', 1)
    mechanism = rd.load(text)
    master, follower = mechanism.joint_names[0], mechanism.joint_names[3]
    start = text.index(f'<joint name="{follower}"')
    end = text.index("</joint>", start)
    mimic = f'<mimic joint="{master}" multiplier="-1.7" offset="0.3"/>'
    text = text[:end] + mimic + text[end:]
    mechanism = rd.load(text)
    assert follower not in mechanism.joint_names
    model = pin.buildModelFromXML(text, mimic=True)
    q, qd, qdd = state(5, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd)
    assert relative(rd.InverseDynamics(mechanism)(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


def test_no_mesh_is_opened_and_nothing_is_printed(capfd):
    rd.load(random_urdf(1))  # its visuals name a package that does not exist
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_float_noise_in_right_angles_does_not_reach_the_torques():
    polar = rd.load(CONFIG / "polar.yaml")
    D = rd.InverseDynamics(polar).mass_matrix([0.3, 0.7])
    assert D[0, 1] == 0.0
    assert np.array_equal(D, np.diag(np.diag(D)))
