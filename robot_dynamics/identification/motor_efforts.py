# SPDX-License-Identifier: Apache-2.0
"""Converts the efforts of motors to joint torques, where a motor is coupled to several joints.

A motor that turns at the rate N_j·q̇ with the torque τ_j contributes N_jᵀ τ_j to the joint torques.
The effort recorded with joint j is that of one motor, reflected to this joint: its row N_j is
divided here by its gear ratio to joint j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import InputError, RecordingError, listed
from ..mechanism import Mechanism, Rotor
from .implausible import is_constant
from .recording import Floats, Recording

SINGULAR = 1e-9
"""Ratio of the smallest to the largest singular value of the motors' rows, below which they do not
drive all joints"""
SAME = 1e-9
"""Relative difference up to which torques are the same"""


def motor_rows(mechanism: Mechanism) -> Floats:
    """(n, n): row j maps the joint rates to the rate of joint j's motor, scaled to 1 at joint j.

    A joint's motor is the one that is coupled to several joints and named after this one; else the
    one that is coupled to it alone; else the one whose other joints all have other motors. The row
    of a joint without a motor is that of the identity.

    Args:
        mechanism: an open chain.

    Raises:
        InputError: it is not clear which motor's effort is recorded with a joint, or the motors do
            not drive all joints.
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
    """Convert a recording of motor efforts, each reflected to its joint, to one of joint torques.

    Args:
        recording: with joints named as in the description.
        mechanism: with only the recorded joints.

    Raises:
        InputError: as for `motor_rows`, or the robot has loops.
        RecordingError: efforts that must be added come in separate messages.
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
        # a drive that measures nothing reports a constant, and the sum is not known, either
        effort[:, [is_constant(each) for each in effort.T]] = np.nan
        given = effort.copy()
        for i, joint in enumerate(joints):
            turning = [joints[j] for j in np.flatnonzero(rows[:, i])]
            if joint not in place or turning == [joint]:
                continue
            lacking = [name for name in turning if name not in place]
            if lacking:
                raise RecordingError(
                    f"{recording.source}: the motors of {listed(turning)} are all coupled to "
                    f"{joint}, but messages that contain {joint} lack efforts for "
                    f"{listed(lacking)}",
                    name=recording.source,
                )
            # τ_i = Σ_j N_ji v_j
            effort[:, place[joint]] = sum(
                rows[joints.index(name), i] * given[:, place[name]] for name in turning
            )
        streams.append(replace(stream, effort=effort))
    return replace(recording, streams=tuple(streams))


def agreed_at_joints(recording: Recording, mechanisms: Sequence[Mechanism]) -> Recording:
    """Like `at_joints`, with the couplings of those mechanisms that describe any.

    Args:
        recording: with joints named as in the descriptions.
        mechanisms: models of one robot, with only the recorded joints.

    Raises:
        InputError, RecordingError: as for `at_joints`.
        InputError: the couplings differ.
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
