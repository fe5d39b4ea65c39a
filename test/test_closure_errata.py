# SPDX-License-Identifier: Apache-2.0
"""The misprints in the paper on parallel robots, shown by computing with them."""

from __future__ import annotations

import closed_robots
import numpy as np
import pytest
from closed_robots import ClosedChain, Oracle
from robots import CONFIG, relative
from test_closure_dynamics import motion

import robot_dynamics as rd
from robot_dynamics.closure.dynamics import platform

BY_FAR = 0.05
"""Relative: a wrong sign is nothing that rounding explains"""


@pytest.fixture(scope="module")
def rrr():
    """(chain, oracle) of the 3RRR without friction and rotors: it has none"""
    robot = closed_robots.shipped("rrr")
    chain = ClosedChain(rd.load(CONFIG / "rrr.yaml"))
    return chain, Oracle(robot, chain.coordinate_names, 3)


def corners(chain, q_r):
    """OA_i (3, 2), the legs' reach A_i C_i (3, 2) and d_i (cos, sin)(θ_z + φ_i) (3, 2)"""
    q = dict(zip(chain.coordinate_names, q_r, strict=True))
    A = np.array(
        [
            link.joint.origin.translation[:2]
            for link in chain.mechanism.links
            if link.parent == "base"
        ]
    )
    angles = np.array([[q[f"qa{i}"], q[f"qa{i}"] + q[f"qp{i}"]] for i in (1, 2, 3)])
    reach = 0.2 * (np.exp(1j * angles)).sum(axis=1)
    reach = np.column_stack([reach.real, reach.imag])
    P = chain.solver.state(q_r).platform_pose[:2, 3]
    return A, reach, P - A - reach


def printed_closure_slopes(A, to_platform):
    """J_x (3, 3) of (22): Γ_i = |OP - A_iC_i - C_iP|² - |OA_i|², at closed poses."""
    # the vector in the brackets is OA_i; d/dθ of -d (cos, sin) is d (sin, -cos)
    turned = np.column_stack([to_platform[:, 1], -to_platform[:, 0]])
    return 2 * np.column_stack([A, np.sum(A * turned, axis=1)])


def vector_closure_slopes(to_platform):
    """J_x (6, 3) of (19)."""
    turned = np.column_stack([to_platform[:, 1], -to_platform[:, 0]])
    rows = [[[1, 0, t[0]], [0, 1, t[1]]] for t in turned]
    return np.reshape(rows, (6, 3))


def test_printed_closure_22_is_singular_at_the_symmetric_home_pose(rrr):
    chain, _ = rrr
    A, _, to_platform = corners(chain, chain.home.q_r)
    printed = np.linalg.svd(printed_closure_slopes(A, to_platform), compute_uv=False)
    assert printed[-1] < 1e-12 * printed[0]
    vector = np.linalg.svd(vector_closure_slopes(to_platform), compute_uv=False)
    assert vector[-1] > 0.05 * vector[0]
    # away from it both are regular
    away = chain.forward_kinematics(chain.home.q_a + np.array([0.3, -0.1, 0.2]))
    A, _, to_platform = corners(chain, away.q_r)
    printed = np.linalg.svd(printed_closure_slopes(A, to_platform), compute_uv=False)
    assert printed[-1] > 0.01 * printed[0]


def printed_closure(P, theta, O, A, reach, from_platform):
    """Γ (3,) of (22) and (19)'s rows (3, 2), with the platform at P, turned by theta from where
    C_iP is `from_platform`, the legs where they are, and O the origin."""
    c, s = np.cos(theta), np.sin(theta)
    turned = from_platform @ np.array([[c, s], [-s, c]])
    bracket = P - O - reach - turned
    return np.sum(bracket**2, axis=1) - np.sum((A - O) ** 2, axis=1), bracket - (A - O)


def test_printed_closure_22_is_singular_everywhere_where_an_A_is_the_origin(rrr):
    """Its row's slopes by the platform's x, y, θ vanish there; those of (19) do not."""
    chain, _ = rrr
    for seed in range(5):
        q = chain.home.q_a + np.random.default_rng(seed).uniform(-0.15, 0.15, 3)
        state = chain.forward_kinematics(q)
        A, reach, to_platform = corners(chain, state.q_r)
        P, step = state.platform_pose[:2, 3], 1e-6
        for i in range(3):
            slopes = []
            for move in np.eye(3):
                ends = [
                    printed_closure(
                        P + s * step * move[:2], s * step * move[2], A[i], A, reach, to_platform
                    )
                    for s in (1, -1)
                ]
                slopes.append([(a - b) / (2 * step) for a, b in zip(*ends, strict=True)])
            distances = np.array([slope[0] for slope in slopes]).T
            vectors = np.array([slope[1] for slope in slopes])
            assert np.abs(distances[i]).max() < 1e-9
            others = [j for j in range(3) if j != i]
            assert np.abs(distances[others]).max(axis=1).min() > 0.1
            assert np.abs(vectors[:, i]).max() > 0.1
            # and the slopes by hand are these
            assert distances == pytest.approx(
                printed_closure_slopes(A - A[i], to_platform), abs=1e-8
            )


@pytest.mark.parametrize("seed", range(3))
def test_the_platforms_terms_add_to_those_of_the_legs(seed, tmp_path):
    """(17) has them with a minus, (39) and (40) with a plus."""
    robot = closed_robots.random_rrr(seed)
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    oracle = Oracle(robot, chain.coordinate_names, 3)
    q, qd, qdd = motion(chain)
    state = chain.forward_kinematics(q, qd)
    parts = chain.subsystems
    qdd_r = state.T @ qdd + state.T_rate @ qd
    R = state.platform_pose[:3, :3]
    a = state.J_C @ qdd_r + state.J_C_rate @ state.qd_r
    wrench = platform.motion_wrench(parts.body, R, state.v[3:], a)
    wrench = wrench + platform.gravity_wrench(parts.body, R, chain.mechanism.gravity)
    both = parts.rigid(state.q_r, state.qd_r, qdd_r) + parts.gravity(state.q_r)
    legs = both - state.J_C.T @ wrench
    friction = parts.friction(state.q_r, state.qd_r)
    expected = oracle.torques(state.q_r, qd, qdd)
    added = state.T.T @ (legs + friction + state.J_C.T @ wrench)
    subtracted = state.T.T @ (legs + friction - state.J_C.T @ wrench)
    assert relative(added, expected) < 1e-10
    assert relative(subtracted, expected) > BY_FAR


def test_a_platform_matrix_form_is_its_newton_euler_form(tmp_path):
    """D_x a + C_x v is the wrench, and C_x is skew beside dD_x/dt."""
    robot = closed_robots.random_gough_stewart(2)
    chain = ClosedChain(closed_robots.load(robot, tmp_path))
    body, rng = chain.subsystems.body, np.random.default_rng(0)
    R = chain.home.platform_pose[:3, :3]
    v, a = rng.uniform(-1, 1, (2, 6))
    D, C = platform.inertia_matrix(body, R), platform.coriolis_matrix(body, R, v[3:])
    assert relative(D @ a + C @ v, platform.motion_wrench(body, R, v[3:], a)) < 1e-12
    step = 1e-6
    turns = [closed_robots.pin.exp3(s * step * v[3:]) @ R for s in (1, -1)]
    D_rate = (platform.inertia_matrix(body, turns[0]) - platform.inertia_matrix(body, turns[1])) / (
        2 * step
    )
    skew = D_rate - 2 * C
    assert np.abs(skew + skew.T).max() < 1e-8


def test_the_load_has_weight(rrr):
    """(32) leaves m_c g out of the potential energy."""
    chain, oracle = rrr
    q = chain.home.q_a + np.array([0.2, 0.1, -0.1])
    state = chain.forward_kinematics(q)
    expected = oracle.torques(state.q_r, np.zeros(3), np.zeros(3))
    assert relative(chain.gravity(q), expected) < 1e-10
    printed = expected - state.J_R.T @ [0.0, 0.5 * 9.81, 0, 0, 0, 0]
    assert relative(printed, expected) > BY_FAR
