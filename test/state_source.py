# SPDX-License-Identifier: Apache-2.0
"""States that follow from their stamps, so that a torque can be checked by its stamp alone; and, as
a program, a driver that publishes them: `python test/state_source.py RATE KIND [garbage]`.

It ends when its standard input does, and prints its first stamp, the period and the last stamp.
"""

from __future__ import annotations

import math
import select
import sys
import time
from collections.abc import Sequence

from sensor_msgs.msg import JointState

JOINTS = ("q1", "q2", "q3")
SECOND = 10**9
MOST_AT_ONCE = 200
"""states that are made up for where the machine did not keep up"""


def state(ns: int) -> tuple[list[float], list[float]]:
    """q, qd (3,) at a stamp, rad and rad/s. A driver with odd stamps contradicts others."""
    t, kind = 2 * math.pi * (ns % SECOND) / SECOND, ns % 2
    q = [math.sin((k + 1) * t + k) - 0.7 * kind for k in range(3)]
    qd = [math.cos((3 - k) * t + 2 * k) * (1 - 2 * kind) for k in range(3)]
    return q, qd


def message(ns: int, order: Sequence[int] = range(3)) -> JointState:
    """The state at a stamp, its joints in any order."""
    q, qd = state(ns)
    found = JointState(name=[JOINTS[k] for k in order])
    found.position, found.velocity = [q[k] for k in order], [qd[k] for k in order]
    found.header.stamp.sec, found.header.stamp.nanosec = divmod(ns, SECOND)
    return found


def garbage(ns: int) -> JointState:
    """One that nobody can use, in words that were never said before."""
    found = message(ns)
    found.name = [*JOINTS[:2], f"{ns} is no joint " * 20]
    return found


def publish(rate: int, kind: int, *, with_garbage: bool) -> None:
    """Publish states until the standard input ends, every other one garbage where asked."""
    import rclpy
    from rclpy.qos import qos_profile_sensor_data

    rclpy.init()
    node = rclpy.create_node(f"driver_{kind}")
    publisher = node.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
    period = SECOND // rate
    start = time.time_ns() // 2 * 2 + kind
    k = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        due = (time.time_ns() - start) // period
        for n in range(max(k, due - MOST_AT_ONCE), due):
            ns = start + n * period
            publisher.publish(garbage(ns) if with_garbage and n % 2 else message(ns))
        k = due
        time.sleep(1e-4)
    print(start, period, start + k * period, flush=True)
    node.destroy_node()
    rclpy.shutdown()


if __name__ == "__main__":
    publish(int(sys.argv[1]), int(sys.argv[2]), with_garbage="garbage" in sys.argv)
