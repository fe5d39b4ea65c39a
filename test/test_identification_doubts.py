# SPDX-License-Identifier: Apache-2.0
"""One joint's efforts with another sign or unit, detected from what the other joints say about its
bodies."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import SIX_AXIS, changed, motion, recording
from solver_steps import steps_of_paths
from test_identification import ARM, heavier
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.errors import DescriptionError, RecordingError
from robot_dynamics.identification import Recording, Stream, doubts, identify, solve
from robot_dynamics.identification.doubts import (
    OPPOSITE,
    SILENT,
    Doubt,
    nothing_left,
    required,
    surely_worse,
    turned,
)
from robot_dynamics.identification.result_files import save
from robot_dynamics.identification.selection import _Scored, nothing
from robot_dynamics.identification.unknowns import Unknowns
from robot_dynamics.mechanism import Friction, Mechanism


@pytest.fixture(scope="module")
def described() -> Mechanism:
    return rd.load(SIX_AXIS)


@pytest.fixture(scope="module")
def truth(described) -> Mechanism:
    return changed(described, seed=3)


@pytest.fixture(scope="module")
def log(truth):
    return recording(truth, 20.0, 100.0, noise=0.02)


def true_errors(truth: Mechanism, found: Mechanism) -> np.ndarray:
    """On the last third of the log, against torques that have no noise."""
    _, q, qd, qdd = (each[-600:] for each in motion(len(truth.joint_names), 20.0, 100.0))
    right = InverseDynamics(truth)(q, qd, qdd)
    miss = InverseDynamics(found)(q, qd, qdd) - right
    return np.sqrt((miss**2).mean(axis=0) / (right**2).mean(axis=0))


def test_factors_need_not_be_tried_all_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    A, H = (X @ X.T for X in rng.normal(size=(2, 12, 20)))
    moment, x = rng.normal(size=(2, 12))
    joint = SimpleNamespace(own=[np.arange(8, 12)], gram=[A], moment=[moment], square=np.ones(1))
    left = doubts._RelativeError(joint, 0, x, H)
    together = left(doubts.FACTORS)
    monkeypatch.setattr(doubts, "AT_ONCE", 3 * 8**2)
    assert np.ptp(together) > 0
    assert left(doubts.FACTORS) == pytest.approx(together, rel=1e-12)
    monkeypatch.setattr(doubts, "AT_ONCE", 1)
    assert left(doubts.FACTORS) == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize("joint", range(6))
def test_a_wrong_sign_is_named_and_nothing_is_bent_to_it(described, truth, log, joint):
    name = described.joint_names[joint]
    result = identify(described, log.scaled({name: -1.0}), cutoff=10.0)
    assert [(each.joint, each.factor) for each in result.doubts] == [(name, -1.0)]
    (words,) = (each for each in result.warnings if each.startswith(f"{name}: its efforts"))
    assert "the opposite sign" in words
    assert f"--effort-scale {name}:-1 " in words
    assert "\n" not in words
    # the reported errors of every joint are the true ones
    true = true_errors(truth, result.mechanism)
    assert np.abs(result.errors.relative - true).max() < 0.05
    assert np.delete(true, joint).max() < 0.1


@pytest.mark.parametrize(
    ("joint", "factor"),
    [(0, 1 / 12), (1, 1 / 12), (2, 180 / np.pi), (0, 0.01), (1, 0.01), (2, 0.01), (2, 0.1)],
)
def test_another_unit_is_named_with_its_factor(described, truth, log, joint, factor):
    name = described.joint_names[joint]
    result = identify(described, log.scaled({name: factor}), cutoff=10.0)
    found = {each.joint: each.factor for each in result.doubts}
    assert found.keys() == {name}
    assert found[name] * factor == pytest.approx(1.0, rel=0.5)
    said = "degrees were used instead of radians" if factor > 1 else "another unit"
    assert said in result.doubts[0].why
    true = true_errors(truth, result.mechanism)
    assert np.delete(np.abs(result.errors.relative - true), joint).max() < 0.05


@pytest.mark.parametrize(("joint", "factor"), [(1, 1 / 12), (2, 1 / 12), (2, -1.0)])
def test_units_are_told_whatever_the_masses_described(described, truth, log, joint, factor):
    name = described.joint_names[joint]
    result = identify(heavier(described, 1e-5), log.scaled({name: factor}), cutoff=10.0)
    (found,) = result.doubts
    assert (found.joint, found.sure) == (name, True)
    assert found.factor * factor == pytest.approx(1.0, rel=0.1)


def test_efforts_that_are_torques_are_not_doubted(described, log):
    for by in (0.3, 0.8):
        other = recording(changed(described, seed=4, by=by), 20.0, 100.0, noise=0.05)
        assert identify(described, other, cutoff=10.0).doubts == ()
    assert identify(described, log, cutoff=10.0).doubts == ()


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_another_unit_is_named_without_noise(described, truth, joint):
    name = described.joint_names[joint]
    log = recording(truth, 20.0, 100.0).scaled({name: 0.01})
    (found,) = identify(described, log, cutoff=10.0).doubts
    assert (found.joint, found.sure) == (name, True)
    assert found.factor == pytest.approx(100, rel=0.1)


def test_joints_that_no_model_explains_count_less(described, log):
    """As precise as the others, the wrists would hide that joint4's unit is another one."""
    name = described.joint_names[3]
    (stream,) = log.scaled({name: 0.1}).streams
    odd = np.sin(15 * stream.position) * np.cos(2 * stream.time)[:, None]
    odd[:, :4] = 0.0
    effort = stream.effort + 0.6 * np.sqrt((stream.effort**2).mean(axis=0)) * odd
    (found,) = identify(
        described, Recording("odd", (replace(stream, effort=effort),)), cutoff=10.0
    ).doubts
    assert found.joint == name
    assert found.factor == pytest.approx(10, rel=0.2)


def replaced(log: Recording, joint: int, change) -> Recording:
    """The recording with other efforts at one joint: change(efforts, random numbers)."""
    (stream,) = log.streams
    effort = stream.effort.copy()
    effort[:, joint] = change(effort[:, joint], np.random.default_rng(0))
    return Recording("replaced", (replace(stream, effort=effort),))


@pytest.mark.parametrize("joint", [1, 2])
@pytest.mark.parametrize(
    "change",
    [
        lambda effort, rng: 1e-3 * effort.std() * rng.normal(size=effort.shape),
        lambda effort, rng: 0.3 + 1e-3 * effort.std() * rng.normal(size=effort.shape),
        lambda effort, rng: 0.01 * rng.integers(-1, 2, size=effort.shape),
    ],
    ids=["noise", "offset", "last digit"],
)
def test_efforts_that_are_noise_are_not_fitted(described, log, joint, change):
    name = described.joint_names[joint]
    result = identify(described, replaced(log, joint, change), cutoff=10.0)
    (found,) = result.doubts
    assert (found.joint, found.factor, found.sure) == (name, 1.0, True)
    (words,) = (each for each in result.warnings if each.startswith(f"{name}: its efforts"))
    assert "are unrelated to its torque" in words
    assert f"--effort-scale {name}:1 to keep them" in words
    unmeasured = identify(described, log.without_efforts([name]), cutoff=10.0)
    assert unmeasured.doubts == ()
    for each in (result, unmeasured):
        assert np.isnan(each.errors.relative[joint])
        assert np.delete(each.errors.relative, joint).max() < 0.02
    np.testing.assert_allclose(result.errors.relative, unmeasured.errors.relative, atol=0.002)


def test_noise_at_a_joint_that_the_others_say_little_about_is_harmless(described, log):
    def noise(effort, rng):
        return 1e-3 * effort.std() * rng.normal(size=effort.shape)

    result = identify(described, replaced(log, 5, noise), cutoff=10.0)
    assert result.doubts == ()
    assert result.errors.relative[:5].max() < 0.02


@pytest.mark.parametrize("joint", [1, 2])
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_unit_that_nobody_uses_spoils_no_other_joint(described, log, joint, factor):
    name = described.joint_names[joint]
    result = identify(described, log.scaled({name: factor}), cutoff=10.0)
    (found,) = result.doubts
    assert (found.joint, found.sure) == (name, True)
    assert found.factor * factor == pytest.approx(1.0, rel=0.1)
    assert np.delete(result.errors.relative, joint).max() < 0.02


@pytest.mark.parametrize("spike", [False, True])
def test_efforts_that_are_zero_but_for_rounding_are_none(described, log, spike):
    name = described.joint_names[1]

    def rounding(effort, rng):
        return 1e-12 * effort

    almost = replaced(log, 1, rounding)
    if spike:
        almost.streams[0].effort[7, 3] = 1e8
    result = identify(described, almost, cutoff=10.0)
    assert result.doubts == ()
    assert any(f"no efforts for {name}: parameters" in note for note in result.notes)
    assert np.isnan(result.errors.relative).tolist() == [False, True, *[False] * 4]
    if not spike:
        assert np.nanmax(result.errors.relative) < 0.02


@pytest.mark.parametrize("seed", [1, 3])
def test_efforts_of_slow_motion_are_not_doubted(described, seed):
    """Friction dominates, and is not of the plain kind that is tried."""
    slow = recording(changed(described, seed=seed), 20.0, 100.0, noise=0.05, reach=0.2)
    assert identify(described, slow, cutoff=10.0).doubts == ()


def test_a_joint_that_is_sure_is_believed(described, log):
    name = described.joint_names[2]
    wrong = log.scaled({name: -1.0})
    insisted = identify(described, wrong, cutoff=10.0, effort_scale={name: 1.0})
    assert name not in {each.joint for each in insisted.doubts}
    right = identify(described, wrong, cutoff=10.0, effort_scale={name: -1.0})
    assert right.doubts == ()
    assert right.errors.relative.max() < 0.1


@pytest.mark.parametrize("reach", [0.0, 0.01])
def test_static_friction_of_a_joint_that_hardly_moves_is_no_wrong_sign(described, truth, reach):
    """A brake holds the first joint, whose motor may then report any part of its torque."""
    time, q, qd, qdd = motion(6, 20.0, 100.0)
    rate = 2 * np.pi * 0.5
    q[:, 0] = reach * np.sin(rate * time)
    qd[:, 0] = reach * rate * np.cos(rate * time)
    qdd[:, 0] = -reach * rate**2 * np.sin(rate * time)
    tau = InverseDynamics(truth)(q, qd, qdd)
    tau *= 1 + 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    name = described.joint_names[0]

    def found(times: float):
        effort = np.column_stack([times * tau[:, 0], tau[:, 1:]])
        log = Recording("held", (Stream(described.joint_names, time, q, qd, effort),))
        return identify(described, log, cutoff=10.0)

    result, unmeasured = found(-0.3), found(np.nan)
    assert [(each.joint, each.factor, each.sure) for each in result.doubts] == [(name, 1.0, True)]
    said = [words for words in result.warnings if words.startswith(name)]
    assert "static friction may carry any share" in said[0]
    assert not any("--effort-scale" in words for words in said)
    np.testing.assert_allclose(
        result.errors.relative[1:], unmeasured.errors.relative[1:], atol=0.005
    )


def with_rotors(robot: Mechanism, times: float) -> Mechanism:
    """The robot with the inertia of its rotors multiplied by this factor."""
    rotors = tuple(
        replace(rotor, inertial=replace(rotor.inertial, inertia=times * rotor.inertial.inertia))
        for rotor in robot.rotors
    )
    return replace(robot, rotors=rotors)


@pytest.mark.parametrize("times", [0.3, 1.0, 3.0])
def test_rotors_described_too_light_or_too_heavy_are_no_wrong_signs(truth, times):
    robot = with_rotors(truth, 10.0)
    log = recording(robot, 20.0, 100.0, noise=0.02)
    result = identify(with_rotors(robot, times), log, cutoff=10.0)
    assert result.doubts == ()
    assert result.errors.relative.max() < 0.1


def test_efforts_of_motors_with_described_gears_are_told(truth, monkeypatch):
    steps = steps_of_paths(monkeypatch)
    log = recording(truth, 20.0, 100.0, noise=0.02)
    found = identify(truth, log.scaled(dict.fromkeys(truth.joint_names, 0.01)), cutoff=10.0)
    said = found.warnings
    scales = " ".join(f"{name}:100" for name in truth.joint_names)
    assert any(f"(if they are the motors' torques: --effort-scale {scales})" in w for w in said)
    assert not any("the opposite sign" in words for words in said)
    # the fit is as good as in N·m, and found as quickly
    assert found.errors.relative.max() < 0.02
    assert max(steps) < solve.LONGEST_PATH / 2


def test_gears_are_described_or_not_whatever_the_links_are_called(described, truth):
    """A rotor's parameters get another name if a link has its name."""

    def renamed(robot: Mechanism) -> Mechanism:
        links = [replace(link, joint=replace(link.joint, name=link.name)) for link in robot.links]
        rotors = [
            replace(rotor, name=link.name, ratios=((link.name, 100.0),))
            for rotor, link in zip(robot.rotors, robot.moving, strict=False)
        ]
        return replace(robot, links=tuple(links), rotors=tuple(rotors))

    names = tuple(link.name for link in described.moving)
    assert not described.rotors
    assert Unknowns.of(renamed(described)).gear_ratios == {}
    known = Unknowns.of(renamed(truth))
    assert known.added == ()
    assert known.gear_ratios == dict.fromkeys(names, 100.0)


def test_two_wrong_signs_are_both_named(described, log):
    names = {described.joint_names[k]: -1.0 for k in (1, 4)}
    result = identify(described, log.scaled(names), cutoff=10.0)
    assert {each.joint: each.factor for each in result.doubts} == names


def test_efforts_that_are_all_wrong_are_refused_with_the_factors(described, log):
    names = dict.fromkeys(described.joint_names, -1.0)
    with pytest.raises(RecordingError, match="the efforts do not match") as caught:
        identify(described, log.scaled(names), cutoff=10.0)
    assert all(f"{name}:-1" in str(caught.value) for name in names)


@pytest.mark.parametrize("by", [1.0, 1e-3])
def test_all_signs_are_told_without_friction_whatever_the_masses_described(described, by):
    log = recording(described, 20.0, 100.0, noise=0.02)
    names = dict.fromkeys(described.joint_names, -1.0)
    with pytest.raises(RecordingError, match="the efforts do not match") as caught:
        identify(heavier(described, by), log.scaled(names), cutoff=10.0)
    assert all(f"{name}:-1" in str(caught.value) for name in names)


@pytest.fixture(scope="module")
def driven(described, truth):
    """For a robot whose efforts have the opposite sign only as to friction, at two joints."""
    names = described.joint_names[4:6]
    laws = {name: Friction(-3.0, -2.0) for name in names}
    links = tuple(
        replace(link, joint=replace(link.joint, friction=laws[link.joint.name]))
        if link.joint.name in laws
        else link
        for link in truth.links
    )
    log = recording(replace(truth, links=links), 20.0, 100.0, noise=0.02)
    return names, identify(SIX_AXIS, log, cutoff=10.0)


def test_friction_that_drives_is_fitted_and_said(driven):
    names, result = driven
    # with the opposite sign, the bodies' torques at joint5 would not fit at all
    assert names[0] not in {each.joint for each in result.doubts}
    assert not any(each.sure for each in result.doubts)
    assert result.errors.relative.max() < 0.1
    for name in result.joints:
        said = [
            each
            for each in result.warnings
            if each.startswith(f"{name}: the fitted friction accelerates")
        ]
        assert len(said) == (name in names)
        law = result.mechanism.joint(name).friction
        assert (law.viscous < 0) == (name in names)
        assert (next(law.faults(), None) is not None) == (name in names)


def test_efforts_that_fall_with_the_velocity_have_no_opposite_sign():
    """Coulomb friction has the right sign, so that the efforts' sign is right."""
    described = rd.load(SIX_AXIS)
    name = described.joint_names[5]
    links = tuple(
        replace(link, joint=replace(link.joint, friction=Friction(-4.0, 1.0)))
        if link.joint.name == name
        else link
        for link in changed(described, seed=1).links
    )
    log = recording(replace(described, links=links), 20.0, 100.0, noise=0.02)
    result = identify(SIX_AXIS, log, cutoff=10.0)
    assert result.doubts == ()
    (line,) = (each for each in result.warnings if each.startswith(name))
    assert "contain a component that decreases with velocity" in line
    assert "--effort-scale" not in line


@pytest.mark.parametrize(
    ("before", "after", "drives", "brakes", "is_so"),
    [
        ([0.5, 0.6], [0.1, 0.1], [-0.2, -0.3], [0.2, 0.3], True),
        ([0.5, 0.6], [0.1, 0.6], [-0.2, -0.3], [0.2, 0.3], True),
        ([0.5, 0.1], [0.1, 0.12], [-0.2, -0.3], [0.2, 0.3], True),  # one a little worse
        ([0.5, 0.1], [0.1, 0.14], [-0.2, -0.3], [0.2, 0.3], False),  # one is explained much worse
        ([0.5, 0.1], [0.49, 0.11], [-0.2, -0.3], [0.2, 0.3], False),  # worse in the mean
        ([0.5, 0.1], [0.1, 0.11], [0.2, 0.0], [0.0, -0.009], False),  # no friction shows it
        ([0.5, 0.95], [0.1, 0.92], [-0.2, -0.3], [0.2, 0.3], False),  # one is hardly explained
        ([0.1, 0.15], [0.1, 0.1], [-0.2, 0.3], [0.2, 0.3], False),  # one brakes as recorded
        ([0.5, 0.6], [0.1, 0.1], [-0.2, -0.3], [0.2, -0.3], False),  # one drives, negated
        ([0.1, 0.15], [0.1, 0.1], [-0.2, -0.009], [0.2, 0.3], False),  # hardly any friction
        ([0.1, 0.15], [0.1, 0.1], [-0.2, -0.3], [0.2, 0.009], False),
        ([0.5], [0.1], [-0.2], [0.2], False),  # no other joint to confirm it
        ([0.2, 0.21], [0.1, 0.1], [0.2, 0.0], [0.0, -0.009], True),  # much smaller errors
        ([0.2, 0.19], [0.1, 0.1], [0.2, 0.0], [0.0, -0.009], False),  # not quite
        ([0.5, 0.6], [0.1, 0.1], [0.2, 0.2], [0.2, -0.011], False),  # one drives, negated
    ],
)
def test_when_all_efforts_have_the_opposite_sign(before, after, drives, brakes, is_so):
    assert turned(*map(np.array, (before, after, drives, brakes))) is is_so


@pytest.mark.parametrize(
    ("times", "is_so"),
    [
        ([1.6, 1.6], True),
        ([1.4, 1.4], False),
        ([3.0, 0.99], False),  # not on every part
        ([3.0, 1.01], True),
        ([9.0], False),
        ([], False),
    ],
)
def test_efforts_are_wrong_for_sure_where_every_part_says_so(times, is_so):
    assert surely_worse(np.log(times)) is is_so


@pytest.mark.parametrize(
    ("missed", "score", "is_so"),
    [
        ([1.0, 1.0, 1.0], 4.0, True),
        ([1.0, 1.0, 2.0], 4.0, False),  # not on every part
        ([1.0, 1.0, 1.0], 5.0, False),  # not by enough
    ],
)
def test_friction_that_drives_must_explain_something_on_every_part(missed, score, is_so):
    other = _Scored(nothing(), np.zeros(0), np.array([2.0, 2.0, 2.0]), 15.0)
    mine = _Scored(nothing(), np.zeros(0), np.array(missed), score)
    assert mine.explains(other, 10.0) is is_so


@pytest.mark.parametrize(("times", "driving"), [(1.5, False), (2.0, True)])
def test_friction_that_drives_must_halve_the_error(times, driving):
    """Of noise 1, friction of k leaves √(1 + k²) where it is left out: half is left with √3."""
    arm = rd.load(ARM)
    log = recording(arm, 40.0, 50.0)
    (stream,) = log.streams
    level = np.sqrt((stream.effort**2).mean(axis=0))
    effort = stream.effort + 0.1 * level * np.random.default_rng(1).normal(size=(2000, 3))
    effort[:, 2] -= times * 0.1 * level[2] * np.sign(stream.velocity[:, 2])
    found = identify(arm, Recording("odd", (replace(stream, effort=effort),)), cutoff=25.0)
    assert found.fit.drives["c"].driving is driving


def test_friction_that_drives_is_not_loaded_again(driven, tmp_path):
    files = save(driven[1], tmp_path)
    with pytest.raises(DescriptionError, match="viscous friction"):
        rd.load(files["identified"])


def test_the_command_says_it_in_json_and_in_the_report(described, log, tmp_path, capsys):
    (stream,) = log.streams
    name = stream.names[2]
    table = np.hstack([stream.time[:, None], stream.position, stream.velocity, stream.effort])
    fields = ("position", "velocity", "effort")
    header = ["time", *(f"{each}/{field}" for field in fields for each in stream.names)]
    path = tmp_path / "log.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="")
    options = ["--out", str(tmp_path / "out"), "--json", "--cutoff", "10"]
    scale = ["--effort-scale", f"{name}:-1"]
    assert main(["identify", SIX_AXIS, str(path), *options, *scale]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(each["joint"], each["factor"]) for each in told["doubts"]] == [(name, -1.0)]
    assert told["doubts"][0]["error_with_factor"] < 0.1 < told["doubts"][0]["error"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"{name}: its efforts have the opposite sign" in page


@pytest.mark.parametrize("why", [OPPOSITE, SILENT])
@pytest.mark.parametrize("sure", [True, False])
def test_options_that_are_named_may_be_copied_to_a_shell(why, sure):
    doubt = Doubt("elbow; rm -rf x", -1.0, why, 0.9, 0.1, sure)
    for words in (doubt.words(), nothing_left([doubt], {})):
        assert "--effort-scale 'elbow; rm -rf x:" in words


@pytest.mark.parametrize(
    ("before", "loose", "is_so"), [(0.147, False, False), (0.5, False, True), (0.5, True, False)]
)
def test_efforts_that_are_mostly_explained_are_left_out_only_if_that_helps_much(
    before, loose, is_so
):
    gain = np.log([2.4, 1.6, 1.7, 2.1, 2.2, 1.7])
    doubt = Doubt("a", 57.3, "are in another unit", before, 0.026, loose=loose)
    assert surely_worse(gain, required(doubt)) is is_so


def test_efforts_that_any_large_factor_explains_as_well_are_fitted(described, truth, log):
    """As of the last joint of a KUKA LWR, most of whose efforts are not its torque: here, they are
    those of another tool, about which the other joints say nothing."""
    tool = truth.links[-1]
    body = replace(tool.inertial, mass=6 * tool.inertial.mass, center_of_mass=(0.03, -0.05, 0.0))
    odd = replace(truth, links=(*truth.links[:-1], replace(tool, inertial=body)))
    (stream,), (other,) = log.streams, recording(odd, 20.0, 100.0, noise=0.1).streams
    effort = np.column_stack([stream.effort[:, :-1], other.effort[:, -1]])
    result = identify(described, Recording("odd", (replace(stream, effort=effort),)), cutoff=10.0)
    (found,) = result.doubts
    assert (found.joint, found.sure) == (described.joint_names[-1], False)
    assert result.errors.relative[-1] < 0.35
    assert result.errors.relative[:-1].max() < 0.02
