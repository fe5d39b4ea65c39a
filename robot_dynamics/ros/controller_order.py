"""`~/commands` has no names: has the controller behind it the same joints in the same order?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node

from ..errors import listed, one_line

LOOK = 1.0
"""s between two looks for a controller that is not known yet, or does not fit"""
AGAIN = 10.0
"""s between two questions to one that fits: it may be another one meanwhile"""
PATIENCE = 5.0
"""s that an answer may take"""

NAMES = ["joints", "interface_name"]


class ControllerOrder:
    """Asks the controller that takes the torques for its parameters.

    A controller in ros2_control is a node, and its topic is `~/commands`: the topic that torques
    go out on says which node it is, if it was remapped.

    Args:
        node: who publishes the torques.
        topic: where.
        steady: s, of a clock that never jumps.

    Attributes:
        problem: why no torque may go out; empty: none that is known.
    """

    def __init__(self, node: Node, topic: str, steady: Callable[[], float] = time.monotonic):
        self.problem = ""
        self._node, self._steady = node, steady
        self.controller, _, end = topic.rpartition("/")
        own = self.controller == node.get_fully_qualified_name()
        self._is_one = end == "commands" and not own and bool(self.controller)
        self._next = steady()
        self._client: Any = None
        self._future: Any = None
        self._asked, self._answered = 0.0, False

    def watch(self, outputs: Sequence[str]) -> None:
        """To be called again and again, with the names of the torques that go out."""
        if not self._is_one or not outputs:
            return
        now = self._steady()
        if self._future is not None:
            if self._future.done():
                self._read(self._future.result(), outputs)
                self._forget(now + (LOOK if self.problem else AGAIN))
            elif now - self._asked > PATIENCE:
                if not self._answered:
                    self.problem = ""
                self._forget(now + LOOK)
        elif now >= self._next:
            self._next = now + LOOK
            service = f"{self.controller}/get_parameters"
            if self._node.count_services(service):
                self._ask(service, now)

    def _ask(self, service: str, now: float) -> None:
        try:
            self._client = self._node.create_client(GetParameters, service)
        except RuntimeError as error:  # with SROS 2: no right to ask
            self.problem = (
                f"{service} can't be asked: {one_line(error)}; allow it in the security policy, or "
                "set check_controller to false"
            )
            return
        self._future = self._client.call_async(GetParameters.Request(names=NAMES))
        self._asked = now
        if not self._answered:
            self.problem = f"waiting for {self.controller} to tell its joints"

    def _forget(self, next_look: float) -> None:
        self._node.destroy_client(self._client)
        self._client = self._future = None
        self._next = next_look

    def _read(self, answer: Any, outputs: Sequence[str]) -> None:
        self._answered, self.problem = True, ""
        if answer is None or len(answer.values) != len(NAMES):
            return  # it has no such parameters: whatever it is, nothing is known of it
        joints, interface = answer.values
        self.problem = _difference(self.controller, joints, interface, outputs)


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
