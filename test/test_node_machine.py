# SPDX-License-Identifier: Apache-2.0
"""The node's controller as a state machine: every event in any order, three promises after each.

No torque is wrong (Pinocchio says which); what was refused leaves no trace (a twin that never
hears it gives the same torques); and it is right again within a stated time. A thousand sequences,
always the same ones; with `--fuzz-seconds S` others, for so long.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")
pytest.importorskip("pinocchio", reason="the oracle is not installed: extra `dev`")

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from node_world import EVENTS, World, WrongError

SEQUENCES = int(os.environ.get("ROBOT_DYNAMICS_EXAMPLES", 1000))
LENGTH = 16


def played(seed: int, length: int = LENGTH) -> World:
    """A world after as many events, and after it has recovered from them."""
    world = World(seed)
    names, weights = zip(*EVENTS, strict=True)
    share = np.array(weights) / sum(weights)
    try:
        for name in world.rng.choice(names, length, p=share):
            world.wait()
            getattr(world, str(name))()
        if world.rng.random() < 0.1:
            world.recover()
    except WrongError as error:
        raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(world.history[-30:])) from None
    return world


@pytest.mark.timeout(1200)  # as long as a busy machine needs
def test_a_thousand_sequences_make_no_wrong_torque_leave_no_trace_and_recover(request):
    seconds = request.config.getoption("--fuzz-seconds")
    torques = 0
    if not seconds:
        for seed in range(SEQUENCES):
            torques += played(seed).ours.outlet.count
        assert torques > 10 * SEQUENCES
        return
    first, end = int(time.time()), time.monotonic() + seconds
    while time.monotonic() < end:
        first += 1
        played(first)


class Machine(RuleBasedStateMachine):
    """The same world, led by hypothesis: what it finds is as short as can be."""

    @initialize(seed=st.integers(0, 10**6))
    def begin(self, seed):
        self.world = World(seed)

    def happen(self, name):
        self.world.wait()
        getattr(self.world, name)()


def _rule(name):
    def happen(self):
        self.happen(name)

    happen.__name__ = f"event_{name}"
    return rule()(happen)


for _name, _weight in EVENTS:
    if _name not in ("recover", "stall"):
        setattr(Machine, f"event_{_name}", _rule(_name))


def test_hypothesis_finds_no_sequence_either(request):
    count = 2000 if request.config.getoption("--fuzz-seconds") else 60
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=count, stateful_step_count=30, deadline=None, derandomize=count == 60
        ),
    )
