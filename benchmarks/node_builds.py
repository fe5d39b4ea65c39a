# SPDX-License-Identifier: Apache-2.0
"""Worst-case latency of the node while it builds another model.

    python benchmarks/node_builds.py [--description FILE] [--seconds S] [--json OUT]

One process publishes JointState messages at 500 Hz and measures the time until the torques arrive:
while nothing is built, and while one change per second is made: formulations, payloads, the same
description again, a chain of 40 joints that is replaced while it is being built, and a description
with 100,000 links, which is refused. The benchmark has a cache of its own, so that kernels are
compiled. The node's memory is printed after each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from node_latency import PATIENCE, ROOT, Asker, resident, running
from robots import chain_urdf

RATE = 500.0
"""Hz"""


class Client:
    """Asks the node for torques at a rate, and for changes meanwhile."""

    def __init__(self, text: str, pid: int):
        import rclpy
        from geometry_msgs.msg import InertiaStamped
        from rcl_interfaces.srv import SetParameters
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from std_msgs.msg import Float64MultiArray, String
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        from robot_dynamics.description import load_urdf_text

        self.mechanism = load_urdf_text(text)
        names = list(self.mechanism.joint_names)
        self.node = rclpy.create_node("asks")
        self.asker = Asker(
            self.node, "joint_states", "feed_forward/commands", Float64MultiArray, names, pid
        )
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._descriptions = self.node.create_publisher(String, "robot_description", latched)
        self._payloads = self.node.create_publisher(InertiaStamped, "feed_forward/payload", 10)
        self._setter = self.node.create_client(SetParameters, "feed_forward/set_parameters")
        self._string, self._inertia, self._request = String, InertiaStamped, SetParameters.Request
        commands = self.node.create_publisher(JointTrajectory, "feed_forward/command", 1)
        self.describe(text)
        point = JointTrajectoryPoint(accelerations=[0.1] * len(names))
        deadline = time.monotonic() + PATIENCE
        while self.asker.ask(0.1) is None or not self._setter.service_is_ready():
            commands.publish(JointTrajectory(joint_names=names, points=[point]))
            if time.monotonic() > deadline:
                raise SystemExit(f"no answer within {PATIENCE:g} s")

    def describe(self, text: str) -> None:
        self._descriptions.publish(self._string(data=text))

    def carry(self, mass: float) -> None:
        message = self._inertia()
        message.header.frame_id = self.mechanism.links[-1].name
        message.inertia.m = mass
        self._payloads.publish(message)

    def set(self, **values: Any) -> None:
        from rclpy.parameter import Parameter

        parameters = [Parameter(name, value=v).to_parameter_msg() for name, v in values.items()]
        self._setter.call_async(self._request(parameters=parameters))

    def phase(self, what: str, seconds: float, changes: Iterator[Callable[[], None]]) -> dict:
        """Latencies while one change a second is made."""
        import numpy as np

        self.asker.latencies, self.asker.lost = [], 0
        made = 0
        latencies = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            change = next(changes, None)
            if change is not None:
                change()
                made += 1
            start = time.perf_counter()
            for k in range(int(RATE)):
                while time.perf_counter() < start + k / RATE:
                    pass
                latency = self.asker.ask(2.0)
                latencies.append(2e6 if latency is None else latency)
        p50, p99, worst = np.percentile(latencies, [50, 99, 100]) / 1e3
        return {
            "while": what,
            "changes": made,
            "states": len(latencies),
            "p50_ms": round(float(p50), 3),
            "p99_ms": round(float(p99), 3),
            "worst_ms": round(float(worst), 3),
            "node_mb": round(resident(self.asker.pid) / 1e6, 1),
        }


def measure(text: str, seconds: float) -> list[dict[str, Any]]:
    """The phases, one after the other."""
    import rclpy

    command = [sys.executable, "-m", "robot_dynamics.node", "--ros-args"]
    command += ["-p", "command_timeout:=0.0", "-p", "max_age:=0.0"]
    with running(command) as process:
        rclpy.init()
        client = Client(text, process.pid)

        def forever(make: Callable[[int], None]) -> Iterator[Callable[[], None]]:
            k = 0
            while True:
                k += 1
                yield partial(make, k)

        formulations = ("lagrange_euler", "gibbs_appell", "murphy", "newton_euler")
        changing: list[tuple[str, Iterator[Callable[[], None]]]] = [
            ("nothing is built", iter(())),
            ("formulations", forever(lambda k: client.set(formulation=formulations[k % 4]))),
            ("payloads", forever(lambda k: client.carry(0.1 * k))),
            (
                "descriptions",
                forever(lambda k: client.describe(text.replace("<link", f"<!--{k}--><link", 1))),
            ),
            (
                "a chain of 40 joints, given up half-way",
                forever(lambda k: client.describe(chain_urdf(40) if k % 2 else text + " " * k)),
            ),
            (
                "100,000 links, refused",
                forever(lambda k: client.describe(chain_urdf(0) + "<link/>" * 100_000 + " " * k)),
            ),
            ("nothing is built, again", iter(())),
        ]
        results = [client.phase(what, seconds, changes) for what, changes in changing]
        rclpy.shutdown()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--description", type=Path, default=ROOT / "urdf" / "six_axis.urdf")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ROBOT_DYNAMICS_CACHE"] = cache
        results = measure(args.description.read_text(), args.seconds)
    for result in results:
        print(json.dumps(result))
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
