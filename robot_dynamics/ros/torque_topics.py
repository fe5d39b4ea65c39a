# SPDX-License-Identifier: Apache-2.0
"""Torques as messages: `~/commands` for a controller, `~/effort` with names and stamps."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.event_handler import QoSPublisherEventType
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ..scalar import Floats
from .controller_order import ControllerOrder, Subscribers
from .feed_forward.outlet import Torques
from .feed_forward.refusal import RefusedError, Tally
from .feed_forward.stamps import SECOND

NEWEST = QoSProfile(depth=1)
"""Torques: an old one is of no use"""

DELIVERY = 1.0
"""s that the end waits for reliable subscribers to acknowledge the last torques"""

REPETITION = 0.02
"""s between two repetitions of the last torques, for subscribers that acknowledge nothing"""


class TorqueTopics:
    """Where torques go, unless the controller there has other joints.

    Args:
        node: theirs.
        tally: counts what is not published.
        check: compare the names with the controller's?
        options: of the publishers.
    """

    def __init__(
        self,
        node: Node,
        tally: Tally,
        *,
        check: bool,
        **options: Any,
    ):
        self._node, self._tally, self._check = node, tally, check
        self._to_controller = node.create_publisher(
            Float64MultiArray, "~/commands", NEWEST, **options
        )
        self._named = node.create_publisher(JointState, "~/effort", NEWEST, **options)
        # asked for, it costs less than a callback does
        with self._to_controller.handle:
            self._matches: Any = rclpy_implementation.EventHandle(
                self._to_controller.handle, QoSPublisherEventType.RCL_PUBLISHER_MATCHED
            )
        self._order = ControllerOrder(node, self._to_controller.topic_name)
        self._effort = JointState()
        self._at = -math.inf

    @property
    def blocked(self) -> str:
        """Why none goes to the controller; empty: nothing is in the way."""
        return self._order.problem

    @property
    def unheard(self) -> str:
        """The controller's topic, if nobody subscribes to it."""
        return "" if self._subscribers().now else str(self._to_controller.topic_name)

    def fit(self, outputs: Sequence[str], *, are_joints: bool) -> None:
        """From now on they are of these joints, or of motors, whose names no controller has."""
        self._order.fit(outputs if are_joints and self._check else ())
        self._effort.name = list(outputs)
        self._effort.effort = none = [0.0] * len(outputs)
        self._named_values = np.frombuffer(self._effort.effort)
        # a serialized message ends with its numbers: what comes before them is always the same
        self._commands = serialize_message(Float64MultiArray(data=none))
        self._before = self._commands[: -8 * len(none)]

    def publish(self, torques: Torques | None) -> None:
        """Torques (m,) of the outputs; None: there are none."""
        if torques is None:
            return
        subscribers = self._subscribers()
        self._order.sees(subscribers)
        if self._order.problem:
            self._tally.refuse("torques", RefusedError("controller", self._order.problem))
            return
        self._commands = self._before + torques.values.tobytes()
        # who comes this moment was not seen
        if subscribers.now:
            self._to_controller.publish(self._commands)
        self._at = time.monotonic()
        # nothing is kept for who comes later: its durability cannot be overridden
        if self._named.get_subscription_count():
            self._named_values[:] = torques.values
            stamp = self._effort.header.stamp
            stamp.sec, stamp.nanosec = divmod(torques.time, SECOND)
            self._named.publish(self._effort)

    def publish_beside(self, values: Floats) -> None:
        """Torques (m,) for the controller, from another thread than the others."""
        if not self._order.problem:
            self._to_controller.publish(Float64MultiArray(data=values.tolist()))

    def watch(self) -> None:
        """To be called again and again: looks after the controller."""
        self._order.watch(self._subscribers())

    def close(self) -> None:
        """Let go of the publisher: the node takes it apart, and nothing may keep it longer."""
        self._matches.destroy_when_not_in_use()

    def _subscribers(self) -> Subscribers:
        with self._matches:
            status: Any = self._matches.take_event()
        return Subscribers(status.current_count, status.total_count)

    def stay(self, seconds: float) -> list[str]:
        """Stay until the subscribers have the last torques, if these went out a moment ago.

        Reliable ones acknowledge. For best-effort ones, as ros2_control's effort controllers are
        over Fast DDS, they are repeated: who is held up finds nothing of a publisher that is gone.

        Args:
            seconds: that best-effort ones get.

        Returns:
            the topics where a reliable one has not acknowledged them.
        """
        age = time.monotonic() - self._at
        end = self._at + seconds
        while time.monotonic() < end and self._has_a_best_effort_subscriber():
            self._order.sees(self._subscribers())
            if not self._order.problem:
                self._to_controller.publish(self._commands)
            time.sleep(REPETITION)
        if age > DELIVERY:
            return []
        return [
            publisher.topic_name
            for publisher in (self._to_controller, self._named)
            if not publisher.wait_for_all_acked(Duration(seconds=DELIVERY))
        ]

    def _has_a_best_effort_subscriber(self) -> bool:
        found = self._node.get_subscriptions_info_by_topic(self._to_controller.topic_name)
        return any(each.qos_profile.reliability != ReliabilityPolicy.RELIABLE for each in found)
