# SPDX-License-Identifier: Apache-2.0
"""What holds a closed robot together: the multipliers of (36) and (38), against Pinocchio."""

from __future__ import annotations

import closed_robots
import numpy as np
import pytest
import robots
from closed_robots import Oracle
from robots import CONFIG, pin, relative
from test_closure_dynamics import motion

import robot_dynamics as rd
from robot_dynamics.errors import InputError

SAME = 1e-9
"""Relative: solved forces, of two long ways"""
ROBOTS = {
    "3RRR": lambda: closed_robots.random_rrr(1, 2),
    "five-bar": lambda: closed_robots.random_five_bar(2),
    "Gough-Stewart": lambda: closed_robots.random_gough_stewart(1),
    "slider-crank": lambda: closed_robots.slider_crank(1),
    "delta": lambda: closed_robots.shipped("delta"),
}


def without_rotors_and_friction(robot: dict) -> dict:
    links = [{k: v for k, v in x.items() if k not in ("rotor", "friction")} for x in robot["links"]]
    return {**robot, "links": links}


@pytest.fixture(params=ROBOTS)
def scene(request, tmp_path):
    """(robot, dynamics, oracle, q, q̇, q̈)"""
    robot = without_rotors_and_friction(ROBOTS[request.param]())
    dynamics = rd.InverseDynamics(closed_robots.load(robot, tmp_path), backend="python")
    names = dynamics.closed.coordinate_names
    oracle = Oracle(robot, names, len(dynamics.actuated_names))
    return robot, dynamics, oracle, *motion(dynamics.closed)


def pushed(oracle, q_r, qd, qdd, wrenches):
    """Torques (n,) of the cut tree at a closed state, with wrenches at frames [(link, point, w)] on
    base axes: Pinocchio's rnea with external forces."""
    model = oracle.bare
    data = model.createData()
    rates = oracle.T(q_r) @ qd
    q, v, a = (oracle._full(x) for x in (q_r, rates, oracle.accelerations(q_r, qd, qdd)))
    pin.forwardKinematics(model, data, q)
    outside = [pin.Force.Zero() for _ in range(model.njoints)]
    for link, point, w in wrenches:
        joint = model.frames[model.getFrameId(link)].parentJoint if link != "base" else 0
        # the moment about the world's origin, then into the joint's frame
        force = pin.Force(w[:3], w[3:] + np.cross(point, w[:3]))
        outside[joint] += data.oMi[joint].actInv(force)
    fext = pin.StdVec_Force()
    fext.extend(outside)
    return pin.rnea(model, data, q, v, a, fext)[oracle.column]


def test_the_forces_in_the_loops_leave_nothing_for_the_passive_joints(scene):
    """The cut tree, pushed by them at the cuts, needs the motors alone."""
    robot, dynamics, oracle, q, qd, qdd = scene
    state = dynamics.closed.forward_kinematics(q, qd)
    found = dynamics.constraint_forces(q, qd, qdd)
    wrenches = []
    for loop in robot["loops"]:
        w, end = found.loops[loop["name"]], loop["successor"]
        T = dynamics.pose(q, end["link"])
        point = T[:3, :3] @ np.array(end.get("xyz", [0, 0, 0]), dtype=float) + T[:3, 3]
        wrenches += [(end["link"], point, w), (loop["predecessor"]["link"], point, -w)]
    assert max(np.abs(w).max() for *_, w in wrenches) > 1.0
    tau = pushed(oracle, state.q_r, qd, qdd, wrenches)
    a, size = len(q), np.abs(tau).max()
    assert np.abs(tau[a:]).max() < SAME * max(size, 1.0)
    assert relative(tau[:a], dynamics(q, qd, qdd)) < SAME


def test_the_platform_is_moved_by_its_legs_and_its_surroundings(scene):
    """Newton and Euler for the platform alone: -f_c + Q_x, which all of its joints share."""
    robot, dynamics, oracle, q, qd, qdd = scene
    closed = dynamics.closed
    free = dynamics.constraint_forces(q, qd, qdd)
    if free.platform is None:
        pytest.skip("it has no platform between legs")
    push = np.array([3.0, -2.0, 1.0, 0.3, 0.1, -0.2])
    found = dynamics.constraint_forces(q, qd, qdd, wrenches={"platform": push})
    assert found.platform - free.platform == pytest.approx(push, abs=1e-9)
    # Σ of what the legs exert, about P
    P = closed.forward_kinematics(q).platform_pose[:3, 3]
    data = oracle.bare.createData()
    q_r = closed.forward_kinematics(q).q_r
    total = np.zeros(6)
    for loop in (*robot["loops"], None):
        if loop is None:  # the joint that it hangs on
            others = [x["name"] for x in robot["loops"]]
            name = next(name for name in found.loops if name not in others)
            joint = oracle.bare.getJointId(name)
            pin.forwardKinematics(oracle.bare, data, oracle._full(q_r))
            point, sign = data.oMi[joint].translation, 1.0
        else:
            name = loop["name"]
            end = "successor" if loop["successor"]["link"] == "platform" else "predecessor"
            T = dynamics.pose(q, "platform")
            at = np.array(loop[end].get("xyz", [0, 0, 0]), dtype=float)
            point, sign = T[:3, :3] @ at + T[:3, 3], 1.0 if end == "successor" else -1.0
        w = sign * found.loops[name]
        total += [*w[:3], *(w[3:] + np.cross(point - P, w[:3]))]
    # what no coordinate sees is held by rows that are redundant in a plane
    J_C = closed.forward_kinematics(q).J_C
    assert relative(J_C.T @ total, J_C.T @ -found.platform) < SAME


def test_a_batch_is_its_states_and_payloads_count(scene):
    _, dynamics, _, q, qd, qdd = scene
    many = q + np.linspace(0, 0.02, 3)[:, None]
    batch = dynamics.constraint_forces(many, qd, qdd)
    for i in range(3):
        one = dynamics.constraint_forces(many[i], qd, qdd)
        assert relative(batch.multipliers[i], one.multipliers) < SAME
        for name, wrench in one.loops.items():
            assert relative(batch.loops[name][i], wrench) < SAME
    assert len(batch.rows) == batch.multipliers.shape[-1]
    before = dynamics.constraint_forces(q, qd, qdd).multipliers
    dynamics.gravity_vector = 2.0 * dynamics.gravity_vector
    assert relative(dynamics.constraint_forces(q, qd, qdd).multipliers, before) > 0.01


def test_with_sensors_they_are_those_of_the_same_state():
    mechanism = rd.load(CONFIG / "rrr.yaml")
    active = rd.InverseDynamics(mechanism, backend="python")
    sensed = rd.InverseDynamics(mechanism, sensed=True, backend="python")
    q, qd, qdd = motion(active.closed)
    state = active.closed.forward_kinematics(q, qd)
    given = state.q_r[:6], state.qd_r[:6], state.accelerations(qdd)[:6]
    push = {"platform": [1.0, 2.0, 0, 0, 0, 0.5], "distal2": [3.0, 0, 0, 0, 0, 0]}
    one, other = (
        active.constraint_forces(q, qd, qdd, wrenches=push),
        sensed.constraint_forces(*given, wrenches=push),
    )
    assert relative(other.platform, one.platform) < SAME
    assert relative(other.multipliers, one.multipliers) < SAME
    assert one.loops.keys() == other.loops.keys() == {"qc1", "C2", "C3"}


def test_a_robot_without_loops_has_none():
    with pytest.raises(InputError, match="constraint_forces"):
        rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), backend="python").constraint_forces(
            [0, 0.1], [0, 0], [0, 0]
        )


@pytest.mark.parametrize("name", ["rrr", "delta"])
def test_a_loop_drawn_the_other_way_has_the_opposite_force(name, tmp_path):
    """Predecessor and successor change places: what the one exerts on the other changes sign."""
    robot = closed_robots.shipped(name)
    turned = closed_robots.shipped(name)
    loop = turned["loops"][0]
    loop["predecessor"], loop["successor"] = loop["successor"], loop["predecessor"]
    if loop["type"] == "universal":
        # about the predecessor's x and the successor's y: frames that see them the other way
        for side in ("predecessor", "successor"):
            R = robots.placement({"rpy": loop[side].get("rpy", [0, 0, 0])}).rotation
            flip = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
            loop[side]["rpy"] = pin.rpy.matrixToRpy(R @ flip).tolist()
    one, other = (
        rd.InverseDynamics(closed_robots.load(each, tmp_path), backend="python")
        for each in (robot, turned)
    )
    q, qd, qdd = motion(one.closed)
    found, swapped = (each.constraint_forces(q, qd, qdd) for each in (one, other))
    assert relative(other(q, qd, qdd), one(q, qd, qdd)) < SAME
    for each in found.loops:
        sign = -1.0 if each == loop["name"] else 1.0
        assert max(abs(found.loops[each])) > 0.1
        assert relative(sign * swapped.loops[each], found.loops[each]) < 1e-8
