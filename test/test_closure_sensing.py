# SPDX-License-Identifier: Apache-2.0
"""Redundant sensors: what they add, and how to find a faulty one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from closed_robots import ClosedChain
from robots import CONFIG, relative

import robot_dynamics as rd
from robot_dynamics.closure import Closer, SensorMonitor, fit
from robot_dynamics.errors import ClosureError, InputError

NOISE = 5e-4
"""rad: an encoder of some 12 bit"""
LIE = 0.15
"""rad or m"""
ROBOTS = ["rrr", "five_bar", "delta", "gough_stewart"]


class Scene:
    """A robot on a slow motion, its encoders, and a monitor that watches them."""

    def __init__(self, name: str, **options):
        self.mechanism = rd.load(CONFIG / f"{name}.yaml")
        self.monitor = SensorMonitor(self.mechanism, backend="python", **options)
        self.truth = ClosedChain(self.mechanism)
        self.a, self.k = len(self.truth.actuated_names), len(self.monitor.joint_names)
        self.rng = np.random.default_rng(0)

    def readings(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """(with noise, without) at step i."""
        q = self.truth.home.q_a + 0.04 * np.sin(0.02 * i + np.arange(self.a))
        true = self.truth.forward_kinematics(q).q_r[: self.k]
        return true + self.rng.normal(0, NOISE, self.k), true


@pytest.mark.parametrize("name", ROBOTS)
def test_honest_sensors_are_trusted(name):
    scene = Scene(name)
    for i in range(60):
        readings, _ = scene.readings(i)
        verdict = scene.monitor.update(readings)
        assert verdict.consistent
        assert verdict.all_trusted
        assert verdict.suspect is None
        assert np.array_equal(verdict.q, readings)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_liar_is_named_replaced_and_taken_back(name):
    patience = 10
    for liar in range(Scene(name).k if name != "gough_stewart" else 8):
        scene = Scene(name, patience=patience)
        # a leg of the hexapod may not be 0.15 m longer on the same assembly mode
        lie = 0.03 if name == "gough_stewart" and liar < 6 else LIE
        liar_name = scene.monitor.joint_names[liar]
        for i in range(50):
            readings, true = scene.readings(i)
            lying = 10 <= i < 30
            readings[liar] += lie * lying
            verdict = scene.monitor.update(readings)
            assert verdict.suspect == (liar_name if i == 10 else None), (liar_name, i)
            assert verdict.q == pytest.approx(true, abs=20 * NOISE)
            away = 10 <= i < 30 + patience - 1
            assert (liar_name not in verdict.trusted) == (away or liar < scene.a)
            if lying:
                assert verdict.closure_residual > 0.001
            assert verdict.residual < scene.monitor.threshold


def test_rates_of_a_liar_are_solved_too():
    scene = Scene("rrr")
    state = scene.truth.forward_kinematics(scene.truth.home.q_a, [0.3, -0.2, 0.5])
    readings, rates = state.q_r[:6].copy(), state.qd_r[:6].copy()
    readings[4] += LIE
    rates[4] = 77.0
    verdict = scene.monitor.update(readings, rates)
    assert verdict.suspect == "qp2"
    assert verdict.qd == pytest.approx(state.qd_r[:6], abs=1e-9)


def test_with_one_redundant_reading_the_motors_are_believed():
    scene = Scene("five_bar")
    monitor = SensorMonitor(replace(scene.mechanism, sensed=("qp1",)), backend="python")
    true = scene.truth.home.q_r[:3]
    verdict = monitor.update(true + np.array([0.0, 0.0, LIE]))
    assert not verdict.consistent
    assert verdict.suspect is None
    assert verdict.trusted == ()
    assert verdict.q == pytest.approx(true, abs=1e-9)


def test_two_liars_leave_the_motors():
    scene = Scene("rrr")
    true = scene.truth.home.q_r[:6]
    verdict = scene.monitor.update(true + np.array([0, 0, 0, LIE, -LIE, 0.5 * LIE]))
    assert verdict.suspect is None
    assert verdict.trusted == ()
    assert verdict.q == pytest.approx(true, abs=1e-9)


def test_a_missing_reading_is_solved():
    scene = Scene("rrr")
    true = scene.truth.home.q_r[:6]
    for missing in range(6):
        readings = true.copy()
        readings[missing] = np.nan
        verdict = scene.monitor.update(readings)
        assert verdict.consistent
        assert verdict.q == pytest.approx(true, abs=1e-9)
    assert scene.monitor.update(true).all_trusted


def test_too_few_readings_are_refused():
    scene = Scene("rrr")
    readings = scene.truth.home.q_r[:6].copy()
    readings[:4] = np.nan
    with pytest.raises(
        ClosureError, match=r"only 2 readings are available and trusted \(of qa1, .*; 3 are needed"
    ):
        scene.monitor.update(readings)


def test_wrong_shapes_are_refused():
    scene = Scene("rrr")
    with pytest.raises(InputError, match=r"q: found \(3,\), expected \(6,\): qa1, qa2, qa3, qp1"):
        scene.monitor.update(np.zeros(3))
    with pytest.raises(InputError, match="threshold"):
        SensorMonitor(scene.mechanism, threshold=0.0, backend="python")


def test_readings_are_real_numbers_of_the_right_shape():
    scene = Scene("rrr")
    true, monitor = scene.truth.home.q_r[:6], scene.monitor
    start, solver = scene.truth.home.q_r, scene.truth.solver
    nothing = ["abc", None, true + 0j, true.astype(str), true > 0, [[1.0], [1.0, 2.0]], [None] * 6]
    for bad in nothing:
        for call in (
            lambda x: monitor.update(x),
            lambda x: monitor.update(true, x if x is not None else "no rates are none"),
            lambda x: fit(solver, x, start),
            lambda x: fit(solver, true, x),
        ):
            with pytest.raises(InputError, match="expected real numbers"):
                call(bad)
    for bad in (true[:5], true[None], 1.0):
        for call in (monitor.update, lambda x: monitor.update(true, x)):
            with pytest.raises(InputError, match=r"expected \(6,\): qa1"):
                call(bad)
        with pytest.raises(InputError, match=r"readings: found .*expected \(6,\)"):
            fit(solver, bad, start)
    for bad in ([True] * 5, np.ones(6), "abc", [[True], [True, False]]):
        with pytest.raises(InputError, match=r"used: found .*\(6,\) of bool"):
            fit(solver, true, start, bad)
    missing = np.array([*true[:5], np.nan])
    with pytest.raises(InputError, match="finite numbers where they are used"):
        fit(solver, missing, start)
    assert fit(solver, missing, start, np.arange(6) < 5).residual < 1e-9
    # what was refused left no trace, and any layout of memory will do
    assert monitor.distrusted == ()
    unaligned = np.frombuffer(b"\0" + true.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    for odd in (unaligned, true.astype(">f8"), np.repeat(true, 2)[::2], true.tolist()):
        assert monitor.update(odd, odd).consistent
        assert fit(solver, odd, start).residual < 1e-9
    for bad in (np.nan, -1.0, np.inf, "1", None, True):
        with pytest.raises(InputError, match="threshold"):
            SensorMonitor(scene.mechanism, threshold=bad, backend="python")
        with pytest.raises(InputError, match="patience"):
            SensorMonitor(scene.mechanism, patience=bad, backend="python")


@pytest.mark.parametrize("name", ROBOTS)
def test_the_fit_is_the_nearest_closed_configuration(name):
    scene = Scene(name)
    readings, _ = scene.readings(3)
    readings += scene.rng.normal(0, 0.005, scene.k)
    solver = scene.truth.solver
    best = fit(solver, readings, scene.truth.home.q_r)
    assert best.state.residual < 1e-11
    scale = solver.scale[: scene.k]

    def distance(state):
        return float(np.sum(((readings - state.q_r[: scene.k]) / scale) ** 2))

    # going anywhere else from there is farther, and at first order no nearer
    step = 1e-4
    for direction in np.eye(scene.a):
        sides = [
            scene.truth.forward_kinematics(best.state.q_a + s * step * direction) for s in (1, -1)
        ]
        here, there = distance(best.state), [distance(side) for side in sides]
        assert min(there) > here
        assert abs(there[0] - there[1]) / (2 * step) < 1e-5


def test_noise_is_averaged_over_the_sensors():
    """The fit of six encoders is nearer to the truth than three motors' alone."""
    scene = Scene("rrr")
    errors = []
    for i in range(100):
        readings, true = scene.readings(i)
        best = fit(scene.truth.solver, readings, scene.truth.home.q_r)
        errors.append((best.state.q_a - true[:3], readings[:3] - true[:3]))
    fitted, motors = np.sqrt(np.mean(np.square(errors), axis=(0, 2)))
    assert fitted < 0.95 * motors


@pytest.mark.parametrize("name", ROBOTS)
def test_readings_are_closed_once_for_the_verdict_and_the_torques(name):
    """What is compiled for both is what each gives by itself."""
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    active, sensed, apart = (ClosedChain(mechanism, sensed=s) for s in (False, True, True))
    monitor = SensorMonitor(mechanism, model=sensed)
    a, k, rng = len(active.joint_names), len(sensed.joint_names), np.random.default_rng(7)
    for i in range(20):
        truth = active.forward_kinematics(active.home.q_a + 0.003 * i)
        # they disagree, but not enough for distrust
        readings = truth.q_r[:k] + 0.004 * rng.uniform(-1, 1, k) * active.solver.scale[:k]
        found = sensed.disagreement(readings, monitor.threshold)
        assert found is not None
        q_r, left = found
        n = len(active.coordinate_names)
        exact = active.forward_kinematics(readings[:a])
        assert abs(q_r[:n] - exact.q_r).max() < 1e-6  # two steps of Newton
        best = fit(active.solver, readings, exact.q_r, scale=sensed.solver.scale[:k])
        assert best.residual > 5e-4
        assert left == pytest.approx(best.residual, rel=0.005)
        verdict = monitor.update(readings)
        assert verdict.residual == pytest.approx(left, abs=1e-9)
        assert abs(verdict.state.q_r - exact.q_r).max() < 1e-11
        raw = np.concatenate([readings, exact.q_r[k:]])
        assert verdict.closure_residual == pytest.approx(float(active.solver.state(raw).residual))
        # torques where they were closed, and where they were not yet
        qd, qdd_a = rng.uniform(-1, 1, k), rng.uniform(-3, 3, a)
        tau = sensed._continuation.consistent_torques(readings, qd, qdd_a)
        assert tau is not None
        qdd = [*qdd_a, *apart.sensed_accelerations(readings, qd, qdd_a)]
        expected = apart(readings, qd, qdd)
        assert relative(tau, expected) < 1e-10
        assert relative(sensed.consistent_torques(readings, qd, qdd_a), expected) < 1e-10
        assert relative(apart.consistent_torques(readings + 1e-4, qd, qdd_a), expected) > 1e-10
    # on the loops the sensed joints accelerate as they have to
    state = active.forward_kinematics(active.home.q_a, rng.uniform(-1, 1, a))
    qdd_a = rng.uniform(-3, 3, a)
    following = sensed.sensed_accelerations(state.q_r[:k], state.qd_r[:k], qdd_a)
    assert relative(following, state.accelerations(qdd_a)[a:k]) < 1e-9
    # what disagrees is no place to go on from
    before = sensed.last.q_r
    readings[-1] += 0.05
    assert sensed.disagreement(readings, monitor.threshold) is None
    assert np.array_equal(sensed.last.q_r, before)


def far_readings(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(readings (20, n_a + n_s) with noise, without), tenths of a radian from home."""
    truth = ClosedChain(rd.load(CONFIG / f"{name}.yaml"))
    rng, a = np.random.default_rng(3), len(truth.joint_names)
    way = truth.solver.scale[:a] * rng.uniform(-0.25, 0.25, (20, a))
    true = truth.forward_kinematics(truth.home.q_a + way).q_r
    true = true[np.isfinite(true).all(axis=1)]
    names = [*truth.joint_names, *truth.mechanism.sensed]
    true = true[:, [truth.coordinate_names.index(each) for each in names]]
    return true + rng.normal(0, NOISE, true.shape), true


@pytest.mark.parametrize("name", ["rrr", "delta"])
def test_far_readings_are_closed_in_strides(name, monkeypatch):
    noisy, true = far_readings(name)
    chain = ClosedChain(rd.load(CONFIG / f"{name}.yaml"), sensed=True)
    k = len(chain.joint_names)

    def certified(*_):
        raise AssertionError("the certified path is for what strides cannot do")

    monkeypatch.setattr(Closer, "forward_kinematics", certified)
    rows = chain.forward_kinematics(noisy).q_r
    assert np.isfinite(rows).all()
    assert np.array_equal(chain.last.q_r, rows[-1])
    for reading, row in zip(noisy, rows, strict=True):
        chain.reset()
        assert relative(chain.forward_kinematics(reading).q_r, row) < 1e-11
    # what is read stays; the least squares leave no more than the noise
    assert np.array_equal(rows[:, :k], noisy)
    assert np.abs(chain.forward_kinematics(true).q_r - rows).max() < 20 * NOISE
    # a fit is where the rest of the closures has no slope
    J, residual = chain.solver.mobility.jacobian(rows), chain.solver.mobility.residual(rows)
    slope = np.swapaxes(J[..., k:], -1, -2) @ residual[..., None]
    assert np.abs(slope).max() < 1e-11


def test_motors_are_believed_on_their_own_mode():
    """Closed from an open start, near or far, on the mode of home."""
    noisy, _ = far_readings("delta")
    chain, truth = (ClosedChain(rd.load(CONFIG / "delta.yaml"), sensed=s) for s in (True, False))
    a, n = len(truth.joint_names), len(truth.coordinate_names)
    start = chain.home.q_r
    for reading in noisy:
        found = chain.at_motors(reading[:a], start)
        assert relative(found[:n], truth.forward_kinematics(reading[:a]).q_r) < 1e-10
        start = found + 1e-3


def test_the_motors_are_followed_from_where_all_readings_agreed_last(monkeypatch):
    """Not from where it was looked closer last: the straight way from there may lead nowhere."""
    scene = Scene("rrr")
    monitor, a = scene.monitor, scene.a
    for share in np.linspace(0, 1, 20):
        readings = scene.truth.forward_kinematics(scene.truth.home.q_a + 0.1 * share).q_r[: scene.k]
        assert monitor.update(readings).consistent
    starts, follow = [], monitor.model.at_motors
    monkeypatch.setattr(
        monitor.model, "at_motors", lambda q, start: starts.append(start) or follow(q, start)
    )
    missing = readings.copy()
    missing[-1] = np.nan
    verdict = monitor.update(missing)
    assert relative(starts[0][:a], readings[:a]) < 1e-12
    assert verdict.consistent
    assert relative(verdict.q, readings) < 1e-9


def test_a_monitor_explores_a_geometry_once(monkeypatch):
    from robot_dynamics.closure.geometry import closer

    explored, explore = [], closer.explore
    monkeypatch.setattr(
        closer, "explore", lambda *given: explored.append(given[0]) or explore(*given)
    )
    mechanism = rd.load(CONFIG / "rrr.yaml")
    monitor = SensorMonitor(mechanism, backend="python")
    # the robot as described, and with its platform on no leg
    assert len(explored) == 2
    SensorMonitor(mechanism, backend="python", model=monitor.model)
    assert len(explored) == 2
