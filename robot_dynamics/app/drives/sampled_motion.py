# SPDX-License-Identifier: Apache-2.0
"""A motion from a file: q, q̇, q̈ of a robot's joints over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...description.files import is_yaml
from ...description.motion_file import read_motion
from ...errors import InputError, counted, listed, wrong
from ...identification.preparation import prepare
from ...identification.read import read
from ...identification.recording import Recording
from ...motion.trajectory import States, Trajectory

STEP = 0.01
"""s between samples of a trajectory"""
MOST = 200_000
"""Number of states above which a motion probably has a wrong unit"""


def states(
    file: str,
    joints: Sequence[str],
    *,
    step: float | None = None,
    topic: str | None = None,
    rename: Mapping[str, str] | None = None,
    cutoff: float | None = None,
) -> States:
    """The motion of these joints; others are left out.

    A trajectory (YAML) is sampled. A table or a bag without efforts is a plan and is used
    unchanged; missing rates and accelerations are computed as differences. With efforts or a
    cut-off it is a recording: it is resampled, and filtered at the cut-off if there is one.

    Args:
        file: the file of the motion.
        joints: (n) names, in the order of the result.
        step: the time between samples of a trajectory, s; None: 0.01.
        topic, rename: for recordings, see `identify`.
        cutoff: Hz, of the filter of a recording; None: not filtered.

    Raises:
        TrajectoryError, RecordingError: the file contains no motion.
        InputError: joints are missing in it.
    """
    if is_yaml(file):
        return _sampled(file, joints, step)
    if step is not None:
        raise wrong(InputError, "--step", step, "none: a table or a bag has its own times")
    recording = read(file, topic).renamed(rename or {})
    _check(recording.names, joints, recording.source)
    is_plan = not any(np.isfinite(each.effort).any() for each in recording.streams)
    if is_plan and cutoff is None and len(recording.streams) == 1:
        return _planned(recording, joints)
    return _recorded(recording, joints, cutoff)


def _check(found: Sequence[str], joints: Sequence[str], source: str) -> None:
    if missing := [name for name in joints if name not in found]:
        raise InputError(
            f"{source}: missing joints: {listed(missing)}; expected {listed(joints)}, found "
            f"{listed(found)}",
            name=missing[0],
        )


def _sampled(file: str, joints: Sequence[str], step: float | None) -> States:
    step = STEP if step is None else step
    names, waypoints = read_motion(file)
    source = Path(file).name
    _check(names, joints, source)
    trajectory = Trajectory(waypoints)
    duration = trajectory.end - trajectory.start
    if not (step > 0 and duration / step <= MOST):
        raise wrong(InputError, "--step", step, f"above {duration / MOST:.3g} s")
    count = max(2, int(np.ceil(duration / step - 1e-9)) + 1)
    time = np.linspace(trajectory.start, trajectory.end, count)
    order = [names.index(name) for name in joints]
    # a trajectory rests at its very end: use the state just before
    inside = np.minimum(time, np.nextafter(trajectory.end, trajectory.start))
    rows = np.array([trajectory.sample(t) for t in inside])[:, :, order]
    return States(source, time, rows[:, 0], rows[:, 1], rows[:, 2])


def _planned(recording: Recording, joints: Sequence[str]) -> States:
    stream = recording.streams[0].of(joints)
    sound = np.asarray(np.isfinite(stream.position).all(axis=1))
    stream = stream.rows(sound)
    time, source = stream.time, recording.source
    notes = []
    if lost := int((~sound).sum()):
        notes.append(f"left out: {counted(lost, 'row')} without the position of every joint")
    if len(time) < 3 or not (np.diff(time) > 0).all():
        raise wrong(InputError, f"{source}: times", len(time), "three or more, increasing")
    if len(time) > MOST:
        raise wrong(InputError, f"{source}: rows", len(time), f"at most {MOST}")
    q, qd = stream.position, stream.velocity
    if not np.isfinite(qd).all():
        qd = np.gradient(q, time, axis=0, edge_order=2)
        notes.append("velocities and accelerations are computed by differences of the positions")
    else:
        notes.append("accelerations are computed by differences of the velocities")
    qdd = np.gradient(qd, time, axis=0, edge_order=2)
    return States(source, time, q, qd, qdd, tuple(notes))


def _recorded(recording: Recording, joints: Sequence[str], cutoff: float | None) -> States:
    prepared = prepare(recording, joints, cutoff, rests=True, efforts=False)
    longest = max(prepared.stretches, key=len)
    notes = list(prepared.notes)
    if len(prepared.stretches) > 1:
        notes.append(f"the longest of {len(prepared.stretches)} stretches without gaps")
    if prepared.cutoff is not None:
        notes.append(f"filtered at {prepared.cutoff:.3g} Hz, forwards and backwards")
    else:
        notes.append("not filtered: --cutoff removes noise, which raises accelerations and torques")
    return States(recording.source, longest.time, longest.q, longest.qd, longest.qdd, tuple(notes))
