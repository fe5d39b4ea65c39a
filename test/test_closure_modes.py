# SPDX-License-Identifier: Apache-2.0
"""Closed chains stay on their assembly mode, however far a state is from the one before.

The reference walks there in very small steps by plain Newton, all states at once; where a step
is not small it gives up.
"""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import replace
from functools import cache
from itertools import islice

import closed_robots
import numpy as np
import pytest
from hypothesis import strategies as st
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.closure import ClosedChain, SensorMonitor
from robot_dynamics.closure.dynamics import continuation
from robot_dynamics.closure.geometry.closer import prepared
from robot_dynamics.closure.geometry.loop_geometry import LoopGeometry
from robot_dynamics.closure.geometry.near import Near
from robot_dynamics.errors import ClosureError, ClosureWarning

SAME = 1e-7
"""rad, m: other solutions are tenths away"""
FAR = {"five_bar": (1.0, 1000, 400), "rrr": (0.55, 600, 400), "delta": (1.0, 500, 300),
       "gough_stewart": (0.12, 200, 150)}  # fmt: skip
"""How far from home in rad or m, how many states in a batch, and one by one"""
STEP = 8e-3
"""The reference's, rad or shares of the size"""


@cache
def chain_of(name: str, sensed: bool = False) -> ClosedChain:
    """One of each for all tests, which begin by `reset`."""
    return ClosedChain(rd.load(CONFIG / f"{name}.yaml"), sensed=sensed)


@pytest.fixture(params=FAR)
def robot(request):
    """(name, chain)"""
    chain = chain_of(request.param)
    chain.reset()
    return request.param, chain


@cache
def far_states(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(q (m, n_a), q_r (m, n_r) where a walk from home ends)"""
    size, many, _ = FAR[name]
    chain, rng = chain_of(name), np.random.default_rng(0)
    q = chain.home.q_a + rng.uniform(-size, size, (many, len(chain.actuated_names)))
    return q, walked(chain, q)


def walked(chain: ClosedChain, targets: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """q_r (m, n_r) at targets (m, n_a), gone to in steps of STEP from start (…, n_r), home if None;
    NaN: not possible."""
    solver = chain.solver
    a, scale = len(chain.actuated_names), solver.scale
    start = chain.home.q_r if start is None else start
    q_r = np.broadcast_to(start, (len(targets), len(scale))).copy()
    origin, way = q_r[:, :a].copy(), targets - q_r[:, :a]
    steps = int(np.ceil(abs(way / scale[:a]).max(initial=STEP) / STEP))
    first = np.sign(np.linalg.det(solver.mobility.jacobian(q_r)[..., a:]))
    alive = np.ones(len(targets), dtype=bool)
    for i in range(1, steps + 1):
        q_r[alive, :a] = (origin + way * (i / steps))[alive]
        moved = np.zeros(len(targets))
        for _ in range(3):
            J = solver.mobility.jacobian(q_r[alive])[..., a:]
            error = solver.mobility.residual(q_r[alive])
            step = np.linalg.solve(J, error[..., None])[..., 0]
            q_r[alive, a:] -= step
            moved[alive] += abs(step / scale[a:]).max(axis=1)
        alive[alive] = abs(step / scale[a:]).max(axis=1) < 1e-6
        alive &= moved < 12 * STEP
        J = solver.mobility.jacobian(q_r[alive])[..., a:]
        alive[alive] = np.sign(np.linalg.det(J)) == first[alive]
    q_r[~alive] = np.nan
    return q_r


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClosureWarning)
        return function(*arguments)


def test_far_states_of_a_batch_are_where_a_walk_ends(robot):
    name, chain = robot
    q, expected = far_states(name)
    found = quietly(chain.forward_kinematics, q).q_r
    there = np.isfinite(expected).all(axis=1)
    assert there.sum() > 0.4 * len(q)
    assert np.isfinite(found[there]).all(), "refused, though one can walk there"
    assert abs(found[there] - expected[there]).max() < SAME
    # a walk gives up a little before a singularity, no other solution is found there
    beyond = np.isfinite(found).all(axis=1) & ~there
    assert beyond.sum() < 0.05 * len(q)


def test_a_batch_closed_block_by_block_is_the_same(robot, monkeypatch):
    name, chain = robot
    q = far_states(name)[0][::3]  # whose refusals take long
    zero = np.zeros_like(q)
    whole = quietly(chain.torques, q, zero, zero)
    monkeypatch.setattr(continuation, "BLOCK", 21)
    chain.reset()
    found = quietly(chain.torques, q, zero, zero)
    assert np.array_equal(np.isnan(found), np.isnan(whole))
    assert np.nanmax(abs(found - whole)) < 1e-12 * np.nanmax(abs(whole))


def test_a_far_first_call_is_where_a_walk_ends(robot):
    name, chain = robot
    for target, reference in islice(zip(*far_states(name), strict=True), FAR[name][2]):
        chain.reset()
        try:
            found = chain.forward_kinematics(target).q_r
        except ClosureError:
            assert np.isnan(reference).all()
            continue
        assert np.isnan(reference).any() or abs(found - reference).max() < SAME


def test_a_step_over_a_singularity_keeps_the_mode_of_five_bars_far_call():
    """Newton's method, let go, lands on the other mode with a condition number of 2.5."""
    chain = chain_of("five_bar")
    q = chain.home.q_a + np.array([-0.088, 0.923])
    (expected,) = walked(chain, q[None])
    for call in (chain.forward_kinematics, lambda x: chain.forward_kinematics(x[None])):
        chain.reset()
        assert call(q).q_r.ravel() == pytest.approx(expected, abs=SAME)
    assert chain.forward_kinematics(q).assembly_mode == chain.home.assembly_mode


@pytest.mark.parametrize("careful", [False, True])
def test_certified_steps_alone_end_where_the_walk_does(robot, careful):
    """The careful way, and bounds that are false would show: κ and c are measured on the way."""
    name, chain = robot
    for target, reference in islice(zip(*far_states(name), strict=True), 4):
        if np.isfinite(reference).all():
            start = chain.home.q_r if not careful else chain.forward_kinematics(target).q_r
            back = chain.solver.forward_kinematics(target if not careful else chain.home.q_a, start)
            want = reference if not careful else chain.home.q_r
            assert abs(back - want).max() < SAME


def test_the_bounds_of_the_curvature_hold(robot):
    """|φ''| and |φ'''| along any direction within a box are below what `Curvature` says."""
    from robot_dynamics.closure.geometry.curvature import Curvature

    _, chain = robot
    geometry = chain.solver.geometry
    closure, bounds = geometry.constraints, Curvature(geometry)
    S = np.asarray(closure.coordinates[0], dtype=float)
    rng = np.random.default_rng(0)
    n, near = len(geometry.names), 0.0
    slides = [not geometry.mechanism.joint(name).turns for name in geometry.names]
    for sample in range(10):
        center = chain.home.q_r + 0.1 * chain.solver.scale * rng.uniform(-1, 1, n)
        half = 0.1 * chain.solver.scale * rng.uniform(0, 1, n)
        q, w = center + half * rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
        if sample >= 5:
            # hardly any turning: what slides on an arm that turns counts twice
            w = np.where(slides, 1.0, 0.01) * np.sign(w)
        box, d = abs(S) @ half, abs(S @ w)
        levers = bounds.longest(bounds.levers(center), box)
        bending, bound = abs(closure.jacobian_rate(q, w)), bounds.bound(levers, d, 1) @ abs(S)
        assert (bending <= bound + 1e-9).all()
        near = max(near, float((bending / (bound + 1e-9)).max()))
        step = 1e-4
        ends = [closure.jacobian_rate(q + s * step * w, w) for s in (1, -1)]
        third = (ends[0] - ends[1]) / (2 * step)
        assert (abs(third) <= bounds.bound(levers, d, 2) @ abs(S) + 1e-6).all()
    assert near > 0.3, "bounds that are never near say nothing"


@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_what_was_called_before_makes_no_difference(name):
    """Of robots with two assembly modes, one of each sign of the determinant."""
    chain = chain_of(name)
    chain.reset()
    for target, reference in islice(zip(*far_states(name), strict=True), 300):
        try:
            found = chain.forward_kinematics(target).q_r
        except ClosureError:
            assert np.isnan(reference).any()
            continue
        assert np.isnan(reference).any() or abs(found - reference).max() < SAME


def test_every_state_of_a_sequence_is_the_continuation_of_the_one_before(robot):
    """By the straight way from there; or, where that meets a singularity, by way of home."""
    name, chain = robot
    targets, _ = far_states(name)
    starts, ends, refused = [], [], 0
    before = chain.home.q_r
    for q in targets[:120]:
        try:
            after = chain.forward_kinematics(q).q_r
        except ClosureError:
            refused += 1
            continue
        starts.append(before)
        ends.append(after)
        before = after
    starts, ends = np.array(starts), np.array(ends)
    a = len(chain.actuated_names)
    straight = walked(chain, ends[:, :a], starts)
    lost = ~np.isfinite(straight).all(axis=1)
    assert abs(straight - ends)[~lost].max() < SAME
    assert lost.mean() < 0.2
    back = walked(chain, np.tile(chain.home.q_a, (int(lost.sum()), 1)), starts[lost])
    known = np.isfinite(back).all(axis=1)
    there = walked(chain, ends[lost][known][:, :a], back[known])
    known[known] = np.isfinite(there).all(axis=1)
    assert abs(there[np.isfinite(there).all(axis=1)] - ends[lost][known]).max(initial=0.0) < SAME
    assert refused < (0.5 if name == "rrr" else 0.05) * 120


@pytest.mark.parametrize("name", ["rrr", "five_bar", "delta"])
def test_readings_of_another_mode_are_refused(name):
    """The sensors say what the robot's mirror image would."""
    active, sensed = chain_of(name), chain_of(name, sensed=True)
    active.reset()
    sensed.reset()
    k, a = len(sensed.joint_names), len(active.actuated_names)
    other = other_mode(active)
    assert other is not None
    assert active.solver.state(other).assembly_mode != active.home.assembly_mode
    with pytest.raises(ClosureError):
        sensed(other[:k], np.zeros(k), np.zeros(k))
    # the next state is none the worse for it
    q = active.forward_kinematics(active.home.q_a + 0.01).q_r[:k]
    assert sensed(q, np.zeros(k), np.zeros(k)) == pytest.approx(
        active(q[:a], np.zeros(a), np.zeros(a)), rel=1e-9, abs=1e-12
    )


def other_mode(chain: ClosedChain) -> np.ndarray | None:
    """Some closed configuration of the other orientation, with the motors at home."""
    rng = np.random.default_rng(0)
    a, solver = len(chain.actuated_names), chain.solver
    for _ in range(300):
        q_r = chain.home.q_r.copy()
        q_r[a:] += rng.uniform(-3, 3, len(q_r) - a)
        for _ in range(30):
            J = solver.mobility.jacobian(q_r)[:, a:]
            q_r[a:] -= np.clip(np.linalg.pinv(J) @ solver.mobility.residual(q_r), -0.5, 0.5)
        state = solver.state(q_r)
        if state.residual < 1e-10 and state.assembly_mode != chain.home.assembly_mode:
            return q_r
    return None


def test_another_mode_is_followed_where_reset_says_so():
    chain = chain_of("five_bar")
    other = chain.solver.state(other_mode(chain))
    chain.reset(other)
    q = far_states("five_bar")[0][:40] * 0.3 + chain.home.q_a * 0.7
    expected = walked(chain, q, other.q_r)
    there = np.isfinite(expected).all(axis=1)
    assert there.any()
    found = quietly(chain.forward_kinematics, q).q_r
    assert abs(found[there] - expected[there]).max() < SAME
    assert abs(chain.forward_kinematics(q[there][0]).q_r - expected[there][0]).max() < SAME
    chain.reset()
    assert chain.last.assembly_mode == chain.home.assembly_mode != other.assembly_mode


@pytest.mark.parametrize("name", ["rrr", "delta", "gough_stewart"])
def test_the_inverse_keeps_both_modes_or_refuses(name):
    chain = chain_of(name)
    rng = np.random.default_rng(3)
    answered = 0
    for _ in range(12):
        pose = chain.home.platform_pose.copy()
        pose[:3, 3] += rng.uniform(-0.15, 0.15, 3) * ([1, 1, 0] if name == "rrr" else 1)
        try:
            state = chain.inverse_kinematics(pose)
        except ClosureError:
            continue
        answered += 1
        assert state.platform_pose == pytest.approx(pose, abs=1e-8)
        assert state.assembly_mode == chain.home.assembly_mode
        # the same place by way of small steps
        here = chain.home
        for share in np.linspace(0, 1, 16)[1:]:
            between = pose.copy()
            between[:3, 3] = chain.home.platform_pose[:3, 3] * (1 - share) + pose[:3, 3] * share
            here = chain.inverse_kinematics(between, here)
        assert abs(here.q_r - state.q_r).max() < SAME
    assert answered > 3


@pytest.mark.parametrize("name", ["five_bar", "rrr"])
def test_a_monitor_stays_on_the_mode(name):
    chain = chain_of(name)
    monitor = SensorMonitor(chain.mechanism)
    k = len(monitor.joint_names)
    expected = far_states(name)[1][:30]
    for reference in expected[np.isfinite(expected).all(axis=1)]:
        verdict = monitor.update(reference[:k])
        assert verdict.consistent
        assert abs(verdict.state.q_r - reference).max() < 1e-6


# --- whole turns -----------------------------------------------------------------------------


def test_a_reading_a_whole_turn_away_is_the_same_place(tmp_path):
    robot = closed_robots.slider_crank(1)
    robot["links"][1]["joint"]["type"] = "continuous"
    chain = closed_robots.ClosedChain(closed_robots.load(robot, tmp_path))
    turn = 2 * np.pi
    here = chain.forward_kinematics([0.9]).q_r
    for q in ([0.9 + turn], [0.9 - 3 * turn]):
        state = chain.forward_kinematics(q)
        assert state.q_r[0] == q[0]
        assert state.q_r[1:] == pytest.approx(here[1:], abs=1e-9)
        batch = chain.forward_kinematics([q, [0.9]]).q_r
        assert batch[:, 0] == pytest.approx([q[0], 0.9])
        assert batch[0, 1:] == pytest.approx(batch[1, 1:], abs=1e-9)
    # solved joints go on where the motor's readings wrap
    angles = np.linspace(0.7, 0.7 + 2 * turn, 200)
    wrapped = (angles + np.pi) % turn - np.pi
    chain.reset()
    solved = np.array([chain.forward_kinematics([q]).q_r[1:] for q in wrapped])
    assert abs(np.diff(solved, axis=0)).max() < 0.3
    # the rod turns back against the crank, the block's pin does not turn
    assert solved[-1] - solved[0] == pytest.approx([0.0, -2 * turn], abs=1e-9)


def test_a_joint_that_is_not_continuous_has_no_whole_turns(tmp_path):
    robot = closed_robots.slider_crank(1)
    chain = closed_robots.ClosedChain(closed_robots.load(robot, tmp_path))
    there = chain.forward_kinematics([0.7 + 2 * np.pi]).q_r
    # it goes all the way round
    rod = chain.coordinate_names.index("rod")
    assert there[rod] - chain.home.q_r[rod] == pytest.approx(-2 * np.pi, abs=1e-9)
    assert chain.solver.way(np.array([0.0]), np.array([6.0])) == pytest.approx([6.0])


# --- anything, in any order ------------------------------------------------------------------

NUMBERS = st.one_of(
    st.floats(-1.0, 1.0),
    st.floats(-2.5, 2.5),
    st.sampled_from([0.0, np.nan, np.inf, -np.inf, 1e6, -1e9, 1e300]),
)
"""In shares of how far states are from home"""
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["torques", "forward", "batch", "matrix", "reset", "update", "copy"]),
        st.lists(NUMBERS, min_size=6, max_size=6),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.filterwarnings("ignore::robot_dynamics.errors.ClosureWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_whatever_is_called_the_loops_are_closed_and_joints_do_not_jump(robot, examples):
    name, original = robot
    a, size = len(original.actuated_names), FAR[name][0]
    oracle = closed_robots.Oracle(closed_robots.shipped(name), original.coordinate_names, a)
    home, zero = original.home, np.zeros(a)

    def is_sound(q_r: np.ndarray) -> bool:
        miss = oracle.closure(q_r, np.zeros_like(q_r))[0]
        mode = original.solver.state(q_r).assembly_mode
        return np.abs(miss).max() < 1e-9 and mode == home.assembly_mode

    def check(calls) -> None:
        chain = original
        chain.reset()
        starts, ends = [], []
        for what, away in calls:
            q = home.q_a + size * np.clip(away[:a], -1e300, 1e300)
            q_r = None
            before = chain.last.q_r
            try:
                if what == "torques":
                    tau = chain(q, zero, zero)
                    assert np.isfinite(tau).all() == np.isfinite(q).all()
                elif what == "forward":
                    q_r = chain.forward_kinematics(q).q_r
                elif what == "batch":
                    rows = chain.forward_kinematics(
                        np.array([q, home.q_a, home.q_a + 0.1 * size])
                    ).q_r
                    for row in rows:
                        assert np.isnan(row).all() or is_sound(row)
                    assert abs(rows[1] - home.q_r).max() < SAME
                elif what == "matrix":
                    D = chain.mass_matrix(q)
                    assert np.isnan(D).all() or np.linalg.eigvalsh((D + D.T) / 2).min() > 0
                elif what == "reset":
                    chain.reset()
                elif what == "copy":
                    chain = copy.copy(chain) if name == "five_bar" else chain
                else:
                    chain.update(chain.mechanism)
            except ClosureError:
                # nothing has happened
                assert abs(chain.last.q_r - before).max() < SAME
            assert is_sound(chain.last.q_r)
            if q_r is not None and np.isfinite(q_r).all():
                starts.append(before)
                ends.append(q_r)
        if ends:
            # passive joints go as far as a walk says, whole turns and all
            ends = np.array(ends)
            expected = walked(chain, ends[:, :a], np.array(starts))
            known = np.isfinite(expected).all(axis=1)
            assert abs(expected - ends)[known].max(initial=0.0) < SAME

    examples(check, 6 if name == "gough_stewart" else 12, calls=CALLS)


def test_a_stride_onto_the_other_assembly_mode_is_none(monkeypatch):
    """Whatever its other guards say: neither in a batch nor for a single state."""
    chain = ClosedChain(rd.load(CONFIG / "five_bar.yaml"))
    way = chain._continuation
    other, home = way._origin.copy(), chain.home.q_r
    other[-1] *= -1.0
    q = home[:2] + np.array([[0.0, 0.0], [0.05, -0.05], [0.2, 0.1]])
    for origin, goes in ((way._origin, True), (other, False)):
        _, sound, _ = way._from_origin(q, np.ones(3, dtype=bool), origin)
        assert (sound == goes).all()

    def asked(*_):
        raise ClosureError("certified steps instead")

    monkeypatch.setattr(type(way._closer), "forward_kinematics", asked)
    way._at_motors(q[1], home, way._origin, 100)
    with pytest.raises(ClosureError, match="certified steps"):
        way._at_motors(q[1], home, other, 100)


@pytest.mark.parametrize(("robot", "turns"), [("rrr", True), ("gough_stewart", False)])
def test_whole_turns_are_no_way_and_lengths_are_fractions_of_the_size(robot, turns):
    mechanism, solver = prepared(rd.load(CONFIG / f"{robot}.yaml"))
    k, home = (-1 if turns else 0), solver.home.q_r
    name = solver.geometry.names[k]
    assert mechanism.joint(name).turns == turns
    meant = {name: float(home[k]) + (2 * np.pi if turns else 0.0) + 0.1}
    geometry = LoopGeometry.of(replace(mechanism, near=meant))
    assert not math.isclose(solver.size, 1.0, rel_tol=0.1)
    expected = 0.1 if turns else 0.1 / solver.size
    assert Near(geometry, solver.scale, solver.size).miss(home) == pytest.approx(expected, rel=1e-9)
