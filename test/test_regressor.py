# SPDX-License-Identifier: Apache-2.0
"""The regressor against Pinocchio's, and by its definition: tau = Y π for every robot."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    example_robots_that_move,
    pin,
    random_dh,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.codegen import native
from robot_dynamics.formulations.equations import TERMS
from robot_dynamics.mechanism import Armature, Friction, Inertial
from robot_dynamics.mechanism.dynamic_parameters import standard_parameters, with_parameters
from robot_dynamics.mechanism.transform import with_joints

EXAMPLES = example_robots_that_move()
CLOSED = [
    *itertools.product(
        ("rrr", "five_bar"),
        (TERMS, ("inertia",), ("coriolis", "friction"), ("gravity",), ("inertia", "rotors")),
    ),
    ("delta", TERMS),
]


def backend(first):
    """One of a kind is compiled; the others run the same program in Python, built sooner."""
    return "auto" if first else "python"


def load_quietly(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.load(source)


def with_rotors(tmp_path, seed, symmetric=False):
    robot = random_dh(seed, joints=5, rotors=True)
    rng = np.random.default_rng(seed)
    for i, link in enumerate(robot["links"]):
        viscous, coulomb = rng.uniform(0, 1, 2).tolist()
        link["friction"] = {"viscous": viscous, "coulomb": coulomb}
        if i % 2:
            link["friction"] |= {"offset": 0.2, "coulomb_negative": 0.7}
            link["friction"] |= {"stribeck": {"torque": 0.4, "rate": 0.9 + i}}
        if "rotor" in link and symmetric:
            link["rotor"]["center_of_mass"] = [0.0, 0.0, 0.01]
            link["rotor"]["inertia"] = {"ixx": 1e-3, "iyy": 1e-3, "izz": 1.5e-3}
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot))
    return rd.load(path)


def pinocchio_regressor(model, mechanism, q, qd, qdd):
    """(n, 10 links) in the order of the mechanism's joints; followers hand theirs to masters."""
    S, s = mechanism.coordinates()
    names = mechanism.tree_names
    states = [np.zeros(model.nv) for _ in range(3)]
    states[0] = pin.neutral(model)
    joints = [model.joints[model.getJointId(name)] for name in names]
    for joint, at in zip(joints, zip(S @ q + s, S @ qd, S @ qdd, strict=True), strict=True):
        if joint.nq == 2:
            states[0][joint.idx_q : joint.idx_q + 2] = np.cos(at[0]), np.sin(at[0])
        else:
            states[0][joint.idx_q] = at[0]
        states[1][joint.idx_v], states[2][joint.idx_v] = at[1:]
    Y = pin.computeJointTorqueRegressor(model, model.createData(), *states)
    rows = [joint.idx_v for joint in joints]
    columns = [10 * (model.getJointId(name) - 1) + k for name in names for k in range(10)]
    return S.T @ Y[np.ix_(rows, columns)]


@pytest.mark.parametrize("file", EXAMPLES[::11], ids=lambda file: file.stem)
def test_every_example_robot_has_pinocchios_regressor(file):
    mechanism = load_quietly(file)
    model = pin.buildModelFromUrdf(str(file))
    dynamics = rd.InverseDynamics(mechanism, terms=["inertia", "coriolis", "gravity"])
    q, qd, qdd = state(1, len(mechanism.joint_names))
    Y = dynamics.regressor(q, qd, qdd)
    bodies = Y[:, : 10 * len(mechanism.moving)]  # behind them are the armatures
    expected = pinocchio_regressor(model, mechanism, q, qd, qdd)
    assert relative(bodies, expected) < RELATIVE_TO_PINOCCHIO
    assert relative(Y @ dynamics.parameters, dynamics(q, qd, qdd)) < RELATIVE_TO_SISTERS


@pytest.mark.parametrize("seed", range(4))
def test_parameters_are_pinocchios(seed):
    text = random_urdf(seed)
    model = pin.buildModelFromXML(text)
    dynamics = rd.InverseDynamics(rd.load(text))
    q, qd, qdd = state(seed, len(dynamics.joint_names))
    links = list(dynamics.mechanism.moving)
    found = dict(zip(dynamics.parameter_names, dynamics.parameters, strict=True))
    for link in links:
        expected = model.inertias[model.getJointId(link.joint.name)].toDynamicParameters()
        own = [value for name, value in found.items() if name.startswith(f"{link.name}.")]
        assert np.allclose(own, expected, rtol=1e-12, atol=1e-14)
    expected = pinocchio_regressor(model, dynamics.mechanism, q, qd, qdd)
    Y = dynamics.regressor(q, qd, qdd)[:, : 10 * len(links)]
    assert relative(Y, expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_torques_are_the_regressor_times_the_parameters(tmp_path, rotors, symmetric):
    for seed in range(4):
        mechanism = with_rotors(tmp_path, seed, symmetric)
        options = {"rotors": rotors, "friction_smoothing": 0.1, "backend": backend(seed == 0)}
        dynamics = rd.InverseDynamics(mechanism, "murphy", **options)
        q, qd, qdd = state(seed, len(dynamics.joint_names))
        tau = dynamics(q, qd, qdd)
        assert relative(dynamics.regressor(q, qd, qdd) @ dynamics.parameters, tau) < 1e-12
        # other parameters are another robot, and the columns do not know which
        rng = np.random.default_rng(seed)
        values = dynamics.parameters * rng.uniform(0.5, 1.5, len(dynamics.parameters))
        other = with_parameters(mechanism, values, rotors)
        there = rd.InverseDynamics(other, **options)
        assert relative(there.parameters, values) < 1e-12
        assert relative(dynamics.regressor(q, qd, qdd) @ values, there(q, qd, qdd)) < 1e-12


@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
def test_each_choice_of_terms_has_its_regressor(tmp_path, rotors):
    mechanism = with_rotors(tmp_path, 2)
    q, qd, qdd = state(2, len(mechanism.joint_names))
    for count in range(len(TERMS) + 1):
        for terms in itertools.combinations(TERMS, count):
            dynamics = rd.InverseDynamics(mechanism, rotors=rotors, terms=terms, backend="python")
            tau = dynamics(q, qd, qdd)
            mixed = len({term in terms for term in ("inertia", "coriolis", "rotors")}) == 2
            if rotors == "reflected" and mixed and {"rotors", "gravity"} & set(terms):
                # a link's mass has its reflected rotors' in it
                with pytest.raises(rd.RobotDynamicsError, match="reflected"):
                    dynamics.regressor(q, qd, qdd)
                continue
            Y = dynamics.regressor(q, qd, qdd)
            assert Y.shape == (len(tau), len(dynamics.parameter_names))
            assert np.allclose(Y @ dynamics.parameters, tau, rtol=1e-11, atol=1e-11), terms


def test_a_geared_rotor_has_one_parameter_where_nothing_else_is_known():
    mechanism = load_quietly(CONFIG.parent / "urdf" / "six_axis.urdf")
    full, names = standard_parameters(mechanism), [rotor.name for rotor in mechanism.rotors]
    assert [name for name in full if name.endswith(".inertia")] == [f"{n}.inertia" for n in names]


def test_an_armature_is_a_parameter(tmp_path):
    mechanism = with_rotors(tmp_path, 1)
    first, second = mechanism.joint_names[:2]
    arms = (Armature(((first, 2.0), (second, -3.0)), 0.7), Armature(((first, 1.0),), 0.2))
    mechanism = replace(mechanism, armatures=arms)
    dynamics = rd.InverseDynamics(mechanism)
    assert dynamics.parameter_names[-2:] == (f"{first}.armature", f"{first}.armature'")
    q, qd, qdd = state(1, len(dynamics.joint_names))
    expected = dynamics(q, qd, qdd)
    assert relative(dynamics.regressor(q, qd, qdd) @ dynamics.parameters, expected) < 1e-12
    values = dict(zip(dynamics.parameter_names, dynamics.parameters, strict=True))
    other = with_parameters(mechanism, {f"{first}.armature": 2.0})
    values[f"{first}.armature"] = 2.0
    expected = rd.InverseDynamics(other)(q, qd, qdd)
    found = dynamics.regressor(q, qd, qdd) @ np.array(list(values.values()))
    assert relative(found, expected) < 1e-12


@pytest.mark.parametrize(("name", "terms"), CLOSED)
def test_a_closed_chains_regressor_is_projected(name, terms):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism, terms=terms, backend=backend(terms == TERMS))
    home = np.array([mechanism.home[joint] for joint in dynamics.joint_names])
    rng = np.random.default_rng(0)
    q, qd, qdd = home + 0.02 * rng.normal(size=(3, len(home))), *rng.normal(size=(2, 3, len(home)))
    tau, Y = dynamics(q, qd, qdd), dynamics.regressor(q, qd, qdd)
    assert np.allclose(Y @ dynamics.parameters, tau, rtol=1e-10, atol=1e-10 * abs(tau).max())
    for row in range(3):
        assert relative(dynamics.regressor(q[row], qd[row], qdd[row]), Y[row]) < 1e-9


@pytest.mark.parametrize("terms", [("gravity", "friction"), ("inertia", "friction")])
def test_dry_friction_of_a_closed_chain_turns_round_by_the_whole_motion(terms):
    law = Friction(0.1, 0.5, presliding=0.05)
    mechanism = with_joints(
        rd.load(CONFIG / "five_bar.yaml"), lambda j: replace(j, friction=law) if j.moves else j
    )
    dynamics = rd.InverseDynamics(mechanism, terms=terms, backend="python")
    q, qd, qdd = dynamics.home, np.array([0.3, -0.2]), np.array([2.0, -1.0])
    found = dynamics.regressor(q, qd, qdd) @ dynamics.parameters
    assert relative(found, dynamics(q, qd, qdd)) < 1e-10


def test_a_closed_chain_with_sensors_has_a_regressor():
    mechanism = rd.load(CONFIG / "rrr.yaml")
    dynamics = rd.InverseDynamics(mechanism, sensed=True)
    home = np.array([mechanism.home[joint] for joint in dynamics.joint_names])
    T = dynamics.closed.forward_kinematics(home).T[: len(home)]
    qd, qdd = T @ [0.3, -0.2, 0.5], T @ [1.0, 2.0, -1.0]
    found = dynamics.regressor(home, qd, qdd) @ dynamics.parameters
    assert relative(found, dynamics(home, qd, qdd)) < 1e-10


def test_batches_threads_and_backends_have_one_regressor(tmp_path):
    mechanism = with_rotors(tmp_path, 3)
    dynamics = rd.InverseDynamics(mechanism, threads=3)
    q, qd, qdd = (np.stack(x) for x in zip(*(state(k, 4) for k in range(2000)), strict=True))
    Y = dynamics.regressor(q, qd, qdd)
    single = np.stack(
        [dynamics.regressor(*each) for each in zip(q[:40], qd[:40], qdd[:40], strict=True)]
    )
    assert relative(Y[:40], single) < 1e-13
    python = rd.InverseDynamics(mechanism, backend="python")
    assert relative(python.regressor(q[-40:], qd[-40:], qdd[-40:]), Y[-40:]) < 1e-13
    assert relative(dynamics.regressor(q.reshape(2, 1000, -1)[:, :3], qd[:3], qdd[0])[1, 2],
                    dynamics.regressor(q[1002], qd[2], qdd[0])) < 1e-13  # fmt: skip
    with pytest.raises(rd.RobotDynamicsError, match="qd: found shape"):
        dynamics.regressor(q[0], qd[0, :2], qdd[0])


def test_of_batches_alone_nothing_is_compiled_for_single_states(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOT_DYNAMICS_CACHE", str(tmp_path / "kernels"))
    built, build = [], native._library
    monkeypatch.setattr(native, "_library", lambda *of: (built.append(of[1]), build(*of))[1])
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"))
    states = np.random.default_rng(0).uniform(-1, 1, (3, 4, 2))
    built.clear()
    Y = dynamics.regressor(*states)
    dynamics.gravity_vector = [1.0, 2.0, 3.0]
    tilted = dynamics.regressor(*states)
    assert built == ["batch"]
    assert relative(dynamics.regressor(*states[:, 2]), tilted[2]) < 1e-13
    assert built == ["batch", "single"]
    assert relative(tilted, Y) > 1e-3


def test_gravity_payload_and_friction_are_seen(tmp_path):
    dynamics = rd.InverseDynamics(with_rotors(tmp_path, 4))
    q, qd, qdd = state(4, len(dynamics.joint_names))
    dynamics.regressor(q, qd, qdd)
    dynamics.gravity_vector = [1.0, 2.0, 3.0]
    dynamics.set_payload("link4", Inertial(2.0, np.array([0.1, 0.2, 0.3]), np.eye(3) * 0.01))
    for law in (
        {},
        {"offset": 0.5},
        {"coulomb_negative": 2.0, "stribeck_torque": 0.3, "stribeck_rate": 2.0},
        {"coulomb_negative": 2.0, "stribeck_torque": 0.3, "stribeck_rate": 0.7},
    ):
        dynamics.set_friction(dynamics.joint_names[0], 3.0, 4.0, **law)
        expected = dynamics(q, qd, qdd)
        assert relative(dynamics.regressor(q, qd, qdd) @ dynamics.parameters, expected) < 1e-12


def test_parameters_given_back_change_nothing(tmp_path):
    for seed in range(4):
        mechanism = with_rotors(tmp_path, seed)
        for rotors in ("full", "reflected", "none"):
            same = with_parameters(mechanism, standard_parameters(mechanism, rotors), rotors)
            for before, after in zip(
                (*mechanism.links, *mechanism.rotors), (*same.links, *same.rotors), strict=True
            ):
                assert before.inertial is after.inertial


def test_a_changed_body_is_its_moving_links_as_a_whole():
    mechanism = rd.load(random_urdf(0))
    last = mechanism.moving[-1]
    names = list(standard_parameters(mechanism))
    changed = with_parameters(mechanism, {f"{last.name}.mass": 9.0})
    assert standard_parameters(changed)[f"{last.name}.mass"] == pytest.approx(9.0, rel=1e-14)
    assert list(standard_parameters(changed)) == names
    fixed = [
        link
        for link in changed.links
        if not link.joint.moves and last.name in changed.path(link.name)
    ]
    assert all(link.inertial.is_nothing for link in fixed)
    assert changed.link(last.name).inertial.mass == pytest.approx(9.0, rel=1e-14)


def test_impossible_parameters_are_refused():
    mechanism = rd.load(random_urdf(0))
    link = mechanism.moving[0].name
    for values, message in (
        ({"nobody.mass": 1.0}, "nobody"),
        ({f"{link}.mass": float("nan")}, "finite"),
        ([1.0, 2.0], "shape"),
        ({f"{link}.mass": 0.0}, "first moment"),
    ):
        with pytest.raises(rd.RobotDynamicsError, match=message):
            with_parameters(mechanism, values)
