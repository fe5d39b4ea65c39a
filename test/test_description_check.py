# SPDX-License-Identifier: Apache-2.0
"""What is odd about a robot causes a warning at the caller's line; what is impossible is
refused."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.app import cli
from robot_dynamics.description import load_urdf_text
from robot_dynamics.description.check import body
from robot_dynamics.description.fields import DescriptionWarning
from robot_dynamics.description.files import find
from robot_dynamics.mechanism import Coupling, Inertial

PI = np.pi


def dh(*rows, **more):
    """A description of rows (theta, d, a, alpha, mass, centre, (ixx, iyy, izz), kind)."""
    links = [
        {
            "name": f"link{i}",
            "joint": {"name": f"q{i}", "type": kind},
            **dict(zip(("theta", "d", "a", "alpha"), map(float, place), strict=True)),
            "mass": mass,
            "center_of_mass": list(center),
            "inertia": dict(zip(("ixx", "iyy", "izz"), moments, strict=True)),
        }
        for i, (*place, mass, center, moments, kind) in enumerate(rows, 1)
    ]
    return {"robot": "r", "links": links, **more}


# Corke, robotics-toolbox-python, models/DH/Puma560.py and Stanford.py; KDL's puma560.cpp has the
# same first body without a mass
PUMA = dh(
    (0, 0.67183, 0, PI / 2, 0.0, (0, 0, 0), (0, 0.35, 0), "revolute"),
    (0, 0, 0.4318, 0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539), "revolute"),
    (
        0,
        0.15005,
        0.0203,
        -PI / 2,
        4.8,
        (-0.0203, -0.0141, 0.07),
        (0.066, 0.086, 0.0125),
        "revolute",
    ),
    (0, 0.4318, 0, PI / 2, 0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3), "revolute"),
    (0, 0, 0, -PI / 2, 0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3), "revolute"),
    (0, 0, 0, 0, 0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3), "revolute"),
)
STANFORD = dh(
    (0, 0.412, 0, -PI / 2, 9.29, (0, 0.0175, -0.1105), (0.276, 0.255, 0.071), "revolute"),
    (0, 0.154, 0, PI / 2, 5.01, (0, -1.054, 0), (0.108, 0.018, 0.1), "revolute"),
    (-PI / 2, 0, 0, 0, 4.25, (0, 0, -6.447), (2.51, 2.51, 0.006), "prismatic"),
    (0, 0, 0, -PI / 2, 1.08, (0, 0.092, -0.054), (0.002, 0.001, 0.001), "revolute"),
    (0, 0, 0, PI / 2, 0.63, (0, 0.566, 0.003), (0.003, 0.0004, 0), "revolute"),
    (0, 0.263, 0, 0, 0.51, (0, 0, 1.554), (0.013, 0.013, 0.0003), "revolute"),
)


@pytest.fixture
def load(tmp_path):
    """(mechanism, warnings) of a description's content."""

    def loaded(content, **options):
        file = tmp_path / "robot.yaml"
        file.write_text(yaml.safe_dump(content))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mechanism = rd.load(file, **options)
        assert all(each.category is DescriptionWarning for each in caught)
        return mechanism, [str(each.message) for each in caught]

    return loaded


def test_the_published_puma_560_is_told_of_and_computed(load):
    mechanism, told = load(PUMA)
    assert len(told) == 3
    assert "link 'link1': an inertia of up to 0.35 kg m², but no mass" in told[0]
    assert "link 'link1': inertia: triangle inequality" in told[1]
    assert "0 + 0 < 0.35" in told[1]
    assert "link 'link3': inertia: triangle inequality" in told[2]
    # the gravity load at q_n that the toolbox's manual prints
    g = rd.InverseDynamics(mechanism, backend="python").gravity([0, PI / 4, PI, 0, PI / 4, 0])
    assert g == pytest.approx([0, 31.6399, 6.0351, 0, 0.0283, 0], abs=5e-5)
    D = rd.InverseDynamics(mechanism, backend="python").mass_matrix(np.zeros(6))
    assert np.linalg.eigvalsh(D).min() > 0  # right as a whole
    with pytest.raises(rd.RobotDynamicsError, match="link 'link1': an inertia"):
        load(PUMA, strict=True)


def test_the_published_stanford_arm_is_told_of_and_computed(load):
    mechanism, told = load(STANFORD)
    (each,) = told
    assert "link 'link5': inertia: triangle inequality" in each
    assert np.isfinite(rd.InverseDynamics(mechanism, backend="python").gravity(np.ones(6))).all()


BODY = {"ixx": 0.2, "iyy": 0.3, "izz": 0.4, "ixy": 0.0, "ixz": 0.0, "iyz": 0.0}


def one(mass=1.0, **inertia):
    content = dh((0, 0, 0, 0, mass, (0, 0, 0), (0, 0, 0), "revolute"))
    content["links"][0]["inertia"] = {**BODY, **inertia}
    return content


@pytest.mark.parametrize(
    ("inertia", "words"),
    [
        ({}, None),
        ({"izz": 0.5}, None),  # a plate
        ({"izz": 0.5 * (1 + 1e-10)}, None),  # by rounding
        ({"izz": 0.5 * (1 + 1e-7)}, "triangle inequality"),
        ({"ixx": 0.05}, "triangle inequality"),
        ({"ixx": -1e-20, "iyy": 0.4}, None),
        ({"ixx": 1e-20, "iyy": 0, "izz": -1e-20}, None),
        ({"ixx": -1e-6, "iyy": 0.4}, "a principal moment: found -1e-06"),
        ({"ixy": 0.3}, "a principal moment: found -0.05"),
        ({"iyz": 0.4}, "a principal moment"),
        ({"ixz": 0.4}, "a principal moment"),
    ],
)
def test_an_inertia_that_no_body_has_is_told_and_rounding_is_not(inertia, words, load):
    _, told = load(one(**inertia))
    if words is None:
        assert told == []
        load(one(**inertia), strict=True)
        return
    assert len(told) == 1
    assert "robot.yaml: link 'link1': inertia" in told[0]
    assert words in told[0]
    with pytest.raises(rd.RobotDynamicsError, match=words.split(":")[0]):
        load(one(**inertia), strict=True)


def test_numbers_that_overflow_are_refused(load):
    for key in ("ixy", "ixx"):
        words = rf"inertia.{key}: found 1e\+308, expected .*1e\+30"
        with pytest.raises(rd.RobotDynamicsError, match=words):
            load(one(**{key: 1e308}))


def rotor(**more):
    content = one()
    content["links"][0]["rotor"] = {"gear_ratio": 100, **more}
    return content


def test_a_rotor_known_by_the_inertia_about_its_axis_is_fine_and_others_are_bodies(load):
    assert load(rotor(inertia={"izz": 1e-4}), strict=True)[1] == []
    assert load(rotor(inertia={"izz": 1e-4}, mass=0.1, origin={}), strict=True)[1] == []
    for inertia in ({"izz": -1e-4}, {"ixx": 1e-4}, {"izz": 1e-4, "ixx": 1e-5}):
        _, told = load(rotor(inertia=inertia))
        assert len(told) == 1
        assert "rotor 'q1': inertia" in told[0]
    with pytest.raises(rd.RobotDynamicsError, match=r"rotor 'q1': mass: found -0.1, expected"):
        load(rotor(mass=-0.1, origin={}))


def test_a_negative_mass_is_refused_in_every_description(load):
    with pytest.raises(rd.RobotDynamicsError, match=r"link 'link1': mass: found -1.0, exp"):
        load(one(mass=-1.0))
    urdf = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="-1"/>
        </inertial></link><joint name="j" type="revolute"><parent link="a"/><child link="b"/>
        </joint></robot>"""
    with pytest.raises(rd.RobotDynamicsError, match=r"link 'b': mass: found -1.0, expected"):
        load_urdf_text(urdf)


def test_a_payloads_mass_and_inertia_are_complained_about_as_a_links_are():
    for mass, moments, words in (
        (-1.0, (0.0, 0.0, 0.0), "tool: mass: found -1.0, expected at least 0 kg"),
        (0.0, (1.0, 1.0, 1.0), "tool: an inertia of up to 1 kg m², but no mass"),
        (1.0, (1.0, 1.0, 3.0), "tool: inertia: triangle inequality"),
    ):
        (complaint,) = body(Inertial(mass, inertia=np.diag(moments)), "tool")
        assert words in str(complaint)
    assert list(body(Inertial(0.0), "tool")) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"robot": "empty"}, "robot 'empty' has no links: there is nothing to compute"),
        (
            dh((0, 0, 0, 0, 1.0, (0, 0, 0), (1, 1, 1), "fixed")),
            "robot 'r' has no joint that moves: there is nothing to compute",
        ),
        (
            dh(
                (0, 0, 0, 0, 1.0, (0, 0, 0), (1, 1, 1), "fixed"),
                (0, 0, 0, 0, 0.0, (0, 0, 0), (0, 0, 0), "revolute"),
            ),
            "robot 'r' has no moving mass or inertia",
        ),
    ],
    ids=["links", "joints", "mass"],
)
def test_a_robot_in_which_nothing_is_to_compute_is_told_and_not_sound(
    content, words, load, tmp_path, capsys
):
    _, told = load(content)
    (each,) = told
    assert each.startswith(f"robot.yaml: {words}")
    with pytest.raises(rd.RobotDynamicsError, match=words):
        load(content, strict=True)
    # without a mass there are torques, of friction; without a joint there are none
    assert cli.main(["check", str(tmp_path / "robot.yaml")]) == int("mass" not in words)
    printed = "".join(capsys.readouterr())
    assert (words if "mass" in words else "no joint that moves") in printed
    assert "sound" not in printed


@pytest.mark.parametrize("text", ["", '<joint name="j" type="fixed"><parent link="a"/>{}</joint>'])
def test_a_robot_without_a_joint_that_moves_has_no_dynamics(text, tmp_path):
    more = text.format('<child link="b"/>') + ('<link name="b"/>' if text else "")
    with pytest.warns(DescriptionWarning, match="nothing to compute"):
        mechanism = rd.load(f'<robot name="r"><link name="a"/>{more}</robot>')
    with pytest.raises(rd.InputError, match=r"^the URDF text \(r\): found 'no joint that"):
        rd.InverseDynamics(mechanism)


@pytest.mark.parametrize("kind", ["fixed", "revolute"])
def test_what_a_moving_joint_carries_or_drives_has_a_mass(kind, load):
    nothing = (0, 0, 0, 0, 0.0, (0, 0, 0), (0, 0, 0))
    body = (0, 0, 0, 0, 1.0, (0, 0, 0), (1, 1, 1))
    assert load(dh((*nothing, "revolute"), (*body, kind)))[1] == []
    only_rotor = dh((*nothing, "revolute"))
    only_rotor["links"][0]["rotor"] = {"gear_ratio": 2, "inertia": {"izz": 1.0}}
    assert load(only_rotor)[1] == []


@pytest.mark.parametrize("way", ["yaml", "urdf beside yaml", "text", "checked text"])
def test_a_warning_points_at_the_line_that_called(way, tmp_path):
    urdf = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint>
        <joint name="k" type="revolute"><parent link="b"/><child link="c"/>
        <mimic joint="nobody"/></joint><link name="c"/></robot>"""
    file = tmp_path / "robot.yaml"
    if way == "yaml":
        file.write_text(yaml.safe_dump(one(izz=9.0)))
    else:
        (tmp_path / "r.urdf").write_text(urdf)
        file.write_text("urdf: r.urdf")
    source = urdf if way == "text" else file
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rd.load(source) if way != "checked text" else load_urdf_text(urdf)
    assert len(caught) == (1 if way == "yaml" else 2)
    here = Path(__file__).resolve()
    text = here.read_text().splitlines()
    for each in caught:
        assert Path(each.filename).resolve() == here
        assert "rd.load(source) if way" in text[each.lineno - 1]


def test_every_shipped_description_is_sound():
    files = [f for f in sorted(CONFIG.glob("*.yaml")) if f.name != "feed_forward.yaml"]
    files += sorted((CONFIG.parent / "urdf").glob("*.urdf"))
    assert len(files) > 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for file in files:
            assert rd.load(file, strict=True).joint_names


GEARED = """<robot name="r"><link name="a"/>
  <link name="b"><inertial><mass value="1"/></inertial></link><link name="c"/>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint>
  <joint name="k" type="revolute"><parent link="b"/><child link="c"/>{}</joint>{}</robot>"""


@pytest.mark.parametrize("reduction", ["-1", "1", "0.5", "-100"])
def test_any_reduction_but_none_is_a_gear_ratio(reduction):
    control = "<ros2_control><joint name='j'><param name='mechanicalReduction'>{}</param></joint>"
    control += "</ros2_control>"
    (rotor,) = rd.load(GEARED.format("", control.format(reduction))).rotors
    assert rotor.ratios == (("j", float(reduction)),)
    with pytest.raises(rd.DescriptionError, match=r"mechanicalReduction: found 0.*other than 0"):
        rd.load(GEARED.format("", control.format("0")))


def test_a_follower_follows_its_master_itself_where_nothing_else_is_said():
    mechanism = rd.load(GEARED.format('<mimic joint="j"/>', ""))
    assert mechanism.joint("k").coupling == Coupling((("j", 1.0),), 0.0)


def test_a_body_without_inertia_and_a_place_is_a_point_at_the_origin(tmp_path):
    link = {"name": "b", "joint": {"name": "j", "type": "revolute"}, "mass": 1.0}
    (tmp_path / "r.yaml").write_text(yaml.safe_dump({"links": [link]}))
    for source in (GEARED.format("", ""), tmp_path / "r.yaml"):
        body = rd.load(source).link("b").inertial
        assert body.mass == 1.0
        assert not body.inertia.any()
        assert not body.center_of_mass.any()


def test_a_checkout_that_was_never_installed_finds_its_own_files(monkeypatch, tmp_path):
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    found = find("package://robot_dynamics/config/polar.yaml")
    assert found.samefile(CONFIG / "polar.yaml")
    with pytest.raises(rd.DescriptionError, match="'another' was not found"):
        find("package://another/config/polar.yaml")


@pytest.mark.parametrize(
    ("extras", "words"),
    [
        ({"actuated": ["j", "k"], "sensed": ["k"]}, "sensed: found 'k', expected a passive joint"),
        ({"sensed": ["k"]}, "sensed: found .*expected none, as every joint of an open chain has a"),
        ({"near": {"k": 0.5}}, "near: found .*expected none, as an open chain has one"),
        ({"actuated": ["k"]}, "under-actuated with 2 degrees of freedom.*motors at j"),
        ({"rotors": {"m": {"gear_ratio": {"j": 2.0}}}}, "rotor 'm': mount: found None"),
        ({"rotors": {"m": None}}, "rotor 'm': mount: found None"),
        ({"rotors": {"k": {"mount": "a"}}}, "rotor 'k': gear_ratio: .* at least one joint"),
    ],
)
def test_lists_of_joints_and_rotors_that_fit_nothing_are_refused(extras, words, tmp_path):
    (tmp_path / "r.urdf").write_text(GEARED.format("", ""))
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"urdf": "r.urdf", **extras}))
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(tmp_path / "e.yaml")


@pytest.mark.parametrize(
    "extras",
    [
        {"actuated": ["j", "k"]},
        {"actuated": ["k", "j"], "sensed": []},
        {"rotors": {"m": {"mount": "a", "gear_ratio": {"j": 2.0}}}},
    ],
)
def test_the_same_lists_are_taken_where_they_fit(extras, tmp_path):
    (tmp_path / "r.urdf").write_text(GEARED.format("", ""))
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"urdf": "r.urdf", **extras}))
    mechanism = rd.load(tmp_path / "e.yaml")
    assert list(mechanism.actuated) == extras.get("actuated", [])
    assert [rotor.mount for rotor in mechanism.rotors] == ["a"] * len(extras.get("rotors", ()))


def test_a_rotor_that_stands_on_the_base_is_nothing_that_moves(tmp_path):
    body = {"mass": 1.0, "origin": {}, "gear_ratio": 2.0}
    light = GEARED.replace('<inertial><mass value="1"/></inertial>', "").format("", "")
    (tmp_path / "r.urdf").write_text(light)
    (tmp_path / "e.yaml").write_text(
        yaml.safe_dump({"urdf": "r.urdf", "rotors": {"j": body}, "locked": {"j": 0.0}})
    )
    with pytest.raises(rd.DescriptionError, match="no moving mass or inertia"):
        rd.load(tmp_path / "e.yaml", strict=True)


def based(**values: float) -> str:
    """URDF text of an arm on a base with these mass and moments."""
    numbers = {"m": 5.0, "ixx": 1.0} | values
    return f"""<robot name="r"><link name="base"><inertial><mass value="{numbers["m"]}"/>
      <inertia ixx="{numbers["ixx"]}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="arm"><inertial><mass value="2"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="q" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""


def test_the_base_is_a_body_too_although_it_does_not_move(tmp_path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.load(based(), strict=True)
    with pytest.raises(rd.RobotDynamicsError, match="link 'base': mass: found -5"):
        rd.load(based(m=-5.0))
    for values, said in (({"ixx": 9.0}, "triangle inequality"), ({"m": 0.0}, "but no mass")):
        with pytest.warns(DescriptionWarning, match=f"link 'base'.*{said}"):
            assert rd.load(based(**values)).joint_names == ("q",)
        with pytest.raises(rd.RobotDynamicsError, match="link 'base'"):
            rd.load(based(**values), strict=True)
    file = tmp_path / "robot.urdf"
    file.write_text(based(ixx=9.0))
    assert cli.main(["check", str(file)]) == 0
    assert "link 'base': inertia: triangle inequality" in "".join(capsys.readouterr())


def test_a_constraint_that_closes_a_loop_in_a_urdf_is_named_not_dropped():
    closed = '<constraint name="c" type="spherical"><predecessor link="a"/></constraint></robot>'
    with pytest.warns(UserWarning, match="<constraint>.*under `loops` in a YAML"):
        rd.load(GEARED.format("", "").replace("</robot>", closed))
