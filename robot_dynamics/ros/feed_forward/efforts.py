# SPDX-License-Identifier: Apache-2.0
"""Adds feed-forward torques to the points of a trajectory for a controller with its own feedback.

joint_trajectory_controller interpolates effort linearly between points, and holds the effort of the
last point when the trajectory is over. Each point therefore gets the torque of the motion through
it, and the last one the torque at rest.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from ...errors import ClosureError, RobotDynamicsError, listed
from ...scalar import Floats
from . import motion as motions
from .limits import CommandLimits
from .motion import Course
from .refusal import RefusedError
from .torque_model import Model


def check(model: Model) -> None:
    """Check that a model can be used for trajectories with effort.

    Raises:
        RefusedError: its torques are those of motors, it has sensors on passive joints, or its base
            moves.
    """
    side = model.spec.settings.side
    if model.sensors is not None or side != "joint" or model.moved:
        what = "side: joint" if side != "joint" else "sensed: false"
        if model.moved:
            what = "a fixed base: the future motion of a moving one is unknown"
        raise RefusedError("not for this node", f"trajectories with effort need {what}")


def fill(
    message: Any,
    model: Model,
    limits: CommandLimits,
    *,
    now: int,
    undriven: Floats,
) -> str:
    """Set the effort of each point of a JointTrajectory, in the order of its `joint_names`.

    Args:
        message: the JointTrajectory, which is changed.
        model: the robot's model.
        limits: the limits of rates and accelerations.
        now: the clock, ns.
        undriven: (k - n,) positions, rad or m, of the joints that are read but not driven; they
            stand still.

    Returns:
        a remark if a torque was clipped to its limit, else an empty string.

    Raises:
        RefusedError: it is not a motion of these joints, exceeds the limits, or has effort already.
    """
    for k, point in enumerate(message.points):
        if len(point.effort):
            raise RefusedError("effort", f"point {k} has effort already, expected none")
    followers = () if model.followers is None else model.followers.names
    if absent := [name for name in followers if name not in message.joint_names]:
        raise RefusedError(
            "missing joint",
            f"missing {listed(absent)} in joint_names: efforts are computed for all motors",
        )
    course = motions.read(
        message,
        model.joints,
        model.periodic,
        now=now,
        whole_state=False,
        missing=None,
        limits=limits,
        followers=model.followers,
        always_a_course=True,
    )
    assert isinstance(course, Course)
    q, qd, qdd = course.trajectory.at_waypoints()
    still = np.zeros((len(q), len(undriven)))
    try:
        torques = model.along(np.hstack([q, still + undriven]), np.hstack([qd, still]), qdd)
    except ClosureError as error:
        raise RefusedError("closure", str(error)) from None
    except RobotDynamicsError as error:
        raise RefusedError("impossible", str(error)) from None
    finite = np.isfinite(torques).all(axis=1)
    if not finite.all():
        raise RefusedError(
            "not finite",
            f"point {int(np.argmin(finite))} has no torques: the loops cannot be closed "
            "there, or are near a singularity",
        )
    over = np.abs(torques) - model.limits
    remark = ""
    if (over > 0).any():
        k, j = divmod(int(np.argmax(over)), over.shape[1])
        remark = (
            f"torque of {model.outputs[j]!r} at point {k} clipped from {torques[k, j]:.6g} to "
            f"±{model.limits[j]:.6g} (effort_limits)"
        )
        torques = np.clip(torques, -model.limits, model.limits)
    order = [model.outputs.index(name) for name in message.joint_names]
    for point, row in zip(message.points, torques[:, order].tolist(), strict=True):
        point.effort = array("d", row)
    return remark
