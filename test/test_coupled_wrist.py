# SPDX-License-Identifier: Apache-2.0
"""Identification of motors that are coupled to several joints: inertia and friction on their
side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import robot_dynamics as rd
from robot_dynamics.app.identification_report import _Joint, _shaft_chart, _shafts, stretches, write
from robot_dynamics.identification import Recording, Stream
from robot_dynamics.identification.result_files import _changed_rotors, save
from robot_dynamics.identification.samples import Samples
from robot_dynamics.identification.shared_motors import shared_motors
from robot_dynamics.identification.unknowns import Unknowns
from robot_dynamics.mechanism import Armature, Friction, Inertial

pytest.importorskip("scipy", reason="SciPy filters the recordings")

NOISE = 0.01
RATE = 100.0
# name, mass (kg), centre of mass (m), moments (kg m²), joint's place on its parent (m), axis
ARM = (
    ("shoulder", 8.0, (0.0, 0.02, -0.05), (0.06, 0.05, 0.05), (0.0, 0.0, 0.32), "0 0 1"),
    ("upper", 6.0, (0.0, 0.0, 0.11), (0.05, 0.06, 0.02), (0.0, 0.1, 0.0), "0 1 0"),
    ("elbow", 4.0, (0.0, 0.03, 0.02), (0.02, 0.015, 0.015), (0.0, -0.065, 0.225), "0 1 0"),
    ("forearm", 3.0, (0.0, 0.0, -0.06), (0.02, 0.02, 0.008), (0.0, 0.0, 0.08), "0 0 1"),
    ("wrist", 0.6, (0.0, 0.01, 0.02), (1.5e-3, 1.2e-3, 1e-3), (0.0, 0.0, 0.145), "0 1 0"),
    ("flange", 0.2, (0.0, 0.0, 0.02), (1e-4, 1e-4, 1.2e-4), (0.0, 0.0, 0.065), "0 0 1"),
)
GEARS = (32.0, 32.0, 45.0, -48.0, 45.0, 32.0)
INERTIA = (3e-4, 3e-4, 1e-4, 5e-5, 4e-5, 3e-5)
VISCOUS = (3e-4, 3e-4, 1.5e-4, 1e-4, 1.2e-4, 1e-4)
COULOMB = (0.2, 0.25, 0.1, 0.08, 0.06, 0.05)


def urdf(heavier: float) -> str:
    parts, parent = ['<robot name="arm"><link name="base"/>'], "base"
    for k, (name, mass, center, moments, place, axis) in enumerate(ARM, 1):
        i, j, l = (heavier * x for x in moments)
        parts.append(
            f'<link name="{name}"><inertial><origin xyz="{" ".join(map(str, center))}"/>'
            f'<mass value="{heavier * mass}"/>'
            f'<inertia ixx="{i}" iyy="{j}" izz="{l}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{k}" type="continuous"><parent link="{parent}"/>'
            f'<child link="{name}"/><origin xyz="{" ".join(map(str, place))}"/>'
            f'<axis xyz="{axis}"/></joint>'
        )
        parent = name
    return "\n".join([*parts, "</robot>"])


def beside(known: bool, name: str) -> dict:
    """The motors: the sixth is coupled to joints 5 and 6."""
    mounts = ("base", *(link[0] for link in ARM[:4]), ARM[3][0])
    rotors = {}
    for k, mount in enumerate(mounts, 1):
        alone = {f"j{k}": GEARS[k - 1]}
        rotor = {"mount": mount, "gear_ratio": {"j5": 32.0, "j6": 32.0} if k == 6 else alone}
        if k in (2, 3, 5):
            rotor["origin"] = {"rpy": [-np.pi / 2, 0, 0]}
        if known:
            rotor["inertia"] = {"izz": INERTIA[k - 1]}
            rotor["friction"] = {"viscous": VISCOUS[k - 1], "coulomb": COULOMB[k - 1]}
        rotors[name.format(k)] = rotor
    return {"urdf": "arm.urdf", "rotors": rotors}


def written(folder, *, known, heavier, name="motor{}"):
    folder.mkdir()
    (folder / "arm.urdf").write_text(urdf(heavier))
    (folder / "arm.yaml").write_text(yaml.safe_dump(beside(known, name)))
    return folder / "arm.yaml"


def motion(seed, n, seconds):
    rng = np.random.default_rng(seed)
    t = np.arange(0, seconds, 1 / RATE)[:, None]
    q, qd, qdd = np.zeros((3, len(t), n))
    for k in range(1, 9):
        w = 2 * np.pi * 0.1 * k
        a, b = rng.normal(size=(2, n)) * 0.5 / k**0.7
        q += a * np.sin(w * t) + b * np.cos(w * t)
        qd += w * (a * np.cos(w * t) - b * np.sin(w * t))
        qdd -= w**2 * (a * np.sin(w * t) + b * np.cos(w * t))
    return t[:, 0], q, qd, qdd


def recorded(truth, seed=0, seconds=20.0):
    t, q, qd, qdd = motion(seed, len(truth.joint_names), seconds)
    tau = rd.InverseDynamics(truth)(q, qd, qdd)
    rng = np.random.default_rng(seed)
    tau = tau + NOISE * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return Recording(f"log {seed}", (Stream(truth.joint_names, t, q, qd, tau),))


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """(the true arm, its description without rotors' inertia and friction)"""
    folder = tmp_path_factory.mktemp("arm")
    truth = rd.load(written(folder / "truth", known=True, heavier=1.0))
    return truth, written(folder / "guess", known=False, heavier=0.8)


@pytest.fixture(scope="module")
def found(arm):
    truth, guess = arm
    # the step at a reversal is sharp in these logs
    return rd.identify(str(guess), recorded(truth), cutoff=RATE)


def told(found):
    deviations = np.sqrt(np.diag(found.covariance)).tolist()
    return {
        name: (value, deviation)
        for (name, value), deviation in zip(found.parameters.items(), deviations, strict=True)
    }


def test_the_arm_is_identified_to_its_noise(found):
    assert found.kept == "nothing"
    assert not found.warnings
    assert (found.errors.relative < 1.1 * NOISE).all()
    assert (found.errors.relative_described > 0.1).all()


def test_the_motor_of_two_joints_is_identified_on_its_side(found):
    numbers = told(found)
    for name, true in (
        ("motor6.rotor_viscous", VISCOUS[5]),
        ("motor6.rotor_coulomb", COULOMB[5]),
        ("motor6.inertia", INERTIA[5]),
    ):
        value, deviation = numbers[name]
        assert abs(value - true) < 3 * deviation
        assert deviation < 0.02 * true
    # the friction of a motor of one joint is at the joint
    for k in (4, 5):
        for term, true in (
            ("viscous", GEARS[k - 1] ** 2 * VISCOUS[k - 1]),
            ("coulomb", abs(GEARS[k - 1]) * COULOMB[k - 1]),
        ):
            value, deviation = numbers[f"j{k}.{term}"]
            assert abs(value - true) < 3 * deviation
    # what does not exist is not found: all friction of joint 6 is that of its motor
    assert found.mechanism.joint("j6").friction == Friction()
    assert {rotor.name for rotor in found.mechanism.rotors if rotor.friction} == {"motor6"}
    assert found.described_parameters["motor6.rotor_viscous"] == 0.0


def test_the_written_model_carries_them(found, tmp_path):
    save(found, tmp_path)
    again = rd.load(tmp_path / "identified.yaml")
    _, q, qd, qdd = motion(5, 6, 0.2)
    tau = rd.InverseDynamics(found.mechanism)(q, qd, qdd)
    assert rd.InverseDynamics(again)(q, qd, qdd) == pytest.approx(tau, rel=1e-12, abs=1e-9)
    rotor = next(rotor for rotor in again.rotors if rotor.name == "motor6")
    assert rotor.friction == next(r for r in found.mechanism.rotors if r.name == "motor6").friction


def test_the_report_draws_its_friction_on_the_motors_side(found, tmp_path):
    """Each joint's chart is without it: dots lie on the law, whatever the other joint does."""
    row = np.array([0, 0, 0, 0, 32.0, 32.0])
    noise = found.errors.identified
    laws = [found.mechanism.joint(name).friction for name in found.joints]
    shown = stretches(found)
    charts = [_Joint(found, shown, j).friction() for j in range(6)]
    charts.append(_shaft_chart(found.mechanism, shown, "motor6"))
    scatter = [*noise, np.linalg.norm(row * noise) / (row @ row)]
    laws.append(Friction(VISCOUS[5], COULOMB[5]))
    for chart, law, most in zip(charts, laws, scatter, strict=True):
        dots, line = chart.lines
        right = [law.torque(v, float(np.sign(v))) for v in line.x.tolist()]
        assert line.y == pytest.approx(right, rel=0.02, abs=1e-9)
        off = dots.y - [law.torque(v, float(np.sign(v))) for v in dots.x.tolist()]
        assert np.median(np.abs(off)) < most
    rates = np.concatenate([each.samples.qd for each in found.traces])
    assert charts[6].lines[0].x == pytest.approx(rates @ row)
    assert charts[6].up == "N·m"
    page = write(found, tmp_path)["page"].read_text(encoding="utf-8")
    assert "<h2>motor6</h2>" in page
    assert "motor6: friction over velocity" in page


def test_the_report_draws_friction_that_is_kept_as_described(arm, found):
    """It may lie at motors, and at shafts that are none."""
    truth, _ = arm
    motor = truth.rotors[5]
    belt = Armature(motor.ratios, 0.0, motor.friction)
    other = replace(truth, rotors=(*truth.rotors[:5], replace(motor, friction=None)))
    for mechanism, name in (
        (truth, "motor6"),
        (replace(other, armatures=(belt,)), "shaft 1 on j5, j6"),
    ):
        result = replace(found, mechanism=mechanism, kept="everything")
        assert [*_shafts(mechanism)] == [name]
        shown = stretches(result)
        charts = [_Joint(result, shown, j).friction() for j in range(6)]
        charts.append(_shaft_chart(mechanism, shown, name))
        laws = [
            Friction(g * g * viscous, abs(g) * coulomb)
            for g, viscous, coulomb in zip(GEARS[:5], VISCOUS[:5], COULOMB[:5], strict=True)
        ]
        laws += [Friction(), Friction(VISCOUS[5], COULOMB[5])]
        scatter = [*found.errors.identified, 0.02]
        for chart, law, most in zip(charts, laws, scatter, strict=True):
            dots, line = chart.lines
            right = [law.torque(v, float(np.sign(v))) for v in line.x.tolist()]
            assert line.y == pytest.approx(right, rel=1e-12, abs=1e-12)
            off = dots.y - [law.torque(v, float(np.sign(v))) for v in dots.x.tolist()]
            assert np.median(np.abs(off)) < most


def wrist(tmp_path, name="motor{}", joints=("j5", "j6"), of_joint6=0.0, motor=True):
    """The last two joints alone, of an arm whose other joints are locked."""
    folder = tmp_path / "wrist"
    path = written(folder, known=True, heavier=1.0, name=name)
    content = yaml.safe_load(path.read_text())
    content["locked"] = {f"j{k}": 0.3 for k in range(1, 5)}
    if of_joint6:
        content["friction"] = {"j6": {"viscous": 0.5, "coulomb": of_joint6}}
    last = content["rotors"][name.format(6)]
    last["gear_ratio"] = dict.fromkeys(joints, 32.0)
    if not motor:
        last.pop("friction")
    path.write_text(yaml.safe_dump(content))
    truth = rd.load(path)
    for rotor in content["rotors"].values():
        rotor.pop("friction", None)
        rotor.pop("inertia")
    content.pop("friction", None)
    path.write_text(yaml.safe_dump(content))
    return truth, rd.load(path)


def test_friction_of_joint_and_motor_are_told_apart(tmp_path):
    truth, described = wrist(tmp_path, of_joint6=1.0)
    numbers = told(rd.identify(described, recorded(truth), cutoff=RATE))
    for name, true in (
        ("motor6.rotor_viscous", VISCOUS[5]),
        ("motor6.rotor_coulomb", COULOMB[5]),
        ("motor6.inertia", INERTIA[5]),
        ("j6.viscous", 0.5),
        ("j6.coulomb", 1.0),
    ):
        value, deviation = numbers[name]
        assert abs(value - true) < 3 * deviation


def test_a_motor_without_friction_gets_none(tmp_path):
    truth, described = wrist(tmp_path, of_joint6=1.0, motor=False)
    found = rd.identify(described, recorded(truth), cutoff=RATE)
    assert not [name for name in found.parameters if "rotor_" in name]
    assert not [rotor for rotor in found.mechanism.rotors if rotor.friction]
    assert (found.errors.relative < 1.1 * NOISE).all()


def test_a_motor_called_as_its_joint_keeps_its_own_parameters(tmp_path):
    truth, described = wrist(tmp_path, name="j{}", of_joint6=1.0)
    found = rd.identify(described, recorded(truth), cutoff=RATE)
    numbers = told(found)
    assert abs(numbers["j6.rotor_coulomb"][0] - COULOMB[5]) < 3 * numbers["j6.rotor_coulomb"][1]
    assert abs(numbers["j6.coulomb"][0] - 1.0) < 3 * numbers["j6.coulomb"][1]
    rotor = next(rotor for rotor in found.mechanism.rotors if rotor.name == "j6")
    assert rotor.friction is not None
    assert len(found.parameter_names) == len(set(found.parameter_names))


def test_through_a_filter_too(tmp_path):
    truth, described = wrist(tmp_path, of_joint6=1.0)
    found = rd.identify(described, recorded(truth), cutoff=8.0)
    numbers = told(found)
    for name, true in (("motor6.rotor_coulomb", COULOMB[5]), ("motor6.inertia", INERTIA[5])):
        assert abs(numbers[name][0] - true) < 3 * numbers[name][1]
    assert (found.errors.relative < 1.1 * NOISE).all()


def test_its_described_friction_is_known_when_a_payload_is_sought(tmp_path):
    truth, _ = wrist(tmp_path, of_joint6=1.0)
    load = Inertial(0.5, np.array([0.02, 0.0, 0.06]), np.diag([1e-4, 1e-4, 1e-4]))
    links = tuple(
        replace(link, inertial=link.inertial + load) if link.name == "flange" else link
        for link in truth.links
    )
    found = rd.identify(truth, recorded(replace(truth, links=links)), payload="flange", cutoff=RATE)
    assert (found.errors.relative < 1.1 * NOISE).all()
    assert found.mechanism.rotors == truth.rotors


def test_described_friction_counts_once(tmp_path):
    truth, _ = wrist(tmp_path)
    double = tuple(
        replace(rotor, friction=Friction(2 * rotor.friction.viscous, 2 * rotor.friction.coulomb))
        for rotor in truth.rotors
        if rotor.friction
    )
    described = replace(truth, rotors=double)
    found = rd.identify(described, recorded(truth), cutoff=RATE)
    numbers, before = told(found), found.described_parameters
    assert before["motor6.rotor_coulomb"] == 2 * COULOMB[5]
    assert before["j5.coulomb"] == pytest.approx(2 * GEARS[4] * COULOMB[4])
    for name, true in (
        ("motor6.rotor_viscous", VISCOUS[5]),
        ("motor6.rotor_coulomb", COULOMB[5]),
        ("j5.viscous", GEARS[4] ** 2 * VISCOUS[4]),
        ("j5.coulomb", GEARS[4] * COULOMB[4]),
    ):
        assert abs(numbers[name][0] - true) < 3 * numbers[name][1]
    assert (found.errors.relative < 1.1 * NOISE).all()
    motor5 = next(rotor for rotor in found.mechanism.rotors if rotor.name == "motor5")
    assert motor5.friction is None


def test_a_motors_stribeck_rate_is_its_own(tmp_path):
    truth, described = wrist(tmp_path)
    law = Friction(VISCOUS[5], COULOMB[5], stribeck_torque=0.08, stribeck_rate=32 * 0.35)
    rotors = tuple(
        replace(rotor, friction=law) if rotor.name == "motor6" else rotor for rotor in truth.rotors
    )
    found = rd.identify(described, recorded(replace(truth, rotors=rotors)), cutoff=RATE)
    motor = next(rotor for rotor in found.mechanism.rotors if rotor.name == "motor6")
    assert motor.friction.stribeck_rate == pytest.approx(law.stribeck_rate)
    numbers = told(found)
    for name, true in (("rotor_coulomb", COULOMB[5]), ("rotor_stribeck_torque", 0.08)):
        value, deviation = numbers[f"motor6.{name}"]
        assert abs(value - true) < 3 * deviation


def test_a_rotor_whose_friction_alone_changed_is_written(arm):
    truth, _ = arm
    rotors = tuple(replace(rotor, friction=None) for rotor in truth.rotors)
    result = SimpleNamespace(described=truth, mechanism=replace(truth, rotors=rotors))
    assert [rotor.name for rotor in _changed_rotors(result)] == [each.name for each in rotors]
    result = SimpleNamespace(described=truth, mechanism=truth)
    assert _changed_rotors(result) == []


def test_a_constant_torque_of_the_motor_is_that_of_its_joints(tmp_path):
    truth, described = wrist(tmp_path)
    law = Friction(VISCOUS[5], COULOMB[5], offset=0.02)
    rotors = tuple(
        replace(rotor, friction=law) if rotor.name == "motor6" else rotor for rotor in truth.rotors
    )
    found = rd.identify(described, recorded(replace(truth, rotors=rotors)), cutoff=RATE)
    numbers = told(found)
    assert "motor6.rotor_offset" not in numbers
    for joint in ("j5", "j6"):
        value, deviation = numbers[f"{joint}.offset"]
        assert abs(value - 32.0 * 0.02) < 3 * deviation


def test_a_joint_called_like_the_motors_own_key_is_another(tmp_path):
    _, described = wrist(tmp_path)
    names = {"j5": "motor6.rotor", "j6": "j6"}
    links = tuple(
        replace(link, joint=replace(link.joint, name=names.get(link.joint.name, link.joint.name)))
        for link in described.links
    )
    rotors = tuple(
        replace(
            rotor, ratios=tuple((names.get(joint, joint), ratio) for joint, ratio in rotor.ratios)
        )
        for rotor in described.rotors
    )
    unknowns = Unknowns.of(replace(described, links=links, rotors=rotors))
    assert unknowns.joints == ("motor6.rotor", "j6")
    assert len(set(unknowns.owners)) == 3
    assert len({unknowns.group(owner).start for owner in unknowns.owners}) == 3


@pytest.mark.parametrize("sign", [1, -1])
def test_a_motor_that_is_not_described_is_suspected_and_the_suggestion_explains_the_efforts(
    tmp_path, sign
):
    truth, described = wrist(tmp_path)
    rotors = [
        replace(rotor, ratios=(("j5", 32.0), ("j6", sign * 32.0)))
        if rotor.name == "motor6"
        else rotor
        for rotor in truth.rotors
    ]
    recording = recorded(replace(truth, rotors=tuple(rotors)))
    alone = replace(
        described, rotors=tuple(each for each in described.rotors if each.name != "motor6")
    )
    found = rd.identify(alone, recording, cutoff=RATE)
    little = "The motion determines"  # these two joints have few parameters
    (line,) = (each for each in found.warnings if little not in each)
    left = ", ".join(f"{100 * error:.0f} %" for error in found.fitted.relative)
    assert line.startswith(f"j5, j6: the model leaves {left} of the torque unexplained, but only ")
    suggested = yaml.safe_load(line.split("`")[1])["rotors"]
    assert suggested == {
        "wrist_motor": {"mount": "forearm", "gear_ratio": {"j5": 100, "j6": sign * 100}}
    }
    folder = tmp_path / "wrist"
    content = yaml.safe_load((folder / "arm.yaml").read_text())
    content["rotors"] = suggested
    (folder / "arm.yaml").write_text(yaml.safe_dump(content))
    better = rd.identify(str(folder / "arm.yaml"), recording, cutoff=RATE)
    assert not [each for each in better.warnings if little not in each]
    assert (better.errors.relative < 1.2 * NOISE).all()
    assert found.errors.relative.min() > 0.1


def test_no_shared_motor_is_suspected_where_efforts_are_wrong_for_another_reason(tmp_path):
    truth, described = wrist(tmp_path, of_joint6=1.0)
    recording = recorded(truth)
    (stream,) = recording.streams
    t, tau = stream.time, stream.effort.copy()
    tau[:, 1] += np.sqrt((tau[:, 1] ** 2).mean()) * np.sin(2 * np.pi * 0.37 * t)
    odd = Recording("log", (replace(stream, effort=tau),))
    found = rd.identify(described, odd, cutoff=RATE)
    assert found.errors.relative[1] > 0.5
    assert not [line for line in found.warnings if "a motor turns both" in line]


def test_no_shared_motor_is_suspected_that_acts_at_times_only(tmp_path):
    truth, _ = wrist(tmp_path)
    alone = replace(truth, rotors=tuple(each for each in truth.rotors if each.name != "motor6"))
    (coupled,), (free,) = recorded(truth).streams, recorded(alone).streams
    early = coupled.time < coupled.time[-1] / 3
    effort = np.where(early[:, None], coupled.effort, free.effort)
    found = rd.identify(alone, Recording("log", (replace(free, effort=effort),)), cutoff=RATE)
    assert (found.fitted.relative > 0.1).any()
    assert not [line for line in found.warnings if "a motor turns both" in line]


@pytest.mark.parametrize("seed", [21, 29, 31, 38])
def test_noise_of_a_joint_that_hardly_moves_for_half_the_time_follows_no_other(tmp_path, seed):
    truth, _ = wrist(tmp_path)
    alone = replace(truth, rotors=tuple(each for each in truth.rotors if each.name != "motor6"))
    t, q, qd, qdd = motion(seed, 2, 10.0)
    for each in (qd, qdd):
        each[t < t[-1] / 2, 1] *= 1e-4
    samples = replace(
        Samples.without_efforts(q, qd, qdd), tau=np.ones(q.shape), usable=np.ones(q.shape, bool)
    )
    noise = 0.3 * np.random.default_rng(seed).normal(size=q.shape)
    assert not [*shared_motors(alone, ["j6"], samples, noise)]


@pytest.mark.parametrize(("other", "pairs"), [(1, 0), (3, 1)])
def test_joints_that_are_far_apart_share_no_motor(other, pairs):
    robot = rd.load(Path(__file__).resolve().parents[1] / "urdf" / "six_axis.urdf")
    _, q, qd, qdd = motion(3, 6, 10.0)
    samples = replace(
        Samples.without_efforts(q, qd, qdd), tau=np.ones(q.shape), usable=np.ones(q.shape, bool)
    )
    # as of a torque sensor that feels another joint's motion
    residual = qd[:, [other]] + 0.1 * qdd[:, [other]] + 0.0 * q
    found = shared_motors(robot, [robot.joint_names[5]], samples, residual)
    assert len([*found]) == pairs
