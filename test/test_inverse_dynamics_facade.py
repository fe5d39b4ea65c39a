# SPDX-License-Identifier: Apache-2.0
"""The façade: what may change while it runs, and what the compiled form must not change."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import (
    CONFIG,
    RELATIVE_TO_PINOCCHIO,
    RELATIVE_TO_SISTERS,
    inertia,
    pin,
    pinocchio_torques,
    random_dh,
    random_urdf,
    relative,
    state,
)

import robot_dynamics as rd
from robot_dynamics.codegen import cache, native
from robot_dynamics.errors import InputError
from robot_dynamics.formulations.equations import TERMS, Equations
from robot_dynamics.formulations.form import FEW
from robot_dynamics.mechanism import Armature, Coupling, Inertial, Pose, Rotor
from robot_dynamics.mechanism.base_parameters import compact
from robot_dynamics.mechanism.transform import with_payload

FORMULATIONS = ["newton_euler", "gibbs_appell", "murphy", "lagrange_euler"]


@pytest.fixture
def dh(tmp_path):
    def load(seed, **options):
        path = tmp_path / f"robot{seed}.yaml"
        path.write_text(yaml.safe_dump(random_dh(seed, **options)))
        return rd.load(path)

    return load


def payload(seed):
    rng = np.random.default_rng(seed)
    return Inertial(2.5, rng.uniform(-0.2, 0.2, 3), inertia(rng, 2.5))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rotors", [False, True])
def test_sparse_frames_and_base_parameters_change_no_torque(dh, seed, rotors):
    equations = Equations.of(dh(seed, joints=8, rotors=rotors))
    fewer = replace(equations, mechanism=compact(equations.mechanism))
    n = len(equations.mechanism.joint_names)
    for k in range(5):
        q, qd, qdd = state(k, n)
        expected = equations.torques(q, qd, qdd)
        assert relative(fewer.torques(q, qd, qdd), expected) < RELATIVE_TO_SISTERS


@pytest.mark.parametrize("seed", range(6))
def test_sparse_frames_and_base_parameters_change_no_torque_of_a_urdf(seed):
    equations = Equations.of(rd.load(random_urdf(seed, joints=9)))
    fewer = replace(equations, mechanism=compact(equations.mechanism))
    q, qd, qdd = state(seed, len(equations.mechanism.joint_names))
    expected = equations.torques(q, qd, qdd)
    assert relative(fewer.torques(q, qd, qdd), expected) < RELATIVE_TO_SISTERS


def test_regrouping_leaves_the_zeros_it_promises(dh):
    mechanism = compact(Equations.of(dh(1, joints=8)).mechanism)
    for link in mechanism.links:
        body = link.inertial
        if link.joint.turns:
            assert body.mass == 0
            assert body.first_moment[2] == 0
            assert body.inertia_about_origin[1, 1] == 0
            assert relative(body.inertia_about_origin, body.inertia_about_origin.T) < 1e-14
        else:
            assert not body.inertia_about_origin.any()


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_payload_is_a_body_more_in_pinocchio_and_compiles_nothing(formulation, nothing_is_built):
    urdf = random_urdf(5, joints=7, branching=False)
    mechanism = rd.load(urdf)
    dynamics = rd.InverseDynamics(mechanism, formulation)
    n = len(mechanism.joint_names)
    q, qd, qdd = state(5, n)
    empty = dynamics(q, qd, qdd)
    nothing_is_built()
    for name in (mechanism.links[-1].name, mechanism.links[2].name):  # a fixed link, one within
        body = payload(1)
        dynamics.set_payload(name, body)
        model = pin.buildModelFromXML(urdf)
        frame = model.frames[model.getFrameId(name)]
        model.appendBodyToJoint(
            frame.parentJoint,
            pin.Inertia(body.mass, np.array(body.center_of_mass), np.array(body.inertia)),
            frame.placement,
        )
        expected = pinocchio_torques(model, mechanism.joint_names, q, qd, qdd)
        assert relative(dynamics(q, qd, qdd), expected) < RELATIVE_TO_PINOCCHIO
        dynamics.set_payload(name, None)
    assert np.array_equal(dynamics(q, qd, qdd), empty)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_gravity_and_friction_compile_nothing(dh, formulation, nothing_is_built):
    mechanism = dh(2, joints=5)
    dynamics = rd.InverseDynamics(mechanism, formulation)
    q, qd, qdd = state(2, len(mechanism.joint_names))
    dynamics(q, qd, qdd), dynamics.gravity(q)
    nothing_is_built()

    dynamics.gravity_vector = [1.0, -2.0, 3.0]
    turned = Equations.of(replace(mechanism, gravity=np.array([1.0, -2.0, 3.0])), formulation)
    assert relative(dynamics(q, qd, qdd), turned.torques(q, qd, qdd)) < RELATIVE_TO_SISTERS
    assert relative(dynamics.gravity(q), turned.gravity(q)) < RELATIVE_TO_SISTERS

    before = dynamics(q, qd, qdd)
    joint = mechanism.joint_names[1]
    dynamics.set_friction(joint, viscous=0.5, coulomb=2.0)
    expected = np.zeros(len(q))
    expected[1] = 0.5 * qd[1] + 2.0 * np.sign(qd[1])
    assert relative(dynamics(q, qd, qdd) - before, expected) < RELATIVE_TO_SISTERS
    assert np.array_equal(dynamics.gravity_vector, [1.0, -2.0, 3.0])


def test_all_matrices_know_of_the_payload(dh):
    mechanism = dh(3, joints=5)
    dynamics, body = rd.InverseDynamics(mechanism), payload(2)
    q, qd, _ = state(3, len(mechanism.joint_names))
    dynamics.mass_matrix(q), dynamics.coriolis_matrix(q, qd), dynamics.gravity(q)
    last = mechanism.links[-1].name
    dynamics.set_payload(last, body)
    loaded = Equations.of(with_payload(mechanism, last, body))
    assert relative(dynamics.mass_matrix(q), loaded.mass_matrix(q)) < RELATIVE_TO_SISTERS
    expected = loaded.coriolis_matrix(q, qd)
    assert relative(dynamics.coriolis_matrix(q, qd), expected) < RELATIVE_TO_SISTERS
    assert relative(dynamics.gravity(q), loaded.gravity(q)) < RELATIVE_TO_SISTERS
    assert dynamics.mechanism.link(last).inertial.mass == pytest.approx(
        mechanism.link(last).inertial.mass + body.mass
    )


def test_a_payload_takes_the_place_of_the_one_before(dh):
    dynamics = rd.InverseDynamics(dh(4, joints=4))
    last = dynamics.mechanism.links[-1].name
    q, qd, qdd = state(4, len(dynamics.joint_names))
    dynamics.set_payload(last, payload(3))
    expected = dynamics(q, qd, qdd)
    dynamics.set_payload(last, payload(4))
    dynamics.set_payload(last, payload(3))
    assert np.array_equal(dynamics(q, qd, qdd), expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.set_payload("nobody", payload(0)), "payload: link: found 'nobody', expected"),
        (
            lambda d: d.set_payload("link1", Inertial(-1.0)),
            "mass: found -1.0, expected a finite number, at least 0",
        ),
        (lambda d: d.set_payload("link1", Inertial(np.nan)), "mass: found nan, expected a finite"),
        (
            lambda d: setattr(d, "gravity_vector", [0, 0]),
            r"gravity_vector: found \(2,\), expected shape \(3,\)",
        ),
        (lambda d: setattr(d, "gravity_vector", [0, 0, np.inf]), "gravity_vector"),
        (lambda d: d.set_friction("nobody", 0, 0), "friction: joint: found 'nobody'"),
        (lambda d: d.set_friction("q1", -1, 0), "viscous friction of q1: found -1, expected"),
        (lambda d: d.set_friction("q1", 0, np.nan), "coulomb friction of q1: found nan"),
        (
            lambda d: d.set_payload("link1", Inertial(1.0, [0.0, 0.5, -(10**400)])),
            r"center_of_mass: found \[0.0, 0.5, -inf\], expected finite numbers",
        ),
        (lambda d: d.set_friction("q1", 0, True), "coulomb friction of q1: found True"),
        (lambda d: d.set_friction("q1", 0, 10**400), "coulomb friction of q1: found 1000"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(dh, change, words):
    dynamics = rd.InverseDynamics(dh(5, joints=3))
    q, qd, qdd = state(5, len(dynamics.joint_names))
    before = dynamics(q, qd, qdd)
    with pytest.raises(rd.RobotDynamicsError, match=words):
        change(dynamics)
    assert np.array_equal(dynamics(q, qd, qdd), before)


def test_a_call_on_another_thread_sees_one_robot_or_the_other(dh):
    dynamics = rd.InverseDynamics(dh(6, joints=5))
    q, qd, qdd = state(6, len(dynamics.joint_names))
    last, body = dynamics.mechanism.links[-1].name, payload(5)
    empty = dynamics(q, qd, qdd)
    dynamics.set_payload(last, body)
    loaded = dynamics(q, qd, qdd)
    found, done = [], threading.Event()

    def work():
        while not done.is_set():
            found.append(dynamics(q, qd, qdd))

    worker = threading.Thread(target=work)
    worker.start()
    for k in range(50):
        dynamics.set_payload(last, body if k % 2 else None)
    done.set()
    worker.join()
    assert all(np.array_equal(tau, empty) or np.array_equal(tau, loaded) for tau in found)


@pytest.mark.parametrize("formulation", ["newton_euler", "gibbs_appell"])
@pytest.mark.parametrize("terms", [TERMS, ("coriolis", "gravity"), ("inertia", "rotors")])
def test_matrices_of_many_joints_are_those_of_the_equations(dh, formulation, terms):
    # beyond FEW joints they are computed by composite bodies
    mechanism = dh(8, joints=19, rotors=True)
    n = len(mechanism.joint_names)
    assert n > FEW
    dynamics = rd.InverseDynamics(mechanism, formulation, terms=terms)
    equations = Equations.of(mechanism, formulation, terms=terms)
    q, qd, _ = state(8, n)
    D, C = dynamics.mass_matrix(q), dynamics.coriolis_matrix(q, qd)
    assert relative(D, equations.mass_matrix(q)) < RELATIVE_TO_SISTERS
    assert np.array_equal(D, D.T)
    assert relative(C, equations.coriolis_matrix(q, qd)) < RELATIVE_TO_SISTERS
    both = np.stack([q, -q])
    assert relative(dynamics.mass_matrix(both)[0], D) < RELATIVE_TO_SISTERS
    assert dynamics.coriolis_matrix(both, qd).shape == (2, n, n)
    with pytest.raises(rd.RobotDynamicsError, match="one entry per joint"):
        dynamics.mass_matrix(q[:-1])


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_torques_are_new_arrays_each_time(backend):
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), backend=backend)
    first = dynamics([0.1, 0.2], [0.3, 0.4], [0.5, 0.6])
    kept = first.copy()
    dynamics([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    assert np.array_equal(first, kept)
    assert first.dtype == float
    assert first.flags.writeable


def test_numbers_alone_need_neither_sympy_nor_ros():
    code = f"""
import sys
import robot_dynamics as rd
rd.InverseDynamics(rd.load({str(CONFIG / "polar.yaml")!r}))([0, 0], [0, 0], [0, 0])
print([m for m in ("sympy", "rclpy", "matplotlib", "mujoco", "scipy") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_pose_may_carry_the_payload(dh):
    # a payload given in a tool's frame: the same body seen from the link
    mechanism = dh(7, joints=4)
    last, body = mechanism.links[-1].name, payload(6)
    tool = Pose.from_xyz_rpy(np.array([0.1, 0.0, 0.2]), np.array([0.3, -0.2, 0.1]))
    dynamics = rd.InverseDynamics(mechanism)
    dynamics.set_payload(last, body.seen_from(tool))
    q, qd, qdd = state(7, len(mechanism.joint_names))
    expected = Equations.of(with_payload(mechanism, last, body.seen_from(tool)))
    assert relative(dynamics(q, qd, qdd), expected.torques(q, qd, qdd)) < RELATIVE_TO_SISTERS


class Doubled(rd.InverseDynamics):
    """One that computes something else."""

    def __call__(self, *states, **more):
        return 2 * super().__call__(*states, **more)


@pytest.mark.parametrize("name", ["polar", "five_bar"])
def test_every_way_to_call_gives_the_same_torques(name, monkeypatch):
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    dynamics = rd.InverseDynamics(mechanism)
    home = [mechanism.home.get(joint, 0.3) for joint in dynamics.joint_names]
    at = np.array(home), np.array([0.3, -0.4]), np.array([1.0, 2.0])
    expected = dynamics(*at)
    named = dict(zip(("q", "qd", "qdd"), at, strict=True))
    assert np.allclose(dynamics(**named), expected, rtol=1e-12)
    assert np.allclose(dynamics.__call__(*at), expected, rtol=1e-12)
    out = np.empty(2)
    assert dynamics(*at, out=out) is out
    assert np.allclose(out, expected, rtol=1e-12)
    assert np.allclose(dynamics(*at, wrenches={}), expected, rtol=1e-12)
    with pytest.raises(TypeError):
        dynamics(*at, at[0])
    with pytest.raises(TypeError):
        dynamics(*at, nothing=1)
    assert np.allclose(Doubled(mechanism)(*at), 2 * expected, rtol=1e-12)
    # as a profiler or a test may do
    monkeypatch.setattr(rd.InverseDynamics, "__call__", lambda *_, **__: "replaced")
    assert dynamics(*at) == "replaced"


STRAIGHT = """
import gc, sys, weakref
import robot_dynamics as rd
from robot_dynamics.codegen import native
if native.Forwarding is native._Forwarding:
    print("no extension")
    sys.exit()
dynamics = rd.InverseDynamics(rd.load(sys.argv[1]))
at = [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]
dynamics(*at)
held = sys.getrefcount(dynamics._target)
for _ in range(5):
    dynamics(*at)
now = sys.getrefcount(dynamics._target)
assert now == held
dynamics._target = lambda *states: len(states)
assert dynamics(1, 2, 3) == 3
gone = weakref.ref(dynamics)
dynamics._target = dynamics.gravity  # a circle
del dynamics
gc.collect()
assert gone() is None
"""


def test_a_call_with_states_alone_goes_straight_to_the_kernel():
    # in a process of its own: a class whose __call__ was ever replaced takes the long way
    command = [sys.executable, "-c", STRAIGHT, str(CONFIG / "polar.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    if result.stdout:
        pytest.skip("the extension module was not built, or from another text")


@pytest.mark.parametrize("name", ["three_axis", "five_bar"])
def test_the_states_of_all_joints_are_checked_broadcast_and_the_callers_own(name):
    dynamics = rd.InverseDynamics(rd.load(CONFIG / f"{name}.yaml"), backend="python")
    home, n = dynamics.home, len(dynamics.joint_names)
    zero, whole = np.zeros(n), len(dynamics.mechanism.joint_names)
    found = dynamics.tree_state(home, np.zeros((4, n)), zero)
    assert [each.shape for each in found] == [(4, whole)] * 3
    for wrong, given in (
        ("q", (home[:-1], zero, zero)),
        ("qd", (home, np.zeros(n + 1), zero)),
        ("qdd", (home, zero, np.zeros((2, n - 1)))),
    ):
        with pytest.raises(rd.InputError, match=f"^{wrong}: found shape"):
            dynamics.tree_state(*given)
    given = home.copy()
    for each in (*dynamics.tree_state(given, given, given), dynamics.home):
        each[:] = 7.0
    assert (given == home).all()
    assert (dynamics.home == home).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ratios": (("d2", 10.0),)}, "rotor motor: joint: found 'd2', expected one of theta1"),
        ({"mount": "nobody"}, "rotor motor: mount: found 'nobody', expected one of base, link1"),
        ({"follows": "nobody"}, "d2: joint that it follows: found 'nobody', expected one of th"),
        ({"follows": "d2"}, "d2: joint that it follows: found 'd2', expected one of theta1"),
        ({"parent": "link2"}, "link2: parent link: found 'link2', expected one of base, link1"),
        ({"armature": "d2"}, "armature: joint: found 'd2', expected one of theta1"),
    ],
)
def test_a_mechanism_made_in_python_names_only_what_it_has(change, words):
    polar = rd.load(str(CONFIG / "polar.yaml"))
    arm, slide = polar.links
    follows = Coupling(((change.get("follows", "theta1"), 2.0),))
    slide = replace(slide, joint=replace(slide.joint, coupling=follows))
    slide = replace(slide, parent=change.get("parent", slide.parent))
    ratios = change.get("ratios", (("theta1", 10.0),))
    body = Inertial(0.1, np.zeros(3), 1e-4 * np.eye(3))
    motor = Rotor("motor", change.get("mount", "base"), Pose(), ratios, body)
    shaft = Armature(((change.get("armature", "theta1"), 10.0),), 1e-4)
    robot = replace(polar, links=(arm, slide), rotors=(motor,), armatures=(shaft,))
    with pytest.raises(InputError, match=re.escape(words)):
        rd.InverseDynamics(robot)


@pytest.mark.parametrize("what", ["link", "joint"])
def test_a_mechanism_made_in_python_has_no_name_twice(what):
    polar = rd.load(str(CONFIG / "polar.yaml"))
    arm, slide = polar.links
    if what == "link":
        name, slide = "link1", replace(slide, name="link1")
    else:
        name, slide = "theta1", replace(slide, joint=replace(slide.joint, name="theta1"))
    said = f"{what}: found '{name}', expected a name that no other one has"
    with pytest.raises(InputError, match=said):
        rd.InverseDynamics(replace(polar, links=(arm, slide)))


@pytest.mark.parametrize("name", ["polar", "five_bar"])
@pytest.mark.parametrize("options", [{}, {"sensed": True}])
def test_with_batches_nothing_is_for_single_states_before_one_comes(
    name, options, monkeypatch, tmp_path
):
    if name == "polar" and options:
        options = {"rotors": "none"}
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    usual = rd.InverseDynamics(mechanism, **options)
    n = len(usual.joint_names)
    home = usual.home[:n] if usual.closed is None else usual.closed.home.q_r[:n]
    rng = np.random.default_rng(0)
    q, (qd, qdd) = np.tile(home, (3, 1)), rng.uniform(-1, 1, (2, 3, n))
    if not options:  # readings agree at home only
        q = q + rng.uniform(-0.01, 0.01, q.shape)
    expected, matrices = usual(q, qd, qdd), usual.mass_matrix(q)
    one = usual(q[-1], qd[-1], qdd[-1])

    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "another"))
    built, library = [], native._library

    def noted(function, kind):
        built.append((function.name, kind))
        return library(function, kind)

    monkeypatch.setattr(native, "_library", noted)
    dynamics = rd.InverseDynamics(mechanism, batches=True, **options)
    np.testing.assert_array_equal(dynamics(q, qd, qdd), expected)
    np.testing.assert_array_equal(dynamics.mass_matrix(q), matrices)
    assert "kernel in C" in dynamics.backend
    assert ("torques", "batch") in built
    assert {kind for _, kind in built} == {"batch"}, built
    np.testing.assert_allclose(dynamics(q[-1], qd[-1], qdd[-1]), one, rtol=1e-10, atol=1e-12)
    assert "single" in {kind for _, kind in built}
    same = pickle.loads(pickle.dumps(dynamics))
    np.testing.assert_allclose(same(q, qd, qdd), expected, rtol=1e-10, atol=1e-12)


def test_batches_is_yes_or_no():
    with pytest.raises(InputError, match="batches"):
        rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), batches="some")


@pytest.mark.parametrize("rotors", ["full", "reflected"])
def test_motors_listed_in_another_order_than_the_joints_change_no_torque(dh, rotors):
    robot = dh(4)
    listed = replace(robot, actuated=robot.joint_names[::-1])
    q, qd, qdd = np.random.default_rng(3).normal(size=(3, len(robot.joint_names)))
    expected, found = (rd.InverseDynamics(each, rotors=rotors) for each in (robot, listed))
    assert found.actuated_names == expected.actuated_names == found.joint_names
    np.testing.assert_array_equal(found(q, qd, qdd), expected(q, qd, qdd))
    for one, other in zip(
        found.motor_torques(q, qd, qdd), expected.motor_torques(q, qd, qdd), strict=True
    ):
        np.testing.assert_array_equal(one, other)
