# SPDX-License-Identifier: Apache-2.0
"""`robot_dynamics check`: the robot as it was understood, and what is probably not meant."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
import yaml
from robots import CONFIG, example_robots, tensor_matrix

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.app.oddities import notes, oddities
from robot_dynamics.description.check import body, nearest_possible
from robot_dynamics.mechanism import Inertial

SHIPPED = [f for f in sorted(CONFIG.glob("*.yaml")) if f.name != "feed_forward.yaml"]


def arm(*, scale=1.0, gram=1.0, moments=1.0, **link):
    """Two links of 0.4 m and 2 kg."""
    length = 0.4 * scale
    body = {
        "a": length,
        "mass": 2.0 * gram,
        "center_of_mass": [-length / 2, 0, 0],
        "inertia": {"ixx": 1e-3 * moments, "iyy": 0.03 * moments, "izz": 0.03 * moments},
    }
    links = [{"name": f"l{i}", "joint": {"name": f"q{i}", "type": "revolute"}} for i in (1, 2)]
    return {"robot": "arm", "links": [each | body for each in links[:1]] + [links[1] | body | link]}


LIMITED = {"name": "q2", "type": "revolute", "limits": {"lower": -170.0, "upper": 10.0}}


@pytest.fixture
def checked(tmp_path, monkeypatch, capsys):
    """check FILE --json on a description: the exit code and what it says, no kernel is built."""
    nothing = ("disagreement", "disagreement_by_joint", "backends", "left_out")
    nobody = {key: {} for key in nothing}
    monkeypatch.setattr("robot_dynamics.app.check_report.agreement", lambda *_: nobody)

    def check(content, *options):
        file = content
        if isinstance(content, dict):
            file = tmp_path / "robot.yaml"
            file.write_text(yaml.safe_dump(content))
        code = main(["check", str(file), *options])
        out = capsys.readouterr().out
        return code, json.loads(out) if "--json" in options else out

    return check


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (arm(scale=1000.0), "lengths in millimetres?"),
        (arm(gram=1000.0), "masses in grams?"),
        (arm(moments=1e6), "link 'l1': inertia of 2 kg"),
        (arm(center_of_mass=[-200.0, 0, 0]), "link 'l2': centre of mass 200 m"),
        (arm(mass=0.0, inertia={}), "no mass and no inertia in l2 (moved by q2)"),
        (arm(alpha=-90.0), "link 'l2': alpha: found -90.0, expected at most two turns"),
        (arm(joint=LIMITED), "joint 'q2': a limit of -170 rad, 27.1 turns: is it in degrees?"),
    ],
    ids=["length", "mass", "inertia", "centre", "nothing", "angle", "limit"],
)
def test_units_and_bodies_that_are_probably_not_meant_are_told_and_strict_refuses_them(
    content, words, checked
):
    code, found = checked(content, "--json")
    assert code == 0
    assert any(words in each for each in found["warnings"])
    assert not found["sound"]
    code, found = checked(content, "--json", "--strict")
    assert code == 1
    assert set(found) == {"error"}


def test_robots_that_people_have_are_not_suspected():
    """Those shipped, and those of other houses but two whose fingers or grippers are empty."""
    told = {}
    for file in [*SHIPPED, CONFIG.parent / "urdf/six_axis.urdf", *example_robots()[::4]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mechanism = rd.load(file)
        if found := list(oddities(mechanism, file.name)):
            told[file.name] = found
    assert set(told) <= {"romeo.urdf", "romeo_laas_small.urdf"}
    assert all("no mass" in each for found in told.values() for each in found)


def test_joints_in_one_place_need_no_body_between_them_and_others_do(checked):
    """A wrist's links may weigh nothing; one that reaches somewhere needs a body or a motor."""
    wrist = {"name": "w", "joint": {"name": "q3", "type": "revolute"}}
    long = wrist | {"a": 0.1}
    driven = long | {"rotor": {"gear_ratio": 50.0, "inertia": {"izz": 1e-5}}}
    hand = {"name": "h", "joint": {"name": "q4", "type": "revolute"}, "mass": 0.1}
    back = hand | {"origin": {"xyz": [-0.1, 0, 0]}}
    cases = ((wrist, hand, True), (long, hand, False), (long, back, True), (driven, hand, True))
    for link, last, sound in cases:
        content = arm()
        content["links"] += [link, last]
        _, found = checked(content, "--json")
        assert found["sound"] == sound, found["warnings"]


def test_legs_and_wheels_on_a_base_taken_as_fixed_are_noted_and_one_arm_is_not(checked):
    leg = arm()["links"]
    legs = [
        dict(link, name=f"{side}{link['name']}", joint=dict(link["joint"], name=f"{side}{k}"))
        for side in ("left", "right")
        for k, link in enumerate([*leg, dict(leg[1], name="l3")])
    ]
    legs[3]["parent"] = "base"
    _, found = checked({"robot": "walker", "links": legs}, "--json")
    (note,) = found["notes"]
    assert "base is assumed to be fixed and carries leftl1, rightl1" in note
    assert found["sound"]
    wheels = [
        {"name": n, "parent": "base", "joint": {"name": f"j{n}", "type": "continuous"}, "mass": 1.0}
        for n in "ab"
    ]
    _, found = checked({"robot": "cart", "links": wheels}, "--json")
    assert len(found["notes"]) == 1
    assert not list(notes(rd.load(CONFIG / "three_axis.yaml")))


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_possible_body_is_possible_and_no_other_is_nearer(seed):
    rng = np.random.default_rng(seed)

    def second(I):
        return np.trace(I) / 2 * np.eye(3) - I

    A = rng.normal(size=(3, 3))
    wrong = Inertial(1.0, inertia=(A + A.T) / 2 + 0.3 * np.eye(3))
    assert list(body(wrong, ""))
    right = nearest_possible(wrong)
    assert not list(body(right, ""))
    distance = np.linalg.norm(second(right.inertia) - second(wrong.inertia))
    for _ in range(200):  # near it, and anywhere
        other = (
            second(right.inertia) + rng.choice([1e-3, 1.0]) * (B := rng.normal(size=(3, 3))) @ B.T
        )
        assert np.linalg.norm(other - second(wrong.inertia)) >= distance
    assert not nearest_possible(Inertial(0.0, inertia=np.eye(3))).inertia.any()
    possible = nearest_possible(right)
    np.testing.assert_allclose(possible.inertia, right.inertia, atol=1e-12)


def test_what_breaks_which_condition_is_said_link_by_link_with_the_nearest_body(checked):
    content = arm(inertia={"ixx": 0.01, "iyy": 0.01, "izz": 0.04})
    _, found = checked(content, "--json")
    assert found["links"]["l1"]["violated"] == []
    (words,) = found["links"]["l2"]["violated"]
    assert "triangle inequality" in words
    nearest = tensor_matrix(found["links"]["l2"]["nearest_inertia"])
    np.testing.assert_allclose(nearest, np.diag([0.02, 0.02, 0.04]), atol=1e-12)
    _, printed = checked(content)
    assert "nearest possible body of l2: inertia: {ixx: 0.02, iyy: 0.02, izz: 0.04" in printed


def test_joints_are_listed_in_the_order_that_torque_takes(checked):
    for file in (CONFIG / "rrr.yaml", CONFIG / "three_axis.yaml"):
        _, found = checked(file, "--json")
        mechanism = rd.load(file)
        dynamics = rd.InverseDynamics(mechanism)
        assert found["joints"] == list(dynamics.joint_names)
        assert found["actuated"] == list(dynamics.actuated_names)
        if mechanism.sensed:
            sensed = rd.InverseDynamics(mechanism, sensed=True)
            assert found["joints"] + found["sensed"] == list(sensed.joint_names)
            assert set(found["passive"]) == set(mechanism.joint_names) - set(found["joints"])


def test_gears_limits_tips_and_freedoms_are_those_of_the_robot(checked):
    _, found = checked(CONFIG / "three_axis.yaml", "--json")
    assert (found["degrees_of_freedom"], found["base"], found["tips"]) == (3, "base", ["bar3"])
    assert found["rotors"]["q2"]["gear_ratios"] == {"q2": -2.5}
    assert found["rotors"]["q2"]["axial_inertia"] == 0.0042
    assert found["motion"]["q2"]["gear_ratio"] == -2.5
    assert found["gears"] == {}
    _, found = checked("package://robot_dynamics/urdf/six_axis.urdf", "--json")
    mechanism = rd.load("package://robot_dynamics/urdf/six_axis.urdf")
    for name in found["joints"]:
        ends = mechanism.joint(name).limits
        told = found["motion"][name]
        assert (told["lower"], told["upper"]) == (ends.lower, ends.upper)
        assert (told["velocity"], told["effort"]) == (ends.velocity, ends.effort)


def test_a_transmission_alone_is_told_from_a_rotor(checked):
    content = arm()
    content["links"][0]["rotor"] = {"gear_ratio": 100, "inertia": {"izz": 1e-4}}
    content["links"][1]["rotor"] = {"gear_ratio": 50}
    _, found = checked(content, "--json")
    assert set(found["rotors"]) == {"q1"}
    assert found["gears"] == {"q2": {"q2": 50.0}}
    assert found["sound"], "the inertia about its axis is all that a data sheet gives"
    assert "gear without rotor inertia: q2: 50 of q2" in checked(content)[1]


def test_what_a_follower_is_equal_to_includes_its_offset(tmp_path, checked):
    file = tmp_path / "robot.urdf"
    joint = (
        '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>'
        '<limit lower="-1" upper="1" effort="9" velocity="2"/>{3}</joint>'
    )
    mimic = '<mimic joint="a" multiplier="-2" offset="0.3"/>'
    links = "".join(f'<link name="l{k}"/>' for k in range(3))
    joints = joint.format("a", "l0", "l1", "") + joint.format("b", "l1", "l2", mimic)
    file.write_text(f'<robot name="pair">{links}{joints}</robot>')
    assert "  b = -2 a + 0.3\n" in checked(file)[1]
    motion = checked(file, "--json")[1]["motion"]
    assert {name: each["offset"] for name, each in motion.items()} == {"a": 0.0, "b": 0.3}


def test_a_warning_about_the_loops_is_given_once(tmp_path, capsys):
    described = (CONFIG / "five_bar.yaml").read_text()
    file = tmp_path / "robot.yaml"
    file.write_text(re.sub(r"^home:", "near: {qa1: -2.0}\nhome:", described, flags=re.M))
    assert main(["check", str(file)]) == 0
    printed = "".join(capsys.readouterr())
    assert printed.count("away from `near`") == 1


def test_what_ran_is_named_alike_for_open_and_closed_robots():
    for file in (CONFIG / "polar.yaml", CONFIG / "five_bar.yaml"):
        assert rd.InverseDynamics(rd.load(file)).backend.startswith("torques: ")
