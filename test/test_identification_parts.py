# SPDX-License-Identifier: Apache-2.0
"""The parts of an identification, one by one."""

from __future__ import annotations

import pickle
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import SIX_AXIS, changed, left_to_gain, miss, motion, recording
from scipy.optimize import minimize
from scipy.signal import butter, filtfilt, lfilter, sosfiltfilt
from solver_steps import steps_of_paths
from test_identification import ARM
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.app.identification_report import Stretch
from robot_dynamics.app.report_page import Chart, Line, standalone
from robot_dynamics.app.shared_options import factors, pairs
from robot_dynamics.errors import InputError, RecordingError
from robot_dynamics.identification import friction_laws as laws
from robot_dynamics.identification import identified, normal_equations, preparation
from robot_dynamics.identification.band import Band, Spread, needed
from robot_dynamics.identification.bodies import (
    BASIS,
    hessian,
    is_possible,
    numbers,
    pseudo_inertia,
    reference,
)
from robot_dynamics.identification.contacts import Contact, contacts, words
from robot_dynamics.identification.cutoff import choose
from robot_dynamics.identification.doubts import OPPOSITE, STATIC, Doubt
from robot_dynamics.identification.fleet import Sum
from robot_dynamics.identification.friction_laws import OFFSET, SLIDING, SLOW
from robot_dynamics.identification.identified import refuse_nonsense
from robot_dynamics.identification.low_pass import _unsaturated, filtered
from robot_dynamics.identification.normal_equations import (
    NormalEquations,
    Rows,
    SummedEquations,
    Sums,
    correlation_length,
    quietest,
    reduce,
    robust,
)
from robot_dynamics.identification.preparation import differences, even, prepare
from robot_dynamics.identification.quality import MISSED, far_off, large, lost, other_unit
from robot_dynamics.identification.recorded_rates import _noise, _rate_deviation
from robot_dynamics.identification.recording import Recording, Stream, thinned
from robot_dynamics.identification.samples import Samples
from robot_dynamics.identification.selection import HUMP, Drive, _Scored, _without_bodies, nothing
from robot_dynamics.identification.solve import LONGEST_PATH, Prior, inverted, minimise
from robot_dynamics.identification.torque_errors import Errors, SquaredErrors
from robot_dynamics.identification.unknowns import Unknowns
from robot_dynamics.mechanism import Friction, Inertial, Limits
from robot_dynamics.mechanism.dynamic_parameters import body_of, numbers_of

FIELDS = ("position", "velocity", "effort")


def masses(seed: int, count: int = 8):
    """(φ, P) of some point masses."""
    rng = np.random.default_rng(seed)
    m, r = rng.uniform(0.1, 1, count), rng.normal(0, 0.2, (count, 3))
    I = sum(a * (b @ b * np.eye(3) - np.outer(b, b)) for a, b in zip(m, r, strict=True))
    phi = np.array([m.sum(), *(m @ r), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])
    lifted = np.column_stack([r, np.ones(count)])
    return phi, (lifted * m[:, None]).T @ lifted


@pytest.mark.parametrize("seed", range(5))
def test_the_pseudo_inertia_is_the_second_moment_of_the_masses(seed):
    phi, P = masses(seed)
    np.testing.assert_allclose(pseudo_inertia(phi), P, atol=1e-14)
    np.testing.assert_allclose(numbers(P), phi, atol=1e-14)
    np.testing.assert_allclose(numbers_of(body_of(phi)), phi, atol=1e-14)
    assert is_possible(phi)


def test_what_cannot_be_is_known():
    assert not is_possible(masses(0, 1)[0] * np.array([-1.0] + [1.0] * 9))
    needle = Inertial(1.0, np.zeros(3), np.diag([0.1, 0.1, 0.21]))  # breaks the triangle inequality
    assert not is_possible(numbers_of(needle))
    assert is_possible(numbers_of(Inertial(1.0, np.ones(3), np.diag([0.1, 0.1, 0.19]))))


@pytest.mark.parametrize("seed", range(3))
def test_a_reference_is_the_description_where_that_can_be(seed):
    phi, P = masses(seed)
    np.testing.assert_allclose(reference(phi, 1.0, 0.1), P, atol=1e-12)
    flat, _ = masses(seed, 1)
    for impossible in (np.zeros(10), flat, phi * np.array([1.0] * 4 + [1.0, 1, 1, 1, 1, 9])):
        P0 = reference(impossible, 2.0, 0.1)
        assert np.linalg.eigvalsh(P0)[0] > 0
        assert P0[3, 3] == (impossible[0] or 2.0)
        np.testing.assert_allclose(P0[:3, 3], impossible[1:4])


def test_the_curvature_of_the_distance_is_its_second_derivative():
    phi, P = masses(1)

    def value(x):
        return -np.linalg.slogdet(pseudo_inertia(x))[1]

    H = hessian(np.linalg.inv(P))
    h = 1e-4
    for k in range(10):
        for l in range(10):
            a, b = h * np.eye(10)[k], h * np.eye(10)[l]
            four = value(phi + a + b) - value(phi + a - b) - value(phi - a + b) + value(phi - a - b)
            size = np.abs(H).max()
            assert four / (4 * h * h) == pytest.approx(H[k, l], rel=1e-3, abs=1e-3 * size)


def problem(seed: int, data: float):
    rng = np.random.default_rng(seed)
    prior = Prior((masses(seed)[1], masses(seed + 1)[1]), np.array([2.0]))
    A = np.sqrt(data) * rng.normal(size=(40, 21))
    truth = np.concatenate([masses(seed + 2)[0], masses(seed + 3)[0], [0.7]])
    return prior, A, A @ truth + 0.05 * np.sqrt(data) * rng.normal(size=40), truth


@pytest.mark.parametrize("gamma", [0.3, 3.0])
def test_the_fit_is_the_minimum_that_scipy_finds(gamma):
    prior, A, b, _ = problem(3, 1.0)
    x, H = minimise(A.T @ A, A.T @ b, prior, gamma)

    def objective(x):
        total = np.sum((A @ x - b) ** 2) / 2 + np.sum(2.0 * x[20:] ** 2) / 2
        for i, P in enumerate(prior.bodies):
            own = pseudo_inertia(x[10 * i : 10 * i + 10])
            if np.linalg.eigvalsh(own)[0] <= 0:
                return np.inf
            total += gamma * (np.trace(np.linalg.solve(P, own)) - np.linalg.slogdet(own)[1])
        return total

    rough = minimize(objective, prior.mean, method="Nelder-Mead", options={"maxiter": 10})
    assert objective(x) < rough.fun
    # stationary, and the curvature is that of the objective
    steps = 1e-4 * np.eye(21)
    slope = [(objective(x + s) - objective(x - s)) / 2e-4 for s in steps]
    bend = [(objective(x + s) - 2 * objective(x) + objective(x - s)) / 1e-8 for s in steps]
    np.testing.assert_allclose(slope, 0, atol=1e-3 * np.sqrt(np.diag(H).max()))
    np.testing.assert_allclose(bend, np.diag(H), rtol=0.02, atol=1e-3 * np.diag(H).min())


@pytest.mark.parametrize("seed", range(5))
def test_a_far_heavier_body_than_described_is_found_if_it_is_possible(seed):
    """From a step too close to the edge of the feasible set, Newton's method did not return."""
    random = np.random.default_rng(seed)
    light = Inertial(0.2, [0.0, 0.0, 0.02], np.diag([1e-4, 1e-4, 1.2e-4]))
    heavy = Inertial(2.2, [0.045, -0.03, 0.075], np.diag([0.01, 0.012, 0.006]))
    truth = numbers_of(heavy)
    # as for two axes of a wrist: the centre of mass is known far better than the rest
    A = random.normal(size=(40, 10)) * ([1e3] + [3e3] * 3 + [1e3] * 6)
    prior = Prior((pseudo_inertia(numbers_of(light)),))
    for gamma in (1e-4, 0.01):
        x, H = minimise(A.T @ A, A.T @ (A @ truth), prior, gamma)
        assert x == pytest.approx(truth, rel=5e-3, abs=1e-6)
        assert np.sqrt(np.diag(inverted(H)))[0] == pytest.approx(
            np.sqrt(np.diag(inverted(A.T @ A)))[0], rel=0.1
        )


@pytest.mark.parametrize(("count", "rows", "seed"), [(1, 6, 1), (2, 12, 9)])
@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_fits_to_what_no_robot_does_settle_too(count, rows, seed, scale):
    """First moments that only far heavier bodies can have, towards which Newton's method alone
    creeps."""
    random = np.random.default_rng(seed)
    bodies = []
    for k in range(count):
        center = random.uniform(-0.1, 0.1, 3)
        bodies.append(Inertial(3.0 / (k + 1), center, np.diag(random.uniform(0.01, 0.02, 3))))
    phi = [numbers_of(body) for body in bodies]
    asked = np.concatenate([numbers * ([1.0] + [20.0] * 3 + [1.0] * 6) for numbers in phi])
    A = scale * random.normal(size=(rows, 10 * count)) * ([0.01, 3, 3, 3, 1, 1, 1, 1, 1, 1] * count)
    G, g = A.T @ A, A.T @ (A @ asked)
    prior = Prior(tuple(pseudo_inertia(each) for each in phi))
    x = None
    for gamma in (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01):
        x, H = minimise(G, g, prior, gamma, x)
        assert left_to_gain(G, g, prior, gamma, x, H) < 1e-6


def test_the_path_ends_at_the_limit_of_rounding(monkeypatch):
    """The step to the minimum does not become smaller there, however often it is taken."""
    random = np.random.default_rng(0)
    roots = random.normal(size=(6, 4, 4))
    prior = Prior(tuple(roots @ np.swapaxes(roots, -1, -2)))
    turned = np.linalg.qr(random.normal(size=(60, 60)))[0]
    A = 1e10 * random.normal(size=(100, 60)) * np.logspace(0, -6, 60) @ turned
    steps, truth = steps_of_paths(monkeypatch), 0.01 * prior.mean
    x, _ = minimise(A.T @ A, A.T @ (A @ truth), prior, 0.01)
    rounding = np.finfo(float).eps * np.linalg.cond(A) ** 2
    assert np.linalg.norm(x - truth) < rounding * np.linalg.norm(truth)
    assert 0 < max(steps) < LONGEST_PATH


@pytest.mark.parametrize("start", [None, 30.0])
def test_a_rotor_keeps_an_inertia_at_the_minimum_of_its_barrier(start):
    G, g, gamma, r = 2.0, -50.0, 0.1, 0.5
    prior = Prior((), np.zeros(1), np.array([r]))
    x, H = minimise(
        np.array([[G]]), np.array([g]), prior, gamma, None if start is None else np.array([start])
    )
    # G s - g + γ / r - γ / (r + s) = 0, with u = r + s
    a = g + G * r - gamma / r
    u = (a + np.sqrt(a * a + 4 * G * gamma)) / (2 * G)
    assert x[0] == pytest.approx(u - r, abs=1e-9)
    assert H[0, 0] == pytest.approx(G + gamma / u**2, rel=1e-4)


@pytest.mark.parametrize("seed", range(40))
def test_fits_of_rotors_alone_are_finite_at_any_weight(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 4))
    A = random.normal(size=(count, count)) * 10 ** random.uniform(-15, 15)
    A *= 10 ** random.uniform(-3, 3, count)
    G, g = A.T @ A, A.T @ (A @ (random.normal(size=count) * 10 ** random.uniform(-6, 6)))
    rotors = np.where(random.random(count) < 0.3, np.inf, 10 ** random.uniform(-9, 3, count))
    prior = Prior((), np.maximum(1e-9 * np.diag(G), 1e-30), rotors)
    x, H = minimise(G, g, prior, 10 ** random.uniform(-9, 6))
    assert np.isfinite(x).all()
    assert np.isfinite(H).all()
    assert (x > -rotors).all()


def test_with_much_data_the_fit_is_least_squares_and_with_none_the_description():
    prior, A, _, truth = problem(3, 1e10)
    # the more certain the data, and the smaller the description's weight, the longer the path
    for factor, gamma in ((1.0, 1.0), (1e4, 1.0), (1e4, 1e-2), (1e4, 1e-8)):
        b = factor * A @ truth
        x, _ = minimise(factor**2 * A.T @ A, factor * A.T @ b, prior, gamma)
        best = np.linalg.lstsq(factor * A, b, rcond=None)[0]
        np.testing.assert_allclose(x, best, atol=1e-6)
    x, _ = minimise(np.zeros((21, 21)), np.zeros(21), prior, 1.0)
    np.testing.assert_allclose(x, prior.mean, atol=1e-9)
    # impossible parameters lead to the nearest possible ones
    x, _ = minimise(A.T @ A, A.T @ (A @ -truth), prior, 1.0)
    assert all(is_possible(x[k : k + 10]) for k in (0, 10))


def test_the_description_counts_alike_in_every_frame():
    """Moving a body's frame moves the result with it."""
    _phi, P = masses(5)
    rng = np.random.default_rng(0)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R * np.linalg.det(R), [0.3, -0.1, 0.2]
    T = np.column_stack([numbers(X @ B @ X.T) for B in BASIS])
    A = rng.normal(size=(4, 10))
    b = A @ masses(6)[0]
    here, _ = minimise(A.T @ A, A.T @ b, Prior((P,)), 1.0)
    moved = A @ np.linalg.inv(T)
    there, _ = minimise(moved.T @ moved, moved.T @ b, Prior((X @ P @ X.T,)), 1.0)
    np.testing.assert_allclose(there, T @ here, rtol=1e-5, atol=1e-6)


def test_without_viscous_friction_presliding_stays():
    law = laws.FrictionLaw(("viscous", "coulomb", "offset"), distance=2)
    assert law.without("viscous") == laws.FrictionLaw(("coulomb", "offset"), distance=2)
    assert law.without("coulomb") == laws.FrictionLaw(("viscous", "offset"))


def test_presliding_is_filtered_as_the_efforts_are():
    """Friction plus what the filter does to it is the law's filtered column, for any joints."""
    arm = rd.load(SIX_AXIS)
    (samples,) = prepare(recording(arm, 8.0, 100.0, seed=3), arm.joint_names, 3.0).stretches
    law, values = laws.FrictionLaw(("coulomb",), distance=3), np.array([2.0])
    distance = law.friction(values, True).presliding

    def friction(q, qd, qdd):
        return 2.0 * (np.sign(qd) - laws.reversal(qd, qdd, distance))

    shown = friction(samples.q, samples.qd, samples.qdd) + samples.blurred(friction)
    filtered = samples.friction @ law.matrix @ values
    np.testing.assert_allclose(shown, filtered, atol=1e-9)
    developed = samples.friction @ laws.FrictionLaw(("coulomb",)).matrix @ values
    assert np.abs(filtered - developed).max() > 0.1
    np.testing.assert_allclose(
        samples.columns([4, 1]).blurred(friction), samples.blurred(friction)[:, [4, 1]]
    )


def test_presliding_must_explain_a_tenth_as_a_stribeck_effect_must():
    names, values = ("viscous", "coulomb"), np.ones(2)
    plain, turning, tied = (
        Drive(laws.FrictionLaw(names, **more), False).price(1000.0, values)
        for more in ({}, {"distance": 1}, {"rate": 2, "tied": True})
    )
    assert turning - plain == tied - plain == HUMP * 1000.0


@pytest.mark.parametrize(
    ("missed", "price", "is_so"),
    [
        ([7.0, 7.0, 7.0, 47.0], 21.0, True),
        ([7.0, 7.0, 7.0, 47.0], 23.0, False),  # 4 times 3 are not worth 13 more
        ([10.2, 10.2, 10.2, 10.0], 20.0, False),  # all that is better is in one part
        ([10.2, 10.2, 10.2, 10.0], 9.0, True),  # but it is the simpler law
        ([7.0, 7.0, 7.0, 70.0], 21.0, True),
    ],
)
def test_what_explains_a_little_for_every_robot_must_do_so_in_most_parts(missed, price, is_so):
    simple = _Scored(nothing(), np.zeros(0), np.array([10.0, 10.0, 10.0, 50.0]), 90.0)
    other = _Scored(nothing(), np.zeros(0), np.array(missed), sum(missed) + price)
    assert other.beats(simple) is is_so


@pytest.mark.parametrize("turns", [True, False])
def test_every_law_is_the_friction_it_says(turns):
    rng = np.random.default_rng(0)
    qd = np.r_[rng.normal(0, 0.1, 40), 0.0]
    qdd = rng.normal(0, 9.0, len(qd))
    columns = laws.raw_columns(qd, turns, qdd)
    seen = set()
    for law in laws.laws():
        values = rng.uniform(0.1, 1, len(law.names))
        friction = law.friction(values, turns)
        states = zip(qd, qdd, strict=True)
        torque = [friction.torque(v, friction.heading(v, a)) for v, a in states]
        np.testing.assert_allclose(columns @ law.matrix @ values, torque, atol=1e-14)
        assert law.fault(values) in (None, "breakaway")
        assert not list(friction.faults())
        seen.add((law.names, law.rate, law.tied, law.distance))
    assert len(seen) == len(laws.laws())
    assert max(laws.rates(turns)) == (0.7 if turns else pytest.approx(0.07))
    assert not laws.reversal(np.array([1e-15]), np.array([1e-15]), 0.0).any()
    assert max(laws.distances(turns)) == (3e-3 if turns else pytest.approx(3e-4))


@pytest.mark.parametrize(
    ("names", "values", "fault", "instead"),
    [
        (("viscous", "coulomb"), (-1, 1), "viscous", ("coulomb",)),
        (("viscous", "coulomb"), (1, -1), "coulomb", ("viscous",)),
        (("coulomb", "offset"), (-1, -1), "coulomb", ("offset",)),
        (("coulomb", "stribeck_torque"), (1, -1.1), "stribeck_torque", ("coulomb",)),
        (("coulomb", "stribeck_torque"), (1, -0.9), None, None),
        (("coulomb", "stribeck_torque"), (1, 2.9), None, None),
        (
            ("viscous", "coulomb", "offset", "stribeck_torque"),
            (1, 1, 1, 3.1),
            "breakaway",
            (
                "viscous",
                "coulomb",
                "offset",
            ),
        ),
        (("coulomb", "offset"), (1, -5), None, None),
        (("coulomb", "offset", "stiffness"), (1, -5, 3), None, None),
        (("coulomb", "offset", "stiffness"), (1, 5, -3), None, None),
        (("coulomb", "offset", "stiffness"), (-1, 5, 3), "coulomb", ("offset", "stiffness")),
    ],
)
def test_friction_never_drives_its_joint_and_breaks_away_at_four_times_coulomb_at_most(
    names, values, fault, instead
):
    law = laws.FrictionLaw(names, 3 if "stribeck_torque" in names else None)
    assert law.fault(np.array(values, dtype=float)) == fault
    if instead is not None:
        simpler = law.without(fault)
        assert simpler.names == instead
        assert simpler.tied == (fault == "stribeck_torque")


def test_the_parameters_of_every_law_can_be_distinguished():
    """Coulomb friction of its own in each direction is mean Coulomb friction and an offset."""
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 2000))
    raw = laws.raw_columns(qd, True, qdd)
    raw[:, laws.STIFFNESS] = q
    for law in (each for each in laws.laws() if each.names):
        columns = raw @ law.matrix
        assert np.linalg.cond(columns / np.linalg.norm(columns, axis=0)) < 1e3, law


@pytest.fixture(scope="module")
def unknowns():
    return Unknowns.of(rd.load(ARM))


def samples_of(q, qd, qdd) -> Samples:
    zero = np.zeros_like(q)
    return Samples(np.arange(len(q)) * 0.01, q, qd, qdd, zero, zero, np.ones(q.shape, dtype=bool))


def test_the_columns_are_pinocchios(unknowns):
    pinocchio = pytest.importorskip("pinocchio", reason="Pinocchio is the yardstick")
    model = pinocchio.buildModelFromXML(ARM)
    _, q, qd, qdd = motion(3, 1.0, 20.0)
    Y, known = unknowns.rigid(samples_of(q, qd, qdd))
    assert not known.any()
    for row, state in zip(Y, zip(q, qd, qdd, strict=True), strict=True):
        theirs = pinocchio.computeJointTorqueRegressor(model, model.createData(), *state)
        np.testing.assert_allclose(row[:, :30], theirs, atol=1e-10)
        # a rotor of 1 kg m² behind a gear of 100 is 10⁴ kg m² at its own joint
        np.testing.assert_allclose(row[0, 30], 1e4 * state[2][0], atol=1e-9)


@pytest.mark.parametrize("payload", [None, "hand"])
def test_sums_leave_out_what_a_joint_does_not_feel_and_nothing_else(payload):
    unknowns = Unknowns.of(rd.load(ARM), payload)
    _, q, qd, qdd = motion(3, 2.0, 50.0)
    samples = replace(samples_of(q, qd, qdd), tau=np.random.default_rng(1).normal(size=q.shape))
    weights = np.random.default_rng(2).uniform(size=q.shape)
    weights[:15], weights[40:60, 1], weights[88:, 0] = 0.0, 0.0, 0.0
    rows = Rows(unknowns, samples)
    Y, known = unknowns.rigid(samples)
    if payload is None:  # ten columns for each of the two bodies before the last
        assert rows.places[2].min() >= 20
    part = slice(10, 90)
    folds, alone = Sums(unknowns, 2), Sums(unknowns)
    for fold, several in enumerate((slice(10, 50), slice(50, 90))):
        folds.add(rows, weights, several, fold=fold)
    alone.add(rows, weights, slice(50, 90))
    found = {j: (G.sum(axis=0), g.sum(axis=0)) for j, _, G, g in folds.by_joint()}
    for (_, _, G, g), (_, _, own_G, own_g) in zip(folds.by_joint(), alone.by_joint(), strict=True):
        np.testing.assert_allclose(G[1], own_G[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(g[1], own_g[0], rtol=1e-12, atol=1e-12)
    for j, places in enumerate(unknowns.places):
        A = np.hstack([Y[:, j], unknowns.own(samples, j)])[part]
        w, tau = weights[part, j], (samples.tau - known)[part, j]
        G, g = np.zeros((unknowns.size,) * 2), np.zeros(unknowns.size)
        G[np.ix_(places, places)], g[places] = A.T @ (w[:, None] * A), A.T @ (w * tau)
        own = rows.places[j]
        np.testing.assert_allclose(found[j][0], G[np.ix_(own, own)], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found[j][1], g[own], rtol=1e-9, atol=1e-9)
        left_out = np.setdiff1d(np.arange(unknowns.size), own)
        assert not G[left_out].any()
        assert not g[left_out].any()
    whole = [np.zeros((unknowns.size,) * 2), np.zeros(unknowns.size)]
    for j, (G, g) in found.items():
        whole[0][np.ix_(rows.places[j], rows.places[j])] += G
        whole[1][rows.places[j]] += g
    for each, expected in zip(folds.together(), whole, strict=True):
        np.testing.assert_allclose(each, expected, rtol=1e-12, atol=1e-12)


def test_normal_equations_are_the_weighted_sums(unknowns):
    truth = changed(rd.load(ARM), seed=3)
    prepared = prepare(recording(truth, 6.0, 50.0, noise=0.05), "abc", 20.0)
    normal = reduce(unknowns, prepared)
    (samples,) = prepared.stretches
    rows = Rows(unknowns, samples)
    X = np.zeros((len(samples), 3, unknowns.size))
    for j, places in enumerate(rows.places):
        X[:, j, places] = rows.matrices[j]
    # x of the sums is x of the rows, whatever the weights within a joint are about
    assert normal.count.max() <= len(samples)
    together = normal.together(unknowns)
    G = together.gram.sum(axis=0)
    np.testing.assert_array_equal(G, G.T)
    assert np.linalg.eigvalsh(G)[0] > -1e-9 * np.linalg.eigvalsh(G)[-1]
    level = normal.count / (len(samples) * together.sigma**2)
    full = sum(level[j] * X[:, j].T @ X[:, j] for j in range(3))
    scale = np.sqrt(np.outer(np.diag(full), np.diag(full)))
    seen = np.diag(full) > 0
    off = np.abs(G - full)[np.ix_(seen, seen)] / scale[np.ix_(seen, seen)]
    assert off.max() < 0.2  # apart from what the biweight removes
    total: Sum[NormalEquations] = Sum()
    total.add(normal)
    total.add(normal)
    both = total.value()
    np.testing.assert_array_equal(both.gram, 2 * normal.gram)
    np.testing.assert_array_equal(both.moment, 2 * normal.moment)
    np.testing.assert_array_equal(both.square, 2 * normal.square)
    np.testing.assert_allclose(both.together(unknowns).sigma, together.sigma)
    wider = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(normal.together(unknowns, wider).sigma, together.sigma * [1, 2, 3])
    weaker = sum((level / wider)[j] * X[:, j].T @ X[:, j] for j in range(3))
    off = np.abs(normal.together(unknowns, wider).gram.sum(axis=0) - weaker)
    assert (off[np.ix_(seen, seen)] / scale[np.ix_(seen, seen)]).max() < 0.2
    x = np.random.default_rng(0).normal(size=unknowns.size)
    missed = ((rows.residual(x) / together.sigma) ** 2).mean(axis=0)
    np.testing.assert_allclose(normal.misfit(unknowns, x), missed, rtol=0.2)
    sent = pickle.dumps(normal)
    assert len(sent) < 0.5 * normal.gram.nbytes
    for field in ("gram", "moment", "square", "count", "noise"):
        np.testing.assert_array_equal(
            getattr(pickle.loads(sent), field), getattr(normal, field), strict=True
        )
    # for one parameter of c with four times its variance, the fit takes four samples
    k = unknowns.group("c").start
    covariance = np.zeros((len(x), len(x)))
    covariance[k, k] = 4.0 / together.gram.sum(axis=0)[k, k]
    bent = normal.bent(unknowns, covariance)
    np.testing.assert_allclose(bent, [0, 0, 4])
    ratio = normal.misfit(unknowns, x, bent) / normal.misfit(unknowns, x)
    np.testing.assert_allclose(ratio, normal.count / (normal.count - [0, 0, 4]))
    most = normal.misfit(unknowns, x, normal.count) / normal.misfit(unknowns, x)
    np.testing.assert_allclose(most, 2.0)
    # noise of 5 % of each joint's torque, minus what the filter removes
    torque = np.sqrt((samples.tau**2).mean(axis=0))
    assert (together.sigma > 0.02 * torque).all()
    assert (together.sigma < 0.06 * torque).all()


def test_the_correlation_of_a_residual():
    rng = np.random.default_rng(0)
    white = rng.normal(size=20000)
    assert correlation_length(white) == pytest.approx(1.0, abs=0.05)
    for rho in (0.5, 0.9):
        chain = np.zeros_like(white)
        for k in range(1, len(white)):
            chain[k] = rho * chain[k - 1] + white[k]
        assert correlation_length(chain) == pytest.approx((1 + rho) / (1 - rho), rel=0.15)
    assert correlation_length(np.zeros(100)) == 1.0


@pytest.mark.parametrize(("rho", "count"), [(0.0, 9), (0.8, 131), (0.99, 200), (0.99, 20000)])
def test_the_correlation_is_the_sum_up_to_where_it_first_falls(rho, count):
    chain = lfilter([1.0], [1.0, -rho], np.random.default_rng(1).normal(size=count))
    own = np.correlate(chain, chain, "full")[count - 1 :] / (chain @ chain)
    own = own[: count // 4]
    fallen = [*np.flatnonzero(own < 0.05), len(own)][0]
    assert correlation_length(chain) == pytest.approx(1 + 2 * own[1:fallen].sum(), rel=1e-12)


def test_the_unexplained_is_the_least_with_which_as_many_lie_in_the_band(unknowns):
    samples = prepare(recording(rd.load(ARM), 12.0, 100.0), "abc", 45.0).stretches[0]
    n, sigma = len(samples), np.array([1.0, 2.0, np.nan])
    noise = np.random.default_rng(0).standard_t(3, (n, 3))
    zero = Spread(np.zeros((unknowns.size, 0)), sigma)
    whole = needed(zero, unknowns, [(samples, noise)])
    s = whole.residual(sigma)
    assert np.isnan(s[2])
    np.testing.assert_allclose(whole.independent[:2], n, rtol=0.1)
    share = 0.9545 * (1 + 1 / whole.independent[:2])
    right = [np.quantile(np.abs(noise[:, j]), share[j]) / 2 for j in range(2)]
    assert (s[:2] > 0.999 * np.array(right)).all()
    assert (s[:2] < 1.03 * np.array(right)).all()
    # if few are independent, it is determined by the largest residual
    slow = 3 * (np.arange(n) / (n - 1))[:, None] ** 3 * np.ones(3)
    few = needed(zero, unknowns, [(samples, slow)])
    assert (few.independent[:2] < 20).all()
    np.testing.assert_allclose(few.residual(sigma)[:2], 1.5, rtol=0.03)
    # the usual residual is that of half of them, whatever the parameters leave open
    assert np.isnan(whole.usual(sigma)[2])
    median = 1.4826 * np.median(np.abs(noise[:, :2]), axis=0)
    open_ = Spread(np.ones((unknowns.size, 1)), sigma)
    for each in (zero, open_):
        found = needed(each, unknowns, [(samples, noise)]).usual(sigma)[:2]
        np.testing.assert_allclose(found, median, rtol=0.03)
    # for several recordings it is that of all together
    both = Sum()
    both.add(whole)
    both.add(whole)
    np.testing.assert_array_equal(both.value().counts, 2 * whole.counts)
    np.testing.assert_allclose(both.value().residual(sigma), s, rtol=0.02)


def test_what_parameters_leave_open_is_in_the_band(unknowns):
    """deviation² = y C yᵀ + s², with an offset known to 3 N·m as the only uncertain parameter."""
    samples = prepare(recording(rd.load(ARM), 12.0, 100.0), "abc", 45.0).stretches[0]
    sigma, noise = np.ones(3), np.random.default_rng(0).normal(size=(len(samples), 3))
    root = np.zeros((unknowns.size, 1))
    root[unknowns.group("b").start + OFFSET, 0] = 3.0
    spread = Spread(root, sigma)
    s = needed(spread, unknowns, [(samples, np.array([1, 5, 1]) * noise)]).residual(sigma)
    np.testing.assert_allclose(s, [1, 4, 1], rtol=0.1)
    less = needed(spread, unknowns, [(samples, noise)]).residual(sigma)
    assert less[1] < 1e-3
    deviation = Band(unknowns, spread, residual=s).deviation(samples.q, samples.qd, samples.qdd)
    assert deviation.shape == samples.q.shape
    np.testing.assert_allclose(deviation, np.hypot(s, [0, 3, 0]) * np.ones(samples.q.shape))


def test_differences_are_exact_for_polynomials_of_fourth_degree():
    t = np.arange(20) * 0.1
    values = np.column_stack([t**4, 1 - 2 * t + t**3])
    rates = differences(values, 0.1)
    np.testing.assert_allclose(rates[2:-2, 0], 4 * t[2:-2] ** 3, atol=1e-12)
    np.testing.assert_allclose(rates[2:-2, 1], -2 + 3 * t[2:-2] ** 2, atol=1e-12)


def test_a_recording_is_split_in_time():
    truth = changed(rd.load(ARM), seed=3)
    prepared = prepare(recording(truth, 6.0, 50.0), "abc", 20.0)
    first, last = prepared.split(0.25)
    assert first.duration == pytest.approx(0.75 * prepared.duration, abs=0.05)
    assert first.stretches[-1].time[-1] < last.stretches[0].time[0]
    total = sum(len(each) for part in (first, last) for each in part.stretches)
    assert total == sum(map(len, prepared.stretches))


def test_a_long_recording_is_split_and_thinned(monkeypatch):
    truth = changed(rd.load(ARM), seed=3)
    log = recording(truth, 60.0, 200.0)
    whole = prepare(log, "abc", 20.0)
    monkeypatch.setattr(preparation, "AT_ONCE", 5000)
    parts = prepare(log, "abc", 20.0)
    assert [len(each.smoothing.qd) for each in parts.stretches] == [4000, 4000, 4000]
    monkeypatch.setattr(preparation, "KEPT", 1500)
    thin = prepare(log, "abc", 20.0)
    assert 1400 < sum(map(len, thin.stretches)) <= 1500
    # nothing but the filter's transients is lost, and what is kept is evenly spread
    at = np.concatenate([each.time for each in thin.stretches])
    assert at[0] < 0.2
    assert at[-1] > 59.8
    assert np.diff(at).max() < 0.2
    (samples,) = whole.stretches
    for each in thin.stretches:
        k = np.searchsorted(samples.time, each.time - 1e-6)
        inner = (each.time > each.time[0] + 1) & (each.time < each.time[-1] - 1)
        for field in ("time", "q", "qd", "qdd", "tau", "friction"):
            got, expected = (getattr(of, field) for of in (each, samples))
            np.testing.assert_allclose(got[inner], expected[k][inner], rtol=1e-6, atol=1e-6)
    sparse = sum(len(each) for each in prepare(log, "abc", None).stretches)
    assert 1400 < sparse <= 1500


def test_what_is_thinned_shows_every_state_of_a_periodic_motion():
    for count, most, total in ((60_000, 600, None), (9_999, 600, None), (7, 3, 70), (5, 9, None)):
        some = thinned(count, most, total)
        assert len(some) <= most
        assert (np.diff(some) > 0).all()
        step = -(-(total or count) // most)
        assert (some // step).tolist() == [*range(-(-count // step))]
        assert some.max(initial=0) < count
    assert thinned(0, 5).tolist() == []
    # one sample of each period
    assert len(set((thinned(60_000, 600) % 100).tolist())) == 100


@pytest.mark.parametrize("seed", range(2))
def test_a_motion_may_repeat_itself_for_long(seed, monkeypatch):
    """The samples from which the weights are determined are a tenth of its period apart."""
    monkeypatch.setattr(normal_equations, "ENOUGH", 600)
    truth = changed(rd.load(SIX_AXIS), seed=seed)
    log = recording(truth, 600.0, 100.0, noise=0.02, seed=seed)
    found = reduce(Unknowns.of(rd.load(SIX_AXIS)), prepare(log, truth.joint_names, None))
    assert found.independent == pytest.approx(54_000, rel=0.1)


def test_filtering_keeps_the_motion_and_takes_the_noise():
    truth = changed(rd.load(ARM), seed=3)
    clean = recording(truth, 10.0, 100.0).streams[0]
    noisy = recording(truth, 10.0, 100.0, noise=0.2).streams[0]
    plain, smooth = (
        prepare(Recording("r", (stream,)), "abc", cutoff).stretches[0]
        for stream, cutoff in ((clean, 60.0), (noisy, 5.0))
    )
    at = np.searchsorted(plain.time, smooth.time)
    off = plain.tau[at] - smooth.tau
    raw = plain.tau[at] - smooth.unfiltered
    assert (off.std(axis=0) < 0.5 * raw.std(axis=0)).all()
    np.testing.assert_allclose(smooth.qdd, plain.qdd[at], atol=0.02 * np.abs(plain.qdd).max())


def test_rates_are_compared_as_by_scipys_filters():
    """At both ends, too."""
    kinds = [[np.random.default_rng(k).normal(size=(m, 2)) for m in (200, 20, 31)] for k in (0, 1)]
    b, a = butter(2, 0.1)
    slow = [np.vstack([filtfilt(b, a, each[k], axis=0) for k in (0, 2)]) for each in kinds]
    expected = np.sqrt(((slow[1] - slow[0]) ** 2).sum(axis=0) / (slow[0] ** 2).sum(axis=0))
    np.testing.assert_allclose(_rate_deviation(kinds[1], kinds[0]), expected, rtol=1e-9)
    band = butter(2, (0.2, 0.5), "band", output="sos")
    for found, rates in zip(_noise(*kinds), kinds, strict=True):
        high = [sosfiltfilt(band, rates[k], axis=0) for k in (0, 2)]
        square = sum(len(each) * each.var(axis=0) for each in high) / 231
        np.testing.assert_allclose(found, np.sqrt(square), rtol=1e-9)


def test_recorded_rates_are_judged_over_all_stretches():
    """The first joint is at rest: its rates are 0, its positions flicker by their last digit."""
    stream = recording(rd.load(ARM), 20.0, 100.0, noise=0.01).streams[0]
    rest = np.round(stream.position[:1] + 1e-4 * np.random.default_rng(0).random((40, 3)), 4)
    whole = Stream(
        stream.names,
        np.concatenate([0.01 * np.arange(40), stream.time + 10.0]),
        np.concatenate([rest, np.round(stream.position, 4)]),
        np.concatenate([np.zeros((40, 3)), stream.velocity]),
        np.concatenate([stream.effort[:1] + 0.01 * rest, stream.effort]),
    )
    raw = even(Recording("log", (whole,)), "abc")
    assert not [note for note in raw.notes if "velocities" in note]
    first, second = raw.pieces
    assert not first.velocity.any()
    np.testing.assert_allclose(second.velocity, stream.velocity, atol=1e-6)


@pytest.mark.parametrize(("flicker", "sliding"), [(0.003, ""), (0.008, ""), (0.003, "a")])
def test_a_robot_whose_encoders_flicker_is_at_rest(flicker, sliding):
    """Two counts of an encoder of 12 bits are 3 mrad; a joint that slides by 3 mm moves."""
    stream = recording(rd.load(ARM), 10.0, 100.0, noise=0.01).streams[0]
    counts = np.random.default_rng(0).integers(2, size=stream.position.shape)
    still = replace(stream, position=stream.position[:1] + flicker * counts)
    rests = flicker < 0.005 and not sliding
    with pytest.raises(RecordingError, match="at rest") if rests else nullcontext():
        even(Recording("log", (still,)), "abc", sliding)


@pytest.mark.parametrize("rates", [(30.0, 12.0), (100.0, 50.0)], ids=str)
def test_stretches_may_be_sampled_at_different_rates(rates):
    """The slow one is filtered as far as it can be."""
    truth = changed(rd.load(ARM), seed=3)
    parts = [
        recording(truth, 20.0 - 10.0 * k, rate, noise=0.01, start=60.0 * k).streams[0]
        for k, rate in enumerate(rates)
    ]
    fields = ("time", "position", "velocity", "effort")
    whole = [np.concatenate([getattr(part, field) for part in parts]) for field in fields]
    log = Recording("log", (Stream(parts[0].names, *whole),))
    raw = even(log, "abc")
    assert [round(1 / each.period) for each in raw.filtered(10.0).stretches] == [*rates]
    assert not [note for note in raw.notes if "velocities" in note]
    assert max(rd.identify(ARM, log).errors.relative) < 0.02


def test_validation_takes_the_filter_of_the_fit_where_it_is_as_good():
    truth = changed(rd.load(ARM), seed=3)
    log = recording(truth, 20.0, 100.0, noise=0.02)
    other = replace(recording(truth, 10.0, 100.0, noise=0.3, seed=5), source="other")
    unknowns, raw = Unknowns.of(rd.load(ARM)), even(other, "abc")
    own = choose(unknowns, raw)
    assert choose(unknowns, raw, wanted=17.0).cutoff == 17.0
    assert choose(unknowns, raw, wanted=float("inf")).cutoff is None
    assert choose(unknowns, raw, wanted=0.5).cutoff == own.cutoff
    cutoffs = rd.identify(ARM, log, validate=other).cutoffs
    assert cutoffs["other"] == cutoffs[log.source] != own.cutoff
    # the one that is fitted keeps its own
    assert rd.identify(ARM, [log, other], validate=other).cutoffs["other"] == own.cutoff


def test_a_limit_holds_efforts_for_longer_than_they_usually_stay():
    values = np.tile([0.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0], 5)
    for stays, longest, limited in ((4, 12, False), (4, 24, True), (1, 4, False), (1, 5, True)):
        runs = np.full(len(values), stays)
        runs[12] = longest
        runs[[11, 13]] = 1  # noise
        efforts = np.repeat(values, runs)
        usable = _unsaturated(efforts[:, None])[:, 0]
        assert usable.all() != limited
        assert usable[efforts != 4.0].all()
        assert limited == (not usable[efforts == 4.0].any())


def test_limits_on_both_sides_are_found_where_efforts_jump_between_them():
    t = np.linspace(0.0, 20.0, 2000)
    efforts = np.clip(100 * np.sin(t) + np.sin(17 * t), -1.0, 1.0)
    usable = _unsaturated(efforts[:, None])[:, 0]
    assert np.array_equal(usable, np.abs(efforts) < 1.0)


@pytest.mark.parametrize("levels", [1, 2])
def test_coarse_efforts_of_dry_friction_are_no_limits(levels):
    """They remain at their two extremes, with few values between them."""
    efforts = np.round(levels * np.tanh(20 * np.sin(np.linspace(0.0, 20.0, 2000))))
    assert set(efforts) == {*range(-levels, levels + 1)}
    assert _unsaturated(efforts[:, None]).all()


def test_beside_a_saturated_stretch_no_filtered_effort_is_believed():
    stream = recording(changed(rd.load(ARM), seed=3), 20.0, 100.0).streams[0]
    effort, most = stream.effort.copy(), np.abs(stream.effort[:, 1]).max()
    at = np.zeros(len(effort), dtype=bool)
    # far below what the model would need there: what leaks through the filter is wrong
    for begin in (600, 1400):
        effort[begin : begin + 20, 1] = 3 * most
        at[begin : begin + 20] = True
    cutoff = 5.0
    clipped = Recording("clipped", (replace(stream, effort=effort),))
    found = prepare(clipped, "abc", cutoff).stretches[0]
    free = prepare(Recording("free", (stream,)), "abc", cutoff).stretches[0]
    off = np.abs(found.tau - free.tau)
    assert found.usable[:, [0, 2]].all()
    assert off[:, 1].max() > most
    # the filter's memory is one period of its cut-off on either side; no more is discarded
    near = np.abs(found.time[:, None] - stream.time[at]).min(axis=1) * cutoff
    assert not found.usable[near < 0.99, 1].any()
    assert found.usable[near > 1.06, 1].all()


def test_nothing_is_invented_where_a_joint_of_another_stream_was_not_heard_of():
    stream = recording(changed(rd.load(ARM), seed=3), 20.0, 100.0).streams[0]
    arm, hand = stream.of("ab"), stream.of("c")
    kept = np.flatnonzero(
        (stream.time >= 3.0) & (stream.time <= 17.0) & ((stream.time < 9.0) | (stream.time > 11.0))
    )
    hand = replace(hand, **{name: getattr(hand, name)[kept] for name in ("time", *FIELDS)})
    parts = prepare(Recording("parts", (arm, hand)), "abc", None, rests=True)
    whole = prepare(Recording("whole", (stream,)), "abc", None, rests=True).stretches[0]
    spans = [each.time[[0, -1]] + hand.time[0] for each in parts.stretches]
    np.testing.assert_allclose(spans, [[3.0, 9.0], [11.0, 17.0]], atol=0.06)
    heard = [(hand.time[0], 8.995), (11.005, hand.time[-1])]
    for (begin, end), (first, last) in zip(spans, heard, strict=True):
        assert first <= begin < end <= last
    for each in parts.stretches:
        rows = np.searchsorted(whole.time, each.time + 3.0 - 0.005)
        for name in ("q", "qd", "tau"):
            found, expected = getattr(each, name), getattr(whole, name)[rows]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_positions_within_one_turn_in_separate_messages_are_made_continuous():
    """And an encoder's glitch there is left out."""
    stream = recording(changed(rd.load(ARM), seed=3), 20.0, 100.0, reach=3.0).streams[0]
    arm, hand = stream.of("ab"), stream.of("c")
    hand = hand.rows(np.arange(0, len(hand.time), 2))
    middle = float(np.median(hand.position))
    wrapped = (hand.position - middle) % (2 * np.pi) + middle
    assert np.abs(np.diff(wrapped, axis=0)).max() > 6.0
    wrapped[200] += 2.0
    wrapped[500:] += np.where(np.arange(len(wrapped) - 500) == 0, np.nan, 0.0)[:, None]
    parts = Recording("parts", (arm, replace(hand, position=wrapped)))
    found = even(parts, "abc")
    assert any("whole turns were added to the positions of c" in note for note in found.notes)
    assert any("a position jumps and returns" in note for note in found.notes)
    one = found.pieces[0]
    time = one.time
    off = one.position[:, 2] - np.interp(time, stream.time, stream.position[:, 2])
    assert off == pytest.approx(2 * np.pi * round(off[0] / (2 * np.pi)), abs=2e-3)
    efforts = np.interp(time, stream.time, stream.effort[:, 2])
    assert np.median(np.abs(one.effort[:, 2] - efforts)) < 0.01 * np.abs(efforts).max()
    sliding = even(parts, "abc", sliding="c")
    assert not any("whole turns" in note for note in sliding.notes)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(-0.02, 0.02), "a: its positions go from"),
        (Limits(-9.0, 9.0), None),
        (Limits(0.0, 0.0), None),
        (Limits(None, 0.02), None),
        (Limits(20.0, 21.0), "limits are 20 and 21 rad: are the positions in rad"),
        (Limits(-21.0, -20.0), "limits are -21 and -20 rad"),
    ],
)
def test_positions_far_beyond_the_limits_are_told(limits, said):
    robot = rd.load(ARM)
    links = tuple(
        replace(link, joint=replace(link.joint, limits=limits)) if link.joint.name == "a" else link
        for link in robot.links
    )
    lowest, highest = np.array([-0.5, -3.0, -3.0]), np.array([0.7, 3.0, 3.0])
    found = [*far_off(replace(robot, links=links), lowest, highest)]
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_a_recording_in_degrees_is_doubted():
    robot = rd.load(ARM)
    links = tuple(
        replace(link, joint=replace(link.joint, limits=Limits(-0.01, 0.01))) for link in robot.links
    )
    log = recording(changed(robot, seed=3), 6.0, 50.0, noise=0.02)
    found = rd.identify(replace(robot, links=links), log, cutoff=10.0)
    assert [words.partition(":")[0] for words in found.warnings[:3]] == [*"abc"]


def endless(robot):
    """The robot without limits of its joints."""
    links = (replace(link, joint=replace(link.joint, limits=None)) for link in robot.links)
    return replace(robot, links=tuple(links))


@pytest.mark.parametrize("rates", [True, False])
def test_degrees_are_told_where_there_are_no_limits(rates):
    robot = endless(rd.load(ARM))
    (stream,) = recording(changed(robot, seed=3), 12.0, 100.0, noise=0.02).streams
    degrees = np.degrees(stream.velocity) if rates else np.full_like(stream.velocity, np.nan)
    log = Recording(
        "log", (replace(stream, position=np.degrees(stream.position), velocity=degrees),)
    )
    for cutoff in (None, 10.0):
        warned = rd.identify(robot, log, cutoff=cutoff).warnings
        assert [words[0] for words in warned[:3]] == [*"abc"]
        assert all("are they in degrees" in words for words in warned[:3])
        # what follows from positions in another unit is not doubted by itself
        assert not any("effort" in words for words in warned[3:])


def test_what_no_model_explains_is_blamed_on_positions_before_the_filter():
    errors = SimpleNamespace(relative=np.array([2.0, np.nan]))
    for causes in (["positions", "filter"], ["filter"]):
        with pytest.raises(RecordingError, match=causes[0]):
            refuse_nonsense(errors, causes)


def misses(after, before, still=()) -> Errors:
    """Errors relative to torques of 2 N·m; of the joints in `still` that stand still."""
    after, before = 2 * np.array(after), 2 * np.array(before)
    torque = np.where(np.isnan(after), np.nan, 2.0)
    joints = ("a", "b")[: len(after)]
    stood = np.array([joint in still for joint in joints])
    return Errors(joints, 1.0, torque, before, after, after, stood)


@pytest.mark.parametrize(
    ("after", "before", "lost"),
    [
        ([0.102, 0.1], [0.1, 0.1], False),  # 1 % in the mean
        ([0.106, 0.1], [0.1, 0.1], True),
        ([0.5, 0.01], [0.4, 0.2], False),
        ([0.106, np.nan], [0.1, np.nan], True),
        ([np.nan, np.nan], [np.nan, np.nan], False),
    ],
)
def test_a_fit_loses_where_it_is_worse_in_the_mean_by_more_than_two_percent(after, before, lost):
    assert identified.loses(misses(after, before)) == lost


def test_a_joint_that_stands_still_tells_no_model_from_another():
    assert not identified.loses(misses([0.1, 8.0], [0.3, 0.5], still="b"))
    assert identified.loses(misses([0.4, 0.5], [0.3, 8.0], still="b"))
    assert identified.loses(misses([0.5], [0.3], still="a"))  # no other joint says which is better
    assert misses([0.1, 8.0], [0.3, 0.5], still="b").means == pytest.approx((0.1, 0.3))
    (told,) = identified.stays("bodies", misses([0.4, 0.5], [0.3, 8.0], still="b"))
    assert "(error 30.0 % against 40.0 %, mean over moving joints)" in told
    errors = misses([0.6, 8.0], [0.3, 0.5], still="b")
    assert [words.split(":")[0] for words in lost(errors)] == ["a"]
    said = list(large(errors))
    assert [words.split(":")[0] for words in said] == ["a", "b is at rest in the held-out motion"]


@pytest.mark.parametrize("sliding", [False, True])
def test_a_joint_stands_still_below_a_hundredth_of_a_radian_per_second(sliding):
    joint = "prismatic" if sliding else "revolute"
    robot = rd.load(
        f'''<robot name="one"><link name="base"/><link name="tip"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="a" type="{joint}">
        <parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'''
    )
    slow = SLOW * (SLIDING if sliding else 1.0)
    for rate, still in ((0.99 * slow, True), (1.01 * slow, False)):
        sums = SquaredErrors(
            np.array([[8.0], [2.0], [2.0], [2.0], [2.0 * rate**2]]), np.array([2.0]), 1.0
        )
        assert sums.errors(robot, ("a",)).still.tolist() == [still]


def test_what_is_kept_is_told_with_both_errors():
    errors = misses([0.5, 0.3], [0.2, 0.1])
    assert not list(identified.stays("nothing", errors))
    for kept, what in (("bodies", "its bodies are kept"), ("everything", "it is kept unchanged")):
        (told,) = identified.stays(kept, errors)
        assert f"(error 15.0 % against 40.0 %, mean over the joints): {what};" in told


@pytest.mark.parametrize(("factor", "then"), [(-1.0, "scale the excluded"), (1.0, "record longer")])
def test_only_efforts_that_have_a_factor_can_be_scaled(factor, then):
    """Those of a joint that stands still have none."""
    doubt = Doubt("a", factor, STATIC if factor == 1 else OPPOSITE, 0.9, 0.1)
    (told,) = identified.stays("bodies", misses([0.5, 0.3], [0.2, 0.1]), [doubt])
    assert then in told.split("its bodies are kept; ")[1]


@pytest.mark.parametrize(
    ("usual", "said"), [(0.1, "but usually only 10 %: was the robot touched"), (0.5, "right sign")]
)
def test_large_errors_of_a_small_part_of_the_time_are_no_wrong_unit(usual, said):
    errors = misses([0.6, 0.1], [1.0, 1.0])
    (told,) = large(errors, usual=2 * np.array([usual] * 2))
    assert told.startswith("a: the model leaves 60 % of the torque unexplained")
    assert said in told


@pytest.mark.parametrize(
    ("fitted", "said"),
    [(0.1, "but only 10 % in the motion that was fitted: record longer"), (0.5, "right sign")],
)
def test_large_errors_of_unseen_motion_alone_are_no_wrong_unit(fitted, said):
    """Efforts in another unit, or of another robot, are not explained where they were fitted."""
    (told,) = large(misses([0.6, 0.1], [1.0, 1.0]), fitted=np.array([fitted] * 2))
    assert told.startswith("a: the model leaves 60 % of the torque unexplained")
    assert said in told
    # nor are they explained by an error that is only smaller
    (told,) = large(misses([6.0, 0.1], [1.0, 1.0]), fitted=np.array([1.5, 0.1]))
    assert "right sign" in told


def test_a_model_that_explains_one_joint_is_no_nonsense():
    refuse_nonsense(misses([0.97, 3.0], [1.0, 1.0]))
    refuse_nonsense(misses([np.nan, np.nan], [np.nan, np.nan]))
    for known, said in (
        (0.2, "but only 20 % in the motion that was fitted"),
        (0.4, "do not match"),
    ):
        with pytest.raises(RecordingError, match=said):
            refuse_nonsense(misses([1.0, 3.0], [1.0, 1.0]), (), misses([known, 2.0], [1.0, 1.0]))
    with pytest.raises(RecordingError, match=r"leaves 100 % of them unexplained.* nothing touched"):
        refuse_nonsense(misses([0.995, 3.0], [1.0, 1.0]))
    # nor did the fit explain anything
    with pytest.raises(RecordingError, match=r"leaves 900 % of them unexplained.* nothing touched"):
        refuse_nonsense(misses([9.0, 30.0], [1.0, 1.0]), (), misses([0.6, 2.0], [1.0, 1.0]))


@pytest.mark.parametrize(("factor", "told"), [(1, False), (3, False), (0.05, True), (1e3, True)])
def test_efforts_of_another_unit_are_told(factor, told):
    robot = rd.load(ARM)
    (stream,) = recording(changed(robot, seed=3), 12.0, 100.0, noise=0.02).streams
    log = Recording("log", (replace(stream, effort=factor * stream.effort),))
    warned = rd.identify(robot, log, cutoff=10.0).warnings
    some = [words for words in warned if "--effort-scale converts them" in words]
    assert bool(some) is told
    if told:
        ratio = float(some[0].split()[4])
        assert 0.5 < ratio / factor < 2.0


@pytest.mark.parametrize("share", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("factor", [1.0, 0.05])
def test_efforts_without_gravity_are_told(share, factor):
    """Those of a controller that compensates it, in any unit; not of a robot that weighs less."""
    robot = rd.load(ARM)
    real = changed(robot, seed=2)
    (stream,) = recording(real, 12.0, 100.0, noise=0.02).streams
    compensated = share * InverseDynamics(real, terms=("gravity",))(
        stream.position, *np.zeros((2, *stream.position.shape))
    )
    log = Recording("log", (replace(stream, effort=factor * (stream.effort - compensated)),))
    warned = rd.identify(robot, log, cutoff=10.0).warnings
    told = [words for words in warned if "do the efforts leave gravity out" in words]
    assert bool(told) is (share > 0)
    assert not any("mounted differently" in words for words in warned)
    if share:
        gravity, coriolis = map(int, re.findall(r"(-?\d+) %", told[0]))
        assert abs(gravity - 100 * factor * (1 - share)) < 100 * factor * 0.1 + 1
        assert 50 * factor < coriolis < 200 * factor
    if share == 1.0 and factor == 1.0:
        weightless = replace(robot, gravity=np.zeros(3))
        found = rd.identify(weightless, log, cutoff=10.0)
        assert not found.warnings
        assert miss(replace(real, gravity=np.zeros(3)), found.mechanism) < 0.02


def equations_of(log: Recording) -> NormalEquations:
    unknowns = Unknowns.of(rd.load(ARM))
    return reduce(unknowns, prepare(log, unknowns.joints, 20.0))


def test_the_least_noise_is_the_median_where_the_joints_are_driven():
    """Joint c stands still in two recordings, and follows freely in another."""
    robot = rd.load(ARM)
    unknowns = Unknowns.of(robot)
    logs = [
        recording(changed(robot), 10.0, 100.0, noise=noise, seed=k)
        for k, noise in enumerate((0.3, 0.01, 0.1, 0.03, 0.02))
    ]
    for k in (0, 1):
        (stream,) = logs[k].streams
        stream.position[:, 2], stream.velocity[:, 2] = 0.1, 0.0
    (stream,) = logs[4].streams
    stream.effort[:, 2] *= 1e-6
    every = [equations_of(log) for log in logs]
    noise = np.array([each.sigma for each in every])
    least = quietest(unknowns, every)
    work = [
        np.sqrt((each.velocity**2).sum(axis=0) * (each.effort**2).sum(axis=0))
        for (each,) in (log.streams for log in logs)
    ]
    for own, all_work, most in zip(noise.T, np.transpose(work), least, strict=True):
        below = all_work[own < 0.999 * most].sum() / all_work.sum()
        above = all_work[own > 1.001 * most].sum() / all_work.sum()
        assert below < 0.53  # outliers have weight 0
        assert above < 0.53
        assert most in own
    assert noise[4, 2] < 1e-3 * least[2] < noise[0, 2]


def test_what_one_part_of_the_time_excites_is_unknown_without_it():
    """Once that part is subtracted from the sum, rounding is left of it."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(2, 40, 4))
    Y[1, :, 0] *= 1e-16
    gram = np.swapaxes(Y, 1, 2) @ Y
    tau = Y @ np.arange(1.0, 5.0)
    moment = np.einsum("fkp,fk->fp", Y, tau)
    equations = SummedEquations(gram, moment, (tau**2).sum(axis=1), np.ones(1), np.ones(1))
    _, parts = _without_bodies(equations, np.zeros((1, 1)), np.zeros(1))
    for part in parts:
        assert np.abs(part.Q).max() < 1e3 * np.abs(gram).max()


def test_equations_with_more_noise_weigh_less():
    normal = equations_of(recording(changed(rd.load(ARM)), 10.0, 100.0, noise=0.1))
    least = normal.sigma * [0.5, 3.0, 1.0]
    wider = normal.at_least(least)
    np.testing.assert_allclose(wider.sigma, normal.sigma * [1.0, 3.0, 1.0], rtol=1e-12)
    for name in ("gram", "moment", "square"):
        own, other = (np.asarray(getattr(each, name))[:, 1] for each in (normal, wider))
        np.testing.assert_allclose(other, own / 9, rtol=1e-12)
        np.testing.assert_array_equal(
            getattr(wider, name)[:, [0, 2]], getattr(normal, name)[:, [0, 2]]
        )
    np.testing.assert_array_equal(wider.count, normal.count)


def test_bodies_torques_of_the_opposite_sign_are_told():
    robot = rd.load(ARM)
    upside_down = replace(robot, gravity=tuple(-np.asarray(robot.gravity)))
    warned = rd.identify(robot, recording(upside_down, 12.0, 100.0, noise=0.02)).warnings
    (told,) = (words for words in warned if "times those of the described bodies" in words)
    assert re.match(r"the bodies' torques are -[0-9.]+ times", told)
    assert "--effort-scale JOINT:-1 for every joint" in told
    assert "is the base mounted differently from the description" in told


@pytest.mark.parametrize(("scale", "negated"), [(-1.0, True), (-0.01, False), (0.01, False)])
def test_bodies_that_weigh_next_to_nothing_have_no_sign(scale, negated):
    found = rd.identify(rd.load(ARM), recording(rd.load(ARM), 12.0, 100.0), cutoff=10.0).fit
    x = found.x.copy()
    x[: len(found.unknowns.described)] = scale * found.unknowns.described
    (told,) = other_unit(replace(found, x=x))
    assert ("the opposite sign" in told) is negated
    assert ("are the efforts in N·m" in told) is not negated


PENDULUM = """<robot name="p"><link name="base"/><link name="arm"><inertial><mass value="1"/>
      <origin xyz="0.4 0 0"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
      </inertial></link><joint name="hinge" type="continuous"><parent link="base"/>
      <child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.parametrize("spoilt", [None, 0, 2])
def test_many_turns_of_a_joint_without_limits_are_no_fault(spoilt):
    """Nor are they where no model explains another joint's efforts, or its own."""
    robot = endless(rd.load(ARM))
    truth = changed(robot, seed=3)
    t, q, qd, qdd = motion(3, 12.0, 100.0, 1)
    q[:, 2] += 5 * t.ravel()
    qd[:, 2] += 5.0
    tau = InverseDynamics(truth)(q, qd, qdd)
    if spoilt is not None:
        tau[:, spoilt] *= 1 + np.random.default_rng(0).normal(size=len(tau))
    stream = Stream(robot.joint_names, t.ravel(), q, qd, tau)
    found = rd.identify(robot, Recording("log", (stream,)), cutoff=10.0)
    assert (found.errors.relative.max() > MISSED) == (spoilt is not None)
    assert not any("degrees" in words for words in found.warnings)


def test_a_spinning_joint_that_no_model_explains_is_not_refused_for_its_turns():
    t = np.arange(0.0, 12.0, 0.01)
    q = (5 * t + np.sin(3 * t))[:, None]
    qd, qdd = (5 + 3 * np.cos(3 * t))[:, None], -9 * np.sin(3 * t)[:, None]
    noise = 100.0 * np.random.default_rng(0).normal(size=q.shape)
    tau = InverseDynamics(rd.load(PENDULUM))(q, qd, qdd) + noise
    log = Recording("log", (Stream(("hinge",), t, q, qd, tau),))
    with pytest.raises(RecordingError, match="do not match this robot's torques"):
        rd.identify(PENDULUM, log, cutoff=10.0)


def test_efforts_without_gravity_are_told_at_a_single_joint():
    """There are no Coriolis torques to compare with."""
    robot = rd.load(PENDULUM)
    t, q, qd, qdd = motion(1, 12.0, 100.0, 1)
    tau = InverseDynamics(replace(robot, gravity=np.zeros(3)))(q, qd, qdd)
    log = Recording("log", (Stream(robot.joint_names, t.ravel(), q, qd, tau),))
    told = rd.identify(robot, log, cutoff=10.0).warnings
    (asked,) = (words for words in told if "do the efforts leave gravity out" in words)
    assert "Coriolis" not in asked


def test_inertias_that_are_described_far_too_large_are_no_other_unit():
    """Gravity agrees, so the efforts are torques in N·m."""
    robot = rd.load(ARM)
    links = [
        replace(link, inertial=replace(link.inertial, inertia=1e3 * link.inertial.inertia))
        for link in robot.links
    ]
    log = recording(changed(robot, seed=3), 12.0, 100.0, noise=0.02)
    found = rd.identify(replace(robot, links=tuple(links)), log, cutoff=10.0)
    assert not any("the bodies' torques are" in words for words in found.warnings)


def test_options_are_pairs():
    assert pairs(["a:b", "x:y:z"], "--rename") == {"a": "b", "x:y": "z"}
    assert factors(["a:-1", "b:2.5"]) == {"a": -1.0, "b": 2.5}
    for wrong in ("a", "a:", ":b", ""):
        with pytest.raises(InputError, match="--rename"):
            pairs([wrong], "--rename")
    with pytest.raises(InputError, match="once"):
        pairs(["a:b", "a:c"], "--rename")
    with pytest.raises(InputError, match="expected a number"):
        factors(["a:b"])


def test_a_chart_shows_its_extremes_and_no_more_than_it_must():
    x = np.linspace(0, 1, 50_000)
    y = np.sin(40 * x)
    y[12345], y[777] = 9.0, np.nan
    chart = Chart("a <chart>", [Line(x, y, "a", "l")], "x", "y", unseen=[(0.5, 0.7)])
    text = standalone(chart.svg)
    assert "a &lt;chart&gt;" in text
    assert len(text) < 40_000
    assert text.count("var(--wash)") == 1
    # the outlier is drawn, the gap is not
    (curve,) = re.findall(r'<path d="([^"]*)"[^>]*stroke: var\(--a\)', text)
    heights = [float(y) for y in re.findall(r"[ML] \S+ (\S+)", curve)]
    first, second = sorted(heights)[:2]  # y grows downwards: the outlier stands alone
    assert second - first > 100
    assert curve.count("M") == 2
    assert text.count("nan") == 0
    # it refers to nothing outside itself: many are on one page
    assert not re.search(r'url\(|href| id="', text)


def test_dry_friction_is_told_from_what_the_filter_makes_of_its_step():
    """Efforts are filtered, and so is their step where a joint reverses."""
    described = rd.load(Path(__file__).resolve().parents[1] / "urdf" / "six_axis.urdf")
    rng = np.random.default_rng(3)
    dry = {name: float(rng.uniform(1.0, 4.0)) for name in described.joint_names}
    links = tuple(
        replace(link, joint=replace(link.joint, friction=Friction(1.0, dry[link.joint.name])))
        if link.joint.moves
        else link
        for link in described.links
    )
    truth = replace(described, links=links)
    (clean,) = recording(truth, 20.0, 200.0, noise=0.02).streams
    noisy = replace(
        clean,
        position=clean.position + 2e-5 * rng.normal(size=clean.position.shape),
        velocity=clean.velocity + 3e-3 * rng.normal(size=clean.velocity.shape),
    )
    found = rd.identify(described, [Recording("noisy", (noisy,))])
    for link in found.mechanism.moving:
        law = link.joint.friction
        assert law.coulomb == pytest.approx(dry[link.joint.name], rel=0.05)
        assert abs(law.stribeck_torque) < law.coulomb / 2  # no Stribeck term removes the step
    # what is left is noise: a fiftieth of the torque, most of it beyond the filter
    assert found.errors.relative.max() < 0.03


def stretch(begin: float, end: float, pushes=(), noise: float = 0.01):
    """(samples, residual torque) of two joints at 1 N·m, of which the second was not measured."""
    time = np.arange(begin, end, 0.01)
    still = np.zeros((len(time), 2))
    usable = np.ones(still.shape, dtype=bool)
    usable[:, 1] = False
    missed = noise * np.random.default_rng(0).normal(size=still.shape)
    for first, last, torque in pushes:
        missed[(time > first - 0.001) & (time < last - 0.001)] += torque
    return Samples(time, still, still, still, still + 1, still + 1, usable), missed


def test_no_covariance_has_a_negative_variance():
    rng = np.random.default_rng(0)
    A, units = rng.normal(size=(30, 60)), 10.0 ** rng.uniform(-8, 8, 30)
    H = A @ A.T * units * units[:, None]
    right = np.linalg.inv(A @ A.T) / units / units[:, None]
    C = inverted(H)
    assert C * units * units[:, None] == pytest.approx(right * units * units[:, None], abs=1e-12)
    assert (C == C.T).all()
    # rounding makes some of these eigenvalues negative
    few = rng.normal(size=(30, 3))
    singular = few @ few.T * units * units[:, None]
    assert np.linalg.eigvalsh(singular / units / units[:, None])[0] < 0
    C = inverted(singular) * units * units[:, None]
    assert np.isfinite(C).all()
    assert np.linalg.eigvalsh(C)[0] >= -1e-12 * np.linalg.eigvalsh(C)[-1]
    assert (np.diag(C) > 0).all()


def test_contacts_end_where_nothing_was_recorded():
    """Two pushes on either side of a gap are two contacts; what was not measured is none."""
    parts = [stretch(0.0, 10.0, [(9.0, 10.0, 0.5)]), stretch(30.0, 40.0, [(30.0, 31.0, -0.5)])]
    found = [*contacts("log", ("a", "b"), parts)]
    assert [(each.joint, each.begin, each.end) for each in found] == [
        ("a", 9.0, 10.0),
        ("a", 30.0, 31.0),
    ]
    assert [each.most for each in found] == pytest.approx([0.5, -0.5], abs=0.01)
    assert [line.split(" the model ")[0] for line in words(found)] == [
        "log: from 9 s to 10 s",
        "log: from 30 s to 31 s",
    ]


@pytest.mark.parametrize(
    ("pushes", "noise", "is_one"),
    [
        ([(5.0, 5.75, 0.5)], 0.01, True),
        ([(5.0, 5.5, 0.5)], 0.01, False),  # a spike
        ([(5.0, 8.0, 0.5)], 0.01, True),
        ([(5.0, 9.0, 0.5)], 0.01, False),  # a sixth of the time
        ([(5.0, 6.0, 0.08)], 0.01, False),  # too little to matter
        ([(5.0, 6.0, 1.0)], 0.25, True),
        ([(5.0, 6.0, 0.5)], 0.3, False),  # small compared with the usual residual
        ([(5.0, 6.0, 50.0)], 4.0, False),  # the model is wrong
        ([(5.0, 5.75, 0.5), (9.0, 9.5, 0.5), (12.0, 12.5, 0.5)], 0.01, False),  # all over the time
        ([(5.0, 6.5, 0.5), (9.0, 9.5, 0.5)], 0.01, True),
    ],
)
def test_what_is_a_contact(pushes, noise, is_one):
    found = [*contacts("log", ("a", "b"), [stretch(0.0, 24.0, pushes, noise)])]
    assert bool(found) is is_one
    assert not [*contacts("log", ("a", "b"), [stretch(5.0, 10.0, pushes, noise)])]  # too short


def test_joints_touched_at_the_same_time_share_a_line():
    def contact(joint: str, begin: float, end: float, times: float, source: str = "log") -> Contact:
        return Contact(source, joint, begin, end, -2.0, times)

    some = [contact("b", 5, 7, 30), contact("a", 6, 8, 20), contact("a", 8, 9, 20)]
    first, second, third = words([*some, contact("a", 6, 8, 20, "other")])
    assert first.startswith(
        "log: from 5 s to 8 s the model leaves up to 2 N·m (or N) unexplained at a, b "
        "(largest at b), 30"
    )
    assert second.startswith("log: from 8 s to 9 s")
    assert third.startswith("other: from 6 s")
    # so do many of one recording
    many = [contact("ab"[k % 2], 5 * k, 5 * k + 1, 20 + k) for k in range(6)]
    told, other = words([*many, contact("a", 6, 8, 20, "other")])
    assert told.startswith(
        "log: in 6 intervals (from 0 s to 1 s, from 5 s to 6 s, from 10 s to 11 s, …; all under "
        "contacts in report.json) the model leaves up to 2 N·m (or N) unexplained at a, b (largest "
        "at b), 25 times"
    )
    assert other == third
    assert len([*words(many[:5])]) == 5


def springy(arm, before, after):
    """A recording whose joint a has a spring with these stiffnesses in its halves."""
    log = recording(arm, 24.0, 100.0, noise=0.01)
    (stream,) = log.streams
    k = np.where(np.arange(len(stream.time)) < len(stream.time) / 2, before, after)
    effort = stream.effort.copy()
    effort[:, 0] += k * stream.position[:, 0]
    return Recording("springy", (replace(stream, effort=effort),))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (30.0, 30.0, True),
        (30.0, 0.0, False),  # it would explain only what it was fitted to
        (0.0, 30.0, False),  # it explains only what it was not fitted to
        (0.0, 0.0, False),
    ],
)
def test_a_clear_spring_explains_the_half_that_it_was_not_fitted_to(before, after, found):
    arm = rd.load(ARM)
    unknowns = Unknowns.of(arm, None)
    prepared = prepare(springy(arm, before, after), arm.joint_names, 10.0)
    assert reduce(unknowns, prepared).pulled.tolist() == [float(found), 0.0, 0.0]


def test_noise_is_told_beside_many_outliers(unknowns):
    """One fit is not enough, as it is pulled by them."""
    rng = np.random.default_rng(3)
    log = recording(unknowns.mechanism, 20.0, 100.0)
    (stream,) = log.streams
    noise = rng.normal(size=stream.effort.shape)
    noise[rng.random(noise.shape) < 0.2] += 40.0
    noisy = Recording("noisy", (replace(stream, effort=stream.effort + noise),))
    samples = prepare(noisy, unknowns.joints, None).stretches[0]
    rows = [Rows(unknowns, samples)]
    _, sigma, weights = robust(rows, samples.usable, unknowns.springs)
    assert sigma == pytest.approx(1.0, rel=0.5)
    assert (weights == 0).mean() == pytest.approx(0.2, abs=0.02)


def test_joints_without_efforts_stay_without_them_in_the_filter():
    arm = rd.load(ARM)
    (stream,) = recording(arm, 8.0, 100.0).streams
    effort = stream.effort.copy()
    effort[:, 1] = np.nan
    samples = filtered(replace(stream, effort=effort), 10.0, (True,) * 3)
    assert np.isfinite(samples.tau).all(axis=0).tolist() == [True, False, True]
    assert np.isnan(samples.tau[:, 1]).all()
    assert not samples.usable[:, 1].any()


def test_velocities_that_are_noise_do_not_hide_a_rest():
    """Rates wander about zero while the positions stand still."""
    rate = 200.0
    time = np.arange(round(20 * rate)) / rate
    moves = time < 10
    q = np.where(moves, np.sin(np.pi * time), 0.0)
    qd = np.where(moves, np.pi * np.cos(np.pi * time), 0.0)
    qd += 0.15 * np.repeat(np.random.default_rng(0).choice([-1, 1], len(time) // 20), 20)
    effort = np.where(moves, np.cos(np.pi * time), 0.3)
    stream = Stream(("pan",), time, *(each[:, None] for each in (q, qd, effort)))
    samples = prepare(Recording("rest", (stream,)), ("pan",), None)
    assert sum(each.time[-1] - each.time[0] for each in samples.stretches) < 11
    assert any("s at rest were left out" in note for note in samples.notes)


def test_curves_do_not_cross_what_was_left_out():
    time = np.r_[np.arange(10) * 0.1, 5 + np.arange(10) * 0.1]
    row = np.arange(20.0)[:, None]
    drawn = Stretch(True, time, np.ones((20, 1), bool), {"tau": row, "identified": row})
    for name in ("tau", "identified"):
        assert np.flatnonzero(np.isnan(drawn.of(name, 0))).tolist() == [9]
