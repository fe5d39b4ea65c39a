# SPDX-License-Identifier: Apache-2.0
"""One motion under a controller manager: loads controllers, commands the motion, records torques.

    python -m robot_dynamics.ros.controller_trial PLAN.json

The plan has these entries: `description` (URDF text, published for the manager), `controllers`
(loaded in this order; all are activated together), `topic` and `points` of the trajectory
({"joints", "time", "q", "qd", "qdd"}; none: nothing is commanded), `lead` (s from the message to
the motion), `seconds` (how long to continue after the beginning of the motion), `efforts` (a topic
of stamped torques to record; empty: none) and `out`, the file for the results:
{"begin": s, "efforts": [[stamp, torques…], …]}.

Import this module only if controller_manager_msgs is installed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from controller_manager_msgs.srv import ConfigureController, LoadController, SwitchController
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from .publishing import LATCHED

PATIENCE = 60.0
"""s to wait for a service or a subscriber to appear"""

PIECE, OVERLAP = 20.0, 2.0
"""s of the trajectory per message, and s by which two messages overlap: an hour is too much for
one message"""


class Trial(Node):  # type: ignore[misc]
    """A node that carries out a plan step by step.

    Args:
        plan: the plan, with the entries in the description of this module.
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        super().__init__("controller_trial")
        self._plan = plan
        self._efforts: list[list[float]] = []
        self._sent = 0.0  # s, where the last piece of the trajectory begins
        self._description = self.create_publisher(String, "robot_description", LATCHED)
        if plan["points"]:
            self._topic = self.create_publisher(JointTrajectory, plan["topic"], 1)
        if plan["efforts"]:
            self._heard = self.create_subscription(
                JointState, plan["efforts"], self._on_effort, 1000
            )

    def run(self) -> dict[str, Any]:
        """Carry out the plan.

        Returns:
            {"begin": s, "efforts": [[stamp, torques…], …]}
        """
        self._description.publish(String(data=self._plan["description"]))
        names = self._plan["controllers"]
        for name in names:
            self._call(LoadController, "load_controller", name=name)
            self._call(ConfigureController, "configure_controller", name=name)
        strict = SwitchController.Request.STRICT
        self._call(
            SwitchController,
            "switch_controller",
            activate_controllers=names,
            strictness=strict,
            timeout=Duration(sec=10),
        )
        if self._plan["points"]:
            topic = self._topic
            self._wait(lambda: topic.get_subscription_count() > 0, "the trajectory's subscriber")
        if self._plan["efforts"]:
            # the node first compiles the robot's equations, and drops commands that wait for states
            node = self._plan["efforts"].rsplit("/", 1)[0].lstrip("/")
            reports: list[DiagnosticStatus] = []
            heard = self.create_subscription(
                DiagnosticArray, "/diagnostics", lambda message: reports.extend(message.status), 10
            )
            self._wait(lambda: _has_states(node, reports), f"states that the node {node} receives")
            self.destroy_subscription(heard)
        begin = self.get_clock().now().nanoseconds + round(self._plan["lead"] * 1e9)
        if self._plan["points"]:
            self._topic.publish(self._trajectory(begin, 0.0))
        self._wait(lambda: self._is_over(begin), "the end", self._plan["seconds"] + PATIENCE)
        return {"begin": begin * 1e-9, "efforts": self._efforts}

    def _is_over(self, begin: int) -> bool:
        """Is the motion over? Also send each piece of the trajectory as soon as it has begun, which
        lets the previous piece continue in it."""
        t: float = (self.get_clock().now().nanoseconds - begin) * 1e-9
        if self._plan["points"] and self._sent + PIECE < min(t, self._plan["seconds"]):
            self._sent += PIECE
            self._topic.publish(self._trajectory(begin, self._sent))
        return t > float(self._plan["seconds"])

    def _trajectory(self, begin: int, first: float) -> JointTrajectory:
        points = self._plan["points"]
        message = JointTrajectory(joint_names=points["joints"])
        message.header.stamp = Time(sec=begin // 10**9, nanosec=begin % 10**9)
        piece = slice(*np.searchsorted(points["time"], [first - OVERLAP, first + PIECE + OVERLAP]))
        whole = [points[x][piece] for x in ("time", "q", "qd", "qdd")]
        for t, q, qd, qdd in zip(*whole, strict=True):
            since = Duration(sec=int(t), nanosec=int((t - int(t)) * 1e9))
            message.points.append(
                JointTrajectoryPoint(
                    positions=q, velocities=qd, accelerations=qdd, time_from_start=since
                )
            )
        return message

    def _on_effort(self, message: JointState) -> None:
        stamp = message.header.stamp
        self._efforts.append([stamp.sec + stamp.nanosec * 1e-9, *message.effort])

    def _call(self, kind: Any, service: str, **fields: Any) -> None:
        client = self.create_client(kind, f"/controller_manager/{service}")
        self._wait(client.service_is_ready, f"the service {service}")
        future = client.call_async(kind.Request(**fields))
        self._wait(future.done, f"an answer from {service}")
        if not future.result().ok:
            sys.exit(f"{service} {fields.get('name', '')} failed")

    def _wait(self, is_there: Any, what: str, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not is_there():
            if time.monotonic() > deadline:
                sys.exit(f"no {what} within {patience:g} s")
            rclpy.spin_once(self, timeout_sec=0.05)


def _has_states(node: str, reports: Sequence[DiagnosticStatus]) -> bool:
    """Does the newest of the node's reports show that it has received states?"""
    told = [each.values for each in reports if each.name == f"{node}: torques"]
    return any(each.key == "states" and int(each.value) > 0 for each in (told or [[]])[-1])


def main() -> None:
    """Carry out the plan in the file named on the command line."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    rclpy.init()
    seen = Trial(plan).run()
    Path(plan["out"]).write_text(json.dumps(seen))
    rclpy.shutdown()


if __name__ == "__main__":
    main()
