# SPDX-License-Identifier: Apache-2.0
"""Robots whose parameters are known, identified from what their joints would report."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from recorded import changed, left_to_gain, miss, motion, recording
from scipy.linalg import eigh
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.errors import InputError, RecordingError, RobotDynamicsError
from robot_dynamics.formulations.terms import RIGID
from robot_dynamics.identification import Identification, Recording, Stream, identify
from robot_dynamics.identification.bodies import is_possible, numbers
from robot_dynamics.identification.fit import about_described_bodies, fit, with_noise
from robot_dynamics.identification.implausible import with_efforts
from robot_dynamics.identification.low_pass import SATURATED
from robot_dynamics.identification.normal_equations import approached, reduce
from robot_dynamics.identification.preparation import differences, prepare
from robot_dynamics.identification.quality import _units
from robot_dynamics.identification.replay import replay
from robot_dynamics.identification.result_files import save, summary
from robot_dynamics.identification.solve import FAR_HEAVIER, minimise
from robot_dynamics.identification.unknowns import Unknowns
from robot_dynamics.mechanism import Friction, Inertial, Mechanism
from robot_dynamics.mechanism.dynamic_parameters import BODY, numbers_of
from robot_dynamics.mechanism.transform import with_parts

ARM = """<robot name="arm"><link name="base"/>
  <link name="upper"><inertial><origin xyz="0.02 0.01 0.15"/><mass value="4"/>
    <inertia ixx="0.05" iyy="0.045" izz="0.02" ixy="0.001" ixz="0.002" iyz="0.003"/></inertial>
    </link>
  <link name="fore"><inertial><origin xyz="0.01 -0.02 0.12"/><mass value="2.5"/>
    <inertia ixx="0.03" iyy="0.028" izz="0.012" ixy="0.001" ixz="0.001" iyz="0.001"/></inertial>
    </link>
  <link name="hand"><inertial><origin xyz="0.03 0.02 0.06"/><mass value="1.2"/>
    <inertia ixx="0.01" iyy="0.009" izz="0.006" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"><inertial><mass value="0.2"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="99" velocity="9"/></joint>
  <joint name="b" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.3"/><limit lower="-3" upper="3" effort="99" velocity="9"/></joint>
  <joint name="c" type="revolute"><parent link="fore"/><child link="hand"/><axis xyz="1 0 0"/>
    <origin xyz="0 0.05 0.25"/><limit lower="-3" upper="3" effort="99" velocity="9"/></joint>
  <joint name="flange" type="fixed"><parent link="hand"/><child link="tool"/>
    <origin xyz="0 0 0.1" rpy="0.2 0 0"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def arm() -> Mechanism:
    return rd.load(ARM)


@pytest.fixture(scope="module")
def truth(arm) -> Mechanism:
    return changed(arm, seed=3)


@pytest.fixture(scope="module")
def noisy(truth) -> Recording:
    return recording(truth, 20.0, 200.0, noise=0.02)


@pytest.fixture(scope="module")
def of_noisy(arm, noisy) -> Identification:
    return identify(arm, noisy, cutoff=10.0)


def bodies(mechanism: Mechanism) -> bool:
    return all(is_possible(numbers_of(link.inertial)) for link in mechanism.moving)


def test_without_noise_the_torques_are_those_of_the_robot(arm, truth):
    assert miss(truth, arm) > 0.1
    result = identify(arm, recording(truth, 20.0, 500.0))
    assert miss(truth, result.mechanism) < 1e-6
    assert (result.errors.relative < 1e-5).all()
    assert bodies(result.mechanism)
    # data and description differ by more than double precision resolves: no variance is lost
    assert (np.diag(result.covariance) > 0).all()


def heavier(mechanism: Mechanism, factor: float, *names: str) -> Mechanism:
    """With the bodies of these links, or of all, multiplied by this factor."""
    links = tuple(
        replace(link, inertial=replace(old, mass=factor * old.mass, inertia=factor * old.inertia))
        if not names or link.name in names
        else link
        for link in mechanism.links
        for old in [link.inertial]
    )
    return replace(mechanism, links=links)


@pytest.mark.parametrize(
    ("names", "factor"),
    [
        *(((), factor) for factor in (1e-9, 1e-4, 1e-3, 0.02, 0.2, 50.0)),
        *((("fore",), factor) for factor in (1e-4, 1e-3, 0.02, 0.2, 50.0)),
        *((("hand",), factor) for factor in (1e-4, 1e-3, 0.02, 0.2, 50.0)),
    ],
)
def test_placeholder_masses_do_not_outweigh_the_recording(
    arm, truth, noisy, of_noisy, factor, names
):
    right = of_noisy
    found = identify(heavier(arm, factor, *names), noisy, cutoff=10.0)
    assert miss(truth, found.mechanism) < max(3 * miss(truth, right.mechanism), 0.01)
    assert (found.errors.relative < 1.3 * right.errors.relative).all()
    assert bodies(found.mechanism)
    assert found.kept == "nothing"
    assert not [each for each in found.doubts if each.sure]
    if factor < 0.1 and not names:  # masses off by one common factor
        for one, other in zip(right.mechanism.moving, found.mechanism.moving, strict=True):
            assert 0.5 < other.inertial.mass / one.inertial.mass < 2.0


def test_bodies_are_kept_as_described_however_light(arm, truth):
    unknowns = Unknowns.of(heavier(arm, 0.05, "fore"))
    described = unknowns.prior
    prepared = prepare(recording(truth, 20.0, 200.0, noise=0.02), arm.joint_names, 10.0)
    found = fit(unknowns, reduce(unknowns, prepared))
    assert not np.allclose(found.prior.bodies, described.bodies)  # the prior is stretched
    about = about_described_bodies(found)
    assert about is not None
    np.testing.assert_array_equal(about.x[: len(described.mean)], described.mean)


def test_a_payload_that_is_kept_is_the_described_link(arm):
    (stream,) = recording(arm, 20.0, 200.0, noise=0.02).streams
    log = Recording("shifted", (replace(stream, effort=stream.effort + 1.0),))
    unknowns = Unknowns.of(arm, "tool")
    found = fit(unknowns, reduce(unknowns, prepare(log, arm.joint_names, 10.0)))
    about = about_described_bodies(found)
    assert about is not None
    np.testing.assert_array_equal(about.body("tool"), numbers_of(arm.link("tool").inertial))
    assert [*about.x[10:]] == pytest.approx([1.0, 1.0, 1.0], abs=0.02)


def test_bodies_that_the_recording_leaves_open_stay_as_described(arm, truth):
    # only one joint moves, slowly: this says almost nothing about the bodies
    (clean,) = recording(truth, 20.0, 100.0, noise=0.05).streams
    shape = np.zeros(3)
    shape[2] = 0.3
    q, qd = shape * np.sin(clean.time)[:, None], shape * np.cos(clean.time)[:, None]
    noise = np.random.default_rng(4).normal(size=q.shape)
    effort = InverseDynamics(truth)(q, qd, -q)
    effort += 0.05 * np.sqrt((effort**2).mean(axis=0)) * noise
    log = Recording("slow", (replace(clean, position=q, velocity=qd, effort=effort),))
    found = identify(arm, log, cutoff=5.0)
    for before, after in zip(arm.moving, found.mechanism.moving, strict=True):
        assert 0.2 < after.inertial.mass / before.inertial.mass < 5.0


def test_the_price_of_a_far_heavier_body_grows_with_the_logarithm_only(arm):
    prior = Unknowns.of(arm).prior
    bodies = prior.bodies
    # one body is 100 times as heavy in one direction and 3 times in the others
    L = np.linalg.cholesky(bodies[1])
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))[0]
    far = L @ turn @ np.diag([100.0, 3.0, 3.0, 3.0]) @ turn.T @ L.T
    x = np.concatenate([numbers(bodies[0]), numbers(far), numbers(bodies[2])])
    near = prior.stretched(x)
    for k in (0, 2):
        np.testing.assert_allclose(near.bodies[k], bodies[k], rtol=1e-12)
    ratios = eigh(near.bodies[1], bodies[1], eigvals_only=True)
    np.testing.assert_allclose(ratios, [1, 1, 1, 100.0 / FAR_HEAVIER], rtol=1e-9)
    # and nothing is stretched where no body is far heavier
    assert prior.stretched(FAR_HEAVIER * 0.99 * prior.mean) is prior


@pytest.mark.parametrize(
    ("times", "known", "scaled"),
    [
        (0.01, 1e8, 0.01),
        (0.16, 1e8, 0.16),
        (0.17, 1e8, 1),
        (-50, 1e8, 1),
        (-0.01, 1e8, 1),
        (5.9, 1e8, 1),
        (6.1, 1e8, 6.1),
        (1e9, 1e8, 1e9),
        # the deviation of k is 10: six plus five deviations are 56
        (50, 0.01, 1),
        (60, 0.01, 60),
        (1e9, 0, 1),
        # the deviation of k is 0.01: five of them are 0.05, and a sixth less five of them is 0.117
        (0.04, 1e4, 1),
        (0.06, 1e4, 0.06),
        (0.11, 1e4, 0.11),
        (0.12, 1e4, 1),
    ],
)
def test_bodies_whose_torques_are_all_too_small_or_too_large_are_scaled(arm, times, known, scaled):
    prior = Unknowns.of(arm).prior
    A = np.random.default_rng(6).normal(size=(len(prior.mean),) * 2)
    G = known * A @ A.T / (prior.mean @ A @ A.T @ prior.mean)
    found = prior.scaled(G, times * G @ prior.mean)
    np.testing.assert_allclose(found.mean, scaled * prior.mean, rtol=1e-9)


def test_without_motion_the_bodies_are_the_described_ones(arm):
    prior = Unknowns.of(arm).prior
    size = len(prior.mean) + 2
    noise = np.random.default_rng(7).normal(size=(size, 3))
    # three samples far below the noise
    x, near = approached(1e-20 * noise @ noise.T, 1e-10 * noise @ [1.0, -2.0, 1.0], prior)
    np.testing.assert_allclose(x[:-2], prior.mean, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(near.bodies, prior.bodies, rtol=1e-9)


def test_units_of_the_description_are_its_standard_deviations(arm, truth):
    unknowns = Unknowns.of(arm)
    prior = unknowns.prior
    prepared = prepare(recording(truth, 12.0, 100.0, noise=0.02), arm.joint_names, 10.0)
    found = fit(unknowns, reduce(unknowns, prepared))
    size = len(prior.mean)
    S = _units(found)[:size, :size]
    np.testing.assert_allclose(
        S.T @ found.prior.curvature(1.0)[:size, :size] @ S, np.eye(size), atol=1e-9
    )


def test_of_fits_that_repeat_with_their_noise_the_one_with_the_smallest_residuals_is_taken(
    arm, truth
):
    unknowns = Unknowns.of(arm)
    prepared = prepare(recording(truth, 12.0, 100.0, noise=0.02), arm.joint_names, 10.0)
    normal = reduce(unknowns, prepared)
    right = fit(unknowns, normal)
    near, far = (replace(right, x=right.x * by) for by in (1.1, 1.5))
    for order in ((far, near, far, near, far), (near, far, near, far, near)):
        solved = iter(order)
        found = with_noise(unknowns, normal, lambda _, solved=solved: next(solved))
        np.testing.assert_array_equal(found.x, near.x)
        assert len([*solved]) == 2  # it ends when the first one repeats


def test_friction_of_a_joint_that_stands_still_is_not_extrapolated(arm, truth):
    (clean,) = recording(truth, 20.0, 200.0).streams
    # held by its brake, it trembles as the others move
    rng = np.random.default_rng(1)
    shaken = 1e-4 * np.sin(2 * np.pi * 3 * clean.time)
    position, velocity, effort = (
        np.array(x) for x in (clean.position, clean.velocity, clean.effort)
    )
    position[:, 0], velocity[:, 0] = shaken, np.gradient(shaken, clean.time)
    qdd = np.gradient(velocity, clean.time, axis=0)
    effort = InverseDynamics(truth)(position, velocity, qdd)
    effort += 0.02 * np.sqrt((effort**2).mean(axis=0)) * rng.normal(size=effort.shape)
    still = replace(clean, position=position, velocity=velocity, effort=effort)
    result = identify(arm, Recording("still", (still,)))
    first, *others = result.joints
    law = result.mechanism.joint(first).friction
    assert (law.viscous, law.coulomb, law.stribeck_torque) == (0.0, 0.0, 0.0)
    assert not result.fit.drives[first].rotor
    for name in others:
        found, true = (robot.joint(name).friction for robot in (result.mechanism, truth))
        assert found.viscous == pytest.approx(true.viscous, rel=0.3)
    # when it moves, its torque is no larger than that of a rigid body
    model, exact = (InverseDynamics(each) for each in (result.mechanism, truth))
    states = rng.uniform(-1, 1, (3, 200, len(result.joints)))
    assert np.abs(model(*states)[:, 0]).max() < 2 * np.abs(exact(*states)[:, 0]).max()


SPRINGS = {
    "a": Friction(1.0, 0.5, 0.4, stiffness=6.0),
    "c": Friction(0.5, 0.3, -0.6, stiffness=2.0),
}


def sprung(mechanism, sign=1.0):
    """The robot with springs at joints a and c; with a negative sign, they push."""

    def friction(of):
        spring = SPRINGS.get(of.name)
        return replace(spring, stiffness=sign * spring.stiffness) if spring else of.friction

    links = [
        replace(link, joint=replace(link.joint, friction=friction(link.joint)))
        for link in mechanism.links
    ]
    return replace(mechanism, links=tuple(links))


def test_springs_are_found_where_there_are_some_and_written_with_the_model(truth, tmp_path):
    real = sprung(truth)
    result = identify(ARM, recording(real, 20.0, 200.0, noise=0.02))
    for joint in result.joints:
        found, right = (each.joint(joint).friction for each in (result.mechanism, real))
        assert found.stiffness == pytest.approx(right.stiffness, rel=0.1)
    assert miss(real, result.mechanism) < 0.005
    assert not result.doubts
    assert not result.warnings
    save(result, tmp_path)
    saved = rd.load(tmp_path / "identified.yaml")
    assert saved.joint("a").friction == result.mechanism.joint("a").friction
    assert miss(result.mechanism, saved) < 1e-12


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.02), (1, 0.0), (2, 0.02), (26, 0.0), (78, 0.0)])
def test_springs_of_any_arm_are_found_and_nothing_is_doubted(arm, seed, noise):
    """For random bodies: a strong spring is not taken for another unit or a wrong axis, and no
    spring is found where there is none."""
    real = changed(arm, seed=seed)
    for robot, most in ((real, 0.02), (sprung(real), 0.02), (sprung(real, -1.0), 0.02)):
        result = identify(arm, recording(robot, 12.0, 100.0, noise=noise, seed=seed))
        for joint in result.joints:
            found, right = (each.joint(joint).friction for each in (result.mechanism, robot))
            assert found.stiffness == pytest.approx(right.stiffness, rel=0.2)
        assert miss(robot, result.mechanism) < most
        assert not result.doubts
        assert not result.warnings


def test_the_efforts_of_strong_springs_are_in_no_other_unit(arm):
    real = sprung(changed(arm, seed=0), 40.0)
    result = identify(arm, recording(real, 12.0, 100.0, noise=0.02))
    assert not result.doubts
    assert miss(real, result.mechanism) < 0.02


def test_springs_are_found_beside_placeholder_masses(arm, truth):
    real = sprung(truth)
    result = identify(heavier(arm, 1e-3), recording(real, 20.0, 200.0, noise=0.02))
    for joint in result.joints:
        found, right = (each.joint(joint).friction for each in (result.mechanism, real))
        assert found.stiffness == pytest.approx(right.stiffness, rel=0.2)
    assert miss(real, result.mechanism) < 0.01


@pytest.mark.parametrize("described", [0.0, 1.0])
def test_a_joint_that_turns_without_end_has_a_spring_only_if_it_is_described(truth, described):
    mechanism = rd.load(ARM.replace('"a" type="revolute"', '"a" type="continuous"'))
    dynamics = InverseDynamics(mechanism)
    dynamics.set_friction("a", 0.0, 0.0, stiffness=described)
    log = recording(sprung(truth), 20.0, 200.0, noise=0.02)
    law, other = (
        identify(dynamics.mechanism, log).mechanism.joint(name).friction for name in ("a", "c")
    )
    assert law.stiffness == pytest.approx(6.0 if described else 0.0, rel=0.1)
    assert other.stiffness > 0.0


def turning(robot: Mechanism, distance: float, seed: int, noise: float = 0.0) -> Recording:
    """What a robot reports whose dry friction remembers its path, as Dahl's law has it."""
    names, every = robot.joint_names, 20
    time, q, qd, qdd = motion(len(names), 20.0, 200.0 * every, seed, 1.0)
    laws = [robot.joint(name).friction for name in names]
    smooth = [
        replace(link, joint=replace(link.joint, friction=replace(link.joint.friction, coulomb=0.0)))
        for link in robot.links
    ]
    z = np.zeros_like(q)
    for k, step in enumerate(np.diff(q, axis=0), 1):
        ahead = np.sign(step)
        z[k] = ahead + (z[k - 1] - ahead) * np.exp(-np.abs(step) / distance)
    told = slice(None, None, every)
    tau = InverseDynamics(replace(robot, links=tuple(smooth)))(q[told], qd[told], qdd[told])
    tau = tau + z[told] * [law.coulomb for law in laws]
    rng = np.random.default_rng(seed + 1)
    tau = tau + noise * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return Recording(f"turning {seed}", (Stream(names, time[told], q[told], qd[told], tau),))


@pytest.mark.parametrize("distance", [4e-4, 3e-3])
def test_friction_that_remembers_its_path_is_foretold_beyond_the_recording(arm, distance):
    robot = changed(arm, seed=3, smooth=False)
    result = identify(arm, turning(robot, distance, 0, noise=0.01))
    found = result.mechanism
    laws = [found.joint(name).friction for name in arm.joint_names]
    for law, name in zip(laws, arm.joint_names, strict=True):
        assert 1 / 3.2 < law.presliding / distance < 3.2
        assert law.coulomb == pytest.approx(robot.joint(name).friction.coulomb, rel=0.1)
    stream = turning(robot, distance, 7).streams[0]
    developed = [
        replace(x, joint=replace(x.joint, friction=replace(x.joint.friction, presliding=0.0)))
        for x in found.links
    ]

    def missed(mechanism: Mechanism) -> np.ndarray:
        states = stream.position, stream.velocity, differences(stream.velocity, 0.005)
        return np.sqrt(((InverseDynamics(mechanism)(*states) - stream.effort) ** 2).mean(axis=0))

    assert (missed(found) < 0.6 * missed(replace(found, links=tuple(developed)))).all()


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("smooth", [False, True])
def test_friction_without_presliding_gets_none(arm, smooth, noise):
    robot = changed(arm, seed=4, smooth=smooth)
    found = identify(arm, recording(robot, 20.0, 200.0, noise=noise)).mechanism
    assert not any(found.joint(name).friction.presliding for name in arm.joint_names)


def one_joint_moves(mechanism, joint: int, noise: float, stiction: float, seed: int) -> Recording:
    """A motion of one joint by 1 rad in 3 s, from rest to rest; static friction adds up to ±
    `stiction` to the torques at rest. Noise and stiction are in N·m."""
    rng = np.random.default_rng(seed)
    time = np.arange(800) / 200.0
    s = np.clip((time - 0.5) / 3.0, 0.0, 1.0)
    # minimum jerk
    path = s**3 * (10 - 15 * s + 6 * s**2), s**2 * (1 - s) ** 2 * 10, s * (1 - s) * (1 - 2 * s) * 20
    q, qd, qdd = (np.outer(each, np.eye(3)[joint]) for each in (path[0], path[1], path[2] / 3))
    tau = InverseDynamics(mechanism)(q, qd, qdd)
    tau = tau + (qd == 0) * stiction * rng.uniform(-1, 1, 3) + noise * rng.normal(size=tau.shape)
    return Recording(f"move {joint}", (Stream(mechanism.joint_names, time, q, qd, tau),))


@pytest.mark.parametrize(("noise", "stiction"), [(0.1, 0.0), (0.1, 1.5), (0.01, 1.5), (0.0, 0.0)])
def test_moves_of_single_joints_spoil_no_good_recording(arm, truth, noise, stiction):
    """They have few samples for many parameters, and static friction holds the joints that stand
    still in them."""
    good = recording(truth, 6.0, 200.0, seed=1)
    (stream,) = good.streams
    effort = stream.effort + noise * np.random.default_rng(5).normal(size=stream.effort.shape)
    good = Recording("good", (replace(stream, effort=effort),))
    moves = [one_joint_moves(truth, j, noise, stiction, seed=j) for j in range(3)]
    alone, more = (miss(truth, identify(arm, logs).mechanism) for logs in (good, [*moves, good]))
    assert more < max(1.5 * alone, 0.002 if noise else 1e-6)


def test_static_friction_of_joints_that_rest_while_others_move_is_no_torque_of_theirs(arm, truth):
    """The joints move in turn, as from point to point."""
    time, q, qd, qdd = motion(3, 24.0, 100.0)
    pace = np.column_stack([np.sin(np.pi * (time / 4 - j / 3)) ** 2 for j in range(3)])
    rests = pace < 0.5
    # q(s) with a path s that stops: q̇ = q' ṡ, q̈ = q'' ṡ² + q' s̈
    rate = np.where(rests, 0.0, (2 * pace - 1) ** 2)
    s = np.cumsum(rate, axis=0) / 100.0
    q = np.column_stack([np.interp(s[:, j], time, q[:, j]) for j in range(3)])
    qd, qdd = (np.gradient(x, 0.01, axis=0) for x in (q, np.gradient(q, 0.01, axis=0)))
    tau = InverseDynamics(truth)(q, qd, qdd)
    rng = np.random.default_rng(3)
    held = np.repeat(rng.uniform(-2, 2, (24, 3)), 100, axis=0)
    tau += np.where(np.abs(qd) < 1e-9, held, 0.0) + 0.02 * rng.normal(size=tau.shape)
    log = Recording("in turns", (Stream(arm.joint_names, time, q, qd, tau),))
    assert miss(truth, identify(arm, log, cutoff=10.0).mechanism) < 0.05


def test_recordings_are_drawn_one_after_the_other(arm, truth):
    from robot_dynamics.app.identification_report import stretches

    logs = [recording(truth, 6.0, 50.0, seed=seed, noise=0.02) for seed in (1, 2)]
    result = identify(arm, logs[0], validate=logs[1], cutoff=10.0)
    first, other = stretches(result)
    assert (first.seen, other.seen) == (True, False)
    assert other.time[0] == pytest.approx(first.time[-1] + np.diff(first.time).mean())
    assert np.ptp(other.time) == pytest.approx(np.ptp(first.time), abs=0.1)
    rest = np.where(other.usable, other.series["residual"], np.nan)
    drawn = np.sqrt(np.nanmean(rest**2, axis=0))
    assert drawn == pytest.approx(result.errors.identified, rel=1e-3)  # filtered like the efforts
    for each, trace in zip((first, other), result.traces, strict=True):
        torque, deviation = result.predict(*(getattr(trace.samples, x) for x in ("q", "qd", "qdd")))
        band = [each.series[end] for end in ("low", "high")]
        np.testing.assert_allclose(band, [torque - 2 * deviation, torque + 2 * deviation])
    # the held-out end of a recording is where it was
    (shown,) = {each.samples.time[-1] for each in identify(arm, logs[0]).traces if not each.seen}
    assert stretches(identify(arm, logs[0]))[-1].time[-1] == shown


def test_the_report_draws_friction_over_velocity_without_the_spring(arm, truth):
    from robot_dynamics.app.identification_report import _Joint, stretches

    result = identify(arm, recording(sprung(truth), 20.0, 200.0, noise=0.02))
    shown = stretches(result)
    for j, (name, noise) in enumerate(zip(result.joints, result.errors.identified, strict=True)):
        law = result.mechanism.joint(name).friction
        dots, line = _Joint(result, shown, j).friction().lines
        for each in (dots, line):
            off = each.y - [law.torque(v, float(np.sign(v))) for v in each.x.tolist()]
            assert np.median(np.abs(off)) < noise  # not at changes of sign, which are filtered


def test_a_spring_that_only_impossible_bodies_would_replace_is_found(arm):
    """With unconstrained bodies a spring is superfluous where the gravity torque of a negative mass
    is much like it."""
    reach = 0.4
    real = changed(sprung(arm), seed=2, by=0.1)
    real = sprung(real)
    result = identify(arm, recording(real, 20.0, 200.0, noise=0.02, reach=reach))
    assert bodies(result.mechanism)
    assert result.mechanism.joint("c").friction.stiffness == pytest.approx(2.0, rel=0.3)
    assert (result.errors.relative < 0.05).all()


def swung(robot: Mechanism, seed: int, free: bool) -> Recording:
    """All joints follow a motion, or the last one swings freely, with a torque that no parameter
    explains, such as cogging."""
    dynamics, rate, rng = rd.InverseDynamics(robot), 200.0, np.random.default_rng(seed)
    time = np.arange(2000) / rate
    q, qd, rows = rng.uniform(-0.5, 0.5, 3), np.zeros(3), []
    size, w = rng.uniform(0.2, 0.6, (3, 3)), 2 * np.pi * rng.uniform(0.2, 1.2, (3, 3))
    phase = rng.uniform(0, 6, (3, 3))
    stiff, damped = np.array([[60.0, 60.0, 10.0], [8.0, 8.0, 1.5]]) * [1.0, 1.0, 1.0 - free]
    for t in time:
        target = (size * np.sin(w * t + phase)).sum(axis=1)
        target_rates = (size * w * np.cos(w * t + phase)).sum(axis=1)
        tau = stiff * (target - q) + damped * (target_rates - qd)
        rows.append((q, qd, tau + rng.normal(0, 0.01, 3)))
        for _ in range(4):
            qd = qd + dynamics.forward(q, qd, tau - 0.6 * np.sin(5 * q)) / (4 * rate)
            q = q + qd / (4 * rate)
    return Recording(f"swung {seed}", (Stream(robot.joint_names, time, *np.swapaxes(rows, 0, 1)),))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_joint_that_swings_freely_in_a_recording_does_not_spoil_the_others(arm, seed):
    """Without bodies the joint needs no torque, and its own fit explains it to the last digit."""
    real = changed(arm, seed=seed)
    links = tuple(
        replace(link, joint=replace(link.joint, friction=Friction(0.05, 0.1)))
        if link.joint.name == "c"
        else link
        for link in real.links
    )
    real = replace(real, links=links, rotors=())
    driven = [swung(real, 10 * seed + k, free=False) for k in range(3)]
    free = [swung(real, 10 * seed + k, free=True) for k in (3, 4)]
    judge = swung(real, 10 * seed + 9, free=False)
    alone = identify(arm, driven, validate=judge, cutoff=20.0).errors.relative
    with_them = identify(arm, [*driven, *free], validate=judge, cutoff=20.0).errors.relative
    assert (with_them < 1.2 * alone).all()


def test_a_torque_that_no_parameter_explains_widens_its_joints_deviations_alone(arm, truth):
    (clean,) = recording(truth, 20.0, 200.0, noise=0.02).streams
    effort = np.array(clean.effort)
    effort[:, 1] += 0.2 * effort[:, 1].std() * np.sin(2 * np.pi * 0.9 * clean.time + 1.0)
    prepared = prepare(Recording("odd", (replace(clean, effort=effort),)), arm.joint_names, 20.0)
    unknowns = Unknowns.of(arm)
    normal = reduce(unknowns, prepared)
    # its samples are correlated, but in the fit they count like those of any other joint
    assert normal.independent[1] < 0.5 * normal.independent[[0, 2]].min()
    assert np.ptp(normal.count) < 0.1 * normal.count.max()
    found = fit(unknowns, normal)
    flat = fit(unknowns, replace(normal, independent=normal.count))
    np.testing.assert_array_equal(found.x, flat.x)
    deviations = [np.sqrt(np.diag(each.covariance)) for each in (found, flat)]
    ratio = dict(zip(found.names, deviations[0] / deviations[1], strict=True))
    assert ratio["b.coulomb"] > 1.3
    assert ratio["a.coulomb"] < 1.0


@pytest.mark.parametrize("fault", ["quantised", "one bad stretch", "one noisy joint", "2 kHz"])
def test_the_filter_is_chosen_by_torques(arm, truth, fault):
    """Noise in positions, wherever it occurs, lowers the cut-off, and never turns the filter
    off."""
    (clean,) = recording(truth, 20.0, 2000.0 if fault == "2 kHz" else 200.0, noise=0.03).streams
    rng = np.random.default_rng(5)
    position, velocity = clean.position.copy(), clean.velocity.copy()
    if fault == "quantised":
        position, velocity = np.round(position, 3), np.full_like(velocity, np.nan)
    elif fault == "2 kHz":
        position = position + 2e-5 * rng.normal(size=position.shape)
        velocity = np.full_like(velocity, np.nan)
    elif fault == "one noisy joint":
        position[:, -1] += 1e-4 * rng.normal(size=len(position))
        velocity[:, -1] += 1e-2 * rng.normal(size=len(position))
    else:
        bad = slice(1200, 1380)
        position[bad] += 0.003 * rng.normal(size=position[bad].shape)
        velocity[bad] += 0.3 * rng.normal(size=position[bad].shape)
    stream = replace(clean, position=position, velocity=velocity)
    result = identify(arm, Recording("noisy", (stream,)))
    assert miss(truth, result.mechanism) < 0.03
    assert result.cutoffs["noisy"] is not None
    assert result.choices["noisy"].errors.shape[1] == len(result.joints)


@pytest.mark.parametrize(("noise", "effort"), [(1e-3, 0.02), (1e-5, 1.5)])
def test_a_filter_that_spoils_the_fit_is_blamed_and_not_the_robot(arm, truth, noise, effort):
    """Noise in positions or efforts, with a filter that lets all of it through."""
    (stream,) = recording(truth, 20.0, 500.0, noise=effort).streams
    position = stream.position + noise * np.random.default_rng(5).normal(size=(10000, 3))
    noisy = replace(stream, position=position, velocity=np.full_like(position, np.nan))
    words = identify(arm, Recording("noisy", (noisy,)), cutoff=150.0).warnings
    assert any(
        "a: the best model leaves" in each and "filter causes this error, not the robot" in each
        for each in words
    )
    assert not any("are its efforts torques" in each for each in words)
    assert all("leave out --cutoff" in each for each in words if "filter causes" in each)


def test_a_filter_is_not_blamed_for_much_where_it_spoils_little(arm, truth):
    """The filter costs a few per cent on the day of the fit; on another day, efforts had the
    opposite sign."""
    (stream,) = recording(truth, 20.0, 500.0, noise=1e-3).streams
    position = stream.position + 1e-5 * np.random.default_rng(5).normal(size=(10000, 3))
    today = Recording(
        "day", (replace(stream, position=position, velocity=np.full_like(position, np.nan)),)
    )

    def judged_with(signs):
        other = Recording("other", (replace(stream, effort=stream.effort * signs),))
        return identify(arm, today, validate=[other], cutoff=100.0).warnings

    words = judged_with([-1, 1, 1])
    assert any(each.startswith("a: ") and "unexplained" in each for each in words), words
    assert not any("filter causes" in each for each in words)
    with pytest.raises(RecordingError, match=r"held-out motion do not match .* another sign"):
        judged_with([-1, -1, -1])


def test_a_filter_is_not_blamed_for_one_part_of_the_motion(arm, truth):
    """While a tool chatters against the robot, less of the torque is unexplained if filtered."""
    (stream,) = recording(truth, 20.0, 200.0, noise=1e-3).streams
    effort = stream.effort.copy()
    shaken = slice(2000, 2600)
    effort[shaken, 0] += 20 * effort[:, 0].std() * np.sin(2 * np.pi * 40 * stream.time[shaken])
    today = Recording("day", (replace(stream, effort=effort),))
    other = Recording("other", (replace(stream, effort=stream.effort * [3, 1, 1]),))
    words = identify(arm, today, validate=[other], cutoff=60.0).warnings
    assert any(each.startswith("a: ") and "unexplained" in each for each in words), words
    assert not any("filter causes" in each for each in words)


def test_where_no_filter_helps_none_is_blamed(arm, truth):
    (stream,) = recording(truth, 20.0, 500.0, noise=0.02).streams
    effort = stream.effort.copy()
    effort[:, 2] = 3 * motion(3, 20.0, 500.0, seed=7)[1][:, 0]
    words = identify(arm, Recording("odd", (replace(stream, effort=effort),)), cutoff=10.0).warnings
    assert any(each.startswith("c: the model leaves") for each in words)
    assert not any("filter causes" in each for each in words)


def test_a_filter_that_leaves_nothing_of_the_robot_is_the_one_clear_line(arm, truth):
    (stream,) = recording(truth, 20.0, 500.0, noise=0.02).streams
    position = stream.position + 0.1 * np.random.default_rng(5).normal(size=(10000, 3))
    noisy = replace(stream, position=position, velocity=np.full_like(position, np.nan))
    with pytest.raises(RecordingError, match="the filter causes this error, not the robot"):
        identify(arm, Recording("noisy", (noisy,)), cutoff=180.0)


def test_one_absurd_value_is_left_out(arm, truth):
    (stream,) = recording(truth, 20.0, 100.0, noise=0.02).streams
    position = stream.position.copy()
    position[700, 1] = 1e6
    result = identify(arm, Recording("odd", (replace(stream, position=position),)))
    assert miss(truth, result.mechanism) < 0.05
    told = (
        "dropped: 1 (positions or velocities above 1e5, efforts above 1e9), such as "
        f"position 1e+06 of {stream.names[1]} at {stream.time[700]:.3f} s"
    )
    assert any(told in note for note in result.notes)


def test_absurd_numbers_throughout_are_one_clear_line(arm, truth):
    (stream,) = recording(truth, 10.0, 100.0).streams
    huge = replace(stream, position=stream.position * 1e300)
    with pytest.raises(RecordingError, match="no position of"):
        identify(arm, Recording("huge", (huge,)))


def test_names_from_outside_are_not_the_same_picture():
    from robot_dynamics.app.identification_report import file_names

    names = file_names(["a/b", "a:b", "A_b", "a_b_2"])
    assert len({name.lower() for name in names}) == 4


def test_standard_deviations_cover(arm):
    """For the combinations of parameters that the data determine: no prior affects these, and they
    are independent of each other."""
    real = changed(arm, seed=5, by=0.1)
    truth = InverseDynamics(real)
    values = dict(zip(truth.parameter_names, truth.parameters, strict=True))
    unknowns = Unknowns.of(arm)
    off = []
    for seed in range(20):
        (stream,) = recording(real, 8.0, 100.0, seed=seed, noise=0.05).streams
        seen = prepare(Recording("noisy", (stream,)), arm.joint_names, 20.0)
        found = fit(unknowns, reduce(unknowns, seen))
        right = [values.get(name, 0.0) for name in found.names]
        # I v = share H v, vᵀ H v = 1: the sums vᵀ H x have the covariance 1
        share, V = eigh(found.information, found.curvature)
        off += (V.T @ found.curvature @ (found.x - right))[share > 0.9].tolist()
    off = np.abs(off)
    assert len(off) > 250
    assert (off < 2).mean() > 0.93
    assert (off < 3).mean() > 0.99
    assert 0.9 < np.sqrt((off**2).mean()) < 1.1


def test_standard_deviations_cover_after_a_short_recording(arm):
    """A fit with as many parameters as three seconds can fill leaves residuals below the noise."""
    real = replace(changed(arm, seed=5, by=0.1, smooth=False), rotors=())
    dynamics = InverseDynamics(real)
    right = dict(zip(dynamics.parameter_names, dynamics.parameters, strict=True))
    off: list[float] = []
    for seed in (2, 3, 5):
        (stream,) = recording(real, 3.0, 100.0, seed=seed, noise=0.02).streams
        rng = np.random.default_rng(seed)
        q, qd = (
            values + noise * rng.normal(size=values.shape)
            for values, noise in ((stream.position, 1e-5), (stream.velocity, 1e-3))
        )
        found = identify(arm, Recording("short", (replace(stream, position=q, velocity=qd),)))
        pairs = zip(found.parameters.items(), deviations(found).values(), strict=True)
        off += [(value - right.get(name, 0.0)) / deviation for (name, value), deviation in pairs]
    assert (np.abs(off) < 3).mean() > 0.93


@pytest.mark.parametrize(("duration", "least", "most"), [(5.0, 0.93, 1.0), (20.0, 0.93, 0.975)])
def test_efforts_lie_in_the_band_that_is_predicted(arm, truth, duration, least, most):
    """On new, unfiltered motion 95 % lie within two deviations."""
    log = recording(truth, duration, 200.0, noise=0.05)
    result = identify(arm, log, cutoff=20.0)
    (unseen,) = prepare(recording(truth, 20.0, 50.0, seed=8), "abc", 25.0).stretches
    torque, deviation = result.predict(unseen.q, unseen.qd, unseen.qdd)
    np.testing.assert_allclose(
        torque, InverseDynamics(result.mechanism)(unseen.q, unseen.qd, unseen.qdd)
    )
    noise = 0.05 * np.sqrt((log.streams[0].effort ** 2).mean(axis=0))
    measured = unseen.tau + noise * np.random.default_rng(3).normal(size=torque.shape)
    inside = (np.abs(measured - torque) < 2 * deviation).mean(axis=0)
    assert (inside > least).all()
    assert (inside < most).any()
    assert (np.median(deviation, axis=0) < 3 * noise).all()
    one = result.predict(unseen.q[7], unseen.qd[7], unseen.qdd[7])
    np.testing.assert_allclose(one, (torque[7], deviation[7]), rtol=1e-12)


def test_a_band_is_wider_where_the_motion_told_little(arm, truth):
    """After slow motion, for accelerations that it did not contain."""
    slow = recording(truth, 12.0, 100.0, noise=0.05, reach=0.2)
    result = identify(arm, slow, cutoff=20.0)
    no, far = np.zeros(3), np.full(3, 30.0)
    assert (result.predict(no, no, far)[1] > 1.5 * result.predict(no, no, no)[1]).all()
    with pytest.raises(InputError):
        result.predict(np.zeros(2), np.zeros(2), np.zeros(2))


def test_the_band_is_of_the_motion_that_validates(arm, truth):
    """A joint whose efforts were not measured has no band."""
    log, rough = (recording(truth, 8.0, 100.0, seed=k, noise=0.02 + k) for k in (0, 1))
    (stream,) = log.streams
    effort = stream.effort.copy()
    effort[:, 1] = 0.0
    result = identify(arm, Recording("partly", (replace(stream, effort=effort),)), validate=rough,
                      cutoff=20.0)  # fmt: skip
    noise = np.sqrt((rough.streams[0].effort ** 2).mean(axis=0)) / np.sqrt(2)  # half noise
    assert np.isnan(result.band.residual).tolist() == [False, True, False]
    known = [0, 2]
    np.testing.assert_allclose(result.band.residual[known], noise[known], rtol=0.3)


def test_outliers_do_not_pull(arm, truth):
    clean = recording(truth, 20.0, 100.0, noise=0.02)
    stream = clean.streams[0]
    effort = stream.effort.copy()
    rng = np.random.default_rng(0)
    hit = rng.choice(len(effort), len(effort) // 50, replace=False)
    effort[hit] += 20 * np.abs(effort).max(axis=0) * rng.choice([-1, 1], (len(hit), 3))
    dirty = Recording("dirty", (replace(stream, effort=effort),))
    assert miss(truth, identify(arm, dirty, cutoff=45.0).mechanism) < 3 * miss(
        truth, identify(arm, clean, cutoff=45.0).mechanism
    )


def test_lost_values_and_whole_turns_of_positions_change_nothing(arm, truth):
    """Without recorded rates, in which a jump is easier to see; of motion in a small range."""
    (stream,) = recording(truth, 20.0, 100.0, noise=0.02, reach=0.3).streams
    clean = replace(stream, velocity=np.full_like(stream.velocity, np.nan))
    position, effort = clean.position.copy(), clean.effort.copy()
    rng = np.random.default_rng(0)
    lost = rng.choice(np.arange(10, len(position) - 10), 40, replace=False)
    position[lost[:20]], effort[lost[:20]] = 0.0, 0.0
    position[lost[20:], rng.integers(0, 3, 20)] += rng.choice([-2, 2], 20)
    middle = np.median(position, axis=0)
    position = (position - middle) % (2 * np.pi) + middle
    log = Recording("glitches", (replace(clean, position=position, effort=effort),))
    found = identify(arm, log)
    assert any("whole turns were added to the positions of a" in note for note in found.notes)
    assert any("messages in which a position jumps and ret" in note for note in found.notes)
    unspoiled = miss(truth, identify(arm, Recording("clean", (clean,))).mechanism)
    assert miss(truth, found.mechanism) < 1.5 * unspoiled


def test_a_contact_is_named_with_its_stretch_and_joints(arm, truth):
    """Of a second and a half, at the forearm, which the hand's joint does not feel."""
    (stream,) = recording(truth, 20.0, 100.0, noise=0.02).streams
    effort, level = stream.effort.copy(), np.sqrt((stream.effort**2).mean(axis=0))
    touched = (stream.time >= 8) & (stream.time < 9.5)
    push = np.sin(np.pi * (stream.time[touched] - 8) / 1.5)
    effort[touched, :2] += 0.6 * push[:, None] * level[:2]
    log = Recording("touched", (replace(stream, effort=effort),))
    result = identify(arm, log, cutoff=10.0)
    (words,) = [each for each in result.warnings if "Was the robot touched" in each]
    assert words.startswith("touched: from 8 s to 9.5 s the model leaves up to ")
    assert "N·m (or N) unexplained at a, b (largest at " in words
    assert {(each.joint, each.begin, each.end) for each in result.contacts} == {
        ("a", 8.0, 9.5),
        ("b", 8.0, 9.5),
    }
    assert [abs(each.most) for each in result.contacts] == pytest.approx(0.6 * level[:2], rel=0.1)
    told = summary(result)["contacts"]
    assert [(each["recording"], each["joint"], each["begin"], each["end"]) for each in told] == [
        ("touched", "a", 8.0, 9.5), ("touched", "b", 8.0, 9.5),
    ]  # fmt: skip
    assert [each["most"] for each in told] == [each.most for each in result.contacts]
    assert min(each["times"] for each in told) > 12
    assert miss(truth, result.mechanism) < 0.05


def test_short_touches_make_no_efforts_doubtful(arm, truth):
    """Too short for contacts, but most of the error on held-out motion."""
    (stream,) = recording(truth, 30.0, 100.0, noise=0.02).streams
    effort, level = stream.effort.copy(), np.sqrt((stream.effort**2).mean(axis=0))
    touched = (stream.time > 20) & (stream.time % 2.5 < 0.4)
    effort[touched, 0] += 2.5 * level[0]
    result = identify(arm, Recording("touched", (replace(stream, effort=effort),)), cutoff=10.0)
    assert not result.contacts
    assert result.errors.relative[0] > 0.5
    said = [words for words in result.warnings if words.startswith("a:")]
    assert [re.sub(r"\d+(\.\d+)? %", "%", words.split(" If not")[0]) for words in said] == [
        "a: the model leaves % of the torque unexplained, but usually only %: was the robot "
        "touched or loaded at times?"
    ]
    assert miss(truth, result.mechanism) < 0.05


def in_units(mechanism: Mechanism, mass: float, length: float) -> Mechanism:
    """The same robot by numbers in units of which `mass` are a kg, and `length` a m; s stay s."""

    def told(link):
        body, origin, limits = link.inertial, link.joint.origin, link.joint.limits
        return replace(
            link,
            inertial=Inertial(
                mass * body.mass, length * body.center_of_mass, mass * length**2 * body.inertia
            ),
            joint=replace(
                link.joint,
                origin=replace(origin, translation=length * origin.translation),
                limits=limits and replace(limits, effort=mass * length**2 * limits.effort),
            ),
        )

    links = tuple(told(link) for link in mechanism.links)
    return replace(mechanism, links=links, gravity=length * mechanism.gravity)


def shuffled(log: Recording) -> Recording:
    """Its messages, with any four neighbours in any order."""
    rng = np.random.default_rng(0)
    (stream,) = log.streams
    rows = np.arange(len(stream.time)).reshape(-1, 4)
    return Recording(log.source, (stream.rows(rng.permuted(rows, axis=1).ravel()),))


def backwards(urdf: str) -> str:
    """The same elements in the other order."""
    root = ElementTree.fromstring(urdf)
    root[:] = root[::-1]
    return ElementTree.tostring(root, encoding="unicode")


def test_the_answer_is_the_same_however_the_same_is_said(arm, truth):
    """In any order of links, joints, samples and recordings, and in other units."""
    logs = [recording(truth, 8.0, 100.0, seed=k, noise=0.02) for k in (1, 2)]
    one = identify(arm, logs, cutoff=20.0)
    orders = {
        "links": identify(backwards(ARM), logs, cutoff=20.0),
        "samples": identify(arm, [shuffled(log) for log in logs], cutoff=20.0),
        "joints and recordings": identify(
            arm, [Recording(log.source, (log.streams[0].of("cab"),)) for log in logs[::-1]],
            cutoff=20.0,
        ),
    }  # fmt: skip
    for what, other in orders.items():
        same(one, other, dict.fromkeys(one.parameters, 1.0), what)
    for mass, length in ((1000.0, 1.0), (1.0, 1000.0)):
        torque = mass * length**2
        other = identify(
            in_units(arm, mass, length), logs, cutoff=20.0,
            effort_scale=dict.fromkeys("abc", torque),
        )  # fmt: skip
        of = {"mass": mass} | dict.fromkeys(("mx", "my", "mz"), mass * length)
        units = {name: of.get(name.split(".")[1], torque) for name in one.parameters}
        same(one, other, units, f"{mass} of a kg, {length} of a m")


def same(one: Identification, other: Identification, units: dict[str, float], what: str) -> None:
    """To 1e-9 of a number or, where that is next to nothing, of its standard deviation."""
    right, found = deviations(one), deviations(other)
    for name, value in one.parameters.items():
        told = other.parameters[name] / units[name]
        assert told == pytest.approx(value, rel=1e-9, abs=1e-9 * right[name]), (what, name)
        assert found[name] / units[name] == pytest.approx(right[name], rel=1e-9), (what, name)


def deviations(found: Identification) -> dict[str, float]:
    """By name."""
    return dict(zip(found.parameters, np.sqrt(np.diag(found.covariance)).tolist(), strict=True))


@pytest.mark.parametrize("times", [1.0, 10.0])
def test_a_tool_alone(arm, times):
    tool = Inertial(
        1.5 * times, np.array([0.02, -0.01, 0.08]), times * np.diag([0.004, 0.005, 0.003])
    )
    links = tuple(
        replace(link, inertial=tool) if link.name == "tool" else link for link in arm.links
    )
    carrying = replace(arm, links=links)
    result = identify(arm, recording(carrying, 20.0, 500.0), payload="tool")
    assert not result.warnings
    assert [name.split(".")[0] for name in result.parameters] == ["tool"] * 10
    found = result.mechanism.link("tool").inertial
    assert found.mass == pytest.approx(1.5 * times, rel=1e-5)
    np.testing.assert_allclose(found.center_of_mass, tool.center_of_mass, atol=1e-5)
    for link in arm.links:
        if link.name != "tool":
            assert result.mechanism.link(link.name).inertial is link.inertial


def test_what_the_data_cannot_tell_stays_as_described(arm, truth):
    """About a vertical axis only Izz is felt."""
    result = identify(arm, recording(truth, 15.0, 100.0, noise=0.02))
    assert result.parameters["upper.mass"] == pytest.approx(4.0, rel=1e-3)
    deviations = dict(zip(result.parameter_names, np.sqrt(np.diag(result.covariance)), strict=True))
    assert deviations["upper.mass"] > 0.5  # and it is said
    assert deviations["hand.mx"] < 0.05
    assert result.excitation.determined < result.excitation.identifiable


def test_one_moving_joint_says_what_it_can(arm, truth):
    _, q, qd, qdd = motion(3, 15.0, 100.0)
    for field in (q, qd, qdd):
        field[:, :2] = 0.0
    tau = InverseDynamics(truth)(q, qd, qdd)
    tau += 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    stream = recording(truth, 15.0, 100.0).streams[0]
    alone = Recording("alone", (replace(stream, position=q, velocity=qd, effort=tau),))
    result = identify(arm, alone, cutoff=40.0)
    said = " ".join(result.warnings)
    assert "a moved by" in said
    assert "b moved by" in said
    assert "c moved by" not in said
    assert "record longer, with all joints moving" in said
    assert result.errors.relative[2] < 0.05
    assert bodies(result.mechanism)


def test_missing_rates_are_made_of_positions(arm, truth):
    stream = recording(truth, 20.0, 500.0).streams[0]
    nan = np.full_like(stream.velocity, np.nan)
    result = identify(arm, Recording("rateless", (replace(stream, velocity=nan),)))
    assert any("no velocities of a, b, c" in note for note in result.notes)
    assert miss(truth, result.mechanism) < 1e-4


def test_rates_that_are_none_are_not_believed(arm, truth):
    stream = recording(truth, 10.0, 100.0, noise=0.01).streams[0]
    wrong = Recording("wrong", (replace(stream, velocity=-stream.velocity),))
    result = identify(arm, wrong)
    assert any("do not match the positions" in note for note in result.notes)
    assert miss(truth, result.mechanism) < 0.02


def late(robot: Mechanism, *fields: str) -> Recording:
    """At 200 Hz, with these fields 60 ms late."""
    stream = recording(robot, 20.0, 200.0, noise=0.01).streams[0]
    moved = {each: getattr(stream, each)[:-12] for each in fields}
    return Recording("late", (replace(stream.rows(slice(12, None)), **moved),))


def test_rates_that_are_late_as_the_efforts_are_believed(arm, truth):
    result = identify(arm, late(truth, "velocity", "effort"))
    assert any("60 ms after the positions, and so do the efforts" in x for x in result.notes)
    assert result.errors.relative.max() < 0.1


@pytest.mark.parametrize("rates", [True, False])
@pytest.mark.parametrize("early", [True, False])
def test_efforts_that_alone_are_late_or_early_are_moved(arm, truth, rates, early):
    log = late(truth, "position", "velocity") if early else late(truth, "effort")
    if not rates:
        (stream,) = log.streams
        nothing = np.full_like(stream.velocity, np.nan)
        log = Recording("late", (replace(stream, velocity=nothing),))
    result = identify(arm, log)
    said = f"efforts come 60 ms {'before' if early else 'after'} the positions"
    assert any(said in note for note in result.notes)
    assert miss(truth, result.mechanism) < 0.02
    assert any(said in note for note in replay([truth], log).notes)


def test_efforts_in_time_are_not_moved(arm, truth):
    for noise in (0.01, 0.3):
        result = identify(arm, recording(truth, 20.0, 200.0, noise=noise))
        assert not any("efforts come" in note for note in result.notes)


def test_rates_that_only_are_late_are_not_believed(arm, truth):
    result = identify(arm, late(truth, "velocity"))
    assert any("do not match the positions" in note for note in result.notes)
    assert miss(truth, result.mechanism) < 0.02


def test_efforts_without_a_sign_are_not_fitted(arm, truth):
    stream = recording(truth, 10.0, 100.0, noise=0.01).streams[0]
    sizes = Recording("currents", (replace(stream, effort=np.abs(stream.effort)),))
    with pytest.raises(RecordingError, match="never change their sign"):
        identify(arm, sizes)
    # a drive that counts in coarse steps seldom reports a small current
    step = 0.1 * np.abs(stream.effort).max(axis=0)
    counted = step * np.round(np.abs(stream.effort) / step)
    with pytest.raises(RecordingError, match="never change their sign"):
        identify(arm, Recording("counted", (replace(stream, effort=counted),)))
    # one joint that holds a weight is no reason, nor are drives that are off at first
    stream.effort[:, 1] = np.abs(stream.effort[:, 1])
    identify(arm, Recording("one", (stream,)))
    # a constant tells nothing, whatever the others do
    constant = replace(stream, effort=np.tile([2.0, 0.0, np.nan], (len(stream.time), 1)))
    with pytest.raises(RecordingError, match="no efforts: all are missing, 0 or constant"):
        with_efforts(constant, "", [])
    raised = np.abs(stream.effort) + 0.1 * np.abs(stream.effort).max(axis=0)
    raised[:50] = 0.0
    identify(arm, Recording("off", (replace(stream, effort=raised),)))
    stream.position[1:] = np.nan
    with pytest.raises(RecordingError, match="no stretch of usable samples"):
        identify(arm, Recording("one row", (replace(stream, effort=np.abs(stream.effort)),)))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_joint_that_only_holds_a_weight_does_not_hide_lost_signs(truth, sign):
    stream = recording(truth, 10.0, 100.0, noise=0.01).streams[0]

    def held(values, value):
        return np.column_stack([values, np.full(len(values), value)])

    efforts = held(np.abs(stream.effort), 1.0)
    efforts[:5, -1] *= sign
    whole = Stream(
        (*stream.names, "d"), stream.time, held(stream.position, 0.2), held(stream.velocity, 0.0),
        efforts,
    )  # fmt: skip
    if sign > 0:
        with pytest.raises(RecordingError, match="never change their sign"):
            with_efforts(whole, "held", [])
    else:  # it has a sign, and so do the others
        with_efforts(whole, "held", [])


def test_efforts_of_the_wrong_sign_are_told(arm, truth):
    result = identify(arm, recording(truth, 10.0, 100.0, noise=0.01), effort_scale={"b": -1.0})
    assert any(
        "b: its efforts have the opposite sign" in words and "--effort-scale b:1" in words
        for words in result.warnings
    )


@pytest.mark.parametrize(("left_out", "blamed"), [("b", True), ("c", False)])
def test_a_joint_between_others_that_was_not_recorded_may_be_why_efforts_look_wrong(
    arm, truth, left_out, blamed
):
    stream = recording(truth, 10.0, 100.0, noise=0.01).streams[0]
    kept = [name for name in stream.names if name != left_out]
    log = Recording("two of three", (stream.of(kept),))
    words = f"{left_out} at 0: not recorded, but it carries recorded joints"
    assert not any(words in each for each in identify(arm, log).warnings)
    result = identify(arm, log, effort_scale={kept[-1]: -1.0})
    assert any("opposite sign" in each for each in result.warnings)
    assert any(words in each for each in result.warnings) == blamed


def one_moves(robot: Mechanism, moving: int) -> Recording:
    """All joints but one move by a millionth."""
    names = robot.joint_names
    t, q, qd, qdd = motion(len(names), 4.0, 200.0)
    for each in (q, qd, qdd):
        each[:, np.arange(len(names)) != moving] *= 1e-6
    return Recording("one", (Stream(names, t, q, qd, InverseDynamics(robot)(q, qd, qdd)),))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("moving", [0, 1])
def test_next_to_no_efforts_of_one_moving_joint_are_refused(arm, moving):
    (stream,) = one_moves(arm, moving).streams
    noise = 1e-7 * np.random.default_rng(0).normal(size=stream.effort.shape)
    with pytest.raises(RecordingError, match=r"% of (them|the torque) unexplained"):
        identify(arm, Recording("next to nothing", (replace(stream, effort=noise),)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("moving", [0, 1])
def test_one_joint_that_moves_alone_is_identified(arm, moving):
    assert identify(arm, one_moves(arm, moving)).errors.relative[moving] < 0.01


def test_a_model_that_explains_nothing_is_refused(arm, truth):
    stream = recording(truth, 10.0, 100.0).streams[0]
    noise = np.random.default_rng(0).normal(size=stream.effort.shape)
    with pytest.raises(RecordingError, match="the efforts do not match"):
        identify(arm, Recording("noise", (replace(stream, effort=noise),)))


def test_a_joint_without_efforts_keeps_its_friction(arm, truth):
    stream = recording(truth, 10.0, 100.0, noise=0.02).streams[0]
    effort = stream.effort.copy()
    effort[:, 1] = 0.0
    result = identify(arm, Recording("partly", (replace(stream, effort=effort),)))
    (note,) = result.notes
    assert note.startswith("partly: no efforts for b: parameters that depend only on them keep")
    assert np.isnan(result.errors.relative).tolist() == [False, True, False]
    assert np.nanmax(result.errors.relative) < 0.05
    assert result.mechanism.joint("b").friction == arm.joint("b").friction


def test_joints_in_messages_of_their_own(arm, truth):
    stream = recording(truth, 20.0, 100.0, noise=0.01).streams[0]
    streams = (stream.of("a").rows(slice(0, None, 2)), stream.of("bc"))
    result = identify(arm, Recording("apart", streams))
    assert any("in separate messages" in note for note in result.notes)
    assert miss(truth, result.mechanism) < 0.01


def spoiled(truth, **fields):
    stream = recording(truth, 10.0, 100.0).streams[0]
    return Recording("spoiled", (replace(stream, **{k: f(stream) for k, f in fields.items()}),))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"effort": lambda s: np.full_like(s.effort, np.nan)}, "no efforts"),
        ({"effort": lambda s: np.zeros_like(s.effort)}, "no efforts"),
        ({"effort": lambda s: np.full_like(s.effort, 1.5)}, "no efforts: .* constant"),
        ({"position": lambda s: 0 * s.position, "velocity": lambda s: 0 * s.velocity}, "at rest"),
        ({"names": lambda s: ("x", "y", "z")}, "of a different robot: its joints are x"),
        ({"position": lambda s: np.full_like(s.position, np.nan)}, "no position of a"),
        ({"time": lambda s: s.time / 20}, "too short"),
        ({"time": lambda s: np.full_like(s.time, np.nan)}, "no stretch"),
        ({"time": lambda s: 0 * s.time}, "no stretch"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_used_is_one_clear_line(arm, truth, fields, words):
    with pytest.raises(RobotDynamicsError, match=words) as caught:
        identify(arm, spoiled(truth, **fields))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rename": {"nobody": "a"}}, "'nobody'"),
        ({"rename": {"a": "b"}}, "each name once"),
        ({"effort_scale": {"nobody": 1.0}}, "'nobody'"),
        ({"effort_scale": {"a": 0.0}}, "other than 0"),
        ({"effort_scale": {"a": float("nan")}}, "other than 0"),
        ({"payload": "nobody"}, "'nobody'"),
        ({"payload": "base"}, "'base'"),
        ({"cutoff": -1.0}, "-1"),
        ({"cutoff": float("nan")}, "nan"),
    ],
)
def test_options_that_do_not_fit_are_one_clear_line(arm, truth, options, words):
    with pytest.raises((InputError, RecordingError), match=words):
        identify(arm, recording(truth, 10.0, 100.0), **options)


def test_nan_runs_and_a_saturated_motor_are_left_out(arm, truth):
    stream = recording(truth, 20.0, 200.0, noise=0.01).streams[0]
    effort, position = stream.effort.copy(), stream.position.copy()
    limit = 0.7 * np.abs(effort[:, 1]).max()
    effort[:, 1] = np.clip(effort[:, 1], -limit, limit)
    position[800:840] = np.nan
    bad = Recording("bad", (replace(stream, effort=effort, position=position),))
    result = identify(arm, bad)
    said = " ".join(result.notes)
    assert "40 messages with NaN" in said
    assert "1 gap of" in said
    assert "b:" in said
    assert "saturated" in said
    assert miss(truth, result.mechanism) < 0.02


def test_joints_whose_motors_are_always_saturated_are_named(arm, truth):
    stream = recording(truth, 30.0, 200.0, noise=0.01).streams[0]
    limits = np.array([np.inf, 1e-3, np.inf])
    clipped = replace(stream, effort=np.clip(stream.effort, -limits, limits))
    other = recording(truth, 10.0, 200.0, noise=0.01, seed=5)
    result = identify(arm, Recording("clipped", (clipped,)), validate=other)
    (told,) = (each for each in result.warnings if each.startswith("b:"))
    assert "none of its efforts could be used" in told
    assert any("b:" in each and "saturated" in each for each in result.notes)
    clipped = replace(stream, effort=np.sign(stream.effort))
    with pytest.raises(RecordingError, match="no usable efforts"):
        identify(arm, Recording("clipped", (clipped,)), validate=other)


@pytest.mark.parametrize("coarse", [0.1, 0.2, 0.5])
def test_coarse_efforts_are_no_saturated_motor(arm, truth, coarse):
    """They stay at their extreme for a while, as at any other value."""
    stream = recording(truth, 10.0, 500.0).streams[0]
    effort = coarse * np.round(stream.effort / coarse)
    extreme = effort[:, 1] == effort[:, 1].max()
    assert np.diff(np.flatnonzero(np.diff(np.r_[0, extreme, 0])))[::2].max() >= SATURATED
    prepared = prepare(Recording("coarse", (replace(stream, effort=effort),)), arm.joint_names, 20)
    assert all(each.usable.all() for each in prepared.stretches)
    # a clipped motor stays there for longer
    limit = coarse * np.round(0.6 * np.abs(effort[:, 1]).max() / coarse)
    effort[:, 1] = np.clip(effort[:, 1], -limit, limit)
    prepared = prepare(Recording("clipped", (replace(stream, effort=effort),)), arm.joint_names, 20)
    assert not all(each.usable[:, 1].all() for each in prepared.stretches)
    assert all(each.usable[:, [0, 2]].all() for each in prepared.stretches)


def test_rests_are_left_out(arm, truth):
    stream = recording(truth, 10.0, 100.0).streams[0]
    hold = 300
    fields = {
        name: np.concatenate([np.repeat(getattr(stream, name)[:1], hold, 0), getattr(stream, name)])
        for name in ("position", "velocity", "effort")
    }
    fields["velocity"][:hold] = 0.0
    time = np.arange(len(fields["position"])) / 100.0
    prepared = prepare(Recording("late", (replace(stream, time=time, **fields),)), "abc", 30.0)
    assert prepared.duration == pytest.approx(10.0, abs=0.5)
    assert any("at rest were left out" in note for note in prepared.notes)


def test_a_joint_that_no_friction_explains_does_not_spoil_the_others(arm, truth, monkeypatch):
    """Its residual is noise, however well impossible parameters would fit; and each fit is found,
    though its minimum is close to the edge."""
    fits = []

    def noted(*given):
        fits.append((*given[:4], *minimise(*given)))
        return fits[-1][4:]

    monkeypatch.setattr("robot_dynamics.identification.fit.minimise", noted)
    (stream,) = recording(truth, 20.0, 200.0, noise=0.02).streams
    effort = stream.effort.copy()
    # as of a negative inertia
    effort[:, 2] -= 10 * motion(3, 20.0, 200.0)[3][:, 2]
    less = Recording("less", (replace(stream, effort=effort),))
    result = identify(arm, less, effort_scale={"c": 1.0})
    assert result.errors.relative[2] > 0.5
    assert (result.errors.relative[:2] < 0.05).all()
    assert result.fit.sigma[2] > 5.0
    assert bodies(result.mechanism)
    assert len(fits) > 100
    assert max(left_to_gain(*each) for each in fits) < 1e-6


def test_a_described_rotor_that_is_too_heavy_is_made_lighter_and_never_less_than_nothing(arm):
    """Errors that ask for a negative inertia do not bring back the described one."""
    heavy = changed(arm, seed=3)
    described = replace(arm, rotors=heavy.rotors)
    light = replace(
        heavy,
        rotors=tuple(
            replace(each, inertial=Inertial(0.0, np.zeros(3), 1e-3 * each.inertial.inertia))
            for each in heavy.rotors
        ),
    )
    (stream,) = recording(light, 20.0, 200.0, noise=0.01).streams
    _, _, _, qdd = motion(3, 20.0, 200.0)
    effort = stream.effort - 0.3 * qdd
    result = identify(described, Recording("less", (replace(stream, effort=effort),)))
    for joint, rotor in zip(result.joints, heavy.rotors, strict=True):
        found = result.parameters[f"{result.fit.unknowns.rotors[joint]}.inertia"]
        assert 0 <= found < 0.5 * rotor.inertial.inertia[2, 2], joint
    assert bodies(result.mechanism)


@pytest.mark.parametrize(("friction", "kept"), [(True, "everything"), (False, "bodies")])
def test_a_description_is_never_made_worse(arm, truth, friction, kept):
    """Fitted and held-out motion differ, and the description agrees with the latter."""
    described = truth
    if not friction:
        links = []
        for each in truth.links:
            law = replace(each.joint.friction, viscous=0.0)
            links.append(replace(each, joint=replace(each.joint, friction=law)))
        described = replace(truth, links=tuple(links))
    (stream,) = recording(truth, 24.0, 100.0, noise=0.01).streams
    _, q, qd, qdd = motion(3, 24.0, 100.0)
    rigid = InverseDynamics(truth, terms=RIGID)(q, qd, qdd)
    seen = (np.arange(len(q)) < 1610)[:, None]
    wrong = 0.6 * (stream.effort if friction else rigid)
    effort = stream.effort + np.where(seen, wrong, 0.0)
    result = identify(described, Recording("other", (replace(stream, effort=effort),)))
    assert result.kept == kept
    assert "the original description predicts better" in result.warnings[0]
    # one warning for all joints
    assert sum("original description predicts better" in each for each in result.warnings) == 1
    assert result.errors.relative.mean() <= result.errors.relative_described.mean() * 1.02
    for link in described.moving:
        phi = [*result.described_parameters.items()]
        ours = [result.parameters[k] for k, _ in phi if k.startswith(f"{link.name}.")]
        theirs = [v for k, v in phi if k.startswith(f"{link.name}.")]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    if kept == "everything":
        assert miss(described, result.mechanism) < 1e-12
        assert result.parameters == result.described_parameters
    else:
        assert result.errors.relative.mean() < 0.85 * result.errors.relative_described.mean()


def test_a_fit_that_is_better_keeps_nothing(arm, truth):
    assert identify(arm, recording(truth, 10.0, 100.0, noise=0.02)).kept == "nothing"


@pytest.mark.parametrize("geared", [True, False])
def test_a_gear_of_1_is_not_believed(arm, geared):
    """Half of all descriptions give motors with a gear ratio of a hundred
    `<mechanicalReduction>1`."""
    shafts = """<transmission name="t{0}"><type>transmission_interface/SimpleTransmission</type>
        <joint name="{0}"/><actuator name="m{0}"><mechanicalReduction>1</mechanicalReduction>
        </actuator></transmission>"""
    parallel = ARM.replace('<axis xyz="1 0 0"/>', '<axis xyz="0 1 0"/>')
    text = parallel.replace("</robot>", "".join(shafts.format(each) for each in "abc") + "</robot>")
    described = rd.load(text)
    assert {rotor.ratios[0][1] for rotor in described.rotors} == {1.0}
    truth = changed(rd.load(parallel), seed=5)
    if not geared:
        truth = replace(truth, rotors=described.rotors)
    result = identify(described, recording(truth, 20.0, 200.0, noise=1e-3))
    assert miss(truth, result.mechanism) < 2e-3
    names = [rotor.name for rotor in result.mechanism.rotors]
    assert names == [rotor.name for rotor in described.rotors]
    for rotor in result.mechanism.rotors[1:]:  # the first one acts like inertia of its own link
        if geared:
            assert rotor.inertial.inertia[2, 2] == pytest.approx(
                truth.rotors[names.index(rotor.name)].inertial.inertia[2, 2], rel=0.05
            )
        else:
            assert rotor.ratios[0][1] == 1.0 or rotor.inertial.inertia[2, 2] < 1e-6
    assert bodies(result.mechanism)


@pytest.mark.parametrize("noise", [0.0, 0.005, 0.02])
def test_a_heavy_load_on_a_light_link(arm, noise):
    """Fifteen times the link's own mass, a quarter of a metre away."""
    center = np.array([0.084, 0.439, -0.477]) / 3.007
    load = Inertial(3.007, center, np.diag([0.02, 0.03, 0.025]))
    links = tuple(
        replace(link, inertial=load) if link.name == "tool" else link for link in arm.links
    )
    carrying = replace(arm, links=links)
    result = identify(arm, recording(carrying, 20.0, 100.0, noise=noise), payload="tool")
    assert not any("--effort-scale" in words for words in result.warnings)
    found, right = np.array([*result.parameters.values()]), numbers_of(load)
    deviations = np.sqrt(np.diag(result.covariance))
    np.testing.assert_allclose(found[:4], right[:4], rtol=1e-5 + noise)
    if noise:
        assert np.sqrt(np.mean(((found - right) / deviations) ** 2)) < 2.0
    assert (deviations[:4] < (1e-4 + 0.5 * noise) * np.abs(right[:4]).max()).all()


@pytest.mark.parametrize("times", [0.1, 1.0, 10.0])
def test_a_payload_is_found_by_efforts_with_an_offset(arm, times):
    load = Inertial(0.5, np.array([0.02, 0.01, 0.06]), np.diag([0.002, 0.002, 0.001]))
    load = replace(load, mass=times * load.mass, inertia=times * load.inertia)
    first = arm.joint_names[0]
    known = replace(arm.joint(first).friction, offset=0.2)
    arm = with_parts(arm, {}, {first: known})
    links = tuple(
        replace(link, inertial=load) if link.name == "tool" else link for link in arm.links
    )
    log = recording(replace(arm, links=links), 20.0, 100.0, noise=0.02, seed=3)
    (stream,) = log.streams
    offsets = 0.3 * stream.effort.std(axis=0) * np.resize([1.0, -1.0, 0.5], len(stream.names))
    shifted = Recording("shifted", (replace(stream, effort=stream.effort + offsets),))
    result = identify(arm, shifted, payload="tool")
    found, spread = result.parameters, deviations(result)
    for name, value in zip(BODY, numbers_of(load), strict=True):
        assert abs(found[f"tool.{name}"] - value) < 3 * spread[f"tool.{name}"], name
    assert spread["tool.mass"] < 0.02
    for name, offset in zip(stream.names, offsets, strict=True):
        was, now = (x.joint(name).friction.offset for x in (arm, result.mechanism))
        assert now == found[f"{name}.offset"]
        assert now == pytest.approx(was + offset, abs=0.02 * abs(offsets).max())
        assert result.described_parameters[f"{name}.offset"] == was


@pytest.mark.parametrize("smooth", [False, True])
def test_a_hump_of_friction_is_not_made_of_noisy_rates(arm, smooth):
    """A Stribeck effect is not found where there is none, nor missed where there is one."""
    for seed in (2, 8):
        truth = changed(arm, seed=seed, smooth=smooth)
        (stream,) = recording(truth, 20.0, 100.0, noise=0.02).streams
        rng = np.random.default_rng(seed)
        position = stream.position + 5e-5 * rng.normal(size=stream.position.shape)
        lossy = replace(stream, position=position, velocity=np.full_like(position, np.nan))
        kept = lossy.rows(rng.uniform(size=len(position)) > 0.2)
        result = identify(arm, Recording("noisy", (kept,)))
        # of 24 such joints, five still get one that does not exist; without the penalty, six
        for joint in "bc":
            law = result.mechanism.joint(joint).friction
            assert (law.stribeck_torque != 0.0) == smooth, (joint, law)
