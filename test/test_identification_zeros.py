# SPDX-License-Identifier: Apache-2.0
"""Encoders with wrong zeros are found, with the offset, unless something else explains it."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import SIX_AXIS, changed, recording
from test_identification import heavier

import robot_dynamics as rd
from robot_dynamics.app.cli import main
from robot_dynamics.app.shared_options import offsets
from robot_dynamics.errors import InputError
from robot_dynamics.identification import Recording, identify
from robot_dynamics.identification.fit import fit
from robot_dynamics.identification.fleet import one_blas_thread
from robot_dynamics.identification.per_recording import Work, reduced, zero_equations
from robot_dynamics.identification.replay import replay
from robot_dynamics.identification.unknowns import Unknowns
from robot_dynamics.identification.zeros import Linearised, Zero, _judged, better, zeros
from robot_dynamics.mechanism import Mechanism

OFF = np.radians(2.0)
TOLD = (1, 2, 3)
"""The joints whose zeros a minute of motion determines; those of the first, about a vertical axis,
and of the last, which turns its body, cannot be determined"""


@pytest.fixture(scope="module")
def described() -> Mechanism:
    return rd.load(SIX_AXIS)


@pytest.fixture(scope="module")
def truth(described) -> Mechanism:
    return changed(described, seed=3)


@pytest.fixture(scope="module")
def log(truth):
    return recording(truth, 60.0, 100.0, noise=0.02, seed=3)


@pytest.fixture(scope="module")
def right(described, log):
    return identify(described, log, cutoff=10.0)


def doubtful(found) -> list[str]:
    return [each.joint for each in found if each.doubtful]


def said(described: Mechanism, log: Recording) -> tuple[Zero, ...]:
    """Without evaluating the model, which takes longer."""
    work = Work(described, None, {}, {}, None, 10.0, 1 / 3, None)
    normal, summary = reduced(work, log)
    with one_blas_thread():
        found = fit(work.unknowns(summary.joints), normal)
        return zeros(found, lambda at: zero_equations(work, log, at))


def test_zeros_that_are_right_are_not_doubted(described, right):
    assert doubtful(right.zeros) == []
    assert [each.determined for each in right.zeros] == [k in (*TOLD, 4) for k in range(6)]
    assert not any("zero" in words for words in right.warnings)
    for each in right.zeros[1:4]:
        assert abs(each.offset) < 3.5 * each.deviation < 3.5 * np.radians(0.3)


def test_a_light_body_is_not_taken_for_a_zero(described, truth):
    log = recording(truth, 20.0, 100.0, noise=0.02)
    assert doubtful(said(heavier(described, 1e-3, "upper_arm"), log)) == []


@pytest.mark.parametrize(
    ("joint", "off"), [(1, OFF), (2, -OFF), (3, OFF), (1, np.radians(8.0)), (2, np.radians(10.0))]
)
def test_a_zero_that_is_off_is_named_with_its_offset(described, log, joint, off):
    name = described.joint_names[joint]
    found = said(described, log.shifted({name: off}))
    assert doubtful(found) == [name]
    zero = found[joint]
    assert zero.offset == pytest.approx(-off, abs=3.5 * zero.deviation)
    assert zero.deviation < np.radians(0.3)
    assert zero.less > 0.005


def test_the_gains_of_drives_do_not_multiply_friction(described, log):
    """Otherwise the gains of a wrist with almost only friction are meaningless, and distort the
    other offsets."""
    work = Work(described, None, {}, {}, None, 10.0, 1 / 3, None)
    normal, summary = reduced(work, log)
    with one_blas_thread():
        at = Linearised.about(fit(work.unknowns(summary.joints), normal))
        bodies = 10 * len(at.unknowns.bodies) + len(at.unknowns.rotors)
        p, n = at.basis.shape[1], len(at.gains)

        def gains(x):
            square = zero_equations(work, log, replace(at, x=x)).square.sum(axis=0)
            return np.array([square[j, p + j, p + j] for j in range(n)])

        mobile = at.unknowns.places[0][:bodies]
        of_friction, of_bodies = at.x.copy(), np.zeros_like(at.x)
        of_friction[mobile], of_bodies[mobile] = 0.0, at.x[mobile]
        assert (gains(of_friction) == 0).all()
        assert (gains(of_bodies) > 0).all()


@pytest.mark.parametrize("joint", [0, 5])
def test_what_nobody_can_tell_is_not_said(described, log, joint):
    name = described.joint_names[joint]
    found = said(described, log.shifted({name: np.radians(10.0)}))
    assert doubtful(found) == []
    assert not found[joint].determined


def test_the_offset_that_is_named_mends_the_model(described, log, right):
    name = described.joint_names[3]
    wrong = log.shifted({name: OFF})
    result = identify(described, wrong, cutoff=10.0, position_offset={name: -OFF})
    assert doubtful(result.zeros) == []
    assert result.errors.relative == pytest.approx(right.errors.relative, rel=1e-9)
    # the offset is relative to the recorded positions
    result = identify(described, wrong, cutoff=10.0, position_offset={name: OFF})
    offset = result.zeros[3].offset
    (words,) = (each for each in result.warnings if "zero" in each)
    assert words.startswith(
        f"{name}: its encoder zero may be wrong: with {np.degrees(offset):+.2f}°"
    )
    assert "\n" not in words
    assert offset == pytest.approx(-2 * OFF, rel=0.2)
    assert f"--position-offset {name}:{offset + OFF:.4g})" in words


def test_two_zeros_that_are_off_are_both_named(described, log):
    names = [described.joint_names[k] for k in (1, 3)]
    found = said(described, log.shifted({names[0]: -OFF, names[1]: 2 * OFF}))
    assert doubtful(found) == names
    for k, off in ((1, OFF), (3, -2 * OFF)):
        assert found[k].offset == pytest.approx(off, abs=3.5 * found[k].deviation)


def test_friction_and_gains_are_not_taken_for_a_zero(truth, described):
    """Joints with large offsets and viscous friction, and torque constants that are some percent
    off."""
    links = tuple(
        replace(
            link,
            joint=replace(
                link.joint, friction=replace(link.joint.friction, offset=9.0, viscous=9.0)
            ),
        )
        if link.joint.moves
        else link
        for link in truth.links
    )
    log = recording(replace(truth, links=links), 60.0, 100.0, noise=0.02)
    scale = dict(zip(described.joint_names, (1.06, 0.95, 1.05, 0.93, 1.04, 0.97), strict=True))
    assert doubtful(said(described, log.scaled(scale))) == []


def test_zeros_are_the_same_in_any_order_of_recordings_and_units(described, truth):
    name = described.joint_names[3]
    logs = [recording(truth, 8.0, 30.0, noise=0.01, seed=k).shifted({name: OFF}) for k in range(9)]
    logs = [replace(each, source=f"{k}") for k, each in enumerate(logs)]
    one = identify(described, logs, cutoff=10.0)
    assert doubtful(one.zeros) == [name]
    other = identify(described, [logs[k] for k in (4, 8, 0, 2, 7, 1, 3, 6, 5)], cutoff=10.0)
    for a, b in zip(one.zeros, other.zeros, strict=True):
        assert (a.offset, a.deviation, a.less) == pytest.approx(
            (b.offset, b.deviation, b.less), rel=1e-9, abs=1e-12
        )


def test_a_joint_without_efforts_spoils_nothing(described, log):
    names = described.joint_names
    (stream,) = log.shifted({names[3]: OFF}).streams
    effort = stream.effort.copy()
    effort[:, 5] = np.nan
    rng = np.random.default_rng(0)
    far = rng.choice(len(effort), 10, replace=False)
    effort[far, 2] += 1e3
    less = Recording("less", (replace(stream, effort=effort),))
    assert doubtful(said(described, less)) == [names[3]]


def test_nothing_is_said_of_a_load(described, log):
    payload = described.links[-1].name
    (stream,) = log.streams
    few = replace(log, streams=(stream.rows(slice(0, 800)),))
    assert identify(described, few, cutoff=10.0, payload=payload).zeros == ()


@pytest.mark.parametrize(
    ("offset", "deviation", "told", "is_so"),
    [
        (0.0105, 0.0020, True, True),
        (0.0095, 0.0001, True, False),  # too small to matter
        (-0.0200, 0.0041, True, False),  # less than five deviations
        (-0.0200, 0.0039, True, True),
        (0.4400, 0.0870, True, True),
        (0.4500, 0.0880, False, False),  # known to five degrees only
    ],
)
def test_a_zero_is_in_doubt_if_it_is_large_and_sure(described, offset, deviation, told, is_so):
    unknowns = Unknowns.of(described)
    offsets, deviations = np.zeros(6), np.full(6, 0.001)
    offsets[2], deviations[2] = offset, deviation

    def held_out(joint):
        return np.array([4.0, 4.0, 8.0]) if joint is not None else np.array([1.0, 1.0, 2.0])

    system = SimpleNamespace(offset=offsets, deviation=deviations, held_out=held_out)
    found = [*_judged(system, unknowns)]
    assert [each.doubtful for each in found] == [False, False, is_so, False, False, False]
    assert found[2].determined is told
    if is_so:
        assert found[2].less == pytest.approx(0.5)
    worse = SimpleNamespace(
        offset=offsets,
        deviation=deviations,
        held_out=lambda joint: held_out(0 if joint is None else None),
    )
    assert not any(each.doubtful for each in _judged(worse, unknowns))


@pytest.mark.parametrize(
    ("gains", "is_so"),
    [
        ([1.0, 1.0, 1.0, 1.1], True),
        ([1.0, 1.0, 1.0, -2.0], False),
        ([-1.0, -1.0, -1.1], False),
        # mean 1, deviation of the mean 0.5 √2 / √2
        ([0.55, 1.45], True),
        ([0.45, 1.55], False),
        ([9.0], False),
        ([], False),
    ],
)
def test_gains_on_held_out_parts_must_exceed_their_scatter(gains, is_so):
    assert better(np.array(gains)) is is_so


def test_what_is_said_of_a_sliding_joint_and_of_the_first():
    zero = Zero("rail", False, True, -0.0123, 0.001, 0.25, True)
    assert "-12.30 mm (± 1.00 mm)" in zero.words()
    assert "are 25 % smaller" in zero.words()
    assert "--position-offset rail:0.0877)" in zero.words(0.1)
    assert "--position-offset 'a rail:-0.0123')" in replace(zero, joint="a rail").words()
    assert "Check the zero, and how the base is mounted (" in zero.words()
    assert "Check the zero (" in replace(zero, at_base=False).words()


def test_offsets_are_added_to_positions_alone(log):
    (before,), (after,) = log.streams, log.shifted({log.names[1]: 0.5}).streams
    assert after.position == pytest.approx(before.position + 0.5 * np.eye(6)[1])
    assert np.array_equal(after.velocity, before.velocity)
    assert np.array_equal(after.effort, before.effort)
    with pytest.raises(InputError, match="nobody"):
        log.shifted({"nobody": 1.0})
    with pytest.raises(InputError, match="position offset of joint2"):
        log.shifted({"joint2": float("nan")})
    with pytest.raises(
        InputError, match=r"found 30\.0, expected a finite offset of at most 2π rad"
    ):
        log.shifted({"joint2": 30.0})  # degrees
    log.shifted({"joint2": -2 * np.pi})


def test_a_replay_takes_the_offset(described, log):
    moved = replay(
        [described], log.shifted({"joint2": 0.3}), cutoff=10.0, position_offset={"joint2": -0.3}
    )
    (moved,), (still,) = moved.torques[0], replay([described], log, cutoff=10.0).torques[0]
    assert moved == pytest.approx(still, abs=1e-9)


def test_the_command_says_it_in_json_and_in_the_report(described, log, tmp_path, capsys):
    (stream,) = log.shifted({"joint4": OFF}).streams
    stream = stream.rows(slice(None, None, 4))
    table = np.hstack([stream.time[:, None], stream.position, stream.velocity, stream.effort])
    fields = ("position", "velocity", "effort")
    header = ["time", *(f"{each}/{field}" for field in fields for each in stream.names)]
    path = tmp_path / "log.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="")
    options = ["--out", str(tmp_path / "out"), "--json", "--cutoff", "8"]
    assert main(["identify", SIX_AXIS, str(path), *options]) == 0
    told = json.loads(capsys.readouterr().out)["zeros"]
    assert [each["joint"] for each in told if each["doubtful"]] == ["joint4"]
    assert told[3]["offset"] == pytest.approx(-OFF, rel=0.2)
    assert told[3]["error_reduction"] > 0.01
    assert told[0]["offset"] is None
    assert told[0]["deviation"] is None
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<h2>Encoder zeros</h2>" in page
    assert "not determined" in page


def test_the_command_takes_offsets():
    assert offsets(["a:0.5", "b:-1e-3"]) == {"a": 0.5, "b": -1e-3}
    with pytest.raises(InputError, match="--position-offset a: found 'x'"):
        offsets(["a:x"])
    with pytest.raises(InputError, match="--position-offset: found 'a', expected JOINT:NUMBER"):
        offsets(["a"])
