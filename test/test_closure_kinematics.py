# SPDX-License-Identifier: Apache-2.0
"""Positions, Jacobians and their rates of closed mechanisms, against Pinocchio's frames."""

from __future__ import annotations

import re
from dataclasses import replace

import closed_robots
import numpy as np
import pytest
from closed_robots import ClosedChain, Oracle
from robots import CONFIG, relative

import robot_dynamics as rd
from robot_dynamics.closure.dynamics import continuation
from robot_dynamics.errors import ClosureError
from robot_dynamics.mechanism import Pose

CLOSED = 1e-11
"""m or rad: Newton's last increment is below 1e-13 of the mechanism's size"""
EXACT = 1e-10
"""Relative: condition numbers of up to 20 on top of some hundred roundings"""
DIFFERENTIATED = 1e-6
"""Relative: central differences with a step of 1e-5 leave 1e-10 of truncation and of rounding"""

EVERY_CLOSURE = {
    "3RRR": closed_robots.random_rrr,
    "3RRR on leg 2": lambda seed: closed_robots.random_rrr(seed, carrier=1),
    "five-bar": lambda seed: closed_robots.random_five_bar(seed, platform=True),
    "five-bar cut at the elbow": lambda seed: closed_robots.random_five_bar(seed, "elbow"),
    "Gough-Stewart, spherical": closed_robots.random_gough_stewart,
    "Gough-Stewart, universal": lambda seed: closed_robots.random_gough_stewart(seed, True),
    "slider-crank, prismatic": closed_robots.slider_crank,
    "four-bar, fixed": closed_robots.welded_four_bar,
}


@pytest.fixture(
    params=[(name, seed) for name in EVERY_CLOSURE for seed in (1, 2)], ids=str, scope="module"
)
def case(request, tmp_path_factory):
    """(chain, oracle, a closed moving state, q̈_a)"""
    name, seed = request.param
    robot = EVERY_CLOSURE[name](seed)
    chain = ClosedChain(closed_robots.load(robot, tmp_path_factory.mktemp("robot")))
    a = len(chain.actuated_names)
    rng = np.random.default_rng(seed)
    q = chain.home.q_a + rng.uniform(-0.04, 0.04, a)
    state = chain.forward_kinematics(q, rng.uniform(-1, 1, a))
    return chain, Oracle(robot, chain.coordinate_names, a), state, rng.uniform(-3, 3, a)


def test_a_solved_state_is_closed(case):
    _, oracle, state, _ = case
    miss, _, _ = oracle.closure(state.q_r, state.qd_r)
    assert np.abs(miss).max() < CLOSED
    assert state.residual < CLOSED


def test_passive_rates_close_the_loops(case):
    _, oracle, state, _ = case
    _, J, _ = oracle.closure(state.q_r, state.qd_r)
    assert np.abs(J @ state.T).max() < CLOSED
    assert relative(state.T, oracle.T(state.q_r)) < EXACT


def test_accelerations_close_the_loops(case):
    _, oracle, state, qdd = case
    q_a_rate = state.qd_r[: len(qdd)]
    found = state.T @ qdd + state.T_rate @ q_a_rate
    assert relative(found, oracle.accelerations(state.q_r, q_a_rate, qdd)) < EXACT


def test_the_platform_moves_as_its_jacobians_say(case):
    chain, oracle, state, qdd = case
    if chain.mechanism.platform is None:
        pytest.skip("this one has no platform")
    place, J_C, bias = oracle.platform(state.q_r, state.qd_r)
    assert relative(state.platform_pose, place.homogeneous) < EXACT
    found = chain.solver.geometry.poses(state.q_r)[chain.mechanism.platform]
    assert relative(found.homogeneous(), place.homogeneous) < EXACT
    assert relative(state.J_C, J_C) < EXACT
    assert relative(state.J_R, J_C @ oracle.T(state.q_r)) < EXACT
    # a = J_C q̈_r + J̇_C q̇_r = J_R q̈_a + J̇_R q̇_a
    rates = state.qd_r[: len(qdd)]
    accelerations = J_C @ oracle.accelerations(state.q_r, rates, qdd) + bias
    assert relative(state.J_C_rate @ state.qd_r, bias) < EXACT
    assert relative(state.J_R @ qdd + state.J_R_rate @ rates, accelerations) < EXACT


def test_the_rates_are_the_derivatives_of_the_matrices(case):
    chain, _, state, _ = case
    a, step = len(chain.actuated_names), 1e-5
    ahead, behind = (
        chain.forward_kinematics(state.q_a + sign * step * state.qd_r[:a]) for sign in (1.0, -1.0)
    )
    names = ["T", "T_q", "J"] + (["J_C", "J_R"] if chain.mechanism.platform else [])
    for name in names:
        slope = (getattr(ahead, name) - getattr(behind, name)) / (2 * step)
        found = getattr(state, name + "_rate")
        assert np.abs(found - slope).max() < DIFFERENTIATED * max(np.abs(slope).max(), 1.0), name


def test_inverse_undoes_forward(case):
    chain, _, state, _ = case
    if chain.mechanism.platform is None or chain.degrees_of_freedom < 2:
        pytest.skip("its platform's pose does not belong to the motors one to one")
    assert chain.inverse_kinematics(state.platform_pose).q_r == pytest.approx(state.q_r, abs=1e-9)


def test_sensed_coordinates_give_the_same_state(case):
    chain, _, state, _ = case
    if not chain.mechanism.sensed:
        pytest.skip("this one has no sensors")
    sensed = ClosedChain(chain.mechanism, sensed=True)
    k, n = len(sensed.joint_names), len(chain.coordinate_names)
    # behind the others are those of a platform that stands free
    assert sensed.coordinate_names[:n] == chain.coordinate_names
    found = sensed.forward_kinematics(state.q_r[:k], state.qd_r[:k])
    assert found.q_r[:n] == pytest.approx(state.q_r, abs=CLOSED)
    assert found.qd_r[:n] == pytest.approx(state.qd_r, rel=EXACT, abs=EXACT)
    if chain.mechanism.platform is not None:
        assert found.platform_pose == pytest.approx(state.platform_pose, abs=CLOSED)
        assert found.v == pytest.approx(state.v, rel=EXACT, abs=EXACT)


def test_nothing_is_solved_where_all_passive_joints_are_sensed(tmp_path):
    robot = closed_robots.random_five_bar(3)
    robot["sensed"] = ["qp0", "qp1"]
    chain = ClosedChain(closed_robots.load(robot, tmp_path), sensed=True)
    anything = np.array([0.1, 0.2, 0.3, 0.4])  # not even closed
    assert np.array_equal(chain.forward_kinematics(anything).q_r, anything)
    assert np.array_equal(chain.forward_kinematics(anything).T_q, np.eye(4))


@pytest.mark.parametrize("name", ["rrr", "five_bar", "delta", "gough_stewart"])
def test_a_large_jump_ends_where_small_steps_do(name):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    jump, walk = ClosedChain(mechanism), ClosedChain(mechanism)
    a = len(jump.actuated_names)
    size = 0.1 if name == "gough_stewart" else 0.6
    for seed in range(5):
        rng = np.random.default_rng(seed)
        way = rng.uniform(-size, size, a)
        walk.reset()
        reached = 0.0
        for share in np.linspace(0, 1, 200)[1:]:
            try:
                state = walk.forward_kinematics(walk.home.q_a + share * way)
            except ClosureError:
                break
            reached = share
        jump.reset()
        target = jump.home.q_a + reached * way
        assert jump.forward_kinematics(target).q_r == pytest.approx(
            walk.forward_kinematics(target).q_r, abs=1e-9
        )
        assert state.condition < 1e3


def test_a_batch_is_its_states(tmp_path):
    robot = closed_robots.random_rrr(5)
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    rng = np.random.default_rng(0)
    q = chain.home.q_a + rng.uniform(-0.2, 0.2, (4, 5, 3))
    batch = chain.forward_kinematics(q)
    assert batch.q_r.shape == (4, 5, len(chain.coordinate_names))
    for i in np.ndindex(4, 5):
        single = chain.forward_kinematics(q[i])
        assert batch.q_r[i] == pytest.approx(single.q_r, abs=CLOSED)
        assert batch.T[i] == pytest.approx(single.T, rel=EXACT, abs=EXACT)
        assert batch.condition[i] == pytest.approx(single.condition)


def test_out_of_reach_is_said_and_the_next_state_is_solved_all_the_same():
    chain = ClosedChain(rd.load(CONFIG / "five_bar.yaml"))
    before = chain.forward_kinematics(chain.home.q_a).q_r
    with pytest.raises(
        ClosureError, match=r"don't close at qa1=.*qa2=.*ends after [\d.]+ % of it.*condition"
    ):
        chain.forward_kinematics([np.pi, 0.0])  # the tips are 0.7 m apart, the forearms 0.35 m each
    assert chain.forward_kinematics(chain.home.q_a).q_r == pytest.approx(before, abs=CLOSED)


@pytest.mark.parametrize("to", [[0, 0, 0], [3.07, 5.17, 0.98]])
def test_the_end_of_a_path_is_named_as_a_fraction_of_the_whole(to):
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    home = chain.home.q_a
    with pytest.raises(ClosureError) as error:
        chain.forward_kinematics(to)
    share, condition = re.search(
        r"ends after ([\d.]+) % of it, at a condition number of ([\d.]+)", str(error.value)
    ).groups()
    # the long strides that come before the certified steps are part of it
    there = chain.forward_kinematics(home + 0.01 * float(share) * 0.998 * (to - home))
    assert float(share) > 10
    # near the end the condition number is inversely proportional to what is left of the path
    assert there.condition == pytest.approx(float(condition), rel=0.5)


@pytest.mark.parametrize(
    ("name", "sensed", "away"),
    [("delta", (), [0.9, 0.7, 0.5]), ("delta", ("qe1",), [0.4, 0.3, 0.2])],
)
def test_a_path_too_long_for_one_call_is_followed_by_the_next_ones(name, sensed, away, monkeypatch):
    described = rd.load(CONFIG / f"{name}.yaml")
    truth = ClosedChain(described)
    expected = truth.forward_kinematics(np.add(truth.home.q_a, away))
    chain = ClosedChain(replace(described, sensed=sensed), sensed=bool(sensed))
    # actuated joints first, then those with sensors
    target = expected.q_r[: len(away) + len(sensed)]
    # certified steps alone, and three of them in a call
    monkeypatch.setattr(continuation, "MOST_STRIDES", 0)
    monkeypatch.setattr(continuation, "MOST_STEPS", 3)
    monkeypatch.setattr(continuation, "MOST_STEPS_OF_READINGS", 3)
    shares = []
    while True:
        try:
            found = chain.forward_kinematics(target)
            break
        except ClosureError as error:
            said = re.search(
                r"ends after ([\d.]+) % of it.*: the rest of it needs more steps", str(error)
            )
            shares.append(float(said[1]))
            assert len(shares) < 20
    assert len(shares) > 2
    assert shares == sorted(shares)  # what remains is shorter each time
    assert found.platform_pose == pytest.approx(expected.platform_pose, abs=CLOSED)
    chain.reset()
    batch = chain.forward_kinematics([target])  # in other steps
    assert batch.platform_pose[0] == pytest.approx(expected.platform_pose, abs=CLOSED)


def test_an_unfinished_path_is_continued_only_where_that_is_nearer_than_the_last_state(monkeypatch):
    described = rd.load(CONFIG / "delta.yaml")
    chain = ClosedChain(described)
    there, elsewhere, between = np.multiply.outer([1.0, -0.6, 0.02], [0.9, 0.7, 0.5])
    monkeypatch.setattr(continuation, "MOST_STRIDES", 0)
    monkeypatch.setattr(continuation, "MOST_STEPS", 3)

    def share(chain, away):
        """How far one call gets, %."""
        with pytest.raises(ClosureError, match="another call for this state continues") as error:
            chain.forward_kinematics(np.add(chain.home.q_a, away))
        return float(re.search(r"ends after ([\d.]+) %", str(error.value))[1])

    def first(*before, to):
        fresh = ClosedChain(described)
        for away in before:
            fresh.forward_kinematics(np.add(fresh.home.q_a, away))
        return share(fresh, to)

    assert share(chain, there) == first(to=there)
    assert share(chain, elsewhere) == first(to=elsewhere)  # the other way: from the last state
    assert share(chain, there) == first(to=there)
    assert share(chain, there) > first(to=there)  # of what is left
    # after a state that was closed, the path is forgotten
    chain.forward_kinematics(np.add(chain.home.q_a, between))
    assert share(chain, there) == first(between, to=there)


def test_a_pose_that_cannot_be_had_is_said():
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    lifted = Pose(chain.home.platform_pose[:3, :3], np.array([0.0, 0.0, 0.1]))
    with pytest.raises(ClosureError, match=r"pose \(0, 0, 0.1\) .*is not reachable.* 0.1 m"):
        chain.inverse_kinematics(lifted)
    with pytest.raises(ClosureError, match="is not reachable"):
        chain.inverse_kinematics(Pose(np.eye(3), np.array([3.0, 0.0, 0.0])))


def test_the_working_mode_is_kept():
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    state = chain.home
    elbow = chain.coordinate_names.index("qp1")
    for angle in np.linspace(0, 2 * np.pi, 30):
        point = 0.04 * np.array([np.cos(angle), np.sin(angle), 0.0])
        state = chain.inverse_kinematics(Pose(chain.home.platform_pose[:3, :3], point), start=state)
        assert state.platform_pose[:3, 3] == pytest.approx(point, abs=1e-9)
        assert -np.pi < state.q_r[elbow] < 0


def test_a_whole_turn_of_a_continuous_joint_changes_nothing(tmp_path):
    robot = closed_robots.slider_crank(1)
    robot["links"][1]["joint"]["type"] = "continuous"
    chain = ClosedChain(closed_robots.load(robot, tmp_path))

    def place(angle):
        return np.exp(1j * chain.forward_kinematics([angle]).q_r)

    turning = [place(0.7 + angle) for angle in np.linspace(0, 2 * np.pi, 60)]
    assert turning[-1] == pytest.approx(turning[0], abs=CLOSED)
    # a reading that wraps is a small step, not a whole turn back
    near = chain.forward_kinematics([3.1]).q_r
    assert chain.forward_kinematics([-3.1]).q_r[1:] == pytest.approx(near[1:], abs=0.2)


def test_a_state_with_nan_is_nan_and_the_others_are_not():
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    q = np.tile(chain.home.q_a, (3, 1))
    q[1, 0] = np.nan
    tau = chain(q, 0 * q, 0 * q)
    assert np.isnan(tau[1]).all()
    assert np.isfinite(tau[[0, 2]]).all()
    assert np.isnan(chain.forward_kinematics([np.inf, 0, 0]).q_r).all()


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.3, 2.0, np.pi - 1e-6, np.pi - 1e-12, np.pi])
def test_rotation_vectors_are_scipys(angle):
    from scipy.spatial.transform import Rotation

    from robot_dynamics.scalar import rotation_about, rotation_vector

    rng = np.random.default_rng(0)
    for _ in range(20):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        R = Rotation.from_rotvec(angle * axis).as_matrix()
        assert rotation_about(axis, angle) == pytest.approx(R, abs=1e-14)
        # half a turn has two vectors: the rotation is what counts
        again = Rotation.from_rotvec(rotation_vector(R)).as_matrix()
        assert again == pytest.approx(R, abs=1e-7)
        assert np.linalg.norm(rotation_vector(R)) == pytest.approx(angle, abs=1e-7)


def small(part: object, key: str = "") -> object:
    """The same part of a description with all lengths in mm, and with other names."""
    if isinstance(part, dict):
        return {key: small(value, key) for key, value in part.items()}
    if key in ("xyz", "a", "d", "center_of_mass", "slide"):
        return np.multiply(part, 1e-3).tolist()
    if isinstance(part, list):
        return [small(each, key) for each in part]
    return f"small {part}" if key in ("name", "parent", "link", "actuated") else part


def test_small_loops_on_a_large_robot_are_no_nearer_to_a_singularity_than_alone(tmp_path):
    """A latch of a few mm on an arm of a few m has no joint in common with it."""
    large = closed_robots.driven_slider(1) | {"actuated": ["crank"]}
    latch = small(large)
    latch["links"][0]["parent"] = "block"
    latch["links"][1]["parent"] = "small ground"
    latch["home"] = {f"small {name}": value for name, value in latch["home"].items()}
    both = large | {key: large[key] + latch[key] for key in ("links", "loops", "actuated")}
    both |= {"robot": "both", "home": large["home"] | latch["home"]}
    alone, chain = (ClosedChain(closed_robots.load(each, tmp_path)) for each in (large, both))
    assert chain.home.condition == pytest.approx(alone.home.condition)
    found = chain.forward_kinematics(chain.home.q_a + 0.2)
    places = dict(zip(chain.coordinate_names, found.q_r, strict=True))
    state = alone.forward_kinematics(alone.home.q_a + 0.2)
    for name, value in zip(alone.coordinate_names, state.q_r, strict=True):
        size = 1e3 if name == "slide" else 1.0
        assert [places[name], places[f"small {name}"] * size] == pytest.approx([value, value])
