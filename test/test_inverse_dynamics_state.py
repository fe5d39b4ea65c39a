# SPDX-License-Identifier: Apache-2.0
"""Laws of the façade's state: it changes at one stroke or not at all; copies share none of it."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from robots import CONFIG, inertia, state

import robot_dynamics as rd
from robot_dynamics.chains import open_chain
from robot_dynamics.chains.companion import Companion
from robot_dynamics.closure import ClosedChain
from robot_dynamics.codegen import kernel
from robot_dynamics.formulations import form
from robot_dynamics.mechanism import Friction, Inertial, Limits, Pose

BACKENDS = ["c", "python"]
GRAVITIES = [np.array([0.0, 0.0, -9.81]), np.array([3.0, -7.0, 2.0])]


def unbalanced(name="three_axis"):
    """A robot with rotors whose centres of mass are off their axes: they feel gravity."""
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    heavy = [
        replace(each, inertial=replace(each.inertial, center_of_mass=np.array([0.02, 0.0, 0.01])))
        for each in mechanism.rotors
    ]
    return replace(mechanism, rotors=tuple(heavy))


def body(seed=1, mass=2.5):
    rng = np.random.default_rng(seed)
    return Inertial(mass, rng.uniform(-0.2, 0.2, 3), inertia(rng, mass))


def everything(dynamics, seed=3, rows=40):
    """Every result, single and in batches, as functions that ask for it."""
    rng = np.random.default_rng(seed)
    n, link = len(dynamics.joint_names), dynamics.mechanism.links[-1].name
    around = home(dynamics.mechanism, dynamics)
    q, qd, qdd = np.concatenate([[around], np.zeros((2, n))]) + rng.uniform(-0.1, 0.1, (3, n))
    Q = around + rng.uniform(-0.1, 0.1, (rows, n))
    Qd, Qdd = rng.uniform(-1, 1, (2, rows, n))
    pushes = {link: rng.uniform(-5, 5, 6)}
    methods = {
        "torques": lambda: dynamics(q, qd, qdd),
        "torques, rows": lambda: dynamics(Q, Qd, Qdd),
        "torques under a push": lambda: dynamics(q, qd, qdd, wrenches=pushes),
        "mass matrix": lambda: dynamics.mass_matrix(q),
        "mass matrix, rows": lambda: dynamics.mass_matrix(Q),
        "Coriolis": lambda: dynamics.coriolis_matrix(q, qd),
        "Coriolis, rows": lambda: dynamics.coriolis_matrix(Q, Qd),
        "gravity": lambda: dynamics.gravity(q),
        "gravity, rows": lambda: dynamics.gravity(Q),
        "forward": lambda: dynamics.forward(q, qd, qdd),
        "kinetic energy": lambda: dynamics.kinetic_energy(q, qd),
        "potential energy": lambda: dynamics.potential_energy(q),
        "pose": lambda: dynamics.pose(q, link),
        "Jacobian": lambda: dynamics.jacobian(q, link),
        "regressor": lambda: dynamics.regressor(q, qd, qdd),
        "parameters": lambda: dynamics.parameters,
        "tree state": lambda: np.concatenate(dynamics.tree_state(Q, Qd, Qdd)),
    }
    if dynamics.closed is None:
        methods["derivatives"] = lambda: np.array(dynamics.derivatives(q, qd, qdd))
    if dynamics.motor_names:
        methods["motors"] = lambda: np.concatenate(dynamics.motor_torques(q, qd, qdd))
    return methods


SAME_ANYWAY = {"pose", "Jacobian", "tree state"}
"""What neither gravity nor a payload changes"""


def alike(found, expected):
    """To rounding: a closed chain's states have that of the way that led to them."""
    # not np.allclose, which takes longer than what the threads are to be seen at
    found, expected = np.asarray(found), np.asarray(expected)
    return bool((abs(found - expected) <= 1e-9 * (1.0 + abs(expected))).all())


def robot(name):
    return unbalanced("five_bar" if name == "loops" else "three_axis")


@contextmanager
def often():
    """Threads take turns after 10 µs, not 5 ms: whatever can come in between does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def home(mechanism, dynamics):
    return np.array([float(mechanism.home.get(name, 0.1)) for name in dynamics.joint_names])


@pytest.mark.parametrize(
    ("name", "most", "backend"),
    [("rotors", 16, "c"), ("rotors", 16, "python"), ("rotors", 2, "c"), ("loops", 16, "c")],
)
def test_every_method_sees_one_robot_or_the_other(name, most, backend, monkeypatch):
    # beyond so many joints, D and C are those of composite bodies
    for module in (form, open_chain):
        monkeypatch.setattr(module, "FEW", most)
    mechanism = robot(name)
    dynamics = rd.InverseDynamics(mechanism, backend=backend)
    last = mechanism.links[-1].name

    def switch(k):
        """The robot as it is, or with a payload under another gravity."""
        with dynamics._changing:
            bare = replace(dynamics._robot.bare, gravity=GRAVITIES[k])
            dynamics._adopt(bare, {last: body()} if k else {})

    calls = everything(dynamics)
    allowed = []
    for k in (1, 0):
        switch(k)
        allowed.append({what: call() for what, call in calls.items()})
    loaded, bare = allowed
    assert {what for what in calls if alike(loaded[what], bare[what])} == SAME_ANYWAY
    done, torn = threading.Event(), []

    def work(what):
        call = calls[what]
        while not done.is_set():
            found = call()
            if not any(alike(found, each[what]) for each in allowed):
                torn.append(what)
                return

    with ThreadPoolExecutor(len(calls)) as pool, often():
        workers = [pool.submit(work, what) for what in calls]
        for k in range(20):
            switch(k % 2)
        done.set()
        for worker in workers:
            worker.result()
    assert not torn


@pytest.mark.parametrize("method", ["mass_matrix", "gravity", "motor_torques"])
def test_a_kernel_built_while_the_robot_changes_is_not_stale(method, monkeypatch):
    mechanism = unbalanced()
    changed = rd.InverseDynamics(mechanism)
    n, last = len(changed.joint_names), mechanism.links[-1].name
    q, qd, qdd = state(1, n)
    started, go_on = threading.Event(), threading.Event()
    build = kernel._code

    def slowly(*arguments):
        started.set()
        assert go_on.wait(60)
        return build(*arguments)

    monkeypatch.setattr(kernel, "_code", slowly)
    arguments = (q, qd, qdd) if method == "motor_torques" else (q,)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(getattr(changed, method), *arguments)
        assert started.wait(60)
        changed.gravity_vector = GRAVITIES[1]
        changed.set_payload(last, body())
        go_on.set()
        first.result()
    monkeypatch.undo()
    fresh = rd.InverseDynamics(replace(mechanism, gravity=GRAVITIES[1]))
    fresh.set_payload(last, body())
    for found, expected in zip(
        np.atleast_1d(getattr(changed, method)(*arguments)),
        np.atleast_1d(getattr(fresh, method)(*arguments)),
        strict=True,
    ):
        assert np.array_equal(found, expected)


def test_changes_in_a_row_adapt_what_was_built_before_the_first_of_them():
    built = []
    before = Companion(lambda robot: built.append(robot) or robot, lambda _, robot: robot)
    assert before.of(1) == 1
    assert before.after().after().of(3) == 3
    assert built == [1]


def test_a_closed_robot_does_not_change_between_joints_and_motors(monkeypatch):
    mechanism, compute = robot("loops"), ClosedChain.solved
    changes = []

    def changed_meanwhile(chain, *state):
        if not changes:
            changes.append(threading.Thread(target=change))
            changes[0].start()
            changes[0].join(0.3)  # it comes in between, or has to wait
        return compute(chain, *state)

    def change():
        dynamics.gravity_vector = GRAVITIES[1]

    monkeypatch.setattr(ClosedChain, "solved", changed_meanwhile)
    dynamics = rd.InverseDynamics(mechanism, backend="python")
    q, zero = home(mechanism, dynamics), np.zeros(2)
    found = dynamics.motor_torques(q, zero, zero)
    changes[0].join()
    after = dynamics.motor_torques(q, zero, zero)
    before = rd.InverseDynamics(mechanism, backend="python").motor_torques(q, zero, zero)
    assert not alike(after, before)
    assert alike(found, before)


def test_changes_from_several_threads_all_arrive():
    mechanism = unbalanced()
    dynamics = rd.InverseDynamics(mechanism)
    names = [link.name for link in mechanism.links]
    with ThreadPoolExecutor(len(names)) as pool:
        for _ in range(10):
            list(pool.map(lambda name: dynamics.set_payload(name, body()), names))
            assert set(dynamics._robot.payloads) == set(names)
            list(pool.map(lambda name: dynamics.set_payload(name, None), names))
            assert not dynamics._robot.payloads


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))]
)
@pytest.mark.parametrize("name", ["rotors", "loops"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_copy_computes_the_same_and_shares_nothing_that_changes(name, copied, backend):
    mechanism = robot(name)
    original = rd.InverseDynamics(mechanism, "gibbs_appell", backend=backend, rotors="reflected")
    q = home(mechanism, original)
    last, zero = mechanism.links[-1].name, np.zeros(len(q))
    original.gravity_vector = GRAVITIES[1]
    original.set_payload(last, body())
    original.set_friction(mechanism.tree_names[0], 0.7, 0.3)
    original(q + 0.05, zero, zero)
    other = copied(original)
    if original.closed is not None:
        assert np.array_equal(other.closed.last.q_r, original.closed.last.q_r)

    def results(dynamics):
        return {what: call() for what, call in everything(dynamics).items()}

    before = results(original)
    assert not [what for what, mine in results(other).items() if not alike(mine, before[what])]
    assert repr(other) == repr(original)
    other.gravity_vector = [0.0, 0.0, 0.0]
    other.set_payload(last, None)
    assert not [what for what, now in results(original).items() if not alike(now, before[what])]
    assert abs(other.gravity(q)).max() < 1e-12
    before = other(q, zero, zero)
    original.gravity_vector = GRAVITIES[0]
    original.set_payload(last, body(2, 9.0))
    assert np.allclose(other(q, zero, zero), before, rtol=1e-13, atol=1e-13)


def _asked(dynamics, q):
    rows = np.tile(q, (3000, 1))
    return dynamics(rows, rows, rows)[-1]


@pytest.mark.parametrize("name", ["rotors", "loops"])
def test_another_process_gets_it_whole(name):
    mechanism = robot(name)
    dynamics = rd.InverseDynamics(mechanism)
    dynamics.set_payload(mechanism.links[-1].name, body())
    q = home(mechanism, dynamics)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(_asked, (dynamics, q))
    assert np.allclose(found, _asked(dynamics, q), rtol=1e-12, atol=1e-12)


def test_a_copy_waits_for_changes_of_its_own_alone():
    dynamics = rd.InverseDynamics(robot("loops"))
    other = copy.copy(dynamics)
    zero = np.zeros(len(other.joint_names))
    for changing, calling, waits in ((other, other, True), (dynamics, other, False)):
        done = threading.Event()

        def call(robot=calling, done=done):
            robot.tree_state(robot.home, zero, zero)
            done.set()

        with changing._changing:
            thread = threading.Thread(target=call)
            thread.start()
            assert done.wait(0.2 if waits else 60.0) is not waits
        thread.join(60.0)
        assert done.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(("name", "host"), [("polar", True), ("polar", False), ("five_bar", True)])
def test_a_child_computes_after_its_parent_did_with_several_threads(name, host):
    code = f"""
import os, sys, threading, warnings
import numpy as np
import robot_dynamics as rd
from robot_dynamics.codegen import kernel, native
if not {host}:
    native._host = lambda: (None, "no headers")
kernel.WORTH_A_THREAD = 1
mechanism = rd.load({str(CONFIG / f"{name}.yaml")!r})
dynamics = rd.InverseDynamics(mechanism, threads=4)
Q = np.random.default_rng(0).uniform(-0.1, 0.1, (3, 5000, 2))
Q[0] += [mechanism.home.get(name, 0.0) for name in dynamics.joint_names]
expected = dynamics(*Q)
held, over = threading.Event(), threading.Event()
def hold():
    with dynamics._changing:
        held.set()
        over.wait(60)
threading.Thread(target=hold).start()
held.wait(60)  # somebody is changing the robot just now
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    sound = np.array_equal(dynamics(*Q), expected)
    dynamics.gravity_vector = [0.0, 0.0, 0.0]
    sound &= not abs(dynamics.gravity(Q[0])).max() > 1e-12
    os._exit(0 if sound else 3)
over.set()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


BAD_BODIES = {
    "short centre": (Inertial(1.0, np.zeros(2)), r"center_of_mass: found \(2,\), expected shape"),
    "long inertia": (Inertial(1.0, np.zeros(3), np.zeros((2, 3))), r"inertia: found \(2, 3\)"),
    "asymmetric": (
        Inertial(1.0, np.zeros(3), np.diag([1.0, 1.0, 1.0]) + np.eye(3, k=1)),
        "inertia: found .*, expected a symmetric matrix",
    ),
    "negative": (Inertial(1.0, np.zeros(3), np.diag([1.0, -1e-3, 1.0])), "no negative principal"),
    "indefinite": (
        Inertial(1.0, np.zeros(3), np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])),
        "no negative principal",
    ),
    "infinite": (Inertial(1.0, np.zeros(3), np.diag([np.inf, 1, 1])), "expected finite numbers"),
    "complex": (Inertial(1.0, np.array([1j, 0, 0])), "center_of_mass: found .*, expected real"),
    "text": (Inertial("1"), "mass: found .*, expected a finite number, at least 0"),
    "true": (Inertial(True), "mass: found .*, expected a finite number, at least 0"),
    "no mass": (Inertial(-1e-9), "mass: found -1e-09, expected a finite number, at least 0"),
    "no body": (2.5, "payload of .*: found 'float', expected an Inertial"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
@pytest.mark.parametrize("name", ["rotors", "loops"])
def test_a_body_that_cannot_be_is_refused_and_everything_goes_on(name, case):
    mechanism = robot(name)
    dynamics = rd.InverseDynamics(mechanism)
    wrong, words = BAD_BODIES[case]
    last, q = mechanism.links[-1].name, home(mechanism, dynamics)
    dynamics.set_payload(last, body())
    before, now = dynamics.gravity(q), dynamics.mechanism
    with pytest.raises(rd.RobotDynamicsError, match=words) as refusal:
        dynamics.set_payload(last, wrong)
    assert "\n" not in str(refusal.value)
    assert dynamics.mechanism is now
    # loops are closed from where they were: the same to Newton's rounding
    np.testing.assert_allclose(dynamics.gravity(q), before, rtol=1e-12, atol=1e-12)
    dynamics.gravity_vector = [0.0, 0.0, 0.0]
    dynamics.set_friction(mechanism.tree_names[0], 0.0, 0.0)
    assert abs(dynamics.gravity(q)).max() < 1e-12


def test_an_inertia_that_is_symmetric_to_rounding_is_taken():
    dynamics = rd.InverseDynamics(unbalanced())
    noise = np.array([[0, 1e-17, 0], [-1e-17, 0, 0], [0, 0, -1e-18]])
    dynamics.set_payload("bar3", Inertial(1.0, np.zeros(3), np.diag([0.1, 0.1, 0.0]) + noise))
    dynamics.set_payload("bar3", Inertial())


@pytest.mark.parametrize("name", ["rotors", "loops"])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("friction_smoothing", -0.1),
        ("friction_smoothing", np.nan),
        ("friction_smoothing", np.inf),
        ("friction_smoothing", "0.1"),
        ("friction_smoothing", True),
        ("friction_smoothing", 1j),
        ("friction_smoothing", None),
        ("condition_limit", np.nan),
        ("condition_limit", np.inf),
        ("condition_limit", -1.0),
        ("condition_limit", 0.5),
        ("condition_limit", "1e3"),
        ("threads", 0),
        ("threads", -1),
        ("threads", "2"),
        ("threads", True),
        ("threads", 2.0),
        ("terms", 5),
        ("terms", [["inertia"]]),
        ("terms", ["inertial"]),
        ("rotors", []),
        ("rotors", None),
        ("backend", ["c"]),
        ("formulation", {}),
        ("sensed", "yes"),
        ("sensed", 1),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(name, option, value):
    with pytest.raises(rd.RobotDynamicsError, match=option) as refusal:
        rd.InverseDynamics(robot(name), **{option: value})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("other", [None, "config/polar.yaml", 3])
def test_what_is_no_mechanism_is_refused(other):
    with pytest.raises(rd.RobotDynamicsError, match=r"mechanism: found .*, expected a Mechanism"):
        rd.InverseDynamics(other)


@pytest.mark.parametrize(
    ("gravity", "words"),
    [
        ([0, 0, 10**400], "gravity: found [0.0, 0.0, inf], expected finite numbers"),
        ([0, 0, np.nan], "gravity: found [0.0, 0.0, nan], expected finite numbers"),
        ([0, 0, "9.81"], "gravity: "),
        ([0, 0], "gravity: found (2,), expected shape (3,)"),
    ],
)
@pytest.mark.parametrize("name", ["polar.yaml", "rrr.yaml"])
def test_a_mechanism_without_a_finite_gravity_is_refused(name, gravity, words):
    with pytest.raises(rd.InputError, match="^" + re.escape(words)) as refusal:
        rd.InverseDynamics(replace(robot(name), gravity=gravity))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("value", [None, 9.81])
def test_what_is_no_array_is_refused_where_it_is_written(value):
    for made, name in (
        (lambda: replace(robot("polar.yaml"), gravity=value), "gravity"),
        (lambda: Inertial(1.0, value), "center_of_mass"),
        (lambda: Inertial(1.0, np.zeros(3), value), "inertia"),
        (lambda: Pose(value, np.zeros(3)), "rotation"),
        (lambda: Pose(np.eye(3), value), "translation"),
    ):
        with pytest.raises(rd.InputError, match=f"{name}: found .*, expected an array of numbers"):
            made()


def changed_last_link(**changes):
    mechanism = robot("polar.yaml")
    *others, last = mechanism.links
    return replace(mechanism, links=(*others, replace(last, **changes)))


@pytest.mark.parametrize("mass", [np.inf, np.nan, pytest.param(10**5000, id="huge")])
def test_a_body_without_a_finite_mass_is_refused_by_its_link(mass):
    body = replace(robot("polar.yaml").links[-1].inertial, mass=mass)
    with pytest.raises(rd.InputError, match=r"^links: \w+: inertial: mass: found"):
        rd.InverseDynamics(changed_last_link(inertial=body))


def test_a_home_that_is_not_finite_is_refused_by_its_joint():
    mechanism = robot("polar.yaml")
    name = mechanism.joint_names[0]
    with pytest.raises(rd.InputError, match=rf"^home: {name}: found nan, expected finite"):
        rd.InverseDynamics(replace(mechanism, home={name: np.nan}))


def test_limits_alone_may_be_infinite():
    joint = robot("polar.yaml").links[-1].joint
    free = replace(joint, limits=Limits(lower=-np.inf, upper=np.inf))
    assert rd.InverseDynamics(changed_last_link(joint=free)).joint_names
    rubbing = replace(joint, friction=Friction(viscous=np.inf))
    with pytest.raises(rd.InputError, match=r"^links: \w+: joint: friction: viscous: found inf"):
        rd.InverseDynamics(changed_last_link(joint=rubbing))


@pytest.mark.parametrize("threads", [pytest.param(10**5000, id="huge"), 8193, 0, True, 1.0])
def test_a_number_of_threads_out_of_range_is_refused(threads):
    with pytest.raises(rd.InputError, match=r"^threads: .* from 1 to 8192, or None$") as refusal:
        rd.InverseDynamics(unbalanced(), threads=threads)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("threads", [1, np.int64(2), 8192, None])
def test_a_number_of_threads_is_taken(threads):
    dynamics = rd.InverseDynamics(unbalanced(), threads=threads)
    assert dynamics(np.zeros((4, 3)), np.zeros(3), np.zeros(3)).shape == (4, 3)


@pytest.mark.parametrize(
    ("viscous", "coulomb"),
    [(True, 0), ("1", 0), (1j, 0), ([1.0], 0), (None, 0), (0, np.inf), (0, -1e-9), (0, [])],
)
def test_friction_is_two_numbers_from_zero_on(viscous, coulomb):
    dynamics = rd.InverseDynamics(unbalanced())
    before = dynamics.mechanism
    with pytest.raises(rd.RobotDynamicsError, match=r"(viscous|coulomb) friction of q1: found"):
        dynamics.set_friction("q1", viscous, coulomb)
    assert dynamics.mechanism is before


@pytest.mark.parametrize(
    "value", ["abc", [True] * 3, [1j, 0, 0], [None] * 3, 9.81, [[0, 0, 1]], {}]
)
def test_gravity_is_three_real_numbers(value):
    dynamics = rd.InverseDynamics(unbalanced())
    with pytest.raises(rd.RobotDynamicsError, match="gravity_vector"):
        dynamics.gravity_vector = value
    assert np.array_equal(dynamics.gravity_vector, GRAVITIES[0])


def test_it_shows_itself():
    dynamics = rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"), "murphy", backend="python")
    assert repr(dynamics) == (
        "InverseDynamics(robot='polar', joints: theta1, d2, formulation='murphy', "
        "backend='torques: generated Python')"
    )
