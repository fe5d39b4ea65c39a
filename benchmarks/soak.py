# SPDX-License-Identifier: Apache-2.0
"""Soak test of the node under a steady load: lost torques, latency, memory.

    python benchmarks/soak.py [--seconds S] [--robot polar] [--rate 1000] [--json OUT]

States of a moving robot are published at 500 Hz and 1 kHz, new accelerations at 50 Hz; the node
runs in a separate process. `latency_us` is the time from a state's publication to the arrival of
its torques; `states_not_sent` counts those that this machine was too busy to send. Memory is the
node's resident set, once a second; `start` is after a warm-up. Collections are those of Python's
garbage collector in the node after the warm-up, by generation. `--seconds 3600` takes an hour for
all four.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from node_latency import ROOT, resident

import robot_dynamics as rd

ROBOTS = {  # where the motors swing about, and parameters of the node
    "polar": ({"theta1": 0.3, "d2": 0.5}, {}),
    "rrr": (
        {"qa1": np.pi / 2 + 0.2, "qa2": 7 * np.pi / 6 - 0.15, "qa3": -np.pi / 6 + 0.1},
        {"sensed": "true"},
    ),
}
RATES = (500.0, 1000.0)
COMMAND_RATE = 50.0
"""Hz"""
AMPLITUDE, PERIOD = 0.05, 2.0
"""rad or m, and s, of the swing"""
PATIENCE = 120.0
"""s until the node has to answer, and to end"""
LAST = 1.0
"""s in which the last torques may still come"""


def node() -> int:
    """The node, and on stdout when which generation was collected."""
    from robot_dynamics.node import main

    collections: list[tuple[float, int]] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            collections.append((time.monotonic(), info["generation"]))

    gc.callbacks.append(count)
    code = main()
    print(json.dumps(collections), flush=True)
    return code


class Swing:
    """States and accelerations of a robot whose motors swing, for one period."""

    def __init__(self, robot: str, rate: float):
        dynamics = rd.InverseDynamics(rd.load(ROOT / "config" / f"{robot}.yaml"))
        self.motors = list(dynamics.actuated_names)
        centre = np.array([ROBOTS[robot][0][name] for name in self.motors])
        self.count = round(PERIOD * rate)
        w = 2 * np.pi / PERIOD
        phase = w * np.arange(self.count)[:, None] / rate
        q, qd = centre + AMPLITUDE * np.sin(phase), AMPLITUDE * w * np.cos(phase)
        qd = np.repeat(qd, len(self.motors), axis=1)
        self.qdd = np.repeat(-AMPLITUDE * w**2 * np.sin(phase), len(self.motors), axis=1).tolist()
        if dynamics.closed is None:
            self.names, self.states = self.motors, list(zip(q.tolist(), qd.tolist(), strict=True))
            return
        self.names = list(dynamics.closed.coordinate_names)
        closed = (dynamics.closed.forward_kinematics(*both) for both in zip(q, qd, strict=True))
        self.states = [(state.q_r.tolist(), state.qd_r.tolist()) for state in closed]


class Soak:
    """One robot at one rate."""

    def __init__(self, robot: str, rate: float, pid: int):
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import qos_profile_sensor_data
        from sensor_msgs.msg import JointState
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        self.swing, self.rate, self.pid = Swing(robot, rate), rate, pid
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("soak", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.states = self.node.create_publisher(
            JointState, "joint_states", qos_profile_sensor_data
        )
        self.commands = self.node.create_publisher(JointTrajectory, "feed_forward/command", 1)
        self.node.create_subscription(JointState, "feed_forward/effort", self._on_effort, 1000)
        self.state = JointState(name=self.swing.names)
        self.point = JointTrajectoryPoint()
        self.command = JointTrajectory(joint_names=self.swing.motors)
        self.asked: dict[int, int] = {}
        self.turn = -1
        self.clear()

    def clear(self) -> None:
        """Count from now on."""
        self.asked.clear()
        self.latencies = array("d")
        self.sent = self.answered = self.not_sent = self.commanded = 0

    def _on_effort(self, message: Any) -> None:
        now = time.perf_counter_ns()
        stamp = message.header.stamp
        asked = self.asked.pop(stamp.sec * 10**9 + stamp.nanosec, None)
        if asked is not None:
            self.answered += 1
            self.latencies.append((now - asked) / 1e3)

    def ask(self, k: int) -> None:
        """Publish the k-th state, and now and then what is wanted."""
        place = k % self.swing.count
        if (turn := int(k * COMMAND_RATE / self.rate)) != self.turn:
            self.turn = turn
            self.point.accelerations = self.swing.qdd[place]
            self.command.points = [self.point]
            self.commands.publish(self.command)
            self.commanded += 1
        self.state.position, self.state.velocity = self.swing.states[place]
        stamp = self.node.get_clock().now()
        self.state.header.stamp = stamp.to_msg()
        self.asked[stamp.nanoseconds] = time.perf_counter_ns()
        self.states.publish(self.state)
        self.sent += 1

    def hear(self, until: float) -> None:
        """Take in answers."""
        while (left := until - time.perf_counter()) > 0:
            self.executor.spin_once(timeout_sec=left)

    def run(self, seconds: float) -> list[int]:
        """Bytes of memory of the node, once a second."""
        memory = [resident(self.pid)]
        start = time.perf_counter()
        k, last, measured = 0, round(seconds * self.rate), start
        while k < last:
            self.ask(k)
            now = time.perf_counter()
            if now - measured > 1.0:
                measured = now
                memory.append(resident(self.pid))
            due = int((now - start) * self.rate) + 1
            self.not_sent += min(due, last) - (k + 1)
            k = due
            self.hear(start + k / self.rate)
        return [*memory, resident(self.pid)]

    def close(self) -> None:
        """Leave ROS."""
        import rclpy

        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


def soak(robot: str, rate: float, seconds: float, warm_up: float) -> dict[str, Any]:
    """What became of the node."""
    parameters = {
        "description": str(ROOT / "config" / f"{robot}.yaml"),
        "command_timeout": "0.0",
        "max_age": "0.0",  # a generator that is held up is no lost feedback
        **ROBOTS[robot][1],
    }
    given = (f"{name}:={value}" for name, value in parameters.items())
    command = [sys.executable, __file__, "--node", "--ros-args"]
    command += [part for each in given for part in ("-p", each)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            test = Soak(robot, rate, process.pid)
            try:
                deadline = time.monotonic() + PATIENCE
                while not test.answered:
                    test.run(0.1)
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise SystemExit(f"{robot}: no answer from the node")
                test.run(warm_up)
                test.hear(time.perf_counter() + LAST)
                test.clear()
                begin = time.monotonic()
                memory = test.run(seconds)
                end = time.monotonic()
                test.hear(time.perf_counter() + LAST)
            finally:
                test.close()
        finally:
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=PATIENCE)
    collected = [generation for at, generation in json.loads(out) if begin <= at <= end]
    p50, p99, p999 = np.percentile(test.latencies, [50, 99, 99.9]) if test.latencies else [None] * 3
    return {
        "robot": robot,
        "rate_hz": rate,
        "seconds": seconds,
        "states_sent": test.sent,
        "states_not_sent": test.not_sent,
        "commands_sent": test.commanded,
        "torques": test.answered,
        "lost": test.sent - test.answered,
        "latency_us": {
            "p50": p50,
            "p99": p99,
            "p99.9": p999,
            "max": max(test.latencies, default=None),
        },
        "memory_bytes": {"start": memory[0], "end": memory[-1], "most": max(memory)},
        "collections": [collected.count(generation) for generation in range(3)],
        "exit_code": process.returncode,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each")
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds before")
    parser.add_argument("--robot", choices=list(ROBOTS), action="append")
    parser.add_argument("--rate", type=float, action="append", help="Hz")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    results = []
    for robot in args.robot or ROBOTS:
        for rate in args.rate or RATES:
            results.append(soak(robot, rate, args.seconds, args.warm_up))
            print(json.dumps(results[-1]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return int(any(result["exit_code"] for result in results))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--node"]:
        del sys.argv[1]
        sys.exit(node())
    sys.exit(main())
