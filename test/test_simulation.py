# SPDX-License-Identifier: Apache-2.0
"""The simulated robot is the described one: with our torques, MuJoCo reproduces our motion."""

from __future__ import annotations

import dataclasses
import itertools
import sys

import numpy as np
import pytest
import robots
import yaml

import robot_dynamics as rd
from robot_dynamics.mechanism import (
    Attachment,
    Coupling,
    Friction,
    Inertial,
    Joint,
    Link,
    Loop,
    Mechanism,
    Pose,
)

pytest.importorskip("mujoco", reason="MuJoCo is not installed here: pip install mujoco")

from robot_dynamics.errors import BackendError, DescriptionError, InputError
from robot_dynamics.simulation.physics import Simulation
from robot_dynamics.simulation.tracking import TrackedRobot, pd_gains

OPEN = 1e-9
"""Relative, for open trees: rounding times the condition of D, some 1e4"""
GEARED = 1e-7
"""Relative, where equality constraints take part: a softness of 1e-10
(`SOFTNESS`), times what the solver's factorisation loses to such stiff rows"""
LOOPED = 1e-7
"""Relative, for loops: as `GEARED`, and J̇ q̇ by a central difference, good to 1e-10 of itself"""
CLOSED = 1e-9
"""m: how far constraints may be violated by what started without a violation"""


def load(description: dict, folder) -> Mechanism:
    file = folder / "robot.yaml"
    file.write_text(yaml.safe_dump(description))
    return rd.load(file)


def difference(mechanism: Mechanism, seed: int, **options) -> float:
    """Relative difference of forward(inverse) from the identity, in a random state."""
    q, qd, qdd = robots.state(seed, len(mechanism.joint_names))
    simulation = Simulation(mechanism)
    simulation.reset(q, qd)
    tau = rd.InverseDynamics(mechanism, **options)(q, qd, qdd)
    return robots.relative(simulation.accelerations(tau), qdd)


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6])  # 3 has a massless end: it is refused
def test_forward_of_inverse_is_the_identity_for_urdf_trees(seed):
    mechanism = rd.load(robots.random_urdf(seed))
    assert difference(mechanism, seed) < OPEN


@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("seed", range(3))
def test_forward_of_inverse_is_the_identity_for_dh_robots(seed, convention, tmp_path):
    mechanism = load(robots.random_dh(seed, convention=convention), tmp_path)
    assert difference(mechanism, seed) < OPEN


@pytest.mark.parametrize("formulation", ["gibbs_appell", "murphy", "lagrange_euler"])
@pytest.mark.parametrize("seed", range(3))
def test_forward_of_inverse_is_the_identity_with_rotors_as_real_bodies(seed, formulation, tmp_path):
    mechanism = load(robots.random_dh(seed, joints=5, rotors=True), tmp_path)
    assert difference(mechanism, seed, formulation=formulation) < GEARED


def test_a_robot_with_rotors_does_not_move_as_one_without(tmp_path):
    mechanism = load(robots.random_dh(1, joints=5, rotors=True), tmp_path)
    assert difference(mechanism, 1, rotors="none") > 1e-3
    assert difference(mechanism, 1, rotors="reflected") > 1e-4


def test_a_differential_turns_its_rotor_by_both_joints(tmp_path):
    description = robots.random_dh(2, joints=5, rotors=True)
    moving = [link for link in description["links"] if "rotor" in link]
    first, second = moving[0]["joint"]["name"], moving[1]["joint"]["name"]
    moving[0]["rotor"]["mount"] = "base"
    moving[0]["rotor"]["gear_ratio"] = {first: 3.0, second: -7.0}
    assert difference(load(description, tmp_path), 2) < GEARED


def test_a_joint_that_moves_nothing_is_named():
    with pytest.raises(DescriptionError, match="joint5: it moves neither mass nor inertia"):
        Simulation(rd.load(robots.random_urdf(3)))


SMALL = np.diag([0.02, 0.03, 0.04])


def chain(*joints: Joint, **options) -> Mechanism:
    """A serial robot with equal links."""
    names = ["base", *(f"link of {joint.name}" for joint in joints)]
    inertial = Inertial(2.0, np.array([0.1, 0.2, -0.05]), SMALL)
    links = [
        Link(name, parent, joint, inertial)
        for name, parent, joint in zip(names[1:], names, joints, strict=False)
    ]
    return Mechanism("chain", tuple(links), **options)


def at(*xyz: float, rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Pose:
    return Pose.from_xyz_rpy(xyz, rpy)


def test_a_mimic_joint_follows_its_master():
    mechanism = chain(
        Joint("a", "revolute"),
        Joint("b", "revolute", at(0.3, 0, 0), coupling=Coupling((("a", -1.5),), 0.4)),
        Joint("c", "prismatic", at(0.3, 0.1, 0, rpy=(0.5, 0.2, 0.1))),
    )
    assert difference(mechanism, 3) < GEARED
    simulation = Simulation(mechanism)
    simulation.reset([0.2, 0.1], [1.0, -0.5])
    simulation.advance([3.0, -1.0], 2000)
    assert simulation.closure_residual() < CLOSED


def test_friction_is_viscous_and_coulomb():
    friction = Friction(viscous=0.7, coulomb=2.0)
    mechanism = chain(
        Joint("a", "revolute", friction=friction),
        Joint("b", "prismatic", at(0.3, 0, 0, rpy=(1.0, 0.2, 0.1)), friction=friction),
    )
    assert difference(mechanism, 4) < OPEN
    frictionless = rd.InverseDynamics(mechanism, terms=("inertia", "coriolis", "gravity"))
    q, qd, qdd = robots.state(4, 2)
    simulation = Simulation(mechanism)
    simulation.reset(q, qd)
    assert robots.relative(simulation.accelerations(frictionless(q, qd, qdd)), qdd) > 1e-2


def test_a_joint_breaks_away_beyond_the_friction_at_rest():
    """The smaller Coulomb torque plus the Stribeck torque: 1.5 + 0.5. MuJoCo's friction is soft: it
    yields by some 1e-4 of the acceleration without it."""
    law = Friction(coulomb=2.5, coulomb_negative=1.5, stribeck_torque=0.5, stribeck_rate=0.1)
    simulation = Simulation(chain(Joint("a", "revolute", friction=law), gravity=np.zeros(3)))
    held, moved = (abs(simulation.accelerations([tau])[0]) for tau in (1.95, -2.05))
    assert held < 0.01 < 0.1 < moved


@pytest.mark.parametrize(
    "inertia",
    [np.zeros((3, 3)), np.diag([0.1, 0.2, 0.3]), np.diag([1.0, 0.1, 0.1])],
    ids=["a point", "a plate, by rounding", "what no body can have"],
)
def test_inertias_that_the_compiler_refuses_are_simulated_exactly(inertia):
    mechanism = chain(Joint("a", "revolute"), Joint("b", "revolute", at(0.3, 0, 0.1)))
    inertial = Inertial(1.5, np.array([0.2, -0.1, 0.3]), inertia)
    links = tuple(Link(k.name, k.parent, k.joint, inertial) for k in mechanism.links)
    assert difference(Mechanism("chain", links), 5) < OPEN


FREEDOM = {"revolute": 1, "spherical": 3, "universal": 2, "prismatic": 1, "fixed": 0}


@pytest.mark.parametrize("kind", FREEDOM)
def test_a_loop_leaves_the_freedom_of_its_joint(kind):
    """A body that flies on six joints is tied to the base: what may it still do?"""
    axes = np.eye(3)
    flying = chain(
        *(Joint(f"slide{i}", "prismatic", axis=axes[i]) for i in range(3)),
        *(Joint(f"turn{i}", "revolute", axis=axes[i]) for i in range(3)),
        gravity=np.zeros(3),
    )
    q = np.array([0.3, -0.2, 0.1, 0.4, 0.5, -0.3])
    body = Pose()
    for link, x in zip(flying.links, q, strict=True):
        body = body @ link.joint.pose(x)
    frame = at(0.1, 0.05, 0.2, rpy=(0.3, -0.2, 0.7))
    # the universal joint's second axis is the successor's y, square to the predecessor's x
    loop = Loop("tie", kind, Attachment("base", body @ frame), Attachment("link of turn2", frame))
    closed = Mechanism("tied", flying.links, gravity=np.zeros(3), loops=(loop,))
    simulation = Simulation(closed)
    simulation.reset(q)
    assert simulation.closure_residual() < CLOSED
    # the accelerations that all torques can bring about span what is left
    reached = [simulation.accelerations(tau) for tau in 50.0 * np.eye(6)]
    singular = np.linalg.svd(np.array(reached), compute_uv=False)
    assert (
        np.sum(singular > 1e-3 * singular[0] if kind != "fixed" else singular > 1e-3)
        == (FREEDOM[kind])
    )
    simulation.advance(np.array([2.0, -1.0, 3.0, 0.5, 0.4, -0.6]), 1000)
    assert simulation.closure_residual() < 1e-6


def test_a_parallelogram_moves_by_its_closed_form():
    """Two cranks and a coupler that only slides round: (2 I + m l²) q̈ = tau."""
    body = Inertial(1.0, np.array([0.0, 0.5, 0.0]), np.diag([0.0, 0.0, 0.01]))
    bar = Inertial(1.0, np.array([0.5, 0.0, 0.0]), np.diag([0.0, 0.0, 0.01]))
    rocker_end = Attachment("rocker", at(0, 1, 0))
    parallelogram = Mechanism(
        "parallelogram",
        (
            Link("crank", "base", Joint("a", "revolute"), body),
            Link("coupler", "crank", Joint("b", "revolute", at(0, 1, 0)), bar),
            Link("rocker", "base", Joint("c", "revolute", at(1, 0, 0)), body),
        ),
        gravity=np.zeros(3),
        loops=(Loop("C", "revolute", Attachment("coupler", at(1, 0, 0)), rocker_end),),
        actuated=("a",),
    )
    simulation = Simulation(parallelogram)
    expected = 3.0 / (2 * (0.01 + 0.25) + 1.0)
    found = simulation.accelerations([3.0, 0.0, 0.0])
    assert robots.relative(found, np.array([1.0, -1.0, 1.0]) * expected) < GEARED


@pytest.mark.parametrize("values", [[0.0], [0.0, float("nan")], [[0.0, 0.0]]])
def test_a_wrong_vector_is_refused(values):
    simulation = Simulation(chain(Joint("a", "revolute"), Joint("b", "revolute")))
    with pytest.raises(InputError, match=r"tau: found .* expected 2 finite numbers"):
        simulation.advance(values)


def test_a_motion_that_blows_up_is_said_to():
    simulation = Simulation(chain(Joint("a", "revolute"), Joint("b", "revolute")), timestep=0.01)
    simulation.reset([0.1, 0.2], [1e200, 1e200])
    with pytest.raises(InputError, match="the simulated motion diverged"):
        simulation.advance([0.0, 0.0], 10)


def test_without_mujoco_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(BackendError, match=r"pip install 'robot_dynamics\[sim\]'"):
        Simulation(chain(Joint("a", "revolute")))


@pytest.mark.parametrize("name", ["rrr", "five_bar", "gough_stewart", "delta"])
@pytest.mark.parametrize("seed", range(2))
def test_forward_of_inverse_is_the_identity_for_closed_robots(name, seed):
    mechanism = rd.load(f"package://robot_dynamics/config/{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism)
    closed = dynamics.closed
    home = np.array([mechanism.home[joint] for joint in dynamics.joint_names])
    q, qd, qdd = np.array([0.03, 0.2, 1.0])[:, None] * robots.state(seed, len(home))
    q = home + q
    state = closed.forward_kinematics(q, qd)
    # q̈_r = T q̈ + Ṫ q̇
    expected = state.T @ qdd + state.T_rate @ qd
    order = [closed.coordinate_names.index(joint) for joint in mechanism.joint_names]
    tau = np.zeros(len(order))
    for joint, torque in zip(dynamics.actuated_names, dynamics(q, qd, qdd), strict=True):
        tau[mechanism.joint_names.index(joint)] = torque
    simulation = Simulation(mechanism)
    simulation.reset(state.q_r[order], state.qd_r[order])
    assert simulation.closure_residual() < CLOSED
    assert robots.relative(simulation.accelerations(tau), expected[order]) < LOOPED


@pytest.mark.parametrize("name", ["rrr", "five_bar", "gough_stewart", "delta"])
def test_a_home_in_rounded_angles_moves_as_the_closed_robot_does(name):
    """Open by 1e-5, the redundant rows of a planar loop would hold it."""
    mechanism = rd.load(f"package://robot_dynamics/config/{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism)
    simulation = Simulation(mechanism)
    places = [mechanism.joint_names.index(joint) for joint in dynamics.actuated_names]
    simulation.reset([round(mechanism.home[joint], 4) for joint in mechanism.joint_names])
    q = simulation.q[[mechanism.joint_names.index(joint) for joint in dynamics.joint_names]]
    inverse = TrackedRobot(mechanism)._inverse_inertia()
    assert simulation.closure_residual() < CLOSED
    for place in places:
        tau = np.zeros(len(mechanism.joint_names))
        tau[place] = 1e7
        either = simulation.accelerations(tau) - simulation.accelerations(-tau)
        zero = np.zeros(len(q))
        expected = dynamics.forward(q, zero, tau[places]) - dynamics.forward(q, zero, -tau[places])
        assert robots.relative(either[places], expected) < 1e-4
    assert robots.relative(inverse @ dynamics.mass_matrix(q), np.eye(len(q))) < 1e-3


def test_a_loop_that_is_wide_open_is_left_so():
    mechanism = rd.load("package://robot_dynamics/config/five_bar.yaml")
    simulation = Simulation(mechanism)
    q = [mechanism.home[joint] + 0.1 * (joint == "qp1") for joint in mechanism.joint_names]
    simulation.reset(q)
    np.testing.assert_array_equal(simulation.q, q)
    assert simulation.closure_residual() > 0.01


@pytest.mark.parametrize("rate", [100, 200, 250, 333, 500, 1000])
@pytest.mark.parametrize("bandwidth", [5.0, 10.0, 20.0])
def test_a_sampled_loop_is_said_to_diverge_where_it_does(rate, bandwidth):
    three_axis = rd.load("package://robot_dynamics/config/three_axis.yaml")
    mechanism = dataclasses.replace(three_axis, gravity=np.zeros(3))
    dynamics = rd.InverseDynamics(mechanism)
    p, d = pd_gains(dynamics, np.zeros(3), bandwidth)
    robot = TrackedRobot(mechanism, period=1 / rate, p_gains=p, d_gains=d)
    robot.simulation.reset(1e-13 * np.array([1.0, -2.0, 3.0]))
    sizes = []
    for _ in range(10 if robot.growth() > 1 else 3 * rate):
        sizes.append(np.abs(np.hstack([robot.simulation.q, robot.simulation.qd])).max())
        robot.advance((np.zeros(3), np.zeros(3)), np.zeros(3))
    growth = robot.growth()
    if len(sizes) == 10:
        # the fastest mode has taken over
        assert sizes[9] / sizes[8] == pytest.approx(growth, rel=0.1)
    else:
        assert sizes[-1] < 0.1 * sizes[0]
    robot.simulation.reset()
    other = TrackedRobot(mechanism, period=0.1, p_gains=p, d_gains=d)
    assert other.growth(1 / rate) == pytest.approx(robot.growth(), rel=1e-6)


def test_passive_joints_have_no_torque():
    mechanism = rd.load(robots.CONFIG / "five_bar.yaml")
    robot = TrackedRobot(dataclasses.replace(mechanism, gravity=np.zeros(3)))
    home = robot.simulation.q
    for _ in range(5):
        robot.advance((np.zeros(2), np.zeros(2)), np.zeros(2))
    assert np.abs(robot.simulation.q - home).max() < CLOSED


@pytest.mark.parametrize(
    ("name", "sensed"),
    [
        ("polar", False),
        *itertools.product(["five_bar", "rrr", "delta", "gough_stewart"], [False, True]),
    ],
)
def test_the_states_of_all_joints_close_the_loops_and_are_each_others_rates(name, sensed):
    mechanism = rd.load(robots.CONFIG / f"{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism, sensed=sensed)
    simulation = Simulation(dynamics.mechanism)
    n, t, h = len(dynamics.joint_names), 0.1, 1e-4
    plain = rd.InverseDynamics(mechanism)
    rates = np.random.default_rng(1).uniform(-0.3, 0.3, len(plain.joint_names))
    places = [mechanism.joint_names.index(joint) for joint in dynamics.joint_names]

    def motion(t):
        """q, q̇ and q̈ as readings of a motion with constant accelerations of the motors."""
        states = plain.tree_state(plain.home + rates * t**2 / 2, rates * t, rates)
        return [each[places] for each in states]

    q, qd, qdd = dynamics.tree_state(*motion(t))
    assert q.shape == (len(mechanism.joint_names),)
    simulation.reset(q, qd)
    assert simulation.closure_residual() < CLOSED
    before, after = (dynamics.tree_state(*motion(t + dt)) for dt in (-h, h))
    assert np.allclose(qd, (after[0] - before[0]) / (2 * h), rtol=0, atol=1e-6)
    assert np.allclose(qdd, (after[1] - before[1]) / (2 * h), rtol=0, atol=1e-6)
    assert np.allclose(q[places], motion(t)[0], rtol=0, atol=1e-12)
    home = dynamics.tree_state(dynamics.home, np.zeros(n), np.zeros(n))[0]
    simulation.reset(home)
    assert simulation.closure_residual() < CLOSED
    described = [mechanism.home.get(joint, 0.0) for joint in mechanism.joint_names]
    assert np.allclose(home, described, rtol=0, atol=1e-4)
