# SPDX-License-Identifier: Apache-2.0
"""Laws that all equations of motion obey, on random robots by seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import RELATIVE_TO_SISTERS, inertia, random_dh, relative, state

import robot_dynamics as rd
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import Equations
from robot_dynamics.mechanism import Inertial

STEP = 1e-4
"""rad or m: central differences then err by about STEP² and rounding by 1e-16 / STEP"""
DIFFERENCES = 1e-6
"""What such differences leave, with room"""


@pytest.fixture(params=range(4))
def mechanism(request, tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(random_dh(request.param, joints=5, rotors=request.param % 2)))
    return rd.load(path)


@pytest.fixture(params=FORMULATIONS)
def dynamics(request, mechanism):
    return rd.InverseDynamics(mechanism, request.param)


def test_the_mass_matrix_is_symmetric_and_positive_definite(dynamics):
    q, _, _ = state(1, len(dynamics.joint_names))
    D = dynamics.mass_matrix(q)
    assert relative(D.T, D) < RELATIVE_TO_SISTERS
    assert np.linalg.eigvalsh((D + D.T) / 2)[0] > 0


def test_the_parts_add_up_to_the_torques(dynamics):
    q, qd, qdd = state(2, len(dynamics.joint_names))
    parts = dynamics.mass_matrix(q) @ qdd + dynamics.coriolis_matrix(q, qd) @ qd
    assert relative(parts + dynamics.gravity(q), dynamics(q, qd, qdd)) < RELATIVE_TO_SISTERS


def test_the_rate_of_the_mass_matrix_less_twice_the_coriolis_matrix_is_skew(dynamics):
    q, qd, _ = state(3, len(dynamics.joint_names))
    ahead, behind = dynamics.mass_matrix(q + STEP * qd), dynamics.mass_matrix(q - STEP * qd)
    skew = (ahead - behind) / (2 * STEP) - 2 * dynamics.coriolis_matrix(q, qd)
    assert np.abs(skew + skew.T).max() < DIFFERENCES * np.abs(skew).max()


def test_the_coriolis_matrix_is_lagrange_eulers_christoffel_symbols(mechanism):
    from robot_dynamics.formulations import lagrange_euler

    tree = lagrange_euler.prepare(mechanism)
    S, s = tree.coordinates()
    q, qd, _ = state(4, len(mechanism.joint_names))
    expected = S.T @ lagrange_euler.steps(tree, S @ q + s).coriolis_matrix(S @ qd) @ S
    C = rd.InverseDynamics(mechanism).coriolis_matrix(q, qd)
    # differences of quadratic forms lose a digit or two
    assert relative(C, expected) < 100 * RELATIVE_TO_SISTERS


def test_power_goes_into_kinetic_and_potential_energy(dynamics):
    q, qd, qdd = state(5, len(dynamics.joint_names))

    def kinetic(t):
        rate = qd + qdd * t
        return rate @ dynamics.mass_matrix(q + qd * t + qdd * t**2 / 2) @ rate / 2

    motion = dynamics(q, qd, qdd) - dynamics.gravity(q)
    rise = (kinetic(STEP) - kinetic(-STEP)) / (2 * STEP)
    assert motion @ qd == pytest.approx(rise, rel=DIFFERENCES, abs=DIFFERENCES)


def test_gravity_is_the_gradient_of_one_potential(dynamics):
    n = len(dynamics.joint_names)
    q, _, _ = state(6, n)
    units = STEP * np.eye(n)
    rows = [(dynamics.gravity(q + e) - dynamics.gravity(q - e)) / (2 * STEP) for e in units]
    stiffness = np.array(rows)
    assert np.abs(stiffness - stiffness.T).max() < DIFFERENCES * max(1, np.abs(stiffness).max())


@pytest.mark.parametrize("name", FORMULATIONS)
def test_torques_are_linear_in_the_inertial_parameters(mechanism, name):
    """All ten of a body: those of two robots whose bodies have nothing in common add up to the
    robot that has both bodies, welded."""
    q, qd, qdd = state(7, len(mechanism.joint_names))
    rng = np.random.default_rng(8)

    def torques(bodies):
        links = tuple(
            replace(link, inertial=body) for link, body in zip(mechanism.links, bodies, strict=True)
        )
        robot = replace(mechanism, links=links, rotors=())
        return Equations.of(robot, name).torques(q, qd, qdd)

    def body():
        mass = rng.uniform(0.5, 3)
        return Inertial(mass, rng.uniform(-0.3, 0.3, 3), inertia(rng, mass))

    one, other = ([body() for _ in mechanism.links] for _ in range(2))
    both = [a + b for a, b in zip(one, other, strict=True)]
    for a, b, sum_of_both in zip(one, other, both, strict=True):
        # the ten add up: mass, first moment, inertia about the origin
        for number in ("mass", "first_moment", "inertia_about_origin"):
            expected = getattr(a, number) + getattr(b, number)
            assert np.allclose(getattr(sum_of_both, number), expected, rtol=1e-13, atol=1e-13)
    assert relative(torques(both), torques(one) + torques(other)) < RELATIVE_TO_SISTERS


def test_accelerations_under_these_torques_are_those_that_were_asked_for(dynamics):
    q, qd, qdd = state(9, len(dynamics.joint_names))
    bias = dynamics(q, qd, np.zeros_like(q))
    forward = np.linalg.solve(dynamics.mass_matrix(q), dynamics(q, qd, qdd) - bias)
    # as good as the mass matrix is conditioned
    condition = np.linalg.cond(dynamics.mass_matrix(q))
    assert relative(forward, qdd) < condition * RELATIVE_TO_SISTERS


def test_terms_are_what_they_say(mechanism):
    q, qd, qdd = state(10, len(mechanism.joint_names))
    full = rd.InverseDynamics(mechanism)
    none = rd.InverseDynamics(mechanism, rotors="none")
    only = {
        term: rd.InverseDynamics(mechanism, terms=[term])(q, qd, qdd)
        for term in ("inertia", "coriolis", "gravity", "rotors")
    }
    # inertia and coriolis are the links', gravity is everybody's, and the rest the rotors'
    assert relative(only["inertia"], none.mass_matrix(q) @ qdd) < RELATIVE_TO_SISTERS
    assert relative(only["coriolis"], none.coriolis_matrix(q, qd) @ qd) < 100 * RELATIVE_TO_SISTERS
    assert relative(only["gravity"], full.gravity(q)) < RELATIVE_TO_SISTERS
    assert relative(sum(only.values()), full(q, qd, qdd)) < RELATIVE_TO_SISTERS
    weightless = rd.InverseDynamics(mechanism, terms=["inertia", "coriolis"])
    expected = none(q, qd, qdd) - none.gravity(q)
    assert relative(weightless(q, qd, qdd), expected) < 100 * RELATIVE_TO_SISTERS


def test_batches_are_states_one_by_one(dynamics):
    n = len(dynamics.joint_names)
    q, qd, qdd = (np.random.default_rng(11).uniform(-1, 1, (4, 3, n)) for _ in range(3))
    batch = dynamics(q, qd, qdd)
    singles = [[dynamics(q[i, j], qd[i, j], qdd[i, j]) for j in range(3)] for i in range(4)]
    assert relative(batch, np.array(singles)) < RELATIVE_TO_SISTERS
    assert dynamics.mass_matrix(q).shape == (4, 3, n, n)
