# SPDX-License-Identifier: Apache-2.0
"""Torques and matrices of closed mechanisms, against Pinocchio's cut tree and mechanics' laws."""

from __future__ import annotations

from dataclasses import replace

import closed_robots
import numpy as np
import pytest
from closed_robots import ClosedChain, Oracle
from robots import CONFIG, RELATIVE_TO_PINOCCHIO, inertia, relative

import robot_dynamics as rd
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import TERMS
from robot_dynamics.mechanism import Friction, Inertial, Pose, Rotor
from robot_dynamics.mechanism.transform import with_payload

CONSISTENT = 1e-10
"""Relative: sensed and active-only on the same closed state"""
INVARIANT = 1e-10
"""Relative: other cuts, other formulations: condition numbers of 20 on rounding"""
DIFFERENTIATED = 1e-6
"""Relative: central differences with steps of 1e-5"""

THROUGH_MUJOCO = 1e-7
"""Relative: equalities a million times as hard as MuJoCo makes them leave about 1e-8"""

ROBOTS = {
    "3RRR": lambda seed: closed_robots.random_rrr(seed, rotors=True),
    "five-bar": closed_robots.random_five_bar,
    "Gough-Stewart": closed_robots.random_gough_stewart,
    "Gough-Stewart, universal": lambda seed: closed_robots.random_gough_stewart(seed, True),
    "slider-crank": closed_robots.slider_crank,
    "four-bar": closed_robots.welded_four_bar,
}


@pytest.fixture(
    params=[(name, seed) for name in ROBOTS for seed in (1, 2)], ids=str, scope="module"
)
def case(request, tmp_path_factory):
    """(chain, oracle, q, qd, qdd) of the actuated joints"""
    name, seed = request.param
    robot = ROBOTS[name](seed)
    chain = ClosedChain(closed_robots.load(robot, tmp_path_factory.mktemp("robot")))
    return chain, Oracle(robot, chain.coordinate_names, len(chain.actuated_names)), *motion(chain)


@pytest.fixture(scope="module")
def rigid(case):
    """The same chain without friction."""
    return ClosedChain(case[0].mechanism, terms=set(TERMS) - {"friction"})


def motion(chain: ClosedChain, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = len(chain.actuated_names)
    q = chain.home.q_a + rng.uniform(-0.04, 0.04, a)
    return q, rng.uniform(-1, 1, a), rng.uniform(-3, 3, a)


def test_torques_are_those_of_the_cut_tree_projected(case):
    chain, oracle, q, qd, qdd = case
    expected = oracle.torques(chain.forward_kinematics(q).q_r, qd, qdd)
    assert relative(chain(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


def test_the_matrices_make_the_torques(case, rigid):
    chain, _, q, qd, qdd = case
    D, C, G = chain.mass_matrix(q), chain.coriolis_matrix(q, qd), chain.gravity(q)
    assert relative(D @ qdd + C @ qd + G, rigid(q, qd, qdd)) < INVARIANT


def test_the_mass_matrix_is_symmetric_and_positive(case):
    chain, _, q, _, _ = case
    D = chain.mass_matrix(q)
    assert relative(D, D.T) < INVARIANT
    assert np.linalg.eigvalsh(D).min() > 0


def test_the_rate_of_D_less_2C_is_skew(case):
    chain, _, q, qd, _ = case
    step = 1e-5
    D_rate = (chain.mass_matrix(q + step * qd) - chain.mass_matrix(q - step * qd)) / (2 * step)
    skew = D_rate - 2 * chain.coriolis_matrix(q, qd)
    size = max(np.abs(D_rate).max(), np.abs(skew).max(), 1e-3)
    assert np.abs(skew + skew.T).max() < DIFFERENTIATED * size


def test_C_consists_of_christoffel_symbols(case):
    chain, _, q, qd, _ = case
    step, a = 1e-4, len(q)
    # ∂D/∂q_k, from which c_ijk = ½ (∂_k D_ij + ∂_j D_ik - ∂_i D_jk)
    slopes = np.array(
        [
            (chain.mass_matrix(q + step * e) - chain.mass_matrix(q - step * e)) / (2 * step)
            for e in np.eye(a)
        ]
    )
    C = np.zeros((a, a))
    for i in range(a):
        for j in range(a):
            C[i, j] = sum(
                (slopes[k, i, j] + slopes[j, i, k] - slopes[i, j, k]) * qd[k] / 2 for k in range(a)
            )
    assert relative(chain.coriolis_matrix(q, qd), C) < 1e-5  # truncation at a step of 1e-4


def test_power_is_the_rate_of_energy_and_what_friction_takes(case):
    chain, oracle, q, qd, qdd = case
    bare = replace(chain.mechanism, rotors=())
    rigid = ClosedChain(bare, terms=set(TERMS) - {"friction"})
    step = 1e-5

    def energy(t: float) -> float:
        state = rigid.forward_kinematics(q + t * qd + t**2 / 2 * qdd, qd + t * qdd)
        return oracle.energy(state.q_r, state.qd_r)

    rate = (energy(step) - energy(-step)) / (2 * step)
    power = rigid(q, qd, qdd) @ qd
    assert power == pytest.approx(rate, rel=DIFFERENTIATED, abs=1e-5)
    loss = ClosedChain(bare, terms={"friction"})(q, qd, qdd) @ qd
    laws = {link.joint.name: link.joint.friction for link in bare.links}
    rates = rigid.forward_kinematics(q, qd).qd_r
    expected = sum(
        laws[name].viscous * r**2 + laws[name].coulomb * abs(r)
        for name, r in zip(chain.coordinate_names, rates, strict=True)
    )
    assert loss == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
def test_any_formulation_serves_the_legs(name, rotors, tmp_path):
    robot = closed_robots.random_rrr(4, rotors=True)
    mechanism = closed_robots.load(robot, tmp_path)
    reference = ClosedChain(mechanism, "newton_euler", rotors=rotors)
    q, qd, qdd = motion(reference)
    chain = ClosedChain(mechanism, name, rotors=rotors)
    assert relative(chain(q, qd, qdd), reference(q, qd, qdd)) < INVARIANT
    assert relative(chain.mass_matrix(q), reference.mass_matrix(q)) < INVARIANT
    assert relative(chain.coriolis_matrix(q, qd), reference.coriolis_matrix(q, qd)) < INVARIANT


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_reflected_rotor_on_the_platform_weighs_what_it_weighs(name):
    mechanism = rd.load(CONFIG / "rrr.yaml")
    body = Inertial(0.3, np.array([0.0, 0.0, 0.03]), np.diag([1e-3, 1e-3, 2e-4]))
    motor = Rotor("motor", "platform", Pose(translation=[0.05, 0.02, 0.0]), (("qa1", 10.0),), body)
    with_motor = replace(mechanism, rotors=(*mechanism.rotors, motor))
    chain = ClosedChain(with_motor, name, rotors="reflected")
    q = chain.home.q_a + 0.05
    carried = motor.inertial.seen_from(motor.origin)
    loaded = ClosedChain(with_payload(mechanism, "platform", carried), name)
    assert relative(chain.gravity(q), loaded.gravity(q)) < INVARIANT


@pytest.mark.parametrize("seed", range(3))
def test_it_does_not_matter_which_leg_carries_the_platform(seed, tmp_path):
    chains = [
        ClosedChain(closed_robots.load(closed_robots.random_rrr(seed, leg), tmp_path))
        for leg in range(3)
    ]
    q, qd, qdd = motion(chains[0])
    for chain in chains[1:]:
        assert relative(chain(q, qd, qdd), chains[0](q, qd, qdd)) < INVARIANT
        for name, state in (("mass_matrix", (q,)), ("coriolis_matrix", (q, qd)), ("gravity", (q,))):
            found, expected = (getattr(c, name)(*state) for c in (chain, chains[0]))
            assert relative(found, expected) < INVARIANT, name
        assert (
            relative(chain.forward_kinematics(q).J_R, chains[0].forward_kinematics(q).J_R)
            < INVARIANT
        )


@pytest.mark.parametrize("seed", range(3))
def test_it_does_not_matter_where_the_five_bar_is_cut(seed, tmp_path):
    tip, elbow = (
        ClosedChain(closed_robots.load(closed_robots.random_five_bar(seed, cut), tmp_path))
        for cut in ("tip", "elbow")
    )
    q, qd, qdd = motion(tip)
    assert relative(elbow(q, qd, qdd), tip(q, qd, qdd)) < INVARIANT
    assert relative(elbow.coriolis_matrix(q, qd), tip.coriolis_matrix(q, qd)) < INVARIANT


def test_sensed_and_active_agree_on_consistent_input(case, rigid):
    chain, _, q, qd, qdd = case
    if not chain.mechanism.sensed:
        pytest.skip("this one has no sensors")
    sensed = ClosedChain(chain.mechanism, sensed=True)
    state = chain.forward_kinematics(q, qd)
    k, a = len(sensed.joint_names), len(q)
    qdd_r = state.T @ qdd + state.T_rate @ qd
    inputs = state.q_r[:k], state.qd_r[:k], qdd_r[:k]
    assert relative(sensed(*inputs), chain(q, qd, qdd)) < CONSISTENT
    D, C = sensed.mass_matrix(inputs[0]), sensed.coriolis_matrix(*inputs[:2])
    assert D.shape == C.shape == (a, k)
    tau = D @ inputs[2] + C @ inputs[1] + sensed.gravity(inputs[0])
    assert relative(tau, rigid(q, qd, qdd)) < CONSISTENT


def test_the_platform_may_be_part_of_its_leg(tmp_path):
    """Two subsystems or one tree: the internal forces do no work."""
    robot = closed_robots.random_rrr(6)
    mechanism = closed_robots.load(robot, tmp_path)
    apart, together = ClosedChain(mechanism), ClosedChain(replace(mechanism, platform=None))
    q, qd, qdd = motion(apart)
    assert relative(apart(q, qd, qdd), together(q, qd, qdd)) < INVARIANT
    assert relative(apart.coriolis_matrix(q, qd), together.coriolis_matrix(q, qd)) < INVARIANT


def test_a_payload_on_the_platform_is_a_heavier_platform(tmp_path):
    robot = closed_robots.random_gough_stewart(3)
    rng = np.random.default_rng(3)
    payload = Inertial(2.0, rng.uniform(-0.1, 0.1, 3), inertia(rng, 2.0))
    mechanism = with_payload(closed_robots.load(robot, tmp_path), "platform", payload)
    chain = ClosedChain(mechanism)
    q, qd, qdd = motion(chain)
    robot["links"].append(
        {
            "name": "payload",
            "parent": "platform",
            "joint": {"type": "fixed"},
            "mass": 2.0,
            "center_of_mass": payload.center_of_mass.tolist(),
            "inertia": closed_robots.robots.tensor(payload.inertia),
        }
    )
    oracle = Oracle(robot, chain.coordinate_names, 6)
    expected = oracle.torques(chain.forward_kinematics(q).q_r, qd, qdd)
    assert relative(chain(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


def test_an_external_wrench_does_the_power_of_the_forces_it_saves(case):
    chain, oracle, q, qd, qdd = case
    if chain.mechanism.platform is None:
        pytest.skip("this one has no platform")
    wrench = np.random.default_rng(1).uniform(-5, 5, 6)
    state = chain.forward_kinematics(q, qd)
    _, J_C, _ = oracle.platform(state.q_r, state.qd_r)
    saved = chain(q, qd, qdd) - chain(q, qd, qdd, wrench)
    assert saved @ qd == pytest.approx(wrench @ (J_C @ state.qd_r), rel=INVARIANT)
    assert relative(chain.external_force(q, wrench), saved) < 1e-9  # a difference of torques


def test_terms_add_up(case):
    chain, _, q, qd, qdd = case
    parts = [ClosedChain(chain.mechanism, terms={term})(q, qd, qdd) for term in TERMS]
    assert relative(np.sum(parts, axis=0), chain(q, qd, qdd)) < INVARIANT


def test_a_batch_is_its_states(case):
    chain, _, q, qd, qdd = case
    rng = np.random.default_rng(2)
    many = q + rng.uniform(-0.03, 0.03, (2, 3, len(q)))
    tau, D = chain(many, qd, qdd), chain.mass_matrix(many)
    C, G = chain.coriolis_matrix(many, qd), chain.gravity(many)
    for i in np.ndindex(2, 3):
        assert relative(tau[i], chain(many[i], qd, qdd)) < INVARIANT
        assert relative(D[i], chain.mass_matrix(many[i])) < INVARIANT
        assert relative(C[i], chain.coriolis_matrix(many[i], qd)) < INVARIANT
        assert relative(G[i], chain.gravity(many[i])) < INVARIANT


@pytest.mark.parametrize(("name", "sensed"), [("rrr", False), ("rrr", True), ("delta", False)])
def test_c_and_python_agree(name, sensed):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    try:
        compiled = rd.InverseDynamics(mechanism, sensed=sensed, backend="c")
    except rd.RobotDynamicsError as reason:
        pytest.skip(f"no compiler here: {reason}")
    active, chain = ClosedChain(mechanism), ClosedChain(mechanism, sensed=sensed)
    assert "kernel in C" in compiled.backend
    assert "generated Python" in chain.backend
    rng = np.random.default_rng(0)
    k = len(chain.joint_names)
    for _ in range(20):
        q = active.forward_kinematics(active.home.q_a + rng.uniform(-0.2, 0.2, 3)).q_r[:k]
        q = q + rng.uniform(-0.01, 0.01, k)
        qd, qdd = rng.uniform(-1, 1, (2, k))
        assert relative(compiled(q, qd, qdd), chain(q, qd, qdd)) < INVARIANT
        for function, state in (
            ("mass_matrix", (q,)),
            ("coriolis_matrix", (q, qd)),
            ("gravity", (q,)),
        ):
            found, expected = (getattr(x, function)(*state) for x in (compiled, chain))
            assert relative(found, expected) < INVARIANT
    batch = q + rng.uniform(-0.01, 0.01, (40, k))
    assert relative(compiled(batch, qd, qdd), chain(batch, qd, qdd)) < INVARIANT


@pytest.mark.parametrize("robot", ["rrr", "slider-crank"])
def test_readings_that_do_not_agree_are_fitted_by_T_q_and_its_rate(robot, tmp_path):
    """The kernel's own T_q and Ṫ_q, beside those of `KinematicState`."""
    if robot == "rrr":
        mechanism, k = rd.load(CONFIG / "rrr.yaml"), 6
        off = np.array([0.0, 0.0, 0.0, 0.02, -0.03, 0.02])
    else:
        mechanism, k = closed_robots.load(closed_robots.slider_crank(1), tmp_path), 2
        mechanism = replace(mechanism, sensed=("rod",))
        off = np.array([0.0, 0.02])
    chain = ClosedChain(mechanism, sensed=True, backend="python")
    q = chain.home.q_r[:k] + off
    rng = np.random.default_rng(0)
    qd, qdd = rng.uniform(-1, 1, (2, k))
    state = chain.forward_kinematics(q, qd)
    found = chain(q, qd, qdd)
    assert state.residual > 1e-4, "they should not agree"
    # τ = Tᵀ τ_r(q_r, T_q q̇, T_q q̈ + Ṫ_q q̇)
    free = state.T_q_rate @ qd
    assert np.abs(free).max() > 1e-3
    tau = chain.subsystems.torques(state.q_r, state.qd_r, state.T_q @ qdd, free)
    assert relative(found, state.T.T @ tau) < INVARIANT
    assert relative(chain(q[None], qd, qdd)[0], found) < INVARIANT
    # C q̇ is what q̇ alone takes, and C (v + w) what both take
    C = chain.coriolis_matrix(q, qd)
    rigid = chain.subsystems.rigid(state.q_r, state.qd_r, free)
    assert relative(C @ qd, state.T.T @ rigid) < INVARIANT


def test_what_changes_while_it_runs_is_as_if_it_had_been_so(tmp_path):
    robot = closed_robots.random_rrr(8, rotors=True)
    mechanism = closed_robots.load(robot, tmp_path)
    running = rd.InverseDynamics(mechanism, backend="python")
    q, qd, qdd = motion(running.closed)
    rng = np.random.default_rng(8)
    payload = Inertial(1.5, rng.uniform(-0.1, 0.1, 3), inertia(rng, 1.5))
    gravity = rng.uniform(-9, 9, 3)
    running(q, qd, qdd)
    running.gravity_vector = gravity
    running.set_payload("platform", payload)
    running.set_payload("distal1", payload)
    running.set_friction("qc", 0.7, 0.1)
    running.set_friction("qp1", 0.2, 0.3)
    fresh = ClosedChain(running.mechanism)
    assert relative(running(q, qd, qdd), fresh(q, qd, qdd)) < INVARIANT
    assert relative(running.mass_matrix(q), fresh.mass_matrix(q)) < INVARIANT
    assert relative(running.gravity(q), fresh.gravity(q)) < INVARIANT
    assert relative(running(q, qd, qdd), ClosedChain(mechanism)(q, qd, qdd)) > 0.01


def test_the_history_does_not_matter(tmp_path):
    """Warm starts leave no trace beyond rounding."""
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    rng = np.random.default_rng(3)
    states = chain.home.q_a + rng.uniform(-0.3, 0.3, (30, 3))
    qd, qdd = rng.uniform(-1, 1, (2, 3))
    once = np.array([chain(q, qd, qdd) for q in states])
    back = np.array([chain(q, qd, qdd) for q in states[::-1]])[::-1]
    assert relative(back, once) < INVARIANT
    smooth = [chain(q, qd, qdd) for q in np.linspace(states[0], states[1], 500)]
    assert relative(smooth[-1], once[1]) < INVARIANT


@pytest.mark.parametrize("name", ["rrr", "five_bar", "delta", "gough_stewart"])
def test_shipped_robots_against_pinocchio(name):
    robot = closed_robots.shipped(name)
    chain = ClosedChain(rd.load(CONFIG / f"{name}.yaml"))
    oracle = Oracle(robot, chain.coordinate_names, len(chain.actuated_names))
    for seed in range(3):
        q, qd, qdd = motion(chain, seed)
        expected = oracle.torques(chain.forward_kinematics(q).q_r, qd, qdd)
        assert relative(chain(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("name", ["rrr", "five_bar", "delta", "gough_stewart"])
def test_mujoco_gives_the_accelerations_back(name):
    """forward(inverse) = identity with MuJoCo's own equality constraints as the closure."""
    pytest.importorskip("mujoco")
    from robot_dynamics.simulation.physics import Simulation

    mechanism = rd.load(CONFIG / f"{name}.yaml")
    # MuJoCo's friction laws are other ones
    links = tuple(
        replace(link, joint=replace(link.joint, friction=Friction())) for link in mechanism.links
    )
    mechanism = replace(mechanism, links=links)
    chain, simulation = ClosedChain(mechanism), Simulation(mechanism)
    for seed in range(3):
        q, qd, qdd = motion(chain, seed)
        state = chain.forward_kinematics(q, qd)
        order = [chain.coordinate_names.index(n) for n in simulation.joint_names]
        simulation.reset(state.q_r[order], state.qd_r[order])
        tau = np.zeros(len(order))
        for value, joint in zip(chain(q, qd, qdd), chain.actuated_names, strict=True):
            tau[simulation.joint_names.index(joint)] = value
        expected = (state.T @ qdd + state.T_rate @ qd)[order]
        assert relative(simulation.accelerations(tau), expected) < THROUGH_MUJOCO


# --- torques at the motors -------------------------------------------------------------------


@pytest.mark.parametrize("sensed", [False, True])
def test_what_enters_the_gears_of_a_moving_closed_robot(sensed, tmp_path):
    """Against rotors as bodies of the oracle's tree, at rates and accelerations of the oracle's."""
    robot = closed_robots.random_rrr(4, rotors=True)
    for leg in range(3):
        robot["links"][1 + 2 * leg + 1]["rotor"] = closed_robots.robots.random_rotor(
            np.random.default_rng(leg), f"proximal{leg}"
        )
    mechanism = closed_robots.load(robot, tmp_path)
    dynamics = rd.InverseDynamics(mechanism, sensed=sensed, backend="python")
    chain = ClosedChain(mechanism)
    q, qd, qdd = motion(chain)
    oracle = Oracle(robot, chain.coordinate_names, 3)
    q_r = chain.forward_kinematics(q).q_r
    T, qdd_r = oracle.T(q_r), oracle.accelerations(q_r, qd, qdd)
    k = len(dynamics.joint_names)
    found = dynamics.motor_torques(q_r[:k], (T @ qd)[:k], qdd_r[:k])
    # the tree of all joints with the same rotors, as an open chain
    tree = replace(mechanism, loops=(), actuated=(), sensed=(), platform=None, home={})
    open_chain = rd.InverseDynamics(tree, backend="python")
    order = [chain.coordinate_names.index(name) for name in tree.joint_names]
    state = q_r[order], (T @ qd)[order], qdd_r[order]
    expected = open_chain.motor_torques(*state)
    assert relative(found.drive - found.gear, expected.drive - expected.gear) < INVARIANT
    # Γᵀ of the drive torques is the joints' torque
    gears = np.array([rotor.ratios[0][1] for rotor in mechanism.rotors])
    driven = [rotor.ratios[0][0] for rotor in mechanism.rotors]
    for name, tau in zip(chain.actuated_names, oracle.torques(q_r, qd, qdd), strict=True):
        shares = [g * t for g, t, j in zip(gears, found.drive, driven, strict=True) if j == name]
        assert sum(shares) == pytest.approx(tau, rel=1e-9, abs=1e-9)


# --- the same at any place, against nothing but Pinocchio --------------------------------------


@pytest.mark.parametrize("sensed", [False, True])
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_what_runs_by_default_is_the_cut_tree_projected(backend, sensed):
    """Torques and every matrix, one by one and in a batch, through the façade."""
    robot = closed_robots.shipped("rrr")
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "rrr.yaml"), sensed=sensed, backend=backend)
    active = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    oracle, k = Oracle(robot, active.coordinate_names, 3), len(dynamics.joint_names)
    rng = np.random.default_rng(7)
    rows = []
    for _ in range(6):
        q_r = active.solver.forward_kinematics(
            active.home.q_a + rng.uniform(-0.12, 0.12, 3), active.home.q_r
        )
        qd, qdd = rng.uniform(-1, 1, (2, 3))
        T = oracle.T(q_r)
        qdd_r = oracle.accelerations(q_r, qd, qdd)
        state = q_r[:k], (T @ qd)[:k], qdd_r[:k]
        zero = np.zeros(3)
        expected = oracle.torques(q_r, qd, qdd)
        weight, centrifugal = oracle.torques(q_r, zero, zero), oracle.torques(q_r, qd, zero)
        assert relative(dynamics(*state), expected) < RELATIVE_TO_PINOCCHIO
        assert relative(dynamics.gravity(state[0]), weight) < RELATIVE_TO_PINOCCHIO
        D, C = dynamics.mass_matrix(state[0]), dynamics.coriolis_matrix(*state[:2])
        # the robot has no friction: D q̈ + C q̇ is what is left
        assert relative(D @ state[2] + C @ state[1], expected - weight) < 1e-8
        if not sensed:
            units = [oracle.torques(q_r, zero, unit) - weight for unit in np.eye(3)]
            assert relative(D, np.transpose(units)) < 1e-8
            assert relative(C @ qd, centrifugal - weight) < 1e-8
        rows.append((*state, expected))
    q, qd, qdd, tau = map(np.array, zip(*rows, strict=True))
    assert relative(dynamics(q, qd, qdd), tau) < RELATIVE_TO_PINOCCHIO
