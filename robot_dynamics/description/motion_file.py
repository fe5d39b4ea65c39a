# SPDX-License-Identifier: Apache-2.0
"""Motion files: a JointTrajectory as YAML, with the field names of trajectory_msgs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DescriptionError, TrajectoryError, wrong
from ..motion.trajectory import Trajectory, Waypoints
from ..scalar import Floats, is_number, is_whole
from .files import find, read_text, write_text
from .yaml_text import plain

SECOND = 1_000_000_000
FIELDS = ("positions", "velocities", "accelerations")
MOST_SECONDS = 2**31 - 1
"""The largest value in a builtin_interfaces/Duration"""


def write_motion(
    path: Path, joints: tuple[str, ...], time: Floats, q: Floats, qd: Floats, qdd: Floats
) -> None:
    """Write waypoints to a file.

    Args:
        path: of the file.
        joints: their names (n,).
        time: (k,), s.
        q: (k, n) positions, rad or m.
        qd: (k, n) rates, rad/s or m/s.
        qdd: (k, n) accelerations, rad/s² or m/s².

    Raises:
        InputError: it cannot be written.
    """
    names = json.dumps(joints)  # JSON is YAML
    lines = ["# trajectory_msgs/JointTrajectory: rad, m and s", f"joint_names: {names}", "points:"]
    for t, *states in zip(time, q, qd, qdd, strict=True):
        total = round(float(t) * SECOND)
        for k, (field, row) in enumerate(zip(FIELDS, states, strict=True)):
            # rounding errors at rest are removed
            numbers = ", ".join(repr(round(float(x), 12) + 0.0) for x in row)
            lines.append(f"{'  ' if k else '- '}{field}: [{numbers}]")
        lines.append(f"  time_from_start: {{sec: {total // SECOND}, nanosec: {total % SECOND}}}")
    write_text(path, "\n".join(lines) + "\n")


def read_motion(file: str | os.PathLike[str]) -> tuple[tuple[str, ...], Waypoints]:
    """(joint names, waypoints) of a JointTrajectory in YAML, as `write_motion` writes it.

    Args:
        file: its path, or a `package://` URL.

    Raises:
        TrajectoryError: there is no such file, or it is not a motion; the message says why.
    """
    try:
        path = find(os.fspath(file))
        content = plain(read_text(path), path.name)
    except DescriptionError as error:
        raise TrajectoryError(str(error), name=os.fspath(file)) from None
    name = path.name
    if not isinstance(content, dict):
        raise wrong(TrajectoryError, name, content, "a mapping with joint_names and points")
    joints = content.get("joint_names")
    if (
        not isinstance(joints, list)
        or not joints
        or not all(isinstance(joint, str) and joint for joint in joints)
        or len(set(joints)) != len(joints)
    ):
        raise wrong(TrajectoryError, f"{name}: joint_names", joints, "distinct joint names")
    points = content.get("points")
    if not isinstance(points, list) or len(points) < 2:
        raise wrong(TrajectoryError, f"{name}: points", points, "a list of at least two")
    n = len(joints)
    times, carries = [], []
    states = np.zeros((len(points), 3, n))
    for k, point in enumerate(points):
        where = f"{name}: point {k + 1}"
        if not isinstance(point, dict):
            raise wrong(TrajectoryError, where, point, "positions and time_from_start")
        times.append(_seconds(point.get("time_from_start"), where))
        given = 3
        for order, field in enumerate(FIELDS):
            row = point.get(field)
            if order and row in (None, []):
                given = min(given, order)
                continue
            if given < order:
                raise wrong(
                    TrajectoryError, where, field, f"{FIELDS[order - 1]} as well as {field}"
                )
            states[k, order] = _row(row, n, f"{where}: {field}")
        carries.append(given)
    q, qd, qdd = np.moveaxis(states, 1, 0)
    waypoints = Waypoints(np.array(times), q, qd, qdd, np.array(carries))
    Trajectory(waypoints)  # checks that times increase and numbers are consistent
    return tuple(joints), waypoints


def _row(row: Any, n: int, where: str) -> list[float]:
    if not isinstance(row, list) or len(row) != n or not all(map(is_number, row)):
        raise wrong(TrajectoryError, where, row, f"{n} finite numbers, one per joint")
    return [float(x) for x in row]


def _seconds(value: Any, where: str) -> float:
    expected = "{sec: 0 or more, nanosec: 0 to 999999999}"
    if not isinstance(value, dict) or not set(value) <= {"sec", "nanosec"}:
        raise wrong(TrajectoryError, f"{where}: time_from_start", value, expected)
    sec, nanosec = value.get("sec", 0), value.get("nanosec", 0)
    for part, most in ((sec, MOST_SECONDS), (nanosec, SECOND - 1)):
        if not is_whole(part) or not 0 <= part <= most:
            raise wrong(TrajectoryError, f"{where}: time_from_start", value, expected)
    return float(sec + nanosec / SECOND)
