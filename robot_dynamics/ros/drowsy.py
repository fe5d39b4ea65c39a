"""Topics that are silent most of the time, and cost nothing then.

rclpy's executor goes through all that a node listens to for every message that comes. Subscriptions
of this group are asleep: the node looks after them when it likes (`poll`). One that has something
is awake, and heard at once, until nothing has come for a while.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup

AWAKE = 10.0
"""s after the last message"""


class Drowsy(CallbackGroup):  # type: ignore[misc]
    """A callback group of subscriptions, for an executor with one thread.

    Args:
        steady: s, of a clock that never jumps.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic):
        super().__init__()
        self._steady = steady
        self._awake: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()

    def can_execute(self, entity: Any) -> bool:
        """Is it awake?"""
        return entity in self._awake

    def beginning_execution(self, entity: Any) -> bool:
        """Something has come: it stays awake."""
        self._awake[entity] = self._steady()
        return True

    def ending_execution(self, _entity: Any) -> None:
        """There is one thread: nothing waits for it."""

    def poll(self) -> None:
        """Hear what came to those that are asleep, and let those sleep that are silent."""
        now = self._steady()
        for reference in tuple(self.entities):
            entity = reference()
            if entity is None:
                self.entities.discard(reference)
            elif now - self._awake.get(entity, -AWAKE) >= AWAKE:
                self._awake.pop(entity, None)
                self._hear(entity)

    def _hear(self, subscription: Any) -> None:
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
        if taken is not None:
            self._awake[subscription] = self._steady()
            subscription.callback(taken[0])
