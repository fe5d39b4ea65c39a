# SPDX-License-Identifier: Apache-2.0
"""MJCF by MuJoCo's own compiler: its inverse dynamics and ours agree."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.description import load_urdf_text, mujoco_compiler
from robot_dynamics.description.fields import DescriptionWarning
from robot_dynamics.description.urdf_writer import urdf as written
from robot_dynamics.mechanism import Friction
from robot_dynamics.scalar import rotation_rpy

mujoco = pytest.importorskip("mujoco", reason="MuJoCo, which reads MJCF, is not installed")

ROUNDING = 1e-12
"""Of the largest torque"""

ARM = """<?xml version="1.0"?>
<!-- an arm of every kind of joint that has one degree of freedom -->
<mujoco model="arm">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0.3 -0.4 -9.7"/>
  <worldbody>
    <body name="column" pos="0.1 0.2 0.3" euler="10 20 30">
      <joint name="lift" type="slide" axis="0 0.6 0.8" pos="0.1 0 0" ref="0.2"
             range="-1 1" damping="3"/>
      <joint name="turn" type="hinge" axis="1 2 3" pos="0.05 -0.1 0.2" ref="25" range="-170 90"
             armature="0.4" damping="0.7"/>
      <inertial pos="0.1 0.2 0.3" mass="2" fullinertia="0.2 0.3 0.35 0.01 0.02 -0.03"/>
      <body name="plate" pos="0 0 0.2"><!-- no joint -->
        <geom type="box" size="0.1 0.05 0.02" mass="0.7" pos="0.02 0.01 0" euler="0 30 0"/>
        <body pos="0.3 0 0" quat="0.9 0.1 -0.3 0.2">
          <joint axis="0 1 0" pos="0 0 0.1" actuatorfrcrange="-7 7"/>
          <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0.1 0" mass="1.1"/>
          <body name="tip" pos="0.3 0.1 0">
            <joint name="wrist" axis="1 0 0" armature="0.01"/>
            <geom type="sphere" size="0.05" pos="0.02 0.05 0" mass="0.4"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="m1" joint="turn" gear="30" ctrlrange="-1 1" forcerange="-2 2"/>
    <motor name="m2" joint="wrist"/>
  </actuator>
</mujoco>"""

WALKER = """<mujoco model="walker">
  <worldbody>
    <body name="trunk" pos="0 0 1" quat="0.8 0.1 0.2 0.3">
      <freejoint name="root"/>
      <geom type="box" size="0.2 0.1 0.05" mass="5" pos="0.01 0.02 0.03"/>
      <body name="leg" pos="0.1 0 -0.1" euler="20 0 10">
        <joint name="hip" type="ball" pos="0 0 0.05"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.05 0 -0.3" mass="1"/>
        <body name="shank" pos="0.05 0 -0.3">
          <joint name="knee" axis="0 1 0"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.3" mass="0.5"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""

FOUR_BAR = """<mujoco model="four_bar">
  <option gravity="0 -9.81 0"/>
  <worldbody>
    <body name="crank">
      <joint name="motor" axis="0 0 1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0.2 0" mass="0.5"/>
      <body name="rod" pos="0 0.2 0">
        <joint name="elbow" axis="0 0 1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.5 0.1 0" mass="0.8"/>
      </body>
    </body>
    <body name="rocker" pos="0.5 0 0">
      <joint name="pivot" axis="0 0 1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0.3 0" mass="0.7"/>
      <site name="rocker_end" pos="0 0.3 0"/>
    </body>
  </worldbody>
  <equality>{closure}</equality>
  <actuator><motor joint="motor"/></actuator>
</mujoco>"""
CONNECT = '<connect name="pin" body1="rod" body2="rocker" anchor="0.5 0.1 0"/>'


def by_mujoco(text: str, q, qd, qdd, names):
    """The generalised forces of `mj_inverse` on our coordinates, constraints apart."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, place = mujoco.MjData(model), {name: k for k, name in enumerate(names)}
    J, drift = np.zeros((model.nv, len(names))), np.zeros(model.nv)
    for k in range(model.njnt):
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k)
        kind, a, d = model.jnt_type[k], model.jnt_qposadr[k], model.jnt_dofadr[k]
        if kind in (2, 3):
            j = place[name or f"body{model.jnt_bodyid[k]}_joint1"]
            data.qpos[a], J[d, j] = q[j], 1.0
            continue
        if kind == 0:
            for i, axis in enumerate("xyz"):
                j = place[f"{name}_{axis}"]
                data.qpos[a + i], J[d + i, j] = q[j], 1.0
            a, d = a + 3, d + 3
        js = [place[f"{name}_r{axis}"] for axis in "zyx"]
        yaw, pitch, roll = q[js]
        mujoco.mju_mat2Quat(data.qpos[a : a + 4], rotation_rpy(roll, pitch, yaw).ravel())
        J[d : d + 3, js] = turning(q[js])
        h = 1e-6
        ahead, behind = turning(q[js] + h * qd[js]), turning(q[js] - h * qd[js])
        drift[d : d + 3] = (ahead - behind) / (2 * h) @ qd[js]
    data.qvel[:], data.qacc[:] = J @ qd, J @ qdd + drift
    mujoco.mj_inverse(model, data)
    return J.T @ data.qfrc_inverse


def turning(angles):
    """(3, 3): the body's rates on its own axes by those of yaw, pitch and roll."""
    _, pitch, roll = angles
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    return np.array([[-sp, 0.0, 1.0], [sr * cp, cr, 0.0], [cr * cp, -sr, 0.0]])


SPRUNG = (
    ARM.replace('name="lift"', 'name="lift" stiffness="90" springref="0.05"')
    .replace('name="turn"', 'name="turn" stiffness="-7" springref="-40"')
    .replace('name="wrist"', 'name="wrist" stiffness="0.3"')
)
SLACK = SPRUNG.replace("<worldbody>", '<option><flag spring="disable"/></option><worldbody>', 1)


@pytest.mark.parametrize(
    ("text", "bound"),
    [(ARM, ROUNDING), (SPRUNG, ROUNDING), (SLACK, ROUNDING), (WALKER, 1e-9)],
    ids=["arm", "springs", "disabled springs", "walker"],
)
def test_torques_are_mujocos(text, bound):
    """The walker's bound is that of a finite difference."""
    dynamics = rd.InverseDynamics(rd.load(text))
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-1, 1, (3, len(dynamics.joint_names)))
        expected = by_mujoco(text, q, qd, qdd, dynamics.joint_names)
        np.testing.assert_allclose(
            dynamics(q, qd, qdd), expected, rtol=0, atol=bound * np.abs(expected).max()
        )


TENDONS = """<tendon>
    <fixed name="belt" damping="0.3" armature="0.02">
      <joint joint="lift" coef="2"/><joint joint="turn" coef="-3"/><joint joint="wrist" coef="0.5"/>
    </fixed>
    <fixed name="wire" damping="0.7"><joint joint="wrist" coef="4"/></fixed>
    <fixed name="idle"><joint joint="turn" coef="1"/></fixed>
  </tendon>
  <actuator>
    <motor name="m3" joint="wrist" gear="11" armature="1e-3" damping="0.02"/>
    <motor name="m4" joint="lift" armature="0.3"/>
  </actuator>
</mujoco>"""


def shafts() -> str:
    return ARM.replace("</mujoco>", TENDONS)


def test_shafts_that_several_joints_turn_are_mujocos():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dynamics = InverseDynamics(rd.load(shafts()))
    without = InverseDynamics(rd.load(ARM))
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-1, 1, (3, 4))
        expected = by_mujoco(shafts(), q, qd, qdd, dynamics.joint_names)
        scale = np.abs(expected).max()
        tau = dynamics(q, qd, qdd)
        np.testing.assert_allclose(tau, expected, rtol=0, atol=ROUNDING * scale)
        assert (np.abs(tau - without(q, qd, qdd))[[0, 1, 3]] > 1e-3 * scale).all()
        Y = dynamics.regressor(q, qd, qdd)
        np.testing.assert_allclose(Y @ dynamics.parameters, tau, rtol=0, atol=1e-11 * scale)
    assert len(set(dynamics.parameter_names)) == len(dynamics.parameter_names)


def test_an_actuator_on_a_tendon_keeps_its_armature_and_damping():
    pull = '<actuator><motor name="pull" tendon="belt" gear="5" armature="2e-3" damping="0.1"/>'
    text = shafts().replace("</mujoco>", f"{pull}</actuator></mujoco>")
    with pytest.warns(DescriptionWarning, match="actuator 'pull': gear, forcerange: .*'lift'"):
        dynamics = InverseDynamics(rd.load(text))
    q, qd, qdd = np.random.default_rng(3).uniform(-1, 1, (3, 4))
    expected = by_mujoco(text, q, qd, qdd, dynamics.joint_names)
    np.testing.assert_allclose(
        dynamics(q, qd, qdd), expected, rtol=0, atol=ROUNDING * np.abs(expected).max()
    )


def test_an_actuator_on_a_tendon_of_one_joint_is_one_on_the_joint():
    pull = '<actuator><motor name="pull" {} forcerange="-3 3" armature="1e-3"/></actuator>'
    by_tendon, by_joint = (
        rd.load(shafts().replace("</mujoco>", f"{pull.format(where)}</mujoco>"))
        for where in ('tendon="wire" gear="5"', 'joint="wrist" gear="20"')
    )
    ratios = [{rotor.name: rotor.ratios for rotor in each.rotors} for each in (by_tendon, by_joint)]
    assert ratios[0] == ratios[1]
    assert ratios[0]["pull"] == (("wrist", 20.0),)
    assert by_tendon.joint("wrist").limits == by_joint.joint("wrist").limits
    assert by_tendon.joint("wrist").limits.effort == 3 * 20
    assert InverseDynamics(by_tendon).parameters == pytest.approx(
        InverseDynamics(by_joint).parameters
    )


@pytest.mark.parametrize(
    ("joint", "expected"),
    [
        ("", 10 + 15),
        ('actuatorfrcrange="-7 7"', 7),
        ('actuatorfrcrange="-90 90"', 10 + 15),
    ],
)
def test_the_limit_of_a_joint_is_that_of_all_its_actuators(joint, expected):
    """MuJoCo clamps each actuator's force, then their sum."""
    text = f"""<mujoco>
      <worldbody><body><joint name="turn" {joint}/><geom size=".1"/></body></worldbody>
      <actuator><motor name="a" joint="turn" gear="10" forcerange="-1 1"/>
      <motor name="b" joint="turn" gear="-5" forcerange="-3 3"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1e3, -1e3
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator[0] == expected
    assert rd.load(text).joint("turn").limits.effort == expected


def test_an_actuator_on_a_tendon_of_a_joint_and_its_follower_has_a_gear_and_limits(recwarn):
    text = """<mujoco><worldbody>
      <body><joint name="l" type="slide"/><geom size=".1"/></body>
      <body><joint name="r" type="slide"/><geom size=".1"/></body></worldbody>
      <tendon><fixed name="split"><joint joint="l" coef=".5"/><joint joint="r" coef=".7"/></fixed>
      </tendon><equality><joint joint1="r" joint2="l" polycoef="0 2 0 0 0"/></equality>
      <actuator><motor name="m" tendon="split" gear="3" forcerange="-4 4"/></actuator></mujoco>"""
    mechanism = rd.load(text)
    assert not recwarn
    ((joint, ratio),) = mechanism.rotors[0].ratios
    assert (joint, ratio) == ("l", pytest.approx(3 * (0.5 + 2 * 0.7)))
    assert mechanism.joint("l").limits.effort == pytest.approx(4 * ratio)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1.0
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator @ [1.0, 2.0] == pytest.approx(ratio)


def test_what_a_urdf_has_no_place_for_is_said():
    mechanism = rd.load(shafts())
    with pytest.warns(DescriptionWarning) as said:
        again = load_urdf_text(written(mechanism))
    assert [str(each.message).partition("URDF: ")[2] for each in said if "shafts" in str(each)] == [
        "the armature of shafts on joints turn, wrist, lift; set it in the simulator",
        "the friction of shafts on joints lift, turn, wrist; set it in the simulator",
    ]
    # that of one joint is the joint's
    assert again.joint("wrist").friction.viscous == pytest.approx(0.7 * 16 + 0.02 * 121)


def test_dry_friction_of_a_tendon_is_mujocos():
    """MuJoCo's dry friction is a constraint, here of the stiffest kind."""
    text = shafts().replace("<option ", '<option tolerance="0" timestep="1e-5" iterations="100" ')
    text = text.replace(
        'name="belt"',
        'name="belt" frictionloss="0.4" solreffriction="2e-5 1" '
        'solimpfriction="0.9999 0.9999 0.001 0.5 2"',
    )
    model = mujoco.MjModel.from_xml_string(text)
    model.jnt_limited[:] = 0
    data = mujoco.MjData(model)
    dynamics, without = InverseDynamics(rd.load(text)), InverseDynamics(rd.load(shafts()))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        data.qpos[:], data.qvel[:] = rng.normal(size=(2, 4)) * [[1.0], [10.0]]
        tau = data.qfrc_applied[:] = 50 * rng.normal(size=4)
        mujoco.mj_forward(model, data)
        found = dynamics(data.qpos, data.qvel, data.qacc)
        assert np.abs(found - tau).max() < 1e-9 * np.abs(tau).max()
        assert np.abs(without(data.qpos, data.qvel, data.qacc) - tau).max() > 0.1


def test_what_a_following_joint_turns_its_master_turns():
    text = """<mujoco model="gripper"><worldbody>
      <body><joint name="a" axis="0 1 0"/><geom size=".1" mass="1" pos=".1 0 0"/>
        <body pos=".2 0 0"><joint name="b" axis="0 1 0" armature=".2" damping="0.1"/>
          <geom size=".1" mass="1" pos=".1 0 .1"/></body></body></worldbody>
      <equality><joint joint1="b" joint2="a" polycoef="0 -2 0 0 0"/></equality>
      <tendon><fixed name="t" armature=".3" damping=".4">
        <joint joint="a" coef="5"/><joint joint="b" coef="2"/></fixed>
        <fixed name="none" armature=".3" damping=".4">
        <joint joint="a" coef="2"/><joint joint="b" coef="1"/></fixed></tendon>
      <actuator><motor name="m" joint="b" gear="7" armature="0.01"/></actuator></mujoco>"""
    mechanism = rd.load(text)
    assert [rotor.ratios for rotor in mechanism.rotors] == [(("a", -14.0),)]
    dynamics = InverseDynamics(mechanism)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, row = mujoco.MjData(model), np.array([1.0, -2.0])
    for q, qd, qdd in np.random.default_rng(0).normal(size=(5, 3)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q * row, qd * row, qdd * row
        mujoco.mj_inverse(model, data)
        expected = row @ data.qfrc_inverse
        assert dynamics([q], [qd], [qdd])[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "nactuator"), reason="new in MuJoCo 4")
def test_an_actuator_may_have_several_controls_and_several_gears():
    motors = """<actuator>
        <orientation joint="hip" kp="1"/>
        <dcmotor name="shank" joint="knee" gear="7" motorconst="1" resistance="1" input="pos vel"/>
        </actuator></mujoco>"""
    mechanism = rd.load(WALKER.replace("</mujoco>", motors))
    assert [(each.name, each.ratios) for each in mechanism.rotors] == [("shank", (("knee", 7.0),))]


def test_names_limits_and_gears_are_kept():
    mechanism = rd.load(ARM)
    assert mechanism.joint_names == ("lift", "turn", "body3_joint1", "wrist")
    turn = mechanism.joint("turn").limits
    np.testing.assert_allclose([turn.lower, turn.upper], np.deg2rad([-170, 90]))
    assert turn.effort == pytest.approx(60.0)  # 2 N m at the motor, gear 30
    assert mechanism.joint("body3_joint1").limits.effort == 7.0
    assert mechanism.joint("wrist").type == "continuous"
    assert [rotor.ratios for rotor in mechanism.rotors] == [(("turn", 30.0),)]


def test_a_file_is_told_from_a_urdf_by_its_root(tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    assert rd.load(file).joint_names == rd.load(ARM).joint_names
    assert rd.from_mujoco(mujoco.MjModel.from_xml_path(str(file))).name == "arm"
    urdf = tmp_path / "robot.xml"
    urdf.write_text('<robot name="mujoco"><link name="a"/></robot><!-- <mujoco> -->')
    with pytest.raises(rd.DescriptionError, match="no links"):
        rd.load(urdf, strict=True)


@pytest.mark.parametrize(
    "closure",
    [CONNECT, '<connect site1="rod_end" site2="rocker_end"/>'],
    ids=["bodies", "sites"],
)
def test_a_connect_closes_a_loop(closure):
    """The oracle: MuJoCo's torques of the open tree, projected by the closure's own slope there."""
    text = FOUR_BAR.format(closure=closure)
    text = text.replace('mass="0.8"/>', 'mass="0.8"/><site name="rod_end" pos="0.5 0.1 0"/>')
    mechanism = rd.load(text)
    assert [loop.name for loop in mechanism.loops]
    assert mechanism.actuated == ("motor",)
    tendon = '<tendon><fixed name="t"><joint joint="motor" coef="2"/></fixed></tendon>'
    pulled = text.replace('<motor joint="motor"/>', '<motor tendon="t"/>')
    assert rd.load(pulled.replace("</mujoco>", f"{tendon}</mujoco>")).actuated == ("motor",)
    dynamics = InverseDynamics(mechanism)
    chain, open_text = dynamics.closed, text.replace(closure, "")
    names, q, qd, qdd = mechanism.joint_names, np.array([0.2]), np.array([1.3]), np.array([-2.0])
    order = [chain.coordinate_names.index(name) for name in names]

    def at(t: float):
        return chain.forward_kinematics(q + t * qd + t**2 / 2 * qdd).q_r[order]

    h = 1e-4
    q_r = at(0.0)
    qd_r, qdd_r = (at(h) - at(-h)) / (2 * h), (at(h) - 2 * at(0.0) + at(-h)) / h**2
    tau = by_mujoco(open_text, q_r, qd_r, qdd_r, names)
    assert dynamics(q, qd, qdd) @ qd == pytest.approx(tau @ qd_r, rel=1e-5)


@pytest.mark.parametrize(
    "equality",
    [
        '<weld body1="rocker" body2="pin"/>',
        '<connect body1="hand" body2="rod" anchor="0 0 0"/>',
        '<weld site1="grip" site2="rocker_end"/>',
    ],
)
def test_what_is_moved_from_outside_closes_no_loop(equality):
    """A mocap body, here with another fixed to it."""
    hand = """<worldbody><body name="hand" mocap="true">
      <body name="pin" pos="0.1 0 0"><site name="grip"/></body></body>"""
    text = FOUR_BAR.format(closure=equality).replace("<worldbody>", hand)
    with pytest.warns(DescriptionWarning, match="a mocap body: found '(hand|pin)'"):
        mechanism = rd.load(text)
    assert not mechanism.loops
    state = np.array([[0.2, 0.4, -0.3], [1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])
    free = InverseDynamics(rd.load(FOUR_BAR.format(closure="")))
    np.testing.assert_array_equal(InverseDynamics(mechanism)(*state), free(*state))


def test_home_has_the_pose_of_what_flies_and_of_ball_joints():
    """Of a robot with a loop; the angles' rotation is compared with MuJoCo's."""
    more = """
    <body name="ball" pos="0 1 0"><freejoint name="fly"/><geom size="0.1" mass="1"/></body>
    <body name="arm"><joint name="shoulder" type="ball"/><geom size="0.1" pos="0 0.1 0"/></body>
    </worldbody><keyframe><key name="home"
      qpos="0 0 0  0.1 0.2 0.3 0.5 -0.5 0.1 0.7  0.9 0.1 -0.2 0.3"/></keyframe>"""
    text = FOUR_BAR.format(closure=CONNECT).replace("</worldbody>", more)
    home = rd.load(text).home
    assert [home[f"fly_{axis}"] for axis in "xyz"] == [0.1, 0.2, 0.3]
    for joint, quaternion in (("fly", [0.5, -0.5, 0.1, 0.7]), ("shoulder", [0.9, 0.1, -0.2, 0.3])):
        expected = np.zeros(9)
        mujoco.mju_quat2Mat(expected, np.array(quaternion) / np.linalg.norm(quaternion))
        turned = rotation_rpy(*(home[f"{joint}_r{axis}"] for axis in "xyz"))
        np.testing.assert_allclose(turned.ravel(), expected, rtol=0, atol=1e-15)


def test_a_weld_and_a_following_joint_are_kept():
    closure = '<weld body1="rod" body2="rocker"/>'
    closure += '<joint joint1="elbow" joint2="motor" polycoef="0.1 -2 0 0 0"/>'
    mechanism = rd.load(FOUR_BAR.format(closure=closure))
    assert [loop.type for loop in mechanism.loops] == ["fixed"]
    coupling = mechanism.joint("elbow").coupling
    assert coupling.ratios == (("motor", -2.0),)
    assert coupling.offset == pytest.approx(0.1)


@pytest.mark.parametrize(
    "closure",
    [
        CONNECT,
        '<weld body1="rod" body2="rocker" anchor="0.1 0.2 0.3"/>',
        '<weld body1="rod" body2="rocker" relpose="0.4 0.1 0.2 0.5 -0.5 0.1 0.7"/>',
        '<weld body1="rod" body2="rocker" anchor="0 0.3 0.1" relpose="0.5 0.1 0 0.6 0 0 0.8"/>',
    ],
)
def test_a_loop_is_as_far_from_closed_as_mujoco_says(closure):
    text = FOUR_BAR.format(closure=closure)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = 0.3, -0.5, 0.7
    mujoco.mj_forward(model, data)
    (loop,) = rd.load(text).loops
    points, axes = [], []
    for side in (loop.predecessor, loop.successor):
        body = data.body(side.link)
        turned = body.xmat.reshape(3, 3)
        points.append(body.xpos + turned @ side.pose.translation)
        axes.append(turned @ side.pose.rotation)
    np.testing.assert_allclose(points[0] - points[1], data.efc_pos[:3], rtol=0, atol=1e-15)
    if loop.type == "fixed":
        # the vector part of the quaternion between the frames
        sine = np.linalg.norm(data.efc_pos[3:6])
        assert np.trace(axes[0].T @ axes[1]) == pytest.approx(3 - 4 * sine**2, abs=1e-12)


def test_friction_that_is_switched_off_is_none():
    flags = '<option><flag damper="disable" frictionloss="disable"/></option>'
    text = ARM.replace('name="lift"', 'name="lift" frictionloss="2"')
    assert rd.load(text).joint("lift").friction == Friction(3.0, 2.0)
    robot = rd.load(text.replace("<worldbody>", flags + "<worldbody>", 1))
    assert all(link.joint.friction == Friction() for link in robot.links)


def test_gravity_that_is_switched_off_is_none():
    text = ARM.replace("<worldbody>", '<option><flag gravity="disable"/></option><worldbody>', 1)
    assert not rd.load(text).gravity.any()


FIXED = """<tendon><fixed name="cord" {}><joint joint="turn" coef="2"/></fixed></tendon></mujoco>"""
SPATIAL = """<worldbody><site name="s"/><body><geom size="1"/><site name="t" pos="1 0 0"/></body>
</worldbody><tendon><spatial name="cord" {}><site site="s"/><site site="t"/></spatial></tendon>
</mujoco>"""
CLOTH = """<worldbody><flexcomp name="cloth" type="grid" count="2 2 1" spacing="1 1 1" radius="0.01"
  dim="2" mass="1"/></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('<body name="tip"', '<body name="tip" gravcomp="1"', "'tip': gravcomp"),
        ("<option ", '<option density="5" ', "fluid"),
        (
            'name="wrist" axis',
            'name="wrist" stiffness="0 3" axis',
            "'wrist': stiffness that is not",
        ),
        (
            '<joint name="wrist"',
            '<joint type="ball" stiffness="3" name="wrist"',
            "stiffness of a sph",
        ),
        ('name="wrist" axis', 'name="wrist" damping="1 3" axis', "'wrist': damping that is not"),
        ('name="m2"', 'name="m2" damping="0 3"', "'m2': damping that is not linear: found .3.0"),
        ("</mujoco>", FIXED.format('stiffness="3"'), "tendon 'cord': stiffness: found .3.0"),
        ("</mujoco>", FIXED.format('damping="1 3"'), "tendon 'cord': damping that is not linear"),
        ("</mujoco>", SPATIAL.format('damping="3"'), "spatial tendon 'cord': .*found .3.0"),
        ("</mujoco>", SPATIAL.format('armature="3"'), "spatial tendon 'cord': .*found .3.0"),
        ("</mujoco>", CLOTH, "flex 'cloth': found 'a deformable body'"),
        ('range="-1 1"', 'range="1 -1"', "'lift': range: found .1.0, -1.0., expected a lower"),
        ('range="-7 7"', 'range="7 -7"', "'.*_joint1': actfrcrange: found .7.0, -7.0."),
        ('range="-2 2"', 'range="2 -2"', "actuator 'm1': forcerange: found .2.0, -2.0."),
    ],
)
def test_what_is_left_out_is_said(old, new, said):
    assert old in ARM
    with pytest.warns(DescriptionWarning, match=said):
        rd.load(ARM.replace(old, new))
    with pytest.raises(rd.DescriptionError, match="left out"):
        rd.load(ARM.replace(old, new), strict=True)


@pytest.mark.filterwarnings("error")
def test_a_flex_that_moves_with_one_body_needs_no_warning():
    plate = '<flex name="p" dim="2" body="column" vertex="0 0 0 1 0 0 0 1 0" element="0 1 2"/>'
    rd.load(ARM.replace("</mujoco>", f"<deformable>{plate}</deformable></mujoco>"), strict=True)


def test_what_is_no_model_is_refused_in_one_line():
    with pytest.raises(rd.DescriptionError, match="not a valid MJCF") as caught:
        rd.load("<mujoco><worldbody><body><nonsense/></body></worldbody></mujoco>")
    assert "\n" not in str(caught.value)
    with pytest.raises(rd.DescriptionError, match="MjModel"):
        rd.from_mujoco("arm.xml")


def test_the_topic_takes_no_mjcf():
    """It could include files."""
    with pytest.raises(rd.DescriptionError):
        load_urdf_text(ARM)


def test_only_what_is_described_is_loaded():
    """No warning of a model that is whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = rd.load(ARM)
    tree = replace(plain, rotors=())
    assert InverseDynamics(tree).joint_names == plain.joint_names


# Files that are meant to do harm, or came about by accident

BODY = "<body name='b'><joint name='j'/><geom type='sphere' size='0.1' mass='{}'/></body>"


def mjcf(*before: str, world: str = "", mass: str = "1") -> str:
    return f"<mujoco>{''.join(before)}<worldbody>{world}{BODY.format(mass)}</worldbody></mujoco>"


def refused(source, words: str) -> None:
    with pytest.raises(rd.DescriptionError, match=words) as caught:
        rd.load(source)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        mjcf(world="<replicate count='1000000000' offset='0 0 1'><geom size='1'/></replicate>"),
        mjcf("<size nkey='2000000000'/>"),
    ],
    ids=["replicate", "nkey"],
)
def test_a_model_without_end_ends_in_time(text, monkeypatch):
    monkeypatch.setattr(mujoco_compiler, "LONGEST", 2.0)
    begin = time.monotonic()
    refused(text, "^the MJCF text: MuJoCo: found 'no result within 2 s', expected one$")
    assert time.monotonic() - begin < 30  # and not for ever


@pytest.mark.parametrize(
    "text",
    [
        mjcf("<asset><hfield name='h' nrow='200000' ncol='200000' size='1 1 1 1'/></asset>"),
        mjcf("<size nuserdata='2000000000'/>"),
        mjcf("<sensor><user name='u' dim='2000000000'/></sensor>"),
        mjcf(
            "<asset><texture name='t' type='2d' builtin='flat' width='90000' height='90000'/>"
            "</asset>"
        ),
        mjcf(
            "<actuator><general joint='j' dyntype='user' actdim='2000000000'/></actuator>"
            "<keyframe><key/></keyframe>"
        ),
    ],
    ids=["hfield", "nuserdata", "sensor", "texture", "actdim"],
)
def test_a_model_that_takes_much_memory_is_refused(text):
    refused(text, "not a valid MJCF: .*(memory|MuJoCo)")


def test_a_model_of_many_bodies_or_bytes_is_refused(monkeypatch):
    many = "<replicate count='4000' offset='0 0 1'><body><geom size='1'/></body></replicate>"
    refused(mjcf(world=many), "^the MJCF text: bodies: found 4002, expected at most 3000$")
    monkeypatch.setattr(mujoco_compiler, "MOST_MODEL", 100)
    refused(mjcf(world=many), "its model has .* bytes, expected at most 100")


def test_parts_are_counted_to_the_last(monkeypatch):
    """Of each kind, of which a few words may make many."""
    monkeypatch.setattr(mujoco_compiler, "MOST_TAGS", 2)
    bodies = "<body><geom size='1'/></body>"
    weld = "<weld body1='b' body2='world'/>"
    follow = "<joint joint1='j'/>"
    motor = "<motor joint='j'/>"
    tendon = "<fixed><joint joint='j' coef='1'/></fixed>"
    for text, words in (
        (mjcf(world=bodies), "bodies: found 3,"),
        (mjcf(f"<equality>{weld * 2}{follow}</equality>"), "equalities: found 3,"),
        (mjcf(f"<actuator>{motor * 3}</actuator>"), "actuators: found 3,"),
        (mjcf(f"<tendon>{tendon * 3}</tendon>"), "tendons: found 3,"),
        (
            mjcf().replace("<joint name='j'/>", "<joint name='j'/><joint/><joint/>"),
            "joints: found 3",
        ),
    ):
        refused(text, f"^the MJCF text: {words}")
    assert rd.load(mjcf(f"<actuator>{motor * 2}</actuator>")).joint_names == ("j",)


def test_files_that_include_one_another_are_refused(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.xml").write_text(f'<mujoco><include file="{other}.xml"/></mujoco>')
    refused(tmp_path / "a.xml", "^a.xml: not a valid MJCF: .*already included")


def test_an_asset_is_looked_for_beside_the_file_that_is_loaded(tmp_path):
    """Not beside the one that names it."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "more.xml").write_text(
        '<mujoco><asset><mesh name="m" file="pipe.stl"/></asset></mujoco>'
    )
    os.mkfifo(tmp_path / "pipe.stl")
    file = tmp_path / "robot.xml"
    file.write_text(mjcf('<include file="inner/more.xml"/>'))
    refused(file, r"^robot.xml: file: found 'pipe.stl', expected a regular file$")


def test_a_file_is_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "inner.xml").write_text(mjcf())
    (tmp_path / "robot.xml").write_text('<mujoco><include file="inner.xml"/></mujoco>')
    monkeypatch.chdir(tmp_path)
    assert rd.load("robot.xml").joint_names == ("j",)


def test_warnings_of_mujocos_go_where_they_went_before():
    def mine(_: str) -> None:
        pass

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(mine)
    try:
        rd.load(mjcf())
        refused(mjcf(mass="-1"), "not a valid MJCF")
        assert mujoco.get_mju_user_warning() is mine
    finally:
        mujoco.set_mju_user_warning(before)


def test_an_included_file_or_an_asset_is_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "more.xml").write_text('<mujoco><include file="../pipe.xml"/></mujoco>')
    for before in (
        '<include file="pipe.xml"/>',
        '<include file="inner/more.xml"/>',
        '<compiler meshdir=".."/><asset><mesh name="m" file="{}/pipe.xml"/></asset>',
        '<asset><hfield name="h" size="1 1 1 1" file="/dev/zero"/></asset>',
        '<compiler assetdir=".."/><asset><mesh name="m" file="{}/pipe.xml"/></asset>',
        '<asset><texture name="t" type="cube" fileup="pipe.xml"/></asset>',
    ):
        file = tmp_path / "robot.xml"
        file.write_text(mjcf(before.format(tmp_path.name)))
        refused(file, r"^robot.xml: file: found '.*', expected a regular file$")


def test_includes_are_read_beside_the_file(tmp_path):
    (tmp_path / "inner.xml").write_text(mjcf())
    file = tmp_path / "robot.xml"
    file.write_text('<mujoco><include file="inner.xml"/></mujoco>')
    assert rd.load(file).joint_names == ("j",)


@pytest.mark.parametrize("text", [ARM, WALKER])
def test_a_model_is_the_same_whichever_process_compiles_it(text, monkeypatch):
    def content() -> bytes:
        model = mujoco_compiler.compiled(text, "")
        buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, buffer)
        return buffer.tobytes()

    here = content()
    monkeypatch.setattr(mujoco_compiler, "SHORT", 0)
    assert content() == here


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (mjcf(mass="nan"), "not a valid MJCF: XML contains a 'NaN'"),
        (mjcf(mass="NaN"), "not a valid MJCF: XML contains a 'NaN'"),
        (mjcf(mass="&#110;an"), "not a valid MJCF: XML contains a 'NaN'"),
        (mjcf(mass="1e300"), "link 'b': mass: found 1e.300, expected .* at most 1e.30"),
        (mjcf(mass="inf"), "link 'b': mass: found inf, expected a finite number"),
        (mjcf().replace("'j'", "'j' pos='1e200 0 0'"), "joint 'j': pos: found 1e.200"),
        (mjcf().replace("'j'", "'j' damping='inf'"), "joint 'j': damping: found inf"),
        (mjcf("<option gravity='0 0 1e31'/>"), "MJCF text: gravity: found 1e.31"),
    ],
)
def test_numbers_that_no_robot_has_are_refused(text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(text, words)
    assert not list(tmp_path.iterdir())  # MuJoCo would leave a log


@pytest.mark.parametrize("shortest", [0, 50_000])
def test_a_warning_of_mujocos_leaves_no_file(shortest, tmp_path, monkeypatch, capfd):
    """Whichever process compiles it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mujoco_compiler, "SHORT", shortest)
    rd.load(mjcf(world="<body><joint/><joint/><geom size='1'/></body>"))
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


def test_infinite_limits_are_none():
    ends = rd.load(mjcf().replace("'j'", "'j' range='-inf 90'")).joint("j").ends
    assert (ends.lower, ends.upper) == (None, pytest.approx(np.pi / 2))
