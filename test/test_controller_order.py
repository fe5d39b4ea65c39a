# SPDX-License-Identifier: Apache-2.0
"""Who receives the torques, step by step: a graph that appears in any order, on a clock of ours."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed: extra `ros`")

from rcl_interfaces.msg import ParameterType, ParameterValue

from robot_dynamics.ros.controller_order import (
    AGAIN,
    INTRODUCTION,
    LOOK,
    PATIENCE,
    ControllerOrder,
    Subscribers,
)

TOPIC = "/effort_controller/commands"
JOINTS = ("a", "b")


def parameter(value):
    if value is None:
        return ParameterValue(type=ParameterType.PARAMETER_NOT_SET)
    if isinstance(value, str):
        return ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)
    return ParameterValue(type=ParameterType.PARAMETER_STRING_ARRAY, string_array_value=value)


class Graph:
    """A node's view of the subscribers, and the controller that answers or does not."""

    def __init__(self):
        self.now = 0.0
        self.there: dict[bytes, str] = {}
        self.ever = 0
        self.hidden = 0
        """Subscribers that the graph does not list yet"""
        self.services = 1
        self.answers = True
        self.permitted = True
        self.told = {"joints": list(JOINTS), "interface_name": "effort"}
        self.asked = 0
        self.clients = 0

    def comes(self, gid: bytes, name: str = "effort_controller") -> None:
        self.there[gid] = name
        self.ever += 1

    def subscribers(self) -> Subscribers:
        return Subscribers(len(self.there) + self.hidden, self.ever + self.hidden)

    def get_fully_qualified_name(self):
        return "/feed_forward"

    def get_subscriptions_info_by_topic(self, _):
        return [
            SimpleNamespace(endpoint_gid=list(gid), node_name=name, node_namespace="/")
            for gid, name in self.there.items()
        ]

    def count_services(self, _):
        return self.services

    def create_client(self, *_):
        if not self.permitted:
            raise RuntimeError("not permitted")
        self.clients += 1
        self.asked += 1
        return SimpleNamespace(call_async=self._call)

    def destroy_client(self, _):
        self.clients -= 1

    def _call(self, request):
        value = self.told.get(request.names[0])
        answer = SimpleNamespace(values=[parameter(value)])
        return SimpleNamespace(done=lambda: self.answers, result=lambda: answer)


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def order(graph):
    found = ControllerOrder(graph, TOPIC, lambda: graph.now)
    found.fit(JOINTS)
    return found


def watched(order, graph, seconds: float = 0.0, steps: int = 2) -> str:
    """The problem after some time, with a look at its end."""
    graph.now += seconds
    for _ in range(steps):
        order.watch(graph.subscribers())
    return order.problem


def test_a_controller_gets_torques_after_its_answer_alone(order, graph):
    order.sees(graph.subscribers())
    assert not order.problem
    graph.comes(b"1")
    order.sees(graph.subscribers())
    assert "waiting for the joints of /effort_controller" in order.problem
    assert order.waits
    graph.answers = False
    assert watched(order, graph)
    graph.answers = True
    assert not watched(order, graph)
    assert not order.waits
    assert graph.clients == 0  # none is left over


def test_a_controller_that_comes_again_is_asked_again_at_once(order, graph):
    graph.comes(b"1")
    assert not watched(order, graph)
    del graph.there[b"1"]
    assert not watched(order, graph)
    graph.told["joints"] = ["b", "a"]
    graph.comes(b"1")  # the same identifier: another controller
    order.sees(graph.subscribers())
    assert "waiting" in order.problem
    assert "has other order" in watched(order, graph)


def test_an_answer_is_that_of_whoever_was_there_when_it_was_asked_for(order, graph):
    graph.comes(b"1")
    graph.answers = False
    watched(order, graph)
    graph.comes(b"2")
    graph.answers = True
    assert "waiting" in watched(order, graph, steps=1)
    assert not watched(order, graph)
    assert graph.asked == 2


def test_one_that_does_not_match_is_asked_each_second_and_one_that_does_less_often(order, graph):
    graph.told["interface_name"] = "velocity"
    graph.comes(b"1")
    assert "takes 'velocity', not effort alone" in watched(order, graph)
    assert not order.waits  # it does not end by waiting
    graph.told["interface_name"] = "effort"
    assert "velocity" in watched(order, graph, 0.9 * LOOK)
    assert not watched(order, graph, 0.2 * LOOK)
    graph.told["interface_name"] = "position"
    assert not watched(order, graph, 0.9 * AGAIN)
    assert "position" in watched(order, graph, 0.2 * AGAIN)


def test_silence_is_told_after_the_second_question_and_forgotten_after_an_answer(order, graph):
    graph.comes(b"1")
    graph.answers = False
    assert "waiting" in watched(order, graph, steps=3)
    assert "does not answer when asked for its joints (2 times)" in watched(
        order, graph, 1.1 * PATIENCE, steps=3
    )
    assert graph.clients == 1
    graph.answers = True
    assert not watched(order, graph)
    graph.comes(b"2")
    assert "waiting" in watched(order, graph, steps=1)


def test_a_node_without_a_service_is_taken_for_one_without_parameters_after_a_while(order, graph):
    graph.services = 0
    graph.comes(b"1")
    assert "waiting" in watched(order, graph)
    assert "waiting" in watched(order, graph, 0.9 * PATIENCE)
    assert "has no parameters that name its joints" in watched(order, graph, 0.2 * PATIENCE)


def test_what_was_denied_and_is_permitted_later_is_forgotten(order, graph):
    graph.permitted = False
    graph.comes(b"1")
    assert "cannot be called: not permitted" in watched(order, graph)
    graph.permitted = True
    graph.answers = False
    assert "waiting for the joints" in watched(order, graph, 1.1 * LOOK)
    graph.answers = True
    assert not watched(order, graph)


@pytest.mark.parametrize("hidden", [True, False])
def test_a_subscriber_without_a_name_is_awaited_for_a_moment(order, graph, hidden):
    if hidden:
        graph.hidden = 1
    else:
        graph.comes(b"1", "_NODE_NAME_UNKNOWN_")
    order.sees(graph.subscribers())
    assert "waiting for the node name of a subscriber" in order.problem
    assert order.waits
    assert watched(order, graph, 0.9 * INTRODUCTION)
    assert not watched(order, graph, 0.2 * INTRODUCTION)
    order.sees(graph.subscribers())
    assert not order.problem


def test_a_stranger_that_turns_out_to_be_the_controller_is_asked(order, graph):
    graph.comes(b"1", "_NODE_NAME_UNKNOWN_")
    order.sees(graph.subscribers())
    graph.there[b"1"] = "effort_controller"
    graph.told["joints"] = ["c"]
    assert "has other joints" in watched(order, graph)


def test_a_stranger_of_long_ago_holds_nobody_up_but_is_noticed_when_it_has_a_name(order, graph):
    graph.comes(b"1", "_NODE_NAME_UNKNOWN_")
    watched(order, graph)
    assert not watched(order, graph, 2 * INTRODUCTION)
    graph.there[b"1"] = "effort_controller"
    assert "waiting for the joints" in watched(order, graph, steps=1)


def test_a_stranger_beside_the_controller_is_noticed_before_the_next_torques(order, graph):
    graph.comes(b"1")
    assert not watched(order, graph)
    graph.comes(b"2", "_NODE_NAME_UNKNOWN_")
    order.sees(graph.subscribers())
    assert not order.problem
    graph.there[b"2"] = "effort_controller"
    order.sees(graph.subscribers())
    assert "waiting for the joints" in order.problem


@pytest.mark.parametrize(
    "topic", ["/effort_controller/command", "/feed_forward/commands", "/commands"]
)
def test_what_is_no_controllers_topic_is_not_asked(graph, topic):
    order = ControllerOrder(graph, topic, lambda: graph.now)
    order.fit(JOINTS)
    graph.comes(b"1", "effort_controller")
    graph.comes(b"2", "feed_forward")
    order.sees(graph.subscribers())
    assert not watched(order, graph)
    assert graph.asked == 0
