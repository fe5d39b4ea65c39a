"""A base that is moved from outside, against Pinocchio's free flyer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from robots import CONFIG, pin, random_urdf
from scipy.spatial.transform import Rotation

import robot_dynamics as rd
from robot_dynamics import BaseMotion

MANY = 5


def motions(seed: int, many: int = MANY):
    """(R, ω, α, a) of a base, (many, …) each."""
    rng = np.random.default_rng(seed)
    R = Rotation.random(many, random_state=seed).as_matrix()
    return R, *rng.uniform(-3, 3, (3, many, 3))


@pytest.mark.parametrize("formulation", ["newton_euler", "gibbs_appell"])
def test_the_torques_on_a_moving_base_are_pinocchios_with_a_free_flyer(formulation):
    text = random_urdf(4)
    dynamics = rd.InverseDynamics(
        rd.load(text), formulation, terms=("inertia", "coriolis", "gravity"), backend="python"
    )
    n = len(dynamics.joint_names)
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    data = model.createData()
    order = [model.joints[model.getJointId(name)].idx_v for name in dynamics.joint_names]
    rng = np.random.default_rng(0)
    R, turning, spinning, pushing = motions(1)
    q, qd, qdd = rng.uniform(-1, 1, (3, MANY, n))
    motion = BaseMotion(turning, spinning, pushing, R)
    found = dynamics(q, qd, qdd, base_motion=motion)
    assert found.shape == (MANY, n)
    for i in range(MANY):
        # anywhere, at any speed
        place, speed = rng.uniform(-5, 5, (2, 3))
        whole = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        whole[0][:7] = [*place, *Rotation.from_matrix(R[i]).as_quat()]
        whole[1][:6] = [*speed, *turning[i]]
        # of a spatial acceleration the linear part is a - ω × v
        whole[2][:6] = [*(pushing[i] - np.cross(turning[i], speed)), *spinning[i]]
        for vector, joints, shift in zip(whole, (q[i], qd[i], qdd[i]), (1, 0, 0), strict=True):
            vector[np.array(order) + shift] = joints
        expected = pin.rnea(model, data, *whole)[order]
        assert found[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        one = BaseMotion(turning[i], spinning[i], pushing[i], R[i])
        assert dynamics(q[i], qd[i], qdd[i], base_motion=one) == pytest.approx(found[i], abs=1e-10)


def test_what_an_imu_reads_is_enough():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "three_axis.yaml"), backend="python")
    R, turning, spinning, pushing = motions(2)
    state = np.random.default_rng(3).uniform(-1, 1, (3, MANY, len(dynamics.joint_names)))
    felt = pushing - np.swapaxes(R, 1, 2) @ dynamics.mechanism.gravity
    told = BaseMotion(turning, spinning, pushing, R)
    read = BaseMotion(turning, spinning, specific_force=felt)
    assert dynamics(*state, base_motion=read) == pytest.approx(
        dynamics(*state, base_motion=told), abs=1e-10
    )
    # one that stands still is none
    still = dynamics(*state, base_motion=BaseMotion())
    assert still == pytest.approx(dynamics(*state), rel=1e-10, abs=1e-10)


def test_payloads_gravity_and_wrenches_go_with_the_moving_base():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), backend="python")
    n, link = len(dynamics.joint_names), dynamics.mechanism.links[-1].name
    state = np.random.default_rng(5).uniform(0.2, 1, (3, n))
    tilted = Rotation.from_euler("x", 0.4).as_matrix()
    before = dynamics(*state, base_motion=BaseMotion(rotation=tilted))
    dynamics.set_payload(link, rd.Inertial(2.0))
    dynamics.gravity_vector = [0.0, 1.0, -5.0]
    after = dynamics(*state, base_motion=BaseMotion(rotation=tilted))
    assert not np.allclose(before, after)
    # a base that is tilted is gravity that is
    push = np.arange(6.0)
    pushed = dynamics(*state, base_motion=BaseMotion(rotation=tilted), wrenches={link: push})
    dynamics.gravity_vector = tilted.T @ [0.0, 1.0, -5.0]
    assert after == pytest.approx(dynamics(*state), abs=1e-10)
    assert pushed == pytest.approx(dynamics(*state, wrenches={link: push}), abs=1e-10)


@pytest.mark.parametrize("name", ["five_bar", "rrr"])
def test_a_closed_robots_torques_are_those_of_its_tree_projected(name):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    open_one = replace(mechanism, loops=(), actuated=(), platform=None, sensed=(), home={})
    tree = rd.InverseDynamics(open_one, backend="python")
    chain = dynamics.closed
    R, turning, spinning, pushing = motions(6)
    rng = np.random.default_rng(7)
    q, qd, qdd = rng.uniform(-0.1, 0.1, (3, MANY, len(dynamics.joint_names)))
    q = q + chain.home.q_a
    motion = BaseMotion(turning, spinning, pushing, R)
    state = chain.forward(q, qd)
    order = [chain.coordinate_names.index(each) for each in tree.joint_names]
    parts = (state.q_r, state.qd_r, state.accelerations(qdd))
    tau = tree(*(part[:, order] for part in parts), base_motion=motion)
    expected = np.einsum("ija,ij->ia", state.T[:, order], tau)
    assert dynamics(q, qd, qdd, base_motion=motion) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"angular_velocity": [1, 2]}, "angular_velocity"),
        ({"angular_acceleration": [1, 2, np.nan]}, "finite"),
        ({"rotation": np.diag([1.0, 1.0, -1.0])}, "rotation"),
        ({"rotation": np.ones((3, 2))}, "rotation"),
        ({"rotation": np.eye(3), "specific_force": [0, 0, 9.81]}, "neither"),
        ({"linear_acceleration": [1, 0, 0], "specific_force": [0, 0, 9.81]}, "neither"),
    ],
)
def test_what_is_no_motion_is_refused(options, words):
    with pytest.raises(rd.InputError, match=words):
        BaseMotion(**options)


def test_without_the_term_gravity_a_moving_base_has_none():
    mechanism = rd.load(CONFIG / "polar.yaml")
    terms = ("inertia", "coriolis", "rotors")
    dynamics = rd.InverseDynamics(mechanism, terms=terms, backend="python")
    state = np.random.default_rng(8).uniform(0.2, 1, (3, len(dynamics.joint_names)))
    found = dynamics(*state, base_motion=BaseMotion())
    assert found == pytest.approx(dynamics(*state), abs=1e-12)


def test_terms_without_motion_are_refused_on_a_moving_base():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), terms="gravity", backend="python")
    n = len(dynamics.joint_names)
    whole = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), backend="python")
    with pytest.raises(rd.InputError, match=rf"qd: .*shape \(…, {n}\)"):
        whole(np.zeros(n), np.zeros(n + 1), np.zeros(n), base_motion=BaseMotion())
    with pytest.raises(rd.InputError, match=r"inertia, coriolis.* for base_motion"):
        dynamics(*np.zeros((3, n)), base_motion=BaseMotion())


FLOATING = """<robot name="boat"><link name="world"/>
<joint name="sea" type="floating"><parent link="world"/><child link="hull"/></joint>
<link name="hull"><inertial><mass value="300"/>
  <inertia ixx="9" iyy="9" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="crane" type="revolute"><parent link="hull"/><child link="jib"/><axis xyz="0 1 0"/>
  <origin xyz="1 0 0.5"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<link name="jib"><inertial><origin xyz="1 0 0"/><mass value="20"/>
  <inertia ixx="1" iyy="2" izz="3" ixy="0" ixz="0" iyz="0"/></inertial></link>%s</robot>"""
QUAY = """<joint name="lock" type="revolute"><parent link="world"/><child link="gate"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint><link name="gate"/>"""


def test_a_floating_base_that_is_moved_is_no_joint_of_the_robots(tmp_path):
    (tmp_path / "boat.urdf").write_text(FLOATING % "")
    (tmp_path / "boat.yaml").write_text("urdf: boat.urdf\nbase_motion: sea\n")
    mechanism = rd.load(tmp_path / "boat.yaml")
    assert mechanism.joint_names == ("crane",)
    assert mechanism.base == "hull"
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    whole = rd.InverseDynamics(rd.load(tmp_path / "boat.urdf"), backend="python")
    roll, q, qd, qdd = 0.3, 0.2, 0.5, -0.7
    R = Rotation.from_euler("x", roll).as_matrix()
    # rolling at 0.4 rad/s and 0.1 rad/s², heaving at 0.6 m/s²
    motion = BaseMotion([0.4, 0, 0], [0.1, 0, 0], R.T @ [0, 0, 0.6], R)
    names = whole.joint_names
    states = [
        [{"crane": a, "sea_rx": b, "sea_z": c}.get(name, 0.0) for name in names]
        for a, b, c in ((q, roll, 7.0), (qd, 0.4, 3.0), (qdd, 0.1, 0.6))
    ]
    expected = whole(*np.array(states))[names.index("crane")]
    assert dynamics([q], [qd], [qdd], base_motion=motion) == pytest.approx([expected], abs=1e-10)


def test_a_base_that_can_not_be_moved_is_named(tmp_path):
    (tmp_path / "boat.yaml").write_text("urdf: boat.urdf\nbase_motion: see\n")
    (tmp_path / "boat.urdf").write_text(FLOATING % "")
    with pytest.raises(rd.DescriptionError, match=r"boat\.yaml: base_motion.*'see'.*'sea'"):
        rd.load(tmp_path / "boat.yaml")
    (tmp_path / "boat.yaml").write_text("urdf: boat.urdf\nbase_motion: sea\n")
    (tmp_path / "boat.urdf").write_text(FLOATING % QUAY)
    with pytest.raises(rd.DescriptionError, match=r"boat\.yaml: base_motion.*lock is not on it"):
        rd.load(tmp_path / "boat.yaml")
