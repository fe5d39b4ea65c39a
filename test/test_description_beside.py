# SPDX-License-Identifier: Apache-2.0
"""Contents of a YAML that refers to a URDF: bodies, friction, joints that are held fixed."""

from __future__ import annotations

import warnings
from dataclasses import replace

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
from robot_dynamics.description.fields import DescriptionWarning
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import TERMS, Equations
from robot_dynamics.mechanism import Friction, Inertial, Pose
from robot_dynamics.mechanism.transform import with_locked_joints, with_rotor_model
from robot_dynamics.simulation.physics import Simulation

SEED = 2
GEARED = 8, 9
"""Robots in which the rotor of the last joint is mounted on a link that moves"""


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


def test_a_urdf_that_is_not_there_is_said_of_the_file_and_line_that_name_it(load):
    extras = "gravity: [0, 0, -9.81]\nurdf: nowhere.urdf\n"
    refused(load, extras, "extras.yaml: urdf: nowhere.urdf: no such file (line 2)")


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


@pytest.fixture(scope="module")
def geared(tmp_path_factory):
    """(the robot, the same with some joints locked, the positions of these), by seed.

    One motor turns by two joints; of these one is locked in some robots, both in the others.
    """

    def of(seed: int) -> tuple[rd.Mechanism, rd.Mechanism, dict[str, float]]:
        robot = random_dh(seed, joints=6, rotors=True)
        file = tmp_path_factory.mktemp("geared") / "robot.yaml"
        drives = [link for link in robot["links"] if "rotor" in link]
        first, second = (link["joint"]["name"] for link in drives[:2])
        drives[1]["rotor"] |= {"mount": "base", "gear_ratio": {first: 3.0, second: -7.0}}
        file.write_text(yaml.safe_dump(robot))
        free = rd.load(file)
        held = {first: 0.7, drives[-1]["joint"]["name"]: -0.3} | ({second: 0.2} if seed % 2 else {})
        file.write_text(yaml.safe_dump({**robot, "locked": held}))
        return free, rd.load(file), held

    return of


def on_axis(mechanism: rd.Mechanism) -> rd.Mechanism:
    """With rotors that are balanced: no angle is known to the reflected model."""

    def balanced(body: Inertial) -> Inertial:
        return replace(body, center_of_mass=body.center_of_mass * [0, 0, 1])

    rotors = (replace(each, inertial=balanced(each.inertial)) for each in mechanism.rotors)
    return replace(mechanism, rotors=tuple(rotors))


def at_rest(
    free: rd.Mechanism, held: dict[str, float], seed: int
) -> tuple[list[int], np.ndarray, tuple[np.ndarray, ...]]:
    """(the places of the joints that are not held, the others' state with those at rest)."""
    names = free.joint_names
    rows = [k for k, name in enumerate(names) if name not in held]
    places = np.zeros((3, len(names)))
    places[:, rows] = state(seed, len(rows))
    for name, value in held.items():
        places[0, names.index(name)] = value
    return rows, places, tuple(places[:, rows])


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("model", ["full", "reflected", "none"])
@pytest.mark.parametrize("seed", GEARED)
def test_a_robot_with_locked_joints_is_the_robot_with_those_joints_at_rest(
    seed, model, formulation, geared
):
    free, mechanism, held = geared(seed)
    if model == "reflected":
        free, mechanism = on_axis(free), on_axis(mechanism)
    rows, places, moving = at_rest(free, held, seed)
    assert mechanism.joint_names == tuple(free.joint_names[row] for row in rows)
    for terms in (TERMS, {"rotors"}, {"inertia", "coriolis", "gravity"}):
        whole = Equations.of(free, formulation, model, terms).torques(*places)[rows]
        found = Equations.of(mechanism, formulation, model, terms).torques(*moving)
        assert np.abs(found - whole).max() < 1e-9 * max(1.0, np.abs(whole).max())


@pytest.mark.parametrize("model", ["full", "reflected", "none"])
def test_what_runs_knows_locked_joints_rotors_and_their_motors(model, geared):
    free, mechanism, held = geared(GEARED[1])
    if model == "reflected":
        free, mechanism = on_axis(free), on_axis(mechanism)
    rows, places, moving = at_rest(free, held, 3)
    options = {"rotors": model, "backend": "python"}
    whole, found = rd.InverseDynamics(free, **options), rd.InverseDynamics(mechanism, **options)
    assert relative(found(*moving), whole(*places)[rows]) < RELATIVE_TO_PINOCCHIO
    # tau = Y π, with π of the rotors that stand still as well
    assert relative(found.regressor(*moving) @ found.parameters, found(*moving)) < 1e-12
    assert relative(found.forward(*moving[:2], found(*moving)), moving[2]) < 1e-9
    # what holds a locked joint is a brake: its motor is none
    standing = {
        rotor.name for rotor in free.rotors if {name for name, _ in rotor.ratios} <= {*held}
    }
    assert len(standing) == 3
    turning = [name for name in whole.motor_names if name not in standing]
    assert list(found.motor_names) == turning
    at = [whole.motor_names.index(name) for name in turning]
    expected, motors = whole.motor_torques(*places), found.motor_torques(*moving)
    for side in ("drive", "gear"):
        assert relative(getattr(motors, side), getattr(expected, side)[at]) < 1e-9
    if model == "none":
        return
    simulation = Simulation(with_rotor_model(mechanism, model))
    simulation.reset(*moving[:2])
    assert relative(simulation.accelerations(found(*moving)), moving[2]) < 1e-8


def test_a_rotor_that_stands_still_is_in_the_torques_of_no_rotors_the_less(geared):
    _, mechanism, _ = geared(GEARED[0])
    moving = state(0, len(mechanism.joint_names))
    full, none = (
        Equations.of(mechanism, rotors=model).torques(*moving) for model in ("full", "none")
    )
    light = replace(mechanism, rotors=tuple(each for each in mechanism.rotors if each.ratios))
    assert len(light.rotors) < len(mechanism.rotors)
    assert np.abs(full - Equations.of(light).torques(*moving)).max() > 1e-3
    assert np.array_equal(none, Equations.of(light, rotors="none").torques(*moving))


def test_a_joint_that_is_locked_outside_its_limits_is_told(load):
    free = load({})
    name = next(name for name in free.joint_names if free.joint(name).limits.upper is not None)
    endless = next(name for name in free.joint_names if free.joint(name).limits.upper is None)
    words = f"extras.yaml: locked.{name}: found 1.1, .* limits of joint '{name}', -1 to 1"
    with pytest.warns(DescriptionWarning, match=words):
        load({"locked": {name: 1.1}})
    with pytest.raises(rd.DescriptionError, match=words):
        load({"locked": {name: 1.1}}, strict=True)
    with pytest.warns(DescriptionWarning, match="found -1.1"):
        load({"locked": {name: -1.1}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for held in ({name: -1.0}, {name: 1.0}, {endless: 100.0}):
            load({"locked": held})


FOLLOWING = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d">
  <inertial><mass value="1"/></inertial></link>
  <joint name="j" type="prismatic"><parent link="a"/><child link="b"/></joint>
  <joint name="k" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
  <mimic joint="j" multiplier="-2" offset="0.1"/></joint>
  <joint name="l" type="revolute"><parent link="c"/><child link="d"/></joint></robot>"""


def test_a_follower_of_a_locked_joint_is_where_it_would_be(tmp_path):
    (tmp_path / "r.urdf").write_text(FOLLOWING)
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
    assert [rotor.ratios for rotor in geared.rotors] == [()]
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
        ({"locked": {"joint2": 0}, "home": {"joint2": 0.1}}, ("home.joint2", "0.1", "is locked")),
        ({"locked": {"joint2": 0}, "actuated": ["joint2"]}, ("actuated", "'joint2'", "or locked")),
        ({"inertial": {}}, ("unknown key 'inertial'", "did you mean 'inertials'")),
        ({"links": []}, ("unknown key 'links'",)),
    ],
)
def test_what_fits_nothing_is_refused_with_the_nearest_names(extras, words, load):
    refused(load, extras, "extras.yaml", *words)


def test_a_home_may_still_have_a_joint_where_it_is_locked(load):
    assert load({"locked": {"joint2": 0.25}, "home": {"joint2": 0.25}}).home == {}


@pytest.mark.parametrize("said", ["actuated: [j, k, l]", "home: {j: 0.1, k: 0.1}"])
def test_a_joint_that_follows_another_has_no_motor_and_no_home(said, tmp_path):
    (tmp_path / "r.urdf").write_text(FOLLOWING)
    (tmp_path / "e.yaml").write_text(f"{{urdf: r.urdf, {said}}}")
    with pytest.raises(rd.DescriptionError) as caught:
        rd.load(tmp_path / "e.yaml")
    assert f"e.yaml: {said.split(':')[0]}: found 'k'" in str(caught.value)
    assert "this one follows 'j'" in str(caught.value)


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
