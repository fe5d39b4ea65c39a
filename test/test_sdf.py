# SPDX-License-Identifier: Apache-2.0
"""SDF: the same robots as from URDF, and with the numbers of an independent oracle."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from robots import RELATIVE_TO_PINOCCHIO, pin, relative

import robot_dynamics as rd
from robot_dynamics.description import load_urdf_text

INERTIAL = """<inertial><pose>{pose}</pose><mass>{mass}</mass><inertia><ixx>0.1</ixx><iyy>0.12</iyy>
  <izz>0.15</izz><ixy>0.01</ixy><ixz>-0.02</ixz><iyz>0.005</iyz></inertia></inertial>"""


def body(mass: float, pose: str = "0.1 0.2 -0.05 0.3 -0.2 0.4") -> str:
    return INERTIAL.format(mass=mass, pose=pose)


ARM = f"""<?xml version="1.0"?>
<sdf version="1.9"><world name="lab"><gravity>0.5 0.3 -9.5</gravity>
<model name="arm"><pose>1 2 3 0.2 0.3 0.4</pose>
  <link name="base"><pose>0.1 0 0.2 0 0.1 0</pose>{body(5)}</link>
  <frame name="hook" attached_to="base"><pose>0.3 0.1 0.4 0.5 0 0.2</pose></frame>
  <link name="upper"><pose relative_to="shoulder">0.05 0.1 0 0.3 0 0</pose>{body(2)}</link>
  <joint name="shoulder" type="revolute">
    <pose relative_to="hook">0 0.05 0.1 10 -20 30</pose>
    <parent>base</parent><child>upper</child>
    <axis><xyz expressed_in="__model__">0.6 0 0.8</xyz><dynamics><damping>0.7</damping>
      <friction>0.3</friction></dynamics><limit><lower>-1</lower><upper>2</upper><effort>40</effort>
      <velocity>3</velocity></limit></axis>
  </joint>
  <link name="fore"><pose relative_to="upper">0.4 0 0.1 0 0.2 0.1</pose>{body(1)}</link>
  <joint name="elbow" type="prismatic"><parent>upper</parent><child>fore</child>
    <axis><xyz>0 0.6 0.8</xyz>
      <limit><lower>-1e16</lower><upper>1e16</upper><effort>-1</effort></limit></axis>
  </joint>
  <link name="tool"><pose relative_to="fore">0 0 0.3 0 0 0</pose>{body(0.5)}</link>
  <joint name="mount" type="fixed"><parent>fore</parent><child>tool</child></joint>
</model></world></sdf>""".replace("0 0.05 0.1 10 -20 30", "0 0.05 0.1 0.17 -0.35 0.52")


def placed(text: str) -> np.ndarray:
    """A pose as a homogeneous transform, by Pinocchio."""
    x, y, z, *rpy = map(float, text.split())
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array([x, y, z]))


def by_hand() -> object:
    """ARM as a Pinocchio model, its poses multiplied out one by one."""
    world_model = placed("1 2 3 0.2 0.3 0.4")
    base = placed("0.1 0 0.2 0 0.1 0")
    shoulder = base * placed("0.3 0.1 0.4 0.5 0 0.2") * placed("0 0.05 0.1 0.17 -0.35 0.52")
    upper = shoulder * placed("0.05 0.1 0 0.3 0 0")
    fore = upper * placed("0.4 0 0.1 0 0.2 0.1")
    tool = fore * placed("0 0 0.3 0 0 0")
    I = np.array([[0.1, 0.01, -0.02], [0.01, 0.12, 0.005], [-0.02, 0.005, 0.15]])
    center = placed("0.1 0.2 -0.05 0.3 -0.2 0.4")

    def inertia(mass: float) -> object:
        return center.act(pin.Inertia(mass, np.zeros(3), I))

    model = pin.Model()
    turn = pin.JointModelRevoluteUnaligned(shoulder.rotation.T @ np.array([0.6, 0.0, 0.8]))
    first = model.addJoint(0, turn, base.inverse() * shoulder, "shoulder")
    model.appendBodyToJoint(first, inertia(2.0), shoulder.inverse() * upper)
    slide = pin.JointModelPrismaticUnaligned(np.array([0.0, 0.6, 0.8]))
    second = model.addJoint(first, slide, shoulder.inverse() * fore, "elbow")
    model.appendBodyToJoint(second, inertia(1.0), pin.SE3.Identity())
    model.appendBodyToJoint(second, inertia(0.5), fore.inverse() * tool)
    model.gravity.linear = (world_model * base).rotation.T @ np.array([0.5, 0.3, -9.5])
    return model


def test_a_spring_pulls_back_to_its_reference():
    spring = "<spring_stiffness>30</spring_stiffness><spring_reference>0.4</spring_reference>"
    text = ARM.replace("<damping>", spring + "<damping>")
    q, still = np.array([1.1, 0.2]), np.zeros(2)
    with_it, without = (rd.InverseDynamics(rd.load(each)) for each in (text, ARM))
    pull = with_it(q, still, still) - without(q, still, still)
    assert pull == pytest.approx([30 * (1.1 - 0.4), 0.0], rel=1e-12)


def test_frames_axes_and_gravity_are_what_the_poses_say():
    model = by_hand()
    dynamics = rd.InverseDynamics(rd.load(ARM), terms={"inertia", "coriolis", "gravity"})
    assert dynamics.joint_names == ("shoulder", "elbow")
    for seed in range(5):
        q, qd, qdd = np.random.default_rng(seed).uniform(-2, 2, (3, 2))
        expected = pin.rnea(model, model.createData(), q, qd, qdd)
        assert relative(dynamics(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize(
    ("version", "said"),
    [("1.6", "<use_parent_model_frame>1</use_parent_model_frame>"),
     ("1.5", "<use_parent_model_frame>true</use_parent_model_frame>"),
     ("1.4", "")],
)  # fmt: skip
def test_older_versions_say_the_frames_of_poses_and_axes_in_their_own_way(version, said):
    old = (
        ARM.replace('version="1.9"', f'version="{version}"')
        .replace("relative_to=", "frame=")
        .replace(' expressed_in="__model__">0.6 0 0.8</xyz>', f">0.6 0 0.8</xyz>{said}")
    )
    with_it, now = (rd.load(each).joint("shoulder") for each in (old, ARM))
    assert with_it.axis == pytest.approx(now.axis, abs=1e-15)
    assert with_it.origin.translation == pytest.approx(now.origin.translation, abs=1e-15)
    if said:
        own = rd.load(old.replace(said, said.replace("1<", "0<").replace("true", "false")))
        assert own.joint("shoulder").axis == pytest.approx([0.6, 0, 0.8], abs=1e-15)


def test_a_world_file_is_read_as_sdf(tmp_path):
    (tmp_path / "lab.world").write_text(ARM)
    found = rd.load(tmp_path / "lab.world")
    assert found.joint_names == rd.load(ARM).joint_names
    (tmp_path / "arm.yaml").write_text("urdf: lab.world\nlocked: {elbow: 0.1}\n")
    assert rd.load(tmp_path / "arm.yaml").joint_names == ("shoulder",)


def test_until_version_1_6_a_joint_may_have_the_name_of_a_link():
    """Among them the UR10, the Create and the MPL arm of Gazebo's models."""
    named = ARM.replace('joint name="elbow"', 'joint name="fore"').replace("relative_to=", "frame=")
    old = rd.load(named.replace('version="1.9"', 'version="1.6"').replace(" expected_in", " in"))
    now = rd.load(ARM.replace(" expected_in", " in"))
    states = np.random.default_rng(5).uniform(-1, 1, (3, 2))
    torques = [rd.InverseDynamics(robot, backend="python")(*states) for robot in (old, now)]
    np.testing.assert_array_equal(*torques)
    assert old.joint_names == ("shoulder", "fore")
    with pytest.raises(rd.DescriptionError, match="'fore', expected a unique name"):
        rd.load(named)
    twice = named.replace('joint name="shoulder"', 'joint name="fore"')
    with pytest.raises(rd.DescriptionError, match="'fore'"):
        rd.load(twice.replace('version="1.9"', 'version="1.6"').replace(" expected_in", " in"))


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("<gravity>false</gravity>", "<gravity> of a link that is false: found 'fore'"),
        ("<gravity>1</gravity>", None),
        ("<inertial><fluid_added_mass><xx>1</xx></fluid_added_mass>", "<fluid_added_mass>: .*fore"),
    ],
)
def test_what_a_link_says_that_is_left_out_is_told(added, said):
    head, tail = ARM.split('<link name="fore">')
    inertial = "<inertial>" if added.startswith("<inertial>") else ""
    text = (
        head
        + '<link name="fore">'
        + (tail.replace(inertial, added, 1) if inertial else added + tail)
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rd.load(text)
    assert len(told) == (said is not None)
    if said:
        with pytest.raises(rd.DescriptionError, match=said + ".*left out"):
            rd.load(text, strict=True)


def test_the_base_of_a_model_that_stands_on_nothing_has_its_inertia_when_it_floats():
    robot = rd.FloatingBase(rd.load(ARM), backend="python")
    n = len(robot.joint_names)
    tau = robot(robot.neutral, np.zeros(n), np.zeros(n))
    weight = (5 + 2 + 1 + 0.5) * np.linalg.norm([0.5, 0.3, -9.5])
    assert np.linalg.norm(tau[:3]) == pytest.approx(weight, rel=1e-12)
    with pytest.raises(rd.DescriptionError, match=r"'base'.*mass"):
        rd.load(ARM.replace("<mass>5</mass>", "<mass>-5</mass>"))


def test_friction_and_limits_are_kept():
    mechanism = rd.load(ARM)
    joint = mechanism.joint("shoulder")
    assert (joint.friction.viscous, joint.friction.coulomb) == (0.7, 0.3)
    limits = joint.limits
    assert (limits.lower, limits.upper, limits.effort, limits.velocity) == (-1.0, 2.0, 40.0, 3.0)
    assert mechanism.joint("elbow").limits is None


FOUR_BAR = f"""<sdf version="1.11"><model name="four_bar">
  <link name="ground">{body(1)}</link>
  <link name="crank">{body(0.5, "0 0.1 0 0 0 0")}</link>
  <link name="rod"><pose>0 0.2 0 0 0 0</pose>{body(0.8, "0.25 0.05 0 0 0 0")}</link>
  <link name="rocker"><pose>0.5 0 0 0 0 0</pose>{body(0.7, "0 0.15 0 0 0 0")}</link>
  <joint name="motor" type="revolute"><parent>ground</parent><child>crank</child>
    <axis><xyz>0 0 1</xyz></axis></joint>
  <joint name="elbow" type="revolute"><parent>crank</parent><child>rod</child>
    <axis><xyz>0 0 1</xyz></axis></joint>
  <joint name="pivot" type="revolute"><parent>ground</parent><child>rocker</child>
    <axis><xyz>0 0 1</xyz></axis></joint>
  <joint name="pin" type="revolute"><pose>0.5 0.1 0 0 0 0</pose><parent>rocker</parent>
    <child>rod</child><axis><xyz>0 0 1</xyz></axis></joint>
</model></sdf>"""


def test_limits_out_of_order_are_left_out_and_told():
    text = ARM.replace("<lower>-1</lower>", "<lower>3</lower>")
    words = "'shoulder': axis.limit.lower: found 3.0, expected at most the upper limit, 2"
    with pytest.warns(UserWarning, match=words + "; both are left out"):
        limits = rd.load(text).joint("shoulder").limits
    assert (limits.lower, limits.upper, limits.effort) == (None, None, 40.0)
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(text, strict=True)


def test_a_limit_that_means_none_is_none():
    """Infinite in any spelling, and both 0, which many programs write for unknown ones."""
    for old, new in (("-1e16", "-inf"), ("1e16", "inf"), ("1e16", "1e31")):
        assert rd.load(ARM.replace(old, new)).joint("elbow").limits is None
    zeros = ARM.replace("<lower>-1<", "<lower>0<").replace("<upper>2<", "<upper>0<")
    assert rd.load(zeros).joint("shoulder").ends.upper is None


def test_a_link_closes_no_loop_with_itself():
    joint = "<joint name='more' type='ball'><parent>tool</parent><child>tool</child></joint>"
    with pytest.raises(rd.DescriptionError, match="loop 'more': successor link: found 'tool'"):
        rd.load(ARM.replace("</model>", f"{joint}</model>"))


def test_a_link_that_two_joints_carry_closes_a_loop(tmp_path):
    mechanism = rd.load(FOUR_BAR)
    (loop,) = mechanism.loops
    assert (loop.name, loop.type) == ("pin", "revolute")
    file = tmp_path / "four_bar.sdf"
    file.write_text(FOUR_BAR)
    beside = tmp_path / "robot.yaml"
    beside.write_text("urdf: four_bar.sdf\nactuated: [motor]\n")
    dynamics = rd.InverseDynamics(rd.load(beside))
    # power is the rate of the energy, whatever holds the loop together
    q, qd, qdd, h = np.array([0.1]), np.array([0.7]), np.array([-0.4]), 1e-5

    def energy(t: float) -> float:
        at, rate = q + t * qd + t * t / 2 * qdd, qd + t * qdd
        return dynamics.kinetic_energy(at, rate) + dynamics.potential_energy(at)

    power = (energy(h) - energy(-h)) / (2 * h)
    assert dynamics(q, qd, qdd) @ qd == pytest.approx(power, rel=1e-6)


def test_a_joint_that_closes_a_loop_may_stand_anywhere_and_axes_are_z_unless_said():
    start, end = (FOUR_BAR.index(f'  <joint name="{name}"') for name in ("pivot", "pin"))
    pivot = FOUR_BAR[start:end]
    text = FOUR_BAR.replace(pivot, "").replace("</model>", f"{pivot}</model>")
    text = text.replace("<axis><xyz>0 0 1</xyz></axis>", "<axis/>")
    state = [0.1], [0.7], [-0.4]
    found, expected = (
        rd.InverseDynamics(replace(rd.load(each), actuated=("motor",)))(*state)
        for each in (text, FOUR_BAR)
    )
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_mimic_follows_with_its_reference():
    text = ARM.replace(
        "<xyz>0 0.6 0.8</xyz>",
        '<xyz>0 0.6 0.8</xyz><mimic joint="shoulder"><multiplier>2</multiplier><offset>0.1</offset>'
        "<reference>0.3</reference></mimic>",
    )
    coupling = rd.load(text).joint("elbow").coupling
    assert coupling.ratios == (("shoulder", 2.0),)
    assert coupling.offset == pytest.approx(0.1 - 0.6)


def following(**masters: str) -> str:
    """Three joints in a row, of which some follow another one as 2 q + 0.1."""
    links = "".join(f"<link name='l{i}'>{body(1)}</link>" for i in range(4))
    joints = ""
    for i in (1, 2, 3):
        kind = "fixed" if masters.get(f"j{i}") == "" else "revolute"
        mimic = (
            f"<mimic joint='{masters[f'j{i}']}'><multiplier>2</multiplier><offset>0.1</offset>"
            "</mimic>"
            if masters.get(f"j{i}")
            else ""
        )
        joints += (
            f"<joint name='j{i}' type='{kind}'><parent>l{i - 1}</parent><child>l{i}</child>"
            f"<axis><xyz>0 1 0</xyz>{mimic}</axis></joint>"
        )
    return f"<sdf version='1.9'><model name='m'>{links}{joints}</model></sdf>"


@pytest.mark.parametrize("order", [("j1", "j2", "j3"), ("j3", "j2", "j1")])
def test_a_chain_of_mimics_follows_its_one_independent_joint(order):
    first, second, third = order
    robot = rd.load(following(**{second: first, third: second}))
    assert robot.joint_names == (first,)
    assert robot.joint(third).coupling.ratios == ((first, 4.0),)
    # 2 (2 q + 0.1) + 0.1
    assert robot.joint(third).coupling.offset == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("masters", "words"),
    [
        ({"j1": "j1"}, "joint 'j1': mimic: found 'j1 → j1', expected a chain that ends"),
        ({"j1": "j2", "j2": "j1"}, "joint 'j1': mimic: found 'j1 → j2 → j1'"),
        ({"j3": "j1", "j1": "j2", "j2": "j1"}, "'j1 → j2 → j1'"),
        ({"j1": "j2", "j2": "j3", "j3": "j2"}, "joint 'j1': mimic: found 'j1 → j2 → j3 → j2'"),
    ],
)
def test_a_circle_of_mimics_is_refused(masters, words):
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(following(**masters))


@pytest.mark.parametrize("masters", [{"j2": "nobody"}, {"j2": "j1", "j1": ""}])
def test_a_mimic_of_no_joint_that_moves_is_told_and_moves_by_itself(masters):
    words = "joint 'j2': mimic: found .*, expected a moving joint"
    with pytest.warns(UserWarning, match=words):
        robot = rd.load(following(**masters))
    assert "j2" in robot.joint_names
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(following(**masters), strict=True)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("</model>", "<model name='more'/></model>", "nested"),
        (
            "</world>",
            "<include><uri>model://x</uri></include></world>",
            "models: found 'arm, <include> of model://x', expected one model without",
        ),
        ('type="prismatic"', 'type="screw"', "screw"),
        ("<parent>upper</parent>", "<parent>upperarm</parent>", "upperarm"),
        ("<child>fore</child>", "<child>world</child>", "world"),
        ('relative_to="hook"', 'relative_to="hok"', "relative_to"),
        ("<mass>0.5</mass>", "<mass>heavy</mass>", "heavy"),
        ("<xyz>0 0.6 0.8</xyz>", "<xyz>0 0 0</xyz>", "axis"),
        ('<link name="tool">', '<link name="fore">', "fore"),
        ("<mass>0.5</mass>", "<mass></mass>", "link 'tool': mass: found '', expected a finite"),
        ("<mass>0.5</mass>", "<mass>0<!-- -->.5</mass>", "link 'tool': mass: .* only text"),
        ("<mass>0.5</mass>", "<mass>1</mass><mass>2</mass>", "inertial.mass: found '2 of them'"),
        ("<izz>0.15</izz>", "<izz/>", "link 'base': inertia.izz: found ''"),
        ("<child>fore</child>", "<child>fore</child><axis/>", "'elbow': axis: found '2 of them'"),
        ("<lower>-1</lower>", "<lower/>", "joint 'shoulder': axis.limit.lower: found ''"),
    ],
)
def test_what_cannot_be_said_here_is_refused_in_one_line(old, new, said):
    assert old in ARM
    with pytest.raises(rd.DescriptionError, match=said) as caught:
        rd.load(ARM.replace(old, new))
    assert "\n" not in str(caught.value)


def test_frames_that_refer_to_each_other_are_refused():
    text = ARM.replace(
        '<frame name="hook" attached_to="base"><pose>',
        '<frame name="hook" attached_to="base"><pose relative_to="shoulder">',
    )
    words = "relative_to: found 'shoulder → hook → shoulder', expected a chain that ends"
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(text)


def test_a_frame_that_is_unknown_is_named_with_the_nearest():
    words = "joint 'shoulder': pose.relative_to: found 'hok', .*; did you mean 'hook'.*line 10"
    with pytest.raises(rd.DescriptionError, match=words):
        rd.load(ARM.replace('relative_to="hook"', 'relative_to="hok"'))
    with pytest.raises(rd.DescriptionError, match="expressed_in: found '__modl__'"):
        rd.load(ARM.replace('"__model__"', '"__modl__"'))


def test_no_link_is_called_world():
    with pytest.raises(rd.DescriptionError, match="<link> name: found 'world', expected another"):
        rd.load(ARM.replace('"base"', '"world"').replace(">base<", ">world<"))


def test_a_bomb_and_a_topic_are_refused():
    with pytest.raises(rd.DescriptionError, match="document type"):
        rd.load('<!DOCTYPE a [<!ENTITY x "y">]><sdf version="1.9">&x;</sdf>')
    with pytest.raises(rd.DescriptionError, match="root element"):
        load_urdf_text(ARM)


def test_many_comments_are_passed_over_at_once():
    """A file's kind is told in time that grows with its length."""
    text = "<!-- a --> " * 5_000 + ARM.removeprefix('<?xml version="1.0"?>\n')
    assert rd.load(text).joint_names == ("shoulder", "elbow")
    with pytest.raises(rd.DescriptionError):
        rd.load("<!-- a --> <robot> " * 5_000)
