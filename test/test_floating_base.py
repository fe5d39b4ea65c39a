# SPDX-License-Identifier: Apache-2.0
"""Robots on a floating base, against Pinocchio's free flyer."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from robots import CONFIG, example_robots, pin, random_urdf, relative
from scipy.spatial.transform import Rotation

import robot_dynamics as rd
from robot_dynamics.description.urdf_writer import urdf
from robot_dynamics.errors import InputError
from robot_dynamics.formulations.terms import TERMS

ROUNDING = 1e-11
"""Relative: Pinocchio adds up the same numbers in another order; forward dynamics solves them"""
RIGID = ("inertia", "coriolis", "gravity", "rotors")
"""What pin.rnea has in it: friction is not"""
FLYING = """<robot name="flying"><link name="world"/><link name="mast"/>
<joint name="stand" type="fixed"><parent link="world"/><child link="mast"/>
<origin xyz="1 2 3" rpy="0.3 -0.8 2"/></joint>
<joint name="free" type="floating"><parent link="mast"/><child link="body"/>
<origin xyz="-0.4 0.2 0.7" rpy="1.1 0.4 -2.1"/></joint>
<link name="body"><inertial><origin xyz="0.1 -0.2 0.05" rpy="0.3 0.2 0.1"/><mass value="7"/>
<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.02" ixz="-0.03" iyz="0.01"/></inertial></link>
<joint name="knee" type="revolute"><parent link="body"/><child link="leg"/>
<origin xyz="0.2 0.1 -0.3" rpy="0.5 0.6 0.7"/><axis xyz="1 2 -1"/><dynamics damping="0.3"/>
<limit effort="1" velocity="1" lower="-1" upper="1"/></joint>
<link name="leg"><inertial><origin xyz="0 0 -0.2"/><mass value="1.5"/>
<inertia ixx="0.03" iyy="0.04" izz="0.05" ixy="0.002" ixz="-0.003" iyz="0.001"/></inertial></link>
</robot>"""
ROBOTS = ("flying", "random", "go2.urdf")
HUMANOIDS = ("icub_reduced.urdf", "talos_reduced.urdf")


def described(name: str) -> tuple[str, pin.Model]:
    """What `rd.load` takes, and Pinocchio's model with a free flyer."""
    if name == "flying":
        return FLYING, pin.buildModelFromXML(FLYING)
    if name == "random":
        # its root link weighs nothing; give it a body, and no fixed joints' chain to end with
        text = (
            random_urdf(4)
            .replace(
                '<link name="link0"/>',
                '<link name="link0"><inertial><origin xyz="0.1 0 0.2"/><mass value="3"/><inertia '
                'ixx="0.1" iyy="0.2" izz="0.25" ixy="0.01" ixz="0" iyz="0.02"/></inertial></link>',
            )
            .replace('type="continuous"', 'type="revolute"')
        )
        return text, pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    found = [path for path in example_robots() if path.name == name]
    if not found:
        pytest.skip(f"example-robot-data is not installed, which has {name}")
    return str(found[0]), pin.buildModelFromUrdf(str(found[0]), pin.JointModelFreeFlyer())


class Pair:
    """One robot here and in Pinocchio, at a random state."""

    def __init__(self, name: str, **options):
        source, self.model = described(name)
        self.data = self.model.createData()
        self.mechanism = rd.load(source)
        joints = list(self.model.names)[2:]
        # some are compiled; the others run the same programs in Python, built sooner
        backend = "auto" if name in ("flying", "go2.urdf") else "python"
        self.robot = rd.FloatingBase(
            self.mechanism, **({"joints": joints, "terms": RIGID, "backend": backend} | options)
        )
        rng = np.random.default_rng(7)
        n = self.model.nv
        self.q = np.concatenate([rng.uniform(-2, 2, 3), rng.normal(size=4), np.zeros(n - 6)])
        self.q[3:7] /= np.linalg.norm(self.q[3:7])
        self.q[7:] = rng.uniform(-1.5, 1.5, n - 6)
        self.v, self.a = rng.uniform(-2, 2, (2, n))
        self.tau = rng.uniform(-30, 30, n)

    @property
    def state(self):
        return self.q, self.v, self.a

    def rnea(self, q, v, a):
        return pin.rnea(self.model, self.data, q, v, a).copy()


@pytest.fixture(params=ROBOTS)
def pair(request) -> Pair:
    return Pair(request.param)


def symmetric(M: np.ndarray) -> np.ndarray:
    return np.triu(M) + np.triu(M, 1).T


@pytest.mark.parametrize("name", [*ROBOTS, *HUMANOIDS])
def test_the_whole_torques_are_pinocchios(name):
    pair = Pair(name)
    assert relative(pair.robot(*pair.state), pair.rnea(*pair.state)) < ROUNDING
    assert len(pair.robot.joint_names) == pair.model.nv


def test_matrices_and_gravity_are_pinocchios(pair):
    model, data, robot, (q, v, _) = pair.model, pair.data, pair.robot, pair.state
    D = symmetric(pin.crba(model, data, q))
    assert relative(robot.mass_matrix(q), D) < ROUNDING
    g = pin.computeGeneralizedGravity(model, data, q).copy()
    assert relative(robot.gravity(q), g) < ROUNDING
    # the one connection without torsion on these axes: Pinocchio's too
    C = pin.computeCoriolisMatrix(model, data, q, v)
    assert relative(robot.coriolis_matrix(q, v), C) < ROUNDING
    assert relative(robot.coriolis_matrix(q, v) @ v + g, pair.rnea(q, v, 0 * v)) < ROUNDING


@pytest.mark.parametrize("name", [*ROBOTS, *HUMANOIDS])
def test_forward_dynamics_are_pinocchios(name):
    pair = Pair(name)
    expected = pin.aba(pair.model, pair.data, pair.q, pair.v, pair.tau)
    # iCub's D has a condition of 1e7
    found = pair.robot.forward(pair.q, pair.v, pair.tau)
    assert relative(found, expected) < 1e-9


@pytest.mark.parametrize("name", ["flying", "random", "go2.urdf", "talos_reduced.urdf"])
def test_derivatives_in_the_tangent_are_pinocchios(name):
    pair = Pair(name)
    pin.computeRNEADerivatives(pair.model, pair.data, *pair.state)
    expected = pair.data.dtau_dq, pair.data.dtau_dv, symmetric(pair.data.M)
    for found, each in zip(pair.robot.derivatives(*pair.state), expected, strict=True):
        assert relative(found, each) < ROUNDING


@pytest.mark.parametrize("name", ["flying", "random", "go2.urdf"])
def test_the_regressor_is_pinocchios_on_each_bodys_parameters(name):
    pair = Pair(name)
    Y, names = pair.robot.regressor(*pair.state), pair.robot.parameter_names
    assert relative(Y @ pair.robot.parameters, pair.rnea(*pair.state)) < ROUNDING
    expected = pin.computeJointTorqueRegressor(pair.model, pair.data, *pair.state)
    # Pinocchio's order of a body's numbers: m, h, Ixx Ixy Iyy Ixz Iyz Izz about the joint's origin
    joints = list(pair.model.names)[2:]
    if name == "random":  # whose links' frames are not their joints'
        return
    for joint in joints:
        child = next(x.name for x in pair.mechanism.links if x.joint.name == joint)
        columns = [k for k, each in enumerate(names) if each.split(".")[0] == child]
        k = pair.model.getJointId(joint) - 1
        assert len(columns) == 10
        assert relative(Y[:, columns], expected[:, 10 * k : 10 * k + 10]) < ROUNDING


def test_poses_jacobians_and_energies_are_pinocchios(pair):
    model, data, (q, v, _) = pair.model, pair.data, pair.state
    pin.framesForwardKinematics(model, data, q)
    names = [x.name for x in pair.mechanism.links if model.existBodyName(x.name)]
    for link in (names[0], names[-1]):
        frame = model.getFrameId(link)
        assert pair.robot.pose(q, link) == pytest.approx(data.oMf[frame].homogeneous, abs=1e-12)
        J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        assert pair.robot.jacobian(q, link) == pytest.approx(J, abs=1e-12)
    kinetic = pin.computeKineticEnergy(model, data, q, v)
    potential = pin.computePotentialEnergy(model, data, q)
    assert pair.robot.kinetic_energy(q, v) == pytest.approx(kinetic, rel=1e-12)
    assert pair.robot.potential_energy(q) == pytest.approx(potential, rel=1e-12)


@pytest.mark.parametrize("name", ["flying", "go2.urdf"])
def test_contact_wrenches_hold_the_base(name):
    pair = Pair(name)
    model, data, q = pair.model, pair.data, pair.q
    rng = np.random.default_rng(2)
    pin.framesForwardKinematics(model, data, q)
    links = [x.name for x in pair.mechanism.links if model.existBodyName(x.name)][-2:]
    pushes = {link: rng.uniform(-20, 20, 6) for link in links}
    forces = [pin.Force.Zero() for _ in range(model.njoints)]
    for link, wrench in pushes.items():
        frame = model.frames[model.getFrameId(link)]
        here = data.oMf[model.getFrameId(link)]
        on_link = pin.Force(here.rotation.T @ wrench[:3], here.rotation.T @ wrench[3:])
        forces[frame.parentJoint] = forces[frame.parentJoint] + frame.placement.act(on_link)
    expected = pin.rnea(model, data, *pair.state, forces)
    assert relative(pair.robot(*pair.state, wrenches=pushes), expected) < ROUNDING
    taken = pair.robot.wrench_torques(q, pushes)
    assert relative(pair.robot(*pair.state) - taken, expected) < ROUNDING
    R = {link: data.oMf[model.getFrameId(link)].rotation for link in links}
    own = {k: np.concatenate([R[k].T @ w[:3], R[k].T @ w[3:]]) for k, w in pushes.items()}
    assert pair.robot.wrench_torques(q, own, axes="link") == pytest.approx(taken, abs=1e-11)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, np.pi])
def test_no_position_is_singular(pitch):
    """Where roll and yaw are one the joints x, y, z, rz, ry, rx lose a direction."""
    pair = Pair("flying")
    for turn in (("yx", [pitch, 0.7]), ("zyx", [1.0, pitch, -2.0])):
        pair.q[3:7] = Rotation.from_euler(*turn).as_quat()
        assert relative(pair.robot(*pair.state), pair.rnea(*pair.state)) < ROUNDING
        expected = pin.aba(pair.model, pair.data, pair.q, pair.v, pair.tau)
        assert relative(pair.robot.forward(pair.q, pair.v, pair.tau), expected) < ROUNDING
        pin.computeRNEADerivatives(pair.model, pair.data, *pair.state)
        assert relative(pair.robot.derivatives(*pair.state)[0], pair.data.dtau_dq) < ROUNDING


def test_a_quaternion_counts_by_its_direction_alone():
    pair = Pair("flying")
    expected = pair.robot(*pair.state)
    for factor in (-1.0, 3.0, 1e-3):
        scaled = pair.q.copy()
        scaled[3:7] *= factor
        assert relative(pair.robot(scaled, pair.v, pair.a), expected) < ROUNDING
        assert pair.robot.pose(scaled, "leg") == pytest.approx(pair.robot.pose(pair.q, "leg"))
        assert pair.robot.integrate(scaled, pair.v) == pytest.approx(
            np.sign(factor) ** np.isin(np.arange(len(scaled)), range(3, 7))
            * pair.robot.integrate(pair.q, pair.v)
        )
    scaled[3:7] = 0.0
    assert np.isnan(pair.robot(scaled, pair.v, pair.a)).all()


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-5, 0.3, 3.0, 7.0])
def test_integrate_is_pinocchios(size):
    pair = Pair("flying")
    step = pair.v * size / np.linalg.norm(pair.v[3:6])
    expected = pin.integrate(pair.model, pair.q, step)
    found = pair.robot.integrate(pair.q, step)
    assert min(abs(found - expected).max(), abs(found[3:7] + expected[3:7]).max()) < 1e-13
    assert abs(found[:3] - expected[:3]).max() < 1e-13
    # however far it slides while it turns but little
    far = np.array([300.0, -200.0, 100.0, *step[3:]])
    expected = pin.integrate(pair.model, pair.q, far)
    assert abs(pair.robot.integrate(pair.q, far)[:3] - expected[:3]).max() < 3e-13 * 300
    many = pair.robot.integrate(np.stack([pair.q] * 2), step)
    assert many == pytest.approx(np.stack([found] * 2), abs=1e-15)


@pytest.mark.parametrize("formulation", ["lagrange_euler", "gibbs_appell", "murphy"])
def test_every_formulation_floats(formulation):
    pair = Pair("flying", formulation=formulation)
    assert relative(pair.robot(*pair.state), pair.rnea(*pair.state)) < ROUNDING


@pytest.mark.parametrize("rotors", ["full", "reflected"])
def test_terms_add_up_on_a_floating_base_with_rotors(rotors):
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    assert mechanism.rotors
    rng = np.random.default_rng(3)
    whole = rd.FloatingBase(mechanism, rotors=rotors, backend="python")
    n = len(whole.joint_names)
    q, (v, a) = rng.normal(size=n + 1), rng.uniform(-2, 2, (2, n))
    parts = [
        rd.FloatingBase(mechanism, rotors=rotors, terms=term, backend="python") for term in TERMS
    ]
    assert relative(sum(part(q, v, a) for part in parts), whole(q, v, a)) < ROUNDING
    # and their derivatives, the base's own motion among them
    some = zip(*(part.derivatives(q, v, a) for part in parts), strict=True)
    for found, expected in zip(map(sum, some), whole.derivatives(q, v, a), strict=True):
        assert relative(found, expected) < ROUNDING
    if rotors == "full":
        for part in (whole, *parts):
            Y = part.regressor(q, v, a) @ part.parameters
            assert abs(Y - part(q, v, a)).max() < 1e-11
    D, bias = whole.mass_matrix(q), whole(q, v, 0 * a)
    assert relative(D @ a + bias, whole(q, v, a)) < ROUNDING
    assert relative(whole.forward(q, v, whole(q, v, a)), a) < 1e-9


def test_the_joints_torques_are_those_on_a_base_that_is_moved_from_outside():
    """With rotors, which Pinocchio has no word for."""
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    robot = rd.FloatingBase(mechanism, backend="python")
    moved = rd.InverseDynamics(mechanism, backend="python")
    rng = np.random.default_rng(5)
    n = len(robot.joint_names)
    q, (v, a) = rng.normal(size=n + 1), rng.uniform(-2, 2, (2, n))
    R = Rotation.from_quat(q[3:7]).as_matrix()
    # of a spatial acceleration the linear part is a - ω × v
    motion = rd.BaseMotion(v[3:6], a[3:6], a[:3] + np.cross(v[3:6], v[:3]), R)
    expected = moved(q[7:], v[6:], a[6:], base_motion=motion)
    assert relative(robot(q, v, a)[6:], expected) < ROUNDING


def test_batches_copies_payloads_and_gravity():
    pair = Pair("flying")
    rng = np.random.default_rng(1)
    n = pair.model.nv
    q, (v, a) = rng.normal(size=(4, n + 1)), rng.uniform(-2, 2, (2, 4, n))
    robot = pair.robot
    for name, state in (
        ("__call__", (q, v, a)), ("mass_matrix", (q,)), ("coriolis_matrix", (q, v)),
        ("gravity", (q,)), ("forward", (q, v, a)), ("regressor", (q, v, a)),
        ("kinetic_energy", (q, v)), ("potential_energy", (q,)),
    ):  # fmt: skip
        each = [getattr(robot, name)(*(x[i] for x in state)) for i in range(4)]
        assert getattr(robot, name)(*state) == pytest.approx(np.stack(each), abs=1e-11), name
    body = rd.Inertial(2.0, np.array([0.1, 0.2, 0.3]), np.diag([0.1, 0.1, 0.1]))
    for link in ("body", "leg"):
        robot.set_payload(link, body)
        frame = pair.model.frames[pair.model.getFrameId(link)]
        inertia = pin.Inertia(2.0, body.center_of_mass, body.inertia)
        pair.model.appendBodyToJoint(frame.parentJoint, inertia, frame.placement)
    robot.gravity_vector = [1.0, -2.0, -3.0]
    pair.model.gravity.linear = np.array([1.0, -2.0, -3.0])
    pair.data = pair.model.createData()
    expected = pair.rnea(*pair.state)
    for other in (robot, copy.copy(robot), pickle.loads(pickle.dumps(robot))):
        assert type(other) is rd.FloatingBase
        assert other.joint_names == robot.joint_names
        assert relative(other(*pair.state), expected) < ROUNDING


def test_home_is_a_position_with_the_described_joints(tmp_path):
    polar = rd.load(CONFIG / "polar.yaml")
    polar = replace(polar, home=dict(zip(polar.joint_names, (0.3, 0.2), strict=True)))
    robot = rd.FloatingBase(polar, backend="python")
    assert robot.home.tolist() == [0, 0, 0, 0, 0, 0, 1, 0.3, 0.2]
    # a floating joint's own home: x, y, z, then roll, pitch and yaw
    angles = {"rx": 0.4, "ry": -0.3, "rz": 0.2}
    places = {f"free_{part}": x for part, x in ({"x": 1.0, "y": 2.0, "z": 3.0} | angles).items()}
    flying = replace(rd.load(FLYING), home=places)
    robot = rd.FloatingBase(flying, backend="python")
    base = flying.moving[5].name
    expected = rd.InverseDynamics(flying, backend="python")
    at_home = expected.pose(expected.home, base)
    assert robot.pose(robot.home, base) == pytest.approx(at_home, abs=1e-14)
    state = (robot.home, *np.ones((2, len(robot.joint_names))))
    for found, given in zip(robot.tree_state(*state), state, strict=True):
        assert found.tolist() == given.tolist()


def test_an_empty_batch_is_linearized():
    robot = rd.FloatingBase(rd.load(CONFIG / "polar.yaml"), backend="python")
    assert robot.linearize(np.zeros((0, 9))).A.shape == (0, 16, 16)


def test_many_joints_have_a_coriolis_matrix_and_batches_of_it():
    pair = Pair("talos_reduced.urdf")
    C = pair.robot.coriolis_matrix(np.stack([pair.q] * 2), np.stack([pair.v, 2 * pair.v]))
    expected = pin.computeCoriolisMatrix(pair.model, pair.data, pair.q, pair.v)
    assert relative(C[0], expected) < ROUNDING
    assert relative(C[1], 2 * expected) < ROUNDING


def test_friction_is_the_joints_alone():
    with_friction = Pair("flying", terms=TERMS)
    robot, state = with_friction.robot, with_friction.state
    expected = with_friction.rnea(*state)
    expected[6] += 0.3 * state[1][6]
    assert relative(robot(*state), expected) < ROUNDING
    robot.set_friction("knee", 0.5, 0.0)
    expected[6] += 0.2 * state[1][6]
    assert relative(robot(*state), expected) < ROUNDING
    robot.set_friction("knee", 0.5, 0.0, offset=0.1, stiffness=-2.0)
    expected[6] += 0.1 - 2.0 * state[0][7]
    assert relative(robot(*state), expected) < ROUNDING
    assert relative(robot.regressor(*state) @ robot.parameters, expected) < ROUNDING
    with pytest.raises(InputError, match="free_rx"):
        robot.set_friction("free_rx", 0.5, 0.0)


def test_a_base_with_a_floating_joint_in_pinocchios_or_mujocos_model_floats():
    _, model = described("go2.urdf")
    robot = rd.FloatingBase(rd.from_pinocchio(model), terms=RIGID)
    assert robot.joint_names[6:] == tuple(model.names)[2:]
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    v, a = np.random.default_rng(0).uniform(-1, 1, (2, model.nv))
    assert relative(robot(q, v, a), pin.rnea(model, model.createData(), q, v, a)) < ROUNDING


def test_mujocos_free_joint_is_a_floating_base():
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    text = """<mujoco><worldbody><body name="hull" pos="1 2 3" euler="20 30 40"><freejoint/>
      <inertial pos="0.1 0.2 0.3" mass="4" diaginertia="0.3 0.2 0.4"/>
      <body name="arm" pos="0.1 0 0.2" euler="0 40 10"><joint name="hinge" axis="1 1 0"/>
        <inertial pos="0 0.1 0.3" mass="1" diaginertia="0.03 0.02 0.04"/></body>
      </body></worldbody></mujoco>"""
    robot = rd.FloatingBase(rd.load(text))
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(9)
    q = rng.normal(size=8)
    q[3:7] /= np.linalg.norm(q[3:7])
    v, a = rng.uniform(-1, 1, (2, 7))
    R = Rotation.from_quat(q[3:7]).as_matrix()
    # MuJoCo: w first; the linear part on the world's axes, and its derivative there
    data.qpos[:] = [*q[:3], q[6], *q[3:6], q[7]]
    data.qvel[:] = [*(R @ v[:3]), *v[3:]]
    data.qacc[:] = [*(R @ (a[:3] + np.cross(v[3:6], v[:3]))), *a[3:]]
    mujoco.mj_inverse(model, data)
    expected = np.array([*(R.T @ data.qfrc_inverse[:3]), *data.qfrc_inverse[3:]])
    assert relative(robot(q, v, a), expected) < ROUNDING


def test_a_gantry_with_bodies_of_its_own_is_no_floating_joint():
    mechanism = rd.load(FLYING)
    links = list(mechanism.links)
    k = next(k for k, link in enumerate(links) if link.joint.name == "free_x")
    links[k] = replace(links[k], inertial=rd.Inertial(5.0))
    robot = rd.FloatingBase(replace(mechanism, links=tuple(links)), backend="python")
    assert len(robot.joint_names) == 6 + 7
    assert robot.joint_names[0] == "base_x"


def test_the_inertia_of_a_root_link_counts_on_a_floating_base_alone(tmp_path):
    text, model = described("random")
    lighter = rd.load(random_urdf(4).replace('type="continuous"', 'type="revolute"'))
    heavier = rd.load(text)
    state = np.random.default_rng(0).uniform(-1, 1, (3, len(lighter.joint_names)))
    fixed = [rd.InverseDynamics(each, backend="python")(*state) for each in (lighter, heavier)]
    assert (fixed[0] == fixed[1]).all()
    # and goes with the robot into a URDF
    again = rd.load(urdf(heavier))
    q, (v, a) = pin.neutral(model), np.random.default_rng(1).uniform(-1, 1, (2, model.nv))
    expected = pin.rnea(model, model.createData(), q, v, a)
    for each in (heavier, again):
        robot = rd.FloatingBase(each, joints=list(model.names)[2:], backend="python")
        assert relative(robot(q, v, a), expected) < ROUNDING
    assert relative(rd.FloatingBase(lighter, backend="python")(q, v, a)[:3], expected[:3]) > 0.01


@pytest.mark.parametrize("name", ["flying", "go2.urdf"])
def test_the_linearization_is_pinocchios(name):
    pair = Pair(name)
    model, data, q, v, tau = pair.model, pair.data, pair.q, pair.v, pair.tau
    n = model.nv
    found = pair.robot.linearize(q, v, tau)
    pin.computeABADerivatives(model, data, q, v, tau)
    for part, expected in (
        (found.A[n:, :n], data.ddq_dq),
        (found.A[n:, n:], data.ddq_dv),
        (found.B[n:], symmetric(data.Minv)),
    ):
        assert relative(part, expected) < 1e-10
    assert (found.A[:n, n:] == np.eye(n)).all()
    assert not found.B[:n].any()
    # over a time the places near q go with ∂(q ⊕ v dt)/∂q = exp(A dt)
    dt = 0.1
    flow = scipy.linalg.logm(pin.dIntegrate(model, q, v * dt)[0]) / dt
    assert abs(found.A[:n, :n] - flow).max() < 1e-12
    assert found.state_names[: n + 1] == (*pair.robot.joint_names, f"d/dt {found.state_names[0]}")
    assert found.state_units[:7] == ("m", "m", "m", "rad", "rad", "rad", "rad")
    assert found.input_units[:7] == ("N", "N", "N", "N·m", "N·m", "N·m", "N·m")
    assert relative(found.qdd, pair.robot.forward(q, v, tau)) < ROUNDING
    # held at its rates, and many at once
    held = pair.robot.linearize(np.stack([q, q]), np.stack([v, 0 * v]))
    assert held.q.shape == (2, n + 1)
    for k, rates in enumerate((v, 0 * v)):
        torques = pin.rnea(model, data, q, rates, 0 * v)
        assert relative(held.tau[k], torques) < ROUNDING
        pin.computeABADerivatives(model, data, q, rates, torques)
        assert relative(held.A[k, n:, :n], data.ddq_dq) < 1e-10
    assert not held.A[1, :n, :n].any()


def test_the_motors_side_is_that_of_a_tree_with_the_rotor_in_it(tmp_path):
    """Pinocchio carries the rotor on a joint of its own, at gear ratio times the knee's rate."""
    ratio, own = -50.0, "0.01 -0.02 0.03"
    place = 'xyz="0.3 -0.1 0.2" rpy="0.4 1.2 -0.7"'
    joint = (
        f'<joint name="spin" type="revolute"><parent link="body"/><child link="rotor"/><origin '
        f'{place}/><axis xyz="0 0 1"/><limit effort="1" velocity="1" lower="-9" upper="9"/></joint>'
        f'<link name="rotor"><inertial><origin xyz="{own}"/><mass value="0.6"/><inertia '
        'ixx="0.002" iyy="0.003" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    whole = pin.buildModelFromXML(FLYING.replace("</robot>", joint))
    (tmp_path / "flying.urdf").write_text(FLYING)
    path = tmp_path / "flying.yaml"
    path.write_text(
        "urdf: flying.urdf\nrotors:\n  knee: {mount: body, origin: {xyz: [0.3, -0.1, 0.2], "
        f"rpy: [0.4, 1.2, -0.7]}}, gear_ratio: {ratio}, mass: 0.6, center_of_mass: {own}, "
        "inertia: {ixx: 0.002, iyy: 0.003, izz: 0.004}}\n"
    )
    robot = rd.FloatingBase(rd.load(path), terms=RIGID)
    rng = np.random.default_rng(8)
    q, (v, a) = rng.normal(size=(2, 8)), rng.uniform(-2, 2, (2, 7))
    found = robot.motor_torques(q, v, a)
    assert robot.motor_names == ("knee",)
    assert found.drive.shape == found.gear.shape == (2, 1)
    knee, spin = (whole.getJointId(name) + 5 - 1 for name in ("knee", "spin"))
    for k in range(2):
        full_q, full_v, full_a = np.zeros(9), np.zeros(8), np.zeros(8)
        full_q[:7] = q[k, :7]
        full_q[3:7] /= np.linalg.norm(full_q[3:7])
        full_v[:6], full_a[:6] = v[:6], a[:6]
        for full, mine, first in ((full_q, q[k], 1), (full_v, v, 0), (full_a, a, 0)):
            full[knee + first], full[spin + first] = mine[-1], ratio * mine[-1]
        tau = pin.rnea(whole, whole.createData(), full_q, full_v, full_a)
        assert found.gear[k, 0] == pytest.approx(tau[knee] / ratio, rel=1e-11)
        assert found.drive[k, 0] == pytest.approx(tau[knee] / ratio + tau[spin], rel=1e-11)
        assert robot(q[k], v, a)[:6] == pytest.approx(tau[:6], rel=1e-11)
    still = robot.motor_torques(q[0], 0 * v, 0 * a)
    robot.gravity_vector = [0, 0, 0]
    assert abs(still.gear).min() > 0.01
    assert robot.motor_torques(q[0], 0 * v, 0 * a).drive == pytest.approx(0.0, abs=1e-15)


def numbers(found) -> list[np.ndarray]:
    many = found if isinstance(found, (tuple, list)) else [found]
    return [np.squeeze(x.full() if hasattr(x, "full") else np.asarray(x)) for x in many]


@pytest.mark.parametrize(("library", "name"), [("casadi", "go2.urdf"), ("casadi", "flying"),
                                               ("jax", "flying")])  # fmt: skip
def test_functions_of_other_libraries_float(library, name):
    pytest.importorskip(library, reason=f"{library} is not installed")
    pair = Pair(name)
    model, data, (q, v, a), tau = pair.model, pair.data, pair.state, pair.tau
    if library == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    f = rd.functions(
        pair.mechanism, library, terms=RIGID, floating_base=True, joints=list(model.names)[2:]
    )
    assert f.joint_names == f.actuated_names == pair.robot.joint_names
    assert relative(numbers(f.torques(q, v, a))[0], pair.rnea(q, v, a)) < ROUNDING
    if library == "jax":
        many = f.torques(np.stack([q, q]), v, np.stack([a, 0 * a]))
        assert relative(numbers(many)[0][1], pair.rnea(q, v, 0 * a)) < ROUNDING
        return
    expected = pin.aba(model, data, q, v, tau)
    assert relative(numbers(f.forward(q, v, tau))[0], expected) < 1e-10
    C = pin.computeCoriolisMatrix(model, data, q, v)
    assert relative(numbers(f.coriolis_matrix(q, v))[0], C) < ROUNDING
    assert relative(numbers(f.mass_matrix(q))[0], symmetric(pin.crba(model, data, q))) < ROUNDING
    g = pin.computeGeneralizedGravity(model, data, q)
    assert relative(numbers(f.gravity(q))[0], g) < ROUNDING
    pin.computeRNEADerivatives(model, data, q, v, a)
    expected = data.dtau_dq, data.dtau_dv, symmetric(data.M)
    for found, each in zip(numbers(f.derivatives(q, v, a)), expected, strict=True):
        assert relative(found, each) < ROUNDING
    kinetic, potential = numbers(f.energies(q, v))
    assert kinetic == pytest.approx(pin.computeKineticEnergy(model, data, q, v), rel=1e-12)
    assert potential == pytest.approx(pin.computePotentialEnergy(model, data, q), rel=1e-12)
    pin.framesForwardKinematics(model, data, q)
    link = pair.mechanism.links[-1].name
    frame = model.getFrameId(link)
    assert numbers(f.pose(link)(q))[0] == pytest.approx(data.oMf[frame].homogeneous, abs=1e-12)
    J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
    assert numbers(f.jacobian(link)(q))[0] == pytest.approx(J, abs=1e-12)
    Y = numbers(f.regressor(q, v, a))[0]
    assert relative(Y @ f.parameters, pair.rnea(q, v, a)) < ROUNDING
    if name != "flying":
        return
    # with π and gravity as arguments
    f = rd.functions(
        pair.mechanism, library, terms=RIGID, floating_base=True,
        arguments=["parameters", "gravity"],
    )  # fmt: skip
    more = f.parameters, [1.0, -2.0, -3.0]
    model.gravity.linear = np.array(more[1])
    assert relative(numbers(f.torques(q, v, a, *more))[0], pair.rnea(q, v, a)) < ROUNDING
    assert relative(numbers(f.coriolis_matrix(q, v, *more))[0], C) < ROUNDING
    expected = pin.aba(model, data, q, v, tau)
    assert relative(numbers(f.forward(q, v, tau, *more))[0], expected) < 1e-10
    g = pin.computeGeneralizedGravity(model, data, q)
    assert relative(numbers(f.gravity(q, *more))[0], g) < ROUNDING


def test_functions_refuse_what_cannot_float():
    pytest.importorskip("casadi", reason="casadi is not installed")
    with pytest.raises(InputError, match=r"floating base: found 'loops \(five_bar\)'"):
        rd.functions(rd.load(CONFIG / "five_bar.yaml"), "casadi", floating_base=True)
    with pytest.raises(InputError, match=r"joints.*floating_base=True"):
        rd.functions(rd.load(FLYING), "casadi", joints=["knee"])


BARGE = """
symbols: {m: 12.0}
base_inertial: {mass: 2*m, center_of_mass: [0.1, -0.2, 0.05],
  inertia: {ixx: 1.5, iyy: 1.0, izz: 2.0, ixy: 0.1, ixz: -0.2, iyz: 0.3}}
links:
  - {name: boom, origin: {xyz: [0.3, 0, 0.4], rpy: [0.2, 0.1, -0.3]}, a: 0.5, alpha: pi/3,
     joint: {name: swing, type: revolute, limits: {lower: -2, upper: 2}},
     mass: 3, center_of_mass: [-0.2, 0, 0.1], inertia: {ixx: 0.1, iyy: 0.2, izz: 0.25}}
  - {name: hook, joint: {name: reach, type: prismatic}, mass: m/8, center_of_mass: [0, 0, 0.3],
     inertia: {ixx: 0.02, iyy: 0.02, izz: 0.01}}
"""
BESIDE = (
    "urdf: barge.urdf\ninertials: {base: {mass: 24, center_of_mass: [0.1, -0.2, 0.05], inertia: "
)
BESIDE += "{ixx: 1.5, iyy: 1.0, izz: 2.0, ixy: 0.1, ixz: -0.2, iyz: 0.3}}}\n"


def test_a_yaml_says_what_its_base_weighs(tmp_path):
    """In numbers of its own, beside a URDF, and from there and back."""
    path = tmp_path / "barge.yaml"
    path.write_text(BARGE)
    mechanism = rd.load(path)
    bare = urdf(replace(mechanism, base_inertial=rd.Inertial()))
    model = pin.buildModelFromXML(bare, pin.JointModelFreeFlyer())
    tensor = np.array([[1.5, 0.1, -0.2], [0.1, 1.0, 0.3], [-0.2, 0.3, 2.0]])
    body = pin.Inertia(24.0, np.array([0.1, -0.2, 0.05]), tensor)
    model.appendBodyToJoint(1, body, pin.SE3.Identity())
    rng = np.random.default_rng(4)
    q, (v, a) = pin.randomConfiguration(model, -np.ones(9), np.ones(9)), rng.normal(size=(2, 8))
    expected = pin.rnea(model, model.createData(), q, v, a)
    (tmp_path / "barge.urdf").write_text(bare)
    beside = tmp_path / "beside.yaml"
    beside.write_text(BESIDE)
    for source in (path, beside, urdf(mechanism)):
        robot = rd.FloatingBase(rd.load(source), backend="python")
        assert relative(robot(q, v, a), expected) < ROUNDING
    # where something else moves the base, another link is it
    path.write_text(BARGE.replace("links:", "base_motion: swing\nlinks:"))
    with pytest.raises(rd.DescriptionError, match=r"base_inertial.*base_motion"):
        rd.load(path)


def test_a_base_that_was_moved_from_outside_floats_too(tmp_path):
    (tmp_path / "flying.urdf").write_text(FLYING)
    path = tmp_path / "flying.yaml"
    path.write_text("urdf: flying.urdf\nbase_motion: free\n")
    whole, (_, model) = rd.FloatingBase(rd.load(path), terms=RIGID), described("flying")
    q, (v, a) = pin.neutral(model), np.random.default_rng(1).uniform(-1, 1, (2, model.nv))
    world = rd.FloatingBase(rd.load(FLYING), terms=RIGID)
    q[3:7] = [0.5, 0.5, 0.5, 0.5]
    # gravity is then given in the floating joint's own frame
    R = world.pose(world.neutral, "body")[:3, :3]
    whole.gravity_vector = R.T @ world.gravity_vector
    assert relative(whole(q, v, a), world(q, v, a)) < ROUNDING


def test_what_cannot_float_is_refused(tmp_path):
    with pytest.raises(InputError, match="loops"):
        rd.FloatingBase(rd.load(CONFIG / "five_bar.yaml"))
    with pytest.raises(InputError, match="a Mechanism"):
        rd.FloatingBase("go2")
    mechanism = rd.load(FLYING)
    with pytest.raises(InputError, match="'ankle'"):
        rd.FloatingBase(mechanism, joints=["ankle"])
    text = random_urdf(4, branching=False)
    names = rd.load(text).joint_names
    with pytest.raises(InputError, match="expected after"):
        rd.FloatingBase(rd.load(text), joints=[*reversed(names)])
    beside = FLYING.replace(
        "</robot>",
        '<link name="door"/><joint name="hinge" type="revolute"><parent link="world"/>'
        '<child link="door"/><limit effort="1" velocity="1"/></joint></robot>',
    )
    with pytest.raises(InputError, match="'hinge'"):
        rd.FloatingBase(rd.load(beside))
    path = tmp_path / "flying.yaml"
    (tmp_path / "flying.urdf").write_text(FLYING)
    path.write_text("urdf: flying.urdf\nfriction: {free_x: {viscous: 1.0, coulomb: 0}}\n")
    with pytest.raises(InputError, match="free_x"):
        rd.FloatingBase(rd.load(path))
    robot = rd.FloatingBase(mechanism)
    state = robot.neutral, np.zeros(7), np.zeros(7)
    assert robot.neutral == pytest.approx([0, 0, 0, 0, 0, 0, 1, 0])
    parts = [f"free_{part}" for part in ("x", "y", "z", "rx", "ry", "rz")]
    assert robot.joint_names == robot.actuated_names == (*parts, "knee")
    with pytest.raises(InputError, match=r"q: found shape \(7,\), expected \(8,\)"):
        robot(np.zeros(7), *state[1:])
    for name, count in (
        ("__call__", 3), ("forward", 3), ("derivatives", 3), ("regressor", 3), ("gravity", 1),
        ("motor_torques", 3),
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"base_motion: found 'a floating base'"):
            getattr(robot, name)(*state[:count], base_motion=rd.BaseMotion())
    with pytest.raises(InputError, match=r"shape \(7,\), expected \(8,\)"):
        robot.linearize(np.zeros(7))
    with pytest.raises(TypeError, match="formulations"):
        rd.FloatingBase(mechanism, formulations="murphy")
    for bad in ((np.zeros(7), state[1]), (state[0], np.zeros(6))):
        with pytest.raises(InputError, match="shape"):
            robot.integrate(*bad)
