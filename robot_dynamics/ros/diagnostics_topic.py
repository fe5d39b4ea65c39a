# SPDX-License-Identifier: Apache-2.0
"""Publishes the node's diagnostics on `/diagnostics`."""

from __future__ import annotations

import time as steady
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from .feed_forward.controller import FeedForward
from .feed_forward.diagnostics import Diagnosis
from .publishing import publish_diagnostics

PERIOD = 0.95
"""s: with the period of the timer that checks it, once a second"""


class DiagnosticsTopic:
    """Publishes a report once a second.

    Args:
        node: the node that publishes.
        controller: the subject of the reports.
        options: options of the publisher.
    """

    def __init__(self, node: Node, controller: FeedForward, **options: Any):
        self._node, self._controller = node, controller
        self._out = node.create_publisher(DiagnosticArray, "/diagnostics", 10, **options)
        self._last = steady.monotonic()
        self._diagnosis = Diagnosis(self._last)

    @property
    def is_due(self) -> bool:
        """Is it time for the next report?"""
        return steady.monotonic() - self._last >= PERIOD

    def publish(
        self,
        *,
        busy: bool,
        description_refused: bool,
        state: str,
        blocked: str,
        topic: str,
        subscribers: int,
    ) -> None:
        """Publish a report now; the arguments are those of `Diagnosis.report`."""
        self._last = steady.monotonic()
        report = self._diagnosis.report(
            self._controller,
            busy,
            self._node.get_clock().now().nanoseconds,
            self._last,
            description_refused=description_refused,
            state=state,
            blocked=blocked,
            topic=topic,
            subscribers=subscribers,
        )
        publish_diagnostics(
            self._out,
            self._node,
            "torques",
            bytes([report.level]),
            report.message,
            report.values,
            report.values.get("robot", ""),
        )
