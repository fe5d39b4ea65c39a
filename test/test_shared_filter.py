# SPDX-License-Identifier: Apache-2.0
"""A filter is chosen from some of many recordings, and those that are like them use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded import recording
from test_identification import ARM

import robot_dynamics as rd
from robot_dynamics.app.identification_report import write
from robot_dynamics.errors import RecordingError
from robot_dynamics.identification import Recording, identify, preparation, reduction
from robot_dynamics.identification.cutoff import choose
from robot_dynamics.identification.delays import effort_delay
from robot_dynamics.identification.fleet import key_of, located
from robot_dynamics.identification.low_pass import filtered
from robot_dynamics.identification.per_recording import Work
from robot_dynamics.identification.preparation import Even, even
from robot_dynamics.identification.recording import Stream
from robot_dynamics.identification.reduction import a_few
from robot_dynamics.identification.samples import Choice
from robot_dynamics.identification.shared_filter import (
    FEW,
    SharedFilter,
    groups,
    octaves,
)
from robot_dynamics.identification.unknowns import Unknowns

MANY = 24


def chosen_as(cutoff: float | None) -> Choice:
    return Choice(cutoff, np.zeros(0), np.zeros((0, 3)))


@pytest.fixture(scope="module")
def arm():
    return rd.load(ARM)


@pytest.fixture(scope="module")
def logs(arm):
    """Recordings of the same motion, all of which would choose alike, and one unlike the others:
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
    return [*many, Recording("log 00 odd", (odd,))]


@pytest.fixture(scope="module")
def shared(arm, logs):
    return identify(arm, logs)


def test_a_few_choose_together_and_those_unlike_them_alone(shared):
    (pooled,) = {
        each.errors.tobytes() for name, each in shared.choices.items() if "odd" not in name
    }
    assert pooled != shared.choices["log 00 odd"].errors.tobytes()
    assert len(shared.choices) == FEW + 1
    assert f"{MANY - FEW} of {MANY + 1} recordings: cut-off chosen from {FEW} similar ones" in str(
        shared.notes
    )


def test_a_few_choose_as_all_would_have(arm, logs, monkeypatch):
    monkeypatch.setattr(reduction, "FEW", 1000)
    together = identify(arm, logs[:-1])
    assert len(together.choices) == MANY
    assert not any("similar ones" in note for note in together.notes)
    few = identify(arm, logs[:FEW])
    assert {*together.cutoffs.values()} == {*few.cutoffs.values()}


def test_a_recording_that_chose_keeps_its_choice_wherever_it_is_prepared_again(arm, logs, shared):
    """A worker has no cache of what another one has prepared."""
    log = logs[0]
    like = octaves(even(log, arm.joint_names).first(2 / 3))
    nobody = SharedFilter(arm.joint_names, 60.0, chosen_as(7.0), frozenset(), like, like)
    work = Work(arm, None, {}, {}, None, None, 1 / 3, None, filters=(nobody,))
    taken = work.prepared(log)
    assert taken.cutoff == 7.0
    assert taken.choice is None
    odd = replace(nobody, choice=chosen_as(5.0), members=frozenset(["log 00 odd"]))
    for name, cutoff in (("log 00 odd", 5.0), ("log 00", 7.0)):
        again = replace(work, filters=(nobody, odd)).prepared(
            next(each for each in logs if each.source == name)
        )
        assert again.cutoff == cutoff
        assert (again.choice is odd.choice) is (name == "log 00 odd")


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
    (chose,) = {key_of(path) for path in ("log.csv", Path("log.csv"), "./log.csv", str(file), file)}
    work = Work(arm, None, {}, {}, None, None, 1 / 3, None)
    like = octaves(work.raw(file))
    shared = SharedFilter(
        arm.joint_names, 60.0, chosen_as(1.0), frozenset([chose]), 0.0 * like, 0.0 * like
    )
    work = replace(work, filters=(shared,))
    for path in ("log.csv", located("log.csv")):
        assert work.prepared(path).choice is not None


def test_the_same_recordings_choose_in_any_order(logs):
    def chosen(some):
        return {each.source for each in a_few(dict(enumerate(some))).values()}

    assert chosen(logs[::-1]) == chosen(logs[5:] + logs[:5]) == chosen(logs)
    for count in (1, 2, FEW - 1, FEW, FEW + 1, 2 * FEW - 1, MANY + 1):
        assert len(chosen(logs[:count])) == min(count, FEW)


def sines(*frequencies: float, rate: float = 64.0) -> Even:
    """A recording whose joints' rates are sines of these frequencies, in two pieces."""
    pieces = []
    for begin in (0.0, 100.0):
        time = begin + np.arange(1024) / rate
        rates = np.sin(2 * np.pi * time[:, None] * frequencies)
        nothing = np.zeros_like(rates)
        names = tuple("abc"[: len(frequencies)])
        pieces.append(Stream(names, time, nothing, rates, nothing))
    return Even("sines", names, (True,) * len(names), names, tuple(pieces), rate, ())


@pytest.mark.parametrize(
    ("frequency", "octave"), [(31.0, 0), (17.0, 0), (15.0, 1), (9.0, 1), (7.0, 2), (0.003, 11)]
)
def test_power_is_found_in_its_octave(frequency, octave):
    (share,) = octaves(sines(frequency)).T
    assert share.sum() == pytest.approx(1.0)
    assert share.argmax() == octave
    assert share[octave] > 0.75


def test_groups_have_the_same_joints_and_rate_in_any_order():
    plain, other = sines(1.0), replace(sines(1.0), joints=("b",))
    rates = {"a": 100.0, "b": 104.0, "c": 109.0, "d": 112.0, "e": 50.0, "f": 111.0}
    few = [(name, replace(plain, rate=rate)) for name, rate in rates.items()]
    few.append(("g", replace(other, rate=100.0)))
    for some in (few, few[::-1], few[3:] + few[:3]):
        names = [[name for name, _ in group] for group in groups(some)]
        assert names == [["e"], ["a", "b", "c"], ["d", "f"], ["g"]]
    assert groups([]) == []


def test_those_that_choose_together_are_cross_validated_as_one(arm):
    """A clear recording decides for those that show nothing."""
    clear = even(recording(arm, 20.0, 100.0, seed=1), arm.joint_names)
    stream, nothing = clear.pieces[0], np.random.default_rng(0)
    noise = replace(stream, effort=nothing.normal(size=stream.effort.shape))
    vague = replace(clear, pieces=(noise,))
    unknowns = Unknowns.of(arm, None)
    alone = choose(unknowns, clear)
    found = SharedFilter.of(unknowns, [("clear", clear), ("vague", vague)])
    assert found.members == {"clear", "vague"}
    assert len(found.choice.candidates) == len(alone.candidates)
    assert choose(unknowns, vague).candidates.size == 0  # no filter is better than another
    joined = replace(clear, pieces=(*clear.pieces, *vague.pieces))
    assert found.choice.errors.tobytes() == choose(unknowns, joined).errors.tobytes()


def test_a_recording_may_be_unlike_each_of_those_that_chose(arm):
    """But not unlike all of them."""
    few = [even(recording(arm, 20.0, 100.0, seed=k), arm.joint_names) for k in range(2)]
    found = SharedFilter.of(Unknowns.of(arm, None), [*zip("ab", few, strict=True)])
    shares = np.array([octaves(each) for each in few])
    assert (shares[0] != shares[1]).any()
    assert (found.lowest == shares.min(axis=0)).all()
    assert (found.highest == shares.max(axis=0)).all()


def test_of_other_joints_a_recording_chooses_anew(arm, logs):
    """If most recordings lack a joint that it has."""
    nothing = np.zeros((12, 3))
    members = frozenset(["log 00"])
    work = Work(
        arm, None, {}, {}, None, None, 0.0, None,
        filters=(SharedFilter(arm.joint_names, 60.0, chosen_as(7.0), members, nothing, nothing),),
    )  # fmt: skip
    assert work.prepared(logs[0]).cutoff == 7.0
    fewer = work.prepared(logs[0], arm.joint_names[:2])
    assert fewer.joints == arm.joint_names[:2]
    assert fewer.cutoff != 7.0
    assert fewer.choice.errors.shape[1] == 2


def test_a_few_samples_of_each_recording_choose(arm, logs, monkeypatch):
    """However many and long they are."""
    taken = []

    def of(unknowns, few):
        taken.extend(sum(map(len, raw.pieces)) for _, raw in few)
        return SharedFilter.of(unknowns, few)

    most = 2400
    monkeypatch.setattr(preparation, "MOST", most)
    monkeypatch.setattr(preparation, "LONGEST", 1.0)
    monkeypatch.setattr(reduction, "SharedFilter", type("Spied", (), {"of": of}))
    identify(arm, logs)
    assert len(taken) == FEW
    assert max(taken) == pytest.approx(most / FEW, abs=2)


def test_long_recordings_choose_by_excerpts(arm, monkeypatch):
    raw = even(recording(arm, 60.0, 100.0, seed=2), arm.joint_names)
    unknowns = Unknowns.of(arm, None)
    short = choose(unknowns, raw.excerpt(1500 / preparation.MOST))
    assert short.errors.tobytes() != choose(unknowns, raw).errors.tobytes()
    monkeypatch.setattr(preparation, "MOST", 1500)
    monkeypatch.setattr(preparation, "LONGEST", 1.0)
    assert short.errors.tobytes() == choose(unknowns, raw).errors.tobytes()


def test_two_recordings_choose_together_unless_the_cut_off_is_given(arm, logs, tmp_path):
    other = replace(recording(arm, 10.0, 60.0, noise=0.03, seed=5), source="other")
    said: list[str] = []
    result = identify(arm, [logs[0], other], progress=said.append)
    one, two = result.choices.values()
    assert one.errors.tobytes() == two.errors.tobytes()
    assert any("reading" in line for line in said)
    page = write(result, tmp_path)["page"].read_text()
    assert page.count("prediction error by cut-off frequency") == 1
    assert "log 00, other: filtered at " in page
    said.clear()
    given = identify(arm, [logs[0], other], cutoff=8.0, progress=said.append)
    assert not any("reading" in line for line in said)
    assert not given.choices
    assert not given.notes
    assert {*given.cutoffs.values()} == {8.0}


def test_if_those_that_choose_are_unusable_others_are_used(arm, logs, monkeypatch):
    monkeypatch.setattr(reduction, "FEW", 2)
    (stream,) = logs[0].streams
    broken = replace(logs[0], streams=(replace(stream, effort=0.0 * stream.effort),))
    some = [replace(broken, source="a"), logs[1], replace(broken, source="log 02"), logs[3]]
    result = identify(arm, some)
    assert [*result.cutoffs] == ["log 01", "log 03"]
    left_out = [line.split(":")[1] for line in result.warnings if line.startswith("left out")]
    assert left_out == [" a", " log 02"]
    with pytest.raises(RecordingError, match="a: no efforts"):
        identify(arm, [some[0], some[2]])


def test_a_filter_leaves_half_of_short_recordings(arm):
    """Slow candidates would leave nothing of them."""
    raw = even(recording(arm, 30.0, 100.0, seed=2), arm.joint_names)
    stream = raw.pieces[0]
    parts = [slice(k, k + 404) for k in range(0, 7 * 404, 404)]
    short = replace(raw, pieces=tuple(map(stream.rows, parts)))
    assert raw.left(0.5) > 0.8
    assert short.left(0.5) == 0.0
    assert short.left(1.0) == pytest.approx(0.5, abs=0.01)
    unknowns = Unknowns.of(arm, None)
    assert choose(unknowns, raw).candidates[0] == 0.5
    found = choose(unknowns, short)
    assert found.candidates[0] == 1.0
    assert len(short.filtered(found.cutoff).stretches) == len(parts)
    assert short.filtered(1.0, rests=True).duration == pytest.approx(14.0, abs=1.0)


def test_an_excerpt_is_spread_over_the_whole_time(arm):
    raw = even(recording(arm, 200.0, 50.0, seed=2), arm.joint_names)
    assert raw.excerpt() is raw
    part = raw.excerpt(5_000 / preparation.MOST)
    assert sum(map(len, part.pieces)) == pytest.approx(5_000, rel=0.01)
    begins = [each.time[0] for each in part.pieces]
    assert begins == pytest.approx([0.0, 40.0, 80.0, 120.0, 160.0], abs=0.1)
    for each in part.pieces:
        assert np.diff(each.time) == pytest.approx(1 / 50.0)
        k = round(each.time[0] * 50.0)
        assert (each.position == raw.pieces[0].position[k : k + len(each)]).all()
    first = raw.first(0.25)
    assert [*map(len, first.pieces)] == [2500]
    assert [*map(len, part.first(0.5).pieces)] == [1000, 1000, 500]
    assert len(part.first(0.4).pieces) == 2


def test_of_a_short_stretch_no_part_is_too_short_to_be_filtered(arm, monkeypatch):
    """As between two gaps: a part of it may have one sample, or none."""
    raw = even(recording(arm, 60.0, 100.0, seed=2), arm.joint_names)
    (whole,) = raw.pieces
    raw = replace(
        raw, pieces=tuple(whole.rows(slice(*x)) for x in ((3000,), (3010, 3015), (3020, 6000)))
    )
    monkeypatch.setattr(preparation, "MOST", 1000)
    monkeypatch.setattr(preparation, "LONGEST", 1.0)
    unknowns = Unknowns.of(arm, None)
    assert effort_delay(unknowns, raw.first(0.75)) == 0
    few = [(name, raw.excerpt(1 / 2)) for name in "ab"]
    assert SharedFilter.of(unknowns, few).choice.candidates.size
    total = sum(map(len, raw.pieces))
    for part in (raw.first(3001 / total), raw.with_efforts_moved(4), raw.with_efforts_moved(-4)):
        assert part.filtered(None).stretches
        assert min(map(len, part.pieces)) > 3


def test_a_stretch_at_another_rate_has_the_same_delay(arm):
    """In time, not in samples."""

    def late(rate: float, begin: float) -> Even:
        raw = even(recording(arm, 30.0, rate, seed=2), arm.joint_names)
        (piece,) = raw.pieces
        k = round(0.05 * rate)
        told = replace(piece.rows(slice(k, None)), effort=piece.effort[:-k])
        return replace(raw, pieces=(replace(told, time=told.time + begin),))

    raw, slow = late(500.0, 0.0), late(20.0, 40.0)
    raw = replace(raw, pieces=(*raw.pieces, *slow.pieces))
    delay = effort_delay(Unknowns.of(arm, None), raw)
    assert delay == 25
    before, after = (x.pieces[1] for x in (raw, raw.with_efforts_moved(delay)))
    np.testing.assert_array_equal(after.position, before.position[:-1])
    np.testing.assert_array_equal(after.effort, before.effort[1:])


def test_an_excerpt_of_fast_samples_lasts_as_long():
    """Slow candidates need parts that are longer than their transients."""
    stream, *_ = sines(1.0, rate=10_000.0).pieces
    raw = replace(sines(1.0, rate=10_000.0), pieces=1000 * (stream,))
    assert raw.excerpt() is raw  # 102 s
    rows = np.arange(600_000)
    long = replace(stream.rows(rows % len(stream)), time=rows / 10_000.0)
    raw = replace(raw, pieces=(long,))
    (part,) = raw.excerpt(1 / 12).pieces
    assert len(part) == pytest.approx(20.0 * 10_000.0, abs=1)
    assert replace(raw, pieces=(part,)).left(0.5) == pytest.approx(0.8, abs=1e-3)


def test_what_a_filter_leaves_is_of_stretches_that_last_long_enough():
    stream, *_ = sines(1.0, rate=64.0).pieces
    raw = sines(1.0, rate=64.0)

    def of(*lengths: int) -> Even:
        return replace(raw, pieces=tuple(stream.rows(slice(k)) for k in lengths))

    assert of(640, 640).left(1.0) == pytest.approx(0.8)
    assert of(640, 640, *(40 * [32])).left(1.0) == pytest.approx(0.8)  # 0.5 s are never used
    assert of(640, 180).left(1.0) == pytest.approx(512 / 820)  # of the second less than 1 s is left
    assert of(96).left(4.0) == pytest.approx(64 / 96)
    assert of(95).left(4.0) == 0.0
    assert of(32).left(4.0) == 0.0
    for k in (191, 192, 193):  # as filtered does
        left = of(k).left(1.0)
        try:
            assert sum(map(len, of(k).filtered(1.0, rests=True).stretches)) > 0
            assert left > 0
        except RecordingError:
            assert left == 0.0


@pytest.mark.parametrize(
    ("frequencies", "rate", "is_so"),
    [
        ((1.0, 0.3), 64.0, True),
        ((1.0, 0.3), 57.0, False),
        ((20.0, 0.3), 64.0, False),  # above the cut-off
        ((1.0, 5.0), 64.0, False),  # in the octave below it
        ((0.5, 0.6), 64.0, True),  # far below it
    ],
)
def test_a_recording_is_like_those_that_chose(frequencies, rate, is_so):
    like = octaves(sines(1.0, 0.3))
    found = SharedFilter(("a", "b"), 64.0, chosen_as(8.0), frozenset(), like, like)
    assert found.suits(sines(*frequencies, rate=rate)) is is_so
    assert not replace(found, joints=("b", "a")).suits(sines(*frequencies, rate=rate))
    assert replace(found, rate=1.08 * rate).suits(replace(sines(1.0, 0.3), rate=rate))


def test_noise_that_is_missing_is_not_alike():
    """A recording with less noise than those from which the filter was chosen needs no such
    filter."""
    rng = np.random.default_rng(0)

    def noisy(size: float) -> Even:
        raw = sines(1.0)
        pieces = tuple(
            replace(each, velocity=each.velocity + size * rng.normal(size=(1024, 1)))
            for each in raw.pieces
        )
        return replace(raw, pieces=pieces)

    like = octaves(noisy(0.1))
    found = SharedFilter(("a",), 64.0, chosen_as(8.0), frozenset(), like, like)
    assert found.suits(noisy(0.12))
    assert not found.suits(noisy(0.03))
    assert not found.suits(noisy(0.4))


@pytest.mark.parametrize("still", [False, True])
def test_columns_of_friction_are_filtered_as_the_efforts(arm, still):
    """Each equals the result of SciPy's filter, also where a joint does not move at all."""
    from scipy.signal import butter, sosfiltfilt

    from robot_dynamics.identification.friction_laws import STIFFNESS, raw_columns
    from robot_dynamics.identification.preparation import differences

    log = recording(arm, 8.0, 100.0)
    (stream,) = log.streams
    if still:
        frozen = stream.velocity.copy()
        frozen[:, 1] = 0.0
        stream = replace(stream, velocity=frozen)
    found = filtered(stream, 10.0, (True,) * 3, np.arange(len(stream)))
    whole = filtered(stream, 10.0, (True,) * 3)
    sections = butter(4, 10.0, fs=100.0, output="sos")
    qd = sosfiltfilt(sections, stream.velocity, axis=0, padlen=30)
    assert found.qd == pytest.approx(qd, abs=1e-12)
    tau = sosfiltfilt(sections, stream.effort, axis=0, padlen=30)
    assert found.tau == pytest.approx(tau, abs=1e-9)
    qdd = differences(qd, 0.01)
    for j in range(3):
        columns = raw_columns(qd[:, j], True, qdd[:, j])
        right = sosfiltfilt(sections, columns, axis=0, padlen=30)
        right[:, STIFFNESS] = sosfiltfilt(sections, stream.position[:, j], padlen=30)
        assert whole.friction[:, j] == pytest.approx(right[whole.place], abs=1e-11)


def test_recordings_of_one_robot_are_alike(arm):
    raws = [even(recording(arm, 20.0, 100.0, seed=k), arm.joint_names) for k in range(16)]
    like = [octaves(each) for each in raws[:8]]
    found = SharedFilter(
        arm.joint_names, 100.0, chosen_as(10.0), frozenset(),
        np.min(like, axis=0), np.max(like, axis=0),
    )  # fmt: skip
    assert sum(found.suits(each) for each in raws[8:]) >= 7
