# SPDX-License-Identifier: Apache-2.0
"""What a call of a closed mechanism can be certain of: the guard of the straight-line functions.

A guard above 1 sends the call the long way round; one that is wrongly below 1 is a wrong torque.
The oracle is plain Newton with NumPy's least squares.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import closed_robots
import numpy as np
import pytest
from robots import CONFIG

import robot_dynamics as rd
from robot_dynamics.closure import ClosedChain
from robot_dynamics.closure.dynamics import control_model
from robot_dynamics.closure.dynamics.control_model import ClosedModel
from robot_dynamics.closure.dynamics.kernels import ModelKernels
from robot_dynamics.closure.geometry.curvature import Curvature
from robot_dynamics.closure.geometry.path_following import BOUND, CONTRACTION
from robot_dynamics.mechanism import Friction, Pose

ROBOTS = [("five_bar", False), ("rrr", False), ("rrr", True), ("delta", False),
          ("gough_stewart", False)]  # fmt: skip


@cache
def loaded(name: str, sensed: bool) -> tuple[ClosedModel, np.ndarray]:
    """(model, home (n_r,))"""
    chain = ClosedChain(rd.load(CONFIG / f"{name}.yaml"), sensed=sensed, backend="python")
    return chain.model, chain.home.q_r


@pytest.fixture(params=ROBOTS, ids=lambda param: f"{param[0]}{'_sensed' * param[1]}")
def robot(request):
    return loaded(*request.param)


@pytest.fixture(params=[each for each in ROBOTS if not each[1]], ids=lambda param: param[0])
def solved(request):
    """One that is closed by Newton's method: with sensors all of its hinged legs are known."""
    return loaded(*request.param)


def increment(model: ClosedModel, q_r: np.ndarray) -> np.ndarray:
    """Newton's, scaled, of what are not control coordinates."""
    A, b = model.closure.scaled_jacobian(q_r)[:, model.known :], -model.closure.residual(q_r)
    return np.linalg.lstsq(A, b, rcond=None)[0]


def moved(model: ClosedModel, q_r: np.ndarray, d: np.ndarray) -> np.ndarray:
    k = model.known
    return q_r + np.concatenate([np.zeros(k), model.closure.column_scale[k:] * d])


def newton(model: ClosedModel, q_r: np.ndarray, steps: int = 12) -> np.ndarray:
    for _ in range(steps):
        q_r = moved(model, q_r, increment(model, q_r))
    return q_r


def rates(model: ClosedModel, q_r: np.ndarray) -> np.ndarray:
    """(n_r - k, k): how the other coordinates follow the control coordinates."""
    k, scale = model.known, model.closure.column_scale
    J = model.closure.scaled_jacobian(q_r) / scale
    return np.linalg.lstsq(J[:, k:], -J[:, :k], rcond=None)[0]


def passive(model: ClosedModel, q_r: np.ndarray) -> np.ndarray:
    return model.closure.scaled_jacobian(q_r)[:, model.geometry.actuated :]


def mode(model: ClosedModel, q_r: np.ndarray) -> float:
    return float(np.sign(np.linalg.det(passive(model, q_r))))


def called(model: ClosedModel, q: np.ndarray, q_r: np.ndarray, T=None, sign: float = 1.0):
    """at_once at q after q_r: (guard, q_r (n_r,), rates (n_r - k, k), mode)"""
    a, n, k = model.geometry.actuated, len(q_r), model.known
    T = rates(model, q_r) if T is None else T
    memory = model.memory(q_r, T, sign * mode(model, q_r))
    out = np.asarray(model.at_once(q, np.zeros(k), np.zeros(k), memory), dtype=float)
    return out[a], out[a + 1 : a + 1 + n], out[a + 1 + n : -1].reshape(n - k, k), out[-1]


def ways(model: ClosedModel, q_r: np.ndarray, count: int) -> np.ndarray:
    """(count, k) directions that move all joints by 1, rad or shares of the size."""
    k, scale = model.known, model.closure.column_scale
    v = np.random.default_rng(0).normal(size=(count, k)) * scale[:k]
    a = model.geometry.actuated
    v[:, a:] = v[:, :a] @ follow(model, q_r)[: k - a].T  # the sensors agree
    whole = np.hstack([v, v @ rates(model, q_r).T]) / scale
    return v / np.linalg.norm(whole, axis=1)[:, None]


def follow(model: ClosedModel, q_r: np.ndarray) -> np.ndarray:
    """(n_r - n_a, n_a): how the passive joints follow the actuated ones."""
    J, a = model.closure.scaled_jacobian(q_r) / model.closure.column_scale, model.geometry.actuated
    return -np.linalg.solve(J[:, a:], J[:, :a])


def test_a_certain_call_is_at_newtons_solution_and_hands_on_its_rates(robot):
    model, home = robot
    k, q_r = model.known, home
    for way in 0.3 * BOUND * ways(model, home, 8):
        expected = newton(model, np.concatenate([q_r[:k] + way, q_r[k:]]))
        guard, found, T, sign = called(model, q_r[:k] + way, q_r)
        assert guard <= 1
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(T, rates(model, expected), atol=1e-9)
        assert sign == mode(model, home)
        motors = np.vstack([np.eye(model.geometry.actuated), follow(model, expected)])
        np.testing.assert_allclose(np.asarray(model.T(expected), dtype=float), motors, atol=1e-9)
        q_r = expected


def test_the_last_step_by_the_factors_before_it_is_as_good_as_a_new_one():
    """Where readings disagree each step leaves a share of the last; so the factors must be new."""
    model, home = loaded("delta", True)
    k, scale, rng = model.known, model.closure.column_scale, np.random.default_rng(1)
    for _ in range(4):
        q_r = home.copy()
        q_r[:k] += 1e-3 * scale[:k] * rng.uniform(-1, 1, k)
        solution = newton(model, q_r, 40)
        start = moved(model, solution, 0.01 * rng.uniform(-1, 1, len(home) - k))
        found = np.asarray(model.closure.corrected(start, k, 3).q_r, dtype=float)
        exact = abs(newton(model, start, 3) - solution).max()
        assert abs(found - solution).max() < 4 * exact


def test_the_other_sign_of_the_determinant_is_never_certain(robot):
    model, home = robot
    for way in 0.1 * BOUND * ways(model, home, 4):
        q = home[: model.known] + way
        assert called(model, q, home)[0] <= 1
        assert called(model, q, home, sign=-1.0)[0] > 1


def test_a_way_as_long_as_the_bound_is_not_certain(robot):
    model, home = robot
    k, certain = model.known, 0
    for way in BOUND * ways(model, home, 12):
        certain += called(model, home[:k] + 0.4 * way, home)[0] <= 1
        assert called(model, home[:k] + 1.001 * way, home)[0] > 1
    assert certain  # it is the bound that was met


def test_readings_that_disagree_are_certain_where_their_least_squares_have_converged():
    """Convergence is linear there: a short last step may leave more than it should."""
    model, home = loaded("delta", True)
    k, a, rng, certain = model.known, model.geometry.actuated, np.random.default_rng(0), []
    for disagreement in (0.1, 0.15, 0.2, 0.25):
        q = home[:k] + np.append(np.zeros(a), disagreement * rng.uniform(-1, 1, k - a))
        before = newton(model, np.append(q, home[k:]), 60)
        for way in (1e-6, 3e-6):
            ahead = q + way * rng.uniform(-1, 1, k)
            guard, found, _, _ = called(model, ahead, before)
            off = abs(found - newton(model, np.append(ahead, before[k:]), 60))
            off /= model.closure.column_scale
            certain.append(bool(guard <= 1))
            assert off.max() < control_model.REST or not certain[-1]
    assert set(certain) == {True, False}


def test_where_the_motors_are_believed_is_certain_after_steps_that_shrink():
    """However far off the sensors are: a caller may allow for much."""
    model, home = loaded("rrr", True)
    k, a, rng = model.known, model.geometry.actuated, np.random.default_rng(0)
    shares, refused = [], 0
    for _ in range(30):
        q = home[:k] + np.append(np.zeros(a), 1.5 * rng.uniform(-1, 1) * rng.uniform(-1, 1, k - a))
        q_r = np.append(q, np.asarray(model.hinged.solved(q, home[k:]), dtype=float))
        memory = model.memory(q_r, rates(model, q_r), mode(model, q_r))
        out = np.asarray(model.disagreement(q, memory), dtype=float)
        exact = q_r.copy()
        for _ in range(40):
            J = model.closure.jacobian(exact)[:, a:]
            exact[a:] -= np.linalg.solve(J, model.closure.residual(exact))
        left, off = (abs(x - exact).max() for x in (out[model.memory_size + k :], q_r))
        if out[model.motors] <= 1:
            shares.append(left / off)
        refused += out[model.motors] > 1 and left > off * CONTRACTION / 2
    # steps d, d/4, d/16, … leave d/12 after two of them, of a way of 2d/3 at least
    assert len(shares) > 5
    assert max(shares) < CONTRACTION / 2
    assert refused > 5


def enlarged(mechanism: rd.Mechanism, by: float) -> rd.Mechanism:
    """The same shape, larger."""

    def pose(one: rd.mechanism.Pose) -> rd.mechanism.Pose:
        return replace(one, translation=by * one.translation)

    def end(one: rd.mechanism.Attachment) -> rd.mechanism.Attachment:
        return replace(one, pose=pose(one.pose))

    links = [
        replace(link, joint=replace(joint, origin=pose(joint.origin), tail=pose(joint.tail)))
        for link in mechanism.links
        for joint in [link.joint]
    ]
    loops = [
        replace(loop, predecessor=end(loop.predecessor), successor=end(loop.successor))
        for loop in mechanism.loops
    ]
    sizes = {name: 1.0 if mechanism.joint(name).turns else by for name in mechanism.home}
    home = {name: sizes[name] * value for name, value in mechanism.home.items()}
    return replace(mechanism, links=tuple(links), loops=tuple(loops), home=home)


def test_what_is_certain_does_not_depend_on_the_robots_size():
    """Of a platform on no leg, whose places are unknowns in metres."""
    mechanism, guards = rd.load(CONFIG / "rrr.yaml"), []
    for by in (1.0, 50.0):
        chain = ClosedChain(enlarged(mechanism, by), free_platform=True, backend="python")
        model, home = chain.model, chain.home.q_r
        scale = model.closure.column_scale[model.known :]
        assert set(map(bool, scale == 1.0)) == {True, False}
        guess = home[model.known :] + 0.02 * scale
        guards.append(float(model.closing(home[: model.known], guess)[0]))
    np.testing.assert_allclose(guards[1], guards[0], rtol=1e-6)


def test_a_prediction_that_is_off_by_more_than_a_share_of_the_way_is_not_certain(solved):
    model, home = solved
    k, scale, rng = model.known, model.closure.column_scale, np.random.default_rng(1)
    T = rates(model, home)
    for size in (1e-5, 1e-4):
        for way in size * ways(model, home, 3):
            off = rng.normal(size=len(home) - k)
            off *= size / np.linalg.norm(off)
            # T' way = T way + off
            turn = np.outer(scale[k:] * off, way) / np.dot(way, way)
            for share, certain in ((0.8, True), (1.3, False)):
                wrong = T + share * control_model.BEND * turn
                assert (called(model, home[:k] + way, home, wrong)[0] <= 1) == certain


def test_a_state_beyond_the_condition_limit_is_not_certain(robot):
    model, home = robot
    k = model.known
    for way in 0.2 * BOUND * ways(model, home, 3):
        q_r = newton(model, np.concatenate([home[:k] + way, home[k:]]))
        condition = np.linalg.cond(passive(model, q_r))
        for share, certain in ((0.99, False), (30.0, True)):
            strict = replace(model, condition_limit=share * condition)
            assert (called(strict, q_r[:k], q_r)[0] <= 1) == certain


def test_a_guess_is_certain_where_newtons_steps_shrink_from_a_bounded_first_one(solved):
    model, home = solved
    k, rng = model.known, np.random.default_rng(2)
    for size in np.geomspace(1e-5, 1.5, 16):
        d = rng.normal(size=len(home) - k)
        start = moved(model, home, size * d / np.linalg.norm(d))
        steps, q_r = [], start
        for _ in range(control_model.FAR_STEPS):
            steps.append(np.linalg.norm(increment(model, q_r)))
            q_r = moved(model, q_r, increment(model, q_r))

        def expected(count: int, bound: float, steps=steps) -> float:
            shares = (steps[0] / bound, steps[1] / (CONTRACTION * steps[0]),
                      steps[count - 1] / control_model.LAST_STEP)  # fmt: skip
            return pytest.approx(np.dot(shares, shares), rel=1e-4)

        assert model.close(start[:k], start[k:], 2, 0.2**2)[1] == expected(2, 0.2)
        guard, _, sign, *found = np.asarray(model.closing(start[:k], start[k:]), dtype=float)
        assert guard == expected(control_model.FAR_STEPS, control_model.FAR_BOUND)
        if guard <= 1:
            np.testing.assert_allclose(found, newton(model, q_r), atol=1e-12)
            assert sign == mode(model, np.array(found))


@pytest.mark.parametrize(("name", "sensed"), [("five_bar", False), ("rrr", True)])
def test_kernels_are_the_models_functions_whatever_gravity_and_friction_are(name, sensed):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    chain = ClosedChain(mechanism, sensed=sensed, backend="python")
    rng, home = np.random.default_rng(3), chain.home.q_r
    for gravity in (mechanism.gravity, np.array([1.0, -2.0, 3.0])):
        other = replace(mechanism, gravity=gravity)
        chain.update(other)
        kernels = chain._kernels
        model = ClosedChain(other, sensed=sensed, backend="python").model
        k = model.known
        q = home[:k] + 0.01 * ways(model, home, 1)[0]
        q_r = newton(model, np.concatenate([q, home[k:]]))
        states = {"q": q, "u": home[k:], "q_r": q_r}
        states |= {name: rng.normal(size=k) for name in ("qd", "qdd", "w")}
        states["qdd_a"] = states["qdd"][: model.geometry.actuated]
        states["memory"] = model.memory(home, rates(model, home), mode(model, home))
        for what in ("at_once", "closing", "torques", "gravity", "mass_matrix", "coriolis_matrix",
                     "coriolis_column", "motion", "on_motors", "generalised_forces",
                     *["sensed_accelerations"] * sensed):  # fmt: skip
            function = kernels.function(what)
            arguments = [states[each] for each in function.arguments]
            expected = np.asarray(getattr(model, what)(*arguments), dtype=float)
            found = kernels[what](*arguments)
            assert found.shape == function.shape
            np.testing.assert_allclose(found.ravel(), expected.ravel(), rtol=1e-9, atol=1e-9)


def of_geometry(model: ClosedModel) -> list[str]:
    sensed = ["disagreement", "sensed_accelerations"] if model.sensed else []
    return ["closing", "motors_closing", "motion", "on_motors", *sensed]


def test_kernels_of_geometry_need_neither_bodies_nor_gravity(robot):
    model, _ = robot
    bare = replace(model, parts=replace(model.parts, gravity_vector=None, body=None, legs=None))
    kernels = ModelKernels(model, "python", None)
    for name in of_geometry(model):
        function = kernels.function(name)
        assert function.parameters == 0
        states = [np.linspace(0.1, 0.2, size) for size in function.sizes]
        np.testing.assert_array_equal(
            np.ravel(getattr(bare, name)(*states)), np.ravel(getattr(model, name)(*states))
        )


@pytest.mark.parametrize(("name", "sensed"), [("five_bar", False), ("rrr", True)])
def test_kernels_of_geometry_are_built_once_for_all_bodies(name, sensed):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    law = Friction(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    links = tuple(
        replace(link, joint=replace(link.joint, friction=law)) if link.joint.moves else link
        for link in mechanism.links
    )
    first, *rest = mechanism.loops
    end = first.predecessor
    longer = replace(
        end, pose=Pose(end.pose.rotation, end.pose.translation + np.array([0.01, 0, 0]))
    )
    others = {
        "friction": replace(mechanism, links=links),
        "geometry": replace(mechanism, loops=(replace(first, predecessor=longer), *rest)),
    }
    models = {
        what: ClosedChain(each, sensed=sensed, backend="python").model
        for what, each in {"same": mechanism, **others}.items()
    }
    kernels = {what: ModelKernels(each, "python", None) for what, each in models.items()}
    for function in ("torques", *of_geometry(models["same"])):
        keys = {what: each.function(function).key() for what, each in kernels.items()}
        assert (keys["friction"] == keys["same"]) == (function != "torques")
        assert keys["geometry"] != keys["same"]


def test_the_quick_kernel_takes_single_states_and_leaves_the_rest_to_others(robot):
    model, home = robot
    kernels = ModelKernels(model, "python", None)
    k = model.known
    q, still = home[:k], np.zeros(k)
    memory = model.memory(home, rates(model, home), mode(model, home))
    expected = kernels.at_once(q, still, still, memory)
    np.testing.assert_array_equal(kernels.at_once(q.tolist(), still, still, memory), expected)
    for wrong in (q[1:], q[None], np.full(k, "x"), q + 0j):
        assert kernels.at_once(wrong, still, still, memory) is None


def test_a_batch_of_states_has_the_matrices_of_each_of_them():
    rng = np.random.default_rng(4)
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"), backend="python")
    q = chain.home.q_a + rng.uniform(-0.05, 0.05, (3, 3))
    qd = rng.normal(size=q.shape)
    many = chain.forward_kinematics(q, qd)
    for k in range(len(q)):
        one = chain.forward_kinematics(q[k], qd[k])
        for what in (
            "q_r",
            "J",
            "T",
            "T_q",
            "J_C",
            "J_R",
            "T_rate",
            "T_q_rate",
            "J_C_rate",
            "J_R_rate",
        ):
            np.testing.assert_allclose(getattr(many, what)[k], getattr(one, what), atol=1e-9)


@pytest.mark.parametrize("limit", [0.5, -3.0, np.nan, np.inf, 10**400, True, "1000", 1j])
def test_a_condition_limit_is_a_finite_number_of_at_least_one(limit):
    with pytest.raises(rd.RobotDynamicsError, match="condition_limit") as refused:
        ClosedChain(rd.load(CONFIG / "five_bar.yaml"), condition_limit=limit, backend="python")
    assert "\n" not in str(refused.value)


def test_a_row_that_cannot_be_closed_is_said_and_not_gone_on_from():
    chain = ClosedChain(rd.load(CONFIG / "five_bar.yaml"), backend="python")
    near, beyond = chain.home.q_a + 0.05, chain.home.q_a + np.array([-1.5, 1.5])
    with pytest.warns(rd.errors.ClosureWarning, match="1 of 2"):
        found = chain.forward_kinematics(np.array([near, beyond])).q_r
    assert np.isfinite(found).all(axis=1).tolist() == [True, False]
    np.testing.assert_allclose(chain.last.q_r, found[0], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_levers_in_a_box_are_no_longer_than_their_bound(seed, tmp_path):
    """However far joints turn within it: a lever grows with what is further out."""
    chain = closed_robots.ClosedChain(
        closed_robots.load(closed_robots.random_gough_stewart(seed), tmp_path)
    )
    curvature = Curvature(chain.solver.geometry)
    rng = np.random.default_rng(seed)
    q, n = chain.home.q_r, len(chain.home.q_r)
    spread = abs(chain.solver.geometry.spread)
    half = rng.uniform(0.0, 0.6, n)
    bound = curvature.longest(curvature.levers(q), spread @ half)
    turning = curvature._turns
    grown = 0.0
    for corner in rng.choice([-1.0, 1.0], (200, n)) * rng.uniform(0, 1, (200, 1)):
        levers = curvature.levers(q + corner * half)
        assert (levers <= bound + 1e-12)[turning].all()
        grown = max(grown, float((levers - curvature.levers(q))[turning].max()))
    assert grown > 0.02
