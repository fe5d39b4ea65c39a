# SPDX-License-Identifier: Apache-2.0
"""Time for which a JointTrajectory message with many points blocks the node's loop.

    python benchmarks/trajectory_reading.py [--joints N] [--json OUT]

The message has positions, velocities and accelerations at every point, and is read as in the node:
bytes, names, lengths, numbers, times, polynomials and limits. The time for the bytes alone is
measured separately.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynamics.ros.feed_forward.limits import CommandLimits
from robot_dynamics.ros.feed_forward.motion import MOST_POINTS, read
from robot_dynamics.ros.feed_forward.refusal import RefusedError
from robot_dynamics.ros.serialized_trajectories import read as from_bytes

COUNTS = (100, 1_000, 10_000, MOST_POINTS)
REPEATS = 40


def trajectory(count: int, names: list[str]) -> JointTrajectory:
    """A swing of all joints, a point every millisecond."""
    message = JointTrajectory(joint_names=names)
    k = np.arange(len(names))
    for i in range(count):
        phase = 1e-3 * i + k
        message.points.append(
            JointTrajectoryPoint(
                positions=np.sin(phase).tolist(),
                velocities=np.cos(phase).tolist(),
                accelerations=(-np.sin(phase)).tolist(),
                time_from_start=Duration(sec=i // 1000, nanosec=i % 1000 * 1_000_000),
            )
        )
    return message


def best(task: Callable[[], Any]) -> float:
    """ms of the processor, in the quickest of some runs: the others tell of the machine."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        task()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--joints", type=int, default=6)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = [f"joint_{k}" for k in range(args.joints)]
    never = np.zeros(args.joints, dtype=bool)
    limits = CommandLimits(accelerations=1000.0, lead_in=10.0, rates=np.full(args.joints, 3.0))

    def take(message: JointTrajectory) -> None:
        read(message, names[::-1], never, now=1, whole_state=False, missing=None,
             limits=limits)  # fmt: skip

    results = []
    for count in COUNTS:
        data = serialize_message(trajectory(count, names))
        results.append(
            {
                "points": count,
                "read_ms": round(best(lambda data=data: take(from_bytes(data))), 2),
                "bytes_ms": round(best(lambda data=data: from_bytes(data)), 2),
            }
        )
        print(json.dumps(results[-1]), flush=True)
    try:
        take(trajectory(MOST_POINTS + 1, names))
    except RefusedError as error:
        print(f"{MOST_POINTS + 1} points: {error}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
