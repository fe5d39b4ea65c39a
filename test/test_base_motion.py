# SPDX-License-Identifier: Apache-2.0
"""A base that is moved from outside, against Pinocchio's free flyer."""

from __future__ import annotations

import closed_robots
import numpy as np
import pytest
import yaml
from robots import CONFIG, dh_to_pinocchio, pin, random_dh, random_urdf, relative, state
from scipy.spatial.transform import Rotation

import robot_dynamics as rd
from robot_dynamics import BaseMotion
from robot_dynamics.description.fields import DescriptionWarning
from robot_dynamics.description.urdf_writer import urdf
from robot_dynamics.errors import ClosureWarning

MANY = 5

ROUNDING = 1e-12
"""Relative: Pinocchio adds up the same numbers in another order"""


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
        assert relative(found[i], expected) < ROUNDING
        one = BaseMotion(turning[i], spinning[i], pushing[i], R[i])
        assert dynamics(q[i], qd[i], qdd[i], base_motion=one) == pytest.approx(found[i], abs=1e-10)


@pytest.mark.parametrize("terms", [("inertia", "coriolis", "gravity"), ("gravity",)])
def test_derivatives_regressor_and_gravity_go_with_the_moving_base(terms):
    """Of a free flyer's the joints' part; of gravity alone it is what a tilt does."""
    text = random_urdf(4)
    dynamics = rd.InverseDynamics(rd.load(text), terms=terms, backend="python")
    n = len(dynamics.joint_names)
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    order = [model.joints[model.getJointId(name)].idx_v for name in dynamics.joint_names]
    R, turning, spinning, pushing = motions(6)
    state = np.random.default_rng(0).uniform(-1, 1, (3, MANY, n))
    motion = BaseMotion(turning, spinning, pushing, R)
    Y = dynamics.regressor(*state, base_motion=motion)
    tau = dynamics(*state, base_motion=motion)
    assert relative(np.asarray(Y @ dynamics.parameters), tau) < ROUNDING
    found = dynamics.derivatives(*state, base_motion=motion)
    weight = dynamics.gravity(state[0], base_motion=motion)
    moving = "inertia" in terms
    for i in range(MANY):
        whole = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        whole[0][3:7] = Rotation.from_matrix(R[i]).as_quat()
        whole[1][3:6], whole[2][:3], whole[2][3:6] = turning[i], pushing[i], spinning[i]
        for vector, joints, shift in zip(whole, state, (1, 0, 0), strict=True):
            vector[np.array(order) + shift] = joints[i]
        data = model.createData()
        expected_g = pin.computeGeneralizedGravity(model, data, whole[0])[order]
        assert relative(weight[i], expected_g) < ROUNDING
        if not moving:
            whole = whole[0], np.zeros(model.nv), np.zeros(model.nv)
        pin.computeRNEADerivatives(model, data, *whole)
        D = (np.triu(data.M) + np.triu(data.M, 1).T) * moving
        for each, matrix in zip(found, (data.dtau_dq, data.dtau_dv, D), strict=True):
            expected = matrix[np.ix_(order, order)]
            assert abs(each[i] - expected).max() <= ROUNDING * max(1.0, abs(expected).max())


def test_what_goes_with_a_moving_base_follows_payloads_and_is_refused_with_loops():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "three_axis.yaml"), backend="python")
    q, qd, qdd = state(3, len(dynamics.joint_names))
    motion = BaseMotion([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    before = dynamics.regressor(q, qd, qdd, base_motion=motion)
    dynamics.derivatives(q, qd, qdd, base_motion=motion)
    body = rd.Inertial(2.0, np.array([0.1, 0.2, 0.3]), np.diag([0.1, 0.1, 0.1]))
    link = dynamics.mechanism.links[-1].name
    dynamics.set_payload(link, body)
    dynamics.gravity_vector = [1.0, -2.0, -3.0]
    fresh = rd.InverseDynamics(dynamics.mechanism, backend="python")
    for name, vectors in (
        ("derivatives", (q, qd, qdd)), ("regressor", (q, qd, qdd)), ("gravity", (q,)),
    ):  # fmt: skip
        found = getattr(dynamics, name)(*vectors, base_motion=motion)
        expected = getattr(fresh, name)(*vectors, base_motion=motion)
        assert np.asarray(found) == pytest.approx(np.asarray(expected), rel=1e-12, abs=1e-12)
    assert abs(dynamics.regressor(q, qd, qdd, base_motion=motion) - before).max() > 0.1
    closed = rd.InverseDynamics(rd.load(CONFIG / "five_bar.yaml"), backend="python")
    q = np.array([closed.mechanism.home[name] for name in closed.joint_names])
    for name in ("derivatives", "regressor"):
        with pytest.raises(rd.InputError, match="without loops"):
            getattr(closed, name)(q, 0 * q, 0 * q, base_motion=motion)
    tilt = Rotation.from_euler("xyz", [0.3, 0.2, 0.1]).as_matrix()
    read = BaseMotion([0.1, 0.2, 0.3], specific_force=-(tilt.T @ fresh.gravity_vector))
    told = BaseMotion([0.1, 0.2, 0.3], rotation=tilt)
    state_q = np.array([0.3, -0.4, 0.5])
    assert fresh.gravity(state_q, base_motion=read) == pytest.approx(
        fresh.gravity(state_q, base_motion=told), rel=1e-12, abs=1e-12
    )
    weight = closed.gravity(q, base_motion=BaseMotion(rotation=tilt))
    closed.gravity_vector = tilt.T @ closed.gravity_vector
    assert weight == pytest.approx(closed.gravity(q), rel=1e-10, abs=1e-10)


def test_a_motion_stays_though_the_callers_arrays_change():
    turning, R = np.array([0.0, 0.0, 0.3]), np.eye(3)
    motion = BaseMotion(turning, rotation=R)
    turning[:] = R[:] = np.nan
    assert motion.angular_velocity.tolist() == [0.0, 0.0, 0.3]
    assert motion.rotation.tolist() == np.eye(3).tolist()
    with pytest.raises(ValueError, match="read-only"):
        motion.angular_velocity[0] = 1.0


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


def on_a_free_flyer(robot: dict):
    """(Pinocchio's model of a description, rotors as bodies, on a free flyer; their gears)."""
    model, geared = dh_to_pinocchio(robot)
    base = pin.Model()
    frame = base.addJointFrame(
        base.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "flyer")
    )
    carried = pin.appendModel(base, model, frame, pin.SE3.Identity())
    carried.gravity = model.gravity
    return carried, geared


def carried(model, names, state, geared, motion):
    """(tau of joints (n,), of rotors (m,)) by Pinocchio, for (R, ω, α, a) of the base."""
    R, turning, spinning, pushing = motion
    whole = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    whole[0][3:7] = Rotation.from_matrix(R).as_quat()
    whole[1][3:6], whole[2][:6] = turning, [*pushing, *spinning]
    joints = {name: {name: 1.0} for name in names} | geared
    at = {name: model.joints[model.getJointId(name)] for name in joints}
    for name, share in joints.items():
        for k, (vector, values) in enumerate(zip(whole, state, strict=True)):
            place = at[name].idx_v if k else at[name].idx_q
            vector[place] = sum(r * values[names.index(each)] for each, r in share.items())
    full = pin.rnea(model, model.createData(), *whole)
    tau = np.zeros(len(names))
    for name, share in joints.items():
        for each, ratio in share.items():
            tau[names.index(each)] += ratio * full[at[name].idx_v]
    return tau, np.array([full[at[name].idx_v] for name in geared])


@pytest.mark.parametrize("name", ["five_bar", "rrr"])
def test_a_closed_robots_torques_are_those_of_pinocchios_tree_projected(name):
    terms = ("inertia", "coriolis", "gravity", "rotors")
    dynamics = rd.InverseDynamics(rd.load(CONFIG / f"{name}.yaml"), terms=terms, backend="python")
    model, geared = on_a_free_flyer(closed_robots.shipped(name))
    chain = dynamics.closed
    R, turning, spinning, pushing = motions(6)
    rng = np.random.default_rng(7)
    q, qd, qdd = rng.uniform(-0.1, 0.1, (3, MANY, len(dynamics.joint_names)))
    q = q + chain.home.q_a
    motion = BaseMotion(turning, spinning, pushing, R)
    found = dynamics(q, qd, qdd, base_motion=motion)
    for i in range(MANY):
        state = chain.forward_kinematics(q[i], qd[i])
        moves = (state.q_r, state.qd_r, state.accelerations(qdd[i]))
        each = (R[i], turning[i], spinning[i], pushing[i])
        tau_r, _ = carried(model, chain.coordinate_names, moves, geared, each)
        expected = state.T.T @ tau_r
        assert relative(found[i], expected) < ROUNDING
        one = BaseMotion(turning[i], spinning[i], pushing[i], R[i])
        assert relative(dynamics(q[i], qd[i], qdd[i], base_motion=one), expected) < ROUNDING


def test_motors_that_share_the_work_share_that_of_the_base(tmp_path):
    robot = closed_robots.random_five_bar(2)
    robot |= {"actuated": ["qp0", *robot["actuated"]], "sensed": []}
    terms = ("inertia", "coriolis", "gravity", "rotors")
    with pytest.warns(ClosureWarning, match="weights: equal"):
        dynamics = rd.InverseDynamics(
            closed_robots.load(robot, tmp_path), terms=terms, backend="python"
        )
    chain, (model, geared) = dynamics.closed, on_a_free_flyer(robot)
    R, turning, spinning, pushing = (each[0] for each in motions(13))
    q, qd, qdd = np.random.default_rng(13).uniform(-0.05, 0.05, (3, 2))
    state = chain.forward_kinematics(q + chain.home.q_a, qd)
    moves = (state.q_r, state.qd_r, state.accelerations(qdd))
    tau_r, _ = carried(
        model, chain.coordinate_names, moves, geared, (R, turning, spinning, pushing)
    )
    # of least norm: A (Aᵀ A)⁻¹ Tᵀ τ_r, with A the motors' rates
    A = state.T[[chain.coordinate_names.index(name) for name in dynamics.actuated_names]]
    expected = np.linalg.lstsq(A.T, state.T.T @ tau_r, rcond=None)[0]
    motion = BaseMotion(turning, spinning, pushing, R)
    found = dynamics(state.q_a, qd, qdd, base_motion=motion)
    assert found.shape == (3,)
    assert relative(found, expected) < 1e-11
    assert dynamics.forward(state.q_a, qd, found, base_motion=motion) == pytest.approx(qdd)


def test_sensors_see_the_same_robot_and_readings_that_do_not_fit_the_same_tilt():
    mechanism = rd.load(CONFIG / "rrr.yaml")
    active = rd.InverseDynamics(mechanism, backend="python")
    sensed = rd.InverseDynamics(mechanism, sensed=True, backend="python")
    R, turning, spinning, pushing = (each[0] for each in motions(9))
    motion = BaseMotion(turning, spinning, pushing, R)
    k, rng = len(sensed.joint_names), np.random.default_rng(9)
    q, qd, qdd = rng.uniform(-0.1, 0.1, (3, 3))
    state = active.closed.forward_kinematics(q + active.closed.home.q_a, qd)
    order = [active.closed.coordinate_names.index(name) for name in sensed.joint_names]
    whole = (state.q_r[order], state.qd_r[order], state.accelerations(qdd)[order])
    expected = active(state.q_a, qd, qdd, base_motion=motion)
    assert relative(sensed(*whole, base_motion=motion), expected) < ROUNDING
    # readings off by 0.05 rad: a base that is tilted is gravity that is
    off = (whole[0] + rng.uniform(-0.05, 0.05, k), *whole[1:])
    tilted = sensed(*(np.stack([x, x]) for x in off), base_motion=BaseMotion(rotation=R))
    sensed.gravity_vector = R.T @ mechanism.gravity
    assert relative(tilted, np.tile(sensed(*off), (2, 1))) < ROUNDING


def test_a_batch_has_nan_where_a_state_can_not_be_closed():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "rrr.yaml"), sensed=True, backend="python")
    q = np.tile(dynamics.closed.home.q_r[:6], (3, 1))
    q[1, 2] = np.nan
    found = dynamics(q, 0 * q, 0 * q, base_motion=BaseMotion([0.1, 0.2, 0.3]))
    assert np.isnan(found).all(axis=1).tolist() == [False, True, False]


def test_motors_take_what_pinocchios_rotors_on_the_moving_base_take(tmp_path):
    robot = random_dh(6, joints=4, rotors=True)
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(robot))
    mechanism = rd.load(tmp_path / "robot.yaml")
    dynamics = rd.InverseDynamics(mechanism, "gibbs_appell", backend="python")
    names, ratios = dynamics.joint_names, [dict(rotor.ratios) for rotor in mechanism.rotors]
    model, geared = on_a_free_flyer(robot)
    each = [x[0] for x in motions(11)]
    given = state(11, len(names))
    motion = BaseMotion(each[1], each[2], each[3], each[0])
    tau, taken = carried(model, names, given, geared, each)
    assert relative(dynamics(*given, base_motion=motion), tau) < ROUNDING
    drive, gear = dynamics.motor_torques(*given, base_motion=motion)
    expected = [tau[names.index(*share)] / next(iter(share.values())) for share in ratios]
    assert relative(drive, np.array(expected)) < ROUNDING
    assert relative(drive - gear, taken) < ROUNDING
    many = dynamics.motor_torques(*(np.tile(x, (2, 1)) for x in given), base_motion=motion)
    assert relative(many.gear, np.tile(gear, (2, 1))) < ROUNDING


@pytest.mark.parametrize("name", ["three_axis", "five_bar"])
def test_forward_is_the_inverse_of_a_call_on_a_moving_base(name):
    dynamics = rd.InverseDynamics(rd.load(CONFIG / f"{name}.yaml"), backend="python")
    q, qd, qdd = np.random.default_rng(4).uniform(-0.1, 0.1, (3, 2, len(dynamics.joint_names)))
    if dynamics.closed is not None:
        q = q + dynamics.closed.home.q_a
    R, *vectors = (each[:2] for each in motions(4))
    motion = BaseMotion(*vectors, R)
    tau = dynamics(q, qd, qdd, base_motion=motion)
    found = dynamics.forward(q, qd, tau, base_motion=motion, out=np.empty_like(tau))
    assert found == pytest.approx(qdd, rel=1e-9, abs=1e-9)
    with pytest.raises(rd.InputError, match="tau"):
        dynamics.forward(q, qd, "none", base_motion=motion)


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
    with pytest.raises(rd.InputError, match=r"specific_force, .* without the term gravity"):
        dynamics(*state, base_motion=BaseMotion(specific_force=[0.0, 0.0, 9.81]))


@pytest.mark.parametrize(
    ("name", "sensed"), [("three_axis", False), ("five_bar", False), ("five_bar", True)]
)
def test_gravity_alone_follows_the_tilt(name, sensed):
    mechanism, terms = rd.load(CONFIG / f"{name}.yaml"), ("gravity", "friction")
    dynamics = rd.InverseDynamics(mechanism, terms=terms, sensed=sensed, backend="python")
    R, turning, spinning, pushing = (each[:2] for each in motions(14))
    q, qd, qdd = np.random.default_rng(14).uniform(-0.1, 0.1, (3, 2, len(dynamics.joint_names)))
    if dynamics.closed is not None:
        q = q + dynamics.closed.home.q_r[: q.shape[-1]]
    g = np.einsum("kji,j->ki", R, mechanism.gravity)
    told, felt = BaseMotion(turning, spinning, pushing, R), BaseMotion(specific_force=-g)
    for motion in (told, felt):
        found = dynamics(q, qd, qdd, base_motion=motion)
        for k in range(2):
            dynamics.gravity_vector = g[k]
            assert relative(found[k], dynamics(q[k], qd[k], qdd[k])) < ROUNDING
        dynamics.gravity_vector = mechanism.gravity
    if sensed:
        return
    # a gear does not carry what an unbalanced rotor weighs
    one = BaseMotion(rotation=R[0])
    motors = dynamics.motor_torques(q, qd, qdd, base_motion=one)
    dynamics.gravity_vector = g[0]
    for found, expected in zip(motors, dynamics.motor_torques(q, qd, qdd), strict=True):
        assert relative(found, expected) < ROUNDING
    with pytest.raises(rd.InputError, match="without inertia and coriolis"):
        dynamics.motor_torques(q, qd, qdd, base_motion=told)


def test_terms_with_half_the_motion_are_refused_on_a_moving_base():
    dynamics = rd.InverseDynamics(
        rd.load(CONFIG / "polar.yaml"), terms=("gravity", "inertia"), backend="python"
    )
    n = len(dynamics.joint_names)
    whole = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), backend="python")
    with pytest.raises(rd.InputError, match=rf"qd: .*shape \(…, {n}\)"):
        whole(np.zeros(n), np.zeros(n + 1), np.zeros(n), base_motion=BaseMotion())
    with pytest.raises(rd.InputError, match=r"coriolis.* for base_motion"):
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
GEAR = """<transmission name="gear"><type>transmission_interface/SimpleTransmission</type>
  <joint name="crane"/><actuator name="winch"><mechanicalReduction>30</mechanicalReduction>
  </actuator></transmission>"""


def test_a_floating_base_that_is_moved_is_no_joint_of_the_robots(tmp_path):
    (tmp_path / "boat.urdf").write_text(FLOATING % GEAR)
    motor = "urdf: boat.urdf\nrotors: {crane: {inertia: {izz: 0.01}}}\n"
    (tmp_path / "boat.yaml").write_text(motor + "base_motion: sea\n")
    (tmp_path / "whole.yaml").write_text(motor)
    mechanism = rd.load(tmp_path / "boat.yaml")
    assert mechanism.joint_names == ("crane",)
    assert (mechanism.base, mechanism.base_motion) == ("hull", "sea")
    with pytest.warns(DescriptionWarning, match="'sea' under 'hull'"):
        again = rd.load(urdf(mechanism))
    assert again.base_motion is None
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    whole = rd.InverseDynamics(rd.load(tmp_path / "whole.yaml"), backend="python")
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
