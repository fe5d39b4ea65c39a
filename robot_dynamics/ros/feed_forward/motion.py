"""What is wanted: one state now, or a trajectory in time, out of a JointTrajectory message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import TrajectoryError
from ...motion.trajectory import Trajectory, Waypoint
from .joint_states import places
from .refusal import RefusedError
from .stamps import SECOND, nanoseconds

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Desired:
    """A wanted state (n,). q and qd may be unknown where the feedback is measured."""

    q: Floats | None
    qd: Floats | None
    qdd: Floats


class Motion(Protocol):
    """What a command asks for. Times are in ns; `time` is that of the state."""

    def begun(self, time: int, q: Floats | None, qd: Floats | None, /) -> Motion:
        """The same motion, tied to the time and the state (n,) at which it takes over."""
        ...

    def at(self, time: int, /) -> Desired: ...

    def over_for(self, time: int, now: int, /) -> float:
        """s since there is nothing new in it; below 0 while there is."""
        ...


@dataclass(frozen=True, eq=False)
class Setpoint:
    """A state that is wanted as soon as it comes."""

    desired: Desired
    since: int

    def begun(self, _time: int, _q: Floats | None, _qd: Floats | None, /) -> Setpoint:
        return self

    def at(self, _time: int, /) -> Desired:
        return self.desired

    def over_for(self, _time: int, now: int, /) -> float:
        return (now - self.since) / SECOND


@dataclass(frozen=True, eq=False)
class Course:
    """A trajectory and when it starts."""

    trajectory: Trajectory
    start: int
    """ns; 0: with the first state after it came"""
    periodic: NDArray[np.bool_]

    def begun(self, time: int, q: Floats | None, qd: Floats | None, /) -> Course:
        start = self.start or time
        elapsed = (time - start) / SECOND
        trajectory = self.trajectory
        if elapsed < trajectory.start:
            if q is None or qd is None:
                raise RefusedError(
                    "no start state",
                    f"its first point is {trajectory.start - elapsed:.3f} s ahead and no state is "
                    "known to start from; publish joint_states, or a first point at 0 s",
                )
            trajectory = trajectory.led_in(elapsed, q, qd, self.periodic)
        return Course(trajectory, start, self.periodic)

    def at(self, time: int, /) -> Desired:
        return Desired(*self.trajectory.sample((time - self.start) / SECOND))

    def over_for(self, time: int, _now: int, /) -> float:
        return (time - self.start) / SECOND - self.trajectory.end


def read(
    message: Any,
    joints: Sequence[str],
    periodic: NDArray[np.bool_],
    *,
    now: int,
    measured: bool,
    zero_accelerations: bool,
) -> Motion:
    """The motion that a JointTrajectory message commands.

    Args:
        joints: the names that it has to have, in the order of the result.
        periodic: (n,) which of them may turn forever.
        now: the clock, ns.
        measured: q and qd come from sensors: a single point need not carry them.
        zero_accelerations: a single point without accelerations has none, instead of being refused.

    Raises:
        RefusedError: names, lengths, values or times are not those of a motion of these joints.
    """
    names = list(message.joint_names)
    order = places(names, joints, "joint_names")
    if unknown := [name for name in names if name not in joints]:
        raise RefusedError(
            "unknown joint",
            f"unknown joint {', '.join(map(repr, unknown))} in joint_names, expected "
            + ", ".join(joints),
        )
    count = len(message.points)
    if count == 0:
        raise RefusedError(
            "no points", "there are no points, expected one (the state now) or several"
        )
    waypoints = [_waypoint(point, k, order) for k, point in enumerate(message.points)]
    stamp = nanoseconds(message.header.stamp)
    if count == 1:
        return _setpoint(waypoints[0], stamp or now, measured, zero_accelerations)
    return _course(waypoints, stamp, now, periodic)


def _setpoint(point: _Point, since: int, measured: bool, zero_accelerations: bool) -> Setpoint:
    qdd = point.qdd
    if qdd is None:
        if not zero_accelerations:
            raise RefusedError(
                "no accelerations",
                "a single point carries no accelerations; give them, send a trajectory of several "
                "points, or set missing_accelerations to zero",
            )
        qdd = np.zeros(point.n)
    if not measured:
        for what, values in (("positions", point.q), ("velocities", point.qd)):
            if values is None:
                raise RefusedError(
                    f"no {what}", f"a single point carries no {what}, and feedback is commanded"
                )
    return Setpoint(Desired(point.q, point.qd, qdd), since)


def _course(points: list[_Point], stamp: int, now: int, periodic: NDArray[np.bool_]) -> Course:
    waypoints = []
    for k, point in enumerate(points):
        if point.q is None:
            raise RefusedError("no positions", f"point {k} carries no positions")
        waypoints.append(Waypoint(point.time, point.q, point.qd, point.qdd))
    if waypoints[0].time < 0:
        raise RefusedError(
            "wrong times",
            f"time_from_start of point 0 is {waypoints[0].time} s, expected 0 or more",
        )
    try:
        trajectory = Trajectory(waypoints)
    except TrajectoryError as error:
        raise RefusedError("wrong times", str(error)) from None
    late = (now - stamp) / SECOND - trajectory.end
    if stamp and late > 0:
        raise RefusedError("old stamp", f"the trajectory ended {late:.3f} s ago")
    return Course(trajectory, stamp, periodic)


@dataclass(frozen=True, eq=False)
class _Point:
    time: float
    n: int
    q: Floats | None
    qd: Floats | None
    qdd: Floats | None


def _waypoint(point: Any, k: int, order: NDArray[np.intp]) -> _Point:
    fields: list[Floats | None] = []
    for what in ("positions", "velocities", "accelerations"):
        values = np.array(getattr(point, what), dtype=float)
        if len(values) not in (0, len(order)):
            raise RefusedError(
                "wrong length",
                f"point {k} has {len(values)} {what} for {len(order)} joints, "
                f"expected {len(order)} or none",
            )
        if not np.isfinite(values).all():
            bad = values[~np.isfinite(values)][0]
            raise RefusedError(
                "not finite", f"point {k} has {bad} in {what}, expected finite numbers"
            )
        fields.append(values[order] if len(values) else None)
    return _Point(nanoseconds(point.time_from_start) / SECOND, len(order), *fields)
