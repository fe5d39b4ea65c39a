# SPDX-License-Identifier: Apache-2.0
"""Sets of loops that share no joint, such as those of two legs: each is closed on its own."""

import re

import numpy as np
import pytest
from closed_robots import beside, load, random_five_bar, random_rrr

import robot_dynamics as rd
from robot_dynamics.closure import ClosedChain
from robot_dynamics.closure.dynamics import continuation
from robot_dynamics.closure.geometry.assembly import assembly_modes
from robot_dynamics.errors import ClosureError, ClosureWarning

EQUAL = 1e-9
"""rad: two closures of the same state"""


def five_bar(seed: int) -> dict:
    return {key: x for key, x in random_five_bar(seed).items() if key != "sensed"}


@pytest.fixture
def pair(tmp_path) -> ClosedChain:
    return ClosedChain(load(beside(five_bar(1), five_bar(2)), tmp_path))


@pytest.fixture
def alone(tmp_path) -> list[ClosedChain]:
    return [ClosedChain(load(five_bar(seed), tmp_path)) for seed in (1, 2)]


def test_the_condition_number_is_that_of_the_worse_set_of_loops(tmp_path):
    robots = five_bar(3), five_bar(5)
    pair, *alone = (ClosedChain(load(x, tmp_path)) for x in (beside(*robots), *robots))
    q = np.array([0.05, -0.04])
    found = pair.forward_kinematics(pair.q_home + np.concatenate([q, q]))
    each = [float(x.forward_kinematics(x.q_home + q).condition) for x in alone]
    assert float(found.condition) == pytest.approx(max(each))
    # the largest singular value of one and the smallest of the other say nothing
    whole = found.J[:, 4:] * pair.closer.scale[4:]
    assert np.linalg.cond(whole) > 1.05 * max(each)


def test_two_legs_that_change_their_modes_together_are_in_another_mode(pair, alone, tmp_path):
    """The determinant of the whole Jacobian has the same sign again."""
    places = {}
    for x, mark in zip(alone, ("", "other "), strict=True):
        other = next(
            mode
            for mode in assembly_modes(x.mechanism)[1:]
            if float(x.closer.state(_q_r(x, mode.home)).assembly_mode) != x.home.assembly_mode
        )
        places |= {mark + name: value for name, value in other.home.items()}
    state = pair.closer.state(_q_r(pair, places))
    assert float(state.residual) < EQUAL
    assert float(state.assembly_mode) != float(pair.home.assembly_mode)
    with pytest.raises(ClosureError, match="different assembly mode"):
        pair.go_to(state)


def _q_r(chain: ClosedChain, places: dict) -> np.ndarray:
    return np.array([places[name] for name in chain.coordinate_names])


def test_a_refusal_names_the_motors_of_the_loops_that_do_not_close(pair):
    q = pair.q_home.copy()
    names = list(pair.joint_names)
    # both motors outwards: the arms can't reach each other
    q[names.index("other qa0")] += 1.5
    q[names.index("other qa1")] -= 1.5
    with pytest.raises(ClosureError) as caught:
        pair.forward_kinematics(q)
    named = re.search(r"don't close at (.*?): ", str(caught.value))[1]
    assert re.fullmatch(r"other qa0=[-.\d]+, other qa1=[-.\d]+", named)


def test_one_leg_goes_on_while_the_path_of_another_is_not_finished(pair, alone, monkeypatch):
    """The second call continues, and the end is that of each robot alone."""
    monkeypatch.setattr(continuation, "MOST_STRIDES", 0)
    monkeypatch.setattr(continuation, "MOST_STEPS", 2)
    q = np.array([0.05, -0.04])
    target = pair.q_home + np.concatenate([q, q])
    with pytest.raises(ClosureError, match="another call for this state continues from there"):
        pair.forward_kinematics(target)
    found = pair.forward_kinematics(target)
    monkeypatch.undo()
    places = dict(zip(pair.coordinate_names, found.q_r, strict=True))
    for x, mark in zip(alone, ("", "other "), strict=True):
        expected = x.forward_kinematics(x.q_home + q).q_r
        got = [places[mark + name] for name in x.coordinate_names]
        assert np.max(np.abs(got - expected)) < EQUAL


def test_where_the_pivots_chosen_at_home_fail_others_are_chosen(alone, monkeypatch):
    """Where a pivot vanishes the kernel refuses every stride, though the loops are regular there:
    a certified path, often too long for one call, is not needed."""
    chain, q = alone[1], np.array([0.05, -0.04])
    expected = chain.forward_kinematics(chain.q_home + q).q_r
    chain.reset()
    monkeypatch.setattr(chain._continuation.kernels, "at_once", lambda *_: None)
    monkeypatch.setattr(continuation, "MOST_STEPS", 0)
    assert np.max(np.abs(chain.forward_kinematics(chain.q_home + q).q_r - expected)) < EQUAL


@pytest.mark.parametrize("share", [0.55, 0.7, 0.9])
def test_a_state_on_the_way_to_a_refused_one_is_closed_at_once(share, tmp_path):
    """The path to the refused one ends so near a singularity that steps from there are short."""
    robot = {key: x for key, x in random_rrr(6).items() if key != "sensed"}
    chain = ClosedChain(load(robot, tmp_path))
    rng = np.random.default_rng(1)
    way = 0.4 * rng.choice([-1, 1], 3) * rng.uniform(0.5, 1, 3)
    with pytest.raises(ClosureError, match="needs more steps"):
        chain.forward_kinematics(chain.q_home + way)
    end = chain._continuation._configuration(chain._continuation._here.end)[:3]
    q = chain.q_home + share * (end - chain.q_home)
    found = chain.forward_kinematics(q)
    chain.reset()
    assert np.max(np.abs(found.q_r - chain.forward_kinematics(q).q_r)) < EQUAL


def test_states_of_a_batch_do_not_continue_the_paths_of_earlier_ones():
    """Otherwise the second of two equal rows might be closed, the first one not."""
    dynamics = rd.InverseDynamics(rd.load("config/five_bar.yaml"))
    q = np.tile([0.723721, 2.45773], (2, 1))  # close to a singularity on the way
    with pytest.warns(ClosureWarning, match="2 of 2 states"):
        assert np.isnan(dynamics(q, 0 * q, 0 * q)).all()
