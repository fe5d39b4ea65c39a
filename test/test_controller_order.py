# SPDX-License-Identifier: Apache-2.0
"""Who receives the torques, step by step: real controllers in any order, on a clock of ours."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed: extra `ros`")

import rclpy
from node_process import domain_of_ones_own
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray

from robot_dynamics.ros.controller_order import (
    AGAIN,
    LOOK,
    PATIENCE,
    ControllerOrder,
    Subscribers,
)

TOPIC = "/effort_controller/commands"
JOINTS = ["a", "b"]
LONGEST = 60.0
"""s until a test gives up"""
A_WHILE = 0.3
"""s in which what must not happen would"""


class Asking(Node):
    """Counts the clients that it has made."""

    asked = 0

    def create_client(self, *arguments, **options):
        self.asked += 1
        return super().create_client(*arguments, **options)


class World:
    """The node that publishes torques, and controllers that subscribe, answer and leave."""

    def __init__(self, context: rclpy.Context):
        self._context = context
        self.now = 0.0
        self.answers = True
        self._ever = 0
        self._controllers = SingleThreadedExecutor(context=context)
        self._own = SingleThreadedExecutor(context=context)
        self.node = Asking("feed_forward", context=context)
        self._own.add_node(self.node)

    def order(self, topic: str = TOPIC) -> ControllerOrder:
        found = ControllerOrder(self.node, topic, lambda: self.now)
        found.set_outputs(JOINTS)
        return found

    def comes(self, joints=JOINTS, interface="effort", *, topic: str = TOPIC, **options) -> Node:
        """A controller, when the graph lists its subscription and its services."""
        there = self._there(topic)
        node = rclpy.create_node("effort_controller", context=self._context, **options)
        node.declare_parameter("joints", list(joints))
        node.declare_parameter("interface_name", interface)
        node.create_subscription(Float64MultiArray, topic, print, 1)
        self._controllers.add_node(node)
        self._ever += 1
        services = options.get("start_parameter_services", True)
        self._awaited(
            lambda: (
                self._there(topic) == there + 1
                and self.node.count_services("/effort_controller/get_parameters") >= services
            )
        )
        return node

    def leaves(self, node: Node) -> None:
        there = self._there(TOPIC)
        self._controllers.remove_node(node)
        node.destroy_node()
        self._awaited(lambda: self._there(TOPIC) == there - 1)

    def subscribers(self, topic: str = TOPIC) -> Subscribers:
        return Subscribers(self._there(topic), self._ever)

    def becomes(self, order: ControllerOrder, words: str, seconds: float = 0.0) -> None:
        """After some time on its clock, the problem has these words; without any: there is none."""
        self.now += seconds

        def is_so() -> bool:
            self._step(order)
            return words in order.problem if words else not order.problem

        self._awaited(is_so, lambda: f"{words!r} expected: {order.problem!r}")

    def stays(self, order: ControllerOrder, words: str, seconds: float = 0.0) -> None:
        """After some time on its clock, the problem still has these words."""
        self.now += seconds
        end = time.monotonic() + A_WHILE
        while time.monotonic() < end:
            self._step(order)
            assert words in order.problem if words else not order.problem, order.problem

    def close(self) -> None:
        for node in self._controllers.get_nodes():
            node.destroy_node()
        self.node.destroy_node()
        for executor in (self._controllers, self._own):
            executor.shutdown()

    def _there(self, topic: str) -> int:
        found = self.node.get_subscriptions_info_by_topic(topic)
        return sum(each.node_name == "effort_controller" for each in found)

    def _step(self, order: ControllerOrder) -> None:
        order.watch(self.subscribers())
        if self.answers:
            self._controllers.spin_once(0.002)
        self._own.spin_once(0.002)

    def _awaited(self, done, words=lambda: "the graph") -> None:
        deadline = time.monotonic() + LONGEST
        while not done():
            assert time.monotonic() < deadline, words()
            time.sleep(0.002)


@pytest.fixture
def world() -> Iterator[World]:
    with domain_of_ones_own() as domain:
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        found = World(context)
        try:
            yield found
        finally:
            found.close()
            rclpy.shutdown(context=context)


def test_a_controller_gets_torques_after_its_answer_alone(world):
    order = world.order()
    order.look_for_new(world.subscribers())
    assert not order.problem
    world.comes()
    order.look_for_new(world.subscribers())
    assert "waiting for the joints of /effort_controller" in order.problem
    assert order.waits
    world.answers = False
    world.stays(order, "waiting")
    world.answers = True
    world.becomes(order, "")
    assert not order.waits


def test_a_controller_that_comes_again_is_asked_again_at_once(world):
    order = world.order()
    first = world.comes()
    world.becomes(order, "")
    world.leaves(first)
    world.stays(order, "")
    world.comes(["b", "a"])
    order.look_for_new(world.subscribers())
    assert "waiting" in order.problem
    world.becomes(order, "has a different order: b, a there")


def test_an_answer_is_that_of_whoever_was_there_when_it_was_asked_for(world):
    order = world.order()
    world.comes()
    world.answers = False
    world.stays(order, "waiting")
    assert world.node.asked == 1
    world.comes()
    world.answers = True
    world.becomes(order, "")
    assert world.node.asked == 2  # the newcomer, too


def test_one_that_does_not_match_is_asked_each_second_and_one_that_does_less_often(world):
    order = world.order()
    controller = world.comes(interface="velocity")
    world.becomes(order, "commands 'velocity', not effort alone")
    assert not order.waits  # it does not end by waiting
    controller.set_parameters([Parameter("interface_name", value="effort")])
    world.stays(order, "velocity", 0.9 * LOOK)
    world.becomes(order, "", 0.2 * LOOK)
    controller.set_parameters([Parameter("interface_name", value="position")])
    world.stays(order, "", 0.9 * AGAIN)
    world.becomes(order, "commands 'position'", 0.2 * AGAIN)


def test_silence_is_told_after_the_second_question_and_forgotten_after_an_answer(world):
    order = world.order()
    world.comes()
    world.answers = False
    world.stays(order, "waiting")
    world.stays(order, "waiting", 0.9 * PATIENCE)
    world.becomes(order, "did not answer 2 requests for its joints", 0.2 * PATIENCE)
    world.answers = True
    world.becomes(order, "")
    world.comes()
    order.look_for_new(world.subscribers())
    assert "waiting" in order.problem


def test_a_node_without_a_service_is_taken_for_one_without_parameters_after_a_while(world):
    order = world.order()
    world.comes(start_parameter_services=False)
    world.stays(order, "waiting")
    world.stays(order, "waiting", 0.9 * PATIENCE)
    world.becomes(order, "has no parameters that name its joints", 0.2 * PATIENCE)


@pytest.mark.parametrize(
    "topic", ["/effort_controller/command", "/feed_forward/commands", "/commands"]
)
def test_what_is_no_controllers_topic_is_not_asked(world, topic):
    order = world.order(topic)
    world.comes(["x", "y"], topic=topic)
    order.look_for_new(world.subscribers(topic))
    assert not order.problem
    world.stays(order, "")
    world.stays(order, "", 2 * PATIENCE)
