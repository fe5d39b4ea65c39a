# SPDX-License-Identifier: Apache-2.0
"""Columns exchanged between two joints, and joints that turn the other way, are named."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import yaml
from recorded import SIX_AXIS, changed, recording
from test_identification import heavier
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.identification import Recording, identify
from robot_dynamics.identification import mixed as columns
from robot_dynamics.identification.mixed import PARTS, SAMPLES, Mixed, Mounting, mixed
from robot_dynamics.identification.per_recording import Work
from robot_dynamics.identification.samples import Samples, joined
from robot_dynamics.mechanism import Mechanism


@pytest.fixture(scope="module")
def described() -> Mechanism:
    return rd.load(SIX_AXIS)


@pytest.fixture(scope="module")
def log(described):
    return recording(changed(described, seed=3), 20.0, 100.0, noise=0.05)


def exchanged(log: Recording, i: int, j: int, fields=("position", "velocity", "effort")):
    """The recording with these columns of two joints exchanged."""
    (stream,) = log.streams
    order = np.arange(len(stream.names))
    order[[i, j]] = j, i
    changes = {field: getattr(stream, field)[:, order] for field in fields}
    return replace(log, streams=(replace(stream, **changes),))


def reversed_one(log: Recording, j: int, fields=("position", "velocity", "effort")):
    """The recording with these columns of a joint negated."""
    (stream,) = log.streams
    signs = np.where(np.arange(len(stream.names)) == j, -1.0, 1.0)
    changes = {field: getattr(stream, field) * signs for field in fields}
    return replace(log, streams=(replace(stream, **changes),))


def found(described: Mechanism, log: Recording) -> tuple:
    """(joints, positions, efforts) of what is named, after checks of the warnings."""
    result = identify(described, log, cutoff=10.0)
    if result.mixed is None:
        return ()
    assert result.warnings[0] == result.mixed.words()
    assert result.doubts == result.zeros == ()
    assert not any("--effort-scale" in words for words in result.warnings)
    return result.mixed.joints, result.mixed.positions, result.mixed.efforts


@pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 2), (2, 4)])
def test_exchanged_columns_are_named(described, log, i, j):
    names = described.joint_names
    assert found(described, exchanged(log, i, j)) == ((names[i], names[j]), True, True)


@pytest.mark.parametrize(("i", "j"), [(0, 2), (1, 2), (4, 5)])
def test_exchanged_efforts_are_named(described, log, i, j):
    names = described.joint_names
    assert found(described, exchanged(log, i, j, ["effort"])) == ((names[i], names[j]), False, True)


@pytest.mark.parametrize("j", [1, 2])
def test_a_reversed_joint_is_named(described, log, j):
    assert found(described, reversed_one(log, j)) == ((described.joint_names[j],), True, True)


@pytest.mark.parametrize("j", [1, 2])
def test_positions_of_the_opposite_sign_are_named(described, log, j):
    wrong = reversed_one(log, j, ["position", "velocity"])
    assert found(described, wrong) == ((described.joint_names[j],), True, False)


@pytest.mark.parametrize(("j", "degrees"), [(1, -90), (2, 180), (3, 90)])
def test_a_zero_that_is_far_off_is_named_with_all_that_is_missing(described, j, degrees):
    log = recording(changed(described, seed=3), 20.0, 100.0, noise=0.01, reach=2.0)
    (stream,) = log.streams
    joint, already = stream.names[j], 0.1
    off = np.where(np.arange(len(stream.names)) == j, np.radians(degrees) + already, 0.0)
    moved = replace(log, streams=(replace(stream, position=stream.position - off),))
    result = identify(described, moved, cutoff=10.0, position_offset={joint: already})
    assert result.mixed is not None
    assert (result.mixed.joints, result.zeros) == ((joint,), ())
    assert np.exp(1j * result.mixed.offset) == pytest.approx(np.exp(1j * off[j]))
    assert result.warnings[0] == result.mixed.words()
    assert f"{joint}:{result.mixed.offset:.4g})" in result.warnings[0]


def test_a_reversed_axis_is_named_whatever_the_masses_described(described, log):
    links = tuple(
        replace(link, joint=replace(link.joint, axis=-np.asarray(link.joint.axis)))
        if link.joint.name == described.joint_names[2]
        else link
        for link in heavier(described, 1e-3).links
    )
    wrong = replace(described, links=links)
    assert found(wrong, log) == ((described.joint_names[2],), True, True)


@pytest.mark.parametrize(
    ("gravity", "told", "by"),
    [
        ((9.81, 0.0, 0.0), "[9.81, 0, 0]", 1e-3),  # on a wall
        ((0.9, -9.7, 0.6), None, 1.0),
        ((0.0, 6.94, -6.94), None, 1.0),
    ],
)
def test_another_mounting_is_named_whatever_the_masses_described(described, gravity, told, by):
    robot = replace(changed(described, seed=3), gravity=np.array(gravity))
    log = recording(robot, 10.0, 100.0, noise=0.05)
    result = identify(heavier(described, by), log, cutoff=10.0)
    assert result.mixed is None
    assert result.mounting is not None
    assert result.warnings[0] == result.mounting.words()
    assert 2 * result.mounting.after < result.mounting.before
    assert told is None or f"`gravity: {told}`" in result.warnings[0]
    found = np.array(result.mounting.gravity)
    assert np.linalg.norm(found) == pytest.approx(9.81)
    assert found @ gravity > 0.98 * np.linalg.norm(found) * np.linalg.norm(gravity)
    assert result.doubts == result.zeros == ()
    assert not any("--effort-scale" in words for words in result.warnings)


@pytest.mark.parametrize(
    ("described", "gravity", "words"),
    [
        ((0, 0, -9.81), (0, 0.342, -9.804), "tilted by 2° from the description"),
        ((0, 0, -9.81), (0, 9.804, -0.342), "mounted differently from the description"),
        ((0, 0, -9.81), (0, 0, 9.81), "mounted differently from the description"),
        ((0, 0, 0), (0, 0, -9.81), "mounted differently from the description"),
    ],
)
def test_a_floor_that_is_not_level_is_no_other_mounting(described, gravity, words):
    line = Mounting(described, gravity, 0.09, 0.07).words()
    assert f"the base appears to be {words}" in line
    assert ("is not a model of the robot" in line) == ("mounted" in words)
    assert "as described, 9 %." in line


@pytest.mark.parametrize("scales", [{}, {2: -1.0}, {1: 1 / 12}, {1: -1.0, 4: -1.0}, {0: 30.0}])
def test_signs_and_units_are_no_mixed_columns(described, log, scales):
    wrong = log.scaled({described.joint_names[j]: factor for j, factor in scales.items()})
    assert found(described, wrong) == ()
    assert found(heavier(described, 1e-3), wrong) == ()


def samples_of(described: Mechanism, log: Recording) -> Samples:
    prepared = Work(described, None, {}, {}, None, 10.0, 1 / 3, None).prepared(log)
    return joined(prepared.stretches)


def test_joints_without_efforts_and_samples_without_are_left_out(described, log):
    unknowns = Work(described, None, {}, {}, None, 10.0, 0.0, None).unknowns(described.joint_names)
    samples = samples_of(described, exchanged(log, 1, 2))
    usable = samples.usable.copy()
    usable[:, 5], usable[:50, 0] = False, False
    tau = np.where(usable, samples.tau, np.nan)
    tau[:50, 0] = 1e6
    told = mixed(unknowns, replace(samples, usable=usable, tau=tau), {})
    assert told is not None
    assert told.joints == described.joint_names[1:3]
    assert 2 * told.after < told.before < 0.3
    assert mixed(unknowns, replace(samples, usable=usable & False), {}) is None
    assert mixed(unknowns, samples.rows(slice(PARTS - 1)), {}) is None


def test_a_sign_of_efforts_that_explains_nearly_as_much_is_preferred(described, log):
    """The last joints say less: whether the sign of efforts or of positions is wrong is open."""
    assert found(described, reversed_one(log, 4, ["position", "velocity"])) == ()


@pytest.mark.parametrize("joint", range(6))
def test_noise_at_a_joint_is_no_mixed_column(described, log, joint):
    """With another joint's positions and efforts in its place, noise may seem to fit better."""
    unknowns = Work(described, None, {}, {}, None, 10.0, 0.0, None).unknowns(described.joint_names)
    samples = samples_of(described, log)
    tau = samples.tau.copy()
    tau[:, joint] = 1e-3 * np.random.default_rng(0).normal(size=len(tau))
    assert mixed(unknowns, replace(samples, tau=tau), {}) is None


def test_fits_to_many_joints_leave_out_what_does_not_act_on_each(tmp_path):
    """With the columns of all friction laws of all joints, they took 243 MB here."""
    links = [
        {"name": f"link{k}", "joint": {"name": f"q{k}", "type": "revolute"}, "a": 0.1, "mass": 1.0}
        for k in range(12)
    ]
    path = tmp_path / "snake.yaml"
    path.write_text(yaml.safe_dump({"robot": "snake", "dh_convention": "standard", "links": links}))
    robot = rd.load(path)
    unknowns = Work(robot, None, {}, {}, None, 10.0, 0.0, None).unknowns(robot.joint_names)
    samples = Samples.without_efforts(*np.random.default_rng(0).normal(size=(3, 90, 12)))
    samples = replace(samples, tau=InverseDynamics(robot)(samples.q, samples.qd, samples.qdd))
    every = np.eye(unknowns.size)
    tracemalloc.start()
    try:
        fits = columns.Fits(unknowns, samples, np.ones(12, dtype=bool), columns=every)
        left = fits.missed(np.arange(12), np.ones(12))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert left.max() < np.log(0.02)
    assert peak < 80 * every.nbytes  # six times as much with the columns of all joints


@pytest.fixture
def fits(monkeypatch):
    """Fits that leave 40 % unexplained, or what is given for exchanged efforts and for factors."""
    left = {"exchanged": 0.05, "factors": 0.4, "samples": 0}

    class Fits:
        def __init__(self, _, samples, measured):
            left["samples"] = max(left["samples"], len(samples))
            self.shape = PARTS, int(measured.sum())

        def missed(self, order, signs):
            changes = {
                "exchanged": order[1] == 2,
                "factors": (signs == 0.1).any(),
                "sign": signs[5] < 0,
                "without": np.isnan(signs[4]),
            }
            which = next((name for name, is_so in changes.items() if is_so), "")
            errors = np.full(self.shape, np.log(left.get(which, 0.4)))
            return np.where(np.isnan(signs), np.nan, errors)

    monkeypatch.setattr(columns, "Fits", Fits)
    return left


def test_what_is_said_is_far_better_than_everything_else(described, log, fits, monkeypatch):
    names = described.joint_names
    unknowns = Work(described, None, {}, {}, None, 10.0, 0.0, None).unknowns(names)
    samples = samples_of(described, log)
    factors = {names[3]: 0.1}
    told = mixed(unknowns, samples, factors)
    assert told is not None
    assert (told.joints, told.positions) == (names[1:3], False)
    assert (told.before, told.after) == pytest.approx((0.4, 0.05))
    assert SAMPLES / 2 < fits["samples"] <= SAMPLES < len(samples)
    # six joints: the product grows by 1.4 ** 6 = 7.5, 1.38 ** 6 = 6.9
    for factors_leave, said in ((0.05, False), (0.05 * 1.38, False), (0.05 * 1.4, True)):
        fits["factors"] = factors_leave
        assert (mixed(unknowns, samples, factors) is not None) is said
        assert mixed(unknowns, samples, {}) is not None
    fits["sign"] = 0.05
    assert mixed(unknowns, samples, {}) is None
    fits["sign"] = 0.4
    # the other five joints: 1.5 ** 5 = 7.6, 1.45 ** 5 = 6.4
    for without, said in ((0.05 * 1.5, True), (0.05 * 1.45, False)):
        fits["without"] = without
        assert (mixed(unknowns, samples, {}) is not None) is said
    fits["without"] = 0.4
    fits["exchanged"] = 0.26
    assert mixed(unknowns, samples, {}) is None
    fits["exchanged"] = 0.05
    monkeypatch.setattr(columns, "MOST", len(names))
    assert mixed(unknowns, samples, {}) is not None
    monkeypatch.setattr(columns, "MOST", len(names) - 1)
    assert mixed(unknowns, samples, {}) is None


@pytest.mark.parametrize(
    ("names", "positions", "efforts", "said", "mend"),
    [
        (
            "ab",
            True,
            True,
            "the recording's columns of a and b appear to be exchanged: ",
            "--rename",
        ),
        (
            "ab",
            False,
            True,
            "the recording's efforts of a and b appear to be exchanged: ",
            "these columns",
        ),
        (
            "a",
            True,
            True,
            "a appears to be reversed: ",
            "the signs of its positions and efforts, the axes",
        ),
        (
            "a",
            True,
            False,
            "the recording's positions of a appear to have the opposite",
            "this sign",
        ),
    ],
)
def test_the_words(names, positions, efforts, said, mend):
    words = Mixed(tuple(names), positions, efforts, 0.8, 0.05).words()
    assert words.startswith(said)
    assert f"Check {mend}" in words or mend in words
    assert "5 %" in words
    assert "80 %" in words
    assert "\n" not in words


def test_the_words_of_a_zero_that_is_far_off_can_be_copied_to_a_shell():
    words = Mixed(("arm joint",), True, False, 0.8, 0.05, -1.5707963).words()
    assert words.startswith("the positions of arm joint appear to need -90° added to them")
    assert "(--position-offset 'arm joint:-1.571')" in words
