# SPDX-License-Identifier: Apache-2.0
"""Of many recordings a few choose the filter, and those that are like them take it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from recorded import recording
from test_identification import ARM

import robot_dynamics as rd
from robot_dynamics.identification import Recording, identify
from robot_dynamics.identification.fleet import located
from robot_dynamics.identification.per_recording import Work, place
from robot_dynamics.identification.preparation import Even, even, filtered
from robot_dynamics.identification.recording import Stream
from robot_dynamics.identification.shared_filter import (
    FEW,
    MANY,
    OCTAVES,
    SharedFilter,
    octaves,
    shared_filter,
)

identify_module = importlib.import_module("robot_dynamics.identification.identify")
_choosing = identify_module._choosing
PARAMETERS = 1e-9


@pytest.fixture(scope="module")
def arm():
    return rd.load(ARM)


@pytest.fixture(scope="module")
def logs(arm):
    """The same motion again and again, so that all would choose alike, and one unlike the others:
    its last joint shakes."""
    one = recording(arm, 10.0, 60.0, noise=0.03)
    (stream,) = one.streams
    w = 2 * np.pi * 20.0
    shake = np.zeros_like(stream.position)
    shake[:, 2] = np.sin(w * stream.time)
    odd = replace(
        stream, position=stream.position + 0.01 * shake, velocity=stream.velocity + 0.5 * shake
    )
    many = [replace(one, source=f"log {k:02}") for k in range(MANY)]
    return [*many, Recording("log 01 odd", (odd,))]


@pytest.fixture(scope="module")
def shared(arm, logs):
    return identify(arm, logs)


def test_a_few_choose_and_those_unlike_them(shared):
    assert len(shared.choices) == FEW
    assert "log 01 odd" in shared.choices
    assert "log 00" in shared.choices
    alike = MANY + 1 - FEW
    assert f"{alike} recordings use the cut-off that 7 similar recordings selected" in shared.notes


def test_what_is_identified_is_the_same_as_if_each_had_chosen(arm, logs, shared, monkeypatch):
    monkeypatch.setattr(identify_module, "MANY", 1000)
    alone = identify(arm, logs)
    assert len(alone.choices) == len(logs)
    assert alone.cutoffs == shared.cutoffs
    assert not any("similar recordings selected" in note for note in alone.notes)
    assert [*shared.parameters.values()] == pytest.approx(
        [*alone.parameters.values()], rel=PARAMETERS, abs=1e-12
    )


def test_a_recording_that_chose_keeps_its_choice_wherever_it_is_prepared_again(arm, logs, shared):
    """A worker has no cache of what another has prepared."""
    log, own = logs[0], shared.cutoffs["log 00"]
    like = octaves(even(log, arm.joint_names))
    other = SharedFilter(arm.joint_names, own / 2, 60.0, like, like)
    work = Work(arm, None, {}, {}, None, None, 1 / 3, None, shared=other)
    taken = work.prepared(log)
    assert taken.cutoff == own / 2
    assert taken.choice is None
    chosen = replace(work, chose=frozenset(["log 00"])).prepared(log)
    assert chosen.cutoff == own
    assert chosen.choice is not None


def test_a_file_that_chose_is_known_by_any_path(arm, logs, tmp_path, monkeypatch):
    """Workers are given absolute paths, whatever the user gave."""
    (stream,) = logs[0].streams
    names = [
        f"{each}/{what}" for what in ("position", "velocity", "effort") for each in stream.names
    ]
    columns = (stream.time[:, None], stream.position, stream.velocity, stream.effort)
    file = tmp_path / "log.csv"
    np.savetxt(
        file, np.hstack(columns), delimiter=",", header=",".join(["time", *names]), comments=""
    )
    monkeypatch.chdir(tmp_path)
    (chose,) = {place(path) for path in ("log.csv", Path("log.csv"), "./log.csv", str(file), file)}
    work = Work(arm, None, {}, {}, None, None, 1 / 3, None)
    like = octaves(work.raw(file))
    shared = SharedFilter(arm.joint_names, 1.0, 60.0, like, like)
    work = replace(work, shared=shared, chose=frozenset([chose]))
    for path in ("log.csv", located("log.csv")):
        assert work.prepared(path).choice is not None


def test_the_same_recordings_choose_in_any_order(logs):
    def chosen(some):
        return {each.source for each in _choosing(dict(enumerate(some))).values()}

    assert len(chosen(logs)) == 7
    assert chosen(logs[::-1]) == chosen(logs[5:] + logs[:5]) == chosen(logs)
    assert len(chosen(logs[:MANY])) == FEW
    assert chosen(logs[: MANY - 1]) == set()


def sines(*frequencies: float, rate: float = 64.0) -> Even:
    """A recording whose joints' rates are sines of these frequencies, in two pieces."""
    pieces = []
    for begin in (0.0, 100.0):
        time = begin + np.arange(1024) / rate
        rates = np.sin(2 * np.pi * time[:, None] * frequencies)
        nothing = np.zeros_like(rates)
        names = tuple("abc"[: len(frequencies)])
        pieces.append((time, Stream(names, time, nothing, rates, nothing)))
    return Even("sines", names, (True,) * len(names), names, tuple(pieces), rate, ())


@pytest.mark.parametrize(
    ("frequency", "octave"), [(31.0, 0), (17.0, 0), (15.0, 1), (9.0, 1), (7.0, 2), (0.003, 11)]
)
def test_power_is_found_in_its_octave(frequency, octave):
    (share,) = octaves(sines(frequency)).T
    assert share.sum() == pytest.approx(1.0)
    assert share.argmax() == octave
    assert share[octave] > 0.75


@dataclass
class Member:
    """A recording that chose."""

    cutoff: float | None
    joints: tuple[str, ...] = ("a",)
    rate: float = 100.0
    octaves: np.ndarray | None = None

    def __post_init__(self):
        self.octaves = np.full((OCTAVES, 1), 1 / OCTAVES) if self.octaves is None else self.octaves


@pytest.mark.parametrize(
    ("members", "cutoff"),
    [
        ([Member(10.0), Member(12.0), Member(20.0)], 12.0),
        ([Member(20.0), Member(10.0)], 10.0),
        ([Member(10.0), Member(21.0)], "nothing"),
        ([Member(None), Member(None)], None),
        ([Member(None), Member(10.0)], "nothing"),
        ([Member(10.0)], "nothing"),
        ([], "nothing"),
        ([Member(10.0), Member(10.0, rate=102.0)], "nothing"),
        ([Member(10.0), Member(10.0, joints=("b",))], "nothing"),
    ],
)
def test_those_that_chose_must_agree(members, cutoff):
    found = shared_filter(members)
    assert (found is None) == (cutoff == "nothing")
    if found is not None:
        assert found.cutoff == cutoff


@pytest.mark.parametrize(
    ("frequencies", "rate", "is_so"),
    [
        ((1.0, 0.3), 64.0, True),
        ((1.0, 0.3), 63.0, False),
        ((20.0, 0.3), 64.0, False),  # above the cut-off
        ((1.0, 5.0), 64.0, False),  # in the octave below it
        ((0.5, 0.6), 64.0, True),  # far below it
    ],
)
def test_a_recording_is_like_those_that_chose(frequencies, rate, is_so):
    like = octaves(sines(1.0, 0.3))
    found = SharedFilter(("a", "b"), 8.0, 64.0, like, like)
    assert found.suits(sines(*frequencies, rate=rate)) is is_so
    assert not replace(found, joints=("b", "a")).suits(sines(*frequencies, rate=rate))


def test_noise_that_is_missing_is_not_alike():
    """A recording with less noise than those that chose needs no such filter."""
    rng = np.random.default_rng(0)

    def noisy(size: float) -> Even:
        raw = sines(1.0)
        pieces = tuple(
            (time, replace(each, velocity=each.velocity + size * rng.normal(size=(1024, 1))))
            for time, each in raw.pieces
        )
        return replace(raw, pieces=pieces)

    like = octaves(noisy(0.1))
    found = SharedFilter(("a",), 8.0, 64.0, like, like)
    assert found.suits(noisy(0.12))
    assert not found.suits(noisy(0.03))
    assert not found.suits(noisy(0.4))


@pytest.mark.parametrize("still", [False, True])
def test_columns_of_friction_are_filtered_as_the_efforts(arm, still):
    """Each as scipy's filter does, also where a joint does not move at all."""
    from scipy.signal import butter, sosfiltfilt

    from robot_dynamics.identification.friction_laws import STIFFNESS, raw_columns

    log = recording(arm, 8.0, 100.0)
    (stream,) = log.streams
    if still:
        frozen = stream.velocity.copy()
        frozen[:, 1] = 0.0
        stream = replace(stream, velocity=frozen)
    time = stream.time
    found = filtered(time, stream, 10.0, (True,) * 3, np.arange(len(time)))
    whole = filtered(time, stream, 10.0, (True,) * 3)
    sections = butter(4, 10.0, fs=100.0, output="sos")
    qd = sosfiltfilt(sections, stream.velocity, axis=0, padlen=30)
    assert found.qd == pytest.approx(qd, abs=1e-12)
    tau = sosfiltfilt(sections, stream.effort, axis=0, padlen=30)
    assert found.tau == pytest.approx(tau, abs=1e-9)
    for j in range(3):
        right = sosfiltfilt(sections, raw_columns(qd[:, j], True), axis=0, padlen=30)
        right[:, STIFFNESS] = sosfiltfilt(sections, stream.position[:, j], padlen=30)
        assert whole.friction[:, j] == pytest.approx(right[whole.place], abs=1e-11)


def test_recordings_of_one_robot_are_alike(arm):
    raws = [even(recording(arm, 20.0, 100.0, seed=k), arm.joint_names) for k in range(16)]
    like = [octaves(each) for each in raws[:8]]
    found = SharedFilter(arm.joint_names, 10.0, 100.0, np.min(like, axis=0), np.max(like, axis=0))
    assert sum(found.suits(each) for each in raws[8:]) >= 7
