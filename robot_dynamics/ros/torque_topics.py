# SPDX-License-Identifier: Apache-2.0
"""Publishes torques: on `~/commands` for a controller, on `~/effort` with names and stamps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
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
from .controller_order import INTRODUCTION, ControllerOrder, Subscribers, full_name
from .feed_forward.outlet import Torques
from .feed_forward.refusal import RefusedError, Tally
from .feed_forward.stamps import SECOND
from .publishing import publish

NEWEST = QoSProfile(depth=1)
"""QoS of torques, of which only the newest matter"""

DELIVERY = 1.0
"""s: the least time to wait, at the end, until reliable subscribers acknowledge the last torques"""

OWED_FOR = 10.0
"""s for which torques at rest that could not be published are retried"""

LAUNCH = "launch_ros_"
"""Prefix of the name of a launch file's node, which removes torques after a crash"""

LEASE = 30.0
"""s for which an endpoint may be that of a killed process (20 s with Fast DDS)"""

REPETITION = 0.02
"""s between repetitions of the last torques, for subscribers that send no acknowledgement"""


class TorqueTopics:
    """Publishes torques, unless the receiving controller has other joints.

    Args:
        node: the node that publishes.
        tally: counts torques that are not published.
        check: compare the joints' names with the controller's?
        withheld: called when torques of a motion were published to nobody.
        options: options of the publishers.
    """

    def __init__(
        self,
        node: Node,
        tally: Tally,
        *,
        check: bool,
        withheld: Callable[[], None] = lambda: None,
        **options: Any,
    ):
        self._node, self._tally, self._check = node, tally, check
        self._withheld = withheld
        self._to_controller = node.create_publisher(
            Float64MultiArray, "~/commands", NEWEST, **options
        )
        self._named = node.create_publisher(JointState, "~/effort", NEWEST, **options)
        # polling the event costs less than a callback
        with self._to_controller.handle:
            self._matches: Any = rclpy_implementation.EventHandle(
                self._to_controller.handle, QoSPublisherEventType.RCL_PUBLISHER_MATCHED
            )
        self._order = ControllerOrder(node, self._to_controller.topic_name)
        self._effort = JointState()
        self._at = -math.inf
        self._moves = False  # are the newest torques that were published those of a motion?
        # torques at rest that could not be published: the controllers still hold those of a motion
        self._owed: Torques | None = None
        self._owed_since = 0.0
        # publishers of the controller's topic by their identifiers: when each was first seen
        self._since: dict[bytes, float] = {}

    @property
    def blocked(self) -> str:
        """Why no torques are sent to the controller; empty: nothing prevents it."""
        return self._order.problem

    @property
    def topic(self) -> str:
        """The controller's topic."""
        return str(self._to_controller.topic_name)

    @property
    def subscribers(self) -> int:
        """The number of subscribers of the controller's topic, not counting a launch file's
        node."""
        found = self._node.get_subscriptions_info_by_topic(self._to_controller.topic_name)
        return sum(not each.node_name.startswith(LAUNCH) for each in found)

    def rivals(self) -> list[str]:
        """The other nodes that publish on the controller's topic, not counting a launch file's
        node; to be called periodically, as they count after `LEASE`."""
        now = time.monotonic()
        found = self._node.get_publishers_info_by_topic(self._to_controller.topic_name)
        there = {
            bytes(each.endpoint_gid): full_name(each) or "a node without a name"
            for each in found
            if not each.node_name.startswith(LAUNCH)
        }
        self._since = {gid: self._since.get(gid, now) for gid in there}
        names = [name for gid, name in there.items() if now - self._since[gid] >= LEASE]
        own = self._node.get_fully_qualified_name()
        if own in names:  # another one of the same name remains
            names.remove(own)
        return sorted(names)

    def set_outputs(self, outputs: Sequence[str], *, are_joints: bool) -> None:
        """Set the names of the torques that are published from now on.

        Args:
            outputs: (m) names.
            are_joints: are they joints? Names of motors are not compared with the controller's.
        """
        self._order.set_outputs(outputs if are_joints and self._check else ())
        if self._effort.name != list(outputs):
            self._owed = None
        self._effort.name = list(outputs)
        self._effort.effort = none = [0.0] * len(outputs)
        self._named_values = np.frombuffer(self._effort.effort)
        # a serialized message ends with its numbers; the bytes before them are always the same
        self._commands = serialize_message(Float64MultiArray(data=none))
        self._before = self._commands[: -8 * len(none)]

    def publish(self, torques: Torques | None) -> None:
        """Publish torques. Torques at rest that may not be published now are published by `watch`
        as soon as they may, unless others follow.

        Args:
            torques: (m,) N·m or N, in the order of the outputs; None: nothing is published.
        """
        if torques is None:
            return
        subscribers = self._subscribers()
        self._order.look_for_new(subscribers)
        if self._order.problem:
            self._tally.refuse("torques", RefusedError("controller", self._order.problem))
            if torques is not self._owed:  # a retry may be blocked for another reason
                self._owed_since = time.monotonic()
            self._owed = torques if torques.at_rest else None
            if not torques.at_rest:
                self._withheld()
            return
        self._owed = None
        self._commands = self._before + torques.values.tobytes()
        # publish only to subscribers that were checked: one may appear at this very moment
        if subscribers.now:
            publish(self._to_controller, self._commands)
            self._moves = not torques.at_rest
        self._at = time.monotonic()
        # without subscribers nothing needs publishing: late joiners get nothing anyway, as the
        # durability cannot be overridden
        named = self._named.get_subscription_count()
        if not (named or subscribers.now or torques.at_rest):
            self._withheld()
        if named:
            self._named_values[:] = torques.values
            stamp = self._effort.header.stamp
            stamp.sec, stamp.nanosec = divmod(torques.time, SECOND)
            publish(self._named, self._effort)

    def publish_from_thread(self, values: Floats) -> None:
        """Publish torques for the controller from another thread.

        Args:
            values: (m,) N·m or N, in the order of the outputs.
        """
        if not self._order.problem:
            publish(self._to_controller, Float64MultiArray(data=values.tolist()))

    def watch(self) -> None:
        """Check the controller, and publish torques that are owed; to be called periodically.

        If a controller of the same name but other joints has appeared, zeros are published: no
        other torques may be, and the first one would hold those of a motion.
        """
        self._order.watch(self._subscribers())
        if self._order.problem and self._moves and self._order.may_be_released:
            self._moves = False
            publish(self._to_controller, self._before + bytes(8 * len(self._effort.name)))
            self._tally.note(
                "torques",
                "released",
                f"{self._order.problem} (zeros were published, as it held the torques of a motion)",
                anew=True,
            )
        if not self._order.problem and time.monotonic() - self._owed_since < OWED_FOR:
            self.publish(self._owed)

    def close(self) -> None:
        """Release the publisher, which the node destroys; nothing may keep it alive."""
        self._matches.destroy_when_not_in_use()

    def _subscribers(self) -> Subscribers:
        with self._matches:
            status: Any = self._matches.take_event()
        return Subscribers(status.current_count, status.total_count)

    def stay(self, seconds: float) -> list[str]:
        """Wait until the subscribers have received the last torques: a delayed subscriber would get
        nothing from a publisher that no longer exists.

        Torques that are owed are published as soon as it is known who receives them.

        Reliable subscribers acknowledge them, however long ago they were published. For best-effort
        subscribers, such as ros2_control's effort controllers over Fast DDS, they are repeated
        while they are recent: somebody else may drive the robot by now.

        Args:
            seconds: how long after their publication they are repeated, s; acknowledgements are
                awaited for as long, but at least for `DELIVERY`.

        Returns:
            the topics with a reliable subscriber that has not acknowledged them.
        """
        end = time.monotonic() + max(seconds, INTRODUCTION + DELIVERY)
        while self._owed is not None and self._order.waits and time.monotonic() < end:
            self.watch()
            time.sleep(REPETITION)
        end = time.monotonic() + max(seconds, DELIVERY)
        while time.monotonic() < self._at + seconds and self._has_a_best_effort_subscriber():
            self._order.look_for_new(self._subscribers())
            if not self._order.problem:
                publish(self._to_controller, self._commands)
            time.sleep(REPETITION)
        return [
            publisher.topic_name
            for publisher in (self._to_controller, self._named)
            if not publisher.wait_for_all_acked(Duration(seconds=max(end - time.monotonic(), 0.0)))
        ]

    def _has_a_best_effort_subscriber(self) -> bool:
        found = self._node.get_subscriptions_info_by_topic(self._to_controller.topic_name)
        return any(each.qos_profile.reliability != ReliabilityPolicy.RELIABLE for each in found)
