# SPDX-License-Identifier: Apache-2.0
"""The schema of descriptions agrees with what reads them, and errors name the line."""

from __future__ import annotations

import json
import warnings

import pytest
import yaml
from robots import CONFIG, random_dh, random_urdf

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.description.lines import yaml_line
from robot_dynamics.description.schema import FILE, mistakes, text
from robot_dynamics.description.yaml_text import plain
from robot_dynamics.errors import Named

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
SHIPPED = [f for f in sorted(CONFIG.glob("*.yaml")) if f.name != "feed_forward.yaml"]

WHOLE = """
robot: whole
gravity: [0, 0, -g]
dh_convention: modified
symbols: {m1: 2.0, g: 9.81}
links:
  - name: upper
    parent: base
    origin: {xyz: [0, 0, 0.1], rpy: 0 0 pi/2}
    joint:
      {name: q1, type: revolute, limits: {lower: -pi, upper: 3*pi/4, velocity: .inf, effort: 9}}
    theta: pi/2
    a: 0.4
    mass: 2*m1
    center_of_mass: [0.1, 0, 0]
    inertia: {ixx: 0.1, iyy: 0.1, izz: 0.1}
    friction: {viscous: 1e-1, coulomb: 2, offset: -1, stribeck: {torque: 1, rate: 0.1}}
    rotor: {gear_ratio: -50, inertia: {izz: 1e-4}}
  - name: hand
    joint: {name: wrist, type: spherical, axes: xyz, limits: {rx: {lower: -1, upper: 1}}}
    friction: {ry: {viscous: 0.1}}
    mass: 1
    rotor:
  - {name: flange, joint: {type: fixed}}
rotors:
  both: {mount: base, origin: {}, gear_ratio: {q1: 50, wrist_rx: -5}, mass: 0.3}
base_inertial: {mass: m1, center_of_mass: [0, 0.1, 0], inertia: {ixx: 0.1, iyy: 0.1, izz: 0.1}}
locked: {wrist_rz: 0.1}
loops:
actuated: []
platform: null
"""


def beside(tmp_path):
    (tmp_path / "robot.urdf").write_text(random_urdf(2))
    mechanism = rd.load(tmp_path / "robot.urdf")
    joint, link = mechanism.joint_names[0], mechanism.links[0].name
    return f"""
urdf: robot.urdf
joints: {{{mechanism.joint_names[1]}: {{type: universal, axes: zy}}}}
friction: {{{joint}: {{coulomb: 1}}}}
inertials: {{{link}: {{mass: 1, inertia: {{ixx: 1, iyy: 1, izz: 1}}}}}}
rotors: {{{joint}: {{gear_ratio: 10}}}}
"""


def taken(content, tmp_path):
    """Does `rd.load` take it?"""
    file = tmp_path / "robot.yaml"
    file.write_text(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rd.load(file)
        except rd.DescriptionError:
            return False
    return True


def test_the_shipped_file_is_what_the_code_makes():
    assert FILE.read_text(encoding="utf-8") == text(), "python -m robot_dynamics.description.schema"
    jsonschema.Draft7Validator.check_schema(json.loads(text()))


def test_what_is_read_is_valid(tmp_path):
    """Every key and form that the pages show, the shipped robots, and random ones."""
    texts = [WHOLE, beside(tmp_path), "robot: empty", *(f.read_text() for f in SHIPPED)]
    texts += [yaml.safe_dump(random_dh(seed, rotors=True)) for seed in range(3)]
    for content in texts:
        assert taken(content, tmp_path)
        assert mistakes(plain(content, "robot.yaml")) == []


WRONG = [
    ("base_inertial: {mass: m1", "base_inertial: {mas: m1", "mas"),
    ("robot: whole", "robto: whole", "robto"),
    ("dh_convention: modified", "dh_convention: modifed", "dh_convention"),
    ("[0, 0, -g]", "[0, 0]", "gravity"),
    ("type: revolute", "type: revolut", "type"),
    ("lower: -pi,", "lowr: -pi,", "lowr"),
    ("axes: xyz", "axes: abc", "axes"),
    ("coulomb: 2", "columb: 2", "columb"),
    ("{ry: {viscous", "{r: {viscous", "r"),
    ("ixx: 0.1", "Ixx: 0.1", "Ixx"),
    ("    mass: 1\n", "    mass: [1]\n", "mass"),
    ("gear_ratio: -50", "ratio: -50", "ratio"),
    ("- name: hand", "- nam: hand", "nam"),
    ("locked: {wrist_rz: 0.1}", "locked: {wrist_rz: far}", "wrist_rz"),
    ("actuated: []", "actuated: q1", "actuated"),
    ("loops:\n", "loops: [{type: revolute}]\n", "loops"),
]


@pytest.mark.parametrize(("right", "wrong", "at"), WRONG, ids=[each[1] for each in WRONG])
def test_mistakes_are_seen_by_the_schema_and_by_the_reader(right, wrong, at, tmp_path):
    content = WHOLE.replace(right, wrong, 1)
    assert content != WHOLE
    assert not taken(content, tmp_path)
    found = mistakes(plain(content, "robot.yaml"))
    assert found
    assert any(at in path for path, _ in found)


LINES = [
    ("base_inertial: {mass: m1", "base_inertial: {mass: -1.5", "base_inertial"),
    ("base_inertial: {mass: m1", "base_inertial: {mass: m3", "base_inertial"),
    ("a: 0.4", "a: far", "a: far"),
    ("type: revolute", "type: revolut", "type: revolut"),
    ("mass: 2*m1", "mass: -2.0", "mass: -2.0"),
    ("stribeck: {torque: 1,", "stribeck: {torqu: 1,", "torqu"),
    ("mount: base", "mount: nowhere", "both:"),
    ("lower: -pi,", "lowr: -pi,", "lowr"),
    ("parent: base", "parent: nobody", "parent: nobody"),
    ("locked: {wrist_rz: 0.1}", "locked: {wrist_rz: far}", "locked"),
    ("gear_ratio: -50", "gear_ratio: 0", "gear_ratio: 0"),
    ("mass: 2*m1", "mass: 2*m2", "mass: 2*m2"),
    ("symbols: {m1: 2.0", "symbols: {m1: heavy", "heavy"),
    ("    mass: 1\n", "    mass: .nan\n", "mass: .nan"),
    ("loops:\n", "loops:\n  - {type: revolute}\n", "- {type: revolute}"),
    ("actuated: []", "actuated: [q1, elbow]", "elbow"),
    (
        "both: {mount: base, origin: {}, gear_ratio: {q1: 50",
        "both: {mount: base, origin: {}, gear_ratio: {q9: 50",
        "q9",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "there"), LINES, ids=[each[1] for each in LINES])
def test_errors_name_the_line(right, wrong, there, tmp_path):
    content = WHOLE.replace(right, wrong, 1)
    line = 1 + next(k for k, each in enumerate(content.splitlines()) if there in each)
    (tmp_path / "robot.yaml").write_text(content)
    with pytest.raises(rd.DescriptionError, match=rf"^robot\.yaml: .*\(line {line}\)$"):
        rd.load(tmp_path / "robot.yaml")


BLOCKS = """robot: planar
symbols: {m1: 1}
actuated:
  - j1
  - j2
loops:
  - type: revolute
    predecessor: {link: base}
    successor: {link: b, xyz: [1, 0, 0]}
  - name: second
    type: spherical
    predecessor: {link: base}
    successor: {link: b}
links:
  - name: a
    joint: {name: j1, type: revolute}
    mass: 1
    friction:
      viscous: 0.1
      stribeck:
        torque: 0.5
        rate: 1
    rotor:
      mount: base
      gear_ratio: 10
  - name: b
    joint:
      name: j2
      type: revolute
    mass: m1
home:
  j1: 0
near:
  j2: 0
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("  - j2\n", "  - j9\n"),
        ("predecessor: {link: base}\n    successor: {link: b, ", "{link: nobody}"),
        ("successor: {link: b}", "successor: {link: c}"),
        ("successor: {link: b}", "successor: {link: base}"),
        ("viscous: 0.1", "viscous: -0.1"),
        ("torque: 0.5", "torque: -0.5"),
        ("mount: base", "mount: c"),
        ("    mass: 1\n", "    mas: 1\n"),
        ("mass: m1", "mass: m2"),
        ("gear_ratio: 10", "gear_ratio: 0"),
        ("  j1: 0\n", "  j9: 0\n"),
        ("  j2: 0\n", "  a1: 0\n"),
    ],
)
def test_the_line_is_that_of_the_value_also_in_what_is_checked_last(right, wrong, tmp_path):
    if wrong == "{link: nobody}":
        wrong = right.replace("base", "nobody")
    content = BLOCKS.replace(right, wrong, 1)
    pairs = zip(BLOCKS.split("\n"), content.split("\n"), strict=True)
    there = next(k for k, (before, now) in enumerate(pairs) if before != now)
    (tmp_path / "robot.yaml").write_text(content)
    with pytest.raises(rd.DescriptionError) as found:
        rd.load(tmp_path / "robot.yaml")
    assert found.value.line == there + 1


@pytest.mark.parametrize("name", ["pi", "sin"])
def test_a_symbol_may_not_have_a_name_that_is_taken(name, tmp_path):
    (tmp_path / "robot.yaml").write_text(BLOCKS.replace("m1: 1}", f"{name}: 3}}"))
    words = rf"symbols: found '{name}', expected a name other than pi, sin, .*\(line 2\)$"
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(tmp_path / "robot.yaml")


def test_the_line_is_that_of_the_key(tmp_path):
    (tmp_path / "robot.yaml").write_text("robot: r\nlinks:\n  3\n")
    with pytest.raises(rd.DescriptionError, match=r"links: found 3, expected a list \(line 2\)$"):
        rd.load(tmp_path / "robot.yaml")


URDF = """
<robot name="r">
  <link name="a"/>
  <link name="b">
    <inertial>
      <mass value="1"/>
      <inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="j" type="revolute">
    <parent link="a"/>
    <child link="b"/>
    <axis xyz="0 0 1"/>
  </joint>
</robot>
"""


def test_errors_of_a_urdf_name_its_line_also_from_a_yaml_beside_it_and_in_a_text(tmp_path):
    file = tmp_path / "r.urdf"
    (tmp_path / "extras.yaml").write_text("\n\nurdf: r.urdf\ngravity: [0, 0, 0]\n")
    for wrong, line in ((URDF.replace('"1"/>', '"-1"/>', 1), 6), (URDF, 7)):
        file.write_text(wrong)
        for source in (file, tmp_path / "extras.yaml"):
            with pytest.raises(rd.DescriptionError, match=rf"^r\.urdf: link 'b'.*\(line {line}\)$"):
                rd.load(source, strict=True)
        with pytest.raises(rd.DescriptionError, match=rf"^the URDF text: .*\(line {line}\)$"):
            rd.load(wrong, strict=True)
    file.write_text(URDF.replace('<child link="b"/>', '<child link="c"/>'))
    with pytest.raises(rd.DescriptionError, match=r"joint 'j': child.*\(line 12\)$"):
        rd.load(file)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('value="1"', 'value="abc"',
         "link 'b': inertial.mass.value: found 'abc', expected a finite number"),
        ('value="1"', "", "link 'b': inertial.mass.value: found None"),
        ('ixz="0"', 'ixz=""', "link 'b': inertial.inertia.ixz: found ''"),
        ('<axis xyz="0 0 1"/>', '<axis xyz="0 1"/>',
         "joint 'j': axis.xyz: found '0 1', expected 3 numbers"),
        ('<axis xyz="0 0 1"/>', '<origin rpy="0 up 0"/>',
         "joint 'j': origin.rpy.1.: found 'up', expected a finite number"),
        ('<axis xyz="0 0 1"/>', '<mimic joint="k" offset="1 2"/>',
         "joint 'j': mimic.offset: found '1 2'"),
        ('<axis xyz="0 0 1"/>', "<mimic/>", "joint 'j': mimic.joint: found None, expected a name"),
        ('<parent link="a"/>', "<parent/>", "joint 'j': parent.link: found None, expected a name"),
        ('type="revolute"', 'type="hinge"',
         "joint 'j': type: found 'hinge', expected one of revolute, continuous"),
    ],
)  # fmt: skip
def test_a_value_of_a_urdf_that_is_none_is_named_with_its_line(old, new, words):
    assert old in URDF
    text, line = URDF.replace(old, new), 1 + URDF[: URDF.index(old)].count("\n")
    with pytest.raises(rd.DescriptionError, match=rf"^the URDF text: {words}.*\(line {line}\)$"):
        rd.load(text)


def test_what_a_urdf_lacks_is_named():
    for old, words in (
        ('<mass value="1"/>', r"'b': inertial.mass: found None, expected a <mass> \(line 5\)"),
        ('<parent link="a"/>', r"'j': parent: found None, expected a <parent> \(line 10\)"),
        ('name="j" ', "joint name: found None, expected a name"),
    ):
        assert old in URDF
        with pytest.raises(rd.DescriptionError, match=f"^the URDF text: .*{words}$"):
            rd.load(URDF.replace(old, ""))


def test_numbers_of_a_urdf_may_be_multiples_of_pi():
    text = URDF.replace('<axis xyz="0 0 1"/>', '<origin rpy="0 0 pi"/><axis xyz="0 0 1"/>')
    assert rd.load(text.replace('izz="9"', 'izz="1"')).joint("j").origin.rotation[0, 0] == -1


def test_the_narrowest_description_of_an_element_comes_first():
    whole = BLOCKS.split("\n")
    for kind, words in (("link", "  - name: b"), ("joint", "    joint:"), ("rotor", "    rotor:")):
        name = {"link": "b", "joint": "j2", "rotor": "j1"}[kind]
        assert yaml_line(BLOCKS, [Named(kind, name)]) == 1 + whole.index(words)
    assert yaml_line(BLOCKS, [Named("link", "nobody")]) is None


def test_no_line_is_named_of_a_xacro_file_which_is_not_the_text_that_is_read(tmp_path):
    (tmp_path / "r.xacro").write_text(URDF.replace('<child link="b"/>', '<child link="c"/>'))
    (tmp_path / "extras.yaml").write_text("urdf: r.xacro\n")
    for name in ("r.xacro", "extras.yaml"):
        with pytest.raises(rd.DescriptionError, match=r"^r\.xacro: joint 'j': child") as found:
            rd.load(tmp_path / name)
        assert found.value.line is None


def test_a_joint_of_a_transmission_is_not_taken_for_the_robots(tmp_path):
    transmissions = """
  <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
    <joint name="j"/>
    <actuator name="m"/>
  </transmission>
  <ros2_control name="c" type="system">
    <joint name="j">
      <param name="mechanicalReduction">10</param>
    </joint>
  </ros2_control>"""
    whole = URDF.replace('<robot name="r">', f'<robot name="r">{transmissions}')
    for right, wrong in (('xyz="0 0 1"', 'xyz="0 0 0"'), (">10<", ">none<")):
        text = whole.replace(right, wrong)
        # the line before, that of the joint itself, if the value is text
        line = 1 + next(k for k, each in enumerate(text.split("\n")) if wrong in each)
        with pytest.raises(rd.DescriptionError) as found:
            rd.load(text)
        assert found.value.line == line - (wrong == ">none<")


SDF = """<?xml version="1.0"?>
<sdf version="1.8">
  <model name="m">
    <link name="a">
      <inertial><mass>1</mass></inertial>
    </link>
    <link name="b">
      <inertial>
        <mass>1</mass>
      </inertial>
    </link>
    <joint name="j" type="revolute">
      <parent>a</parent>
      <child>b</child>
      <axis>
        <xyz>0 0 1</xyz>
        <limit>
          <lower>-1</lower>
        </limit>
      </axis>
    </joint>
  </model>
</sdf>
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("        <mass>1<", "        <mass>-1<"),
        ("<lower>-1<", "<lower>low<"),
        ("<child>b<", "<child>c<"),
    ],
)
def test_errors_of_an_sdf_name_its_line(right, wrong, tmp_path):
    text = SDF.replace(right, wrong)
    line = 1 + next(k for k, each in enumerate(text.split("\n")) if wrong in each)
    (tmp_path / "m.sdf").write_text(text)
    for source in (tmp_path / "m.sdf", text):
        with pytest.raises(rd.DescriptionError) as found:
            rd.load(source)
        assert found.value.line == line


def test_warnings_name_the_line(tmp_path):
    (tmp_path / "r.urdf").write_text(URDF)
    with pytest.warns(UserWarning, match=r"triangle inequality.*\(line 7\)$"):
        rd.load(tmp_path / "r.urdf")
    with pytest.raises(rd.DescriptionError) as found:
        rd.load(tmp_path / "r.urdf", strict=True)
    assert found.value.line == 7
    assert str(found.value).count("(line") == 1


def test_check_tells_the_lines_of_all_mistakes_in_one(tmp_path, capsys):
    content = WHOLE.replace("coulomb: 2", "columb: 2").replace("axes: xyz", "axes: abc")
    (tmp_path / "robot.yaml").write_text(content)
    assert main(["check", str(tmp_path / "robot.yaml")]) == 1
    err = capsys.readouterr().err
    lines = content.splitlines()
    first, second = (
        1 + next(k for k, each in enumerate(lines) if words in each) for words in ("columb", "abc")
    )
    assert err.count("\n") == 1
    assert "unknown key 'columb', expected" in err
    assert f"(line {first})" in err
    assert f"line {second}: found 'abc'" in err
    assert err.count(f"line {first}") == 1


def test_the_schema_is_printed_for_editors(capsys):
    assert main(["schema", "description"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(FILE.read_text())


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("robot: whole", "robot:", "robot.yaml: robot"),
        ("gravity: [0, 0, -g]", "gravity:", "robot.yaml: gravity"),
        ("gravity: [0, 0, -g]", "gravity: [0, 0, x y]", "robot.yaml: gravity[2]"),
        ("ixx: 0.1", "ixx: []", "robot.yaml: link 'upper': inertia.ixx"),
        ("mass: 2*m1", "mass: []", "robot.yaml: link 'upper': mass"),
        ("mass: 2*m1", "mas: 1", "robot.yaml: links[0]"),
        ("velocity: .inf", "velocity: fast", "robot.yaml: link 'upper': joint.limits.velocity"),
        ("torque: 1, rate: 0.1", "torque: 1", "robot.yaml: link 'upper': friction.stribeck.rate"),
        ("gear_ratio: -50", "gear_ratio: true", "robot.yaml: link 'upper': rotor.gear_ratio"),
        ("name: q1, type: revolute", "name: q1", "robot.yaml: link 'upper': joint.type"),
        ("type: spherical", "type: round", "robot.yaml: link 'hand': joint.type"),
        (
            "both: {mount: base, origin",
            "both: {mount: 1, origin",
            "robot.yaml: rotor 'both': mount",
        ),
        ("{q1: 50, ", "{q1: '', ", "robot.yaml: rotor 'both': gear_ratio.q1"),
        ("{q1: 50, ", "{'': 50, ", "robot.yaml: rotor 'both': gear_ratio"),
        ("wrist_rz: 0.1", "wrist_rz: x", "robot.yaml: locked.wrist_rz"),
        ("actuated: []", "actuated: [q1, 1]", "robot.yaml: actuated[1]"),
        ("loops:\n", "loops: [{type: revolute}]\n", "robot.yaml: loops[0].predecessor.link"),
        ("platform: null", "near: {q1: {rpy: [0, 0, 0]}}", "robot.yaml: near.q1"),
    ],
)
def test_places_are_said_in_one_way(tmp_path, old, new, place):
    assert old in WHOLE
    file = tmp_path / "robot.yaml"
    file.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(rd.DescriptionError) as caught:
        rd.load(file)
    assert caught.value.name == place


def test_both_ends_of_a_loop_are_where_they_are_said_to_be(tmp_path):
    file = tmp_path / "robot.yaml"
    loop = (
        "loops: [{type: revolute, predecessor: {link: upper, xyz: [1, 2, 3]}, "
        "successor: {link: flange, xyz: [4, 5, 6], rpy: [0, 0, pi]}}]\n"
    )
    file.write_text(WHOLE.replace("loops:\n", loop, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = rd.load(file).loops
    assert found.name == "loop1"
    assert found.predecessor.pose.translation.tolist() == [1, 2, 3]
    assert found.successor.pose.translation.tolist() == [4, 5, 6]
    assert abs(found.successor.pose.rotation[0, 0] + 1) < 1e-12


def test_limits_that_mean_none_are_none(tmp_path):
    file = tmp_path / "robot.yaml"
    old = "limits: {lower: -pi, upper: 3*pi/4, velocity: .inf, effort: 9}"
    assert old in WHOLE
    for new, said in (
        ("{lower: 0, upper: 0, velocity: 0, effort: 9}", (None, None, None, 9.0)),
        ("{lower: -inf, upper: 1, velocity: 1e40}", (None, 1.0, None, None)),
    ):
        file.write_text(WHOLE.replace(old, f"limits: {new}", 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ends = rd.load(file).joint("q1").limits
        assert (ends.lower, ends.upper, ends.velocity, ends.effort) == said
