"""`~/commands` has no names: has the controller behind it the same joints in the same order?"""

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
"""s: then an answer that has not come is asked for again, and who has no service has no
parameters"""
INTRODUCTION = 2.0
"""s that a new subscriber may be without its node's name, as all are for a moment"""

NAMES = ["joints", "interface_name"]


class Subscribers(NamedTuple):
    """Of a publisher."""

    now: int
    ever: int
    """so many came since the beginning, some of whom may have left"""


class ControllerOrder:
    """Asks the controller that takes the torques for its parameters.

    A controller in ros2_control is a node, and its topic is `~/commands`: the topic that torques
    go out on says which node it is, if it was remapped. From when that node subscribes until it
    has told its joints, no torque may go out. Other subscribers have no say.

    Args:
        node: who publishes the torques.
        topic: where.
        say: takes lines for the log.
        steady: s, of a clock that never jumps.

    Attributes:
        problem: why no torque may go out; empty: none that is known.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        say: Callable[[str], None],
        steady: Callable[[], float] = time.monotonic,
    ):
        self.problem = ""
        self._node, self._topic, self._say, self._steady = node, topic, say, steady
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
        self._parameters: Any = None
        self._questions = 0
        self._asked = self._next = 0.0
        self._of = frozenset[bytes]()
        self._client: Any = None
        self._future: Any = None

    def fit(self, outputs: Sequence[str]) -> None:
        """From now on torques have these names; none: they are not compared."""
        self._outputs = tuple(outputs)
        self._judge()

    @property
    def _applies(self) -> bool:
        return self._is_one and bool(self._outputs)

    def sees(self, subscribers: Subscribers) -> None:
        """To be called before torques go out, with those that they have."""
        if subscribers.ever != self._ever and not self.problem and self._applies:
            self._look(subscribers)

    def watch(self, subscribers: Subscribers) -> None:
        """To be called again and again: sees who is there, asks, and takes the answer."""
        if not self._applies:
            return
        self._look(subscribers)
        now = self._steady()
        if self._future is not None:
            self._wait(now)
        elif self._theirs and (now >= self._next or self._theirs - self._told):
            self._next = now + LOOK
            self._ask(now)

    def _look(self, subscribers: Subscribers) -> None:
        """Who is there?"""
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
                    f"{service} can't be asked: {one_line(error)}; allow it in the security "
                    "policy, or set check_controller to false"
                )
                self._judge()
                return
            self._denied = ""
            self._future = self._client.call_async(GetParameters.Request(names=NAMES))
            self._asked, self._of = now, self._theirs
            self._questions += 1
        elif new and now - min(self._since[gid] for gid in new) > PATIENCE:
            self._say(f"{self.controller} has no parameters: its joints are not compared with ours")
            self._hear(None)
        self._judge()

    def _wait(self, now: float) -> None:
        """Is there an answer?"""
        if self._future.done():
            self._questions = 0
            self._hear(self._future.result())
            self._next = now + (LOOK if self._verdict else AGAIN)
        elif now - self._asked <= PATIENCE:
            return
        self._node.destroy_client(self._client)
        self._client = self._future = None
        self._judge()

    def _hear(self, answer: Any) -> None:
        """What it has told; None, or other values than were asked for: nothing is known of it."""
        self._told = self._theirs if self._future is None else self._of & self._theirs
        known = answer is not None and len(answer.values) == len(NAMES)
        self._parameters = answer.values if known else None

    def _judge(self) -> None:
        self.problem = self._verdict = ""
        if not self._applies:
            return
        if self._theirs and self._parameters is not None:
            joints, interface = self._parameters
            self._verdict = _difference(self.controller, joints, interface, self._outputs)
        if self._theirs - self._told:
            self.problem = self._denied or f"waiting for {self.controller} to tell its joints"
            if self._questions > 1:
                self.problem = (
                    f"{self.controller} does not answer what its joints are (asked "
                    f"{self._questions} times); mend it, or set check_controller to false"
                )
        elif self._theirs:
            self.problem = self._verdict
        elif self._strangers:
            self.problem = f"waiting for a subscriber of {self._topic} to tell its name"


def _name(endpoint: Any) -> str:
    """Of the node that a subscription belongs to; empty: not known yet."""
    if endpoint.node_name.startswith("_NODE_NAME_UNKNOWN"):
        return ""
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}"


def _difference(
    controller: str, joints: ParameterValue, interface: ParameterValue, outputs: Sequence[str]
) -> str:
    if joints.type == ParameterType.PARAMETER_STRING_ARRAY:
        theirs = list(joints.string_array_value)
        if theirs and theirs != list(outputs):
            what = "order" if sorted(theirs) == sorted(outputs) else "joints"
            return (
                f"{controller} has other {what}: {listed(theirs)} there, {listed(outputs)} here; "
                "set joints to what it has, or check_controller to false"
            )
    if interface.type == ParameterType.PARAMETER_STRING and interface.string_value != "effort":
        return (
            f"{controller} takes {interface.string_value!r}, not torques; set its interface_name "
            "to effort, or check_controller to false"
        )
    return ""
