# SPDX-License-Identifier: Apache-2.0
"""The base parameters: what they say about torques, and that there are as many as in the regrouped
model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import yaml
from robots import CONFIG, example_robots, python_functions, random_dh, random_urdf, relative, state

import robot_dynamics as rd
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.codegen.recorder import record
from robot_dynamics.formulations.options import Options

RIGID = ["inertia", "coriolis", "gravity"]
EXAMPLES = [file for file in example_robots() if file.stem in ("panda",)]


def load_quietly(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.load(source)


def robots(tmp_path):
    yield rd.load(CONFIG / "polar.yaml")
    yield rd.load(CONFIG / "cartesian.yaml")
    for file in EXAMPLES:
        yield load_quietly(file)
    for seed in range(2):
        yield rd.load(random_urdf(seed, joints=6))
        path = tmp_path / f"robot{seed}.yaml"
        path.write_text(yaml.safe_dump(random_dh(seed)))
        yield rd.load(path)


def structural_rank(mechanism):
    """Of the torques' derivatives by the numbers that regrouping leaves."""
    chain = OpenChain(mechanism, Options(rotors="none", terms=RIGID, backend="python"))
    function = chain.function("torques")
    n = len(chain.joint_names)
    program = record(function.equations, (*function.sizes, function.parameters))
    run = python_functions(program)[1]
    rng = np.random.default_rng(1)
    count = 400
    states = rng.uniform(-3, 3, (3 * n, count))
    gravity, numbers = chain.parameters[:3], len(chain.parameters) - 3
    # the torques are linear in the numbers that are left
    columns = [
        [np.broadcast_to(x, count) for x in run(*states, *gravity, *unit)]
        for unit in np.eye(numbers)
    ]
    W = np.array(columns).reshape(numbers, n * count).T
    length = np.linalg.norm(W, axis=0)
    seen = length > 1e-12 * length.max()
    return np.linalg.matrix_rank(W[:, seen] / length[seen], tol=1e-9)


def test_torques_are_the_independent_columns_times_the_base_parameters(tmp_path):
    for mechanism in robots(tmp_path):
        base = rd.base_parameters(mechanism)
        dynamics = rd.InverseDynamics(mechanism, backend="python")
        at = state(7, len(dynamics.joint_names))
        Y = dynamics.regressor(*at)[:, base.independent]
        assert relative(Y @ (base.matrix @ dynamics.parameters), dynamics(*at)) < 1e-8
        assert base.parameter_names == dynamics.parameter_names
        assert np.array_equal(base.matrix[:, base.independent], np.eye(len(base)))


def test_there_are_as_many_as_regrouping_leaves(tmp_path):
    for mechanism in robots(tmp_path):
        base = rd.base_parameters(mechanism, rotors="none", friction=False)
        assert len(base) == structural_rank(mechanism), mechanism.name


def test_a_pendulums_mass_is_told_by_its_moments_alone():
    text = ('<robot name="r"><link name="a"/>{links}</robot>').format(
        links="".join(
            f'<link name="l{i}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="1" '
            f'iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j{i}" '
            f'type="continuous"><origin xyz="{0.4 * i} 0 0"/><parent link="{p}"/><child '
            f'link="l{i}"/><axis xyz="0 1 0"/></joint>'
            for i, p in ((0, "a"), (1, "l0"))
        )
    )
    base = rd.base_parameters(rd.load(text), friction=False)
    # turning about y, the second link's mass is 0.4 m along the first
    assert base.names == (
        "l0.mx + 0.4*l1.mass", "l0.mz", "l0.Iyy + 0.16*l1.mass", "l1.mx", "l1.mz", "l1.Iyy",
    )  # fmt: skip
    assert "l0.mass" in base.unidentifiable
    assert "l1.mass" not in base.unidentifiable


def test_gears_and_friction_are_told_apart_where_they_can_be():
    base = rd.base_parameters(rd.load(CONFIG / "three_axis.yaml"), rotors="reflected")
    names = " ".join(base.names)
    assert all(f"{q}.viscous" in names and f"{q}.coulomb" in names for q in ("q1", "q2", "q3"))
    # the first joint's rotor turns as its link does
    assert any("bar1.Izz" in name and "6.25*q1.inertia" in name for name in base.names)


def test_a_closed_chain_has_base_parameters_too():
    mechanism = rd.load(CONFIG / "five_bar.yaml")
    base = rd.base_parameters(mechanism)
    dynamics = rd.InverseDynamics(mechanism)
    home = np.array([mechanism.home[name] for name in dynamics.joint_names])
    at = home + 0.01, np.array([0.4, -0.2]), np.array([1.0, 2.0])
    found = dynamics.regressor(*at)[:, base.independent] @ base.matrix @ dynamics.parameters
    assert relative(found, dynamics(*at)) < 1e-5


LAWS = {
    "plain": {"coulomb": 0.7},
    "offset": {"coulomb": 0.7, "offset": 0.5},
    "two directions": {"coulomb": 0.7, "coulomb_negative": 0.4},
    "both": {"viscous": 0.2, "coulomb": 0.7, "coulomb_negative": 0.4, "offset": 0.5},
    "all": {
        "coulomb": 0.7, "coulomb_negative": 0.4, "offset": 0.5,
        "stribeck": {"torque": 0.3, "rate": 0.8},
    },
}  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_they_give_the_friction_of_joints_at_rest_and_in_motion(tmp_path, law, smoothing):
    robot = yaml.safe_load((CONFIG / "polar.yaml").read_text())
    for link in robot["links"]:
        link["friction"] = LAWS[law]
    path = tmp_path / "polar.yaml"
    path.write_text(yaml.safe_dump(robot))
    mechanism = rd.load(path)
    base = rd.base_parameters(mechanism)
    dynamics = rd.InverseDynamics(mechanism, friction_smoothing=smoothing)
    n = len(dynamics.joint_names)
    q, qd, qdd = state(3, n)
    for rates in ([0.0, 0.0], [0.0, qd[1]], [0.3, -0.2], [-0.1, 0.0], qd):
        Y = dynamics.regressor(q, rates, qdd)
        expected = dynamics(q, rates, qdd)
        found = Y[:, base.independent] @ base.matrix @ dynamics.parameters
        assert relative(found, expected) < 1e-8
    # where nothing rests, an offset is two Coulomb torques
    fewer = 1 if {"offset", "coulomb_negative"} <= LAWS[law].keys() else 0
    assert len(base) - len(rd.base_parameters(mechanism, rest=False)) == n * fewer


@pytest.mark.parametrize("seed", range(3))
def test_the_states_that_were_drawn_do_not_matter(seed):
    mechanism = rd.load(random_urdf(1, joints=5))
    first, other = rd.base_parameters(mechanism), rd.base_parameters(mechanism, seed=seed + 1)
    assert first.independent == other.independent
    assert np.allclose(first.matrix, other.matrix, atol=1e-7)
