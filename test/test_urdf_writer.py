# SPDX-License-Identifier: Apache-2.0
"""A robot written as URDF is the same robot for every reader of URDF."""

from __future__ import annotations

import json
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    pin,
    pinocchio_torques,
    random_dh,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.description.fields import DescriptionWarning
from robot_dynamics.description.urdf_writer import urdf
from robot_dynamics.mechanism import Coupling, Friction, Limits
from robot_dynamics.scalar import roll_pitch_yaw, rotation_rpy


def written(mechanism, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        return urdf(mechanism, **options)


def robots(tmp_path):
    for seed, convention in enumerate(("standard", "modified", "standard")):
        file = tmp_path / f"{seed}.yaml"
        file.write_text(yaml.safe_dump(random_dh(seed, convention=convention, rotors=seed > 0)))
        yield rd.load(file)
    yield rd.load(random_urdf(4))
    yield rd.load(CONFIG / "three_axis.yaml")


def test_pinocchio_on_the_written_urdf_gives_our_torques(tmp_path):
    """Rotors as it knows them: their mass on the mount, Γ²·I at the joint."""
    for mechanism in robots(tmp_path):
        model = pin.buildModelFromXML(written(mechanism))
        model.gravity.linear = np.asarray(mechanism.gravity)
        names = mechanism.joint_names
        q, qd, qdd = state(7, len(names))
        ours = rd.InverseDynamics(mechanism, rotors="reflected", terms=TERMS)(q, qd, qdd)
        armature = {rotor.ratios[0][0]: rotor for rotor in mechanism.rotors}
        theirs = pinocchio_torques(model, names, q, qd, qdd) + [
            qdd[j] * rotor.ratios[0][1] ** 2 * rotor.inertial.inertia[2, 2]
            if (rotor := armature.get(name))
            else 0.0
            for j, name in enumerate(names)
        ]
        assert relative(theirs, ours) < RELATIVE_TO_PINOCCHIO


TERMS = ("inertia", "coriolis", "gravity", "rotors")


def test_read_back_it_is_the_same_robot(tmp_path):
    """Frames, friction, limits, gears and joints that follow others included."""
    rng = np.random.default_rng(3)
    for mechanism in robots(tmp_path):
        links = list(mechanism.links)
        for i, link in enumerate(links):
            if link.joint.moves:
                law = Friction(*rng.uniform(0, 2, 2))
                ends = Limits(-1.0, 2.0, 3.0, 4.0)
                links[i] = replace(link, joint=replace(link.joint, friction=law, limits=ends))
        last = next(link for link in reversed(links) if link.joint.moves)
        follows = Coupling(((mechanism.joint_names[0], -0.5),), 0.25)
        links[links.index(last)] = replace(last, joint=replace(last.joint, coupling=follows))
        robot = replace(mechanism, links=tuple(links), rotors=mechanism.rotors[:-1])
        read = replace(rd.load(written(robot, world=True)), gravity=robot.gravity)
        assert read.joint_names == robot.joint_names
        q, qd, qdd = state(8, len(robot.joint_names))
        ours = rd.InverseDynamics(replace(robot, rotors=()))(q, qd, qdd)
        bare = written(replace(robot, rotors=()))
        again = replace(rd.load(bare), gravity=robot.gravity)
        assert relative(rd.InverseDynamics(again)(q, qd, qdd), ours) < RELATIVE_TO_SISTERS
        for link in robot.links:
            assert read.joint(link.joint.name).limits == link.joint.limits
            at, there = pose(robot, link.name, q), pose(read, link.name, q)
            np.testing.assert_allclose(there, at, atol=1e-12)
        assert {rotor.ratios for rotor in read.rotors} == {each.ratios for each in robot.rotors}


def pose(mechanism, name, q):
    """(4, 4), of a link in the base frame."""
    S, s = mechanism.coordinates()
    tree = dict(zip(mechanism.tree_names, S @ q + s, strict=True))
    found = np.eye(4)
    while name != mechanism.base:
        link = mechanism.link(name)
        found = link.joint.pose(tree.get(link.joint.name, 0.0)).homogeneous() @ found
        name = link.parent
    return found


def test_mujoco_simulates_it():
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: extra `sim`")
    mechanism = rd.load(CONFIG / "three_axis.yaml")
    model = mujoco.MjModel.from_xml_string(written(mechanism, world=True))
    data = mujoco.MjData(model)
    q, qd, qdd = state(9, 3)
    model.dof_armature[:] = [
        rotor.ratios[0][1] ** 2 * rotor.inertial.inertia[2, 2] for rotor in mechanism.rotors
    ]
    data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
    mujoco.mj_inverse(model, data)
    ours = rd.InverseDynamics(mechanism, rotors="reflected")(q, qd, qdd)
    assert relative(data.qfrc_inverse, ours) < RELATIVE_TO_PINOCCHIO


def test_gazebo_drops_no_base_and_is_told_of_no_body(tmp_path):
    """sdformat drops a link without <inertial>, and everything on it, also where its joint is fixed
    to the world. Of moving links it is said: giving them a mass would change the robot."""
    bare = rd.load(CONFIG / "three_axis.yaml")
    root = ET.fromstring(written(bare, world=True))
    links = {link.get("name"): link.find("inertial/mass") for link in root.iter("link")}
    assert [name for name, mass in links.items() if mass is None] == ["world"]
    assert float(links["base"].get("value")) > 0
    with_base = replace(bare, base_inertial=replace(bare.link("bar1").inertial, mass=7.0))
    root = ET.fromstring(written(with_base, world=True))
    assert root.find("link[@name='base']/inertial/mass").get("value") == "7.0"
    assert ET.fromstring(written(bare)).find("link[@name='base']/inertial") is None
    for name, thin in (("three_axis", ""), ("polar", "link1, link2"), ("delta", "cross1, wrist1")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            urdf(rd.load(CONFIG / f"{name}.yaml"))
        said = [str(each.message) for each in caught if "simulators refuse" in str(each.message)]
        assert len(said) == bool(thin), name
        assert not thin or f"links {thin}" in said[0]
    # two point masses have moments of inertia together, if not about the line through them
    text = """
        robot: pair
        links:
          - {name: bar, joint: {name: q, type: revolute}, mass: 1.0, center_of_mass: [0.1, 0, 0]}
          - {name: tip, origin: {xyz: [0.3, 0, 0]}, joint: {type: fixed}, mass: 1.0, inertia: {I}}
    """
    for inertia, thin in (("ixx: 1.0e-3", False), ("iyy: 1.0e-3", True)):
        file = tmp_path / "pair.yaml"
        file.write_text(text.replace("{I}", f"{{{inertia}}}"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            urdf(rd.load(file))
        assert any("simulators refuse" in str(each.message) for each in caught) == thin


@pytest.mark.parametrize("robot", ["polar", "six_axis"])
def test_gazebos_robots_have_no_link_that_gazebo_drops(robot):
    pytest.importorskip("xacro", reason="xacro is not installed")
    from robot_dynamics.description.xacro_process import expanded

    path = CONFIG.parent / "urdf" / f"{robot}.urdf.xacro"
    root = ET.fromstring(expanded(path))
    empty = [link.get("name") for link in root.iter("link") if link.find("inertial") is None]
    fixed = {
        joint.find("child").get("link"): joint.find("parent").get("link")
        for joint in root.iter("joint")
        if joint.get("type") == "fixed"
    }
    # those that are fixed to another one are merged into it
    assert {name for name in empty if fixed.get(name, "world") == "world"} <= {"world"}


def test_every_link_of_a_shipped_robot_can_be_seen():
    for file in [*sorted(CONFIG.glob("[!f]*.yaml")), CONFIG / "five_bar.yaml"]:
        mechanism = rd.load(file)
        root = ET.fromstring(written(mechanism))
        drawn = {link.get("name") for link in root.iter("link") if link.find("visual") is not None}
        moved = {link.name for link in mechanism.moving if link.inertial.mass}
        assert moved <= drawn, file.name


@pytest.mark.parametrize("pitch", [0.0, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 1.5708, -1.2])
def test_angles_of_a_rotation_make_it_again(pitch):
    for roll, yaw in [(0.3, -2.5), (np.pi, 0.1), (0.0, 0.0), (-3.0, np.pi / 2)]:
        R = rotation_rpy(roll, pitch, yaw)
        np.testing.assert_allclose(rotation_rpy(*roll_pitch_yaw(R)), R, atol=1e-15 * 8)


def test_what_urdf_has_no_words_for_is_said(tmp_path, capsys):
    out = tmp_path / "rrr.urdf"
    assert main(["urdf", str(CONFIG / "rrr.yaml"), "--out", str(out), "--json"]) == 0
    result, err = capsys.readouterr()
    assert json.loads(result)["files"] == {"urdf": str(out)}
    assert json.loads(result)["urdf"] == out.read_text()
    assert "loops C2, C3" in err
    assert "gravity [0, -9.81, 0]" in err
    assert main(["urdf", str(CONFIG / "three_axis.yaml")]) == 0
    assert "inertia of rotors q1, q2, q3" in capsys.readouterr().err
