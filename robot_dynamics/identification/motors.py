# SPDX-License-Identifier: Apache-2.0
"""Efforts of motors and torques of joints, where a motor turns with several joints.

A motor that turns at the rate N_j·q̇ with the torque τ_j adds N_jᵀ τ_j to the joints' torques. The
effort that is recorded with joint j is that of one motor, whose row N_j is scaled here by its own
ratio to the joint: the effort, too, is taken at the joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import InputError, RecordingError, listed
from ..mechanism import Mechanism, Rotor
from .recording import Floats, Recording

SINGULAR = 1e-9
"""Ratio of singular values of the motors' rows below which they do not drive all joints"""
SAME = 1e-9
"""Relative difference of torques that are the same"""


def motor_rows(mechanism: Mechanism) -> Floats:
    """(n, n): row j is the rate of joint j's motor by the joints' rates, 1 at joint j.

    A joint's motor is the one that turns with it alone; else the one that is called as the joint;
    else the only one of those that turn with it that is no other joint's.

    Args:
        mechanism: an open chain.

    Raises:
        InputError: it is not clear whose effort is recorded with a joint, or the motors do not
            drive all joints.
    """
    joints = mechanism.joint_names
    motors: dict[str, Rotor] = {}
    for rotor in mechanism.rotors:
        if len(rotor.ratios) == 1:
            motors.setdefault(rotor.ratios[0][0], rotor)
    several = [rotor for rotor in mechanism.rotors if len(rotor.ratios) > 1]
    for rotor in several:
        if rotor.name in dict(rotor.ratios):
            motors[rotor.name] = rotor
    left = [rotor for rotor in several if rotor not in motors.values()]
    for rotor in left:
        free = [name for name, _ in rotor.ratios if name not in motors]
        if len(free) != 1:
            raise InputError(
                f"rotor {rotor.name}: it is coupled to {listed(name for name, _ in rotor.ratios)}, "
                "and it is not clear at which of them its effort is recorded: name the rotor after "
                "that joint",
                name=rotor.name,
            )
        motors[free[0]] = rotor
    rows: Floats = np.eye(len(joints))
    for j, joint in enumerate(joints):
        if joint in motors:
            row = np.asarray(mechanism.row(motors[joint].ratios), dtype=float)
            rows[j] = row / row[j]
    sizes = np.linalg.svd(rows, compute_uv=False)
    if sizes[-1] < SINGULAR * sizes[0]:
        raise InputError(
            f"rotors {listed(rotor.name for rotor in several)}: their velocities depend on each "
            "other, so they cannot drive all joints",
            name="rotors",
        )
    return rows


def at_joints(recording: Recording, mechanism: Mechanism) -> Recording:
    """The recording with torques of joints, of one with those of motors at their joints.

    Args:
        recording: with joints named as in the description.
        mechanism: with the recorded joints alone.

    Raises:
        InputError: as `motor_rows`; the robot has loops.
        RecordingError: efforts that add up come in messages of their own.
    """
    if mechanism.loops:
        raise InputError(
            f"{mechanism.name}: it has loops: each motor's effort must be that at its own joint",
            name="motor_efforts",
        )
    rows, joints = motor_rows(mechanism), mechanism.joint_names
    streams = []
    for stream in recording.streams:
        place = {name: k for k, name in enumerate(stream.names)}
        effort = stream.effort.copy()
        for i, joint in enumerate(joints):
            turning = [joints[j] for j in np.flatnonzero(rows[:, i])]
            if joint not in place or turning == [joint]:
                continue
            lacking = [name for name in turning if name not in place]
            if lacking:
                raise RecordingError(
                    f"{recording.source}: the motors of {listed(turning)} are all coupled to "
                    f"{joint}, but messages with {joint} lack the efforts of {listed(lacking)}",
                    name=recording.source,
                )
            # τ_i = Σ_j N_ji v_j
            effort[:, place[joint]] = sum(
                rows[joints.index(name), i] * stream.effort[:, place[name]] for name in turning
            )
        streams.append(replace(stream, effort=effort))
    return replace(recording, streams=tuple(streams))


def agreed_at_joints(recording: Recording, mechanisms: Sequence[Mechanism]) -> Recording:
    """As `at_joints`, with the couplings of those mechanisms that describe any.

    Args:
        recording: with joints named as in the descriptions.
        mechanisms: models of one robot, with the recorded joints alone.

    Raises:
        InputError, RecordingError: as `at_joints`.
        InputError: the couplings are not the same.
    """
    coupled = [each for each in mechanisms if any(len(rotor.ratios) > 1 for rotor in each.rotors)]
    first, *others = coupled or mechanisms[:1]
    found = at_joints(recording, first)
    for other in others:
        pairs = zip(found.streams, at_joints(recording, other).streams, strict=True)
        if not all(np.allclose(a.effort, b.effort, SAME, 0.0, equal_nan=True) for a, b in pairs):
            raise InputError(
                f"{first.name}, {other.name}: their gear ratios between motors and joints differ, "
                "so the same efforts are different torques; replay the models separately",
                name="motor_efforts",
            )
    return found
