# SPDX-License-Identifier: Apache-2.0
"""Options of topics, and publishing that survives a stall of the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile

from ..errors import one_line

LINE = 500
"""The largest number of characters of a line in the log and of a value in the diagnostics"""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""QoS of descriptions, whose newest message late subscribers receive too"""

QUIET_IN = {"event_callbacks": SubscriptionEventCallbacks(use_default_callbacks=False)}
QUIET_OUT = {"event_callbacks": PublisherEventCallbacks(use_default_callbacks=False)}
"""Options of subscriptions and publishers without event handlers, each of which costs the executor
time for every message"""


def publish(publisher: Publisher[Any], message: Any) -> None:
    """Publish a message; try twice.

    A reliable publisher fails if the process is held up for more than 0.1 s within the call (by a
    debugger, a virtual machine or swapping), because the middleware's timeout has then expired.

    Args:
        publisher: the publisher.
        message: the message, or its serialized form.
    """
    try:
        publisher.publish(message)
    except rclpy_implementation.RCLError:
        publisher.publish(message)


def publish_diagnostics(
    publisher: Publisher[Any],
    node: Node,
    subject: str,
    level: bytes,
    message: str,
    values: Mapping[str, str],
    hardware: str = "",
) -> None:
    """Publish a DiagnosticArray with one status, stamped now.

    Args:
        publisher: the publisher.
        node: the node whose state it is.
        subject: what the status is about.
        level: one of the constants of DiagnosticStatus.
        message: a summary.
        values: further values by name.
        hardware: the robot's name.
    """
    status = DiagnosticStatus(
        level=level,
        name=f"{node.get_fully_qualified_name().lstrip('/')}: {subject}",
        message=one_line(message, LINE),
        hardware_id=one_line(hardware, LINE),
        values=[
            KeyValue(key=one_line(key, LINE), value=one_line(value, LINE))
            for key, value in values.items()
        ],
    )
    report = DiagnosticArray(status=[status])
    report.header.stamp = node.get_clock().now().to_msg()
    publish(publisher, report)
