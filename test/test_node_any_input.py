# SPDX-License-Identifier: Apache-2.0
"""Whatever messages come, in whatever order: torques are those of what was accepted, and what was
refused leaves no trace. For a longer run set ROBOT_DYNAMICS_EXAMPLES=5000.
"""

from __future__ import annotations

import copy
import math
import os
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from builtin_interfaces.msg import Duration, Time
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from node_bench import Bench, at, stamp
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robot_dynamics as rd
from robot_dynamics.ros.feed_forward.controller import FeedForward
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

CONFIG = Path(__file__).resolve().parents[1] / "config"
POLAR, RRR = rd.load(CONFIG / "polar.yaml"), rd.load(CONFIG / "rrr.yaml")
DYNAMICS = rd.InverseDynamics(POLAR, formulation="lagrange_euler")
ROUNDING = 1e-9
NAMES = ("theta1", "d2")
EXAMPLES = int(os.environ.get("ROBOT_DYNAMICS_EXAMPLES", 60))
LIMIT = 500.0
"""N·m and N"""

thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # no shrinking: what fails is short, and the time is bounded
    phases=[Phase.explicit, Phase.generate],
)

numbers = st.one_of(
    st.floats(-2.0, 2.0),
    st.sampled_from([0.0, 1e-300, 1e4, 1e150, 1e308, math.nan, math.inf, -math.inf]),
)
tame = st.floats(-2.0, 2.0)
names = st.sampled_from(["theta1", "d2", "theta1", "d2", "", "finger", "\x1b[2J\n", "x" * 1000])
seconds = st.sampled_from([0.0, 0.05, 0.1, -0.3, 0.7, -5.0, 100.0, 1e6])


def rows(values: Any, length: Any = None) -> Any:
    length = st.sampled_from([2, 2, 2, 2, 0, 1, 3]) if length is None else length
    return length.flatmap(lambda n: st.lists(values, min_size=n, max_size=n))


@st.composite
def stamps(draw: Any, now: float) -> Time:
    kind = draw(st.sampled_from(["zero", "near", "near", "near", "any", "wild"]))
    if kind == "zero":
        return Time()
    if kind == "near":
        return stamp(now)
    if kind == "any":
        return stamp(max(now + draw(seconds), -900.0))
    return Time(
        sec=draw(st.sampled_from([-(2**31), -1, 0, 2**31 - 1])),
        nanosec=draw(st.sampled_from([0, 1, 10**9 - 1, 10**9, 2**32 - 1])),
    )


@st.composite
def states(draw: Any, now: float) -> JointState:
    if draw(st.integers(0, 2)):
        message = JointState(name=list(draw(st.permutations(NAMES))))
        message.position, message.velocity = (
            draw(rows(tame, st.just(2))),
            draw(rows(tame, st.just(2))),
        )
    else:
        message = JointState(name=draw(st.lists(names, max_size=4)))
        message.position, message.velocity = draw(rows(numbers)), draw(rows(numbers))
    message.header.stamp = draw(stamps(now))
    return message


@st.composite
def commands(draw: Any, now: float) -> JointTrajectory:
    good = draw(st.integers(0, 2))
    values, length = (tame, st.just(2)) if good else (numbers, None)
    message = JointTrajectory(joint_names=list(draw(st.permutations(NAMES))))
    if not good:
        message.joint_names = draw(st.lists(names, max_size=3))
    time = draw(st.sampled_from([0, 0, 10**6, 5 * 10**8]))
    carries = draw(st.integers(1, 3))
    for _ in range(draw(st.integers(1, 4)) if good else draw(st.integers(0, 3))):
        point = JointTrajectoryPoint(
            positions=draw(rows(values, length)),
            velocities=draw(rows(values, length)) if carries > 1 else [],
            accelerations=draw(rows(values, length)) if carries != 2 else [],
        )
        point.time_from_start = Duration(sec=time // 10**9, nanosec=time % 10**9)
        if not good and draw(st.booleans()):
            point.time_from_start = Duration(sec=-1, nanosec=draw(st.sampled_from([0, 2**32 - 1])))
        time += draw(st.sampled_from([1, 10**6, 3 * 10**8, 2 * 10**9]))
        message.points.append(point)
    message.header.stamp = draw(stamps(now))
    return message


@st.composite
def events(draw: Any) -> list[tuple[str, float, Any]]:
    """What happens: what, when (s), and with what."""
    now, found = 0.0, []
    kinds = (
        ["state"] * 6 + ["command"] * 3 + ["tick", "watch", "jump", "change", "adopt", "farewell"]
    )
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=25)):
        now += draw(st.sampled_from([0.0, 0.01, 0.01, 0.05, 0.6]))
        what = None
        if kind == "jump":
            now = max(now - draw(st.sampled_from([0.001, 50.0])), -900.0)
        if kind == "change":
            now = draw(st.sampled_from([-900.0, 0.0, 1e8]))
        if kind in ("state", "command"):
            what = draw((states if kind == "state" else commands)(now))
        found.append((kind, now, what))
    return found


MODELS = {
    feedback: Model(
        ModelSpec(POLAR, Settings.of({"feedback": feedback, "effort_limits": [LIMIT, LIMIT]}))
    )
    for feedback in ("measured", "commanded")
}  # fmt: skip


def feed_forward(feedback: str, **values: Any) -> FeedForward:
    log: list[str] = []
    chosen = Settings.of({"feedback": feedback, "effort_limits": [LIMIT, LIMIT], **values})
    controller = FeedForward(chosen, log.append, lambda: 0.0)
    controller.adopt(MODELS[feedback])
    controller.lines = log
    return controller


def happen(controller: FeedForward, kind: str, now: float, what: Any) -> Any:
    ns = at(now)
    if kind == "tick" and controller.settings.measured:
        return None  # there is no such timer
    if kind == "state":
        return controller.state(what, ns)
    if kind == "command":
        return controller.command(what, ns)
    if kind == "jump":
        return controller.clock_jumped_back(ns)
    if kind == "change":
        return controller.clock_changed(ns)
    if kind == "adopt":
        return controller.adopt(controller.model)
    return getattr(controller, kind)(ns)


def read(state: JointState) -> tuple[np.ndarray, np.ndarray]:
    order = [state.name.index(name) for name in NAMES]
    return np.array(state.position)[order], np.array(state.velocity)[order]


@pytest.mark.parametrize("feedback", ["measured", "commanded"])
@pytest.mark.parametrize("on_timeout", ["gravity", "hold", "stop"])
@thorough
@seed(3)
@given(events=events())
def test_torques_are_finite_limited_and_those_of_what_was_accepted(feedback, on_timeout, events):
    controller = feed_forward(feedback, on_timeout=on_timeout, missing_accelerations="zero")
    for kind, now, what in events:
        output = happen(controller, kind, now, what)
        if output is None:
            continue
        values = output.values
        assert values.shape == (2,)
        assert np.isfinite(values).all()
        assert (np.abs(values) <= LIMIT).all()
        assert 0 <= output.time < 2**31 * 10**9
        desired = controller.commands.motion.at(output.time)
        assert (np.abs(desired.qdd) <= 1000.0 * (1 + 1e-9)).all()
        if kind == "state" and feedback == "measured" and controller.commands.phase == "following":
            q, qd = read(what)
            expected = DYNAMICS(q, qd, desired.qdd)
        elif controller.commands.phase == "following" and kind in ("state", "tick"):
            expected = DYNAMICS(desired.q, desired.qd, desired.qdd)
        else:
            # no gravity along these joints: at rest there is no torque; hold has rates
            held = kind == "state" and on_timeout == "hold" and feedback == "measured"
            q, qd = read(what) if held else np.zeros((2, 2))
            expected = DYNAMICS(q, qd, [0.0, 0.0])
        expected = np.clip(expected, -LIMIT, LIMIT)
        np.testing.assert_allclose(values, expected, rtol=ROUNDING, atol=ROUNDING)
    for line in controller.lines:
        assert line.isprintable()
        assert len(line) < 1200


def frozen(thing: Any, depth: int = 0) -> Any:
    """All that is in a thing, to be compared."""
    if isinstance(thing, (np.ndarray, array)):
        return ("numbers", np.asarray(thing).tobytes())
    if isinstance(thing, (list, tuple)):
        return tuple(frozen(each, depth + 1) for each in thing)
    if isinstance(thing, (frozenset, set)):
        return tuple(sorted(thing))
    if isinstance(thing, dict):
        return tuple((key, frozen(value, depth + 1)) for key, value in thing.items())
    if isinstance(thing, (str, int, float, bool, type(None), bytes)):
        return thing if thing == thing else "nan"
    if type(thing).__name__ in ("JointState", "JointTrajectory"):
        return repr(thing)
    if hasattr(thing, "__dict__") and depth < 6:
        hidden = ("_log", "_steady", "tally", "_tally", "model", "foreign", "lines", "settings")
        return tuple(
            (key, frozen(value, depth + 1))
            for key, value in vars(thing).items()
            if key not in hidden
        )
    return str(type(thing))


@pytest.mark.parametrize("feedback", ["measured", "commanded"])
@thorough
@seed(4)
@given(events=events())
def test_what_is_refused_leaves_no_trace(feedback, events):
    controller = feed_forward(feedback)
    for kind, now, what in events:
        before = (
            frozen(controller),
            sum(controller.tally.rejected.values()),
            controller.states.foreign,
        )
        rejected = dict(controller.tally.rejected)
        happen(controller, kind, now, what)
        source = {"state": "joint_states", "command": "command"}.get(kind, "nothing")
        refused = [
            key for key, n in controller.tally.rejected.items()
            if n > rejected.get(key, 0) and key.startswith(f"{source}:")
        ]  # fmt: skip
        # a command that waited is refused with the state that finds it, which is a good one
        good = kind == "state" and not refused and controller.states.foreign == before[2]
        if (refused and not good) or controller.states.foreign > before[2]:
            assert frozen(controller) == before[0], (kind, what)


def sensed(**values: Any) -> Bench:
    bench = Bench(str(CONFIG / "rrr.yaml"), sensed=True, command_timeout=0.0, **values)
    bench.command(
        0.0, JointTrajectoryPoint(accelerations=[1.0, 2.0, 3.0]), names=("qa1", "qa2", "qa3")
    )
    return bench


def readings() -> dict[str, float]:
    return {name: float(RRR.home[name]) for name in ("qa1", "qa2", "qa3", "qp1", "qp2", "qp3")}


SENSED = list(readings())

foreign_states = st.builds(
    lambda names, numbers, rates: JointState(name=names, position=numbers, velocity=rates),
    st.lists(st.sampled_from([*SENSED, "finger", ""]), max_size=7),
    rows(numbers, st.integers(0, 7)),
    rows(numbers, st.integers(0, 7)),
)


@thorough
@seed(5)
@given(
    bad=st.lists(foreign_states, max_size=4),
    order=st.permutations(SENSED),
    without=st.sampled_from(["", *SENSED[3:]]),
)
def test_a_sensed_robot_reads_the_next_good_state_as_if_no_other_had_come(bad, order, without):
    from robot_dynamics.ros.feed_forward.joint_states import JointStateReader
    from robot_dynamics.ros.feed_forward.refusal import RefusedError

    here = readings()
    there = [name for name in order if name != without]
    good = JointState(name=there, position=[here[n] for n in there], velocity=[0.0] * len(there))
    reader = JointStateReader(SENSED, SENSED[3:])
    reader.read(good)
    for message in bad:
        before = frozen(reader)
        try:
            reader.read(copy.deepcopy(message))
        except RefusedError:
            assert frozen(reader) == before
        q, qd = reader.read(good)
        expected = [math.nan if name == without else here[name] for name in SENSED]
        np.testing.assert_array_equal(q, expected)
        np.testing.assert_array_equal(np.isnan(qd), np.isnan(expected))
        assert reader.missing == ((without,) if without else ())


def test_a_foreign_state_neither_ends_a_sensed_node_nor_swaps_its_sensors():
    here = readings()
    bad = JointState(name=["qa1", "qa2", "qa3", "qp2", "qp1"], position=[0.0], velocity=[0.0])
    shorter = JointState(name=["qa1", "qa2", "qa3"], position=[0.0], velocity=[0.0])
    expected = sensed().state(0.01, list(here.values()), np.zeros(6), names=tuple(here))
    for foreign in (bad, shorter):
        bench = sensed()
        bench.state(0.01, list(here.values()), np.zeros(6), names=tuple(here))
        foreign.header.stamp = stamp(0.02)
        assert bench.controller.state(foreign, at(0.02)) is None
        assert bench.rejected() == {"joint_states: wrong length": 1}
        found = bench.state(0.03, list(here.values()), np.zeros(6), names=tuple(here))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        # the same names again, which nothing of the refused ones may have made known
        names = [*SENSED[:3], "qp2", "qp1", "qp3"]
        found = bench.state(0.04, [here[n] for n in names], np.zeros(6), names=tuple(names))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
