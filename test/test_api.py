# SPDX-License-Identifier: Apache-2.0
"""What users of other libraries expect, against Pinocchio: forward dynamics, derivatives, energies,
poses, Jacobians and wrenches; for closed robots against the tree that is cut open."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    example_robots,
    pin,
    random_dh,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.codegen.recorder import Recorded, record
from robot_dynamics.formulations.derivatives import of_bodies
from robot_dynamics.formulations.forward import SOLVED
from robot_dynamics.mechanism import Armature, Inertial, Pose
from robot_dynamics.mechanism.transform import standard_form

EXAMPLES = [
    file
    for file in example_robots()
    if file.stem in ("panda", "ur5_robot", "double_pendulum", "solo12", "kinova", "hector")
]
RIGID = ("inertia", "coriolis", "gravity")
CLOSED = ("rrr", "five_bar", "delta")
STEP = 1e-6
DIFFERENCES = 1e-7
"""What central differences leave: rounding over the step, and the step squared"""


def backend(first):
    """One of a kind is compiled; the others run the same program in Python, built sooner."""
    return "auto" if first else "python"


def load_quietly(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.load(source)


def with_rotors(tmp_path, seed=0):
    robot = random_dh(seed, joints=5, rotors=True)
    for link in robot["links"]:
        link["friction"] = {"viscous": 0.3, "coulomb": 0.4}
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot))
    return rd.load(path)


def mimicking():
    """A random tree whose fourth joint follows the first."""
    text = random_urdf(11, joints=6, branching=False).replace('type="fixed"', 'type="revolute"', 1)
    master, follower = (rd.load(text).joint_names[i] for i in (0, 3))
    end = text.index("</joint>", text.index(f'<joint name="{follower}"'))
    mimic = f'<mimic joint="{master}" multiplier="-1.7" offset="0.3"/>'
    return text[:end] + mimic + text[end:]


def home(dynamics, count=None):
    """Closed states of a robot with loops: q, qd, qdd."""
    q = np.array([dynamics.mechanism.home[name] for name in dynamics.joint_names])
    rng = np.random.default_rng(0)
    shape = (len(q),) if count is None else (count, len(q))
    return q + 0.02 * rng.normal(size=shape), rng.normal(size=shape), rng.normal(size=shape)


def differences(function, x):
    """∂function/∂x, the last axis by entry of x."""
    steps = STEP * np.eye(len(x))
    return np.stack([(function(x + h) - function(x - h)) / (2 * STEP) for h in steps], axis=-1)


class Oracle:
    """A URDF in Pinocchio, mimic joints geared by hand, at one state."""

    def __init__(self, model, mechanism, q, qd, qdd):
        self.model, self.data = model, model.createData()
        self.S, s = mechanism.coordinates()
        self.joints = [model.joints[model.getJointId(name)] for name in mechanism.tree_names]
        self.q = pin.neutral(model)
        self.v, self.a = np.zeros(model.nv), np.zeros(model.nv)
        tree = zip(self.joints, self.S @ q + s, self.S @ qd, self.S @ qdd, strict=True)
        for joint, x, v, a in tree:
            if joint.nq == 2:
                self.q[joint.idx_q : joint.idx_q + 2] = np.cos(x), np.sin(x)
            else:
                self.q[joint.idx_q] = x
            self.v[joint.idx_v], self.a[joint.idx_v] = v, a
        self.rows = [joint.idx_v for joint in self.joints]

    def projected(self, matrix):
        return self.S.T @ matrix[np.ix_(self.rows, self.rows)] @ self.S

    def derivatives(self):
        found = pin.computeRNEADerivatives(self.model, self.data, self.q, self.v, self.a)
        D = np.triu(found[2]) + np.triu(found[2], 1).T
        return [self.projected(each) for each in (*found[:2], D)]

    def frame(self, link):
        """(pose, Jacobian) of a link's frame."""
        place = self.model.getFrameId(link)
        aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = pin.computeFrameJacobian(self.model, self.data, self.q, place, aligned)
        pin.framesForwardKinematics(self.model, self.data, self.q)
        return self.data.oMf[place].homogeneous, J[:, self.rows] @ self.S


def robots():
    sources = [file.read_text() for file in EXAMPLES]
    sources += [random_urdf(seed) for seed in range(3)] + [mimicking()]
    for text in sources:
        yield load_quietly(text), pin.buildModelFromXML(text)


@pytest.fixture(scope="module")
def pinocchios():
    """(dynamics, oracle, state) of random robots."""
    found = []
    for seed, (mechanism, model) in enumerate(robots()):
        at = state(seed, len(mechanism.joint_names))
        compiled = seed in (0, len(EXAMPLES))  # the first shipped one, and the first random one
        dynamics = rd.InverseDynamics(mechanism, terms=RIGID, backend=backend(compiled))
        found.append((dynamics, Oracle(model, mechanism, *at), at))
    return found


def test_derivatives_are_pinocchios(pinocchios):
    for dynamics, oracle, at in pinocchios:
        for found, expected in zip(dynamics.derivatives(*at), oracle.derivatives(), strict=True):
            scale = abs(expected).max(axis=1, keepdims=True) + 1e-300
            # each joint on its own scale, but for what is rounding of the whole robot's
            rounding = 1e-3 * RELATIVE_TO_PINOCCHIO * abs(expected).max()
            error = abs(found - expected) - rounding
            assert (error < RELATIVE_TO_PINOCCHIO * scale).all(), dynamics.mechanism.name


def test_energies_are_pinocchios(pinocchios):
    for dynamics, oracle, (q, qd, _) in pinocchios:
        kinetic = pin.computeKineticEnergy(oracle.model, oracle.data, oracle.q, oracle.v)
        potential = pin.computePotentialEnergy(oracle.model, oracle.data, oracle.q)
        assert dynamics.kinetic_energy(q, qd) == pytest.approx(kinetic, rel=1e-9)
        assert dynamics.potential_energy(q) == pytest.approx(potential, rel=1e-9)
        assert dynamics.kinetic_energy(q, qd).shape == ()


def test_every_links_pose_and_jacobian_are_pinocchios(pinocchios):
    for dynamics, oracle, (q, _, _) in pinocchios:
        links = [link.name for link in dynamics.mechanism.links]
        for link in (links[0], links[len(links) // 2], links[-1]):
            pose, J = oracle.frame(link)
            assert np.allclose(dynamics.pose(q, link), pose, rtol=0, atol=1e-12)
            assert np.allclose(dynamics.jacobian(q, link), J, rtol=0, atol=1e-12)
        base = dynamics.mechanism.base
        assert np.array_equal(dynamics.pose(q, base), np.eye(4))
        assert not dynamics.jacobian(q, base).any()


def test_forward_dynamics_are_pinocchios(pinocchios):
    for dynamics, oracle, (q, qd, qdd) in pinocchios:
        tau = dynamics(q, qd, qdd)
        found = dynamics.forward(q, qd, tau)
        if not np.isfinite(found).all():  # massless ends: Pinocchio's own D is singular too
            D = dynamics.mass_matrix(q)
            assert np.linalg.cond(D) > 1e12
            continue
        assert relative(found, qdd) < RELATIVE_TO_PINOCCHIO
        if len(oracle.rows) == len(q):
            expected = pin.aba(oracle.model, oracle.data, oracle.q, oracle.v, _full(oracle, tau))
            assert relative(found, expected[oracle.rows]) < RELATIVE_TO_PINOCCHIO


def _full(oracle, tau):
    full = np.zeros(oracle.model.nv)
    full[oracle.rows] = tau
    return full


@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
def test_forward_undoes_inverse_with_rotors_and_friction(tmp_path, rotors):
    for seed in range(3):
        options = {"rotors": rotors, "backend": backend(seed == 0)}
        dynamics = rd.InverseDynamics(with_rotors(tmp_path, seed), "gibbs_appell", **options)
        q, qd, qdd = state(seed, len(dynamics.joint_names))
        assert relative(dynamics.forward(q, qd, dynamics(q, qd, qdd)), qdd) < 1e-9
        terms = ["inertia", "gravity", "friction"]
        some = rd.InverseDynamics(dynamics.mechanism, terms=terms, **options)
        assert relative(some.forward(q, qd, some(q, qd, qdd)), qdd) < 1e-9


def test_long_chains_are_solved_by_articulated_bodies(tmp_path):
    robot = random_dh(5, joints=16)
    for link in robot["links"][::3]:
        link["friction"] = {"viscous": 0.3, "coulomb": 0.4}
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot))
    mechanism = rd.load(path)
    first, second = mechanism.joint_names[:2]
    arms = (Armature(((first, -2.0),), 0.4), Armature(((second, 3.0),), 0.1))
    dynamics = rd.InverseDynamics(replace(mechanism, armatures=arms), backend="python")
    q, qd, qdd = state(5, len(dynamics.joint_names))
    assert len(q) > SOLVED
    assert relative(dynamics.forward(q, qd, dynamics(q, qd, qdd)), qdd) < 1e-9
    # a shaft that two joints turn is for D solved
    shared = replace(mechanism, armatures=(Armature(((first, -2.0), (second, 3.0)), 0.4),))
    geared = rd.InverseDynamics(shared, backend="python")
    assert relative(geared.forward(q, qd, geared(q, qd, qdd)), qdd) < 1e-9
    some = ["inertia", "gravity"]
    still = rd.InverseDynamics(dynamics.mechanism, backend="python", terms=some)
    assert relative(still.forward(q, qd, still(q, qd, qdd)), qdd) < 1e-9


def test_a_joint_with_nothing_to_move_has_no_acceleration():
    text = (
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/></joint></robot>'
    )
    for backend in ("auto", "python"):
        dynamics = rd.InverseDynamics(load_quietly(text), backend=backend)
        assert not np.isfinite(dynamics.forward([0.1], [0.2], [1.0])).any()


def test_derivatives_and_matrices_of_arms_far_apart():
    # cranes on one map, kilometres apart, are computed as exactly as side by side
    mechanism = rd.load(random_urdf(4, joints=9))
    _, *others = (link.name for link in mechanism.links if link.parent == mechanism.base)
    assert others
    far = np.array([3e4, -2e4, 500.0])
    links = tuple(
        replace(
            link,
            joint=replace(
                link.joint,
                origin=Pose(link.joint.origin.rotation, link.joint.origin.translation + far),
            ),
        )
        if link.name in others
        else link
        for link in mechanism.links
    )
    near, away = (
        rd.InverseDynamics(each, backend="python")
        for each in (mechanism, replace(mechanism, links=links))
    )
    q, qd, qdd = state(4, len(near.joint_names))
    for found, expected in zip(
        away.derivatives(q, qd, qdd), near.derivatives(q, qd, qdd), strict=True
    ):
        assert relative(found, expected) < RELATIVE_TO_SISTERS
    assert relative(away.coriolis_matrix(q, qd), near.coriolis_matrix(q, qd)) < RELATIVE_TO_SISTERS


@pytest.mark.parametrize("rotors", ["full", "reflected", "none"])
def test_derivatives_are_the_torques_differences(tmp_path, rotors):
    dynamics = rd.InverseDynamics(with_rotors(tmp_path, 1), rotors=rotors, friction_smoothing=0.5)
    q, qd, qdd = state(1, len(dynamics.joint_names))
    by_q, by_qd, D = dynamics.derivatives(q, qd, qdd)
    assert relative(by_q, differences(lambda x: dynamics(x, qd, qdd), q)) < DIFFERENCES
    assert relative(by_qd, differences(lambda x: dynamics(q, x, qdd), qd)) < DIFFERENCES
    assert relative(D, dynamics.mass_matrix(q)) < 1e-12
    for terms in (["gravity"], ["inertia"], ["coriolis", "friction"], []):
        part = rd.InverseDynamics(dynamics.mechanism, rotors=rotors, terms=terms, backend="python")
        found = part.derivatives(q, qd, qdd)
        for each, x, f in (
            (found[0], q, lambda x, p=part: p(x, qd, qdd)),
            (found[1], qd, lambda x, p=part: p(q, x, qdd)),
            (found[2], qdd, lambda x, p=part: p(q, qd, x)),
        ):
            assert np.allclose(each, differences(f, x), rtol=1e-6, atol=1e-6), terms


def test_the_work_of_derivatives_is_that_of_joints_and_the_joints_that_carry_them(
    tmp_path, monkeypatch
):
    multiply, count = Recorded.__mul__, [0]

    def counted(self, other):
        count[0] += 1
        return multiply(self, other)

    monkeypatch.setattr(Recorded, "__mul__", counted)
    monkeypatch.setattr(Recorded, "__rmul__", counted)

    def work(joints: int) -> int:
        path = tmp_path / "robot.yaml"
        path.write_text(yaml.safe_dump(random_dh(5, joints=joints)))
        tree = standard_form(rd.load(path))
        n = len(tree.joint_names)
        count[0] = 0
        record(lambda *state: np.array(of_bodies(tree, *state)).ravel(), (n, n, n))
        return count[0]

    # not with all pairs of joints: most of them are on different branches
    assert work(48) < 3 * work(24)


def test_power_is_the_rate_of_energy(tmp_path):
    # d(K + P)/dt = τ·q̇ without friction
    dynamics = rd.InverseDynamics(with_rotors(tmp_path, 2), terms=(*RIGID, "rotors"))
    q, qd, qdd = state(2, len(dynamics.joint_names))
    at = lambda t: (q + t * qd + t * t / 2 * qdd, qd + t * qdd)  # noqa: E731
    energy = lambda t: dynamics.kinetic_energy(*at(t)) + dynamics.potential_energy(at(t)[0])  # noqa: E731
    rate = (energy(STEP) - energy(-STEP)) / (2 * STEP)
    assert rate == pytest.approx(dynamics(q, qd, qdd) @ qd, rel=DIFFERENCES)
    gradient = differences(dynamics.potential_energy, q)
    assert relative(gradient, dynamics.gravity(q)) < DIFFERENCES


def test_a_wrench_that_helps_makes_torques_smaller(pinocchios):
    rng = np.random.default_rng(0)
    for dynamics, oracle, at in pinocchios:
        links = [link.name for link in dynamics.mechanism.links]
        wrenches = {links[0]: rng.normal(size=6), links[-1]: rng.normal(size=6)}
        expected = dynamics(*at) - sum(oracle.frame(k)[1].T @ w for k, w in wrenches.items())
        assert relative(dynamics(*at, wrenches=wrenches), expected) < RELATIVE_TO_PINOCCHIO
    # what holds a hanging mass is a force upwards
    mechanism = rd.load(CONFIG / "polar.yaml")
    dynamics = rd.InverseDynamics(mechanism)
    link, q, rest = mechanism.links[-1].name, np.array([0.3, 0.7]), np.zeros(2)
    loaded = rd.InverseDynamics(mechanism)
    loaded.set_payload(link, Inertial(2.0))
    lift = {link: np.array([*(-2.0 * mechanism.gravity), 0, 0, 0])}
    expected = dynamics(q, rest, rest)
    assert relative(loaded(q, rest, rest, wrenches=lift), expected) < 1e-12


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_robot_answers_the_same_questions(name):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism, backend=backend(name == CLOSED[0]))
    q, qd, qdd = home(dynamics)
    tau = dynamics(q, qd, qdd)
    assert relative(dynamics.forward(q, qd, tau), qdd) < 1e-9
    by_q, by_qd, by_qdd = dynamics.derivatives(q, qd, qdd)
    assert relative(by_q, differences(lambda x: dynamics(x, qd, qdd), q)) < 1e-6
    assert relative(by_qd, differences(lambda x: dynamics(q, x, qdd), qd)) < 1e-6
    assert relative(by_qdd, dynamics.mass_matrix(q)) < 1e-12
    # the platform's pose and Jacobian are those that the closure knows
    closed = dynamics.closed.forward_kinematics(q)
    platform = mechanism.platform or mechanism.links[-1].name
    if mechanism.platform:
        assert np.allclose(dynamics.pose(q, platform), closed.platform_pose, atol=1e-9)
        assert np.allclose(dynamics.jacobian(q, platform), closed.J_R, atol=1e-9)
        wrench = np.arange(1.0, 7.0)
        expected = tau - dynamics.closed.external_force(q, wrench)
        found = dynamics(q, qd, qdd, wrenches={platform: wrench})
        assert relative(found, expected) < 1e-9
    # … and any link's Jacobian is the difference of its pose
    link = mechanism.links[0].name
    point = differences(lambda x: dynamics.pose(x, link)[:3, 3], q)
    assert np.allclose(dynamics.jacobian(q, link)[:3], point, atol=1e-6)
    assert relative(dynamics.kinetic_energy(q, qd), qd @ dynamics.mass_matrix(q) @ qd / 2) < 1e-9
    gradient = differences(dynamics.potential_energy, q)
    assert np.allclose(gradient, dynamics.gravity(q), atol=1e-5)


def test_derivatives_with_sensors_are_right_where_they_agree_with_the_motors():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "rrr.yaml"), sensed=True, backend="python")
    closed, k = dynamics.closed, len(dynamics.joint_names)
    turned = closed.home.q_r[: len(dynamics.actuated_names)] + np.array([0.1, -0.05, 0.07])
    q = closed.solver.forward_kinematics(turned, closed.home.q_r)[:k]
    _, qd, qdd = home(dynamics)
    by_q, by_qd, by_qdd = dynamics.derivatives(q, qd, qdd)
    assert relative(by_q, differences(lambda x: dynamics(x, qd, qdd), q)) < 1e-6
    assert relative(by_qd, differences(lambda x: dynamics(q, x, qdd), qd)) < 1e-6
    assert relative(by_qdd, dynamics.mass_matrix(q)) < 1e-12


def test_batches_are_state_by_state_and_broadcast(tmp_path):
    dynamics = rd.InverseDynamics(with_rotors(tmp_path), threads=2)
    n = len(dynamics.joint_names)
    q, qd, qdd = (np.stack(x) for x in zip(*(state(k, n) for k in range(600)), strict=True))
    q, link = q.reshape(3, 200, n), "link4"
    qd, qdd = qd[:200], qdd[0]
    wrench = np.random.default_rng(0).normal(size=(3, 1, 6))
    calls = {
        "forward": lambda *x: dynamics.forward(*x[:3]),
        "by_q": lambda *x: dynamics.derivatives(*x[:3])[0],
        "kinetic": lambda *x: dynamics.kinetic_energy(*x[:2]),
        "potential": lambda *x: dynamics.potential_energy(x[0]),
        "pose": lambda *x: dynamics.pose(x[0], link),
        "jacobian": lambda *x: dynamics.jacobian(x[0], link),
        "wrench": lambda *x: dynamics(*x[:3], wrenches={link: x[3]}),
    }
    python = rd.InverseDynamics(dynamics.mechanism, backend="python")
    for name, call in calls.items():
        out = call(q, qd, qdd, wrench)
        assert out.shape[:2] == (3, 200), name
        assert relative(out[1, 7], call(q[1, 7], qd[7], qdd, wrench[1, 0])) < 1e-12, name
    at = (q[1, 7], qd[7], qdd)
    assert relative(python.forward(*at), dynamics.forward(*at)) < 1e-12
    assert relative(python.jacobian(at[0], link), dynamics.jacobian(at[0], link)) < 1e-12


def test_changes_are_seen_by_all_of_it(tmp_path):
    dynamics = rd.InverseDynamics(with_rotors(tmp_path, 4), friction_smoothing=0.3)
    q, qd, qdd = state(4, len(dynamics.joint_names))
    dynamics.forward(q, qd, qdd), dynamics.potential_energy(q), dynamics.derivatives(q, qd, qdd)
    dynamics.gravity_vector = [1.0, 2.0, 3.0]
    dynamics.set_payload("link4", Inertial(2.0, np.array([0.1, 0.2, 0.3]), np.eye(3) * 0.01))
    dynamics.set_friction(dynamics.joint_names[0], 3.0, 4.0, offset=0.5)
    fresh = rd.InverseDynamics(dynamics.mechanism, friction_smoothing=0.3)
    assert relative(dynamics.forward(q, qd, dynamics(q, qd, qdd)), qdd) < 1e-9
    assert relative(dynamics.potential_energy(q), fresh.potential_energy(q)) < 1e-12
    assert relative(dynamics.kinetic_energy(q, qd), fresh.kinetic_energy(q, qd)) < 1e-12
    for found, expected in zip(
        dynamics.derivatives(q, qd, qdd), fresh.derivatives(q, qd, qdd), strict=True
    ):
        assert relative(found, expected) < 1e-12


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_results_go_where_they_are_told(tmp_path, backend):
    dynamics = rd.InverseDynamics(with_rotors(tmp_path), backend=backend)
    n = len(dynamics.joint_names)
    one = state(1, n)
    rows = tuple(np.stack([x, 2 * x, 3 * x]) for x in one)
    wrenches = {"link4": np.arange(6.0)}
    for at in (one, rows):
        for call in (
            dynamics,
            dynamics.forward,
            dynamics.regressor,
            lambda *x, **to: dynamics(*x, wrenches=wrenches, **to),
            lambda q, *_, **to: dynamics.mass_matrix(q, **to),
            lambda q, *_, **to: dynamics.gravity(q, **to),
            lambda q, qd, *_, **to: dynamics.coriolis_matrix(q, qd, **to),
            lambda q, *_, **to: dynamics.pose(q, "link4", **to),
            lambda q, *_, **to: dynamics.jacobian(q, "link4", **to),
        ):
            expected = call(*at)
            out = np.full(expected.shape, np.nan)
            assert call(*at, out=out) is out
            assert np.array_equal(out, expected)
            spread = np.full((*expected.shape, 2), np.nan)[..., 0]  # not contiguous
            assert np.array_equal(call(*at, out=spread), expected)
            for wrong in (
                np.zeros(expected.shape, dtype=np.float32),
                np.zeros((*expected.shape, 1)),
                np.broadcast_to(0.0, expected.shape),
                expected.tolist(),
            ):
                with pytest.raises(rd.RobotDynamicsError, match="out: found"):
                    call(*at, out=wrong)
        # onto what is still read
        q, qd, qdd = (x.copy() for x in at)
        expected = dynamics(q, qd, qdd)
        assert np.array_equal(dynamics(q, qd, qdd, out=q), expected)
    closed = rd.InverseDynamics(rd.load(CONFIG / "five_bar.yaml"), backend=backend)
    at = home(closed)
    out = np.empty(len(closed.actuated_names))
    assert np.allclose(closed(*at, out=out), closed(*at), rtol=1e-9)


def test_wrong_questions_are_refused():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), terms=["gravity"])
    q = np.zeros(2)
    for ask, message in (
        (lambda: dynamics.pose(q, "hand"), "link: found 'hand'"),
        (lambda: dynamics.jacobian(q, "hand"), "one of base"),
        (lambda: dynamics(q, q, q, wrenches={"hand": np.zeros(6)}), "hand"),
        (lambda: dynamics(q, q, q, wrenches={"link1": np.zeros(3)}), "wrench on link1"),
        (lambda: dynamics(q, q, q, wrenches=[1.0]), "wrenches: found 'list'"),
        (lambda: dynamics(q, q, q, base_motion=[0.0] * 3), "base_motion: found 'list'"),
        (lambda: dynamics.gravity(q, base_motion=1.0), "base_motion: found 'float'"),
        (lambda: dynamics.motor_torques(q, q, q, base_motion=1.0), "base_motion: found 'float'"),
        (lambda: dynamics.forward(q, q, q), "inertia"),
        (lambda: dynamics.kinetic_energy(q, np.zeros(3)), "qd: found shape"),
        (lambda: dynamics.derivatives(q, q, [1.0]), "qdd: found shape"),
    ):
        with pytest.raises(rd.RobotDynamicsError, match=message):
            ask()


def test_what_is_no_state_no_pose_and_no_list_is_refused():
    chain = rd.InverseDynamics(rd.load(CONFIG / "five_bar.yaml")).closed
    for ask, message in (
        (lambda: chain.reset(3), "start: found 'int'"),
        (lambda: chain.inverse_kinematics("there"), "pose: found 'there'"),
        (lambda: rd.from_energies(1, 2, 3, 4), "q, qd: found"),
        (lambda: rd.from_energies(0, 0, [], []), "at least one coordinate"),
        (lambda: rd.identify(rd.load(CONFIG / "polar.yaml"), 3), "recordings: found 3"),
        (lambda: rd.load(""), "an empty name: no such file$"),
    ):
        with pytest.raises(rd.RobotDynamicsError, match=message):
            ask()
