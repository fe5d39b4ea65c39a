# SPDX-License-Identifier: Apache-2.0
"""Whether dry friction acts at standstill is what rests in the recordings say."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from recorded import SIX_AXIS, changed, recording
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.identification import Recording, Stream, identify
from robot_dynamics.identification.files import save
from robot_dynamics.identification.friction_laws import FrictionLaw
from robot_dynamics.identification.preparation import (
    MOST_RESTING,
    STANDSTILL,
    _without_rests,
    prepare,
)
from robot_dynamics.identification.standstill import SHORTEST, AtRest, Stepped

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


def test_joints_that_rest_without_friction_have_none_at_standstill(arm, truth, tmp_path):
    recordings = [moves(truth), moves(truth, seed=2)]
    found = identify(SIX_AXIS, recordings, validate=moves(truth, seed=1))
    assert set(found.fit.standstill) == set(arm.joint_names)
    (note,) = (each for each in found.notes if "standstill" in each)
    assert all(name in note for name in arm.joint_names)
    still, n = np.zeros(6), 6
    model = InverseDynamics(found.mechanism)
    q = np.linspace(0.2, 0.7, n)
    for sign in (1.0, -1.0):  # no step, whatever the noise of a rate
        noisy = model(q, sign * NOISE * np.ones(n), still)
        np.testing.assert_allclose(noisy, model(q, still, still), atol=0.2)
    for name in arm.joint_names:  # and the same friction as without this in motion
        law, right = found.mechanism.joint(name).friction, truth.joint(name).friction
        assert law.coulomb == pytest.approx(right.coulomb, rel=0.1)
        assert law.stribeck_torque == -law.coulomb
        assert law.stribeck_rate == found.fit.standstill[name]
    fastest = np.max([np.abs(each.streams[0].velocity).max(axis=0) for each in recordings], axis=0)
    rates = [found.fit.standstill[name] for name in arm.joint_names]
    np.testing.assert_allclose(rates, STANDSTILL * fastest, rtol=0.03)
    assert found.errors.relative.max() < 0.05
    save(found, tmp_path)
    written = rd.load(tmp_path / "identified.yaml")
    for name in arm.joint_names:
        law = found.mechanism.joint(name).friction
        assert written.joint(name).friction.numbers == pytest.approx(law.numbers)


def test_friction_that_the_last_move_leaves_stays(arm, truth):
    found = identify(arm, moves(truth, creeping=True))
    assert not found.fit.standstill
    assert not any("standstill" in note for note in found.notes)
    for name in arm.joint_names:
        assert found.mechanism.joint(name).friction.stribeck_torque == 0.0


def test_a_description_that_is_kept_has_its_own_friction(arm, truth, monkeypatch):
    module = sys.modules["robot_dynamics.identification.identify"]
    monkeypatch.setattr(module, "loses", lambda _: True)
    found = identify(arm, moves(truth))
    assert (found.kept, found.mechanism) == ("everything", found.described)
    assert not any("standstill" in note for note in found.notes)


def test_recordings_without_rests_say_nothing_of_them(arm, truth):
    found = identify(arm, recording(truth, noise=0.02))
    assert not found.fit.standstill


def test_what_has_no_step_is_left_as_it_is(arm, truth):
    """A law with a Stribeck effect, one that drives its joint, and one whose efforts were not
    fitted."""
    fit = identify(arm, recording(truth, noise=0.02)).fit
    fastest = np.ones(6)
    whole = Stepped.of(fit, fastest).coulomb
    right = [truth.joint(name).friction.coulomb for name in arm.joint_names]
    np.testing.assert_allclose(whole, right, rtol=0.1)
    first, second, *_ = arm.joint_names
    drives = dict(fit.drives)
    plain = drives[first].law
    drives[first] = replace(drives[first], law=FrictionLaw(plain.names, 0, tied=True))
    drives[second] = replace(drives[second], driving=True)
    sigma = fit.sigma.copy()
    sigma[2] = np.nan
    left = Stepped.of(replace(fit, drives=drives, sigma=sigma), fastest).coulomb
    np.testing.assert_array_equal(left, [0.0, 0.0, 0.0, *whole[3:]])


def smoothed(truth, rates):
    """The robot without a step of its friction at rest."""
    links = []
    for link in truth.links:
        if link.joint.name in rates:
            dry = link.joint.friction
            dry = replace(dry, stribeck_torque=-dry.coulomb, stribeck_rate=rates[link.joint.name])
            link = replace(link, joint=replace(link.joint, friction=dry))
        links.append(replace(link))
    return replace(truth, links=tuple(links))


def test_errors_at_rest_are_those_of_filtered_friction(arm, truth):
    names = arm.joint_names
    coulomb = np.array([truth.joint(name).friction.coulomb for name in names])
    fastest = np.abs(moves(truth).streams[0].velocity).max(axis=0)
    stepped = Stepped(coulomb, fastest, np.zeros(6))
    smooth = smoothed(truth, dict(zip(names, stepped.rates, strict=True)))
    found, other = (
        stepped.errors(truth, prepare(moves(each, creeping=True, noise=0.0), names, 5.0))
        for each in (truth, smooth)
    )
    # moves begin and end slowly
    np.testing.assert_allclose(found.duration, 20 * (REST + 0.1), rtol=0.2)
    jumps = coulomb**2 * found.duration * 50.0  # samples a second
    assert (found.stepped < 0.09 * jumps).all()
    assert (found.smooth > 0.5 * jumps).all()
    assert (other.smooth < 1e-3 * jumps).all()
    assert (other.stepped > 0.5 * jumps).all()


def test_a_joint_needs_a_second_of_rest_in_which_it_is_better_without_friction():
    stepped = Stepped(np.array([2.0, 2.0, 2.0, 0.0, 2.0]), np.full(5, 2.0), np.zeros(5))
    at_rest = AtRest(
        np.array([SHORTEST, 0.99 * SHORTEST, 9.0, 9.0, 9.0]),
        np.array([1.0, 1.0, 1.0, 1.0, 1.0]),
        np.array([0.9, 0.1, 1.0, 0.1, 1.1]),
    )
    assert stepped.without_step(tuple("abcde"), at_rest) == {"a": STANDSTILL * 2.0}


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
    (stream,) = recording(truth, 40.0, RATE, noise=0.02).streams
    (last,) = moves(truth, duration=18.0).streams
    whole = Stream(
        stream.names,
        np.r_[stream.time, stream.time[-1] + 1.0 + last.time],
        *(np.vstack([getattr(each, name) for each in (stream, last)]) for name in FIELDS),
    )
    assert not identify(arm, Recording("both", (whole,))).fit.standstill


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
    prepared = _without_rests(raw, [])
    fastest = np.abs(changed.velocity).max(axis=0)
    for each in prepared.resting:
        assert not each.usable[:, :3].any()
        assert each.usable[:, 3:].any(axis=1).all()
        assert (np.abs(each.qd) <= 1.01 * STANDSTILL * fastest)[each.usable].all()
    coulomb = np.array([truth.joint(name).friction.coulomb for name in arm.joint_names])
    found = Stepped(coulomb, fastest, np.zeros(6)).errors(truth, prepared)
    for each in (found.duration, found.stepped, found.smooth):
        assert not each[:3].any()
        assert each[3:].all()


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
