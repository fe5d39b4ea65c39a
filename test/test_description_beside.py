"""What stands in a YAML beside a URDF: bodies, friction, joints held fixed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import yaml
from robots import (
    RELATIVE_TO_PINOCCHIO,
    pin,
    pinocchio_torques,
    random_dh,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.mechanism import Friction, Inertial, Pose
from robot_dynamics.mechanism.transform import with_locked_joints

SEED = 2


@pytest.fixture
def load(tmp_path):
    """A URDF with these extras beside it."""

    def loaded(extras, urdf=None, **options):
        (tmp_path / "robot.urdf").write_text(urdf or random_urdf(SEED))
        (tmp_path / "extras.yaml").write_text(
            extras if isinstance(extras, str) else yaml.safe_dump({"urdf": "robot.urdf", **extras})
        )
        return rd.load(tmp_path / "extras.yaml", **options)

    return loaded


def refused(load, extras, *words, **options):
    with pytest.raises(rd.RobotDynamicsError) as error:
        load(extras, **options)
    for word in words:
        assert word in str(error.value), str(error.value)


def test_inertials_beside_a_urdf_replace_its_own(load):
    plain = load({})
    name = plain.moving[1].name
    body = {
        "mass": 2.5,
        "center_of_mass": [0.1, -0.2, 0.3],
        "inertia": {"ixx": 0.3, "iyy": 0.4, "izz": 0.5, "ixy": 0.01, "ixz": -0.02, "iyz": 0.03},
    }
    mechanism = load({"inertials": {name: body}})
    model = pin.buildModelFromXML(random_urdf(SEED))
    frame = model.frames[model.getFrameId(name)]
    old = plain.link(name).inertial
    inertia = np.array([[0.3, 0.01, -0.02], [0.01, 0.4, 0.03], [-0.02, 0.03, 0.5]])
    new = pin.Inertia(2.5, np.array([0.1, -0.2, 0.3]), inertia)
    gone = pin.Inertia(float(old.mass), np.array(old.center_of_mass), np.array(old.inertia))
    place = frame.placement
    # about one point parameters add up
    whole = model.inertias[frame.parentJoint] + place.act(new)
    model.inertias[frame.parentJoint] = pin.Inertia.FromDynamicParameters(
        whole.toDynamicParameters() - place.act(gone).toDynamicParameters()
    )
    q, qd, qdd = state(1, len(mechanism.joint_names))
    expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd)
    found = rd.InverseDynamics(mechanism, backend="python")
    assert relative(found(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO
    assert load({"inertials": {name: {}}}).link(name).inertial.is_nothing  # whole, not part by part


def test_friction_beside_a_urdf_replaces_its_own(load):
    name, other = load({}).joint_names[:2]
    law = {
        "viscous": 1.0,
        "coulomb": 2.0,
        "offset": -3.0,
        "coulomb_negative": 4.0,
        "stribeck": {"torque": 5.0, "rate": 6.0},
    }
    urdf = random_urdf(SEED).replace("</joint>", '<dynamics damping="7" friction="8"/></joint>')
    mechanism = load({"friction": {name: law}}, urdf)
    assert mechanism.joint(name).friction == Friction(1.0, 2.0, -3.0, 4.0, 5.0, 6.0)
    assert mechanism.joint(other).friction == Friction(7.0, 8.0)
    assert load({"friction": {name: {}}}, urdf).joint(name).friction == Friction()


@pytest.mark.parametrize("seed", range(4))
def test_a_locked_joint_is_a_joint_that_does_not_move(seed, load):
    urdf = random_urdf(seed)
    free = load({}, urdf)
    names = list(free.joint_names)
    held = {names[0]: 0.7, names[2]: -0.4}
    mechanism = load({"locked": held}, urdf)
    left = [name for name in names if name not in held]
    assert list(mechanism.joint_names) == left
    q, qd, qdd = state(seed, len(left))
    model = pin.buildModelFromXML(urdf)
    full = [np.zeros(len(names)) for _ in range(3)]
    for place, values in zip(full, (q, qd, qdd), strict=True):
        place[[names.index(name) for name in left]] = values
    for name, value in held.items():
        full[0][names.index(name)] = value
    expected = pinocchio_torques(model, names, *full)[[names.index(name) for name in left]]
    found = rd.InverseDynamics(mechanism, backend="python")(q, qd, qdd)
    assert relative(found, expected) < RELATIVE_TO_PINOCCHIO


@pytest.mark.parametrize("seed", range(4))
def test_in_our_own_description_rotors_and_followers_of_a_locked_joint_hold_with_it(seed, tmp_path):
    robot = random_dh(seed, joints=6, rotors=True)
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(robot))
    free = rd.load(file)
    names = free.joint_names
    # one motor turns by two joints, of which one is held
    drives = [link for link in robot["links"] if "rotor" in link]
    if len(drives) > 1:
        first, second = (link["joint"]["name"] for link in drives[:2])
        drives[1]["rotor"] |= {"mount": "base", "gear_ratio": {first: 3.0, second: -7.0}}
        file.write_text(yaml.safe_dump(robot))
        free = rd.load(file)
    held = {names[0]: 0.7, names[-1]: -0.3}
    file.write_text(yaml.safe_dump({**robot, "locked": held}))
    mechanism = rd.load(file)
    left = [name for name in names if name not in held]
    assert list(mechanism.joint_names) == left
    q, qd, qdd = (np.zeros(len(names)) for _ in range(3))
    rows = [names.index(name) for name in left]
    q[rows], qd[rows], qdd[rows] = state(seed, len(left))
    for name, value in held.items():
        q[names.index(name)] = value
    for model in ("full", "reflected"):
        expected = rd.InverseDynamics(free, rotors=model, backend="python")(q, qd, qdd)[rows]
        found = rd.InverseDynamics(mechanism, rotors=model, backend="python")(
            q[rows], qd[rows], qdd[rows]
        )
        if model == "full":
            assert relative(found, expected) < RELATIVE_TO_PINOCCHIO
        else:  # a rotor that holds is a body, and no longer an inertia about one axis
            assert np.isfinite(found).all()


def test_a_follower_of_a_locked_joint_is_where_it_would_be(tmp_path):
    urdf = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d">
      <inertial><mass value="1"/></inertial></link>
      <joint name="j" type="prismatic"><parent link="a"/><child link="b"/></joint>
      <joint name="k" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
      <mimic joint="j" multiplier="-2" offset="0.1"/></joint>
      <joint name="l" type="revolute"><parent link="c"/><child link="d"/></joint></robot>"""
    (tmp_path / "r.urdf").write_text(urdf)
    (tmp_path / "e.yaml").write_text("{urdf: r.urdf, locked: {j: 0.3}}")
    mechanism = rd.load(tmp_path / "e.yaml")
    assert mechanism.joint_names == ("l",)
    place = Pose()
    for name in ("b", "c"):
        place = place @ mechanism.link(name).joint.pose(0.0)
    assert place.translation == pytest.approx([0.3, 0.1 - 2 * 0.3, 0.0], abs=1e-15)


def test_locking_nothing_changes_nothing_and_a_weightless_rotor_is_no_body(load):
    mechanism = load({})
    assert with_locked_joints(mechanism, {}) is mechanism
    name = mechanism.joint_names[0]
    geared = load({"rotors": {name: {"gear_ratio": 50.0}}, "locked": {name: 0.0}})
    assert geared.rotors == ()
    for link in mechanism.links:
        same: Inertial = geared.link(link.name).inertial
        assert same.mass == link.inertial.mass


@pytest.mark.parametrize(
    ("extras", "words"),
    [
        ({"inertials": {"linc1": {}}}, ("inertials: link", "found 'linc1'", "mean 'link1'")),
        ({"inertials": {"link1": {"mas": 1}}}, ("inertials.link1", "'mas'", "mean 'mass'")),
        ({"inertials": {"link1": {"mass": -1}}}, ("extras.yaml: link 'link1': mass", "-1")),
        ({"inertials": ["link1"]}, ("extras.yaml: inertials", "a mapping")),
        ({"friction": {"jiont2": {}}}, ("friction: joint", "found 'jiont2'", "mean 'joint2'")),
        ({"friction": {"joint1": {}}}, ("friction: joint", "found 'joint1'")),  # it is fixed
        ({"friction": {"joint2": {"viscos": 1}}}, ("friction.joint2", "mean 'viscous'")),
        ({"friction": {"joint2": {"viscous": -1}}}, ("extras.yaml: joint 'joint2'", "viscous")),
        ({"locked": {"joint22": 0}}, ("locked: joint", "found 'joint22'", "mean 'joint2'")),
        ({"locked": {"joint2": "far"}}, ("locked.joint2", "'far'", "a finite number")),
        ({"locked": {"joint2": 0}, "home": {"joint2": 0}}, ("home", "'joint2'")),
        ({"locked": {"joint2": 0}, "actuated": ["joint2"]}, ("actuated", "'joint2'")),
        ({"inertial": {}}, ("unknown key 'inertial'", "did you mean 'inertials'")),
        ({"links": []}, ("unknown key 'links'",)),
    ],
)
def test_what_fits_nothing_is_refused_with_the_nearest_names(extras, words, load):
    refused(load, extras, "extras.yaml", *words)


ODD = """<robot name="r"><link name="a"/>
  <link name="b"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint></robot>"""


def test_complaints_name_the_file_that_they_are_about(load):
    with pytest.warns(UserWarning, match=r"^robot.urdf: link 'b': inertia"):
        load({}, ODD)
    refused(load, {}, "robot.urdf: link 'b': inertia", urdf=ODD, strict=True)
    refused(load, {}, "robot.urdf: link 'b': mass", urdf=ODD.replace('value="1"', 'value="-1"'))
    joint = ODD.replace("</joint>", '<dynamics damping="-1"/></joint>')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(load, {}, "robot.urdf: joint 'j': viscous", urdf=joint)
        better = {"mass": 1, "inertia": {"ixx": 1, "iyy": 1, "izz": 1}}
        # what is replaced is not complained about
        load({"inertials": {"b": better}, "friction": {"j": {}}}, joint)
    worse = {"mass": 1, "inertia": {"ixx": 1, "iyy": 1, "izz": 8}}
    with pytest.warns(UserWarning, match=r"^extras.yaml: link 'b': inertia"):
        load({"inertials": {"b": worse}}, ODD)
    geared = {"rotors": {"j": {"gear_ratio": 2, "inertia": {"ixx": 1}}}, "inertials": {"b": better}}
    with pytest.warns(UserWarning, match=r"^extras.yaml: rotor 'j': inertia"):
        load(geared, ODD)
