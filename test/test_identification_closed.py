# SPDX-License-Identifier: Apache-2.0
"""Closed chains from recordings of their motors: all legs, the platform, and friction."""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from recorded import changed
from test_identification_files import csv_of

import robot_dynamics as rd
from robot_dynamics.app import identification_report as report
from robot_dynamics.app.cli import main
from robot_dynamics.errors import InputError, RecordingError
from robot_dynamics.identification import Recording, Stream
from robot_dynamics.identification.closed import (
    ClosedIdentification,
    ClosedUnknowns,
    _on_axes,
)
from robot_dynamics.identification.preparation import even, prepare
from robot_dynamics.identification.replay import replay
from robot_dynamics.identification.result_files import save, summary
from robot_dynamics.mechanism import Friction, Inertial, Joint, Link, Pose, Rotor
from robot_dynamics.mechanism.dynamic_parameters import numbers_of
from robot_dynamics.scalar import rotation_rpy
from robot_dynamics.simulation.physics import Simulation

pytest.importorskip("scipy", reason="SciPy filters the recordings")

InverseDynamics = partial(rd.InverseDynamics, batches=True)
"""Of whole motions"""

REACH = {"five_bar": 0.12, "rrr": 0.06, "gough_stewart": 0.015}
"""rad or m, of the motors' motion: far from singular places"""
NOISE = 0.01
BELT = Friction(2e-3, 0.01)
"""On the motor's side of a rotor that both motors turn"""


def robots(name: str, belt: bool = False) -> tuple[rd.Mechanism, rd.Mechanism]:
    """(as described, as it really is): other bodies, friction everywhere, rotors at the motors.
    With a belt, both motors of the five-bar turn one more rotor."""
    described = rd.load(f"config/{name}.yaml")
    truth = changed(described, 1, smooth=False)
    rotors = [rotor for rotor in truth.rotors if rotor.ratios[0][0] in described.actuated]
    if belt:
        known = Rotor("belt", "base", Pose(), (("qa1", 12.0), ("qa2", -20.0)), Inertial())
        body = Inertial(0.0, np.zeros(3), np.diag([5e-6, 5e-6, 1e-5]))
        rotors.append(replace(known, inertial=body, friction=BELT))
        described = replace(described, rotors=(*described.rotors, known))
    return described, replace(truth, rotors=tuple(rotors))


def moves(mechanism, joints, reach, seed, duration=12.0, rate=100.0):
    rng = np.random.default_rng(seed)
    t = np.arange(0, duration, 1 / rate)[:, None]
    q = np.array([float(mechanism.home[name]) for name in joints]) + 0 * t
    qd, qdd = np.zeros_like(q), np.zeros_like(q)
    for k in range(1, 6):
        w = 2 * np.pi * 0.12 * k
        a, b = reach / k * rng.normal(size=(2, len(joints)))
        q = q + a * np.sin(w * t) + b * (np.cos(w * t) - 1)
        qd = qd + w * (a * np.cos(w * t) - b * np.sin(w * t))
        qdd = qdd - w**2 * (a * np.sin(w * t) + b * np.cos(w * t))
    return t[:, 0], q, qd, qdd


def log(truth, reach, seed):
    dynamics = InverseDynamics(truth)
    joints = dynamics.joint_names
    t, q, qd, qdd = moves(truth, joints, reach, seed)
    tau = dynamics(q, qd, qdd)[:, [dynamics.actuated_names.index(name) for name in joints]]
    rng = np.random.default_rng(seed)
    tau = tau + NOISE * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    return Recording(f"log {seed}", (Stream(joints, t, q, qd, tau),))


@pytest.mark.parametrize("name", REACH)
@pytest.mark.filterwarnings("ignore")
def test_torques_are_told_to_their_noise_and_friction_within_its_deviations(name):
    described, truth = robots(name, belt=name == "five_bar")
    logs = [log(truth, REACH[name], seed) for seed in (1, 2, 3)]
    found = rd.identify(described, logs[:2], validate=logs[2])
    assert isinstance(found, ClosedIdentification)
    assert found.errors.relative.max() < 1.2 * NOISE  # NOISE of this is the noise itself
    assert found.errors.relative_described.min() > 0.5
    true = InverseDynamics(truth)
    values = dict(zip(true.parameter_names, true.parameters, strict=True))
    deviations = dict(
        zip(found.parameters, np.sqrt(np.diag(found.covariance)).tolist(), strict=True)
    )
    passive = [link.joint.name for link in truth.moving if link.joint.name not in truth.actuated]
    rubs = [key for joint in passive for key in (f"{joint}.viscous", f"{joint}.coulomb")]
    misses = np.array([(found.parameters[key] - values[key]) / deviations[key] for key in rubs])
    assert np.abs(misses).max() < 4
    assert np.sqrt((misses**2).mean()) < 1.7
    told = [key for key in rubs if key.endswith("coulomb") and deviations[key] < 0.1 * values[key]]
    assert len(told) == len(passive)
    if name == "five_bar":
        for term in ("viscous", "coulomb"):
            key = f"belt.rotor_{term}"
            assert abs(found.parameters[key] - values[key]) < 4 * deviations[key]
        assert deviations[key] < 0.3 * values[key]
        rotor = next(rotor for rotor in found.mechanism.rotors if rotor.name == "belt")
        assert rotor.friction.coulomb == found.parameters["belt.rotor_coulomb"]
    _, *states = moves(truth, true.joint_names, REACH[name], 3)
    torque, deviation = found.predict(*states)
    assert torque == pytest.approx(InverseDynamics(found.mechanism)(*states), rel=1e-9)
    fresh = log(truth, REACH[name], 3).streams[0]
    place = [fresh.names.index(joint) for joint in true.actuated_names]
    within = (np.abs(fresh.effort[:, place] - torque) < 2 * deviation).mean(axis=0)
    assert within == pytest.approx(0.9545, abs=0.015)
    # the identified robot computes the torques of motion that it was not fitted to
    again = InverseDynamics(found.mechanism)
    _, q, qd, qdd = moves(truth, true.joint_names, REACH[name], 4)
    right = true(q, qd, qdd)
    assert np.abs(again(q, qd, qdd) - right).max() < 0.05 * np.abs(right).max()


def _sprung(mechanism, offset):
    """The five-bar with a spring at a passive joint."""
    law = replace(mechanism.joint("qp1").friction, stiffness=3.0, offset=offset)
    links = [
        replace(each, joint=replace(each.joint, friction=law)) if each.joint.name == "qp1" else each
        for each in mechanism.links
    ]
    return replace(mechanism, links=tuple(links))


@pytest.mark.parametrize("offset", [2.0, -2.0])
@pytest.mark.filterwarnings("ignore")
def test_a_described_spring_stays_and_where_it_is_at_rest_is_told(offset):
    described, truth = robots("five_bar")
    real, known = _sprung(truth, offset), _sprung(described, 0.5)
    logs = [log(real, REACH["five_bar"], seed) for seed in (1, 2, 3)]
    found = rd.identify(known, logs[:2], validate=logs[2])
    assert found.errors.relative.max() < 1.3 * NOISE
    law = found.mechanism.joint("qp1").friction
    assert law.stiffness == 3.0
    assert law.offset == pytest.approx(offset, abs=0.3)


@pytest.mark.filterwarnings("ignore")
def test_mujocos_five_bar_is_found():
    pytest.importorskip("mujoco", reason="MuJoCo is the robot")
    described, truth = robots("five_bar")
    plain = replace(
        truth,
        links=tuple(
            replace(
                link,
                joint=replace(link.joint, friction=replace(link.joint.friction, coulomb=0.0)),
            )
            for link in truth.links
        ),
    )
    dynamics = InverseDynamics(plain)
    logs = []
    for seed in (1, 2):
        t, q, qd, qdd = moves(plain, dynamics.joint_names, 0.12, seed, 8.0, 1000.0)
        robot = Simulation(plain, timestep=1e-3)
        own = [robot.joint_names.index(name) for name in dynamics.joint_names]
        rows = []
        for k in range(len(t)):
            a, b = robot.q[own], robot.qd[own]
            tau = dynamics(a, b, qdd[k] + 30 * (qd[k] - b) + 225 * (q[k] - a))
            rows.append(np.concatenate([a, b, tau]))
            whole = np.zeros(len(robot.joint_names))
            whole[own] = tau
            robot.advance(whole)
        rows = np.array(rows)[::5]
        n = len(dynamics.joint_names)
        logs.append(
            Recording(
                f"MuJoCo {seed}",
                (Stream(dynamics.joint_names, t[::5], *np.split(rows, [n, 2 * n], axis=1)),),
            )
        )
    found = rd.identify(described, logs[0], validate=logs[1])
    assert found.errors.relative.max() < 0.02
    assert found.errors.relative_described.min() > 0.3


@pytest.mark.filterwarnings("ignore")
def test_the_command_takes_a_robot_with_loops(tmp_path, capsys):
    """And writes a description that computes its torques."""
    _, truth = robots("five_bar")
    tables = [str(csv_of(log(truth, 0.12, k), tmp_path / f"{k}.csv")) for k in (1, 2)]
    out = tmp_path / "out"
    arguments = ["identify", "config/five_bar.yaml", tables[0], "--validate", tables[1]]
    assert main([*arguments, "--out", str(out), "--strict", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kept"] == "nothing"
    assert told["joints"] == ["qa1", "qa2"]
    assert max(told["errors"]["held_out"]["identified"]) < 1.2 * NOISE
    assert min(told["errors"]["held_out"]["described"]) > 0.5
    assert max(told["errors"]["fitted"]["identified"]) < 1.2 * NOISE
    assert json.loads((out / "report.json").read_text())["errors"] == told["errors"]
    assert len(told["unexplained"]) == 2
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("95 % band of unfiltered efforts") == 2
    assert "<th>95 % band</th>" in page
    # one for each motor, and one for the choice of each recording's filter
    assert (out / "report.html").read_text().count("<svg class") == 4
    right, again = InverseDynamics(truth), InverseDynamics(rd.load(out / "identified.yaml"))
    _, q, qd, qdd = moves(truth, right.joint_names, 0.12, 4)
    tau = right(q, qd, qdd)
    assert np.abs(again(q, qd, qdd) - tau).max() < 0.02 * np.abs(tau).max()
    assert main([*arguments, "--out", str(out), "--motor-efforts"]) == 1
    assert "motor_efforts: found True, expected none: five_bar has loops" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_description_with_loops_is_never_made_worse():
    """Fitted to the motion of a robot with other bodies."""
    described, other = robots("five_bar")
    links = zip(described.links, other.links, strict=True)
    truth = replace(
        described,
        links=tuple(replace(link, inertial=each.inertial) for link, each in links),
    )
    own = log(described, 0.12, 2)
    found = rd.identify(described, log(truth, 0.12, 1), validate=own)
    assert found.kept == "everything"
    assert "on held-out motion the original description predicts better" in found.warnings[0]
    assert len(found.warnings) == 1
    assert found.mechanism is described
    assert found.parameters == found.described_parameters
    np.testing.assert_array_equal(found.errors.identified, found.errors.described)
    assert found.errors.relative.max() < 1.2 * NOISE
    # if the model was not fitted, only the residual on held-out motion is known
    home = [float(described.home[name]) for name in found.errors.joints]
    _, deviation = found.predict(home, [0.0, 0.0], [50.0, 0.0])
    assert deviation == pytest.approx(found.band.residual)
    assert deviation == pytest.approx(found.errors.identified, rel=0.1)


def with_efforts(recording, change) -> Recording:
    """The recording with changed efforts (k, n)."""
    (stream,) = recording.streams
    return replace(recording, streams=(replace(stream, effort=change(stream.effort)),))


def saturated(recording, share: float) -> Recording:
    """The second motor's efforts do not exceed this share of the largest."""

    def clipped(effort):
        limit = share * np.abs(effort).max(axis=0) * [np.inf, 1.0]
        return np.clip(effort, -limit, limit)

    return with_efforts(recording, clipped)


def test_efforts_of_a_saturated_motor_do_not_count():
    described, truth = robots("five_bar")
    first, *others = (saturated(log(truth, 0.12, seed), 0.5) for seed in (1, 2, 3))
    found = rd.identify(described, [first, others[0]], validate=log(truth, 0.12, 3))
    assert found.errors.relative.max() < 1.2 * NOISE
    assert not found.warnings
    assert sum("with a saturated motor were left out" in note for note in found.notes) == 2
    # nor do they where it is judged
    judged = rd.identify(described, [first, others[0]], validate=others[1])
    assert judged.errors.relative[1] > 1.2 * NOISE  # of smaller torques
    assert judged.errors.identified == pytest.approx(found.errors.identified, rel=0.1)
    assert judged.band.residual == pytest.approx(found.band.residual, rel=0.15)
    # the other motor's sign is told all the same
    turned = [
        with_efforts(each, lambda effort: effort * [-1.0, 1.0]) for each in (first, others[0])
    ]
    (doubt,) = rd.identify(described, turned, validate=turned[0]).doubts
    assert (doubt.joint, doubt.factor, doubt.sure) == ("qa1", -1.0, True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "motor"), [("rrr", "qa2"), ("gough_stewart", "ql1")])
def test_efforts_of_a_motor_that_are_noise_are_not_fitted(name, motor):
    described, truth = robots(name)
    (stream,) = log(truth, REACH[name], 1).streams
    place = stream.names.index(motor)
    effort = stream.effort.copy()
    effort[:, place] = 1e-3 * np.random.default_rng(0).normal(size=len(effort))
    found = rd.identify(described, Recording("log", (replace(stream, effort=effort),)))
    assert [(each.joint, each.factor, each.sure) for each in found.doubts] == [(motor, 1.0, True)]
    (line,) = found.warnings
    assert "are unrelated to its torque" in line
    assert found.kept == "nothing"
    others = np.array([each != motor for each in found.joints])
    assert np.isnan(found.errors.relative[~others]).all()
    assert found.errors.relative[others].max() < 2 * NOISE


def test_a_motor_whose_effort_never_changes_is_named():
    described, truth = robots("five_bar")
    stuck = with_efforts(log(truth, 0.12, 1), lambda effort: effort * [1.0, 0.0] + [0.0, 3.0])
    with pytest.raises(RecordingError, match=r"^log 1: no efforts of qa2"):
        rd.identify(described, stuck)


def test_efforts_of_a_motor_at_rest_do_not_count():
    """Static friction may carry any part of its torque."""
    described, truth = robots("five_bar")
    dynamics = InverseDynamics(truth)
    joints = dynamics.joint_names

    def recorded(seed: int, sticks: float) -> Recording:
        t, *state = moves(truth, joints, 0.12, seed)
        # the second motor goes home in a second, and stays there for four
        s = np.clip(t - 6.0, 0.0, 1.0)
        share = 1 - s**3 * (10 - 15 * s + 6 * s**2)
        home = state[0][:1] * [0.0, 1.0]
        q = np.where([True, False], state[0], home + share[:, None] * (state[0] - home))
        qd = np.gradient(q, t, axis=0, edge_order=2)
        qdd = np.gradient(qd, t, axis=0, edge_order=2)
        tau = dynamics(q, qd, qdd)
        rests = (t > 7.0)[:, None] * [False, True]
        tau = tau + sticks * rests
        return Recording(f"log {seed}", (Stream(joints, t, q, qd, tau),))

    sure, stuck = (
        rd.identify(described, recorded(1, sticks), validate=recorded(2, 0.0), cutoff=10.0)
        for sticks in (0.0, 5.0)
    )
    for name, value in sure.parameters.items():
        assert stuck.parameters[name] == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.fixture(scope="module")
def short():
    """A fit to very short motion of two motors."""
    described, truth = robots("five_bar")
    (stream,) = log(truth, 0.12, 1).streams
    few = Recording("few", (stream.rows(slice(0, 500)),))
    return truth, rd.identify(described, few, validate=log(truth, 0.12, 2))


@pytest.mark.filterwarnings("ignore")
def test_efforts_of_other_motion_lie_in_the_band(short):
    truth, found = short
    shares = []
    for seed in range(3, 13):
        (stream,) = log(truth, 0.12, seed).streams
        _, *states = moves(truth, stream.names, 0.12, seed)
        torque, deviation = found.predict(*states)
        shares.append((np.abs(stream.effort - torque) < 2 * deviation).mean(axis=0))
    assert np.mean(shares, axis=0) == pytest.approx(0.9545, abs=0.025)


@pytest.mark.filterwarnings("ignore")
def test_the_band_widens_where_the_recording_says_little(short):
    truth, found = short
    home = np.array([float(truth.home[name]) for name in found.errors.joints])
    nothing, far = np.zeros(2), np.full(2, 200.0)
    (near, still), (_, fast) = (found.predict(home, nothing, x) for x in (nothing, far))
    assert near.shape == still.shape == (2,)
    assert (still >= found.band.residual).all()
    assert (fast > 1.5 * still).all()
    # y C yᵀ + s², with the columns of the reported parameters
    dynamics = found.band.unknowns.dynamics
    own = [[*dynamics.parameter_names].index(name) for name in found.parameters]
    y = dynamics.regressor(home, nothing, far)[:, own]
    right = np.einsum("ja,ab,jb->j", y, found.covariance, y) + found.band.residual**2
    assert fast == pytest.approx(np.sqrt(right), rel=1e-6)
    many = found.predict(np.tile(home, (3000, 1)), np.zeros((3000, 2)), np.tile(far, (3000, 1)))
    assert many[1] == pytest.approx(np.tile(fast, (3000, 1)), rel=1e-9)
    with pytest.raises(InputError):
        found.predict(np.zeros(3), np.zeros(3), np.zeros(3))


@pytest.mark.filterwarnings("ignore")
def test_a_stretch_in_which_the_loops_are_open_counts_for_nothing():
    """Such as one before the encoders were referenced, with efforts of another motion."""
    described, truth = robots("rrr")
    good, other = (log(truth, REACH["rrr"], seed) for seed in (1, 2))
    stream = good.streams[0]
    start = 7 * len(stream.time) // 8
    late = np.where(np.arange(len(stream.time)) < start, 0.0, 1.0)
    whole = replace(
        stream,
        time=stream.time + 5.0 * late,  # a gap, after which nothing fits
        position=stream.position + late[:, None] * [2.0, 0.0, 0.0],
        effort=stream.effort * (1.0 + 2.0 * late[:, None]),
    )
    first = replace(
        stream,
        **{
            name: getattr(stream, name)[:start]
            for name in ("time", "position", "velocity", "effort")
        },
    )
    found, expected = (
        rd.identify(described, replace(good, streams=(each,)), validate=other)
        for each in (whole, first)
    )
    assert any("do not close the loops and were left out" in note for note in found.notes)
    assert found.fit.sigma == pytest.approx(expected.fit.sigma, rel=0.03)
    assert found.errors.relative == pytest.approx(expected.errors.relative, rel=0.03)


@pytest.mark.filterwarnings("ignore::robot_dynamics.errors.ClosureWarning")
@pytest.mark.parametrize("step", [1, 2])
def test_a_stretch_in_which_the_loops_are_open_is_cut_out_before_anything_else(step, monkeypatch):
    """It is hardly looked at: each state that cannot be closed takes as long as thousands."""
    described, truth = robots("five_bar")
    good = log(truth, 0.12, 1)
    stream = good.streams[0]
    amid = (np.arange(len(stream.time)) >= 200) & (np.arange(len(stream.time)) < 500)
    odd = replace(stream, position=stream.position + 100.0 * amid[:, None])
    whole = even(Recording("odd", (odd,)), stream.names)
    pieces = [
        part
        for each in whole.pieces
        for part in (each.rows(slice(333)), each.rows(slice(333, None)))
    ]
    problem, looked_at = ClosedUnknowns(described), []
    closes = problem._closes
    monkeypatch.setattr(problem, "_closes", lambda q: looked_at.append(q) or closes(q))
    monkeypatch.setattr("robot_dynamics.identification.closed.CHECKED", len(odd) // step)
    closing = problem.closing(replace(whole, pieces=tuple(pieces)))
    found = np.concatenate([each.time for each in closing.pieces])
    expected = whole.pieces[0].time[~amid]
    np.testing.assert_array_equal(found, expected)
    assert closing.notes[-1].startswith("25 % of the recorded positions do not close the loops and")
    assert (np.concatenate(looked_at)[:, 0] > 50.0).sum() < 60


@pytest.mark.filterwarnings("ignore::robot_dynamics.errors.ClosureWarning")
def test_single_states_in_which_the_loops_are_open_cut_nothing_to_pieces():
    """As encoder noise makes them where the robot is stretched out."""
    described, truth = robots("five_bar")
    good = log(truth, 0.12, 1)
    stream = good.streams[0]
    whole = even(good, stream.names)
    (piece,) = whole.pieces
    single = np.arange(len(piece))[:, None] % 40 == 7
    raw = replace(whole, pieces=(replace(piece, position=piece.position + 100.0 * single),))
    closing = ClosedUnknowns(described).closing(raw)
    assert [len(each) for each in closing.pieces] == [len(piece)]
    assert closing.notes[-1].startswith("2.5 % of the recorded positions do not close the loops")


@pytest.mark.filterwarnings("ignore::robot_dynamics.errors.ClosureWarning")
def test_what_cannot_be_is_one_line():
    described, truth = robots("five_bar")
    good = log(truth, 0.12, 1)
    stream = good.streams[0]
    with pytest.raises(RecordingError, match="missing motors: qa2"):
        rd.identify(described, Recording("half", (stream.of(stream.names[:1]),)))
    silent = np.where(np.arange(2) == stream.names.index("qa2"), np.nan, stream.effort)
    for changes, words in (
        ({"position": np.degrees(stream.position)}, "100 % of the recorded positions do not close"),
        ({"effort": silent}, "odd: no efforts of qa2"),
    ):
        odd = Recording("odd", (replace(stream, **changes),))
        with pytest.raises(RecordingError, match=words):
            rd.identify(described, odd)
    far = np.where(np.arange(len(stream.time))[:, None] % 500 < 450, 0.0, 100.0)
    odd = Recording("odd", (replace(stream, position=stream.position + far),))
    problem = ClosedUnknowns(described)
    whole = even(odd, stream.names)
    closing = problem.closing(whole)
    assert closing.notes[-1].startswith(
        "8.33 % of the recorded positions do not close the loops and"
    )
    raw = prepare(odd, stream.names, 10.0, rests=True)
    used = problem.unfiltered(raw).stretches
    assert 0 < sum(map(len, used)) < sum(map(len, raw.stretches))
    for each in used:
        still = np.zeros_like(each.q)
        assert np.isfinite(problem.before(each.q, still, still)).all()
    nowhere = replace(raw, stretches=tuple(replace(x, q=x.q + 100.0) for x in raw.stretches))
    with pytest.raises(RecordingError, match="odd: the loops do not close: check the encoder"):
        problem.unfiltered(nowhere)
    raw = even(good, stream.names)
    assert problem.closing(raw) is raw
    with pytest.raises(InputError, match=r"motor_efforts: .*expected none: .* has loops"):
        rd.identify(described, good, motor_efforts=True)
    with pytest.raises(InputError, match="payload: link: found 'hand', expected"):
        rd.identify(described, good, payload="hand")


@pytest.mark.parametrize("name", ["polar", "five_bar"])
@pytest.mark.parametrize("validate", [None, []])
def test_without_a_recording_nothing_is_identified(name, validate):
    with pytest.raises(InputError, match="recordings: found none, expected at least one"):
        rd.identify(f"config/{name}.yaml", [], validate=validate)


@pytest.mark.filterwarnings("ignore")
def test_with_no_recording_to_validate_a_part_of_each_is_held_out():
    described, truth = robots("five_bar")
    few = Recording("few", (log(truth, 0.12, 1).streams[0].rows(slice(0, 500)),))
    one, other = (rd.identify(described, few, validate=each, cutoff=20.0) for each in (None, []))
    np.testing.assert_array_equal(one.errors.relative, other.errors.relative)
    assert one.parameters == other.parameters


@pytest.mark.filterwarnings("ignore")
def test_the_filter_depends_on_no_order_of_motors_and_on_no_held_out_motion():
    described, truth = robots("five_bar")
    (stream,) = log(truth, REACH["five_bar"], 1).streams
    rng = np.random.default_rng(0)
    noisy = stream.position + 2e-4 * rng.normal(size=stream.position.shape)
    stream = replace(stream, position=noisy, velocity=np.full_like(noisy, np.nan))
    found = rd.identify(described, Recording("log", (stream,)))
    assert 2 < found.cutoffs["log"] < 20
    motors = described.actuated[::-1]
    turned = rd.identify(
        replace(described, actuated=motors), Recording("log", (stream.of(motors),))
    )
    assert turned.joints == found.joints[::-1]
    assert turned.cutoffs == pytest.approx(found.cutoffs)
    assert turned.errors.relative[::-1] == pytest.approx(found.errors.relative, rel=1e-3)
    late = np.arange(len(noisy))[:, None] > 0.7 * len(noisy)
    spoiled = replace(stream, effort=stream.effort + late * 50 * rng.normal(size=noisy.shape))
    other = rd.identify(described, Recording("log", (spoiled,)))
    assert other.cutoffs == pytest.approx(found.cutoffs)
    assert other.choices["log"].errors == pytest.approx(found.choices["log"].errors)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "motor", "factor", "why"),
    [
        ("five_bar", "qa2", 180 / math.pi, "degrees were used instead of radians"),
        ("five_bar", "qa1", 0.01, "another unit, such as currents"),
        ("rrr", "qa3", -1.0, "opposite sign"),
    ],
)
def test_a_motor_with_another_sign_or_unit_is_named_and_not_fitted(
    name, motor, factor, why, tmp_path
):
    described, truth = robots(name)
    (stream,) = log(truth, REACH[name], 1).streams
    effort = stream.effort.copy()
    place = stream.names.index(motor)
    effort[:, place] /= factor
    wrong = Recording("wrong", (replace(stream, effort=effort),))
    found = rd.identify(described, wrong)
    (doubt,) = found.doubts
    assert (doubt.joint, doubt.sure) == (motor, True)
    assert doubt.factor == pytest.approx(factor, rel=0.2)
    assert why in doubt.why
    assert [each["joint"] for each in summary(found)["doubts"]] == [motor]
    assert [line.split(":")[0] for line in found.warnings] == [motor]
    others = np.array([each != motor for each in found.joints])
    assert found.errors.relative[others].max() < 2 * NOISE
    # nothing is said about the motor that was left out, and everything about the others
    _, *states = moves(truth, found.joints, REACH[name], 3, duration=0.1)
    _, deviation = found.predict(*states)
    assert np.isnan(deviation[:, ~others]).all()
    assert (deviation[:, others] > 0).all()
    told = np.isfinite(np.diag(found.covariance))
    lost = {key for key, known in zip(found.parameters, told, strict=True) if not known}
    assert f"{motor}.viscous" in lost
    assert {key.split(".")[0] for key in lost} & {*found.joints} == {motor}
    assert np.isfinite(found.covariance[np.ix_(told, told)]).all()
    report.write(found, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "<td>unknown</td>" in page
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page))
    # its torques are those of the factor, in both sums
    (right,) = log(truth, REACH[name], 1).streams
    size = np.sqrt((right.effort[:, place] ** 2).mean())
    for errors in (found.errors, found.fitted):
        assert errors.torque[~others] == pytest.approx(size, rel=0.3)
    scaled = rd.identify(described, wrong, effort_scale={motor: factor})
    assert scaled.doubts == ()
    assert scaled.warnings == ()
    believed = rd.identify(described, wrong, effort_scale=dict.fromkeys(found.joints, 1.0))
    assert believed.doubts == ()
    assert believed.errors.relative.max() > 0.3


@pytest.mark.filterwarnings("ignore")
def test_a_spring_is_no_reason_for_a_factor_and_none_hides_it():
    described, truth = robots("five_bar")

    K = 200.0  # N·m/rad, at rest at home

    def sprung(mechanism):
        links = [
            replace(link, joint=replace(link.joint, friction=replace(
                link.joint.friction, stiffness=K, offset=-K * described.home["qa1"])))
            if link.joint.name == "qa1" else link
            for link in mechanism.links
        ]  # fmt: skip
        return replace(mechanism, links=tuple(links))

    described, truth = sprung(described), sprung(truth)
    (stream,) = log(truth, REACH["five_bar"], 1).streams
    assert rd.identify(described, Recording("log", (stream,))).doubts == ()
    turned = stream.effort * np.where([name == "qa1" for name in stream.names], -1, 1)
    found = rd.identify(described, Recording("log", (replace(stream, effort=turned),)))
    assert [(each.joint, each.factor) for each in found.doubts] == [("qa1", -1.0)]


@pytest.mark.parametrize("guess", [0.0, 1.0])
@pytest.mark.filterwarnings("ignore")
def test_a_payload_of_a_robot_with_loops_is_found(guess):
    """What the description says of it, kg, is replaced."""
    described, _ = robots("five_bar")
    body = Inertial(guess, np.zeros(3), 0.01 * guess * np.eye(3))
    described = replace(
        described,
        links=tuple(
            replace(link, inertial=body) if link.name == "tool" else link
            for link in described.links
        ),
    )
    load = Inertial(2.5, np.array([0.05, 0.02, 0.0]), np.diag([0.01, 0.02, 0.02]))
    links = [
        replace(link, inertial=load) if link.name == "tool" else link for link in described.links
    ]
    truth = replace(described, links=tuple(links))
    logs = [log(truth, REACH["five_bar"], seed) for seed in (1, 2, 3)]
    found = rd.identify(described, logs[:2], validate=logs[2], payload="tool")
    assert found.errors.relative.max() < 1.2 * NOISE
    right = dict(zip(found.parameters, numbers_of(load), strict=True))
    deviations = dict(zip(found.parameters, np.sqrt(np.diag(found.covariance)), strict=True))
    for name in ("tool.mass", "tool.mx", "tool.my", "tool.Izz"):  # all that moves in the plane
        assert abs(found.parameters[name] - right[name]) < 4 * deviations[name]
    assert deviations["tool.mass"] < 0.002 * load.mass
    changed_links = [
        link.name
        for link in found.mechanism.links
        if link.inertial is not described.link(link.name).inertial
    ]
    assert changed_links == ["tool"]


@pytest.mark.filterwarnings("ignore")
def test_recordings_of_a_robot_with_loops_are_shared_and_a_broken_one_is_left_out():
    described, truth = robots("five_bar")
    good = [log(truth, REACH["five_bar"], seed) for seed in (1, 2, 3)]
    (stream,) = good[0].streams
    broken = Recording("broken", (replace(stream, position=np.degrees(stream.position)),))
    alone = rd.identify(described, [broken, good[1]], validate=good[2], cutoff=20.0)
    (warning,) = alone.warnings
    assert warning.startswith("left out: broken: 100 % of the recorded positions do not close")
    shared = rd.identify(described, [broken, good[1]], validate=good[2], cutoff=20.0, workers=2)
    assert shared.parameters == alone.parameters
    np.testing.assert_array_equal(shared.covariance, alone.covariance)
    np.testing.assert_array_equal(shared.errors.identified, alone.errors.identified)


@pytest.mark.filterwarnings("ignore")
def test_motors_that_all_have_the_opposite_sign_are_refused_with_the_remedy():
    described, truth = robots("five_bar")
    (stream,) = log(truth, REACH["five_bar"], 1).streams
    turned = Recording("turned", (replace(stream, effort=-stream.effort),))
    with pytest.raises(RecordingError, match="--effort-scale qa1:-1 qa2:-1 would explain them"):
        rd.identify(described, turned)


@pytest.mark.filterwarnings("ignore")
def test_motors_that_no_model_explains_are_named():
    described, truth = robots("five_bar")
    (stream,) = log(truth, REACH["five_bar"], 1).streams
    size = np.sqrt((stream.effort**2).mean(axis=0))
    rng = np.random.default_rng(0)
    noise = Recording(
        "noise",
        (replace(stream, effort=stream.effort + size * rng.normal(size=stream.effort.shape)),),
    )
    found = rd.identify(described, noise)
    assert found.doubts == ()
    for name in ("qa1", "qa2"):
        assert any(
            line.startswith(f"{name}: the model leaves") and "--effort-scale" in line
            for line in found.warnings
        )
    assert rd.identify(described, log(truth, REACH["five_bar"], 1)).warnings == ()


@pytest.mark.filterwarnings("ignore")
def test_static_friction_of_a_motor_that_stands_still_tells_no_model_from_another():
    """It may take any part of the motor's torque."""
    described, truth = robots("five_bar")
    (stream,) = log(truth, REACH["five_bar"], 4).streams
    dynamics = InverseDynamics(truth)
    still = stream.names.index("qa2")
    q, qd = stream.position.copy(), stream.velocity.copy()
    q[:, still], qd[:, still] = float(described.home["qa2"]), 0.0
    qdd = np.gradient(qd, stream.time, axis=0)
    tau = dynamics(q, qd, qdd)[:, [dynamics.actuated_names.index(name) for name in stream.names]]
    rng = np.random.default_rng(0)
    tau[:, still] = 50.0 * rng.uniform(-1, 1) + rng.normal(size=len(tau))
    judge = Recording("judge", (Stream(stream.names, stream.time, q, qd, tau),))
    found = rd.identify(described, log(truth, REACH["five_bar"], 1), validate=judge)
    joints = list(found.errors.joints)
    assert found.errors.still.tolist() == [name == "qa2" for name in joints]
    assert found.errors.relative[joints.index("qa2")] > 0.5
    assert found.kept == "nothing"


COUPLER = """
robot: rssr
links:
  - {name: crank, parent: base, joint: {name: motor, type: revolute}, a: 0.1, mass: 0.8,
     center_of_mass: [-0.04, 0.01, 0], inertia: {ixx: 0.001, iyy: 0.002, izz: 0.002}}
  - {name: rod, joint: {name: ball, type: spherical, axes: zyx}, mass: 0.5,
     center_of_mass: [0.17, 0, 0.03], inertia: {ixx: 0.0001, iyy: 0.004, izz: 0.004}}
  - {name: rocker, parent: base, origin: {xyz: [0.3, 0.05, 0], rpy: [0.4, 0, 0]},
     joint: {name: pivot, type: revolute}, mass: 0.9,
     center_of_mass: [0.12, 0, 0.02], inertia: {ixx: 0.001, iyy: 0.006, izz: 0.006}}
loops:
  - {type: spherical, predecessor: {link: rod, xyz: [0.34, 0, 0.06]},
     successor: {link: rocker, xyz: [0.25, 0, 0]}}
actuated: [motor]
home: {motor: 0.6, ball_rz: 0, ball_ry: 0, ball_rx: 0, pivot: 1.6}
"""
"""A rod between two ball joints, as CAD has it: it spins freely. Home is rough"""


@pytest.fixture(scope="module")
def coupler(tmp_path_factory):
    """(its file, the true robot, logs at 1 kHz with an encoder's noise and without rates)."""
    file = tmp_path_factory.mktemp("coupler") / "coupler.yaml"
    file.write_text(COUPLER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        described = rd.load(file)
        links = []
        for link, (mass, viscous) in zip(
            described.links,
            [(1.2, 0.3), (0, 0.02), (0, 0.02), (0.8, 0), (1.25, 0.05)],
            strict=True,
        ):
            body, coulomb = link.inertial, 0.2 if viscous else 0.0
            if mass:
                body = Inertial(mass * body.mass, body.center_of_mass, mass * body.inertia)
            joint = replace(link.joint, friction=Friction(viscous, coulomb))
            links.append(replace(link, inertial=body, joint=joint))
        truth = replace(described, links=tuple(links))
        dynamics = InverseDynamics(truth)
        logs = []
        for seed, rate in ((1, 1000.0), (2, 400.0)):
            rng = np.random.default_rng(seed)
            t, q, qd, qdd = moves(truth, ("motor",), 0.35, seed, 15.0, rate)
            tau = dynamics(q, qd, qdd)
            tau = tau + NOISE * np.sqrt((tau**2).mean()) * rng.normal(size=tau.shape)
            seen = q + 2e-5 * rng.normal(size=q.shape)
            nothing = np.full_like(q, np.nan)
            logs.append(Recording(f"log {seed}", (Stream(("motor",), t, seen, nothing, tau),)))
    return file, truth, logs


@pytest.mark.filterwarnings("ignore")
def test_a_rod_that_spins_freely_keeps_its_mass_on_its_axis(coupler, tmp_path):
    file, truth, (seen, unseen) = coupler
    found = rd.identify(file, seen, validate=unseen)
    # where the motor turns round, its noise decides on the sign of its friction
    assert found.errors.relative.max() < 4 * NOISE
    right, model = InverseDynamics(truth), InverseDynamics(found.mechanism)
    _, *states = moves(truth, ("motor",), 0.35, 5)
    tau = right(*states)
    assert np.abs(model(*states) - tau).max() < 0.02 * np.abs(tau).max()
    rod = found.mechanism.link("rod").inertial
    assert rod.mass > 0
    off = np.cross(rod.center_of_mass, [0.34, 0.0, 0.06])
    assert off == pytest.approx(np.zeros(3), abs=1e-6)
    between = [link for link in found.mechanism.links if link.name.startswith("ball_")]
    assert [link.inertial.mass for link in between] == [0.0, 0.0]
    # what is written is what was found
    save(found, tmp_path)
    again = InverseDynamics(rd.load(tmp_path / "identified.yaml"))
    assert again(*states) == pytest.approx(model(*states), rel=1e-9)
    assert not (tmp_path / "identified.urdf").exists()
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["cutoff"] == pytest.approx(found.cutoffs)


def test_the_axis_of_a_link_that_spins_may_be_anywhere(coupler):
    """Also that of a link fixed to the one whose body is identified."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = rd.load(coupler[0])
    pose = Pose(rotation_rpy(0.3, -0.5, 0.8), np.array([0.05, -0.02, 0.1]))
    fixed = Joint("weld", "fixed", origin=pose)
    point, direction = np.array([0.01, 0.04, -0.03]), np.array([0.6, 0.0, 0.8])
    turning = replace(
        robot,
        links=(*robot.links, Link("cap", "crank", fixed)),
        spins={"cap": (point, direction)},
    )
    size, mass = 0.2, 0.8
    bodies = ("crank", "rocker")
    G = _on_axes(turning, bodies, (np.eye(4) * mass,) * 2, size)
    assert not G[10:].any()
    assert not G[:, 10:].any()

    def cost(aside):
        """Of a body with its centre of mass beside the axis, seen from the crank."""
        across = np.cross(direction, [0.0, 1.0, 0.0])
        center = pose.apply(point + 0.07 * direction + aside * across)
        phi = numbers_of(Inertial(mass, center, np.diag([1.0, 2.0, 3.0])))
        terms = phi[:, None] * G[:10, :10] * phi
        return terms.sum(), np.finfo(float).eps * np.abs(terms).sum()

    found, rounding = cost(0.0)
    assert abs(found) < rounding < 1e-2
    found, rounding = cost(2e-6 * size)
    assert found == pytest.approx(4.0, abs=rounding)


@pytest.mark.filterwarnings("ignore")
def test_the_filter_of_a_robot_with_loops_is_chosen_by_what_it_predicts(coupler, tmp_path):
    file, _, (seen, unseen) = coupler
    found = rd.identify(file, seen, validate=unseen)
    # each sampling rate has its own
    assert {*found.choices} == {"log 1", "log 2"}
    assert found.choices["log 2"].candidates[-2] < found.choices["log 1"].candidates[-2]
    assert all(3 < cutoff < 60 for cutoff in found.cutoffs.values())
    choice = found.choices["log 1"]
    assert choice.candidates[0] < 2
    assert choice.candidates[-1] == np.inf
    assert np.nanmin(choice.errors) == 1.0
    assert choice.errors[0, 0] > 1.5  # motion is lost
    assert choice.errors[-1, 0] > 1.5  # accelerations are noise
    given = rd.identify(file, seen, validate=unseen, cutoff=1e4)
    assert given.cutoffs == {"log 1": None, "log 2": None}
    assert given.choices == {}
    assert found.errors.relative.max() < 0.5 * given.errors.relative.max()
    report.write(found, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "<h2>The filter</h2>" in page
    assert f"log 1: filtered at {found.cutoffs['log 1']:.3g} Hz" in page
    with pytest.raises(InputError, match="cutoff: found -1"):
        rd.identify(file, seen, cutoff=-1.0)


@pytest.mark.filterwarnings("ignore")
def test_a_replay_of_a_robot_with_loops_takes_its_motors(tmp_path, capsys):
    described, truth = robots("five_bar")
    recorded = log(truth, REACH["five_bar"], 1)
    (stream,) = recorded.streams
    found = replay([described, truth], recorded, cutoff=40.0)
    assert found.joints == described.actuated
    # the noise, and the steps of friction, which the filter rounds in the efforts
    assert found.relative[1].max() < 3 * NOISE
    assert found.relative[0].min() > 0.5
    torques = InverseDynamics(truth)(stream.position, stream.velocity, 0 * stream.velocity)
    (terms,) = found.terms
    assert set(terms) == {"inertia", "coriolis", "gravity", "friction", "rotors"}
    assert sum(terms.values()) == pytest.approx(found.torques[1][0], abs=1e-9 * np.ptp(torques))
    swapped = replace(truth, actuated=truth.actuated[::-1])
    again = replay([described, swapped], recorded, cutoff=40.0)
    assert again.relative[1] == pytest.approx(found.relative[1], rel=1e-6)
    for term, values in terms.items():
        assert again.terms[0][term] == pytest.approx(values, abs=1e-6 * np.ptp(torques))
    # some of the positions are out of reach
    away = np.where(np.arange(len(stream.time)) < 100, 1.0, 0.0)[:, None] * [-1.5, 1.5]
    far = replace(stream, position=stream.position + away)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a note says it
        partly = replay([truth], replace(recorded, streams=(far,)), cutoff=40.0)
    assert any("do not close the loops: check the encoder zeros" in note for note in partly.notes)
    assert np.isfinite(partly.relative).all()
    ((torques,),), (terms,) = partly.torques, partly.terms
    closed = np.isfinite(torques).all(axis=1)
    assert 0 < (~closed).sum() < 50
    assert sum(terms.values())[closed] == pytest.approx(torques[closed], rel=1e-9, abs=1e-9)
    assert np.isnan(terms["gravity"][~closed]).all()
    lacking = replace(recorded, streams=(stream.of(stream.names[:1]),))
    with pytest.raises(RecordingError, match=f"missing motors: {stream.names[1]}"):
        replay([described], lacking)
    with pytest.raises(InputError, match=r"motor_efforts: .*has loops"):
        replay([described], recorded, motor_efforts=True)
    csv_of(recorded, tmp_path / "log.csv")
    command = ["replay", "config/five_bar.yaml", str(tmp_path / "log.csv"), "--out", str(tmp_path)]
    assert main(command) == 0
    assert "qa2" in capsys.readouterr().out
    page = (tmp_path / "replay.html").read_text()
    assert "qa1: torques over time" in page
    assert "robot.html" not in page
    assert not (tmp_path / "robot.html").exists()
