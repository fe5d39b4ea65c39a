# SPDX-License-Identifier: Apache-2.0
"""Checks that the controller that receives `~/commands` has the same joints in the same order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.qos import QoSProfile

from ..errors import listed, one_line
from .idle_group import PolledGroup

LOOK = 1.0
"""s between two requests to a controller that does not match"""
AGAIN = 10.0
"""s between two requests to a controller that matches, as it may be replaced"""
PATIENCE = 5.0
"""s after which a request that not all controllers of the name have answered is repeated, each time
longer; those that have are served then, as the others may be the remains of a killed process. Also
the time after which a node without a parameter service is assumed to have no parameters"""
NAMESAKE = 0.5
"""s after which they are served if they were before, as they would hold the torques of a motion"""
RESPONSES = QoSProfile(depth=100)
"""QoS of requests: more than all responses that can arrive between two looks"""
INTRODUCTION = 2.0
"""s for which a new subscription may lack its node's name, as all do at first"""

NAMES = ("joints", "interface_name", "joint", "interface_names")
"""Parameters of forward_command_controller and its derivatives: the first two, or the last two if
the controller is for several interfaces of one joint"""

UNLESS = "or set check_controller to false"


class Subscribers(NamedTuple):
    """The current and the total number of a publisher's subscribers."""

    now: int
    ever: int


class ControllerOrder:
    """Requests the parameters of the controller that receives the torques.

    A controller in ros2_control is a node with a topic `~/commands`: its name follows from the
    topic to which the torques are remapped. No torque may be published before a newly subscribed
    controller has responded, or to a controller whose joints or interface are unknown. Other
    subscribers are not asked.

    Args:
        node: publishes the torques.
        topic: the topic of the torques.
        steady: s, of a clock that never jumps.

    Attributes:
        problem: why no torque may be published; empty: there is no known reason.
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
        # subscriptions by their identifiers: when each was first seen, which ones belong to the
        # controller, and for which of these it has responded
        self._since: dict[bytes, float] = {}
        self._theirs = self._told = frozenset[bytes]()
        # those that could receive torques before there was a problem
        self._served = frozenset[bytes]()
        self._strangers = False
        self._ever = 0
        self._verdict = self._denied = ""
        # the controller's parameters by name; None: it has none
        self._told_values: dict[str, Any] | None = None
        self._disagreement = ""
        self._questions = 0
        self._asked = self._next = 0.0
        # whom the newest request could reach
        self._of, self._servers = frozenset[bytes](), 0
        # rclpy's own futures have one response each, but several nodes of a name may respond
        self._client: Any = None
        self._polled = PolledGroup()
        self._requested: dict[int, str] = {}
        self._answers: dict[str, list[Any]] = {}

    def set_outputs(self, outputs: Sequence[str]) -> None:
        """Set the names of the torques.

        Args:
            outputs: (m,) names; empty: they are not compared with the controller's.
        """
        self._outputs = tuple(outputs)
        self._judge()

    @property
    def waits(self) -> bool:
        """Will the problem end when a subscriber's name is known or the controller responds?"""
        return bool(self.problem) and not self._verdict

    @property
    def may_be_released(self) -> bool:
        """Does a controller that was served still exist, and do all command efforts alone? Then
        zeros are safe, whatever their joints are."""
        efforts = self._answers.get("interface_name", ())
        are_told = self._theirs <= self._told and self._told_values is not None and not self.waits
        return bool(self._served & self._theirs) and are_told and set(efforts) == {"effort"}

    @property
    def _applies(self) -> bool:
        return self._is_one and bool(self._outputs)

    def look_for_new(self, subscribers: Subscribers) -> None:
        """Look for new subscribers; to be called before torques are published.

        Args:
            subscribers: the current ones.
        """
        if subscribers.ever != self._ever and not self.problem and self._applies:
            self._look(subscribers)

    def watch(self, subscribers: Subscribers) -> None:
        """Find subscribers, send requests and read responses; to be called periodically.

        Args:
            subscribers: the current ones.
        """
        if not self._applies:
            return
        self._look(subscribers)
        now = self._steady()
        if self._client is not None and self._may_have_missed_one():
            self._withdraw()
            self._questions = 0
        if self._client is not None:
            self._wait(now)
        elif self._theirs and (now >= self._next or self._theirs - self._told):
            self._next = now + LOOK
            self._ask(now)
        if not self.problem:
            self._served = self._theirs

    def _look(self, subscribers: Subscribers) -> None:
        """Find the current subscribers."""
        now = self._steady()
        there = {
            bytes(each.endpoint_gid): full_name(each)
            for each in self._node.get_subscriptions_info_by_topic(self._topic)
        }
        if len(there) < subscribers.now:
            there[b""] = ""  # the graph is not up to date yet
        self._since = {gid: self._since.get(gid, now) for gid in there}
        theirs = frozenset(gid for gid, name in there.items() if name == self.controller)
        if theirs - self._theirs:
            self._questions = 0  # whoever has just come was not asked
        self._theirs = theirs
        self._told &= self._theirs
        self._strangers = any(
            not name and now - self._since[gid] < INTRODUCTION for gid, name in there.items()
        )
        # look again as long as there are subscribers without a name
        self._ever = -1 if self._strangers else subscribers.ever
        self._judge()

    @property
    def _service(self) -> str:
        return f"{self.controller}/get_parameters"

    def _all_are_known(self) -> bool:
        """Does every service of that name belong to a known controller? A node's services are
        discovered about when its subscriptions are, and its name after both."""
        return bool(self._node.count_services(self._service) <= len(self._theirs))

    def _may_have_missed_one(self) -> bool:
        """Has a controller appeared or vanished since the newest request? The one that the request
        reached may be the remains of a killed process, which never answers; and one that has
        answered and vanished must not be counted for another."""
        have_changed = self._theirs != self._of
        return have_changed or self._node.count_services(self._service) > self._servers

    def _withdraw(self) -> None:
        self._node.destroy_client(self._client)
        self._client = None

    def _ask(self, now: float) -> None:
        service = self._service
        new = self._theirs - self._told
        if servers := self._node.count_services(service):
            try:
                self._client = self._node.create_client(
                    GetParameters, service, qos_profile=RESPONSES, callback_group=self._polled
                )
            except RuntimeError as error:  # with SROS 2: not permitted
                self._denied = (
                    f"{service} cannot be called: {one_line(error)}; allow it in the security "
                    "policy, or set check_controller to false"
                )
                self._judge()
                return
            self._denied = ""
            # one request per name: rclcpp returns no values if one of the names is undeclared
            handle = self._client.handle
            with handle:
                self._requested = {
                    handle.send_request(GetParameters.Request(names=[name])): name for name in NAMES
                }
            self._answers = {name: [] for name in NAMES}
            self._asked, self._of, self._servers = now, self._theirs, servers
            self._questions += 1
        elif new and now - min(self._since[gid] for gid in new) > PATIENCE:
            self._told, self._told_values, self._disagreement = self._theirs, None, ""
        self._judge()

    def _wait(self, now: float) -> None:
        """Read the responses that have arrived."""
        self._take_answers()
        count = min(map(len, self._answers.values()))
        complete = count >= len(self._of)
        waited, patience = now - self._asked, PATIENCE * self._questions
        enough = NAMESAKE if self._served & self._theirs else patience
        if complete or (count and waited > enough):
            self._told = self._of
            self._told_values = {name: found[0] for name, found in self._answers.items()}
            if complete or not self._disagreement:  # silence ends none
                self._disagreement = _disagreement(self.controller, self._answers)
            self._judge()
        if not complete and waited <= patience:
            return  # one that is late is still heard
        if complete:  # otherwise all are asked again at once
            self._questions = 0
            self._next = now + (LOOK if self._verdict else AGAIN)
        self._withdraw()
        self._judge()

    def _take_answers(self) -> None:
        handle = self._client.handle
        with handle:
            while True:
                header, response = handle.take_response(GetParameters.Response)
                if header is None:
                    return
                if name := self._requested.get(header.request_id.sequence_number):
                    known = len(response.values) == 1
                    self._answers[name].append(_value(response.values[0]) if known else None)

    def _judge(self) -> None:
        self.problem = self._verdict = ""
        if not self._applies:
            return
        if self._theirs & self._told:
            self._verdict = self._disagreement or _difference(
                self.controller, self._told_values, self._outputs
            )
        if self._theirs - self._told:
            self.problem = self._denied or f"waiting for the joints of {self.controller}"
            if self._questions > 1:
                self.problem = (
                    f"{self.controller} did not answer {self._questions} requests for its joints; "
                    f"restart it, {UNLESS}"
                )
        elif self._verdict:
            self.problem = self._verdict
        elif self._strangers and not (self._served & self._theirs and self._all_are_known()):
            # it may be one of that name, too
            self.problem = f"waiting for the node name of a subscriber of {self._topic}"


def full_name(endpoint: Any) -> str:
    """The full name of the node that an endpoint belongs to; empty: not known yet."""
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


def _disagreement(controller: str, answers: dict[str, list[Any]]) -> str:
    """How the responses of several nodes of this name differ; empty: they do not."""
    for name, values in answers.items():
        shown = sorted({_shown(value) for value in values})
        if len(shown) > 1:
            return (
                f"several nodes are named {controller}, and their {name} differ: "
                f"{shown[0]} and {shown[1]}; end one, or rename it"
            )
    return ""


def _shown(value: Any) -> str:
    """A parameter's value for a message."""
    return "none" if value is None else value if isinstance(value, str) else listed(value)


def _difference(controller: str, told: dict[str, Any] | None, outputs: Sequence[str]) -> str:
    """Why no torque may go to this controller; empty: its joints and interface match."""
    if told is None:
        return f"{controller} has no parameters that name its joints; add them, {UNLESS}"
    joints, interfaces = told.get("joints"), told.get("interface_name")
    if joints is None and told.get("joint"):
        joints, interfaces = [told["joint"]], told.get("interface_names")
    if not joints:
        return f"{controller} does not name its joints (parameter joints); set it, {UNLESS}"
    if joints != list(outputs):
        what = "a different order" if sorted(joints) == sorted(outputs) else "different joints"
        return (
            f"{controller} has {what}: {listed(joints)} there, {listed(outputs)} here; "
            f"set joints of this node to match, {UNLESS}"
        )
    if not interfaces:
        return (
            f"{controller} does not name its command interface (parameter interface_name); set "
            f"it to effort, {UNLESS}"
        )
    if interfaces not in ("effort", ["effort"]):
        found = interfaces if isinstance(interfaces, list) else [interfaces]
        return (
            f"{controller} commands {listed(map(repr, found))}, not effort alone; set its "
            f"interface to effort, {UNLESS}"
        )
    return ""
