# SPDX-License-Identifier: Apache-2.0
"""`rd.functions` for robots with loops computes the same as our own kernels, including
derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from closed_robots import load, palletiser, random_gough_stewart
from robots import CONFIG
from test_libraries import Over, close

import robot_dynamics as rd
from robot_dynamics.mechanism import Friction
from robot_dynamics.mechanism.transform import with_joints

SMALL_SECOND = 1e-6
"""Of the largest entry: second derivatives beside differences of our first ones"""
ARM, CRANK = 1.3, 2.8
UPRIGHT = {
    "arm": ARM,
    "crank": CRANK,
    "rod_foot": ARM - CRANK,
    "elbow": CRANK + np.pi - ARM,
    "level_foot": ARM,
    "triangle_pivot": -ARM,
    "upper_foot": CRANK + np.pi,
    "wrist": -CRANK - np.pi,
}
"""Rods along what they go with: no parallelogram is crossed"""


def described(name: str, folder) -> rd.Mechanism:
    if name == "palletiser":
        path = folder / "palletiser.yaml"
        path.write_text(yaml.safe_dump(palletiser(UPRIGHT)))
        return rd.load(path)
    if name == "universal":
        return load(random_gough_stewart(0, universal=True), folder)
    return rd.load(CONFIG / f"{name}.yaml")


class Robot:
    """Our own kernels, the functions, and a state not far from home."""

    def __init__(self, name: str, library: str, folder, **options: Any):
        self.over = Over(library)
        self.mechanism = described(name, folder)
        self.ours = rd.InverseDynamics(self.mechanism, **options)
        self.theirs = rd.functions(self.mechanism, library, **options)
        closed = self.ours.closed
        k = len(self.ours.joint_names)
        rng = np.random.default_rng(4)
        home = closed.home.q_r[:k]
        self.q = home + rng.uniform(-0.2, 0.2, k) * closed.solver.scale[:k]
        self.qd, self.qdd = rng.uniform(-1, 1, (2, k))
        self.tau = self.ours(self.q, self.qd, self.qdd)

    @property
    def state(self):
        return self.q, self.qd, self.qdd

    def call(self, function: Any, *vectors: Any) -> Any:
        return self.over.call(function, *vectors)


@pytest.mark.parametrize("name", ["five_bar", "rrr", "palletiser", "gough_stewart"])
def test_casadi_has_every_function_of_robots_with_loops(name, tmp_path):
    robot = Robot(name, "casadi", tmp_path)
    ours, theirs, call, (q, qd, qdd) = robot.ours, robot.theirs, robot.call, robot.state
    assert theirs.joint_names == ours.joint_names
    assert theirs.actuated_names == ours.actuated_names
    assert theirs.parameter_names == tuple(ours.parameter_names)
    close(call(theirs.torques, q, qd, qdd), robot.tau)
    close(call(theirs.mass_matrix, q), ours.mass_matrix(q))
    close(call(theirs.gravity, q), ours.gravity(q))
    close(call(theirs.forward, q, qd, robot.tau), qdd)
    if name == "gough_stewart":  # the rest takes a minute there
        return
    close(call(theirs.coriolis_matrix, q, qd), ours.coriolis_matrix(q, qd))
    kinetic, potential = call(theirs.energies, q, qd)
    close(kinetic, ours.kinetic_energy(q, qd))
    close(potential, ours.potential_energy(q))
    link = robot.mechanism.links[-1].name
    close(call(theirs.pose(link), q), ours.pose(q, link))
    close(call(theirs.jacobian(link), q), ours.jacobian(q, link))
    close(call(theirs.regressor, q, qd, qdd), ours.regressor(q, qd, qdd))
    found = call(theirs.derivatives, q, qd, qdd)
    for each, expected in zip(found, ours.derivatives(q, qd, qdd), strict=True):
        close(each, expected)


def test_derivatives_of_robots_with_loops_take_dry_friction_as_developed_too(tmp_path):
    law = Friction(0.1, 0.5, presliding=0.01)
    five_bar = with_joints(
        rd.load(CONFIG / "five_bar.yaml"), lambda j: replace(j, friction=law) if j.moves else j
    )
    ours = rd.InverseDynamics(five_bar, backend="python")
    q, qd, qdd = ours.home, np.array([0.05, -0.03]), np.array([1.0, -1.0])
    found = rd.functions(five_bar, "casadi").derivatives(q, qd, qdd)
    for each, expected in zip(found, ours.derivatives(q, qd, qdd), strict=True):
        close(np.asarray(each), expected)


@pytest.mark.parametrize("name", ["five_bar", "rrr", "palletiser"])
def test_casadi_differentiates_through_the_closure_twice(name, tmp_path):
    robot = Robot(name, "casadi", tmp_path)
    casadi, k = robot.over.module, len(robot.q)
    x = casadi.MX.sym("x", k)
    tau = robot.theirs.torques(x, robot.qd, robot.qdd)
    first = casadi.jacobian(tau, x)
    close(np.asarray(casadi.Function("first", [x], [first])(robot.q)),
          robot.ours.derivatives(*robot.state)[0])  # fmt: skip
    second = casadi.Function("second", [x], [casadi.jacobian(first, x)])(robot.q)
    step = 1e-5
    rows = [
        (robot.ours.derivatives(robot.q + step * unit, robot.qd, robot.qdd)[0]
         - robot.ours.derivatives(robot.q - step * unit, robot.qd, robot.qdd)[0]) / (2 * step)
        for unit in np.eye(k)
    ]  # fmt: skip
    # entry (i, j) of the first is the second's row i + j m
    expected = np.stack(rows, axis=-1).transpose(1, 0, 2).reshape(-1, k)
    off = np.asarray(second) - expected
    assert abs(off).max() < SMALL_SECOND * abs(expected).max()


def test_jax_closes_loops_over_batches_and_differentiates(tmp_path):
    robot = Robot("five_bar", "jax", tmp_path)
    ours, theirs, (q, qd, qdd) = robot.ours, robot.theirs, robot.state
    jax = robot.over.module
    many = q + np.linspace(-0.05, 0.05, 3)[:, None]
    found = jax.jit(theirs.torques)(*(robot.over.of(x) for x in (many, qd, qdd)))
    close(np.asarray(found), ours(many, np.stack([qd] * 3), np.stack([qdd] * 3)))
    expected = ours.derivatives(*robot.state)[0]
    for slope in (jax.jacfwd, jax.jacrev):
        found = jax.jit(slope(theirs.torques))(*(robot.over.of(x) for x in robot.state))
        close(np.asarray(found), expected)


@pytest.mark.parametrize("name", ["five_bar", "rrr"])
def test_torch_closes_loops_over_batches_and_differentiates(name, tmp_path):
    robot = Robot(name, "torch", tmp_path)
    ours, theirs, (q, qd, qdd) = robot.ours, robot.theirs, robot.state
    torch = robot.over.module
    many = q + np.linspace(-0.05, 0.05, 3)[:, None]
    found = theirs.torques(*(robot.over.of(x) for x in (many, qd, qdd)))
    close(np.asarray(found), ours(many, np.stack([qd] * 3), np.stack([qdd] * 3)))
    slope = torch.func.jacrev(theirs.torques)(*(robot.over.of(x) for x in robot.state))
    close(np.asarray(slope), ours.derivatives(*robot.state)[0])


def test_torch_differentiates_twice_and_knows_what_is_not_certain(tmp_path):
    robot = Robot("five_bar", "torch", tmp_path)
    torch, (q, qd, qdd) = robot.over.module, robot.state
    state = [robot.over.of(x) for x in robot.state]
    second = torch.func.jacrev(torch.func.jacrev(robot.theirs.torques))(*state)
    step = 1e-5
    rows = [
        (
            robot.ours.derivatives(q + step * unit, qd, qdd)[0]
            - robot.ours.derivatives(q - step * unit, qd, qdd)[0]
        )
        / (2 * step)
        for unit in np.eye(2)
    ]
    expected = np.stack(rows, axis=-1)
    assert abs(second.numpy() - expected).max() < SMALL_SECOND * abs(expected).max()
    # of a batch that row alone
    short = rd.functions(robot.mechanism, "torch", strides=1)
    home = robot.ours.closed.home.q_r[:2]
    found = short.torques(robot.over.of(np.stack([home, q])), *state[1:])
    assert torch.isfinite(found[0]).all()
    assert torch.isnan(found[1]).all()


def test_newtons_step_is_the_implicit_function_to_first_order():
    """Of a robot whose lengths and angles are scaled."""
    closed = rd.InverseDynamics(rd.load(CONFIG / "gough_stewart.yaml"), backend="python").closed
    q_r, k, way = closed.home.q_r, len(closed.joint_names), 1e-5 * np.arange(1, 7)
    assert (closed.solver.scale != 1).any()
    found = closed.model.improved(q_r[:k] + way, q_r[k:])
    expected = closed.forward_kinematics(q_r[:k] + way).q_r[k:]
    assert abs(expected - q_r[k:]).max() > 1e-5
    assert abs(found.astype(float) - expected).max() < 1e-7


def test_joints_that_turn_for_ever_are_followed_the_short_way(tmp_path):
    text = (CONFIG / "five_bar.yaml").read_text().replace("revolute", "continuous")
    text = text.replace("type: continuous\n    predecessor", "type: revolute\n    predecessor")
    document = yaml.safe_load(text)
    for loop in document["loops"]:
        loop["type"] = "revolute"
    path = tmp_path / "turning.yaml"
    path.write_text(yaml.safe_dump(document))
    mechanism = rd.load(path)
    over = Over("casadi")
    ours, theirs = rd.InverseDynamics(mechanism), rd.functions(mechanism, "casadi")
    assert ours.closed.solver.wraps[:2].all()
    q = ours.closed.home.q_r[:2] + np.array([0.2, -0.1])
    qd, qdd = np.array([[0.3, -0.5], [1.0, 2.0]])
    expected = ours(q, qd, qdd)
    for turns in ([0, 0], [1, 0], [-3, 2]):
        close(over.call(theirs.torques, q + 2 * np.pi * np.array(turns), qd, qdd), expected)


def test_what_is_out_of_reach_or_not_certain_is_nan(tmp_path):
    robot = Robot("five_bar", "casadi", tmp_path)
    robot.ours.closed.reset()
    far = robot.ours.closed.home.q_r[:2] + np.array([1.2, -1.2])
    with pytest.raises(rd.ClosureError):
        robot.ours(far, robot.qd, robot.qdd)
    assert np.isnan(robot.call(robot.theirs.torques, far, robot.qd, robot.qdd)).all()
    # strides of more than 0.1 rad are not certain
    short = rd.functions(robot.mechanism, "casadi", strides=1)
    assert np.isnan(robot.call(short.torques, *robot.state)).all()
    assert np.isnan(robot.call(robot.theirs.torques, [np.nan, 0.0], *robot.state[1:])).all()


def test_options_reach_robots_with_loops(tmp_path):
    options = {
        "formulation": "gibbs_appell",
        "terms": ("inertia", "coriolis", "friction"),
        "friction_smoothing": 0.2,
    }
    robot = Robot("five_bar", "casadi", tmp_path, **options)
    close(robot.call(robot.theirs.torques, *robot.state), robot.tau)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"arguments": "gravity"}, "gravity"),
        ({"strides": 0}, "strides"),
        ({"strides": 2.5}, "2.5"),
        ({"strides": True}, "True"),
    ],
)
def test_what_loops_do_not_have_is_refused(options, said):
    pytest.importorskip("casadi", reason="casadi is not installed")
    with pytest.raises(rd.InputError, match=said):
        rd.functions(rd.load(CONFIG / "five_bar.yaml"), "casadi", **options)
