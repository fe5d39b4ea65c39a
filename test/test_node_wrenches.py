# SPDX-License-Identifier: Apache-2.0
"""Wrenches that act on links from outside: part of the torques as long as they last, and no
longer."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trajectory_msgs", reason="ROS messages are not installed: extra `ros`")

from geometry_msgs.msg import WrenchStamped
from node_bench import Bench as AnyBench
from node_bench import at, close, point, stamp
from sensor_msgs.msg import JointState
from test_node_behaviour import ARM as LENGTH
from test_node_behaviour import PENDULUM as BARE
from test_node_behaviour import torque

import robot_dynamics as rd
from robot_dynamics.codegen import Function
from robot_dynamics.ros.feed_forward.diagnostics import Diagnosis
from robot_dynamics.ros.feed_forward.process import Draft
from robot_dynamics.ros.feed_forward.torque_model import Model
from robot_dynamics.ros.feed_forward.wrenches import MOST_LINKS

CONFIG = Path(__file__).resolve().parents[1] / "config"
FORCE, MOMENT = 7.0, 3.0

TIP = f"""
  <link name="tip"/>
  <joint name="mount" type="fixed">
    <parent link="arm"/><child link="tip"/><origin xyz="0 0 -{LENGTH}"/>
  </joint>
</robot>"""
PENDULUM = BARE.replace("</robot>", TIP)


def weight(q: float) -> float:
    return torque(q, 0.0, 0.0)


def wrench(link: str, values, stamped: float | None = None) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = link
    if stamped is not None:
        message.header.stamp = stamp(stamped)
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = map(float, values)
    return message


class Bench(AnyBench):
    """A node whose model is built at once for the links that wrenches act on."""

    def __init__(self, description: str = PENDULUM, **values):
        super().__init__(description, **values)

    def push(self, now: float, link: str, values, stamped: float | None = None) -> None:
        asked = self.controller.wrench(wrench(link, values, stamped), at(now))
        if asked is not None:
            self.build(asked)

    def build(self, *links: str) -> None:
        old = self.controller.model
        model = Model(replace(old.spec, wrench_links=old.spec.wrench_links | set(links)))
        model.continue_from(old)
        self.controller.adopt(model)


TIP_FORCE = (FORCE, 0.0, 0.0, 0.0, 0.0, 0.0)
"""On the tip's own x axis: its lever is the arm, whatever the angle"""


def test_a_wrench_is_what_acts_on_the_link_at_its_origin_on_its_axes():
    bench = Bench()
    bench.accelerate(0.0, 0.0)
    close(bench.state(0.1, 1.1), weight(1.1))
    # r × f = (-l z) × (f x) = -l f y: it pushes back, so the motor gives l f more
    bench.push(0.1, "tip", TIP_FORCE)
    close(bench.state(0.15, 1.1), weight(1.1) + LENGTH * FORCE)
    # a moment that helps makes the torque less; the newest of a link counts
    bench.push(0.16, "tip", (0, 0, 0, 9.0, MOMENT, 9.0))
    close(bench.state(0.2, 1.1), weight(1.1) - MOMENT)
    # two links
    bench.push(0.21, "arm", (FORCE, 0, FORCE, 0, MOMENT, 0))
    close(bench.state(0.25, 1.1), weight(1.1) - 2 * MOMENT)


def test_a_wrench_of_zero_takes_it_away():
    bench = Bench()
    bench.accelerate(0.0, 0.0)
    bench.push(0.1, "tip", TIP_FORCE)
    bench.push(0.1, "arm", (0, 0, 0, 0, MOMENT, 0))
    bench.push(0.2, "tip", np.zeros(6))
    close(bench.state(0.3, 0.4), weight(0.4) - MOMENT)
    # what comes late is not put back
    bench.push(0.4, "arm", np.zeros(6), stamped=0.4)
    bench.push(0.4, "arm", TIP_FORCE, stamped=0.3)
    assert bench.rejected() == {"wrench: old stamp": 1}
    close(bench.state(0.4, 0.4), weight(0.4))


@pytest.mark.parametrize("stamped", [None, 0.0])
def test_a_wrench_that_is_not_renewed_is_dropped_aloud(stamped):
    bench = Bench(max_age=0.3, command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    bench.push(0.0 if stamped is None else 0.2, "tip", TIP_FORCE, stamped)
    close(bench.state(0.29, 0.4), weight(0.4) + LENGTH * FORCE)
    assert not bench.log
    close(bench.state(0.31, 0.4), weight(0.4))
    (line,) = bench.log
    assert (
        line
        == "wrench on 'tip' dropped: the newest is 0.310 s old, expected at most max_age = 0.3 s"
    )


def test_it_is_said_where_no_state_asks_for_it_too():
    bench = Bench(max_age=0.3)
    bench.push(0.0, "tip", TIP_FORCE)
    bench.watch(0.29)
    assert not bench.log
    bench.watch(0.31)
    assert dict(bench.controller.tally.events) == {"wrench: over": 1}


def test_without_a_max_age_it_lasts():
    bench = Bench(max_age=0.0, command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    bench.push(0.0, "tip", TIP_FORCE, stamped=-100.0)
    close(bench.state(3600.0, 0.4), weight(0.4) + LENGTH * FORCE)


def test_torques_that_stay_downstream_have_no_wrench_in_them():
    bench = Bench(max_age=0.5, command_timeout=1.0)
    bench.accelerate(0.0, 0.0)
    bench.push(0.1, "tip", TIP_FORCE)
    close(bench.state(0.1, 0.4), weight(0.4) + LENGTH * FORCE)
    close(bench.controller.torques_if_hung(), weight(0.4))
    close(bench.watch(0.7), weight(0.4))

    bench = Bench(max_age=0.5, command_timeout=1.0)
    bench.accelerate(0.0, 0.0)
    bench.state(0.1, 0.4)
    bench.push(0.9, "tip", TIP_FORCE)
    close(bench.state(0.95, 0.4), weight(0.4) + LENGTH * FORCE)
    close(bench.state(1.1, 0.4), weight(0.4))
    assert bench.watch(2.0) is None, "it is at rest"

    bench = Bench()
    bench.accelerate(0.0, 0.0)
    bench.push(0.1, "tip", TIP_FORCE)
    bench.state(0.1, 0.4)
    close(bench.farewell(0.2), weight(0.4))


def test_a_wrench_waits_until_the_model_is_built_for_its_link():
    bench = Bench()
    bench.accelerate(0.0, 0.0)
    assert bench.controller.wrench(wrench("tip", TIP_FORCE), at(0.0)) == "tip"
    assert bench.controller.wrench(wrench("tip", TIP_FORCE), at(0.1)) == "tip"
    close(bench.state(0.1, 0.4), weight(0.4))
    bench.build("tip")
    assert bench.controller.wrench(wrench("tip", TIP_FORCE), at(0.2)) is None
    close(bench.state(0.2, 0.4), weight(0.4) + LENGTH * FORCE)


@pytest.mark.parametrize(
    ("robot", "link"), [("polar", "link2"), ("five_bar", "tool"), ("rrr", "platform")]
)
def test_a_model_that_was_built_for_a_link_builds_nothing_with_its_first_wrench(
    robot, link, monkeypatch
):
    bench = Bench(f"{CONFIG}/{robot}.yaml")
    bench.build(link)

    def refuse(*_, **__):
        raise AssertionError("something was built")

    monkeypatch.setattr(Function, "record", refuse)
    model = bench.controller.model
    closed = model.dynamics.closed
    q = np.full(len(model.read), 0.5) if closed is None else closed.home.q_r[: len(model.read)]
    assert model.wrench_torques({link: np.ones(6)}, q).any()


def test_a_wrench_of_zero_on_a_link_builds_nothing():
    assert Bench().controller.wrench(wrench("tip", np.zeros(6)), at(0.0)) is None


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("unknown link", wrench("world", TIP_FORCE), "not a moving link"),
        ("unknown link", wrench("\x1b\n", TIP_FORCE), "expected one of"),
        ("old stamp", wrench("tip", TIP_FORCE, -1.0), "1.100 s old"),
        ("future stamp", wrench("tip", TIP_FORCE, 2.0), "ahead of the clock"),
        *(
            ("not finite", wrench("tip", np.where(np.arange(6) == k, bad, 0.0)), "NaN or infinity")
            for k, bad in enumerate([math.nan, math.inf, -math.inf] * 2)
        ),
    ],
)
def test_a_bad_wrench_is_refused_in_one_line_and_the_last_good_one_stays(reason, message, words):
    bench = Bench()
    bench.accelerate(0.0, 0.0)
    bench.push(0.0, "tip", TIP_FORCE)
    assert bench.controller.wrench(message, at(0.1)) is None
    assert bench.rejected() == {f"wrench: {reason}": 1}
    (line,) = bench.log
    assert line.startswith("wrench dropped: ")
    assert words in line
    assert line.isprintable()
    close(bench.state(0.1, 0.4), weight(0.4) + LENGTH * FORCE)


def chain(links: int) -> str:
    parts = [
        f'<link name="l{k}"/><joint name="j{k}" type="fixed"><parent link="arm"/>'
        f'<child link="l{k}"/></joint>'
        for k in range(links)
    ]
    return PENDULUM.replace("</robot>", "".join(parts) + "</robot>")


def test_wrenches_act_on_so_many_links_and_no_more():
    bench = Bench(chain(MOST_LINKS))
    for k in range(MOST_LINKS):
        bench.controller.wrench(wrench(f"l{k}", TIP_FORCE), at(0.0))
    bench.controller.wrench(wrench("tip", TIP_FORCE), at(0.0))
    assert bench.rejected() == {"wrench: too many": 1}
    bench.controller.wrench(wrench("l4", TIP_FORCE), at(0.0))
    assert bench.rejected() == {"wrench: too many": 1}, "the newest of one of them"
    bench.controller.wrench(wrench("l3", np.zeros(6)), at(0.0))
    assert bench.controller.wrench(wrench("tip", TIP_FORCE), at(0.0)) == "tip"


def test_wrenches_go_with_the_clock_and_with_their_links():
    bench = Bench(max_age=0.0, command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    bench.push(0.0, "tip", TIP_FORCE)
    bench.controller.clock_jumped_back(at(0.0))
    assert bench.log == ["the clock jumped back: command and wrenches have ended; send a new one"]
    bench.accelerate(0.1, 0.0)
    close(bench.state(0.1, 0.4), weight(0.4))

    bench.push(0.2, "tip", TIP_FORCE)
    bench.push(0.2, "arm", TIP_FORCE)
    spec = bench.controller.model.spec
    bare = rd.load(PENDULUM.replace("tip", "hand"))
    bench.controller.adopt(Model(Draft(bare, spec.settings, {}, spec.wrench_links).spec()))
    assert bench.controller.model.spec.wrench_links == {"arm"}
    assert bench.log[1:] == ["wrench on arm, tip dropped: the description is of a different robot"]
    assert not bench.controller.wrenches.on
    bench.controller.release()
    assert not bench.controller.wrenches.on
    assert bench.controller.wrench(wrench("arm", TIP_FORCE), at(0.3)) is None
    assert bench.rejected() == {"wrench: no robot": 1}


TURNED = np.array([3.0, -2.0, 5.0, 0.7, -0.4, 0.9])


def test_a_link_of_the_same_name_is_another_robots_own():
    bench = Bench(max_age=0.0, command_timeout=0.0)
    bench.accelerate(0.0, 0.0)
    bench.push(0.0, "tip", TIP_FORCE)
    spec = bench.controller.model.spec
    assert 'xyz="0 1 0"' in PENDULUM
    turned = rd.load(PENDULUM.replace('xyz="0 1 0"', 'xyz="0 -1 0"'))
    bench.controller.adopt(Model(Draft(turned, spec.settings, {}, spec.wrench_links).spec()))
    assert bench.log == ["wrench on tip dropped: the description is of a different robot"]
    bench.accelerate(0.1, 0.0)
    close(bench.state(0.1, 0.4), weight(0.4))


@pytest.mark.parametrize(
    ("robot", "link", "values"),
    [
        ("polar", "link2", {}),
        ("three_axis", "bar3", {}),
        ("three_axis", "bar3", {"side": "drive"}),
        ("three_axis", "bar3", {"side": "gear"}),
        ("five_bar", "tool", {}),
        ("gough_stewart", "platform", {}),
        ("rrr", "platform", {}),
        ("rrr", "platform", {"sensed": True}),
    ],
)
def test_torques_have_what_the_wrench_takes_of_those_of_the_dynamics(robot, link, values):
    bench = Bench(f"{CONFIG}/{robot}.yaml", max_age=0.0, **values)
    mechanism = rd.load(CONFIG / f"{robot}.yaml")
    dynamics = rd.InverseDynamics(mechanism, sensed=values.get("sensed", False))
    actuated, k = dynamics.actuated_names, len(dynamics.joint_names)
    q, zero = np.linspace(0.3, 0.9, k), np.zeros(k)
    if dynamics.closed is not None:
        # beside home, the passive joints as they follow
        q_a = dynamics.closed.home.q_r[: len(actuated)] + 0.02 * np.arange(1, len(actuated) + 1)
        q = dynamics.closed.forward_kinematics(
            q_a if not values else dynamics.closed.home.q_r[:k]
        ).q_r[:k]
    R = dynamics.pose(q, link)[:3, :3]
    on_base = {link: np.concatenate([R @ TURNED[:3], R @ TURNED[3:]])}
    expected = dynamics(q, zero, zero, wrenches=on_base) - dynamics(q, zero, zero)
    assert abs(expected).max() > 1e-3
    if "side" in values:
        # one motor a joint: the power is the same on both sides of its gear
        ratio = {rotor.ratios[-1][0]: rotor.ratios[-1][1] for rotor in mechanism.rotors}
        expected = expected / [ratio[name] for name in actuated]

    bench.command(0.0, point(qdd=np.ones(len(actuated))), names=actuated)
    without = bench.state(0.01, q, zero, names=dynamics.joint_names)
    bench.push(0.02, link, TURNED)
    found = np.subtract(bench.state(0.03, q, zero, names=dynamics.joint_names), without)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_what_is_known_to_act_from_outside_is_no_residual():
    bench = Bench(residual=True, residual_filter=0.0)
    for time in (0.0, 0.01, 0.02):
        bench.push(time, "tip", TIP_FORCE)
        message = JointState(name=["swing"], position=[0.4], velocity=[0.0])
        message.effort = [weight(0.4) + LENGTH * FORCE]
        message.header.stamp = stamp(time)
        bench.controller.state(message, at(time))
    close(bench.controller.residual.value, 0.0)


def test_the_diagnostics_tell_where_wrenches_act():
    bench = Bench()

    def told() -> str | None:
        return (
            Diagnosis(0.0).report(bench.controller, False, at(0.0), 1.0).values.get("wrenches on")
        )

    assert told() is None
    bench.push(0.0, "tip", TIP_FORCE)
    bench.push(0.0, "arm", TIP_FORCE)
    assert told() == "arm, tip"


@pytest.mark.parametrize("limits", [[], [50.0]])
@pytest.mark.parametrize("size", [1e4, 1e12, 1e300])
def test_a_wrench_that_no_robot_could_bear_is_dropped_and_the_torques_go_on(size, limits):
    bench = Bench(effort_limits=limits)
    bench.accelerate(0.0, 0.0)
    bench.push(0.0, "tip", (size, 0.0, 0.0, 0.0, 0.0, 0.0))
    close(bench.state(0.1, 1.1), weight(1.1))
    assert bench.rejected() == {"wrench: implausible torque": 1}
    assert "the wrench on 'tip' would add" in bench.log[-1]
    assert not bench.controller.wrenches.on
    bench.push(0.1, "tip", TIP_FORCE)
    close(bench.state(0.1, 1.1), weight(1.1) + LENGTH * FORCE)


def test_a_wrench_that_came_in_an_impossible_state_is_checked_in_the_next():
    bench = Bench(f"{CONFIG}/rrr.yaml", residual=True)
    bench.build("platform")
    names, home = bench.controller.model.joints, bench.controller.model.home

    def state(now: float, q) -> list[float] | None:
        message = JointState(name=list(names), position=q.tolist(), velocity=[0.0] * 3)
        message.effort, message.header.stamp = [0.0] * 3, stamp(now)
        bench.command(now, point(qdd=[0.0] * 3), names=names)
        return bench._values(bench.controller.state(message, at(now)))

    still = state(0.0, home)
    bench.push(0.01, "platform", (1e9, 0, 0, 0, 0, 0))
    state(0.02, home + np.array([3.0, -3.0, 1.5]))
    assert bench.rejected() == {"torques: closure": 1}
    np.testing.assert_allclose(state(0.03, home), still, rtol=1e-9)
    assert bench.rejected() == {"torques: closure": 1, "wrench: implausible torque": 1}


def test_a_wrench_that_is_stamped_ahead_acts_no_longer_than_others():
    bench = Bench(max_age=0.5)
    bench.accelerate(0.0, 0.0)
    bench.push(0.0, "tip", TIP_FORCE, stamped=0.4)
    close(bench.state(0.49, 1.1), weight(1.1) + LENGTH * FORCE)
    close(bench.state(0.51, 1.1), weight(1.1))
