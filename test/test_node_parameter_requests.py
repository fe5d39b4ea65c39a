# SPDX-License-Identifier: Apache-2.0
"""Requests to set parameters, answered when it is convenient: over DDS, both ends in this
process."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed: extra `ros`")

import rclpy
from node_process import PATIENCE, domain_of_ones_own
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor

from robot_dynamics.ros.parameter_requests import SERVICES, ParameterRequests


def number(name: str, value: float) -> ParameterMessage:
    kind = ParameterType.PARAMETER_DOUBLE
    return ParameterMessage(name=name, value=ParameterValue(type=kind, double_value=value))


UNKNOWN = ParameterMessage(name="odd", value=ParameterValue(type=99))
"""Of a type that there is not"""


class Ends:
    """A node whose services of `SERVICES` are `requests`', and somebody who calls them."""

    def __init__(self, domain: int):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node, self.caller = (
            rclpy.create_node(name, context=self.context, start_parameter_services=False)
            for name in ("served", "caller")
        )
        self.requests = ParameterRequests()
        self.clients = {}
        for kind in SERVICES:
            name, group = kind.__name__.lower(), self.requests.polled
            service = self.node.create_service(kind, name, self.never, callback_group=group)
            self.requests.add(service)
            self.clients[kind] = self.caller.create_client(kind, name)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.executor.add_node(self.caller)
        for client in self.clients.values():
            assert client.wait_for_service(PATIENCE)

    def never(self, _request, _response):
        raise AssertionError("an executor took what sleeps")

    def ask(self, kind, *parameters: ParameterMessage):
        return self.clients[kind].call_async(kind.Request(parameters=list(parameters)))

    def spin(self) -> None:
        self.executor.spin_once(0.01)

    def taken(self, count: int) -> list:
        """(names, answer) of so many groups of parameters."""
        found, end = [], time.monotonic() + PATIENCE
        while len(found) < count:
            assert time.monotonic() < end, f"{len(found)} of {count} came"
            self.spin()
            found += self.requests.taken()
        return [([each.name for each in parameters], answer) for parameters, answer in found]

    def response(self, future):
        end = time.monotonic() + PATIENCE
        while not future.done():
            assert time.monotonic() < end, "no answer"
            self.spin()
            assert not list(self.requests.taken())
        return future.result()


@pytest.fixture(scope="module")
def ends():
    with domain_of_ones_own() as domain:
        made = Ends(domain)
        yield made
        made.executor.shutdown()
        made.node.destroy_node()
        made.caller.destroy_node()
        made.context.try_shutdown()


def told(result: SetParametersResult) -> tuple[bool, str]:
    return result.successful, result.reason


def said(words: str, successful: bool = True) -> SetParametersResult:
    return SetParametersResult(successful=successful, reason=words)


def test_each_has_its_own_answer_whatever_the_order_and_they_are_sent_when_all_are_there(ends):
    future = ends.ask(SetParameters, *(number(name, 1.0) for name in "abc"))
    groups = ends.taken(3)
    assert [names for names, _ in groups] == [["a"], ["b"], ["c"]]
    for k in (2, 0):
        groups[k][1](said(f"of {k}", k == 0))
    for _ in range(10):
        ends.spin()
    assert not future.done()
    groups[1][1](said("of 1"))
    results = [told(each) for each in ends.response(future).results]
    assert results == [(True, "of 0"), (True, "of 1"), (False, "of 2")]


def test_what_is_to_be_set_at_once_has_one_answer(ends):
    future = ends.ask(SetParametersAtomically, number("a", 1.0), number("b", 2.0))
    ((names, answer),) = ends.taken(1)
    assert names == ["a", "b"]
    answer(said("both", False))
    assert told(ends.response(future).result) == (False, "both")


def test_values_that_are_none_are_refused_and_the_others_go_their_way(ends):
    future = ends.ask(SetParameters, UNKNOWN, number("a", 1.0), UNKNOWN)
    ((names, answer),) = ends.taken(1)
    assert names == ["a"]
    answer(said("good"))
    results = ends.response(future).results
    assert [each.successful for each in results] == [False, True, False]
    assert results[0].reason
    assert "\n" not in results[0].reason
    future = ends.ask(SetParametersAtomically, number("a", 1.0), UNKNOWN)
    assert not ends.response(future).result.successful


def test_nothing_is_answered_with_nothing(ends):
    assert ends.response(ends.ask(SetParameters)).results == []


def test_all_that_came_is_taken_and_nobody_elses_executor_takes_it(ends):
    futures = [ends.ask(SERVICES[k % 2], number(str(k), 1.0)) for k in range(6)]
    for _ in range(20):
        ends.spin()  # would call `never`
    groups = ends.taken(6)
    assert sorted(names for names, _ in groups) == [[str(k)] for k in range(6)]
    for names, answer in groups:
        answer(said(f"of {names[0]}"))
    for k, future in enumerate(futures):
        response = ends.response(future)
        result = response.results[0] if SERVICES[k % 2] is SetParameters else response.result
        assert told(result) == (True, f"of {k}")


def test_whoever_does_not_wait_for_the_answer_does_no_harm(ends):
    client = ends.caller.create_client(SetParameters, "setparameters")
    assert client.wait_for_service(PATIENCE)
    client.call_async(SetParameters.Request(parameters=[number("a", 1.0)]))
    ((_, answer),) = ends.taken(1)
    ends.caller.destroy_client(client)
    answer(said("to nobody"))
