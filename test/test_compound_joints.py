# SPDX-License-Identifier: Apache-2.0
"""Joints of several degrees of freedom against Pinocchio's own, and the errors for wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import robot_dynamics as rd
from robot_dynamics.description.fields import DescriptionWarning

pin = pytest.importorskip("pinocchio", reason="pinocchio is not installed: extra `dev`")

URDF = """<robot name="cart"><link name="world"/>
<joint name="base" type="floating"><parent link="world"/><child link="body"/>
  <origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/></joint>
<link name="body"><inertial><origin xyz="0.01 0.02 0.03" rpy="0.3 0 0"/><mass value="3"/>
  <inertia ixx="0.1" iyy="0.12" izz="0.14" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
<joint name="table" type="planar"><parent link="body"/><child link="plate"/>
  <axis xyz="0 0 1"/><origin xyz="0.3 0 0" rpy="0.4 0.5 0"/></joint>
<link name="plate"><inertial><origin xyz="0.1 0.0 0.03"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.12" izz="0.14" ixy="0" ixz="0.01" iyz="0"/></inertial></link>
<joint name="ball" type="revolute"><parent link="plate"/><child link="rod"/>
  <origin xyz="0 0.2 0.1" rpy="0.2 0 1"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<link name="rod"><inertial><origin xyz="0 0 0.2" rpy="0 1 0"/><mass value="1"/>
  <inertia ixx="0.03" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>"""
BESIDE = "urdf: cart.urdf\njoints: {ball: %s}\n"


@pytest.fixture
def files(tmp_path):
    def written(ball: str):
        (tmp_path / "cart.urdf").write_text(URDF)
        (tmp_path / "beside.yaml").write_text(BESIDE % ball)
        return tmp_path / "beside.yaml"

    return written


def oracle() -> pin.Model:
    """Pinocchio's model with joints of its own kinds: free flyer, planar, spherical."""
    read = pin.buildModelFromXML(URDF)
    kinds = [None, pin.JointModelFreeFlyer(), pin.JointModelPlanar(), pin.JointModelSpherical()]
    model = pin.Model()
    for i in range(1, read.njoints):
        added = model.addJoint(read.parents[i], kinds[i], read.jointPlacements[i], read.names[i])
        model.appendBodyToJoint(added, read.inertias[i], pin.SE3.Identity())
    return model


def turning(axes: str, q: np.ndarray) -> tuple[Rotation, np.ndarray]:
    """(R, B): a ball turned about axes in turn, and its rate ω = B q̇ in its own frame."""
    columns, R = [], Rotation.identity()
    for axis, angle in zip(reversed(axes), reversed(q), strict=True):
        unit = np.eye(3)["xyz".index(axis)]
        columns.insert(0, R.inv().apply(unit))
        R = Rotation.from_rotvec(angle * unit) * R
    return R, np.column_stack(columns)


def of_pinocchio(q: np.ndarray, axes: str) -> tuple[np.ndarray, np.ndarray]:
    """(Pinocchio's q, B with v = B q̇) for floating (x y z rz ry rx), planar and ball."""
    R, B = turning("zyx", q[3:6])
    P = Rotation.from_rotvec([0, 0, q[8]])
    S, B_ball = turning(axes, q[9:])
    whole = np.zeros((12, 12))
    whole[:3, :3], whole[3:6, 3:6] = R.as_matrix().T, B
    whole[6:8, 6:8], whole[8, 8] = P.as_matrix()[:2, :2].T, 1.0
    whole[9:, 9:] = B_ball
    place = [*q[:3], *R.as_quat(), *q[6:8], np.cos(q[8]), np.sin(q[8]), *S.as_quat()]
    return np.array(place), whole


@pytest.mark.parametrize(
    ("ball", "axes"), [("spherical", "zyx"), ("{type: spherical, axes: xzy}", "xzy")]
)
def test_compound_joints_are_those_of_pinocchio(files, ball, axes):
    dynamics = rd.InverseDynamics(rd.load(files(ball)), backend="python")
    assert dynamics.joint_names == (
        *(f"base_{part}" for part in ("x", "y", "z", "rz", "ry", "rx")),
        *(f"table_{part}" for part in ("x", "y", "rz")),
        *(f"ball_r{axis}" for axis in axes),
    )
    model = oracle()
    data = model.createData()
    generator = np.random.default_rng(1)
    for _ in range(5):
        q, qd, qdd = generator.uniform(-1, 1, (3, 12))
        place, B = of_pinocchio(q, axes)
        h = 1e-5
        B_rate = (of_pinocchio(q + h * qd, axes)[1] - of_pinocchio(q - h * qd, axes)[1]) / (2 * h)
        # a = B q̈ + Ḃ q̇, and the power is the same: τ = Bᵀ τ_v
        expected = B.T @ pin.rnea(model, data, place, B @ qd, B @ qdd + B_rate @ qd)
        assert np.allclose(dynamics(q, qd, qdd), expected, rtol=0, atol=1e-7)
        # the angles of a floating joint are the roll, pitch and yaw of URDF
        world = pin.SE3(pin.rpy.rpyToMatrix(0.1, 0.2, 0.3), np.array([0.1, 0.2, 0.3]))
        moved = world * pin.SE3(pin.rpy.rpyToMatrix(*q[[5, 4, 3]]), q[:3])
        assert np.allclose(dynamics.pose(q, "body"), moved.homogeneous, atol=1e-12)


def test_links_between_the_parts_of_a_joint_are_marked():
    between = [link.name for link in rd.load(URDF).links if link.intermediate]
    assert between == [
        *(f"base_{part}" for part in ("x", "y", "z", "rz", "ry")),
        "table_x",
        "table_y",
    ]


def test_a_planar_joint_moves_normal_to_its_axis(tmp_path):
    text = URDF.replace('<axis xyz="0 0 1"/>', '<axis xyz="0.6 0 0.8"/>')
    dynamics = rd.InverseDynamics(rd.load(text), backend="python")
    J = dynamics.jacobian(np.zeros(10), "plate")
    body = dynamics.pose(np.zeros(10), "body")[:3, :3]
    normal = body @ pin.rpy.rpyToMatrix(0.4, 0.5, 0) @ [0.6, 0, 0.8]
    assert np.allclose(normal @ J[:3, 6:8], 0, atol=1e-12)
    assert np.allclose(J[:3, 6:8].T @ J[:3, 6:8], np.eye(2), atol=1e-12)
    assert np.allclose(J[3:, 8], normal, atol=1e-12)


TREE = """
links:
  - {name: a, joint: {name: hip, type: universal, axes: zy, limits: {rz: {lower: -1, upper: 1}}},
     alpha: 0.3, a: 0.1, d: 0.2, mass: 1, center_of_mass: [0.1, 0.2, 0],
     friction: {ry: {viscous: 2}}}
  - {name: b, joint: {name: elbow, type: revolute}, a: 0.3, mass: 2}
"""
BY_HAND = """
links:
  - {name: m, joint: {name: hip_rz, type: revolute, limits: {lower: -1, upper: 1}}, d: 0.2}
  - {name: n, origin: {rpy: [-pi/2, 0, 0]}, joint: {name: hip_ry, type: revolute},
     friction: {viscous: 2}}
  - {name: a, origin: {rpy: [pi/2, 0, 0]}, joint: {type: fixed}, alpha: 0.3, a: 0.1,
     mass: 1, center_of_mass: [0.1, 0.2, 0]}
  - {name: b, joint: {name: elbow, type: revolute}, a: 0.3, mass: 2}
"""


def test_a_compound_joint_is_what_one_would_write_by_hand(tmp_path):
    (tmp_path / "tree.yaml").write_text(TREE)
    (tmp_path / "hand.yaml").write_text(BY_HAND)
    made, hand = (rd.load(tmp_path / f"{name}.yaml") for name in ("tree", "hand"))
    assert made.joint_names == hand.joint_names == ("hip_rz", "hip_ry", "elbow")
    assert made.joint("hip_rz").limits == hand.joint("hip_rz").limits
    state = np.random.default_rng(2).uniform(-1, 1, (3, 4, 3))
    one, other = (rd.InverseDynamics(m, backend="python") for m in (made, hand))
    assert np.allclose(one(*state), other(*state), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TREE.replace("axes: zy", "axes: zz"), ["link 'a'", "axes", "different letters"]),
        (TREE.replace("axes: zy", "axes: zyx"), ["axes", "2 different"]),
        (TREE.replace("axes: zy", "axes: 3"), ["axes", "2 different"]),
        (TREE.replace("universal, axes: zy", "planar, axes: z"), ["axes", "normal"]),
        (TREE.replace("friction: {ry: {viscous: 2}}", "friction: {viscous: 2}"), ["'viscous'"]),
        (TREE.replace("type: revolute}", "type: revolute, axes: x}"), ["axes", "'x'"]),
        (
            TREE.replace("friction: {ry:", "rotor: {gear_ratio: 2}, friction: {ry:"),
            ["top level", "hip_rz"],
        ),
    ],
)  # fmt: skip
def test_what_a_compound_joint_can_not_be_is_refused(tmp_path, text, words):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(rd.DescriptionError) as error:
        rd.load(tmp_path / "bad.yaml")
    assert all(word in str(error.value) for word in ("bad.yaml", *words))


@pytest.mark.parametrize(
    ("ball", "words"),
    [("sphere", ["joints.ball", "spherical"]), ("{type: universal, axes: xx}", ["axes"])],
)
def test_a_retyped_joint_is_checked(files, ball, words):
    with pytest.raises(rd.DescriptionError) as error:
        rd.load(files(ball))
    assert all(word in str(error.value) for word in ("beside.yaml", *words))


def test_mimics_are_of_one_degree_and_friction_is_given_by_part(files):
    mimic = URDF.replace('<axis xyz="0 0 1"/>', '<mimic joint="ball"/>')
    with pytest.raises(rd.DescriptionError, match="'table': mimic"):
        rd.load(mimic)
    path = files("spherical")
    follower = URDF.replace('<axis xyz="0 1 0"/>', "").replace(
        "</robot>",
        '<link name="leaf"/><joint name="leafy" type="revolute"><parent link="rod"/>'
        '<child link="leaf"/><mimic joint="ball"/></joint></robot>',
    )
    (path.parent / "cart.urdf").write_text(follower)
    with pytest.raises(rd.DescriptionError, match=r"joints\.ball.*leafy"):
        rd.load(path)
    rubbing = URDF.replace('<axis xyz="0 0 1"/>', '<dynamics damping="2"/>')
    with pytest.warns(DescriptionWarning, match="table_x, table_y, table_rz"):
        assert rd.load(rubbing).joint("table_x").friction.viscous == 0
    (path.parent / "cart.urdf").write_text(
        URDF.replace('<axis xyz="0 1 0"/>', '<dynamics friction="1"/>')
    )
    with pytest.warns(DescriptionWarning, match=r"joints\.ball.*ball_rz, ball_ry, ball_rx"):
        assert rd.load(path).joint("ball_rz").friction.coulomb == 0
