# SPDX-License-Identifier: Apache-2.0
"""Checks that the controller behind `~/commands` has the same joints in the same order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node

from ..errors import listed, one_line

LOOK = 1.0
"""s between two questions to a controller that does not fit"""
AGAIN = 10.0
"""s between two questions to one that fits: it may be another one meanwhile"""
PATIENCE = 5.0
"""s after which an unanswered question is asked again, and a node without a parameter service is
taken for one that has no parameters"""
INTRODUCTION = 2.0
"""s that a new subscription may be without its node's name, as all are for a moment"""

NAMES = ("joints", "interface_name", "joint", "interface_names")
"""Parameters of forward_command_controller and its relatives: the first two, or, of the one for
several interfaces of one joint, the last two"""

UNLESS = "or set check_controller to false"


class Subscribers(NamedTuple):
    """How many subscribers a publisher has, and has had in total."""

    now: int
    ever: int


class ControllerOrder:
    """Asks the controller that takes the torques for its parameters.

    A controller in ros2_control is a node with a topic `~/commands`: its name follows from the
    topic that the torques are remapped to. While a newly subscribed controller has not answered,
    no torque may be published. Neither may one go to a controller whose joints, or whose interface,
    are unknown. Other subscribers are not asked.

    Args:
        node: publishes the torques.
        topic: of the torques.
        steady: s, of a clock that never jumps.

    Attributes:
        problem: why no torque may be published; empty: no known reason.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        steady: Callable[[], float] = time.monotonic,
    ):
        self.problem = ""
        self._node, self._topic, self._steady = node, topic, steady
        self.controller, _, end = topic.rpartition("/")
        own = self.controller == node.get_fully_qualified_name()
        self._is_one = end == "commands" and not own and bool(self.controller)
        self._outputs: tuple[str, ...] = ()
        # of subscriptions, by their identifiers: when they were seen first, which are the
        # controller's, and which of these it has answered for
        self._since: dict[bytes, float] = {}
        self._theirs = self._told = frozenset[bytes]()
        self._strangers = False
        self._ever = 0
        self._verdict = self._denied = ""
        # what the controller has said by name; None: it has no parameters
        self._told_values: dict[str, Any] | None = None
        self._questions = 0
        self._asked = self._next = 0.0
        self._of = frozenset[bytes]()
        self._client: Any = None
        self._futures: dict[str, Any] = {}

    def fit(self, outputs: Sequence[str]) -> None:
        """Set the names of the torques; none: they are not compared."""
        self._outputs = tuple(outputs)
        self._judge()

    @property
    def _applies(self) -> bool:
        return self._is_one and bool(self._outputs)

    def sees(self, subscribers: Subscribers) -> None:
        """To be called before torques are published, with the current subscribers."""
        if subscribers.ever != self._ever and not self.problem and self._applies:
            self._look(subscribers)

    def watch(self, subscribers: Subscribers) -> None:
        """To be called periodically: finds subscribers, asks them, and takes their answers."""
        if not self._applies:
            return
        self._look(subscribers)
        now = self._steady()
        if self._futures:
            self._wait(now)
        elif self._theirs and (now >= self._next or self._theirs - self._told):
            self._next = now + LOOK
            self._ask(now)

    def _look(self, subscribers: Subscribers) -> None:
        """Find the current subscribers."""
        now = self._steady()
        there = {
            bytes(each.endpoint_gid): _name(each)
            for each in self._node.get_subscriptions_info_by_topic(self._topic)
        }
        if len(there) < subscribers.now:
            there[b""] = ""  # the graph is behind
        self._since = {gid: self._since.get(gid, now) for gid in there}
        self._theirs = frozenset(gid for gid, name in there.items() if name == self.controller)
        self._told &= self._theirs
        self._strangers = any(
            not name and now - self._since[gid] < INTRODUCTION for gid, name in there.items()
        )
        # while there are strangers it is to be looked again
        self._ever = -1 if self._strangers else subscribers.ever
        self._judge()

    def _ask(self, now: float) -> None:
        service = f"{self.controller}/get_parameters"
        new = self._theirs - self._told
        if self._node.count_services(service):
            try:
                self._client = self._node.create_client(GetParameters, service)
            except RuntimeError as error:  # with SROS 2: no right to ask
                self._denied = (
                    f"{service} cannot be called: {one_line(error)}; allow it in the security "
                    "policy, or set check_controller to false"
                )
                self._judge()
                return
            self._denied = ""
            # one question each: rclcpp answers none of several names where one is not declared
            self._futures = {
                name: self._client.call_async(GetParameters.Request(names=[name])) for name in NAMES
            }
            self._asked, self._of = now, self._theirs
            self._questions += 1
        elif new and now - min(self._since[gid] for gid in new) > PATIENCE:
            self._told, self._told_values = self._theirs, None
        self._judge()

    def _wait(self, now: float) -> None:
        """Take the answers that have come."""
        if all(future.done() for future in self._futures.values()):
            self._questions = 0
            self._told = self._of & self._theirs
            answers = {name: future.result() for name, future in self._futures.items()}
            self._told_values = {
                name: _value(answer.values[0])
                for name, answer in answers.items()
                if answer is not None and len(answer.values) == 1
            }
            self._judge()
            self._next = now + (LOOK if self._verdict else AGAIN)
        elif now - self._asked <= PATIENCE:
            return
        self._node.destroy_client(self._client)
        self._client, self._futures = None, {}
        self._judge()

    def _judge(self) -> None:
        self.problem = self._verdict = ""
        if not self._applies:
            return
        if self._theirs & self._told:
            self._verdict = _difference(self.controller, self._told_values, self._outputs)
        if self._theirs - self._told:
            self.problem = self._denied or f"waiting for the joints of {self.controller}"
            if self._questions > 1:
                self.problem = (
                    f"{self.controller} does not answer when asked for its joints "
                    f"({self._questions} times); restart it, {UNLESS}"
                )
        elif self._theirs:
            self.problem = self._verdict
        elif self._strangers:
            self.problem = f"waiting for the node name of a subscriber of {self._topic}"


def _name(endpoint: Any) -> str:
    """Of the node that a subscription belongs to; empty: not known yet."""
    if endpoint.node_name.startswith("_NODE_NAME_UNKNOWN"):
        return ""
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}"


def _value(found: ParameterValue) -> Any:
    """A string or a list of strings; None: not declared, or of another type."""
    if found.type == ParameterType.PARAMETER_STRING:
        return found.string_value
    if found.type == ParameterType.PARAMETER_STRING_ARRAY:
        return list(found.string_array_value)
    return None


def _difference(controller: str, told: dict[str, Any] | None, outputs: Sequence[str]) -> str:
    """Why no torque may go to this controller; empty: its joints and interface match."""
    if told is None:
        return f"{controller} has no parameters that name its joints; give it some, {UNLESS}"
    joints, interfaces = told.get("joints"), told.get("interface_name")
    if joints is None and told.get("joint"):
        joints, interfaces = [told["joint"]], told.get("interface_names")
    if not joints:
        return f"{controller} does not name its joints (parameter joints); set it, {UNLESS}"
    if joints != list(outputs):
        what = "order" if sorted(joints) == sorted(outputs) else "joints"
        return (
            f"{controller} has other {what}: {listed(joints)} there, {listed(outputs)} here; "
            f"set joints of this node to those there, {UNLESS}"
        )
    if not interfaces:
        return (
            f"{controller} does not name its command interface (parameter interface_name); set "
            f"it to effort, {UNLESS}"
        )
    if interfaces not in ("effort", ["effort"]):
        found = interfaces if isinstance(interfaces, list) else [interfaces]
        return (
            f"{controller} takes {listed(map(repr, found))}, not effort alone; set its "
            f"interface to effort, {UNLESS}"
        )
    return ""
