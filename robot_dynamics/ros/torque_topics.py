"""Torques as messages: `~/commands` for a controller, `~/effort` with names and stamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ..scalar import Floats
from .controller_order import ControllerOrder
from .feed_forward.outlet import Torques
from .feed_forward.refusal import RefusedError, Tally
from .feed_forward.stamps import SECOND

NEWEST = QoSProfile(depth=1)
"""Torques: an old one is of no use"""

DELIVERY = 1.0
"""s that the end waits for a reliable subscriber to have the last torques"""


class TorqueTopics:
    """Where torques go, unless the controller there has other joints.

    Args:
        node: theirs.
        tally: is told what is not published.
        options: of the publishers.

    Attributes:
        order: of the controller's joints.
    """

    def __init__(self, node: Node, tally: Tally, **options: Any):
        self._tally = tally
        self._to_controller = node.create_publisher(
            Float64MultiArray, "~/commands", NEWEST, **options
        )
        self._named = node.create_publisher(JointState, "~/effort", NEWEST, **options)
        self.order = ControllerOrder(node, self._to_controller.topic_name)
        self._commands, self._effort = Float64MultiArray(), JointState()

    def fit(self, outputs: Sequence[str]) -> None:
        """From now on they are of these joints or motors."""
        self._effort.name = list(outputs)
        self._commands.data = self._effort.effort = [0.0] * len(outputs)
        # windows into the messages: publishing allocates nothing
        self._windows = np.frombuffer(self._commands.data), np.frombuffer(self._effort.effort)

    def publish(self, torques: Torques | None) -> None:
        """Torques (m,) of the outputs; None: there are none."""
        if torques is None:
            return
        if self.order.problem:
            self._tally.refuse("torques", RefusedError("controller", self.order.problem))
            return
        self._windows[0][:] = self._windows[1][:] = torques.values
        self._to_controller.publish(self._commands)
        stamp = self._effort.header.stamp
        stamp.sec, stamp.nanosec = divmod(torques.time, SECOND)
        self._named.publish(self._effort)

    def publish_beside(self, values: Floats) -> None:
        """Torques (m,) for the controller, from another thread than the others."""
        if not self.order.problem:
            self._to_controller.publish(Float64MultiArray(data=values.tolist()))

    def unacknowledged(self) -> list[str]:
        """Wait for the subscribers to have the last ones; the topics where one has not."""
        return [
            publisher.topic_name
            for publisher in (self._to_controller, self._named)
            if not publisher.wait_for_all_acked(Duration(seconds=DELIVERY))
        ]
