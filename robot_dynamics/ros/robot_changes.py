# SPDX-License-Identifier: Apache-2.0
"""Changes of the robot while the node runs: descriptions, parameters, payloads, and links with
new wrenches. Each is built in the background, and adopted when finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from geometry_msgs.msg import InertiaStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import ParameterException
from rclpy.parameter import Parameter
from std_msgs.msg import String

from ..errors import InputError, listed, shown
from .declared_parameters import typed, values
from .feed_forward import payload
from .feed_forward.builder import Builder, Change, Outcome
from .feed_forward.controller import FeedForward
from .feed_forward.parameters import AT_ONCE, BY_NAME
from .feed_forward.refusal import RefusedError
from .feed_forward.torque_model import Model
from .managed import Managed
from .parameter_requests import Answer, ParameterRequests, refused

SENDING = 0.2
"""s until responses have left: the middleware sends them from a thread that ends with the process,
and does not report when services' responses have arrived"""


class RobotChanges:
    """Requests for changes, and their results.

    Args:
        node: the node whose parameters are set, and whose log has the results.
        requests: the parameter requests.
        controller: receives accepted settings and notes of refusals.
        adopt: called with a finished model.

    Attributes:
        heard: the newest text on `robot_description`, valid or not.
        builder: the queue of changes.
    """

    def __init__(
        self,
        node: Managed,
        requests: ParameterRequests,
        controller: FeedForward,
        adopt: Callable[[Model], None],
    ):
        self.heard = ""
        self._node, self._requests, self._controller = node, requests, controller
        self._adopt = adopt
        self.builder = Builder(controller.settings, node.warn)
        self._committing = False
        node.add_on_set_parameters_callback(self._check_parameters)
        node.add_post_set_parameters_callback(self._take_parameters)

    # Requests

    def describe(self, message: String, *, locked: bool, configured: bool) -> None:
        """Handle the text of a robot on `robot_description`.

        Args:
            message: has the URDF text.
            locked: keep the current robot?
            configured: build the robot now? Otherwise the text is kept for later.
        """
        with self._controller.tally.refusing("description"):
            if locked and message.data != self.heard:
                raise RefusedError("locked", "the current robot is kept (lock_description)")
            self.heard = message.data
            if configured:
                self.builder.describe(message.data)

    def carry(self, message: InertiaStamped) -> None:
        """Handle an InertiaStamped, a payload on a link."""
        with self._controller.tally.refusing("payload"):
            self.builder.carry(*payload.read(message), self._controller.model)

    def push(self, link: str) -> None:
        """Build a model with wrenches on a link."""
        with self._controller.tally.refusing("wrench"):
            if self.builder.push(link):
                self._node.say(
                    f"wrench on {shown(link)} accepted; it takes effect once the model is compiled"
                )

    def _set_on_request(self, parameters: list[Parameter], answer: Answer) -> None:
        """Handle a request to set parameters; if they need a new model, it is built first."""
        parameters = [typed(each) for each in parameters]
        wanted = values(parameters)
        if not set(wanted) <= AT_ONCE and not any(BY_NAME[name].read_only for name in wanted):
            try:
                self.builder.set(wanted, (parameters, answer))
                return
            except RefusedError as error:
                answer(refused(error))
                return
            except InputError:
                pass  # refused below, for this reason or one of ROS's own
        answer(self._set(parameters))

    def _set(self, parameters: list[Parameter]) -> SetParametersResult:
        try:
            return self._node.set_parameters_atomically(parameters)
        except ParameterException as error:
            return refused(error)

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Check whether these values are acceptable."""
        wanted = values(parameters)
        try:
            self.builder.settings.changed(wanted)
        except InputError as error:
            return refused(error)
        if not set(wanted) <= AT_ONCE and not self._committing:
            return refused(
                f"{', '.join(wanted)}: no model was built for it; use the node's own "
                "parameter services"
            )
        return SetParametersResult(successful=True)

    def _take_parameters(self, parameters: list[Parameter]) -> None:
        if not self._committing:
            self.builder.take(values(parameters))
            self._controller.settings = self.builder.settings

    # Results

    def poll(self) -> None:
        """Start requested changes, and adopt finished ones."""
        for parameters, answer in self._requests.taken():
            self._set_on_request(parameters, answer)
        while (outcome := self.builder.poll(self._controller.model)) is not None:
            self._on_outcome(outcome)

    def clear(self, reason: str) -> None:
        """Discard all changes that are not in effect yet, and refuse their requests.

        Args:
            reason: the reason in the responses.
        """
        self._dropped(self.builder.clear(), reason)

    def close(self) -> None:
        """Discard all changes, as the node ends, and stay until the responses are sent."""
        dropped = self.builder.close()
        self._dropped(dropped, "the node is shutting down")
        waiting = [answer for _, answer in self._requests.taken()]
        for answer in waiting:
            answer(refused("the node is shutting down"))
        if dropped or waiting:
            time.sleep(SENDING)

    @staticmethod
    def _dropped(changes: Iterable[Change], reason: str) -> None:
        for change in changes:
            if change.kind == "parameters":
                _, answer = change.sender
                answer(refused(f"not set: {reason}"))

    def _on_outcome(self, outcome: Outcome) -> None:
        """Handle a change that was built or failed."""
        change, error, tally = outcome.change, outcome.error, self._controller.tally
        if outcome.still_refused is not None:
            tally.refuse("description", outcome.still_refused)
        if error is not None:
            tally.refuse(change.kind, error)
            self.builder.reject(outcome)
        if change.kind != "parameters":
            if error is None:
                self._accept(outcome)
            return
        parameters, answer = change.sender
        if error is not None:
            answer(refused(error))
            return
        self._committing = True
        try:
            result = self._set(parameters)
        finally:
            self._committing = False
        if result.successful:
            self._accept(outcome)
        answer(result)

    def _accept(self, outcome: Outcome) -> None:
        old: Any = self._controller.model
        self.builder.accept(outcome, old)
        self._controller.settings = self.builder.settings
        if outcome.model is None:
            return
        self._adopt(outcome.model)
        if old is not None and outcome.change.kind not in ("payload", "wrench"):
            lost = set(old.spec.payloads) - set(outcome.model.spec.payloads)
            if lost:
                self._node.warn(
                    f"payload removed: the new robot has no link {listed(sorted(lost))}"
                )
