# SPDX-License-Identifier: Apache-2.0
"""Decodes and checks Imu and MultiDOFJointTrajectory messages about a moving base."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import listed, shown
from ...mechanism import Mechanism, Pose
from ...scalar import Floats, rotation_quaternion
from .refusal import RefusedError
from .stamps import nanoseconds

FASTEST = 40.0
"""rad/s: gyroscopes measure up to 2000 °/s, and no base turns that fast"""

HARDEST = 16 * 9.81
"""m/s²: the range of most accelerometers"""

LEAST_SHARE = 0.2
"""The smallest plausible reading of an accelerometer, as a fraction of gravity. If it reads less,
the driver has subtracted gravity, the unit is g, or the base is falling"""

UNIT = 1e-3
"""How far the norm of a quaternion may differ from one"""


def read_imu(
    message: Any, mount: Pose, gravity: float, *, by_force: bool, with_up: bool
) -> tuple[Floats, Floats | None, Floats | None]:
    """Decode an Imu message.

    A covariance that begins with -1 means that the quantity is not measured.

    Args:
        message: the Imu.
        mount: the sensor's pose in the base's frame.
        gravity: the magnitude of gravity, which an accelerometer's reading includes, m/s².
        by_force: is the accelerometer's reading requested?
        with_up: is the orientation requested?

    Returns:
        vectors (3,) on the base's axes: the angular velocity ω, rad/s; a_s - g at the sensor, m/s²,
        and the world's z axis, None if not requested.

    Raises:
        RefusedError: a requested quantity is not measured, or its value is impossible.
    """
    if message.angular_velocity_covariance[0] == -1:
        raise RefusedError("no angular velocity", "its covariance is -1: it is not measured")
    R = np.asarray(mount.rotation, dtype=float)
    turning = R @ _vector("angular_velocity", message.angular_velocity, FASTEST, "rad/s")
    force, up = None, None
    if by_force:
        if message.linear_acceleration_covariance[0] == -1:
            raise RefusedError(
                "no acceleration",
                "its covariance is -1: it is not measured; set base_gravity to orientation, if "
                "the base hardly accelerates",
            )
        felt = _vector("linear_acceleration", message.linear_acceleration, HARDEST, "m/s²")
        size, least = math.hypot(*felt.tolist()), LEAST_SHARE * gravity
        if size < least:
            raise RefusedError(
                "no gravity",
                f"linear_acceleration of {size:.6g} m/s², expected at least {least:.3g}: an "
                "accelerometer at rest measures gravity (REP 145); let its driver include it",
            )
        force = R @ felt
    if with_up:
        why = "which part of the acceleration is gravity" if by_force else "gravity's direction"
        if message.orientation_covariance[0] == -1:
            raise RefusedError(
                "no orientation", f"its covariance is -1: it is not measured, but determines {why}"
            )
        # the world's z on the sensor's axes, then on the base's
        up = R @ _rotation("orientation", message.orientation)[2]
    return turning, force, up


def on_base(frame: str, mechanism: Mechanism) -> Pose:
    """The pose, in the base's frame, of a link that is fixed to the base.

    Args:
        frame: the name of the link, or of the base.
        mechanism: the robot.

    Raises:
        RefusedError: there is no such link, or it moves.
    """
    carriers = mechanism.carriers()
    fixed = {name: pose for name, (on, pose) in carriers.items() if on == mechanism.base}
    if frame not in fixed:
        why = "moves on the base" if frame in carriers else "is not a link of the robot"
        raise RefusedError(
            "wrong frame",
            f"header.frame_id {shown(frame)} {why}, expected {listed(sorted(fixed))}; or set "
            "base_imu_pose",
        )
    return fixed[frame]


def read_motion(
    message: Any, mechanism: Mechanism, most_spin: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Decode a MultiDOFJointTrajectory of one joint and one point.

    Args:
        message: the MultiDOFJointTrajectory.
        mechanism: the robot.
        most_spin: the largest angular acceleration, rad/s².

    Returns:
        the rotation R (3, 3) from the base's axes to those of the frame in which it moves; and on
        these axes (3,) ω, rad/s, α, rad/s², and a, m/s², of the origin of the base's frame, without
        gravity.

    Raises:
        RefusedError: it is for another joint, or a value is impossible.
    """
    expected = mechanism.base_motion or mechanism.base
    if list(message.joint_names) != [expected]:
        raise RefusedError(
            "wrong joint",
            f"joint_names are {listed(map(shown, message.joint_names)) or 'none'}, expected "
            f"{shown(expected)} alone",
        )
    if message.header.frame_id == mechanism.base:
        raise RefusedError(
            "wrong frame",
            f"header.frame_id is {shown(mechanism.base)}, the base itself, expected the frame in "
            "which it moves",
        )
    points = message.points
    if len(points) != 1 or nanoseconds(points[0].time_from_start):
        raise RefusedError(
            "no state", f"{len(points)} points, expected one with a time_from_start of zero"
        )
    parts = [getattr(points[0], name) for name in ("transforms", "velocities", "accelerations")]
    if any(len(part) != 1 for part in parts):
        found = ", ".join(str(len(part)) for part in parts)
        raise RefusedError(
            "wrong length",
            f"{found} transforms, velocities and accelerations, expected exactly one of each",
        )
    (pose,), (twist,), (acceleration,) = parts
    return (
        _rotation("rotation", pose.rotation),
        _vector("velocities.angular", twist.angular, FASTEST, "rad/s"),
        _vector("accelerations.angular", acceleration.angular, most_spin, "rad/s²"),
        _vector("accelerations.linear", acceleration.linear, HARDEST, "m/s²"),
    )


def _vector(name: str, value: Any, most: float, unit: str) -> Floats:
    found = np.array([value.x, value.y, value.z])
    if not np.isfinite(found).all():
        raise RefusedError("not finite", f"{name} is {found.tolist()}, expected finite numbers")
    check_size(name, found, most, unit)
    return found


def _rotation(name: str, value: Any) -> Floats:
    """The rotation matrix (3, 3) of a quaternion."""
    q = np.array([value.x, value.y, value.z, value.w])
    norm = math.sqrt(float(q @ q))
    if not abs(norm - 1.0) <= UNIT:
        raise RefusedError(
            "invalid rotation",
            f"{name} is {q.tolist()}, with norm {norm:g}, expected a unit quaternion",
        )
    x, y, z, w = q.tolist()
    return rotation_quaternion(w, x, y, z)


def check_size(name: str, vector: Floats, most: float, unit: str) -> None:
    """Check the length of a vector.

    Args:
        name: what the vector is, for errors.
        vector: (3,) in `unit`.
        most: the largest length, in `unit`.
        unit: the unit, for errors.

    Raises:
        RefusedError: it is longer than `most`, or not finite.
    """
    size = math.hypot(*vector.tolist())
    if not size <= most:
        raise RefusedError("impossible", f"{name} of {size:.6g} {unit}, expected at most {most:g}")
