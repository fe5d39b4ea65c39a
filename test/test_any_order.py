# SPDX-License-Identifier: Apache-2.0
"""Whatever was called, changed and refused before, an instance answers like a freshly built one."""

from __future__ import annotations

import copy
import pickle
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from robots import CONFIG, relative

import robot_dynamics as rd
from robot_dynamics.mechanism import Friction

ROBOTS = [
    ("polar", {}),
    ("five_bar", {}),
    ("five_bar", {"sensed": True}),
    ("rrr", {}),
    ("rrr", {"sensed": True}),
    ("delta", {"sensed": True}),
]
EXAMPLES, STEPS = 30, 18
"""Of a run that is always the same; about a minute"""
SAME = 1e-9
"""Relative: where a closed state was closed from leaves rounding on condition numbers of ten"""
SMALL = 0.12
"""rad, or shares of the size: how far from home the states are that are compared"""

seeds = st.integers(0, 2**32 - 1)


@cache
def described(name: str) -> rd.Mechanism:
    """A shipped robot with friction at every joint: no law is of a kind that is new to kernels."""
    mechanism = rd.load(CONFIG / f"{name}.yaml")
    law = Friction(0.05, 0.02)
    links = tuple(
        replace(link, joint=replace(link.joint, friction=law)) if link.joint.moves else link
        for link in mechanism.links
    )
    return replace(mechanism, links=links)


@cache
def without_sensors(name: str):
    """The motors' model, which says where readings agree; bodies make no difference to that."""
    return rd.InverseDynamics(described(name)).closed


class AnyOrder(RuleBasedStateMachine):
    """The instance under test, and beside it the description that it should be of."""

    @initialize(robot=st.sampled_from(ROBOTS))
    def build(self, robot):
        self.name, self.options = robot
        self.described = described(self.name)
        self.payloads: dict[str, rd.Inertial] = {}
        self.dynamics = rd.InverseDynamics(self.described, **self.options)
        self.names = self.dynamics.joint_names
        self.k = len(self.names)

    def states(self, seed: int, count: int = 1):
        """(q, q̇, q̈) (count, k): near home, readings that agree."""
        rng = np.random.default_rng(seed)
        qd, qdd = rng.uniform(-1, 1, (2, count, self.k))
        if self.dynamics.closed is None:
            return rng.uniform(-2, 2, (count, self.k)), qd, qdd
        active = without_sensors(self.name)
        a = len(active.joint_names)
        active.reset()
        scale = active.solver.scale[:a]
        q_a = active.home.q_a + rng.uniform(-SMALL, SMALL, (count, a)) * scale
        order = [active.coordinate_names.index(name) for name in self.names]
        return active.forward_kinematics(q_a).q_r[:, order], qd, qdd

    def fresh(self) -> rd.InverseDynamics:
        links = tuple(
            replace(link, inertial=link.inertial + self.payloads[link.name])
            if link.name in self.payloads
            else link
            for link in self.described.links
        )
        return rd.InverseDynamics(replace(self.described, links=links), **self.options)

    # --- calls ------------------------------------------------------------------------------

    @rule(seed=seeds, off=st.sampled_from([0.0, 0.05, 0.3]))
    def call(self, seed, off):
        """Readings may disagree by so much, and then be refused."""
        (q,), (qd,), (qdd,) = self.states(seed)
        q = q + np.random.default_rng(seed).uniform(-off, off, self.k)
        with suppress(rd.RobotDynamicsError):
            self.dynamics(q, qd, qdd)

    @rule(seed=seeds, size=st.sampled_from([0.5, 3.0, 1e3, 1e300]))
    def call_far_away(self, seed, size):
        (q,), (qd,), (qdd,) = self.states(seed)
        q = q + np.random.default_rng(seed).uniform(-size, size, self.k)
        with suppress(rd.RobotDynamicsError):
            self.dynamics(q, qd, qdd)
        if self.dynamics.closed is not None:
            # which assembly mode a far state is on depends on the way: it is said to be at home
            self.dynamics.closed.reset()

    @rule(seed=seeds, bad=st.sampled_from([np.nan, np.inf, -np.inf]))
    def call_with_no_numbers(self, seed, bad):
        q, qd, qdd = self.states(seed, 3)
        q[1, seed % self.k] = bad
        with suppress(rd.RobotDynamicsError):
            self.dynamics(q[1], qd[1], qdd[1])
        with suppress(rd.RobotDynamicsError):
            self.dynamics(q, qd, qdd)

    @rule(seed=seeds)
    def call_a_batch(self, seed):
        self.dynamics(*self.states(seed, 4))

    @rule(seed=seeds, what=st.sampled_from(["mass_matrix", "gravity", "forward", "derivatives"]))
    def call_something_else(self, seed, what):
        (q,), (qd,), (qdd,) = self.states(seed)
        if what == "forward":
            if not self.options:
                self.dynamics.forward(q, qd, np.zeros(len(self.dynamics.actuated_names)))
            return
        getattr(self.dynamics, what)(*((q, qd, qdd) if what == "derivatives" else (q,)))

    @rule(seed=seeds)
    def call_from_threads_while_gravity_changes(self, seed):
        (q,), (qd,), (qdd,) = self.states(seed)
        before = self.dynamics.gravity_vector
        with ThreadPoolExecutor(3) as pool:
            running = [pool.submit(self.dynamics, q, qd, qdd) for _ in range(6)]
            self.dynamics.gravity_vector = [3.0, 1.0, -5.0]
            self.dynamics.gravity_vector = before
            for each in running:
                each.result()

    # --- changes ----------------------------------------------------------------------------

    @rule(seed=seeds, off=st.booleans())
    def carry(self, seed, off):
        rng = np.random.default_rng(seed)
        link = self.described.links[seed % len(self.described.links)].name
        if off:
            self.payloads.pop(link, None)
            self.dynamics.set_payload(link, None)
            return
        half = rng.uniform(-0.1, 0.1, (3, 3))
        body = rd.Inertial(rng.uniform(0.1, 2), rng.uniform(-0.1, 0.1, 3), half @ half.T)
        self.payloads[link] = body
        self.dynamics.set_payload(link, body)

    @rule(seed=seeds)
    def rub(self, seed):
        rng = np.random.default_rng(seed)
        moving = self.described.moving
        joint = moving[seed % len(moving)].joint.name
        law = Friction(*rng.uniform(0.01, 0.5, 2))
        self.dynamics.set_friction(joint, law.viscous, law.coulomb)
        links = tuple(
            replace(link, joint=replace(link.joint, friction=law))
            if link.joint.name == joint
            else link
            for link in self.described.links
        )
        self.described = replace(self.described, links=links)

    @rule(seed=seeds)
    def tilt(self, seed):
        gravity = np.random.default_rng(seed).uniform(-10, 10, 3)
        self.dynamics.gravity_vector = gravity
        self.described = replace(self.described, gravity=gravity)

    @rule(what=st.sampled_from(["payload", "friction", "gravity", "link"]))
    def refuse(self, what):
        link, joint = self.described.links[-1].name, self.names[0]
        refused = {
            "payload": lambda: self.dynamics.set_payload(link, rd.Inertial(-1.0)),
            "link": lambda: self.dynamics.set_payload("nowhere", rd.Inertial(1.0)),
            "friction": lambda: self.dynamics.set_friction(joint, -0.1, 0.0),
            "gravity": lambda: setattr(self.dynamics, "gravity_vector", [0.0, np.nan, 0.0]),
        }[what]
        with pytest.raises(rd.RobotDynamicsError):
            refused()

    # --- the instance itself ----------------------------------------------------------------

    @rule(how=st.sampled_from([copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]))
    def replace_by_a_copy(self, how):
        self.dynamics = how(self.dynamics)

    @rule()
    def reset(self):
        if self.dynamics.closed is not None:
            self.dynamics.closed.reset()

    @rule(seed=seeds)
    def answers_as_a_new_one_does(self, seed):
        (q,), (qd,), (qdd,) = self.states(seed)
        new = self.fresh()
        assert relative(self.dynamics(q, qd, qdd), new(q, qd, qdd)) < SAME
        assert relative(self.dynamics.mass_matrix(q), new.mass_matrix(q)) < SAME
        if self.options:
            held, expected = (each.constraint_forces(q, qd, qdd) for each in (self.dynamics, new))
            assert held.rows == expected.rows
            assert relative(held.multipliers, expected.multipliers) < 1e-8

    def teardown(self):
        if hasattr(self, "dynamics"):
            self.answers_as_a_new_one_does(1)


def test_any_order_of_calls_changes_and_threads_answers_as_a_new_instance(request):
    seconds = request.config.getoption("--fuzz-seconds")
    settings = hypothesis.settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        derandomize=not seconds,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    end = time.monotonic() + seconds
    with warnings.catch_warnings():
        # rows of a batch that can't be closed are said so
        warnings.simplefilter("ignore")
        while True:
            run_state_machine_as_test(AnyOrder, settings=settings)
            if time.monotonic() >= end:
                return
