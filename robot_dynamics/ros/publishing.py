# SPDX-License-Identifier: Apache-2.0
"""Publishing that survives a stall of the process."""

from __future__ import annotations

from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.publisher import Publisher


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
