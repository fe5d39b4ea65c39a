# SPDX-License-Identifier: Apache-2.0
"""More motors than degrees of freedom share the work."""

from __future__ import annotations

import warnings

import closed_robots
import numpy as np
import pytest
import sympy
from closed_robots import Oracle, load
from robots import relative
from test_closure_forces import pushed, without_rotors_and_friction

import robot_dynamics as rd
from robot_dynamics.errors import ClosureWarning

EXTRA = ("qp0", "qc")
SLOPE = 1e-6
"""Relative: central differences of Pinocchio's torques, with steps of 1e-5"""


def redundant_rrr(limits: tuple[float, ...] = ()) -> dict:
    """A 3RRR with motors at two passive joints as well."""
    made = closed_robots.random_rrr(3)
    made["actuated"] = [*made["actuated"], *EXTRA]
    made["sensed"] = []
    return limited(made, limits)


def limited(made: dict, limits: tuple[float, ...]) -> dict:
    """With effort limits of the motors, in their order."""
    for name, effort in zip(made["actuated"], limits, strict=False):
        for link in made["links"]:
            if link["joint"].get("name") == name:
                link["joint"]["limits"] = {"effort": effort}
    return made


def redundant_five_bar() -> dict:
    """With rotors at its arms, and one more motor at an elbow."""
    made = closed_robots.random_five_bar(2)
    made["actuated"] = ["qp0", *made["actuated"]]
    made["sensed"] = []
    return made


LIMITS = (20.0, 5.0, 8.0, 40.0, 3.0)
ROBOTS = {
    # (the robot, what its warning says, torques that count alike)
    "five-bar": (redundant_five_bar(), "equal", np.ones(3)),
    "3RRR with limits": (redundant_rrr(LIMITS), "the motors' effort limits", np.array(LIMITS)),
    "crank and slide with limits": (
        limited(closed_robots.driven_slider(1), (4.0, 30.0)),
        "the motors' effort limits",
        np.array([4.0, 30.0]),
    ),
}


class Scene:
    """A robot, and what Pinocchio's cut tree says of it: of all torques that do the work the least,
    each measured by what counts alike."""

    def __init__(self, made: dict, said: str, alike: np.ndarray | None, folder):
        with pytest.warns(
            ClosureWarning, match=rf"least-norm distribution \(weights: {said}"
        ) as caught:
            self.dynamics = rd.InverseDynamics(load(made, folder), backend="python")
        self.said = str(caught[0].message)
        self.made, self.alike, self.chain = made, alike, self.dynamics.closed
        self.names, self.n = self.chain.coordinate_names, len(self.dynamics.joint_names)
        self.oracle = Oracle(made, self.names, self.n)
        self.motors = [self.names.index(name) for name in made["actuated"]]
        rng = np.random.default_rng(0)
        q, self.qd, self.qdd = rng.uniform(-1, 1, (3, self.n))
        self.q = self.chain.home.q_a + 0.05 * q

    def rates(self, q):
        """A (m, n): all motors' rates of those of q."""
        return self.oracle.T(self.chain.forward_kinematics(q).q_r)[self.motors]

    def least(self, A, work):
        return np.linalg.lstsq(A.T * self.alike, work, rcond=None)[0] * self.alike

    def torques(self, q, qd, qdd):
        return self.least(
            self.rates(q), self.oracle.torques(self.chain.forward_kinematics(q).q_r, qd, qdd)
        )


@pytest.fixture(params=ROBOTS)
def scene(request, tmp_path):
    return Scene(*ROBOTS[request.param], tmp_path)


def test_motors_share_the_work_of_the_motion_by_the_least_torques(scene):
    dynamics, chain, n, m = scene.dynamics, scene.chain, scene.n, len(scene.motors)
    assert f"{m} motors for {n} degree{'s' * (n != 1)} of freedom" in scene.said
    # it is said once: what is known is kept in the mechanism
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClosureWarning)
        moving = rd.InverseDynamics(
            dynamics.mechanism, terms=("inertia", "coriolis", "rotors"), backend="python"
        )
    assert dynamics.actuated_names == tuple(scene.made["actuated"])
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-0.1, 0.1, (3, 4, n))
    q = q + chain.home.q_a
    together = dynamics(q, qd, qdd)
    for i in range(4):
        tau, A = dynamics(q[i], qd[i], qdd[i]), scene.rates(q[i])
        assert together[i] == pytest.approx(tau, abs=1e-9)
        assert tau == pytest.approx(scene.torques(q[i], qd[i], qdd[i]), abs=1e-8)
        # the matrices are of all motors, too
        D, C = dynamics.mass_matrix(q[i]), dynamics.coriolis_matrix(q[i], qd[i])
        assert D.shape == C.shape == (m, n)
        assert tau - dynamics(q[i], qd[i], 0 * qdd[i]) == pytest.approx(D @ qdd[i], abs=1e-9)
        assert moving(q[i], qd[i], 0 * qdd[i]) == pytest.approx(C @ qd[i], abs=1e-9)
        weight = dynamics(q[i], 0 * qd[i], 0 * qdd[i])
        assert dynamics.gravity(q[i]) == pytest.approx(weight, abs=1e-9)
        # torques that work against each other move nothing
        against = np.linalg.svd(A.T)[2][-1]
        assert dynamics.forward(q[i], qd[i], tau + 3 * against) == pytest.approx(qdd[i], abs=1e-7)
        Y = dynamics.regressor(q[i], qd[i], qdd[i])
        assert Y @ dynamics.parameters == pytest.approx(tau, abs=1e-8)
    # rotors of joints that follow have both parts of their accelerations
    turning = rd.InverseDynamics(dynamics.mechanism, terms=("rotors", "gravity"), backend="python")
    Y, tau = (f(q[0], qd[0] + 1.0, qdd[0]) for f in (turning.regressor, turning))
    assert Y @ turning.parameters == pytest.approx(tau, abs=1e-9)


def test_slopes_are_those_of_the_least_torques(scene):
    """How the work is shared changes with q, too."""
    q, qd, qdd = scene.q, scene.qd, scene.qdd
    found = scene.dynamics.derivatives(q, qd, qdd)
    step = 1e-5
    for k, slopes in enumerate(found):
        assert slopes.shape == (len(scene.motors), scene.n)
        for j, unit in enumerate(np.eye(scene.n)):
            ends = []
            for sign in (1, -1):
                state = [q, qd, qdd]
                state[k] = state[k] + sign * step * unit
                ends.append(scene.torques(*state))
            assert relative(slopes[:, j], (ends[0] - ends[1]) / (2 * step)) < SLOPE
    many = scene.dynamics.derivatives(np.stack([q, q + 0.01]), qd, qdd)
    assert relative(np.stack(many)[:, 0], np.stack(found)) < 1e-9


def test_a_push_and_a_payload_are_shared_as_well(scene):
    dynamics, q, qd, qdd = scene.dynamics, scene.q, scene.qd, scene.qdd
    push = np.random.default_rng(1).uniform(-1, 1, 6)
    link = "rod" if "crank" in scene.names else "distal1"
    J = dynamics.jacobian(q, link)
    expected = dynamics(q, qd, qdd) - scene.least(scene.rates(q), J.T @ push)
    assert relative(dynamics(q, qd, qdd, wrenches={link: push}), expected) < 1e-9
    taken = dynamics(q, qd, qdd) - expected
    assert relative(dynamics.wrench_torques(q, {link: push}), taken) < 1e-9
    R = dynamics.pose(q, link)[:3, :3]
    own = np.concatenate([R.T @ push[:3], R.T @ push[3:]])
    many = dynamics.wrench_torques(np.stack([q, q]), {link: own}, axes="link")
    assert relative(many, np.stack([taken, taken])) < 1e-9
    if scene.chain.mechanism.platform is not None:
        lowered = dynamics(q, qd, qdd) - dynamics(q, qd, qdd, wrenches={"platform": push})
        assert scene.chain.external_force(q, push) == pytest.approx(lowered, abs=1e-9)
    # the weight of what a link carries is a force at its centre of mass
    bare = dynamics.gravity(q)
    dynamics.set_payload(link, rd.Inertial(mass=2.0))
    held = [*(-2.0 * dynamics.gravity_vector), 0, 0, 0]
    expected = bare + scene.least(scene.rates(q), J.T @ held)
    assert relative(dynamics.gravity(q), expected) < 1e-9


def test_the_base_may_move(scene):
    """Accelerated upwards it is heavier; how the work is shared stays the same."""
    dynamics, q, qd, qdd = scene.dynamics, scene.q, scene.qd, scene.qdd
    lift = rd.BaseMotion(linear_acceleration=(0.3, -0.2, 2.0))
    found = dynamics(q, qd, qdd, base_motion=lift)
    dynamics.gravity_vector = dynamics.gravity_vector - [0.3, -0.2, 2.0]
    assert relative(found, dynamics(q, qd, qdd)) < 1e-9


def test_the_loops_hold_what_the_motors_leave(tmp_path):
    """The cut tree, pushed at the cuts, needs the motors alone, those at passive joints too."""
    for made, said, alike in (ROBOTS["3RRR with limits"], ROBOTS["five-bar"]):
        scene = Scene(without_rotors_and_friction(made), said, alike, tmp_path)
        dynamics, state = scene.dynamics, (scene.q, scene.qd, scene.qdd)
        found = dynamics.constraint_forces(*state)
        wrenches = []
        for loop in made["loops"]:
            w, end = found.loops[loop["name"]], loop["successor"]
            place = dynamics.pose(scene.q, end["link"])
            point = place[:3, :3] @ np.array(end["xyz"]) + place[:3, 3]
            wrenches += [(end["link"], point, w), (loop["predecessor"]["link"], point, -w)]
        tau = pushed(
            scene.oracle, scene.chain.forward_kinematics(scene.q).q_r, *state[1:], wrenches
        )
        expected = np.zeros(len(tau))
        expected[scene.motors] = dynamics(*state)
        assert relative(tau, expected) < 1e-9


def test_with_sensors_it_is_the_same_at_states_that_fit_together(tmp_path):
    made, said, alike = ROBOTS["3RRR with limits"]
    scene = Scene({**made, "sensed": ["qp1", "qp2"]}, said, alike, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClosureWarning)
        sensed = rd.InverseDynamics(scene.chain.mechanism, sensed=True, backend="python")
    assert sensed.actuated_names == scene.dynamics.actuated_names
    assert sensed.joint_names == (*scene.dynamics.joint_names, "qp1", "qp2")
    state = scene.chain.forward_kinematics(scene.q, scene.qd)
    given = state.q_r[:5], state.qd_r[:5], state.accelerations(scene.qdd)[:5]
    expected = scene.torques(scene.q, scene.qd, scene.qdd)
    assert relative(sensed(*given), expected) < 1e-8
    assert sensed.mass_matrix(given[0]).shape == (5, 5)
    Y = sensed.regressor(*given)
    assert relative(Y @ sensed.parameters, expected) < 1e-8


@pytest.mark.parametrize("name", ["five-bar", "crank and slide with limits", "3RRR with limits"])
def test_equations_in_symbols_share_the_work_as_well(name, tmp_path):
    scene = Scene(*ROBOTS[name], tmp_path)
    model = rd.derive(scene.chain.mechanism, "newton_euler")
    assert model.joint_names == scene.dynamics.joint_names
    assert model.actuated_names == tuple(scene.made["actuated"])
    state = scene.chain.forward_kinematics(scene.q)
    joints = dict(zip(scene.chain.coordinate_names, state.q_r, strict=True))
    given = [joints[name] for name in model.coordinate_names]
    given += model.place(state.platform_pose) if model.x else []
    symbols = (*model.q, *model.x, *model.qd[: len(scene.qd)], *model.qdd)
    values = dict(zip(symbols, (*given, *scene.qd, *scene.qdd), strict=True))
    values |= model.parameters
    for symbol, expression in model.intermediates:
        values[symbol] = float(expression.xreplace(values))
    found = {
        name: np.array(getattr(model, name).xreplace(values), dtype=float)
        for name in ("S", "torques", "D", "C", "g")
    }
    tau = scene.torques(scene.q, scene.qd, scene.qdd)
    assert relative(found["torques"][:, 0], tau) < 1e-9
    assert relative(found["D"], scene.dynamics.mass_matrix(scene.q)) < 1e-9
    assert relative(found["C"], scene.dynamics.coriolis_matrix(scene.q, scene.qd)) < 1e-9
    assert relative(found["g"][:, 0], scene.dynamics.gravity(scene.q)) < 1e-9
    A = scene.rates(scene.q)
    shares = np.column_stack([scene.least(A, unit) for unit in np.eye(scene.n)])
    assert relative(found["S"], shares) < 1e-9
    assert all(name in model.text() for name in scene.made["actuated"])
    assert isinstance(model.S, sympy.Matrix)


def test_a_force_counts_by_the_robots_arms_where_limits_say_nothing(tmp_path):
    """Whatever unit lengths have: a robot twice as large shares its work in the same way."""
    found = {}
    for size in (1.0, 2.0):
        made = closed_robots.driven_slider(1)
        for place in (*made["links"], *(x[e] for x in made["loops"] for e in x if "cessor" in e)):
            for key in ("a", "d"):
                place[key] = size * place.get(key, 0.0)
            for frame in (place, place.get("origin", {})):
                if "xyz" in frame:
                    frame["xyz"] = (size * np.array(frame["xyz"])).tolist()
        made["home"]["slide"] *= size
        for place in made["loops"]:
            for end in ("predecessor", "successor"):
                for key in ("a", "d"):
                    del place[end][key]
        scene = Scene(made, "equal", None, tmp_path)
        assert "1 N counts as" in scene.said
        lever = float(scene.said.split("1 N counts as ")[1].split(" N·m")[0])
        assert lever * scene.chain.mechanism.shares["slide"] == pytest.approx(1.0, rel=1e-2)
        assert 0.1 * size < lever < 0.6 * size
        A = scene.rates(scene.chain.home.q_a)
        S = np.asarray(scene.chain.model.S(scene.chain.home.q_r), dtype=float)
        assert relative(A.T @ S, np.eye(1)) < 1e-12
        crank, slide = (scene.dynamics.actuated_names.index(x) for x in ("crank", "slide"))
        found[size] = S[crank, 0], S[slide, 0]
        # a share of power, which has no unit of length
        found[size] = S[crank, 0] * A[crank, 0] / (S[slide, 0] * A[slide, 0])
    assert found[1.0] == pytest.approx(found[2.0], rel=1e-9)
    # a limit that is none says nothing either
    made = limited(closed_robots.driven_slider(1), (0.0, 30.0))
    assert "not every motor has an effort limit" in Scene(made, "equal", None, tmp_path).said


def test_a_motor_too_many_is_still_refused_where_no_motors_are_named(tmp_path):
    made = closed_robots.random_rrr(3)
    del made["actuated"]
    made["sensed"] = []
    with pytest.raises(rd.DescriptionError, match="over-actuated"):
        rd.InverseDynamics(load(made, tmp_path))
