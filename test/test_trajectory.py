# SPDX-License-Identifier: Apache-2.0
"""Trajectories through waypoints against SciPy's Hermite interpolation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import BPoly

from robot_dynamics.errors import TrajectoryError
from robot_dynamics.motion import trajectory as trajectories
from robot_dynamics.motion.trajectory import Waypoints

ROUNDING = 1e-10
"""Relative: a polynomial of degree 5 in units of its segment loses a few digits of 16"""

TIMES = (0.0, 0.4, 0.5, 2.0)
INSTANTS = np.linspace(0.0, 1.999, 41)
NEVER = np.zeros(3, dtype=bool)


@dataclass
class Waypoint:
    time: float
    q: np.ndarray
    qd: np.ndarray | None = None
    qdd: np.ndarray | None = None

    @property
    def carries(self) -> int:
        return 1 if self.qd is None else 2 if self.qdd is None else 3

    def derivatives(self, count: int) -> list[np.ndarray]:
        return [self.q, self.qd, self.qdd][:count]


def Trajectory(points: list[Waypoint]) -> trajectories.Trajectory:
    def column(what: str) -> np.ndarray:
        rows = [getattr(point, what) for point in points]
        # what a point leaves open is nobody's business
        return np.array([np.full_like(p.q, 99.0) if r is None else r
                         for p, r in zip(points, rows, strict=True)])  # fmt: skip

    return trajectories.Trajectory(
        Waypoints(
            times=np.array([point.time for point in points]),
            q=column("q"),
            qd=column("qd"),
            qdd=column("qdd"),
            carries=np.array([point.carries for point in points]),
        )
    )


def waypoints(rng: np.random.Generator, carries: int, times=TIMES) -> list[Waypoint]:
    return [Waypoint(time, *rng.normal(size=(carries, 3))) for time in times]


def hermite(points: list[Waypoint], carries: int) -> BPoly:
    return BPoly.from_derivatives(
        [point.time for point in points], [np.array(point.derivatives(carries)) for point in points]
    )


@pytest.mark.parametrize("carries", [1, 2, 3])
def test_between_waypoints_runs_the_polynomial_of_lowest_degree_that_meets_both(carries):
    points = waypoints(np.random.default_rng(carries), carries)
    trajectory, expected = Trajectory(points), hermite(points, carries)
    for time in INSTANTS:
        for order, value in enumerate(trajectory.sample(time)):
            wanted = expected(time, nu=order) if order < 2 * carries else np.zeros(3)
            np.testing.assert_allclose(value, wanted, rtol=ROUNDING, atol=ROUNDING)


def test_a_segment_has_the_degree_of_the_waypoint_that_carries_less():
    rng = np.random.default_rng(7)
    full = waypoints(rng, 3)
    points = [full[0], full[1], Waypoint(0.5, full[2].q, full[2].qd), full[3]]
    trajectory = Trajectory(points)
    for segment, carries in ((0, 3), (1, 2), (2, 2)):
        expected = hermite(points[segment : segment + 2], carries)
        for time in np.linspace(points[segment].time, points[segment + 1].time, 5)[:-1]:
            for order, value in enumerate(trajectory.sample(time)):
                np.testing.assert_allclose(
                    value, expected(time, nu=order), rtol=ROUNDING, atol=ROUNDING
                )


def test_accelerations_without_rates_do_not_bend_a_straight_line():
    a, b = np.zeros(3), np.ones(3)
    straight = Trajectory([Waypoint(0.0, a, None, b), Waypoint(2.0, b, None, b)])
    q, qd, qdd = straight.sample(0.5)
    np.testing.assert_allclose(q, 0.25 * b)
    np.testing.assert_allclose(qd, 0.5 * b)
    assert not qdd.any()


def test_rates_and_accelerations_are_the_slopes_of_positions_and_rates():
    trajectory = Trajectory(waypoints(np.random.default_rng(3), 3))
    step, truncation = 1e-5, 1e-6  # central differences: step² times the third derivative
    for time in (0.1, 0.45, 1.3):
        before, now, after = (trajectory.sample(time + d) for d in (-step, 0.0, step))
        np.testing.assert_allclose(
            now[1], (after[0] - before[0]) / (2 * step), rtol=truncation, atol=truncation
        )
        np.testing.assert_allclose(
            now[2], (after[1] - before[1]) / (2 * step), rtol=truncation, atol=truncation
        )


@pytest.mark.parametrize("time", [-0.1, 2.0, 100.0])
def test_outside_its_time_the_robot_rests_at_the_nearest_waypoint(time):
    points = waypoints(np.random.default_rng(5), 3)
    q, qd, qdd = Trajectory(points).sample(time)
    np.testing.assert_array_equal(q, (points[0] if time < 0 else points[-1]).q)
    assert not qd.any()
    assert not qdd.any()


@pytest.mark.parametrize("carries", [1, 2, 3])
def test_a_lead_in_runs_from_the_state_to_the_first_waypoint(carries):
    rng = np.random.default_rng(11)
    points = waypoints(rng, carries)
    q, qd = rng.normal(size=(2, 3))
    led_in = Trajectory(points).lead_in(-0.5, q, qd, NEVER)
    here = Waypoint(-0.5, q, *(qd, np.zeros(3))[: carries - 1])
    expected = hermite([here, points[0]], carries)
    for time in np.linspace(-0.5, 0.0, 9)[:-1]:
        for order, value in enumerate(led_in.sample(time)):
            wanted = expected(time, nu=order) if order < 2 * carries else np.zeros(3)
            np.testing.assert_allclose(value, wanted, rtol=ROUNDING, atol=ROUNDING)
    assert (led_in.start, led_in.end) == (-0.5, 0.0)


def test_a_joint_that_turns_forever_is_led_in_the_short_way_round():
    points = [Waypoint(0.0, np.full(3, 0.1)), Waypoint(1.0, np.zeros(3))]
    periodic = np.array([True, True, False])
    q = np.array([0.1 + 6 * np.pi, 6.2, 6.2])
    led_in = Trajectory(points).lead_in(-1.0, q, np.zeros(3), periodic)
    rates = led_in.sample(-0.5)[1]
    np.testing.assert_allclose(rates, [0.0, 0.1 - (6.2 - 2 * np.pi), 0.1 - 6.2], atol=ROUNDING)


@pytest.mark.parametrize("times", [(0.0, 0.0), (1.0, 0.5), (0.0, float("nan"))])
def test_times_that_do_not_rise_are_refused(times):
    with pytest.raises(TrajectoryError, match="time of point 1"):
        Trajectory([Waypoint(time, np.zeros(2)) for time in times])


def test_no_waypoint_is_no_trajectory():
    none = np.zeros((0, 2))
    with pytest.raises(TrajectoryError, match="at least one"):
        trajectories.Trajectory(Waypoints(np.zeros(0), none, none, none, np.zeros(0, dtype=int)))


def test_one_waypoint_is_a_place_to_rest_at_and_a_way_there():
    there = Trajectory([Waypoint(2.0, np.array([1.0, -1.0]), np.array([0.5, 0.0]))])
    way = there.lead_in(0.0, np.zeros(2), np.zeros(2), NEVER[:2])
    np.testing.assert_allclose(way.sample(2.0 - 1e-9)[0], [1.0, -1.0], atol=1e-8)
    np.testing.assert_allclose(way.sample(2.0 - 1e-9)[1], [0.5, 0.0], atol=1e-8)
    for time in (2.0, 3.0):
        np.testing.assert_array_equal(there.sample(time), [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("carries", [1, 2, 3])
def test_at_waypoints_it_has_the_mean_of_what_meets_there_and_rests_at_the_end(carries):
    points = waypoints(np.random.default_rng(carries), carries)
    trajectory = Trajectory(points)
    before, after = 1e-9, 1e-9
    for k, state in enumerate(zip(*trajectory.at_waypoints(), strict=True)):
        time = points[k].time
        sides = [trajectory.sample(time + after)]
        if k:
            sides.append(trajectory.sample(time - before))
        expected = np.mean(sides, axis=0)
        if k == len(points) - 1:
            expected = [points[k].q, np.zeros(3), np.zeros(3)]
        # its jerks, times the distance to the waypoint
        np.testing.assert_allclose(state, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("carries", [1, 2, 3])
def test_peaks_are_those_of_the_polynomials(carries):
    for seed in range(20):
        points = waypoints(np.random.default_rng(100 * carries + seed), carries)
        trajectory, expected = Trajectory(points), hermite(points, carries)
        # the last instant belongs to the polynomial, not to the rest after it
        for h, peak, tolerance in (
            (1, trajectory.peak_rates, 0.03),
            (2, trajectory.peak_accelerations, 1e-5),
        ):
            if h >= 2 * carries:
                assert not peak.any()
                continue
            found = [
                np.abs(expected(np.linspace(a + 1e-12, b - 1e-12, 2001), nu=h)).max(axis=0)
                for a, b in pairwise(TIMES)
            ]
            np.testing.assert_allclose(peak, np.max(found, axis=0), rtol=tolerance)


def test_the_rate_in_the_midst_of_a_cubic_is_found():
    still = np.zeros(2)
    points = [
        Waypoint(0.0, np.array([0.0, 1.0]), still),
        Waypoint(2.0, np.array([1.0, -3.0]), still),
    ]
    # 6 u (1 - u) Δ / h
    np.testing.assert_allclose(Trajectory(points).peak_rates, [0.75, 3.0])


@pytest.mark.parametrize("value", [1e308, np.inf, np.nan])
def test_numbers_beyond_all_bounds_are_refused(value):
    far = np.array([value, 0.0])
    points = [Waypoint(0.0, -far, far), Waypoint(1e-3, far, far)]
    with pytest.raises(TrajectoryError, match="that overflow"):
        Trajectory(points)


def test_a_trajectory_of_many_points_is_the_motion_that_they_were_taken_from():
    rng = np.random.default_rng(13)
    times = np.cumsum(rng.uniform(0.5e-3, 1.5e-3, size=5000))
    slopes = np.array([1.0, -2.0])
    # a cubic is its own Hermite interpolant
    q, qd, qdd = (np.outer(x, slopes) for x in (times**3, 3 * times**2, 6 * times))
    carries = rng.integers(2, 4, size=len(times))
    long = trajectories.Trajectory(Waypoints(times, q, qd, qdd, carries))
    # a difference of neighbours over h² of 1e-6
    tolerance = 1e-6
    for t in rng.uniform(times[0], times[-1], size=300):
        for found, wanted in zip(long.sample(t), (t**3, 3 * t**2, 6 * t), strict=True):
            np.testing.assert_allclose(found, wanted * slopes, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(long.peak_accelerations, 6 * times[-1] * np.abs(slopes), tolerance)
    np.testing.assert_allclose(long.peak_rates, 3 * times[-1] ** 2 * np.abs(slopes), tolerance)
