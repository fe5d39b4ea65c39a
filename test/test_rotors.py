# SPDX-License-Identifier: Apache-2.0
"""Rotors against the tree extended by them, in Pinocchio; reflected ones and none against
algebra."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    dh_to_pinocchio,
    pin,
    pinocchio_torques,
    random_dh,
    relative,
    state,
)
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.dynamics.motors import spin_torques
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import Equations
from robot_dynamics.mechanism import Inertial


def loaded(tmp_path, robot):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot))
    return rd.load(path)


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("seed", range(8))
def test_rotors_anywhere_are_bodies_on_geared_joints(tmp_path, name, seed):
    robot = random_dh(seed, joints=5, rotors=True)
    mechanism = loaded(tmp_path, robot)
    model, geared = dh_to_pinocchio(robot)
    q, qd, qdd = state(seed, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd, geared)
    tau = Equations.of(mechanism, name).torques(q, qd, qdd)
    assert relative(tau, expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_balanced_rotor_needs_no_angle_and_is_the_same_body(tmp_path, name):
    robot = random_dh(3, joints=5, rotors=True)
    for link in robot["links"]:
        if "rotor" in link:
            link["rotor"]["center_of_mass"] = [0.0, 0.0, 0.01]
            link["rotor"]["inertia"] = {"ixx": 1e-3, "iyy": 1e-3, "izz": 1.5e-3}
    # one that is known by its gear ratio alone, before the others
    robot["links"][0]["rotor"] = {"gear_ratio": 30.0}
    mechanism = loaded(tmp_path, robot)
    assert all(rotor.is_symmetric for rotor in mechanism.rotors)
    assert mechanism.rotors[0].inertial.is_nothing
    model, geared = dh_to_pinocchio(robot)
    q, qd, qdd = state(3, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd, geared)
    tau = Equations.of(mechanism, name).torques(q, qd, qdd)
    assert relative(tau, expected) < RELATIVE_TO_PINOCCHIO


OFF_AXIS = {
    "x of the centre of mass": {"center_of_mass": [0.02, 0.0, 0.01]},
    "y of the centre of mass": {"center_of_mass": [0.0, -0.03, 0.01]},
    "Ixy": {"inertia": {"ixx": 1e-3, "iyy": 1e-3, "izz": 1.5e-3, "ixy": 2e-4}},
    "Ixz": {"inertia": {"ixx": 1e-3, "iyy": 1e-3, "izz": 1.5e-3, "ixz": 2e-4}},
    "Iyz": {"inertia": {"ixx": 1e-3, "iyy": 1e-3, "izz": 1.5e-3, "iyz": 2e-4}},
    "Ixx - Iyy": {"inertia": {"ixx": 1e-3, "iyy": 1.4e-3, "izz": 1.5e-3}},
}


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("what", OFF_AXIS)
def test_a_rotor_that_is_off_its_axis_in_one_thing_alone_turns_with_it(tmp_path, name, what):
    robot = random_dh(3, joints=4, rotors=True)
    for link in robot["links"]:
        if "rotor" in link:
            link["rotor"] |= {
                "center_of_mass": [0.0, 0.0, 0.01],
                "inertia": {"ixx": 1e-3, "iyy": 1e-3, "izz": 1.5e-3},
            } | OFF_AXIS[what]
    mechanism = loaded(tmp_path, robot)
    assert not any(rotor.is_symmetric for rotor in mechanism.rotors)
    model, geared = dh_to_pinocchio(robot)
    q, qd, qdd = state(3, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd, geared)
    for dynamics in (
        Equations.of(mechanism, name).torques,
        rd.InverseDynamics(mechanism, name, backend="python"),
    ):
        assert relative(dynamics(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("name", FORMULATIONS)
def test_coupled_motors_of_a_differential(tmp_path, name):
    robot = random_dh(1, joints=4, rotors=False)
    first, second = robot["links"][1]["joint"]["name"], robot["links"][3]["joint"]["name"]
    rng = np.random.default_rng(0)
    from robots import random_rotor

    robot["rotors"] = {
        "left": random_rotor(rng, "link1") | {"gear_ratio": {first: 12.0, second: 7.0}},
        "right": random_rotor(rng, "base") | {"gear_ratio": {first: 12.0, second: -7.0}},
    }
    mechanism = loaded(tmp_path, robot)
    extended = copy.deepcopy(robot)
    # the oracle reads rotors at links: each hangs on a link of the chain there
    extended["links"][1]["rotor"] = robot["rotors"]["left"]
    extended["links"][3]["rotor"] = robot["rotors"]["right"]
    model, geared = dh_to_pinocchio(extended)
    q, qd, qdd = state(4, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd, geared)
    tau = Equations.of(mechanism, name).torques(q, qd, qdd)
    assert relative(tau, expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("name", FORMULATIONS)
def test_reflected_is_ratio_squared_times_spin_inertia_on_the_diagonal(tmp_path, name):
    balanced = random_dh(2, joints=5, rotors=True)
    for link in balanced["links"]:
        if "rotor" in link:  # off the axis a point turns with the rotor, on it with the mount
            link["rotor"]["center_of_mass"][:2] = [0.0, 0.0]
    points = copy.deepcopy(balanced)
    for link in points["links"]:
        if "rotor" in link:
            link["rotor"]["inertia"] = {}
    full, mechanism = loaded(tmp_path, balanced), loaded(tmp_path, points)
    q, _, _ = state(2, len(mechanism.joint_names))
    lumped = Equations.of(mechanism, name, "full").mass_matrix(q)
    reflected = Equations.of(full, name, "reflected").mass_matrix(q)
    gained = {r.name: r.ratios[0][1] ** 2 * r.inertial.inertia[2, 2] for r in full.rotors}
    expected = np.diag([gained.get(joint, 0.0) for joint in full.joint_names])
    assert relative(reflected - lumped, expected) < RELATIVE_TO_PINOCCHIO


def test_none_leaves_nothing_of_the_rotors(tmp_path):
    robot = random_dh(2, joints=5, rotors=True)
    mechanism = loaded(tmp_path, robot)
    model, _ = dh_to_pinocchio(robot, rotors=False)
    q, qd, qdd = state(2, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd)
    tau = InverseDynamics(mechanism, rotors="none")(q, qd, qdd)
    assert relative(tau, expected) < RELATIVE_TO_PINOCCHIO


def test_friction_is_viscous_and_coulomb_and_nothing_at_rest(tmp_path):
    robot = random_dh(0, joints=3)
    robot["links"][0]["friction"] = {"viscous": 0.7, "coulomb": 1.3}
    mechanism = loaded(tmp_path, robot)
    only = InverseDynamics(mechanism, terms=["friction"])
    zero = np.zeros(2)
    assert only(zero, [-2.0, 1.0], zero).tolist() == pytest.approx([-1.4 - 1.3, 0.0])
    assert only(zero, zero, zero).tolist() == [0.0, 0.0]
    smooth = InverseDynamics(mechanism, terms=["friction"], friction_smoothing=0.1)
    assert smooth(zero, zero, zero).tolist() == [0.0, 0.0]
    expected = 0.7 * 0.05 + 1.3 * np.tanh(0.5)
    assert smooth(zero, [0.05, 0.0], zero)[0] == pytest.approx(expected)


def test_drives_give_the_joints_power_and_gears_the_rest(tmp_path):
    robot = random_dh(6, joints=5, rotors=True)
    mechanism = loaded(tmp_path, robot)
    q, qd, qdd = state(6, len(mechanism.joint_names))
    dynamics = rd.InverseDynamics(mechanism)
    tau = dynamics(q, qd, qdd)
    drive, gear = dynamics.motor_torques(q, qd, qdd)
    ratios = [dict(rotor.ratios) for rotor in mechanism.rotors]
    driven = [
        tau[mechanism.joint_names.index(*share)] / next(iter(share.values())) for share in ratios
    ]
    assert relative(drive, np.array(driven)) < RELATIVE_TO_SISTERS
    # what the rotors take is what Pinocchio's rotor joints carry
    taken = rotor_joints(robot, mechanism, (q, qd, qdd))
    assert relative(drive - gear, taken) < RELATIVE_TO_PINOCCHIO
    # the same in batches, after another gravity: unbalanced rotors feel it
    dynamics.gravity_vector = robot["gravity"] = [1.0, 2.0, 3.0]
    again = dynamics.motor_torques(*(np.tile(each, (4, 1)) for each in (q, qd, qdd)))
    single = dynamics.motor_torques(q, qd, qdd)
    assert relative(again.gear[3], single.gear) < RELATIVE_TO_SISTERS
    taken = rotor_joints(robot, mechanism, (q, qd, qdd))
    assert relative(single.drive - single.gear, taken) < RELATIVE_TO_PINOCCHIO
    # reflected rotors turn with their joints alone
    motors = rd.InverseDynamics(mechanism, rotors="reflected").motor_torques(q, qd, qdd)
    rates = [
        k * qdd[mechanism.joint_names.index(name)] for each in ratios for name, k in each.items()
    ]
    taken = [
        r.inertial.inertia[2, 2] * rate for r, rate in zip(mechanism.rotors, rates, strict=True)
    ]
    assert motors.drive - motors.gear == pytest.approx(taken)


def rotor_joints(robot, mechanism, state):
    """(m,): what Pinocchio says of the rotors' own joints."""
    model, geared = dh_to_pinocchio(robot)
    column = {name: j for j, name in enumerate(mechanism.joint_names)}
    every = {name: {name: 1.0} for name in mechanism.joint_names} | geared
    x = [np.zeros(model.nv) for _ in range(3)]
    configuration = pin.neutral(model)
    for name, share in every.items():
        joint = model.joints[model.getJointId(name)]
        for k, value in enumerate(state):
            x[k][joint.idx_v] = sum(r * value[column[each]] for each, r in share.items())
        configuration[joint.idx_q] = x[0][joint.idx_v]
    full = pin.rnea(model, model.createData(), configuration, x[1], x[2])
    joints = [model.joints[model.getJointId(f"rotor of {r.name}")] for r in mechanism.rotors]
    return np.array([full[joint.idx_v] for joint in joints])


TRANSMISSIONS = """
<robot name="geared">
  <link name="base"/><link name="a"/><link name="b"/><link name="c"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
    <dynamics damping="0.4" friction="0.2"/></joint>
  <joint name="j2" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="j3" type="revolute"><parent link="b"/><child link="c"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  {}
</robot>"""

SIMPLE = """<transmission name="t1"><type>transmission_interface/SimpleTransmission</type>
  <joint name="j1"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
  <actuator name="m1"><mechanicalReduction>{}</mechanicalReduction></actuator></transmission>"""
CONTROL = """<ros2_control name="r" type="system"><joint name="j1"/><transmission name="t2">
  <plugin>transmission_interface/DifferentialTransmission</plugin>
  <actuator name="right" role="actuator2"><mechanical_reduction>50</mechanical_reduction></actuator>
  <actuator name="left" role="actuator1"><mechanical_reduction>50</mechanical_reduction></actuator>
  <joint name="j2" role="joint1"><mechanical_reduction>2</mechanical_reduction></joint>
  <joint name="j3" role="joint2"/></transmission></ros2_control>"""


def test_gear_ratios_come_from_transmissions():
    mechanism = rd.load(TRANSMISSIONS.format(SIMPLE.format("-120.5") + CONTROL))
    ratios = {rotor.name: dict(rotor.ratios) for rotor in mechanism.rotors}
    assert ratios == {
        "j1": {"j1": -120.5},
        "left": {"j2": 100.0, "j3": 50.0},
        "right": {"j2": 100.0, "j3": -50.0},
    }
    assert mechanism.joint("j1").friction.viscous == 0.4
    assert mechanism.joint("j1").friction.coulomb == 0.2


def test_a_four_bar_linkage_turns_its_second_motor_with_both_joints():
    """As ros2_control's four_bar_linkage_transmission.hpp computes the rates of its actuators."""
    linkage = CONTROL.replace("Differential", "FourBarLinkage").replace(
        'name="j3" role="joint2"/>',
        'name="j3" role="joint2"><mechanical_reduction>-3</mechanical_reduction></joint>',
    )
    robot = rd.InverseDynamics(rd.load(TRANSMISSIONS.format(linkage)), backend="python")
    rates = np.array([0.3, 0.7, -0.2])
    ratios = {rotor.name: dict(rotor.ratios) for rotor in robot.mechanism.rotors}
    turned = [sum(ratios[m].get(j, 0) * r for j, r in zip(robot.joint_names, rates, strict=True))
              for m in ("left", "right")]  # fmt: skip
    assert turned == pytest.approx([rates[1] * 2 * 50, (rates[1] + rates[2] * -3) * 50])


def test_both_motors_of_a_transmission_count_though_they_have_no_names_and_not_the_same_name():
    unnamed = TRANSMISSIONS.format(CONTROL.replace('name="left" ', "").replace('name="right" ', ""))
    assert len(rd.load(unnamed).rotors) == 2
    third = CONTROL.replace("</transmission>", '<joint name="j1"/></transmission>')
    with pytest.warns(UserWarning, match="'t2': found '3 joints of .*it is left out"):
        assert not rd.load(TRANSMISSIONS.format(third)).rotors
    same = TRANSMISSIONS.format(CONTROL.replace('"right"', '"left"'))
    with pytest.raises(rd.DescriptionError, match=r"transmission 't2': actuators: .*two names"):
        rd.load(same)


def test_a_transmission_of_joints_that_is_of_no_known_type_is_said_to_be_left_out():
    text = TRANSMISSIONS.format(CONTROL.replace("Differential", "Tendon"))
    said = r"transmission 't2': found '2 joints of .*TendonTransmission', expected .* left out"
    with pytest.warns(UserWarning, match=said):
        assert not rd.load(text).rotors
    with pytest.raises(rd.DescriptionError, match=said):
        rd.load(text, strict=True)


@pytest.mark.parametrize("held", ["j2", "j3"])
def test_a_differential_with_a_joint_that_is_fixed_is_left_out_alone(tmp_path, held):
    text = TRANSMISSIONS.format(SIMPLE.format("40") + CONTROL)
    fixed = text.replace(
        f'<joint name="{held}" type="revolute">', f'<joint name="{held}" type="fixed">'
    )
    (tmp_path / "arm.urdf").write_text(text)
    (tmp_path / "arm.yaml").write_text(f"urdf: arm.urdf\njoints: {{{held}: fixed}}\n")
    for source in (fixed, tmp_path / "arm.yaml"):
        mechanism = rd.load(source)
        assert {rotor.name: dict(rotor.ratios) for rotor in mechanism.rotors} == {
            "j1": {"j1": 40.0}
        }
        dynamics, zeros = InverseDynamics(mechanism), np.zeros(2)
        assert dynamics.motor_torques(zeros, zeros, zeros).drive.shape == (1,)


@pytest.mark.parametrize("reduction", ["0", "fast", "nan", ""])
def test_a_reduction_that_is_none_is_refused_in_one_line(reduction):
    with pytest.raises(rd.RobotDynamicsError, match=r"t1.*mechanicalReduction") as error:
        rd.load(TRANSMISSIONS.format(SIMPLE.format(reduction)))
    assert "\n" not in str(error.value)


def test_rotor_data_beside_a_urdf_take_its_gear_ratio(tmp_path):
    (tmp_path / "arm.urdf").write_text(TRANSMISSIONS.format(SIMPLE.format("40")))
    rotor = {
        "origin": {"xyz": [0, 0, 0.1]},
        "mass": 0.2,
        "inertia": {"ixx": 1e-4, "iyy": 1e-4, "izz": 2e-4},
    }
    (tmp_path / "arm.yaml").write_text(
        yaml.safe_dump({"urdf": "arm.urdf", "rotors": {"j1": rotor}})
    )
    mechanism = rd.load(tmp_path / "arm.yaml")
    (only,) = mechanism.rotors
    assert (only.mount, dict(only.ratios)) == ("base", {"j1": 40.0})
    D = InverseDynamics(mechanism).mass_matrix(np.zeros(3))
    assert D[0, 0] == pytest.approx(40.0**2 * 2e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gear_ratio": 0}, "gear_ratio"),
        ({"gear_ratio": "fast"}, "gear_ratio"),
        ({"mount": "nowhere"}, "mount: found 'nowhere'"),
        ({"mount": "bar2"}, "does not move"),
        ({"mount": "bar3"}, "does not move"),
        ({"origin": None}, "no position"),
        ({"gearratio": 3}, "did you mean 'gear_ratio'"),
        ({"mass": -1}, "mass"),
    ],
)
def test_an_impossible_rotor_is_refused_in_one_line(tmp_path, change, words):
    robot = yaml.safe_load((CONFIG / "three_axis.yaml").read_text())
    rotor = robot["links"][1]["rotor"]
    rotor.update(change)
    if change == {"origin": None}:
        del rotor["origin"]
    with pytest.raises(rd.RobotDynamicsError, match=words) as error:
        loaded(tmp_path, robot)
    assert "\n" not in str(error.value)
    assert "rotor" in str(error.value)


def test_a_rotor_without_a_body_takes_no_torque_about_its_axis_and_moves_no_other():
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    empty = replace(mechanism.rotors[1], inertial=Inertial())
    some = replace(mechanism, rotors=(mechanism.rotors[0], empty, *mechanism.rotors[2:]))
    states = np.random.default_rng(6).normal(size=(3, len(mechanism.joint_names)))
    whole, found = (spin_torques(each, "full", *states) for each in (mechanism, some))
    assert found[1] == 0.0
    np.testing.assert_allclose(np.delete(found, 1), np.delete(whole, 1), rtol=1e-12)
