"""How the base moves that something else moves, out of Imu and MultiDOFJointTrajectory messages.

An accelerometer reads f = a_s - g on its own axes. With R its axes on the base's and r its place:

    a - g = R f - α × r - ω × (ω × r)        at the origin of the base's frame

which is all that torques need. Messages are those of one source at a time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...dynamics import BaseMotion
from ...errors import listed, shown
from ...mechanism import Mechanism, Pose
from ...scalar import Floats
from .derivative import Derivative
from .model import Model
from .parameters import Settings
from .refusal import RefusedError
from .stamps import SECOND, Stamps, nanoseconds, stamped

IMU, MOTION = "base_imu", "base_motion"
"""The sources, by their topics"""

FASTEST = 40.0
"""rad/s: gyroscopes end at 2000 °/s, and no base turns as fast"""

HARDEST = 16 * 9.81
"""m/s²: most accelerometers end there"""

LEAST_SHARE = 0.2
"""Of gravity, that an accelerometer reads at least. What reads less has gravity taken out of it,
or g as its unit; or the base falls"""

UNIT = 1e-3
"""By how much a quaternion's norm may be off one"""


class Sensed(NamedTuple):
    """What an Imu says, on the axes of the base."""

    turning: Floats
    """ω (3,), rad/s"""
    force: Floats | None
    """a_s - g (3,), m/s², where the sensor is; None: not measured"""
    up: Floats | None
    """(3,), the world's z axis; None: not known"""


class Base:
    """The newest motion of the base.

    Attributes:
        source: the topic it came on; empty: nothing has come.
        time: ns, of the newest.
        still: the base at rest in the attitude that was known last.
        late: s, by which a derived angular acceleration is late; None: none is derived.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Nothing is known."""
        self.source, self.time = "", 0
        self.still = BaseMotion()
        self.late: float | None = None
        self._motion: BaseMotion | None = None
        self._frame = ""
        self._rates: Derivative | None = None
        self._stamps = {IMU: Stamps(), MOTION: Stamps()}
        self._mounted: tuple[str, Mechanism, tuple[float, ...], Pose] | None = None
        self._has_gravity = True

    # What comes in

    def take_imu(self, message: Any, model: Model, settings: Settings, now: int) -> None:
        """An Imu came.

        Args:
            now: the clock, ns.

        Raises:
            RefusedError: it is none of this robot's base, of a wrong time, or impossible.
        """
        time = self._time(IMU, message.header, model, settings, now)
        mount = self._mount(message.header.frame_id, model.wish.mechanism, settings, now)
        by_force = settings.base_gravity == "accelerometer"
        has_gravity = _has_gravity(model)
        sensed = _sensed(message, mount, by_force, not (by_force and has_gravity))
        rates, spinning = self._spinning(sensed.turning, time, settings)
        size = float(np.linalg.norm(np.asarray(model.dynamics.gravity_vector, dtype=float)))
        if sensed.force is None:
            assert sensed.up is not None
            felt = size * sensed.up
        else:
            _check_force(sensed.force, size)
            r, turning = mount.translation, sensed.turning
            # a - g = R f - α × r - ω × (ω × r)
            felt = sensed.force - np.cross(spinning, r) - np.cross(turning, np.cross(turning, r))
        if not has_gravity:
            assert sensed.up is not None
            # a alone: g = -|g| z
            motion = BaseMotion(sensed.turning, spinning, felt - size * sensed.up)
            still = BaseMotion()
        else:
            motion = BaseMotion(sensed.turning, spinning, specific_force=felt)
            length = float(np.linalg.norm(felt))
            still = BaseMotion(specific_force=felt * (size / length if length else 0.0))
        self._keep(IMU, motion, still, time, now)
        self._has_gravity = has_gravity
        self._rates, self._frame = rates, message.header.frame_id

    def take_motion(self, message: Any, model: Model, settings: Settings, now: int) -> None:
        """A MultiDOFJointTrajectory of one point came: where the base is, and how it moves.

        Args, raises: as in `take_imu`.
        """
        time = self._time(MOTION, message.header, model, settings, now)
        mechanism = model.wish.mechanism
        R, turning, spinning, pushing = _told(message, mechanism)
        _check_size("angular velocity", turning, FASTEST, "rad/s")
        _check_size("linear acceleration", pushing, HARDEST, "m/s²")
        _check_spin(spinning, settings)
        # from the axes of what the base moves in to the base's own
        motion = BaseMotion(R.T @ turning, R.T @ spinning, R.T @ pushing, R)
        self._keep(MOTION, motion, BaseMotion(rotation=R), time, now)
        self._has_gravity, self.late = _has_gravity(model), None

    def _time(self, source: str, header: Any, model: Model, settings: Settings, now: int) -> int:
        if not model.moved:
            raise RefusedError(
                "base stands still",
                "the description has no `base_motion`; declare it there, or set moving_base to "
                "always",
            )
        if self.source not in ("", source) and self._age(now) <= settings.base_timeout:
            raise RefusedError(
                "two sources", f"~/{self.source} tells how the base moves, expected one of them"
            )
        return self._stamps[source].checked(stamped(header), now, settings.max_age)

    def _keep(
        self, source: str, motion: BaseMotion, still: BaseMotion, time: int, now: int
    ) -> None:
        self._stamps[source].accept(time, now)
        self._motion, self.still = motion, still
        # what is stamped ahead gets no older later
        self.source, self.time = source, min(time, now)

    def _mount(self, frame: str, mechanism: Mechanism, settings: Settings, now: int) -> Pose:
        """The sensor's pose in the base's frame."""
        pose = settings.base_imu_pose
        fresh = self.source == IMU and self._age(now) <= settings.base_timeout
        if pose and fresh and frame != self._frame:
            raise RefusedError(
                "wrong frame",
                f"header.frame_id is {shown(frame)}, that of the one before was "
                f"{shown(self._frame)}, and base_imu_pose is of one sensor",
            )
        known = self._mounted
        if known and known[:3] == (frame, mechanism, pose):
            return known[3]
        place = Pose.from_xyz_rpy(np.array(pose[:3]), np.array(pose[3:])) if pose else None
        self._mounted = (frame, mechanism, pose, place or _on_base(frame, mechanism))
        return self._mounted[3]

    def _spinning(
        self, turning: Floats, time: int, settings: Settings
    ) -> tuple[Derivative | None, Floats]:
        """(what the next derivative goes on from, α (3,))"""
        if settings.base_angular_acceleration == "zero":
            self.late = None
            return None, np.zeros(3)
        before, constant = self._rates, settings.derivative_filter
        if before is None:
            return Derivative(turning, time), np.zeros(3)
        rates = before.next(turning, time, constant)
        if rates.value is None:
            return rates, np.zeros(3)
        _check_spin(rates.value, settings)
        if rates is not before:
            self.late = constant + (time - before.time) / SECOND / 2
        return rates, rates.value

    # What is known

    def _age(self, now: int) -> float:
        """s"""
        return (now - self.time) / SECOND if self.source else math.inf

    def age(self, now: int) -> str:
        """s, of the newest; in words where there is none."""
        return f"{self._age(now):.3f}" if self.source else "never"

    def problem(self, settings: Settings, now: int) -> str:
        """Why there is no motion of the base that may still be used; empty: there is one."""
        if self._motion is None:
            return f"no motion of the base has come on ~/{IMU} or ~/{MOTION}"
        age, limit = self._age(now), settings.base_timeout
        if age <= limit:
            return ""
        return (
            f"the newest motion of the base, on ~/{self.source}, is {age:.3f} s old, expected at "
            f"most base_timeout = {limit:g} s"
        )

    def move(self, model: Model, settings: Settings, now: int) -> None:
        """The model's base moves so; nothing happens to one that stands.

        Raises:
            RefusedError: nothing is known, or nothing recent.
        """
        if not model.moved:
            return
        model.base = None
        if self._has_gravity != _has_gravity(model):
            # what the newest has of it belongs to other terms
            self._motion = None
        if problem := self.problem(settings, now):
            raise RefusedError("no base motion", problem)
        model.base = self._motion

    def leave(self, model: Model) -> None:
        """The model's base rests in the attitude that was known last."""
        if model.moved:
            model.base = self.still


def _has_gravity(model: Model) -> bool:
    return "gravity" in model.wish.settings.terms


def _sensed(message: Any, mount: Pose, by_force: bool, needs_up: bool) -> Sensed:
    """What an Imu says; its covariances begin with -1 where it does not measure."""
    if message.angular_velocity_covariance[0] == -1:
        raise RefusedError("no angular velocity", "its covariance is -1: it is not measured")
    R = np.asarray(mount.rotation, dtype=float)
    turning = R @ _vector("angular_velocity", message.angular_velocity)
    _check_size("angular velocity", turning, FASTEST, "rad/s")
    force, up = None, None
    if by_force:
        if message.linear_acceleration_covariance[0] == -1:
            raise RefusedError(
                "no acceleration",
                "its covariance is -1: it is not measured; set base_gravity to orientation, if "
                "the base hardly accelerates",
            )
        force = R @ _vector("linear_acceleration", message.linear_acceleration)
    if needs_up:
        why = "gravity's direction" if not by_force else "what of the acceleration is gravity's"
        if message.orientation_covariance[0] == -1:
            raise RefusedError(
                "no orientation", f"its covariance is -1: it is not measured, and says {why}"
            )
        # the world's z on the sensor's axes, then on the base's
        up = R @ _rotation("orientation", message.orientation)[2]
    return Sensed(turning, force, up)


def _on_base(frame: str, mechanism: Mechanism) -> Pose:
    """The pose of a link in the base's frame, which it is fixed to."""
    links = {link.name: link for link in mechanism.links}
    fixed: dict[str, Pose] = {mechanism.base: Pose()}
    for link in mechanism.links:
        if link.parent in fixed and not link.joint.moves:
            fixed[link.name] = fixed[link.parent] @ link.joint.pose(0.0)
    if frame not in fixed:
        why = "moves on the base" if frame in links else "is no link of the robot"
        raise RefusedError(
            "wrong frame",
            f"header.frame_id {shown(frame)} {why}, expected {listed(sorted(fixed))}; or set "
            "base_imu_pose",
        )
    return fixed[frame]


def _told(message: Any, mechanism: Mechanism) -> tuple[Floats, Floats, Floats, Floats]:
    """(R, ω, α, a) of a MultiDOFJointTrajectory, on the axes of what the base moves in."""
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
            f"header.frame_id is {shown(mechanism.base)}, the base itself, expected what it moves "
            "in",
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
            f"{found} transforms, velocities and accelerations, expected one of each",
        )
    (pose,), (twist,), (acceleration,) = parts
    return (
        _rotation("rotation", pose.rotation),
        _vector("velocities.angular", twist.angular),
        _vector("accelerations.angular", acceleration.angular),
        _vector("accelerations.linear", acceleration.linear),
    )


def _vector(name: str, value: Any) -> Floats:
    found = np.array([value.x, value.y, value.z])
    if not np.isfinite(found).all():
        raise RefusedError("not finite", f"{name} is {found.tolist()}, expected finite numbers")
    return found


def _rotation(name: str, value: Any) -> Floats:
    """(3, 3) of a quaternion."""
    q = np.array([value.x, value.y, value.z, value.w])
    norm = math.sqrt(float(q @ q))
    if not abs(norm - 1.0) <= UNIT:
        raise RefusedError(
            "no rotation", f"{name} is {q.tolist()}, of norm {norm:g}, expected a unit quaternion"
        )
    x, y, z, w = (q / norm).tolist()
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _check_size(name: str, vector: Floats, most: float, unit: str) -> None:
    size = float(np.linalg.norm(vector))
    if size > most:
        raise RefusedError("impossible", f"{name} of {size:.6g} {unit}, expected at most {most:g}")


def _check_force(force: Floats, gravity: float) -> None:
    _check_size("linear_acceleration", force, HARDEST, "m/s²")
    size, least = float(np.linalg.norm(force)), LEAST_SHARE * gravity
    if size < least:
        raise RefusedError(
            "no gravity in it",
            f"linear_acceleration of {size:.6g} m/s², expected at least {least:.3g}: an "
            "accelerometer that rests reads gravity (REP 145); let its driver leave it in",
        )


def _check_spin(spinning: Floats, settings: Settings) -> None:
    if settings.max_acceleration:
        _check_size("angular acceleration", spinning, settings.max_acceleration, "rad/s²")
