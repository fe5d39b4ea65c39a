"""Trajectories through waypoints, sampled in time.

Between two waypoints runs, per joint, the polynomial of lowest degree that meets what both of
them carry: positions alone give a straight line, rates too a cubic, accelerations too a quintic.
These are the rules of ros2_controllers' joint_trajectory_controller.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from math import factorial, perm

import numpy as np
from numpy.typing import NDArray

from ..errors import TrajectoryError, wrong

Floats = NDArray[np.float64]

_ORDER = 6
"""Coefficients of a quintic; lower degrees are filled up with zeros"""


@dataclass(frozen=True, eq=False)
class Waypoint:
    """A state to pass at a time (s). Rates and accelerations may be left open."""

    time: float
    q: Floats
    """(n,), rad or m"""
    qd: Floats | None = None
    qdd: Floats | None = None

    @property
    def carries(self) -> int:
        """How many derivatives, the position counted: 1, 2 or 3. Accelerations without rates
        count for nothing."""
        if self.qd is None:
            return 1
        return 2 if self.qdd is None else 3

    def derivatives(self, count: int) -> list[Floats]:
        return [x for x in (self.q, self.qd, self.qdd)[:count] if x is not None]


class Trajectory:
    """A motion through waypoints, in seconds from its own start.

    Raises:
        TrajectoryError: fewer than two waypoints, or times that do not rise.
    """

    def __init__(self, waypoints: list[Waypoint]):
        if len(waypoints) < 2:
            raise wrong(TrajectoryError, "waypoints", len(waypoints), "at least two")
        self._times = [waypoint.time for waypoint in waypoints]
        for k, (before, after) in enumerate(pairwise(self._times)):
            if not after > before:
                raise wrong(
                    TrajectoryError, f"time of point {k + 1}", after, f"later than {before}"
                )
        self._first, self._last = waypoints[0], waypoints[-1]
        self._segments = _segments(waypoints)

    @property
    def start(self) -> float:
        """When the first waypoint is passed, s."""
        return self._times[0]

    @property
    def end(self) -> float:
        """When the last waypoint is passed, s."""
        return self._times[-1]

    def led_in(self, time: float, q: Floats, qd: Floats, periodic: NDArray[np.bool_]) -> Trajectory:
        """The same trajectory, reached from a state that is there already at an earlier time.

        The lead-in has the degree that the first waypoint asks for; the acceleration that it
        starts with is zero, for no sensor tells it. A periodic joint ((n,) mask) takes the
        short way round.
        """
        turns = np.where(periodic, np.round((self._first.q - q) / (2 * np.pi)), 0.0)
        here = Waypoint(time, q + 2 * np.pi * turns, qd, np.zeros_like(q))
        longer = object.__new__(Trajectory)
        longer._times = [time, *self._times]
        longer._first, longer._last = here, self._last
        longer._segments = np.concatenate([_segments([here, self._first]), self._segments])
        return longer

    def sample(self, time: float) -> tuple[Floats, Floats, Floats]:
        """q, qd, qdd (n,) at a time (s).

        Before the first waypoint and from the last one on the robot rests there: no rate and
        no acceleration outlives the points that carry it.
        """
        if time >= self._times[-1] or time < self._times[0]:
            edge = self._last if time >= self._times[-1] else self._first
            rest = np.zeros_like(edge.q)
            return edge.q, rest, rest
        k = bisect_right(self._times, time) - 1
        u = (time - self._times[k]) / (self._times[k + 1] - self._times[k])
        u2 = u * u
        powers = np.array((1.0, u, u2, u2 * u, u2 * u2, u2 * u2 * u))
        q, qd, qdd = (powers @ self._segments[k]).reshape(3, -1)
        return q, qd, qdd


def _segments(waypoints: list[Waypoint]) -> Floats:
    """(segments, 6, 3n): powers of u = (t - t_k) / h_k times this give q, qd and qdd."""
    n = len(waypoints[0].q)
    pairs = list(pairwise(waypoints))
    c = np.zeros((len(pairs), _ORDER, n))
    h = np.array([after.time - before.time for before, after in pairs])
    degree = np.array([min(before.carries, after.carries) for before, after in pairs])
    for count in set(degree.tolist()):
        chosen = np.flatnonzero(degree == count)
        # what the polynomial has to meet, in units of u: d^j x/du^j = h^j d^j x/dt^j
        scale = h[chosen, None] ** np.arange(count)
        ends = [
            np.array([pairs[k][side].derivatives(count) for k in chosen]) * scale[:, :, None]
            for side in (0, 1)
        ]
        c[chosen, : 2 * count] = _HERMITE[count] @ np.concatenate(ends, axis=1)
    # x = Σ c_i u^i, dx/dt = Σ i c_i u^(i-1) / h
    rate, acceleration = np.zeros_like(c), np.zeros_like(c)
    i = np.arange(1, _ORDER)[:, None]
    rate[:, :-1] = i * c[:, 1:] / h[:, None, None]
    acceleration[:, :-1] = i * rate[:, 1:] / h[:, None, None]
    return np.concatenate([c, rate, acceleration], axis=2)


def _hermite(count: int) -> Floats:
    """From `count` derivatives at u = 0 and then at u = 1 to 2·count coefficients of powers."""
    order = 2 * count
    at_0 = [[float(factorial(j)) if i == j else 0.0 for i in range(order)] for j in range(count)]
    at_1 = [[float(perm(i, j)) for i in range(order)] for j in range(count)]
    # its entries are whole multiples of 1/2: rounding makes them exact
    return np.round(2 * np.linalg.inv(np.array(at_0 + at_1))) / 2


_HERMITE = {count: _hermite(count) for count in (1, 2, 3)}
