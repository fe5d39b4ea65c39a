# SPDX-License-Identifier: Apache-2.0
"""The motion of a moving base, from Imu and MultiDOFJointTrajectory messages.

An accelerometer measures f = a_s - g on its own axes. With the rotation R from its axes to the
base's and its position r,

    a - g = R f - α × r - ω × (ω × r)        at the origin of the base's frame

which is sufficient to compute the torques. Only one source is used at a time.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...dynamics import BaseMotion
from ...errors import shown
from ...mechanism import Mechanism, Pose
from ...scalar import Floats, skew
from .base_messages import check_size, on_base, read_imu, read_motion
from .derivative import Derivative, following
from .parameters import Settings
from .refusal import IncompleteError, RefusedError
from .stamps import SECOND, Stamps, sampled, stamped
from .torque_model import Model

IMU, MOTION = "base_imu", "base_motion"
"""The names of the sources, which are their topics"""


class Base:
    """The newest motion of the base.

    Attributes:
        source: the topic it came from; empty: no message yet.
        time: the time of the newest message, ns.
        late: the delay of the derived angular acceleration, s; None: none is derived.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Discard everything."""
        self.source, self.time = "", 0
        self.late: float | None = None
        self._motion: BaseMotion | None = None
        self._frame = ""
        self._rates: Derivative | None = None
        self._stamps = {IMU: Stamps(), MOTION: Stamps()}
        self._basis: tuple[object, ...] = ()
        self._gravity = 0.0

    # Input

    def take_imu(
        self, message: Any, model: Model, settings: Settings, now: int, sent: int | None = None
    ) -> None:
        """Handle an Imu message.

        Args:
            message: the Imu.
            model: the robot's model.
            settings: the current settings.
            now: the clock, ns.
            sent: see `sampled`.

        Raises:
            RefusedError: it does not fit this robot's base, has a wrong stamp, or is impossible.
            IncompleteError: there are too few messages yet to derive the angular acceleration.
        """
        time = self._time(IMU, message.header, model, settings, now)
        frame, has_gravity = message.header.frame_id, _has_gravity(model)
        mount = self._mount(frame, model.spec.mechanism, settings, now)
        gravity = math.hypot(*model.dynamics.gravity_vector.tolist())
        by_force = settings.base_gravity == "accelerometer"
        turning, force, up = read_imu(
            message, mount, gravity, by_force=by_force, with_up=not (by_force and has_gravity)
        )
        stamp = stamped(message.header)
        rates, spinning = self._spinning(
            turning, sampled(stamp, sent, now), settings, has_stamp=stamp != 0
        )
        if spinning is None:
            self._stamps[IMU].accept(time, now)
            self._rates = rates
            raise IncompleteError(
                "no angular acceleration yet",
                "it is derived from the angular velocity (base_angular_acceleration: derive), and "
                "there are not enough samples yet",
            )
        # the reading of an accelerometer due to gravity alone, -g
        weight = np.zeros(3) if up is None else gravity * up
        felt = weight
        if force is not None:
            # a - g = R f - α × r - ω × (ω × r)
            r, W = mount.translation, skew(turning)
            felt = force - skew(spinning) @ r - W @ (W @ r)
        if has_gravity:
            motion = BaseMotion(turning, spinning, specific_force=felt)
        else:
            motion = BaseMotion(turning, spinning, felt - weight)
        self._keep(IMU, motion, _basis(IMU, model, settings), time, now)
        self._gravity, self._rates, self._frame = gravity, rates, frame

    def take_motion(self, message: Any, model: Model, settings: Settings, now: int) -> None:
        """Handle a MultiDOFJointTrajectory of one point, the pose and motion of the base.

        Args:
            message: the MultiDOFJointTrajectory.
            model: the robot's model.
            settings: the current settings.
            now: the clock, ns.

        Raises:
            RefusedError: it does not fit this robot's base, has a wrong stamp, or is impossible.
        """
        time = self._time(MOTION, message.header, model, settings, now)
        most = settings.max_acceleration or math.inf
        R, turning, spinning, pushing = read_motion(message, model.spec.mechanism, most)
        # from the axes of the frame in which the base moves to the base's own
        motion = BaseMotion(R.T @ turning, R.T @ spinning, R.T @ pushing, R)
        self._keep(MOTION, motion, _basis(MOTION, model, settings), time, now)
        self.late = None

    def _time(self, source: str, header: Any, model: Model, settings: Settings, now: int) -> int:
        if not model.moved:
            raise RefusedError(
                "fixed base",
                "the description has no `base_motion`; declare it there, or set moving_base to "
                "always",
            )
        if self.source not in ("", source) and self._age(now) <= settings.base_timeout:
            raise RefusedError(
                "two sources",
                f"~/{self.source} already reports the base's motion, expected a single source",
            )
        return self._stamps[source].checked(stamped(header), now, settings.max_age)

    def _keep(
        self, source: str, motion: BaseMotion, basis: tuple[object, ...], time: int, now: int
    ) -> None:
        self._stamps[source].accept(time, now)
        self._motion, self._basis = motion, basis
        # a stamp ahead of the clock must not extend the time for which the motion is used
        self.source, self.time = source, min(time, now)

    def _mount(self, frame: str, mechanism: Mechanism, settings: Settings, now: int) -> Pose:
        """The sensor's pose in the base's frame."""
        pose = settings.base_imu_pose
        fresh = self.source == IMU and self._age(now) <= settings.base_timeout
        if pose and fresh and frame != self._frame:
            raise RefusedError(
                "wrong frame",
                f"header.frame_id is {shown(frame)}, that of the previous message was "
                f"{shown(self._frame)}, and base_imu_pose is for one sensor only",
            )
        return _mounted(frame, mechanism, pose)

    def _spinning(
        self, turning: Floats, time: int, settings: Settings, *, has_stamp: bool
    ) -> tuple[Derivative | None, Floats | None]:
        """The state of the derivative, and α (3,) or None if it is not known yet."""
        if settings.base_angular_acceleration == "zero":
            self.late = None
            return None, np.zeros(3)
        constant = settings.derivative_filter
        rates = following(self._rates, turning, time, constant, stamped=has_stamp)
        if rates.value is None:
            return rates, None
        # check the unfiltered slope: a filter hides its peaks
        slope = rates.value if rates.steepest is None else rates.steepest
        check_size("angular acceleration", slope, settings.max_acceleration or math.inf, "rad/s²")
        self.late = constant + rates.period / SECOND / 2
        return rates, rates.value

    # Output

    def _age(self, now: int) -> float:
        """The age of the newest motion, s."""
        return (now - self.time) / SECOND if self.source else math.inf

    def problem(self, settings: Settings, now: int) -> str:
        """Why there is no usable motion of the base; empty if there is one.

        Args:
            settings: the current settings.
            now: the clock, ns.
        """
        if self._motion is None:
            return f"no base motion has been received on ~/{IMU} or ~/{MOTION}"
        age, limit = self._age(now), settings.base_timeout
        if age <= limit:
            return ""
        return (
            f"the newest motion of the base, on ~/{self.source}, is {age:.3f} s old, expected at "
            f"most base_timeout = {limit:g} s"
        )

    def move(self, model: Model, settings: Settings, now: int) -> None:
        """Set the motion of the model's base; a fixed base is unaffected.

        Args:
            model: the robot's model.
            settings: the current settings.
            now: the clock, ns.

        Raises:
            RefusedError: there is no motion, or it is too old.
        """
        if not model.moved:
            return
        model.base = None
        if problem := self.problem(settings, now):
            raise RefusedError("no base motion", problem)
        if self._basis != _basis(self.source, model, settings):
            raise RefusedError(
                "no base motion",
                "the newest message is older than the change of a parameter or of gravity",
            )
        model.base = self._motion

    def still(self, model: Model) -> BaseMotion:
        """The base at rest in its last known attitude."""
        motion = self._motion
        if motion is None or not _has_gravity(model):
            return BaseMotion()
        if motion.specific_force is None:
            return BaseMotion(rotation=motion.rotation)
        felt = np.asarray(motion.specific_force)
        length = math.hypot(*felt.tolist())
        return BaseMotion(specific_force=felt * (self._gravity / length if length else 0.0))

    def leave(self, model: Model) -> None:
        """Set the model's base to rest in its last known attitude."""
        if model.moved:
            model.base = self.still(model)


@lru_cache(maxsize=1)
def _mounted(frame: str, mechanism: Mechanism, pose: tuple[float, ...]) -> Pose:
    """The pose of a sensor in the base's frame: as set, or that of the link it is named after."""
    if pose:
        return Pose.from_xyz_rpy(np.array(pose[:3]), np.array(pose[3:]))
    return on_base(frame, mechanism)


def _has_gravity(model: Model) -> bool:
    return "gravity" in model.spec.settings.terms


def _basis(source: str, model: Model, settings: Settings) -> tuple[object, ...]:
    """The parameters, and the robot's gravity, on which the use of a message depends; none for a
    whole motion."""
    if source == MOTION:
        return ()
    way = settings.base_imu_pose, settings.base_gravity, settings.base_angular_acceleration
    return _has_gravity(model), *model.dynamics.gravity_vector.tolist(), *way
