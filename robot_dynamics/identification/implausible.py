# SPDX-License-Identifier: Apache-2.0
"""Drops implausible values, and refuses recordings that are not those of one robot at work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import RecordingError
from .recording import Floats, Recording, Stream, thinned

NOTHING = 1e-9
"""Efforts that never exceed this fraction of another joint's are 0 but for rounding"""
FEWEST_UNSIGNED, NEAR_ZERO = 3, 0.01
"""Number of joints, and fraction of the largest effort: efforts that never change their sign have
lost it if they come this close to 0, or to one step of their quantisation, at so many joints that
move to and fro"""
MOST_ROBOTS, APART, LEAST_APART = 4, 0.25, 0.01
"""Largest number of robots whose messages may alternate; ratio of the usual step from one message
to the next of the same robot to that between robots, below which they do; rad or m, the smallest
usual step between robots"""
FEWEST_ORDERED, COMPARED, UNORDERED = 100, 10_000, 0.9
"""Number of messages from which on their order is checked; largest number of those compared; ratio
of the usual steps between close messages to those between any two, beyond which, and below the
inverse of which, it is random"""
BLOCK = 3.0
"""s: where the clock is set back more often, on average, each block may be that of another robot"""
ABSURD = {"position": 1e5, "velocity": 1e5, "effort": 1e9}
"""rad, rad/s, N·m (m, m/s, N): 16,000 turns, or a hundred thousand tons; larger values are
implausible"""


def without_absurd(recording: Recording, notes: list[str]) -> Recording:
    """The recording with NaN for physically implausible values."""
    streams, count, example = [], 0, ""
    for stream in recording.streams:
        values = {}
        for name, most in ABSURD.items():
            values[name] = field = getattr(stream, name)
            with np.errstate(invalid="ignore"):
                absurd = np.abs(field) > most
            if absurd.any():
                values[name] = np.where(absurd, np.nan, field)
                row, column = np.argwhere(absurd)[0]
                example = example or (
                    f"{name} {field[row, column]:.3g} of {stream.names[column]} at "
                    f"{stream.time[row]:.3f} s"
                )
            count += int(absurd.sum())
        streams.append(replace(stream, **values))
    if count:
        notes.append(
            f"implausible values were dropped: {count} (positions or velocities above 1e5, "
            f"efforts above 1e9), such as {example}"
        )
    return replace(recording, streams=tuple(streams))


def is_constant(values: Floats) -> bool:
    """Whether all of several values (k,), apart from NaN, are the same."""
    given = values[np.isfinite(values)]
    return bool(len(given) > 1 and not np.ptp(given))


def with_efforts(stream: Stream, source: str, notes: list[str]) -> tuple[Stream, tuple[str, ...]]:
    """The stream without the efforts of joints at which all are missing, one constant, or 0 (less
    than `NOTHING` of the largest joint's), and the other joints."""
    for j, name in enumerate(stream.names):
        if not np.isfinite(stream.position[:, j]).any():
            raise RecordingError(f"{source}: no position of {name} is a number", name=source)
    efforts = stream.effort.copy()
    silent = []
    given = [column[np.isfinite(column)] for column in efforts.T]
    sizes = [np.abs(each) for each in given]
    # a quantile, so that one absurd value does not make all others look like nothing
    largest = max((float(np.quantile(each, 0.9)) for each in sizes if len(each)), default=0.0)
    for j, name in enumerate(stream.names):
        if is_constant(given[j]) or not len(given[j]) or sizes[j].max() <= NOTHING * largest:
            silent.append(name)
            efforts[:, j] = np.nan
    if len(silent) == len(stream.names):
        raise RecordingError(
            f"{source}: no efforts: all are missing, 0 or constant; record them (the field "
            "`effort` of sensor_msgs/JointState)",
            name=source,
        )
    if silent:
        notes.append(
            f"no efforts for {', '.join(silent)}: parameters that depend only on them keep their "
            "described values"
        )
    measured = tuple(name for name in stream.names if name not in silent)
    kept = [abs(np.sign(told).sum()) == len(told) for told in map(_told, efforts.T)]
    if all(kept) and sum(map(_reversing, stream.position.T, efforts.T)) >= FEWEST_UNSIGNED:
        raise RecordingError(
            f"{source}: the efforts of all joints never change their sign, although some come "
            "close to 0, as currents that were recorded without it; record them with their sign",
            name=source,
        )
    return replace(stream, effort=efforts), measured


def _told(effort: Floats) -> Floats:
    """The efforts of a joint that tell their sign; those of 0 do not, as the drive may be off."""
    told: Floats = effort[np.isfinite(effort) & (effort != 0)]
    return told


def _reversing(position: Floats, effort: Floats) -> bool:
    """Whether a joint's efforts (k,) come close to 0 while it moves to and fro."""
    steps = np.diff(position[np.isfinite(position)])
    if not ((steps < 0).any() and (steps > 0).any()):
        return False
    sizes = np.unique(np.abs(_told(effort)))
    if len(sizes) < 2:
        return False
    step = np.diff(sizes).min()
    return bool(sizes[0] <= max(NEAR_ZERO * sizes[-1], (1 + NEAR_ZERO) * step))


def check_order(stream: Stream, source: str) -> None:
    """Refuse messages whose states are in random order: successive ones, and those that follow the
    next, are as far apart as any two."""
    stream = stream.rows(np.argsort(stream.time, kind="stable"))
    position = stream.position[np.isfinite(stream.position).all(axis=1)]
    if len(position) < FEWEST_ORDERED:
        return
    chosen = thinned(len(position) - MOST_ROBOTS, COMPARED)
    here = position[chosen]
    others = [position[chosen + k] for k in range(1, MOST_ROBOTS + 1)]
    others.append(np.random.default_rng(0).permutation(here))
    *near, any_two = (float(np.median(np.abs(each - here).max(axis=1))) for each in others)
    if any_two > LEAST_APART and all(UNORDERED < each / any_two < 1 / UNORDERED for each in near):
        raise RecordingError(
            f"{source}: positions differ as much from one message to the next as between any two: "
            "are the messages in the order of their times?",
            name=source,
        )


def check_source(stream: Stream, source: str) -> None:
    """Refuse messages of several robots, or of several nodes, that take turns under the same names:
    some messages later, the state is far nearer than in the next message. Where the clock is set
    back all the time, they may take turns in blocks, and are put into the order of their stamps."""
    steps = np.diff(stream.time)
    if steps[steps > 0].sum() < BLOCK * (steps < 0).sum():
        stream = stream.rows(np.argsort(stream.time, kind="stable"))
    measured = np.isfinite(stream.effort).any(axis=0)
    told = np.isfinite(np.hstack([stream.position, stream.effort[:, measured]])).all(axis=1)
    position = stream.position[told]
    if len(position) <= MOST_ROBOTS:
        return
    apart_by = {
        k: np.abs(position[k:] - position[:-k]).max(axis=1) for k in range(1, MOST_ROBOTS + 1)
    }
    apart = float(np.median(apart_by[1]))
    for k in range(2, MOST_ROBOTS + 1):
        if apart > LEAST_APART and float(np.median(apart_by[k])) < APART * apart:
            at = int(np.argmax(apart_by[1]))
            j = int(np.argmax(np.abs(position[at + 1] - position[at])))
            raise RecordingError(
                f"{source}: its messages take turns between {k} states that are far apart "
                f"({stream.names[j]} at {position[at, j]:.3g} and {position[at + 1, j]:.3g}): do "
                f"{k} robots, or {k} nodes, publish the same joints? Record only one of them, or "
                "give them topics or names of their own",
                name=source,
            )
