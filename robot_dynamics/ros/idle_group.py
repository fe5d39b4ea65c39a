# SPDX-License-Identifier: Apache-2.0
"""A callback group whose subscriptions and services cost nothing while they are idle.

For every message, rclpy's executor checks all entities of a node. It does not see those of this
group that are idle; the node polls them at its own pace instead (`poll`). An entity that receives
something becomes active, and the executor serves it immediately, until nothing has arrived for
`ACTIVE_TIME`.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import EventHandler
from rclpy.subscription import Subscription

ACTIVE_TIME = 10.0
"""s that an entity stays active after its last message"""


class PolledGroup(CallbackGroup):  # type: ignore[misc]
    """A callback group that no executor executes."""

    def can_execute(self, _entity: Any) -> bool:
        """Never."""
        return False

    def beginning_execution(self, _entity: Any) -> bool:
        """Never."""
        return False

    def ending_execution(self, _entity: Any) -> None:
        """Never called."""


class IdleGroup(CallbackGroup):  # type: ignore[misc]
    """A callback group of subscriptions and services, for an executor with one thread.

    Args:
        steady: s, of a clock that never jumps.

    Attributes:
        changes: how often an entity became active or idle, or was added.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic):
        super().__init__()
        self._steady = steady
        self.changes = 0
        self._active_since: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()

    def can_execute(self, entity: Any) -> bool:
        """Is the entity active? The events of a subscription always are: the node hides them.

        Args:
            entity: a subscription, a service, or an event handler.
        """
        return isinstance(entity, EventHandler) or entity in self._active_since

    def add_entity(self, entity: Any) -> None:
        """Add a new subscription or service, as in every group; event handlers are not polled."""
        if isinstance(entity, EventHandler):
            return
        super().add_entity(entity)
        self.changes += 1

    def beginning_execution(self, entity: Any) -> bool:
        """A message or request has arrived: the entity stays active."""
        if not isinstance(entity, EventHandler):
            self._mark_active(entity)
        return True

    def _mark_active(self, entity: Any) -> None:
        if entity not in self._active_since:
            self.changes += 1
        self._active_since[entity] = self._steady()

    def ending_execution(self, _entity: Any) -> None:
        """Nothing to do: with one thread, nothing waits for the end of a callback."""

    def poll(self) -> None:
        """Handle messages and requests for idle entities, and make inactive ones idle."""
        now = self._steady()
        for reference in tuple(self.entities):
            entity = reference()
            if entity is None:
                self.entities.discard(reference)
            elif now - self._active_since.get(entity, -ACTIVE_TIME) >= ACTIVE_TIME:
                if self._active_since.pop(entity, None) is not None:
                    self.changes += 1
                if hasattr(entity, "srv_type"):
                    self._answer(entity)
                else:
                    self._take(entity)

    def answer(self, except_for: Any) -> None:
        """Answer requests to all services but one, while the executor waits.

        Args:
            except_for: the service that is left out.
        """
        for reference in tuple(self.entities):
            entity = reference()
            if hasattr(entity, "srv_type") and entity is not except_for:
                self._answer(entity)

    def _answer(self, service: Any) -> None:
        kind = service.srv_type
        with service.handle:
            request, header = service.handle.service_take_request(kind.Request)
        if header is not None:
            self._mark_active(service)
            response = service.callback(request, kind.Response())
            with suppress(RuntimeError):  # the client no longer exists
                service.send_response(response, header)

    def _take(self, subscription: Any) -> None:
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        if taken is not None:
            self._mark_active(subscription)
            wants_info = subscription._callback_type is Subscription.CallbackType.WithMessageInfo
            subscription.callback(*taken[: 1 + wants_info])
