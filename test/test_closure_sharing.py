"""More motors than degrees of freedom share the work."""

from __future__ import annotations

import warnings

import closed_robots
import numpy as np
import pytest
from closed_robots import Oracle, load

import robot_dynamics as rd
from robot_dynamics.errors import ClosureWarning

EXTRA = ("qp0", "qc")


@pytest.fixture(params=[None, (20.0, 5.0, 8.0, 40.0, 3.0)], ids=["no limits", "limits"])
def robot(request):
    """A 3RRR with motors at two passive joints as well, and their effort limits."""
    made = closed_robots.random_rrr(3)
    made["actuated"] = [*made["actuated"], *EXTRA]
    made["sensed"] = []
    for name, effort in zip(made["actuated"], request.param or (), strict=False):
        for link in made["links"]:
            if link["joint"].get("name") == name:
                link["joint"]["limits"] = {"effort": effort}
    return made, request.param


def test_motors_share_the_work_of_the_motion_by_the_least_torques(robot, tmp_path):
    made, limits = robot
    with pytest.warns(ClosureWarning, match="5 motors on 3 degrees of freedom: q is that of") as w:
        dynamics = rd.InverseDynamics(load(made, tmp_path), backend="python")
    # it is said once: what is known is kept in the mechanism
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClosureWarning)
        coriolis = rd.InverseDynamics(dynamics.mechanism, terms="coriolis", backend="python")
    said = str(w[0].message)
    assert ("by their effort limits" in said) == (limits is not None)
    chain = dynamics.closed
    assert len(dynamics.joint_names) == 3
    assert dynamics.actuated_names == tuple(made["actuated"])
    weights = 1 / np.array(limits or [1.0] * 5)
    oracle = Oracle(made, chain.coordinate_names, 3)
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-0.1, 0.1, (3, 4, 3))
    q = q + chain.home.q_a
    together = dynamics(q, qd, qdd)
    for i in range(4):
        q_r = chain.forward(q[i]).q_r
        tau = dynamics(q[i], qd[i], qdd[i])
        assert together[i] == pytest.approx(tau, abs=1e-9)
        # all motors' rates, by Pinocchio's cut tree
        A = oracle.T(q_r)[[chain.coordinate_names.index(name) for name in made["actuated"]]]
        work = oracle.torques(q_r, qd[i], qdd[i])
        assert A.T @ tau == pytest.approx(work, abs=1e-8)
        # of all that do this work the least: lstsq gives it in τ / limit
        least = np.linalg.lstsq(A.T / weights, work, rcond=None)[0] / weights
        assert tau == pytest.approx(least, abs=1e-8)
        # the matrices are of all motors, too
        D, C = dynamics.mass_matrix(q[i]), dynamics.coriolis_matrix(q[i], qd[i])
        assert D.shape == C.shape == (5, 3)
        assert tau - dynamics(q[i], qd[i], 0 * qdd[i]) == pytest.approx(D @ qdd[i], abs=1e-9)
        assert coriolis(q[i], qd[i], qdd[i]) == pytest.approx(C @ qd[i], abs=1e-9)
        weight = dynamics(q[i], 0 * qd[i], 0 * qdd[i])
        assert dynamics.gravity(q[i]) == pytest.approx(weight, abs=1e-9)
        # torques that work against each other move nothing
        against = np.linalg.svd(A.T)[2][-1]
        assert dynamics.forward(q[i], qd[i], tau + 3 * against) == pytest.approx(qdd[i], abs=1e-7)
        Y = dynamics.regressor(q[i], qd[i], qdd[i])
        assert Y @ dynamics.parameters == pytest.approx(tau, abs=1e-8)
    push = rng.uniform(-1, 1, 6)
    with_push = dynamics(q[0], qd[0], qdd[0], wrenches={"platform": push})
    lowered = dynamics(q[0], qd[0], qdd[0]) - with_push
    assert chain.external_force(q[0], push) == pytest.approx(lowered, abs=1e-9)


def test_a_motor_too_many_is_still_refused_where_no_motors_are_named(tmp_path):
    made = closed_robots.random_rrr(3)
    del made["actuated"]
    made["sensed"] = []
    with pytest.raises(rd.DescriptionError, match="over-actuated"):
        rd.InverseDynamics(load(made, tmp_path))


def test_equations_in_symbols_are_of_as_many_motors_as_freedoms(tmp_path):
    made = closed_robots.random_rrr(3)
    made["actuated"] = [*made["actuated"], *EXTRA]
    made["sensed"] = []
    with pytest.warns(ClosureWarning), pytest.raises(rd.InputError, match="degrees of freedom, 3"):
        rd.derive(load(made, tmp_path))
