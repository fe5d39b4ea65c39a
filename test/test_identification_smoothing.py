# SPDX-License-Identifier: Apache-2.0
"""Below which rate dry friction fades to zero is what the recordings say."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from recorded import SIX_AXIS, changed, motion, recording
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.identification import Recording, Stream, identify
from robot_dynamics.identification.friction_laws import FrictionLaw
from robot_dynamics.identification.friction_smoothing import (
    SHARES,
    WORTH,
    FrictionSmoothing,
    NearRest,
)
from robot_dynamics.identification.normal_equations import FOLDS
from robot_dynamics.identification.preparation import (
    MOST_RESTING,
    STANDSTILL,
    _without_rests,
    prepare,
)
from robot_dynamics.identification.result_files import save
from robot_dynamics.mechanism.transform import with_joints

MOVE, REST = 1.4, 0.8
"""s, of each move and of the rest after it"""
RATE = 200.0
NOISE = 1e-3
"""rad/s, of the recorded rates"""
FIELDS = ("position", "velocity", "effort")


@pytest.fixture(scope="module")
def arm():
    return rd.load(SIX_AXIS)


@pytest.fixture(scope="module")
def truth(arm):
    return changed(arm, seed=3, smooth=False)


def moves(
    truth, *, creeping: bool = False, seed: int = 0, noise: float = 0.02, duration: float = 44.0
) -> Recording:
    """From place to place, with rests, at which joints have no friction and rates are noise, or
    creep on in the direction of the last move and have its friction."""
    rng = np.random.default_rng(seed)
    n, names = len(truth.joint_names), truth.joint_names
    time = np.arange(round(duration * RATE)) / RATE
    k = (time / (MOVE + REST)).astype(int)
    s = np.clip((time - k * (MOVE + REST)) / MOVE, 0.0, 1.0)[:, None]
    places = rng.uniform(-1.2, 1.2, (k[-1] + 2, n))
    way = places[k + 1] - places[k]
    q = places[k] + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    qd = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / MOVE
    qdd = way * (60 * s - 180 * s**2 + 120 * s**3) / MOVE**2
    if creeping:
        creep = np.where(s == 1.0, 2 * NOISE * np.sign(way), 0.0)
        q, qd = q + np.cumsum(creep, axis=0) / RATE, qd + creep
    tau = InverseDynamics(truth)(q, qd, qdd)  # no friction where the rate is 0
    if not creeping:
        qd = qd + NOISE * rng.normal(size=qd.shape)
    tau = tau + noise * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return Recording(f"moves {seed}", (Stream(names, time, q, qd, tau),))


def test_joints_that_rest_without_friction_have_no_step_there(arm, truth, tmp_path):
    recordings = [moves(truth), moves(truth, seed=2)]
    found = identify(SIX_AXIS, recordings, validate=moves(truth, seed=1))
    assert set(found.fit.smoothing) == set(arm.joint_names)
    (note,) = (each for each in found.notes if "step of dry friction" in each)
    assert all(name in note for name in arm.joint_names)
    still, n = np.zeros(6), 6
    model, stepped = InverseDynamics(found.mechanism), InverseDynamics(smooth(found.mechanism, 0.0))
    q = np.linspace(0.2, 0.7, n)
    for sign in (1.0, -1.0):  # little of the step, whatever the noise of a rate
        rates = sign * 0.3 * NOISE * np.ones(n)
        left = np.abs(model(q, rates, still) - model(q, still, still))
        assert (left < 0.5 * np.abs(stepped(q, rates, still) - stepped(q, still, still))).all()
    for name in arm.joint_names:  # and the same friction as without this in motion
        law, right = found.mechanism.joint(name).friction, truth.joint(name).friction
        assert law.coulomb == pytest.approx(right.coulomb, rel=0.1)
        assert law.smoothing == found.fit.smoothing[name]
    fastest = np.max([np.abs(each.streams[0].velocity).max(axis=0) for each in recordings], axis=0)
    shares = np.array([found.fit.smoothing[name] for name in arm.joint_names]) / fastest
    nearest = [min(SHARES, key=lambda share: abs(share - found)) for found in shares]
    np.testing.assert_allclose(shares, nearest, 0.03)
    assert found.errors.relative.max() < 0.05
    save(found, tmp_path)
    written = rd.load(tmp_path / "identified.yaml")
    for name in arm.joint_names:
        law = found.mechanism.joint(name).friction
        assert written.joint(name).friction.numbers == pytest.approx(law.numbers)


def test_friction_without_a_step_is_found_in_motion_without_a_rest(arm, truth):
    """The smoothed model misses less of a motion that it has not seen."""
    robot = smooth(truth, 0.015)
    found = identify(arm, recording(robot, 120.0, noise=0.002))  # in 30 s it depends on the noise
    smoothed = np.array([name in found.fit.smoothing for name in arm.joint_names])
    assert smoothed.sum() >= 3  # a joint whose torque is mostly its weight has little to tell
    for rate in found.fit.smoothing.values():
        assert 0.003 < rate < 0.04
    _, *states = motion(6, 20.0, RATE, seed=5)
    tau = InverseDynamics(robot)(*states)
    less, more = (
        ((InverseDynamics(each)(*states) - tau) ** 2).mean(axis=0)
        for each in (found.mechanism, smooth(found.mechanism, 0.0))
    )
    assert (less < 0.7 * more)[smoothed].all()


def test_friction_that_the_last_move_leaves_stays(arm, truth):
    found = identify(arm, moves(truth, creeping=True))
    fastest = np.abs(moves(truth).streams[0].velocity).max(axis=0)
    for name, rate in found.fit.smoothing.items():  # below the rate at which joints creep
        assert rate <= NOISE, (name, rate, fastest)


def test_a_description_that_is_kept_has_its_own_friction(arm, truth, monkeypatch):
    module = sys.modules["robot_dynamics.identification.identify"]
    monkeypatch.setattr(module, "loses", lambda _: True)
    found = identify(arm, moves(truth))
    assert (found.kept, found.mechanism) == ("everything", found.described)
    assert not any("step of dry friction" in note for note in found.notes)


def test_steps_that_recordings_show_stay(arm, truth):
    found = identify(arm, recording(truth, noise=0.0))
    assert not found.fit.smoothing


def test_what_has_no_step_is_left_as_it_is(arm, truth, fit):
    """A joint without dry friction, one whose friction drives it, and one whose efforts were not
    fitted."""
    names, fastest = arm.joint_names, np.linspace(1.0, 2.0, 6)
    drives = dict(fit.drives)
    drives[names[0]] = replace(drives[names[0]], law=FrictionLaw(("viscous", "offset")))
    drives[names[1]] = replace(drives[names[1]], driving=True)
    sigma = fit.sigma.copy()
    sigma[2] = np.nan
    found = FrictionSmoothing.of(replace(fit, drives=drives, sigma=sigma), truth, fastest)
    expected = np.outer(SHARES, [0.0, 0.0, 0.0, *fastest[3:]])
    np.testing.assert_array_equal(found.rates, expected)


def test_friction_that_is_not_fitted_stays_as_described(truth):
    """As beside a payload, which is all that is unknown."""
    last = truth.links[-1].name
    found = identify(truth, recording(smooth(truth, 0.015), noise=0.002), payload=last)
    assert not any("step of dry friction" in note for note in found.notes)
    for name in truth.joint_names:
        # but for an offset of the efforts
        law = replace(found.mechanism.joint(name).friction, offset=0.0)
        assert law == truth.joint(name).friction


def smooth(robot, rates):
    """The robot with this smoothing, one for all or by joint."""

    def smoothed(joint):
        rate = rates.get(joint.name, 0.0) if isinstance(rates, dict) else rates
        return replace(joint, friction=replace(joint.friction, smoothing=rate))

    return with_joints(robot, smoothed)


@pytest.fixture(scope="module")
def fit(arm, truth):
    return identify(arm, recording(truth, noise=0.02)).fit


@pytest.mark.parametrize("share", SHARES[2:])
def test_errors_near_rest_are_those_of_filtered_friction(arm, truth, fit, share):
    """Efforts of a smoothed robot are explained by its own smoothing, at rest and in motion."""
    names = arm.joint_names
    fastest = np.abs(moves(truth).streams[0].velocity).max(axis=0)
    smoothing = FrictionSmoothing.of(fit, truth, fastest)
    robot = smooth(truth, dict(zip(names, share * fastest, strict=True)))
    errors = smoothing.errors(prepare(moves(robot, creeping=True, noise=0.0), names, 5.0))
    k, squares = 1 + SHARES.index(share), errors.squares.sum(axis=0)
    others = np.delete(squares, k, axis=0)
    assert (squares[k] < 0.5 * others).all()
    assert smoothing.chosen(errors) == pytest.approx(dict(zip(names, share * fastest, strict=True)))


def test_smoothing_must_explain_some_of_the_error(arm):
    rates = np.outer(SHARES, [1.0, 1.0, 0.0, 2.0, 1.0, 1.0])
    smoothing = FrictionSmoothing(arm, rates)
    squares = np.ones((FOLDS, 1 + len(SHARES), 6))
    squares[:, 2] = [1.0 - 2 * WORTH, 1.0 - WORTH / 2, 0.1, 0.5, 1.0, 1.1]
    squares[:, 3, 3] = 0.4
    squares[:2, 3, 4] = 0.1  # some parts alone decide nothing
    first, _, _, fourth, *_ = arm.joint_names
    assert smoothing.chosen(NearRest(squares)) == {first: SHARES[1], fourth: 2 * SHARES[2]}


@pytest.mark.parametrize("seed", [1, 5, 6, 7])
def test_a_few_reversals_with_noisy_rates_do_not_take_the_step_away(truth, arm, seed):
    """At 25 Hz the sign of the friction is uncertain in one sample of some reversals."""
    (stream,) = recording(truth, 24.0, 25.0, seed=seed, noise=0.02).streams
    rng = np.random.default_rng(seed + 50)
    position = stream.position + 2e-5 * rng.normal(size=stream.position.shape)
    velocity = stream.velocity + 5e-3 * rng.normal(size=stream.position.shape)
    noisy = replace(stream, position=position, velocity=velocity)
    fit = identify(arm, Recording("noisy", (noisy,))).fit
    for drive in fit.drives.values():
        assert (drive.law.rate, drive.law.distance) == (None, None)
    assert not fit.smoothing


def test_rests_of_what_is_held_out_are_not_looked_at(arm, truth):
    """The first two thirds rest with friction, the last third without."""
    prepared = prepare(moves(truth), arm.joint_names, 10.0)
    first, last = prepared.split(1 / 3)
    assert prepared.resting
    assert first.resting
    assert not last.resting
    end = min(each.time[0] for each in last.stretches)
    assert all((each.time < end).all() for each in first.resting)
    assert sum(map(len, first.resting)) < sum(map(len, prepared.resting))


def test_held_out_rests_decide_nothing(arm, truth):
    """Those of the last third, which are without friction."""
    (stream,) = recording(truth, 40.0, RATE, noise=0.02).streams
    (last,) = moves(truth, duration=18.0).streams
    whole = Stream(
        stream.names,
        np.r_[stream.time, stream.time[-1] + 1.0 + last.time],
        *(np.vstack([getattr(each, name) for each in (stream, last)]) for name in FIELDS),
    )
    found, alone = (
        identify(arm, each).fit.smoothing
        for each in (Recording("both", (whole,)), recording(truth, 40.0, RATE, noise=0.02))
    )
    assert set(found) == set(alone)


def test_only_usable_efforts_of_joints_that_stand_still_count(arm, truth):
    """Beside joints that never stop, that never move, and whose motor is saturated."""
    whole = moves(truth)
    (stream,) = whole.streams
    changed = replace(stream, position=stream.position.copy(), velocity=stream.velocity.copy())
    phase = 2 * np.pi * 0.5 * stream.time
    changed.position[:, 0], changed.velocity[:, 0] = np.sin(phase), np.pi * np.cos(phase)
    changed.position[:, 1], changed.velocity[:, 1] = 0.0, 0.0
    raw = prepare(replace(whole, streams=(changed,)), arm.joint_names, 10.0, rests=True)
    for each in raw.stretches:
        each.usable[:, 2] = False
    prepared = _without_rests(raw)
    fastest = np.abs(changed.velocity).max(axis=0)
    for each in prepared.resting:
        assert not each.usable[:, :3].any()
        assert each.usable[:, 3:].any(axis=1).all()
        assert (np.abs(each.qd) <= 1.01 * STANDSTILL * fastest)[each.usable].all()
    smoothing = FrictionSmoothing(truth, np.outer(SHARES, fastest))
    found = smoothing.errors(replace(prepared, stretches=()))
    assert not found.squares[..., :3].any()
    assert found.squares[..., 3:].all()


def test_a_day_of_rest_takes_little_memory(arm, truth):
    whole = moves(truth)
    (stream,) = whole.streams
    last = {name: np.repeat(getattr(stream, name)[-1:], 40_000, axis=0) for name in FIELDS}
    times = stream.time[-1] + np.arange(1, 40_001) / RATE
    long = Stream(
        stream.names,
        np.r_[stream.time, times],
        *(np.vstack([getattr(stream, name), last[name]]) for name in FIELDS),
    )
    prepared = prepare(replace(whole, streams=(long,)), arm.joint_names, None)
    assert MOST_RESTING / 2 < sum(map(len, prepared.resting)) <= MOST_RESTING
