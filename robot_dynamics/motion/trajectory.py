# SPDX-License-Identifier: Apache-2.0
"""Trajectories through waypoints, sampled in time.

Two waypoints are joined, per joint, by the polynomial of lowest degree that satisfies the values
given at both: a straight line for positions, a cubic with rates, a quintic with accelerations.
These are the rules of ros2_controllers' joint_trajectory_controller.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import factorial, perm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TrajectoryError, wrong
from ..scalar import Floats

_ORDER = 6
"""Number of coefficients of a quintic; polynomials of lower degree are padded with zeros"""

_BLOCK = 2048
"""Number of segments processed together, so that their data fit into the processor's cache"""

_BETWEEN = np.linspace(0.0, 1.0, 9)
"""Fractions of a segment at which its rates are evaluated; they include the middle, where a cubic
from rest to rest is fastest"""


@dataclass(frozen=True, eq=False)
class Waypoints:
    """States that a trajectory passes through, in order."""

    times: Floats
    """(m,), s"""
    q: Floats
    """(m, n), rad or m"""
    qd: Floats
    """(m, n), rad/s or m/s; zero for waypoints that give no rate"""
    qdd: Floats
    """(m, n), rad/s² or m/s²; zero for waypoints that give no acceleration"""
    carries: NDArray[np.intp]
    """(m,): how much each waypoint gives: 1: position, 2: also the rate, 3: also the
    acceleration"""

    def __len__(self) -> int:
        return len(self.times)

    def part(self, segments: slice) -> Waypoints:
        """The waypoints at the ends of a range of segments."""
        some = slice(segments.start, segments.stop + 1)
        return Waypoints(
            self.times[some], self.q[some], self.qd[some], self.qdd[some], self.carries[some]
        )


@dataclass(frozen=True, eq=False)
class States:
    """A motion as a sequence of states."""

    source: str
    """Its name, for messages"""
    time: Floats
    """(m,), s, increasing"""
    q: Floats
    """(m, n), rad or m"""
    qd: Floats
    """(m, n), rad/s or m/s"""
    qdd: Floats
    """(m, n), rad/s² or m/s²"""
    notes: tuple[str, ...] = ()


class Trajectory:
    """A motion through waypoints, with times in s from its own start.

    Args:
        waypoints: at least one, with increasing times.

    Attributes:
        peak_rates: (n,) the largest magnitudes at nine instants of each segment, rad/s or m/s.
        peak_accelerations: (n,) the largest magnitudes, rad/s² or m/s².

    Raises:
        TrajectoryError: no waypoint, times that do not increase, or numbers that are too large.
    """

    def __init__(self, waypoints: Waypoints):
        if not len(waypoints):
            raise wrong(TrajectoryError, "waypoints", 0, "at least one")
        self._times = waypoints.times.tolist()
        rises = np.diff(waypoints.times) > 0
        if not rises.all():
            k = int(np.argmin(rises))
            raise wrong(
                TrajectoryError,
                f"time of point {k + 1}",
                self._times[k + 1],
                f"later than {self._times[k]}",
            )
        self._waypoints = waypoints
        n, segments = waypoints.q.shape[1], len(rises)
        self._segments = np.empty((_ORDER, segments, n))
        self.peak_rates, self.peak_accelerations = np.zeros((2, n))
        with np.errstate(all="ignore"):
            for k in range(0, segments, _BLOCK):
                block = slice(k, min(k + _BLOCK, segments))
                part, h = waypoints.part(block), np.diff(waypoints.times[k : block.stop + 1])
                self._segments[:, block] = c = _segments(part, h)
                peaks = _peaks(c, h)
                self.peak_rates = np.maximum(self.peak_rates, peaks[0])
                self.peak_accelerations = np.maximum(self.peak_accelerations, peaks[1])
        if not np.isfinite([self.peak_rates, self.peak_accelerations]).all():
            raise wrong(
                TrajectoryError, "trajectory", "velocities or accelerations that overflow",
                "consistent positions, times and velocities",
            )  # fmt: skip

    @property
    def start(self) -> float:
        """The time of the first waypoint, s."""
        return float(self._times[0])

    @property
    def end(self) -> float:
        """The time of the last waypoint, s."""
        return float(self._times[-1])

    def at_waypoints(self) -> tuple[Floats, Floats, Floats]:
        """q, qd, qdd (m, n) at the waypoints.

        If the two polynomials that meet at a waypoint differ, it is their mean; at the last
        waypoint the robot is at rest.
        """
        q, h = self._waypoints.q, np.diff(self._times)[:, None]
        i = np.arange(_ORDER)[:, None, None]
        c, qd, qdd = self._segments, np.zeros_like(q), np.zeros_like(q)
        # at u = 0 and u = 1: dx/dt = Σ i c_i u^(i-1) / h, d²x/dt² = Σ i (i-1) c_i u^(i-2) / h²
        for values, first, last in (
            (qd, c[1] / h, (i * c).sum(axis=0) / h),
            (qdd, 2 * c[2] / h**2, (i * (i - 1) * c).sum(axis=0) / h**2),
        ):
            values[:-1][:1] = first[:1]
            values[1:-1] = (first[1:] + last[:-1]) / 2
        return q, qd, qdd

    def lead_in(
        self, time: float, q: Floats, qd: Floats, periodic: NDArray[np.bool_]
    ) -> Trajectory:
        """A trajectory from a given state to the first waypoint.

        Its polynomial has the degree that the first waypoint requires. It starts with zero
        acceleration, as no sensor measures it.

        Args:
            time: the time of the given state, s, before the first waypoint.
            q: (n,) position at that time, rad or m.
            qd: (n,) rates at that time, rad/s or m/s.
            periodic: (n,) which joints take the shorter way round.

        Raises:
            TrajectoryError: rates or accelerations too large for floats, or a time that is not
                before the first waypoint.
        """
        first = self._waypoints
        turns = np.where(periodic, np.round((first.q[0] - q) / (2 * np.pi)), 0.0)
        return Trajectory(
            Waypoints(
                times=np.array([time, first.times[0]]),
                q=np.array([q + 2 * np.pi * turns, first.q[0]]),
                qd=np.array([qd, first.qd[0]]),
                qdd=np.array([np.zeros_like(q), first.qdd[0]]),
                carries=np.array([3, first.carries[0]]),
            )
        )

    def sample(self, time: float) -> tuple[Floats, Floats, Floats]:
        """q, qd, qdd (n,) at a time, s.

        Before the first waypoint and from the last one on, the robot rests at that waypoint, even
        if it gives a rate or an acceleration.
        """
        times = self._times
        if time >= times[-1] or time < times[0]:
            edge = self._waypoints.q[-1 if time >= times[-1] else 0]
            rest = np.zeros_like(edge)
            return edge, rest, rest
        k = bisect_right(times, time) - 1
        h = times[k + 1] - times[k]
        u = (time - times[k]) / h
        u2 = u * u
        u3, h2 = u * u2, h * h
        # x = Σ c_i u^i, dx/dt = Σ i c_i u^(i-1) / h, d²x/dt² = Σ i (i-1) c_i u^(i-2) / h²
        powers = np.array(
            (
                (1.0, u, u2, u3, u2 * u2, u2 * u3),
                (0.0, 1 / h, 2 * u / h, 3 * u2 / h, 4 * u3 / h, 5 * u2 * u2 / h),
                (0.0, 0.0, 2 / h2, 6 * u / h2, 12 * u2 / h2, 20 * u3 / h2),
            )
        )
        q, qd, qdd = powers @ self._segments[:, k]
        return q, qd, qdd


def _segments(waypoints: Waypoints, h: Floats) -> Floats:
    """(6, segments, n): the coefficients c_i of powers of u = (t - t_k) / h_k."""
    c = np.zeros((_ORDER, len(h), waypoints.q.shape[1]))
    degree = np.minimum(waypoints.carries[:-1], waypoints.carries[1:])
    for count in (1, 2, 3):
        chosen: Any = np.flatnonzero(degree == count)
        if not len(chosen):
            continue
        if len(chosen) == len(h):
            chosen = slice(None)  # usually all are alike, and nothing needs copying
        # the values required at both ends, in units of u: d^j x/du^j = h^j d^j x/dt^j
        scales = (h[chosen] ** np.arange(count)[:, None])[:, :, None]
        derivatives = (waypoints.q, waypoints.qd, waypoints.qdd)[:count]
        at_0 = [x[:-1][chosen] * scale for x, scale in zip(derivatives, scales, strict=True)]
        at_1 = [x[1:][chosen] * scale for x, scale in zip(derivatives, scales, strict=True)]
        ends = np.stack([*at_0, *at_1])
        found = _HERMITE[count] @ ends.reshape(2 * count, -1)
        c[: 2 * count, chosen] = found.reshape(ends.shape)
    return c


def _peaks(c: Floats, h: Floats) -> tuple[Floats, Floats]:
    """((n,), (n,)): the largest |dx/dt| at some instants of each segment, the largest |d²x/dt²|."""
    n = c.shape[2]
    i = np.arange(1, _ORDER)
    # dx/du = Σ i c_i u^(i-1)
    rates = (i * _BETWEEN[:, None] ** (i - 1)) @ c[1:].reshape(_ORDER - 1, -1)
    rates = np.abs(rates).max(axis=0).reshape(-1, n) / h[:, None]
    # d²x/du² = 2 c_2 + 6 c_3 u + 12 c_4 u² + 20 c_5 u³ is largest at an end or where
    # its slope, 6 (c_3 + 4 c_4 u + 10 c_5 u²), is zero
    _, _, c2, c3, c4, c5 = c
    accelerations = np.maximum(np.abs(2 * c2), np.abs(2 * c2 + 6 * c3 + 12 * c4 + 20 * c5))
    if c[4:].any():
        half = 2 * c4 + np.copysign(np.sqrt(np.maximum(4 * c4 * c4 - 10 * c5 * c3, 0)), c4)
        for root in (-half / (10 * c5), -c3 / half):
            u = np.fmin(np.fmax(root, 0.0), 1.0)  # without a root u is nan, which becomes 0
            found = np.abs(2 * c2 + u * (6 * c3 + u * (12 * c4 + u * 20 * c5)))
            accelerations = np.maximum(accelerations, found)
    return rates.max(axis=0), (accelerations / (h * h)[:, None]).max(axis=0)


def _hermite(count: int) -> Floats:
    """The matrix from `count` derivatives at u = 0, then at u = 1, to 2·count coefficients."""
    order = 2 * count
    at_0 = [[float(factorial(j)) if i == j else 0.0 for i in range(order)] for j in range(count)]
    at_1 = [[float(perm(i, j)) for i in range(order)] for j in range(count)]
    # the entries are multiples of 1/2, so rounding makes them exact
    return np.round(2 * np.linalg.inv(np.array(at_0 + at_1))) / 2


_HERMITE = {count: _hermite(count) for count in (1, 2, 3)}
