# SPDX-License-Identifier: Apache-2.0
"""A managed (lifecycle) node that configures and activates itself by default.

    unconfigured ──configure──→ inactive ──activate──→ active
                 ←──cleanup───           ←─deactivate─

Idle services cost nothing. Topic events, such as a peer with another type or an incompatible QoS,
are polled ten times a second instead of being checked for every message.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from typing import Any

from rclpy.event_handler import EventHandler
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node

from ..errors import RobotDynamicsError, one_line, shown
from .idle_group import IdleGroup, PolledGroup
from .publishing import LINE

LONG = 1.0
"""s that a step may take before a message is logged"""

ANSWERED = 0.05
"""s between checks of the services during a long step"""


class Managed(LifecycleNodeMixin, Node):  # type: ignore[misc]
    """A node with four steps to override; if a step raises an error, the transition has failed.

    Args:
        name: the node's name.

    Attributes:
        is_active: is the node active?
        idle_group: the callback group of services and subscriptions that are mostly idle.
    """

    def __init__(self, name: str):
        self.is_active = False
        self.idle_group = IdleGroup()
        self._active_entities: dict[str, tuple[tuple[int, int], list[Any]]] = {}
        self._shown = 0
        self._fault: Exception | None = None
        self._alone = False
        Node.__init__(self, name)
        LifecycleNodeMixin.__init__(self, callback_group=self.idle_group)
        for each in self._services:  # rclpy's own, for type descriptions
            if each.callback_group is self.default_callback_group:
                each.callback_group = self.idle_group
                self.idle_group.add_entity(each)
        service = self._service_change_state
        service.callback = partial(self._on_change_state, service.callback)

    @property
    def subscriptions(self) -> Iterator[Any]:
        """The subscriptions that the executor checks for every message; idle ones are hidden."""
        return iter(self._without_idle("_subscriptions"))

    @property
    def services(self) -> Iterator[Any]:
        """The services that the executor checks for every message; idle ones are hidden."""
        return iter(self._without_idle("_services"))

    @property
    def waitables(self) -> Iterator[Any]:
        """The waitables that the executor checks; events are visible once after each `poll`."""
        every = Node.waitables.fget(self)
        if self._shown:
            self._shown -= 1
            return iter(every)
        return (each for each in every if not isinstance(each, EventHandler))

    def poll(self) -> None:
        """Check the hidden entities."""
        self.idle_group.poll()
        # the executor reads them twice: before and after it waits
        self._shown = 2

    def _without_idle(self, kind: str) -> list[Any]:
        every = getattr(self, kind)
        now = len(every), self.idle_group.changes
        known = self._active_entities.get(kind)
        if known is not None and known[0] == now:
            return known[1]
        found = [each for each in every if not self._is_idle(each.callback_group, each)]
        self._active_entities[kind] = now, found
        return found

    def _is_idle(self, group: Any, entity: Any) -> bool:
        return isinstance(group, (PolledGroup, IdleGroup)) and not group.can_execute(entity)

    def configure(self) -> None:
        """Allocate and prepare everything."""

    def activate(self) -> None:
        """Start working."""

    def deactivate(self) -> None:
        """Stop working; everything stays prepared."""

    def cleanup(self) -> None:
        """Release what `configure` has created."""

    def autostart(self) -> None:
        """Configure and activate.

        Raises:
            Exception: the error of a step.
        """
        self._alone = True
        for trigger in (self.trigger_configure, self.trigger_activate):
            if trigger() != TransitionCallbackReturn.SUCCESS:
                raise self._fault or RuntimeError("the node could not be started")
        self._alone = False

    @property
    def state(self) -> str:
        """The node's state: unconfigured, inactive, active or finalized."""
        return str(self._state_machine.current_state[1])

    # Callbacks from ROS

    def on_configure(self, _state: LifecycleState) -> Any:
        """Called by the state machine."""
        return self._step(self.configure)

    def on_activate(self, _state: LifecycleState) -> Any:
        """Called by the state machine."""
        self.is_active = True
        found = self._step(self.activate)
        self.is_active = found == TransitionCallbackReturn.SUCCESS
        return found

    def on_deactivate(self, _state: LifecycleState) -> Any:
        """Called by the state machine."""
        return self._step(self._end)

    def on_cleanup(self, _state: LifecycleState) -> Any:
        """Called by the state machine."""
        return self._step(self.cleanup)

    def on_shutdown(self, _state: LifecycleState) -> Any:
        """Called by the state machine, from any state."""
        return self._step(self._leave)

    def on_error(self, _state: LifecycleState) -> Any:
        """Called by the state machine after an error; the node becomes unconfigured."""
        self.is_active = False
        return self._step(self.cleanup)

    def _on_change_state(self, change: Callable[..., Any], request: Any, response: Any) -> Any:
        """Refuse a transition that is not possible now, as Jazzy's rclpy would raise an error that
        ends the node."""
        requested = request.transition
        possible = {
            label: number for number, label, *_ in self._state_machine.available_transitions
        }
        if requested.label in possible or (
            not requested.label and requested.id in possible.values()
        ):
            return change(request, response)
        asked = requested.label or requested.id
        self._fail(f"no transition {shown(asked)} from here; possible: {', '.join(possible)}")
        response.success = False
        return response

    def _leave(self) -> None:
        if self.is_active:
            self._end()
        self.cleanup()

    def _end(self) -> None:
        try:
            self.deactivate()
        finally:
            self.is_active = False

    def _step(self, step: Callable[[], None]) -> Any:
        try:
            step()
        except RobotDynamicsError as error:
            self._tell(error, str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            # rclpy turns it into an error result without a message
            self._tell(error, f"{type(error).__name__}: {error}")
            raise
        return TransitionCallbackReturn.SUCCESS

    def answering(self, work: Callable[[], Any], remark: str) -> Any:
        """Run a long task in a thread while this thread answers services.

        Requested transitions are carried out one after another.

        Args:
            work: the task.
            remark: logged if it takes longer than `LONG`.

        Returns:
            the result of the task.

        Raises:
            BaseException: the error of the task.
        """
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001  raised in the waiting thread
                done.set_exception(error)

        threading.Thread(target=run, name="configure", daemon=True).start()
        end = time.monotonic() + LONG
        while not wait([done], timeout=ANSWERED).done:
            self.idle_group.answer(except_for=self._service_change_state)
            if time.monotonic() > end:
                end = math.inf
                self.say(remark)
        return done.result()

    def _tell(self, error: Exception, words: str) -> None:
        self._fault = error
        if not self._alone:  # alone, it is raised
            self._fail(words)

    # Logging: one line, whatever external names it contains

    def say(self, text: str) -> None:
        """Log information."""
        if _console_takes_a_line():
            self.get_logger().info(one_line(text, LINE))

    def warn(self, text: object) -> None:
        """Log a warning."""
        if _console_takes_a_line():
            self.get_logger().warning(one_line(text, LINE))

    def _fail(self, text: str) -> None:
        if _console_takes_a_line():
            self.get_logger().error(f"{self.state}: {one_line(text)}")


def _console_takes_a_line() -> bool:
    """Can a line be written to the console without blocking on its reader?

    rclpy holds the GIL while it writes: a pipe that nobody reads, or a paused terminal, would stop
    the control loop, and the watchdog's thread with it.
    """
    descriptor = 1 if os.environ.get("RCUTILS_LOGGING_USE_STDOUT") == "1" else 2
    try:
        return bool(select.select([], [descriptor], [], 0.0)[1])
    except (OSError, ValueError):  # closed: the text is lost, and nothing blocks
        return True
