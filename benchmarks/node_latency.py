# SPDX-License-Identifier: Apache-2.0
"""State-to-torque latency of the node, compared with an rclpy node that echoes the same message.

    python benchmarks/node_latency.py [--description FILE] [--seconds S] [--json OUT]

One process publishes JointState messages at 500 Hz and 1 kHz and measures the time until the answer
arrives: from an echo, which publishes what it receives, and from `feed_forward`, which publishes
torques. Both run all the time in separate processes and are measured in alternating blocks, so that
other load on the machine affects both.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = 10
"""turns of each"""
WARM_UP = 0.2
"""part of each block that is left out"""
PATIENCE = 60.0
"""s until the processes have to answer"""


def echo() -> None:
    """Publish what comes."""
    import rclpy
    from rclpy.executors import ExternalShutdownException
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState

    rclpy.init()
    node = rclpy.create_node("echo")
    out = node.create_publisher(JointState, "echo/answer", 1)
    node.create_subscription(JointState, "echo/states", out.publish, qos_profile_sensor_data)
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


class Asker:
    """Sends states to one of the two and takes the times until the answers."""

    def __init__(self, node: Any, states: str, answer: str, kind: Any, names: list[str], pid: int):
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import qos_profile_sensor_data
        from sensor_msgs.msg import JointState

        self.pid, self.node = pid, node
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(node)
        self.publisher = node.create_publisher(JointState, states, qos_profile_sensor_data)
        self.message = JointState(name=names)
        self.message.position = [0.1] * len(names)
        self.message.velocity = [0.2] * len(names)
        self.came = 0
        node.create_subscription(kind, answer, self._on_answer, 1)
        self.latencies: list[float] = []
        self.lost = self.asked = 0
        self.cpu = 0.0

    def _on_answer(self, _: Any) -> None:
        self.came = time.perf_counter_ns()

    def ask(self, patience: float) -> float | None:
        """us until the answer."""
        self.message.header.stamp = self.node.get_clock().now().to_msg()
        self.came = 0
        sent = time.perf_counter_ns()
        self.publisher.publish(self.message)
        limit = time.monotonic() + patience
        while not self.came and time.monotonic() < limit:
            self.executor.spin_once(timeout_sec=patience)
        return (self.came - sent) / 1e3 if self.came else None

    def block(self, rate: float, count: int) -> None:
        before = cpu_seconds(self.pid)
        start = time.perf_counter()
        for k in range(count):
            while time.perf_counter() < start + k / rate:
                pass
            latency = self.ask(0.1)
            if latency is None:
                self.lost += 1
            elif k > WARM_UP * count:
                self.latencies.append(latency)
        self.asked += count
        self.cpu += cpu_seconds(self.pid) - before

    def result(self, what: str, rate: float) -> dict[str, Any]:
        import numpy as np

        p50, p99 = np.percentile(self.latencies, [50, 99])
        found = {
            "what": what,
            "rate_hz": rate,
            "p50_us": float(p50),
            "p99_us": float(p99),
            "cpu_us_per_message": self.cpu / self.asked * 1e6,
            "lost": self.lost,
        }
        self.latencies, self.lost, self.asked, self.cpu = [], 0, 0, 0.0
        return found


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes of memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(description: str, seconds: float) -> list[dict[str, Any]]:
    """Results by rate: the echo's, then the node's."""
    import rclpy
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    import robot_dynamics as rd

    mechanism = rd.load(description)
    names, moved = list(mechanism.joint_names), list(mechanism.actuated_names)
    feed_forward = [sys.executable, "-m", "robot_dynamics.node", "--ros-args"]
    feed_forward += ["-p", f"description:={description}"]
    feed_forward += ["-p", "command_timeout:=0.0", "-p", "max_age:=0.0"]  # blocks pause
    results = []
    with (
        running([sys.executable, __file__, "--echo"]) as echoing,
        running(feed_forward) as computing,
    ):
        rclpy.init()
        bare = rclpy.create_node("asks_echo")
        ours = rclpy.create_node("asks_feed_forward")
        echoed = Asker(bare, "echo/states", "echo/answer", JointState, names, echoing.pid)
        computed = Asker(
            ours,
            "joint_states",
            "feed_forward/commands",
            Float64MultiArray,
            names,
            computing.pid,
        )
        commands = ours.create_publisher(JointTrajectory, "feed_forward/command", 1)
        point = JointTrajectoryPoint(accelerations=[0.1] * len(moved))
        deadline = time.monotonic() + PATIENCE
        for asker in (echoed, computed):
            while asker.ask(0.1) is None:
                commands.publish(JointTrajectory(joint_names=moved, points=[point]))
                if time.monotonic() > deadline:
                    raise SystemExit(f"no answer within {PATIENCE:g} s")
        for rate in (500.0, 1000.0):
            for _ in range(BLOCKS):
                for asker in (echoed, computed):
                    asker.block(rate, int(seconds * rate / BLOCKS))
            results.append(echoed.result("echo", rate))
            results.append(computed.result("feed_forward", rate))
        rclpy.shutdown()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--description", default=str(ROOT / "urdf" / "six_axis.urdf"))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each, at each rate")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.echo:
        echo()
        return
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    results = measure(args.description, args.seconds)
    for result in results:
        print(json.dumps(result))
    for bare, ours in zip(results[::2], results[1::2], strict=True):
        print(
            f"{bare['rate_hz']:g} Hz: p50 {ours['p50_us'] / bare['p50_us']:.2f} x echo, CPU "
            f"{ours['cpu_us_per_message'] / bare['cpu_us_per_message']:.2f} x echo"
        )
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
