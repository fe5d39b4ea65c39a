# SPDX-License-Identifier: Apache-2.0
"""Closed chains keep their state by thread; copies, batches and changes leave each other alone."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import threading
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from robots import CONFIG, relative

import robot_dynamics as rd
from robot_dynamics.closure import ClosedChain, LoopGeometry, SensorMonitor
from robot_dynamics.closure.geometry import closer
from robot_dynamics.errors import ClosureError, ClosureWarning, InputError
from robot_dynamics.mechanism import Inertial
from robot_dynamics.mechanism.transform import with_payload

EXACT = 1e-10
"""Relative: warm starts leave rounding on condition numbers of ten"""


@pytest.fixture(scope="module")
def rrr():
    return rd.load(CONFIG / "rrr.yaml")


def states(chain: ClosedChain, seed: int, count: int, size: float = 0.25) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return chain.home.q_a + rng.uniform(-size, size, (count, len(chain.actuated_names)))


@pytest.mark.parametrize("name", ["rrr", "five_bar", "delta"])
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_threads_do_not_disturb_each_other(name, backend):
    chain = ClosedChain(rd.load(CONFIG / f"{name}.yaml"), backend=backend)
    qd, qdd = np.full((2, len(chain.actuated_names)), 0.4)
    size = 0.12 if name == "rrr" else 0.25
    tasks = [states(chain, seed, 40, size) for seed in range(4)]
    expected = []
    for task in tasks:
        chain.reset()
        expected.append([chain(q, qd, qdd) for q in task])
    chain.reset()
    start = threading.Barrier(4)

    def run(task):
        start.wait()
        return [chain(q, qd, qdd) for q in task], chain.mass_matrix(task[-1])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, tasks))
    for (torques, D), reference, task in zip(found, expected, tasks, strict=True):
        assert relative(torques, reference) < EXACT
        assert relative(D, chain.mass_matrix(task[-1])) < EXACT


def test_every_thread_starts_where_reset_put_it_and_last_is_anybodys(rrr):
    chain = ClosedChain(rrr, backend="python")
    there = chain.forward_kinematics(chain.home.q_a + np.array([0.15, -0.1, 0.1]))
    with ThreadPoolExecutor(1) as pool:
        q = chain.home.q_a - 0.1
        pool.submit(chain.forward_kinematics, q).result()
        assert chain.last.q_a == pytest.approx(q)
        # this thread's own next call goes on from its own last state
        assert chain.forward_kinematics(there.q_a).q_r == pytest.approx(there.q_r, abs=1e-12)
        chain.reset(there)
        assert chain.last.q_r == pytest.approx(there.q_r, abs=1e-14)
        seen = pool.submit(lambda: chain._continuation._memory(chain._continuation._origin))
        assert seen.result()[4 : 4 + len(there.q_r)] == pytest.approx(there.q_r, abs=1e-14)


@pytest.mark.parametrize(
    "result",
    [
        lambda chain, q: chain.configuration(q),
        lambda chain, q: chain.forward_kinematics(q).q_r,
        lambda chain, q: chain.solved(q, 0 * q, 0 * q)[0],
        lambda chain, q: chain.solved(q, 0 * q, 0 * q)[1],
        lambda chain, q: (chain.configuration(q), chain.last.q_r)[1],
    ],
)
def test_what_a_call_returns_is_the_callers_own(rrr, result):
    chain = ClosedChain(rrr, backend="python")
    q = chain.home.q_a + 0.01
    expected = chain.configuration(q)
    result(chain, q)[:] += 3.0
    assert chain.last.q_r == pytest.approx(expected, abs=1e-12)
    assert chain.configuration(q) == pytest.approx(expected, abs=1e-12)


def test_a_change_during_a_call_is_seen_whole(rrr):
    """Gravity flips while other threads compute: each torque is of one or the other."""
    chain = ClosedChain(rrr)
    other = replace(rrr, gravity=-3.0 * rrr.gravity)
    q, zero = chain.home.q_a + 0.1, np.zeros(3)
    either = []
    for mechanism in (rrr, other):
        chain.update(mechanism)
        either.append(chain(q, zero, zero))
    assert relative(*either) > 0.5
    stop = threading.Event()

    def compute():
        found = []
        while not stop.is_set():
            found += [chain(q, zero, zero), chain.gravity(q)]
            found += list(chain(np.tile(q, (3, 1)), zero, zero))
        return found

    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(compute) for _ in range(2)]
        for i in range(60):
            chain.update((rrr, other)[i % 2])
        stop.set()
        found = [tau for each in work for tau in each.result()]
    off = [min(relative(tau, one) for one in either) for tau in found]
    assert max(off) < 1e-9


def test_a_new_kind_of_friction_changes_the_torques_of_all_threads_and_nobodys_place(rrr):
    """Kernels are compiled anew while other threads compute: each torque is of one or the other."""
    q_at = states(ClosedChain(rrr), 3, 2, 0.1)
    dynamics = rd.InverseDynamics(rrr)
    closed, zero = dynamics.closed, np.zeros(3)
    name = rrr.actuated_names[1]
    before = dynamics(q_at[0], zero, zero)
    closed.forward_kinematics(q_at[1])
    origin, last = closed._continuation.origin.q_r, closed.last.q_r
    computed, stop = threading.Event(), threading.Event()

    def compute():
        found = []
        while not stop.is_set():
            # a single state, a far one and a batch: all of the ways
            found += [dynamics(q_at[0], zero, zero), *dynamics(q_at[:1], zero[None], zero[None])]
            computed.set()
        return found

    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(compute) for _ in range(2)]
        assert computed.wait(60)
        dynamics.set_friction(name, 0.0, 0.0, offset=0.7)
        stop.set()
        found = [tau for each in work for tau in each.result()]
    after = [before[0], before[1] + 0.7, before[2]]
    assert max(min(relative(tau, one) for one in (before, after)) for tau in found) < 1e-9
    assert relative(dynamics(q_at[0], zero, zero), after) < EXACT
    # it is the same chain, so that nobody's `reset` meanwhile is lost
    assert dynamics.closed is closed
    assert closed.mechanism.joint(name).friction.offset == 0.7
    for chain in (closed, copy.copy(closed)):
        assert relative(chain.gravity(q_at[0]), dynamics.gravity(q_at[0])) < EXACT
    assert np.array_equal(closed._continuation.origin.q_r, origin)
    closed.reset(closed.solver.state(last))
    closed.update(rrr)
    assert np.array_equal(closed.last.q_r, last)
    assert relative(closed(q_at[0], zero, zero), before) < EXACT


def test_a_kernel_built_during_a_change_is_not_stale(rrr, monkeypatch):
    chain = ClosedChain(rrr, backend="python")
    heavy = replace(rrr, gravity=5.0 * rrr.gravity)
    kernels = chain._kernels
    built = kernels.function

    def changed_meanwhile(name):
        found = built(name)
        chain.update(heavy)
        return found

    monkeypatch.setattr(kernels, "function", changed_meanwhile)
    q = chain.home.q_a + 0.1
    before, after = (ClosedChain(robot, backend="python").gravity(q) for robot in (rrr, heavy))
    # the call under way has the robot that it began with, the next one has the other
    assert relative(chain.gravity(q), before) < EXACT
    assert relative(chain.gravity(q), after) < EXACT
    assert chain.mechanism is heavy


@pytest.mark.parametrize("sensed", [False, True])
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_is_the_same_and_its_own(rrr, sensed, way):
    chain = ClosedChain(rrr, sensed=sensed, condition_limit=77.0, backend="python")
    k = len(chain.joint_names)
    there = ClosedChain(rrr, backend="python").forward_kinematics(chain.home.q_a + 0.15)
    state = there.q_r[:k], np.full(k, 0.2), np.full(k, -0.3)
    expected = chain(*state)
    other = way(chain)
    assert other.last.q_r == pytest.approx(chain.last.q_r, abs=1e-12)
    assert other.condition_limit == 77.0
    assert other.joint_names == chain.joint_names
    assert relative(other(*state), expected) < EXACT
    # what happens to one does not happen to the other
    other.update(replace(rrr, gravity=4.0 * rrr.gravity))
    other.reset()
    assert relative(chain(*state), expected) < EXACT
    assert relative(other(*state), expected) > 0.1
    assert chain.last.q_r[: len(there.q_r)] == pytest.approx(there.q_r, abs=1e-9)


def test_a_chain_goes_on_from_where_another_model_of_the_robot_is(rrr):
    """With sensors the platform has coordinates of its own."""
    active, sensed = ClosedChain(rrr, backend="python"), ClosedChain(rrr, sensed=True)
    there = active.forward_kinematics(active.home.q_a + np.array([0.3, -0.2, 0.1]))
    sensed.reset(there)
    assert sensed.last.residual < 1e-12
    assert sensed.last.platform_pose == pytest.approx(there.platform_pose, abs=1e-12)
    active.reset()
    active.reset(sensed.last)
    assert active.last.q_r == pytest.approx(there.q_r, abs=1e-12)


def test_states_solvers_and_monitors_are_sent_too(rrr):
    chain = ClosedChain(rrr, backend="python")
    state = pickle.loads(
        pickle.dumps(chain.forward_kinematics(chain.home.q_a + 0.1, [0.1, 0.2, 0.3]))
    )
    assert relative(state.T_rate, chain.last.moving(state.qd_r).T_rate) < EXACT
    monitor = pickle.loads(pickle.dumps(SensorMonitor(rrr, backend="python")))
    assert monitor.update(state.q_r[:6]).consistent


@pytest.mark.parametrize("sensed", [False, True])
def test_a_copy_and_what_is_sent_are_not_explored_again(rrr, sensed, monkeypatch):
    chain = ClosedChain(rrr, sensed=sensed, backend="python")
    q = chain.forward_kinematics(chain.home.q_r[: len(chain.joint_names)]).q_r[
        : len(chain.joint_names)
    ]
    expected = chain.gravity(q)
    assert abs(expected).max() > 0

    def again(*_):
        raise AssertionError("home is searched for again")

    monkeypatch.setattr(closer, "explore", again)
    for other in (copy.copy(chain), copy.deepcopy(chain), pickle.loads(pickle.dumps(chain))):
        assert relative(other.gravity(q), expected) < EXACT
        assert other.last.q_r == pytest.approx(chain.last.q_r, abs=1e-14)


@pytest.mark.parametrize("sensed", [False, True])
def test_other_bodies_leave_the_geometry_as_it_is(rrr, sensed, monkeypatch):
    dynamics = rd.InverseDynamics(rrr, sensed=sensed, backend="python")
    q = dynamics.closed.home.q_r[: len(dynamics.joint_names)]
    load = Inertial(2.0, np.zeros(3), 0.1 * np.eye(3))
    expected = rd.InverseDynamics(
        replace(with_payload(rrr, rrr.platform, load), gravity=np.array([0.0, -3.0, 0.0])),
        sensed=sensed,
        backend="python",
    ).gravity(q)

    def again(*_):
        raise AssertionError("the geometry is found again")

    monkeypatch.setattr(LoopGeometry, "of", again)
    dynamics.set_payload(rrr.platform, load)
    dynamics.gravity_vector = [0.0, -3.0, 0.0]
    assert relative(dynamics.gravity(q), expected) < EXACT
    # what is found out of the new mechanism is found in the same order
    closed = dynamics.closed
    assert closed.tree.link(rrr.platform).inertial.mass > rrr.link(rrr.platform).inertial.mass
    assert closed.subsystems.geometry.names == closed.coordinate_names


def computed(chain: ClosedChain) -> np.ndarray:
    return chain(chain.home.q_a + 0.1, np.full(3, 0.3), np.zeros(3))


def forked(chain: ClosedChain) -> np.ndarray:
    """The same in a child of this process, which has computed with it already."""
    computed(chain)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(computed, (chain,)).get(120)


@pytest.mark.parametrize("there", [computed, forked])
def test_another_process_computes_the_same(rrr, there):
    if there is forked and "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork here")
    chain = ClosedChain(rrr, backend="python")
    # a new process: other tests' libraries may have left threads in this one, and so no forks
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        found = pool.submit(there, chain).result(120)
    assert relative(found, computed(chain)) < EXACT


# --- batches ---------------------------------------------------------------------------------


def test_a_batch_does_not_depend_on_what_was_called_before(rrr):
    chain = ClosedChain(rrr, backend="python")
    q = states(chain, 5, 20, 0.3)
    first = chain.forward_kinematics(q).q_r
    for other in states(chain, 6, 5, 0.4):
        chain.forward_kinematics(other)
        assert np.array_equal(chain.forward_kinematics(q).q_r, first)


def test_what_cannot_be_closed_is_nan_and_nothing_else_is_lost():
    chain = ClosedChain(rd.load(CONFIG / "five_bar.yaml"), backend="python")
    zero = np.zeros(2)
    q = states(chain, 0, 6)
    assert np.isnan(chain([np.nan, 0.0], zero, zero)).all()
    expected = chain(q, zero, zero)
    bad = q.copy()
    bad[2], bad[4, 1] = [np.pi, 0.0], np.nan
    good = [0, 1, 3, 5]
    calls = {
        "torques": lambda x: chain(x, zero, zero),
        "gravity": chain.gravity,
        "mass_matrix": chain.mass_matrix,
        "coriolis_matrix": lambda x: chain.coriolis_matrix(x, zero),
        "forward": lambda x: chain.forward_kinematics(x).q_r,
        "external_force": lambda x: chain.external_force(x, np.ones(6)),
    }
    for name, call in calls.items():
        whole = call(q)
        with pytest.warns(ClosureWarning, match=r"1 of 6 states could not be .* at \[2\]: closure"):
            found = call(bad)
        assert np.isnan(found[[2, 4]]).all(), name
        assert relative(found[good], whole[good]) < EXACT, name
    # in any shape, and the next batch is none the worse for it
    with pytest.warns(ClosureWarning, match=r"at \[0, 2\]"):
        shaped = chain(bad.reshape(2, 3, 2), zero, zero)
    assert relative(shaped.reshape(6, 2)[good], expected[good]) < EXACT
    assert np.array_equal(chain(q, zero, zero), expected)
    with pytest.raises(ClosureError):
        chain(bad[2], zero, zero)


def test_rows_too_near_a_singularity_are_nan():
    chain = ClosedChain(rd.load(CONFIG / "five_bar.yaml"), backend="python", condition_limit=2.0)
    q = chain.home.q_a + np.array([[0.0, 0.0], [-0.088, 0.923], [0.05, 0.0]])
    with pytest.warns(ClosureWarning, match=r"1 of 3 .* at \[1\]: .*condition number is 2\.5"):
        found = chain.gravity(q)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()
    with pytest.raises(ClosureError, match=r"condition number is 2\.5"):
        chain.gravity(q[1])


# --- inputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_what_are_no_real_numbers_is_refused(rrr, backend):
    chain = ClosedChain(rrr, backend=backend)
    q, zero = chain.home.q_a, np.zeros(3)
    expected = chain(q, zero, zero)
    wrong = [q + 0j, q + 1j, q.astype(str), q > 0, [True, False, True], "abc", None, [None] * 3]
    for bad in wrong:
        for call in (
            lambda x: chain(x, zero, zero),
            lambda x: chain(q, x, zero),
            lambda x: chain(q, zero, x),
            lambda x: chain(q, zero, zero, np.resize(np.asarray(x, dtype=object), 6)),
            chain.forward_kinematics,
            lambda x: chain.forward(q, zero, x),
            chain.gravity,
            chain.mass_matrix,
            lambda x: chain.coriolis_matrix(q, x),
        ):
            with pytest.raises(InputError, match="expected real numbers"):
                call(bad)
    for shape in ((3,), (5, 7), ()):
        with pytest.raises(InputError, match="wrench"):
            chain(q, zero, zero, np.zeros(shape))
    with pytest.raises(InputError, match="batches"):
        chain(np.tile(q, (2, 1)), zero, zero, np.zeros((3, 6)))
    assert relative(chain(q, zero.astype(np.float32), [0, 0, 0]), expected) < 1e-14


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_any_memory_layout_will_do(rrr, backend):
    chain = ClosedChain(rrr, backend=backend)
    q = chain.home.q_a + 0.1
    expected = chain(q, q, q)
    unaligned = np.frombuffer(b"\0" + q.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    assert not unaligned.flags.aligned
    strided = np.repeat(q, 2)[::2]
    swapped = q.astype(">f8")
    for odd in (unaligned, strided, swapped, q.tolist()):
        assert relative(chain(odd, odd, odd), expected) < 1e-14
        assert relative(chain.gravity(odd), chain.gravity(q)) < 1e-14


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 0.5, "10", None, True, 1j])
def test_a_condition_limit_is_a_number_of_one_at_least(rrr, bad):
    with pytest.raises(InputError, match=r"condition_limit: found .*at least 1"):
        ClosedChain(rrr, condition_limit=bad, backend="python")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, "0", None, False, 1j])
def test_friction_smoothing_is_a_rate(rrr, bad):
    with pytest.raises(InputError, match=r"friction_smoothing: found"):
        rd.InverseDynamics(rrr, friction_smoothing=bad, backend="python")


def test_reset_takes_one_closed_state(rrr):
    chain = ClosedChain(rrr, backend="python")
    with pytest.raises(InputError, match="start"):
        chain.reset(chain.forward_kinematics(states(chain, 0, 3)))
    # readings that miss a little are closed by the motors
    off = chain.home.q_r.copy()
    off[4] += 0.02
    chain.reset(chain.solver.state(off))
    assert chain.last.residual < 1e-11
    far = chain.home.q_r + np.array([0, 0, 0, 1.0, -1.0, 0.5, 0.3])
    with pytest.raises(ClosureError):
        chain.reset(chain.solver.state(far))


def test_switching_formulations_leaves_nothing_behind(rrr):
    names = ["newton_euler", "gibbs_appell"]

    def switch():
        for name in names:
            chain = ClosedChain(rrr, name, backend="python")
            chain(chain.home.q_a, np.zeros(3), np.zeros(3))
        del chain
        gc.collect()

    for _ in range(2):
        switch()
    tracemalloc.start()
    try:
        switch()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3):
            switch()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 6 * 5_000, f"{grown / 6:.0f} bytes a switch"


def test_home_is_not_changed_through_the_state_that_is_given():
    chain = rd.InverseDynamics(rd.load(CONFIG / "five_bar.yaml")).closed
    for given in (chain.home.q_r, chain.home.qd_r, chain.home.q_a):
        with pytest.raises(ValueError, match="read-only"):
            given[:] = 0.0
