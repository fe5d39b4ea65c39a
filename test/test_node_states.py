# SPDX-License-Identifier: Apache-2.0
"""States that come in parts, or lack some fields: merged by name, and derived."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from node_bench import Bench as AnyBench
from node_bench import at, close, point, stamp
from robots import CONFIG
from sensor_msgs.msg import JointState
from test_node_behaviour import PENDULUM, torque
from trajectory_msgs.msg import JointTrajectory

import robot_dynamics as rd
from robot_dynamics.description import load_urdf_text
from robot_dynamics.ros.feed_forward.derivative import Derivative
from robot_dynamics.ros.feed_forward.diagnostics import Diagnosis
from robot_dynamics.ros.feed_forward.joint_states import JointStateReader
from robot_dynamics.ros.feed_forward.parameters import Settings
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.feed_forward.stamps import SECOND, Stamps
from robot_dynamics.ros.feed_forward.torque_model import Model, ModelSpec

NAMES = ("theta1", "d2")


@pytest.fixture(scope="module")
def polar() -> rd.InverseDynamics:
    return rd.InverseDynamics(rd.load(CONFIG / "polar.yaml"))


class Polar(AnyBench):
    def __init__(self, **values):
        super().__init__(str(CONFIG / "polar.yaml"), **values)
        self.command(0.0, point(qdd=[2.0, 1.0]), names=NAMES)


@pytest.mark.parametrize("joints", [NAMES, NAMES[::-1]])
def test_a_state_stays_as_it_was_read_when_its_message_is_filled_anew(joints):
    message = JointState(name=list(NAMES), position=[0.7, 0.1], velocity=[0.2, 0.3])
    q, qd = JointStateReader(joints).read(message)
    message.position[0] = message.velocity[1] = 5.0
    k = list(map(NAMES.index, joints))
    assert q.tolist() == [[0.7, 0.1][i] for i in k]
    assert qd.tolist() == [[0.2, 0.3][i] for i in k]


# In parts


def test_parts_make_one_state_each_with_its_own_stamps(polar):
    bench = Polar(merge_states=True)
    assert bench.state(0.10, 0.7, 0.1, names=["d2"]) is None
    close(
        bench.state(0.11, 0.3, 0.2, names=["theta1"], stamped=0.05),
        *polar([0.3, 0.7], [0.2, 0.1], [2.0, 1.0]),
    )
    # the other publisher's next one, stamped before the newest of all
    close(
        bench.state(0.13, 0.8, 0.0, names=["finger", "d2"][1:], stamped=0.12),
        *polar([0.3, 0.8], [0.2, 0.0], [2.0, 1.0]),
    )
    close(
        bench.state(0.14, 0.4, 0.0, names=["theta1"], stamped=0.06),
        *polar([0.4, 0.8], [0.0, 0.0], [2.0, 1.0]),
    )
    # and the same one is not taken twice out of order
    assert bench.state(0.15, 9.9, 0.0, names=["theta1"], stamped=0.04) is None
    assert bench.rejected() == {
        "joint_states: missing joint": 1,
        "joint_states: old stamp": 1,
    }


def test_a_joint_that_was_told_of_too_long_ago_is_missing_and_named(polar):
    bench = Polar(merge_states=True, max_age=0.5, command_timeout=0.0)
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.55, 0.3, 0.2, names=["theta1"]) is not None
    assert bench.state(0.65, 0.3, 0.2, names=["theta1"]) is None
    assert bench.rejected() == {"joint_states: joint too old": 1}
    assert "the newest reading of 'd2' is 0.550 s old" in bench.log[-1]
    ages = Diagnosis(0.0).report(bench.controller, False, at(0.7), 1.0).values
    assert ages["age of d2 (s)"] == "0.600"
    bench.state(0.7, 0.9, 0.0, names=["d2"])
    close(bench.state(0.71, 0.3, 0.2, names=["theta1"]), *polar([0.3, 0.9], [0.2, 0.0], [2.0, 1.0]))


def test_the_age_of_a_part_is_by_the_clock_whatever_the_stamp_of_the_newest(polar):
    bench = Polar(merge_states=True, max_age=0.5, command_timeout=0.0)
    bench.state(0.0, 0.7, 0.1, names=["d2"])
    assert bench.state(0.6, 0.3, 0.2, names=["theta1"], stamped=0.4) is None
    assert bench.rejected() == dict.fromkeys(
        ("joint_states: missing joint", "joint_states: joint too old"), 1
    )


def test_a_part_is_out_of_order_however_far_its_publishers_clock_is_behind():
    bench = Polar(merge_states=True, max_age=0.0)
    bench.state(50.0, [0.3, 0.7], [0.2, 0.1], names=NAMES, stamped=5.0)
    assert bench.state(50.1, 0.3, 0.2, names=["theta1"], stamped=4.9) is None
    assert bench.rejected() == {"joint_states: old stamp": 1}


def test_parts_from_before_whole_states_are_not_taken_up_again(polar):
    bench = Polar(merge_states=True, max_age=0.0, command_timeout=0.0)
    bench.state(0.0, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    controller, merged = bench.controller, bench.settings
    controller.settings = merged.changed({"merge_states": False})
    bench.state(0.1, [0.3, 0.9], [0.2, 0.1], names=NAMES)
    controller.settings = merged
    assert bench.state(0.2, 0.3, 0.2, names=["theta1"]) is None
    bench.state(0.3, 0.8, 0.0, names=["d2"])
    # without a largest age, whenever they came
    close(bench.state(9e3, 0.4, 0.2, names=["theta1"]), *polar([0.4, 0.8], [0.2, 0], [2.0, 1.0]))


def test_a_part_that_is_refused_leaves_nothing_behind(polar):
    bench = Polar(merge_states=True)
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.2, math.nan, 0.1, names=["d2"]) is None
    assert bench.state(0.2, [1.0, 2.0], 0.1, names=["d2", "theta1"]) is None
    assert bench.state(0.2, [1.0, 2.0, 3.0], [0.0] * 3, names=["theta1", "d2", "d2"]) is None
    assert "'d2' appears twice" in bench.log[-1]
    close(bench.state(0.21, 0.3, 0.2, names=["theta1"]), *polar([0.3, 0.7], [0.2, 0.1], [2.0, 1.0]))


def test_a_part_without_a_driven_joint_makes_no_torque_of_its_own():
    bench = AnyBench(str(CONFIG / "polar.yaml"), joints=["theta1"], merge_states=True)
    bench.command(0.0, point(qdd=2.0), names=["theta1"])
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.11, 0.9, 0.0, names=["d2"]) is None
    assert not bench.rejected()


def test_after_a_clock_that_was_set_back_every_joint_has_to_be_told_of_again():
    bench = Polar(merge_states=True, max_age=0.0)
    bench.state(10.0, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    bench.controller.clock_jumped_back(at(0.0))
    assert bench.state(0.1, 0.3, 0.2, names=["theta1"]) is None
    assert bench.rejected() == {"joint_states: missing joint": 1}
    assert "contained joint 'd2' yet" in bench.log[-1]


def test_an_empty_message_is_no_part():
    bench = Polar(merge_states=True)
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.2, [], [], names=[]) is None
    assert bench.rejected() == {"joint_states: missing joint": 1}


def test_without_merging_a_part_is_refused():
    bench = Polar()
    bench.state(0.1, [0.3, 0.7], [0.2, 0.1], names=NAMES)
    assert bench.state(0.2, 0.3, 0.2, names=["theta1"]) is None


# Derived


def test_a_derivative_is_exact_on_a_straight_line_and_late_by_its_filter_on_others():
    constant, step = 0.05, 0.001
    found = Derivative.begun(np.zeros(2), 0)
    times = np.arange(step, 1.0, step)
    for t in times:
        x = np.array([3.0 * t, math.sin(2 * t)])
        found = found.next(x, round(t * 1e9), constant)
    t = times[-1] - constant - step / 2
    np.testing.assert_allclose(found.value, [3.0, 2 * math.cos(2 * t)], atol=0.01)


def test_a_derivative_begins_anew_after_a_gap_and_when_time_goes_back():
    first = Derivative.begun(np.zeros(1), 10**9).next(np.ones(1), 10**9 + 10**7, 0.0)
    np.testing.assert_allclose(first.value, [100.0])
    assert first.next(np.ones(1), 3 * 10**9, 0.0).value is None
    assert first.next(np.ones(1), 10**9, 0.0).value is None
    # the same moment twice says nothing new
    assert first.next(np.full(1, 9.0), first.time, 0.0) is first


@pytest.mark.parametrize("velocity", [[], [math.nan]])
def test_rates_that_nobody_tells_are_refused_by_the_cause_or_derived(velocity):
    def message(now: float, q: float) -> JointState:
        found = JointState(name=["swing"], position=[q], velocity=velocity)
        found.header.stamp = stamp(now)
        return found

    bench = AnyBench(PENDULUM)
    bench.accelerate(0.0, 3.0)
    assert bench.controller.state(message(0.01, 0.4), at(0.01)) is None
    assert "missing_velocities" in bench.log[-1]

    bench = AnyBench(PENDULUM, missing_velocities="derive", derivative_filter=0.0)
    bench.accelerate(0.0, 3.0)
    assert bench.controller.state(message(0.01, 0.4), at(0.01)) is None
    assert bench.rejected() == {"joint_states: no velocities yet": 1}
    found = bench.controller.state(message(0.02, 0.41), at(0.02))
    np.testing.assert_allclose(found.values, [torque(0.41, 1.0, 3.0)], rtol=1e-9)
    # by the short way over the seam: this joint turns forever
    found = bench.controller.state(message(0.03, 0.42 - 2 * math.pi), at(0.03))
    np.testing.assert_allclose(found.values, [torque(0.42, 1.0, 3.0)], rtol=1e-9)
    told = Diagnosis(0.0).report(bench.controller, False, at(0.03), 1.0).values
    assert told["derived velocities are delayed by (s)"] == "0.0050"


def test_the_rates_of_parts_are_derived_from_one_to_the_next_of_each(polar):
    bench = Polar(merge_states=True, missing_velocities="derive", derivative_filter=0.0)
    q = np.array([[0.3, 0.7], [0.301, 0.702], [0.304, 0.703], [0.305, 0.707]])
    for k, row in enumerate(q):
        for j, name in enumerate(NAMES):
            found = bench.state(0.01 * k + 0.005 * j, row[j], math.nan, names=[name])
            if k > 1:
                expected = np.where([True, j], row, q[k - 1])
                before = np.where([True, j], q[k - 1], q[k - 2])
                tau = polar(expected, (expected - before) / 0.01, [2.0, 1.0])
                np.testing.assert_allclose(found, tau, rtol=1e-9)


def test_rates_that_are_told_are_not_derived_and_a_position_that_is_none_is_refused():
    bench = AnyBench(PENDULUM, missing_velocities="derive")
    bench.accelerate(0.0, 3.0)
    close(bench.state(0.01, 0.4, 0.2), torque(0.4, 0.2, 3.0))
    close(bench.state(0.02, 0.9, 0.2), torque(0.9, 0.2, 3.0))
    assert bench.state(0.03, math.nan, 0.2) is None
    assert bench.state(0.04, 0.9, math.inf) is None


def test_rates_that_are_told_no_longer_are_derived_at_once():
    bench = AnyBench(PENDULUM, missing_velocities="derive", derivative_filter=0.01)
    bench.accelerate(0.0, 3.0)
    close(bench.state(0.01, 0.4, 0.2), torque(0.4, 0.2, 3.0))
    # T dv/dt + v = dx/dt from the rate that was told
    rate = 0.2 + 0.5 * (0.6 - 0.2)
    found = bench.state(0.02, 0.4 + 0.01 * 0.6, math.nan)
    np.testing.assert_allclose(found, [torque(0.406, rate, 3.0)], rtol=1e-9)


def test_accelerations_of_a_stream_of_points_are_the_derivative_of_its_rates():
    bench = AnyBench(PENDULUM, missing_accelerations="derive", derivative_filter=0.0)
    # a first point says nothing about accelerations
    bench.command(0.0, point(q=0.0, qd=0.0), stamped=0.0)
    assert bench.state(0.0, 0.4, 0.2) is None
    assert bench.rejected() == {"command: no accelerations yet": 1}
    bench.controller.tally.rejected.clear()
    for now, rate, expected in ((0.01, 0.03, 3.0), (0.02, 0.01, -2.0)):
        # arrivals are never as regular
        bench.command(now + rate / 10, point(q=0.0, qd=rate), stamped=now)
        close(bench.state(now + rate / 10, 0.4, 0.2), torque(0.4, 0.2, expected))
    # one that is refused counts for nothing
    bench.command(0.03, point(q=0.0, qd=1e3), stamped=0.03)
    bench.command(0.04, point(q=0.0, qd=0.03), stamped=0.04)
    np.testing.assert_allclose(bench.state(0.04, 0.4, 0.2), [torque(0.4, 0.2, 1.0)], rtol=1e-9)
    bench.command(0.05, point(q=0.0))
    assert bench.rejected() == {"command: acceleration too high": 1, "command: no velocities": 1}
    # nor is anything known of before a jump of the clock
    bench.controller.clock_jumped_back(at(0.03))
    bench.command(0.05, point(q=0.0, qd=0.02), stamped=0.05)
    assert bench.rejected()["command: no accelerations yet"] == 1


def unstamped(bench: AnyBench, now: float, q: float):
    """The torque of a state without stamp and rate."""
    return bench.controller.state(JointState(name=["swing"], position=[q]), at(now))


RATE = 0.2


def after_a_stall(constant: float) -> list[tuple[float, float, float]]:
    """(arrival, position, torque or NaN for none) where states of 100 Hz without stamps wait
    while the node is stopped for 3 s: five of them are read within microseconds afterwards."""
    bench = AnyBench(
        PENDULUM, missing_velocities="derive", derivative_filter=constant, command_timeout=0.0
    )
    bench.accelerate(0.0, 3.0)
    sent = np.arange(0.0, 5.0, 0.01)
    arrivals = []
    for k, t in enumerate(sent):
        if 1.0 < t < 3.995:
            if t < 3.945:
                continue  # lost: the queue is no longer than five
            t = 4.0 - 1e-3 + 5e-5 * (k % 5)
        arrivals.append((t, RATE * sent[k]))
    found = []
    for t, q in arrivals:
        out = unstamped(bench, t, q)
        found.append((t, q, math.nan if out is None else float(out.values[0])))
    return found


@pytest.mark.parametrize("merged", [False, True])
def test_rates_without_stamps_are_by_the_times_of_sending_however_late_they_are_read(merged):
    bench = AnyBench(
        PENDULUM,
        missing_velocities="derive",
        derivative_filter=0.0,
        merge_states=merged,
        command_timeout=0.0,
        max_age=0.0,
    )
    bench.accelerate(0.0, 3.0)
    another_clock, delay, known = 10**12, np.random.default_rng(0).exponential(0.05, 200), 0
    for k, now in enumerate(np.maximum.accumulate(0.01 * np.arange(200) + delay)):
        if k % 40 in range(5):
            continue  # lost
        message = JointState(name=["swing"], position=[RATE * 0.01 * k])
        out = bench.controller.state(message, at(now), another_clock + 10**7 * k)
        if out is not None:
            known += 1
            # the mean period counts those that were lost, too
            least, most = (torque(RATE * 0.01 * k, share * RATE, 3.0) for share in (0.8, 1 + 1e-9))
            assert least < out.values[0] < most, k
    assert known > 100


def test_without_any_times_nothing_is_derived_and_what_is_told_is_used():
    bench = AnyBench(PENDULUM, missing_velocities="derive", missing_accelerations="derive")
    for k in range(40):
        message = JointTrajectory(joint_names=["swing"], points=[point(q=0.0, qd=0.03 * k)])
        bench.controller.command(message, at(0.01 * k), 0)
        assert (
            bench.controller.state(JointState(name=["swing"], position=[0.4]), at(0.0), 0) is None
        )
    assert bench.rejected() == {"command: no stamp": 40, "joint_states: no stamp": 40}
    bench.command(0.41, point(q=0.0, qd=0.0, qdd=3.0))
    message = JointState(name=["swing"], position=[0.4], velocity=[0.2])
    close(bench._values(bench.controller.state(message, at(0.41), 0)), torque(0.4, 0.2, 3.0))


def test_accelerations_without_stamps_are_by_the_times_of_sending():
    bench = AnyBench(PENDULUM, missing_accelerations="derive", derivative_filter=0.0)
    for k in range(60):
        now, names = 0.02 * (k // 2), ["swing"]  # two at a time
        message = JointTrajectory(joint_names=names, points=[point(q=0.0, qd=0.03 * k)])
        bench.controller.command(message, at(now), 10**12 + 10**7 * k)
        if k > 21:
            close(bench.state(now + 1e-3 * (k % 2), 0.4, 0.2), torque(0.4, 0.2, 3.0))
    assert bench.controller.commands.count > 30


@pytest.mark.parametrize("constant", [0.0, 0.02])
def test_after_a_stall_rates_of_states_without_stamps_are_right_or_missing(constant):
    found = after_a_stall(constant)
    times, q, torques = np.array(found).T
    expected = np.array([torque(each, RATE, 3.0) for each in q])
    known = ~np.isnan(torques)
    assert not known[times < 0.199].any(), "how often they come is not known yet"
    assert known[(times > 0.22) & (times < 1.0)].all()
    burst = (times > 3.9) & (times < 4.0)
    assert burst.sum() == 5
    assert not known[burst].any(), "they were not measured when they came"
    assert known[times > 4.22].all(), "the pause is forgotten after so many states"
    np.testing.assert_allclose(torques[known], expected[known], rtol=1e-9)


def test_two_samples_within_microseconds_make_no_slope():
    first = Derivative.begun(np.zeros(1), 10**9)
    sooner = first.next(np.full(1, 1e-4), 10**9 + 50_000, 0.0)
    assert sooner.value is None
    np.testing.assert_allclose(sooner.next(np.full(1, 0.01), 10**9 + 10**7, 0.0).value, [1.0])
    # once the period is known, less than half of it is too soon
    usual = first
    for k in range(1, 10):
        usual = usual.next(np.full(1, 0.01 * k), 10**9 + k * 10**7, 0.0)
    again = usual.next(np.full(1, 0.2), usual.time + 3 * 10**6, 0.0)
    np.testing.assert_allclose(again.value, [1.0])
    np.testing.assert_allclose(again.next(np.full(1, 0.1), usual.time + 10**7, 0.0).value, [1.0])


def test_a_source_that_becomes_quicker_or_slower_is_followed():
    found, t, x = Derivative.begun(np.zeros(1), 0), 0, 0.0
    for step in [10**7] * 40 + [10**6] * 60 + [5 * 10**7] * 30:
        t, x = t + step, x + 2.0 * step / 1e9
        found = found.next(np.full(1, x), t, 0.0)
        np.testing.assert_allclose(found.value, [2.0], rtol=1e-9)
    assert found.period == 5 * 10**7


def derived(max_acceleration: float = 0.0) -> Polar:
    """Three joints' worth of a robot at rest whose rates come from positions."""
    bench = Polar(
        missing_velocities="derive", max_acceleration=max_acceleration, command_timeout=0.0
    )
    for k in range(30):
        assert (positions(bench, 0.01 * k, [0.3, 0.7]) is None) == (k == 0)
    return bench


def positions(bench: Polar, now: float, q: list[float], qd: list[float] = ()):
    message = JointState(name=list(NAMES), position=q, velocity=list(qd))
    message.header.stamp = stamp(now)
    return bench._values(bench.controller.state(message, at(now)))


@pytest.mark.parametrize("max_acceleration", [0.0, 1000.0])
@pytest.mark.parametrize(
    ("q", "qd"),
    [
        ([3.0, -2.0], [math.inf, 0.0]),
        ([3.0, math.nan], []),
        ([3.0, 1.0], [0.0]),
        ([math.inf, 1.0], []),
        ([1000.0, 0.7], []),
        ([0.3, -1e308], []),
        ([0.3, 1e308], [math.nan, math.nan]),
    ],
)
def test_a_state_that_is_refused_leaves_nothing_in_derived_rates(polar, q, qd, max_acceleration):
    bench = derived(max_acceleration)
    assert positions(bench, 0.30, q, qd) is None
    assert sum(bench.rejected().values()) == 2, "the first state of all, and this one"
    for k in range(31, 40):
        close(positions(bench, 0.01 * k, [0.3, 0.7]), *polar([0.3, 0.7], [0.0, 0.0], [2.0, 1.0]))


def test_a_first_position_that_is_none_silences_for_half_a_second_at_most(polar):
    bench = Polar(missing_velocities="derive", command_timeout=0.0)
    assert positions(bench, 0.0, [0.3, 1e308]) is None
    answered = []
    for t in np.arange(0.01, 0.8, 0.01):
        bench.command(t, point(qdd=[2.0, 1.0]), names=NAMES)
        if positions(bench, t, [0.3, 0.7]):
            answered.append(t)
    assert answered[0] <= 0.53
    assert len(answered) >= 26
    close(positions(bench, 0.8, [0.3, 0.7]), *polar([0.3, 0.7], [0.0, 0.0], [2.0, 1.0]))


def test_a_position_that_jumps_for_good_is_believed_after_half_a_second(polar):
    bench = derived()
    there = [0.3 + 400.0, 0.7]
    answered = [t for t in np.arange(0.30, 1.2, 0.01) if positions(bench, t, there)]
    assert 0.79 < answered[0] < 0.83
    close(positions(bench, 1.2, there), *polar(there, [0.0, 0.0], [2.0, 1.0]))
    assert "joint_states: jump" in bench.rejected()


def test_after_a_clock_that_was_set_back_rates_begin_anew():
    bench = derived()
    bench.controller.clock_jumped_back(at(0.285))
    assert positions(bench, 0.294, [0.5, 0.7]) is None
    assert "joint_states: no velocities yet" in bench.rejected()


# In parts: whatever comes, in whatever order


class Oracle:
    """What each joint said last; knows nothing of the code."""

    def __init__(self, max_age: float):
        self.max_age, self.known = max_age, {}

    def hear(self, now: float, stamped: float, parts: dict[str, tuple[float, float]]):
        """(q, qd) that a torque has to belong to; None: there must be none."""
        if abs(now - stamped) > self.max_age:
            return None
        for name in parts:
            _, then, came = self.known.get(name, (None, -1e9, -1e9))
            if stamped < then and now - came < 1.0:
                return None
        if not np.isfinite(list(parts.values())).all():
            return None
        self.known |= {name: (value, stamped, now) for name, value in parts.items()}
        if any(n not in self.known or now - self.known[n][1] > self.max_age for n in NAMES):
            return None
        return np.array([self.known[name][0] for name in NAMES]).T


def test_parts_in_any_order_are_answered_where_every_joint_is_recent_and_nowhere_else(polar):
    answered = unanswered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        max_age = float(rng.choice([0.05, 0.2, 0.5]))
        bench, oracle = Polar(merge_states=True, max_age=max_age, command_timeout=0.0), None
        oracle, now = Oracle(max_age), 0.0
        periods = rng.choice([0.002, 0.01, 0.04, 0.3], 2)
        due, pauses = np.array([0.01, 0.012]), rng.uniform(0.1, 3.0, (2, 2))
        for _ in range(60):
            k = int(np.argmin(due))
            now = float(max(now, due[k]))
            due[k] += periods[k] * rng.uniform(0.5, 1.5)
            if pauses[k, 0] < due[k] < pauses[k, 0] + pauses[k, 1]:
                due[k] = pauses[k, 0] + pauses[k, 1]
            names = [NAMES[k]] if rng.random() < 0.9 else list(NAMES)
            values = rng.uniform(-1, 1, (2, len(names)))
            if rng.random() < 0.05:
                values[rng.integers(2), rng.integers(len(names))] = rng.choice([math.nan, math.inf])
            stamped = now - float(rng.choice([0.0, 0.001, 0.03, 0.4], p=[0.6, 0.2, 0.15, 0.05]))
            parts = dict(zip(names, values.T, strict=True))
            # whole nanoseconds, as stamps have them
            now, stamped = round(now, 6), round(stamped, 6)
            state = oracle.hear(now, stamped, parts)
            if state is not None or now > 0.05:
                bench.command(now, point(qdd=[2.0, 1.0]), names=NAMES)
            found = bench.state(now, *values, names=names, stamped=stamped)
            assert (found is None) == (state is None), (seed, now, bench.log[-3:])
            if state is None:
                unanswered += 1
                continue
            answered += 1
            expected = polar(*state, [2.0, 1.0])
            assert (abs(found - expected) <= 1e-12 * (1 + abs(expected))).all(), (seed, now)
    assert min(answered, unanswered) > 2_000


def test_two_publishers_that_pause_in_turn_go_on_together(polar):
    bench = Polar(merge_states=True, max_age=0.5, command_timeout=0.0)
    for k in range(40):
        bench.state(0.05 * k, 0.3, 0.2, names=["theta1"])
        if k < 10:
            bench.state(0.05 * k, 0.7, 0.1, names=["d2"])
    # both were refused for each other's age, and both are recent now
    assert bench.state(2.3, 0.8, 0.0, names=["d2"]) is not None
    bench.controller.tally.rejected.clear()
    bench.state(3.0, 0.8, 0.0, names=["d2"])
    bench.command(3.01, point(qdd=[2.0, 1.0]), names=NAMES)
    close(bench.state(3.01, 0.4, 0.2, names=["theta1"]), *polar([0.4, 0.8], [0.2, 0], [2.0, 1.0]))


# Of one robot


def swinging(joint: str = "continuous", axis: str = "0 1 0", rest: str = "") -> str:
    """The pendulum, with another joint of the same name."""
    return (
        PENDULUM.replace('type="continuous"', f'type="{joint}"')
        .replace('<axis xyz="0 1 0"/>', f'<axis xyz="{axis}"/>')
        .replace("</joint>", f"{rest}</joint>")
    )


LIMIT = '<limit lower="-4" upper="4" velocity="9" effort="1e3"/>'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (swinging("revolute", rest=LIMIT), swinging()),
        (swinging(), swinging("revolute", rest=LIMIT)),
        (swinging(), swinging("prismatic", rest=LIMIT)),
        (swinging(), swinging(axis="0 -1 0")),
        (swinging(), swinging(rest='<origin xyz="0 0 0" rpy="0 0.3 0"/>')),
        (
            swinging("revolute", rest=LIMIT),
            swinging("revolute", rest=LIMIT.replace('velocity="9"', 'velocity="2"')),
        ),
    ],
)
def test_what_was_said_of_a_joint_is_not_said_of_another_one_of_its_name(before, after):
    derive = dict.fromkeys(("missing_velocities", "missing_accelerations"), "derive")
    bench = AnyBench(before, **derive, derivative_filter=0.0, command_timeout=0.0)
    bench.accelerate(0.0, 3.0)
    for k in range(5):
        out = bench.controller.state(rateless(0.01 * k, 3.0 + 0.02 * k), at(0.01 * k))
    assert out is not None
    bench.command(0.04, point(qd=0.0))
    bench.controller.adopt(model_of(after, bench.settings))
    assert bench.controller.commands.phase == "waiting"
    bench.command(0.05, point(qd=0.01))
    assert bench.rejected()["command: no accelerations yet"] == 2, "a first one of each"
    # a joint that turned forever may be seen a whole turn further
    # and its publisher's clock may be a little behind
    assert bench.controller.state(rateless(0.02, 3.1 - 2 * math.pi), at(0.05)) is None
    bench.accelerate(0.06, 1.0)
    bench.controller.tally.rejected.clear()
    found = bench.controller.state(rateless(0.03, 3.102 - 2 * math.pi), at(0.064))
    oracle = rd.InverseDynamics(load_urdf_text(after))
    np.testing.assert_allclose(found.values, oracle([3.102 - 2 * math.pi], [0.2], [1.0]), rtol=1e-9)


def test_another_mass_is_the_same_robot_and_the_command_goes_on():
    bench = AnyBench(PENDULUM, command_timeout=0.0)
    bench.accelerate(0.0, 3.0)
    assert bench.state(0.01, 0.4, 0.2) is not None
    heavy = PENDULUM.replace('damping="', 'friction="0.5" damping="').replace(
        '<mass value="', '<mass value="1'
    )
    bench.controller.adopt(model_of(heavy, bench.settings))
    oracle = rd.InverseDynamics(load_urdf_text(heavy))
    close(bench.state(0.02, 0.4, 0.2), *oracle([0.4], [0.2], [3.0]))


def rateless(now: float, q: float) -> JointState:
    found = JointState(name=["swing"], position=[q])
    found.header.stamp = stamp(now)
    return found


def model_of(text: str, settings: Settings) -> Model:
    return Model(ModelSpec(load_urdf_text(text), settings))


@pytest.mark.parametrize("seed", range(60))
def test_however_a_node_is_held_up_no_arrival_times_make_a_quick_rate(seed):
    """It sleeps at random, and then reads what waited in a queue of ten within microseconds."""
    rng = np.random.default_rng(seed)
    period = float(rng.choice([0.001, 0.002, 0.01, 0.02]))
    often, long = rng.choice([0.05, 0.2, 0.5]), rng.choice([3, 10, 30, 300]) * period
    rate, now, sent, derivative, values = 1.0, 0.0, 0, None, []
    for _ in range(400):
        now += rng.exponential(long) if rng.random() < often else period * rng.uniform(0, 1)
        first, sent = sent, int(now / period)
        for k in range(max(first, sent - 10), sent):
            now += rng.uniform(2e-5, 4e-4)
            x, ns = np.array([rate * k * period]), round(now * 1e9)
            if derivative is None:
                derivative = Derivative.begun(x, ns)
            else:
                derivative = derivative.next(x, ns, 0.0, stamped=False)
            if derivative.value is not None:
                values.append(float(derivative.value[0]))
    # what a queue hides of the time between two samples is at most as much as the samples show
    assert max(values, default=0.0) < 2.0 * rate
    assert min(values, default=0.0) >= 0.0


def test_a_message_without_a_stamp_lets_no_older_one_pass():
    stamps, now = Stamps(), 100 * SECOND
    ahead = now + SECOND // 4
    stamps.accept(stamps.checked(ahead, now, 0.5), now)
    stamps.accept(stamps.checked(0, now, 0.5), now)
    with pytest.raises(RefusedError, match="before the newest one"):
        stamps.checked(now + SECOND // 8, now, 0.5)
    assert stamps.checked(ahead, now, 0.5) == ahead
    # a new start, after a pause, is one all the same
    later = now + 2 * SECOND
    stamps.accept(stamps.checked(later - SECOND // 4, later, 0.5), later)
    assert stamps.checked(later - SECOND // 8, later, 0.5) == later - SECOND // 8
