# SPDX-License-Identifier: Apache-2.0
"""Adds torques to trajectories on their way to a controller with its own feedback.

planner  ──→  ~/trajectory_in   ──→  ~/trajectory_out  ──→  joint_trajectory_controller
         ──→  ~/follow_joint_trajectory (an action)  ──→  that of the controller

As a long trajectory takes a while, it is deserialized, filled and serialized in the background, and
published when the node polls for results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory

from ..errors import RobotDynamicsError
from .feed_forward.background import BackgroundTasks
from .feed_forward.process import unexpected
from .feed_forward.refusal import RefusedError, Tally
from .publishing import QUIET_OUT, publish
from .serialized_trajectories import check_size

DEPTH = 10

MOST_WAITING = 10
"""The number of trajectories that may wait for their torques"""

CLOSING = 1.0
"""s to wait at the end for the trajectory that is being filled"""

Fill = Callable[[Any], str]
"""Sets the effort of the points of a JointTrajectory; returns a remark or an empty string"""


class TrajectoryEffort:
    """The topics `~/trajectory_in` and `~/trajectory_out`, and the filling of all trajectories.

    Args:
        node: the node whose topics they are.
        filler: returns a function that fills a trajectory that arrives now, in any thread.
        robot: identifies the current robot; torques computed for another one are not forwarded.
        tally: counts and logs trajectories that are not forwarded, and remarks.
        group: the callback group of the subscription.
    """

    def __init__(
        self,
        node: Node,
        filler: Callable[[], Fill],
        robot: Callable[[], object],
        tally: Tally,
        group: Any,
    ):
        self._filler, self._robot, self._tally = filler, robot, tally
        self._beside = BackgroundTasks()
        node.create_subscription(
            JointTrajectory,
            "~/trajectory_in",
            self._on_trajectory,
            DEPTH,
            callback_group=group,
            raw=True,
        )
        self._out = node.create_publisher(JointTrajectory, "~/trajectory_out", DEPTH, **QUIET_OUT)

    def poll(self) -> None:
        """Forward the trajectories that have been filled; to be called periodically."""
        self._beside.poll()

    def close(self) -> None:
        """Stop filling trajectories."""
        self._beside.close(CLOSING)

    def fill(self, trajectory: JointTrajectory) -> None:
        """Fill a trajectory now, in the control loop, as a goal must be answered immediately.

        Args:
            trajectory: the JointTrajectory, which is changed.

        Raises:
            RobotDynamicsError: there is no robot, or this is not one of its motions.
        """
        self._note(self._filler()(trajectory))

    def _note(self, remark: str) -> None:
        if remark:
            self._tally.note("trajectory_in", "limited", remark)

    def _on_trajectory(self, data: bytes) -> None:
        try:
            if self._beside.waiting >= MOST_WAITING:
                raise RefusedError(
                    "too many", f"{MOST_WAITING} trajectories are already waiting; send it again"
                )
            check_size(data)
            fill, robot = self._filler(), self._robot()
        except RobotDynamicsError as error:
            self._tally.refuse("trajectory_in", error)
            return

        def filled() -> tuple[bytes, str] | RobotDynamicsError:
            try:
                message = deserialize_message(data, JointTrajectory)
                remark = fill(message)
                return serialize_message(message), remark
            except RobotDynamicsError as error:
                return error.with_traceback(None)
            # after any error, the other trajectories are still filled
            except Exception as error:  # noqa: BLE001
                return unexpected(error)

        def send(result: Any) -> None:
            if self._robot() != robot:
                result = RefusedError(
                    "overtaken",
                    "the robot, its payload or the node's state has changed in the meantime; send "
                    "it again",
                )
            if isinstance(result, RobotDynamicsError):
                self._tally.refuse("trajectory_in", result)
                return
            message, remark = result
            self._note(remark)
            publish(self._out, message)

        self._beside.add(filled, send)
