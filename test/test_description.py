# SPDX-License-Identifier: Apache-2.0
"""Descriptions: what is read, and how what cannot be read is refused."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    example_robots,
    pin,
    pinocchio_torques,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.description.packages import share
from robot_dynamics.errors import DescriptionError
from robot_dynamics.mechanism import Friction, Limits

ONE_LINK = """
robot: one
links:
  - name: link1
    joint: {name: q1, type: revolute}
    mass: 2.0
    center_of_mass: [0.1, 0.0, 0.0]
    inertia: {ixx: 0.1, iyy: 0.1, izz: 0.1}
"""


def refused(source, *words: str, **options) -> None:
    with pytest.raises(rd.RobotDynamicsError) as error:
        rd.load(source, **options)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def changed(path, old: str, new: str, text: str = ONE_LINK):
    assert old in text
    path.write_text(text.replace(old, new))
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "robot.yaml"


def test_defaults_are_the_contracts(file):
    file.write_text("links:\n  - {name: a, joint: {name: j, type: prismatic}}\n")
    mechanism = rd.load(file)
    assert mechanism.name == "robot"
    assert mechanism.gravity.tolist() == [0, 0, -9.81]
    (link,) = mechanism.links
    assert link.parent == "base"
    assert link.inertial.is_nothing
    assert np.array_equal(link.joint.origin.homogeneous(), np.eye(4))


def test_numbers_as_people_write_them(file):
    changed(file, "mass: 2.0", "mass: 2e0\n    alpha: -pi/2\n    theta: 3*pi/4\n    a: 1e-3")
    (link,) = rd.load(file).links
    assert link.inertial.mass == 2.0
    assert link.joint.tail.rotation[2, 1] == -1.0  # exactly
    assert link.joint.tail.translation[0] == 1e-3


def test_links_may_stand_in_any_order(file):
    file.write_text(
        "links:\n"
        "  - {name: b, parent: a, joint: {name: jb, type: revolute}}\n"
        "  - {name: a, parent: base, joint: {name: ja, type: revolute}}\n"
    )
    assert rd.load(file).joint_names == ("ja", "jb")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mass: 2.0", "mas: 2.0", ["mas", "did you mean 'mass'"]),
        ("mass: 2.0", "mass: -2.0", ["link1", "mass", "-2.0"]),
        ("mass: 2.0", "mass: .nan", ["link1", "mass", "finite"]),
        ("mass: 2.0", "mass: heavy", ["link1", "mass", "heavy"]),
        ("mass: 2.0", "mass: true", ["link1", "mass", "True"]),
        ("[0.1, 0.0, 0.0]", "[0.1, 0.0]", ["center_of_mass", "3 numbers"]),
        ("type: revolute", "type: hinge", ["joint.type", "hinge", "revolute"]),
        ("name: link1", "name: ''", ["name"]),
        ("robot: one", "robto: one", ["robto", "robot"]),
        ("robot: one", "gravity: [0, 0]", ["gravity", "3 numbers"]),
        ("robot: one", "dh_convention: craig", ["dh_convention", "craig", "standard"]),
        ("robot: one", "actuated: [q7]", ["actuated", "q7", "q1"]),
        ("robot: one", "links: []", ["links", "twice"]),
        ("links:", "links: {", ["YAML"]),
        ("joint: {name: q1, type: revolute}", "mass: 1", ["twice"]),
    ],
)
def test_a_broken_yaml_is_refused_in_one_line(file, old, new, words):
    refused(changed(file, old, new), "robot.yaml", *words)


def test_names_that_do_not_fit_together_are_refused(file):
    two = ONE_LINK + "  - {name: link1, joint: {name: q2, type: revolute}}\n"
    file.write_text(two)
    refused(file, "link", "'link1'", "2 times")
    file.write_text(two.replace("name: link1, joint: {name: q2", "name: b, joint: {name: q1"))
    refused(file, "joint", "'q1'", "2 times")
    file.write_text(two.replace("{name: link1, joint", "{name: b, parent: c, joint"))
    refused(file, "parent of link 'b'", "'c'")
    file.write_text(
        "links:\n  - {name: a, parent: b, joint: {name: ja, type: revolute}}\n"
        "  - {name: b, parent: a, joint: {name: jb, type: revolute}}\n"
    )
    refused(file, "'a'", "'b'", "form a cycle")


def test_files_that_are_not_there_or_nothing_to_read(tmp_path):
    refused("nowhere.yaml", "nowhere.yaml", "no such file")
    refused(tmp_path, "folder")
    (tmp_path / "robot.txt").write_text("x")
    refused(tmp_path / "robot.txt", ".yaml, .urdf, .xacro, .sdf, .world, or .xml (MJCF)")
    (tmp_path / "binary.urdf").write_bytes(b"\xff\xfe\x00")
    refused(tmp_path / "binary.urdf", "not a text file")
    latin = '<?xml version="1.0" encoding="latin-1"?>' + URDF.replace('"r"', '"Größe"')
    (tmp_path / "latin.urdf").write_bytes(latin.encode("latin-1"))
    refused(tmp_path / "latin.urdf", "not a text file in UTF-8", "save text in another encoding")
    (tmp_path / "beside.yaml").write_text("\nurdf: list.yaml\n")
    (tmp_path / "list.yaml").write_text("- 1\n")
    refused(tmp_path / "list.yaml", "a mapping")
    refused(
        tmp_path / "beside.yaml",
        "beside.yaml: urdf: found 'list.yaml'",
        "not another YAML (line 2)",
    )


def test_a_path_may_be_longer_than_a_name(tmp_path):
    deep = tmp_path.joinpath(*(["folder" * 10] * 6))
    deep.mkdir(parents=True)
    (deep / "robot.urdf").write_text(URDF)
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump({"urdf": str(deep / "robot.urdf")}))
    assert rd.load(tmp_path / "robot.yaml").name == "r"
    refused("", "an empty name: no such file")
    refused("/dev/null", "/dev/null: no such file (it is a pipe or a device)")
    refused("~nosuchuser/robot.urdf", "~nosuchuser/robot.urdf: no such file")


def test_a_text_that_is_neither_path_nor_urdf_is_refused_shortly():
    refused("x" * 10_000, "no such file", "…")
    refused("a\0b", "no such file")
    refused(None, "description", "a path")


def test_a_urdf_text_may_begin_with_blanks_and_a_declaration():
    assert rd.load('\ufeff\n <?xml version="1.0" encoding="ISO-8859-1"?>\n' + URDF).name == "r"


URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 2"/>
<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('type="revolute"', 'type="screw"', ["'j'", "screw"]),
        ('child link="arm"', 'child link="leg"', ["'j'", "child link", "leg"]),
        ('xyz="0 0 2"', 'xyz="0 0 0"', ["'j'", "axis: found [0.0, 0.0, 0.0], expected"]),
        ('xyz="0 0 2"', 'xyz="0 up 0"', ["up"]),
        ('mass value="1"', 'mass value="one"', ["one"]),
        ("</robot>", "", ["XML"]),
        ("robot", "machine", ["machine", "<robot>"]),
        ('<link name="base"/>', '<link name="base"/><link name="other"/>', ["root link", "other"]),
        ('<link name="base"/>', '<link name="base"/><link name="base"/>', ["'base'"]),
    ],
)
def test_a_broken_urdf_is_refused_in_one_line(old, new, words):
    assert old in URDF
    refused(URDF.replace(old, new), *words)


def test_entities_in_a_urdf_are_not_followed(tmp_path):
    (tmp_path / "secret").write_text("1")
    bomb = f'<!DOCTYPE r [<!ENTITY s SYSTEM "{tmp_path}/secret">]>' + URDF.replace(
        '<mass value="1"/>', "<mass>&s;</mass>"
    )
    refused(bomb, "URDF")


def test_an_impossible_inertia_in_a_urdf_is_a_warning_and_an_error_if_strict():
    odd = URDF.replace('izz="1"', 'izz="3"')
    with pytest.warns(UserWarning, match="'arm'.*triangle"):
        rd.load(odd)
    refused(odd, "'arm'", "triangle", strict=True)


def test_impossible_inertias_among_the_examples_are_told():
    examples = example_robots()
    if not examples:
        pytest.skip("example-robot-data is not installed")
    odd = 0
    for file in examples:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            links = rd.load(file).links
        told = {name for each in caught for name in str(each.message).split("'")[1:2]}
        for link in links:
            # the principal moments of a body: none negative, none above the sum of the others
            moments = np.linalg.eigvalsh(link.inertial.inertia)
            slack = max(1e-9 * np.abs(moments).max(), 1e-15)
            impossible = moments[0] < -slack or moments[2] > moments[0] + moments[1] + slack
            assert not impossible or link.name in told, link.name
            odd += impossible
    assert odd > 0, "the examples have become possible: choose others"


def test_a_package_url_is_found_by_the_ament_prefixes(tmp_path, monkeypatch):
    share = tmp_path / "share" / "some_robot" / "urdf"
    share.mkdir(parents=True)
    (share / "robot.urdf").write_text(URDF)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere{os.pathsep}{tmp_path}")
    assert rd.load("package://some_robot/urdf/robot.urdf").name == "r"
    refused("package://other_robot/robot.urdf", "other_robot", "AMENT_PREFIX_PATH")
    for nothing in ("package://", "package:///robot.urdf", "package://../robot.urdf"):
        refused(nothing, "it names no package")
    refused(f"package://{'n' * 300}/robot.urdf", "AMENT_PREFIX_PATH")


NAMESPACE = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder around which no other test's packages are found; nothing is installed."""
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    tmp_path.chmod(0o1777)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def a_package(folder, mass, name=None):
    """A package's sources, with a macro of this mass in urdf/arm.xacro and a URDF that calls it."""
    (folder / "urdf").mkdir(parents=True)
    if name:
        (folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    macro = f'<robot {NAMESPACE}><xacro:property name="heavy" value="{mass}"/></robot>'
    (folder / "urdf/arm.xacro").write_text(macro)
    file = folder / "urdf/robot.urdf.xacro"
    file.write_text(
        URDF.replace(
            '<robot name="r">',
            f'<robot name="r" {NAMESPACE}><xacro:include filename="$(find arm)/urdf/arm.xacro"/>',
        ).replace('mass value="1"', 'mass value="${heavy}"')
    )
    return file


def mass_of(file):
    return rd.load(file).links[0].inertial.mass


def test_a_packages_sources_are_found_near_the_file_by_its_manifest_or_by_its_folder(
    home, monkeypatch
):
    cell = a_package(home / "src/vendor/lines/cell", 1, "cell")
    refused(cell, "$(find arm): package 'arm' was not found in AMENT_PREFIX_PATH", "'urdf'")
    # another package's folder, however near, is none of that name
    a_package(home / "src/vendor/lines/other", 2, "other")
    a_package(home / "src/four/levels/below/src", 2, "arm")
    refused(cell, "package 'arm' was not found")
    a_package(home / "src/far/away/checkout", 3, "arm")
    assert mass_of(cell) == 3
    a_package(home / "src/vendor/arm", 4)  # without a manifest
    assert mass_of(cell) == 4
    # what a manifest says counts, where there is one; a pipe that nobody writes to is none
    a_package(home / "src/vendor/lines/arm", 5, "another")
    os.mkfifo(a_package(home / "src/vendor/lines/pipe", 5).parents[1] / "package.xml")
    assert mass_of(cell) == 4
    own = a_package(home / "src/vendor/lines/renamed", 5, "arm")
    assert mass_of(cell) == mass_of(own) == 5
    # an installed one comes first, as everywhere in ROS
    a_package(home / "install/share/arm", 6)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(home / "install"))
    assert mass_of(cell) == 6


def test_the_folder_around_which_a_package_was_sought_has_a_name_in_the_current_one_too(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for near in (tmp_path, Path()):
        with pytest.raises(DescriptionError, match=f"around the folder {tmp_path.name!r}"):
            share("no_such_package", "mesh", near)


def test_a_file_that_a_packages_sources_lack_may_be_in_its_installation(home, monkeypatch):
    cell = a_package(home / "cell", 1)
    missing = a_package(home / "arm", 2, "arm").with_name("arm.xacro")
    missing.unlink()
    refused(cell, f"xacro: no file {missing}", "package 'arm' was found as sources; build")
    missing = a_package(home / "install/share/arm", 3).with_name("arm.xacro")
    missing.unlink()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(home / "install"))
    with pytest.raises(rd.DescriptionError, match=f"xacro: no file {missing}$"):
        rd.load(cell)


def test_a_mistake_in_an_included_file_or_in_a_macro_is_told_with_its_place(home):
    cell = a_package(home / "arm", 1, "arm")
    included = cell.with_name("arm.xacro")
    for element, place in (
        ('<xacro:if value="${x}"/>', r" in arm\.xacro"),
        (
            '<xacro:macro name="m" params=""><a b="${x}"/></xacro:macro>',
            r" in macro 'm' of arm.x\w+",
        ),
    ):
        included.write_text(f"<robot {NAMESPACE}>{element}</robot>")
        cell.write_text(
            cell.read_text().replace("${heavy}", "1").replace("</robot>", "<xacro:m/></robot>")
        )
        with pytest.raises(rd.DescriptionError, match=f"expression 'x'{place}$"):
            rd.load(cell)
    cell.write_text(cell.read_text().replace("<xacro:m/>", '<a b="${x}"/>'))
    with pytest.raises(rd.DescriptionError, match=r"expression 'x'$"):
        rd.load(cell)


def test_a_package_url_in_a_file_is_found_near_it(home, monkeypatch):
    a_package(home / "arms/arm", 3, "arm")
    file = home / "cell/config/robot.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("urdf: package://arm/urdf/robot.urdf.xacro\n")
    assert mass_of(file) == 3
    monkeypatch.chdir(home / "arms/arm")
    refused("package://arm/urdf/robot.urdf.xacro", "in AMENT_PREFIX_PATH;")  # of a place by chance


def test_no_package_is_taken_from_where_everybody_may_leave_one(home):
    a_package(home / "arm", 3, "arm")
    public = home / "public"
    cell = a_package(public / "mine/cell", 1, "cell")
    assert mass_of(cell) == 3
    a_package(public / "arm", 666, "arm")
    public.chmod(0o1777)
    refused(cell, "package 'arm' was not found")
    a_package(public / "mine/arm", 4, "arm")
    assert mass_of(cell) == 4


def test_xacro_is_expanded(tmp_path):
    macro = URDF.replace(
        '<robot name="r">',
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:property name="heavy" value="${2*3}"/>',
    ).replace('mass value="1"', 'mass value="${heavy}"')
    (tmp_path / "robot.urdf.xacro").write_text(macro)
    assert rd.load(tmp_path / "robot.urdf.xacro").links[0].inertial.mass == 6.0
    (tmp_path / "broken.xacro").write_text(macro.replace("${heavy}", "${hevy}"))
    refused(tmp_path / "broken.xacro", "xacro", "hevy")


@pytest.mark.parametrize(
    "value", ['property name="width" value="0.2"', 'arg name="on" default="1"']
)
def test_xacro_values_that_nothing_uses_need_no_expansion(value):
    """Many robots' .urdf files have them, and robot_state_publisher passes over them."""
    text = URDF.replace('<robot name="r">', f'<robot name="r" {NAMESPACE}><xacro:{value}/>')
    assert rd.load(text).links[0].inertial.mass == 1.0
    for use in ("${width}", "$(arg on)"):
        refused(text.replace('name="j"', f'name="{use}"'), "expected the output of `xacro FILE`")
    refused(text.replace("<xacro:", "<xacro:if/><xacro:"), "found '<xacro:if>'")


@pytest.fixture
def arguments(tmp_path):
    """A .xacro file with two arguments: a mass, and a joint's name."""
    folder = tmp_path / "with blanks"
    folder.mkdir()
    file = folder / "robot.urdf.xacro"
    file.write_text(
        URDF.replace(
            '<robot name="r">',
            '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
            '<xacro:arg name="name" default="j"/><xacro:arg name="heavy" default="1"/>'
            '<xacro:arg name="spare" default=""/>',
        )
        .replace('mass value="1"', 'mass value="$(arg heavy)"')
        .replace('joint name="j"', 'joint name="$(arg name)"')
    )
    return file


def test_the_arguments_of_a_xacro_follow_its_path(arguments):
    mechanism = rd.load(f"{arguments} heavy:=2.5 name:='left arm:=1'")
    assert mechanism.links[0].inertial.mass == 2.5
    assert mechanism.joint_names[0] == "left arm:=1"
    spread = f"file://{arguments}\n  heavy:=3\n  spare:=unused "
    assert rd.load(spread).links[0].inertial.mass == 3
    assert rd.load(arguments).links[0].inertial.mass == 1


def test_a_yaml_gives_the_arguments_of_the_xacro_beside_it(arguments):
    file = arguments.with_name("robot.yaml")
    file.write_text("urdf: robot.urdf.xacro heavy:=2.5\nfriction: {j: {viscous: 2}}\n")
    mechanism = rd.load(file)
    assert mechanism.links[0].inertial.mass == 2.5
    assert mechanism.links[0].joint.friction.viscous == 2


def test_a_file_of_macros_alone_is_named(tmp_path):
    file = tmp_path / "macros.xacro"
    namespace = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    file.write_text(f'<robot name="r" {namespace}><xacro:macro name="arm" params=""/></robot>')
    refused(file, "links: found 'none'", "xacro macros")


def test_a_wrong_argument_of_a_xacro_is_named(arguments):
    refused(
        f"{arguments} heavy:=2 neme:=left", "no argument is called 'neme'", "heavy, name, spare"
    )
    refused(f"{arguments} heavy:=2 left", "argument: found 'left', expected NAME:=VALUE")
    refused(f"{arguments} heavy:=2 :=left", "argument: found ':=left', expected NAME:=VALUE")
    refused(f"{arguments} heavy:='2", "arguments: No closing quotation")
    for odd in ("\0", "\ud800", "'\n'"):
        refused(f"{arguments} heavy:=2{odd}", "NAME:=VALUE, in printable characters")
    refused(
        f"{arguments} heavy:={'2' * 200_000}", "found '200007 characters', expected at most 4096"
    )
    refused(f"{arguments} heavy:=", "mass.value: found '', expected a finite number")
    refused(f"{arguments}.xacro heavy:=2", "no such file")
    refused(f"{arguments.with_suffix('.urdf')} heavy:=2", "no such file")
    # undeclared, without a default, an argument must be given
    arguments.write_text(re.sub('<xacro:arg name="heavy"[^>]*>', "", arguments.read_text()))
    refused(arguments, "argument heavy", "follow the path: 'robot.urdf.xacro NAME:=VALUE …'")
    assert rd.load(f"{arguments} heavy:=2").links[0].inertial.mass == 2


def test_extras_beside_a_urdf(tmp_path):
    text = random_urdf(2)
    (tmp_path / "robot.urdf").write_text(text)
    (tmp_path / "extras.yaml").write_text(
        yaml.safe_dump({"urdf": "robot.urdf", "robot": "renamed", "gravity": [0, 9.81, 0]})
    )
    mechanism = rd.load(tmp_path / "extras.yaml")
    assert mechanism.name == "renamed"
    model = pin.buildModelFromXML(text)
    model.gravity.linear = np.array([0, 9.81, 0])
    q, qd, qdd = state(2, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd)
    assert relative(rd.InverseDynamics(mechanism)(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


def test_an_unactuated_joint_of_an_open_chain_is_named(file):
    file.write_text(ONE_LINK + "  - {name: b, joint: {name: q2, type: revolute}}\nactuated: [q1]\n")
    refused(file, "under-actuated", "2 degrees of freedom", "q2")


ROBOTS = sorted(file for file in CONFIG.glob("*.yaml") if file.name != "feed_forward.yaml")
"""feed_forward.yaml holds the nodes' parameters"""


@pytest.mark.parametrize("file", ROBOTS, ids=lambda file: file.stem)
def test_every_shipped_robot_is_sound(file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.load(file, strict=True)


def with_limit(attributes: str, kind: str = "revolute") -> str:
    return (
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" '
        f'type="{kind}"><parent link="a"/><child link="b"/>{attributes}</joint></robot>'
    )


@pytest.mark.filterwarnings("ignore::robot_dynamics.description.fields.DescriptionWarning")
@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        (
            "revolute",
            '<limit lower="-1" upper="2" velocity="3" effort="4"/>',
            Limits(-1.0, 2.0, 3.0, 4.0),
        ),
        ("prismatic", '<limit effort="4" velocity="3"/>', Limits(None, None, 3.0, 4.0)),
        ("prismatic", '<limit upper="4"/>', Limits(0.0, 4.0)),
        ("continuous", '<limit lower="0" upper="0" effort="4"/>', Limits(effort=4.0)),
        ("continuous", '<limit lower="-1" upper="1"/>', None),
        ("revolute", '<limit lower="0" upper="0" velocity="0" effort="0"/>', None),
        ("revolute", '<limit lower="0" upper="1" velocity="-1" effort="-1"/>', Limits(0.0, 1.0)),
        ("revolute", '<limit lower="-inf" upper="1" velocity="inf"/>', Limits(upper=1.0)),
        ("revolute", "", None),
    ],
)
def test_a_urdfs_limits_are_read_and_what_stands_for_unknown_is_unknown(kind, attributes, expected):
    mechanism = rd.load(with_limit(attributes, kind))
    assert mechanism.joint("j").limits == expected


@pytest.mark.parametrize("ends", ['lower="2" upper="1"', 'lower="1"', 'upper="-1"'])
def test_a_urdfs_limits_out_of_order_are_left_out(ends):
    with pytest.warns(UserWarning, match="joint 'j'.*both are left out"):
        mechanism = rd.load(with_limit(f'<limit {ends} velocity="3"/>'))
    assert mechanism.joint("j").limits == Limits(velocity=3.0)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ('<limit lower="2" upper="1"/>', ("joint 'j'", "limit.lower", "found 2.0", "at most", "1")),
        ('<limit effort="-2"/>', ("joint 'j'", "limit.effort", "found -2.0", "at least 0")),
        ('<limit velocity="-0.5"/>', ("joint 'j'", "limit.velocity", "at least 0")),
        ('<limit upper="nan"/>', ("joint 'j'", "limit.upper", "a finite number")),
        ('<limit lower="a"/>', ("joint 'j'", "limit.lower", "'a'")),
    ],
)
def test_impossible_limits_are_refused(attributes, words, file):
    with pytest.raises(DescriptionError) as caught:
        rd.load(with_limit(attributes), strict=True)
    assert all(word in str(caught.value) for word in words)
    as_yaml = attributes.replace("<limit ", "").replace("/>", "").replace("=", ": ")
    limits = "{" + as_yaml.replace('" ', '", ') + "}"
    new = "type: revolute, limits: " + limits.replace('"', "")
    changed(file, "type: revolute", new)
    refused(file, "link 'link1': joint.limits", words[1].split(".")[1], *words[2:])


def test_limits_and_friction_in_our_own_description(file):
    changed(file, "type: revolute", "type: revolute, limits: {lower: -pi/2, upper: 1, effort: 0}")
    file.write_text(
        file.read_text() + "    friction: {viscous: 1, coulomb: 2, offset: -3, "
        "coulomb_negative: 4, stribeck: {torque: 5, rate: 6}}\n"
    )
    joint = rd.load(file).joint("q1")
    assert joint.limits == Limits(-np.pi / 2, 1.0)
    assert joint.friction == Friction(1.0, 2.0, -3.0, 4.0, 5.0, 6.0)


@pytest.mark.parametrize(
    ("friction", "words"),
    [
        ("{viscous: -1}", ("joint 'q1'", "viscous friction", "found -1.0", "at least 0")),
        ("{coulomb: -1}", ("joint 'q1'", "coulomb friction", "found -1.0", "at least 0")),
        ("{stribeck: {torque: 1}}", ("link1", "friction.stribeck.rate", "found None")),
        ("{stribeck: {torque: 1, rate: -1}}", ("joint 'q1'", "stribeck rate", "above 0")),
        (
            "{stribeck: {torque: -1, rate: 1}}",
            ("joint 'q1'", "stribeck torque", "so that no friction drives"),
        ),
        ("{stribek: {torque: -1, rate: 1}}", ("unknown key 'stribek'", "did you mean 'stribeck'")),
        ("{coulomb_negative: -2}", ("joint 'q1'", "coulomb negative friction", "at least 0")),
        ("{offset: .nan}", ("friction.offset", "a finite number")),
    ],
)
def test_friction_that_drives_is_refused(friction, words, file):
    file.write_text(ONE_LINK + f"    friction: {friction}\n")
    refused(file, *words)


def test_a_urdfs_friction_that_drives_is_refused():
    refused(with_limit('<dynamics damping="-0.1"/>'), "joint 'j'", "viscous friction", "-0.1")
    refused(with_limit('<dynamics friction="-0.1"/>'), "joint 'j'", "coulomb friction", "-0.1")


def test_how_to_declare_the_world_is_told():
    whole = URDF.replace('"base"', '"world"')
    text = whole.replace('<link name="world"/>', "")
    refused(text, "parent link: found 'world'", 'declare it: <link name="world"/>')
    assert rd.load(whole).base == "world"


ROTOR = """<transmission name="t"><actuator name="motor"><{}rotor_inertia {}value="{}"/></actuator>
</transmission></robot>"""
DRAKE = 'xmlns:drake="http://drake.mit.edu" '


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ('<gazebo><joint name="shut"/></gazebo></robot>', "<gazebo> <joint>: found 'shut'"),
        (
            '<gazebo reference="j"><springStiffness>3</springStiffness></gazebo></robot>',
            "<gazebo> <springStiffness>: found 'j'",
        ),
        (ROTOR.format("drake:", DRAKE, 1e-4), "<rotor_inertia>: found 'motor', .* `rotors`"),
        (ROTOR.format("drake:", "", 1e-4), "<rotor_inertia>: found 'motor'"),
        (f"<drake:ball_constraint {DRAKE}/></robot>", "<ball_constraint>: found 'r'"),
        (
            '<gazebo reference="l"><gravity>0</gravity></gazebo></robot>',
            "<gravity> of a link that is false: found 'l'",
        ),
        ('<gazebo reference="l"><gravity>true</gravity></gazebo></robot>', None),
        ("<plugin><gravity>0</gravity></plugin></robot>", None),
        ("<gazebo><springStiffness> 0.0 </springStiffness></gazebo></robot>", None),
        (ROTOR.format("drake:", DRAKE, 0), None),
    ],
)  # fmt: skip
def test_what_gazebo_and_drake_add_to_the_torques_is_said_to_be_left_out(added, said):
    text = URDF.replace("</robot>", added)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rd.load(text)
    words = [str(each.message) for each in told]
    assert len(words) == (said is not None)
    if said:
        assert re.search(said + ".*: it is left out", words[0])
        refused(text, "it is left out", strict=True)


def test_elements_and_attributes_that_are_not_read_are_passed_over_in_silence(capfd):
    mechanism = rd.load(
        """<robot name="r" version="1.0" colour="red"><link name="a" type="odd"/>
      <link name="b" priority="1"><visual/><self_collision_checking/><inertial odd="1">
      <axis xyz="1 0 0"/><origin xyz="0 0 1" quat="1 0 0 0"/><mass value="2" unit="kg"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0" odd="1"/><mimic/></inertial></link>
      <joint name="j" type="revolute" odd="1"><parent link="a"><mass/></parent>
      <child link="b" odd="1"/>
      <origin xyz="0 0 0" odd="1"/><axis xyz="0 0 1" odd="1"/><calibration rising="0"/>
      <dynamics damping="1" spring="1"/><limit effort="1" velocity="1" odd="1"/>
      <safety_controller k_velocity="1"/><odd/></joint><gazebo/><odd/></robot>"""
    )
    assert mechanism.link("b").inertial.center_of_mass.tolist() == [0.0, 0.0, 1.0]
    assert capfd.readouterr() == ("", "")


TURNED = """<robot name="r"><link name="base"/><link name="l"><inertial><origin rpy="{body}"/>
  <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="l"/><origin rpy="{joint}"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
POSED = """<sdf version="1.9"><model name="r"><link name="l"><pose{how}>0 0 0 {joint}</pose>
  <inertial><mass>1</mass></inertial></link><joint name="j" type="revolute"><parent>world</parent>
  <child>l</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (TURNED.format(joint="0 90 0", body="0 0 0"), "joint 'j': origin.rpy: found 90.0"),
        (
            TURNED.format(joint="0 0 0", body="0 0 -45"),
            "link 'l': inertial.origin.rpy: found -45.0",
        ),
        (POSED.format(how="", joint="0 90 0"), "link 'l': pose: found 90.0"),
        (TURNED.format(joint="12.56 0 -12.56", body="6.3 0 0"), ""),
        (POSED.format(how=' degrees="true"', joint="0 90 0"), ""),
    ],
)
def test_angles_that_are_probably_in_degrees_are_told(text, place):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rd.load(text)
    words = [str(each.message) for each in told]
    expected = [f"{place}, expected at most two turns, in rad (is it in degrees?)"]
    assert [each.split(": ", 1)[1] for each in words] == (expected if place else [])
    if place:
        with pytest.raises(rd.DescriptionError, match="in degrees"):
            rd.load(text, strict=True)
