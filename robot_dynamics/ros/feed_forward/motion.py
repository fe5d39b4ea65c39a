# SPDX-License-Identifier: Apache-2.0
"""The commanded motion from a JointTrajectory message: a setpoint or a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TrajectoryError, listed
from ...motion.trajectory import Trajectory, Waypoints
from ...scalar import Floats
from .followers import DERIVATIVES, Followers
from .joint_states import places
from .limits import NO_LIMITS, CommandLimits
from .refusal import RefusedError
from .stamps import SECOND, check_begin, nanoseconds, stamped

MOST_POINTS = 50_000
"""A motion of 50 s at 1 kHz; reading more points would hold up the control loop"""


@dataclass(frozen=True, eq=False)
class Desired:
    """A desired state (n,): rad or m, rad/s or m/s, rad/s² or m/s².

    q and qd may be None if the feedback is measured.
    """

    q: Floats | None
    qd: Floats | None
    qdd: Floats


@dataclass(frozen=True, eq=False)
class Setpoint:
    """A desired state that applies as soon as it arrives."""

    desired: Desired
    since: int
    """ns, when it was received"""
    remark: str = ""
    """A line for the log once the motion has begun; empty: none"""

    def begun(self, _time: int, _q: Floats | None, _qd: Floats | None, /) -> Setpoint:
        """The setpoint itself, which applies at all times."""
        return self

    def at(self, _time: int, /) -> Desired:
        """The desired state, the same at all times."""
        return self.desired

    def over_for(self, _time: int, now: int, /) -> float:
        """s since it was received; `now` is the clock, ns."""
        return (now - self.since) / SECOND


@dataclass(frozen=True, eq=False)
class Course:
    """A trajectory with its start time and the lead-in to its first point."""

    trajectory: Trajectory
    start: int
    """ns; 0: with the first state after its arrival"""
    joints: tuple[str, ...]
    periodic: NDArray[np.bool_]
    limits: CommandLimits = NO_LIMITS
    lead_in: Trajectory | None = None
    remark: str = ""
    """A line for the log once the motion has begun; empty: none"""

    def begun(self, time: int, q: Floats | None, qd: Floats | None, /) -> Course:
        """The trajectory from now on, with a lead-in to the first point if that is ahead.

        Args:
            time: when it takes over, ns.
            q: (n,) positions at which the lead-in starts, rad or m; None: unknown.
            qd: (n,) rates at which the lead-in starts, rad/s or m/s; None: unknown.

        Raises:
            RefusedError: it starts too far ahead, or needs a state that is unknown.
        """
        check_begin(self.start, time)
        start = self.start or time
        elapsed = (time - start) / SECOND
        lead_in, remark = None, ""
        if elapsed < self.trajectory.start:
            if q is None or qd is None:
                raise RefusedError(
                    "no start state",
                    f"its first point is {self.trajectory.start - elapsed:.3f} s ahead and no "
                    "state is known to start from; publish joint_states, or a first point at 0 s",
                )
            lead_in, remark = self._led_in(elapsed, q, qd)
        return replace(self, start=start, lead_in=lead_in, remark=remark)

    def _led_in(self, elapsed: float, q: Floats, qd: Floats) -> tuple[Trajectory | None, str]:
        """The lead-in from q, qd to the first point, or None and the reason if it is too fast.

        If the first point is only a moment ahead, the distance from it is left to the robot's
        feedback, as it is for a trajectory that has begun; no acceleration is commanded for it.
        """
        try:
            way = self.trajectory.lead_in(elapsed, q, qd, self.periodic)
            quick = way.peak_accelerations > np.maximum(
                self.limits.lead_in, self.trajectory.peak_accelerations
            )
            fast = way.peak_rates > np.maximum(self.limits.rates, self.trajectory.peak_rates)
            if not (quick | fast).any():
                return way, ""
            which = listed(name for name, bad in zip(self.joints, quick | fast, strict=True) if bad)
        except TrajectoryError:
            which = listed(self.joints)
        return None, (
            f"the first point is {self.trajectory.start - elapsed:.3g} s ahead, too soon for "
            f"{which} to reach it: no acceleration is commanded until then, and the "
            "difference is left to the feedback (lead_in_acceleration)"
        )

    def at(self, time: int, /) -> Desired:
        """The desired state: of the lead-in before the first point, of the trajectory after."""
        elapsed = (time - self.start) / SECOND
        ahead = self.lead_in is not None and elapsed < self.trajectory.start
        course = self.lead_in if ahead and self.lead_in is not None else self.trajectory
        return Desired(*course.sample(elapsed))

    def over_for(self, time: int, _now: int, /) -> float:
        """s since the last point; negative before it. `time` is the time of the state, ns."""
        return (time - self.start) / SECOND - self.trajectory.end


Motion = Setpoint | Course
"""The motion that a command requests"""

Missing = Callable[[Floats | None], Floats]
"""q̇ (n,) of a single point → q̈ (n,)"""


def read(
    message: Any,
    joints: Sequence[str],
    periodic: NDArray[np.bool_],
    *,
    now: int,
    whole_state: bool,
    missing: Missing | None,
    limits: CommandLimits = NO_LIMITS,
    followers: Followers | None = None,
    always_a_course: bool = False,
) -> Motion:
    """The motion that a JointTrajectory message commands.

    A single point is a setpoint, unless it has positions and a `time_from_start`: then it is a
    trajectory that reaches this point at that time.

    Args:
        message: the JointTrajectory.
        joints: (n) the names that it must have, in the order of the result.
        periodic: (n,) which of them are continuous.
        now: the clock, ns.
        whole_state: must a single point also have q and qd?
        missing: supplies the accelerations that a single point lacks; None: it is refused.
        limits: the limits of rates and accelerations.
        followers: further motors that it may have, whose values must agree.
        always_a_course: is a single point always a trajectory?

    Raises:
        RefusedError: names, lengths, values or times are not those of a motion of these joints,
            or the motion exceeds the limits.
    """
    names = list(message.joint_names)
    present = [] if followers is None else [name for name in followers.names if name in names]
    order = places(names, [*joints, *present], "joint_names")
    if unknown := [name for name in names if name not in joints and name not in present]:
        raise RefusedError(
            "unknown joint",
            f"unknown joint {listed(map(repr, unknown))} in joint_names, expected {listed(joints)}",
        )
    if len(message.points) == 0:
        raise RefusedError("no points", "there are no points, expected one (a state) or several")
    check_count(len(message.points))
    points = _points(message.points, order)
    if followers is not None and present:
        followers.check(present, points.values, points.has)
        points = replace(points, values=points.values[..., : len(joints)])
    stamp = stamped(message.header)
    if not (always_a_course or is_course(message)):
        # a stamp ahead of the clock must not extend its life
        since = min(stamp, now) if stamp and now else stamp or now
        return _setpoint(points, since, joints, whole_state, missing, limits)
    return _course(points, stamp, now, tuple(joints), periodic, limits)


def check_count(count: int) -> None:
    """Check the number of points of a message.

    Raises:
        RefusedError: there are too many.
    """
    if count > MOST_POINTS:
        raise RefusedError(
            "too many points", f"there are {count} points, expected at most {MOST_POINTS}"
        )


def is_course(message: Any) -> bool:
    """Is this JointTrajectory a trajectory to be followed in time, rather than a setpoint?"""
    if len(message.points) != 1:
        return True
    point = message.points[0]
    return len(point.positions) > 0 and nanoseconds(point.time_from_start) != 0


@dataclass(frozen=True, eq=False)
class Points:
    """The points of a message."""

    times: Floats
    """(m,) s"""
    values: Floats
    """(3, m, n) positions, velocities and accelerations; zero where there are none"""
    has: NDArray[np.bool_]
    """(3, m) which of them each point has"""

    def __len__(self) -> int:
        return len(self.times)


_BLOCK = 1000
"""Number of points that are read together, few enough for the processor's cache"""


def _points(points: Sequence[Any] | Points, order: NDArray[np.intp]) -> Points:
    if isinstance(points, Points):
        return replace(points, values=points.values[..., order])
    m, n = len(points), len(order)
    times = np.empty(m)
    values, has = np.empty((3, m, n)), np.empty((3, m), dtype=bool)
    for k in range(0, m, _BLOCK):
        block = slice(k, k + _BLOCK)
        part = points[block]
        times[block] = _times(part, k)
        for i, what in enumerate(DERIVATIVES):
            column, has[i, block] = _column(what, list(map(attrgetter(what), part)), n, k)
            values[i, block] = column[:, order]
    return Points(times, values, has)


def _times(points: Sequence[Any], first: int) -> Floats:
    """The times (m,) of some points, s; `first` is the index of the first one in the message."""
    m = len(points)
    after = [point.time_from_start for point in points]
    seconds = np.fromiter([each.sec for each in after], np.int64, m)
    nanoseconds = np.fromiter([each.nanosec for each in after], np.int64, m)
    if nanoseconds.max() >= SECOND:
        k = int(np.argmax(nanoseconds))
        raise RefusedError(
            "wrong times",
            f"time_from_start of point {first + k} has {nanoseconds[k]} ns, expected less than "
            "1000000000",
        )
    return in_seconds(seconds, nanoseconds)


def in_seconds(seconds: NDArray[Any], nanoseconds: NDArray[Any]) -> Floats:
    """Durations (m,) in s, with one rounding."""
    whole: Floats = (seconds.astype(np.int64) * SECOND + nanoseconds) / SECOND
    return whole


def _column(what: str, rows: list[Any], n: int, first: int) -> tuple[Floats, NDArray[np.bool_]]:
    """The values (m, n) of some points, zero for a point without any, and which points (m,) have
    them."""
    lengths = np.fromiter(map(len, rows), np.intp, len(rows))
    has = lengths == n
    if not (has | (lengths == 0)).all():
        k = int(np.argmin(has | (lengths == 0)))
        raise RefusedError(
            "wrong length",
            f"point {first + k}: the number of {what} is {lengths[k]}, expected {n} or none",
        )
    numbers = b"".join(rows)
    values = np.zeros((len(rows), n))
    if numbers:
        values[has] = np.frombuffer(numbers).reshape(-1, n)
    if not np.isfinite(values).all():
        k, joint = np.argwhere(~np.isfinite(values))[0]
        raise RefusedError(
            "not finite",
            f"point {first + k} has {values[k, joint]} in {what}, expected finite numbers",
        )
    return values, has


def _setpoint(
    points: Points,
    since: int,
    joints: Sequence[str],
    whole_state: bool,
    missing: Missing | None,
    limits: CommandLimits,
) -> Setpoint:
    q, qd, qdd = (
        first if has else None
        for first, has in zip(points.values[:, 0], points.has[:, 0], strict=True)
    )
    if qdd is None:
        if missing is None:
            raise RefusedError(
                "no accelerations",
                "a single point carries no accelerations; give them, send a trajectory of several "
                "points, or set missing_accelerations to zero or derive",
            )
        qdd = missing(qd)
    if whole_state:
        for what, values in (("positions", q), ("velocities", qd)):
            if values is None:
                raise RefusedError(
                    f"no {what}",
                    f"a single point carries no {what}, which gains and feedback: commanded need",
                )
    rates = np.zeros(len(joints)) if qd is None else np.abs(qd)
    limits.check(joints, rates, np.abs(qdd))
    return Setpoint(Desired(q, qd, qdd), since)


def _course(
    points: Points,
    stamp: int,
    now: int,
    joints: tuple[str, ...],
    periodic: NDArray[np.bool_],
    limits: CommandLimits,
) -> Course:
    has_q, has_qd, has_qdd = points.has
    if not has_q.all():
        k = int(np.argmin(has_q))
        raise RefusedError("no positions", f"point {k} carries no positions")
    if points.times[0] < 0:
        raise RefusedError(
            "wrong times",
            f"time_from_start of point 0 is {points.times[0]} s, expected 0 or more",
        )
    # accelerations without rates are ignored
    carries = 1 + has_qd + (has_qd & has_qdd)
    q, qd, qdd = points.values
    try:
        trajectory = Trajectory(Waypoints(points.times, q, qd, qdd, carries))
    except TrajectoryError as error:
        raise RefusedError("wrong times", str(error)) from None
    late = (now - stamp) / SECOND - trajectory.end
    if stamp and late > 0:
        raise RefusedError(
            "old stamp",
            f"the trajectory ended {late:.3f} s ago: it begins at {stamp / SECOND:.3f} s, and this "
            f"node's clock is at {now / SECOND:.3f} s",
        )
    check_begin(stamp, now)
    limits.check(joints, trajectory.peak_rates, trajectory.peak_accelerations)
    return Course(trajectory, stamp, joints, periodic, limits)
