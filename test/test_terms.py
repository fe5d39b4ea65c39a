# SPDX-License-Identifier: Apache-2.0
"""The terms add up: any set of them gives the sum of its terms, by every formulation."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import closed_robots
import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    dh_to_pinocchio,
    inertia,
    pinocchio_torques,
    random_dh,
    relative,
    state,
)
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.formulations import FORMULATIONS
from robot_dynamics.formulations.equations import TERMS, Equations
from robot_dynamics.formulations.terms import ACCELERATED, MOTION, OF_LINKS, RIGID, TABLE, TURNING
from robot_dynamics.mechanism import Inertial
from robot_dynamics.mechanism.transform import without_bodies

SUBSETS = [frozenset(each) for k in range(len(TERMS) + 1) for each in combinations(TERMS, k)]
MODELS = ("full", "reflected", "none")


def with_rotors(tmp_path, seed=5, joints=5):
    robot = random_dh(seed, joints=joints, rotors=True)
    for link in robot["links"]:
        if link["joint"]["type"] != "fixed":
            link["friction"] = {"viscous": 0.4, "coulomb": 0.9}
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(robot))
    return robot, rd.load(path)


def assert_adds_up(torques, subsets=SUBSETS):
    """torques(terms) for every subset is the sum over its terms, at each joint's own scale."""
    single = {term: torques({term}) for term in TERMS}
    scale = sum(np.abs(tau) for tau in single.values())
    for subset in subsets:
        expected = sum((single[term] for term in subset), np.zeros_like(scale))
        difference = np.abs(torques(subset) - expected)
        assert (difference <= RELATIVE_TO_SISTERS * scale).all(), sorted(subset)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", FORMULATIONS)
def test_every_set_of_terms_is_the_sum_of_its_terms(tmp_path, name, model):
    _, mechanism = with_rotors(tmp_path)
    x = state(1, len(mechanism.joint_names))
    assert_adds_up(lambda terms: Equations.of(mechanism, name, model, terms).torques(*x))


@pytest.mark.parametrize("term", TABLE)
def test_a_term_takes_what_the_table_says_and_nothing_else(tmp_path, term):
    _, mechanism = with_rotors(tmp_path)
    q, qd, qdd = state(1, len(mechanism.joint_names))

    def changed(robot, *other):
        """Does it depend on what is other?"""
        run = lambda m, *x: Equations.of(m, terms={term}).torques(*x)  # noqa: E731
        return relative(run(robot, *other), run(mechanism, q, qd, qdd)) > 1e-6

    said = TABLE[term]
    assert changed(mechanism, q, 2 * qd, qdd) == said.rates
    assert changed(mechanism, q, qd, 2 * qdd) == said.accelerations
    heavier = replace(mechanism, gravity=2 * np.array(mechanism.gravity))
    assert changed(heavier, q, qd, qdd) == said.gravity
    assert changed(replace(mechanism, rotors=()), q, qd, qdd) == ("rotors" in said.bodies)
    assert changed(without_bodies(mechanism), q, qd, qdd) == ("links" in said.bodies)


def test_the_sets_that_follow_from_the_table_are_these():
    assert RIGID == ("inertia", "coriolis", "gravity", "rotors")
    assert MOTION == ("inertia", "coriolis", "rotors")
    assert OF_LINKS == ("inertia", "coriolis", "gravity")
    assert set(ACCELERATED) == {"inertia", "rotors"}
    assert set(TURNING) == {"coriolis", "rotors"}


@pytest.mark.parametrize("name", ["newton_euler", "murphy"])
def test_terms_of_a_kernel_add_up_also_after_a_payload_and_another_gravity(tmp_path, name):
    _, mechanism = with_rotors(tmp_path, joints=4)
    x = state(2, len(mechanism.joint_names))
    body = Inertial(2.0, np.array([0.1, -0.2, 0.3]), inertia(np.random.default_rng(0), 2.0))

    def changed(terms):
        dynamics = rd.InverseDynamics(mechanism, name, terms=terms, backend="python")
        dynamics(*x)
        dynamics.set_payload(mechanism.links[-1].name, body)
        dynamics.gravity_vector = [1.0, -4.0, 2.0]
        return dynamics(*x)

    assert_adds_up(changed)


def test_each_term_is_what_pinocchio_makes_of_links_and_rotors(tmp_path):
    robot, mechanism = with_rotors(tmp_path, joints=6)
    names = mechanism.joint_names
    q, qd, qdd = state(3, len(names))
    still = np.zeros(len(names))
    both, geared = dh_to_pinocchio(robot)
    links, _ = dh_to_pinocchio(robot, rotors=False)

    def weightless(model, qd, qdd, geared=None):
        model = model.copy()
        model.gravity.linear = np.zeros(3)
        return pinocchio_torques(model, names, q, qd, qdd, geared)

    expected = {
        "inertia": weightless(links, still, qdd),
        "coriolis": weightless(links, qd, still),
        "gravity": pinocchio_torques(both, names, q, still, still, geared),
        "rotors": weightless(both, qd, qdd, geared) - weightless(links, qd, qdd),
    }
    for term, tau in expected.items():
        dynamics = rd.InverseDynamics(mechanism, terms=[term], backend="python")
        assert relative(dynamics(q, qd, qdd), tau) < RELATIVE_TO_PINOCCHIO, term
        # g is of everything, D and C of the rotors too where the terms have them
        assert relative(dynamics.gravity(q), expected["gravity"]) < RELATIVE_TO_PINOCCHIO
        model, share = (both, geared) if term == "rotors" else (links, None)
        D = dynamics.mass_matrix(q)
        assert relative(D @ qdd, weightless(model, still, qdd, share)) < RELATIVE_TO_PINOCCHIO
        C = dynamics.coriolis_matrix(q, qd)
        assert relative(C @ qd, weightless(model, qd, still, share)) < RELATIVE_TO_PINOCCHIO


def test_what_motors_give_and_gears_carry_adds_up_too(tmp_path):
    _, mechanism = with_rotors(tmp_path)
    x = state(6, len(mechanism.joint_names))
    for side in ("drive", "gear"):

        def torques(terms, side=side):
            dynamics = rd.InverseDynamics(mechanism, terms=terms, backend="python")
            return getattr(dynamics.motor_torques(*x), side)

        assert_adds_up(torques, SUBSETS[-6:] + SUBSETS[6:16:3])


def test_gravity_alone_holds_the_robot_and_nothing_weighs_without_it(tmp_path):
    _, mechanism = with_rotors(tmp_path)
    q = state(4, len(mechanism.joint_names))[0]
    still = np.zeros_like(q)
    whole = rd.InverseDynamics(mechanism)(q, still, still)
    assert np.abs(whole).min() > 0.1
    alone = InverseDynamics(mechanism, terms=["gravity"])(q, still, still)
    assert relative(alone, whole) < RELATIVE_TO_SISTERS
    others = set(TERMS) - {"gravity"}
    assert not InverseDynamics(mechanism, terms=others)(q, still, still).any()


def test_a_robot_whose_rotors_weigh_nothing_has_the_program_that_it_has_without_them(tmp_path):
    robot, _ = with_rotors(tmp_path)
    for link in robot["links"]:
        if "rotor" in link:
            link["rotor"] = {"gear_ratio": 50.0}
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(robot))
    mechanism = rd.load(tmp_path / "robot.yaml")
    assert mechanism.rotors
    terms = ["inertia", "coriolis"]
    assert Equations.of(mechanism, terms=terms).rotors is None
    x = state(1, len(mechanism.joint_names))
    assert not InverseDynamics(mechanism, terms=["rotors"])(*x).any()


CLOSED = {
    "3RRR": lambda: closed_robots.random_rrr(1, rotors=True),
    "five-bar": lambda: yaml.safe_load((CONFIG / "five_bar.yaml").read_text()),
}


@pytest.mark.parametrize(
    ("robot", "model"), [("3RRR", "full"), ("3RRR", "reflected"), ("five-bar", "full")]
)
def test_terms_of_a_closed_chain_add_up(tmp_path, robot, model):
    mechanism = closed_robots.load(CLOSED[robot]() | {"robot": robot}, tmp_path)
    rng = np.random.default_rng(0)
    n = len(mechanism.actuated_names)
    qd, qdd = rng.uniform(-1, 1, n), rng.uniform(-3, 3, n)

    def torques(terms):
        chain = closed_robots.ClosedChain(mechanism, rotors=model, terms=terms)
        return chain(chain.home.q_a + 0.01, qd, qdd)

    assert_adds_up(torques, SUBSETS[-6:] + SUBSETS[6:16:3])
    # against models without rotors at all, and without weight
    parts = [
        closed_robots.ClosedChain(mechanism, rotors=each, terms={"inertia", "coriolis", "rotors"})
        for each in (model, "none")
    ]
    whole, links = (chain(chain.home.q_a + 0.01, qd, qdd) for chain in parts)
    assert relative(torques({"rotors"}), whole - links) < RELATIVE_TO_PINOCCHIO
    assert torques({"rotors"}).all()
