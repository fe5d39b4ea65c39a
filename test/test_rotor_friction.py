# SPDX-License-Identifier: Apache-2.0
"""Friction on the motor's side: n·f(n·qd), with a row n of several joints."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import CONFIG, RELATIVE_TO_SISTERS, random_dh, relative, state
from test_codegen_recorder import run
from test_friction import LAWS as AT_JOINTS
from test_friction import by_hand
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.app import check_report
from robot_dynamics.chains.open_chain import OpenChain
from robot_dynamics.codegen.recorder import record
from robot_dynamics.controller.programs import Request, programs
from robot_dynamics.description.urdf_writer import urdf
from robot_dynamics.dynamics.base_motion import BaseMotion
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import TERMS, Equations
from robot_dynamics.formulations.options import Options
from robot_dynamics.identification.result_files import _rotor
from robot_dynamics.mechanism import Armature, Friction, Inertial, Pose, Rotor
from robot_dynamics.mechanism.dynamic_parameters import standard_parameters, with_parameters
from robot_dynamics.mechanism.transform import ROTOR_MODELS, with_locked_joints
from robot_dynamics.simulation.physics import Simulation

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: extra `sim`")

ROW = np.array([0.0, 0.0, -40.0, 55.0, 0.0])
"""Rotor rate / joint rate of the motor in question, at the joints of `arm`"""
HOOK = Friction(2e-3, 0.03, offset=-0.01, coulomb_negative=0.02, stribeck_torque=0.015,
                stribeck_rate=20.0)  # fmt: skip
LAW = Friction(2e-3, 0.03)
LAWS = {name: law for name, law in AT_JOINTS.items() if not law.stiffness}
"""Springs are at joints"""


def arm(tmp_path, law=LAW, seed=0):
    """Five joints with friction and rotors, of which the last turns joints 3 and 4."""
    path = tmp_path / "robot.yaml"
    robot = random_dh(seed, joints=6, rotors=True)
    for k, link in enumerate(robot["links"]):
        link["friction"] = {"viscous": 0.1 * k, "coulomb": 0.3}
    path.write_text(yaml.safe_dump(robot))
    mechanism = rd.load(path)
    names = mechanism.joint_names
    ratios = tuple((names[j], float(ROW[j])) for j in np.flatnonzero(ROW))
    body = Inertial(0.3, np.zeros(3), np.diag([1e-4, 1e-4, 1.5e-4]))
    coupled = Rotor("wrist", mechanism.links[1].name, Pose(), ratios, body, law)
    return replace(mechanism, rotors=(*mechanism.rotors, coupled))


def without(mechanism):
    """The robot whose rotors have no friction."""
    rotors = tuple(replace(rotor, friction=None) for rotor in mechanism.rotors)
    return replace(mechanism, rotors=rotors)


def generated(mechanism):
    return programs(Request(mechanism, "arm", "newton_euler", "full"), ())


def expected(law, qd):
    """n·f(n·qd) (…, n)"""
    return by_hand(law, qd @ ROW)[..., None] * ROW


@pytest.mark.parametrize("rotors", ROTOR_MODELS)
@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_every_formulation_and_rotor_model_adds_it(tmp_path, name, rotors, law):
    mechanism = arm(tmp_path, law)
    q, ahead, qdd = state(1, 5)
    found = []
    for qd in (ahead, -ahead):
        tau = Equations.of(mechanism, name, rotors).torques(q, qd, qdd)
        rest = Equations.of(without(mechanism), name, rotors).torques(q, qd, qdd)
        assert relative(tau, rest + expected(law, qd)) < RELATIVE_TO_SISTERS
        found.append(relative(tau, rest))
    assert max(found) > 1e-3


def test_it_belongs_to_the_term_friction_alone(tmp_path):
    mechanism, backend = arm(tmp_path, HOOK), "python"
    q, qd, qdd = np.random.default_rng(2).normal(size=(3, 6, 5))
    q[0] = qd[0] = 0.0
    parts = {
        terms: rd.InverseDynamics(mechanism, terms=terms, backend=backend)(q, qd, qdd)
        for terms in (("inertia",), ("coriolis",), ("gravity",), ("rotors",), ("friction",))
    }
    whole = InverseDynamics(mechanism)(q, qd, qdd)
    bare = without(mechanism)
    for terms, tau in parts.items():
        rest = rd.InverseDynamics(bare, terms=terms, backend=backend)(q, qd, qdd)
        more = expected(HOOK, qd) if terms == ("friction",) else 0.0
        assert relative(tau, rest + more) < RELATIVE_TO_SISTERS
    assert relative(whole, sum(parts.values())) < RELATIVE_TO_SISTERS
    smooth = {"terms": ["friction"], "friction_smoothing": 0.5, "backend": backend}
    tau, rest = (rd.InverseDynamics(each, **smooth)(q, qd, qdd) for each in (mechanism, bare))
    s = np.tanh(qd @ ROW / 0.5)
    w = qd @ ROW
    dry = 0.03 * (s * s + s) / 2 - 0.02 * (s * s - s) / 2 + 0.015 * np.exp(-((w / 20) ** 2)) * s
    assert relative(tau, rest + (2e-3 * w + dry - 0.01)[:, None] * ROW) < RELATIVE_TO_SISTERS


GEARED_MJCF = """
<mujoco><option timestep="1e-5" tolerance="0" iterations="100" jacobian="dense"/><worldbody>
 <body name="upper"><joint name="a" axis="0 1 0"/>
  <inertial pos="0.1 0 0.02" mass="2" diaginertia="0.01 0.02 0.03"/>
  <body name="fore" pos="0.3 0 0"><joint name="b" axis="0 0.6 0.8"/>
   <inertial pos="0.05 0.01 0" mass="1" diaginertia="0.004 0.003 0.005"/></body></body>
 </worldbody>{tendon}</mujoco>
"""


@pytest.mark.parametrize(("viscous", "coulomb", "bound"), [(0.01, 0.0, 1e-12), (0.01, 0.2, 1e-9)])
def test_it_is_what_a_fixed_tendon_with_damping_and_friction_is_in_mujoco(viscous, coulomb, bound):
    tendon = f"""<tendon><fixed name="m" damping="{viscous}" frictionloss="{coulomb}"
      solreffriction="2e-5 1" solimpfriction="0.9999 0.9999 0.001 0.5 2">
      <joint joint="a" coef="12"/><joint joint="b" coef="-30"/></fixed></tendon>"""
    model = mujoco.MjModel.from_xml_string(GEARED_MJCF.format(tendon=tendon))
    data = mujoco.MjData(model)
    mechanism = rd.load(GEARED_MJCF.format(tendon=""))
    law = Friction(viscous, coulomb)
    rotor = Rotor("m", mechanism.base, Pose(), (("a", 12.0), ("b", -30.0)), Inertial(), law)
    dynamics = InverseDynamics(replace(mechanism, rotors=(rotor,)))
    for seed in range(5):
        q, qd, tau = np.random.default_rng(seed).normal(size=(3, 2))
        qd *= 10
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, qd, 5 * tau
        mujoco.mj_forward(model, data)
        assert relative(dynamics(q, qd, data.qacc), 5 * tau) < bound


@pytest.mark.parametrize("law", [LAW, HOOK], ids=["plain", "all"])
@pytest.mark.parametrize("known", [True, False])
def test_the_simulated_robot_has_it(tmp_path, law, known):
    mechanism = arm(tmp_path, law)
    if not known:  # a rotor of which only gear and friction are known
        rotors = (replace(mechanism.rotors[-1], inertial=Inertial()),)
        mechanism = replace(mechanism, rotors=rotors)
    simulation, dynamics = Simulation(mechanism), InverseDynamics(mechanism)
    for seed in range(3):
        q, qd, qdd = state(seed, 5)
        simulation.reset(q, qd)
        assert relative(simulation.accelerations(dynamics(q, qd, qdd)), qdd) < 1e-9


def test_regressor_parameters_forward_and_derivatives_have_it(tmp_path):
    mechanism = arm(tmp_path, HOOK)
    q, qd, qdd = state(4, 5)
    for rotors, backend in zip(ROTOR_MODELS, ("auto", "python", "python"), strict=True):
        dynamics = rd.InverseDynamics(
            mechanism, rotors=rotors, friction_smoothing=0.7, backend=backend
        )
        tau = dynamics(q, qd, qdd)
        Y = dynamics.regressor(q, qd, qdd)
        assert relative(Y @ dynamics.parameters, tau) < 1e-11
        assert relative(dynamics.forward(q, qd, tau), qdd) < 1e-9
        _, by_qd, _ = dynamics.derivatives(q, qd, qdd)
        h = 1e-5
        sides = [dynamics(q, qd + s * h * np.eye(5), qdd) for s in (1, -1)]
        assert relative(by_qd.T, (sides[0] - sides[1]) / (2 * h)) < 1e-7
    names = [name for name in dynamics.parameter_names if name.startswith("wrist.rotor_")]
    assert names == [f"wrist.rotor_{each}" for each in
                     ("viscous", "coulomb", "coulomb_negative", "offset", "stribeck")]  # fmt: skip
    values = standard_parameters(mechanism)
    # those of joints come first, then rotors' friction, then rotors' bodies
    order = [*values]
    last = max(k for k, name in enumerate(order) if name.endswith(".coulomb"))
    assert order.index("wrist.rotor_viscous") == last + 1
    assert order.index("wrist.rotor_stribeck") < order.index("wrist.inertia")
    for model in ROTOR_MODELS:
        changed = with_parameters(mechanism, {"wrist.rotor_viscous": 0.5}, model)
        assert changed.rotors[-1].friction == replace(HOOK, viscous=0.5)
        assert standard_parameters(changed, model)["wrist.rotor_viscous"] == 0.5
        assert changed.rotors[0].friction is None


def test_an_armature_may_have_friction_too(tmp_path):
    mechanism = replace(without(arm(tmp_path)), rotors=())
    names = mechanism.joint_names
    ratios = tuple((names[j], float(ROW[j])) for j in np.flatnonzero(ROW))
    shafts = replace(mechanism, armatures=(Armature(ratios, 1e-3, HOOK),))
    plain = replace(mechanism, armatures=(Armature(ratios, 1e-3),))
    q, qd, qdd = state(5, 5)
    dynamics = InverseDynamics(shafts)
    tau = dynamics(q, qd, qdd)
    assert relative(tau, InverseDynamics(plain)(q, qd, qdd) + expected(HOOK, qd)) < 1e-12
    assert relative(dynamics.regressor(q, qd, qdd) @ dynamics.parameters, tau) < 1e-11
    name = f"{names[2]}.armature_coulomb"
    assert standard_parameters(shafts)[name] == HOOK.coulomb
    changed = with_parameters(shafts, {name: 0.5, f"{names[2]}.armature": 2e-3})
    assert changed.armatures == (Armature(ratios, 2e-3, replace(HOOK, coulomb=0.5)),)
    simulation = Simulation(shafts)
    simulation.reset(q, qd)
    assert relative(simulation.accelerations(tau), qdd) < 1e-9


def test_many_joints_and_articulated_bodies_have_it(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(random_dh(7, joints=12)))
    mechanism = rd.load(path)
    names = mechanism.joint_names
    ratios = ((names[0], 3.0), (names[-1], -7.0))
    rotor = Rotor("long", mechanism.base, Pose(), ratios, Inertial(), HOOK)
    dynamics = InverseDynamics(replace(mechanism, rotors=(rotor,)))
    q, qd, qdd = state(6, len(names))
    tau = dynamics(q, qd, qdd)
    row = np.zeros(len(names))
    row[0], row[-1] = 3.0, -7.0
    rest = InverseDynamics(mechanism)(q, qd, qdd)
    assert relative(tau, rest + row * by_hand(HOOK, row @ qd)) < RELATIVE_TO_SISTERS
    assert relative(dynamics.forward(q, qd, tau), qdd) < 1e-9


def at_rotors(mechanism, law, ratio=None):
    """(the robot with this friction on its rotors, the same at the joints that they turn)"""
    rotors = tuple(
        replace(each, friction=law, ratios=((each.ratios[0][0], ratio or each.ratios[0][1]),))
        for each in mechanism.rotors
    )
    laws = {each.ratios[0][0]: law.at_joint(each.ratios[0][1]) for each in rotors}
    links = tuple(
        replace(link, joint=replace(link.joint, friction=laws.get(link.joint.name, Friction())))
        for link in mechanism.links
    )
    bare = tuple(replace(link, joint=replace(link.joint, friction=Friction())) for link in links)
    return (
        replace(mechanism, rotors=rotors, links=bare),
        replace(mechanism, rotors=tuple(replace(r, friction=None) for r in rotors), links=links),
    )


@pytest.mark.parametrize("ratio", [9.0, -9.0])
@pytest.mark.parametrize("sensed", [False, True])
def test_of_a_closed_chain_it_is_that_of_the_joints_behind_the_gears(ratio, sensed):
    described = rd.load(CONFIG / "five_bar.yaml")
    on_motors, on_joints = (
        InverseDynamics(each, sensed=sensed) for each in at_rotors(described, HOOK, ratio)
    )
    names = on_motors.joint_names
    home = np.array([described.home[name] for name in names])
    loops = InverseDynamics(described).closed
    rates = loops.motion(loops.home.q_r, *np.random.default_rng(3).normal(size=(2, 2)))
    qd, qdd = (np.array([x[loops.coordinate_names.index(name)] for name in names]) for x in rates)
    tau, same = on_motors(home, qd, qdd), on_joints(home, qd, qdd)
    assert relative(tau, same) < RELATIVE_TO_SISTERS
    assert relative(tau, InverseDynamics(described, sensed=sensed)(home, qd, qdd)) > 1e-3
    if not sensed:
        Y = on_motors.regressor(home, qd, qdd)
        assert relative(Y @ on_motors.parameters, tau) < 1e-10
        # those of the rotors move by other accelerations than the links'
        some = InverseDynamics(on_motors.mechanism, terms=("rotors", "friction"))
        Y = some.regressor(home, qd, qdd)
        assert relative(Y @ some.parameters, some(home, qd, qdd)) < 1e-10
        for name in (rotor.name for rotor in described.rotors):
            assert f"{name}.rotor_viscous" in on_motors.parameter_names


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("ratio", [2.5, -0.4])
def test_behind_its_gear_it_is_friction_of_the_joint(law, ratio):
    rates = np.array([-40.0, -3.0, -0.1, 0.0, 0.1, 3.0, 40.0])
    behind = by_hand(law.at_joint(ratio), rates)
    assert behind == pytest.approx(ratio * by_hand(law, ratio * rates), rel=1e-14, abs=1e-14)
    assert not [*law.at_joint(ratio).faults()]


@pytest.mark.parametrize("kind", ["open", "closed"])
def test_a_robot_whose_rotor_friction_was_changed_is_one_that_was_built_so(tmp_path, kind):
    if kind == "open":
        mechanism, name = without(arm(tmp_path)), "wrist"
        q, qd, qdd = state(8, 5)
    else:
        mechanism = rd.load(CONFIG / "five_bar.yaml")
        name = "spindle"
        rotors = (replace(mechanism.rotors[0], name=name), *mechanism.rotors[1:])
        mechanism = replace(mechanism, rotors=rotors)
        q = [mechanism.home[joint] for joint in mechanism.actuated_names]
        qd, qdd = np.random.default_rng(9).normal(size=(2, len(q)))
    dynamics = InverseDynamics(mechanism, terms=["friction", "gravity"])
    dynamics(q, qd, qdd), dynamics.motor_torques(q, qd, qdd)
    for law in (LAW, HOOK, replace(HOOK, coulomb=0.5), Friction()):
        dynamics.set_friction(name, **vars(law))
        rotors = tuple(
            replace(each, friction=law) if each.name == name else each for each in mechanism.rotors
        )
        built = InverseDynamics(replace(mechanism, rotors=rotors), terms=["friction", "gravity"])
        assert (dynamics(q, qd, qdd) == built(q, qd, qdd)).all()
        assert dynamics.parameter_names == built.parameter_names
        same = zip(dynamics.motor_torques(q, qd, qdd), built.motor_torques(q, qd, qdd), strict=True)
        assert all((a == b).all() for a, b in same)
        Y = dynamics.regressor(q, qd, qdd)
        assert (built.regressor(q, qd, qdd) == Y).all()
    with pytest.raises(rd.InputError, match="viscous friction of"):
        dynamics.set_friction(name, -1.0, 0.0)
    with pytest.raises(rd.InputError, match=f"friction: joint.*{name}"):
        dynamics.set_friction("elbow motor", 1.0, 0.0)


def test_a_rotor_called_as_its_joint_leaves_set_friction_to_the_joint(tmp_path):
    mechanism = arm(tmp_path)
    name = mechanism.joint_names[3]
    rotors = tuple(replace(each, name=f"motor {k}") for k, each in enumerate(mechanism.rotors))
    mechanism = replace(mechanism, rotors=(*rotors[:-1], replace(rotors[-1], name=name)))
    dynamics = InverseDynamics(mechanism, terms=["friction"])
    dynamics.set_friction(name, 0.7, 0.0)
    assert dynamics.mechanism.joint(name).friction == Friction(0.7, 0.0)
    assert dynamics.mechanism.rotors[-1].friction == LAW
    # each has parameters of its own
    assert {f"{name}.viscous", f"{name}.rotor_viscous"} <= set(dynamics.parameter_names)


@pytest.mark.parametrize(("law", "smoothing"), [(0.0, 0.0), (70.0, 0.0), (0.0, 70.0), (30.0, 40.0)])
def test_the_motor_overcomes_its_friction_before_the_gear(tmp_path, law, smoothing):
    mechanism = arm(tmp_path, replace(HOOK, smoothing=law))
    whole = replace(HOOK, smoothing=law + smoothing)
    q, qd, qdd = state(10, 5)
    for terms in (TERMS, ("friction",), ("gravity", "rotors")):
        with_it, bare = (
            rd.InverseDynamics(each, terms=terms, friction_smoothing=smoothing, backend="python")
            for each in (mechanism, without(mechanism))
        )
        tau, at = with_it(q, qd, qdd), with_it.motor_torques(q, qd, qdd)
        rest = bare.motor_torques(q, qd, qdd)
        own = np.zeros(len(with_it.motor_names))
        own[-1] = by_hand(whole, ROW @ qd) if "friction" in terms else 0.0
        taken = (at.drive - at.gear) - (rest.drive - rest.gear)
        assert taken == pytest.approx(own, abs=1e-9)
        gears = np.zeros((len(own), 5))
        for row, rotor in zip(gears, mechanism.rotors, strict=True):
            for name, ratio in rotor.ratios:
                row[mechanism.joint_names.index(name)] += ratio
        assert relative(at.drive @ gears, tau) < 1e-9


def test_on_a_moving_base_it_counts_once(tmp_path):
    mechanism = arm(tmp_path, HOOK)
    q, qd, qdd = state(11, 5)
    still = BaseMotion(np.zeros(3), np.zeros(3), np.zeros(3))
    for terms in (("gravity", "friction"), TERMS):
        dynamics = rd.InverseDynamics(mechanism, terms=terms, backend="python")
        assert relative(dynamics(q, qd, qdd, base_motion=still), dynamics(q, qd, qdd)) < 1e-9
        moving = dynamics.motor_torques(q, qd, qdd, base_motion=still)
        for a, b in zip(moving, dynamics.motor_torques(q, qd, qdd), strict=True):
            assert relative(a, b) < 1e-9
        dynamics.set_friction("wrist", 0.5, 0.1)
        moving = dynamics.motor_torques(q, qd, qdd, base_motion=still)
        for a, b in zip(moving, dynamics.motor_torques(q, qd, qdd), strict=True):
            assert relative(a, b) < 1e-9


def test_a_locked_joint_turns_the_rotor_no_more(tmp_path):
    mechanism = arm(tmp_path, HOOK)
    names = mechanism.joint_names
    one = with_locked_joints(mechanism, {names[2]: 0.3})
    q, qd, qdd = state(12, 4)
    tau = InverseDynamics(one, terms=["friction"])(q, qd, qdd)
    rest = InverseDynamics(without(one), terms=["friction"])(q, qd, qdd)
    assert tau - rest == pytest.approx(
        np.eye(4)[2] * 55.0 * by_hand(HOOK, 55.0 * qd[2]), rel=1e-12, abs=1e-12
    )
    both = with_locked_joints(mechanism, {names[2]: 0.3, names[3]: -0.2})
    assert both.rotors[-1].friction is None
    assert not [name for name in standard_parameters(both) if "rotor_" in name]


def test_other_libraries_and_generated_code_have_it(tmp_path):
    pytest.importorskip("casadi", reason="casadi is not installed")
    mechanism = arm(tmp_path, HOOK)
    q, qd, qdd = state(13, 5)
    tau = InverseDynamics(mechanism)(q, qd, qdd)
    theirs = rd.functions(mechanism, "casadi")
    assert relative(np.ravel(theirs.torques(q, qd, qdd)), tau) < RELATIVE_TO_SISTERS
    linear = rd.functions(mechanism, "casadi", arguments=["parameters"])
    pi = np.array(list(standard_parameters(mechanism).values()))
    assert relative(np.ravel(linear.torques(q, qd, qdd, pi)), tau) < 1e-11
    made = generated(mechanism)
    kernel = made.kernels["friction"]
    p = made.parameters[kernel.parameters].described
    found = run(kernel.program, *q, *qd, *qdd, *p)
    assert relative(found, InverseDynamics(mechanism, terms=["friction"])(q, qd, qdd)) < 1e-12
    bare = replace(
        mechanism,
        links=tuple(
            replace(link, joint=replace(link.joint, friction=Friction()))
            for link in mechanism.links
        ),
    )
    # friction of a rotor alone is friction
    assert "friction" in generated(bare).kernels
    assert "friction" not in generated(without(bare)).kernels


def test_equations_write_it_with_letters_of_the_rotor(tmp_path):
    description = {
        "robot": "pair",
        "links": [
            {"name": f"l{k}", "joint": {"name": f"q{k}", "type": "revolute"}, "a": 0.5,
             "mass": 1.0} for k in (1, 2)
        ],
        "rotors": {"m": {"mount": "base", "gear_ratio": {"q1": 10.0, "q2": -20.0},
                         "inertia": {"izz": 1e-4},
                         "friction": {"viscous": 0.01, "coulomb": 0.2}}},
    }  # fmt: skip
    path = tmp_path / "pair.yaml"
    path.write_text(yaml.safe_dump(description))
    mechanism = rd.load(path)
    assert mechanism.rotors[0].friction == Friction(0.01, 0.2)
    model = rd.derive(mechanism)
    letters = {str(x) for x in model.friction.free_symbols}
    assert {"bvr1", "bcr1", "Gamma1_1", "Gamma1_2"} <= letters
    numeric = rd.derive(mechanism, parameters="numbers")
    rate = 10.0 * 0.3 + 20.0 * 0.4
    rates = dict(zip(numeric.qd, (0.3, -0.4), strict=True))
    values = np.array(numeric.friction.subs(rates), dtype=float)
    assert values.ravel() == pytest.approx(np.array([10.0, -20.0]) * (0.01 * rate + 0.2))


def test_descriptions_give_and_keep_it(tmp_path):
    path = tmp_path / "robot.yaml"
    robot = random_dh(0, joints=4)
    names = ["q1", "q2", "q4"]
    law = {"viscous": 0.01, "coulomb": 0.1, "offset": 0.02, "coulomb_negative": 0.2,
           "stribeck": {"torque": 0.05, "rate": 3.0}}  # fmt: skip
    robot["links"][0]["rotor"] = {"gear_ratio": 50.0, "friction": {"viscous": "2*b"}}
    robot["symbols"] = {"b": 0.25}
    robot["rotors"] = {
        "wrist": {"mount": "base", "gear_ratio": {names[1]: 30.0, names[2]: 40.0}, "friction": law}
    }
    path.write_text(yaml.safe_dump(robot))
    mechanism = rd.load(path)
    rotors = {rotor.name: rotor for rotor in mechanism.rotors}
    assert rotors[names[0]].friction == Friction(0.5, 0.0)
    assert rotors["wrist"].friction == Friction(0.01, 0.1, 0.02, 0.2, 0.05, 3.0)
    # written and read again
    again = copy.deepcopy(robot)
    again["rotors"]["wrist"] = _rotor(rotors["wrist"])
    path.write_text(yaml.safe_dump(again))
    assert rd.load(path).rotors[-1].friction == rotors["wrist"].friction
    _, found = check_report.survey(str(path))
    assert found["rotors"]["wrist"]["friction"]["coulomb"] == 0.1
    assert "wrist" not in found["gears"]
    for wrong, words in (
        ({"viscous": -1.0}, "rotor 'wrist': viscous friction: found -1.0, expected at least 0"),
        ({"viscuos": 1.0}, "viscuos"),
        ({"coulomb": 0.1, "stribeck": {"torque": -0.2, "rate": 1.0}}, "rotor 'wrist': stribeck"),
    ):
        again["rotors"]["wrist"]["friction"] = wrong
        path.write_text(yaml.safe_dump(again))
        text = yaml.safe_dump(again)
        with pytest.raises(rd.DescriptionError, match=words) as caught:
            rd.load(path)
        key = "torque: -0.2" if "stribeck" in wrong else next(iter(wrong))
        lines = text[text.index("rotors:") :].splitlines()
        before = text[: text.index("rotors:")].count("\n")
        assert caught.value.line == before + next(k for k, x in enumerate(lines, 1) if key in x)


def test_a_urdf_gets_what_it_can_express(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(random_dh(0, joints=4)))
    mechanism = rd.load(path)
    first, second, third = mechanism.joint_names
    law = Friction(0.001, 0.02, coulomb_negative=0.04)
    alone = Rotor("alone", mechanism.base, Pose(), ((first, -30.0),), Inertial(), law)
    both = Rotor("both", mechanism.base, Pose(), ((second, 3.0), (third, 4.0)), Inertial(), LAW)
    before = mechanism.joint(first).friction
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = urdf(replace(mechanism, rotors=(alone, both)))
    words = [str(each.message) for each in caught]
    assert any("the friction of rotors both; each is coupled to several joints" in w for w in words)
    assert any(f"friction of joints {first} beyond viscous and Coulomb" in w for w in words)
    found = rd.load(text).joint(first).friction
    assert found.viscous == pytest.approx(before.viscous + 900 * 0.001)
    assert found.coulomb == pytest.approx(before.coulomb + 30 * 0.03)
    assert rd.load(text).joint(second).friction == mechanism.joint(second).friction


def test_a_robot_without_it_computes_the_same_as_before(tmp_path):
    mechanism = arm(tmp_path, None)
    zero = arm(tmp_path, Friction())
    for name in FORMULATIONS:
        counts = []
        for each in (mechanism, zero):
            equations = Equations.of(each, name)
            counts.append(record(lambda *x, e=equations: e.torques(*x), (5, 5, 5)).operations)
        assert counts[0] == counts[1]


def test_a_chain_serves_the_same_robot_without_it(tmp_path):
    mechanism = arm(tmp_path, HOOK)
    chain = OpenChain(mechanism, Options(rotors="reflected", backend="python"))
    q, qd, qdd = state(14, 5)
    rest = Equations.of(without(mechanism), rotors="reflected").torques(q, qd, qdd)
    other = chain.over(without(mechanism))
    assert relative(other.torques(q, qd, qdd), rest) < RELATIVE_TO_SISTERS
    assert relative(chain.torques(q, qd, qdd), rest + expected(HOOK, qd)) < RELATIVE_TO_SISTERS
